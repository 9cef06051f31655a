"""Read block traces that `trace convert` wrote as CSV or Parquet, with commands in a companion file."""

from collections.abc import Iterator

import polars as pl

from stripesim.traces.budget import REQUEST_BYTES
from stripesim.traces.columns import (
    CHUNK_SCHEMA,
    COMMAND_SCHEMA,
    INT64_MAX,
    LENGTH_BYTES_MAX,
    ORDER_COLUMN,
    REQUEST_SCHEMA,
    Chunk,
)
from stripesim.traces.converted import ConvertedLayout
from stripesim.traces.formats.delimited import REACH_NS
from stripesim.traces.lines import ClockWatch
from stripesim.traces.problems import FaultLog
from stripesim.traces.source import TraceFormat, TraceSource, companion

REQUEST_COLUMNS_NEEDED = ("issue_ns", "offset_bytes", "length_bytes", "is_write")
"""Required columns of requests. Others may be missing."""

# A file without devices has one, named as in other formats that record none.
_DEVICE = pl.col("device").fill_null("0")


def _layout(schema: dict[str, pl.DataType], needed: tuple[str, ...]) -> ConvertedLayout:
    times = [pl.col(name) for name in schema if name.endswith("_ns")]
    near = [time.is_null() | time.is_between(-REACH_NS, REACH_NS) for time in times]
    return ConvertedLayout(
        schema=schema,
        needed=needed,
        sound=pl.all_horizontal(
            *near,
            pl.col("offset_bytes").is_between(0, INT64_MAX // 2),
            pl.col("length_bytes").is_between(1, LENGTH_BYTES_MAX),
        ),
        wanted=f"{', '.join(needed)}: times within 73 years of 0, offsets below 2**62 bytes, sizes of 1 byte "
        "to 1 TiB, true or false",
        row_bytes=REQUEST_BYTES,
    )


_REQUESTS = _layout(REQUEST_SCHEMA, REQUEST_COLUMNS_NEEDED)
_COMMANDS = _layout(COMMAND_SCHEMA, ("dispatch_ns", *REQUEST_COLUMNS_NEEDED[1:]))


def _read(source: TraceSource, log: FaultLog) -> Iterator[Chunk]:
    """Yield the requests, then the commands of the companion file."""
    clock = ClockWatch(log, ordered=True)
    for rows in _REQUESTS.rows(source, log):
        clock.check(rows["issue_ns"], rows[ORDER_COLUMN])
        yield Chunk(rows.with_columns(device=_DEVICE))
    beside = TraceSource(companion(source.path, "commands"), source.block_bytes)
    if not beside.path.exists():
        return
    no_requests = pl.DataFrame(schema=CHUNK_SCHEMA)
    yield Chunk(no_requests, pl.DataFrame(schema=COMMAND_SCHEMA))
    command_log = FaultLog(str(beside.path))
    for rows in _COMMANDS.rows(beside, command_log):
        commands = rows.drop(ORDER_COLUMN).with_columns(device=_DEVICE)
        yield Chunk(no_requests, commands)
    log.extend(command_log)


FORMAT = TraceFormat("columns", _REQUESTS.recognises, _read)

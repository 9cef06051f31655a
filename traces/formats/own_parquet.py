"""The columnar form of block traces as Parquet, as `trace convert` writes it."""

from collections.abc import Iterator

import polars as pl

from stripesim.traces.budget import REQUEST_BYTES, RowBudget
from stripesim.traces.columns import (
    CHUNK_SCHEMA,
    COMMAND_SCHEMA,
    INT64_MAX,
    LENGTH_BYTES_MAX,
    ORDER_COLUMN,
    REQUEST_SCHEMA,
    Chunk,
)
from stripesim.traces.formats.delimited import REACH_NS
from stripesim.traces.formats.headed import (
    COMMAND_COLUMNS_NEEDED,
    REQUEST_COLUMNS_NEEDED,
)
from stripesim.traces.lines import ClockWatch
from stripesim.traces.parquet import Schema, is_parquet, parquet_slices
from stripesim.traces.problems import FaultLog
from stripesim.traces.source import TraceFormat, TraceSource, companion

_TIMES = ("issue_ns", "dispatch_ns", "complete_ns")
_WANTED = (
    "times within 73 years of 0, an offset below 2**62 bytes, a size of 1 byte to 1 TiB, "
    "a device and a direction"
)


def _read(source: TraceSource, log: FaultLog) -> Iterator[Chunk]:
    """Yield the requests, then the commands of the companion file."""
    log.unit = "row"
    clock = ClockWatch(log, ordered=True)
    for rows in _slices(source, REQUEST_SCHEMA, REQUEST_COLUMNS_NEEDED, log):
        clock.check(rows["issue_ns"], rows[ORDER_COLUMN])
        yield Chunk(rows.select(CHUNK_SCHEMA.keys()))
    commands = companion(source.path, "commands")
    if not commands.exists():
        return
    command_log = FaultLog(str(commands), unit="row")
    no_requests = pl.DataFrame(schema=CHUNK_SCHEMA)
    yield Chunk(no_requests, pl.DataFrame(schema=COMMAND_SCHEMA))
    beside = TraceSource(commands)
    for rows in _slices(beside, COMMAND_SCHEMA, COMMAND_COLUMNS_NEEDED, command_log):
        yield Chunk(no_requests, rows.select(COMMAND_SCHEMA.keys()))
    log.extend(command_log)


OWN_PARQUET = TraceFormat(
    "columns-parquet", lambda head: is_parquet(head, REQUEST_COLUMNS_NEEDED), _read
)


def _slices(
    source: TraceSource, schema: Schema, needed: tuple[str, ...], log: FaultLog
) -> Iterator[pl.DataFrame]:
    """Yield the sound rows; those without a device have the device 0, as where there is but one."""
    budget = RowBudget(log.source, REQUEST_BYTES, "rows")
    only_device = pl.col("device").is_null().all()
    device = pl.when(only_device).then(pl.lit("0")).otherwise("device")
    for part in parquet_slices(source.path, schema, needed, budget):
        rows = part.with_columns(device.alias("device"))
        mask = rows.select(_sound(schema, needed).alias("sound")).to_series()
        for row in rows.filter(~mask).iter_rows(named=True):
            cells = ", ".join(f"{name} {row[name]}" for name in schema)
            log.add(row[ORDER_COLUMN], cells, _WANTED)
        yield rows.filter(mask)


def _sound(schema: Schema, needed: tuple[str, ...]) -> pl.Expr:
    present = pl.all_horizontal(
        pl.col(name).is_not_null() for name in (*needed, "device")
    )
    near = pl.all_horizontal(
        pl.col(name).is_between(-REACH_NS, REACH_NS) | pl.col(name).is_null()
        for name in _TIMES
        if name in schema
    )
    offset = pl.col("offset_bytes").is_between(0, INT64_MAX // 2)
    length = pl.col("length_bytes").is_between(1, LENGTH_BYTES_MAX)
    return (present & near & offset & length).fill_null(False)

"""Define the columnar form of all block traces."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from stripesim.traces.problems import Faults

REQUEST_SCHEMA: dict[str, pl.DataType] = {
    "issue_ns": pl.Int64(),
    "dispatch_ns": pl.Int64(),
    "complete_ns": pl.Int64(),
    "device": pl.String(),
    "offset_bytes": pl.Int64(),
    "length_bytes": pl.Int64(),
    "is_write": pl.Boolean(),
}
"""Columns of `BlockTrace.requests`, one row per request, sorted by `issue_ns`."""

COMMAND_SCHEMA: dict[str, pl.DataType] = {
    name: kind for name, kind in REQUEST_SCHEMA.items() if name != "issue_ns"
}
"""Columns of `BlockTrace.commands`, one row per command sent to a device, sorted by `dispatch_ns`."""

ORDER_COLUMN = "order"
"""Line of the file that a row comes from. It breaks ties of time and is dropped after sorting."""

INT64_MAX = 2**63 - 1

LENGTH_BYTES_MAX = 1 << 40
"""Longer requests are treated as damage. Sums over millions of requests then stay far below 2**63."""

CHUNK_SCHEMA: dict[str, pl.DataType] = {ORDER_COLUMN: pl.Int64(), **REQUEST_SCHEMA}
"""Columns of `Chunk.requests`."""


def request_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Convert rows to `CHUNK_SCHEMA`. Times that a format does not record become null."""
    return rows.select(
        (pl.col(name) if name in rows.columns else pl.lit(None)).cast(kind).alias(name)
        for name, kind in CHUNK_SCHEMA.items()
    )


@dataclass(frozen=True)
class Chunk:
    """A bounded part of a trace, as yielded by the reader of a format.

    `requests` has `CHUNK_SCHEMA`, and `commands` has `COMMAND_SCHEMA` or is None if the format does not
    record commands. Times are relative to `zero_ns` on the trace's clock, which is the same in all chunks of
    a file. It is a Python integer, because nanoseconds since 1601 exceed 2**63.
    """

    requests: pl.DataFrame
    commands: pl.DataFrame | None = None
    zero_ns: int = 0


@dataclass(frozen=True)
class BlockTrace:
    """A block trace in memory, as `stripesim.load_trace` returns it. Its length counts requests.

    Attributes
    ----------
    requests
        One row per request, sorted by issue (ties in file order): ``issue_ns`` (0 for the first request),
        ``dispatch_ns`` (sent to the device) and ``complete_ns`` (both null if not recorded), ``device``,
        ``offset_bytes``, ``length_bytes``, ``is_write``.
    commands
        One row per device command: the same columns without ``issue_ns``. The block layer merges and splits
        requests, so commands differ from requests, and service times belong to commands. None if the format
        does not record commands. Commands may start before 0, because a trace may begin during traffic.
    format
        Name of the detected or given format.
    source
        Name of the file.
    origin_ns
        Time of the first request on the trace's own clock [ns] (for MSR since 1601-01-01 UTC).
    faults
        Faults of the file.
    counts
        Numbers of lines that are not requests, such as flushes, merges and summary lines.
    """

    requests: pl.DataFrame
    commands: pl.DataFrame | None
    format: str
    source: str
    origin_ns: int = 0
    faults: Faults = field(default_factory=Faults)
    counts: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.requests.height

    def __repr__(self) -> str:
        return f"<BlockTrace: {self.source}, {self.format}, {len(self):,} requests>"


def assemble(chunks: list[Chunk]) -> tuple[pl.DataFrame, pl.DataFrame | None, int]:
    """Join and sort the chunks of a file, with time 0 at the first request.

    Returns
    -------
    tuple
        `requests`, `commands` and `origin_ns` of `BlockTrace`.
    """
    requests = pl.concat([chunk.requests for chunk in chunks]).sort(
        "issue_ns", ORDER_COLUMN, maintain_order=True
    )
    first_ns = int(requests["issue_ns"][0])
    times = ("issue_ns", "dispatch_ns", "complete_ns")
    requests = requests.select(REQUEST_SCHEMA.keys()).with_columns(
        pl.col(times) - first_ns
    )
    commands = None
    if held := [chunk.commands for chunk in chunks if chunk.commands is not None]:
        commands = pl.concat(held).sort("dispatch_ns", maintain_order=True)
        commands = commands.with_columns(
            pl.col("dispatch_ns", "complete_ns") - first_ns
        )
    return requests, commands, chunks[0].zero_ns + first_ns

"""The one columnar form that every trace format is read into."""

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
"""Columns of `BlockTrace.commands`, one row per command given to a device, sorted by `dispatch_ns`."""

ORDER_COLUMN = "order"
"""Line of the file a chunk's row comes from: breaks ties of time, and is dropped once rows are sorted."""

INT64_MAX = 2**63 - 1

LENGTH_BYTES_MAX = 1 << 40
"""A longer request is damage: sums over millions of them stay far below 2**63."""

CHUNK_SCHEMA: dict[str, pl.DataType] = {ORDER_COLUMN: pl.Int64(), **REQUEST_SCHEMA}
"""Columns of `Chunk.requests`."""


def request_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Bring rows into `CHUNK_SCHEMA`; times that a format does not record become null."""
    return rows.select(
        (pl.col(name) if name in rows.columns else pl.lit(None)).cast(kind).alias(name)
        for name, kind in CHUNK_SCHEMA.items()
    )


@dataclass(frozen=True)
class Chunk:
    """A bounded part of a trace, as a format's reader yields it.

    Requests have `CHUNK_SCHEMA`, commands (where the format knows them) `COMMAND_SCHEMA`. Times count from
    `zero_ns` on the trace's clock, the same in all chunks of a file: a Python integer, for nanoseconds since
    1601 pass 2**63.
    """

    requests: pl.DataFrame
    commands: pl.DataFrame | None = None
    zero_ns: int = 0


@dataclass(frozen=True)
class BlockTrace:
    """A block trace in memory."""

    #: One row per request, sorted by issue (ties in file order): `issue_ns` (0 at the first request),
    #: `dispatch_ns` (given to the device; null where not recorded), `complete_ns` (null likewise), `device`,
    #: `offset_bytes`, `length_bytes`, `is_write`
    requests: pl.DataFrame
    #: One row per command the device saw: the same columns without `issue_ns`. The block layer merges and
    #: splits, so commands and requests differ; service times belong to commands. None where the format does
    #: not tell. A command may start below 0: the trace can begin amid traffic.
    commands: pl.DataFrame | None
    format: str  #: Name of the format it was read as
    source: str  #: File it was read from
    #: Reading of the trace's own clock at the first request [ns] (for MSR since 1601-01-01 UTC)
    origin_ns: int = 0
    faults: Faults = field(default_factory=Faults)  #: Faults of the file
    #: Counts of lines that are not requests: flushes, merges, summary lines and the like
    counts: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.requests.height


def assemble(chunks: list[Chunk]) -> tuple[pl.DataFrame, pl.DataFrame | None, int]:
    """Join a file's chunks, sort them, and put time 0 at the first request: the fields of `BlockTrace`."""
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

"""Read the Failure Trace Archive's tab files and SQLite files.

The text form is an `event_trace` table, with the locations in an optional `node.tab` next to it. Type 1 is
available, 0 unavailable. The archive stores the reason of an outage with the period of availability that it
ended. Here the reason is part of the outage. A span is cut if it starts or ends with the whole file.
Deviation: two published sets (overnet03) use the types in reverse, which a file does not reveal.

References
----------
Kondo, Javadi, Iosup, Epema: The Failure Trace Archive, CCGrid 2010; the archive's page FTA Format.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import polars as pl

from stripesim.models.problems import TraceError
from stripesim.traces.budget import FAILURE_BYTES, RowBudget
from stripesim.traces.columns import ORDER_COLUMN
from stripesim.traces.failures.columns import SPAN_SCHEMA, FailureTrace, events_of
from stripesim.traces.lines import sound_rows, split_lines
from stripesim.traces.problems import FaultLog, shown
from stripesim.traces.source import Head, TraceFormat, TraceSource

SQLITE_MAGIC = b"SQLite format 3\x00"
SECONDS_MAX = 1 << 40
"""Limit beyond the time on any clock. Larger numbers are treated as damage."""

_COLUMNS = (
    "event_id",
    "component_id",
    "node_id",
    "platform_id",
    "node_name",
    "event_type",
    "event_start_time",
    "event_stop_time",
    "event_end_reason",
)
_NODE_COLUMNS = ("node_id", "platform_id", "node_name", "node_ip", "node_location")
_NODE_WIDTH = 16
_ROWS = 200_000
_SUFFIXES = (".tab", ".tab.gz", ".tab.xz", ".tab.bz2", ".tab.zst")


def _sniff(head: Head) -> bool:
    rows = [line.split() for line in head.lines if not line.lstrip().startswith("#")]
    good = [
        len(row) == len(_COLUMNS)
        and row[5] in ("0", "1")
        and row[6].isdigit()
        and row[7].isdigit()
        for row in rows
    ]
    return 2 * sum(good) > len(rows)


def _read(source: TraceSource, log: FaultLog) -> FailureTrace:
    budget = RowBudget(log.source, FAILURE_BYTES, "events")
    parts = []
    for block in source.blocks(log):
        rows = split_lines(block, _COLUMNS, " ", log, comment="#")
        budget.add(rows.height)
        parts.append(_sound(rows, log))
    return _trace(parts, FORMAT.name, source, _locations(source, log))


def _read_sqlite(source: TraceSource, log: FaultLog) -> FailureTrace:
    """Read the same tables from an uncompressed SQLite file. Faults are located by row of `event_trace`."""
    log.unit = "row"
    try:
        with closing(
            sqlite3.connect(f"{source.path.absolute().as_uri()}?mode=ro", uri=True)
        ) as base:
            budget = RowBudget(log.source, FAILURE_BYTES, "events and nodes")
            parts = []
            for rows in _tables(base):
                budget.add(rows.height)
                parts.append(_sound(rows, log))
            locations = _sqlite_locations(base, budget)
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
        raise TraceError(
            f"{source.path}: got {shown(str(error))}, "
            "wanted an uncompressed SQLite file with the archive's table event_trace"
        ) from None
    return _trace(parts, SQLITE_FORMAT.name, source, locations)


FORMAT = TraceFormat("fta", _sniff, _read)
SQLITE_FORMAT = TraceFormat(
    "fta-sqlite", lambda head: head.data.startswith(SQLITE_MAGIC), _read_sqlite
)


def _tables(base: sqlite3.Connection) -> Iterator[pl.DataFrame]:
    cursor = base.execute(
        f"SELECT {', '.join(_COLUMNS)} FROM event_trace ORDER BY rowid"
    )
    first = 1
    while rows := cursor.fetchmany(_ROWS):
        cells = [
            tuple(None if cell is None else str(cell) for cell in row) for row in rows
        ]
        table = pl.DataFrame(
            cells, schema=dict.fromkeys(_COLUMNS, pl.String()), orient="row"
        )
        yield table.with_columns(
            pl.int_range(first, first + len(rows)).alias(ORDER_COLUMN),
            pl.concat_str(pl.col(_COLUMNS).fill_null("NULL"), separator=" ").alias(
                "text"
            ),
        )
        first += len(rows)


def _sqlite_locations(
    base: sqlite3.Connection, budget: RowBudget
) -> pl.DataFrame | None:
    cells = []
    try:
        cursor = base.execute("SELECT node_id, node_location FROM node")
        while rows := cursor.fetchmany(_ROWS):
            budget.add(len(rows))
            for node, location in rows:
                rack = None if location is None else str(location)
                cells.append((str(node), rack))
    except sqlite3.Error:
        # Only event_trace is required.
        return None
    return _unique(
        pl.DataFrame(
            cells, schema={"node_id": pl.String(), "rack": pl.String()}, orient="row"
        )
    )


def _locations(source: TraceSource, events_log: FaultLog) -> pl.DataFrame | None:
    """Read the locations of nodes from the table next to the file, or return None. Log its faults."""
    if not source.path.name.startswith("event_trace"):
        return None
    tables = [
        path
        for suffix in _SUFFIXES
        if (path := source.path.with_name("node" + suffix)).is_file()
    ]
    if not tables:
        return None
    log = FaultLog(str(tables[0]))
    names = (
        *_NODE_COLUMNS,
        *(f"more_{index}" for index in range(len(_NODE_COLUMNS), _NODE_WIDTH)),
    )
    budget = RowBudget(log.source, FAILURE_BYTES, "nodes")
    parts = []
    for block in TraceSource(tables[0]).blocks(log):
        rows = split_lines(block, names, " ", log, comment="#")
        budget.add(rows.height)
        parts.append(rows)
    events_log.extend(log)
    if not parts:
        return None
    return _unique(
        pl.concat(parts).select("node_id", pl.col("node_location").alias("rack"))
    )


def _unique(table: pl.DataFrame) -> pl.DataFrame:
    known = pl.when(pl.col("rack") != "NULL").then(pl.col("rack")).alias("rack")
    return table.with_columns(known).unique(
        "node_id", keep="first", maintain_order=True
    )


def _sound(rows: pl.DataFrame, log: FaultLog) -> pl.DataFrame:
    times = ("event_start_time", "event_stop_time")
    rows = rows.with_columns(
        # Some sets have fractions of a second.
        pl.col(times)
        .cast(pl.Float64, strict=False)
        .round()
        .cast(pl.Int64, strict=False),
        pl.col("event_type").cast(pl.Int64, strict=False),
    )
    good = (
        pl.col("event_type").is_in([0, 1])
        & pl.col("event_start_time").is_between(0, SECONDS_MAX)
        & pl.col("event_stop_time").is_between(pl.col("event_start_time"), SECONDS_MAX)
        & pl.col("node_id").is_not_null()
        & pl.col("component_id").is_not_null()
    )
    return sound_rows(rows, good, log, _explain)


def _explain(text: str) -> tuple[str, str]:
    cells = text.split()
    if len(cells) == len(_COLUMNS) and cells[5] not in ("0", "1"):
        return f"event_type {shown(cells[5])}", "0 (unavailable) or 1 (available)"
    if len(cells) == len(_COLUMNS):
        return (
            f"a time from {cells[6]} to {cells[7]}",
            "seconds of at least 0, the stop not before the start",
        )
    return shown(text), " ".join(_COLUMNS)


def _trace(
    parts: list[pl.DataFrame],
    name: str,
    source: TraceSource,
    locations: pl.DataFrame | None,
) -> FailureTrace:
    if not parts or not any(part.height for part in parts):
        empty = pl.DataFrame(schema=SPAN_SCHEMA)
        return FailureTrace(events_of(empty), empty, name, str(source.path))
    rows = pl.concat(parts)
    first_s = rows["event_start_time"].min()
    last_s = rows["event_stop_time"].max()
    if locations is None:
        rows = rows.with_columns(pl.lit(None, pl.String).alias("rack"))
    else:
        rows = rows.join(locations, on="node_id", how="left", maintain_order="left")
    rows = rows.with_columns(
        pl.concat_str("node_id", "component_id", separator=".").alias("component"),
        (pl.col("event_type") == 1).alias("up"),
        pl.when(pl.col("event_end_reason") != "NULL")
        .then("event_end_reason")
        .alias("ended_by"),
    ).sort("component", "event_start_time", maintain_order=True)
    before = pl.col("ended_by").shift(1).over("component")
    spans = rows.select(
        pl.col("event_start_time").alias("start_s"),
        pl.col("event_stop_time").alias("stop_s"),
        "component",
        pl.col("node_name").alias("node"),
        "rack",
        "up",
        pl.when(~pl.col("up")).then(pl.coalesce("ended_by", before)).alias("reason"),
        (pl.col("event_start_time") == first_s).alias("left_cut"),
        (pl.col("event_stop_time") == last_s).alias("right_cut"),
        pl.lit(None, pl.Int64).alias("entry_age_s"),
    ).sort("start_s", maintain_order=True)
    return FailureTrace(
        events_of(spans), spans, name, str(source.path), spans["component"].n_unique()
    )

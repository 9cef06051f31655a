"""Read the text that blkparse prints with its default columns.

A request is a Q event with data, a command a D event with data. Flushes, discards and passthrough commands
are counted but not listed, because they move no client data and passthrough events have no sector. A preflush
with data (FWS + n) is a write. Times have the precision of the text. If a stacked device and the one below
were both traced, a request appears on each.

References
----------
blktrace 1.3, blkparse(1), sections Trace actions, RWBS description and Default output.
"""

import re
from collections.abc import Iterator

import polars as pl

from stripesim.traces.columns import INT64_MAX, ORDER_COLUMN, Chunk
from stripesim.traces.lines import ClockWatch, numbered_lines, sound_rows
from stripesim.traces.matching import SECTOR_BYTES, Matcher
from stripesim.traces.problems import FaultLog, shown
from stripesim.traces.source import Block, Head, TraceFormat, TraceSource

SECTORS_MAX = 1 << 23
"""The kernel counts the bytes of a request in 32 bits. Longer requests are treated as damage."""

_WANTED = (
    "'maj,min cpu seq seconds.fraction pid action RWBS sector + sectors [process]'"
)
_EVENT = (
    r"^(?P<device>\d{1,4},\d{1,7})\s+\d{1,5}\s+\d{1,19}\s+(?P<seconds>\d{1,9})\.(?P<fraction>\d{1,9})\s+\d{1,10}\s+"
    r"(?P<action>[A-Za-z]{1,2})\s+(?P<rwbs>[A-Z]{1,8})(?:\s+(?P<rest>.*))?$"
)
# Start and length. A split has the start of the new request instead. Latencies are in brackets.
_PAYLOAD = (
    r"^(?:(?P<sector>\d{1,20})(?:\s+\+\s+(?P<sectors>\d{1,10})|\s+/\s+(?P<new_sector>\d{1,19}))?\s+)?"
    r"(?:\(.*\)\s+)?\[(?P<process>.*)\]$"
)
# Text that blkparse prints before and after the events.
_NOTE = (
    r"^(?:CPU\s*\d+\s+\(|Total \(|Events \(|Throughput \(|Skips:|Input file |Reads? |Writes? |PC Reads? |"
    r"IO unplugs:|Timer unplugs:|Allocation wait:|Dispatch wait:|Completion wait:|Discards? |=== )"
)
_MATCHED = ("Q", "D", "C", "R", "X")
_ACTIONS = (*_MATCHED, "M", "F", "G", "I", "S", "P", "U", "T", "UT", "B", "A", "W", "m")
_TALLIED = {"M": "back merges", "F": "front merges", "R": "requeues", "X": "splits"}
_SNIFF = re.compile(
    r"\s*\d+,\d+\s+\d+\s+\d+\s+\d+\.\d+\s+\d+\s+[A-Za-z]{1,2}\s+[A-Z]+(\s.*)?"
)


def _sniff(head: Head) -> bool:
    """Return True if most of the first lines, without blkparse's notes, are events."""
    events = [line for line in head.lines if not re.match(_NOTE, line.strip())]
    return 2 * sum(_SNIFF.fullmatch(line) is not None for line in events) > len(events)


def _read(source: TraceSource, log: FaultLog) -> Iterator[Chunk]:
    """Yield requests as they complete, block by block, and finally those that never completed."""
    matcher = Matcher(log)
    clock = ClockWatch(log, ordered=True)
    for block in source.blocks(log):
        events = _events(block, log)
        clock.check(events["time_ns"], events[ORDER_COLUMN])
        matcher.feed(events.iter_rows())
        yield Chunk(*matcher.take())
    yield Chunk(*matcher.finish())


FORMAT = TraceFormat("blkparse", _sniff, _read)


def _events(block: Block, log: FaultLog) -> pl.DataFrame:
    """Return the events that carry data, one per row, with the columns of `matching.Event`."""
    rows = _parse(block, log)
    carries = (
        (pl.col("action").is_in(["Q", "D", "C", "R"]) & (pl.col("sectors") > 0))
        | (pl.col("action") == "X")
    ) & pl.col("direction").is_not_null()
    held = rows.select(carries.fill_null(False).alias("held")).to_series()
    _tally(rows, held, log)
    time_ns = pl.col("seconds") * 1_000_000_000 + pl.col("fraction").str.pad_end(
        9, "0"
    ).cast(pl.Int64)
    return rows.filter(held).select(
        pl.col(ORDER_COLUMN),
        pl.col("action"),
        time_ns.alias("time_ns"),
        pl.col("device"),
        (pl.col("direction") == "W").alias("is_write"),
        pl.col("sector").cast(pl.Int64),
        pl.coalesce("new_sector", "sectors").alias("sectors"),
    )


def _parse(block: Block, log: FaultLog) -> pl.DataFrame:
    """Split lines into columns, reporting and dropping lines that are not events."""
    lines = numbered_lines(block, log)
    rows = lines.with_columns(
        pl.col("text").str.extract_groups(_EVENT).alias("event")
    ).unnest("event")
    payload = (
        pl.when(pl.col("action").is_in(_MATCHED))
        .then(pl.col("rest"))
        .str.extract_groups(_PAYLOAD)
    )
    rows = (
        rows.with_columns(
            payload.alias("payload"),
            pl.col("rwbs").str.extract(r"^F?([RW])").alias("direction"),
        )
        .unnest("payload")
        .with_columns(
            pl.col("seconds", "sectors", "new_sector").cast(pl.Int64, strict=False),
            pl.col("sector").cast(pl.UInt64, strict=False),
        )
    )
    note = pl.col("device").is_null() & pl.col("text").str.contains(_NOTE)
    within = pl.col("sector") <= INT64_MAX // SECTOR_BYTES - SECTORS_MAX
    is_complete = pl.col("process").is_not_null() & (
        pl.when(pl.col("sectors") > 0)
        .then(within & (pl.col("sectors") <= SECTORS_MAX))
        .otherwise(True)
    )
    split = is_complete & pl.col("new_sector").is_not_null() & within
    event = (
        pl.when(pl.col("action") == "X")
        .then(split)
        .when(pl.col("action").is_in(_MATCHED))
        .then(is_complete & pl.col("new_sector").is_null())
        .otherwise(pl.col("action").is_in(_ACTIONS))
    )
    notes = rows.select(note.alias("note")).to_series()
    log.tally("summary lines", int(notes.sum()))
    return sound_rows(rows.filter(~notes), event, log, _explain)


def _tally(rows: pl.DataFrame, held: pl.Series, log: FaultLog) -> None:
    for action, count in rows.group_by("action").len().sort("action").iter_rows():
        if action in _TALLIED:
            log.tally(_TALLIED[action], count)
        elif action not in _MATCHED:
            log.tally("events of other kinds", count)
    queued = rows.filter(~held & (rows["action"] == "Q"))
    for rwbs, count in queued.group_by("rwbs").len().sort("rwbs").iter_rows():
        if "D" in rwbs:
            log.tally("discards", count)
        else:
            log.tally("flushes" if "F" in rwbs else "requests without data", count)
    failed = rows.filter(held & (rows["action"] == "C"))["process"].str.contains(
        r"^-[1-9]\d*$"
    )
    log.tally("completions with an error", int(failed.sum()))


def _explain(text: str) -> tuple[str, str]:
    """Explain the fault of a faulty line, as (got, wanted)."""
    cells = text.split()
    if len(cells) > 3 and re.fullmatch(r"-\d+\.\d+", cells[3]):
        return f"time {cells[3]} s", "a time of at least 0"
    match = re.match(_EVENT, text)
    if match is None:
        return shown(text), _WANTED
    if match["action"] not in _ACTIONS:
        return f"action {shown(match['action'])}", f"one of {' '.join(_ACTIONS)}"
    payload = re.match(_PAYLOAD, match["rest"] or "")
    if payload is None or (payload["new_sector"] is None) == (match["action"] == "X"):
        if match["action"] == "X":
            wanted = "'sector / new sector [process]'"
        else:
            wanted = "'sector + sectors [process]'"
        return (
            f"{shown(match['rest'] or '')} after {match['action']} {match['rwbs']}",
            wanted,
        )
    return (
        f"sector {payload['sector']} + {payload['sectors']}",
        f"an end below 2**63 bytes and at most {SECTORS_MAX} sectors",
    )

"""Read logs of requests that fio writes (`write_iolog`), versions 2 and 3.

Version 3 stamps every action with the time since the start of the job. Version 2 has no time stamps: requests
follow each other without pause except for `wait` actions. Their sum is the issue time here, so all requests
of a log without waits are at time 0. Neither version records completions. A device is a file name in the log.

References
----------
fio HOWTO, section Trace file format.
"""

import re
from collections.abc import Iterator

import polars as pl

from stripesim.traces.columns import (
    INT64_MAX,
    LENGTH_BYTES_MAX,
    ORDER_COLUMN,
    Chunk,
    request_rows,
)
from stripesim.traces.lines import ClockWatch, numbered_lines, sound_rows
from stripesim.traces.problems import FaultLog, shown
from stripesim.traces.source import Block, Head, TraceFormat, TraceSource

MICROSECOND_NS = 1000
"""Times of version 3 and waits of version 2 are in microseconds."""

_FIRST_LINE = re.compile(r"\s*fio version (\d+) iolog\s*")
_FILE_ACTIONS = ("add", "open", "close")
_OTHER_ACTIONS = ("wait", "sync", "datasync", "trim")
_ACTION = r"(?P<file>\S+)\s+(?P<action>[a-z]+)(?:\s+(?P<offset>\d{1,19})\s+(?P<length>\d{1,19}))?$"
_PATTERN = {2: f"^{_ACTION}", 3: rf"^(?P<time>\d{{1,15}})\s+{_ACTION}"}
_WANTED = {
    2: "'file add|open|close' or 'file read|write|wait|sync|datasync|trim offset length'",
    3: "'time_us file add|open|close' or 'time_us file read|write|sync|datasync|trim offset length'",
}


def _sniff(head: Head) -> bool:
    return bool(head.lines) and _FIRST_LINE.fullmatch(head.lines[0]) is not None


def _read(source: TraceSource, log: FaultLog) -> Iterator[Chunk]:
    """Yield one chunk per block of text."""
    version = 0
    header_line = 0
    waited_ns = 0
    clock = ClockWatch(log, ordered=True)
    for block in source.blocks(log):
        if not version:
            version, header_line = _version(block, log)
            if not version and header_line:
                return
            if not version:
                continue
        rows = _parse(block, version, header_line, log)
        if version == 2:
            waits = (
                pl.when(pl.col("action") == "wait").then("offset").otherwise(0)
                * MICROSECOND_NS
            )
            rows = rows.with_columns((waits.cum_sum() + waited_ns).alias("issue_ns"))
            if rows.height:
                waited_ns = int(rows["issue_ns"][-1])
        else:
            rows = rows.with_columns(
                (pl.col("time") * MICROSECOND_NS).alias("issue_ns")
            )
        requests = rows.filter(pl.col("action").is_in(["read", "write"]))
        if requests.height:
            columns = {
                "device": "file",
                "offset_bytes": "offset",
                "length_bytes": "length",
            }
            writes = pl.col("action") == "write"
            chunk = request_rows(
                requests.select(ORDER_COLUMN, "issue_ns", **columns, is_write=writes)
            )
            clock.check(chunk["issue_ns"], chunk[ORDER_COLUMN])
            yield Chunk(chunk)


FORMAT = TraceFormat("fio-iolog", _sniff, _read)


def _version(block: Block, log: FaultLog) -> tuple[int, int]:
    """Return the version in the first line and the line's number; 0 and a fault if the version is unknown."""
    for place, line in enumerate(block.lines()):
        if not line.strip():
            continue
        match = _FIRST_LINE.fullmatch(line)
        if match and int(match[1]) in _PATTERN:
            return int(match[1]), block.first_line + place
        log.add(
            block.first_line + place,
            shown(line),
            "'fio version 2 iolog' or 'fio version 3 iolog'",
        )
        log.tally("blank lines", place)
        return 0, block.first_line + place
    log.tally("blank lines", len(block.lines()))
    return 0, 0


def _parse(block: Block, version: int, header_line: int, log: FaultLog) -> pl.DataFrame:
    lines = numbered_lines(block, log)
    numbers = ["offset", "length"]
    if version == 3:
        numbers.append("time")
    rows = (
        lines.filter(lines[ORDER_COLUMN] != header_line)
        .with_columns(
            pl.col("text").str.extract_groups(_PATTERN[version]).alias("cells")
        )
        .unnest("cells")
        .with_columns(pl.col(numbers).cast(pl.Int64, strict=False))
    )
    placed = pl.col("offset").is_not_null() & pl.col("length").is_not_null()
    transfer = (
        placed
        & pl.col("length").is_between(1, LENGTH_BYTES_MAX)
        & (pl.col("offset") <= INT64_MAX // 2)
    )
    good = (
        (pl.col("action").is_in(["read", "write"]) & transfer)
        | (pl.col("action").is_in(_OTHER_ACTIONS) & placed)
        | (pl.col("action").is_in(_FILE_ACTIONS) & pl.col("offset").is_null())
    )
    # A total of more than 31 years of times or waits indicates a damaged line.
    late = (pl.col("action") == "wait") & (pl.col("offset") > 10**15)
    if version == 3:
        late = late | (pl.col("time") > 10**15)
    rows = sound_rows(
        rows, good & ~late, log, lambda text: (shown(text), _WANTED[version])
    )
    for action, count in rows.group_by("action").len().sort("action").iter_rows():
        if action not in ("read", "write"):
            log.tally(f"{action} actions", count)
    return rows

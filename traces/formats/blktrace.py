"""Binary traces as blktrace writes them: one file per CPU, or one file of several merged by blkparse -d.

Files named `STEM.blktrace.N` belong together: whichever is given, all that lie beside it are read and merged
by time. What becomes of the events is in the blkparse format; times are whole nanoseconds. A place in a fault
is a byte of the file, or, where a completion precedes its dispatch, an event in order of time.

References
----------
Linux, include/uapi/linux/blktrace_api.h, struct blk_io_trace; blktrace(8).
"""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from stripesim.traces.columns import INT64_MAX, Chunk
from stripesim.traces.formats.blktrace_records import MAGIC, Records, merged
from stripesim.traces.matching import SECTOR_BYTES, Event, Matcher
from stripesim.traces.problems import FaultLog
from stripesim.traces.source import TraceFormat, TraceSource

# The lower half of `action` says what happened, the upper half to what kind of request.
_NAMES = {1: "Q", 6: "R", 7: "D", 8: "C", 13: "X"}
_TALLIED = {2: "back merges", 3: "front merges", 6: "requeues", 13: "splits"}
_ACTION_MASK = 0xFF
_WRITE, _FLUSH, _PASSTHROUGH, _NOTIFY, _DISCARD = (1 << (16 + bit) for bit in (1, 2, 9, 10, 13))
_SECTOR_MAX = INT64_MAX // SECTOR_BYTES // 2
_PER_CPU = re.compile(r"(?P<stem>.*\.blktrace)\.(?P<cpu>\d+)(?P<suffix>\.(gz|xz|bz2|zst))?")


def _read(source: TraceSource, log: FaultLog) -> Iterator[Chunk]:
    """Yield requests as they complete, and at the end those that never did."""
    log.unit = "byte"
    sources = [TraceSource(path, source.block_bytes) for path in per_cpu_files(source.path)]
    log.tally("files merged", len(sources) if len(sources) > 1 else 0)
    matcher = Matcher(log)
    seen = 0
    zero: int | None = None
    for records in merged(sources, log):
        if zero is None:
            zero = int(records["time"][0])
        matcher.feed(_events(records, seen, zero, log))
        seen += len(records)
        yield Chunk(*matcher.take(), zero_ns=zero)
    yield Chunk(*matcher.finish(), zero_ns=zero or 0)


FORMAT = TraceFormat("blktrace", lambda head: head.data[:4] in (MAGIC, MAGIC[::-1]), _read)


def per_cpu_files(path: Path) -> list[Path]:
    """Return the files of all CPUs that belong to one of them."""
    match = _PER_CPU.fullmatch(path.name)
    if match is None:
        return [path]
    found = {}
    for other in path.parent.iterdir():
        beside = _PER_CPU.fullmatch(other.name)
        same = beside and beside["stem"] == match["stem"] and beside["suffix"] == match["suffix"]
        # Blktrace leaves the files of idle CPUs empty.
        if beside and same and other.stat().st_size:
            found[int(beside["cpu"])] = other
    return [found[cpu] for cpu in sorted(found)] or [path]


def _events(records: Records, seen: int, zero: int, log: FaultLog) -> Iterator[Event]:
    action, size = records["action"], records["bytes"]
    what = action & _ACTION_MASK
    plain = (action & (_NOTIFY | _PASSTHROUGH)) == 0
    for code, name in _TALLIED.items():
        log.tally(name, int((plain & (what == code)).sum()))
    log.tally("events of other kinds", int((~plain | ~np.isin(what, list(_NAMES) + list(_TALLIED))).sum()))
    matched = plain & np.isin(what, list(_NAMES))
    discard = matched & ((action & _DISCARD) != 0)
    log.tally("discards", int((discard & (what == 1)).sum()))
    empty = matched & ~discard & (size == 0)
    log.tally("flushes", int((empty & (what == 1) & ((action & _FLUSH) != 0)).sum()))
    log.tally("requests without data", int((empty & (what == 1) & ((action & _FLUSH) == 0)).sum()))
    held = matched & ~discard & ~empty
    sound = (
        (size % SECTOR_BYTES == 0)
        & (records["sector"] <= _SECTOR_MAX)
        & (records["new_sector"] <= _SECTOR_MAX)
    )
    sound |= (what == 13) & (records["sector"] <= _SECTOR_MAX)
    # Times are put in 64 bits with a sign below.
    sound &= records["time"] - np.uint64(zero) <= INT64_MAX // 4
    for at in np.flatnonzero(held & ~sound):
        one = records[at]
        log.add(
            0,
            f"event {seen + int(at) + 1}: sector {one['sector']}, {one['bytes']} B, time {one['time']} ns",
            f"whole sectors of {SECTOR_BYTES} B, an end below 2**62 B, times within 73 years of the first",
        )
    held &= sound
    log.tally("completions with an error", int((held & (what == 8) & (records["error"] != 0)).sum()))
    kept = records[held]
    if not len(kept):
        return
    times = (kept["time"] - np.uint64(zero)).astype(np.int64)
    numbers, codes = np.unique(kept["device"], return_inverse=True)
    names = [f"{number >> 20},{number & 0xFFFFF}" for number in numbers]
    split = (kept["action"] & _ACTION_MASK) == 13
    yield from zip(
        (np.flatnonzero(held) + seen + 1).tolist(),
        [_NAMES[code] for code in (kept["action"] & _ACTION_MASK).tolist()],
        times.tolist(),
        [names[code] for code in codes.tolist()],
        ((kept["action"] & _WRITE) != 0).tolist(),
        kept["sector"].tolist(),
        np.where(split, kept["new_sector"], kept["bytes"] // SECTOR_BYTES).tolist(),
        strict=True,
    )

"""Read binary traces by blktrace: one file per CPU, or one file merged by blkparse -d.

Files named `STEM.blktrace.N` belong together: given any of them, all in its folder are read and merged by
time. Events are handled as in the blkparse format. Times are whole nanoseconds. Faults are located by byte of
the file, or by event number in order of time if a completion precedes its dispatch.

References
----------
Linux, include/uapi/linux/blktrace_api.h, struct blk_io_trace; blktrace(8).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stripesim.models.jit import compiled
from stripesim.traces.columns import INT64_MAX, Chunk
from stripesim.traces.matching import SECTOR_BYTES, Event, Matcher
from stripesim.traces.problems import FaultLog
from stripesim.traces.source import Break, TraceFormat, TraceSource

HEADER_BYTES = 48
MAGIC = b"\x07tae"
"""0x65617407, the magic 'eat' and version 7, in little-endian order. Big-endian machines reverse it."""

_FIELDS = (
    ("magic", "u4"),
    ("sequence", "u4"),
    ("time", "u8"),
    ("sector", "u8"),
    ("bytes", "u4"),
    ("action", "u4"),
    ("pid", "u4"),
    ("device", "u4"),
    ("cpu", "u4"),
    ("error", "u2"),
    ("pdu_len", "u2"),
)
_MERGED = np.dtype(
    [
        ("time", "u8"),
        ("sector", "u8"),
        ("new_sector", "u8"),
        ("bytes", "u4"),
        ("action", "u4"),
        ("device", "u4"),
        ("error", "u2"),
    ]
)
_EMPTY = np.empty(0, dtype=_MERGED)
Records = npt.NDArray[np.void]

# The lower half of `action` is the kind of event, the upper half the kind of request.
_QUEUE = 1
_COMPLETION = 8
_SPLIT = 13
_NAMES = {_QUEUE: "Q", 6: "R", 7: "D", _COMPLETION: "C", _SPLIT: "X"}
_TALLIED = {2: "back merges", 3: "front merges", 6: "requeues", 13: "splits"}
_ACTION_MASK = 0xFF
_WRITE, _FLUSH, _PASSTHROUGH, _NOTIFY, _DISCARD = (
    1 << (16 + bit) for bit in (1, 2, 9, 10, 13)
)
_SECTOR_MAX = INT64_MAX // SECTOR_BYTES // 2
_PER_CPU = re.compile(
    r"(?P<stem>.*\.blktrace)\.(?P<cpu>\d+)(?P<suffix>\.(gz|xz|bz2|zst))?"
)


def _read(source: TraceSource, log: FaultLog) -> Iterator[Chunk]:
    """Yield requests as they complete, and finally those that never completed."""
    log.unit = "byte"
    sources = [
        TraceSource(path, source.block_bytes) for path in per_cpu_files(source.path)
    ]
    log.tally("files merged", len(sources) if len(sources) > 1 else 0)
    matcher = Matcher(log)
    seen = 0
    zero: int | None = None
    for records in _merged(sources, log):
        if zero is None:
            zero = int(records["time"][0])
        matcher.feed(_events(records, seen, zero, log))
        seen += len(records)
        yield Chunk(*matcher.take(), zero_ns=zero)
    yield Chunk(*matcher.finish(), zero_ns=zero or 0)


FORMAT = TraceFormat(
    "blktrace", lambda head: head.data[:4] in (MAGIC, MAGIC[::-1]), _read
)


def per_cpu_files(path: Path) -> list[Path]:
    """Return the files of all CPUs that belong to the same trace."""
    match = _PER_CPU.fullmatch(path.name)
    if match is None:
        return [path]
    paths = {}
    for other in path.parent.iterdir():
        beside = _PER_CPU.fullmatch(other.name)
        same = (
            beside
            and beside["stem"] == match["stem"]
            and beside["suffix"] == match["suffix"]
        )
        # Files of idle CPUs are empty.
        if beside and same and other.stat().st_size:
            paths[int(beside["cpu"])] = other
    return [paths[cpu] for cpu in sorted(paths)] or [path]


def _events(records: Records, seen: int, zero: int, log: FaultLog) -> Iterator[Event]:
    """Yield the events that carry data, counting the others and reporting those out of range."""
    carries = _carries_data(records, log)
    sound = _in_range(records, zero)
    for at in np.flatnonzero(carries & ~sound):
        odd = records[at]
        log.add(
            0,
            f"event {seen + int(at) + 1}: sector {odd['sector']}, {odd['bytes']} B, time {odd['time']} ns",
            f"whole sectors of {SECTOR_BYTES} B, an end below 2**62 B, times within 73 years of the first",
        )
    kept = carries & sound
    if not kept.any():
        return
    event_numbers = np.flatnonzero(kept) + seen + 1
    records = records[kept]
    event = records["action"] & _ACTION_MASK
    failed = (event == _COMPLETION) & (records["error"] != 0)
    log.tally("completions with an error", int(failed.sum()))
    times = (records["time"] - np.uint64(zero)).astype(np.int64)
    numbers, codes = np.unique(records["device"], return_inverse=True)
    names = [f"{number >> 20},{number & 0xFFFFF}" for number in numbers]
    sectors = records["bytes"] // SECTOR_BYTES
    yield from zip(
        event_numbers.tolist(),
        [_NAMES[code] for code in event.tolist()],
        times.tolist(),
        [names[code] for code in codes.tolist()],
        ((records["action"] & _WRITE) != 0).tolist(),
        records["sector"].tolist(),
        np.where(event == _SPLIT, records["new_sector"], sectors).tolist(),
        strict=True,
    )


def _carries_data(records: Records, log: FaultLog) -> npt.NDArray[np.bool_]:
    """Mark events that move data, and count the others by kind."""
    action = records["action"]
    event = action & _ACTION_MASK
    plain = (action & (_NOTIFY | _PASSTHROUGH)) == 0
    for code, name in _TALLIED.items():
        log.tally(name, int((plain & (event == code)).sum()))
    known = np.isin(event, [*_NAMES, *_TALLIED])
    log.tally("events of other kinds", int((~plain | ~known).sum()))
    matched = plain & np.isin(event, list(_NAMES))
    queued = matched & (event == _QUEUE)
    discard = (action & _DISCARD) != 0
    empty = ~discard & (records["bytes"] == 0)
    flush = (action & _FLUSH) != 0
    log.tally("discards", int((queued & discard).sum()))
    log.tally("flushes", int((queued & empty & flush).sum()))
    log.tally("requests without data", int((queued & empty & ~flush).sum()))
    carries: npt.NDArray[np.bool_] = matched & ~discard & ~empty
    return carries


def _in_range(records: Records, zero: int) -> npt.NDArray[np.bool_]:
    """Mark events whose extent is in whole sectors and whose time fits into signed 64 bits."""
    split = (records["action"] & _ACTION_MASK) == _SPLIT
    whole_sectors = records["bytes"] % SECTOR_BYTES == 0
    new_sector = records["new_sector"] <= _SECTOR_MAX
    extent = (whole_sectors & new_sector) | split
    near = records["time"] - np.uint64(zero) <= INT64_MAX // 4
    sound: npt.NDArray[np.bool_] = extent & (records["sector"] <= _SECTOR_MAX) & near
    return sound


@dataclass
class _Stream:
    """One per-CPU file with the records that were read ahead."""

    records: Iterator[Records]
    ahead: Records

    def refill(self) -> None:
        while (
            not len(self.ahead) and (following := next(self.records, None)) is not None
        ):
            # Interrupts may nest, so the records of one CPU are not quite in order.
            self.ahead = following[np.argsort(following["time"], kind="stable")]


def _merged(sources: list[TraceSource], log: FaultLog) -> Iterator[Records]:
    """Yield the records of several files in order of time."""
    streams = [
        _Stream(_records(source, log, len(sources) > 1), _EMPTY) for source in sources
    ]
    while True:
        for stream in streams:
            stream.refill()
        held = [stream for stream in streams if len(stream.ahead)]
        if not held:
            return
        # After this time, some file may still have earlier records to come.
        safe = min(stream.ahead["time"][-1] for stream in held)
        parts = []
        for stream in held:
            cut = int(np.searchsorted(stream.ahead["time"], safe, side="right"))
            parts.append(stream.ahead[:cut])
            stream.ahead = stream.ahead[cut:]
        block = np.concatenate(parts)
        yield block[np.argsort(block["time"], kind="stable")]


def _records(source: TraceSource, log: FaultLog, several: bool) -> Iterator[Records]:
    little = source.head().data[:4] != MAGIC[::-1]
    layout = np.dtype(
        [(name, ("<" if little else ">") + kind) for name, kind in _FIELDS]
    )
    magic = np.frombuffer(MAGIC if little else MAGIC[::-1], dtype=np.uint8)
    where = f" of {source.path.name}" if several else ""
    done = 0
    rest = b""
    for piece in source.pieces(max(HEADER_BYTES, min(source.block_bytes, 1 << 20))):
        if isinstance(piece, Break):
            log.add(done + len(rest), piece.got + where, piece.wanted)
            break
        rest += piece
        data = np.frombuffer(rest, dtype=np.uint8)
        starts, gaps, end = _walk(data, magic, little)
        for at, length in gaps:
            log.add(
                done + int(at),
                f"{length} bytes{where} that are not a record",
                "the magic 0x65617407",
            )
        if len(starts):
            yield _gathered(data, starts, layout)
        done += int(end)
        rest = rest[int(end) :]
    if rest:
        log.add(
            done, f"a record{where} cut after {len(rest)} bytes", "a complete record"
        )


def _gathered(
    data: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    layout: np.dtype[np.void],
) -> Records:
    headers = data[starts[:, None] + np.arange(HEADER_BYTES)].view(layout)[:, 0]
    records = np.empty(len(starts), dtype=_MERGED)
    for name in ("time", "sector", "bytes", "action", "device", "error"):
        records[name] = headers[name]
    records["new_sector"] = 0
    # Only a split has a number after its header, in network byte order.
    longer = np.flatnonzero(headers["pdu_len"] >= 8)
    tails = data[starts[longer, None] + HEADER_BYTES + np.arange(8)].view(">u8")
    records["new_sector"][longer] = tails[:, 0] if len(longer) else 0
    return records


@compiled
def _walk(
    data: npt.NDArray[np.uint8], magic: npt.NDArray[np.uint8], little: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
    """Find the records: their starts, gaps as (start, length), and the end of the last complete record."""
    total = len(data)
    starts = np.empty(total // HEADER_BYTES + 1, np.int64)
    gaps = np.empty((total // HEADER_BYTES + 2, 2), np.int64)
    count = 0
    lost = 0
    at = 0
    gap = -1
    while at + HEADER_BYTES <= total:
        if (
            data[at] == magic[0]
            and data[at + 1] == magic[1]
            and data[at + 2] == magic[2]
            and data[at + 3] == magic[3]
        ):
            low = data[at + 46]
            high = data[at + 47]
            if little:
                tail = np.int64(low) + 256 * np.int64(high)
            else:
                tail = 256 * np.int64(low) + np.int64(high)
            if at + HEADER_BYTES + tail > total:
                break
            if gap >= 0:
                gaps[lost, 0] = gap
                gaps[lost, 1] = at - gap
                lost += 1
                gap = -1
            starts[count] = at
            count += 1
            at += HEADER_BYTES + int(tail)
        else:
            if gap < 0:
                gap = at
            at += 1
    if gap >= 0:
        gaps[lost, 0] = gap
        gaps[lost, 1] = at - gap
        lost += 1
    return starts[:count], gaps[:lost], at

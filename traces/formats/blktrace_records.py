"""The records of binary blktrace files: where they start, and one device's per-CPU files in order of time."""

from collections.abc import Iterator
from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

from stripesim.traces.problems import FaultLog
from stripesim.traces.source import Break, TraceSource

HEADER_BYTES = 48
MAGIC = b"\x07tae"
"""0x65617407, the magic 'eat' and version 7, as a little-endian machine writes it; reversed on others."""

_FIELDS = (
    *(("magic", "u4"), ("sequence", "u4"), ("time", "u8"), ("sector", "u8"), ("bytes", "u4")),
    *(("action", "u4"), ("pid", "u4"), ("device", "u4"), ("cpu", "u4"), ("error", "u2"), ("pdu_len", "u2")),
)
_MERGED = np.dtype(
    [
        *(("time", "u8"), ("sector", "u8"), ("new_sector", "u8"), ("bytes", "u4"), ("action", "u4")),
        *(("device", "u4"), ("error", "u2")),
    ]
)
_EMPTY = np.empty(0, dtype=_MERGED)
Records = npt.NDArray[np.void]


@dataclass
class _Stream:
    """One per-CPU file and what of it has been read ahead."""

    records: Iterator[Records]
    ahead: Records
    ended: bool = False

    def refill(self) -> None:
        while not len(self.ahead) and not self.ended:
            following = next(self.records, None)
            if following is None:
                self.ended = True
            else:
                # Interrupts can nest: one CPU's records are nearly, not quite, in order.
                self.ahead = following[np.argsort(following["time"], kind="stable")]


def merged(sources: list[TraceSource], log: FaultLog) -> Iterator[Records]:
    """Yield the records of several files in order of time."""
    streams = [_Stream(_records(source, log, len(sources) > 1), _EMPTY) for source in sources]
    while True:
        for stream in streams:
            stream.refill()
        held = [stream for stream in streams if len(stream.ahead)]
        if not held:
            return
        # Past this time some file may still have earlier records to come.
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
    layout = np.dtype([(name, ("<" if little else ">") + kind) for name, kind in _FIELDS])
    magic = np.frombuffer(MAGIC if little else MAGIC[::-1], dtype=np.uint8)
    where = f" of {source.path.name}" if several else ""
    done, rest = 0, b""
    for piece in source.pieces(max(HEADER_BYTES, min(source.block_bytes, 1 << 20))):
        if isinstance(piece, Break):
            log.add(done + len(rest), piece.got + where, piece.wanted)
            break
        rest += piece
        data = np.frombuffer(rest, dtype=np.uint8)
        starts, gaps, end = _walk(data, magic, little)
        for at, length in gaps:
            log.add(done + int(at), f"{length} bytes{where} that are no record", "the magic 0x65617407")
        if len(starts):
            yield _gathered(data, starts, layout)
        done += int(end)
        rest = rest[int(end) :]
    if rest:
        log.add(done, f"a record{where} cut after {len(rest)} bytes", "a whole record")


def _gathered(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], layout: np.dtype[np.void]
) -> Records:
    headers = data[starts[:, None] + np.arange(HEADER_BYTES)].view(layout)[:, 0]
    found = np.empty(len(starts), dtype=_MERGED)
    for name in ("time", "sector", "bytes", "action", "device", "error"):
        found[name] = headers[name]
    found["new_sector"] = 0
    # Only a split carries a number after its header, and that in network order.
    longer = np.flatnonzero(headers["pdu_len"] >= 8)
    tails = data[starts[longer, None] + HEADER_BYTES + np.arange(8)].view(">u8")
    found["new_sector"][longer] = tails[:, 0] if len(longer) else 0
    return found


@numba.njit(cache=True)
def _walk(
    data: npt.NDArray[np.uint8], magic: npt.NDArray[np.uint8], little: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
    """Find the records: their starts, gaps as (start, length), and where the last whole one ends."""
    total = len(data)
    starts = np.empty(total // HEADER_BYTES + 1, np.int64)
    gaps = np.empty((total // HEADER_BYTES + 2, 2), np.int64)
    count, lost, at, gap = 0, 0, 0, -1
    while at + HEADER_BYTES <= total:
        if (
            data[at] == magic[0]
            and data[at + 1] == magic[1]
            and data[at + 2] == magic[2]
            and data[at + 3] == magic[3]
        ):
            low, high = data[at + 46], data[at + 47]
            tail = np.int64(low) + 256 * np.int64(high) if little else 256 * np.int64(low) + np.int64(high)
            if at + HEADER_BYTES + tail > total:
                break
            if gap >= 0:
                gaps[lost, 0], gaps[lost, 1] = gap, at - gap
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
        gaps[lost, 0], gaps[lost, 1] = gap, at - gap
        lost += 1
    return starts[:count], gaps[:lost], at

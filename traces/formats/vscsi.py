"""Binary traces of VMware's vscsiStats, as CloudPhysics published them: versions 1 and 2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from stripesim.traces.clock import ClockWatch
from stripesim.traces.columns import INT64_MAX, ORDER_COLUMN, REQUEST_SCHEMA, Chunk
from stripesim.traces.formats.scsi import READS, WRITES
from stripesim.traces.problems import FaultLog
from stripesim.traces.records import record_blocks
from stripesim.traces.source import TraceSource

MICROSECOND_NS = 1000
BLOCK_BYTES = 512

_V1 = np.dtype(
    [
        ("sn", "<u4"),
        ("len", "<u4"),
        ("nsg", "<u4"),
        ("cmd", "<u2"),
        ("ver", "<u2"),
        ("lbn", "<u8"),
        ("ts", "<u8"),
    ]
)
_V2 = np.dtype(
    [
        *(("cmd", "<u2"), ("ver", "<u2"), ("sn", "<u4"), ("len", "<u4"), ("nsg", "<u4")),
        *(("lbn", "<u8"), ("ts", "<u8"), ("rt", "<u8")),
    ]
)
_LAYOUTS = {1: _V1, 2: _V2}
_KNOWN = np.array(READS + WRITES)
_REACH_US = INT64_MAX // MICROSECOND_NS // 4
_LBN_MAX = INT64_MAX // BLOCK_BYTES // 2


@dataclass(frozen=True)
class VscsiFormat:
    """Reader of vscsi traces.

    Notes
    -----
    A record has a SCSI operation code, a length in bytes, a block of 512 bytes and a time in microseconds.
    Version 2 adds a field `rt`, read as the response time in microseconds; its meaning is inferred from its
    name and place, no version 2 file was at hand. Other commands than reads and writes are counted.

    References
    ----------
    Waldspurger, Park, Garthwaite, Ahmad: Efficient MRC construction with SHARDS, FAST 2015 (the traces); the
    record layout is the one in the readers of libCacheSim, `traceReader/include/vscsi.h`.
    """

    name: str = "vscsi"

    def sniff(self, lines: tuple[str, ...], data: bytes) -> bool:
        """Whether the first records state one version."""
        return _version(data) is not None

    def chunks(self, source: TraceSource, log: FaultLog) -> Iterator[Chunk]:
        """Yield one chunk per block of records."""
        log.unit = "record"
        version = _version(source.head(), least=1)
        if version is None:
            log.add(1, "neither version's mark", "records of vscsi version 1 or 2")
            return
        clock = ClockWatch(log, ordered=True)
        zero: int | None = None
        for first, records in record_blocks(source, _LAYOUTS[version], log):
            place = np.arange(first, first + len(records))
            stated = records["ver"] >> 8 == version
            for at in np.flatnonzero(~stated):
                log.add(int(place[at]), f"version {records['ver'][at] >> 8}", f"version {version} as before")
            code = records["cmd"] & 0xFF
            known = np.isin(code, _KNOWN)
            log.tally("commands of other kinds", int((stated & ~known).sum()))
            keep = stated & known
            sound = _sound(records)
            if zero is None and (keep & sound).any():
                zero = int(records["ts"][keep & sound][0])
            if zero is not None:
                # Unsigned differences wrap, so the nearer of both directions is taken.
                ahead, behind = records["ts"] - np.uint64(zero), np.uint64(zero) - records["ts"]
                sound &= np.minimum(ahead, behind) <= _REACH_US
            for at in np.flatnonzero(keep & ~sound):
                one = records[at]
                log.add(
                    int(place[at]),
                    f"length {one['len']} B, block {one['lbn']}, time {one['ts']} us",
                    "a length of at least 1, an extent below 2**62 bytes, times within 73 years of the first",
                )
            keep &= sound
            if not keep.any():
                continue
            assert zero is not None
            requests = _requests(records[keep], place[keep], zero, version)
            clock.check(requests["issue_ns"], requests[ORDER_COLUMN])
            yield Chunk(requests, zero_ns=zero * MICROSECOND_NS)


def _version(data: bytes, least: int = 2) -> int | None:
    """Return the version that the first records (two, or `least`) agree on."""
    for version in (2, 1):
        layout = _LAYOUTS[version]
        count = min(2, len(data) // layout.itemsize)
        if count < least and not (count == 1 and len(data) == layout.itemsize):
            continue
        records = np.frombuffer(data, dtype=layout, count=count)
        if (records["ver"] >> 8 == version).all() and (records["len"] < 1 << 30).all():
            return version
    return None


def _sound(records: npt.NDArray[np.void]) -> npt.NDArray[np.bool_]:
    sound: npt.NDArray[np.bool_] = (
        (records["len"] > 0) & (records["lbn"] <= _LBN_MAX) & (records["ts"] <= INT64_MAX // MICROSECOND_NS)
    )
    if "rt" in (records.dtype.names or ()):
        sound &= records["rt"] <= _REACH_US
    return sound


def _requests(
    records: npt.NDArray[np.void], place: npt.NDArray[np.int64], zero: int, version: int
) -> pl.DataFrame:
    issue_ns = (records["ts"].astype(np.int64) - zero) * MICROSECOND_NS
    complete = pl.Series([None] * len(records), dtype=pl.Int64)
    if version == 2:
        complete = pl.Series(issue_ns + records["rt"].astype(np.int64) * MICROSECOND_NS)
    columns = {
        ORDER_COLUMN: place,
        "issue_ns": issue_ns,
        "dispatch_ns": pl.Series([None] * len(records), dtype=pl.Int64),
        "complete_ns": complete,
        "device": pl.repeat("0", len(records), eager=True),
        "offset_bytes": records["lbn"].astype(np.int64) * BLOCK_BYTES,
        "length_bytes": records["len"].astype(np.int64),
        "is_write": np.isin(records["cmd"] & 0xFF, WRITES),
    }
    return pl.DataFrame(columns, schema={ORDER_COLUMN: pl.Int64(), **REQUEST_SCHEMA})

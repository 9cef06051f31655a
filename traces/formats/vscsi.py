"""Read binary traces of VMware's vscsiStats, as published by CloudPhysics: versions 1 and 2.

A record has a SCSI operation code, a length in bytes, the number of a 512-byte block and a time in
microseconds. Version 2 adds a field `rt`, taken as the response time in microseconds. This meaning is
inferred from its name and position, because no version 2 file was available. Commands other than reads and
writes are counted.

References
----------
Waldspurger, Park, Garthwaite, Ahmad: Efficient MRC construction with SHARDS, FAST 2015 (the traces); the
record layout follows the readers of libCacheSim, `traceReader/include/vscsi.h`.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from stripesim.traces.columns import INT64_MAX, ORDER_COLUMN, Chunk, request_rows
from stripesim.traces.formats.tables import SCSI_READS, SCSI_WRITES
from stripesim.traces.lines import ClockWatch
from stripesim.traces.problems import FaultLog
from stripesim.traces.source import Break, TraceFormat, TraceSource

MICROSECOND_NS = 1000
BLOCK_BYTES = 512

_LAYOUTS = {
    version: np.dtype([tuple(field.split(":")) for field in fields.split()])
    for version, fields in (
        (1, "sn:<u4 len:<u4 nsg:<u4 cmd:<u2 ver:<u2 lbn:<u8 ts:<u8"),
        (2, "cmd:<u2 ver:<u2 sn:<u4 len:<u4 nsg:<u4 lbn:<u8 ts:<u8 rt:<u8"),
    )
}
_KNOWN = np.array(SCSI_READS + SCSI_WRITES)
_REACH_US = INT64_MAX // MICROSECOND_NS // 4
_LBN_MAX = INT64_MAX // BLOCK_BYTES // 2


def _read(source: TraceSource, log: FaultLog) -> Iterator[Chunk]:
    """Yield one chunk per block of records."""
    log.unit = "record"
    version = _version(source.head().data, least=1)
    if version is None:
        log.add(1, "neither version's mark", "records of vscsi version 1 or 2")
        return
    clock = ClockWatch(log, ordered=True)
    zero: int | None = None
    for first, records in _record_blocks(source, _LAYOUTS[version], log):
        number = np.arange(first, first + len(records))
        stated = records["ver"] >> 8 == version
        for at in np.flatnonzero(~stated):
            log.add(
                int(number[at]),
                f"version {records['ver'][at] >> 8}",
                f"version {version} as before",
            )
        code = records["cmd"] & 0xFF
        known = np.isin(code, _KNOWN)
        log.tally("commands of other kinds", int((stated & ~known).sum()))
        keep = stated & known
        sound = _sound(records)
        if zero is None and (keep & sound).any():
            zero = int(records["ts"][keep & sound][0])
        if zero is not None:
            # Unsigned differences wrap, so take the smaller of both directions.
            ahead = records["ts"] - np.uint64(zero)
            behind = np.uint64(zero) - records["ts"]
            sound &= np.minimum(ahead, behind) <= _REACH_US
        for at in np.flatnonzero(keep & ~sound):
            record = records[at]
            log.add(
                int(number[at]),
                f"length {record['len']} B, block {record['lbn']}, time {record['ts']} us",
                "a length of at least 1, an extent below 2**62 bytes, times within 73 years of the first",
            )
        keep &= sound
        if not keep.any():
            continue
        assert zero is not None
        requests = _requests(records[keep], number[keep], zero, version)
        clock.check(requests["issue_ns"], requests[ORDER_COLUMN])
        yield Chunk(requests, zero_ns=zero * MICROSECOND_NS)


FORMAT = TraceFormat("vscsi", lambda head: _version(head.data) is not None, _read)


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
        (records["len"] > 0)
        & (records["lbn"] <= _LBN_MAX)
        & (records["ts"] <= INT64_MAX // MICROSECOND_NS)
    )
    if "rt" in (records.dtype.names or ()):
        sound &= records["rt"] <= _REACH_US
    return sound


def _requests(
    records: npt.NDArray[np.void], place: npt.NDArray[np.int64], zero: int, version: int
) -> pl.DataFrame:
    issue_ns = (records["ts"].astype(np.int64) - zero) * MICROSECOND_NS
    columns = {
        ORDER_COLUMN: place,
        "issue_ns": issue_ns,
        "device": ["0"] * len(records),
        "offset_bytes": records["lbn"].astype(np.int64) * BLOCK_BYTES,
        "length_bytes": records["len"].astype(np.int64),
        "is_write": np.isin(records["cmd"] & 0xFF, SCSI_WRITES),
    }
    if version == 2:
        columns["complete_ns"] = (
            issue_ns + records["rt"].astype(np.int64) * MICROSECOND_NS
        )
    return request_rows(pl.DataFrame(columns))


def _record_blocks(
    source: TraceSource, dtype: np.dtype[np.void], log: FaultLog
) -> Iterator[tuple[int, npt.NDArray[np.void]]]:
    """Yield the records of a file in blocks, each with the number of its first record, from 1."""
    first = 1
    rest = b""
    for piece in source.pieces(max(dtype.itemsize, min(source.block_bytes, 1 << 20))):
        if isinstance(piece, Break):
            log.add(first + len(rest) // dtype.itemsize, piece.got, piece.wanted)
            break
        rest += piece
        complete = len(rest) // dtype.itemsize
        if complete:
            yield first, np.frombuffer(rest, dtype=dtype, count=complete)
        first += complete
        rest = rest[complete * dtype.itemsize :]
    if rest:
        log.add(first, f"{len(rest)} bytes", f"a record of {dtype.itemsize} bytes")

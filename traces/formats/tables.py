"""Define the delimited text formats as tables of columns."""

import re
from typing import Final

import polars as pl

from stripesim.traces.formats.delimited import DelimitedFormat, NumberColumn, one_of

TICK_NS: Final = 100
"""Unit of MSR's FILETIME, which counts 100 ns ticks since 1601-01-01 UTC, and of its response times [ns]."""

SCSI_READS: Final = (0x08, 0x28, 0x88, 0xA8)
SCSI_WRITES: Final = (0x0A, 0x2A, 0x8A, 0xAA)
"""Operation codes of READ and WRITE (6), (10), (16), (12)."""


def _spelt(codes: tuple[int, ...]) -> tuple[str, ...]:
    """Return codes in the hexadecimal spellings found in traces."""
    return tuple(
        {
            form.format(code): None
            for form in ("{:02x}", "{:x}", "0x{:02x}", "0x{:x}")
            for code in codes
        }
    )


def _other_command(op: pl.Expr) -> pl.Expr:
    word = op.str.to_lowercase()
    return word.str.contains("^(0x)?[0-9a-f]{1,2}$") & ~word.is_in(
        _spelt(SCSI_READS + SCSI_WRITES)
    )


ALIBABA = DelimitedFormat(
    name="alibaba",
    columns=("device_id", "opcode", "offset", "length", "timestamp"),
    row=re.compile(r"\d+,[RW],\d+,\d+,\d{10,}", re.IGNORECASE),
    time=NumberColumn("timestamp", 1000),
    offset=NumberColumn("offset", 1),
    length=NumberColumn("length", 1, least=1),
    op="opcode",
    is_write=one_of(("r",), ("w",)),
    ops="R or W",
    device=("device_id",),
    ordered=False,
    header=re.compile("device_id,", re.IGNORECASE),
)
"""Alibaba block traces: bytes, microseconds since 1970, no completions, no guaranteed order across devices.

References
----------
Li, Wang, Lee, Shi: An in-depth analysis of cloud block storage workloads in large-scale production, IISWC
2020; repository alibaba/block-traces, README (columns).
"""

BLKREPLAY = DelimitedFormat(
    name="blkreplay",
    columns=("start", "sector", "length", "op", "replay_delay", "replay_duration"),
    separator=";",
    row=re.compile(
        r"\d+\.\d+\s*;\s*\d+\s*;\s*\d+\s*;\s*(RA?|W)\s*;\s*[\d.]+\s*;\s*[\d.]+",
        re.IGNORECASE,
    ),
    time=NumberColumn("start", 1, digits=9),
    offset=NumberColumn("sector", 512),
    length=NumberColumn("length", 512, least=1),
    op="op",
    is_write=one_of(("r", "ra"), ("w",)),
    ops="R, RA (read ahead) or W",
    preamble_end=re.compile(
        r"\s*start\s*;\s*sector\s*;\s*length\s*;\s*op\b", re.IGNORECASE
    ),
)
"""blkreplay's `.load`: seconds and sectors, optionally after a text that ends with a heading.

The last two columns, filled in by replaying, describe the replayer's device and are not read.

References
----------
Schoebel-Theuer: blkreplay, file format in its documentation and in the heading of its example loads.
"""

CLOUDPHYSICS = DelimitedFormat(
    name="cloudphysics",
    columns=("version", "time", "op", "size", "lbn"),
    row=re.compile(r"[12],\d+,(0x)?([028a]8|[028a]a|[08a]),\d+,\d+", re.IGNORECASE),
    time=NumberColumn("time", 1000),
    offset=NumberColumn("lbn", 512),
    length=NumberColumn("size", 1, least=1),
    op="op",
    is_write=one_of(_spelt(SCSI_READS), _spelt(SCSI_WRITES)),
    ops="a SCSI operation code in hexadecimal",
    ordered=False,
    header=re.compile("version,", re.IGNORECASE),
    skipped=_other_command,
)
"""CloudPhysics as CSV: microseconds, hexadecimal SCSI codes. Other commands are counted but not listed.

References
----------
Waldspurger, Park, Garthwaite, Ahmad: Efficient MRC construction with SHARDS, FAST 2015 (the traces).
"""

DISKSIM = DelimitedFormat(
    name="disksim",
    columns=("time", "device", "block", "size", "flags"),
    separator=" ",
    row=re.compile(r"\d*\.\d+\s+\d+\s+\d+\s+\d+\s+\d+"),
    time=NumberColumn("time", 1, digits=6),
    offset=NumberColumn("block", 512),
    length=NumberColumn("size", 512, least=1),
    op="flags",
    is_write=lambda flags: (flags.cast(pl.UInt32, strict=False) & 1) == 0,
    ops="an integer whose bit 0 is set for reads",
    device=("device",),
)
"""DiskSim's ASCII format: milliseconds and sectors. Whole milliseconds resemble SSDsim: use --format.

References
----------
Bucy, Schindler, Schlosser, Ganger: The DiskSim simulation environment version 4.0 reference manual,
CMU-PDL-08-101, section on input traces (default ASCII format).
"""

MSR = DelimitedFormat(
    name="msr",
    columns=("timestamp", "host", "disk", "type", "offset", "size", "response"),
    row=re.compile(r"\d+,[^,]*,[^,]*,(Read|Write),\d+,\d+,\d+", re.IGNORECASE),
    time=NumberColumn("timestamp", TICK_NS),
    offset=NumberColumn("offset", 1),
    length=NumberColumn("size", 1, least=1),
    op="type",
    is_write=one_of(("read",), ("write",)),
    ops="Read or Write",
    device=("host", "disk"),
    response=NumberColumn("response", TICK_NS),
    ordered=False,
    header=re.compile("timestamp,", re.IGNORECASE),
)
"""MSR-Cambridge CSV, with rows logged at completion, so that issue times may decrease.

The response time is that of the host: from the arrival of the request at the disk driver to its completion,
including queueing. `complete_ns` is therefore known, but not `dispatch_ns` or a service time.

References
----------
Narayanan, Donnelly, Rowstron: Write Off-Loading, FAST 2008 (the trace); SNIA IOTTA repository, MSR Cambridge
traces (columns).
"""

SPC = DelimitedFormat(
    name="spc",
    columns=("asu", "lba", "size", "opcode", "timestamp"),
    row=re.compile(r"\d+,\s*\d+,\s*\d+,\s*[rw],\s*\d+(\.\d*)?", re.IGNORECASE),
    time=NumberColumn("timestamp", 1, digits=9),
    offset=NumberColumn("lba", 512),
    length=NumberColumn("size", 1, least=1),
    op="opcode",
    is_write=one_of(("r",), ("w",)),
    ops="r or w",
    device=("asu",),
)
"""SPC, the format of the UMass traces: an ASU is a logical device, seconds, no completions.

The published traces do not use the optional fields of the specification.

References
----------
Storage Performance Council: SPC I/O Traces, file format specification, revision 1.0.1, section 3; UMass Trace
Repository, Storage.
"""

SSDSIM = DelimitedFormat(
    name="ssdsim",
    columns=("time", "device", "lba", "size", "op"),
    separator=" ",
    row=re.compile(r"\d+\s+\d+\s+\d+\s+\d+\s+[01]"),
    time=NumberColumn("time", 1),
    offset=NumberColumn("lba", 512),
    length=NumberColumn("size", 512, least=1),
    op="op",
    is_write=one_of(("1",), ("0",)),
    ops="0 (write) or 1 (read)",
    device=("device",),
)
"""ASCII traces of SSDsim and MQSim: nanoseconds and sectors.

References
----------
Hu, Jiang, Feng, Tian, Luo, Zhang: Performance impact and interplay of SSD parallelism, ICS 2011 (SSDsim);
Tavakkol, Gomez-Luna, Sadrosadati, Ghose, Mutlu: MQSim, FAST 2018, README, section Trace-based workloads.
"""

SYSTOR = DelimitedFormat(
    name="systor",
    columns=("Timestamp", "Response", "IOType", "LUN", "Offset", "Size"),
    row=re.compile(r"\d+\.\d+,(\d+(\.\d*)?)?,[RW],[^,]*,\d+,\d+", re.IGNORECASE),
    time=NumberColumn("Timestamp", 1, digits=9),
    offset=NumberColumn("Offset", 1),
    length=NumberColumn("Size", 1, least=1),
    op="IOType",
    is_write=one_of(("r",), ("w",)),
    ops="R or W",
    device=("LUN",),
    response=NumberColumn("Response", 1, digits=9, optional=True),
    ordered=False,
    header=re.compile("timestamp,response,", re.IGNORECASE),
)
"""SYSTOR'17 CSV: seconds since 1970 at arrival, rows written at completion, some without a response.

References
----------
Lee, Kumano, Matsuki, Endo, Fukumoto, Sugawara: Understanding storage traffic characteristics on enterprise
virtual desktop infrastructure, SYSTOR 2017; SNIA IOTTA repository, Systor '17 traces (columns).
"""

TENCENT = DelimitedFormat(
    name="tencent",
    columns=("Timestamp", "Offset", "Size", "IOType", "VolumeID"),
    row=re.compile(r"\d{9,10},\d+,\d+,[01],\d+"),
    time=NumberColumn("Timestamp", 1_000_000_000),
    offset=NumberColumn("Offset", 512),
    length=NumberColumn("Size", 512, least=1),
    op="IOType",
    is_write=one_of(("0",), ("1",)),
    ops="0 (read) or 1 (write)",
    device=("VolumeID",),
    ordered=False,
    header=re.compile("timestamp,offset,", re.IGNORECASE),
)
"""Tencent CBS CSV: whole seconds since 1970, and sectors.

Within a second, only the order of the file indicates the order of requests. Rows of adjacent seconds are
interleaved.

References
----------
Zhang, Huang, Wang, Zhou: OSCA, an online-model based cache allocation scheme in cloud block storage systems,
USENIX ATC 2020; SNIA IOTTA repository, Tencent Block Storage (columns).
"""

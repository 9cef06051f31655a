"""DiskSim's ASCII traces: arrival time, device, block, size, flags.

Times are milliseconds, block and size count 512 bytes; bit 0 of the flags is set for reads.

References
----------
Bucy, Schindler, Schlosser, Ganger: The DiskSim simulation environment version 4.0 reference manual, CMU-
PDL-08-101, section on input traces (default ASCII format).
"""

from __future__ import annotations

import re

import polars as pl

from stripesim.traces.formats.delimited import DelimitedFormat, Number


def _is_write(flags: pl.Expr) -> pl.Expr:
    return (flags.cast(pl.UInt32, strict=False) & 1) == 0


DISKSIM = DelimitedFormat(
    name="disksim",
    columns=("time", "device", "block", "size", "flags"),
    separator=" ",
    row=re.compile(r"\d*\.\d+\s+\d+\s+\d+\s+\d+\s+\d+"),
    time=Number("time", 1, digits=6),
    offset=Number("block", 512),
    length=Number("size", 512, least=1),
    op="flags",
    is_write=_is_write,
    ops="an integer whose bit 0 is set for reads",
    device=("device",),
)
"""Reader of DiskSim's text. With times in whole milliseconds it looks like SSDsim's: force the format."""

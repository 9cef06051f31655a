"""Alibaba block traces: device, operation, offset, length, timestamp.

Offset and length are bytes, timestamps microseconds since 1970. No completions are recorded.

References
----------
Li, Wang, Lee, Shi: An in-depth analysis of cloud block storage workloads in large-scale production, IISWC
2020; repository alibaba/block-traces, README (its columns).
"""

from __future__ import annotations

import re

from stripesim.traces.formats.delimited import DelimitedFormat, Number, one_of

ALIBABA = DelimitedFormat(
    name="alibaba",
    columns=("device_id", "opcode", "offset", "length", "timestamp"),
    separator=",",
    row=re.compile(r"\d+,[RW],\d+,\d+,\d{10,}", re.IGNORECASE),
    time=Number("timestamp", 1000),
    offset=Number("offset", 1),
    length=Number("length", 1, least=1),
    op="opcode",
    is_write=one_of(("r",), ("w",)),
    ops="R or W",
    device=("device_id",),
    ordered=False,
    header=re.compile("device_id,", re.IGNORECASE),
)
"""Reader of Alibaba block traces. The publication does not promise an order across devices."""

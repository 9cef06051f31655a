"""SYSTOR'17 CSV: timestamp, response, operation, LUN, offset, size.

Timestamps are seconds since 1970 and stand for the arrival; rows were written at completion, so they are
not in order of time. The response may be empty where it was not observed.

References
----------
Lee, Kumano, Matsuki, Endo, Fukumoto, Sugawara: Understanding storage traffic characteristics on enterprise
virtual desktop infrastructure, SYSTOR 2017; SNIA IOTTA repository, Systor '17 traces (its columns).
"""

from __future__ import annotations

import re

from stripesim.traces.formats.delimited import DelimitedFormat, Number, one_of

SYSTOR = DelimitedFormat(
    name="systor",
    columns=("Timestamp", "Response", "IOType", "LUN", "Offset", "Size"),
    separator=",",
    row=re.compile(r"\d+\.\d+,(\d+(\.\d*)?)?,[RW],[^,]*,\d+,\d+", re.IGNORECASE),
    time=Number("Timestamp", 1, digits=9),
    offset=Number("Offset", 1),
    length=Number("Size", 1, least=1),
    op="IOType",
    is_write=one_of(("r",), ("w",)),
    ops="R or W",
    device=("LUN",),
    response=Number("Response", 1, digits=9, optional=True),
    ordered=False,
    header=re.compile("timestamp,response,", re.IGNORECASE),
)
"""Reader of SYSTOR'17 CSV."""

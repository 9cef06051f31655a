"""MSR-Cambridge CSV: timestamp, host, disk, type, offset, size, response time.

The response time is the host's: from the request reaching the disk driver to its completion, queueing
included. So `complete_ns` is known, `dispatch_ns` is not, and no service time is. Device names are
`host.disk`.

References
----------
Narayanan, Donnelly, Rowstron: Write Off-Loading, FAST 2008 (the trace); SNIA IOTTA repository, MSR
Cambridge traces (its columns).
"""

from __future__ import annotations

import re

from stripesim.traces.formats.delimited import DelimitedFormat, Number, one_of

TICK_NS = 100
"""A FILETIME counts 100 ns ticks since 1601-01-01 UTC; response times use the same tick."""

MSR = DelimitedFormat(
    name="msr",
    columns=("timestamp", "host", "disk", "type", "offset", "size", "response"),
    separator=",",
    row=re.compile(r"\d+,[^,]*,[^,]*,(Read|Write),\d+,\d+,\d+", re.IGNORECASE),
    time=Number("timestamp", TICK_NS),
    offset=Number("offset", 1),
    length=Number("size", 1, least=1),
    op="type",
    is_write=one_of(("read",), ("write",)),
    ops="Read or Write",
    device=("host", "disk"),
    response=Number("response", TICK_NS),
    ordered=False,
    header=re.compile("timestamp,", re.IGNORECASE),
)
"""Reader of MSR-Cambridge CSV. Its rows are logged at completion, so they can step back in time."""

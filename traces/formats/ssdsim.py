"""ASCII traces of SSDsim and MQSim: arrival time, device, LBA, size, operation.

Times are nanoseconds, LBA and size count sectors of 512 bytes, the operation is 0 for writes and 1 for
reads.

References
----------
Hu, Jiang, Feng, Tian, Luo, Zhang: Performance impact and interplay of SSD parallelism, ICS 2011 (SSDsim);
Tavakkol, Gomez-Luna, Sadrosadati, Ghose, Mutlu: MQSim, FAST 2018, README, section Trace-based workloads.
"""

from __future__ import annotations

import re

from stripesim.traces.formats.delimited import DelimitedFormat, Number, one_of

SSDSIM = DelimitedFormat(
    name="ssdsim",
    columns=("time", "device", "lba", "size", "op"),
    separator=" ",
    row=re.compile(r"\d+\s+\d+\s+\d+\s+\d+\s+[01]"),
    time=Number("time", 1),
    offset=Number("lba", 512),
    length=Number("size", 512, least=1),
    op="op",
    is_write=one_of(("1",), ("0",)),
    ops="0 (write) or 1 (read)",
    device=("device",),
)
"""Reader of SSDsim's and MQSim's text."""

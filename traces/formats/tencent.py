"""Tencent CBS CSV: timestamp, offset, size, operation, volume.

Timestamps are whole seconds since 1970, offset and size count sectors of 512 bytes, the operation is 0 for
reads and 1 for writes. Within a second the order of the file is all that is known of the order of requests;
the rows of neighbouring seconds are interleaved.

References
----------
Zhang, Huang, Wang, Zhou: OSCA, an online-model based cache allocation scheme in cloud block storage
systems, USENIX ATC 2020; SNIA IOTTA repository, Tencent Block Storage (its columns).
"""

from __future__ import annotations

import re

from stripesim.traces.formats.delimited import DelimitedFormat, Number, one_of

TENCENT = DelimitedFormat(
    name="tencent",
    columns=("Timestamp", "Offset", "Size", "IOType", "VolumeID"),
    separator=",",
    row=re.compile(r"\d{9,10},\d+,\d+,[01],\d+"),
    time=Number("Timestamp", 1_000_000_000),
    offset=Number("Offset", 512),
    length=Number("Size", 512, least=1),
    op="IOType",
    is_write=one_of(("0",), ("1",)),
    ops="0 (read) or 1 (write)",
    device=("VolumeID",),
    ordered=False,
    header=re.compile("timestamp,offset,", re.IGNORECASE),
)
"""Reader of Tencent CBS CSV."""

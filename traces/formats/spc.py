"""SPC trace files, the form of the UMass traces: ASU, LBA, size, opcode, timestamp.

An ASU (application storage unit) is a logical device. The LBA counts blocks of 512 bytes, the size is in
bytes, the timestamp in seconds from the start. No completions are recorded.

References
----------
Storage Performance Council: SPC I/O Traces, file format specification, revision 1.0.1, section 3; UMass
Trace Repository, Storage.
"""

from __future__ import annotations

import re

from stripesim.traces.formats.delimited import DelimitedFormat, Number, one_of

SPC = DelimitedFormat(
    name="spc",
    columns=("asu", "lba", "size", "opcode", "timestamp"),
    separator=",",
    row=re.compile(r"\d+,\s*\d+,\s*\d+,\s*[rw],\s*\d+(\.\d*)?", re.IGNORECASE),
    time=Number("timestamp", 1, digits=9),
    offset=Number("lba", 512),
    length=Number("size", 1, least=1),
    op="opcode",
    is_write=one_of(("r",), ("w",)),
    ops="r or w",
    device=("asu",),
)
"""Reader of SPC text. The specification's optional further fields are not used by the published traces."""

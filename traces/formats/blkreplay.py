"""blkreplay's `.load`: start ; sector ; length ; operation ; replay delay ; replay duration.

A text that ends with the heading `start ; sector; length ; op ; …` may stand before the rows. Start is in
seconds, sector and length count 512 bytes. The last two columns are filled in by replaying, which tells
about the replayer's device and is not read.

References
----------
Schoebel-Theuer: blkreplay, file format in its documentation and in the heading of its example loads.
"""

from __future__ import annotations

import re

from stripesim.traces.formats.delimited import DelimitedFormat, Number, one_of

BLKREPLAY = DelimitedFormat(
    name="blkreplay",
    columns=("start", "sector", "length", "op", "replay_delay", "replay_duration"),
    separator=";",
    row=re.compile(r"\d+\.\d+\s*;\s*\d+\s*;\s*\d+\s*;\s*(RA?|W)\s*;\s*[\d.]+\s*;\s*[\d.]+", re.IGNORECASE),
    time=Number("start", 1, digits=9),
    offset=Number("sector", 512),
    length=Number("length", 512, least=1),
    op="op",
    is_write=one_of(("r", "ra"), ("w",)),
    ops="R, RA (read ahead) or W",
    preamble_end=re.compile(r"\s*start\s*;\s*sector\s*;\s*length\s*;\s*op\b", re.IGNORECASE),
)
"""Reader of blkreplay's loads."""

"""CloudPhysics traces as CSV: version, time, operation, size, block.

Time is in microseconds, the operation a SCSI code in hexadecimal, the size in bytes, the block counts 512
bytes. Commands other than reads and writes are counted, not listed.

References
----------
Waldspurger, Park, Garthwaite, Ahmad: Efficient MRC construction with SHARDS, FAST 2015 (the traces).
"""

from __future__ import annotations

import re

import polars as pl

from stripesim.traces.formats.delimited import DelimitedFormat, Number, one_of
from stripesim.traces.formats.scsi import READS, WRITES

_SPELT = ("{:02x}", "{:x}", "0x{:02x}", "0x{:x}")


def _words(codes: tuple[int, ...]) -> tuple[str, ...]:
    return tuple({form.format(code): None for form in _SPELT for code in codes})


_KNOWN = (*_words(READS), *_words(WRITES))


def _other(op: pl.Expr) -> pl.Expr:
    word = op.str.to_lowercase()
    return word.str.contains("^(0x)?[0-9a-f]{1,2}$") & ~word.is_in(_KNOWN)


CLOUDPHYSICS = DelimitedFormat(
    name="cloudphysics",
    columns=("version", "time", "op", "size", "lbn"),
    separator=",",
    row=re.compile(r"[12],\d+,(0x)?([028a]8|[028a]a|[08a]),\d+,\d+", re.IGNORECASE),
    time=Number("time", 1000),
    offset=Number("lbn", 512),
    length=Number("size", 1, least=1),
    op="op",
    is_write=one_of(_words(READS), _words(WRITES)),
    ops="a SCSI operation code in hexadecimal",
    ordered=False,
    header=re.compile("version,", re.IGNORECASE),
    skipped=_other,
)
"""Reader of CloudPhysics CSV. The publication does not promise an order."""

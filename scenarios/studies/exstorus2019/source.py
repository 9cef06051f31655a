"""Tables 1 to 3 of the source, from its claims: published step times by network and record size."""

import re
from functools import cache
from typing import NamedTuple

import polars as pl

from stripesim.scenarios.studies.lookup import claims_of, published
from stripesim.sim.systems.striped_fs.write import STEP_NAMES

STUDY = "exstorus2019"
WRITES = 50_000
"""Records of each run of the source (section 2.3). Its tables give seconds per run."""
NS_PER_S = 1e9
RECORD_SIZES_BYTES = tuple(size << 10 for size in (4, 16, 32, 64, 128))
SMALL_BYTES = RECORD_SIZES_BYTES[0]
LARGE_BYTES = RECORD_SIZES_BYTES[-1]


class TableEntry(NamedTuple):
    """One number of Tables 1 to 3, as the time of one record."""

    claim: str
    table: str
    step: str
    gbit_per_s: float
    record_bytes: int
    time_ns: float
    role: str


@cache
def cells() -> tuple[TableEntry, ...]:
    """Return all numbers of Tables 1 to 3."""
    step_of = {f"time_50000_writes: {name}": step for step, name in STEP_NAMES.items()}
    entries = []
    for claim in claims_of(STUDY):
        if claim.metric not in step_of:
            continue
        rate = re.fullmatch(r"sequential, (\d+)G", claim.pattern)
        size = re.fullmatch(r"(\d+)K", claim.block_size)
        assert rate is not None and size is not None
        entry = TableEntry(
            claim=claim.id,
            table=claim.locus,
            step=step_of[claim.metric],
            gbit_per_s=float(rate[1]),
            record_bytes=int(size[1]) << 10,
            time_ns=published(STUDY)[claim.id] * NS_PER_S / WRITES,
            role=claim.role,
        )
        entries.append(entry)
    return tuple(entries)


def entry_table() -> pl.DataFrame:
    """Return all numbers of Tables 1 to 3 as a table, with the names of steps."""
    rows = [{**cell._asdict(), "step": STEP_NAMES[cell.step]} for cell in cells()]
    return pl.DataFrame(rows)


def calibration_cells() -> tuple[TableEntry, ...]:
    """Return the numbers of Tables 1 and 2, which the fit may see."""
    return tuple(cell for cell in cells() if cell.table in ("Table 1", "Table 2"))

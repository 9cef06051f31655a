"""Tables 1 to 3 of the source, read from its claims: published step times by network and record size."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from stripesim.calibration.ledger.verdicts import Claim, load_claims
from stripesim.sim.systems.striped_fs.write import STEP_NAMES

WRITES = 50_000
"""Records of each run of the source (section 2.3): its tables give seconds for so many."""
NS_PER_S = 1e9
RECORD_SIZES_BYTES = tuple(size << 10 for size in (4, 16, 32, 64, 128))
FITTED_GBIT_PER_S = (1.0, 10.0)
HELD_OUT_GBIT_PER_S = 40.0


@dataclass(frozen=True)
class Cell:
    """One number of Tables 1 to 3: where it stands and what it says, as the time of one record."""

    claim: str
    table: str
    step: str
    gbit_per_s: float
    record_bytes: int
    time_ns: float
    role: str


@cache
def claims() -> tuple[Claim, ...]:
    """The claims of this study as they ship with the package."""
    folder = files("stripesim.scenarios.studies.exstorus2019")
    return load_claims(folder / "claims.csv", disputed=folder / "disputed.csv")


@cache
def cells() -> tuple[Cell, ...]:
    """All numbers of Tables 1 to 3."""
    return tuple(_cells(claims()))


def _cells(listed: Iterable[Claim]) -> Iterator[Cell]:
    step_of = {name: step for step, name in STEP_NAMES.items()}
    for claim in listed:
        found = re.fullmatch(r"time_50000_writes: (.+)", claim.metric)
        if found is None:
            continue
        rate = re.fullmatch(r"sequential, (\d+)G", claim.pattern)
        size = re.fullmatch(r"(\d+)K", claim.block_size)
        assert rate is not None and size is not None and isinstance(claim.published, float)
        yield Cell(
            claim=claim.id,
            table=claim.locus,
            step=step_of[found[1]],
            gbit_per_s=float(rate[1]),
            record_bytes=int(size[1]) << 10,
            time_ns=claim.published * NS_PER_S / WRITES,
            role=claim.role,
        )


def calibration_cells() -> tuple[Cell, ...]:
    """Tables 1 and 2, each number once: what the fit may see."""
    return tuple(cell for cell in cells() if cell.table in ("Table 1", "Table 2"))

"""What studies look up: published claims, and numbers in their own result rows."""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import polars as pl

from stripesim.calibration.ledger.verdicts import Claim, load_claims

#: Why a row of the configuration has no simulated value.
CONFIGURATION = (
    "part of the configuration: an input to the simulation, not a result of it"
)


@cache
def claims_of(study: str) -> tuple[Claim, ...]:
    """The claims that ship in a study's folder, with what is disputed about them."""
    folder = files(f"{__package__}.{study}")
    return load_claims(folder / "claims.csv", disputed=folder / "disputed.csv")


@cache
def published(study: str) -> dict[str, float]:
    """Claim id → published value, of the claims that state one number."""
    return {
        claim.id: claim.published
        for claim in claims_of(study)
        if isinstance(claim.published, float)
    }


def groups_by_metric(groups: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Metric → group in which its errors are averaged, from group → metrics."""
    return {metric: group for group, metrics in groups.items() for metric in metrics}


def select(rows: pl.DataFrame, **where: Any) -> pl.DataFrame:
    """Rows that have these values in these columns."""
    return rows.filter(*(pl.col(name) == value for name, value in where.items()))


def number(rows: pl.DataFrame, column: str, **where: Any) -> float:
    """The only value of a column in the rows that fit; a LookupError if there is not one."""
    found = select(rows, **where)
    if found.height != 1:
        raise LookupError(f"rows: {where}: got {found.height}, wanted one")
    return float(found[column][0])

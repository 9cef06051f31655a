"""Look up published claims, and numbers in a study's own result rows."""

from functools import cache
from typing import Any

import polars as pl

from stripesim.calibration.ledger.verdicts import Claim, load_claims
from stripesim.scenarios.studies.description import study_folder


@cache
def claims_of(study: str) -> tuple[Claim, ...]:
    """Return the claims that ship in a study's folder, with their disputes."""
    folder = study_folder(study)
    return load_claims(folder / "claims.csv", disputed=folder / "disputed.csv")


@cache
def published(study: str) -> dict[str, float]:
    """Return published values by claim id, of the claims that state one number."""
    return {
        claim.id: claim.published
        for claim in claims_of(study)
        if isinstance(claim.published, float)
    }


def select(rows: pl.DataFrame, **where: Any) -> pl.DataFrame:
    """Return the rows with these values in these columns."""
    return rows.filter(*(pl.col(name) == value for name, value in where.items()))


def number(rows: pl.DataFrame, column: str, **where: Any) -> float:
    """Return the value of a column in the only matching row, or raise a LookupError."""
    matching = select(rows, **where)
    if matching.height != 1:
        raise LookupError(f"rows: {where}: got {matching.height}, wanted one")
    return float(matching[column][0])

"""The source's numbers: claims as they ship, by id, and the plotted series."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import polars as pl

from stripesim.calibration.ledger.verdicts import Claim, load_claims

_PACKAGE = "stripesim.scenarios.studies.erasurebench2016"
PREFIX = "erasurebench-"


@cache
def claims() -> tuple[Claim, ...]:
    """The claims of this study as they ship with the package."""
    return load_claims(files(_PACKAGE) / "claims.csv")


@cache
def published() -> dict[str, float]:
    """Claim id → published value, of the claims that state one number."""
    return {claim.id: claim.published for claim in claims() if isinstance(claim.published, float)}


def value_of(number: int) -> float:
    """Published value of a claim, by the number in its id."""
    return published()[f"{PREFIX}{number}"]


@cache
def series() -> pl.DataFrame:
    """The numbers behind the source's Figures 3, 4, 6 and 7: figure, name, x, y."""
    source = (files(_PACKAGE) / "series.csv").read_bytes()
    return pl.read_csv(source, schema_overrides={"x": pl.Float64, "y": pl.Float64})

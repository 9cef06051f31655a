"""The study's values are its rows, each of which carries a claim's id as its pattern; why some have none."""

from typing import Final

import polars as pl

from stripesim.scenarios.studies.lookup import claims_of

#: Why nothing is computed, by the beginning of a claim's id.
_REASONS: Final = {
    "mlec-7-1": "a code over pools that are themselves coded (MLEC) is no scheme of this simulator",
    "mlec-7+3": "only the first stages of that run were recorded",
    "ford2010": "the rates of recovery and of bursts, by cell, are not in the copied table",
    "simedc": "blocked repair bandwidth and settings of importance sampling are not durability",
    "tiered2015": "a ratio between two placements whose sets the source does not list",
    "copysets2013": "the number of nodes and blocks of that cluster is not in the source",
}


def simulate_claims(rows: pl.DataFrame) -> tuple[dict[str, float], dict[str, str]]:
    """Look every claim up in the result rows; return values, and why there is none."""
    reasons = {
        claim.id: why
        for claim in claims_of("durability")
        for start, why in _REASONS.items()
        if claim.id.startswith(start)
    }
    return dict(rows.select("pattern", "value").iter_rows()), reasons

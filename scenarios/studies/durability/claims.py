"""The study's ledger: computed rows beside published ones, and why some have none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from stripesim.calibration.ledger.verdicts import Claim, Ledger, judge

__all__ = ["ledger_for"]

#: Why nothing is computed, by the beginning of a claim's id.
_REASONS: Final = {
    "mlec-7-1": "a code over pools that are themselves coded (MLEC) is no scheme of this simulator",
    "mlec-7+3": "only the first stages of that run were recorded",
    "ford2010": "the rates of recovery and of bursts, by cell, are not in the copied table",
    "simedc": "blocked repair bandwidth and settings of importance sampling are not durability",
    "tiered2015": "a ratio between two placements whose sets the source does not list",
    "copysets2013": "the number of nodes and blocks of that cluster is not in the source",
}


def ledger_for(
    claims: Sequence[Claim], rows: Iterable[Mapping[str, Any]], parameters: Iterable[Mapping[str, Any]]
) -> Ledger:
    """Judge the claims by computed rows, each of which carries a claim's id as its pattern."""
    reasons = {
        claim.id: next(
            (why for start, why in _REASONS.items() if claim.id.startswith(start)),
            "the study computes no value for this row",
        )
        for claim in claims
    }
    simulated = {row["pattern"]: row["value"] for row in rows}
    return judge(claims, simulated, reasons=reasons, parameters=parameters)

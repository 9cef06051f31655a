"""Find the simulated value of a claim: its metric in the row of its scheme and change."""

import polars as pl

from stripesim.calibration.ledger.verdicts import Claim
from stripesim.scenarios.studies.changes.timed import LATENCY_SUFFIX
from stripesim.scenarios.studies.lookup import number


def simulated_metric(rows: pl.DataFrame, claim: Claim) -> float:
    """Return the simulated value of a claim."""
    column = claim.metric
    if column != "shards_moved":
        column = f"{claim.metric}_per_moved"
    return number(rows, column, scheme=claim.scheme, change=claim.baseline)


def simulated_of_timed(rows: pl.DataFrame, claim: Claim) -> float:
    """Return the simulated value of a claim on a timed change."""
    timed_id = claim.id.removesuffix(LATENCY_SUFFIX)
    return number(rows, claim.metric, timed_id=timed_id)

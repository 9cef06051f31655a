"""What the expressions of ``claims.toml`` call: result rows by experiment and configuration."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from stripesim.calibration.ledger.verdicts import Claim
from stripesim.scenarios.studies.claim_rules import NotComputedError


def vocabulary(rows: pl.DataFrame) -> Mapping[str, Any]:
    """Return the names that expressions know."""
    runs = {
        (row["experiment"], row["configuration"]): row
        for row in rows.iter_rows(named=True)
    }

    def run(experiment: str, configuration: str) -> Mapping[str, Any]:
        if (experiment, configuration) not in runs:
            raise NotComputedError
        return runs[experiment, configuration]

    def configuration(claim: Claim) -> Mapping[str, Any]:
        if claim.role == "not-derivable":
            raise NotComputedError(claim.note)
        return run(claim.paper, claim.baseline)

    def rate_ratio(names: str) -> float:
        rates = [
            run("mclock2021", name)["objects_per_s"]
            for name in names.split(" against ")
        ]
        return float(rates[0] / rates[1])

    return {"run": run, "configuration": configuration, "rate_ratio": rate_ratio}

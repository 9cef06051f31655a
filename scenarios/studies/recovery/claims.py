"""The claims of the study: how each is computed from result rows.

The profiles' ratios on the large cluster have the runs of the first source's host.
"""

from collections.abc import Mapping
from typing import Any

import polars as pl

from stripesim.calibration.ledger.verdicts import Claim, Simulated
from stripesim.scenarios.studies.lookup import claims_of

OBJECTS_2022 = 18_000
NOT_SIMULATED = "not simulated: the study has no run for it yet"
PERCENT = 100.0
RATIOS = {
    "repair_network_ratio": "recovery_private_net_bytes_per_lost_byte_ratio",
    "repair_bytes_ratio": "recovery_device_read_bytes_per_lost_byte_ratio",
    "repair_time_ratio": "recovery_s_ratio",
}
COLUMNS = {
    "client_iops": "iops",
    "client_latency_mean": "latency_mean_ms",
    "recovery_rate": "objects_per_s",
}


def _of_scheduler(claim: Claim, rows: Mapping[str, Mapping[str, Any]]) -> Simulated:
    row = rows.get(claim.baseline)
    if row is None or claim.role == "not-derivable":
        return None
    if claim.metric == "recovery_time":
        return float(OBJECTS_2022 / row["objects_per_s"])
    return float(row[COLUMNS[claim.metric]])


def simulate_claims(rows: pl.DataFrame) -> tuple[dict[str, Simulated], dict[str, str]]:
    """Compute every claim from result rows; return values, and why there is none."""
    by: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows.iter_rows(named=True):
        by.setdefault(row["experiment"], {})[row["configuration"]] = row
    schedulers, hung, pairs = by["mclock2021"], by["hung"], by["pairs"]
    found: dict[str, Simulated] = {}
    for claim in claims_of("recovery"):
        if claim.paper.startswith("mclock"):
            found[claim.id] = _of_scheduler(claim, by[claim.paper])
        elif claim.metric == "recovery_rate_ratio":
            over, under = claim.baseline.split(" against ")
            found[claim.id] = (
                schedulers[over]["objects_per_s"] / schedulers[under]["objects_per_s"]
            )
        elif claim.metric == "acknowledgement":
            found[claim.id] = hung[claim.baseline]["acknowledgement_ms"]
        elif claim.metric in RATIOS:
            found[claim.id] = pairs[claim.paper][RATIOS[claim.metric]]
        elif claim.metric == "repair_time_saved":
            found[claim.id] = PERCENT * (1 - pairs[claim.paper]["recovery_s_ratio"])
    return found, {
        claim.id: claim.note if claim.role == "not-derivable" else NOT_SIMULATED
        for claim in claims_of("recovery")
    }

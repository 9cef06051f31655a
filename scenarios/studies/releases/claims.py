"""One claim per measured row and metric, with roles and tolerances fixed before the first comparison."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Final

from stripesim.calibration.ledger.verdicts import Claim
from stripesim.scenarios.studies.ceph16.claims import claim_on
from stripesim.scenarios.studies.description import shipped_toml
from stripesim.scenarios.studies.releases.measured import (
    MeasuredReleases,
    Pooled,
    ReleaseRun,
    load,
)
from stripesim.scenarios.studies.releases.runs import degraded_row_id

#: Tolerances, the same for all releases and schemes.
TOLERANCES: Final = {
    "device_read": 0.2,
    "device_data_write": 0.1,
    "device_write": 0.25,
    "private_net": 0.1,
    "context_switches_per_op": 0.2,
}
# Metrics of processors, which no fit of this study sees.
_OF_PROCESSORS = ("context_switches_per_op",)


@cache
def calibration_runs() -> tuple[str, ...]:
    """Return the runs that ``fit.toml`` sees."""
    tables = shipped_toml("releases", "fit.toml")
    seen = [*tables["stages"], *tables["counted"]]
    return tuple(dict.fromkeys(run_id for table in seen for run_id in table["rows"]))


def claims_of(measured: MeasuredReleases) -> tuple[Claim, ...]:
    """Turn measured rows into claims.

    If a fit has seen a run, all its bytes are calibration, even those that the fit did not use. A run
    counts as seen if its name, release, code and values equal those of a run that ships.
    """
    shipped = {one.run.run_id: _identity(one) for one in load().runs}
    claims = []
    for one in measured.runs:
        run = one.run
        same = shipped.get(run.run_id) == _identity(one)
        for metric in run.measured:
            fitted = run.run_id in calibration_runs() and metric not in _OF_PROCESSORS
            role = "calibration" if same and fitted else "held-out"
            per = "request" if metric in _OF_PROCESSORS else "client byte"
            claim = claim_on(run, run.run_id, metric, run.op, per, role)
            claims.append(_of_release(claim, one.pooled))
    for each in measured.degraded:
        row_id = degraded_row_id(each)
        for metric in each.degraded.measured:
            claim = claim_on(
                each.degraded, row_id, metric, "degraded read", "client byte"
            )
            claims.append(_of_release(claim, each.pooled))
    return tuple(claims)


def _identity(one: ReleaseRun) -> tuple[object, ...]:
    return one.pooled, one.run.coded, one.run.measured


def _of_release(claim: Claim, pooled: Pooled) -> Claim:
    """Return a claim of this study about a release."""
    kind = ", optimised" if pooled.is_optimised else ""
    return replace(
        claim,
        paper="releases",
        tolerance=TOLERANCES[claim.metric],
        note=f"Ceph {pooled.version}{kind}",
        statement=f"{claim.statement} (Ceph {pooled.version}{kind})",
    )

"""One claim per measured row and metric, with the role that the fits leave to it."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from stripesim.calibration.ledger.verdicts import Claim, Ledger, judge
from stripesim.scenarios.studies.ceph16.measured import (
    PASS_METRIC,
    MeasuredCounts,
    MeasuredDegraded,
    MeasuredPasses,
    MeasuredRepair,
    MeasuredRun,
    load,
)
from stripesim.scenarios.studies.staged_fit import fit_stages

TOLERANCE = 0.2
# Fixed before any fit. The counts repeat within 4 %, processor time within 11 % (medians).
CPU_TOLERANCES = {"cpu_us_per_op": 0.25, "context_switches_per_op": 0.2}
_WORDS = {
    "cpu_us_per_op": "processor time of all OSDs",
    "context_switches_per_op": "context switches",
}
_UNITS = {"cpu_us_per_op": "us", "context_switches_per_op": "count"}

CPU_METRICS = frozenset(CPU_TOLERANCES)


@cache
def calibration_runs(*, processors: bool) -> tuple[str, ...]:
    """Return the runs whose counts, or whose processor time and switches, the stages of ``fit.toml`` see."""
    runs: dict[str, None] = {}
    for stage in fit_stages("ceph16"):
        if (not CPU_METRICS.isdisjoint(stage.metrics)) is processors:
            runs |= dict.fromkeys(stage.rows)
    return tuple(runs)


def repair_id(repair: MeasuredRepair) -> str:
    """Return the beginning of the ids of a repair's claims."""
    return f"repair:{repair.coded.scheme}:{repair.how}"


def degraded_id(degraded: MeasuredDegraded) -> str:
    """Return the beginning of the ids of claims on degraded reads."""
    return f"degraded:{degraded.coded.scheme}:{degraded.block_bytes}"


def passes_id(passes: MeasuredPasses) -> str:
    """Return the beginning of the ids of claims on two passes of the same writes."""
    return f"passes:{passes.coded.scheme}:{passes.features}:q{passes.queue_depth}"


def claims_of(measured: MeasuredCounts) -> tuple[Claim, ...]:
    """Turn measured rows into claims.

    If a fit has seen the counts of a run, all of them are calibration, even those that the fit did not use.
    The same holds for processor time and switches and their fits. A run counts as seen if its name, code and
    values equal those of a run that ships. Rows of other folders are held out even if names coincide.
    """
    shipped = {run.run_id: (run.coded, run.measured) for run in load().runs}
    claims: list[Claim] = []
    for run in measured.runs:
        same = shipped.get(run.run_id) == (run.coded, run.measured)
        for metric in run.measured:
            seen = calibration_runs(processors=metric in CPU_METRICS)
            role = "calibration" if same and run.run_id in seen else "held-out"
            per = "request" if metric in CPU_METRICS else "client byte"
            claims.append(claim_on(run, run.run_id, metric, run.op, per, role))
    for repair in measured.repairs:
        for metric in repair.measured:
            row_id = repair_id(repair)
            claims.append(claim_on(repair, row_id, metric, "repair", "byte lost"))
    for degraded in measured.degraded:
        for metric in degraded.measured:
            row_id = degraded_id(degraded)
            claim = claim_on(degraded, row_id, metric, "degraded read", "client byte")
            claims.append(claim)
    claims += [_pass_claim(passes) for passes in measured.passes]
    return tuple(claims)


def _pass_claim(passes: MeasuredPasses) -> Claim:
    """Return the claim on the rate of first writes relative to the same writes again.

    Role and tolerance were fixed before the first simulation of these rows. No fit sees them.
    """
    value = passes.measured[PASS_METRIC]
    scheme = passes.coded.name
    features = "with" if passes.features == "default" else "without"
    return Claim(
        id=f"{passes_id(passes)}:{PASS_METRIC}",
        paper="ceph16",
        locus=passes.where,
        metric=PASS_METRIC,
        scheme=scheme,
        baseline="",
        pattern="rand",
        op="write",
        block_size=str(passes.block_bytes),
        published=value,
        published_text=f"{value:.3g}",
        unit="1",
        kind="ratio",
        role="held-out",
        compare="value",
        tolerance=TOLERANCE,
        note=f"median of {passes.runs_count} runs; 512 writes into 321 objects",
        statement=(
            f"rate of a fresh image over the same writes again, {features} an object map: "
            f"{scheme}, depth {passes.queue_depth}"
        ),
    )


def claim_on(
    row: MeasuredRun | MeasuredRepair | MeasuredDegraded,
    row_id: str,
    metric: str,
    op: str,
    per: str,
    role: str = "held-out",
) -> Claim:
    """Return the claim on one value of a row."""
    value = row.measured[metric]
    scheme = row.coded.name
    pattern = getattr(row, "pattern", "")
    block_size = str(getattr(row, "block_bytes", ""))
    cell = " ".join(filter(None, (scheme, pattern, op, block_size)))
    quantity = _WORDS.get(metric) or f"{metric.replace('_', ' ')} bytes"
    return Claim(
        id=f"{row_id}:{metric}",
        paper="ceph16",
        locus=row.where,
        metric=metric,
        scheme=scheme,
        baseline="",
        pattern=pattern,
        op=op,
        block_size=block_size,
        published=value,
        published_text=f"{value:g}",
        unit=_UNITS.get(metric, "B/B"),
        kind="exact",
        role=role,
        compare="value",
        tolerance=CPU_TOLERANCES.get(metric, TOLERANCE),
        note="",
        statement=f"{quantity} per {per}: {cell}",
    )


def judge_counts(
    claims: Sequence[Claim],
    counts: Mapping[str, Mapping[str, float]],
    parameters: Iterable[Mapping[str, Any]],
) -> Ledger:
    """Judge simulated counts, by row and metric, against claims on measured ones."""
    known = {claim.id for claim in claims}
    simulated = {
        f"{row_id}:{metric}": value
        for row_id, values in counts.items()
        for metric, value in values.items()
    }
    judged = {name: value for name, value in simulated.items() if name in known}
    return judge(claims, judged, parameters=parameters)

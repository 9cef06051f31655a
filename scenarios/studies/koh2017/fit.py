"""Fit the cluster's unknown costs to the study's calibration rows: 3-replication only.

``python -m stripesim.scenarios.studies.koh2017.fit`` prints what stands in ``kraken.toml``, the study's set,
where times of operations and transactions keep their proportions.
Five numbers are fitted. Three see 3-replication only; the other two, which only erasure-coded writes
exercise, see one row of RS(6,3) each, so that RS(10,4) and all other rows of RS(6,3) stay predictions.
"""

from collections.abc import Mapping
from typing import NamedTuple

from stripesim.calibration.fitting import Fit, fit_parameters
from stripesim.scenarios.run.build import build_models
from stripesim.scenarios.run.cell import run_cell
from stripesim.scenarios.schema.keys import Cell, Scenario
from stripesim.scenarios.schema.loader import load_scenario
from stripesim.scenarios.studies.ceph16.fit import whole
from stripesim.scenarios.studies.lookup import claims_of, published
from stripesim.scenarios.studies.parameters import with_values
from stripesim.sim.ceph.cluster import Models


class Row(NamedTuple):
    """What a claim is compared with: the mean over the eight block sizes, or one of them by ascending value.

    The factor leads from the column's unit to the claim's. What lies below a bound counts as on it.
    """

    scheme: str
    op: str
    pattern: str
    column: str
    factor: float
    bounded_place: int | None = None


SHARED_ROWS = {
    "koh2017-040": Row("rep:3", "write", "seq", "throughput_bytes_per_s", 1e-6),
    "koh2017-068": Row("rep:3", "write", "seq", "cpu_utilisation", 100.0),
    "koh2017-072": Row("rep:3", "write", "rand", "cpu_utilisation", 100.0),
    "koh2017-076": Row("rep:3", "read", "seq", "cpu_utilisation", 100.0),
    "koh2017-079": Row("rep:3", "read", "rand", "cpu_utilisation", 100.0),
    "koh2017-045": Row("rep:3", "write", "seq", "latency_mean_ns", 1e-6, 4),
    "koh2017-053": Row("rep:3", "read", "seq", "latency_mean_ns", 1e-6, 7),
}
# Where the fit begins: three shared numbers, then those of erasure codes.
SHARED_PARAMETERS = {
    "cpu.op_prepare_ns": 30_000.0,
    "cpu.sub_write_send_ns": 135_000.0,
    "cpu.store_transaction_ns": 20_000.0,
}
ERASURE_ROWS = {
    "koh2017-046": Row("rs:6,3", "write", "seq", "latency_mean_ns", 1e-6),
    "koh2017-073": Row("rs:6,3", "write", "rand", "cpu_utilisation", 100.0),
}
ERASURE_PARAMETERS = {
    "cpu.ec_rollback_wait_ns": 500_000.0,
    "cpu.ec_kv_finish_factor": 25.0,
}
REQUESTS = 1500


def simulated(
    scenario: Scenario, models: Models, rows: Mapping[str, Row]
) -> dict[str, float]:
    """Simulate rows: claim → value in the claim's unit."""
    runs: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    found: dict[str, float] = {}
    for claim, row in rows.items():
        key = row[:3]
        if key not in runs:
            cells = [Cell(*key, size) for size in scenario.workload.block_sizes_bytes]  # type: ignore[arg-type]
            runs[key] = [
                run_cell(scenario, cell, "compiled", models).row for cell in cells
            ]
        values = [run[row.column] for run in runs[key]]
        mean = sum(values) / len(values)
        found[claim] = row.factor * (
            mean if row.bounded_place is None else sorted(values)[row.bounded_place]
        )
    return found


def spread(values: Mapping[str, float]) -> dict[str, float]:
    """Add what keeps its proportion to what a fit tries."""
    return {**whole(values), **values}


def fit(
    rows: Mapping[str, Row],
    start: Mapping[str, float],
    models: Models,
    scenario: Scenario,
) -> Fit:
    """Fit parameters to rows of the published claims."""
    stated = {claim: published("koh2017")[claim] for claim in rows}
    tolerances = {claim.id: claim.tolerance or 0.0 for claim in claims_of("koh2017")}

    def simulate(values: Mapping[str, float]) -> dict[str, float]:
        found = simulated(scenario, with_values(models, spread(values)), rows)
        bounded = [
            claim for claim, row in rows.items() if row.bounded_place is not None
        ]
        return found | {claim: max(found[claim], stated[claim]) for claim in bounded}

    return fit_parameters(
        simulate,
        start=start,
        published=stated,
        tolerance={claim: tolerances[claim] for claim in rows},
    )


def main() -> None:
    """Fit and print."""
    scenario = load_scenario("koh2017", sets=[f"workload.requests={REQUESTS}"])
    models = build_models(scenario)
    for rows, start in (
        (SHARED_ROWS, SHARED_PARAMETERS),
        (ERASURE_ROWS, ERASURE_PARAMETERS),
    ):
        found = fit(rows, start, models, scenario)
        models = with_values(
            models, spread({p.name: p.value for p in found.parameters})
        )
        for parameter in found.parameters:
            low, high = parameter.confidence_interval
            print(f"{parameter.name} = {parameter.value:.4g}  [{low:.4g}, {high:.4g}]")
        for row, error in found.errors.items():
            print(f"  {row}: {error:+.1%}")


if __name__ == "__main__":
    main()

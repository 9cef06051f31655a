"""Fit the cluster's unknown costs to the study's calibration rows: 3-replication only.

``python -m stripesim.scenarios.studies.koh2017.fit`` prints what stands in ``koh2017.toml``. Five
numbers are
fitted. Three of them see 3-replication only; the other two, which only erasure-coded writes exercise, see one
row of RS(6,3) each, so that RS(10,4) and every other row of RS(6,3) stay predictions.
"""

from __future__ import annotations

from collections.abc import Mapping

from stripesim.calibration.fitting import Fit, fit_parameters
from stripesim.scenarios.run.build import build_models
from stripesim.scenarios.run.cell import run_cell
from stripesim.scenarios.schema.keys import Cell, Scenario
from stripesim.scenarios.schema.loader import load_scenario
from stripesim.scenarios.studies.koh2017.claims import load
from stripesim.scenarios.studies.parameters import with_values
from stripesim.sim.ceph.cluster import Models

# Claim → (scheme, op, pattern, column, factor from the column's unit to the claim's).
SHARED_ROWS = {
    "koh2017-040": ("rep:3", "write", "seq", "throughput_bytes_per_s", 1e-6),
    "koh2017-068": ("rep:3", "write", "seq", "cpu_utilisation", 100.0),
    "koh2017-072": ("rep:3", "write", "rand", "cpu_utilisation", 100.0),
    "koh2017-076": ("rep:3", "read", "seq", "cpu_utilisation", 100.0),
    "koh2017-079": ("rep:3", "read", "rand", "cpu_utilisation", 100.0),
}
# What lies below a bound counts as on it. Last: which of the eight sizes is bounded, by ascending value.
SHARED_BOUNDS = {
    "koh2017-045": ("rep:3", "write", "seq", "latency_mean_ns", 1e-6, 4),
    "koh2017-053": ("rep:3", "read", "seq", "latency_mean_ns", 1e-6, 7),
}
SHARED_PARAMETERS = {
    "cpu.op_prepare_ns": 50_000.0,
    "cpu.sub_write_send_ns": 125_000.0,
    "cpu.kv_finish_ns": 110_000.0,
}
ERASURE_ROWS = {
    "koh2017-046": ("rs:6,3", "write", "seq", "latency_mean_ns", 1e-6),
    "koh2017-073": ("rs:6,3", "write", "rand", "cpu_utilisation", 100.0),
}
ERASURE_PARAMETERS = {"cpu.ec_rollback_wait_ns": 450_000.0, "cpu.ec_kv_finish_factor": 3.0}

Rows = Mapping[str, tuple[str, str, str, str, float]]
Bounds = Mapping[str, tuple[str, str, str, str, float, int]]


def simulated(
    scenario: Scenario, models: Models, rows: Rows, bounds: Bounds | None = None
) -> dict[str, float]:
    """Simulate rows: means over the eight block sizes, and of bounded ones the size that the bound is for."""
    runs: dict[tuple[str, str, str], list[dict[str, float]]] = {}

    def values(scheme: str, op: str, pattern: str, column: str) -> list[float]:
        key = (scheme, op, pattern)
        if key not in runs:
            cells = [
                Cell(scheme, op, pattern, size)  # type: ignore[arg-type]
                for size in scenario.workload.block_sizes_bytes
            ]
            runs[key] = [run_cell(scenario, cell, "compiled", models).row for cell in cells]
        return [row[column] for row in runs[key]]

    told: dict[str, float] = {}
    for claim, (*cell, factor) in rows.items():
        found = values(*cell)
        told[claim] = factor * sum(found) / len(found)
    for claim, (*cell, factor, place) in (bounds or {}).items():
        told[claim] = factor * sorted(values(*cell))[place]
    return told


def fit(rows: Rows, bounds: Bounds, start: Mapping[str, float], models: Models, scenario: Scenario) -> Fit:
    """Fit parameters to rows of the published claims."""
    claims = {claim.id: claim for claim in load()}
    published = {row: _number(claims[row].published) for row in (*rows, *bounds)}

    def simulate(values: Mapping[str, float]) -> dict[str, float]:
        told = simulated(scenario, with_values(models, values), rows, bounds)
        return told | {row: max(told[row], published[row]) for row in bounds}

    return fit_parameters(
        simulate,
        start=start,
        published=published,
        tolerance={row: _number(claims[row].tolerance) for row in published},
    )


def _number(value: object) -> float:
    assert isinstance(value, float | int)
    return float(value)


def main() -> None:
    """Fit and print."""
    scenario = load_scenario("koh2017")
    models = build_models(scenario)
    for rows, bounds, start in (
        (SHARED_ROWS, SHARED_BOUNDS, SHARED_PARAMETERS),
        (ERASURE_ROWS, {}, ERASURE_PARAMETERS),
    ):
        found = fit(rows, bounds, start, models, scenario)
        models = with_values(models, {p.name: p.value for p in found.parameters})
        for parameter in found.parameters:
            low, high = parameter.confidence_interval
            print(f"{parameter.name} = {parameter.value:.4g}  [{low:.4g}, {high:.4g}]")
        for row, error in found.errors.items():
            print(f"  {row}: {error:+.1%}")


if __name__ == "__main__":
    main()

"""Fit the cluster's unknown costs to the study's calibration rows: 3-replication only.

``python -m stripesim.scenarios.koh2017.calibrate`` prints what stands in ``koh2017.toml``. Four numbers are
fitted. Two of them see 3-replication only; the other two, which only erasure-coded writes exercise, see one
row of RS(6,3) each, so that RS(10,4) and every other row of RS(6,3) stay predictions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stripesim.calibration.fitting import Fit, fit_parameters
from stripesim.scenarios.build import build_models
from stripesim.scenarios.execute import run_cell
from stripesim.scenarios.koh2017.claims import load
from stripesim.scenarios.loader import load_scenario
from stripesim.scenarios.schema import Cell, Scenario
from stripesim.sim.cluster import Models

# Claim → (scheme, op, pattern, column, factor from the column's unit to the claim's).
SHARED_ROWS = {
    "koh2017-040": ("rep:3", "write", "seq", "throughput_bytes_per_s", 1e-6),
    "koh2017-068": ("rep:3", "write", "seq", "cpu_utilisation", 100.0),
    "koh2017-072": ("rep:3", "write", "rand", "cpu_utilisation", 100.0),
    "koh2017-076": ("rep:3", "read", "seq", "cpu_utilisation", 100.0),
    "koh2017-079": ("rep:3", "read", "rand", "cpu_utilisation", 100.0),
}
SHARED_PARAMETERS = {
    "cpu.op_prepare_ns": 50_000.0,
    "cpu.sub_write_send_ns": 80_000.0,
    "cpu.kv_finish_ns": 130_000.0,
}
ERASURE_ROWS = {
    "koh2017-046": ("rs:6,3", "write", "seq", "latency_mean_ns", 1e-6),
    "koh2017-073": ("rs:6,3", "write", "rand", "cpu_utilisation", 100.0),
}
ERASURE_PARAMETERS = {"cpu.ec_rollback_wait_ns": 700_000.0, "cpu.ec_kv_finish_factor": 1.6}

Rows = Mapping[str, tuple[str, str, str, str, float]]


def with_values(models: Models, values: Mapping[str, float]) -> Models:
    """Return the models with some numbers replaced; names as ``model.number``."""
    for name, value in values.items():
        model_name, _, number = name.partition(".")
        model = replace(getattr(models, model_name), **{number: value})
        models = replace(models, **{model_name: model})
    return models


def simulated(scenario: Scenario, models: Models, rows: Rows) -> dict[str, float]:
    """Simulate rows: means over the eight block sizes."""
    told: dict[str, float] = {}
    runs: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    for claim, (scheme, op, pattern, column, factor) in rows.items():
        key = (scheme, op, pattern)
        if key not in runs:
            cells = [
                Cell(scheme, op, pattern, size)  # type: ignore[arg-type]
                for size in scenario.workload.block_sizes_bytes
            ]
            runs[key] = [run_cell(scenario, cell, "compiled", models).row for cell in cells]
        values = [row[column] for row in runs[key]]
        told[claim] = factor * sum(values) / len(values)
    return told


def fit(rows: Rows, start: Mapping[str, float], models: Models, scenario: Scenario) -> Fit:
    """Fit parameters to rows of the published claims."""
    claims = {claim.id: claim for claim in load()}
    return fit_parameters(
        lambda values: simulated(scenario, with_values(models, values), rows),
        start=start,
        published={row: _number(claims[row].published) for row in rows},
        tolerance={row: _number(claims[row].tolerance) for row in rows},
    )


def _number(value: object) -> float:
    assert isinstance(value, float | int)
    return float(value)


def main() -> None:
    """Fit and print."""
    scenario = load_scenario("koh2017")
    models = build_models(scenario)
    for rows, start in ((SHARED_ROWS, SHARED_PARAMETERS), (ERASURE_ROWS, ERASURE_PARAMETERS)):
        found = fit(rows, start, models, scenario)
        models = with_values(models, {p.name: p.value for p in found.parameters})
        for parameter in found.parameters:
            low, high = parameter.confidence_interval
            print(f"{parameter.name} = {parameter.value:.4g}  [{low:.4g}, {high:.4g}]")
        for row, error in found.errors.items():
            print(f"  {row}: {error:+.1%}")


if __name__ == "__main__":
    main()

"""Run a scenario cell by cell and collect its rows, warnings and provenance."""

import hashlib
from dataclasses import replace
from typing import Any

from stripesim.scenarios.answers.run.advise import advise
from stripesim.scenarios.answers.run.advise import simulations as doubling_runs
from stripesim.scenarios.answers.run.answer import ScenarioResult
from stripesim.scenarios.answers.run.buying_curves import buying_curves
from stripesim.scenarios.answers.run.buying_curves import simulations as step_runs
from stripesim.scenarios.answers.run.collect import (
    CellOptions,
    Collected,
    Rows,
    collect_cell,
)
from stripesim.scenarios.cells.failures import limits_of
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import (
    growth_warnings,
    length_warnings,
    made_from,
    outside_of,
)
from stripesim.scenarios.cells.run import run_cells
from stripesim.scenarios.forms.capacity import (
    capacity_of,
    drives_of,
    warnings_of,
)
from stripesim.scenarios.schema.checks import NO_BOUND, WANTED_BOUND
from stripesim.scenarios.schema.failure_checks import stands_alone
from stripesim.scenarios.schema.geometry import loads_with_keys
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.show.quantities import complete_rows
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.observe.progress import OnStep, silent


def run_scenario(
    scenario: Scenario,
    *,
    engine: str = "compiled",
    progress: OnStep = silent,
    costs: bool = True,
    first_full: bool = True,
    unchecked: bool = False,
) -> ScenarioResult:
    """Run all cells of a scenario, and audit their rows.

    Parameters
    ----------
    scenario
        The scenario.
    engine
        ``compiled`` or ``simpy``.
    progress
        Called with the name of each completed cell.
    costs
        Split the mean latency by step, which takes a second run of each cell.
    first_full
        Find the resource that saturates first as the rate grows.
    unchecked
        Keep the numbers of rows that the audit refuses. Otherwise they are null, and so is everything else
        that describes their run.

    Raises
    ------
    ScenarioError
        If the scenario has no workload.
    ValueError
        If a scheme does not fit on the cluster, or the run does not fit in memory.
    """
    _check_has_end(scenario)
    models = build_models(scenario)
    # Rejects images that do not fit, before the run.
    warnings = warnings_of(scenario, models)
    options = CellOptions(
        engine=engine, costs=costs, first_full=first_full, unchecked=unchecked
    )
    collected = Collected()
    stopped = False
    try:
        for cell, measured in run_cells(scenario, engine, models, unchecked=True):
            collected += collect_cell(scenario, cell, measured, models, options)
            progress(cell.name)
    except KeyboardInterrupt:
        # Keep the cells that are complete, if there are any.
        if not collected.rows:
            raise
        stopped = True
    return ScenarioResult(
        records=complete_rows(collected.rows),
        provenance=provenance_of(scenario, models, engine),
        completions_sha256=hashlib.sha256(collected.fingerprints).hexdigest(),
        requests=collected.requests,
        uses=collected.uses,
        engine_wall_s=collected.engine_wall_s,
        parameters=[
            *parameters_of(models),
            *recovery_parameters(scenario, models),
            *drives_of(scenario, models).parameters(),
        ],
        outside=outside_of(scenario),
        resources=collected.resources,
        timelines=collected.timelines,
        processors=collected.processors,
        latencies=collected.latencies,
        capacities=_capacities(scenario, models),
        holes=(
            *warnings,
            *dict.fromkeys(collected.unfinished),
            *collected.bursts,
            *length_warnings(scenario, collected.slow_cells),
            *growth_warnings(scenario, collected.growing_cells),
        ),
        stopped=stopped,
        limits=collected.limits,
        refusals=collected.refusals,
        unchecked=unchecked,
    )


def _capacities(scenario: Scenario, models: Models) -> Rows:
    """Return the capacity of each scheme for objects of the load's sizes, or nothing for images."""
    if not scenario.workload.is_s3:
        return []
    drives = drives_of(scenario, models)
    load = scenario.workload
    variants = [scenario]
    if load.size_shares is None:
        variants = [
            scenario.with_workload(object_sizes_bytes=(size,))
            for size in load.object_sizes_bytes
        ]
    rows = []
    for name in scenario.schemes:
        for variant in variants:
            held = capacity_of(variant, name, models, drives)
            stored = {
                "scheme": held.scheme,
                "object_bytes": round(variant.workload.mean_object_bytes),
                "stored_bytes_per_client_byte": held.stored_per_client_byte,
            }
            rows.append(stored | held.to_json())
    return rows


def _check_has_end(scenario: Scenario) -> None:
    """Reject a scenario without a workload, or with one that never ends."""
    if stands_alone(scenario):
        wanted = "a table [workload], or `stripesim durability` for [durability]"
        raise scenario.problem("workload", "nothing", wanted)
    for place, load in loads_with_keys(scenario):
        is_bounded = load.requests is not None or load.duration_s is not None
        if not is_bounded and load.kind != "trace":
            raise scenario.problem(f"{place}.requests", NO_BOUND, WANTED_BOUND)


def parameters_of(models: Models) -> list[dict[str, Any]]:
    """List the parameters of a cluster's models with their provenance."""
    return [
        parameter
        for name, model in models.described().items()
        for parameter in model.parameters(f"{name}.")
        if not isinstance(parameter["value"], list)
    ]


def recovery_parameters(scenario: Scenario, models: Models) -> list[dict[str, Any]]:
    """List the constants of detection and recovery of a scenario with failures, changes or a repair."""
    if not (scenario.faults or scenario.repair or scenario.changes):
        return []
    return list(limits_of(scenario).parameters("recovery."))


def provenance_of(scenario: Scenario, models: Models, engine: str) -> dict[str, Any]:
    """Return everything needed to reproduce the rows."""
    kernel = models.kernel.provenance
    measured_here = kernel.get("measured_here")
    return made_from(
        scenario,
        generation=scenario.generation,
        engine=engine,
        parameters=scenario.cluster.parameters,
        ssd=scenario.cluster.drive,
        kernel_table=models.kernel.name,
        kernel_cpu=kernel["cpu"],
        **({"kernel_measured_here": measured_here} if measured_here else {}),
    )


def advice_simulations(scenario: Scenario) -> int:
    """Return the largest number of runs that `advised` takes."""
    return doubling_runs(scenario) + step_runs(scenario)


def advised(
    result: ScenarioResult,
    scenario: Scenario,
    *,
    engine: str = "compiled",
    progress: OnStep = silent,
) -> ScenarioResult:
    """Return a result with the gains of purchases: each resource doubled, then the steps of each.

    Parameters
    ----------
    result
        The result of the scenario. One that was stopped, or has refused rows without their numbers, is
        returned as it is.
    scenario, engine, progress
        As for `run_scenario`.

    Raises
    ------
    ValueError
        If the scenario has too many cells.
    """
    if result.stopped or (result.refusals and not result.unchecked):
        return result
    gains = advise(scenario, engine=engine, progress=progress)
    steps = buying_curves(scenario, engine=engine, progress=progress)
    return replace(
        result,
        advice=[gain.to_json() for gain in gains],
        purchases=[step.to_json() for step in steps],
    )

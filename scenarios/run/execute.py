"""Run a scenario, cell by cell, and say how its rows came about."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from stripesim.scenarios.cells.failures import limits_of
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import (
    hole_warnings,
    kernel_warnings,
    load_sentences,
    made_from,
    pristine_warnings,
    warnings_of,
)
from stripesim.scenarios.cells.run import load_rows_of, row_of, run_cells
from stripesim.scenarios.planning.bound import bounds_of_cell
from stripesim.scenarios.planning.capacity import drives_of, storage_warnings
from stripesim.scenarios.run.costs import cell_costs
from stripesim.scenarios.run.results import rows_frame
from stripesim.scenarios.schema.failure_checks import stands_alone
from stripesim.scenarios.schema.keys import Cell, Scenario
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.run import RunResult

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class ScenarioResult:
    """All rows of a scenario."""

    #: One row per cell; see `stripesim.sim.observe.recording.describe` for what the columns mean
    rows: pl.DataFrame
    provenance: dict[str, Any]
    completions_sha256: str  #: Fingerprint of all completion times of all cells
    requests: int  #: Requests completed
    uses: int  #: Uses of resources completed
    engine_wall_s: float  #: Wall-clock time inside the engine [s]
    parameters: Rows  #: Every number with its provenance
    warnings: list[
        str
    ]  #: Where the scenario lies outside what its parameter set was calibrated on
    #: For each cell and class of resource: utilisation of its busiest member, share of waiting
    resources: Rows
    #: Of a scenario with faults, one for each row; see `stripesim.sim.ceph.failures.describe_faults`
    timelines: Rows = field(default_factory=list)
    #: Warnings of placement groups for which CRUSH has not found enough OSDs, and of reads of nothing
    holes: tuple[str, ...] = ()
    stopped: bool = False  #: Whether a KeyboardInterrupt ended the run: rows are of the cells that were done
    limits: tuple[
        tuple[dict[str, Any], ...], ...
    ] = ()  #: Of each row, the resources near their limit
    #: Of a run with advice, what each purchase brings; see `stripesim.scenarios.run.advise.Gain`
    advice: Rows = field(default_factory=list)
    #: Of each cell, the use of processors; see `stripesim.sim.observe.processors.processor_use`
    processors: Rows = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the document that ``stripesim run --json -`` prints."""
        rows = self.rows.to_dicts()
        document: dict[str, Any] = {
            "provenance": self.provenance,
            "rows": [
                {**row, "limits": near}
                for row, near in zip(rows, self.limits, strict=True)
            ],
            "completions_sha256": self.completions_sha256,
            "requests": self.requests,
            "uses": self.uses,
            "engine_wall_s": self.engine_wall_s,
            "warnings": [*self.warnings, *self.holes],
            "resources": self.resources,
            "processors": self.processors,
            "sentences": load_sentences(rows),
        }
        stopped = "interrupted" if self.stopped else ""
        further = {
            "stopped": stopped,
            "advice": self.advice,
            "timeline": self.timelines,
        }
        return document | {key: value for key, value in further.items() if value}


def run_scenario(
    scenario: Scenario,
    *,
    engine: str = "compiled",
    progress: Callable[[str], None] = lambda words: None,
    costs: bool = True,
    first_full: bool = True,
) -> ScenarioResult:
    """Run all cells of a scenario.

    `costs`: follow requests to split their mean latency, in a second run. `first_full`: name the resource
    that is full first as the rate grows.
    """
    if stands_alone(scenario):
        wanted = "a table [workload]; [durability] is answered by stripesim durability"
        raise scenario.problem("workload", "nothing", wanted)
    models = build_models(scenario)
    no_room = storage_warnings(scenario, models)
    resources: Rows = []
    rows: Rows = []
    timelines: Rows = []
    processors: Rows = []
    limits: list[tuple[dict[str, Any], ...]] = []
    fingerprint = hashlib.sha256()
    requests = uses = 0
    wall_s = 0.0
    stopped = False
    try:
        for cell, result in run_cells(scenario, engine, models):
            row = row_of(scenario, cell, result)
            found = [*load_rows_of(scenario, cell, result), row]
            if costs:
                # The requests followed are those of the first client; of several workloads, of the first.
                found[-1 - len(result.load_rows)] |= cell_costs(
                    scenario, cell, result, engine, models
                )
            rows += found
            limits += [result.limits] * len(found)
            requests += int(row["requests"])
            resources += [{**cell._asdict(), **vars(use)} for use in result.resources]
            use = {**cell._asdict(), **result.processors}
            if first_full:
                use["saturates_first"] = _first_full(scenario, cell, result, models)
            processors.append(use)
            if result.timeline is not None:
                timelines.append({**cell._asdict(), **result.timeline})
            fingerprint.update(bytes.fromhex(result.sha256))
            uses += result.uses
            wall_s += float(result.row["engine_wall_s"])
            progress(" ".join(str(part) for part in cell if part is not None))
    except KeyboardInterrupt:
        # Cells that are done are results; with none there is nothing to keep.
        if not rows:
            raise
        stopped = True
    return ScenarioResult(
        rows=rows_frame(rows),
        provenance=provenance_of(scenario, models, engine),
        completions_sha256=fingerprint.hexdigest(),
        requests=requests,
        uses=uses,
        engine_wall_s=wall_s,
        parameters=[
            *parameters_of(models),
            *recovery_parameters(scenario, models),
            *drives_of(scenario, models).parameters(),
        ],
        warnings=warnings_of(scenario),
        resources=resources,
        timelines=timelines,
        processors=processors,
        holes=(
            *hole_warnings(scenario),
            *no_room,
            *kernel_warnings(scenario),
            *pristine_warnings(scenario),
        ),
        stopped=stopped,
        limits=tuple(limits),
    )


def _first_full(
    scenario: Scenario, cell: Cell, result: RunResult, models: Models
) -> dict[str, Any] | None:
    """Return the resource that is full first as the rate of requests grows, and at which rate [1/s]."""
    if result.window is None:
        # Nothing completed, so there is no rate to compare with.
        return None
    rates = [row.get("iops", 0.0) for row in result.load_rows] or None
    bounds = bounds_of_cell(scenario, cell, models, rates=rates)
    if not bounds:
        return None
    utilisation = result.row["iops"] / bounds[0].iops
    return {
        "resource": bounds[0].resource,
        "utilisation": utilisation,
        "iops": bounds[0].iops,
    }


def parameters_of(models: Models) -> list[dict[str, Any]]:
    """List every number of a cluster's models with its provenance."""
    return [
        parameter
        for name, model in models.described().items()
        for parameter in model.parameters(f"{name}.")
        if not isinstance(parameter["value"], list)
    ]


def recovery_parameters(scenario: Scenario, models: Models) -> list[dict[str, Any]]:
    """List the constants of detection and recovery, where a scenario has faults or a repair."""
    if not (scenario.faults or scenario.repair or scenario.changes):
        return []
    return list(
        limits_of(scenario, rotational=models.ssd.rotational).parameters("recovery.")
    )


def provenance_of(scenario: Scenario, models: Models, engine: str) -> dict[str, Any]:
    """Say what gave the rows, so that they can be had again."""
    kernel = models.kernel.provenance
    measured_here = kernel.get("measured_here")
    made = made_from(
        scenario,
        generation=scenario.generation,
        engine=engine,
        parameters=scenario.cluster.parameters,
        ssd=scenario.cluster.ssd,
        kernel_table=models.kernel.name,
        kernel_cpu=kernel["cpu"],
        **({"kernel_measured_here": measured_here} if measured_here else {}),
    )
    return {**made, "configuration": scenario.model_dump(mode="json")}

"""Run a scenario, cell by cell, and say how its rows came about."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stripesim._version import __version__
from stripesim.scenarios.explain.costs import cell_costs
from stripesim.scenarios.run.build import build_models, hole_warnings, kernel_warnings, pristine_warnings
from stripesim.scenarios.run.cell import load_rows_of, row_of, run_cells
from stripesim.scenarios.run.failures import limits_of
from stripesim.scenarios.schema.durability_checks import stands_alone
from stripesim.scenarios.schema.keys import Scenario
from stripesim.sim.ceph.cluster import Models

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class ScenarioResult:
    """All rows of a scenario."""

    #: One row per cell; see `stripesim.sim.observe.recording.describe` for what the columns mean
    rows: pl.DataFrame
    provenance: dict[str, Any]
    completions_sha256: str  #: Fingerprint of all completion times of all cells
    #: `requests`, `uses`: requests completed, uses of resources completed
    requests: int
    uses: int
    engine_wall_s: float  #: Wall-clock time inside the engine [s]
    parameters: list[dict[str, Any]]  #: Every number with its provenance
    warnings: list[str]  #: Where the scenario lies outside what its parameter set was calibrated on
    #: For each cell and class of resource: utilisation of its busiest member and share of all waiting
    resources: list[dict[str, Any]]
    #: Of a scenario with faults, one for each row; see `stripesim.sim.ceph.failures.report.describe_faults`
    timelines: list[dict[str, Any]] = field(default_factory=list)
    #: Warnings of placement groups for which CRUSH has not found enough OSDs, and of reads of nothing
    holes: tuple[str, ...] = ()
    #: Whether a KeyboardInterrupt ended the run: rows are those of the cells that were done
    stopped: bool = False
    #: Of each row, the classes of resources near their limit
    limits: tuple[tuple[dict[str, Any], ...], ...] = ()
    #: Of a run with advice, what each purchase brings; see `stripesim.scenarios.run.advise.Gain`
    advice: list[dict[str, Any]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the document that ``stripesim run --json -`` prints."""
        from stripesim.scenarios.run.sentences import load_sentences

        document: dict[str, Any] = {
            "provenance": self.provenance,
            "rows": [
                {**row, "limits": limits}
                for row, limits in zip(self.rows.iter_rows(named=True), self.limits, strict=True)
            ],
            "completions_sha256": self.completions_sha256,
            "requests": self.requests,
            "uses": self.uses,
            "engine_wall_s": self.engine_wall_s,
            "warnings": [*self.warnings, *self.holes],
            "resources": self.resources,
            "sentences": load_sentences(self.rows.iter_rows(named=True)),
        }
        if self.stopped:
            document["stopped"] = "interrupted"
        if self.advice:
            document["advice"] = self.advice
        return {**document, "timeline": self.timelines} if self.timelines else document


def run_scenario(
    scenario: Scenario,
    *,
    engine: str = "compiled",
    progress: Callable[[str], None] | None = None,
    costs: bool = True,
) -> ScenarioResult:
    """Run all cells of a scenario."""
    from stripesim.scenarios.planning.capacity import drives_of, storage_warnings
    from stripesim.scenarios.run.calibrated import warnings_of
    from stripesim.scenarios.run.results import rows_frame

    if stands_alone(scenario):
        raise scenario.problem(
            "workload", "nothing", "a table [workload]; [durability] is answered by stripesim durability"
        )
    models = build_models(scenario)
    no_room = storage_warnings(scenario, models)
    resources: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    timelines: list[dict[str, Any]] = []
    fingerprint = hashlib.sha256()
    limits: list[tuple[dict[str, Any], ...]] = []
    requests = uses = 0
    wall_s = 0.0
    stopped = False
    try:
        for cell, result in run_cells(scenario, engine, models):
            row = row_of(scenario, cell, result)
            found = [*load_rows_of(scenario, cell, result), row]
            # The requests followed are those of the first client; of several workloads, of the first.
            found[-1 - len(result.load_rows)] |= (
                cell_costs(scenario, cell, result, engine, models) if costs else {}
            )
            rows += found
            limits += [result.limits] * len(found)
            requests += int(row["requests"])
            resources += [{**cell._asdict(), **vars(use)} for use in result.resources]
            if result.timeline is not None:
                timelines.append({**cell._asdict(), **result.timeline})
            fingerprint.update(bytes.fromhex(result.sha256))
            uses += result.uses
            wall_s += float(result.row["engine_wall_s"])
            if progress is not None:
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
        holes=(*hole_warnings(scenario), *no_room, *kernel_warnings(scenario), *pristine_warnings(scenario)),
        stopped=stopped,
        limits=tuple(limits),
    )


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
    if scenario.faults is None and scenario.repair is None:
        return []
    return list(limits_of(scenario, rotational=models.ssd.rotational).parameters("recovery."))


def provenance_of(scenario: Scenario, models: Models, engine: str) -> dict[str, Any]:
    """Say what gave the rows, so that they can be had again."""
    # Only here: no row depends on it.
    from stripesim.scenarios.run.stamp import where_and_when

    return {
        "stripesim": __version__,
        "scenario": scenario.name,
        "scenario_sha256": scenario.hash(),
        "seed": scenario.seed,
        "generation": scenario.generation,
        "engine": engine,
        "parameters": scenario.cluster.parameters,
        "ssd": scenario.cluster.ssd,
        "kernel_table": models.kernel.name,
        "kernel_cpu": models.kernel.provenance["cpu"],
        **where_and_when(),
        "configuration": scenario.model_dump(mode="json"),
    }

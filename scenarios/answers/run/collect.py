"""Collect what each cell contributes to the result of a scenario."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from stripesim.scenarios.answers.run.costs import cell_costs
from stripesim.scenarios.cells.bound import Bound, measured_bounds
from stripesim.scenarios.cells.failures import recovery_warnings
from stripesim.scenarios.cells.notes import (
    burst_warnings,
    latency_grows,
    slow_class,
)
from stripesim.scenarios.cells.run import load_rows_of, row_of
from stripesim.scenarios.schema.keys import Cell
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.observe.window import QUANTILES, latency_quantiles
from stripesim.sim.run import Run

Rows = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class CellOptions:
    """Requested results of each cell. `run_scenario` describes the fields."""

    engine: str
    costs: bool
    first_full: bool
    unchecked: bool


@dataclass(frozen=True, kw_only=True)
class Collected:
    """Contribution of cells to the result of their scenario. Contributions of several cells add up."""

    #: Completion times of each cell, as the bytes of their SHA-256
    fingerprints: bytes = b""
    requests: int = 0
    uses: int = 0
    engine_wall_s: float = 0.0
    rows: Rows = field(default_factory=list)
    #: Resources near their limit, by row; None where the audit refuses it
    limits: tuple[tuple[dict[str, Any], ...] | None, ...] = ()
    refusals: tuple[str, ...] = ()
    resources: Rows = field(default_factory=list)
    processors: Rows = field(default_factory=list)
    latencies: Rows = field(default_factory=list)
    timelines: Rows = field(default_factory=list)
    #: Warnings of recoveries that the run ends before
    unfinished: tuple[str, ...] = ()
    bursts: tuple[str, ...] = ()
    #: Cells whose quantiles may depend on their length, with the class that they wait for
    slow_cells: tuple[tuple[str, str], ...] = ()
    #: Cells whose open loops are too short for their load
    growing_cells: tuple[str, ...] = ()

    def __add__(self, other: Collected) -> Collected:
        """Return the contributions of the cells of both."""
        names = [one.name for one in fields(self)]
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        return Collected(**sums)


def collect_cell(
    scenario: Scenario,
    cell: Cell,
    result: Run,
    models: Models,
    options: CellOptions,
) -> Collected:
    """Return what a cell contributes. A run that the audit refuses contributes its name and its check."""
    own_rows = [*load_rows_of(scenario, cell, result), row_of(scenario, cell, result)]
    refusals = [row.refusal() for row in own_rows]
    collected = Collected(
        fingerprints=bytes.fromhex(result.sha256),
        requests=result.row.requests,
        uses=result.uses,
        engine_wall_s=result.row.engine_wall_s,
        rows=[row.as_dict(unchecked=options.unchecked) for row in own_rows],
        limits=(None,) * len(own_rows),
        refusals=tuple(text for text in refusals if text),
    )
    if result.refused is not None and not options.unchecked:
        return collected
    if options.costs:
        # Requests of the first client are followed, which belong to the first workload.
        collected.rows[0].update(
            cell_costs(scenario, cell, result, options.engine, models)
        )
    name = cell._asdict()
    bounds: tuple[Bound, ...] = ()
    if options.first_full or models.deferral is not None:
        bounds = measured_bounds(scenario, cell, models, result)
    saturates = _first_full(result, bounds)
    processors = {**name, **result.processors}
    if options.first_full:
        processors["saturates_first"] = saturates
    slow = slow_class(scenario, result)
    bursts = burst_warnings(scenario, cell, saturates, models)
    return replace(
        collected,
        limits=(result.limits,) * len(own_rows),
        resources=[{**name, **vars(use)} for use in result.resources],
        processors=[processors],
        latencies=[{**name, **one} for one in _distributions(result)],
        timelines=[{**name, **one} for one in (result.timeline,) if one is not None],
        unfinished=tuple(recovery_warnings(scenario, cell.scheme, result.row)),
        bursts=tuple(bursts),
        # The rate of a burst does depend on the length of its run.
        slow_cells=() if slow is None or bursts else ((cell.name, slow),),
        growing_cells=(cell.name,) if latency_grows(scenario, result) else (),
    )


def _distributions(result: Run) -> Rows:
    """Return the latencies of a run's requests as fractions and times [ns], unless none completed."""
    if result.window is None:
        return []
    latency_ns = latency_quantiles(result.window, result.requested)
    return [{"fractions": list(QUANTILES), "latency_ns": latency_ns}]


def _first_full(result: Run, bounds: Sequence[Bound]) -> dict[str, Any] | None:
    """Return the resource that saturates first as the rate of requests grows, and that rate [1/s]."""
    if not bounds or result.row.iops is None:
        return None
    first = bounds[0]
    return {
        "resource": first.resource,
        "utilisation": result.row.iops / first.iops,
        "iops": first.iops,
    }

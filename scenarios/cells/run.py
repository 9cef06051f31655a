"""Run one cell of a scenario, or all of them in turn."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from stripesim.models.problems import ScenarioError, StepsError
from stripesim.scenarios.cells.bound import within_bound
from stripesim.scenarios.cells.build import CellInputs, build_cell, check_schemes
from stripesim.scenarios.cells.failures import check_clients_meet_faults
from stripesim.scenarios.cells.longer import lengthened, long_enough
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.schema.keys import Cell, cells, load_cell, row_name
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.units import format_size
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.gateway.paths import LIST_GRAPH
from stripesim.sim.ceph.planner import CompiledGraphs
from stripesim.sim.engine.graph import STEPS_MAX, IntArray
from stripesim.sim.observe.audit import refuse
from stripesim.sim.observe.client_requests import ClientRequests
from stripesim.sim.observe.result_row import ResultRow
from stripesim.sim.observe.window import WARM_UP
from stripesim.sim.run import Run, simulate

#: Name of the row of several workloads together.
ALL_LOADS = "all"


@dataclass(frozen=True, kw_only=True)
class CellRow:
    """A result row: a cell of a scenario and the numbers of its run."""

    cell: Cell
    image: str  # State of the images before the run, as `workload.image` in a scenario.
    numbers: ResultRow
    # Columns with the latency that a trace recorded [ns], empty if it recorded none.
    recorded_latency: Mapping[str, float] = field(default_factory=dict)
    # Name of the workload, or `ALL_LOADS`. None if there is only one.
    workload: str | None = None

    def as_dict(self, *, unchecked: bool = False) -> dict[str, Any]:
        """Return the row as flat columns, in their order.

        The numbers of a refused row are null, unless `unchecked`.
        """
        numbers = self.numbers
        if not unchecked:
            numbers = numbers.withheld()
        flat = {
            **self.cell._asdict(),
            "image": self.image,
            **numbers.as_dict(),
            **self.recorded_latency,
        }
        if self.workload is not None:
            flat["workload"] = self.workload
        return flat

    def refusal(self) -> str | None:
        """Return the row's name and the check of the audit that refuses it, or None."""
        if self.numbers.refused is None:
            return None
        name = row_name({**self.cell._asdict(), "workload": self.workload})
        return f"{name}: {self.numbers.refused}"


class Repeat(NamedTuple):
    """Settings that repeat the beginning of a run."""

    engine: str
    until_ns: int  # End of the repetition [ns].
    followed: (
        IntArray  # Numbers of requests of the first stream whose steps are recorded.
    )


def run_cells(
    scenario: Scenario,
    engine: str,
    models: Models | None = None,
    *,
    unchecked: bool = False,
    graphs: dict[Cell, CompiledGraphs] | None = None,
) -> Iterator[tuple[Cell, Run]]:
    """Run the cells of a scenario one after another. `unchecked` is that of `run_cell`.

    `graphs` holds the op graphs of each cell, for other seeds of the scenario.
    """
    models = models or build_models(scenario)
    check_schemes(scenario, models)
    graphs = {} if graphs is None else graphs
    for cell in cells(scenario):
        compiled = graphs.setdefault(cell, {})
        yield (
            cell,
            run_cell(
                scenario, cell, engine, models, unchecked=unchecked, compiled=compiled
            ),
        )


def run_cell(
    scenario: Scenario,
    cell: Cell,
    engine: str,
    models: Models | None = None,
    *,
    unchecked: bool = False,
    compiled: CompiledGraphs | None = None,
    is_step: bool = False,
) -> Run:
    """Run one cell. Closed loops too short for the audit run longer, see `stripesim.scenarios.cells.longer`.

    With `unchecked`, a result that the audit refuses is returned as well; the caller withholds or marks its
    numbers. `compiled` are the op graphs of a run that differs in nothing but its seed. `is_step` is that of
    `long_enough`.

    Raises
    ------
    RefusedError
        If the audit refuses the result.
    """
    models = models or build_models(scenario)
    try:
        _check_duration(scenario, cell, engine, models)
        _check_clients_meet_faults(scenario, cell, engine, models)
        inputs = build_cell(scenario, cell, models)
        result = long_enough(
            inputs,
            lambda inputs, compiled: _simulated(
                scenario, inputs, engine, compiled=compiled
            ),
            lambda result: within_bound(scenario, cell, models, result),
            compiled=compiled,
            is_step=is_step,
        )
    except StepsError as error:
        raise steps_problem(scenario, cell.scheme, error) from None
    if result.refused is not None and not unchecked:
        refuse(f"{cell.name}: {result.refused}")
    return result


def repeat_cell(
    scenario: Scenario,
    cell: Cell,
    models: Models,
    result: Run,
    repeat: Repeat,
) -> Run:
    """Repeat the beginning of a run, and follow the steps of some of its requests. No audit refuses it.

    `models` are those of the run.
    """
    inputs = build_cell(scenario, cell, models)
    begun = replace(
        inputs,
        workload=lengthened(inputs.workload, result.length),
        until_ns=repeat.until_ns,
    )
    repeated = _simulated(
        scenario,
        begun,
        repeat.engine,
        compiled=result.compiled,
        followed=repeat.followed,
    )
    return replace(repeated, length=result.length)


def _simulated(
    scenario: Scenario,
    inputs: CellInputs,
    engine: str,
    *,
    compiled: CompiledGraphs | None = None,
    followed: IntArray | None = None,
) -> Run:
    """Simulate a cell."""
    return simulate(
        **vars(inputs),
        seed=scenario.seed,
        engine=engine,
        followed=followed,
        warm_up=WARM_UP,
        compiled=compiled,
    )


def _check_duration(
    scenario: Scenario, cell: Cell, engine: str, models: Models
) -> None:
    """Refuse closed loops that issue more requests in their time than fit in memory."""
    if scenario.duration_s is None:
        return
    # Imported here because it affects no row; sweeps fingerprint the modules that do.
    from stripesim.scenarios.cells.length import check_length

    def issued_until(until_ns: int) -> int:
        inputs = replace(build_cell(scenario, cell, models), until_ns=until_ns)
        return len(_simulated(scenario, inputs, engine).requested.issued_ns)

    check_length(scenario, cell, issued_until)


def _check_clients_meet_faults(
    scenario: Scenario, cell: Cell, engine: str, models: Models
) -> None:
    """Refuse a run whose requests all end before its first fault."""

    def requested_until(until_ns: int) -> ClientRequests:
        inputs = build_cell(scenario, cell, models)
        without = replace(inputs, faults=None, timeout_ns=0, until_ns=until_ns)
        return _simulated(scenario, without, engine).requested

    check_clients_meet_faults(scenario, requested_until)


def steps_problem(scenario: Scenario, scheme: str, error: StepsError) -> ScenarioError:
    """Return the error for too many shards of a scheme or bucket, or objects too large, for one graph."""
    (graph,) = error.problems
    taken = f"{scheme}, which takes {graph.got} ({graph.place})"
    if scenario.workload.is_s3 and graph.place == LIST_GRAPH:
        got = f"{scenario.workload.index_shards} with {taken}"
        wanted = f"fewer index shards: a request has at most {STEPS_MAX} steps"
        return scenario.problem("workload.index_shards", got, wanted)
    if scenario.workload.is_s3:
        largest = format_size(max(scenario.workload.object_sizes_bytes))
        got = f"{largest} with {taken}"
        smaller = "smaller objects, or parts (workload.multipart_threshold_bytes)"
        if scenario.workload.multipart_threshold_bytes is not None:
            smaller = "smaller objects or workload.part_size_bytes"
        wanted = f"{smaller}: a request has at most {STEPS_MAX} steps"
        return scenario.problem("workload.object_sizes_bytes", got, wanted)
    key = f"schemes.{scenario.schemes.index(scheme)}"
    wanted = f"a scheme of fewer shards: an operation has at most {STEPS_MAX} steps"
    return scenario.problem(key, taken, wanted)


def row_of(scenario: Scenario, cell: Cell, result: Run) -> CellRow:
    """Return the result row of a cell, over all its workloads."""
    recorded: dict[str, float] = {}
    if scenario.workload.kind == "trace":
        from stripesim.scenarios.cells.replay import recorded_latency

        recorded = recorded_latency(scenario)
    return CellRow(
        cell=cell,
        image=scenario.workload.image,
        numbers=result.row,
        recorded_latency=recorded,
        workload=ALL_LOADS if result.load_rows else None,
    )


def load_rows_of(scenario: Scenario, cell: Cell, result: Run) -> list[CellRow]:
    """Return a row for each workload of a cell that has several, in addition to that of `row_of`."""
    if not result.load_rows:
        return []
    return [
        CellRow(
            cell=load_cell(cell.scheme, load),
            image=scenario.workload.image,
            numbers=numbers,
            workload=named.name,
        )
        for named, load, numbers in zip(
            scenario.workloads, scenario.loads, result.load_rows, strict=True
        )
    ]

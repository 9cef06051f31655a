"""Run one cell of a scenario, or all of them in turn."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from stripesim.scenarios.cells.build import build_cell, check_schemes
from stripesim.scenarios.cells.longer import can_lengthen, lengthened, next_length
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.schema.keys import Cell, Scenario, cells, load_cell
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.planner import CompiledGraphs
from stripesim.sim.engine.graph import STEPS_MAX, IntArray, StepsError
from stripesim.sim.observe.result_row import ResultRow
from stripesim.sim.observe.window import WARM_UP
from stripesim.sim.run import RunResult, simulate

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

    def as_dict(self) -> dict[str, Any]:
        """Return the row as flat columns, in their order."""
        flat = {
            **self.cell._asdict(),
            "image": self.image,
            **self.numbers.as_dict(),
            **self.recorded_latency,
        }
        if self.workload is not None:
            flat["workload"] = self.workload
        return flat


def run_cells(
    scenario: Scenario, engine: str, models: Models | None = None
) -> Iterator[tuple[Cell, RunResult]]:
    """Run the cells of a scenario one after another."""
    models = models or build_models(scenario)
    check_schemes(scenario, models)
    for cell in cells(scenario):
        yield cell, run_cell(scenario, cell, engine, models)


def run_cell(
    scenario: Scenario,
    cell: Cell,
    engine: str,
    models: Models | None = None,
    *,
    until_ns: int | None = None,
    followed: IntArray | None = None,
    compiled: CompiledGraphs | None = None,
    length: int | None = None,
) -> RunResult:
    """Run one cell, at most until `until_ns`, and follow the steps of the `followed` requests.

    `compiled` holds the graphs of an earlier run of the cell. `length` multiplies the requests of closed
    loops. Without it, a run that is too short to measure is lengthened: see `lengths`.
    """
    if until_ns is None and scenario.duration_s is not None:
        # Imported here because it affects no row; sweeps fingerprint the modules that do.
        from stripesim.scenarios.cells.length import check_length

        check_length(
            scenario,
            cell,
            lambda end_ns: _issued(scenario, cell, engine, models, end_ns),
        )
    built = build_cell(scenario, cell, models)

    def run_of(length: int, compiled: CompiledGraphs | None) -> RunResult:
        workload = lengthened(built.workload, length)
        inputs = {**vars(built), "workload": workload}
        if until_ns is not None:
            inputs["until_ns"] = until_ns
        result = simulate(
            **inputs,
            seed=scenario.seed,
            engine=engine,
            followed=followed,
            warm_up=WARM_UP,
            compiled=compiled,
        )
        return replace(result, length=length)

    try:
        result = run_of(length or 1, compiled)
        if length is None and until_ns is None and can_lengthen(built):
            while (longer := next_length(result)) is not None:
                result = run_of(longer, result.compiled)
        return result
    except StepsError as error:
        raise steps_problem(scenario, cell.scheme, error) from None


def steps_problem(scenario: Scenario, scheme: str, error: StepsError) -> ValueError:
    """Return the error for a scheme with too many shards, and so too many steps in an operation."""
    key = f"schemes.{scenario.schemes.index(scheme)}"
    got = f"{scheme}, which takes {error.steps} steps ({error.name})"
    wanted = f"a scheme of fewer shards: an operation has at most {STEPS_MAX} steps"
    return scenario.problem(key, got, wanted)


def _issued(
    scenario: Scenario, cell: Cell, engine: str, models: Models | None, until_ns: int
) -> int:
    """Count the requests that a cell issues until a time."""
    return len(
        run_cell(scenario, cell, engine, models, until_ns=until_ns).requested.issued_ns
    )


def row_of(scenario: Scenario, cell: Cell, result: RunResult) -> CellRow:
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


def load_rows_of(scenario: Scenario, cell: Cell, result: RunResult) -> list[CellRow]:
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

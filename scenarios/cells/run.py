"""Run one cell of a scenario, or all of them in turn."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from stripesim.models.problems import RefusedError, StepsError
from stripesim.scenarios.cells.build import build_cell, check_schemes
from stripesim.scenarios.cells.failures import check_clients_meet_faults
from stripesim.scenarios.cells.longer import can_lengthen, lengthened, next_length
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.schema.keys import Cell, Scenario, cells, load_cell
from stripesim.scenarios.schema.units import format_size
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.planner import CompiledGraphs
from stripesim.sim.engine.graph import STEPS_MAX, IntArray
from stripesim.sim.observe.client_requests import ClientRequests
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
        return f"{_name(self.cell, self.workload)}: {self.numbers.refused}"


def _name(cell: Cell, workload: str | None = None) -> str:
    """Name a row by its cell, such as ``rep:3 write rand 4KiB``."""
    parts = [cell.scheme, cell.op, cell.pattern]
    if cell.block_size_bytes is not None:
        parts.append(format_size(cell.block_size_bytes))
    if workload is not None:
        parts.append(workload)
    return " ".join(dict.fromkeys(parts))


def run_cells(
    scenario: Scenario,
    engine: str,
    models: Models | None = None,
    *,
    unchecked: bool = False,
) -> Iterator[tuple[Cell, RunResult]]:
    """Run the cells of a scenario one after another. `unchecked` is that of `run_cell`."""
    models = models or build_models(scenario)
    check_schemes(scenario, models)
    for cell in cells(scenario):
        yield cell, run_cell(scenario, cell, engine, models, unchecked=unchecked)


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
    unchecked: bool = False,
) -> RunResult:
    """Run one cell, at most until `until_ns`, and follow the steps of the `followed` requests.

    `compiled` holds the graphs of an earlier run of the cell. `length` multiplies the requests of closed
    loops. Without it, a run that is too short is lengthened, see `stripesim.scenarios.cells.longer`.
    With `unchecked`, a result that the audit refuses is returned as well; the caller withholds or marks its
    numbers.

    Raises
    ------
    RefusedError
        If the audit refuses the result.
    """
    if until_ns is None and scenario.duration_s is not None:
        # Imported here because it affects no row; sweeps fingerprint the modules that do.
        from stripesim.scenarios.cells.length import check_length

        check_length(
            scenario,
            cell,
            lambda end_ns: _issued(scenario, cell, engine, models, end_ns),
        )
    if until_ns is None:
        check_clients_meet_faults(
            scenario,
            lambda end_ns: _without_faults(scenario, cell, engine, models, end_ns),
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
    except StepsError as error:
        raise steps_problem(scenario, cell.scheme, error) from None
    if result.refused is not None and not unchecked:
        raise RefusedError(f"{_name(cell)}: {result.refused}")
    return result


def steps_problem(scenario: Scenario, scheme: str, error: StepsError) -> ValueError:
    """Return the error for a scheme with too many shards, or objects too large, for one graph."""
    if scenario.workload.is_s3:
        largest = format_size(max(scenario.workload.object_sizes_bytes))
        got = f"{largest} with {scheme}, which takes {error.steps} steps ({error.name})"
        wanted = f"smaller objects: a request has at most {STEPS_MAX} steps"
        return scenario.problem("workload.object_sizes_bytes", got, wanted)
    key = f"schemes.{scenario.schemes.index(scheme)}"
    got = f"{scheme}, which takes {error.steps} steps ({error.name})"
    wanted = f"a scheme of fewer shards: an operation has at most {STEPS_MAX} steps"
    return scenario.problem(key, got, wanted)


def _without_faults(
    scenario: Scenario, cell: Cell, engine: str, models: Models | None, until_ns: int
) -> ClientRequests:
    """Return the requests of a cell until a time, without its faults."""
    inputs = vars(build_cell(scenario, cell, models))
    inputs |= {"faults": None, "timeout_ns": 0, "until_ns": until_ns}
    return simulate(**inputs, seed=scenario.seed, engine=engine).requested


def _issued(
    scenario: Scenario, cell: Cell, engine: str, models: Models | None, until_ns: int
) -> int:
    """Count the requests that a cell issues until a time."""
    pilot = run_cell(scenario, cell, engine, models, until_ns=until_ns, unchecked=True)
    return len(pilot.requested.issued_ns)


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

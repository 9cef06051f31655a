"""Run one cell of a scenario, or all of them in turn."""

from collections.abc import Iterator
from typing import Any

from stripesim.scenarios.cells.build import build_cell, check_schemes
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.schema.keys import Cell, Scenario, cells, load_cell
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.engine.graph import STEPS_MAX, IntArray, StepsError
from stripesim.sim.observe.window import WARM_UP
from stripesim.sim.run import RunResult, simulate

#: Name of the row of several workloads together.
ALL_LOADS = "all"


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
) -> RunResult:
    """Run one cell; `until_ns` bounds it before the scenario does, `followed` are requests to follow."""
    if until_ns is None and scenario.duration_s is not None:
        # Imported here, because it changes no row: the source of rows is fingerprinted.
        from stripesim.scenarios.cells.length import check_length

        check_length(
            scenario,
            cell,
            lambda end_ns: _issued(scenario, cell, engine, models, end_ns),
        )
    inputs = vars(build_cell(scenario, cell, models))
    if until_ns is not None:
        inputs = {**inputs, "until_ns": until_ns}
    try:
        return simulate(
            **inputs,
            seed=scenario.seed,
            engine=engine,
            followed=followed,
            warm_up=WARM_UP,
        )
    except StepsError as error:
        raise steps_problem(scenario, cell.scheme, error) from None


def steps_problem(scenario: Scenario, scheme: str, error: StepsError) -> ValueError:
    """Make the error of a scheme of so many shards that an operation has too many steps."""
    key = f"schemes.{scenario.schemes.index(scheme)}"
    got = f"{scheme}, which takes {error.steps} steps ({error.name})"
    wanted = f"a scheme of fewer shards: an operation has at most {STEPS_MAX} steps"
    return scenario.problem(key, got, wanted)


def _issued(
    scenario: Scenario, cell: Cell, engine: str, models: Models | None, until_ns: int
) -> int:
    """Count the requests that a cell issues in its first time."""
    return len(
        run_cell(scenario, cell, engine, models, until_ns=until_ns).requested.issued_ns
    )


def row_of(scenario: Scenario, cell: Cell, result: RunResult) -> dict[str, Any]:
    """Return a result row: the cell's coordinates and what came of it."""
    row = {**cell._asdict(), "image": scenario.workload.image, **result.row}
    if scenario.workload.kind == "trace":
        from stripesim.scenarios.cells.replay import recorded_latency

        row |= recorded_latency(scenario)
    if result.load_rows:
        row["workload"] = ALL_LOADS
    return row


def load_rows_of(
    scenario: Scenario, cell: Cell, result: RunResult
) -> list[dict[str, Any]]:
    """Return a row for each of several workloads; `row_of` is all of them together."""
    if not result.load_rows:
        return []
    common = {
        "image": scenario.workload.image,
        "engine_wall_s": result.row["engine_wall_s"],
    }
    return [
        {
            **load_cell(cell.scheme, load)._asdict(),
            **row,
            **common,
            "workload": named.name,
        }
        for named, load, row in zip(
            scenario.workloads, scenario.loads, result.load_rows, strict=True
        )
    ]

"""Run tasks of a sweep, one by one or in batches. This module loads the engine."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, lru_cache
from time import thread_time
from typing import Any, NamedTuple

from stripesim.models.documents import without_numpy
from stripesim.models.problems import first_problem
from stripesim.scenarios.cells.build import throttle_within_reach
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import row_warnings
from stripesim.scenarios.cells.run import row_of, run_cell
from stripesim.scenarios.forms.capacity import warnings_of
from stripesim.scenarios.schema.keys import (
    DegradedSpec,
    LoadSpec,
    WorkloadSpec,
    cells,
)
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.work.task import (
    BATCH_S,
    Batch,
    CompletedBatch,
    EndedTask,
    ModelsKey,
    SweepTask,
    make_task,
    models_key,
    models_of,
)
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.planner import CompiledGraphs
from stripesim.sim.observe.window import unsteady_reason


@cache
def load_engine() -> None:
    """Run a small task, which loads all that tasks use, and compiles it if nothing is in the cache.

    A failure shows again in each worker, which reports it.
    """
    with suppress(Exception):
        small = Scenario(schemes=("rep:3",), workload=WorkloadSpec(requests=20))
        run_task(make_task(small, cells(small)[0], swept={}))


def compile_engine() -> None:
    """Compile the engine if it came without machine code, since each worker would do so.

    Otherwise each worker loads what it uses, which takes less time than a small task.
    """
    from stripesim.sim.engine.compiled.kernel import run_machine

    if not run_machine.is_ready:
        load_engine()


def run_task(task: SweepTask) -> dict[str, Any]:
    """Run a task and return its row.

    Raises
    ------
    ValueError
        If the source, the models or the files differ from those at the time of planning.
    """
    models = models_of(task)
    # Rejects images that do not fit, before the run.
    warnings = _warnings(_of_any_amount(task.scenario), task.files)
    result = run_cell(
        task.scenario,
        task.cell,
        task.engine,
        models,
        unchecked=True,
        compiled=_graphs_of(task, models),
    )
    reason = unsteady_reason(
        result.requested.issued_ns - result.requested.ages_ns,
        result.requested.completed_ns,
        end_ns=result.engine_run.end_ns,
    )
    row = {
        # The store keeps the numbers of refused rows, marked. The tables withhold them.
        **row_of(task.scenario, task.cell, result).as_dict(unchecked=True),
        "replication": task.replication,
        "seed": task.scenario.seed,
        "completions_sha256": result.sha256,
        "steady": reason is None,
        "unsteady_reason": reason,
        "warnings": [*warnings, *row_warnings(task.scenario, result)] or None,
    }
    return {name: without_numpy(value) for name, value in row.items()}


def attempt(task: SweepTask) -> EndedTask:
    """Run a task. Return errors as text, since some exceptions cannot be sent between processes."""
    try:
        return EndedTask(task, run_task(task), None)
    except (ValueError, OSError) as error:
        return EndedTask(task, None, first_problem(error))
    except Exception as error:
        # A bug in one cell must not lose the rows of the others.
        return EndedTask(task, None, f"{type(error).__name__}: {first_problem(error)}")


def attempt_all(tasks: Iterable[SweepTask]) -> Iterator[list[EndedTask]]:
    """Run tasks one after another, and yield those of each tenth of a second together."""
    ended = []
    start_s = thread_time()
    for task in tasks:
        ended.append(attempt(task))
        if thread_time() - start_s >= BATCH_S:
            yield ended
            ended = []
            start_s = thread_time()
    if ended:
        yield ended


def attempt_batch(batch: Batch) -> CompletedBatch:
    """Run the tasks of a batch one after another."""
    rows = []
    reasons = []
    longest_s = 0.0
    for task in batch:
        start_s = thread_time()
        outcome = attempt(task)
        longest_s = max(longest_s, thread_time() - start_s)
        rows.append(outcome.row)
        reasons.append(outcome.reason)
    return CompletedBatch(rows, reasons, longest_s)


class _GraphsKey(NamedTuple):
    """All that the op graphs of a scenario's requests depend on: its pool and its images."""

    asked: ModelsKey
    models: str  # SHA-256 of the values in the models.
    # SHA-256 of each file. The sites of a CRUSH map set the distances.
    files: tuple[str, ...]
    has_throttle: bool
    degraded: DegradedSpec | None
    workload: WorkloadSpec
    workloads: tuple[LoadSpec, ...]


def _graphs_of(task: SweepTask, models: Models) -> CompiledGraphs | None:
    """Return the op graphs that earlier tasks have built and that this one need not build again.

    Points that differ in queue depth, number of requests or seed have the same graphs. In runs with changes,
    few requests would have them in common.
    """
    scenario = task.scenario
    if scenario.changes_during_run:
        return None
    throttle = throttle_within_reach(scenario, models)
    return _graphs(
        _GraphsKey(
            models_key(scenario, task.cell.scheme),
            task.models,
            task.files,
            throttle is not None,
            scenario.degraded,
            _of_any_amount(scenario).workload,
            scenario.workloads,
        )
    )


@lru_cache(maxsize=64)
def _graphs(key: _GraphsKey) -> CompiledGraphs:
    """Return the op graphs of a pool, to which its runs add theirs."""
    return {}


def _of_any_amount(scenario: Scenario) -> Scenario:
    """Return what is common to scenarios that differ in queue depth, number of requests or seed.

    The number of requests of a trace stays: it says which part of the trace is replayed.
    """
    load = scenario.workload.replaced(queue_depth=1)
    if load.kind != "trace":
        load = load.replaced(requests=None)
    return scenario.replaced(workload=load, seed=0)


@lru_cache(maxsize=64)
def _warnings(scenario: Scenario, files: tuple[str, ...]) -> list[str]:
    """Return the warnings of a task, except those of the calibrated range. They depend on its files."""
    return warnings_of(scenario, build_models(scenario))

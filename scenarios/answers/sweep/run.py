"""Run the tasks of a sweep, store each row as it comes, and build the tables."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from stripesim._version import __version__
from stripesim.models.problems import WorkError
from stripesim.scenarios.answers.sweep.answer import INTERRUPTED, SweepResult
from stripesim.scenarios.answers.sweep.plan import SweepPlan
from stripesim.scenarios.answers.sweep.stats import CELL_COLUMNS, aggregate
from stripesim.scenarios.cells.notes import (
    code_files,
    outside_of_all,
    where_and_when,
)
from stripesim.scenarios.show.quantities import RESULT_SCHEMA, rows_frame
from stripesim.scenarios.work.dask import TIMEOUT_S, run_dask
from stripesim.scenarios.work.pool import cores_usable, run_pool
from stripesim.scenarios.work.store import PartStore
from stripesim.scenarios.work.task import (
    Batches,
    CompletedBatch,
    EndedTask,
    SweepTask,
    attempt,
    attempt_batch,
    code_sha256,
    expected_work,
)
from stripesim.sim.observe.audit import RatePoint, falls
from stripesim.sim.observe.progress import OnStep, silent
from stripesim.sim.observe.result_row import withheld_columns

if TYPE_CHECKING:
    from stripesim.scenarios.show.figures.renderer import CaptionedFigure

# Columns of a refused row that keep their values: its point, cell and task.
_OF_TASK: Final = (
    *CELL_COLUMNS,
    "image",
    "replication",
    "seed",
    "completions_sha256",
    "steady",
    "unsteady_reason",
)
# Keys of which a larger value only adds hardware or requests in flight.
_ADDING_KEYS: Final = (
    "cluster.hosts",
    "cluster.osds_per_host",
    "cluster.cores_per_host",
    "cluster.client_cores",
    "cluster.public_gbit_per_s",
    "cluster.private_gbit_per_s",
    "client.threads",
    "workload.clients",
    "workload.queue_depth",
)


def run_sweep(
    plan: SweepPlan,
    *,
    jobs: int | None = None,
    dask: str | None = None,
    dask_timeout_s: float = TIMEOUT_S,
    store: PartStore | None = None,
    progress: OnStep = silent,
    unchecked: bool = False,
    metric: str = "throughput_bytes_per_s",
) -> SweepResult:
    """Run the tasks of a plan that have no stored rows, by replication and then the longest first.

    Parameters
    ----------
    plan
        The tasks.
    jobs
        Number of worker processes. Defaults to one per core.
    dask
        Address of a Dask scheduler to use instead of processes.
    dask_timeout_s
        Time to wait for new workers after all are gone [s].
    store
        Rows on disk, from which the sweep resumes and to which it adds new rows.
    progress
        Called after each task with its description.
    unchecked
        Keep the numbers of rows that the audit refuses. The store has them in any case.
    metric
        Column that the figure shows.
    """
    stored = {} if store is None else store.rows
    done = _EndedTasks(
        {
            task.task_id: stored[task.task_id]
            for task in plan.tasks
            if task.task_id in stored
        }
    )
    kept = len(done.rows)
    missing = [task for task in plan.tasks if task.task_id not in done.rows]
    # So that no worker starts a long task when the others are done.
    missing.sort(key=lambda task: (task.replication, -expected_work(task)))
    try:
        with closing(_outcomes(missing, jobs, dask, dask_timeout_s)) as outcomes:
            for outcome in outcomes:
                done.add(outcome, store)
                progress(outcome.words)
    except KeyboardInterrupt:
        done.stopped = INTERRUPTED
    except WorkError as error:
        done.stopped = str(error)
    return _result(plan, done, store, kept=kept, unchecked=unchecked, metric=metric)


@dataclass
class _EndedTasks:
    """The tasks of a sweep that have ended."""

    rows: dict[str, dict[str, Any]]  # by name of the task
    failed: list[EndedTask] = field(default_factory=list)
    stopped: str | None = None  # Reason why the sweep ended early.

    def add(self, outcome: EndedTask, store: PartStore | None) -> None:
        """Keep the outcome of a task, and store its row if it has one."""
        if outcome.row is None:
            self.failed.append(outcome)
            return
        if store is not None:
            store.add(outcome.task, outcome.row)
        self.rows[outcome.task.task_id] = outcome.row


def _result(
    plan: SweepPlan,
    done: _EndedTasks,
    store: PartStore | None,
    *,
    kept: int,
    unchecked: bool,
    metric: str,
) -> SweepResult:
    """Build the tables of the tasks that have ended, without the numbers of refused rows."""
    order = {task.task_id: index for index, task in enumerate(plan.tasks)}
    failed = sorted(done.failed, key=lambda outcome: order[outcome.task.task_id])
    refusals = [
        f"{task.label}: {done.rows[task.task_id]['refused']}"
        for task in plan.tasks
        if done.rows.get(task.task_id, {}).get("refused") is not None
    ]
    rows = done.rows
    if not unchecked:
        rows = {
            task_id: withheld_columns(row, others=_OF_TASK)
            for task_id, row in rows.items()
        }
    frame = sweep_frame(plan, rows)
    aggregated = aggregate(frame, plan.keys)
    counts = {
        "tasks": len(plan.tasks),
        "rows": len(rows),
        "refused": len(refusals),
        "kept": kept,
        "executed": len(rows) - kept,
        "failed": len(failed),
        "stopped": done.stopped,
    }
    result = SweepResult(
        plan=plan,
        rows=frame,
        aggregated=aggregated,
        failed=list(map(_failure_row, failed)),
        damaged=0 if store is None else store.damaged,
        stopped=done.stopped,
        provenance=_provenance(plan, counts),
        outside=outside_of_all(task.scenario for task in plan.tasks),
        refusals=refusals,
        falls=list(_falls(aggregated, plan.keys)),
        unchecked=unchecked,
        draw=cache(partial(_draw, aggregated, plan.keys, metric)),
        folder=None if store is None else store.out_dir,
    )
    return replace(result, page=partial(_page, result))


def _page(result: SweepResult) -> str:
    from stripesim.scenarios.answers.sweep.report import report_of_sweep

    return report_of_sweep(result.plan, result, result.draw())


def _draw(
    aggregated: pl.DataFrame, keys: Sequence[str], metric: str
) -> CaptionedFigure | None:
    # Matplotlib loads here, because many sweeps draw nothing.
    from stripesim.scenarios.answers.sweep.figures import draw_sweep

    return draw_sweep(aggregated, keys, metric=metric)


def _falls(aggregated: pl.DataFrame, keys: Sequence[str]) -> Iterator[str]:
    """Yield a warning for each step of a key that adds something, and at which the rate falls."""
    for key in keys:
        if key not in _ADDING_KEYS or not aggregated.schema[key].is_numeric():
            continue
        others = [name for name in (*keys, *CELL_COLUMNS) if name != key]
        shown = aggregated.filter(pl.col("iops").is_not_null()).sort(key)
        for group, rows in shown.group_by(others, maintain_order=True):
            name = " ".join(str(part) for part in group if part is not None)
            points = [
                RatePoint(f"{key}={row[key]}", row["iops"], _half(row))
                for row in rows.iter_rows(named=True)
            ]
            for fall in falls(points):
                yield f"{name}: {fall}"


def _half(row: Mapping[str, Any]) -> float:
    """Return half the width of the interval of a mean rate, 0 without one [1/s]."""
    low = row["iops_ci_low"]
    high = row["iops_ci_high"]
    if low is None or high is None:
        return 0.0
    return float(high - low) / 2


def sweep_frame(plan: SweepPlan, rows: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
    """Build the table of a sweep, in the order of the plan."""
    frame = rows_frame(
        {**task.swept, **rows[task.task_id], "task": task.task_id}
        for task in plan.tasks
        if task.task_id in rows
    )
    first = [*plan.keys, "replication", "seed"]
    # Drop columns without values, which stored rows lack.
    further = sorted(
        name
        for name in frame.columns
        if name not in RESULT_SCHEMA
        and name not in first
        and frame[name].null_count() < frame.height
    )
    missing = [pl.lit(None).alias(name) for name in first if name not in frame.columns]
    return frame.with_columns(missing).select(*first, *RESULT_SCHEMA, *further)


def _outcomes(
    tasks: Sequence[SweepTask],
    jobs: int | None,
    dask: str | None,
    dask_timeout_s: float,
) -> Generator[EndedTask, None, None]:
    if not tasks:
        return
    if dask is not None:
        yield from run_dask(tasks, dask, dask_timeout_s)
        return
    processes = min(cores_usable() if jobs is None else jobs, len(tasks))
    if processes == 1:
        yield from map(attempt, tasks)
        return
    batches = Batches(tasks, processes)
    waiting = deque(batches.first)
    with closing(run_pool(attempt_batch, waiting, jobs=processes)) as answers:
        for batch, answer in answers:
            if isinstance(answer, CompletedBatch):
                yield from answer.outcomes(batch)
                waiting.extend(batches.rest_after(answer.duration_s))
            else:
                outcomes, more = batches.after_death(batch, answer.reason)
                yield from outcomes
                waiting.extend(more)


def _failure_row(outcome: EndedTask) -> dict[str, Any]:
    task = outcome.task
    return {
        **task.swept,
        **task.cell._asdict(),
        "replication": task.replication,
        "task": task.task_id,
        "reason": outcome.reason,
    }


def _provenance(plan: SweepPlan, counts: Mapping[str, Any]) -> dict[str, Any]:
    first = plan.tasks[0]
    return {
        "stripesim": __version__,
        "code_sha256": code_sha256(),
        "scenario": plan.name,
        "seed": plan.scenario.seed,
        "engine": first.engine,
        "replications": plan.replications,
        "points": plan.points,
        "sweep": {**plan.asked, **counts},
        **code_files(plan.scenario),
        **where_and_when(),
        # Swept keys have the values of the first point.
        "configuration": plan.scenario.model_dump(mode="json"),
    }

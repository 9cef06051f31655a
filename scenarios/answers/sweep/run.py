"""Run the tasks of a sweep, and store each row as it comes."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import closing
from importlib import import_module
from typing import TYPE_CHECKING

from stripesim.models.problems import WorkError
from stripesim.scenarios.answers.sweep.ended import INTERRUPTED, EndedTasks
from stripesim.scenarios.answers.sweep.plan import SweepPlan
from stripesim.scenarios.work.dask import TIMEOUT_S, run_dask
from stripesim.scenarios.work.pool import held, run_pool, workers_wanted
from stripesim.scenarios.work.task import (
    Batches,
    CompletedBatch,
    EndedTask,
    SweepTask,
    expected_work,
)
from stripesim.sim.observe.progress import OnStep, silent

if TYPE_CHECKING:
    from stripesim.scenarios.answers.sweep.answer import SweepResult
    from stripesim.scenarios.work.store import PartStore


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
    done = EndedTasks(
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
            for ended in outcomes:
                # A row that is stored is also in the result.
                with held(signal.SIGINT, signal.SIGTERM):
                    done.add(ended, store)
                for outcome in ended:
                    progress(outcome.words)
                # Workers are busy now, and wait for nothing from this process.
                import_module("stripesim.scenarios.answers.sweep.collect")
    except KeyboardInterrupt:
        done.stopped = INTERRUPTED
    except WorkError as error:
        done.stopped = str(error)
    from stripesim.scenarios.answers.sweep.collect import result_of

    return result_of(plan, done, store, kept=kept, unchecked=unchecked, metric=metric)


def _outcomes(
    tasks: Sequence[SweepTask],
    jobs: int | None,
    dask: str | None,
    dask_timeout_s: float,
) -> Generator[list[EndedTask], None, None]:
    """Run tasks, and yield those that have ended together."""
    if not tasks:
        return
    if dask is not None:
        yield from run_dask(tasks, dask, dask_timeout_s)
        return
    # The command of a Dask cluster needs no engine.
    from stripesim.scenarios.work.attempt import attempt_all, attempt_batch

    processes = min(workers_wanted(jobs), len(tasks))
    if processes == 1:
        yield from attempt_all(tasks)
        return
    batches = Batches(tasks, processes)
    waiting = deque(batches.first)
    with closing(run_pool(attempt_batch, waiting, jobs=processes)) as answers:
        for batch, answer in answers:
            if isinstance(answer, CompletedBatch):
                yield answer.outcomes(batch)
                waiting.extend(batches.rest_after(answer.duration_s))
            else:
                outcomes, more = batches.after_death(batch, answer.reason)
                yield outcomes
                waiting.extend(more)

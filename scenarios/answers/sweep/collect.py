"""Build the tables of a sweep from the rows of its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from stripesim._version import __version__
from stripesim.scenarios.answers.sweep.answer import SweepResult
from stripesim.scenarios.answers.sweep.ended import EndedTasks
from stripesim.scenarios.answers.sweep.plan import SweepPlan
from stripesim.scenarios.answers.sweep.stats import CELL_COLUMNS, aggregate, grouped
from stripesim.scenarios.cells.notes import (
    code_files,
    outside_of_all,
    where_and_when,
)
from stripesim.scenarios.show.quantities import QUANTITIES, Rows, complete_rows
from stripesim.scenarios.work.task import EndedTask, code_sha256
from stripesim.sim.observe.audit import RatePoint, falls
from stripesim.sim.observe.result_row import withheld_columns

if TYPE_CHECKING:
    from stripesim.scenarios.work.store import PartStore

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


def result_of(
    plan: SweepPlan,
    done: EndedTasks,
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
    rows = {
        task_id: {name: value for name, value in row.items() if name != "warnings"}
        for task_id, row in done.rows.items()
    }
    if not unchecked:
        rows = {
            task_id: withheld_columns(row, others=_OF_TASK)
            for task_id, row in rows.items()
        }
    records = _records(plan, rows)
    means = aggregate(records, plan.keys)
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
        records=records,
        means=means,
        failed=list(map(_failure_row, failed)),
        damaged=0 if store is None else store.damaged,
        kept_none=store is not None and store.had_rows and kept == 0,
        stopped=done.stopped,
        provenance=_provenance(plan, counts),
        outside=outside_of_all(task.scenario for task in plan.tasks),
        refusals=refusals,
        of_rows=_warnings(
            done.rows[task.task_id] for task in plan.tasks if task.task_id in done.rows
        ),
        falls=list(_falls(means, plan.keys)),
        unchecked=unchecked,
        metric=metric,
        folder=None if store is None else store.out_dir,
    )
    result.page = partial(_page, result)
    return result


def _page(result: SweepResult) -> str:
    from stripesim.scenarios.answers.sweep.report import report_of_sweep

    return report_of_sweep(result.plan, result, result.figure)


def _warnings(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the warnings of all rows, each once."""
    return list(
        dict.fromkeys(line for row in rows for line in row.get("warnings") or ())
    )


def _falls(means: Rows, keys: Sequence[str]) -> Iterator[str]:
    """Yield a warning for each step of a key that adds something, and at which the rate falls."""
    shown = [row for row in means if row["iops"] is not None]
    for key in keys:
        # Values of several types are texts.
        are_numbers = all(isinstance(row[key], int | float) for row in shown)
        if key not in _ADDING_KEYS or not are_numbers:
            continue
        other_keys = [name for name in (*keys, *CELL_COLUMNS) if name != key]
        ascending = sorted(shown, key=itemgetter(key))
        for group, rows in grouped(ascending, other_keys).items():
            name = " ".join(str(part) for part in group if part is not None)
            points = [
                RatePoint(f"{key}={row[key]}", row["iops"], _half(row)) for row in rows
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


def _records(
    plan: SweepPlan, rows: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the rows of a sweep, in the order of the plan, without further columns that have no values."""
    complete = complete_rows(
        {**task.swept, **rows[task.task_id], "task": task.task_id}
        for task in plan.tasks
        if task.task_id in rows
    )
    first = dict.fromkeys([*plan.keys, "replication", "seed", *QUANTITIES])
    further = sorted({key for row in complete for key in row if row[key] is not None})
    names = [*first, *(name for name in further if name not in first)]
    return [{name: row.get(name) for name in names} for row in complete]


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

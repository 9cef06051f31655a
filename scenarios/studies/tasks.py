"""The parts of a study, which can be sent to worker processes, and the runner for all of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from stripesim.models.problems import AnswerError, Problem, RefusedError, problems_at
from stripesim.scenarios.studies.parameters import Changes, apply_changes
from stripesim.scenarios.work.pool import (
    Death,
    RaisedProblems,
    run_pool,
    workers_wanted,
)
from stripesim.sim.observe.audit import collecting_refusals
from stripesim.sim.observe.progress import OnStep, silent

Row = dict[str, Any]


class Task(Protocol):
    """One part of a study: it can be pickled, and returns rows."""

    @property
    def words(self) -> str:
        """A few words for a progress bar and for errors."""

    @property
    def weight(self) -> float:
        """Expected duration relative to the other tasks. The longest start first."""

    def perform(self) -> list[Row]:
        """Run it, or raise a ValueError of one line."""


@dataclass(frozen=True)
class Call:
    """A task that calls a function, importable by name, which returns rows."""

    words: str
    function: Callable[..., Iterable[Row]]
    arguments: tuple[Any, ...] = ()
    weight: float = 0.0

    def perform(self) -> list[Row]:
        """Call the function."""
        return list(self.function(*self.arguments))


class _Item(NamedTuple):
    """A task on its way to a worker, with its position among the tasks and its changes."""

    position: int
    task: Task
    changes: Changes
    unchecked: bool


class _Done(NamedTuple):
    """The rows of a task, and what the audit says of it if it refuses numbers."""

    rows: list[Row]
    refusal: str | None = None


_Outcome = _Done | RaisedProblems


class TaskRows(NamedTuple):
    """The rows of each task in the order of the tasks, and what was refused."""

    rows: list[list[Row]]
    refusals: tuple[str, ...]


def _perform(item: _Item) -> _Outcome:
    """Run one task."""
    apply_changes(item.changes)
    name = item.task.words
    try:
        with collecting_refusals(item.unchecked) as refusals:
            rows = item.task.perform()
    except RefusedError as error:
        return _Done([], f"{name}: {error}")
    except ValueError as error:
        return RaisedProblems(problems_at(name, error))
    if not refusals:
        return _Done(rows)
    refused = "; ".join(refusals)
    return _Done([{**row, "refused": refused} for row in rows], f"{name}: {refused}")


def run_tasks(
    tasks: Iterable[Task],
    *,
    jobs: int | None = 1,
    changes: Changes | None = None,
    progress: OnStep = silent,
    unchecked: bool = False,
) -> TaskRows:
    """Run tasks. A task whose numbers the audit refuses has no rows, and the others go on.

    Parameters
    ----------
    tasks
        The tasks.
    jobs
        Worker processes [count], or None for one per processor.
    changes
        Parameters and scenario keys to change.
    progress
        Called after each task.
    unchecked
        True to keep the rows of refused tasks. Their column ``refused`` says what the audit refuses.

    Returns
    -------
    TaskRows
        The rows of each task, and a sentence for each task that the audit refuses.

    Raises
    ------
    AnswerError
        If tasks cannot run, with one line for each.
    """
    items = [
        _Item(position, task, changes or Changes(), unchecked)
        for position, task in enumerate(tasks)
    ]
    rows: dict[int, list[Row]] = {}
    refused: dict[int, str] = {}
    problems: dict[int, tuple[Problem, ...]] = {}
    for item, outcome in _outcomes(items, jobs):
        if isinstance(outcome, RaisedProblems):
            problems[item.position] = outcome.problems
        else:
            rows[item.position] = outcome.rows
            if outcome.refusal is not None:
                refused[item.position] = outcome.refusal
        progress(item.task.words, len(items))
    if problems:
        raise AnswerError(*(one for at in sorted(problems) for one in problems[at]))
    return TaskRows(
        [rows[item.position] for item in items],
        tuple(refused[at] for at in sorted(refused)),
    )


def _outcomes(
    items: Sequence[_Item], jobs: int | None
) -> Iterator[tuple[_Item, _Outcome]]:
    workers = workers_wanted(jobs)
    if workers <= 1 or len(items) <= 1:
        for item in items:
            yield item, _perform(item)
        return
    # The longest first, so that no worker starts one when the others are done.
    longest_first = sorted(items, key=lambda item: -item.task.weight)
    for item, outcome in run_pool(_perform, longest_first, jobs=workers):
        if isinstance(outcome, Death):
            problem = Problem(place=item.task.words, detail=outcome.reason)
            yield item, RaisedProblems((problem,))
        else:
            yield item, outcome

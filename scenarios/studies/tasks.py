"""The parts of a study, which can be sent to worker processes, and the runner for all of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from stripesim.models.problems import StudyError
from stripesim.scenarios.studies.parameters import Changes, apply_changes
from stripesim.scenarios.work.pool import Death, cores_usable, run_pool
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


def _perform(item: _Item) -> list[Row] | str:
    """Run one task; return a problem as text, because it may have to cross processes."""
    apply_changes(item.changes)
    try:
        return item.task.perform()
    except ValueError as error:
        return f"{item.task.words}: {error}"


def run_tasks(
    tasks: Iterable[Task],
    *,
    jobs: int | None = 1,
    changes: Changes | None = None,
    progress: OnStep = silent,
) -> list[list[Row]]:
    """Run tasks.

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

    Returns
    -------
    list[list[Row]]
        The rows of each task, in the order of the tasks.

    Raises
    ------
    StudyError
        If tasks cannot run, with one line for each.
    """
    items = [
        _Item(position, task, changes or Changes())
        for position, task in enumerate(tasks)
    ]
    rows: dict[int, list[Row]] = {}
    problems: dict[int, str] = {}
    for item, outcome in _outcomes(items, jobs):
        if isinstance(outcome, str):
            problems[item.position] = outcome
        else:
            rows[item.position] = outcome
        progress(item.task.words, len(items))
    if problems:
        raise StudyError("\n".join(problems[at] for at in sorted(problems)))
    return [rows[item.position] for item in items]


def _outcomes(
    items: Sequence[_Item], jobs: int | None
) -> Iterator[tuple[_Item, list[Row] | str]]:
    workers = cores_usable() if jobs is None else jobs
    if workers <= 1 or len(items) <= 1:
        for item in items:
            yield item, _perform(item)
        return
    # The longest first, so that no worker starts one when the others are done.
    longest_first = sorted(items, key=lambda item: -item.task.weight)
    for item, outcome in run_pool(_perform, longest_first, jobs=workers):
        if isinstance(outcome, Death):
            yield item, f"{item.task.words}: {outcome.reason}"
        else:
            yield item, outcome

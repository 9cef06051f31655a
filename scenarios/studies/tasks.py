"""The parts of a study, each fit to be sent to a worker process, and the one runner for all of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from stripesim.scenarios.studies.parameters import Changes, apply_changes

Row = dict[str, Any]

#: Called after each task with a few words about it and the number of tasks in all.
Progress = Callable[[str, int], None]


class StudyError(ValueError):
    """A study that cannot be run as asked; one line for each problem."""


class Task(Protocol):
    """One part of a study: it can be pickled, and gives rows."""

    @property
    def words(self) -> str:
        """A few words for a progress bar and for errors."""

    @property
    def weight(self) -> float:
        """How long it takes compared with the other tasks; the longest begin first."""

    def perform(self) -> list[Row]:
        """Run it; a ValueError says in one line why it cannot be run."""


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
    """What is sent to a worker: a task, its place among the tasks, and what is changed for it."""

    place: int
    task: Task
    changes: Changes


def _perform(item: _Item) -> list[Row] | str:
    """Run one task; a problem comes back as words, because it may have to cross processes."""
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
    progress: Progress | None = None,
) -> list[list[Row]]:
    """Run tasks in `jobs` processes (None: all processors); the rows of each in the order of the tasks."""
    items = [
        _Item(place, task, changes or Changes()) for place, task in enumerate(tasks)
    ]
    found: dict[int, list[Row]] = {}
    problems: dict[int, str] = {}
    for item, done in _each(items, jobs):
        if isinstance(done, str):
            problems[item.place] = done
        else:
            found[item.place] = done
        if progress is not None:
            progress(item.task.words, len(items))
    if problems:
        raise StudyError("\n".join(problems[place] for place in sorted(problems)))
    return [found[item.place] for item in items]


def _each(
    items: Sequence[_Item], jobs: int | None
) -> Iterator[tuple[_Item, list[Row] | str]]:
    from stripesim.scenarios.sweep.pool import Death, cores_usable, run_pool

    workers = cores_usable() if jobs is None else jobs
    if workers <= 1 or len(items) <= 1:
        for item in items:
            yield item, _perform(item)
        return
    # The longest first, so that no worker begins one when the others are done.
    for item, done in run_pool(
        _perform, sorted(items, key=lambda each: -each.task.weight), jobs=workers
    ):
        yield (
            item,
            f"{item.task.words}: {done.reason}" if isinstance(done, Death) else done,
        )

"""Plan a sweep: turn ``--over``, ``--zip`` and ``--list`` into points, and points into tasks."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from stripesim.models.documents import json_line, toml_value
from stripesim.models.memory_limit import limits_read_once
from stripesim.models.problems import (
    AnswerError,
    Problem,
    ScenarioError,
    noted,
)
from stripesim.scenarios.answers.sweep.axes import (
    SweptAxis,
    clashes,
    covers,
    grid_axes,
    other_axes,
    plain_key,
)
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.loader import Override, Overrides
from stripesim.scenarios.schema.problems import value_text
from stripesim.scenarios.schema.scenario import Scenario, as_scenario
from stripesim.scenarios.work.pool import workers_wanted
from stripesim.scenarios.work.task import (
    SweepTask,
    files_sha256,
    forget_models,
    make_task,
)

#: Most points of a sweep. More are probably a mistake, and planning them takes minutes.
_POINTS_MAX: Final = 100_000

#: Most runs of cells in one sweep, replications included.
TASKS_MAX: Final = 200_000

_SEED_MAX: Final = 2**63 - 1


@dataclass(frozen=True)
class SweepPlan:
    """The tasks of a sweep."""

    name: str
    keys: tuple[str, ...]  # Swept keys, as the user wrote them.
    points: int  # Number of points in the grid or list.
    tasks: tuple[SweepTask, ...]  # In the order of rows: point, cell, replication.
    scenario: Scenario  # Scenario of the first point.
    replications: int
    # Options of the sweep, for the provenance.
    asked: dict[str, Any] = field(default_factory=dict)

    @property
    def is_of_objects(self) -> bool:
        """True if all requests are for objects in buckets."""
        return all(task.scenario.workload.is_s3 for task in self.tasks)


def plan_sweep(
    scenario: Scenario | str | Path,
    *,
    over: Mapping[str, Sequence[Any]] | Sequence[str] = (),
    zipped: Mapping[str, Sequence[Any]] | Sequence[str] = (),
    points: str | Path | Sequence[Mapping[str, Any]] = (),
    sets: Overrides = (),
    seed: int | None = None,
    replications: int = 1,
    engine: str = "compiled",
) -> SweepPlan:
    """Plan a sweep.

    Parameters
    ----------
    scenario
        A scenario, or the name or path of one.
    over
        Values of each swept key, or texts ``key=value,value``. Keys form a grid.
    zipped
        Values of keys that change together, equally many of each, or texts ``key=value,value``.
    points
        Points with values of the same keys, or a CSV file with a line of keys and one line of values per
        point.
    sets
        Overrides of all points: values by key, or texts ``key=value``.
    seed
        Seed of the first replication. Defaults to that of the scenario.
    replications
        Number of runs of each cell, under consecutive seeds.
    engine
        ``compiled`` or ``simpy``.

    Raises
    ------
    AnswerError
        If the sweep cannot run; the message lists every fault.
    """
    faults: list[Problem | str] = []
    grid = grid_axes(over, faults)
    further_axes = other_axes(zipped, points, faults)
    axes = [*grid, *further_axes]
    if isinstance(sets, Mapping):
        sets = [Override(str(key), value) for key, value in sets.items()]
    faults += clashes(axes, sets)
    faults += _too_few_runs(replications)
    if _has_too_many_points(axes):
        got = f"more than {_POINTS_MAX:,} points"
        raise AnswerError(*faults, Problem(place="--over", got=got, wanted="fewer"))
    scenarios = _load(scenario, axes, sets, seed, faults)
    faults += _too_large_seeds(scenarios, replications)
    if faults:
        raise AnswerError(*dict.fromkeys(faults))
    keys = tuple(key for axis in axes for key in axis.keys)
    tasks = _tasks(scenarios, keys, replications, engine)
    # The option to name: the first one whose values may repeat.
    option = "--zip"
    if grid:
        option = "--over"
    elif points:
        option = "--list"
    _refuse_repeats(tasks, option, keys)
    asked = {
        "over": _asked(over, grid),
        "zip": _asked(zipped, further_axes[:1] if zipped else ()),
        "list": _asked_points(points),
        "set": [_set_text(item) for item in sets],
    }
    return SweepPlan(
        scenarios[0].name,
        keys,
        len(scenarios),
        tuple(tasks),
        scenarios[0],
        replications,
        asked,
    )


def check_options(
    out: str | Path | None, *, resume: bool, jobs: int | None, dask: str | None
) -> None:
    """Raise an `AnswerError` if options that say how a sweep runs contradict each other."""
    problems: list[Problem] = []
    with noted(problems):
        workers_wanted(jobs)
    if jobs is not None and dask is not None:
        wanted = "only one of them: a Dask cluster has its own workers"
        problems.append(Problem(place="--dask", got="--jobs too", wanted=wanted))
    if resume and out is None:
        wanted = "the folder of the sweep to continue"
        problems.append(Problem(place="--resume", got="no --out", wanted=wanted))
    if problems:
        raise AnswerError(*problems)


def _has_too_many_points(axes: Sequence[SweptAxis]) -> bool:
    return math.prod(len(axis.steps) for axis in axes) > _POINTS_MAX


def _too_few_runs(replications: int) -> list[Problem]:
    if replications >= 1:
        return []
    wanted = "a number of at least 1"
    return [Problem(place="--replications", got=str(replications), wanted=wanted)]


def _too_large_seeds(scenarios: Sequence[Scenario], replications: int) -> list[Problem]:
    """Return the problem of replications whose seeds are too large. All points have the same seeds."""
    first = scenarios[0].seed if scenarios else 0
    if first + replications - 1 <= _SEED_MAX:
        return []
    got = f"{replications} from seed {first}"
    return [Problem(place="--replications", got=got, wanted="seeds below 2^63")]


def _asked(
    values: Mapping[str, Sequence[Any]] | Sequence[str], axes: Sequence[SweptAxis]
) -> list[str]:
    """Return values of keys as the texts that the command line takes."""
    return _texts_of(axes) if isinstance(values, Mapping) else list(values)


def _asked_points(
    points: str | Path | Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]] | str | None:
    """Return listed points as JSON values: the name of their file, or None without any."""
    if isinstance(points, str | Path):
        return str(points)
    return [dict(point) for point in points] or None


def _texts_of(axes: Sequence[SweptAxis]) -> list[str]:
    return [text for axis in axes for text in axis.texts]


def _set_text(item: str | Override) -> str:
    return item if isinstance(item, str) else f"{item.key}={toml_value(item.value)}"


def _tasks(
    scenarios: Sequence[Scenario], keys: tuple[str, ...], replications: int, engine: str
) -> list[SweepTask]:
    """Return the tasks of all points, unless there are too many."""
    forget_models()
    count = replications * sum(len(cells(point)) for point in scenarios)
    if count > TASKS_MAX:
        raise AnswerError(
            Problem(
                place="--replications",
                got=f"{replications:,}, that is {count:,} runs of cells",
                wanted=f"at most {TASKS_MAX:,}",
            )
        )
    values = _swept_columns(keys, scenarios)
    return [
        make_task(
            point,
            cell,
            replication=replication,
            engine=engine,
            swept=swept,
            files=files,
        )
        for point, swept in zip(scenarios, values, strict=True)
        for files in [files_sha256(point)]
        for cell in cells(point)
        for replication in range(replications)
    ]


@limits_read_once()
def _load(
    base: Scenario | str | Path,
    axes: Sequence[SweptAxis],
    sets: Sequence[str | Override],
    seed: int | None,
    faults: list[Problem | str],
) -> list[Scenario]:
    """Load the scenario of each point, and add the faults of all points without duplicates."""
    scenarios: list[Scenario] = []
    # Each fault, and whether an option caused it → texts of the points with the fault.
    points_of: dict[tuple[Problem, bool], list[str]] = {}
    count = 0
    for steps in itertools.product(*(range(len(axis.steps)) for axis in axes)):
        count += 1
        values, overrides = _point(axes, steps)
        try:
            scenarios.append(as_scenario(base, sets=[*sets, *overrides], seed=seed))
        except ScenarioError as error:
            point = " ".join(f"{key}={text}" for key, (text, _) in values.items())
            for problem in error.problems:
                attributed = _attributed(problem, values)
                points_of.setdefault(attributed, []).append(point)
    faults += _faults_of_points(points_of, count, is_complete=not faults)
    return scenarios


def _point(
    axes: Sequence[SweptAxis], steps: Sequence[int]
) -> tuple[dict[str, tuple[str, str]], list[str | Override]]:
    """Return the values of a point by key, each with the option that states it, and its overrides."""
    values: dict[str, tuple[str, str]] = {}
    overrides: list[str | Override] = []
    for axis, step in zip(axes, steps, strict=True):
        for key, value in zip(axis.keys, axis.steps[step], strict=True):
            text = value if axis.is_text else toml_value(value)
            values[key] = (text, axis.origins[step])
            overrides.append(f"{key}={value}" if axis.is_text else Override(key, value))
    return values, overrides


def _faults_of_points(
    points_of: Mapping[tuple[Problem, bool], Sequence[str]],
    count: int,
    *,
    is_complete: bool,
) -> Iterator[Problem]:
    """Yield the faults of `count` points. Without all axes, a file may only seem to lack a key."""
    for (fault, of_option), points in points_of.items():
        if of_option:
            yield fault
        elif not is_complete:
            # A key that the file lacks may be on an axis that was dropped for its faults.
            continue
        elif len(points) == count:
            yield fault
        else:
            # A fault of some points comes from their values, even if it names a line of the file.
            yield replace(fault, detail=f"{fault.said} (at {points[0]})")


def _attributed(
    problem: Problem, values: dict[str, tuple[str, str]]
) -> tuple[Problem, bool]:
    """Return a fault with the option that caused it, and True, or False if the scenario's file did."""
    if problem.place != "--set":
        return problem, problem.place == "--seed"
    for swept, (value, origin) in values.items():
        named = (value_text(f"{swept}={value}"), value_text(swept))
        if not covers(swept, problem.key) and problem.key not in named:
            continue
        text = problem.said
        if problem.key == "schemes" and value[0] not in "[\"'":
            text += """; quote schemes with a comma, such as 'schemes="rs:6,3",rep:3'"""
        return replace(problem, place=origin, detail=text), True
    return problem, True


def _swept_columns(
    keys: Sequence[str], scenarios: Sequence[Scenario]
) -> list[dict[str, Any]]:
    """Return the values of the swept keys at each point, with one type per key."""
    columns = {
        key: _column([_value(scenario, key) for scenario in scenarios]) for key in keys
    }
    return [
        {key: columns[key][index] for key in keys} for index in range(len(scenarios))
    ]


def _column(values: list[Any]) -> list[Any]:
    """Convert values to one type that a table column can hold."""
    if all(isinstance(value, list) and len(value) == 1 for value in values):
        values = [value[0] for value in values]
    kinds = {type(value) for value in values}
    if kinds == {int, float}:
        return [float(value) for value in values]
    if len(kinds) == 1 and kinds <= {str, int, float, bool}:
        return values
    return [value if isinstance(value, str) else json_line(value) for value in values]


def _value(scenario: Scenario, key: str) -> Any:
    value: Any = scenario.model_dump(mode="json", exclude_none=True)
    for part in plain_key(key).split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(part)
    return value


def _refuse_repeats(
    tasks: Sequence[SweepTask], option: str, keys: Sequence[str]
) -> None:
    seen: set[str] = set()
    for task in tasks:
        if task.task_id in seen:
            # A cell that two points share would count twice.
            raise AnswerError(
                Problem(
                    place=option,
                    key=", ".join(keys),
                    got=f"{task.label} twice",
                    wanted="each cell once",
                )
            )
        seen.add(task.task_id)

"""What a sweep is to run: from ``--over``, ``--zip`` and ``--list`` to points, and from points to tasks."""

import csv
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from stripesim.scenarios.schema.keys import Scenario, cells
from stripesim.scenarios.schema.loader import (
    Override,
    Overrides,
    ScenarioError,
    load_scenario,
    overridden,
)
from stripesim.scenarios.schema.problems import value_text
from stripesim.scenarios.schema.toml import toml_value
from stripesim.scenarios.sweep.task import SweepTask, forget_models, make_task

#: Beyond this a sweep is a slip of the hand: planning alone would take minutes.
_POINTS_MAX: Final = 100_000

#: Runs of cells in one sweep, replications included.
TASKS_MAX: Final = 200_000

_SEED_MAX: Final = 2**63 - 1


class SweepError(ValueError):
    """A sweep that cannot be run as asked; the text has one line for each fault."""


@dataclass(frozen=True)
class SweepPlan:
    """All that a sweep is to run."""

    name: str
    keys: tuple[str, ...]  # swept keys, as written
    points: int  # of the grid or list
    tasks: tuple[SweepTask, ...]  # in the order of the rows: point, cell, replication
    scenario: Scenario  # of the first point
    replications: int
    asked: dict[str, Any] = field(
        default_factory=dict
    )  # the options it was made from, for the provenance


@dataclass(frozen=True)
class _Axis:
    """Keys that move together: one tuple of values for each step, and where each step was asked for."""

    keys: tuple[str, ...]
    steps: list[tuple[Any, ...]]
    places: list[str]
    #: Whether values are text as on a command line, else they are Python's
    is_text: bool = True

    @property
    def texts(self) -> list[str]:
        """The axis as ``key=value,value``, one for each key."""
        columns = zip(*self.steps, strict=True)
        return [
            f"{key}={','.join(value if self.is_text else toml_value(value) for value in column)}"
            for key, column in zip(self.keys, columns, strict=True)
        ]


def split_values(text: str) -> list[str]:
    """Split values at the commas outside brackets and quotes.

    >>> split_values('["rs:6,3", "rep:3"], "a,b", 4k')
    ['["rs:6,3", "rep:3"]', '"a,b"', '4k']
    """
    values: list[str] = []
    start = depth = 0
    quote = ""
    escaped = False
    for index, letter in enumerate(text):
        if quote:
            # Only double quotes know escapes in TOML.
            if letter == quote and not escaped:
                quote = ""
            escaped = letter == "\\" and quote == '"' and not escaped
        elif letter in "\"'" and (depth or not text[start:index].strip()):
            quote = letter
        elif letter in "[{]}":
            depth += 1 if letter in "[{" else -1
        elif letter == "," and depth == 0:
            values.append(text[start:index].strip())
            start = index + 1
    if quote or depth:
        raise ValueError("brackets and quotes that close")
    values.append(text[start:].strip())
    if not all(values):
        raise ValueError("values between the commas")
    return values


def plan_sweep(
    scenario: Scenario | str | Path,
    *,
    over: Mapping[str, Sequence[Any]] | Sequence[str] = (),
    zipped: Sequence[str] = (),
    list_file: str | Path | None = None,
    sets: Overrides = (),
    seed: int | None = None,
    replications: int = 1,
    engine: str = "compiled",
) -> SweepPlan:
    """Work out what to run: keys with their values, or texts ``key=value,value``."""
    faults: list[str] = []
    axes: list[_Axis | None]
    if isinstance(over, Mapping):
        axes = [_axis_of_values(key, values, faults) for key, values in over.items()]
        over = [text for axis in axes if axis is not None for text in axis.texts]
    else:
        axes = [_axis([item], "--over", faults) for item in over]
    if isinstance(sets, Mapping):
        sets = [Override(key, value) for key, value in sets.items()]
    axes.append(_axis(zipped, "--zip", faults))
    if list_file is not None:
        axes.append(_read_list(Path(list_file), faults))
    listed = [axis for axis in axes if axis is not None and axis.keys]
    keys = tuple(key for axis in listed for key in axis.keys)
    faults += _clashes(listed, sets)
    if replications < 1:
        faults.append(
            f"--replications: got {replications}, wanted a number of at least 1"
        )
    if math.prod(len(axis.steps) for axis in listed) > _POINTS_MAX:
        faults.append(f"--over: got more than {_POINTS_MAX:,} points, wanted fewer")
        raise SweepError("\n".join(faults))
    scenarios = _load(scenario, listed, sets, seed, faults)
    values = _swept_columns(keys, scenarios)
    first = scenarios[0].seed if scenarios else 0
    if first + replications - 1 > _SEED_MAX:
        faults.append(
            f"--replications: got {replications} from seed {first}, wanted seeds below 2^63"
        )
    if faults:
        raise SweepError("\n".join(dict.fromkeys(faults)))
    forget_models()
    count = replications * sum(len(cells(point)) for point in scenarios)
    if count > TASKS_MAX:
        got = f"{replications:,}, that is {count:,} runs of cells"
        raise SweepError(f"--replications: got {got}, wanted at most {TASKS_MAX:,}")
    tasks = [
        make_task(point, cell, replication=replication, engine=engine, swept=swept)
        for point, swept in zip(scenarios, values, strict=True)
        for cell in cells(point)
        for replication in range(replications)
    ]
    _refuse_repeats(tasks, keys)
    file = None if list_file is None else str(list_file)
    asked = {
        "over": list(over),
        "zip": list(zipped),
        "list": file,
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


def _set_text(item: str | Override) -> str:
    return item if isinstance(item, str) else f"{item.key}={toml_value(item.value)}"


def _axis_of_values(key: str, values: Sequence[Any], faults: list[str]) -> _Axis | None:
    """Make the axis of one key; note where it has no values."""
    if isinstance(values, str) or not len(values):
        wanted = "a list of values, such as [16, 64]"
        faults.append(f"--over: {key}: got {value_text(values)}, wanted {wanted}")
        return None
    steps = [(value,) for value in values]
    return _Axis((key,), steps, ["--over"] * len(steps), is_text=False)


def _axis(items: Sequence[str], option: str, faults: list[str]) -> _Axis | None:
    """Read ``key=v1,v2`` items that move together; note what is wrong with them."""
    columns: dict[str, list[str]] = {}
    before = len(faults)
    for item in items:
        key, equals, text = item.partition("=")
        key = key.strip()
        if not equals or not key:
            wanted = "key=value,value, such as workload.queue_depth=16,64"
            faults.append(
                f"{option}: {value_text(item)}: got no key and values, wanted {wanted}"
            )
        elif key in columns:
            faults.append(f"{option}: {key}: got it twice, wanted each key once")
        else:
            try:
                columns[key] = split_values(text)
            except ValueError as error:
                faults.append(
                    f"{option}: {key}: got {value_text(text)}, wanted {error}"
                )
    if len({len(values) for values in columns.values()}) > 1:
        counts = ", ".join(
            f"{len(values)} for {key}" for key, values in columns.items()
        )
        faults.append(
            f"{option}: {', '.join(columns)}: got {counts}, wanted as many values for each key"
        )
    if len(faults) > before:
        return None
    steps = list(zip(*columns.values(), strict=True))
    return _Axis(tuple(columns), steps, [option] * len(steps))


def _read_list(path: Path, faults: list[str]) -> _Axis | None:
    """Read a list of points; note what is wrong with it."""
    reader = csv.reader(())
    before = len(faults)
    try:
        text = path.read_text(encoding="utf-8-sig")
        reader = csv.reader(
            text.splitlines(keepends=True), skipinitialspace=True, strict=True
        )
        lines = [
            (reader.line_num, [part.strip() for part in line])
            for line in reader
            if line
        ]
    except (OSError, UnicodeDecodeError) as error:
        got = (
            error.strerror if isinstance(error, OSError) else "bytes that are not UTF-8"
        )
        faults.append(f"--list: {path}: got {got}, wanted a CSV file that can be read")
        return None
    except csv.Error as error:
        faults.append(
            f"{path}:{reader.line_num}: got {error}, wanted CSV with quotes that close"
        )
        return None
    (_, keys), *rest = lines or [(0, [])]
    if len(lines) < 2:
        wanted = "a line of keys and one or more of values"
        faults.append(f"--list: {path}: got {len(lines)} lines, wanted {wanted}")
    elif not all(keys) or len(set(keys)) < len(keys):
        faults.append(
            f"{path}:1: got {', '.join(keys)}, wanted a different key in each column"
        )
    if len(faults) > before:
        return None
    axis = _Axis(tuple(keys), [], [])
    for number, line in rest:
        if len(line) == len(keys) and all(line):
            axis.steps.append(tuple(line))
            axis.places.append(f"{path}:{number}")
        else:
            faults.append(
                f"{path}:{number}: got {sum(map(bool, line))} values, wanted {len(keys)}"
            )
    return axis


def _covers(above: str, below: str) -> bool:
    return above == below or below.startswith(f"{above}.")


def _plain_key(written: str) -> str:
    """Write a key without the quotes that TOML allows around its parts."""
    return ".".join(part.strip().strip("\"'") for part in written.split("."))


def _clashes(axes: Sequence[_Axis], sets: Sequence[str | Override]) -> Iterator[str]:
    """Keys given twice: one of them would silently win."""
    keys = [_plain_key(key) for axis in axes for key in axis.keys]
    if "seed" in keys:
        yield "--over: seed: got it swept, wanted --replications N: replication r runs with seed + r"
    for first, second in itertools.combinations(keys, 2):
        if _covers(first, second) or _covers(second, first):
            both = "it twice" if first == second else f"{first} swept too"
            yield f"--over: {second}: got {both}, wanted each key swept once"
    fixed_keys = [_plain_key(_set_text(item).partition("=")[0]) for item in sets]
    for fixed, key in itertools.product(fixed_keys, keys):
        if _covers(fixed, key) or _covers(key, fixed):
            yield f"--over: {key}: got --set {fixed} too, wanted a key either swept or set"


def _load(
    base: Scenario | str | Path,
    axes: Sequence[_Axis],
    sets: Sequence[str | Override],
    seed: int | None,
    faults: list[str],
) -> list[Scenario]:
    """Load the scenario of each point; gather the faults of all, each said once."""
    scenarios: list[Scenario] = []
    # What is said and whether it is of an option, with the points it is said of.
    found: dict[tuple[str, bool], list[str]] = {}
    incomplete = bool(faults)
    count = 0
    for steps in itertools.product(*(range(len(axis.steps)) for axis in axes)):
        count += 1
        values: dict[str, tuple[str, str]] = {}
        own: list[str | Override] = []
        for axis, step in zip(axes, steps, strict=True):
            for key, value in zip(axis.keys, axis.steps[step], strict=True):
                text = value if axis.is_text else toml_value(value)
                values[key] = (text, axis.places[step])
                own.append(f"{key}={value}" if axis.is_text else Override(key, value))
        try:
            if isinstance(base, Scenario):
                scenarios.append(overridden(base, [*sets, *own], seed=seed))
            else:
                scenarios.append(load_scenario(base, sets=[*sets, *own], seed=seed))
        except ScenarioError as error:
            point = " ".join(f"{key}={text}" for key, (text, _) in values.items())
            for line in error.faults:
                found.setdefault(_placed(line, values), []).append(point)
    for (line, of_option), where in found.items():
        # A fault of some points only comes of their values, whatever line of the file it stands at.
        some = len(where) < count and not of_option
        # Where an axis was left out for its faults, what the file then lacks means nothing.
        if of_option or not incomplete:
            faults.append(f"{line} (at {where[0]})" if some else line)
    return scenarios


def _placed(line: str, values: dict[str, tuple[str, str]]) -> tuple[str, bool]:
    """Say of a fault whether it comes from the sweep or another option, not from the scenario's file."""
    option, _, rest = line.partition(": ")
    key = rest.partition(": ")[0]
    if option != "--set":
        return line, option == "--seed"
    for swept, (value, place) in values.items():
        if _covers(swept, key) or rest.startswith(
            (value_text(f"{swept}={value}"), value_text(swept))
        ):
            hint = ""
            if key == "schemes" and value[0] not in "[\"'":
                hint = (
                    """; one with a comma in quotes, such as 'schemes="rs:6,3",rep:3'"""
                )
            return f"{place}: {rest}{hint}", True
    return line, True


def _swept_columns(
    keys: Sequence[str], scenarios: Sequence[Scenario]
) -> list[dict[str, Any]]:
    """Values of the swept keys at each point, each key's of one type: what a column of a table can hold."""
    columns: dict[str, list[Any]] = {}
    for key in keys:
        found = [_value(scenario, key) for scenario in scenarios]
        if all(isinstance(value, list) and len(value) == 1 for value in found):
            found = [value[0] for value in found]
        kinds = {type(value) for value in found}
        if kinds == {int, float}:
            found = [float(value) for value in found]
        elif not kinds <= {str} and kinds not in ({int}, {float}, {bool}):
            found = [
                value if isinstance(value, str) else json.dumps(value)
                for value in found
            ]
        columns[key] = found
    return [
        {key: columns[key][index] for key in keys} for index in range(len(scenarios))
    ]


def _value(scenario: Scenario, key: str) -> Any:
    value: Any = scenario.model_dump(mode="json", exclude_none=True)
    for part in key.split("."):
        value = (
            value.get(part.strip().strip("\"'")) if isinstance(value, dict) else None
        )
    return value


def _refuse_repeats(tasks: Sequence[SweepTask], keys: Sequence[str]) -> None:
    seen: set[str] = set()
    for task in tasks:
        if task.task_id in seen:
            # A cell that two points share would be run, and counted, twice.
            raise SweepError(
                f"--over: {', '.join(keys)}: got {task.label} twice, wanted each cell once"
            )
        seen.add(task.task_id)

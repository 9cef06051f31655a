"""Read the keys and values of a sweep: `--over`, `--zip` and `--list`, or Python values in their place."""

import csv
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from stripesim.models.documents import toml_value
from stripesim.models.problems import Problem, file_reason
from stripesim.scenarios.schema.loader import Override
from stripesim.scenarios.schema.problems import value_text

#: What a list of values lacks.
_UNCLOSED: Final = "brackets and quotes that close"
# Tables that change no run.
_NO_PART_OF_A_RUN: Final = ("plan", "durability")


@dataclass(frozen=True)
class SweptAxis:
    """Keys that change together, with the values and the option or line of each step."""

    keys: tuple[str, ...]
    steps: list[tuple[Any, ...]]
    origins: list[str]
    #: True if values are texts from a command line or file, False if they are Python values
    is_text: bool = True

    @property
    def texts(self) -> list[str]:
        """The axis as one text ``key=value,value`` per key."""
        columns = zip(*self.steps, strict=True)
        return [
            f"{key}={','.join(value if self.is_text else toml_value(value) for value in column)}"
            for key, column in zip(self.keys, columns, strict=True)
        ]


def grid_axes(
    over: Mapping[str, Sequence[Any]] | Sequence[str], faults: list[Problem | str]
) -> list[SweptAxis]:
    """Return the axes of keys that form a grid, and add the faults of the others."""
    if isinstance(over, Mapping):
        axes = [
            _axis_of_values(key, values, "--over", faults)
            for key, values in over.items()
        ]
    else:
        axes = [_axis_of_texts([item], "--over", faults) for item in over]
    return [axis for axis in axes if axis is not None and axis.keys]


def other_axes(
    zipped: Mapping[str, Sequence[Any]] | Sequence[str],
    points: str | Path | Sequence[Mapping[str, Any]],
    faults: list[Problem | str],
) -> list[SweptAxis]:
    """Return the axis of keys that change together and that of a list of points, and add their faults."""
    if isinstance(zipped, Mapping):
        axes = [_axis_of_columns(zipped, faults)]
    else:
        axes = [_axis_of_texts(zipped, "--zip", faults)]
    if isinstance(points, str | Path):
        axes.append(_read_list(Path(points), faults))
    elif points:
        axes.append(_axis_of_points(points, faults))
    return [axis for axis in axes if axis is not None and axis.keys]


def clashes(axes: Sequence[SweptAxis], sets: Sequence[str | Override]) -> Iterator[str]:
    """Yield a fault for each key that is given twice, since one would silently override the other."""
    keys = [plain_key(key) for axis in axes for key in axis.keys]
    if "seed" in keys:
        yield "--over: seed: got a swept seed, wanted --replications N: replication r runs with seed + r"
    for key in keys:
        table = key.partition(".")[0]
        if table in _NO_PART_OF_A_RUN:
            yield f"--over: {key}: got a key of [{table}], wanted one that changes a run"
    for first, second in itertools.combinations(keys, 2):
        if covers(first, second) or covers(second, first):
            both = "it twice" if first == second else f"{first} swept too"
            yield f"--over: {second}: got {both}, wanted each key swept once"
    fixed_keys = [
        plain_key(item.partition("=")[0] if isinstance(item, str) else item.key)
        for item in sets
    ]
    for fixed, key in itertools.product(fixed_keys, keys):
        if covers(fixed, key) or covers(key, fixed):
            yield f"--over: {key}: got --set {fixed} too, wanted a key either swept or set"


def plain_key(written: str) -> str:
    """Return a key without the quotes that TOML allows around its parts."""
    return ".".join(part.strip().strip("\"'") for part in written.split("."))


def covers(above: str, below: str) -> bool:
    """Return True if a key is another one or a table that contains it."""
    return above == below or below.startswith(f"{above}.")


def _axis_of_texts(
    items: Sequence[str], option: str, faults: list[Problem | str]
) -> SweptAxis | None:
    """Return the axis of ``key=v1,v2`` items that change together, or add their faults."""
    columns: dict[str, list[str]] = {}
    before = len(faults)
    for item in items:
        key, equals, text = item.partition("=")
        key = key.strip()
        if not equals or not key:
            faults.append(
                Problem(
                    place=option,
                    key=value_text(item),
                    got="no key and values",
                    wanted="key=value,value, such as workload.queue_depth=16,64",
                )
            )
            continue
        if key in columns:
            faults.append(
                Problem(place=option, key=key, got="it twice", wanted="each key once")
            )
            continue
        try:
            columns[key] = split_values(text)
        except ValueError as error:
            faults.append(
                Problem(place=option, key=key, got=value_text(text), wanted=str(error))
            )
    _are_equally_many(list(columns), columns.values(), faults, option)
    if len(faults) > before:
        return None
    steps = list(zip(*columns.values(), strict=True))
    return SweptAxis(tuple(columns), steps, [option] * len(steps))


def split_values(text: str) -> list[str]:
    """Split values at the commas outside brackets and quotes.

    >>> split_values('["rs:6,3", "rep:3"], "a,b", 4k')
    ['["rs:6,3", "rep:3"]', '"a,b"', '4k']
    """
    values: list[str] = []
    start = depth = end_of_quote = 0
    for index, letter in enumerate(text):
        if index < end_of_quote:
            continue
        if letter in "\"'" and (depth or not text[start:index].strip()):
            end_of_quote = _end_of_quote(text, index)
        elif letter in "[{":
            depth += 1
        elif letter in "]}":
            depth -= 1
        elif letter == "," and depth == 0:
            values.append(text[start:index].strip())
            start = index + 1
    if depth:
        raise ValueError(_UNCLOSED)
    values.append(text[start:].strip())
    if not all(values):
        raise ValueError("values between the commas")
    return values


def _end_of_quote(text: str, start: int) -> int:
    """Return the position after the quote that closes the one at `start`."""
    # In TOML only double quotes have escapes.
    pattern = r'"(?:\\.|[^"\\])*"' if text[start] == '"' else r"'[^']*'"
    quoted = re.compile(pattern, re.DOTALL).match(text, start)
    if quoted is None:
        raise ValueError(_UNCLOSED)
    return quoted.end()


def _axis_of_values(
    key: str, values: Sequence[Any], option: str, faults: list[Problem | str]
) -> SweptAxis | None:
    """Return the axis of one key, or add a fault if it has no values."""
    key = str(key)
    is_list = isinstance(values, Iterable) and not isinstance(values, str | Mapping)
    listed = list(values) if is_list else []
    if not listed:
        wanted = "a list of values, such as [16, 64]"
        faults.append(
            Problem(place=option, key=key, got=value_text(values), wanted=wanted)
        )
        return None
    steps = [(value,) for value in listed]
    return SweptAxis((key,), steps, [option] * len(steps), is_text=False)


def _axis_of_columns(
    columns: Mapping[str, Sequence[Any]], faults: list[Problem | str]
) -> SweptAxis | None:
    """Return the axis of keys that change together, or add their faults."""
    axes = [
        _axis_of_values(key, values, "--zip", faults) for key, values in columns.items()
    ]
    valid = [axis for axis in axes if axis is not None]
    if len(valid) < len(axes):
        return None
    steps = [[value for (value,) in axis.steps] for axis in valid]
    if not _are_equally_many(tuple(columns), steps, faults):
        return None
    rows = list(zip(*steps, strict=True))
    return SweptAxis(tuple(columns), rows, ["--zip"] * len(rows), is_text=False)


def _axis_of_points(
    points: Sequence[Any], faults: list[Problem | str]
) -> SweptAxis | None:
    """Return the axis of a list of points, or add a fault if one has no keys or other keys."""
    for number, point in enumerate(points):
        if not isinstance(point, Mapping):
            got = value_text(point)
            wanted = "values by key"
            faults.append(Problem(place=f"--list[{number}]", got=got, wanted=wanted))
            return None
    keys = tuple(points[0])
    for number, point in enumerate(points):
        if point.keys() != points[0].keys() or not keys:
            faults.append(
                Problem(
                    place=f"--list[{number}]",
                    got=", ".join(point) or "no keys",
                    wanted=f"the keys of the first point: {', '.join(keys) or 'at least one'}",
                )
            )
            return None
    steps = [tuple(point[key] for key in keys) for point in points]
    return SweptAxis(keys, steps, ["--list"] * len(steps), is_text=False)


def _are_equally_many(
    keys: Sequence[str],
    columns: Iterable[Sequence[Any]],
    faults: list[Problem | str],
    option: str = "--zip",
) -> bool:
    """Return True if keys that change together have equally many values, or add the fault."""
    counts = [len(values) for values in columns]
    if len(set(counts)) <= 1:
        return True
    got = ", ".join(
        f"{count} for {key}" for key, count in zip(keys, counts, strict=True)
    )
    wanted = "equally many values for each key"
    faults.append(Problem(place=option, key=", ".join(keys), got=got, wanted=wanted))
    return False


def _read_list(path: Path, faults: list[Problem | str]) -> SweptAxis | None:
    """Return the axis of a file with a list of points, or add its faults."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        faults.append(
            Problem(
                place="--list",
                key=str(path),
                got=file_reason(error),
                wanted="a CSV file that can be read",
            )
        )
        return None
    reader = csv.reader(
        text.splitlines(keepends=True), skipinitialspace=True, strict=True
    )
    try:
        lines = [
            (reader.line_num, [part.strip() for part in line])
            for line in reader
            if line
        ]
    except csv.Error as error:
        faults.append(
            Problem(
                place=f"{path}:{reader.line_num}",
                got=str(error),
                wanted="CSV with quotes that close",
            )
        )
        return None
    if len(lines) < 2:
        faults.append(
            Problem(
                place="--list",
                key=str(path),
                got=f"{len(lines)} lines",
                wanted="a line of keys and one or more of values",
            )
        )
        return None
    (_, keys), *rest = lines
    if not all(keys) or len(set(keys)) < len(keys):
        faults.append(
            Problem(
                place=f"{path}:1",
                got=", ".join(keys),
                wanted="a different key in each column",
            )
        )
        return None
    axis = SweptAxis(tuple(keys), [], [])
    for number, line in rest:
        if len(line) == len(keys) and all(line):
            axis.steps.append(tuple(line))
            axis.origins.append(f"{path}:{number}")
        else:
            faults.append(
                Problem(
                    place=f"{path}:{number}",
                    got=f"{sum(map(bool, line))} of {len(keys)} values",
                    wanted="a value in each column",
                )
            )
    return axis

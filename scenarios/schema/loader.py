"""Read the keys of a scenario, apply overrides, and report all problems at once with file and line.

A `Draft` holds what was written. `checked_keys` makes valid keys of it.
"""

import contextlib
import copy
import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from reprlib import repr as short_repr
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from stripesim.models.documents import json_line, without_numpy
from stripesim.models.problems import Problem, ScenarioError, file_reason
from stripesim.scenarios.schema.checks import cross_check
from stripesim.scenarios.schema.geometry import NumberedScheme
from stripesim.scenarios.schema.keys import (
    CODE_FILES_MAX,
    SCHEMES_MAX,
    ScenarioKeys,
    names_file,
)
from stripesim.scenarios.schema.problems import (
    KeyProblem,
    is_list_key,
    problem_from_pydantic,
    value_at,
    value_text,
)
from stripesim.scenarios.schema.renamed import current_path, rename_keys
from stripesim.scenarios.schema.toml import KeyPath, KeyPlaces, key_text, locate_keys
from stripesim.scenarios.schema.toml_bounds import TEXT_MAX, parse_toml

_SHIPPED_DIR: Final = Path(__file__).parents[1]
#: Problems that an error lists. Further ones are only counted.
PROBLEMS_MAX: Final = 50
#: Maximum number of `--set` options.
OVERRIDES_MAX: Final = 1000

#: Mutually exclusive keys: overriding one removes the other from the file's values.
_ALTERNATIVES: Final[tuple[tuple[KeyPath, KeyPath], ...]] = (
    (("workload", "requests"), ("workload", "duration_s")),
    (("workload", "ops"), ("workload", "read_fraction")),
)


class Override(NamedTuple):
    """A value that replaces a scenario's, with its dotted key and the place that messages name."""

    key: str
    value: Any
    place: str = "--set"


#: A mapping of keys to values, or a sequence of overrides. Text has the form ``key=value`` of the command
#: line.
Overrides = Mapping[str, Any] | Sequence[str | Override]


@dataclass
class Draft:
    """A document of TOML or Python values that is being turned into a scenario."""

    label: str
    values: dict[str, Any]
    lines: dict[KeyPath, int]
    problems: list[KeyProblem] = field(default_factory=list)
    overrides: dict[KeyPath, str] = field(default_factory=dict)
    loose: list[Problem] = field(default_factory=list)  # those of no key
    faulty_paths: set[KeyPath] = field(default_factory=set)
    unlisted: int = 0  # problems that are counted but not described
    has_lines: bool = True  # False for values from Python

    @property
    def places(self) -> KeyPlaces:
        """Locations of all keys."""
        return KeyPlaces(self.label, self.lines, self.overrides, self.has_lines)

    def add(self, problem: KeyProblem) -> None:
        """Record a problem with a key."""
        self.problems.append(problem)
        self.faulty_paths.add(problem.path)

    def raise_problems(self) -> None:
        """Raise the recorded problems as one error, in document order."""
        if not self.problems and not self.loose:
            return
        lines = self.places
        placed = [(lines.find(problem.path), problem) for problem in self.problems]
        placed.sort(key=lambda item: item[0])
        located = [problem.at(place) for (_, place), problem in placed]
        distinct = list(dict.fromkeys(located + self.loose))
        more = len(distinct) - PROBLEMS_MAX
        listed = distinct[:PROBLEMS_MAX]
        unlisted = self.unlisted + max(0, more)
        if unlisted:
            got = f"{unlisted:,} more problems"
            listed.append(Problem(place=self.label, got=got, wanted="none"))
        raise ScenarioError(*listed)


def shipped_scenarios() -> list[str]:
    """List the names of the shipped scenarios."""
    return sorted(path.stem for path in _SHIPPED_DIR.glob("*.toml"))


def draft_of_values(values: Mapping[str, Any], label: str) -> Draft:
    """Read a scenario from Python values: mappings become tables, sequences become arrays."""
    plain = {key: _as_toml(value) for key, value in values.items()}
    return Draft(label, plain, lines={}, has_lines=False)


def _as_toml(value: Any) -> Any:
    """Convert a value to the types of TOML."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True)
    if isinstance(value, Mapping):
        return {str(key): _as_toml(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_as_toml(part) for part in value]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, type):
        return _class_path(value)
    return without_numpy(value)


def _class_path(described: type) -> str:
    """Return the path of a file with the source of a class that describes a code."""
    from stripesim.models.coding import class_file
    from stripesim.models.problems import OwnCodeError

    try:
        return str(class_file(described))
    except OwnCodeError as error:
        raise ScenarioError(Problem(key="codes", detail=str(error))) from None


def checked_keys(
    document: Draft, base: Path, *, sets: Overrides, seed: int | None
) -> ScenarioKeys:
    """Apply overrides, validate, and check rules that span several keys.

    `sets`, `seed` and the errors are those of `load_scenario`. Relative paths start at `base`.
    """
    if len(sets) > OVERRIDES_MAX:
        raise ScenarioError(
            Problem(
                place="--set",
                got=f"{len(sets):,} overrides",
                wanted=f"at most {OVERRIDES_MAX:,}",
            )
        )
    if isinstance(sets, Mapping):
        sets = [Override(str(key), value) for key, value in sets.items()]
    _rename_keys(document)
    for item in sets:
        _override(document, item, base)
    # An override may replace a whole table, with old names in it.
    _rename_keys(document)
    if seed is not None:
        document.values["seed"] = seed
        document.overrides[("seed",)] = "--seed"
    for pair in _ALTERNATIVES:
        for given, other in (pair, pair[::-1]):
            if given in document.overrides and other not in document.overrides:
                table = value_at(document.values, other[:-1])
                if isinstance(table, dict):
                    table.pop(other[-1], None)
    _load_codes(document, base)
    keys = _validate(document)
    keys._base_dir = base
    keys._places = document.places
    _cross_check(document, keys)
    document.raise_problems()
    return keys


def _load_codes(document: Draft, base: Path) -> None:
    """Load the files of codes, which the schemes may name. Missing files are reported with all others."""
    from stripesim.models.coding import load_code_file
    from stripesim.models.problems import OwnCodeError

    written = document.values.get("codes")
    if not isinstance(written, list):
        return
    for index, name in enumerate(written[:CODE_FILES_MAX]):
        if not isinstance(name, str):
            continue
        path = base / name
        with contextlib.suppress(ValueError, OSError, RuntimeError):
            path = base / Path(name).expanduser()
            if not path.is_file():
                continue
        try:
            load_code_file(path)
        except OwnCodeError as error:
            wanted = f"a file of codes ({error})"
            document.add(KeyProblem(("codes", index), value_text(name), wanted))


def _rename_keys(document: Draft) -> None:
    for problem in rename_keys(document.values, document.lines, document.places):
        document.add(problem)


def find_file(name_or_path: str) -> Path:
    """Return the file of a scenario, given by the name of a shipped one or by a path."""
    shipped = shipped_scenarios()
    if name_or_path in shipped:
        path = _SHIPPED_DIR / f"{name_or_path}.toml"
        return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    path = Path(name_or_path)
    listed = ", ".join(shipped)
    with contextlib.suppress(OSError):
        # Opening a folder or device later fails with the system's own reason.
        if name_or_path and path.exists():
            return path
    shown = name_or_path if name_or_path.isprintable() else repr(name_or_path)
    if path.suffix or len(path.parts) > 1:
        raise ScenarioError(
            Problem(
                place=shown,
                got="no such file",
                wanted=f"a scenario file or one of {listed}",
            )
        )
    near = difflib.get_close_matches(name_or_path, shipped, n=1)
    hint = f'"{near[0]}"; ' if near else ""
    raise ScenarioError(
        Problem(
            place=shown,
            got="no scenario of this name",
            wanted=f"{hint}one of {listed}, or a path",
        )
    )


def read_text(path: Path) -> str:
    """Read a scenario file, but never more of it than the limit."""
    try:
        with path.open("rb") as file:
            content = file.read(TEXT_MAX + 1)
    except OSError as error:
        got = file_reason(error)
        raise ScenarioError(
            Problem(place=str(path), got=got, wanted="a file that can be read")
        ) from None
    if len(content) > TEXT_MAX:
        got = f"more than {TEXT_MAX:,} bytes"
        raise ScenarioError(Problem(place=str(path), got=got, wanted="at most that"))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ScenarioError(
            Problem(
                place=f"{path}:{line}",
                got="a byte that is not UTF-8",
                wanted="TOML in UTF-8",
            )
        ) from None


def draft_of_toml(text: str, label: str) -> Draft:
    """Parse the TOML text of a scenario. `label` names the text in messages."""
    try:
        values, lines_of_keys = _parsed(text, label)
        # Overrides and new names of keys change them.
        return Draft(label, copy.deepcopy(values), dict(lines_of_keys))
    except tomllib.TOMLDecodeError as error:
        line, reason = _syntax_error(text, error)
    lines = text.splitlines()
    written = lines[line - 1].strip() if line <= len(lines) else ""
    raise ScenarioError(
        Problem(
            place=f"{label}:{line}",
            key="syntax",
            got=f"{value_text(written)} ({reason})",
            wanted="TOML",
        )
    )


@lru_cache(maxsize=4)
def _parsed(text: str, label: str) -> tuple[dict[str, Any], dict[KeyPath, int]]:
    """Return the values of a document and the lines of its keys. All points of a sweep have the same."""
    return parse_toml(text, label), locate_keys(text)


def _syntax_error(text: str, error: tomllib.TOMLDecodeError) -> tuple[int, str]:
    """Return the line of a syntax error and the parser's reason."""
    last_line = text.rstrip().count("\n") + 1
    match = re.search(
        r" \(at (?:line (\d+), column \d+|end of document)\)$", str(error)
    )
    if match is None:
        return last_line, str(error)
    reason = str(error)[: match.start()]
    return int(match[1] or last_line), reason


def _override(document: Draft, item: str | Override, base: Path) -> None:
    """Apply an override, whose paths start at the current folder, or record the problem with it."""
    if isinstance(item, str):
        _override_from_text(document, item, base)
        return
    given: object = item
    if not isinstance(given, Override):
        wanted = (
            "text such as workload.requests=2000, or a mapping in place of the list"
        )
        problem = Problem(place="--set", got=short_repr(given), wanted=wanted)
        document.loose.append(problem)
        return
    written = _override_path(item.key)
    if written is None:
        _note_no_key(document, item.place, item.key, item.key)
        return
    value = _as_toml(item.value)
    path = current_path(written, value, item.place)
    document.overrides[path] = item.place
    _replace(document, path, _from_here(str(path[-1]), value, base))


def _override_from_text(document: Draft, item: str, base: Path) -> None:
    """Apply an override of the form ``key.path=value``."""
    key, equals, value = item.partition("=")
    if not equals:
        wanted = "key=value, such as workload.requests=2000"
        document.loose.append(
            Problem(place="--set", key=value_text(item), got='no "="', wanted=wanted)
        )
        return
    written = _override_path(key)
    if written is None:
        _note_no_key(document, "--set", item, key)
        return
    try:
        new = _override_value(value.strip())
    except ValueError:
        wanted = 'a TOML value, such as 2000, 4k or ["rs:6,3"]'
        document.overrides[written] = "--set"
        document.add(KeyProblem(written, value_text(value), wanted))
        return
    path = current_path(written, new, "--set")
    document.overrides[path] = "--set"
    _replace(document, path, _from_here(str(path[-1]), new, base))


def _from_here(key: str, value: Any, base: Path) -> Any:
    """Return a value whose paths, which start at the current folder, mean the same from `base`."""
    if isinstance(value, dict):
        return {name: _from_here(name, item, base) for name, item in value.items()}
    if isinstance(value, list):
        return [_from_here(key, item, base) for item in value]
    if not names_file(key, value) or base.resolve() == Path.cwd().resolve():
        return value
    return str(Path.cwd() / Path(value).expanduser())


def _note_no_key(document: Draft, place: str, item: str, key: str) -> None:
    got = f"{value_text(key)} for a key"
    wanted = "one such as workload.requests"
    document.loose.append(
        Problem(place=place, key=value_text(item), got=got, wanted=wanted)
    )


def _replace(document: Draft, path: KeyPath, value: Any) -> None:
    """Set a value in the document, and create missing tables on the way."""
    table = document.values
    for depth, part in enumerate(path[:-1], start=1):
        table = table.setdefault(str(part), {})
        if not isinstance(table, dict):
            above = key_text(path[:depth])
            got = f"a key inside {above}"
            document.add(KeyProblem(path, got, f"{above} alone, which is not a table"))
            return
    if is_list_key(path) and not isinstance(value, list):
        value = [value]
    table[str(path[-1])] = value


@lru_cache(maxsize=256)
def _override_path(written: str) -> KeyPath | None:
    try:
        nested: Any = parse_toml(f"{written.strip()} = 0")
    except ValueError:
        return None
    path: list[str] = []
    while isinstance(nested, dict):
        if len(nested) != 1:
            return None
        ((key, nested),) = nested.items()
        path.append(key)
    # A line break could smuggle in a second key, so exactly one key is accepted.
    return tuple(path) if nested == 0 and "\n" not in written.strip() else None


def _override_value(text: str) -> Any:
    try:
        parsed = parse_toml(f"value = {text}")
    except ValueError:
        parsed = {}
    if list(parsed) == ["value"]:
        return parsed["value"]
    if not text or text[0] in "[{\"'#" or not text.isprintable():
        raise ValueError(text)
    return text


def _plain(value: Any) -> Any:
    """Replace values that JSON cannot carry by one that no key accepts."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    small = not isinstance(value, int) or value.bit_length() <= 1000
    return value if isinstance(value, str | int | float) and small else {"": None}


def validated(values: Mapping[str, Any]) -> ScenarioKeys:
    """Return the keys of plain values, in which lists stand for tuples, as in TOML and JSON.

    Raises
    ------
    ValidationError
        If a key has a wrong value.
    """
    return ScenarioKeys.model_validate_json(json_line(values))


def _validate(document: Draft) -> ScenarioKeys:
    """Validate all keys, then fall back to defaults for invalid ones so that later rules can run."""
    try:
        return validated(_plain(document.values))
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
    for detail in details:
        # pydantic appends the branch of a union to the path of an error; drop it.
        detail["loc"] = tuple(
            part for part in detail["loc"] if not str(part).startswith("=")
        )
    _note_details(document, details)
    repaired = copy.deepcopy(document.values)
    for path in document.faulty_paths:
        _remove(repaired, path, document.values)
    if not repaired.get("schemes"):
        # Any scheme will do here, because the rules read the schemes from the document.
        repaired["schemes"] = ["none"]
    try:
        return validated(_plain(repaired))
    except ValidationError:
        document.raise_problems()
        raise AssertionError(
            "faults were noted above, so this line is not reached"
        ) from None


def _note_details(document: Draft, details: Sequence[ErrorDetails]) -> None:
    """Convert pydantic's errors to problems, up to the limit: each conversion takes a millisecond."""
    lines = document.places
    ordered = sorted(details, key=lambda detail: lines.find(detail["loc"])[0])
    for detail in ordered:
        path = detail["loc"]
        if detail["type"] == "too_short" and value_at(document.values, path):
            # A list whose items are all invalid is also reported as too short. One report is enough.
            document.faulty_paths.add(path)
        elif len(document.problems) < PROBLEMS_MAX:
            document.add(problem_from_pydantic(detail, document.values))
        else:
            document.faulty_paths.add(path)
            document.unlisted += 1


def _remove(values: dict[str, Any], loc: KeyPath, document: Mapping[str, Any]) -> None:
    """Remove an invalid key: for a list item the whole list, for a missing key the whole table."""
    path = [part for part in loc if isinstance(part, str)]
    table = value_at(document, tuple(path[:-1]))
    present = table if isinstance(table, dict) else {}
    above = value_at(values, tuple(path[:-1]))
    if isinstance(above, dict) and path[-1] in above:
        del above[path[-1]]
    elif len(path) > 1 and path[-1] not in present:
        values.pop(path[0], None)
    if path[0] in ("repair", "degraded") and path[-1] in ("lost_osds", "missing_osds"):
        values.pop(path[0], None)


def _cross_check(document: Draft, keys: ScenarioKeys) -> None:
    faulty = frozenset(document.faulty_paths)
    above_faulty = {path[:length] for path in faulty for length in range(len(path))}

    def is_faulty(path: KeyPath) -> bool:
        """Return True if the key, a table that contains it, or a key inside it is invalid."""
        return path in above_faulty or any(
            path[:length] in faulty for length in range(len(path) + 1)
        )

    for problem in cross_check(keys, _readable_schemes(document)):
        # A rule is meaningless if a key that it depends on is invalid.
        if not any(is_faulty(path) for path in (problem.path, *problem.involves)):
            document.add(problem)


def _readable_schemes(document: Draft) -> list[NumberedScheme]:
    from stripesim.models.coding import parse_scheme
    from stripesim.models.problems import SchemeError

    written = document.values.get("schemes")
    if not isinstance(written, list):
        return []
    schemes = []
    for index, text in enumerate(written[:SCHEMES_MAX]):
        if not isinstance(text, str):
            continue
        with contextlib.suppress(SchemeError):
            schemes.append(NumberedScheme(index, text, parse_scheme(text)))
    return schemes

"""Read a scenario from TOML, apply overrides, and report every fault at once with its place."""

import contextlib
import copy
import difflib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from stripesim.scenarios.schema.checks import cross_check
from stripesim.scenarios.schema.geometry import NumberedScheme
from stripesim.scenarios.schema.keys import TODAY_CLUSTER, TODAY_GENERATION, TODAY_PARAMETERS, Scenario
from stripesim.scenarios.schema.problems import (
    Problem,
    is_list_key,
    problem_from_pydantic,
    value_at,
    value_text,
)
from stripesim.scenarios.schema.toml import KeyPath, KeyPlaces, key_text, locate_keys

_SHIPPED_DIR: Final = Path(__file__).parents[1]

#: Two ways to say one thing: an override that gives one takes the other, if it stands in the file, away.
_ALTERNATIVES: Final[tuple[tuple[KeyPath, KeyPath], ...]] = (
    (("workload", "requests"), ("workload", "duration_s")),
    (("workload", "ops"), ("workload", "read_fraction")),
)


class ScenarioError(ValueError):
    """A scenario that cannot be used: a line ``place: key: got …, wanted …`` for each problem.

    The place is ``file:line`` or, for overrides, ``--set``.
    """

    @property
    def faults(self) -> list[str]:
        """The lines of the text, one for each fault."""
        return str(self).splitlines()


@dataclass
class _Document:
    """A TOML document on its way to a scenario; `loose` are problems of no key."""

    label: str
    values: dict[str, Any]
    lines: dict[KeyPath, int]
    problems: list[Problem] = field(default_factory=list)
    overrides: dict[KeyPath, str] = field(default_factory=dict)
    loose: list[str] = field(default_factory=list)

    @property
    def places(self) -> KeyPlaces:
        """Where all keys stand."""
        return KeyPlaces(self.label, self.lines, self.overrides)

    def raise_problems(self) -> None:
        find = self.places.find
        placed = sorted(
            ((*find(problem.path), problem) for problem in self.problems), key=lambda item: item[:2]
        )
        lines = [
            f"{place}: {key_text(one.path)}: got {one.got}, wanted {one.wanted}" for _, place, one in placed
        ]
        if lines or self.loose:
            raise ScenarioError("\n".join(dict.fromkeys(lines + self.loose)))


def shipped_scenarios() -> list[str]:
    """List the scenarios that ship."""
    return sorted(path.stem for path in _SHIPPED_DIR.glob("*.toml"))


def load_scenario(name_or_path: str | Path, *, sets: Sequence[str] = (), seed: int | None = None) -> Scenario:
    """Read a scenario by name or from a file.

    Parameters
    ----------
    name_or_path
        Name of a scenario that ships (`koh2017`), or the path of a TOML file.
    sets
        Overrides ``key.path=value``, applied in order. Values are TOML; a bare word that is no TOML value is
        text (``4k``), and one value given for a list is a list of one. ``workload.requests`` and
        ``workload.duration_s`` replace each other, and so do ``workload.ops`` and ``workload.read_fraction``.
    seed
        Seed to use instead of the scenario's, 0 … 2⁶³ − 1.

    Returns
    -------
    Scenario
        Validated; relative paths in it start at the file's folder.

    Raises
    ------
    ScenarioError
        If anything is wrong; all faults at once, one line each.
    """
    path = _find(str(name_or_path))
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ScenarioError(f"{path}:{line}: got a byte that is not UTF-8, wanted TOML in UTF-8") from None
    except OSError as error:
        raise ScenarioError(
            f"{path}: got {error.strerror or error}, wanted a file that can be read"
        ) from None
    return parse_scenario(text, label=str(path), base_dir=path.parent.absolute(), sets=sets, seed=seed)


def parse_scenario(
    text: str,
    *,
    label: str = "scenario",
    base_dir: Path | None = None,
    sets: Sequence[str] = (),
    seed: int | None = None,
) -> Scenario:
    """Read a scenario from TOML text.

    Parameters
    ----------
    text
        The TOML document.
    label
        What to call it in messages, usually its path.
    base_dir
        Folder that relative paths in it start from; the current one if None.
    sets, seed
        As for `load_scenario`.

    Returns
    -------
    Scenario
        Validated.

    Raises
    ------
    ScenarioError
        If anything is wrong; all faults at once, one line each.

    Examples
    --------
    >>> parse_scenario('schemes = ["rep:3"]', sets=["workload.requests=10"]).workload.requests
    10
    """
    return _finished(_parse_toml(text, label), base_dir, sets, seed)


def scenario_from(
    values: Mapping[str, Any],
    *,
    label: str = "Scenario",
    base_dir: Path | None = None,
    sets: Sequence[str] = (),
    seed: int | None = None,
) -> Scenario:
    """Make a scenario of Python values: mappings are tables, sequences arrays; else as `parse_scenario`."""
    document = _Document(label, {key: _as_toml(value) for key, value in values.items()}, {})
    return _finished(document, base_dir, sets, seed)


def _as_toml(value: Any) -> Any:
    """Return a value in the types that a TOML document has."""
    if isinstance(value, Mapping):
        return {str(key): _as_toml(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_as_toml(part) for part in value]
    if isinstance(value, Path):
        return str(value)
    return value.item() if hasattr(value, "item") else value


def _finished(document: _Document, base_dir: Path | None, sets: Sequence[str], seed: int | None) -> Scenario:
    """Apply overrides, validate, and check rules that span several keys."""
    for item in sets:
        _override(document, item)
    if seed is not None:
        document.values["seed"] = seed
        document.overrides[("seed",)] = "--seed"
    for pair in _ALTERNATIVES:
        for given, other in (pair, pair[::-1]):
            if given in document.overrides and other not in document.overrides:
                table = value_at(document.values, other[:-1])
                if isinstance(table, dict):
                    table.pop(other[-1], None)
    cluster = document.values.setdefault("cluster", {})
    if isinstance(cluster, dict) and cluster.get("parameters", TODAY_PARAMETERS) == TODAY_PARAMETERS:
        # What a scenario of today leaves out is the hardware that its set was measured on.
        document.values.setdefault("generation", TODAY_GENERATION)
        cluster |= {key: value for key, value in TODAY_CLUSTER.items() if key not in cluster}
    scenario = _validate(document)
    scenario._base_dir = Path() if base_dir is None else base_dir
    scenario._places = document.places
    _cross_check(document, scenario)
    document.raise_problems()
    return scenario


def _find(name_or_path: str) -> Path:
    shipped = shipped_scenarios()
    if name_or_path in shipped:
        path = _SHIPPED_DIR / f"{name_or_path}.toml"
        return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    path, listed = Path(name_or_path), ", ".join(shipped)
    with contextlib.suppress(OSError):
        # Opening what is there but is no file gives the system's own reason.
        if name_or_path and path.exists():
            return path
    shown = name_or_path if name_or_path.isprintable() else repr(name_or_path)
    if path.suffix or len(path.parts) > 1:
        raise ScenarioError(f"{shown}: got no such file, wanted a scenario file or one of {listed}")
    near = difflib.get_close_matches(name_or_path, shipped, n=1)
    hint = f'"{near[0]}"; ' if near else ""
    raise ScenarioError(f"{shown}: got no scenario of this name, wanted {hint}one of {listed}, or a path")


#: Deeper than any key of a scenario; Python's own limit is met somewhere beyond.
_DEPTH_MAX: Final = 20


def _loads(text: str) -> dict[str, Any]:
    """Read TOML, but values nested beyond all bounds."""
    values = tomllib.loads(text)
    level: list[Any] = [values]
    for _ in range(_DEPTH_MAX):
        nested = [value for value in level if isinstance(value, dict | list)]
        level = [item for value in nested for item in (value.values() if isinstance(value, dict) else value)]
    if level:
        raise RecursionError
    return values


def _parse_toml(text: str, label: str) -> _Document:
    try:
        return _Document(label, _loads(text), locate_keys(text))
    except tomllib.TOMLDecodeError as error:
        match = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
        reason = str(error)[: match.start()] if match else str(error)
        line = int(match[1]) if match and match[1] else text.rstrip().count("\n") + 1
        written = text.splitlines()[line - 1].strip() if line <= len(text.splitlines()) else ""
        got = f"{value_text(written)} ({reason})"
    except (ValueError, RecursionError):
        # tomllib lets Python's own limits through: integers of thousands of digits, arrays nested as deep.
        line, got = 1, "numbers of thousands of digits or values nested too deep"
    raise ScenarioError(f"{label}:{line}: syntax: got {got}, wanted TOML")


def _override(document: _Document, item: str) -> None:
    """Apply one ``key.path=value``, or note what is wrong with it."""
    shown, (written, equals, value) = value_text(item), item.partition("=")
    path = _override_path(written)
    if not equals or path is None:
        got, wanted = 'no "="', "key=value, such as workload.requests=2000"
        if equals:
            got, wanted = f"{value_text(written)} for a key", "one such as workload.requests"
        document.loose.append(f"--set: {shown}: got {got}, wanted {wanted}")
        return
    document.overrides[path] = "--set"
    try:
        new = _override_value(value.strip())
    except ValueError:
        wanted = 'a TOML value, such as 2000, 4k or ["rs:6,3"]'
        document.problems.append(Problem(path, value_text(value), wanted))
        return
    table = document.values
    for depth, part in enumerate(path[:-1], start=1):
        table = table.setdefault(str(part), {})
        if not isinstance(table, dict):
            above = key_text(path[:depth])
            document.problems.append(
                Problem(path, f"a key inside {above}", f"{above} itself: it is no table")
            )
            return
    table[str(path[-1])] = [new] if is_list_key(path) and not isinstance(new, list) else new


def _override_path(written: str) -> KeyPath | None:
    try:
        nested: Any = tomllib.loads(f"{written.strip()} = 0")
    except (ValueError, RecursionError):
        return None
    path: list[str] = []
    while isinstance(nested, dict) and len(path) < _DEPTH_MAX:
        if len(nested) != 1:
            return None
        ((key, nested),) = nested.items()
        path.append(key)
    # A line break in the argument could smuggle a second key in; anything but one key is refused.
    return tuple(path) if nested == 0 and "\n" not in written.strip() else None


def _override_value(text: str) -> Any:
    try:
        parsed = _loads(f"value = {text}")
    except (ValueError, RecursionError):
        parsed = {}
    if list(parsed) == ["value"]:
        return parsed["value"]
    if not text or text[0] in "[{\"'#" or not text.isprintable():
        raise ValueError(text)
    return text


def _plain(value: Any) -> Any:
    """Make a TOML value one that JSON can carry; what it cannot becomes something that no key accepts."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    small = not isinstance(value, int) or value.bit_length() <= 1000
    return value if isinstance(value, str | int | float) and small else {"": None}


def _validate(document: _Document) -> Scenario:
    """Validate each key; where some are faulty, go on with defaults so that the other rules can speak."""
    try:
        return Scenario.model_validate_json(json.dumps(_plain(document.values)))
    except ValidationError as error:
        details = error.errors(include_url=False)
    for detail in details:
        # Of a key that takes a number or a list, pydantic adds which of both it took the value for.
        detail["loc"] = tuple(part for part in detail["loc"] if not str(part).startswith("="))
        # A list whose elements are all faulty is also called too short; once is enough.
        if detail["type"] != "too_short" or not value_at(document.values, detail["loc"]):
            document.problems.append(problem_from_pydantic(detail, document.values))
    repaired = copy.deepcopy(document.values)
    for detail in details:
        _remove(repaired, detail["loc"], document.values)
    if not repaired.get("schemes"):
        # Any scheme will do: the rules read the schemes from the document.
        repaired["schemes"] = ["none"]
    try:
        return Scenario.model_validate_json(json.dumps(_plain(repaired)))
    except ValidationError:
        document.raise_problems()
        raise AssertionError("faults were noted above, so this line is not reached") from None


def _remove(values: dict[str, Any], loc: KeyPath, document: Mapping[str, Any]) -> None:
    """Take a faulty key out: the whole list for one of its elements, the whole table for a key it lacks."""
    path = [part for part in loc if isinstance(part, str)]
    table = value_at(document, tuple(path[:-1]))
    given = table if isinstance(table, dict) else {}
    above = value_at(values, tuple(path[:-1]))
    if isinstance(above, dict) and path[-1] in above:
        del above[path[-1]]
    elif len(path) > 1 and path[-1] not in given:
        values.pop(path[0], None)
    if path[0] in ("repair", "degraded") and path[-1] in ("lost_osds", "missing_osds"):
        values.pop(path[0], None)


def _cross_check(document: _Document, scenario: Scenario) -> None:
    from stripesim.models.coding import SchemeError, parse_scheme

    schemes = []
    given = document.values.get("schemes")
    for index, text in enumerate(given if isinstance(given, list) else []):
        with contextlib.suppress(SchemeError):
            if isinstance(text, str):
                schemes.append(NumberedScheme(index, text, parse_scheme(text)))
    faulty = [found.path for found in document.problems]
    for found in cross_check(scenario, schemes):
        # A rule means nothing where a key that it rests on, or one above or within it, has a problem itself.
        rests_on = (found.path, *found.involves)
        if not any(a[: len(b)] == b[: len(a)] for a in faulty for b in rests_on):
            document.problems.append(found)

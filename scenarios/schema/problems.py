"""Describe problems of a scenario, each in one line with location, value and expectation."""

import datetime
import difflib
import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from stripesim.models.problems import Problem
from stripesim.scenarios.schema.keys import ScenarioKeys
from stripesim.scenarios.schema.toml import (
    KEY_CHARACTERS_MAX,
    KeyPath,
    key_text,
    shorten,
)

_VALUE_CHARACTERS_MAX: Final = 60
#: Maximum length of a value in a message. Values of lists may be long.
_GOT_CHARACTERS_MAX: Final = 300
#: Keys of a table up to which a message names them all beside a suggestion from another table [count].
_SIBLINGS_MAX: Final = 8
#: Most keys that a message suggests for an unknown one.
_SUGGESTIONS_MAX: Final = 3


@dataclass(frozen=True)
class KeyProblem:
    """A problem of a scenario. It is dropped if a key that it `involves` is invalid."""

    path: KeyPath
    got: str
    wanted: str
    involves: tuple[KeyPath, ...] = ()

    def at(self, place: str) -> Problem:
        """Return the problem at its place."""
        got = shorten(self.got, _GOT_CHARACTERS_MAX)
        key = key_text(self.path)
        return Problem(place=place, key=key, got=got, wanted=self.wanted)


def problem(key: str, got: object, wanted: str, *involves: str) -> KeyProblem:
    """Create a problem from dotted keys. Digits are list indices: ``workloads.0.name``."""
    text = value_text(got) if isinstance(got, list | tuple) else str(got)
    return KeyProblem(_path(key), text, wanted, tuple(map(_path, involves)))


def repeats(key: str, values: Sequence[Hashable]) -> Iterator[KeyProblem]:
    """Refuse the repeated values of a list."""
    for index in repeated_positions(values):
        yield problem(f"{key}.{index}", f"{values[index]} twice", "no repeated values")


def repeated_positions(values: Sequence[Hashable]) -> Iterator[int]:
    """Yield the positions of repeated values."""
    seen: set[Hashable] = set()
    for index, value in enumerate(values):
        if value in seen:
            yield index
        seen.add(value)


def _path(key: str) -> KeyPath:
    return tuple(int(part) if part.isdigit() else part for part in key.split("."))


_WANTED: Final[Mapping[str, str]] = {
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text in quotes",
    "string_too_short": "text that is not empty",
    "string_pattern_mismatch": "text matching {pattern}",
    "tuple_type": "a list: [ … ]",
    "too_short": "a list with at least one value",
    "too_long": "a list of at most {max_length:,} values",
    "string_too_long": "text of at most {max_length} characters",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "dict_type": "a table",
    "literal_error": "{expected}",
    "greater_than": "a number above {gt}",
    "greater_than_equal": "a number of at least {ge}",
    "less_than": "a number below {lt}",
    "less_than_equal": "a number of at most {le}",
    "wanted": "{wanted}",
}


def value_text(value: object) -> str:
    """Write a TOML value in one short line.

    >>> value_text(["rs:6,3", 1.5, True])
    '["rs:6,3", 1.5, true]'
    """
    if (
        isinstance(value, int)
        and not isinstance(value, bool)
        and value.bit_length() > 128
    ):
        # Python refuses to print the longest integers.
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, datetime.date | datetime.time):
        return str(value)
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except ValueError:
        text = type(value).__name__
    text = " ".join(text.split())
    return shorten(text, _VALUE_CHARACTERS_MAX)


def value_at(document: object, path: KeyPath) -> object:
    """Return the value at a path of a document, or None."""
    for part in path:
        if isinstance(document, Mapping):
            document = document.get(part)
        elif (
            isinstance(document, list)
            and isinstance(part, int)
            and part < len(document)
        ):
            document = document[part]
        else:
            return None
    return document


@cache
def _known_keys() -> dict[tuple[str, ...], bool]:
    """Map every key of a scenario to whether its value is a list."""
    known: dict[tuple[str, ...], bool] = {}

    def walk(model: type[BaseModel], above: tuple[str, ...]) -> None:
        for name, field in model.model_fields.items():
            # `cluster.hosts` takes a number or a list; a single value stays a number.
            one_of = (field.annotation, *get_args(field.annotation))
            known[(*above, name)] = any(get_origin(part) is tuple for part in one_of)
            for option in _options(field.annotation):
                if isinstance(option, type) and issubclass(option, BaseModel):
                    walk(option, (*above, name))

    walk(ScenarioKeys, ())
    return known


def _options(annotation: Any) -> Iterator[Any]:
    """Yield an annotation and all its arguments, recursively."""
    yield annotation
    for part in get_args(annotation):
        yield from _options(part)


def is_list_key(path: KeyPath) -> bool:
    """Return True if a scenario's key takes a list."""
    return _known_keys().get(tuple(map(str, path)), False)


def _unknown_key(path: KeyPath) -> KeyProblem:
    """Suggest keys that the author may have meant, or list the keys of the table."""
    name = shorten(str(path[-1]), KEY_CHARACTERS_MAX)
    # The path of a table in a list contains its index, the key does not.
    table = tuple(part for part in path[:-1] if isinstance(part, str))
    got = f'unknown key "{name}"' if name.isprintable() else f"unknown key {name!r}"
    if not any(key[:-1] == table for key in _known_keys()):
        # The author named the last table, as in [plan.prices.drives.NAME].
        table = table[:-1]
    siblings = [key for key in _known_keys() if key[:-1] == table]
    meant = _meant_keys(name, siblings)
    known = "one of " + ", ".join(key[-1] for key in siblings)
    if not meant:
        return KeyProblem(path, got, known)
    wanted = " or ".join(_suggestion(key, table) for key in meant)
    is_elsewhere = all(key[:-1] != table for key in meant)
    if is_elsewhere and len(table) and len(siblings) <= _SIBLINGS_MAX:
        wanted += f", or here {known}"
    return KeyProblem(path, got, wanted)


def _meant_keys(name: str, siblings: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return known keys that an unknown key may stand for, the likeliest first."""
    leaves = {key[-1]: key for key in siblings}
    if f"{name}s" in leaves:
        return [leaves[f"{name}s"]]
    # Of equal names, the first one with the shortest path stays.
    by_leaf: dict[str, tuple[str, ...]] = {}
    for key in sorted(_known_keys(), key=len):
        by_leaf.setdefault(key[-1], key)
    longer = [key for key in siblings if _says_more(key[-1], name)]
    if longer:
        elsewhere = [by_leaf[name]] if name in by_leaf else []
        return (longer + elsewhere)[:_SUGGESTIONS_MAX]
    # A typing error is likelier than another table, another table likelier than another word.
    for known, cutoff in (
        (leaves, 0.85),
        (by_leaf, 1.0),
        (leaves, 0.6),
        (by_leaf, 0.8),
    ):
        near = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
        if near:
            return [known[near[0]]]
    return []


def _says_more(known: str, name: str) -> bool:
    """Return True for a key with all words of a name, the same one first, and more.

    So has `object_sizes_bytes` those of `object_bytes`.
    """
    name_parts, known_parts = name.split("_"), known.split("_")
    return name_parts[0] == known_parts[0] and set(name_parts) < set(known_parts)


def _suggestion(key: tuple[str, ...], table: tuple[str, ...]) -> str:
    """Write a suggested key, with its table if the author wrote another one."""
    if key[:-1] == table:
        return f'"{key[-1]}"'
    if len(key) == 1:
        return f'"{key[0]}" outside all tables, not in [{key_text(table)}]'
    return f'"{key_text(key)}"'


_EXAMPLES: Final[Mapping[str, str]] = {
    "schemes": 'a list of schemes, such as ["rep:3", "rs:6,3"]',
    "lost_osds": "a list of OSD numbers, such as [0]",
    "missing_osds": "a list of OSD numbers, such as [0]",
    "at_s": "the time of the event [s]",
    "osd": "the number of an OSD",
    "trace": "the path of a trace",
    "distribution": '"exponential", "weibull" or "lognormal"',
}


# Tables that are easily taken for lists of tables.
_TABLES: Final[Mapping[KeyPath, str]] = {
    ("faults",): "a table, with each failure or slow drive in [[faults.events]]",
}


def problem_from_pydantic(
    error: ErrorDetails, document: Mapping[str, Any]
) -> KeyProblem:
    """Convert an error of pydantic to a problem."""
    path: KeyPath = error["loc"]
    if error["type"] == "extra_forbidden":
        return _unknown_key(path)
    if error["type"] == "missing":
        key = str(path[-1])
        return KeyProblem(
            path, "nothing", _EXAMPLES.get(key, f"{key}, which has no default")
        )
    wanted = _WANTED.get(
        error["type"], error["msg"].replace("{", "{{").replace("}", "}}")
    )
    # pydantic quotes literals as Python does; TOML users write double quotes.
    wanted = wanted.format_map(error.get("ctx", {})).replace("'", '"')
    if wanted == "a table":
        wanted = _TABLES.get(path, wanted)
    return KeyProblem(path, value_text(value_at(document, path)), wanted)

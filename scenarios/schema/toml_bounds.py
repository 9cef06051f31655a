"""Parse TOML documents of bounded size.

The bounds are checked before parsing. A document within them parses in less than a second. `tomllib` has
no bounds, and its time grows with the square of the number of parts of a dotted key.
"""

import re
import tomllib
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, Final, TypeAlias

from stripesim.models.problems import Problem, ScenarioError

#: Characters of a document, and bytes of a file.
TEXT_MAX: Final = 1 << 20
LINES_MAX: Final = 100_000
#: Parts of keys, items of lists, and tables of a document [count].
VALUES_MAX: Final = 20_000
KEY_PARTS_MAX: Final = 20
#: Nesting depth of tables and lists.
DEPTH_MAX: Final = 20
#: Characters of a bare key, a number or a date.
WORD_MAX: Final = 1000

# Strings and comments, terminated or not. Their content has no structure.
_OPAQUE: Final = re.compile(
    r'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*(?:"{3,5})?'
    r"|'''[^']*(?:'(?!'')[^']*)*(?:'{3,5})?"
    r'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"?'
    r"|'[^'\n]*'?"
    r"|#[^\n]*",
    re.DOTALL,
)
#: What exceeds a bound: its line, from 1, the value and the bound.
Excess: TypeAlias = tuple[int, str, int]

_SEPARATOR: Final = re.compile(r"[=,\[\]{}\n]")
_BRACKET: Final = re.compile(r"[\[\]{}]")


def parse_toml(text: str, label: str = "") -> dict[str, Any]:
    """Parse a TOML document of bounded size.

    Parameters
    ----------
    text
        The document.
    label
        Name of its file in problems, which then begin with the file and the line.

    Returns
    -------
    dict
        Its values, as `tomllib.loads` returns them.

    Raises
    ------
    ScenarioError
        If the document exceeds a bound of this module.
    tomllib.TOMLDecodeError
        If it is not valid TOML.
    """
    excess = next(_excesses(text), None)
    if excess is not None:
        raise _problem(label, excess)
    values = tomllib.loads(text)
    if _is_too_deep(values):
        got = f"values nested more than {DEPTH_MAX} deep"
        raise _problem(label, (1, got, DEPTH_MAX))
    return values


def _problem(label: str, excess: Excess) -> ScenarioError:
    line, got, most = excess
    location = f"{label}:{line}" if label else f"line {line}"
    return ScenarioError(
        Problem(place=location, key="syntax", got=got, wanted=f"at most {most:,}")
    )


def _excesses(text: str) -> Iterator[Excess]:
    """Yield each excess over a bound. A check takes long for documents that fail an earlier one."""
    if len(text) > TEXT_MAX:
        yield 1, f"{len(text):,} characters", TEXT_MAX
    skeleton = _OPAQUE.sub(_line_breaks, text)
    lines = skeleton.count("\n")
    if lines > LINES_MAX:
        yield LINES_MAX, f"{lines:,} lines", LINES_MAX
    marks = sum(skeleton.count(mark) for mark in "=,[{.")
    if marks > VALUES_MAX:
        yield 1, f"{marks:,} parts of keys, items and tables", VALUES_MAX
    for number, line in enumerate(skeleton.split("\n"), start=1):
        yield from _long_words(number, line)
    depth = _brackets_depth(skeleton)
    if depth > DEPTH_MAX:
        yield 1, f"values nested {depth:,} deep", DEPTH_MAX


def _line_breaks(opaque: re.Match[str]) -> str:
    """Replace a string by its line breaks, so that line numbers stay correct."""
    return "\n" * opaque[0].count("\n")


def _long_words(number: int, line: str) -> Iterator[Excess]:
    if len(line) <= KEY_PARTS_MAX:
        return
    for word in _SEPARATOR.split(line):
        parts = word.count(".") + 1
        if parts > KEY_PARTS_MAX:
            yield number, f"a key of {parts:,} parts", KEY_PARTS_MAX
        if len(word) > WORD_MAX:
            yield number, f"a key or number of {len(word):,} characters", WORD_MAX


def _brackets_depth(skeleton: str) -> int:
    steps = (1 if bracket in "[{" else -1 for bracket in _BRACKET.findall(skeleton))
    return max(accumulate(steps), default=0)


def _is_too_deep(values: dict[str, Any]) -> bool:
    """Return True if dotted keys, tables and lists add up to more than `DEPTH_MAX` levels."""
    level: list[Any] = [values]
    for _ in range(DEPTH_MAX + 1):
        level = [item for value in level for item in _items(value)]
    return bool(level)


def _items(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list):
        return value
    return []

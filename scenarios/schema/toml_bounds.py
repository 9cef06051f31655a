"""Parse TOML documents of bounded size.

The bounds are checked before parsing. A document within them parses in less than a second. `tomllib` has
no bounds, and its time grows with the square of the number of parts of a dotted key.
"""

import re
import tomllib
from itertools import accumulate
from typing import Any, Final

from stripesim.models.problems import TomlBoundError

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
_SEPARATOR: Final = re.compile(r"[=,\[\]{}\n]")
_BRACKET: Final = re.compile(r"[\[\]{}]")


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a TOML document of bounded size.

    Parameters
    ----------
    text
        The document.

    Returns
    -------
    dict
        Its values, as `tomllib.loads` returns them.

    Raises
    ------
    TomlBoundError
        If the document exceeds a bound of this module.
    tomllib.TOMLDecodeError
        If it is not valid TOML.
    """
    _check_bounds(text)
    values = tomllib.loads(text)
    _check_depth(values)
    return values


def _check_bounds(text: str) -> None:
    if len(text) > TEXT_MAX:
        raise TomlBoundError(1, f"{len(text):,} characters", f"at most {TEXT_MAX:,}")
    skeleton = _OPAQUE.sub(_line_breaks, text)
    lines = skeleton.count("\n")
    if lines > LINES_MAX:
        raise TomlBoundError(LINES_MAX, f"{lines:,} lines", f"at most {LINES_MAX:,}")
    marks = sum(skeleton.count(mark) for mark in "=,[{.")
    if marks > VALUES_MAX:
        got = f"{marks:,} parts of keys, items and tables"
        raise TomlBoundError(1, got, f"at most {VALUES_MAX:,}")
    for number, line in enumerate(skeleton.split("\n"), start=1):
        _check_words(number, line)
    _check_brackets(skeleton)


def _line_breaks(opaque: re.Match[str]) -> str:
    """Replace a string by its line breaks, so that line numbers stay correct."""
    return "\n" * opaque[0].count("\n")


def _check_words(number: int, line: str) -> None:
    if len(line) <= KEY_PARTS_MAX:
        return
    for word in _SEPARATOR.split(line):
        parts = word.count(".") + 1
        if parts > KEY_PARTS_MAX:
            raise TomlBoundError(
                number, f"a key of {parts:,} parts", f"at most {KEY_PARTS_MAX}"
            )
        if len(word) > WORD_MAX:
            got = f"a key or number of {len(word):,} characters"
            raise TomlBoundError(number, got, f"at most {WORD_MAX:,}")


def _check_brackets(skeleton: str) -> None:
    steps = (1 if bracket in "[{" else -1 for bracket in _BRACKET.findall(skeleton))
    depth = max(accumulate(steps), default=0)
    if depth > DEPTH_MAX:
        raise TomlBoundError(1, f"values nested {depth:,} deep", f"at most {DEPTH_MAX}")


def _check_depth(values: dict[str, Any]) -> None:
    """Check the depth of the parsed document, which dotted keys, tables and lists add up to."""
    level: list[Any] = [values]
    for _ in range(DEPTH_MAX + 1):
        level = [item for value in level for item in _items(value)]
    if level:
        raise TomlBoundError(
            1, f"values nested more than {DEPTH_MAX} deep", f"at most {DEPTH_MAX}"
        )


def _items(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list):
        return value
    return []

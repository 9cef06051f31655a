"""Expressions of lessons in pages, which Python and JavaScript compute alike: ``copies.rate / coded.rate``.

An expression has numbers, names, attributes, calls of `FUNCTIONS` and ``+ - * / **``.
``pages/lesson.js`` has the same functions.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from stripesim.notebooks.answers.queueing_theory import erlang_c_wait
from stripesim.notebooks.teach import answer_text


def harmonic(count: int) -> float:
    """Return 1 + 1/2 + … + 1/count.

    >>> harmonic(2)
    1.5
    """
    return sum(1 / number for number in range(1, count + 1))


def rs(k: int, m: int) -> str:
    """Return the notation of a Reed–Solomon code.

    >>> rs(6, 3)
    'rs:6,3'
    """
    return f"rs:{k},{m}"


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "abs": abs,
    "erlang_c_wait": erlang_c_wait,
    "floor": math.floor,
    "harmonic": harmonic,
    "log": math.log,
    "max": max,
    "min": min,
    "rs": rs,
}
_EXPRESSION = re.compile(r"\{([^{}]+)\}")


def value_of(expression: str, names: Mapping[str, Any]) -> Any:
    """Compute an expression.

    >>> value_of("max(4, depth) / 2", {"depth": 9})
    4.5
    """
    code = compile(expression, f"<{expression}>", "eval")
    return eval(code, {"__builtins__": {}, **FUNCTIONS}, names)


def filled(template: str, names: Mapping[str, Any]) -> str:
    """Replace the expressions in braces by their values.

    >>> filled("{n} copies of 4 KiB: {n * 4096} B", {"n": 3})
    '3 copies of 4 KiB: 12,288 B'
    """
    return _EXPRESSION.sub(
        lambda found: answer_text(value_of(found[1], names)), template
    )

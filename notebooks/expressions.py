"""Expressions of lessons in pages, which Python and JavaScript compute alike: ``copies.rate / coded.rate``.

An expression has numbers, names, attributes, subscripts, calls of `FUNCTIONS` and ``+ - * / **``.
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


def parameters(scheme: str) -> list[int]:
    """Return the numbers of a scheme.

    >>> parameters("clay:9,3,11")
    [9, 3, 11]
    """
    return [int(number) for number in scheme.partition(":")[2].split(",")]


def clay(k: int, m: int, d: int) -> str:
    """Return the notation of a Clay code.

    >>> clay(9, 3, 11)
    'clay:9,3,11'
    """
    return f"clay:{k},{m},{d}"


def years_to_loss(
    drives: int, losses: int, failures_per_year: float, rebuild_h: float
) -> float:
    """Return the mean time until one drive more than `losses` is lost at once, in years.

    Each lost drive is rebuilt on its own, in `rebuild_h` on average. This is the chain of lesson 11.

    >>> round(years_to_loss(1, 0, 0.02, 24.0))
    50
    """
    rebuilt_per_year = HOURS_A_YEAR / rebuild_h
    step = 0.0
    years = 0.0
    for lost in range(losses + 1):
        # From `lost` to one more: a failure, or a rebuild and the same steps again.
        back = lost * rebuilt_per_year * step
        step = (1 + back) / ((drives - lost) * failures_per_year)
        years += step
    return years


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "abs": abs,
    "choose": math.comb,
    "clay": clay,
    "erlang_c_wait": erlang_c_wait,
    "exp": math.exp,
    "floor": math.floor,
    "harmonic": harmonic,
    "log": math.log,
    "max": max,
    "min": min,
    "parameters": parameters,
    "rs": rs,
    "sqrt": math.sqrt,
    "years_to_loss": years_to_loss,
}
HOURS_A_YEAR: Final = 8766
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

"""Name arguments of Python functions in errors, where the command line names options.

Errors of the simulator cite options such as ``--set`` or ``--lost-shard``. A caller from Python wrote
``sets`` or ``lost_shard``.
"""

import inspect
import re
from collections.abc import Callable, Collection
from functools import partial, wraps
from typing import Any, Final, ParamSpec, TypeVar

from stripesim.models.problems import ProblemsError

P = ParamSpec("P")
R = TypeVar("R")

_OPTION: Final = re.compile(r"--([a-z][a-z0-9-]*)")
#: Options whose argument has another name than the option.
_NAMES: Final = {
    "set": "sets",
    "scheme": "schemes",
    "size": "size_bytes",
    "offset": "offset_bytes",
    "stripe_unit": "stripe_unit_bytes",
    "p99": "p99_bounds_s",
    "pool": "pools",
    "figure": "figures",
    "width": "width_inch",
}


def citing_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function whose errors cite its arguments instead of options of the command line."""
    parameters = inspect.signature(function).parameters

    @wraps(function)
    def citing(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except ValueError as error:
            rename = partial(_with_arguments, names={*parameters, *keywords})
            if isinstance(error, ProblemsError):
                error.rewrite(rename)
            else:
                error.args = tuple(
                    rename(part) if isinstance(part, str) else part
                    for part in error.args
                )
            raise

    return citing


def _with_arguments(message: str, names: Collection[str]) -> str:
    """Replace options in a message by the arguments of those names."""

    def argument(option: re.Match[str]) -> str:
        name = option[1].replace("-", "_")
        name = _NAMES.get(name, name)
        return name if name in names else option[0]

    return _OPTION.sub(argument, message)

"""Find the dependencies of a function's machine code: files of functions that it calls, and constants."""

import sys
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from stripesim.models.jit.inner_functions import referred

_PACKAGE: Final = __name__.split(".", maxsplit=1)[0]
#: It decides how a kernel is called.
_BUILDER: Final = f"{__package__}.build"
_PLAIN: Final = (bool, int, float, str, type(None), np.generic)


def origin_of(function: Callable[..., Any]) -> dict[str, str]:
    """Return a digest of each file, and the value of each constant, that a kernel's code depends on.

    Parameters
    ----------
    function
        The kernel in Python.

    Returns
    -------
    dict
        By name: ``module`` for a file, ``module:name`` for a constant. `current` returns the value of each
        today.
    """
    names = {_BUILDER}
    seen: set[int] = set()
    waiting: list[Any] = [function]
    while waiting:
        called = waiting.pop()
        if id(called) in seen:
            continue
        seen.add(id(called))
        if _is_own(called.__module__):
            names.add(called.__module__)
        for module, name, value in _used(called):
            if isinstance(value, _PLAIN) or _is_numpy_type(value):
                names.add(f"{module}:{name}")
            elif _is_own(getattr(value, "__module__", None) or ""):
                names.add(value.__module__)
                inside = getattr(value, "function", value)
                if hasattr(inside, "__code__"):
                    waiting.append(inside)
    return {name: current(name) for name in sorted(names)}


def digest_of_origin(function: Callable[..., Any]) -> str:
    """Return a digest of the dependencies of a function's code within the package."""
    return sha256(repr(origin_of(function)).encode()).hexdigest()


def current(name: str) -> str:
    """Return the digest of a file, or the value of a constant. See `origin_of`.

    Raises
    ------
    LookupError, OSError
        If the module, its file or the constant does not exist.
    """
    module, _, constant = name.partition(":")
    if not constant:
        return _digest(module)
    value = vars(sys.modules[module])[constant]
    # The representation of a NumPy number depends on NumPy's version.
    return f"{type(value).__name__} {value}"


def _is_own(module: str) -> bool:
    return module.partition(".")[0] == _PACKAGE


def _is_numpy_type(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, np.generic)


@cache
def _digest(module: str) -> str:
    # Without loading the module, which may load Numba.
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise LookupError(module)
    return sha256(Path(spec.origin).read_bytes()).hexdigest()


def _used(function: Any) -> list[tuple[str, str, Any]]:
    """Return module, name and value of what a function uses, also as an attribute of a module."""
    used = []
    for name, value in referred(function):
        if not isinstance(value, ModuleType):
            used.append((function.__module__, name, value))
        elif _is_own(value.__name__):
            for attribute in function.__code__.co_names:
                if attribute in vars(value):
                    member = vars(value)[attribute]
                    used.append((value.__name__, attribute, member))
    return used

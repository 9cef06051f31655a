"""Inner functions, which only compiled functions call."""

import dis
from collections.abc import Callable, Iterator
from functools import cached_property, update_wrapper
from types import CodeType
from typing import Any

from stripesim.models.jit.warning import not_linked


class Inner:
    """A function that only compiled functions call."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self.function = function
        self._options = options

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Refuse a call from Python."""
        raise not_linked(self.function.__qualname__, "Python")

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's dispatcher."""
        from stripesim.models.jit.compiler import inner_dispatcher

        return inner_dispatcher(self.function, self._options)

    @property
    def _numba_type_(self) -> Any:
        """The type that Numba asks for when it compiles a caller."""
        return self.dispatcher._numba_type_


def refuse_cycle(function: Callable[..., Any]) -> None:
    """Raise an error if an inner function that this one calls calls it back.

    Numba would leave one of the two out of their program. A function may call itself.

    Raises
    ------
    TypeError
        If there is such a function.
    """
    name = function.__name__
    seen: set[int] = set()
    waiting = list(_called(function))
    while waiting:
        called = waiting.pop()
        if called is function or id(called) in seen:
            continue
        seen.add(id(called))
        if called.__module__ == function.__module__ and _reads(called.__code__, name):
            raise TypeError(
                f"{function.__qualname__}: got a call of {called.__qualname__}, which calls it back, "
                "wanted inner functions that do not call each other (one with a loop, for example)"
            )
        waiting += _called(called)


def referred(function: Any) -> Iterator[tuple[str, Any]]:
    """Yield the global and enclosing names that a function uses and that are defined, with their values."""
    code = function.__code__
    for name in code.co_names:
        if name in function.__globals__:
            yield name, function.__globals__[name]
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:
            # The function is defined before what it uses.
            continue


def _called(function: Any) -> Iterator[Any]:
    """Yield the inner functions that a function uses."""
    for _, value in referred(function):
        if isinstance(value, Inner):
            yield value.function


def _reads(code: CodeType, name: str) -> bool:
    """Return True if code reads a global or enclosing name."""
    if name not in code.co_names and name not in code.co_freevars:
        # Most functions end here. The steps below take a hundred times as long.
        return False
    # `co_names` also holds attributes.
    return any(
        step.argval == name
        for step in dis.get_instructions(code)
        if step.opname in ("LOAD_GLOBAL", "LOAD_DEREF", "LOAD_NAME")
    )

"""Functions that run as machine code: prebuilt with the package, or compiled by Numba.

Python calls a *kernel* (`compiled`). Only kernels and other inner functions call an *inner* function. Neither
loads Numba when it is defined. At its first call, a kernel takes its code from the package (``prebuilt.py``)
if the package has it for these sources and this machine. Otherwise Numba compiles it (``compiler.py``). Both
give the same bits. ``build.py`` makes the prebuilt code.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, update_wrapper
from importlib.util import find_spec
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from stripesim.models.jit.inner_functions import Inner, refuse_cycle
from stripesim.models.jit.origin import digest_of_origin
from stripesim.models.jit.prebuilt import Prebuilt, has_code, prebuilt_of

P = ParamSpec("P")
R = TypeVar("R")


def is_disabled() -> bool:
    """Return True if functions run as Python: Numba's compiler is disabled or missing."""
    config: Any = sys.modules.get("numba.core.config")
    if config is not None:
        return bool(config.DISABLE_JIT)
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0") or has_no_code()


@cache
def has_no_code() -> bool:
    """Return True if Numba is missing, as in a browser, and there is no prebuilt code for this machine."""
    try:
        is_installed = find_spec("numba") is not None
    except (ImportError, ValueError):
        is_installed = False
    return not is_installed and not has_code()


class CompiledKernel:
    """A function that Python calls and that runs as machine code.

    Attributes
    ----------
    function
        The function in Python.
    options
        Options of `numba.njit`.
    """

    _recorded: list[tuple["CompiledKernel", tuple[Any, ...]]] | None = None

    def __init__(
        self,
        function: Callable[..., Any],
        program: str,
        options: dict[str, Any],
    ) -> None:
        update_wrapper(self, function)
        self.function = function
        self.options = options
        self._program = program

    def __call__(self, *arguments: Any) -> Any:
        """Run the prebuilt code if it takes such arguments, else the code that Numba compiles."""
        if CompiledKernel._recorded is not None:
            CompiledKernel._recorded.append((self, arguments))
            return 0
        prebuilt = self.prebuilt
        if prebuilt is not None:
            table = prebuilt.table(arguments)
            if table is not None:
                return prebuilt.run(table)
        return self.dispatcher(*arguments)

    def prepare(self, *arguments: Any) -> None:
        """Load or compile the code for such arguments, so that the first call takes no longer than others."""
        prebuilt = self.prebuilt
        if prebuilt is not None and prebuilt.table(arguments) is not None:
            return
        from stripesim.models.jit.compiler import compile_for

        compile_for(self.dispatcher, arguments)

    @property
    def is_ready(self) -> bool:
        """True if it has code, so that a call compiles nothing."""
        return self.prebuilt is not None or bool(self.dispatcher.signatures)

    @cached_property
    def prebuilt(self) -> Prebuilt | None:
        """The code that came with the package, or None if it has none for these sources and this machine."""
        return prebuilt_of(self.function)

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's dispatcher."""
        from stripesim.models.jit.compiler import dispatcher_of

        # Numba's cache notices only changes of the file that defines the function.
        sources = digest_of_origin(self.function)
        return dispatcher_of(self.function, sources, self._program, self.options)

    @property
    def _numba_type_(self) -> Any:
        """The type that Numba asks for when it compiles a caller."""
        return self.dispatcher._numba_type_


@contextmanager
def recorded_calls() -> Iterator[list[tuple[CompiledKernel, tuple[Any, ...]]]]:
    """Record the calls of kernels, which run nothing and return 0 meanwhile."""
    calls: list[tuple[CompiledKernel, tuple[Any, ...]]] = []
    CompiledKernel._recorded = calls
    try:
        yield calls
    finally:
        CompiledKernel._recorded = None


def inner(
    function: Callable[P, R], *, forceinline: bool = False, **options: Any
) -> Callable[P, R]:
    """Compile a function that only compiled functions call.

    Parameters
    ----------
    function
        Function that Numba can compile in nopython mode.
    forceinline
        Compile it into its callers.
    **options
        Options of `numba.njit`.

    Returns
    -------
    callable
        The compiled function. Only functions that `compiled` compiles can call it, because it is linked
        there. Python and other functions of `numba.njit` cannot.

    Raises
    ------
    TypeError
        When it calls an inner function that calls it back. Later, when Python calls the function, or when
        Numba compiles another caller. Nothing at its definition says which functions will call it.
    """
    if is_disabled():
        return function
    refuse_cycle(function)
    made = Inner(function, {"forceinline": forceinline, **options})
    return cast("Callable[P, R]", made)


def compiled(
    function: Callable[P, R],
    *,
    program: str = "a kernel",
    **options: Any,
) -> Callable[P, R]:
    """Run a function as machine code: prebuilt, or compiled on its first call and cached on disk.

    Parameters
    ----------
    function
        Function that Numba can compile in nopython mode.
    program
        Name of the program in the notice that users see at a terminal while it compiles.
    **options
        Options of `numba.njit`.

    Returns
    -------
    callable
        The function. It takes positional arguments.
    """
    if is_disabled():
        # Numbers of a fixed width wrap around in machine code without a warning.
        return np.errstate(over="ignore")(function)
    return cast("Callable[P, R]", CompiledKernel(function, program, options))

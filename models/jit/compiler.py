"""Compile functions with Numba and cache the machine code on disk where possible. This module loads Numba.

The cache is optional. A damaged cache is rebuilt, an unwritable folder is replaced by a temporary one, and
without any folder each process compiles its functions. Each case logs one warning line, and none affects
results.
"""

import gc
import getpass
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Timer
from typing import Any

import numba
from numba.core import config
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.runtime.nrt import rtsys

from stripesim.models.jit.warning import not_linked, warn

# Numba sets its options as undeclared attributes.
_config: Any = config
#: Loading from the cache is faster than this [s].
_NOTICE_AFTER_S = 2.0
_log = logging.getLogger("stripesim")
# An entry point for Python takes half of the compilation time.
_NO_ENTRIES: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_typeof: Any = numba.typeof


class _Cache(FunctionCache):
    """Numba's cache of one function, keyed by its `sources` too, in which no disk state is an error."""

    sources = ""
    program = ""
    needs_runtime = True
    _notice: Timer | None = None

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return *super()._index_key(sig, codegen), self.sources  # type: ignore[no-untyped-call]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            stored = self._stored(sig, target_context)
            if stored is None:
                self._announce()
            return stored
        except Exception as error:
            # Unpickling damaged bytes may raise any exception.
            warn(
                f"compiled code in {self.cache_path}: got {_reason(error)}; compiling again"
            )
            self._clear()
            self._announce()
            return None

    def _stored(self, sig: Any, target_context: Any) -> Any:
        """Load code, or return None if the cache has none."""
        if not hasattr(self, "_load_overload"):
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        # The public method also loads what Numba needs to compile, which takes longer than a small run.
        if self.needs_runtime:
            rtsys.initialize(target_context)
        return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]

    def _announce(self) -> None:
        """Print on a terminal which program compiles, unless it is ready soon."""
        self._notice = Timer(
            _NOTICE_AFTER_S,
            print,
            args=[f"compiling {self.program} (once per installation) …"],
            kwargs={"file": sys.stderr, "flush": True},
        )
        self._notice.daemon = True
        if sys.stderr.isatty():
            self._notice.start()

    def save_overload(self, sig: Any, data: Any) -> None:
        if self._notice is not None:
            self._notice.cancel()
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except Exception as error:
            warn(
                f"compiled code in {self.cache_path}: got {_reason(error)}; not cached"
            )
            self.disable()  # type: ignore[no-untyped-call]

    def _clear(self) -> None:
        try:
            self.flush()  # type: ignore[no-untyped-call]
        except OSError:
            self.disable()  # type: ignore[no-untyped-call]


def _reason(error: Exception) -> str:
    return getattr(
        error, "strerror", None
    ) or f"{type(error).__name__} ({error})".replace(" ()", "")


def _temporary_folder() -> str | None:
    """Create a private folder for compiled code, or return None if that is impossible."""
    try:
        try:
            user = getpass.getuser()
        except (KeyError, OSError):
            # A container may run under a user id without a name.
            user = str(os.getuid())
        folder = Path(tempfile.gettempdir()) / f"stripesim-numba-{user}"
        folder.mkdir(mode=0o700, exist_ok=True)
        # This folder holds executable code, so no other user may be able to write to it.
        state = folder.lstat()
        if folder.is_symlink() or state.st_uid != os.getuid() or state.st_mode & 0o022:
            return None
        return str(folder)
    except OSError:
        return None


def _cache_of(function: Callable[..., Any]) -> _Cache | None:
    try:
        return _Cache(function)  # type: ignore[no-untyped-call]
    except (RuntimeError, OSError):
        # Neither the installation nor the home folder is writable.
        folder = None if _config.CACHE_DIR else _temporary_folder()
    if folder is not None:
        _config.CACHE_DIR = folder
        warn(
            f"compiled code: got no writable folder next to the installation; caching in {folder}"
        )
        try:
            return _Cache(function)  # type: ignore[no-untyped-call]
        except (RuntimeError, OSError):
            pass
    warn("compiled code: got no writable folder; each process compiles again")
    return None


class _CodeForCallers(JITCodeLibrary):
    """Code of an inner function, which is linked and optimised with the function called from Python.

    Numba optimises a function and all that it calls, then does the same for its callers. In a program of a
    hundred small functions, most of that work repeats. Loops with `prange` need more of Numba's own method.
    """

    @property
    def codegen(self) -> "_NoAddresses":
        return _NoAddresses()

    def finalize(self) -> None:
        self._raise_if_finalized()  # type: ignore[no-untyped-call]
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    def _get_module_for_linking(self) -> Any:
        if not _WholeProgram.is_linking:
            # The code of inner functions that this one calls would be missing.
            raise not_linked(self.name, "another function of numba.njit")
        return super()._get_module_for_linking()  # type: ignore[no-untyped-call]


class _NoAddresses:
    """In place of the code generator of code that is not in memory."""

    def set_env(self, name: str, environment: Any) -> None:
        """Set no environment. Numba needs it for objects of Python, which inner functions do not use."""


class _WholeProgram(JITCodeLibrary):
    """Code of a function called from Python, with all inner functions that it calls."""

    is_linking = False  #: Numba compiles one program at a time.

    def finalize(self) -> None:
        libraries: dict[Any, None] = {}
        waiting = list(self._linking_libraries)
        while waiting:
            library = waiting.pop()
            if library in libraries:
                continue
            libraries[library] = None
            if isinstance(library, _CodeForCallers):
                waiting += library._linking_libraries
        self._linking_libraries = list(libraries)
        _WholeProgram.is_linking = True
        try:
            super().finalize()  # type: ignore[no-untyped-call]
        finally:
            _WholeProgram.is_linking = False


class _ProgramToOptimise(_WholeProgram):
    """A program that is optimised later, for each processor that it is made for."""

    def _optimize_final_module(self) -> None:
        # Numba's first pass alone. It inlines, and turns loops into a form that can be vectorised.
        passes, builder = self._codegen._module_pass_manager(  # type: ignore[no-untyped-call]
            loop_vectorize=False, slp_vectorize=False, opt=0, cost="cheap"
        )
        passes.run(self._final_module, builder)


class _ProgramCompiler(Compiler):
    """Numba's compiler, which optimises a program once."""

    library_class: type[JITCodeLibrary] = _WholeProgram

    def define_pipelines(self) -> Any:
        if _optimises_once():
            self._use_own_library()
        return super().define_pipelines()  # type: ignore[no-untyped-call]

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        # The compiler keeps nearly all of its many objects until it ends. Looking for garbage among them
        # takes a fifth of the time.
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(function)  # type: ignore[no-untyped-call]
        finally:
            if was_enabled:
                gc.enable()

    def _use_own_library(self) -> None:
        state = self.state
        name = state.func_id.func_qualname
        state.library = self.library_class(state.targetctx.codegen(), name)
        state.library.enable_object_caching()


class _InnerCompiler(_ProgramCompiler):
    library_class = _CodeForCallers


class _CompilerToOptimise(_ProgramCompiler):
    library_class = _ProgramToOptimise


class _TrialCompiler(_ProgramCompiler):
    def define_pipelines(self) -> Any:
        self._use_own_library()
        return Compiler.define_pipelines(self)  # type: ignore[no-untyped-call]


class _InnerTrialCompiler(_TrialCompiler):
    library_class = _CodeForCallers


@cache
def _optimises_once() -> bool:
    """Try a small program, since another version of Numba may have other internals."""

    def added(number: int) -> int:
        return number + 1

    def program(number: int) -> int:
        return 2 * inner_function(number)

    options: dict[str, Any] = {"_nrt": False, "pipeline_class": _TrialCompiler}
    inner_options = {
        **options,
        **_NO_ENTRIES,
        "pipeline_class": _InnerTrialCompiler,
    }
    inner_function: Callable[[int], int] = numba.njit(**inner_options)(added)
    try:
        trial = numba.njit(**options)(program)
        return bool(trial(20) == 42)
    except Exception as error:
        _log.debug("functions are optimised one by one: %s", _reason(error))
        return False


def inner_dispatcher(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Return Numba's dispatcher of an inner function. See `stripesim.models.jit.inner`."""
    flags = {**options, **_NO_ENTRIES, "pipeline_class": _InnerCompiler}
    dispatcher: Any = numba.njit(**flags)(function)
    name = function.__qualname__

    def refuse(*_: Any, **__: Any) -> None:
        raise not_linked(name, "Python")

    # Without entry points in its table, Numba asks for a compilation at each call from Python.
    dispatcher._insert = lambda *_, **__: None
    dispatcher._compile_for_args = refuse
    return dispatcher


def program_of(
    function: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Compile a function for example arguments, without entry points for Python and unoptimised.

    Returns Numba's result.
    """
    flags = {**options, **_NO_ENTRIES, "pipeline_class": _CompilerToOptimise}
    dispatcher: Any = numba.njit(**flags)(function)
    dispatcher._insert = lambda *_, **__: None
    dispatcher.compile(tuple(map(_typeof, arguments)))
    (compiled,) = dispatcher.overloads.values()
    return compiled


def dispatcher_of(
    function: Callable[..., Any], sources: str, program: str, options: dict[str, Any]
) -> Any:
    """Return Numba's dispatcher of a function called from Python. See `stripesim.models.jit.compiled`."""
    dispatcher: Any = numba.njit(pipeline_class=_ProgramCompiler, **options)(function)
    cache = _cache_of(function)
    if cache is not None:
        cache.sources = sources
        cache.program = program
        # Code without reference counting (`_nrt`) does not call Numba's runtime, which compiles at its start.
        cache.needs_runtime = options.get("_nrt", True)
        # `Dispatcher.enable_caching` does the same with Numba's own class.
        dispatcher._cache = cache
    return dispatcher


def compile_for(dispatcher: Any, arguments: tuple[Any, ...]) -> None:
    """Compile a function for arguments, or load it from the cache, without calling it."""
    if not dispatcher.signatures:
        dispatcher.compile(tuple(map(_typeof, arguments)))

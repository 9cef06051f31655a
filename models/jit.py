"""Compile functions with Numba, and keep the machine code wherever that is possible.

A cache is a convenience: a damaged one is rebuilt, a folder that cannot be written to is replaced by a
temporary one, and where there is none at all, functions are compiled in each process. Each case gives one
line of warning, and results do not depend on it.
"""

import getpass
import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core import config
from numba.core.caching import FunctionCache

P = ParamSpec("P")
R = TypeVar("R")

# Numba sets its options as attributes that it does not declare.
_config: Any = config
_log = logging.getLogger("stripesim")
_warned: set[str] = set()


def _warn(line: str) -> None:
    """Warn once: every compiled function of a process uses the same disk."""
    if not _warned:
        _log.warning("warning: %s", line)
    _warned.add(line)


class _Cache(FunctionCache):
    """Numba's cache of one function by its `sources`, except that no state of the disk is an error."""

    sources = ""

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return *super()._index_key(sig, codegen), self.sources  # type: ignore[no-untyped-call]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception as error:
            # Unpickling damaged bytes may raise anything.
            _warn(
                f"compiled code in {self.cache_path}: got {_reason(error)}; it is compiled again"
            )
            self._clear()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except Exception as error:
            _warn(
                f"compiled code in {self.cache_path}: got {_reason(error)}; it is not kept"
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
    """Make a folder of this user's own for compiled code; None where that is impossible."""
    try:
        try:
            user = getpass.getuser()
        except (KeyError, OSError):
            # A container may run as a number that has no name.
            user = str(os.getuid())
        folder = Path(tempfile.gettempdir()) / f"stripesim-numba-{user}"
        folder.mkdir(mode=0o700, exist_ok=True)
        # Code is run from this folder: no other user may have written it.
        state = folder.lstat()
        if folder.is_symlink() or state.st_uid != os.getuid() or state.st_mode & 0o022:
            return None
        return str(folder)
    except OSError:
        return None


def is_disabled() -> bool:
    """Return True where the environment keeps Numba from compiling."""
    return bool(_config.DISABLE_JIT)


def _cache_of(function: Callable[..., Any]) -> _Cache | None:
    try:
        return _Cache(function)  # type: ignore[no-untyped-call]
    except (RuntimeError, OSError):
        # Neither the installation nor the home can be written to.
        folder = None if _config.CACHE_DIR else _temporary_folder()
    if folder is not None:
        _config.CACHE_DIR = folder
        _warn(
            f"compiled code: got no folder to write to beside the installation; it is kept in {folder}"
        )
        try:
            return _Cache(function)  # type: ignore[no-untyped-call]
        except (RuntimeError, OSError):
            pass
    _warn("compiled code: got no folder to write to; it is compiled in each process")
    return None


def compiled(
    function: Callable[P, R], *, sources: str = "", **options: Any
) -> Callable[P, R]:
    """Compile a function when first called; the code stays on disk as long as `sources` are the same."""
    dispatcher = numba.njit(**options)(function)
    cache = _cache_of(function)
    if cache is not None:
        cache.sources = sources
        # As `Dispatcher.enable_caching` does with Numba's own class.
        dispatcher._cache = cache
    return cast("Callable[P, R]", dispatcher)

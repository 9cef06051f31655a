"""Identify files that a scenario names by their content, not by their path."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

if TYPE_CHECKING:
    from stripesim.scenarios.schema.scenario import Scenario

F = TypeVar("F", bound=Callable[..., Any])

#: A file changed more recently than this may change again without a new timestamp [ns].
_SETTLED_NS: Final = 2 * 10**9


def file_sha256(path: str | Path) -> str:
    """Hash the content of a file, once as long as its size, inode and times stay the same."""
    path = os.fspath(path)
    state = os.stat(path)
    changed_ns = max(state.st_mtime_ns, state.st_ctime_ns)
    if 0 <= time.time_ns() - changed_ns < _SETTLED_NS:
        return _hash(path)
    signature = (
        state.st_dev,
        state.st_ino,
        state.st_size,
        state.st_mtime_ns,
        state.st_ctime_ns,
    )
    return _hash_once(path, signature)


def content_of(scenario: Scenario) -> tuple[str, ...]:
    """Return what identifies a scenario in a cache: its hash, and those of the files that it names.

    A file that cannot be read counts by its path. Whoever reads it reports the error.
    """
    return (
        scenario.hash(),
        *(_file_content(scenario.resolve(path)) for _, path in scenario.files()),
    )


def _file_content(path: Path) -> str:
    try:
        return file_sha256(path)
    except OSError:
        return str(path)


def _hash(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=32)
def _hash_once(path: str, signature: tuple[int, ...]) -> str:
    return _hash(path)


def cached_by_content(maxsize: int) -> Callable[[F], F]:
    """Cache the results of a function of a file by the file's content."""

    def decorate(read: F) -> F:
        @lru_cache(maxsize=maxsize)
        def kept(sha256: str, path: str, *args: Hashable) -> Any:
            return read(path, *args)

        @wraps(read)
        def cached(path: str, *args: Hashable) -> Any:
            try:
                sha256 = file_sha256(path)
            except OSError:
                # The function has the better error message for a file that cannot be read.
                return read(path, *args)
            return kept(sha256, path, *args)

        return cast("F", cached)

    return decorate

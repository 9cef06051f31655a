"""Determine the memory that this process may still use, from the machine, resource limits and cgroups."""

import contextlib
import os
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Final, NamedTuple

from stripesim.models.jit.prebuilt import has_library

_UNKNOWN_BYTES: Final = 16 * 10**9
_CGROUP_ROOT: Final = Path("/sys/fs/cgroup")
_PROCESS: Final = Path("/proc/self")
#: cgroup v1 expresses "no limit" as the largest multiple of a page in 63 bits. Larger values mean the same.
_V1_UNLIMITED: Final = 2**60
#: Limits of cgroups within `limits_read_once` [B].
_KNOWN_LIMITS: ContextVar[tuple[int, ...] | None] = ContextVar("limits", default=None)


class MemoryLimit(NamedTuple):
    """Memory that this process may still allocate.

    Attributes
    ----------
    left_bytes
        Memory beyond what the process already has [B], at least 0.
    source
        The limit that leaves the least, in words.
    """

    left_bytes: int
    source: str


class MemoryUse(NamedTuple):
    """Memory use of a process, as different limits count it.

    Attributes
    ----------
    address_space_bytes
        Reserved addresses, used or not [B] (``RLIMIT_AS``).
    resident_bytes
        Memory in RAM [B].
    data_bytes
        Private writable memory [B] (``RLIMIT_DATA``).
    """

    address_space_bytes: int = 0
    resident_bytes: int = 0
    data_bytes: int = 0

    def plus(self, other: "MemoryUse") -> "MemoryUse":
        """Return the sums."""
        return MemoryUse(*(own + more for own, more in zip(self, other, strict=True)))


# Memory of Numba and its libraries, which a run loads at its start without prebuilt code (measured).
_LIBRARIES: Final = MemoryUse(
    address_space_bytes=600 << 20, resident_bytes=170 << 20, data_bytes=110 << 20
)


def memory_limit(reserved: MemoryUse | None = None) -> MemoryLimit:
    """Return the smallest limit on the memory of this process.

    Parameters
    ----------
    reserved
        Memory to treat as already used.

    Returns
    -------
    MemoryLimit
        The smallest remainder of physical memory, ``RLIMIT_AS``, ``RLIMIT_DATA`` and the limits of the
        process's cgroups (v1 and v2). Libraries that a run has yet to load are subtracted.
    """
    used = _used()
    if reserved is not None:
        used = used.plus(reserved)
    if "numba" not in sys.modules and not has_library():
        used = used.plus(_LIBRARIES)
    limits = [
        MemoryLimit(_physical_bytes() - used.resident_bytes, "memory of this machine")
    ]
    for cgroup_bytes in _cgroup_limits():
        limits.append(
            MemoryLimit(
                cgroup_bytes - used.resident_bytes, "memory limit of the cgroup"
            )
        )
    for name, used_bytes in (
        ("RLIMIT_AS", used.address_space_bytes),
        ("RLIMIT_DATA", used.data_bytes),
    ):
        soft_bytes = _resource_limit(name)
        if soft_bytes is not None:
            limits.append(MemoryLimit(soft_bytes - used_bytes, f"limit {name}"))
    least = min(limits, key=lambda limit: limit.left_bytes)
    return least._replace(left_bytes=max(0, least.left_bytes))


@contextlib.contextmanager
def limits_read_once() -> Iterator[None]:
    """Read the limits of cgroups once for all checks within, as those of a sweep's points."""
    token = _KNOWN_LIMITS.set(tuple(_cgroup_limits()))
    try:
        yield
    finally:
        _KNOWN_LIMITS.reset(token)


def _physical_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return _UNKNOWN_BYTES


def _resource_limit(name: str) -> int | None:
    """Return a soft limit of this process (``ulimit``), or None if it is unlimited."""
    try:
        import resource
    except ModuleNotFoundError:
        # Windows has no such limits.
        return None
    soft, _ = resource.getrlimit(getattr(resource, name))
    if soft == resource.RLIM_INFINITY:
        return None
    return soft


def _used() -> MemoryUse:
    try:
        pages = [int(field) for field in (_PROCESS / "statm").read_text().split()]
    except (OSError, ValueError):
        # Without /proc, as outside Linux, no use is subtracted from the limits.
        return MemoryUse(0, 0, 0)
    size, resident, _, _, _, data, _ = pages
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    return MemoryUse(size * page_bytes, resident * page_bytes, data * page_bytes)


def _cgroup_limits() -> Iterator[int]:
    """Yield the memory limits of this process's cgroups and their ancestors [B]."""
    known = _KNOWN_LIMITS.get()
    if known is not None:
        yield from known
        return
    try:
        lines = (_PROCESS / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield from _limits_on_path(_CGROUP_ROOT, path, "memory.max")
        elif "memory" in controllers.split(","):
            yield from _limits_on_path(
                _CGROUP_ROOT / "memory", path, "memory.limit_in_bytes"
            )


def _limits_on_path(root: Path, path: str, name: str) -> Iterator[int]:
    """Yield the limits from a cgroup up to the root. In a container, only some of these folders exist."""
    folder = root / path.lstrip("/")
    for group in (folder, *folder.parents):
        if not group.is_relative_to(root):
            return
        with contextlib.suppress(OSError, ValueError):
            # "max" is not a number and means unlimited.
            limit = int((group / name).read_text())
            if limit < _V1_UNLIMITED:
                yield limit

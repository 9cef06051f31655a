"""The memory that this process may still use: of the machine, of its resource limits and of its cgroups."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_UNKNOWN_BYTES: Final = 16 * 10**9
_CGROUP_ROOT: Final = Path("/sys/fs/cgroup")
_PROCESS: Final = Path("/proc/self")
#: A limit of cgroup v1 that means none: the largest multiple of a page in 63 bits.
_V1_UNLIMITED: Final = 2**60


class MemoryLimit(NamedTuple):
    """Bytes of memory that are left to this process.

    Attributes
    ----------
    left_bytes
        Bytes that the process may allocate beyond those it has [bytes], at least 0.
    source
        The limit that leaves so few, in words.
    """

    left_bytes: int
    source: str


class MemoryUse(NamedTuple):
    """Memory of a process: what different limits count of it.

    Attributes
    ----------
    address_space_bytes
        Addresses, used or not [bytes] (``RLIMIT_AS``).
    resident_bytes
        Memory in RAM [bytes].
    data_bytes
        Private memory that can be written to [bytes] (``RLIMIT_DATA``).
    """

    address_space_bytes: int = 0
    resident_bytes: int = 0
    data_bytes: int = 0

    def plus(self, other: "MemoryUse") -> "MemoryUse":
        """Return the sums."""
        return MemoryUse(*(own + more for own, more in zip(self, other, strict=True)))


# Memory of the libraries that a run loads when it starts (measured).
_LIBRARIES: Final = MemoryUse(
    address_space_bytes=600 << 20, resident_bytes=170 << 20, data_bytes=110 << 20
)


def memory_limit(reserved: MemoryUse | None = None) -> MemoryLimit:
    """Return the smallest of all limits on the memory of this process.

    Parameters
    ----------
    reserved
        Memory that is taken off, as if it were used already.

    Returns
    -------
    MemoryLimit
        The bytes left under physical memory, ``RLIMIT_AS``, ``RLIMIT_DATA`` and the limits of the process's
        cgroups (v1 and v2), whichever leaves least. Libraries that a run has yet to load are taken off.
    """
    used = _used()
    if reserved is not None:
        used = used.plus(reserved)
    if "numba" not in sys.modules:
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


def _physical_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return _UNKNOWN_BYTES


def _resource_limit(name: str) -> int | None:
    """Return a soft limit of this process (``ulimit``); None where there is none."""
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
        # Outside Linux the limits count as a whole.
        return MemoryUse(0, 0, 0)
    size, resident, _, _, _, data, _ = pages
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    return MemoryUse(size * page_bytes, resident * page_bytes, data * page_bytes)


def _cgroup_limits() -> Iterator[int]:
    """Yield the memory limits of the cgroups of this process, and of those above them [bytes]."""
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
    """Yield the limits from a cgroup up to the root; in a container only some of these folders exist."""
    folder = root / path.lstrip("/")
    for group in (folder, *folder.parents):
        if not group.is_relative_to(root):
            return
        with contextlib.suppress(OSError, ValueError):
            # "max" is not a number and means no limit.
            limit = int((group / name).read_text())
            if limit < _V1_UNLIMITED:
                yield limit

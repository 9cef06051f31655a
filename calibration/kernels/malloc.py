"""Raise glibc's allocator thresholds, without which kernel timings consist mostly of page faults.

``python -m stripesim.calibration.kernels.malloc BACKEND K M BYTES CALLS RAISED`` prints the encode speed of a
loop [B/s] with raised thresholds (1) or default ones (0).
"""

import ctypes
import random
import subprocess
import sys
import time
from collections.abc import Sequence

from stripesim.calibration.kernels.codec import Codec

#: Parameters of ``mallopt`` and their values, from glibc's ``malloc.h``. 32 MiB is the largest mmap threshold
#: that glibc accepts on 64-bit machines.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
MMAP_THRESHOLD_BYTES = 32 * 1024 * 1024
TRIM_THRESHOLD_BYTES = 1024 * 1024 * 1024


def raise_malloc_thresholds() -> bool:
    """Make this process keep freed memory, as storage daemons do. Return False without ``mallopt``."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return False
    mallopt.argtypes = [ctypes.c_int, ctypes.c_int]
    mallopt.restype = ctypes.c_int
    thresholds = (
        (_M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES),
        (_M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES),
    )
    return {mallopt(*each) for each in thresholds} == {1}


def malloc_effect(
    k: int = 6,
    m: int = 2,
    size_bytes: int = 1 << 20,
    backend: str = "isa_l_rs_vand",
    *,
    calls: int = 400,
) -> dict[str, float]:
    """Compare the encode speed with default and with raised allocator thresholds.

    Parameters
    ----------
    k, m
        Data and parity fragments.
    size_bytes
        Data per call [B].
    backend
        pyeclib backend.
    calls
        Number of calls.

    Returns
    -------
    dict
        ``default_bytes_per_s`` and ``raised_bytes_per_s`` [B/s].

    Raises
    ------
    KernelError
        If the backend is missing.

    Notes
    -----
    Each loop runs in a fresh interpreter. glibc adapts its thresholds to what a process has freed, so a
    process that has also decoded no longer shows the effect, and raised thresholds cannot be reset.
    """
    Codec(backend, k=k, m=m)
    speeds = []
    for raised in (0, 1):
        numbers = map(str, (k, m, size_bytes, calls, raised))
        command = [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "stripesim.calibration.kernels.malloc",
            backend,
        ]
        finished = subprocess.run(
            [*command, *numbers], check=True, capture_output=True, text=True
        )
        speeds.append(float(finished.stdout))
    return {"default_bytes_per_s": speeds[0], "raised_bytes_per_s": speeds[1]}


def main(arguments: Sequence[str]) -> None:
    """Time a loop of encode calls and print its speed [B/s]."""
    backend, *numbers = arguments
    k, m, size_bytes, calls, raised = map(int, numbers)
    if raised:
        raise_malloc_thresholds()
    codec = Codec(backend, k=k, m=m)
    data = random.Random(1).randbytes(size_bytes)
    codec.encode(data)
    start_ns = time.perf_counter_ns()
    for _ in range(calls):
        codec.encode(data)
    speed = size_bytes * calls * 1e9 / max(1, time.perf_counter_ns() - start_ns)
    sys.stdout.write(f"{speed}\n")


if __name__ == "__main__":
    main(sys.argv[1:])

"""glibc's allocator thresholds: without raising them, a kernel's timing is mostly page faults."""

from __future__ import annotations

import ctypes

#: Parameters of ``mallopt`` and the values set, from glibc's ``malloc.h``; 32 MiB is the largest mmap
#: threshold glibc takes on a 64-bit machine.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
MMAP_THRESHOLD_BYTES = 32 * 1024 * 1024
TRIM_THRESHOLD_BYTES = 1024 * 1024 * 1024


def raise_malloc_thresholds() -> bool:
    """Let this process keep freed memory instead of giving it back to the kernel at once.

    Returns
    -------
    bool
        True if the C library took both thresholds; False where it has no ``mallopt`` (musl, macOS).

    Notes
    -----
    By default glibc maps blocks of 128 KiB and more afresh (the bound adapts)
    and returns the top of the heap, so every large fragment is paid for in
    page faults. A storage daemon reuses its buffers, hence the raised
    thresholds. The setting lasts as long as the process.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return False
    mallopt.argtypes = [ctypes.c_int, ctypes.c_int]
    mallopt.restype = ctypes.c_int
    took_mmap = int(mallopt(_M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES))
    took_trim = int(mallopt(_M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES))
    return took_mmap == 1 and took_trim == 1

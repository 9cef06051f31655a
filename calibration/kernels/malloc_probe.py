"""Time a loop of encode calls and print data bytes per second: run in a fresh interpreter by `kernel`."""

from __future__ import annotations

import random
import sys
import time

from stripesim.calibration.kernels.codec import Codec
from stripesim.calibration.kernels.malloc import raise_malloc_thresholds


def encode_bytes_per_s(backend: str, k: int, m: int, *, size_bytes: int, calls: int) -> float:
    """Data bytes encoded per second over so many calls, after one that is not timed.

    Parameters
    ----------
    backend, k, m : str, int, int
        The codec.
    size_bytes : int
        Data in each call [B].
    calls : int
        Calls timed.

    Returns
    -------
    float
        Speed [B/s].
    """
    codec = Codec(backend, k=k, m=m)
    data = random.Random(1).randbytes(size_bytes)
    codec.encode(data)
    start_ns = time.perf_counter_ns()
    for _ in range(calls):
        codec.encode(data)
    return size_bytes * calls * 1e9 / max(1, time.perf_counter_ns() - start_ns)


def main(arguments: list[str]) -> None:
    """Arguments: backend, k, m, size in bytes, calls, and 1 to raise the allocator's thresholds."""
    backend, *numbers = arguments
    k, m, size_bytes, calls, raised = (int(number) for number in numbers)
    if raised:
        raise_malloc_thresholds()
    sys.stdout.write(f"{encode_bytes_per_s(backend, k, m, size_bytes=size_bytes, calls=calls)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])

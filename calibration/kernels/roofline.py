"""What kernels are read against: the machine's own copy speed in the same run."""

from __future__ import annotations

import ctypes
import math
import statistics
import time
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from stripesim.calibration.kernels import isal as kernel_raw
from stripesim.calibration.kernels.measure import Row
from stripesim.models.coding.parse import parse_scheme

#: Bytes that the buffers of a cold case fill together [B]: beyond the caches of one core.
COLD_BYTES = 1 << 28


def memcpy_rows(
    sizes_bytes: Sequence[int],
    *,
    cold: bool = False,
    rounds: int = 9,
    sample_s: float = 0.002,
    cold_bytes: int = COLD_BYTES,
) -> list[Row]:
    """Time the C library's copy: the roof under which anything that touches every byte stays.

    Parameters
    ----------
    sizes_bytes : sequence of int
        Bytes copied by a call [B].
    cold : bool
        Go round buffers that fill `cold_bytes` instead of one pair.
    rounds : int
        Samples of each size.
    sample_s : float
        Shortest duration of a sample [s].
    cold_bytes : int
        See `cold` [B].

    Returns
    -------
    list of dict
        ``op`` is ``memcpy``; ``bytes_per_s`` counts the bytes copied once, not read and written.
    """
    loops: list[tuple[int, int, Callable[[int], None]]] = []
    for size_bytes in sizes_bytes:
        pairs = max(1, cold_bytes // (2 * size_bytes)) if cold else 1
        loops.append((size_bytes, pairs, _copy_loop(size_bytes, pairs)))
    samples: dict[int, list[float]] = {size_bytes: [] for size_bytes in sizes_bytes}
    calls = {}
    for size_bytes, pairs, loop in loops:
        loop(pairs)
        calls[size_bytes] = pairs * max(1, round(sample_s / _cpu_s(loop, pairs) / pairs))
    for _ in range(rounds):
        for size_bytes, _, loop in loops:
            samples[size_bytes].append(_cpu_s(loop, calls[size_bytes]))
    return [bench_row("memcpy", "none", "memcpy", 0, size, samples[size], cold=cold) for size in samples]


def _copy_loop(size_bytes: int, pairs: int) -> Callable[[int], None]:
    import numba

    function = ctypes.CDLL(None).memcpy
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    buffers = kernel_raw.aligned(2 * pairs * size_bytes)
    buffers[:] = 1
    first = buffers.ctypes.data

    @numba.njit()
    def run(calls: int, first: int, size_bytes: int, pairs: int) -> None:
        for call in range(calls):
            source = first + 2 * size_bytes * (call % pairs)
            function(source + size_bytes, source, size_bytes)

    def repeat(calls: int) -> None:
        run(calls, first, size_bytes, pairs)

    repeat.buffers = buffers  # type: ignore[attr-defined]  # they must live as long as the loop
    return repeat


def _cpu_s(loop: Callable[[int], None], calls: int) -> float:
    """Processor seconds of one call."""
    start_ns = time.thread_time_ns()
    loop(calls)
    return max(1, time.thread_time_ns() - start_ns) / calls / 1e9


def bench_row(
    backend: str,
    scheme: str,
    op: str,
    erasures: int,
    size_bytes: int,
    samples: Sequence[float],
    *,
    cold: bool = False,
) -> Row:
    """Return a row as of `stripesim.calibration.kernels.measure.measure` from seconds per call, one core."""
    p10_s, p90_s = (float(q) for q in np.quantile(samples, (0.1, 0.9)))
    median_s = statistics.median(samples)
    return {
        "backend": backend,
        "scheme": scheme,
        "op": op,
        "erasures": erasures,
        "size_bytes": size_bytes,
        "seconds_median": median_s,
        "seconds_p10": p10_s,
        "seconds_p90": p90_s,
        "bytes_per_s": size_bytes / median_s,
        "copy_seconds_median": None,
        "verified": True,
        "buffers": "cold" if cold else "warm",
        "cores": 1,
    }


def with_roofline(rows: Iterable[Row]) -> list[Row]:
    """Add ``roofline`` to rows that hold copies among them; None where no copy was measured alike.

    Notes
    -----
    A copy of n bytes moves 2 n. Encoding n data bytes reads n and writes n m / k; decoding with e
    erasures reads n and writes n e / k (pyeclib also joins the data, which the kernel does not).
    The copy of the nearest size is taken.
    """
    listed = list(rows)
    copies = [row for row in listed if row["op"] == "memcpy"]
    return [row | {"roofline": _roofline(row, copies)} for row in listed]


def _roofline(row: Row, copies: Sequence[Row]) -> float | None:
    alike = [copy for copy in copies if copy["buffers"] == row["buffers"]]
    if not alike or row["cores"] != 1:
        return None
    if row["op"] == "memcpy":
        return 1.0
    scheme = parse_scheme(row["scheme"])
    written = scheme.m if row["op"] == "encode" else row["erasures"]
    nearest = min(alike, key=lambda copy: abs(math.log(copy["size_bytes"] / row["size_bytes"])))
    return float(row["bytes_per_s"] * (1 + written / scheme.k) / (2 * nearest["bytes_per_s"]))

"""The benchmark of erasure-code kernels beyond one warm call: cold buffers, all cores, and a roofline.

`benchmark` puts beside the rows of `stripesim.calibration.kernel.measure` what they have to be read
against: the machine's own copy speed in the same run, the kernel without Python, buffers that are not in
the cache, and as many processes as there are cores (pyeclib holds the interpreter's lock).
"""

from __future__ import annotations

import ctypes
import math
import multiprocessing
import os
import random
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from stripesim.calibration import kernel_raw
from stripesim.calibration.kernel import KernelMeasureError, Row, measure
from stripesim.calibration.malloc import raise_malloc_thresholds
from stripesim.models.coding.codec import Codec
from stripesim.models.coding.errors import CodecError
from stripesim.models.coding.parse import parse_scheme

#: Columns of the source's tables, in its order: `table_rows` fills them.
TABLE_COLUMNS = ("seconds", "KB", "plugin", "k", "m", "workload", "iterations", "size", "erasures")
#: Data that one line of the source's tables stands for [B].
TABLE_BYTES = 1 << 30
#: Bytes that the buffers of a cold case fill together [B]: beyond the caches of one core.
COLD_BYTES = 1 << 28
#: Data sizes of the sweep over sizes, in chunks of 4 KiB times k up to this [B].
SWEEP_MAX_BYTES = 64 << 20


def sweep_sizes(k: int) -> list[int]:
    """Data sizes from 4 KiB times k, fourfold each, to 64 MiB [B].

    >>> [size >> 10 for size in sweep_sizes(4)]
    [16, 64, 256, 1024, 4096, 16384, 65536]
    """
    sizes = []
    size_bytes = 4096 * k
    while size_bytes <= SWEEP_MAX_BYTES:
        sizes.append(size_bytes)
        size_bytes *= 4
    # The last step is a shorter one where k is no power of four.
    return sorted({*sizes, SWEEP_MAX_BYTES})


def table_rows(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows in the columns of the source's tables, each scaled to 1 GiB of data.

    Parameters
    ----------
    rows : iterable of mapping
        As `stripesim.calibration.kernel.measure` returns; rows of other operations keep their name as
        ``workload``.

    Returns
    -------
    list of dict
        With the keys `TABLE_COLUMNS`: ``seconds`` is the median of a call times ``iterations``.
    """
    told = []
    for row in rows:
        scheme = parse_scheme(row["scheme"])
        iterations = math.ceil(TABLE_BYTES / row["size_bytes"])
        values = (
            row["seconds_median"] * iterations,
            iterations * row["size_bytes"] // 1024,
            row["backend"],
            scheme.k,
            scheme.m,
            row["op"],
            iterations,
            row["size_bytes"],
            row["erasures"],
        )
        told.append(dict(zip(TABLE_COLUMNS, values, strict=True)))
    return told


def format_table(rows: Iterable[Mapping[str, Any]]) -> str:
    """The source's tables as text, one line per row."""
    lines = [
        f"{'seconds':<12}{'KB':<10}{'plugin':<26}{'k':<3}{'m':<3}{'work.':<12}{'iter.':<7}{'size':<10}eras."
    ]
    for row in table_rows(rows):
        lines.append(
            f"{row['seconds']:<12.6f}{row['KB']:<10}{row['plugin']:<26}{row['k']:<3}{row['m']:<3}"
            f"{row['workload']:<12}{row['iterations']:<7}{row['size']:<10}{row['erasures']}"
        )
    return "\n".join(lines)


def memcpy_rows(
    sizes_bytes: Sequence[int], *, cold: bool = False, rounds: int = 9, sample_s: float = 0.002
) -> list[Row]:
    """Time the C library's copy: the roof under which anything that touches every byte stays.

    Parameters
    ----------
    sizes_bytes : sequence of int
        Bytes copied by a call [B].
    cold : bool
        Go round buffers that fill `COLD_BYTES` instead of one pair.
    rounds : int
        Samples of each size.
    sample_s : float
        Shortest duration of a sample [s].

    Returns
    -------
    list of dict
        ``op`` is ``memcpy``; ``bytes_per_s`` counts the bytes copied once, not read and written.
    """
    loops: list[tuple[int, int, Callable[[int], None]]] = []
    for size_bytes in sizes_bytes:
        pairs = max(1, COLD_BYTES // (2 * size_bytes)) if cold else 1
        loops.append((size_bytes, pairs, _copy_loop(size_bytes, pairs)))
    samples: dict[int, list[float]] = {size_bytes: [] for size_bytes in sizes_bytes}
    calls = {}
    for size_bytes, pairs, loop in loops:
        loop(pairs)
        calls[size_bytes] = pairs * max(1, round(sample_s / _cpu_s(loop, pairs) / pairs))
    for _ in range(rounds):
        for size_bytes, _, loop in loops:
            samples[size_bytes].append(_cpu_s(loop, calls[size_bytes]))
    return [_row("memcpy", "none", "memcpy", 0, size, samples[size], cold=cold) for size in samples]


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


def cold_rows(
    schemes: Sequence[str],
    sizes_bytes: Sequence[int],
    backends: Sequence[str],
    *,
    rounds: int = 5,
    cold_bytes: int = COLD_BYTES,
    seed: int = 1,
) -> list[Row]:
    """Time encode through pyeclib on data that is not in the cache: other data in every call, verified.

    Parameters
    ----------
    schemes, sizes_bytes, backends
        As for `stripesim.calibration.kernel.measure`.
    rounds : int
        Times round all buffers.
    cold_bytes : int
        Bytes that the data buffers of a size fill together [B].
    seed : int
        Of the data.
    """
    told = []
    rng = random.Random(seed)
    for scheme_name in schemes:
        scheme = parse_scheme(scheme_name)
        for size_bytes in sizes_bytes:
            count = max(2, cold_bytes // size_bytes)
            block = rng.randbytes(size_bytes)
            # A rotation of one random block costs a copy, not as much randomness as there is memory.
            data = [block[turn % size_bytes :] + block[: turn % size_bytes] for turn in range(count)]
            for backend in backends:
                try:
                    codec = Codec(backend, k=scheme.k, m=scheme.m)
                except CodecError:
                    continue
                samples = []
                for _ in range(rounds):
                    start_ns = time.thread_time_ns()
                    for one in data:
                        encoded = codec.encode(one)
                    samples.append((time.thread_time_ns() - start_ns) / count / 1e9)
                verified = codec.decode(encoded[scheme.m :]) == data[-1]
                row = _row(backend, scheme.name, "encode", 0, size_bytes, samples, cold=True)
                told.append(row | {"verified": verified})
    return told


def cores_rows(
    schemes: Sequence[str],
    sizes_bytes: Sequence[int],
    backends: Sequence[str],
    *,
    cores: int | None = None,
    seconds: float = 0.3,
) -> list[Row]:
    """Encode in as many processes as there are cores at the same time; the speeds are added.

    Parameters
    ----------
    schemes, sizes_bytes, backends
        As for `stripesim.calibration.kernel.measure`.
    cores : int, optional
        Processes; the cores this process may use where left out.
    seconds : float
        Wall time for which each case runs [s].

    Returns
    -------
    list of dict
        ``bytes_per_s`` of all processes together, over wall time: whatever else runs on the machine
        takes its share. ``seconds_median`` is the time in which the machine encodes the size once.
    """
    count = cores or len(os.sched_getaffinity(0))
    if count < 1:
        raise KernelMeasureError(f"kernel: cores: got {count}, wanted at least 1")
    told = []
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(count)
    with ProcessPoolExecutor(count, context, initializer=_set_barrier, initargs=(barrier,)) as pool:
        for scheme_name in schemes:
            scheme = parse_scheme(scheme_name)
            for size_bytes in sizes_bytes:
                for backend in backends:
                    try:
                        Codec(backend, k=scheme.k, m=scheme.m)
                    except CodecError:
                        continue
                    work = (backend, scheme.k, scheme.m, size_bytes, seconds)
                    done = [pool.submit(_encode_for, *work) for _ in range(count)]
                    speeds, verified = zip(*(one.result() for one in done), strict=True)
                    total = sum(speeds)
                    row = _row(backend, scheme.name, "encode", 0, size_bytes, [size_bytes / total])
                    told.append(row | {"cores": count, "verified": all(verified)})
    return told


_barrier: Any = None


def _set_barrier(barrier: Any) -> None:
    global _barrier  # noqa: PLW0603 - the worker of a pool has no other place for what its initializer got
    _barrier = barrier


def _encode_for(backend: str, k: int, m: int, size_bytes: int, seconds: float) -> tuple[float, bool]:
    """Worker: bytes per second of encode calls in some wall time, and whether the last one was right."""
    raise_malloc_thresholds()
    codec = Codec(backend, k=k, m=m)
    data = random.Random(1).randbytes(size_bytes)
    encoded = codec.encode(data)
    # All begin together; a worker that is handed two cases of one turn would wait for ever without a bound.
    _barrier.wait(timeout=60)
    calls, start_s = 0, time.perf_counter()
    while time.perf_counter() - start_s < seconds:
        encoded = codec.encode(data)
        calls += 1
    elapsed_s = time.perf_counter() - start_s
    return size_bytes * calls / elapsed_s, codec.decode(encoded[m:]) == data


def _row(
    backend: str,
    scheme: str,
    op: str,
    erasures: int,
    size_bytes: int,
    samples: Sequence[float],
    *,
    cold: bool = False,
) -> Row:
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


def benchmark(
    schemes: Sequence[str] = ("rs:6,2",),
    sizes_bytes: Sequence[int] | None = None,
    backends: Sequence[str] | None = None,
    *,
    cold: bool = True,
    cores: int | None = None,
    rounds: int = 9,
    progress: Callable[[str], None] | None = None,
) -> list[Row]:
    """Everything in one run: calls, copies, the kernel alone, cold buffers, all cores.

    Parameters
    ----------
    schemes, sizes_bytes, backends
        As for `stripesim.calibration.kernel.measure`.
    cold : bool
        Add cold buffers.
    cores : int, optional
        Processes of the last part; the cores this process may use where left out, 0: leave the part out.
    rounds : int
        Samples of each case.
    progress : callable, optional
        Called with a few words before each part.

    Returns
    -------
    list of dict
        The rows of `measure` with ``buffers`` (warm, cold), ``cores`` and ``roofline``: the bytes that the
        operation must read and write, per second, over twice the copy speed of the same size and
        buffers. Backends named ``isal_…`` are the kernel alone; ``memcpy`` is the copy.

    Notes
    -----
    A roofline above 1 is no error: a code reads more than it writes, and reading is the cheaper half.
    """

    def told(words: str) -> None:
        if progress is not None:
            progress(words)

    told("calls")
    rows = [
        row | {"buffers": "warm", "cores": 1}
        for row in measure(schemes, sizes_bytes, backends, rounds=rounds)
    ]
    sizes = sorted({row["size_bytes"] for row in rows})
    names = list(dict.fromkeys(row["backend"] for row in rows))
    reed_solomon = [parse_scheme(name) for name in schemes if name.startswith("rs:")]
    for buffers in ("warm", "cold") if cold else ("warm",):
        told(f"copies and kernel, {buffers} buffers")
        rows += memcpy_rows(sizes, cold=buffers == "cold", rounds=rounds)
        if kernel_raw.available():
            for scheme in reed_solomon:
                rows += [
                    row | {"buffers": buffers, "cores": 1}
                    for row in kernel_raw.measure_raw(
                        [(scheme.k, scheme.m)],
                        sorted({-(-size // scheme.k) for size in sizes}),
                        rounds=rounds,
                        cold_bytes=COLD_BYTES if buffers == "cold" else 0,
                    )
                ]
    if cold:
        told("calls, cold buffers")
        rows += cold_rows(schemes, sizes, names, rounds=max(1, rounds // 3))
    if cores != 0:
        told("all cores")
        rows += cores_rows(schemes, sizes, names, cores=cores)
    return with_roofline(rows)


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

"""Benchmark erasure-code kernels beyond single warm calls: cold buffers, all cores, and a roofline.

`benchmark` adds reference points to the rows of `stripesim.calibration.kernels.measure.measure`: the
machine's own copy speed in the same run, the kernel without Python, buffers that are not in cache, and one
process per core (pyeclib holds the interpreter's lock).
"""

import ctypes
import itertools
import math
import multiprocessing
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from stripesim.calibration.kernels import isal as kernel_raw
from stripesim.calibration.kernels.codes import Kernel, kernel_of
from stripesim.calibration.kernels.malloc import raise_malloc_thresholds
from stripesim.calibration.kernels.measure import measure
from stripesim.calibration.kernels.timing import (
    Case,
    Loop,
    Row,
    repeated,
    row_of,
    sample,
)
from stripesim.models.coding import (
    RedundancyScheme,
    loaded_code_files,
    note_code_files,
    parse_scheme,
)
from stripesim.models.problems import KernelError
from stripesim.sim.observe.progress import OnStep, silent

#: Total size of the buffers of a cold case [B], beyond the caches of one core.
COLD_BYTES = 1 << 28
#: Data that each line in the tables of Ceph's benchmark represents [B].
TABLE_BYTES = 1 << 30
#: Largest data size of a size sweep [B]. The smallest is 4 KiB times k.
SWEEP_MAX_BYTES = 64 << 20


def sweep_sizes(k: int) -> list[int]:
    """Return data sizes from 4 KiB times k to 64 MiB, each four times the previous one [B].

    Examples
    --------
    >>> [size >> 10 for size in sweep_sizes(4)]
    [16, 64, 256, 1024, 4096, 16384, 65536]
    """
    steps = range((SWEEP_MAX_BYTES // (4096 * k)).bit_length())
    # The last step is shorter unless k is a power of four.
    sizes = {min(4096 * k * 4**step, SWEEP_MAX_BYTES) for step in steps}
    return sorted({*sizes, SWEEP_MAX_BYTES})


def table_rows(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows in the columns of Ceph's benchmark, each scaled to 1 GiB of data."""
    listed = []
    for row in rows:
        scheme = parse_scheme(row["scheme"])
        size = row["size_bytes"]
        iterations = math.ceil(TABLE_BYTES / size)
        cells = {
            "seconds": row["seconds_median"] * iterations,
            "KB": iterations * size // 1024,
        }
        cells |= {
            "plugin": row["backend"],
            "k": scheme.k,
            "m": scheme.m,
            "workload": row["op"],
        }
        listed.append(
            cells
            | {"iterations": iterations, "size": size, "erasures": row["erasures"]}
        )
    return listed


def format_table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Format the rows in the layout of Ceph's benchmark, one line per row."""
    lines = [
        f"{'seconds':<12}{'KB':<10}{'plugin':<26}{'k':<3}{'m':<3}{'work.':<12}{'iter.':<7}{'size':<10}eras."
    ]
    for row in table_rows(rows):
        lines.append(
            f"{row['seconds']:<12.6f}{row['KB']:<10}{row['plugin']:<26}{row['k']:<3}{row['m']:<3}"
            f"{row['workload']:<12}{row['iterations']:<7}{row['size']:<10}{row['erasures']}"
        )
    return "\n".join(lines)


def _offered(
    schemes: Sequence[str], sizes_bytes: Sequence[int], backends: Sequence[str]
) -> Iterator[tuple[RedundancyScheme, int, str, Kernel]]:
    """Yield every case whose backend supports the code."""
    for scheme, size_bytes, backend in itertools.product(
        map(parse_scheme, schemes), sizes_bytes, backends
    ):
        with suppress(KernelError):
            yield scheme, size_bytes, backend, kernel_of(scheme, backend)


def cold_rows(
    schemes: Sequence[str],
    sizes_bytes: Sequence[int],
    backends: Sequence[str],
    *,
    rounds: int = 5,
    cold_bytes: int = COLD_BYTES,
) -> list[Row]:
    """Time encode on data that is not in cache, with different data in each call.

    Parameters
    ----------
    schemes, sizes_bytes, backends
        Codes, data sizes [B] and backends. Unsupported combinations are skipped.
    rounds
        Samples per case.
    cold_bytes
        Total size of the buffers of a case [B].
    """
    listed = []
    rng = random.Random(1)
    for scheme, size_bytes, backend, kernel in _offered(schemes, sizes_bytes, backends):
        block = rng.randbytes(size_bytes)
        # Rotating one random block costs only a copy, far less than filling memory with random bytes.
        turns = (turn % size_bytes for turn in range(max(2, cold_bytes // size_bytes)))
        data = [block[turn:] + block[:turn] for turn in turns]
        case = Case(_encode_in_turn(kernel.encode, data), calls=len(data))
        sample([case], rounds)
        verified = kernel.holds(kernel.encode(data[-1]), data[-1])
        row = row_of(
            backend,
            scheme.name,
            "encode",
            0,
            size_bytes,
            case.samples_s,
            verified=verified,
        )
        listed.append(row | {"buffers": "cold", "cores": 1})
    return listed


def _encode_in_turn(encode: Callable[[bytes], object], data: Sequence[bytes]) -> Loop:
    """Return a loop that encodes the next buffer in each call."""
    buffers = itertools.cycle(data)
    return repeated(lambda: encode(next(buffers)))


def cores_rows(
    schemes: Sequence[str],
    sizes_bytes: Sequence[int],
    backends: Sequence[str],
    *,
    cores: int | None = None,
    seconds: float = 0.3,
) -> list[Row]:
    """Encode in one process per core at the same time, and add up the speeds over wall time.

    Parameters
    ----------
    schemes, sizes_bytes, backends
        Codes, data sizes [B] and backends. Unsupported combinations are skipped.
    cores
        Number of processes. None uses all cores available to this process.
    seconds
        Duration of each case [s].

    Raises
    ------
    KernelError
        If `cores` is less than 1.
    """
    count = len(os.sched_getaffinity(0)) if cores is None else cores
    if count < 1:
        raise KernelError(f"kernel: cores: got {count}, wanted at least 1")
    listed = []
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(count)
    with ProcessPoolExecutor(
        count,
        context,
        initializer=_start_worker,
        initargs=(barrier, loaded_code_files()),
    ) as pool:
        for scheme, size_bytes, backend, _ in _offered(schemes, sizes_bytes, backends):
            done = [
                pool.submit(_encode_for, backend, scheme.name, size_bytes, seconds)
                for _ in range(count)
            ]
            speeds, verified = zip(*(one.result() for one in done), strict=True)
            times = [size_bytes / sum(speeds)]
            row = row_of(
                backend,
                scheme.name,
                "encode",
                0,
                size_bytes,
                times,
                verified=all(verified),
            )
            listed.append(row | {"buffers": "warm", "cores": count})
    return listed


_barrier: Any = None


def _start_worker(barrier: Any, code_files: list[Path]) -> None:
    global _barrier  # noqa: PLW0603 - the worker of a pool has no other place for what its initializer got
    _barrier = barrier
    note_code_files(code_files)


def _encode_for(
    backend: str, scheme: str, size_bytes: int, seconds: float
) -> tuple[float, bool]:
    """Return the speed of encode calls during a wall time [B/s], and True if the last result was correct."""
    raise_malloc_thresholds()
    encoder = kernel_of(parse_scheme(scheme), backend)
    data = random.Random(1).randbytes(size_bytes)
    encoded = encoder.encode(data)
    # Start together. The timeout prevents a deadlock if one worker receives two cases.
    _barrier.wait(timeout=60)
    calls = 0
    start_s = time.perf_counter()
    while time.perf_counter() - start_s < seconds:
        encoded = encoder.encode(data)
        calls += 1
    elapsed_s = time.perf_counter() - start_s
    return size_bytes * calls / elapsed_s, encoder.holds(encoded, data)


def benchmark(
    schemes: Sequence[str] = ("rs:6,2",),
    sizes_bytes: Sequence[int] | None = None,
    backends: Sequence[str] | None = None,
    *,
    sweep: bool = False,
    cold: bool = True,
    cores: int | None = None,
    rounds: int = 9,
    progress: OnStep = silent,
) -> list[Row]:
    """Run all parts of the benchmark: library calls, copies, the bare kernel, cold buffers and all cores.

    Parameters
    ----------
    schemes, sizes_bytes, backends, rounds
        As for `stripesim.calibration.kernels.measure.measure`.
    sweep
        Without `sizes_bytes`, use the `sweep_sizes` of each code.
    cold
        Include cold buffers.
    cores
        Processes of the last part. None uses all cores available to this process; 0 skips the part.
    progress
        Called before each stage.

    Returns
    -------
    list of dict
        Rows as from `measure`, with ``buffers`` (warm or cold), ``cores`` and ``roofline``, see
        `with_roofline`.

    Raises
    ------
    KernelError, SchemeError
        As from `measure`.
    """
    parts: list[tuple[str, list[int], list[str]]] = []
    rows: list[Row] = []
    codes = dict.fromkeys(schemes)
    kinds = ("warm", "cold") if cold else ("warm",)
    # Of each code: calls, the kernel in each kind of buffers, calls with cold buffers, and all cores.
    stages_count = 1 + len(kinds) + cold + (cores != 0)
    steps_count = len(codes) * stages_count + len(kinds)
    for name in codes:
        progress(f"{name}: calls", steps_count)
        swept = sweep_sizes(parse_scheme(name).k) if sweep else None
        warm_rows = measure([name], sizes_bytes or swept, backends, rounds=rounds)
        rows += [row | {"buffers": "warm", "cores": 1} for row in warm_rows]
        names = list(dict.fromkeys(row["backend"] for row in warm_rows))
        parts.append((name, sorted({row["size_bytes"] for row in warm_rows}), names))
    every_size = sorted({size for _, sizes, _ in parts for size in sizes})
    for buffers in kinds:
        progress(f"copies, {buffers} buffers")
        rows += memcpy_rows(every_size, cold=buffers == "cold", rounds=rounds)
    for name, sizes, names in parts:
        for buffers in kinds:
            progress(f"{name}: kernel, {buffers} buffers")
            rows += _raw_rows(name, sizes, buffers, rounds)
        if cold:
            progress(f"{name}: calls, cold buffers")
            rows += cold_rows(
                [name],
                sizes,
                names,
                rounds=max(1, rounds // 3),
                cold_bytes=COLD_BYTES,
            )
        if cores != 0:
            progress(f"{name}: all cores")
            rows += cores_rows([name], sizes, names, cores=cores)
    return with_roofline(rows)


def _raw_rows(
    name: str, sizes_bytes: Sequence[int], buffers: str, rounds: int
) -> list[Row]:
    """Measure the bare kernel if possible, that is, for Reed-Solomon codes with ISA-L."""
    scheme = parse_scheme(name)
    if not name.startswith("rs:") or not kernel_raw.available():
        return []
    raw_rows = kernel_raw.measure_raw(
        [(scheme.k, scheme.m)],
        sorted({-(-size // scheme.k) for size in sizes_bytes}),
        rounds=rounds,
        cold_bytes=COLD_BYTES if buffers == "cold" else 0,
    )
    return [row | {"buffers": buffers, "cores": 1} for row in raw_rows]


def memcpy_rows(
    sizes_bytes: Sequence[int],
    *,
    cold: bool = False,
    rounds: int = 9,
    sample_s: float = 0.002,
) -> list[Row]:
    """Time the C library's memcpy, the upper bound for anything that touches every byte.

    Parameters
    ----------
    sizes_bytes
        Sizes to copy [B].
    cold
        Cycle through buffers that exceed the cache.
    rounds
        Samples per size.
    sample_s
        Shortest duration of a sample [s].

    Returns
    -------
    list of dict
        One row per size. ``bytes_per_s`` counts the copied bytes once.
    """
    cases = {}
    for size_bytes in sizes_bytes:
        pairs = max(1, COLD_BYTES // (2 * size_bytes)) if cold else 1
        cases[size_bytes] = Case(_copy_loop(size_bytes, pairs), each=pairs)
        cases[size_bytes].settle(sample_s)
    sample(cases.values(), rounds)
    buffers = "cold" if cold else "warm"
    return [
        row_of(
            "memcpy",
            "none",
            "memcpy",
            0,
            size,
            case.samples_s,
            buffers=buffers,
            cores=1,
        )
        for size, case in cases.items()
    ]


def _copy_loop(size_bytes: int, pairs: int) -> Loop:
    import numba

    function = ctypes.CDLL(None).memcpy
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    buffers = kernel_raw.aligned(2 * pairs * size_bytes)
    buffers[:] = 1

    @numba.njit()
    def run(calls: int, first: int, size_bytes: int, pairs: int) -> None:
        for call in range(calls):
            source = first + 2 * size_bytes * (call % pairs)
            function(source + size_bytes, source, size_bytes)

    def repeat(calls: int) -> None:
        # The closure keeps the buffers alive as long as the loop.
        run(calls, buffers.ctypes.data, size_bytes, pairs)

    return repeat


def with_roofline(rows: Iterable[Row]) -> list[Row]:
    """Add ``roofline`` to rows that include copies.

    The roofline of a row is the bytes that its operation must read and write per second, relative to those of
    a copy. It is None unless a copy with the same buffers was measured, and for several cores.

    Notes
    -----
    A copy of n bytes moves 2 n bytes. Encoding n data bytes reads n and writes n m / k. Decoding with e
    erasures reads n and writes n e / k (pyeclib also joins the data, which the kernel does not). The copy of
    the nearest size is used. Values above 1 are possible, because codes read more than they write, and
    reading is cheaper.
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
    nearest = min(
        alike, key=lambda copy: abs(math.log(copy["size_bytes"] / row["size_bytes"]))
    )
    return float(
        row["bytes_per_s"] * (1 + written / scheme.k) / (2 * nearest["bytes_per_s"])
    )

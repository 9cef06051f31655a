"""What kernels are read against: the machine's own copy speed in the same run."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Sequence

from stripesim.calibration.kernels import isal as kernel_raw
from stripesim.calibration.kernels.timing import Case, Loop, Row, row_of, sample
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

    `cold` goes round buffers that fill `cold_bytes` instead of one pair. ``op`` is ``memcpy``;
    ``bytes_per_s`` counts the bytes copied once, not read and written.
    """
    cases = {}
    for size_bytes in sizes_bytes:
        pairs = max(1, cold_bytes // (2 * size_bytes)) if cold else 1
        cases[size_bytes] = Case(_copy_loop(size_bytes, pairs), each=pairs)
        cases[size_bytes].settle(sample_s)
    sample(cases.values(), rounds)
    buffers = "cold" if cold else "warm"
    return [
        row_of("memcpy", "none", "memcpy", 0, size, case.samples_s, buffers=buffers, cores=1)
        for size, case in cases.items()
    ]


def _copy_loop(size_bytes: int, pairs: int) -> Loop:
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

"""Call jerasure's cauchy_good directly: encode, and decode of losses among all chunks.

This needs libjerasure2, whose C functions are loaded without compiling anything. The source of study
dachary2013 timed this technique with random losses among data and parity. Here every combination of losses is
timed, and the mean is reported.
"""

import ctypes
import ctypes.util
import itertools
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from stripesim.calibration.kernels.isal import aligned
from stripesim.calibration.kernels.timing import Case, Row, repeated, row_of, sample
from stripesim.models.problems import KernelError

WORD_BITS = 8
PACKET_BYTES = 3072
BACKEND = "jerasure:cauchy_good"


def _library() -> Any:
    for name in ("libJerasure.so.2", ctypes.util.find_library("Jerasure")):
        try:
            if name:
                return ctypes.CDLL(name)
            return None
        except OSError:
            continue
    return None


def available() -> bool:
    """Return True if jerasure can be loaded."""
    return _library() is not None


class CauchyGood:
    """Jerasure's cauchy_good on its own buffers, with chunks padded to whole packets as in Ceph."""

    def __init__(self, k: int, m: int, data_bytes: int) -> None:
        library = _library()
        if library is None:
            raise KernelError(
                "codec: jerasure: libJerasure.so.2 is not installed (Debian: libjerasure2)"
            )
        unit = k * WORD_BITS * PACKET_BYTES
        self.k = k
        self.m = m
        self.library = library
        self.chunk_bytes = -(-data_bytes // unit) * unit // k

        def pointer(name: str, *more: Any) -> ctypes.c_void_p:
            function = getattr(library, name)
            function.restype = ctypes.c_void_p
            return ctypes.c_void_p(function(k, m, WORD_BITS, *more))

        matrix = pointer("cauchy_good_general_coding_matrix")
        self._bits = pointer("jerasure_matrix_to_bitmatrix", matrix)
        self._schedule = pointer("jerasure_smart_bitmatrix_to_schedule", self._bits)
        self.chunks = [aligned(self.chunk_bytes) for _ in range(k + m)]
        addresses = [chunk.ctypes.data for chunk in self.chunks]
        self._data = (ctypes.c_void_p * k)(*addresses[:k])
        self._parity = (ctypes.c_void_p * m)(*addresses[k:])

    def encode(self) -> None:
        """Compute the parity chunks from the data chunks."""
        self.library.jerasure_schedule_encode(
            self.k,
            self.m,
            WORD_BITS,
            self._schedule,
            self._data,
            self._parity,
            self.chunk_bytes,
            PACKET_BYTES,
        )

    def decode(self, lost: Sequence[int]) -> None:
        """Compute lost chunks from the others, in place."""
        erasures = (ctypes.c_int * (len(lost) + 1))(*lost, -1)
        status = self.library.jerasure_schedule_decode_lazy(
            self.k,
            self.m,
            WORD_BITS,
            self._bits,
            erasures,
            self._data,
            self._parity,
            self.chunk_bytes,
            PACKET_BYTES,
            1,
        )
        if status != 0:
            raise KernelError(f"codec: jerasure: decode of {list(lost)} failed")


def measure_cauchy_good(
    k: int = 6, m: int = 2, data_bytes: int = 1 << 20, *, rounds: int = 15
) -> list[Row]:
    """Time encode, and decode of every combination of 1 to m losses, with verified results.

    Parameters
    ----------
    k, m
        Data and parity chunks.
    data_bytes
        Data size [B], which is padded to whole packets.
    rounds
        Runs of each combination.

    Returns
    -------
    list of dict
        One row per number of erasures. A sample is the median over the rounds of one combination of losses,
        so the mean and the percentiles are over combinations. Each call computes its XOR schedule.

    Raises
    ------
    KernelError
        If jerasure is not installed, or decoding fails.
    """
    code = CauchyGood(k, m, data_bytes)
    rng = np.random.default_rng(1)
    for chunk in code.chunks[:k]:
        chunk[:] = rng.integers(0, 256, code.chunk_bytes, dtype=np.uint8)
    code.encode()
    intact = [chunk.copy() for chunk in code.chunks]
    samples: dict[int, list[float]] = {0: [_median_s(code.encode, rounds)]}
    verified = True
    for erasures in range(1, m + 1):
        samples[erasures] = []
        for lost in itertools.combinations(range(k + m), erasures):
            for index in lost:
                code.chunks[index][:] = 0
            code.decode(lost)
            verified &= all(
                np.array_equal(a, b) for a, b in zip(code.chunks, intact, strict=True)
            )
            samples[erasures].append(_median_s(partial(code.decode, lost), rounds))
    rows = []
    for erasures, times in samples.items():
        op = "decode" if erasures else "encode"
        size_bytes = k * code.chunk_bytes
        mean_s = statistics.fmean(times)
        row = row_of(
            BACKEND,
            f"rs:{k},{m}",
            op,
            erasures,
            size_bytes,
            times,
            copy_s=0.0,
            verified=verified,
        )
        rows.append(
            row | {"seconds_median": mean_s, "bytes_per_s": size_bytes / mean_s}
        )
    return rows


def _median_s(call: Callable[[], None], rounds: int) -> float:
    case = Case(repeated(call))
    call()
    sample([case], rounds)
    return statistics.median(case.samples_s)

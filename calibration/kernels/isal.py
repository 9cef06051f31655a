"""Call ISA-L's encode kernel directly on aligned buffers, without Python, headers or copies.

pyeclib ships ISA-L as a separate library, and a compiled loop calls its functions here. The difference to
`stripesim.calibration.kernels.measure` is the overhead of pyeclib.
"""

import ctypes
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stripesim.calibration.kernels.timing import Case, Loop, Row, row_of, sample
from stripesim.models.coding.galois import cauchy_matrix, invert, matrix_product
from stripesim.models.problems import KernelError

Bytes = npt.NDArray[np.uint8]

#: Alignment of buffers [B]: a cache line, more than the 32 bytes that Ceph's plugins require.
ALIGN_BYTES = 64
#: Size of ISA-L's expanded table for one coefficient [B].
_TABLE_BYTES = 32
#: Vector extensions with a named function. "" lets ISA-L choose, as a storage daemon does.
VARIANTS = ("", "base", "sse", "avx", "avx2", "avx512")


@cache
def isal_path() -> Path:
    """Return the path of the ISA-L library in the installed pyeclib, or raise `KernelError`."""
    try:
        listed = distribution("pyeclib").files or ()
    except PackageNotFoundError:
        raise KernelError(
            "kernel: pyeclib is not installed, so ISA-L is missing"
        ) from None
    for file in listed:
        if "libisal" in file.name:
            return Path(str(file.locate()))
    raise KernelError("kernel: this pyeclib does not ship ISA-L as a separate library")


def available() -> bool:
    """Return True if ISA-L can be called directly on this machine."""
    try:
        return bool(ctypes.CDLL(str(isal_path())))
    except (KernelError, OSError):
        return False


def aligned(size_bytes: int) -> Bytes:
    """Return zeros at an address that is a multiple of `ALIGN_BYTES`, uint8 of shape (size_bytes,)."""
    room = np.zeros(size_bytes + ALIGN_BYTES, dtype=np.uint8)
    skip = -room.ctypes.data % ALIGN_BYTES
    return room[skip : skip + size_bytes]


class RawKernel:
    """Multiply rows of coefficients (outputs, inputs) in GF(2^8) with chunks, using one variant of ISA-L."""

    def __init__(self, rows: Bytes, variant: str = "") -> None:
        if variant not in VARIANTS:
            raise KernelError(
                f"kernel: variant: got {variant!r}, wanted one of {VARIANTS}"
            )
        library = ctypes.CDLL(str(isal_path()))
        self.rows = np.ascontiguousarray(rows, dtype=np.uint8)
        self.outputs, self.inputs = self.rows.shape
        try:
            # Tables for one extension do not work with another, so a named variant uses the base tables.
            if variant:
                tables = library.ec_init_tables_base
            else:
                tables = library.ec_init_tables
            self._function = getattr(
                library, f"ec_encode_data_{variant}" if variant else "ec_encode_data"
            )
        except AttributeError:
            raise KernelError(
                f"kernel: this ISA-L has no function for {variant!r}"
            ) from None
        self._tables = aligned(_TABLE_BYTES * self.rows.size)
        tables.restype = None
        tables.argtypes = [ctypes.c_int] * 2 + [ctypes.c_void_p] * 2
        tables(
            self.inputs, self.outputs, self.rows.ctypes.data, self._tables.ctypes.data
        )
        self._function.restype = None
        self._function.argtypes = [ctypes.c_int] * 3 + [ctypes.c_void_p] * 3

    def apply(self, chunks: Sequence[Bytes]) -> list[Bytes]:
        """Compute the outputs for chunks of equal length."""
        outputs = [aligned(len(chunks[0])) for _ in range(self.outputs)]
        self._call(len(chunks[0]), _addresses(chunks), _addresses(outputs))
        return outputs

    def _call(
        self,
        length: int,
        inputs: npt.NDArray[np.uint64],
        outputs: npt.NDArray[np.uint64],
    ) -> None:
        shape = (length, self.inputs, self.outputs, self._tables.ctypes.data)
        self._function(*shape, inputs.ctypes.data, outputs.ctypes.data)

    def loop(self, sets: Sequence[tuple[Sequence[Bytes], Sequence[Bytes]]]) -> Loop:
        """Return a compiled loop of calls over sets of (inputs, outputs). A single set stays in cache."""
        inputs = np.stack([_addresses(one) for one, _ in sets])
        outputs = np.stack([_addresses(one) for _, one in sets])
        run = _compiled_loop(self._function)
        length = len(sets[0][0][0])
        shape = _Shape(length, self.inputs, self.outputs, self._tables.ctypes.data)

        def repeat(calls: int) -> None:
            # This closure keeps the address tables and their buffers alive as long as the loop.
            addresses = _AddressTables(
                inputs.ctypes.data,
                outputs.ctypes.data,
                inputs.shape[1] * 8,
                outputs.shape[1] * 8,
            )
            run(calls, shape, addresses, len(sets))

        return repeat


def _addresses(chunks: Sequence[Bytes]) -> npt.NDArray[np.uint64]:
    return np.array([chunk.ctypes.data for chunk in chunks], dtype=np.uint64)


class _Shape(NamedTuple):
    """The length of a chunk [B], the numbers of chunks, and the address of the expanded coefficients."""

    length_bytes: int
    inputs: int
    outputs: int
    tables: int


class _AddressTables(NamedTuple):
    """Addresses of the pointers to the first set of chunks, and the distance to those of the next set [B]."""

    first_in: int
    first_out: int
    step_in: int
    step_out: int


def _compiled_loop(function: Any) -> Any:
    import numba

    @numba.njit(nogil=True)
    def run(calls: int, shape: _Shape, addresses: _AddressTables, sets: int) -> None:
        for call in range(calls):
            turn = call % sets
            function(
                shape.length_bytes,
                shape.inputs,
                shape.outputs,
                shape.tables,
                addresses.first_in + turn * addresses.step_in,
                addresses.first_out + turn * addresses.step_out,
            )

    return run


def coefficients(k: int, m: int) -> Bytes:
    """Return the parity rows of the Cauchy code, uint8 of shape (m, k), equal to ISA-L's own."""
    return cauchy_matrix(k, m)[-m:]


def decode_rows(parity: Bytes, erased: Sequence[int]) -> tuple[Bytes, list[int]]:
    """Return the rows that rebuild up to m erased chunks, and the k chunks that they are applied to."""
    m, k = parity.shape
    full = np.concatenate([np.eye(k, dtype=np.uint8), parity])
    kept = [chunk for chunk in range(k + m) if chunk not in set(erased)][:k]
    return matrix_product(full[list(erased)], invert(full[kept])), kept


def measure_raw(
    schemes: Sequence[tuple[int, int]],
    chunk_sizes_bytes: Sequence[int],
    *,
    variant: str = "",
    rounds: int = 9,
    sample_s: float = 0.002,
    cold_bytes: int = 0,
) -> list[Row]:
    """Time the bare kernel: encode, and decode of 1 to m lost data chunks, with verified results.

    Parameters
    ----------
    schemes
        Codes as (k, m).
    chunk_sizes_bytes
        Chunk sizes [B]. The ``size_bytes`` of a row is k chunks.
    variant
        One of `VARIANTS`.
    rounds
        Samples per case.
    sample_s
        Shortest duration of a sample [s].
    cold_bytes
        Total size of the buffer sets to cycle through [B], so that none remains in a smaller cache. 0 reuses
        the same warm buffers.

    Raises
    ------
    KernelError
        If ISA-L or the variant is missing.
    """
    rng = np.random.default_rng(1)
    backend = f"isal_cauchy{'_' + variant if variant else ''}"
    rows = []
    for k, m in schemes:
        parity = coefficients(k, m)
        for chunk_bytes in chunk_sizes_bytes:
            for erasures in range(m + 1):
                case, verified = _case(
                    parity, chunk_bytes, erasures, variant, cold_bytes, rng
                )
                case.settle(sample_s)
                op = "decode" if erasures else "encode"
                rows.append(
                    (case, (f"rs:{k},{m}", op, erasures, k * chunk_bytes), verified)
                )
    sample([case for case, _, _ in rows], rounds)
    return [
        row_of(backend, *what, case.samples_s, copy_s=0.0, verified=verified)
        for case, what, verified in rows
    ]


def _case(
    parity: Bytes,
    chunk_bytes: int,
    erasures: int,
    variant: str,
    cold_bytes: int,
    rng: np.random.Generator,
) -> tuple[Case, bool]:
    """Return a case of encode or decode, and True if its results are correct."""
    k = parity.shape[1]
    rows, kept = (
        decode_rows(parity, range(erasures)) if erasures else (parity, list(range(k)))
    )
    kernel = RawKernel(rows, variant)
    encoder = RawKernel(parity, variant)
    count = max(1, -(-cold_bytes // ((k + len(rows)) * chunk_bytes)))
    sets = []
    verified = True
    drawn = rng.integers(0, 256, k * chunk_bytes, dtype=np.uint8)
    for turn in range(count):
        data = [aligned(chunk_bytes) for _ in range(k)]
        # Rotating one random block costs only a copy, far less than filling memory with random bytes.
        for index, chunk in enumerate(data):
            chunk[:] = np.roll(
                drawn[index * chunk_bytes : (index + 1) * chunk_bytes], turn
            )
        chunks = [*data, *encoder.apply(data)]
        outputs = kernel.apply([chunks[index] for index in kept])
        # Compare decoded data in every set, but parity, by slow arithmetic, only in the first and last.
        if erasures or turn in (0, count - 1):
            if erasures:
                wanted = data[:erasures]
            else:
                wanted = list(matrix_product(parity, np.stack(data)))
            verified &= all(
                np.array_equal(a, b) for a, b in zip(outputs, wanted, strict=True)
            )
        sets.append(([chunks[index] for index in kept], outputs))
    return Case(kernel.loop(sets), each=count), verified

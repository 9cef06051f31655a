"""Encode with scalar code: Reed-Solomon, Cauchy and Liberation codes without vector instructions.

The study of Kim et al. compares codes of an old library in plain C with ISA-L. This module implements the
three codes in the style of such a library: products by table look-up, and XORs of packets of 64-bit words
along a bit matrix. ``python -m stripesim.calibration.kernels.software`` measures them against ISA-L, in an
interpreter whose compiler does not vectorise, and prints the ratios.

References
----------
J. S. Plank, "The RAID-6 Liberation codes", FAST 2008, section 3 (the bit matrices); J. S. Plank, L. Xu,
"Optimizing Cauchy Reed-Solomon codes for fault-tolerant network storage", NCA 2006 (few ones in the matrix).
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stripesim.calibration.kernels import isal as kernel_raw
from stripesim.calibration.kernels.timing import Case, repeated, sample
from stripesim.models.coding.galois import PRODUCTS
from stripesim.models.documents import json_text

Bytes = npt.NDArray[np.uint8]
Bits = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]

WORD_BITS = 8
"""Bits per field element, and packets per block in the Cauchy code."""
CODES = ("RS", "CRS", "LIB")
# Disable the LLVM vectorisers that Numba uses, since the old library was built without one.
_PLAIN = {"NUMBA_LOOP_VECTORIZE": "0", "NUMBA_SLP_VECTORIZE": "0"}


def bit_matrix(element: int) -> Bits:
    """Return multiplication by an element of GF(2^8) as an 8 × 8 matrix of bits.

    Column j is ``element * 2**j``, lowest bit first.
    """
    columns = [int(PRODUCTS[element, 1 << j]) for j in range(WORD_BITS)]
    return np.array(
        [[column >> i & 1 for column in columns] for i in range(WORD_BITS)],
        dtype=np.uint8,
    )


def cauchy_bits(k: int) -> Bits:
    """Return a bit matrix with few ones for two parities, uint8 of shape (16, 8 k).

    The first parity is the plain sum. The second uses the k elements whose bit matrices have the fewest ones.
    Any distinct non-zero elements give a code that tolerates two losses.
    """
    elements = sorted(range(1, 256), key=lambda e: (int(bit_matrix(e).sum()), e))[:k]
    ones = np.hstack([np.eye(WORD_BITS, dtype=np.uint8)] * k)
    return np.vstack([ones, np.hstack([bit_matrix(e) for e in elements])])


def liberation_bits(k: int, w: int) -> Bits:
    """Return the bit matrix of a Liberation code, uint8 of shape (2 w, k w).

    Parameters
    ----------
    k
        Data blocks.
    w
        Word size, a prime of at least k and greater than 2.

    Raises
    ------
    ValueError
        If `w` is invalid.
    """
    if w < 3 or w < k or any(w % d == 0 for d in range(2, w)):
        raise ValueError(
            f"liberation: w: got {w}, wanted a prime of at least {max(3, k)}"
        )
    second = []
    for j in range(k):
        block = np.zeros((w, w), dtype=np.uint8)
        for i in range(w):
            block[i, (i + j) % w] = 1
        if j:
            row = j * (w - 1) // 2 % w
            block[row, (row + j - 1) % w] = 1
        second.append(block)
    return np.vstack([np.hstack([np.eye(w, dtype=np.uint8)] * k), np.hstack(second)])


def _xor_kernel() -> Any:
    import numba

    @numba.njit()
    def run(
        data: Words, parity: Words, steps: npt.NDArray[np.int64], stripes: int
    ) -> None:
        words = data.shape[2]
        for stripe in range(stripes):
            last = -1
            for step in range(steps.shape[0]):
                target = steps[step, 0]
                source = steps[step, 1]
                if target != last:
                    for word in range(words):
                        parity[stripe, target, word] = data[stripe, source, word]
                    last = target
                else:
                    for word in range(words):
                        parity[stripe, target, word] ^= data[stripe, source, word]

    return run


def _table_kernel() -> Any:
    import numba

    @numba.njit()
    def run(data: Bytes, parity: Bytes, tables: Bytes, stripes: int) -> None:
        k = data.shape[1]
        size = data.shape[2]
        words_in = data.view(np.uint64)
        words_out = parity.view(np.uint64)
        for stripe in range(stripes):
            for word in range(size // 8):
                total = words_in[stripe, 0, word]
                for block in range(1, k):
                    total ^= words_in[stripe, block, word]
                words_out[stripe, 0, word] = total
            for at in range(size):
                parity[stripe, 1, at] = tables[0, data[stripe, 0, at]]
            for block in range(1, k):
                for at in range(size):
                    parity[stripe, 1, at] ^= tables[block, data[stripe, block, at]]

    return run


def software_encoder(
    code: str, k: int, block_bytes: int, stripes: int
) -> tuple[Callable[[], None], Callable[[], bool]]:
    """Return a function that encodes stripes with two parities, and one that checks its output.

    Parameters
    ----------
    code
        One of `CODES`.
    k
        Data blocks per stripe.
    block_bytes
        Size of a block [B].
    stripes
        Stripes per call.

    Raises
    ------
    ValueError
        If the code is unknown.
    """
    rng = np.random.default_rng(1)
    if code == "RS":
        elements = [1 << j for j in range(k)]
        tables = np.stack([PRODUCTS[e] for e in elements])
        data = rng.integers(0, 256, (stripes, k, block_bytes), dtype=np.uint8)
        parity = np.zeros((stripes, 2, block_bytes), dtype=np.uint8)
        kernel = _table_kernel()

        def check() -> bool:
            first = np.bitwise_xor.reduce(data, axis=1)
            second = np.bitwise_xor.reduce(
                np.stack([PRODUCTS[e, data[:, j]] for j, e in enumerate(elements)]),
                axis=0,
            )
            return np.array_equal(parity[:, 0], first) and np.array_equal(
                parity[:, 1], second
            )

        return lambda: kernel(data, parity, tables, stripes), check
    if code not in CODES:
        raise ValueError(
            f"kernel: code: got {code!r}, wanted one of {', '.join(CODES)}"
        )
    if code == "CRS":
        w = WORD_BITS
    else:
        w = next(p for p in (3, 5, 7, 11, 13, 17, 19, 23) if p >= k)
    bits = cauchy_bits(k) if code == "CRS" else liberation_bits(k, w)
    words = -(-block_bytes // (8 * w))
    packets = rng.integers(0, 1 << 63, (stripes, k * w, words), dtype=np.uint64)
    sums = np.zeros((stripes, 2 * w, words), dtype=np.uint64)
    # Pairs (parity packet, data packet) to add up, ordered by parity packet.
    steps = np.argwhere(bits).astype(np.int64)
    xor_kernel = _xor_kernel()

    def check_sums() -> bool:
        wanted = np.stack(
            [
                np.bitwise_xor.reduce(packets[:, np.flatnonzero(row)], axis=1)
                for row in bits
            ],
            axis=1,
        )
        return np.array_equal(sums, wanted)

    return lambda: xor_kernel(packets, sums, steps, stripes), check_sums


def measure_codes() -> dict[str, Any]:
    """Time the study's codes and ISA-L's Cauchy code on 32 stripes of 4 blocks of 1 KiB with two parities.

    Run it in an interpreter that does not vectorise, which `measure_codes_apart` starts.

    Returns
    -------
    dict
        ``seconds_per_stripe`` by code (``AVX2:CRS`` and ``AVX:CRS`` are ISA-L's AVX2 and AVX functions),
        ``ratio`` of each to ``AVX2:CRS``, and ``ratio_quartiles`` over the rounds. Every call works stripe by
        stripe, as the modelled system does.

    Raises
    ------
    ValueError
        If a parity is wrong.
    """
    k = 4
    block_bytes = 1024
    stripes = 32
    cases: dict[str, Case] = {}
    for code in CODES:
        encode, check = software_encoder(code, k, block_bytes, stripes)
        encode()
        if not check():
            raise ValueError(
                f"kernel: {code}: got wrong parity, so its time is meaningless"
            )
        cases[code] = Case(repeated(encode))
    parity = kernel_raw.coefficients(k, 2)
    for code, variant in (("AVX2:CRS", "avx2"), ("AVX:CRS", "avx")):
        sets = [
            (_buffers(k, block_bytes), _buffers(2, block_bytes)) for _ in range(stripes)
        ]
        cases[code] = Case(
            kernel_raw.RawKernel(parity, variant).loop(sets), each=stripes
        )
    for case in cases.values():
        case.settle(0.002)
    sample(cases.values(), 25)
    # One call of the scalar code is all stripes, one call of ISA-L is one stripe.
    times = {
        code: [second / (1 if case.each > 1 else stripes) for second in case.samples_s]
        for code, case in cases.items()
    }
    ratios = {
        code: np.divide(samples, times["AVX2:CRS"]) for code, samples in times.items()
    }
    return {
        "k": k,
        "block_bytes": block_bytes,
        "stripes": stripes,
        "seconds_per_stripe": {
            code: statistics.median(samples) for code, samples in times.items()
        },
        "ratio": {code: float(np.median(values)) for code, values in ratios.items()},
        "ratio_quartiles": {
            code: np.quantile(values, (0.25, 0.75)).tolist()
            for code, values in ratios.items()
        },
    }


def _buffers(count: int, size_bytes: int) -> list[Bytes]:
    return [kernel_raw.aligned(size_bytes) for _ in range(count)]


def measure_codes_apart() -> dict[str, Any]:
    """Run `measure_codes` in a fresh interpreter whose compiler does not vectorise."""
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "stripesim.calibration.kernels.software",
        "--plain",
    ]
    plain = {**os.environ, **_PLAIN}
    finished = subprocess.run(
        command, check=True, capture_output=True, text=True, env=plain
    )
    document: dict[str, Any] = json.loads(finished.stdout)
    return document


def main(arguments: Sequence[str]) -> None:
    """Measure, and print one JSON document."""
    plain = "--plain" in arguments
    timings = measure_codes() if plain else measure_codes_apart()
    sys.stdout.write(json_text(timings, is_ascii=True))


if __name__ == "__main__":
    main(sys.argv[1:])

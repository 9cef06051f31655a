"""Compute products, inverses and ranks over GF(2^8) in NumPy.

Products are table look-ups, so the code is readable rather than fast. It decides which shards of a linear
code suffice for decoding, and tests check the fast kernels against it.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, islice
from typing import Final

import numpy as np
import numpy.typing as npt

from stripesim.models.problems import UnavailableError

Bytes = npt.NDArray[np.uint8]

#: x^8 + x^4 + x^3 + x^2 + 1, the field polynomial of ISA-L, jerasure and liberasurecode for 8-bit words.
POLYNOMIAL: Final = 0x11D

# Patterns eliminated together: enough to hide interpreter overhead, few enough to stay in cache.
_BATCH: Final = 4096


def _tables() -> tuple[Bytes, Bytes, Bytes]:
    powers = np.zeros(255, dtype=np.uint8)
    logs = np.zeros(256, dtype=np.int64)
    power = 1
    for exponent in range(255):
        powers[exponent] = power
        logs[power] = exponent
        power = power << 1 ^ (POLYNOMIAL if power & 0x80 else 0)
    products = powers[(logs[:, None] + logs) % 255]
    products[0] = products[:, 0] = 0
    inverses = powers[-logs % 255]
    inverses[0] = 0
    for table in (powers, products, inverses):
        table.setflags(write=False)
    return powers, products, inverses


#: Powers of the generator 2, shape (255,). Products, shape (256, 256): row ``a`` multiplies by ``a``.
#: Inverses, shape (256,), with 0 as the inverse of 0.
POWERS, PRODUCTS, INVERSES = _tables()


def matrix_product(a: Bytes, b: Bytes) -> Bytes:
    """Return the matrix product over GF(2^8) of matrices of shape (rows, inner) and (inner, columns)."""
    result = np.zeros((a.shape[0], b.shape[1]), dtype=np.uint8)
    for inner in range(a.shape[1]):
        result ^= PRODUCTS[a[:, inner, None], b[inner]]
    return result


def invert(matrix: Bytes) -> Bytes:
    """Invert a square uint8 matrix over GF(2^8) by Gauss-Jordan elimination.

    Raises
    ------
    UnavailableError
        If the matrix is singular.
    """
    size = matrix.shape[0]
    work = np.concatenate([matrix, np.eye(size, dtype=np.uint8)], axis=1)
    for column in range(size):
        pivots = column + np.flatnonzero(work[column:, column])
        if pivots.size == 0:
            raise UnavailableError(
                f"GF(2^8) matrix of size {size}: got a singular matrix, wanted a regular one"
            )
        work[[column, pivots[0]]] = work[[pivots[0], column]]
        work[column] = PRODUCTS[INVERSES[work[column, column]], work[column]]
        factors = work[:, column].copy()
        factors[column] = 0
        work ^= PRODUCTS[factors[:, None], work[column]]
    return work[:, size:].copy()


def vandermonde_matrix(k: int, m: int) -> Bytes:
    """Return the generator matrix of ISA-L's ``gf_gen_rs_matrix``: an identity above a Vandermonde matrix.

    Parameters
    ----------
    k, m
        Numbers of data and parity shards. Their sum is at most 256.

    Returns
    -------
    Bytes
        uint8 of shape (k + m, k). Row r of the parity is ``(2^r)^j`` for column j.

    Notes
    -----
    Deviation from textbooks: an identity above a Vandermonde matrix is not maximum-distance-separable in
    general. Some square submatrices are singular if m exceeds 3 (k of 22 or more for m = 4, of 6 or more for
    m = 5), so some erasures of m shards cannot be decoded.

    References
    ----------
    Intel ISA-L, ``erasure_code/ec_base.c``; ``include/erasure_code.h``, note on ``gf_gen_rs_matrix``.
    """
    parity = POWERS[np.arange(m)[:, None] * np.arange(k) % 255]
    return np.concatenate([np.eye(k, dtype=np.uint8), parity])


def cauchy_matrix(k: int, m: int) -> Bytes:
    """Return the generator matrix of ISA-L's ``gf_gen_cauchy1_matrix``: an identity above a Cauchy matrix.

    Parameters
    ----------
    k, m
        Numbers of data and parity shards. Their sum is at most 256.

    Returns
    -------
    Bytes
        uint8 of shape (k + m, k). The parity in row i and column j is ``1 / (i xor j)``, with i from k to
        k + m - 1. Any k rows are independent.

    References
    ----------
    Intel ISA-L, ``erasure_code/ec_base.c``.
    """
    parity = INVERSES[np.arange(k, k + m)[:, None] ^ np.arange(k)]
    return np.concatenate([np.eye(k, dtype=np.uint8), parity])


def rank(matrix: Bytes) -> int:
    """Return the rank of a uint8 matrix over GF(2^8)."""
    work = matrix.copy()
    row = 0
    for column in range(work.shape[1]):
        pivots = row + np.flatnonzero(work[row:, column])
        if pivots.size == 0:
            continue
        work[[row, pivots[0]]] = work[[pivots[0], row]]
        pivot = PRODUCTS[INVERSES[work[row, column]], work[row]]
        work[row + 1 :] ^= PRODUCTS[work[row + 1 :, column, None], pivot]
        row += 1
    return row


def columns_independent(matrices: Bytes) -> npt.NDArray[np.bool_]:
    """Return True for each matrix of shape (count, rows, columns) whose columns are linearly independent."""
    work = matrices.copy()
    count, rows, columns = work.shape
    if columns > rows:
        return np.zeros(count, dtype=bool)
    ok = np.ones(count, dtype=bool)
    every = np.arange(count)
    for column in range(columns):
        below = work[:, column:, column] != 0
        ok &= below.any(axis=1)
        pivot = column + below.argmax(axis=1)
        swapped = work[every, pivot].copy()
        work[every, pivot] = work[:, column]
        work[:, column] = PRODUCTS[INVERSES[swapped[:, column]][:, None], swapped]
        # Rows above the diagonal are not used again, so clear only those below.
        factors = work[:, column + 1 :, column]
        work[:, column + 1 :] ^= PRODUCTS[factors[:, :, None], work[:, None, column]]
    return ok


def patterns_independent(matrix: Bytes, size: int) -> Iterator[npt.NDArray[np.bool_]]:
    """Yield in batches whether each combination of `size` columns is linearly independent."""
    patterns = combinations(range(matrix.shape[1]), size)
    while batch := list(islice(patterns, _BATCH)):
        indices = np.array(batch, dtype=np.int64).reshape(len(batch), size)
        yield columns_independent(matrix[:, indices].transpose(1, 0, 2))


def independent_rows(matrix: Bytes, order: Sequence[int], wanted: int) -> list[int]:
    """Return the first rows, in a given order, that are linearly independent of those before them.

    Parameters
    ----------
    matrix
        uint8 of shape (rows, columns).
    order
        Row indices in the order of preference.
    wanted
        Largest number of rows to return.
    """
    basis: list[tuple[int, Bytes]] = []
    taken: list[int] = []
    for row in order:
        if len(taken) == wanted:
            break
        rest = matrix[row].copy()
        for pivot, vector in basis:
            rest ^= PRODUCTS[rest[pivot], vector]
        nonzero = np.flatnonzero(rest)
        if nonzero.size:
            pivot = int(nonzero[0])
            basis.append((pivot, PRODUCTS[INVERSES[rest[pivot]], rest]))
            taken.append(row)
    return taken

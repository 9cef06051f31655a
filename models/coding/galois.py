"""Reed-Solomon over GF(2^8) in plain NumPy: the oracle the real kernels are checked against.

Readable, not fast: every product is a table look-up. No simulation calls it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from stripesim.models.coding.errors import DataLossError, SchemeError

Bytes = npt.NDArray[np.uint8]

#: x^8 + x^4 + x^3 + x^2 + 1, the field polynomial of ISA-L, jerasure and liberasurecode for 8-bit words.
POLYNOMIAL: Final = 0x11D
_ORDER: Final = 255


def _log_tables() -> tuple[Bytes, npt.NDArray[np.int64]]:
    """Powers of the generator 2, twice over so that a sum of two logarithms needs no modulo."""
    exp = np.zeros(2 * _ORDER, dtype=np.uint8)
    log = np.zeros(256, dtype=np.int64)
    power = 1
    for exponent in range(_ORDER):
        exp[exponent] = exp[exponent + _ORDER] = power
        log[power] = exponent
        power <<= 1
        if power & 0x100:
            power ^= POLYNOMIAL
    return exp, log


_EXP, _LOG = _log_tables()


def multiply(a: npt.ArrayLike, b: npt.ArrayLike) -> Bytes:
    """Product in GF(2^8), elementwise with broadcasting.

    Parameters
    ----------
    a, b : array_like of uint8
        Factors, of shapes that broadcast.

    Returns
    -------
    ndarray of uint8
        The products.

    Examples
    --------
    >>> int(multiply(0x80, 2)) == 0x1D
    True
    """
    a8, b8 = np.asarray(a, dtype=np.uint8), np.asarray(b, dtype=np.uint8)
    product = _EXP[_LOG[a8] + _LOG[b8]]
    return np.where((a8 == 0) | (b8 == 0), np.uint8(0), product)


def inverse(a: int) -> int:
    """Multiplicative inverse of ``a``, 1 to 255.

    Raises
    ------
    ZeroDivisionError
        For 0, which has none.
    """
    if a == 0:
        raise ZeroDivisionError("0 has no inverse in GF(2^8)")
    return int(_EXP[_ORDER - _LOG[a]])


def matrix_product(a: Bytes, b: Bytes) -> Bytes:
    """Matrix product over GF(2^8).

    Parameters
    ----------
    a : ndarray of uint8, shape (rows, inner)
        Left factor.
    b : ndarray of uint8, shape (inner, columns)
        Right factor.

    Returns
    -------
    ndarray of uint8, shape (rows, columns)
        Sums are exclusive-or.
    """
    result = np.zeros((a.shape[0], b.shape[1]), dtype=np.uint8)
    for inner in range(a.shape[1]):
        result ^= multiply(a[:, inner, None], b[None, inner, :])
    return result


def invert(matrix: Bytes) -> Bytes:
    """Inverse of a square matrix over GF(2^8) by Gauss-Jordan elimination.

    Parameters
    ----------
    matrix : ndarray of uint8, shape (n, n)
        The matrix; not changed.

    Returns
    -------
    ndarray of uint8, shape (n, n)
        Its inverse.

    Raises
    ------
    DataLossError
        If the matrix is singular: those shards do not determine the data.
    """
    size = matrix.shape[0]
    work = np.concatenate([matrix, np.eye(size, dtype=np.uint8)], axis=1).astype(np.uint8)
    for column in range(size):
        pivots = np.flatnonzero(work[column:, column])
        if pivots.size == 0:
            raise DataLossError(f"GF(2^8) matrix of size {size}: got a singular matrix, wanted a regular one")
        pivot = column + int(pivots[0])
        if pivot != column:
            work[[column, pivot]] = work[[pivot, column]]
        work[column] = multiply(work[column], inverse(int(work[column, column])))
        for row in range(size):
            if row != column and work[row, column]:
                work[row] ^= multiply(work[row, column], work[column])
    return work[:, size:].copy()


def vandermonde_matrix(k: int, m: int) -> Bytes:
    """Systematic generator whose parity row ``r`` is ``(2^r)^j``: the form of ISA-L's ``gf_gen_rs_matrix``.

    Parameters
    ----------
    k, m : int
        Data and parity shards, at least 1 each, at most 256 together.

    Returns
    -------
    ndarray of uint8, shape (k + m, k)
        The identity above the parity rows.

    Raises
    ------
    SchemeError
        If k or m is out of range.

    Notes
    -----
    Deviation from textbooks: an identity on top of a Vandermonde matrix is
    not maximum-distance-separable in general. Some square submatrices are
    singular once m exceeds 3 (m = 4 from k = 22 on, m = 5 from k = 6 on),
    so some erasures of m shards cannot be decoded.

    References
    ----------
    Intel ISA-L, ``erasure_code/ec_base.c``; ``include/erasure_code.h``, note on ``gf_gen_rs_matrix``.
    """
    _check_shape(k, m)
    rows = np.arange(m)[:, None]
    columns = np.arange(k)[None, :]
    parity = _EXP[(rows * columns) % _ORDER]
    return np.concatenate([np.eye(k, dtype=np.uint8), parity]).astype(np.uint8)


def cauchy_matrix(k: int, m: int) -> Bytes:
    """Systematic generator whose parity is ``1 / (i xor j)``: the form of ISA-L's ``gf_gen_cauchy1_matrix``.

    Parameters
    ----------
    k, m : int
        Data and parity shards, at least 1 each, at most 256 together.

    Returns
    -------
    ndarray of uint8, shape (k + m, k)
        The identity above the parity rows, row i running from k to k + m - 1. Every k rows are independent.

    Raises
    ------
    SchemeError
        If k or m is out of range.

    References
    ----------
    Intel ISA-L, ``erasure_code/ec_base.c``.
    """
    _check_shape(k, m)
    rows = np.arange(k, k + m)[:, None]
    columns = np.arange(k)[None, :]
    parity = _EXP[_ORDER - _LOG[rows ^ columns]]
    return np.concatenate([np.eye(k, dtype=np.uint8), parity]).astype(np.uint8)


class GaloisCode:
    """A systematic code given by its generator matrix.

    Parameters
    ----------
    k, m : int
        Data and parity shards.
    form : {"vandermonde", "cauchy"}
        Which generator.

    Examples
    --------
    >>> code = GaloisCode(k=4, m=2, form="cauchy")
    >>> data = np.arange(32, dtype=np.uint8).reshape(4, 8)
    >>> shards = dict(enumerate(code.encode(data)))
    >>> del shards[0], shards[5]
    >>> bool((code.decode(shards) == data).all())
    True
    """

    def __init__(self, *, k: int, m: int, form: Literal["vandermonde", "cauchy"]) -> None:
        if form not in {"vandermonde", "cauchy"}:
            raise SchemeError(f"GF(2^8) code: form: got {form!r}, wanted 'vandermonde' or 'cauchy'")
        self.k = k
        self.m = m
        self.matrix = vandermonde_matrix(k, m) if form == "vandermonde" else cauchy_matrix(k, m)

    def encode(self, data: Bytes) -> Bytes:
        """All shards of these data chunks.

        Parameters
        ----------
        data : ndarray of uint8, shape (k, chunk)
            A chunk per row.

        Returns
        -------
        ndarray of uint8, shape (k + m, chunk)
            Data first, then parity.

        Raises
        ------
        SchemeError
            If there are not k rows.
        """
        if data.ndim != 2 or data.shape[0] != self.k:
            raise SchemeError(f"GF(2^8) encode: shape: got {data.shape}, wanted ({self.k}, chunk)")
        return np.concatenate([data, matrix_product(self.matrix[self.k :], data)])

    def decode(self, shards: Mapping[int, Bytes]) -> Bytes:
        """The data chunks, from the first k shards given.

        Parameters
        ----------
        shards : mapping of int to ndarray of uint8, shape (chunk,)
            What is left, by shard index.

        Returns
        -------
        ndarray of uint8, shape (k, chunk)
            The data.

        Raises
        ------
        DataLossError
            If fewer than k shards are given, or their rows are dependent.
        """
        chosen = sorted(shards)[: self.k]
        if len(chosen) < self.k:
            raise DataLossError(f"GF(2^8) decode: got {len(chosen)} shards, wanted at least {self.k}")
        chunks = np.stack([shards[index] for index in chosen])
        return matrix_product(invert(self.matrix[chosen]), chunks)

    def reconstruct(self, shards: Mapping[int, Bytes], index: int) -> Bytes:
        """One shard, data or parity, from the first k given.

        Parameters
        ----------
        shards : mapping of int to ndarray of uint8, shape (chunk,)
            What is left, by shard index.
        index : int
            The shard to rebuild, 0 to k + m - 1.

        Returns
        -------
        ndarray of uint8, shape (chunk,)
            The shard.

        Raises
        ------
        DataLossError
            As `decode`.
        SchemeError
            If there is no such shard.
        """
        if not 0 <= index < self.k + self.m:
            raise SchemeError(f"GF(2^8) reconstruct: index: got {index}, wanted 0 to {self.k + self.m - 1}")
        row: Bytes = matrix_product(self.matrix[index : index + 1], self.decode(shards))[0]
        return row


def _check_shape(k: int, m: int) -> None:
    if k < 1 or m < 1 or k + m > 256:
        raise SchemeError(
            f"GF(2^8) matrix: got k = {k}, m = {m}, wanted both at least 1 and k + m at most 256"
        )

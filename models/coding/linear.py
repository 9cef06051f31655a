"""Rank over GF(2^8): which shards of a linear code suffice, one pattern at a time or many at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, islice

import numpy as np
import numpy.typing as npt

from stripesim.models.coding.galois import Bytes, inverse, multiply

# Patterns eliminated together: enough to hide the interpreter, few enough to stay in the cache.
_BATCH = 4096


@cache
def product_table() -> Bytes:
    """All products of the field, shape (256, 256): row ``a`` multiplies by ``a``."""
    numbers = np.arange(256, dtype=np.uint8)
    table = multiply(numbers[:, None], numbers[None, :])
    table.setflags(write=False)
    return table


@cache
def _inverse_table() -> Bytes:
    return np.array([0, *(inverse(a) for a in range(1, 256))], dtype=np.uint8)


def columns_independent(matrices: Bytes) -> npt.NDArray[np.bool_]:
    """Whether the columns of each matrix are linearly independent.

    Parameters
    ----------
    matrices : ndarray of uint8, shape (count, rows, columns)
        The matrices; not changed.

    Returns
    -------
    ndarray of bool, shape (count,)
        True where the rank equals the number of columns.

    Notes
    -----
    Gaussian elimination of all matrices side by side. A matrix that has no pivot in some column is
    out; the others go on.
    """
    work = matrices.copy()
    count, rows, columns = work.shape
    if columns > rows:
        return np.zeros(count, dtype=bool)
    products, inverses = product_table(), _inverse_table()
    ok = np.ones(count, dtype=bool)
    every = np.arange(count)
    for column in range(columns):
        below = work[:, column:, column] != 0
        ok &= below.any(axis=1)
        pivot = column + below.argmax(axis=1)
        swapped = work[every, pivot].copy()
        work[every, pivot] = work[:, column]
        work[:, column] = products[inverses[swapped[:, column]][:, None], swapped]
        # A row above the diagonal is never looked at again, so only those below are cleared.
        factors = work[:, column + 1 :, column]
        work[:, column + 1 :] ^= products[factors[:, :, None], work[:, None, column]]
    return ok


def patterns_independent(matrix: Bytes, size: int) -> Iterator[npt.NDArray[np.bool_]]:
    """Whether the columns of each pattern of so many columns are independent, batch by batch.

    Parameters
    ----------
    matrix : ndarray of uint8, shape (rows, columns)
        For a parity-check matrix a pattern stands for erased shards, and independence says that they
        can be recovered.
    size : int
        Columns in a pattern.

    Yields
    ------
    ndarray of bool, shape (at most 4096,)
        In the order of `itertools.combinations`.
    """
    patterns = combinations(range(matrix.shape[1]), size)
    while batch := list(islice(patterns, _BATCH)):
        chosen = np.array(batch, dtype=np.int64).reshape(len(batch), size)
        yield columns_independent(matrix[:, chosen].transpose(1, 0, 2))


def independent_rows(matrix: Bytes, order: Sequence[int], wanted: int) -> list[int]:
    """The first rows in a given order that are independent of those before them.

    Parameters
    ----------
    matrix : ndarray of uint8, shape (rows, columns)
        A generator matrix: a row for each shard.
    order : sequence of int
        Rows that may be taken, the most expensive last.
    wanted : int
        Rows after which to stop.

    Returns
    -------
    list of int
        At most that many rows, in the order taken.
    """
    products = product_table()
    basis: list[tuple[int, Bytes]] = []
    taken: list[int] = []
    for row in order:
        if len(taken) == wanted:
            break
        rest = matrix[row].copy()
        for pivot, vector in basis:
            rest ^= products[rest[pivot], vector]
        nonzero = np.flatnonzero(rest)
        if nonzero.size:
            pivot = int(nonzero[0])
            basis.append((pivot, products[inverse(int(rest[pivot])), rest]))
            taken.append(row)
    return taken

"""The GF(2^8) oracle against the field's laws and known values."""

import itertools
import math

import numpy as np
import pytest

from stripesim.models.coding import DataLossError, SchemeError
from stripesim.models.coding.galois import (
    GaloisCode,
    cauchy_matrix,
    inverse,
    invert,
    matrix_product,
    multiply,
    vandermonde_matrix,
)


def carryless_product(a: int, b: int) -> int:
    """Schoolbook polynomial product modulo 0x11d, apart from any table."""
    product = 0
    for bit in range(8):
        if b >> bit & 1:
            product ^= a << bit
    for bit in range(15, 7, -1):
        if product >> bit & 1:
            product ^= 0x11D << (bit - 8)
    return product


def test_products_equal_schoolbook_multiplication_for_all_pairs() -> None:
    a = np.arange(256, dtype=np.uint8)
    table = multiply(a[:, None], a[None, :])
    wanted = [[carryless_product(x, y) for y in range(256)] for x in range(256)]
    assert np.array_equal(table, np.array(wanted, dtype=np.uint8))


def test_every_element_but_zero_has_an_inverse() -> None:
    assert all(int(multiply(a, inverse(a))) == 1 for a in range(1, 256))
    with pytest.raises(ZeroDivisionError):
        inverse(0)


def test_matrices_by_hand() -> None:
    # Row r of the Vandermonde parity is (2^r)^j: 1 1 1, then 1 2 4, then 1 4 16.
    assert vandermonde_matrix(3, 3)[3:].tolist() == [[1, 1, 1], [1, 2, 4], [1, 4, 16]]
    parity = cauchy_matrix(3, 2)[3:]
    assert [[carryless_product(int(parity[i, j]), (3 + i) ^ j) for j in range(3)] for i in range(2)] == [
        [1, 1, 1],
        [1, 1, 1],
    ]


def test_inverse_of_a_matrix() -> None:
    matrix = cauchy_matrix(5, 4)[[1, 5, 3, 8, 6]]
    assert np.array_equal(matrix_product(invert(matrix), matrix), np.eye(5, dtype=np.uint8))
    with pytest.raises(DataLossError, match="singular"):
        invert(np.array([[1, 2], [1, 2]], dtype=np.uint8))


@pytest.mark.parametrize("form", ["vandermonde", "cauchy"])
def test_every_erasure_of_a_small_code_decodes_and_reconstructs(form: str) -> None:
    code = GaloisCode(k=5, m=3, form=form)  # type: ignore[arg-type]
    data = np.random.default_rng(1).integers(0, 256, (5, 40), dtype=np.uint8)
    shards = code.encode(data)
    for lost in itertools.combinations(range(8), 3):
        left = {index: shards[index] for index in range(8) if index not in lost}
        assert np.array_equal(code.decode(left), data)
        for index in lost:
            assert np.array_equal(code.reconstruct(left, index), shards[index])


def singular_erasures(k: int, m: int) -> list[tuple[int, ...]]:
    matrix = vandermonde_matrix(k, m)
    found = []
    for lost in itertools.combinations(range(k + m), m):
        try:
            invert(matrix[[row for row in range(k + m) if row not in lost]])
        except DataLossError:
            found.append(lost)
    return found


def test_isa_l_vandermonde_form_is_unsafe_where_the_codec_refuses_it() -> None:
    assert (0, 2, 5, 7, 8) in singular_erasures(6, 5)
    matrix = vandermonde_matrix(22, 4)
    with pytest.raises(DataLossError):
        invert(matrix[[row for row in range(26) if row not in {0, 10, 21, 24}]])
    for k, m in ((10, 4), (8, 4), (12, 3)):
        assert math.comb(k + m, m) <= 1001
        assert singular_erasures(k, m) == []


def test_bad_shapes_are_refused() -> None:
    with pytest.raises(SchemeError, match="k \\+ m at most 256"):
        cauchy_matrix(250, 7)
    with pytest.raises(SchemeError, match="form: got 'other'"):
        GaloisCode(k=2, m=1, form="other")  # type: ignore[arg-type]
    code = GaloisCode(k=2, m=1, form="cauchy")
    with pytest.raises(SchemeError, match=r"wanted \(2, chunk\)"):
        code.encode(np.zeros((3, 4), dtype=np.uint8))
    with pytest.raises(DataLossError, match="got 1 shards, wanted at least 2"):
        code.decode({0: np.zeros(4, dtype=np.uint8)})
    with pytest.raises(SchemeError, match="index: got 3, wanted 0 to 2"):
        code.reconstruct({}, 3)

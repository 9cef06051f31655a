"""The GF(2^8) oracle against the field's laws and known values."""

import itertools
import math

import numpy as np
import pytest

from stripesim.models.coding.galois import (
    INVERSES,
    POWERS,
    PRODUCTS,
    cauchy_matrix,
    invert,
    matrix_product,
    vandermonde_matrix,
)
from stripesim.models.problems import UnavailableError


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
    wanted = [[carryless_product(x, y) for y in range(256)] for x in range(256)]
    assert np.array_equal(PRODUCTS, np.array(wanted, dtype=np.uint8))


def test_every_element_but_zero_has_an_inverse_and_is_a_power_of_two() -> None:
    assert all(carryless_product(a, int(INVERSES[a])) == 1 for a in range(1, 256))
    assert INVERSES[0] == 0
    assert sorted(POWERS.tolist()) == list(range(1, 256))
    assert all(carryless_product(int(a), 2) == b for a, b in itertools.pairwise(POWERS))


def test_matrices_by_hand() -> None:
    # Row r of the Vandermonde parity is (2^r)^j: 1 1 1, then 1 2 4, then 1 4 16.
    assert vandermonde_matrix(3, 3)[3:].tolist() == [[1, 1, 1], [1, 2, 4], [1, 4, 16]]
    parity = cauchy_matrix(3, 2)[3:]
    assert [
        [carryless_product(int(parity[i, j]), (3 + i) ^ j) for j in range(3)]
        for i in range(2)
    ] == [
        [1, 1, 1],
        [1, 1, 1],
    ]


def test_inverse_of_a_matrix() -> None:
    matrix = cauchy_matrix(5, 4)[[1, 5, 3, 8, 6]]
    assert np.array_equal(
        matrix_product(invert(matrix), matrix), np.eye(5, dtype=np.uint8)
    )
    with pytest.raises(UnavailableError, match="singular"):
        invert(np.array([[1, 2], [1, 2]], dtype=np.uint8))


@pytest.mark.parametrize("generator", [vandermonde_matrix(5, 3), cauchy_matrix(5, 3)])
def test_every_erasure_of_a_small_code_decodes(generator) -> None:
    data = np.random.default_rng(1).integers(0, 256, (5, 40), dtype=np.uint8)
    shards = matrix_product(generator, data)
    assert np.array_equal(shards[:5], data)
    for lost in itertools.combinations(range(8), 3):
        left = [index for index in range(8) if index not in lost]
        assert np.array_equal(
            matrix_product(invert(generator[left]), shards[left]), data
        )


def singular_erasures(k: int, m: int) -> list[tuple[int, ...]]:
    matrix = vandermonde_matrix(k, m)
    found = []
    for lost in itertools.combinations(range(k + m), m):
        try:
            invert(matrix[[row for row in range(k + m) if row not in lost]])
        except UnavailableError:
            found.append(lost)
    return found


def test_isa_l_vandermonde_form_is_unsafe_where_the_codec_refuses_it() -> None:
    assert (0, 2, 5, 7, 8) in singular_erasures(6, 5)
    matrix = vandermonde_matrix(22, 4)
    with pytest.raises(UnavailableError):
        invert(matrix[[row for row in range(26) if row not in {0, 10, 21, 24}]])
    for k, m in ((10, 4), (8, 4), (12, 3)):
        assert math.comb(k + m, m) <= 1001
        assert singular_erasures(k, m) == []

"""The fixed-point logarithm of straw2."""

import hashlib
import math

import numpy as np
import pytest

from stripesim.models.placement.crush.build import map_of_hosts
from stripesim.models.placement.crush.straw2_log import (
    EXCESS_AT,
    RIVAL_WEIGHT_MAX,
    USUAL_EXCESS,
    _coarse_log,
    _fine_log,
    straw2_log_table,
    straw2_rivals,
)

FINE_SHA256 = "56fecbea65b1d35d0d20f0327d783a870652a56356e9a5326b6ab16d6c31b6ca"
COARSE_SHA256 = "2c5d48357edc321c43ac43a2bf4caf715d767ad49b948a8729f140756c5d8f57"


def test_the_tables_are_the_released_ones():
    # SHA-256 of the 256 fine entries as little-endian 64-bit words, in libceph-common.so.2 of 16.2.15.
    fine = np.array([_fine_log(k) for k in range(256)], dtype="<u8").tobytes()
    assert hashlib.sha256(fine).hexdigest() == FINE_SHA256
    coarse = np.array([_coarse_log(k) for k in range(129)], dtype="<u8").tobytes()
    assert hashlib.sha256(coarse).hexdigest() == COARSE_SHA256


def test_it_is_a_logarithm_to_its_resolution():
    table = straw2_log_table()
    assert table.shape == (65536,)
    assert table[0] == -(2.0**48)
    assert np.all((table < 0) & (table == np.floor(table)))
    exact = np.log2(np.arange(1, 65537)) * 2.0**44 - 2.0**48
    # The fine table's index is cut to steps of 2**-15, its entries carry an excess, and the last coarse
    # entry stands 2**32 low: the error is at most their sum.
    step = 2.0**44 / math.log(2) / 2**15
    excess = max(USUAL_EXCESS, *EXCESS_AT.values()) / 16
    assert np.max(np.abs(table - exact)) < step + excess + 2**28
    # Sound to that error, it still orders hashes that lie 256 steps apart.
    assert np.all(table[256:] > table[:-256])


@pytest.mark.parametrize("weight", [1, 0x10000, RIVAL_WEIGHT_MAX])
def test_no_hash_below_the_rivals_of_the_highest_draws_as_high(weight):
    # A draw is the quotient of the logarithm and the weight, truncated towards 0: the lowest magnitude wins.
    magnitudes = -straw2_log_table().astype(np.int64) // weight
    least = np.minimum.accumulate(magnitudes)
    rivals = straw2_rivals().astype(np.int64)
    hashes = np.arange(65536)
    has_lower = rivals > 0
    assert (rivals <= hashes).all()
    assert (least[rivals[has_lower] - 1] > magnitudes[hashes[has_lower]]).all()
    # The search among rivals is short: on average they are fewer than two hashes.
    assert (hashes - rivals).mean() < 1


def test_items_of_one_weight_are_drawn_by_the_exact_quotients():
    # 3,000 hosts of one weight, with and without one more of another weight that never wins.
    even = map_of_hosts([(0x10000,)] * 3000)
    uneven = map_of_hosts([(0x10000,)] * 3000 + [(1,)])
    xs = np.arange(3000)
    assert (even.map_many("rep", xs, 3) == uneven.map_many("rep", xs, 3)).all()

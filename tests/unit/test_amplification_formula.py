"""Bytes that a coded object occupies: the published lower bound, exactly."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripesim.models.coding import parse_scheme
from stripesim.models.coding.amplification import padded_amplification, stored_bytes
from stripesim.models.problems import SchemeError

MIB = 1 << 20


def amplification(name, unit, size, **more):
    code = parse_scheme(name)
    return padded_amplification(code, code.geometry(unit), size, **more)


@pytest.mark.parametrize(
    ("name", "unit", "size", "expected"),
    [
        # The two rows derived from the source's object of 64 MiB and chunk of 4 MiB.
        ("rs:9,3", 4 * MIB, 64 * MIB, Fraction(3, 2)),
        ("rs:12,3", 4 * MIB, 64 * MIB, Fraction(15, 8)),
        # Whole stripes: n / k.
        ("rs:9,3", 4 * MIB, 72 * MIB, Fraction(4, 3)),
        ("rs:12,3", 4 * MIB, 96 * MIB, Fraction(5, 4)),
        # A chunk as large as the object: every shard holds one.
        ("rs:9,3", 64 * MIB, 64 * MIB, Fraction(12)),
        ("rs:9,3", 4096, 1, Fraction(12 * 4096)),
        ("rep:3", 4096, 1000, Fraction(3)),
    ],
)
def test_division_and_padding(name, unit, size, expected):
    assert amplification(name, unit, size) == expected


def test_clay_pads_to_its_sub_chunks_as_well():
    # 81 sub-chunks of a multiple of 32 bytes: 4096 becomes 5184.
    code = parse_scheme("clay:9,3,11")
    assert stored_bytes(code, code.geometry(4096), 9 * 5184) == 12 * 5184


def test_the_store_rounds_each_shard_up():
    assert amplification("rs:2,1", 512, 1024, min_alloc_bytes=4096) == Fraction(
        3 * 4096, 1024
    )


@given(
    k=st.integers(1, 16),
    m=st.integers(1, 6),
    unit=st.integers(1, 1 << 20),
    size=st.integers(1, 1 << 26),
)
def test_never_below_n_over_k_and_less_than_one_stripe_above(k, m, unit, size):
    code = parse_scheme(f"rs:{k},{m}")
    stored = stored_bytes(code, code.geometry(unit), size)
    assert Fraction(stored, size) >= Fraction(k + m, k)
    assert stored - Fraction((k + m) * size, k) < (k + m) * unit


@pytest.mark.parametrize(
    ("size", "unit", "says"),
    [(0, 1, "object_bytes: got 0"), (1, 0, "min_alloc_bytes: got 0")],
)
def test_wrong_sizes_are_refused(size, unit, says):
    code = parse_scheme("rs:2,1")
    with pytest.raises(SchemeError, match=says):
        stored_bytes(code, code.geometry(4096), size, min_alloc_bytes=unit)

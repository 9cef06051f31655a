"""Costs of a shard's write and read in its store, counted by hand."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripesim.models.object_store.store import ObjectStoreModel
from stripesim.models.provenance import Provenance

KIB = 1024
ZERO = {
    field.name: 0 for field in fields(ObjectStoreModel) if field.name != "provenance"
}


def store(unit_bytes=4096, metadata_bytes=0):
    numbers = {**ZERO, "min_alloc_bytes": unit_bytes, "metadata_bytes": metadata_bytes}
    return ObjectStoreModel(
        **numbers, provenance=dict.fromkeys(numbers, Provenance("assumed", "a test"))
    )


def io(offset, length, existing):
    found = store().write_io(offset, length, existing_bytes=existing)
    return found.read_bytes, found.data_bytes, found.log_bytes, found.deferred_bytes


@pytest.mark.parametrize(
    ("what", "offset", "length", "existing", "expected"),
    [
        (
            "1 KiB over existing data: 3 KiB of padding read, the unit deferred",
            0,
            KIB,
            8 * KIB,
            (3, 0, 4, 4),
        ),
        ("1 KiB inside the unit", KIB, KIB, 8 * KIB, (3, 0, 4, 4)),
        ("one whole unit", 4 * KIB, 4 * KIB, 8 * KIB, (0, 4, 0, 0)),
        ("many whole units", 0, 16 * KIB, 16 * KIB, (0, 16, 0, 0)),
        ("1 KiB on new space: padded with zeros", 8 * KIB, KIB, 8 * KIB, (0, 4, 0, 0)),
        ("1 KiB into an empty shard", 0, KIB, 0, (0, 4, 0, 0)),
        ("spanning two units, each in part", 3 * KIB, 2 * KIB, 8 * KIB, (6, 0, 8, 8)),
        ("a partial head, two whole units", 3 * KIB, 9 * KIB, 16 * KIB, (3, 8, 4, 4)),
        ("two whole units, a partial tail", 0, 9 * KIB, 16 * KIB, (3, 8, 4, 4)),
        (
            "both ends partial, one whole between",
            3 * KIB,
            6 * KIB,
            16 * KIB,
            (6, 4, 8, 8),
        ),
        (
            "the head over existing data, the tail on new space",
            3 * KIB,
            2 * KIB,
            4 * KIB,
            (3, 4, 4, 4),
        ),
    ],
)
def test_write(what, offset, length, existing, expected):
    assert io(offset, length, existing) == tuple(number * KIB for number in expected), (
        what
    )


def test_metadata_is_logged_once_per_transaction_with_or_without_data():
    plain, found = store(), store(metadata_bytes=700)
    for extent in ((0, KIB), (0, 4 * KIB), (0, 0)):
        before = plain.write_io(*extent, existing_bytes=8 * KIB)
        after = found.write_io(*extent, existing_bytes=8 * KIB)
        assert after.log_bytes == before.log_bytes + 700
        assert (after.read_bytes, after.data_bytes, after.deferred_bytes) == (
            before.read_bytes,
            before.data_bytes,
            before.deferred_bytes,
        )


@given(
    offset=st.integers(0, 40_000),
    length=st.integers(1, 40_000),
    existing=st.integers(0, 80_000),
    unit=st.sampled_from([512, 4096, 16384]),
)
def test_writes_cover_whole_units_once(offset, length, existing, unit):
    found = store(unit).write_io(offset, length, existing_bytes=existing)
    touched = -(-(offset + length) // unit) - offset // unit
    # Each unit touched is written once in place, directly or deferred.
    assert found.data_bytes + found.deferred_bytes == touched * unit
    # Deferred data is logged in full, and the part not covered by the write is padding.
    assert found.log_bytes == found.deferred_bytes
    assert found.deferred_bytes in (0, unit, 2 * unit)
    assert 0 <= found.read_bytes < max(1, found.deferred_bytes)


@given(
    offset=st.integers(0, 40_000),
    length=st.integers(0, 40_000),
    unit=st.sampled_from([512, 4096]),
)
def test_reads_are_the_whole_units_that_an_extent_touches(offset, length, unit):
    units = (
        {
            byte // unit
            for byte in (*range(offset, offset + length, unit), offset + length - 1)
        }
        if length
        else set()
    )
    assert store(unit).read_bytes(offset, length) == len(units) * unit


@pytest.mark.parametrize("name", list(ZERO))
def test_refuses_wrong_numbers(name):
    numbers = {**ZERO, "min_alloc_bytes": 4096, name: -1}
    with pytest.raises(
        ValueError,
        match=f"^ObjectStoreModel: {name}: got -1,",
    ):
        ObjectStoreModel(
            **numbers,
            provenance=dict.fromkeys(numbers, Provenance("assumed", "a test")),
        )

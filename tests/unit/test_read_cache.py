"""Contents of the read caches, and object sizes in the order of issue."""

from collections import OrderedDict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stripesim.sim.ceph.kinds.caches import ObjectSizes, ReadCache


def test_a_read_fills_and_a_write_drops():
    cache = ReadCache(100)
    assert cache.read(0, 4) == (0, 0)
    assert cache.read(0, 4) == (4, 0)
    cache.drop(1, 2)
    assert cache.read(0, 4) == (1, 2)
    assert cache.read(0, 4) == (4, 0)


def test_head_and_tail_are_cached_and_the_middle_is_read_again():
    cache = ReadCache(100)
    cache.read(0, 2)
    cache.read(5, 6)
    cache.read(8, 10)
    # 0 1 . . . 5 . . 8 9: two at the head, two at the tail, and 5 in the middle.
    assert cache.read(0, 10) == (2, 2)
    assert cache.read(0, 10) == (10, 0)


def test_the_least_recently_used_goes_first():
    cache = ReadCache(3)
    for granule in (1, 2, 3):
        cache.read(granule, granule + 1)
    cache.read(1, 2)
    cache.read(4, 5)
    assert [cache.read(granule, granule + 1)[0] for granule in (1, 3, 4)] == [1, 1, 1]
    assert cache.read(2, 3) == (0, 0)


def test_a_read_larger_than_the_cache_leaves_its_end():
    cache = ReadCache(4)
    cache.read(0, 10)
    assert cache.read(6, 10) == (4, 0)
    assert cache.read(0, 1) == (0, 0)


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 30), st.integers(1, 6)), max_size=60
    ),
    st.integers(1, 12),
)
def test_agrees_with_a_plain_model(operations, capacity):
    cache, held = ReadCache(capacity), OrderedDict()
    for is_read, first, count in operations:
        granules = range(first, first + count)
        if not is_read:
            cache.drop(first, first + count)
            for granule in granules:
                held.pop(granule, None)
            continue
        known = [granule in held for granule in granules]
        head, tail = cache.read(first, first + count)
        assert known[:head] == [True] * head and known[count - tail :] == [True] * tail
        assert head + tail <= count
        if not all(known):
            assert not known[head] and not known[count - tail - 1]
        for granule in granules:
            held[granule] = None
            held.move_to_end(granule)
        while len(held) > capacity:
            held.popitem(last=False)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 5), st.integers(0, 50), st.integers(1, 20), st.booleans()
        ),
        max_size=60,
    ),
    st.integers(1, 7),
)
def test_sizes_are_those_of_a_loop_over_the_writes(requests, chunk):
    expected, sizes = [], {}
    for key, start, length, is_write in requests:
        expected.append(sizes.get(key, 0))
        if is_write:
            sizes[key] = max(sizes.get(key, 0), start + length)
    known, found = ObjectSizes(), []
    for at in range(0, len(requests), chunk):
        part = requests[at : at + chunk]
        keys, starts, lengths, writes = (
            np.array(column) for column in zip(*part, strict=True)
        )
        ends = np.where(writes, starts + lengths, 0)
        found += known.before(keys, ends).tolist()
    assert found == expected
    keys = np.arange(6)
    left = known.before(keys, np.zeros(6, dtype=np.int64))
    assert left.tolist() == [sizes.get(key, 0) for key in keys.tolist()]

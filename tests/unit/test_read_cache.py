"""Contents of the read caches, and object sizes in the order of issue."""

from collections import OrderedDict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stripesim.sim.ceph.kinds.caches import (
    CachedStripes,
    DiskHeads,
    ObjectSizes,
    ReadCache,
)
from stripesim.sim.ceph.kinds.requests import ObjectRequests

KIB = 1024


def requests_of(*rows):
    """Return requests of rows (kind, group, first KiB, KiB), each to the object of its group."""
    kinds, groups, firsts, lengths = zip(*rows, strict=True)
    groups = np.array(groups, dtype=np.int64)
    return ObjectRequests(
        is_write=np.array([kind == "write" for kind in kinds]),
        objects=groups,
        groups=groups,
        offsets_bytes=np.array(firsts, dtype=np.int64) * KIB,
        lengths_bytes=np.array(lengths, dtype=np.int64) * KIB,
        sizes_bytes=np.full(len(rows), 4096 * KIB),
    )


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


def test_a_write_reads_a_stripe_unless_all_of_it_is_held():
    # Given stripes of four blocks of 4 KiB
    stripes = CachedStripes(ReadCache(100), 4 * KIB, 1024, stripe_bytes=16 * KIB)
    heads, tails = stripes.ends_of(
        requests_of(
            ("read", 0, 0, 12),
            # Of this stripe, three blocks are held. The write drops them all.
            ("write", 0, 0, 4),
            ("read", 0, 16, 32),
            # Both of these are held, and each is read for the sake of its other half.
            ("write", 0, 24, 16),
            ("read", 0, 64, 16),
            # The last block of a stripe that is held: there is one stripe to read, at the head.
            ("write", 0, 72, 4),
        )
    )
    assert heads.tolist() == [0, 0, 0, 1, 0, 1]
    assert tails.tolist() == [0, 0, 0, 1, 0, 0]


def test_a_request_continues_only_if_all_of_its_disks_are_where_it_begins():
    heads = DiskHeads(np.array([[0, 1], [0, 2]]), reads_one=False)
    followed = heads.follow(
        requests_of(
            ("write", 0, 0, 4),
            ("write", 0, 4, 4),
            # Disk 0 leaves the object of group 0, disk 1 stays there.
            ("write", 1, 0, 4),
            ("write", 0, 8, 4),
        )
    )
    assert followed == [False, True, False, False]


def test_a_read_of_one_copy_leaves_the_other_disks_where_they_are():
    heads = DiskHeads(np.array([[0, 1], [2, 1]]), reads_one=True)
    followed = heads.follow(
        requests_of(
            ("write", 0, 0, 4),
            ("read", 1, 0, 4),
            # Disk 1 is still at the end of the first write.
            ("write", 0, 4, 4),
        )
    )
    assert followed == [False, False, True]

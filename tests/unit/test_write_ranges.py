"""The pages and stripes that writes claim while they are in flight, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from stripesim.models.coding import EcPolicy
from stripesim.sim.ceph.kinds import ObjectRequests, kind_of
from stripesim.sim.ceph.paths.optimised import ROWS
from stripesim.sim.ceph.paths.pipeline import WRITTEN

KIB = 1024
OBJECT = 4 << 20


def write(offset_bytes, length_bytes, size_bytes=OBJECT):
    zero = np.zeros(1, dtype=np.int64)
    return ObjectRequests(
        is_write=zero == 0,
        objects=zero,
        groups=zero,
        offsets_bytes=zero + offset_bytes,
        lengths_bytes=zero + length_bytes,
        sizes_bytes=zero + size_bytes,
    )


def pipelined(models, **parts):
    return replace(models, pg_lock=replace(models.pg_lock, scope="dispatch"), **parts)


@pytest.mark.parametrize(
    ("start_kib", "end_kib", "pages"),
    # RS(4,2) with chunks of 16 KiB: four pages, in stripes of 64 KiB. Chunk 5 is on shard 1 again.
    [
        pytest.param(20, 24, (1, 2), id="second page of chunk 1"),
        pytest.param(24, 36, (0, 4), id="end of chunk 1, begin of chunk 2"),
        pytest.param(56, 64, (2, 4), id="end of chunk 3"),
        pytest.param(56, 68, (2, 5), id="end of chunk 3, begin of chunk 4"),
        pytest.param(56, 84, (2, 8), id="end of chunk 3, chunk 4, begin of chunk 5"),
        pytest.param(40, 68, (0, 5), id="end of chunk 2, chunk 3, begin of chunk 4"),
    ],
)
def test_a_write_to_an_optimised_pool_claims_the_pages_that_it_changes_on_any_shard(
    models, make_pool, start_kib, end_kib, pages
):
    fast = pipelined(models, ec=EcPolicy(writes="shards", reads="pages"))
    kind = kind_of(make_pool(fast, "rs:4,2", unit_bytes=16 * KIB))
    ranges = kind.key_ranges(write(start_kib * KIB, (end_kib - start_kib) * KIB))
    assert tuple(ranges[0, ROWS]) == pages


@pytest.mark.parametrize(
    ("size_kib", "stripes"),
    # RS(4,2) with chunks of 4 KiB: the write is in stripe 3. Beyond the object, zeros fill those before it.
    [(4096, (3, 4)), (48, (3, 4)), (40, (3, 4)), (16, (1, 4)), (0, (0, 4))],
)
def test_a_write_beyond_the_end_claims_the_stripes_that_it_fills(
    models, make_pool, size_kib, stripes
):
    kind = kind_of(make_pool(pipelined(models), "rs:4,2", unit_bytes=4 * KIB))
    ranges = kind.key_ranges(write(52 * KIB, 4 * KIB, size_kib * KIB))
    assert tuple(ranges[0, WRITTEN]) == stripes

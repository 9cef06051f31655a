"""Pages that primaries of optimised pools keep, and the columns that classic pools of Tentacle read."""

from dataclasses import replace

import numpy as np

from stripesim.models.coding import EcPolicy, parse_scheme
from stripesim.models.coding.optimised.extent_cache import ExtentCacheModel
from stripesim.models.generations import generation
from stripesim.models.provenance import Provenance
from stripesim.sim.ceph.kinds import ObjectRequests, kind_of
from stripesim.sim.ceph.kinds.pages import PageCache

KIB = 1024
OBJECT = 4 << 20
FAST = EcPolicy(writes="shards", reads="pages")


def cache_of(size_bytes):
    sources = {"bytes_per_op_shard": Provenance("given", "a test")}
    return ExtentCacheModel(bytes_per_op_shard=size_bytes, provenance=sources)


def writes_to(offsets_bytes, length_bytes=4 * KIB):
    offsets = np.array(offsets_bytes, dtype=np.int64)
    zeros = np.zeros_like(offsets)
    return ObjectRequests(
        is_write=zeros == 0,
        objects=zeros,
        groups=zeros,
        offsets_bytes=offsets,
        lengths_bytes=zeros + length_bytes,
        sizes_bytes=zeros + OBJECT,
    )


def planned_reads(make_pool, models, offsets_bytes, cache_bytes=1 << 20):
    """Return the shards and pages that each write still reads."""
    models = replace(
        models,
        ec=FAST,
        extent_cache=cache_of(cache_bytes),
        pg_lock=replace(models.pg_lock, scope="dispatch"),
    )
    kind = kind_of(make_pool(models, "rs:6,3", unit_bytes=16 * KIB))
    requests = writes_to(offsets_bytes)
    memory = kind.memory(requests_in_flight=1, prefilled=True)
    context = kind.pool.contexts[0]
    reads = []
    columns = kind.shapes(requests, memory.ends_of(requests))
    for fields in zip(*columns, strict=True):
        offset_bytes, held = fields[1], kind._held[fields[4]]
        plan = context.plan_write(
            offset_bytes=offset_bytes,
            length_bytes=4 * KIB,
            object_size_bytes=OBJECT,
        )
        wanted = {(e.shard, e.offset_bytes // (4 * KIB)) for e in plan.reads}
        reads.append(sorted(wanted - held))
    return reads


def test_a_page_is_read_once(make_pool, models):
    # 4 KiB on shard 0, again, then beside it on shard 1: a delta needs the old page and the three parities.
    reads = planned_reads(make_pool, models, [0, 0, 16 * KIB])
    assert reads == [[(0, 0), (6, 0), (7, 0), (8, 0)], [], [(1, 0)]]


def test_the_oldest_line_makes_room(make_pool, models):
    # Each write leaves four pages. Two lines of 32 KiB a shard are 192 KiB of the object apart.
    offsets = [0, 192 * KIB, 0]
    reads = planned_reads(make_pool, models, offsets, cache_bytes=4 * 4 * KIB)
    assert [len(pages) for pages in reads] == [4, 4, 4]
    reads = planned_reads(make_pool, models, offsets, cache_bytes=8 * 4 * KIB)
    assert [len(pages) for pages in reads] == [4, 4, 0]


def test_lines_of_one_queue_do_not_push_out_those_of_another():
    cache = PageCache(cache_of(8 * KIB))
    cache.add(0, (0, 0), 0b11)
    cache.add(1, (0, 1), 0b11)
    assert cache.held(0, (0, 0)) == 0b11
    cache.add(0, (0, 2), 0b1)
    assert cache.held(0, (0, 0)) == 0
    assert cache.held(1, (0, 1)) == 0b11


def test_a_classic_read_across_two_stripes_reads_its_shards_in_both():
    # RS(6,3) with 4 KiB: bytes 16 to 32 KiB are chunks 4 and 5 of one stripe and 0 and 1 of the next.
    code = parse_scheme("rs:6,3")
    policy = generation("tentacle").classic_ec
    plan = code.plan_read(
        offset_bytes=16 * KIB,
        length_bytes=16 * KIB,
        object_size_bytes=OBJECT,
        geometry=code.geometry(4 * KIB),
        policy=policy,
    )
    assert {extent.shard for extent in plan.reads} == {0, 1, 4, 5}
    assert {extent.length_bytes for extent in plan.reads} == {8 * KIB}
    assert generation("squid").classic_ec.reads == "stripes"

"""The read: one replica, or a gather of the shards that the plan names; decode where shards are missing."""

from typing import Unpack

from stripesim.models.coding import PAGE_BYTES, ReadPlan
from stripesim.sim.ceph.paths.context import (
    ObjectExtent,
    PathContext,
    by_shard,
    total_bytes,
)
from stripesim.sim.ceph.paths.stage import Stage
from stripesim.sim.ceph.paths.store import decoding_ns, gather, local_read
from stripesim.sim.engine.graph import GraphBuilder, Template


def read_path(
    context: PathContext,
    *,
    cached_head_bytes: int = 0,
    cached_tail_bytes: int = 0,
    **extent: Unpack[ObjectExtent],
) -> Template:
    """Compile one read.

    `cached_head_bytes` and `cached_tail_bytes` are what the read cache of each source holds of the
    beginning and the end of what it is asked for.

    A replica's read is synchronous: thread and lock are held during the device read. A
    stripe is gathered at the primary from k shards; with `scope = "commit"` the lock is
    held until all of it is there, otherwise only while the primary dispatches.
    """
    plan = context.plan_read(**extent)
    graph = GraphBuilder(
        f"read {context.name} {extent['length_bytes']} B at {extent['offset_bytes']}"
    )
    stage = Stage(graph, context)
    step = stage.lock(stage.request(0, plan.returned_bytes))
    cached = {
        "cached_head_bytes": cached_head_bytes,
        "cached_tail_bytes": cached_tail_bytes,
    }
    if context.erasure:
        step = _gather(stage, plan, device_reads(context, **cached, **extent), step)
    else:
        step = _replica(stage, plan, sum(cached.values()), step)
    return graph.finish(reply=stage.reply(plan.returned_bytes, step))


def _replica(stage: Stage, plan: ReadPlan, cached_bytes: int, after: int) -> int:
    """Serve from the primary's own copy; return the step after which the reply goes out."""
    cpu = stage.models.cpu
    store = stage.models.store
    device_bytes = sum(
        store.read_bytes(e.offset_bytes, e.length_bytes) for e in plan.reads
    )
    device_bytes = max(0, device_bytes - cached_bytes)
    work_ns = cpu.op_prepare_ns + cpu.store_read_ns
    primary = stage.context.primary
    answered, back = local_read(
        stage, primary, work_ns, device_bytes, after, "read", in_group=True
    )
    unlocked = stage.unlock(back)
    if answered == back:
        return unlocked
    return answered


def device_reads(
    context: PathContext,
    *,
    cached_head_bytes: int,
    cached_tail_bytes: int,
    **extent: Unpack[ObjectExtent],
) -> dict[int, int]:
    """Return what each shard's device reads of an erasure-coded object [B].

    Parameters are those of `read_path`; where reads are not of whole stripes, the cached parts are those of
    the extent in the object.
    """
    store = context.models.store
    if context.models.ec.reads == "stripes":
        # Whole stripes are one run of chunks on a shard; its ends may be cached.
        cached_bytes = cached_head_bytes + cached_tail_bytes
        return {
            shard: store.read_bytes(
                extents[0].offset_bytes + cached_head_bytes,
                total_bytes(extents) - cached_bytes,
            )
            for shard, extents in by_shard(context.plan_read(**extent).reads).items()
        }
    block_bytes = context.geometry.stripe_unit_bytes
    if context.models.ec.reads == "pages":
        block_bytes = PAGE_BYTES
    start_bytes = extent["offset_bytes"]
    end_bytes = start_bytes + extent["length_bytes"]
    start_bytes = max(
        start_bytes, start_bytes // block_bytes * block_bytes + cached_head_bytes
    )
    end_bytes = min(
        end_bytes, -(-end_bytes // block_bytes) * block_bytes - cached_tail_bytes
    )
    if start_bytes >= end_bytes:
        return {}
    plan = context.plan_read(
        offset_bytes=start_bytes,
        length_bytes=end_bytes - start_bytes,
        object_size_bytes=extent["object_size_bytes"],
    )
    return {
        shard: sum(
            store.read_bytes(one.offset_bytes, one.length_bytes) for one in extents
        )
        for shard, extents in by_shard(plan.reads).items()
    }


def _gather(stage: Stage, plan: ReadPlan, devices: dict[int, int], after: int) -> int:
    """Bring what the plan reads to the primary; return the step after which the reply goes out."""
    cpu = stage.models.cpu
    scope = stage.models.pg_lock.scope
    reads = by_shard(plan.reads)
    work_ns = cpu.op_prepare_ns + stage.context.remote(reads) * cpu.sub_op_send_ns
    step = stage.primary_cpu(work_ns, [after], "dispatch")
    if scope == "dispatch":
        stage.unlock(step)
    if reads:
        sources = {
            shard: (total_bytes(extents), devices.get(shard, 0))
            for shard, extents in reads.items()
        }
        step = gather(stage, sources, step)
    step = stage.primary_cpu(
        cpu.op_finish_ns,
        [step],
        "assemble",
        coding_ns=decoding_ns(stage, plan),
        encode_bytes=plan.decode_data_bytes,
        after_reply=True,
    )
    if scope == "commit":
        return stage.unlock(step)
    return step

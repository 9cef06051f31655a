"""Reads through the primary: from one replica, or gathered from shards and decoded if any are missing."""

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
    """Compile one read through the primary.

    Parameters
    ----------
    context
        State of the placement group.
    cached_head_bytes, cached_tail_bytes
        Cached part of the beginning and end of the data at each source [B].
    **extent
        Extent in the object, and the object's size [B].

    Notes
    -----
    A replica is read synchronously: thread and lock are held during the device read. A stripe is gathered at
    the primary from k shards. With `scope = "commit"` the lock is held until all shards have arrived,
    otherwise only during dispatch at the primary.
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
    """Read the primary's replica and return the step that the reply follows."""
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
    """Return the size of each shard's device read for an erasure-coded object [B].

    Parameters are those of `read_path`. Unless whole stripes are read, the cached parts refer to the extent
    in the object.
    """
    store = context.models.store
    if context.models.ec.reads == "stripes":
        # Whole stripes are one contiguous run of chunks on a shard. Its ends may be cached.
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
    """Gather the plan's reads at the primary and return the step that the reply follows."""
    cpu = stage.models.cpu
    scope = stage.context.lock_scope
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

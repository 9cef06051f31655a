"""The read: one replica, or a gather of the shards that the plan names; decode where shards are missing."""

from __future__ import annotations

from stripesim.models.coding import PAGE_BYTES, ReadPlan
from stripesim.sim.ceph.paths.stage import PathContext, Stage, by_shard, gather, local_read
from stripesim.sim.engine.graph import GraphBuilder, Template


def read_path(
    context: PathContext,
    *,
    offset_bytes: int,
    length_bytes: int,
    object_size_bytes: int,
    cached_head_bytes: int = 0,
    cached_tail_bytes: int = 0,
) -> Template:
    """Compile one read.

    `cached_head_bytes` and `cached_tail_bytes` are what the read cache of each source holds of the
    beginning and the end of what it is asked for.

    Notes
    -----
    A replica's read is synchronous: thread and lock are held during the device read. A
    stripe is gathered at the primary from k shards; with `scope = "commit"` the lock is
    held until all of it is there, otherwise only while the primary dispatches.
    """
    plan = context.plan_read(
        offset_bytes=offset_bytes, length_bytes=length_bytes, object_size_bytes=object_size_bytes
    )
    graph = GraphBuilder(f"read {context.name} {length_bytes} B at {offset_bytes}")
    stage = Stage(graph, context)
    step = stage.lock(stage.request(0, plan.returned_bytes))
    if context.scheme.kind == "erasure":
        devices = device_reads(
            context,
            offset_bytes=offset_bytes,
            length_bytes=length_bytes,
            object_size_bytes=object_size_bytes,
            cached_head_bytes=cached_head_bytes,
            cached_tail_bytes=cached_tail_bytes,
        )
        step = _gather(stage, plan, devices, step)
    else:
        step = _replica(stage, plan, cached_head_bytes + cached_tail_bytes, step)
    reply = stage.reply(plan.returned_bytes, step)
    return graph.finish(reply=reply)


def _replica(stage: Stage, plan: ReadPlan, cached_bytes: int, after: int) -> int:
    """Serve from the primary's own copy; return the step after which the reply goes out."""
    cpu, store = stage.models.cpu, stage.models.store
    device_bytes = sum(store.read_bytes(e.offset_bytes, e.length_bytes) for e in plan.reads)
    work_ns = cpu.op_prepare_ns + cpu.store_read_ns
    device_bytes = max(0, device_bytes - cached_bytes)
    primary = stage.context.primary
    answered, step = local_read(stage, primary, work_ns, device_bytes, after, "read", in_group=True)
    waits = answered == step
    step = stage.unlock(step)
    return step if waits else answered


def device_reads(
    context: PathContext,
    *,
    offset_bytes: int,
    length_bytes: int,
    object_size_bytes: int,
    cached_head_bytes: int,
    cached_tail_bytes: int,
) -> dict[int, int]:
    """Return what each shard's device reads of an erasure-coded object [B].

    Parameters are those of `read_path`; where reads are not of whole stripes, the cached parts are those of
    the extent in the object.
    """
    extent = {"offset_bytes": offset_bytes, "length_bytes": length_bytes}
    store = context.models.store
    if context.models.ec.reads == "stripes":
        # Whole stripes are one run of chunks on a shard; its ends may be cached.
        plan = context.plan_read(**extent, object_size_bytes=object_size_bytes)
        return {
            shard: store.read_bytes(
                extents[0].offset_bytes + cached_head_bytes,
                sum(extent.length_bytes for extent in extents) - cached_head_bytes - cached_tail_bytes,
            )
            for shard, extents in by_shard(plan.reads).items()
        }
    block_bytes = PAGE_BYTES if context.models.ec.reads == "pages" else context.geometry.stripe_unit_bytes
    start_bytes = max(offset_bytes, offset_bytes // block_bytes * block_bytes + cached_head_bytes)
    end_bytes = offset_bytes + length_bytes
    end_bytes = min(end_bytes, -(-end_bytes // block_bytes) * block_bytes - cached_tail_bytes)
    if start_bytes >= end_bytes:
        return {}
    plan = context.plan_read(
        offset_bytes=start_bytes, length_bytes=end_bytes - start_bytes, object_size_bytes=object_size_bytes
    )
    return {
        shard: sum(store.read_bytes(extent.offset_bytes, extent.length_bytes) for extent in extents)
        for shard, extents in by_shard(plan.reads).items()
    }


def _gather(stage: Stage, plan: ReadPlan, devices: dict[int, int], after: int) -> int:
    """Bring what the plan reads to the primary; return the step after which the reply goes out."""
    context, models = stage.context, stage.models
    cpu = models.cpu
    reads = by_shard(plan.reads)
    remote = sum(shard != context.primary for shard in reads)
    step = stage.primary_cpu(cpu.op_prepare_ns + remote * cpu.sub_op_send_ns, [after], "dispatch")
    if models.pg_lock.scope == "dispatch":
        stage.unlock(step)
    if reads:
        sources = {
            shard: (sum(extent.length_bytes for extent in extents), devices.get(shard, 0))
            for shard, extents in reads.items()
        }
        step = gather(stage, sources, step)
    coding_ns = 0.0
    if plan.decode_stripes:
        stripe_bytes = plan.decode_data_bytes / plan.decode_stripes
        one_ns = models.decode_ns(context.scheme.name, stripe_bytes, plan.erasures)
        coding_ns = plan.decode_stripes * one_ns
    step = stage.primary_cpu(
        cpu.op_finish_ns,
        [step],
        "assemble",
        coding_ns=coding_ns,
        encode_bytes=plan.decode_data_bytes,
        after_reply=True,
    )
    return stage.unlock(step) if models.pg_lock.scope == "commit" else step

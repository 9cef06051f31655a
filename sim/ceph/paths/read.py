"""The read: one replica, or a gather of whole stripes; decode where shards are missing."""

from __future__ import annotations

from stripesim.models.coding import ReadPlan
from stripesim.sim.ceph import roles
from stripesim.sim.ceph.paths.stage import PathContext, Stage, by_shard, gather, local_read
from stripesim.sim.ceph.phases import Phase
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

    Parameters
    ----------
    context : PathContext
    offset_bytes, length_bytes : int
        Extent in the object [B].
    object_size_bytes : int
        Size of the object [B].
    cached_head_bytes, cached_tail_bytes : int
        What the read cache of each source holds of the beginning and the end of what it
        is asked for [B].

    Returns
    -------
    Template

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
    step = stage.lock(stage.request(0))
    if context.scheme.kind == "erasure":
        step = _gather(stage, plan, cached_head_bytes, cached_tail_bytes, step)
    else:
        step = _replica(stage, plan, cached_head_bytes + cached_tail_bytes, step)
    reply = stage.reply(plan.returned_bytes, step)
    return graph.finish(reply=reply)


def _replica(stage: Stage, plan: ReadPlan, cached_bytes: int, after: int) -> int:
    """Serve from the primary's own copy; return the step after which the reply goes out."""
    cpu, store, graph = stage.models.cpu, stage.models.store, stage.graph
    device_bytes = sum(store.read_bytes(e.offset_bytes, e.length_bytes) for e in plan.reads)
    locked = stage.models.pg_lock.scope != "none"
    step = after
    if locked:
        step = graph.acquire(roles.PG_EXEC, after=[after], label="PG for read", phase=Phase.LOCK)
    work_ns = cpu.op_prepare_ns + cpu.store_read_ns
    step = local_read(
        stage, stage.context.primary, work_ns, max(0, device_bytes - cached_bytes), step, "read"
    )
    if locked:
        step = graph.release(roles.PG_EXEC, after=[step], label="PG back from read")
    return stage.unlock(step)


def _gather(stage: Stage, plan: ReadPlan, head_bytes: int, tail_bytes: int, after: int) -> int:
    """Bring whole stripes to the primary; return the step after which the reply goes out."""
    context, models = stage.context, stage.models
    cpu = models.cpu
    reads = by_shard(plan.reads)
    remote = sum(shard != context.primary for shard in reads)
    step = stage.primary_cpu(cpu.op_prepare_ns + remote * cpu.sub_op_send_ns, [after], "dispatch")
    if models.pg_lock.scope == "dispatch":
        stage.unlock(step)
    if reads:
        sources = {}
        for shard, extents in reads.items():
            data_bytes = sum(extent.length_bytes for extent in extents)
            # Whole stripes are one run of chunks on a shard; its ends may be cached.
            start_bytes = extents[0].offset_bytes + head_bytes
            device_bytes = models.store.read_bytes(start_bytes, data_bytes - head_bytes - tail_bytes)
            sources[shard] = (data_bytes, device_bytes)
        step = gather(stage, sources, step)
    coding_ns = 0.0
    if plan.decode_stripes:
        stripe_bytes = plan.decode_data_bytes / plan.decode_stripes
        one_ns = models.decode_ns(context.scheme.name, stripe_bytes, plan.erasures)
        coding_ns = plan.decode_stripes * one_ns
    step = stage.primary_cpu(
        cpu.op_finish_ns, [step], "assemble", coding_ns=coding_ns, encode_bytes=plan.decode_data_bytes
    )
    return stage.unlock(step) if models.pg_lock.scope == "commit" else step

"""The write: client to primary, read what is needed, encode, sub-writes, commits, reply."""

from __future__ import annotations

from stripesim.models.coding import WritePlan
from stripesim.models.object_store.store import StoreIo
from stripesim.sim.ceph.paths.stage import PathContext, Stage, by_shard, gather, shard_store_io
from stripesim.sim.ceph.phases import Phase
from stripesim.sim.engine.graph import NO_ROLE, GraphBuilder, Template


def write_path(
    context: PathContext,
    *,
    offset_bytes: int,
    length_bytes: int,
    object_size_bytes: int,
    cached_stripes: frozenset[int] = frozenset(),
    unit_states: tuple[int, int] | None = None,
) -> Template:
    """Compile one write.

    `cached_stripes` lie in the read caches and need no device read; `unit_states` is what a store knows of
    the first and last unit of a replica's write.

    Notes
    -----
    Order: lock, dispatch, reads of partial stripes, (decode,) encode, sub-writes to all
    members at once, each member's transaction, all commits, unlock, reply. The lock is
    given back at the last commit (`scope = "commit"`) or when the sub-writes have left
    (`"dispatch"`). After the reply come, waited for by nobody: deferred writes,
    background work of the stores, and for erasure codes the roll-forward round, which
    goes out whenever no other write of the placement group is in the pipeline; with a
    lock that is held to the commit that is always.

    With `scope = "dispatch"` erasure-coded writes take `pipelined_write_path` instead.

    References
    ----------
    Ceph v11.2.0, ``src/osd/PrimaryLogPG.cc``, ``src/osd/ECBackend.cc`` (``start_rmw``,
    ``try_reads_to_commit``, ``try_finish_rmw``), ``src/osd/ReplicatedBackend.cc``.
    """
    scheme, models = context.scheme, context.models
    plan = context.plan_write(
        offset_bytes=offset_bytes,
        length_bytes=length_bytes,
        object_size_bytes=object_size_bytes,
    )
    graph = GraphBuilder(f"write {context.name} {length_bytes} B at {offset_bytes}")
    stage = Stage(graph, context)
    step = stage.request(length_bytes)
    step = stage.lock(step)
    step = _dispatch(stage, plan, cached_stripes, step)

    writes = {
        shard: shard_store_io(context, extents, object_size_bytes, unit_states)
        for shard, extents in by_shard(plan.writes).items()
    }
    first, stop = plan.write_stripes
    overwritten = max(0, min(stop, context.geometry.stripe_count(object_size_bytes)) - first)
    sent = _encode_and_send(stage, plan, list(writes), overwritten, step)
    scope = models.pg_lock.scope
    if scope == "dispatch":
        stage.unlock(sent)
    known = []
    for shard, (payload, io) in writes.items():
        size_bytes = models.messages.sub_write_overhead_bytes(erasure=scheme.kind == "erasure") + payload
        known.append(stage.transaction(shard, io, size_bytes, sent, "sub-write")[0])
    done = graph.join(known, label="all committed")
    finished = stage.primary_cpu(models.cpu.op_finish_ns, [done], "finish", after_reply=True)
    if scope == "commit":
        finished = stage.unlock(finished)
    reply = stage.reply(0, finished)
    if scheme.kind == "erasure" and scope == "commit":
        _roll_forward(stage, list(writes), finished)
    return graph.finish(reply=reply)


def _dispatch(stage: Stage, plan: WritePlan, cached_stripes: frozenset[int], after: int) -> int:
    """Prepare the operation; if the plan reads, gather the stripes it needs."""
    cpu = stage.models.cpu
    reads = by_shard(plan.reads)
    asked = sum(shard != stage.context.primary for shard in reads)
    step = stage.primary_cpu(cpu.op_prepare_ns + asked * cpu.sub_op_send_ns, [after], "dispatch")
    if not reads:
        return step
    unit = stage.context.geometry.stripe_unit_bytes
    alloc = stage.models.store.min_alloc_bytes
    stripes = [stripe for first, stop in plan.read_stripes for stripe in range(first, stop)]
    # Chunks smaller than an allocation unit may share one.
    blocks = {
        block
        for stripe in stripes
        if stripe not in cached_stripes
        for block in range(stripe * unit // alloc, -(-(stripe + 1) * unit // alloc))
    }
    sources = {
        shard: (
            sum(extent.length_bytes for extent in extents),
            len(blocks) * alloc,
        )
        for shard, extents in reads.items()
    }
    return gather(stage, sources, step, "stripe read")


def _encode_and_send(stage: Stage, plan: WritePlan, shards: list[int], overwritten: int, after: int) -> int:
    """Decode what is missing, encode stripe by stripe, save what is overwritten, make the sub-writes."""
    context, models = stage.context, stage.models
    remote = sum(shard != context.primary for shard in shards)
    work_ns, coding_ns = remote * models.cpu.sub_write_send_ns, 0.0
    name = context.scheme.name
    if plan.decode_stripes:
        stripe_bytes = plan.decode_data_bytes / plan.decode_stripes
        coding_ns += plan.decode_stripes * models.decode_ns(name, stripe_bytes, plan.erasures)
    if plan.encode_stripes:
        coding_ns += plan.encode_stripes * models.encode_ns(name, context.geometry.stripe_bytes)
    label = "encode and send" if plan.encode_stripes else "send"
    step = stage.primary_cpu(
        work_ns, [after], label, coding_ns=coding_ns, encode_bytes=plan.encode_data_bytes, after_reply=True
    )
    wait_ns = overwritten * models.cpu.ec_rollback_wait_ns
    if not wait_ns:
        return step
    return stage.graph.delay(NO_ROLE, wait_ns, after=[step], label="save old stripes", phase=Phase.PAUSE)


def _roll_forward(stage: Stage, shards: list[int], after: int) -> None:
    """The round that tells members to forget how to roll back: a transaction of metadata only."""
    models = stage.models
    remote = sum(shard != stage.context.primary for shard in shards)
    step = stage.primary_cpu(remote * models.cpu.sub_op_send_ns, [after], "roll forward")
    io = StoreIo(0, 0, models.store.roll_forward_log_bytes, 0)
    for shard in shards:
        stage.transaction(shard, io, models.messages.roll_forward_bytes, step, "roll-forward")

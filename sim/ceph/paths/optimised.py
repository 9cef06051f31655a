"""The write of an optimised erasure-coded pool: touched shards and parities, in pages."""

from __future__ import annotations

from stripesim.models.coding import ShardExtent, WritePlan
from stripesim.models.object_store.store import StoreIo
from stripesim.sim.ceph import roles
from stripesim.sim.ceph.paths.stage import ObjectExtent, PathContext, Stage, by_shard, gather, shard_store_io
from stripesim.sim.ceph.phases import Phase
from stripesim.sim.engine.conditions import alone, pinned
from stripesim.sim.engine.graph import GraphBuilder, Template

# Key ranges of a request: the pages that it writes on any shard, and its object.
ROWS, OBJECT = 0, 1


def optimised_write_path(
    context: PathContext,
    *,
    offset_bytes: int,
    length_bytes: int,
    object_size_bytes: int,
    roll_forward: Template,
) -> Template:
    """Compile one write of an optimised pool.

    `roll_forward` is `roll_forward_path` of the same context and of the shards that `written_shards` gives.
    The template wants two key ranges: the pages written, and the object.

    Notes
    -----
    The order is that of `pipelined_write_path`; what differs is which shards take part (see
    `stripesim.models.coding.optimised.plan_write`). Pages that writes in flight hold are not read. If they
    hold other pages of the object, it is in the extent cache and parities are reconstructed, not written as
    deltas. Only shards with a transaction are waited for, and only they roll forward.

    Deviation: the extent cache forgets a page when the last write that pins it has finished; Ceph keeps
    recent ones until room is needed. Pages in flight are taken to be there on all shards.

    References
    ----------
    Ceph main (0009f3f5), ``src/osd/ECTransaction.cc``, ``src/osd/ECCommon.cc`` (``RMWPipeline``),
    ``src/osd/ECExtentCache.h``.
    """
    models = context.models
    extent = ObjectExtent(
        offset_bytes=offset_bytes, length_bytes=length_bytes, object_size_bytes=object_size_bytes
    )
    plan = context.plan_write(**extent)
    graph = GraphBuilder(f"write {context.name} {length_bytes} B at {offset_bytes}, {plan.method}")
    stage = Stage(graph, context)
    step = stage.request(length_bytes)
    step = stage.primary_cpu(models.cpu.op_prepare_ns, [step], "dispatch")
    ticket = graph.enter(roles.PG_PIPELINE, after=[step], label="into the pipeline")
    pins = [
        graph.pin(ROWS, after=[ticket], label="pin the pages"),
        graph.pin(OBJECT, after=[ticket], label="pin the object"),
    ]
    here = _old_pages(stage, plan, context.plan_write(**extent, in_cache=True), ticket)
    turn = graph.turn(ticket, after=[*pins, here], label="turn in the pipeline", phase=Phase.LOCK)

    writes = {
        shard: shard_store_io(context, extents, object_size_bytes)
        for shard, extents in by_shard(plan.writes).items()
    }
    metadata = StoreIo(0, 0, models.store.metadata_log_bytes(erasure=True), 0)
    writes |= dict.fromkeys(plan.metadata_shards, (0, metadata))
    sent = _encode_and_send(stage, plan, list(writes), turn)
    overhead_bytes = models.messages.sub_write_overhead_bytes(erasure=True)
    known = [
        stage.transaction(shard, io, overhead_bytes + payload, sent, "sub-write")[0]
        for shard, (payload, io) in sorted(writes.items())
    ]
    done = graph.join(known, label="all committed")
    finished = stage.primary_cpu(models.cpu.op_finish_ns, [done], "finish", after_reply=True)
    unpinned = [graph.unpin(pin, after=[finished], label="unpin") for pin in pins]
    spawned = graph.spawn(
        roll_forward, after=unpinned, label="roll forward if the pipeline has drained", test=alone(ticket)
    )
    graph.leave(ticket, after=[spawned], label="out of the pipeline")
    return graph.finish(reply=stage.reply(0, finished))


def written_shards(plan: WritePlan) -> tuple[int, ...]:
    """Return the shards that get a transaction, with data or without."""
    return tuple(sorted({extent.shard for extent in plan.writes} | set(plan.metadata_shards)))


def _old_pages(stage: Stage, plan: WritePlan, in_cache: WritePlan, after: int) -> int:
    """Gather the pages that the plan reads, unless writes in flight hold them; return when they are there."""
    graph = stage.graph
    if not plan.reads:
        return after
    held, lacking = graph.branch(pinned(ROWS), after=[after], label="pages in flight?")
    if plan.method == in_cache.method:
        return graph.merge([held, _gather(stage, plan.reads, lacking)], label="pages here")
    cached, cold = graph.branch(pinned(OBJECT), after=[lacking], label="object in flight?")
    read = graph.merge(
        [_gather(stage, in_cache.reads, cached), _gather(stage, plan.reads, cold)], label="pages read"
    )
    return graph.merge([held, read], label="pages here")


def _gather(stage: Stage, reads: tuple[ShardExtent, ...], after: int) -> int:
    """Bring pages of several shards to the primary."""
    store = stage.models.store
    shards = by_shard(reads)
    asked = sum(shard != stage.context.primary for shard in shards)
    step = stage.primary_cpu(asked * stage.models.cpu.sub_op_send_ns, [after], "ask for pages")
    sources = {
        shard: (
            sum(extent.length_bytes for extent in extents),
            sum(store.read_bytes(extent.offset_bytes, extent.length_bytes) for extent in extents),
        )
        for shard, extents in shards.items()
    }
    return gather(stage, sources, step, "page read")


def _encode_and_send(stage: Stage, plan: WritePlan, shards: list[int], after: int) -> int:
    """Decode what is missing, compute the parities, make the sub-writes.

    Notes
    -----
    A delta multiplies what changes by its coefficients: it costs as much as encoding so many bytes.
    """
    context, models = stage.context, stage.models
    name = context.scheme.name
    work_ns, coding_ns = sum(shard != context.primary for shard in shards) * models.cpu.sub_write_send_ns, 0.0
    if plan.decode_stripes:
        piece_bytes = plan.decode_data_bytes / plan.decode_stripes
        coding_ns += plan.decode_stripes * models.decode_ns(name, piece_bytes, plan.erasures)
    coding_ns += plan.encode_stripes * models.encode_ns(name, plan.encode_data_bytes / plan.encode_stripes)
    return stage.primary_cpu(
        work_ns, [after], "encode and send", coding_ns=coding_ns, encode_bytes=plan.encode_data_bytes
    )

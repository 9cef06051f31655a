"""The erasure-coded write of Ceph since Luminous: an in-order pipeline per placement group."""

from __future__ import annotations

from collections.abc import Sequence

from stripesim.models.coding import WritePlan
from stripesim.models.object_store.store import StoreIo
from stripesim.sim.ceph import roles
from stripesim.sim.ceph.paths.stage import PathContext, Stage, by_shard, gather, shard_store_io
from stripesim.sim.ceph.phases import Phase
from stripesim.sim.engine.conditions import alone, pinned
from stripesim.sim.engine.graph import GraphBuilder, Template

# Key ranges of a request: the stripes that it writes, and the one partial stripe that is asked for first.
WRITTEN, PARTIAL = 0, 1


def pipelined_write_path(
    context: PathContext,
    *,
    offset_bytes: int,
    length_bytes: int,
    object_size_bytes: int,
    cached_stripes: frozenset[int],
    roll_forward: Template,
) -> Template:
    """Compile one erasure-coded write in the pipeline of its placement group.

    `cached_stripes` lie in the read caches of the stores and need no device read; `roll_forward` is
    `roll_forward_path` of the same context. The template wants two key ranges: the stripes written, and the
    partial stripe below the object's end that is asked for first (the head if it is partial, else the
    tail).

    Notes
    -----
    Dispatch gives the operation its place in the pipeline and pins the stripes that it writes;
    until it finishes, later writes take them from the primary's memory. A partial stripe that nobody
    has pinned is gathered from k shards. Operations overlap, but none encodes before those ahead of
    it have, because its stripes may be theirs. An operation that finishes while no other is in the
    pipeline is followed by a roll-forward, a transaction of metadata on all members.

    With two partial stripes the machine is asked first for all that is written, then for the head.
    Left out: a tail that is pinned while something before it is not, which takes two writes in
    flight that overlap at random.

    References
    ----------
    Ceph v16.2.15, ``src/osd/ECBackend.cc`` (``start_rmw``, ``try_state_to_reads``,
    ``try_reads_to_commit``, ``try_finish_rmw``), ``src/osd/ExtentCache.h``.
    """
    models = context.models
    plan = context.plan_write(
        offset_bytes=offset_bytes,
        length_bytes=length_bytes,
        object_size_bytes=object_size_bytes,
    )
    graph = GraphBuilder(f"write {context.name} {length_bytes} B at {offset_bytes}, pipelined")
    stage = Stage(graph, context)
    step = stage.request(length_bytes)
    step = stage.primary_cpu(models.cpu.op_prepare_ns, [step], "dispatch")
    ticket = graph.enter(roles.PG_PIPELINE, after=[step], label="into the pipeline")
    pin = graph.pin(WRITTEN, after=[ticket], label="pin the stripes")
    step = _read_unpinned(stage, plan, cached_stripes, ticket)
    step = graph.turn(ticket, after=[pin, step], label="turn in the pipeline", phase=Phase.LOCK)
    writes = {
        shard: shard_store_io(context, extents, object_size_bytes)
        for shard, extents in by_shard(plan.writes).items()
    }
    sent = _encode_and_send(stage, plan, list(writes), step)
    overhead_bytes = models.messages.sub_write_overhead_bytes(erasure=True)
    known = [
        stage.transaction(shard, io, overhead_bytes + payload, sent, "sub-write")[0]
        for shard, (payload, io) in writes.items()
    ]
    done = graph.join(known, label="all committed")
    finished = stage.primary_cpu(models.cpu.op_finish_ns, [done], "finish", after_reply=True)
    unpinned = graph.unpin(pin, after=[finished], label="unpin the stripes")
    spawned = graph.spawn(
        roll_forward, after=[unpinned], label="roll forward if the pipeline has drained", test=alone(ticket)
    )
    graph.leave(ticket, after=[spawned], label="out of the pipeline")
    return graph.finish(reply=stage.reply(0, finished))


def roll_forward_path(context: PathContext, shards: Sequence[int] | None = None) -> Template:
    """Compile the round that tells members to forget how to roll back: metadata only, no data.

    `shards` are those that were written; None: all members.

    References
    ----------
    Ceph v16.2.15, ``src/osd/ECBackend.cc`` (``try_finish_rmw``).
    """
    models = context.models
    graph = GraphBuilder(f"roll forward {context.name}")
    stage = Stage(graph, context)
    members = context.members if shards is None else shards
    work_ns = sum(shard != context.primary for shard in members) * models.cpu.sub_op_send_ns
    step = stage.primary_cpu(work_ns, [graph.issue], "roll forward")
    io = StoreIo(0, 0, models.store.roll_forward_log_bytes, 0)
    known = [
        stage.transaction(shard, io, models.messages.roll_forward_bytes, step, "roll-forward")[0]
        for shard in members
    ]
    return graph.finish(reply=graph.join(known, label="all have forgotten"))


def _read_unpinned(stage: Stage, plan: WritePlan, cached_stripes: frozenset[int], after: int) -> int:
    """Gather the partial stripes that no write in flight has; return when they are there."""
    partial = [stripe for first, stop in plan.read_stripes for stripe in range(first, stop)]
    if not partial:
        return after
    graph = stage.graph
    if len(partial) == 1:
        yes, no = graph.branch(pinned(PARTIAL), after=[after], label="stripe in flight?")
        return graph.merge([yes, _gather(stage, plan, partial, cached_stripes, no)], label="stripe here")
    head, tail = partial
    all_held, some_lack = graph.branch(pinned(WRITTEN), after=[after], label="all stripes in flight?")
    head_held, none_held = graph.branch(pinned(PARTIAL), after=[some_lack], label="head in flight?")
    lacking = graph.merge(
        [
            _gather(stage, plan, [tail], cached_stripes, head_held),
            _gather(stage, plan, [head, tail], cached_stripes, none_held),
        ],
        label="head or tail here",
    )
    return graph.merge([all_held, lacking], label="stripes here")


def _gather(
    stage: Stage, plan: WritePlan, stripes: list[int], cached_stripes: frozenset[int], after: int
) -> int:
    """Read whole stripes from the shards that the plan names."""
    context, models = stage.context, stage.models
    unit, alloc = context.geometry.stripe_unit_bytes, models.store.min_alloc_bytes
    shards = by_shard(plan.reads)
    # Chunks smaller than an allocation unit may share one.
    blocks = {
        block
        for stripe in stripes
        if stripe not in cached_stripes
        for block in range(stripe * unit // alloc, -(-(stripe + 1) * unit // alloc))
    }
    asked = sum(shard != context.primary for shard in shards)
    step = stage.primary_cpu(asked * models.cpu.sub_op_send_ns, [after], "ask for stripes")
    sources = {shard: (len(stripes) * unit, len(blocks) * alloc) for shard in shards}
    return gather(stage, sources, step, "stripe read")


def _encode_and_send(stage: Stage, plan: WritePlan, shards: list[int], after: int) -> int:
    """Decode what is missing, encode stripe by stripe, make the sub-writes."""
    context, models = stage.context, stage.models
    name = context.scheme.name
    work_ns, coding_ns = sum(shard != context.primary for shard in shards) * models.cpu.sub_write_send_ns, 0.0
    if plan.decode_stripes:
        stripe_bytes = plan.decode_data_bytes / plan.decode_stripes
        coding_ns += plan.decode_stripes * models.decode_ns(name, stripe_bytes, plan.erasures)
    coding_ns += plan.encode_stripes * models.encode_ns(name, context.geometry.stripe_bytes)
    return stage.primary_cpu(
        work_ns, [after], "encode and send", coding_ns=coding_ns, encode_bytes=plan.encode_data_bytes
    )

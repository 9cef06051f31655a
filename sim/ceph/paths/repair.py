"""The repair of one object: read what the code needs, decode, write to the new home."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stripesim.models.coding import ShardExtent
from stripesim.sim.ceph import roles
from stripesim.sim.ceph.paths.stage import PathContext, Stage, by_shard, gather
from stripesim.sim.ceph.phases import Phase
from stripesim.sim.engine.graph import GraphBuilder, Template


def repair_path(context: PathContext, *, lost: Sequence[int], object_size_bytes: int) -> Template:
    """Compile the repair of the lost shards of one object.

    `missing` of the context names shards that are neither sources nor targets; those in `lost` have their
    new OSDs in the binding.

    Notes
    -----
    The object moves in rounds of at most `recovery_chunk_bytes` of it, one after another, as ``RecoveryOp``
    does: read, decode, push, commit. When it may begin is decided by reservations, limits and sleeps, which
    are the director's (`stripesim.sim.ceph.failures.recovery`).

    References
    ----------
    Ceph v11.2.0, ``src/osd/ECBackend.cc`` (``continue_recovery_op``),
    ``src/osd/ReplicatedBackend.cc`` (``start_pushes``), ``get_recovery_chunk_size``.
    """
    graph = GraphBuilder(f"repair {context.name} of shards {sorted(lost)}")
    stage = Stage(graph, context)
    step = graph.issue
    for size_bytes in _rounds(context, object_size_bytes):
        step = _round(stage, frozenset(lost), size_bytes, step)
    return graph.finish(reply=step)


def move_path(context: PathContext, *, source: int, target: int, shard_bytes: int) -> Template:
    """Compile the move of one shard of an object from an OSD that still serves it to its new one.

    The binding has primary, source and target in their places; the source may be the primary.

    References
    ----------
    Ceph v16.2.15, ``src/osd/ECBackend.cc`` (``get_min_avail_to_read_shards``): a shard that some OSD has is
    read from there, not decoded.
    """
    graph = GraphBuilder(f"move {context.name}")
    stage = Stage(graph, context)
    models, step = context.models, graph.issue
    most = context.recovery_chunk_bytes
    while shard_bytes > 0:
        piece_bytes = min(most, shard_bytes)
        shard_bytes -= piece_bytes
        stage.recovers(piece_bytes)
        remote = sum(shard != context.primary for shard in (source, target))
        work_ns = models.cpu.op_prepare_ns + remote * models.cpu.sub_op_send_ns
        step = stage.primary_cpu(work_ns, [step], "start move")
        device_bytes = models.store.read_bytes(0, piece_bytes)
        step = gather(stage, {source: (piece_bytes, device_bytes)}, step, "move read")
        io = models.store.write_io(0, piece_bytes, existing_bytes=0)
        message_bytes = models.messages.sub_write_header_bytes + piece_bytes
        step = stage.transaction(target, io, message_bytes, step, "push")[0]
    return graph.finish(reply=step)


def _rounds(context: PathContext, object_size_bytes: int) -> list[int]:
    """Split an object into rounds of whole stripes [B]."""
    unit = context.geometry.stripe_bytes
    most = -(-context.recovery_chunk_bytes // unit) * unit
    whole, rest = divmod(object_size_bytes, most)
    return [most] * whole + ([rest] if rest else [])


def _round(stage: Stage, lost: frozenset[int], size_bytes: int, after: int) -> int:
    """Read, decode, push and commit one piece of the object."""
    context, models = stage.context, stage.models
    stage.recovers(size_bytes)
    plan = context.scheme.plan_repair(
        lost=lost,
        object_size_bytes=size_bytes,
        geometry=context.geometry,
        unavailable=context.missing,
    )
    reads = by_shard(plan.reads)
    remote = sum(shard != context.primary for shard in reads)
    work_ns = models.cpu.op_prepare_ns + remote * models.cpu.sub_op_send_ns
    step = stage.primary_cpu(work_ns, [after], "start repair")
    step = _gather_runs(stage, reads, step)
    writes = {shard: _total(extents) for shard, extents in by_shard(plan.writes).items()}
    work_ns = sum(shard != context.primary for shard in writes) * models.cpu.sub_op_send_ns
    coding_ns = 0.0
    if plan.decode_stripes:
        # Kernel costs are given for a stripe's data, also where a code reads less than that.
        stripe_bytes = context.geometry.stripe_bytes
        one_ns = models.rebuild_ns(context.scheme.name, stripe_bytes, plan.erasures)
        coding_ns = plan.decode_stripes * one_ns
    step = stage.primary_cpu(
        work_ns, [step], "decode and push", coding_ns=coding_ns, encode_bytes=plan.decode_data_bytes
    )
    known = []
    for shard, payload in writes.items():
        io = models.store.write_io(0, payload, existing_bytes=0)
        size_bytes = models.messages.sub_write_header_bytes + payload
        known.append(stage.transaction(shard, io, size_bytes, step, "push")[0])
    return stage.graph.join(known, label="all pushed")


def _gather_runs(stage: Stage, reads: Mapping[int, list[ShardExtent]], after: int) -> int:
    """Bring what the code needs to the primary.

    A source with one run is read as for any other gather. One with several, as sub-chunks make
    them, asks its store once for each, one after another on one thread; the device reads whole
    allocation units, and one that two runs share only once, for the second finds it cached.
    """
    context, store = stage.context, stage.models.store
    cpu, messages = stage.models.cpu, stage.models.messages
    whole = {
        shard: (_total(extents), store.read_bytes(0, _total(extents)))
        for shard, extents in reads.items()
        if len(extents) == 1
    }
    if len(whole) == len(reads):
        return gather(stage, whole, after, "repair read")
    arrivals = [gather(stage, whole, after, "repair read")] if whole else []
    for shard, extents in reads.items():
        if shard in whole:
            continue
        work_ns = cpu.store_read_ns * len(extents)
        pieces = _device_runs(extents, store.min_alloc_bytes)
        if shard == context.primary:
            arrivals.append(_read_runs(stage, shard, work_ns, pieces, after))
            continue
        step = stage.out(shard, messages.sub_read_request_bytes, after, "repair read", phase=Phase.READ_BACK)
        step = _read_runs(stage, shard, cpu.sub_op_prepare_ns + work_ns, pieces, step)
        size_bytes = messages.sub_read_reply_header_bytes + _total(extents)
        arrivals.append(stage.sub_reply(shard, size_bytes, step, "repair read reply", phase=Phase.READ_BACK))
    return stage.graph.join(arrivals, label="all data here")


def _read_runs(stage: Stage, shard: int, cpu_ns: float, pieces: list[int], after: int) -> int:
    """Read several pieces of one shard: the thread waits for each before it asks for the next."""
    graph = stage.graph
    worker, cpu = roles.shard_role(shard, roles.WORKER), roles.shard_role(shard, roles.CPU)
    step = stage.shard_thread(shard, [after], "repair read")
    step = stage.on_core(cpu, cpu_ns, [step], "repair read", handoffs=1 + len(pieces), shard=shard)
    step = stage.ssd_chain(shard, pieces, stage.lookup(shard, step))
    return graph.release(worker, after=[step], label="thread back from repair read", shard=shard)


def _device_runs(extents: list[ShardExtent], unit_bytes: int) -> list[int]:
    """What the device reads for each extent in turn [B], without units that an earlier one brought."""
    pieces, known = [], 0
    for extent in sorted(extents):
        first = max(known, extent.offset_bytes // unit_bytes)
        known = -(-extent.end_bytes // unit_bytes)
        if known > first:
            pieces.append((known - first) * unit_bytes)
    return pieces


def _total(extents: list[ShardExtent]) -> int:
    return sum(extent.length_bytes for extent in extents)

"""Repair of one object: read the sources, decode, write to the new OSDs. Also moves and scrubs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from stripesim.models.coding import ShardExtent
from stripesim.models.object_store.store import StoreIo
from stripesim.sim.ceph import roles
from stripesim.sim.ceph.paths.context import PathContext, by_shard, total_bytes
from stripesim.sim.ceph.paths.stage import CpuWork, Stage
from stripesim.sim.ceph.paths.store import (
    commit,
    gather,
    lookup,
    ssd_chain,
    transaction,
)
from stripesim.sim.ceph.phases import Phase
from stripesim.sim.engine.graph import Template
from stripesim.sim.engine.graph_builder import GraphBuilder

# osd_deep_scrub_stride (v16.2.15).
SCRUB_STRIDE_BYTES = 512 << 10


def repair_path(
    context: PathContext, *, lost: Sequence[int], sizes_bytes: Iterable[int]
) -> Template:
    """Compile the repair of one object's lost shards in rounds of the given sizes.

    Shards in the context's `missing` are neither sources nor targets. The binding maps shards in `lost` to
    their new OSDs.

    Rounds (`rounds_bytes`) follow one another, as in ``RecoveryOp``: read, decode, push, commit. The recovery
    director (`stripesim.sim.ceph.failures.background.recovery`) controls their start through reservations,
    limits and sleeps.

    See Ceph v11.2.0, ``src/osd/ECBackend.cc`` (``continue_recovery_op``),
    ``src/osd/ReplicatedBackend.cc`` (``start_pushes``), ``get_recovery_chunk_size``.
    """
    graph = GraphBuilder(f"repair {context.name} of shards {sorted(lost)}")
    stage = Stage(graph, context, is_recovery=True)
    step = graph.issue
    for size_bytes in sizes_bytes:
        step = _round(stage, frozenset(lost), size_bytes, step)
    return graph.finish(reply=step)


def move_path(
    context: PathContext,
    *,
    moves: Sequence[tuple[int, int]],
    sizes_bytes: Iterable[int],
) -> Template:
    """Compile the move of an object's shards from OSDs that still hold them to new OSDs, in rounds.

    The binding assigns a position to the primary, each source and each target. `moves` pairs the positions of
    source and target for each shard. Either may be the primary. The primary reads all shards, then pushes
    all.

    See Ceph v16.2.15, ``src/osd/ECBackend.cc`` (``get_min_avail_to_read_shards``): a shard that is available
    on some OSD is read there, not decoded.
    """
    graph = GraphBuilder(f"move {context.name}")
    stage = Stage(graph, context, is_recovery=True)
    cpu = context.models.cpu
    step = graph.issue
    for piece_bytes in sizes_bytes:
        stage.recovers(piece_bytes * context.scheme.k, piece_bytes)
        shards_count = Counter(source for source, _ in moves)
        targets = [target for _, target in moves]
        messages_count = context.remote(shards_count) + context.remote(targets)
        work_ns = cpu.op_prepare_ns + messages_count * cpu.sub_op_send_ns
        step = stage.primary_cpu(work_ns, [step], "start move")
        device_bytes = context.models.store.read_bytes(0, piece_bytes)
        reads = {
            source: (count * piece_bytes, count * device_bytes)
            for source, count in shards_count.items()
        }
        step = gather(stage, reads, step, "move read")
        pushed = [_push(stage, target, piece_bytes, step) for target in targets]
        step = stage.graph.join(pushed, label="all pushed")
    return graph.finish(reply=step)


def keys_path(
    context: PathContext,
    *,
    sources: Sequence[int],
    targets: Sequence[int],
    sizes_bytes: Iterable[int],
) -> Template:
    """Compile the recovery of the keys of an object without data, in rounds of the given sizes [B].

    The primary gets the keys from `sources`, where the store has them in memory, and pushes them to
    `targets`, which write them to their log. Processor time does not depend on the number of keys.
    """
    graph = GraphBuilder(f"recover keys {context.name}")
    stage = Stage(graph, context)
    cpu = context.models.cpu
    step = graph.issue
    for size_bytes in sizes_bytes:
        stage.recovers(size_bytes, size_bytes)
        messages_count = context.remote(sources) + context.remote(targets)
        work_ns = cpu.op_prepare_ns + messages_count * cpu.sub_op_send_ns
        step = stage.primary_cpu(work_ns, [step], "start recovery of keys")
        read = [
            _answer(stage, source, cpu.store_read_ns, [], size_bytes, step, "keys")
            for source in sources
        ]
        step = graph.join(read, label="all keys here")
        stage.pushes(size_bytes)
        io = StoreIo(0, 0, context.models.store.metadata_bytes + size_bytes, 0)
        message_bytes = context.models.messages.sub_write_header_bytes + size_bytes
        pushed = [
            transaction(stage, target, io, message_bytes, step, "push")
            for target in targets
        ]
        step = graph.join(pushed, label="all pushed")
    return graph.finish(reply=step)


def note_path(
    context: PathContext, shards: Iterable[int], count: int, *, recovers: bool
) -> Template:
    """Compile `count` serial metadata transactions at each member, for recovery (`recovers`) or peering."""
    graph = GraphBuilder(f"note {context.name}")
    stage = Stage(graph, context, is_recovery=True)
    if recovers:
        stage.recovers(1, 1)
        stage.pushes(1)
    known = [_note(stage, shard, count) for shard in shards]
    return graph.finish(reply=graph.join(known, label="all noted"))


def _note(stage: Stage, shard: int, count: int) -> int:
    """Write metadata transactions at one member, one by one, and return the reply's arrival."""
    models = stage.models
    message_bytes = models.messages.sub_reply_bytes
    is_remote = shard != stage.context.primary
    step = stage.graph.issue
    if is_remote:
        step = stage.out(shard, message_bytes, step, "note", phase=Phase.DISTRIBUTION)
    for _ in range(count):
        _, step = stage.work(
            roles.osd_of(shard),
            models.cpu.store_transaction_ns,
            [step],
            "transaction",
            shard=shard,
        )
        step = commit(stage, shard, models.store.metadata_bytes, step)
    if not is_remote:
        return step
    return stage.sub_reply(
        shard, message_bytes, step, "note reply", phase=Phase.DISTRIBUTION
    )


def scrub_path(
    context: PathContext, *, shard_bytes: int, objects: int, deep: bool
) -> Template:
    """Compile a scrub: members look up the objects or, if `deep`, read them, and the primary compares.

    A deep scrub reads serially in units of ``osd_deep_scrub_stride``, or of a chunk if that is larger.

    See Ceph v16.2.15, ``src/osd/ECBackend.cc`` and ``src/osd/ReplicatedBackend.cc`` (``be_deep_scrub``).
    """
    graph = GraphBuilder(f"{'deep ' * deep}scrub {context.name}")
    stage = Stage(graph, context, is_recovery=True)
    models = context.models
    pieces: list[int] = []
    if deep:
        stride_bytes = max(SCRUB_STRIDE_BYTES, context.geometry.stripe_unit_bytes)
        device_bytes = models.store.read_bytes(0, shard_bytes)
        pieces = objects * rounds_bytes(device_bytes, stride_bytes)
    stage.scrubs()
    shards = [
        shard for shard in range(context.scheme.width) if shard not in context.missing
    ]
    work_ns = (
        models.cpu.op_prepare_ns + context.remote(shards) * models.cpu.sub_op_send_ns
    )
    step = stage.primary_cpu(work_ns, [graph.issue], "start scrub")
    work_ns = models.cpu.store_read_ns * max(objects, len(pieces))
    compared = [
        _answer(stage, shard, work_ns, pieces, 0, step, "scrub") for shard in shards
    ]
    return graph.finish(reply=graph.join(compared, label="compared"))


def rounds_bytes(size_bytes: int, most_bytes: int, unit_bytes: int = 1) -> list[int]:
    """Split a size into rounds of whole units [B].

    >>> rounds_bytes(20, 8), rounds_bytes(20, 8, 6)
    ([8, 8, 4], [12, 8])
    """
    most = -(-most_bytes // unit_bytes) * unit_bytes
    return [min(most, size_bytes - start) for start in range(0, size_bytes, most)]


def _round(stage: Stage, lost: frozenset[int], size_bytes: int, after: int) -> int:
    """Read, decode, push and commit one round of the object."""
    context = stage.context
    models = stage.models
    stage.recovers(size_bytes, -(-size_bytes // context.scheme.k))
    plan = context.scheme.plan_repair(
        lost=lost,
        object_size_bytes=size_bytes,
        geometry=context.geometry,
        unavailable=context.missing,
    )
    reads = by_shard(plan.reads)
    work_ns = (
        models.cpu.op_prepare_ns + context.remote(reads) * models.cpu.sub_op_send_ns
    )
    step = stage.primary_cpu(work_ns, [after], "start repair")
    step = _gather_runs(stage, reads, step)
    writes = {
        shard: total_bytes(extents) for shard, extents in by_shard(plan.writes).items()
    }
    work_ns = context.remote(writes) * models.cpu.sub_op_send_ns
    coding_ns = 0.0
    if plan.decode_stripes:
        # Kernel costs refer to a stripe's data, even if a code reads less.
        stripe_bytes = context.geometry.stripe_bytes
        one_ns = models.rebuild_ns(context.scheme.name, stripe_bytes, plan.erasures)
        coding_ns = plan.decode_stripes * one_ns
    step = stage.primary_cpu(
        CpuWork(work_ns, coding_ns=coding_ns, encode_bytes=plan.decode_data_bytes),
        [step],
        "decode and push",
    )
    known = [_push(stage, shard, payload, step) for shard, payload in writes.items()]
    return stage.graph.join(known, label="all pushed")


def _push(stage: Stage, shard: int, payload_bytes: int, after: int) -> int:
    stage.pushes(payload_bytes)
    io = stage.models.store.write_io(0, payload_bytes, existing_bytes=0)
    size_bytes = stage.models.messages.sub_write_header_bytes + payload_bytes
    return transaction(stage, shard, io, size_bytes, after, "push")


def _gather_runs(
    stage: Stage, reads: Mapping[int, list[ShardExtent]], after: int
) -> int:
    """Gather the sources of a repair at the primary.

    A source with a single run is read as in any other gather. A source with several runs, as sub-chunks
    cause, reads them serially on one thread. The device reads whole allocation units. A unit that two runs
    share is read only once, because the second run finds it in the cache.
    """
    cpu = stage.models.cpu
    store = stage.models.store
    in_one_run = {
        shard: (total_bytes(extents), store.read_bytes(0, total_bytes(extents)))
        for shard, extents in reads.items()
        if len(extents) == 1
    }
    if len(in_one_run) == len(reads):
        return gather(stage, in_one_run, after, "repair read")
    arrivals = [gather(stage, in_one_run, after, "repair read")] if in_one_run else []
    for shard, extents in reads.items():
        if shard in in_one_run:
            continue
        work_ns = cpu.store_read_ns * len(extents)
        pieces = _device_runs(extents, store.min_alloc_bytes)
        arrivals.append(
            _answer(
                stage,
                shard,
                work_ns,
                pieces,
                total_bytes(extents),
                after,
                "repair read",
            )
        )
    return stage.graph.join(arrivals, label="all data here")


def _answer(
    stage: Stage,
    shard: int,
    work_ns: float,
    pieces: list[int],
    payload_bytes: int,
    after: int,
    name: str,
) -> int:
    """Read several pieces at a shard and send one reply to the primary."""
    cpu = stage.models.cpu
    messages = stage.models.messages
    if shard == stage.context.primary:
        return _read_runs(stage, shard, work_ns, pieces, after, name)
    step = stage.out(
        shard, messages.sub_read_request_bytes, after, name, phase=Phase.READ_BACK
    )
    step = _read_runs(stage, shard, cpu.sub_op_prepare_ns + work_ns, pieces, step, name)
    size_bytes = messages.sub_read_reply_header_bytes + payload_bytes
    return stage.sub_reply(
        shard, size_bytes, step, f"{name} reply", phase=Phase.READ_BACK
    )


def _read_runs(
    stage: Stage, shard: int, cpu_ns: float, pieces: list[int], after: int, name: str
) -> int:
    """Read several pieces of one shard serially on one thread."""
    osd = roles.osd_of(shard)
    step = stage.worker(osd, [after], name, shard)
    step = stage.on_core(osd, cpu_ns, [step], name, shard=shard)
    step = ssd_chain(stage, shard, pieces, lookup(stage, shard, step))
    return stage.worker_back(osd, step, name, shard)


def _device_runs(extents: list[ShardExtent], unit_bytes: int) -> list[int]:
    """Return the device reads of ascending extents in turn, without units already read [B]."""
    pieces = []
    known = 0
    for extent in extents:
        first = max(known, extent.offset_bytes // unit_bytes)
        known = -(-extent.end_bytes // unit_bytes)
        if known > first:
            pieces.append((known - first) * unit_bytes)
    return pieces

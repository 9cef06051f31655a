"""Store reads, writes and commits, and gathering, decoding and encoding at the primary."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from stripesim.models.coding import ReadPlan, ShardExtent, WritePlan
from stripesim.models.object_store.store import StoreIo
from stripesim.sim.ceph import roles
from stripesim.sim.ceph.paths.context import PathContext, by_shard, total_bytes
from stripesim.sim.ceph.paths.stage import TRANSFER_STEPS_MAX, CpuWork, Stage
from stripesim.sim.ceph.phases import Phase
from stripesim.sim.engine.graph import FIXED, SSD_READ, SSD_WRITE

Item = TypeVar("Item")
# States of the first and last unit of a write, or None if unknown.
UnitStates = tuple[int, int] | None
# Payload of the sub-write [B] and store traffic, by shard.
Writes = Mapping[int, tuple[int, StoreIo]]

# Like `TRANSFER_STEPS_MAX`, for a chain of reads of one shard.
CHAIN_STEPS_MAX = 8


def ssd_read(
    stage: Stage, shard: int, size_bytes: int, after: int, label: str = "drive read"
) -> int:
    """Read from a shard's device in pieces, and transfer over its host link if that is a queue."""
    ends = []
    for pieces, requests in _transfers(stage, size_bytes):
        read_ns = sum(map(_read_ns_of(stage), pieces))
        step = _device_reads(
            stage,
            shard,
            read_ns,
            sum(pieces),
            after,
            label,
            requests=requests,
            positions=len(pieces),
        )
        ends.append(_drive_to_host(stage, shard, sum(pieces), step))
    return stage.graph.join(ends)


def ssd_chain(stage: Stage, shard: int, sizes_bytes: Sequence[int], after: int) -> int:
    """Read several pieces of one object serially from a shard's device."""
    device = stage.models.ssd
    reads = []
    for index, size_bytes in enumerate(sizes_bytes):
        piece_ns = device.read_next_ns if index else _read_ns_of(stage)
        pieces = device.pieces_bytes(size_bytes)
        reads += [(piece, piece_ns(piece), not index) for piece in pieces]
    step = after
    for batch in batches(reads, CHAIN_STEPS_MAX):
        read_ns = sum(read_ns for _, read_ns, _ in batch)
        read_bytes = sum(piece for piece, _, _ in batch)
        step = _device_reads(
            stage,
            shard,
            read_ns,
            read_bytes,
            step,
            "drive read",
            requests=len(batch),
            positions=sum(is_first for _, _, is_first in batch),
        )
        step = _drive_to_host(stage, shard, read_bytes, step)
    return step


def _read_ns_of(stage: Stage) -> Callable[[int], float]:
    """Return the function of the mean time of a read by its size."""
    device = stage.models.ssd
    return device.continued_read_ns if stage.context.continues else device.read_ns


def _deferred_write_ns(stage: Stage, size_bytes: int) -> float:
    """Return the mean time of a write that the store has deferred [ns]."""
    device = stage.models.ssd
    deferral = stage.models.deferral
    if deferral is None:
        return device.write_ns(size_bytes)
    if stage.context.continues:
        # The store merges neighbours of a batch into one transfer.
        return device.write_ns_per_byte * device.blocks_bytes(size_bytes)
    if stage.context.allocates:
        return device.adjacent_write_ns(size_bytes, deferral.deferred_batch_count)
    return device.deferred_write_ns(size_bytes, deferral.deferred_batch_count)


def ssd_write(
    stage: Stage,
    shard: int,
    size_bytes: int,
    after: int,
    label: str = "drive write",
    write_ns: Callable[[int], float] | None = None,
) -> int:
    """Write to a shard's device: one transfer to its write buffer if it has one, else several pieces."""
    ssd = stage.models.ssd
    if write_ns is None:
        write_ns = ssd.continued_write_ns if stage.context.continues else ssd.write_ns
    transfers = _transfers(stage, size_bytes)
    if ssd.write_servers_count:
        transfers = [((size_bytes,), len(ssd.pieces_bytes(size_bytes)))]
    ends = [
        stage.graph.use(
            roles.shard_role(shard, roles.SSD_WRITER),
            sum(map(write_ns, pieces)),
            after=[after],
            label=label,
            spread=SSD_WRITE,
            phase=Phase.DEVICE,
            shard=shard,
            device_write_bytes=sum(pieces),
            device_write_ops=requests,
        )
        for pieces, requests in transfers
    ]
    return stage.graph.join(ends)


def _device_reads(
    stage: Stage,
    shard: int,
    read_ns: float,
    read_bytes: int,
    after: int,
    label: str,
    *,
    positions: float,
    requests: int = 0,
) -> int:
    """Occupy a channel of a shard's device with a read, for which a disk positions its head so many times."""
    continues = stage.context.continues
    step = stage.graph.use(
        roles.shard_role(shard, roles.SSD),
        read_ns,
        after=[after],
        label=label,
        # Without seek and rotation nothing is random.
        spread=FIXED if continues else SSD_READ,
        phase=Phase.DEVICE,
        shard=shard,
        device_read_bytes=read_bytes,
        device_read_ops=requests,
    )
    position_ns = positions * stage.models.ssd.read_position_ns
    if position_ns and not continues:
        stage.graph.sort(step, position_ns)
    return step


def _drive_to_host(stage: Stage, shard: int, size_bytes: float, after: int) -> int:
    """Transfer data over the drive's host link, if the link is a separate queue."""
    link_ns = stage.models.ssd.link_ns_per_byte * size_bytes
    if not link_ns:
        return after
    return stage.graph.use(
        roles.shard_role(shard, roles.SSD_LINK),
        link_ns,
        after=[after],
        label="drive to host",
        phase=Phase.DEVICE,
        shard=shard,
    )


def _wake(stage: Stage, shard: int, after: int, *parts: int) -> int:
    """Wake threads in turn on a device completion, where threads keep their cores."""
    if not stage.models.threads.slice_ns:
        return after
    graph = stage.graph
    label = "device has answered"
    for part in parts:
        thread = roles.shard_role(shard, part)
        taken = graph.acquire(
            thread, after=[after], label=label, phase=Phase.DEVICE, shard=shard
        )
        woken = graph.use(
            roles.shard_role(shard, roles.CPU),
            0,
            after=[taken],
            label=label,
            phase=Phase.DEVICE,
            shard=shard,
        )
        graph.on_thread(woken, taken)
        after = graph.release(thread, after=[woken], label=label, shard=shard)
    return after


def _transfers(stage: Stage, size_bytes: int) -> list[tuple[Sequence[int], int]]:
    """Return the sizes of parallel device transfers [B], each with its number of requests."""
    device = stage.models.ssd
    pieces = device.pieces_bytes(size_bytes)
    if len(pieces) == 1:
        # Several requests keep a drive's channels busy. A single request is spread over them.
        return [
            ([part], int(index == 0))
            for index, part in enumerate(device.parts_bytes(pieces[0]))
        ]
    return [(batch, len(batch)) for batch in batches(pieces, TRANSFER_STEPS_MAX)]


def batches(items: Sequence[Item], most: int) -> list[Sequence[Item]]:
    """Split items into at most `most` runs of equal length, apart from a shorter last run.

    >>> [len(run) for run in batches(range(7), 3)]
    [3, 3, 1]
    """
    length = -(-len(items) // most)
    return [
        items[start : start + length] for start in range(0, len(items), max(1, length))
    ]


def lookup(stage: Stage, shard: int, after: int) -> int:
    """Look up an object's extents at the mean device cost. Add no step if all metadata is in memory."""
    model = stage.models.lookup
    if model is None or not model.miss_fraction:
        return after
    read_ns = model.miss_fraction * stage.models.ssd.read_ns(model.read_bytes)
    read_bytes = round(model.miss_fraction * model.read_bytes)
    step = _device_reads(
        stage,
        shard,
        read_ns,
        read_bytes,
        after,
        "metadata read",
        positions=model.miss_fraction,
    )
    return _drive_to_host(stage, shard, read_bytes, step)


def local_read(
    stage: Stage,
    shard: int,
    cpu_ns: float,
    device_bytes: int,
    after: int,
    name: str,
    in_group: bool = False,
) -> tuple[int, int]:
    """Serve a store read on a shard and return the steps that send its reply and release its thread."""

    def read(step: int) -> int:
        step = lookup(stage, shard, step)
        if not device_bytes:
            return step
        step = ssd_read(stage, shard, device_bytes, step)
        return _wake(stage, shard, step, roles.AIO, roles.READER)

    return stage.work(
        roles.osd_of(shard),
        cpu_ns + stage.models.cpu.store_ns_per_byte * device_bytes,
        [after],
        name,
        in_group=in_group,
        shard=shard,
        then=read,
        after_reply=True,
    )


def gather(
    stage: Stage,
    sources: Mapping[int, tuple[int, int]],
    after: int,
    name: str = "sub-read",
) -> int:
    """Read from several shards and bring the data to the primary.

    `sources` holds for each shard the bytes that its store returns and that its device reads. The two differ
    by cached data and padding. The stage of `after` includes the cost of creating the sub-reads.
    """
    arrivals = [
        fetch(stage, shard, data_bytes, device_bytes, after, name)
        for shard, (data_bytes, device_bytes) in sources.items()
    ]
    return stage.graph.join(arrivals, label="all data here")


def fetch(
    stage: Stage, shard: int, data_bytes: int, device_bytes: int, after: int, name: str
) -> int:
    """Read from one shard and bring the data to the primary."""
    cpu = stage.models.cpu
    messages = stage.models.messages
    if shard == stage.context.primary:
        answered, _ = local_read(
            stage, shard, cpu.store_read_ns, device_bytes, after, name
        )
        return answered
    request_bytes = messages.sub_read_request_bytes
    step = stage.out(shard, request_bytes, after, name, phase=Phase.READ_BACK)
    work_ns = cpu.sub_op_prepare_ns + cpu.store_read_ns
    step, _ = local_read(stage, shard, work_ns, device_bytes, step, name)
    size_bytes = messages.sub_read_reply_header_bytes + data_bytes
    return stage.sub_reply(
        shard, size_bytes, step, f"{name} reply", phase=Phase.READ_BACK
    )


def stripe_sources(
    context: PathContext,
    plan: WritePlan,
    stripes: Collection[int],
    cached_stripes: frozenset[int],
) -> dict[int, tuple[int, int]]:
    """Return the sources for `gather` from whole stripes, without device reads of cached stripes."""
    unit = context.geometry.stripe_unit_bytes
    alloc = context.models.store.min_alloc_bytes
    # Chunks smaller than an allocation unit may share a unit.
    blocks = {
        block
        for stripe in stripes
        if stripe not in cached_stripes
        for block in range(stripe * unit // alloc, -(-(stripe + 1) * unit // alloc))
    }
    return dict.fromkeys(
        by_shard(plan.reads), (len(stripes) * unit, len(blocks) * alloc)
    )


def decoding_ns(stage: Stage, plan: ReadPlan | WritePlan) -> float:
    """Return the processor time of decoding a plan's missing data, stripe by stripe [ns]."""
    if not plan.decode_stripes:
        return 0.0
    piece_bytes = plan.decode_data_bytes / plan.decode_stripes
    one_ns = stage.models.decode_ns(
        stage.context.scheme.name, piece_bytes, plan.erasures
    )
    return plan.decode_stripes * one_ns


def encode_and_send(
    stage: Stage,
    plan: WritePlan,
    writes: Writes,
    after: int,
    *,
    first_ns: float = 0,
    after_reply: bool = False,
) -> tuple[int, int | None]:
    """Decode missing data, encode stripe by stripe (a parity delta costs the same), send sub-writes.

    The first `first_ns` on the thread are the operation's dispatch. If a thread keeps a write
    (`Stage.keeps_thread`), it finally prepares the primary's transaction, still holding the group. Return the
    step that sub-writes follow, and the step that prepares this transaction, or None if it is prepared
    elsewhere.

    See Ceph v18.2.0, ``src/osd/ReplicatedBackend.cc`` (``submit_transaction``), ``src/osd/ECBackend.cc``
    (``try_reads_to_commit``).
    """
    primary = stage.context.primary
    prepared = None

    def prepare(step: int) -> int:
        nonlocal prepared
        _, io = writes[primary]
        prepared = stage.on_core(
            roles.PRIMARY, _preparation(stage, io), [step], "transaction"
        )
        return prepared

    send_ns = stage.context.remote(writes) * stage.models.cpu.sub_write_send_ns
    coding_ns = decoding_ns(stage, plan)
    if plan.encode_stripes:
        piece_bytes = plan.encode_data_bytes / plan.encode_stripes
        coding_ns += plan.encode_stripes * stage.models.encode_ns(
            stage.context.scheme.name, piece_bytes
        )
    step = stage.primary_cpu(
        CpuWork(
            first_ns + send_ns,
            coding_ns=coding_ns,
            encode_bytes=plan.encode_data_bytes,
        ),
        [after],
        "encode and send" if plan.encode_stripes else "send",
        goes_on=prepare if stage.keeps_thread and primary in writes else None,
        after_reply=after_reply,
    )
    return step, prepared


def commit(stage: Stage, shard: int, log_bytes: int, after: int) -> int:
    """Commit through the store's key-value log and return the commit step.

    One thread of the OSD submits transactions, and each sync serves all waiting transactions. After the
    commit another thread finishes the transaction without delaying the request. If threads keep their cores,
    the submitting thread also performs the syncs, and is released once the sync is queued.
    """
    graph = stage.graph
    makes_syncs = bool(stage.models.threads.slice_ns)
    kv = roles.shard_role(shard, roles.KV)
    label = "kv submit"
    thread = graph.acquire(
        kv, after=[after], label=f"thread for {label}", phase=Phase.LOG, shard=shard
    )
    submitted = stage.on_core(
        roles.osd_of(shard),
        CpuWork(stage.models.cpu.kv_transaction_ns, counter="kv_ns"),
        [thread],
        label,
        phase=Phase.LOG,
        shard=shard,
        thread=thread,
    )

    def give_back() -> int:
        return graph.release(
            kv, after=[submitted], label=f"thread back from {label}", shard=shard
        )

    if makes_syncs:
        committed = _sync(stage, shard, log_bytes, submitted)
        give_back()
    else:
        committed = _sync(stage, shard, log_bytes, give_back())
    _finish_transaction(stage, shard, committed)
    return committed


def _sync(stage: Stage, shard: int, log_bytes: int, after: int) -> int:
    """Flush the key-value log for all waiting transactions."""
    committed = stage.graph.use(
        roles.shard_role(shard, roles.SYNC),
        stage.sync_ns(log_bytes),
        after=[after],
        label="kv sync",
        spread=SSD_WRITE,
        phase=Phase.LOG,
        shard=shard,
        device_write_bytes=log_bytes,
        device_log_bytes=log_bytes,
        device_write_ops=1,
    )
    # Bytes that each sync writes once for all of its transactions.
    shared_bytes = stage.models.store.sync_log_bytes
    if shared_bytes:
        stage.graph.per_service(
            committed, device_write_bytes=shared_bytes, device_log_bytes=shared_bytes
        )
    return committed


def _finish_transaction(stage: Stage, shard: int, committed: int) -> None:
    """Finish a transaction after its commit without delaying the request."""
    cpu = stage.models.cpu
    finish_ns = cpu.kv_finish_ns
    if stage.context.erasure:
        finish_ns *= cpu.ec_kv_finish_factor
    if not finish_ns:
        return
    has_finisher = stage.models.threads.finish_threads_count
    stage.with_thread(
        roles.shard_role(shard, roles.FINISHER if has_finisher else roles.KV),
        roles.osd_of(shard),
        CpuWork(finish_ns, counter="kv_ns"),
        [committed],
        "kv finish",
        phase=Phase.LOG,
        shard=shard,
    )


def _preparation(stage: Stage, io: StoreIo, *, received_ns: float = 0) -> CpuWork:
    """Return the work of preparing one transaction, after `received_ns` for the message that asks for it."""
    cpu = stage.models.cpu
    work_ns = cpu.store_transaction_ns + cpu.store_ns_per_byte * io.data_bytes
    if not stage.context.erasure:
        return CpuWork(work_ns + received_ns)
    return CpuWork(
        work_ns + cpu.ec_transaction_ns + received_ns,
        wakes_count=stage.models.threads.ec_wakes_count,
    )


def transaction(
    stage: Stage, shard: int, io: StoreIo, payload_bytes: int, after: int, name: str
) -> int:
    """Add one member's part of a write and return the step that notifies the primary of its commit."""
    local = shard == stage.context.primary
    step = after
    received_ns = 0.0
    if not local:
        step = stage.out(shard, payload_bytes, step, name, phase=Phase.DISTRIBUTION)
        received_ns = stage.models.cpu.sub_op_prepare_ns
    work = _preparation(stage, io, received_ns=received_ns)
    _, step = stage.work(roles.osd_of(shard), work, [step], "transaction", shard=shard)
    committed = _stored(stage, shard, io, step)
    if local:
        return committed
    size_bytes = stage.models.messages.sub_reply_bytes
    return stage.sub_reply(
        shard, size_bytes, committed, f"{name} reply", phase=Phase.DISTRIBUTION
    )


def _stored(stage: Stage, shard: int, io: StoreIo, step: int) -> int:
    """Write the data of a prepared transaction, commit it, and return the commit step."""
    if io.read_bytes:
        step = ssd_read(stage, shard, io.read_bytes, step, "drive read (padding)")
        step = _wake(stage, shard, step, roles.AIO, roles.READER)
    if io.data_bytes:
        step = _wake(
            stage, shard, ssd_write(stage, shard, io.data_bytes, step), roles.AIO
        )
    if not io.deferred_bytes:
        return commit(stage, shard, io.log_bytes, step)
    graph = stage.graph
    room = roles.shard_role(shard, roles.DEFERRED)
    is_limited = stage.models.deferral is not None
    if is_limited:
        step = graph.acquire(
            room,
            after=[step],
            label="room for a deferred write",
            phase=Phase.LOG,
            shard=shard,
        )
    committed = commit(stage, shard, io.log_bytes, step)
    written = ssd_write(
        stage,
        shard,
        io.deferred_bytes,
        committed,
        "deferred write",
        partial(_deferred_write_ns, stage),
    )
    if is_limited:
        graph.release(room, after=[written], label="room back", shard=shard)
    _wake(stage, shard, written, roles.AIO)
    return committed


def commit_all(stage: Stage, writes: Writes, sent: int, prepared: int | None) -> int:
    """Send the sub-writes that `encode_and_send` prepared, and return the step of the last commit."""
    context = stage.context
    models = stage.models
    overhead_bytes = models.messages.sub_write_overhead_bytes(erasure=context.erasure)
    if context.attributes_bytes:
        writes = _with_attributes(context, writes)
    known = [
        _stored(stage, shard, io, prepared)
        if prepared is not None and shard == context.primary
        else transaction(stage, shard, io, overhead_bytes + payload, sent, "sub-write")
        for shard, (payload, io) in sorted(writes.items())
    ]
    done = stage.graph.join(known, label="all committed")
    return stage.primary_cpu(
        models.cpu.op_finish_ns, [done], "finish", after_reply=True
    )


def _with_attributes(context: PathContext, writes: Writes) -> Writes:
    """Add the attributes that a write sets to the members' messages and logs."""
    own_bytes = context.attributes_bytes
    holders = context.attribute_shards
    return {
        shard: (payload + own_bytes, replace(io, log_bytes=io.log_bytes + own_bytes))
        if shard in holders
        else (payload, io)
        for shard, (payload, io) in writes.items()
    }


def roll_forward(stage: Stage, shards: Collection[int], after: int) -> list[int]:
    """Make members discard rollback information (``try_finish_rmw``) and return the last step of each."""
    models = stage.models
    work_ns = stage.context.remote(shards) * models.cpu.sub_op_send_ns
    step = stage.primary_cpu(work_ns, [after], "roll forward")
    io = StoreIo(0, 0, models.store.roll_forward_log_bytes, 0)
    size_bytes = models.messages.roll_forward_bytes
    return [
        transaction(stage, shard, io, size_bytes, step, "roll-forward")
        for shard in shards
    ]


def shard_writes(
    context: PathContext,
    plan: WritePlan,
    object_size_bytes: int,
    unit_states: UnitStates = None,
) -> dict[int, tuple[int, StoreIo]]:
    """Return each written shard's payload [B] and its store's device traffic.

    `unit_states` are the states of the first and last unit (see `stripesim.models.object_store.store`). If
    they are unknown, all data below the object's size is assumed to exist, and is read.
    """
    written = by_shard(plan.writes)
    return {
        shard: (
            total_bytes(extents),
            _store_io(context, extents, object_size_bytes, unit_states),
        )
        for shard, extents in written.items()
    }


def _store_io(
    context: PathContext,
    extents: list[ShardExtent],
    object_size_bytes: int,
    unit_states: UnitStates,
) -> StoreIo:
    store = context.models.store
    existing = object_size_bytes
    if context.erasure:
        # Beyond the end of a shard, optimised pools write only whole pages.
        existing = (
            context.geometry.stripe_count(object_size_bytes)
            * context.geometry.stripe_unit_bytes
        )
    if unit_states is not None:
        parts = [
            store.partial_write_io(e.offset_bytes, e.length_bytes, unit_states)
            for e in extents
        ]
    else:
        parts = [
            store.write_io(e.offset_bytes, e.length_bytes, existing_bytes=existing)
            for e in extents
        ]
    deferral = context.models.deferral
    if deferral is not None:
        parts = [deferral.applied(part) for part in parts]
    # A single transaction writes its metadata once, regardless of the number of extents.
    other_log_bytes = sum(part.log_bytes - store.metadata_bytes for part in parts)
    return StoreIo(
        read_bytes=sum(part.read_bytes for part in parts),
        data_bytes=sum(part.data_bytes for part in parts),
        log_bytes=other_log_bytes + store.metadata_log_bytes(erasure=context.erasure),
        deferred_bytes=sum(part.deferred_bytes for part in parts),
    )

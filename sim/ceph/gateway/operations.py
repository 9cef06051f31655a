"""RADOS operations that only the gateway sends: reads of attributes, updates and reads of a bucket index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from stripesim.models.object_store.gateway import GatewayModel
from stripesim.models.object_store.store import StoreIo
from stripesim.models.pg_lock import PgLockModel
from stripesim.sim.ceph.paths import store
from stripesim.sim.ceph.paths.context import PathContext
from stripesim.sim.ceph.paths.pipeline import (
    enter_pipeline,
    leave_pipeline,
    roll_forward_path,
)
from stripesim.sim.ceph.paths.stage import Stage
from stripesim.sim.ceph.paths.store import encode_and_send
from stripesim.sim.ceph.phases import Phase
from stripesim.sim.engine.graph import Template
from stripesim.sim.engine.graph_builder import GraphBuilder

#: Pieces of an index object that a method reads before it writes: the header and the object's entry [count].
INDEX_READS_COUNT = 2
#: Data that names the members of a write that carries none [B].
_NOMINAL_BYTES = 1


def with_long_names(context: PathContext, gateway: GatewayModel) -> PathContext:
    """Return the context of operations on objects with the gateway's names."""
    messages = context.models.messages
    added_bytes = gateway.name_bytes // 2
    messages = replace(
        messages,
        request_header_bytes=messages.request_header_bytes + added_bytes,
        reply_bytes=messages.reply_bytes + added_bytes,
    )
    return replace(context, models=replace(context.models, messages=messages))


def head_read_context(
    context: PathContext, gateway: GatewayModel, *, has_data: bool
) -> PathContext:
    """Return the context of reads of a head, whose attributes the primary reads, decodes and returns as well.

    Notes
    -----
    In a coded pool, the primary executes all parts of an operation again once the data is here. The
    attributes are then in the reply twice, as messages of 20.2.4 show.
    """
    models = context.models
    cpu = replace(
        models.cpu, op_prepare_ns=models.cpu.op_prepare_ns + gateway.head_read_ns
    )
    copies = 2 if context.erasure and has_data else 1
    reply_bytes = models.messages.reply_bytes + copies * gateway.attributes_bytes
    messages = replace(models.messages, reply_bytes=reply_bytes)
    return replace(context, models=replace(models, cpu=cpu, messages=messages))


def new_object_context(context: PathContext, gateway: GatewayModel) -> PathContext:
    """Return the context of writes of new objects, which keep nothing for a rollback.

    Notes
    -----
    An allocator of BlueStore searches on from where the previous allocation ended, so that the deferred
    data of new objects are next to each other as long as free space is.

    References
    ----------
    Ceph v18.2, ``src/os/bluestore/AvlAllocator.cc`` (``_allocate``, ``lbas``), ``BlueStore.cc``
    (``_deferred_submit_unlock``: adjacent writes become one).
    """
    models = context.models
    store = replace(
        models.store,
        metadata_bytes=gateway.new_object_log_bytes,
        ec_metadata_extra_bytes=0,
        roll_forward_log_bytes=gateway.new_object_roll_forward_log_bytes,
    )
    messages = replace(models.messages, ec_sub_write_extra_bytes=0)
    return replace(
        context,
        models=replace(models, store=store, messages=messages),
        allocates=True,
    )


def head_write_context(context: PathContext, gateway: GatewayModel) -> PathContext:
    """Return the context of writes of a new head, with its attributes."""
    context = new_object_context(context, gateway)
    messages = context.models.messages
    sent_bytes = gateway.attributes_bytes + gateway.head_call_bytes
    messages = replace(
        messages, request_header_bytes=messages.request_header_bytes + sent_bytes
    )
    return replace(
        context,
        models=replace(context.models, messages=messages),
        attributes_bytes=gateway.attributes_bytes,
    )


def attributes_path(
    context: PathContext, *, returned_bytes: int, keys_ns: float = 0.0
) -> Template:
    """Compile a read of attributes or of keys at the primary, from memory, without data of the object.

    `keys_ns` is the processor time of the keys [ns].
    """
    cpu = context.models.cpu
    stage = Stage(GraphBuilder(f"read attributes {context.name}"), context)
    step = stage.lock(stage.request(0, returned_bytes))
    work_ns = cpu.op_prepare_ns + cpu.store_read_ns + keys_ns
    step = stage.primary_cpu(work_ns, [step], "read attributes", after_reply=True)
    return stage.graph.finish(reply=stage.reply(returned_bytes, stage.unlock(step)))


def index_update_path(
    context: PathContext, gateway: GatewayModel, *, exclusive: bool
) -> Template:
    """Compile an update of a shard of a bucket index: a class method that reads and writes keys.

    Parameters
    ----------
    context
        A placement group of the pool of the index.
    gateway
        Costs of an update.
    exclusive
        True if the update locks its shard until all replicas have committed it.
    """
    context = _with_index_costs(context, gateway)
    if exclusive:
        lock = PgLockModel(scope="commit", provenance={})
        context = replace(context, models=replace(context.models, pg_lock=lock))
    io = StoreIo(0, 0, gateway.index_log_bytes, 0)
    return _without_data(
        context,
        "update the bucket index",
        gateway.index_call_bytes,
        io,
        gateway.index_sub_write_bytes,
        reads=INDEX_READS_COUNT,
    )


def garbage_path(context: PathContext, gateway: GatewayModel, tails: int) -> Template:
    """Compile the addition of an object's tails to a list of garbage, which is an object of data."""
    entry_bytes = gateway.garbage_entry_bytes + tails * gateway.garbage_tail_bytes
    # An entry begins anywhere in a block, so that it is written with a further one on average.
    block_bytes = context.models.store.min_alloc_bytes
    data_bytes = gateway.garbage_head_bytes + entry_bytes + block_bytes
    io = StoreIo(0, 0, gateway.garbage_log_bytes, data_bytes)
    return _without_data(
        _with_index_costs(context, gateway),
        "note garbage",
        entry_bytes,
        io,
        gateway.garbage_sub_write_bytes + entry_bytes,
        reads=INDEX_READS_COUNT,
    )


def remove_path(
    context: PathContext, gateway: GatewayModel, size_bytes: int
) -> Template:
    """Compile the removal of an object of a size [B]: a transaction without data on all members.

    In a coded pool, the removal passes the pipeline of its placement group like a write. Until they roll
    forward, members keep the object under another name: they write its onode again, with its attributes, and
    the checksums and extents of its blocks.

    References
    ----------
    Ceph v20.2, ``src/osd/ECTransaction.cc`` (``Generate::process_init``: a removed object is renamed),
    ``src/os/bluestore/BlueStore.cc`` (``_rename``: all shards of the extent map are dirty).
    """
    io = StoreIo(0, 0, gateway.remove_log_bytes, 0)
    return _without_data(
        context,
        f"remove {context.name}",
        0,
        io,
        gateway.remove_sub_write_bytes,
        kept_bytes=_kept_bytes(context, gateway, size_bytes),
    )


def _kept_bytes(
    context: PathContext, gateway: GatewayModel, size_bytes: int
) -> dict[int, int]:
    """Return what each member writes again to keep a removed object of a size [B]: nothing in copies."""
    kept = dict.fromkeys(context.members, 0)
    if not context.erasure:
        return kept
    for shard in context.attribute_shards & kept.keys():
        kept[shard] += gateway.attributes_bytes
    if not size_bytes:
        return kept
    stored = context.plan_write(
        offset_bytes=0, length_bytes=size_bytes, object_size_bytes=0
    )
    block_bytes = context.models.store.min_alloc_bytes
    for extent in stored.writes:
        blocks = -(-extent.length_bytes // block_bytes)
        kept[extent.shard] += blocks * gateway.kept_block_log_bytes
    return kept


def _with_index_costs(context: PathContext, gateway: GatewayModel) -> PathContext:
    """Return the context of a transaction that writes keys."""
    cpu = context.models.cpu
    cpu = replace(
        cpu,
        store_transaction_ns=cpu.store_transaction_ns + gateway.index_transaction_ns,
        kv_transaction_ns=cpu.kv_transaction_ns + gateway.index_kv_ns,
    )
    return replace(context, models=replace(context.models, cpu=cpu))


def _without_data(
    context: PathContext,
    name: str,
    payload_bytes: int,
    io: StoreIo,
    sub_write_bytes: int,
    *,
    reads: int = 0,
    kept_bytes: Mapping[int, int] = MappingProxyType({}),
) -> Template:
    """Compile a write without data of a client: a transaction of one kind on all members.

    Parameters
    ----------
    context, name
        The placement group, and the name of the path.
    payload_bytes
        Arguments of the operation [B].
    io
        What the transaction writes on each member.
    sub_write_bytes
        Size of the message that carries the transaction [B].
    reads
        Pieces of the object that the primary reads first [count].
    kept_bytes
        Bytes that each member logs in addition [B].
    """
    cpu = context.models.cpu
    work_ns = cpu.op_prepare_ns + reads * cpu.store_read_ns
    plan = context.plan_write(
        offset_bytes=0, length_bytes=_NOMINAL_BYTES, object_size_bytes=0
    )
    plan = replace(plan, encode_stripes=0, encode_data_bytes=0)
    messages = replace(
        context.models.messages,
        sub_write_header_bytes=sub_write_bytes,
        ec_sub_write_extra_bytes=0,
    )
    stage = Stage(
        GraphBuilder(name),
        replace(context, models=replace(context.models, messages=messages)),
    )
    writes = {
        member: (0, replace(io, log_bytes=io.log_bytes + kept_bytes.get(member, 0)))
        for member in context.members
    }
    if context.erasure and stage.models.pg_lock.scope == "dispatch":
        ticket = enter_pipeline(stage, payload_bytes)
        turn = stage.graph.turn(
            ticket, after=[ticket], label="turn in the pipeline", phase=Phase.LOCK
        )
        finished = store.commit_all(
            stage, writes, *encode_and_send(stage, plan, writes, turn)
        )
        forward = roll_forward_path(context, tuple(context.members))
        return leave_pipeline(stage, ticket, [finished], finished, forward)
    step = stage.lock(stage.request(payload_bytes))
    if not stage.keeps_thread:
        step = stage.primary_cpu(work_ns, [step], "dispatch")
        work_ns = 0
    sent, prepared = encode_and_send(
        stage, plan, writes, step, first_ns=work_ns, after_reply=True
    )
    scope = stage.context.lock_scope
    if scope == "dispatch":
        stage.unlock(sent)
    finished = store.commit_all(stage, writes, sent, prepared)
    if scope == "commit":
        finished = stage.unlock(finished)
    reply = stage.reply(0, finished)
    if context.erasure:
        store.roll_forward(stage, writes, finished)
    return stage.graph.finish(reply=reply)

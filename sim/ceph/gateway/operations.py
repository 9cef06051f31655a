"""RADOS operations that only the gateway sends: reads of attributes, updates and reads of a bucket index."""

from __future__ import annotations

from dataclasses import replace

from stripesim.models.object_store.gateway import GatewayModel
from stripesim.models.object_store.store import StoreIo
from stripesim.models.pg_lock import PgLockModel
from stripesim.sim.ceph.paths import store
from stripesim.sim.ceph.paths.context import ObjectExtent, PathContext
from stripesim.sim.ceph.paths.stage import Stage
from stripesim.sim.ceph.paths.store import encode_and_send
from stripesim.sim.engine.graph import GraphBuilder, Template

#: Arguments of a class method: name of the object, tag and flags [B].
CALL_BYTES = 200
#: Pieces of an index object that a method reads before it writes: the header and the object's entry [count].
INDEX_READS_COUNT = 2
#: Data that names the members of a write that carries none [B].
_NOMINAL_BYTES = 1


def head_context(context: PathContext, gateway: GatewayModel) -> PathContext:
    """Return the context of reads of a head, whose attributes the primary reads and decodes as well."""
    cpu = context.models.cpu
    cpu = replace(cpu, op_prepare_ns=cpu.op_prepare_ns + gateway.head_read_ns)
    return replace(context, models=replace(context.models, cpu=cpu))


def attributes_path(
    context: PathContext, *, returned_bytes: int, reads: int = 1
) -> Template:
    """Compile a read of attributes or of keys at the primary, from memory, without data of the object."""
    cpu = context.models.cpu
    stage = Stage(GraphBuilder(f"read attributes {context.name}"), context)
    step = stage.lock(stage.request(0, returned_bytes))
    work_ns = cpu.op_prepare_ns + reads * cpu.store_read_ns
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
    exclusive
        True if the update locks its shard until all replicas have committed it.
    """
    cpu = context.models.cpu
    context = _with_index_costs(context, gateway)
    if exclusive:
        lock = PgLockModel(scope="commit", provenance={})
        context = replace(context, models=replace(context.models, pg_lock=lock))
    work_ns = cpu.op_prepare_ns + INDEX_READS_COUNT * cpu.store_read_ns
    log_bytes = gateway.index_entry_bytes
    return _without_data(
        context, "update the bucket index", CALL_BYTES, work_ns, log_bytes
    )


def remove_path(context: PathContext) -> Template:
    """Compile the removal of an object: a transaction without data on all members."""
    work_ns = context.models.cpu.op_prepare_ns
    return _without_data(context, f"remove {context.name}", CALL_BYTES, work_ns, 0)


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
    context: PathContext, name: str, payload_bytes: int, work_ns: float, log_bytes: int
) -> Template:
    """Compile a write that changes only metadata, on all members."""
    models = context.models
    extent = ObjectExtent(
        offset_bytes=0,
        length_bytes=_NOMINAL_BYTES,
        object_size_bytes=0,
    )
    plan = context.plan_write(**extent)
    plan = replace(plan, encode_stripes=0, encode_data_bytes=0)
    metadata = models.store.metadata_log_bytes(erasure=context.erasure)
    io = StoreIo(0, 0, metadata + log_bytes, 0)
    writes = dict.fromkeys(context.members, (log_bytes, io))
    stage = Stage(GraphBuilder(name), context)
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
    return stage.graph.finish(reply=stage.reply(0, finished))

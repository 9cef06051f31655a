"""Updates of an image's object map, and writes that wait for one."""

from dataclasses import replace

from stripesim.models.object_store.store import DEFERRED
from stripesim.models.pg_lock import PgLockModel
from stripesim.sim.ceph import roles
from stripesim.sim.ceph.object_maps import (
    CALL_BYTES,
    HEADER_BYTES,
    READS_COUNT,
    ObjectMaps,
)
from stripesim.sim.ceph.paths import store
from stripesim.sim.ceph.paths.context import ObjectExtent, PathContext
from stripesim.sim.ceph.paths.stage import Stage
from stripesim.sim.engine.graph import NO_SHARD, Template, chained
from stripesim.sim.engine.graph_builder import GraphBuilder


def object_map_path(
    context: PathContext, maps: ObjectMaps, *, data_roles: int
) -> Template:
    """Compile one update of an object map, from the client's request to its reply.

    Parameters
    ----------
    context
        State of a placement group of the pool that holds the map.
    maps
        The maps.
    data_roles
        Number of roles of the pool that holds the image's data. The roles of the map's OSDs follow them.

    Notes
    -----
    The order of steps is that of a replicated write. The primary first reads the part of the map that the
    update rewrites, from memory, because the update before it has just used it.

    Ceph locks an object exclusively for an operation that reads and writes it, and unlocks it when all
    replicas have committed and applied the write. From v16.2.15, v17.2.8 and v18.2.4 on, methods of classes
    no longer count as reads of data, and share the lock with each other. One simplification: an operation
    that waits for the lock takes no thread. In Ceph it is dequeued once more.

    References
    ----------
    Ceph v11.2.0, ``src/osd/PrimaryLogPG.h`` (``get_rw_locks``), ``src/osd/PrimaryLogPG.cc`` (``eval_repop``,
    ``remove_repop``), ``src/cls/rbd/cls_rbd.cc`` (``object_map_update``). Ceph v16.2.15, ``may_read_data`` in
    ``src/osd/osd_op_util.cc``.
    """
    if maps.exclusive:
        lock = PgLockModel(scope="commit", provenance={})
        models = replace(context.models, pg_lock=lock)
        context = replace(context, models=models)
    models = context.models
    extent = ObjectExtent(
        offset_bytes=HEADER_BYTES,
        length_bytes=maps.update_bytes,
        object_size_bytes=HEADER_BYTES + maps.map_bytes + maps.update_bytes,
    )
    plan = context.plan_write(**extent)
    unit_states = None
    if models.store.deferred_batch_count:
        # The update before it has left these units in the batch of deferred writes.
        unit_states = (DEFERRED, DEFERRED)
    graph = GraphBuilder("object map update")
    stage = Stage(graph, context)
    step = stage.request(CALL_BYTES)
    if maps.exclusive:
        step = stage.lock(step)
    work_ns = models.cpu.op_prepare_ns + READS_COUNT * models.cpu.store_read_ns
    if not stage.keeps_thread:
        step = stage.primary_cpu(work_ns, [step], "dispatch")
        work_ns = 0
    writes = store.shard_writes(context, plan, extent["object_size_bytes"], unit_states)
    sent, prepared = store.encode_and_send(
        stage, plan, writes, step, first_ns=work_ns, after_reply=True
    )
    finished = store.commit_all(stage, writes, sent, prepared)
    if maps.exclusive:
        finished = stage.unlock(finished)
    update = graph.finish(reply=stage.reply(0, finished))
    return replace(
        update,
        roles=roles.of_map(update.roles, data_roles),
        labels=tuple(f"object map: {label}" for label in update.labels),
        shards=(NO_SHARD,) * update.steps,
    )


def after_object_map(update: Template, write: Template) -> Template:
    """Compile a write that begins when an update of the object map has completed.

    Parameters
    ----------
    update
        An `object_map_path`.
    write
        The path of a write.
    """
    return chained(update, write, name=f"{write.name}, first write")

"""The write: client to primary, read what is needed, encode, sub-writes, commits, reply."""

from typing import Unpack

from stripesim.sim.ceph.paths import store
from stripesim.sim.ceph.paths.context import ObjectExtent, PathContext, by_shard
from stripesim.sim.ceph.paths.stage import Stage
from stripesim.sim.ceph.phases import Phase
from stripesim.sim.engine.graph import NO_ROLE, GraphBuilder, Template


def write_path(
    context: PathContext,
    *,
    cached_stripes: frozenset[int] = frozenset(),
    unit_states: tuple[int, int] | None = None,
    **extent: Unpack[ObjectExtent],
) -> Template:
    """Compile one write.

    `cached_stripes` lie in the read caches and need no device read; `unit_states` is what a store knows of
    the first and last unit of a replica's write.

    Order: lock, dispatch, reads of partial stripes, (decode,) encode, sub-writes to all members at once, each
    member's transaction, all commits, unlock, reply. The lock is given back at the last commit (`scope =
    "commit"`) or when the sub-writes have left (`"dispatch"`). After the reply come, waited for by nobody:
    deferred writes, background work of the stores, and for erasure codes the roll-forward round, which goes
    out whenever no other write of the placement group is in the pipeline; with a lock that is held to the
    commit that is always.

    With `scope = "dispatch"` erasure-coded writes take `pipelined_write_path` instead.

    See Ceph v11.2.0, ``src/osd/PrimaryLogPG.cc``, ``src/osd/ECBackend.cc`` (``start_rmw``,
    ``try_reads_to_commit``, ``try_finish_rmw``), ``src/osd/ReplicatedBackend.cc``.
    """
    cpu = context.models.cpu
    scope = context.models.pg_lock.scope
    size_bytes = extent["object_size_bytes"]
    plan = context.plan_write(**extent)
    at = f"{extent['length_bytes']} B at {extent['offset_bytes']}"
    graph = GraphBuilder(f"write {context.name} {at}")
    stage = Stage(graph, context)
    step = stage.lock(stage.request(extent["length_bytes"]))
    reads = by_shard(plan.reads)
    work_ns = cpu.op_prepare_ns + context.remote(reads) * cpu.sub_op_send_ns
    if reads or not stage.keeps_thread:
        step = stage.primary_cpu(work_ns, [step], "dispatch")
        work_ns = 0
    if reads:
        stripes = [
            stripe for first, stop in plan.read_stripes for stripe in range(first, stop)
        ]
        sources = store.stripe_sources(context, plan, stripes, cached_stripes)
        step = store.gather(stage, sources, step, "stripe read")

    writes = store.shard_writes(context, plan, size_bytes, unit_states)
    sent, prepared = store.encode_and_send(
        stage, plan, writes, step, first_ns=work_ns, after_reply=True
    )
    # What is overwritten is saved first, so that it can be brought back.
    first, stop = plan.write_stripes
    overwritten = max(0, min(stop, context.geometry.stripe_count(size_bytes)) - first)
    wait_ns = overwritten * cpu.ec_rollback_wait_ns
    if wait_ns:
        sent = graph.delay(
            NO_ROLE, wait_ns, after=[sent], label="save old stripes", phase=Phase.PAUSE
        )
    if scope == "dispatch":
        stage.unlock(sent)
    finished = store.commit_all(stage, writes, sent, prepared)
    if scope == "commit":
        finished = stage.unlock(finished)
    reply = stage.reply(0, finished)
    if context.erasure and scope == "commit":
        store.roll_forward(stage, writes, finished)
    return graph.finish(reply=reply)

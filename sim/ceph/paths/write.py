"""Writes through the primary, from the client's request to the last commit and the reply."""

from typing import Unpack

from stripesim.sim.ceph.paths import store
from stripesim.sim.ceph.paths.context import ObjectExtent, PathContext, by_shard
from stripesim.sim.ceph.paths.stage import Stage
from stripesim.sim.ceph.phases import Phase
from stripesim.sim.engine.graph import NO_ROLE, Template
from stripesim.sim.engine.graph_builder import GraphBuilder


def write_path(
    context: PathContext,
    *,
    cached_stripes: frozenset[int] = frozenset(),
    unit_states: tuple[int, int] | None = None,
    **extent: Unpack[ObjectExtent],
) -> Template:
    """Compile one write under the lock of its placement group.

    Parameters
    ----------
    context
        State of the placement group.
    cached_stripes
        Stripes in the read caches, which need no device reads.
    unit_states
        States of the first and last unit of a replica's write, or None if unknown.
    **extent
        Extent in the object, and the object's size [B].

    Notes
    -----
    The order of steps is: lock, dispatch, read partial stripes, decode if necessary, encode, send sub-writes
    to all members in parallel, run the members' transactions, collect all commits, unlock, reply. The lock is
    released at the last commit (`scope = "commit"`) or once the sub-writes have left (`scope = "dispatch"`).

    Deferred writes and the roll-forward round of erasure codes follow the reply without delaying any request.
    Ceph sends that round when the placement group's pipeline has no other write, which is always the case
    with a lock held until the commit.

    With `scope = "dispatch"` erasure-coded writes use `pipelined_write_path`.

    References
    ----------
    Ceph v11.2.0, ``src/osd/PrimaryLogPG.cc``, ``src/osd/ECBackend.cc`` (``start_rmw``,
    ``try_reads_to_commit``, ``try_finish_rmw``), ``src/osd/ReplicatedBackend.cc``.
    """
    cpu = context.models.cpu
    scope = context.lock_scope
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
    # Overwritten stripes are first saved for rollback.
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

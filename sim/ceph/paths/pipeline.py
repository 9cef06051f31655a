"""Erasure-coded writes of Ceph since Luminous: one in-order pipeline per placement group."""

from collections.abc import Sequence
from typing import Unpack

from stripesim.models.coding import WritePlan
from stripesim.sim.ceph import roles
from stripesim.sim.ceph.paths import store
from stripesim.sim.ceph.paths.context import ObjectExtent, PathContext, by_shard
from stripesim.sim.ceph.paths.stage import Stage
from stripesim.sim.ceph.paths.store import roll_forward
from stripesim.sim.ceph.phases import Phase
from stripesim.sim.engine.conditions import alone, pinned
from stripesim.sim.engine.graph import Template
from stripesim.sim.engine.graph_builder import GraphBuilder

# Key ranges of a request: the stripes written, and the partial stripe that the write requests first.
WRITTEN = 0
PARTIAL = 1


def pipelined_write_path(
    context: PathContext,
    *,
    cached_stripes: frozenset[int],
    roll_forward: Template,
    **extent: Unpack[ObjectExtent],
) -> Template:
    """Compile one erasure-coded write in the pipeline of its placement group.

    Parameters
    ----------
    context
        State of the placement group.
    cached_stripes
        Stripes in the read caches, which need no device reads.
    roll_forward
        The `roll_forward_path` of the same context.
    **extent
        Extent in the object, and the object's size [B].

    Notes
    -----
    The template needs two key ranges: the stripes written, and the partial stripe below the object's end that
    the write requests first (the head if it is partial, else the tail).

    At dispatch an operation enters the pipeline and pins the stripes that it writes. Until it finishes, later
    writes take them from the primary's memory. A partial stripe that no write has pinned is gathered from k
    shards. Operations overlap, but each encodes only after all operations ahead of it, because they may write
    the same stripes. An operation that leaves the pipeline empty is followed by a roll-forward, a
    metadata transaction on all members.

    A write with two partial stripes first checks if everything it writes is pinned, then if the head is.
    Omitted: a pinned tail after unpinned stripes, which takes two writes in flight that happen to overlap.

    References
    ----------
    Ceph v16.2.15, ``src/osd/ECBackend.cc`` (``start_rmw``, ``try_state_to_reads``,
    ``try_reads_to_commit``, ``try_finish_rmw``), ``src/osd/ExtentCache.h``.
    """
    plan = context.plan_write(**extent)
    at = f"{extent['length_bytes']} B at {extent['offset_bytes']}"
    stage = Stage(GraphBuilder(f"write {context.name} {at}, pipelined"), context)
    ticket = enter_pipeline(stage, extent["length_bytes"])
    pin = stage.graph.pin(WRITTEN, after=[ticket], label="pin the stripes")
    step = _read_unpinned(stage, plan, cached_stripes, ticket)
    turn = stage.graph.turn(
        ticket, after=[pin, step], label="turn in the pipeline", phase=Phase.LOCK
    )
    writes = store.shard_writes(context, plan, extent["object_size_bytes"])
    finished = store.commit_all(
        stage, writes, *store.encode_and_send(stage, plan, writes, turn)
    )
    unpinned = stage.graph.unpin(pin, after=[finished], label="unpin the stripes")
    return leave_pipeline(stage, ticket, [unpinned], finished, roll_forward)


def enter_pipeline(stage: Stage, length_bytes: int) -> int:
    """Send a write to the primary, enter the pipeline of its group, and return the ticket."""
    step = stage.request(length_bytes)
    step = stage.primary_cpu(stage.models.cpu.op_prepare_ns, [step], "dispatch")
    return stage.graph.enter(roles.PG_PIPELINE, after=[step], label="into the pipeline")


def leave_pipeline(
    stage: Stage,
    ticket: int,
    unpinned: Sequence[int],
    finished: int,
    roll_forward: Template,
) -> Template:
    """Leave the pipeline, reply to the client, and roll forward if the pipeline is empty."""
    graph = stage.graph
    label = "roll forward if the pipeline has drained"
    spawned = graph.spawn(roll_forward, after=unpinned, label=label, test=alone(ticket))
    graph.leave(ticket, after=[spawned], label="out of the pipeline")
    return graph.finish(reply=stage.reply(0, finished))


def roll_forward_path(context: PathContext, shards: Sequence[int]) -> Template:
    """Compile the round that makes members discard their rollback information."""
    graph = GraphBuilder(f"roll forward {context.name}")
    known = roll_forward(Stage(graph, context), shards, graph.issue)
    return graph.finish(reply=graph.join(known, label="all have forgotten"))


def _read_unpinned(
    stage: Stage, plan: WritePlan, cached_stripes: frozenset[int], after: int
) -> int:
    """Gather the partial stripes that no write in flight has pinned, and return the step of arrival."""
    partial = [
        stripe for first, stop in plan.read_stripes for stripe in range(first, stop)
    ]
    if not partial:
        return after

    def read(stripes: list[int], after: int) -> int:
        asked_ns = (
            stage.context.remote(by_shard(plan.reads)) * stage.models.cpu.sub_op_send_ns
        )
        step = stage.primary_cpu(asked_ns, [after], "ask for stripes")
        sources = store.stripe_sources(stage.context, plan, stripes, cached_stripes)
        return store.gather(stage, sources, step, "stripe read")

    graph = stage.graph
    if len(partial) == 1:
        yes, no = graph.branch(
            pinned(PARTIAL), after=[after], label="stripe in flight?"
        )
        return graph.merge([yes, read(partial, no)], label="stripe here")
    head, tail = partial
    all_held, some_lack = graph.branch(
        pinned(WRITTEN), after=[after], label="all stripes in flight?"
    )
    head_held, none_held = graph.branch(
        pinned(PARTIAL), after=[some_lack], label="head in flight?"
    )
    lacking = graph.merge(
        [read([tail], head_held), read([head, tail], none_held)],
        label="head or tail here",
    )
    return graph.merge([all_held, lacking], label="stripes here")

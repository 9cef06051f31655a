"""Writes to optimised erasure-coded pools: only affected shards and parities, page by page."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Unpack

from stripesim.models.coding import PAGE_BYTES, ShardExtent, WritePlan
from stripesim.models.object_store.store import StoreIo
from stripesim.sim.ceph.paths.context import (
    ObjectExtent,
    PathContext,
    by_shard,
    total_bytes,
)
from stripesim.sim.ceph.paths.pipeline import enter_pipeline, leave_pipeline
from stripesim.sim.ceph.paths.stage import Stage
from stripesim.sim.ceph.paths.store import (
    commit_all,
    encode_and_send,
    gather,
    shard_writes,
)
from stripesim.sim.ceph.phases import Phase
from stripesim.sim.engine.conditions import pinned
from stripesim.sim.engine.graph import Template
from stripesim.sim.engine.graph_builder import GraphBuilder

# Pages by shard and number, counted from the first stripe that a request's shape knows.
Pages = frozenset[tuple[int, int]]

# Key ranges of a request: the pages written on any shard, and the object.
ROWS = 0
OBJECT = 1


def optimised_write_path(
    context: PathContext,
    *,
    roll_forward: Template,
    held: Pages = frozenset(),
    **extent: Unpack[ObjectExtent],
) -> Template:
    """Compile one write to an optimised pool.

    Parameters
    ----------
    context
        State of the placement group.
    roll_forward
        The `roll_forward_path` of the same context for the shards from `written_shards`.
    held
        Pages that the primary holds from earlier writes, which are not read.
    **extent
        Extent in the object, and the object's size [B].

    Notes
    -----
    The template needs two key ranges: the pages written, and the object.

    Steps follow the order of `pipelined_write_path`, but fewer shards take part (see
    `stripesim.models.coding.optimised.plan_write`). Pages held by writes in flight are not read. If such
    writes hold other pages of the object, the object is in the extent cache, and parities are reconstructed
    instead of updated with deltas. The write waits only for shards with a transaction, and only those roll
    forward.

    Deviation: pages in flight are assumed to be cached for all shards.

    References
    ----------
    Ceph main (0009f3f5), ``src/osd/ECTransaction.cc``, ``src/osd/ECCommon.cc`` (``RMWPipeline``),
    ``src/osd/ECExtentCache.h``.
    """
    plan, in_cache = write_plans(context, held, **extent)
    at = f"{extent['length_bytes']} B at {extent['offset_bytes']}"
    graph = GraphBuilder(f"write {context.name} {at}, {plan.method}")
    stage = Stage(graph, context)
    ticket = enter_pipeline(stage, extent["length_bytes"])
    pins = [
        graph.pin(ROWS, after=[ticket], label="pin the pages"),
        graph.pin(OBJECT, after=[ticket], label="pin the object"),
    ]
    old_pages = _old_pages(stage, plan, in_cache, ticket)
    turn = graph.turn(
        ticket, after=[*pins, old_pages], label="turn in the pipeline", phase=Phase.LOCK
    )
    # A shard without data saves nothing for a rollback.
    metadata = StoreIo(0, 0, context.models.store.metadata_log_bytes(erasure=False), 0)
    writes = shard_writes(context, plan, extent["object_size_bytes"])
    writes |= dict.fromkeys(plan.metadata_shards, (0, metadata))
    finished = commit_all(stage, writes, *encode_and_send(stage, plan, writes, turn))
    unpinned = [graph.unpin(pin, after=[finished], label="unpin") for pin in pins]
    return leave_pipeline(stage, ticket, unpinned, finished, roll_forward)


def write_plans(
    context: PathContext, held: Pages, **extent: Unpack[ObjectExtent]
) -> tuple[WritePlan, WritePlan]:
    """Plan a write alone and beside writes in flight to its object, without reads of held pages."""
    alone = context.plan_write(**extent)
    beside_others = context.plan_write(**extent, in_cache=True)
    return _without(alone, held), _without(beside_others, held)


def _without(plan: WritePlan, held: Pages) -> WritePlan:
    """Return a plan that does not read some pages."""
    if not held:
        return plan
    lacking = [run for extent in plan.reads for run in _lacking(extent, held)]
    return replace(plan, reads=tuple(lacking))


def _lacking(extent: ShardExtent, held: Pages) -> Iterator[ShardExtent]:
    """Yield the runs of an extent between held pages."""
    start = extent.offset_bytes
    end_bytes = start + extent.length_bytes
    for page in range(start // PAGE_BYTES, -(-end_bytes // PAGE_BYTES)):
        if (extent.shard, page) not in held:
            continue
        if page * PAGE_BYTES > start:
            yield ShardExtent(extent.shard, start, page * PAGE_BYTES - start)
        start = (page + 1) * PAGE_BYTES
    if start < end_bytes:
        yield ShardExtent(extent.shard, start, end_bytes - start)


def written_shards(plan: WritePlan) -> tuple[int, ...]:
    """Return the shards that get a transaction, with or without data."""
    return tuple(
        sorted({extent.shard for extent in plan.writes} | set(plan.metadata_shards))
    )


def _old_pages(stage: Stage, plan: WritePlan, in_cache: WritePlan, after: int) -> int:
    """Gather the pages to read, except those held by writes in flight, and return the step of arrival."""
    graph = stage.graph
    if not plan.reads and not in_cache.reads:
        return after
    held, lacking = graph.branch(pinned(ROWS), after=[after], label="pages in flight?")
    if plan.method == in_cache.method:
        return graph.merge(
            [held, _gather(stage, plan.reads, lacking)], label="pages here"
        )
    cached, cold = graph.branch(
        pinned(OBJECT), after=[lacking], label="object in flight?"
    )
    read = graph.merge(
        [_gather(stage, in_cache.reads, cached), _gather(stage, plan.reads, cold)],
        label="pages read",
    )
    return graph.merge([held, read], label="pages here")


def _gather(stage: Stage, reads: tuple[ShardExtent, ...], after: int) -> int:
    if not reads:
        return after
    shards = by_shard(reads)
    asked_ns = stage.context.remote(shards) * stage.models.cpu.sub_op_send_ns
    step = stage.primary_cpu(asked_ns, [after], "ask for pages")
    sources = {
        shard: (
            total_bytes(extents),
            sum(
                stage.models.store.read_bytes(e.offset_bytes, e.length_bytes)
                for e in extents
            ),
        )
        for shard, extents in shards.items()
    }
    return gather(stage, sources, step, "page read")

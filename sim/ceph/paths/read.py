"""Reads through the primary: from one replica, or gathered from shards and decoded if any are missing.

Reads that ask for more than they need are here, too: of shards, and of copies.
"""

from collections.abc import Iterable, Mapping
from typing import Unpack

from stripesim.models.coding import PAGE_BYTES, ReadPlan, ShardExtent
from stripesim.models.coding.optimised.extents import ByteRuns, union
from stripesim.sim.ceph.paths.context import (
    ObjectExtent,
    PathContext,
    by_shard,
    total_bytes,
)
from stripesim.sim.ceph.paths.stage import CpuWork, Stage
from stripesim.sim.ceph.paths.store import decoding_ns, fetch, gather, local_read
from stripesim.sim.engine.conditions import completed
from stripesim.sim.engine.graph import Template
from stripesim.sim.engine.graph_builder import GraphBuilder


def read_path(
    context: PathContext,
    *,
    cached_head_bytes: int = 0,
    cached_tail_bytes: int = 0,
    **extent: Unpack[ObjectExtent],
) -> Template:
    """Compile one read through the primary.

    Parameters
    ----------
    context
        State of the placement group.
    cached_head_bytes, cached_tail_bytes
        Cached part of the beginning and end of the data at each source [B].
    **extent
        Extent in the object, and the object's size [B].

    Notes
    -----
    A replica is read synchronously: thread and lock are held during the device read. A stripe is gathered at
    the primary from k shards. With `scope = "commit"` the lock is held until all shards have arrived,
    otherwise only during dispatch at the primary.

    With `Models.extra_reads`, the primary asks for k and that many more shards, each at all rows that hold
    wanted bytes. The read goes on once the wanted shards or any k have arrived. It decodes if a wanted one is
    late, at the cost of as many erasures as there are extra shards. Late answers cost as others do.
    """
    plan = context.plan_read(**extent)
    graph = GraphBuilder(
        f"read {context.name} {extent['length_bytes']} B at {extent['offset_bytes']}"
    )
    stage = Stage(graph, context)
    step = stage.lock(stage.request(0, plan.returned_bytes))
    cached = {
        "cached_head_bytes": cached_head_bytes,
        "cached_tail_bytes": cached_tail_bytes,
    }
    if context.erasure:
        step = _gather(
            stage, extent, plan, device_extents(context, **cached, **extent), step
        )
    else:
        step = _replica(stage, plan, sum(cached.values()), step)
    return graph.finish(reply=stage.reply(plan.returned_bytes, step))


def fastest_copy_path(
    context: PathContext,
    *,
    cached_head_bytes: int = 0,
    cached_tail_bytes: int = 0,
    **extent: Unpack[ObjectExtent],
) -> Template:
    """Compile one read that the client sends to several replicas, of which the first reply counts.

    Parameters are those of `read_path`.

    The client submits one request and sends it to `Models.extra_reads` further copies. At these OSDs the read
    waits for a worker thread, not for the lock of their placement group. All replies are received.
    """
    plan = context.plan_read(**extent)
    at = f"{extent['length_bytes']} B at {extent['offset_bytes']}"
    graph = GraphBuilder(f"read the fastest copy {context.name} {at}")
    stage = Stage(graph, context)
    cached_bytes = cached_head_bytes + cached_tail_bytes
    submitted = stage.submit(0, plan.returned_bytes)
    replies = []
    for shard in context.asked_shards([context.primary]):
        if shard != context.primary:
            replies.append(_other_copy(stage, plan, shard, cached_bytes, submitted))
            continue
        stage.asks(0)
        header_bytes = stage.models.messages.request_header_bytes
        step = stage.lock(stage.client_out(header_bytes, submitted))
        step = _replica(stage, plan, cached_bytes, step)
        replies.append(stage.reply(plan.returned_bytes, step))
    return graph.finish(reply=graph.join(replies, first=1, label="first copy here"))


def local_copy_path(
    context: PathContext,
    *,
    cached_head_bytes: int = 0,
    cached_tail_bytes: int = 0,
    **extent: Unpack[ObjectExtent],
) -> Template:
    """Compile one read of the copy that `PathContext.reader` names, from its OSD to the client.

    Parameters are those of `read_path`. The read waits for a worker thread, not for the lock of its placement
    group. Omitted: the retry at the primary of a read whose object has a write in flight.

    References
    ----------
    Ceph v16.2.15, ``src/osdc/Objecter.cc`` (``_calc_target``, ``CEPH_OSD_FLAG_LOCALIZE_READS``),
    ``src/osd/PrimaryLogPG.cc`` (``do_op``: ``can_serve_replica_read``).
    """
    assert context.reader is not None
    plan = context.plan_read(**extent)
    at = f"{extent['length_bytes']} B at {extent['offset_bytes']}"
    graph = GraphBuilder(f"read copy {context.reader} {context.name} {at}")
    stage = Stage(graph, context)
    cached_bytes = cached_head_bytes + cached_tail_bytes
    submitted = stage.submit(0, plan.returned_bytes)
    reply = _other_copy(stage, plan, context.reader, cached_bytes, submitted)
    return graph.finish(reply=reply)


def _other_copy(
    stage: Stage, plan: ReadPlan, shard: int, cached_bytes: int, submitted: int
) -> int:
    """Read a copy of another OSD than the primary, without the lock, and return the arrival of its reply."""
    messages = stage.models.messages
    cpu = stage.models.cpu
    stage.asks(0)
    step = stage.client_out(messages.request_header_bytes, submitted, shard)
    work_ns = cpu.op_prepare_ns + cpu.store_read_ns
    device_bytes = _replica_bytes(stage.context, plan, cached_bytes)
    step, _ = local_read(stage, shard, work_ns, device_bytes, step, "read a copy")
    size_bytes = messages.reply_bytes + plan.returned_bytes
    return stage.client_back(size_bytes, step, shard)


def _replica_bytes(context: PathContext, plan: ReadPlan, cached_bytes: int) -> int:
    """Return the size of the device read of a replica [B]."""
    store = context.models.store
    size_bytes = sum(
        store.read_bytes(e.offset_bytes, e.length_bytes) for e in plan.reads
    )
    return max(0, size_bytes - cached_bytes)


def _replica(stage: Stage, plan: ReadPlan, cached_bytes: int, after: int) -> int:
    """Read the primary's replica and return the step that the reply follows."""
    cpu = stage.models.cpu
    device_bytes = _replica_bytes(stage.context, plan, cached_bytes)
    work_ns = cpu.op_prepare_ns + cpu.store_read_ns
    primary = stage.context.primary
    answered, back = local_read(
        stage, primary, work_ns, device_bytes, after, "read", in_group=True
    )
    unlocked = stage.unlock(back)
    if answered == back:
        return unlocked
    return answered


def device_reads(
    context: PathContext,
    *,
    cached_head_bytes: int,
    cached_tail_bytes: int,
    **extent: Unpack[ObjectExtent],
) -> dict[int, int]:
    """Return the size of each shard's device read for an erasure-coded object [B].

    Parameters are those of `device_extents`.
    """
    extents = device_extents(
        context,
        cached_head_bytes=cached_head_bytes,
        cached_tail_bytes=cached_tail_bytes,
        **extent,
    )
    return _device_bytes(context, extents)


def _device_bytes(
    context: PathContext, extents: Mapping[int, Iterable[ShardExtent]]
) -> dict[int, int]:
    """Return the size of each shard's device read [B]."""
    store = context.models.store
    return {
        shard: sum(store.read_bytes(one.offset_bytes, one.length_bytes) for one in own)
        for shard, own in extents.items()
    }


def device_extents(
    context: PathContext,
    *,
    cached_head_bytes: int,
    cached_tail_bytes: int,
    **extent: Unpack[ObjectExtent],
) -> dict[int, list[ShardExtent]]:
    """Return the extents of an erasure-coded object that devices read, by shard.

    Parameters are those of `read_path`. Unless whole stripes are read, the cached parts refer to the extent
    in the object.
    """
    if context.models.ec.reads == "stripes":
        # Whole stripes are one contiguous run of chunks on a shard. Its ends may be cached.
        cached_bytes = cached_head_bytes + cached_tail_bytes
        return {
            shard: [
                ShardExtent(
                    shard,
                    extents[0].offset_bytes + cached_head_bytes,
                    total_bytes(extents) - cached_bytes,
                )
            ]
            for shard, extents in by_shard(context.plan_read(**extent).reads).items()
        }
    block_bytes = context.geometry.stripe_unit_bytes
    if context.models.ec.reads == "pages":
        block_bytes = PAGE_BYTES
    start_bytes = extent["offset_bytes"]
    end_bytes = start_bytes + extent["length_bytes"]
    start_bytes = max(
        start_bytes, start_bytes // block_bytes * block_bytes + cached_head_bytes
    )
    end_bytes = min(
        end_bytes, -(-end_bytes // block_bytes) * block_bytes - cached_tail_bytes
    )
    if start_bytes >= end_bytes:
        return {}
    plan = context.plan_read(
        offset_bytes=start_bytes,
        length_bytes=end_bytes - start_bytes,
        object_size_bytes=extent["object_size_bytes"],
    )
    return by_shard(plan.reads)


def _gather(
    stage: Stage,
    extent: ObjectExtent,
    plan: ReadPlan,
    devices: Mapping[int, list[ShardExtent]],
    after: int,
) -> int:
    """Gather the plan's reads at the primary and return the step that the reply follows."""
    cpu = stage.models.cpu
    context = stage.context
    scope = context.lock_scope
    reads = by_shard(plan.reads)
    asked = context.asked_shards(reads)
    work_ns = cpu.op_prepare_ns + context.remote(asked) * cpu.sub_op_send_ns
    step = stage.primary_cpu(work_ns, [after], "dispatch")
    if scope == "dispatch":
        stage.unlock(step)
    if len(asked) > len(reads):
        sizes_bytes = _rows_bytes(context, plan.reads, devices)
        step = _gather_fastest(
            stage, extent, plan, dict.fromkeys(asked, sizes_bytes), step
        )
    else:
        device_bytes = _device_bytes(context, devices)
        sources = {
            shard: (total_bytes(extents), device_bytes.get(shard, 0))
            for shard, extents in reads.items()
        }
        if sources:
            step = gather(stage, sources, step)
        step = _assemble(stage, plan, step)
    if scope == "commit":
        return stage.unlock(step)
    return step


def _rows_bytes(
    context: PathContext,
    reads: Iterable[ShardExtent],
    devices: Mapping[int, Iterable[ShardExtent]],
) -> tuple[int, int]:
    """Return the size of all rows that hold wanted bytes, on one shard, and of its device read [B]."""
    uncached = [one for extents in devices.values() for one in extents]
    rows_bytes = sum(stop - start for start, stop in _rows(reads))
    store = context.models.store
    device_bytes = sum(
        store.read_bytes(start, stop - start) for start, stop in _rows(uncached)
    )
    return rows_bytes, device_bytes


def _rows(extents: Iterable[ShardExtent]) -> ByteRuns:
    return union(
        (one.offset_bytes, one.end_bytes) for one in extents if one.length_bytes
    )


def _gather_fastest(
    stage: Stage,
    extent: ObjectExtent,
    plan: ReadPlan,
    sources: Mapping[int, tuple[int, int]],
    after: int,
) -> int:
    """Gather the wanted shards or any k of the sources, whichever are here first, and assemble the data."""
    graph = stage.graph
    context = stage.context
    wanted = list(by_shard(plan.reads))
    arrivals = {
        shard: fetch(stage, shard, *sizes_bytes, after, "sub-read")
        for shard, sizes_bytes in sources.items()
    }
    all_wanted = graph.join(
        [after, *(arrivals[shard] for shard in wanted)], label="wanted data here"
    )
    enough = graph.join(
        arrivals.values(), first=context.scheme.k, label="first k shards here"
    )
    enough_data = graph.join([all_wanted, enough], first=1, label="enough data here")
    if plan.decode_stripes:
        return _assemble(stage, plan, enough_data)
    extra = len(sources) - context.scheme.k
    late = frozenset(wanted[:extra])
    decoded = context.scheme.plan_read(
        **extent,
        geometry=context.geometry,
        missing=context.missing | late,
        policy=context.models.ec,
    )
    yes, no = graph.branch(
        completed(all_wanted), after=[enough_data], label="all wanted data here"
    )
    sides = [_assemble(stage, plan, yes), _assemble(stage, decoded, no)]
    return graph.merge(sides, label="data")


def _assemble(stage: Stage, plan: ReadPlan, after: int) -> int:
    """Decode missing data and prepare the reply."""
    return stage.primary_cpu(
        CpuWork(
            stage.models.cpu.op_finish_ns,
            coding_ns=decoding_ns(stage, plan),
            encode_bytes=plan.decode_data_bytes,
        ),
        [after],
        "assemble",
        after_reply=True,
    )

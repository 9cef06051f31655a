"""The direct read: a client asks the OSDs that hold the bytes, not the primary."""

from typing import Unpack

from stripesim.models.coding import ReadPlan
from stripesim.sim.ceph.paths.context import (
    ObjectExtent,
    PathContext,
    by_shard,
    total_bytes,
)
from stripesim.sim.ceph.paths.read import device_reads
from stripesim.sim.ceph.paths.stage import Stage
from stripesim.sim.ceph.paths.store import local_read
from stripesim.sim.engine.graph import GraphBuilder, Template


def can_read_directly(context: PathContext, plan: ReadPlan) -> bool:
    """Whether a client reads the shards itself: something is there to read, and all of it is up to date."""
    return (
        context.models.ec.direct_reads and bool(plan.reads) and not plan.decode_stripes
    )


def direct_read_path(
    context: PathContext,
    *,
    cached_head_bytes: int = 0,
    cached_tail_bytes: int = 0,
    **extent: Unpack[ObjectExtent],
) -> Template:
    """Compile one read that the client splits over the shards.

    Parameters are those of `read_path`.

    Each shard is asked in parallel and answers the client. If there are several and none of them is the
    primary, the object info is read on the primary beside them, to check that all show the same version; it
    is in memory. Left out: the answer that differs and is read again through the primary, as a write in
    between causes.

    See Ceph (1b0b5784), ``doc/dev/osd_internals/erasure_coding/direct_reads.rst``.
    """
    at = f"{extent['length_bytes']} B at {extent['offset_bytes']}"
    graph = GraphBuilder(f"direct read {context.name} {at}")
    stage = Stage(graph, context)
    cpu = stage.models.cpu
    messages = stage.models.messages
    shards = by_shard(context.plan_read(**extent).reads)
    device_bytes = device_reads(
        context,
        cached_head_bytes=cached_head_bytes,
        cached_tail_bytes=cached_tail_bytes,
        **extent,
    )
    submitted = stage.submit()
    arrivals = []
    for shard, extents in shards.items():
        step = stage.client_out(messages.request_header_bytes, submitted, shard)
        work_ns = cpu.op_prepare_ns + cpu.store_read_ns
        step, _ = local_read(
            stage, shard, work_ns, device_bytes.get(shard, 0), step, "direct read"
        )
        arrivals.append(
            stage.client_back(messages.reply_bytes + total_bytes(extents), step, shard)
        )
    if len(shards) > 1 and context.primary not in shards:
        step = stage.client_out(messages.request_header_bytes, submitted)
        step = stage.primary_cpu(cpu.op_prepare_ns, [step], "object info")
        arrivals.append(stage.client_back(messages.reply_bytes, step))
    return graph.finish(reply=graph.join(arrivals, label="all shards here"))

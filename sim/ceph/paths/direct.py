"""Direct reads: the client reads from the OSDs that hold the data, bypassing the primary."""

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
from stripesim.sim.engine.graph import Template
from stripesim.sim.engine.graph_builder import GraphBuilder


def can_read_directly(context: PathContext, plan: ReadPlan) -> bool:
    """Return True if a client can read the shards directly: the data exists and is all up to date."""
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

    The client reads all shards in parallel. If there are several and none is the primary's, it also reads the
    object info, which is in memory, from the primary to check that all shards have the same version.

    Omitted: the retry through the primary after a concurrent write has caused a version mismatch.

    See Ceph (1b0b5784), ``doc/dev/osd_internals/erasure_coding/direct_reads.rst``.
    """
    at = f"{extent['length_bytes']} B at {extent['offset_bytes']}"
    graph = GraphBuilder(f"direct read {context.name} {at}")
    stage = Stage(graph, context)
    cpu = stage.models.cpu
    messages = stage.models.messages
    plan = context.plan_read(**extent)
    shards = by_shard(plan.reads)
    device_bytes = device_reads(
        context,
        cached_head_bytes=cached_head_bytes,
        cached_tail_bytes=cached_tail_bytes,
        **extent,
    )
    submitted = stage.submit(0, plan.returned_bytes)
    arrivals = []
    for shard, extents in shards.items():
        stage.asks(0)
        step = stage.client_out(messages.request_header_bytes, submitted, shard)
        work_ns = cpu.op_prepare_ns + cpu.store_read_ns
        step, _ = local_read(
            stage, shard, work_ns, device_bytes.get(shard, 0), step, "direct read"
        )
        arrivals.append(
            stage.client_back(messages.reply_bytes + total_bytes(extents), step, shard)
        )
    if len(shards) > 1 and context.primary not in shards:
        stage.asks(0)
        step = stage.client_out(messages.request_header_bytes, submitted)
        step = stage.primary_cpu(cpu.op_prepare_ns, [step], "object info")
        arrivals.append(stage.client_back(messages.reply_bytes, step))
    return graph.finish(reply=graph.join(arrivals, label="all shards here"))

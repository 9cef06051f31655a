"""The scheme ``none``: a bare device without a cluster."""

from stripesim.sim.ceph import roles
from stripesim.sim.ceph.paths.context import PathContext
from stripesim.sim.ceph.paths.stage import Stage
from stripesim.sim.ceph.paths.store import ssd_read, ssd_write
from stripesim.sim.ceph.phases import Phase
from stripesim.sim.engine.graph import Template
from stripesim.sim.engine.graph_builder import GraphBuilder


def bare_path(
    context: PathContext, *, write: bool, length_bytes: int, device_bytes: int
) -> Template:
    """Compile one block-aligned transfer between a load generator and its local device."""
    graph = GraphBuilder(f"{'write' if write else 'read'} bare {length_bytes} B")
    stage = Stage(graph, context)
    step = graph.use(
        roles.CLIENT_SUBMIT,
        0,
        after=[graph.issue],
        label="client submits",
        phase=Phase.CLIENT,
    )
    if device_bytes:
        transfer = ssd_write if write else ssd_read
        step = transfer(stage, context.primary, device_bytes, step)
    return graph.finish(reply=step)

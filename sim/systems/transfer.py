"""Transfer of a message over a network, as steps of an op graph."""

from stripesim.models.nic import NicModel
from stripesim.sim.engine.graph_builder import GraphBuilder


def send_message(
    graph: GraphBuilder,
    nic: NicModel,
    size_bytes: int,
    *,
    after: int,
    ends: tuple[int, int],
    name: str,
    counter: str = "public_net_bytes",
) -> tuple[int, int]:
    """Add a message whose frames are forwarded as they arrive.

    Parameters
    ----------
    graph
        The graph to extend.
    nic
        The interface at both ends.
    size_bytes
        Payload [B], at least 1.
    after
        Step that the message waits for.
    ends
        Roles of the sending and the receiving interface.
    name
        Name of the message in the steps' labels.
    counter
        Counter of its traffic.

    Returns
    -------
    tuple of int
        The step at which the message has left, and the step at which its last frame has arrived.
    """
    sender, receiver = ends
    whole_ns = nic.serialise_ns(size_bytes)
    left = graph.use(
        sender,
        whole_ns,
        after=[after],
        label=f"{name} sent",
        messages=1,
        **{counter: nic.traffic_bytes(size_bytes)},
    )
    received = graph.use(receiver, whole_ns, after=[after], label=f"{name} received")
    frame_ns = nic.serialise_ns(min(size_bytes, nic.frame_payload_bytes))
    arrival = graph.delay(
        receiver,
        frame_ns + nic.latency_ns,
        after=[left, received],
        label=f"last frame of {name}",
    )
    return left, arrival

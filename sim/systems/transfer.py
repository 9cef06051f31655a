"""Send a message over a network as steps of an op graph."""

from stripesim.models.nic import NicModel
from stripesim.sim.engine.graph import GraphBuilder


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
    """Add a message, of which each frame is forwarded as soon as it has arrived.

    Parameters
    ----------
    graph
        The graph to add to.
    nic
        The interface at both ends.
    size_bytes
        Payload [B], at least 1.
    after
        Step that the message waits for.
    ends
        Roles of the sending and of the receiving interface.
    name
        What the steps' labels call the message.
    counter
        Counter of its traffic.

    Returns
    -------
    tuple of int
        The steps at which the message has left and, a frame later, has arrived.
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

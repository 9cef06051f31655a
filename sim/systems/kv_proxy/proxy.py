"""A proxy that encodes files over a cluster of key-value nodes.

The proxy has one thread. It works, sends one request to one node, waits for the answer, and continues. So a
run is a sequence of *operations* (planned by `stripesim.sim.systems.kv_proxy.plan`). Each operation is an op
graph, and together they form one closed stream of depth one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stripesim.models.nic import NicModel
from stripesim.models.problems import ProblemsError
from stripesim.sim.engine.graph import IntArray, Template
from stripesim.sim.engine.graph_builder import GraphBuilder
from stripesim.sim.engine.program import (
    FIFO,
    EngineRun,
    ListedRequests,
    Program,
    Resources,
)
from stripesim.sim.run import engine_named
from stripesim.sim.systems.kv_proxy.costs import AggregationModel, ProxyModel
from stripesim.sim.systems.transfer import send_message

PROXY_CPU, PROXY_TX, PROXY_RX, NODE_RX, NODE_CPU, NODE_TX = range(6)
_PROXY_KINDS = ("proxy.cpu", "proxy.tx", "proxy.rx")
_NODE_KINDS = ("node.rx", "node.cpu", "node.tx")

WORK, SET, GET, EXISTS, MIGRATE, ADMIN = range(6)
KINDS = ("work", "write", "read", "check", "move", "cluster")
"""Names of the kinds of operations, by index."""

# Messages are smaller than 64 MiB, so one number holds an operation's kind and both sizes.
_SIZE_BITS = 26


@dataclass(frozen=True)
class Operations:
    """A sequence of the proxy's operations.

    Attributes
    ----------
    kinds
        `WORK`, `SET`, `GET`, `EXISTS`, `MIGRATE` or `ADMIN`, shape (operations,).
    nodes
        Node that receives the request, 0 for `WORK`, shape (operations,).
    sent_bytes, answered_bytes
        Payload to the node and back [B], 0 for `WORK`, shape (operations,).
    work_ns
        Time of the proxy's thread for `WORK` [ns], otherwise 0, shape (operations,).
    """

    kinds: IntArray
    nodes: IntArray
    sent_bytes: IntArray
    answered_bytes: IntArray
    work_ns: IntArray

    def __len__(self) -> int:
        return len(self.kinds)

    @staticmethod
    def joined(parts: list[Operations]) -> Operations:
        """Concatenate sequences.

        Parameters
        ----------
        parts
            The sequences.
        """
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return Operations(*map(np.concatenate, columns))


@dataclass(frozen=True, kw_only=True)
class StoreSystem:
    """A proxy and the nodes of a key-value store on one network.

    Attributes
    ----------
    model, aggregation
        Times of the proxy, and the mapping of blocks to keys.
    nic
        Model of every interface.
    nodes
        Nodes of the store, at least 1.
    command_bytes, reply_bytes
        Bytes of a command without its value, and of an answer without a value [B].
    """

    model: ProxyModel
    aggregation: AggregationModel
    nic: NicModel
    nodes: int
    command_bytes: int
    reply_bytes: int

    def __post_init__(self) -> None:
        if self.nodes < 1:
            raise ProblemsError(f"store: nodes: got {self.nodes}, wanted at least 1")

    @cached_property
    def resources(self) -> Resources:
        """Threads and interfaces of the proxy and of each node."""
        owners = [("proxy", kind) for kind in _PROXY_KINDS]
        owners += [
            (f"node.{i}", kind) for i in range(self.nodes) for kind in _NODE_KINDS
        ]
        return Resources(
            names=tuple(f"{owner}.{kind.partition('.')[2]}" for owner, kind in owners),
            kinds=tuple(kind for _, kind in owners),
            capacities=np.ones(len(owners), dtype=np.int64),
            disciplines=np.full(len(owners), FIFO, dtype=np.int64),
        )

    @cached_property
    def bindings(self) -> IntArray:
        """Resource of each role, one row per node, shape (nodes, roles)."""
        proxy = np.tile(np.arange(len(_PROXY_KINDS)), (self.nodes, 1))
        node = len(_PROXY_KINDS) + len(_NODE_KINDS) * np.arange(self.nodes)[:, None]
        return np.hstack([proxy, node + np.arange(len(_NODE_KINDS))]).astype(np.int64)

    def work_template(self, work_ns: int) -> Template:
        """Compile work of the proxy's thread.

        Parameters
        ----------
        work_ns
            Time of the work [ns].
        """
        graph = GraphBuilder("proxy at work")
        step = graph.use(
            PROXY_CPU, work_ns, after=[graph.issue], label="work", cpu_ns=work_ns
        )
        return graph.finish(reply=step)

    def request_template(
        self, kind: int, sent_bytes: int, answered_bytes: int
    ) -> Template:
        """Compile one request to a node and its answer.

        Parameters
        ----------
        kind
            Kind of the operation.
        sent_bytes, answered_bytes
            Payload to the node and back [B].
        """
        name = KINDS[kind]
        graph = GraphBuilder(name)
        _, arrived = send_message(
            graph,
            self.nic,
            sent_bytes,
            after=graph.issue,
            ends=(PROXY_TX, NODE_RX),
            name=name,
        )
        served = graph.use(
            NODE_CPU,
            self.model.service_ns(self.nodes),
            after=[arrived],
            label=f"{name} served",
        )
        _, answered = send_message(
            graph,
            self.nic,
            answered_bytes,
            after=served,
            ends=(NODE_TX, PROXY_RX),
            name="answer",
        )
        return graph.finish(reply=answered)


class _OperationBook:
    """The distinct templates of the operations of one run, and the nodes' bindings."""

    def __init__(self, system: StoreSystem, operations: Operations) -> None:
        sent = operations.sent_bytes
        answered = operations.answered_bytes
        if max(sent.max(), answered.max()) >> _SIZE_BITS:
            raise ProblemsError(
                f"run: got a message of more than {(1 << _SIZE_BITS) - 1} bytes"
            )
        # One number per kind of operation, because sorting rows of four would take longer than
        # the run.
        sizes = (sent << _SIZE_BITS) + answered
        amounts = np.where(operations.kinds == WORK, operations.work_ns, sizes)
        _, first, index = np.unique(
            (operations.kinds << (2 * _SIZE_BITS)) + amounts,
            return_index=True,
            return_inverse=True,
        )
        self.templates: list[Template] = []
        for at in first.tolist():
            kind = int(operations.kinds[at])
            if kind == WORK:
                template = system.work_template(int(operations.work_ns[at]))
            else:
                template = system.request_template(
                    kind, int(sent[at]), int(answered[at])
                )
            self.templates.append(template)
        self.bindings = system.bindings
        self.of_operations: IntArray = index.reshape(-1).astype(np.int64)


@dataclass(frozen=True)
class SequenceRun:
    """The result of a sequence of operations.

    Attributes
    ----------
    operations
        The operations.
    completed_ns
        Completion time of each operation from the start of the run [ns], shape (operations,).
    traffic_bytes
        Bytes of each operation on the proxy's interface, in both directions, with headers and
        acknowledgements [B], shape (operations,).
    engine_run
        The engine's result.
    """

    operations: Operations
    completed_ns: IntArray
    traffic_bytes: IntArray
    engine_run: EngineRun

    @property
    def elapsed_ns(self) -> int:
        """Time from the first issue to the last answer [ns]."""
        return int(self.completed_ns[-1])

    def binned(self, bin_ns: int) -> IntArray:
        """Return the traffic over time.

        Parameters
        ----------
        bin_ns
            Width of the time bins [ns].

        Returns
        -------
        ndarray of int64
            Traffic in each bin [B], shape (bins,).
        """
        count = self.elapsed_ns // bin_ns + 1
        bins = np.bincount(
            self.completed_ns // bin_ns, weights=self.traffic_bytes, minlength=count
        )
        return bins.astype(np.int64)


def run_operations(
    system: StoreSystem, operations: Operations, *, engine: str = "compiled"
) -> SequenceRun:
    """Run a sequence of operations on an engine.

    Parameters
    ----------
    system
        The proxy and its nodes.
    operations
        The operations, at least one.
    engine
        Name of the engine.

    Returns
    -------
    SequenceRun
        The result.

    Raises
    ------
    ProblemsError
        If there are no operations, a node does not exist, or a message is too large.
    """
    if not len(operations):
        raise ProblemsError("run: got no operations, wanted at least one")
    if operations.nodes.min() < 0 or operations.nodes.max() >= system.nodes:
        raise ProblemsError(
            f"run: nodes: got {operations.nodes.min()} to {operations.nodes.max()}, "
            f"wanted 0 to {system.nodes - 1}"
        )
    book = _OperationBook(system, operations)
    run = engine_named(engine)(
        Program(
            resources=system.resources,
            book=book,
            streams=[
                ListedRequests(book.of_operations, operations.nodes, queue_depth=1)
            ],
        )
    )
    sent = operations.sent_bytes
    answered = operations.answered_bytes
    traffic = traffic_of(system.nic, sent) + traffic_of(system.nic, answered)
    traffic += acknowledged_bytes(system.nic, sent, answered)
    traffic[operations.kinds == WORK] = 0
    return SequenceRun(operations, run.streams[0].completed_ns, traffic, run)


def traffic_of(nic: NicModel, size_bytes: IntArray) -> IntArray:
    """Return the bytes that interface counters show for messages. See `NicModel.traffic_bytes`.

    Parameters
    ----------
    nic
        The interface.
    size_bytes
        Payload of each message [B].

    Returns
    -------
    ndarray of int64
        Traffic of each message [B].
    """
    return size_bytes + _frames(nic, size_bytes) * nic.frame_header_bytes


def acknowledged_bytes(
    nic: NicModel, sent_bytes: IntArray, answered_bytes: IntArray
) -> IntArray:
    """Return the bytes of TCP's pure acknowledgements: for every second frame, and at the end of an answer.

    Parameters
    ----------
    nic
        The interface.
    sent_bytes, answered_bytes
        Payload of each message and of its answer [B].

    Returns
    -------
    ndarray of int64
        Acknowledgements of each operation [B].
    """
    asked = _frames(nic, sent_bytes) // 2
    answered = (_frames(nic, answered_bytes) + 1) // 2
    return (asked + answered) * nic.frame_header_bytes


def _frames(nic: NicModel, size_bytes: IntArray) -> IntArray:
    frames: IntArray = np.maximum(1, -(-size_bytes // nic.frame_payload_bytes))
    return frames

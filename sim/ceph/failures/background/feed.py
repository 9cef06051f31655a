"""Feeds: streams of background operations, among them what members note about their intervals."""

from typing import Literal

import numpy as np

from stripesim.sim.ceph.failures.background.operations import OperationBook
from stripesim.sim.ceph.failures.cluster_state import ClusterState
from stripesim.sim.ceph.failures.groups import Group
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.engine.program import RequestChunk

NoteReason = Literal["interval", "activation", "clean"]
# Transactions in which a member notes that an interval begins (``PeeringState::start_peering_interval``),
# that it is active and then that all are (``activate``, ``share_pg_info``), that all are clean
# (``try_mark_clean``).
_TRANSACTIONS: dict[NoteReason, int] = {"interval": 1, "activation": 2, "clean": 1}
# Notes of one PG in flight: two rounds for one interval, in blocks where its stand-ins need some.
_IN_FLIGHT_MAX = 8


class OperationFeed:
    """A stream of operations that is filled during the run.

    There are never more than `depth` operations in flight; their ends are reported if it `reports`.
    """

    feed = True
    timeout_ns = 0

    def __init__(self, depth: int, *, reports: bool = True) -> None:
        self.depth = depth
        self.reports = reports
        self.pushed_count = 0
        self._queue: list[tuple[int, int, int]] = []

    def push(self, template: int, binding: int, group: int) -> int:
        """Add an operation; return its number in the stream."""
        self._queue.append((template, binding, group))
        self.pushed_count += 1
        return self.pushed_count - 1

    def take(self, count: int) -> RequestChunk:
        """Hand out the next operations."""
        taken = self._queue[:count]
        self._queue = self._queue[count:]
        rows = np.array(taken, dtype=np.int64).reshape(-1, 3)
        return RequestChunk(
            templates=rows[:, 0], bindings=rows[:, 1], groups=rows[:, 2]
        )

    def replan(self, indices: IntArray) -> RequestChunk:
        """Refuse: operations that were cut off are not issued again."""
        raise AssertionError(
            f"background operations {indices.tolist()} cannot be planned again"
        )


class IntervalNotes:
    """The stream of members' notes; nothing waits for their ends."""

    def __init__(self, state: ClusterState, operations: OperationBook) -> None:
        self.feed = OperationFeed(_IN_FLIGHT_MAX * len(state.groups), reports=False)
        self._actions = state.actions
        self._operations = operations
        self._queue: list[tuple[Group, NoteReason]] = []

    def add(self, group: Group, reason: NoteReason) -> None:
        """Have the members that a PG has at the end of the moment note something."""
        self._queue.append((group, reason))

    def hand_over(self) -> None:
        """Give the engine what is to start, at the end of a moment."""
        queue = self._queue
        self._queue = []
        for group, reason in queue:
            shadow = self._actions.shadow(group.number)
            for template, binding in self._operations.notes(
                group, _TRANSACTIONS[reason]
            ):
                self.feed.push(template, binding, shadow)

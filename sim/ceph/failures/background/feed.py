"""Feeds: streams of background operations, and the stream of members' notes."""

from typing import Literal

import numpy as np

from stripesim.sim.ceph.failures.background.operations import OperationBook
from stripesim.sim.ceph.failures.cluster_state import ClusterState
from stripesim.sim.ceph.failures.groups import Group
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.engine.program import RequestChunk

NoteReason = Literal["interval", "activation", "clean"]
# Transactions of a member: an interval begins (``PeeringState::start_peering_interval``); the member is
# active, then all are (``activate``, ``share_pg_info``); all are clean (``try_mark_clean``).
_TRANSACTIONS: dict[NoteReason, int] = {"interval": 1, "activation": 2, "clean": 1}
# Notes of one PG in flight: two rounds for one interval, in blocks if there are many members.
_IN_FLIGHT_MAX = 8


class OperationFeed:
    """A stream of operations that is filled during the run.

    The engine takes at most `depth` operations at a time. With `reports` it reports their ends.
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
        """Return the next operations, and remove them from the queue."""
        taken = self._queue[:count]
        self._queue = self._queue[count:]
        rows = np.array(taken, dtype=np.int64).reshape(-1, 3)
        return RequestChunk(
            templates=rows[:, 0], bindings=rows[:, 1], groups=rows[:, 2]
        )

    def replan(self, indices: IntArray) -> RequestChunk:
        """Raise an error: operations that were cut off are not issued again."""
        raise AssertionError(
            f"background operations {indices.tolist()} cannot be planned again"
        )


class IntervalNotes:
    """The stream of notes that members write about their intervals."""

    def __init__(self, state: ClusterState, operations: OperationBook) -> None:
        self.feed = OperationFeed(_IN_FLIGHT_MAX * len(state.groups), reports=False)
        self._actions = state.actions
        self._operations = operations
        self._queue: list[tuple[Group, NoteReason]] = []

    def add(self, group: Group, reason: NoteReason) -> None:
        """Queue a note by the members that a PG has at the end of the moment."""
        self._queue.append((group, reason))

    def hand_over(self) -> None:
        """Issue the queued notes to the engine, at the end of a moment."""
        queue = self._queue
        self._queue = []
        for group, reason in queue:
            shadow = self._actions.shadow(group.number)
            for template, binding in self._operations.notes(
                group, _TRANSACTIONS[reason]
            ):
                self.feed.push(template, binding, shadow)

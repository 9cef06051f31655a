"""Closed loops of several clients, planned together in rounds. Each is a separate stream to the engine."""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from stripesim.sim.ceph.clients.workload import SyntheticLoops
from stripesim.sim.ceph.gateway.planner import S3Planner
from stripesim.sim.ceph.planner import ObjectWrite, Planned, RequestPlanner
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.engine.program import CHUNK, RequestChunk

# Requests of one client that are planned at a time: fewer than a chunk where clients are many.
_ROUNDS_MIN = 16
# Requests of all clients up to which each client's first ones, as many as its queue is deep, are planned in
# one go. The engine asks for them at once.
_FIRST_MAX = 1 << 17


class ClientLoops:
    """Plans the closed loops of a workload's clients in rounds: the next requests of all, in one go."""

    def __init__(
        self, planner: RequestPlanner | S3Planner, workload: SyntheticLoops
    ) -> None:
        self.planner = planner
        self._workload = workload
        self.streams = [
            ClientStream(self, workload.queue_depth) for _ in range(workload.clients)
        ]
        first = min(workload.queue_depth, _FIRST_MAX // workload.clients)
        self._rounds = max(_ROUNDS_MIN, 4 * CHUNK // workload.clients, first)
        self._planned_count = 0
        self._has_ended = False

    def plan_round(self) -> bool:
        """Plan the next requests of every client; return whether there were any."""
        if self._has_ended:
            return False
        chunk = self.planner.plan(self._workload.take(self._rounds))
        if not len(chunk):
            # Each client calls once more at its end. Drawing empty rounds would take most of a run.
            self._has_ended = True
            return False
        clients = self.planner.newest.clients - self._workload.first_client
        order = np.argsort(clients, kind="stable")
        borders = np.searchsorted(clients[order], np.arange(len(self.streams) + 1))
        by_client = chunk.at(order)
        numbers = self._planned_count + order
        self._planned_count += len(chunk)
        for stream, (start, stop) in zip(
            self.streams, pairwise(borders.tolist()), strict=True
        ):
            if stop > start:
                rows = slice(start, stop)
                stream.add(by_client.at(rows), numbers[rows])
        return True


class _ClientRound(NamedTuple):
    """A client's share of a round, planned after some changes of the cluster's state."""

    chunk: RequestChunk
    rows: IntArray
    changes_count: int


class ClientStream:
    """The closed loop of one client."""

    reports = False
    feed = False

    def __init__(self, loops: ClientLoops, queue_depth: int) -> None:
        self.queue_depth = queue_depth
        self._loops = loops
        self.timeout_ns = loops.planner.timeout_ns
        self._coming: deque[_ClientRound] = deque()
        self._rows: list[IntArray] = [np.zeros(0, dtype=np.int64)]

    def add(self, chunk: RequestChunk, rows: IntArray) -> None:
        """Queue the client's share of a round. `rows` are its rows among all planned requests."""
        changes_count = self._loops.planner.changes_count
        self._coming.append(_ClientRound(chunk, rows, changes_count))
        self._rows.append(rows)

    def take(self, count: int) -> RequestChunk:
        """Return the client's share of the next round; a round is short, whatever `count` is.

        Another client may have begun the round, before placement groups or gateways changed.
        """
        while not self._coming:
            if not self._loops.plan_round():
                empty = np.zeros(0, dtype=np.int64)
                return RequestChunk(empty, empty, empty)
        chunk, rows, changes_count = self._coming.popleft()
        planner = self._loops.planner
        if changes_count == planner.changes_count:
            return chunk
        again = planner.replan(rows)
        return replace(chunk, templates=again.templates, bindings=again.bindings)

    def replan(self, indices: IntArray) -> RequestChunk:
        """Plan requests once more, in the present state of their groups."""
        return self._loops.planner.replan(self._all_rows()[indices])

    @property
    def planned(self) -> Planned:
        """All requests of this client planned until now."""
        return self._loops.planner.planned.at(self._all_rows())

    def written(self, rows: IntArray) -> IntArray:
        """Return placement group and object of each write of requests, shape (2, writes)."""
        return self._loops.planner.written(self._all_rows()[rows])

    def writes_of(self, row: int) -> Iterator[ObjectWrite]:
        """Yield what one request writes."""
        return self._loops.planner.writes_of(int(self._all_rows()[row]))

    @property
    def pool(self) -> Pool:
        """The pool that it plans on."""
        return self._loops.planner.pool

    def _all_rows(self) -> IntArray:
        if len(self._rows) > 1:
            self._rows = [np.concatenate(self._rows)]
        return self._rows[0]

"""Streams of the SimPy engine: planning, issue and completion of requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from stripesim.sim.engine.checks import ChunkChecks, next_chunk, planning
from stripesim.sim.engine.program import (
    SPAWNED_FROM,
    DirectedSource,
    Program,
    RequestChunk,
)
from stripesim.sim.engine.simpy.kernel import ARRIVAL, TIMEOUT, Moment, ScheduledCall
from stripesim.sim.engine.simpy.logs import Log


class Issuer(Protocol):
    """The part of the engine that a stream uses."""

    program: Program
    now_ns: int
    planning_s: float
    checks: ChunkChecks

    def issue(self, stream: Stream, position: int, keys: Sequence[range]) -> None:
        """Start a request, or hold it for its placement group."""

    def call_at(
        self, time_ns: int, priority: int, action: Callable[[], None]
    ) -> ScheduledCall:
        """Schedule a call of `action`."""

    def cancel(self, moment: Moment) -> None:
        """Take a moment out of the calendar."""

    def report(self, stream: int, position: int) -> None:
        """Report a completion to the director."""

    def time_out(self, stream: Stream, positions: Sequence[int]) -> None:
        """Cut off requests that have timed out."""


class Deadline:
    """The common deadline of requests issued at the same time."""

    def __init__(self, moment: ScheduledCall) -> None:
        self.moment = moment
        self.positions: list[int] = []


class Stream(Log):
    """A stream's requests, planned and issued."""

    def __init__(self, engine: Issuer, index: int) -> None:
        program = engine.program
        super().__init__(index, len(program.streams), 0)
        self.spawned = Log(index, len(program.streams), SPAWNED_FROM)
        self.engine = engine
        self.source = program.streams[index]
        self.queue_depth = self.source.queue_depth
        self.chunk: RequestChunk | None = None
        # Number of rows of the chunk that have been issued.
        self.chunk_issued = 0
        self._rows_left: list[int] = []
        # Position of the first part of each part's request, and parts that have not replied or ended,
        # by the position of the first.
        self.firsts: list[int] = []
        self._parts_left: dict[int, int] = {}
        # A feed may be woken after this.
        self.ended = False
        self.outstanding = 0
        # Positions of the last parts of completed requests that the client has not noticed yet.
        self.unnoticed: list[int] = []
        self.newest_only = index in program.newest_only
        self.drained = False
        self.last_arrival_ns = 0
        self.feed = False
        self.reports = False
        self.timeout_ns = 0
        if program.director is not None:
            assert isinstance(self.source, DirectedSource)
            self.feed = self.source.feed
            self.reports = self.source.reports
            self.timeout_ns = self.source.timeout_ns
        # Deadlines by time of issue.
        self._deadlines: dict[int, Deadline] = {}

    def refill(self) -> bool:
        """Plan more requests if needed. Return False at the stream's end."""
        if self.chunk is not None and self.chunk_issued < len(self.chunk):
            return True
        if self.ended:
            return False
        with planning(self.engine):
            chunk = next_chunk(self.source, self.index)
        self.chunk = chunk
        self.chunk_issued = 0
        self.ended = len(chunk) == 0
        if self.ended:
            return False
        self.engine.checks.check(self.index, chunk, self.last_arrival_ns)
        self._rows_left = chunk.rows_left.tolist()
        if chunk.arrivals_ns is not None:
            self.last_arrival_ns = int(chunk.arrivals_ns[-1])
        return True

    def fill(self) -> None:
        """Issue requests up to the queue depth of a closed loop."""
        while self.outstanding < self.queue_depth and self.refill():
            self.issue()

    def issue(self) -> None:
        """Issue all parts of the next planned request."""
        first = len(self.issued_ns)
        parts = self._rows_left[self.chunk_issued]
        self._parts_left[first] = parts
        self.outstanding += 1
        for _ in range(parts):
            self.firsts.append(first)
            self._issue_part()

    def _issue_part(self) -> None:
        chunk = self.chunk
        row = self.chunk_issued
        assert chunk is not None
        self.chunk_issued += 1
        position = self.note(
            self.engine.now_ns,
            int(chunk.templates[row]),
            int(chunk.bindings[row]),
            int(chunk.groups[row]),
        )
        if self.timeout_ns:
            self._watch(position)
        keys = [] if chunk.keys is None else chunk.keys[row].tolist()
        self.engine.issue(self, position, [range(first, stop) for first, stop in keys])

    def complete(self, position: int, now_ns: int) -> None:
        """Process a reply and continue a closed loop. Some clients notice replies late."""
        if self.reports:
            self.engine.report(self.index, position)
        first = self.firsts[position]
        if self._parts_left[first] > 1:
            self.end(position, now_ns)
            return
        newest = self.firsts[-1]
        if self.newest_only and not self.drained and first != newest:
            self.unnoticed.append(position)
            return
        noticed = [position, *self.unnoticed]
        self.unnoticed.clear()
        for completed in noticed:
            self.end(completed, now_ns)
        if not self.queue_depth:
            return
        self.drained = self.newest_only and not self.refill()
        for _ in noticed:
            if self.refill():
                self.issue()

    def end(self, position: int, outcome: int) -> None:
        """Record the completion time or the outcome of a part. The last part ends its request."""
        self.completed_ns[position] = outcome
        first = self.firsts[position]
        self._parts_left[first] -= 1
        if not self._parts_left[first]:
            del self._parts_left[first]
            self.outstanding -= 1
        issued_ns = self.issued_ns[position]
        deadline = self._deadlines.get(issued_ns)
        if deadline is None:
            return
        deadline.positions.remove(position)
        if not deadline.positions:
            self.engine.cancel(deadline.moment)
            del self._deadlines[issued_ns]

    def _watch(self, position: int) -> None:
        """Set the deadline of a request."""
        issued_ns = self.issued_ns[position]
        if issued_ns not in self._deadlines:
            moment = self.engine.call_at(
                issued_ns + self.timeout_ns,
                TIMEOUT + self.index,
                lambda: self._time_out(issued_ns),
            )
            self._deadlines[issued_ns] = Deadline(moment)
        self._deadlines[issued_ns].positions.append(position)

    def _time_out(self, issued_ns: int) -> None:
        deadline = self._deadlines.pop(issued_ns)
        self.engine.time_out(self, deadline.positions)

    def schedule_arrival(self) -> None:
        """Put the next arrival of an open stream into the calendar."""
        if self.refill():
            assert self.chunk is not None and self.chunk.arrivals_ns is not None
            self.engine.call_at(
                int(self.chunk.arrivals_ns[self.chunk_issued]),
                ARRIVAL + self.number(len(self.issued_ns)),
                self._arrive,
            )

    def _arrive(self) -> None:
        """Issue one request of an open stream and schedule the next arrival."""
        self.issue()
        self.schedule_arrival()

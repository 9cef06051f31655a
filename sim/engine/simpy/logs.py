"""Logs of requests in the SimPy engine."""

from __future__ import annotations

import numpy as np

from stripesim.sim.engine.graph import COUNTERS
from stripesim.sim.engine.program import PENDING, StreamRun


class Log:
    """The requests of a stream, in the order of issue."""

    def __init__(self, index: int, streams: int, first_number: int) -> None:
        self.index = index
        self.issued_ns: list[int] = []
        self.completed_ns: list[int] = []
        self.templates: list[int] = []
        self.bindings: list[int] = []
        self.groups: list[int] = []
        # Number of retries of each request.
        self.retries: list[int] = []
        self.taken = np.zeros(len(COUNTERS), dtype=np.int64)
        self.taken_uses = 0
        # The log of spawned requests. These share one log with the requests that they spawn.
        self.spawned = self
        self._streams = streams
        self._first_number = first_number

    def number(self, position: int) -> int:
        """Return the number of the request at a position of the log."""
        return self._first_number + position * self._streams + self.index

    def note(self, now_ns: int, template: int, binding: int, group: int) -> int:
        """Record the issue of a request, and return its position."""
        self.issued_ns.append(now_ns)
        self.completed_ns.append(PENDING)
        self.templates.append(template)
        self.bindings.append(binding)
        self.groups.append(group)
        self.retries.append(0)
        return len(self.issued_ns) - 1

    def complete(self, position: int, now_ns: int) -> None:
        """Process the reply of a request."""
        self.end(position, now_ns)

    def end(self, position: int, outcome: int) -> None:
        """Record the completion time or the outcome of a request."""
        self.completed_ns[position] = outcome

    def result(self, *, counted: bool) -> StreamRun:
        """Return the log as arrays."""
        return StreamRun(
            issued_ns=np.array(self.issued_ns, dtype=np.int64),
            completed_ns=np.array(self.completed_ns, dtype=np.int64),
            templates=np.array(self.templates, dtype=np.int64),
            bindings=np.array(self.bindings, dtype=np.int64),
            groups=np.array(self.groups, dtype=np.int64),
            taken=self.taken,
            taken_uses=self.taken_uses,
            counted=counted,
            retries=np.array(self.retries if counted else [], dtype=np.int64),
        )

"""Reservations: how many placement groups an OSD lets recover at a time, and in which order they come."""

import heapq


class Reserver:
    """Grants so many reservations at a time; who waits comes by priority, then by when they asked.

    Deviation: a waiting request of higher priority does not take a granted slot away.

    See Ceph v16.2.15, ``src/common/AsyncReserver.h``.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._granted: set[int] = set()
        self._waiting: list[tuple[int, int, int]] = []
        self._asked = 0

    def ask(self, group: int, priority: int) -> None:
        """Queue a placement group."""
        heapq.heappush(self._waiting, (-priority, self._asked, group))
        self._asked += 1

    def grant(self) -> int | None:
        """Grant the next reservation, if a slot is free; return whose it is."""
        if not self._waiting or len(self._granted) >= self._slots:
            return None
        _, _, group = heapq.heappop(self._waiting)
        self._granted.add(group)
        return group

    def holds(self, group: int) -> bool:
        """Tell whether a placement group has its reservation."""
        return group in self._granted

    def cancel(self, group: int) -> None:
        """Take a placement group out, whether it has its reservation or waits for it."""
        self._granted.discard(group)
        self._waiting = [entry for entry in self._waiting if entry[2] != group]
        heapq.heapify(self._waiting)

"""Reservations: the number of PGs that recover on an OSD at a time, and their order."""

import heapq
from collections.abc import Iterator, Sequence


class Reserver:
    """Grants a number of reservations at a time, by priority, then by the order of requests.

    Deviation: a waiting request of higher priority does not take a granted slot away.

    References
    ----------
    Ceph v16.2.15, ``src/common/AsyncReserver.h``.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._granted: set[int] = set()
        self._waiting: list[tuple[int, int, int]] = []
        self._asked_count = 0

    def ask(self, group: int, priority: int) -> None:
        """Queue a PG."""
        heapq.heappush(self._waiting, (-priority, self._asked_count, group))
        self._asked_count += 1

    def grant(self) -> int | None:
        """Grant the next reservation if a slot is free; return the PG that has it."""
        if not self._waiting or len(self._granted) >= self._slots:
            return None
        _, _, group = heapq.heappop(self._waiting)
        self._granted.add(group)
        return group

    def holds(self, group: int) -> bool:
        """Return True if a PG has its reservation."""
        return group in self._granted

    def cancel(self, group: int) -> None:
        """Remove a PG, whether it has its reservation or waits for it."""
        self._granted.discard(group)
        self._waiting = [entry for entry in self._waiting if entry[2] != group]
        heapq.heapify(self._waiting)


class Reservations:
    """The reservations of all OSDs: a PG needs its primary's first, then each target's in order.

    References
    ----------
    Ceph v16.2.15, ``src/osd/PeeringState.cc`` (``WaitLocal…``, ``WaitRemoteBackfillReserved`` and
    ``WaitRemoteRecoveryReserved``).
    """

    def __init__(self, slots: int, osds: int) -> None:
        self._local = [Reserver(slots) for _ in range(osds)]
        self._remote = [Reserver(slots) for _ in range(osds)]

    def ask_primary(self, group: int, priority: int, lead: int) -> None:
        """Request the reservation of a PG's primary."""
        self._local[lead].ask(group, priority)

    def ask_next(self, group: int, priority: int, targets: Sequence[int]) -> bool:
        """Request the first missing reservation of a target; return False if none is missing."""
        for osd in targets:
            if not self._remote[osd].holds(group):
                self._remote[osd].ask(group, priority)
                return True
        return False

    def granted(self) -> Iterator[int]:
        """Grant reservations, and yield the PG of each, until there is none to grant."""
        has_granted = True
        while has_granted:
            has_granted = False
            for reserver in (*self._local, *self._remote):
                group = reserver.grant()
                if group is not None:
                    has_granted = True
                    yield group

    def release(self, group: int, lead: int, targets: Sequence[int]) -> None:
        """Release all reservations of a PG, and cancel its requests."""
        self._local[lead].cancel(group)
        for osd in targets:
            self._remote[osd].cancel(group)

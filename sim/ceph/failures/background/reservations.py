"""Reservations: the number of PGs that recover on an OSD at a time, and their order."""

import heapq
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Grant(NamedTuple):
    """A reservation that a PG gets, and the PG of lower priority that loses it, if one does."""

    group: int
    loser: int | None = None
    is_target: bool = False  # It is one of a target, not of a primary.


class Reserver:
    """Grants a number of reservations at a time, by priority, then by the order of requests.

    A request of higher priority takes the slot of the PG that has the lowest one, and among several of these
    the lowest number.

    References
    ----------
    Ceph v16.2.15, ``src/common/AsyncReserver.h`` (``do_queues``, ``preempt_one``).
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        # PG → its priority
        self._granted: dict[int, int] = {}
        self._waiting: list[tuple[int, int, int]] = []
        self._asked_count = 0

    def ask(self, group: int, priority: int) -> None:
        """Queue a PG."""
        heapq.heappush(self._waiting, (-priority, self._asked_count, group))
        self._asked_count += 1

    def grant(self) -> Grant | None:
        """Grant the next reservation if a slot is free, or one of lower priority can be taken away."""
        if not self._waiting:
            return None
        priority = -self._waiting[0][0]
        loser = None
        if len(self._granted) >= self._slots:
            lowest, loser = min((held, group) for group, held in self._granted.items())
            if lowest >= priority:
                return None
            del self._granted[loser]
        _, _, group = heapq.heappop(self._waiting)
        self._granted[group] = priority
        return Grant(group, loser)

    def cancel(self, group: int) -> None:
        """Remove a PG, whether it has its reservation or waits for it."""
        self._granted.pop(group, None)
        self._waiting = [entry for entry in self._waiting if entry[2] != group]
        heapq.heapify(self._waiting)


class _ReservationRequest(NamedTuple):
    """The reservations that a PG wants: its priority, and the targets whose turn has not come."""

    priority: int
    targets: deque[int]


class Reservations:
    """The reservations of all OSDs: a PG needs its primary's first, then each target's in order.

    References
    ----------
    Ceph v16.2.15, ``src/osd/PeeringState.cc`` (``WaitLocal…``, ``WaitRemoteBackfillReserved`` and
    ``WaitRemoteRecoveryReserved``).
    """

    def __init__(self, slots: int, osds: int) -> None:
        # Those of primaries, by OSD, then those of targets.
        self._reservers = [Reserver(slots) for _ in range(2 * osds)]
        self._osds = osds
        self._requests: dict[int, _ReservationRequest] = {}
        # Reservers with a request or a cancellation since they last had nothing to grant, ascending.
        self._changed: list[int] = []

    def ask(self, group: int, priority: int, lead: int, targets: Sequence[int]) -> None:
        """Request the reservation of a PG's primary. Those of its targets follow one by one."""
        self._requests[group] = _ReservationRequest(priority, deque(targets))
        self._ask(lead, group, priority)

    def ask_next(self, group: int) -> bool:
        """Request the next reservation of a PG's targets; return False if it has requested all.

        One that is taken away meanwhile is not requested again.
        """
        request = self._requests[group]
        if not request.targets:
            return False
        osd = request.targets.popleft()
        self._ask(self._osds + osd, group, request.priority)
        return True

    def granted(self) -> Iterator[Grant]:
        """Grant reservations, and yield each, until there is none to grant.

        Each reserver grants one at a time, in the order of OSDs, those of primaries first.
        """
        index = -1
        while self._changed:
            following = bisect_right(self._changed, index)
            index = self._changed[following % len(self._changed)]
            grant = self._reservers[index].grant()
            if grant is None:
                self._changed.remove(index)
            else:
                yield grant._replace(is_target=index >= self._osds)

    def release(self, group: int, lead: int, targets: Sequence[int]) -> None:
        """Release all reservations of a PG, and cancel its requests."""
        self._requests.pop(group, None)
        for index in (lead, *(self._osds + osd for osd in targets)):
            self._reservers[index].cancel(group)
            self._note_change(index)

    def _ask(self, index: int, group: int, priority: int) -> None:
        self._reservers[index].ask(group, priority)
        self._note_change(index)

    def _note_change(self, index: int) -> None:
        if index not in self._changed:
            insort(self._changed, index)


def backfilled_at_once(
    leads: Sequence[int], targets: Sequence[Sequence[int]], slots: int
) -> float:
    """Return how many PGs are backfilled at a time, on average, if each takes equally long.

    Parameters
    ----------
    leads
        Primary of each PG.
    targets
        OSDs that each PG fills, besides its primary.
    slots
        Reservations that an OSD grants as primary, and again as target (``osd_max_backfills``) [count].

    Returns
    -------
    float
        PGs divided by the turns that they take [count]. 0 without PGs.

    Examples
    --------
    Two of three PGs have the same primary, so that all take two turns:

    >>> backfilled_at_once([1, 1, 2], [[3], [4], [5]], slots=1)
    1.5
    """
    osds = sorted({*leads, *(osd for row in targets for osd in row)})
    number_of = {osd: number for number, osd in enumerate(osds)}
    members = [
        (number_of[lead], tuple(number_of[osd] for osd in row))
        for lead, row in zip(leads, targets, strict=True)
    ]
    reservations = Reservations(slots, len(osds))
    for group, (lead, filled) in enumerate(members):
        reservations.ask(group, 0, lead, filled)
    turns = 0
    while running := [
        grant.group
        for grant in reservations.granted()
        if not reservations.ask_next(grant.group)
    ]:
        turns += 1
        for group in running:
            reservations.release(group, *members[group])
    return len(members) / turns if turns else 0.0

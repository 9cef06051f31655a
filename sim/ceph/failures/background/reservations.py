"""Reservations: the number of PGs that recover on an OSD at a time, and their order."""

import heapq
from bisect import bisect_right, insort
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from stripesim.models.placement import Movement
from stripesim.sim.ceph.cluster import NO_OSD

#: Number of an OSD's reserver as a target, less that as a primary.
_TARGET: Final = 1 << 32


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

    def __init__(self, slots: int) -> None:
        # Those of primaries, by OSD, then those of targets.
        self._reservers: dict[int, Reserver] = defaultdict(partial(Reserver, slots))
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
        self._ask(_TARGET + osd, group, request.priority)
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
                yield grant._replace(is_target=index >= _TARGET)

    def release(self, group: int, lead: int, targets: Sequence[int]) -> None:
        """Release all reservations of a PG, and cancel its requests."""
        self._requests.pop(group, None)
        for index in (lead, *(_TARGET + osd for osd in targets)):
            self._reservers[index].cancel(group)
            self._note_change(index)

    def _ask(self, index: int, group: int, priority: int) -> None:
        self._reservers[index].ask(group, priority)
        self._note_change(index)

    def _note_change(self, index: int) -> None:
        if index not in self._changed:
            insort(self._changed, index)


class Backfill(NamedTuple):
    """A PG to backfill, with its acting primary and its target OSDs."""

    lead: int
    targets: tuple[int, ...]


def backfills_of(movement: Movement, acting: Sequence[Sequence[int]]) -> list[Backfill]:
    """Return the PGs that a movement backfills, in ascending order.

    Parameters
    ----------
    movement
        Shards that move.
    acting
        OSDs of each PG that act until the new ones are filled (``pg_temp``), of which the first one leads.
    """
    targets_of: dict[int, set[int]] = {}
    for group, osd in zip(
        movement.groups.tolist(), movement.targets.tolist(), strict=True
    ):
        targets_of.setdefault(group, set()).add(osd)
    backfills = []
    for group, targets in sorted(targets_of.items()):
        lead = next(osd for osd in acting[group] if osd != NO_OSD)
        backfills.append(Backfill(lead, tuple(sorted(targets - {lead}))))
    return backfills


def schedule_s(
    backfills: Sequence[Backfill], *, group_s: float | Sequence[float], slots: int
) -> float:
    """Return the time until all PGs are backfilled [s]. See `backfill_spans`."""
    spans = backfill_spans(backfills, group_s=group_s, slots=slots)
    return max((end_s for _, end_s in spans), default=0.0)


def backfill_spans(
    backfills: Sequence[Backfill], *, group_s: float | Sequence[float], slots: int
) -> list[tuple[float, float]]:
    """Return when the backfill of each PG starts and ends [s].

    Parameters
    ----------
    backfills
        The PGs to backfill.
    group_s
        Time to backfill a PG once it has its reservations [s], one for all or one for each.
    slots
        Reservations that each OSD grants as primary, and again as target (``osd_max_backfills``).
    """
    times_s = group_s
    if not isinstance(times_s, Sequence):
        times_s = [times_s] * len(backfills)
    reservations = Reservations(slots)
    running: list[tuple[float, int]] = []
    spans = [(0.0, 0.0)] * len(backfills)
    now_s = 0.0
    for number, backfill in enumerate(backfills):
        reservations.ask(number, 0, backfill.lead, backfill.targets)
    while True:
        for number, *_ in reservations.granted():
            if not reservations.ask_next(number):
                end_s = now_s + times_s[number]
                spans[number] = (now_s, end_s)
                heapq.heappush(running, (end_s, number))
        if not running:
            return spans
        now_s, number = heapq.heappop(running)
        reservations.release(number, *backfills[number])

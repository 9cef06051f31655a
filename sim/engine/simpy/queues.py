"""Queues of the SimPy engine: in order of arrival, with a quota, or shared by classes as in Ceph.

References
----------
`WpqQueue`: Ceph v19.2.0, ``src/common/WeightedPriorityQueue.h``.

`MClockQueue`: dmclock (github.com/ceph/dmclock), ``src/dmclock_server.h``, ``PullPriorityQueue`` with delayed
tags and ``AtLimit::Wait``, as ``src/osd/scheduler/mClockScheduler.h`` uses it.
Gulati, Merchant, Varman: mClock: handling throughput variability for hypervisor IO scheduling, OSDI 2010.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from stripesim.sim.engine import shares
from stripesim.sim.engine.draws import share_draw
from stripesim.sim.engine.simpy.paths import PathStep, RequestInFlight


@dataclass(slots=True, eq=False)
class Visit:
    """A step at a resource."""

    request: RequestInFlight
    step: PathStep
    demand_ns: int
    joined_ns: int
    # The members of its batch that it leads.
    followers: Sequence[Visit] = ()


class Queue(Protocol):
    """The visits waiting for a resource."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Visit]: ...

    def join(self, visit: Visit) -> None:
        """Enqueue a visit."""

    def take(self, now_ns: int) -> Visit | None:
        """Dequeue the next visit that may be served now, or return None."""

    def next_ns(self) -> int | None:
        """Return when a visit may be served if none may now. None if time makes no difference."""

    def spend(self, service_ns: int) -> None:
        """Record that a service of this length begins."""

    def leave(self, cut: Collection[RequestInFlight]) -> None:
        """Drop the visits of some requests."""


class FifoQueue(deque[Visit]):
    """A queue in order of arrival."""

    join = deque.append

    def take(self, now_ns: int) -> Visit | None:
        """Dequeue the first visit."""
        return self.popleft() if self else None

    def next_ns(self) -> int | None:
        """Return None, because visits wait only for servers."""
        return None

    def spend(self, service_ns: int) -> None:
        """Ignore the length of a service."""

    def leave(self, cut: Collection[RequestInFlight]) -> None:
        """Drop the visits of some requests."""
        kept = [visit for visit in self if visit.request not in cut]
        self.clear()
        self.extend(kept)


class QuotaQueue(FifoQueue):
    """A queue in order of arrival, for servers that give a quota of service time per period.

    References
    ----------
    Linux v6.1, ``kernel/sched/fair.c`` (``__refill_cfs_bandwidth_runtime``: what a period leaves is lost;
    ``distribute_cfs_runtime``: time used in excess is paid back).
    """

    def __init__(self, share: shares.Share, resource: int) -> None:
        super().__init__()
        self._quota_ns = share.quota_ns
        self._period_ns = share.period_ns
        self._offset_ns = shares.quota_offset_ns(resource, share.period_ns)
        # Quota that is left, below 0 if services have used more, and the number of its period.
        self._left_ns = share.quota_ns
        self._period = 0

    def take(self, now_ns: int) -> Visit | None:
        """Dequeue the first visit, unless the quota is used up."""
        period = (now_ns + self._offset_ns) // self._period_ns
        refilled_ns = self._left_ns + (period - self._period) * self._quota_ns
        self._left_ns = min(self._quota_ns, refilled_ns)
        self._period = period
        return super().take(now_ns) if self._left_ns > 0 else None

    def next_ns(self) -> int:
        """Return the start of the first period with a quota left."""
        periods = -self._left_ns // self._quota_ns + 1
        return (self._period + periods) * self._period_ns - self._offset_ns

    def spend(self, service_ns: int) -> None:
        """Subtract a service from the quota."""
        self._left_ns -= service_ns


class BatchQueue(FifoQueue):
    """A queue that serves all waiting visits together."""

    def take(self, now_ns: int) -> Visit | None:
        """Dequeue all visits as one batch with the longest demand."""
        if not self:
            return None
        leader = self.popleft()
        if self:
            leader.followers = list(self)
            longest_ns = max(visit.demand_ns for visit in self)
            leader.demand_ns = max(leader.demand_ns, longest_ns)
            self.clear()
        return leader


@dataclass(slots=True, eq=False)
class ClassLine:
    """The visits of one class. Its tags are those of its first visit, or of its last one when empty."""

    rates: shares.ShareClass
    visits: deque[Visit] = field(default_factory=deque)
    reservation_ns: int = shares.TAG_BEFORE
    limit_ns: int = shares.TAG_BEFORE
    proportion: int = shares.TAG_BEFORE
    # Offset of the weight tag of a class that was idle.
    ahead: int = 0
    seen_ns: int = shares.TAG_BEFORE

    def tag(self, now_ns: int) -> None:
        """Advance the tags to the first visit."""
        visit = self.visits[0]
        cost = visit.step.cost
        self.seen_ns = now_ns
        if self.rates.reservation:
            step_ns = shares.increment(cost, self.rates.reservation, shares.NS_PER_S)
            self.reservation_ns = max(visit.joined_ns, self.reservation_ns + step_ns)
        if self.rates.limit:
            step_ns = shares.increment(cost, self.rates.limit, shares.NS_PER_S)
            self.limit_ns = max(visit.joined_ns, self.limit_ns + step_ns)
        if self.rates.weight:
            step = shares.increment(cost, self.rates.weight, 1 << shares.WEIGHT_BITS)
            joined = shares.weight_clock(visit.joined_ns)
            self.proportion = max(joined, self.proportion + step)

    def competes_at(self) -> int:
        """Return the tag by which the class competes by weight."""
        return self.proportion + self.ahead


class ClassQueue:
    """A queue shared by classes. Strict classes go first, the highest first."""

    def __init__(self, share: shares.Share) -> None:
        self.lines = [ClassLine(rates) for rates in share.classes]

    def __len__(self) -> int:
        return sum(len(line.visits) for line in self.lines)

    def __iter__(self) -> Iterator[Visit]:
        for line in self.lines:
            yield from line.visits

    def join(self, visit: Visit) -> None:
        """Enqueue a visit in the line of its class."""
        line = self.lines[visit.step.share_class]
        line.visits.append(visit)
        if not line.rates.strict:
            self.joined(line, visit)

    def next_ns(self) -> int | None:
        """Return when a visit may be served if none may now. None if time makes no difference."""
        return None

    def spend(self, service_ns: int) -> None:
        """Ignore the length of a service."""

    def joined(self, line: ClassLine, visit: Visit) -> None:
        """Process a visit that has joined a non-strict line."""
        raise NotImplementedError

    def take(self, now_ns: int) -> Visit | None:
        """Dequeue the next visit that may be served now, or return None."""
        waiting = [line for line in self.lines if line.visits]
        strict = [line for line in waiting if line.rates.strict]
        if strict:
            highest = max(strict, key=lambda line: line.rates.strict)
            return highest.visits.popleft()
        return self.take_shared(waiting, now_ns) if waiting else None

    def take_shared(self, waiting: list[ClassLine], now_ns: int) -> Visit | None:
        """Dequeue a visit of the non-strict lines, or return None if none may be served."""
        raise NotImplementedError

    def leave(self, cut: Collection[RequestInFlight]) -> None:
        """Drop the visits of some requests. Tags stay with their class."""
        for line in self.lines:
            kept = [visit for visit in line.visits if visit.request not in cut]
            line.visits = deque(kept)


class WpqQueue(ClassQueue):
    """Ceph's weighted priority queue: draws classes by weight, expensive visits less often."""

    def __init__(self, share: shares.Share, state: int, resource: int) -> None:
        super().__init__(share)
        self._state = state
        self._resource = resource
        self._draws = 0
        self._cost_max = 0

    def joined(self, line: ClassLine, visit: Visit) -> None:
        """Update the highest cost."""
        self._cost_max = max(self._cost_max, visit.step.cost)

    def take_shared(self, waiting: list[ClassLine], now_ns: int) -> Visit:
        """Draw lines until one is accepted. A single line needs no draw."""
        while len(waiting) > 1:
            line = self._drawn_line(waiting)
            threshold = self._cost_max - line.visits[0].step.cost * 9 // 10
            if self._draw() % self._cost_max <= threshold:
                return line.visits.popleft()
        return waiting[0].visits.popleft()

    def _drawn_line(self, waiting: list[ClassLine]) -> ClassLine:
        drawn = self._draw() % sum(line.rates.weight for line in waiting)
        for line in waiting:
            if drawn < line.rates.weight:
                return line
            drawn -= line.rates.weight
        raise AssertionError("a draw is below the sum of the weights")

    def _draw(self) -> int:
        self._draws += 1
        return share_draw(self._state, self._resource, self._draws)


class MClockQueue(ClassQueue):
    """Ceph's mClock queue: reservations first, then by weight within limits."""

    def joined(self, line: ClassLine, visit: Visit) -> None:
        """Tag a visit that is the first of its line."""
        if len(line.visits) > 1:
            return
        if visit.joined_ns - line.seen_ns >= shares.IDLE_AGE_NS:
            self._catch_up(line, visit.joined_ns)
        line.tag(visit.joined_ns)

    def _catch_up(self, line: ClassLine, now_ns: int) -> None:
        """Align the weight tag of an idle class with the least of the others."""
        rivals = [
            rival.competes_at()
            for rival in self.lines
            if rival is not line
            and rival.rates.weight
            and not rival.rates.strict
            and (rival.visits or now_ns - rival.seen_ns < shares.IDLE_AGE_NS)
        ]
        if rivals:
            line.ahead = min(rivals) - shares.weight_clock(now_ns)

    def take_shared(self, waiting: list[ClassLine], now_ns: int) -> Visit | None:
        """Dequeue the visit with the earliest due reservation, or the next by weight within limits."""
        due = [
            line
            for line in waiting
            if line.rates.reservation and line.reservation_ns <= now_ns
        ]
        if due:
            return self._first(min(due, key=lambda line: line.reservation_ns), now_ns)
        within = [
            line for line in waiting if line.rates.weight and line.limit_ns <= now_ns
        ]
        if not within:
            return None
        line = min(within, key=ClassLine.competes_at)
        visit = self._first(line, now_ns)
        if line.rates.reservation:
            # Service by weight does not count against the reservation.
            line.reservation_ns -= shares.increment(
                visit.step.cost, line.rates.reservation, shares.NS_PER_S
            )
        return visit

    def _first(self, line: ClassLine, now_ns: int) -> Visit:
        visit = line.visits.popleft()
        if line.visits:
            line.tag(now_ns)
        return visit

    def next_ns(self) -> int:
        """Return when a visit may be served if none may be now."""
        times_ns = []
        for line in self.lines:
            if line.visits and line.rates.reservation:
                times_ns.append(line.reservation_ns)
            if line.visits and line.rates.weight:
                times_ns.append(line.limit_ns)
        return min(times_ns)

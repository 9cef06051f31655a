"""The queue of a resource that several classes share, in the SimPy engine: WPQ and mClock as Ceph has them.

See Ceph v19.2.0, ``src/common/WeightedPriorityQueue.h``. dmclock (github.com/ceph/dmclock),
``src/dmclock_server.h``: ``PullPriorityQueue`` with delayed tags and ``AtLimit::Wait``, as
``src/osd/scheduler/mClockScheduler.h`` uses it.
Gulati, Merchant, Varman: mClock: handling throughput variability for hypervisor IO scheduling, OSDI 2010.
"""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from stripesim.sim.engine import shares
from stripesim.sim.engine.draws import share_draw
from stripesim.sim.engine.simpy.requests import Request


@dataclass(frozen=True)
class Item:
    """A step that waits: its demand, its key, its request; its cost, since when it waits."""

    demand_ns: int
    key: int
    request: Request
    cost: int
    joined_ns: int


@dataclass
class Line:
    """What waits of one class. Its tags are those of its first item, or of the last one that it had."""

    rates: shares.ShareClass
    items: deque[Item] = field(default_factory=deque)
    reservation_ns: int = shares.TAG_BEFORE
    limit_ns: int = shares.TAG_BEFORE
    proportion: int = shares.TAG_BEFORE
    # Added to the tag of the weight of a class that was idle.
    ahead: int = 0
    seen_ns: int = shares.TAG_BEFORE

    def tag(self, now_ns: int) -> None:
        """Move the tags on to the first item."""
        item, rates = self.items[0], self.rates
        self.seen_ns = now_ns
        if rates.reservation:
            earliest_ns = self.reservation_ns + shares.increment(
                item.cost, rates.reservation, shares.NS_PER_S
            )
            self.reservation_ns = max(item.joined_ns, earliest_ns)
        if rates.limit:
            earliest_ns = self.limit_ns + shares.increment(
                item.cost, rates.limit, shares.NS_PER_S
            )
            self.limit_ns = max(item.joined_ns, earliest_ns)
        if rates.weight:
            earliest = self.proportion + shares.increment(
                item.cost, rates.weight, 1 << shares.WEIGHT_BITS
            )
            self.proportion = max(shares.weight_clock(item.joined_ns), earliest)


class ShareQueue:
    """A queue that several classes share."""

    def __init__(self, share: shares.Share, state: int, resource: int) -> None:
        self.share = share
        self.lines = [Line(rates) for rates in share.classes]
        # When it has to be looked at, because something may go on then; times that stand in the calendar.
        self.look_ns: int | None = None
        self.scheduled: set[int] = set()
        self._state = state
        self._resource = resource
        self._drawn = 0
        self._cost_max = 0

    def __len__(self) -> int:
        return sum(len(line.items) for line in self.lines)

    def join(self, of: int, item: Item) -> None:
        """Let an item of a class wait."""
        line = self.lines[of]
        if line.rates.strict or self.share.kind == shares.WPQ:
            if not line.rates.strict:
                self._cost_max = max(self._cost_max, item.cost)
            line.items.append(item)
            return
        if not line.items and item.joined_ns - line.seen_ns >= shares.IDLE_AGE_NS:
            self._catch_up(line, item.joined_ns)
        line.items.append(item)
        if len(line.items) == 1:
            line.tag(item.joined_ns)

    def _catch_up(self, line: Line, now_ns: int) -> None:
        """Let a class that was idle compete from where the last of the others is."""
        others = [
            other.proportion + other.ahead
            for other in self.lines
            if other is not line
            and other.rates.weight
            and not other.rates.strict
            and (other.items or now_ns - other.seen_ns < shares.IDLE_AGE_NS)
        ]
        if others:
            line.ahead = min(others) - shares.weight_clock(now_ns)

    def take(self, now_ns: int) -> Item | None:
        """Take what may go on now; None if nothing may."""
        waiting = [line for line in self.lines if line.items]
        strict = [line for line in waiting if line.rates.strict]
        if strict:
            return max(strict, key=lambda line: line.rates.strict).items.popleft()
        if not waiting:
            return None
        return (
            self._draw(waiting)
            if self.share.kind == shares.WPQ
            else self._take_tagged(waiting, now_ns)
        )

    def _draw(self, waiting: list[Line]) -> Item:
        """Draw a class by its weight; what costs much is drawn again the more often."""
        total = sum(line.rates.weight for line in waiting)
        while len(waiting) > 1:
            drawn = self._next_draw() % total
            for line in waiting:
                drawn -= line.rates.weight
                if drawn < 0:
                    break
            worth = self._cost_max - line.items[0].cost * 9 // 10
            if self._cost_max == 0 or self._next_draw() % self._cost_max <= worth:
                return line.items.popleft()
        return waiting[0].items.popleft()

    def _next_draw(self) -> int:
        self._drawn += 1
        return share_draw(self._state, self._resource, self._drawn)

    def _take_tagged(self, waiting: list[Line], now_ns: int) -> Item | None:
        """Take the item whose reservation is due first, else by weight one that is within its limit."""
        reserved = [line for line in waiting if line.rates.reservation]
        line = min(reserved, key=lambda line: line.reservation_ns, default=None)
        if line and line.reservation_ns <= now_ns:
            item = line.items.popleft()
            if line.items:
                line.tag(now_ns)
            return item
        ready = [
            line for line in waiting if line.rates.weight and line.limit_ns <= now_ns
        ]
        line = min(ready, key=lambda line: line.proportion + line.ahead, default=None)
        if line is None:
            return None
        item = line.items.popleft()
        if line.items:
            line.tag(now_ns)
        if line.rates.reservation:
            # What was served by weight is not taken from the reservation.
            line.reservation_ns -= shares.increment(
                item.cost, line.rates.reservation, shares.NS_PER_S
            )
        return item

    def next_ns(self) -> int:
        """Return when something may go on; it is asked where nothing may yet."""
        times = [shares.TAG_NEVER]
        for line in self.lines:
            if line.items:
                if line.rates.reservation:
                    times.append(line.reservation_ns)
                if line.rates.weight:
                    times.append(line.limit_ns)
        return min(times)

    def leave(self, cut: Collection[Request]) -> int:
        """Take requests out; return how many steps of theirs waited. Tags stay with a class."""
        count = len(self)
        for line in self.lines:
            line.items = deque(item for item in line.items if item.request not in cut)
        return count - len(self)


class FairQueue(ShareQueue):
    """The queue of cores that processes share: who has had least goes first; an item's class is its flow.

    Goyal, Vin, Cheng: Start-time fair queueing, SIGCOMM 1996.
    """

    def __init__(self, share: shares.Share, resource: int, had_ns: list[int]) -> None:
        super().__init__(share, 0, resource)
        # Up to when each flow has had its share. The last entry stays 0: work without a thread has no flow.
        self._had_ns, self._virtual_ns = had_ns, 0

    def join(self, of: int, item: Item) -> None:
        """Let an item wait; its flow gets nothing for the time in which it wanted none."""
        self.lines[0].items.append(replace(item, cost=of, joined_ns=self._virtual_ns))

    def take(self, now_ns: int) -> Item | None:
        """Take an item of who has had least."""
        items = self.lines[0].items
        if not items:
            return None
        starts_ns = [max(item.joined_ns, self._had_ns[item.cost]) for item in items]
        start_ns = min(starts_ns)
        items.rotate(-starts_ns.index(start_ns))
        item = items.popleft()
        items.rotate(starts_ns.index(start_ns))
        self._virtual_ns = max(self._virtual_ns, start_ns)
        if item.cost >= 0:
            self._had_ns[item.cost] = start_ns
        return item

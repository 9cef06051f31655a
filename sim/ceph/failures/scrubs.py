"""Scrubs: each placement group is read and compared in turn, as best effort beside clients."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from stripesim.sim.ceph.failures.agenda import Agenda
from stripesim.sim.ceph.failures.groups import Group
from stripesim.sim.ceph.failures.schedule import FaultPlan
from stripesim.sim.ceph.failures.work import OperationBook, RecoveryFeed
from stripesim.sim.ceph.paths import rounds_bytes

# osd_deep_scrub_interval over osd_scrub_min_interval: a week and a day.
SCRUBS_PER_DEEP = 7
# Objects of a shallow scrub that members list at a time (osd_scrub_chunk_max).
CHUNK_OBJECTS = 25


def deep_scrub_phase_ns(seed: int, group: int, interval_ns: int) -> int:
    """Draw when in the interval a placement group is scrubbed in depth [ns]."""
    return int(np.random.default_rng([seed, 8, group]).integers(interval_ns))


class _Scrub(NamedTuple):
    """The scrub of one group by its members: how many objects are `left` to read at a time."""

    deep: bool
    members: frozenset[int]
    left: list[int]


class Scrubs:
    """Scrubs clean placement groups when they fall due, one at a time on each OSD (``osd_max_scrubs``).

    A deep scrub has every member read its shards, object by object; a shallow one looks objects up.
    `is_ready` tells whether a group may be scrubbed now, `found` is called when all of a group has been read.

    Deviation: a group that has to wait begins at once when it can, in Ceph at the OSD's next tick; members go
    on from object to object together, in Ceph from chunk to chunk; writes do not wait for a scrub.

    See Ceph v16.2.15, ``src/osd/pg_scrubber.cc``, ``src/osd/ECBackend.cc`` (``be_deep_scrub``).
    """

    def __init__(
        self,
        plan: FaultPlan,
        agenda: Agenda,
        operations: OperationBook,
        groups: Sequence[Group],
        *,
        is_ready: Callable[[Group], bool],
        found: Callable[[int, Group], None],
    ) -> None:
        self._agenda, self._operations = agenda, operations
        self._groups = groups = groups if plan.scrubs else ()
        self._is_ready, self._found = is_ready, found
        self.feed = RecoveryFeed(len(groups))
        self._period_ns = max(1, plan.model.scrub_interval_ns // SCRUBS_PER_DEEP)
        # Groups that are due, and whether in depth; those that are scrubbed.
        self._due: dict[int, bool] = {}
        self._running: dict[int, _Scrub] = {}
        self._flying: dict[int, int] = {}
        self._next: list[int] = []
        self.deep_count = 0
        for group in groups:
            phase_ns = deep_scrub_phase_ns(
                plan.seed, group.number, plan.model.scrub_interval_ns
            )
            turn, first_ns = divmod(phase_ns, self._period_ns)
            agenda.at(first_ns, self._fall_due, group.number, -turn)

    def _fall_due(self, now_ns: int, number: int, turn: int) -> None:
        self._agenda.at(now_ns + self._period_ns, self._fall_due, number, turn + 1)
        self._due[number] = self._due.get(number, False) or turn % SCRUBS_PER_DEEP == 0
        self.begin(now_ns)

    def begin(self, now_ns: int) -> None:
        """Begin with those that are due and can be scrubbed, the first due first."""
        busy = {osd for scrub in self._running.values() for osd in scrub.members}
        for number, deep in list(self._due.items()):
            group = self._groups[number]
            members, objects = group.members.osds, len(group.objects)
            if (
                number not in self._running
                and not busy & members
                and self._is_ready(group)
            ):
                del self._due[number]
                self._running[number] = _Scrub(
                    deep, members, rounds_bytes(objects, 1 if deep else CHUNK_OBJECTS)
                )
                busy |= members
                self._go_on(now_ns, number)

    def _go_on(self, now_ns: int, number: int) -> None:
        if self._running[number].left:
            self._next.append(number)
            return
        if self._running.pop(number).deep:
            self.deep_count += 1
            self._found(now_ns, self._groups[number])
        self._agenda.at(now_ns, self.begin)

    def done(self, now_ns: int, index: int) -> None:
        """Note that members have read what they were asked for."""
        number = self._flying.pop(index, None)
        if number is not None:
            self._go_on(now_ns, number)

    def cancel(self, number: int) -> bool:
        """Give up a group's scrub, which stays due; tell whether something is in flight."""
        in_flight = [index for index, one in self._flying.items() if one == number]
        for index in in_flight:
            del self._flying[index]
        if (scrub := self._running.pop(number, None)) is not None:
            self._due[number] = scrub.deep or self._due.get(number, False)
            self._next = [one for one in self._next if one != number]
        return bool(in_flight)

    def hand_over(self) -> bool:
        """Give the engine what is to start, at the end of a moment; tell whether there is something."""
        starting, self._next = self._next, []
        for number in starting:
            group, scrub = self._groups[number], self._running[number]
            template, binding = self._operations.scrub(
                group, scrub.left.pop(0), deep=scrub.deep
            )
            self._flying[
                self.feed.push(template, binding, number + len(self._groups))
            ] = number
        return bool(starting)

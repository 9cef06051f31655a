"""Scrubs: each PG is read and compared in turn, as best effort."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stripesim.sim.ceph.failures.background.operations import (
    OperationBooks,
    OperationFeed,
)
from stripesim.sim.ceph.failures.cluster_state import ClusterState
from stripesim.sim.ceph.failures.groups import Group, State
from stripesim.sim.ceph.paths import rounds_bytes

# osd_deep_scrub_interval over osd_scrub_min_interval: a week and a day.
SCRUBS_PER_DEEP = 7
# Objects of a shallow scrub that members list at a time (osd_scrub_chunk_max).
CHUNK_OBJECTS = 25


def deep_scrub_phase_ns(seed: int, group: int, interval_ns: int) -> int:
    """Draw when in the interval a PG is scrubbed in depth [ns]."""
    return int(np.random.default_rng([seed, 8, group]).integers(interval_ns))


class _Scrub(NamedTuple):
    """The scrub of one PG by its members. `left` has the number of objects of each remaining step."""

    deep: bool
    members: frozenset[int]
    left: list[int]


class Scrubs:
    """Scrubs clean PGs when they fall due, one at a time on each OSD (``osd_max_scrubs``).

    In a deep scrub every member reads its shards, object by object; a shallow one looks objects up.
    `on_scrubbed` is called once all of a PG has been read.

    Notes
    -----
    Deviations: a PG that has to wait begins as soon as it can, in Ceph at the OSD's next tick. Members
    proceed from object to object together, in Ceph from chunk to chunk. Writes do not wait for a scrub.

    References
    ----------
    Ceph v16.2.15, ``src/osd/pg_scrubber.cc``, ``src/osd/ECBackend.cc`` (``be_deep_scrub``).
    """

    def __init__(self, state: ClusterState, operations: OperationBooks) -> None:
        self.feed = OperationFeed(len(state.groups))
        # Set before the run.
        self.on_scrubbed: Callable[[Group], None]
        self.deep_count = 0
        self._state = state
        self._operations = operations
        self._period_ns = max(1, state.model.scrub_interval_ns // SCRUBS_PER_DEEP)
        # PGs that are due, and whether in depth.
        self._due: dict[int, bool] = {}
        self._running: dict[int, _Scrub] = {}
        self._in_flight: dict[int, int] = {}
        self._starting: list[int] = []

    def schedule(self) -> None:
        """Set the first scrub of each PG."""
        for group in self._state.groups:
            phase_ns = deep_scrub_phase_ns(
                self._state.plan.seed,
                group.number,
                self._state.model.scrub_interval_ns,
            )
            turn, first_ns = divmod(phase_ns, self._period_ns)
            self._state.clock.at(first_ns, self._fall_due, group.number, -turn)

    def begin(self) -> None:
        """Begin the scrubs that are due and possible, the first due first."""
        busy = {osd for scrub in self._running.values() for osd in scrub.members}
        for number, deep in list(self._due.items()):
            group = self._state.groups[number]
            members = group.members.osds
            if number in self._running or busy & members or not self._is_ready(group):
                continue
            del self._due[number]
            steps = rounds_bytes(len(group.objects), 1 if deep else CHUNK_OBJECTS)
            self._running[number] = _Scrub(deep, members, steps)
            busy |= members
            self._continue(number)

    def done(self, index: int) -> None:
        """Continue a scrub after a step."""
        number = self._in_flight.pop(index, None)
        if number is not None:
            self._continue(number)

    def cancel(self, number: int) -> bool:
        """Cancel a PG's scrub, which stays due; return True if a step is in flight."""
        in_flight = [
            index for index, group in self._in_flight.items() if group == number
        ]
        for index in in_flight:
            del self._in_flight[index]
        scrub = self._running.pop(number, None)
        if scrub is not None:
            self._due[number] = scrub.deep or self._due.get(number, False)
            self._starting = [group for group in self._starting if group != number]
        return bool(in_flight)

    def hand_over(self) -> None:
        """Issue steps to the engine, at the end of a moment."""
        starting = self._starting
        self._starting = []
        for number in starting:
            scrub = self._running[number]
            group = self._state.groups[number]
            template, binding = self._operations.of(group).scrub(
                group, scrub.left.pop(0), deep=scrub.deep
            )
            shadow = self._state.actions.shadow(number)
            index = self.feed.push(template, binding, shadow)
            self._in_flight[index] = number

    def _fall_due(self, number: int, turn: int) -> None:
        self._state.clock.after(self._period_ns, self._fall_due, number, turn + 1)
        is_deep = turn % SCRUBS_PER_DEEP == 0
        self._due[number] = self._due.get(number, False) or is_deep
        self.begin()

    def _is_ready(self, group: Group) -> bool:
        return group.is_clean and self._state.state_of(group) == State.CLEAN

    def _continue(self, number: int) -> None:
        if self._running[number].left:
            self._starting.append(number)
            return
        scrub = self._running.pop(number)
        if scrub.deep:
            self.deep_count += 1
            self.on_scrubbed(self._state.groups[number])
        self._state.clock.after(0, self.begin)

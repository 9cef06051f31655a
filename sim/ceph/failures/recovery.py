"""Recovery: which placement groups rebuild now, which objects, and at what pace."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from stripesim.models.recovery import RecoveryModel
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures.agenda import Agenda
from stripesim.sim.ceph.failures.groups import Group
from stripesim.sim.ceph.failures.reservations import Reserver
from stripesim.sim.ceph.failures.work import Operation, OperationBook, RecoveryFeed


# Priorities of reservations: a group below its pool's min_size comes first, then what has lost redundancy
# and what a log can tell, then backfill of the same, then mere moves (src/osd/osd_types.h).
class Priority(IntEnum):
    """Priorities of reservations, the highest first."""

    INACTIVE = 220
    RECOVERY = 180
    DEGRADED = 140
    MOVE = 100


# What a placement group waits for that has to recover: its reservations, other groups of its primary, the
# primary's pause between objects, or the object that is under way.
WAITS = ("max_backfills", "max_active", "sleep", "object")


@dataclass
class Flight:
    """An operation under way: the templates of the rounds that are yet to start, None: not planned yet."""

    operation: Operation
    rounds: list[int] | None = None
    binding: int = 0


@dataclass
class Work:
    """What one placement group has to recover in its interval.

    `lead`, the primary, does the work and counts it; reservations of `targets` are taken in that order.
    """

    group: Group
    lead: int
    targets: tuple[int, ...]
    priority: int
    items: deque[int] = field(default_factory=deque)
    queued: deque[Operation] = field(default_factory=deque)
    starting: list[Flight] = field(default_factory=list)
    in_flight: set[int] = field(default_factory=set)
    # What it waits for, one of `WAITS`, and since when [ns].
    waits: str = "max_backfills"
    since_ns: int = 0


class Recovery:
    """Hands out recovery operations under the limits of every OSD.

    Recovery operations belong to group ``number + groups_count``: clients may be held meanwhile. `started`
    and `finished` are called when a group's first operation may start, and when none is left, `recovered`
    when an acting member has an object that it lacked.

    See Ceph v16.2.15, ``src/osd/OSD.cc`` (``do_recovery``, ``_maybe_queue_recovery``), ``src/osd/PG.cc``
    (``queue_recovery``, ``finish_recovery_op``), ``src/osd/PeeringState.cc`` (``WaitLocal…``,
    ``WaitRemoteBackfillReserved`` and ``WaitRemoteRecoveryReserved``).
    """

    def __init__(
        self,
        model: RecoveryModel,
        agenda: Agenda,
        operations: OperationBook,
        feed: RecoveryFeed,
        notes: RecoveryFeed,
        *,
        osds: int,
        groups_count: int,
        is_up: Callable[[int], bool],
        started: Callable[[int, Group], None],
        recovered: Callable[[Group, int], None],
        finished: Callable[[int, Group], None],
    ) -> None:
        self._model = model
        self._agenda = agenda
        self._operations = operations
        self._feed, self._noted = feed, notes
        self._groups_count = groups_count
        self._is_up = is_up
        self._started, self._recovered = started, recovered
        self._finished = finished
        self._works: dict[int, Work] = {}
        self._local = [Reserver(model.max_backfills_count) for _ in range(osds)]
        self._remote = [Reserver(model.max_backfills_count) for _ in range(osds)]
        self._queues: list[deque[int]] = [deque() for _ in range(osds)]
        self._active = [0] * osds
        self._free_ns = [0] * osds
        self._timer = [False] * osds
        self._flying: dict[int, tuple[int, Flight]] = {}
        self._starting: list[Work] = []
        self._notes: list[tuple[Group, int]] = []
        # The operation of each round, and whether it was its last: for series and bytes per byte lost.
        self.log: list[tuple[Operation, bool]] = []
        # How long groups waited for each of `WAITS`, all together [ns].
        self.waited_ns = dict.fromkeys(WAITS, 0)

    def request(
        self, now_ns: int, group: Group, priority: int, *, everyone: bool
    ) -> None:
        """Let a placement group recover as soon as its reservations are granted.

        Backfill takes a reservation at each OSD that it fills, recovery by the log one at every member
        (`everyone`).
        """
        members = group.members
        joining = sorted({osd for osd in members.joining if osd != NO_OSD})
        lead_shard = members.primary
        lead = members.acting[lead_shard] if lead_shard is not None else joining[0]
        targets = sorted((members.osds if everyone else set(joining)) - {lead})
        work = Work(group, lead, tuple(targets), priority, since_ns=now_ns)
        work.items = deque(
            sorted(
                set().union(*(copy.missing for copy in group.joining_copies.values()))
            )
        )
        self._works[group.number] = work
        self._local[lead].ask(group.number, priority)
        self._advance(now_ns)

    def note(self, group: Group, transactions_count: int) -> None:
        """Let the members that a placement group has at the end of the moment note something."""
        self._notes.append((group, transactions_count))

    def cancel(self, now_ns: int, group: Group) -> bool:
        """Forget a placement group's work; tell whether something is in flight, which is to be cut off."""
        work = self._works.pop(group.number, None)
        if work is None:
            return False
        self._now_waits(now_ns, work, "")
        for index in work.in_flight:
            del self._flying[index]
            self._active[work.lead] -= 1
        self._active[work.lead] -= len(work.starting)
        work.starting = []
        self._release(work)
        self._agenda.at(now_ns, self._advance)
        return bool(work.in_flight)

    def _release(self, work: Work) -> None:
        number = work.group.number
        self._local[work.lead].cancel(number)
        for osd in work.targets:
            self._remote[osd].cancel(number)
        if number in self._queues[work.lead]:
            self._queues[work.lead].remove(number)

    def done(self, now_ns: int, index: int) -> None:
        """A round of an operation has completed."""
        number, flight = self._flying.pop(index)
        work, operation = self._works[number], flight.operation
        work.in_flight.discard(index)
        if flight.rounds:
            work.starting.append(flight)
            self._starting.append(work)
            return
        self._active[work.lead] -= 1
        copies = work.group.joining_copies
        for shard in operation.shards:
            copies[shard].missing.discard(operation.item)
        if not work.group.inside.keys().isdisjoint(operation.shards):
            self._recovered(work.group, operation.item)
        if work.in_flight or work.starting or self._more(work):
            self._start(now_ns, work.lead)
            return
        del self._works[number]
        self._now_waits(now_ns, work, "")
        self._release(work)
        self._finished(now_ns, work.group)
        self._advance(now_ns)

    # Reservations.

    def _advance(self, now_ns: int) -> None:
        """Grant what can be granted, then start what may start."""
        moved = True
        while moved:
            moved = False
            for reserver in (*self._local, *self._remote):
                number = reserver.grant()
                if number is not None:
                    moved = True
                    self._reserved(now_ns, self._works[number])
        for osd, queue in enumerate(self._queues):
            if queue:
                self._start(now_ns, osd)

    def _reserved(self, now_ns: int, work: Work) -> None:
        """One more reservation is there: ask for the next, or begin."""
        for osd in work.targets:
            if not self._remote[osd].holds(work.group.number):
                self._remote[osd].ask(work.group.number, work.priority)
                return
        if not self._more(work):
            # Nothing that can be recovered: what is missing is nowhere to be had.
            del self._works[work.group.number]
            self._now_waits(now_ns, work, "")
            self._release(work)
            self._agenda.at(now_ns, self._end_idle, work.group, work.group.interval)
            return
        self._queues[work.lead].append(work.group.number)
        self._now_waits(now_ns, work, "max_active")
        self._started(now_ns, work.group)

    def _end_idle(self, now_ns: int, group: Group, interval: int) -> None:
        if group.interval == interval:
            self._finished(now_ns, group)

    # Operations.

    def _more(self, work: Work) -> bool:
        """Tell whether there is an operation left to start, and make it ready."""
        while not work.queued and work.items:
            item = work.items.popleft()
            work.queued.extend(
                self._operations.operations(work.group, item, self._is_up)
            )
        return bool(work.queued)

    def _now_waits(self, now_ns: int, work: Work, what: str) -> None:
        if work.waits:
            self.waited_ns[work.waits] += now_ns - work.since_ns
        work.waits, work.since_ns = what, now_ns

    def end(self, now_ns: int) -> None:
        """Count the waiting of what is not done at the end of the run."""
        for work in self._works.values():
            self._now_waits(now_ns, work, "")

    def _start(self, now_ns: int, osd: int) -> None:
        """Start what may start on an OSD, and note what the others of its groups wait for."""
        self._fill(now_ns, osd)
        idle = "sleep" if self._free_ns[osd] > now_ns else "max_active"
        for number in self._queues[osd]:
            work = self._works[number]
            self._now_waits(
                now_ns, work, "object" if work.in_flight or work.starting else idle
            )

    def _fill(self, now_ns: int, osd: int) -> None:
        """Start as many operations of an OSD as its limits allow, one group after another.

        A group asks for its next object when the one before is whole: each request for recovery starts
        ``osd_recovery_max_single_start`` = 1 objects, and a group has one request in the queue at a time.
        """
        queue, busy = self._queues[osd], 0
        while (
            busy < len(queue)
            and self._active[osd] < self._model.recovery_max_active_count
        ):
            if self._free_ns[osd] > now_ns:
                if not self._timer[osd]:
                    self._timer[osd] = True
                    self._agenda.at(self._free_ns[osd], self._slept, osd)
                return
            work = self._works[queue[0]]
            queue.rotate(-1)
            if not work.queued and (work.in_flight or work.starting):
                busy += 1
                continue
            busy = 0
            if not self._more(work):
                queue.remove(work.group.number)
                continue
            work.starting.append(Flight(work.queued.popleft()))
            self._starting.append(work)
            self._active[osd] += 1
            self._free_ns[osd] = now_ns + self._model.recovery_sleep_ns

    def hand_over(self) -> list[RecoveryFeed]:
        """Give the engine what is to start, at the end of a moment; return the streams that have something.

        Not earlier: what is taken back within the moment must never reach the engine.
        """
        notes, self._notes = self._notes, []
        for group, count in notes:
            for template, binding in (
                self._operations.notes(group, count) if group.members.osds else ()
            ):
                self._noted.push(template, binding, group.number + self._groups_count)
        works, self._starting = self._starting, []
        fed = self._feed.given
        for work in works:
            starting, work.starting = work.starting, []
            for flight in starting:
                if flight.rounds is None:
                    planned = self._operations.plan(
                        work.group, flight.operation, self._is_up
                    )
                    flight.rounds, flight.binding = planned
                template = flight.rounds.pop(0)
                index = self._feed.push(
                    template, flight.binding, work.group.number + self._groups_count
                )
                self._flying[index] = (work.group.number, flight)
                self.log.append((flight.operation, not flight.rounds))
                work.in_flight.add(index)
        return [self._noted] * bool(notes) + [self._feed] * (self._feed.given > fed)

    def _slept(self, now_ns: int, osd: int) -> None:
        self._timer[osd] = False
        self._start(now_ns, osd)

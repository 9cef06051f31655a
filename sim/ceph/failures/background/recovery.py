"""Recovery: the order and the pace in which PGs rebuild their objects."""

from collections import deque
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal, NamedTuple, Protocol, get_args

from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures.background.operations import (
    Operation,
    OperationBooks,
    OperationFeed,
    PlannedOperation,
)
from stripesim.sim.ceph.failures.background.reservations import Reservations
from stripesim.sim.ceph.failures.cluster_state import ClusterState
from stripesim.sim.ceph.failures.groups import Group, PgInterval

# Reasons for a PG in need of recovery to wait: its reservations, other PGs of its primary, the primary's
# pause between objects, or the object in progress.
WaitReason = Literal["max_backfills", "max_active", "sleep", "object"]


class Priority(IntEnum):
    """Bases of the priorities of reservations.

    A PG below its pool's min_size comes first, then recovery by the log, then backfill of degraded PGs, then
    mere moves. Among PGs that are below min_size, or degraded, those that lack more shards come first.

    References
    ----------
    Ceph v16.2.15, ``src/osd/osd_types.h`` and ``src/osd/PeeringState.cc`` (``get_recovery_priority``,
    ``get_backfill_priority``).
    """

    INACTIVE = 220
    RECOVERY = 180
    DEGRADED = 140
    MOVE = 100

    @classmethod
    def of(cls, group: Group) -> int:
        """Return the priority of a PG: a base, and the shards that it lacks."""
        if not group.interval.active:
            lacking = group.scheme.min_size - group.members.served_count
            return cls.INACTIVE + max(0, lacking)
        if not group.is_backfilled:
            return cls.RECOVERY
        missing = len(group.members.missing)
        return cls.DEGRADED + missing if missing else cls.MOVE


class RecoveryListener(Protocol):
    """Receives the progress of recovery."""

    def recovery_started(self, group: Group) -> None:
        """Process the start of a PG's recovery."""

    def object_recovered(self, group: Group, item: int) -> None:
        """Process the recovery of an object that an acting member lacked."""

    def recovery_finished(self, group: Group) -> None:
        """Process the end of a PG's recovery."""

    def recovery_refused(self, group: Group) -> None:
        """Process the rejection of a PG by a target without room."""

    def recovery_preempted(self, group: Group) -> None:
        """Process the pause of a PG that has lost a reservation to one of higher priority."""


class RecoveryRound(NamedTuple):
    """One round of an operation, as issued to the engine."""

    operation: Operation
    is_last: bool


@dataclass
class _RunningOperation:
    """An operation in progress. `planned` has its next rounds (None: not planned yet)."""

    operation: Operation
    planned: PlannedOperation | None = None


@dataclass
class _Task:
    """The recovery of one PG in its interval.

    The operations count against the limits of `lead`, the primary. Reservations are taken in the order of
    `targets`.
    """

    group: Group
    lead: int
    targets: tuple[int, ...]
    priority: int
    items: deque[int]
    waits_since_ns: int
    waits_for: WaitReason | None = "max_backfills"
    is_reserved: bool = False  # It has, or had, all reservations.
    queued: deque[Operation] = field(default_factory=deque)
    starting: list[_RunningOperation] = field(default_factory=list)
    in_flight: set[int] = field(default_factory=set)

    @property
    def number(self) -> int:
        """Number of the PG."""
        return self.group.number

    @property
    def has_running(self) -> bool:
        """True if an operation is in progress."""
        return bool(self.in_flight or self.starting)

    @property
    def can_go_on(self) -> bool:
        """True if the next operation may begin while another is in progress."""
        return bool(self.queued) and not self.queued[0].waits


@dataclass(slots=True)
class _OsdQueue:
    """The PGs that recover with one OSD as primary.

    `active_count` operations are in progress. The next one starts at `free_ns` or later.
    """

    groups: deque[int] = field(default_factory=deque)
    active_count: int = 0
    free_ns: int = 0
    has_timer: bool = False


class RecoveryScheduler:
    """Issues recovery operations within the limits of every OSD.

    `rounds` lists all rounds issued. `waited_ns` sums the waits of PGs for each reason.

    References
    ----------
    Ceph v16.2.15, ``src/osd/OSD.cc`` (``do_recovery``, ``_maybe_queue_recovery``), ``src/osd/PG.cc``
    (``queue_recovery``, ``finish_recovery_op``).
    """

    def __init__(self, state: ClusterState, operations: OperationBooks) -> None:
        osds = state.pool.cluster.osds
        model = state.model
        self.feed = OperationFeed(osds * model.recovery_max_active_count)
        self.rounds: list[RecoveryRound] = []
        self.waited_ns: dict[WaitReason, int] = dict.fromkeys(get_args(WaitReason), 0)
        # Set before the run.
        self.listener: RecoveryListener
        self._state = state
        self._operations = operations
        self._reservations = Reservations(model.max_backfills_count)
        self._queues = [_OsdQueue() for _ in range(osds)]
        # OSDs whose queue has groups, and those whose queue has changed since operations were last started.
        self._recovering_osds: set[int] = set()
        self._changed_osds: set[int] = set()
        self._tasks: dict[int, _Task] = {}
        self._running: dict[int, tuple[_Task, _RunningOperation]] = {}
        self._starting: list[_Task] = []
        # PGs with a target that was too full, and the interval in which it was.
        self._refused: list[tuple[Group, PgInterval]] = []
        self._retries = False
        # When PGs that the flag ``norebalance`` holds are started [ns].
        self._rebalance_ns = 0

    def request(self, group: Group) -> None:
        """Queue a PG for recovery.

        Backfill takes a reservation at each OSD that it fills, recovery by the log one at every member.
        """
        members = group.members
        joining = set(members.joining) - {NO_OSD}
        lead = members.primary_osd
        if lead is None:
            lead = min(joining)
        targets = joining if group.is_backfilled else members.osds
        copies = group.joining_copies.values()
        missing = set().union(*(copy.missing for copy in copies))
        task = _Task(
            group,
            lead,
            tuple(sorted(targets - {lead})),
            Priority.of(group),
            items=deque(sorted(missing)),
            waits_since_ns=self._state.now_ns,
        )
        self._tasks[group.number] = task
        self._ask(task)

    def cancel(self, group: Group) -> bool:
        """Cancel a PG's recovery; return True if the engine has to cut off operations."""
        task = self._tasks.get(group.number)
        if task is None:
            return False
        self._end(task)
        for index in task.in_flight:
            del self._running[index]
        running_count = len(task.in_flight) + len(task.starting)
        self._queues[task.lead].active_count -= running_count
        self._changed_osds.add(task.lead)
        task.starting = []
        self._state.clock.after(0, self._advance)
        return bool(task.in_flight)

    def done(self, index: int) -> None:
        """Process the end of a round."""
        task, running = self._running.pop(index)
        task.in_flight.discard(index)
        assert running.planned is not None
        if running.planned.templates:
            self._start_soon(task, running)
            return
        self._queues[task.lead].active_count -= 1
        self._note_recovered(task.group, running.operation)
        if task.has_running or self._has_more(task):
            self._start(task.lead)
            return
        self._changed_osds.add(task.lead)
        self._end(task)
        self.listener.recovery_finished(task.group)
        self._advance()

    def hand_over(self) -> None:
        """Issue rounds to the engine, at the end of a moment.

        Rounds that are cancelled within the moment must never reach the engine.
        """
        tasks = self._starting
        self._starting = []
        for task in tasks:
            starting = task.starting
            task.starting = []
            for running in starting:
                self._push_round(task, running)

    def stop_waiting(self) -> None:
        """Add the waits of unfinished tasks at the end of the run."""
        for task in self._tasks.values():
            self._wait_for(task, None)

    def _push_round(self, task: _Task, running: _RunningOperation) -> None:
        if running.planned is None:
            operations = self._operations.of(task.group)
            running.planned = operations.plan(
                task.group, running.operation, self._state.map.up
            )
        template = running.planned.templates.pop(0)
        index = self.feed.push(
            template,
            running.planned.binding,
            self._state.actions.shadow(task.number),
        )
        is_last = not running.planned.templates
        self.rounds.append(RecoveryRound(running.operation, is_last))
        self._running[index] = (task, running)
        task.in_flight.add(index)

    def _note_recovered(self, group: Group, operation: Operation) -> None:
        copies = group.joining_copies
        for shard in operation.shards:
            copies[shard].missing.discard(operation.item)
            if operation.kind != "delete":
                self._state.count_shards(group, group.members.joining[shard], 1)
        if not group.joining_inside.keys().isdisjoint(operation.shards):
            self.listener.object_recovered(group, operation.item)

    def _end(self, task: _Task) -> None:
        """Remove a task and its reservations."""
        del self._tasks[task.number]
        self._wait_for(task, None)
        self._reservations.release(task.number, task.lead, task.targets)
        if task.number in self._queues[task.lead].groups:
            self._leave_queue(task)

    def _leave_queue(self, task: _Task) -> None:
        groups = self._queues[task.lead].groups
        groups.remove(task.number)
        if not groups:
            self._recovering_osds.discard(task.lead)

    # Reservations.

    def _ask(self, task: _Task) -> None:
        """Request the reservations of a PG."""
        self._reservations.ask(task.number, task.priority, task.lead, task.targets)
        self._advance()

    def _advance(self) -> None:
        """Grant the reservations that can be granted, then start the operations that may start."""
        for grant in self._reservations.granted():
            if grant.loser is not None:
                self._preempted(self._tasks[grant.loser], is_target=grant.is_target)
            self._reserved(self._tasks[grant.group])
        osds = self._recovering_osds
        if not self._state.model.recovery_sleep_ns:
            # Only a pause lets an OSD start more without a change of its queue.
            osds = osds & self._changed_osds
        self._changed_osds = set()
        for osd in sorted(osds):
            self._start(osd)

    def _reserved(self, task: _Task) -> None:
        """Request the next reservation of a PG, or start its recovery."""
        if not self._has_room(task):
            self._end(task)
            self._refused.append((task.group, task.group.interval))
            self.listener.recovery_refused(task.group)
            return
        if self._reservations.ask_next(task.number):
            return
        if not (task.has_running or self._has_more(task)):
            # No OSD can supply the missing objects.
            self._end(task)
            interval = task.group.interval
            self._state.clock.after(0, self._finish_idle, task.group, interval)
            return
        task.is_reserved = True
        self._queues[task.lead].groups.append(task.number)
        self._changed_osds.add(task.lead)
        self._recovering_osds.add(task.lead)
        self._wait_for(task, "max_active")
        self.listener.recovery_started(task.group)

    def _preempted(self, task: _Task, *, is_target: bool) -> None:
        """Process the loss of a reservation to a PG of higher priority.

        A PG that recovers releases its reservations and asks for them again. Operations in progress end. One
        that is to be backfilled and waits for a further target asks again after
        ``osd_backfill_retry_interval``. Any other does not notice the loss.

        References
        ----------
        Ceph v16.2.15, ``src/osd/PeeringState.cc`` (``Backfilling`` and ``WaitRemoteBackfillReserved`` with
        ``RemoteReservationRevoked``, ``Backfilling`` with ``DeferBackfill``, ``Recovering`` with
        ``DeferRecovery``; ``Active`` discards these events).
        """
        pause_ns = 0
        if task.number in self._queues[task.lead].groups:
            self._leave_queue(task)
            task.is_reserved = False
            self.listener.recovery_preempted(task.group)
        elif is_target and task.group.is_backfilled and not task.is_reserved:
            pause_ns = self._state.model.backfill_retry_ns
        else:
            return
        self._reservations.release(task.number, task.lead, task.targets)
        self._wait_for(task, "max_backfills")
        self._state.clock.after(pause_ns, self._ask_again, task)

    def _ask_again(self, task: _Task) -> None:
        """Request the reservations of a PG that has lost one."""
        if self._tasks.get(task.number) is task:
            self._ask(task)

    def _has_room(self, task: _Task) -> bool:
        """Return True if every target has room for its missing shards."""
        is_backfill = task.group.is_backfilled
        for shard, copy in task.group.joining_copies.items():
            osd = task.group.members.joining[shard]
            lacking_count = len(copy.missing & task.group.objects)
            fullness = self._state.fullness
            if not fullness.has_room(osd, lacking_count, is_backfill=is_backfill):
                return False
        return True

    def space_freed(self) -> None:
        """Schedule a retry of PGs whose targets were too full."""
        if self._refused and not self._retries:
            self._retries = True
            self._state.clock.after(self._state.model.backfill_retry_ns, self._retry)

    def _retry(self) -> None:
        self._retries = False
        refused = self._refused
        self._refused = []
        for group, interval in refused:
            if group.interval is interval and group.number not in self._tasks:
                self.request(group)

    def _finish_idle(self, group: Group, interval: PgInterval) -> None:
        if group.interval is interval:
            self.listener.recovery_finished(group)

    # Operations.

    def _has_more(self, task: _Task) -> bool:
        """Queue the operations of the next object; return False if none is left."""
        operations = self._operations.of(task.group)
        while not task.queued and task.items:
            item = task.items.popleft()
            task.queued.extend(
                operations.operations(task.group, item, self._state.map.up)
            )
        return bool(task.queued)

    def _start(self, osd: int) -> None:
        """Start operations of an OSD within its limits, and record the waits of its other PGs."""
        self._fill(osd)
        queue = self._queues[osd]
        idle: WaitReason = (
            "sleep" if queue.free_ns > self._state.now_ns else "max_active"
        )
        for number in queue.groups:
            task = self._tasks[number]
            self._wait_for(task, "object" if task.has_running else idle)

    def _fill(self, osd: int) -> None:
        """Start operations of an OSD within its limits, one PG after another.

        A PG starts its next object once the one before is complete: each request for recovery starts
        ``osd_recovery_max_single_start`` = 1 objects, and a PG has one request in the queue at a time.
        """
        queue = self._queues[osd]
        active_max = self._state.model.recovery_max_active_count
        busy_count = 0
        while busy_count < len(queue.groups) and queue.active_count < active_max:
            if queue.free_ns > self._state.now_ns:
                self._wait_for_pause(osd)
                return
            task = self._tasks[queue.groups[0]]
            queue.groups.rotate(-1)
            if self._is_held(task) or (task.has_running and not task.can_go_on):
                busy_count += 1
                continue
            busy_count = 0
            if not self._has_more(task):
                self._leave_queue(task)
                continue
            self._start_soon(task, _RunningOperation(task.queued.popleft()))
            queue.active_count += 1
            queue.free_ns = self._state.now_ns + self._state.model.recovery_sleep_ns

    def _is_held(self, task: _Task) -> bool:
        """Return True if the flag ``norebalance`` lets a PG move no object.

        See Ceph v18.2, ``src/osd/PrimaryLogPG.cc`` (``start_recovery_ops``).
        """
        end_ns = self._state.map.norebalance_until_ns
        if self._state.now_ns >= end_ns:
            return False
        if not task.group.is_backfilled or task.group.members.missing:
            return False
        if self._rebalance_ns != end_ns:
            self._rebalance_ns = end_ns
            self._state.clock.at(end_ns, self._rebalance)
        return True

    def _rebalance(self) -> None:
        """Start the PGs that the flag ``norebalance`` has held."""
        for osd in sorted(self._recovering_osds):
            self._start(osd)

    def _start_soon(self, task: _Task, running: _RunningOperation) -> None:
        task.starting.append(running)
        self._starting.append(task)

    def _wait_for_pause(self, osd: int) -> None:
        queue = self._queues[osd]
        if not queue.has_timer:
            queue.has_timer = True
            self._state.clock.at(queue.free_ns, self._pause_ended, osd)

    def _pause_ended(self, osd: int) -> None:
        self._queues[osd].has_timer = False
        self._start(osd)

    def _wait_for(self, task: _Task, reason: WaitReason | None) -> None:
        """Change the reason for which a task waits."""
        if task.waits_for is not None:
            self.waited_ns[task.waits_for] += self._state.now_ns - task.waits_since_ns
        task.waits_for = reason
        task.waits_since_ns = self._state.now_ns

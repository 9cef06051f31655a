"""Activation: serving, recovery and read leases of a PG, given its members."""

from collections.abc import Callable

from stripesim.sim.ceph.failures.background.streams import BackgroundWork
from stripesim.sim.ceph.failures.client_writes import ClientWrites
from stripesim.sim.ceph.failures.cluster_state import ClusterState
from stripesim.sim.ceph.failures.detection import Detection
from stripesim.sim.ceph.failures.groups import Group, PgInterval, ServingOsds, State
from stripesim.sim.ceph.failures.monitor import Monitor
from stripesim.sim.ceph.failures.stretch import ServingRule
from stripesim.sim.ceph.layout import AnyLayout
from stripesim.sim.ceph.pool import Book


class ReadLeases:
    """The read leases of earlier intervals, during which a former primary may still answer reads.

    References
    ----------
    Ceph v16.2.15, ``src/osd/PeeringState.cc`` (``prior_readable_down_osds``), ``src/osd/PrimaryLogPG.cc``
    (``check_laggy``).
    """

    def __init__(self, state: ClusterState, detection: Detection) -> None:
        self._lease_ns = state.model.read_lease_ns
        self._state = state
        self._detection = detection
        self._end_ns = [0] * len(state.groups)
        # OSDs that have served a PG since it was last clean.
        self._past_osds = [set(group.members.osds) for group in state.groups]

    def end_interval(self, group: Group) -> None:
        """Record when the last lease of an active interval expires.

        A lease is renewed in half its time, and counts as long as every member has agreed to it.
        """
        if not self._lease_ns:
            return
        agreed_ns = min(
            (self._detection.last_answer_ns(osd) for osd in group.members.osds),
            default=self._state.now_ns,
        )
        active_ns = group.interval.active_ns
        if agreed_ns < active_ns:
            return
        renewed_ns = agreed_ns - (agreed_ns - active_ns) % (self._lease_ns // 2)
        number = group.number
        self._end_ns[number] = max(self._end_ns[number], renewed_ns + self._lease_ns)

    def end_ns(self, group: Group) -> int:
        """Return when the last lease of earlier intervals expires [ns]."""
        return self._end_ns[group.number]

    def must_wait(self, group: Group) -> bool:
        """Return True if a former member that may still run holds a lease."""
        if self.end_ns(group) <= self._state.now_ns:
            return False
        return any(
            osd not in self._state.map.up and not self._detection.is_known_dead(osd)
            for osd in self._past_osds[group.number]
        )

    def add_members(self, group: Group) -> None:
        """Record that a PG's members may hold a lease."""
        self._past_osds[group.number] |= group.members.osds

    def forget_past(self, group: Group) -> None:
        """Forget the former members of a PG that is clean."""
        self._past_osds[group.number] = set(group.members.osds)


class Activation:
    """Decides, given a PG's members, if it serves clients, recovers, or is clean.

    `on_all_clean` is called whenever the last PG has become clean.
    """

    def __init__(
        self,
        state: ClusterState,
        monitor: Monitor,
        detection: Detection,
        writes: ClientWrites,
        layout: AnyLayout,
        book: Book,
        background: BackgroundWork,
        rule: ServingRule,
    ) -> None:
        self._state = state
        self._monitor = monitor
        self._writes = writes
        self._layout = layout
        self._book = book
        self._leases = ReadLeases(state, detection)
        self._background = background
        self._rule = rule
        self._is_recovering = False
        self.on_all_clean: Callable[[], None] = _do_nothing
        # When the cluster's status shows each PG as clean [ns].
        self._seen_clean_ns: dict[int, int] = {}

    def activate(self, group: Group) -> None:
        """Choose a PG's members from the OSDs that are up, and let it serve and recover accordingly."""
        self._writes.note_completed()
        if self._background.cancel(group):
            self._state.actions.cut_background(group.number)
        group.add_empty_copies()
        group.members = group.choose_members(self._state.map.up)
        group.interval.peered = True
        views = _members_by_item(group)
        is_readable = all(
            _is_readable(group, members) for members in set(views.values())
        )
        self._set_active(group, is_readable)
        self._leases.add_members(group)
        must_wait = group.interval.active and self._leases.must_wait(group)
        if group.interval.active:
            for item, members in views.items():
                self._show(group, members, item)
            self._release(group, must_wait=must_wait)
        elif self._state.state_of(group) != State.PEERING:
            self._state.actions.hold(group.number)
        entered = State.WAIT if must_wait else self._next_state(group, is_readable)
        self._state.enter(group, entered)
        if group.joining_copies:
            self._background.recovery.request(group)
        elif entered == State.CLEAN:
            self._finish(group)

    def deactivate(self, group: Group) -> None:
        """Stop a PG whose interval ends: hold its clients, cut off its background work."""
        self._background.cancel(group)
        if group.interval.active:
            self._leases.end_interval(group)
        self._state.actions.hold(group.number)
        self._state.actions.cut_background(group.number)

    # Progress of recovery.

    def recovery_started(self, group: Group) -> None:
        """Mark a PG as recovering, and record the first one in the timeline."""
        copies = group.joining_copies.values()
        is_behind = any(not copy.missing <= copy.cut_off for copy in copies)
        if is_behind and not self._is_recovering:
            self._is_recovering = True
            self._state.note("recovering", f"pg {group.number:x} is the first")
        if self._serves_clients(group):
            entered = State.BACKFILLING if group.is_backfilled else State.RECOVERING
            self._state.enter(group, entered)

    def object_recovered(self, group: Group, item: int) -> None:
        """Send requests for an object to the members that now have it."""
        if self._serves_clients(group):
            self._show(group, group.members_for(item), item)
            self._state.actions.release(group.number)

    def recovery_finished(self, group: Group) -> None:
        """Return a recovered PG to its up set, by another map if other OSDs act for it."""
        missing_count = 0
        for copy in group.joining_copies.values():
            missing_count += len(copy.missing)
            if not copy.missing:
                copy.backfill = False
                copy.missed_count = 0
        if missing_count:
            self._give_up(group, missing_count)
        elif group.pg_temp is not None:
            group.pg_temp = None
            self._monitor.propose("pg_temp", group.number)
        else:
            self.activate(group)

    def recovery_refused(self, group: Group) -> None:
        """Mark a PG that waits for space on an OSD."""
        if self._serves_clients(group):
            self._state.enter(group, State.BACKFILL_TOOFULL)

    def recovery_preempted(self, group: Group) -> None:
        """Mark a PG that waits for its reservations again."""
        if self._serves_clients(group):
            self._state.enter(group, self._next_state(group, is_readable=True))

    def _show(self, group: Group, members: ServingOsds, item: int | None) -> None:
        """Direct clients to the members that serve a PG, or one object of it."""
        assert members.primary is not None
        self._layout.set(
            self._book,
            group.number,
            members.written,
            members.missing,
            members.primary,
            item,
        )

    def _set_active(self, group: Group, is_readable: bool) -> None:
        interval = group.interval
        is_active = is_readable and self._rule.allows(group.members, group.scheme)
        if is_active and not interval.active:
            interval.active_ns = self._state.now_ns
            self._background.note(group, "activation")
        interval.active = is_active

    def _next_state(self, group: Group, is_readable: bool) -> State:
        if not is_readable:
            return State.INCOMPLETE
        if not group.interval.active:
            return State.INACTIVE
        if group.is_backfilled:
            return State.BACKFILL_WAIT
        if group.joining_copies:
            return State.RECOVERY_WAIT
        return State.DEGRADED if group.members.missing else State.CLEAN

    def _serves_clients(self, group: Group) -> bool:
        return group.interval.active and self._state.state_of(group) != State.WAIT

    # Read leases.

    def _release(self, group: Group, *, must_wait: bool) -> None:
        """Release clients, now or when the last lease of earlier intervals expires."""
        if not must_wait:
            self._state.actions.release(group.number)
            return
        end_ns = self._leases.end_ns(group)
        self._state.clock.at(end_ns, self._lease_ended, group, group.interval)

    def _lease_ended(self, group: Group, interval: PgInterval) -> None:
        if group.interval is not interval or not interval.active:
            return
        if self._leases.must_wait(group):
            return
        self._state.actions.release(group.number)
        if self._state.state_of(group) != State.WAIT:
            return
        entered = self._next_state(group, is_readable=True)
        self._state.enter(group, entered)
        if entered == State.CLEAN:
            self._finish(group)

    # The end of a recovery.

    def _give_up(self, group: Group, missing_count: int) -> None:
        self._state.note(
            "unfound",
            f"pg {group.number:x}: no OSD has {missing_count} of its shards",
        )
        if group.interval.active:
            self._state.enter(group, State.DEGRADED)

    def _finish(self, group: Group) -> None:
        """Clean up a PG that has become clean."""
        group.pg_temp = None
        self._background.note(group, "clean")
        if self._state.plan.scrubs:
            self._state.clock.after(0, self._background.scrubs.begin)
        for osd, objects_count in group.drop_strays(self._state.map.up):
            self._background.removals.begin(group, osd, objects_count)
        self._leases.forget_past(group)
        lead = group.members.primary_osd
        assert lead is not None
        self._seen_clean_ns[group.number] = self._monitor.status.seen_ns(lead)
        if self._state.timeline.all_clean:
            self._note_all_clean()

    def _note_all_clean(self) -> None:
        self._is_recovering = False
        self._state.note("clean", "all placement groups")
        self._state.timeline.note(
            max(self._seen_clean_ns.values()),
            "seen clean",
            "the cluster's status shows all placement groups clean",
        )
        self.on_all_clean()


def _do_nothing() -> None:
    pass


def _is_readable(group: Group, members: ServingOsds) -> bool:
    return members.primary is not None and group.scheme.can_decode(members.missing)


def _members_by_item(group: Group) -> dict[int | None, ServingOsds]:
    """Return the members that serve a PG (None), and each object that some of its members lack."""
    members: dict[int | None, ServingOsds] = {None: group.members}
    lacking: set[int] = set()
    for copy in group.joining_inside.values():
        lacking |= copy.missing
    for item in sorted(lacking & group.objects):
        members[item] = group.members_for(item)
    return members

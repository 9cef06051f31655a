"""Peering: from a new map to a PG whose members know what each of them has."""

from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures.activation import Activation
from stripesim.sim.ceph.failures.background.streams import BackgroundWork
from stripesim.sim.ceph.failures.client_writes import ClientWrites
from stripesim.sim.ceph.failures.cluster_map import MapUpdate
from stripesim.sim.ceph.failures.cluster_state import ClusterState
from stripesim.sim.ceph.failures.groups import Group, PgInterval, State
from stripesim.sim.ceph.failures.monitor import Monitor
from stripesim.sim.ceph.failures.stretch import ServingRule
from stripesim.sim.ceph.pool import Pool


class Peering:
    """Takes PGs through new intervals.

    A PG begins an interval if its up set changes or if a member goes down or comes up. It holds its clients
    while the primary queries the members. If an OSD is too far behind, another map names other OSDs to act
    for it (``pg_temp``). Before the PG serves, the monitors must know that its primary was alive in the
    interval (``up_thru``).

    References
    ----------
    Ceph v16.2.15, ``src/osd/PeeringState.cc``.
    """

    def __init__(
        self,
        state: ClusterState,
        monitor: Monitor,
        writes: ClientWrites,
        background: BackgroundWork,
        activation: Activation,
        rule: ServingRule,
    ) -> None:
        self._state = state
        self._monitor = monitor
        self._writes = writes
        self._background = background
        self._activation = activation
        self._rule = rule
        rounds_count = state.model.peering_rounds_count
        self._exchange_ns = rounds_count * _round_trip_ns(state.pool)
        # PGs that wait for a map with the ``up_thru`` of their primary.
        self._unrecorded: set[int] = set()

    def on_map(self, update: MapUpdate) -> None:
        """Begin a new interval of every PG that a new map concerns."""
        narrow = self._state.timeline.narrow
        narrow -= {number for number in narrow if NO_OSD not in update.up_after[number]}
        restarted = update.subjects("down", "up")
        remapped = update.subjects("pg_temp")
        has_new_rule = self._rule.follow_map()
        concerned = self._state.groups
        if not update.osd_changes and not has_new_rule:
            concerned = [concerned[number] for number in sorted(remapped)]
        for group in concerned:
            number = group.number
            up_set = update.up_after[number]
            first_osd = update.first_after[number]
            has_moved = up_set != update.up_before[number]
            has_moved |= (
                first_osd != update.first_before[number] and group.is_replicated
            )
            is_hit = not restarted.isdisjoint(group.members.osds)
            if has_moved or is_hit or has_new_rule or number in remapped:
                self._writes.note_completed()
                group.up = up_set
                group.first_osd = first_osd
                self._begin(group)
            elif self._may_have_new_sources(group, restarted):
                self._activation.activate(group)
        for number in sorted(self._unrecorded):
            group = self._state.groups[number]
            if self._is_recorded(group):
                self._unrecorded.discard(number)
                self._activation.activate(group)

    def _may_have_new_sources(self, group: Group, restarted: set[int]) -> bool:
        """Return True if restarted OSDs outside a PG that recovers have copies of it."""
        if group.is_clean or not group.interval.peered:
            return False
        return group.is_held_by(restarted)

    def _begin(self, group: Group) -> None:
        """Begin a new interval: hold clients, choose members, and query them."""
        state = self._state
        self._unrecorded.discard(group.number)
        self._writes.settle_cut_off(group)
        self._activation.deactivate(group)
        group.interval = PgInterval(state.map.epoch, peered=False, active=False)
        group.add_empty_copies()
        group.members = group.choose_members(state.map.up)
        if not group.members.osds:
            state.enter(group, State.INCOMPLETE)
            return
        self._background.note(group, "interval")
        state.enter(group, State.PEERING)
        state.clock.after(self._exchange_ns, self._exchanged, group, group.interval)

    def _exchanged(self, group: Group, interval: PgInterval) -> None:
        """Process the answers of all members."""
        if group.interval is not interval:
            return
        if group.needs_pg_temp and not group.is_named(self._state.map.up):
            group.pg_temp = group.members.acting
            self._monitor.propose("pg_temp", group.number)
            return
        lead = group.members.primary_osd
        if lead is None or self._is_recorded(group):
            self._activation.activate(group)
            return
        self._unrecorded.add(group.number)
        self._monitor.propose("up_thru", lead)

    def _is_recorded(self, group: Group) -> bool:
        """Return True if the monitors know that the primary was alive in this interval."""
        lead = group.members.primary_osd
        if lead is None:
            return True
        return self._state.map.up_thru[lead] >= group.interval.epoch


def _round_trip_ns(pool: Pool) -> int:
    """Return the time of a question and its answer between two OSDs, with little in them [ns].

    Members at several sites are as far from each other as the sites furthest apart.
    """
    models = pool.cluster.models
    size_bytes = models.messages.sub_reply_bytes
    frames = models.private_nic.frames(size_bytes)
    way_ns = (
        2 * models.cpu.message_ns(size_bytes, frames)
        + 2 * models.private_nic.serialise_ns(size_bytes)
        + models.private_nic.latency_ns
    )
    sites = pool.cluster.sites
    if sites is not None:
        way_ns += float(sites.one_way_ns.max())
    return round(2 * way_ns)

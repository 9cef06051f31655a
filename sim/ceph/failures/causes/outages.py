"""Outages: OSDs and hosts stop and come back, or are lost before the run."""

from collections.abc import Callable

from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures.activation import Activation
from stripesim.sim.ceph.failures.cluster_map import MapUpdate
from stripesim.sim.ceph.failures.cluster_state import ClusterState
from stripesim.sim.ceph.failures.data_loss import DataLoss
from stripesim.sim.ceph.failures.detection import Detection
from stripesim.sim.ceph.failures.groups import Group, State
from stripesim.sim.ceph.failures.monitor import Monitor
from stripesim.sim.ceph.failures.plan import Failure
from stripesim.sim.ceph.failures.timeline import osd_names
from stripesim.sim.engine.program import Start, Stop


class Outages:
    """Carries out the failures of a plan: OSDs stop, start and ask to be marked up."""

    def __init__(
        self,
        state: ClusterState,
        monitor: Monitor,
        detection: Detection,
        data_loss: DataLoss,
        activation: Activation,
    ) -> None:
        self._state = state
        self._monitor = monitor
        self._detection = detection
        self._data_loss = data_loss
        self._activation = activation
        # OSDs that are back before they were marked down.
        self._booting: set[int] = set()
        for failure in state.plan.failures:
            state.clock.at(failure.time_ns, self._fail, failure)
            if failure.back_ns is not None:
                state.clock.at(failure.back_ns, self._return, failure)

    def on_map(self, update: MapUpdate) -> None:
        """Process OSDs that a new map marks down or up."""
        for change in update.changes:
            osd = change.subject
            if change.kind == "down":
                self._detection.forget_reports(osd)
                if osd in self._booting:
                    self._booting.discard(osd)
                    self._monitor.propose("up", osd)
            elif change.kind == "up" and osd in self._detection.silent:
                self._detection.watch(osd)

    def _fail(self, failure: Failure) -> None:
        state = self._state
        osds = set(failure.osds)
        state.actions.add(Stop(self._resources(failure)))
        self._data_loss.count_held(osds)
        names = osd_names(failure.osds)
        state.note("failed", f"{names} ({failure.kind})")
        for group in state.groups:
            if group.interval.active and not osds.isdisjoint(group.members.osds):
                state.enter(group, State.STALE)
        self._data_loss.lose(failure)
        for osd in failure.osds:
            self._booting.discard(osd)
            self._detection.silent[osd] = failure
            self._detection.watch(osd)

    def _return(self, failure: Failure) -> None:
        self._state.actions.add(Start(self._resources(failure)))
        names = osd_names(failure.osds)
        emptied = "" if failure.keeps_data else " (empty)"
        self._state.note("returned", names + emptied)
        for osd in failure.osds:
            del self._detection.silent[osd]
            self._detection.forget_reports(osd)
            if not failure.keeps_data:
                self._data_loss.replace(osd)
            if failure.kind == "hang" and self._is_unnoticed(osd):
                self._resume(osd)
            else:
                self._state.clock.after(self._state.model.boot_ns, self._boot, osd)

    def _is_unnoticed(self, osd: int) -> bool:
        is_up = osd in self._state.map.up
        return is_up and osd not in self._monitor.pending("down")

    def _resume(self, osd: int) -> None:
        """Continue after an unnoticed hang: clients send their requests again."""
        for group in self._state.groups:
            if osd not in group.members.osds or not group.interval.peered:
                continue
            if group.interval.active:
                self._state.actions.send_again(group.number)
            else:
                self._state.actions.hold(group.number)
            self._activation.activate(group)

    def _boot(self, osd: int) -> None:
        if osd in self._detection.silent:
            return
        if osd in self._state.map.up:
            # The monitors first mark the OSD down.
            self._booting.add(osd)
            self._monitor.propose("down", osd)
        else:
            self._monitor.propose("up", osd)

    def _resources(self, failure: Failure) -> tuple[int, ...]:
        cluster = self._state.pool.cluster
        resources: list[int] = []
        for osd in failure.osds:
            resources += map(int, cluster.resources_of_osd(osd))
        for host in failure.hosts:
            resources += map(int, cluster.resources_of_host(host))
        return tuple(resources)


class InitialLoss:
    """Takes OSDs out of the initial state, and counts what they held, and the bytes of shards that join.

    Raises
    ------
    ValueError
        If CRUSH finds no new OSD for a shard.
    """

    def __init__(
        self,
        state: ClusterState,
        activation: Activation,
        shard_bytes: Callable[[int], int],
    ) -> None:
        self.groups: set[int] = set()  # PGs that lost a shard
        self.objects_count = 0
        self.shards_count = 0
        self.lost_bytes = 0
        self.joining_bytes = 0
        self._shard_bytes = shard_bytes
        self._state = state
        self._activation = activation
        plan = state.plan
        if plan.lost_osds or plan.missing_osds:
            state.map.lose(set(plan.lost_osds), set(plan.missing_osds))
            state.clock.at(0, self._begin, self._remapped_groups())

    def _remapped_groups(self) -> list[Group]:
        """Move PGs to their new up sets; return those that change."""
        remapped = []
        raw_up_sets = self._state.map.raw_up_sets()
        for group in self._state.groups:
            up_set = self._state.map.up_sets[group.number]
            if up_set != group.up:
                self._check(group, raw_up_sets[group.number])
                group.up = up_set
                group.first_osd = self._state.map.first_osds[group.number]
                group.forget(set(self._state.plan.lost_osds))
                remapped.append(group)
        return remapped

    def _check(self, group: Group, raw_up_set: list[int]) -> None:
        """Refuse a PG with a shard that has no new OSD.

        A shard that CRUSH still maps to an OSD that is down but not out is not rebuilt.
        """
        up_set = self._state.map.up_sets[group.number]
        missing = set(self._state.plan.missing_osds)
        holes_count = group.up.count(NO_OSD) + len(missing.intersection(raw_up_set))
        if up_set.count(NO_OSD) > holes_count:
            raise ValueError(
                f"repair: placement group {group.number:x}: CRUSH found no new OSD for shard "
                f"{up_set.index(NO_OSD)}; wanted a spare failure domain"
            )

    def _begin(self, groups: list[Group]) -> None:
        """Activate the PGs that lost members, which have peered before the run."""
        plan = self._state.plan
        names = osd_names((*plan.lost_osds, *plan.missing_osds))
        self._state.note("failed", f"{names} (before the run)")
        # None is clean before its own turn, so that a group without objects does not end the recovery.
        for group in groups:
            self._state.enter(group, State.DEGRADED)
        for group in groups:
            self._activation.activate(group)
            if group.needs_pg_temp:
                group.pg_temp = group.members.acting
            joining = sum(osd != NO_OSD for osd in group.members.joining)
            objects_bytes = len(group.objects) * self._shard_bytes(group.number)
            self.joining_bytes += joining * objects_bytes
            shards_count = _rebuilt_shards(group)
            if shards_count:
                self.groups.add(group.number)
                self.objects_count += len(group.objects)
                self.shards_count += shards_count * len(group.objects)
                self.lost_bytes += shards_count * objects_bytes


def _rebuilt_shards(group: Group) -> int:
    """Count the shards of a PG that are made on an OSD that joins, and that no other OSD serves."""
    members = group.members
    pairs = zip(members.acting, members.joining, strict=True)
    return sum(joins != NO_OSD and serves in (NO_OSD, joins) for serves, joins in pairs)

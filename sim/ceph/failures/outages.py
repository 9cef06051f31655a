"""Outages: OSDs and hosts stop and come back, shards rot, peers and scrubs find out."""

from collections.abc import Callable, Sequence

import numpy as np

from stripesim.sim.ceph.failures.agenda import Agenda
from stripesim.sim.ceph.failures.groups import Group, State
from stripesim.sim.ceph.failures.monitor import Change, Heartbeats, Monitor
from stripesim.sim.ceph.failures.schedule import Corruption, Failure, FaultPlan
from stripesim.sim.ceph.failures.scrubs import deep_scrub_phase_ns
from stripesim.sim.ceph.failures.timeline import Timeline, osd_names
from stripesim.sim.ceph.heartbeats import heartbeat_peers
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.engine.program import Action, SetGroup, Start, Stop


class Outages:
    """Carries out a plan of faults: what stops, who notices, what is gone for good.

    `act` takes what the engine is to do; `serve` is called where members are to be decided on again without
    peering; `note_writes` brings the placement groups up to date with completed writes.
    """

    def __init__(
        self,
        plan: FaultPlan,
        pool: Pool,
        agenda: Agenda,
        monitor: Monitor,
        groups: Sequence[Group],
        timeline: Timeline,
        *,
        act: Callable[[Action], None],
        serve: Callable[[int, Group], None],
        note_writes: Callable[[], None],
    ) -> None:
        cluster = pool.cluster
        self._plan, self._model, self._pool = plan, plan.model, pool
        self._agenda, self._monitor = agenda, monitor
        self._groups, self._timeline = groups, timeline
        self._act, self._serve = act, serve
        self._note_writes = note_writes
        # Shards that OSDs held when they failed, and shards that scrubs found bad.
        self.lost_shards = 0
        self._heartbeats = Heartbeats(
            plan.model, heartbeat_peers(cluster), cluster.osds, plan.seed
        )
        # Who is dead, and of which failure; whose data is gone; who starts before being marked down.
        self._dead: dict[int, Failure] = {}
        self._gone: set[int] = set()
        self._booting: set[int] = set()
        for failure in plan.failures:
            agenda.at(failure.time_ns, self._fail, failure)
            if failure.back_ns is not None:
                agenda.at(failure.back_ns, self._return, failure)
        for number, corruption in enumerate(plan.corruptions):
            agenda.at(corruption.time_ns, self._corrupt, corruption, number)

    def silent_since_ns(self, osd: int) -> int | None:
        """Return since when an OSD has not answered [ns]; None: it answers."""
        return self._dead[osd].time_ns if osd in self._dead else None

    def is_known_dead(self, osd: int) -> bool:
        """Tell whether an OSD that is down is known not to run: its host refused connections."""
        return osd not in self._dead or self._dead[osd].kind == "process"

    def on_change(self, now_ns: int, change: Change) -> None:
        """React to what a new map says of an OSD."""
        osd = change.subject
        if change.what == "down" and osd in self._booting:
            self._booting.discard(osd)
            self._monitor.propose(now_ns, Change("up", osd))
        if change.what == "up" and osd in self._dead:
            self._watch(now_ns, osd, self._dead[osd])

    def _resources(self, failure: Failure) -> tuple[int, ...]:
        cluster = self._pool.cluster
        found = [
            int(index)
            for osd in failure.osds
            for index in cluster.resources_of_osd(osd)
        ]
        found += [
            int(index)
            for host in failure.hosts
            for index in cluster.resources_of_host(host)
        ]
        return tuple(found)

    def _fail(self, now_ns: int, failure: Failure) -> None:
        self._act(Stop(self._resources(failure)))
        self.lost_shards += self._held_shards(set(failure.osds))
        names = osd_names(failure.osds)
        self._timeline.note(now_ns, "failed", f"{names} ({failure.kind})")
        for osd in failure.osds:
            self._dead[osd] = failure
            self._booting.discard(osd)
        lost = failure.back_ns is None or not failure.keeps_data
        if lost:
            self._gone |= set(failure.osds)
        for group in self._groups:
            hit = group.members.osds & set(failure.osds)
            if hit and group.active:
                self._timeline.enter(now_ns, group.number, State.STALE)
        if lost:
            self._note_losses(now_ns, failure)
        for osd in failure.osds:
            self._watch(now_ns, osd, failure)

    def _held_shards(self, osds: set[int]) -> int:
        """Count the shards of objects that some OSDs hold."""
        self._note_writes()
        return sum(
            len(group.objects - copy.missing)
            for group in self._groups
            for (osd, _), copy in group.copies.items()
            if osd in osds
        )

    def _note_losses(self, now_ns: int, failure: Failure) -> None:
        """See what can never be read again, now that some copies are gone for good."""
        before = sum(map(len, self._timeline.lost.values()))
        for group in self._groups:
            held = {osd for osd, _ in group.copies}
            if not held & set(failure.osds):
                continue
            lost = {
                item for item in group.objects if not group.decodable(item, self._keeps)
            }
            if lost:
                self._timeline.lost.setdefault(group.number, set()).update(lost)
        more = sum(map(len, self._timeline.lost.values())) - before
        if more:
            self._timeline.note(
                now_ns,
                "lost",
                f"{more} objects: fewer shards are left than the code needs",
            )

    def _keeps(self, osd: int) -> bool:
        return osd not in self._gone

    def _watch(self, now_ns: int, osd: int, failure: Failure) -> None:
        """Let those who ping an OSD find out that it does not answer."""
        for watcher in self._heartbeats.watchers(osd):
            when_ns = self._heartbeats.noticed_ns(watcher, now_ns, failure.kind)
            self._agenda.at(max(now_ns, when_ns), self._noticed, osd, watcher, failure)
        hosts = {
            int(self._pool.cluster.osd_hosts[other])
            for other in self._heartbeats.watchers(osd)
        }
        if (
            failure.kind != "process"
            and len(hosts) < self._model.min_down_reporters_count
        ):
            self._agenda.at(
                now_ns + self._model.report_timeout_ns, self._unheard, osd, failure
            )

    def _noticed(self, now_ns: int, osd: int, watcher: int, failure: Failure) -> None:
        if self._dead.get(osd) is not failure or osd not in self._monitor.up:
            return
        if watcher in self._dead:
            # One reporter less: in the end the monitors notice by themselves.
            self._agenda.at(
                failure.time_ns + self._model.report_timeout_ns,
                self._unheard,
                osd,
                failure,
            )
        else:
            self._monitor.report(
                now_ns, osd, watcher, refused=failure.kind == "process"
            )

    def _unheard(self, now_ns: int, osd: int, failure: Failure) -> None:
        if self._dead.get(osd) is failure:
            self._monitor.mark_down(now_ns, osd, "silent to the monitors")

    def _return(self, now_ns: int, failure: Failure) -> None:
        self._act(Start(self._resources(failure)))
        names = osd_names(failure.osds)
        emptied = "" if failure.keeps_data else " (empty)"
        self._timeline.note(now_ns, "returned", names + emptied)
        for osd in failure.osds:
            del self._dead[osd]
            self._monitor.forget_reports(osd)
            if not failure.keeps_data:
                for group in self._groups:
                    group.wipe(osd)
                self._gone.discard(osd)
            if (
                failure.kind == "hang"
                and osd in self._monitor.up
                and not self._monitor.is_leaving(osd)
            ):
                self._resume(now_ns, osd)
            else:
                self._agenda.at(now_ns + self._model.boot_ns, self._boot, osd)

    def _resume(self, now_ns: int, osd: int) -> None:
        """Go on after a hang that nobody has noticed: what was in flight is sent again."""
        for group in self._groups:
            if osd in group.members.osds and group.peered:
                self._act(SetGroup(group.number, held=not group.active, interrupt=True))
                self._serve(now_ns, group)

    def _boot(self, now_ns: int, osd: int) -> None:
        if osd in self._dead:
            return
        if osd in self._monitor.up:
            # The monitors first mark the OSD's former life down.
            self._booting.add(osd)
            self._monitor.propose(now_ns, Change("down", osd))
        else:
            self._monitor.propose(now_ns, Change("up", osd))

    # Rot, and the scrub that finds it.

    def _corrupt(self, now_ns: int, corruption: Corruption, number: int) -> None:
        held = [
            (group, item)
            for group in self._groups
            for item in sorted(group.objects)
            if any(
                osd == corruption.osd and item not in copy.missing
                for (osd, _), copy in group.copies.items()
            )
        ]
        draw = np.random.default_rng([self._plan.seed, 7, number])
        chosen = draw.permutation(len(held))[: corruption.shards_count].tolist()
        self._timeline.note(
            now_ns, "corrupted", f"{len(chosen)} shards on osd.{corruption.osd}"
        )
        interval_ns = self._model.scrub_interval_ns
        for group, item in (held[index] for index in chosen):
            for (osd, _), copy in group.copies.items():
                if osd == corruption.osd:
                    copy.corrupt.add(item)
            if not group.decodable(item, self._keeps):
                self._timeline.lost.setdefault(group.number, set()).add(item)
            if not self._plan.scrubs:
                phase_ns = deep_scrub_phase_ns(
                    self._plan.seed, group.number, interval_ns
                )
                due_ns = (
                    phase_ns
                    + -(-max(0, now_ns - phase_ns) // interval_ns) * interval_ns
                )
                self._agenda.at(due_ns, self._scrub, group)

    def _scrub(self, now_ns: int, group: Group) -> None:
        if not group.active:
            # A scrub waits until the placement group serves again; the next tick is soon enough.
            if group.number not in self._timeline.lost:
                self._agenda.at(
                    now_ns + self._model.monitor_tick_ns, self._scrub, group
                )
            return
        self.found(now_ns, group)

    def found(self, now_ns: int, group: Group) -> None:
        """A scrub has compared a placement group: what is bad is known now, and recovered."""
        found = 0
        for copy in group.copies.values():
            found += len(copy.corrupt)
            copy.missing |= copy.corrupt
            copy.corrupt = set()
        self.lost_shards += found
        if found:
            self._timeline.note(
                now_ns, "scrubbed", f"pg {group.number:x}: {found} bad shards found"
            )
            self._serve(now_ns, group)

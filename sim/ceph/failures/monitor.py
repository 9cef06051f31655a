"""The monitors: they collect changes, publish them as new maps, and mark OSDs out."""

from collections.abc import Callable, Iterable

import numpy as np

from stripesim.sim.ceph.failures.cluster_map import (
    ChangeKind,
    MapChange,
    MapUpdate,
)
from stripesim.sim.ceph.failures.cluster_state import ClusterState


class StatusReports:
    """The clocks of reports on PGs, from OSDs to the manager and from there to the monitors.

    Each reports at a moment within its period that the seed decides.
    """

    def __init__(self, state: ClusterState) -> None:
        model = state.model
        self._state = state
        draw = np.random.default_rng([state.plan.seed, 10])
        self._digest_phase_ns = int(draw.integers(max(1, model.digest_period_ns)))
        phases = draw.integers(max(1, model.stats_period_ns), size=state.map.osds)
        self._stats_phases_ns: list[int] = phases.tolist()

    def last_digest_ns(self) -> int | None:
        """Return when the monitors last kept a digest of the manager [ns], None if they keep none."""
        period_ns = self._state.model.digest_period_ns
        if not period_ns:
            return None
        now_ns = self._state.now_ns
        return now_ns - (now_ns - self._digest_phase_ns) % period_ns

    def seen_ns(self, osd: int) -> int:
        """Return when the cluster's status shows a change of an OSD's PGs that happens now [ns]."""
        model = self._state.model
        reported_ns = _next_tick(
            self._state.now_ns, self._stats_phases_ns[osd], model.stats_period_ns
        )
        return _next_tick(reported_ns, self._digest_phase_ns, model.digest_period_ns)


class Monitor:
    """Publishes changes as new maps, to `subscribers` in order.

    Notes
    -----
    Changes wait for the next map. Maps are at least ``propose_interval_ns`` apart, and
    ``propose_min_wait_ns`` after the first change. Any commit of the monitors counts as a map here, also that
    of a digest of the manager. Deviation: every OSD and client has a map the moment it is
    published.

    References
    ----------
    Ceph v16.2.15, ``src/mon/PaxosService.cc`` (``should_propose``).
    """

    def __init__(self, state: ClusterState) -> None:
        self.subscribers: list[Callable[[MapUpdate], None]] = []
        self.status = StatusReports(state)
        self._state = state
        # An ordered set.
        self._pending: dict[MapChange, None] = {}
        self._published_ns: int | None = None

    def propose(self, kind: ChangeKind, subject: int) -> None:
        """Put a change into the next map."""
        self.propose_all([MapChange(kind, subject)])

    def propose_all(self, changes: Iterable[MapChange]) -> None:
        """Put changes into the next map."""
        if not self._pending:
            self._state.clock.at(self._next_map_ns(), self._publish)
        self._pending |= dict.fromkeys(changes)

    def pending(self, kind: ChangeKind) -> set[int]:
        """Return the OSDs or PGs with a kind of change in the next map."""
        return {change.subject for change in self._pending if change.kind == kind}

    def _next_map_ns(self) -> int:
        moments = [self._state.now_ns + self._state.model.propose_min_wait_ns]
        for commit_ns in (self._published_ns, self.status.last_digest_ns()):
            if commit_ns is not None:
                moments.append(commit_ns + self._state.model.propose_interval_ns)
        return max(moments)

    def _publish(self) -> None:
        changes = list(self._pending)
        self._pending = {}
        self._published_ns = self._state.now_ns
        update = self._state.map.apply(changes)
        for subscriber in self.subscribers:
            subscriber(update)


class DownOut:
    """Marks OSDs out once they have been down for an interval.

    Not if too few would be left in, nor while a whole rack is down.

    References
    ----------
    Ceph v16.2.15, ``src/mon/OSDMonitor.cc`` (``tick``, ``can_mark_out``).
    """

    def __init__(self, state: ClusterState, monitor: Monitor) -> None:
        self._state = state
        self._monitor = monitor
        self._down_since_ns: dict[int, int] = {}
        # OSDs that were due but not marked out, and are checked again when an OSD comes up.
        self._kept_in: set[int] = set()

    def on_map(self, update: MapUpdate) -> None:
        """Start and stop the clocks of OSDs that go down and come up."""
        for change in update.changes:
            if change.kind == "down":
                self._start(change.subject)
            elif change.kind == "up":
                self._stop(change.subject)

    def _start(self, osd: int) -> None:
        self._down_since_ns[osd] = self._state.now_ns
        if osd not in self._state.map.out:
            self._check_later(osd, self._state.model.down_out_interval_ns)

    def _stop(self, osd: int) -> None:
        self._down_since_ns.pop(osd, None)
        self._kept_in.discard(osd)
        for other in sorted(self._kept_in):
            self._check_later(other, delay_ns=0)
        self._kept_in.clear()

    def _check_later(self, osd: int, delay_ns: int) -> None:
        """Check an OSD at the monitors' next tick after a delay."""
        tick_ns = self._state.model.monitor_tick_ns
        ticks = -(-(self._state.now_ns + delay_ns) // tick_ns)
        self._state.clock.at(
            ticks * tick_ns, self._check, osd, self._down_since_ns[osd]
        )

    def _check(self, osd: int, down_since_ns: int) -> None:
        if self._down_since_ns.get(osd) != down_since_ns or osd in self._state.map.out:
            return
        reason = self._reason_to_keep(osd)
        if reason is None:
            self._monitor.propose("auto_out", osd)
            return
        self._kept_in.add(osd)
        self._state.note("kept in", f"osd.{osd} is not marked out: {reason}")

    def _reason_to_keep(self, osd: int) -> str | None:
        cluster_map = self._state.map
        out = cluster_map.out | self._monitor.pending("auto_out")
        # The monitors compare the OSDs that are in before this one goes (OSDMonitor::can_mark_out).
        still_in = cluster_map.osds - len(out)
        if still_in < self._state.model.min_in_fraction * cluster_map.osds:
            return f"only {still_in} OSDs are in"
        racks = self._state.plan.osd_racks
        if racks is None:
            return None
        rack = np.flatnonzero(racks == racks[osd]).tolist()
        return (
            "its whole rack or site is down"
            if cluster_map.up.isdisjoint(rack)
            else None
        )


def _next_tick(time_ns: int, phase_ns: int, period_ns: int) -> int:
    """Return the next moment of a clock [ns]; the time itself without a period."""
    if not period_ns:
        return time_ns
    return time_ns + (phase_ns - time_ns) % period_ns

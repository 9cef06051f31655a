"""Detection of dead OSDs: peers ping each other, and report silent ones to the monitors."""

import numpy as np

from stripesim.models.recovery import RecoveryModel
from stripesim.sim.ceph.failures.cluster_state import ClusterState
from stripesim.sim.ceph.failures.monitor import Monitor
from stripesim.sim.ceph.failures.plan import Failure, FailureKind
from stripesim.sim.ceph.heartbeats import heartbeat_peers
from stripesim.sim.engine.graph import IntArray


class Heartbeats:
    """The clocks of OSDs that ping each other and notice silence.

    Parameters
    ----------
    model
        Intervals and grace.
    pairs
        OSD that pings and OSD that answers, shape (pairs, 2).
    osds
        Number of OSDs.
    seed
        Decides at which moment within the interval each OSD pings.

    Notes
    -----
    An OSD pings its peers at ``phase + n · interval`` and looks for silent ones at ``phase + n · tick``.
    Kraken counts the grace from the last answer, so that silence is noticed ``grace − interval`` to ``grace``
    (and a tick) after it began. Later versions count from the first ping without an answer: ``grace`` to
    ``grace + interval``. Deviation: Ceph draws the time to each next ping again.

    References
    ----------
    Ceph v11.2.0 and v16.2.15, ``src/osd/OSD.cc`` (``heartbeat``, ``heartbeat_check``), ``src/osd/OSD.h``
    (``HeartbeatInfo::is_unhealthy``).
    """

    def __init__(
        self, model: RecoveryModel, pairs: IntArray, osds: int, seed: int
    ) -> None:
        self._model = model
        self._watchers: list[list[int]] = [[] for _ in range(osds)]
        for watcher, watched in pairs.tolist():
            self._watchers[watched].append(watcher)
        draw = np.random.default_rng([seed, 6])
        phases = draw.integers(0, model.heartbeat_interval_ns, osds)
        self.phases_ns: list[int] = phases.tolist()

    def watchers(self, osd: int) -> list[int]:
        """Return the OSDs that ping this one."""
        return self._watchers[osd]

    def noticed_ns(self, watcher: int, fails_ns: int, kind: FailureKind) -> int:
        """Return when a watcher reports an OSD that stopped answering [ns]."""
        if kind == "process":
            return fails_ns
        model = self._model
        phase_ns = self.phases_ns[watcher]
        interval_ns = model.heartbeat_interval_ns
        # A ping at the very moment of the failure gets no answer.
        start_ns = _tick_from(fails_ns, phase_ns, interval_ns)
        if model.grace_from == "last_reply":
            # Before its first ping a watcher counts from the beginning.
            start_ns = max(0, start_ns - interval_ns)
        expires_ns = start_ns + model.heartbeat_grace_ns
        return _tick_from(expires_ns, phase_ns, model.osd_tick_ns)


class Detection:
    """Reports of silent OSDs, by their peers to the monitors.

    `silent` maps each OSD that does not answer to its failure.

    References
    ----------
    Ceph v16.2.15, ``src/mon/OSDMonitor.cc`` (``check_failure``).
    """

    def __init__(self, state: ClusterState, monitor: Monitor) -> None:
        cluster = state.pool.cluster
        self.silent: dict[int, Failure] = {}
        self._state = state
        self._monitor = monitor
        self._hosts: list[int] = cluster.osd_hosts.tolist()
        self._heartbeats = Heartbeats(
            state.model, heartbeat_peers(cluster), cluster.osds, state.plan.seed
        )
        # Hosts from which a silent OSD was reported.
        self._reporting_hosts: dict[int, set[int]] = {}

    def last_answer_ns(self, osd: int) -> int:
        """Return when an OSD answered last [ns]: now unless it is silent."""
        return self.silent[osd].time_ns if osd in self.silent else self._state.now_ns

    def is_known_dead(self, osd: int) -> bool:
        """Return True if an OSD that is down is known not to run, since its host refused connections."""
        return osd not in self.silent or self.silent[osd].kind == "process"

    @property
    def answering(self) -> set[int]:
        """OSDs that are up and answer."""
        return self._state.map.up - self.silent.keys()

    def watch(self, osd: int) -> None:
        """Schedule the moments at which the peers of a silent OSD notice it."""
        now_ns = self._state.now_ns
        failure = self.silent[osd]
        watchers = self._heartbeats.watchers(osd)
        for watcher in watchers:
            noticed_ns = self._heartbeats.noticed_ns(watcher, now_ns, failure.kind)
            self._state.clock.at(
                max(now_ns, noticed_ns), self._notice, osd, watcher, failure
            )
        hosts = {self._hosts[watcher] for watcher in watchers}
        too_few = len(hosts) < self._state.model.min_down_reporters_count
        if failure.kind != "process" and too_few:
            self._time_out(now_ns, osd, failure)

    def forget_reports(self, osd: int) -> None:
        """Forget the reports of an OSD."""
        self._reporting_hosts.pop(osd, None)

    def _notice(self, osd: int, watcher: int, failure: Failure) -> None:
        if self.silent.get(osd) is not failure or osd not in self._state.map.up:
            return
        if watcher in self.silent:
            # Without this reporter, the monitors may have to notice by themselves.
            self._time_out(failure.time_ns, osd, failure)
        elif failure.kind == "process":
            self._mark_down(osd, "connection refused")
        else:
            self._report(osd, watcher)

    def _report(self, osd: int, watcher: int) -> None:
        hosts = self._reporting_hosts.setdefault(osd, set())
        hosts.add(self._hosts[watcher])
        if len(hosts) >= self._state.model.min_down_reporters_count:
            self._mark_down(osd, f"reported from {len(hosts)} hosts")

    def _time_out(self, since_ns: int, osd: int, failure: Failure) -> None:
        """Schedule the moment at which the monitors notice an OSD that does not report to them."""
        due_ns = since_ns + self._state.model.report_timeout_ns
        self._state.clock.at(due_ns, self._timed_out, osd, failure)

    def _timed_out(self, osd: int, failure: Failure) -> None:
        if self.silent.get(osd) is failure:
            self._mark_down(osd, "silent to the monitors")

    def _mark_down(self, osd: int, reason: str) -> None:
        if osd in self._state.map.up and osd not in self._monitor.pending("down"):
            self._state.note("detected", f"osd.{osd} {reason}")
            self._monitor.propose("down", osd)


def _tick_from(time_ns: int, phase_ns: int, period_ns: int) -> int:
    """Return the first tick of a clock not before a time, nor before its phase [ns]."""
    ticks = max(0, -(-(time_ns - phase_ns) // period_ns))
    return phase_ns + ticks * period_ns

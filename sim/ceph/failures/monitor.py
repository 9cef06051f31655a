"""The monitors: they hear of silent OSDs, decide who is down and who is out, and publish maps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stripesim.models.recovery import RecoveryModel
from stripesim.sim.ceph.failures.agenda import Agenda
from stripesim.sim.ceph.failures.schedule import Kind
from stripesim.sim.engine.graph import IntArray

What = Literal["down", "up", "out", "up_thru", "pg_temp"]


@dataclass(frozen=True)
class Change:
    """One thing that a new map says; `subject` is an OSD, or a placement group for ``pg_temp``."""

    what: What
    subject: int


class Monitor:
    """The map of who is up and in, and how it changes.

    `on_map` gets each new map's changes, `note` what goes into the timeline; `seed` sets when OSDs and the
    manager report statistics.

    Changes wait for the next map; maps are published at least `propose_interval_ns` apart, and
    `propose_min_wait_ns` after the first change if the last map is older. What counts is the last commit of
    the monitors, whatever it was of: they also keep each digest of the manager's. Deviation: every OSD and
    client has a map the moment it is published.

    See Ceph v16.2.15, ``src/mon/PaxosService.cc`` (``should_propose``), ``src/mon/OSDMonitor.cc``
    (``check_failure``, ``tick``, ``can_mark_out``).
    """

    def __init__(
        self,
        model: RecoveryModel,
        agenda: Agenda,
        osd_hosts: IntArray,
        osd_racks: IntArray | None,
        on_map: Callable[[int, Sequence[Change]], None],
        note: Callable[[int, str, str], None],
        seed: int = 0,
    ) -> None:
        self._model, self._agenda = model, agenda
        self._hosts, self._racks = osd_hosts, osd_racks
        self._on_map, self._note = on_map, note
        self.epoch = 1
        self.up = set(range(len(osd_hosts)))
        self.out: set[int] = set()
        self.up_thru: dict[int, int] = {}
        self._pending: list[Change] = []
        self._published_ns: int | None = None
        self._down_since: dict[int, int] = {}
        self._reporters: dict[int, set[int]] = {}
        self._kept_in: set[int] = set()
        draw = np.random.default_rng([seed, 10])
        self._digest_phase_ns = int(draw.integers(max(1, model.digest_period_ns)))
        self._stats_phases_ns: list[int] = draw.integers(
            max(1, model.stats_period_ns), size=len(osd_hosts)
        ).tolist()

    # Failures are reported.

    def report(self, now_ns: int, osd: int, reporter: int, *, refused: bool) -> None:
        """Take an OSD's word that another does not answer; `refused`: its host refused the connection."""
        if osd not in self.up:
            return
        hosts = self._reporters.setdefault(osd, set())
        hosts.add(int(self._hosts[reporter]))
        if refused or len(hosts) >= self._model.min_down_reporters_count:
            why = (
                "connection refused" if refused else f"reported from {len(hosts)} hosts"
            )
            self.mark_down(now_ns, osd, why)

    def forget_reports(self, osd: int) -> None:
        """An OSD answers again."""
        self._reporters.pop(osd, None)

    def is_leaving(self, osd: int) -> bool:
        """Tell whether the next map marks an OSD down."""
        return Change("down", osd) in self._pending

    def mark_down(self, now_ns: int, osd: int, why: str) -> None:
        """Mark an OSD down that was reported, or that the monitors have not heard from for too long."""
        change = Change("down", osd)
        if osd in self.up and change not in self._pending:
            self._note(now_ns, "detected", f"osd.{osd} {why}")
            self.propose(now_ns, change)

    # Maps.

    def propose(self, now_ns: int, change: Change) -> None:
        """Put a change into the next map."""
        if change in self._pending:
            return
        self._pending.append(change)
        if len(self._pending) == 1:
            earliest = now_ns + self._model.propose_min_wait_ns
            if self._published_ns is not None:
                earliest = max(
                    earliest, self._published_ns + self._model.propose_interval_ns
                )
            if period_ns := self._model.digest_period_ns:
                # The monitors last kept a digest of the manager's then.
                digest_ns = now_ns - (now_ns - self._digest_phase_ns) % period_ns
                earliest = max(earliest, digest_ns + self._model.propose_interval_ns)
            self._agenda.at(earliest, self._publish)

    def seen_ns(self, time_ns: int, osd: int) -> int:
        """Return when the cluster's status shows what an OSD knows of its placement groups [ns]."""
        reported_ns = _next_tick(
            time_ns, self._stats_phases_ns[osd], self._model.stats_period_ns
        )
        return _next_tick(
            reported_ns, self._digest_phase_ns, self._model.digest_period_ns
        )

    def _publish(self, now_ns: int) -> None:
        changes, self._pending = self._pending, []
        self.epoch += 1
        self._published_ns = now_ns
        for change in changes:
            self._apply(now_ns, change)
        self._on_map(now_ns, changes)

    def _apply(self, now_ns: int, change: Change) -> None:
        osd = change.subject
        if change.what == "down":
            self.up.discard(osd)
            self.forget_reports(osd)
            self._down_since[osd] = now_ns
            if osd not in self.out:
                tick_ns = self._tick_from(now_ns + self._model.down_out_interval_ns)
                self._agenda.at(tick_ns, self._out, osd, now_ns)
        elif change.what == "up":
            self.up.add(osd)
            self._down_since.pop(osd, None)
            self._kept_in.discard(osd)
            # mon_osd_auto_mark_auto_out_in: who was marked out for being down is taken in again.
            self.out.discard(osd)
            for other in sorted(self._kept_in):
                self._agenda.at(
                    self._tick_from(now_ns), self._out, other, self._down_since[other]
                )
            self._kept_in.clear()
        elif change.what == "out":
            self.out.add(osd)
        elif change.what == "up_thru":
            self.up_thru[osd] = self.epoch

    def _tick_from(self, time_ns: int) -> int:
        tick_ns = self._model.monitor_tick_ns
        return -(-time_ns // tick_ns) * tick_ns

    def _out(self, now_ns: int, osd: int, down_since_ns: int) -> None:
        """Mark an OSD out that has been down for the interval, unless too few would be left in."""
        if self._down_since.get(osd) != down_since_ns or osd in self.out:
            return
        leaving = {change.subject for change in self._pending if change.what == "out"}
        left = len(self._hosts) - len(self.out | leaving | {osd})
        if left < self._model.min_in_fraction * len(self._hosts):
            self._kept_in.add(osd)
            self._note(
                now_ns,
                "kept in",
                f"osd.{osd} is not marked out: only {left} OSDs would be in",
            )
            return
        if self._racks is not None and self.up.isdisjoint(
            np.flatnonzero(self._racks == self._racks[osd])
        ):
            self._kept_in.add(osd)
            self._note(
                now_ns,
                "kept in",
                f"osd.{osd} is not marked out: its whole rack is down",
            )
            return
        self.propose(now_ns, Change("out", osd))


def _next_tick(time_ns: int, phase_ns: int, period_ns: int) -> int:
    """Return the next moment of a clock [ns]; the time itself if it has no period."""
    return time_ns + (phase_ns - time_ns) % period_ns if period_ns else time_ns


class Heartbeats:
    """Who pings whom and when; it turns an OSD's silence into reports.

    `pairs` has the OSD that pings and the one that answers; `seed` sets each OSD's moment within the
    interval.

    An OSD pings its peers at ``phase + n · interval`` and looks for silent ones at ``phase + n · tick``.
    Kraken counts the grace from the last answer, so that silence is noticed ``grace − interval`` to ``grace``
    (and a tick) after it began; later versions count from the first ping that was not answered: ``grace`` to
    ``grace + interval``. Deviation: Ceph draws the time to each next ping again.

    See Ceph v11.2.0 and v16.2.15, ``src/osd/OSD.cc`` (``heartbeat``, ``heartbeat_check``), ``src/osd/OSD.h``
    (``HeartbeatInfo::is_unhealthy``).
    """

    def __init__(
        self, model: RecoveryModel, pairs: IntArray, osds: int, seed: int
    ) -> None:
        self._model = model
        self._watchers: list[list[int]] = [[] for _ in range(osds)]
        for watcher, watched in pairs.tolist():
            self._watchers[watched].append(watcher)
        phases = np.random.default_rng([seed, 6]).integers(
            0, model.heartbeat_interval_ns, osds
        )
        self.phases_ns: list[int] = phases.tolist()

    def watchers(self, osd: int) -> list[int]:
        """Return the OSDs that ping this one."""
        return self._watchers[osd]

    def noticed_ns(self, watcher: int, fails_ns: int, kind: Kind) -> int:
        """Return when a watcher reports an OSD that stopped answering [ns]."""
        if kind == "process":
            return fails_ns
        model, phase_ns = self._model, self.phases_ns[watcher]
        interval_ns = model.heartbeat_interval_ns
        # A ping at the very moment of the failure is not answered any more.
        unanswered_ns = (
            phase_ns + max(0, -(-(fails_ns - phase_ns) // interval_ns)) * interval_ns
        )
        if model.grace_from == "first_unanswered":
            start_ns = unanswered_ns
        else:
            # Before its first ping a watcher counts from the beginning.
            start_ns = max(0, unanswered_ns - interval_ns)
        expires_ns = start_ns + model.heartbeat_grace_ns
        return (
            phase_ns
            + max(0, -(-(expires_ns - phase_ns) // model.osd_tick_ns))
            * model.osd_tick_ns
        )

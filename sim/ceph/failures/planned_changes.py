"""Planned changes: an operator marks OSDs out or in, or gives them another weight."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from stripesim.sim.ceph.failures.cluster_map import MapChange, MapUpdate, UpSet
from stripesim.sim.ceph.failures.cluster_state import ClusterState
from stripesim.sim.ceph.failures.monitor import Monitor
from stripesim.sim.ceph.failures.plan import PlannedChange
from stripesim.sim.engine.program import End


@dataclass
class AppliedChange:
    """An applied change: up sets before and after its maps, and when the cluster became clean again."""

    change: PlannedChange
    up_before: Sequence[UpSet]
    up_after: Sequence[UpSet]
    asked_ns: int  #: Time at which the operator starts [ns]
    made_ns: int  #: Time of the first map [ns]
    #: Times of the maps that follow, one for each command [ns]
    later_maps_ns: list[int] = field(default_factory=list)
    clean_ns: int | None = None  #: Time when all PGs are clean [ns], None if never


@dataclass
class _AskedChange:
    """A change whose maps are not all published."""

    change: PlannedChange
    asked_ns: int
    #: Changes that no map has yet
    left: set[MapChange]
    applied: AppliedChange | None = None


class PlannedChanges:
    """Applies the changes of a plan: at their times, or in turn, each once the cluster is clean.

    `applied` lists the applied changes.
    """

    def __init__(self, state: ClusterState, monitor: Monitor) -> None:
        self.applied: list[AppliedChange] = []
        self._state = state
        self._monitor = monitor
        self._waiting = deque(
            change for change in state.plan.changes if change.time_ns is None
        )
        self._pauses = False
        self._asked: list[_AskedChange] = []
        for change in state.plan.changes:
            if change.time_ns is not None:
                state.clock.at(change.time_ns, self._ask, change)
        state.clock.at(0, self.on_all_clean)

    def on_map(self, update: MapUpdate) -> None:
        """Record the changes of a new map. Some move nothing."""
        published = set(update.changes)
        for asked in self._asked:
            if asked.left.isdisjoint(published):
                # This map ends the previous change. A later map has the new one.
                continue
            asked.left -= published
            self._note_map(asked, update)
        self._asked = [asked for asked in self._asked if asked.left]
        if self._state.timeline.all_clean:
            self.on_all_clean()

    def on_all_clean(self) -> None:
        """End all applied changes, and request the next."""
        if not self._state.timeline.all_clean or self._asked:
            return
        now_ns = self._state.now_ns
        for applied in self.applied:
            if applied.clean_ns is None:
                applied.clean_ns = now_ns
        if self._waiting and not self._pauses:
            self._pauses = True
            begin_ns = max(now_ns, self._state.map.norebalance_until_ns)
            pause_ns = self._state.plan.change_pause_ns
            self._state.clock.at(begin_ns + pause_ns, self._ask_next)
        self._end_after_last(now_ns)

    def _end_after_last(self, now_ns: int) -> None:
        """End the run some time after the last change and return, if the plan says so."""
        plan = self._state.plan
        if plan.end_pause_ns is None or len(self.applied) < len(plan.changes):
            return
        # Without changes, the failures are of interest.
        if not plan.changes and any(one.lasts_at(now_ns) for one in plan.failures):
            return
        self._state.clock.at(now_ns + plan.end_pause_ns, self._end)

    def _end(self) -> None:
        """End the run if the cluster is still clean. If it is not, the next clean moment ends it."""
        if self._state.timeline.all_clean:
            self._state.actions.add(End())

    def _note_map(self, asked: _AskedChange, update: MapUpdate) -> None:
        """Record that a map has changes of an operator."""
        if asked.applied is not None:
            asked.applied.up_after = update.up_after
            asked.applied.later_maps_ns.append(self._state.now_ns)
            return
        asked.applied = AppliedChange(
            asked.change,
            update.up_before,
            update.up_after,
            asked_ns=asked.asked_ns,
            made_ns=self._state.now_ns,
        )
        self.applied.append(asked.applied)

    def _ask_next(self) -> None:
        """Request the next change after a pause if the cluster is still clean."""
        self._pauses = False
        if self._state.timeline.all_clean and not self._asked:
            self._ask(self._waiting.popleft())

    def _ask(self, change: PlannedChange) -> None:
        now_ns = self._state.now_ns
        self._asked.append(_AskedChange(change, now_ns, set(change.changes)))
        self._state.note("change", change.kind)
        cluster_map = self._state.map
        cluster_map.norebalance_until_ns = max(
            cluster_map.norebalance_until_ns, now_ns + change.norebalance_ns
        )
        if not change.delays_ns:
            self._monitor.propose_all(change.changes)
            return
        for map_change, delay_ns in zip(change.changes, change.delays_ns, strict=True):
            propose = self._monitor.propose_all
            self._state.clock.after(delay_ns, propose, (map_change,))

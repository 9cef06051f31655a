"""Planned changes: an operator marks OSDs out or in, or gives them another weight."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from stripesim.sim.ceph.failures.cluster_map import MapUpdate, UpSet
from stripesim.sim.ceph.failures.cluster_state import ClusterState
from stripesim.sim.ceph.failures.monitor import Monitor
from stripesim.sim.ceph.failures.plan import PlannedChange


@dataclass
class AppliedChange:
    """An applied change: up sets before and after its map, and when the cluster became clean again."""

    change: PlannedChange
    up_before: Sequence[UpSet]
    up_after: Sequence[UpSet]
    asked_ns: int  #: Time of the command [ns]
    made_ns: int  #: Time of the new map [ns]
    clean_ns: int | None = None  #: Time when all PGs are clean [ns], None if never


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
        # Changes that no map has yet, with the time of the command [ns].
        self._asked: list[tuple[PlannedChange, int]] = []
        for change in state.plan.changes:
            if change.time_ns is not None:
                state.clock.at(change.time_ns, self._ask, change)
        state.clock.at(0, self.on_all_clean)

    def on_map(self, update: MapUpdate) -> None:
        """Record the changes of a new map. Some move nothing."""
        published = set(update.changes)
        waiting = []
        for change, asked_ns in self._asked:
            if not published.issuperset(change.changes):
                # This map ends the previous change. The next map has the new one.
                waiting.append((change, asked_ns))
                continue
            applied = AppliedChange(
                change,
                update.up_before,
                update.up_after,
                asked_ns=asked_ns,
                made_ns=self._state.now_ns,
            )
            self.applied.append(applied)
        self._asked = waiting
        if self._state.timeline.all_clean:
            self.on_all_clean()

    def on_all_clean(self) -> None:
        """End all applied changes, and request the next."""
        if not self._state.timeline.all_clean or self._asked:
            return
        for applied in self.applied:
            if applied.clean_ns is None:
                applied.clean_ns = self._state.now_ns
        if self._waiting and not self._pauses:
            self._pauses = True
            self._state.clock.after(self._state.plan.change_pause_ns, self._ask_next)

    def _ask_next(self) -> None:
        """Request the next change after a pause if the cluster is still clean."""
        self._pauses = False
        if self._state.timeline.all_clean and not self._asked:
            self._ask(self._waiting.popleft())

    def _ask(self, change: PlannedChange) -> None:
        self._asked.append((change, self._state.now_ns))
        self._state.note("change", change.kind)
        self._monitor.propose_all(change.changes)

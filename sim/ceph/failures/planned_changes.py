"""Planned changes: an operator marks OSDs out or in, or gives them another weight."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from stripesim.sim.ceph.failures.cluster_map import MapUpdate, UpSet
from stripesim.sim.ceph.failures.cluster_state import ClusterState
from stripesim.sim.ceph.failures.fault_plan import PlannedChange
from stripesim.sim.ceph.failures.monitor import Monitor


@dataclass
class ChangeOutcome:
    """A planned change that was made: the up sets around its map, and when the cluster was clean again."""

    change: PlannedChange
    up_before: Sequence[UpSet]
    up_after: Sequence[UpSet]
    #: `asked_ns`, `made_ns`, `clean_ns`: when the operator asked for it, when the map was published, and
    #: when all PGs were clean, None if they never were [ns]
    asked_ns: int
    made_ns: int
    clean_ns: int | None = None


class PlannedChanges:
    """Makes the changes of a plan: at their times, or one after another, each once the cluster is clean.

    `outcomes` has the changes that were made.
    """

    def __init__(self, state: ClusterState, monitor: Monitor) -> None:
        self.outcomes: list[ChangeOutcome] = []
        self._state = state
        self._monitor = monitor
        self._waiting = deque(
            change for change in state.plan.changes if change.time_ns is None
        )
        self._pauses = False
        # Changes that are asked for, but not yet in a map, and when they were asked for [ns].
        self._asked: list[tuple[PlannedChange, int]] = []
        for change in state.plan.changes:
            if change.time_ns is not None:
                state.clock.at(change.time_ns, self._ask, change)
        state.clock.at(0, self.on_all_clean)

    def on_map(self, update: MapUpdate) -> None:
        """Note the changes that a new map has made. Some move nothing."""
        published = set(update.changes)
        waiting = []
        for change, asked_ns in self._asked:
            if not published.issuperset(change.changes):
                # The map that ends the change before: the next one has this.
                waiting.append((change, asked_ns))
                continue
            outcome = ChangeOutcome(
                change,
                update.up_before,
                update.up_after,
                asked_ns=asked_ns,
                made_ns=self._state.now_ns,
            )
            self.outcomes.append(outcome)
        self._asked = waiting
        if self._state.timeline.all_clean:
            self.on_all_clean()

    def on_all_clean(self) -> None:
        """End the changes that were made, and ask for the next."""
        if not self._state.timeline.all_clean or self._asked:
            return
        for outcome in self.outcomes:
            if outcome.clean_ns is None:
                outcome.clean_ns = self._state.now_ns
        if self._waiting and not self._pauses:
            self._pauses = True
            self._state.clock.after(self._state.plan.change_pause_ns, self._ask_next)

    def _ask_next(self) -> None:
        """Ask for the next change after a pause, unless the cluster is no longer clean."""
        self._pauses = False
        if self._state.timeline.all_clean and not self._asked:
            self._ask(self._waiting.popleft())

    def _ask(self, change: PlannedChange) -> None:
        self._asked.append((change, self._state.now_ns))
        self._state.note("change", change.kind)
        self._monitor.propose_all(change.changes)

"""All background work of a cluster: recovery, notes and scrubs, each a stream of the engine."""

from collections.abc import Callable, Sequence

from stripesim.sim.ceph.failures.background.feed import IntervalNotes, OperationFeed
from stripesim.sim.ceph.failures.background.operations import OperationBook
from stripesim.sim.ceph.failures.background.recovery import (
    RecoveryListener,
    RecoveryScheduler,
)
from stripesim.sim.ceph.failures.background.scrubs import Scrubs
from stripesim.sim.ceph.failures.cluster_state import ClusterState
from stripesim.sim.ceph.failures.groups import Group
from stripesim.sim.engine.program import Report


class BackgroundWork:
    """The streams beside those of clients; `first_stream` is recovery's number in the run."""

    def __init__(
        self, state: ClusterState, operations: OperationBook, *, first_stream: int
    ) -> None:
        self.recovery = RecoveryScheduler(state, operations)
        self.notes = IntervalNotes(state, operations)
        self.scrubs = Scrubs(state, operations)
        self._state = state
        self._recovery_stream = first_stream
        self._notes_stream = first_stream + 1
        self._scrubs_stream = first_stream + 2

    @property
    def feeds(self) -> list[OperationFeed]:
        """The streams, in the order of their numbers."""
        feeds = [self.recovery.feed, self.notes.feed]
        if self._state.plan.scrubs:
            feeds.append(self.scrubs.feed)
        return feeds

    def connect(
        self, listener: RecoveryListener, on_scrubbed: Callable[[int, Group], None]
    ) -> None:
        """Begin, with those who hear of the progress of recovery and scrubs."""
        self.recovery.listener = listener
        self.scrubs.on_scrubbed = on_scrubbed
        if self._state.plan.scrubs:
            self.scrubs.schedule()

    def cancel(self, now_ns: int, group: Group) -> bool:
        """Stop recovery and scrub of a PG; tell whether something is in flight, which is to be cut off."""
        recovers = self.recovery.cancel(now_ns, group)
        scrubs = self.scrubs.cancel(group.number)
        return recovers or scrubs

    def process(self, now_ns: int, reports: Sequence[Report]) -> None:
        """Process the ends of operations."""
        for report in reports:
            if report.stream == self._recovery_stream:
                self.recovery.done(now_ns, report.index)
            else:
                self.scrubs.done(now_ns, report.index)

    def hand_over(self) -> None:
        """Give the engine what is to start, at the end of a moment."""
        for part, stream in (
            (self.notes, self._notes_stream),
            (self.recovery, self._recovery_stream),
            (self.scrubs, self._scrubs_stream),
        ):
            pushed_count = part.feed.pushed_count
            part.hand_over()
            if part.feed.pushed_count > pushed_count:
                self._state.actions.wake(stream)

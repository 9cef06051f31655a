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
from stripesim.sim.engine.program import Report, Wake


class BackgroundWork:
    """The streams of background work, numbered from `first_stream`: recovery, notes, scrubs."""

    def __init__(
        self, state: ClusterState, operations: OperationBook, *, first_stream: int
    ) -> None:
        self.recovery = RecoveryScheduler(state, operations)
        self.notes = IntervalNotes(state, operations)
        self.scrubs = Scrubs(state, operations)
        self._state = state
        self.first_stream = first_stream

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
        """Connect the parts that react to recovery and scrubs, and schedule the scrubs."""
        self.recovery.listener = listener
        self.scrubs.on_scrubbed = on_scrubbed
        if self._state.plan.scrubs:
            self.scrubs.schedule()

    def cancel(self, now_ns: int, group: Group) -> bool:
        """Cancel recovery and scrub of a PG; return True if the engine has to cut off operations."""
        recovers = self.recovery.cancel(now_ns, group)
        scrubs = self.scrubs.cancel(group.number)
        return recovers or scrubs

    def process(self, now_ns: int, reports: Sequence[Report]) -> None:
        """Process the ends of operations."""
        for report in reports:
            is_recovery = report.stream == self.first_stream
            part = self.recovery if is_recovery else self.scrubs
            part.done(now_ns, report.index)

    def hand_over(self) -> None:
        """Issue operations to the engine, at the end of a moment."""
        for number, part in ((1, self.notes), (0, self.recovery), (2, self.scrubs)):
            pushed_count = part.feed.pushed_count
            part.hand_over()
            if part.feed.pushed_count > pushed_count:
                self._state.actions.add(Wake(self.first_stream + number))

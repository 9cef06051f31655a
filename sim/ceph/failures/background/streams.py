"""All background work of a cluster: recovery, notes and scrubs, each a stream of the engine."""

from collections.abc import Callable, Sequence
from typing import Literal

from stripesim.sim.ceph.failures.background.operations import (
    OperationBooks,
    OperationFeed,
)
from stripesim.sim.ceph.failures.background.pg_removals import PgRemovals
from stripesim.sim.ceph.failures.background.recovery import (
    RecoveryListener,
    RecoveryScheduler,
)
from stripesim.sim.ceph.failures.background.scrubs import Scrubs
from stripesim.sim.ceph.failures.cluster_state import ClusterState
from stripesim.sim.ceph.failures.groups import Group
from stripesim.sim.engine.program import Report, Wake

NoteReason = Literal["interval", "activation", "clean"]
# Transactions of a member: an interval begins (``PeeringState::start_peering_interval``); the member is
# active, then all are (``activate``, ``share_pg_info``); all are clean (``try_mark_clean``).
_TRANSACTIONS: dict[NoteReason, int] = {"interval": 1, "activation": 2, "clean": 1}
# Notes of one PG in flight: two rounds for one interval, in blocks if there are many members.
_NOTES_IN_FLIGHT_MAX = 8


class BackgroundWork:
    """The streams of background work, numbered from `first_stream`: recovery, notes and removals, scrubs."""

    def __init__(
        self, state: ClusterState, operations: OperationBooks, *, first_stream: int
    ) -> None:
        self.recovery = RecoveryScheduler(state, operations)
        self.scrubs = Scrubs(state, operations)
        self.removals = PgRemovals(state, self.recovery.space_freed)
        self.first_stream = first_stream
        self._state = state
        self._operations = operations
        self._notes: list[tuple[Group, NoteReason]] = []
        self._notes_feed = OperationFeed(
            _NOTES_IN_FLIGHT_MAX * len(state.groups), reports=False
        )

    @property
    def feeds(self) -> list[OperationFeed]:
        """The streams, in the order of their numbers."""
        feeds = [self.recovery.feed, self._notes_feed]
        if self._state.plan.scrubs:
            feeds.append(self.scrubs.feed)
        return feeds

    def connect(
        self, listener: RecoveryListener, on_scrubbed: Callable[[Group], None]
    ) -> None:
        """Connect the parts that react to recovery and scrubs, and schedule the scrubs."""
        self.recovery.listener = listener
        self.scrubs.on_scrubbed = on_scrubbed
        if self._state.plan.scrubs:
            self.scrubs.schedule()

    def cancel(self, group: Group) -> bool:
        """Cancel recovery and scrub of a PG; return True if the engine has to cut off operations."""
        recovers = self.recovery.cancel(group)
        scrubs = self.scrubs.cancel(group.number)
        return recovers or scrubs

    def process(self, reports: Sequence[Report]) -> None:
        """Process the ends of operations."""
        for report in reports:
            is_recovery = report.stream == self.first_stream
            part = self.recovery if is_recovery else self.scrubs
            part.done(report.index)

    def note(self, group: Group, reason: NoteReason) -> None:
        """Queue a note by the members that a PG has at the end of the moment."""
        self._notes.append((group, reason))

    def hand_over(self) -> None:
        """Issue operations to the engine, at the end of a moment."""
        self._push_notes()
        self.recovery.hand_over()
        self.scrubs.hand_over()
        for feed in (self._notes_feed, self.recovery.feed, self.scrubs.feed):
            if feed.has_new:
                feed.has_new = False
                stream = self.first_stream + self.feeds.index(feed)
                self._state.actions.add(Wake(stream))

    def _push_notes(self) -> None:
        notes = self._notes
        self._notes = []
        for removal in self.removals.take():
            operation = self._operations.of(removal.group).removal(*removal)
            shadow = self._state.actions.shadow(removal.group.number)
            self._notes_feed.push(*operation, shadow)
        for group, reason in notes:
            shadow = self._state.actions.shadow(group.number)
            transactions_count = _TRANSACTIONS[reason]
            operations = self._operations.of(group)
            for operation in operations.notes(group, transactions_count):
                self._notes_feed.push(*operation, shadow)

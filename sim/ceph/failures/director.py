"""The director: it connects all parts of a cluster under faults, and talks to the engine."""

from collections.abc import Sequence

from stripesim.sim.ceph.failures.activation import Activation
from stripesim.sim.ceph.failures.background.operations import (
    OperationBook,
    OperationBooks,
    OperationFeed,
)
from stripesim.sim.ceph.failures.background.streams import BackgroundWork
from stripesim.sim.ceph.failures.causes.corruption import CorruptShards
from stripesim.sim.ceph.failures.causes.lost_gateways import LostGateways
from stripesim.sim.ceph.failures.causes.outages import InitialLoss, Outages
from stripesim.sim.ceph.failures.causes.slow_drives import Slowness
from stripesim.sim.ceph.failures.client_writes import ClientWrites
from stripesim.sim.ceph.failures.cluster_map import MapUpdate
from stripesim.sim.ceph.failures.cluster_state import initial_state
from stripesim.sim.ceph.failures.data_loss import DataLoss
from stripesim.sim.ceph.failures.detection import Detection
from stripesim.sim.ceph.failures.monitor import DownOut, Monitor
from stripesim.sim.ceph.failures.peering import Peering
from stripesim.sim.ceph.failures.plan import FaultPlan
from stripesim.sim.ceph.failures.planned_changes import PlannedChanges
from stripesim.sim.ceph.failures.results.finished_run import FaultRun
from stripesim.sim.ceph.failures.stretch import ServingRule
from stripesim.sim.ceph.gateway.layout import ObjectLayouts
from stripesim.sim.ceph.layout import Layout
from stripesim.sim.ceph.planner import WritingClient
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.program import Action, EngineRun, Report, RunView
from stripesim.sim.observe.client_requests import ClientRequests


class FaultDirector:
    """Simulates failures and the reaction of the cluster, as Ceph's monitors and OSDs do.

    Parameters
    ----------
    pool, book
        The pool, and the templates and bindings of the run.
    plan
        Failures, slow drives, corruption and changes.
    layout
        Views of the PGs, which change during the run.
    clients
        The first streams of the run.
    feed_stream
        Number of the stream of recovery. Notes and, if scrubs read, scrubs follow.

    Notes
    -----
    A failure passes through these stages:

    1. The OSD is silent or refuses connections, until reports make it down in a new map.
    2. Its PGs peer and hold clients. Then they serve without the lost shards, if `min_size` are left.
    3. The OSD is marked out, and CRUSH names new OSDs. PGs peer, with the old members acting (``pg_temp``).
    4. PGs reserve, and recover one object after another.
    5. After a last map and peering, they are clean.

    References
    ----------
    Ceph v16.2.15, ``src/osd/PeeringState.cc``, ``src/osd/OSD.cc``, ``src/mon/OSDMonitor.cc``.
    """

    def __init__(
        self,
        pool: Pool,
        book: Book,
        plan: FaultPlan,
        layout: Layout | ObjectLayouts,
        clients: Sequence[WritingClient],
        *,
        feed_stream: int,
    ) -> None:
        state = initial_state(pool, plan, layout.engine_groups)
        monitor = Monitor(state)
        detection = Detection(state, monitor)
        operations = _operations_of(pool, book, layout)
        background = BackgroundWork(state, operations, first_stream=feed_stream)
        writes = ClientWrites(clients, book, state.groups, detection)
        rule = ServingRule(state)
        activation = Activation(
            state, monitor, detection, writes, layout, book, background, rule
        )
        data_loss = DataLoss(state, writes, operations.shard_bytes)
        outages = Outages(state, monitor, detection, data_loss, activation)
        if isinstance(layout, ObjectLayouts):
            LostGateways(state, layout)
        slowness = Slowness(state)
        corrupt_shards = CorruptShards(state, data_loss, activation)
        background.connect(activation, corrupt_shards.on_scrubbed)
        self._initial_loss = InitialLoss(state, activation, operations.shard_bytes)
        peering = Peering(state, monitor, writes, background, activation, rule)
        changes = PlannedChanges(state, monitor)

        def on_all_clean() -> None:
            if rule.becomes_healthy:
                monitor.propose("stretch", 0)
            changes.on_all_clean()

        activation.on_all_clean = on_all_clean
        monitor.subscribers += [
            DownOut(state, monitor).on_map,
            self._note_map,
            outages.on_map,
            slowness.on_map,
            peering.on_map,
            changes.on_map,
        ]
        self.state = state
        self.monitor = monitor
        self.changes = changes
        self._book = book
        self.operations = operations
        self._engine_groups = layout.engine_groups
        self._writes = writes
        self._background = background
        self._data_loss = data_loss

    @property
    def feeds(self) -> list[OperationFeed]:
        """Streams of background work, in the order of their numbers."""
        return self._background.feeds

    # The engine calls these.

    def begin(self, view: RunView) -> None:
        """Take the engine's view of the run."""
        self._writes.begin(view)

    def next_ns(self) -> int | None:
        """Return the next moment at which something happens [ns]."""
        return self.state.clock.next_ns()

    def act(self, now_ns: int, reports: Sequence[Report]) -> Sequence[Action]:
        """Process all events due now."""
        self.state.clock.now_ns = now_ns
        self._writes.begin_moment()
        self._background.process(reports)
        self.state.clock.run_due()
        self._background.hand_over()
        return self.state.actions.take()

    def finish(self, run: EngineRun, requested: ClientRequests) -> FaultRun:
        """Return the results of a run, with the requests of all its clients."""
        self.state.clock.now_ns = run.end_ns
        recovery = self._background.recovery
        recovery.stop_waiting()
        at_start = self._initial_loss
        return FaultRun(
            plan=self.state.plan,
            is_replicated=self.state.pool.scheme.kind == "replicated",
            book=self._book,
            engine_run=run,
            feed_stream=self._background.first_stream,
            requested=requested,
            wake_ns=self.state.pool.cluster.resources.wake_ns,
            timeline=self.state.timeline,
            objects_counts=[len(group.objects) for group in self.state.groups],
            fullness=self.state.fullness,
            changes=self.changes.applied,
            rounds=recovery.rounds,
            waited_ns=recovery.waited_ns,
            groups_of_pg=self._engine_groups.of_pg,
            data_groups=self.state.pool.cluster.groups,
            shard_bytes=self.operations.data.shard_bytes,
            shard_bytes_of=self.operations.shard_bytes,
            lost_shards=self._data_loss.lost_shards_count + at_start.shards_count,
            lost_bytes=self._data_loss.lost_bytes + at_start.lost_bytes,
            lost_bytes_at_start=at_start.lost_bytes,
            joining_bytes_at_start=at_start.joining_bytes,
            lost_objects_at_start=at_start.objects_count,
            lost_groups_at_start=at_start.groups,
            deep_scrubs=self._background.scrubs.deep_count,
            interrupted_writes=self._writes.interrupted,
        )

    def _note_map(self, update: MapUpdate) -> None:
        for change in update.osd_changes:
            event = "out" if change.kind == "auto_out" else change.kind
            self.state.note(event, f"osd.{change.subject}, map {update.epoch}")


def _operations_of(
    pool: Pool, book: Book, layout: Layout | ObjectLayouts
) -> OperationBooks:
    """Return the operations of a pool and, if clients use gateways, of the pool of the bucket indexes."""
    if isinstance(layout, Layout):
        return OperationBooks(
            OperationBook(pool, book, layout), None, pool.cluster.groups
        )
    index = OperationBook(
        layout.index_pool,
        book,
        layout.index,
        kind=layout.index_kind,
        first_group=pool.cluster.groups,
    )
    data = OperationBook(pool, book, layout.data)
    return OperationBooks(data, index, pool.cluster.groups)

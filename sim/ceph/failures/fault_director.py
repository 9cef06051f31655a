"""The director: it connects all parts of a cluster under faults, and speaks with the engine."""

from collections.abc import Sequence

from stripesim.sim.ceph.failures.activation import Activation
from stripesim.sim.ceph.failures.background.feed import OperationFeed
from stripesim.sim.ceph.failures.background.operations import OperationBook
from stripesim.sim.ceph.failures.background.streams import BackgroundWork
from stripesim.sim.ceph.failures.client_writes import ClientWrites
from stripesim.sim.ceph.failures.cluster_map import MapUpdate
from stripesim.sim.ceph.failures.cluster_state import initial_state
from stripesim.sim.ceph.failures.corruption import CorruptShards
from stripesim.sim.ceph.failures.data_loss import DataLoss
from stripesim.sim.ceph.failures.detection import Detection
from stripesim.sim.ceph.failures.fault_plan import FaultPlan
from stripesim.sim.ceph.failures.monitor import DownOut, Monitor
from stripesim.sim.ceph.failures.outages import InitialLoss, Outages
from stripesim.sim.ceph.failures.peering import Peering
from stripesim.sim.ceph.failures.results.fault_run import FaultRun
from stripesim.sim.ceph.layout import Layout
from stripesim.sim.ceph.planner import Foreground
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.program import Action, EngineRun, Progress, Report
from stripesim.sim.observe.client_requests import ClientRequests


class FaultDirector:
    """Makes things fail and lets the cluster deal with it, as Ceph's monitors and OSDs do.

    Parameters
    ----------
    pool, book
        The pool, and the templates and bindings of the run.
    plan
        What goes wrong.
    layout
        How PGs look to clients; it changes during the run.
    clients
        The first streams of the run.
    feed_stream
        Number of the stream of recovery; the next ones are those of notes and, if scrubs read, of scrubs.

    Notes
    -----
    Failure → silence or refused connections → reports → down in a new map → its PGs peer (held) → they serve
    without the lost shards, if `min_size` are left → out → CRUSH names new OSDs → peering, with the old
    members as stand-ins (``pg_temp``) → reservations → one object after another → a last map and peering →
    clean.

    References
    ----------
    Ceph v16.2.15, ``src/osd/PeeringState.cc``, ``src/osd/OSD.cc``, ``src/mon/OSDMonitor.cc``.
    """

    def __init__(
        self,
        pool: Pool,
        book: Book,
        plan: FaultPlan,
        layout: Layout,
        clients: Sequence[Foreground],
        *,
        feed_stream: int,
    ) -> None:
        self.state = initial_state(pool, plan)
        self._book = book
        self._feed_stream = feed_stream
        self._operations = OperationBook(pool, book, layout)
        monitor = Monitor(self.state)
        detection = Detection(self.state, monitor)
        self._writes = ClientWrites(clients, book, self.state.groups, detection)
        self._background = BackgroundWork(
            self.state, self._operations, first_stream=feed_stream
        )
        activation = Activation(
            self.state,
            monitor,
            detection,
            self._writes,
            layout,
            book,
            self._background,
        )
        self._data_loss = DataLoss(self.state, self._writes)
        outages = Outages(self.state, monitor, detection, self._data_loss, activation)
        corrupt_shards = CorruptShards(self.state, self._data_loss, activation)
        self._background.connect(activation, corrupt_shards.on_scrubbed)
        self._initial_loss = InitialLoss(self.state, activation)
        peering = Peering(
            self.state, monitor, self._writes, self._background, activation
        )
        monitor.subscribers += [
            DownOut(self.state, monitor).on_map,
            self._note_map,
            outages.on_map,
            peering.on_map,
        ]

    @property
    def feeds(self) -> list[OperationFeed]:
        """Streams beside those of clients, in the order of their numbers."""
        return self._background.feeds

    # What the engine asks.

    def begin(self, progress: Progress) -> None:
        """Take the engine's view of the run."""
        self._writes.begin(progress)

    def next_ns(self) -> int | None:
        """Return the next moment at which something happens [ns]."""
        return self.state.timers.next_ns()

    def act(self, now_ns: int, reports: Sequence[Report]) -> Sequence[Action]:
        """Process all events due now."""
        self._writes.begin_moment()
        self._background.process(now_ns, reports)
        self.state.timers.run(now_ns)
        self._background.hand_over()
        return self.state.actions.take()

    # What reports ask.

    def finish(self, run: EngineRun, requested: ClientRequests) -> FaultRun:
        """Return the results of a run, with the requests of all its clients."""
        recovery = self._background.recovery
        recovery.stop_waiting(run.end_ns)
        at_start = self._initial_loss
        return FaultRun(
            plan=self.state.plan,
            book=self._book,
            engine_run=run,
            feed_stream=self._feed_stream,
            requested=requested,
            wake_ns=self.state.pool.cluster.resources.wake_ns,
            timeline=self.state.timeline,
            objects_counts=[len(group.objects) for group in self.state.groups],
            rounds=recovery.rounds,
            waited_ns=recovery.waited_ns,
            shard_bytes=self._operations.shard_bytes,
            lost_shards=self._data_loss.lost_shards_count + at_start.shards_count,
            lost_objects_at_start=at_start.objects_count,
            lost_shards_at_start=at_start.shards_count,
            deep_scrubs=self._background.scrubs.deep_count,
            interrupted_writes=self._writes.interrupted,
        )

    def _note_map(self, now_ns: int, update: MapUpdate) -> None:
        for change in update.osd_changes:
            self.state.timeline.note(
                now_ns, change.kind, f"osd.{change.subject}, map {update.epoch}"
            )

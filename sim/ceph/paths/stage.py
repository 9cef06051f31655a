"""Building blocks of all paths: messages, work on a core, locks."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from stripesim.models.nic import NicModel
from stripesim.sim.ceph import roles
from stripesim.sim.ceph.paths.context import PathContext
from stripesim.sim.ceph.paths.message import Message, Piece, cut_message
from stripesim.sim.ceph.phases import Phase
from stripesim.sim.ceph.qos import (
    BEST_EFFORT,
    CLIENT,
    IMMEDIATE,
    RECOVERY,
    SCRUB_EVENT_BYTES,
    OpQueue,
)
from stripesim.sim.ceph.roles import Osd
from stripesim.sim.ceph.sites import SiteDelay
from stripesim.sim.engine.graph import NO_ROLE, NO_SHARD
from stripesim.sim.engine.graph_builder import GraphBuilder

# Maximum number of steps of one transfer or one stay on a core. With more pieces, each step represents
# several consecutive ones, which bounds the graph for objects of any size. The total time is the same.
TRANSFER_STEPS_MAX = 64

# Index of a piece of a message.
FIRST = 0
LAST = -1

# Sender's interface, wire, receiver's interface.
Ends = tuple[int, int, int]
_OUT = (roles.OUT_TX, roles.OUT_WIRE, roles.OUT_RX)
_BACK = (roles.BACK_TX, roles.BACK_WIRE, roles.BACK_RX)


@dataclass(frozen=True)
class CpuWork:
    """Work of one stay on a core, and its amounts in the counters."""

    #: Processor time without wake-ups and coding [ns]
    cpu_ns: float
    #: Wake-ups of other threads that this work causes at any load
    wakes_count: float = 0
    #: Time of encoding and decoding [ns]
    coding_ns: float = 0
    encode_bytes: int = 0
    #: Counter of the thread class, empty for workers
    counter: str = ""

    def total_ns(self, wake_ns: float) -> float:
        """Return the time on the core [ns], with `wake_ns` for each wake-up."""
        return self.cpu_ns + self.wakes_count * wake_ns + self.coding_ns

    def amounts(self, total_ns: float) -> dict[str, int]:
        """Return the amount of each counter for work that takes `total_ns`."""
        amounts = {
            "cpu_ns": round(total_ns),
            "context_switches": round(self.wakes_count),
            "encode_bytes": self.encode_bytes,
            "coding_ns": round(self.coding_ns),
        }
        if self.counter:
            amounts[self.counter] = round(total_ns)
        return amounts


# Work, or its processor time [ns] if it neither codes nor wakes other threads.
Work = CpuWork | float


class Stage:
    """Add recurring groups of steps to a graph.

    The parameter `osd` selects the roles of the OSD that works: `PRIMARY`, or `osd_of` a shard. The `shard`
    of a step identifies the sub-operation, even if the primary does the work. `is_recovery` says that the
    steps belong to recovery or peering.
    """

    def __init__(
        self, graph: GraphBuilder, context: PathContext, *, is_recovery: bool = False
    ) -> None:
        self.graph = graph
        self.context = context
        self.models = context.models
        self._is_recovery = is_recovery
        # Class and size of the next item in the queue of worker threads.
        self._op_class = IMMEDIATE
        self._op_bytes = 0
        # Those of the items after the next one.
        self._later_class = IMMEDIATE
        self._later_bytes = 0

    def sync_ns(self, log_bytes: int) -> float:
        """Return the time of a sync of the log [ns]: that stated for recovery, or the drive's own."""
        if self._is_recovery and self.context.recovery_sync_ns:
            return self.context.recovery_sync_ns
        return self.models.ssd.sync_ns(log_bytes)

    def recovers(self, object_bytes: int, message_bytes: int) -> None:
        """Mark subsequent work of worker threads as recovery of a part of an object.

        The start has the size of the part, also if the object is erasure-coded. Under mClock, reads by other
        members and their replies are immediate. Other queues take them as recovery, too.

        References
        ----------
        Ceph v18.2, ``src/osd/OSD.cc`` (``_queue_for_recovery``: the cost is the mean size of the PG's
        objects), ``src/osd/scheduler/OpSchedulerItem.h`` (``PGRecoveryMsg``).
        """
        queue = self.models.op_queue
        if queue is None:
            return
        self._op_class = self._recovery_class(queue)
        self._op_bytes = queue.recovery_item_bytes or object_bytes
        self._later_class = IMMEDIATE if queue.is_mclock else RECOVERY
        self._later_bytes = 0 if queue.is_mclock else message_bytes

    def pushes(self, payload_bytes: int) -> None:
        """Mark subsequent work of worker threads as a push of recovered data, and the reply to it.

        Before v18 both are immediate under mClock.
        """
        queue = self.models.op_queue
        if queue is None or queue.recovery_item_bytes:
            return
        self._op_class = self._later_class = self._push_class(queue)
        self._op_bytes = payload_bytes
        self._later_bytes = 0 if queue.is_mclock else payload_bytes

    def _recovery_class(self, queue: OpQueue) -> int:
        return queue.move_class if self.context.misplaced else RECOVERY

    def _push_class(self, queue: OpQueue) -> int:
        """Return the class of a push and the reply to it.

        The primary of a classic erasure-coded pool pushes with the priority of the reply to its read. That is
        the default of all messages, 127, which counts as recovery even if the object only moves. Logged by a
        real Ceph 18.2.7 (``_enqueue``: ``class_id 0 prio 127``), where starts of objects are best effort.
        """
        if self.context.erasure and not self.models.ec.optimised:
            return RECOVERY
        return self._recovery_class(queue)

    def asks(self, payload_bytes: int) -> None:
        """Mark the next work of a worker thread as a client's operation."""
        self._op_class = CLIENT
        self._op_bytes = payload_bytes

    def scrubs(self) -> None:
        """Mark subsequent work of worker threads as scrub."""
        self._op_class = self._later_class = BEST_EFFORT
        self._op_bytes = SCRUB_EVENT_BYTES
        self._later_bytes = SCRUB_EVENT_BYTES

    # The client and the public network.

    def request(self, payload_bytes: int, returned_bytes: int = 0) -> int:
        """Send an operation from the client to the primary and return its arrival at a worker's queue."""
        self.asks(payload_bytes)
        submitted = self.submit(payload_bytes, returned_bytes)
        size_bytes = self.models.messages.request_header_bytes + payload_bytes
        return self.client_out(size_bytes, submitted)

    def reply(self, payload_bytes: int, after: int) -> int:
        """Send the primary's reply to the client and return its arrival, which completes the request."""
        return self.client_back(self.models.messages.reply_bytes + payload_bytes, after)

    def submit(self, payload_bytes: int = 0, returned_bytes: int = 0) -> int:
        """Submit a write with a payload, or a read, at the client."""
        client = self.models.client
        held_ns = client.submit_ns
        if payload_bytes:
            held_ns += client.submit_write_ns
        held_ns += client.submit_ns_per_byte * (payload_bytes + returned_bytes)
        submitted = self._client_submits(held_ns)
        if client.processor_ns:
            # Most of this work follows the send or the reply, so a request does not wait for it.
            self.graph.use(
                roles.CLIENT_CPU,
                client.processor_ns,
                after=[submitted],
                label="client works",
                phase=Phase.CLIENT,
            )
        return submitted

    def _client_submits(self, held_ns: float) -> int:
        """Hold a submission thread of the client, on a core if time slices are modelled."""
        graph = self.graph
        if not self.models.threads.slice_ns:
            return self._submission(held_ns, graph.issue)
        # This role is bound only if clients share the cores of the storage hosts.
        thread = graph.acquire(
            roles.CLIENT_THREAD,
            after=[graph.issue],
            label="client's thread",
            phase=Phase.CLIENT,
        )
        submitted = self._submission(held_ns, thread)
        graph.on_thread(submitted, thread)
        graph.release(
            roles.CLIENT_THREAD, after=[submitted], label="client's thread back"
        )
        return submitted

    def _submission(self, held_ns: float, after: int) -> int:
        return self.graph.use(
            roles.CLIENT_SUBMIT,
            held_ns,
            after=[after],
            label="client submits",
            phase=Phase.CLIENT,
        )

    def client_out(self, size_bytes: int, after: int, shard: int = NO_SHARD) -> int:
        """Send a message from the client to the primary or a shard and return its arrival."""
        osd = _asked(shard)
        nic = self.models.public_nic
        message = cut_message(nic, size_bytes, "request", shard)
        ends = (roles.CLIENT_TX, osd.public_wire, osd.public_rx)
        arrived = self._public(ends, message, [after] * len(message.pieces))
        if self.models.throttle:
            # Ceph asks for admission once it has read the header, before the data.
            arrived[0] = self.graph.acquire(
                osd.throttle,
                after=[arrived[0]],
                label="throttle",
                phase=osd.phase,
                shard=shard,
            )
        return self._receives(osd, message, arrived, nic)

    def client_back(self, size_bytes: int, after: int, shard: int = NO_SHARD) -> int:
        """Send a message from the primary or a shard to the client and return its arrival."""
        osd = _asked(shard)
        message = cut_message(self.models.public_nic, size_bytes, "reply", shard)
        sent = self._sends(osd, message, after)
        if self.models.throttle:
            sent[-1] = self.graph.release(
                osd.throttle, after=[sent[-1]], label="throttle back", shard=shard
            )
        ends = (osd.public_tx, osd.public_wire, roles.CLIENT_RX)
        return self._public(ends, message, sent)[-1]

    # The private network. Messages between shards on one host cost only messenger work.

    def out(
        self, shard: int, size_bytes: int, after: int, name: str, *, phase: Phase
    ) -> int:
        """Send a message from the primary to a shard and return its arrival.

        `phase` applies to the steps on the wire.
        """
        nic = self.models.private_nic
        message = cut_message(nic, size_bytes, name, shard)
        sent = self._sends(roles.PRIMARY, message, after)
        arrived = self._private(_OUT, message, sent, phase)
        step = self._receives(roles.osd_of(shard), message, arrived, nic)
        self._acknowledge(roles.PRIMARY, step, name, shard)
        return step

    def back(
        self, shard: int, size_bytes: int, after: int, name: str, *, phase: Phase
    ) -> int:
        """Send a message from a shard to the primary and return its arrival."""
        sender = roles.osd_of(shard)
        nic = self.models.private_nic
        message = cut_message(nic, size_bytes, name, shard)
        sent = self._sends(sender, message, after)
        arrived = self._private(_BACK, message, sent, phase)
        step = self._receives(roles.PRIMARY, message, arrived, nic)
        self._acknowledge(sender, step, name, shard)
        return step

    def _acknowledge(self, sender: Osd, after: int, name: str, shard: int) -> None:
        """Process the acknowledgement at the sender's messenger. No step waits for it.

        The receiver's work includes sending it, and message sizes include its bytes.
        """
        nic = self.models.private_nic
        for _ in range(self.models.threads.peer_acks_count):
            acknowledged = cut_message(nic, 0, f"{name} acknowledged", shard)
            self._sends(sender, acknowledged, after)

    def sub_reply(
        self, shard: int, size_bytes: int, after: int, name: str, *, phase: Phase
    ) -> int:
        """Send a shard's reply to the primary and return the step that has processed it."""
        step = self.back(shard, size_bytes, after, name, phase=phase)
        return self.primary_cpu(self.models.cpu.sub_reply_ns, [step], name, shard=shard)

    # Messages. While one piece of a message is received, the next is on the wire or still being sent.

    def _public(self, ends: Ends, message: Message, sent: Sequence[int]) -> list[int]:
        """Carry a message over the public network."""
        nic = self.models.public_nic
        return self._wire("public", nic, ends, message, sent, Phase.PUBLIC_NET)

    def _private(
        self, parts: Ends, message: Message, sent: Sequence[int], phase: Phase
    ) -> list[int]:
        """Carry a message over the private network."""
        nic = self.models.private_nic
        tx, wire, rx = (roles.shard_role(message.shard, part) for part in parts)
        return self._wire("private", nic, (tx, wire, rx), message, sent, phase)

    def _wire(
        self,
        net: str,
        nic: NicModel,
        ends: Ends,
        message: Message,
        sent: Sequence[int],
        phase: Phase,
    ) -> list[int]:
        """Carry a message from interface to interface and return the arrival of each piece."""
        graph = self.graph
        tx, wire, rx = ends
        far = self._between_sites(net, message.shard)
        name = message.name
        shard = message.shard
        arrived = []
        for piece, after in zip(message.pieces, sent, strict=True):
            held_ns = nic.serialise_ns(piece.size_bytes)
            counted = {f"{net}_net_bytes": nic.traffic_bytes(piece.size_bytes)}
            if piece.completes:
                counted["messages"] = 1
            step = graph.use(
                tx,
                held_ns,
                after=[after],
                label=f"{name} sent{piece.label}",
                phase=phase,
                shard=shard,
                **counted,
            )
            step = graph.delay(
                wire,
                nic.latency_ns,
                after=[step],
                label=f"{net} wire{piece.label}",
                phase=phase,
                shard=shard,
            )
            for delay in far:
                step = graph.delay(
                    delay.role,
                    delay.delay_ns,
                    after=[step],
                    label=f"between sites (site_rtt_ms / 2){piece.label}",
                    phase=phase,
                    shard=shard,
                )
            step = graph.use(
                rx,
                held_ns,
                after=[step],
                label=f"{name} received{piece.label}",
                phase=phase,
                shard=shard,
            )
            arrived.append(step)
        return arrived

    def _between_sites(self, net: str, shard: int) -> list[SiteDelay]:
        """Return the delays of a message to another site, of which bindings enable at most one."""
        delays = self.context.site_delays
        if delays is None:
            return []
        width = self.context.scheme.width
        if net == "public":
            return delays.of_client(width, shard)
        return delays.of_shard(width, shard)

    def _sends(self, osd: Osd, message: Message, after: int) -> list[int]:
        """Process a message at its sender and return the step after which each piece leaves."""
        works_ns = self._works_ns(message, FIRST)
        step = thread = self._messenger(osd, message, [after])
        sent = []
        for piece, work_ns in zip(message.pieces, works_ns, strict=True):
            step = self._process(osd, message, piece, work_ns, [step], thread)
            sent.append(step)
        sent[-1] = self._messenger_back(osd, message, step)
        return sent

    def _receives(
        self, osd: Osd, message: Message, arrived: Sequence[int], nic: NicModel
    ) -> int:
        """Process a message at its receiver and return the end.

        If the receiver is no faster than the network, the next piece is there whenever it has read one, and
        its thread keeps at it. A faster one has read all there is. Its thread serves other connections or
        sleeps until the next piece wakes it. The messenger of a sender takes as long as the receiver's.
        """
        works_ns = self._works_ns(message, LAST)
        wire_ns = nic.serialise_ns(message.size_bytes)
        keeps_thread = self._messenger_ns(message) >= wire_ns
        step = thread = self._messenger(osd, message, arrived[:1])
        pieces = zip(message.pieces, works_ns, arrived, strict=True)
        for piece, work_ns, arrival in pieces:
            if piece is message.pieces[0]:
                before = [thread]
            elif keeps_thread:
                before = [step, arrival]
            else:
                back = self._messenger_back(osd, message, step)
                thread = self._messenger(osd, message, [back, arrival])
                before = [thread]
            step = self._process(osd, message, piece, work_ns, before, thread)
        return self._messenger_back(osd, message, step)

    def _messenger_ns(self, message: Message) -> float:
        """Return the processor time of one side of a message [ns].

        Deviation: messages between OSDs on one host are also split into network frames.
        """
        frames = self.models.private_nic.frames(message.size_bytes)
        return self.models.cpu.message_ns(message.size_bytes, frames)

    def _works_ns(self, message: Message, fixed: int) -> list[float]:
        """Divide the processor time of one side by size [ns]. Piece `fixed` also has the fixed cost."""
        total_ns = self._messenger_ns(message)
        if len(message.pieces) == 1:
            return [total_ns]
        fixed_ns = self.models.cpu.message_base_ns
        per_byte_ns = (total_ns - fixed_ns) / message.size_bytes
        works_ns = [per_byte_ns * piece.size_bytes for piece in message.pieces]
        works_ns[fixed] += fixed_ns
        return works_ns

    def _messenger(self, osd: Osd, message: Message, after: Iterable[int]) -> int:
        """Acquire a messenger thread."""
        return self.graph.acquire(
            osd.messenger,
            after=after,
            label=f"thread for messenger, {message.name}",
            phase=osd.phase,
            shard=message.shard,
        )

    def _messenger_back(self, osd: Osd, message: Message, after: int) -> int:
        """Release a messenger thread."""
        return self.graph.release(
            osd.messenger,
            after=[after],
            label=f"thread back from messenger, {message.name}",
            shard=message.shard,
        )

    def _process(
        self,
        osd: Osd,
        message: Message,
        piece: Piece,
        work_ns: float,
        after: Sequence[int],
        thread: int | None,
    ) -> int:
        """Process one side of a piece on a messenger thread."""
        starts = after == [thread]
        if not starts and not self.models.threads.slice_ns:
            # Only a core with a slice knows that the thread is already awake.
            thread = None
        return self.on_core(
            osd,
            CpuWork(work_ns, counter="messenger_ns"),
            after,
            f"messenger, {message.name}{piece.label}",
            phase=osd.phase,
            shard=message.shard,
            thread=thread,
        )

    # Processors. A stage is one stay of a thread on a core.

    def with_thread(
        self,
        thread: int,
        osd: Osd,
        work: Work,
        after: Iterable[int],
        label: str,
        *,
        phase: Phase,
        shard: int = NO_SHARD,
    ) -> int:
        """Acquire a thread of a class, run it on a core, and release it."""
        graph = self.graph
        taken = graph.acquire(
            thread, after=after, label=f"thread for {label}", phase=phase, shard=shard
        )
        step = self.on_core(
            osd, work, [taken], label, phase=phase, shard=shard, thread=taken
        )
        return graph.release(
            thread, after=[step], label=f"thread back from {label}", shard=shard
        )

    def primary_cpu(
        self,
        work: Work,
        after: Iterable[int],
        label: str,
        *,
        shard: int = NO_SHARD,
        goes_on: Callable[[int], int] | None = None,
        after_reply: bool = False,
    ) -> int:
        """Add a stage at the primary, on a worker thread under the placement group's mutex.

        Return the step that the reply follows. With `goes_on` or `after_reply` it precedes the release of the
        thread and the placement group.
        """
        answered, _ = self.work(
            roles.PRIMARY,
            work,
            after,
            label,
            in_group=True,
            shard=shard,
            goes_on=goes_on,
            after_reply=after_reply,
        )
        return answered

    def work(
        self,
        osd: Osd,
        work: Work,
        after: Iterable[int],
        label: str,
        *,
        in_group: bool = False,
        shard: int = NO_SHARD,
        then: Callable[[int], int] | None = None,
        goes_on: Callable[[int], int] | None = None,
        after_reply: bool = False,
    ) -> tuple[int, int]:
        """Add a stage on a worker thread of an OSD, using its host's cores.

        With `in_group` the thread holds the mutex of the placement group. `then` adds a wait after the work,
        `goes_on` adds work after the reply, and `after_reply` adds the fixed work that follows a reply.

        Return the step that the reply follows, and the step that releases the thread.
        """
        mutex_shard = shard if osd is roles.PRIMARY else NO_SHARD
        # A thread dequeues an operation, then takes the placement group's mutex.
        step = thread = self.worker(osd, after, label, shard)
        if in_group:
            step = self._group(thread, label, mutex_shard)
        step = self.on_core(osd, work, [step], label, shard=shard, thread=thread)
        if then:
            step = then(step)
        answered = step
        if goes_on:
            step = goes_on(step)
        if after_reply:
            step = self._after_reply(osd, step, label, shard)
        lingers = step != answered
        if in_group:
            step = self._group_back(step, label, mutex_shard)
        back = self.worker_back(osd, step, label, shard)
        return (answered, back) if lingers else (back, back)

    def worker(self, osd: Osd, after: Iterable[int], label: str, shard: int) -> int:
        """Acquire a worker thread of an OSD."""
        step = self.graph.acquire(
            osd.worker,
            after=after,
            label=f"thread for {label}",
            phase=osd.phase,
            shard=shard,
        )
        self._queued(step)
        return step

    def worker_back(self, osd: Osd, after: int, label: str, shard: int) -> int:
        """Release a worker thread."""
        return self.graph.release(
            osd.worker, after=[after], label=f"thread back from {label}", shard=shard
        )

    def _queued(self, step: int) -> None:
        """Set class and cost of a wait for a worker thread, for client operations only of the first wait."""
        queue = self.models.op_queue
        if queue:
            self.graph.in_class(step, self._op_class, queue.cost(self._op_bytes))
        self._op_class = self._later_class
        self._op_bytes = self._later_bytes

    @property
    def keeps_thread(self) -> bool:
        """True if one thread handles a client's write from dispatch to the primary's transaction."""
        return bool(self.models.threads.lock_waits_per_thread_count)

    def _group(self, after: int, label: str, shard: int) -> int:
        """Take the placement group's mutex, if there is one."""
        if self.context.lock_scope == "none":
            return after
        return self.graph.acquire(
            roles.PG_EXEC,
            after=[after],
            label=f"PG for {label}",
            phase=Phase.LOCK,
            shard=shard,
        )

    def _group_back(self, after: int, label: str, shard: int) -> int:
        if self.context.lock_scope == "none":
            return after
        return self.graph.release(
            roles.PG_EXEC, after=[after], label=f"PG back from {label}", shard=shard
        )

    def _after_reply(self, osd: Osd, after: int, label: str, shard: int) -> int:
        """Stay on the core after a reply. Add no step if the model has no such time."""
        after_ns = self.models.cpu.after_reply_ns
        hand_over_ns = self.models.threads.hand_over_ns
        if after_ns:
            after = self.on_core(osd, after_ns, [after], f"after {label}", shard=shard)
        if not hand_over_ns:
            return after
        return self.graph.delay(
            NO_ROLE,
            hand_over_ns,
            after=[after],
            label=f"hand over after {label}",
            phase=osd.phase,
            shard=shard,
        )

    def on_core(
        self,
        osd: Osd,
        work: Work,
        after: Iterable[int],
        label: str,
        *,
        phase: Phase | None = None,
        shard: int = NO_SHARD,
        thread: int | None = None,
    ) -> int:
        """Run on a core. Without work, add no step.

        `phase` defaults to the OSD's phase. `thread` is the `acquire` step of the running thread, which may
        first have to be woken.
        """
        if not isinstance(work, CpuWork):
            work = CpuWork(work)
        total_ns = work.total_ns(self.models.threads.wake_ns)
        if not total_ns:
            return self.graph.join(after)
        pieces = 1
        if thread is not None:
            pieces = self._slices(total_ns)
        for piece in range(1, pieces + 1):
            # The last piece accounts for all work.
            amounts = work.amounts(total_ns) if piece == pieces else {}
            step = self.graph.use(
                osd.cpu,
                total_ns / pieces,
                after=after,
                label=label,
                phase=osd.phase if phase is None else phase,
                shard=shard,
                **amounts,
            )
            if thread is not None and self.models.threads.wakes_matter:
                self.graph.on_thread(step, thread)
            after = [step]
        return step

    def _slices(self, work_ns: float) -> int:
        """Return the number of time slices of work on a thread, which may lose its core after each."""
        slice_ns = self.models.threads.slice_ns
        if not slice_ns:
            return 1
        slices = -(-round(work_ns) // round(slice_ns))
        return max(1, min(slices, TRANSFER_STEPS_MAX))

    # The lock of the placement group.

    def lock(self, after: int) -> int:
        """Take the lock of the placement group, if there is one."""
        if self._without_lock:
            return after
        return self.graph.acquire(
            roles.PG_LOCK, after=[after], label="PG lock", phase=Phase.LOCK
        )

    @property
    def _without_lock(self) -> bool:
        """True if operations need only the mutex that each stage takes."""
        scope = self.context.lock_scope
        return scope == "none" or (scope == "dispatch" and self.keeps_thread)

    def unlock(self, after: int) -> int:
        """Release the lock, if there is one."""
        if self._without_lock:
            return after
        return self.graph.release(roles.PG_LOCK, after=[after], label="PG unlock")


def _asked(shard: int) -> Osd:
    """Return the OSD that a client contacts: the primary, or the OSD of a shard."""
    return roles.PRIMARY if shard == NO_SHARD else roles.osd_of(shard)

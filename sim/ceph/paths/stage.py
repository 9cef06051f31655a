"""What all paths are made of: a message, a stay on a core, a stay at a device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypedDict, TypeVar

from stripesim.models.coding import ReadPlan, RedundancyScheme, ShardExtent, StripeGeometry, WritePlan
from stripesim.models.object_store.store import StoreIo
from stripesim.sim.ceph import roles
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.phases import Phase
from stripesim.sim.ceph.qos import CLIENT, IMMEDIATE, RECOVERY
from stripesim.sim.engine.graph import NO_ROLE, NO_SHARD, SSD_READ, SSD_WRITE, GraphBuilder

Item = TypeVar("Item")

# Most steps that one transfer, or one chain of reads of a shard, becomes. What has more pieces becomes
# steps that stand for several, one after another, so that a graph holds any object; the times add up alike.
TRANSFER_STEPS_MAX = 64
CHAIN_STEPS_MAX = 8


class ObjectExtent(TypedDict):
    """A request's extent in its object, and the object's size [B]."""

    offset_bytes: int
    length_bytes: int
    object_size_bytes: int


@dataclass(frozen=True)
class PathContext:
    """Everything a path depends on, except for the request itself.

    Shards that are `missing` cannot be read from; those `catching_up` among them take part in writes all
    the same: their OSDs are being brought up to date. One round of a recovery moves at most
    `recovery_chunk_bytes` of an object.
    """

    models: Models
    scheme: RedundancyScheme
    geometry: StripeGeometry
    primary: int = 0
    missing: frozenset[int] = frozenset()
    recovery_chunk_bytes: int = 8 << 20
    catching_up: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        # How long the lock is held may depend on the kind of pool, which is known here.
        lock = self.models.pg_lock.of_pool(erasure=self.scheme.kind == "erasure")
        object.__setattr__(self, "models", replace(self.models, pg_lock=lock))

    @property
    def name(self) -> str:
        """Scheme and state, for template names."""
        state = f" without {sorted(self.missing)}" if self.missing else ""
        caught = f", {sorted(self.catching_up)} catching up" if self.catching_up else ""
        return f"{self.scheme.name}{state}{caught}"

    @property
    def members(self) -> list[int]:
        """Shards that take part in writes."""
        absent = self.missing - self.catching_up
        return [shard for shard in range(self.scheme.width) if shard not in absent]

    def plan_read(self, *, offset_bytes: int, length_bytes: int, object_size_bytes: int) -> ReadPlan:
        """Plan a read from what is up to date."""
        return self.scheme.plan_read(
            offset_bytes=offset_bytes,
            length_bytes=length_bytes,
            object_size_bytes=object_size_bytes,
            geometry=self.geometry,
            missing=self.missing,
            policy=self.models.ec,
        )

    def plan_write(
        self, *, offset_bytes: int, length_bytes: int, object_size_bytes: int, in_cache: bool = False
    ) -> WritePlan:
        """Plan a write: read from what is up to date, write to all members."""
        plan = partial(
            self.scheme.plan_write,
            offset_bytes=offset_bytes,
            length_bytes=length_bytes,
            object_size_bytes=object_size_bytes,
            geometry=self.geometry,
            policy=self.models.ec,
            in_cache=in_cache,
        )
        planned = plan(missing=self.missing)
        if not self.catching_up:
            return planned
        wider = plan(missing=self.missing - self.catching_up)
        more = tuple(extent for extent in wider.writes if extent.shard in self.catching_up)
        caught_up = tuple(shard for shard in wider.metadata_shards if shard in self.catching_up)
        return replace(
            planned, writes=planned.writes + more, metadata_shards=planned.metadata_shards + caught_up
        )


class Stage:
    """Adds the recurring groups of steps to a graph."""

    def __init__(self, graph: GraphBuilder, context: PathContext) -> None:
        self.graph = graph
        self.context = context
        self.models = context.models
        # Of what comes to a worker thread next: its class, and its bytes where it is not immediate.
        self._op_class, self._op_bytes = IMMEDIATE, 0

    def recovers(self, size_bytes: int) -> None:
        """Let what worker threads do from here on be recovery of so many bytes."""
        queue = self.models.op_queue
        item_bytes = queue.recovery_item_bytes if queue else 0
        self._op_class, self._op_bytes = RECOVERY, item_bytes or size_bytes

    def _queued(self, step: int) -> int:
        """Give the wait for a worker thread its class and cost; a client's own is its operation's first."""
        queue = self.models.op_queue
        if queue:
            self.graph.in_class(step, self._op_class, queue.cost(self._op_bytes))
        once = queue is not None and queue.recovery_item_bytes > 0
        if self._op_class == CLIENT or (self._op_class == RECOVERY and once):
            self._op_class, self._op_bytes = IMMEDIATE, 0
        return step

    # The client and the public network.

    def request(self, payload_bytes: int, returned_bytes: int = 0) -> int:
        """Client to primary: submission, both sides of the wire, the messenger; return the arrival."""
        self._op_class, self._op_bytes = CLIENT, payload_bytes
        submitted = self.submit(payload_bytes, returned_bytes)
        return self.client_out(self.models.messages.request_header_bytes + payload_bytes, submitted)

    def reply(self, payload_bytes: int, after: int) -> int:
        """Primary to client; return the arrival, the request's completion."""
        return self.client_back(self.models.messages.reply_bytes + payload_bytes, after)

    def submit(self, payload_bytes: int = 0, returned_bytes: int = 0) -> int:
        """Submission by the client, of a write with a payload or of a read."""
        client, graph = self.models.client, self.graph
        step = graph.issue
        if self.models.threads.slice_ns:
            # Bound where the client's thread has no core of its own.
            step = graph.acquire(
                roles.CLIENT_THREAD, after=[step], label="client's thread", phase=Phase.CLIENT
            )
        submitted = self.graph.use(
            roles.CLIENT_SUBMIT,
            client.submit_ns
            + (client.submit_write_ns if payload_bytes else 0)
            + client.submit_ns_per_byte * (payload_bytes + returned_bytes),
            after=[step],
            label="client submits",
            phase=Phase.CLIENT,
        )
        if self.models.threads.slice_ns:
            graph.on_thread(submitted, step)
            graph.release(roles.CLIENT_THREAD, after=[submitted], label="client's thread back")
        step = submitted
        if client.processor_ns:
            # Most of it comes after a request is sent or answered; no request waits for its own.
            self.graph.use(
                roles.CLIENT_CPU, client.processor_ns, after=[step], label="client works", phase=Phase.CLIENT
            )
        return step

    def client_out(self, size_bytes: int, after: int, shard: int = NO_SHARD) -> int:
        """Client to primary, or to a shard; return the arrival."""
        graph, nic = self.graph, self.models.public_nic
        received, cpu, wire = roles.PUBLIC_RX, roles.PRIMARY_CPU, roles.PUBLIC_WIRE
        if shard != NO_SHARD:
            received = wire = roles.shard_role(shard, roles.CLIENT_SIDE_RX)
            cpu = roles.shard_role(shard, roles.CPU)
        step = graph.use(
            roles.CLIENT_TX,
            nic.serialise_ns(size_bytes),
            after=[after],
            label="request sent",
            phase=Phase.PUBLIC_NET,
            shard=shard,
            public_net_bytes=nic.traffic_bytes(size_bytes),
            messages=1,
        )
        step = graph.use(
            received,
            nic.serialise_ns(size_bytes),
            after=[self._public_wire(wire, step, shard)],
            label="request received",
            phase=Phase.PUBLIC_NET,
            shard=shard,
        )
        return self.messenger(cpu, size_bytes, step, "request", shard=shard)

    def client_back(self, size_bytes: int, after: int, shard: int = NO_SHARD) -> int:
        """Primary, or a shard, to client; return the arrival."""
        graph, nic = self.graph, self.models.public_nic
        sent, cpu, wire = roles.PUBLIC_TX, roles.PRIMARY_CPU, roles.PUBLIC_WIRE
        if shard != NO_SHARD:
            sent = roles.shard_role(shard, roles.CLIENT_SIDE_TX)
            wire = roles.shard_role(shard, roles.CLIENT_SIDE_RX)
            cpu = roles.shard_role(shard, roles.CPU)
        step = self.messenger(cpu, size_bytes, after, "reply", shard=shard)
        step = graph.use(
            sent,
            nic.serialise_ns(size_bytes),
            after=[step],
            label="reply sent",
            phase=Phase.PUBLIC_NET,
            shard=shard,
            public_net_bytes=nic.traffic_bytes(size_bytes),
            messages=1,
        )
        return graph.use(
            roles.CLIENT_RX,
            nic.serialise_ns(size_bytes),
            after=[self._public_wire(wire, step, shard)],
            label="reply received",
            phase=Phase.PUBLIC_NET,
            shard=shard,
        )

    def _public_wire(self, wire: int, after: int, shard: int) -> int:
        return self.graph.delay(
            wire,
            self.models.public_nic.latency_ns,
            after=[after],
            label="public wire",
            phase=Phase.PUBLIC_NET,
            shard=shard,
        )

    # The private network. Between shards on one host only the messengers' work remains.

    def out(self, shard: int, size_bytes: int, after: int, what: str, *, phase: Phase) -> int:
        """Primary to shard; return the arrival. `phase` says what the wire's time is spent on."""
        step = self.messenger(roles.PRIMARY_CPU, size_bytes, after, what, shard=shard)
        parts = (roles.OUT_TX, roles.OUT_WIRE, roles.OUT_RX)
        step = self._wire(shard, parts, size_bytes, step, what, phase)
        step = self.messenger(roles.shard_role(shard, roles.CPU), size_bytes, step, what, shard=shard)
        return self._acknowledged(roles.PRIMARY_CPU, step, what, shard)

    def back(self, shard: int, size_bytes: int, after: int, what: str, *, phase: Phase) -> int:
        """Shard to primary; return the arrival."""
        step = self.messenger(roles.shard_role(shard, roles.CPU), size_bytes, after, what, shard=shard)
        parts = (roles.BACK_TX, roles.BACK_WIRE, roles.BACK_RX)
        step = self._wire(shard, parts, size_bytes, step, what, phase)
        step = self.messenger(roles.PRIMARY_CPU, size_bytes, step, what, shard=shard)
        return self._acknowledged(roles.shard_role(shard, roles.CPU), step, what, shard)

    def _acknowledged(self, sender_cpu: int, received: int, what: str, shard: int) -> int:
        """Let the messenger of a message's sender take its acknowledgement, for which nothing waits.

        It goes out with what the receiver's thread does anyway; its bytes are within the messages' sizes.
        """
        threads = self.models.threads
        if threads.messenger_threads_count:
            for _ in range(threads.peer_acks_count):
                self.messenger(sender_cpu, 0, received, f"{what} acknowledged", shard=shard)
        return received

    def sub_reply(self, shard: int, size_bytes: int, after: int, what: str, *, phase: Phase) -> int:
        """Send a shard's reply to the primary, which notes it; return when it has."""
        step = self.back(shard, size_bytes, after, what, phase=phase)
        return self.primary_cpu(self.models.cpu.sub_reply_ns, [step], what, shard=shard)

    def _wire(
        self,
        shard: int,
        parts: tuple[int, int, int],
        size_bytes: int,
        after: int,
        what: str,
        phase: Phase,
    ) -> int:
        graph, nic = self.graph, self.models.private_nic
        tx, wire, rx = (roles.shard_role(shard, part) for part in parts)
        step = graph.use(
            tx,
            nic.serialise_ns(size_bytes),
            after=[after],
            label=f"{what} sent",
            phase=phase,
            shard=shard,
            private_net_bytes=nic.traffic_bytes(size_bytes),
            messages=1,
        )
        step = graph.delay(wire, nic.latency_ns, after=[step], label="private wire", phase=phase, shard=shard)
        return graph.use(
            rx,
            nic.serialise_ns(size_bytes),
            after=[step],
            label=f"{what} received",
            phase=phase,
            shard=shard,
        )

    # Processors. A stage is one hand-off to a thread and one stay on a core.

    def messenger(self, cpu: int, size_bytes: int, after: int, what: str, *, shard: int = NO_SHARD) -> int:
        """One side of one message, on a messenger thread; `shard`: of a message to or from that shard."""
        cpu_ns, label = self.models.cpu.message_ns(size_bytes), f"messenger, {what}"
        if not self.models.threads.messenger_threads_count:
            return self.on_core(cpu, cpu_ns, [after], label, shard=shard)
        at_primary = cpu == roles.PRIMARY_CPU
        thread = roles.PRIMARY_MESSENGER if at_primary else roles.shard_role(shard, roles.MESSENGER)
        phase = Phase.PRIMARY_CPU if at_primary else Phase.SHARD_CPU
        return self.with_thread(
            thread, cpu, cpu_ns, [after], label, phase=phase, shard=shard, cpu_class=IMMEDIATE
        )

    def with_thread(
        self,
        thread: int,
        cpu: int,
        cpu_ns: float,
        after: Iterable[int],
        label: str,
        *,
        phase: Phase,
        shard: int = NO_SHARD,
        cpu_class: int = 0,
    ) -> int:
        """Take a thread of a class, let it work on a core, give it back."""
        graph = self.graph
        taken = graph.acquire(thread, after=after, label=f"thread for {label}", phase=phase, shard=shard)
        step = self.on_core(cpu, cpu_ns, [taken], label, phase=phase, shard=shard, thread=taken)
        if cpu_class:
            for piece in range(taken + 1, step + 1):
                graph.in_class(piece, cpu_class, 1)
        return graph.release(thread, after=[step], label=f"thread back from {label}", shard=shard)

    def primary_cpu(
        self,
        cpu_ns: float,
        after: Iterable[int],
        label: str,
        *,
        coding_ns: float = 0,
        encode_bytes: int = 0,
        shard: int = NO_SHARD,
        after_reply: bool = False,
    ) -> int:
        """A stage of the primary: under the placement group's own mutex, on a worker thread.

        `coding_ns` comes on top of `cpu_ns`. `after_reply`: the client is answered here; the step returned
        is then where the answer leaves, before the thread and the placement group are given back.
        """
        graph = self.graph
        # A thread takes an operation from its queue, and then the placement group's mutex. Where threads are
        # not modelled apart, operations wait for the mutex first.
        thread_first = self.thread_first
        before = list(after) if thread_first else [self.group(after, label, shard=shard)]
        thread = graph.acquire(
            roles.PRIMARY_WORKER,
            after=before,
            label=f"thread for {label}",
            phase=Phase.PRIMARY_CPU,
            shard=shard,
        )
        self._queued(thread)
        step = self.on_core(
            roles.PRIMARY_CPU,
            cpu_ns,
            [self.group([thread], label, shard=shard) if thread_first else thread],
            label,
            thread=thread,
            coding_ns=coding_ns,
            encode_bytes=encode_bytes,
            shard=shard,
        )
        answered = step
        if after_reply:
            step = self.after_reply(roles.PRIMARY_CPU, step, label, shard=shard)
        left = step == answered
        if thread_first:
            step = self.group_back(step, label, shard=shard)
        step = graph.release(
            roles.PRIMARY_WORKER, after=[step], label=f"thread back from {label}", shard=shard
        )
        if not thread_first:
            step = self.group_back(step, label, shard=shard)
        return step if left else answered

    @property
    def thread_first(self) -> bool:
        """Whether a thread waits for a placement group's mutex, not an operation in front of the thread."""
        return bool(self.models.threads.messenger_threads_count) or self.models.op_queue is not None

    def group(self, after: Iterable[int], label: str, *, shard: int = NO_SHARD) -> int:
        """Take the placement group's own mutex, if there is one."""
        if self.models.pg_lock.scope == "none":
            return self.graph.join(after)
        return self.graph.acquire(
            roles.PG_EXEC, after=after, label=f"PG for {label}", phase=Phase.LOCK, shard=shard
        )

    def group_back(self, after: int, label: str, *, shard: int = NO_SHARD) -> int:
        """Give the placement group's own mutex back, if there is one."""
        if self.models.pg_lock.scope == "none":
            return after
        return self.graph.release(roles.PG_EXEC, after=[after], label=f"PG back from {label}", shard=shard)

    def after_reply(self, cpu: int, after: int, label: str, *, shard: int = NO_SHARD) -> int:
        """Stay on the core after an answer; no step at all if the model has no such time."""
        after_ns, hand_over_ns = self.models.cpu.after_reply_ns, self.models.threads.hand_over_ns
        if after_ns:
            after = self.on_core(cpu, after_ns, [after], f"after {label}", handoffs=0, shard=shard)
        if not hand_over_ns:
            return after
        phase = Phase.PRIMARY_CPU if cpu == roles.PRIMARY_CPU else Phase.SHARD_CPU
        return self.graph.delay(
            NO_ROLE, hand_over_ns, after=[after], label=f"hand over after {label}", phase=phase, shard=shard
        )

    def shard_cpu(
        self, shard: int, cpu_ns: float, after: Iterable[int], label: str, *, wakes_count: float = 0
    ) -> int:
        """A stage of a shard's OSD, on a worker thread; `wakes_count` as in `on_core`."""
        worker, cpu = roles.shard_role(shard, roles.WORKER), roles.shard_role(shard, roles.CPU)
        thread = self.shard_thread(shard, after, label)
        step = self.on_core(cpu, cpu_ns, [thread], label, wakes_count=wakes_count, shard=shard, thread=thread)
        return self.graph.release(worker, after=[step], label=f"thread back from {label}", shard=shard)

    def shard_thread(self, shard: int, after: Iterable[int], label: str) -> int:
        """Wait for a worker thread of a shard's OSD."""
        step = self.graph.acquire(
            roles.shard_role(shard, roles.WORKER),
            after=after,
            label=f"thread for {label}",
            phase=Phase.SHARD_CPU,
            shard=shard,
        )
        return self._queued(step)

    def on_core(
        self,
        cpu: int,
        cpu_ns: float,
        after: Iterable[int],
        label: str,
        *,
        handoffs: int = 1,
        wakes_count: float = 0,
        coding_ns: float = 0,
        encode_bytes: int = 0,
        phase: Phase | None = None,
        shard: int = NO_SHARD,
        thread: int | None = None,
    ) -> int:
        """Stay on a core; no step at all if there is nothing to do.

        `phase` None: that of the core's OSD. `thread`: the `acquire` of the thread that works, which may have
        to be woken first. `wakes_count`: wake-ups of other threads that go with this work whatever the load.
        """
        cpu_ns += wakes_count * self.models.threads.wake_ns
        cpu_ns += coding_ns
        if not cpu_ns:
            return self.graph.join(after)
        if phase is None:
            phase = Phase.PRIMARY_CPU if cpu == roles.PRIMARY_CPU else Phase.SHARD_CPU
        switches = handoffs * self.models.cpu.switches_per_handoff_count + wakes_count
        slice_ns, pieces = self.models.threads.slice_ns, 1
        if slice_ns and thread is not None:
            # A thread whose slice is used up may lose its core in the middle of long work.
            pieces = min(-(-round(cpu_ns) // round(slice_ns)), TRANSFER_STEPS_MAX)
        amounts = {
            "cpu_ns": round(cpu_ns),
            "context_switches": round(switches),
            "encode_bytes": encode_bytes,
            "coding_ns": round(coding_ns),
        }
        for piece in range(pieces):
            step = self.graph.use(
                cpu,
                cpu_ns / pieces,
                after=after,
                label=label,
                phase=phase,
                shard=shard,
                **(amounts if piece == pieces - 1 else {}),
            )
            if thread is not None and (slice_ns or self.models.threads.wake_ns):
                self.graph.on_thread(step, thread)
            after = [step]
        return step

    # Devices.

    def ssd_read(self, shard: int, size_bytes: int, after: Iterable[int], label: str = "SSD read") -> int:
        """Read from a shard's device, in the pieces that the device makes of it."""
        graph, ssd, role = self.graph, self.models.ssd, roles.shard_role(shard, roles.SSD)
        read = partial(graph.use, role, after=after, label=label, phase=Phase.DEVICE, shard=shard)
        ends = []
        for pieces, requests in self._transfers(size_bytes):
            read_ns, read_bytes = sum(map(ssd.read_ns, pieces)), sum(pieces)
            step = read(read_ns, spread=SSD_READ, device_read_bytes=read_bytes, device_read_ops=requests)
            ends.append(self._linked(shard, pieces, step))
        return graph.join(ends)

    def _linked(self, shard: int, pieces: Sequence[int], after: int) -> int:
        """Bring what a drive has read to the host, where that way is a queue of its own."""
        ssd = self.models.ssd
        if not ssd.link_ns_per_byte:
            return after
        return self.graph.use(
            roles.shard_role(shard, roles.SSD_LINK),
            ssd.link_ns_per_byte * sum(pieces),
            after=[after],
            label="drive to host",
            phase=Phase.DEVICE,
            shard=shard,
        )

    def _transfers(self, size_bytes: int) -> list[tuple[Sequence[int], int]]:
        """Return what a device serves in parallel [B], each with the requests that it is counted as."""
        device = self.models.ssd
        pieces = device.pieces_bytes(size_bytes)
        if len(pieces) == 1:
            # Several requests keep the channels of a drive busy; a single one is spread over them.
            return [([part], int(index == 0)) for index, part in enumerate(device.parts_bytes(pieces[0]))]
        return [(batch, len(batch)) for batch in batches(pieces, TRANSFER_STEPS_MAX)]

    def lookup(self, shard: int, after: int) -> int:
        """Find where an object's bytes lie: the mean of what look-ups read; no step if all is in memory."""
        model = self.models.lookup
        if model is None or not model.miss_fraction:
            return after
        return self.graph.use(
            roles.shard_role(shard, roles.SSD),
            model.miss_fraction * self.models.ssd.read_ns(model.read_bytes),
            after=[after],
            label="metadata read",
            spread=SSD_READ,
            phase=Phase.DEVICE,
            shard=shard,
            device_read_bytes=round(model.miss_fraction * model.read_bytes),
        )

    def ssd_chain(self, shard: int, sizes_bytes: Sequence[int], after: int, label: str = "SSD read") -> int:
        """Read several pieces of one object from a shard's device, each after the one before it."""
        device, step = self.models.ssd, after
        reads = [
            (piece, device.read_ns(piece) if index == 0 else device.read_next_ns(piece))
            for index, size_bytes in enumerate(sizes_bytes)
            for piece in device.pieces_bytes(size_bytes)
        ]
        for batch in batches(reads, CHAIN_STEPS_MAX):
            step = self.graph.use(
                roles.shard_role(shard, roles.SSD),
                sum(read_ns for _, read_ns in batch),
                after=[step],
                label=label,
                spread=SSD_READ,
                phase=Phase.DEVICE,
                shard=shard,
                device_read_bytes=sum(piece for piece, _ in batch),
                device_read_ops=len(batch),
            )
        return step

    def ssd_write(self, shard: int, size_bytes: int, after: Iterable[int], label: str = "SSD write") -> int:
        """Write to a shard's device: at once into a buffer that takes all of it, else in its pieces."""
        graph, ssd, role = self.graph, self.models.ssd, roles.shard_role(shard, roles.SSD_WRITER)
        write = partial(graph.use, role, after=after, label=label, phase=Phase.DEVICE, shard=shard)
        transfers = self._transfers(size_bytes)
        if ssd.write_servers_count:
            transfers = [((size_bytes,), len(ssd.pieces_bytes(size_bytes)))]
        ends = []
        for pieces, requests in transfers:
            write_ns, write_bytes = sum(map(ssd.write_ns, pieces)), sum(pieces)
            ends.append(
                write(write_ns, spread=SSD_WRITE, device_write_bytes=write_bytes, device_write_ops=requests)
            )
        return graph.join(ends)

    def commit(self, shard: int, log_bytes: int, after: Iterable[int]) -> int:
        """Commit through the store's key-value log; return the commit.

        One thread of the OSD submits a transaction; one sync serves all transactions that wait for
        it. After the commit the transaction is finished: nobody waits for that, but a thread is busy. Where
        threads keep their cores, the first makes the syncs too, so it is given back behind the sync's queue.
        """
        graph, cpu, makes_syncs = self.graph, self.models.cpu, bool(self.models.threads.slice_ns)
        kv, core = roles.shard_role(shard, roles.KV), roles.shard_role(shard, roles.CPU)
        thread = graph.acquire(kv, after=after, label="thread for kv submit", phase=Phase.LOG, shard=shard)
        submitted = step = self.on_core(
            core, cpu.kv_transaction_ns, [thread], "kv submit", phase=Phase.LOG, shard=shard, thread=thread
        )
        if not makes_syncs:
            step = graph.release(kv, after=[submitted], label="thread back from kv submit", shard=shard)
        committed = graph.use(
            roles.shard_role(shard, roles.SYNC),
            self.models.ssd.sync_ns(log_bytes),
            after=[step],
            label="kv sync",
            spread=SSD_WRITE,
            phase=Phase.LOG,
            shard=shard,
            device_write_bytes=log_bytes,
            device_log_bytes=log_bytes,
            device_write_ops=1,
        )
        # What a sync writes once, however many transactions it serves.
        shared_bytes = self.models.store.sync_log_bytes
        if shared_bytes:
            graph.per_service(committed, device_write_bytes=shared_bytes, device_log_bytes=shared_bytes)
        if makes_syncs:
            graph.release(kv, after=[submitted], label="thread back from kv submit", shard=shard)
        finish_ns = cpu.kv_finish_ns
        if self.context.scheme.kind == "erasure":
            finish_ns *= cpu.ec_kv_finish_factor
        if finish_ns:
            finisher = roles.shard_role(shard, roles.FINISHER) if makes_syncs else kv
            self.with_thread(
                finisher, core, finish_ns, [committed], "kv finish", phase=Phase.LOG, shard=shard
            )
        return committed

    def transaction(
        self, shard: int, io: StoreIo, payload_bytes: int, after: int, what: str
    ) -> tuple[int, int]:
        """One member's part of a write: message, transaction, device, commit, acknowledgement.

        Return the step at which the primary knows of the commit, and the commit.
        """
        cpu, messages = self.models.cpu, self.models.messages
        step, work_ns = after, cpu.store_transaction_ns
        local = shard == self.context.primary
        work_ns += cpu.store_ns_per_byte * io.data_bytes
        if not local:
            step = self.out(shard, payload_bytes, step, what, phase=Phase.DISTRIBUTION)
            work_ns += cpu.sub_op_prepare_ns
        threads = self.models.threads
        wakes_count = threads.write_wakes_count if io.data_bytes else 0
        if self.context.scheme.kind == "erasure":
            wakes_count += threads.ec_wakes_count
        step = self.shard_cpu(shard, work_ns, [step], "transaction", wakes_count=wakes_count)
        if io.read_bytes:
            step = self.ssd_read(shard, io.read_bytes, [step], "SSD read (padding)")
        if io.data_bytes:
            step = self.ssd_write(shard, io.data_bytes, [step])
        commit = self.commit(shard, io.log_bytes, [step])
        if io.deferred_bytes:
            self.ssd_write(shard, io.deferred_bytes, [commit], "deferred write")
        if local:
            return commit, commit
        size_bytes = messages.sub_reply_bytes
        return self.sub_reply(shard, size_bytes, commit, f"{what} reply", phase=Phase.DISTRIBUTION), commit

    # The lock of the placement group.

    def lock(self, after: int) -> int:
        """Take the lock of the placement group, if there is one; threads that wait for it hold its mutex."""
        if self._without_lock:
            return after
        return self.graph.acquire(roles.PG_LOCK, after=[after], label="PG lock", phase=Phase.LOCK)

    @property
    def _without_lock(self) -> bool:
        """Whether operations need no lock beyond the mutex that each of their stages takes."""
        scope = self.models.pg_lock.scope
        waits_in_thread = bool(self.models.threads.lock_waits_per_thread_count)
        return scope == "none" or (scope == "dispatch" and waits_in_thread)

    def unlock(self, after: int) -> int:
        """Give the lock back, if there is one."""
        if self._without_lock:
            return after
        return self.graph.release(roles.PG_LOCK, after=[after], label="PG unlock")


def gather(stage: Stage, sources: Mapping[int, tuple[int, int]], after: int, what: str = "sub-read") -> int:
    """Read from several shards and bring the data to the primary.

    `sources` has for each shard the bytes that its store returns and those that its device reads; the two
    differ by what a cache holds and by padding. The stage of `after` has paid for making the sub-reads.
    """
    cpu, messages = stage.models.cpu, stage.models.messages
    arrivals = []
    for shard, (data_bytes, device_bytes) in sources.items():
        if shard == stage.context.primary:
            arrivals.append(local_read(stage, shard, cpu.store_read_ns, device_bytes, after, what)[0])
            continue
        step = stage.out(shard, messages.sub_read_request_bytes, after, what, phase=Phase.READ_BACK)
        work_ns = cpu.sub_op_prepare_ns + cpu.store_read_ns
        step, _ = local_read(stage, shard, work_ns, device_bytes, step, what)
        size_bytes = messages.sub_read_reply_header_bytes + data_bytes
        arrivals.append(stage.sub_reply(shard, size_bytes, step, f"{what} reply", phase=Phase.READ_BACK))
    return stage.graph.join(arrivals, label="all data here")


def local_read(
    stage: Stage,
    shard: int,
    cpu_ns: float,
    device_bytes: int,
    after: int,
    what: str,
    *,
    in_group: bool = False,
) -> tuple[int, int]:
    """Serve one store read on a shard: the thread waits for the device, as `store->read` does.

    `in_group`: under the placement group's own mutex.

    Return the step after which the answer leaves, and that at which the thread is back.
    """
    graph = stage.graph
    worker, cpu = roles.shard_role(shard, roles.WORKER), roles.shard_role(shard, roles.CPU)
    thread_first = stage.thread_first
    if in_group and not thread_first:
        after = stage.group([after], what)
    thread = stage.shard_thread(shard, [after], what)
    cpu_ns += stage.models.cpu.store_ns_per_byte * device_bytes
    # Waiting for the device is one more hand-off.
    step = stage.on_core(
        cpu,
        cpu_ns,
        [stage.group([thread], what) if in_group and thread_first else thread],
        what,
        handoffs=2 if device_bytes else 1,
        wakes_count=stage.models.threads.read_wakes_count if device_bytes else 0,
        shard=shard,
        thread=thread,
    )
    step = stage.lookup(shard, step)
    if device_bytes:
        step = stage.ssd_read(shard, device_bytes, [step])
    answered = step
    step = stage.after_reply(cpu, step, what, shard=shard)
    left = step == answered
    if in_group and thread_first:
        step = stage.group_back(step, what)
    step = graph.release(worker, after=[step], label=f"thread back from {what}", shard=shard)
    if in_group and not thread_first:
        step = stage.group_back(step, what)
    return (step if left else answered), step


def shard_store_io(
    context: PathContext,
    extents: list[ShardExtent],
    object_size_bytes: int,
    unit_states: tuple[int, int] | None = None,
) -> tuple[int, StoreIo]:
    """Return a shard's payload [B] and its store's device traffic.

    `unit_states` tells what is known of the first and last unit (see
    `stripesim.models.object_store.store`); None: what
    lies below the object's size is there and has to be read.
    """
    store, erasure = context.models.store, context.scheme.kind == "erasure"
    existing = object_size_bytes
    if erasure:
        # Beyond the end of an optimised object's shard only whole pages are written.
        existing = context.geometry.stripe_count(object_size_bytes) * context.geometry.stripe_unit_bytes
    if unit_states is not None:
        parts = [store.partial_write_io(e.offset_bytes, e.length_bytes, unit_states) for e in extents]
    else:
        parts = [store.write_io(e.offset_bytes, e.length_bytes, existing_bytes=existing) for e in extents]
    # One transaction, however many extents: its metadata is written once.
    other_log_bytes = sum(part.log_bytes - store.metadata_bytes for part in parts)
    io = StoreIo(
        read_bytes=sum(part.read_bytes for part in parts),
        data_bytes=sum(part.data_bytes for part in parts),
        log_bytes=other_log_bytes + store.metadata_log_bytes(erasure=erasure),
        deferred_bytes=sum(part.deferred_bytes for part in parts),
    )
    return sum(extent.length_bytes for extent in extents), io


def by_shard(extents: Iterable[ShardExtent]) -> dict[int, list[ShardExtent]]:
    """Group extents by shard, shards ascending."""
    grouped: dict[int, list[ShardExtent]] = {}
    for extent in sorted(extents):
        grouped.setdefault(extent.shard, []).append(extent)
    return grouped


def batches(items: Sequence[Item], most: int) -> list[Sequence[Item]]:
    """Split items into runs of equal length, but the last, of which there are at most so many.

    >>> [len(run) for run in batches(range(7), 3)]
    [3, 3, 1]
    """
    length = -(-len(items) // most)
    return [items[start : start + length] for start in range(0, len(items), max(1, length))]

"""What all paths are made of: a message, a stay on a core, a lock."""

from collections.abc import Callable, Iterable
from typing import Any

from stripesim.sim.ceph import roles
from stripesim.sim.ceph.paths.context import PathContext
from stripesim.sim.ceph.phases import Phase
from stripesim.sim.ceph.qos import (
    BEST_EFFORT,
    CLIENT,
    IMMEDIATE,
    RECOVERY,
    SCRUB_EVENT_BYTES,
)
from stripesim.sim.engine.graph import NO_ROLE, NO_SHARD, GraphBuilder

# Most steps that one transfer, or one stay on a core, becomes. What has more pieces becomes steps that stand
# for several, one after another, so that a graph holds any object; the times add up alike.
TRANSFER_STEPS_MAX = 64

# Sender's interface, wire, receiver's interface.
Ends = tuple[int, int, int]
_OUT = (roles.OUT_TX, roles.OUT_WIRE, roles.OUT_RX)
_BACK = (roles.BACK_TX, roles.BACK_WIRE, roles.BACK_RX)


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

    def scrubs(self) -> None:
        """Let what worker threads do from here on be scrub."""
        self._op_class, self._op_bytes = BEST_EFFORT, SCRUB_EVENT_BYTES

    def _queued(self, step: int) -> None:
        """Give the wait for a worker thread its class and cost; a client's own is its operation's first."""
        queue = self.models.op_queue
        if queue:
            self.graph.in_class(step, self._op_class, queue.cost(self._op_bytes))
        once = queue is not None and queue.recovery_item_bytes > 0
        if self._op_class == CLIENT or (self._op_class == RECOVERY and once):
            self._op_class, self._op_bytes = IMMEDIATE, 0

    # The client and the public network.

    def request(self, payload_bytes: int, returned_bytes: int = 0) -> int:
        """Client to primary: submission, both sides of the wire, the messenger; return the arrival."""
        self._op_class, self._op_bytes = CLIENT, payload_bytes
        submitted = self.submit(payload_bytes, returned_bytes)
        return self.client_out(
            self.models.messages.request_header_bytes + payload_bytes, submitted
        )

    def reply(self, payload_bytes: int, after: int) -> int:
        """Primary to client; return the arrival, the request's completion."""
        return self.client_back(self.models.messages.reply_bytes + payload_bytes, after)

    def submit(self, payload_bytes: int = 0, returned_bytes: int = 0) -> int:
        """Submission by the client, of a write with a payload or of a read."""
        client, graph, phase = self.models.client, self.graph, Phase.CLIENT
        held_ns = client.submit_ns + (client.submit_write_ns if payload_bytes else 0)
        held_ns += client.submit_ns_per_byte * (payload_bytes + returned_bytes)
        step, on_thread = graph.issue, bool(self.models.threads.slice_ns)
        if on_thread:
            # Bound where the client's thread has no core of its own.
            step = graph.acquire(
                roles.CLIENT_THREAD, after=[step], label="client's thread", phase=phase
            )
        label = "client submits"
        submitted = graph.use(
            roles.CLIENT_SUBMIT, held_ns, after=[step], label=label, phase=phase
        )
        if on_thread:
            graph.on_thread(submitted, step)
            graph.release(
                roles.CLIENT_THREAD, after=[submitted], label="client's thread back"
            )
        if client.processor_ns:
            # Most of it comes after a request is sent or answered; no request waits for its own.
            label, work_ns = "client works", client.processor_ns
            graph.use(
                roles.CLIENT_CPU, work_ns, after=[submitted], label=label, phase=phase
            )
        return submitted

    def client_out(self, size_bytes: int, after: int, shard: int = NO_SHARD) -> int:
        """Client to primary, or to a shard; return the arrival."""
        _, wire, received, cpu = _client_side(shard)
        ends = (roles.CLIENT_TX, wire, received)
        step = self._wire(
            "public", ends, size_bytes, after, "request", Phase.PUBLIC_NET, shard
        )
        return self.messenger(cpu, size_bytes, step, "request", shard=shard)

    def client_back(self, size_bytes: int, after: int, shard: int = NO_SHARD) -> int:
        """Primary, or a shard, to client; return the arrival."""
        sent, wire, _, cpu = _client_side(shard)
        step = self.messenger(cpu, size_bytes, after, "reply", shard=shard)
        ends = (sent, wire, roles.CLIENT_RX)
        return self._wire(
            "public", ends, size_bytes, step, "reply", Phase.PUBLIC_NET, shard
        )

    # The private network. Between shards on one host only the messengers' work remains.

    def out(
        self, shard: int, size_bytes: int, after: int, what: str, *, phase: Phase
    ) -> int:
        """Primary to shard; return the arrival. `phase` says what the wire's time is spent on."""
        return self._between(shard, _OUT, size_bytes, after, what, phase)

    def back(
        self, shard: int, size_bytes: int, after: int, what: str, *, phase: Phase
    ) -> int:
        """Shard to primary; return the arrival."""
        return self._between(shard, _BACK, size_bytes, after, what, phase)

    def _between(
        self,
        shard: int,
        parts: Ends,
        size_bytes: int,
        after: int,
        what: str,
        phase: Phase,
    ) -> int:
        """Send a message between the primary and a shard: messenger, wire, messenger.

        The sender's messenger takes the acknowledgement, for which nothing waits. It goes out with what the
        receiver's thread does anyway; its bytes are within the messages' sizes.
        """
        sender, receiver = roles.PRIMARY_CPU, roles.shard_role(shard, roles.CPU)
        if parts == _BACK:
            sender, receiver = receiver, sender
        step = self.messenger(sender, size_bytes, after, what, shard=shard)
        tx, wire, rx = (roles.shard_role(shard, part) for part in parts)
        step = self._wire(
            "private", (tx, wire, rx), size_bytes, step, what, phase, shard
        )
        step = self.messenger(receiver, size_bytes, step, what, shard=shard)
        for _ in range(self.models.threads.peer_acks_count):
            self.messenger(sender, 0, step, f"{what} acknowledged", shard=shard)
        return step

    def sub_reply(
        self, shard: int, size_bytes: int, after: int, what: str, *, phase: Phase
    ) -> int:
        """Send a shard's reply to the primary, which notes it; return when it has."""
        step = self.back(shard, size_bytes, after, what, phase=phase)
        return self.primary_cpu(self.models.cpu.sub_reply_ns, [step], what, shard=shard)

    def _wire(
        self,
        net: str,
        ends: Ends,
        size_bytes: int,
        after: int,
        what: str,
        phase: Phase,
        shard: int,
    ) -> int:
        """Send over a network: from the sender's interface over the wire to the receiver's."""
        graph, (tx, wire, rx) = self.graph, ends
        nic = self.models.public_nic if net == "public" else self.models.private_nic
        held_ns, traffic = (
            nic.serialise_ns(size_bytes),
            {f"{net}_net_bytes": nic.traffic_bytes(size_bytes)},
        )
        step = graph.use(
            tx,
            held_ns,
            after=[after],
            label=f"{what} sent",
            phase=phase,
            shard=shard,
            messages=1,
            **traffic,
        )
        step = graph.delay(
            wire,
            nic.latency_ns,
            after=[step],
            label=f"{net} wire",
            phase=phase,
            shard=shard,
        )
        return graph.use(
            rx,
            held_ns,
            after=[step],
            label=f"{what} received",
            phase=phase,
            shard=shard,
        )

    # Processors. A stage is one hand-off to a thread and one stay on a core.

    def messenger(
        self, cpu: int, size_bytes: int, after: int, what: str, *, shard: int = NO_SHARD
    ) -> int:
        """One side of one message, on a messenger thread; `shard`: of a message to or from that shard.

        Deviation: messages between OSDs of one host take the frames of the network as well.
        """
        frames, label = self.models.private_nic.frames(size_bytes), f"messenger, {what}"
        cpu_ns = self.models.cpu.message_ns(size_bytes, frames)
        at_primary = cpu == roles.PRIMARY_CPU
        thread = (
            roles.PRIMARY_MESSENGER
            if at_primary
            else roles.shard_role(shard, roles.MESSENGER)
        )
        return self.with_thread(
            thread,
            cpu,
            cpu_ns,
            [after],
            label,
            "messenger_ns",
            phase=_phase_of(cpu),
            shard=shard,
        )

    def with_thread(
        self,
        thread: int,
        cpu: int,
        cpu_ns: float,
        after: Iterable[int],
        label: str,
        part: str,
        *,
        phase: Phase,
        shard: int = NO_SHARD,
    ) -> int:
        """Take a thread of a class, let it work on a core, give it back."""
        graph = self.graph
        taken = graph.acquire(
            thread, after=after, label=f"thread for {label}", phase=phase, shard=shard
        )
        step = self.on_core(
            cpu,
            cpu_ns,
            [taken],
            label,
            phase=phase,
            shard=shard,
            thread=taken,
            part=part,
        )
        return graph.release(
            thread, after=[step], label=f"thread back from {label}", shard=shard
        )

    def primary_cpu(
        self, cpu_ns: float, after: Iterable[int], label: str, **more: Any
    ) -> int:
        """A stage of the primary: under the placement group's own mutex, on a worker thread.

        `more` is as in `work`. With `goes_on` or `after_reply` something leaves here: the step returned is
        where it does, before the thread and the placement group are given back.
        """
        return self.work(
            roles.PRIMARY_CPU, cpu_ns, after, label, in_group=True, **more
        )[0]

    def work(
        self,
        cpu: int,
        cpu_ns: float,
        after: Iterable[int],
        label: str,
        *,
        in_group: bool = False,
        shard: int = NO_SHARD,
        then: Callable[[int], int] | None = None,
        goes_on: Callable[[int], int] | None = None,
        after_reply: bool = False,
        **more: Any,
    ) -> tuple[int, int]:
        """A stage of an OSD, by its host's cores, on a worker thread.

        `in_group`: under the placement group's own mutex. `then`: what the thread waits for once it has left
        the core. `goes_on`: what it works on once the answer has left; `after_reply`: and then the rest that
        follows an answer. `more` is as in `on_core`.

        Return the step after which the answer leaves, and that at which the thread is back.
        """
        graph, at_primary = self.graph, cpu == roles.PRIMARY_CPU
        worker = (
            roles.PRIMARY_WORKER
            if at_primary
            else roles.shard_role(shard, roles.WORKER)
        )
        mutex_shard = shard if at_primary else NO_SHARD
        # A thread takes an operation from its queue, and then the placement group's mutex.
        thread = self.worker(worker, after, label, shard)
        ready = self._group([thread], label, mutex_shard) if in_group else thread
        step = self.on_core(
            cpu, cpu_ns, [ready], label, shard=shard, thread=thread, **more
        )
        step = answered = then(step) if then else step
        if goes_on:
            step = goes_on(step)
        if after_reply:
            step = self._after_reply(cpu, step, label, shard=shard)
        lingers = step != answered
        if in_group:
            step = self._group_back(step, label, mutex_shard)
        step = graph.release(
            worker, after=[step], label=f"thread back from {label}", shard=shard
        )
        return (answered if lingers else step), step

    def worker(self, worker: int, after: Iterable[int], label: str, shard: int) -> int:
        """Wait for a worker thread of an OSD."""
        phase = Phase.PRIMARY_CPU if worker == roles.PRIMARY_WORKER else Phase.SHARD_CPU
        step = self.graph.acquire(
            worker, after=after, label=f"thread for {label}", phase=phase, shard=shard
        )
        self._queued(step)
        return step

    @property
    def keeps_thread(self) -> bool:
        """Whether one thread takes a client's write from dispatch to the primary's own transaction."""
        return bool(self.models.threads.lock_waits_per_thread_count)

    def _group(self, after: Iterable[int], label: str, shard: int) -> int:
        """Take the placement group's own mutex, if there is one."""
        if self.models.pg_lock.scope == "none":
            return self.graph.join(after)
        label = f"PG for {label}"
        return self.graph.acquire(
            roles.PG_EXEC, after=after, label=label, phase=Phase.LOCK, shard=shard
        )

    def _group_back(self, after: int, label: str, shard: int) -> int:
        if self.models.pg_lock.scope == "none":
            return after
        return self.graph.release(
            roles.PG_EXEC, after=[after], label=f"PG back from {label}", shard=shard
        )

    def _after_reply(self, cpu: int, after: int, label: str, *, shard: int) -> int:
        """Stay on the core after an answer; no step at all if the model has no such time."""
        after_ns, hand_over_ns = (
            self.models.cpu.after_reply_ns,
            self.models.threads.hand_over_ns,
        )
        if after_ns:
            after = self.on_core(cpu, after_ns, [after], f"after {label}", shard=shard)
        if not hand_over_ns:
            return after
        label = f"hand over after {label}"
        return self.graph.delay(
            NO_ROLE,
            hand_over_ns,
            after=[after],
            label=label,
            phase=_phase_of(cpu),
            shard=shard,
        )

    def on_core(
        self,
        cpu: int,
        cpu_ns: float,
        after: Iterable[int],
        label: str,
        *,
        wakes_count: float = 0,
        coding_ns: float = 0,
        encode_bytes: int = 0,
        phase: Phase | None = None,
        shard: int = NO_SHARD,
        thread: int | None = None,
        part: str = "",
    ) -> int:
        """Stay on a core; no step at all if there is nothing to do.

        `phase` None: that of the core's OSD. `part`: counter of the class of thread, if it is no worker.
        `thread`: the `acquire` of the thread that works, which may have to be woken first. `wakes_count`:
        wake-ups of other threads that go with this work whatever the load.
        """
        cpu_ns += wakes_count * self.models.threads.wake_ns
        cpu_ns += coding_ns
        if not cpu_ns:
            return self.graph.join(after)
        slice_ns, pieces = self.models.threads.slice_ns, 1
        if slice_ns and thread is not None:
            # A thread whose slice is used up may lose its core in the middle of long work.
            pieces = min(-(-round(cpu_ns) // round(slice_ns)), TRANSFER_STEPS_MAX)
        amounts = {
            "cpu_ns": round(cpu_ns),
            "context_switches": round(wakes_count),
            "encode_bytes": encode_bytes,
            "coding_ns": round(coding_ns),
            **({part: round(cpu_ns)} if part else {}),
        }
        for piece in range(pieces):
            step = self.graph.use(
                cpu,
                cpu_ns / pieces,
                after=after,
                label=label,
                phase=_phase_of(cpu) if phase is None else phase,
                shard=shard,
                **(amounts if piece == pieces - 1 else {}),
            )
            if thread is not None and (slice_ns or self.models.threads.wake_ns):
                self.graph.on_thread(step, thread)
            after = [step]
        return step

    # The lock of the placement group.

    def lock(self, after: int) -> int:
        """Take the lock of the placement group, if there is one; threads that wait for it hold its mutex."""
        if self._without_lock:
            return after
        return self.graph.acquire(
            roles.PG_LOCK, after=[after], label="PG lock", phase=Phase.LOCK
        )

    @property
    def _without_lock(self) -> bool:
        """Whether operations need no lock beyond the mutex that each of their stages takes."""
        scope = self.models.pg_lock.scope
        return scope == "none" or (scope == "dispatch" and self.keeps_thread)

    def unlock(self, after: int) -> int:
        """Give the lock back, if there is one."""
        if self._without_lock:
            return after
        return self.graph.release(roles.PG_LOCK, after=[after], label="PG unlock")


def _phase_of(cpu: int) -> Phase:
    return Phase.PRIMARY_CPU if cpu == roles.PRIMARY_CPU else Phase.SHARD_CPU


def _client_side(shard: int) -> tuple[int, int, int, int]:
    """Return interface out, wire, interface in and cores of the primary, or of a shard, on the public net."""
    if shard == NO_SHARD:
        return roles.PUBLIC_TX, roles.PUBLIC_WIRE, roles.PUBLIC_RX, roles.PRIMARY_CPU
    received = roles.shard_role(shard, roles.CLIENT_SIDE_RX)
    sent = roles.shard_role(shard, roles.CLIENT_SIDE_TX)
    return sent, received, received, roles.shard_role(shard, roles.CPU)

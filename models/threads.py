"""Threads of a storage daemon: how many of each class there are, and what waking one costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stripesim.models.provenance import MeasuredModel


@dataclass(frozen=True, kw_only=True)
class ThreadModel(MeasuredModel):
    """Threads of one OSD by class, and what it costs when one has to be woken.

    Notes
    -----
    A thread goes to sleep when nothing waits for its class as it finishes: that is one voluntary context
    switch. How often it happens depends on the load; the engines count it (`EngineRun.sleeps`).

    References
    ----------
    Ceph v16.2.15: ``src/osd/OSD.cc`` (``ShardedOpWQ::_process``), ``src/msg/async/Stack.cc``
    (``ms_async_op_threads``), ``src/os/bluestore/BlueStore.cc`` (``_kv_sync_thread``,
    ``_kv_finalize_thread``, ``_do_read``: a read waits for its ``aio_wait``),
    ``src/blk/kernel/KernelDevice.cc`` (``_aio_thread``), ``src/msg/async/ProtocolV2.cc``
    (``handle_message_ack``; ``write_event`` sends pending messages of a connection that is not lossy).
    """

    positive: ClassVar = (
        "op_shards_count",
        "op_threads_per_shard_count",
        "messenger_threads_count",
    )
    op_shards_count: int  #: Queues of operations; a placement group belongs to one
    op_threads_per_shard_count: int  #: Threads that serve one queue
    messenger_threads_count: int  #: Threads that send and receive messages
    #: Processor time of waking a thread that sleeps, and of its going to sleep again [ns]; a thread that
    #: finds more work when it is done costs nothing
    wake_ns: float
    #: Wake-ups within one key-value sync, whoever shares it: of the threads that write and flush the log,
    #: finish transactions and make the callbacks; beside that of the key-value thread
    sync_wakes_count: float
    sync_ns: float  #: Processor time of one key-value sync with its wake-ups, whoever shares it [ns]
    #: Time after which a process that had no core has lost what it left in the processor's caches [ns]: a
    #: wake-up before that costs as much less of `wake_ns`, in proportion; 0: it always costs all of it
    cool_ns: float
    #: Wake-ups for each item that finds its queue of operations empty: all threads of the queue are notified
    #: (``ShardedOpWQ::_enqueue``: ``notify_all``) and meet at its lock. Only the one that works costs
    #: processor time, the others find the caches warm.
    queue_wakes_count: float
    ec_wakes_count: float  #: Wake-ups that a transaction of an erasure-coded pool takes beside a replica's
    #: Acknowledgements of one message between OSDs, each of which a messenger thread of the sender receives;
    #: clients' connections have none
    peer_acks_count: int
    #: Threads that lose their core to one that was woken, for each wake-up: involuntary switches
    preemptions_per_wake_count: float
    #: With a `PgLockModel` of scope ``dispatch``. 1: an operation needs nothing of its placement group but
    #: the mutex that each of its stages takes; 0: a client's operation also takes the group's lock before it
    #: queues for a thread, and keeps it while it is dispatched.
    lock_waits_per_thread_count: int
    #: Time, not processor time, after an operation has been answered until its thread and what it holds serve
    #: the next [ns]
    hand_over_ns: float
    #: How long a thread that finds more work keeps its core while others wait [ns]; 0: for one stage. With
    #: it, one thread submits and syncs the key-value pairs of an OSD, batch by batch.
    slice_ns: float
    #: Threads that finish what that thread has synced; 0: it does so itself, as all did up to v11.2
    finish_threads_count: int

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("sync_wakes_count", "sync_ns", "cool_ns"):
            if getattr(self, name) and not self.slice_ns:
                raise ValueError(
                    f"ThreadModel: {name}: got some, wanted 0 where slice_ns is 0"
                )
        if self.lock_waits_per_thread_count not in (0, 1):
            got = self.lock_waits_per_thread_count
            raise ValueError(
                f"ThreadModel: lock_waits_per_thread_count: got {got}, wanted 0 or 1"
            )

"""Threads of a storage daemon: the number in each class, and the cost of waking one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stripesim.models.provenance import MeasuredModel


@dataclass(frozen=True, kw_only=True)
class ThreadModel(MeasuredModel):
    """Threads of one OSD by class, and the cost of wake-ups.

    Notes
    -----
    A thread sleeps if it finds no further work for its class, which is one voluntary context switch. The load
    determines how often this happens, and the engines count it (`EngineRun.sleeps`).

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
    op_shards_count: int  #: Operation queues. Each placement group belongs to one.
    op_threads_per_shard_count: int  #: Threads per operation queue
    messenger_threads_count: int  #: Threads that send and receive messages
    #: Processor time of waking a thread and putting it back to sleep [ns]. A thread that finds more work does
    #: not pay it.
    wake_ns: float
    #: Wake-ups per key-value sync, independent of the number of transactions: threads that write and flush
    #: the log, finish transactions and make callbacks. The key-value thread itself is not included.
    sync_wakes_count: float
    #: Processor time of one key-value sync with its wake-ups, for all its transactions [ns]. Waking the
    #: key-value thread takes it: transactions that find the thread awake share a sync
    sync_ns: float
    #: Time without a core after which a process has lost its data in the processor's caches [ns]. Earlier
    #: wake-ups cost proportionally less of `wake_ns`. 0: wake-ups always cost all of it.
    cool_ns: float
    #: Wake-ups for an item that finds its operation queue empty. All threads of the queue are notified
    #: (``ShardedOpWQ::_enqueue``: ``notify_all``) and meet at its lock. Only the one that works costs
    #: processor time; the others find warm caches.
    queue_wakes_count: float
    ec_wakes_count: (
        float  #: Additional wake-ups of a transaction in an erasure-coded pool
    )
    #: Acknowledgements per message between OSDs, each received by a messenger thread of the sender.
    #: Connections of clients have none.
    peer_acks_count: int
    #: Threads that lose their core per wake-up of another thread: involuntary context switches
    preemptions_per_wake_count: float
    #: Only with a `PgLockModel` of scope ``dispatch``. 1: an operation needs only the mutex of its placement
    #: group, which each of its stages takes. 0: a client operation also takes the group's lock before it
    #: queues for a thread, and holds it while being dispatched.
    lock_waits_per_thread_count: int
    #: Time (not processor time) between the answer to an operation and the next one on its thread, with the
    #: resources that it holds [ns]
    hand_over_ns: float
    #: Time that a thread with more work keeps its core while others wait [ns]. 0: for one stage. With a
    #: slice, one thread submits and syncs the key-value pairs of an OSD in batches.
    slice_ns: float
    #: Threads that finish the transactions that the key-value thread has synced. 0: it finishes them itself,
    #: as up to v11.2.
    finish_threads_count: int

    @property
    def wakes_matter(self) -> bool:
        """True if it takes time to wake a thread, or a thread keeps its core."""
        return bool(self.slice_ns or self.wake_ns or self.sync_ns)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("sync_wakes_count", "cool_ns"):
            if getattr(self, name) and not self.slice_ns:
                raise ValueError(
                    f"ThreadModel: {name}: got a number above 0, wanted 0 because slice_ns is 0"
                )
        if self.lock_waits_per_thread_count not in (0, 1):
            got = self.lock_waits_per_thread_count
            raise ValueError(
                f"ThreadModel: lock_waits_per_thread_count: got {got}, wanted 0 or 1"
            )

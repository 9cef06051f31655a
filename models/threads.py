"""Threads of a storage daemon: how many of each class there are, and what waking one costs."""

from __future__ import annotations

from dataclasses import dataclass

from stripesim.models.provenance import MeasuredModel


@dataclass(frozen=True, kw_only=True)
class ThreadModel(MeasuredModel):
    """Threads of one OSD by class, and what it costs when one has to be woken.

    Parameters
    ----------
    op_shards_count : int
        Queues of operations; a placement group belongs to one.
    op_threads_per_shard_count : int
        Threads that serve one queue.
    messenger_threads_count : int
        Threads that send and receive messages; 0: a message needs a core, but no thread of its own class.
    wake_ns : float
        Processor time of waking a thread that sleeps, and of its going to sleep again [ns]; a thread that
        finds more work when it is done costs nothing.
    sync_wakes_count : float
        Wake-ups within one key-value sync, whoever shares it: of the threads that write and flush the log,
        finish transactions and make the callbacks.
    read_wakes_count : float
        Wake-ups of one device read, for which a thread waits.

    Notes
    -----
    A thread goes to sleep when nothing waits for its class as it finishes: that is one context switch. How
    often it happens depends on the load; the engines count it (`EngineRun.sleeps`).

    References
    ----------
    Ceph v16.2.15: ``src/osd/OSD.cc`` (``ShardedOpWQ::_process``), ``src/msg/async/Stack.cc``
    (``ms_async_op_threads``), ``src/os/bluestore/BlueStore.cc`` (``_kv_sync_thread``,
    ``_kv_finalize_thread``).
    """

    op_shards_count: int
    op_threads_per_shard_count: int
    messenger_threads_count: int
    wake_ns: float
    sync_wakes_count: float
    read_wakes_count: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_positive("op_shards_count", "op_threads_per_shard_count")
        self.check_not_negative("messenger_threads_count", "wake_ns", "sync_wakes_count", "read_wakes_count")

"""Processor time of a storage daemon's work, by kind of work."""

from dataclasses import dataclass
from typing import ClassVar

from stripesim.models.provenance import MeasuredModel


@dataclass(frozen=True, kw_only=True)
class CpuModel(MeasuredModel):
    """Cores of a storage host and the processor time of each kind of work.

    Notes
    -----
    Every term is a plain sum, so each can be set to zero for an ablation. A stage is one stay on a
    core: its time is the sum of the terms named by the path that builds it (see
    `stripesim.sim.ceph.paths`). Core frequency and caches are inside the numbers.

    References
    ----------
    Ceph v11.2.0: ``src/osd/OSD.cc`` (``ShardedOpWQ::_process``: every operation, sub-operation and
    reply takes the lock of its placement group while it is processed),
    ``src/os/bluestore/BlueStore.cc`` (``_kv_sync_thread``: one thread per store submits, syncs and
    finishes all transactions).
    """

    positive: ClassVar = ("cores_per_host",)
    cores_per_host: (
        int  #: Cores of one storage host; its hardware threads, where two share a core
    )
    message_base_ns: float  #: Messenger thread: sending or receiving one message (each side pays it) [ns]
    #: Messenger thread: copy and checksum of a message's payload, each side [ns/B]
    message_ns_per_byte: float
    frame_ns: float  #: Network stack and interface driver: sending or receiving one frame [ns]
    #: Primary, under the placement group's lock: a client's operation from dispatch to the point where
    #: sub-operations are made [ns]
    op_prepare_ns: float
    #: Primary, under the lock: making one sub-read, one push or one roll-forward, which has no log entry and
    #: no data, for another member [ns]
    sub_op_send_ns: float
    #: The same for one sub-write: a separate transaction, with log entry and statistics [ns]
    sub_write_send_ns: float
    #: Time, not processor time, that an erasure-coded write waits for each stripe that it overwrites, so that
    #: the old content can be brought back [ns]; appended and filled stripes need none
    ec_rollback_wait_ns: float
    sub_op_prepare_ns: float  #: Other members: from dispatch to the point where the store is asked [ns]
    sub_reply_ns: (
        float  #: Primary, under the lock: taking note of one sub-operation's reply [ns]
    )
    op_finish_ns: (
        float  #: Primary, under the lock: from the last commit to the reply [ns]
    )
    #: Worker thread, after an operation or a sub-read has been answered, or a write's sub-writes have left,
    #: and still with its resources [ns]: no client waits, but the thread, its core and, at the primary,
    #: the placement group are busy
    after_reply_ns: float
    store_read_ns: float  #: Object store: one read, without the device [ns]
    store_ns_per_byte: (
        float  #: Object store: checksum and copies of the data read or written [ns/B]
    )
    store_transaction_ns: (
        float  #: Object store, worker thread: preparing one transaction [ns]
    )
    #: Object store, the one key-value thread of an OSD: one transaction before its commit [ns]
    kv_transaction_ns: float
    #: The same thread: one transaction after its commit; no request waits for it, but the next transactions
    #: of that OSD do [ns]
    kv_finish_ns: float
    #: `kv_finish_ns` of an erasure-coded pool's transaction over that of a replica's: it also makes or
    #: deletes a rollback object
    ec_kv_finish_factor: float
    #: Object store, worker thread: extra time of a transaction of an erasure-coded pool over a replica's [ns]
    ec_transaction_ns: float
    #: Primary of an erasure-coded pool: copies and checksums around the encoding of a byte of data, beyond
    #: what the kernel takes [ns/B]
    ec_copy_ns_per_byte: float
    #: Slow-down of work while the other hardware thread of its core is busy, as a share of its time
    #: alone, 0 to 3. 0: a core has one thread, or the other times hold it.
    paired_slowdown_fraction: float
    user_fraction: float  #: Share of processor time spent in user mode, 0 to 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.paired_slowdown_fraction > 3:
            got = self.paired_slowdown_fraction
            raise ValueError(
                f"CpuModel: paired_slowdown_fraction: got {got}, wanted 0 to 3"
            )
        if self.user_fraction > 1:
            raise ValueError(
                f"CpuModel: user_fraction: got {self.user_fraction}, wanted 0 to 1"
            )

    def message_ns(self, size_bytes: int, frames: int = 0) -> float:
        """Return the processor time of one side of one message of `frames` frames [ns]."""
        return (
            self.message_base_ns
            + self.message_ns_per_byte * size_bytes
            + self.frame_ns * frames
        )


@dataclass(frozen=True, kw_only=True)
class ClientModel(MeasuredModel):
    """The machine that issues requests."""

    positive: ClassVar = ("submit_threads_count",)
    #: Requests whose submission the client works on at the same time. One for a single load generator on a
    #: block-device library, whose dispatch is one thread.
    submit_threads_count: int
    submit_ns: float  #: Time that one request holds such a thread, submission and completion together [ns]
    submit_write_ns: float  #: The same beyond that of a write [ns]
    submit_ns_per_byte: float  #: The same for each byte read or written [ns/B]
    #: Processor time of library and load generator for one request, of any thread [ns]; it counts where
    #: clients run on the storage hosts
    processor_ns: float

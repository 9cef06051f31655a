"""Processor time of a storage daemon by kind of work."""

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

from stripesim.models.provenance import MeasuredModel


@dataclass(frozen=True, kw_only=True)
class CpuModel(MeasuredModel):
    """Cores of a storage host and the processor time of each kind of work.

    Notes
    -----
    All terms are added up, so an ablation can set each one to zero. A stage is one continuous stay on a core.
    Its time is the sum of the terms named by the path that builds it (see `stripesim.sim.ceph.paths`). The
    numbers include the effects of core frequency and caches.

    References
    ----------
    Ceph v11.2.0: ``src/osd/OSD.cc`` (``ShardedOpWQ::_process``: every operation, sub-operation and reply
    holds the lock of its placement group while it is processed), ``src/os/bluestore/BlueStore.cc``
    (``_kv_sync_thread``: one thread per store submits, syncs and finishes all transactions).
    """

    positive: ClassVar = ("cores_per_host",)
    cores_per_host: (
        int  #: Cores of one storage host. Hardware threads, if two share a core.
    )
    message_base_ns: float  #: Messenger thread: sending or receiving one message; each side pays it [ns]
    #: Messenger thread: copying a payload and computing its checksum, on each side [ns/B]
    message_ns_per_byte: float
    frame_ns: float  #: Network stack and interface driver: sending or receiving one frame [ns]
    #: Primary, holding the placement group's lock: a client operation from dispatch until it issues
    #: sub-operations [ns]
    op_prepare_ns: float
    #: Primary, holding the lock: issuing one sub-read, push or roll-forward to another member. These have no
    #: log entry and no data [ns]
    sub_op_send_ns: float
    #: The same for one sub-write, which is a separate transaction with a log entry and statistics [ns]
    sub_write_send_ns: float
    #: Waiting time (not processor time) of an erasure-coded write for each stripe that it overwrites, so that
    #: the old content can be restored. Appended and filled stripes do not wait [ns]
    ec_rollback_wait_ns: float
    sub_op_prepare_ns: (
        float  #: Other members: from dispatch to the call of the store [ns]
    )
    sub_reply_ns: float  #: Primary, holding the lock: recording the reply to one sub-operation [ns]
    op_finish_ns: (
        float  #: Primary, holding the lock: from the last commit to the reply [ns]
    )
    #: Worker thread, after it has answered an operation or sub-read or has sent the sub-writes of a write. No
    #: client waits, but the thread, its core and, at the primary, the placement group stay busy [ns]
    after_reply_ns: float
    store_read_ns: float  #: Object store: one read, without device time [ns]
    store_ns_per_byte: (
        float  #: Object store: checksum and copies of the data read or written [ns/B]
    )
    store_transaction_ns: (
        float  #: Object store, worker thread: preparing one transaction [ns]
    )
    #: Object store, single key-value thread of an OSD: one transaction before its commit [ns]
    kv_transaction_ns: float
    #: Same thread: one transaction after its commit. No request waits for it, but later transactions of the
    #: OSD do [ns]
    kv_finish_ns: float
    #: Ratio of `kv_finish_ns` in an erasure-coded pool to a replicated one, because the transaction also
    #: creates or deletes a rollback object [1]
    ec_kv_finish_factor: float
    #: Object store, worker thread: extra time of a transaction in an erasure-coded pool [ns]
    ec_transaction_ns: float
    #: Primary of an erasure-coded pool: copies and checksums per byte of encoded data, in addition to the
    #: kernel [ns/B]
    ec_copy_ns_per_byte: float
    #: Slow-down of work while the other hardware thread of its core is busy, relative to its time alone, 0 to
    #: 3. Use 0 if a core has one thread or the other times already include the effect.
    paired_slowdown_fraction: float
    user_fraction: float  #: Share of processor time in user mode, 0 to 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.paired_slowdown_fraction > 3:
            raise ValueError(
                f"CpuModel: paired_slowdown_fraction: got {self.paired_slowdown_fraction}, wanted 0 to 3"
            )
        if self.user_fraction > 1:
            raise ValueError(
                f"CpuModel: user_fraction: got {self.user_fraction}, wanted 0 to 1"
            )

    def message_ns(self, size_bytes: int, frames: int = 0) -> float:
        """Return the processor time that one side spends on a message.

        Parameters
        ----------
        size_bytes
            Size of the message [B].
        frames
            Number of network frames.

        Returns
        -------
        float
            Processor time [ns].
        """
        return (
            self.message_base_ns
            + self.message_ns_per_byte * size_bytes
            + self.frame_ns * frames
        )


@dataclass(frozen=True, kw_only=True)
class ClientModel(MeasuredModel):
    """The machine that issues requests."""

    positive: ClassVar = ("submit_threads_count",)
    #: Requests that the client submits concurrently. 1 for a single load generator on a block-device library,
    #: which dispatches from one thread.
    submit_threads_count: int
    submit_ns: float  #: Time that a request holds such a thread, for submission and completion [ns]
    submit_write_ns: float  #: Additional time of a write [ns]
    submit_ns_per_byte: float  #: Additional time per byte read or written [ns/B]
    #: Processor time of library and load generator per request, over all threads [ns]. It matters if clients
    #: run on the storage hosts.
    processor_ns: float


def busy_cores(alone: float, cores: float, slowdown: float) -> float:
    r"""Return how many hardware threads of a host work keeps busy, if two of them share a core.

    Parameters
    ----------
    alone
        Threads that the work would keep busy if each had a core to itself [count].
    cores
        Hardware threads of the host [count].
    slowdown
        `CpuModel.paired_slowdown_fraction` [1].

    Notes
    -----
    Of b busy threads of c, :math:`s = 2b - c` share a core once b exceeds c / 2, and work on them takes the
    fraction f longer:

    .. math:: b = a \, (1 + f \, s / b) \tag{1}

    The load is taken to be even.

    >>> busy_cores(alone=4, cores=16, slowdown=0.5)
    4
    >>> busy_cores(alone=12, cores=18, slowdown=0.5)  # all 18: 12 * (1 + 0.5 * 18 / 18)
    18.0
    """
    if alone <= cores / 2 or not slowdown:
        return min(alone, cores)
    linear = alone * (1 + 2 * slowdown)
    root = sqrt(max(0.0, linear**2 - 4 * alone * slowdown * cores))
    return min((linear + root) / 2, cores)

"""Cost of one shard read or write in its store: padding, write-ahead log and metadata."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import ClassVar

from stripesim.models.provenance import MeasuredModel

# State of an allocation unit that a write covers only in part: empty, on the device, in memory, or already
# in the batch of deferred writes.
FRESH, STORED, IN_MEMORY, DEFERRED = range(1, 5)


@dataclass(frozen=True)
class StoreIo:
    """Device traffic of one store transaction [B].

    `read_bytes` are read before the write can be built. `data_bytes` go to the data area before the commit.
    `log_bytes` go with the commit (metadata and, for deferred writes, the data). `deferred_bytes` go to the
    data area after the commit, when no client is waiting.
    """

    read_bytes: int
    data_bytes: int
    log_bytes: int
    deferred_bytes: int


@dataclass(frozen=True, kw_only=True)
class ObjectStoreModel(MeasuredModel):
    r"""A store like BlueStore, with allocation units, deferred small writes and a key-value log.

    Terms that a release lacks are zero.

    Notes
    -----
    A write of `[o, o+n)` over existing data touches at most two partial units. The rest of each is read, and
    the unit goes to the log and later to its final position:

    .. math::
        \text{read} = \sum_\text{partial} (u - n_i), \quad
        \text{deferred} = \sum_\text{partial} u \tag{1}

    where :math:`u` is the allocation unit and :math:`n_i` the overwritten part. On new space the unit is
    padded with zeros instead, without a read or a deferred write. Whole units go directly to fresh space.

    References
    ----------
    Ceph v11.2.0, ``src/os/bluestore/BlueStore.cc``, ``_do_write_small`` and ``_do_write_big``; the 9× read
    amplification of Koh et al. 2017, section VI.A, is equation (1) for 1 KiB on three replicas. Ceph
    v16.2.15, ``BlueStore.cc`` (``_kv_sync_thread``), ``src/os/bluestore/BlueFS.cc`` (``_flush_range``,
    ``_flush_and_sync_log``).
    """

    positive: ClassVar = ("min_alloc_bytes",)
    #: Allocation unit [B]. Smaller pieces over existing data are read, merged and written through the log
    #: (deferred).
    min_alloc_bytes: int
    metadata_bytes: int  #: Log bytes of one transaction without deferred data [B]
    #: Additional log bytes of a sub-write in an erasure-coded pool [B]
    ec_metadata_extra_bytes: int
    roll_forward_log_bytes: (
        int  #: Log bytes of a transaction that only rolls forward [B]
    )
    #: Log bytes per key-value sync, independent of the number of transactions: the last block of the log is
    #: rewritten, and the file system that holds the log records its new size [B]
    sync_log_bytes: int
    #: Deferred writes collected before they go to their final position. Those to the same unit are merged.
    #: 0: each is written separately.
    deferred_batch_count: int
    read_cache_bytes: int  #: Read cache of one OSD, which keeps blocks read and drops blocks written [B]

    def metadata_log_bytes(self, *, erasure: bool) -> int:
        """Return the log bytes of one member's transaction without deferred data [B]."""
        return self.metadata_bytes + (self.ec_metadata_extra_bytes if erasure else 0)

    def write_io(
        self, offset_bytes: int, length_bytes: int, *, existing_bytes: int
    ) -> StoreIo:
        """Return the device traffic of writing an extent to a shard.

        Parameters
        ----------
        offset_bytes, length_bytes
            Extent to write [B].
        existing_bytes
            Size of the shard before the write [B].

        Examples
        --------
        >>> from stripesim.models.provenance import Provenance
        >>> from dataclasses import fields
        >>> numbers = {field.name: 0 for field in fields(ObjectStoreModel) if field.name != "provenance"}
        >>> numbers["min_alloc_bytes"] = 4096
        >>> sources = dict.fromkeys(numbers, Provenance("assumed", "an example"))
        >>> store = ObjectStoreModel(**numbers, provenance=sources)
        >>> store.write_io(1024, 1024, existing_bytes=4096)
        StoreIo(read_bytes=3072, data_bytes=0, log_bytes=4096, deferred_bytes=4096)
        """
        if length_bytes <= 0:
            return StoreIo(0, 0, self.metadata_bytes, 0)
        unit = self.min_alloc_bytes
        end_bytes = offset_bytes + length_bytes
        read = data = deferred = 0
        first = offset_bytes // unit
        last = (end_bytes - 1) // unit
        # Only the two ends can be partial. Units between them are whole.
        for index in {first, last}:
            start = index * unit
            stop = (index + 1) * unit
            covered = min(stop, end_bytes) - max(start, offset_bytes)
            if covered < unit and start < existing_bytes:
                read += unit - covered
                deferred += unit
            else:
                data += unit
        data += max(0, last - first - 1) * unit
        return StoreIo(read, data, self.metadata_bytes + deferred, deferred)

    def partial_write_io(
        self, offset_bytes: int, length_bytes: int, states: tuple[int, int]
    ) -> StoreIo:
        """Return the device traffic of a write, given the states of its first and last unit.

        Parameters
        ----------
        offset_bytes, length_bytes
            Extent to write [B].
        states
            ``FRESH``, ``STORED``, ``IN_MEMORY`` or ``DEFERRED`` for each. The state of a fully covered unit
            does not matter.
        """
        unit = self.min_alloc_bytes
        end_bytes = offset_bytes + length_bytes
        first = offset_bytes // unit
        last = (end_bytes - 1) // unit
        read = logged = deferred = 0
        data = max(0, last - first - 1) * unit
        for index, state in dict(
            zip((last, first), reversed(states), strict=True)
        ).items():
            covered = min((index + 1) * unit, end_bytes) - max(
                index * unit, offset_bytes
            )
            if covered == unit or state == FRESH:
                data += unit
                continue
            logged += unit
            read += unit if state == STORED else 0
            deferred += unit if state != DEFERRED else 0
        return StoreIo(read, data, self.metadata_bytes + logged, deferred)

    def read_bytes(self, offset_bytes: int, length_bytes: int) -> int:
        """Return the device bytes read for an extent, in whole allocation units [B]."""
        if length_bytes <= 0:
            return 0
        unit = self.min_alloc_bytes
        return (-(-(offset_bytes + length_bytes) // unit) - offset_bytes // unit) * unit


@dataclass(frozen=True, kw_only=True)
class DeferralModel(MeasuredModel):
    r"""Deferral of small writes on a disk: to the log with the commit, to the disk later.

    Notes
    -----
    A write of less than `prefer_deferred_bytes` is committed with its data in the key-value log. It goes to
    the disk afterwards, in a batch ordered by position, and delays no request. The store admits a limited
    amount of deferred writes, each at its size plus `cost_per_write_bytes`. So at most

    .. math:: q / (c + p) \tag{1}

    writes of the largest size wait for the disk. Further ones wait until one of them has been written, so
    the disk limits the rate of a lasting load.

    Deviation: a run begins as after a long load, with room for one batch. Otherwise a run of seconds would
    only fill the room. A burst of more than a batch per disk, after a calm, is faster in reality. Deviation:
    a deferred write is queued at the disk when its log is synced, at its cost in a full batch. The store
    waits for the batch, or for up to 3 s. Deviation: writes to one block are not merged.

    References
    ----------
    Ceph v16.2.15, ``src/os/bluestore/BlueStore.cc`` (``_do_alloc_write``, ``_deferred_submit_unlock``,
    ``_txc_calc_cost``, ``BlueStoreThrottle``).
    """

    positive: ClassVar = ("deferred_batch_count",)
    prefer_deferred_bytes: int  #: Writes below this size are deferred [B]
    deferred_batch_count: int  #: Deferred writes that go to the disk together
    #: Deferred and uncommitted writes that the store admits, as a sum of costs [B]
    deferred_queue_bytes: int
    cost_per_write_bytes: int  #: Cost of a write beyond its size [B]

    @property
    def waiting_max_count(self) -> int:
        """Deferred writes of one OSD that may wait for its disk, by equation (1)."""
        largest_bytes = self.cost_per_write_bytes + self.prefer_deferred_bytes
        return max(1, self.deferred_queue_bytes // largest_bytes)

    @property
    def room_count(self) -> int:
        """Deferred writes that an OSD admits from the start of a run: a batch, if that many may wait."""
        return min(self.deferred_batch_count, self.waiting_max_count)

    def applied(self, io: StoreIo) -> StoreIo:
        """Return a write's device traffic with small data deferred.

        Examples
        --------
        >>> from stripesim.models.provenance import Provenance
        >>> numbers = {"prefer_deferred_bytes": 65536, "deferred_batch_count": 64,
        ...            "deferred_queue_bytes": 192 << 20, "cost_per_write_bytes": 670_000}
        >>> deferral = DeferralModel(**numbers, provenance=dict.fromkeys(numbers, Provenance("code", "here")))
        >>> deferral.applied(StoreIo(0, data_bytes=4096, log_bytes=1000, deferred_bytes=0))
        StoreIo(read_bytes=0, data_bytes=0, log_bytes=5096, deferred_bytes=4096)
        >>> deferral.waiting_max_count, deferral.room_count
        (273, 64)
        """
        if io.data_bytes >= self.prefer_deferred_bytes:
            return io
        return replace(
            io,
            data_bytes=0,
            log_bytes=io.log_bytes + io.data_bytes,
            deferred_bytes=io.deferred_bytes + io.data_bytes,
        )


@dataclass(frozen=True, kw_only=True)
class FileStoreModel(ObjectStoreModel):
    """Ceph's FileStore, which writes data to the journal with the commit and to its file later.

    Notes
    -----
    A partial block is completed in the page cache, which holds the blocks of recent files, so it costs no
    read. Reads are as in BlueStore. Journal and files share the device, and the journal's data is written
    before the commit, like BlueStore's.

    Deviation: syncing the files (``filestore_max_sync_interval``) delays nothing here.

    References
    ----------
    Ceph v16.2.15, ``src/os/filestore/FileStore.cc`` (``queue_transactions``: the journal first, as on XFS).
    """

    @classmethod
    def of(cls, store: ObjectStoreModel) -> FileStoreModel:
        """Return a FileStore with the numbers of another store."""
        return cls(
            **{field.name: getattr(store, field.name) for field in fields(store)}
        )

    def write_io(
        self, offset_bytes: int, length_bytes: int, *, existing_bytes: int
    ) -> StoreIo:
        """Return the device traffic of a write: its bytes to the journal and its blocks to the file."""
        if length_bytes <= 0:
            return StoreIo(0, 0, self.metadata_bytes, 0)
        blocks_bytes = self.read_bytes(offset_bytes, length_bytes)
        return StoreIo(0, length_bytes, self.metadata_bytes, blocks_bytes)

    def partial_write_io(
        self, offset_bytes: int, length_bytes: int, states: tuple[int, int]
    ) -> StoreIo:
        """Return the same as `write_io`, because the state of a block does not matter."""
        return self.write_io(offset_bytes, length_bytes, existing_bytes=0)

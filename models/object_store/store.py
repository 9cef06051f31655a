"""Cost of one read or write of a shard in its store: padding, write-ahead log, metadata."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

from stripesim.models.provenance import MeasuredModel

# State of an allocation unit that a write covers in part: it is empty; it has to be read;
# it is still in memory; it waits in the batch of deferred writes already.
FRESH, STORED, IN_MEMORY, DEFERRED = range(1, 5)


@dataclass(frozen=True)
class StoreIo:
    """Device traffic of one store transaction [B].

    Bytes read before the write can be built; written to the data area before the commit; written with the
    commit (metadata and, for deferred writes, the data); written to the data area after the commit, which
    no client waits for.
    """

    read_bytes: int
    data_bytes: int
    log_bytes: int
    deferred_bytes: int


@dataclass(frozen=True, kw_only=True)
class ObjectStoreModel(MeasuredModel):
    r"""A BlueStore-like store: allocation units, deferred small writes, a key-value log.

    A term that is zero is one that a release lacks.

    Notes
    -----
    A write of `[o, o+n)` over existing data touches at most two partial units. For each,
    the rest of the unit is read; the unit goes into the log and later to its place:

    .. math::
        \text{read} = \sum_\text{partial} (u - n_i), \quad
        \text{deferred} = \sum_\text{partial} u \tag{1}

    with :math:`u` the allocation unit and :math:`n_i` the part that is overwritten. On new
    space the unit is padded with zeros instead: nothing is read, nothing deferred. Whole
    units go to fresh space directly.

    References
    ----------
    Ceph v11.2.0, ``src/os/bluestore/BlueStore.cc``, ``_do_write_small`` and
    ``_do_write_big``; the 9× read amplification of Koh et al. 2017, section VI.A, is
    equation (1) for 1 KiB on three replicas. Ceph v16.2.15, ``BlueStore.cc`` (``_kv_sync_thread``),
    ``src/os/bluestore/BlueFS.cc`` (``_flush_range``, ``_flush_and_sync_log``).
    """

    positive: ClassVar = ("min_alloc_bytes",)
    #: Allocation unit [B]. Smaller pieces over existing data are read, merged and written through the log
    #: (deferred).
    min_alloc_bytes: int
    metadata_bytes: int  #: Log bytes of one transaction beyond any deferred data [B]
    #: Log bytes of a sub-write of an erasure-coded pool beyond a replicated one [B]
    ec_metadata_extra_bytes: int
    roll_forward_log_bytes: (
        int  #: Log bytes of a transaction that only rolls forward [B]
    )
    #: Log bytes of one key-value sync, however many transactions it serves [B]: the block in which the log's
    #: end lies is written again, and the file system that holds the log notes its new size
    sync_log_bytes: int
    #: Deferred writes that are collected before they go to their place; those of one unit become one. 0: none
    #: is collected, each goes by itself.
    deferred_batch_count: int
    read_cache_bytes: int  #: Read cache of one OSD [B]: blocks read stay cached, blocks written are dropped

    def metadata_log_bytes(self, *, erasure: bool) -> int:
        """Return the log bytes of one member's transaction without deferred data [B]."""
        return self.metadata_bytes + (self.ec_metadata_extra_bytes if erasure else 0)

    def write_io(
        self, offset_bytes: int, length_bytes: int, *, existing_bytes: int
    ) -> StoreIo:
        """Return the device traffic of writing an extent to a shard [B] that had `existing_bytes` before.

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
        # Only the two ends can be partial; units between them are whole.
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
        """Return the device traffic of a write with partial first and last units, by the state of these."""
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
        """Return the device bytes of reading an extent: whole allocation units [B]."""
        if length_bytes <= 0:
            return 0
        unit = self.min_alloc_bytes
        return (-(-(offset_bytes + length_bytes) // unit) - offset_bytes // unit) * unit


@dataclass(frozen=True, kw_only=True)
class FileStoreModel(ObjectStoreModel):
    """Ceph's FileStore: data goes into the journal with the commit and into its file later.

    Notes
    -----
    A partial block of a file is completed in the page cache, where a recent file's blocks are; no read is
    charged for it. Reads are those of the other store. Journal and files share the device; the journal's
    data is written before the commit, as a BlueStore's is.

    Deviation: syncing the files (``filestore_max_sync_interval``) holds nothing up here.

    References
    ----------
    Ceph v16.2.15, ``src/os/filestore/FileStore.cc`` (``queue_transactions``: the journal first,
    as on XFS).
    """

    @classmethod
    def of(cls, store: ObjectStoreModel) -> FileStoreModel:
        """Return the file store with the numbers of another store."""
        return cls(
            **{field.name: getattr(store, field.name) for field in fields(store)}
        )

    def write_io(
        self, offset_bytes: int, length_bytes: int, *, existing_bytes: int
    ) -> StoreIo:
        """Return the device traffic of a write: its bytes in the journal, its blocks in the file."""
        if length_bytes <= 0:
            return StoreIo(0, 0, self.metadata_bytes, 0)
        blocks_bytes = self.read_bytes(offset_bytes, length_bytes)
        return StoreIo(0, length_bytes, self.metadata_bytes, blocks_bytes)

    def partial_write_io(
        self, offset_bytes: int, length_bytes: int, states: tuple[int, int]
    ) -> StoreIo:
        """Return the same as `write_io`: the state of a block makes no difference."""
        return self.write_io(offset_bytes, length_bytes, existing_bytes=0)

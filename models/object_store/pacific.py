"""What Ceph 16.2 adds to messages and store: numbers that only its generation has."""

from __future__ import annotations

from dataclasses import dataclass

from stripesim.models.messages import MessageModel
from stripesim.models.object_store.store import ObjectStoreModel, StoreIo

# What a store knows of an allocation unit that a write covers in part: nothing lies there; it has to be read;
# it is still in memory; it waits in the batch of deferred writes already.
FRESH, STORED, IN_MEMORY, DEFERRED = range(1, 5)


@dataclass(frozen=True, kw_only=True)
class PacificMessages(MessageModel):
    """Sizes of messages where a sub-write of an erasure-coded pool says more than one of a replicated pool.

    Parameters
    ----------
    ec_sub_write_extra_bytes : int
        What a sub-write of an erasure-coded pool carries beyond a replicated one [B]: how to roll back,
        the rollback object, the attributes of the shard.

    References
    ----------
    Ceph v16.2.15, ``src/osd/ECTransaction.cc`` (``generate_transactions``), ``src/osd/ECMsgTypes.h``.
    """

    ec_sub_write_extra_bytes: int


@dataclass(frozen=True, kw_only=True)
class PacificStore(ObjectStoreModel):
    """A store that shares a log among the transactions of a sync, and collects deferred writes.

    Parameters
    ----------
    ec_metadata_extra_bytes : int
        Log bytes of a sub-write of an erasure-coded pool beyond a replicated one [B].
    deferred_batch_count : int
        Deferred writes that are collected before they go to their place; those of one unit become one.
    sync_log_bytes : int
        Log bytes of one key-value sync, however many transactions it serves [B]: the block in which the
        log's end lies is written again, and the file system that holds the log notes its new size.

    References
    ----------
    Ceph v16.2.15, ``src/os/bluestore/BlueStore.cc`` (``_kv_sync_thread``), ``src/os/bluestore/BlueFS.cc``
    (``_flush_range``, ``_flush_and_sync_log``).
    """

    ec_metadata_extra_bytes: int
    sync_log_bytes: int
    deferred_batch_count: int

    def partial_write_io(self, offset_bytes: int, length_bytes: int, states: tuple[int, int]) -> StoreIo:
        """Device traffic of a write whose first and last unit are partial, by what is known of these.

        Parameters
        ----------
        offset_bytes, length_bytes : int
            Extent in the shard [B].
        states : tuple of int
            `FRESH`, `STORED`, `IN_MEMORY` or `DEFERRED` for the first and the last unit; of no meaning
            for a unit that is covered whole.
        """
        unit = self.min_alloc_bytes
        end_bytes = offset_bytes + length_bytes
        first, last = offset_bytes // unit, (end_bytes - 1) // unit
        read = logged = deferred = 0
        data = max(0, last - first - 1) * unit
        for index, state in dict(zip((last, first), reversed(states), strict=True)).items():
            covered = min((index + 1) * unit, end_bytes) - max(index * unit, offset_bytes)
            if covered == unit or state == FRESH:
                data += unit
                continue
            logged += unit
            read += unit if state == STORED else 0
            deferred += unit if state != DEFERRED else 0
        return StoreIo(read, data, self.metadata_bytes + logged, deferred)


def sub_write_overhead_bytes(messages: MessageModel, *, erasure: bool) -> int:
    """Bytes of a sub-write without its data [B]."""
    extra = messages.ec_sub_write_extra_bytes if isinstance(messages, PacificMessages) else 0
    return messages.sub_write_header_bytes + (extra if erasure else 0)


def metadata_log_bytes(store: ObjectStoreModel, *, erasure: bool) -> int:
    """Log bytes of one member's transaction without deferred data [B]."""
    extra = store.ec_metadata_extra_bytes if isinstance(store, PacificStore) else 0
    return store.metadata_bytes + (extra if erasure else 0)


def sync_log_bytes(store: ObjectStoreModel) -> int:
    """Log bytes of one sync beside those of its transactions [B]."""
    return store.sync_log_bytes if isinstance(store, PacificStore) else 0

"""What one read or write of a shard costs its store: padding, write-ahead log, metadata."""

from __future__ import annotations

from dataclasses import dataclass

from stripesim.models.provenance import MeasuredModel


@dataclass(frozen=True)
class StoreIo:
    """Device traffic of one store transaction.

    Parameters
    ----------
    read_bytes : int
        Read before the write can be built [B]; 0 if nothing is read.
    data_bytes : int
        Written to the data area before the commit [B].
    log_bytes : int
        Written with the commit: metadata and, for deferred writes, the data [B].
    deferred_bytes : int
        Written to the data area after the commit, which nobody waits for [B].
    """

    read_bytes: int
    data_bytes: int
    log_bytes: int
    deferred_bytes: int

    @property
    def write_bytes(self) -> int:
        """All bytes that the device is asked to write [B]."""
        return self.data_bytes + self.log_bytes + self.deferred_bytes


@dataclass(frozen=True, kw_only=True)
class ObjectStoreModel(MeasuredModel):
    r"""A BlueStore-like store: allocation units, deferred small writes, a key-value log.

    Parameters
    ----------
    min_alloc_bytes : int
        Allocation unit [B]. Smaller pieces over existing data are read, merged and
        written through the log (deferred).
    metadata_bytes : int
        Log bytes of one transaction beyond any deferred data [B].
    roll_forward_log_bytes : int
        Log bytes of a transaction that only rolls forward [B].
    read_cache_bytes : int
        Read cache of one OSD [B]: blocks read stay cached, blocks written are dropped.

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
    equation (1) for 1 KiB on three replicas.
    """

    min_alloc_bytes: int
    metadata_bytes: int
    roll_forward_log_bytes: int
    read_cache_bytes: int

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_positive("min_alloc_bytes")
        self.check_not_negative("metadata_bytes", "roll_forward_log_bytes", "read_cache_bytes")

    def write_io(self, offset_bytes: int, length_bytes: int, *, existing_bytes: int) -> StoreIo:
        """Device traffic of writing `[offset, offset + length)` of one shard.

        Parameters
        ----------
        offset_bytes, length_bytes : int
            Extent in the shard [B].
        existing_bytes : int
            Size of the shard before the write [B].

        Examples
        --------
        >>> from stripesim.models.provenance import Provenance
        >>> numbers = {"min_alloc_bytes": 4096, "metadata_bytes": 0, "roll_forward_log_bytes": 0,
        ...            "read_cache_bytes": 0}
        >>> told = dict.fromkeys(numbers, Provenance("assumed", "an example"))
        >>> store = ObjectStoreModel(**numbers, provenance=told)
        >>> store.write_io(1024, 1024, existing_bytes=4096)
        StoreIo(read_bytes=3072, data_bytes=0, log_bytes=4096, deferred_bytes=4096)
        """
        if length_bytes <= 0:
            return StoreIo(0, 0, self.metadata_bytes, 0)
        unit = self.min_alloc_bytes
        end_bytes = offset_bytes + length_bytes
        read = data = deferred = 0
        first, last = offset_bytes // unit, (end_bytes - 1) // unit
        # Only the two ends can be partial; what lies between is whole.
        for index in {first, last}:
            start, stop = index * unit, (index + 1) * unit
            covered = min(stop, end_bytes) - max(start, offset_bytes)
            if covered < unit and start < existing_bytes:
                read += unit - covered
                deferred += unit
            else:
                data += unit
        data += max(0, last - first - 1) * unit
        return StoreIo(read, data, self.metadata_bytes + deferred, deferred)

    def read_bytes(self, offset_bytes: int, length_bytes: int) -> int:
        """Device bytes of reading an extent: whole allocation units [B]."""
        if length_bytes <= 0:
            return 0
        unit = self.min_alloc_bytes
        return (-(-(offset_bytes + length_bytes) // unit) - offset_bytes // unit) * unit

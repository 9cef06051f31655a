"""The cache of pages that the primaries of optimised erasure-coded pools keep."""

from dataclasses import dataclass

from stripesim.models.provenance import MeasuredModel

#: Shard bytes that one line of the cache spans, at least [B] (MIN_LINE_SIZE).
LINE_BYTES = 32 << 10


@dataclass(frozen=True, kw_only=True)
class ExtentCacheModel(MeasuredModel):
    """Pages of recent writes and of what they read, kept for each operation queue of an OSD.

    Notes
    -----
    A line spans the same 32 KiB, or one chunk if that is longer, of all shards of an object. It holds the
    pages that writes have written or read. Whole lines are forgotten, the one first that was used longest
    ago. Reads of clients neither use nor fill the cache. It survives the dropping of a store's caches.

    References
    ----------
    Ceph main (0009f3f5), ``src/osd/ECExtentCache.h``, ``src/osd/ECExtentCache.cc``.
    """

    bytes_per_op_shard: (
        int  #: Pages that each operation queue keeps at most [B], 0 for none
    )

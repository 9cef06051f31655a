"""Model of the cache in which an object store looks up the location of an object's bytes."""

from dataclasses import dataclass
from typing import ClassVar

from stripesim.models.provenance import MeasuredModel


@dataclass(frozen=True, kw_only=True)
class BlueStoreCacheModel(MeasuredModel):
    r"""The cache of one OSD, split among key-value blocks, metadata and data.

    Notes
    -----
    Metadata of :math:`N` objects of :math:`s` bytes each take :math:`N (o + e s)` in memory; where that is
    more than their share, the part that does not fit is not found (objects are recovered in an order that
    has nothing to do with when they were used last). It is then looked for among the key-value blocks, which
    take :math:`N (o_k + e_k s)`:

    .. math:: p = \left(1 - \frac{f_m C}{N (o + e s)}\right)^+
       \left(1 - \frac{f_k C}{N (o_k + e_k s)}\right)^+ \tag{1}

    is the share of look-ups that read from the device, and each of these reads the object's blocks. Data in
    the cache does not help recovery: recovered objects were not read shortly before.

    References
    ----------
    Ceph v16.2.15, ``src/os/bluestore/BlueStore.cc`` (``get_onode``, ``MempoolThread``,
    ``_set_cache_sizes``).
    """

    positive: ClassVar = (
        "cache_bytes",
        "onode_bytes",
        "kv_onode_bytes",
        "kv_block_bytes",
    )
    cache_bytes: int  #: Memory for all three [B]
    #: `kv_fraction`, `meta_fraction`, `data_fraction`: their shares; no more than 1 in sum. With `autotune`
    #: they are only where it starts.
    kv_fraction: float
    meta_fraction: float
    data_fraction: float
    autotune: bool  #: Whether the store moves memory to where it is needed
    onode_bytes: int  #: Memory of an object's onode without its extents [B]
    extent_bytes_per_data_byte: (
        float  #: Memory of extents, blobs and checksums for each byte of data
    )
    kv_bytes_per_data_byte: float  #: The same as the key-value store holds it, encoded
    kv_onode_bytes: int  #: An onode as the key-value store holds it [B]
    kv_block_bytes: int  #: Unit in which the key-value store reads from the device [B]

    def __post_init__(self) -> None:
        super().__post_init__()
        total = self.kv_fraction + self.meta_fraction + self.data_fraction
        if total > 1 + 1e-9:
            raise ValueError(
                f"BlueStoreCacheModel: shares: got {total:g} in sum, wanted at most 1"
            )

    def memory_bytes(self, objects: float, object_bytes: float) -> float:
        """Return the memory of the metadata of `objects` objects of a size [B]."""
        return objects * (
            self.onode_bytes + self.extent_bytes_per_data_byte * object_bytes
        )

    def kv_bytes(self, objects: float, object_bytes: float) -> float:
        """Return the same, as the key-value store holds them [B]."""
        return objects * (
            self.kv_onode_bytes + self.kv_bytes_per_data_byte * object_bytes
        )

    def miss_fraction(self, objects: float, object_bytes: float) -> float:
        """Return the share of look-ups that read, equation (1), for a number of objects (or shards)."""
        if objects <= 0:
            return 0.0
        wanted = self.memory_bytes(objects, object_bytes)
        wanted_kv = self.kv_bytes(objects, object_bytes)
        if self.autotune:
            # The product of (1) is least where all memory goes to the form that needs less of it.
            return max(0.0, 1 - self.cache_bytes / min(wanted, wanted_kv))
        missed = max(0.0, 1 - self.meta_fraction * self.cache_bytes / wanted)
        return missed * max(0.0, 1 - self.kv_fraction * self.cache_bytes / wanted_kv)

    def lookup_bytes(self, object_bytes: float) -> int:
        """Return the device bytes of a look-up that finds nothing in memory: whole blocks [B]."""
        blocks = -(-self.kv_bytes(1, object_bytes) // self.kv_block_bytes)
        return int(blocks) * self.kv_block_bytes


@dataclass(frozen=True)
class MetadataLookup:
    """Return the bytes a metadata look-up reads from the device [B], and the share of look-ups that do."""

    miss_fraction: float
    read_bytes: int

    def __post_init__(self) -> None:
        if not 0 <= self.miss_fraction <= 1:
            raise ValueError(
                f"MetadataLookup: miss_fraction: got {self.miss_fraction}, wanted 0 to 1"
            )
        if self.read_bytes < 0:
            raise ValueError(
                f"MetadataLookup: read_bytes: got {self.read_bytes}, wanted 0 or more"
            )

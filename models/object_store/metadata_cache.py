"""Model of the cache that holds the metadata of objects."""

from dataclasses import dataclass
from typing import ClassVar

from stripesim.models.provenance import MeasuredModel


@dataclass(frozen=True, kw_only=True)
class BlueStoreCacheModel(MeasuredModel):
    r"""The cache of one OSD, shared by key-value blocks, metadata and data.

    Notes
    -----
    Metadata of :math:`N` objects of :math:`s` bytes each take :math:`N (o + e s)` in memory. If this exceeds
    the metadata share, the excess misses (the order of recovery is unrelated to the last use of objects). A
    miss is then looked up in the key-value blocks, which take :math:`N (o_k + e_k s)`:

    .. math:: p = \left(1 - \frac{f_m C}{N (o + e s)}\right)^+
       \left(1 - \frac{f_k C}{N (o_k + e_k s)}\right)^+ \tag{1}

    is the fraction of look-ups that read from the device, each of which reads the object's blocks. Cached
    data does not help recovery, because recovered objects were not read shortly before.

    References
    ----------
    Ceph v16.2.15, ``src/os/bluestore/BlueStore.cc`` (``get_onode``, ``MempoolThread``, ``_set_cache_sizes``).
    """

    positive: ClassVar = (
        "cache_bytes",
        "onode_bytes",
        "kv_onode_bytes",
        "kv_block_bytes",
    )
    cache_bytes: int  #: Memory of all three parts [B]
    #: Shares of the three parts, at most 1 in total. With `autotune`, these are only the initial shares.
    kv_fraction: float
    meta_fraction: float
    data_fraction: float
    autotune: bool  #: True if the store moves memory to where it is needed
    onode_bytes: int  #: Memory of an object's onode without its extents [B]
    extent_bytes_per_data_byte: (
        float  #: Memory of extents, blobs and checksums per byte of data [B/B]
    )
    kv_bytes_per_data_byte: float  #: The same as encoded in the key-value store [B/B]
    kv_onode_bytes: int  #: An onode as encoded in the key-value store [B]
    kv_block_bytes: int  #: Unit of device reads by the key-value store [B]

    def __post_init__(self) -> None:
        super().__post_init__()
        total = self.kv_fraction + self.meta_fraction + self.data_fraction
        if total > 1 + 1e-9:
            raise ValueError(
                f"BlueStoreCacheModel: shares: got {total:g} in sum, wanted at most 1"
            )

    def memory_bytes(self, objects: float, object_bytes: float) -> float:
        """Return the memory of the metadata of `objects` objects of `object_bytes` each [B]."""
        return objects * (
            self.onode_bytes + self.extent_bytes_per_data_byte * object_bytes
        )

    def kv_bytes(self, objects: float, object_bytes: float) -> float:
        """Return the size of the same metadata in the key-value store [B]."""
        return objects * (
            self.kv_onode_bytes + self.kv_bytes_per_data_byte * object_bytes
        )

    def miss_fraction(self, objects: float, object_bytes: float) -> float:
        """Return the fraction of look-ups that read from the device, by equation (1).

        Parameters
        ----------
        objects
            Number of objects or shards on the OSD.
        object_bytes
            Size of each [B].

        Returns
        -------
        float
            Fraction, 0 to 1.
        """
        if objects <= 0:
            return 0.0
        wanted = self.memory_bytes(objects, object_bytes)
        wanted_kv = self.kv_bytes(objects, object_bytes)
        if self.autotune:
            # The product in (1) is smallest if all memory goes to the form that needs less of it.
            return max(0.0, 1 - self.cache_bytes / min(wanted, wanted_kv))
        missed = max(0.0, 1 - self.meta_fraction * self.cache_bytes / wanted)
        return missed * max(0.0, 1 - self.kv_fraction * self.cache_bytes / wanted_kv)

    def lookup_bytes(self, object_bytes: float) -> int:
        """Return the device bytes read by a look-up that misses, in whole blocks [B]."""
        blocks = -(-self.kv_bytes(1, object_bytes) // self.kv_block_bytes)
        return int(blocks) * self.kv_block_bytes


@dataclass(frozen=True)
class MetadataLookup:
    """Device reads of metadata look-ups: the fraction that reads, 0 to 1, and the bytes of each read [B]."""

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

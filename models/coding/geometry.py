"""Layout of an object in stripes of ``k`` chunks."""

from dataclasses import dataclass
from typing import Final

from stripesim.models.coding.errors import require

#: Multiple to which Ceph's codes align a chunk, or each sub-chunk of it [B]. A profile that states another
#: stripe unit is refused, and that of `osd_pool_erasure_code_stripe_unit` is padded (tried on 16.2.15).
CHUNK_ALIGN_BYTES: Final = 32


def padded_unit_bytes(stripe_unit_bytes: int, sub_chunks: int = 1) -> int:
    """Return a stripe unit [B], rounded up to whole sub-chunks of a size to which Ceph aligns them.

    >>> padded_unit_bytes(1000), padded_unit_bytes(4096, sub_chunks=81)
    (1024, 5184)
    """
    align = sub_chunks * CHUNK_ALIGN_BYTES
    return -(-stripe_unit_bytes // align) * align


@dataclass(frozen=True)
class StripeGeometry:
    """Distribution of an object over its data shards.

    With the stripe unit ``u``, byte ``x`` of the object is in stripe ``x // (k * u)``, on data shard
    ``x % (k * u) // u``, at offset ``x // (k * u) * u + x % u`` of that shard. Shards store whole chunks
    only, so the last stripe of an object is padded with zeros.

    References
    ----------
    Ceph v11.2.0, ``src/osd/ECUtil.h``, ``stripe_info_t``.

    Examples
    --------
    >>> geometry = StripeGeometry(k=6, stripe_unit_bytes=4096)
    >>> geometry.stripe_bytes, geometry.stripe_range(20000, 10000)
    (24576, (0, 2))
    """

    #: Data chunks per stripe, at least 1, and the size of a chunk [B], at least 1.
    k: int
    stripe_unit_bytes: int

    def __post_init__(self) -> None:
        require(self.k >= 1, "stripe geometry: k", self.k, "at least 1")
        unit = self.stripe_unit_bytes
        require(unit >= 1, "stripe geometry: stripe_unit_bytes", unit, "at least 1")

    @property
    def stripe_bytes(self) -> int:
        """Object bytes in one stripe [B]."""
        return self.k * self.stripe_unit_bytes

    def stripe_range(self, offset_bytes: int, length_bytes: int) -> tuple[int, int]:
        """Return the stripes that an extent of the object [B] touches, as (first, stop).

        An empty extent touches none.

        Raises
        ------
        SchemeError
            If the offset or the length is negative.
        """
        for name, number in (
            ("offset_bytes", offset_bytes),
            ("length_bytes", length_bytes),
        ):
            require(number >= 0, f"stripe geometry: {name}", number, "0 or more")
        first = offset_bytes // self.stripe_bytes
        if not length_bytes:
            return first, first
        return first, -(-(offset_bytes + length_bytes) // self.stripe_bytes)

    def stripe_count(self, object_size_bytes: int) -> int:
        """Return the number of stripes of an object of this size [B], the last one padded."""
        return self.stripe_range(0, object_size_bytes)[1]

    def shard_size_bytes(self, object_size_bytes: int) -> int:
        """Return the bytes that each shard stores for an object of this size [B]."""
        return self.stripe_count(object_size_bytes) * self.stripe_unit_bytes

"""Where an object's bytes lie: stripes of ``k`` chunks, and back."""

from __future__ import annotations

from dataclasses import dataclass

from stripesim.models.coding.errors import SchemeError


@dataclass(frozen=True)
class StripeGeometry:
    """How an object's bytes are dealt out to its data shards.

    Parameters
    ----------
    k : int
        Data chunks per stripe, at least 1.
    stripe_unit_bytes : int
        Size of one chunk [B], at least 1.

    Raises
    ------
    SchemeError
        If either number is below 1.

    Notes
    -----
    Byte ``x`` of an object lies in stripe ``x // (k * u)``, on data shard
    ``x % (k * u) // u``, at offset ``x // (k * u) * u + x % u`` of that shard,
    with ``u`` the stripe unit. A shard stores whole chunks only, so the last
    stripe of an object is padded with zeros up to its end.

    References
    ----------
    Ceph v11.2.0, ``src/osd/ECUtil.h``, ``stripe_info_t``.

    Examples
    --------
    >>> geometry = StripeGeometry(k=6, stripe_unit_bytes=4096)
    >>> geometry.stripe_bytes
    24576
    >>> geometry.stripe_range(20000, 10000)
    (0, 2)
    >>> geometry.locate(30000)
    (1, 5424)
    """

    k: int
    stripe_unit_bytes: int

    def __post_init__(self) -> None:
        if self.k < 1:
            raise SchemeError(f"stripe geometry: k: got {self.k}, wanted at least 1")
        if self.stripe_unit_bytes < 1:
            raise SchemeError(
                f"stripe geometry: stripe_unit_bytes: got {self.stripe_unit_bytes}, wanted at least 1"
            )

    @property
    def stripe_bytes(self) -> int:
        """Object bytes in one stripe [B]."""
        return self.k * self.stripe_unit_bytes

    def stripe_range(self, offset_bytes: int, length_bytes: int) -> tuple[int, int]:
        """Stripes an extent touches, as (first, stop).

        Parameters
        ----------
        offset_bytes, length_bytes : int
            The extent in the object [B], neither negative. An empty extent touches no stripe.

        Returns
        -------
        tuple of int
            First stripe touched and the one after the last.
        """
        _not_negative(offset_bytes=offset_bytes, length_bytes=length_bytes)
        first = offset_bytes // self.stripe_bytes
        if length_bytes == 0:
            return first, first
        return first, -(-(offset_bytes + length_bytes) // self.stripe_bytes)

    def stripe_count(self, object_size_bytes: int) -> int:
        """Stripes an object of this size [B] fills, the last one padded."""
        return self.stripe_range(0, object_size_bytes)[1]

    def padded_size_bytes(self, object_size_bytes: int) -> int:
        """Size of the object with its last stripe padded [B]."""
        return self.stripe_count(object_size_bytes) * self.stripe_bytes

    def shard_size_bytes(self, object_size_bytes: int) -> int:
        """Bytes every shard stores for an object of this size [B]."""
        return self.stripe_count(object_size_bytes) * self.stripe_unit_bytes

    def locate(self, offset_bytes: int) -> tuple[int, int]:
        """Data shard of an object offset, and the offset inside that shard [B].

        Parameters
        ----------
        offset_bytes : int
            Offset in the object [B], not negative.

        Returns
        -------
        tuple of int
            Shard index (0 to k - 1) and offset in the shard's own address space [B].
        """
        _not_negative(offset_bytes=offset_bytes)
        stripe, within = divmod(offset_bytes, self.stripe_bytes)
        chunk, rest = divmod(within, self.stripe_unit_bytes)
        return chunk, stripe * self.stripe_unit_bytes + rest

    def object_offset(self, shard: int, shard_offset_bytes: int) -> int:
        """Object offset [B] of a byte of a data shard: the inverse of `locate`.

        Parameters
        ----------
        shard : int
            Data shard, 0 to k - 1.
        shard_offset_bytes : int
            Offset in that shard [B], not negative.

        Returns
        -------
        int
            Offset in the object [B].

        Raises
        ------
        SchemeError
            If the shard holds no data: parity has no object offset.
        """
        _not_negative(shard_offset_bytes=shard_offset_bytes)
        if not 0 <= shard < self.k:
            raise SchemeError(f"stripe geometry: shard: got {shard}, wanted a data shard 0 to {self.k - 1}")
        stripe, rest = divmod(shard_offset_bytes, self.stripe_unit_bytes)
        return stripe * self.stripe_bytes + shard * self.stripe_unit_bytes + rest


def _not_negative(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 0:
            raise SchemeError(f"stripe geometry: {name}: got {number}, wanted 0 or more")

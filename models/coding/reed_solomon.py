"""Reed-Solomon: k data chunks and m parity chunks per stripe, any k of which give the data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stripesim.models.coding import optimised
from stripesim.models.coding.errors import SchemeError
from stripesim.models.coding.geometry import StripeGeometry
from stripesim.models.coding.policy import PAGE_BYTES, WHOLE_STRIPES, EcPolicy
from stripesim.models.coding.protocol import (
    SHARDS_MAX,
    Kind,
    ReadPlan,
    RepairPlan,
    ShardExtent,
    WritePlan,
    check_extent,
    check_shards,
    data_loss,
)

StripeRange = tuple[int, int]


@dataclass(frozen=True)
class ReedSolomon:
    """A systematic maximum-distance-separable code over GF(2^8).

    Parameters
    ----------
    k : int
        Data shards, at least 1.
    m : int
        Parity shards, at least 1; k + m at most 256.

    Raises
    ------
    SchemeError
        If k or m is out of range.

    Notes
    -----
    Writes follow Ceph v11.2.0: the shards of an object all have the same
    length, a multiple of the chunk, so the object's size for planning is its
    size rounded up to whole stripes. A head or tail stripe that the write
    covers only in part is read whole if it lies below that size; every
    touched stripe is encoded and all k + m chunks of it are written. A write
    beyond the end starts at the old end, so all stripes in between are
    zero-filled, encoded and written.

    Reads are widened to whole stripes. The plan says nothing of stripes that
    a cache holds, nor of the metadata of a transaction.

    References
    ----------
    Ceph v11.2.0, ``src/osd/ECTransaction.h``, ``get_write_plan``;
    ``src/osd/ECBackend.cc``, ``objects_read_async`` and ``get_min_avail_to_read_shards``.

    Examples
    --------
    >>> code = ReedSolomon(k=6, m=3)
    >>> plan = code.plan_write(offset_bytes=0, length_bytes=4096, object_size_bytes=1 << 22,
    ...                        geometry=code.geometry(4096))
    >>> sum(e.length_bytes for e in plan.reads), sum(e.length_bytes for e in plan.writes)
    (24576, 36864)
    """

    k: int
    m: int

    def __post_init__(self) -> None:
        if self.k < 1:
            raise SchemeError(f"rs:{self.k},{self.m}: k: got {self.k}, wanted at least 1")
        if self.m < 1:
            raise SchemeError(f"rs:{self.k},{self.m}: m: got {self.m}, wanted at least 1")
        if self.width > SHARDS_MAX:
            raise SchemeError(f"rs:{self.k},{self.m}: k + m: got {self.width}, wanted at most {SHARDS_MAX}")

    @property
    def name(self) -> str:
        """``rs:k,m``."""
        return f"rs:{self.k},{self.m}"

    @property
    def kind(self) -> Kind:
        """Always ``erasure``."""
        return "erasure"

    @property
    def width(self) -> int:
        """Shards in all, k + m."""
        return self.k + self.m

    @property
    def storage_overhead(self) -> float:
        """Bytes stored per byte of data, padding apart."""
        return self.width / self.k

    @property
    def failures_tolerated(self) -> int:
        """Any m shards may be lost."""
        return self.m

    @property
    def not_optimised_because(self) -> str:
        """Always empty: the isa and jerasure plug-ins (`reed_sol_van`) support optimised pools."""
        return ""

    def geometry(self, stripe_unit_bytes: int) -> StripeGeometry:
        """Stripes of k chunks of that size [B]."""
        return StripeGeometry(k=self.k, stripe_unit_bytes=stripe_unit_bytes)

    def can_decode(self, missing: frozenset[int]) -> bool:
        """Whether k shards are left."""
        check_shards(self.name, self.width, missing)
        return len(missing) <= self.m

    def plan_write(
        self,
        *,
        offset_bytes: int,
        length_bytes: int,
        object_size_bytes: int,
        geometry: StripeGeometry,
        missing: frozenset[int] = frozenset(),
        policy: EcPolicy = WHOLE_STRIPES,
        in_cache: bool = False,
    ) -> WritePlan:
        """Read, encode and write whole stripes; see `RedundancyScheme.plan_write` and the class.

        Raises
        ------
        SchemeError
            For an empty or negative extent, an unknown shard or a geometry of another k.
        DataLossError
            If more than m shards are missing.
        """
        check_extent(
            offset_bytes=offset_bytes, length_bytes=length_bytes, object_size_bytes=object_size_bytes
        )
        self._check_geometry(geometry)
        sources = self._sources(missing)
        if policy.optimised:
            self._check_optimised(geometry)
            return optimised.plan_write(
                optimised.ShardMap(geometry, self.width),
                offset_bytes=offset_bytes,
                length_bytes=length_bytes,
                object_size_bytes=object_size_bytes,
                missing=missing,
                policy=policy,
                in_cache=in_cache,
            )
        end_bytes = offset_bytes + length_bytes
        first, stop = geometry.stripe_range(offset_bytes, length_bytes)
        old_stop = geometry.stripe_count(object_size_bytes)
        partial = set()
        if offset_bytes % geometry.stripe_bytes and first < old_stop:
            partial.add(first)
        if end_bytes % geometry.stripe_bytes and stop - 1 < old_stop:
            partial.add(stop - 1)
        read_stripes = _runs(partial)
        write_first = min(first, old_stop)
        encode_stripes = stop - write_first
        erasures = self._data_missing(missing) if partial else 0
        decode_stripes = len(partial) if erasures else 0
        present = [shard for shard in range(self.width) if shard not in missing]
        return WritePlan(
            reads=_extents(sources, read_stripes, geometry),
            writes=_extents(present, ((write_first, stop),), geometry),
            read_stripes=read_stripes,
            write_stripes=(write_first, stop),
            encode_stripes=encode_stripes,
            encode_data_bytes=encode_stripes * geometry.stripe_bytes,
            fill_bytes=(first - write_first) * geometry.stripe_bytes,
            object_size_after_bytes=max(object_size_bytes, end_bytes),
            decode_stripes=decode_stripes,
            decode_data_bytes=decode_stripes * geometry.stripe_bytes,
            erasures=erasures,
            method="read-modify-write" if partial else "full stripe",
        )

    def plan_read(
        self,
        *,
        offset_bytes: int,
        length_bytes: int,
        object_size_bytes: int,
        geometry: StripeGeometry,
        missing: frozenset[int] = frozenset(),
        policy: EcPolicy = WHOLE_STRIPES,
    ) -> ReadPlan:
        """Gather whole stripes from k shards; see `RedundancyScheme.plan_read`.

        Raises
        ------
        SchemeError
            For an empty or negative extent, an unknown shard or a geometry of another k.
        DataLossError
            If more than m shards are missing.

        Notes
        -----
        With all data shards there, these are read and nothing is decoded.
        Otherwise the first k shards that are there are read, in index order,
        and every stripe is decoded, also one whose wanted bytes were all
        read: the primary widens the request before it looks at shards.
        """
        check_extent(
            offset_bytes=offset_bytes, length_bytes=length_bytes, object_size_bytes=object_size_bytes
        )
        self._check_geometry(geometry)
        sources = self._sources(missing)
        returned_bytes = max(0, min(offset_bytes + length_bytes, object_size_bytes) - offset_bytes)
        if returned_bytes == 0:
            return ReadPlan(reads=(), decode_stripes=0, decode_data_bytes=0, erasures=0, returned_bytes=0)
        if policy.reads != "stripes":
            return optimised.plan_read(
                optimised.ShardMap(geometry, self.width),
                offset_bytes=offset_bytes,
                returned_bytes=returned_bytes,
                object_size_bytes=object_size_bytes,
                missing=missing,
                policy=policy,
            )
        stripes = geometry.stripe_range(offset_bytes, returned_bytes)
        erasures = self._data_missing(missing)
        decode_stripes = stripes[1] - stripes[0] if erasures else 0
        return ReadPlan(
            reads=_extents(sources, (stripes,), geometry),
            decode_stripes=decode_stripes,
            decode_data_bytes=decode_stripes * geometry.stripe_bytes,
            erasures=erasures,
            returned_bytes=returned_bytes,
        )

    def plan_repair(
        self,
        *,
        lost: frozenset[int],
        object_size_bytes: int,
        geometry: StripeGeometry,
        unavailable: frozenset[int] = frozenset(),
    ) -> RepairPlan:
        """Read k shards whole and rebuild the lost ones; see `RedundancyScheme.plan_repair`.

        Raises
        ------
        SchemeError
            For a negative size, an unknown shard or a geometry of another k.
        DataLossError
            If fewer than k shards are left.
        """
        check_extent(offset_bytes=0, length_bytes=1, object_size_bytes=object_size_bytes)
        self._check_geometry(geometry)
        sources = self._sources(lost | unavailable)
        stripes = geometry.stripe_count(object_size_bytes)
        if not lost or stripes == 0:
            return RepairPlan(reads=(), writes=(), decode_stripes=0, decode_data_bytes=0, erasures=0)
        return RepairPlan(
            reads=_extents(sources, ((0, stripes),), geometry),
            writes=_extents(sorted(lost), ((0, stripes),), geometry),
            decode_stripes=stripes,
            decode_data_bytes=stripes * geometry.stripe_bytes,
            erasures=len(lost),
        )

    def _check_optimised(self, geometry: StripeGeometry) -> None:
        if self.not_optimised_because:
            raise SchemeError(
                f"{self.name}: got an optimised pool, wanted a classic one: {self.not_optimised_because}"
            )
        if geometry.stripe_unit_bytes % PAGE_BYTES:
            raise SchemeError(
                f"{self.name}: stripe_unit: got {geometry.stripe_unit_bytes}, wanted a multiple of "
                f"{PAGE_BYTES} bytes in an optimised pool"
            )

    def _sources(self, missing: frozenset[int]) -> list[int]:
        """The k shards to read: data first, then parity in index order."""
        if not self.can_decode(missing):
            raise data_loss(self.name, missing, f"at least {self.k} of {self.width} shards")
        return [shard for shard in range(self.width) if shard not in missing][: self.k]

    def _data_missing(self, missing: frozenset[int]) -> int:
        return sum(shard < self.k for shard in missing)

    def _check_geometry(self, geometry: StripeGeometry) -> None:
        if geometry.k != self.k:
            raise SchemeError(f"{self.name}: geometry: got k = {geometry.k}, wanted {self.k}")


def _runs(stripes: Iterable[int]) -> tuple[StripeRange, ...]:
    """Sorted (first, stop) runs of these stripes: neighbours are fetched as one extent."""
    runs: list[StripeRange] = []
    for stripe in sorted(stripes):
        if runs and runs[-1][1] == stripe:
            runs[-1] = (runs[-1][0], stripe + 1)
        else:
            runs.append((stripe, stripe + 1))
    return tuple(runs)


def _extents(
    shards: Iterable[int], runs: Iterable[StripeRange], geometry: StripeGeometry
) -> tuple[ShardExtent, ...]:
    """The chunks of these runs of stripes on each of these shards."""
    unit_bytes = geometry.stripe_unit_bytes
    runs = tuple(runs)
    return tuple(
        ShardExtent(shard, first * unit_bytes, (stop - first) * unit_bytes)
        for shard in shards
        for first, stop in runs
    )

"""Reed-Solomon codes: k data and m parity chunks per stripe, any k of which determine the data."""

from collections.abc import Iterable
from dataclasses import dataclass

from stripesim.models.coding import optimised
from stripesim.models.coding.errors import require
from stripesim.models.coding.geometry import StripeGeometry
from stripesim.models.coding.optimised.extents import ByteRun, union
from stripesim.models.coding.policy import PAGE_BYTES
from stripesim.models.coding.protocol import (
    SHARDS_MAX,
    ObjectRequest,
    ReadPlan,
    RedundancyScheme,
    ShardExtent,
    WritePlan,
    shard_extents,
)
from stripesim.models.problems import SchemeError


@dataclass(frozen=True)
class ReedSolomon(RedundancyScheme):
    """A systematic maximum-distance-separable code over GF(2^8).

    Notes
    -----
    Writes follow Ceph v11.2.0. All shards of an object have the same length, a multiple of the chunk, so
    planning uses the object's size rounded up to whole stripes. A head or tail stripe within that size that
    the write covers only in part is read whole. Every touched stripe is encoded, and all of its k + m chunks
    are written. A write beyond the end starts at the old end, so that all stripes in between are zero-filled,
    encoded and written.

    Reads are widened to whole stripes. If all data shards are available, they are read without decoding.
    Otherwise the first k available shards are read, in index order, and every stripe is decoded, including
    stripes whose wanted bytes were all read: the primary widens the request before it considers shards. The
    plan ignores stripes that a cache holds and the metadata of a transaction.

    References
    ----------
    Ceph v11.2.0, ``src/osd/ECTransaction.h``, ``get_write_plan``; ``src/osd/ECBackend.cc``,
    ``objects_read_async`` and ``get_min_avail_to_read_shards``.

    Examples
    --------
    >>> code = ReedSolomon(k=6, m=3)
    >>> plan = code.plan_write(offset_bytes=0, length_bytes=4096, object_size_bytes=1 << 22,
    ...                        geometry=code.geometry(4096))
    >>> sum(e.length_bytes for e in plan.reads), sum(e.length_bytes for e in plan.writes)
    (24576, 36864)
    """

    k: int  #: Data shards, at least 1
    m: int  #: Parity shards, at least 1. k + m is at most 256.

    def __post_init__(self) -> None:
        require(self.k >= 1, f"{self.name}: k", self.k, "at least 1")
        require(self.m >= 1, f"{self.name}: m", self.m, "at least 1")
        require(
            self.width <= SHARDS_MAX,
            f"{self.name}: k + m",
            self.width,
            f"at most {SHARDS_MAX}",
        )

    @property
    def name(self) -> str:
        """Name in the form ``rs:k,m``."""
        return f"rs:{self.k},{self.m}"

    def _write(self, request: ObjectRequest, sources: list[int]) -> WritePlan:
        geometry = request.geometry
        if request.policy.optimised:
            self._check_optimised(geometry)
            return optimised.plan_write(
                optimised.ShardMap(geometry, self.width), request
            )
        first, stop = geometry.stripe_range(request.offset_bytes, request.length_bytes)
        old_stop = geometry.stripe_count(request.object_size_bytes)
        partial = set()
        if request.offset_bytes % geometry.stripe_bytes and first < old_stop:
            partial.add(first)
        if request.end_bytes % geometry.stripe_bytes and stop - 1 < old_stop:
            partial.add(stop - 1)
        # Adjacent stripes are read as one extent.
        read_stripes = union((stripe, stripe + 1) for stripe in partial)
        write_first = min(first, old_stop)
        erasures = self._data_missing(request) if partial else 0
        decode_stripes = len(partial) if erasures else 0
        return WritePlan(
            reads=_chunks(sources, read_stripes, geometry),
            writes=_chunks(
                self._present(request.missing), ((write_first, stop),), geometry
            ),
            read_stripes=read_stripes,
            write_stripes=(write_first, stop),
            encode_stripes=stop - write_first,
            encode_data_bytes=(stop - write_first) * geometry.stripe_bytes,
            decode_stripes=decode_stripes,
            decode_data_bytes=decode_stripes * geometry.stripe_bytes,
            erasures=erasures,
            method="read-modify-write" if partial else "full stripe",
        )

    def _read(self, request: ObjectRequest, sources: list[int]) -> ReadPlan:
        geometry = request.geometry
        if request.policy.reads != "stripes":
            return optimised.plan_read(
                optimised.ShardMap(geometry, self.width), request
            )
        stripes = geometry.stripe_range(request.offset_bytes, request.returned_bytes)
        erasures = self._data_missing(request)
        decode_stripes = stripes[1] - stripes[0] if erasures else 0
        return ReadPlan(
            reads=_chunks(sources, (stripes,), geometry),
            decode_stripes=decode_stripes,
            decode_data_bytes=decode_stripes * geometry.stripe_bytes,
            erasures=erasures,
            returned_bytes=request.returned_bytes,
        )

    def _check_optimised(self, geometry: StripeGeometry) -> None:
        if self.not_optimised_because:
            raise SchemeError(
                f"{self.name}: got an optimised pool, wanted a classic one: {self.not_optimised_because}"
            )
        unit = geometry.stripe_unit_bytes
        wanted = f"a multiple of {PAGE_BYTES} bytes in an optimised pool"
        require(unit % PAGE_BYTES == 0, f"{self.name}: stripe_unit", unit, wanted)

    def _sources(self, missing: frozenset[int]) -> list[int]:
        """Return the k shards to read: data first, then parity in index order."""
        return self._present(missing)[: self.k]

    def _data_missing(self, request: ObjectRequest) -> int:
        return sum(shard < self.k for shard in request.missing)


def _chunks(
    shards: Iterable[int], stripes: Iterable[ByteRun], geometry: StripeGeometry
) -> tuple[ShardExtent, ...]:
    unit = geometry.stripe_unit_bytes
    return shard_extents(
        shards, [(first * unit, stop * unit) for first, stop in stripes]
    )

"""Define the interface of redundancy schemes, and the plans that they return.

A plan lists the bytes moved on each shard, and the computations. It knows no clock, node or engine. Shards
are numbered 0 to ``width - 1``, data first. Extents are in the address space of their shard, and a shard may
appear several times, so that codes that read parts of chunks fit the same types.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from stripesim.models.coding.errors import require
from stripesim.models.coding.geometry import StripeGeometry
from stripesim.models.coding.policy import WHOLE_STRIPES, EcPolicy
from stripesim.models.problems import UnavailableError

Kind = Literal["replicated", "erasure"]

#: The field has 256 elements, so a Reed-Solomon code over it has at most 256 shards.
SHARDS_MAX = 256


class ShardExtent(NamedTuple):
    """A run of bytes in the address space of one shard [B]."""

    shard: int
    offset_bytes: int
    length_bytes: int

    @property
    def end_bytes(self) -> int:
        """Offset of the first byte after the run [B]."""
        return self.offset_bytes + self.length_bytes


@dataclass(frozen=True, slots=True)
class WritePlan:
    """Shard I/O and computation of one client write."""

    #: Extents to read before encoding, and extents to write.
    reads: tuple[ShardExtent, ...]
    writes: tuple[ShardExtent, ...]
    #: Stripes that `reads` belong to, as (first, stop), which a cache of extents in flight looks up; and
    #: the stripes written, (0, 0) if the scheme has no stripes.
    read_stripes: tuple[tuple[int, int], ...]
    write_stripes: tuple[int, int]
    #: Stripes encoded (Ceph calls the kernel once for each), and data bytes encoded [B].
    encode_stripes: int
    encode_data_bytes: int
    #: Stripes and bytes [B] decoded to complete `reads` if data shards are missing, and the number of those.
    decode_stripes: int = 0
    decode_data_bytes: int = 0
    erasures: int = 0
    metadata_shards: tuple[
        int, ...
    ] = ()  #: Shards that get a transaction without data: object info and log.
    #: Method for computing parities: ``full stripe`` (reads nothing), ``read-modify-write`` (of whole
    #: stripes), ``reconstruct`` or ``parity delta``; empty for replication.
    method: str = ""


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """Shard I/O and computation of one client read. `erasures` counts data shards rebuilt by decoding."""

    reads: tuple[ShardExtent, ...]
    decode_stripes: int
    decode_data_bytes: int
    erasures: int
    returned_bytes: int


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """Shard I/O and computation that rebuild the lost shards of one object.

    `erasures` counts the shards solved for, parity included: those rebuilt and, if a code with a cheaper
    method decodes whole stripes instead, also the unavailable ones.
    """

    reads: tuple[ShardExtent, ...]
    writes: tuple[ShardExtent, ...]
    decode_stripes: int
    decode_data_bytes: int
    erasures: int


@dataclass(frozen=True, slots=True)
class ObjectRequest:
    """A client read or write of an extent of one object [B], and the unreachable shards."""

    offset_bytes: int
    length_bytes: int
    object_size_bytes: int
    geometry: StripeGeometry
    missing: frozenset[int]
    policy: EcPolicy
    in_cache: bool = False

    @property
    def end_bytes(self) -> int:
        """Offset of the first byte after the request [B]."""
        return self.offset_bytes + self.length_bytes

    @property
    def returned_bytes(self) -> int:
        """Bytes that a read returns [B], at most up to the end of the object."""
        return max(0, min(self.end_bytes, self.object_size_bytes) - self.offset_bytes)


class ObjectRepair(NamedTuple):
    """Shards to rebuild, other unavailable shards, fallback sources for decoding, and the shard size [B]."""

    lost: frozenset[int]
    unavailable: frozenset[int]
    sources: list[int]
    geometry: StripeGeometry
    shard_bytes: int


class RedundancyScheme(ABC):
    """Distribution of an object over k data shards (1 for replication) and m redundant ones.

    Subclasses plan the shard I/O and computation of requests. Plans are pure. The shards in ``missing``, or
    in ``lost`` and ``unavailable``, are unreachable: plans neither read nor write them.
    """

    k: int
    m: int
    kind: ClassVar[Kind] = "erasure"
    #: Reason why Ceph offers no optimised pool (`EcPolicy.optimised`) for this scheme, or empty.
    not_optimised_because: ClassVar[str] = ""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name as written in scenarios, such as ``rs:6,3``."""

    @property
    def width(self) -> int:
        """Number of shards or copies."""
        return self.k + self.m

    @property
    def storage_overhead(self) -> float:
        """Bytes stored per byte of data, without padding."""
        return self.width / self.k

    @property
    def ceph_order(self) -> Sequence[int]:
        """Shard at each place of a placement group in Ceph, all shards once."""
        return range(self.width)

    @property
    def failures_tolerated(self) -> int:
        """Number of arbitrary shard losses tolerated."""
        return self.m

    @property
    def min_size(self) -> int:
        """Number of shards below which a placement group of a new pool serves no clients.

        References
        ----------
        Ceph v16.2.15, ``src/mon/OSDMonitor.cc`` (``prepare_pool_size``): size − size/2 for replication,
        k + min(1, m − 1) for erasure codes.
        """
        if self.kind == "replicated":
            return self.width - self.width // 2
        return self.k + min(1, self.m - 1)

    def geometry(self, stripe_unit_bytes: int) -> StripeGeometry:
        """Return stripes of k chunks of this size [B]. Copies use the address space of the object."""
        return StripeGeometry(k=self.k, stripe_unit_bytes=stripe_unit_bytes)

    def can_decode(self, missing: frozenset[int]) -> bool:
        """Return True if the data survives the loss of these shards.

        Raises
        ------
        SchemeError
            If a shard does not exist.
        """
        self._check_shards(missing)
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
        """Plan a client write.

        Parameters
        ----------
        offset_bytes, length_bytes
            Extent to write in the object [B]. The offset is at least 0, the length at least 1.
        object_size_bytes
            Size of the object before the write [B].
        geometry
            Stripes of the object, as `geometry` returns them.
        missing
            Unreachable shards.
        policy
            EC policy of the pool.
        in_cache
            True if the old content of the touched stripes is in the cache of extents in flight.

        Raises
        ------
        SchemeError
            If the extent is empty or negative, a shard does not exist, or the geometry has another k.
        UnavailableError
            If the remaining shards do not determine the data.
        """
        request = ObjectRequest(
            offset_bytes,
            length_bytes,
            object_size_bytes,
            geometry,
            missing,
            policy,
            in_cache,
        )
        return self._write(request, self._checked(request))

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
        """Plan a client read. Bytes beyond the end of the object are not returned.

        Parameters
        ----------
        offset_bytes, length_bytes
            Extent to read from the object [B]. The offset is at least 0, the length at least 1.
        object_size_bytes, geometry, missing, policy
            As for `plan_write`.

        Raises
        ------
        SchemeError, UnavailableError
            As for `plan_write`.
        """
        request = ObjectRequest(
            offset_bytes, length_bytes, object_size_bytes, geometry, missing, policy
        )
        sources = self._checked(request)
        if not request.returned_bytes:
            return ReadPlan(
                (), decode_stripes=0, decode_data_bytes=0, erasures=0, returned_bytes=0
            )
        return self._read(request, sources)

    def plan_repair(
        self,
        *,
        lost: frozenset[int],
        object_size_bytes: int,
        geometry: StripeGeometry,
        unavailable: frozenset[int] = frozenset(),
    ) -> RepairPlan:
        """Plan the repair of the lost shards of one object.

        Parameters
        ----------
        lost
            Shards to rebuild.
        object_size_bytes
            Size of the object [B], at least 0.
        geometry
            Stripes of the object, as `geometry` returns them.
        unavailable
            Further shards that cannot be read.

        Raises
        ------
        SchemeError
            If a shard does not exist, or the geometry has another k.
        UnavailableError
            If the remaining shards do not determine the data.
        """
        sources = self._checked(
            ObjectRequest(
                0, 1, object_size_bytes, geometry, lost | unavailable, WHOLE_STRIPES
            )
        )
        if not lost or object_size_bytes == 0:
            return RepairPlan((), (), decode_stripes=0, decode_data_bytes=0, erasures=0)
        shard_bytes = object_size_bytes
        stripes = 0
        if self.kind == "erasure":
            shard_bytes = geometry.shard_size_bytes(object_size_bytes)
            stripes = geometry.stripe_count(object_size_bytes)
        reads, erasures = self._repair_reads(
            ObjectRepair(lost, unavailable, sources, geometry, shard_bytes)
        )
        read_bytes = sum(extent.length_bytes for extent in reads)
        return RepairPlan(
            reads=reads,
            writes=shard_extents(sorted(lost), ((0, shard_bytes),)),
            decode_stripes=stripes,
            decode_data_bytes=read_bytes if stripes else 0,
            erasures=erasures,
        )

    @abstractmethod
    def _write(self, request: ObjectRequest, sources: list[int]) -> WritePlan:
        """Plan a checked write that reads from the shards `sources`."""

    @abstractmethod
    def _read(self, request: ObjectRequest, sources: list[int]) -> ReadPlan:
        """Plan a checked read that returns at least one byte."""

    def _repair_reads(
        self, repair: ObjectRepair
    ) -> tuple[tuple[ShardExtent, ...], int]:
        """Return the extents that a repair reads (here whole sources) and the number of shards solved for."""
        return shard_extents(repair.sources, ((0, repair.shard_bytes),)), len(
            repair.lost
        )

    @abstractmethod
    def _sources(self, missing: frozenset[int]) -> list[int]:
        """Return the shards to read, ascending, given that the remaining ones determine the data."""

    def _present(self, missing: frozenset[int]) -> list[int]:
        return [shard for shard in range(self.width) if shard not in missing]

    def _checked(self, request: ObjectRequest) -> list[int]:
        """Check a request and return the shards to read."""
        require(
            request.offset_bytes >= 0,
            "request: offset_bytes",
            request.offset_bytes,
            "0 or more",
        )
        require(
            request.length_bytes >= 1,
            "request: length_bytes",
            request.length_bytes,
            "1 or more",
        )
        size = request.object_size_bytes
        require(size >= 0, "request: object_size_bytes", size, "0 or more")
        self._check_geometry(request.geometry)
        if not self.can_decode(request.missing):
            raise UnavailableError(
                f"{self.name}: missing shards: got {sorted(request.missing)}, "
                f"wanted at least {self.k} of {self.width} shards left that determine the data"
            )
        return self._sources(request.missing)

    def _check_geometry(self, geometry: StripeGeometry) -> None:
        require(
            geometry.k == self.k,
            f"{self.name}: geometry",
            f"k = {geometry.k}",
            str(self.k),
        )

    def _check_shards(self, shards: Iterable[int]) -> None:
        wrong = sorted(shard for shard in shards if not 0 <= shard < self.width)
        require(
            not wrong, f"{self.name}: shards", wrong, f"indices 0 to {self.width - 1}"
        )


def shard_extents(
    shards: Iterable[int], runs: Iterable[tuple[int, int]]
) -> tuple[ShardExtent, ...]:
    """Return the same runs of bytes (start, stop) for each shard."""
    runs = tuple(runs)
    return tuple(
        ShardExtent(shard, start, stop - start)
        for shard in shards
        for start, stop in runs
    )

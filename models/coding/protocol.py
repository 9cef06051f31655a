"""Interface of every redundancy scheme, and the plans it returns.

A plan lists the bytes of each shard that move, and the computations. It has no clock, node or engine.
Shards are numbered 0 to ``width - 1``, data first. An extent is in the shard's own address space, and one
shard may appear several times, so that codes which read parts of a chunk fit the same types.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from stripesim.models.coding.errors import DataLossError, require
from stripesim.models.coding.geometry import StripeGeometry
from stripesim.models.coding.policy import WHOLE_STRIPES, EcPolicy

Kind = Literal["replicated", "erasure"]

#: The field has 256 elements, so a Reed-Solomon code over it has at most 256 shards.
SHARDS_MAX = 256


@dataclass(frozen=True, slots=True, order=True)
class ShardExtent:
    """A run of bytes on one shard, in the shard's own address space [B]."""

    shard: int
    offset_bytes: int
    length_bytes: int

    @property
    def end_bytes(self) -> int:
        """Offset of the first byte after the run [B]."""
        return self.offset_bytes + self.length_bytes


@dataclass(frozen=True, slots=True)
class WritePlan:
    """Work of the shards for one client write."""

    #: `reads`, `writes`: extents to fetch before encoding, and extents to write
    reads: tuple[ShardExtent, ...]
    writes: tuple[ShardExtent, ...]
    #: `read_stripes`, `write_stripes`: the stripes behind `reads`, as (first, stop): what a cache of extents
    #: in flight looks up; and those written, (0, 0) where the scheme has no stripes
    read_stripes: tuple[tuple[int, int], ...]
    write_stripes: tuple[int, int]
    #: `encode_stripes`, `encode_data_bytes`: stripes encoded (Ceph calls the kernel once for each), and data
    #: bytes that pass through it [B]
    encode_stripes: int
    encode_data_bytes: int
    #: `decode_stripes`, `decode_data_bytes`, `erasures`: stripes and bytes [B] decoded to complete `reads`
    #: when data shards are missing, and how many are
    decode_stripes: int = 0
    decode_data_bytes: int = 0
    erasures: int = 0
    metadata_shards: tuple[
        int, ...
    ] = ()  #: Shards that get a transaction without data: object info and log
    #: Method for parities: ``full stripe`` (nothing is read), ``read-modify-write`` (of whole stripes),
    #: ``reconstruct``, ``parity delta``; empty for replication
    method: str = ""


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """Work of the shards for one client read; `erasures` are data shards that the decode rebuilds."""

    reads: tuple[ShardExtent, ...]
    decode_stripes: int
    decode_data_bytes: int
    erasures: int
    returned_bytes: int


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """Work of the other shards when one object's lost shards are rebuilt.

    `erasures` are the shards solved for, parity included: those rebuilt and, where whole stripes are decoded
    by a code that has a cheaper way as well, those that are unavailable too.
    """

    reads: tuple[ShardExtent, ...]
    writes: tuple[ShardExtent, ...]
    decode_stripes: int
    decode_data_bytes: int
    erasures: int


@dataclass(frozen=True, slots=True)
class Request:
    """A client's read or write of an extent of one object [B], and the shards that cannot be reached."""

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
        """Bytes that a read returns [B]: the request cut at the object's end."""
        return max(0, min(self.end_bytes, self.object_size_bytes) - self.offset_bytes)


class Repair(NamedTuple):
    """Shards to rebuild without help of others, those to decode from otherwise, and a shard's size [B]."""

    lost: frozenset[int]
    unavailable: frozenset[int]
    sources: list[int]
    geometry: StripeGeometry
    shard_bytes: int


class RedundancyScheme(ABC):
    """Distribution of an object over k data shards (copies: 1) and m redundant ones, and request costs.

    Plans are pure. ``missing``, or ``lost`` and ``unavailable``, are shards that cannot be reached now;
    nothing is read from or written to them. A plan raises `SchemeError` for an empty or negative extent, an
    unknown shard or a geometry of another k, and `DataLossError` where the shards left do not determine the
    data.
    """

    k: int
    m: int
    kind: ClassVar[Kind] = "erasure"
    #: Why Ceph offers no optimised pool (`EcPolicy.optimised`) of this scheme; empty where it does.
    not_optimised_because: ClassVar[str] = ""

    @property
    @abstractmethod
    def name(self) -> str:
        """The scheme as written in scenarios, such as ``rs:6,3``."""

    @property
    def width(self) -> int:
        """Shards or copies in all."""
        return self.k + self.m

    @property
    def storage_overhead(self) -> float:
        """Bytes stored per byte of data, padding apart."""
        return self.width / self.k

    @property
    def failures_tolerated(self) -> int:
        """Number of shards whose loss never loses data."""
        return self.m

    def geometry(self, stripe_unit_bytes: int) -> StripeGeometry:
        """Return stripes of k chunks of that size [B]; a copy's address space is the object's own."""
        return StripeGeometry(k=self.k, stripe_unit_bytes=stripe_unit_bytes)

    def can_decode(self, missing: frozenset[int]) -> bool:
        """Return True if the data survives without these shards."""
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
        """Plan a write of ``length_bytes`` [B] at ``offset_bytes`` [B] of an object of that size [B]."""
        request = Request(
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
        """Plan a read of ``length_bytes`` [B] at ``offset_bytes`` [B] of an object of that size [B]."""
        request = Request(
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
        """Plan the rebuilding of the ``lost`` shards of one object, without help of the ``unavailable``."""
        sources = self._checked(
            Request(
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
            Repair(lost, unavailable, sources, geometry, shard_bytes)
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
    def _write(self, request: Request, sources: list[int]) -> WritePlan:
        """Plan a write that has been checked; `sources` are the shards to read from."""

    @abstractmethod
    def _read(self, request: Request, sources: list[int]) -> ReadPlan:
        """Plan a read that has been checked and returns something."""

    def _repair_reads(self, repair: Repair) -> tuple[tuple[ShardExtent, ...], int]:
        """Return the extents a repair reads (here whole sources) and the number of shards it solves for."""
        return shard_extents(repair.sources, ((0, repair.shard_bytes),)), len(
            repair.lost
        )

    @abstractmethod
    def _sources(self, missing: frozenset[int]) -> list[int]:
        """Return the shards to read, ascending; `DataLossError` where those left do not suffice."""

    def _present(self, missing: frozenset[int]) -> list[int]:
        return [shard for shard in range(self.width) if shard not in missing]

    def _data_loss(self, missing: Iterable[int], wanted: str) -> DataLossError:
        return DataLossError(
            f"{self.name}: missing shards: got {sorted(missing)}, wanted {wanted} left"
        )

    def _checked(self, request: Request) -> list[int]:
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
    """Return the same runs of bytes (start, stop) on each of these shards."""
    runs = tuple(runs)
    return tuple(
        ShardExtent(shard, start, stop - start)
        for shard in shards
        for start, stop in runs
    )

"""The protocol every redundancy scheme follows, and the plans it returns.

A plan says which bytes of which shards move and what is computed. It knows
no clock, no node and no engine: the op graph is built from it elsewhere.
Shards are numbered 0 to ``width - 1``, data first. An extent of a plan lies
in the shard's own address space, and one shard may appear several times in
a plan, so that codes which read parts of a chunk (sub-chunks, local groups)
fit the same types.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from stripesim.models.coding.errors import DataLossError, SchemeError
from stripesim.models.coding.geometry import StripeGeometry
from stripesim.models.coding.policy import WHOLE_STRIPES, EcPolicy

Kind = Literal["replicated", "erasure"]

#: The field has 256 elements, so a Reed-Solomon code over it has at most 256 shards.
SHARDS_MAX = 256


@dataclass(frozen=True, slots=True, order=True)
class ShardExtent:
    """A run of bytes on one shard.

    Parameters
    ----------
    shard : int
        Shard index, 0 to ``width - 1``.
    offset_bytes, length_bytes : int
        The run in the shard's own address space [B].
    """

    shard: int
    offset_bytes: int
    length_bytes: int

    @property
    def end_bytes(self) -> int:
        """Offset of the first byte after the run [B]."""
        return self.offset_bytes + self.length_bytes


@dataclass(frozen=True, slots=True)
class WritePlan:
    """What one client write makes the shards do.

    Parameters
    ----------
    reads, writes : tuple of ShardExtent
        Extents to fetch before encoding, and extents to write.
    read_stripes : tuple of (int, int)
        The stripes behind `reads`, as (first, stop): what a cache of extents in flight looks up.
    write_stripes : (int, int)
        Stripes written, as (first, stop); (0, 0) where the scheme has no stripes.
    encode_stripes : int
        Stripes encoded: Ceph calls the kernel once for each.
    encode_data_bytes : int
        Data bytes that pass through the kernel in all [B].
    fill_bytes : int
        Object bytes in the stripes written as zeros only because the write begins beyond the end [B].
    object_size_after_bytes : int
        Size of the object afterwards, as the client sees it [B].
    decode_stripes, decode_data_bytes, erasures : int
        Stripes and bytes [B] decoded to complete `reads` when data shards are missing, and how many are.
    metadata_shards : tuple of int
        Shards that get a transaction without data: object info and log.
    method : str
        How parities are computed: ``full stripe`` (nothing is read), ``read-modify-write`` (of whole
        stripes), ``reconstruct``, ``parity delta``; empty for replication.
    """

    reads: tuple[ShardExtent, ...]
    writes: tuple[ShardExtent, ...]
    read_stripes: tuple[tuple[int, int], ...]
    write_stripes: tuple[int, int]
    encode_stripes: int
    encode_data_bytes: int
    fill_bytes: int
    object_size_after_bytes: int
    decode_stripes: int = 0
    decode_data_bytes: int = 0
    erasures: int = 0
    metadata_shards: tuple[int, ...] = ()
    method: str = ""


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """What one client read makes the shards do.

    Parameters
    ----------
    reads : tuple of ShardExtent
        Extents to fetch; empty where the request lies beyond the object's end.
    decode_stripes, decode_data_bytes : int
        Stripes and data bytes [B] decoded; 0 where no data shard is missing.
    erasures : int
        Data shards rebuilt by the decode.
    returned_bytes : int
        Bytes the client gets [B]: the request cut at the object's end.
    """

    reads: tuple[ShardExtent, ...]
    decode_stripes: int
    decode_data_bytes: int
    erasures: int
    returned_bytes: int


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """What rebuilding one object's lost shards makes the others do.

    Parameters
    ----------
    reads, writes : tuple of ShardExtent
        Extents to fetch from survivors, and extents to write to the shards' new homes.
    decode_stripes, decode_data_bytes : int
        Stripes and data bytes [B] that pass through the kernel.
    erasures : int
        Shards solved for, parity included: those rebuilt and, where whole stripes are decoded by a code
        that has a cheaper way as well, those that are unavailable too.
    """

    reads: tuple[ShardExtent, ...]
    writes: tuple[ShardExtent, ...]
    decode_stripes: int
    decode_data_bytes: int
    erasures: int


class RedundancyScheme(Protocol):
    """How an object is spread over shards and what each request costs in bytes.

    Notes
    -----
    Plans are pure: the same arguments give the same plan. ``missing`` are
    shards that cannot be reached now; nothing is read from or written to them.
    """

    @property
    def name(self) -> str:
        """The scheme as written in scenarios, such as ``rs:6,3``."""

    @property
    def kind(self) -> Kind:
        """``replicated`` (every shard is a copy) or ``erasure``."""

    @property
    def k(self) -> int:
        """Data shards (1 for replication)."""

    @property
    def m(self) -> int:
        """Redundant shards."""

    @property
    def width(self) -> int:
        """Shards or copies in all."""

    @property
    def storage_overhead(self) -> float:
        """Bytes stored per byte of data."""

    @property
    def failures_tolerated(self) -> int:
        """Any so many shards may be lost without losing data."""

    @property
    def not_optimised_because(self) -> str:
        """Why Ceph offers no optimised pool (`EcPolicy.optimised`) of this scheme; empty where it does."""

    def geometry(self, stripe_unit_bytes: int) -> StripeGeometry:
        """The geometry of this scheme with that stripe unit [B]."""

    def can_decode(self, missing: frozenset[int]) -> bool:
        """Whether the data survives without these shards."""

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

    def plan_repair(
        self,
        *,
        lost: frozenset[int],
        object_size_bytes: int,
        geometry: StripeGeometry,
        unavailable: frozenset[int] = frozenset(),
    ) -> RepairPlan:
        """Plan the rebuilding of the ``lost`` shards of one object, without help of the ``unavailable``."""


def check_extent(*, offset_bytes: int, length_bytes: int, object_size_bytes: int) -> None:
    """Raise `SchemeError` unless a request is a non-empty extent of a possible object.

    Parameters
    ----------
    offset_bytes, length_bytes : int
        The request [B].
    object_size_bytes : int
        Size of the object before it [B].
    """
    if offset_bytes < 0:
        raise SchemeError(f"request: offset_bytes: got {offset_bytes}, wanted 0 or more")
    if length_bytes < 1:
        raise SchemeError(f"request: length_bytes: got {length_bytes}, wanted 1 or more")
    if object_size_bytes < 0:
        raise SchemeError(f"request: object_size_bytes: got {object_size_bytes}, wanted 0 or more")


def check_shards(scheme: str, width: int, shards: Iterable[int]) -> None:
    """Raise `SchemeError` unless all these shards exist in a scheme of this width."""
    wrong = sorted(shard for shard in shards if not 0 <= shard < width)
    if wrong:
        raise SchemeError(f"{scheme}: shards: got {wrong}, wanted indices 0 to {width - 1}")


def data_loss(scheme: str, missing: Iterable[int], wanted: str) -> DataLossError:
    """The error for a set of missing shards that leaves too little."""
    return DataLossError(f"{scheme}: missing shards: got {sorted(missing)}, wanted {wanted} left")

"""Replication: every shard is a whole copy of the object."""

from __future__ import annotations

from dataclasses import dataclass

from stripesim.models.coding.errors import SchemeError
from stripesim.models.coding.geometry import StripeGeometry
from stripesim.models.coding.policy import WHOLE_STRIPES, EcPolicy
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


@dataclass(frozen=True)
class Replication:
    """``copies`` identical copies of each object.

    Parameters
    ----------
    copies : int
        Copies in all, 1 to 256.
    bare : bool
        One copy straight on a device, written ``none`` in scenarios. Plans are those of one copy.

    Raises
    ------
    SchemeError
        If the number of copies is out of range, or a bare scheme has more than one.

    Notes
    -----
    A write goes to every copy as it came and reads nothing. Objects may have
    holes: a write beyond the end fills nothing. What a device reads to
    complete a write below its allocation unit is the object store's cost,
    not the scheme's. The geometry is ignored; it is taken so that callers
    need not know which scheme they hold.

    References
    ----------
    Ceph v11.2.0, ``src/osd/ReplicatedBackend.cc``.
    """

    copies: int
    bare: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.copies <= SHARDS_MAX:
            raise SchemeError(f"replication: copies: got {self.copies}, wanted 1 to {SHARDS_MAX}")
        if self.bare and self.copies != 1:
            raise SchemeError(f"replication: a bare scheme: got {self.copies} copies, wanted 1")

    @property
    def name(self) -> str:
        """``rep:N``, or ``none`` where bare."""
        return "none" if self.bare else f"rep:{self.copies}"

    @property
    def kind(self) -> Kind:
        """Always ``replicated``."""
        return "replicated"

    @property
    def k(self) -> int:
        """One copy holds all data."""
        return 1

    @property
    def m(self) -> int:
        """Further copies."""
        return self.copies - 1

    @property
    def width(self) -> int:
        """Copies in all."""
        return self.copies

    @property
    def storage_overhead(self) -> float:
        """Bytes stored per byte of data."""
        return float(self.copies)

    @property
    def failures_tolerated(self) -> int:
        """All copies but one may be lost."""
        return self.copies - 1

    @property
    def not_optimised_because(self) -> str:
        """Always empty: replication has no stripes to optimise."""
        return ""

    def geometry(self, stripe_unit_bytes: int) -> StripeGeometry:
        """One chunk per stripe: a copy's address space is the object's own."""
        return StripeGeometry(k=1, stripe_unit_bytes=stripe_unit_bytes)

    def can_decode(self, missing: frozenset[int]) -> bool:
        """Whether a copy is left."""
        check_shards(self.name, self.width, missing)
        return len(missing) < self.copies

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
        """Write the same extent to every copy that is there; see `RedundancyScheme.plan_write`.

        Raises
        ------
        SchemeError
            For an empty or negative extent or an unknown shard.
        DataLossError
            If no copy is left.
        """
        check_extent(
            offset_bytes=offset_bytes, length_bytes=length_bytes, object_size_bytes=object_size_bytes
        )
        present = self._present(missing)
        return WritePlan(
            reads=(),
            writes=tuple(ShardExtent(copy, offset_bytes, length_bytes) for copy in present),
            read_stripes=(),
            write_stripes=(0, 0),
            encode_stripes=0,
            encode_data_bytes=0,
            fill_bytes=0,
            object_size_after_bytes=max(object_size_bytes, offset_bytes + length_bytes),
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
        """Read the extent from the first copy that is there; see `RedundancyScheme.plan_read`.

        Raises
        ------
        SchemeError
            For an empty or negative extent or an unknown shard.
        DataLossError
            If no copy is left.
        """
        check_extent(
            offset_bytes=offset_bytes, length_bytes=length_bytes, object_size_bytes=object_size_bytes
        )
        copy = self._present(missing)[0]
        returned_bytes = max(0, min(offset_bytes + length_bytes, object_size_bytes) - offset_bytes)
        reads = (ShardExtent(copy, offset_bytes, returned_bytes),) if returned_bytes else ()
        return ReadPlan(
            reads=reads, decode_stripes=0, decode_data_bytes=0, erasures=0, returned_bytes=returned_bytes
        )

    def plan_repair(
        self,
        *,
        lost: frozenset[int],
        object_size_bytes: int,
        geometry: StripeGeometry,
        unavailable: frozenset[int] = frozenset(),
    ) -> RepairPlan:
        """Copy the object from the first copy that is there; see `RedundancyScheme.plan_repair`.

        Raises
        ------
        SchemeError
            For a negative size or an unknown shard.
        DataLossError
            If no copy is left.

        Notes
        -----
        The survivor is read once however many copies were lost: the first
        push leaves the object in the reader's cache.
        """
        check_extent(offset_bytes=0, length_bytes=1, object_size_bytes=object_size_bytes)
        source = self._present(lost | unavailable)[0]
        if not lost or object_size_bytes == 0:
            return RepairPlan(reads=(), writes=(), decode_stripes=0, decode_data_bytes=0, erasures=0)
        return RepairPlan(
            reads=(ShardExtent(source, 0, object_size_bytes),),
            writes=tuple(ShardExtent(copy, 0, object_size_bytes) for copy in sorted(lost)),
            decode_stripes=0,
            decode_data_bytes=0,
            erasures=len(lost),
        )

    def _present(self, missing: frozenset[int]) -> list[int]:
        if not self.can_decode(missing):
            raise data_loss(self.name, missing, "at least one copy")
        return [copy for copy in range(self.copies) if copy not in missing]

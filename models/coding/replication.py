"""Replication: every shard is a full copy of the object."""

from dataclasses import dataclass, field
from typing import ClassVar

from stripesim.models.coding.errors import require
from stripesim.models.coding.geometry import StripeGeometry
from stripesim.models.coding.protocol import (
    SHARDS_MAX,
    Kind,
    ObjectRequest,
    ReadPlan,
    RedundancyScheme,
    WritePlan,
    shard_extents,
)
from stripesim.models.problems import SchemeError


@dataclass(frozen=True)
class Replication(RedundancyScheme):
    """A scheme with ``copies`` identical copies of each object.

    Notes
    -----
    A write goes unchanged to every copy and reads nothing. Objects may have holes, so a write beyond the end
    fills nothing. The object store accounts for reads that complete a write smaller than its allocation unit.
    A repair reads the surviving copy once, however many copies were lost, because the first push leaves the
    object in the reader's cache. The geometry is ignored. It is accepted so that callers can treat all
    schemes alike.

    References
    ----------
    Ceph v11.2.0, ``src/osd/ReplicatedBackend.cc``.
    """

    copies: int  #: Number of copies, 1 to 256
    #: True for one copy directly on a device, written ``none`` in scenarios. Its plans are those of one copy.
    bare: bool = False
    k: int = field(default=1, init=False, repr=False, compare=False)
    kind: ClassVar[Kind] = "replicated"

    def __post_init__(self) -> None:
        require(
            1 <= self.copies <= SHARDS_MAX,
            "replication: copies",
            self.copies,
            f"1 to {SHARDS_MAX}",
        )
        if self.bare and self.copies != 1:
            raise SchemeError(
                f"replication: a bare scheme: got {self.copies} copies, wanted 1"
            )

    @property
    def m(self) -> int:  # type: ignore[override]
        """Shards beyond the first copy."""
        return self.copies - 1

    @property
    def name(self) -> str:
        """Name in the form ``rep:N``, or ``none`` for a bare device."""
        if self.bare:
            return "none"
        return f"rep:{self.copies}"

    def _write(self, request: ObjectRequest, sources: list[int]) -> WritePlan:
        run = (request.offset_bytes, request.end_bytes)
        return WritePlan(
            reads=(),
            writes=shard_extents(self._present(request.missing), (run,)),
            read_stripes=(),
            write_stripes=(0, 0),
            encode_stripes=0,
            encode_data_bytes=0,
        )

    def _read(self, request: ObjectRequest, sources: list[int]) -> ReadPlan:
        returned = request.returned_bytes
        reads = shard_extents(
            sources, ((request.offset_bytes, request.offset_bytes + returned),)
        )
        return ReadPlan(
            reads,
            decode_stripes=0,
            decode_data_bytes=0,
            erasures=0,
            returned_bytes=returned,
        )

    def _sources(self, missing: frozenset[int]) -> list[int]:
        """Return the first available copy."""
        return self._present(missing)[:1]

    def _check_geometry(self, geometry: StripeGeometry) -> None:
        """Accept any geometry."""

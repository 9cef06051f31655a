"""Path context: models, scheme, and state of the placement group."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TypedDict, Unpack

from stripesim.models.coding import (
    ReadPlan,
    RedundancyScheme,
    ShardExtent,
    StripeGeometry,
    WritePlan,
)
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.sites import SiteDelays


class ObjectExtent(TypedDict):
    """Extent of a request in its object, and size of the object [B]."""

    offset_bytes: int
    length_bytes: int
    object_size_bytes: int


@dataclass(frozen=True, eq=False)
class PathContext:
    """Everything that a path depends on except the request. Contexts of a pool are distinct.

    Shards in `missing` cannot be read. Those also in `catching_up` still take part in writes while their OSDs
    are brought up to date. One recovery round moves at most `recovery_chunk_bytes` of an object. A sync
    of the log that recovery waits for takes `recovery_sync_ns`, or the drive's own time if that is 0.
    """

    models: Models
    scheme: RedundancyScheme
    geometry: StripeGeometry
    primary: int = 0
    missing: frozenset[int] = frozenset()
    recovery_chunk_bytes: int = 8 << 20
    recovery_sync_ns: int = 0
    catching_up: frozenset[int] = frozenset()
    #: True if requests begin where the previous ones of their disks have ended
    continues: bool = False
    #: True if the store puts the data of successive writes next to each other, as of new objects
    allocates: bool = False
    #: Attributes that each write sets, beyond those of an RBD object [B]
    attributes_bytes: int = 0
    #: True if each write carries an allocation hint, which every shard applies
    hinted_writes: bool = False
    #: True if recovery only moves data: every shard of the object is on some OSD that is up
    misplaced: bool = False
    #: Delays between sites, or None if all hosts and clients are at one
    site_delays: SiteDelays | None = None
    #: Shard whose copy the client reads, or None for the primary's
    reader: int | None = None

    @cached_property
    def lock_scope(self) -> str:
        """Scope of the lock of a placement group, which may depend on the kind of pool."""
        return self.models.pg_lock.of_pool(erasure=self.erasure).scope

    @property
    def state(self) -> tuple[int, frozenset[int], frozenset[int]]:
        """What tells the states of a pool's placement groups apart, however a run numbers them."""
        return self.primary, self.missing, self.catching_up

    @property
    def erasure(self) -> bool:
        """True if objects are erasure-coded."""
        return self.scheme.kind == "erasure"

    @cached_property
    def continuing(self) -> "PathContext":
        """The same state for requests that begin where the previous ones of their disks have ended."""
        return replace(self, continues=True)

    @cached_property
    def moving(self) -> "PathContext":
        """The same state for an object that recovery only moves."""
        return replace(self, misplaced=True)

    def read_at(self, shard: int) -> "PathContext":
        """Return the same state for a client that reads the copy of a shard."""
        return replace(self, reader=shard)

    @property
    def name(self) -> str:
        """Label of scheme and state in template names."""
        state = f" without {sorted(self.missing)}" if self.missing else ""
        caught = f", {sorted(self.catching_up)} catching up" if self.catching_up else ""
        return f"{self.scheme.name}{state}{caught}"

    @property
    def members(self) -> list[int]:
        """Shards that take part in writes."""
        absent = self.missing - self.catching_up
        return [shard for shard in range(self.scheme.width) if shard not in absent]

    @property
    def attribute_shards(self) -> set[int]:
        """Shards that hold the attributes of an object: in an optimised pool, those that may be primary.

        References
        ----------
        Ceph v20.2, ``src/osd/ECTransaction.cc`` (``attr_updates``: shards in ``nonprimary_shards`` get none).
        """
        everywhere = set(range(self.scheme.width))
        if not (self.erasure and self.models.ec.optimised):
            return everywhere
        return everywhere - set(range(1, self.scheme.k))

    def asked_shards(self, needed: Iterable[int]) -> list[int]:
        """Return the shards that a read asks for: those it needs, and others for which k answers suffice.

        With `Models.extra_reads`, these are k and that many more, as far as there are up-to-date ones.
        """
        asked = list(needed)
        extra = self.models.extra_reads
        if not extra or not asked:
            return asked
        spare = (
            shard
            for shard in range(self.scheme.width)
            if shard not in self.missing and shard not in asked
        )
        count = self.scheme.k + extra - len(asked)
        return asked + list(islice(spare, count))

    def remote(self, shards: Iterable[int]) -> int:
        """Count the shards that are not on the primary."""
        return sum(shard != self.primary for shard in shards)

    def plan_read(self, **extent: Unpack[ObjectExtent]) -> ReadPlan:
        """Plan a read from up-to-date shards."""
        return self.scheme.plan_read(
            **extent,
            geometry=self.geometry,
            missing=self.missing,
            policy=self.models.ec,
        )

    def plan_write(
        self, *, in_cache: bool = False, **extent: Unpack[ObjectExtent]
    ) -> WritePlan:
        """Plan a write that reads from up-to-date shards and writes to all members.

        References
        ----------
        Ceph main (0009f3f5), ``src/osd/ECTransaction.cc`` (``Generate``: the hint goes to each shard, whose
        transaction is then not empty and not skipped), ``src/librbd/io/ObjectRequest.cc``
        (``add_write_hint``).
        """

        def plan(missing: frozenset[int]) -> WritePlan:
            return self.scheme.plan_write(
                **extent,
                geometry=self.geometry,
                policy=self.models.ec,
                in_cache=in_cache,
                missing=missing,
            )

        planned = self._hinted(plan(self.missing))
        if not self.catching_up:
            return planned
        wider = plan(self.missing - self.catching_up)
        more = tuple(
            extent for extent in wider.writes if extent.shard in self.catching_up
        )
        caught_up = tuple(
            shard for shard in wider.metadata_shards if shard in self.catching_up
        )
        return replace(
            planned,
            writes=planned.writes + more,
            metadata_shards=planned.metadata_shards + caught_up,
        )

    def _hinted(self, plan: WritePlan) -> WritePlan:
        """Return a plan with a transaction for every shard, if a hint makes them necessary."""
        if not self.hinted_writes or not self.erasure or not self.models.ec.optimised:
            return plan
        written = {extent.shard for extent in plan.writes}
        unwritten = (
            shard for shard in range(self.scheme.width) if shard not in written
        )
        present = tuple(shard for shard in unwritten if shard not in self.missing)
        return replace(plan, metadata_shards=present)


def by_shard(extents: Iterable[ShardExtent]) -> dict[int, list[ShardExtent]]:
    """Group extents by shard, in ascending order."""
    grouped: dict[int, list[ShardExtent]] = {}
    for extent in sorted(extents):
        grouped.setdefault(extent.shard, []).append(extent)
    return grouped


def total_bytes(extents: Iterable[ShardExtent]) -> int:
    """Sum the lengths of extents [B]."""
    return sum(extent.length_bytes for extent in extents)

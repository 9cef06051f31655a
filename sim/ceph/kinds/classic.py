"""Erasure-coded pools: what all have in common, and those whose writes hold the group's lock."""

from functools import cache, cached_property, partial
from math import lcm

import numpy as np

from stripesim.models.coding import PAGE_BYTES, ReadPlan
from stripesim.sim.ceph.kinds.caches import CachedStripes
from stripesim.sim.ceph.kinds.kind import PoolKind, StoreMemory, rounded_up
from stripesim.sim.ceph.kinds.requests import (
    ObjectRequests,
    RequestPlan,
    RequestShape,
)
from stripesim.sim.ceph.paths import (
    PathContext,
    can_read_directly,
    direct_read_path,
    read_path,
    roll_forward_path,
    write_path,
)
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.engine.graph import IntArray, Template


class ErasureCoded(PoolKind):
    """Objects in stripes over the shards of a placement group.

    The shape of a read holds the blocks at its ends that read caches have.
    """

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        # One round for all writes with the same members.
        self._roll_forward = cache(roll_forward_path)

    @property
    def granule_bytes(self) -> int:
        """Return the data of a stripe [B]."""
        return self.pool.geometry.stripe_bytes

    @cached_property
    def period_bytes(self) -> int:
        """Return the fewest whole stripes whose chunks fill whole allocation units [B]."""
        unit_bytes = self.pool.geometry.stripe_unit_bytes
        alloc_bytes = self.pool.cluster.models.store.min_alloc_bytes
        return self.granule_bytes * (lcm(unit_bytes, alloc_bytes) // unit_bytes)

    @cached_property
    def block_bytes(self) -> int:
        """Return the granularity of reads [B]. A cached stripe occupies one chunk on each of k OSDs."""
        blocks_bytes = {
            "stripes": self.granule_bytes,
            "columns": self.pool.geometry.stripe_unit_bytes,
            "chunks": self.pool.geometry.stripe_unit_bytes,
            "pages": PAGE_BYTES,
        }
        return blocks_bytes[self.pool.cluster.models.ec.reads]

    @property
    def shard_bytes(self) -> int:
        """Return a chunk for each stripe of a full object [B]."""
        return self.granules_per_object * self.pool.geometry.stripe_unit_bytes

    def plan_read(self, context: PathContext, shape: RequestShape) -> RequestPlan:
        """Plan a read of the shards, through the primary or directly."""
        plan = context.plan_read(**shape.extent)
        compile_it = partial(self._read, context, shape, plan)
        if self._reads_stripes:
            return RequestPlan((plan, shape.head, shape.tail), compile_it)
        return RequestPlan(shape, compile_it)

    def _read(
        self, context: PathContext, shape: RequestShape, plan: ReadPlan
    ) -> Template:
        """Compile a read."""
        held_bytes = self.block_bytes
        if self._reads_stripes:
            # Of a cached stripe each source holds a chunk.
            held_bytes = self.pool.geometry.stripe_unit_bytes
        path = direct_read_path if can_read_directly(context, plan) else read_path
        return path(
            context,
            **shape.extent,
            cached_head_bytes=shape.head * held_bytes,
            cached_tail_bytes=shape.tail * held_bytes,
        )

    @property
    def _reads_stripes(self) -> bool:
        """True if reads are widened to whole stripes."""
        return self.pool.cluster.models.ec.reads == "stripes"


class Classic(ErasureCoded):
    """An erasure-coded pool that pads to whole stripes. A write holds the lock of its PG until the commit.

    The shape of a write holds whether its partial stripes are in the read caches.
    """

    @property
    def append_bytes(self) -> int:
        """Return a whole stripe, as Ceph requires without overwrites (``requires_aligned_append``) [B]."""
        return self.granule_bytes

    def memory(self, *, requests_in_flight: int, prefilled: bool) -> StoreMemory:
        """Return the read caches, where writes look for partial stripes before they drop them."""
        return CachedStripes(
            self.cache,
            self.block_bytes,
            self.blocks_per_object,
            stripe_bytes=self.granule_bytes,
        )

    def plan_write(self, context: PathContext, shape: RequestShape) -> RequestPlan:
        """Plan a write of whole stripes."""
        cached = self._cached_stripes(shape)
        key = self._write_key(context, shape, cached)
        return RequestPlan(
            key, partial(write_path, context, **shape.extent, cached_stripes=cached)
        )

    def _write_key(
        self, context: PathContext, shape: RequestShape, cached: frozenset[int]
    ) -> tuple[object, ...]:
        """Return everything that determines the graph of a write: its plan, not its exact offset."""
        plan = context.plan_write(**shape.extent)
        stripes = context.geometry.stripe_count(shape.object_size_bytes)
        return shape.length_bytes, plan, stripes, cached

    def _cached_stripes(self, shape: RequestShape) -> frozenset[int]:
        """Return the stripes of a write that need no device read."""
        first, stop = self.pool.geometry.stripe_range(
            shape.offset_bytes, shape.length_bytes
        )
        cached = set()
        if shape.head:
            cached.add(first)
        if shape.tail:
            cached.add(stop - 1)
        return frozenset(cached)

    def _last_origins(self, requests: ObjectRequests) -> IntArray:
        """Return the object's end if it precedes the request: the gap is filled with stripes."""
        whole_bytes = rounded_up(requests.sizes_bytes, self.granule_bytes)
        return np.minimum(requests.offsets_bytes, whole_bytes)

"""Optimised erasure-coded pools (FastEC): touched shards and parities, in pages."""

from functools import cached_property, partial

import numpy as np

from stripesim.models.coding import PAGE_BYTES
from stripesim.sim.ceph.kinds.classic import ErasureCoded
from stripesim.sim.ceph.kinds.kind import StoreMemory
from stripesim.sim.ceph.kinds.pages import HeldPages, PageCache, WriteMemory
from stripesim.sim.ceph.kinds.requests import (
    ObjectRequests,
    RequestPlan,
    RequestShape,
)
from stripesim.sim.ceph.paths import (
    PathContext,
    optimised_write_path,
    written_shards,
)
from stripesim.sim.ceph.paths.optimised import OBJECT, ROWS, write_plans
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.engine.conditions import KEY_RANGES
from stripesim.sim.engine.graph import IntArray


class Optimised(ErasureCoded):
    """An erasure-coded pool with ``allow_ec_optimizations``. Objects have holes instead of padding.

    The shape of a write holds the number of the set of pages that its primary holds.
    """

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self._held = HeldPages()

    @cached_property
    def pages(self) -> PageCache | None:
        """The pages that primaries keep, which all workloads share. None where they keep none."""
        model = self.pool.cluster.models.extent_cache
        if model is None or not model.bytes_per_op_shard:
            return None
        return PageCache(model)

    def memory(self, *, requests_in_flight: int, prefilled: bool) -> StoreMemory:
        """Return the read caches for reads, and the pages that primaries keep for writes."""
        blocks = super().memory(
            requests_in_flight=requests_in_flight, prefilled=prefilled
        )
        if self.pages is None:
            return blocks
        return _OptimisedMemory(blocks, WriteMemory(self.pool, self.pages, self._held))

    def plan_write(self, context: PathContext, shape: RequestShape) -> RequestPlan:
        """Plan a write of the pages of touched shards and of parities."""
        held = self._held[shape.head]
        plan, in_cache = write_plans(context, held, **shape.extent)
        forward = self._roll_forward(context, written_shards(plan))
        compile_it = partial(
            optimised_write_path,
            context,
            **shape.extent,
            roll_forward=forward,
            held=held,
        )
        key = (shape.length_bytes, shape.object_size_bytes, plan, in_cache)
        return RequestPlan(key, compile_it)

    def key_ranges(self, requests: ObjectRequests) -> IntArray | None:
        """Return the pages that each write changes on any shard, and its object."""
        k = self.pool.geometry.k
        unit_bytes = self.pool.geometry.stripe_unit_bytes
        offsets = requests.offsets_bytes
        last_bytes = requests.ends_bytes - 1
        first_chunk = offsets // unit_bytes
        last_chunk = last_bytes // unit_bytes
        in_one_chunk = first_chunk == last_chunk
        # A chunk that follows in the same stripe, or comes before, makes the run begin or end at its border.
        begins_inside = in_one_chunk | (first_chunk % k == k - 1)
        ends_inside = in_one_chunk | (last_chunk % k == 0)
        start = first_chunk // k * unit_bytes
        start += np.where(begins_inside, offsets % unit_bytes, 0)
        stop = last_chunk // k * unit_bytes
        stop += np.where(ends_inside, last_bytes % unit_bytes + 1, unit_bytes)
        pages = self.granules_per_object * unit_bytes // PAGE_BYTES
        ranges = np.zeros((len(requests), KEY_RANGES, 2), dtype=np.int64)
        ranges[:, ROWS, 0] = start // PAGE_BYTES
        ranges[:, ROWS, 1] = -(-stop // PAGE_BYTES)
        ranges[:, OBJECT, 0] = pages
        ranges[:, OBJECT, 1] = pages + 1
        first_pages = requests.objects * (pages + 1)
        return ranges + first_pages[:, None, None]


class _OptimisedMemory:
    """Read caches for reads, pages that primaries keep for writes."""

    def __init__(self, blocks: StoreMemory, writes: WriteMemory) -> None:
        self._blocks = blocks
        self._writes = writes

    def ends_of(self, requests: ObjectRequests) -> tuple[IntArray, IntArray]:
        """Return cached blocks of reads, and the numbers of the held pages of writes."""
        heads, tails = self._blocks.ends_of(requests)
        numbers = self._writes.held_numbers(requests)
        return np.where(requests.is_write, numbers, heads), tails

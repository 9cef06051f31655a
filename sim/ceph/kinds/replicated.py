"""Replicated pools: every member has a copy, the primary's is read."""

from functools import partial

from stripesim.sim.ceph.kinds.caches import SmallWrites
from stripesim.sim.ceph.kinds.kind import PoolKind, StoreMemory
from stripesim.sim.ceph.kinds.requests import (
    ObjectRequests,
    RequestPlan,
    RequestShape,
)
from stripesim.sim.ceph.paths import (
    PathContext,
    fastest_copy_path,
    local_copy_path,
    read_path,
    write_path,
)
from stripesim.sim.engine.graph import IntArray


class Replicated(PoolKind):
    """Copies of whole objects, allocated in units of the store.

    The shape of a read holds the cached units. If stores defer small writes, the shape of a write holds the
    states of its first and last unit (see `stripesim.models.object_store.store`).
    """

    @property
    def granule_bytes(self) -> int:
        """Return the allocation unit [B]."""
        return self.pool.cluster.models.store.min_alloc_bytes

    def memory(self, *, requests_in_flight: int, prefilled: bool) -> StoreMemory:
        """Return the read caches, with small writes where the stores defer them."""
        blocks = super().memory(
            requests_in_flight=requests_in_flight, prefilled=prefilled
        )
        if not self._defers:
            return blocks
        store = self.pool.cluster.models.store
        small = SmallWrites(
            store, requests_in_flight=requests_in_flight, prefilled=prefilled
        )
        object_bytes = self.granules_per_object * self.granule_bytes
        return _ReplicaMemory(blocks, small, object_bytes)

    def plan_write(self, context: PathContext, shape: RequestShape) -> RequestPlan:
        """Plan a write to all copies."""
        states = (shape.head, shape.tail) if self._defers else None
        compile_it = partial(write_path, context, **shape.extent, unit_states=states)
        return RequestPlan(shape, compile_it)

    def plan_read(self, context: PathContext, shape: RequestShape) -> RequestPlan:
        """Plan a read of the primary's copy, a local one, or several of which the first reply counts."""
        path = fastest_copy_path if context.models.extra_reads else read_path
        if context.reader is not None:
            path = local_copy_path
        compile_it = partial(
            path,
            context,
            **shape.extent,
            cached_head_bytes=shape.head * self.granule_bytes,
            cached_tail_bytes=shape.tail * self.granule_bytes,
        )
        return RequestPlan(shape, compile_it)

    @property
    def _defers(self) -> bool:
        """True if stores write small changes to their log first, and in place in batches."""
        return bool(self.pool.cluster.models.store.deferred_batch_count)


class _ReplicaMemory:
    """Read caches for reads, states of units for writes."""

    def __init__(
        self, blocks: StoreMemory, small: SmallWrites, object_bytes: int
    ) -> None:
        self._blocks = blocks
        self._small = small
        self._object_bytes = object_bytes

    def ends_of(self, requests: ObjectRequests) -> tuple[IntArray, IntArray]:
        """Return cached units of reads, and states of the units of writes."""
        heads, tails = self._blocks.ends_of(requests)
        first_bytes = requests.objects * self._object_bytes + requests.offsets_bytes
        head_states, tail_states = self._small.states(requests, first_bytes)
        writes = requests.is_write
        heads[writes] = head_states[writes]
        tails[writes] = tail_states[writes]
        return heads, tails

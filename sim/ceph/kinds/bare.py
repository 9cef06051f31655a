"""A bare device, which the scheme ``none`` names: no cluster around it."""

from functools import partial

import numpy as np

from stripesim.sim.ceph.kinds.kind import PoolKind, StoreMemory
from stripesim.sim.ceph.kinds.requests import (
    ObjectRequests,
    RequestPlan,
    RequestShape,
)
from stripesim.sim.ceph.paths import PathContext, bare_path
from stripesim.sim.engine.graph import IntArray


class NoMemory:
    """The memory of stores that hold nothing."""

    def ends_of(self, requests: ObjectRequests) -> tuple[IntArray, IntArray]:
        """Return zeros."""
        nothing = np.zeros(len(requests), dtype=np.int64)
        return nothing, nothing


class Bare(PoolKind):
    """A device that a client uses directly, in whole blocks."""

    @property
    def granule_bytes(self) -> int:
        """Return the allocation unit [B]."""
        return self.pool.cluster.models.store.min_alloc_bytes

    def memory(self, *, requests_in_flight: int, prefilled: bool) -> StoreMemory:
        """Return no memory: the load generator bypasses all caches."""
        return NoMemory()

    def plan_write(self, context: PathContext, shape: RequestShape) -> RequestPlan:
        """Plan a write of whole blocks."""
        return self._plan(context, shape)

    def plan_read(self, context: PathContext, shape: RequestShape) -> RequestPlan:
        """Plan a read of whole blocks."""
        return self._plan(context, shape)

    def _plan(self, context: PathContext, shape: RequestShape) -> RequestPlan:
        blocks_bytes = context.models.ssd.blocks_bytes(shape.length_bytes)
        compile_it = partial(
            bare_path,
            context,
            write=shape.is_write,
            length_bytes=shape.length_bytes,
            device_bytes=blocks_bytes,
        )
        return RequestPlan((shape.is_write, shape.length_bytes), compile_it)

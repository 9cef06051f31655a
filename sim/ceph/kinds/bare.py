"""A bare device, which the scheme ``none`` names: no cluster around it."""

from functools import cached_property, partial

from stripesim.sim.ceph.kinds.caches import ReadCache
from stripesim.sim.ceph.kinds.kind import PoolKind
from stripesim.sim.ceph.kinds.requests import RequestPlan, RequestShape
from stripesim.sim.ceph.paths import PathContext, bare_path


class Bare(PoolKind):
    """A device that a client uses directly, in whole blocks."""

    @property
    def granule_bytes(self) -> int:
        """Return the allocation unit [B]."""
        return self.pool.cluster.models.store.min_alloc_bytes

    @cached_property
    def cache(self) -> ReadCache:
        """Return an empty cache: the load generator bypasses all of them."""
        return ReadCache(0)

    def plan_write(self, context: PathContext, shape: RequestShape) -> RequestPlan:
        """Plan a transfer of whole blocks to the device."""
        return _transfer(context, shape)

    def plan_read(self, context: PathContext, shape: RequestShape) -> RequestPlan:
        """Plan a transfer of whole blocks from the device."""
        return _transfer(context, shape)


def _transfer(context: PathContext, shape: RequestShape) -> RequestPlan:
    compile_it = partial(
        bare_path,
        context,
        write=shape.is_write,
        length_bytes=shape.length_bytes,
        device_bytes=context.models.ssd.blocks_bytes(shape.length_bytes),
    )
    return RequestPlan(shape.length_bytes, compile_it)

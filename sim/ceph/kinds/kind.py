"""What every kind of pool offers: plans of its writes, reads and repairs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np

from stripesim.sim.ceph.kinds.caches import CachedBlocks, ReadCache
from stripesim.sim.ceph.kinds.requests import (
    ObjectRequests,
    RequestPlan,
    RequestShape,
)
from stripesim.sim.ceph.paths import (
    PathContext,
    move_path,
    repair_path,
    rounds_bytes,
)
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.engine.graph import IntArray, Template


class StoreMemory(Protocol):
    """What the stores hold in memory, as requests come and go."""

    def ends_of(self, requests: ObjectRequests) -> tuple[IntArray, IntArray]:
        """Return what is held of the beginning and the end of each request, and remember the requests."""


class PoolKind(ABC):
    """How one kind of pool serves requests.

    A request has a shape, which says what its graph depends on. Requests that lie whole periods of the layout
    apart have the same shape.
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool

    # Units of the layout.

    @property
    @abstractmethod
    def granule_bytes(self) -> int:
        """What an object is allocated and padded in [B]."""

    @property
    def period_bytes(self) -> int:
        """Distance in an object after which requests are alike [B], a multiple of `granule_bytes`."""
        return self.granule_bytes

    @property
    def block_bytes(self) -> int:
        """What a read cache holds or does not [B]; a granule holds whole blocks."""
        return self.granule_bytes

    @property
    def shard_bytes(self) -> int:
        """What one shard has of a full object [B]."""
        return self.pool.object_bytes

    @property
    def granules_per_object(self) -> int:
        """Granules that an object takes."""
        return -(-self.pool.object_bytes // self.granule_bytes)

    @property
    def blocks_per_object(self) -> int:
        """Blocks that an object takes."""
        return self.granules_per_object * (self.granule_bytes // self.block_bytes)

    @cached_property
    def cache(self) -> ReadCache:
        """The read caches of the pool's stores, which all workloads share."""
        return ReadCache.of_cluster(self.pool.cluster, self.block_bytes)

    # What a request depends on.

    def memory(self, *, requests_in_flight: int, prefilled: bool) -> StoreMemory:
        """Return the memory of the stores as one workload finds it: here the read caches alone."""
        return CachedBlocks(self.cache, self.block_bytes, self.blocks_per_object)

    def shapes(
        self, requests: ObjectRequests, held: tuple[IntArray, IntArray]
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the fields of each request's `RequestShape`; `held` comes from `memory`."""
        period = self.period_bytes
        origins = self._last_origins(requests) // period * period
        offsets = requests.offsets_bytes - origins
        # Beyond the request's last granule the size makes no difference.
        reach = rounded_up(offsets + requests.lengths_bytes, self.granule_bytes)
        sizes = np.clip(requests.sizes_bytes - origins, 0, reach)
        columns = (requests.is_write, offsets, requests.lengths_bytes, sizes, *held)
        return zip(*(column.tolist() for column in columns), strict=True)

    def _last_origins(self, requests: ObjectRequests) -> IntArray:
        """Return the last byte of each object that a shape can be measured from [B]."""
        return requests.offsets_bytes

    def key_ranges(self, requests: ObjectRequests) -> IntArray | None:
        """Return the key ranges that the graphs ask for, shape (n, ranges, 2); None: they ask for none."""
        return None

    # Plans.

    def plan(self, context: PathContext, shape: RequestShape) -> RequestPlan:
        """Plan a client's request."""
        if shape.is_write:
            return self.plan_write(context, shape)
        return self.plan_read(context, shape)

    @abstractmethod
    def plan_write(self, context: PathContext, shape: RequestShape) -> RequestPlan:
        """Plan a write."""

    @abstractmethod
    def plan_read(self, context: PathContext, shape: RequestShape) -> RequestPlan:
        """Plan a read."""

    def plan_repair(
        self, context: PathContext, lost: tuple[int, ...], *, in_one_graph: bool
    ) -> list[RequestPlan]:
        """Plan the rounds that rebuild the lost shards of one object, or all rounds as one graph."""
        rounds = rounds_bytes(
            self.pool.object_bytes,
            context.recovery_chunk_bytes,
            context.geometry.stripe_bytes,
        )
        path = partial(repair_path, context, lost=lost)
        return _rounds(("repair", context, lost), path, rounds, in_one_graph)

    def plan_move(
        self, context: PathContext, source: int, target: int, *, in_one_graph: bool
    ) -> list[RequestPlan]:
        """Plan the rounds that move one shard of an object, or all rounds as one graph."""
        rounds = rounds_bytes(self.shard_bytes, context.recovery_chunk_bytes)
        path = partial(move_path, context, source=source, target=target)
        return _rounds(("move", context, source, target), path, rounds, in_one_graph)


def rounded_up(sizes_bytes: IntArray, unit_bytes: int) -> IntArray:
    """Round sizes up to whole units [B]."""
    return -(-sizes_bytes // unit_bytes) * unit_bytes


def _rounds(
    key: tuple[object, ...],
    path: Callable[..., Template],
    sizes_bytes: Sequence[int],
    in_one_graph: bool,
) -> list[RequestPlan]:
    parts: list[tuple[int, ...]] = [(size_bytes,) for size_bytes in sizes_bytes]
    if in_one_graph:
        parts = [tuple(sizes_bytes)]
    return [
        RequestPlan((*key, part), partial(path, sizes_bytes=part)) for part in parts
    ]

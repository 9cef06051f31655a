"""The protocol of a kind of pool: plans of writes, reads and repairs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from stripesim.sim.ceph.kinds.caches import CachedBlocks, DiskHeads, ReadCache
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
    """The part of the data that stores hold in memory."""

    def ends_of(self, requests: ObjectRequests) -> tuple[IntArray, IntArray]:
        """Return the cached beginning and end of each request, and record the requests."""


class PoolKind(ABC):
    """A kind of pool, such as `Replicated`, which plans requests to a pool.

    The graph of a request depends on the shape of the request. Requests at a distance of whole periods of the
    layout have the same shape.
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool

    # Units of the layout.

    @property
    @abstractmethod
    def granule_bytes(self) -> int:
        """Unit in which an object is allocated and padded [B]."""

    @property
    def period_bytes(self) -> int:
        """Period of the layout [B], a multiple of `granule_bytes`."""
        return self.granule_bytes

    @property
    def block_bytes(self) -> int:
        """Unit of the read caches [B]. A granule is a whole number of blocks."""
        return self.granule_bytes

    @property
    def shard_bytes(self) -> int:
        """Size of one shard of a full object [B]."""
        return self.pool.object_bytes

    @property
    def append_bytes(self) -> int:
        """Alignment of appends to objects [B]."""
        return 1

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

    @cached_property
    def heads(self) -> DiskHeads | None:
        """The positions of the pool's disks, which all workloads share. None for drives without any."""
        if not self.pool.cluster.models.ssd.rotational:
            return None
        is_replicated = self.pool.scheme.kind != "erasure"
        models = self.pool.cluster.models
        reads_one = is_replicated and not models.extra_reads and not models.local_reads
        return DiskHeads(self.pool.cluster.acting, reads_one=reads_one)

    # Shapes of requests.

    def memory(self, *, requests_in_flight: int, prefilled: bool) -> StoreMemory:
        """Return the memory of the stores for one workload: by default the read caches."""
        return CachedBlocks(self.cache, self.block_bytes, self.blocks_per_object)

    def shapes(
        self, requests: ObjectRequests, held: tuple[IntArray, IntArray]
    ) -> tuple[npt.NDArray[Any], ...]:
        """Return the fields of each request's `RequestShape` as columns, given the result of `memory`."""
        period = self.period_bytes
        origins = self._last_origins(requests) // period * period
        offsets = requests.offsets_bytes - origins
        # Beyond the request's last granule the size makes no difference.
        reach = rounded_up(offsets + requests.lengths_bytes, self.granule_bytes)
        sizes = np.clip(requests.sizes_bytes - origins, 0, reach)
        return (requests.is_write, offsets, requests.lengths_bytes, sizes, *held)

    def _last_origins(self, requests: ObjectRequests) -> IntArray:
        """Return the last possible origin of the offsets of each shape [B]."""
        return requests.offsets_bytes

    def key_ranges(self, requests: ObjectRequests) -> IntArray | None:
        """Return the key ranges of the requests, shape (n, ranges, 2), or None if graphs need no keys."""
        return None

    # Plans.

    def plan(self, context: PathContext, shape: RequestShape) -> RequestPlan:
        """Plan a client's request."""
        if shape.continues:
            context = context.continuing
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
        return planned_rounds(("repair", context, lost), path, rounds, in_one_graph)

    def plan_move(
        self,
        context: PathContext,
        moves: tuple[tuple[int, int], ...],
        *,
        in_one_graph: bool,
    ) -> list[RequestPlan]:
        """Plan the rounds that move shards of an object from place to place, or all rounds as one graph."""
        rounds = rounds_bytes(self.shard_bytes, context.recovery_chunk_bytes)
        path = partial(move_path, context, moves=moves)
        return planned_rounds(("move", context, moves), path, rounds, in_one_graph)


def rounded_up(sizes_bytes: IntArray, unit_bytes: int) -> IntArray:
    """Round sizes up to whole units [B]."""
    return -(-sizes_bytes // unit_bytes) * unit_bytes


def planned_rounds(
    key: tuple[object, ...],
    path: Callable[..., Template],
    sizes_bytes: Sequence[int],
    in_one_graph: bool,
) -> list[RequestPlan]:
    """Plan rounds of some sizes [B] that a path compiles, each alone or all as one graph."""
    parts: list[tuple[int, ...]] = [(size_bytes,) for size_bytes in sizes_bytes]
    if in_one_graph:
        parts = [tuple(sizes_bytes)]
    return [
        RequestPlan((*key, part), partial(path, sizes_bytes=part)) for part in parts
    ]

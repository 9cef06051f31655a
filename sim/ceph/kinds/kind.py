"""What every kind of pool offers: plans of its writes, reads and repairs."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from stripesim.sim.ceph.kinds.requests import (
    ObjectRequests,
    RequestPlan,
    RequestShape,
)
from stripesim.sim.ceph.paths import PathContext, repair_path
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.engine.graph import IntArray


class StoreMemory(Protocol):
    """What the stores hold in memory, as requests come and go."""

    def ends_of(self, requests: ObjectRequests) -> tuple[IntArray, IntArray]:
        """Return what is held of the beginning and the end of each request, and remember the requests."""


class PoolKind(ABC):
    """How one kind of pool serves requests.

    A request has a shape, which says what its graph depends on. Requests whose objects differ by whole
    periods of the layout have the same shape.
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool

    @property
    @abstractmethod
    def granule_bytes(self) -> int:
        """What an object is allocated and padded in [B]."""

    @property
    def period_bytes(self) -> int:
        """Distance in an object after which requests are alike [B], a multiple of `granule_bytes`."""
        return self.granule_bytes

    @property
    def granules_per_object(self) -> int:
        """Granules that an object takes."""
        return -(-self.pool.object_bytes // self.granule_bytes)

    @abstractmethod
    def memory(self, *, requests_in_flight: int, prefilled: bool) -> StoreMemory:
        """Return the memory of the stores as one workload finds it; workloads share the read caches."""

    @abstractmethod
    def plan_write(self, context: PathContext, shape: RequestShape) -> RequestPlan:
        """Plan a write."""

    @abstractmethod
    def plan_read(self, context: PathContext, shape: RequestShape) -> RequestPlan:
        """Plan a read."""

    def plan_repair(
        self, context: PathContext, lost: Sequence[int], sizes_bytes: Iterable[int]
    ) -> RequestPlan:
        """Plan rounds of the repair of lost shards of one object, as `repair_path` has them."""
        sizes = tuple(sizes_bytes)
        compile_it = partial(repair_path, context, lost=lost, sizes_bytes=sizes)
        return RequestPlan((context, tuple(lost), sizes), compile_it)

    def key_ranges(self, requests: ObjectRequests) -> IntArray | None:
        """Return the key ranges that the graphs ask for, shape (n, ranges, 2); None: they ask for none."""
        return None

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


def rounded_up(sizes_bytes: IntArray, unit_bytes: int) -> IntArray:
    """Round sizes up to whole units [B]."""
    return -(-sizes_bytes // unit_bytes) * unit_bytes

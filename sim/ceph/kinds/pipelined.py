"""Erasure-coded pools whose writes overlap in a pipeline of their placement group."""

from functools import cache, partial

import numpy as np

from stripesim.sim.ceph.kinds.classic import Classic
from stripesim.sim.ceph.kinds.requests import (
    ObjectRequests,
    RequestPlan,
    RequestShape,
)
from stripesim.sim.ceph.paths import (
    PathContext,
    pipelined_write_path,
    roll_forward_path,
)
from stripesim.sim.ceph.paths.pipeline import PARTIAL, WRITTEN
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.engine.conditions import KEY_RANGES
from stripesim.sim.engine.graph import IntArray


class Pipelined(Classic):
    """An erasure-coded pool that pads to whole stripes; writes of a group overlap in its pipeline.

    The planner only names the stripes of each write. Which of them are in flight is asked in time.
    """

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        # One round for all writes of a context.
        self._roll_forward = cache(roll_forward_path)

    def plan_write(self, context: PathContext, shape: RequestShape) -> RequestPlan:
        """Plan a write of whole stripes in the pipeline."""
        cached = self._cached_stripes(shape)
        compile_it = partial(
            pipelined_write_path,
            context,
            **shape.extent,
            cached_stripes=cached,
            roll_forward=self._roll_forward(context, tuple(context.members)),
        )
        return RequestPlan(self._write_key(context, shape, cached), compile_it)

    def key_ranges(self, requests: ObjectRequests) -> IntArray | None:
        """Return the stripes that each write writes, and the partial one that it asks for first."""
        stripe_bytes = self.granule_bytes
        offsets = requests.offsets_bytes
        first = offsets // stripe_bytes
        stop = -(-requests.ends_bytes // stripe_bytes)
        old_stop = -(-requests.sizes_bytes // stripe_bytes)
        has_partial_head = (offsets % stripe_bytes != 0) & (first < old_stop)
        partial_stripe = np.where(has_partial_head, first, stop - 1)
        ranges = np.zeros((len(requests), KEY_RANGES, 2), dtype=np.int64)
        ranges[:, WRITTEN, 0] = np.minimum(first, old_stop)
        ranges[:, WRITTEN, 1] = stop
        ranges[:, PARTIAL, 0] = partial_stripe
        ranges[:, PARTIAL, 1] = partial_stripe + 1
        first_stripes = requests.objects * self.granules_per_object
        return ranges + first_stripes[:, None, None]

"""Erasure-coded pools whose writes overlap in a pipeline of their placement group."""

from functools import partial

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
)
from stripesim.sim.ceph.paths.pipeline import PARTIAL, WRITTEN
from stripesim.sim.engine.conditions import KEY_RANGES
from stripesim.sim.engine.graph import IntArray


class Pipelined(Classic):
    """An erasure-coded pool that pads to whole stripes. Writes of a PG overlap in its pipeline.

    Key ranges name the stripes of each write. At run time, graphs check which of them are in flight.
    """

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
        """Return the stripes of each write, and the partial stripe that it requests first."""
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

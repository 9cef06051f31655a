"""Start a closed loop in its steady state, with most requests queued at the busiest resource."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stripesim.sim.ceph.clients.workload import (
    Synthetic,
)
from stripesim.sim.ceph.demands import FloatArray, Mix, requests_in_flight
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.engine.graph import IntArray

# Maximum number of objects to map to placement groups. Larger images are sampled [count].
_OBJECTS_MAX = 1 << 20
# Random streams, disjoint from those of the workload.
_MOMENT_STREAM, _OBJECTS_STREAM, _BLOCKS_STREAM = range(5, 8)


def started_stationary(pool: Pool, load: Synthetic) -> Synthetic:
    """Return a closed loop of random requests that starts in its steady state.

    Parameters
    ----------
    pool
        The pool that the requests go to.
    load
        The workload. Anything but a closed loop of random requests is returned unchanged.

    Notes
    -----
    CRUSH places slightly more data on one OSD than on the others. In a closed loop all but a few requests
    eventually queue there, but the queue takes hundreds of times the requests in flight to build up. A run
    that starts with uniformly drawn requests gets the rate right within a few percent, but its 99th
    percentile is far too low.

    The first requests of each client are therefore drawn to match the number in flight in each placement
    group that `stripesim.sim.ceph.demands.requests_in_flight` estimates. Later requests are drawn uniformly.
    """
    if load.pattern != "rand" or not load.queue_depth:
        return load
    objects = _objects_of(pool, load)
    flat = objects.reshape(-1)
    groups = pool.groups_of(np.zeros_like(flat), flat).reshape(objects.shape)
    counts = np.bincount(groups.reshape(-1), minlength=pool.cluster.groups)
    in_flight = requests_in_flight(
        pool,
        Mix(workload=replace(load, requests=None).start()),
        counts / counts.sum(),
        load.clients * load.queue_depth,
        np.random.default_rng([load.seed, _MOMENT_STREAM]),
    )
    weights = in_flight / np.maximum(counts, 1)
    return replace(
        load, first_blocks=_first_blocks(pool, load, objects, weights[groups])
    )


def _objects_of(pool: Pool, load: Synthetic) -> IntArray:
    """Return all objects of each client's image, or a sample, shape (clients, objects)."""
    per_image = max(1, load.image_bytes // pool.object_bytes)
    listed = min(per_image, max(1, _OBJECTS_MAX // load.clients))
    numbers = np.arange(per_image, dtype=np.int64)
    if listed < per_image:
        rng = np.random.default_rng([load.seed, _OBJECTS_STREAM])
        numbers = rng.choice(per_image, listed, replace=False).astype(np.int64)
    starts = (
        load.first_byte
        + np.arange(load.clients, dtype=np.int64) * load.image_stride_bytes
    )
    return starts[:, None] // pool.object_bytes + numbers


def _first_blocks(
    pool: Pool, load: Synthetic, objects: IntArray, weights: FloatArray
) -> IntArray:
    """Draw the blocks of the first requests of each client, shape (clients, queue depth)."""
    rng = np.random.default_rng([load.seed, _BLOCKS_STREAM])
    blocks = load.image_bytes // load.block_bytes
    first = np.empty((load.clients, load.queue_depth), dtype=np.int64)
    for client in range(load.clients):
        start_bytes = load.first_byte + client * load.image_stride_bytes
        total = weights[client].sum()
        shares = weights[client] / total if total > 0 else None
        chosen = rng.choice(objects[client], load.queue_depth, p=shares)
        offsets = chosen * pool.object_bytes - start_bytes
        offsets += rng.integers(0, pool.object_bytes, load.queue_depth)
        first[client] = np.clip(offsets // load.block_bytes, 0, blocks - 1)
    return first

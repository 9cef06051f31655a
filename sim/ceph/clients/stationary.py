"""Start a closed loop in its steady state, with most requests queued at the busiest resource."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from stripesim.sim.ceph.clients.workload import (
    Synthetic,
)
from stripesim.sim.ceph.cluster import NO_OSD
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
    group, and the last of them those that wait for admission, as estimated by
    `stripesim.sim.ceph.demands.requests_in_flight`. Later requests are drawn uniformly. In a steady state
    the first requests would have been issued before the run: see `ages_at_start`.
    """
    if load.pattern != "rand" or not load.queue_depth:
        return load
    objects = _objects_of(pool, load)
    flat = objects.reshape(-1)
    groups = pool.groups_of(np.zeros_like(flat), flat).reshape(objects.shape)
    counts = np.bincount(groups.reshape(-1), minlength=pool.cluster.groups)
    at_resources, waiting = requests_in_flight(
        pool,
        Mix(workload=replace(load, requests=None).start()),
        counts / counts.sum(),
        load.clients * load.queue_depth,
        np.random.default_rng([load.seed, _MOMENT_STREAM]),
    )
    # OSDs admit requests in the order in which they come, so those that wait come last.
    total = at_resources.sum() + waiting.sum()
    last = round(load.queue_depth * waiting.sum() / total)
    blocks = [
        _first_blocks(pool, load, objects, (in_flight / np.maximum(counts, 1))[groups])
        for in_flight in (at_resources, waiting)
    ]
    admitted = load.queue_depth - last
    return replace(
        load,
        first_blocks=np.hstack([blocks[0][:, :admitted], blocks[1][:, admitted:]]),
    )


def ages_at_start(
    pool: Pool,
    groups: IntArray,
    is_write: npt.NDArray[np.bool_],
    completed_ns: IntArray,
    steady_ns: int,
) -> IntArray:
    """Return the time that the first requests have been in flight when a run starts in its steady state.

    Parameters
    ----------
    pool
        The pool that the requests go to.
    groups
        Placement group of each request in flight at time 0, shape (n,).
    is_write
        True for each write, shape (n,).
    completed_ns
        Completion of each request [ns], negative if the run ended before, shape (n,).
    steady_ns
        End of the steady state [ns], when the first client has nothing left to issue or the run ends.

    Returns
    -------
    array of int
        Age of each request at time 0 [ns], shape (n,).

    Notes
    -----
    In a steady state, the times for which the requests of a queue have been in flight are distributed as the
    times for which they will be. Queues are first-in first-out, so the next to complete is the oldest. The
    k-th of n requests to complete therefore gets the time to completion of the (n + 1 − k)-th as its age. On
    average over a queue of constant pace, age and time to completion add up to the time that a request
    spends there. So the run need not simulate any request from issue to completion.

    Requests of one kind with the same primary and the same most crowded OSD are in one queue. Those that have
    not completed by the end of the steady state are expected to at the pace of its second half. (Completions
    begin late, and once clients have nothing left to issue, the remaining requests complete faster.)

    References
    ----------
    D. R. Cox, *Renewal Theory*, 1962, chapter 5: backward and forward recurrence times.
    """
    primaries = pool.cluster.acting[groups, pool.primaries[groups]].astype(np.int64)
    queues = primaries * pool.cluster.osds + _most_crowded(pool, groups, is_write)
    queues = 2 * queues + is_write
    is_steady = (completed_ns >= 0) & (completed_ns <= steady_ns)
    ends_ns = np.where(is_steady, completed_ns, np.iinfo(np.int64).max)
    order = np.lexsort((ends_ns, queues))
    borders = np.flatnonzero(np.diff(queues[order], prepend=-1, append=-1))
    ages_ns = np.zeros(len(groups), dtype=np.int64)
    for start, stop in pairwise(borders.tolist()):
        of_queue = order[start:stop]
        left_ns = ends_ns[of_queue]
        done = int(is_steady[of_queue].sum())
        if done < len(left_ns):
            late = int((left_ns[:done] > steady_ns // 2).sum())
            span_ns = steady_ns - steady_ns // 2
            behind = np.arange(1, len(left_ns) - done + 1)
            left_ns[done:] = steady_ns + span_ns * behind // max(1, late)
        ages_ns[of_queue] = left_ns[::-1]
    return ages_ns


def busiest_osd(pool: Pool, groups: IntArray, is_write: npt.NDArray[np.bool_]) -> int:
    """Return the OSD that most of some requests use. See `requests_at` for the parameters."""
    members = _members_used(pool, groups, is_write)
    return int(np.bincount(members[members != NO_OSD]).argmax())


def requests_at(
    pool: Pool, osd: int, groups: IntArray, is_write: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return True for each request that uses an OSD.

    Parameters
    ----------
    pool
        The pool that the requests go to.
    osd
        The OSD.
    groups
        Placement group of each request, shape (n,).
    is_write
        True for each write, shape (n,).

    Returns
    -------
    array of bool
        Shape (n,).
    """
    every = np.arange(pool.cluster.groups)
    reads, writes = (
        (_members_used(pool, every, np.full(len(every), kind)) == osd).any(axis=1)
        for kind in (False, True)
    )
    is_there: npt.NDArray[np.bool_] = np.where(is_write, writes[groups], reads[groups])
    return is_there


def _members_used(
    pool: Pool, groups: IntArray, is_write: npt.NDArray[np.bool_]
) -> IntArray:
    """Return the OSDs that requests use, shape (n, width).

    A replicated read uses only its primary, unless it asks for other copies, too.
    """
    members = pool.cluster.acting[groups].astype(np.int64)
    if pool.scheme.kind == "erasure" or pool.cluster.models.extra_reads:
        return members
    primaries = np.take_along_axis(members, pool.primaries[groups][:, None], axis=1)
    return np.where(is_write[:, None], members, primaries)


def _most_crowded(
    pool: Pool, groups: IntArray, is_write: npt.NDArray[np.bool_]
) -> IntArray:
    """Return the OSD of each request that most requests use."""
    members = _members_used(pool, groups, is_write)
    present = members != NO_OSD
    crowds = np.bincount(members[present], minlength=pool.cluster.osds)
    crowd_of_member = np.where(present, crowds[np.where(present, members, 0)], -1)
    busiest = crowd_of_member.argmax(axis=1)[:, None]
    crowded: IntArray = np.take_along_axis(members, busiest, axis=1)[:, 0]
    return crowded


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
        drawn = rng.choice(objects[client], load.queue_depth, p=shares)
        offsets = drawn * pool.object_bytes - start_bytes
        offsets += rng.integers(0, pool.object_bytes, load.queue_depth)
        first[client] = np.clip(offsets // load.block_bytes, 0, blocks - 1)
    return first

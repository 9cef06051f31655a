"""What stores hold in memory, in the order of issue: granules read, units that small writes cover in part."""

from collections import OrderedDict, deque

import numpy as np

from stripesim.models.object_store.store import (
    DEFERRED,
    FRESH,
    IN_MEMORY,
    STORED,
    ObjectStoreModel,
)
from stripesim.sim.ceph.clients.workload import Requests
from stripesim.sim.engine.graph import IntArray


class ReadCache:
    """A least-recently-used set of granules (allocation units of a replica, or stripes).

    Reads fill it, writes drop what they touch. It is evaluated at planning, in the order
    of issue, as one cache of the cluster's size. What that leaves out: requests that
    overtake each other, and OSDs that hold more than their share.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._held: OrderedDict[int, None] = OrderedDict()

    def read(self, first: int, stop: int) -> tuple[int, int]:
        """Read granules; return how many at the beginning and at the end were held (all: the beginning)."""
        held = self._held
        known = [granule in held for granule in range(first, stop)]
        for granule in range(first, stop):
            held[granule] = None
            held.move_to_end(granule)
        while len(held) > self.capacity:
            held.popitem(last=False)
        if all(known):
            return stop - first, 0
        return known.index(False), known[::-1].index(False)

    def drop(self, first: int, stop: int) -> None:
        """Forget granules that were written."""
        for granule in range(first, stop):
            self._held.pop(granule, None)


def sizes_before(
    keys: IntArray, starts: IntArray, ends: IntArray, known: dict[int, int]
) -> IntArray:
    """Object sizes before each write (an end of 0: no write); `known` is updated to those after the last."""
    order = np.argsort(keys, kind="stable")
    sorted_keys, sorted_ends = keys[order], ends[order]
    first = np.flatnonzero(np.r_[True, sorted_keys[1:] != sorted_keys[:-1]])
    lengths = np.diff(np.r_[first, len(keys)])
    before = np.array(
        [known.get(key, 0) for key in sorted_keys[first].tolist()], dtype=np.int64
    )
    # A running maximum within each object: offset the objects so far apart that the
    # maximum of one never reaches into the next.
    span = int(max(sorted_ends.max(initial=0), before.max(initial=0))) + 1
    lift = np.repeat(np.arange(len(first), dtype=np.int64) * span, lengths)
    running = (
        np.maximum.accumulate(
            np.maximum(sorted_ends, np.repeat(before, lengths)) + lift
        )
        - lift
    )
    sizes = np.empty_like(running)
    sizes[1:] = running[:-1]
    sizes[first] = before
    for key, size in zip(
        sorted_keys[first].tolist(), running[first + lengths - 1].tolist(), strict=True
    ):
        known[key] = size
    result = np.empty_like(sizes)
    result[order] = sizes
    return result


class SmallWrites:
    """Tells, for each write of a replicated pool, the states of its first and its last unit.

    What the `depth` requests in flight wrote is still in memory (0, an open loop: nothing is); `prefilled`:
    every unit holds data. A unit that is overwritten in part goes into the log at once and later to its
    place, once for all of a batch of deferred writes of its group; it is read first, unless it waits in the
    batch or is in flight.

    See Ceph v16.2.15, ``src/os/bluestore/BlueStore.cc`` (``_do_write_small``, ``_deferred_queue``).
    """

    def __init__(self, store: ObjectStoreModel, *, depth: int, prefilled: bool) -> None:
        self._unit = store.min_alloc_bytes
        self._batch_count = store.deferred_batch_count
        self._prefilled = prefilled
        self._written: set[int] = set()
        self._recent: deque[range] = deque(maxlen=max(0, depth - 1))
        self._batches: dict[int, tuple[int, set[int]]] = {}

    def states(
        self, requests: Requests, first_bytes: IntArray, groups: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Return the states of the first and the last unit of each request; 0 for reads and whole units."""
        unit = self._unit
        heads, tails = (
            np.zeros(len(requests), dtype=np.int64),
            np.zeros(len(requests), dtype=np.int64),
        )
        ends = first_bytes + requests.lengths_bytes
        for index, (start, end, group) in enumerate(
            zip(first_bytes.tolist(), ends.tolist(), groups.tolist(), strict=True)
        ):
            if not requests.is_write[index]:
                continue
            touched = range(start // unit, -(-end // unit))
            if start % unit or end - start < unit:
                heads[index] = self._state(touched[0], group)
            if end % unit:
                tails[index] = (
                    self._state(touched[-1], group)
                    if len(touched) > 1
                    else heads[index]
                )
            if not self._prefilled:
                self._written.update(touched)
            self._recent.append(touched)
        return heads, tails

    def _state(self, unit: int, group: int) -> int:
        if not self._prefilled and unit not in self._written:
            return FRESH
        count, waiting = self._batches.get(group, (0, set()))
        state = (
            DEFERRED
            if unit in waiting
            else IN_MEMORY
            if self._in_flight(unit)
            else STORED
        )
        if count + 1 >= self._batch_count:
            self._batches[group] = (0, set())
        else:
            waiting.add(unit)
            self._batches[group] = (count + 1, waiting)
        return state

    def _in_flight(self, unit: int) -> bool:
        return any(unit in touched for touched in self._recent)

"""Which granules of the image lie in the stores' read caches, in the order of issue."""

from collections import OrderedDict

import numpy as np

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
        """Read granules; return how many at the beginning and at the end were held.

        The two do not overlap: if all were held, all count as the beginning. Granules held
        in the middle are read again, as one transfer with their neighbours.
        """
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


def sizes_before(keys: IntArray, starts: IntArray, ends: IntArray, known: dict[int, int]) -> IntArray:
    """Object sizes before each write, given that every write extends its object to its end.

    A request that is no write has an end of 0. `known` (object → size) is updated to the sizes after the
    last request.
    """
    order = np.argsort(keys, kind="stable")
    sorted_keys, sorted_ends = keys[order], ends[order]
    first = np.flatnonzero(np.r_[True, sorted_keys[1:] != sorted_keys[:-1]])
    lengths = np.diff(np.r_[first, len(keys)])
    before = np.array([known.get(key, 0) for key in sorted_keys[first].tolist()], dtype=np.int64)
    # A running maximum within each object: offset the objects so far apart that the
    # maximum of one never reaches into the next.
    span = int(max(sorted_ends.max(initial=0), before.max(initial=0))) + 1
    lift = np.repeat(np.arange(len(first), dtype=np.int64) * span, lengths)
    running = np.maximum.accumulate(np.maximum(sorted_ends, np.repeat(before, lengths)) + lift) - lift
    sizes = np.empty_like(running)
    sizes[1:] = running[:-1]
    sizes[first] = before
    for key, size in zip(sorted_keys[first].tolist(), running[first + lengths - 1].tolist(), strict=True):
        known[key] = size
    result = np.empty_like(sizes)
    result[order] = sizes
    return result

"""Memory of the stores, in order of issue: cached blocks, and units of deferred small writes."""

from __future__ import annotations

from collections import OrderedDict, deque

import numpy as np

from stripesim.models.object_store.store import (
    DEFERRED,
    FRESH,
    IN_MEMORY,
    STORED,
    ObjectStoreModel,
)
from stripesim.sim.ceph.cluster import Cluster
from stripesim.sim.ceph.kinds.requests import ObjectRequests
from stripesim.sim.engine.graph import IntArray


class ReadCache:
    """A least-recently-used set of blocks.

    Reads fill it, writes evict the blocks that they touch. It is evaluated at planning, in
    order of issue, as one cache of the cluster's size. What that leaves out: requests that
    overtake each other, and OSDs that hold more than their share.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._held: OrderedDict[int, None] = OrderedDict()

    @property
    def is_empty(self) -> bool:
        """True if it holds no block."""
        return not self._held

    @classmethod
    def of_cluster(cls, cluster: Cluster, block_bytes: int) -> ReadCache:
        """Return an empty cache of the size that all OSDs have together."""
        cache_bytes = cluster.osds * cluster.models.store.read_cache_bytes
        return cls(cache_bytes // block_bytes)

    def read(self, first: int, stop: int) -> tuple[int, int]:
        """Read blocks; return how many at the beginning and at the end were held (all: the beginning)."""
        held = self._held
        were_held = [block in held for block in range(first, stop)]
        for block in range(first, stop):
            held[block] = None
            held.move_to_end(block)
        while len(held) > self.capacity:
            held.popitem(last=False)
        if all(were_held):
            return stop - first, 0
        return were_held.index(False), were_held[::-1].index(False)

    def drop(self, first: int, stop: int) -> None:
        """Forget blocks that were written."""
        for block in range(first, stop):
            self._held.pop(block, None)


class CachedBlocks:
    """Count the cached blocks at both ends of reads. Writes evict the blocks that they touch."""

    def __init__(
        self, cache: ReadCache, block_bytes: int, blocks_per_object: int
    ) -> None:
        self._cache = cache
        self._block_bytes = block_bytes
        self._blocks_per_object = blocks_per_object

    def ends_of(self, requests: ObjectRequests) -> tuple[IntArray, IntArray]:
        """Return how many blocks at the beginning and the end of each request are held."""
        heads = np.zeros(len(requests), dtype=np.int64)
        tails = np.zeros(len(requests), dtype=np.int64)
        if not self._cache.capacity:
            return heads, tails
        if self._cache.is_empty and requests.is_write.all():
            # A write leaves none of the blocks that it reads.
            return heads, tails
        columns = (
            requests.is_write,
            requests.objects * self._blocks_per_object,
            requests.offsets_bytes,
            requests.ends_bytes,
            requests.sizes_bytes,
        )
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for index, (is_write, origin, start_byte, end_byte, size_bytes) in enumerate(
            rows
        ):
            if is_write:
                heads[index], tails[index] = self._write(origin, start_byte, end_byte)
            elif start_byte < size_bytes:
                first = origin + start_byte // self._block_bytes
                stop = origin - (-end_byte // self._block_bytes)
                heads[index], tails[index] = self._cache.read(first, stop)
        return heads, tails

    def _write(self, origin: int, start_byte: int, end_byte: int) -> tuple[int, int]:
        """Write to the object at block `origin`; return the cached blocks that the write needs."""
        first = origin + start_byte // self._block_bytes
        stop = origin - (-end_byte // self._block_bytes)
        self._cache.drop(first, stop)
        return 0, 0


class CachedStripes(CachedBlocks):
    """Count cached blocks of reads, and cached partial stripes of writes, which read them first."""

    def __init__(
        self,
        cache: ReadCache,
        block_bytes: int,
        blocks_per_object: int,
        *,
        stripe_bytes: int,
    ) -> None:
        super().__init__(cache, block_bytes, blocks_per_object)
        self._stripe_bytes = stripe_bytes
        self._blocks_per_stripe = stripe_bytes // block_bytes

    def _write(self, origin: int, start_byte: int, end_byte: int) -> tuple[int, int]:
        stripe_bytes = self._stripe_bytes
        blocks = self._blocks_per_stripe
        start = origin + start_byte // stripe_bytes * blocks
        stop = origin - (-end_byte // stripe_bytes) * blocks
        head = 0
        tail = 0
        if start_byte % stripe_bytes or end_byte - start_byte < stripe_bytes:
            head = self._reads_stripe(start)
        if stop - start > blocks and end_byte % stripe_bytes:
            tail = self._reads_stripe(stop - blocks)
        self._cache.drop(start, stop)
        return head, tail

    def _reads_stripe(self, first: int) -> int:
        """Read the stripe that begins with a block; return 1 if all of it was held, else 0."""
        blocks = self._blocks_per_stripe
        held_count, _ = self._cache.read(first, first + blocks)
        return held_count // blocks


class SmallWrites:
    """Track the state of the first and the last unit of each write to a replicated pool.

    Data of the `requests_in_flight` is still in memory. In an open loop (0) no data is. If `prefilled`, every
    unit holds data. A partly overwritten unit goes to the log immediately, and in place later, together with
    the other deferred writes of its PG. The store reads the unit first, unless it is in the batch or in
    flight.

    See Ceph v16.2.15, ``src/os/bluestore/BlueStore.cc`` (``_do_write_small``, ``_deferred_queue``).
    """

    def __init__(
        self, store: ObjectStoreModel, *, requests_in_flight: int, prefilled: bool
    ) -> None:
        self._unit_bytes = store.min_alloc_bytes
        self._batch_count = store.deferred_batch_count
        self._prefilled = prefilled
        self._written: set[int] = set()
        self._recent: deque[range] = deque(maxlen=max(0, requests_in_flight - 1))
        # Of each group how many writes its batch has, and which units.
        self._batches: dict[int, tuple[int, set[int]]] = {}

    def states(
        self, requests: ObjectRequests, first_bytes: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Return the states of the first and the last unit of each request; 0 for reads and whole units.

        `first_bytes` is where each request begins in one space that all objects share [B].
        """
        heads = np.zeros(len(requests), dtype=np.int64)
        tails = np.zeros(len(requests), dtype=np.int64)
        end_bytes = first_bytes + requests.lengths_bytes
        writes = np.flatnonzero(requests.is_write)
        columns = (writes, first_bytes[writes], end_bytes[writes])
        groups = requests.groups[writes].tolist()
        rows = zip(*(column.tolist() for column in columns), groups, strict=True)
        for index, start_byte, end_byte, group in rows:
            heads[index], tails[index] = self._write(start_byte, end_byte, group)
        return heads, tails

    def _write(self, start_byte: int, end_byte: int, group: int) -> tuple[int, int]:
        """Remember a write; return the states of its first and its last unit."""
        unit_bytes = self._unit_bytes
        touched = range(start_byte // unit_bytes, -(-end_byte // unit_bytes))
        head = 0
        tail = 0
        if start_byte % unit_bytes or end_byte - start_byte < unit_bytes:
            head = self._state(touched[0], group)
        if end_byte % unit_bytes:
            tail = head if len(touched) == 1 else self._state(touched[-1], group)
        if not self._prefilled:
            self._written.update(touched)
        self._recent.append(touched)
        return head, tail

    def _state(self, unit: int, group: int) -> int:
        """Return the state of a unit that is written in part, which joins its group's batch."""
        if not self._prefilled and unit not in self._written:
            return FRESH
        count, waiting = self._batches.get(group, (0, set()))
        state = STORED
        if unit in waiting:
            state = DEFERRED
        elif any(unit in touched for touched in self._recent):
            state = IN_MEMORY
        if count + 1 >= self._batch_count:
            self._batches[group] = (0, set())
        else:
            waiting.add(unit)
            self._batches[group] = (count + 1, waiting)
        return state


class DiskHeads:
    """Find the requests that begin where the previous ones of their disks have ended.

    Parameters
    ----------
    acting
        OSDs of each placement group, shape (groups, width), below 0 for none.
    reads_one
        True if a read visits one member of its placement group, else all.

    Notes
    -----
    As with caches, the order of issue decides. An object is contiguous on each of its disks.
    """

    def __init__(self, acting: IntArray, *, reads_one: bool) -> None:
        self._members = [[osd for osd in row if osd >= 0] for row in acting.tolist()]
        self._reads_one = reads_one
        # Object and offset at which the last request of each OSD has ended.
        self._ends: dict[int, tuple[int, int]] = {}

    def follow(self, requests: ObjectRequests) -> list[bool]:
        """Return True for each request that continues on all of its disks, and record the requests."""
        columns = (
            requests.is_write,
            requests.objects,
            requests.groups,
            requests.offsets_bytes,
            requests.ends_bytes,
        )
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [self._continues(*row) for row in rows]

    def _continues(
        self, is_write: bool, of_object: int, group: int, start_byte: int, end_byte: int
    ) -> bool:
        osds = self._members[group]
        if self._reads_one and not is_write:
            osds = osds[:1]
        begin = (of_object, start_byte)
        continues = all(self._ends.get(osd) == begin for osd in osds)
        self._ends.update(dict.fromkeys(osds, (of_object, end_byte)))
        return continues


class ObjectSizes:
    """The sizes of objects that writes fill, in the order of issue."""

    def __init__(self) -> None:
        # In ascending order of the objects.
        self._objects = np.zeros(0, dtype=np.int64)
        self._sizes_bytes = np.zeros(0, dtype=np.int64)

    def before(self, objects: IntArray, ends_bytes: IntArray) -> IntArray:
        """Return the size of each request's object before it [B], and remember those after the last one.

        `ends_bytes` is where writes end, 0 for reads.
        """
        order = np.argsort(objects, kind="stable")
        sorted_objects = objects[order]
        sorted_ends = ends_bytes[order]
        is_first = np.r_[True, sorted_objects[1:] != sorted_objects[:-1]]
        first = np.flatnonzero(is_first)
        counts = np.diff(np.r_[first, len(objects)])
        rows = self._places(sorted_objects[first])
        before = self._sizes_bytes[rows]
        # A running maximum within each object: offset the objects so far apart that the
        # maximum of one never reaches into the next.
        span = int(max(sorted_ends.max(initial=0), before.max(initial=0))) + 1
        lift = np.repeat(np.arange(len(first), dtype=np.int64) * span, counts)
        reached = np.maximum(sorted_ends, np.repeat(before, counts))
        running = np.maximum.accumulate(reached + lift) - lift
        sizes = np.empty_like(running)
        sizes[1:] = running[:-1]
        sizes[first] = before
        self._sizes_bytes[rows] = running[first + counts - 1]
        result = np.empty_like(sizes)
        result[order] = sizes
        return result

    def _places(self, objects: IntArray) -> IntArray:
        """Return the rows of objects in ascending order. New ones have size 0."""
        positions = np.searchsorted(self._objects, objects)
        known = np.r_[self._objects, -1][positions] == objects
        if not known.all():
            new = positions[~known]
            self._objects = np.insert(self._objects, new, objects[~known])
            self._sizes_bytes = np.insert(self._sizes_bytes, new, 0)
            positions = np.searchsorted(self._objects, objects)
        return positions

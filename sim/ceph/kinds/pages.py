"""Pages that the primaries of an optimised pool keep, in order of issue."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from stripesim.models.coding import PAGE_BYTES, ShardExtent, WritePlan
from stripesim.models.coding.optimised.extent_cache import LINE_BYTES, ExtentCacheModel
from stripesim.sim.ceph.kinds.requests import ObjectRequests
from stripesim.sim.ceph.paths.optimised import Pages
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.engine.graph import IntArray

# Pages of one line as bits: those of shard 0 first.
Mask = int
# Number of an object and of a line in it.
Line = tuple[int, int]


class PageCache:
    """Least-recently-used lines of pages, one list for each operation queue of an OSD.

    The rules are those of `ExtentCacheModel`. It is evaluated at planning, in order of issue.
    """

    def __init__(self, model: ExtentCacheModel) -> None:
        self._capacity_pages = model.bytes_per_op_shard // PAGE_BYTES
        self._lines: defaultdict[int, OrderedDict[Line, Mask]] = defaultdict(
            OrderedDict
        )
        self._held_pages: defaultdict[int, int] = defaultdict(int)

    def held(self, queue: int, line: Line) -> Mask:
        """Return the pages of a line that a queue holds."""
        return self._lines[queue].get(line, 0)

    def add(self, queue: int, line: Line, pages: Mask) -> None:
        """Add pages to a line, now the newest of its queue, and drop the oldest lines beyond the capacity."""
        lines = self._lines[queue]
        before = lines.pop(line, 0)
        lines[line] = before | pages
        self._held_pages[queue] += (pages & ~before).bit_count()
        while self._held_pages[queue] > self._capacity_pages:
            _, dropped = lines.popitem(last=False)
            self._held_pages[queue] -= dropped.bit_count()


class HeldPages:
    """Number the sets of pages that writes need and primaries hold. Number 0 is the empty set."""

    def __init__(self) -> None:
        self._sets: list[Pages] = [frozenset()]
        self._numbers: dict[Pages, int] = {frozenset(): 0}

    def number(self, pages: Pages) -> int:
        """Return the number of a set."""
        if pages not in self._numbers:
            self._numbers[pages] = len(self._sets)
            self._sets.append(pages)
        return self._numbers[pages]

    def __getitem__(self, number: int) -> Pages:
        return self._sets[number]


class WriteMemory:
    """Find the held pages that each write would read, and record what writes read and write."""

    def __init__(self, pool: Pool, cache: PageCache, numbers: HeldPages) -> None:
        geometry = pool.geometry
        self._pool = pool
        self._cache = cache
        self._numbers = numbers
        self._stripe_bytes = geometry.stripe_bytes
        self._unit_pages = geometry.stripe_unit_bytes // PAGE_BYTES
        line_bytes = max(LINE_BYTES, geometry.stripe_unit_bytes)
        self._line_pages = line_bytes // PAGE_BYTES
        # Every shard that may lead plans alike.
        self._context = pool.context(pool.leaders[0], frozenset())
        self._plans = lru_cache(maxsize=1 << 14)(self._plan)

    def held_numbers(self, requests: ObjectRequests) -> IntArray:
        """Return the number of the set of held pages of each write, 0 for reads."""
        numbers = np.zeros(len(requests), dtype=np.int64)
        writes = np.flatnonzero(requests.is_write)
        columns = (
            requests.offsets_bytes,
            requests.lengths_bytes,
            requests.sizes_bytes,
            requests.objects,
            self._queues(requests.groups),
        )
        rows = zip(*(column[writes].tolist() for column in columns), strict=True)
        for index, row in zip(writes.tolist(), rows, strict=True):
            numbers[index] = self._write(*row)
        return numbers

    def _queues(self, groups: IntArray) -> IntArray:
        """Return the operation queue of the primary of each placement group."""
        cluster = self._pool.cluster
        primaries = cluster.acting[groups, self._pool.primaries[groups]]
        queues: IntArray = cluster.worker_resource(primaries, groups)
        return queues

    def _write(
        self, offset: int, length: int, size: int, of_object: int, queue: int
    ) -> int:
        """Record a write and return the number of its held pages, relative to the write's first stripe."""
        reads, used = self._plans(offset, length, size)
        first_page = offset // self._stripe_bytes * self._unit_pages
        held: list[tuple[int, int]] = []
        for line, pages in reads:
            unread = pages & self._cache.held(queue, (of_object, line))
            held += self._pages_of(line, unread, first_page)
        for line, pages in used:
            self._cache.add(queue, (of_object, line), pages)
        return self._numbers.number(frozenset(held))

    def _plan(
        self, offset: int, length: int, size: int
    ) -> tuple[list[tuple[int, Mask]], list[tuple[int, Mask]]]:
        """Return the pages that a write may read, and all that it leaves in the cache, by line."""
        plans: list[WritePlan] = [
            self._context.plan_write(
                offset_bytes=offset,
                length_bytes=length,
                object_size_bytes=size,
                in_cache=in_cache,
            )
            for in_cache in (False, True)
        ]
        alone, beside_others = plans
        reads = self._masks([*alone.reads, *beside_others.reads])
        used = self._masks([*alone.reads, *alone.writes])
        return sorted(reads.items()), sorted(used.items())

    def _masks(self, extents: Iterable[ShardExtent]) -> dict[int, Mask]:
        masks: defaultdict[int, Mask] = defaultdict(int)
        for extent in extents:
            start = extent.offset_bytes // PAGE_BYTES
            stop = -(-(extent.offset_bytes + extent.length_bytes) // PAGE_BYTES)
            while start < stop:
                line = start // self._line_pages
                end = min(stop, (line + 1) * self._line_pages)
                position = extent.shard * self._line_pages + start % self._line_pages
                masks[line] |= ((1 << (end - start)) - 1) << position
                start = end
        return masks

    def _pages_of(
        self, line: int, pages: Mask, first_page: int
    ) -> list[tuple[int, int]]:
        """Return shard and page of each bit, counting pages from `first_page`."""
        numbered = []
        while pages:
            bit = pages.bit_length() - 1
            pages ^= 1 << bit
            shard, page = divmod(bit, self._line_pages)
            numbered.append((shard, line * self._line_pages + page - first_page))
        return numbered

"""From requests to templates: object, placement group, geometry, all of it before the clock runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lcm
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from stripesim.models.coding import PAGE_BYTES
from stripesim.sim.ceph.caches import ReadCache, SmallWrites, sizes_before
from stripesim.sim.ceph.clients.workload import Requests, SyntheticLoops, Workload
from stripesim.sim.ceph.layout import Layout
from stripesim.sim.ceph.paths import (
    ObjectExtent,
    bare_path,
    can_read_directly,
    device_reads,
    direct_read_path,
    optimised_write_path,
    pipelined_write_path,
    read_path,
    roll_forward_path,
    write_path,
    written_shards,
)
from stripesim.sim.ceph.paths.optimised import OBJECT, ROWS
from stripesim.sim.ceph.paths.pipeline import PARTIAL, WRITTEN
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.conditions import KEY_RANGES
from stripesim.sim.engine.graph import IntArray, Template
from stripesim.sim.engine.program import RequestChunk, RequestSource

# Columns of a geometry key.
_WRITE, _VIEW, _OFFSET, _LENGTH, _SIZE, _HEAD, _TAIL = range(7)


@dataclass(frozen=True)
class Planned:
    """What the planner handed out, one row per part of a request; objects count over all images."""

    owners: IntArray
    is_write: npt.NDArray[np.bool_]
    lengths_bytes: IntArray
    groups: IntArray
    objects: IntArray
    clients: IntArray

    @property
    def columns(self) -> tuple[npt.NDArray[Any], ...]:
        """All columns, in order."""
        return tuple(vars(self).values())

    def at(self, places: IntArray | slice) -> Planned:
        """Return some of the rows."""
        return Planned(*(column[places] for column in self.columns))


class Foreground(RequestSource, Protocol):
    """The client's stream, which remembers what it planned."""

    @property
    def planned(self) -> Planned:
        """All that was planned so far."""


class RequestPlanner:
    """Plans a workload on a pool, chunk by chunk, in the order of issue.

    `layout` is how the placement groups look, if that changes during the run; `beside` plans another workload
    on the same pool, with which it shares templates and read caches. A client gives a request up after
    `timeout_ns` (0: never). A request that crosses objects becomes several parts, each its own request to the
    engine.

    What depends on the sequence of requests is decided here: the size of an object at the time of issue (and
    with it object initialisation) and what the read caches hold. Where erasure-coded writes of a group
    overlap, the planner only names the stripes of each request; which of them are in flight is asked in time.
    Two requests share a template if they are alike up to a shift by whole stripes (or allocation units, for
    copies) of the object.
    """

    reports = False
    feed = False

    def __init__(
        self,
        pool: Pool,
        book: Book,
        workload: Workload | SyntheticLoops,
        *,
        prefilled: bool,
        layout: Layout | None = None,
        timeout_ns: int = 0,
        beside: RequestPlanner | None = None,
    ) -> None:
        self.depth = workload.depth
        self.timeout_ns = timeout_ns
        self._layout = layout or Layout(pool)
        # What is needed to plan a request again; kept only where that can happen.
        self._keep = layout is not None
        self._shapes: list[IntArray] = []
        self._pool = pool
        self._book = book
        self._workload = workload
        self._prefilled = prefilled
        store = pool.cluster.models.store
        self._erasure = pool.scheme.kind == "erasure"
        ec = pool.cluster.models.ec
        self._optimised = self._erasure and ec.optimised
        self._pipelined = self._erasure and (
            self._optimised or pool.cluster.models.pg_lock.scope == "dispatch"
        )
        unit, alloc = pool.stripe_unit_bytes, store.min_alloc_bytes
        self._granule = pool.geometry.stripe_bytes if self._erasure else alloc
        self._shift = (
            self._granule * (lcm(unit, alloc) // unit) if self._erasure else alloc
        )
        # What a cache holds or does not: a stripe takes one chunk on each of k OSDs, an allocation unit one
        # on one.
        partial = {"stripes": self._granule, "chunks": unit, "pages": PAGE_BYTES}
        self._block = partial[ec.reads] if self._erasure else alloc
        capacity = pool.cluster.osds * store.read_cache_bytes // self._block
        self._cache = ReadCache(capacity)
        self._per_object = -(-pool.object_bytes // self._granule)
        self._sizes: dict[int, int] = {}
        self.templates: dict[tuple[int, ...], int] = {}
        # The same by what a template really depends on: extents within a stripe differ in name only.
        self._alike: dict[tuple[object, ...], int] = {}
        self._roll_forwards: dict[tuple[int, tuple[int, ...] | None], Template] = {}
        self._small: SmallWrites | None = None
        if not self._erasure and store.deferred_batch_count:
            in_flight = workload.depth * getattr(workload, "clients", 1)
            self._small = SmallWrites(store, depth=in_flight, prefilled=prefilled)
        if beside is not None:
            self._cache, self.templates = beside._cache, beside.templates
            self._alike, self._roll_forwards = beside._alike, beside._roll_forwards
        self._owners = 0
        self._planned: list[Planned] = []

    def take(self, count: int) -> RequestChunk:
        """Plan the next requests."""
        return self.plan(self._workload.take(count))

    def plan(self, asked: Requests) -> RequestChunk:
        """Plan requests that come next."""
        requests, owners = self._split(asked)
        pool, object_bytes = self._pool, self._pool.object_bytes
        objects = requests.offsets_bytes // object_bytes
        offsets = requests.offsets_bytes - objects * object_bytes
        groups = pool.groups_of(requests.images, objects)
        # One number per object over all images.
        keys = objects + requests.images * (np.int64(1) << 40)
        sizes = self._sizes_before(requests, keys, offsets)
        templates, bindings = self._plan(requests, keys, offsets, sizes, groups)
        clients = (
            np.zeros(len(groups), dtype=np.int64)
            if requests.clients is None
            else requests.clients
        )
        self._planned.append(
            Planned(
                owners, requests.is_write, requests.lengths_bytes, groups, keys, clients
            )
        )
        return RequestChunk(
            templates=templates,
            bindings=pool.binding_of(bindings, clients),
            groups=groups,
            arrivals_ns=requests.arrivals_ns,
            keys=self._key_ranges(requests, keys, offsets, sizes)
            if self._pipelined
            else None,
        )

    def replan(self, indices: IntArray) -> RequestChunk:
        """Plan requests again as their placement groups look now, with sizes and caches as at first."""
        assert self._keep, "only a planner with a layout can plan again"
        if len(self._shapes) > 1:
            self._shapes = [np.concatenate(self._shapes)]
        groups = self.planned.groups[indices]
        rows = self._shapes[0][indices].copy()
        rows[:, _VIEW], bindings = self._layout.look(
            groups, self.planned.objects[indices]
        )
        return RequestChunk(
            templates=self._templates_of(rows),
            bindings=self._pool.binding_of(bindings, self.planned.clients[indices]),
            groups=groups,
        )

    @property
    def pool(self) -> Pool:
        """The pool that it plans on."""
        return self._pool

    @property
    def newest(self) -> Planned:
        """What was planned last."""
        return self._planned[-1]

    @property
    def planned(self) -> Planned:
        """All that was planned so far."""
        if len(self._planned) > 1:
            columns = zip(*(part.columns for part in self._planned), strict=True)
            self._planned = [Planned(*(np.concatenate(column) for column in columns))]
        return self._planned[0]

    def _split(self, requests: Requests) -> tuple[Requests, IntArray]:
        """Cut requests at the borders of objects."""
        size = self._pool.object_bytes
        start, length = requests.offsets_bytes, requests.lengths_bytes
        parts = np.maximum(1, (start + length - 1) // size - start // size + 1)
        owners = np.repeat(np.arange(len(requests), dtype=np.int64), parts)
        if len(owners) > len(requests):
            index = np.arange(len(owners)) - np.repeat(np.cumsum(parts) - parts, parts)
            begin = np.maximum(start[owners], (start[owners] // size + index) * size)
            end = np.minimum(
                start[owners] + length[owners],
                (start[owners] // size + index + 1) * size,
            )
            requests = replace(
                requests.at(owners), offsets_bytes=begin, lengths_bytes=end - begin
            )
        owners += self._owners
        self._owners += len(np.unique(owners))
        return requests, owners

    def _sizes_before(
        self, requests: Requests, keys: IntArray, offsets: IntArray
    ) -> IntArray:
        if self._prefilled or not len(requests):
            return np.full(len(requests), self._pool.object_bytes, dtype=np.int64)
        ends = np.where(requests.is_write, offsets + requests.lengths_bytes, 0)
        return sizes_before(keys, offsets, ends, self._sizes)

    def _key_ranges(
        self, requests: Requests, keys: IntArray, offsets: IntArray, sizes: IntArray
    ) -> IntArray:
        """Name the stripes that each write writes, and the partial one that it asks for first."""
        if self._optimised:
            return self._page_ranges(requests, keys, offsets)
        stripe = self._granule
        ends = offsets + requests.lengths_bytes
        first, stop, old_stop = (
            offsets // stripe,
            -(-ends // stripe),
            -(-sizes // stripe),
        )
        partial = np.where(
            (offsets % stripe != 0) & (first < old_stop), first, stop - 1
        )
        ranges = np.zeros((len(requests), KEY_RANGES, 2), dtype=np.int64)
        ranges[:, WRITTEN, 0], ranges[:, WRITTEN, 1] = np.minimum(first, old_stop), stop
        ranges[:, PARTIAL, 0], ranges[:, PARTIAL, 1] = partial, partial + 1
        ranges += (keys * self._per_object)[:, None, None]
        return ranges

    def _page_ranges(
        self, requests: Requests, keys: IntArray, offsets: IntArray
    ) -> IntArray:
        """Name the pages of a shard that each write writes on any of them, and its object."""
        k, unit = self._pool.geometry.k, self._pool.geometry.stripe_unit_bytes
        last_bytes = offsets + requests.lengths_bytes - 1
        first, last = offsets // unit, last_bytes // unit
        alone = first == last
        # A chunk that follows in the same stripe, or comes before, makes the run begin or end at its border.
        start = first // k * unit + np.where(
            alone | (first % k == k - 1), offsets % unit, 0
        )
        stop = last // k * unit + np.where(
            alone | (last % k == 0), last_bytes % unit + 1, unit
        )
        pages = self._per_object * unit // PAGE_BYTES
        base = keys * (pages + 1)
        ranges = np.zeros((len(requests), KEY_RANGES, 2), dtype=np.int64)
        ranges[:, ROWS, 0], ranges[:, ROWS, 1] = (
            start // PAGE_BYTES,
            -(-stop // PAGE_BYTES),
        )
        ranges[:, OBJECT, 0], ranges[:, OBJECT, 1] = pages, pages + 1
        ranges += base[:, None, None]
        return ranges

    def _plan(
        self,
        requests: Requests,
        keys: IntArray,
        offsets: IntArray,
        sizes: IntArray,
        groups: IntArray,
    ) -> tuple[IntArray, IntArray]:
        if not len(requests):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        lengths, is_write = requests.lengths_bytes, requests.is_write
        head, tail = self._cached(keys, offsets, lengths, sizes, is_write)
        if self._small is not None:
            # A write's own columns say what is known of its units; a read's, what the caches hold.
            space = keys * self._per_object * self._granule + offsets
            for column, states in zip(
                (head, tail), self._small.states(requests, space, groups), strict=True
            ):
                column[is_write] = states[is_write]
        rows = np.empty((len(requests), 7), dtype=np.int64)
        rows[:, _WRITE], rows[:, _LENGTH] = is_write, lengths
        rows[:, _VIEW], bindings = self._layout.look(groups, keys)
        rows[:, _HEAD], rows[:, _TAIL] = head, tail
        # Shift request and object together by whole periods of the layout. Only stripes are filled from the
        # object's end to the request: there the distance matters, for a copy it does not.
        whole_size = -(-sizes // self._granule) * self._granule
        # An optimised object has holes instead.
        base = (
            np.minimum(offsets, whole_size)
            if self._erasure and not self._optimised
            else offsets
        )
        base = base // self._shift * self._shift
        rows[:, _OFFSET] = offsets - base
        # Beyond the request's last granule the size makes no difference.
        reach = -(-(offsets + lengths - base) // self._granule) * self._granule
        rows[:, _SIZE] = np.clip(sizes - base, 0, reach)
        if self._keep:
            self._shapes.append(rows)
        return self._templates_of(rows), bindings

    def _templates_of(self, rows: IntArray) -> IntArray:
        unique, inverse = np.unique(rows, axis=0, return_inverse=True)
        found = np.array(
            [self._template(tuple(row)) for row in unique.tolist()], dtype=np.int64
        )
        return found[inverse.reshape(-1)]

    def _cached(
        self,
        keys: IntArray,
        offsets: IntArray,
        lengths: IntArray,
        sizes: IntArray,
        is_write: npt.NDArray[np.bool_],
    ) -> tuple[IntArray, IntArray]:
        """Count the granules at both ends of a write that are not read from a device; of a read, blocks."""
        head, tail = (
            np.zeros(len(keys), dtype=np.int64),
            np.zeros(len(keys), dtype=np.int64),
        )
        if not self._cache.capacity:
            return head, tail
        granule, block, cache = self._granule, self._block, self._cache
        blocks = granule // block
        first = keys * self._per_object * blocks + offsets // block
        stop = keys * self._per_object * blocks - (-(offsets + lengths) // block)
        for index, (low, high, write) in enumerate(
            zip(first.tolist(), stop.tolist(), is_write.tolist(), strict=True)
        ):
            if not write:
                if offsets[index] < sizes[index]:
                    head[index], tail[index] = cache.read(low, high)
                continue
            if self._erasure and not self._optimised:
                # A partial stripe is read before it is written, and may be held.
                start, end = low // blocks * blocks, -(-high // blocks) * blocks
                if offsets[index] % granule or lengths[index] < granule:
                    head[index] = cache.read(start, start + blocks)[0] // blocks
                if end - start > blocks and (offsets[index] + lengths[index]) % granule:
                    tail[index] = cache.read(end - blocks, end)[0] // blocks
                cache.drop(start, end)
            else:
                cache.drop(low, high)
        return head, tail

    def _roll_forward(
        self, view: int, shards: tuple[int, ...] | None = None
    ) -> Template:
        """Return the roll-forward of these shards (None: all) of one view, which its writes share."""
        key = (view, shards)
        if key not in self._roll_forwards:
            self._roll_forwards[key] = roll_forward_path(
                self._layout.contexts[view], shards
            )
            self._book.add(self._roll_forwards[key])
        return self._roll_forwards[key]

    def _template(self, key: tuple[int, ...]) -> int:
        found = self.templates.get(key)
        if found is None:
            essence = self._essence(key)
            if essence not in self._alike:
                self._alike[essence] = self._book.add(self.compiled(key))
            found = self.templates[key] = self._alike[essence]
        return found

    def _essence(self, key: tuple[int, ...]) -> tuple[object, ...]:
        """Return what a template depends on beyond the models: of an erasure code the plan, in stripes."""
        write, view, offset, length, size, head, tail = key
        context = self._layout.contexts[view]
        if not self._erasure:
            return key
        extent = ObjectExtent(
            offset_bytes=offset, length_bytes=length, object_size_bytes=size
        )
        if self._optimised and write:
            plans = (
                context.plan_write(**extent),
                context.plan_write(**extent, in_cache=True),
            )
            return (view, length, size, *plans)
        if self._block != self._granule and not write:
            return key
        if not write:
            return (view, context.plan_read(**extent), head, tail)
        stripes = context.geometry.stripe_count(size)
        return (
            view,
            length,
            context.plan_write(**extent),
            stripes,
            self._cached_stripes(key),
        )

    def _cached_stripes(self, key: tuple[int, ...]) -> frozenset[int]:
        """Return which of the stripes that a write touches need no device read."""
        _, view, offset, length, _, head, tail = key
        first, stop = self._layout.contexts[view].geometry.stripe_range(offset, length)
        return frozenset(({first} if head else set()) | ({stop - 1} if tail else set()))

    def compiled(self, key: tuple[int, ...], *, pause_ns: float = 0) -> Template:
        """Compile a request of some shape; `pause_ns` as of `write_path`, not in a pipeline."""
        assert not (pause_ns and self._pipelined)
        write, view, offset, length, size, head, tail = key
        context = self._layout.contexts[view]
        if context.scheme.name == "none":
            blocks_bytes = context.models.ssd.blocks_bytes(length)
            return bare_path(
                context,
                write=bool(write),
                length_bytes=length,
                device_bytes=blocks_bytes,
            )
        extent = ObjectExtent(
            offset_bytes=offset, length_bytes=length, object_size_bytes=size
        )
        if write and self._optimised:
            shards = written_shards(context.plan_write(**extent))
            return optimised_write_path(
                context, **extent, roll_forward=self._roll_forward(view, shards)
            )
        if write:
            cached = self._cached_stripes(key)
            if self._pipelined:
                forward = self._roll_forward(view)
                return pipelined_write_path(
                    context, **extent, cached_stripes=cached, roll_forward=forward
                )
            states = (head, tail) if self._small else None
            return write_path(
                context,
                **extent,
                cached_stripes=frozenset() if states else cached,
                unit_states=states,
                pause_ns=pause_ns,
            )
        # Of a cached stripe each source holds a chunk.
        per_source = self._block
        if self._erasure and context.models.ec.reads == "stripes":
            per_source = context.geometry.stripe_unit_bytes
        cached_ends = {
            "cached_head_bytes": head * per_source,
            "cached_tail_bytes": tail * per_source,
        }
        if self._erasure:
            plan = context.plan_read(**extent)
            if can_read_directly(context, plan):
                devices = device_reads(context, **extent, **cached_ends)
                return direct_read_path(
                    context,
                    offset_bytes=offset,
                    length_bytes=length,
                    plan=plan,
                    device_bytes=devices,
                )
        return read_path(context, **extent, **cached_ends)

"""Map S3 requests to op graphs and bindings before they enter the engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from stripesim.sim.ceph import roles
from stripesim.sim.ceph.clients.objects import S3Load, S3Requests
from stripesim.sim.ceph.clients.workload import (
    Requests,
    SyntheticLoops,
    SyntheticStream,
    next_numbers,
)
from stripesim.sim.ceph.gateway.layout import ObjectLayouts
from stripesim.sim.ceph.gateway.paths import WRITING_OPS, S3Op, S3Paths
from stripesim.sim.ceph.gateway.places import ObjectPlaces
from stripesim.sim.ceph.kinds import kind_of
from stripesim.sim.ceph.paths import PathContext
from stripesim.sim.ceph.planner import (
    CompiledGraphs,
    ObjectWrite,
    Planned,
    PlanRecorder,
)
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.checks import taken
from stripesim.sim.engine.columns import Columns
from stripesim.sim.engine.conditions import KEY_RANGES
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.engine.program import RequestChunk, with_client

#: Updates of a bucket index by a request that writes: prepare and complete.
_INDEX_UPDATES = 2


@dataclass(frozen=True)
class _PlannedObjects(Columns):
    """Columns that a planner needs to plan requests again, one row per part."""

    ops: IntArray  #: Number of the operation
    sizes: IntArray
    slots: IntArray
    clients: IntArray
    gateways: IntArray  #: Gateway that each request uses as long as it is there
    items: IntArray  #: Number of the head and of each tail, shape (n, objects)


class S3Planner(PlanRecorder):
    """Plan a load on buckets, chunk by chunk, in order of issue.

    Parameters
    ----------
    pool, book
        The data pool and the templates and bindings of the run.
    workload
        Source of the requests.
    timeout_ns
        Timeout of a request [ns], or 0 for no timeout.
    compiled
        Graphs that need not be built, by an earlier planner of an equal pool.
    layouts
        State of the placement groups, if it changes during the run.
    """

    def __init__(
        self,
        pool: Pool,
        book: Book,
        workload: SyntheticStream | SyntheticLoops,
        *,
        timeout_ns: int = 0,
        compiled: CompiledGraphs | None = None,
        layouts: ObjectLayouts | None = None,
    ) -> None:
        assert isinstance(workload.workload, S3Load)
        self.pool = pool
        self.queue_depth = workload.queue_depth
        self.timeout_ns = timeout_ns
        self._workload = workload
        self._load = workload.workload
        self._kind = kind_of(pool)
        self._layouts = layouts
        #: Places of the objects
        self.places = ObjectPlaces(pool, book, self._load.slots)
        if layouts is not None:
            self.places = layouts.places
        self._objects: list[_PlannedObjects] = []
        self._book = book
        self._templates: dict[tuple[object, ...], int] = {}
        self._compiled: CompiledGraphs = {} if compiled is None else compiled
        self._turns = np.zeros(pool.cluster.clients, dtype=np.int64)
        self._owners = 0
        # Objects and parts that requests store [count].
        self._stored = 0
        super().__init__()

    def take(self, count: int) -> RequestChunk:
        """Plan the next requests."""
        return self.plan(self._workload.take(count))

    def plan(self, requests: Requests) -> RequestChunk:
        """Plan the given requests of a workload, which follow those already planned."""
        wanted = "S3Requests, none of them at the end"
        requests, owners = self._load.in_parts(
            taken(requests, S3Requests, "workload", wanted)
        )
        assert requests.clients is not None
        slots = requests.offsets_bytes
        count = len(requests)
        groups = self.places.groups[slots][:, 0]
        objects = _PlannedObjects(
            requests.ops,
            requests.sizes,
            slots,
            requests.clients,
            self._gateways_of(requests.clients),
            self._items(requests),
        )
        if self._layouts is not None:
            groups = self._layouts.groups_of(
                requests.ops, requests.sizes, slots, objects.gateways
            )
            self._objects.append(objects)
        planned = Planned(
            owners=self._owners + owners,
            is_write=requests.is_write,
            lengths_bytes=requests.lengths_bytes,
            groups=groups,
            objects=slots,
            clients=requests.clients,
            images=np.zeros(count, dtype=np.int64),
            shapes=np.zeros(count, dtype=np.int64),
        )
        self._owners += int(owners[-1]) + 1 if count else 0
        self.record(planned)
        return replace(
            self._chunk(objects, groups),
            arrivals_ns=requests.arrivals_ns,
            continues=np.diff(owners, prepend=-1) == 0,
        )

    @property
    def changes_count(self) -> int:
        """Number of changes of groups and gateways: plans before the last one are out of date [count]."""
        return 0 if self._layouts is None else self._layouts.changes_count

    def replan(self, indices: IntArray) -> RequestChunk:
        """Replan requests for the current state of their placement groups."""
        return self._chunk(
            self._all_objects().at(indices), self.planned.groups[indices]
        )

    def written(self, rows: IntArray) -> IntArray:
        """Return placement group and object of each write of requests, shape (2, writes)."""
        writes = [
            (write.group, write.item)
            for row in rows.tolist()
            for write in self.writes_of(row)
        ]
        return np.array(writes, dtype=np.int64).reshape(-1, 2).T

    def writes_of(self, row: int) -> Iterator[ObjectWrite]:
        """Yield what a request writes: its head, its tails, and each update of the bucket index."""
        assert self._layouts is not None
        objects = self._all_objects()
        op = int(objects.ops[row])
        if self._load.op_name(op) not in WRITING_OPS:
            return
        footprint = self._layouts.footprint(op, int(objects.sizes[row]))
        assert self.pool.cluster.gateways is not None
        own = self.pool.cluster.gateways.roles
        slot = objects.slots[[row]]
        (groups,) = self.places.groups[slot].tolist()
        items = objects.items[row].tolist()
        for number in range(footprint.objects):
            first = own.tail(number - 1) if number else own.head
            of_object = range(first, first + roles.role_count(own.width))
            yield ObjectWrite(groups[number], items[number], of_object)
        index_group = self.places.groups_count + self.places.index_groups(slot)[0, 0]
        shard = self.places.index_shards(slot)[0, 0]
        first = own.index(0)
        of_object = range(first, first + roles.role_count(own.index_width))
        for _ in range(_INDEX_UPDATES):
            yield ObjectWrite(int(index_group), int(shard), of_object)

    def _all_objects(self) -> _PlannedObjects:
        if len(self._objects) > 1:
            self._objects = [_PlannedObjects.joined(self._objects)]
        return self._objects[0]

    def _items(self, requests: S3Requests) -> IntArray:
        """Return the numbers of the heads and tails of requests: new ones for what is stored."""
        count = len(requests)
        objects = self.places.groups.shape[1]
        if self._layouts is None:
            return np.zeros((count, objects), dtype=np.int64)
        items = self._layouts.existing_items(requests.offsets_bytes)
        names = [self._load.op_name(op) for op in requests.ops.tolist()]
        stores = np.isin(names, ("put", "part"))
        stored = int(stores.sum())
        first = self._layouts.first_new + 1 + self._stored * objects
        new = first + np.arange(stored * objects, dtype=np.int64)
        items[stores] = new.reshape(stored, objects)
        self._stored += stored
        return items

    def _chunk(self, objects: _PlannedObjects, groups: IntArray) -> RequestChunk:
        """Return engine requests for the current state of their placement groups."""
        slots = objects.slots
        layouts = self._layouts
        if layouts is None:
            views = np.asarray(self.pool.views)[self.places.groups[slots]]
            index_views = np.zeros((len(slots), 0), dtype=np.int64)
            rows = self.places.rows_of(slots)
        else:
            views, index_views, rows = layouts.states_of(slots, objects.items)
        keys = np.zeros((len(slots), KEY_RANGES, 2), dtype=np.int64)
        return RequestChunk(
            templates=self._templates_of(objects, views, index_views),
            bindings=with_client(rows, self._client_rows(objects)),
            groups=groups,
            keys=keys,
        )

    def _gateways_of(self, clients: IntArray) -> IntArray:
        """Return the gateway that each request's client uses next."""
        gateways = self.pool.cluster.gateways
        assert gateways is not None
        spread = gateways.spread_of(self.pool.cluster.clients)
        turns = np.zeros_like(clients)
        if spread > 1:
            turns = next_numbers(clients, self._turns) % spread
        return (clients * spread + turns) % gateways.count

    def _client_rows(self, objects: _PlannedObjects) -> IntArray:
        """Return the row of each request's client with its gateway, or the one that replaces it."""
        gateways = self.pool.cluster.gateways
        assert gateways is not None
        used = objects.gateways
        if self._layouts is not None:
            used = self._layouts.substitutes[used]
        first = objects.clients * gateways.bound_of(self.pool.cluster.clients)
        return first + (used - first) % gateways.count

    def _templates_of(
        self, objects: _PlannedObjects, views: IntArray, index_views: IntArray
    ) -> IntArray:
        """Return the template of each request, for its operation, its size and the states of its groups."""
        columns = np.column_stack([objects.ops, objects.sizes, views, index_views])
        rows = list(map(tuple, columns.tolist()))
        count = 2 + views.shape[1]
        templates = {
            row: self._template(row[0], row[1], row[2:count], row[count:])
            for row in sorted(set(rows))
        }
        return np.array([templates[row] for row in rows], dtype=np.int64)

    def _template(
        self,
        op_number: int,
        size: int,
        views: tuple[int, ...],
        index_views: tuple[int, ...],
    ) -> int:
        op: S3Op = self._load.op_name(op_number)  # type: ignore[assignment]
        contexts = self.pool.contexts
        index_contexts: list[PathContext] = []
        if self._layouts is not None:
            contexts = self._layouts.data.contexts
            index_contexts = self._layouts.index.contexts
        paths = S3Paths(
            self._kind,
            [contexts[view] for view in views],
            self._load.tls,
            [index_contexts[view] for view in index_views],
        )
        # The states of further placement groups make no difference.
        named = (
            *paths.contexts[: paths.objects_count(op, size)],
            *paths.index_contexts[: paths.index_objects_count(op)],
        )
        states = tuple(context.state for context in named)
        key = ("s3", op, size, states, self._load.tls)
        if key not in self._templates:
            if key not in self._compiled:
                self._compiled[key] = paths.compile(op, size)
            self._templates[key] = self._book.add(self._compiled[key])
        return self._templates[key]

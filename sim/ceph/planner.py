"""Map requests to objects, placement groups and op graph templates before they enter the engine.

`RequestPlanner` plans one workload. The kind of pool determines the graph of a request, see
`stripesim.sim.ceph.kinds`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from stripesim.sim.ceph import roles
from stripesim.sim.ceph.clients.workload import Requests, SyntheticLoops, Workload
from stripesim.sim.ceph.kinds import (
    ObjectRequests,
    RequestPlan,
    RequestShape,
    kind_of,
)
from stripesim.sim.ceph.kinds.caches import ObjectSizes
from stripesim.sim.ceph.layout import Layout
from stripesim.sim.ceph.paths import after_object_map
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.checks import taken
from stripesim.sim.engine.columns import Columns
from stripesim.sim.engine.graph import IntArray, Template
from stripesim.sim.engine.program import UNBOUND, RequestChunk, RequestSource

# Exceeds the number of objects of any image [count].
_IMAGE_STRIDE = np.int64(1) << 40
# Codes of rows fit into 64 bits.
_CODES_MAX = 1 << 62
#: In place of the shard that a client reads: it reads through the primary.
NO_READER = -1


@dataclass(frozen=True)
class Planned(Columns):
    """Planned requests, one row per part. Object numbers are unique over all images."""

    owners: IntArray  #: Request number of each part
    is_write: npt.NDArray[np.bool_]
    lengths_bytes: IntArray
    groups: IntArray
    objects: IntArray
    clients: IntArray
    images: IntArray  #: Image of each part, which has its own object map
    shapes: IntArray  #: Shape number of each part, see `PoolGraphs`


class ObjectWrite(NamedTuple):
    """A write of one RADOS object, as part of a request."""

    group: int  #: Placement group
    item: int  #: Number of the object
    roles: range | None  #: Roles of the write in the request's graph, None for all


class Foreground(RequestSource, Protocol):
    """A stream of client requests that records its planned requests."""

    @property
    def planned(self) -> Planned:
        """All requests planned until now."""


class WritingClient(Foreground, Protocol):
    """A stream of client requests that tells what they write, in a run with a director."""

    def written(self, rows: IntArray) -> IntArray:
        """Return placement group and object of each write of requests, shape (2, writes)."""

    def writes_of(self, row: int) -> Iterator[ObjectWrite]:
        """Yield the objects that one request writes."""


#: Op graphs by placement group state and key of the plan.
CompiledGraphs = dict[Hashable, Template]


class PoolGraphs:
    """Op graphs of a pool's requests, one for each request shape and PG state.

    All workloads of a run share the graphs and the read caches of the pool's kind.

    Parameters
    ----------
    pool, book
        The pool that requests go to, and the templates and bindings of the run.
    layout
        State of the placement groups, if it changes during the run.
    compiled
        Graphs that need not be built, by an earlier run on an equal pool. New ones are added.
    """

    def __init__(
        self,
        pool: Pool,
        book: Book,
        layout: Layout | None = None,
        compiled: CompiledGraphs | None = None,
    ) -> None:
        self.kind = kind_of(pool)
        # With a director, the engine's groups tell writes from reads.
        self.engine_groups = layout.engine_groups if layout else None
        self.layout = layout or Layout(pool)
        self.book = book
        self._cluster = pool.cluster
        self._object_map_update = pool.object_map_update
        self._shapes: list[RequestShape] = []
        self._shape_numbers: dict[tuple[Any, ...], int] = {}
        # Row of clients on the primary's host, by row.
        self._rows_at_home: dict[int, int] = {}
        # Template by view, shape and reader, and by state, reader and key of the plan.
        self._templates: dict[tuple[int, int, int], int] = {}
        self._by_plan: dict[Hashable, int] = {}
        self._compiled: CompiledGraphs = {} if compiled is None else compiled

    def number_shapes(self, columns: Sequence[npt.NDArray[Any]]) -> IntArray:
        """Return the number of each request's shape, given the fields of the shapes as columns."""
        codes = row_codes(columns)
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        distinct = zip(*(column[first].tolist() for column in columns), strict=True)
        numbers = [self._number_of(fields) for fields in distinct]
        return np.array(numbers, dtype=np.int64)[inverse]

    def _number_of(self, fields: tuple[Any, ...]) -> int:
        number = self._shape_numbers.get(fields)
        if number is None:
            number = self._shape_numbers[fields] = len(self._shapes)
            self._shapes.append(RequestShape(*fields))
        return number

    def rows_at_home(self, rows: IntArray, clients: IntArray) -> IntArray:
        """Return binding rows that leave the network out where a client runs on the primary's host.

        Parameters
        ----------
        rows
            Row of each request's placement group, shape (requests,).
        clients
            Client of each request, shape (requests,).
        """
        hosts = self._cluster.client_hosts[clients]
        home = self._cluster.host_resource(hosts, "public.tx")
        at_home = self.book.bindings[rows, roles.PUBLIC_TX] == home
        distinct, places = np.unique(rows[at_home], return_inverse=True)
        found = rows.copy()
        found[at_home] = self._all_at_home(distinct)[places]
        return found

    def _all_at_home(self, rows: IntArray) -> IntArray:
        """Return the row of clients on the primary's host for each of some rows."""
        for row in rows.tolist():
            if row not in self._rows_at_home:
                bound = self.book.bindings[[row]]
                bound[:, roles.CLIENT_NETWORK] = UNBOUND
                self._rows_at_home[row] = int(self.book.add_bindings(bound)[0])
        numbers = [self._rows_at_home[row] for row in rows.tolist()]
        return np.array(numbers, dtype=np.int64)

    def templates_of(
        self, views: IntArray, shapes: IntArray, readers: IntArray
    ) -> IntArray:
        """Return the template of each request for its shape, its reader and the state of its placement group.

        Readers are shards whose copies clients read, `NO_READER` for the primary's.
        """
        codes = row_codes([views, shapes, readers])
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        templates = np.zeros(len(first), dtype=np.int64)
        # Templates are numbered in the order in which requests need them.
        for position in np.argsort(first):
            request = first[position]
            templates[position] = self._template(
                int(views[request]), int(shapes[request]), int(readers[request])
            )
        return templates[inverse]

    def _template(self, view: int, number: int, reader: int) -> int:
        template = self._templates.get((view, number, reader))
        if template is None:
            template = self._planned(view, self._shapes[number], reader)
            self._templates[view, number, reader] = template
        return template

    def _planned(self, view: int, shape: RequestShape, reader: int) -> int:
        """Return the template of a new shape, which several shapes may share."""
        context = self.layout.contexts[view]
        state = context.state
        if reader != NO_READER:
            context = context.read_at(reader)
        plan = self.kind.plan(context, shape)
        kind_of_request = (shape.is_write, shape.creates, shape.continues)
        key = (state, reader, kind_of_request, plan.key)
        if key not in self._by_plan:
            if key not in self._compiled:
                self._compiled[key] = self._compile(plan, shape)
            self._by_plan[key] = self.book.add(self._compiled[key])
        return self._by_plan[key]

    def _compile(self, plan: RequestPlan, shape: RequestShape) -> Template:
        template = plan.compile()
        if not shape.creates:
            return template
        assert self._object_map_update is not None
        return after_object_map(self._object_map_update, template)


class PlanRecorder:
    """The record of what a planner has planned, chunk by chunk, in order of issue."""

    reports = False
    feed = False

    def __init__(self) -> None:
        self._planned: list[Planned] = []

    def record(self, planned: Planned) -> None:
        """Add the planned requests of a chunk."""
        self._planned.append(planned)

    @property
    def newest(self) -> Planned:
        """The planned requests of the last chunk."""
        return self._planned[-1]

    @property
    def planned(self) -> Planned:
        """All requests planned until now."""
        if len(self._planned) > 1:
            self._planned = [Planned.joined(self._planned)]
        return self._planned[0]

    def written(self, rows: IntArray) -> IntArray:
        """Return placement group and object of each write of requests, shape (2, writes)."""
        planned = self.planned
        writes = rows[planned.is_write[rows]]
        return np.stack([planned.groups[writes], planned.objects[writes]])

    def writes_of(self, row: int) -> Iterator[ObjectWrite]:
        """Yield the object that a request writes, if it writes."""
        planned = self.planned
        if planned.is_write[row]:
            yield ObjectWrite(int(planned.groups[row]), int(planned.objects[row]), None)


class RequestPlanner(PlanRecorder):
    """Plan a workload on a pool, chunk by chunk, in order of issue.

    A request that spans several objects is split into parts, one per object, which the client issues
    together, as librbd does.

    The planner tracks object sizes and the stores' memory in order of issue. Requests in flight are known
    only at run time, so the graphs themselves check for them.

    Parameters
    ----------
    pool, book
        The pool that requests go to, and the templates and bindings of the run.
    workload
        Source of the requests.
    prefilled
        True if all objects exist in full before the first request.
    graphs
        Graphs and read caches that all workloads of a run share. None makes own ones.
    timeout_ns
        Timeout of a request [ns], or 0 for no timeout.
    every
        Plan one request in this many, each within one object. The others only change the objects and the
        stores' memory: a run then takes the course of one that is this many times longer.
    """

    def __init__(
        self,
        pool: Pool,
        book: Book,
        workload: Workload | SyntheticLoops,
        *,
        prefilled: bool,
        graphs: PoolGraphs | None = None,
        timeout_ns: int = 0,
        every: int = 1,
    ) -> None:
        self.pool = pool
        self.queue_depth = workload.queue_depth
        self.timeout_ns = timeout_ns
        self._workload = workload
        self._prefilled = prefilled
        self._every = every
        self._sample = _Sample(every) if every > 1 else None
        self._graphs = PoolGraphs(pool, book) if graphs is None else graphs
        self._memory = self._graphs.kind.memory(
            requests_in_flight=workload.queue_depth * getattr(workload, "clients", 1),
            prefilled=prefilled,
        )
        self._sizes = ObjectSizes()
        self._owners = 0
        super().__init__()

    def remember(self, requests: Requests) -> None:
        """Record requests before the run in the stores' memory."""
        parts, _ = _split(requests, self.pool.object_bytes)
        self._memory.ends_of(self._locate(parts))

    def take(self, count: int) -> RequestChunk:
        """Plan the next requests."""
        return self.plan(self._workload.take(count * self._every))

    def plan(self, requests: Requests) -> RequestChunk:
        """Plan the given requests of a workload, which follow those already planned, or a sample of them."""
        wanted = "Requests, none of them at the end"
        requests = taken(requests, Requests, "workload", wanted)
        parts, owners = _split(requests, self.pool.object_bytes)
        located = self._locate(parts)
        held = self._memory.ends_of(located)
        if self._sample is not None:
            assert len(parts) == len(requests), "a sampled request crosses objects"
            rows = self._sample.rows_of(located)
            requests = parts = parts.at(rows)
            owners = np.arange(len(rows))
            located = located.at(rows)
            held = held[0][rows], held[1][rows]
        clients = parts.clients
        if clients is None:
            clients = np.zeros(len(parts), dtype=np.int64)
        kind = self._graphs.kind
        shapes = kind.shapes(located, held)
        if self.pool.cluster.object_maps is not None or kind.heads is not None:
            shapes = (*shapes, self._creates(located), self._continues(located))
        planned = Planned(
            owners=self._owners + owners,
            is_write=located.is_write,
            lengths_bytes=located.lengths_bytes,
            groups=located.groups,
            objects=located.objects,
            clients=clients,
            # Each client of a synthetic load has an image. The images of a trace are numbered.
            images=np.maximum(parts.images, clients),
            shapes=self._graphs.number_shapes(shapes),
        )
        self._owners += len(requests)
        self.record(planned)
        return replace(
            self._chunk(planned),
            arrivals_ns=parts.arrivals_ns,
            keys=kind.key_ranges(located),
            continues=_continues(owners) if len(owners) > len(requests) else None,
        )

    def _creates(self, located: ObjectRequests) -> npt.NDArray[np.bool_]:
        """Mark first writes into objects, if images have object maps."""
        if self.pool.cluster.object_maps is None:
            return np.zeros(len(located), dtype=np.bool_)
        return _are_first(located)

    def _continues(self, located: ObjectRequests) -> npt.NDArray[np.bool_]:
        """Mark requests that continue the previous ones of their disks."""
        heads = self._graphs.kind.heads
        if heads is None:
            return np.zeros(len(located), dtype=np.bool_)
        return np.array(heads.follow(located), dtype=np.bool_)

    @property
    def changes_count(self) -> int:
        """Number of changes of placement groups: plans before the last one are out of date [count]."""
        return self._graphs.layout.changes_count

    def replan(self, indices: IntArray) -> RequestChunk:
        """Replan requests for the current state of their groups. Keep sizes and memory of the first plan."""
        return self._chunk(self.planned.at(indices))

    def _locate(self, requests: Requests) -> ObjectRequests:
        """Return the object of each request, its placement group, and its size before the request."""
        object_bytes = self.pool.object_bytes
        numbers = requests.offsets_bytes // object_bytes
        offsets = requests.offsets_bytes - numbers * object_bytes
        objects = numbers + requests.images * _IMAGE_STRIDE
        if self._prefilled or not len(requests):
            sizes = np.full(len(requests), object_bytes, dtype=np.int64)
        else:
            ends = np.where(requests.is_write, offsets + requests.lengths_bytes, 0)
            sizes = self._sizes.before(objects, ends)
        return ObjectRequests(
            is_write=requests.is_write,
            objects=objects,
            groups=self.pool.groups_of(requests.images, numbers),
            offsets_bytes=offsets,
            lengths_bytes=requests.lengths_bytes,
            sizes_bytes=sizes,
        )

    def _chunk(self, planned: Planned) -> RequestChunk:
        """Return engine requests for the current state of their placement groups."""
        graphs = self._graphs
        views, rows = graphs.layout.states_of(
            graphs.book, planned.groups, planned.objects
        )
        groups = planned.groups
        if self._graphs.engine_groups is not None:
            groups = self._graphs.engine_groups.of_clients(groups, planned.is_write)
        readers = self._readers(planned, views, rows)
        if self.pool.has_clients_at_home:
            rows = graphs.rows_at_home(rows, planned.clients)
        return RequestChunk(
            templates=graphs.templates_of(views, planned.shapes, readers),
            bindings=self.pool.binding_of(rows, planned.clients, planned.images),
            groups=groups,
        )

    def _readers(self, planned: Planned, views: IntArray, rows: IntArray) -> IntArray:
        """Return the shard whose copy each request reads, `NO_READER` for writes and the primary's copy.

        A client reads the copy at its site: the primary's if it is there, else the first one.
        """
        readers = np.full(len(views), NO_READER, dtype=np.int64)
        cluster = self.pool.cluster
        if not cluster.models.local_reads or cluster.sites is None:
            return readers
        graphs = self._graphs
        reads = np.flatnonzero(~planned.is_write)
        bound = graphs.book.bindings[rows[reads]]
        width = self.pool.scheme.width
        is_far = cluster.sites.far_members(bound, planned.clients[reads], width)
        contexts = [graphs.layout.contexts[view] for view in views[reads].tolist()]
        for place, (read, context) in enumerate(zip(reads, contexts, strict=True)):
            near = [
                shard
                for shard in range(width)
                if shard not in context.missing and not is_far[place, 1 + shard]
            ]
            if near and context.primary not in near:
                readers[read] = near[0]
        return readers


class _Sample:
    """One request in `every`, and the same share of the first writes into objects."""

    def __init__(self, every: int) -> None:
        self._every = every
        # Requests until now: first writes, and all others.
        self._passed = {True: 0, False: 0}

    def rows_of(self, requests: ObjectRequests) -> IntArray:
        """Return the rows of the next requests that belong to the sample."""
        are_first = _are_first(requests)
        sampled = np.zeros(len(requests), dtype=np.bool_)
        for is_first, passed in self._passed.items():
            rows = np.flatnonzero(are_first == is_first)
            sampled[rows[-passed % self._every :: self._every]] = True
            self._passed[is_first] = passed + len(rows)
        return np.flatnonzero(sampled)


def _are_first(requests: ObjectRequests) -> npt.NDArray[np.bool_]:
    """Return True for each first write into its object."""
    are_first: npt.NDArray[np.bool_] = requests.is_write & (requests.sizes_bytes == 0)
    return are_first


def _continues(owners: IntArray) -> npt.NDArray[np.bool_]:
    """Return True for each part that belongs to the request of the part before it."""
    continues: npt.NDArray[np.bool_] = np.diff(owners, prepend=-1) == 0
    return continues


def row_codes(columns: Sequence[npt.NDArray[Any]]) -> IntArray:
    """Return a number for each row of a table. Equal rows have equal numbers, and others do not."""
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    if not len(codes):
        return codes
    codes_count = 1
    for column in columns:
        values = column.astype(np.int64)
        values -= values.min()
        values_count = int(values.max()) + 1
        if codes_count * values_count > _CODES_MAX:
            # Numbers in the place of large codes and values.
            codes = np.unique(codes, return_inverse=True)[1]
            values = np.unique(values, return_inverse=True)[1]
            codes_count = int(codes.max()) + 1
            values_count = int(values.max()) + 1
        codes = codes * values_count + values
        codes_count *= values_count
    return codes


def _split(requests: Requests, object_bytes: int) -> tuple[Requests, IntArray]:
    """Split requests at object boundaries and return the parts with the request of each."""
    start = requests.offsets_bytes
    end = start + requests.lengths_bytes
    first = start // object_bytes
    last = (end - 1) // object_bytes
    counts = np.maximum(1, last - first + 1)
    owners = np.repeat(np.arange(len(requests), dtype=np.int64), counts)
    if len(owners) == len(requests):
        return requests, owners
    index = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    border = (first[owners] + index) * object_bytes
    begin = np.maximum(start[owners], border)
    stop = np.minimum(end[owners], border + object_bytes)
    parts = replace(
        requests.at(owners), offsets_bytes=begin, lengths_bytes=stop - begin
    )
    return parts, owners

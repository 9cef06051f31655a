"""From requests to templates: object, placement group, shape, all of it before the clock runs.

`RequestPlanner` follows one workload. What a request's graph is belongs to the kind of pool, see
`stripesim.sim.ceph.kinds`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from stripesim.sim.ceph.clients.workload import Requests, SyntheticLoops, Workload
from stripesim.sim.ceph.kinds import ObjectRequests, RequestShape, kind_of
from stripesim.sim.ceph.kinds.caches import sizes_before
from stripesim.sim.ceph.layout import Layout
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.engine.program import RequestChunk, RequestSource

# More than the objects of any image [count].
_IMAGE_STRIDE = np.int64(1) << 40


@dataclass(frozen=True)
class Planned:
    """What a planner handed out, one row per part of a request; objects count over all images."""

    owners: IntArray  #: Number of the request that a part belongs to
    is_write: npt.NDArray[np.bool_]
    lengths_bytes: IntArray
    groups: IntArray
    objects: IntArray
    clients: IntArray
    shapes: IntArray  #: Number of its shape, see `PoolGraphs`

    @property
    def columns(self) -> tuple[npt.NDArray[Any], ...]:
        """All columns, in order."""
        return tuple(vars(self).values())

    def at(self, rows: IntArray | slice) -> Planned:
        """Return some of the rows."""
        return Planned(*(column[rows] for column in self.columns))


class Foreground(RequestSource, Protocol):
    """The client's stream, which remembers what it planned."""

    @property
    def planned(self) -> Planned:
        """All that was planned so far."""


class PoolGraphs:
    """The graphs of a pool's requests: makes one for each shape and state of a group, once.

    All workloads of a run share them, and with them the read caches of the pool's kind.
    """

    def __init__(self, pool: Pool, book: Book, layout: Layout) -> None:
        self.kind = kind_of(pool)
        self.layout = layout
        self._book = book
        self._shapes: list[RequestShape] = []
        self._shape_numbers: dict[tuple[Any, ...], int] = {}
        # Template by view and shape, and by what it really depends on.
        self._templates: dict[tuple[int, int], int] = {}
        self._by_plan: dict[object, int] = {}

    def number_shapes(self, shapes: Iterable[tuple[Any, ...]]) -> IntArray:
        """Return the number of each shape, given by its fields."""
        return np.array([self._number(fields) for fields in shapes], dtype=np.int64)

    def templates_of(self, views: IntArray, shapes: IntArray) -> IntArray:
        """Return the template of each request, by the state of its group and its shape."""
        pairs = zip(views.tolist(), shapes.tolist(), strict=True)
        templates = [self._template(view, number) for view, number in pairs]
        return np.array(templates, dtype=np.int64)

    def _number(self, fields: tuple[Any, ...]) -> int:
        number = self._shape_numbers.get(fields)
        if number is None:
            number = len(self._shapes)
            self._shape_numbers[fields] = number
            self._shapes.append(RequestShape(*fields))
        return number

    def _template(self, view: int, number: int) -> int:
        template = self._templates.get((view, number))
        if template is None:
            template = self._planned(view, self._shapes[number])
            self._templates[view, number] = template
        return template

    def _planned(self, view: int, shape: RequestShape) -> int:
        """Return the template of a shape that is new, which another may have as well."""
        context = self.layout.contexts[view]
        plan = self.kind.plan(context, shape)
        key = (view, shape.is_write, plan.key)
        if key not in self._by_plan:
            self._by_plan[key] = self._book.add(plan.compile())
        return self._by_plan[key]


class RequestPlanner:
    """Plans a workload on a pool, chunk by chunk, in the order of issue.

    A request that crosses objects becomes several parts, each its own request to the engine. What depends on
    the sequence of requests is decided here: the size of an object at the time of issue, and what the stores
    hold in memory. What depends on requests in flight is asked in time, by the graphs.

    Parameters
    ----------
    pool, book
        The pool that requests go to, and the templates and bindings of the run.
    workload
        Where the requests come from.
    prefilled
        Whether all objects exist in full before the first request.
    layout
        State of the placement groups, if it changes during the run.
    timeout_ns
        When a client gives a request up [ns]; 0: never.
    beside
        Planner of another workload on the same pool, with which to share templates and read caches.
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
        self.pool = pool
        self.depth = workload.depth
        self.timeout_ns = timeout_ns
        self._workload = workload
        self._prefilled = prefilled
        if beside is None:
            self._graphs = PoolGraphs(pool, book, layout or Layout(pool))
        else:
            self._graphs = beside._graphs
        self._memory = self._graphs.kind.memory(
            requests_in_flight=workload.depth * getattr(workload, "clients", 1),
            prefilled=prefilled,
        )
        self._sizes_bytes: dict[int, int] = {}
        self._owners = 0
        self._planned: list[Planned] = []

    def take(self, count: int) -> RequestChunk:
        """Plan the next requests."""
        return self.plan(self._workload.take(count))

    def plan(self, requests: Requests) -> RequestChunk:
        """Plan requests that come next."""
        parts, owners = _split(requests, self.pool.object_bytes)
        located = self._locate(parts)
        clients = parts.clients
        if clients is None:
            clients = np.zeros(len(parts), dtype=np.int64)
        kind = self._graphs.kind
        shapes = kind.shapes(located, self._memory.ends_of(located))
        planned = Planned(
            owners=self._owners + owners,
            is_write=located.is_write,
            lengths_bytes=located.lengths_bytes,
            groups=located.groups,
            objects=located.objects,
            clients=clients,
            shapes=self._graphs.number_shapes(shapes),
        )
        self._owners += len(requests)
        self._planned.append(planned)
        return replace(
            self._chunk(planned),
            arrivals_ns=parts.arrivals_ns,
            keys=kind.key_ranges(located),
        )

    def replan(self, indices: IntArray) -> RequestChunk:
        """Plan requests again in the present state of their groups, with sizes and memory as at first."""
        return self._chunk(self.planned.at(indices))

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

    def _locate(self, requests: Requests) -> ObjectRequests:
        """Find the object of each request, its placement group, and its size before the request."""
        object_bytes = self.pool.object_bytes
        numbers = requests.offsets_bytes // object_bytes
        offsets = requests.offsets_bytes - numbers * object_bytes
        objects = numbers + requests.images * _IMAGE_STRIDE
        if self._prefilled or not len(requests):
            sizes = np.full(len(requests), object_bytes, dtype=np.int64)
        else:
            ends = np.where(requests.is_write, offsets + requests.lengths_bytes, 0)
            sizes = sizes_before(objects, ends, self._sizes_bytes)
        return ObjectRequests(
            is_write=requests.is_write,
            objects=objects,
            groups=self.pool.groups_of(requests.images, numbers),
            offsets_bytes=offsets,
            lengths_bytes=requests.lengths_bytes,
            sizes_bytes=sizes,
        )

    def _chunk(self, planned: Planned) -> RequestChunk:
        """Return what the engine needs of requests, in the present state of their placement groups."""
        views, rows = self._graphs.layout.look(planned.groups, planned.objects)
        return RequestChunk(
            templates=self._graphs.templates_of(views, planned.shapes),
            bindings=self.pool.binding_of(rows, planned.clients),
            groups=planned.groups,
        )


def _split(requests: Requests, object_bytes: int) -> tuple[Requests, IntArray]:
    """Cut requests at the borders of objects; return the parts, and the request that each belongs to."""
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

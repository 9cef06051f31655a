"""Map S3 requests to op graphs and bindings before they enter the engine."""

from __future__ import annotations

import numpy as np

from stripesim.sim.ceph import roles
from stripesim.sim.ceph.clients.objects import S3Load, S3Requests
from stripesim.sim.ceph.clients.workload import (
    Requests,
    SyntheticLoops,
    SyntheticStream,
    next_numbers,
)
from stripesim.sim.ceph.gateway.paths import S3Op, S3Paths
from stripesim.sim.ceph.kinds import kind_of
from stripesim.sim.ceph.planner import CompiledGraphs, Planned, PlanRecorder
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.conditions import KEY_RANGES
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.engine.program import (
    UNBOUND,
    Bindings,
    RequestChunk,
    with_client,
)


class ObjectPlaces:
    """Places of objects: placement groups of head and tails, and shards of the bucket index.

    All placement groups hold equally many heads, and equally many of each tail, as with millions of objects.

    Parameters
    ----------
    pool, book
        The data pool, and the bindings of the run, to which those of a place are added when it is needed.
    slots
        Number of places.
    """

    def __init__(self, pool: Pool, book: Book, slots: int) -> None:
        cluster = pool.cluster
        assert cluster.gateways is not None
        self._pool = pool
        self._book = book
        self._gateways = cluster.gateways
        draws = np.random.default_rng(cluster.groups)
        objects = 1 + self._gateways.tails
        #: Placement group of head and tails of each place, shape (slots, objects)
        self.groups = np.stack(
            [_evenly(draws, cluster.groups, slots) for _ in range(objects)], axis=1
        )
        self._shards = _evenly(draws, cluster.index_shards, slots)
        self._rows = np.full(slots, -1, dtype=np.int64)

    def rows_of(self, slots: IntArray) -> IntArray:
        """Return the binding row of each place."""
        new = np.unique(slots[self._rows[slots] < 0])
        if len(new):
            self._rows[new] = self._book.add_bindings(self._bound(new))
        return self._rows[slots]

    def _bound(self, slots: IntArray) -> Bindings:
        """Bind the roles of all RADOS objects of places, shape (n, roles)."""
        gateways = self._gateways
        own = gateways.roles
        cluster = self._pool.cluster
        rows = cluster.unbound_rows(len(slots))
        data = roles.role_count(own.width)
        for number, groups in enumerate(self.groups[slots].T):
            first = own.tail(number - 1) if number else own.head
            rows[:, first : first + data] = cluster.members_rows(
                cluster.acting[groups], self._pool.primaries[groups], groups
            )
            if number:
                _free_client(rows, first)
        for number in range(own.index_shards):
            bucket = self._shards[slots] // gateways.index_shards
            shards = bucket * gateways.index_shards + number
            if own.index_shards == 1:
                shards = self._shards[slots]
            first = own.index(number)
            rows[:, first : first + roles.role_count(own.index_width)] = (
                cluster.index_rows(shards)
            )
            _free_client(rows, first)
        return rows


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
    """

    def __init__(
        self,
        pool: Pool,
        book: Book,
        workload: SyntheticStream | SyntheticLoops,
        *,
        timeout_ns: int = 0,
        compiled: CompiledGraphs | None = None,
    ) -> None:
        assert isinstance(workload.workload, S3Load)
        self.pool = pool
        self.queue_depth = workload.queue_depth
        self.timeout_ns = timeout_ns
        self._workload = workload
        self._load = workload.workload
        self._kind = kind_of(pool)
        #: Places of the objects
        self.places = ObjectPlaces(pool, book, self._load.slots)
        self._book = book
        self._templates: dict[tuple[object, ...], int] = {}
        self._compiled: CompiledGraphs = {} if compiled is None else compiled
        self._turns = np.zeros(pool.cluster.clients, dtype=np.int64)
        self._owners = 0
        super().__init__()

    def take(self, count: int) -> RequestChunk:
        """Plan the next requests."""
        return self.plan(self._workload.take(count))

    def plan(self, requests: Requests) -> RequestChunk:
        """Plan the given requests, which follow those already planned."""
        assert isinstance(requests, S3Requests)
        requests, owners = self._load.in_parts(requests)
        assert requests.clients is not None
        slots = requests.offsets_bytes
        groups = self.places.groups[slots]
        count = len(requests)
        planned = Planned(
            owners=self._owners + owners,
            is_write=requests.is_write,
            lengths_bytes=requests.lengths_bytes,
            groups=groups[:, 0],
            objects=slots,
            clients=requests.clients,
            images=np.zeros(count, dtype=np.int64),
            shapes=np.zeros(count, dtype=np.int64),
        )
        self._owners += int(owners[-1]) + 1 if count else 0
        self.record(planned)
        keys = np.zeros((count, KEY_RANGES, 2), dtype=np.int64)
        return RequestChunk(
            templates=self._templates_of(requests, groups),
            bindings=with_client(
                self.places.rows_of(slots), self._client_rows(requests.clients)
            ),
            groups=planned.groups,
            arrivals_ns=requests.arrivals_ns,
            keys=keys,
            continues=np.diff(owners, prepend=-1) == 0,
        )

    def replan(self, indices: IntArray) -> RequestChunk:
        """Refuse to plan requests once more: runs with gateways have no director."""
        raise NotImplementedError("requests through gateways are planned once")

    def _client_rows(self, clients: IntArray) -> IntArray:
        """Return the row of each request's client with the gateway that it uses next."""
        gateways = self.pool.cluster.gateways
        assert gateways is not None
        spread = gateways.spread_of(self.pool.cluster.clients)
        if spread == 1:
            return clients
        return clients * spread + next_numbers(clients, self._turns) % spread

    def _templates_of(self, requests: S3Requests, groups: IntArray) -> IntArray:
        """Return the template of each request, for its operation, its size and the states of its groups."""
        views = np.asarray(self.pool.views)[groups]
        columns = np.column_stack([requests.ops, requests.sizes, views])
        unique, inverse = np.unique(columns, axis=0, return_inverse=True)
        found = [
            self._template(op, size, tuple(states))
            for op, size, *states in unique.tolist()
        ]
        return np.array(found, dtype=np.int64)[inverse.reshape(-1)]

    def _template(self, op_number: int, size: int, views: tuple[int, ...]) -> int:
        op: S3Op = self._load.op_name(op_number)  # type: ignore[assignment]
        contexts = [self.pool.contexts[view] for view in views]
        paths = S3Paths(self._kind, contexts, self._load.tls)
        # The states of further placement groups make no difference.
        views = views[: paths.objects_count(op, size)]
        key = ("s3", op, size, views, self._load.tls)
        if key not in self._templates:
            if key not in self._compiled:
                self._compiled[key] = paths.compile(op, size)
            self._templates[key] = self._book.add(self._compiled[key])
        return self._templates[key]


def _evenly(draws: np.random.Generator, values: int, count: int) -> IntArray:
    """Return values from 0 in random order, each about equally often."""
    rounds = -(-count // values)
    drawn = [draws.permutation(values) for _ in range(rounds)]
    return np.concatenate(drawn)[:count].astype(np.int64)


def _free_client(rows: Bindings, first: int) -> None:
    """Unbind the client roles of a RADOS object, in whose place a request uses the gateway's."""
    for role in roles.CLIENT_ROLES:
        rows[:, first + role] = UNBOUND

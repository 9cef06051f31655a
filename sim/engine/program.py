"""Input and result of an engine. ENGINE.md in this folder defines the computation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from stripesim.models.problems import ProblemsError
from stripesim.sim.engine.columns import Columns
from stripesim.sim.engine.draws import FACTOR_ONE, FACTOR_POINTS
from stripesim.sim.engine.graph import COUNTERS, IntArray, Template
from stripesim.sim.engine.kinds import Kinds
from stripesim.sim.engine.shares import Share

# Entries of a binding row for an unbound role, and for a role that the request's client binds.
UNBOUND = -1
BY_CLIENT = -2
# A binding holds a row number below these bits and, above them, 1 + the row of the client, or
# 0.
ROW_BITS = 32
#: Integers of any width.
AnyIntArray = npt.NDArray[np.signedinteger[Any]]
#: Resource of each role, row by row.
Bindings = npt.NDArray[np.int32]
# Markers in place of a completion time: not complete, cut off, timed out.
PENDING = -1
CUT = -2
FAILED = -3
# Requests that an engine takes from a stream at a time. Streams that share a book fill it in
# an order that depends on this number, so both engines use the same.
CHUNK = 4096

FIFO, BATCH, POOL, GATE = range(4)
DISCIPLINES = ("fifo", "batch", "pool", "gate")

# Spawned requests are numbered from here, above any client's requests.
SPAWNED_FROM = 1 << 49
# Unit of `Resources.paired_slowdown`, as a divisor of the demand.
PAIRED_UNIT = 1024
# Unit of `Slow.slowdown`, and its highest value. The product with a demand fits in 64 bits.
SLOWDOWN_UNIT = 1000
SLOWDOWN_MAX = 1000 * SLOWDOWN_UNIT
# Upper bound of keys, so that sums of range ends fit in 64 bits.
KEY_MAX = 1 << 60


def _no_values() -> IntArray:
    return np.zeros(0, dtype=np.int64)


@dataclass
class Resources:
    """The resources of a cluster, by index.

    Attributes
    ----------
    names
        Names for reports, such as ``osd.3.ssd``.
    kinds
        Kind of each resource, such as ``ssd``. Utilisation is reported per kind.
    capacities
        Servers, units of a pool, or 1 for a gate, at least 1, shape (resources,).
    disciplines
        `FIFO`, `BATCH`, `POOL` or `GATE`, shape (resources,).
    wake_ns
        Time to wake an idle server or unit [ns], 0 to 2**31 − 1, shape (resources,). A service on
        an idle server takes this much longer. A unit of a pool is a thread: it lengthens the `use`
        that names its `acquire`. Default: 0.
    shares
        Disciplines of queues shared by classes.
    share_indices
        Index into `shares` of a `FIFO` or `POOL`, −1 for a plain queue, shape (resources,).
        Default: −1.
    slice_ns
        Time for which a thread keeps a core while others wait [ns], below 2**31, shape
        (resources,). Only for a `FIFO`. 0 releases the core after each `use`. Default: 0.
    served_by
        The `POOL` whose threads serve a `BATCH` when they have no other work, −1 for none, shape
        (resources,). Default: −1.
    paired
        1 if the servers of a `FIFO` are hardware threads, two per core, shape (resources,).
        Default: 0.
    paired_slowdown
        Extra service time while the other thread of a core works, in 1/`PAIRED_UNIT` of the demand.
    processes
        Process that the threads of a pool belong to, from 0, −1 for none, shape (resources,).
        Default: −1.
    warm_ns
        Time that a wake-up saves right after another thread of its process has run [ns], at most
        `wake_ns`. Applies to cores with a slice.
    cool_ns
        Time after which a wake-up saves nothing [ns]. 0 disables the saving.
    """

    names: Sequence[str]
    kinds: Sequence[str]
    capacities: IntArray
    disciplines: AnyIntArray
    wake_ns: AnyIntArray = field(default_factory=_no_values)
    shares: tuple[Share, ...] = ()
    share_indices: AnyIntArray = field(default_factory=_no_values)
    slice_ns: AnyIntArray = field(default_factory=_no_values)
    served_by: AnyIntArray = field(default_factory=_no_values)
    paired: AnyIntArray = field(default_factory=_no_values)
    paired_slowdown: int = 0
    processes: AnyIntArray = field(default_factory=_no_values)
    warm_ns: int = 0
    cool_ns: int = 0

    def __post_init__(self) -> None:
        self.kinds = Kinds.of(self.kinds)
        self._check_stated()
        absent = {
            "wake_ns": 0,
            "share_indices": -1,
            "slice_ns": 0,
            "served_by": -1,
            "paired": 0,
            "processes": -1,
        }
        for name, nothing in absent.items():
            if not len(getattr(self, name)):
                setattr(self, name, np.full(len(self), nothing, dtype=np.int64))
            assert len(getattr(self, name)) == len(self)
        assert ((self.wake_ns >= 0) & (self.wake_ns < 1 << 31)).all()
        assert (
            0
            <= self.warm_ns
            <= self.wake_ns[self.processes >= 0].min(initial=(1 << 31) - 1)
        )
        served = self.served_by >= 0
        assert (self.disciplines[served] == BATCH).all() and (
            self.capacities[served] == 1
        ).all()

    def __len__(self) -> int:
        return len(self.names)

    def _check_stated(self) -> None:
        """Check what has no default.

        Raises
        ------
        ProblemsError
            If there are more of one than of another, or a capacity or discipline is out of range.
        """
        for name in ("kinds", "capacities", "disciplines"):
            count = len(getattr(self, name))
            if count != len(self):
                raise ProblemsError(
                    f"resources: got {count} {name}, wanted {len(self)}, one for each name"
                )
        capacities = np.asarray(self.capacities)
        if capacities.dtype.kind not in "iu" and len(self):
            raise ProblemsError(
                f"resources: got capacities of type {capacities.dtype}, wanted integers"
            )
        self._check_values("capacity", capacities, capacities >= 1, "at least 1")
        known = np.isin(self.disciplines, range(len(DISCIPLINES)))
        wanted = "FIFO, BATCH, POOL or GATE"
        self._check_values("discipline", self.disciplines, known, wanted)

    def _check_values(
        self, key: str, values: AnyIntArray, valid: npt.NDArray[np.bool_], wanted: str
    ) -> None:
        """Raise an error that names the first resource whose value is not valid."""
        for number in np.flatnonzero(~valid)[:1]:
            raise ProblemsError(
                f"resources: '{self.names[number]}': got {key} {values[number]}, wanted {wanted}"
            )

    @property
    def lasting_servers(self) -> npt.NDArray[np.float64]:
        """Servers or units that may be busy in the long run: under a quota not all, shape (resources,)."""
        most = np.array([share.servers_most for share in self.shares] + [np.inf])
        servers: npt.NDArray[np.float64] = np.minimum(
            self.capacities, most[np.asarray(self.share_indices)]
        )
        return servers

    @property
    def kind_names(self) -> tuple[str, ...]:
        """The distinct kinds, in order of first occurrence."""
        return self.numbered_kinds.names

    @property
    def numbered_kinds(self) -> Kinds:
        """The kinds, with their numbers."""
        return Kinds.of(self.kinds)

    @property
    def kind_indices(self) -> npt.NDArray[np.int16]:
        """Index into `kind_names` of each resource, shape (resources,)."""
        return self.numbered_kinds.indices

    @property
    def flows(self) -> IntArray:
        """Flow of each pool in a fair queue of cores, shape (resources,).

        A flow is a process, or a pool without one.
        """
        return self.flows_of(np.arange(len(self)))

    def flows_of(self, indices: IntArray) -> IntArray:
        """Return the flow of each of some pools, shape (n,)."""
        processes = self.processes[indices]
        own = indices + 1 + self.processes.max(initial=-1)
        return np.where(processes < 0, own, processes)

    @property
    def flow_count(self) -> int:
        """Number of flows, used or not."""
        return len(self) + 1 + int(self.processes.max(initial=-1))

    @property
    def partners(self) -> AnyIntArray:
        """Partner of each resource, shape (resources,), −1 for none.

        A batch server and the pool whose threads run it are partners.
        """
        partners = self.served_by.copy()
        servers = np.flatnonzero(self.served_by >= 0)
        partners[self.served_by[servers]] = servers
        return partners


@dataclass(frozen=True)
class RequestChunk(Columns):
    """Consecutive requests of one stream.

    Attributes
    ----------
    templates
        Template of each request, shape (requests,).
    bindings
        Binding row of each request, or two rows joined by `with_client`, shape (requests,).
    groups
        Placement group of each request, shape (requests,).
    arrivals_ns
        Issue times of an open stream [ns], ascending, shape (requests,). None for a closed loop.
    keys
        Key ranges [first, stop) of each request, shape (requests, KEY_RANGES, 2), with
        0 ≤ first ≤ stop < `KEY_MAX`. None if no template uses keys. Pinning or testing a range takes
        host time in proportion to its length.
    continues
        True for each row that is a further part of the request of the row before it, shape
        (requests,). Such parts are issued together, and their request ends with the last of them. A
        chunk holds whole requests. None if every request has one part.
    """

    templates: IntArray
    bindings: IntArray
    groups: IntArray
    arrivals_ns: IntArray | None = None
    keys: IntArray | None = None
    continues: npt.NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def rows_left(self) -> IntArray:
        """Number of rows from each row to the end of its request, at least 1, shape (requests,)."""
        if self.continues is None:
            return np.ones(len(self), dtype=np.int64)
        ends = np.flatnonzero(~np.append(self.continues[1:], False)) + 1
        rows = np.arange(len(self))
        left: IntArray = ends[np.searchsorted(ends, rows, side="right")] - rows
        return left


class RequestSource(Protocol):
    """A stream of requests, planned in order, chunk by chunk."""

    # Requests, of any number of parts, that may be outstanding in a closed loop. 0 for an open stream.
    queue_depth: int

    def take(self, count: int) -> RequestChunk:
        """Plan the next requests.

        Parameters
        ----------
        count
            Number of requests wanted. The chunk may exceed it slightly.

        Returns
        -------
        RequestChunk
            The requests. An empty chunk ends the stream.
        """


class ListedRequests:
    """A stream of requests known in advance, all of group 0.

    Parameters
    ----------
    templates, bindings
        Template and binding of each request, shape (requests,).
    queue_depth
        Requests that may be outstanding in a closed loop, 0 for an open stream.
    arrivals_ns
        Issue times of an open stream [ns], ascending, shape (requests,).
    """

    def __init__(
        self,
        templates: IntArray,
        bindings: IntArray,
        *,
        queue_depth: int,
        arrivals_ns: IntArray | None = None,
    ) -> None:
        self.queue_depth = queue_depth
        self._all = RequestChunk(
            templates, bindings, np.zeros_like(templates), arrivals_ns
        )
        self._taken = 0

    def take(self, count: int) -> RequestChunk:
        """Return the next requests, at most `count`."""
        part = slice(self._taken, self._taken + count)
        self._taken += count
        return self._all.at(part)


@runtime_checkable
class DirectedSource(RequestSource, Protocol):
    """A stream of requests in a run with a director.

    Attributes
    ----------
    reports
        True if completions of its requests are reported to the director.
    feed
        True if an empty chunk means "nothing now" instead of the end. A feed is asked again after
        a `Wake`. Requests of a feed that are cut off end as `CUT`. Those of other streams are
        issued again.
    timeout_ns
        Time after its issue at which an incomplete request ends as `FAILED` [ns], 0 for no timeout.
    """

    reports: bool
    feed: bool
    timeout_ns: int

    def replan(self, indices: IntArray) -> RequestChunk:
        """Plan requests again for the current state of their placement groups.

        Parameters
        ----------
        indices
            Numbers of the requests within the stream.

        Returns
        -------
        RequestChunk
            The new plan, in the order of `indices`.
        """


@dataclass(frozen=True)
class Report:
    """The completion of a request of a reporting stream.

    Attributes
    ----------
    stream
        Index of the stream.
    index
        Number of the request within its stream, from 0.
    """

    stream: int
    index: int


@dataclass(frozen=True)
class SetGroup:
    """Start a new interval of a placement group.

    Attributes
    ----------
    group
        Number of the group.
    held
        True if its requests wait until it is set again with ``held=False``.
    interrupt
        True if its requests in flight are cut off.
    """

    group: int
    held: bool
    interrupt: bool


@dataclass(frozen=True)
class Stop:
    """Stop resources. Services in progress there are lost."""

    resources: tuple[int, ...]


@dataclass(frozen=True)
class Start:
    """Start resources again, with all servers idle."""

    resources: tuple[int, ...]


@dataclass(frozen=True)
class Slow:
    """Slow servers down, or bring them back to their normal speed.

    Attributes
    ----------
    resources
        Resources with servers: each a `FIFO` or a `BATCH`.
    slowdown
        Duration of the services that begin from now on, in 1/`SLOWDOWN_UNIT` of the normal one:
        `SLOWDOWN_UNIT` (normal) to `SLOWDOWN_MAX`. A stop and a start do not change it.
    """

    resources: tuple[int, ...]
    slowdown: int


@dataclass(frozen=True)
class Wake:
    """Ask a feed for requests again."""

    stream: int


@dataclass(frozen=True)
class End:
    """End the run at this moment, as if it were `Program.until_ns`."""


Action = SetGroup | Stop | Start | Slow | Wake | End


class Begun(NamedTuple):
    """Progress of a request in flight.

    Attributes
    ----------
    number
        Number of the request within its stream, from 0.
    template
        Index of its template.
    steps
        True for each step that has begun or waits for its resource, shape (steps,).
    """

    number: int
    template: int
    steps: npt.NDArray[np.bool_]


class RunView(Protocol):
    """The view of a run that an engine gives to a director."""

    def completed_ns(self, stream: int) -> IntArray:
        """Return the completion times of a stream's requests issued so far, as in `StreamRun`."""

    def begun(self, stream: int) -> Iterator[Begun]:
        """Yield the progress of each request of a stream in flight without a reply, in any order."""


class Director(Protocol):
    """Decides what fails and recovers during a run. ENGINE.md in this folder defines when it acts."""

    def begin(self, view: RunView) -> None:
        """Receive the engine's view of the run. Called once, before anything else."""

    def next_ns(self) -> int | None:
        """Return the next moment to act [ns], or None. Called at the start and after each `act`."""

    def act(self, now_ns: int, reports: Sequence[Report]) -> Sequence[Action]:
        """Return the actions of a moment.

        Parameters
        ----------
        now_ns
            The current time [ns].
        reports
            Completions since the previous call.
        """


class TemplateBook(Protocol):
    """The templates and bindings that chunks refer to. Both may grow between chunks."""

    @property
    def templates(self) -> Sequence[Template]:
        """The templates, by index."""

    @property
    def bindings(self) -> AnyIntArray:
        """Resource of each role, shape (rows, roles), `UNBOUND` for none."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """The complete input of an engine.

    Attributes
    ----------
    resources
        The resources of the cluster.
    book
        Templates and bindings.
    streams
        The streams of requests.
    groups
        Number of placement groups.
    seed
        Seed of the random service times.
    factor_tables
        Means of the equally likely cells of each distribution of random factors in units of 2**-20, shape
        (distributions, FACTOR_POINTS). Row 0 has no spread. See `draws.factor_cells`.
    position_factors
        Factors of `Dynamics.positions_ns` with 0, 1, … further steps per server in the queue, in units of
        2**-20, at most 1, shape (n,). The first is 1, and the last is that of all longer queues.
    until_ns
        End of the run [ns]. None runs until no work is left.
    bin_ns
        Width of the time bins of the counters [ns], 0 for no bins.
    director
        Decides what fails and recovers. It requires that all streams are `DirectedSource`.
    followed
        Requests of the first stream, by number, ascending, for which the end of each step is
        recorded in `EngineRun.followed_ns`.
    newest_only
        Closed loops whose client waits for its most recently issued request, and only then
        notices other completions. A request completes when its client notices. Excludes a
        director.
    """

    resources: Resources
    book: TemplateBook
    streams: Sequence[RequestSource]
    groups: int = 1
    seed: int = 0
    factor_tables: IntArray = field(
        default_factory=lambda: np.full((1, FACTOR_POINTS), FACTOR_ONE, dtype=np.int64)
    )
    position_factors: IntArray = field(
        default_factory=lambda: np.array([FACTOR_ONE], dtype=np.int64)
    )
    until_ns: int | None = None
    bin_ns: int = 0
    director: Director | None = None
    followed: IntArray = field(default_factory=_no_values)
    newest_only: frozenset[int] = frozenset()


@dataclass(frozen=True)
class StreamRun:
    """The requests of one stream after a run, in the order of issue. Each part counts as a request.

    Attributes
    ----------
    issued_ns
        Time of each request's first issue [ns], shape (requests,).
    completed_ns
        Time of each request's completion [ns], shape (requests,). `PENDING` for a request that
        has not completed, `CUT` for one that was cut off for good, `FAILED` for a timeout.
    templates, bindings, groups
        Template, binding and placement group of each request at its last attempt, shape (requests,).
    taken
        Amounts accounted by the completed steps of requests whose template is not
        `Template.planned`, shape (len(COUNTERS),). The plan states the amounts of the others.
    taken_uses
        Completed `USE` steps of those requests.
    counted
        True if `taken` covers all requests, whatever their template, including attempts that
        were cut off. This is so in a run with a director.
    retries
        Number of times each request was cut off and issued again, shape (requests,), or (0,)
        without a director.
    """

    issued_ns: IntArray
    completed_ns: IntArray
    templates: IntArray
    bindings: IntArray
    groups: IntArray
    taken: IntArray = field(
        default_factory=lambda: np.zeros(len(COUNTERS), dtype=np.int64)
    )
    taken_uses: int = 0
    counted: bool = False
    retries: IntArray = field(default_factory=_no_values)


@dataclass(frozen=True)
class EngineRun:
    """The result of a run.

    Attributes
    ----------
    streams
        The requests of each stream.
    busy_ns
        Service time begun at each server resource [ns], shape (resources,).
    held_ns
        Time for which units of each pool or tickets of each gate were out, summed over units or
        tickets until the end of the run [ns], shape (resources,).
    waited_ns
        Time that steps spent in each queue, summed until the end of the run [ns], shape (resources,).
    uses
        Completed `USE` steps.
    end_ns
        Time of the last event, or the time bound [ns].
    bins
        Counters by time, shape (bins, len(COUNTERS)). Empty if no bins were requested.
    wall_s
        Wall-clock time inside the engine, without planning and compiling [s].
    spawned
        The requests that those of each stream spawned, in the order of spawning. One entry per
        stream.
    followed_ns
        Completion time of each step of each followed request [ns], shape (len(Program.followed),
        steps of the widest template). `PENDING` for a step that did not complete, was skipped,
        or is not part of the request's template.
    followed_saved_ns
        Time that each of these steps saved because others waited, before its random factor [ns], of the same
        shape. See `GraphBuilder.sort`.
    sleeps
        Number of times a server or unit became idle because nothing waited for it, shape
        (resources,). Where the resource models threads, each is a context switch.
    sleep_bins
        `sleeps` by time and kind of resource (`Resources.kind_names`), shape (bins, kinds), up to
        the last bin with a sleep.
    warm_ns
        Time that wake-ups of each pool's threads saved because their process had just run [ns],
        shape (resources,).
    """

    streams: list[StreamRun]
    busy_ns: IntArray
    held_ns: IntArray
    waited_ns: IntArray
    uses: int
    end_ns: int
    bins: IntArray
    wall_s: float
    spawned: list[StreamRun] = field(default_factory=list)
    followed_ns: IntArray = field(
        default_factory=lambda: np.zeros((0, 0), dtype=np.int64)
    )
    followed_saved_ns: IntArray = field(
        default_factory=lambda: np.zeros((0, 0), dtype=np.int64)
    )
    sleeps: IntArray = field(default_factory=_no_values)
    sleep_bins: IntArray = field(
        default_factory=lambda: np.zeros((0, 0), dtype=np.int64)
    )
    warm_ns: IntArray = field(default_factory=_no_values)


def with_client(rows: IntArray, client_rows: IntArray) -> IntArray:
    """Join binding rows with the rows of the requests' clients.

    Parameters
    ----------
    rows
        Row of each request, shape (requests,). Entries `BY_CLIENT` refer to the client's row.
    client_rows
        Row of each request's client, shape (requests,).

    Returns
    -------
    ndarray of int64
        Bindings for `RequestChunk.bindings`, shape (requests,).

    Examples
    --------
    >>> rows_of(with_client(np.array([5, 6]), np.array([0, 9])))
    (array([5, 6]), array([0, 9]))
    """
    joined: IntArray = rows | (client_rows + 1) << ROW_BITS
    return joined


def rows_of(bindings: IntArray) -> tuple[IntArray, IntArray]:
    """Split bindings into their rows and their clients' rows.

    Parameters
    ----------
    bindings
        Bindings, shape (requests,).

    Returns
    -------
    rows, client_rows : ndarray of int64
        Both of shape (requests,). The client's row is −1 for a binding without one.
    """
    return bindings & ((1 << ROW_BITS) - 1), (bindings >> ROW_BITS) - 1


def bound_rows(book: TemplateBook, bindings: IntArray) -> AnyIntArray:
    """Resolve bindings to resources.

    Parameters
    ----------
    book
        Templates and bindings.
    bindings
        Bindings, shape (n,).

    Returns
    -------
    ndarray of int
        Resource of each role, shape (n, roles), `UNBOUND` for none.
    """
    rows, clients = rows_of(bindings)
    own = book.bindings[rows]
    # Without a client, the roles that a client would bind stay unbound.
    by_client = np.where(clients[:, None] >= 0, book.bindings[clients], UNBOUND)
    bound: AnyIntArray = np.where(own == BY_CLIENT, by_client, own)
    return bound


def template_index(templates: Sequence[Template], wanted: Template) -> int:
    """Return the index of a template in a book, by identity."""
    return next(index for index, template in enumerate(templates) if template is wanted)

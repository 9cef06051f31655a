"""What an engine is given and what it gives back; sim/engine/ENGINE.md says what it does in between."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from stripesim.sim.engine.draws import FACTOR_ONE, FACTOR_POINTS
from stripesim.sim.engine.graph import COUNTERS, IntArray, Template
from stripesim.sim.engine.shares import Share

# In a binding row: nothing, and "as the request's client binds it".
UNBOUND = -1
BY_CLIENT = -2
# A binding number names a row; above these bits it names, from 1, the row of the request's client.
ROW_BITS = 32
# What stands in the place of a completion time: not complete (yet), cut off, out of time.
PENDING = -1
CUT = -2
FAILED = -3
# Requests that an engine asks of a stream at a time; both the same, so that streams which
# share a book fill it in the same order.
CHUNK = 4096

FIFO, BATCH, POOL, GATE = range(4)
DISCIPLINES = ("fifo", "batch", "pool", "gate")

# Spawned requests are numbered from here, after every request that a client can have.
SPAWNED_FROM = 1 << 49
# A service on a core of two threads that both work takes longer by multiples of this share of its demand.
PAIRED_UNIT = 1024
# Keys lie below this, so that a range's end and its sums stay inside 64 bits.
KEY_MAX = 1 << 60


@dataclass(frozen=True)
class Resources:
    """The resources of a cluster, by index."""

    names: tuple[str, ...]  # For reports, such as ``osd.3.ssd``.
    kinds: tuple[
        str, ...
    ]  # The class each belongs to, such as ``ssd``; utilisation is given per class.
    # Shape (resources,). Servers of a server resource, units of a pool, 1 for a gate; at least 1.
    capacities: IntArray
    disciplines: IntArray  # Shape (resources,). `FIFO`, `BATCH`, `POOL` or `GATE`.
    # Shape (resources,). What it costs to wake a server or a unit that nobody uses [ns], 0 ≤ wake_ns < 2**31:
    # a service that begins on an idle server takes so much longer; a unit of a pool, a thread, makes the
    # `use` longer that names its `acquire`. Nothing by default.
    wake_ns: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    shares: tuple[Share, ...] = ()  # How resources serve several classes.
    # Shape (resources,). Index into `shares` of a `FIFO` or a `POOL` that classes share; −1: none, as by
    # default.
    share_indices: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    # Shape (resources,). Of a `FIFO` of cores: how long a thread keeps one while others wait for it [ns],
    # below 2**31; 0: no longer than one `use`, as by default.
    slice_ns: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    # Shape (resources,). Of a `BATCH`: the `POOL` whose threads serve it when they have nothing else to do;
    # −1: none, as by default.
    served_by: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    # Shape (resources,). 1 for a `FIFO` whose servers are hardware threads, two on a core; 0, as by default.
    paired: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    # What a service takes longer while the other thread of its core works, in `PAIRED_UNIT` of its demand.
    paired_slowdown: int = 0
    # Shape (resources,). Of a pool the process that its threads belong to, from 0; −1: none, as by default.
    processes: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    # What a wake-up costs less, on a core with a slice, right after another thread of the process has run
    # there [ns], at most `wake_ns`; and how long after it costs all of it again [ns], 0: always does.
    warm_ns: int = 0
    cool_ns: int = 0

    def __post_init__(self) -> None:
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
                object.__setattr__(
                    self, name, np.full(len(self), nothing, dtype=np.int64)
                )
            assert len(getattr(self, name)) == len(self)
        assert (
            len(self.names)
            == len(self.kinds)
            == len(self.capacities)
            == len(self.disciplines)
        )
        assert (self.capacities >= 1).all() and (
            (self.wake_ns >= 0) & (self.wake_ns < 1 << 31)
        ).all()
        assert (
            0 <= self.warm_ns <= self.wake_ns[self.processes >= 0].min(initial=1 << 31)
        )
        served = self.served_by >= 0
        assert (self.disciplines[served] == BATCH).all() and (
            self.capacities[served] == 1
        ).all()

    def __len__(self) -> int:
        return len(self.names)

    @property
    def kind_names(self) -> tuple[str, ...]:
        """The different kinds, in the order in which they first occur."""
        return tuple(dict.fromkeys(self.kinds))

    @property
    def kind_indices(self) -> IntArray:
        """Index into `kind_names` of each resource, shape (resources,)."""
        places = {kind: index for index, kind in enumerate(self.kind_names)}
        return np.array([places[kind] for kind in self.kinds], dtype=np.int64)

    @property
    def flows(self) -> IntArray:
        """Who has a core of its own right where cores are shared fairly: a pool's process, or its threads."""
        own = np.arange(len(self)) + 1 + self.processes.max(initial=-1)
        return np.where(self.processes < 0, own, self.processes)

    @property
    def partners(self) -> IntArray:
        """Of a batch server that threads serve their pool, of that pool the server; −1: none."""
        found = self.served_by.copy()
        served = np.flatnonzero(self.served_by >= 0)
        found[self.served_by[served]] = served
        return found


@dataclass(frozen=True)
class RequestChunk:
    """Requests of one stream, in their order."""

    # Shape (requests,). Template and binding of each request: the number of a row, or two of them
    # (`with_client`).
    templates: IntArray
    bindings: IntArray
    groups: IntArray  # Shape (requests,). Placement group of each request.
    # Shape (requests,). Issue times of an open stream [ns], ascending; None for a closed loop.
    arrivals_ns: IntArray | None = None
    # Shape (requests, KEY_RANGES, 2). Key ranges of each request, [first, stop) each, 0 ≤ first ≤ stop <
    # `KEY_MAX`; None where no template asks for keys. A range costs time in proportion to its length wherever
    # a step names it.
    keys: IntArray | None = None

    def __len__(self) -> int:
        return len(self.groups)

    def at(self, rows: IntArray | slice) -> "RequestChunk":
        """Return some of the requests."""
        return RequestChunk(
            self.templates[rows],
            self.bindings[rows],
            self.groups[rows],
            None if self.arrivals_ns is None else self.arrivals_ns[rows],
            None if self.keys is None else self.keys[rows],
        )


class RequestSource(Protocol):
    """A stream of requests, planned in its own order, chunk by chunk."""

    depth: int  # Requests that may be outstanding (closed loop); 0 for an open stream.

    def take(self, count: int) -> RequestChunk:
        """Plan the next requests, at most about `count`; an empty chunk ends the stream."""


class ListedRequests:
    """A stream of requests of one group that are known beforehand: a closed loop, or at their times."""

    def __init__(
        self,
        templates: IntArray,
        bindings: IntArray,
        *,
        depth: int,
        arrivals_ns: IntArray | None = None,
    ) -> None:
        self.depth = depth
        self._all = RequestChunk(
            templates, bindings, np.zeros_like(templates), arrivals_ns
        )
        self._taken = 0

    def take(self, count: int) -> RequestChunk:
        """Return the next requests."""
        part = slice(self._taken, self._taken + count)
        self._taken += count
        return self._all.at(part)


@runtime_checkable
class DirectedSource(RequestSource, Protocol):
    """A stream of requests in a run with a director."""

    reports: bool  # Whether completions of its requests are reported to the director.
    # Whether an empty chunk means "nothing just now" instead of the end; the stream is then asked again after
    # a `Wake`. What is cut off of a feed ends as `CUT`; what is cut off of any other stream is issued again.
    feed: bool
    timeout_ns: int  # A request that is not complete so long after its issue ends as `FAILED` [ns]; 0: never.

    def replan(self, indices: IntArray) -> RequestChunk:
        """Plan requests again, as their placement groups look now."""


@dataclass(frozen=True)
class Report:
    """A request of a reporting stream has completed."""

    stream: int
    index: int  # Number of the request within its stream, from 0.


@dataclass(frozen=True)
class SetGroup:
    """A placement group enters a new interval."""

    group: int
    held: bool  # Whether requests to it wait until it is set again with ``held=False``.
    interrupt: bool  # Whether its requests in flight are cut off.


@dataclass(frozen=True)
class Stop:
    """Resources die; the services in progress at them are lost."""

    resources: tuple[int, ...]


@dataclass(frozen=True)
class Start:
    """Resources work again, empty and free."""

    resources: tuple[int, ...]


@dataclass(frozen=True)
class Wake:
    """A feed that had nothing has something now."""

    stream: int


Action = SetGroup | Stop | Start | Wake


class Begun(NamedTuple):
    """How far a request in flight is."""

    number: int  # Of the request within its stream, from 0.
    template: int
    steps: npt.NDArray[
        np.bool_
    ]  # Shape (steps,). Whether each has begun or waits for its resource.


class Progress(Protocol):
    """What an engine lets a director see of a run."""

    def completed_ns(self, stream: int) -> IntArray:
        """Return the completion times of a stream's requests issued so far, as `StreamRun` has them."""

    def begun(self, stream: int) -> Iterator[Begun]:
        """Yield what has begun of each request of a stream in flight that has not replied, in any order."""


class Director(Protocol):
    """Decides what happens to the cluster during a run; sim/engine/ENGINE.md says when it is asked."""

    def begin(self, progress: Progress) -> None:
        """Take the engine's view of the run; called once, before anything else."""

    def next_ns(self) -> int | None:
        """Return its next moment [ns], None if there is none; asked at the start and after each `act`."""

    def act(self, now_ns: int, reports: Sequence[Report]) -> Sequence[Action]:
        """Return what happens now [ns]; `reports` tells what completed since it was asked last."""


class TemplateBook(Protocol):
    """The templates and bindings that chunks refer to; both may grow between chunks."""

    @property
    def templates(self) -> Sequence[Template]:
        """The templates, by index."""

    @property
    def bindings(self) -> npt.NDArray[np.int64]:
        """Resource of each role, shape (rows, roles); `UNBOUND` where there is none."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """All that an engine needs to run."""

    resources: Resources
    book: TemplateBook
    streams: Sequence[RequestSource]
    groups: int = 1  # Number of placement groups.
    seed: int = 0  # Of the random service times.
    # Shape (distributions, FACTOR_POINTS). Units of 2**-20; row 0 is "no spread".
    factor_tables: IntArray = field(
        default_factory=lambda: np.full((1, FACTOR_POINTS), FACTOR_ONE, dtype=np.int64)
    )
    until_ns: int | None = None  # Time bound [ns]; None: until nothing is left to do.
    bin_ns: int = 0  # Width of the time bins of the counters [ns]; 0: no bins.
    # Decides what fails and what comes back; all streams are `DirectedSource` then.
    director: Director | None = None
    # Shape (n,). Requests of the first stream, by their number in it, ascending, of which the end of every
    # step is noted (`EngineRun.followed_ns`).
    followed: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    # Closed loops whose client waits for its most recently issued request, and only then looks at what else
    # has completed; a request is complete when its client looks at it. Not beside a director.
    newest_only: frozenset[int] = frozenset()


@dataclass(frozen=True)
class StreamRun:
    """What happened to the requests of one stream, in the order of issue."""

    # Shape (requests,). Times [ns], the first issue; `PENDING` where a request had not completed, `CUT` where
    # it was cut off for good, `FAILED` where its time ran out.
    issued_ns: IntArray
    completed_ns: IntArray
    # Shape (requests,). What each request ran on, at last.
    templates: IntArray
    bindings: IntArray
    groups: IntArray
    # Shape (len(COUNTERS). What the completed steps of requests on templates that are not `Template.planned`
    # accounted, up to the end of the run. What the others account, the plan tells.
    taken: IntArray = field(
        default_factory=lambda: np.zeros(len(COUNTERS), dtype=np.int64)
    )
    taken_uses: int = 0  # How many `USE` steps of such requests completed.
    # Whether `taken` tells of all requests, whatever their template and whether or not they were cut off: so
    # in a run with a director.
    counted: bool = False
    # Shape (requests,). How often each request was cut off to be issued again; no rows without a director.
    retries: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


@dataclass(frozen=True)
class EngineRun:
    """The answer of an engine."""

    streams: list[StreamRun]
    busy_ns: (
        IntArray  # Shape (resources,). Service time begun at each server resource [ns].
    )
    # Shape (resources,). Unit-time for which each pool was held, ticket-time of each gate [ns], up to the end
    # of the run.
    held_ns: IntArray
    # Shape (resources,). Time that steps spent in each queue, all together, up to the end of the run [ns].
    waited_ns: IntArray
    uses: int  # `USE` steps completed.
    end_ns: int  # Time of the last event, or the bound [ns].
    bins: IntArray  # Shape (bins, len(COUNTERS). Counters by time; no rows if no bins were asked for.
    wall_s: (
        float  # Wall-clock time inside the engine, without planning and compiling [s].
    )
    # What the requests of each stream spawned, in the order of spawning; as many as `streams`.
    spawned: list[StreamRun] = field(default_factory=list)
    # Shape (len(Program.followed). When each step of each followed request completed, by its template's steps
    # [ns]; `PENDING` where it has not, was skipped, or is no step of the template. As wide as the widest
    # template.
    followed_ns: IntArray = field(
        default_factory=lambda: np.zeros((0, 0), dtype=np.int64)
    )
    # Shape (resources,). How often a server, or a unit of a pool, became idle because nothing waited for it:
    # a thread that goes to sleep, hence a context switch, where the resource models threads.
    sleeps: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    # Shape (at most bins, kinds). The same by time and by kind of resource (`Resources.kind_names`); up to
    # the last bin with a sleep.
    sleep_bins: IntArray = field(
        default_factory=lambda: np.zeros((0, 0), dtype=np.int64)
    )
    # Shape (resources,). What wake-ups of each pool's threads cost less because their process had just run
    # [ns].
    warm_ns: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


class ProgramError(ValueError):
    """A program contradicts itself."""


def with_client(rows: IntArray, client_rows: IntArray) -> IntArray:
    """Join binding rows with those of the requests' clients, which hold what the first leave `BY_CLIENT`.

    >>> rows_of(with_client(np.array([5, 6]), np.array([0, 9])))
    (array([5, 6]), array([0, 9]))
    """
    joined: IntArray = rows | (client_rows + 1) << ROW_BITS
    return joined


def rows_of(bindings: IntArray) -> tuple[IntArray, IntArray]:
    """Return the row and the client's row of bindings; −1 where there is no client's."""
    return bindings & ((1 << ROW_BITS) - 1), (bindings >> ROW_BITS) - 1


def bound_rows(book: TemplateBook, bindings: IntArray) -> IntArray:
    """Return the resources of each role under some bindings, shape (n, roles); `UNBOUND` where none."""
    rows, clients = rows_of(bindings)
    found = book.bindings[rows]
    # Without a client nobody says what it would bind.
    theirs = np.where(clients[:, None] >= 0, book.bindings[clients], UNBOUND)
    bound: IntArray = np.where(found == BY_CLIENT, theirs, found)
    return bound


def template_index(templates: Sequence[Template], wanted: Template) -> int:
    """Return the place of a template in a book, by identity."""
    return next(index for index, template in enumerate(templates) if template is wanted)

"""What an engine is given and what it gives back; sim/ENGINE.md says what it does in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from stripesim.sim.conditions import ALONE, CACHED, GATE_EMPTY, IDLE, KEY_RANGES
from stripesim.sim.draws import FACTOR_ONE, FACTOR_POINTS
from stripesim.sim.graph import (
    ACQUIRE,
    COUNTERS,
    DROP,
    ENTER,
    FILL,
    LEAVE,
    RELEASE,
    TURN,
    USE,
    IntArray,
    Template,
)

UNBOUND = -1
# What stands in the place of a completion time: not complete (yet), cut off, out of time.
PENDING, CUT, FAILED = -1, -2, -3
# Requests that an engine asks of a stream at a time; both the same, so that streams which
# share a book fill it in the same order.
CHUNK = 4096

FIFO, BATCH, POOL, GATE, CACHE = range(5)
DISCIPLINES = ("fifo", "batch", "pool", "gate", "cache")

# Spawned requests are numbered from here, after every request that a client can have.
SPAWNED_FROM = 1 << 49
# Keys lie below this, so that a range's end and its sums stay inside 64 bits.
KEY_MAX = 1 << 60


@dataclass(frozen=True)
class Resources:
    """The resources of a cluster, by index.

    Parameters
    ----------
    names : tuple of str
        For reports, such as ``osd.3.ssd``.
    kinds : tuple of str
        The class each belongs to, such as ``ssd``; utilisation is told per class.
    capacities : ndarray of int64, shape (resources,)
        Servers of a server resource, units of a pool, keys of a cache, 1 for a gate; at least 1.
    disciplines : ndarray of int64, shape (resources,)
        `FIFO`, `BATCH`, `POOL`, `GATE` or `CACHE`.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    capacities: IntArray
    disciplines: IntArray

    def __post_init__(self) -> None:
        assert len(self.names) == len(self.kinds) == len(self.capacities) == len(self.disciplines)
        assert (self.capacities >= 1).all()
        assert (self.capacities[self.disciplines == GATE] == 1).all()

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class RequestChunk:
    """Requests of one stream, in their order.

    Parameters
    ----------
    templates, bindings : ndarray of int64, shape (requests, states)
        Template and binding row to use in each state of the placement group.
    groups : ndarray of int64, shape (requests,)
        Placement group of each request.
    arrivals_ns : ndarray of int64, shape (requests,), optional
        Issue times of an open stream [ns], ascending; None for a closed loop.
    keys : ndarray of int64, shape (requests, KEY_RANGES, 2), optional
        Key ranges of each request, [first, stop) each, 0 ≤ first ≤ stop < `KEY_MAX`; None
        where no template asks for keys. A range costs time in proportion to its length
        wherever a step names it.
    """

    templates: IntArray
    bindings: IntArray
    groups: IntArray
    arrivals_ns: IntArray | None = None
    keys: IntArray | None = None

    def __len__(self) -> int:
        return len(self.groups)


class RequestSource(Protocol):
    """A stream of requests, planned in its own order, chunk by chunk.

    Attributes
    ----------
    depth : int
        Requests that may be outstanding (closed loop); 0 for an open stream.
    """

    depth: int

    def take(self, count: int) -> RequestChunk:
        """Plan the next requests, at most about `count`; an empty chunk ends the stream."""
        ...


@runtime_checkable
class DirectedSource(RequestSource, Protocol):
    """A stream of requests in a run with a director.

    Attributes
    ----------
    reports : bool
        Whether completions of its requests are reported to the director.
    feed : bool
        Whether an empty chunk means "nothing just now" instead of the end; the stream is then
        asked again after a `Wake`. What is cut off of a feed ends as `CUT`; what is cut off of
        any other stream is issued again.
    timeout_ns : int
        A request that is not complete so long after its issue ends as `FAILED` [ns]; 0: never.
    """

    reports: bool
    feed: bool
    timeout_ns: int

    def replan(self, indices: IntArray) -> RequestChunk:
        """Plan requests anew, as their placement groups look now.

        Parameters
        ----------
        indices : ndarray of int64, shape (n,)
            Numbers of requests within the stream, ascending; all of them were planned before.

        Returns
        -------
        RequestChunk
            Of n requests; only its `templates` and `bindings` count.
        """
        ...


@dataclass(frozen=True)
class Report:
    """A request of a reporting stream has completed.

    Parameters
    ----------
    stream : int
    index : int
        Number of the request within its stream, from 0.
    """

    stream: int
    index: int


@dataclass(frozen=True)
class SetGroup:
    """A placement group enters a new interval.

    Parameters
    ----------
    group : int
    held : bool
        Whether requests to it wait until it is set again with ``held=False``.
    interrupt : bool
        Whether its requests in flight are cut off.
    """

    group: int
    held: bool
    interrupt: bool


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


class Director(Protocol):
    """Decides what happens to the cluster during a run; sim/ENGINE.md says when it is asked."""

    def next_ns(self) -> int | None:
        """Return its next moment [ns], None if there is none; asked at the start and after each `act`."""
        ...

    def act(self, now_ns: int, reports: Sequence[Report]) -> Sequence[Action]:
        """Return what happens now [ns]; `reports` tells what completed since it was asked last."""
        ...


class TemplateBook(Protocol):
    """The templates and bindings that chunks refer to; both may grow between chunks."""

    @property
    def templates(self) -> Sequence[Template]:
        """The templates, by index."""
        ...

    @property
    def bindings(self) -> npt.NDArray[np.int64]:
        """Resource of each role, shape (rows, roles); `UNBOUND` where there is none."""
        ...


@dataclass(frozen=True)
class StateChange:
    """A placement group enters a state at a time.

    Parameters
    ----------
    time_ns : int
        When [ns].
    group : int
        Placement group.
    state : int
        Column of the chunk's `templates` and `bindings` that holds from then on.
    """

    time_ns: int
    group: int
    state: int


@dataclass(frozen=True, kw_only=True)
class Program:
    """All that an engine needs to run.

    Parameters
    ----------
    resources : Resources
    book : TemplateBook
    streams : sequence of RequestSource
    groups : int
        Number of placement groups; all begin in state 0.
    changes : sequence of StateChange
    seed : int
        Of the random service times.
    factor_tables : ndarray of int64, shape (distributions, FACTOR_POINTS)
        Units of 2**-20; row 0 is "no spread".
    until_ns : int, optional
        Time bound [ns]; None: until nothing is left to do.
    bin_ns : int
        Width of the time bins of the counters [ns]; 0: no bins.
    director : Director, optional
        Decides what fails and what comes back; all streams are `DirectedSource` then.
    followed : ndarray of int64, shape (n,)
        Requests of the first stream, by their number in it, ascending, of which the end of every step is
        noted (`EngineRun.followed_ns`).
    """

    resources: Resources
    book: TemplateBook
    streams: Sequence[RequestSource]
    groups: int = 1
    changes: Sequence[StateChange] = ()
    seed: int = 0
    factor_tables: IntArray = field(
        default_factory=lambda: np.full((1, FACTOR_POINTS), FACTOR_ONE, dtype=np.int64)
    )
    until_ns: int | None = None
    bin_ns: int = 0
    director: Director | None = None
    followed: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


@dataclass(frozen=True)
class StreamRun:
    """What happened to the requests of one stream, in the order of issue.

    Parameters
    ----------
    issued_ns, completed_ns : ndarray of int64, shape (requests,)
        Times [ns]; `PENDING` where a request had not completed.
    templates, bindings, groups : ndarray of int64, shape (requests,)
        What each request ran on.
    taken : ndarray of int64, shape (len(COUNTERS),)
        What the completed steps of requests on templates that are not `Template.planned`
        accounted, up to the end of the run. What the others account, the plan tells.
    taken_uses : int
        How many `USE` steps of such requests completed.
    """

    issued_ns: IntArray
    completed_ns: IntArray
    templates: IntArray
    bindings: IntArray
    groups: IntArray
    taken: IntArray = field(default_factory=lambda: np.zeros(len(COUNTERS), dtype=np.int64))
    taken_uses: int = 0


@dataclass(frozen=True)
class EngineRun:
    """The answer of an engine.

    Parameters
    ----------
    streams : list of StreamRun
    busy_ns : ndarray of int64, shape (resources,)
        Service time begun at each server resource [ns].
    held_ns : ndarray of int64, shape (resources,)
        Unit-time for which each pool was held, ticket-time of each gate [ns], up to the end
        of the run.
    waited_ns : ndarray of int64, shape (resources,)
        Time that steps spent in each queue, all together, up to the end of the run [ns].
    uses : int
        `USE` steps completed.
    end_ns : int
        Time of the last event, or the bound [ns].
    bins : ndarray of int64, shape (bins, len(COUNTERS))
        Counters by time; no rows if no bins were asked for.
    wall_s : float
        Wall-clock time inside the engine, without planning and compiling [s].
    spawned : list of StreamRun
        What the requests of each stream spawned, in the order of spawning; as many as `streams`.
    followed_ns : ndarray of int64, shape (len(Program.followed), steps)
        When each step of each followed request completed, by its template's steps [ns]; `PENDING` where it
        has not, was skipped, or is no step of the template. As wide as the widest template.
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
    followed_ns: IntArray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))


def empty_bins() -> IntArray:
    """Return a table of no bins."""
    return np.zeros((0, len(COUNTERS)), dtype=np.int64)


class ProgramError(ValueError):
    """A program contradicts itself."""


def check_program(program: Program) -> None:
    """Check what is known before a run.

    Raises
    ------
    ProgramError
        If a state change lies before time 0, or names a group or a state that cannot be, or the numbers of
        the requests to follow do not ascend.
    """
    for index, change in enumerate(program.changes):
        where = f"state change {index}"
        if change.time_ns < 0:
            raise ProgramError(f"{where}: got time {change.time_ns} ns, wanted at least 0")
        if not 0 <= change.group < program.groups:
            raise ProgramError(f"{where}: got group {change.group}, wanted below {program.groups}")
        if change.state < 0:
            raise ProgramError(f"{where}: got state {change.state}, wanted at least 0")
    if len(program.followed) and (program.followed[0] < 0 or (np.diff(program.followed) <= 0).any()):
        raise ProgramError("followed requests: got numbers that are not ascending from 0, wanted them so")


def check_chunk(program: Program, stream: int, chunk: RequestChunk, after_ns: int) -> None:
    """Check a chunk that a stream gave.

    Parameters
    ----------
    after_ns : int
        Arrival of the stream's last request before this chunk [ns].

    Raises
    ------
    ProgramError
        If it refers to what is not there, or its arrivals are missing or not ascending.
    """
    where = f"stream {stream}"
    for what, array, count in (
        ("template", chunk.templates, len(program.book.templates)),
        ("binding", chunk.bindings, len(program.book.bindings)),
        ("group", chunk.groups, program.groups),
    ):
        if array.min() < 0 or array.max() >= count:
            raise ProgramError(f"{where}: got {what} {array.min()} to {array.max()}, wanted 0 to {count - 1}")
    states = 1 + max((change.state for change in program.changes), default=0)
    if chunk.templates.shape != chunk.bindings.shape or chunk.templates.shape[1] < states:
        shapes = f"{chunk.templates.shape} and {chunk.bindings.shape}"
        raise ProgramError(f"{where}: got templates and bindings of shape {shapes}, wanted {states} states")
    present = np.flatnonzero(np.bincount(chunk.templates.ravel()))
    used = [program.book.templates[index] for index in present.tolist()]
    _check_keys(where, chunk, used)
    _check_spawned(where, program, used)
    _check_disciplines(where, program, chunk)
    if program.streams[stream].depth:
        return
    if chunk.arrivals_ns is None:
        raise ProgramError(f"{where}: got no arrival times, wanted them in an open stream")
    if chunk.arrivals_ns[0] < after_ns or (np.diff(chunk.arrivals_ns) < 0).any():
        raise ProgramError(f"{where}: got arrivals that go back in time, wanted them ascending")


def _check_keys(where: str, chunk: RequestChunk, used: Sequence[Template]) -> None:
    keys = chunk.keys
    if keys is None:
        for template in used:
            if template.keyed:
                raise ProgramError(f"{where}: got no keys, template '{template.name}' wants them")
        return
    shape = (len(chunk), KEY_RANGES, 2)
    if keys.shape != shape:
        raise ProgramError(f"{where}: got keys of shape {keys.shape}, wanted {shape}")
    if keys.min() < 0 or keys.max() >= KEY_MAX or (keys[:, :, 0] > keys[:, :, 1]).any():
        raise ProgramError(f"{where}: got key ranges that are none, wanted 0 <= first <= stop < 2**60")


def _check_spawned(where: str, program: Program, used: Sequence[Template]) -> None:
    spawners = [template for template in used if template.dynamics and template.dynamics.spawned]
    if not spawners:
        return
    known = {id(template) for template in program.book.templates}
    while spawners:
        template = spawners.pop()
        assert template.dynamics is not None
        for other in template.dynamics.spawned:
            if id(other) not in known:
                raise ProgramError(
                    f"{where}: template '{template.name}' spawns '{other.name}', wanted that in the book too"
                )
            if other.dynamics:
                spawners.append(other)


_DISCIPLINES_OF_WORDS = {
    USE: (FIFO, BATCH),
    ACQUIRE: (POOL,),
    RELEASE: (POOL,),
    ENTER: (GATE,),
    TURN: (GATE,),
    LEAVE: (GATE,),
    FILL: (CACHE,),
    DROP: (CACHE,),
}
_DISCIPLINES_OF_TESTS = {
    GATE_EMPTY: (GATE,),
    ALONE: (GATE,),
    CACHED: (CACHE,),
    IDLE: (FIFO, BATCH),
}
_BITS_OF_WORDS = {word: sum(1 << one for one in wanted) for word, wanted in _DISCIPLINES_OF_WORDS.items()}
_BITS_OF_TESTS = {test: sum(1 << one for one in wanted) for test, wanted in _DISCIPLINES_OF_TESTS.items()}


def _check_disciplines(where: str, program: Program, chunk: RequestChunk) -> None:
    """Check that gates and caches are asked for where they are bound, and nothing else is."""
    disciplines = program.resources.disciplines
    if not np.isin(disciplines, (GATE, CACHE)).any() and all(
        template.dynamics is None for template in program.book.templates
    ):
        return
    # As a rule a role is bound to one kind of resource in all rows; then one look per template is enough.
    rows = program.book.bindings[np.unique(chunk.bindings)]
    kinds = np.where(rows >= 0, 1 << disciplines[rows], 0)
    bound = np.bitwise_or.reduce(kinds, axis=0).tolist()
    doubtful = [
        index
        for index in np.unique(chunk.templates).tolist()
        if not all(
            bound[role] & ~wanted == 0
            for path in _paths(program.book.templates[index])
            for role, wanted in _wanted(path)
        )
    ]
    for index in doubtful:
        used = program.book.bindings[np.unique(chunk.bindings[chunk.templates == index])]
        for path in _paths(program.book.templates[index]):
            _check_path(where, program, path, used)


def _paths(template: Template) -> tuple[Template, ...]:
    """Return a template and all that it spawns, also by what it spawns."""
    spawned = template.dynamics.spawned if template.dynamics else ()
    return (template, *(path for other in spawned for path in _paths(other)))


def _wanted(path: Template) -> list[tuple[int, int]]:
    """Return each role that a word or a test asks a discipline of, and the disciplines as bits."""
    asked = [
        (role, _BITS_OF_WORDS.get(word) or _BITS_OF_TESTS.get(test, 0))
        for role, word, test in path.role_words
    ]
    return [(role, bits) for role, bits in asked if bits]


def _check_path(where: str, program: Program, path: Template, rows: IntArray) -> None:
    disciplines = program.resources.disciplines
    for role, wanted in _wanted(path):
        bound = rows[:, role]
        bound = bound[bound >= 0]
        wrong = bound[(1 << disciplines[bound]) & ~wanted != 0]
        if len(wrong):
            name = program.resources.names[wrong[0]]
            kind = DISCIPLINES[disciplines[wrong[0]]]
            told = " or ".join(DISCIPLINES[one] for one in range(len(DISCIPLINES)) if wanted >> one & 1)
            raise ProgramError(f"{where}: {path.name}: role {role} is '{name}', a {kind}, wanted {told}")


def template_index(templates: Sequence[Template], wanted: Template) -> int:
    """Return the place of a template in a book, by identity."""
    return next(index for index, template in enumerate(templates) if template is wanted)

"""Validate programs and the decisions of directors. Each error is one line."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from reprlib import repr as short_repr
from time import perf_counter
from typing import Protocol, TypeVar, cast

import numpy as np

from stripesim.models.problems import AnswerError, Problem, ProblemsError
from stripesim.sim.engine import program as machine
from stripesim.sim.engine.conditions import ALONE, IDLE, KEY_RANGES
from stripesim.sim.engine.draws import FACTOR_ONE, FACTOR_POINTS
from stripesim.sim.engine.graph import (
    ACQUIRE,
    ENTER,
    LEAVE,
    RELEASE,
    TURN,
    USE,
    WORDS,
    IntArray,
    Template,
)
from stripesim.sim.engine.program import (
    BY_CLIENT,
    CHUNK,
    UNBOUND,
    Action,
    Director,
    Program,
    Report,
    RequestChunk,
    RequestSource,
)
from stripesim.sim.engine.shares import MCLOCK, WPQ

R = TypeVar("R")


def check_program(program: Program) -> None:
    """Check a program before its run starts.

    Parameters
    ----------
    program
        The program.

    Raises
    ------
    ProblemsError
        If followed requests are not ascending, a stream index or a bound resource does not
        exist, the distributions have another form, or a stream does not suit a run with a director.
    """
    _check_numbers(program)
    _check_bindings(program)
    _check_distributions(program)
    if len(program.followed) and (
        program.followed[0] < 0 or (np.diff(program.followed) <= 0).any()
    ):
        raise ProblemsError("followed requests: wanted ascending numbers from 0")
    for index in sorted(program.newest_only):
        if not 0 <= index < len(program.streams):
            raise ProblemsError(
                f"newest only: got stream {index}, wanted below {len(program.streams)}"
            )
    if program.director is None:
        return
    if program.newest_only:
        raise ProblemsError(
            "got a director and newest-only clients, wanted at most one of them"
        )
    for index, stream in enumerate(program.streams):
        if not isinstance(stream, machine.DirectedSource):
            raise ProblemsError(
                f"stream {index}: got a source without replan, wanted a DirectedSource"
            )
        if stream.feed and not stream.queue_depth:
            raise ProblemsError(
                f"stream {index}: got a feed with arrival times, wanted one with a queue depth"
            )
        if stream.timeout_ns < 0:
            raise ProblemsError(
                f"stream {index}: got a timeout of {stream.timeout_ns} ns, wanted at least 0"
            )


def _check_numbers(program: Program) -> None:
    """Check the seed and the queue depths: other types would be rounded, or fail deep inside."""
    seed: object = program.seed
    if not isinstance(seed, Integral):
        raise ProblemsError(f"seed: got {seed!r}, wanted a whole number")
    for index, stream in enumerate(program.streams):
        depth: object = stream.queue_depth
        if not isinstance(depth, Integral) or int(depth) < 0:
            raise ProblemsError(
                f"stream {index}: got queue_depth {depth!r}, wanted a whole number of at least 0"
            )


def _check_bindings(program: Program) -> None:
    """Check the rows that a book has at the start."""
    bindings = program.book.bindings
    if not isinstance(bindings, np.ndarray) or bindings.ndim != 2:
        shape = np.shape(bindings)
        raise ProblemsError(
            f"bindings: got shape {shape}, wanted an array of shape (rows, roles)"
        )
    if bindings.dtype.kind not in "iu":
        raise ProblemsError(f"bindings: got {bindings.dtype} values, wanted integers")
    if not bindings.size:
        return
    last = len(program.resources) - 1
    if bindings.min() < BY_CLIENT or bindings.max() > last:
        raise ProblemsError(
            f"bindings: got resources {bindings.min()} to {bindings.max()}, wanted 0 to {last}, "
            f"or {UNBOUND} for none"
        )


def _check_distributions(program: Program) -> None:
    """Check the form of the distributions of service times."""
    tables: object = program.factor_tables
    wanted = f"an array of integers of shape (distributions, {FACTOR_POINTS})"
    if not isinstance(tables, np.ndarray):
        got = type(tables).__name__
        raise ProblemsError(f"factor tables: got {got}, wanted {wanted}")
    if (
        tables.dtype.kind not in "iu"
        or tables.ndim != 2
        or not len(tables)
        or tables.shape[1] != FACTOR_POINTS
    ):
        got = f"{tables.dtype} values of shape {tables.shape}"
        raise ProblemsError(f"factor tables: got {got}, wanted {wanted}")
    factors = program.position_factors
    if (
        factors.dtype.kind not in "iu"
        or factors.ndim != 1
        or not len(factors)
        or factors[0] != FACTOR_ONE
        or not 0 <= factors.min() <= factors.max() <= FACTOR_ONE
    ):
        raise ProblemsError(
            f"position factors: got {factors.dtype} values {factors.tolist()}, "
            f"wanted integers from 0 to {FACTOR_ONE}, the first {FACTOR_ONE}"
        )


def _check_spreads(where: str, program: Program, used: Sequence[Template]) -> None:
    """Check that the distribution of each service time exists."""
    known = len(program.factor_tables)
    for template in used:
        if template.highest_spread >= known:
            raise ProblemsError(
                f"{where}: template '{template.name}': got spread {template.highest_spread}, "
                f"wanted below {known}, the number of factor tables"
            )


def _check_roles(where: str, program: Program, used: Sequence[Template]) -> None:
    """Check that a binding row has a column for each role that a template names."""
    width = program.book.bindings.shape[1]
    for template in used:
        if template.highest_role < width:
            continue
        for path in _paths(template):
            highest = int(path.roles.max())
            if highest >= width:
                raise ProblemsError(
                    f"{where}: template '{path.name}': got role {highest}, wanted below {width}, "
                    "the number of columns of a binding row"
                )


def _check_classes(where: str, program: Program, used: Sequence[Template]) -> None:
    """Check that each step's class exists in every queue shared by classes."""
    known = min(
        (
            len(share.classes)
            for share in program.resources.shares
            if share.kind in (WPQ, MCLOCK)
        ),
        default=None,
    )
    if known is None:
        return
    for template in used:
        for path in _paths(template):
            highest = path.dynamics.classes.max() if path.dynamics else 0
            if highest >= known:
                raise ProblemsError(
                    f"{where}: {path.name}: got class {highest}, wanted below {known}"
                )


class ChunkChecks:
    """Check the chunks that the streams of a run plan, each template and binding once.

    Parameters
    ----------
    program
        The program.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        # Templates and bindings that have passed, in any combination.
        self._templates: set[int] = set()
        self._bindings: set[int] = set()
        # Disciplines to which these bindings bind each role, as bits.
        self._bound = np.zeros(program.book.bindings.shape[1], dtype=np.int64)

    def check(self, stream: int, chunk: RequestChunk, after_ns: int) -> None:
        """Check the next chunk of a stream.

        Parameters
        ----------
        stream
            Index of the stream.
        chunk
            Its next requests, at least one.
        after_ns
            Earliest arrival allowed [ns]. Unused for a closed loop.

        Raises
        ------
        ProblemsError
            If an index, shape, key range, class or discipline does not fit the program, or
            arrivals of an open stream are missing or not ascending.
        """
        where = f"stream {stream}"
        self._check_plan(where, chunk)
        _check_parts(where, chunk)
        if self._program.streams[stream].queue_depth:
            return
        if chunk.arrivals_ns is None:
            raise ProblemsError(
                f"{where}: got no arrival times, wanted one per request of an open stream"
            )
        if chunk.arrivals_ns[0] < after_ns or (np.diff(chunk.arrivals_ns) < 0).any():
            raise ProblemsError(
                f"{where}: got decreasing arrival times, wanted ascending ones"
            )

    def check_replanned(
        self, stream: int, chunk: RequestChunk, before: RequestChunk
    ) -> None:
        """Check requests that a stream planned again.

        Parameters
        ----------
        stream
            Index of the stream.
        chunk
            The new plan.
        before
            The requests as first planned. Their groups and keys still apply.

        Raises
        ------
        ProblemsError
            If an index, shape, key range, class or discipline does not fit the program.
        """
        self._check_plan(
            f"stream {stream}, planned again",
            replace(before, templates=chunk.templates, bindings=chunk.bindings),
        )

    def _check_plan(self, where: str, chunk: RequestChunk) -> None:
        program = self._program
        _check_columns(where, chunk)
        shape = (len(chunk),)
        if chunk.templates.shape != shape or chunk.bindings.shape != shape:
            shapes = f"{chunk.templates.shape} and {chunk.bindings.shape}"
            raise ProblemsError(
                f"{where}: got templates and bindings of shape {shapes}, wanted {shape}"
            )
        templates = set(chunk.templates.tolist())
        bindings = set(chunk.bindings.tolist())
        has_passed = templates <= self._templates and bindings <= self._bindings
        if not has_passed:
            rows, clients = machine.rows_of(chunk.bindings)
            count = len(program.book.bindings)
            _check_range(
                where, "template", chunk.templates, len(program.book.templates)
            )
            # The low bits of a negative binding would be a row.
            rows = np.where(chunk.bindings < 0, chunk.bindings, rows)
            _check_range(where, "binding", rows, count)
            _check_range(where, "client's binding", np.maximum(clients, 0), count)
        _check_range(where, "group", chunk.groups, program.groups)
        used = [program.book.templates[index] for index in sorted(templates)]
        _check_keys(where, chunk, used)
        if has_passed:
            return
        _check_roles(where, program, used)
        _check_spreads(where, program, used)
        _check_spawned(where, program, used)
        _check_classes(where, program, used)
        doubtful = self._doubtful_templates(templates, bindings)
        for index in doubtful:
            _check_template(where, program, chunk, index)
        self._templates |= templates.difference(doubtful)
        self._bindings |= bindings

    def _doubtful_templates(self, templates: set[int], bindings: set[int]) -> list[int]:
        """Return the templates that some binding may bind to a discipline that they do not allow.

        A role is normally bound to one discipline in all rows, so one test per template suffices.
        """
        book = self._program.book
        new = bindings - self._bindings
        if new:
            rows = machine.bound_rows(book, np.array(sorted(new), dtype=np.int64))
            disciplines = self._program.resources.disciplines
            kinds = np.where(rows >= 0, 1 << disciplines[rows], 0)
            bound = self._bound | np.bitwise_or.reduce(kinds, axis=0)
            if (bound != self._bound).any():
                self._bound = bound
                self._templates.clear()
        return [
            index
            for index in sorted(templates - self._templates)
            if any(
                _differs(self._bound, path) for path in _paths(book.templates[index])
            )
        ]


def _check_columns(where: str, chunk: RequestChunk) -> None:
    """Check that the columns of a chunk are arrays of integers."""
    for name in ("templates", "bindings", "groups", "arrivals_ns"):
        column = getattr(chunk, name)
        if column is None and name == "arrivals_ns":
            continue
        if not isinstance(column, np.ndarray) or column.dtype.kind not in "iu":
            got = getattr(column, "dtype", type(column).__name__)
            raise ProblemsError(
                f"{where}: got {name} of type {got}, wanted an array of integers"
            )


def _check_range(where: str, name: str, indices: IntArray, count: int) -> None:
    if indices.min() < 0 or indices.max() >= count:
        raise ProblemsError(
            f"{where}: got {name} {indices.min()} to {indices.max()}, wanted 0 to {count - 1}"
        )


def _check_parts(where: str, chunk: RequestChunk) -> None:
    """Check that a chunk holds whole requests, and that the parts of each arrive together."""
    continues = chunk.continues
    if continues is None:
        return
    if continues.shape != (len(chunk),):
        raise ProblemsError(
            f"{where}: got continues of shape {continues.shape}, wanted {(len(chunk),)}"
        )
    if continues[0]:
        raise ProblemsError(
            f"{where}: got a chunk that begins within a request, wanted whole requests"
        )
    if (
        chunk.arrivals_ns is not None
        and np.diff(chunk.arrivals_ns)[continues[1:]].any()
    ):
        raise ProblemsError(
            f"{where}: got parts of a request that arrive at several times, wanted one"
        )


def _check_keys(where: str, chunk: RequestChunk, used: Sequence[Template]) -> None:
    keys = chunk.keys
    if keys is None:
        for template in used:
            if template.keyed:
                raise ProblemsError(
                    f"{where}: got no keys, wanted them for template '{template.name}'"
                )
        return
    shape = (len(chunk), KEY_RANGES, 2)
    if keys.shape != shape:
        raise ProblemsError(f"{where}: got keys of shape {keys.shape}, wanted {shape}")
    if (
        keys.min() < 0
        or keys.max() >= machine.KEY_MAX
        or (keys[:, :, 0] > keys[:, :, 1]).any()
    ):
        raise ProblemsError(
            f"{where}: got invalid key ranges, wanted 0 <= first <= stop < 2**60"
        )


def _check_spawned(where: str, program: Program, used: Sequence[Template]) -> None:
    spawners = [
        template for template in used if template.dynamics and template.dynamics.spawned
    ]
    if not spawners:
        return
    known = {id(template) for template in program.book.templates}
    while spawners:
        template = spawners.pop()
        assert template.dynamics is not None
        for spawned in template.dynamics.spawned:
            if id(spawned) not in known:
                raise ProblemsError(
                    f"{where}: template '{template.name}' spawns '{spawned.name}', wanted it in the book"
                )
            if spawned.dynamics:
                spawners.append(spawned)


_DISCIPLINES_OF_WORDS = {
    USE: (machine.FIFO, machine.BATCH),
    ACQUIRE: (machine.POOL,),
    RELEASE: (machine.POOL,),
    ENTER: (machine.GATE,),
    TURN: (machine.GATE,),
    LEAVE: (machine.GATE,),
}
_DISCIPLINES_OF_TESTS = {
    ALONE: (machine.GATE,),
    IDLE: (machine.FIFO, machine.BATCH, machine.POOL, machine.GATE),
}


def _wanted_bits() -> IntArray:
    """Return the disciplines allowed for each word and test.

    The shape is (words, tests). Each discipline is a bit, and 0 allows any.
    """
    bits = np.zeros((len(WORDS), IDLE + 1), dtype=np.int64)
    for test, wanted in _DISCIPLINES_OF_TESTS.items():
        bits[:, test] = sum(1 << one for one in wanted)
    for word, wanted in _DISCIPLINES_OF_WORDS.items():
        bits[word] = sum(1 << one for one in wanted)
    return bits


_WANTED_BITS = _wanted_bits()


def _check_template(
    where: str, program: Program, chunk: RequestChunk, index: int
) -> None:
    """Check that a chunk binds each role of a template to a discipline that its words and tests allow."""
    bindings = np.unique(chunk.bindings[chunk.templates == index])
    used = machine.bound_rows(program.book, bindings)
    for path in _paths(program.book.templates[index]):
        _check_path(where, program, path, used)


def _paths(template: Template) -> tuple[Template, ...]:
    """Return a template and everything that it spawns, directly or not."""
    spawned = template.dynamics.spawned if template.dynamics else ()
    return (template, *(path for detached in spawned for path in _paths(detached)))


def _differs(bound: IntArray, path: Template) -> bool:
    """Return True if a role is bound to a discipline that a word or test does not allow."""
    roles, words, tests = path.role_words.T
    wanted = _WANTED_BITS[words, tests]
    return bool((bound[roles] & ~wanted)[wanted > 0].any())


def _check_path(where: str, program: Program, path: Template, rows: IntArray) -> None:
    disciplines = program.resources.disciplines
    for role, word, test in path.role_words.tolist():
        wanted = int(_WANTED_BITS[word, test])
        if not wanted:
            continue
        bound = rows[:, role]
        bound = bound[bound >= 0]
        wrong = bound[(1 << disciplines[bound]) & ~wanted != 0]
        if len(wrong):
            name = program.resources.names[wrong[0]]
            kind = machine.DISCIPLINES[disciplines[wrong[0]]]
            text = " or ".join(
                machine.DISCIPLINES[one]
                for one in range(len(machine.DISCIPLINES))
                if wanted >> one & 1
            )
            raise ProblemsError(
                f"{where}: {path.name}: role {role} is '{name}', a {kind}, wanted {text}"
            )


class Planning(Protocol):
    """A run that measures its planning time separately."""

    planning_s: float


def taken(requests: object, kind: type[R], place: str, wanted: str) -> R:
    """Return what `take` of a source has returned.

    Raises
    ------
    AnswerError
        If it is not of the kind. The message names the source by `place`.
    """
    if not isinstance(requests, kind):
        got = short_repr(requests)
        raise AnswerError(Problem(place=place, key="take", got=got, wanted=wanted))
    return requests


def next_chunk(source: RequestSource, stream: int) -> RequestChunk:
    """Return the next requests of a stream. Errors are those of `taken`."""
    wanted = "a RequestChunk, an empty one at the end"
    return taken(source.take(CHUNK), RequestChunk, f"stream {stream}", wanted)


@contextmanager
def planning(run: Planning) -> Iterator[None]:
    """Add the wall-clock time of a block to a run's planning time."""
    start_s = perf_counter()
    yield
    run.planning_s += perf_counter() - start_s


class Consulted:
    """Call a director and check its answers."""

    def __init__(self, director: Director, program: Program, run: Planning) -> None:
        self._director = director
        self._program = program
        self._run = run

    def next_ns(self, now_ns: int) -> int | None:
        """Return the director's next moment [ns], or None if it waits for reports only."""
        with planning(self._run):
            next_ns = self._director.next_ns()
        if next_ns is not None and next_ns < now_ns:
            raise ProblemsError(
                f"director: got {next_ns} ns as its next moment, wanted at least {now_ns}"
            )
        return next_ns

    def act(self, now_ns: int, reports: tuple[Report, ...]) -> tuple[Action, ...]:
        """Return the director's actions at a moment."""
        with planning(self._run):
            actions = tuple(self._director.act(now_ns, reports))
        for action in actions:
            self._check_action(action)
        return actions

    def _check_action(self, action: Action) -> None:
        program = self._program
        match action:
            case machine.SetGroup(group):
                _check_index("group", (group,), program.groups)
            case machine.Wake(stream):
                _check_index("stream", (stream,), len(program.streams))
                if not cast(machine.DirectedSource, program.streams[stream]).feed:
                    raise ProblemsError(
                        f"director: got stream {stream} to wake, wanted a feed"
                    )
            case machine.Slow(resources, slowdown):
                _check_index("resource", resources, len(program.resources))
                _check_slowdown(program, resources, slowdown)
            case machine.End():
                pass
            case _:
                _check_index("resource", action.resources, len(program.resources))


def check_no_deadlock(program: Program, waiting: IntArray) -> None:
    """Check that nothing waits once no event is left.

    Parameters
    ----------
    program
        The program that has run.
    waiting
        Steps that wait at each resource, shape (resources,).

    Raises
    ------
    ProblemsError
        If requests wait for units that other requests hold while they wait, or that they hold themselves.
    """
    if not waiting.any():
        return
    stuck = np.flatnonzero(waiting).tolist()
    names = [f"'{program.resources.names[index]}'" for index in stuck]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    raise ProblemsError(
        f"deadlock: got {waiting.sum()} steps that wait forever at {', '.join(names[:3])}{more}, wanted "
        "requests that acquire units in the same order, and not more of a pool than it has"
    )


def _check_slowdown(program: Program, resources: Sequence[int], slowdown: int) -> None:
    for resource in resources:
        discipline = program.resources.disciplines[resource]
        if discipline not in (machine.FIFO, machine.BATCH):
            name = program.resources.names[resource]
            kind = machine.DISCIPLINES[discipline]
            raise ProblemsError(
                f"director: got '{name}' to slow down, a {kind}, wanted fifo or batch"
            )
    if not machine.SLOWDOWN_UNIT <= slowdown <= machine.SLOWDOWN_MAX:
        wanted = f"{machine.SLOWDOWN_UNIT} to {machine.SLOWDOWN_MAX}"
        raise ProblemsError(f"director: got slowdown {slowdown}, wanted {wanted}")


def _check_index(name: str, indices: Iterable[int], count: int) -> None:
    for index in indices:
        if not 0 <= index < count:
            raise ProblemsError(
                f"director: got {name} {index}, wanted 0 to {count - 1}"
            )

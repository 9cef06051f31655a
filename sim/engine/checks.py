"""Validate programs and the decisions of directors. Each error is one line."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from typing import Protocol, cast

import numpy as np

from stripesim.models.problems import ProblemsError
from stripesim.sim.engine import program as machine
from stripesim.sim.engine.conditions import ALONE, IDLE, KEY_RANGES
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
    UNBOUND,
    Action,
    Director,
    Program,
    Report,
    RequestChunk,
)
from stripesim.sim.engine.shares import MCLOCK, WPQ


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
        exist, or a stream does not suit a run with a director.
    """
    _check_bindings(program)
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


def check_chunk(
    program: Program, stream: int, chunk: RequestChunk, after_ns: int
) -> None:
    """Check the next chunk of a stream.

    Parameters
    ----------
    program
        The program.
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
    _check_plan(where, program, chunk)
    _check_parts(where, chunk)
    if program.streams[stream].queue_depth:
        return
    if chunk.arrivals_ns is None:
        raise ProblemsError(
            f"{where}: got no arrival times, wanted one per request of an open stream"
        )
    if chunk.arrivals_ns[0] < after_ns or (np.diff(chunk.arrivals_ns) < 0).any():
        raise ProblemsError(
            f"{where}: got decreasing arrival times, wanted ascending ones"
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


def check_replanned(
    program: Program, stream: int, chunk: RequestChunk, before: RequestChunk
) -> None:
    """Check requests that a stream planned again.

    Parameters
    ----------
    program
        The program.
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
    _check_plan(
        f"stream {stream}, planned again",
        program,
        replace(before, templates=chunk.templates, bindings=chunk.bindings),
    )


def _check_plan(where: str, program: Program, chunk: RequestChunk) -> None:
    shape = (len(chunk),)
    if chunk.templates.shape != shape or chunk.bindings.shape != shape:
        shapes = f"{chunk.templates.shape} and {chunk.bindings.shape}"
        raise ProblemsError(
            f"{where}: got templates and bindings of shape {shapes}, wanted {shape}"
        )
    rows, clients = machine.rows_of(chunk.bindings)
    for name, indices, count in (
        ("template", chunk.templates, len(program.book.templates)),
        ("binding", rows, len(program.book.bindings)),
        ("client's binding", np.maximum(clients, 0), len(program.book.bindings)),
        ("group", chunk.groups, program.groups),
    ):
        if indices.min() < 0 or indices.max() >= count:
            raise ProblemsError(
                f"{where}: got {name} {indices.min()} to {indices.max()}, wanted 0 to {count - 1}"
            )
    present = np.flatnonzero(np.bincount(chunk.templates))
    used = [program.book.templates[index] for index in present.tolist()]
    _check_roles(where, program, used)
    _check_keys(where, chunk, used)
    _check_spawned(where, program, used)
    _check_classes(where, program, used)
    _check_disciplines(where, program, chunk)


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


def _check_disciplines(where: str, program: Program, chunk: RequestChunk) -> None:
    """Check that each role is bound to a discipline that its words and tests allow."""
    disciplines = program.resources.disciplines
    has_dynamics = any(template.dynamics for template in program.book.templates)
    if not has_dynamics and not (disciplines == machine.GATE).any():
        return
    # A role is normally bound to one discipline in all rows, so one test per template
    # suffices.
    rows = machine.bound_rows(program.book, _distinct(chunk.bindings))
    kinds = np.where(rows >= 0, 1 << disciplines[rows], 0)
    bound = np.bitwise_or.reduce(kinds, axis=0)
    doubtful = [
        index
        for index in _distinct(chunk.templates).tolist()
        if any(_differs(bound, path) for path in _paths(program.book.templates[index]))
    ]
    for index in doubtful:
        used = machine.bound_rows(
            program.book, np.unique(chunk.bindings[chunk.templates == index])
        )
        for path in _paths(program.book.templates[index]):
            _check_path(where, program, path, used)


def _distinct(numbers: IntArray) -> IntArray:
    """Return distinct numbers in ascending order, for the few of a chunk faster than numpy does."""
    return np.array(sorted(set(numbers.tolist())), dtype=np.int64)


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

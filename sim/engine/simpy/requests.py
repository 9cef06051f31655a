"""What the SimPy engine keeps of a request, of its template and of its stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import simpy

from stripesim.sim.engine.checks import check_chunk, planning
from stripesim.sim.engine.graph import COUNTERS, STEP_BITS, Template
from stripesim.sim.engine.program import (
    CHUNK,
    PENDING,
    DirectedSource,
    RequestChunk,
    StreamRun,
)

if TYPE_CHECKING:
    from stripesim.sim.engine.simpy.engine import SimpyEngine

# How a step waits: for its one predecessor, for all, for those that run.
ONE, ALL, MERGE = range(3)
# Calendar keys of what is no step, below every step's key: the director's moments, ends of
# services whose steps were cut off, timeouts, arrivals.
DIRECTOR_KEY, LOST_KEY, TIMEOUT_KEY, ARRIVAL_KEY = (
    -(order << 60) for order in (4, 3, 2, 1)
)
# Looks at queues that classes share: after timeouts, before arrivals.
LOOK_KEY = -(3 << 59)


class Path:
    """A template as plain lists: what the inner loop indexes."""

    __slots__ = (
        "amounts",
        "dynamics",
        "following",
        "planned",
        "predecessors",
        "reply",
        "roles",
        "words",
    )

    def __init__(
        self, template: Template, spawned: Sequence[int], *, counted: bool
    ) -> None:
        starts = template.successor_starts
        self.words = template.words.tolist()
        self.roles = template.roles.tolist()
        self.predecessors = template.predecessors.tolist()
        self.dynamics = Dynamics(template, spawned) if template.dynamics else None
        merges = self.dynamics.merges if self.dynamics else [False] * template.steps
        # What it takes to start a step: its number, how it waits for its predecessors,
        # word, role, demand before any spread, distribution. A director may ask which have begun.
        alone = 0 if counted else 1
        starting = list(
            zip(
                range(template.steps),
                [
                    MERGE if merge else ALL if count > alone else ONE
                    for count, merge in zip(self.predecessors, merges, strict=True)
                ],
                self.words,
                self.roles,
                template.demands_ns.tolist(),
                template.spreads.tolist(),
                strict=True,
            )
        )
        self.following = [
            [
                starting[after]
                for after in template.successors[starts[step] : starts[step + 1]]
            ]
            for step in range(template.steps)
        ]
        self.reply = template.reply
        self.amounts = template.amounts
        # Whether the plan tells what a request takes, so that nobody needs to count.
        self.planned = template.planned and not counted


class Dynamics:
    """What a template has beyond the plain words, as plain lists."""

    def __init__(self, template: Template, spawned: Sequence[int]) -> None:
        dynamics = template.dynamics
        assert dynamics is not None
        self.merges: list[bool] = dynamics.merges.tolist()
        self.tests: list[int] = dynamics.tests.tolist()
        self.keys: list[int] = dynamics.keys.tolist()
        self.tickets: list[int] = dynamics.tickets.tolist()
        self.yes_counts: list[int] = dynamics.yes_counts.tolist()
        # The template in the book that a step spawns.
        self.spawned = [
            spawned[index] if index >= 0 else -1 for index in dynamics.spawns.tolist()
        ]
        self.once = [amounts if amounts.any() else None for amounts in dynamics.once]
        self.threads: list[int] = dynamics.threads.tolist()
        self.classes: list[int] = dynamics.classes.tolist()
        self.costs: list[int] = dynamics.costs.tolist()


class Ticket:
    """A place in a gate: whether it still keeps later ones from their turn, and who waits for its own."""

    __slots__ = ("passed", "waiting")

    def __init__(self) -> None:
        self.passed = False
        self.waiting: tuple[Request, int] | None = None


class Request(simpy.Event):
    """A request in flight; the calendar holds it once for each step in service."""

    # Of the gates that it has entered, by enter step; how often it has pinned each key range.
    tickets: dict[int, Ticket]
    held: list[int]
    # The acquires that found their unit idle: threads that it had to wake.
    woken: set[int]
    # Those of them for whose wake-up a core has spent the time.
    awake: set[int]
    # Where the ends of its steps are noted, if it is followed.
    ends_ns: list[int] | None = None
    # Where there is a director: units that it holds, by pool; steps not yet done.
    units: dict[int, int]
    steps_left: int

    def __init__(
        self,
        number: int,
        path: Path,
        row: list[int],
        keys: list[range] | None,
        stream: int,
        seed: int,
    ) -> None:
        # The environment does not know of a request: the engine schedules its steps.
        self.number = number
        self.keys = keys
        # Its client's stream, and behind all of those the stream of what each spawned.
        self.stream = stream
        # Of its random service times.
        self.seed = seed
        # With a step in its low bits it is that step's key in the calendar.
        self.key = number << STEP_BITS
        self.path = path
        self.row = row
        self.pending = path.predecessors.copy()
        if path.dynamics:
            self.tickets = {}
            self.woken, self.awake = set(), set()
            self.held = [0] * len(keys or ())


class Signal(simpy.Event):
    """A calendar entry that is no step: an arrival, a moment of the director, a timeout."""

    def __init__(
        self,
        action: Callable[[], None],
        due: Callable[[], bool] | None = None,
        resource: int = -1,
    ) -> None:
        self.action = action
        self.due = due
        self.resource = resource


class Log:
    """What is noted of the requests of a stream, in the order of issue."""

    def __init__(self, counted: bool) -> None:
        self.issued_ns: list[int] = []
        self.completed_ns: list[int] = []
        self.chosen: list[tuple[int, int, int]] = []
        self.taken = np.zeros(len(COUNTERS), dtype=np.int64)
        self.taken_uses = 0
        self.counted = counted
        # Of those that were cut off to be issued again, by place.
        self.retries: dict[int, int] = {}

    def note(self, now_ns: int, template: int, binding: int, group: int) -> None:
        """Note the issue of a request."""
        self.issued_ns.append(now_ns)
        self.completed_ns.append(PENDING)
        self.chosen.append((template, binding, group))

    def result(self) -> StreamRun:
        """Return all that was noted."""
        chosen = np.array(self.chosen, dtype=np.int64).reshape(len(self.chosen), 3)
        retries = np.zeros(len(self.chosen) if self.counted else 0, dtype=np.int64)
        retries[list(self.retries)] = list(self.retries.values())
        return StreamRun(
            issued_ns=np.array(self.issued_ns, dtype=np.int64),
            completed_ns=np.array(self.completed_ns, dtype=np.int64),
            templates=chosen[:, 0],
            bindings=chosen[:, 1],
            groups=chosen[:, 2],
            taken=self.taken,
            taken_uses=self.taken_uses,
            counted=self.counted,
            retries=retries,
        )


class Stream(Log):
    """A stream's requests, as far as they are planned and issued."""

    def __init__(self, engine: SimpyEngine, index: int) -> None:
        directed = engine.program.director is not None
        super().__init__(directed)
        self.engine = engine
        self.index = index
        self.source = engine.program.streams[index]
        self.depth = self.source.depth
        self.chunk: RequestChunk | None = None
        self.at = 0
        # A feed that is woken has not ended after all.
        self.ended = False
        self.outstanding = 0
        # Places of what has completed without its client having looked at it.
        self.unnoticed: list[int] = []
        self.newest_only = index in engine.program.newest_only
        self.drained = False
        self.last_arrival_ns = 0
        self.feed = self.reports = False
        self.timeout_ns = 0
        if directed:
            assert isinstance(self.source, DirectedSource)
            self.feed, self.reports = self.source.feed, self.source.reports
            self.timeout_ns = self.source.timeout_ns

    def number(self, place: int) -> int:
        """Return the number of the stream's request at a place of the order of issue."""
        return place * len(self.engine.streams) + self.index

    def refill(self) -> bool:
        """Make sure a planned request is at hand; False at the stream's end."""
        if self.chunk is not None and self.at < len(self.chunk):
            return True
        if not self.ended:
            with planning(self.engine):
                chunk = self.source.take(CHUNK)
            self.chunk = chunk
            self.at = 0
            self.ended = len(chunk) == 0
            if not self.ended:
                check_chunk(
                    self.engine.program, self.index, chunk, self.last_arrival_ns
                )
                if chunk.arrivals_ns is not None:
                    self.last_arrival_ns = int(chunk.arrivals_ns[-1])
        return not self.ended

    def fill(self) -> None:
        """Issue what a closed loop may have outstanding."""
        while self.outstanding < self.depth and self.refill():
            self.issue()

    def notice(self, place: int) -> None:
        """Note a client's completion, now or when the client looks; let a closed loop go on."""
        if self.newest_only and not self.drained and place != len(self.issued_ns) - 1:
            self.unnoticed.append(place)
            return
        noticed, self.unnoticed = [place, *self.unnoticed], []
        for other in noticed:
            self.completed_ns[other] = int(self.engine.now)
        self.outstanding -= len(noticed)
        if not self.depth:
            return
        self.drained = self.newest_only and not self.refill()
        for _ in noticed:
            if self.refill():
                self.issue()

    def issue(self) -> None:
        """Issue the next planned request; one to a group that is held waits."""
        engine = self.engine
        assert self.chunk is not None
        at = self.at
        self.at = at + 1
        group = int(self.chunk.groups[at])
        template, binding = int(self.chunk.templates[at]), int(self.chunk.bindings[at])
        number = self.number(len(self.issued_ns))
        self.note(int(engine.now), template, binding, group)
        self.outstanding += 1
        keys = None
        if self.chunk.keys is not None:
            keys = [range(first, stop) for first, stop in self.chunk.keys[at].tolist()]
        if self.timeout_ns:
            engine.directed.watch(self)
        if engine.held[group]:
            engine.directed.waiting[number] = keys
        else:
            engine.start(number, template, binding, keys, self.index)

    def issue_again(
        self, place: int, template: int, binding: int, keys: list[range] | None
    ) -> None:
        """Issue a request that was cut off, or that waited."""
        self.chosen[place] = (template, binding, self.chosen[place][2])
        self.engine.start(
            self.number(place),
            template,
            binding,
            keys,
            self.index,
            retries=self.retries.get(place, 0),
        )

    def schedule_arrival(self) -> None:
        """Put the next arrival of an open stream into the calendar."""
        if self.refill():
            assert self.chunk is not None and self.chunk.arrivals_ns is not None
            number = self.number(len(self.issued_ns))
            self.engine.signal(
                int(self.chunk.arrivals_ns[self.at]),
                ARRIVAL_KEY + number,
                Signal(self.arrive),
            )

    def arrive(self) -> None:
        """Issue one request of an open stream and schedule the next arrival."""
        self.issue()
        self.schedule_arrival()

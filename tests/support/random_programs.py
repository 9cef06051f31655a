"""Random programs, drawn from a `random.Random`. `KINDS` is the way in.

A seed always gives the same program, so a failing one can be run again by its kind and seed:
``KINDS["directed"](Random(17))``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from stripesim.sim.engine.draws import FACTOR_ONE, FACTOR_POINTS
from stripesim.sim.engine.graph import (
    USE,
    IntArray,
    Template,
    chained,
)
from stripesim.sim.engine.graph_builder import GraphBuilder
from stripesim.sim.engine.program import (
    BATCH,
    BY_CLIENT,
    FIFO,
    GATE,
    PENDING,
    POOL,
    SLOWDOWN_MAX,
    SLOWDOWN_UNIT,
    UNBOUND,
    Action,
    Program,
    Report,
    RequestChunk,
    Resources,
    RunView,
    SetGroup,
    Slow,
    Start,
    Stop,
    Wake,
    with_client,
)
from stripesim.sim.engine.shares import FAIR, MCLOCK, QUOTA, WPQ, Share, ShareClass
from support.random_graphs import (
    CLASSES,
    Growing,
    random_dynamic_template,
    random_template,
)


@dataclass
class Book:
    """A book that grows while its streams plan."""

    all_templates: list[Template]
    all_bindings: IntArray
    templates: list[Template] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    numbers: dict[tuple[str, int], int] = field(default_factory=dict)

    @property
    def bindings(self) -> IntArray:
        return self.all_bindings[self.rows]

    def template(self, index: int) -> int:
        if ("template", index) not in self.numbers:
            self.numbers["template", index] = len(self.templates)
            template = self.all_templates[index]
            self.templates.append(template)
            for spawned in template.dynamics.spawned if template.dynamics else ():
                self.template(
                    next(
                        at
                        for at, other in enumerate(self.all_templates)
                        if other is spawned
                    )
                )
        return self.numbers["template", index]

    def binding(self, index: int) -> int:
        if ("binding", index) not in self.numbers:
            self.numbers["binding", index] = len(self.rows)
            self.rows.append(index)
        return self.numbers["binding", index]


@dataclass
class Source:
    """A stream that gives a fixed sequence in chunks of a fixed size."""

    book: Book
    queue_depth: int
    templates: IntArray
    bindings: IntArray
    groups: IntArray
    arrivals_ns: IntArray | None
    chunk: int
    keys: IntArray | None = None
    at: int = 0
    #: Binding row of each request's client, if there are clients.
    clients: IntArray | None = None
    #: True for each part that continues the request before it.
    continues: npt.NDArray[np.bool_] | None = None

    def take(self, count: int) -> RequestChunk:
        stop = self.at + min(count, self.chunk)
        if self.continues is not None and count:
            # A chunk holds whole requests.
            while stop < len(self.continues) and self.continues[stop]:
                stop += 1
        part = slice(self.at, stop)
        self.at = part.stop
        row_of = np.vectorize(self.book.binding, otypes=[np.int64])
        bindings = row_of(self.bindings[part])
        if self.clients is not None:
            bindings = with_client(bindings, row_of(self.clients[part]))
        return RequestChunk(
            templates=np.vectorize(self.book.template, otypes=[np.int64])(
                self.templates[part]
            ),
            bindings=bindings,
            groups=self.groups[part],
            arrivals_ns=None if self.arrivals_ns is None else self.arrivals_ns[part],
            keys=None if self.keys is None else self.keys[part],
            continues=None if self.continues is None else self.continues[part],
        )


def random_factors(random: Random) -> IntArray:
    """Draw the factors of positioning times by the length of the queue."""
    later = [random.randint(0, FACTOR_ONE) for _ in range(random.randrange(5))]
    return np.array([FACTOR_ONE, *later], dtype=np.int64)


def plain_program(random: Random, *, quorums: bool = False) -> Program:
    """Draw a program."""
    servers, pools = random.randint(1, 4), random.randint(0, 3)
    kinds = [random.choice([FIFO, FIFO, BATCH]) for _ in range(random.randint(1, 6))]
    places_of_pool = [random.randint(1, 2) for _ in range(pools)]
    pairs = random.randint(1, 2)
    disciplines = kinds + [POOL] * sum(places_of_pool) + [BATCH, POOL] * pairs
    capacities = [random.choice([1, 1, 2, 3]) for _ in disciplines]
    capacities[-2 * pairs :: 2] = [1] * pairs
    resources = random_resources(random, capacities, disciplines, pairs)
    spreads = random.randint(1, 3)
    factor_tables = np.full((spreads, FACTOR_POINTS), FACTOR_ONE, dtype=np.int64)
    for row in range(1, spreads):
        factor_tables[row] = [
            random.randrange(4 * FACTOR_ONE) for _ in range(FACTOR_POINTS)
        ]
    templates = [
        random_template(random, f"t{index}", servers, pools, spreads, quorums=quorums)
        for index in range(random.randint(1, 5))
    ]
    rows = []
    for _ in range(random.randint(1, 6)):
        row = [
            random.choice([UNBOUND, *range(len(kinds)), *range(len(kinds))])
            for _ in range(servers)
        ]
        base = len(kinds)
        for places in places_of_pool:
            row.append(
                random.choice([UNBOUND, *(base + place for place in range(places))])
            )
            base += places
        rows.append(
            row + random_pair(random, [base + 2 * pair for pair in range(pairs)])
        )
    book = Book(
        templates,
        np.array(rows, dtype=np.int64).reshape(len(rows), servers + pools + 2),
    )
    groups = random.randint(1, 3)
    streams = [
        random_source(random, book, len(templates), len(rows), groups)
        for _ in range(random.choice([1, 1, 2, 3]))
    ]
    return Program(
        resources=resources,
        book=book,
        streams=streams,
        groups=groups,
        seed=random.randrange(1 << 32),
        factor_tables=factor_tables,
        position_factors=random_factors(random),
        until_ns=random.choice([None, None, 0, 100, random.randrange(3000)]),
        bin_ns=random.choice([0, 7, 100, 1000]),
        followed=random_numbers(random),
        newest_only=random_loops(random, streams),
    )


def dynamic_program(random: Random, *, quorums: bool = False) -> Program:
    """Draw a program with time-dependent behaviour: gates, pins, branches, spawns."""
    servers, pools, gates = (random.randint(low, 3) for low in (1, 0, 0))
    kinds = [random.choice([FIFO, FIFO, BATCH]) for _ in range(random.randint(1, 4))]
    disciplines = [*kinds]
    places: list[list[int]] = []
    for discipline, count in ((POOL, pools), (GATE, gates)):
        for _ in range(count):
            size = random.randint(1, 2)
            places.append(list(range(len(disciplines), len(disciplines) + size)))
            disciplines += [discipline] * size
    pairs = random.randint(1, 2)
    pair_places = [len(disciplines) + 2 * pair for pair in range(pairs)]
    disciplines += [BATCH, POOL] * pairs
    capacities = [
        1 if kind == GATE else random.choice([1, 1, 2, 5]) for kind in disciplines
    ]
    capacities[-2 * pairs :: 2] = [1] * pairs
    spreads = random.randint(1, 2)
    factor_tables = np.full((spreads, FACTOR_POINTS), FACTOR_ONE, dtype=np.int64)
    factor_tables[1:] = [random.randrange(4 * FACTOR_ONE) for _ in range(FACTOR_POINTS)]
    templates: list[Template] = []
    for index in range(random.randint(1, 4)):
        graph = GraphBuilder(f"t{index}")
        size = random.choice([3, 8, 8, 25])
        growing = Growing(
            random, graph, servers, pools, gates, spreads, list(templates), size
        )
        growing.quorums = quorums
        templates.append(random_dynamic_template(growing))
    rows = [
        [
            *(
                random.choice([UNBOUND, *range(len(kinds)), *range(len(kinds))])
                for _ in range(servers)
            ),
            *(random.choice([UNBOUND, *resources, *resources]) for resources in places),
            *random_pair(random, pair_places),
        ]
        for _ in range(random.randint(1, 4))
    ]
    book = Book(templates, np.array(rows, dtype=np.int64))
    streams = [
        random_source(random, book, len(templates), len(rows), 1)
        for _ in range(random.choice([1, 1, 2]))
    ]
    for stream in streams:
        if any(template.keyed for template in templates) or random.random() < 0.5:
            count = len(stream.groups)
            first = np.array(
                [random.randrange(10) for _ in range(2 * count)], dtype=np.int64
            )
            lengths = np.array(
                [random.randrange(4) for _ in range(2 * count)], dtype=np.int64
            )
            stream.keys = np.stack([first, first + lengths], axis=-1).reshape(
                count, 2, 2
            )
    return Program(
        resources=random_resources(random, capacities, disciplines, pairs),
        book=book,
        streams=streams,
        seed=random.randrange(1 << 32),
        factor_tables=factor_tables,
        position_factors=random_factors(random),
        until_ns=random.choice([None, None, None, 100, random.randrange(3000)]),
        bin_ns=random.choice([0, 7, 100]),
        followed=random_numbers(random),
        newest_only=random_loops(random, streams),
    )


def client_program(random: Random) -> Program:
    """Draw a program whose clients bind some roles, with paths that begin with another path."""
    program = random.choice([plain_program, dynamic_program])(random)
    book = program.book
    assert isinstance(book, Book)
    own = book.all_bindings
    clients = own[[random.randrange(len(own)) for _ in range(random.randint(1, 3))]]
    by_client = [random.random() < 0.5 for _ in range(own.shape[1])]
    own = np.where(by_client, BY_CLIENT, own)
    book.all_bindings = np.concatenate([own, clients])
    known = list(book.all_templates)
    for index in range(len(known)):
        if random.random() < 0.5:
            first = random.choice(known)
            book.all_templates.append(chained(first, known[index], name=f"c{index}"))
    for stream in program.streams:
        assert isinstance(stream, Source)
        draws = np.random.default_rng(random.randrange(1 << 32))
        count = len(stream.bindings)
        stream.templates = draws.integers(len(book.all_templates), size=count)
        stream.clients = len(own) + draws.integers(len(clients), size=count)
    return program


def random_pair(random: Random, places: list[int]) -> list[int]:
    """Draw a batch server and the pool of the threads that serve it, or nothing."""
    place = random.choice([UNBOUND, *places, *places])
    return [place, place + 1 if place >= 0 else UNBOUND]


def random_resources(
    random: Random, capacities: list[int], disciplines: list[int], pairs: int
) -> Resources:
    """Draw kinds, costs of waking, slices, processes; the last are pairs of batch and pool."""
    count = len(disciplines)
    names = tuple(f"r{index}" for index in range(count))
    kinds = tuple(random.choice(["a", "b", "c"]) for _ in range(count))
    wake_ns = np.array(
        [random.choice([0, 0, 1, 10, 30]) for _ in range(count)], dtype=np.int64
    )
    shares = tuple(random_share(random) for _ in range(random.choice([0, 0, 1, 2])))
    indices = [
        random.randrange(-1, len(shares)) if discipline in (FIFO, POOL) else -1
        for discipline in disciplines
    ]
    indices[count - 2 * pairs :] = [-1] * (2 * pairs)
    slices = [
        random.choice([0, 1, 15, 100]) if discipline == FIFO else 0
        for discipline in disciplines
    ]
    served_by = np.full(count, -1)
    for pair in range(pairs):
        if random.random() < 0.8:
            served_by[count - 2 * pair - 2] = count - 2 * pair - 1
    processes = np.array(
        [
            random.randrange(-1, 2) if discipline == POOL else -1
            for discipline in disciplines
        ]
    )
    if random.random() < 0.7:
        wake_ns[processes >= 0] += 10
    return Resources(
        names,
        kinds,
        np.array(capacities),
        np.array(disciplines),
        wake_ns,
        shares,
        np.array(indices),
        np.array(slices),
        served_by,
        paired=np.array(
            [
                int(discipline == FIFO and random.random() < 0.3)
                for discipline in disciplines
            ]
        ),
        paired_slowdown=random.choice([0, 500, 1024]),
        processes=processes,
        warm_ns=random.randint(0, min([40, *wake_ns[processes >= 0].tolist()])),
        cool_ns=random.choice([0, 1, 20, 100]),
    )


def random_share(random: Random) -> Share:
    """Draw a queue shared by classes, with rates that advance tags by a few demands."""
    kind = random.choice([WPQ, MCLOCK, MCLOCK, FAIR, FAIR, QUOTA])
    if kind == QUOTA:
        # Periods of a few demands, with quotas from one demand to more than one server gives.
        return Share(
            QUOTA,
            quota_ns=random.choice([1, 10, 40, 150]),
            period_ns=random.choice([7, 50, 100]),
        )
    rates = [0, 0, 10**7, 10**8, 10**8, 3 * 10**8, 10**9]
    return Share(
        kind,
        tuple(
            ShareClass(
                weight=random.choice([1, 2, 3, 10, 10**6, 3 * 10**8]),
                reservation=random.choice(rates),
                limit=random.choice(rates),
                strict=random.choice([0, 0, 0, 0, 0, 1, 1, 2]),
            )
            if random.random() < 0.8 or kind != MCLOCK
            else ShareClass(weight=0, reservation=10**8, limit=random.choice(rates))
            for _ in range(CLASSES)
        ),
    )


def random_loops(random: Random, streams: list[Source]) -> frozenset[int]:
    """Draw the closed loops whose client waits for its newest request."""
    return frozenset(
        index
        for index, stream in enumerate(streams)
        if stream.queue_depth and random.random() < 0.3
    )


def random_numbers(random: Random) -> IntArray:
    """Draw the requests to follow, mostly none. Some are never issued."""
    count = random.choice([0, 0, 1, 5, 20])
    return np.array(sorted(random.sample(range(100), count)), dtype=np.int64)


def random_source(
    random: Random, book: Book, templates: int, bindings: int, groups: int
) -> Source:
    """Draw a stream, closed or open, of up to some tens of requests."""
    count = random.choice([0, 1, 5, 30, 90])
    queue_depth = random.choice([0, 1, 3, 8])
    arrivals_ns = None
    if queue_depth == 0:
        gaps = [random.choice([0, 1, 10, 40]) for _ in range(count)]
        arrivals_ns = np.cumsum(np.array(gaps, dtype=np.int64))
    draws = np.random.default_rng(random.randrange(1 << 32))
    source = Source(
        book=book,
        queue_depth=queue_depth,
        templates=draws.integers(templates, size=count),
        bindings=draws.integers(bindings, size=count),
        groups=draws.integers(groups, size=count),
        arrivals_ns=arrivals_ns,
        chunk=random.choice([1, 3, 20, 4096]),
    )
    if count and random.random() < 0.4:
        # Two parts of three continue a request: some requests have many parts, some have one.
        source.continues = np.append(False, draws.random(count - 1) < 2 / 3)
        if arrivals_ns is not None:
            firsts = np.flatnonzero(~source.continues)
            requests = np.cumsum(~source.continues) - 1
            source.arrivals_ns = arrivals_ns[firsts][requests]
    return source


# ------------------------------------------------------------------------------- directors


@dataclass
class DirectedStream(Source):
    """A stream that replans at random. As a feed, it is sometimes empty."""

    draws: int = 0
    reports: bool = False
    feed: bool = False
    timeout_ns: int = 0
    pauses: list[bool] = field(default_factory=list)
    replans: int = 0

    def take(self, count: int) -> RequestChunk:
        if self.feed and self.pauses and self.pauses.pop():
            count = 0
        return super().take(count)

    def replan(self, indices: IntArray) -> RequestChunk:
        self.replans += 1
        draws = np.random.default_rng([self.draws, self.replans])
        templates = draws.integers(len(self.book.all_templates), size=len(indices))
        bindings = draws.integers(len(self.book.all_bindings), size=len(indices))
        return RequestChunk(
            templates=np.vectorize(self.book.template, otypes=[np.int64])(templates),
            bindings=np.vectorize(self.book.binding, otypes=[np.int64])(bindings),
            groups=self.groups[indices],
        )


@dataclass
class RandomDirector:
    """A director that does this and that at its moments, and when it hears of something."""

    random: Random
    moments: list[int]
    resources: int
    groups: int
    feeds: list[int]
    # True if all servers work at the end.
    mends: bool
    streams: int
    templates: Sequence[Template] = ()
    # Servers that it slows down, none in half of the programs, by draws of their own.
    servers: Sequence[int] = ()
    slows: Random = field(default_factory=Random)
    # Each report with its time, the ended requests of each stream and the begun requests of the others.
    acted: list[tuple[int, list[Report], list[int], list[Any]]] = field(
        default_factory=list
    )

    def begin(self, view: RunView) -> None:
        self.view = view

    def next_ns(self) -> int | None:
        return self.moments[0] if self.moments else None

    def act(self, now_ns: int, reports: Sequence[Report]) -> Sequence[Action]:
        ended = [
            int((self.view.completed_ns(stream) != PENDING).sum())
            for stream in range(self.streams)
        ]
        begun = sorted(self.begun(stream) for stream in range(self.streams))
        self.acted.append((now_ns, list(reports), ended, begun))
        random = self.random
        if self.moments and self.moments[0] <= now_ns:
            self.moments.pop(0)
            if not self.moments and self.mends:
                groups = [
                    SetGroup(group, held=False, interrupt=True)
                    for group in range(self.groups)
                ]
                return [
                    Start(tuple(range(self.resources))),
                    *groups,
                    *map(Wake, self.feeds),
                ]
        elif random.random() < 0.5 or (self.mends and not self.moments):
            return []
        if self.moments and random.random() < 0.2:
            # A report lets it return earlier.
            self.moments.insert(0, random.randint(now_ns, max(now_ns, self.moments[0])))
        actions = [self.action() for _ in range(random.choice([0, 1, 1, 2, 5]))]
        return actions + self.slow_downs()

    def slow_downs(self) -> list[Action]:
        """Slow servers down or bring them back, sometimes one twice at a moment."""
        draw = self.slows
        if not self.servers:
            return []
        factors = [1, 1, 1.5, 2, 3.333, 10, SLOWDOWN_MAX / SLOWDOWN_UNIT]
        return [
            Slow(
                tuple(draw.choices(self.servers, k=draw.randint(1, 3))),
                round(draw.choice(factors) * SLOWDOWN_UNIT),
            )
            for _ in range(draw.choice([0, 1, 1, 2]))
        ]

    def begun(self, stream: int) -> list[Any]:
        """Steps at servers, but those that wait for one of several."""
        found = []
        for one in self.view.begun(stream):
            template = self.templates[one.template]
            plain = template.words == USE
            if template.dynamics is not None:
                plain &= ~np.array(template.dynamics.merges, dtype=bool)
            found.append(
                (one.number, one.template, np.flatnonzero(one.steps & plain).tolist())
            )
        return sorted(found)

    def action(self) -> Action:
        random = self.random
        if self.feeds and random.random() < 0.2:
            return Wake(random.choice(self.feeds))
        if random.random() < 0.5:
            return SetGroup(
                random.randrange(self.groups),
                random.random() < 0.3,
                random.random() < 0.6,
            )
        some = tuple(
            random.sample(
                range(self.resources), random.randint(1, min(3, self.resources))
            )
        )
        return Stop(some) if random.random() < 0.5 else Start(some)


def quorum_program(random: Random) -> Program:
    """Draw a program with joins of the first few, with or without a director."""
    draw = random.choice([plain_program, dynamic_program, directed_program])
    return draw(random, quorums=True)


def directed_program(random: Random, *, quorums: bool = False) -> Program:
    """Draw a program with a director."""
    draw = random.choice([plain_program, dynamic_program])
    program = draw(random, quorums=quorums)
    groups = random.randint(1, 4)
    streams = []
    for stream in program.streams:
        assert isinstance(stream, Source)
        draws = random.randrange(1 << 32)
        groups_of = np.random.default_rng(draws).integers(
            groups, size=len(stream.groups)
        )
        feed = stream.queue_depth > 0 and random.random() < 0.4
        streams.append(
            DirectedStream(
                **{**vars(stream), "groups": groups_of},
                draws=draws,
                reports=feed or random.random() < 0.2,
                feed=feed,
                timeout_ns=random.choice([0, 0, 1, 50, 300]),
                pauses=[
                    random.random() < 0.3 for _ in range(random.choice([0, 5, 50]))
                ],
            )
        )
    director = RandomDirector(
        random=Random(random.randrange(1 << 32)),
        moments=sorted(
            random.choice([0, 10, 100, random.randrange(1500)])
            for _ in range(random.randrange(12))
        ),
        resources=len(program.resources),
        groups=groups,
        feeds=[index for index, stream in enumerate(streams) if stream.feed],
        mends=random.random() < 0.7,
        streams=len(streams),
        templates=program.book.templates,
    )
    until_ns = random.choice([None, None, None, random.randrange(2000)])
    if random.random() < 0.5:
        servers = np.isin(program.resources.disciplines, (FIFO, BATCH))
        director.servers = np.flatnonzero(servers).tolist()
        director.slows = Random(random.randrange(1 << 32))
    return replace(
        program,
        streams=streams,
        groups=groups,
        director=director,
        until_ns=until_ns,
        newest_only=frozenset(),
    )


# Kinds of programs: plain words, time-dependent behaviour (gates, pins, branches, spawns), a director,
# joins of the first few.
KINDS: dict[str, Callable[[Random], Program]] = {
    "plain": plain_program,
    "dynamic": dynamic_program,
    "client": client_program,
    "directed": directed_program,
    "quorums": quorum_program,
}

"""Random op graphs, drawn from a `random.Random`: with the plain words, or with every word of the machine.

Roles of a graph: its servers, then its pools, then its gates, at last a batch server and the pool of the
threads that serve it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from stripesim.sim.engine import conditions
from stripesim.sim.engine.conditions import Test
from stripesim.sim.engine.graph import (
    ACQUIRE,
    DELAY,
    NONE,
    USE,
    Template,
)
from stripesim.sim.engine.graph_builder import GraphBuilder

# Few different demands, so that many things happen at the same time and ties are met.
CLASSES = 3
DEMANDS_NS = (0, 1, 5, 10, 10, 10, 20, 100)


def random_class(random: Random, graph: GraphBuilder, step: int) -> None:
    """Put a step into a class, or not."""
    if random.random() < 0.8:
        graph.in_class(
            step, random.randrange(CLASSES), random.choice([1, 1, 2, 5, 20, 1000])
        )


def random_first(random: Random, steps: Sequence[int]) -> int:
    """Draw the number of steps that a join waits for."""
    return random.randint(1, len(set(steps)))


def flushed(
    random: Random, graph: GraphBuilder, after: Sequence[int], servers: int, role: int
) -> int:
    """Add work on a thread that then serves the batch server of its pool. Their roles are the last two."""
    thread = graph.acquire(role + 1, after=after, label="kv thread")
    work = graph.use(
        random.randrange(servers), random.choice(DEMANDS_NS), after=[thread], label="kv"
    )
    random_class(random, graph, work)
    graph.on_thread(work, thread)
    early = random.random() < 0.8
    if not early:
        work = graph.release(role + 1, after=[work], label="kv thread back")
    synced = graph.use(
        role, random.choice(DEMANDS_NS), after=[work], label="sync", messages=1
    )
    if early:
        graph.release(role + 1, after=[work], label="kv thread back")
    return synced


def random_position(random: Random, graph: GraphBuilder, use: int) -> None:
    """Let some uses with a distribution be shorter the more steps wait."""
    demand_ns = graph.demands_ns[use]
    if graph.spreads[use] and demand_ns and random.random() < 0.3:
        graph.sort(use, random.randint(1, demand_ns))


def random_template(
    random: Random,
    name: str,
    servers: int,
    pools: int,
    spreads: int,
    *,
    quorums: bool = False,
) -> Template:
    """Draw an op graph that acquires pools in ascending order, so that it cannot deadlock."""
    graph = GraphBuilder(name)
    held: list[tuple[int, int]] = []
    pool = 0
    last_acquire = graph.issue
    size = random.choice([1, 2, 4, 8, 8, 16, 60])
    for _ in range(size):
        after = [
            random.randrange(len(graph.words)) for _ in range(random.randint(1, 3))
        ]
        kind = random.choice(
            ["use"] * 6 + ["delay", "join", "acquire", "acquire", "release", "flush"]
        )
        if kind == "flush":
            flushed(random, graph, after, servers, servers + pools)
        elif kind == "use":
            acquires = [
                at
                for at, word in enumerate(graph.words)
                if word == ACQUIRE and graph.roles[at] < servers + pools
            ]
            thread = (
                random.choice(acquires) if acquires and random.random() < 0.5 else None
            )
            use = graph.use(
                random.randrange(servers),
                random.choice(DEMANDS_NS),
                after=after if thread is None else [*after, thread],
                label="use",
                spread=random.randrange(spreads),
                cpu_ns=random.choice([0, 0, 3]),
                messages=random.choice([0, 1]),
            )
            random_class(random, graph, use)
            random_position(random, graph, use)
            if thread is not None:
                graph.on_thread(use, thread)
        elif kind == "delay":
            role = random.choice([-1, random.randrange(servers)])
            graph.delay(role, random.choice(DEMANDS_NS), after=after, label="delay")
        elif kind == "join":
            steps = [*after, graph.issue]
            graph.join(steps, first=random_first(random, steps) if quorums else None)
        elif kind == "acquire" and pool < pools:
            last_acquire = graph.acquire(
                servers + pool, after=[*after, last_acquire], label="acquire"
            )
            random_class(random, graph, last_acquire)
            held.append((servers + pool, last_acquire))
            pool += 1
        elif kind == "release" and held:
            role, step = held.pop(random.randrange(len(held)))
            graph.release(role, after=[*after, step], label="release")
    for role, step in held:
        after = [random.randrange(len(graph.words)) for _ in range(2)]
        graph.release(role, after=[*after, step], label="release")
    reply = (
        random.randrange(len(graph.words))
        if random.random() < 0.3
        else len(graph.words) - 1
    )
    return graph.finish(reply=reply)


@dataclass
class Growing:
    """An op graph of nested parts with every word of the machine, drawn from a `Random`.

    Nothing can deadlock: pools are taken in ascending order, gates too and inside pools only,
    and a ticket has its turn after steps that wait for nothing but later gates.
    """

    random: Random
    graph: GraphBuilder
    servers: int
    pools: int
    gates: int
    spreads: int
    spawned: list[Template]
    budget: int
    tickets: list[int] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)
    # True for joins of the first few, and tests of completion.
    quorums: bool = False
    # Steps beside the current one whose completion can be tested.
    beside: list[int] = field(default_factory=list)

    def grow(self, step: int, pool: int = 0, gate: int = 0) -> int:
        """Add parts one after the other behind a step; return the last step."""
        for _ in range(self.random.choice([0, 1, 1, 2, 3])):
            if self.budget <= 0:
                break
            self.budget -= 1
            step = self.part(step, pool, gate)
        return step

    def part(self, step: int, pool: int, gate: int) -> int:
        random, graph = self.random, self.graph
        parts = [self.use, self.use, self.fork, self.fork, self.branch, self.branch]
        parts += [self.pin, self.spawn, self.flush]
        if gate < self.gates:
            parts += [self.gate, self.gate]
        if pool < self.pools and not gate:
            parts.append(self.pool)
        if random.random() < 0.1:
            role = random.choice([-1, random.randrange(self.servers)])
            return graph.delay(
                role, random.choice(DEMANDS_NS), after=[step], label="delay"
            )
        return random.choice(parts)(step, pool, gate)

    def use(self, step: int, pool: int, gate: int) -> int:
        random = self.random
        use = self.graph.use(
            random.randrange(self.servers),
            random.choice(DEMANDS_NS),
            after=[step],
            label="use",
            spread=random.randrange(self.spreads),
            cpu_ns=random.choice([0, 0, 3]),
            messages=random.choice([0, 1]),
        )
        if random.random() < 0.3:
            self.graph.per_service(
                use, device_write_bytes=random.randrange(100), messages=1
            )
        random_class(random, self.graph, use)
        random_position(random, self.graph, use)
        if self.threads and random.random() < 0.5:
            self.graph.on_thread(use, random.choice(self.threads))
        return use

    def flush(self, step: int, pool: int, gate: int) -> int:
        return flushed(
            self.random,
            self.graph,
            [step],
            self.servers,
            self.servers + self.pools + self.gates,
        )

    def fork(self, step: int, pool: int, gate: int) -> int:
        if self.quorums:
            return self.race(step, pool, gate)
        ends = [self.grow(step, pool, gate) for _ in range(self.random.randint(2, 3))]
        # Some parts continue independently.
        return self.graph.join(ends[: self.random.choice([1, 3, 3])])

    def race(self, step: int, pool: int, gate: int) -> int:
        """Add parts side by side, which may test whether those before them have completed."""
        known = len(self.beside)
        ends = []
        for _ in range(self.random.randint(2, 4)):
            ends.append(self.grow(step, pool, gate))
            if self.can_be_tested(ends[-1]):
                self.beside.append(ends[-1])
        del self.beside[known:]
        return self.graph.join(ends, first=random_first(self.random, ends))

    def can_be_tested(self, step: int) -> bool:
        words = self.graph.words
        is_plain = step < len(words) and words[step] in (NONE, USE, DELAY)
        return is_plain and step not in self.graph.merges

    def test(self) -> Test:
        random = self.random
        tests = [conditions.idle(random.randrange(-1, self.servers + self.pools))]
        tests += [
            conditions.pinned(random.randrange(2)),
            conditions.pinned(random.randrange(2)),
        ]
        if self.gates:
            tests.append(
                conditions.idle(
                    self.servers + self.pools + random.randrange(self.gates)
                )
            )
        if self.tickets:
            tests += [conditions.alone(self.tickets[-1])] * 2
        if self.beside:
            tests += [conditions.completed(random.choice(self.beside))] * 3
        return random.choice(tests)

    def branch(self, step: int, pool: int, gate: int) -> int:
        sides = self.graph.branch(self.test(), after=[step], label="branch")
        ends = [self.grow(side, pool, gate) for side in sides]
        if self.random.random() < 0.3:
            ends.append(self.grow(step, pool, gate))
        if self.random.random() < 0.3:
            # A step of one side that also waits for what runs anyway.
            ends[0] = self.graph.join([ends[0], self.use(step, pool, gate)])
        return self.graph.merge(ends)

    def pin(self, step: int, pool: int, gate: int) -> int:
        pin = self.graph.pin(self.random.randrange(2), after=[step], label="pin")
        return self.graph.unpin(pin, after=[self.grow(pin, pool, gate)], label="unpin")

    def spawn(self, step: int, pool: int, gate: int) -> int:
        if not self.spawned:
            return step
        test = self.random.choice([None, self.test()])
        return self.graph.spawn(
            self.random.choice(self.spawned), after=[step], label="spawn", test=test
        )

    def pool(self, step: int, pool: int, gate: int) -> int:
        role = self.servers + self.random.randrange(pool, self.pools)
        step = self.graph.acquire(role, after=[step], label="acquire")
        random_class(self.random, self.graph, step)
        self.threads.append(step)
        step = self.grow(step, role - self.servers + 1, gate)
        self.threads.pop()
        return self.graph.release(role, after=[step], label="release")

    def gate(self, step: int, pool: int, gate: int) -> int:
        chosen = self.random.randrange(gate, self.gates)
        ticket = self.graph.enter(
            self.servers + self.pools + chosen, after=[step], label="enter"
        )
        self.tickets.append(ticket)
        step = self.grow(ticket, pool, chosen + 1)
        if self.random.random() < 0.8:
            step = self.graph.turn(ticket, after=[step], label="turn")
        step = self.grow(step, pool, chosen + 1)
        self.tickets.pop()
        return self.graph.leave(ticket, after=[step], label="leave")


def random_dynamic_template(growing: Growing) -> Template:
    """Draw an op graph with every word. Its reply is the last step or one before a tail."""
    graph, random = growing.graph, growing.random
    reply = growing.use(growing.grow(graph.issue), 0, 0)
    for _ in range(random.choice([0, 0, 1, 2])):
        growing.grow(reply)
    return graph.finish(reply=reply)

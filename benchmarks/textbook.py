"""A program in the style of a SimPy tutorial, as the baseline of the engines.

It has a process per request and per branch of its graph, ``Resource.request()`` at each step, ``AllOf`` at
each join, and a `Store` with a server process for a batch server. It is written to be simple, not to be
slow: a chain of steps is one process.

Events at equal times follow SimPy's order instead of sim/engine/ENGINE.md, so its completion times agree with
the engines' only in distribution.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from time import perf_counter
from typing import Any

import numpy as np
import simpy

from stripesim.blocks import (
    ACQUIRE,
    BATCH,
    CHUNK,
    DELAY,
    PENDING,
    RELEASE,
    USE,
    EngineRun,
    Program,
    StreamRun,
    Template,
    draw_key,
    drawn_factor,
    factor_cells,
    scaled_ns,
    seed_state,
)

Events = Generator[simpy.Event, Any, None]


class Branches:
    """A template cut into chains: a chain begins after a fork, at a join, or after the reply.

    Parameters
    ----------
    template : Template
    """

    def __init__(self, template: Template) -> None:
        starts = template.successor_starts
        successors = template.successors.tolist()
        before: list[list[int]] = [[] for _ in range(template.steps)]
        for step in range(template.steps):
            for after in successors[starts[step] : starts[step + 1]]:
                before[after].append(step)
        self.template = template
        self.words = template.words.tolist()
        self.roles = template.roles.tolist()
        self.demands_ns = template.demands_ns.tolist()
        self.spreads = template.spreads.tolist()
        self.chains: list[list[int]] = []
        self.after: list[list[int]] = []
        chain_of: dict[int, int] = {}
        for step in range(template.steps):
            only = before[step][0] if len(before[step]) == 1 else None
            goes_on = (
                only is not None
                and starts[only + 1] - starts[only] == 1
                and only != template.reply
            )
            if goes_on and only is not None:
                chain_of[step] = chain_of[only]
                self.chains[chain_of[step]].append(step)
            else:
                chain_of[step] = len(self.chains)
                self.chains.append([step])
                self.after.append(sorted({chain_of[index] for index in before[step]}))
        self.reply = chain_of[template.reply]


class Textbook:
    """A program in a plain SimPy environment.

    Parameters
    ----------
    program : Program
        The program, without a director and with closed loops only.
    """

    def __init__(self, program: Program) -> None:
        assert program.director is None and all(
            stream.queue_depth for stream in program.streams
        )
        self.program = program
        self.env = simpy.Environment()
        self.stores: dict[int, simpy.Store] = {}
        self.resources: list[simpy.Resource] = []
        for index, capacity in enumerate(program.resources.capacities.tolist()):
            self.resources.append(simpy.Resource(self.env, capacity))
            if program.resources.disciplines[index] == BATCH:
                self.stores[index] = simpy.Store(self.env)
                for _ in range(capacity):
                    self.env.process(self.batch_server(self.stores[index]))
        self.branches: dict[int, Branches] = {}
        self.rows: dict[int, list[int]] = {}
        self.state = seed_state(program.seed)
        self.cells = factor_cells(program.factor_tables).tolist()
        self.issued_ns: list[list[int]] = [[] for _ in program.streams]
        self.completed_ns: list[list[int]] = [[] for _ in program.streams]
        self.uses = 0

    def batch_server(self, store: simpy.Store) -> Events:
        """Serve all waiting steps together, in an endless loop."""
        while True:
            members = [(yield store.get())]
            members += store.items
            store.items.clear()
            yield self.env.timeout(max(demand_ns for demand_ns, _ in members))
            for _, done in members:
                done.succeed()

    def service_ns(self, path: Branches, number: int, step: int) -> int:
        """Return a step's service time."""
        demand_ns = path.demands_ns[step]
        spread = path.spreads[step]
        if not spread:
            return int(demand_ns)
        return scaled_ns(
            demand_ns,
            drawn_factor(self.cells[spread], self.state, draw_key(number, step)),
        )

    def branch(
        self,
        path: Branches,
        row: list[int],
        number: int,
        chain: list[int],
        after: list[simpy.Process],
        held: dict[int, list[Any]],
    ) -> Events:
        """Work through one chain once the chains before it are done."""
        env = self.env
        if len(after) == 1:
            yield after[0]
        elif after:
            yield env.all_of(after)
        for step in chain:
            word = path.words[step]
            role = path.roles[step]
            resource = row[role]
            if word == USE and resource >= 0:
                demand_ns = self.service_ns(path, number, step)
                if resource in self.stores:
                    done = env.event()
                    yield self.stores[resource].put((demand_ns, done))
                    yield done
                else:
                    with self.resources[resource].request() as request:
                        yield request
                        yield env.timeout(demand_ns)
                self.uses += 1
            elif word == DELAY and (resource >= 0 or role < 0):
                yield env.timeout(path.demands_ns[step])
            elif word == ACQUIRE and resource >= 0:
                unit = self.resources[resource].request()
                yield unit
                held.setdefault(role, []).append(unit)
            elif word == RELEASE and resource >= 0:
                self.resources[resource].release(held[role].pop())

    def request(self, template: int, binding: int, number: int) -> simpy.Process:
        """Start a request, and return the process whose end completes it."""
        path = self.branches.get(template)
        if path is None:
            path = self.branches[template] = Branches(
                self.program.book.templates[template]
            )
        row = self.rows.get(binding)
        if row is None:
            row = self.rows[binding] = [
                *self.program.book.bindings[binding].tolist(),
                -1,
            ]
        held: dict[int, list[Any]] = {}
        processes: list[simpy.Process] = []
        for chain, after in zip(path.chains, path.after, strict=True):
            waits_for = [processes[index] for index in after]
            processes.append(
                self.env.process(self.branch(path, row, number, chain, waits_for, held))
            )
        return processes[path.reply]

    def planned(self, index: int) -> Iterator[tuple[int, int]]:
        """Yield the template and binding of each request of a stream."""
        while chunk := self.program.streams[index].take(CHUNK):
            yield from zip(
                chunk.templates.tolist(), chunk.bindings.tolist(), strict=True
            )

    def customer(self, index: int, requests: Iterator[tuple[int, int]]) -> Events:
        """Issue one request after another."""
        issued_ns = self.issued_ns[index]
        completed_ns = self.completed_ns[index]
        for template, binding in requests:
            index_in_stream = len(issued_ns)
            issued_ns.append(self.env.now)
            completed_ns.append(PENDING)
            yield self.request(
                template, binding, index_in_stream * len(self.program.streams) + index
            )
            completed_ns[index_in_stream] = self.env.now

    def execute(self) -> EngineRun:
        """Run to the end or the bound."""
        start_s = perf_counter()
        for index, stream in enumerate(self.program.streams):
            requests = self.planned(index)
            for _ in range(stream.queue_depth):
                self.env.process(self.customer(index, requests))
        until_ns = self.program.until_ns
        self.env.run(until=None if until_ns is None else until_ns + 1)
        wall_s = perf_counter() - start_s
        nothing = np.zeros(0, dtype=np.int64)
        streams = [
            StreamRun(np.array(issued), np.array(completed), nothing, nothing, nothing)
            for issued, completed in zip(self.issued_ns, self.completed_ns, strict=True)
        ]
        end_ns = max(int(stream.completed_ns.max()) for stream in streams)
        return EngineRun(
            streams,
            nothing,
            nothing,
            nothing,
            self.uses,
            end_ns,
            nothing.reshape(0, 1),
            wall_s,
        )


def run(program: Program) -> EngineRun:
    """Execute a program in SimPy. Only `streams`, `uses`, `end_ns` and `wall_s` of the result are set."""
    return Textbook(program).execute()

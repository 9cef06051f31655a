"""The reference engine, on SimPy's environment: the machine of sim/ENGINE.md, to be read and extended."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush, heapreplace
from math import inf
from time import perf_counter
from typing import Any

import numpy as np
import simpy

from stripesim.sim.conditions import (
    ALONE,
    ALWAYS,
    CACHED,
    GATE_EMPTY,
    IDLE,
    PINNED,
)
from stripesim.sim.draws import FACTOR_BITS, FACTOR_HALF, factor_index, seed_state
from stripesim.sim.graph import (
    ACQUIRE,
    BRANCH,
    COUNTERS,
    DELAY,
    DROP,
    ENTER,
    FILL,
    LEAVE,
    NONE,
    PIN,
    RELEASE,
    SPAWN,
    STEP_BITS,
    STEPS_MAX,
    TURN,
    UNPIN,
    USE,
    IntArray,
    Template,
)
from stripesim.sim.machine import (
    BATCH,
    CACHE,
    CHUNK,
    GATE,
    PENDING,
    POOL,
    SPAWNED_FROM,
    EngineRun,
    Program,
    RequestChunk,
    StreamRun,
    check_chunk,
    check_program,
    template_index,
)

_STEP_MASK = STEPS_MAX - 1
# How a step waits: for its one predecessor, for all, for those that run.
_ONE, _ALL, _MERGE = range(3)
# Predecessors outstanding of a step that is skipped: never 0 again, however many report.
_SKIPPED = -2 * STEPS_MAX
# Added to a merge's outstanding predecessors once one of them has run.
_LIVE = 2 * STEPS_MAX
# Calendar keys of what is no step: below every step's key, state changes first.
_CHANGE_KEY = -(1 << 62)
_ARRIVAL_KEY = -(1 << 61)
# Added to the priority (0 or 1) of an ordinary SimPy event: after arrivals, before steps.
_FOREIGN_KEY = -2
# SimPy numbers its own events from 0; ours need no number, their keys are unique.
_EID = -1


class _Path:
    """A template as plain lists: what the inner loop indexes."""

    __slots__ = ("amounts", "dynamics", "following", "planned", "predecessors", "reply", "roles", "words")

    def __init__(self, template: Template, spawned: Sequence[int]) -> None:
        starts = template.successor_starts
        self.words = template.words.tolist()
        self.roles = template.roles.tolist()
        self.predecessors = template.predecessors.tolist()
        self.dynamics = _Dynamics(template, spawned) if template.dynamics else None
        merges = self.dynamics.merges if self.dynamics else [False] * template.steps
        # What it takes to start a step: its number, how it waits for its predecessors,
        # word, role, demand before any spread, distribution.
        starting = list(
            zip(
                range(template.steps),
                [
                    _MERGE if merge else _ALL if count > 1 else _ONE
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
            [starting[after] for after in template.successors[starts[step] : starts[step + 1]]]
            for step in range(template.steps)
        ]
        self.reply = template.reply
        self.amounts = template.amounts
        self.planned = template.planned


class _Dynamics:
    """What a template has beyond the plain words, as plain lists."""

    __slots__ = ("keys", "merges", "once", "spawned", "tests", "tickets", "yes_counts")

    def __init__(self, template: Template, spawned: Sequence[int]) -> None:
        dynamics = template.dynamics
        assert dynamics is not None
        self.merges: list[bool] = dynamics.merges.tolist()
        self.tests: list[int] = dynamics.tests.tolist()
        self.keys: list[int] = dynamics.keys.tolist()
        self.tickets: list[int] = dynamics.tickets.tolist()
        self.yes_counts: list[int] = dynamics.yes_counts.tolist()
        # The template in the book that a step spawns.
        self.spawned = [spawned[index] if index >= 0 else -1 for index in dynamics.spawns.tolist()]
        self.once = [amounts if amounts.any() else None for amounts in dynamics.once]


class _Ticket:
    """A place in a gate: whether it still keeps later ones from their turn, and who waits for its own."""

    __slots__ = ("passed", "waiting")

    def __init__(self) -> None:
        self.passed = False
        self.waiting: tuple[_Request, int] | None = None


class _Request(simpy.Event):
    """A request in flight; the calendar holds it once for each step in service."""

    # Of the gates that it has entered, by enter step; how often it has pinned each key range.
    tickets: dict[int, _Ticket]
    held: list[int]
    # Where the ends of its steps are noted, if it is followed.
    ends_ns: list[int] | None = None

    def __init__(
        self,
        number: int,
        path: _Path,
        row: list[int],
        keys: list[range] | None = None,
        stream: int = 0,
    ) -> None:
        # The environment is not told of a request: the engine schedules its steps.
        self.number = number
        self.keys = keys
        # Its client's stream, and behind all of those the stream of what each spawned.
        self.stream = stream
        # With a step in its low bits it is that step's key in the calendar.
        self.key = number << STEP_BITS
        self.path = path
        self.row = row
        self.pending = path.predecessors.copy()
        if path.dynamics:
            self.tickets = {}
            self.held = [0] * len(keys or ())


class _Signal(simpy.Event):
    """A calendar entry that is no step: an arrival or a state change."""

    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action


class _Log:
    """What is noted of the requests of a stream, in the order of issue."""

    def __init__(self) -> None:
        self.issued_ns: list[int] = []
        self.completed_ns: list[int] = []
        self.chosen: list[tuple[int, int, int]] = []
        self.taken = np.zeros(len(COUNTERS), dtype=np.int64)
        self.taken_uses = 0

    def note(self, now_ns: int, template: int, binding: int, group: int) -> None:
        """Note the issue of a request."""
        self.issued_ns.append(now_ns)
        self.completed_ns.append(PENDING)
        self.chosen.append((template, binding, group))

    def result(self) -> StreamRun:
        """Return all that was noted."""
        chosen = np.array(self.chosen, dtype=np.int64).reshape(len(self.chosen), 3)
        return StreamRun(
            issued_ns=np.array(self.issued_ns, dtype=np.int64),
            completed_ns=np.array(self.completed_ns, dtype=np.int64),
            templates=chosen[:, 0],
            bindings=chosen[:, 1],
            groups=chosen[:, 2],
            taken=self.taken,
            taken_uses=self.taken_uses,
        )


class _Stream(_Log):
    """A stream's requests, as far as they are planned and issued."""

    def __init__(self, engine: SimpyEngine, index: int) -> None:
        super().__init__()
        self.engine = engine
        self.index = index
        self.source = engine.program.streams[index]
        self.chunk: RequestChunk | None = None
        self.at = 0
        self.done = False
        self.last_arrival_ns = 0

    def refill(self) -> bool:
        """Make sure a planned request is at hand; False at the stream's end."""
        if self.chunk is not None and self.at < len(self.chunk):
            return True
        if not self.done:
            start_s = perf_counter()
            chunk = self.source.take(CHUNK)
            self.engine.planning_s += perf_counter() - start_s
            self.chunk = chunk
            self.at = 0
            self.done = len(chunk) == 0
            if not self.done:
                check_chunk(self.engine.program, self.index, chunk, self.last_arrival_ns)
                if chunk.arrivals_ns is not None:
                    self.last_arrival_ns = int(chunk.arrivals_ns[-1])
        return not self.done

    def issue(self) -> None:
        """Issue the next planned request."""
        engine = self.engine
        assert self.chunk is not None
        at = self.at
        self.at = at + 1
        group = int(self.chunk.groups[at])
        state = engine.states[group]
        template, binding = int(self.chunk.templates[at, state]), int(self.chunk.bindings[at, state])
        number = len(self.issued_ns) * len(engine.streams) + self.index
        self.note(int(engine.now), template, binding, group)
        keys = None
        if self.chunk.keys is not None:
            keys = [range(first, stop) for first, stop in self.chunk.keys[at].tolist()]
        request = _Request(number, engine.path(template), engine.row(binding), keys, self.index)
        if self.index == 0 and len(self.issued_ns) - 1 in engine.followed_ns:
            request.ends_ns = engine.followed_ns[len(self.issued_ns) - 1] = [PENDING] * len(request.pending)
        engine.ready.append((request, 0))

    def schedule_arrival(self) -> None:
        """Put the next arrival of an open stream into the calendar."""
        if self.refill():
            assert self.chunk is not None and self.chunk.arrivals_ns is not None
            number = len(self.issued_ns) * len(self.engine.streams) + self.index
            self.engine.signal(int(self.chunk.arrivals_ns[self.at]), _ARRIVAL_KEY + number, self.arrive)

    def arrive(self) -> None:
        """Issue one request of an open stream and schedule the next arrival."""
        self.issue()
        self.schedule_arrival()


class SimpyEngine(simpy.Environment):
    """A SimPy environment whose calendar also holds the steps of requests.

    Ordinary SimPy events and processes may run in it beside the requests; at one time
    they come after arrivals and before steps.

    Parameters
    ----------
    program : Program
        What to run.

    Notes
    -----
    Lean: a step costs one calendar entry if it takes time and none if it does not; a wait
    costs none. A textbook model (`benchmarks/textbook.py`) pays several events per step.
    """

    def __init__(self, program: Program) -> None:
        super().__init__(initial_time=0)
        check_program(program)
        # SimPy's own heap of (time, key, number, event).
        self.calendar: list[Any] = self._queue
        self.program = program
        resources = program.resources
        self.free: list[int] = resources.capacities.tolist()
        self.disciplines: list[int] = resources.disciplines.tolist()
        self.is_batch = [discipline == BATCH for discipline in self.disciplines]
        # What waits, in order: its demand, its key, its request.
        self.queues: list[deque[tuple[int, int, _Request]]] = [deque() for _ in range(len(resources))]
        self.busy_ns = [0] * len(resources)
        # A pool's held time is the sum over its units of (release − grant): subtract the
        # clock at a grant, add it at a release.
        self.held_ns = [0] * len(resources)
        # The same way for waiting: subtract the clock at the queue's tail, add it at its head.
        self.waited_ns = [0] * len(resources)
        self.ready: deque[tuple[_Request, int]] = deque()
        self.batches: dict[int, list[tuple[_Request, int]]] = {}
        self.states = [0] * program.groups
        self.uses = 0
        self.planning_s = 0.0
        self.bins: list[IntArray] = []
        # Of the requests that are followed, by number in their stream: the ends of their steps.
        self.followed_ns: dict[int, list[int]] = {number: [] for number in program.followed.tolist()}
        self._seed = seed_state(program.seed)
        self._factors: list[list[int]] = program.factor_tables.tolist()
        self._paths: dict[int, _Path] = {}
        self._rows: dict[int, list[int]] = {}
        self.streams = [_Stream(self, index) for index in range(len(program.streams))]
        # What the requests of each stream spawned.
        self.spawned = [_Log() for _ in program.streams]
        # Tickets that have not had their turn, per gate; pins per key; keys per cache, the
        # least recent first.
        self.gates: dict[int, deque[_Ticket]] = {}
        self.pins: dict[int, int] = {}
        self.caches: dict[int, OrderedDict[int, None]] = {}
        for resource, discipline in enumerate(self.disciplines):
            if discipline == GATE:
                self.gates[resource] = deque()
            elif discipline == CACHE:
                self.caches[resource] = OrderedDict()

    def schedule(self, event: simpy.Event, priority: int = 1, delay: float = 0) -> None:
        """Put an ordinary SimPy event into the calendar; SimPy calls this for its own."""
        heappush(self.calendar, (self._now + delay, _FOREIGN_KEY + priority, next(self._eid), event))

    def path(self, template: int) -> _Path:
        """Return a template's plain lists."""
        found = self._paths.get(template)
        if found is None:
            templates = self.program.book.templates
            dynamics = templates[template].dynamics
            spawned = [template_index(templates, other) for other in dynamics.spawned] if dynamics else []
            found = self._paths[template] = _Path(templates[template], spawned)
        return found

    def row(self, binding: int) -> list[int]:
        """Return a binding row; its last entry serves steps without a role."""
        found = self._rows.get(binding)
        if found is None:
            found = self._rows[binding] = [*self.program.book.bindings[binding].tolist(), -1]
        return found

    def signal(self, time_ns: int, key: int, action: Callable[[], None]) -> None:
        """Put something that is no step into the calendar."""
        heappush(self.calendar, (time_ns, key, _EID, _Signal(action)))

    def execute(self) -> EngineRun:
        """Run the program to its end."""
        start_s = perf_counter()
        for index, change in enumerate(self.program.changes):
            if change.time_ns == 0:
                self.states[change.group] = change.state
                continue
            self.signal(change.time_ns, _CHANGE_KEY + index, self._change(change.group, change.state))
        for stream in self.streams:
            if stream.source.depth:
                for _ in range(stream.source.depth):
                    if stream.refill():
                        stream.issue()
            else:
                stream.schedule_arrival()
        if self.ready:
            self._complete(*self.ready.popleft())
        end_ns = self._loop()
        wall_s = perf_counter() - start_s - self.planning_s
        self._check_end(end_ns)
        held_ns = [
            held + (capacity - free) * end_ns if discipline in (POOL, GATE) else 0
            for held, capacity, free, discipline in zip(
                self.held_ns,
                self.program.resources.capacities.tolist(),
                self.free,
                self.disciplines,
                strict=True,
            )
        ]
        waited_ns = [
            waited + len(queue) * end_ns for waited, queue in zip(self.waited_ns, self.queues, strict=True)
        ]
        for gate, tickets in self.gates.items():
            waited_ns[gate] += end_ns * sum(ticket.waiting is not None for ticket in tickets)
        return EngineRun(
            streams=[stream.result() for stream in self.streams],
            busy_ns=np.array(self.busy_ns, dtype=np.int64),
            held_ns=np.array(held_ns, dtype=np.int64),
            waited_ns=np.array(waited_ns, dtype=np.int64),
            uses=self.uses,
            end_ns=end_ns,
            bins=np.array(self.bins, dtype=np.int64).reshape(len(self.bins), len(COUNTERS)),
            wall_s=wall_s,
            spawned=[log.result() for log in self.spawned],
            followed_ns=self._followed(),
        )

    def _followed(self) -> IntArray:
        """Return the ends of the followed requests' steps as a table."""
        width = max((template.steps for template in self.program.book.templates), default=0)
        table = np.full((len(self.followed_ns), width), PENDING, dtype=np.int64)
        for row, ends_ns in zip(table, self.followed_ns.values(), strict=True):
            row[: len(ends_ns)] = ends_ns
        return table

    def _change(self, group: int, state: int) -> Callable[[], None]:
        def apply() -> None:
            self.states[group] = state

        return apply

    def _loop(self) -> int:
        """Take calendar entries until none is left or the bound is passed; return the end [ns]."""
        calendar, queues, free = self.calendar, self.queues, self.free
        complete, is_batch = self._complete, self.is_batch
        bound_ns = inf if self.program.until_ns is None else self.program.until_ns
        while calendar:
            now_ns, key, _, event = calendar[0]
            if now_ns > bound_ns:
                self._now = bound_ns
                break
            self._now = now_ns
            if type(event) is _Request:
                step = key & _STEP_MASK
                path = event.path
                if path.words[step] == USE:
                    resource = event.row[path.roles[step]]
                    if path.dynamics:
                        self._account_service(event, step)
                    if is_batch[resource]:
                        heappop(calendar)
                        self._end_batch(resource, key)
                    else:
                        self.uses += 1
                        if queues[resource]:
                            demand_ns, key, waiter = queues[resource].popleft()
                            self.waited_ns[resource] += now_ns
                            self.busy_ns[resource] += demand_ns
                            heapreplace(calendar, (now_ns + demand_ns, key, _EID, waiter))
                        else:
                            free[resource] += 1
                            heappop(calendar)
                else:
                    heappop(calendar)
                complete(event, step)
                continue
            heappop(calendar)
            if type(event) is _Signal:
                event.action()
            else:
                self._foreign(event)
            if self.ready:
                complete(*self.ready.popleft())
        return int(self._now)

    def _foreign(self, event: simpy.Event) -> None:
        """Process an ordinary SimPy event as SimPy does."""
        callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment]
        for callback in callbacks:
            callback(event)
        if not event._ok and not hasattr(event, "_defused"):
            raise event._value

    def _complete(self, request: _Request, step: int) -> None:
        """Complete a step and then those of the ready list; start what they make ready."""
        ready, free, is_batch, calendar = self.ready, self.free, self.is_batch, self.calendar
        now_ns, bin_ns = int(self._now), self.program.bin_ns
        while True:
            path, row = request.path, request.row
            if step < 0:
                # A skipped step only tells those behind it.
                for after, *_ in path.following[~step]:
                    self._skip(request, after)
                if not ready:
                    return
                request, step = ready.popleft()
                continue
            if bin_ns:
                self._account(path, row, step)
            if not path.planned:
                self._account_taken(request, step)
            if request.ends_ns is not None:
                request.ends_ns[step] = now_ns
            if step == path.reply:
                self._reply(request)
            following = path.following[step]
            if path.dynamics:
                if path.words[step] == BRANCH:
                    following = self._branch(request, step)
                elif path.words[step] == SPAWN:
                    self._spawn(request, step)
            for after, waits_for, word, role, mean, spread in following:
                if waits_for:
                    pending = request.pending
                    pending[after] -= 1
                    if waits_for == _MERGE:
                        pending[after] |= _LIVE
                        if pending[after] > _LIVE:
                            continue
                    elif pending[after]:
                        continue
                if word == USE:
                    resource = row[role]
                    if resource < 0:
                        ready.append((request, after))
                        continue
                    key = request.key | after
                    demand = mean
                    if spread:
                        factor = self._factors[spread][factor_index(self._seed, key)]
                        demand = (mean * factor + FACTOR_HALF) >> FACTOR_BITS
                    if not free[resource]:
                        self.waited_ns[resource] -= now_ns
                        self.queues[resource].append((demand, key, request))
                    else:
                        free[resource] -= 1
                        self.busy_ns[resource] += demand
                        if is_batch[resource]:
                            self.batches[key] = [(request, after)]
                        heappush(calendar, (now_ns + demand, key, _EID, request))
                elif word == NONE:
                    ready.append((request, after))
                elif word == DELAY:
                    if role >= 0 and row[role] < 0:
                        ready.append((request, after))
                    else:
                        heappush(calendar, (now_ns + mean, request.key | after, _EID, request))
                elif word <= RELEASE:
                    self._pool(word, row[role], request, after)
                else:
                    self._act(word, row[role], request, after)
            if not ready:
                return
            request, step = ready.popleft()

    def _pool(self, word: int, pool: int, request: _Request, step: int) -> None:
        """Take a unit of a pool or wait for it; or give one back."""
        now_ns = int(self._now)
        if word == ACQUIRE:
            if pool >= 0:
                if not self.free[pool]:
                    self.waited_ns[pool] -= now_ns
                    self.queues[pool].append((0, request.key | step, request))
                    return
                self.free[pool] -= 1
                self.held_ns[pool] -= now_ns
        elif pool >= 0:
            if self.queues[pool]:
                # The unit changes hands; for the pool it is held without a gap.
                self.waited_ns[pool] += now_ns
                _, key, waiter = self.queues[pool].popleft()
                self.ready.append((waiter, key & _STEP_MASK))
            else:
                self.free[pool] += 1
                self.held_ns[pool] += now_ns
        self.ready.append((request, step))

    def _end_batch(self, resource: int, key: int) -> None:
        """Hand over the server of a batch or free it; the members behind its leader become ready."""
        members = self.batches.pop(key)
        self.uses += len(members)
        waiting = self.queues[resource]
        if waiting:
            now_ns = int(self._now)
            self.waited_ns[resource] += now_ns * len(waiting)
            # One service for all that wait, under the key of the first.
            demand_ns = max(demand_ns for demand_ns, _, _ in waiting)
            _, leader_key, leader = waiting[0]
            self.batches[leader_key] = [(request, key & _STEP_MASK) for _, key, request in waiting]
            waiting.clear()
            self.busy_ns[resource] += demand_ns
            heappush(self.calendar, (now_ns + demand_ns, leader_key, _EID, leader))
        else:
            self.free[resource] += 1
        self.ready.extend(members[1:])

    def _reply(self, request: _Request) -> None:
        """Note a request's completion and let a closed loop go on."""
        if request.number >= SPAWNED_FROM:
            index, of = divmod(request.number - SPAWNED_FROM, len(self.streams))
            self.spawned[of].completed_ns[index] = int(self._now)
            return
        stream = self.streams[request.number % len(self.streams)]
        stream.completed_ns[request.number // len(self.streams)] = int(self._now)
        if stream.source.depth and stream.refill():
            stream.issue()

    # ------------------------------------------------------------------ branches and spawns

    def _branch(self, request: _Request, step: int) -> list[Any]:
        """Skip the side that is not taken; return what follows on the other."""
        dynamics = request.path.dynamics
        assert dynamics is not None
        following = request.path.following[step]
        split = dynamics.yes_counts[step]
        taken, left = following[:split], following[split:]
        if not self._holds(request, step):
            taken, left = left, taken
        for after, *_ in left:
            self._skip(request, after)
        return taken

    def _skip(self, request: _Request, after: int) -> None:
        """Tell a step that one of its predecessors does not run."""
        pending = request.pending
        dynamics = request.path.dynamics
        assert dynamics is not None
        if dynamics.merges[after]:
            pending[after] -= 1
            if pending[after] == _LIVE:
                self.ready.append((request, after))
            elif pending[after] == 0:
                self.ready.append((request, ~after))
        elif pending[after] > 0:
            pending[after] = _SKIPPED
            self.ready.append((request, ~after))

    def _holds(self, request: _Request, step: int) -> bool:
        """Evaluate the test of a step."""
        path, dynamics = request.path, request.path.dynamics
        assert dynamics is not None
        test = dynamics.tests[step]
        if test == ALWAYS:
            return True
        bound: int = request.row[path.roles[step]]
        if test == IDLE:
            return bound < 0 or self.free[bound] > 0
        if test == GATE_EMPTY:
            return bound < 0 or self.free[bound] == 1
        if test == ALONE:
            mine = dynamics.tickets[step] in request.tickets
            return bound < 0 or self.free[bound] == (0 if mine else 1)
        assert request.keys is not None
        keys = request.keys[dynamics.keys[step]]
        if test == CACHED:
            return bound >= 0 and all(key in self.caches[bound] for key in keys)
        own = zip(request.held, request.keys, strict=True) if test == PINNED else ()
        mine_of = [(held, own_keys) for held, own_keys in own if held]
        return all(
            self.pins.get(key, 0) > sum(held for held, own_keys in mine_of if key in own_keys) for key in keys
        )

    def _spawn(self, request: _Request, step: int) -> None:
        """Start a detached graph if the test holds."""
        if not self._holds(request, step):
            return
        dynamics = request.path.dynamics
        assert dynamics is not None
        of = request.stream % len(self.streams)
        log, parents = self.spawned[of], self.streams[of] if request.stream == of else self.spawned[of]
        first = 0 if request.stream == of else SPAWNED_FROM
        _, binding, group = parents.chosen[(request.number - first) // len(self.streams)]
        number = SPAWNED_FROM + len(log.issued_ns) * len(self.streams) + of
        template = dynamics.spawned[step]
        log.note(int(self._now), template, binding, group)
        child = _Request(number, self.path(template), request.row, request.keys, of + len(self.streams))
        self.ready.append((child, 0))

    # -------------------------------------------------------------- gates, pins and caches

    def _act(self, word: int, bound: int, request: _Request, step: int) -> None:
        """Do what a word beyond the plain ones does when its step becomes ready."""
        dynamics = request.path.dynamics
        assert dynamics is not None
        if word in (PIN, UNPIN):
            self._pin(request, dynamics.keys[step], 1 if word == PIN else -1)
        elif bound >= 0 and word in (ENTER, TURN, LEAVE):
            self._gate(word, bound, request, step)
            return
        elif bound >= 0 and word in (FILL, DROP):
            assert request.keys is not None
            self._cache(word, bound, request.keys[dynamics.keys[step]])
        self.ready.append((request, step))

    def _gate(self, word: int, gate: int, request: _Request, step: int) -> None:
        """Take a ticket, wait for its turn, or give it back."""
        now_ns, tickets = int(self._now), self.gates[gate]
        if word == ENTER:
            ticket = request.tickets[step] = _Ticket()
            tickets.append(ticket)
            self.free[gate] -= 1
            self.held_ns[gate] -= now_ns
            self.ready.append((request, step))
            return
        dynamics = request.path.dynamics
        assert dynamics is not None
        if word == TURN:
            ticket = request.tickets[dynamics.tickets[step]]
            ticket.waiting = (request, step)
            self.waited_ns[gate] -= now_ns
            self._pass_tickets(gate)
            return
        ticket = request.tickets.pop(dynamics.tickets[step])
        ticket.passed = True
        self.free[gate] += 1
        self.held_ns[gate] += now_ns
        self._pass_tickets(gate)
        self.ready.append((request, step))

    def _pass_tickets(self, gate: int) -> None:
        """Let tickets have their turn, the earliest first, up to the first that has not come to it."""
        tickets = self.gates[gate]
        while tickets and (tickets[0].passed or tickets[0].waiting):
            ticket = tickets.popleft()
            if ticket.waiting:
                self.waited_ns[gate] += int(self._now)
                self.ready.append(ticket.waiting)
                ticket.waiting = None
            ticket.passed = True

    def _pin(self, request: _Request, which: int, change: int) -> None:
        """Pin or unpin the keys of a range."""
        assert request.keys is not None
        request.held[which] += change
        for key in request.keys[which]:
            count = self.pins.pop(key, 0) + change
            if count:
                self.pins[key] = count

    def _cache(self, word: int, cache: int, keys: range) -> None:
        """Put keys into a cache or take them out."""
        recent, capacity = self.caches[cache], int(self.program.resources.capacities[cache])
        for key in keys:
            if word == DROP:
                recent.pop(key, None)
                continue
            recent[key] = None
            recent.move_to_end(key)
            if len(recent) > capacity:
                recent.popitem(last=False)

    # -------------------------------------------------------------------------- accounting

    def _account_service(self, request: _Request, step: int) -> None:
        """Account what a step accounts once for a service; the calendar holds the one that does."""
        dynamics = request.path.dynamics
        assert dynamics is not None
        once = dynamics.once[step]
        if once is not None:
            self._log(request).taken += once
            if self.program.bin_ns:
                self._bin()[:] += once

    def _account_taken(self, request: _Request, step: int) -> None:
        """Add up what a completed step of a template with branches accounts."""
        path = request.path
        role = path.roles[step]
        if role >= 0 and request.row[role] < 0:
            return
        log = self._log(request)
        log.taken += path.amounts[step]
        log.taken_uses += path.words[step] == USE and role >= 0

    def _log(self, request: _Request) -> _Log:
        """Return the log of a request's stream."""
        streams = len(self.streams)
        return (
            self.streams[request.stream]
            if request.stream < streams
            else self.spawned[request.stream - streams]
        )

    def _account(self, path: _Path, row: list[int], step: int) -> None:
        """Add what a step accounts to the bin of the current time."""
        role = path.roles[step]
        if role >= 0 and row[role] < 0:
            return
        self._bin()[:] += path.amounts[step]

    def _bin(self) -> IntArray:
        """Return the bin of the current time."""
        index = int(self._now) // self.program.bin_ns
        while len(self.bins) <= index:
            self.bins.append(np.zeros(len(COUNTERS), dtype=np.int64))
        return self.bins[index]

    def _check_end(self, end_ns: int) -> None:
        """Assert that a run which came to its end left nothing behind."""
        if self.program.until_ns is not None and end_ns >= self.program.until_ns:
            return
        resources = self.program.resources
        assert self.free == resources.capacities.tolist(), "a server or a lock is held after the end"
        assert not any(self.queues), "a request waits after the end"
        logs = [*self.streams, *self.spawned]
        assert all(PENDING not in log.completed_ns for log in logs), "a request was lost"
        assert not self.pins, "a key is pinned after the end"


def run(program: Program) -> EngineRun:
    """Execute a program on the reference engine."""
    return SimpyEngine(program).execute()

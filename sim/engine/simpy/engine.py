"""The reference engine, on SimPy's environment: the machine of sim/engine/ENGINE.md, to be read and extended.

What it keeps of requests and streams stands in ``simpy/requests.py``, the words that few templates use in
``simpy/opcodes.py``, what a director does in ``simpy/director.py``.
"""

from collections import deque
from heapq import heappop, heappush, heapreplace
from math import inf
from time import perf_counter
from typing import Any

import numpy as np
import simpy

from stripesim.sim.engine import graph
from stripesim.sim.engine.checks import check_program
from stripesim.sim.engine.draws import (
    FACTOR_BITS,
    FACTOR_HALF,
    factor_index,
    retried_state,
    seed_state,
)
from stripesim.sim.engine.program import (
    BATCH,
    GATE,
    PAIRED_UNIT,
    PENDING,
    POOL,
    SPAWNED_FROM,
    UNBOUND,
    EngineRun,
    Program,
    Report,
    bound_rows,
    template_index,
)
from stripesim.sim.engine.shares import FAIR, Share
from stripesim.sim.engine.simpy.director import Direction
from stripesim.sim.engine.simpy.opcodes import act, holds
from stripesim.sim.engine.simpy.requests import (
    LOOK_KEY,
    MERGE,
    Log,
    Path,
    Request,
    Signal,
    Stream,
    Ticket,
)
from stripesim.sim.engine.simpy.shares import FairQueue, Item, ShareQueue

_STEP_MASK = graph.STEPS_MAX - 1
# Predecessors outstanding of a step that is skipped: never 0 again, however many report.
_SKIPPED = -2 * graph.STEPS_MAX
# Added to a merge's outstanding predecessors once one of them has run.
_LIVE = 2 * graph.STEPS_MAX
# Added to the priority (0 or 1) of an ordinary SimPy event: after arrivals, before steps.
_FOREIGN_KEY = -2
# SimPy numbers its own events from 0; ours need no number, their keys are unique.
_EID = -1


class SimpyEngine(simpy.Environment):
    """A SimPy environment whose calendar also holds the steps of requests.

    Ordinary SimPy events and processes may run in it beside the requests; at one time
    they come after arrivals and before steps.

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
        self.queues: list[deque[tuple[int, int, Request]]] = [
            deque() for _ in range(len(resources))
        ]
        self.busy_ns = [0] * len(resources)
        # A pool's held time is the sum over its units of (release − grant): subtract the
        # clock at a grant, add it at a release.
        self.held_ns = [0] * len(resources)
        # The same way for waiting: subtract the clock at the queue's tail, add it at its head.
        self.waited_ns = [0] * len(resources)
        # How often a server or a unit became idle, also by bin and kind; what it costs to wake one.
        self.sleeps = [0] * len(resources)
        self.sleep_bins: list[list[int]] = []
        self.wake_ns: list[int] = resources.wake_ns.tolist()
        # The process of each pool's threads, until when each process runs, and what that spared wake-ups.
        self.processes: list[int] = resources.processes.tolist()
        # Who has a right to cores of its own where they are shared fairly, and up to when each has had it.
        self.flows: list[int] = resources.flows.tolist()
        self.had_ns = [0] * (max(self.flows, default=0) + 2)
        self.runs_until_ns = [-resources.cool_ns] * (
            max(self.processes, default=-1) + 1
        )
        self.warm_ns = [0] * len(resources)
        self.capacities: list[int] = resources.capacities.tolist()
        self.paired: list[int] = resources.paired.tolist()
        # How long a thread keeps a core; since when it has the one on which a service is; the core that a
        # thread keeps just now, the pool of that thread, and since when it has it.
        self.slices_ns: list[int] = resources.slice_ns.tolist()
        self.since_ns: dict[int, int] = {}
        self.kept: tuple[int, int, int] | None = None
        # Of a batch server that threads serve their pool, and the other way round; pools that do so now.
        self.partners: list[int] = resources.partners.tolist()
        self.flushing = [False] * len(resources)
        self._kinds: list[int] = resources.kind_indices.tolist()
        # What waits at a resource that classes share.
        self.shares: list[ShareQueue | None] = [
            self._share_queue(resources.shares[share], resource) if share >= 0 else None
            for resource, share in enumerate(resources.share_indices.tolist())
        ]
        self.ready: deque[tuple[Request, int]] = deque()
        self.batches: dict[int, list[tuple[Request, int]]] = {}
        self.held = [False] * program.groups
        self.stopped = [False] * len(resources)
        self.uses = 0
        self.planning_s = 0.0
        self.bins: list[graph.IntArray] = []
        # Of the requests that are followed, by number in their stream: the ends of their steps.
        self.followed_ns: dict[int, list[int]] = {
            number: [] for number in program.followed.tolist()
        }
        self._seed = seed_state(program.seed)
        self._factors: list[list[int]] = program.factor_tables.tolist()
        self._paths: dict[int, Path] = {}
        self._rows: dict[int, list[int]] = {}
        self.direction = Direction(self, program.director) if program.director else None
        self.streams = [Stream(self, index) for index in range(len(program.streams))]
        # What the requests of each stream spawned.
        self.spawned = [Log(self.direction is not None) for _ in program.streams]
        self.logs: list[Log] = [*self.streams, *self.spawned]
        # Tickets that have not had their turn, per gate; pins per key.
        gates = [
            resource
            for resource, discipline in enumerate(self.disciplines)
            if discipline == GATE
        ]
        self.gates: dict[int, deque[Ticket]] = {gate: deque() for gate in gates}
        self.pins: dict[int, int] = {}

    def schedule(self, event: simpy.Event, priority: int = 1, delay: float = 0) -> None:
        """Put an ordinary SimPy event into the calendar; SimPy calls this for its own."""
        heappush(
            self.calendar,
            (self._now + delay, _FOREIGN_KEY + priority, next(self._eid), event),
        )

    def path(self, template: int) -> Path:
        """Return a template's plain lists."""
        found = self._paths.get(template)
        if found is None:
            templates = self.program.book.templates
            dynamics = templates[template].dynamics
            spawned = (
                [template_index(templates, other) for other in dynamics.spawned]
                if dynamics
                else []
            )
            found = self._paths[template] = Path(
                templates[template], spawned, counted=bool(self.direction)
            )
        return found

    def row(self, binding: int) -> list[int]:
        """Return what a binding binds; its last entry serves steps without a role."""
        found = self._rows.get(binding)
        if found is None:
            bound = bound_rows(self.program.book, np.array([binding], dtype=np.int64))
            found = self._rows[binding] = [*bound[0].tolist(), UNBOUND]
        return found

    @property
    def directed(self) -> Direction:
        """What the director does; only where there is one."""
        assert self.direction is not None
        return self.direction

    def signal(self, time_ns: int, key: int, signal: Signal) -> None:
        """Put something that is no step into the calendar."""
        heappush(self.calendar, (time_ns, key, _EID, signal))

    def start(
        self,
        number: int,
        template: int,
        binding: int,
        keys: list[range] | None,
        stream: int,
        retries: int = 0,
    ) -> None:
        """Start a request, client's or spawned, at its step 0."""
        seed = retried_state(self._seed, retries) if retries else self._seed
        request = Request(
            number, self.path(template), self.row(binding), keys, stream, seed
        )
        place, of = divmod(number, len(self.streams))
        if stream == of == 0 and place in self.followed_ns:
            request.ends_ns = self.followed_ns[place] = [PENDING] * len(request.pending)
        if self.direction:
            self.direction.take_off(request)
        self.ready.append((request, 0))

    def execute(self) -> EngineRun:
        """Run the program to its end."""
        start_s = perf_counter()
        if self.direction:
            self.direction.begin()
        for stream in self.streams:
            stream.fill()
            if not stream.depth:
                stream.schedule_arrival()
        self.work_off()
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
            waited + (len(queue) + len(share or ())) * end_ns
            for waited, queue, share in zip(
                self.waited_ns, self.queues, self.shares, strict=True
            )
        ]
        for gate, tickets in self.gates.items():
            waited_ns[gate] += end_ns * sum(
                ticket.waiting is not None for ticket in tickets
            )
        return EngineRun(
            streams=[stream.result() for stream in self.streams],
            busy_ns=np.array(self.busy_ns, dtype=np.int64),
            held_ns=np.array(held_ns, dtype=np.int64),
            waited_ns=np.array(waited_ns, dtype=np.int64),
            uses=self.uses,
            end_ns=end_ns,
            bins=np.array(self.bins, dtype=np.int64).reshape(
                len(self.bins), len(graph.COUNTERS)
            ),
            wall_s=wall_s,
            spawned=[log.result() for log in self.spawned],
            followed_ns=self._followed(),
            sleeps=np.array(self.sleeps, dtype=np.int64),
            warm_ns=np.array(self.warm_ns, dtype=np.int64),
            sleep_bins=np.array(self.sleep_bins, dtype=np.int64).reshape(
                len(self.sleep_bins), len(self.program.resources.kind_names)
            ),
        )

    def _followed(self) -> graph.IntArray:
        width = max(
            (template.steps for template in self.program.book.templates), default=0
        )
        table = np.full((len(self.followed_ns), width), PENDING, dtype=np.int64)
        for row, ends_ns in zip(table, self.followed_ns.values(), strict=True):
            row[: len(ends_ns)] = ends_ns
        return table

    def work_off(self) -> None:
        """Complete the steps of the ready list; the director hears of requests that they completed."""
        while True:
            if self.ready:
                self._complete(*self.ready.popleft())
            elif self.kept:
                resource, self.kept = self.kept[0], None
                self.free_server(resource)
            elif self.direction and self.direction.reports:
                self.direction.act()
            else:
                return

    def _loop(self) -> int:
        """Take calendar entries until none is left or the bound is passed; return the end [ns]."""
        calendar, queues, free = self.calendar, self.queues, self.free
        complete, is_batch, shares = self._complete, self.is_batch, self.shares
        reports = self.direction.reports if self.direction else ()
        bound_ns = inf if self.program.until_ns is None else self.program.until_ns
        while calendar:
            now_ns, key, _, event = calendar[0]
            if type(event) is Signal and event.due and not event.due():
                # Nobody wants it any more; the clock does not show that it was there.
                heappop(calendar)
                continue
            if now_ns > bound_ns:
                self._now = bound_ns
                break
            self._now = now_ns
            if type(event) is Request:
                step = key & _STEP_MASK
                path = event.path
                if path.words[step] == graph.USE:
                    resource = event.row[path.roles[step]]
                    if path.dynamics:
                        self._account_service(event, step)
                    if is_batch[resource]:
                        heappop(calendar)
                        self._end_batch(resource, key)
                    else:
                        self.uses += 1
                        if self.slices_ns[resource] and self._keep(
                            resource, event, step
                        ):
                            heappop(calendar)
                        elif shares[resource] is not None or self.slices_ns[resource]:
                            heappop(calendar)
                            self.free_server(resource)
                        elif queues[resource]:
                            demand_ns, key, waiter = queues[resource].popleft()
                            self.waited_ns[resource] += now_ns
                            if self.paired[resource]:
                                demand_ns = self.paired_ns(resource, demand_ns)
                            self.busy_ns[resource] += demand_ns
                            heapreplace(
                                calendar, (now_ns + demand_ns, key, _EID, waiter)
                            )
                        else:
                            free[resource] += 1
                            self.sleep(resource)
                            heappop(calendar)
                else:
                    heappop(calendar)
                complete(event, step)
                if reports or self.kept:
                    self.work_off()
                continue
            heappop(calendar)
            if type(event) is Signal:
                event.action()
            else:
                self._foreign(event)
            self.work_off()
        return int(self._now)

    def _foreign(self, event: simpy.Event) -> None:
        callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment]
        for callback in callbacks:
            callback(event)
        if not event._ok and not hasattr(event, "_defused"):
            raise event._value

    def _complete(self, request: Request, step: int) -> None:
        """Complete a step and then those of the ready list; start what they make ready."""
        ready, free, is_batch, calendar = (
            self.ready,
            self.free,
            self.is_batch,
            self.calendar,
        )
        now_ns, bin_ns, direction = int(self._now), self.program.bin_ns, self.direction
        while True:
            path, row = request.path, request.row
            if direction:
                direction.step_done(request)
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
                if path.words[step] == graph.BRANCH:
                    following = self._branch(request, step)
                elif path.words[step] == graph.SPAWN:
                    self._spawn(request, step)
            for after, waits_for, word, role, mean, spread in following:
                if waits_for:
                    pending = request.pending
                    pending[after] -= 1
                    if waits_for == MERGE:
                        pending[after] |= _LIVE
                        if pending[after] > _LIVE:
                            continue
                    elif pending[after]:
                        continue
                if word == graph.USE:
                    resource = row[role]
                    if resource < 0:
                        ready.append((request, after))
                        continue
                    key = request.key | after
                    demand = mean
                    if spread:
                        factor = self._factors[spread][factor_index(request.seed, key)]
                        demand = (mean * factor + FACTOR_HALF) >> FACTOR_BITS
                    if path.dynamics and not self.slices_ns[resource]:
                        thread = path.dynamics.threads[after]
                        if thread in request.woken:
                            demand += self.wake_ns[row[path.roles[thread]]]
                    if self.kept and self._goes_on(resource, request, after):
                        since_ns, self.kept = self.kept[2], None
                        self._serve(resource, demand, key, request, since_ns)
                    elif self.shares[resource] is not None:
                        self._join_shared(resource, request, after, demand)
                    elif not free[resource] or (
                        is_batch[resource] and not self._threads_idle(resource)
                    ):
                        self.waited_ns[resource] -= now_ns
                        self.queues[resource].append((demand, key, request))
                    else:
                        free[resource] -= 1
                        demand += self.wake_ns[resource]
                        if is_batch[resource]:
                            self.batches[key] = [(request, after)]
                            self._flush(resource, begins=True)
                        self._serve(resource, demand, key, request, now_ns)
                elif word == graph.NONE:
                    ready.append((request, after))
                elif word == graph.DELAY:
                    if role >= 0 and row[role] < 0:
                        ready.append((request, after))
                    else:
                        heappush(
                            calendar,
                            (now_ns + mean, request.key | after, _EID, request),
                        )
                elif word <= graph.RELEASE:
                    self._pool(word, row[role], request, after)
                else:
                    act(self, word, row[role], request, after)
            if not ready:
                return
            request, step = ready.popleft()

    def _pool(self, word: int, pool: int, request: Request, step: int) -> None:
        """Take a unit of a pool or wait for it; or give one back."""
        if word == graph.ACQUIRE:
            if pool >= 0:
                if self.shares[pool] is not None:
                    self._join_shared(pool, request, step, 0)
                    return
                if self.stopped[pool] or self.flushing[pool] or not self.free[pool]:
                    self.waited_ns[pool] -= int(self._now)
                    self.queues[pool].append((0, request.key | step, request))
                    return
                self.change_unit(pool, request, -1)
                if request.path.dynamics:
                    request.woken.add(step)
        elif pool >= 0:
            self.change_unit(pool, request, 1)
            if self.shares[pool] is not None:
                if not self.dispatch(pool, awake=1):
                    self.sleep(pool)
            elif self.stopped[pool] or not self.queues[pool]:
                self.sleep(pool)
                self.serve_by(pool)
            else:
                self.grant_units(pool)
        self.ready.append((request, step))

    def change_unit(self, pool: int, request: Request, change: int) -> None:
        """Give a unit of a pool to a request (−1) or take it back (+1)."""
        self.free[pool] += change
        self.held_ns[pool] += change * int(self._now)
        if self.direction:
            request.units[pool] = request.units.get(pool, 0) - change

    def grant_units(self, pool: int, *, woken: bool = False) -> None:
        """Give free units to those that wait for them, the first first."""
        queue = self.queues[pool]
        while (
            queue
            and self.free[pool] > 0
            and not (self.stopped[pool] or self.flushing[pool])
        ):
            self.waited_ns[pool] += int(self._now)
            _, key, waiter = queue.popleft()
            self.change_unit(pool, waiter, -1)
            if woken and waiter.path.dynamics:
                waiter.woken.add(key & _STEP_MASK)
            self.ready.append((waiter, key & _STEP_MASK))

    def _end_batch(self, resource: int, key: int) -> None:
        """Hand over the server of a batch or free it; the members behind its leader become ready."""
        members = self.batches.pop(key)
        self.uses += len(members)
        self.free_server(resource)
        self.ready.extend(members[1:])

    def paired_ns(self, resource: int, demand_ns: int) -> int:
        """Return a service's time where servers are threads that share cores; its own is taken already."""
        if not self.paired[resource]:
            return demand_ns
        capacity = self.capacities[resource]
        busy = capacity - self.free[resource]
        sharing = max(0, 2 * (busy - (capacity + 1) // 2))
        slower = demand_ns * sharing * self.program.resources.paired_slowdown
        return demand_ns + slower // (busy * PAIRED_UNIT)

    def free_server(self, resource: int) -> None:
        """Free a server and let those that wait for one go on, the first first."""
        self.free[resource] += 1
        self._flush(resource, begins=False)
        if self.shares[resource] is not None:
            if not self.dispatch(resource, awake=1):
                self.sleep(resource)
        elif self.queues[resource]:
            self.serve_waiting(resource)
        else:
            self.sleep(resource)

    def _serve(
        self, resource: int, demand_ns: int, key: int, request: Request, since_ns: int
    ) -> None:
        """Begin a service by a server that is taken, on a core that its thread has had since a time."""
        if self.slices_ns[resource]:
            self.since_ns[key] = since_ns
            demand_ns = self._on_core(demand_ns, request, key & _STEP_MASK)
        demand_ns = self.paired_ns(resource, demand_ns)
        self.busy_ns[resource] += demand_ns
        heappush(self.calendar, (int(self._now) + demand_ns, key, _EID, request))

    def _on_core(self, demand_ns: int, request: Request, step: int) -> int:
        """Return a use's time on a core: a thread may have to be woken, and its process may have just run."""
        pool = self._thread_pool(request, step)
        if pool < 0:
            return demand_ns
        now_ns, resources, process = (
            int(self._now),
            self.program.resources,
            self.processes[pool],
        )
        assert request.path.dynamics is not None
        thread = request.path.dynamics.threads[step]
        if thread in request.woken and thread not in request.awake:
            request.awake.add(thread)
            demand_ns += self.wake_ns[pool]
            if process >= 0 and resources.cool_ns:
                left_ns = resources.cool_ns - max(
                    0, now_ns - self.runs_until_ns[process]
                )
                saved_ns = resources.warm_ns * max(0, left_ns) // resources.cool_ns
                self.warm_ns[pool] += saved_ns
                demand_ns -= saved_ns
        self.had_ns[self.flows[pool]] += demand_ns
        if process >= 0:
            self.runs_until_ns[process] = max(
                self.runs_until_ns[process], now_ns + demand_ns
            )
        return demand_ns

    def _thread_pool(self, request: Request, step: int) -> int:
        """Return the pool of the thread that does a use, −1: none."""
        path = request.path
        thread = path.dynamics.threads[step] if path.dynamics else -1
        return request.row[path.roles[thread]] if thread >= 0 else -1

    def _share_queue(self, share: Share, resource: int) -> ShareQueue:
        if share.kind == FAIR:
            return FairQueue(share, resource, self.had_ns)
        return ShareQueue(share, seed_state(self.program.seed), resource)

    def _keep(self, resource: int, request: Request, step: int) -> bool:
        """Let a thread keep its core until the ready list is empty, unless its slice is used up."""
        since_ns, pool = (
            self.since_ns.pop(request.key | step),
            self._thread_pool(request, step),
        )
        waiting = len(self.queues[resource]) + len(self.shares[resource] or ())
        if pool < 0 or (
            waiting and int(self._now) - since_ns >= self.slices_ns[resource]
        ):
            return False
        self.kept = (resource, pool, since_ns)
        return True

    def _goes_on(self, resource: int, request: Request, step: int) -> bool:
        """Whether a use is more work of the thread that keeps its core just now."""
        return self.kept is not None and self.kept[:2] == (
            resource,
            self._thread_pool(request, step),
        )

    def _threads_idle(self, server: int) -> bool:
        """Whether the threads that serve a batch server, if any do, have nothing else to do."""
        pool = self.partners[server]
        return pool < 0 or self.free[pool] == int(
            self.program.resources.capacities[pool]
        )

    def _flush(self, server: int, *, begins: bool) -> None:
        """Let the threads that serve a batch server do nothing else, or go on with what waits for them."""
        pool = self.partners[server] if self.is_batch[server] else -1
        if pool >= 0:
            self.flushing[pool] = begins
            if not begins:
                self.grant_units(pool, woken=True)

    def serve_by(self, pool: int) -> None:
        """Let threads that have nothing else to do serve their batch server."""
        if self.partners[pool] >= 0:
            self.serve_waiting(self.partners[pool])

    def _join_shared(
        self, resource: int, request: Request, step: int, demand_ns: int
    ) -> None:
        """Let a step join a queue that classes share; it goes on at once if it may."""
        share, dynamics = self.shares[resource], request.path.dynamics
        assert share is not None
        of, cost = (
            (dynamics.classes[step], dynamics.costs[step]) if dynamics else (0, 1)
        )
        self.waited_ns[resource] -= int(self._now)
        if isinstance(share, FairQueue):
            pool = self._thread_pool(request, step)
            of = self.flows[pool] if pool >= 0 else -1
        share.join(
            of, Item(demand_ns, request.key | step, request, cost, int(self._now))
        )
        self.dispatch(resource, awake=0)

    def dispatch(self, resource: int, awake: int) -> int:
        """Let free servers or units take what may go on of a queue that classes share."""
        share, now_ns = self.shares[resource], int(self._now)
        assert share is not None
        taken = 0
        while self.free[resource] > 0 and not self.stopped[resource]:
            item = share.take(now_ns)
            if item is None:
                break
            self.waited_ns[resource] += now_ns
            self._go_on(resource, item, woken=taken >= awake)
            taken += 1
        look_ns = None
        if self.free[resource] > 0 and not self.stopped[resource] and len(share):
            look_ns = share.next_ns()
        self.look_at(resource, look_ns)
        return taken

    def _go_on(self, resource: int, item: Item, *, woken: bool) -> None:
        """Give a free server or unit to an item of a queue that classes share."""
        request, step = item.request, item.key & _STEP_MASK
        if self.disciplines[resource] == POOL:
            self.change_unit(resource, request, -1)
            if woken and request.path.dynamics:
                request.woken.add(step)
            self.ready.append((request, step))
            return
        self.free[resource] -= 1
        demand_ns = item.demand_ns + (self.wake_ns[resource] if woken else 0)
        self._serve(resource, demand_ns, item.key, request, int(self._now))

    def look_at(self, resource: int, look_ns: int | None) -> None:
        """Look at a queue that classes share when something of it may go on; None: not on its own account."""
        share = self.shares[resource]
        assert share is not None
        share.look_ns = look_ns
        if look_ns is None or look_ns in share.scheduled:
            return

        def due() -> bool:
            if share.look_ns != look_ns:
                share.scheduled.discard(look_ns)
            return share.look_ns == look_ns

        def look() -> None:
            share.scheduled.discard(look_ns)
            self.dispatch(resource, awake=0)

        share.scheduled.add(look_ns)
        self.signal(look_ns, LOOK_KEY + resource, Signal(look, due=due))

    def sleep(self, resource: int) -> None:
        """Count that a server or a unit becomes idle because nothing waits for it."""
        self.sleeps[resource] += 1
        if self.program.bin_ns:
            index = int(self._now) // self.program.bin_ns
            while len(self.sleep_bins) <= index:
                self.sleep_bins.append([0] * (max(self._kinds) + 1))
            self.sleep_bins[index][self._kinds[resource]] += 1

    def serve_waiting(self, resource: int) -> None:
        """Let free servers take what waits for them."""
        now_ns, waiting = int(self._now), self.queues[resource]
        batch = self.is_batch[resource]
        while (
            waiting
            and self.free[resource]
            and (not batch or self._threads_idle(resource))
        ):
            self.free[resource] -= 1
            self._flush(resource, begins=True)
            # One service of a batch server for all that wait, under the key of the first.
            taken = list(waiting) if batch else [waiting[0]]
            for _ in taken:
                waiting.popleft()
            self.waited_ns[resource] += now_ns * len(taken)
            demand_ns = max(demand_ns for demand_ns, _, _ in taken)
            _, key, leader = taken[0]
            if batch:
                self.batches[key] = [
                    (request, key & _STEP_MASK) for _, key, request in taken
                ]
            self._serve(resource, demand_ns, key, leader, now_ns)

    def _reply(self, request: Request) -> None:
        """Note a request's completion and let a closed loop go on."""
        if request.number >= SPAWNED_FROM:
            index, of = divmod(request.number - SPAWNED_FROM, len(self.streams))
            self.spawned[of].completed_ns[index] = int(self._now)
            return
        place, of = divmod(request.number, len(self.streams))
        stream = self.streams[of]
        if stream.reports:
            self.directed.reports.append(Report(of, place))
        stream.notice(place)

    def _branch(self, request: Request, step: int) -> list[Any]:
        """Skip the side that is not taken; return what follows on the other."""
        dynamics = request.path.dynamics
        assert dynamics is not None
        following = request.path.following[step]
        split = dynamics.yes_counts[step]
        taken, left = following[:split], following[split:]
        if not holds(self, request, step):
            taken, left = left, taken
        for after, *_ in left:
            self._skip(request, after)
        return taken

    def _skip(self, request: Request, after: int) -> None:
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

    def _spawn(self, request: Request, step: int) -> None:
        if not holds(self, request, step):
            return
        dynamics = request.path.dynamics
        assert dynamics is not None
        of = request.stream % len(self.streams)
        log, parents = self.spawned[of], self.logs[request.stream]
        first = 0 if request.stream == of else SPAWNED_FROM
        _, binding, group = parents.chosen[
            (request.number - first) // len(self.streams)
        ]
        number = SPAWNED_FROM + len(log.issued_ns) * len(self.streams) + of
        template = dynamics.spawned[step]
        log.note(int(self._now), template, binding, group)
        self.start(number, template, binding, request.keys, of + len(self.streams))

    def _account_service(self, request: Request, step: int) -> None:
        """Account what a step accounts once for a service; the calendar holds the one that does."""
        dynamics = request.path.dynamics
        assert dynamics is not None
        once = dynamics.once[step]
        if once is not None:
            self.logs[request.stream].taken += once
            if self.program.bin_ns:
                self._bin()[:] += once

    def _account_taken(self, request: Request, step: int) -> None:
        """Add up what a completed step of a template with branches accounts."""
        path = request.path
        role = path.roles[step]
        if role >= 0 and request.row[role] < 0:
            return
        log = self.logs[request.stream]
        log.taken += path.amounts[step]
        log.taken_uses += path.words[step] == graph.USE and role >= 0

    def _account(self, path: Path, row: list[int], step: int) -> None:
        """Add what a step accounts to the bin of the current time."""
        role = path.roles[step]
        if role >= 0 and row[role] < 0:
            return
        self._bin()[:] += path.amounts[step]

    def _bin(self) -> graph.IntArray:
        index = int(self._now) // self.program.bin_ns
        while len(self.bins) <= index:
            self.bins.append(np.zeros(len(graph.COUNTERS), dtype=np.int64))
        return self.bins[index]

    def _check_end(self, end_ns: int) -> None:
        """Assert that a run which came to its end left nothing behind."""
        if self.direction:
            self.direction.check_end()
            return
        if self.program.until_ns is not None and end_ns >= self.program.until_ns:
            return
        resources = self.program.resources
        assert self.free == resources.capacities.tolist(), (
            "a server or a lock is held after the end"
        )
        assert not any(self.queues) and not any(self.shares), (
            "a request waits after the end"
        )
        assert all(PENDING not in log.completed_ns for log in self.logs), (
            "a request was lost"
        )
        assert not self.pins, "a key is pinned after the end"


def run(program: Program) -> EngineRun:
    """Execute a program on the reference engine."""
    return SimpyEngine(program).execute()

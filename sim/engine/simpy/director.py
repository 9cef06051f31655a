"""What a director does to the SimPy engine: stop and start resources, cut requests off, issue them again."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from heapq import heapify
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stripesim.sim.engine import program as machine
from stripesim.sim.engine.checks import Consulted, check_replanned, planning
from stripesim.sim.engine.graph import STEPS_MAX, USE, IntArray
from stripesim.sim.engine.program import PENDING
from stripesim.sim.engine.simpy.opcodes import pass_tickets, pin
from stripesim.sim.engine.simpy.requests import (
    DIRECTOR_KEY,
    LOST_KEY,
    TIMEOUT_KEY,
    Request,
    Signal,
    Stream,
)

if TYPE_CHECKING:
    from stripesim.sim.engine.simpy.engine import SimpyEngine

_STEP_MASK = STEPS_MAX - 1


class Direction:
    """A director at work on an engine."""

    def __init__(self, engine: SimpyEngine, director: machine.Director) -> None:
        self.engine = engine
        self.director = director
        self._consulted = Consulted(director, engine.program, engine)
        # Not yet reported to the director.
        self.reports: list[machine.Report] = []
        # Requests in flight by number; those that wait, with their key ranges.
        self.flying: dict[int, Request] = {}
        self.waiting: dict[int, list[range] | None] = {}
        self._begun = False
        self._moment: Signal | None = None
        self._watched: set[int] = set()
        self._oldest = [0] * len(engine.program.streams)
        self._lost = 0

    def begin(self) -> None:
        """Act before any request is issued, if the director wants to."""
        self.director.begin(self)
        next_ns = self._next_ns()
        if next_ns == 0:
            self.act()
        else:
            self._expect(next_ns)
        self._begun = True

    def completed_ns(self, stream: int) -> IntArray:
        """Return the completion times of a stream's requests issued so far."""
        return np.array(self.engine.streams[stream].completed_ns, dtype=np.int64)

    def begun(self, stream: int) -> Iterator[machine.Begun]:
        """Yield what has begun of each of a stream's requests in flight."""
        for request in self.flying.values():
            log, place = self.engine.logs[request.stream], self._place(request)
            if request.stream == stream and log.completed_ns[place] == PENDING:
                template, pending = log.chosen[place][0], np.array(request.pending)
                yield machine.Begun(
                    place, template, (pending <= 0) & (pending > -STEPS_MAX)
                )

    def act(self) -> None:
        """Ask the director what happens now, and let it happen."""
        now_ns = int(self.engine.now)
        reports = tuple(self.reports)
        self.reports.clear()
        actions = self._consulted.act(now_ns, reports)
        self._expect(self._next_ns())
        self._apply(actions)

    def _next_ns(self) -> int | None:
        return self._consulted.next_ns(int(self.engine.now))

    def _expect(self, next_ns: int | None) -> None:
        """Put the director's next moment into the calendar; the one before counts no more."""
        self._moment = None
        if next_ns is not None:
            moment = Signal(self.act, due=lambda: self._moment is moment)
            self._moment = moment
            self._lost += 1
            self.engine.signal(next_ns, DIRECTOR_KEY + self._lost, moment)

    def _apply(self, actions: Iterable[machine.Action]) -> None:
        engine = self.engine
        groups: set[int] = set()
        interrupted: set[int] = set()
        touched: set[int] = set()
        for action in actions:
            match action:
                case machine.Stop(resources):
                    touched |= self._stop(set(resources))
                case machine.Start(resources):
                    touched.update(
                        resource for resource in resources if self._start(resource)
                    )
                case machine.SetGroup(group, held, interrupt):
                    engine.held[group] = held
                    groups.add(group)
                    if interrupt:
                        interrupted.add(group)
                case machine.Wake(stream):
                    engine.streams[stream].ended = False
        if interrupted:
            touched |= self._interrupt(interrupted)
        self._wake(touched)
        self._issue_waiting(groups)
        self._go_on()

    def _go_on(self) -> None:
        """Let closed loops issue what they may have outstanding."""
        if self._begun:
            for stream in self.engine.streams:
                stream.fill()

    def _stop(self, resources: set[int]) -> set[int]:
        """Let resources die: what is in service at them is lost; return the pools of threads that go on."""
        engine = self.engine
        calendar: list[Any] = []
        for entry in engine.calendar:
            server = self._server(entry)
            if server not in resources:
                calendar.append(entry)
            elif engine.is_batch[server]:
                engine.batches.pop(entry[1], None)
        self._set_calendar(calendar)
        for resource in resources:
            engine.stopped[resource] = True
            if engine.shares[resource] is not None:
                engine.look_at(resource, None)
            if engine.disciplines[resource] in (machine.FIFO, machine.BATCH):
                engine.free[resource] = 0
        pools = {
            engine.partners[resource]
            for resource in resources
            if engine.is_batch[resource]
        } - {-1}
        for pool in pools:
            engine.flushing[pool] = False
        return pools

    def _start(self, resource: int) -> bool:
        """Let a resource work again; tell whether it was stopped."""
        engine = self.engine
        stopped, engine.stopped[resource] = engine.stopped[resource], False
        if stopped and engine.disciplines[resource] in (machine.FIFO, machine.BATCH):
            engine.free[resource] = int(engine.program.resources.capacities[resource])
        return stopped

    def _wake(self, resources: Collection[int]) -> None:
        """Let those go on that wait for what has been given back or has been started."""
        engine = self.engine
        for resource in sorted(resources):
            discipline = engine.disciplines[resource]
            if engine.shares[resource] is not None:
                # What a director gives back is awake.
                engine.dispatch(
                    resource, awake=int(engine.program.resources.capacities[resource])
                )
            elif discipline in (machine.FIFO, machine.BATCH):
                engine.serve_waiting(resource)
            elif discipline == machine.POOL:
                engine.grant_units(resource)
                engine.serve_by(resource)
            elif discipline == machine.GATE:
                pass_tickets(engine, resource)

    def _server(self, entry: Any) -> int:
        """Return the server that a calendar entry is a service of, −1: none."""
        _, key, _, event = entry
        if type(event) is Signal:
            return event.resource
        if type(event) is not Request:
            return -1
        step = key & _STEP_MASK
        if event.path.words[step] != USE:
            return -1
        server: int = event.row[event.path.roles[step]]
        return server

    def _set_calendar(self, entries: list[Any]) -> None:
        self.engine.calendar[:] = entries
        heapify(self.engine.calendar)

    def take_off(self, request: Request) -> None:
        """Note that a request is in flight."""
        request.units = {}
        request.steps_left = len(request.path.words)
        self.flying[request.number] = request

    def step_done(self, request: Request) -> None:
        """Note that a step has completed or is skipped."""
        request.steps_left -= 1
        if not request.steps_left:
            del self.flying[request.number]

    def _interrupt(self, groups: set[int]) -> set[int]:
        """Cut off the requests of groups; return the resources that got something back."""
        engine, streams = self.engine, len(self.engine.streams)
        cut = {
            request
            for request in self.flying.values()
            if self._group(request) in groups
        }
        for number in list(self.waiting):
            stream, place = engine.streams[number % streams], number // streams
            if stream.feed and stream.chosen[place][2] in groups:
                del self.waiting[number]
                self._end(stream, place, machine.CUT)
        for request in cut:
            log, place = engine.logs[request.stream], self._place(request)
            if log.completed_ns[place] != PENDING:
                continue
            if not isinstance(log, Stream):
                log.completed_ns[place] = machine.CUT
            elif log.feed:
                self._end(log, place, machine.CUT)
            else:
                self.waiting[request.number] = request.keys
                log.retries[place] = log.retries.get(place, 0) + 1
        return self._cut_off(cut)

    def _end(self, stream: Stream, place: int, outcome: int) -> None:
        stream.completed_ns[place] = outcome
        stream.outstanding -= 1

    def _place(self, request: Request) -> int:
        number, streams = request.number, len(self.engine.streams)
        return (
            number - machine.SPAWNED_FROM if number >= machine.SPAWNED_FROM else number
        ) // streams

    def _group(self, request: Request) -> int:
        return self.engine.logs[request.stream].chosen[self._place(request)][2]

    def _cut_off(self, cut: set[Request]) -> set[int]:
        engine, now_ns = self.engine, int(self.engine.now)
        for request in cut:
            del self.flying[request.number]
        self._leave_services(cut)
        for resource, queue in enumerate(engine.queues):
            kept = deque(entry for entry in queue if entry[2] not in cut)
            engine.waited_ns[resource] += now_ns * (len(queue) - len(kept))
            engine.queues[resource] = kept
        assert not engine.ready, "requests are cut off before anything goes on"
        touched: set[int] = set()
        for resource, share in enumerate(engine.shares):
            left = share.leave(cut) if share is not None else 0
            if left:
                engine.waited_ns[resource] += now_ns * left
                touched.add(resource)
        for request in cut:
            for pool, units in request.units.items():
                if units:
                    engine.change_unit(pool, request, units)
                    touched.add(pool)
            if request.path.dynamics:
                touched |= self._leave_gates(request)
                for which, pinned in enumerate(request.held):
                    pin(engine, request, which, -pinned)
        return touched

    def _leave_services(self, cut: set[Request]) -> None:
        """Take requests out of the calendar; a server stays occupied to the end of the service."""
        engine = self.engine
        calendar: list[Any] = []
        for entry in engine.calendar:
            time_ns, key, number, event = entry
            server = self._server(entry) if type(event) is Request else -1
            if server >= 0 and engine.is_batch[server]:
                members = [
                    member for member in engine.batches.pop(key) if member[0] not in cut
                ]
                if members:
                    # The first that is left stands for the service now.
                    event, step = members[0]
                    key = event.key | step
                    engine.batches[key] = members
                    calendar.append((time_ns, key, number, event))
                else:
                    calendar.append(self._lost_service(entry, server))
            elif event not in cut:
                calendar.append(entry)
            elif server >= 0:
                calendar.append(self._lost_service(entry, server))
        self._set_calendar(calendar)

    def _lost_service(self, entry: Any, server: int) -> Any:
        """Return the calendar entry of a service that nobody waits for any more."""
        time_ns, _, number, _ = entry
        self._lost += 1
        signal = Signal(lambda: self.engine.free_server(server), resource=server)
        return time_ns, LOST_KEY + self._lost, number, signal

    def _leave_gates(self, request: Request) -> set[int]:
        """Give a request's tickets back, without letting others have their turn."""
        engine, now_ns = self.engine, int(self.engine.now)
        touched = set()
        for step, ticket in request.tickets.items():
            gate = request.row[request.path.roles[step]]
            if ticket.waiting:
                engine.waited_ns[gate] += now_ns
                ticket.waiting = None
            ticket.passed = True
            engine.free[gate] += 1
            engine.held_ns[gate] += now_ns
            touched.add(gate)
        return touched

    def _issue_waiting(self, groups: set[int]) -> None:
        """Plan again what has not been issued of groups that are not held; issue what waits."""
        engine, streams = self.engine, len(self.engine.streams)
        open_groups = {group for group in groups if not engine.held[group]}
        waiting = sorted(
            number
            for number in self.waiting
            if engine.streams[number % streams].chosen[number // streams][2]
            in open_groups
        )
        planned: dict[int, tuple[int, int]] = {}
        for stream in engine.streams:
            own = [
                number // streams
                for number in waiting
                if number % streams == stream.index
            ]
            for place, *chosen in self._replan(stream, own, open_groups):
                planned[stream.number(place)] = (chosen[0], chosen[1])
        for number in waiting:
            stream = engine.streams[number % streams]
            stream.issue_again(
                number // streams, *planned[number], self.waiting.pop(number)
            )

    def _replan(
        self, stream: Stream, waiting: list[int], groups: set[int]
    ) -> Iterable[tuple[int, int, int]]:
        """Plan again what waits of a stream and what it has planned and not issued."""
        chunk, at, issued = stream.chunk, stream.at, len(stream.issued_ns)
        later = []
        if chunk is not None and groups:
            later = (
                at + np.flatnonzero(np.isin(chunk.groups[at:], list(groups)))
            ).tolist()
        indices = np.array(
            [*waiting, *(issued + place - at for place in later)], dtype=np.int64
        )
        if not len(indices):
            return []
        source = cast(machine.DirectedSource, stream.source)
        with planning(self.engine):
            again = source.replan(indices)
        assert chunk is not None
        check_replanned(
            self.engine.program,
            stream.index,
            again,
            self._known(stream, chunk, waiting, later),
        )
        if later:
            templates, bindings = chunk.templates.copy(), chunk.bindings.copy()
            templates[later], bindings[later] = (
                again.templates[len(waiting) :],
                again.bindings[len(waiting) :],
            )
            stream.chunk = replace(chunk, templates=templates, bindings=bindings)
        templates, bindings = (
            again.templates[: len(waiting)],
            again.bindings[: len(waiting)],
        )
        return zip(waiting, templates.tolist(), bindings.tolist(), strict=True)

    def _known(
        self,
        stream: Stream,
        chunk: machine.RequestChunk,
        waiting: list[int],
        later: list[int],
    ) -> machine.RequestChunk:
        """Return what stays as it was of requests that are planned again."""
        groups = [
            *(stream.chosen[place][2] for place in waiting),
            *chunk.groups[later].tolist(),
        ]
        keys = None
        own = [self.waiting[stream.number(place)] for place in waiting]
        if all(ranges is not None for ranges in own) and (
            chunk.keys is not None or not later
        ):
            listed = [[[one.start, one.stop] for one in ranges or ()] for ranges in own]
            listed += chunk.keys[later].tolist() if chunk.keys is not None else []
            keys = np.array(listed, dtype=np.int64)
        nothing = np.zeros(len(groups), dtype=np.int64)
        return machine.RequestChunk(
            nothing, nothing, np.array(groups, dtype=np.int64), keys=keys
        )

    def watch(self, stream: Stream) -> None:
        """See to it that the oldest unfinished request of a stream is looked at when its time is out."""
        if stream.index not in self._watched:
            self._watched.add(stream.index)
            self._watch_until(stream, int(self.engine.now) + stream.timeout_ns)

    def _watch_until(self, stream: Stream, time_ns: int) -> None:
        def due() -> bool:
            return self._time_out_ns(stream, time_ns) == time_ns

        signal = Signal(lambda: self._time_out(stream), due=due)
        self.engine.signal(time_ns, TIMEOUT_KEY + stream.index, signal)

    def _time_out_ns(self, stream: Stream, looked_at_ns: int) -> int | None:
        """Return when the oldest unfinished request's time is out; look again then, if it is later."""
        completed, oldest = stream.completed_ns, self._oldest[stream.index]
        while oldest < len(completed) and completed[oldest] != PENDING:
            oldest += 1
        self._oldest[stream.index] = oldest
        if oldest == len(completed):
            self._watched.discard(stream.index)
            return None
        time_ns = stream.issued_ns[oldest] + stream.timeout_ns
        if time_ns > looked_at_ns:
            self._watch_until(stream, time_ns)
        return time_ns

    def _time_out(self, stream: Stream) -> None:
        """Cut off those requests of a stream whose time is out now."""
        place, cut = self._oldest[stream.index], set()
        issued_ns = stream.issued_ns[place]
        while place < len(stream.issued_ns) and stream.issued_ns[place] == issued_ns:
            number = stream.number(place)
            if stream.completed_ns[place] == PENDING:
                self._end(stream, place, machine.FAILED)
                if number in self.flying:
                    cut.add(self.flying[number])
                self.waiting.pop(number, None)
            place += 1
        self._wake(self._cut_off(cut))
        self._go_on()
        self._time_out_ns(stream, int(self.engine.now))

    def check_end(self) -> None:
        """Assert that what is taken of pools, gates and pins belongs to requests in flight."""
        engine = self.engine
        capacities = engine.program.resources.capacities.tolist()
        taken = [0] * len(capacities)
        pins: dict[int, int] = {}
        for request in self.flying.values():
            for pool, units in request.units.items():
                taken[pool] += units
            if request.path.dynamics:
                for step in request.tickets:
                    taken[request.row[request.path.roles[step]]] += 1
                for held, keys in zip(request.held, request.keys or (), strict=True):
                    for key in keys if held else ():
                        pins[key] = pins.get(key, 0) + held
        for resource, discipline in enumerate(engine.disciplines):
            if discipline in (machine.POOL, machine.GATE):
                assert (
                    engine.free[resource] + taken[resource] == capacities[resource]
                ), "a unit was lost"
        assert pins == engine.pins, "a pin was lost"
        for stream in engine.streams:
            pending = {
                stream.number(place)
                for place, time in enumerate(stream.completed_ns)
                if time == PENDING
            }
            assert len(pending) == stream.outstanding, "a request was lost"
            assert pending <= self.flying.keys() | self.waiting.keys(), (
                "a request was lost"
            )

"""The director in a run of the SimPy engine: stops, starts, interruptions, timeouts, replanning."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from stripesim.sim.engine import program as machine
from stripesim.sim.engine.checks import ChunkChecks, Consulted, planning
from stripesim.sim.engine.conditions import KEY_RANGES
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.engine.program import PENDING
from stripesim.sim.engine.simpy.kernel import DIRECTOR, Kernel, ScheduledCall
from stripesim.sim.engine.simpy.logs import Log
from stripesim.sim.engine.simpy.paths import RequestInFlight
from stripesim.sim.engine.simpy.pins import Pins
from stripesim.sim.engine.simpy.resources import Delays, Fifo, Resource
from stripesim.sim.engine.simpy.streams import Stream


class DirectedKernel(Kernel):
    """The part of the engine that a director's actions change."""

    planning_s: float
    checks: ChunkChecks
    resources: Sequence[Resource]
    delays: Delays
    pins: Pins
    streams: Sequence[Stream]
    # True for each placement group whose requests wait.
    held: list[bool]
    # Requests in flight, by number.
    flying: dict[int, RequestInFlight]

    def end(self) -> None:
        """End the run at this moment, if its bound is not earlier."""
        raise NotImplementedError

    def start(self, log: Log, position: int, keys: Sequence[range]) -> None:
        """Start a request at its step 0."""
        raise NotImplementedError


class Direction:
    """A director in a run of the SimPy engine."""

    def __init__(self, engine: DirectedKernel, director: machine.Director) -> None:
        self.engine = engine
        self.director = director
        # Key ranges of the requests that wait for their placement group, by number.
        self.waiting: dict[int, Sequence[range]] = {}
        self._consulted = Consulted(director, engine.program, engine)
        # Completions not reported to the director yet.
        self._reports: list[machine.Report] = []
        self._begun = False
        self._moment: ScheduledCall | None = None

    def begin(self) -> None:
        """Perform the director's actions before any request is issued."""
        self.director.begin(self)
        self._expect()
        if self._moment and self._moment.time_ns == 0:
            self._act_unasked()
        self._begun = True

    def completed_ns(self, stream: int) -> IntArray:
        """Return the completion times of a stream's requests issued so far."""
        return np.array(self.engine.streams[stream].completed_ns, dtype=np.int64)

    def begun(self, stream: int) -> Iterator[machine.Begun]:
        """Yield the begun steps of each of a stream's requests in flight."""
        log = self.engine.streams[stream]
        for request in self.engine.flying.values():
            position = request.position
            if request.log is log and log.completed_ns[position] == PENDING:
                steps = np.array(request.pending) <= 0
                yield machine.Begun(position, log.templates[position], steps)

    def report(self, stream: int, position: int) -> None:
        """Report a completion to the director as soon as the ready list is empty."""
        if not self._reports:
            self.engine.when_quiet.append(self._act_unasked)
        self._reports.append(machine.Report(stream, position))

    def _act_unasked(self) -> None:
        """Call the director at a moment that it has not named."""
        if self._moment:
            self.engine.cancel(self._moment)
        self._act()

    def _act(self) -> None:
        reports = tuple(self._reports)
        self._reports.clear()
        actions = self._consulted.act(self.engine.now_ns, reports)
        self._expect()
        self._apply(actions)

    def _expect(self) -> None:
        """Put the director's next moment into the calendar."""
        next_ns = self._consulted.next_ns(self.engine.now_ns)
        self._moment = None
        if next_ns is not None:
            self._moment = self.engine.call_at(next_ns, DIRECTOR, self._act)

    def _apply(self, actions: Iterable[machine.Action]) -> None:
        engine = self.engine
        groups: set[int] = set()
        interrupted: set[int] = set()
        # Resources to resume.
        touched: set[Resource] = set()
        for action in actions:
            match action:
                case machine.Stop(resources):
                    for resource in resources:
                        touched.update(engine.resources[resource].stop())
                case machine.Start(resources):
                    for resource in resources:
                        if engine.resources[resource].stopped:
                            engine.resources[resource].start()
                            touched.add(engine.resources[resource])
                case machine.Slow(resources, slowdown):
                    for resource in resources:
                        server = engine.resources[resource]
                        assert isinstance(server, Fifo)
                        server.slowdown = slowdown
                case machine.SetGroup(group, held, interrupt):
                    engine.held[group] = held
                    groups.add(group)
                    if interrupt:
                        interrupted.add(group)
                case machine.Wake(stream):
                    engine.streams[stream].ended = False
                case machine.End():
                    engine.end()
        if interrupted:
            touched.update(self._interrupt(interrupted))
        self._resume(touched)
        self._issue_waiting(groups)
        self._fill()

    def _fill(self) -> None:
        """Issue requests up to the depths of closed loops."""
        if self._begun:
            for stream in self.engine.streams:
                stream.fill()

    def _resume(self, touched: Iterable[Resource]) -> None:
        """Resume resources in their order."""
        for resource in sorted(touched, key=lambda resource: resource.index):
            resource.resume()

    def _interrupt(self, groups: Collection[int]) -> list[Resource]:
        """Cut off the requests of groups, and return the resources to resume."""
        for number in list(self.waiting):
            stream, position = self._at(number)
            if stream.feed and stream.groups[position] in groups:
                del self.waiting[number]
                stream.end(position, machine.CUT)
        cut = set()
        for request in self.engine.flying.values():
            log = request.log
            position = request.position
            if log.groups[position] not in groups:
                continue
            cut.add(request)
            if log.completed_ns[position] != PENDING:
                continue
            if isinstance(log, Stream) and not log.feed:
                self.waiting[request.number] = request.keys
                log.retries[position] += 1
            else:
                log.end(position, machine.CUT)
        return self._cut_off(cut)

    def _at(self, number: int) -> tuple[Stream, int]:
        """Return the stream of a request and the request's position there."""
        position, stream = divmod(number, len(self.engine.streams))
        return self.engine.streams[stream], position

    def _cut_off(self, cut: Collection[RequestInFlight]) -> list[Resource]:
        """Drop requests everywhere, and return the resources to resume."""
        engine = self.engine
        assert not engine.ready, "requests are cut off before anything goes on"
        if not cut:
            return []
        for request in cut:
            del engine.flying[request.number]
            engine.pins.unpin_all(request)
        engine.delays.cut_off(cut)
        return [resource for resource in engine.resources if resource.cut_off(cut)]

    def time_out(self, stream: Stream, positions: Sequence[int]) -> None:
        """Cut off requests of a stream that have timed out."""
        cut = set()
        for position in positions:
            number = stream.number(position)
            stream.end(position, machine.FAILED)
            self.waiting.pop(number, None)
            if number in self.engine.flying:
                cut.add(self.engine.flying[number])
        self._resume(self._cut_off(cut))
        self._fill()

    def _issue_waiting(self, groups: Collection[int]) -> None:
        """Replan unissued requests of groups that are not held, and issue the waiting ones."""
        open_groups = [group for group in groups if not self.engine.held[group]]
        if not open_groups:
            return
        waiting = []
        for number in sorted(self.waiting):
            stream, position = self._at(number)
            if stream.groups[position] in open_groups:
                waiting.append(number)
        for stream in self.engine.streams:
            positions = [
                position for log, position in map(self._at, waiting) if log is stream
            ]
            self._replan(stream, positions, open_groups)
        for number in waiting:
            stream, position = self._at(number)
            self.engine.start(stream, position, self.waiting.pop(number))

    def _replan(
        self, stream: Stream, positions: list[int], groups: Collection[int]
    ) -> None:
        """Replan waiting and planned requests of a stream."""
        later: list[int] = []
        if stream.chunk is not None:
            later = np.flatnonzero(np.isin(stream.chunk.groups, list(groups))).tolist()
            later = [row for row in later if row >= stream.chunk_issued]
        next_position = len(stream.issued_ns) - stream.chunk_issued
        indices = [*positions, *(next_position + row for row in later)]
        if not indices:
            return
        source = cast(machine.DirectedSource, stream.source)
        with planning(self.engine):
            again = source.replan(np.array(indices, dtype=np.int64))
        known = self._known(stream, positions, later)
        self.engine.checks.check_replanned(stream.index, again, known)
        templates = again.templates.tolist()
        bindings = again.bindings.tolist()
        for position in positions:
            stream.templates[position] = templates.pop(0)
            stream.bindings[position] = bindings.pop(0)
        if later:
            assert stream.chunk is not None
            stream.chunk = replace(
                stream.chunk,
                templates=_changed(stream.chunk.templates, later, templates),
                bindings=_changed(stream.chunk.bindings, later, bindings),
            )

    def _known(
        self, stream: Stream, positions: list[int], later: list[int]
    ) -> machine.RequestChunk:
        """Return the groups and keys of requests, which replanning does not change."""
        groups = [stream.groups[position] for position in positions]
        waiting = [self.waiting[stream.number(position)] for position in positions]
        ranges = [[[keys.start, keys.stop] for keys in own] for own in waiting]
        chunk = stream.chunk
        if later and chunk is not None:
            groups += chunk.groups[later].tolist()
            ranges += (
                [[]] * len(later) if chunk.keys is None else chunk.keys[later].tolist()
            )
        keys = None
        if all(ranges):
            keys = np.array(ranges, dtype=np.int64).reshape(-1, KEY_RANGES, 2)
        nothing = np.zeros(len(groups), dtype=np.int64)
        return machine.RequestChunk(
            nothing, nothing, np.array(groups, dtype=np.int64), keys=keys
        )

    def check_end(self) -> None:
        """Assert that all units, tickets and pins that are out belong to requests in flight."""
        engine = self.engine
        flying = set(engine.flying.values())
        for resource in engine.resources:
            assert flying.issuperset(resource.users()), "a unit was lost"
        pins = Pins()
        for request in flying:
            pins.counts.update(
                key
                for times, keys in zip(request.pinned, request.keys, strict=True)
                for key in [*keys] * times
            )
        assert pins.counts == engine.pins.counts, "a pin was lost"
        for stream in engine.streams:
            positions = [
                position
                for position, time_ns in enumerate(stream.completed_ns)
                if time_ns == PENDING
            ]
            requests = {stream.firsts[position] for position in positions}
            assert len(requests) == stream.outstanding, "a request was lost"
            pending = {stream.number(position) for position in positions}
            assert pending <= engine.flying.keys() | self.waiting.keys(), (
                "a request was lost"
            )


def _changed(array: IntArray, rows: list[int], values: list[int]) -> IntArray:
    """Return an array with some values changed."""
    changed = array.copy()
    changed[rows] = values
    return changed

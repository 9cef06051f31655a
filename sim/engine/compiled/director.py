"""The director in a run of the compiled engine: the Python side, between two calls of the kernel.

Read with ``simpy/director.py``. Methods of the same name do the same work. Passes over all
requests in flight are compiled (``actions.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any, cast

import numpy as np

from stripesim.sim.engine import program as machine
from stripesim.sim.engine.checks import Consulted, planning
from stripesim.sim.engine.compiled import world as layout
from stripesim.sim.engine.compiled.state import RunState
from stripesim.sim.engine.compiled.world import NEVER_NS, Array
from stripesim.sim.engine.conditions import KEY_RANGES
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.engine.program import PENDING


class DirectedRun:
    """A director in a run of the compiled engine."""

    def __init__(self, state: RunState, director: machine.Director) -> None:
        self.state = state
        self.director = director
        self._consulted = Consulted(director, state.program, state)
        # Retries of each request, by its row in the log.
        self.retries: dict[int, int] = {}
        self._next_ns: int | None = None
        # Services whose steps were all cut off: time of the end, server.
        self._lost: list[tuple[int, int]] = []
        # Row of the log before which every request of a stream has ended.
        self._oldest = [0] * len(state.program.streams)

    @property
    def _actions(self) -> Any:
        """The compiled effects of actions."""
        from stripesim.sim.engine.compiled import actions

        return actions

    def begin(self) -> None:
        """Perform the director's actions before any request is issued."""
        self.director.begin(self)
        self._next_ns = self._ask()
        if self._next_ns == 0:
            self._act()
        self._expect()

    def completed_ns(self, stream: int) -> IntArray:
        """Return the completion times of a stream's requests issued so far."""
        log = self.state.world.log[: int(self.state.world.clock["logged"][0])]
        completed_ns: IntArray = log["completed_ns"][log["stream"] == stream].astype(
            np.int64
        )
        return completed_ns

    def begun(self, stream: int) -> Iterator[machine.Begun]:
        """Yield the begun steps of each of a stream's requests in flight."""
        world = self.state.world
        bits = int(self.state.world.clock["cell_bits"][0])
        for slot in self._in_flight().tolist():
            request = world.requests[slot]
            log = world.log[request["entry"]]
            if request["stream"] == stream and log["completed_ns"] == PENDING:
                template = int(log["template"])
                first = slot << bits
                steps = int(world.templates["steps"][template])
                pending = world.pending[first : first + steps]
                begun = (pending <= 0) & (pending > layout.SKIPPED)
                yield machine.Begun(
                    int(request["number"]) // len(world.streams), template, begun
                )

    def step(self) -> bool:
        """Process the first due event. Return False past the end time."""
        world = self.state.world
        clock = world.clock[0]
        asked_ns = int(clock["direct_ns"])
        self._look_at_timeouts(asked_ns)
        time_ns = int(clock["now_ns"]) if clock["reported"] else self._due_ns()
        if time_ns > asked_ns:
            # An obsolete timeout does not advance the clock.
            self._expect()
            return True
        if time_ns > clock["until_ns"]:
            clock["now_ns"] = clock["until_ns"]
            return False
        self.state.set_clock(time_ns)
        if clock["reported"] or self._next_ns == time_ns:
            self._act()
        elif self._lost and self._lost[0][0] == time_ns:
            self._actions.free_server(self.state.world, heappop(self._lost)[1])
        else:
            self._time_out(int(np.flatnonzero(world.streams["look_ns"] == time_ns)[0]))
        self._expect()
        return True

    def _due_ns(self) -> int:
        """Return the time of the next event that the kernel leaves to Python [ns]."""
        due = [NEVER_NS if self._next_ns is None else self._next_ns]
        due += [self._lost[0][0]] if self._lost else []
        return int(min(due + self.state.world.streams["look_ns"].tolist()))

    def _expect(self) -> None:
        world = self.state.world
        due_ns = self._due_ns()
        world.clock["direct_ns"] = due_ns
        world.clock["signal_ns"] = min(
            [
                due_ns,
                int(world.clock["look_ns"][0]),
                *world.streams["arrival_ns"].tolist(),
            ]
        )

    def _ask(self) -> int | None:
        return self._consulted.next_ns(int(self.state.world.clock["now_ns"][0]))

    def _act(self) -> None:
        world = self.state.world
        clock = world.clock[0]
        reported = world.reports[: int(clock["reported"])].tolist()
        reports = tuple(machine.Report(*report) for report in reported)
        clock["reported"] = 0
        actions = self._consulted.act(int(clock["now_ns"]), reports)
        self._next_ns = self._ask()
        self._apply(actions)

    def _apply(self, actions: Iterable[machine.Action]) -> None:
        world = self.state.world
        groups: set[int] = set()
        interrupted: set[int] = set()
        touched = np.zeros(len(world.resources), dtype=np.uint8)
        for action in actions:
            match action:
                case machine.Stop(resources):
                    self._stop(list(resources), touched)
                case machine.Start(resources):
                    self._start(list(resources), touched)
                case machine.Slow(resources, slowdown):
                    self._slow(list(resources), slowdown)
                case machine.SetGroup(group, held, interrupt):
                    world.held[group] = held
                    groups.add(group)
                    if interrupt:
                        interrupted.add(group)
                case machine.Wake(stream):
                    world.streams["ended"][stream] = 0
                case machine.End():
                    clock = world.clock[0]
                    clock["until_ns"] = min(clock["until_ns"], clock["now_ns"])
        if interrupted:
            self._interrupt(interrupted, touched)
        self._actions.wake(world, touched)
        self._issue_waiting(groups)
        self._go_on()

    def _go_on(self) -> None:
        self.state.world.clock["streams_filled"] = 0

    def _stop(self, stopped: list[int], touched: Array) -> None:
        world = self.state.world
        world.resources["stopped"][stopped] |= layout.STOPPED
        servers = np.isin(
            world.resources["discipline"], (machine.FIFO, machine.BATCH)
        ) & (world.resources["stopped"] != 0)
        batches = [
            resource
            for resource in stopped
            if world.resources["discipline"][resource] == machine.BATCH
        ]
        pools = [int(pool) - 1 for pool in world.resources["partner"][batches] if pool]
        world.resources["stopped"][pools] &= ~layout.FLUSHING
        touched[pools] = 1
        world.resources["free"][servers] = 0
        self._actions.void_services(world, self._calendar())
        self._lost = [lost for lost in self._lost if not servers[lost[1]]]
        heapify(self._lost)

    def _start(self, started: list[int], touched: Array) -> None:
        resources = self.state.world.resources
        for resource in started:
            if resources["stopped"][resource] & layout.STOPPED:
                resources["stopped"][resource] &= ~layout.STOPPED
                touched[resource] = 1
                if resources["discipline"][resource] in (machine.FIFO, machine.BATCH):
                    resources["free"][resource] = resources["capacity"][resource]

    def _slow(self, servers: list[int], slowdown: int) -> None:
        world = self.state.world
        world.slowdowns[servers] = slowdown
        world.resources["stretched"][servers] &= ~layout.SLOWED
        if slowdown != machine.SLOWDOWN_UNIT:
            world.resources["stretched"][servers] |= layout.SLOWED

    def _calendar(self) -> Array:
        """Return a copy of the calendar's entries."""
        world = self.state.world
        end = int(world.clock["calendar_end"][0])
        return world.calendar[layout.ROOT : end].copy()

    def _in_flight(self) -> Array:
        """Return the occupied slots."""
        world = self.state.world
        taken = np.ones(len(world.requests), dtype=bool)
        taken[world.free_slots[: int(world.clock["slots_free"][0])]] = False
        return np.flatnonzero(taken)

    def _interrupt(self, groups: set[int], touched: Array) -> None:
        world = self.state.world
        log = world.log
        wanted = np.fromiter(groups, dtype=np.int64)
        # In the log, the streams of spawned requests follow those of the program.
        spawned = np.zeros(len(world.streams), dtype=bool)
        is_feed = np.append(world.streams["feed"] == 1, spawned)
        is_client = np.append(world.streams["feed"] == 0, spawned)
        parked = world.parked["entry"][: int(world.clock["parked"][0])]
        of_feeds = is_feed[log["stream"][parked]]
        self._drop_parked(of_feeds & np.isin(log["group"][parked], wanted), machine.CUT)
        slots = self._in_flight()
        entries = world.requests["entry"][slots]
        is_hit = np.isin(log["group"][entries], wanted)
        is_open = is_hit & (log["completed_ns"][entries] == PENDING)
        of_clients = is_client[world.requests["stream"][slots]]
        self._park(slots[is_open & of_clients])
        self._end(entries[is_open & ~of_clients], machine.CUT)
        self._cut_off(slots[is_hit], touched)

    def _end(self, entries: Array, outcome: int) -> None:
        world = self.state.world
        log = world.log
        log["completed_ns"][entries] = outcome
        firsts = self._firsts(entries)
        np.subtract.at(log["parts"], firsts, 1)
        ended = np.unique(firsts)
        of = log["stream"][ended[log["parts"][ended] == 0]]
        np.subtract.at(world.streams["outstanding"], of[of < len(world.streams)], 1)

    def _firsts(self, entries: Array) -> Array:
        """Return the entry of the first part of each entry's request."""
        firsts: Array = entries + np.minimum(self.state.world.log["parts"][entries], 0)
        return firsts

    def _drop_parked(self, dropped: Array, outcome: int) -> None:
        world = self.state.world
        parked = world.parked[: len(dropped)].copy()
        self._end(parked["entry"][dropped], outcome)
        self._set_parked(parked[~dropped])

    def _set_parked(self, parked: Array) -> None:
        world = self.state.world
        world.parked[: len(parked)] = parked
        world.clock["parked"] = len(parked)

    def _park(self, slots: Array) -> None:
        """Park cut-off requests until they are issued again."""
        known = int(self.state.world.clock["parked"][0])
        count = len(slots)
        while len(self.state.world.parked) < known + count + 1:
            self.state.more_parked()
        world = self.state.world
        rows = world.parked[known : known + count]
        rows["number"] = world.requests["number"][slots]
        rows["entry"] = world.requests["entry"][slots]
        if len(world.keys):
            rows["first"] = world.keys["first"][slots]
            rows["stop"] = world.keys["stop"][slots]
        world.clock["parked"] = known + count
        for entry in rows["entry"].tolist():
            self.retries[entry] = self.retries.get(entry, 0) + 1

    def _cut_off(self, slots: Array, touched: Array) -> None:
        if not len(slots):
            return
        world = self.state.world
        marked = np.zeros(len(world.requests), dtype=np.uint8)
        marked[slots] = 1
        entries = self._calendar()
        lost = np.zeros(len(entries), dtype=layout.LOST)
        count = self._actions.cut_off(world, marked, touched, entries, lost)
        for service in lost[:count].tolist():
            heappush(self._lost, service)

    def _issue_waiting(self, groups: set[int]) -> None:
        state = self.state
        count = len(self.state.world.streams)
        open_groups = np.array(
            [group for group in groups if not state.world.held[group]], dtype=np.int64
        )
        if not len(open_groups):
            return
        parked = state.world.parked[: int(state.world.clock["parked"][0])].copy()
        going = np.isin(state.world.log["group"][parked["entry"]], open_groups)
        self._set_parked(parked[~going])
        parked = parked[going]
        parked = parked[np.argsort(parked["number"])]
        plans = np.zeros((len(parked), 3), dtype=np.int64)
        plans[:, 2] = [self.retries.get(entry, 0) for entry in parked["entry"].tolist()]
        for stream in range(count):
            own = np.flatnonzero(parked["number"] % count == stream)
            plans[own, :2] = self._replan(stream, parked[own], open_groups)
        if not len(parked):
            return
        while state.world.clock["slots_free"][0] < len(parked):
            state.more_slots()
        self._actions.start_again(state.world, parked, plans)
        state.follow_again(parked["number"])

    def _replan(self, stream: int, parked: Array, groups: Array) -> Array:
        """Plan waiting and planned requests of a stream again.

        Returns
        -------
        Array
            Template and binding of each waiting request, shape (waiting, 2).
        """
        state = self.state
        world = self.state.world
        at, planned, issued = (
            int(world.streams[name][stream]) for name in ("at", "planned", "issued")
        )
        later = np.flatnonzero(np.isin(world.plan[stream, at:planned, 0], groups))
        indices = np.append(parked["number"] // len(world.streams), issued + later)
        if not len(indices):
            return np.zeros((0, 2), dtype=np.int64)
        source = cast(machine.DirectedSource, state.program.streams[stream])
        with planning(state):
            again = source.replan(indices)
        state.learn()
        state.checks.check_replanned(
            stream, again, self._known(stream, parked, at + later)
        )
        pairs: Array = np.stack([again.templates, again.bindings], axis=1)
        state.world.plan[stream, at + later, 2:4] = pairs[len(parked) :]
        return pairs[: len(parked)]

    def _known(self, stream: int, parked: Array, later: Array) -> machine.RequestChunk:
        world = self.state.world
        groups = np.append(
            world.log["group"][parked["entry"]], world.plan[stream, later, 0]
        )
        keys = None
        if len(world.keys):
            keys = np.zeros((len(groups), KEY_RANGES, 2), dtype=np.int64)
            planned = world.plan_keys[stream, later]
            for side, name in enumerate(("first", "stop")):
                keys[:, :, side] = np.concatenate([parked[name], planned[name]])
        nothing = np.zeros(len(groups), dtype=np.int64)
        return machine.RequestChunk(
            nothing, nothing, groups.astype(np.int64), keys=keys
        )

    def _look_at_timeouts(self, time_ns: int) -> None:
        """Update the next timeout of each stream whose check is due."""
        world = self.state.world
        for stream in np.flatnonzero(world.streams["look_ns"] <= time_ns).tolist():
            self._look(stream)

    def _look(self, stream: int) -> None:
        world = self.state.world
        oldest = self._oldest[stream] = self._actions.oldest_pending(
            world, stream, self._oldest[stream]
        )
        look_ns = NEVER_NS
        if oldest < world.clock["logged"][0]:
            look_ns = int(
                world.log["issued_ns"][oldest] + world.streams["timeout_ns"][stream]
            )
        world.streams["look_ns"][stream] = look_ns

    def _time_out(self, stream: int) -> None:
        world = self.state.world
        logged = int(world.clock["logged"][0])
        first = self._oldest[stream]
        stop = first
        while (
            stop < logged
            and world.log["issued_ns"][stop] == world.log["issued_ns"][first]
        ):
            stop += 1
        rows = world.log[first:stop]
        entries = first + np.flatnonzero(
            (rows["stream"] == stream) & (rows["completed_ns"] == PENDING)
        )
        parked = world.parked[: int(world.clock["parked"][0])]["entry"]
        slots = self._in_flight()
        slots = slots[np.isin(world.requests["entry"][slots], entries)]
        self._end(world.requests["entry"][slots], machine.FAILED)
        self._drop_parked(np.isin(parked, entries), machine.FAILED)
        touched = np.zeros(len(world.resources), dtype=np.uint8)
        self._cut_off(slots, touched)
        self._actions.wake(world, touched)
        self._go_on()
        self._look(stream)

    def check_end(self) -> None:
        """Assert that no request was lost, and that an idle cluster holds nothing."""
        world = self.state.world
        slots = self._in_flight()
        log = world.log[: int(world.clock["logged"][0])]
        parked = world.parked["entry"][: int(world.clock["parked"][0])]
        pending = np.flatnonzero(
            (log["completed_ns"] == PENDING) & (log["stream"] < len(world.streams))
        )
        # A mask counts the requests of a long log ten times faster than numpy's unique.
        is_request = np.zeros(len(log), dtype=np.bool_)
        is_request[self._firsts(pending)] = True
        assert is_request.sum() == world.streams["outstanding"].sum(), (
            "a request was lost"
        )
        assert np.isin(
            pending, np.append(world.requests["entry"][slots], parked)
        ).all(), "a request was lost"
        if len(slots):
            return
        resources = world.resources
        lent = np.isin(resources["discipline"], (machine.POOL, machine.GATE))
        assert (~lent | (resources["free"] == resources["capacity"])).all(), (
            "a unit was lost"
        )
        assert not world.clock["pinned"][0], "a pin was lost"

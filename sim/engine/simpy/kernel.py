"""Kernel of the SimPy engine: the calendar and the ready list."""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any

import numpy as np
import simpy

from stripesim.sim.engine.draws import (
    draw_key,
    drawn_factor,
    factor_cells,
    scaled_ns,
)
from stripesim.sim.engine.graph import COUNTERS, IntArray
from stripesim.sim.engine.program import Program
from stripesim.sim.engine.simpy.paths import PathStep, RequestInFlight

# Priorities of events at equal times, the lowest first. SimPy's own events have the priorities
# 0 and 1. A step's priority is its key plus `FIRST_STEP`.
DIRECTOR = -(5 << 60)
LOST_SERVICE = -(4 << 60)
TIMEOUT = -(3 << 60)
LOOK = -(2 << 60)
ARRIVAL = -(1 << 60)
FIRST_STEP = 2


class Moment:
    """An event of the engine, as opposed to one of SimPy."""

    __slots__ = ()

    def act(self) -> None:
        """Process the event."""
        raise NotImplementedError


class ScheduledCall(Moment):
    """A scheduled call of a function."""

    __slots__ = ("_action", "time_ns")

    def __init__(self, time_ns: int, action: Callable[[], None]) -> None:
        self.time_ns = time_ns
        self._action = action

    def act(self) -> None:
        """Call the function."""
        self._action()


class Bins:
    """Sums by time."""

    def __init__(self, bin_ns: int, columns: int) -> None:
        self.bin_ns = bin_ns
        self.columns = columns
        self.rows: list[IntArray] = []

    def at(self, now_ns: int) -> IntArray:
        """Return the sums of the bin that contains a time."""
        index = now_ns // self.bin_ns
        while len(self.rows) <= index:
            self.rows.append(np.zeros(self.columns, dtype=np.int64))
        return self.rows[index]

    def table(self) -> IntArray:
        """Return all sums, shape (bins, columns)."""
        return np.array(self.rows, dtype=np.int64).reshape(-1, self.columns)


class Kernel(simpy.Environment):
    """A SimPy environment with a ready list. Its calendar also holds moments.

    SimPy processes may run in it alongside the requests.
    """

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program
        self.now_ns = 0
        # Entries are (time, priority, number, moment or SimPy event).
        self._calendar: list[tuple[int, int, int, Any]] = []
        self._numbers = count()
        self._cancelled: set[Moment] = set()
        # Completed steps, in order.
        self.ready: deque[tuple[RequestInFlight, PathStep]] = deque()
        # Functions to call one by one whenever the ready list is empty.
        self.when_quiet: deque[Callable[[], None]] = deque()
        self.uses = 0
        self.bins = Bins(program.bin_ns, len(COUNTERS))
        self.sleep_bins = Bins(program.bin_ns, len(program.resources.kind_names))
        # Kind of each resource, as an index.
        self.kinds: list[int] = program.resources.kind_indices.tolist()
        self._cells: list[list[list[int]]] = factor_cells(
            program.factor_tables
        ).tolist()
        self.position_factors: list[int] = program.position_factors.tolist()

    # ------------------------------------------------------------------ the calendar

    @property
    def now(self) -> int:
        """The current time [ns]."""
        return self.now_ns

    def put(self, time_ns: int, priority: int, moment: Moment) -> None:
        """Put a moment into the calendar."""
        entry = (time_ns, priority, next(self._numbers), moment)
        heappush(self._calendar, entry)

    def call_at(
        self, time_ns: int, priority: int, action: Callable[[], None]
    ) -> ScheduledCall:
        """Schedule the call of a function."""
        call = ScheduledCall(time_ns, action)
        self.put(time_ns, priority, call)
        return call

    def cancel(self, moment: Moment) -> None:
        """Remove a moment from the calendar."""
        self._cancelled.add(moment)

    def schedule(self, event: simpy.Event, priority: int = 1, delay: Any = 0) -> None:
        """Insert a SimPy event into the calendar."""
        entry = (self.now_ns + delay, priority, next(self._numbers), event)
        heappush(self._calendar, entry)

    def peek(self) -> float:
        """Return the time of the next event, or infinity if there is none."""
        while self._calendar:
            time_ns, _, _, event = self._calendar[0]
            if event not in self._cancelled:
                return time_ns
            heappop(self._calendar)
            self._cancelled.remove(event)
        return inf

    def step(self) -> None:
        """Process the next event."""
        if self.peek() == inf:
            raise simpy.core.EmptySchedule
        self.happen()

    def happen(self) -> None:
        """Process the first entry of the calendar and everything that follows at the same time."""
        self.now_ns, _, _, event = heappop(self._calendar)
        if isinstance(event, Moment):
            event.act()
        else:
            _process(event)
        self.work_off()

    # ---------------------------------------------------------------- the ready list

    def work_off(self) -> None:
        """Complete the steps of the ready list."""
        ready = self.ready
        while True:
            while ready:
                self.complete(*ready.popleft())
            if not self.when_quiet:
                return
            self.when_quiet.popleft()()

    def complete(self, request: RequestInFlight, step: PathStep) -> None:
        """Complete a step and begin the steps that it makes ready."""
        raise NotImplementedError

    def account_service(self, request: RequestInFlight, step: PathStep) -> None:
        """Account a step's amounts per service."""
        raise NotImplementedError

    def random_ns(
        self, request: RequestInFlight, step: PathStep, saved_ns: int = 0
    ) -> int:
        """Return the demand of a use, less a saved part, multiplied by its random factor."""
        cells = self._cells[step.spread]
        key = draw_key(request.number, step.number)
        factor = drawn_factor(cells, request.seed, key)
        return scaled_ns(step.demand_ns - saved_ns, factor)


def _process(event: simpy.Event) -> None:
    """Process a SimPy event, as its environment does."""
    callbacks = event.callbacks
    event.callbacks = None  # type: ignore[assignment]
    for callback in callbacks:
        callback(event)
    if not event.ok and not event.defused:
        raise event.value  # type: ignore[misc]

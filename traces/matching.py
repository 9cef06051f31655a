"""Match block-layer events (queue, dispatch, complete) into requests and device commands."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from stripesim.traces.budget import PENDING_BYTES, RowBudget
from stripesim.traces.columns import CHUNK_SCHEMA, COMMAND_SCHEMA, ORDER_COLUMN
from stripesim.traces.problems import FaultLog

SECTOR_BYTES = 512
"""Sector size of the block layer [B], independent of the device's own sector size."""

Event = tuple[int, str, int, str, bool, int, int]
"""line, action, time_ns, device, is_write, sector, sectors (for X: the first sector of the remainder)."""

_Start = tuple[str, bool, int]
"""Start of a request or command: device, True for a write, first sector."""


@dataclass(slots=True)
class _Request:
    line: int
    issue_ns: int
    device: str
    is_write: bool
    sector: int
    sectors: int
    sectors_left: int
    dispatch_ns: int | None = None
    complete_ns: int | None = None


@dataclass(slots=True)
class _Command:
    dispatch_ns: int
    device: str
    is_write: bool
    sector: int
    sectors: int
    sectors_left: int
    parts: list[tuple[_Request, int, int]] = field(default_factory=list)
    complete_ns: int | None = None


class Matcher:
    """State of the requests in flight, which consumes events in file order.

    A dispatch D covers sectors [s, s + n). It takes the queued requests (Q) in that range on the same device
    and in the same direction, first come first served: several after a merge (M, F), a part of one after a
    split. The remainder of a split request stays queued at its own sector, so the request completes with its
    last part. A completion C ends the oldest dispatch at its sector, preferring one of equal length. A
    shorter C ends a part. A C without any dispatch ends the queued request itself, because stacked devices
    (dm, md) never dispatch. A requeue R returns requests to the queue. Overlapping requests in flight on one
    device and in one direction differ only by start, length and age, because the format has no request ids.
    """

    def __init__(self, log: FaultLog) -> None:
        self._log = log
        self._budget = RowBudget(log.source, PENDING_BYTES, "requests in flight")
        # Requests and commands that `take` has not returned yet.
        self._in_flight = 0
        self._queued: dict[_Start, list[tuple[_Request, int]]] = {}
        self._flying: dict[_Start, list[_Command]] = {}
        self._split_off: set[tuple[_Start, int]] = set()
        self._requests: list[_Request] = []
        self._commands: list[_Command] = []

    def feed(self, events: Iterable[Event]) -> None:
        """Process events in file order: actions Q, D, C, R and X with at least one sector each."""
        for line, action, time_ns, device, is_write, sector, sectors in events:
            start = (device, is_write, sector)
            if action == "Q":
                self._queue(line, time_ns, start, sectors)
            elif action == "D":
                self._dispatch(time_ns, start, sectors)
            elif action == "C":
                self._complete(time_ns, start, sectors)
            elif action == "R":
                self._requeue(start, sectors)
            else:
                self._split(start, sectors)

    def take(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the requests and commands that have finished since the last call."""
        self._budget.check(self._in_flight + len(self._split_off))
        requests = self._requests
        commands = self._commands
        self._in_flight -= len(requests) + len(commands)
        self._requests = []
        self._commands = []
        return _request_rows(requests), pl.DataFrame(
            _common(commands), schema=COMMAND_SCHEMA
        )

    def finish(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the requests and commands in flight at the end of the file, with null for unseen times."""
        commands = [command for flying in self._flying.values() for command in flying]
        held = {
            id(request): request
            for queue in self._queued.values()
            for request, _ in queue
        }
        held.update(
            {id(part[0]): part[0] for command in commands for part in command.parts}
        )
        for request in held.values():
            request.complete_ns = None
        for command in commands:
            command.complete_ns = None
        self._log.tally("requests never completed", len(held))
        self._requests.extend(sorted(held.values(), key=lambda request: request.line))
        self._commands.extend(commands)
        self._queued = {}
        self._flying = {}
        return self.take()

    def _queue(self, line: int, time_ns: int, start: _Start, sectors: int) -> None:
        end = start[2] + sectors
        if (start, end) in self._split_off:
            # Older kernels queue the remainder of a split request again. It is the same request.
            self._split_off.discard((start, end))
            self._log.tally("split rests queued again")
            return
        request = _Request(line, time_ns, *start, sectors, sectors)
        self._in_flight += 1
        self._queued.setdefault(start, []).append((request, sectors))

    def _dispatch(self, time_ns: int, start: _Start, sectors: int) -> None:
        device, is_write, sector = start
        command = _Command(time_ns, device, is_write, sector, sectors, sectors)
        self._in_flight += 1
        end = sector + sectors
        at: int | None = sector
        while at is not None and at < end:
            part = self._take_queued((device, is_write, at), end - at)
            if part is None:
                at = self._next_queued(device, is_write, at, end)
                continue
            request, taken = part
            if request.dispatch_ns is None:
                request.dispatch_ns = time_ns
            command.parts.append((request, at, taken))
            at += taken
        if not command.parts:
            self._log.tally("dispatches without a request")
        self._flying.setdefault(start, []).append(command)

    def _take_queued(self, start: _Start, room: int) -> tuple[_Request, int] | None:
        """Take up to `room` sectors of the requests queued at `start`."""
        queue = self._queued.get(start)
        if not queue:
            return None
        if len(queue) == 1 and queue[0][1] <= room:
            del self._queued[start]
            return queue[0]
        # The longest request that fits, else part of the oldest. Merges take whole requests.
        fitting = [index for index, (_, sectors) in enumerate(queue) if sectors <= room]
        if fitting:
            index = max(fitting, key=lambda candidate: queue[candidate][1])
        else:
            index = 0
        request, sectors = queue.pop(index)
        if not queue:
            del self._queued[start]
        taken = min(sectors, room)
        if taken < sectors:
            rest = (start[0], start[1], start[2] + taken)
            self._queued.setdefault(rest, []).insert(0, (request, sectors - taken))
        return request, taken

    def _next_queued(
        self, device: str, is_write: bool, at: int, end: int
    ) -> int | None:
        """Return the next sector in (at, end) with a request. Traces that start during traffic have gaps."""
        if len(self._queued) < end - at:
            starts = [
                start
                for name, direction, start in self._queued
                if name == device and direction == is_write and at < start < end
            ]
            return min(starts, default=None)
        return next(
            (s for s in range(at + 1, end) if (device, is_write, s) in self._queued),
            None,
        )

    def _complete(self, time_ns: int, start: _Start, sectors: int) -> None:
        flying = self._flying.get(start)
        if not flying:
            self._complete_undispatched(time_ns, start, sectors)
            return
        # Usually only one command starts here.
        if len(flying) == 1:
            index = 0
        else:
            index = _best([command.sectors_left for command in flying], sectors)
        command = flying[index]
        if time_ns < command.dispatch_ns:
            # The decrease in time has already been reported.
            self._log.tally("completions put off to their dispatch")
            time_ns = command.dispatch_ns
        flying.pop(index)
        if not flying:
            del self._flying[start]
        ended = min(sectors, command.sectors_left)
        command.sectors_left -= ended
        if command.sectors_left:
            rest = (start[0], start[1], start[2] + ended)
            self._flying.setdefault(rest, []).append(command)
            return
        command.complete_ns = time_ns
        self._commands.append(command)
        for request, _, taken in command.parts:
            request.sectors_left -= taken
            if not request.sectors_left:
                request.complete_ns = time_ns
                self._requests.append(request)

    def _complete_undispatched(self, time_ns: int, start: _Start, sectors: int) -> None:
        queue = self._queued.get(start, [])
        for index, (request, held) in enumerate(queue):
            if held == request.sectors == sectors:
                queue.pop(index)
                if not queue:
                    del self._queued[start]
                if time_ns < request.issue_ns:
                    self._log.tally("completions put off to their issue")
                    time_ns = request.issue_ns
                request.complete_ns = time_ns
                self._requests.append(request)
                return
        self._log.tally("completions without a dispatch")

    def _requeue(self, start: _Start, sectors: int) -> None:
        flying = self._flying.get(start)
        if not flying:
            self._log.tally("requeues without a dispatch")
            return
        command = flying.pop(_best([one.sectors_left for one in flying], sectors))
        self._in_flight -= 1
        if not flying:
            del self._flying[start]
        for request, at, taken in command.parts:
            if request.sectors_left == request.sectors:
                request.dispatch_ns = None
            self._queued.setdefault((start[0], start[1], at), []).insert(
                0, (request, taken)
            )

    def _split(self, start: _Start, new_sector: int) -> None:
        queue = self._queued.get(start, [])
        for index, (request, sectors) in enumerate(queue):
            first = new_sector - start[2]
            if 0 < first < sectors:
                queue[index] = (request, first)
                rest = (start[0], start[1], new_sector)
                self._queued.setdefault(rest, []).append((request, sectors - first))
                self._split_off.add((rest, new_sector + sectors - first))
                return
        self._log.tally("splits without a request")


def _best(lengths: list[int], wanted: int) -> int:
    """Return the index of the first length equal to `wanted`, else of the first longer one, else 0."""
    if wanted in lengths:
        return lengths.index(wanted)
    return next((index for index, length in enumerate(lengths) if length > wanted), 0)


def _request_rows(requests: list[_Request]) -> pl.DataFrame:
    columns = {
        ORDER_COLUMN: [r.line for r in requests],
        "issue_ns": [r.issue_ns for r in requests],
    }
    return pl.DataFrame(columns | _common(requests), schema=CHUNK_SCHEMA)


def _common(rows: Sequence[_Request | _Command]) -> dict[str, list[Any]]:
    return {
        "dispatch_ns": [row.dispatch_ns for row in rows],
        "complete_ns": [row.complete_ns for row in rows],
        "device": [row.device for row in rows],
        "offset_bytes": [row.sector * SECTOR_BYTES for row in rows],
        "length_bytes": [row.sectors * SECTOR_BYTES for row in rows],
        "is_write": [row.is_write for row in rows],
    }

"""The inner loop of the compiled engine: the machine of sim/ENGINE.md over flat arrays.

Read beside ``engine_simpy.py``; functions of one name do the same thing:

=====================  ===============================================
here                   there
=====================  ===============================================
``run_machine``        ``SimpyEngine.execute``, ``_loop``
``_end_of_service``    the ``USE`` part of ``_loop``, ``_end_batch``
``_complete``          ``_complete`` (one step of it)
``_begin``             ``_complete`` (a step that became ready)
``_pool``              ``_pool``
``_account``           ``_account``
``_issue``             ``_Stream.issue``
``_spawn``             ``_spawn``
=====================  ===============================================

The words that few templates use stand in ``compiled_words.py``. Cells, records and the arrays
of `World` are explained in ``compiled_world.py``.

This module imports numba; ``engine_compiled`` imports it only when something is to be run.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from stripesim.sim import compiled_words, compiled_world, conditions, draws, graph, machine
from stripesim.sim.compiled_words import OPTIONS, at
from stripesim.sim.compiled_words import act as _act
from stripesim.sim.compiled_words import append as _append
from stripesim.sim.compiled_words import holds as _holds
from stripesim.sim.compiled_words import inlined as _inlined
from stripesim.sim.compiled_words import lacks_room as _lacks_room
from stripesim.sim.compiled_words import skip as _skip
from stripesim.sim.compiled_words import step_done as _step_done
from stripesim.sim.compiled_world import (
    BRANCHES,
    DONE,
    FOLLOWED,
    GO_ON,
    LIVE,
    MERGE,
    MORE_BINS,
    MORE_LOG,
    MORE_REQUESTS,
    MORE_SLOTS,
    NAMES_KEYS,
    NEVER_NS,
    NOBODY,
    ONCE,
    ROOT,
    SPAWNS,
    TAKEN,
    World,
)
from stripesim.sim.draws import FACTOR_BITS, FACTOR_HALF
from stripesim.sim.graph import ACQUIRE, DELAY, NONE, RELEASE, STEP_BITS, USE
from stripesim.sim.machine import BATCH, SPAWNED_FROM

# ------------------------------------------------------------------------------ calendar


@_inlined
def _precedes(world: World, cell: int, other: int) -> bool:
    """Tell whether a cell comes before another of the same time: by request, then step."""
    bits = world.clock[0].cell_bits
    number, other_number = world.requests[at(cell >> bits)].number, world.requests[at(other >> bits)].number
    return bool(number < other_number or (number == other_number and cell < other))


@_inlined
def _sift_down(world: World, time_ns: int, cell: int) -> None:
    """Put an entry at the root and let it sink to its place."""
    times_ns, cells = world.times_ns, world.cells
    end = world.clock[0].calendar_end
    place = ROOT
    while True:
        child = 4 * place - 8
        if child >= end:
            break
        # Places of the last group that are not taken hold NEVER_NS.
        t0, t1, t2, t3 = (
            times_ns[at(child)],
            times_ns[at(child + 1)],
            times_ns[at(child + 2)],
            times_ns[at(child + 3)],
        )
        left = t1 if t1 < t0 else t0
        right = t3 if t3 < t2 else t2
        least = right if right < left else left
        if least > time_ns:
            break
        at_0, at_1, at_2, at_3 = t0 == least, t1 == least, t2 == least, t3 == least
        if int(at_0) + int(at_1) + int(at_2) + int(at_3) == 1:
            best = child + at_1 + 2 * at_2 + 3 * at_3
        else:
            best = child + (0 if at_0 else 1 if at_1 else 2)
            for rival in range(best + 1, min(child + 4, end)):
                if times_ns[at(rival)] == least and _precedes(world, cells[at(rival)], cells[at(best)]):
                    best = rival
        if least == time_ns and _precedes(world, cell, cells[at(best)]):
            break
        times_ns[at(place)] = least
        cells[at(place)] = cells[at(best)]
        place = best
    times_ns[at(place)] = time_ns
    cells[at(place)] = cell


@_inlined
def _push(world: World, time_ns: int, cell: int) -> None:
    """Put a cell into the calendar."""
    clock = world.clock[0]
    if clock.calendar_hole:
        # The entry just taken left its place: no need to close it first.
        clock.calendar_hole = 0
        _sift_down(world, time_ns, cell)
        return
    times_ns, cells = world.times_ns, world.cells
    place = clock.calendar_end
    clock.calendar_end = place + 1
    if place & 3 == 0:
        times_ns[at(place + 1)] = times_ns[at(place + 2)] = times_ns[at(place + 3)] = NEVER_NS
    while place > ROOT:
        parent = (place + 8) >> 2
        above_ns = times_ns[at(parent)]
        if above_ns < time_ns or (above_ns == time_ns and not _precedes(world, cell, cells[at(parent)])):
            break
        times_ns[at(place)] = above_ns
        cells[at(place)] = cells[at(parent)]
        place = parent
    times_ns[at(place)] = time_ns
    cells[at(place)] = cell


@_inlined
def _close_hole(world: World) -> None:
    """Fill the place of the entry taken last with the calendar's last entry."""
    clock = world.clock[0]
    clock.calendar_hole = 0
    end = clock.calendar_end - 1
    clock.calendar_end = end
    time_ns, cell = world.times_ns[at(end)], world.cells[at(end)]
    world.times_ns[at(end)] = NEVER_NS
    if end > ROOT:
        _sift_down(world, time_ns, cell)


# ------------------------------------------------------------------------------ service


@_inlined
def _wait(world: World, resource: Any, cell: int) -> None:
    """Join a queue."""
    resource.waited_ns -= world.clock[0].now_ns
    world.links[at(cell)] = NOBODY
    if resource.waiting:
        world.links[at(resource.last)] = cell
    else:
        resource.first = cell
    resource.last = cell
    resource.waiting += 1


@_inlined
def _first(world: World, resource: Any) -> int:
    """Leave a queue at its head."""
    resource.waited_ns += world.clock[0].now_ns
    cell = resource.first
    resource.first = world.links[at(cell)]
    resource.waiting -= 1
    return int(cell)


@_inlined
def _demand_ns(world: World, cell: int) -> int:
    """Return a step's service time: its demand, times its random factor if it has one."""
    clock = world.clock[0]
    request = world.requests[at(cell >> clock.cell_bits)]
    number_of_step = cell & ((1 << clock.cell_bits) - 1)
    step = world.steps[at(request.first_step + number_of_step)]
    if step.spread == 0:
        return int(step.demand_ns)
    # draws.splitmix64, in 64-bit words.
    key = (request.number << STEP_BITS) | number_of_step
    word = (clock.seed_state ^ np.uint64(key)) + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    word = word ^ (word >> np.uint64(31))
    factor = world.factors[step.spread, np.int64(word >> np.uint64(56))]
    return int((step.demand_ns * factor + FACTOR_HALF) >> FACTOR_BITS)


@_inlined
def _serve(world: World, resource: Any, cell: int) -> int:
    """Begin a service, the server is already taken; return when it ends."""
    demand_ns = _demand_ns(world, cell)
    resource.busy_ns += demand_ns
    return int(world.clock[0].now_ns + demand_ns)


@_inlined
def _serve_batch(world: World, resource: Any) -> int:
    """Begin one service for all that wait, the server is already taken; return when it ends."""
    now_ns = world.clock[0].now_ns
    resource.waited_ns += now_ns * resource.waiting
    resource.waiting = 0
    demand_ns = 0
    cell = resource.first
    while cell != NOBODY:
        demand_ns = max(demand_ns, _demand_ns(world, cell))
        cell = world.links[at(cell)]
    resource.busy_ns += demand_ns
    return int(now_ns + demand_ns)


@_inlined
def _end_of_service(world: World, cell: int) -> None:
    """Hand over or free the server of a calendar entry that is a use."""
    clock = world.clock[0]
    request = world.requests[at(cell >> clock.cell_bits)]
    step = world.steps[at(request.first_step + (cell & ((1 << clock.cell_bits) - 1)))]
    if step.word != USE:
        return
    clock.uses += 1
    if step.special & ONCE:
        _account_service(world, request, cell)
    resource = world.resources[at(world.bindings[at(request.row * clock.roles + step.role)])]
    if resource.waiting:
        if resource.discipline == BATCH:
            waiting = resource.first
            end_ns = _serve_batch(world, resource)
        else:
            waiting = _first(world, resource)
            end_ns = _serve(world, resource, waiting)
        _push(world, end_ns, waiting)
    else:
        resource.free += 1
    if resource.discipline == BATCH:
        # The other members hang on their leader, which the caller completes first.
        member = world.links[at(cell)]
        while member != NOBODY:
            clock.uses += 1
            _append(world, member)
            member = world.links[at(member)]


# ----------------------------------------------------------------------------- requests


@_inlined
def _lacks(world: World, stream: Any, wanted: int) -> int:
    """Tell what is missing to issue a stream's next request, `GO_ON` if nothing.

    An open stream wants two planned requests: one to issue and one whose arrival is next.
    """
    clock = world.clock[0]
    if stream.at + wanted > stream.planned and not stream.ended:
        return MORE_REQUESTS
    if stream.at < stream.planned:
        if clock.slots_free == 0:
            return MORE_SLOTS
        if clock.logged == len(world.log):
            return MORE_LOG
    return GO_ON


@_inlined
def _issue(world: World, index: int) -> None:
    """Issue the next planned request of a stream."""
    stream = world.streams[at(index)]
    planned = world.plan[index, stream.at]
    stream.at += 1
    group, template, row = planned[0], planned[2], planned[3]
    slot = _start(world, index, stream.issued * len(world.streams) + index, template, row, group)
    if len(world.keys):
        world.keys[at(slot)] = world.plan_keys[index, stream.at - 1]
    stream.issued += 1


@_inlined
def _start(world: World, index: int, number: int, template: int, row: int, group: int) -> int:
    """Start a request, client's or spawned, at its step 0; return its slot."""
    clock = world.clock[0]
    clock.slots_free -= 1
    slot = world.free_slots[at(clock.slots_free)]
    request = world.requests[at(slot)]
    request.number = number
    request.entry = clock.logged
    request.row = row
    request.stream = index
    first_step, steps = world.templates[at(template)].first_step, world.templates[at(template)].steps
    request.first_step = first_step
    request.steps_left = steps
    entry = world.log[at(clock.logged)]
    clock.logged += 1
    entry.issued_ns = clock.now_ns
    entry.completed_ns = -1
    entry.template = template
    entry.binding = row
    entry.group = group
    entry.stream = index
    cell = slot << clock.cell_bits
    for step in range(steps):
        world.pending[at(cell + step)] = world.predecessors[at(first_step + step)]
    _append(world, cell)
    return int(slot)


@_inlined
def _spawn(world: World, request: Any, slot: int, special: Any, bound: int) -> None:
    """Start a detached graph if the test holds."""
    if not _holds(world, slot, special, bound):
        return
    streams = len(world.streams)
    of = request.stream if request.stream < streams else request.stream - streams
    number = SPAWNED_FROM + world.spawned[at(of)] * streams + of
    world.spawned[at(of)] += 1
    group = world.log[at(request.entry)].group
    child = _start(world, of + streams, number, special.spawns, request.row, group)
    if len(world.keys):
        for which in range(2):
            world.keys[at(child)].first[which] = world.keys[at(slot)].first[which]
            world.keys[at(child)].stop[which] = world.keys[at(slot)].stop[which]
            world.keys[at(child)].held[which] = 0


@_inlined
def _pool(world: World, word: int, pool: Any, cell: int) -> None:
    """Take a unit of a pool or wait for it; or give one back."""
    now_ns = world.clock[0].now_ns
    if word == ACQUIRE:
        if pool.free == 0:
            _wait(world, pool, cell)
            return
        pool.free -= 1
        pool.held_ns -= now_ns
    elif pool.waiting:
        # The unit changes hands; for the pool it is held without a gap.
        _append(world, _first(world, pool))
    else:
        pool.free += 1
        pool.held_ns += now_ns
    _append(world, cell)


@_inlined
def _begin(world: World, request: Any, step: Any, cell: int) -> int:
    """Start a step whose predecessors have all completed; return when it ends.

    `NEVER_NS` if that is not known yet (it waits) or if it has completed at once.
    """
    clock = world.clock[0]
    word = step.word
    bound = NOBODY
    if step.role >= 0:
        bound = world.bindings[at(request.row * clock.roles + step.role)]
    # A step without a role that takes one is a `NONE` here.
    if word == NONE or (bound < 0 and step.role >= 0):
        _append(world, cell)
    elif word == DELAY:
        return int(clock.now_ns + step.demand_ns)
    elif word == USE:
        resource = world.resources[at(bound)]
        if resource.free == 0:
            _wait(world, resource, cell)
        else:
            resource.free -= 1
            if resource.discipline == BATCH:
                # A batch of one: nobody hangs on its leader.
                world.links[at(cell)] = NOBODY
            return _serve(world, resource, cell)
    elif word <= RELEASE:
        _pool(world, word, world.resources[at(bound)], cell)
    else:
        _act(world, word, bound, request, cell)
    return NEVER_NS


@_inlined
def _account(world: World, request: Any, step: Any, number_of_step: int) -> None:
    """Add what a step accounts to the bin of the current time."""
    clock = world.clock[0]
    if step.role >= 0 and world.bindings[at(request.row * clock.roles + step.role)] < 0:
        return
    clock.bins_used = max(clock.bins_used, clock.bin + 1)
    if step.accounts:
        amounts = world.amounts[request.first_step + number_of_step]
        for counter in range(len(amounts)):
            world.bins[clock.bin, counter] += amounts[counter]


@_inlined
def _account_service(world: World, request: Any, cell: int) -> None:
    """Account what a step accounts once for a service; the calendar holds the one that does."""
    clock = world.clock[0]
    amounts = world.once[request.first_step + (cell & ((1 << clock.cell_bits) - 1))]
    if clock.bin_ns:
        clock.bins_used = max(clock.bins_used, clock.bin + 1)
    for counter in range(len(amounts)):
        world.taken[request.stream, counter] += amounts[counter]
        if clock.bin_ns:
            world.bins[clock.bin, counter] += amounts[counter]


@_inlined
def _account_taken(world: World, request: Any, step: Any, number_of_step: int) -> None:
    """Add up what a completed step of a template with branches accounts."""
    if step.role >= 0 and world.bindings[at(request.row * world.clock[0].roles + step.role)] < 0:
        return
    amounts = world.amounts[request.first_step + number_of_step]
    for counter in range(len(amounts)):
        world.taken[request.stream, counter] += amounts[counter]
    if step.word == USE:
        world.taken[request.stream, len(amounts)] += 1


@_inlined
def _note_end(world: World, request: Any, number_of_step: int) -> None:
    """Note the end of a step of a request that is followed."""
    number, streams = request.number, len(world.streams)
    if number % streams or number // streams >= len(world.followed):
        return
    row = world.followed[at(number // streams)]
    if row != NOBODY:
        world.ends_ns[row, number_of_step] = world.clock[0].now_ns


@_inlined
def _lacks_for(world: World, request: Any, step: Any, cell: int) -> int:
    """Tell what is missing to complete a step with more to it than the plain words, `GO_ON` if nothing."""
    clock = world.clock[0]
    if step.special & NAMES_KEYS:
        slot = cell >> clock.cell_bits
        special = world.specials[at(request.first_step + (cell & ((1 << clock.cell_bits) - 1)))]
        missing = _lacks_room(world, slot, special)
        if missing != GO_ON:
            return missing
    if step.special & SPAWNS:
        # Two: as a reply it may let its stream issue one besides.
        if clock.slots_free < 2:
            return MORE_SLOTS
        if clock.logged + 2 > len(world.log):
            return MORE_LOG
    return GO_ON


@_inlined
def _bound_to(world: World, request: Any, step: Any) -> int:
    """Return the resource that a step names, `NOBODY` if none."""
    if step.role < 0:
        return NOBODY
    return int(world.bindings[at(request.row * world.clock[0].roles + step.role)])


@_inlined
def _skip_all(world: World, request: Any, first_cell: int, start: int, stop: int) -> None:
    """Tell successors that a predecessor of theirs does not run."""
    for place in range(start, stop):
        number_after = world.successors[at(place)]
        waits_for = world.steps[at(request.first_step + number_after)].waits_for
        _skip(world, waits_for, first_cell + number_after)


@_inlined
def _pass_on(world: World, cell: int) -> None:
    """Take a skipped step from the ready list: it only tells those behind it."""
    clock = world.clock[0]
    slot = cell >> clock.cell_bits
    request = world.requests[at(slot)]
    step = world.steps[at(request.first_step + (cell & ((1 << clock.cell_bits) - 1)))]
    _skip_all(world, request, slot << clock.cell_bits, step.successors_from, step.successors_to)
    _step_done(world, slot)


@_inlined
def _complete(world: World, cell: int) -> int:
    """Complete a step and start what it makes ready.

    Returns what is missing, with nothing changed, if its stream cannot issue yet.
    """
    clock = world.clock[0]
    slot = cell >> clock.cell_bits
    number_of_step = cell & ((1 << clock.cell_bits) - 1)
    request = world.requests[at(slot)]
    step = world.steps[at(request.first_step + number_of_step)]
    index = 0
    if step.is_reply:
        index = int(request.stream)
        if index < len(world.streams) and world.streams[at(index)].depth:
            missing = _lacks(world, world.streams[at(index)], 1)
            if missing != GO_ON:
                clock.wanting = index
                return missing
    if step.special:
        missing = _lacks_for(world, request, step, cell)
        if missing != GO_ON:
            return missing
        if step.special & TAKEN:
            _account_taken(world, request, step, number_of_step)
        if step.special & FOLLOWED:
            _note_end(world, request, number_of_step)
    if clock.bin_ns:
        _account(world, request, step, number_of_step)
    if step.is_reply:
        world.log[at(request.entry)].completed_ns = clock.now_ns
        if index < len(world.streams):
            stream = world.streams[at(index)]
            if stream.depth and stream.at < stream.planned:
                _issue(world, index)
    first_cell = slot << clock.cell_bits
    place_from, place_to = step.successors_from, step.successors_to
    if step.special & (BRANCHES | SPAWNS):
        special, bound = (
            world.specials[at(request.first_step + number_of_step)],
            _bound_to(world, request, step),
        )
        if step.special & SPAWNS:
            _spawn(world, request, slot, special, bound)
        else:
            split = place_from + special.yes_count
            if _holds(world, slot, special, bound):
                _skip_all(world, request, first_cell, split, place_to)
                place_to = split
            else:
                _skip_all(world, request, first_cell, place_from, split)
                place_from = split
    for place in range(place_from, place_to):
        number_after = world.successors[at(place)]
        cell_after = first_cell + number_after
        after = world.steps[at(request.first_step + number_after)]
        if after.waits_for:
            pending = world.pending[at(cell_after)] - 1
            if after.waits_for == MERGE:
                pending = (pending | LIVE) - LIVE
                world.pending[at(cell_after)] = pending + LIVE
            else:
                world.pending[at(cell_after)] = pending
            if pending:
                continue
        end_ns = _begin(world, request, after, cell_after)
        if end_ns != NEVER_NS:
            _push(world, end_ns, cell_after)
    _step_done(world, slot)
    return GO_ON


# -------------------------------------------------------------------------- what is no step


@_inlined
def _next_signal(world: World) -> None:
    """Find the time of the next arrival; arrivals are few and not in the calendar."""
    clock = world.clock[0]
    least_ns = NEVER_NS
    for index in range(len(world.streams)):
        least_ns = min(least_ns, world.streams[at(index)].arrival_ns)
    clock.signal_ns = least_ns


@_inlined
def _next_arrival(world: World, index: int) -> None:
    """Note when a stream's next request arrives."""
    stream = world.streams[at(index)]
    stream.arrival_ns = world.plan[index, stream.at, 1] if stream.at < stream.planned else NEVER_NS


@_inlined
def _arriving(world: World) -> int:
    """Return the stream whose arrival is due: the one of the smallest request number."""
    clock = world.clock[0]
    due = NOBODY
    for index in range(len(world.streams)):
        if world.streams[at(index)].arrival_ns == clock.signal_ns and (
            due == NOBODY or world.streams[at(index)].issued < world.streams[at(due)].issued
        ):
            due = index
    return due


@_inlined
def _signal(world: World) -> int:
    """Make the arrival that is due; return what is missing to do so."""
    clock = world.clock[0]
    index = _arriving(world)
    missing = _lacks(world, world.streams[at(index)], 2)
    if missing != GO_ON:
        clock.wanting = index
        return missing
    _issue(world, index)
    _next_arrival(world, index)
    _next_signal(world)
    return GO_ON


@_inlined
def _fill(world: World) -> int:
    """Issue what closed loops may have outstanding and note the first arrivals of open streams."""
    clock = world.clock[0]
    while clock.streams_filled < len(world.streams):
        index = clock.streams_filled
        stream = world.streams[at(index)]
        if stream.depth == 0 or stream.issued < stream.depth:
            missing = _lacks(world, stream, 1)
            if missing != GO_ON:
                clock.wanting = index
                return missing
        if stream.issued < stream.depth and stream.at < stream.planned:
            _issue(world, index)
            continue
        if stream.depth == 0:
            _next_arrival(world, index)
        clock.streams_filled += 1
        _next_signal(world)
    return GO_ON


@_inlined
def _run_machine(world: World) -> int:
    """Run until the end or until something is missing; call again to go on where it stopped.

    Returns
    -------
    int
        `DONE`, or what Python has to provide (`MORE_REQUESTS` for stream ``clock.wanting``,
        `MORE_SLOTS`, `MORE_LOG`, `MORE_BINS`, `MORE_PINS`, `MORE_NODES`) before it calls again.
    """
    clock = world.clock[0]
    missing = _fill(world)
    if missing != GO_ON:
        return missing
    while True:
        if clock.ready_from != clock.ready_to:
            cell = int(world.ready[at(clock.ready_from & (len(world.ready) - 1))])
            clock.ready_from += 1
            if cell < 0:
                _pass_on(world, ~cell)
                continue
        else:
            clock.ready_from = clock.ready_to = 0
            if clock.calendar_hole:
                _close_hole(world)
            step_ns = world.times_ns[at(ROOT)] if clock.calendar_end > ROOT else NEVER_NS
            time_ns = min(step_ns, clock.signal_ns)
            if time_ns == NEVER_NS:
                return DONE
            if time_ns > clock.until_ns:
                clock.now_ns = clock.until_ns
                return DONE
            if clock.bin_ns:
                if time_ns >= clock.bins_end_ns:
                    clock.wanting = time_ns // clock.bin_ns
                    return MORE_BINS
                clock.bin = time_ns // clock.bin_ns
            clock.now_ns = time_ns
            if clock.signal_ns <= step_ns:
                missing = _signal(world)
                if missing != GO_ON:
                    return missing
                continue
            clock.calendar_hole = 1
            cell = int(world.cells[at(ROOT)])
            _end_of_service(world, cell)
        # The ready list's first step, or the calendar's, before which the list was empty.
        missing = _complete(world, cell)
        if missing != GO_ON:
            # Back to the head of the list, to be completed when what is missing is there.
            clock.ready_from -= 1
            world.ready[at(clock.ready_from & (len(world.ready) - 1))] = cell
            return missing


def _sources() -> int:
    """Return a number that changes with what is compiled into the kernel from other files."""
    told = sha256(Path(str(compiled_words.__file__)).read_bytes())
    for module in (compiled_world, conditions, draws, graph, machine):
        constants = sorted((name, value) for name, value in vars(module).items() if isinstance(value, int))
        told.update(repr(constants).encode())
    return int.from_bytes(told.digest()[:7], "little") | 1


def _entry(sources: int) -> Callable[[World], int]:
    """Make the kernel's entry, which holds on to a number of its sources.

    Numba's cache notices changes of this file and of what an entry encloses, but neither of
    the other files nor of constants imported from them. The layout of records is part of the
    signature.
    """

    def run_machine(world: World) -> int:
        return _run_machine(world) if sources else DONE

    return run_machine


def _cached(function: Callable[[World], int]) -> Any:
    try:
        return njit(cache=True, **OPTIONS)(function)
    except RuntimeError:
        # Numba found no folder to write to: compile at each start.
        return njit(**OPTIONS)(function)


run_machine: Any = _cached(_entry(_sources()))

"""The words of the compiled engine that few templates use: gates, pins, tests.

Part of the inner loop, read beside ``simpy/opcodes.py``; `enter` is part of ``_gate`` there,
`change_pins` is ``pin``.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit

from stripesim.sim.engine.compiled import world as layout
from stripesim.sim.engine.compiled.world import NOBODY, World
from stripesim.sim.engine.conditions import ALONE, ALWAYS, IDLE
from stripesim.sim.engine.graph import ENTER, LEAVE, PIN, TURN, UNPIN
from stripesim.sim.engine.program import BY_CLIENT

# Every index goes through this: numba counts a signed index from the end where it is negative,
# and that test at each access costs a fifth of the speed.
at = np.uintp
# What comes out of an array of fewer bits, and a bare number, goes through this to another function: for each
# type of an argument numba compiles the function, and all that it calls, once more.
wide: Any = np.int64
_F = TypeVar("_F", bound=Callable[..., Any])

# No reference counts: all arrays outlive a call, and counting at each access to `World` costs
# two thirds of the speed. Division by zero need not be looked for: nothing divides by data.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
# Of what Python never calls: a way in from Python, which unpacks all of `World`, takes half of a compilation.
INNER: dict[str, Any] = {
    **OPTIONS,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


def inlined(function: _F) -> _F:
    """Compile a function into its callers."""
    return cast(_F, njit(forceinline=True, **INNER)(function))


def outlined(function: _F) -> _F:
    """Compile a function apart from its callers."""
    return cast(_F, njit(**INNER)(function))


@inlined
def append(world: World, cell: int) -> None:
    """Put a cell at the end of the ready list; ``~cell`` if its step is skipped."""
    clock = world.clock[0]
    world.ready[at(clock.ready_to & (len(world.ready) - 1))] = cell
    clock.ready_to += 1


@inlined
def bound_to(world: World, request: Any, role: int) -> int:
    """Return the resource that a request's role is bound to, `NOBODY` if to none."""
    roles = world.clock[0].roles
    bound = world.bindings[at(request.row * roles + role)]
    if bound == BY_CLIENT:
        if request.client_row < 0:
            return NOBODY
        bound = world.bindings[at(request.client_row * roles + role)]
    return int(bound)


@inlined
def step_done(world: World, slot: int) -> None:
    """Note that a request needs its slot for one thing less."""
    request = world.requests[at(slot)]
    request.steps_left -= 1
    if request.steps_left == 0:
        clock = world.clock[0]
        world.free_slots[at(clock.slots_free)] = slot
        clock.slots_free += 1


@inlined
def skip(world: World, waits_for: int, cell: int) -> None:
    """Tell a step that one of its predecessors does not run."""
    pending = world.pending[at(cell)]
    if waits_for == layout.MERGE:
        pending -= 1
        world.pending[at(cell)] = pending
        if pending == layout.LIVE:
            append(world, cell)
        elif pending == 0:
            append(world, ~cell)
    elif pending > 0:
        world.pending[at(cell)] = layout.SKIPPED
        append(world, ~cell)


@inlined
def pass_tickets(world: World, gate: Any) -> None:
    """Let tickets have their turn, the earliest first, up to the first that has not come to it."""
    clock = world.clock[0]
    while gate.first != NOBODY and not gate.stopped:
        ticket = wide(gate.first)
        state = world.pending[at(ticket)]
        if state == layout.TICKET_IN:
            break
        gate.first = world.links[at(ticket)]
        slot = ticket >> clock.cell_bits
        if state <= layout.TICKET_WAITS:
            append(world, (slot << clock.cell_bits) + layout.TICKET_WAITS - state)
            world.pending[at(ticket)] = layout.TICKET_PASSED
            gate.waiting -= 1
            gate.waited_ns += clock.now_ns
        step_done(world, slot)


@inlined
def _enter(world: World, gate: Any, request: Any, cell: int) -> None:
    """Take the next ticket. A ticket is the cell of its enter, whose slot stays taken as long."""
    world.links[at(cell)] = NOBODY
    world.pending[at(cell)] = layout.TICKET_IN
    if gate.first == NOBODY:
        gate.first = cell
    else:
        world.links[at(gate.last)] = cell
    gate.last = cell
    gate.free -= 1
    gate.spent_ns -= world.clock[0].now_ns
    request.steps_left += 1


@inlined
def _gate(
    world: World, word: int, gate: Any, request: Any, cell: int, ticket: int
) -> None:
    clock = world.clock[0]
    if word == ENTER:
        _enter(world, gate, request, cell)
        append(world, cell)
        return
    if word == TURN:
        number_of_step = cell & ((1 << clock.cell_bits) - 1)
        world.pending[at(ticket)] = layout.TICKET_WAITS - number_of_step
        gate.waiting += 1
        gate.waited_ns -= clock.now_ns
    else:
        if world.pending[at(ticket)] == layout.TICKET_IN:
            world.pending[at(ticket)] = layout.TICKET_LEFT
        gate.free += 1
        gate.spent_ns += clock.now_ns
    pass_tickets(world, gate)
    if word == LEAVE:
        world.pending[at(ticket)] = layout.TICKET_LEFT
        append(world, cell)


@inlined
def _scatter(key: int) -> int:
    return int((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32))


@inlined
def _pin_place(world: World, key: int) -> int:
    """Return the place of a key in the table of pins, or the free place where it would stand."""
    mask = len(world.pins) - 1
    place = _scatter(key) & mask
    while world.pins[at(place)].count != 0 and world.pins[at(place)].key != key:
        place = (place + 1) & mask
    return int(place)


@inlined
def _unpin_place(world: World, hole: int) -> None:
    """Free a place of the table of pins; move up those that stand behind it for want of it."""
    mask = len(world.pins) - 1
    place = hole
    while True:
        place = (place + 1) & mask
        if world.pins[at(place)].count == 0:
            break
        home = _scatter(world.pins[at(place)].key) & mask
        if ((place - home) & mask) >= ((place - hole) & mask):
            world.pins[at(hole)].key = world.pins[at(place)].key
            world.pins[at(hole)].count = world.pins[at(place)].count
            hole = place
    world.pins[at(hole)].count = 0


@inlined
def change_pins(world: World, keys: Any, which: int, change: int) -> None:
    """Pin or unpin the keys of a range."""
    clock = world.clock[0]
    keys.held[which] += change
    for key in range(keys.first[which], keys.stop[which]):
        place = _pin_place(world, key)
        count = world.pins[at(place)].count
        if count == 0:
            clock.pinned += 1
        if count + change == 0:
            clock.pinned -= 1
            _unpin_place(world, place)
        else:
            world.pins[at(place)].key = key
            world.pins[at(place)].count = count + change


@inlined
def _pinned(world: World, keys: Any, which: int) -> bool:
    for key in range(keys.first[which], keys.stop[which]):
        own = 0
        for other in range(2):
            if keys.first[other] <= key < keys.stop[other]:
                own += keys.held[other]
        if world.pins[at(_pin_place(world, key))].count <= own:
            return False
    return True


@inlined
def lacks_room(world: World, slot: int, special: Any) -> int:
    """Tell what is missing to do what may follow a step, `GO_ON` if nothing."""
    clock = world.clock[0]
    keys = world.keys[at(slot)]
    pins = 0
    for which in range(2):
        length = keys.stop[which] - keys.first[which]
        pins += special.pins[which] * length
    # Tables of no size at all are not enough to look something up either.
    if 2 * (clock.pinned + pins) >= len(world.pins):
        clock.wanting = clock.pinned + pins + 1
        return layout.MORE_PINS
    return layout.GO_ON


@inlined
def holds(world: World, slot: int, special: Any, bound: int) -> bool:
    """Evaluate the test of a step; `bound` is the resource that it asks, `NOBODY` if none."""
    test = special.test
    held = True
    if test == IDLE:
        held = bound < 0 or world.resources[at(bound)].free > 0
    elif test == ALONE:
        if bound >= 0:
            ticket = (slot << world.clock[0].cell_bits) + special.ticket
            mine = 0 if world.pending[at(ticket)] == layout.TICKET_LEFT else 1
            held = world.resources[at(bound)].free == 1 - mine
    elif test != ALWAYS:
        held = _pinned(world, world.keys[at(slot)], special.keys)
    return bool(held)


@inlined
def act(world: World, word: int, bound: int, request: Any, cell: int) -> None:
    """Do what a word beyond the plain ones does when its step becomes ready."""
    clock = world.clock[0]
    slot = cell >> clock.cell_bits
    special = world.specials[
        at(request.first_step + (cell & ((1 << clock.cell_bits) - 1)))
    ]
    if word in (ENTER, TURN, LEAVE):
        ticket = (slot << clock.cell_bits) + special.ticket
        _gate(world, word, world.resources[at(bound)], request, cell, ticket)
        return
    if word in (PIN, UNPIN):
        change_pins(world, world.keys[at(slot)], special.keys, 1 if word == PIN else -1)
    append(world, cell)

"""Compiler options of the inner loop, and rarely used words: gates, pins, tests.

Read with ``simpy/resources.py`` (`Gate`) and ``simpy/pins.py`` (`Pins`). `enter` is part of
`_gate` here, and `change_pins` does the work of `pin` and `unpin`.
"""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from stripesim.models import jit
from stripesim.sim.engine.compiled import world as layout
from stripesim.sim.engine.compiled.world import NOTHING, World
from stripesim.sim.engine.conditions import ALONE, ALWAYS, COMPLETED, IDLE
from stripesim.sim.engine.graph import ENTER, LEAVE, PIN, TURN, UNPIN
from stripesim.sim.engine.program import BY_CLIENT

# Type of every array index. Numba wraps a negative signed index around, and that test at each
# access costs a fifth of the speed.
at = np.uintp
# Type of values from narrower arrays, and of literals, when they are passed on. Numba compiles
# a function and all its callees once per combination of argument types.
wide: Any = np.int64
# Increment of SplitMix64, also a multiplier of hashes.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
P = ParamSpec("P")
R = TypeVar("R")

# No reference counts: all arrays outlive a call, and counting at each access to `World` costs
# two thirds of the speed. No test for division by zero: no divisor comes from data.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function into its callers."""
    return jit.inner(function, forceinline=True, **OPTIONS)


def outlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function separately from its callers."""
    return jit.inner(function, **OPTIONS)


@inlined
def append(world: World, cell: int) -> None:
    """Append a cell to the ready list, or ``~cell`` if its step is skipped."""
    clock = world.clock[0]
    world.ready[at(clock.ready_to & (len(world.ready) - 1))] = cell
    clock.ready_to += 1


@inlined
def request_of(world: World, cell: int) -> Any:
    """Return the request of a cell."""
    return world.requests[at(cell >> world.clock[0].cell_bits)]


@inlined
def number_of(world: World, cell: int) -> int:
    """Return the step number of a cell within its template."""
    return int(cell & ((1 << world.clock[0].cell_bits) - 1))


@inlined
def step_of(world: World, cell: int) -> Any:
    """Return the step of a cell."""
    first_step = request_of(world, cell).first_step
    return world.steps[at(first_step + number_of(world, cell))]


@inlined
def special_of(world: World, cell: int) -> Any:
    """Return the attributes of a cell's step beyond the plain words."""
    first_step = request_of(world, cell).first_step
    return world.specials[at(first_step + number_of(world, cell))]


@inlined
def mixed(word: np.uint64) -> np.uint64:
    """Return one output of SplitMix64, as `draws.splitmix64`."""
    word = word + GOLDEN
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@inlined
def bound_to(world: World, request: Any, role: int) -> int:
    """Return the resource bound to a request's role, or none."""
    roles = world.clock[0].roles
    bound = world.bindings[at(request.row * roles + role)]
    if bound == BY_CLIENT:
        if request.client_row < 0:
            return NOTHING
        bound = world.bindings[at(request.client_row * roles + role)]
    return int(bound)


@inlined
def step_done(world: World, slot: int) -> None:
    """Count one completed step of a request, and free its slot after the last."""
    request = world.requests[at(slot)]
    request.steps_left -= 1
    if request.steps_left == 0:
        clock = world.clock[0]
        world.free_slots[at(clock.slots_free)] = slot
        clock.slots_free += 1


@inlined
def skip(world: World, waits_for: int, cell: int) -> None:
    """Process a step that has a predecessor that does not run."""
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
    """Grant turns to the earliest tickets, up to one that does not wait for its turn yet."""
    clock = world.clock[0]
    while gate.first != NOTHING and not gate.stopped:
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
    """Take the next ticket. A ticket is the cell of its enter, and it keeps the slot occupied."""
    world.links[at(cell)] = NOTHING
    world.pending[at(cell)] = layout.TICKET_IN
    if gate.first == NOTHING:
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
        world.pending[at(ticket)] = layout.TICKET_WAITS - number_of(world, cell)
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
    return int((np.uint64(key) * GOLDEN) >> np.uint64(32))


@inlined
def _pin_position(world: World, key: int) -> int:
    """Return the position of a key in the table of pins, or the free position for it."""
    mask = len(world.pins) - 1
    position = _scatter(key) & mask
    while world.pins[at(position)].count != 0 and world.pins[at(position)].key != key:
        position = (position + 1) & mask
    return int(position)


@inlined
def _unpin_position(world: World, hole: int) -> None:
    """Free a position of the table of pins and move displaced keys back."""
    mask = len(world.pins) - 1
    position = hole
    while True:
        position = (position + 1) & mask
        if world.pins[at(position)].count == 0:
            break
        home = _scatter(world.pins[at(position)].key) & mask
        if ((position - home) & mask) >= ((position - hole) & mask):
            world.pins[at(hole)].key = world.pins[at(position)].key
            world.pins[at(hole)].count = world.pins[at(position)].count
            hole = position
    world.pins[at(hole)].count = 0


@inlined
def change_pins(world: World, keys: Any, which: int, change: int) -> None:
    """Pin or unpin the keys of a range."""
    clock = world.clock[0]
    keys.held[which] += change
    for key in range(keys.first[which], keys.stop[which]):
        position = _pin_position(world, key)
        count = world.pins[at(position)].count
        if count == 0:
            clock.pinned += 1
        if count + change == 0:
            clock.pinned -= 1
            _unpin_position(world, position)
        else:
            world.pins[at(position)].key = key
            world.pins[at(position)].count = count + change


@inlined
def _pinned(world: World, keys: Any, which: int) -> bool:
    for key in range(keys.first[which], keys.stop[which]):
        own = 0
        for other in range(2):
            if keys.first[other] <= key < keys.stop[other]:
                own += keys.held[other]
        if world.pins[at(_pin_position(world, key))].count <= own:
            return False
    return True


@inlined
def lacks_room(world: World, slot: int, special: Any) -> int:
    """Return `MORE_PINS` if the pins that may follow a step lack room, otherwise `GO_ON`."""
    clock = world.clock[0]
    keys = world.keys[at(slot)]
    pins = 0
    for which in range(2):
        length = keys.stop[which] - keys.first[which]
        pins += special.pins[which] * length
    # A table of size 0 does not allow a look-up.
    if 2 * (clock.pinned + pins) >= len(world.pins):
        clock.wanting = clock.pinned + pins + 1
        return layout.MORE_PINS
    return layout.GO_ON


@inlined
def holds(world: World, slot: int, special: Any, bound: int) -> bool:
    """Evaluate a step's test of a resource."""
    test = special.test
    held = True
    if test == IDLE:
        held = bound < 0 or world.resources[at(bound)].free > 0
    elif test == ALONE:
        if bound >= 0:
            ticket = (slot << world.clock[0].cell_bits) + special.ticket
            mine = 0 if world.pending[at(ticket)] == layout.TICKET_LEFT else 1
            held = world.resources[at(bound)].free == 1 - mine
    elif test == COMPLETED:
        tested = (slot << world.clock[0].cell_bits) + special.ticket
        held = world.pending[at(tested)] <= layout.COMPLETED
    elif test != ALWAYS:
        held = _pinned(world, world.keys[at(slot)], special.keys)
    return bool(held)


@inlined
def act(world: World, word: int, bound: int, request: Any, cell: int) -> None:
    """Begin a step with a word beyond the plain ones."""
    clock = world.clock[0]
    slot = cell >> clock.cell_bits
    special = special_of(world, cell)
    if word in (ENTER, TURN, LEAVE):
        ticket = (slot << clock.cell_bits) + special.ticket
        _gate(world, word, world.resources[at(bound)], request, cell, ticket)
        return
    if word in (PIN, UNPIN):
        change_pins(world, world.keys[at(slot)], special.keys, 1 if word == PIN else -1)
    append(world, cell)

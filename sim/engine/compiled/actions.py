"""Compiled effects of a director's actions, applied between two calls of the kernel.

Read with ``simpy/director.py``. There, each resource does the work of `cut_off` and
`void_services` for its own steps.
"""

from typing import Any

from stripesim.sim.engine.compiled import world as layout
from stripesim.sim.engine.compiled.calendar import push
from stripesim.sim.engine.compiled.cores import serve_by
from stripesim.sim.engine.compiled.kernel import cached
from stripesim.sim.engine.compiled.opcodes import (
    append,
    at,
    bound_to,
    change_pins,
    inlined,
    outlined,
    pass_tickets,
    request_of,
    step_of,
    wide,
)
from stripesim.sim.engine.compiled.queues import first, set_look
from stripesim.sim.engine.compiled.requests import start
from stripesim.sim.engine.compiled.servers import dispatch, hand_over
from stripesim.sim.engine.compiled.world import NEVER_NS, NOTHING, Array, World
from stripesim.sim.engine.graph import ACQUIRE, ENTER, RELEASE, USE
from stripesim.sim.engine.program import BATCH, FIFO, GATE, PENDING, POOL


@inlined
def _server(world: World, cell: int) -> int:
    """Return the server of a cell in the calendar, or none."""
    step = step_of(world, cell)
    if step.word != USE:
        return NOTHING
    return int(bound_to(world, request_of(world, cell), step.role))


@inlined
def _without(world: World, marked: Array, cell: int) -> int:
    """Remove the cells of marked slots from a chain of links, and return its first cell."""
    bits = world.clock[0].cell_bits
    head = last = NOTHING
    while cell != NOTHING:
        behind = world.links[at(cell)]
        if not marked[at(cell >> bits)]:
            if head == NOTHING:
                head = cell
            else:
                world.links[at(last)] = cell
            last = cell
        cell = behind
    if last != NOTHING:
        world.links[at(last)] = NOTHING
    return int(head)


@inlined
def _leave_services(world: World, marked: Array, entries: Array, lost: Array) -> int:
    """Rebuild the calendar without marked slots, and return the number of lost services."""
    clock = world.clock[0]
    clock.calendar_end = layout.ROOT
    count = 0
    for position in range(len(entries)):
        time_ns = entries[position].time_ns
        cell = int(entries[position].cell)
        server = _server(world, cell)
        if server != NOTHING and world.resources[at(server)].discipline == BATCH:
            # The first remaining member leads the batch.
            cell = _without(world, marked, cell)
        elif marked[at(cell >> clock.cell_bits)]:
            cell = NOTHING
        if cell != NOTHING:
            push(world, time_ns, cell)
        elif server != NOTHING:
            lost[count].end_ns = time_ns
            lost[count].resource = server
            count += 1
    return count


@inlined
def _leave_lines(world: World, marked: Array, resource: Any) -> None:
    """Remove marked slots from a queue shared by classes. Tags stay with the class."""
    clock = world.clock[0]
    share = world.shares[at(resource.share - 1)]
    for number in range(share.first_line, share.first_line + share.lines):
        line = world.lines[at(number)]
        if line.waiting == 0:
            continue
        resource.waiting -= line.waiting
        resource.waited_ns += line.waiting * clock.now_ns
        line.waiting = 0
        line.first = cell = _without(world, marked, line.first)
        while cell != NOTHING:
            line.last = cell
            line.waiting += 1
            cell = world.links[at(cell)]
        resource.waiting += line.waiting
        resource.waited_ns -= line.waiting * clock.now_ns


@inlined
def _leave_queue(world: World, marked: Array, resource: Any) -> None:
    """Remove marked slots from a resource's queue, or their tickets from a gate's list."""
    clock = world.clock[0]
    if resource.share > 0:
        _leave_lines(world, marked, resource)
        return
    cell = resource.first
    while cell != NOTHING:
        if marked[at(cell >> clock.cell_bits)]:
            state = world.pending[at(cell)]
            if resource.discipline != GATE or state <= layout.TICKET_WAITS:
                resource.waiting -= 1
                resource.waited_ns += clock.now_ns
        cell = world.links[at(cell)]
    resource.first = cell = _without(world, marked, resource.first)
    while cell != NOTHING:
        resource.last = cell
        cell = world.links[at(cell)]


@inlined
def _give_back(world: World, slot: int, touched: Array) -> None:
    """Return the units, tickets and pins of a request, and mark the resources to serve."""
    clock = world.clock[0]
    request = world.requests[at(slot)]
    cell = slot << clock.cell_bits
    for number in range(
        world.templates[at(world.log[at(request.entry)].template)].steps
    ):
        step = world.steps[at(request.first_step + number)]
        state = world.pending[at(cell + number)]
        if step.role < 0 or state >= 0 or state == layout.SKIPPED:
            continue
        bound = bound_to(world, request, step.role)
        change = 0
        if step.word == ENTER:
            change = 0 if state == layout.TICKET_LEFT else 1
        elif state in (layout.UNIT_MOVED, layout.UNIT_WOKEN, layout.UNIT_AWAKE):
            change = 1 if step.word == ACQUIRE else -1 if step.word == RELEASE else 0
        if change:
            world.resources[at(bound)].free += change
            world.resources[at(bound)].spent_ns += change * clock.now_ns
            touched[at(bound)] = 1
    if len(world.keys):
        # LLVM 22 unrolls a loop over both ranges wrongly: the result uses values before their definition.
        _drop_pins(world, slot, wide(0))
        _drop_pins(world, slot, wide(1))


@outlined
def _drop_pins(world: World, slot: int, which: int) -> None:
    """Return what a request has pinned of a key range."""
    pinned = world.keys[at(slot)].held[which]
    if pinned:
        change_pins(world, world.keys[at(slot)], which, -pinned)


@cached
def cut_off(
    world: World, marked: Array, touched: Array, entries: Array, lost: Array
) -> int:
    """Drop the requests of marked slots everywhere.

    Parameters
    ----------
    world
        The world.
    marked
        1 for each slot to drop, shape (slots,).
    touched
        Set to 1 for each resource whose queue has to be served, shape (resources,).
    entries
        Copy of the calendar's entries.
    lost
        Receives the services that only occupy their servers from now, shape (entries of the calendar,).

    Returns
    -------
    int
        Number of lost services.
    """
    clock = world.clock[0]
    count = _leave_services(world, marked, entries, lost)
    for number in range(len(world.resources)):
        resource = world.resources[at(number)]
        gate = resource.discipline == GATE and resource.first != NOTHING
        if gate or resource.waiting:
            waiting = resource.waiting
            _leave_queue(world, marked, resource)
            if resource.share > 0 and resource.waiting < waiting:
                # The time of the next look may have changed.
                touched[at(number)] = 1
    for slot in range(len(marked)):
        if marked[slot]:
            _give_back(world, slot, touched)
            world.free_slots[at(clock.slots_free)] = slot
            clock.slots_free += 1
    return count


@cached
def void_services(world: World, entries: Array) -> None:
    """Rebuild the calendar from a copy of its entries, without the services of stopped servers."""
    world.clock[0].calendar_end = layout.ROOT
    for position in range(len(entries)):
        cell = entries[position].cell
        server = _server(world, cell)
        if (
            server == NOTHING
            or not world.resources[at(server)].stopped & layout.STOPPED
        ):
            push(world, entries[position].time_ns, cell)
    for number in range(len(world.shares)):
        if world.resources[at(world.shares[at(number)].resource)].stopped:
            set_look(world, number, NEVER_NS)


@inlined
def _wake_one(world: World, resource: Any) -> None:
    """Serve the queue of a resource that was started or received something back."""
    clock = world.clock[0]
    if resource.share > 0:
        # Units returned by a director are awake.
        dispatch(
            world, world.shares[at(resource.share - 1)].resource, resource.capacity
        )
    elif resource.discipline in (FIFO, BATCH):
        while resource.waiting and resource.free:
            if resource.partner:
                serve_by(world, world.resources[at(resource.partner - 1)])
                break
            resource.free -= 1
            hand_over(world, resource)
    elif resource.discipline == POOL:
        while resource.waiting and resource.free > 0 and not resource.stopped:
            waiter = first(world, resource)
            resource.free -= 1
            resource.spent_ns -= clock.now_ns
            world.pending[at(waiter)] = layout.UNIT_MOVED
            append(world, waiter)
        serve_by(world, resource)
    elif resource.discipline == GATE:
        pass_tickets(world, resource)


@cached
def wake(world: World, touched: Array) -> None:
    """Serve the queues of marked resources in ascending order."""
    for number in range(len(touched)):
        resource = world.resources[at(number)]
        if touched[number] and (not resource.stopped or resource.discipline == POOL):
            _wake_one(world, resource)


@cached
def free_server(world: World, number: int) -> None:
    """End a service whose steps were cut off."""
    hand_over(world, world.resources[at(number)])


@cached
def start_again(world: World, parked: Array, plans: Array) -> None:
    """Start requests that were cut off or waited. The caller provides the room.

    Parameters
    ----------
    world
        The world.
    parked
        The requests, as `PARKED` records.
    plans
        Template, binding and number of retries of each request, shape (requests, 3).
    """
    for position in range(len(parked)):
        request = parked[position]
        entry = world.log[at(parked[position].entry)]
        template = plans[position, 0]
        row = plans[position, 1]
        retries = plans[position, 2]
        entry.template = template
        entry.binding = row
        slot = start(
            world, entry.stream, request.number, request.entry, template, row, retries
        )
        if len(world.keys):
            for which in range(2):
                world.keys[at(slot)].first[which] = request.first[which]
                world.keys[at(slot)].stop[which] = request.stop[which]
                world.keys[at(slot)].held[which] = 0


@cached
def oldest_pending(world: World, index: int, entry: int) -> int:
    """Return the first log row, from `entry`, of an unfinished request of a stream."""
    while entry < world.clock[0].logged:
        row = world.log[at(entry)]
        if row.stream == index and row.completed_ns == PENDING:
            break
        entry += 1
    return entry

"""Issue, spawn and completion of requests in the compiled engine. Part of the inner loop."""

from typing import Any

import numpy as np

from stripesim.sim.engine.compiled import world as layout
from stripesim.sim.engine.compiled.opcodes import (
    GOLDEN,
    append,
    at,
    holds,
    inlined,
    wide,
)
from stripesim.sim.engine.compiled.world import NEVER_NS, World
from stripesim.sim.engine.draws import STEP_BITS
from stripesim.sim.engine.program import ROW_BITS, SPAWNED_FROM

ROW_MASK = (1 << ROW_BITS) - 1


@inlined
def parts_of_next(world: World, index: int, wanted: int) -> int:
    """Return the parts of a stream's next requests, all together.

    −1 if so many requests are not planned yet. A stream that has ended may have fewer.
    """
    stream = world.streams[at(index)]
    position = stream.at
    for _ in range(wanted):
        if position == stream.planned:
            if not stream.ended:
                return -1
            break
        position += world.plan[index, position, 4]
    return int(position - stream.at)


@inlined
def lacks(world: World, parts: int) -> int:
    """Return the resource missing to issue requests of so many parts, `GO_ON` if none.

    An open stream needs two planned requests: the one to issue and the one that arrives next.
    """
    clock = world.clock[0]
    if parts < 0:
        return layout.MORE_REQUESTS
    if clock.slots_free < parts:
        return layout.MORE_SLOTS
    if clock.logged + parts > len(world.log):
        return layout.MORE_LOG
    if clock.parked + parts > len(world.parked):
        return layout.MORE_PARKED
    return layout.GO_ON


@inlined
def issue(world: World, index: int) -> None:
    """Issue all parts of the next planned request of a stream."""
    stream = world.streams[at(index)]
    stream.newest = stream.issued
    stream.outstanding += 1
    parts = world.plan[index, stream.at, 4]
    for part in range(parts):
        entry = _issue_part(world, index)
        world.log[at(entry)].parts = -part if part else parts


@inlined
def _issue_part(world: World, index: int) -> int:
    """Issue the next part and return its entry in the log. It waits if its group is held."""
    clock = world.clock[0]
    stream = world.streams[at(index)]
    planned = world.plan[index, stream.at]
    group = planned[0]
    template = planned[2]
    binding = planned[3]
    number = stream.issued * len(world.streams) + index
    entry = _note(world, index, template, binding, group)
    if stream.look_ns == NEVER_NS and stream.timeout_ns:
        stream.look_ns = clock.now_ns + stream.timeout_ns
        clock.direct_ns = min(clock.direct_ns, stream.look_ns)
        clock.signal_ns = min(clock.signal_ns, stream.look_ns)
    if world.held[at(group)]:
        parked = world.parked[at(clock.parked)]
        clock.parked += 1
        parked.number = number
        parked.entry = entry
        if len(world.keys):
            for which in range(2):
                parked.first[which] = world.plan_keys[index, stream.at].first[which]
                parked.stop[which] = world.plan_keys[index, stream.at].stop[which]
    else:
        slot = start(world, index, number, entry, template, binding, wide(0))
        if len(world.keys):
            world.keys[at(slot)] = world.plan_keys[index, stream.at]
    stream.at += 1
    stream.issued += 1
    return int(entry)


@inlined
def _note(world: World, index: int, template: int, binding: int, group: int) -> int:
    """Record the issue of a request; return its entry in the log."""
    clock = world.clock[0]
    number = clock.logged
    clock.logged = number + 1
    entry = world.log[at(number)]
    entry.issued_ns = clock.now_ns
    entry.completed_ns = -1
    entry.template = template
    entry.binding = binding
    entry.group = group
    entry.stream = index
    entry.parts = 1
    return int(number)


@inlined
def _first_part(world: World, entry: int) -> Any:
    """Return the log's record of the first part of a part's request."""
    return world.log[at(entry + min(0, world.log[at(entry)].parts))]


@inlined
def start(
    world: World,
    index: int,
    number: int,
    entry: int,
    template: int,
    binding: int,
    retries: int,
) -> int:
    """Start a client's or spawned request at its step 0, and return its slot."""
    clock = world.clock[0]
    clock.slots_free -= 1
    slot = world.free_slots[at(clock.slots_free)]
    request = world.requests[at(slot)]
    request.number = number
    request.entry = entry
    request.row = binding & ROW_MASK
    request.client_row = (binding >> ROW_BITS) - 1
    request.stream = index
    request.draw = np.uint64(number << STEP_BITS) ^ (np.uint64(retries) * GOLDEN)
    first_step = world.templates[at(template)].first_step
    steps = world.templates[at(template)].steps
    request.first_step = first_step
    request.steps_left = steps
    cell = slot << clock.cell_bits
    for step in range(steps):
        world.pending[at(cell + step)] = world.predecessors[at(first_step + step)]
    append(world, cell)
    return int(slot)


@inlined
def lets_issue(world: World, request: Any, stream: Any) -> int:
    """Return the number of requests that a closed loop may issue after a reply."""
    if _first_part(world, request.entry).parts > 1:
        return 0
    if not stream.newest_only or stream.drained:
        return 1
    back = min(0, world.log[at(request.entry)].parts)
    if request.number // len(world.streams) + back != stream.newest:
        return 0
    return int(stream.unnoticed + 1)


@inlined
def notice(world: World, request: Any, index: int, room: int) -> None:
    """Record the reply of a part. That of the last one completes the request and continues a closed loop.

    Completions that the client has not noticed form a chain. In place of a time, each holds the
    entry of the previous one, counted down from `LAST_UNNOTICED`.
    """
    clock = world.clock[0]
    stream = world.streams[at(index)]
    entry = world.log[at(request.entry)]
    first_part = _first_part(world, request.entry)
    first_part.parts -= 1
    if first_part.parts:
        entry.completed_ns = clock.now_ns
        return
    if room == 0 and stream.queue_depth:
        entry.completed_ns = layout.LAST_UNNOTICED - 1 - stream.last_unnoticed
        stream.last_unnoticed = request.entry
        stream.unnoticed += 1
        return
    entry.completed_ns = clock.now_ns
    stream.outstanding -= 1 + stream.unnoticed
    while stream.unnoticed:
        other = world.log[at(stream.last_unnoticed)]
        stream.last_unnoticed = layout.LAST_UNNOTICED - 1 - other.completed_ns
        other.completed_ns = clock.now_ns
        stream.unnoticed -= 1
    if stream.newest_only and stream.at == stream.planned:
        stream.drained = 1
    while room and stream.queue_depth and stream.at < stream.planned:
        issue(world, index)
        room -= 1


@inlined
def spawn(world: World, request: Any, slot: int, special: Any, bound: int) -> None:
    """Start a detached graph if the test holds."""
    if not holds(world, slot, special, bound):
        return
    streams = len(world.streams)
    of = request.stream if request.stream < streams else request.stream - streams
    number = SPAWNED_FROM + world.spawned[at(of)] * streams + of
    world.spawned[at(of)] += 1
    log = world.log[at(request.entry)]
    group = wide(log.group)
    binding = log.binding
    template = wide(special.spawns)
    entry = _note(world, of + streams, template, binding, group)
    child = start(world, of + streams, number, entry, template, binding, wide(0))
    if len(world.keys):
        for which in range(2):
            world.keys[at(child)].first[which] = world.keys[at(slot)].first[which]
            world.keys[at(child)].stop[which] = world.keys[at(slot)].stop[which]
            world.keys[at(child)].held[which] = 0


@inlined
def report(world: World, stream: int, index: int) -> None:
    """Report a completion to the director as soon as the ready list is empty."""
    clock = world.clock[0]
    report = world.reports[at(clock.reported)]
    report.stream = stream
    report.index = index
    clock.reported += 1
    clock.direct_ns = clock.signal_ns = clock.now_ns


@inlined
def next_arrival(world: World, index: int) -> None:
    """Schedule a stream's next arrival."""
    stream = world.streams[at(index)]
    stream.arrival_ns = (
        world.plan[index, stream.at, 1] if stream.at < stream.planned else NEVER_NS
    )

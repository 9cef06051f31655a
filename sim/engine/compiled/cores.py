"""Cores and their threads in the compiled engine. Part of the inner loop.

Read with ``simpy/cores.py``: slices, fair shares, pairs, warm caches, and batches run by threads.
"""

from typing import Any

from stripesim.sim.engine.compiled import world as layout
from stripesim.sim.engine.compiled.calendar import push
from stripesim.sim.engine.compiled.opcodes import (
    append,
    at,
    bound_to,
    inlined,
    number_of,
    outlined,
    request_of,
    step_of,
    wide,
)
from stripesim.sim.engine.compiled.queues import first, first_of_line
from stripesim.sim.engine.compiled.service import (
    serve_batch,
    service_ns,
    sleep,
    slowed_ns,
)
from stripesim.sim.engine.compiled.world import NEVER_NS, NOTHING, World
from stripesim.sim.engine.program import PAIRED_UNIT


@inlined
def thread_pool(world: World, cell: int) -> int:
    """Return the pool of the thread that performs a use, or none."""
    if step_of(world, cell).spread < layout.ON_THREAD:
        return NOTHING
    request = request_of(world, cell)
    acquire = world.steps[at(request.first_step + step_of(world, cell).thread)]
    return bound_to(world, request, acquire.role)


@outlined
def core_ns(world: World, cell: int, demand_ns: int) -> int:
    """Return the time of a use on a core, including its thread's wake-up unless its process is warm."""
    clock = world.clock[0]
    pool = thread_pool(world, cell)
    world.since_ns[at(cell)] = clock.now_ns
    if pool < 0:
        return demand_ns
    thread = cell - number_of(world, cell) + step_of(world, cell).thread
    process = world.processes[at(pool)]
    if world.pending[at(thread)] == layout.UNIT_AWAKE:
        demand_ns -= world.resources[at(pool)].wake_ns
    elif world.pending[at(thread)] == layout.UNIT_WOKEN:
        world.pending[at(thread)] = layout.UNIT_AWAKE
        if process >= 0 and clock.cool_ns:
            left_ns = clock.cool_ns - max(
                0, clock.now_ns - world.runs_until_ns[at(process)]
            )
            saved_ns = clock.warm_ns * max(0, left_ns) // clock.cool_ns
            world.spared_ns[at(pool)] += saved_ns
            demand_ns -= saved_ns
    world.had_ns[at(world.flows[at(pool)])] += demand_ns
    if process >= 0:
        world.runs_until_ns[at(process)] = max(
            world.runs_until_ns[at(process)], clock.now_ns + demand_ns
        )
    return int(demand_ns)


@inlined
def paired_ns(world: World, resource: Any, demand_ns: int) -> int:
    """Return the time of a service on cores shared by two threads. Its own core is already taken."""
    if not resource.stretched & layout.PAIRED:
        return demand_ns
    busy = resource.capacity - resource.free
    sharing = 2 * (busy - (resource.capacity + 1) // 2)
    if sharing <= 0:
        return demand_ns
    slower = demand_ns * sharing * world.clock[0].paired_slowdown
    return int(demand_ns + slower // (busy * PAIRED_UNIT))


@inlined
def serve_on_core(world: World, resource: Any, cell: int, demand_ns: int) -> int:
    """Begin a use on a core already taken, and return its end."""
    if resource.slice_ns:
        demand_ns = core_ns(world, cell, demand_ns)
    demand_ns = paired_ns(world, resource, demand_ns)
    if resource.stretched & layout.SLOWED:
        demand_ns = slowed_ns(world, cell, demand_ns)
    resource.spent_ns += demand_ns
    if resource.share > 0:
        # Only a quota counts it.
        world.shares[at(resource.share - 1)].left_ns -= demand_ns
    return int(world.clock[0].now_ns + demand_ns)


@outlined
def keep(world: World, index: int, cell: int) -> bool:
    """Keep a core for its thread until the ready list is empty, unless the slice is used up."""
    clock = world.clock[0]
    resource = world.resources[at(index)]
    pool = thread_pool(world, cell)
    since_ns = world.since_ns[at(cell)]
    if pool < 0 or (resource.waiting and clock.now_ns - since_ns >= resource.slice_ns):
        return False
    clock.kept = index
    clock.kept_pool = pool
    clock.kept_since_ns = since_ns
    return True


@outlined
def go_on(world: World, index: int, cell: int) -> int:
    """Begin a use on the core that its thread keeps, and return its end.

    `NEVER_NS` if the thread keeps no core.
    """
    clock = world.clock[0]
    resource = world.resources[at(index)]
    if clock.kept != index or clock.kept_pool != thread_pool(world, cell):
        return NEVER_NS
    clock.kept = NOTHING
    end_ns = serve_on_core(world, resource, cell, service_ns(world, resource, cell))
    world.since_ns[at(cell)] = clock.kept_since_ns
    return end_ns


@outlined
def take_fair(world: World, index: int) -> int:
    """Dequeue the step with the earliest virtual start from a queue of cores, if any."""
    resource = world.resources[at(index)]
    if resource.waiting == 0:
        return NOTHING
    share = world.shares[at(resource.share - 1)]
    line = world.lines[at(share.first_line)]
    start_ns = NEVER_NS
    best_flow = NOTHING
    before_best = NOTHING
    before = NOTHING
    cell = wide(line.first)
    while cell != NOTHING:
        own_ns = world.joined_ns[at(cell)]
        flow = NOTHING
        pool = thread_pool(world, cell)
        if pool >= 0:
            flow = wide(world.flows[at(pool)])
            own_ns = max(own_ns, world.had_ns[at(flow)])
        if own_ns < start_ns:
            start_ns = own_ns
            best_flow = flow
            before_best = before
        before = cell
        cell = wide(world.links[at(cell)])
    share.virtual_ns = max(share.virtual_ns, start_ns)
    if best_flow >= 0:
        world.had_ns[at(best_flow)] = start_ns
    if before_best == NOTHING:
        return first_of_line(world, resource, line)
    best = wide(world.links[at(before_best)])
    world.links[at(before_best)] = world.links[at(best)]
    if best == line.last:
        line.last = before_best
    resource.waited_ns += world.clock[0].now_ns
    resource.waiting -= 1
    line.waiting -= 1
    return int(best)


@inlined
def threads_idle(world: World, server: Any) -> bool:
    """Return True if all threads that run a batch server are idle."""
    pool = world.resources[at(server.partner - 1)]
    return bool(pool.free == pool.capacity)


@outlined
def serve_by(world: World, pool: Any) -> None:
    """Begin a batch if all threads of its pool are idle."""
    if not pool.partner:
        return
    server = world.resources[at(pool.partner - 1)]
    if server.waiting and server.free and pool.free == pool.capacity:
        server.free -= 1
        begin_flush(world, server)


@inlined
def begin_flush(world: World, server: Any) -> None:
    """Begin a batch run by threads. Its server is already taken."""
    world.resources[at(server.partner - 1)].stopped |= layout.FLUSHING
    leader = wide(server.first)
    push(world, serve_batch(world, server), leader)


@outlined
def end_flush(world: World, server: Any) -> None:
    """Return to the threads' own queue, or begin the next batch."""
    clock = world.clock[0]
    pool = world.resources[at(server.partner - 1)]
    pool.stopped &= ~layout.FLUSHING
    server.free += 1
    while pool.waiting and pool.free > 0 and not pool.stopped:
        waiter = first(world, pool)
        pool.free -= 1
        pool.spent_ns -= clock.now_ns
        world.pending[at(waiter)] = layout.UNIT_WOKEN
        append(world, waiter)
    if not server.waiting:
        sleep(world, server)
    else:
        serve_by(world, pool)

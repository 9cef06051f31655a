"""Queues and services of the compiled engine. Part of the inner loop."""

from typing import Any

import numpy as np

from stripesim.sim.engine.compiled import world as layout
from stripesim.sim.engine.compiled.calendar import push
from stripesim.sim.engine.compiled.opcodes import append, at, inlined, thread_pool, wide
from stripesim.sim.engine.compiled.shares import next_ns, outlined, set_look, take
from stripesim.sim.engine.compiled.world import NEVER_NS, NOBODY, World
from stripesim.sim.engine.draws import FACTOR_BITS, FACTOR_HALF
from stripesim.sim.engine.program import PAIRED_UNIT, POOL


@inlined
def wait(world: World, resource: Any, cell: int) -> None:
    """Join a queue."""
    resource.waited_ns -= world.clock[0].now_ns
    world.links[at(cell)] = NOBODY
    if resource.waiting:
        world.links[at(resource.last)] = cell
    else:
        resource.first = cell
    resource.last = cell
    resource.waiting += 1


@inlined
def first(world: World, resource: Any) -> int:
    """Leave a queue at its head."""
    resource.waited_ns += world.clock[0].now_ns
    cell = resource.first
    resource.first = world.links[at(cell)]
    resource.waiting -= 1
    return int(wide(cell))


@inlined
def service_ns(world: World, cell: int) -> int:
    """Return a step's service time: its demand, times its random factor if it has one.

    If its thread had to be woken, that comes on top.
    """
    clock = world.clock[0]
    request = world.requests[at(cell >> clock.cell_bits)]
    number_of_step = cell & ((1 << clock.cell_bits) - 1)
    step = world.steps[at(request.first_step + number_of_step)]
    if step.spread == 0:
        return int(step.demand_ns)
    woken_ns = 0
    if step.spread & layout.ON_THREAD:
        thread = world.specials[at(request.first_step + number_of_step)].thread
        if world.pending[at(cell - number_of_step + thread)] in (
            layout.UNIT_WOKEN,
            layout.UNIT_AWAKE,
        ):
            role = world.steps[at(request.first_step + thread)].role
            woken_ns = world.resources[
                at(world.bindings[at(request.row * clock.roles + role)])
            ].wake_ns
        if step.spread == layout.ON_THREAD:
            return int(step.demand_ns + woken_ns)
    # draws.retried_state and draws.splitmix64, in 64-bit words.
    word = (clock.seed_state ^ request.draw ^ np.uint64(number_of_step)) + np.uint64(
        0x9E3779B97F4A7C15
    )
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    word = word ^ (word >> np.uint64(31))
    factor = world.factors[
        step.spread & (layout.ON_THREAD - 1), np.int64(word >> np.uint64(56))
    ]
    return int(((step.demand_ns * factor + FACTOR_HALF) >> FACTOR_BITS) + woken_ns)


@inlined
def sleep(world: World, resource: Any) -> None:
    """Count that a server or a unit becomes idle because nothing waits for it."""
    resource.sleeps += 1
    if world.clock[0].bin_ns:
        world.sleep_bins[world.clock[0].bin, resource.kind] += 1


@inlined
def paired_ns(world: World, resource: Any, demand_ns: int) -> int:
    """Return a service's time where servers are threads that share cores; its own is taken already."""
    if not resource.paired:
        return demand_ns
    busy = resource.capacity - resource.free
    sharing = 2 * (busy - (resource.capacity + 1) // 2)
    if sharing <= 0:
        return demand_ns
    slower = demand_ns * sharing * world.clock[0].paired_slowdown
    return int(demand_ns + slower // (busy * PAIRED_UNIT))


@outlined
def core_ns(world: World, cell: int, demand_ns: int) -> int:
    """Return a use's time on a core; its thread's wake-up costs less if its process has just run."""
    clock, pool = world.clock[0], thread_pool(world, cell)
    world.since_ns[at(cell)] = clock.now_ns
    if pool < 0:
        return demand_ns
    number_of_step = cell & ((1 << clock.cell_bits) - 1)
    special = world.specials[
        at(world.requests[at(cell >> clock.cell_bits)].first_step + number_of_step)
    ]
    thread, process = cell - number_of_step + special.thread, world.processes[at(pool)]
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
def serve(world: World, resource: Any, cell: int, wake_ns: int) -> int:
    """Begin a service by a server that is taken and may have to be woken; return when it ends."""
    demand_ns = service_ns(world, cell) + wake_ns
    if resource.slice_ns:
        demand_ns = core_ns(world, cell, demand_ns)
    demand_ns = paired_ns(world, resource, demand_ns)
    resource.spent_ns += demand_ns
    return int(world.clock[0].now_ns + demand_ns)


@inlined
def serve_batch(world: World, resource: Any) -> int:
    """Begin one service for all that wait, the server is already taken; return when it ends."""
    now_ns = world.clock[0].now_ns
    resource.waited_ns += now_ns * resource.waiting
    resource.waiting = 0
    demand_ns = 0
    cell = resource.first
    while cell != NOBODY:
        demand_ns = max(demand_ns, service_ns(world, wide(cell)))
        cell = world.links[at(cell)]
    resource.spent_ns += demand_ns
    return int(now_ns + demand_ns)


@outlined
def dispatch(world: World, place: int, awake: int) -> int:
    """Let free servers or units take what may go on of a queue that classes share."""
    clock, resource = world.clock[0], world.resources[at(place)]
    taken = 0
    while resource.free > 0 and not resource.stopped:
        cell = take(world, place)
        if cell == NOBODY:
            break
        resource.free -= 1
        woken = taken >= awake
        taken += 1
        if resource.discipline == POOL:
            resource.spent_ns -= clock.now_ns
            world.pending[at(cell)] = layout.UNIT_WOKEN if woken else layout.UNIT_MOVED
            append(world, cell)
            continue
        push(
            world,
            serve(world, resource, cell, wide(resource.wake_ns) if woken else wide(0)),
            cell,
        )
    look_ns = NEVER_NS
    if resource.free > 0 and not resource.stopped and resource.waiting:
        look_ns = next_ns(world, place)
    set_look(world, resource.share - 1, look_ns)
    return taken


@outlined
def keep(world: World, place: int, cell: int) -> bool:
    """Let a thread keep its core until the ready list is empty, unless its slice is used up."""
    clock, resource, pool = (
        world.clock[0],
        world.resources[at(place)],
        thread_pool(world, cell),
    )
    since_ns = world.since_ns[at(cell)]
    if pool < 0 or (resource.waiting and clock.now_ns - since_ns >= resource.slice_ns):
        return False
    clock.kept, clock.kept_pool, clock.kept_since_ns = place, pool, since_ns
    return True


@outlined
def go_on(world: World, place: int, cell: int) -> int:
    """Begin a use if it is more work of the thread that keeps its core just now; return when it ends."""
    clock, resource = world.clock[0], world.resources[at(place)]
    if clock.kept != place or clock.kept_pool != thread_pool(world, cell):
        return NEVER_NS
    clock.kept = NOBODY
    end_ns = serve(world, resource, cell, wide(0))
    world.since_ns[at(cell)] = clock.kept_since_ns
    return end_ns


@inlined
def threads_idle(world: World, server: Any) -> bool:
    """Whether the threads that serve a batch server have nothing else to do."""
    pool = world.resources[at(server.partner - 1)]
    return bool(pool.free == pool.capacity)


@outlined
def serve_by(world: World, pool: Any) -> None:
    """Let threads that have nothing else to do serve their batch server."""
    if not pool.partner:
        return
    server = world.resources[at(pool.partner - 1)]
    if server.waiting and server.free and pool.free == pool.capacity:
        server.free -= 1
        begin_flush(world, server)


@inlined
def begin_flush(world: World, server: Any) -> None:
    """Let threads serve their batch server, which is already taken, and nothing else."""
    world.resources[at(server.partner - 1)].stopped |= layout.FLUSHING
    leader = wide(server.first)
    push(world, serve_batch(world, server), leader)


@outlined
def end_flush(world: World, server: Any) -> None:
    """Let the threads of a batch server go on with what waits for them, else with the next batch."""
    clock, pool = world.clock[0], world.resources[at(server.partner - 1)]
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


@inlined
def hand_over(world: World, resource: Any) -> None:
    """Let a server that has become free take what waits for it."""
    if resource.partner:
        end_flush(world, resource)
        return
    if not resource.waiting:
        resource.free += 1
        sleep(world, resource)
        return
    if resource.share > 0:
        resource.free += 1
        if not dispatch(world, world.shares[at(resource.share - 1)].resource, wide(1)):
            sleep(world, resource)
        return
    if resource.share:
        waiting = wide(resource.first)
        end_ns = serve_batch(world, resource)
    else:
        waiting = first(world, resource)
        end_ns = serve(world, resource, waiting, wide(0))
    push(world, end_ns, waiting)


@outlined
def give_up(world: World) -> None:
    """Let others have the core that a thread kept."""
    place = world.clock[0].kept
    world.clock[0].kept = NOBODY
    hand_over(world, world.resources[at(place)])

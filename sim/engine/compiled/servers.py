"""Start of services and transfer of servers in the compiled engine. Part of the inner loop."""

from typing import Any

from stripesim.sim.engine.compiled import world as layout
from stripesim.sim.engine.compiled.calendar import push
from stripesim.sim.engine.compiled.cores import end_flush, serve_on_core, take_fair
from stripesim.sim.engine.compiled.opcodes import append, at, inlined, outlined, wide
from stripesim.sim.engine.compiled.queues import (
    first,
    next_ns,
    set_look,
    take,
    take_quota,
)
from stripesim.sim.engine.compiled.service import serve_batch, service_ns, sleep
from stripesim.sim.engine.compiled.world import NEVER_NS, NOTHING, World
from stripesim.sim.engine.program import POOL
from stripesim.sim.engine.shares import FAIR, QUOTA


@inlined
def serve(world: World, resource: Any, cell: int, wake_ns: int) -> int:
    """Begin a service on a server already taken, and return its end."""
    demand_ns = service_ns(world, resource, cell) + wake_ns
    return serve_on_core(world, resource, cell, demand_ns)


@outlined
def dispatch(world: World, index: int, awake: int) -> int:
    """Serve a queue shared by classes, and return the number of steps served."""
    clock = world.clock[0]
    resource = world.resources[at(index)]
    share = world.shares[at(resource.share - 1)]
    taken = 0
    while resource.free > 0 and not resource.stopped:
        if share.kind == FAIR:
            cell = take_fair(world, index)
        elif share.kind == QUOTA:
            cell = take_quota(world, index)
        else:
            cell = take(world, index)
        if cell == NOTHING:
            break
        resource.free -= 1
        woken = taken >= awake
        taken += 1
        if resource.discipline == POOL:
            resource.spent_ns -= clock.now_ns
            world.pending[at(cell)] = layout.UNIT_WOKEN if woken else layout.UNIT_MOVED
            append(world, cell)
            continue
        wake_ns = wide(resource.wake_ns) if woken else wide(0)
        push(world, serve(world, resource, cell, wake_ns), cell)
    look_ns = NEVER_NS
    if resource.free > 0 and not resource.stopped and resource.waiting:
        look_ns = next_ns(world, index)
    set_look(world, resource.share - 1, look_ns)
    return taken


@inlined
def hand_over(world: World, resource: Any) -> None:
    """Pass a server to the queue, or let it sleep."""
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


@inlined
def give_up(world: World) -> None:
    """Free the core of a thread without further work."""
    index = world.clock[0].kept
    world.clock[0].kept = NOTHING
    hand_over(world, world.resources[at(index)])

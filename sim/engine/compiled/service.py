"""Duration of services in the compiled engine, and their counters. Part of the inner loop."""

from typing import Any

import numpy as np

from stripesim.sim.engine.compiled import world as layout
from stripesim.sim.engine.compiled.accounting import note_saved
from stripesim.sim.engine.compiled.opcodes import (
    at,
    bound_to,
    inlined,
    mixed,
    number_of,
    outlined,
    request_of,
    special_of,
    step_of,
    wide,
)
from stripesim.sim.engine.compiled.world import NOTHING, World
from stripesim.sim.engine.draws import (
    FACTOR_BITS,
    FACTOR_HALF,
    FACTOR_ONE,
    FACTOR_POINTS,
    LATE_STEP_BIT,
    STEP_BITS,
)
from stripesim.sim.engine.program import SLOWDOWN_UNIT


@inlined
def service_ns(world: World, resource: Any, cell: int) -> int:
    """Return a step's service time: its demand times its random factor, plus its thread's wake-up."""
    step = step_of(world, cell)
    if step.spread == 0:
        return int(step.demand_ns)
    clock = world.clock[0]
    request = request_of(world, cell)
    number = number_of(world, cell)
    woken_ns = 0
    if step.spread & layout.ON_THREAD:
        thread = step.thread
        state = world.pending[at(cell - number + thread)]
        if state in (layout.UNIT_WOKEN, layout.UNIT_AWAKE):
            role = world.steps[at(request.first_step + thread)].role
            pool = bound_to(world, request, role)
            woken_ns = world.resources[at(pool)].wake_ns
        if step.spread == layout.ON_THREAD:
            return int(step.demand_ns + woken_ns)
    # See draws.retried_state and draws.draw_key.
    early = np.uint64(number & (1 << STEP_BITS) - 1)
    late = np.uint64(number >> STEP_BITS) << np.uint64(LATE_STEP_BIT)
    word = mixed(clock.seed_state ^ request.draw ^ early ^ late)
    factor = drawn_factor(world, step.spread & (layout.SORTED - 1), word)
    demand_ns = step.demand_ns
    if step.spread & layout.SORTED:
        demand_ns -= saved_ns(world, resource, cell)
    return int(((demand_ns * factor + FACTOR_HALF) >> FACTOR_BITS) + woken_ns)


@outlined
def saved_ns(world: World, resource: Any, cell: int) -> int:
    """Return the time that a sorted step saves because others wait at its server."""
    factors = world.position_factors
    queued = min(wide(resource.waiting // resource.capacity), wide(len(factors) - 1))
    position_ns = special_of(world, cell).position_ns
    saved = (position_ns * (FACTOR_ONE - factors[at(queued)])) >> FACTOR_BITS
    if step_of(world, cell).special & layout.FOLLOWED:
        note_saved(world, request_of(world, cell), number_of(world, cell), saved)
    return int(saved)


@inlined
def drawn_factor(world: World, spread: int, word: Any) -> int:
    """Return the random factor of a 64-bit draw, as `draws.drawn_factor`."""
    number = spread * FACTOR_POINTS + np.int64(word >> np.uint64(56))
    factors = world.factor_cells[at(number)]
    position = np.int64(word >> np.uint64(36)) & (FACTOR_ONE - 1)
    early = min(position, factors.knot)
    climbed = early * factors.rise + (position - early) * factors.later_rise
    return int(factors.low + ((climbed + FACTOR_HALF) >> FACTOR_BITS))


@outlined
def slowed_ns(world: World, cell: int, demand_ns: int) -> int:
    """Return the duration of a service on a server that a director has slowed down."""
    server = bound_to(world, request_of(world, cell), step_of(world, cell).role)
    return int(demand_ns * world.slowdowns[at(server)] // SLOWDOWN_UNIT)


@inlined
def serve_batch(world: World, resource: Any) -> int:
    """Begin one service for all waiting steps on a server already taken, and return its end."""
    now_ns = world.clock[0].now_ns
    resource.waited_ns += now_ns * resource.waiting
    resource.waiting = 0
    demand_ns = 0
    cell = resource.first
    while cell != NOTHING:
        demand_ns = max(demand_ns, service_ns(world, resource, wide(cell)))
        cell = world.links[at(cell)]
    if resource.stretched & layout.SLOWED:
        demand_ns = slowed_ns(world, wide(resource.first), demand_ns)
    resource.spent_ns += demand_ns
    return int(now_ns + demand_ns)


@inlined
def sleep(world: World, resource: Any) -> None:
    """Count a server or unit that becomes idle because nothing waits for it."""
    resource.sleeps += 1
    if world.clock[0].bin_ns:
        world.sleep_bins[world.clock[0].bin, resource.kind] += 1

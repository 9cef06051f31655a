"""Duration of services in the compiled engine, and their counters. Part of the inner loop."""

from typing import Any

import numpy as np

from stripesim.sim.engine.compiled import world as layout
from stripesim.sim.engine.compiled.opcodes import at, inlined, wide
from stripesim.sim.engine.compiled.world import NOBODY, World
from stripesim.sim.engine.draws import FACTOR_BITS, FACTOR_HALF


@inlined
def service_ns(world: World, cell: int) -> int:
    """Return a step's service time: its demand times its random factor, plus its thread's wake-up."""
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
    # See draws.retried_state and draws.splitmix64, here in 64-bit words.
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
def serve_batch(world: World, resource: Any) -> int:
    """Begin one service for all waiting steps on a server already taken, and return its end."""
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


@inlined
def sleep(world: World, resource: Any) -> None:
    """Count a server or unit that becomes idle because nothing waits for it."""
    resource.sleeps += 1
    if world.clock[0].bin_ns:
        world.sleep_bins[world.clock[0].bin, resource.kind] += 1

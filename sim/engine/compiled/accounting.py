"""Accounting of steps in the compiled engine. Part of the inner loop."""

from typing import Any

from stripesim.sim.engine.compiled.opcodes import (
    at,
    bound_to,
    inlined,
    number_of,
    wide,
)
from stripesim.sim.engine.compiled.world import NOTHING, World
from stripesim.sim.engine.graph import USE


@inlined
def account(world: World, request: Any, step: Any, number_of_step: int) -> None:
    """Add a step's amounts to the bin of the current time."""
    if step.role >= 0 and bound_to(world, request, step.role) < 0:
        return
    clock = world.clock[0]
    clock.bins_used = max(clock.bins_used, clock.bin + 1)
    if step.accounts:
        amounts = world.amounts[request.first_step + number_of_step]
        for counter in range(len(amounts)):
            world.bins[clock.bin, counter] += amounts[counter]


@inlined
def account_service(world: World, request: Any, cell: int) -> None:
    """Account a step's amounts per service. The calendar holds the step that accounts them."""
    clock = world.clock[0]
    amounts = world.once[request.first_step + number_of(world, cell)]
    if clock.bin_ns:
        clock.bins_used = max(clock.bins_used, clock.bin + 1)
    for counter in range(len(amounts)):
        world.taken[request.stream, counter] += amounts[counter]
        if clock.bin_ns:
            world.bins[clock.bin, counter] += amounts[counter]


@inlined
def account_taken(world: World, request: Any, step: Any, number_of_step: int) -> None:
    """Add the amounts of a completed step of a template with branches."""
    if step.role >= 0 and bound_to(world, request, step.role) < 0:
        return
    amounts = world.amounts[request.first_step + number_of_step]
    for counter in range(len(amounts)):
        world.taken[request.stream, counter] += amounts[counter]
    if step.word == USE:
        world.taken[request.stream, len(amounts)] += 1


@inlined
def note_end(world: World, request: Any, number_of_step: int) -> None:
    """Record the end of a step of a followed request."""
    row = _row_of(world, request)
    if row != NOTHING:
        world.ends_ns[row, number_of_step] = world.clock[0].now_ns


@inlined
def note_saved(world: World, request: Any, number_of_step: int, saved: int) -> None:
    """Record the time that a step of a followed request saved because others waited."""
    row = _row_of(world, request)
    if row != NOTHING:
        world.saved_ns[row, number_of_step] = saved


@inlined
def _row_of(world: World, request: Any) -> int:
    """Return the row of a followed request in `World.ends_ns`, or none."""
    number = request.number
    streams = len(world.streams)
    if number % streams or number // streams >= len(world.followed):
        return NOTHING
    return int(wide(world.followed[at(number // streams)]))

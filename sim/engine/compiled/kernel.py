"""The inner loop of the compiled engine: the machine of ENGINE.md over flat arrays.

Read it next to ``simpy/engine.py``:

=====================  =========================================================
this engine            SimPy engine
=====================  =========================================================
``run_machine``        ``SimpyEngine.execute``, ``Kernel.work_off``
``_fill``              ``Stream.fill``
``_signal``            ``Stream._arrive``, ``Queued._look_at_queue``
``_end_of_service``    ``Fifo.end``
``_complete``          ``SimpyEngine.complete``
``_pass_on``           ``SimpyEngine.complete``
``skip``               ``SimpyEngine._skip_all``
``_begin``             ``SimpyEngine._begin``
``_pool``              ``UnitPool.begin``
``_pool_shared``       ``UnitPool.begin``
``wait``               ``Queued.arrive``
``serve``              ``Fifo.serve``
``dispatch``           ``Queued.dispatch``
``hand_over``          ``Fifo.hand_over``
``join``               ``ClassQueue.join``, ``FairQueue.join``
``take``               ``ClassQueue.take``, ``FairQueue.take``
``keep``               ``Cores.hand_over``
``go_on``              ``Cores.begin``
``core_ns``            ``Cores._on_thread``
``end_flush``          ``ServedBatch.free_server``
``pass_tickets``       ``Gate._pass_tickets``
``change_pins``        ``Pins.pin``, ``Pins.unpin``
``holds``              ``SimpyEngine._holds``
``account``            ``SimpyEngine.account``
``account_service``    ``SimpyEngine.account_service``
``account_taken``      ``SimpyEngine._account_taken``
``issue``              ``Stream.issue``
``notice``             ``Stream.complete``
``spawn``              ``SimpyEngine._spawn``
=====================  =========================================================

Other modules of this folder: ``calendar.py``, ``queues.py``, ``service.py`` (duration of
services), ``servers.py`` (choice of the next step to serve), ``cores.py`` (threads on cores),
``requests.py`` (issue and completion), ``accounting.py`` (counters), ``opcodes.py`` (rarely used
words), ``actions.py`` (effects of a director). ``world.py`` defines cells, records and `World`.
"""

from collections.abc import Callable
from typing import Any

from stripesim.models import jit
from stripesim.sim.engine.compiled import world as layout
from stripesim.sim.engine.compiled.accounting import (
    account,
    account_service,
    account_taken,
    note_end,
)
from stripesim.sim.engine.compiled.calendar import close_hole, push
from stripesim.sim.engine.compiled.cores import go_on, keep, serve_by, threads_idle
from stripesim.sim.engine.compiled.opcodes import (
    OPTIONS,
    act,
    append,
    at,
    bound_to,
    holds,
    inlined,
    lacks_room,
    number_of,
    request_of,
    skip,
    special_of,
    step_done,
    step_of,
    wide,
)
from stripesim.sim.engine.compiled.queues import (
    first,
    join,
    looked_at,
    next_signal,
    wait,
)
from stripesim.sim.engine.compiled.requests import (
    issue,
    lacks,
    lets_issue,
    next_arrival,
    notice,
    parts_of_next,
    report,
    spawn,
)
from stripesim.sim.engine.compiled.servers import dispatch, give_up, hand_over, serve
from stripesim.sim.engine.compiled.service import sleep
from stripesim.sim.engine.compiled.world import GO_ON, NEVER_NS, NOTHING, World
from stripesim.sim.engine.graph import ACQUIRE, DELAY, NONE, RELEASE, USE
from stripesim.sim.engine.program import BATCH


@inlined
def _end_of_service(world: World, request: Any, step: Any, cell: int) -> None:
    """Free the server of a calendar entry that is a use."""
    if step.word != USE:
        return
    clock = world.clock[0]
    clock.uses += 1
    if step.special & layout.ONCE:
        account_service(world, request, cell)
    bound = bound_to(world, request, step.role)
    resource = world.resources[at(bound)]
    if resource.slice_ns and keep(world, bound, cell):
        return
    hand_over(world, resource)
    if resource.discipline == BATCH:
        # The other members depend on their leader, which the caller completes first.
        member = world.links[at(cell)]
        while member != NOTHING:
            clock.uses += 1
            append(world, wide(member))
            member = world.links[at(member)]


@inlined
def _pool(world: World, word: int, pool: Any, cell: int) -> None:
    now_ns = world.clock[0].now_ns
    if pool.share:
        _pool_shared(world, word, pool, cell)
        return
    if word == ACQUIRE:
        if pool.free == 0 or pool.stopped:
            wait(world, pool, cell)
            return
        pool.free -= 1
        pool.spent_ns -= now_ns
        # Its thread had to be woken.
        world.pending[at(cell)] = layout.UNIT_WOKEN
        append(world, cell)
        return
    if pool.waiting and not pool.stopped:
        # The unit passes to the waiting step and stays out.
        waiter = first(world, pool)
        world.pending[at(waiter)] = layout.UNIT_MOVED
        append(world, waiter)
    else:
        pool.free += 1
        pool.spent_ns += now_ns
        sleep(world, pool)
        if pool.partner:
            serve_by(world, pool)
    world.pending[at(cell)] = layout.UNIT_MOVED
    append(world, cell)


@inlined
def _pool_shared(world: World, word: int, pool: Any, cell: int) -> None:
    """Acquire or release a unit of a pool shared by classes."""
    index = world.shares[at(pool.share - 1)].resource
    if word == ACQUIRE:
        join(world, index, cell)
        dispatch(world, index, wide(0))
        return
    pool.free += 1
    pool.spent_ns += world.clock[0].now_ns
    if not dispatch(world, index, wide(1)):
        sleep(world, pool)
    world.pending[at(cell)] = layout.UNIT_MOVED
    append(world, cell)


@inlined
def _begin(world: World, request: Any, step: Any, cell: int) -> int:
    """Begin a step whose predecessors have all completed, and return its end.

    `NEVER_NS` for a step that waits or has completed immediately.
    """
    clock = world.clock[0]
    word = step.word
    bound = NOTHING
    if step.role >= 0:
        bound = bound_to(world, request, step.role)
    # Words that need a role are `NONE` here if they have none.
    if word == NONE or (bound < 0 and step.role >= 0):
        append(world, cell)
    elif word == DELAY:
        return int(clock.now_ns + step.demand_ns)
    elif word == USE:
        resource = world.resources[at(bound)]
        if resource.slice_ns and clock.kept == bound:
            end_ns = go_on(world, bound, cell)
            if end_ns != NEVER_NS:
                return int(end_ns)
        if resource.free == 0:
            if resource.share > 0:
                join(world, bound, cell)
            else:
                wait(world, resource, cell)
        elif resource.share > 0:
            join(world, bound, cell)
            dispatch(world, bound, wide(0))
        else:
            if resource.share:
                if resource.partner:
                    if not threads_idle(world, resource):
                        wait(world, resource, cell)
                        return NEVER_NS
                    world.resources[at(resource.partner - 1)].stopped |= layout.FLUSHING
                # A batch of one has no further members.
                world.links[at(cell)] = NOTHING
            resource.free -= 1
            return serve(world, resource, cell, wide(resource.wake_ns))
    elif word <= RELEASE:
        _pool(world, word, world.resources[at(bound)], cell)
    else:
        act(world, word, bound, request, cell)
    return NEVER_NS


@inlined
def _lacks_for(world: World, request: Any, step: Any, cell: int, parts: int) -> int:
    """Return the resource missing to complete a step with special words, `GO_ON` if none.

    A reply may let its stream issue requests of so many parts.
    """
    clock = world.clock[0]
    if step.special & layout.NAMES_KEYS:
        slot = cell >> clock.cell_bits
        missing = lacks_room(world, slot, special_of(world, cell))
        if missing != GO_ON:
            return missing
    if step.special & layout.SPAWNS:
        if clock.slots_free < 1 + parts:
            return layout.MORE_SLOTS
        if clock.logged + 1 + parts > len(world.log):
            return layout.MORE_LOG
    return GO_ON


@inlined
def _skip_all(
    world: World, request: Any, first_cell: int, start: int, stop: int
) -> None:
    for position in range(start, stop):
        number_after = world.successors[at(position)]
        waits_for = world.steps[at(request.first_step + number_after)].waits_for
        skip(world, waits_for, first_cell + number_after)


@inlined
def _pass_on(world: World, cell: int) -> None:
    """Process a skipped step: skip its successors."""
    clock = world.clock[0]
    slot = cell >> clock.cell_bits
    request = world.requests[at(slot)]
    step = step_of(world, cell)
    first_position = wide(step.successors_from)
    last_position = wide(step.successors_to)
    _skip_all(world, request, slot << clock.cell_bits, first_position, last_position)
    step_done(world, slot)


@inlined
def _complete(world: World, request: Any, step: Any, cell: int) -> int:
    """Complete a step and begin the steps that it makes ready.

    If its stream cannot issue yet, nothing changes, and the missing resource is returned.
    """
    clock = world.clock[0]
    slot = cell >> clock.cell_bits
    number_of_step = number_of(world, cell)
    index = room = parts = 0
    if step.is_reply:
        index = int(request.stream)
        if index < len(world.streams) and world.streams[at(index)].queue_depth:
            room = lets_issue(world, request, world.streams[at(index)])
            parts = parts_of_next(world, index, room)
            missing = lacks(world, parts)
            if missing != GO_ON:
                clock.wanting = index
                return missing
        if clock.reported == len(world.reports):
            return layout.MORE_REPORTS
    if step.special:
        missing = _lacks_for(world, request, step, cell, parts)
        if missing != GO_ON:
            return missing
        if step.special & layout.TAKEN:
            account_taken(world, request, step, number_of_step)
        if step.special & layout.FOLLOWED:
            note_end(world, request, number_of_step)
        if step.special & layout.TESTED:
            world.pending[at(cell)] = layout.COMPLETED
    if clock.bin_ns:
        account(world, request, step, number_of_step)
    if step.is_reply:
        if index < len(world.streams):
            if world.streams[at(index)].reports:
                report(world, index, request.number // len(world.streams))
            notice(world, request, index, room)
        else:
            world.log[at(request.entry)].completed_ns = clock.now_ns
    first_cell = slot << clock.cell_bits
    first_position = wide(step.successors_from)
    last_position = wide(step.successors_to)
    if step.special & (layout.BRANCHES | layout.SPAWNS):
        special = special_of(world, cell)
        bound = bound_to(world, request, step.role) if step.role >= 0 else NOTHING
        if step.special & layout.SPAWNS:
            spawn(world, request, slot, special, bound)
        else:
            split = first_position + special.yes_count
            if holds(world, slot, special, bound):
                _skip_all(world, request, first_cell, split, last_position)
                last_position = split
            else:
                _skip_all(world, request, first_cell, first_position, split)
                first_position = split
    for position in range(first_position, last_position):
        number_after = world.successors[at(position)]
        cell_after = first_cell + number_after
        after = world.steps[at(request.first_step + number_after)]
        if after.waits_for:
            pending = world.pending[at(cell_after)] - 1
            if after.waits_for == layout.MERGE:
                pending = (pending | layout.LIVE) - layout.LIVE
                world.pending[at(cell_after)] = pending + layout.LIVE
            else:
                world.pending[at(cell_after)] = pending
            if pending:
                continue
        end_ns = _begin(world, request, after, cell_after)
        if end_ns != NEVER_NS:
            push(world, end_ns, cell_after)
    step_done(world, slot)
    return GO_ON


@inlined
def _arriving(world: World) -> int:
    """Return the stream with the arrival due, by the smallest request number."""
    clock = world.clock[0]
    due = NOTHING
    for index in range(len(world.streams)):
        if world.streams[at(index)].arrival_ns == clock.signal_ns and (
            due == NOTHING
            or world.streams[at(index)].issued < world.streams[at(due)].issued
        ):
            due = index
    return due


@inlined
def _signal(world: World) -> int:
    """Process the due look or arrival. Return the resource missing for it, `GO_ON` if none."""
    clock = world.clock[0]
    if clock.look_ns == clock.signal_ns:
        dispatch(world, looked_at(world), wide(0))
        return GO_ON
    index = _arriving(world)
    missing = lacks(world, parts_of_next(world, index, wide(2)))
    if missing != GO_ON:
        clock.wanting = index
        return missing
    issue(world, index)
    next_arrival(world, index)
    next_signal(world)
    return GO_ON


@inlined
def _fill(world: World) -> int:
    """Fill closed loops and schedule the first arrivals of open streams."""
    clock = world.clock[0]
    while clock.streams_filled < len(world.streams):
        index = clock.streams_filled
        stream = world.streams[at(index)]
        if stream.queue_depth == 0 or stream.outstanding < stream.queue_depth:
            missing = lacks(world, parts_of_next(world, index, wide(1)))
            if missing != GO_ON:
                clock.wanting = index
                return missing
        if stream.outstanding < stream.queue_depth and stream.at < stream.planned:
            issue(world, index)
            continue
        if stream.queue_depth == 0:
            next_arrival(world, index)
        clock.streams_filled += 1
        next_signal(world)
    return GO_ON


def cached(function: Callable[..., Any]) -> Any:
    """Compile and cache a function with everything that it calls."""
    return jit.compiled(function, program="the engine", **OPTIONS)


@cached
def run_machine(world: World) -> int:
    """Run until the end or until something is missing.

    Parameters
    ----------
    world
        The state, changed in place.

    Returns
    -------
    int
        `DONE`, or the resource to provide before the next call, which continues the run.
    """
    clock = world.clock[0]
    missing = _fill(world)
    if missing != GO_ON:
        return missing
    while True:
        is_due = clock.ready_from == clock.ready_to
        if not is_due:
            cell = wide(world.ready[at(clock.ready_from & (len(world.ready) - 1))])
            clock.ready_from += 1
            if cell < 0:
                _pass_on(world, ~cell)
                continue
        else:
            clock.ready_from = clock.ready_to = 0
            if clock.kept != NOTHING:
                # The thread that kept its core has no more work.
                give_up(world)
            if clock.calendar_hole:
                close_hole(world)
            step_ns = (
                world.calendar[at(layout.ROOT)].time_ns
                if clock.calendar_end > layout.ROOT
                else NEVER_NS
            )
            time_ns = step_ns
            signals = clock.signal_ns <= step_ns
            if signals:
                time_ns = clock.signal_ns
                if time_ns == clock.direct_ns:
                    # Both are `NEVER_NS` at the end of the run.
                    return layout.DONE if time_ns == NEVER_NS else layout.DIRECT
            if time_ns > clock.until_ns:
                clock.now_ns = clock.until_ns
                return layout.DONE
            if clock.bin_ns:
                if time_ns >= clock.bins_end_ns:
                    clock.wanting = time_ns // clock.bin_ns
                    return layout.MORE_BINS
                clock.bin = time_ns // clock.bin_ns
            clock.now_ns = time_ns
            if signals:
                missing = _signal(world)
                if missing != GO_ON:
                    return missing
                continue
            clock.calendar_hole = 1
            cell = world.calendar[at(layout.ROOT)].cell
        # The first step of the ready list, or of the calendar if the list was empty.
        request = request_of(world, cell)
        step = step_of(world, cell)
        if is_due:
            _end_of_service(world, request, step, cell)
        missing = _complete(world, request, step, cell)
        if missing != GO_ON:
            # Back to the head of the list, for the next call.
            clock.ready_from -= 1
            world.ready[at(clock.ready_from & (len(world.ready) - 1))] = cell
            return missing

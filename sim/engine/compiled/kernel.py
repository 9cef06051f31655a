"""The inner loop of the compiled engine: the machine of sim/engine/ENGINE.md over flat arrays.

Read it next to ``simpy/engine.py``:

=====================  =========================================================
here                   there
=====================  =========================================================
``run_machine``        ``SimpyEngine.execute``, ``Kernel.work_off``
``_fill``              ``Stream.fill``
``_signal``            ``Stream._arrive``, ``Queued._look_at_queue``
``_end_of_service``    ``Fifo.end``
``_complete``          ``SimpyEngine.complete``
``_pass_on``           ``SimpyEngine.complete``
``skip``               ``SimpyEngine._skip_all``
``_begin``             ``SimpyEngine._begin``
``_pool``              ``Pool.begin``
``_pool_shared``       ``Pool.begin``
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

``calendar.py`` holds the calendar, ``queues.py`` the queues. ``service.py`` says how long a service takes,
``servers.py`` who is served next, ``cores.py`` what threads do on cores. ``requests.py`` issues requests,
``accounting.py`` counts, ``opcodes.py`` has the words that few templates use, ``actions.py`` what a director
does. ``world.py`` explains cells, records and the arrays of `World`.
"""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from stripesim.models import jit
from stripesim.sim.engine import conditions, draws, graph, shares
from stripesim.sim.engine import program as machine
from stripesim.sim.engine.compiled import (
    accounting,
    calendar,
    cores,
    opcodes,
    queues,
    requests,
    servers,
    service,
)
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
    skip,
    step_done,
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
    report,
    spawn,
)
from stripesim.sim.engine.compiled.servers import dispatch, give_up, hand_over, serve
from stripesim.sim.engine.compiled.service import sleep
from stripesim.sim.engine.compiled.world import GO_ON, NEVER_NS, NOBODY, World
from stripesim.sim.engine.graph import ACQUIRE, DELAY, NONE, RELEASE, USE
from stripesim.sim.engine.program import BATCH


@inlined
def _end_of_service(world: World, cell: int) -> None:
    """Hand over or free the server of a calendar entry that is a use."""
    clock = world.clock[0]
    request = world.requests[at(cell >> clock.cell_bits)]
    step = world.steps[at(request.first_step + (cell & ((1 << clock.cell_bits) - 1)))]
    if step.word != USE:
        return
    clock.uses += 1
    if step.special & layout.ONCE:
        account_service(world, request, cell)
    place = bound_to(world, request, step.role)
    resource = world.resources[at(place)]
    if resource.slice_ns and keep(world, place, cell):
        return
    hand_over(world, resource)
    if resource.discipline == BATCH:
        # The other members depend on their leader, which the caller completes first.
        member = world.links[at(cell)]
        while member != NOBODY:
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
        # It had to be woken.
        world.pending[at(cell)] = layout.UNIT_WOKEN
        append(world, cell)
        return
    if pool.waiting and not pool.stopped:
        # The unit changes hands; for the pool it is held without a gap.
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
    """Join the queue of a pool that classes share; or give a unit back."""
    place = world.shares[at(pool.share - 1)].resource
    if word == ACQUIRE:
        join(world, place, cell)
        dispatch(world, place, wide(0))
        return
    pool.free += 1
    pool.spent_ns += world.clock[0].now_ns
    if not dispatch(world, place, wide(1)):
        sleep(world, pool)
    world.pending[at(cell)] = layout.UNIT_MOVED
    append(world, cell)


@inlined
def _begin(world: World, request: Any, step: Any, cell: int) -> int:
    """Start a step whose predecessors have all completed; return when it ends.

    `NEVER_NS` if that is not known yet (it waits) or if it has completed at once.
    """
    clock = world.clock[0]
    word = step.word
    bound = NOBODY
    if step.role >= 0:
        bound = bound_to(world, request, step.role)
    # A step without a role that takes one is a `NONE` here.
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
                # A batch of one: nobody depends on its leader.
                world.links[at(cell)] = NOBODY
            resource.free -= 1
            return serve(world, resource, cell, wide(resource.wake_ns))
    elif word <= RELEASE:
        _pool(world, word, world.resources[at(bound)], cell)
    else:
        act(world, word, bound, request, cell)
    return NEVER_NS


@inlined
def _lacks_for(world: World, request: Any, step: Any, cell: int, room: int) -> int:
    """Tell what is missing to complete a step with more to it than the plain words, `GO_ON` if nothing."""
    clock = world.clock[0]
    if step.special & layout.NAMES_KEYS:
        slot = cell >> clock.cell_bits
        special = world.specials[
            at(request.first_step + (cell & ((1 << clock.cell_bits) - 1)))
        ]
        missing = lacks_room(world, slot, special)
        if missing != GO_ON:
            return missing
    if step.special & layout.SPAWNS:
        # As a reply it may let its stream issue more.
        if clock.slots_free < 1 + room:
            return layout.MORE_SLOTS
        if clock.logged + 1 + room > len(world.log):
            return layout.MORE_LOG
    return GO_ON


@inlined
def _skip_all(
    world: World, request: Any, first_cell: int, start: int, stop: int
) -> None:
    for place in range(start, stop):
        number_after = world.successors[at(place)]
        waits_for = world.steps[at(request.first_step + number_after)].waits_for
        skip(world, waits_for, first_cell + number_after)


@inlined
def _pass_on(world: World, cell: int) -> None:
    """Take a skipped step from the ready list: it only tells those behind it."""
    clock = world.clock[0]
    slot = cell >> clock.cell_bits
    request = world.requests[at(slot)]
    step = world.steps[at(request.first_step + (cell & ((1 << clock.cell_bits) - 1)))]
    first_place = wide(step.successors_from)
    last_place = wide(step.successors_to)
    _skip_all(world, request, slot << clock.cell_bits, first_place, last_place)
    step_done(world, slot)


@inlined
def _complete(world: World, cell: int) -> int:
    """Complete a step and start what it makes ready.

    Returns what is missing, with nothing changed, if its stream cannot issue yet.
    """
    clock = world.clock[0]
    slot = cell >> clock.cell_bits
    number_of_step = cell & ((1 << clock.cell_bits) - 1)
    request = world.requests[at(slot)]
    step = world.steps[at(request.first_step + number_of_step)]
    index = room = 0
    if step.is_reply:
        index = int(request.stream)
        if index < len(world.streams) and world.streams[at(index)].depth:
            room = lets_issue(world, request, world.streams[at(index)])
            missing = lacks(world, world.streams[at(index)], room) if room else GO_ON
            if missing != GO_ON:
                clock.wanting = index
                return missing
        if clock.reported == len(world.reports):
            return layout.MORE_REPORTS
    if step.special:
        missing = _lacks_for(world, request, step, cell, room)
        if missing != GO_ON:
            return missing
        if step.special & layout.TAKEN:
            account_taken(world, request, step, number_of_step)
        if step.special & layout.FOLLOWED:
            note_end(world, request, number_of_step)
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
    place_from = wide(step.successors_from)
    place_to = wide(step.successors_to)
    if step.special & (layout.BRANCHES | layout.SPAWNS):
        special = world.specials[at(request.first_step + number_of_step)]
        bound = bound_to(world, request, step.role) if step.role >= 0 else NOBODY
        if step.special & layout.SPAWNS:
            spawn(world, request, slot, special, bound)
        else:
            split = place_from + special.yes_count
            if holds(world, slot, special, bound):
                _skip_all(world, request, first_cell, split, place_to)
                place_to = split
            else:
                _skip_all(world, request, first_cell, place_from, split)
                place_from = split
    for place in range(place_from, place_to):
        number_after = world.successors[at(place)]
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
    """Return the stream whose arrival is due: the one of the smallest request number."""
    clock = world.clock[0]
    due = NOBODY
    for index in range(len(world.streams)):
        if world.streams[at(index)].arrival_ns == clock.signal_ns and (
            due == NOBODY
            or world.streams[at(index)].issued < world.streams[at(due)].issued
        ):
            due = index
    return due


@inlined
def _signal(world: World) -> int:
    """Make the look or the arrival that is due; return what is missing to do so."""
    clock = world.clock[0]
    if clock.look_ns == clock.signal_ns:
        dispatch(world, looked_at(world), wide(0))
        return GO_ON
    index = _arriving(world)
    missing = lacks(world, world.streams[at(index)], wide(2))
    if missing != GO_ON:
        clock.wanting = index
        return missing
    issue(world, index)
    next_arrival(world, index)
    next_signal(world)
    return GO_ON


@inlined
def _fill(world: World) -> int:
    """Issue what closed loops may have outstanding and note the first arrivals of open streams."""
    clock = world.clock[0]
    while clock.streams_filled < len(world.streams):
        index = clock.streams_filled
        stream = world.streams[at(index)]
        if stream.depth == 0 or stream.outstanding < stream.depth:
            missing = lacks(world, stream, wide(1))
            if missing != GO_ON:
                clock.wanting = index
                return missing
        if stream.outstanding < stream.depth and stream.at < stream.planned:
            issue(world, index)
            continue
        if stream.depth == 0:
            next_arrival(world, index)
        clock.streams_filled += 1
        next_signal(world)
    return GO_ON


def sources() -> str:
    """Return what changes with what is compiled from other files: their text, and constants of others.

    Numba's cache notices neither. The layout of records is part of the signature.
    """
    digest = sha256()
    for compiled in (
        opcodes,
        calendar,
        queues,
        service,
        cores,
        servers,
        accounting,
        requests,
    ):
        digest.update(Path(str(compiled.__file__)).read_bytes())
    for module in (layout, conditions, draws, graph, machine, shares):
        constants = sorted(
            (name, value)
            for name, value in vars(module).items()
            if isinstance(value, int)
        )
        digest.update(repr(constants).encode())
    return digest.hexdigest()


_SOURCES = sources()


def cached(function: Callable[..., Any]) -> Any:
    """Compile a function with all that it is made of, and keep what was compiled."""
    return jit.compiled(function, sources=_SOURCES, **OPTIONS)


@cached
def run_machine(world: World) -> int:
    """Run until the end or until something is missing; call again to go on where it stopped."""
    clock = world.clock[0]
    missing = _fill(world)
    if missing != GO_ON:
        return missing
    while True:
        if clock.ready_from != clock.ready_to:
            cell = wide(world.ready[at(clock.ready_from & (len(world.ready) - 1))])
            clock.ready_from += 1
            if cell < 0:
                _pass_on(world, ~cell)
                continue
        else:
            clock.ready_from = clock.ready_to = 0
            if clock.kept != NOBODY:
                # The thread that kept its core has found nothing more to do.
                give_up(world)
            if clock.calendar_hole:
                close_hole(world)
            step_ns = (
                world.times_ns[at(layout.ROOT)]
                if clock.calendar_end > layout.ROOT
                else NEVER_NS
            )
            time_ns = step_ns
            signals = clock.signal_ns <= step_ns
            if signals:
                time_ns = clock.signal_ns
                if time_ns == clock.direct_ns:
                    # So it is, too, when nothing is left to be done.
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
            cell = wide(world.cells[at(layout.ROOT)])
            _end_of_service(world, cell)
        # The ready list's first step, or the calendar's, before which the list was empty.
        missing = _complete(world, cell)
        if missing != GO_ON:
            # Back to the head of the list, to be completed when what is missing is there.
            clock.ready_from -= 1
            world.ready[at(clock.ready_from & (len(world.ready) - 1))] = cell
            return missing

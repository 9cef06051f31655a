"""The inner loop of the compiled engine: the machine of sim/engine/ENGINE.md over flat arrays.

Read beside ``simpy/engine.py``; functions of one name do the same thing:

=====================  ===============================================
here                   there
=====================  ===============================================
``run_machine``        ``SimpyEngine.execute``, ``_loop``
``_end_of_service``    the ``USE`` part of ``_loop``, ``_end_batch``
``_complete``          ``_complete`` (one step of it)
``_begin``             ``_complete`` (a step that became ready)
``_pool``              ``_pool``
``_account``           ``_account``
``_issue``             ``Stream.issue``
``_spawn``             ``_spawn``
=====================  ===============================================

The calendar stands in ``compiled/calendar.py``, queues and services in ``compiled/service.py``, the issue of
requests in ``compiled/requests.py``, accounting in ``compiled/accounting.py``, the words that few templates
use in ``compiled/opcodes.py``, what a director does in ``compiled/actions.py``. Cells, records and the arrays
of `World` are explained in ``compiled/world.py``.

This module imports numba; ``engine_compiled`` imports it only when something is to be run.
"""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from stripesim.models import jit
from stripesim.sim.engine import conditions, draws, graph, shares
from stripesim.sim.engine import program as machine
from stripesim.sim.engine.compiled import accounting as compiled_accounting
from stripesim.sim.engine.compiled import calendar as compiled_calendar
from stripesim.sim.engine.compiled import opcodes as compiled_words
from stripesim.sim.engine.compiled import requests as compiled_requests
from stripesim.sim.engine.compiled import service as compiled_service
from stripesim.sim.engine.compiled import shares as compiled_shares
from stripesim.sim.engine.compiled import world as compiled_world
from stripesim.sim.engine.compiled.accounting import account as _account
from stripesim.sim.engine.compiled.accounting import account_service as _account_service
from stripesim.sim.engine.compiled.accounting import account_taken as _account_taken
from stripesim.sim.engine.compiled.accounting import note_end as _note_end
from stripesim.sim.engine.compiled.calendar import close_hole as _close_hole
from stripesim.sim.engine.compiled.calendar import push as _push
from stripesim.sim.engine.compiled.opcodes import OPTIONS, at
from stripesim.sim.engine.compiled.opcodes import act as _act
from stripesim.sim.engine.compiled.opcodes import append as _append
from stripesim.sim.engine.compiled.opcodes import bound_to as _bound_role
from stripesim.sim.engine.compiled.opcodes import holds as _holds
from stripesim.sim.engine.compiled.opcodes import inlined as _inlined
from stripesim.sim.engine.compiled.opcodes import lacks_room as _lacks_room
from stripesim.sim.engine.compiled.opcodes import skip as _skip
from stripesim.sim.engine.compiled.opcodes import step_done as _step_done
from stripesim.sim.engine.compiled.opcodes import wide as _wide
from stripesim.sim.engine.compiled.requests import issue as _issue
from stripesim.sim.engine.compiled.requests import lacks as _lacks
from stripesim.sim.engine.compiled.requests import lets_issue as _lets_issue
from stripesim.sim.engine.compiled.requests import next_arrival as _next_arrival
from stripesim.sim.engine.compiled.requests import notice as _notice
from stripesim.sim.engine.compiled.requests import report as _report
from stripesim.sim.engine.compiled.requests import spawn as _spawn
from stripesim.sim.engine.compiled.service import dispatch as _dispatch
from stripesim.sim.engine.compiled.service import first as _first
from stripesim.sim.engine.compiled.service import give_up as _give_up
from stripesim.sim.engine.compiled.service import go_on as _go_on
from stripesim.sim.engine.compiled.service import hand_over as _hand_over
from stripesim.sim.engine.compiled.service import keep as _keep
from stripesim.sim.engine.compiled.service import serve_by as _serve_by
from stripesim.sim.engine.compiled.service import serve_idle as _serve_idle
from stripesim.sim.engine.compiled.service import sleep as _sleep
from stripesim.sim.engine.compiled.service import threads_idle as _threads_idle
from stripesim.sim.engine.compiled.service import wait as _wait
from stripesim.sim.engine.compiled.shares import join as _join
from stripesim.sim.engine.compiled.shares import looked_at as _looked_at
from stripesim.sim.engine.compiled.shares import next_signal as _next_signal
from stripesim.sim.engine.compiled.world import (
    BRANCHES,
    DIRECT,
    DONE,
    FLUSHING,
    FOLLOWED,
    GO_ON,
    LIVE,
    MERGE,
    MORE_BINS,
    MORE_LOG,
    MORE_REPORTS,
    MORE_SLOTS,
    NAMES_KEYS,
    NEVER_NS,
    NOBODY,
    ONCE,
    ROOT,
    SPAWNS,
    TAKEN,
    UNIT_MOVED,
    UNIT_WOKEN,
    World,
)
from stripesim.sim.engine.graph import ACQUIRE, DELAY, NONE, RELEASE, USE
from stripesim.sim.engine.program import BATCH


@_inlined
def _end_of_service(world: World, cell: int) -> None:
    """Hand over or free the server of a calendar entry that is a use."""
    clock = world.clock[0]
    request = world.requests[at(cell >> clock.cell_bits)]
    step = world.steps[at(request.first_step + (cell & ((1 << clock.cell_bits) - 1)))]
    if step.word != USE:
        return
    clock.uses += 1
    if step.special & ONCE:
        _account_service(world, request, cell)
    place = _bound_role(world, request, step.role)
    resource = world.resources[at(place)]
    if resource.slice_ns and _keep(world, place, cell):
        return
    _hand_over(world, resource)
    if resource.discipline == BATCH:
        # The other members depend on their leader, which the caller completes first.
        member = world.links[at(cell)]
        while member != NOBODY:
            clock.uses += 1
            _append(world, _wide(member))
            member = world.links[at(member)]


# -------------------------------------------------------------------------------- steps


@_inlined
def _pool(world: World, word: int, pool: Any, cell: int) -> None:
    """Take a unit of a pool or wait for it; or give one back."""
    now_ns = world.clock[0].now_ns
    if pool.share:
        _pool_shared(world, word, pool, cell)
        return
    if word == ACQUIRE:
        if pool.free == 0 or pool.stopped:
            _wait(world, pool, cell)
            return
        pool.free -= 1
        pool.spent_ns -= now_ns
        # It had to be woken.
        world.pending[at(cell)] = UNIT_WOKEN
        _append(world, cell)
        return
    if pool.waiting and not pool.stopped:
        # The unit changes hands; for the pool it is held without a gap.
        waiter = _first(world, pool)
        world.pending[at(waiter)] = UNIT_MOVED
        _append(world, waiter)
    else:
        pool.free += 1
        pool.spent_ns += now_ns
        _sleep(world, pool)
        if pool.partner:
            _serve_by(world, pool)
    world.pending[at(cell)] = UNIT_MOVED
    _append(world, cell)


@_inlined
def _pool_shared(world: World, word: int, pool: Any, cell: int) -> None:
    """Join the queue of a pool that classes share; or give a unit back."""
    place = world.shares[at(pool.share - 1)].resource
    if word == ACQUIRE:
        _join(world, place, cell)
        _dispatch(world, place, _wide(0))
        return
    pool.free += 1
    pool.spent_ns += world.clock[0].now_ns
    if not _dispatch(world, place, _wide(1)):
        _sleep(world, pool)
    world.pending[at(cell)] = UNIT_MOVED
    _append(world, cell)


@_inlined
def _begin(world: World, request: Any, step: Any, cell: int) -> int:
    """Start a step whose predecessors have all completed; return when it ends.

    `NEVER_NS` if that is not known yet (it waits) or if it has completed at once.
    """
    clock = world.clock[0]
    word = step.word
    bound = NOBODY
    if step.role >= 0:
        bound = _bound_role(world, request, step.role)
    # A step without a role that takes one is a `NONE` here.
    if word == NONE or (bound < 0 and step.role >= 0):
        _append(world, cell)
    elif word == DELAY:
        return int(clock.now_ns + step.demand_ns)
    elif word == USE:
        resource = world.resources[at(bound)]
        if resource.slice_ns and clock.kept == bound:
            end_ns = _go_on(world, bound, cell)
            if end_ns != NEVER_NS:
                return int(end_ns)
        if resource.free == 0:
            if resource.share > 0:
                _join(world, bound, cell)
            else:
                _wait(world, resource, cell)
        elif resource.share > 0:
            _join(world, bound, cell)
            _dispatch(world, bound, _wide(0))
        else:
            if resource.share:
                if resource.partner:
                    if not _threads_idle(world, resource):
                        _wait(world, resource, cell)
                        return NEVER_NS
                    world.resources[at(resource.partner - 1)].stopped |= FLUSHING
                # A batch of one: nobody depends on its leader.
                world.links[at(cell)] = NOBODY
            return _serve_idle(world, resource, cell)
    elif word <= RELEASE:
        _pool(world, word, world.resources[at(bound)], cell)
    else:
        _act(world, word, bound, request, cell)
    return NEVER_NS


@_inlined
def _lacks_for(world: World, request: Any, step: Any, cell: int, room: int) -> int:
    """Tell what is missing to complete a step with more to it than the plain words, `GO_ON` if nothing."""
    clock = world.clock[0]
    if step.special & NAMES_KEYS:
        slot = cell >> clock.cell_bits
        special = world.specials[at(request.first_step + (cell & ((1 << clock.cell_bits) - 1)))]
        missing = _lacks_room(world, slot, special)
        if missing != GO_ON:
            return missing
    if step.special & SPAWNS:
        # As a reply it may let its stream issue more.
        if clock.slots_free < 1 + room:
            return MORE_SLOTS
        if clock.logged + 1 + room > len(world.log):
            return MORE_LOG
    return GO_ON


@_inlined
def _bound_to(world: World, request: Any, step: Any) -> int:
    """Return the resource that a step names, `NOBODY` if none."""
    if step.role < 0:
        return NOBODY
    return int(_bound_role(world, request, step.role))


@_inlined
def _skip_all(world: World, request: Any, first_cell: int, start: int, stop: int) -> None:
    """Tell successors that a predecessor of theirs does not run."""
    for place in range(start, stop):
        number_after = world.successors[at(place)]
        waits_for = world.steps[at(request.first_step + number_after)].waits_for
        _skip(world, waits_for, first_cell + number_after)


@_inlined
def _pass_on(world: World, cell: int) -> None:
    """Take a skipped step from the ready list: it only tells those behind it."""
    clock = world.clock[0]
    slot = cell >> clock.cell_bits
    request = world.requests[at(slot)]
    step = world.steps[at(request.first_step + (cell & ((1 << clock.cell_bits) - 1)))]
    _skip_all(
        world,
        request,
        slot << clock.cell_bits,
        _wide(step.successors_from),
        _wide(step.successors_to),
    )
    _step_done(world, slot)


@_inlined
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
            room = _lets_issue(world, request, world.streams[at(index)])
            missing = _lacks(world, world.streams[at(index)], room) if room else GO_ON
            if missing != GO_ON:
                clock.wanting = index
                return missing
        if clock.reported == len(world.reports):
            return MORE_REPORTS
    if step.special:
        missing = _lacks_for(world, request, step, cell, room)
        if missing != GO_ON:
            return missing
        if step.special & TAKEN:
            _account_taken(world, request, step, number_of_step)
        if step.special & FOLLOWED:
            _note_end(world, request, number_of_step)
    if clock.bin_ns:
        _account(world, request, step, number_of_step)
    if step.is_reply:
        if index < len(world.streams):
            if world.streams[at(index)].reports:
                _report(world, index, request.number // len(world.streams))
            _notice(world, request, index, room)
        else:
            world.log[at(request.entry)].completed_ns = clock.now_ns
    first_cell = slot << clock.cell_bits
    place_from, place_to = _wide(step.successors_from), _wide(step.successors_to)
    if step.special & (BRANCHES | SPAWNS):
        special, bound = (
            world.specials[at(request.first_step + number_of_step)],
            _bound_to(world, request, step),
        )
        if step.special & SPAWNS:
            _spawn(world, request, slot, special, bound)
        else:
            split = place_from + special.yes_count
            if _holds(world, slot, special, bound):
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
            if after.waits_for == MERGE:
                pending = (pending | LIVE) - LIVE
                world.pending[at(cell_after)] = pending + LIVE
            else:
                world.pending[at(cell_after)] = pending
            if pending:
                continue
        end_ns = _begin(world, request, after, cell_after)
        if end_ns != NEVER_NS:
            _push(world, end_ns, cell_after)
    _step_done(world, slot)
    return GO_ON


# -------------------------------------------------------------------------- what is no step


@_inlined
def _arriving(world: World) -> int:
    """Return the stream whose arrival is due: the one of the smallest request number."""
    clock = world.clock[0]
    due = NOBODY
    for index in range(len(world.streams)):
        if world.streams[at(index)].arrival_ns == clock.signal_ns and (
            due == NOBODY or world.streams[at(index)].issued < world.streams[at(due)].issued
        ):
            due = index
    return due


@_inlined
def _signal(world: World) -> int:
    """Make the look or the arrival that is due; return what is missing to do so."""
    clock = world.clock[0]
    if clock.look_ns == clock.signal_ns:
        _dispatch(world, _looked_at(world), _wide(0))
        return GO_ON
    index = _arriving(world)
    missing = _lacks(world, world.streams[at(index)], _wide(2))
    if missing != GO_ON:
        clock.wanting = index
        return missing
    _issue(world, index)
    _next_arrival(world, index)
    _next_signal(world)
    return GO_ON


@_inlined
def _fill(world: World) -> int:
    """Issue what closed loops may have outstanding and note the first arrivals of open streams."""
    clock = world.clock[0]
    while clock.streams_filled < len(world.streams):
        index = clock.streams_filled
        stream = world.streams[at(index)]
        if stream.depth == 0 or stream.outstanding < stream.depth:
            missing = _lacks(world, stream, _wide(1))
            if missing != GO_ON:
                clock.wanting = index
                return missing
        if stream.outstanding < stream.depth and stream.at < stream.planned:
            _issue(world, index)
            continue
        if stream.depth == 0:
            _next_arrival(world, index)
        clock.streams_filled += 1
        _next_signal(world)
    return GO_ON


def sources() -> int:
    """Return a number that changes with what is compiled from other files."""
    digest = sha256()
    parts = (
        *(compiled_words, compiled_calendar, compiled_service, compiled_shares),
        *(compiled_accounting, compiled_requests),
    )
    for compiled in parts:
        digest.update(Path(str(compiled.__file__)).read_bytes())
    for module in (compiled_world, conditions, draws, graph, machine, shares):
        constants = sorted((name, value) for name, value in vars(module).items() if isinstance(value, int))
        digest.update(repr(constants).encode())
    return int.from_bytes(digest.digest()[:7], "little") | 1


def _entry(number: int) -> Callable[[World], int]:
    """Make the kernel's entry, which holds on to a number of its sources.

    Numba's cache notices changes of this file and of what an entry encloses, but neither of
    the other files nor of constants imported from them. The layout of records is part of the
    signature.
    """

    def run_machine(world: World) -> int:
        """Run until the end or until something is missing; call again to go on where it stopped."""
        assert number
        clock = world.clock[0]
        missing = _fill(world)
        if missing != GO_ON:
            return missing
        while True:
            if clock.ready_from != clock.ready_to:
                cell = _wide(world.ready[at(clock.ready_from & (len(world.ready) - 1))])
                clock.ready_from += 1
                if cell < 0:
                    _pass_on(world, ~cell)
                    continue
            else:
                clock.ready_from = clock.ready_to = 0
                if clock.kept != NOBODY:
                    # The thread that kept its core has found nothing more to do.
                    _give_up(world)
                if clock.calendar_hole:
                    _close_hole(world)
                step_ns = world.times_ns[at(ROOT)] if clock.calendar_end > ROOT else NEVER_NS
                time_ns, signals = step_ns, clock.signal_ns <= step_ns
                if signals:
                    time_ns = clock.signal_ns
                    if time_ns == clock.direct_ns:
                        # So it is, too, when nothing is left to be done.
                        return DONE if time_ns == NEVER_NS else DIRECT
                if time_ns > clock.until_ns:
                    clock.now_ns = clock.until_ns
                    return DONE
                if clock.bin_ns:
                    if time_ns >= clock.bins_end_ns:
                        clock.wanting = time_ns // clock.bin_ns
                        return MORE_BINS
                    clock.bin = time_ns // clock.bin_ns
                clock.now_ns = time_ns
                if signals:
                    missing = _signal(world)
                    if missing != GO_ON:
                        return missing
                    continue
                clock.calendar_hole = 1
                cell = _wide(world.cells[at(ROOT)])
                _end_of_service(world, cell)
            # The ready list's first step, or the calendar's, before which the list was empty.
            missing = _complete(world, cell)
            if missing != GO_ON:
                # Back to the head of the list, to be completed when what is missing is there.
                clock.ready_from -= 1
                world.ready[at(clock.ready_from & (len(world.ready) - 1))] = cell
                return missing

    return run_machine


def cached(function: Callable[..., Any]) -> Any:
    """Compile a function and keep what was compiled."""
    return jit.compiled(function, **OPTIONS)


run_machine: Any = cached(_entry(sources()))

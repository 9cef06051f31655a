"""The words of the SimPy engine that few templates use: gates, pins, tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stripesim.sim.engine.conditions import ALONE, ALWAYS, IDLE
from stripesim.sim.engine.graph import ENTER, LEAVE, PIN, TURN, UNPIN
from stripesim.sim.engine.simpy.requests import Request, Ticket

if TYPE_CHECKING:
    from stripesim.sim.engine.simpy.engine import SimpyEngine


def act(
    engine: SimpyEngine, word: int, bound: int, request: Request, step: int
) -> None:
    """Do what a word beyond the plain ones does when its step becomes ready."""
    dynamics = request.path.dynamics
    assert dynamics is not None
    if word in (PIN, UNPIN):
        pin(engine, request, dynamics.keys[step], 1 if word == PIN else -1)
    elif bound >= 0 and word in (ENTER, TURN, LEAVE):
        _gate(engine, word, bound, request, step)
        return
    engine.ready.append((request, step))


def _gate(
    engine: SimpyEngine, word: int, gate: int, request: Request, step: int
) -> None:
    """Take a ticket, wait for its turn, or give it back."""
    now_ns, tickets = int(engine.now), engine.gates[gate]
    if word == ENTER:
        ticket = request.tickets[step] = Ticket()
        tickets.append(ticket)
        engine.free[gate] -= 1
        engine.held_ns[gate] -= now_ns
        engine.ready.append((request, step))
        return
    dynamics = request.path.dynamics
    assert dynamics is not None
    if word == TURN:
        ticket = request.tickets[dynamics.tickets[step]]
        ticket.waiting = (request, step)
        engine.waited_ns[gate] -= now_ns
        pass_tickets(engine, gate)
        return
    ticket = request.tickets.pop(dynamics.tickets[step])
    ticket.passed = True
    engine.free[gate] += 1
    engine.held_ns[gate] += now_ns
    pass_tickets(engine, gate)
    engine.ready.append((request, step))


def pass_tickets(engine: SimpyEngine, gate: int) -> None:
    """Let tickets have their turn, the earliest first, up to the first that has not come to it."""
    tickets = engine.gates[gate]
    if engine.stopped[gate]:
        return
    while tickets and (tickets[0].passed or tickets[0].waiting):
        ticket = tickets.popleft()
        if ticket.waiting:
            engine.waited_ns[gate] += int(engine.now)
            engine.ready.append(ticket.waiting)
            ticket.waiting = None
        ticket.passed = True


def pin(engine: SimpyEngine, request: Request, which: int, change: int) -> None:
    """Pin or unpin the keys of a range."""
    assert request.keys is not None
    request.held[which] += change
    for key in request.keys[which]:
        count = engine.pins.pop(key, 0) + change
        if count:
            engine.pins[key] = count


def holds(engine: SimpyEngine, request: Request, step: int) -> bool:
    """Evaluate the test of a step."""
    path, dynamics = request.path, request.path.dynamics
    assert dynamics is not None
    test = dynamics.tests[step]
    if test == ALWAYS:
        return True
    bound: int = request.row[path.roles[step]]
    if test == IDLE:
        return bound < 0 or engine.free[bound] > 0
    if test == ALONE:
        mine = dynamics.tickets[step] in request.tickets
        return bound < 0 or engine.free[bound] == (0 if mine else 1)
    assert request.keys is not None
    keys = request.keys[dynamics.keys[step]]
    own = zip(request.held, request.keys, strict=True)
    mine_of = [(held, own_keys) for held, own_keys in own if held]
    return all(
        engine.pins.get(key, 0)
        > sum(held for held, own_keys in mine_of if key in own_keys)
        for key in keys
    )

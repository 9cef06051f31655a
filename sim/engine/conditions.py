"""What a branch may ask, and on which answers each step of a graph runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Kinds of test; sim/engine/ENGINE.md says when each holds.
NO_TEST, ALWAYS, PINNED, ALONE, IDLE = range(5)

# Key ranges that a request may carry.
KEY_RANGES = 2

# Sides of a branch.
YES = 1
NO = 2

# A conjunction of answers: (branch step, side). A step runs if all of them were given.
Condition = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class Test:
    """A question about the state of the machine; made by the functions below."""

    __test__ = False  # No test case, whatever pytest makes of the name.

    kind: int  # `ALWAYS`, `PINNED` …
    role: int = -1  # Role of the gate or the server that is asked; −1: none.
    keys: int = -1  # Which of the request's key ranges is meant; −1: none.
    ticket: int = -1  # The `enter` step whose ticket is meant; −1: none.


def always() -> Test:
    """Hold whatever the state."""
    return Test(ALWAYS)


def pinned(keys: int) -> Test:
    """Hold if every key of the request's range is pinned by another request (or if there is no key)."""
    return Test(PINNED, keys=keys)


def alone(ticket: int) -> Test:
    """Hold if nobody else has a ticket of the gate that the `enter` step `ticket` entered."""
    return Test(ALONE, ticket=ticket)


def idle(role: int) -> Test:
    """Hold if a server, a unit of a pool, or a gate is free; so does a role bound to nothing."""
    return Test(IDLE, role=role)


class ConditionError(ValueError):
    """A step asks for answers that exclude each other, or for a choice that no merge can make."""


def all_of(conditions: Iterable[Condition]) -> Condition:
    """Return the condition on which a step runs that needs all its predecessors."""
    whole: Condition = frozenset().union(*conditions)
    if len({branch for branch, _ in whole}) < len(whole):
        raise ConditionError(
            "got predecessors on both sides of a branch, wanted a merge of them"
        )
    return whole


def any_of(conditions: Iterable[Condition]) -> Condition:
    """Return the condition on which a merge runs: that at least one of its predecessors ran.

    >>> any_of([frozenset({(1, YES), (4, NO)}), frozenset({(1, NO), (4, NO)})]) == {(4, NO)}
    True
    """
    left = set(conditions)
    while len(left) > 1:
        narrower = {one for one in left if any(other < one for other in left)}
        closed = next(
            ((one, other) for one in left for other in left if _opposed(one, other)),
            None,
        )
        if narrower:
            left -= narrower
        elif closed:
            left -= set(closed)
            left.add(closed[0] & closed[1])
        else:
            raise ConditionError(
                "got sides of different branches, wanted each branch merged on its own first"
            )
    return left.pop()


def _opposed(one: Condition, other: Condition) -> bool:
    """Tell whether two conditions differ in one answer only."""
    apart = one ^ other
    return len(apart) == 2 and len({branch for branch, _ in apart}) == 1


def exclusive(one: Condition, other: Condition) -> bool:
    """Tell whether two conditions can never hold together."""
    return any((branch, YES + NO - side) in other for branch, side in one)


def balanced(changes: Iterable[tuple[Condition, int]]) -> bool:
    """Tell whether what is taken and given back, each under its condition, cancels on every answer.

    >>> taken = (frozenset(), +1)
    >>> balanced([taken, (frozenset({(3, YES)}), -1)])
    False
    >>> balanced([taken, (frozenset({(3, YES)}), -1), (frozenset({(3, NO)}), -1)])
    True
    """
    net: dict[Condition, int] = {}
    for condition, change in changes:
        net[condition] = net.get(condition, 0) + change
    while any(net.values()):
        deepest = max((one for one in net if net[one]), key=len)
        # The same on both sides of a branch is as much before the branch.
        for answer in deepest:
            other = deepest ^ {answer, (answer[0], YES + NO - answer[1])}
            if net.get(other, 0) == net[deepest]:
                before = deepest - {answer}
                net[before] = net.get(before, 0) + net[deepest]
                net[deepest] = net[other] = 0
                break
        else:
            return False
    return True


def ancestors(after: Sequence[Sequence[int]]) -> list[int]:
    """Return all that comes before each step, as a set of bits."""
    before: list[int] = []
    for steps in after:
        bits = 0
        for step in steps:
            bits |= before[step] | 1 << step
        before.append(bits)
    return before

"""Tests of a branch, and the conditions under which each step of a graph runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from stripesim.models.problems import ProblemsError

# Kinds of test. ENGINE.md in this folder defines when each holds.
NO_TEST, ALWAYS, PINNED, ALONE, IDLE, COMPLETED = range(6)

# Number of key ranges of a request.
KEY_RANGES = 2

# Sides of a branch.
YES = 1
NO = 2

# A conjunction of (branch step, side). A step runs if every branch took the named side.
Condition = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class Test:
    """A test of the state of the machine. Use the functions below to create one.

    Attributes
    ----------
    kind
        `ALWAYS`, `PINNED`, `ALONE`, `IDLE` or `COMPLETED`.
    role
        Role of the gate, server or pool under test, −1 for none.
    keys
        Index of the request's key range, −1 for none.
    ticket
        The `ENTER` step whose ticket is meant, −1 for none.
    step
        The step that may have completed, −1 for none.
    """

    __test__ = False  # Keeps pytest from collecting this class.

    kind: int
    role: int = -1
    keys: int = -1
    ticket: int = -1
    step: int = -1


def always() -> Test:
    """Return a test that always holds."""
    return Test(ALWAYS)


def pinned(keys: int) -> Test:
    """Return a test that holds if other requests pin every key of a range.

    Parameters
    ----------
    keys
        Index of the request's key range, 0 or 1. The test also holds if that range is empty.
    """
    return Test(PINNED, keys=keys)


def alone(ticket: int) -> Test:
    """Return a test that holds if no other ticket of a gate is out.

    Parameters
    ----------
    ticket
        The `ENTER` step that took this request's ticket. The test also holds if its role is unbound.
    """
    return Test(ALONE, ticket=ticket)


def idle(role: int) -> Test:
    """Return a test that holds if a server or unit is idle, or no ticket of a gate is out.

    Parameters
    ----------
    role
        Role of the server, pool or gate. The test also holds if the role is unbound.
    """
    return Test(IDLE, role=role)


def completed(step: int) -> Test:
    """Return a test that holds if another step of the same request has completed.

    Parameters
    ----------
    step
        A `use`, a `delay` or a `join` that runs whenever the test is evaluated.
    """
    return Test(COMPLETED, step=step)


def all_of(conditions: Iterable[Condition]) -> Condition:
    """Return the condition under which all predecessors of a step have run.

    Parameters
    ----------
    conditions
        Condition of each predecessor.

    Raises
    ------
    ProblemsError
        If two predecessors are on opposite sides of a branch.
    """
    answers: Condition = frozenset().union(*conditions)
    if len({branch for branch, _ in answers}) < len(answers):
        raise ProblemsError(
            "got predecessors on both sides of a branch, wanted a merge of them"
        )
    return answers


def any_of(conditions: Iterable[Condition]) -> Condition:
    """Return the condition under which at least one predecessor of a merge has run.

    Parameters
    ----------
    conditions
        Condition of each predecessor.

    Raises
    ------
    ProblemsError
        If the result is not a single conjunction.

    Examples
    --------
    >>> any_of([frozenset({(1, YES), (4, NO)}), frozenset({(1, NO), (4, NO)})]) == {(4, NO)}
    True
    """
    left = set(conditions)
    while len(left) > 1:
        narrower = {
            condition for condition in left if any(wider < condition for wider in left)
        }
        if narrower:
            left -= narrower
            continue
        opposed = next(filter(_opposed, combinations(left, 2)), None)
        if opposed is None:
            raise ProblemsError(
                "got sides of different branches, wanted each branch merged separately first"
            )
        left -= set(opposed)
        left.add(opposed[0] & opposed[1])
    return left.pop()


def _opposed(pair: tuple[Condition, Condition]) -> bool:
    """Return True if two conditions differ only in the side of one branch."""
    answers = pair[0] ^ pair[1]
    return len(answers) == 2 and len({branch for branch, _ in answers}) == 1


def exclusive(first: Condition, second: Condition) -> bool:
    """Return True if two conditions can never hold together."""
    return any((branch, YES + NO - side) in second for branch, side in first)


def balanced(changes: Iterable[tuple[Condition, int]]) -> bool:
    """Return True if acquisitions and returns cancel whichever sides the branches take.

    Parameters
    ----------
    changes
        Pairs of a condition and the change under it: +1 for an acquisition, −1 for a return.

    Examples
    --------
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
        deepest = max((condition for condition in net if net[condition]), key=len)
        # An equal change on both sides of a branch is the same change before the branch.
        for answer in deepest:
            mirrored = deepest ^ {answer, (answer[0], YES + NO - answer[1])}
            if net.get(mirrored, 0) == net[deepest]:
                before = deepest - {answer}
                net[before] = net.get(before, 0) + net[deepest]
                net[deepest] = net[mirrored] = 0
                break
        else:
            return False
    return True


def ancestors(after: Sequence[Sequence[int]], quorums: Mapping[int, int]) -> list[int]:
    """Return the ancestors of each step as a bit set.

    Parameters
    ----------
    after
        Predecessors of each step, all with lower numbers.
    quorums
        Number of predecessors that a step waits for, if not all of them, by step.

    Returns
    -------
    list of int
        One bit set per step: bit *i* is set if step *i* precedes it, whichever predecessors come first.

    Examples
    --------
    Step 3 waits for one of steps 1 and 2, and step 0 precedes both.

    >>> ancestors([[], [0], [0], [1, 2]], {3: 1})[3] == 0b0001
    True
    """
    before: list[int] = []
    for step, steps in enumerate(after):
        if step not in quorums:
            bits = 0
            for earlier in steps:
                bits |= before[earlier] | 1 << earlier
            before.append(bits)
            continue
        ways = [before[earlier] | 1 << earlier for earlier in steps]
        # Of n predecessors, any q include one of any n - q + 1.
        before.append(_in_at_least(len(steps) - quorums[step] + 1, ways))
    return before


def _in_at_least(count: int, sets: Sequence[int]) -> int:
    """Return the bits that are set in at least `count` of some bit sets."""
    # Entry i has the bits that are set in at least i of the sets so far.
    in_at_least = [-1] + [0] * count
    for bits in sets:
        for number in range(count, 0, -1):
            in_at_least[number] |= in_at_least[number - 1] & bits
    return in_at_least[count]

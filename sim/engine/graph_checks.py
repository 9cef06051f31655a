"""Check a complete op graph: that each step can run, and that what is taken is returned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from stripesim.models.problems import ProblemsError
from stripesim.sim.engine.conditions import (
    COMPLETED,
    Condition,
    Test,
    all_of,
    ancestors,
    any_of,
    balanced,
    exclusive,
)
from stripesim.sim.engine.graph import (
    ACQUIRE,
    BRANCH,
    ENTER,
    LEAVE,
    PIN,
    RELEASE,
    SIDE,
    TURN,
    UNPIN,
)

_POOL_WORDS = frozenset({ACQUIRE, RELEASE})
_TICKET_WORDS = frozenset({ENTER, PIN})


class Steps(Protocol):
    """Steps of a graph, by number. `stripesim.sim.engine.graph_builder.GraphBuilder` collects them."""

    name: str
    words: list[int]
    roles: list[int]
    labels: list[str]
    #: Predecessors of each step
    after: list[tuple[int, ...]]
    #: Attributes of the few steps that have them
    tests: dict[int, Test]
    merges: set[int]
    threads: dict[int, int]
    quorums: dict[int, int]


def check_graph(graph: Steps, reply: int) -> None:
    """Check the steps of a complete graph against each other.

    Raises
    ------
    ValueError
        If a step can never run, a merge matches no single condition, the reply may be skipped,
        or a unit, ticket or pin is not returned exactly once, after it was taken.
    """
    conditions = _conditions(graph)
    _check_reply(graph, reply, conditions)
    _check_pools(graph, conditions)
    _check_completions(graph, conditions)
    tickets = _steps_of_tickets(graph)
    if not tickets and not graph.threads and RELEASE not in graph.words:
        return
    order = _Order(graph, conditions)
    for taken, steps in tickets.items():
        _check_ticket_use(graph, taken, steps, order)
    for use, acquire in graph.threads.items():
        order.check_after(use, acquire)
    _check_releases(graph, order)


def _check_reply(graph: Steps, reply: int, conditions: Sequence[Condition]) -> None:
    """Check that each request is answered."""
    is_step = 0 <= reply < len(conditions)
    if not is_step or conditions[reply] or graph.words[reply] == BRANCH:
        raise ValueError(
            f"{graph.name}: got reply {reply}, wanted a step that always runs"
        )


def _check_pools(graph: Steps, conditions: Sequence[Condition]) -> None:
    """Check that a request returns as many units of each role as it acquires."""
    pools: dict[int, list[tuple[Condition, int]]] = {}
    for step, word in enumerate(graph.words):
        if word in _POOL_WORDS:
            change = 1 if word == ACQUIRE else -1
            pools.setdefault(graph.roles[step], []).append((conditions[step], change))
    for role, changes in pools.items():
        if not balanced(changes):
            acquired = sum(change > 0 for _, change in changes)
            released = len(changes) - acquired
            raise ValueError(
                f"{graph.name}: role {role}: got acquire × {acquired} and release × {released}, "
                "wanted one release for each acquire, whichever branch a request takes"
            )


def _check_completions(graph: Steps, conditions: Sequence[Condition]) -> None:
    """Check that steps whose completion is tested run whenever the test is evaluated."""
    for step, test in graph.tests.items():
        if test.kind == COMPLETED and not conditions[test.step] <= conditions[step]:
            raise ValueError(
                f"{graph.name}: {graph.labels[step]}: got a test of '{graph.labels[test.step]}', which "
                "may not run, wanted a step that runs whenever the test does"
            )


def _check_releases(graph: Steps, order: _Order) -> None:
    """Check that a unit is taken before it is returned, whichever steps of a quorum come first."""
    acquires: dict[int, list[int]] = {}
    for step, word in enumerate(graph.words):
        if word == ACQUIRE:
            acquires.setdefault(graph.roles[step], []).append(step)
        if word != RELEASE:
            continue
        taken = acquires.get(graph.roles[step], [])
        if not any(order.precedes(acquire, step) for acquire in taken):
            raise ValueError(
                f"{graph.name}: {graph.labels[step]}: wanted it to run only after an acquire of its role"
            )


def _steps_of_tickets(graph: Steps) -> dict[int, list[int]]:
    """Return the steps that refer to each `ENTER` or `PIN`."""
    steps: dict[int, list[int]] = {
        step: [] for step, word in enumerate(graph.words) if word in _TICKET_WORDS
    }
    for step, test in graph.tests.items():
        if test.ticket >= 0:
            steps[test.ticket].append(step)
    return steps


def _conditions(graph: Steps) -> list[Condition]:
    conditions: list[Condition] = []
    for step, before in enumerate(graph.after):
        if len(before) == 1 and before[0] < SIDE:
            conditions.append(conditions[before[0]])
            continue
        earlier = [
            conditions[index % SIDE]
            | ({(index % SIDE, index // SIDE)} if index >= SIDE else set())
            for index in before
        ]
        if step in graph.quorums and len(set(earlier)) > 1:
            raise ValueError(
                f"{graph.name}: {graph.labels[step]}: got predecessors that run under different "
                "conditions, wanted each branch merged first"
            )
        try:
            combined = any_of if step in graph.merges else all_of
            conditions.append(combined(earlier))
        except ProblemsError as error:
            raise ValueError(f"{graph.name}: {graph.labels[step]}: {error}") from None
    return conditions


def _check_ticket_use(
    graph: Steps, taken: int, steps: list[int], order: _Order
) -> None:
    """Check that a ticket or pin is returned exactly once, after its turn."""
    label = graph.labels[taken]
    changes = [(order.conditions[taken], 1)]
    for step in steps:
        if graph.words[step] in (LEAVE, UNPIN):
            changes.append((order.conditions[step], -1))
    if not balanced(changes):
        pair = "enter and leave" if graph.words[taken] == ENTER else "pin and unpin"
        raise ValueError(f"{graph.name}: {label}: {pair} do not balance")
    turns = [step for step in steps if graph.words[step] == TURN]
    for step in steps:
        order.check_after(step, taken)
        where = f"{graph.name}: {graph.labels[step]}"
        for turn in turns:
            if turn == step or order.exclusive(turn, step):
                continue
            if graph.words[step] == TURN and turn < step:
                raise ValueError(f"{where}: got a second turn of '{label}', wanted one")
            if graph.words[step] == LEAVE and not order.precedes(turn, step):
                raise ValueError(
                    f"{where}: wanted it after the turn '{graph.labels[turn]}'"
                )


class _Order:
    """The conditions and the order of a graph's steps."""

    def __init__(self, graph: Steps, conditions: Sequence[Condition]) -> None:
        self.graph = graph
        self.conditions = conditions
        self._ancestors = ancestors(
            [[index % SIDE for index in before] for before in graph.after],
            graph.quorums,
        )

    def precedes(self, first: int, step: int) -> bool:
        """Return True if a step comes before another whenever both run."""
        return bool(self._ancestors[step] >> first & 1)

    def exclusive(self, first: int, second: int) -> bool:
        """Return True if two steps never run in the same request."""
        return exclusive(self.conditions[first], self.conditions[second])

    def check_after(self, step: int, first: int) -> None:
        """Check that a step runs only after another one has run."""
        always_runs = self.conditions[first] <= self.conditions[step]
        if not self.precedes(first, step) or not always_runs:
            graph = self.graph
            raise ValueError(
                f"{graph.name}: {graph.labels[step]}: wanted it to run only after '{graph.labels[first]}'"
            )

"""Templates and requests as the SimPy engine reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from stripesim.sim.engine.conditions import NO_TEST
from stripesim.sim.engine.graph import (
    ACQUIRE,
    BRANCH,
    ENTER,
    LEAVE,
    NO_ROLE,
    RELEASE,
    STEP_BITS,
    TURN,
    USE,
    IntArray,
    Template,
)
from stripesim.sim.engine.program import PENDING, template_index
from stripesim.sim.engine.simpy.logs import Log

_AT_RESOURCE = (USE, ACQUIRE, RELEASE, ENTER, TURN, LEAVE)


class Station(Protocol):
    """A resource, as far as a request sees it."""

    index: int
    wake_ns: int

    @property
    def idle(self) -> bool:
        """Whether a server or a unit is free, or no ticket of a gate is out."""

    def begin(self, request: Request, step: Step) -> None:
        """Begin a step whose predecessors have completed."""


@dataclass(slots=True, eq=False)
class Step:
    """A step of a template; `stripesim.sim.engine.graph` explains the terms."""

    number: int
    word: int
    role: int
    demand_ns: int
    spread: int
    amounts: IntArray
    at_resource: bool
    # Its successors; those of a branch's no side stand apart.
    following: list[Step] = field(default_factory=list)
    otherwise: list[Step] = field(default_factory=list)
    is_merge: bool = False
    test: int = NO_TEST
    keys: int = -1
    # The step that entered the gate.
    ticket: int = -1
    # Index of the template that it spawns.
    spawned: int = -1
    # What it accounts once per service.
    once: IntArray | None = None
    # The acquire of the thread that does it.
    thread: Step | None = None
    share_class: int = 0
    cost: int = 1

    def bound(self, request: Request) -> bool:
        """Tell whether the step has no role, or one that is bound to a resource."""
        return self.role == NO_ROLE or request.row[self.role] is not None


class Path:
    """A template as linked steps.

    `counted` tells to count what each step takes, even where the plan could tell.
    """

    def __init__(
        self, number: int, templates: Sequence[Template], *, counted: bool
    ) -> None:
        template = templates[number]
        self.number = number
        self.predecessors: list[int] = template.predecessors.tolist()
        self.planned = template.planned and not counted
        self.steps = [
            Step(step, word, role, demand_ns, spread, amounts, word in _AT_RESOURCE)
            for step, word, role, demand_ns, spread, amounts in zip(
                range(template.steps),
                template.words.tolist(),
                template.roles.tolist(),
                template.demands_ns.tolist(),
                template.spreads.tolist(),
                template.amounts,
                strict=True,
            )
        ]
        self.reply = self.steps[template.reply]
        starts = template.successor_starts.tolist()
        successors = template.successors.tolist()
        for step in self.steps:
            behind = successors[starts[step.number] : starts[step.number + 1]]
            step.following = [self.steps[number] for number in behind]
        if template.dynamics:
            self._add_dynamics(template, templates)

    def _add_dynamics(self, template: Template, templates: Sequence[Template]) -> None:
        dynamics = template.dynamics
        assert dynamics is not None
        for step in self.steps:
            number = step.number
            step.is_merge = bool(dynamics.merges[number])
            step.test = int(dynamics.tests[number])
            step.keys = int(dynamics.keys[number])
            step.ticket = int(dynamics.tickets[number])
            step.share_class = int(dynamics.classes[number])
            step.cost = int(dynamics.costs[number])
            if dynamics.once[number].any():
                step.once = dynamics.once[number]
            if dynamics.threads[number] >= 0:
                step.thread = self.steps[dynamics.threads[number]]
            if dynamics.spawns[number] >= 0:
                spawned = dynamics.spawned[dynamics.spawns[number]]
                step.spawned = template_index(templates, spawned)
            if step.word == BRANCH:
                yes = dynamics.yes_counts[number]
                step.otherwise = step.following[yes:]
                step.following = step.following[:yes]


class Request:
    """A request in flight."""

    __slots__ = (
        "awake",
        "ends_ns",
        "key",
        "keys",
        "log",
        "number",
        "path",
        "pending",
        "pinned",
        "place",
        "reached",
        "row",
        "seed",
        "skipped",
        "steps_left",
        "woken",
    )

    def __init__(
        self,
        number: int,
        path: Path,
        row: Sequence[Station | None],
        keys: Sequence[range],
        log: Log,
        place: int,
        seed: int,
    ) -> None:
        self.number = number
        self.key = number << STEP_BITS
        self.path = path
        # The resource of each role. The last entry, None, serves steps without a role.
        self.row = row
        self.keys = keys
        # Where it is noted, and its place there.
        self.log = log
        self.place = place
        self.seed = seed
        # Predecessors of each step that have not completed; a skipped one stays among them, unless the step
        # is a merge.
        self.pending = path.predecessors.copy()
        self.skipped: set[Step] = set()
        # Merges of which a predecessor has completed.
        self.reached: set[Step] = set()
        # Acquires that found their unit idle, so had to wake a thread; those whose wake-up a core has served.
        self.woken: set[Step] = set()
        self.awake: set[Step] = set()
        # How often it has pinned each of its key ranges.
        self.pinned = [0] * len(keys)
        # When its steps ended, where it is followed.
        self.ends_ns: list[int] | None = None
        self.steps_left = len(path.steps)

    def follow(self, ends_ns: list[int]) -> None:
        """Note the ends of steps in a list, from now on."""
        ends_ns[:] = [PENDING] * len(self.path.steps)
        self.ends_ns = ends_ns

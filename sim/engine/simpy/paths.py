"""Templates and requests in the form that the SimPy engine executes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from stripesim.sim.engine.conditions import COMPLETED, NO_TEST
from stripesim.sim.engine.graph import (
    ACQUIRE,
    BRANCH,
    ENTER,
    LEAVE,
    NO_ROLE,
    ORDER_BITS,
    RELEASE,
    TURN,
    USE,
    IntArray,
    Template,
)
from stripesim.sim.engine.program import PENDING, template_index
from stripesim.sim.engine.simpy.logs import Log

_AT_RESOURCE = (USE, ACQUIRE, RELEASE, ENTER, TURN, LEAVE)


class Station(Protocol):
    """The part of a resource that a request uses."""

    index: int
    wake_ns: int

    @property
    def idle(self) -> bool:
        """True if a server or unit is idle, or no ticket of a gate is out."""

    def begin(self, request: RequestInFlight, step: PathStep) -> None:
        """Begin a step whose predecessors have completed."""


@dataclass(slots=True, eq=False)
class PathStep:
    """A step of a template. `stripesim.sim.engine.graph` defines the attributes."""

    number: int
    word: int
    role: int
    demand_ns: int
    spread: int
    amounts: IntArray
    at_resource: bool
    # Its successors. Those on the no side of a branch are in `otherwise`.
    following: list[PathStep] = field(default_factory=list)
    otherwise: list[PathStep] = field(default_factory=list)
    is_merge: bool = False
    test: int = NO_TEST
    keys: int = -1
    # The `enter` step of the ticket, or the step whose completion is tested.
    ticket: int = -1
    # True if a test refers to its completion.
    is_tested: bool = False
    # Index of the spawned template.
    spawned: int = -1
    # Amounts accounted once per service.
    once: IntArray | None = None
    # The acquire of the thread that performs it.
    thread: PathStep | None = None
    share_class: int = 0
    cost: int = 1
    # Part of the demand that is shorter the more steps wait.
    position_ns: int = 0

    def bound(self, request: RequestInFlight) -> bool:
        """Return True if the step has no role, or one that is bound to a resource."""
        return self.role == NO_ROLE or request.row[self.role] is not None


class Path:
    """A template as linked steps.

    Parameters
    ----------
    number
        Index of the template.
    templates
        All templates of the book.
    counted
        True to count the amounts of each step, even if the plan states them.
    """

    def __init__(
        self, number: int, templates: Sequence[Template], *, counted: bool
    ) -> None:
        template = templates[number]
        self.number = number
        self.predecessors: list[int] = template.predecessors.tolist()
        self.planned = template.planned and not counted
        self.steps = [
            PathStep(step, word, role, demand_ns, spread, amounts, word in _AT_RESOURCE)
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
            step.position_ns = int(dynamics.positions_ns[number])
            if step.test == COMPLETED:
                self.steps[step.ticket].is_tested = True
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


class RequestInFlight:
    """A request in flight."""

    __slots__ = (
        "awake",
        "completed",
        "ends_ns",
        "key",
        "keys",
        "log",
        "number",
        "order",
        "path",
        "pending",
        "pinned",
        "position",
        "reached",
        "row",
        "saved_ns",
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
        position: int,
        seed: int,
    ) -> None:
        self.number = number
        self.order = number << ORDER_BITS
        self.path = path
        # The resource of each role. The last entry, None, serves steps without a role.
        self.row = row
        self.keys = keys
        # Position of the request in its log.
        self.log = log
        self.position = position
        self.seed = seed
        # Outstanding predecessors of each step. A skipped predecessor stays outstanding, except for a
        # merge. Below 0 for a join for the first few, once others complete.
        self.pending = path.predecessors.copy()
        self.skipped: set[PathStep] = set()
        # Merges that have a completed predecessor.
        self.reached: set[PathStep] = set()
        # Completed steps whose completion is tested.
        self.completed: set[PathStep] = set()
        # Acquires that had to wake their thread, and those whose wake-up time a core has
        # spent.
        self.woken: set[PathStep] = set()
        self.awake: set[PathStep] = set()
        # Number of times it has pinned each of its key ranges.
        self.pinned = [0] * len(keys)
        # Completion times of its steps, and times saved because others waited, if it is followed.
        self.ends_ns: list[int] | None = None
        self.saved_ns: list[int] | None = None
        self.steps_left = len(path.steps)

    def follow(self, ends_ns: list[int], saved_ns: list[int]) -> None:
        """Start to record the completion times and saved times of steps in lists."""
        ends_ns[:] = [PENDING] * len(self.path.steps)
        saved_ns[:] = [0] * len(self.path.steps)
        self.ends_ns = ends_ns
        self.saved_ns = saved_ns

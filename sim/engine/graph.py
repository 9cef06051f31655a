"""Op graphs: the path of a request as data (steps with predecessors, in flat arrays)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from stripesim.models.clock import round_ns
from stripesim.models.problems import Problem, ProblemsError, StepsError
from stripesim.sim.engine.conditions import (
    ALONE,
    COMPLETED,
    KEY_RANGES,
    NO,
    NO_TEST,
    PINNED,
    YES,
    Condition,
    Test,
    all_of,
    always,
    ancestors,
    any_of,
    balanced,
    exclusive,
)

IntArray = npt.NDArray[np.int64]

# Kinds of step. ENGINE.md in this folder defines what each does.
NONE, USE, DELAY, ACQUIRE, RELEASE = range(5)
ENTER, TURN, LEAVE, PIN, UNPIN, BRANCH, SPAWN = range(5, 12)
WORDS = (
    "none",
    "use",
    "delay",
    "acquire",
    "release",
    "enter",
    "turn",
    "leave",
    "pin",
    "unpin",
    "branch",
    "spawn",
)

_POOL_WORDS = frozenset({ACQUIRE, RELEASE})
_TICKET_WORDS = frozenset({ENTER, PIN})

#: Bits of a step in the key of a random draw. Later steps share the draws of another request's first steps.
STEP_BITS = 12
#: Bits of a step in the order of simultaneous events, which bound the steps of a template.
ORDER_BITS = 14
STEPS_MAX = 1 << ORDER_BITS
DEMAND_MAX_NS = 1 << 42
# Random factors reach 128, so the product with a spread demand fits in 64 bits.
DEMAND_SPREAD_MAX_NS = 1 << 36

# Amounts that a step can account, in the column order of `Template.amounts`.
COUNTERS = (
    "device_read_bytes",
    "device_write_bytes",
    "device_read_ops",
    "device_write_ops",
    "private_net_bytes",
    "public_net_bytes",
    "messages",
    "cpu_ns",
    "context_switches",
    "encode_bytes",
    "device_log_bytes",
    "coding_ns",
    # Parts of `cpu_ns` by class of thread. Worker threads account for the remainder.
    "messenger_ns",
    "kv_ns",
    # Processor time of gateways, a part of `cpu_ns` if they run on storage hosts.
    "gateway_ns",
)
COUNTER_INDEX = {name: index for index, name in enumerate(COUNTERS)}

# Distributions of a service time around its mean. `FIXED` has no spread.
FIXED, SSD_READ, SSD_WRITE = range(3)

NO_ROLE = -1
_WORDS_WITH_ROLE = (USE, ACQUIRE, RELEASE, ENTER)
# Marks a step outside any phase or shard. Engines read neither attribute.
NO_PHASE = NO_SHARD = -1
_NOTHING: Mapping[str, int] = {}
# Limits for queues shared by classes: number of classes, and cost of one item.
CLASSES_MAX = 64
COST_MAX = 1 << 32
# One side of a branch, as a predecessor, is encoded as branch step + side * _SIDE.
_SIDE = 1 << 20


@dataclass(frozen=True)
class Dynamics:
    """Per-step attributes of templates that use more than the plain words.

    `GraphBuilder` documents the mechanisms.

    Attributes
    ----------
    merges
        True for a step that waits only for those predecessors that run, shape (steps,).
    tests
        Kind of test of a `BRANCH` or `SPAWN`, shape (steps,). The role tested is the step's role.
    keys
        Key range used by the step or its test, shape (steps,), −1 for none.
    tickets
        The `ENTER` step whose ticket the step or its test refers to, or the step whose completion it
        tests, shape (steps,), −1 for none.
    yes_counts
        Number of successors on the yes side of a `BRANCH`, shape (steps,). They come first.
    spawns
        Index into `spawned` of a `SPAWN`, shape (steps,), −1 for none.
    spawned
        The detached graphs.
    once
        Amounts that a `USE` accounts once per service, however many steps share the service,
        shape (steps, len(COUNTERS)).
    threads
        The `ACQUIRE` of the thread that performs a `USE`, shape (steps,), −1 for none. The use
        takes longer if that thread had to be woken.
    classes, costs
        Class and cost of a `USE` or `ACQUIRE` in a queue shared by classes, shape (steps,).
    """

    merges: npt.NDArray[np.bool_]
    tests: IntArray
    keys: IntArray
    tickets: IntArray
    yes_counts: IntArray
    spawns: IntArray
    spawned: tuple[Template, ...]
    once: IntArray
    threads: IntArray
    classes: IntArray
    costs: IntArray


@dataclass(frozen=True)
class Template:
    """One compiled path, which an engine executes for each request.

    Attributes
    ----------
    name
        Name for messages and drawings.
    words, roles, spreads
        Kind of each step (`USE` …), its role (`NO_ROLE` for none) and its distribution, shape (steps,).
    demands_ns
        Demand of each `USE` and `DELAY` [ns], shape (steps,).
    predecessors
        Number of predecessors that each step waits for, shape (steps,). Only step 0 has none. A join for the
        first few has more predecessors than it waits for.
    successor_starts
        Offset of each step's successors in `successors`, shape (steps + 1,).
    successors
        Successors of all steps, ascending within a step. A `BRANCH` lists its yes side first,
        then its no side, each ascending.
    reply
        The step whose completion completes the request for its client.
    amounts
        Amounts that each step accounts on completion if its role is bound, shape (steps, len(COUNTERS)).
    labels
        A few words per step, for drawings only.
    phases
        Purpose of each step's time, in terms of the modelled system. `NO_PHASE` for none.
    shards
        Shard whose sub-operation each step belongs to. `NO_SHARD` for the request as a whole.
    dynamics
        Attributes of the dynamic words, or None if all words are plain.
    """

    name: str
    words: IntArray
    roles: IntArray
    spreads: IntArray
    demands_ns: IntArray
    predecessors: IntArray
    successor_starts: IntArray
    successors: IntArray
    reply: int
    amounts: IntArray
    labels: tuple[str, ...]
    phases: tuple[int, ...]
    shards: tuple[int, ...]
    dynamics: Dynamics | None = None

    @property
    def steps(self) -> int:
        """Number of steps, including the issue."""
        return len(self.words)

    @cached_property
    def planned(self) -> bool:
        """True if `totals` and `uses` are exact: no branch, nothing accounted per service."""
        return self.dynamics is None or not (
            (self.words == BRANCH).any() or self.dynamics.once.any()
        )

    @cached_property
    def keyed(self) -> bool:
        """True if requests need key ranges, for this template or one that it spawns."""
        if self.dynamics is None:
            return False
        asks = self.dynamics.tests == PINNED
        names = np.isin(self.words, (PIN, UNPIN))
        return bool((asks | names).any()) or any(
            template.keyed for template in self.dynamics.spawned
        )

    @cached_property
    def highest_role(self) -> int:
        """Highest role that a step of this template, or of one that it spawns, names."""
        spawned = self.dynamics.spawned if self.dynamics else ()
        own = int(self.roles.max())
        return max([own, *(template.highest_role for template in spawned)])

    @cached_property
    def highest_spread(self) -> int:
        """Highest distribution that a step of this template, or of one that it spawns, names."""
        spawned = self.dynamics.spawned if self.dynamics else ()
        own = int(self.spreads.max())
        return max([own, *(template.highest_spread for template in spawned)])

    @cached_property
    def role_words(self) -> IntArray:
        """Distinct (role, word, test) triples of the steps that name a role, shape (n, 3)."""
        tests = self.dynamics.tests if self.dynamics else np.zeros_like(self.words)
        named = set(
            zip(self.roles.tolist(), self.words.tolist(), tests.tolist(), strict=True)
        )
        triples = sorted(triple for triple in named if triple[0] >= 0)
        return _int64(triples).reshape(-1, 3)

    def totals(self, bound: npt.NDArray[np.bool_]) -> IntArray:
        """Sum the amounts that one request accounts, or each of several.

        Parameters
        ----------
        bound
            True for each bound role, shape (roles,), or (n, roles) for n requests.

        Returns
        -------
        ndarray of int64
            Amount per counter and then the number of `USE` steps, shape (len(COUNTERS) + 1,), or with n rows.
        """
        by_role = self._by_role
        totals: IntArray = by_role[0] + bound[..., : len(by_role) - 1] @ by_role[1:]
        return totals

    @cached_property
    def _by_role(self) -> IntArray:
        """Amounts and uses of steps without a role, then of each role, shape (1 + roles, counters + 1)."""
        counted = np.column_stack([self.amounts, self.words == USE])
        sums = np.zeros((self.roles.max() + 2, counted.shape[1]), dtype=np.int64)
        np.add.at(sums, self.roles - NO_ROLE, counted)
        return sums


def _steps_error(name: str, steps: int) -> StepsError:
    wanted = f"at most {STEPS_MAX}"
    return StepsError(Problem(place=name, got=f"{steps} steps", wanted=wanted))


def chained(first: Template, second: Template, *, name: str) -> Template:
    """Compile a path that begins with the reply of another path.

    Parameters
    ----------
    first
        The path that runs first. Its steps after the reply do not delay the second path.
    second
        The path that begins with the reply of the first, and whose reply completes the request.
    name
        Name of the compiled path.

    Raises
    ------
    StepsError
        If both together have more than `STEPS_MAX` steps.
    """
    steps = first.steps + second.steps
    if steps > STEPS_MAX:
        raise _steps_error(name, steps)
    # The issue of the second path follows the reply of the first.
    link = int(first.successor_starts[first.reply + 1])
    successors = np.insert(first.successors, link, first.steps)
    starts = first.successor_starts.copy()
    starts[first.reply + 1 :] += 1
    predecessors = np.concatenate([first.predecessors, second.predecessors])
    predecessors[first.steps] = 1
    columns = {
        column: np.concatenate([getattr(first, column), getattr(second, column)])
        for column in ("words", "roles", "spreads", "demands_ns", "amounts")
    }
    dynamics = None
    if first.dynamics is not None or second.dynamics is not None:
        dynamics = _chained_dynamics(first, second)
    return Template(
        name=name,
        **columns,
        predecessors=predecessors,
        successor_starts=np.concatenate(
            [starts, second.successor_starts[1:] + starts[-1]]
        ),
        successors=np.concatenate([successors, second.successors + first.steps]),
        reply=first.steps + second.reply,
        labels=first.labels + second.labels,
        phases=first.phases + second.phases,
        shards=first.shards + second.shards,
        dynamics=dynamics,
    )


def _chained_dynamics(first: Template, second: Template) -> Dynamics:
    """Join the dynamics of two paths, of which one may have none."""
    before = first.dynamics or _plain_dynamics(first.steps)
    after = second.dynamics or _plain_dynamics(second.steps)
    same = ("merges", "tests", "keys", "yes_counts", "once", "classes", "costs")
    columns: dict[str, Any] = {
        column: np.concatenate([getattr(before, column), getattr(after, column)])
        for column in same
    }
    shifts = {
        "tickets": first.steps,
        "threads": first.steps,
        "spawns": len(before.spawned),
    }
    for column, shift in shifts.items():
        own = getattr(after, column)
        shifted = np.where(own >= 0, own + shift, own)
        columns[column] = np.concatenate([getattr(before, column), shifted])
    return Dynamics(**columns, spawned=before.spawned + after.spawned)


def _plain_dynamics(steps: int) -> Dynamics:
    """Return the dynamics of steps that use only the plain words."""
    nothing = np.full(steps, -1, dtype=np.int64)
    return Dynamics(
        merges=np.zeros(steps, dtype=np.bool_),
        tests=np.full(steps, NO_TEST, dtype=np.int64),
        keys=nothing,
        tickets=nothing,
        yes_counts=nothing,
        spawns=nothing,
        spawned=(),
        once=np.zeros((steps, len(COUNTERS)), dtype=np.int64),
        threads=nothing,
        classes=np.zeros(steps, dtype=np.int64),
        costs=np.ones(steps, dtype=np.int64),
    )


@dataclass
class GraphBuilder:
    """Collect steps and compile them to a `Template`.

    Step 0 is the issue of the request. Each later step names its predecessors, which must
    already exist, so graphs are acyclic by construction. The methods that add a step share
    these parameters:

    - `role`: index of the role whose binding decides which resource the step uses.
    - `after`: predecessors, as step numbers or as sides returned by `branch`.
    - `label`: a few words for messages and drawings.
    - `phase`, `shard`: see `Template.phases` and `Template.shards`.

    They return the number of the new step and raise `ValueError` if a predecessor does not
    exist yet or an argument is out of range.

    >>> graph = GraphBuilder("a read")
    >>> disk = graph.use(0, 50_000, after=[graph.issue], label="read")
    >>> graph.finish(reply=disk).steps
    2
    """

    name: str
    words: list[int] = field(default_factory=lambda: [NONE])
    roles: list[int] = field(default_factory=lambda: [NO_ROLE])
    spreads: list[int] = field(default_factory=lambda: [FIXED])
    demands_ns: list[int] = field(default_factory=lambda: [0])
    after: list[tuple[int, ...]] = field(default_factory=lambda: [()])
    labels: list[str] = field(default_factory=lambda: ["issue"])
    phases: list[int] = field(default_factory=lambda: [NO_PHASE])
    shards: list[int] = field(default_factory=lambda: [NO_SHARD])
    amounts: list[Mapping[str, int]] = field(default_factory=lambda: [_NOTHING])
    # Attributes of the few steps that have them, by step.
    tests: dict[int, Test] = field(default_factory=dict)
    spawned: dict[int, Template] = field(default_factory=dict)
    once: dict[int, dict[str, int]] = field(default_factory=dict)
    merges: set[int] = field(default_factory=set)
    threads: dict[int, int] = field(default_factory=dict)
    shared: dict[int, tuple[int, int]] = field(default_factory=dict)
    # Number of predecessors that a join waits for, if not all of them.
    quorums: dict[int, int] = field(default_factory=dict)

    @property
    def issue(self) -> int:
        """The step that completes when the request is issued."""
        return 0

    def use(
        self,
        role: int,
        demand_ns: float,
        *,
        after: Iterable[int],
        label: str,
        spread: int = FIXED,
        phase: int = NO_PHASE,
        shard: int = NO_SHARD,
        **amounts: int,
    ) -> int:
        """Add a service: queue for a server, then hold it for a time.

        Parameters
        ----------
        demand_ns
            Mean service time [ns], below `DEMAND_MAX_NS`, or below `DEMAND_SPREAD_MAX_NS` with a spread.
        spread
            Distribution of the service time around its mean: a row of `Program.factor_tables`.
        **amounts
            Amount per counter, accounted when the step completes.
        """
        return self._add(
            USE, role, demand_ns, after, label, phase, shard, spread, amounts
        )

    def on_thread(self, use: int, acquire: int) -> None:
        """Name the thread that performs a use: a unit of a pool.

        The use takes longer if its thread had to be woken.

        Parameters
        ----------
        use
            The `USE` step.
        acquire
            The earlier `ACQUIRE` step that takes the unit.

        Raises
        ------
        ValueError
            If either step has a different kind, or `acquire` does not precede `use`.
        """
        if not 0 <= use < len(self.words) or self.words[use] != USE:
            raise ValueError(
                f"{self.name}: got step {use}, wanted a use to run on a thread"
            )
        if not 0 <= acquire < use or self.words[acquire] != ACQUIRE:
            raise ValueError(
                f"{self.name}: {self.labels[use]}: got step {acquire}, wanted an acquire before it"
            )
        self.threads[use] = acquire

    def in_class(self, step: int, number: int, cost: int) -> None:
        """Set the class and cost of a step in a queue shared by classes.

        Parameters
        ----------
        step
            A `USE` or `ACQUIRE` step.
        number
            Class, 0 to `CLASSES_MAX` − 1.
        cost
            Cost in the unit of the queue's rates, 1 to `COST_MAX` − 1.

        Raises
        ------
        ValueError
            If the step has a different kind, or a number is out of range.
        """
        if not 0 <= step < len(self.words) or self.words[step] not in (USE, ACQUIRE):
            raise ValueError(
                f"{self.name}: got step {step}, wanted a use or an acquire to put in a class"
            )
        if not 0 <= number < CLASSES_MAX:
            raise ValueError(
                f"{self.name}: {self.labels[step]}: got class {number}, wanted 0 to {CLASSES_MAX - 1}"
            )
        if not 0 < cost < COST_MAX:
            raise ValueError(
                f"{self.name}: {self.labels[step]}: got cost {cost}, wanted 1 to 2**32 - 1"
            )
        self.shared[step] = number, cost

    def per_service(self, use: int, **amounts: int) -> None:
        """Account amounts of a use once per service instead of once per step.

        Parameters
        ----------
        use
            The `USE` step. If several steps share a service, only the first of them accounts.
        **amounts
            Amount per counter.

        Raises
        ------
        ValueError
            If the step is not a `USE`, or a counter is unknown.
        """
        if not 0 <= use < len(self.words) or self.words[use] != USE:
            raise ValueError(
                f"{self.name}: got step {use}, wanted a use, to account once per service"
            )
        self._check_counters(self.labels[use], amounts)
        if any(amounts.values()):
            self.once[use] = amounts

    def delay(
        self,
        role: int,
        demand_ns: float,
        *,
        after: Iterable[int],
        label: str,
        phase: int = NO_PHASE,
        shard: int = NO_SHARD,
    ) -> int:
        """Add a delay that needs no server.

        Parameters
        ----------
        role
            Role that enables the delay: unbound, the step takes no time. `NO_ROLE` always delays.
        demand_ns
            Duration [ns], below `DEMAND_MAX_NS`.
        """
        return self._add(DELAY, role, demand_ns, after, label, phase, shard)

    def acquire(
        self,
        role: int,
        *,
        after: Iterable[int],
        label: str,
        phase: int = NO_PHASE,
        shard: int = NO_SHARD,
    ) -> int:
        """Add a wait for a unit of a pool."""
        return self._add(ACQUIRE, role, 0, after, label, phase, shard)

    def release(
        self, role: int, *, after: Iterable[int], label: str, shard: int = NO_SHARD
    ) -> int:
        """Add the return of a unit to its pool."""
        return self._add(RELEASE, role, 0, after, label, NO_PHASE, shard)

    def join(
        self, after: Iterable[int], *, first: int | None = None, label: str = "join"
    ) -> int:
        """Wait for all of several steps, or for the first few of them to complete.

        A single predecessor needs no join: its own number is returned.

        Parameters
        ----------
        first
            Number of predecessors to wait for, from 1. By default all.

        Notes
        -----
        Predecessors that complete later change nothing for the join. Their steps run to their end: they
        wait, use resources and account amounts as others do, and the request stays in flight until they
        have ended.

        >>> graph = GraphBuilder("a write quorum of 2 of 3")
        >>> writes = [graph.use(copy, 50, after=[0], label="write") for copy in range(3)]
        >>> graph.finish(reply=graph.join(writes, first=2)).predecessors[-1]
        np.int64(2)
        """
        steps = tuple(dict.fromkeys(after))
        if first is not None and not 1 <= first <= len(steps):
            raise ValueError(
                f"{self.name}: {label}: got first = {first}, wanted 1 to {len(steps)}, the number of "
                "predecessors"
            )
        if len(steps) == 1:
            return steps[0]
        step = self._add(NONE, NO_ROLE, 0, steps, label)
        if first is not None and first < len(steps):
            self.quorums[step] = first
        return step

    def enter(self, role: int, *, after: Iterable[int], label: str) -> int:
        """Take the next ticket of a gate, without waiting. The step's number names the ticket."""
        return self._add(ENTER, role, 0, after, label)

    def turn(
        self, ticket: int, *, after: Iterable[int], label: str, phase: int = NO_PHASE
    ) -> int:
        """Wait until each earlier ticket of the gate has had its turn or has left.

        Parameters
        ----------
        ticket
            The `ENTER` step that took the ticket.
        """
        step = self._with_ticket(TURN, ticket, after, label)
        self.phases[step] = phase
        return step

    def leave(self, ticket: int, *, after: Iterable[int], label: str) -> int:
        """Return a ticket to its gate.

        Parameters
        ----------
        ticket
            The `ENTER` step that took the ticket.
        """
        return self._with_ticket(LEAVE, ticket, after, label)

    def pin(self, keys: int, *, after: Iterable[int], label: str) -> int:
        """Pin every key of a range.

        Parameters
        ----------
        keys
            Index of the request's key range, 0 or 1.
        """
        return self._with_test(PIN, Test(NO_TEST, keys=keys), after, label)

    def unpin(self, pin: int, *, after: Iterable[int], label: str) -> int:
        """Undo a pin.

        Parameters
        ----------
        pin
            The `PIN` step to undo.
        """
        if not 0 <= pin < len(self.words) or self.words[pin] != PIN:
            raise ValueError(f"{self.name}: {label}: got step {pin}, wanted a pin")
        return self._with_test(
            UNPIN, Test(NO_TEST, keys=self.tests[pin].keys, ticket=pin), after, label
        )

    def branch(
        self, test: Test, *, after: Iterable[int], label: str
    ) -> tuple[int, int]:
        """Choose a side once all predecessors have completed.

        Parameters
        ----------
        test
            A test from `conditions`.

        Returns
        -------
        yes, no
            The two sides, to be named as predecessors.
        """
        step = self._with_test(BRANCH, test, after, label)
        return step + YES * _SIDE, step + NO * _SIDE

    def merge(self, after: Iterable[int], *, label: str = "merge") -> int:
        """Wait for those predecessors that run. The step runs if at least one of them does."""
        step = self._add(NONE, NO_ROLE, 0, after, label)
        self.merges.add(step)
        return step

    def spawn(
        self,
        template: Template,
        *,
        after: Iterable[int],
        label: str,
        test: Test | None = None,
    ) -> int:
        """Start a detached graph if a test holds.

        Parameters
        ----------
        template
            The detached graph. It inherits the request's bindings and key ranges.
        test
            A test from `conditions`. By default the graph always starts.
        """
        step = self._with_test(SPAWN, test or always(), after, label)
        self.spawned[step] = template
        return step

    def embed(
        self,
        path: Template,
        *,
        after: Iterable[int],
        roles: Mapping[int, int] | Sequence[int],
        label: str,
    ) -> int:
        """Add all steps of a compiled path, which begins after some steps, and return its reply.

        Parameters
        ----------
        path
            The path. The graphs that it spawns get the same roles.
        roles
            Role in this graph of each role of the path.
        label
            Words before the label of each step.
        """
        start = self.join(after, label=f"{label}: issue")
        shift = len(self.words) - 1
        steps = [start, *(step + shift for step in range(1, path.steps))]
        before = _predecessors(path)
        self.words += path.words[1:].tolist()
        self.roles += [_renamed(roles, role) for role in path.roles[1:].tolist()]
        self.spreads += path.spreads[1:].tolist()
        self.demands_ns += path.demands_ns[1:].tolist()
        self.after += [
            tuple(
                steps[earlier % _SIDE] + earlier - earlier % _SIDE
                for earlier in earlier_steps
            )
            for earlier_steps in before[1:]
        ]
        self.labels += [f"{label}: {own}" for own in path.labels[1:]]
        self.phases += path.phases[1:]
        self.shards += [NO_SHARD] * (path.steps - 1)
        self.amounts += _counted(path.amounts)[1:]
        for step, needed in enumerate(path.predecessors[1:].tolist(), start=1):
            if needed < len(before[step]):
                self.quorums[steps[step]] = needed
        if path.dynamics is not None:
            self._embed_dynamics(path, path.dynamics, steps, roles)
        return steps[path.reply]

    def _embed_dynamics(
        self,
        path: Template,
        dynamics: Dynamics,
        steps: Sequence[int],
        roles: Mapping[int, int] | Sequence[int],
    ) -> None:
        """Add the attributes of an embedded path's dynamic words. `steps` are its steps in this graph."""
        once = _counted(dynamics.once)
        columns = zip(
            steps,
            path.roles.tolist(),
            dynamics.tickets.tolist(),
            dynamics.tests.tolist(),
            dynamics.keys.tolist(),
            dynamics.merges.tolist(),
            dynamics.spawns.tolist(),
            once,
            dynamics.threads.tolist(),
            dynamics.classes.tolist(),
            dynamics.costs.tolist(),
            strict=True,
        )
        # The first step is the issue, which has none of these.
        next(columns)
        for (
            step, role, ticket, kind, keys, merges, spawned, counted, thread, number, cost
        ) in columns:  # fmt: skip
            if ticket >= 0 or kind != NO_TEST or keys >= 0:
                named = "step" if kind == COMPLETED else "ticket"
                self.tests[step] = Test(
                    kind,
                    role=_renamed(roles, role),
                    keys=keys,
                    **{named: steps[ticket] if ticket >= 0 else -1},
                )
            if merges:
                self.merges.add(step)
            if spawned >= 0:
                self.spawned[step] = with_roles(dynamics.spawned[spawned], roles)
            if counted:
                self.once[step] = dict(counted)
            if thread >= 0:
                self.threads[step] = steps[thread]
            if (number, cost) != (0, 1):
                self.shared[step] = (number, cost)

    def _with_ticket(
        self, word: int, ticket: int, after: Iterable[int], label: str
    ) -> int:
        self._check_ticket(label, ticket)
        return self._with_test(
            word, Test(NO_TEST, role=self.roles[ticket], ticket=ticket), after, label
        )

    def _with_test(
        self, word: int, test: Test, after: Iterable[int], label: str
    ) -> int:
        where = f"{self.name}: {label}"
        names_keys = word in (PIN, UNPIN) or test.kind == PINNED
        if names_keys and not 0 <= test.keys < KEY_RANGES:
            raise ValueError(
                f"{where}: got key range {test.keys}, wanted 0 to {KEY_RANGES - 1}"
            )
        if word in (BRANCH, SPAWN):
            if test.kind == NO_TEST:
                raise ValueError(
                    f"{where}: got no test, wanted one of stripesim.sim.engine.conditions"
                )
            if test.kind == ALONE:
                self._check_ticket(label, test.ticket)
            if test.kind == COMPLETED:
                self._check_completes(label, test.step)
        role = self.roles[test.ticket] if test.ticket >= 0 else test.role
        step = self._add(word, role, 0, after, label)
        self.tests[step] = test
        return step

    def _check_ticket(self, label: str, ticket: int) -> None:
        if not 0 <= ticket < len(self.words) or self.words[ticket] != ENTER:
            raise ValueError(
                f"{self.name}: {label}: got step {ticket}, wanted an enter step"
            )

    def _check_completes(self, label: str, step: int) -> None:
        """Check that a step exists whose completion can be tested."""
        exists = 0 <= step < len(self.words)
        is_plain = exists and self.words[step] in (NONE, USE, DELAY)
        if not is_plain or step in self.merges:
            raise ValueError(
                f"{self.name}: {label}: got step {step}, wanted a use, delay or join that may have "
                "completed"
            )

    def _check_counters(self, label: str, amounts: Mapping[str, int]) -> None:
        if not amounts.keys() <= COUNTER_INDEX.keys():
            unknown = amounts.keys() - COUNTER_INDEX.keys()
            raise ValueError(
                f"{self.name}: {label}: unknown counters {sorted(unknown)}"
            )

    def _add(
        self,
        word: int,
        role: int,
        demand_ns: float,
        after: Iterable[int],
        label: str,
        phase: int = NO_PHASE,
        shard: int = NO_SHARD,
        spread: int = FIXED,
        amounts: Mapping[str, int] = _NOTHING,
    ) -> int:
        before = tuple(after)
        if len(before) > 1:
            before = tuple(dict.fromkeys(before))
        step = len(self.words)
        if not before or not self._can_precede(before):
            raise ValueError(
                f"{self.name}: {label}: got predecessors {before}, wanted steps below {step}"
            )
        if role < (0 if word in _WORDS_WITH_ROLE else NO_ROLE):
            raise ValueError(f"{self.name}: {label}: got role {role}, wanted 0 or more")
        if spread < FIXED:
            raise ValueError(
                f"{self.name}: {label}: got spread {spread}, wanted 0 or more"
            )
        demand = round_ns(demand_ns) if demand_ns != 0 else 0
        demand_max = DEMAND_SPREAD_MAX_NS if spread != FIXED else DEMAND_MAX_NS
        if demand >= demand_max:
            raise ValueError(
                f"{self.name}: {label}: got {demand} ns, wanted below {demand_max} ns"
            )
        if amounts:
            self._check_counters(label, amounts)
        self.words.append(word)
        self.roles.append(role)
        self.spreads.append(spread)
        self.demands_ns.append(demand)
        self.after.append(before)
        self.labels.append(label)
        self.phases.append(phase)
        self.shards.append(shard)
        self.amounts.append(amounts)
        return step

    def _can_precede(self, before: tuple[int, ...]) -> bool:
        """Return True if all are earlier steps or sides of earlier branches."""
        words = self.words
        steps = len(words)
        for index in before:
            if 0 <= index < steps and words[index] != BRANCH:
                continue
            side, step = divmod(index, _SIDE)
            if side not in (YES, NO) or not 0 <= step < steps:
                return False
            if words[step] != BRANCH:
                return False
        return True

    def finish(self, *, reply: int) -> Template:
        """Check the graph and compile it.

        Parameters
        ----------
        reply
            The step that completes the request for its client. It must always run.

        Returns
        -------
        Template
            The compiled path.

        Raises
        ------
        StepsError
            If there are more than `STEPS_MAX` steps.
        ValueError
            If a step can never run, a merge matches no single condition, the reply may be skipped,
            or a unit, ticket or pin is not returned exactly once.
        """
        steps = len(self.words)
        if steps > STEPS_MAX:
            raise _steps_error(self.name, steps)
        self._check(reply)
        # Like a predecessor, a successor is numbered with the side of the branch that leads to it.
        following: list[list[int]] = [[] for _ in range(steps)]
        for step, before in enumerate(self.after):
            for index in before:
                earlier = index % _SIDE
                following[earlier].append(index - earlier + step)
        for steps_after in following:
            steps_after.sort()
        return Template(
            name=self.name,
            words=_int64(self.words),
            roles=_int64(self.roles),
            spreads=_int64(self.spreads),
            demands_ns=_int64(self.demands_ns),
            predecessors=_int64(
                [
                    self.quorums.get(step, len(before))
                    for step, before in enumerate(self.after)
                ]
            ),
            successor_starts=_int64(np.cumsum([0, *map(len, following)])),
            successors=_int64(
                [step % _SIDE for steps_after in following for step in steps_after]
            ),
            reply=reply,
            amounts=_amounts(steps, enumerate(self.amounts)),
            labels=tuple(self.labels),
            phases=tuple(self.phases),
            shards=tuple(self.shards),
            dynamics=self._dynamics(following),
        )

    def _dynamics(self, following: Sequence[Sequence[int]]) -> Dynamics | None:
        """Collect the attributes that the plain words do not need."""
        few = (self.once, self.merges, self.threads, self.shared)
        if max(self.words) < ENTER and not any(few):
            return None
        steps = len(self.words)
        tests, keys, tickets, yes_counts, spawns = (
            np.full(steps, -1, dtype=np.int64) for _ in range(5)
        )
        tests[:] = NO_TEST
        for step, test in self.tests.items():
            tests[step] = test.kind
            keys[step] = test.keys
            tickets[step] = max(test.ticket, test.step)
            yes_counts[step] = sum(after // _SIDE == YES for after in following[step])
        for index, step in enumerate(self.spawned):
            spawns[step] = index
        merges = np.zeros(steps, dtype=np.bool_)
        merges[list(self.merges)] = True
        threads = np.full(steps, -1, dtype=np.int64)
        threads[list(self.threads)] = list(self.threads.values())
        classes = np.zeros(steps, dtype=np.int64)
        costs = np.ones(steps, dtype=np.int64)
        for step, (number, cost) in self.shared.items():
            classes[step] = number
            costs[step] = cost
        return Dynamics(
            merges=merges,
            tests=tests,
            keys=keys,
            tickets=tickets,
            yes_counts=yes_counts,
            spawns=spawns,
            spawned=tuple(self.spawned.values()),
            once=_amounts(steps, self.once.items()),
            threads=threads,
            classes=classes,
            costs=costs,
        )

    def _check(self, reply: int) -> None:
        conditions = self._conditions()
        self._check_reply(reply, conditions)
        self._check_pools(conditions)
        self._check_completions(conditions)
        tickets = self._steps_of_tickets()
        if not tickets and not self.threads and not self.quorums:
            return
        order = _Order(self, conditions)
        for taken, steps in tickets.items():
            self._check_ticket_use(taken, steps, order)
        for use, acquire in self.threads.items():
            order.check_after(use, acquire)
        if self.quorums:
            self._check_releases(order)

    def _check_reply(self, reply: int, conditions: Sequence[Condition]) -> None:
        """Check that each request is answered."""
        is_step = 0 <= reply < len(conditions)
        if not is_step or conditions[reply] or self.words[reply] == BRANCH:
            raise ValueError(
                f"{self.name}: got reply {reply}, wanted a step that always runs"
            )

    def _check_pools(self, conditions: Sequence[Condition]) -> None:
        """Check that a request returns as many units of each role as it acquires."""
        pools: dict[int, list[tuple[Condition, int]]] = {}
        for step, word in enumerate(self.words):
            if word in _POOL_WORDS:
                change = 1 if word == ACQUIRE else -1
                pools.setdefault(self.roles[step], []).append(
                    (conditions[step], change)
                )
        for role, changes in pools.items():
            if not balanced(changes):
                net = sum(change for _, change in changes)
                raise ValueError(
                    f"{self.name}: acquires and releases do not balance: {{{role}: {net}}}"
                )

    def _check_completions(self, conditions: Sequence[Condition]) -> None:
        """Check that steps whose completion is tested run whenever the test is evaluated."""
        for step, test in self.tests.items():
            if test.kind == COMPLETED and not conditions[test.step] <= conditions[step]:
                raise ValueError(
                    f"{self.name}: {self.labels[step]}: got a test of '{self.labels[test.step]}', which "
                    "may not run, wanted a step that runs whenever the test does"
                )

    def _check_releases(self, order: _Order) -> None:
        """Check that a unit is taken before it is returned, whichever steps of a quorum come first."""
        acquires: dict[int, list[int]] = {}
        for step, word in enumerate(self.words):
            if word == ACQUIRE:
                acquires.setdefault(self.roles[step], []).append(step)
            if word != RELEASE:
                continue
            taken = acquires.get(self.roles[step], [])
            if not any(order.precedes(acquire, step) for acquire in taken):
                raise ValueError(
                    f"{self.name}: {self.labels[step]}: wanted it to run only after an acquire of its role"
                )

    def _steps_of_tickets(self) -> dict[int, list[int]]:
        """Return the steps that refer to each `ENTER` or `PIN`."""
        steps: dict[int, list[int]] = {
            step: [] for step, word in enumerate(self.words) if word in _TICKET_WORDS
        }
        for step, test in self.tests.items():
            if test.ticket >= 0:
                steps[test.ticket].append(step)
        return steps

    def _conditions(self) -> list[Condition]:
        conditions: list[Condition] = []
        for step, before in enumerate(self.after):
            if len(before) == 1 and before[0] < _SIDE:
                conditions.append(conditions[before[0]])
                continue
            earlier = [
                conditions[index % _SIDE]
                | ({(index % _SIDE, index // _SIDE)} if index >= _SIDE else set())
                for index in before
            ]
            if step in self.quorums and len(set(earlier)) > 1:
                raise ValueError(
                    f"{self.name}: {self.labels[step]}: got predecessors that run under different "
                    "conditions, wanted each branch merged first"
                )
            try:
                combined = any_of if step in self.merges else all_of
                conditions.append(combined(earlier))
            except ProblemsError as error:
                raise ValueError(f"{self.name}: {self.labels[step]}: {error}") from None
        return conditions

    def _check_ticket_use(self, taken: int, steps: list[int], order: _Order) -> None:
        """Check that a ticket or pin is returned exactly once, after its turn."""
        label = self.labels[taken]
        changes = [(order.conditions[taken], 1)]
        for step in steps:
            if self.words[step] in (LEAVE, UNPIN):
                changes.append((order.conditions[step], -1))
        if not balanced(changes):
            pair = "enter and leave" if self.words[taken] == ENTER else "pin and unpin"
            raise ValueError(f"{self.name}: {label}: {pair} do not balance")
        turns = [step for step in steps if self.words[step] == TURN]
        for step in steps:
            order.check_after(step, taken)
            where = f"{self.name}: {self.labels[step]}"
            for turn in turns:
                if turn == step or order.exclusive(turn, step):
                    continue
                if self.words[step] == TURN and turn < step:
                    raise ValueError(
                        f"{where}: got a second turn of '{label}', wanted one"
                    )
                if self.words[step] == LEAVE and not order.precedes(turn, step):
                    raise ValueError(
                        f"{where}: wanted it after the turn '{self.labels[turn]}'"
                    )


class _Order:
    """The conditions and the order of a graph's steps."""

    def __init__(self, graph: GraphBuilder, conditions: Sequence[Condition]) -> None:
        self.graph = graph
        self.conditions = conditions
        self._ancestors = ancestors(
            [[index % _SIDE for index in before] for before in graph.after],
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


def with_roles(path: Template, roles: Mapping[int, int] | Sequence[int]) -> Template:
    """Return a path, as a part of a larger one, with other roles. Graphs that it spawns get the same roles.

    `shards` no longer apply, because the larger path has several objects.
    """
    renamed = [_renamed(roles, role) for role in path.roles.tolist()]
    dynamics = path.dynamics
    if dynamics is not None:
        spawned = tuple(with_roles(each, roles) for each in dynamics.spawned)
        dynamics = replace(dynamics, spawned=spawned)
    return replace(
        path,
        roles=_int64(renamed),
        shards=(NO_SHARD,) * path.steps,
        dynamics=dynamics,
    )


def _renamed(roles: Mapping[int, int] | Sequence[int], role: int) -> int:
    return role if role == NO_ROLE else roles[role]


def _predecessors(path: Template) -> list[list[int]]:
    """Return the predecessors of each step, with the side of a branch as `GraphBuilder` encodes it."""
    before: list[list[int]] = [[] for _ in range(path.steps)]
    starts = path.successor_starts.tolist()
    successors = path.successors.tolist()
    for step, word in enumerate(path.words.tolist()):
        following = successors[starts[step] : starts[step + 1]]
        if word != BRANCH:
            for later in following:
                before[later].append(step)
            continue
        assert path.dynamics is not None
        yes_count = int(path.dynamics.yes_counts[step])
        for index, later in enumerate(following):
            side = YES if index < yes_count else NO
            before[later].append(step + side * _SIDE)
    return before


def _counted(amounts: IntArray) -> list[Mapping[str, int]]:
    """Return the amounts of each step by counter."""
    counted: list[dict[str, int] | None] = [None] * len(amounts)
    steps, counters = amounts.nonzero()
    values = amounts[steps, counters].tolist()
    for step, counter, value in zip(
        steps.tolist(), counters.tolist(), values, strict=True
    ):
        of_step = counted[step]
        if of_step is None:
            of_step = counted[step] = {}
        of_step[COUNTERS[counter]] = value
    return [_NOTHING if of_step is None else of_step for of_step in counted]


def _amounts(
    steps: int, counted_steps: Iterable[tuple[int, Mapping[str, int]]]
) -> IntArray:
    amounts = np.zeros((steps, len(COUNTERS)), dtype=np.int64)
    positions: list[int] = []
    values: list[int] = []
    for step, counted in counted_steps:
        for name, amount in counted.items():
            if amount:
                positions.append(step * len(COUNTERS) + COUNTER_INDEX[name])
                values.append(amount)
    amounts.reshape(-1)[positions] = values
    return amounts


def _int64(values: Sequence[int] | Sequence[tuple[int, ...]] | IntArray) -> IntArray:
    return np.asarray(values, dtype=np.int64)

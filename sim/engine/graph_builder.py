"""Build op graphs step by step.

Start with `GraphBuilder`. ``graph.py`` defines what it compiles to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from stripesim.models.clock import round_ns
from stripesim.sim.engine.conditions import (
    ALONE,
    COMPLETED,
    KEY_RANGES,
    NO,
    NO_TEST,
    PINNED,
    YES,
    Test,
    always,
)
from stripesim.sim.engine.graph import (
    ACQUIRE,
    BRANCH,
    COUNTER_INDEX,
    COUNTERS,
    DELAY,
    ENTER,
    FIXED,
    LEAVE,
    NO_PHASE,
    NO_ROLE,
    NO_SHARD,
    NONE,
    PIN,
    RELEASE,
    SIDE,
    SPAWN,
    TURN,
    UNPIN,
    USE,
    Dynamics,
    IntArray,
    Template,
    check_steps,
    int_array,
    renamed_role,
    with_roles,
)
from stripesim.sim.engine.graph_checks import check_graph

DEMAND_MAX_NS = 1 << 42
# Random factors reach 128, so the product with a spread demand fits in 64 bits.
DEMAND_SPREAD_MAX_NS = 1 << 36
# Limits for queues shared by classes: number of classes, and cost of one item.
CLASSES_MAX = 64
COST_MAX = 1 << 32

_WORDS_WITH_ROLE = (USE, ACQUIRE, RELEASE, ENTER)
_NOTHING: Mapping[str, int] = {}


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
    positions_ns: dict[int, int] = field(default_factory=dict)
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

    def sort(self, use: int, position_ns: float) -> None:
        """Let a server serve a use sooner the more others wait, as a disk does that orders them by position.

        Parameters
        ----------
        use
            The `USE` step, with a distribution.
        position_ns
            Part of its demand that `Program.position_factors` multiplies [ns].

        Raises
        ------
        ValueError
            If the step is another one, or the part is not within its demand.
        """
        if not 0 <= use < len(self.words) or self.words[use] != USE:
            raise ValueError(f"{self.name}: got step {use}, wanted a use to sort")
        if self.spreads[use] == FIXED:
            raise ValueError(
                f"{self.name}: {self.labels[use]}: got no distribution, wanted one to sort it"
            )
        rounded_ns = round_ns(position_ns)
        if not 0 < rounded_ns <= self.demands_ns[use]:
            raise ValueError(
                f"{self.name}: {self.labels[use]}: got {rounded_ns} ns to position, "
                f"wanted 1 to {self.demands_ns[use]} ns, its demand"
            )
        self.positions_ns[use] = rounded_ns

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
        if first is not None and first not in range(1, len(steps) + 1):
            raise ValueError(
                f"{self.name}: {label}: got first = {first}, wanted 1 to {len(steps)}, the number of "
                "predecessors"
            )
        if len(steps) == 1:
            return steps[0]
        step = self._add(NONE, NO_ROLE, 0, steps, label)
        if first is not None and first < len(steps):
            self.quorums[step] = int(first)
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
        return step + YES * SIDE, step + NO * SIDE

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
        self.roles += [renamed_role(roles, role) for role in path.roles[1:].tolist()]
        self.spreads += path.spreads[1:].tolist()
        self.demands_ns += path.demands_ns[1:].tolist()
        self.after += [
            tuple(
                steps[earlier % SIDE] + earlier - earlier % SIDE
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
            dynamics.positions_ns.tolist(),
            strict=True,
        )
        # The first step is the issue, which has none of these.
        next(columns)
        for (
            step, role, ticket, kind, keys, merges, spawned, counted, thread, number, cost,
            position_ns,
        ) in columns:  # fmt: skip
            if ticket >= 0 or kind != NO_TEST or keys >= 0:
                named = "step" if kind == COMPLETED else "ticket"
                self.tests[step] = Test(
                    kind,
                    role=renamed_role(roles, role),
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
            if position_ns:
                self.positions_ns[step] = position_ns

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
            side, step = divmod(index, SIDE)
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
        check_steps(self.name, steps)
        check_graph(self, reply)
        # Like a predecessor, a successor is numbered with the side of the branch that leads to it.
        following: list[list[int]] = [[] for _ in range(steps)]
        for step, before in enumerate(self.after):
            for index in before:
                earlier = index % SIDE
                following[earlier].append(index - earlier + step)
        for steps_after in following:
            steps_after.sort()
        return Template(
            name=self.name,
            words=int_array(self.words),
            roles=int_array(self.roles),
            spreads=int_array(self.spreads),
            demands_ns=int_array(self.demands_ns),
            predecessors=int_array(
                [
                    self.quorums.get(step, len(before))
                    for step, before in enumerate(self.after)
                ]
            ),
            successor_starts=int_array(np.cumsum([0, *map(len, following)])),
            successors=int_array(
                [step % SIDE for steps_after in following for step in steps_after]
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
        few = (self.once, self.merges, self.threads, self.shared, self.positions_ns)
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
            yes_counts[step] = sum(after // SIDE == YES for after in following[step])
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
        positions_ns = np.zeros(steps, dtype=np.int64)
        positions_ns[list(self.positions_ns)] = list(self.positions_ns.values())
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
            positions_ns=positions_ns,
        )


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
            before[later].append(step + side * SIDE)
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

"""Op graphs: the path of a request as data (steps with predecessors, in flat arrays).

`GraphBuilder` in ``graph_builder.py`` makes them, and ``graph_checks.py`` checks what it makes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from stripesim.models.problems import Problem, StepsError
from stripesim.sim.engine.conditions import (
    NO_TEST,
    PINNED,
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


#: Bits of a step in the order of simultaneous events, which bound the steps of a template.
ORDER_BITS = 14
STEPS_MAX = 1 << ORDER_BITS

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
# Marks a step outside any phase or shard. Engines read neither attribute.
NO_PHASE = NO_SHARD = -1
# One side of a branch, as a predecessor, is encoded as branch step + side * SIDE.
SIDE = 1 << 20


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
    positions_ns
        Part of the demand of a `USE` that is shorter the more steps wait at its server [ns], shape (steps,).
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
    positions_ns: IntArray


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
        return int_array(triples).reshape(-1, 3)

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


def check_steps(name: str, steps: int) -> None:
    """Raise StepsError if a graph has more than `STEPS_MAX` steps."""
    if steps > STEPS_MAX:
        wanted = f"at most {STEPS_MAX}"
        raise StepsError(Problem(place=name, got=f"{steps} steps", wanted=wanted))


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
    check_steps(name, steps)
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
    same = (
        *("merges", "tests", "keys", "yes_counts"),
        *("once", "classes", "costs", "positions_ns"),
    )
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
        positions_ns=np.zeros(steps, dtype=np.int64),
    )


def with_roles(path: Template, roles: Mapping[int, int] | Sequence[int]) -> Template:
    """Return a path, as a part of a larger one, with other roles. Graphs that it spawns get the same roles.

    `shards` no longer apply, because the larger path has several objects.
    """
    renamed = [renamed_role(roles, role) for role in path.roles.tolist()]
    dynamics = path.dynamics
    if dynamics is not None:
        spawned = tuple(with_roles(each, roles) for each in dynamics.spawned)
        dynamics = replace(dynamics, spawned=spawned)
    return replace(
        path,
        roles=int_array(renamed),
        shards=(NO_SHARD,) * path.steps,
        dynamics=dynamics,
    )


def renamed_role(roles: Mapping[int, int] | Sequence[int], role: int) -> int:
    """Return the role that replaces a role, none for none."""
    return role if role == NO_ROLE else roles[role]


def int_array(values: Sequence[int] | Sequence[tuple[int, ...]] | IntArray) -> IntArray:
    """Return values as an array of int64."""
    return np.asarray(values, dtype=np.int64)

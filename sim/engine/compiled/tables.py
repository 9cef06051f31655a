"""Templates and bindings as tables of the compiled engine. This module does not use numba."""

import numpy as np

from stripesim.sim.engine.compiled import world as layout
from stripesim.sim.engine.compiled.world import Array, World
from stripesim.sim.engine.conditions import COMPLETED, PINNED
from stripesim.sim.engine.graph import (
    BRANCH,
    DELAY,
    NONE,
    PIN,
    SPAWN,
    UNPIN,
    USE,
    WORDS,
    Template,
)
from stripesim.sim.engine.program import Program

# Words whose steps do something without a role, by word.
_RUNS_WITHOUT_ROLE = np.zeros(len(WORDS), dtype=bool)
_RUNS_WITHOUT_ROLE[[DELAY, PIN, UNPIN, BRANCH, SPAWN]] = True


def appended(array: Array, used: int, rows: Array) -> Array:
    """Write rows after the first `used` rows of an array, doubling it when full."""
    if used + len(rows) > len(array):
        array = layout.grown(array[:used], max(2 * len(array), used + len(rows)))
    array[used : used + len(rows)] = rows
    return array


class ResourceNumbers:
    """Numbers of the resources in the world of a run.

    A sample of requests touches few resources of a large cluster. The world has those that bindings name, in
    the order in which requests need them. With a director, which names any resource, and with queues shared
    by classes, which draw by the index of the resource, it has all, and each keeps its index.
    """

    def __init__(self, program: Program) -> None:
        self._resources = program.resources
        self._partners = program.resources.partners
        self._keeps_all = bool(program.director or program.resources.shares)
        self._known = np.zeros(0, dtype=np.int32)
        self._number_of = np.full(
            len(program.resources), layout.NOTHING, dtype=np.int32
        )

    def begin(self, world: World) -> World:
        """Return a new world with the resources that it has from the start."""
        if not self._keeps_all:
            return world
        world = self._learn_new(world, np.arange(len(self._resources), dtype=np.int32))
        shares = world.shares
        world.resources["share"][shares["resource"]] = 1 + np.arange(len(shares))
        return world

    def learn(self, world: World, bound: Array) -> World:
        """Append the resources of binding rows, and their partners, if the world lacks them.

        Parameters
        ----------
        world
            The world.
        bound
            Index of the resource of each role, negative for none, shape (n,).
        """
        lacks = np.zeros(len(self._number_of), dtype=bool)
        lacks[bound[bound >= 0]] = True
        lacks &= self._number_of == layout.NOTHING
        partners = self._partners[np.flatnonzero(lacks)]
        lacks[partners[partners >= 0]] = True
        new = np.flatnonzero(lacks)
        return self._learn_new(world, new) if len(new) else world

    def of(self, indices: Array) -> Array:
        """Return the numbers of resources. Negative indices stay as they are."""
        return np.where(indices >= 0, self._number_of[indices], indices)

    def by_index(self, values: Array) -> Array:
        """Return values of the world's resources by index, 0 for others, shape (resources,)."""
        if self._keeps_all:
            return values
        all_values = np.zeros(len(self._number_of), dtype=values.dtype)
        # Pages of the array that are never written take no memory.
        written = np.flatnonzero(values)
        all_values[self._known[written]] = values[written]
        return all_values

    def _learn_new(self, world: World, new: Array) -> World:
        start = len(self._known)
        self._number_of[new] = np.arange(start, start + len(new))
        self._known = np.concatenate([self._known, new.astype(np.int32)])
        partners = self.of(self._partners[new])
        return layout.with_resources(world, self._resources, new, partners)


class ProgramTables:
    """The tables of a run, which grow with its book."""

    def __init__(self, program: Program) -> None:
        self._program = program
        # With a director, every step is counted, even if the plan states its amounts.
        self._counted = program.director is not None
        self._templates_known = self._steps_known = self._successors_known = (
            self._rows_known
        ) = 0
        # Template numbers by identity, and steps whose spawned template is not in the book
        # yet.
        self._index_of: dict[int, int] = {}
        self.numbers = ResourceNumbers(program)
        self._unresolved: list[tuple[int, Template]] = []

    def learn(self, world: World) -> tuple[World, int]:
        """Append the book's new templates and bindings to the tables.

        Returns
        -------
        World
            The world with the longer tables.
        int
            Bits needed for the step number of the longest new template.
        """
        self._world = world
        known = self._program.book.templates
        steps_max = 1
        for index in range(self._templates_known, len(known)):
            self._index_of[id(known[index])] = index
            self._learn_template(known[index])
            steps_max = max(steps_max, known[index].steps)
        self._learn_spawned()
        self._learn_bindings()
        return self._world, (steps_max - 1).bit_length()

    def _learn_template(self, template: Template) -> None:
        world = self._world
        rows = np.zeros(template.steps, dtype=layout.STEP)
        rows["demand_ns"] = template.demands_ns
        rows["successors_from"] = (
            self._successors_known + template.successor_starts[:-1]
        )
        rows["successors_to"] = self._successors_known + template.successor_starts[1:]
        rows["role"] = template.roles
        # Without a role, there is nothing to take or return, so the step completes
        # immediately.
        idle = (template.roles < 0) & ~_RUNS_WITHOUT_ROLE[template.words]
        rows["word"] = np.where(idle, NONE, template.words)
        rows["spread"] = template.spreads
        rows["is_reply"][template.reply] = 1
        # A director may request which steps have begun.
        alone = 0 if self._counted else 1
        arrivals = np.bincount(template.successors, minlength=template.steps)
        rows["waits_for"] = np.where(arrivals > alone, layout.ALL, layout.ONE)
        rows["accounts"] = template.amounts.any(axis=1)
        specials = self._specials(template, rows)
        if len(self._program.followed):
            rows["special"] |= layout.FOLLOWED
        # Most runs take counters from the plan, and most steps account nothing once.
        amounts = world.amounts
        if self._program.bin_ns or (rows["special"] & layout.TAKEN).any():
            amounts = appended(world.amounts, self._steps_known, template.amounts)
        once = world.once
        if template.dynamics and template.dynamics.once.any():
            once = appended(world.once, self._steps_known, template.dynamics.once)
        entry = np.array([(self._steps_known, template.steps)], dtype=layout.TEMPLATE)
        used = self._steps_known
        self._world = world._replace(
            steps=appended(world.steps, used, rows),
            predecessors=appended(world.predecessors, used, template.predecessors),
            amounts=amounts,
            specials=appended(world.specials, used, specials),
            once=once,
            successors=appended(
                world.successors, self._successors_known, template.successors
            ),
            templates=appended(world.templates, self._templates_known, entry),
        )
        self._templates_known += 1
        self._steps_known += template.steps
        self._successors_known += len(template.successors)

    def _specials(self, template: Template, rows: Array) -> Array:
        """Return the attributes beyond the plain words, and set the flags in `rows`."""
        specials = np.zeros(template.steps, dtype=layout.SPECIAL)
        specials["cost"] = 1
        dynamics = template.dynamics
        if self._counted or not template.planned:
            rows["special"] = np.where(
                rows["accounts"] | (rows["word"] == USE), layout.TAKEN, 0
            )
        if dynamics is None:
            return specials
        rows["waits_for"][dynamics.merges] = layout.MERGE
        marks = rows["special"].astype(np.int64)
        marks |= np.where(dynamics.once.any(axis=1), layout.ONCE, 0)
        marks |= np.where(template.words == BRANCH, layout.BRANCHES, 0)
        marks |= np.where(template.words == SPAWN, layout.SPAWNS, 0)
        tests_completion = dynamics.tests == COMPLETED
        marks[dynamics.tickets[tests_completion]] |= layout.TESTED
        specials["test"] = dynamics.tests
        specials["keys"] = dynamics.keys
        specials["ticket"] = np.where(dynamics.tickets >= 0, dynamics.tickets, 0)
        specials["yes_count"] = dynamics.yes_counts
        specials["spawns"] = -1
        rows["thread"] = dynamics.threads
        specials["share_class"] = dynamics.classes
        specials["cost"] = dynamics.costs
        specials["position_ns"] = dynamics.positions_ns
        kinds = np.where(dynamics.threads >= 0, layout.ON_THREAD, 0)
        kinds += np.where(dynamics.positions_ns > 0, layout.SORTED, 0)
        rows["spread"] += kinds.astype(np.int16)
        for step in np.flatnonzero(dynamics.spawns >= 0).tolist():
            spawned = dynamics.spawned[dynamics.spawns[step]]
            self._unresolved.append((self._steps_known + step, spawned))
        before = np.repeat(
            np.arange(template.steps), np.diff(template.successor_starts)
        )
        pins = template.words[template.successors] == PIN
        np.add.at(
            specials["pins"],
            (before[pins], dynamics.keys[template.successors[pins]]),
            1,
        )
        room = specials["pins"].any(axis=1) | (dynamics.tests == PINNED)
        rows["special"] = marks | np.where(room, layout.NAMES_KEYS, 0)
        return specials

    def _learn_spawned(self) -> None:
        """Look up the templates that steps spawn. The book may receive missing ones later."""
        left = []
        for step, spawned in self._unresolved:
            index = self._index_of.get(id(spawned), -1)
            self._world.specials["spawns"][step] = index
            if index < 0:
                left.append((step, spawned))
        self._unresolved = left

    def _learn_bindings(self) -> None:
        """Append the book's new binding rows. Lay out all rows again if they got wider."""
        bindings = self._program.book.bindings
        clock = self._world.clock
        rows, roles = bindings.shape
        if roles != clock["roles"][0]:
            clock["roles"] = roles
            self._rows_known = 0
        if rows > self._rows_known:
            known = self._world.bindings
            bound = bindings[self._rows_known :].reshape(-1)
            self._world = self.numbers.learn(self._world, bound)
            new = self.numbers.of(bound)
            self._world = self._world._replace(
                bindings=appended(known, self._rows_known * roles, new)
            )
            self._rows_known = rows

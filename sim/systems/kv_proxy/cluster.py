"""Slots and lost keys of a key-value cluster whose nodes change, and its repair."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stripesim.models.problems import ProblemsError
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.systems.kv_proxy import plan
from stripesim.sim.systems.kv_proxy.plan import SLOTS, Keys
from stripesim.sim.systems.kv_proxy.proxy import ADMIN, MIGRATE, Operations, StoreSystem

# Maps lost positions to the positions to read, empty if they cannot be restored.
RepairSources = Callable[[frozenset[int]], tuple[int, ...]]


@dataclass(frozen=True, kw_only=True)
class AdminCosts:
    """Costs of the store's scripts when a node joins or leaves.

    Attributes
    ----------
    command_ns
        Time of one command to one node, each a separate process [ns].
    line_bytes
        Bytes of a node's answer per node of the store [B].
    loads_count
        Number of times that each node is queried for its view of the store.
    """

    command_ns: float
    line_bytes: int
    loads_count: int


class StoreCluster:
    """Slots and keys of a store while its nodes change.

    Parameters
    ----------
    system
        The proxy and its nodes.
    keys
        The keys in the store.
    nodes
        Nodes at the start.
    admin
        Costs of a change.
    seed
        Seed of the slots and of the nodes that leave.

    Raises
    ------
    ProblemsError
        If `nodes` is below 2 or exceeds the system's nodes.
    """

    def __init__(
        self,
        system: StoreSystem,
        keys: Keys,
        *,
        nodes: int,
        admin: AdminCosts,
        seed: int,
    ) -> None:
        if not 2 <= nodes <= system.nodes:
            raise ProblemsError(
                f"cluster: nodes: got {nodes}, wanted 2 to {system.nodes}"
            )
        self.system = system
        self.keys = keys
        self.admin = admin
        self._rng = np.random.default_rng([seed, nodes])
        self.owners = plan.even_owners(nodes)
        self.slots = plan.draw_slots(len(keys.stripes), keys.width, self._rng)
        self.lost = np.zeros(self.slots.shape, dtype=np.bool_)
        self.alive = list(range(nodes))
        self._next = nodes

    @property
    def nodes_of_keys(self) -> IntArray:
        """Node of each key, lost or not, shape (rows, width)."""
        placed: IntArray = self.owners[self.slots]
        return placed

    def leave(self) -> Operations:
        """Kill a node. Its keys are lost, and other nodes take its slots.

        Returns
        -------
        Operations
            The operations of the scripts.

        Raises
        ------
        ProblemsError
            If only the first node is left.
        """
        if len(self.alive) < 2:
            raise ProblemsError(
                "cluster: got a node that leaves, wanted another node than the first"
            )
        gone = self.alive.pop(1 + int(self._rng.integers(len(self.alive) - 1)))
        self.lost |= self.nodes_of_keys == gone
        orphans = np.flatnonzero(self.owners == gone)
        self.owners[orphans] = self._rng.choice(np.array(self.alive), size=len(orphans))
        return self._announce_change()

    def join(self) -> Operations:
        """Add a node, and move its part of the slots to it.

        Returns
        -------
        Operations
            The operations of the scripts.

        Raises
        ------
        ProblemsError
            If the system has no further node.
        """
        if self._next >= self.system.nodes:
            raise ProblemsError(
                f"cluster: got node {self._next}, wanted below {self.system.nodes}"
            )
        new = self._next
        self._next += 1
        self.alive.append(new)
        moved = self._rng.permutation(SLOTS)[: round(SLOTS / len(self.alive))]
        self.owners[moved] = new
        values = self.system.aggregation.value_bytes(self.keys.stripes)
        row, position = np.nonzero(np.isin(self.slots, moved) & ~self.lost)
        in_slot = np.bincount(
            self.slots[row, position], weights=values[row], minlength=SLOTS
        )
        sent = self.system.command_bytes + in_slot[moved].astype(np.int64)
        moves = plan.operations_of(
            MIGRATE, np.full(len(moved), new), sent, self.system.reply_bytes
        )
        return Operations.joined([self._announce_change(), moves])

    def repair(
        self, sources: RepairSources, *, work_ns_per_byte: float, data_blocks: int
    ) -> Operations:
        """Look up all keys of all files, restore lost ones, and write a row of keys for each file.

        The program flushes the buffer of each position after each file, whether full or empty.

        Parameters
        ----------
        sources
            Maps lost positions to the positions to read.
        work_ns_per_byte
            Time of the proxy per byte of data restored [ns/B].
        data_blocks
            Data blocks of a stripe.

        Returns
        -------
        Operations
            The operations of the repair.
        """
        system = self.system
        keys = self.keys
        values = system.aggregation.value_bytes(keys.stripes)
        nodes = self.nodes_of_keys
        damaged = np.asarray(self.lost.any(axis=1), dtype=np.bool_)
        starts = np.flatnonzero(np.diff(keys.files, prepend=-1))
        stops = np.append(starts[1:], len(keys.files))
        new_slots = plan.draw_slots(len(starts), keys.width, self._rng)
        parts = []
        for slots, start, stop in zip(new_slots, starts, stops, strict=True):
            restored = np.zeros(keys.width, dtype=np.int64)
            restored_rows: list[tuple[int, IntArray]] = []
            parts.append(plan.exists(system, nodes[start:stop].reshape(-1)))
            for row in (start + np.flatnonzero(damaged[start:stop])).tolist():
                lost = np.flatnonzero(self.lost[row])
                read = sources(frozenset(lost.tolist()))
                if not read:
                    continue
                parts.append(plan.gets(system, nodes[row, list(read)], values[row]))
                data_bytes = float(keys.stripes[row]) * data_blocks
                parts.append(plan.working(data_bytes * work_ns_per_byte))
                restored[lost] += keys.stripes[row]
                restored_rows.append((row, lost))
            written = system.aggregation.value_bytes(restored)
            parts.append(plan.sets(system, self.owners[slots], written))
            for row, lost in restored_rows:
                self.slots[row, lost] = slots[lost]
                self.lost[row, lost] = False
        return Operations.joined(parts)

    def _announce_change(self) -> Operations:
        """Inform every node of a change, then query each for its view of all nodes."""
        nodes = np.tile(np.array(self.alive), self.admin.loads_count)
        answer = self.system.reply_bytes + self.admin.line_bytes * len(self.alive)
        asked = plan.operations_of(ADMIN, nodes, self.system.command_bytes, answer)
        announced = [plan.working(self.admin.command_ns) for _ in self.alive]
        return Operations.joined([*announced, asked])

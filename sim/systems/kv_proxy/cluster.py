"""A key-value cluster whose nodes come and go: who has which slot, what is lost, what mends it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stripesim.sim.engine.graph import IntArray
from stripesim.sim.systems.kv_proxy import plan
from stripesim.sim.systems.kv_proxy.plan import SLOTS, Keys
from stripesim.sim.systems.kv_proxy.proxy import (
    ADMIN,
    MIGRATE,
    Operations,
    StoreError,
    StoreSystem,
)

RepairSources = Callable[[frozenset[int]], tuple[int, ...]]
"""Lost positions → positions to read; empty where they cannot be restored."""


@dataclass(frozen=True, kw_only=True)
class AdminCosts:
    """What the scripts around the store do when a node comes or goes."""

    command_ns: (
        float  # One command of the scripts to one node, each a process of its own [ns].
    )
    line_bytes: int  # Bytes that a node's answer spends on each node of the store [B].
    loads_count: int  # How often each node is asked for its view of the store.


class StoreCluster:
    """Slots and keys of a store while its nodes change."""

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
            raise StoreError(f"cluster: nodes: got {nodes}, wanted 2 to {system.nodes}")
        self.system, self.keys, self.admin = system, keys, admin
        self._rng = np.random.default_rng([seed, nodes])
        self.owners = plan.even_owners(nodes)
        self.slots = plan.draw_slots(len(keys.stripes), keys.width, self._rng)
        self.lost = np.zeros(self.slots.shape, dtype=np.bool_)
        self.alive = list(range(nodes))
        self._next = nodes

    @property
    def nodes_of_keys(self) -> IntArray:
        """Node of each key, or that would have it, shape (rows, width)."""
        placed: IntArray = self.owners[self.slots]
        return placed

    def leave(self) -> Operations:
        """Kill a node: its keys are lost, its slots go to others; return what the scripts do."""
        if len(self.alive) < 2:
            raise StoreError(
                "cluster: got a node that leaves, wanted one beside the first"
            )
        gone = self.alive.pop(1 + int(self._rng.integers(len(self.alive) - 1)))
        self.lost |= self.nodes_of_keys == gone
        orphans = np.flatnonzero(self.owners == gone)
        self.owners[orphans] = self._rng.choice(np.array(self.alive), size=len(orphans))
        return self._asked_of_all()

    def join(self) -> Operations:
        """Add a node and move its share of the slots to it; return what the scripts do."""
        if self._next >= self.system.nodes:
            raise StoreError(
                f"cluster: got node {self._next}, wanted below {self.system.nodes}"
            )
        new, self._next = self._next, self._next + 1
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
        return Operations.joined([self._asked_of_all(), moves])

    def _asked_of_all(self) -> Operations:
        """Every node learns of the change, then asked for its view of all the others."""
        nodes = np.tile(np.array(self.alive), self.admin.loads_count)
        answer = self.system.reply_bytes + self.admin.line_bytes * len(self.alive)
        asked = plan.operations_of(ADMIN, nodes, self.system.command_bytes, answer)
        listed = [plan.working(self.admin.command_ns) for _ in self.alive]
        return Operations.joined([*listed, asked])

    def repair(
        self, sources: RepairSources, *, work_ns_per_byte: float, data_blocks: int
    ) -> Operations:
        """Look for every key of every file, mend what is lost, write a row of keys for each file.

        The programme flushes every position's buffer after each file, full or empty.
        """
        system, keys = self.system, self.keys
        values = system.aggregation.value_bytes(keys.stripes)
        nodes = self.nodes_of_keys
        first = np.flatnonzero(np.diff(keys.files, prepend=-1))
        parts = []
        damaged = np.asarray(self.lost.any(axis=1), dtype=np.bool_)
        drawn = plan.draw_slots(len(first), keys.width, self._rng)
        for slots, start, stop in zip(
            drawn, first, np.append(first[1:], len(keys.files)), strict=True
        ):
            restored = np.zeros(keys.width, dtype=np.int64)
            mended: list[tuple[int, IntArray]] = []
            parts.append(plan.exists(system, nodes[start:stop].reshape(-1)))
            for row in (start + np.flatnonzero(damaged[start:stop])).tolist():
                gone = np.flatnonzero(self.lost[row])
                chosen = sources(frozenset(gone.tolist()))
                if not chosen:
                    continue
                parts.append(plan.gets(system, nodes[row, list(chosen)], values[row]))
                parts.append(
                    plan.working(
                        float(keys.stripes[row]) * data_blocks * work_ns_per_byte
                    )
                )
                restored[gone] += keys.stripes[row]
                mended.append((row, gone))
            parts.append(
                plan.sets(
                    system, self.owners[slots], system.aggregation.value_bytes(restored)
                )
            )
            for row, gone in mended:
                self.slots[row, gone] = slots[gone]
                self.lost[row, gone] = False
        return Operations.joined(parts)

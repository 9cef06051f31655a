"""Recovery operations: what has to move for one object, as templates and bindings for the engine."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures.groups import Group
from stripesim.sim.ceph.layout import Layout
from stripesim.sim.ceph.paths import (
    move_path,
    note_path,
    repair_path,
    rounds_bytes,
    scrub_path,
)
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.graph import IntArray, Template
from stripesim.sim.engine.program import RequestChunk

# Transactions in which a member notes that an interval begins (``PeeringState::start_peering_interval``),
# that it is active and then that all are (``activate``, ``share_pg_info``), that all are clean
# (``try_mark_clean``); and a deletion: the object's, then its place in the log
# (``PrimaryLogPG::remove_missing_object``).
NOTES = {"interval": 1, "activation": 2, "clean": 1, "deletion": 2}


# The template of each round of an operation, and the binding row of all.
Planned = tuple[list[int], int]


@dataclass(frozen=True)
class Operation:
    """The recovery of one object on one or several OSDs.

    Its `shards` come into being on the members that join: they are rebuilt, or a shard is copied from an OSD
    that still has it. Of an object that the log knows as deleted they only note that.
    """

    group: int
    item: int
    shards: tuple[int, ...]
    kind: Literal["rebuild", "move", "delete"]


class RecoveryFeed:
    """The stream of recovery operations, which the director fills.

    The director never asks for more than `depth` operations in flight; it hears of ends if it `reports`.
    """

    feed = True
    timeout_ns = 0

    def __init__(self, depth: int, *, reports: bool = True) -> None:
        self.depth, self.reports = depth, reports
        self._queue: list[tuple[int, int, int]] = []
        self.given = 0

    def push(self, template: int, binding: int, group: int) -> int:
        """Add an operation; return its number in the stream."""
        self._queue.append((template, binding, group))
        self.given += 1
        return self.given - 1

    def take(self, count: int) -> RequestChunk:
        """Hand out what there is."""
        taken, self._queue = self._queue[:count], self._queue[count:]
        rows = np.array(taken, dtype=np.int64).reshape(-1, 3)
        return RequestChunk(
            templates=rows[:, 0], bindings=rows[:, 1], groups=rows[:, 2]
        )

    def replan(self, indices: IntArray) -> RequestChunk:
        """Operations that were cut off are not issued again."""
        raise AssertionError(
            f"recovery operations {indices.tolist()} cannot be planned again"
        )


class OperationBook:
    """Makes operations and compiles them, each kind once; `whole`: all rounds of an object as one graph."""

    def __init__(
        self, pool: Pool, book: Book, layout: Layout, *, whole: bool = False
    ) -> None:
        self._pool, self._whole = pool, whole
        self._book = book
        self._layout = layout
        self._templates: dict[tuple[object, ...], int] = {}
        scheme = pool.scheme
        self.shard_bytes = (
            pool.geometry.stripe_count(pool.object_bytes) * pool.stripe_unit_bytes
            if scheme.kind == "erasure"
            else pool.object_bytes
        )

    def operations(
        self, group: Group, item: int, is_up: Callable[[int], bool]
    ) -> Iterator[Operation]:
        """Yield what an object needs; nothing if nobody lacks it, or nobody can supply it."""
        lacking = [
            shard
            for shard, copy in group.joining_copies.items()
            if item in copy.missing
        ]
        if not lacking:
            return
        holders = group.holders(item, is_up)
        width = len(group.up)
        deleted = item not in group.objects
        if deleted or self._pool.scheme.kind == "replicated":
            # One place of the binding is the source's, the others are for who is pushed to.
            kind: Literal["delete", "rebuild"] = "delete" if deleted else "rebuild"
            for start in range(0, len(lacking) if holders else 0, max(1, width - 1)):
                yield Operation(
                    group.number, item, tuple(lacking[start : start + width - 1]), kind
                )
            return
        for shard in lacking:
            if shard in holders:
                yield Operation(group.number, item, (shard,), "move")
        rebuilt = tuple(shard for shard in lacking if shard not in holders)
        if rebuilt and self._pool.scheme.can_decode(
            frozenset(range(width)).difference(holders)
        ):
            yield Operation(group.number, item, rebuilt, "rebuild")

    def plan(
        self, group: Group, operation: Operation, is_up: Callable[[int], bool]
    ) -> Planned:
        """Return the template of each round of an operation, and its binding row, as things are now."""
        holders = group.holders(operation.item, is_up)
        targets = [group.members.joining[shard] for shard in operation.shards]
        lead = group.members.primary
        if lead is None or lead not in holders:
            lead = min(holders)
        if operation.kind == "delete":
            row = [holders[lead], *targets]
            one, binding = self._note(
                group.number, row, range(1, len(row)), NOTES["deletion"], recovers=True
            )
            return [one], binding
        if self._pool.scheme.kind == "replicated":
            return self._push(group, holders, targets)
        if operation.kind == "move":
            return self._move(
                group, holders[lead], holders[operation.shards[0]], targets[0]
            )
        row = [holders.get(shard, NO_OSD) for shard in range(len(group.up))]
        for shard, osd in zip(operation.shards, targets, strict=True):
            row[shard] = osd
        missing = frozenset(shard for shard, osd in enumerate(row) if osd == NO_OSD)
        return self._rebuild(group.number, row, lead, missing, operation.shards)

    def notes(self, group: Group, transactions_count: int) -> Iterator[tuple[int, int]]:
        """Yield template and binding row of what the members of a placement group note, one after another."""
        lead = group.members.primary
        first = min(group.members.osds) if lead is None else group.members.acting[lead]
        others = sorted(group.members.osds - {first})
        block = len(group.up) - 1
        for start in range(0, max(1, len(others)), max(1, block)):
            row = [first, *others[start : start + block]]
            # The primary notes it once.
            yield self._note(
                group.number, row, range(start > 0, len(row)), transactions_count
            )

    def scrub(self, group: Group, objects: int, *, deep: bool) -> tuple[int, int]:
        """Return template and binding row of the scrub of some objects of a clean placement group."""
        lead, row = group.members.primary, group.members.acting
        assert lead is not None
        context, size_bytes = self._layout.context(lead, frozenset()), self.shard_bytes
        path = partial(
            scrub_path, context, shard_bytes=size_bytes, objects=objects, deep=deep
        )
        template = self._known(("scrub", lead, objects, deep), path)
        return template, self._layout.row(self._book, row, lead, group.number)

    def _note(
        self,
        group: int,
        row: list[int],
        shards: range,
        count: int,
        *,
        recovers: bool = False,
    ) -> tuple[int, int]:
        width = self._pool.cluster.width
        context = self._layout.context(0, frozenset(range(len(row), width)))
        key = ("note", len(row), shards, count, recovers)
        template = self._known(
            key, lambda: note_path(context, shards, count, recovers=recovers)
        )
        return template, self._layout.row(
            self._book, row + [NO_OSD] * (width - len(row)), 0, group
        )

    def _push(
        self, group: Group, holders: dict[int, int], targets: list[int]
    ) -> Planned:
        width = len(group.up)
        row = [holders[min(holders)], *targets]
        lost = tuple(range(1, len(row)))
        missing = frozenset(range(len(row), width))
        row += [NO_OSD] * (width - len(row))
        return self._rebuild(group.number, row, 0, missing, lost)

    def _rebuild(
        self,
        group: int,
        row: list[int],
        lead: int,
        missing: frozenset[int],
        lost: tuple[int, ...],
    ) -> Planned:
        context = self._layout.context(lead, missing)
        unit_bytes = context.geometry.stripe_bytes
        rounds = rounds_bytes(
            self._pool.object_bytes, context.recovery_chunk_bytes, unit_bytes
        )
        templates = self._rounds(
            ("rebuild", lead, missing, lost),
            partial(repair_path, context, lost=lost),
            rounds,
        )
        return templates, self._layout.row(self._book, row, lead, group)

    def _move(self, group: Group, lead: int, source: int, target: int) -> Planned:
        width = len(group.up)
        row = [lead, target] if source == lead else [lead, target, source]
        place = 0 if source == lead else 2
        missing = frozenset(range(len(row), width))
        row += [NO_OSD] * (width - len(row))
        context = self._layout.context(0, missing)
        path = partial(move_path, context, source=place, target=1)
        rounds = rounds_bytes(self.shard_bytes, context.recovery_chunk_bytes)
        return self._rounds(("move", place), path, rounds), self._layout.row(
            self._book, row, 0, group.number
        )

    def _rounds(
        self,
        key: tuple[object, ...],
        path: Callable[..., Template],
        sizes_bytes: list[int],
    ) -> list[int]:
        """Return the template of each round, or of all in one."""
        parts = (
            [sizes_bytes]
            if self._whole
            else [[size_bytes] for size_bytes in sizes_bytes]
        )
        return [
            self._known((*key, *part), partial(path, sizes_bytes=part))
            for part in parts
        ]

    def _known(self, key: tuple[object, ...], compiled: Callable[[], Template]) -> int:
        if key not in self._templates:
            self._templates[key] = self._book.add(compiled())
        return self._templates[key]

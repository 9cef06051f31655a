"""Background operations as templates and bindings: recovery, members' notes and scrubs."""

from collections.abc import Callable, Hashable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures.groups import Group
from stripesim.sim.ceph.kinds import PoolKind, RequestPlan, kind_of
from stripesim.sim.ceph.layout import Layout
from stripesim.sim.ceph.paths import (
    PathContext,
    note_path,
    scrub_path,
)
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.graph import IntArray, Template
from stripesim.sim.engine.program import RequestChunk

# The object's deletion, then its place in the log (``PrimaryLogPG::remove_missing_object``).
_DELETION_TRANSACTIONS = 2


@dataclass(frozen=True)
class Operation:
    """The recovery of one object on one or several OSDs.

    It creates `shards` on the OSDs that join. ``rebuild`` decodes them or pushes a replica, ``pull`` brings
    the replica that the primary lacks, ``move`` brings shards from OSDs that still have them, through the
    primary, ``delete`` records that an object is gone.
    One that `waits` begins once the operations of its object before it are done.
    """

    group: int
    item: int
    shards: tuple[int, ...]
    kind: Literal["rebuild", "pull", "move", "delete"]
    waits: bool = False


class PlannedOperation(NamedTuple):
    """The template of each round of an operation, and the binding row of all."""

    templates: list[int]
    binding: int


class OperationFeed:
    """A stream of operations that is filled during the run.

    The engine takes at most `queue_depth` operations at a time. With `reports` it reports their ends.
    `has_new` operations are yet to be announced.
    """

    feed = True
    timeout_ns = 0

    def __init__(self, queue_depth: int, *, reports: bool = True) -> None:
        self.queue_depth = queue_depth
        self.reports = reports
        self.has_new = False
        self._pushed_count = 0
        self._queue: list[tuple[int, int, int]] = []

    def push(self, template: int, binding: int, group: int) -> int:
        """Add an operation; return its number in the stream."""
        self._queue.append((template, binding, group))
        self.has_new = True
        self._pushed_count += 1
        return self._pushed_count - 1

    def take(self, count: int) -> RequestChunk:
        """Return the next operations, and remove them from the queue."""
        taken = self._queue[:count]
        self._queue = self._queue[count:]
        rows = np.array(taken, dtype=np.int64).reshape(-1, 3)
        return RequestChunk(
            templates=rows[:, 0], bindings=rows[:, 1], groups=rows[:, 2]
        )

    def replan(self, indices: IntArray) -> RequestChunk:
        """Raise an error: operations that were cut off are not issued again."""
        raise AssertionError(
            f"background operations {indices.tolist()} cannot be planned again"
        )


class OperationBook:
    """Plans operations, and compiles each kind once.

    With `in_one_graph` all rounds of an object are one template. `kind` is by default that of the pool, whose
    first PG has the number `first_group` among those of the cluster.
    """

    def __init__(
        self,
        pool: Pool,
        book: Book,
        layout: Layout,
        *,
        in_one_graph: bool = False,
        kind: PoolKind | None = None,
        first_group: int = 0,
    ) -> None:
        self._pool = pool
        self._kind = kind or kind_of(pool)
        self._first_group = first_group
        self.shard_bytes = self._kind.shard_bytes
        self._book = book
        self._layout = layout
        self._in_one_graph = in_one_graph
        self._templates: dict[Hashable, int] = {}

    def operations(self, group: Group, item: int, up: Set[int]) -> Iterator[Operation]:
        """Yield the recovery operations for an object, if an OSD lacks it and another can supply it."""
        lacking = [
            shard
            for shard, copy in group.joining_copies.items()
            if item in copy.missing
        ]
        if not lacking:
            return
        holders = group.holders(item, up)
        if item not in group.objects:
            yield from self._pushes(group, item, lacking, "delete", holders)
        elif self._pool.scheme.kind == "replicated":
            yield from self._replicated(group, item, lacking, holders)
        else:
            yield from self._coded(group, item, lacking, holders)

    def plan(
        self, group: Group, operation: Operation, up: Set[int]
    ) -> PlannedOperation:
        """Plan an operation for the current members."""
        holders = group.holders(operation.item, up)
        misplaced = group.is_misplaced(operation.item, up)
        targets = [group.members.joining[shard] for shard in operation.shards]
        if operation.kind == "delete":
            lead = group.members.primary
            if lead is None or lead not in holders:
                lead = min(holders)
            return self._deletion(group, holders[lead], targets)
        if operation.kind == "pull":
            return self._move(group, [holders[min(holders)]], targets, misplaced)
        # A write since the object's turn began leaves old holders behind. Its shards are rebuilt then.
        if operation.kind == "move" and holders.keys() >= set(operation.shards):
            sources = [holders[shard] for shard in operation.shards]
            return self._move(group, sources, targets, misplaced)
        if self._pool.scheme.kind == "replicated":
            source = _push_source(group, holders)
            return self._push(group, source, targets, misplaced)
        row = [holders.get(shard, NO_OSD) for shard in range(len(group.up))]
        for shard, osd in zip(operation.shards, targets, strict=True):
            row[shard] = osd
        lead = group.members.primary
        if lead is None or row[lead] == NO_OSD:
            lead = min(holders)
        return self._rebuild(group, row, lead, operation.shards, misplaced)

    def notes(self, group: Group, transactions_count: int) -> Iterator[tuple[int, int]]:
        """Yield template and binding row of each note of a PG's members."""
        members = group.members
        if not members.osds:
            return
        first = members.primary_osd
        if first is None:
            first = min(members.osds)
        replicas = sorted(members.osds - {first})
        block = len(group.up) - 1
        for start in range(0, max(1, len(replicas)), max(1, block)):
            row = [first, *replicas[start : start + block]]
            # The primary writes its note once.
            noting = range(start > 0, len(row))
            yield self._note(group, row, noting, transactions_count)

    def removal(
        self, group: Group, osd: int, transactions_count: int
    ) -> tuple[int, int]:
        """Return template and binding row of a step by which an OSD deletes its copy of a clean PG."""
        lead = group.members.primary_osd
        assert lead is not None
        row = list(dict.fromkeys((lead, osd)))
        noting = range(len(row) - 1, len(row))
        return self._note(group, row, noting, transactions_count)

    def scrub(self, group: Group, objects: int, *, deep: bool) -> tuple[int, int]:
        """Return template and binding row of the scrub of some objects of a clean PG."""
        lead = group.members.primary
        assert lead is not None
        path = partial(
            scrub_path,
            self._layout.context(lead, frozenset()),
            shard_bytes=self.shard_bytes,
            objects=objects,
            deep=deep,
        )
        template = self._compiled(("scrub", lead, objects, deep), path)
        return template, self._bound(group, group.members.acting, lead)

    def _replicated(
        self, group: Group, item: int, lacking: Sequence[int], holders: dict[int, int]
    ) -> Iterator[Operation]:
        """Yield the pull of a primary that lacks the object, then the pushes to the others."""
        lead = group.members.primary
        primary_has_it = lead not in lacking or lead not in group.joining_inside
        if lead is None or primary_has_it or not holders:
            yield from self._pushes(group, item, lacking, "rebuild", holders)
            return
        yield Operation(group.number, item, (lead,), "pull")
        replicas = [shard for shard in lacking if shard != lead]
        for operation in self._pushes(group, item, replicas, "rebuild", holders):
            yield replace(operation, waits=True)

    def _pushes(
        self,
        group: Group,
        item: int,
        lacking: Sequence[int],
        kind: Literal["rebuild", "delete"],
        holders: dict[int, int],
    ) -> Iterator[Operation]:
        if not holders:
            return
        # One place of the binding is the source's, the others are for the targets.
        targets_max = len(group.up) - 1
        for start in range(0, len(lacking), max(1, targets_max)):
            shards = tuple(lacking[start : start + targets_max])
            yield Operation(group.number, item, shards, kind)

    def _coded(
        self, group: Group, item: int, lacking: Sequence[int], holders: dict[int, int]
    ) -> Iterator[Operation]:
        moved = [shard for shard in lacking if shard in holders]
        yield from self._moves(group, item, moved, holders)
        rebuilt = tuple(shard for shard in lacking if shard not in holders)
        lost = frozenset(range(len(group.up))).difference(holders)
        if rebuilt and self._pool.scheme.can_decode(lost):
            yield Operation(group.number, item, rebuilt, "rebuild")

    def _moves(
        self, group: Group, item: int, moved: Sequence[int], holders: dict[int, int]
    ) -> Iterator[Operation]:
        """Yield the moves of shards of an object: one, or several if a binding has too few places for all."""
        lead = group.members.primary_osd
        osds = {lead}
        shards: list[int] = []
        for shard in moved:
            pair = {holders[shard], group.members.joining[shard]}
            if shards and len(osds | pair) > self._pool.cluster.width:
                yield Operation(group.number, item, tuple(shards), "move")
                osds = {lead}
                shards = []
            osds |= pair
            shards.append(shard)
        if shards:
            yield Operation(group.number, item, tuple(shards), "move")

    def _deletion(
        self, group: Group, lead: int, targets: list[int]
    ) -> PlannedOperation:
        row = [lead, *targets]
        template, binding = self._note(
            group, row, range(1, len(row)), _DELETION_TRANSACTIONS, recovers=True
        )
        return PlannedOperation([template], binding)

    def _push(
        self, group: Group, source: int, targets: list[int], misplaced: bool
    ) -> PlannedOperation:
        row = [source, *targets]
        lost = tuple(range(1, len(row)))
        return self._rebuild(group, self._padded(row), 0, lost, misplaced)

    def _rebuild(
        self,
        group: Group,
        row: list[int],
        lead: int,
        lost: tuple[int, ...],
        misplaced: bool,
    ) -> PlannedOperation:
        missing = frozenset(shard for shard, osd in enumerate(row) if osd == NO_OSD)
        context = self._layout.context(lead, missing)
        if misplaced:
            context = context.moving
        plans = self._kind.plan_repair(context, lost, in_one_graph=self._in_one_graph)
        return PlannedOperation(self._rounds(plans), self._bound(group, row, lead))

    def _move(
        self, group: Group, sources: list[int], targets: list[int], misplaced: bool
    ) -> PlannedOperation:
        lead = group.members.primary_osd
        if lead is None:
            lead = sources[0]
        row = list(dict.fromkeys((lead, *targets, *sources)))
        moves = tuple(
            (row.index(source), row.index(target))
            for source, target in zip(sources, targets, strict=True)
        )
        context = self._context_of(row)
        if misplaced:
            context = context.moving
        plans = self._kind.plan_move(context, moves, in_one_graph=self._in_one_graph)
        binding = self._bound(group, self._padded(row), 0)
        return PlannedOperation(self._rounds(plans), binding)

    def _note(
        self,
        group: Group,
        row: list[int],
        noting: range,
        transactions_count: int,
        *,
        recovers: bool = False,
    ) -> tuple[int, int]:
        path = partial(
            note_path,
            self._context_of(row),
            noting,
            transactions_count,
            recovers=recovers,
        )
        key = ("note", len(row), noting, transactions_count, recovers)
        template = self._compiled(key, path)
        return template, self._bound(group, self._padded(row), 0)

    def _context_of(self, row: list[int]) -> PathContext:
        """Return the context of a row of OSDs led by the first."""
        width = self._pool.cluster.width
        return self._layout.context(0, frozenset(range(len(row), width)))

    def _padded(self, row: list[int]) -> list[int]:
        return row + [NO_OSD] * (self._pool.cluster.width - len(row))

    def _bound(self, group: Group, row: Sequence[int], lead: int) -> int:
        number = group.number - self._first_group
        return self._layout.row(self._book, row, lead, number)

    def _rounds(self, plans: Sequence[RequestPlan]) -> list[int]:
        """Return the template of each round."""
        return [self._compiled(plan.key, plan.compile) for plan in plans]

    def _compiled(self, key: Hashable, path: Callable[[], Template]) -> int:
        """Return the index of a template, compiled if it is new."""
        if key not in self._templates:
            self._templates[key] = self._book.add(path())
        return self._templates[key]


@dataclass(frozen=True)
class OperationBooks:
    """The operations of all pools of a cluster."""

    data: OperationBook  #: Those of the pool
    index: (
        OperationBook | None
    )  #: Those of the pool of bucket indexes, whose PGs follow
    data_groups: int  #: PGs of the pool [count]

    def of(self, group: Group) -> OperationBook:
        """Return the operations of the pool of a PG."""
        if group.number < self.data_groups:
            return self.data
        assert self.index is not None
        return self.index

    def shard_bytes(self, group: int) -> int:
        """Return the size of one shard of an object of a PG [B]."""
        if group < self.data_groups:
            return self.data.shard_bytes
        assert self.index is not None
        return self.index.shard_bytes


def _push_source(group: Group, holders: dict[int, int]) -> int:
    """Return the OSD that pushes a replica: the primary if it has the object."""
    lead = group.members.primary_osd
    if lead is not None and lead in holders.values():
        return lead
    return holders[min(holders)]

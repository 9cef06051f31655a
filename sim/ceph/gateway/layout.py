"""Route S3 requests in a run whose placement groups change: heads, tails, and shards of bucket indexes.

A request needs several placement groups. It waits while one of them does not serve, and is issued again from
its start if one of them is interrupted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from stripesim.sim.ceph.clients.objects import PART_OPS, S3Load
from stripesim.sim.ceph.gateway.paths import WRITING_OPS, S3Op, S3Paths
from stripesim.sim.ceph.gateway.places import ObjectPlaces
from stripesim.sim.ceph.kinds import PoolKind, RequestPlan, kind_of
from stripesim.sim.ceph.kinds.kind import planned_rounds
from stripesim.sim.ceph.kinds.replicated import Replicated
from stripesim.sim.ceph.layout import Layout
from stripesim.sim.ceph.paths import PathContext, keys_path, rounds_bytes
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.graph import IntArray

# Keys of one push of recovery at most (osd_recovery_max_omap_entries_per_chunk).
_KEYS_OF_PUSH_MAX = 8096


class Footprint(NamedTuple):
    """Placement groups of its place that a request needs."""

    objects: int  #: Head and tails [count]
    index_objects: int  #: Index shards [count]
    is_write: bool


def footprint_of(paths: S3Paths, op: S3Op, size: int) -> Footprint:
    """Return the footprint of a request of a size [B]."""
    return Footprint(
        paths.objects_count(op, size), paths.index_objects_count(op), op in WRITING_OPS
    )


class ObjectGroups:
    """Groups of an engine for requests to objects, and for background work.

    Requests of a place, a footprint and a gateway are a group.

    Parameters
    ----------
    places
        Placement groups of objects and index shards.
    footprints
        Those of the load.
    gateways
        Gateways that may fail, or 1.
    """

    def __init__(
        self, places: ObjectPlaces, footprints: Sequence[Footprint], gateways: int
    ) -> None:
        self._places = places
        self._footprints = list(footprints)
        self._gateways = gateways
        self._pg_count = places.groups_count + places.index_groups_count

    @property
    def count(self) -> int:
        """Number of groups of the engine."""
        return self._pg_count + self._clients_count

    @property
    def _clients_count(self) -> int:
        return self._places.slots * len(self._footprints) * self._gateways

    def background(self, pg: int) -> int:
        """Return the group of a placement group's background work."""
        return pg

    def of_requests(
        self, slots: IntArray, footprints: IntArray, gateways: IntArray
    ) -> IntArray:
        """Return the group of each request, by its place, the number of its footprint and its gateway."""
        number = slots * len(self._footprints) + footprints
        return self._pg_count + number * self._gateways + gateways % self._gateways

    def of_gateway(self, gateway: int) -> Sequence[int]:
        """Return the groups of the requests that use a gateway as long as it is there."""
        return range(self._pg_count + gateway, self.count, self._gateways)

    def of_pg(self, pg: int) -> Sequence[int]:
        """Return the groups of the requests that need a placement group."""
        return self._parts[pg]

    @cached_property
    def of_writes(self) -> Sequence[int]:
        """Groups of requests that write."""
        parts = [
            self._of_footprint(number)
            for number, footprint in enumerate(self._footprints)
            if footprint.is_write
        ]
        return np.sort(np.concatenate(parts, axis=None)).tolist() if parts else []

    def _of_footprint(self, number: int) -> IntArray:
        """Return the groups of the requests with a footprint, shape (slots, gateways)."""
        slots = np.arange(self._places.slots, dtype=np.int64)[:, None]
        gateways = np.arange(self._gateways, dtype=np.int64)
        return self.of_requests(slots, np.full_like(slots, number), gateways)

    @cached_property
    def _parts(self) -> list[list[int]]:
        """Groups of the requests that need each placement group."""
        pg_places = self._places
        slots = np.arange(pg_places.slots, dtype=np.int64)
        pairs = []
        for number, footprint in enumerate(self._footprints):
            parts = self._of_footprint(number)
            data = pg_places.groups[:, : footprint.objects]
            index = pg_places.groups_count + pg_places.index_groups(slots)
            needed = np.concatenate([data, index[:, : footprint.index_objects]], axis=1)
            shape = (*needed.shape, self._gateways)
            each = np.broadcast_to(needed[:, :, None], shape)
            of_each = np.broadcast_to(parts[:, None, :], shape)
            pairs.append(np.stack([each.reshape(-1), of_each.reshape(-1)]))
        needs, parts = np.unique(np.concatenate(pairs, axis=1), axis=1)
        borders = np.searchsorted(needs, np.arange(1, self._pg_count))
        return [own.tolist() for own in np.split(parts, borders)]


class ObjectLayouts:
    """State of the placement groups of a data pool and of the pool of its bucket indexes.

    Parameters
    ----------
    pool, book
        The data pool, and the bindings of the run.
    load
        The load on its buckets.
    objects_counts
        Objects that each placement group of the data pool holds beforehand, shape (groups,).

    Notes
    -----
    RADOS objects are numbered through, placement group by placement group. New ones follow. An object of the
    index has the number of its shard.
    """

    def __init__(
        self, pool: Pool, book: Book, load: S3Load, objects_counts: IntArray
    ) -> None:
        gateways = pool.cluster.gateways
        assert gateways is not None
        self.places = ObjectPlaces(pool, book, load.slots)
        self.data = Layout(pool)
        index_cluster = replace(pool.cluster, acting=gateways.index_sets)
        self.index_pool = replace(
            pool,
            cluster=index_cluster,
            scheme=gateways.index_scheme,
            object_bytes=max(1, gateways.index_shard_bytes),
        )
        self.index = Layout(self.index_pool)
        self._footprints = _footprints(pool, load)
        self._numbers = {
            footprint: number
            for number, footprint in enumerate(dict.fromkeys(self._footprints.values()))
        }
        #: Gateway that clients use in place of each one, shape (gateways,)
        self.substitutes = np.arange(gateways.count, dtype=np.int64)
        self._substitutions_count = 0
        self.engine_groups = ObjectGroups(
            self.places,
            list(self._numbers),
            gateways.count if gateways.fails_over else 1,
        )
        self._counts = objects_counts
        self._firsts = np.cumsum(objects_counts) - objects_counts
        #: Number of the first new object
        self.first_new = int(objects_counts.sum())
        self._book = book
        self._rows: dict[tuple[int, ...], int] = {}

    def set(
        self,
        book: Book,
        group: int,
        members: Sequence[int],
        missing: frozenset[int],
        primary: int,
        item: int | None = None,
    ) -> None:
        """Change the state of a placement group of either pool, see `Layout.set`."""
        first = self.places.groups_count
        if group < first:
            self.data.set(book, group, members, missing, primary, item)
        else:
            self.index.set(book, group - first, members, missing, primary, item)

    @property
    def changes_count(self) -> int:
        """Number of changes of the state: plans before the last one are out of date [count]."""
        of_groups = self.data.changes_count + self.index.changes_count
        return of_groups + self._substitutions_count

    def substitute(self, gateways: IntArray) -> None:
        """Let clients use these gateways in place of each one, shape (gateways,)."""
        self.substitutes = gateways
        self._substitutions_count += 1

    def footprint(self, op: int, size: int) -> Footprint:
        """Return what a request needs, by the number of its operation and its size [B]."""
        return self._footprints[op, size]

    def groups_of(
        self, ops: IntArray, sizes: IntArray, slots: IntArray, gateways: IntArray
    ) -> IntArray:
        """Return the group of the engine of each request."""
        pairs, inverse = np.unique(
            np.column_stack([ops, sizes]), axis=0, return_inverse=True
        )
        numbers = [
            self._numbers[self.footprint(op, size)] for op, size in pairs.tolist()
        ]
        of_requests = np.array(numbers, dtype=np.int64)[inverse.reshape(-1)]
        return self.engine_groups.of_requests(slots, of_requests, gateways)

    def existing_items(self, slots: IntArray) -> IntArray:
        """Return the number of the head and of each tail at places, shape (n, objects)."""
        groups = self.places.groups[slots]
        counts = np.maximum(self._counts[groups], 1)
        items: IntArray = self._firsts[groups] + self.places.ranks[slots] % counts
        # A placement group without objects has none that it could lack.
        return np.where(self._counts[groups] > 0, items, self.first_new)

    def states_of(
        self, slots: IntArray, items: IntArray
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Return how requests see the placement groups that they may need.

        Parameters
        ----------
        slots
            Place of each request, shape (n,).
        items
            Its head and tails, shape (n, objects).

        Returns
        -------
        views, index_views
            Contexts in `data` of head and tails, shape (n, objects), and in `index` of index shards.
        rows
            Binding row of each request, shape (n,).
        """
        places = self.places
        data = [
            self.data.states_of(self._book, groups, own)
            for groups, own in zip(places.groups[slots].T, items.T, strict=True)
        ]
        shards = places.index_shards(slots)
        index = [
            self.index.states_of(self._book, groups, own)
            for groups, own in zip(places.index_groups(slots).T, shards.T, strict=True)
        ]
        keys = np.column_stack(
            [slots, *(rows for _, rows in data), *(rows for _, rows in index)]
        )
        unique, inverse = np.unique(keys, axis=0, return_inverse=True)
        new = np.array(
            [key for key in map(tuple, unique.tolist()) if key not in self._rows],
            dtype=np.int64,
        ).reshape(-1, keys.shape[1])
        if len(new):
            numbers = self._book.add_bindings(
                places.bound(new[:, 0], self._book.bindings, new[:, 1:])
            )
            for key, number in zip(new.tolist(), numbers.tolist(), strict=True):
                self._rows[tuple(key)] = number
        rows = [self._rows[tuple(key)] for key in unique.tolist()]
        return (
            np.column_stack([views for views, _ in data]),
            np.column_stack([views for views, _ in index]),
            np.array(rows, dtype=np.int64)[inverse.reshape(-1)],
        )

    @property
    def index_kind(self) -> PoolKind:
        """Kind of pool under which the index is recovered."""
        return IndexKeys(self.index_pool)


class IndexKeys(Replicated):
    """Objects without data whose keys recovery pushes from copy to copy.

    References
    ----------
    Ceph v18.2, ``src/osd/ReplicatedBackend.cc`` (``build_push_op``: keys of an object, at most
    ``osd_recovery_max_omap_entries_per_chunk`` in a message).
    """

    def plan_repair(
        self, context: PathContext, lost: tuple[int, ...], *, in_one_graph: bool
    ) -> list[RequestPlan]:
        """Plan the rounds that push the keys from the primary."""
        return self._pushes(context, (context.primary,), lost, in_one_graph)

    def plan_move(
        self,
        context: PathContext,
        moves: tuple[tuple[int, int], ...],
        *,
        in_one_graph: bool,
    ) -> list[RequestPlan]:
        """Plan the rounds that move the keys from copies that still exist."""
        sources = tuple(dict.fromkeys(source for source, _ in moves))
        targets = tuple(target for _, target in moves)
        return self._pushes(context, sources, targets, in_one_graph)

    def _pushes(
        self,
        context: PathContext,
        sources: tuple[int, ...],
        targets: tuple[int, ...],
        in_one_graph: bool,
    ) -> list[RequestPlan]:
        gateway = self.pool.cluster.models.gateway
        assert gateway is not None
        most_bytes = min(
            context.recovery_chunk_bytes,
            _KEYS_OF_PUSH_MAX * gateway.index_entry_bytes,
        )
        rounds = rounds_bytes(self.pool.object_bytes, most_bytes)
        path = partial(keys_path, context, sources=sources, targets=targets)
        key = ("keys", context, sources, targets)
        return planned_rounds(key, path, rounds, in_one_graph)


def _footprints(pool: Pool, load: S3Load) -> dict[tuple[int, int], Footprint]:
    """Return what requests need, by number of the operation and size [B]."""
    paths = S3Paths(kind_of(pool), pool.contexts, load.tls)
    needs = {}
    for number, op in enumerate((*load.ops, *PART_OPS)):
        sizes: set[int] = set(load.sizes_bytes)
        if op == "list":
            sizes = {load.list_keys}
        if op in PART_OPS:
            sizes = load.part_sizes_bytes
        for size in sizes:
            needs[number, size] = footprint_of(paths, op, size)  # type: ignore[arg-type]
    return needs

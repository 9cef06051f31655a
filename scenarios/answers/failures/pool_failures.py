"""Effects of a failure on the placement groups of one pool: shards that move, and groups with few left."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np
import numpy.typing as npt

from stripesim.models.coding import parse_scheme
from stripesim.models.placement import NONE, Movement, PoolOutages, pg_sets
from stripesim.scenarios.clusters.cluster import (
    GroupData,
    ImportedCluster,
    ImportedPool,
)

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class GroupMove:
    """A placement group that moves shards after a failure."""

    group: int
    lead: int  # OSD that leads the backfill
    #: OSD that gives up each shard and OSD that gets it, None where there is no such OSD
    steps: tuple[tuple[int | None, int | None], ...]

    @property
    def sources(self) -> list[int]:
        """OSDs that give up a shard, failed ones included."""
        return [source for source, _ in self.steps if source is not None]

    @property
    def targets(self) -> list[int]:
        """OSDs that get a shard."""
        return [target for _, target in self.steps if target is not None]


@dataclass(frozen=True)
class GroupsLeft:
    """Placement groups by the shards left while failed OSDs are not yet replaced."""

    at_min_size: IntArray  # serve clients, and stop if one more shard is lost
    inactive: IntArray  # serve no clients
    lost: IntArray  # of the inactive ones, those whose shards left cannot be decoded


class PoolFailures:
    """The placement groups of a pool, their data, and the effects of failed OSDs on them.

    Attributes
    ----------
    client_bytes
        Data of clients and keys in each group [B], shape (pg_num,).
    shard_bytes
        Data of one shard of each group by the cluster's counters [B], shape (pg_num,).
    allocated_bytes
        Bytes that one shard of each group takes on an OSD [B], shape (pg_num,).
    has_whole_log
        True for a group that recovers by its log, not by backfill, shape (pg_num,).
    """

    def __init__(self, cluster: ImportedCluster, pool: ImportedPool) -> None:
        self.pool = pool
        osd_map = cluster.osd_map
        self._returning = osd_map.returning_osds
        self._acting: IntArray = cluster.sets[pool.placed.id].acting.astype(np.int64)
        osd_map = replace(osd_map, up=osd_map.up | self._returning)
        sets = pg_sets(osd_map, pool.placed)
        self._outages = PoolOutages(osd_map, pool.placed)
        self._up: IntArray = sets.up.astype(np.int64)
        self._held: IntArray = sets.acting.astype(np.int64)
        data = cluster.group_data.get(pool.placed.id) or _even_data(pool)
        self.client_bytes = data.stored_bytes + data.omap_bytes
        self._scheme = parse_scheme(pool.scheme)
        self._data_shards = self._scheme.k
        self.shard_bytes: FloatArray = (
            data.stored_bytes / self._data_shards + data.omap_bytes
        )
        self.allocated_bytes: FloatArray = (
            self._allocated_ratio(data) * data.stored_bytes / self._data_shards
            + data.omap_bytes
        )
        self.has_whole_log = data.has_whole_log
        self._groups_of = _groups_of(self._held)

    @property
    def is_replicated(self) -> bool:
        """True if all members of a group hold the same."""
        return self.pool.placed.kind == "replicated"

    def pending(self) -> Movement:
        """Return the shards that are still to move, before any failure."""
        width = max(self._up.shape[1], self._held.shape[1])
        held = _padded(self._held, width)
        up = _padded(self._up, width)
        return Movement.between(held, up, is_replicated=self.is_replicated)

    def left_without(self, osds: Collection[int]) -> GroupsLeft:
        """Return the groups that have few shards left while OSDs are down.

        OSDs that are down already serve nothing, but bring their shards back.
        """
        hit = {group for osd in osds for group in self._groups_of.get(osd, ())}
        groups = np.array(sorted(hit), dtype=np.int64)
        rows = self._held[groups]
        alive = (rows != NONE) & ~np.isin(rows, list(osds))
        serving = alive & ~np.isin(rows, np.flatnonzero(self._returning))
        counts = serving.sum(axis=1)
        least = self.pool.min_size
        lost = self._is_lost(alive, alive.sum(axis=1))
        return GroupsLeft(
            at_min_size=groups[(counts == least) & ~lost],
            inactive=groups[(counts < least) | lost],
            lost=groups[lost],
        )

    def _is_lost(self, alive: BoolArray, counts: IntArray) -> BoolArray:
        """Return True for each group that its shards left cannot rebuild, shape (groups,)."""
        scheme = self._scheme
        lost: BoolArray = counts < self._data_shards
        # Fewer missing shards are always decoded. Codes such as Reed-Solomon leave none to try.
        is_open = ~lost & (scheme.width - counts > scheme.failures_tolerated)
        shards = np.array(scheme.ceph_order)
        for index in np.flatnonzero(is_open):
            missing = frozenset(shards[~alive[index]].tolist())
            lost[index] = not scheme.can_decode(missing)
        return lost

    def moves_without(
        self, osds: Collection[int], lost: Iterable[int]
    ) -> tuple[list[GroupMove], IntArray]:
        """Mark OSDs out.

        Parameters
        ----------
        osds
            OSDs that fail.
        lost
            Groups that cannot be rebuilt.

        Returns
        -------
        moves
            Groups that move shards, ascending.
        undersized
            Groups for which CRUSH finds fewer OSDs than shards.
        """
        groups, rows = self._outages.without(osds)
        after = rows.astype(np.int64)
        width = max(self._up.shape[1], after.shape[1])
        before = _padded(self._up[groups], width)
        after = _padded(after, width)
        undersized = groups[(after != NONE).sum(axis=1) < self.pool.placed.size]
        without_data = set(lost)
        moves = []
        for group, old, new in zip(
            groups.tolist(), before.tolist(), after.tolist(), strict=True
        ):
            steps = self._steps(old, new)
            targets = [target for _, target in steps if target is not None]
            if targets and group not in without_data:
                lead = self._lead(group, osds, targets)
                moves.append(GroupMove(group, lead, steps))
        return moves, undersized

    def _steps(
        self, old: list[int], new: list[int]
    ) -> tuple[tuple[int | None, int | None], ...]:
        """Return the shards that move from one row of OSDs to another. Copies have no places."""
        if not self.is_replicated:
            moved = [pair for pair in zip(old, new, strict=True) if pair[0] != pair[1]]
            return tuple((_known(source), _known(target)) for source, target in moved)
        leaving = [osd for osd in old if osd != NONE and osd not in new]
        joining = [osd for osd in new if osd != NONE and osd not in old]
        return tuple(zip_longest(leaving, joining))

    def _lead(self, group: int, osds: Collection[int], targets: Sequence[int]) -> int:
        """Return the primary of a group while it is backfilled: its first member that is left."""
        members = self._acting[group].tolist()
        left = (osd for osd in members if osd != NONE and osd not in osds)
        return next(left, targets[0])

    def _allocated_ratio(self, data: GroupData) -> float:
        """Return the bytes allocated for each byte of data, 1 if no file has them."""
        allocated_bytes = self.pool.allocated_bytes
        present = (self._acting != NONE).sum(axis=1)
        counted_bytes = float((data.stored_bytes / self._data_shards * present).sum())
        if not allocated_bytes or not counted_bytes:
            return 1.0
        return allocated_bytes / counted_bytes


def _even_data(pool: ImportedPool) -> GroupData:
    """Return the data of a pool, equal in all groups."""
    count = pool.placed.pg_num
    mean_bytes = round((pool.stored_bytes or 0) / count)
    mean_omap_bytes = round(pool.omap_bytes / count)
    return GroupData(
        stored_bytes=np.full(count, mean_bytes, dtype=np.int64),
        omap_bytes=np.full(count, mean_omap_bytes, dtype=np.int64),
        has_whole_log=np.zeros(count, dtype=np.bool_),
    )


def _groups_of(rows: IntArray) -> dict[int, list[int]]:
    """Return the groups with a shard on each OSD."""
    groups_of: dict[int, list[int]] = {}
    for group, row in enumerate(rows.tolist()):
        for osd in row:
            groups_of.setdefault(osd, []).append(group)
    groups_of.pop(NONE, None)
    return groups_of


def _padded(rows: IntArray, width: int) -> IntArray:
    """Widen rows with empty places."""
    missing = width - rows.shape[1]
    return np.pad(rows, ((0, 0), (0, missing)), constant_values=NONE)


def _known(osd: int) -> int | None:
    return None if osd == NONE else osd

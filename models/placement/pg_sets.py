"""Compute the OSDs of placement groups from an OSD map: CRUSH, exceptions, states and primaries.

References
----------
Ceph v19.2.0, src/osd/OSDMap.cc (_pg_to_up_acting_osds and its callees) and src/osd/osd_types.cc
(pg_pool_t::raw_pg_to_pps).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from stripesim.models.placement.crush.elements import NONE, WEIGHT_ONE
from stripesim.models.placement.crush.map import CrushMap
from stripesim.models.placement.crush.rjenkins import hash_pair
from stripesim.models.placement.osdmap import placement_seeds, stable_mod

Pg = tuple[int, int]
Entry = TypeVar("Entry")
Rows = npt.NDArray[np.int32]


@dataclass(frozen=True)
class PlacedPool:
    """The properties of a pool that decide the placement of its groups.

    `size` is the number of OSDs per group (replicas, or k + m) and `rule` the id of its CRUSH rule. A slot
    without an OSD stays empty in an erasure-coded pool; in a replicated pool, the following OSDs move up.
    `hashpspool` is True if the pool's id is hashed into the seed (all pools since Dumpling) instead of being
    added to it.
    """

    id: int
    name: str
    kind: Literal["replicated", "erasure"]
    size: int
    pg_num: int
    pgp_num: int
    rule: int
    hashpspool: bool = True


@dataclass(frozen=True)
class OsdMap:
    """The parts of a cluster's OSD map that decide the placement of groups.

    `exists`, `up`, `weights` and `affinities` are indexed by OSD id. Weights are those of ``ceph osd
    reweight`` (0: out), and both weights and primary affinities are 16.16 fixed point. The exceptions are
    keyed by (pool, pg): `pg_upmap` replaces all OSDs from CRUSH, `pg_upmap_items` single ones (from, to),
    `pg_upmap_primaries` swaps an OSD with the first, `pg_temp` is the acting set while the up set is being
    filled, and `primary_temp` the acting primary.
    """

    crush: CrushMap
    exists: npt.NDArray[np.bool_]
    up: npt.NDArray[np.bool_]
    weights: npt.NDArray[np.int64]
    affinities: npt.NDArray[np.int64]
    pools: tuple[PlacedPool, ...]
    pg_upmap: Mapping[Pg, Sequence[int]] = field(default_factory=dict)
    pg_upmap_items: Mapping[Pg, Sequence[tuple[int, int]]] = field(default_factory=dict)
    pg_upmap_primaries: Mapping[Pg, int] = field(default_factory=dict)
    pg_temp: Mapping[Pg, Sequence[int]] = field(default_factory=dict)
    primary_temp: Mapping[Pg, int] = field(default_factory=dict)

    def reweight_vector(self) -> npt.NDArray[np.int64]:
        """Return the weights for `CrushMap.map_many`, with ids without an OSD marked out."""
        size = self.crush.max_devices
        vector = np.zeros(size, dtype=np.int64)
        known = min(size, len(self.weights))
        vector[:known] = self.weights[:known]
        return vector

    def is_out(self, osd: int) -> bool:
        """Return True if an OSD of the map has weight 0. An unknown id counts as in."""
        return 0 <= osd < len(self.weights) and int(self.weights[osd]) == 0

    @property
    def returning_osds(self) -> npt.NDArray[np.bool_]:
        """True for OSDs that are down but in, which Ceph expects to return, shape (osds,)."""
        returning: npt.NDArray[np.bool_] = self.exists & ~self.up & (self.weights > 0)
        return returning


@dataclass(frozen=True)
class PgSets:
    """Up and acting sets, int32 of shape (pg_num, width), and primaries, int32 of shape (pg_num,).

    `NONE` marks a slot without an OSD, −1 a group without a primary.
    """

    up: Rows
    up_primary: Rows
    acting: Rows
    acting_primary: Rows


def pg_sets(
    osd_map: OsdMap, pool: PlacedPool, groups: npt.NDArray[np.int64] | None = None
) -> PgSets:
    """Compute the up and acting sets of placement groups of a pool.

    Parameters
    ----------
    osd_map, pool
        The OSD map, and one of its pools.
    groups
        Placement groups, ascending, shape (n,). None computes all.

    Returns
    -------
    PgSets
        A row for each of the groups, in their order.
    """
    if groups is None:
        groups = np.arange(pool.pg_num, dtype=np.int64)
    else:
        osd_map = _renumbered(osd_map, pool, groups)
    if pool.hashpspool:
        seeds = placement_seeds(groups, pool.id, pool.pgp_num)
    else:
        seeds = stable_mod(groups, pool.pgp_num) + pool.id
    if any(rule.id == pool.rule for rule in osd_map.crush.rules):
        weights = osd_map.reweight_vector()
        rows = osd_map.crush.map_many(
            pool.rule, seeds, pool.size, weights, pool=pool.id
        )
    else:
        rows = np.full((len(groups), pool.size), NONE, dtype=np.int32)
    shift = pool.kind == "replicated"
    rows = _keep(rows, osd_map.exists, shift)
    rows = _upmapped(osd_map, pool, rows)
    up = _keep(rows, osd_map.exists & osd_map.up, shift)
    up, up_primary = _with_primaries(osd_map, up, seeds, shift)
    acting, acting_primary = _with_temps(osd_map, pool, up, up_primary, shift)
    return PgSets(up, up_primary, acting, acting_primary)


def _renumbered(
    osd_map: OsdMap, pool: PlacedPool, groups: npt.NDArray[np.int64]
) -> OsdMap:
    """Return a map whose exceptions are those of some groups of a pool, by the row of each group."""

    def by_row(exceptions: Mapping[Pg, Entry]) -> dict[Pg, Entry]:
        if not exceptions:
            return {}
        return {
            (pool.id, row): exceptions[pool.id, group]
            for row, group in enumerate(groups.tolist())
            if (pool.id, group) in exceptions
        }

    return replace(
        osd_map,
        pg_upmap=by_row(osd_map.pg_upmap),
        pg_upmap_items=by_row(osd_map.pg_upmap_items),
        pg_upmap_primaries=by_row(osd_map.pg_upmap_primaries),
        pg_temp=by_row(osd_map.pg_temp),
        primary_temp=by_row(osd_map.primary_temp),
    )


def _keep(rows: Rows, wanted: npt.NDArray[np.bool_], shift: bool) -> Rows:
    """Empty the slots of unwanted OSDs. If `shift`, move the following OSDs up."""
    kept = np.zeros(rows.shape, dtype=bool)
    known = (rows >= 0) & (rows < len(wanted))
    kept[known] = wanted[rows[known]]
    if kept.all():
        return rows
    rows = np.where(kept, rows, np.int32(NONE)).astype(np.int32)
    if shift:
        # A stable sort by "is empty" moves the others up in order.
        order = np.argsort(~kept, axis=1, kind="stable")
        rows = np.take_along_axis(rows, order, axis=1)
    return rows


def _at(rows: Rows, slots: npt.NDArray[np.int64]) -> Rows:
    """Return the OSD in one slot of each row, or −1 for an empty slot."""
    if rows.shape[1] == 0:
        return np.full(len(rows), -1, dtype=np.int32)
    primaries = np.take_along_axis(rows, slots[:, None], axis=1)[:, 0]
    return np.where(primaries == NONE, -1, primaries).astype(np.int32)


def _upmapped(osd_map: OsdMap, pool: PlacedPool, rows: Rows) -> Rows:
    changed: dict[int, list[int]] = {}

    def row(group: int) -> list[int]:
        return changed.setdefault(group, rows[group].tolist())

    rejected: set[int] = set()
    for group, osds in _of_pool(pool, osd_map.pg_upmap):
        if any(osd_map.is_out(osd) for osd in osds):
            # Ceph then leaves the whole group to CRUSH.
            rejected.add(group)
        else:
            changed[group] = list(osds)
    for group, pairs in _of_pool(pool, osd_map.pg_upmap_items, rejected):
        mapped = row(group)
        for old, new in pairs:
            if (
                new not in mapped
                and old in mapped
                and (new == NONE or not osd_map.is_out(new))
            ):
                mapped[mapped.index(old)] = new
    for group, primary in _of_pool(pool, osd_map.pg_upmap_primaries, rejected):
        mapped = row(group)
        in_cluster = 0 <= primary < len(osd_map.weights) and not osd_map.is_out(primary)
        if in_cluster and primary in mapped[1:]:
            slot = mapped.index(primary, 1)
            mapped[0], mapped[slot] = primary, mapped[0]
    return _with_rows(rows, changed)


def _of_pool(
    pool: PlacedPool, entries: Mapping[Pg, Entry], without: Collection[int] = ()
) -> Iterator[tuple[int, Entry]]:
    for (pool_id, group), entry in entries.items():
        if pool_id == pool.id and group < pool.pg_num and group not in without:
            yield group, entry


def _with_rows(rows: Rows, changed: Mapping[int, Sequence[int]]) -> Rows:
    """Replace rows, widening the table to the widest."""
    if not changed:
        return rows
    width = max(rows.shape[1], *(len(osds) for osds in changed.values()))
    wide = np.full((len(rows), width), NONE, dtype=np.int32)
    wide[:, : rows.shape[1]] = rows
    for group, osds in changed.items():
        wide[group] = NONE
        wide[group, : len(osds)] = osds
    return wide


def _with_primaries(
    osd_map: OsdMap, up: Rows, seeds: npt.NDArray[np.int64], shift: bool
) -> tuple[Rows, Rows]:
    """Pick the primaries by affinity. In a replicated pool, move them to the front."""
    # The first OSD, or 0 if there is none.
    slots = np.argmax(up != NONE, axis=1)
    if (osd_map.affinities < WEIGHT_ONE).any() and up.shape[1]:
        present = up != NONE
        osds = np.where(present, up, 0).astype(np.int64)
        affinity = osd_map.affinities[osds]
        drawn = hash_pair(np.broadcast_to(seeds[:, None], osds.shape), osds) >> 16
        willing = present & ((affinity >= WEIGHT_ONE) | (drawn < affinity))
        # If no OSD is willing, the first one is primary.
        slots = np.where(willing.any(axis=1), np.argmax(willing, axis=1), slots)
        if shift and slots.any():
            columns = np.arange(up.shape[1])
            order = np.argsort(np.where(columns == slots[:, None], -1, columns), axis=1)
            up = np.take_along_axis(up, order, axis=1)
            slots = np.zeros_like(slots)
    return up, _at(up, slots)


def _is_up(osd_map: OsdMap, osd: int) -> bool:
    known = 0 <= osd < len(osd_map.up)
    return known and bool(osd_map.exists[osd] and osd_map.up[osd])


def _with_temps(
    osd_map: OsdMap, pool: PlacedPool, up: Rows, up_primary: Rows, shift: bool
) -> tuple[Rows, Rows]:
    changed: dict[int, list[int]] = {}
    primaries = dict(_of_pool(pool, osd_map.primary_temp))
    for group, osds in _of_pool(pool, osd_map.pg_temp):
        alive = [osd if _is_up(osd_map, osd) else NONE for osd in osds]
        if shift:
            alive = [osd for osd in alive if osd != NONE]
        if alive:
            changed[group] = alive
            first = next((osd for osd in alive if osd != NONE), None)
            if first is not None:
                primaries.setdefault(group, first)
    acting = _with_rows(up, changed)
    acting_primary = up_primary.copy()
    for group, osd in primaries.items():
        if osd >= 0:
            acting_primary[group] = osd
    return acting, acting_primary

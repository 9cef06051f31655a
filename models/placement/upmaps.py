"""An OSD map with other weights of OSDs, and the upmap exceptions that survive the change.

See Ceph v16.2.15, src/osd/OSDMap.cc (check_pg_upmaps, clean_pg_upmaps), src/crush/CrushWrapper.cc
(verify_upmap): the monitors drop an exception in the map that breaks it.
"""

from collections.abc import Collection, Hashable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from stripesim.models.placement.balancer import balanced_sets
from stripesim.models.placement.crush.map import CrushMap
from stripesim.models.placement.crush_changes import reweighted
from stripesim.models.placement.movement import OsdWeights
from stripesim.models.placement.pg_sets import OsdMap, PlacedPool, pg_sets


def changed_osd_map(osd_map: OsdMap, weights: OsdWeights) -> OsdMap:
    """Return an OSD map after changes of weights, without the upmap exceptions that they break.

    Parameters
    ----------
    osd_map
        The map before.
    weights
        OSDs that are out, and CRUSH weights that differ.

    Returns
    -------
    OsdMap
        The map after. An exception is dropped if its PG would have an OSD that is out, weighs nothing or is
        not below the pool's rule, or two OSDs of one failure domain. Single pairs are dropped if CRUSH no
        longer names the OSD to be replaced.
    """
    osd_weights = osd_map.weights.copy()
    osd_weights[list(weights.out)] = 0
    changed = replace(
        osd_map,
        crush=reweighted(osd_map.crush, dict(weights.crush)),
        weights=osd_weights,
    )
    for pool in changed.pools:
        changed = _without_broken(changed, pool)
    return changed


def balanced_osd_map(
    osd_map: OsdMap,
    shares: Mapping[int, float],
    domains: Mapping[int, Hashable],
    *,
    max_deviation: float,
) -> OsdMap:
    """Return an OSD map with the upmap items that balance its only pool.

    `shares`, `domains` and `max_deviation` are those of `stripesim.models.placement.balancer.balanced_sets`.
    """
    (pool,) = osd_map.pools
    sets = pg_sets(osd_map, pool).up
    plain = replace(osd_map, pg_upmap={}, pg_upmap_items={})
    raw = pg_sets(plain, pool).up
    balanced = balanced_sets(
        sets,
        shares,
        domains,
        max_deviation=max_deviation,
        trees=osd_map.crush.trees_of_rule(pool.rule),
    )
    items = {}
    for group in np.flatnonzero((raw != balanced).any(axis=1)).tolist():
        items[pool.id, group] = upmap_pairs(
            raw[group].tolist(), balanced[group].tolist()
        )
    return replace(plain, pg_upmap_items=items)


def upmap_pairs(raw: list[int], wanted: list[int]) -> list[tuple[int, int]]:
    """Return the upmap pairs that make a row of OSDs another, in an order that Ceph applies.

    Ceph ignores a pair whose new OSD still is in the row. OSDs that only change places stay where they are.
    """
    row = list(raw)
    pairs = []
    left = [pair for pair in zip(raw, wanted, strict=True) if pair[0] != pair[1]]
    while allowed := [(old, new) for old, new in left if new not in row]:
        for old, new in allowed:
            row[row.index(old)] = new
        pairs += allowed
        left = [pair for pair in left if pair not in allowed]
    return pairs


def _without_broken(osd_map: OsdMap, pool: PlacedPool) -> OsdMap:
    """Drop the exceptions of a pool that no longer hold."""
    groups = {
        pg[1]
        for exceptions in (osd_map.pg_upmap, osd_map.pg_upmap_items)
        for pg in exceptions
        if pg[0] == pool.id and pg[1] < pool.pg_num
    }
    return without_broken_upmaps(
        osd_map,
        pool,
        np.array(sorted(groups), dtype=np.int64),
        usable=usable_osds(osd_map, pool),
        domain_of=pool_domains(osd_map.crush, pool),
    )


def without_broken_upmaps(
    osd_map: OsdMap,
    pool: PlacedPool,
    groups: npt.NDArray[np.int64],
    *,
    usable: Collection[int],
    domain_of: Mapping[int, Hashable],
) -> OsdMap:
    """Return an OSD map without the exceptions of some groups of a pool that no longer hold.

    Parameters
    ----------
    osd_map, pool
        The map, and one of its pools.
    groups
        The groups to check, ascending, shape (n,). Exceptions of other groups stay.
    usable
        What `usable_osds` returns.
    domain_of
        What `pool_domains` returns.
    """
    if not len(groups):
        return osd_map
    plain = replace(osd_map, pg_upmap={}, pg_upmap_items={}, pg_upmap_primaries={})
    rows = pg_sets(osd_map, pool, groups).up.tolist()
    raw_rows = pg_sets(plain, pool, groups).up.tolist()
    upmaps = dict(osd_map.pg_upmap)
    items = dict(osd_map.pg_upmap_items)
    for group, row, raw in zip(groups.tolist(), rows, raw_rows, strict=True):
        pg = (pool.id, group)
        osds = [osd for osd in row if osd in domain_of or osd in usable]
        domains = {domain_of.get(osd, osd) for osd in osds}
        is_broken = len(domains) < len(osds) or any(osd not in usable for osd in osds)
        pairs = items.pop(pg, ())
        if is_broken:
            upmaps.pop(pg, None)
            continue
        valid = [(old, new) for old, new in pairs if old in raw and new in usable]
        if valid:
            items[pg] = valid
    return replace(osd_map, pg_upmap=upmaps, pg_upmap_items=items)


def usable_osds(osd_map: OsdMap, pool: PlacedPool) -> set[int]:
    """Return the OSDs below a pool's rule that are in and weigh something."""
    crush_weights = {
        item: weight
        for bucket in osd_map.crush.buckets
        for item, weight in zip(bucket.items, bucket.weights, strict=True)
        if item >= 0
    }
    return {
        osd
        for osd in osd_map.crush.osds_of_rule(pool.rule)
        if crush_weights[osd] and not osd_map.is_out(osd)
    }


def pool_domains(crush: CrushMap, pool: PlacedPool) -> dict[int, str]:
    """Return the bucket of each OSD in which the monitors let an upmap have no other; empty if it is the OSD.

    They check the whole set, whichever tree of the rule an OSD belongs to.
    """
    domain = next(iter(crush.chosen_types(pool.rule)), 0)
    if not domain:
        return {}
    return crush.domains(dict(crush.types)[domain])

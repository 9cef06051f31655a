"""What the balancer's mode upmap would make of a pool: single shards moved until OSDs have their share."""

from __future__ import annotations

from collections import defaultdict

from stripesim.models.placement import NONE
from stripesim.scenarios.importing.cluster import ImportedCluster, ImportedPool

# Ceph 16.2.15, src/pybind/mgr/balancer/module.py stops at a deviation of 5; 1 is what operators set.
_DEVIATION = 1.0
_MOVES_MAX = 20_000


def balanced_counts(cluster: ImportedCluster, pool: ImportedPool) -> dict[int, int]:
    """Shards of a pool on each OSD after its groups have been moved one shard at a time.

    Notes
    -----
    The OSD furthest above its share (by CRUSH weight and reweight) gives a shard to the OSD furthest below
    that is in no failure domain of that group; it ends where no OSD is more than one shard above, or none can
    give.

    Deviation: Ceph's own calculation also takes exceptions back; this one starts from the acting sets.
    """
    rows = cluster.sets[pool.placed.id].acting
    domains = cluster.osd_map.crush.domains(pool.failure_domain) if pool.failure_domain != "osd" else {}
    members_of_pool = set(pool.osds)
    weights = {
        osd.id: osd.crush_weight * osd.reweight
        for osd in cluster.osds
        if osd.id in members_of_pool and osd.up and osd.crush_weight * osd.reweight > 0
    }
    groups: dict[int, set[int]] = defaultdict(set)
    members = [[int(osd) for osd in row if osd != NONE] for row in rows]
    for group, osds in enumerate(members):
        for osd in osds:
            groups[osd].add(group)
    total = sum(len(found) for found in groups.values())
    scale = total / sum(weights.values()) if weights else 0.0
    over = {osd: len(groups[osd]) - weight * scale for osd, weight in weights.items()}
    stuck: set[int] = set()
    for _ in range(_MOVES_MAX):
        giver = max((osd for osd in over if osd not in stuck), key=over.__getitem__, default=None)
        if giver is None or over[giver] <= _DEVIATION:
            break
        moved = _move(giver, groups, members, over, domains)
        if moved is None:
            stuck.add(giver)
            continue
        over[giver] -= 1
        over[moved] += 1
    return {osd: len(found) for osd, found in groups.items() if found}


def _move(
    giver: int,
    groups: dict[int, set[int]],
    members: list[list[int]],
    over: dict[int, float],
    domains: dict[int, str],
) -> int | None:
    """Move one shard away from an OSD; return where to, or None where no group allows it."""
    takers = sorted((osd for osd in over if over[osd] < 0), key=over.__getitem__)
    for taker in takers[:64]:
        for group in sorted(groups[giver] - groups[taker]):
            others = [osd for osd in members[group] if osd != giver]
            there = domains.get(taker, f"osd.{taker}")
            if taker not in others and all(domains.get(osd, f"osd.{osd}") != there for osd in others):
                members[group][members[group].index(giver)] = taker
                groups[giver].discard(group)
                groups[taker].add(group)
                return taker
    return None

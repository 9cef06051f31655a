"""What a cluster that exists holds: the waterfall, stranded bytes, room to heal, what a balancer brings."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from stripesim.models.placement import NONE
from stripesim.scenarios.importing.cluster import ImportedCluster, ImportedOsd, ImportedPool

Sizes = Mapping[int, float]


def capacity_of(cluster: ImportedCluster) -> dict[str, Any]:
    r"""Work out the capacity of a cluster, by device class and by pool.

    A pool's placement groups are taken as equally full; OSD :math:`j` holds :math:`u_j = \sum_p n_{pj} b_p`,
    :math:`n_{pj}` its shards of pool :math:`p` and :math:`b_p` the bytes of one. All pools of a class grow in
    proportion until its fullest OSD is at the full ratio: the factor is :math:`f = \min_j 0.95 s_j / u_j`,
    and what the others still have then is stranded. Pools that hold nothing (or are not measured) count by
    their groups alone. An OSD that is down or out has no room.
    """
    full, _, near = cluster.ratios
    alive = {osd.id: float(osd.size_bytes or 0) for osd in cluster.osds if osd.up and osd.reweight > 0}
    shard_bytes = {
        pool.placed.id: (pool.stored_bytes or 0) * pool.overhead / (pool.placed.pg_num * pool.placed.size)
        for pool in cluster.pools
    }
    before = {pool.placed.id: _shards(cluster.sets[pool.placed.id].acting) for pool in cluster.pools}
    after = {pool.placed.id: balanced_counts(cluster, pool) for pool in cluster.pools}
    by_class: dict[str, list[ImportedOsd]] = defaultdict(list)
    for osd in cluster.osds:
        by_class[osd.device_class or "none"].append(osd)
    classes = []
    for name, osds in sorted(by_class.items()):
        sizes = {osd.id: alive[osd.id] for osd in osds if osd.id in alive}
        now, then = (_fill(cluster, counts, shard_bytes, sizes, full) for counts in (before, after))
        used = [osd.used_bytes for osd in osds if osd.id in sizes]
        classes.append(
            {
                "class": name,
                "osds": len(osds),
                "raw_bytes": sum(float(osd.size_bytes or 0) for osd in osds),
                "in_bytes": sum(sizes.values()),
                "full_bytes": sum(sizes.values()) * full,
                "used_bytes": sum(u for u in used if u is not None) if None not in used else None,
                "now": now,
                "after_upmap": then,
            }
        )
    return {
        "full_ratio": full,
        "nearfull_ratio": near,
        "classes": classes,
        "pools": [_pool_row(cluster, pool, alive, before, shard_bytes) for pool in cluster.pools],
        "domains": _domains(cluster, alive, before, shard_bytes),
    }


def _shards(acting: npt.NDArray[np.int32]) -> dict[int, int]:
    osds, counts = np.unique(acting[acting != NONE], return_counts=True)
    return dict(zip(osds.tolist(), counts.tolist(), strict=True))


def _use(
    cluster: ImportedCluster, counts: Mapping[int, Sizes], shard_bytes: Sizes, sizes: Sizes
) -> dict[int, float]:
    """Bytes on each OSD, or shards where no pool holds anything."""
    touching = [p for p in cluster.pools if any(osd in sizes for osd in counts[p.placed.id])]
    measured = any(shard_bytes[p.placed.id] > 0 for p in touching)
    use: dict[int, float] = defaultdict(float)
    for pool in touching:
        per_shard = shard_bytes[pool.placed.id] if measured else 1.0
        for osd, number in counts[pool.placed.id].items():
            if osd in sizes:
                use[osd] += number * per_shard
    return use


def _fill(
    cluster: ImportedCluster, counts: Mapping[int, Sizes], shard_bytes: Sizes, sizes: Sizes, full: float
) -> dict[str, Any]:
    """How far a class fills until its fullest OSD is full."""
    use = _use(cluster, counts, shard_bytes, sizes)
    filled = {osd: use[osd] / sizes[osd] for osd in use if sizes[osd] > 0 and use[osd] > 0}
    fullest, over, usable, stranded = None, None, 0.0, 0.0
    if filled:
        fullest = max(filled, key=lambda osd: (filled[osd], -osd))
        total = sum(sizes.values())
        mean = sum(use.values()) / total
        # How much fuller than the mean: what a balancer works on.
        over = filled[fullest] / mean
        usable = full * total * mean / filled[fullest]
        stranded = full * total - usable
    return {
        "fullest_osd": fullest,
        "fullest_over_mean": over,
        "usable_raw_bytes": usable,
        "stranded_bytes": stranded,
    }


def _pool_row(
    cluster: ImportedCluster,
    pool: ImportedPool,
    alive: Sizes,
    counts: Mapping[int, Sizes],
    shard_bytes: Sizes,
) -> dict[str, Any]:
    """Usable bytes of a pool alone on its OSDs, and how much more it takes beside the others."""
    full, _, near = cluster.ratios
    sizes = {osd: alive[osd] for osd in pool.osds if osd in alive}
    raw, domains = sum(sizes.values()), cluster.domains(pool.failure_domain)
    by_domain: dict[str, float] = defaultdict(float)
    for osd, size in sizes.items():
        by_domain[domains.get(osd, f"osd.{osd}")] += size
    shards = counts[pool.placed.id]
    total = sum(shards.values())
    measured = any(value > 0 for value in shard_bytes.values())
    use = _use(cluster, counts, shard_bytes, sizes) if measured else {}
    room = [
        (sizes[osd] * full - use.get(osd, 0.0)) * total / number
        for osd, number in shards.items()
        if osd in sizes
    ]
    return {
        "name": pool.placed.name,
        "scheme": pool.scheme,
        "overhead": pool.overhead,
        "raw_bytes": raw,
        "usable_bytes_full": raw * full / pool.overhead,
        "usable_bytes_safe": (raw - max(by_domain.values(), default=0.0)) * near / pool.overhead,
        "failure_domains": len(by_domain),
        "stored_bytes": pool.stored_bytes,
        "more_bytes": max(0.0, min(room, default=0.0)) / pool.overhead,
    }


def _domains(
    cluster: ImportedCluster, alive: Sizes, counts: Mapping[int, Sizes], shard_bytes: Sizes
) -> list[dict[str, Any]]:
    """For each failure domain: what it holds, and whether the rest takes that below nearfull."""
    near = cluster.ratios[2]
    measured = any(value > 0 for value in shard_bytes.values())
    classes = {osd.id: osd.device_class or "none" for osd in cluster.osds}
    widths: dict[tuple[str, tuple[int, ...]], int] = defaultdict(int)
    for pool in cluster.pools:
        key = (pool.failure_domain, tuple(osd for osd in pool.osds if osd in alive))
        widths[key] = max(widths[key], pool.placed.size)
    rows = []
    for (name, ids), width in sorted(widths.items()):
        of = {osd: f"osd.{osd}" for osd in ids} if name == "osd" else cluster.osd_map.crush.domains(name)
        sizes = {osd: alive[osd] for osd in ids}
        use = _use(cluster, counts, shard_bytes, sizes) if measured else {}
        free = {osd: max(0.0, sizes[osd] * near - use.get(osd, 0.0)) for osd in ids}
        members: dict[str, list[int]] = defaultdict(list)
        for osd in ids:
            if osd in of:
                members[of[osd]].append(osd)
        others, total = len(members) - 1, sum(free.values())
        for domain, lost in sorted(members.items()):
            held = sum(use.get(osd, 0.0) for osd in lost)
            room = total - sum(free[osd] for osd in lost)
            rows.append(
                {
                    "domain": domain,
                    "type": name,
                    "class": "+".join(sorted({classes[osd] for osd in ids})),
                    "held_bytes": held,
                    "room_bytes": room,
                    "heals": others >= width and held <= room,
                    "reason": "" if others >= width else f"{others} {name}s left for {width} shards",
                }
            )
    return rows


# Ceph 16.2.15, src/pybind/mgr/balancer/module.py stops at a deviation of 5; 1 is what operators set.
_DEVIATION = 1.0
_MOVES_MAX = 20_000


def balanced_counts(cluster: ImportedCluster, pool: ImportedPool) -> dict[int, int]:
    """Shards of a pool on each OSD after its groups have been moved one shard at a time.

    The OSD furthest above its share (by CRUSH weight and reweight) gives a shard to the OSD furthest below
    that is in no failure domain of that group; it ends where no OSD is more than one shard above, or none can
    give.

    Deviation: Ceph's own calculation also takes exceptions back; this one starts from the acting sets.
    """
    rows = cluster.sets[pool.placed.id].acting
    domains = cluster.domains(pool.failure_domain)
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

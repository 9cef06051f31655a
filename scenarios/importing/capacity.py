"""What a cluster that exists holds: the waterfall, the fullest OSD, stranded bytes, room to heal, balance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from stripesim.models.placement import NONE
from stripesim.scenarios.importing.balance import balanced_counts
from stripesim.scenarios.importing.cluster import ImportedCluster, ImportedPool

Sizes = Mapping[int, float]


def capacity_of(cluster: ImportedCluster) -> dict[str, Any]:
    r"""Work out the capacity of a cluster, by device class and by pool.

    Notes
    -----
    A pool's placement groups are taken as equally full; OSD :math:`j` holds :math:`u_j = \sum_p n_{pj} b_p`,
    :math:`n_{pj}` its shards of pool :math:`p` and :math:`b_p` the bytes of one. All pools of a class grow in
    proportion until its fullest OSD is at the full ratio: the factor is :math:`f = \min_j 0.95 s_j / u_j`,
    and what the others still have then is stranded. Pools that hold nothing (or are not measured) count by
    their groups alone. An OSD that is down or out has no room.
    """
    full, _, near = cluster.ratios
    alive = {osd.id: float(osd.size_bytes or 0) for osd in cluster.osds if osd.up and osd.reweight > 0}
    shard_bytes = {pool.placed.id: _shard_bytes(pool) for pool in cluster.pools}
    before = {pool.placed.id: _shards(cluster.sets[pool.placed.id].acting) for pool in cluster.pools}
    after = {pool.placed.id: balanced_counts(cluster, pool) for pool in cluster.pools}
    classes = []
    for name in sorted({osd.device_class or "none" for osd in cluster.osds}):
        ids = [osd.id for osd in cluster.osds if (osd.device_class or "none") == name]
        members = set(ids)
        sizes = {osd: alive[osd] for osd in ids if osd in alive}
        now, then = (_fill(cluster, counts, shard_bytes, sizes, full) for counts in (before, after))
        used = [osd.used_bytes for osd in cluster.osds if osd.id in sizes]
        classes.append(
            {
                "class": name,
                "osds": len(ids),
                "raw_bytes": sum(float(o.size_bytes or 0) for o in cluster.osds if o.id in members),
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


def _shard_bytes(pool: ImportedPool) -> float:
    """Bytes of one shard of one group; 0 where the pool holds nothing."""
    stored = float(pool.stored_bytes or 0)
    return stored * pool.overhead / (pool.placed.pg_num * pool.placed.size)


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
    if not filled:
        return {
            "fullest_osd": None,
            "fullest_over_mean": None,
            "usable_raw_bytes": 0.0,
            "stranded_bytes": 0.0,
        }
    fullest = max(filled, key=lambda osd: (filled[osd], -osd))
    total = sum(sizes.values())
    mean = sum(use.values()) / total
    usable = full * total * mean / filled[fullest]
    return {
        "fullest_osd": fullest,
        # How much fuller than the mean: what a balancer works on.
        "fullest_over_mean": filled[fullest] / mean,
        "usable_raw_bytes": usable,
        "stranded_bytes": full * total - usable,
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
    raw = sum(sizes.values())
    domains = cluster.osd_map.crush.domains(pool.failure_domain) if pool.failure_domain != "osd" else {}
    by_domain: dict[str, float] = defaultdict(float)
    for osd, size in sizes.items():
        by_domain[domains.get(osd, f"osd.{osd}")] += size
    largest = max(by_domain.values(), default=0.0)
    shards = counts[pool.placed.id]
    total = sum(shards.values())
    use = _use(cluster, counts, shard_bytes, sizes)
    measured = any(value > 0 for value in shard_bytes.values())
    room = [
        (sizes[osd] * full - (use.get(osd, 0.0) if measured else 0.0)) * total / number
        for osd, number in shards.items()
        if osd in sizes
    ]
    return {
        "name": pool.placed.name,
        "scheme": pool.scheme,
        "overhead": pool.overhead,
        "raw_bytes": raw,
        "usable_bytes_full": raw * full / pool.overhead,
        "usable_bytes_safe": (raw - largest) * near / pool.overhead,
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
        total = sum(free.values())
        for domain, lost in sorted(members.items()):
            held = sum(use.get(osd, 0.0) for osd in lost)
            room = total - sum(free[osd] for osd in lost)
            enough = len(members) - 1 >= width
            rows.append(
                {
                    "domain": domain,
                    "type": name,
                    "class": "+".join(sorted({classes[osd] for osd in ids})),
                    "held_bytes": held,
                    "room_bytes": room,
                    "heals": enough and held <= room,
                    "reason": "" if enough else f"{len(members) - 1} {name}s left for {width} shards",
                }
            )
    return rows

"""Compute the capacity of an imported cluster: stranded bytes, room to heal, gain of a balancer."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from stripesim.models.placement import (
    NONE,
    OsdWeights,
    balanced_osd_map,
    changed_osd_map,
    pg_sets,
)
from stripesim.models.placement.balancer import balanced_sets
from stripesim.models.placement.pg_autoscale import (
    autoscaled_pg_num,
    pg_autoscale_model,
)
from stripesim.models.placement.upmaps import pool_domains
from stripesim.scenarios.clusters.cluster import (
    MANAGER_POOLS,
    ImportedCluster,
    ImportedOsd,
    ImportedPool,
)
from stripesim.scenarios.clusters.usage import (
    ClassUse,
    class_of,
    data_by_osd,
    shard_bytes,
    shards_by_osd,
    use_by_class,
)
from stripesim.scenarios.forms.capacity import (
    imbalance_of,
    largest_domain,
    shards_on_osds,
    usable_bytes,
    without,
)
from stripesim.scenarios.forms.pg_settings import (
    DEVIATIONS,
    PgChoice,
    PgOption,
)

#: Bytes or shards by OSD.
Sizes = Mapping[int, float]

_KIB: Final = 1024
# src/pybind/mgr/balancer/module.py of Ceph 16.2.15 stops at a deviation of 5. Operators set 1.
_DEVIATION: Final = 1.0


def capacity_of(cluster: ImportedCluster) -> dict[str, Any]:
    r"""Compute the capacity of a cluster, by device class and by pool.

    Placement groups of a pool count as equally full: OSD :math:`j` holds :math:`u_j = \sum_p n_{pj} b_p`,
    with :math:`n_{pj}` shards of pool :math:`p` of :math:`b_p` bytes. All pools of a class grow in proportion
    until its fullest OSD is at the full ratio. The factor is :math:`f = \min_j 0.95 s_j / u_j`, and the
    room left on the other OSDs is stranded. Pools that are empty, or whose use is unknown, count by their
    groups alone. An OSD that is out has no room.
    """
    sizes = {osd.id: float(osd.size_bytes) for osd in cluster.osds if osd.is_in}
    shards = {pool.placed.id: shards_by_osd(cluster, pool) for pool in cluster.pools}
    balanced = {
        pool.placed.id: balanced_counts(cluster, pool) for pool in cluster.pools
    }
    data = data_by_osd(cluster)
    uses = use_by_class(cluster)
    return {
        "full_ratio": cluster.ratios.full,
        "nearfull_ratio": cluster.ratios.nearfull,
        "classes": [
            _class_row(cluster, name, use, sizes, shards, balanced)
            for name, use in uses.items()
        ],
        "pools": [
            _pool_row(cluster, pool, sizes, shards[pool.placed.id], data)
            for pool in cluster.pools
        ],
        "domains": _domains(cluster, sizes, data),
    }


def _class_row(
    cluster: ImportedCluster,
    name: str,
    use: ClassUse,
    all_sizes: Sizes,
    shards: Mapping[int, Sizes],
    balanced: Mapping[int, Sizes],
) -> dict[str, Any]:
    osds = [osd for osd in cluster.osds if class_of(osd) == name]
    sizes = {osd.id: all_sizes[osd.id] for osd in osds if osd.is_in}
    sums = cluster.class_sums.get(name)
    return {
        "class": name,
        "osds": len(osds),
        "raw_bytes": float(sum(osd.size_bytes for osd in osds)),
        "in_bytes": sum(sizes.values()),
        "full_bytes": sum(sizes.values()) * cluster.ratios.full,
        "used_bytes": use.used_bytes,
        "used_data_bytes": use.data_bytes,
        "used_basis": use.basis,
        "reported_bytes": None if sums is None else float(sums.kb * _KIB),
        "reported_available_bytes": None
        if sums is None
        else float(sums.kb_avail * _KIB),
        "fullest": _fullest(osds),
        "now": _fill(cluster, shards, sizes),
        "after_upmap": _fill(cluster, balanced, sizes),
    }


def _fullest(osds: Sequence[ImportedOsd]) -> dict[str, Any] | None:
    """Return the fullest OSD of a class by bytes, as ``ceph osd df``; None if no file has those of each.

    ``used_over_mean`` is its use over that of all OSDs together (VAR). Databases count, as they do there.
    """
    sizes = {osd.id: osd.counted_bytes for osd in osds if osd.is_in}
    used_bytes = {
        osd.id: osd.used_bytes
        for osd in osds
        if osd.is_in and osd.used_bytes is not None
    }
    total_bytes = sum(used_bytes.values())
    if not total_bytes or len(used_bytes) < len(sizes) or not all(sizes.values()):
        return None
    ratios = {osd: used_bytes[osd] / size for osd, size in sizes.items()}
    fullest = max(ratios, key=lambda osd: (ratios[osd], -osd))
    mean = total_bytes / sum(sizes.values())
    return {
        "osd": fullest,
        "used_ratio": ratios[fullest],
        "used_over_mean": ratios[fullest] / mean,
    }


def _fill(
    cluster: ImportedCluster, shards: Mapping[int, Sizes], sizes: Sizes
) -> dict[str, Any]:
    """Fill the OSDs of a class in proportion until the fullest one is full."""
    full = cluster.ratios.full
    use = _growth(cluster, shards, sizes)
    filled = {
        osd: use[osd] / sizes[osd] for osd in use if sizes[osd] > 0 and use[osd] > 0
    }
    if not filled:
        empty = {"fullest_osd": None, "fullest_over_mean": None}
        return {**empty, "usable_raw_bytes": 0.0, "stranded_bytes": 0.0}
    fullest = max(filled, key=lambda osd: (filled[osd], -osd))
    total = sum(sizes.values())
    # A balancer reduces the excess over the mean.
    over = imbalance_of(use, sizes)
    usable = usable_bytes(total, full, 1.0, over)
    return {
        "fullest_osd": fullest,
        "fullest_over_mean": over,
        "usable_raw_bytes": usable,
        "stranded_bytes": full * total - usable,
    }


def _growth(
    cluster: ImportedCluster, shards: Mapping[int, Sizes], sizes: Sizes
) -> dict[int, float]:
    """Return the growth of each OSD when pools grow in proportion to their bytes, or to their groups."""
    pools = [
        pool
        for pool in cluster.pools
        if any(osd in sizes for osd in shards[pool.placed.id])
    ]
    stored = any(shard_bytes(pool) > 0 for pool in pools)
    use: dict[int, float] = defaultdict(float)
    for pool in pools:
        each = shard_bytes(pool) if stored else 1.0
        for osd, number in shards[pool.placed.id].items():
            if osd in sizes:
                use[osd] += number * each
    return use


def _pool_row(
    cluster: ImportedCluster,
    pool: ImportedPool,
    all_sizes: Sizes,
    shards: Sizes,
    data: Sizes,
) -> dict[str, Any]:
    """Return the capacity of a pool if it were alone on its OSDs, and its room next to the other pools.

    ``usable_bytes_safe`` is None where a lost failure domain cannot be rebuilt in the others. Also where it
    can, CRUSH may find no place for a shard of some placement groups, the ``unplaced_groups``.
    """
    ratios = cluster.ratios
    sizes = {osd.id: all_sizes[osd.id] for osd in cluster.osds_of(pool)}
    raw = sum(sizes.values())
    domains = cluster.domains(pool.failure_domain)
    by_domain = {domains[osd] for osd in sizes}
    total = sum(shards.values())
    room = [
        (sizes[osd] * ratios.full - data[osd]) * total / number
        for osd, number in shards.items()
        if osd in sizes
    ]
    imbalance = imbalance_of(shards, sizes)
    lost = largest_domain(sizes, domains) if sizes else ()
    left = without(sizes, lost)
    shards_left = shards
    unplaced = 0
    if len(by_domain) > pool.placed.size:
        alone = replace(cluster.returned_map, pools=(pool.placed,))
        after = changed_osd_map(alone, OsdWeights(out=lost))
        up = pg_sets(after, pool.placed).up.astype(np.int64)
        shards_left = shards_on_osds(up)
        unplaced = int((up == NONE).any(axis=1).sum())
    after_loss = imbalance_of(shards_left, left)
    safe_bytes = None
    if _can_heal(len(by_domain), pool.placed.size):
        safe_bytes = usable_bytes(
            sum(left.values()), ratios.nearfull, pool.overhead, after_loss
        )
    return {
        "name": pool.placed.name,
        "scheme": pool.scheme,
        "failure_domain": pool.failure_domain,
        "overhead": pool.overhead,
        "raw_bytes": raw,
        "usable_bytes_full": usable_bytes(raw, ratios.full, pool.overhead, imbalance),
        "usable_bytes_safe": safe_bytes,
        "imbalance": imbalance,
        "imbalance_after_loss": after_loss,
        "failure_domains": len(by_domain),
        "unplaced_groups": unplaced,
        "stored_bytes": pool.held_bytes,
        "more_bytes": max(0.0, min(room, default=0.0)) / pool.overhead,
    }


def _can_heal(domains: int, width: int) -> bool:
    """Return True if a PG survives the loss of a domain, and all its shards have one each afterwards."""
    return 1 < width < domains


def _domains(
    cluster: ImportedCluster, all_sizes: Sizes, data: Sizes
) -> list[dict[str, Any]]:
    """Return the bytes of each failure domain, and whether the others can take them below nearfull."""
    near = cluster.ratios.nearfull
    classes = {osd.id: class_of(osd) for osd in cluster.osds}
    widths: dict[tuple[str, tuple[int, ...]], int] = defaultdict(int)
    for pool in cluster.pools:
        members = tuple(osd.id for osd in cluster.osds_of(pool))
        key = (pool.failure_domain, members)
        widths[key] = max(widths[key], pool.placed.size)
    rows = []
    for (kind, osds), width in sorted(widths.items()):
        domain_of = cluster.domains(kind)
        free = {osd: max(0.0, all_sizes[osd] * near - data[osd]) for osd in osds}
        members_of: dict[str, list[int]] = defaultdict(list)
        for osd in osds:
            members_of[domain_of[osd]].append(osd)
        class_names = "+".join(sorted({classes[osd] for osd in osds}))
        domains_left = len(members_of) - 1
        for domain, lost in sorted(members_of.items()):
            held = sum(data[osd] for osd in lost)
            room = sum(free.values()) - sum(free[osd] for osd in lost)
            reason = ""
            if not _can_heal(len(members_of), width):
                reason = f"{domains_left} {kind}s left for {width} shards"
            if width == 1:
                reason = "no other copy"
            rows.append(
                {
                    "domain": domain,
                    "type": kind,
                    "class": class_names,
                    "held_bytes": held,
                    "room_bytes": room,
                    "heals": not reason and held <= room,
                    "reason": reason,
                }
            )
    return rows


def pg_choices(cluster: ImportedCluster) -> list[PgChoice]:
    """Compare numbers of placement groups and a balancer's settings for each pool with data of clients.

    A pool's number of placement groups by the autoscaler counts its share of the data on its OSDs.
    """
    choices = []
    for pool in cluster.pools:
        data_bytes = pool_bytes(pool)
        if not data_bytes or not cluster.osds_of(pool):
            continue
        if pool.placed.name in MANAGER_POOLS:
            continue
        members = set(pool.osds)
        together = sum(
            pool_bytes(other)
            for other in cluster.pools
            if members.intersection(other.osds)
        )
        wanted = autoscaled_pg_num(
            data_bytes / together, len(cluster.osds_of(pool)), pool.placed.size
        )
        choices.append(_pg_choice(cluster, pool, wanted))
    return choices


def pool_bytes(pool: ImportedPool) -> float:
    """Return the bytes that a pool stores on its OSDs: data and keys (omap)."""
    return shard_bytes(pool) * pool.placed.pg_num * pool.placed.size


def _pg_choice(cluster: ImportedCluster, pool: ImportedPool, wanted: int) -> PgChoice:
    model = pg_autoscale_model()
    # As the autoscaler, leave a number that is within a factor of 3 alone.
    numbers = dict.fromkeys(
        (pool.placed.pg_num, model.scaled(pool.placed.pg_num, wanted))
    )
    settings: list[tuple[int, int | None]] = [
        (pg_num, deviation)
        for pg_num in numbers
        for deviation in DEVIATIONS
        if deviation is not None or pg_num == pool.placed.pg_num
    ]
    options = [_pg_option(cluster, pool, *setting) for setting in settings]
    return PgChoice(
        pool.placed.name,
        wanted,
        options,
        "upmaps as they are",
        allows_upmaps=cluster.allows_upmaps,
    )


def _pg_option(
    cluster: ImportedCluster, pool: ImportedPool, pg_num: int, deviation: int | None
) -> PgOption:
    """Return what a pool alone on its OSDs can hold. Without a deviation, its groups stay as they are."""
    placed = pool.placed
    if pg_num != placed.pg_num:
        placed = replace(placed, pg_num=pg_num, pgp_num=pg_num)
    osd_map = replace(
        cluster.returned_map, pools=(placed,), pg_temp={}, primary_temp={}
    )
    domains = cluster.domains(pool.failure_domain)
    if deviation is not None:
        osd_map = balanced_osd_map(
            replace(osd_map, pg_upmap={}, pg_upmap_items={}, pg_upmap_primaries={}),
            _balancer_shares(cluster, pool),
            pool_domains(cluster.osd_map.crush, pool.placed),
            max_deviation=deviation,
        )
    sizes = {osd.id: float(osd.size_bytes) for osd in cluster.osds_of(pool)}
    shards = shards_on_osds(pg_sets(osd_map, placed).up.astype(np.int64))
    held = {osd: float(shards.get(osd, 0)) for osd in sizes}
    imbalance = imbalance_of(held, sizes)
    raw = sum(sizes.values())
    safe_bytes = None
    if _can_heal(len({domains[osd] for osd in sizes}), placed.size):
        lost = largest_domain(sizes, domains)
        after = changed_osd_map(osd_map, OsdWeights(out=lost))
        left = without(sizes, lost)
        shards_left = shards_on_osds(pg_sets(after, placed).up.astype(np.int64))
        safe_bytes = usable_bytes(
            sum(left.values()),
            cluster.ratios.nearfull,
            pool.overhead,
            imbalance_of(shards_left, left),
        )
    busiest = max(held.values(), default=0.0)
    mean = sum(held.values()) / max(1, len(held))
    return PgOption(
        pg_num=pg_num,
        max_deviation=deviation,
        is_present=deviation is None and pg_num == pool.placed.pg_num,
        imbalance=imbalance,
        usable_bytes_full=usable_bytes(
            raw, cluster.ratios.full, pool.overhead, imbalance
        ),
        usable_bytes_safe=safe_bytes,
        rate_share=mean / busiest if busiest else 1.0,
    )


def balanced_counts(cluster: ImportedCluster, pool: ImportedPool) -> dict[int, int]:
    """Count the shards of a pool on each OSD after a balancer has moved its groups, one shard at a time.

    See `stripesim.models.placement.balancer.balanced_sets`; shares are by CRUSH weight and reweight.
    """
    balanced = cluster.returned_sets[pool.placed.id].acting.astype(np.int64)
    if pool.rule_name:
        crush = cluster.osd_map.crush
        balanced = balanced_sets(
            balanced,
            _balancer_shares(cluster, pool),
            pool_domains(crush, pool.placed),
            max_deviation=_DEVIATION,
            trees=crush.trees_of_rule(pool.placed.rule),
        )
    osds, counts = np.unique(balanced[balanced != NONE], return_counts=True)
    return dict(zip(osds.tolist(), counts.tolist(), strict=True))


def _balancer_shares(cluster: ImportedCluster, pool: ImportedPool) -> dict[int, float]:
    """Return the share of a pool's shards that the balancer wants on each OSD, by weight and reweight."""
    if not pool.rule_name:
        return {}
    of_rule = cluster.osd_map.crush.shares_of_rule(pool.placed.rule)
    shares = {
        osd.id: of_rule.get(osd.id, 0.0) * osd.reweight for osd in cluster.osds_of(pool)
    }
    return {osd: share for osd, share in shares.items() if share > 0}

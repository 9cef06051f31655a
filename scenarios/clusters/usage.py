"""Estimate bytes in use, by device class and by OSD."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from stripesim.models.placement import NONE
from stripesim.scenarios.clusters.cluster import (
    ImportedCluster,
    ImportedOsd,
    ImportedPool,
)

_KIB: Final = 1024
#: Class of OSDs without a device class.
NO_CLASS: Final = "none"

Basis = Literal["osds", "class", "cluster", "pools"]

#: Source of a class's bytes in use, as text.
BASIS_TEXT: Final[Mapping[Basis, str]] = {
    "osds": "kb_used of each OSD",
    "class": "kb_used of osd_sum_by_class",
    "cluster": "kb_used of osd_sum",
    "pools": "num_bytes and num_omap_bytes of pools × their overhead: no file has kb_used",
}


@dataclass(frozen=True)
class ClassUse:
    """Bytes in use on the OSDs of a device class that are in.

    `used_bytes` is the number that Ceph prints. It counts databases on separate devices as used, and
    their size as capacity. `data_bytes` excludes both.
    """

    used_bytes: float
    data_bytes: float
    basis: Basis


def class_of(osd: ImportedOsd) -> str:
    """Return the device class of an OSD."""
    return osd.device_class or NO_CLASS


def use_by_class(cluster: ImportedCluster) -> dict[str, ClassUse]:
    """Return the bytes in use of each device class, from the most exact numbers in the files."""
    estimates: dict[str, float] = defaultdict(float)
    stored = estimated_use(cluster)
    by_class: dict[str, list[ImportedOsd]] = defaultdict(list)
    for osd in cluster.osds:
        by_class[class_of(osd)].append(osd)
        estimates[class_of(osd)] += stored.get(osd.id, 0.0)
    return {
        name: _use_of_class(
            cluster, name, [osd for osd in osds if osd.is_in], estimates
        )
        for name, osds in sorted(by_class.items())
    }


def _use_of_class(
    cluster: ImportedCluster,
    name: str,
    osds: list[ImportedOsd],
    estimates: Mapping[str, float],
) -> ClassUse:
    databases = float(sum(osd.database_bytes for osd in osds))
    used = [osd.used_bytes for osd in osds if osd.used_bytes is not None]
    total = cluster.cluster_sum
    basis: Basis = "pools"
    use = estimates[name]
    if osds and len(used) == len(osds):
        basis = "osds"
        use = float(sum(used))
    elif name in cluster.class_sums:
        basis = "class"
        use = float(cluster.class_sums[name].kb_used * _KIB)
    elif (
        total is not None
        and total.kb_used
        and (len(estimates) == 1 or sum(estimates.values()) > 0)
    ):
        basis = "cluster"
        use = float(total.kb_used * _KIB)
        if len(estimates) > 1:
            use *= estimates[name] / sum(estimates.values())
    if basis == "pools":
        return ClassUse(use, use, basis)
    return ClassUse(use, max(0.0, use - databases), basis)


def shard_bytes(pool: ImportedPool) -> float:
    """Return the mean size of one shard of a pool's placement groups, data and keys (omap) [B]."""
    data_bytes = (pool.stored_bytes or 0) * pool.overhead / pool.placed.size
    return (data_bytes + pool.omap_bytes) / pool.placed.pg_num


class ObjectMean(NamedTuple):
    """Objects of one or several pools, and their mean size with keys [B]."""

    objects_count: int
    size_bytes: float


def mean_object(pools: Iterable[ImportedPool]) -> ObjectMean | None:
    """Return the mean object of pools, or None if they are empty or no file has their number."""
    known = [pool for pool in pools if pool.held_bytes and pool.objects_count]
    if not known:
        return None
    count = sum(pool.objects_count for pool in known)
    return ObjectMean(count, sum(pool.held_bytes or 0 for pool in known) / count)


def pools_beside(cluster: ImportedCluster, pool: ImportedPool) -> list[ImportedPool]:
    """Return the pools that share OSDs with a pool, and the pool itself."""
    osds = set(pool.osds)
    return [each for each in cluster.pools if not osds.isdisjoint(each.osds)]


def shards_by_osd(cluster: ImportedCluster, pool: ImportedPool) -> dict[int, int]:
    """Count the shards of a pool on each OSD, once OSDs that are down have returned."""
    acting = cluster.returned_sets[pool.placed.id].acting
    osds, counts = np.unique(acting[acting != NONE], return_counts=True)
    return dict(zip(osds.tolist(), counts.tolist(), strict=True))


def estimated_use(cluster: ImportedCluster) -> dict[int, float]:
    """Estimate the bytes on each OSD from those of pools, assuming equally full placement groups."""
    use: dict[int, float] = defaultdict(float)
    for pool in cluster.pools:
        size = shard_bytes(pool)
        for osd, shards in shards_by_osd(cluster, pool).items():
            use[osd] += size * shards
    return use


def data_by_osd(cluster: ImportedCluster) -> dict[int, float]:
    """Return the bytes of data on each OSD that is in.

    If no file has the use of each OSD, the use of a device class is distributed by estimate, or by size
    if pools are empty.
    """
    estimates = estimated_use(cluster)
    data: dict[int, float] = {}
    for name, use in use_by_class(cluster).items():
        osds = [osd for osd in cluster.osds if osd.is_in and class_of(osd) == name]
        if use.basis == "osds":
            data |= {osd.id: float(osd.data_bytes or 0) for osd in osds}
            continue
        shares = {osd.id: estimates.get(osd.id, 0.0) for osd in osds}
        if not any(shares.values()):
            shares = {osd.id: float(osd.size_bytes) for osd in osds}
        total = sum(shares.values())
        data |= {
            osd: use.data_bytes * share / total if total else 0.0
            for osd, share in shares.items()
        }
    return data


def stored_on(cluster: ImportedCluster, pool: ImportedPool) -> float:
    """Return the data of all pools on a pool's OSDs, as bytes of this pool's clients [B]."""
    data = data_by_osd(cluster)
    return sum(data[osd.id] for osd in cluster.osds_of(pool)) / pool.overhead

"""Add hosts to an imported cluster: `import ceph-report --grow hosts=+4`."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final, NamedTuple

import numpy as np

from stripesim.models.placement import (
    Bucket,
    BucketArgs,
    CrushMap,
    Device,
    OsdMap,
)
from stripesim.models.placement.crush.elements import WEIGHT_ONE
from stripesim.models.placement.crush.shadow import shadow_name
from stripesim.models.problems import MeasuredError
from stripesim.scenarios.clusters.cluster import (
    ImportedCluster,
    ImportedOsd,
    ImportedPool,
    osds_of_rule,
    returned_sets_of,
    sets_of_pools,
)
from stripesim.scenarios.clusters.placement_counts import computed_counts
from stripesim.scenarios.clusters.report_schema import OSDS_MAX, OsdSums
from stripesim.scenarios.clusters.usage import class_of, use_by_class
from stripesim.scenarios.schema.units import bytes_text

_HOSTS_MAX: Final = 1_000
_KIB: Final = 1024
_TIB: Final = 1024**4
_LISTED: Final = 8

#: Buckets that hold a host. Usually one, but a host can be linked into several trees.
Parents = tuple[int, ...]


class AddedHost(NamedTuple):
    """A host to add, with the buckets that will hold it, and its OSDs."""

    name: str
    parents: Parents
    osds: tuple[ImportedOsd, ...]


def parse_growth(text: str) -> int:
    """Read the number of hosts to add.

    >>> parse_growth("hosts=+4")
    4
    """
    asked = re.fullmatch(r"hosts=\+([0-9]{1,6})", text.strip())
    hosts = int(asked[1]) if asked else 0
    if not 1 <= hosts <= _HOSTS_MAX:
        raise MeasuredError(
            f"--grow: got {text!r}, wanted hosts=+N with N from 1 to {_HOSTS_MAX:,}"
        )
    return hosts


def grown_cluster(
    cluster: ImportedCluster, pool: ImportedPool, hosts: int
) -> ImportedCluster:
    """Add hosts to a cluster, then map and distribute its data as after backfill.

    The new hosts copy the most common host of the pool. Each goes to the bucket with the fewest of the
    pool's hosts at that point.

    Parameters
    ----------
    cluster
        The cluster.
    pool
        The pool whose hosts are the model.
    hosts
        Number of hosts to add.

    Returns
    -------
    ImportedCluster
        The cluster with the new hosts.

    Raises
    ------
    MeasuredError
        If the pool's OSDs are in no hosts, or if there would be more than a million OSDs.
    """
    added = _added_hosts(cluster, pool, hosts)
    new_osds = tuple(osd for host in added for osd in host.osds)
    editor = _MapEditor(cluster.osd_map.crush)
    for host in added:
        editor.add(host)
    osd_map = _with_osds(cluster.osd_map, editor.finished(), new_osds)
    sets = sets_of_pools(osd_map)
    rules = {rule.id: rule for rule in osd_map.crush.rules}
    pools = tuple(
        replace(each, osds=osds_of_rule(osd_map, rules.get(each.placed.rule)))
        for each in cluster.pools
    )
    # The use of each OSD would be that before backfill. Use by device class remains valid.
    osds = tuple(replace(osd, used_bytes=None) for osd in (*cluster.osds, *new_osds))
    return replace(
        cluster,
        osd_map=osd_map,
        pools=pools,
        osds=osds,
        sets=sets,
        returned_sets=returned_sets_of(osd_map, sets),
        counts=computed_counts(osd_map, sets),
        reported=None,
        class_sums=_grown_sums(cluster, new_osds),
        cluster_sum=None,
        warnings=(_words(cluster, added), *cluster.warnings),
    )


def _added_hosts(
    cluster: ImportedCluster, pool: ImportedPool, hosts: int
) -> list[AddedHost]:
    crush = cluster.osd_map.crush
    parents_of = _parents_of_hosts(crush, cluster, pool)
    template = _most_common_host(crush, cluster, list(parents_of))
    hosts_at: Counter[Parents] = Counter(parents_of.values())
    next_osd = max(osd.id for osd in cluster.osds) + 1
    next_osd = max(next_osd, crush.max_devices)
    if next_osd + hosts * len(template) > OSDS_MAX:
        raise MeasuredError(
            f"--grow: got {hosts} hosts, wanted at most {OSDS_MAX:,} OSDs in all"
        )
    names = {bucket.name for bucket in crush.buckets} | {
        device.name for device in crush.devices
    }
    free_names = (
        name
        for name in (f"added-host-{number}" for number in count(1))
        if name not in names
    )
    added = []
    for _ in range(hosts):
        # The parents with the fewest hosts, or the first of them in the map.
        parents = min(hosts_at, key=hosts_at.__getitem__)
        hosts_at[parents] += 1
        name = next(free_names)
        osds = tuple(
            _like(osd, next_osd + number, name) for number, osd in enumerate(template)
        )
        next_osd += len(osds)
        added.append(AddedHost(name, parents, osds))
    return added


def _parents_of_hosts(
    crush: CrushMap, cluster: ImportedCluster, pool: ImportedPool
) -> dict[int, Parents]:
    """Return the buckets that hold each host of a pool, in the order of the map."""
    host_types = [number for number, name in crush.types if name == "host"]
    members = {osd.id for osd in cluster.osds_of(pool)}
    parents: dict[int, Parents] = {}
    for bucket in crush.buckets:
        if (
            bucket.type_id in host_types
            and "~" not in bucket.name
            and members & set(bucket.items)
        ):
            parents[bucket.id] = tuple(
                holder.id
                for holder in crush.buckets
                if bucket.id in holder.items and "~" not in holder.name
            )
    placed = {host: holders for host, holders in parents.items() if holders}
    if not placed:
        wanted = "OSDs in buckets of type host, below another bucket"
        raise MeasuredError(
            f"--grow: got pool {pool.placed.name}, wanted a pool with {wanted}"
        )
    return placed


def _most_common_host(
    crush: CrushMap, cluster: ImportedCluster, hosts: Iterable[int]
) -> list[ImportedOsd]:
    """Return the OSDs of the first host of the most common kind, by number, classes and sizes of OSDs."""
    by_id = {bucket.id: bucket for bucket in crush.buckets}
    known = {osd.id: osd for osd in cluster.osds}
    members = [
        [known[item] for item in by_id[host].items if item in known] for host in hosts
    ]
    shapes = [
        tuple(sorted((class_of(osd), f"{osd.size_bytes:.2g}") for osd in osds))
        for osds in members
    ]
    most_common = Counter(shapes).most_common(1)[0][0]
    return members[shapes.index(most_common)]


def _like(osd: ImportedOsd, number: int, host: str) -> ImportedOsd:
    """Return a new OSD like an existing one."""
    return replace(
        osd,
        id=number,
        host=host,
        up=True,
        reweight=1.0,
        primary_affinity=1.0,
        crush_weight=osd.crush_weight or osd.size_bytes / _TIB,
        used_bytes=None,
        metadata=osd.metadata.model_copy(update={"id": number, "hostname": host}),
    )


@dataclass
class _EditedBucket:
    """A bucket under construction."""

    bucket: Bucket
    items: list[int]
    weights: list[int]
    class_ids: list[tuple[str, int]]


@dataclass
class _MapEditor:
    """Add hosts to a CRUSH map: to its hierarchy, shadow trees and choose_args."""

    crush: CrushMap
    buckets: dict[int, _EditedBucket] = field(default_factory=dict)
    holders: dict[int, list[int]] = field(default_factory=dict)
    devices: list[Device] = field(default_factory=list)
    # Weight changes: bucket, index of the item (new if beyond the end), and difference.
    changes: list[tuple[int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for bucket in self.crush.buckets:
            self.buckets[bucket.id] = _EditedBucket(
                bucket, list(bucket.items), list(bucket.weights), list(bucket.class_ids)
            )
            for item in bucket.items:
                self.holders.setdefault(item, []).append(bucket.id)

    def add(self, host: AddedHost) -> None:
        """Add a host to its parent buckets, and its shadows to theirs."""
        weights = [round(osd.crush_weight * WEIGHT_ONE) for osd in host.osds]
        classes = {device.device_class for device in self.crush.devices}
        for osd in host.osds:
            device_class = osd.device_class if osd.device_class in classes else None
            self.devices.append(Device(osd.id, f"osd.{osd.id}", device_class))
        type_id = next(number for number, name in self.crush.types if name == "host")
        ids = [osd.id for osd in host.osds]
        host_id = self._new_bucket(host.name, type_id, ids, weights)
        self._hang(host_id, host.parents)
        shadows: dict[str, list[int]] = {}
        for parent in host.parents:
            for device_class, shadow_id in self.buckets[parent].class_ids:
                shadows.setdefault(device_class, []).append(shadow_id)
        for device_class, parents in shadows.items():
            # As in Ceph, a class that the host lacks has an empty shadow.
            own = [
                index
                for index, osd in enumerate(host.osds)
                if osd.device_class == device_class
            ]
            own_ids = [ids[index] for index in own]
            own_weights = [weights[index] for index in own]
            name = shadow_name(host.name, device_class)
            shadow_id = self._new_bucket(name, type_id, own_ids, own_weights)
            self.buckets[host_id].class_ids.append((device_class, shadow_id))
            self._hang(shadow_id, parents)

    def _new_bucket(
        self, name: str, type_id: int, items: list[int], weights: list[int]
    ) -> int:
        bucket_id = next(
            number for number in count(-1, -1) if number not in self.buckets
        )
        bucket = Bucket(bucket_id, name, type_id, (), ())
        self.buckets[bucket_id] = _EditedBucket(bucket, items, weights, [])
        return bucket_id

    def _hang(self, item: int, parents: Iterable[int]) -> None:
        """Add a bucket to its parents, and its weight to all buckets above."""
        weight = sum(self.buckets[item].weights)
        for parent in parents:
            held = self.buckets[parent]
            held.items.append(item)
            held.weights.append(0)
            self.holders.setdefault(item, []).append(parent)
        self._weigh(item, weight)

    def _weigh(self, item: int, more: int) -> None:
        for holder in self.holders.get(item, ()):
            held = self.buckets[holder]
            index = held.items.index(item)
            held.weights[index] += more
            self.changes.append((holder, index, more))
            self._weigh(holder, more)

    def finished(self) -> CrushMap:
        """Return the map with all added hosts."""
        buckets = tuple(
            replace(
                edited.bucket,
                items=tuple(edited.items),
                weights=tuple(edited.weights),
                class_ids=tuple(edited.class_ids),
            )
            for edited in self.buckets.values()
        )
        choose_args = tuple(
            (index, tuple(self._grown_args(change) for change in changes))
            for index, changes in self.crush.choose_args
        )
        devices = (*self.crush.devices, *self.devices)
        return replace(
            self.crush, devices=devices, buckets=buckets, choose_args=choose_args
        )

    def _grown_args(self, change: BucketArgs) -> BucketArgs:
        """Extend a bucket's substitute weights and ids, as Ceph does when a host is added."""
        items = self.buckets[change.bucket_id].items
        own = [
            (index, more)
            for holder, index, more in self.changes
            if holder == change.bucket_id
        ]
        weight_sets = []
        for weights in change.weight_sets:
            grown = [*weights, *[0] * (len(items) - len(weights))]
            for index, more in own:
                grown[index] += more
            weight_sets.append(tuple(grown))
        ids = change.ids
        if ids:
            ids = (*ids, *items[len(ids) :])
        return replace(change, weight_sets=tuple(weight_sets), ids=ids)


def _with_osds(
    osd_map: OsdMap, crush: CrushMap, osds: tuple[ImportedOsd, ...]
) -> OsdMap:
    """Add OSDs that are up and in, and drop temporary acting sets, which end with backfill."""
    more = max(osd.id for osd in osds) + 1 - len(osd_map.exists)
    exists = np.pad(osd_map.exists, (0, more))
    up = np.pad(osd_map.up, (0, more))
    weights = np.pad(osd_map.weights, (0, more))
    affinities = np.pad(osd_map.affinities, (0, more), constant_values=WEIGHT_ONE)
    for osd in osds:
        exists[osd.id] = True
        up[osd.id] = True
        weights[osd.id] = WEIGHT_ONE
    return replace(
        osd_map,
        crush=crush,
        exists=exists,
        up=up,
        weights=weights,
        affinities=affinities,
        pg_temp={},
        primary_temp={},
    )


def _grown_sums(
    cluster: ImportedCluster, osds: Iterable[ImportedOsd]
) -> Mapping[str, OsdSums]:
    """Return size and use of each device class with new OSDs, empty but for their databases."""
    sizes: Counter[str] = Counter()
    databases: Counter[str] = Counter()
    for osd in cluster.osds:
        if osd.is_in:
            sizes[class_of(osd)] += osd.size_bytes + osd.database_bytes
    for osd in osds:
        sizes[class_of(osd)] += osd.size_bytes + osd.database_bytes
        databases[class_of(osd)] += osd.database_bytes
    sums = {}
    for name, use in use_by_class(cluster).items():
        if use.basis == "pools":
            continue
        used = round(use.used_bytes) + databases[name]
        free = max(0, sizes[name] - used)
        sums[name] = OsdSums(
            kb=sizes[name] // _KIB, kb_used=used // _KIB, kb_avail=free // _KIB
        )
    return sums


def _words(cluster: ImportedCluster, added: list[AddedHost]) -> str:
    """Describe the added hosts and their locations."""
    names = {bucket.id: bucket.name for bucket in cluster.osd_map.crush.buckets}
    shape = Counter(
        (class_of(osd), bytes_text(osd.size_bytes)) for osd in added[0].osds
    )
    osds = ", ".join(
        f"{number} {name} of {size}" for (name, size), number in shape.items()
    )
    hosts_in = Counter(
        "+".join(names[parent] for parent in host.parents) for host in added
    )
    listed = ", ".join(
        f"{number} in {name}" for name, number in list(hosts_in.items())[:_LISTED]
    )
    return f"--grow: {len(added)} hosts with {osds} each: {listed}. Data is shown as after backfill"

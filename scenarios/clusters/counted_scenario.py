"""Turn an imported pool into a scenario without a CRUSH map, or into a plan, by counting hosts and OSDs."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from stripesim.calibration.parameters.calibrated_range import (
    CalibratedRange,
    calibrated_range,
)
from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.models.problems import MeasuredError, Problem, ScenarioError
from stripesim.scenarios.clusters.cluster import ImportedCluster, ImportedPool
from stripesim.scenarios.clusters.hardware import Derivation
from stripesim.scenarios.clusters.pool_workload import common_keys, object_notes
from stripesim.scenarios.clusters.scenario import (
    ImportedScenario,
    PoolDescription,
    PoolHost,
    describe_pool,
    mean_size_words,
    size_key,
)
from stripesim.scenarios.clusters.usage import pools_beside, stored_on, use_by_class
from stripesim.scenarios.schema.geometry import equal_host_counts
from stripesim.scenarios.schema.scenario import scenario_from
from stripesim.scenarios.schema.units import bytes_text, size_text

_RACK_NAME_MAX: Final = 64
# src/pybind/mgr/balancer/module.py of Ceph 16.2.15.
_UPMAP_MAX_DEVIATION: Final = 5
_LISTED: Final = 3
# Hosts of a plan, as multiples of the existing ones.
_REQUESTS: Final = 2000
_PLANNED: Final = (1.0, 1.25, 1.5, 2.0)


def scenario_without_map(
    cluster: ImportedCluster, pool: ImportedPool
) -> ImportedScenario:
    """Build a scenario of a pool from counts: its hosts, the OSDs that are in, and its failure domain.

    All hosts get the mean number and size of OSDs. Raw capacity equals that of the pool's OSDs. Buckets above
    hosts become racks if they are the rule's failure domain, whatever their type. Placement differs from the
    cluster's, because there is no CRUSH map.

    Parameters
    ----------
    cluster
        The cluster.
    pool
        The pool.

    Returns
    -------
    ImportedScenario
        `scenario_from` loads its `tables`. `tables["plan"]["stored_bytes"]` is the data on the OSDs now.
        `notes` list the simplifications.

    Raises
    ------
    MeasuredError
        If the pool cannot be simulated.
    """
    described = describe_pool(cluster, pool, holding=pools_beside(cluster, pool))
    hosts, domain, notes = _with_racks(cluster, described)
    keys = {
        **described.cluster,
        "failure_domain_replicated": domain,
        "failure_domain_erasure": domain,
    }
    counts, differences = _equal_hosts(hosts, domain)
    keys |= counts
    notes += differences
    workload = {
        **described.load.mixed(),
        **common_keys(described.image_bytes),
        "requests": _REQUESTS,
    }
    notes += _size_notes(described)
    notes += object_notes(described.objects, pool, described.object_bytes)
    if _has_upmaps(cluster, pool):
        keys["upmap_max_deviation"] = _UPMAP_MAX_DEVIATION
        notes.append(
            "the pool's upmaps name OSDs of its own map, so they are left out; a balancer with Ceph's "
            f"default upmap_max_deviation of {_UPMAP_MAX_DEVIATION} places the groups instead"
        )
    tables = {**described.head, "cluster": keys, "workload": workload}
    stored = stored_on(cluster, pool)
    if stored >= 1:
        tables["plan"] = {"stored_bytes": size_key(stored)}
        notes += _compression_notes(cluster, pool)
    scenario = ImportedScenario(
        pool.placed.name, tables, described.derivations, notes=tuple(notes)
    )
    try:
        scenario_from(tables, label=pool.key)
    except ScenarioError as error:
        raise MeasuredError(*error.problems) from None
    return scenario


def plan_of(cluster: ImportedCluster, pool: ImportedPool) -> ImportedScenario:
    """Build a scenario of a pool with a table `[plan]` that adds hosts like the existing ones.

    Existing hosts are owned. All hosts are equal, because a plan varies their number. Requirements are
    the data stored now and, if known, the measured rate.
    """
    counted = scenario_without_map(cluster, pool)
    described = describe_pool(cluster, pool, holding=pools_beside(cluster, pool))
    keys = counted.tables["cluster"]
    step = keys.get("racks", 1)
    hosts = {math.ceil(keys["hosts"] * factor / step) * step for factor in _PLANNED}
    plan: dict[str, Any] = {"hosts": sorted(hosts)}
    # Equal hosts stand for the existing ones, and racks of equal size may need more of them.
    plan["owned_hosts"] = keys["hosts"]
    stored = counted.tables.get("plan", {})
    if stored:
        plan |= {**stored, "usable_bytes": stored["stored_bytes"]}
    rate = described.load.rate_per_s
    if rate:
        plan["rate_per_s"] = float(f"{rate:.6g}")
    return ImportedScenario(
        counted.pool,
        {**counted.tables, "plan": plan},
        (*counted.derivations, *_plan_derivations(cluster, described)),
        notes=counted.notes,
        comments={"plan": _plan_comments(described)},
    )


def _plan_derivations(
    cluster: ImportedCluster, described: PoolDescription
) -> list[Derivation]:
    pool = described.pool
    stored = bytes_text(stored_on(cluster, pool))
    own = bytes_text(pool.held_bytes)
    on_osds = (
        f"data of all pools on the OSDs of {pool.placed.name} / {pool.overhead:.4g}, its overhead (the pool "
        f"alone stores {own})"
    )
    now = "the data stored now. Raise it to the data that the cluster must hold"
    derived = [
        Derivation("plan.stored_bytes", on_osds, stored),
        Derivation("plan.usable_bytes", now, stored),
    ]
    rate = described.load.rate
    if rate is not None and described.load.rate_per_s:
        source = (
            f"{rate.read_per_s:,.0f} reads and {rate.write_per_s:,.0f} writes per second by "
            f"`ceph {rate.command}`, a snapshot: peak hours are higher"
        )
        value = f"{described.load.rate_per_s:,.0f}"
        derived.append(Derivation("plan.rate_per_s", source, value))
    return derived


def _plan_comments(described: PoolDescription) -> list[str]:
    comments = [
        'growth_bytes_per_day = "100GB"   # daily growth of client data (not in the files)',
        "days_until_full = 365.0          # with growth: time that the capacity must last",
    ]
    if not described.load.rate_per_s:
        comments.append(
            "rate_per_s = 1000.0              # not in the files: `ceph osd pool stats -f json` adds it"
        )
    return comments


def _compression_notes(cluster: ImportedCluster, pool: ImportedPool) -> list[str]:
    """Note pools on the same OSDs that compress, since the bytes in use are those after compression."""
    members = set(pool.osds)
    names = [
        other.placed.name
        for other in cluster.pools
        if other.compresses and members.intersection(other.osds)
    ]
    # Without a count by Ceph, the estimate is that of the data before compression.
    is_counted = any(use.basis != "pools" for use in use_by_class(cluster).values())
    if not names or not is_counted:
        return []
    return [
        f"plan.stored_bytes is the data after compression (of {', '.join(names[:_LISTED])}), and plans hold "
        "data that does not compress: state the bytes before it"
    ]


def _has_upmaps(cluster: ImportedCluster, pool: ImportedPool) -> bool:
    """Return True if a balancer has moved groups of the pool."""
    return any(
        pool_id == pool.placed.id for pool_id, _ in cluster.osd_map.pg_upmap_items
    )


def _with_racks(
    cluster: ImportedCluster, described: PoolDescription
) -> tuple[list[PoolHost], str, list[str]]:
    """Return the hosts (with racks if no two shards share one), the failure domain, and notes."""
    pool = described.pool
    hosts = list(described.hosts)
    domain = pool.failure_domain
    notes: list[str] = []
    if domain not in ("osd", "host"):
        racks = _racks_of(cluster, hosts, domain)
        if not racks:
            return (
                hosts,
                "osd",
                [
                    f"failure domain {domain} does not hold whole hosts: it is written as osd"
                ],
            )
        if domain != "rack":
            notes.append(f"failure domain {domain} is written as rack")
        hosts = [host._replace(rack=racks[host.name]) for host in hosts]
        order = list(dict.fromkeys(racks.values()))
        hosts.sort(key=lambda host: order.index(racks[host.name]))
        domain = "rack"
    counts = {"host": len(hosts), "rack": len({host.rack for host in hosts})}
    if counts.get(domain, math.inf) < pool.placed.size:
        few = f"{counts[domain]} {domain}s for {pool.placed.size} shards"
        return hosts, "osd", [*notes, f"{few}: the failure domain is written as osd"]
    return hosts, domain, notes


def _racks_of(
    cluster: ImportedCluster, hosts: Sequence[PoolHost], domain: str
) -> dict[str, str]:
    """Return the bucket of a type above each host, or nothing if a host has none or several."""
    buckets = cluster.osd_map.crush.domains(domain)
    racks = {}
    for host in hosts:
        names = {buckets.get(osd.id) for osd in host.osds}
        name = names.pop()
        if names or name is None:
            return {}
        racks[host.name] = name[:_RACK_NAME_MAX]
    return racks


def _equal_hosts(
    hosts: Sequence[PoolHost], domain: str
) -> tuple[dict[str, Any], list[str]]:
    """Return the keys of equal hosts with the same raw capacity, and notes on the differences."""
    osds = sum(len(host.osds) for host in hosts)
    raw = sum(host.size_bytes for host in hosts)
    racks = 1
    if domain == "rack":
        racks = len({host.rack for host in hosts})
    count, each = equal_host_counts(len(hosts), osds, racks)
    size = raw / (count * each)
    keys: dict[str, Any] = {
        "hosts": count,
        "osds_per_host": each,
        "drive_bytes": size_key(size),
    }
    if domain == "rack":
        keys["racks"] = racks
    mean = mean_size_words(hosts)
    if all(host.is_like(hosts[0]) for host in hosts) and count == len(hosts):
        if not mean:
            return keys, []
        return keys, [f"each OSD has {bytes_text(size)}, {mean}"]
    fewest = min(len(host.osds) for host in hosts)
    most = max(len(host.osds) for host in hosts)
    spread = f"{most}" if fewest == most else f"{fewest} to {most}"
    note = (
        f"{len(hosts)} hosts with {spread} OSDs are replaced by {count} equal hosts with {each} "
        f"OSDs of {bytes_text(size)}{mean and f' ({mean})'} and the same raw capacity. The largest failure "
        "domain may differ in size"
    )
    return keys, [note]


def _size_notes(described: PoolDescription) -> list[str]:
    load = described.load
    if (
        load.read_bytes is None
        or load.write_bytes is None
        or load.read_bytes == load.write_bytes
    ):
        return []
    return [
        f"reads of {size_text(load.read_bytes)} and writes of {size_text(load.write_bytes)} become one load "
        f"with requests of {size_text(load.mean_bytes)}, the mean of both. This keeps the total of bytes/s, "
        "but not that in each direction"
    ]


def outside_of_pool(described: PoolDescription) -> list[Problem]:
    """List the keys of a pool that are outside the calibrated range of its parameter set."""
    keys = described.cluster
    load = described.load
    osds = sum(len(host.osds) for host in described.hosts)
    sizes = {size for size in (load.read_bytes, load.write_bytes) if size is not None}
    asked = {
        "generation": described.head["generation"],
        "schemes": described.head["schemes"],
        "cluster": {
            **keys,
            "hosts": len(described.hosts),
            "osds_per_host": max(1, round(osds / len(described.hosts))),
            "object_bytes": described.object_bytes,
        },
        "workload": {
            "kind": "closed",
            "clients": 1,
            "block_sizes_bytes": sorted(sizes),
            "queue_depth": 32,
        },
    }
    return _range_of(keys["parameters"]).problems(asked)


@lru_cache(maxsize=4)
def _range_of(parameters: str) -> CalibratedRange:
    return calibrated_range(ParameterSet(parameters))

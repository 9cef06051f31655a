"""Helpers that several rules share: workloads with their keys, parsed schemes, failure domains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from stripesim.scenarios.schema.keys import ClusterSpec, ScenarioKeys, WorkloadSpec

if TYPE_CHECKING:
    from stripesim.models.coding import RedundancyScheme


#: Most objects that a run under faults simulates beyond those of the images [count].
OTHER_OBJECTS_MAX: Final = 500_000


class NumberedScheme(NamedTuple):
    """A valid scheme with its position in the scenario's list and its original spelling."""

    number: int
    text: str
    scheme: RedundancyScheme


def max_width(schemes: Sequence[NumberedScheme]) -> int:
    """Return the number of shards of the widest scheme, at least 1."""
    return max((item.scheme.width for item in schemes), default=1)


def loads_with_keys(scenario: ScenarioKeys) -> list[tuple[str, WorkloadSpec]]:
    """Return the workloads with their dotted keys."""
    if scenario.workloads:
        return [
            (f"workloads.{index}", load) for index, load in enumerate(scenario.loads)
        ]
    return [("workload", scenario.workload)]


def stored_objects_beyond(
    scenario: ScenarioKeys, known_bytes: int, object_bytes: int | None = None
) -> int:
    """Return the number of objects of `cluster.stored_bytes` that are not those of images or buckets [count].

    `known_bytes` are in those. `object_bytes` is the size of an object, by default that of images.
    """
    beyond_bytes = (scenario.cluster.stored_bytes or 0) - known_bytes
    return max(0, int(beyond_bytes) // (object_bytes or scenario.cluster.object_bytes))


def simulated_objects(scenario: ScenarioKeys) -> float:
    """Return the number of objects that a run simulates, of images and stored data beyond them [count]."""
    images_bytes = scenario.images_bytes
    beyond = stored_objects_beyond(scenario, images_bytes)
    return images_bytes / scenario.cluster.object_bytes + min(beyond, OTHER_OBJECTS_MAX)


def failure_domain(scenario: ScenarioKeys, scheme: RedundancyScheme) -> tuple[str, str]:
    """Return the failure domain of a scheme, and the key that sets it."""
    key = f"failure_domain_{scheme.kind}"
    return getattr(scenario.cluster, key), f"cluster.{key}"


def shards_per_domain(scenario: ScenarioKeys, scheme: RedundancyScheme) -> int:
    """Return the most shards of a group in one failure domain: 1, or those that each site holds."""
    domain, _ = failure_domain(scenario, scheme)
    if domain != "site":
        return 1
    return -(-scheme.width // max(1, domain_count(scenario, domain)))


def domains_of_osds(scenario: ScenarioKeys, domain: str) -> list[int | str]:
    """Return the failure domain of each OSD, for a cluster without a CRUSH map."""
    cluster = scenario.cluster
    if domain == "osd":
        return list(range(cluster.osd_count))
    names: Sequence[int | str] = range(cluster.host_count)
    if domain == "rack":
        names = cluster.rack_names or ()
    if domain == "site":
        names = cluster.site_names or ()
    return [
        name
        for name, osds in zip(names, cluster.of_hosts("osds"), strict=True)
        for _ in range(osds)
    ]


def unequal_levels(cluster: ClusterSpec) -> dict[str, str]:
    """Map the key of racks or sites that cannot have equally many hosts to the value wanted."""
    names = {"racks": cluster.rack_names, "sites": cluster.site_names}
    return {
        level: f"a divisor of cluster.hosts ({cluster.host_count}), for {level} of equal size"
        for level, of_hosts in names.items()
        if getattr(cluster, level) is not None and of_hosts is None
    }


def domain_count(scenario: ScenarioKeys, domain: str) -> int:
    """Return the number of OSDs, hosts, racks or sites."""
    cluster = scenario.cluster
    if domain == "site":
        return len(set(cluster.site_names or ())) or cluster.sites or 0
    if domain == "rack":
        return len(set(cluster.rack_names or ())) or cluster.racks or 0
    return cluster.osd_count if domain == "osd" else cluster.host_count


def added_osds(scenario: ScenarioKeys) -> dict[int, int]:
    """Map the number of each change that adds hosts to its OSDs, by the keys of a cluster without a map."""
    each = scenario.cluster.host_groups[-1].osds or 1
    return {
        index: change.hosts * (change.osds_per_host or each)
        for index, change in enumerate(scenario.changes)
        if isinstance(change.hosts, int)
    }


class DomainLoss(NamedTuple):
    """Number of failure domains with a dead OSD, and with a live one."""

    hit: int
    left: int


def domain_loss(
    scenario: ScenarioKeys, domain: str, dead: set[int]
) -> DomainLoss | None:
    """Count the domains with a dead OSD and with a live one, or return None if racks or sites are unknown."""
    names = {"rack": scenario.cluster.rack_names, "site": scenario.cluster.site_names}
    if domain in names and names[domain] is None:
        return None
    of_osds = domains_of_osds(scenario, domain)
    hit = {of_osds[osd] for osd in dead}
    left = {name for osd, name in enumerate(of_osds) if osd not in dead}
    return DomainLoss(hit=len(hit), left=len(left))


def equal_host_counts(hosts: int, osds: int, racks: int = 1) -> tuple[int, int]:
    """Return the number of equal hosts, a multiple of `racks`, and the OSDs per host that replace a cluster.

    >>> equal_host_counts(hosts=5, osds=24, racks=3)
    (6, 4)
    """
    count = math.ceil(hosts / racks) * racks
    return count, max(1, round(osds / count))

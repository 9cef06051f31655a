"""What several rules need: workloads with their keys, schemes as read, failure domains of the cluster."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from stripesim.scenarios.schema.keys import Scenario, WorkloadSpec

if TYPE_CHECKING:
    from stripesim.models.coding import RedundancyScheme


class NumberedScheme(NamedTuple):
    """A scheme that could be read, with its place in the scenario's list and as it is written there."""

    number: int
    text: str
    scheme: RedundancyScheme


def max_width(schemes: Sequence[NumberedScheme]) -> int:
    """Return the shards of the widest of some schemes, at least 1."""
    return max((item.scheme.width for item in schemes), default=1)


def loads_with_keys(scenario: Scenario) -> list[tuple[str, WorkloadSpec]]:
    """List the workloads with the keys that they stand under."""
    if scenario.workloads:
        return [
            (f"workloads.{index}", load) for index, load in enumerate(scenario.loads)
        ]
    return [("workload", scenario.workload)]


def failure_domain(scenario: Scenario, scheme: RedundancyScheme) -> tuple[str, str]:
    """Return what no two shards of a scheme share, and the key that says so."""
    key = (
        "failure_domain_replicated"
        if scheme.kind == "replicated"
        else "failure_domain_erasure"
    )
    return getattr(scenario.cluster, key), f"cluster.{key}"


def domains_of_osds(scenario: Scenario, domain: str) -> list[int | str]:
    """Return the failure domain that each OSD is in, of a cluster without a CRUSH map."""
    cluster = scenario.cluster
    if domain == "osd":
        return list(range(cluster.osd_count))
    racks = cluster.rack_names or ()
    names: Sequence[int | str] = (
        racks if domain == "rack" else range(cluster.host_count)
    )
    return [
        name
        for name, osds in zip(names, cluster.of_hosts("osds"), strict=True)
        for _ in range(osds)
    ]


def domain_count(scenario: Scenario, domain: str) -> int:
    """Count OSDs, hosts or racks."""
    cluster = scenario.cluster
    if domain == "rack":
        return len(set(cluster.rack_names or ())) or cluster.racks or 0
    return cluster.osd_count if domain == "osd" else cluster.host_count


def equal_host_counts(hosts: int, osds: int, racks: int = 1) -> tuple[int, int]:
    """Take hosts as equal: return as many hosts in each rack, and the OSDs of each host.

    >>> equal_host_counts(hosts=5, osds=24, racks=3)
    (6, 4)
    """
    count = math.ceil(hosts / racks) * racks
    return count, max(1, round(osds / count))

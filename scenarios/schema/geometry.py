"""Counts that several rules need: the schemes as read, and the failure domains of a scenario's cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stripesim.scenarios.schema.keys import Scenario
from stripesim.scenarios.schema.toml_lines import KeyPath

if TYPE_CHECKING:
    from stripesim.models.coding import RedundancyScheme


@dataclass(frozen=True)
class NumberedScheme:
    """A scheme that could be read, with its place in the scenario's list.

    index: position in `Scenario.schemes`, from 0; text: the scheme as written; scheme: what it means.
    """

    index: int
    text: str
    scheme: RedundancyScheme


def failure_domain(scenario: Scenario, scheme: RedundancyScheme) -> tuple[str, KeyPath]:
    """Return what no two shards of a scheme share, and the key that says so."""
    key = "failure_domain_replicated" if scheme.kind == "replicated" else "failure_domain_erasure"
    return getattr(scenario.cluster, key), ("cluster", key)


def domains_of_osds(scenario: Scenario, domain: str) -> list[int | str]:
    """Return the failure domain that each OSD is in, of a cluster without a CRUSH map."""
    cluster = scenario.cluster
    if domain == "osd":
        return list(range(cluster.osd_count))
    names: Sequence[int | str] = range(cluster.host_count)
    if domain == "rack":
        names = cluster.rack_names or ()
    counts = cluster.of_hosts("osds")
    return [name for name, count in zip(names, counts, strict=True) for _ in range(count)]


def domain_count(scenario: Scenario, domain: str) -> int:
    """Count OSDs, hosts or racks."""
    cluster = scenario.cluster
    if domain == "rack":
        return len(set(cluster.rack_names or ())) or cluster.racks or 0
    return cluster.osd_count if domain == "osd" else cluster.host_count

"""Replace the hosts of a scenario by equal ones, so that a plan can vary their number."""

import math
from typing import Any

import numpy as np

from stripesim.models.coding import parse_scheme
from stripesim.scenarios.cells.placement import (
    crush_of,
    crush_rule,
    drive_bytes_of_hosts,
    hosts_of_osds_in,
    osd_domains,
    site_count,
)
from stripesim.scenarios.schema.geometry import equal_host_counts, failure_domain
from stripesim.scenarios.schema.scenario import Scenario, scenario_from

#: Keys of [cluster] that describe individual hosts.
_HOST_KEYS = (
    "hosts",
    "osds_per_host",
    "racks",
    "sites",
    "drive_bytes",
    "crush_map",
    "crush_rule",
    "failure_domain_replicated",
    "failure_domain_erasure",
)


def with_equal_hosts(scenario: Scenario) -> tuple[Scenario, list[str]]:
    """Replace a CRUSH map or groups of hosts by equal hosts with the same raw capacity.

    Parameters
    ----------
    scenario
        The scenario.

    Returns
    -------
    tuple of Scenario and list of str
        The new scenario and a note on the simplification. If hosts are equal already, the scenario itself and
        no note.

    Raises
    ------
    ValueError
        If the map has no host for an OSD, or no rule for the first scheme.
    """
    cluster = scenario.cluster
    if cluster.crush_map is None and isinstance(cluster.hosts, int):
        return scenario, []
    hosts_of_osds = _hosts_of_pool(scenario)
    hosts = sorted(set(hosts_of_osds.values()))
    keys, domain = _domain_keys(scenario, hosts_of_osds)
    if cluster.site_rtt_ms is not None:
        keys["sites"] = site_count(scenario)
    # Sites hold as many hosts each, and racks too.
    multiple = math.lcm(keys.get("racks", 1), keys.get("sites", 1))
    host_count, osds_per_host = equal_host_counts(
        len(hosts), len(hosts_of_osds), multiple
    )
    keys |= {"hosts": host_count, "osds_per_host": osds_per_host}
    size = _drive_bytes(scenario, hosts_of_osds)
    if size is not None:
        keys["drive_bytes"] = round(
            size * len(hosts_of_osds) / (host_count * osds_per_host)
        )
    tables = scenario.model_dump(mode="json", exclude_unset=True)
    kept = {
        key: value
        for key, value in tables.get("cluster", {}).items()
        if key not in _HOST_KEYS
    }
    tables["cluster"] = {**kept, **keys}
    source = "groups of hosts" if cluster.crush_map is None else cluster.crush_map
    note = (
        f"{source}: {len(hosts_of_osds)} OSDs on {len(hosts)} hosts are replaced by"
        f" {host_count} equal hosts with {osds_per_host} OSDs each{_sites_words(keys)},"
        f" failure domain {domain}"
    )
    return scenario_from(tables, label=scenario.name), [note]


def _sites_words(keys: dict[str, Any]) -> str:
    return f" at {keys['sites']} equal sites" if "sites" in keys else ""


def _hosts_of_pool(scenario: Scenario) -> dict[int, int]:
    """Map each OSD that the first scheme may use to its host."""
    host_of = {
        osd: host
        for osd, host in enumerate(hosts_of_osds_in(scenario).tolist())
        if host >= 0
    }
    if scenario.cluster.crush_map is None:
        return host_of
    rule = crush_rule(scenario, parse_scheme(scenario.schemes[0]))
    usable = set(crush_of(scenario).osds_of_rule(rule))
    return {osd: host for osd, host in host_of.items() if osd in usable}


def _domain_keys(
    scenario: Scenario, hosts_of_osds: dict[int, int]
) -> tuple[dict[str, Any], str]:
    """Return the keys of failure domain and racks, and the name of the domain."""
    domains = osd_domains(scenario, parse_scheme(scenario.schemes[0]))
    domain_count = len({domains[osd] for osd in hosts_of_osds})
    host_count = len(set(hosts_of_osds.values()))
    domain = "rack"
    if _is_site_domain(scenario):
        domain = "site"
    elif domain_count == len(hosts_of_osds):
        domain = "osd"
    elif domain_count == host_count:
        domain = "host"
    keys: dict[str, Any] = {
        "failure_domain_replicated": domain,
        "failure_domain_erasure": domain,
    }
    if domain == "rack":
        keys["racks"] = domain_count
    return keys, domain


def _is_site_domain(scenario: Scenario) -> bool:
    scheme = parse_scheme(scenario.schemes[0])
    return failure_domain(scenario, scheme)[0] == "site"


def _drive_bytes(scenario: Scenario, hosts_of_osds: dict[int, int]) -> float | None:
    """Return the mean capacity of a drive [B], or None if the scenario has none."""
    sizes = drive_bytes_of_hosts(scenario)
    if not sizes:
        return scenario.cluster.drive_bytes
    return float(np.mean([sizes[host] for host in hosts_of_osds.values()]))

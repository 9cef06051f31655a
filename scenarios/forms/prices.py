"""Compute the cost of buying and running a candidate, less the hosts that exist already."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from stripesim.scenarios.cells.placement import osd_hosts
from stripesim.scenarios.forms.capacity import Capacity
from stripesim.scenarios.schema.keys import ClusterSpec, HostGroup
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.tables import DrivePricesSpec, PricesSpec

#: Unit of a cost. Prices are in any one currency, which a scenario does not name.
COST_UNIT: Final = "currency of the prices"
_HOURS_PER_YEAR: Final = 8766.0


class Cost(NamedTuple):
    """Price and power of a candidate."""

    cost: float  #: New hardware, and power over `PricesSpec.years` [currency]
    watts: float  #: Power of all hosts, drives and machines of gateways [W]


class _DrivePrice(NamedTuple):
    price: float
    watts: float


def cost_of(
    candidate: Scenario,
    owned: ClusterSpec,
    owned_hosts: int,
    prices: PricesSpec,
    *,
    drive_bytes: float,
    owned_drive_bytes: float,
    drives_per_osd: int,
    owned_gateways: int = 0,
) -> Cost:
    """Compute the cost of a candidate.

    Parameters
    ----------
    candidate
        The scenario of the candidate.
    owned, owned_hosts
        The existing cluster, and the number of its hosts. Unchanged, they cost nothing. A candidate with
        other or larger drives buys all drives of its hosts, one with more OSDs per host buys the additional
        drives, one with faster networks buys networks, and one with more cores replaces its hosts, or
        buys cores for all hosts if they have a price.
    prices
        Prices of the parts.
    drive_bytes, owned_drive_bytes
        Capacity of one drive of the candidate, and of the existing cluster [B], or 0 if unknown.
    drives_per_osd
        Drives striped behind one OSD [count].
    owned_gateways
        Number of existing gateways, which cost nothing unless they get more cores.

    Returns
    -------
    Cost
        Price and power.
    """
    cluster = candidate.cluster
    drive = _price_of_drive(prices, cluster.drive, drive_bytes)
    network = prices.network_per_gbit * _gbit_per_s(cluster)
    drives = cluster.osd_count * drives_per_osd
    per_host = drives / cluster.host_count
    kept = min(owned_hosts, cluster.host_count)
    bought = cluster.host_count - kept
    cost = bought * (prices.host + network + per_host * drive.price)
    cost += _price_of_cores(cluster, owned, prices, kept)
    if _has_faster_network(cluster, owned):
        cost += kept * network
    added = per_host
    if cluster.drive == owned.drive and drive_bytes == owned_drive_bytes:
        owned_per_host = owned.osd_count * drives_per_osd / owned.host_count
        added = max(0.0, per_host - owned_per_host)
    cost += kept * added * drive.price
    watts = cluster.host_count * prices.host_watts + drives * drive.watts
    if candidate.workload.is_s3:
        cost += _price_of_gateways(cluster, owned, owned_gateways, prices)
        if cluster.gateways.place == "own":
            watts += cluster.gateway_count * prices.gateway_watts
    cost += watts / 1000 * _HOURS_PER_YEAR * prices.years * prices.kwh
    return Cost(cost, watts)


def with_counted_hosts(scenario: Scenario) -> Scenario:
    """Return a scenario whose hosts and their OSDs are those of its CRUSH map, to compute its cost."""
    cluster = scenario.cluster
    if cluster.crush_map is None or not isinstance(cluster.hosts, int):
        return scenario
    hosts = osd_hosts(scenario)
    _, osds_of_hosts = np.unique(hosts[hosts >= 0], return_counts=True)
    groups = zip(*np.unique(osds_of_hosts, return_counts=True), strict=True)
    return scenario.with_cluster(
        hosts=tuple(
            HostGroup(count=int(count), osds=int(osds)) for osds, count in groups
        )
    )


def with_next_domain(candidate: Scenario, held: Capacity) -> Scenario:
    """Return a candidate with one more failure domain, a host or a rack of hosts, to compute its cost.

    With shards at sites, that is a host at each.
    """
    cluster = candidate.cluster
    *first_groups, last = cluster.host_groups
    added = hosts_of_domain(cluster, held.domain)
    if held.where:
        added = cluster.site_count
    more = last.replaced(count=last.count + added)
    return candidate.with_cluster(hosts=(*first_groups, more))


def hosts_of_domain(cluster: ClusterSpec, domain: str) -> int:
    """Return the hosts to add for one more failure domain [count]: those of a rack, or else one."""
    if domain != "rack" or cluster.racks is None:
        return 1
    return cluster.host_count // cluster.racks


def _gbit_per_s(cluster: ClusterSpec) -> float:
    """Return the rates of a host's interfaces, summed [10^9 bit/s]."""
    if cluster.networks == 1:
        return cluster.public_gbit_per_s
    return cluster.public_gbit_per_s + cluster.private_gbit_per_s


def _price_of_drive(prices: PricesSpec, kind: str, drive_bytes: float) -> _DrivePrice:
    """Return price and power of one drive of the given kind."""
    own = prices.drives.get(kind, DrivePricesSpec())
    drive = prices.drive if own.drive is None else own.drive
    per_tb = prices.drive_per_tb if own.drive_per_tb is None else own.drive_per_tb
    watts = prices.drive_watts if own.drive_watts is None else own.drive_watts
    return _DrivePrice(drive + per_tb * drive_bytes / 1e12, watts)


def _price_of_cores(
    cluster: ClusterSpec, owned: ClusterSpec, prices: PricesSpec, kept: int
) -> float:
    """Return the price of further cores of all hosts. Without one, hosts that have too few are replaced."""
    added = cluster.cores_per_host - owned.cores_per_host
    if added <= 0:
        return 0.0
    if prices.core is None:
        return kept * prices.host
    return cluster.host_count * added * prices.core


def _price_of_gateways(
    cluster: ClusterSpec, owned: ClusterSpec, owned_gateways: int, prices: PricesSpec
) -> float:
    """Return the price of further gateways, and of further cores of all that have machines of their own."""
    count = cluster.gateway_count
    kept = min(owned_gateways, count)
    cost = (count - kept) * prices.gateway
    if cluster.gateways.place != "own":
        return cost
    added = _cores_of_gateway(cluster) - _cores_of_gateway(owned)
    if added <= 0:
        return cost
    if prices.gateway_core is None:
        return cost + kept * prices.gateway
    return cost + count * added * prices.gateway_core


def _cores_of_gateway(cluster: ClusterSpec) -> int:
    return cluster.gateways.cores or cluster.cores_per_host


def _has_faster_network(cluster: ClusterSpec, owned: ClusterSpec) -> bool:
    faster_public = cluster.public_gbit_per_s > owned.public_gbit_per_s
    faster_private = cluster.between_hosts_gbit_per_s > owned.between_hosts_gbit_per_s
    return faster_public or faster_private

"""Place a scenario's data: CRUSH maps, up sets, hosts, failure domains and sites of OSDs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from stripesim.models.coding import (
    RedundancyScheme,
)
from stripesim.models.drive import DriveCapacity
from stripesim.models.placement import (
    NONE,
    CrushMap,
    OsdMap,
    OsdWeights,
    PlacedPool,
    balanced_osd_map,
    changed_osd_map,
    load_map,
    map_of_hosts,
    pg_sets,
    rule_name,
)
from stripesim.models.placement.crush.elements import WEIGHT_ONE
from stripesim.models.placement.upmaps import pool_domains
from stripesim.scenarios.cells.files import cached_by_content
from stripesim.scenarios.cells.growth import GrownMap, grown_map
from stripesim.scenarios.cells.models import build_models, device_set
from stripesim.scenarios.schema.geometry import (
    domain_count,
    domains_of_osds,
    failure_domain,
    shards_per_domain,
    unequal_levels,
)
from stripesim.scenarios.schema.keys import ClusterSpec
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.tables import ChangeSpec
from stripesim.scenarios.schema.topology import Topology
from stripesim.scenarios.schema.units import format_size
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.sites import Sites
from stripesim.sim.engine.graph import IntArray

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def acting_sets(
    scenario: Scenario,
    scheme: RedundancyScheme,
    osds: int,
    down: Sequence[int],
    weights: OsdWeights | None = None,
) -> IntArray:
    """Return the acting set of each placement group, with holes for OSDs that are down.

    `weights` are those of changes that were made before.
    """
    acting = up_sets(scenario, scheme, weights)
    if (acting == NO_OSD).any(axis=1).all():
        placed = int((acting != NO_OSD).sum(axis=1).max())
        raise _too_few_domains(scenario, scheme, placed)
    unknown = [osd for osd in down if osd >= osds]
    if unknown:
        raise scenario.problem(
            "cluster.crush_map", f"no OSD {unknown[0]}", "OSDs of the map"
        )
    return np.where(np.isin(acting, np.asarray(down, dtype=np.int64)), NO_OSD, acting)


def _too_few_domains(
    scenario: Scenario, scheme: RedundancyScheme, placed: int
) -> ValueError:
    """Return the error for a cluster that cannot place every shard of a scheme."""
    few = f"places at most {placed} of the {scheme.width} shards of {scheme.name}"
    if scenario.cluster.crush_map is not None:
        got = f"rule {crush_rule(scenario, scheme)}, which {few}"
        return scenario.problem(
            "cluster.crush_map", got, "a map and a rule that place all"
        )
    domain, key = failure_domain(scenario, scheme)
    count = domain_count(scenario, domain)
    got = f"{count} {domain}s, which {few.replace('places', 'hold')}"
    return scenario.problem(
        "cluster.hosts", got, f'{scheme.width} {domain}s or more, or {key} = "osd"'
    )


def host_values(scenario: Scenario, key: str) -> list[Any]:
    """List the value of a key of host groups for each host. New hosts are like the last."""
    return _with_new_hosts(scenario, scenario.cluster.of_hosts(key))


def drive_bytes_of_hosts(scenario: Scenario) -> list[float]:
    """Return the capacity of one drive on each host [B], or an empty list if all are equal."""
    sizes = group_drive_bytes(scenario)
    if not sizes:
        return []
    groups = scenario.cluster.host_groups
    of_hosts = [
        size
        for group, size in zip(groups, sizes, strict=True)
        for _ in range(group.count)
    ]
    return _with_new_hosts(scenario, of_hosts)


def _with_new_hosts(scenario: Scenario, values: list[Any]) -> list[Any]:
    """Return a value of each host, with those of hosts that changes add."""
    check_host_count(scenario)
    return values + [values[-1]] * len(grown_map_of(scenario).new_hosts)


def domains_of_hosts(
    scenario: Scenario, domain: Literal["rack", "site"]
) -> list[str] | None:
    """Return the rack or site of each host, or None without any. The CRUSH map has those of new hosts."""
    cluster = scenario.cluster
    names = cluster.rack_names if domain == "rack" else cluster.site_names
    if names is None:
        return None
    grown = grown_map_of(scenario)
    of_osds = grown.crush.domains(CRUSH_TYPES.get(domain, domain))
    return [*names, *(of_osds[osds[0]] for osds in grown.new_hosts)]


def check_host_count(scenario: Scenario) -> None:
    """Check that the groups of hosts add up to the number of hosts in the CRUSH map."""
    cluster = scenario.cluster
    new_count = len(grown_map_of(scenario).new_hosts)
    count = int(padded_osd_hosts(scenario).max()) + 1 - new_count
    if cluster.host_count == count:
        return
    got = f"groups of {cluster.host_count} hosts"
    raise scenario.problem("cluster.hosts", got, f"{count}, as {cluster.crush_map} has")


def group_drive_bytes(scenario: Scenario) -> list[float]:
    """List the capacity of one drive of each group of hosts [B], or nothing if no group states one.

    Other groups take `cluster.drive_bytes`, or else the capacity of the device parameter set.
    """
    cluster = scenario.cluster
    if isinstance(cluster.hosts, int):
        return []
    if all(group.drive_bytes is None for group in cluster.hosts):
        return []
    sizes = [group.drive_bytes for group in cluster.host_groups]
    if None in sizes:
        default = _set_drive_bytes(scenario)
        if default is None:
            raise _no_capacity(scenario, sizes.index(None))
        sizes = [size or default for size in sizes]
    return [float(size) for size in sizes if size is not None]


def _set_drive_bytes(scenario: Scenario) -> int | None:
    """Return the capacity of a drive of the device parameter set [B], or None if it gives none."""
    drive = device_set(scenario)
    if drive.table("capacity") is None:
        return None
    return round(drive.model(DriveCapacity, "capacity").drive_bytes)


def _no_capacity(scenario: Scenario, group: int) -> ValueError:
    """Return the error for a group of hosts whose drives have no stated capacity."""
    name = device_set(scenario).name
    wanted = (
        f"bytes, or cluster.drive_bytes: device parameter set {name} gives no capacity"
    )
    return scenario.problem(f"cluster.hosts.{group}.drive_bytes", "nothing", wanted)


def unreachable_osds(scenario: Scenario) -> list[int]:
    """List the OSDs that are lost or missing at the start of the run."""
    return sorted({*scenario.lost_osds, *scenario.missing_osds})


#: Type of the CRUSH bucket of a failure domain, if it has another name.
CRUSH_TYPES: Final = {"site": "datacenter"}

#: Types of CRUSH buckets that are sites. The first that a map has counts.
_SITE_TYPES: Final = ("datacenter", "zone", "region")

_map_of_file = cached_by_content(maxsize=4)(load_map)


_TIB: Final = 1 << 40
# Placements to keep, a few MB each with 100,000 placement groups [count].
_PLACEMENTS_MAX: Final = 8


@lru_cache(maxsize=8)
def _map_of(cluster: ClusterSpec, weights: tuple[int, ...]) -> CrushMap:
    """Build the map of a cluster's hosts, given the weight of an OSD of each group (16.16 fixed point)."""
    of_hosts = [
        (weight,) * (group.osds or 0)
        for group, weight in zip(cluster.host_groups, weights, strict=True)
        for _ in range(group.count)
    ]
    return map_of_hosts(of_hosts, cluster.rack_names, cluster.site_names)


def _group_weights(scenario: Scenario) -> tuple[int, ...]:
    """Return the CRUSH weight of an OSD of each group of hosts, by capacity [TiB] if capacities differ."""
    sizes = group_drive_bytes(scenario)
    if len(set(sizes)) <= 1:
        return (WEIGHT_ONE,) * len(scenario.cluster.host_groups)
    weights = tuple(round(size / _TIB * WEIGHT_ONE) for size in sizes)
    if 0 in weights:
        raise _too_small(scenario, weights.index(0), sizes)
    return weights


def stated_weight(scenario: Scenario, weight: float) -> int:
    """Return a weight that a change states [TiB] in the unit of the scenario's CRUSH map (16.16 fixed point).

    A map of drives that are all alike gives each the weight 1. Without a capacity, stated weights count in
    such drives.
    """
    cluster = scenario.cluster
    unit = 1.0
    if cluster.crush_map is None and len(set(group_drive_bytes(scenario))) <= 1:
        unit = _osd_tib(scenario) or 1.0
    return round(weight / unit * WEIGHT_ONE)


def _osd_tib(scenario: Scenario) -> float | None:
    """Return the capacity of an OSD of a cluster whose drives are alike [TiB], or None if it is unknown."""
    stated = [*group_drive_bytes(scenario), scenario.cluster.drive_bytes]
    drive_bytes = stated[0] or _set_drive_bytes(scenario)
    if drive_bytes is None:
        return None
    return build_models(scenario).ssd.raid0_drives * drive_bytes / _TIB


def _too_small(scenario: Scenario, group: int, sizes: list[float]) -> ValueError:
    """Return the error for a group whose drives are too small for a CRUSH weight."""
    cluster = scenario.cluster
    assert not isinstance(cluster.hosts, int)
    own = cluster.hosts[group].drive_bytes is not None
    key = f"cluster.hosts.{group}.drive_bytes" if own else "cluster.drive_bytes"
    smallest = format_size(_TIB // WEIGHT_ONE // 2)
    wanted = f"more than {smallest} where drives differ: CRUSH weights count TiB / {WEIGHT_ONE:,}"
    return scenario.problem(key, f"{sizes[group]:.0f}", wanted)


def crush_of(scenario: Scenario) -> CrushMap:
    """Return the CRUSH map of a scenario, including hosts that changes add later, with weight 0."""
    return grown_map_of(scenario).crush


def grown_map_of(scenario: Scenario) -> GrownMap:
    """Return the CRUSH map of a scenario, its file or a regular map of its counts, with new hosts."""
    cluster = scenario.cluster
    if cluster.crush_map is not None:
        crush = _map_of_file(str(scenario.resolve(cluster.crush_map)))
    else:
        # A plan that varies hosts or sites may describe a cluster that none of its candidates is.
        for level, wanted in unequal_levels(cluster).items():
            raise scenario.problem(f"cluster.{level}", getattr(cluster, level), wanted)
        crush = _map_of(cluster, _group_weights(scenario))
    return grown_map(crush, scenario.changes)


def crush_rule(scenario: Scenario, scheme: RedundancyScheme) -> str:
    """Return the name of the CRUSH rule that places a scheme."""
    domain, domain_key = failure_domain(scenario, scheme)
    path = scenario.cluster.crush_map
    if path is None and not domain_count(scenario, domain):
        # A plan may vary sites, which [cluster] does not state then.
        wanted = f"cluster.{domain}s, too: the number of {domain}s is missing"
        raise scenario.problem(domain_key, f'"{domain}"', wanted)
    kind: Literal["replicated", "erasure"] = "replicated"
    if scheme.kind != "replicated":
        kind = "erasure"
    stated = scenario.cluster.crush_rule
    name = stated or rule_name(kind, domain, shards_per_domain(scenario, scheme))
    if path is None:
        return name
    rules = [rule.name for rule in crush_of(scenario).rules]
    if name not in rules:
        known = ", ".join(rules) or "it has none"
        wanted = f"the rule of {path} that places {scheme.name}: {known}"
        raise scenario.problem("cluster.crush_rule", stated or "nothing", wanted)
    return name


def up_sets(
    scenario: Scenario,
    scheme: RedundancyScheme,
    weights: OsdWeights | None = None,
    *,
    rebalanced: bool = False,
) -> IntArray:
    """Return the up set of each placement group, with some weights of OSDs.

    A balancer has placed the groups before the weights change. What it placed stays, except upmaps that the
    change breaks. `rebalanced`: it places the groups again after the change.
    """
    weights = weights or OsdWeights()
    if scenario.cluster.crush_map is not None:
        return _placed(scenario, scheme, weights, rebalanced)
    placement = _Placement(
        cluster=scenario.cluster,
        group_weights=_group_weights(scenario),
        changes=tuple(scenario.changes),
        scheme=scheme,
        weights=weights,
        rebalanced=rebalanced,
        scenario=scenario,
    )
    return _kept(placement).copy()


def up_sets_without_each(
    scenario: Scenario, scheme: RedundancyScheme, osds: Sequence[int]
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the up sets of each OSD's placement groups, before and after it alone is marked out."""
    before = up_sets(scenario, scheme)
    osd_map = _balanced_map(scenario, scheme, _osd_map_of(scenario, scheme))
    for osd in osds:
        without = changed_osd_map(osd_map, OsdWeights(out=(osd,)))
        (pool,) = without.pools
        groups = np.flatnonzero((before == osd).any(axis=1))
        yield before[groups], pg_sets(without, pool, groups).up.astype(np.int64)


@dataclass(frozen=True)
class _Placement:
    """Inputs of the up sets of a cluster without a CRUSH map of its own, and a scenario that has them."""

    cluster: ClusterSpec
    group_weights: tuple[int, ...]
    changes: tuple[ChangeSpec, ...]
    scheme: RedundancyScheme
    weights: OsdWeights
    rebalanced: bool
    scenario: Scenario = field(compare=False)


@lru_cache(maxsize=_PLACEMENTS_MAX)
def _kept(placement: _Placement) -> IntArray:
    """Return the up sets of a cluster. A fit simulates one cluster hundreds of times."""
    return _placed(
        placement.scenario, placement.scheme, placement.weights, placement.rebalanced
    )


def _placed(
    scenario: Scenario,
    scheme: RedundancyScheme,
    weights: OsdWeights,
    rebalanced: bool,
) -> IntArray:
    assert NO_OSD == NONE
    osd_map = _osd_map_of(scenario, scheme)
    if not rebalanced:
        osd_map = _balanced_map(scenario, scheme, osd_map)
    osd_map = changed_osd_map(osd_map, weights)
    if rebalanced:
        osd_map = _balanced_map(scenario, scheme, osd_map)
    (pool,) = osd_map.pools
    return pg_sets(osd_map, pool).up.astype(np.int64)


def _balanced_map(
    scenario: Scenario, scheme: RedundancyScheme, osd_map: OsdMap
) -> OsdMap:
    """Return an OSD map as its balancer leaves it, unchanged if there is none."""
    deviation = scenario.cluster.upmap_max_deviation
    if deviation is None:
        return osd_map
    shares = osd_map.crush.shares_of_rule(crush_rule(scenario, scheme))
    by_osd = {
        osd: float(share) * int(osd_map.weights[osd]) for osd, share in shares.items()
    }
    (pool,) = osd_map.pools
    return balanced_osd_map(
        osd_map,
        {osd: share for osd, share in by_osd.items() if share},
        pool_domains(osd_map.crush, pool),
        max_deviation=deviation,
    )


def _osd_map_of(scenario: Scenario, scheme: RedundancyScheme) -> OsdMap:
    """Return the OSD map of a scenario: all OSDs are up, with their reweights and the pool's upmaps."""
    cluster = scenario.cluster
    crush = crush_of(scenario)
    known = [device.id for device in crush.devices]
    exists = np.zeros(crush.max_devices, dtype=bool)
    exists[known] = True
    weights = np.where(exists, WEIGHT_ONE, 0).astype(np.int64)
    for index, reweight in enumerate(cluster.osd_reweights):
        if reweight.osd not in known:
            key = f"cluster.osd_reweights.{index}.osd"
            raise scenario.problem(key, f"{reweight.osd}", "an OSD of the CRUSH map")
        weights[reweight.osd] = int(reweight.weight * WEIGHT_ONE)
    affinities = np.full(crush.max_devices, WEIGHT_ONE, dtype=np.int64)
    for index, each in enumerate(cluster.primary_affinities):
        if each.osd not in known:
            key = f"cluster.primary_affinities.{index}.osd"
            raise scenario.problem(key, f"{each.osd}", "an OSD of the CRUSH map")
        # Ceph looks at the affinities of shards too. Here, the first shard leads.
        if scheme.kind == "replicated":
            affinities[each.osd] = round(each.affinity * WEIGHT_ONE)
    pool = PlacedPool(
        id=cluster.pool_id,
        name=scenario.name,
        kind="replicated" if scheme.kind == "replicated" else "erasure",
        size=scheme.width,
        pg_num=cluster.pg_num,
        pgp_num=cluster.pg_num,
        rule=crush.rule(crush_rule(scenario, scheme)).id,
    )
    return OsdMap(
        crush=crush,
        exists=exists,
        # CRUSH may leave an OSD that is out in a set (chooseleaf indep of type osd). It holds nothing.
        up=exists & (weights > 0),
        weights=weights,
        affinities=affinities,
        pools=(pool,),
        pg_upmap_items={
            (pool.id, int(items.pg, 16)): items.pairs for items in cluster.upmap_items
        },
    )


def osd_hosts(scenario: Scenario) -> IntArray:
    """Return the host of each OSD, −1 for unused OSD numbers."""
    hosts = padded_osd_hosts(scenario)
    if scenario.cluster.crush_map is None:
        return hosts
    known = np.zeros(len(hosts), dtype=bool)
    known[[device.id for device in crush_of(scenario).devices]] = True
    return np.where(known, hosts, -1)


def hosts_of_osds_in(scenario: Scenario) -> IntArray:
    """Return the host of each OSD that data is placed on, −1 for other OSD numbers.

    Such an OSD is in and weighs something. New hosts of changes weigh nothing at first.
    """
    hosts = osd_hosts(scenario)
    hosts[[osd for osd in osds_out(scenario) if osd < len(hosts)]] = -1
    if scenario.cluster.crush_map is not None or scenario.changes:
        hosts[list(crush_of(scenario).weightless_osds())] = -1
    return hosts


def osds_out(scenario: Scenario) -> list[int]:
    """List the OSDs that are out from the start, by their reweights."""
    reweights = scenario.cluster.osd_reweights
    return [each.osd for each in reweights if not int(each.weight * WEIGHT_ONE)]


def padded_osd_hosts(scenario: Scenario) -> IntArray:
    """Return the host of each OSD, host 0 for OSD numbers that the CRUSH map does not use."""
    cluster = scenario.cluster
    key = "cluster.crush_map"
    if cluster.crush_map is None:
        first_hosts = Topology.of(cluster).osd_hosts
        sizes = [len(osds) for osds in grown_map_of(scenario).new_hosts]
        new_hosts = cluster.host_count + np.arange(len(sizes), dtype=np.int64)
        return np.concatenate([first_hosts, np.repeat(new_hosts, sizes)])
    crush = crush_of(scenario)
    host_names = crush.domains("host")
    if not host_names:
        raise scenario.problem(
            key, f"no bucket of type host in {cluster.crush_map}", "one"
        )
    stray = [device.name for device in crush.devices if device.id not in host_names]
    if stray:
        raise scenario.problem(
            key, f"{stray[0]} in no host of {cluster.crush_map}", "it in one"
        )
    numbers = {
        name: number for number, name in enumerate(dict.fromkeys(host_names.values()))
    }
    osd_hosts = np.zeros(crush.max_devices, dtype=np.int64)
    osd_hosts[list(host_names)] = [numbers[name] for name in host_names.values()]
    return osd_hosts


def domain_type(scenario: Scenario, scheme: RedundancyScheme) -> str:
    """Return the type of a scheme's failure domains, from the scenario's key or its CRUSH rule."""
    if scenario.cluster.crush_map is None:
        return failure_domain(scenario, scheme)[0]
    return crush_of(scenario).failure_domain(crush_rule(scenario, scheme))


def osd_domains(scenario: Scenario, scheme: RedundancyScheme) -> dict[int, int | str]:
    """Return the failure domain of each OSD that data of a scheme is placed on."""
    hosts = hosts_of_osds_in(scenario)
    osds = np.flatnonzero(hosts >= 0).tolist()
    domain = domain_type(scenario, scheme)
    is_listed = (
        scenario.cluster.crush_map is None and not grown_map_of(scenario).new_hosts
    )
    if is_listed:
        domains = domains_of_osds(scenario, domain)
        return {osd: domains[osd] for osd in osds}
    named = crush_of(scenario).domains(CRUSH_TYPES.get(domain, domain))
    return {osd: named.get(osd, osd) for osd in osds}


class WithoutSite(NamedTuple):
    """What is left of placement groups without any one site.

    Attributes
    ----------
    shards
        Fewest shards of a group [count].
    undecodable_groups
        Groups whose data the shards that are left do not decode, of the site without which there are most
        [count].
    """

    shards: int
    undecodable_groups: int


def left_without_a_site(scenario: Scenario, scheme: RedundancyScheme) -> WithoutSite:
    """Return the fewest shards and the most undecodable groups that are left without any one site."""
    sets = up_sets(scenario, scheme)
    present = sets != NO_OSD
    host_sites = _sites_of_hosts(scenario, padded_osd_hosts(scenario))
    sites = host_sites[padded_osd_hosts(scenario)[np.where(present, sets, 0)]]
    shards = []
    undecodable = []
    for site in range(int(host_sites.max()) + 1):
        left = present & (sites != site)
        shards.append(int(left.sum(axis=1).min()))
        patterns, counts = np.unique(~left, axis=0, return_counts=True)
        lost = [frozenset(np.flatnonzero(pattern).tolist()) for pattern in patterns]
        decodes = np.array([scheme.can_decode(pattern) for pattern in lost])
        undecodable.append(int(counts[~decodes].sum()))
    return WithoutSite(min(shards), max(undecodable))


def sites_of(
    scenario: Scenario, osd_hosts: IntArray, client_hosts: IntArray
) -> Sites | None:
    """Return the sites of a cluster, or None if the scenario states no time between sites.

    Parameters
    ----------
    scenario
        The scenario.
    osd_hosts
        Host of each OSD, shape (OSDs,).
    client_hosts
        Machine of each client, shape (clients,).
    """
    rtt_ms = scenario.cluster.site_rtt_ms
    if rtt_ms is None:
        return None
    host_sites = _sites_of_hosts(scenario, osd_hosts)
    count = int(host_sites.max()) + 1
    return Sites(
        host_sites=host_sites,
        client_sites=_sites_of_clients(scenario, client_hosts, host_sites),
        one_way_ns=_one_way_ns(scenario, count),
    )


def site_count(scenario: Scenario) -> int:
    """Return the number of sites, which a scenario with times between them has."""
    return int(_sites_of_hosts(scenario, padded_osd_hosts(scenario)).max()) + 1


def _sites_of_hosts(scenario: Scenario, osd_hosts: IntArray) -> IntArray:
    """Return the site of each host, numbered in the order of their first hosts, shape (hosts,)."""
    crush = crush_of(scenario)
    known = (crush.domains(name) for name in _SITE_TYPES)
    of_osds = next((names for names in known if names), {})
    osds = [device.id for device in crush.devices]
    stray = [osd for osd in osds if osd not in of_osds]
    if stray:
        wanted = f"a map whose OSDs are all in buckets of type {_SITE_TYPES[0]}"
        got = f"osd.{stray[0]} in none, with cluster.site_rtt_ms"
        raise scenario.problem("cluster.crush_map", got, wanted)
    of_hosts = {int(osd_hosts[osd]): of_osds[osd] for osd in osds}
    names = [of_hosts[host] for host in sorted(of_hosts)]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names], dtype=np.int64)


def _sites_of_clients(
    scenario: Scenario, client_hosts: IntArray, host_sites: IntArray
) -> IntArray:
    """Return the site of each client, shape (clients,)."""
    if scenario.client.place == "osd-hosts":
        return host_sites[client_hosts]
    sites = client_hosts % (int(host_sites.max()) + 1)
    first = 0
    for load in scenario.loads:
        if load.client_site is not None:
            sites[first : first + load.clients] = load.client_site
        first += load.clients
    return sites


def _one_way_ns(scenario: Scenario, count: int) -> IntArray:
    """Return the time of a message from site to site [ns], shape (sites, sites)."""
    rtt_ms = scenario.cluster.site_rtt_ms
    assert rtt_ms is not None
    if isinstance(rtt_ms, float | int):
        rtts_ms = np.full((count, count), float(rtt_ms))
        np.fill_diagonal(rtts_ms, 0.0)
    else:
        rtts_ms = np.array(rtt_ms, dtype=np.float64)
    if rtts_ms.shape != (count, count):
        got = f"{len(rtts_ms)} rows"
        wanted = f"{count} rows of {count} times, one for each site"
        raise scenario.problem("cluster.site_rtt_ms", got, wanted)
    one_way_ns: IntArray = np.rint(rtts_ms * 1e6 / 2).astype(np.int64)
    return one_way_ns

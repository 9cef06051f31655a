"""Build regular CRUSH maps of hosts with OSDs, optionally in racks and sites."""

from collections.abc import Sequence
from typing import Literal

from stripesim.models.placement.crush.elements import (
    WEIGHT_ONE,
    Bucket,
    Device,
    Rule,
    Step,
    StepOp,
)
from stripesim.models.placement.crush.map import CrushMap
from stripesim.models.problems import ProblemsError

_OSDS_MAX = 100_000
# Most shards of a group that a rule of a built map places at each site.
_SHARDS_PER_SITE_MAX = 16
# Type of the buckets that are sites.
_SITE = "datacenter"


def build_map(*, hosts: int, osds_per_host: int, racks: int | None = None) -> CrushMap:
    """Build a map of equal OSDs of weight 1 in equal hosts under one root, optionally in equal racks.

    Parameters
    ----------
    hosts
        Number of hosts, at least 1.
    osds_per_host
        OSDs per host, at least 1. The map has at most 100,000 OSDs.
    racks
        Number of racks, a divisor of `hosts`. None puts the hosts directly under the root.

    Raises
    ------
    ProblemsError
        If a number is out of range.

    Notes
    -----
    Host h holds osds_per_host OSDs starting at h · osds_per_host. Bucket ids count down from −1: hosts,
    racks, root. Rules by name and id: ``rep`` 0 and ``ec`` 2 (failure domain host), ``rep_osd`` 1 and
    ``ec_osd`` 3, and with racks ``rep_rack`` 4 and ``ec_rack`` 5.
    """
    for name, count in (
        ("hosts", hosts),
        ("osds_per_host", osds_per_host),
        ("racks", racks),
    ):
        if count is not None and count < 1:
            raise ProblemsError(f"{name}: got {count}, wanted at least 1")
    osds = hosts * osds_per_host
    if osds > _OSDS_MAX:
        raise ProblemsError(
            f"hosts × osds_per_host: got {osds}, wanted at most {_OSDS_MAX}"
        )
    if racks is not None and hosts % racks:
        raise ProblemsError(
            f"racks: got {racks} for {hosts} hosts, wanted a divisor of the number of hosts"
        )
    if racks is None:
        names = None
    else:
        names = [f"rack{host * racks // hosts}" for host in range(hosts)]
    return map_of_hosts([(WEIGHT_ONE,) * osds_per_host] * hosts, names)


def map_of_hosts(
    weights: Sequence[Sequence[int]],
    rack_names: Sequence[str] | None = None,
    site_names: Sequence[str] | None = None,
) -> CrushMap:
    """Build a map of hosts with individual OSDs under one root.

    Parameters
    ----------
    weights
        CRUSH weights of the OSDs of each host, 16.16 fixed point. OSDs are numbered host by host.
    rack_names
        Rack of each host. None adds no racks.
    site_names
        Site of each host, a bucket of type datacenter. All hosts of a rack have the same. None adds no sites.

    Returns
    -------
    CrushMap
        A map with bucket ids and rules as in `build_map`.

    Notes
    -----
    Rules of sites are ``rep_site`` and ``ec_site`` for one shard at each site, ``rep_site_2`` and
    ``ec_site_2`` for two on different hosts at each site, and so on.
    """
    levels = [("rack", rack_names), (_SITE, site_names)]
    above_hosts = [(name, of_hosts) for name, of_hosts in levels if of_hosts]
    names = ["osd", "host", *(name for name, _ in above_hosts), "root"]
    level = []
    osds = 0
    for host, own in enumerate(weights):
        level.append(
            Bucket(
                -1 - host,
                f"host{host}",
                1,
                tuple(range(osds, osds + len(own))),
                tuple(own),
            )
        )
        osds += len(own)
    buckets = list(level)
    # Hosts below each bucket of the current level.
    hosts_below = {bucket.id: {host} for host, bucket in enumerate(level)}
    for type_id, (_, of_hosts) in enumerate(above_hosts, 2):
        level = _grouped(level, of_hosts, type_id, hosts_below, -1 - len(buckets))
        buckets += level
    root_id = -1 - len(buckets)
    buckets.append(_above(root_id, "root", len(names) - 1, level))
    domains = ["host", "osd"]
    if rack_names is not None:
        domains.append("rack")
    rules = _rules(root_id, domains, names)
    if site_names is not None:
        rules += _site_rules(root_id, names, len(set(site_names)))
    return CrushMap(
        devices=tuple(Device(i, f"osd.{i}") for i in range(osds)),
        types=tuple(enumerate(names)),
        buckets=tuple(buckets),
        rules=tuple(sorted(rules, key=lambda rule: rule.id)),
    )


def _grouped(
    level: Sequence[Bucket],
    of_hosts: Sequence[str],
    type_id: int,
    hosts_below: dict[int, set[int]],
    first_id: int,
) -> list[Bucket]:
    """Return the buckets that hold those of a level, by the name of each host's bucket."""
    groups: list[Bucket] = []
    for name in dict.fromkeys(of_hosts):
        below = [
            bucket for bucket in level if of_hosts[min(hosts_below[bucket.id])] == name
        ]
        group = _above(first_id - len(groups), name, type_id, below)
        groups.append(group)
        hosts_below[group.id] = set().union(*(hosts_below[one.id] for one in below))
    return groups


def rule_name(
    kind: Literal["replicated", "erasure"],
    failure_domain: str,
    shards_per_domain: int = 1,
) -> str:
    """Return the name of a rule of a built map, such as ``ec_osd`` or ``rep_site_2``."""
    stem = "rep" if kind == "replicated" else "ec"
    if failure_domain == "host":
        return stem
    if shards_per_domain > 1:
        return f"{stem}_{failure_domain}_{shards_per_domain}"
    return f"{stem}_{failure_domain}"


def _above(bucket_id: int, name: str, type_id: int, below: Sequence[Bucket]) -> Bucket:
    """Create a bucket that holds other buckets, weighted by the sum of their items."""
    weights = tuple(sum(bucket.weights) for bucket in below)
    return Bucket(
        bucket_id, name, type_id, tuple(bucket.id for bucket in below), weights
    )


def _rules(root_id: int, domains: list[str], names: list[str]) -> list[Rule]:
    rules = []
    take = Step(StepOp.TAKE, root_id)
    emit = Step(StepOp.EMIT)
    # Ceph writes these numbers of tries into the rules of erasure-coded pools.
    tries = (Step(StepOp.SET_CHOOSELEAF_TRIES, 5), Step(StepOp.SET_CHOOSE_TRIES, 100))
    for domain, rep_id, ec_id in zip(domains, (0, 1, 4), (2, 3, 5), strict=False):
        type_id = names.index(domain)
        leaf = type_id > 0
        firstn = Step(
            StepOp.CHOOSELEAF_FIRSTN if leaf else StepOp.CHOOSE_FIRSTN, 0, type_id
        )
        indep = Step(
            StepOp.CHOOSELEAF_INDEP if leaf else StepOp.CHOOSE_INDEP, 0, type_id
        )
        name = "" if domain == "host" else f"_{domain}"
        rules.append(Rule(rep_id, f"rep{name}", "replicated", (take, firstn, emit)))
        rules.append(Rule(ec_id, f"ec{name}", "erasure", (*tries, take, indep, emit)))
    return rules


def _site_rules(root_id: int, names: list[str], sites: int) -> list[Rule]:
    """Return the rules that place one or more shards of a group at each site, on different hosts."""
    take = Step(StepOp.TAKE, root_id)
    emit = Step(StepOp.EMIT)
    tries = (Step(StepOp.SET_CHOOSELEAF_TRIES, 5), Step(StepOp.SET_CHOOSE_TRIES, 100))
    site = names.index(_SITE)
    host = names.index("host")
    rules = []
    for each in range(1, _SHARDS_PER_SITE_MAX + 1):
        firstn = [Step(StepOp.CHOOSELEAF_FIRSTN, 0, site)]
        indep = [Step(StepOp.CHOOSELEAF_INDEP, 0, site)]
        if each > 1:
            firstn = [
                Step(StepOp.CHOOSE_FIRSTN, sites, site),
                Step(StepOp.CHOOSELEAF_FIRSTN, each, host),
            ]
            indep = [
                Step(StepOp.CHOOSE_INDEP, sites, site),
                Step(StepOp.CHOOSELEAF_INDEP, each, host),
            ]
        number = 4 + 2 * each
        replicated = rule_name("replicated", "site", each)
        erasure = rule_name("erasure", "site", each)
        rules += [
            Rule(number, replicated, "replicated", (take, *firstn, emit)),
            Rule(number + 1, erasure, "erasure", (*tries, take, *indep, emit)),
        ]
    return rules

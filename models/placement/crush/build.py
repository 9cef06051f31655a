"""Build regular CRUSH maps of hosts with OSDs, optionally in racks."""

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
    weights: Sequence[Sequence[int]], rack_names: Sequence[str] | None = None
) -> CrushMap:
    """Build a map of hosts with individual OSDs under one root.

    Parameters
    ----------
    weights
        CRUSH weights of the OSDs of each host, 16.16 fixed point. OSDs are numbered host by host.
    rack_names
        Rack of each host. None puts the hosts directly under the root.

    Returns
    -------
    CrushMap
        A map with bucket ids and rules as in `build_map`.
    """
    names = ["osd", "host", "root"]
    if rack_names is not None:
        names.insert(2, "rack")
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
    for rack in dict.fromkeys(rack_names or ()):
        hosts = [
            host
            for host, name in zip(buckets, rack_names or (), strict=False)
            if name == rack
        ]
        buckets.append(_above(-1 - len(buckets), rack, 2, hosts))
    level = buckets[len(level) :] or level
    root_id = -1 - len(buckets)
    buckets.append(_above(root_id, "root", len(names) - 1, level))
    if rack_names is None:
        domains = ["host", "osd"]
    else:
        domains = ["host", "osd", "rack"]
    return CrushMap(
        devices=tuple(Device(i, f"osd.{i}") for i in range(osds)),
        types=tuple(enumerate(names)),
        buckets=tuple(buckets),
        rules=tuple(sorted(_rules(root_id, domains, names), key=lambda rule: rule.id)),
    )


def rule_name(
    kind: Literal["replicated", "erasure"],
    failure_domain: Literal["osd", "host", "rack"],
) -> str:
    """Return the name of a rule of a built map, such as ``ec_osd``."""
    stem = "rep" if kind == "replicated" else "ec"
    if failure_domain == "host":
        return stem
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

"""Regular CRUSH maps built in code: equal hosts, each with equal OSDs, optionally in racks."""

from __future__ import annotations

from typing import Literal

from stripesim.models.placement.crush.elements import (
    WEIGHT_ONE,
    Bucket,
    Device,
    PlacementError,
    Rule,
    Step,
    StepOp,
)
from stripesim.models.placement.crush.map import CrushMap

_OSDS_MAX = 100_000


def build_map(*, hosts: int, osds_per_host: int, racks: int | None = None) -> CrushMap:
    """Build a map of equal OSDs (weight 1) in equal hosts, under one root, perhaps in equal racks.

    Host h holds the OSDs from h·osds_per_host on. Bucket ids run from −1 downwards: hosts, racks, root. Rules
    by name and id: ``rep`` 0 and ``ec`` 2 (failure domain host), ``rep_osd`` 1 and ``ec_osd`` 3, and with
    racks ``rep_rack`` 4, ``ec_rack`` 5. `PlacementError` for counts below 1, more than 100,000 OSDs, or hosts
    that do not fill the racks evenly.
    """
    for name, count in (("hosts", hosts), ("osds_per_host", osds_per_host), ("racks", racks)):
        if count is not None and count < 1:
            raise PlacementError(f"{name}: got {count}, wanted at least 1")
    osds = hosts * osds_per_host
    if osds > _OSDS_MAX:
        raise PlacementError(f"hosts × osds_per_host: got {osds}, wanted at most {_OSDS_MAX}")
    if racks is not None and hosts % racks:
        raise PlacementError(f"racks: got {racks} for {hosts} hosts, wanted a divisor of the number of hosts")

    names = ("osd", "host", "root") if racks is None else ("osd", "host", "rack", "root")
    level = [
        _bucket(-1 - h, f"host{h}", 1, range(h * osds_per_host, (h + 1) * osds_per_host), WEIGHT_ONE)
        for h in range(hosts)
    ]
    buckets = list(level)
    if racks is not None:
        per_rack = hosts // racks
        weight = osds_per_host * WEIGHT_ONE
        level = [
            _bucket(-1 - hosts - r, f"rack{r}", 2, _ids(level[r * per_rack : (r + 1) * per_rack]), weight)
            for r in range(racks)
        ]
        buckets += level
    root_id = -1 - len(buckets)
    buckets.append(_bucket(root_id, "root", len(names) - 1, _ids(level), osds // len(level) * WEIGHT_ONE))
    domains = ["host", "osd"] if racks is None else ["host", "osd", "rack"]
    return CrushMap(
        devices=tuple(Device(i, f"osd.{i}") for i in range(osds)),
        types=tuple(enumerate(names)),
        buckets=tuple(buckets),
        rules=tuple(sorted(_rules(root_id, domains, names), key=lambda rule: rule.id)),
    )


def rule_name(kind: Literal["replicated", "erasure"], failure_domain: Literal["osd", "host", "rack"]) -> str:
    """Name of a built map's rule, such as ``ec_osd``."""
    stem = "rep" if kind == "replicated" else "ec"
    return stem if failure_domain == "host" else f"{stem}_{failure_domain}"


def _ids(buckets: list[Bucket]) -> list[int]:
    return [bucket.id for bucket in buckets]


def _bucket(bucket_id: int, name: str, type_id: int, items: range | list[int], weight: int) -> Bucket:
    return Bucket(bucket_id, name, type_id, tuple(items), (weight,) * len(items))


def _rules(root_id: int, domains: list[str], names: tuple[str, ...]) -> list[Rule]:
    rules = []
    take, emit = Step(StepOp.TAKE, root_id), Step(StepOp.EMIT)
    # The tries are those Ceph writes into the rule of an erasure-coded pool.
    tries = (Step(StepOp.SET_CHOOSELEAF_TRIES, 5), Step(StepOp.SET_CHOOSE_TRIES, 100))
    for domain, rep_id, ec_id in zip(domains, (0, 1, 4), (2, 3, 5), strict=False):
        type_id = names.index(domain)
        leaf = type_id > 0
        firstn = Step(StepOp.CHOOSELEAF_FIRSTN if leaf else StepOp.CHOOSE_FIRSTN, 0, type_id)
        indep = Step(StepOp.CHOOSELEAF_INDEP if leaf else StepOp.CHOOSE_INDEP, 0, type_id)
        name = "" if domain == "host" else f"_{domain}"
        rules.append(Rule(rep_id, f"rep{name}", "replicated", (take, firstn, emit)))
        rules.append(Rule(ec_id, f"ec{name}", "erasure", (*tries, take, indep, emit)))
    return rules

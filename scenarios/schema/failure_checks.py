"""Check the rules of `[faults]` and `[durability]` that span several keys."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from stripesim.scenarios.schema.geometry import (
    NumberedScheme,
    added_osds,
    domain_count,
    domain_loss,
    failure_domain,
)
from stripesim.scenarios.schema.keys import ClusterSpec, ScenarioKeys
from stripesim.scenarios.schema.problems import KeyProblem, problem, repeats
from stripesim.scenarios.schema.tables import (
    CHANGE_KEYS,
    AgeingSpec,
    BurstSpec,
    ChangeSpec,
    DrawnSpec,
    DurabilitySpec,
    EventSpec,
    FaultsSpec,
)
from stripesim.scenarios.schema.units import counted_text

_NUMBERS: Final = {
    "exponential": {"scale_s"},
    "weibull": {"scale_s", "shape"},
    "lognormal": {"median_s", "sigma"},
    "piecewise": {"ages_s", "afrs"},
    "trace": {"trace"},
}
_COUNTS: Final = ("cluster.hosts", "cluster.osds_per_host", "cluster.racks")
_MAP: Final = "cluster.crush_map"
_ONE: Final = "only one of them"


def stands_alone(scenario: ScenarioKeys) -> bool:
    """Return True if a scenario is only for `stripesim durability` and so needs no workload."""
    named = {"workload", "workloads"} & scenario.model_fields_set
    return scenario.durability is not None and not named


def fault_rules(
    scenario: ScenarioKeys, schemes: Sequence[NumberedScheme]
) -> Iterator[KeyProblem]:
    """Check that failing OSDs exist, return after they fail, and fail only once at a time."""
    faults = scenario.faults
    cluster = scenario.cluster
    if faults is None:
        if scenario.workload.timeout_s is not None and not scenario.changes:
            wanted = "this key only with [faults]"
            yield problem(
                "workload.timeout_s", scenario.workload.timeout_s, wanted, "faults"
            )
        return
    yield from _alone(scenario, faults)
    yield from _after_the_end(scenario, faults)
    targets = list(_targets(scenario, faults))
    yield from targets
    if faults.drawn is not None:
        yield from _drawn(scenario, faults.drawn)
    racks_divide = cluster.racks is None or cluster.rack_names is not None
    if cluster.crush_map is None and racks_divide and not targets:
        overlaps = list(_overlaps(cluster, faults))
        yield from overlaps or _room(scenario, faults, schemes)


def change_rules(scenario: ScenarioKeys) -> Iterator[KeyProblem]:
    """Apply every rule about planned changes: each has the keys of its kind, and names what exists."""
    changes = scenario.changes
    if not changes:
        return
    for key in ("repair", "degraded"):
        if getattr(scenario, key) is not None:
            yield problem("changes", f"both [[changes]] and [{key}]", _ONE, key)
    if "none" in scenario.schemes:
        wanted = "schemes of a cluster: a bare device has no peers"
        bare_index = scenario.schemes.index("none")
        yield problem(f"schemes.{bare_index}", "none with [[changes]]", wanted)
    yield from _order_of_changes(changes)
    added = added_osds(scenario)
    osds_count = scenario.cluster.osd_count
    hosts_count = scenario.cluster.host_count
    for index, change in enumerate(changes):
        where = f"changes.{index}"
        misfits = list(_keys_of_change(where, change))
        if change.crush_rule is not None and scenario.cluster.crush_map is None:
            wanted = "cluster.crush_map, too: rules belong to a map"
            rule = problem(f"{where}.crush_rule", change.crush_rule, wanted, _MAP)
            misfits.append(rule)
        yield from misfits
        if misfits:
            return
        if isinstance(change.hosts, int):
            hosts_count += change.hosts
            osds_count += added[index]
        elif scenario.cluster.crush_map is None:
            yield from _numbers(f"{where}.osds", change.osds, osds_count, "an OSD")
            yield from _numbers(f"{where}.hosts", change.hosts, hosts_count, "a host")


def _order_of_changes(changes: Sequence[ChangeSpec]) -> Iterator[KeyProblem]:
    """Check that the times of changes rise, since changes take effect in the order of the file."""
    latest_s = 0.0
    for index, change in enumerate(changes):
        if change.at_s is None:
            continue
        if change.at_s < latest_s:
            wanted = f"{latest_s:g} or more, the time of a change before it"
            yield problem(f"changes.{index}.at_s", f"{change.at_s:g}", wanted)
        latest_s = max(latest_s, change.at_s)


def _keys_of_change(where: str, change: ChangeSpec) -> Iterator[KeyProblem]:
    """Refuse keys that a kind of change does not have, and lists where it wants a number."""
    needed, optional = CHANGE_KEYS[change.kind]
    stated = {
        key
        for key in change.model_fields_set - {"kind", "at_s"}
        if getattr(change, key) is not None
    }
    for key in sorted(needed - stated):
        yield problem(
            f"{where}.{key}", "nothing", f'a value, since kind is "{change.kind}"'
        )
    for key in sorted(stated - needed - optional):
        wanted = f'no such key, since kind is "{change.kind}"'
        yield problem(f"{where}.{key}", getattr(change, key), wanted)
    yield from repeats(f"{where}.osds", change.osds or ())
    if isinstance(change.hosts, tuple):
        yield from repeats(f"{where}.hosts", change.hosts)
    if change.hosts is None or "hosts" not in needed | optional:
        return
    is_count = isinstance(change.hosts, int)
    if is_count != (change.kind == "add"):
        wanted = "a number of hosts" if change.kind == "add" else "a list of hosts"
        yield problem(f"{where}.hosts", change.hosts, wanted)


def _numbers(
    where: str, numbers: Sequence[int | str] | None, count: int, name: str
) -> Iterator[KeyProblem]:
    """Refuse numbers of things that do not exist. The code that reads the CRUSH map checks names."""
    for place, number in enumerate(numbers or ()):
        if isinstance(number, int) and number >= count:
            wanted = f"{name} from 0 to {count - 1}"
            yield problem(f"{where}.{place}", number, wanted, *_COUNTS)


def _alone(scenario: ScenarioKeys, faults: FaultsSpec) -> Iterator[KeyProblem]:
    for key in ("repair", "degraded"):
        if getattr(scenario, key) is not None:
            yield problem("faults", f"both [faults] and [{key}]", _ONE, key)
    if "none" in scenario.schemes:
        wanted = "replicated or erasure-coded schemes: a bare device has no peers"
        yield problem(
            f"schemes.{scenario.schemes.index('none')}", "none with [faults]", wanted
        )
    fails = faults.events or faults.corruptions or faults.drawn or faults.replay
    # Scrubs read data only in a run that has a duration.
    scrubs = faults.scrub_interval_s is not None and scenario.duration_s is not None
    if not (fails or scrubs or scenario.changes):
        wanted = "events, corruptions, drawn or replay, or scrub_interval_s with workload.duration_s"
        yield problem("faults", "no failures", wanted)
    stops = faults.numbered_events(slow=False)
    if sum(map(bool, (stops, faults.drawn, faults.replay))) > 1:
        yield problem("faults", "several of events, drawn and replay", _ONE)


def _after_the_end(scenario: ScenarioKeys, faults: FaultsSpec) -> Iterator[KeyProblem]:
    """Reject faults that the run ends before."""
    duration_s = scenario.duration_s
    if duration_s is None:
        return
    times = [(f"faults.events.{i}", one.at_s) for i, one in enumerate(faults.events)]
    times += [
        (f"faults.corruptions.{i}", one.at_s)
        for i, one in enumerate(faults.corruptions)
    ]
    for where, at_s in times:
        if at_s >= duration_s:
            wanted = f"a time before the end of the run, workload.duration_s = {duration_s:g} s"
            yield problem(f"{where}.at_s", f"{at_s:g} s", wanted, "workload.duration_s")


def _targets(scenario: ScenarioKeys, faults: FaultsSpec) -> Iterator[KeyProblem]:
    cluster = scenario.cluster
    for index, event in enumerate(faults.events):
        where = f"faults.events.{index}"
        if not (event.osds or event.hosts or event.racks or event.sites):
            yield problem(where, "no target", "osds, hosts, racks or sites that fail")
        yield from _keys_of_event(where, event)
        if event.return_s is not None and event.return_s <= event.at_s:
            wanted = f"a time after at_s ({event.at_s:g})"
            got = f"{event.return_s:g}"
            yield problem(f"{where}.return_s", got, wanted, f"{where}.at_s")
        if cluster.crush_map is None:
            yield from _numbers_of_event(scenario, where, event)
        elif event.racks or event.sites:
            key = "racks" if event.racks else "sites"
            got = f"{key} with cluster.crush_map"
            yield problem(f"{where}.{key}", got, "osds or hosts")
    for index, corruption in enumerate(faults.corruptions):
        if cluster.crush_map is None and corruption.osd >= cluster.osd_count:
            wanted = f"an OSD from 0 to {cluster.osd_count - 1}"
            key = f"faults.corruptions.{index}.osd"
            yield problem(key, corruption.osd, wanted, *_COUNTS)


def _numbers_of_event(
    scenario: ScenarioKeys, where: str, event: EventSpec
) -> Iterator[KeyProblem]:
    """Check that the targets of an event are numbers of OSDs, hosts and racks that exist, each named once."""
    counts = {
        "osds": (scenario.cluster.osd_count, "an OSD"),
        "hosts": (scenario.cluster.host_count, "a host"),
        "racks": (domain_count(scenario, "rack"), "a rack"),
        "sites": (domain_count(scenario, "site"), "a site"),
    }
    for key, (count, name) in counts.items():
        wanted = f"{name} from 0 to {count - 1}" if count else f"cluster.{key}, too"
        for place, number in enumerate(getattr(event, key)):
            if number >= count:
                yield problem(f"{where}.{key}.{place}", number, wanted, *_COUNTS)
        yield from repeats(f"{where}.{key}", getattr(event, key))


def _keys_of_event(where: str, event: EventSpec) -> Iterator[KeyProblem]:
    """Check that a slow drive has a factor and keeps its data, and that nothing else has a factor."""
    kind = f"{where}.kind"
    if event.kind != "slow" and event.factor is not None:
        wanted = f'no such key, since kind is "{event.kind}"'
        yield problem(f"{where}.factor", f"{event.factor:g}", wanted, kind)
    if event.kind == "slow" and event.factor is None:
        wanted = 'the factor on service times, since kind is "slow"'
        yield problem(f"{where}.factor", "nothing", wanted, kind)
    if event.kind == "slow" and event.data == "lost":
        wanted = 'no such key, since kind is "slow" and the OSD stays up'
        yield problem(f"{where}.data", '"lost"', wanted, kind)


def _drawn(scenario: ScenarioKeys, drawn: DrawnSpec) -> Iterator[KeyProblem]:
    where = "faults.drawn"
    if (drawn.trace is None) == (drawn.lifetime is None):
        got = "both lifetime and trace"
        if drawn.trace is None:
            got = "neither lifetime nor trace"
        yield problem(where, got, f"one of them: {where}.lifetime or {where}.trace")
    if drawn.trace is not None and drawn.downtime is not None:
        yield problem(f"{where}.downtime", "both downtime and trace", "one of them")
    for key, times in (("lifetime", drawn.lifetime), ("downtime", drawn.downtime)):
        if times is None:
            continue
        wanted = _NUMBERS[times.distribution]
        numbers = times.model_fields_set - {"distribution"}
        if numbers != wanted:
            got = f"{times.distribution} with {', '.join(sorted(numbers)) or 'no numbers'}"
            yield problem(f"{where}.{key}", got, ", ".join(sorted(wanted)))
    if scenario.duration_s is None:
        length = "the length of the run, to which failures are drawn"
        yield problem("workload.duration_s", "nothing", length, where)


def _overlaps(cluster: ClusterSpec, faults: FaultsSpec) -> Iterator[KeyProblem]:
    """Report OSDs that fail while they are down already, and drives that are slow already."""
    from stripesim.scenarios.schema.topology import Topology
    from stripesim.sim.ceph.failures.plan import (
        problems_of_failures,
        problems_of_slow_drives,
    )

    topology = Topology.of(cluster)
    osds_count = len(topology.osd_hosts)
    failing = faults.numbered_events(slow=False)
    slow = faults.numbered_events(slow=True)
    if any(event.factor is None for _, event in slow):
        return
    failures = [topology.failure(event) for _, event in failing]
    slow_drives = [topology.slow_drives(event) for _, event in slow]
    for events, wrong in (
        (failing, problems_of_failures(failures, osds_count, cluster.host_count)),
        (slow, problems_of_slow_drives(slow_drives, osds_count)),
    ):
        for one in wrong:
            number, _ = events[one.event]
            where = f"faults.events.{number}.at_s"
            yield problem(where, one.got, one.wanted, *_COUNTS)
            return


def _room(
    scenario: ScenarioKeys, faults: FaultsSpec, schemes: Sequence[NumberedScheme]
) -> Iterator[KeyProblem]:
    """Reject permanent failures that leave too few failure domains for a scheme."""
    from stripesim.scenarios.schema.topology import Topology

    gone = [
        index
        for index, event in faults.numbered_events(slow=False)
        if event.return_s is None
    ]
    if not gone:
        return
    topology = Topology.of(scenario.cluster)
    away = {
        osd for index in gone for osd in topology.failure(faults.events[index]).osds
    }
    losses = {
        domain: domain_loss(scenario, domain, away)
        for domain in ("osd", "host", "rack", "site")
    }
    for item in schemes:
        domain, key = failure_domain(scenario, item.scheme)
        loss = losses[domain]
        if domain == "site":
            # Placement groups serve without the lost site, and are rebuilt when it returns.
            continue
        width = item.scheme.width
        if loss is not None and loss.left < width <= domain_count(scenario, domain):
            got = f"{counted_text(loss.left, domain)} left with an OSD up, permanently"
            wanted = f"at least {width}, for {item.text} to rebuild"
            wanted += f" (set return_s or add {domain}s)"
            yield problem(f"faults.events.{gone[-1]}", got, wanted, *_COUNTS, key)


def durability_rules(
    scenario: ScenarioKeys, schemes: Sequence[NumberedScheme]
) -> Iterator[KeyProblem]:
    """Check all rules of `[durability]`."""
    spec = scenario.durability
    if spec is None:
        return
    if (spec.afr is None) == (spec.lifetime is None):
        got = "both afr and lifetime"
        if spec.afr is None:
            got = "neither afr nor lifetime"
        wanted = "one of durability.afr and durability.lifetime"
        yield problem("durability.afr", got, wanted, "durability.lifetime")
    if spec.lifetime is not None:
        yield from _lifetime(spec.lifetime)
    yield from _placed_drives(spec)
    yield from _min_size(scenario, spec, schemes)
    yield from _rebuild_rate(spec)
    if spec.scrub_interval_s is not None and not spec.sector_error_rate:
        key = "durability.scrub_interval_s"
        yield problem(key, spec.scrub_interval_s, "durability.sector_error_rate, too")
    if spec.placement != "crush":
        yield from _widths(spec, schemes)
    if spec.placement == "clustered":
        yield from _pace_of_pools(spec, schemes)
    yield from _bursts(scenario, spec)


def _min_size(
    scenario: ScenarioKeys, spec: DurabilitySpec, schemes: Sequence[NumberedScheme]
) -> Iterator[KeyProblem]:
    """Check that a pool of each scheme may have the stated `min_size`, as Ceph does."""
    if spec.min_size is None:
        return
    key = "durability.min_size"
    if scenario.cluster.stretch:
        stretch = "cluster.stretch"
        wanted = f"no such key, because {stretch} is true and has rules of its own"
        yield problem(key, spec.min_size, wanted, stretch)
    for item in schemes:
        k, width = item.scheme.k, item.scheme.width
        if not k <= spec.min_size <= width:
            wanted = f"{k} to {width}, for the shards of {item.text}"
            yield problem(key, spec.min_size, wanted, f"schemes.{item.number}")


_PLACEMENT: Final = "durability.placement"


def _because(spec: DurabilitySpec) -> str:
    return f'because {_PLACEMENT} is "{spec.placement}"'


def _placed_drives(spec: DurabilitySpec) -> Iterator[KeyProblem]:
    """Check that drives are stated, unless `[cluster]` defines them."""
    if spec.placement != "crush":
        for key in ("drives", "drive_bytes"):
            if getattr(spec, key) is None:
                wanted = f"a number, {_because(spec)}"
                yield problem(f"durability.{key}", "nothing", wanted, _PLACEMENT)
    elif spec.drives is not None:
        wanted = f"no such key, {_because(spec)} and [cluster] defines the drives"
        yield problem("durability.drives", spec.drives, wanted, _PLACEMENT)
    yield from _keys_of_placements(spec)
    yield from _spares(spec)


def _keys_of_placements(spec: DurabilitySpec) -> Iterator[KeyProblem]:
    """Refuse keys that mean nothing under the placement.

    `repair` is not among them: a scenario that states it may compare placements.
    """
    because = _because(spec)
    refused: list[tuple[str, Any, str]] = []
    if spec.placement != "crush":
        wanted = f"no such key, {because}, without placement groups"
        refused.append(("groups_at_once", spec.groups_at_once, wanted))
    if spec.placement == "declustered":
        wanted = f"no such key, {because}: all survivors share each rebuild"
        rebuilt = None if spec.repair_time is None else f'"{spec.repair_time}"'
        refused += [
            ("repair_time", rebuilt, wanted),
            ("spare_drives", spec.spare_drives, wanted),
        ]
        if not spec.prioritised:
            wanted = f"true, {because}: stripes nearest to loss come first"
            refused.append(("prioritised", "false", wanted))
    else:
        refused.append(("stripes", spec.stripes, f"no such key, {because}"))
        if spec.rebuilt_is_safe:
            refused.append(("rebuilt_is_safe", "true", f"false, {because}"))
    for key, stated, wanted in refused:
        if stated is not None:
            yield problem(f"durability.{key}", stated, wanted, _PLACEMENT)


def _spares(spec: DurabilitySpec) -> Iterator[KeyProblem]:
    """Check that there are spares to replace."""
    if not spec.replacement_s or spec.spare_drives:
        return
    key = "durability.replacement_s"
    spares = "durability.spare_drives"
    if spec.spare_drives is None:
        yield problem(key, spec.replacement_s, f"{spares}, too", spares)
        return
    wanted = f"no such key, because {spares} is 0 and none is ever used"
    yield problem(key, spec.replacement_s, wanted, spares)


def _rebuild_rate(spec: DurabilitySpec) -> Iterator[KeyProblem]:
    """Check that there is one rate of rebuilds: stated or simulated."""
    crush = spec.placement == "crush"
    repair = "durability.repair"
    pace = "durability.repair_bytes_per_s"
    if spec.repair == "simulated":
        if not crush:
            wanted = f'"serial", "parallel" or "shared", {_because(spec)}'
            yield problem(repair, '"simulated"', wanted, _PLACEMENT)
        if spec.repair_bytes_per_s is not None:
            wanted = f'none, because {repair} is "simulated"'
            yield problem(pace, "a rate", wanted, repair)
    elif spec.repair_bytes_per_s is None and not crush:
        # The recovery model has a rate for clusters only.
        wanted = f"a rebuild rate in bytes/s, {_because(spec)}"
        yield problem(pace, "nothing", wanted, _PLACEMENT)


def _widths(
    spec: DurabilitySpec, schemes: Sequence[NumberedScheme]
) -> Iterator[KeyProblem]:
    """Check that a pool of drives can hold the shards of each scheme."""
    for item in schemes:
        key = f"schemes.{item.number}"
        width = item.scheme.width
        if spec.drives is not None and width > spec.drives:
            got = f"{item.text} ({width} shards) on {spec.drives} drives"
            wanted = "at least one drive for each shard"
            yield problem(key, got, wanted, "durability.drives")
        if width == 1 and spec.placement == "declustered":
            yield problem(key, item.text, "a scheme with redundancy", _PLACEMENT)


def _pace_of_pools(
    spec: DurabilitySpec, schemes: Sequence[NumberedScheme]
) -> Iterator[KeyProblem]:
    """Refuse a shared pace in each of several pools with bursts or spares.

    Such pools are simulated together, where all of them would share one pace.
    """
    if spec.repair != "shared":
        return
    if not spec.bursts and not spec.spare_drives:
        return
    key = "bursts" if spec.bursts else "spare_drives"
    for item in schemes:
        pools = (spec.drives or 0) // item.scheme.width
        if pools > 1:
            got = f'"shared" with {key} and {pools:,} pools of {item.text}'
            wanted = (
                f'"parallel" or "serial": with {key} pools are simulated together, and would all share one '
                "pace"
            )
            yield problem("durability.repair", got, wanted, f"durability.{key}")
            return


def _lifetime(spec: AgeingSpec) -> Iterator[KeyProblem]:
    needed = _NUMBERS[spec.distribution]
    of = f'a lifetime "{spec.distribution}"'
    optional = {"distribution", "age_s"}
    if spec.distribution == "trace":
        optional |= {"trace_format", "pieces"}
    keys_set = {
        key for key in spec.model_fields_set if getattr(spec, key) not in (None, ())
    }
    for key in sorted(needed - keys_set):
        yield problem(f"durability.lifetime.{key}", "nothing", f"a value for {of}")
    for key in sorted(keys_set - needed - optional):
        yield problem(
            f"durability.lifetime.{key}",
            getattr(spec, key),
            f"no such key for {of}",
        )
    if spec.distribution == "piecewise" and needed <= keys_set:
        rising = all(a < b for a, b in zip(spec.ages_s, spec.ages_s[1:], strict=False))
        if len(spec.ages_s) != len(spec.afrs) or spec.ages_s[0] != 0 or not rising:
            got = f"{list(spec.ages_s)} with {len(spec.afrs)} rates"
            yield problem(
                "durability.lifetime.ages_s",
                got,
                "rising ages from 0, one for each of afrs",
            )
        if not any(spec.afrs):
            yield problem(
                "durability.lifetime.afrs", list(spec.afrs), "at least one rate above 0"
            )


def too_many_units(burst: BurstSpec, count: int) -> tuple[str, str]:
    """Return what a burst of more units than there are got, and what is wanted."""
    return f"{burst.units} {burst.unit}s", f"at most {count}, which is all of them"


def _bursts(scenario: ScenarioKeys, spec: DurabilitySpec) -> Iterator[KeyProblem]:
    cluster = scenario.cluster
    crush = spec.placement == "crush"
    named: dict[str, list[str] | None] = {
        "rack": cluster.rack_names,
        "site": cluster.site_names,
    }
    seen: set[str] = set()
    for index, burst in enumerate(spec.bursts):
        key = f"durability.bursts.{index}"
        unit = burst.unit
        if burst.name in seen:
            wanted = "a name that no other burst has, since results name them"
            yield problem(f"{key}.name", f'"{burst.name}"', wanted)
        seen.add(burst.name)
        if not crush and unit != "drive":
            wanted = f'"drive", because a {spec.placement} pool has no other units'
            yield problem(f"{key}.unit", f'"{unit}"', wanted)
        elif crush and cluster.crush_map is not None:
            # The code that reads the map checks this, because the map defines the number.
            continue
        elif unit == "site" and scenario.plan is not None and scenario.plan.sites:
            # Each candidate of the plan is checked by itself.
            continue
        elif unit in named and named[unit] is None:
            wanted = f"cluster.{unit}s, too: the number of {unit}s is missing"
            yield problem(f"{key}.unit", f'"{unit}"', wanted)
        else:
            count = spec.drives
            if crush:
                count = domain_count(scenario, {"drive": "osd"}.get(unit, unit))
            if count is not None and burst.units > count:
                yield problem(f"{key}.units", *too_many_units(burst, count))

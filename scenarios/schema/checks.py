"""Check rules that span several keys of a scenario."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from stripesim.scenarios.schema.budget import budget_rules
from stripesim.scenarios.schema.failure_checks import (
    change_rules,
    durability_rules,
    fault_rules,
    stands_alone,
)
from stripesim.scenarios.schema.geometry import (
    DomainLoss,
    NumberedScheme,
    domain_count,
    domain_loss,
    failure_domain,
    loads_with_keys,
    shards_per_domain,
    unequal_levels,
)
from stripesim.scenarios.schema.keys import (
    FILL_RATIOS,
    INDEX_SHARDS_MAX,
    LOCAL_READS,
    S3_KEYS,
    ClusterSpec,
    ScenarioKeys,
    WorkloadSpec,
)
from stripesim.scenarios.schema.problems import (
    KeyProblem,
    problem,
    repeated_positions,
    repeats,
)
from stripesim.scenarios.schema.tables import (
    GATEWAY_KEYS,
    VARIED,
    VARIED_DOMAINS,
    PlanSpec,
    PricesSpec,
)
from stripesim.scenarios.schema.toml import shorten
from stripesim.scenarios.schema.types import S3_OPS
from stripesim.scenarios.schema.units import counted_text, format_size

#: Keys that decide how many failure domains there are, and whether they count.
_GEOMETRY: Final = (
    "cluster.hosts",
    "cluster.osds_per_host",
    "cluster.racks",
    "cluster.sites",
    "cluster.crush_map",
    "durability",
    "plan",
)
_DOMAINS: Final = ("osd", "host", "rack", "site")
_PINNED: Final = "cluster.cores_per_osd"
_ONE: Final = "only one of them"
#: Characters of a path that messages show.
_PATH_CHARACTERS_MAX: Final = 200


def cross_check(
    scenario: ScenarioKeys, schemes: Sequence[NumberedScheme]
) -> list[KeyProblem]:
    """Apply every rule that spans several keys."""
    too_much = list(budget_rules(scenario, schemes))
    if too_much:
        # The other rules could exhaust the machine on a scenario of this size.
        return too_much
    rules = (
        _loads,
        _s3,
        _several,
        _trace,
        _files,
        _fill_ratios,
        _osd_cores,
        _sizes,
        _repeats,
        _plan,
        _groups,
        _map,
        _sites,
        change_rules,
    )
    return [
        *(found for rule in rules for found in rule(scenario)),
        *(
            found
            for rule in (
                _layout,
                _image_features,
                _failures,
                fault_rules,
                durability_rules,
            )
            for found in rule(scenario, schemes)
        ),
    ]


#: A workload that no key bounds, and the keys that do.
NO_BOUND: Final = "neither requests nor duration_s"
WANTED_BOUND: Final = (
    "workload.requests (per cell) or workload.duration_s (simulated seconds)"
)


def _loads(scenario: ScenarioKeys) -> Iterator[KeyProblem]:
    """Check that each workload has one bound, and that no two keys contradict each other."""
    for load_key, load in loads_with_keys(scenario):
        yield from _bound_of_load(scenario, load_key, load)
        yield from _contradictions(scenario, load_key, load)
        yield from _vms(load_key, load)
        yield from _arrivals(load_key, load)


def _bound_of_load(
    scenario: ScenarioKeys, load_key: str, load: WorkloadSpec
) -> Iterator[KeyProblem]:
    requests = f"{load_key}.requests"
    duration = f"{load_key}.duration_s"
    bounds = (load.requests is not None) + (load.duration_s is not None)
    if bounds == 2:
        yield problem(duration, "both requests and duration_s", _ONE, requests)
    # A trace ends by itself. All other kinds run until stopped.
    # A rehearsal of planned changes needs no bound: its clients work until the last change is done.
    needs_bound = not (stands_alone(scenario) or scenario.changes)
    if bounds == 0 and load.kind != "trace" and needs_bound:
        # Invalid changes or an invalid [durability] are those of a scenario that needs no bound.
        involved = (duration, f"{load_key}.kind", "changes", "durability")
        yield problem(requests, NO_BOUND, WANTED_BOUND, *involved)


def _contradictions(
    scenario: ScenarioKeys, load_key: str, load: WorkloadSpec
) -> Iterator[KeyProblem]:
    if load.read_fraction is not None and "ops" in load.model_fields_set:
        wanted = f"{_ONE}: ops for separate cells, read_fraction for one mixed cell"
        got = "both ops and read_fraction"
        yield problem(f"{load_key}.read_fraction", got, wanted, f"{load_key}.ops")
    for table in ("faults", "repair"):
        # Resent requests are not modelled for clients that wait for their newest request.
        if load.completions == "newest" and getattr(scenario, table) is not None:
            got = f'"newest" with [{table}]'
            yield problem(f"{load_key}.completions", got, '"each"', table)


def _vms(load_key: str, load: WorkloadSpec) -> Iterator[KeyProblem]:
    """Check that virtual machines and clients do not contradict each other."""
    if load.vms is None:
        for key in ("vm_queue_depth", "vm_iops_limit"):
            if getattr(load, key) is not None:
                wanted = f"{load_key}.vms, too"
                yield problem(
                    f"{load_key}.{key}", getattr(load, key), wanted, f"{load_key}.vms"
                )
        return
    for key, value in load.keys_of_vms().items():
        got = getattr(load, key)
        if got != value:
            wanted = f"no {key}: virtual machines set it to {value}"
            yield problem(f"{load_key}.{key}", got, wanted, f"{load_key}.vms")


def _arrivals(load_key: str, load: WorkloadSpec) -> Iterator[KeyProblem]:
    rate = f"{load_key}.rate_per_s"
    kind = f"{load_key}.kind"
    if load.is_open and load.rate_per_s is None:
        wanted = 'an arrival rate, because workload.kind is "open"'
        yield problem(rate, "nothing", wanted, kind)
    if not load.is_open and load.rate_per_s is not None:
        wanted = f'no rate, because workload.kind is "{load.kind}"'
        yield problem(rate, load.rate_per_s, wanted, kind)


def _s3(scenario: ScenarioKeys) -> Iterator[KeyProblem]:
    """Check the keys of loads on buckets, and that no other load has them."""
    for index, other in enumerate(scenario.workloads):
        if other.is_s3:
            wanted = 'closed or open: only "[workload]" can be of kind s3'
            yield problem(f"workloads.{index}.kind", '"s3"', wanted)
    load = scenario.workload
    if not load.is_s3:
        wanted = f'this key only with workload.kind = "s3" (it is "{load.kind}")'
        for key in sorted(S3_KEYS & load.model_fields_set):
            yield problem(
                f"workload.{key}", getattr(load, key), wanted, "workload.kind"
            )
    for index, op in enumerate(load.ops):
        if load.is_s3 != (op in S3_OPS) and "ops" in load.model_fields_set:
            wanted = "one of put, get, head, list, delete with workload.kind s3"
            if not load.is_s3:
                wanted = f'read or write, because workload.kind is "{load.kind}"'
            yield problem(f"workload.ops.{index}", f'"{op}"', wanted, "workload.kind")
    if load.is_s3:
        yield from _of_buckets(scenario, load)


def _of_buckets(scenario: ScenarioKeys, load: WorkloadSpec) -> Iterator[KeyProblem]:
    """Check the keys of a load on buckets."""
    for key, of, named in (
        ("op_shares", "ops", load.used_ops),
        ("size_shares", "object_sizes_bytes", load.object_sizes_bytes),
    ):
        shares = getattr(load, key)
        if shares is not None and len(shares) != len(named):
            got = "1 value" if len(shares) == 1 else f"{len(shares)} values"
            wanted = f"{len(named)}, one for each of workload.{of}"
            yield problem(f"workload.{key}", got, wanted, f"workload.{of}")
    shards = load.buckets * load.index_shards
    if shards > INDEX_SHARDS_MAX:
        got = f"{shards:,} index shards with workload.index_shards {load.index_shards}"
        wanted = f"at most {INDEX_SHARDS_MAX:,}"
        yield problem("workload.buckets", got, wanted, "workload.index_shards")
    yield from _of_images(scenario, load)
    if (
        "part_size_bytes" in load.model_fields_set
        and not load.multipart_threshold_bytes
    ):
        wanted = (
            "workload.multipart_threshold_bytes, too: no object has parts without it"
        )
        size = format_size(load.part_size_bytes)
        yield problem("workload.part_size_bytes", size, wanted)
    if load.read_fraction is not None:
        wanted = "op_shares: the shares of put and get"
        yield problem("workload.read_fraction", load.read_fraction, wanted)
    if load.completions == "newest":
        wanted = '"each" with workload.kind s3'
        yield problem("workload.completions", '"newest"', wanted, "workload.kind")
    if load.image != "prefilled":
        wanted = '"prefilled": buckets have no images'
        yield problem("workload.image", f'"{load.image}"', wanted, "workload.kind")
    from stripesim.models.coding import parse_scheme

    scheme = parse_scheme(scenario.cluster.gateways.index_scheme)
    if scheme.kind != "replicated":
        wanted = "a replicated scheme such as rep:3: indexes are keys of objects"
        key = "cluster.gateways.index_scheme"
        yield problem(key, f'"{scheme.name}"', wanted)


def _of_images(scenario: ScenarioKeys, load: WorkloadSpec) -> Iterator[KeyProblem]:
    """Refuse keys of images in a load on buckets, but not those of a file whose kind is overridden."""
    stated = load.model_fields_set

    def is_meant(key: str) -> bool:
        is_of_file = scenario.is_override(
            "workload", "kind"
        ) and not scenario.is_override("workload", key)
        return key in stated and not is_of_file

    kind = "workload.kind"
    has_no_size = "block_sizes_bytes" in stated and "object_sizes_bytes" not in stated
    if has_no_size or is_meant("block_sizes_bytes"):
        wanted = "workload.object_sizes_bytes: the sizes of objects"
        sizes = ", ".join(map(format_size, load.block_sizes_bytes))
        yield problem("workload.block_sizes_bytes", sizes, wanted, kind)
    if is_meant("patterns") and "seq" in load.patterns:
        wanted = "no such key: objects have no offsets"
        yield problem("workload.patterns", ", ".join(load.patterns), wanted, kind)
    if is_meant("image_bytes"):
        wanted = "workload.objects: what buckets hold"
        yield problem(
            "workload.image_bytes", format_size(load.image_bytes), wanted, kind
        )


def _several(scenario: ScenarioKeys) -> Iterator[KeyProblem]:
    """Check that concurrent workloads have distinct names, one cell each, and the same duration."""
    names = [load.name for load in scenario.workloads]
    repeated = set(repeated_positions(names))
    duration_s = scenario.duration_s
    for index, load in enumerate(scenario.loads if scenario.workloads else ()):
        load_key = f"workloads.{index}"
        if index in repeated:
            yield problem(f"{load_key}.name", names[index], "a unique name")
        if load.kind == "trace":
            wanted = 'closed or open: only "[workload]" can replay a trace'
            yield problem(f"{load_key}.kind", "trace", wanted)
        for key in (
            "patterns",
            "block_sizes_bytes",
            *(("ops",) if load.read_fraction is None else ()),
        ):
            count = len(getattr(load, key))
            if count != 1:
                yield problem(
                    f"{load_key}.{key}",
                    f"{count} values",
                    "one, because several workloads run concurrently",
                )
        if load.duration_s is not None and load.duration_s != duration_s:
            wanted = f"{duration_s}, as for the other workloads"
            yield problem(f"{load_key}.duration_s", load.duration_s, wanted)


def _trace(scenario: ScenarioKeys) -> Iterator[KeyProblem]:
    load = scenario.workload
    if load.kind != "trace":
        wanted = f'this key only with workload.kind = "trace" (it is "{load.kind}")'
        for key in sorted(
            {"trace", "trace_format", "speed", "replay"} & load.model_fields_set
        ):
            yield problem(
                f"workload.{key}", getattr(load, key), wanted, "workload.kind"
            )
    elif load.trace is None:
        wanted = 'the path of a trace, because workload.kind is "trace"'
        yield problem("workload.trace", "nothing", wanted, "workload.kind")
    if load.replay == "closed" and load.speed != 1:
        wanted = '1: with workload.replay "closed" requests have no times'
        yield problem("workload.speed", f"{load.speed:g}", wanted, "workload.replay")


def _files(scenario: ScenarioKeys) -> Iterator[KeyProblem]:
    """Check that named files exist, except those of a plan, which each candidate checks."""
    for path, name in scenario.files():
        used = path[0] != "plan" and (
            path[0] != "workload" or scenario.workload.kind == "trace"
        )
        if used and not scenario.has_file(name):
            start = "current folder" if scenario.is_override(*path) else "scenario file"
            wanted = f"an existing file, relative to the {start}"
            if path[-1] == "drive":
                wanted += ", or the name of a shipped set"
            yield KeyProblem(
                path, f"{shorten(name, _PATH_CHARACTERS_MAX)} (no such file)", wanted
            )
    cluster = scenario.cluster
    if cluster.crush_map is None and cluster.crush_rule is not None:
        wanted = "cluster.crush_map, too: rules belong to a map"
        yield problem(
            "cluster.crush_rule", cluster.crush_rule, wanted, "cluster.crush_map"
        )


def _fill_ratios(scenario: ScenarioKeys) -> Iterator[KeyProblem]:
    """Check that each fill ratio is at most the next one, with Ceph's defaults for missing ones.

    OSDs raise each ratio to the one before it (Ceph v16.2.15, ``OSDService::recalc_full_state``), so a lower
    one has no effect.
    """
    ratios = [
        (f"cluster.{name}", getattr(scenario.cluster, name) or default)
        for name, default in FILL_RATIOS.items()
    ]
    for (lower_key, lower), (upper_key, upper) in pairwise(ratios):
        if lower > upper:
            yield problem(
                upper_key, upper, f"at least {lower_key} ({lower:g})", lower_key
            )


def _osd_cores(scenario: ScenarioKeys) -> Iterator[KeyProblem]:
    """Check that the cores of each host suffice for those of its OSDs, and a limit for what it limits."""
    cluster = scenario.cluster
    pinned = cluster.cores_per_osd
    limit = cluster.cpu_limit_per_osd
    if pinned and limit and limit > pinned:
        wanted = f"at most cluster.cores_per_osd ({pinned}), which no OSD can exceed"
        yield problem("cluster.cpu_limit_per_osd", f"{limit:g}", wanted, _PINNED)
    key = _PINNED if pinned else "cluster.cpu_limit_per_osd"
    each = pinned or limit
    if each is None:
        return
    needs_core = _others_on_hosts(scenario)
    needed = host_cores_needed(scenario)
    for group, least in zip(cluster.host_groups, needed, strict=True):
        osds = group.osds or 0
        cores = group.cores or cluster.cores_per_host
        if least > cores:
            free = cores - needs_core
            most = free // osds if pinned else free / osds
            wanted = f"at most {most:.4g}" if most else "no such key"
            wanted += f": a host has {cores} cores for {osds} OSDs"
            if needs_core:
                wanted += " and at least one other process"
            yield problem(key, f"{each:g}", wanted, "cluster.cores_per_host")
            return


def host_cores_needed(scenario: ScenarioKeys) -> list[float]:
    """Return the cores that a host of each group needs for pinned or limited OSDs, 0 without."""
    cluster = scenario.cluster
    each = cluster.cores_per_osd or cluster.cpu_limit_per_osd
    if each is None:
        return [0] * len(cluster.host_groups)
    other_cores = _others_on_hosts(scenario)
    return [each * (group.osds or 0) + other_cores for group in cluster.host_groups]


def _others_on_hosts(scenario: ScenarioKeys) -> bool:
    """Return True if clients or gateways are on the hosts, which need at least one core."""
    if scenario.client.place == "osd-hosts":
        return True
    return scenario.workload.is_s3 and scenario.cluster.gateways.place == "osd-hosts"


def _sizes(scenario: ScenarioKeys) -> Iterator[KeyProblem]:
    unit = scenario.cluster.stripe_unit_bytes
    most = scenario.cluster.object_bytes
    if unit > most:
        wanted = f"at most cluster.object_bytes ({format_size(most)})"
        yield problem(
            "cluster.stripe_unit_bytes",
            format_size(unit),
            wanted,
            "cluster.object_bytes",
        )
    for load_key, load in loads_with_keys(scenario):
        if load.is_s3:
            continue
        wanted = f"at most workload.image_bytes ({format_size(load.image_bytes)})"
        for index, size in enumerate(
            load.block_sizes_bytes if load.kind != "trace" else ()
        ):
            if size > load.image_bytes:
                key = f"{load_key}.block_sizes_bytes.{index}"
                yield problem(key, format_size(size), wanted, f"{load_key}.image_bytes")


def _plan(scenario: ScenarioKeys) -> Iterator[KeyProblem]:
    """Check requirements of a plan that depend on other keys."""
    plan = scenario.plan
    cluster = scenario.cluster
    if plan is None:
        return
    yield from _nothing_to_try(plan)
    yield from _plan_of_sites(cluster, plan)
    growth = "plan.growth_bytes_per_day"
    if plan.days_until_full is not None and plan.growth_bytes_per_day is None:
        yield problem("plan.days_until_full", f"no {growth}", "both keys", growth)
    if plan.private_gbit_per_s and cluster.networks == 1:
        yield problem(
            "plan.private_gbit_per_s",
            "a list with cluster.networks = 1",
            "none: one network has the rate of plan.public_gbit_per_s",
            "cluster.networks",
        )
    yield from _prices(plan)
    yield from _drive_prices(scenario, plan)
    yield from _plan_of_load(scenario, plan)
    if isinstance(cluster.hosts, int):
        return
    for key in VARIED_DOMAINS:
        if getattr(plan, key):
            wanted = "none, because cluster.hosts are groups"
            yield problem(f"plan.{key}", "a list", wanted, "cluster.hosts")
    for key, own in (("cores_per_host", "cores"), ("drive_bytes", "drive_bytes")):
        if getattr(plan, key) and any(getattr(group, own) for group in cluster.hosts):
            wanted = f"none, because groups of cluster.hosts state their {own}"
            yield problem(f"plan.{key}", "a list", wanted, "cluster.hosts")


def _nothing_to_try(plan: PlanSpec) -> Iterator[KeyProblem]:
    """Refuse lists that a file gives without a value.

    The types allow them, since stored configurations hold an empty list for each key that is not varied.
    """
    for key in VARIED:
        if key in plan.model_fields_set and not getattr(plan, key):
            wanted = "at least one value to try, or no such key"
            yield problem(f"plan.{key}", [], wanted)


def _plan_of_sites(cluster: ClusterSpec, plan: PlanSpec) -> Iterator[KeyProblem]:
    """Check that a plan that names sites has a time between them."""
    rtt = "cluster.site_rtt_ms"
    if cluster.site_rtt_ms is not None:
        return
    if plan.sites:
        yield problem("plan.sites", plan.sites, f"{rtt}, too", rtt)
    if plan.site_loss is not None:
        wanted = f"{rtt}, and cluster.sites or plan.sites"
        yield problem("plan.site_loss", f"{plan.site_loss} without sites", wanted, rtt)


def _plan_of_load(scenario: ScenarioKeys, plan: PlanSpec) -> Iterator[KeyProblem]:
    """Check that the workload is of a kind that the plan's keys are for."""
    load = scenario.workload
    if not load.is_s3:
        wanted = f'this key only with workload.kind = "s3" (it is "{load.kind}")'
        for key in (*GATEWAY_KEYS, "owned_gateways"):
            value = getattr(plan, key)
            if value:
                yield problem(f"plan.{key}", value, wanted, "workload.kind")
    if plan.rate_per_s is not None and (scenario.workloads or load.kind == "trace"):
        got = "a rate with several workloads or a trace"
        yield problem("plan.rate_per_s", got, "rates in the workloads")


def _prices(plan: PlanSpec) -> Iterator[KeyProblem]:
    """Check that limits on cost and power have prices and powers to compare with."""
    prices = PricesSpec() if plan.prices is None else plan.prices
    if plan.cost_max is not None and not prices.has_cost:
        wanted = "prices of the parts in [plan.prices]"
        yield problem("plan.cost_max", "no prices", wanted, "plan.prices")
    if plan.watts_max is not None and not prices.has_power:
        wanted = "host_watts or drive_watts in [plan.prices]"
        yield problem("plan.watts_max", "no power", wanted, "plan.prices")


def _drive_prices(scenario: ScenarioKeys, plan: PlanSpec) -> Iterator[KeyProblem]:
    """Check that every drive has a price, and its own price if the plan compares several drives."""
    prices = plan.prices
    if prices is None:
        return
    kinds = plan.drive or (scenario.cluster.drive,)
    for name in prices.drives:
        if name not in (*kinds, scenario.cluster.drive):
            got = f"a price for {name}"
            wanted = f"prices for {', '.join(dict.fromkeys(kinds))} only"
            yield problem(
                "plan.prices.drives", got, wanted, "plan.drive", "cluster.drive"
            )
    has_common_price = bool(prices.drive or prices.drive_per_tb)
    unpriced = [kind for kind in dict.fromkeys(kinds) if kind not in prices.drives]
    several = len(set(kinds)) > 1
    if unpriced and (several or (prices.drives and not has_common_price)):
        got = f"no price for {', '.join(unpriced)}"
        wanted = "a table [plan.prices.drives.NAME] for each drive in plan.drive"
        yield problem("plan.prices.drives", got, wanted, "plan.drive")


def _repeats(scenario: ScenarioKeys) -> Iterator[KeyProblem]:
    load = scenario.workload
    lists: dict[str, Sequence[Hashable]] = {
        "schemes": scenario.schemes,
        **_dead_osds(scenario),
    }
    lists |= {
        f"workload.{key}": getattr(load, key)
        for key in ("ops", "patterns", "block_sizes_bytes", "object_sizes_bytes")
    }
    if scenario.plan is not None:
        lists |= {f"plan.{key}": getattr(scenario.plan, key) for key in VARIED}
    for key, values in lists.items():
        yield from repeats(key, values)


def _groups(scenario: ScenarioKeys) -> Iterator[KeyProblem]:
    """Reject keys that host groups replace."""
    cluster = scenario.cluster
    if isinstance(cluster.hosts, int):
        return
    if cluster.racks is not None:
        wanted = "cluster.hosts.rack, because hosts are groups"
        yield problem("cluster.racks", cluster.racks, wanted, "cluster.hosts")
    if cluster.sites is not None:
        wanted = "cluster.hosts.site, because hosts are groups"
        yield problem("cluster.sites", cluster.sites, wanted, "cluster.hosts")
    for key in ("rack", "site"):
        named = [getattr(group, key) is not None for group in cluster.hosts]
        if any(named) and not all(named):
            group_key = f"cluster.hosts.{named.index(False)}"
            yield problem(group_key, f"no {key}", f"a {key} in every group, or in none")


def _sites(scenario: ScenarioKeys) -> Iterator[KeyProblem]:
    """Check that sites have times between them, and that keys of sites have sites."""
    cluster = scenario.cluster
    key = "cluster.site_rtt_ms"
    states_sites = cluster.sites is not None or cluster.site_names is not None
    if cluster.site_rtt_ms is None:
        if states_sites:
            yield problem("cluster.sites", cluster.sites, f"{key}, too", key)
        if cluster.stretch:
            yield problem("cluster.stretch", "no sites", "cluster.sites, too", key)
        if cluster.read_policy == LOCAL_READS:
            got = f'"{LOCAL_READS}" without sites'
            yield problem("cluster.read_policy", got, '"needed"', key)
    for load_key, load in loads_with_keys(scenario):
        yield from _client_site(scenario, load_key, load)
    if cluster.site_rtt_ms is None:
        return
    if scenario.workload.is_s3:
        wanted = "another kind: gateways at sites are not simulated"
        yield problem("workload.kind", '"s3" with site_rtt_ms', wanted, key)
    varies_sites = scenario.plan is not None and bool(scenario.plan.sites)
    if cluster.crush_map is None and not states_sites:
        if not varies_sites:
            yield problem(key, "no sites", "cluster.sites, too", "cluster.sites")
        return
    yield from _divided_racks(cluster)
    yield from _stretch(scenario)
    if not isinstance(cluster.site_rtt_ms, int | float):
        yield from _rtt_rows(cluster, cluster.site_rtt_ms)


def _stretch(scenario: ScenarioKeys) -> Iterator[KeyProblem]:
    """Check that stretch mode has two sites and four copies, two at each."""
    cluster = scenario.cluster
    if not cluster.stretch:
        return
    key = "cluster.stretch"
    if cluster.crush_map is not None:
        wanted = "cluster.sites: stretch mode of a CRUSH map is not simulated"
        yield problem(key, "true with crush_map", wanted, "cluster.crush_map")
    elif cluster.site_count != 2:
        wanted = "2, and a tiebreaker elsewhere, which holds no data"
        yield problem("cluster.sites", cluster.site_count, wanted, key)
    if cluster.failure_domain_replicated != "site":
        got = f'"{cluster.failure_domain_replicated}" with stretch'
        yield problem("cluster.failure_domain_replicated", got, '"site"', key)
    for index, scheme in enumerate(scenario.schemes):
        if scheme != "rep:4":
            yield problem(f"schemes.{index}", scheme, "rep:4, with stretch", key)


def _client_site(
    scenario: ScenarioKeys, load_key: str, load: WorkloadSpec
) -> Iterator[KeyProblem]:
    """Check that the site of clients exists."""
    cluster = scenario.cluster
    site = load.client_site
    if site is None:
        return
    key = f"{load_key}.client_site"
    if cluster.site_rtt_ms is None:
        yield problem(key, site, "no such key without cluster.site_rtt_ms")
    elif scenario.client.place == "osd-hosts":
        wanted = 'no such key with client.place = "osd-hosts": clients are at the sites of their hosts'
        yield problem(key, site, wanted, "client.place")
    elif cluster.crush_map is None and site >= cluster.site_count:
        wanted = f"a site from 0 to {cluster.site_count - 1}"
        yield problem(key, site, wanted, "cluster.sites")


def _divided_racks(cluster: ClusterSpec) -> Iterator[KeyProblem]:
    """Check that each rack is at one site."""
    sites_of: dict[str, set[str]] = {}
    racks = cluster.rack_names or ()
    for rack, site in zip(racks, cluster.site_names or (), strict=False):
        sites_of.setdefault(rack, set()).add(site)
    for rack, sites in sites_of.items():
        if len(sites) > 1:
            got = f"{rack} at {len(sites)} sites"
            wanted = "whole racks at each site"
            yield problem("cluster.racks", got, wanted, "cluster.sites")
            return


def _rtt_rows(
    cluster: ClusterSpec, rtt_ms: Sequence[Sequence[float]]
) -> Iterator[KeyProblem]:
    """Check that times between sites are a symmetric square with a diagonal of 0."""
    key = "cluster.site_rtt_ms"
    count = len(rtt_ms) if cluster.crush_map else cluster.site_count
    lengths = {len(rtt_ms), *map(len, rtt_ms)}
    if lengths != {count}:
        wanted = f"{count} lists of {count} times, or one number"
        yield problem(key, f"{len(rtt_ms)} lists", wanted, "cluster.sites")
        return
    for row, times_ms in enumerate(rtt_ms):
        if times_ms[row]:
            got = f"{times_ms[row]:g} ms from site {row} to itself"
            yield problem(key, got, "0")
        for column in range(row):
            other_ms = rtt_ms[column][row]
            if times_ms[column] != other_ms:
                got = f"{times_ms[column]:g} ms from site {row} to {column}"
                yield problem(key, got, f"{other_ms:g}, as in the other direction")


def _map(scenario: ScenarioKeys) -> Iterator[KeyProblem]:
    """Reject keys that a CRUSH map replaces."""
    cluster = scenario.cluster
    plan = scenario.plan
    if cluster.crush_map is None:
        return
    by_map = "because cluster.crush_map defines the hosts"
    grow = "the option --grow of `import ceph-report` adds hosts to a map"
    wanted = f"no {{key}}, {by_map} (tables [[cluster.hosts]] describe them, {grow})"
    for key in _replaced_by_map(cluster):
        of_file = scenario.is_override(
            "cluster", "crush_map"
        ) and not scenario.is_override("cluster", key)
        # A map from the command line overrides the counts in the file.
        if key in cluster.model_fields_set and not of_file:
            yield problem(
                f"cluster.{key}",
                getattr(cluster, key),
                wanted.format(key=key),
                "cluster.crush_map",
            )
    for key in ("hosts", "osds_per_host"):
        if plan is not None and getattr(plan, key):
            yield problem(
                f"plan.{key}", "a list", f"none, {by_map}", "cluster.crush_map"
            )


def _replaced_by_map(cluster: ClusterSpec) -> list[str]:
    """Return the keys of `[cluster]` that have no effect with its CRUSH map."""
    keys = ["racks", "sites"]
    groups = () if isinstance(cluster.hosts, int) else cluster.hosts
    if not groups:
        keys.append("hosts")
    if all(group.osds is not None for group in groups):
        keys.append("osds_per_host")
    if cluster.crush_rule is not None:
        # Without a rule, the failure domain selects one.
        keys += ["failure_domain_replicated", "failure_domain_erasure"]
    return keys


def _layout(
    scenario: ScenarioKeys, schemes: Sequence[NumberedScheme]
) -> Iterator[KeyProblem]:
    """Check that there are enough failure domains for each scheme."""
    if _domains_are_checked_elsewhere(scenario):
        return
    cluster = scenario.cluster
    uneven = unequal_levels(cluster)
    for level, wanted in uneven.items():
        key = f"cluster.{level}"
        got = getattr(cluster, level)
        yield problem(key, got, wanted, "cluster.hosts", "cluster.crush_map")
    if "sites" in uneven:
        return
    counts = {domain: domain_count(scenario, domain) for domain in _DOMAINS}
    uncounted = set()
    for scheme_key, item in _placed_schemes(scenario, schemes):
        domain, key = failure_domain(scenario, item.scheme)
        if domain in ("rack", "site") and not counts[domain] and item.scheme.width > 1:
            uncounted.add((key, domain))
        elif domain == "site":
            yield from _too_few_hosts_at_sites(scenario, item)
        elif item.scheme.width > max(1, counts[domain]):
            yield _too_wide(scheme_key, item, domain, counts)
    for key, domain in sorted(uncounted):
        wanted = f"cluster.{domain}s, too: the number of {domain}s is missing"
        yield problem(key, f'"{domain}"', wanted, *_GEOMETRY, key)


def _placed_schemes(
    scenario: ScenarioKeys, schemes: Sequence[NumberedScheme]
) -> Iterator[tuple[str, NumberedScheme]]:
    """Yield the schemes of all pools with their keys: also that of bucket indexes, if there are any."""
    for item in schemes:
        yield f"schemes.{item.number}", item
    if scenario.workload.is_s3:
        from stripesim.models.coding import parse_scheme

        name = scenario.cluster.gateways.index_scheme
        item = NumberedScheme(len(schemes), name, parse_scheme(name))
        yield "cluster.gateways.index_scheme", item


def _too_few_hosts_at_sites(
    scenario: ScenarioKeys, item: NumberedScheme
) -> Iterator[KeyProblem]:
    """Check that each site has a host for each of its shards, and that no balancer moves them."""
    cluster = scenario.cluster
    each = shards_per_domain(scenario, item.scheme)
    names = cluster.site_names or ()
    hosts = min(map(names.count, set(names)), default=0)
    if hosts < each:
        got = f"{hosts} hosts at a site, where {item.text} has {each} shards"
        wanted = f"at least {each} hosts at each site"
        yield problem("cluster.hosts", got, wanted, "cluster.sites")
    if each > 1 and cluster.upmap_max_deviation is not None:
        got = f"{cluster.upmap_max_deviation} with {each} shards at each site"
        wanted = "no such key: the balancer does not know how many a site holds"
        yield problem("cluster.upmap_max_deviation", got, wanted)


def _domains_are_checked_elsewhere(scenario: ScenarioKeys) -> bool:
    durability = scenario.durability
    each_by_itself = scenario.plan is not None and scenario.plan.varies_domains
    pooled = (
        durability is not None
        and durability.placement != "crush"
        and stands_alone(scenario)
    )
    # The code that reads a CRUSH map checks the width, because the map defines the domains.
    return each_by_itself or pooled or scenario.cluster.crush_map is not None


def _too_wide(
    key: str, item: NumberedScheme, domain: str, counts: Mapping[str, int]
) -> KeyProblem:
    """Describe a scheme with more shards than failure domains."""
    count = counts[domain]
    domain_key = f"cluster.failure_domain_{item.scheme.kind}"
    width = item.scheme.width
    wanted = f"at most {count} shards"
    if domain != "osd" and width <= counts["osd"]:
        wanted += f' or {domain_key} = "osd"'
    got = f"{item.text} ({width} shards) with failure_domain {domain} ({counted_text(count, domain)})"
    return problem(key, got, wanted, *_GEOMETRY, domain_key)


#: Features of an image, each with the feature that it needs.
_NEEDED_FEATURES: Final = {
    "object-map": "exclusive-lock",
    "journaling": "exclusive-lock",
    "fast-diff": "object-map",
}


def _image_features(
    scenario: ScenarioKeys, schemes: Sequence[NumberedScheme]
) -> Iterator[KeyProblem]:
    features = scenario.workload.image_features or ()
    key = "workload.image_features"
    for feature, needed in _NEEDED_FEATURES.items():
        if feature in features and needed not in features:
            yield problem(key, f"{feature} without {needed}", f"{needed}, too")


def _dead_osds(scenario: ScenarioKeys) -> dict[str, tuple[int, ...]]:
    """Map each key that lists lost or down OSDs to its OSDs."""
    return {
        "repair.lost_osds": scenario.lost_osds,
        "degraded.missing_osds": scenario.missing_osds,
    }


def _failures(
    scenario: ScenarioKeys, schemes: Sequence[NumberedScheme]
) -> Iterator[KeyProblem]:
    cluster = scenario.cluster
    by_key = _dead_osds(scenario)
    lost = set(by_key["repair.lost_osds"])
    for index, osd in enumerate(by_key["degraded.missing_osds"]):
        if osd in lost:
            got = f"{osd}, which is also in repair.lost_osds"
            yield problem(
                f"degraded.missing_osds.{index}", got, "each OSD in one of the lists"
            )
    if scenario.repair is not None and scenario.workload.image == "pristine":
        wanted = '"prefilled": a pristine image has nothing to repair'
        yield problem("workload.image", '"pristine" with [repair]', wanted)
    dead = {
        f"{key}.{index}": osd
        for key, osds in by_key.items()
        for index, osd in enumerate(osds)
    }
    if cluster.crush_map is not None or not dead:
        return
    outside = list(_outside(scenario, dead))
    yield from outside
    if not outside:
        first_key = next(key for key, osds in by_key.items() if osds)
        yield from _losses(scenario, schemes, set(dead.values()), first_key)


def _outside(scenario: ScenarioKeys, dead: Mapping[str, int]) -> Iterator[KeyProblem]:
    """Describe OSDs that the cluster does not have."""
    cluster = scenario.cluster
    hosts = f"{cluster.host_count} hosts: cluster.hosts, cluster.osds_per_host"
    wanted = f"an OSD from 0 to {cluster.osd_count - 1} ({hosts})"
    for key, osd in dead.items():
        if osd >= cluster.osd_count:
            yield problem(key, osd, wanted, *_GEOMETRY)


def _losses(
    scenario: ScenarioKeys, schemes: Sequence[NumberedScheme], dead: set[int], key: str
) -> Iterator[KeyProblem]:
    """Check that each scheme tolerates the OSDs that are down."""
    losses = {domain: domain_loss(scenario, domain, dead) for domain in _DOMAINS}
    for item in schemes:
        domain, domain_key = failure_domain(scenario, item.scheme)
        loss = losses[domain]
        if shards_per_domain(scenario, item.scheme) > 1:
            # CRUSH decides which shards of a site are lost.
            loss = None
        if loss is not None:
            yield from _tolerance(item, loss, domain, key, domain_key)


def _tolerance(
    item: NumberedScheme, loss: DomainLoss, domain: str, key: str, domain_key: str
) -> Iterator[KeyProblem]:
    """Reject losses that destroy data, or that leave too few domains to rebuild it."""
    most = item.scheme.failures_tolerated
    width = item.scheme.width
    involves = (*_GEOMETRY, domain_key, "repair.lost_osds", "degraded.missing_osds")
    if loss.hit > most:
        wanted = f"at most {most}, or {item.text} loses data"
        down = f"OSDs down in {counted_text(loss.hit, domain)}"
        yield problem(key, down, wanted, *involves)
    elif key == "repair.lost_osds" and loss.left < width:
        wanted = f"at least {width}, for {item.text} to rebuild"
        left = f"{counted_text(loss.left, domain)} left with an OSD up"
        yield problem(key, left, wanted, *involves)

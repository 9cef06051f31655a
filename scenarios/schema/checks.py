"""Rules that span several keys of a scenario: what each key allows alone, but not together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stripesim.scenarios.schema.budget import budget_rules, loads_with_keys
from stripesim.scenarios.schema.durability_checks import durability_rules, stands_alone
from stripesim.scenarios.schema.fault_checks import fault_rules
from stripesim.scenarios.schema.geometry import NumberedScheme, domain_count, domains_of_osds, failure_domain
from stripesim.scenarios.schema.keys import Scenario, names_file
from stripesim.scenarios.schema.problems import Problem
from stripesim.scenarios.schema.toml_lines import KeyPath
from stripesim.scenarios.schema.units import format_size


def cross_check(scenario: Scenario, schemes: Sequence[NumberedScheme]) -> list[Problem]:
    """Apply every rule that spans several keys."""
    too_much = list(budget_rules(scenario, schemes))
    if too_much:
        # The other rules may themselves take what the scenario asks for.
        return too_much
    rules = (_bound, _mix, _newest, _arrivals, _several, _trace, _files, _sizes, _repeats, _plan, _groups)
    return [
        *(problem for rule in rules for problem in rule(scenario)),
        *_layout(scenario, schemes),
        *_failures(scenario, schemes),
        *fault_rules(scenario, schemes),
        *durability_rules(scenario, schemes),
    ]


def _bound(scenario: Scenario) -> Iterator[Problem]:
    for place, workload in loads_with_keys(scenario):
        path, other = (*place, "requests"), (*place, "duration_s")
        given = (workload.requests is not None) + (workload.duration_s is not None)
        if given == 2:
            yield Problem(other, "both requests and duration_s", "only one of them", (path,))
        # A trace ends by itself; the other kinds go on until stopped.
        if given == 0 and workload.kind != "trace" and not stands_alone(scenario):
            yield Problem(
                path,
                "neither requests nor duration_s",
                "workload.requests (per cell) or workload.duration_s (simulated seconds)",
                (other, (*place, "kind")),
            )


def _mix(scenario: Scenario) -> Iterator[Problem]:
    for place, workload in loads_with_keys(scenario):
        if workload.read_fraction is not None and "ops" in workload.model_fields_set:
            yield Problem(
                (*place, "read_fraction"),
                "both ops and read_fraction",
                "only one of them: ops for a cell each, read_fraction for one mixed cell",
                ((*place, "ops"),),
            )


def _newest(scenario: Scenario) -> Iterator[Problem]:
    """A client that waits for its newest request is not simulated where requests are sent again."""
    for table in ("faults", "repair"):
        for place, workload in loads_with_keys(scenario):
            if workload.completions == "newest" and getattr(scenario, table) is not None:
                yield Problem((*place, "completions"), f'"newest" with [{table}]', '"each"', ((table,),))


def _arrivals(scenario: Scenario) -> Iterator[Problem]:
    for place, workload in loads_with_keys(scenario):
        path, kind = (*place, "rate_per_s"), (*place, "kind")
        if workload.kind == "open" and workload.rate_per_s is None:
            yield Problem(path, "nothing", 'an arrival rate, since workload.kind is "open"', (kind,))
        if workload.kind != "open" and workload.rate_per_s is not None:
            yield Problem(
                path, str(workload.rate_per_s), f'no rate, since workload.kind is "{workload.kind}"', (kind,)
            )


def _several(scenario: Scenario) -> Iterator[Problem]:
    """Each of several workloads is one cell, under a name of its own, and all are bounded alike."""
    names = [load.name for load in scenario.workloads]
    for index, load in enumerate(scenario.loads if scenario.workloads else ()):
        place: KeyPath = ("workloads", index)
        if names[index] in names[:index]:
            yield Problem((*place, "name"), names[index], "a name that no other workload has")
        if load.kind == "trace":
            yield Problem(
                (*place, "kind"), "trace", 'closed or open: a trace is replayed alone, as "[workload]"'
            )
        lists: dict[str, Sequence[object]] = {
            "patterns": load.patterns,
            "block_sizes_bytes": load.block_sizes_bytes,
        }
        if load.read_fraction is None:
            lists["ops"] = load.ops
        for key, values in lists.items():
            if len(values) != 1:
                yield Problem(
                    (*place, key), f"{len(values)} values", "one, since several workloads run at once"
                )
        if load.duration_s is not None and load.duration_s != scenario.duration_s:
            yield Problem(
                (*place, "duration_s"), str(load.duration_s), f"{scenario.duration_s}, as for the others"
            )


def _trace(scenario: Scenario) -> Iterator[Problem]:
    workload = scenario.workload
    kind: KeyPath = ("workload", "kind")
    path: KeyPath = ("workload", "trace")
    if workload.kind != "trace":
        for key in sorted({"trace", "trace_format", "speed", "replay"} & workload.model_fields_set):
            yield Problem(
                ("workload", key),
                str(getattr(workload, key)),
                f'this key only with workload.kind = "trace" (it is "{workload.kind}")',
                (kind,),
            )
    elif workload.trace is None:
        yield Problem(path, "nothing", 'the path of a trace, since workload.kind is "trace"', (kind,))
    elif not scenario.has_file(workload.trace):
        yield Problem(
            path, f"{workload.trace} (no such file)", "a file, its path relative to the scenario file"
        )


def _files(scenario: Scenario) -> Iterator[Problem]:
    cluster = scenario.cluster
    if names_file("ssd", cluster.ssd) and not scenario.has_file(cluster.ssd):
        wanted = "a file, its path from the scenario file's folder, or the name of a set that ships"
        yield Problem(("cluster", "ssd"), f"{cluster.ssd} (no such file)", wanted)
    if cluster.crush_map is not None and not scenario.has_file(cluster.crush_map):
        yield Problem(
            ("cluster", "crush_map"),
            f"{cluster.crush_map} (no such file)",
            "a file, its path relative to the scenario file",
        )
    if cluster.crush_map is None and cluster.crush_rule is not None:
        yield Problem(
            ("cluster", "crush_rule"),
            cluster.crush_rule,
            "cluster.crush_map too: a rule is one of a map's",
            (("cluster", "crush_map"),),
        )


def _sizes(scenario: Scenario) -> Iterator[Problem]:
    cluster = scenario.cluster
    if cluster.stripe_unit_bytes > cluster.object_bytes:
        yield Problem(
            ("cluster", "stripe_unit_bytes"),
            format_size(cluster.stripe_unit_bytes),
            f"at most cluster.object_bytes ({format_size(cluster.object_bytes)})",
            (("cluster", "object_bytes"),),
        )
    for place, workload in loads_with_keys(scenario):
        for index, block_size_bytes in enumerate(workload.block_sizes_bytes):
            if workload.kind != "trace" and block_size_bytes > workload.image_bytes:
                yield Problem(
                    (*place, "block_sizes_bytes", index),
                    format_size(block_size_bytes),
                    f"at most workload.image_bytes ({format_size(workload.image_bytes)})",
                    ((*place, "image_bytes"),),
                )


def _plan(scenario: Scenario) -> Iterator[Problem]:
    """Some requirements of a plan rest on another key."""
    plan = scenario.plan
    if plan is None:
        return
    if plan.days_until_full is not None and plan.growth_bytes_per_day is None:
        yield Problem(
            ("plan", "days_until_full"),
            "no plan.growth_bytes_per_day",
            "it too",
            (("plan", "growth_bytes_per_day"),),
        )
    for key in ("cost_max", "watts_max"):
        if getattr(plan, key) is not None and plan.prices is None:
            yield Problem(
                ("plan", key), "no [plan.prices]", "what the parts cost and draw", (("plan", "prices"),)
            )
    if plan.rate_per_s is not None and (scenario.workloads or scenario.workload.kind == "trace"):
        yield Problem(
            ("plan", "rate_per_s"),
            "a rate beside several workloads or a trace",
            "rates in the workloads themselves",
        )


def _repeats(scenario: Scenario) -> Iterator[Problem]:
    lists: list[tuple[KeyPath, Sequence[object]]] = [
        (("schemes",), scenario.schemes),
        (("workload", "ops"), scenario.workload.ops),
        (("workload", "patterns"), scenario.workload.patterns),
        (("workload", "block_sizes_bytes"), scenario.workload.block_sizes_bytes),
    ]
    if scenario.repair is not None:
        lists.append((("repair", "lost_osds"), scenario.repair.lost_osds))
    if scenario.degraded is not None:
        lists.append((("degraded", "missing_osds"), scenario.degraded.missing_osds))
    for path, values in lists:
        for index, value in enumerate(values):
            if value in values[:index]:
                yield Problem((*path, index), f"{value} twice", "each value once")


_GEOMETRY: tuple[KeyPath, ...] = tuple(
    ("cluster", key) for key in ("hosts", "osds_per_host", "racks", "crush_map")
)


def _groups(scenario: Scenario) -> Iterator[Problem]:
    """Groups of hosts say all about their hosts: other keys would contradict them."""
    cluster, place = scenario.cluster, ("cluster", "hosts")
    if isinstance(cluster.hosts, int):
        return
    if cluster.racks is not None:
        yield Problem(
            ("cluster", "racks"), str(cluster.racks), "cluster.hosts.rack: hosts are groups", (place,)
        )
    named = [group.rack is not None for group in cluster.hosts]
    if any(named) and not all(named):
        yield Problem((*place, named.index(False)), "no rack", "a rack in every group, or in none")
    if scenario.plan is not None and scenario.plan.varies_domains:
        key = "hosts" if scenario.plan.hosts else "osds_per_host"
        yield Problem(("plan", key), "a list", "none: cluster.hosts are groups that differ", (place,))


def _layout(scenario: Scenario, schemes: Sequence[NumberedScheme]) -> Iterator[Problem]:
    cluster, durability = scenario.cluster, scenario.durability
    if scenario.plan is not None and scenario.plan.varies_domains:
        # Each candidate is checked by itself.
        return
    if stands_alone(scenario) and durability is not None and durability.placement != "crush":
        return
    if cluster.crush_map is not None:
        # The map says what the domains are; whoever reads it checks the width.
        return
    if cluster.racks is not None and cluster.rack_names is None:
        yield Problem(
            ("cluster", "racks"),
            str(cluster.racks),
            f"a divisor of cluster.hosts ({cluster.host_count}), so that racks are equal",
            (("cluster", "hosts"), ("cluster", "crush_map")),
        )
    rackless: set[KeyPath] = set()
    for item in schemes:
        domain, key = failure_domain(scenario, item.scheme)
        involves = (*_GEOMETRY, key)
        if item.scheme.width == 1:
            continue
        if domain == "rack" and not domain_count(scenario, "rack"):
            if key not in rackless:
                yield Problem(key, '"rack"', "cluster.racks too: the number of racks is not given", involves)
            rackless.add(key)
            continue
        count = domain_count(scenario, domain)
        if item.scheme.width <= count:
            continue
        wanted = f"at most {count} shards"
        if domain != "osd" and item.scheme.width <= domain_count(scenario, "osd"):
            wanted += f' or {".".join(map(str, key))} = "osd"'
        yield Problem(
            ("schemes", item.index),
            f"{item.text} ({item.scheme.width} shards) with failure_domain {domain} ({count} {domain}s)",
            wanted,
            involves,
        )


def _dead_osds(scenario: Scenario) -> list[tuple[KeyPath, int]]:
    lost = () if scenario.repair is None else scenario.repair.lost_osds
    missing = () if scenario.degraded is None else scenario.degraded.missing_osds
    return [
        *((("repair", "lost_osds", index), osd) for index, osd in enumerate(lost)),
        *((("degraded", "missing_osds", index), osd) for index, osd in enumerate(missing)),
    ]


def _failures(scenario: Scenario, schemes: Sequence[NumberedScheme]) -> Iterator[Problem]:
    cluster = scenario.cluster
    dead = _dead_osds(scenario)
    lost = {osd for path, osd in dead if path[0] == "repair"}
    for path, osd in dead:
        if path[0] == "degraded" and osd in lost:
            yield Problem(path, f"{osd}, which repair.lost_osds names too", "each OSD in one of them")
    if scenario.repair is not None and scenario.workload.image == "pristine":
        yield Problem(
            ("workload", "image"),
            '"pristine" with [repair]',
            '"prefilled": a pristine image has nothing to repair',
        )
    osd_count = domain_count(scenario, "osd")
    if cluster.crush_map is not None or not dead:
        return
    outside = [(path, osd) for path, osd in dead if osd >= osd_count]
    for path, osd in outside:
        yield Problem(
            path,
            str(osd),
            f"an OSD from 0 to {osd_count - 1} "
            f"({cluster.host_count} hosts: cluster.hosts, cluster.osds_per_host)",
            _GEOMETRY,
        )
    if not outside:
        for item in schemes:
            yield from _tolerance(scenario, item, [osd for _, osd in dead], dead[0][0][:2])


def _tolerance(scenario: Scenario, item: NumberedScheme, dead: list[int], path: KeyPath) -> Iterator[Problem]:
    """Say where data would be gone, or where no place is left to rebuild it."""
    cluster = scenario.cluster
    domain, key = failure_domain(scenario, item.scheme)
    if domain == "rack" and cluster.rack_names is None:
        return
    of_osds = domains_of_osds(scenario, domain)
    hit = [of_osds[osd] for osd in set(dead)]
    involves = (*_GEOMETRY, key, ("repair", "lost_osds"), ("degraded", "missing_osds"))
    if len(set(hit)) > item.scheme.failures_tolerated:
        yield Problem(
            path,
            f"OSDs down in {len(set(hit))} {domain}s",
            f"at most {item.scheme.failures_tolerated}: {item.text} would lose data beyond that",
            involves,
        )
        return
    gone = sum(hit.count(index) == of_osds.count(index) for index in set(hit))
    left = domain_count(scenario, domain) - gone
    if path[0] == "repair" and left < item.scheme.width:
        yield Problem(
            path,
            f"{left} {domain}s left with an OSD up",
            f"at least {item.scheme.width}: {item.text} has nowhere else to rebuild",
            involves,
        )

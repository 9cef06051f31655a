"""Rules for the faults of a scenario: who fails is there, comes back later than it fails, and only once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from stripesim.scenarios.schema.geometry import NumberedScheme, domain_count, domains_of_osds, failure_domain
from stripesim.scenarios.schema.problems import Problem
from stripesim.scenarios.schema.toml_lines import KeyPath

if TYPE_CHECKING:
    from stripesim.scenarios.schema.faults import LifetimeSpec
    from stripesim.scenarios.schema.keys import Scenario

_NUMBERS = {"exponential": {"scale_s"}, "weibull": {"scale_s", "shape"}, "lognormal": {"median_s", "sigma"}}
_COUNTS: tuple[KeyPath, ...] = tuple(("cluster", key) for key in ("hosts", "osds_per_host", "racks"))


def fault_rules(scenario: Scenario, schemes: Sequence[NumberedScheme]) -> Iterator[Problem]:
    """Apply every rule about faults."""
    if scenario.faults is None:
        if scenario.workload.timeout_s is not None:
            yield Problem(
                ("workload", "timeout_s"),
                str(scenario.workload.timeout_s),
                "this key only with [faults]",
                (("faults",),),
            )
        return
    yield from _alone(scenario)
    targets = list(_targets(scenario))
    yield from targets
    yield from _drawn(scenario)
    yield from _replay(scenario)
    cluster = scenario.cluster
    racks_divide = cluster.racks is None or cluster.rack_names is not None
    if cluster.crush_map is None and racks_divide and not targets:
        overlaps = list(_overlaps(scenario))
        yield from overlaps or _room(scenario, schemes)


def _alone(scenario: Scenario) -> Iterator[Problem]:
    faults = scenario.faults
    assert faults is not None
    for key in ("repair", "degraded"):
        if getattr(scenario, key) is not None:
            yield Problem(("faults",), f"both [faults] and [{key}]", "only one of them", ((key,),))
    if "none" in scenario.schemes:
        yield Problem(
            ("schemes", scenario.schemes.index("none")),
            "none with [faults]",
            "schemes of a cluster: a bare device has no peers",
        )
    if not (faults.events or faults.corruptions or faults.drawn or faults.replay):
        yield Problem(("faults",), "nothing that fails", "events, corruptions, drawn or replay")
    if (faults.events and (faults.drawn or faults.replay)) or (faults.drawn and faults.replay):
        yield Problem(("faults",), "several of events, drawn and replay", "only one of them")


def _targets(scenario: Scenario) -> Iterator[Problem]:
    faults, cluster = scenario.faults, scenario.cluster
    assert faults is not None
    counts = {
        "osds": (cluster.osd_count, "an OSD"),
        "hosts": (cluster.host_count, "a host"),
        "racks": (domain_count(scenario, "rack"), "a rack"),
    }
    for index, event in enumerate(faults.events):
        where: KeyPath = ("faults", "events", index)
        if not (event.osds or event.hosts or event.racks):
            yield Problem(where, "nobody", "osds, hosts or racks that fail")
        if event.return_s is not None and event.return_s <= event.at_s:
            yield Problem(
                (*where, "return_s"),
                f"{event.return_s:g}",
                f"a time after at_s ({event.at_s:g})",
                ((*where, "at_s"),),
            )
        if cluster.crush_map is not None:
            if event.racks:
                yield Problem((*where, "racks"), "racks with cluster.crush_map", "osds or hosts")
            continue
        for key, (count, name) in counts.items():
            for place, number in enumerate(getattr(event, key)):
                if number >= count:
                    wanted = f"{name} from 0 to {count - 1}" if count else "cluster.racks too"
                    yield Problem((*where, key, place), str(number), wanted, _COUNTS)
    for index, corruption in enumerate(faults.corruptions):
        if cluster.crush_map is None and corruption.osd >= counts["osds"][0]:
            yield Problem(
                ("faults", "corruptions", index, "osd"),
                str(corruption.osd),
                f"an OSD from 0 to {counts['osds'][0] - 1}",
                _COUNTS,
            )


def _drawn(scenario: Scenario) -> Iterator[Problem]:
    assert scenario.faults is not None
    drawn = scenario.faults.drawn
    if drawn is None:
        return
    where: KeyPath = ("faults", "drawn")
    if (drawn.trace is None) == (drawn.lifetime is None):
        got = "neither lifetime nor trace" if drawn.trace is None else "both lifetime and trace"
        yield Problem(where, got, "one of them: faults.drawn.lifetime or faults.drawn.trace")
    if drawn.trace is not None and drawn.downtime is not None:
        yield Problem((*where, "downtime"), "both downtime and trace", "one of them")
    if drawn.trace is not None:
        yield from _file(scenario, (*where, "trace"), drawn.trace)
    for key in ("lifetime", "downtime"):
        given: LifetimeSpec | None = getattr(drawn, key)
        if given is None:
            continue
        numbers = given.model_fields_set - {"distribution"}
        wanted = _NUMBERS[given.distribution]
        if numbers != wanted:
            yield Problem(
                (*where, key),
                f"{given.distribution} with {', '.join(sorted(numbers)) or 'no numbers'}",
                ", ".join(sorted(wanted)),
            )
    if scenario.duration_s is None:
        yield Problem(
            ("workload", "duration_s"),
            "nothing",
            "the run's length: failures are drawn up to its end",
            (where,),
        )


def _replay(scenario: Scenario) -> Iterator[Problem]:
    assert scenario.faults is not None
    if scenario.faults.replay is not None:
        yield from _file(scenario, ("faults", "replay", "trace"), scenario.faults.replay.trace)


def _file(scenario: Scenario, path: KeyPath, name: str) -> Iterator[Problem]:
    if not scenario.has_file(name):
        yield Problem(path, f"{name} (no such file)", "a file, its path relative to the scenario file")


def _overlaps(scenario: Scenario) -> Iterator[Problem]:
    """Say where an OSD fails that has failed already."""
    from stripesim.scenarios.run.failures import Places
    from stripesim.sim.ceph.failures import FaultError
    from stripesim.sim.ceph.failures.schedule import check_failures

    faults, cluster = scenario.faults, scenario.cluster
    assert faults is not None
    places = Places.of(cluster)
    failures = [places.failure(event) for event in faults.events]
    try:
        check_failures(failures, len(places.osd_hosts), cluster.host_count)
    except FaultError as error:
        yield Problem(("faults", "events", error.event, "at_s"), error.got, error.wanted, _COUNTS)


def _room(scenario: Scenario, schemes: Sequence[NumberedScheme]) -> Iterator[Problem]:
    """Say where too few failure domains are left for a scheme once all that stays away is gone."""
    from stripesim.scenarios.run.failures import Places

    faults, cluster = scenario.faults, scenario.cluster
    assert faults is not None
    places = Places.of(cluster)
    gone = [event for event in faults.events if event.return_s is None]
    if not gone:
        return
    away = {osd for event in gone for osd in places.failure(event).osds}
    for item in schemes:
        domain, key = failure_domain(scenario, item.scheme)
        if domain == "rack" and cluster.rack_names is None:
            continue
        left = {one for osd, one in enumerate(domains_of_osds(scenario, domain)) if osd not in away}
        if len(left) < item.scheme.width <= domain_count(scenario, domain):
            last = faults.events.index(gone[-1])
            yield Problem(
                ("faults", "events", last),
                f"{len(left)} {domain}s left with an OSD up, for good",
                f"at least {item.scheme.width}: {item.text} has nowhere else to rebuild; a return_s, or more "
                f"{domain}s",
                (*_COUNTS, key),
            )

"""Rules of `[durability]` that span several keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from stripesim.scenarios.schema.durability import AgeingSpec
from stripesim.scenarios.schema.geometry import NumberedScheme, domain_count
from stripesim.scenarios.schema.keys import Scenario
from stripesim.scenarios.schema.problems import Problem
from stripesim.scenarios.schema.toml_lines import KeyPath


def stands_alone(scenario: Scenario) -> bool:
    """Whether a scenario asks for durability and nothing else: it then needs no workload."""
    named = {"workload", "workloads"} & scenario.model_fields_set
    return scenario.durability is not None and not named


def durability_rules(scenario: Scenario, schemes: Sequence[NumberedScheme]) -> Iterator[Problem]:
    """Rules of `[durability]` that span several keys."""
    spec = scenario.durability
    if spec is None:
        return
    if (spec.afr is None) == (spec.lifetime is None):
        got = "neither afr nor lifetime" if spec.afr is None else "both afr and lifetime"
        yield Problem(_at("afr"), got, "one of durability.afr and durability.lifetime", (_at("lifetime"),))
    if spec.lifetime is not None:
        yield from _lifetime(scenario, spec.lifetime)
    crush = spec.placement == "crush"
    where = f'since durability.placement is "{spec.placement}"'
    for key in ("drives", "drive_bytes"):
        if not crush and getattr(spec, key) is None:
            yield Problem(_at(key), "nothing", f"a number, {where}", (_at("placement"),))
    if crush and spec.drives is not None:
        yield Problem(
            _at("drives"), str(spec.drives), f"no such key, {where}: [cluster] has them", (_at("placement"),)
        )
    if spec.repair == "simulated":
        if not crush:
            yield Problem(
                _at("repair"),
                '"simulated"',
                f'"serial", "parallel" or "shared", {where}',
                (_at("placement"),),
            )
        if spec.repair_bytes_per_s is not None:
            yield Problem(
                _at("repair_bytes_per_s"),
                "a pace",
                'none, since durability.repair is "simulated"',
                (_at("repair"),),
            )
    elif spec.repair_bytes_per_s is None:
        wanted = "a pace of repair in bytes/s" + (', or durability.repair = "simulated"' if crush else "")
        yield Problem(_at("repair_bytes_per_s"), "nothing", wanted, (_at("repair"),))
    if spec.scrub_interval_s is not None and not spec.sector_error_rate:
        yield Problem(
            _at("scrub_interval_s"), str(spec.scrub_interval_s), "durability.sector_error_rate too", ()
        )
    for item in schemes:
        if not crush and spec.drives is not None and item.scheme.width > spec.drives:
            got = f"{item.text} ({item.scheme.width} shards) on {spec.drives} drives"
            yield Problem(("schemes", item.index), got, "at least a drive for each shard", (_at("drives"),))
        if not crush and item.scheme.width == 1 and spec.placement == "declustered":
            yield Problem(("schemes", item.index), item.text, "a scheme with redundancy", (_at("placement"),))
    yield from _bursts(scenario)


def _at(*keys: str | int) -> KeyPath:
    return ("durability", *keys)


def _lifetime(scenario: Scenario, spec: AgeingSpec) -> Iterator[Problem]:
    needed = {
        "exponential": {"scale_s"},
        "weibull": {"scale_s", "shape"},
        "piecewise": {"ages_s", "afrs"},
        "trace": {"trace"},
    }[spec.distribution]
    optional = {"distribution", "age_s"} | (
        {"trace_format", "pieces"} if spec.distribution == "trace" else set()
    )
    given = {key for key in spec.model_fields_set if getattr(spec, key) not in (None, ())}
    of = f'a lifetime "{spec.distribution}"'
    for key in sorted(needed - given):
        yield Problem(_at("lifetime", key), "nothing", f"a value, which {of} has", ())
    for key in sorted(given - needed - optional):
        yield Problem(_at("lifetime", key), str(getattr(spec, key)), f"no such key: {of} has none", ())
    if spec.distribution == "piecewise" and needed <= given:
        rising = all(a < b for a, b in zip(spec.ages_s, spec.ages_s[1:], strict=False))
        if len(spec.ages_s) != len(spec.afrs) or spec.ages_s[0] != 0 or not rising:
            got = f"{list(spec.ages_s)} with {len(spec.afrs)} rates"
            yield Problem(_at("lifetime", "ages_s"), got, "rising ages from 0, as many as afrs", ())
        if not any(spec.afrs):
            yield Problem(_at("lifetime", "afrs"), str(list(spec.afrs)), "a rate above 0 among them", ())
    if spec.trace is not None and not scenario.has_file(spec.trace):
        wanted = "a file, its path relative to the scenario file"
        yield Problem(_at("lifetime", "trace"), f"{spec.trace} (no such file)", wanted, ())


def _bursts(scenario: Scenario) -> Iterator[Problem]:
    spec = scenario.durability
    assert spec is not None
    crush = spec.placement == "crush"
    for index, burst in enumerate(spec.bursts):
        path = _at("bursts", index, "unit")
        if not crush and burst.unit != "drive":
            yield Problem(
                path, f'"{burst.unit}"', f'"drive", since a {spec.placement} pool has no others', ()
            )
            continue
        if crush and scenario.cluster.crush_map is not None:
            # The map says how many there are; whoever reads it checks.
            continue
        if burst.unit == "rack" and scenario.cluster.rack_names is None:
            yield Problem(path, '"rack"', "cluster.racks too: the number of racks is not given", ())
            continue
        domain: Literal["osd", "host", "rack"] = "osd" if burst.unit == "drive" else burst.unit
        count = domain_count(scenario, domain) if crush else spec.drives
        if count is not None and burst.units > count:
            got = f"{burst.units} {burst.unit}s"
            yield Problem(_at("bursts", index, "units"), got, f"at most {count}: there are no more", ())

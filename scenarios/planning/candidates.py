"""Build the candidates of a plan as scenarios, and judge them by closed forms."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final, Literal, NamedTuple

from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.planning.bound import Bound, bounds_of
from stripesim.scenarios.planning.capacity import Capacity, capacity_of, drives_of
from stripesim.scenarios.planning.prices import cost_of
from stripesim.scenarios.schema.keys import Scenario
from stripesim.scenarios.schema.loader import ScenarioError, scenario_from
from stripesim.scenarios.schema.tables import VARIED, PlanSpec
from stripesim.scenarios.schema.units import rate_text
from stripesim.sim.observe.intervals import Interval

#: Maximum size of the grid. Larger ones take minutes before the first simulation.
CANDIDATES_MAX: Final = 2000

State = Literal["met", "failed", "uncertain"]
Side = Literal["or more", "or less"]


class Verdict(NamedTuple):
    """Result for one requirement: key of `[plan]`, state, and finding in a sentence."""

    key: str
    state: State
    words: str


@dataclass
class Candidate:
    """One scheme on one cluster, with everything known about it."""

    scheme: str
    keys: dict[str, Any]
    scenario: Scenario | None
    problem: str = ""
    refused: str | None = None  # Check of the audit that a simulation of it fails.
    capacity: Capacity | None = None
    bounds: tuple[Bound, ...] = ()  # rate that each resource sustains, lowest first
    verdicts: list[Verdict] = field(default_factory=list)
    results: dict[str, Any] = field(default_factory=dict)

    @property
    def possible(self) -> bool:
        """Return True if no requirement is known to fail."""
        return not self.problem and all(
            verdict.state != "failed" for verdict in self.verdicts
        )

    @property
    def meets(self) -> bool:
        """Return True if all requirements are known to be met."""
        return not self.problem and all(
            verdict.state == "met" for verdict in self.verdicts
        )

    @property
    def fails(self) -> list[str]:
        """Descriptions of unmet requirements."""
        prefixes = {"uncertain": "uncertain: ", "failed": ""}
        lines = [
            prefixes[verdict.state] + verdict.words
            for verdict in self.verdicts
            if verdict.state != "met"
        ]
        if self.problem:
            lines.insert(0, self.problem)
        return lines

    def judge(
        self,
        key: str,
        value: Interval | None,
        wanted: float | None,
        factor: float,
        unit: str,
        side: Side,
    ) -> None:
        """Judge a value if the plan has a limit for it."""
        if wanted is not None:
            self.verdicts.append(judge(key, value, wanted, factor, unit, side))

    def to_json(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        empty = dict.fromkeys(("raw_bytes", "usable_bytes_full", "usable_bytes_safe"))
        return {
            "scheme": self.scheme,
            **{json_name(key): value for key, value in self.keys.items()},
            "capacity": self.capacity.to_json() if self.capacity else empty,
            **self.results,
            "bound": self.bounds[0]._asdict() if self.bounds else None,
            "bounds": [bound._asdict() for bound in self.bounds],
            "verdicts": [verdict._asdict() for verdict in self.verdicts],
            "meets": self.meets,
            "fails": self.fails,
            "refused": self.refused,
        }


def candidate_scenario(
    base: Scenario, values: Mapping[str, Any], scheme: str, varied: Mapping[str, Any]
) -> Scenario:
    """Build a scenario with one scheme and other values of `VARIED` keys, validated like a file."""
    top_level = {"generation"} & varied.keys()
    cluster = {key: value for key, value in varied.items() if key not in top_level}
    changed = {
        **values,
        **{key: varied[key] for key in top_level},
        "schemes": [scheme],
        "cluster": {**values.get("cluster", {}), **cluster},
    }
    return scenario_from(
        _without_nulls(changed), label=base.name, base_dir=base.resolve("")
    )


def scenario_of_result(
    base: Scenario, plan: PlanSpec, result: Mapping[str, Any]
) -> Scenario:
    """Return the scenario of a candidate from its JSON, as `Candidate.to_json` returns it."""
    varied = {key: result[json_name(key)] for key in varied_keys(plan)}
    values = base.model_dump(mode="json", exclude_unset=True, exclude={"plan"})
    return candidate_scenario(base, values, result["scheme"], varied)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_nulls(part) for key, part in value.items() if part is not None
        }
    if isinstance(value, list):
        return [_without_nulls(part) for part in value]
    return value


def json_name(key: str) -> str:
    """Return the JSON name of a varied key. `drive` keeps its old name, on which programs rely."""
    return "ssd" if key == "drive" else key


def varied_keys(plan: PlanSpec) -> list[str]:
    """List the keys that a plan varies."""
    return [key for key in VARIED if getattr(plan, key)]


def candidates_of(scenario: Scenario, plan: PlanSpec) -> Iterator[Candidate]:
    """Yield the candidates: schemes in the outer loop, then the varied keys in the order of `VARIED`."""
    varied = {key: getattr(plan, key) for key in varied_keys(plan)}
    count = math.prod(map(len, (scenario.schemes, *varied.values())))
    if count > CANDIDATES_MAX:
        raise scenario.problem(
            "plan", f"{count} candidates", f"at most {CANDIDATES_MAX}"
        )
    cluster = scenario.cluster
    common = {
        "generation": scenario.generation,
        "hosts": cluster.host_count,
        "osds_per_host": cluster.osds_per_host,
        "drive": cluster.drive,
        "public_gbit_per_s": cluster.public_gbit_per_s,
        "pg_num": cluster.pg_num,
    }
    values = scenario.model_dump(mode="json", exclude_unset=True, exclude={"plan"})
    for scheme, *combination in product(scenario.schemes, *varied.values()):
        keys = dict(zip(varied, combination, strict=True))
        try:
            candidate = candidate_scenario(scenario, values, scheme, keys)
        except ScenarioError as error:
            problem = error.faults[0].partition(": ")[2]
            yield Candidate(scheme, common | keys, None, problem=problem)
            continue
        yield Candidate(scheme, common | keys, candidate)


def judge_closed_forms(candidate: Candidate, base: Scenario, plan: PlanSpec) -> None:
    """Compute capacity, bounds, cost and days, and judge the requirements that depend only on them."""
    scenario = candidate.scenario
    if scenario is None:
        return
    try:
        models = build_models(scenario)
        drives = drives_of(scenario, models)
        candidate.capacity = capacity_of(scenario, candidate.scheme, models, drives)
        candidate.bounds = bounds_of(scenario, candidate.scheme)
    except ValueError as error:
        candidate.problem = str(error).splitlines()[0]
        return
    results = candidate.results
    safe = candidate.capacity.usable_bytes_safe
    if plan.prices is not None:
        cost = cost_of(
            scenario,
            base.cluster,
            plan.owned_hosts,
            plan.prices,
            drive_bytes=drives.capacity.drive_bytes if drives.capacity else 0.0,
            drives_per_osd=drives.per_osd,
        )
        results |= cost._asdict()
    if plan.growth_bytes_per_day is not None and safe is not None:
        room_bytes = max(0.0, safe - (plan.stored_bytes or 0.0))
        results["days_until_full"] = room_bytes / plan.growth_bytes_per_day
    requirements: tuple[tuple[str, float | None, float, str, Side], ...] = (
        ("usable_bytes", safe, 1e-12, "TB usable, safe", "or more"),
        (
            "days_until_full",
            results.get("days_until_full"),
            1,
            "days until full",
            "or more",
        ),
        ("cost_max", results.get("cost"), 1, "cost", "or less"),
        ("watts_max", results.get("watts"), 1, "W", "or less"),
    )
    for key, value, factor, unit, side in requirements:
        known = None if value is None else Interval(value, None, None)
        candidate.judge(key, known, getattr(plan, key), factor, unit, side)
    if (
        plan.rate_per_s is not None
        and candidate.bounds
        and candidate.bounds[0].iops < plan.rate_per_s
    ):
        bound = candidate.bounds[0]
        sustained = f"{bound.resource}: full at {rate_text(bound.iops)} requests/s"
        words = f"rate_per_s: {sustained}, wanted {rate_text(plan.rate_per_s)}"
        candidate.verdicts.append(Verdict("rate_per_s", "failed", words))


def judge(
    key: str,
    value: Interval | None,
    wanted: float,
    factor: float,
    unit: str,
    side: Side,
) -> Verdict:
    """Judge a value against a limit, by its confidence interval if it has one."""
    words = _words(key, value, wanted, factor, unit, side)
    if value is None:
        return Verdict(key, "uncertain", words)
    low, high = _ends(value)
    if side == "or more":
        is_met = low >= wanted
        is_missed = high < wanted
    else:
        is_met = high <= wanted
        is_missed = low > wanted
    if is_met:
        return Verdict(key, "met", words)
    return Verdict(key, "failed" if is_missed else "uncertain", words)


def _words(
    key: str,
    value: Interval | None,
    wanted: float,
    factor: float,
    unit: str,
    side: Side,
) -> str:
    """Write a value with its interval, unit and limit."""
    limit = f"wanted {wanted * factor:,.4g}"
    if value is None:
        return f"{key}: not known, {limit} {unit} {side}"
    low, high = _ends(value)
    between = ""
    if low != high:
        between = f" (95 % {low * factor:,.4g} to {high * factor:,.4g})"
    return f"{key}: {value.mean * factor:,.4g} {unit}{between}, {limit} {side}"


def _ends(value: Interval) -> tuple[float, float]:
    """Return the ends of an interval, or the value twice if it has none."""
    low = value.mean if value.low is None else value.low
    high = value.mean if value.high is None else value.high
    return low, high

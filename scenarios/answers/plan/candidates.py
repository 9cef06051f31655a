"""Build the candidates of a plan as scenarios, and judge them by closed forms."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any, Final, Literal, NamedTuple

from stripesim.models.coding import parse_scheme
from stripesim.models.documents import Documented
from stripesim.models.problems import Problem, ScenarioError, problems_of
from stripesim.scenarios.cells.bound import Bound, bounds_of
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.placement import left_without_a_site
from stripesim.scenarios.forms.capacity import (
    Capacity,
    Drives,
    capacity_of,
    drives_of,
    lost_host_words,
    spare_words,
)
from stripesim.scenarios.forms.prices import (
    cost_of,
    hosts_of_domain,
    with_counted_hosts,
    with_next_domain,
)
from stripesim.scenarios.schema.scenario import Scenario, scenario_from
from stripesim.scenarios.schema.tables import GATEWAY_KEYS, VARIED, PlanSpec
from stripesim.scenarios.schema.units import (
    bytes_text,
    counted_text,
    number_text,
    rate_text,
    size_text,
)
from stripesim.sim.observe.intervals import Interval
from stripesim.sim.observe.resource_words import stated_words

#: Maximum size of the grid. Larger ones take minutes before the first simulation.
CANDIDATES_MAX: Final = 2000

# Significant digits of numbers in verdicts.
_DIGITS: Final = 4
#: Key of the verdict about a cluster that cannot be, if its problem names none.
_CLUSTER: Final = "cluster"
# Key of a balancer.
_BALANCER: Final = "cluster.upmap_max_deviation"
# Keys that every name of a candidate contains.
_NAMED: Final = ("hosts", "osds_per_host", "drive", "ssd")

VerdictState = Literal["met", "failed", "uncertain"]
Side = Literal["or more", "or less"]


class Verdict(NamedTuple):
    """Result for one requirement: key of `[plan]`, state, and finding in a sentence.

    A candidate that cannot be built or simulated has one with the scenario's key that is wrong.
    """

    key: str
    state: VerdictState
    words: str


@dataclass
class Candidate(Documented):
    """One scheme on one cluster, with everything known about it."""

    scheme: str
    keys: dict[str, Any]
    scenario: Scenario | None
    refused: str | None = None  # Check of the audit that a simulation of it fails.
    capacity: Capacity | None = None
    bounds: tuple[Bound, ...] = ()  # rate that each resource sustains, lowest first
    verdicts: list[Verdict] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    results: dict[str, Any] = field(default_factory=dict)
    assumptions: list[str] = field(default_factory=list)  # of its own numbers

    in_document = (
        "scheme",
        "**varied",
        ("capacity", "bytes_held"),
        "**results",
        "bound",
        "bounds",
        "verdicts",
        "meets",
        "fails",
        "warnings",
        "refused",
    )

    @property
    def possible(self) -> bool:
        """Return True if no requirement is known to fail."""
        return all(verdict.state != "failed" for verdict in self.verdicts)

    @property
    def meets(self) -> bool:
        """Return True if all requirements are known to be met."""
        return all(verdict.state == "met" for verdict in self.verdicts)

    @property
    def fails(self) -> list[str]:
        """Descriptions of unmet requirements."""
        prefixes = {"uncertain": "uncertain: ", "failed": ""}
        return [
            prefixes[verdict.state] + verdict.words
            for verdict in self.verdicts
            if verdict.state != "met"
        ]

    def rule_out(self, key: str, words: str) -> None:
        """State that the candidate cannot be built or simulated, before all other verdicts."""
        self.verdicts.insert(0, Verdict(key, "failed", words))

    def rule_out_by(self, problem: Problem) -> None:
        """State a problem for which the candidate cannot be built or simulated."""
        self.rule_out(problem.key or _CLUSTER, str(problem))

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

    @property
    def varied(self) -> dict[str, Any]:
        """Values of the varied keys, by their names in JSON."""
        return {json_name(key): value for key, value in self.keys.items()}

    @property
    def bound(self) -> Bound | None:
        """The lowest bound of the rate, None if none is known."""
        return self.bounds[0] if self.bounds else None

    @property
    def bytes_held(self) -> Mapping[str, Any]:
        """Raw and usable bytes, each None if they are not known."""
        if self.capacity is None:
            return dict.fromkeys(
                ("raw_bytes", "usable_bytes_full", "usable_bytes_safe")
            )
        return self.capacity.to_json()


def candidate_scenario(
    base: Scenario, values: Mapping[str, Any], scheme: str, varied: Mapping[str, Any]
) -> Scenario:
    """Build a scenario with one scheme and other values of `VARIED` keys, validated like a file.

    Sites that hold several shards of a group have no balancer, as the simulated one could not place them.
    """
    top_level = {"generation"} & varied.keys()
    of_gateways = {
        key: varied[name] for name, key in GATEWAY_KEYS.items() if name in varied
    }
    cluster = {
        **values.get("cluster", {}),
        **{
            key: value
            for key, value in varied.items()
            if key not in top_level and key not in GATEWAY_KEYS
        },
    }
    if of_gateways:
        cluster["gateways"] = {**cluster.get("gateways", {}), **of_gateways}
    changed = {
        **values,
        **{key: varied[key] for key in top_level},
        "schemes": [scheme],
        "cluster": cluster,
    }
    build = partial(scenario_from, label=base.name, base_dir=base.resolve(""))
    changed = _without_nulls(changed)
    try:
        return build(changed)
    except ScenarioError as error:
        named = {problem.key for problem in error.problems}
        if named != {_BALANCER} or "sites" not in varied:
            raise
    del changed["cluster"]["upmap_max_deviation"]
    return build(changed)


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


def line_name(one: Mapping[str, Any], varied: Sequence[str]) -> str:
    """Name a candidate by its JSON, with every key that the plan varies.

    >>> one = {"scheme": "rs:4,2", "hosts": 6, "osds_per_host": 8, "ssd": "nvme-tlc", "drive_bytes": 4e12}
    >>> line_name(one, ["hosts", "drive_bytes"])
    'rs:4,2 on 6 × 8 nvme-tlc, drives of 4 TB'
    """
    short = f"{one['scheme']} on {one['hosts']} × {one['osds_per_host']} {one['ssd']}"
    further = [with_unit(key, one[key]) for key in varied if key not in _NAMED]
    return ", ".join([short, *further])


def with_unit(key: str, value: Any) -> str:
    """Write a varied value with its unit."""
    text = str(value)
    match key:
        case "drive_bytes":
            text = f"drives of {bytes_text(value)}"
        case "stripe_unit_bytes":
            text = f"stripe unit {size_text(value)}"
        case "public_gbit_per_s" | "private_gbit_per_s":
            text = f"{number_text(value)} Gb/s {key.partition('_')[0]}"
        case "sites" | "cores_per_host":
            text = f"{value} {key.replace('_', ' ')}"
        case "gateways":
            text = counted_text(value, "gateway")
        case "gateway_cores":
            text = f"{value} cores per gateway"
        case "pg_num":
            text = f"{value:,} PGs"
        case "stretch":
            text = "stretch mode" if value else "no stretch mode"
    return text


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
            impossible = Candidate(scheme, common | keys, None)
            impossible.rule_out_by(replace(error.problems[0], place=""))
            yield impossible
            continue
        made = Candidate(scheme, common | keys, candidate)
        if candidate.cluster.upmap_max_deviation != cluster.upmap_max_deviation:
            made.warnings.append(
                "no balancer: a site holds several shards of each group, and the simulated balancer does not "
                "know how many"
            )
        yield made


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
        candidate.rule_out_by(problems_of(error)[0])
        return
    candidate.results |= _costs(candidate, base, plan, drives)
    safe_bytes = candidate.capacity.usable_bytes_safe
    days = _days_until_full(safe_bytes, plan)
    if days is not None:
        candidate.results["days_until_full"] = days
    requirements: tuple[tuple[str, float | None, float, str, Side], ...] = (
        ("days_until_full", days, 1, "days until full", "or more"),
        ("cost_max", candidate.results.get("cost"), 1, "cost", "or less"),
        ("watts_max", candidate.results.get("watts"), 1, "W", "or less"),
    )
    usable = None if safe_bytes is None else Interval(safe_bytes, None, None)
    factor, unit = 1e-12, "TB"
    if plan.held_bytes is not None and plan.held_bytes < 1e12:
        factor, unit = 1e-9, "GB"
    words = f"{unit} usable, safe"
    candidate.judge("usable_bytes", usable, plan.held_bytes, factor, words, "or more")
    for key, value, factor, unit, side in requirements:
        known = None if value is None else Interval(value, None, None)
        candidate.judge(key, known, getattr(plan, key), factor, unit, side)
    _judge_rate_bound(candidate, plan)
    _judge_spare_domains(candidate, plan)
    _judge_site_loss(candidate, plan)


def _costs(
    candidate: Candidate, base: Scenario, plan: PlanSpec, drives: Drives
) -> dict[str, Any]:
    """Return the costs of a candidate, and of one more failure domain if it lacks a spare one."""
    scenario = candidate.scenario
    held = candidate.capacity
    if plan.prices is None or scenario is None or held is None:
        return {}
    cost = partial(
        cost_of,
        owned=with_counted_hosts(base).cluster,
        owned_hosts=plan.owned_hosts,
        owned_gateways=plan.owned_gateways,
        prices=plan.prices,
        drive_bytes=drives.one_bytes,
        owned_drive_bytes=drives_of(base, build_models(base)).one_bytes,
        drives_per_osd=drives.per_osd,
    )
    counted = with_counted_hosts(scenario)
    bought = cost(counted)
    costs = bought._asdict()
    if held.spare_domains < max(1, plan.spare_domains):
        larger = cost(with_next_domain(counted, held))
        costs["next_domain_cost"] = larger.cost - bought.cost
    return costs


def _days_until_full(safe_bytes: float | None, plan: PlanSpec) -> float | None:
    """Return the days until data that grows as the plan says fills the safe capacity."""
    if plan.growth_bytes_per_day is None or safe_bytes is None:
        return None
    room_bytes = max(0.0, safe_bytes - (plan.stored_bytes or 0.0))
    return room_bytes / plan.growth_bytes_per_day


def _judge_rate_bound(candidate: Candidate, plan: PlanSpec) -> None:
    """Rule out a candidate whose bound is below the required rate."""
    bound = candidate.bound
    if plan.rate_per_s is None or bound is None or bound.iops >= plan.rate_per_s:
        return
    full = f"{stated_words(bound.resource)}: full at {rate_text(bound.iops)} requests/s"
    sentence = f"rate_per_s: {full}, wanted {rate_text(plan.rate_per_s)}"
    candidate.verdicts.append(Verdict("rate_per_s", "failed", sentence))


def _judge_site_loss(candidate: Candidate, plan: PlanSpec) -> None:
    """Judge the shards left without any one site, if the plan has a requirement for it."""
    scenario = candidate.scenario
    if plan.site_loss is None or scenario is None:
        return
    scheme = parse_scheme(candidate.scheme)
    without = left_without_a_site(scenario, scheme)
    left = without.shards
    held = candidate.capacity
    assert held is not None
    least = scheme.k
    least_name = "k"
    if plan.site_loss == "serves":
        least = held.min_size
        least_name = "min_size"
        if scenario.cluster.stretch:
            least = 1
            least_name = "min_size without a site, in stretch mode"
    sentence = (
        f"site_loss: {left} of {scheme.width} shards left, "
        f"wanted {least} ({least_name}) or more"
    )
    state: VerdictState = "met" if left >= least else "failed"
    if state == "met" and without.undecodable_groups:
        # Some codes need certain shards, not only a number of them.
        state = "failed"
        groups = counted_text(without.undecodable_groups, "placement group")
        sentence = (
            f"site_loss: {left} of {scheme.width} shards left, from which {candidate.scheme} cannot decode "
            f"{groups}, wanted all decoded"
        )
    candidate.results["shards_without_site"] = left
    candidate.verdicts.append(Verdict("site_loss", state, sentence))


def _judge_spare_domains(candidate: Candidate, plan: PlanSpec) -> None:
    """Judge the failure domains beyond one for each shard, and warn if none is allowed but missing."""
    held = candidate.capacity
    assert held is not None
    if held.width == 1:
        return
    spare = held.spare_domains
    domain = held.domain if spare == 1 else f"{held.domain}s"
    shards = counted_text(held.shards, "shard")
    spare_text = (
        f"{spare} spare {domain} beyond {shards}{held.where} (min_size {held.min_size})"
    )
    if spare < 1:
        width = "size" if held.scheme.startswith("rep:") else "k+m"
        spare_text = f"no spare failure domain: {width} = {domain} ({held.shards})"
        if held.where:
            spare_text = f"no spare host{held.where}: {held.domains} for {shards}"
    sentence = f"spare_domains: {spare_text}, wanted {plan.spare_domains} or more"
    if spare < 1:
        sentence += (
            f"; with one lost, placement groups stay at {held.width - 1} shards (min_size {held.min_size}) "
            "until it is replaced"
        )
    next_words = _next_domain_words(candidate)
    if spare < max(1, plan.spare_domains):
        sentence += f"; {next_words}"
    state: VerdictState = "met" if spare >= plan.spare_domains else "failed"
    candidate.verdicts.append(Verdict("spare_domains", state, sentence))
    if state == "met" and spare < 1:
        candidate.warnings.append(f"{spare_words(held)}; {next_words}")
    if words := lost_host_words(held):
        candidate.warnings.append(words)


def _next_domain_words(candidate: Candidate) -> str:
    """Return a sentence on the cost of one more failure domain."""
    held = candidate.capacity
    scenario = candidate.scenario
    assert held is not None
    assert scenario is not None
    one_more = "one more host"
    if held.domain == "rack":
        hosts = hosts_of_domain(scenario.cluster, held.domain)
        one_more = f"one more rack ({hosts} hosts)"
    if held.where:
        one_more = f"one more host{held.where}"
    cost = candidate.results.get("next_domain_cost")
    if cost is None:
        return f"{one_more} makes one"
    return f"{one_more} costs {number_text(cost, digits=_DIGITS)}"


def judge(
    key: str,
    value: Interval | None,
    wanted: float,
    factor: float,
    unit: str,
    side: Side,
) -> Verdict:
    """Judge a value against a limit, by its confidence interval if it has one."""
    sentence = _judged_sentence(key, value, wanted, factor, unit, side)
    if value is None:
        return Verdict(key, "uncertain", sentence)
    low, high = _ends(value)
    if side == "or more":
        is_met = low >= wanted
        is_missed = high < wanted
    else:
        is_met = high <= wanted
        is_missed = low > wanted
    if is_met:
        return Verdict(key, "met", sentence)
    return Verdict(key, "failed" if is_missed else "uncertain", sentence)


def _judged_sentence(
    key: str,
    value: Interval | None,
    wanted: float,
    factor: float,
    unit: str,
    side: Side,
) -> str:
    """Write a value with its interval, unit and limit."""

    def text(number: float) -> str:
        return number_text(number, factor, digits=_DIGITS)

    limit = f"wanted {text(wanted)}"
    if value is None:
        return f"{key}: not known, {limit} {unit} {side}"
    low, high = _ends(value)
    # Student's interval of few runs may reach below 0, where no requirement has values.
    low = max(0.0, low)
    between = ""
    if text(low) != text(high):
        between = f" (95 % {text(low)} to {text(high)})"
    return f"{key}: {text(value.mean)} {unit}{between}, {limit} {side}"


def _ends(value: Interval) -> tuple[float, float]:
    """Return the ends of an interval, or the value twice if it has none."""
    low = value.mean if value.low is None else value.low
    high = value.mean if value.high is None else value.high
    return low, high

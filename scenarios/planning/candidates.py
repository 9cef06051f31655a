"""The candidates of a plan: each a scenario of its own, with what closed forms say of it."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any, Final, Literal, NamedTuple

from stripesim.models.coding import parse_scheme
from stripesim.scenarios.planning.capacity import Capacity, capacity_of, drives_of
from stripesim.scenarios.run.build import build_models
from stripesim.scenarios.schema.keys import Scenario
from stripesim.scenarios.schema.loader import ScenarioError, scenario_from
from stripesim.scenarios.schema.tables import VARIED, PlanSpec, PricesSpec

#: A grid beyond this is refused: it takes minutes before anything is simulated.
CANDIDATES_MAX: Final = 2000
_WATT_HOURS_PER_YEAR: Final = 8766.0

State = Literal["met", "failed", "uncertain"]


class Verdict(NamedTuple):
    """Whether a candidate meets one requirement: a key of `[plan]`, and what was found, in a sentence."""

    key: str
    state: State
    words: str


class Bound(NamedTuple):
    """The highest rate that one resource allows [1/s], whatever else happens; why: formula and numbers."""

    name: str
    rate_per_s: float
    why: str


@dataclass
class Candidate:
    """One scheme on one cluster, and what is known of it so far."""

    scheme: str
    keys: dict[str, Any]
    scenario: Scenario | None
    problem: str = ""
    capacity: Capacity | None = None
    bounds: tuple[Bound, ...] = ()
    verdicts: list[Verdict] = field(default_factory=list)
    found: dict[str, Any] = field(default_factory=dict)

    @property
    def possible(self) -> bool:
        """Whether no requirement is known to fail."""
        return not self.problem and all(verdict.state != "failed" for verdict in self.verdicts)

    @property
    def meets(self) -> bool:
        """Whether every requirement is known to be met."""
        return not self.problem and all(verdict.state == "met" for verdict in self.verdicts)

    @property
    def fails(self) -> list[str]:
        """What is not met, in words."""
        unmet = [verdict for verdict in self.verdicts if verdict.state != "met"]
        said = [("uncertain: " if one.state == "uncertain" else "") + one.words for one in unmet]
        return [self.problem, *said] if self.problem else said

    def to_json(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        empty = dict.fromkeys(("raw_bytes", "usable_bytes_full", "usable_bytes_safe"))
        return {
            "scheme": self.scheme,
            **self.keys,
            "capacity": self.capacity.to_json() if self.capacity else empty,
            **self.found,
            "bounds": [bound._asdict() for bound in self.bounds],
            "verdicts": [verdict._asdict() for verdict in self.verdicts],
            "meets": self.meets,
            "fails": self.fails,
        }


def of_scheme(base: Scenario, values: Mapping[str, Any], scheme: str, keys: Mapping[str, Any]) -> Scenario:
    """Make a scenario of values with one scheme and other keys of the cluster, checked as a file is."""
    cluster = {**values.get("cluster", {}), **keys}
    values = _without_nulls({**values, "schemes": [scheme], "cluster": cluster})
    return scenario_from(values, label=base.name, base_dir=base.resolve(""))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    return [_without_nulls(part) for part in value] if isinstance(value, list) else value


def candidates_of(scenario: Scenario, plan: PlanSpec) -> Iterator[Candidate]:
    """List the candidates: schemes outermost, then the varied keys in the order of `VARIED`."""
    varied = {key: getattr(plan, key) for key in VARIED if getattr(plan, key)}
    count = math.prod(map(len, (scenario.schemes, *varied.values())))
    if count > CANDIDATES_MAX:
        raise scenario.problem("plan", f"{count} candidates", f"at most {CANDIDATES_MAX}")
    cluster = scenario.cluster
    common = {
        "hosts": cluster.host_count,
        "osds_per_host": cluster.osds_per_host,
        "ssd": cluster.ssd,
        "public_gbit_per_s": cluster.public_gbit_per_s,
        "pg_num": cluster.pg_num,
    }
    values = scenario.model_dump(mode="json", exclude_unset=True, exclude={"plan"})
    for scheme, *chosen in product(scenario.schemes, *varied.values()):
        keys = dict(zip(varied, chosen, strict=True))
        try:
            yield Candidate(scheme, common | keys, of_scheme(scenario, values, scheme, keys))
        except ScenarioError as error:
            yield Candidate(scheme, common | keys, None, problem=error.faults[0].partition(": ")[2])


def bounds_of(scenario: Scenario, scheme_name: str) -> tuple[Bound, ...]:
    """Work out the rates that wires and drives allow at most, from bytes alone.

    A request of :math:`b` bytes, of which a share :math:`w` are writes, sends at least :math:`b` bytes over
    the hosts' public network one way, :math:`w b (n - 1) / k` over the private one and :math:`w b n / k` to
    drives, for a code of :math:`n` shards, :math:`k` of them data (copies: :math:`k = 1`). Headers, partial
    stripes, logs and processors only lower what is possible, so these are upper bounds. Shards on the host
    of the primary do not cross the wire; where domains are smaller than hosts the private bound is left out.
    """
    load, cluster = scenario.workload, scenario.cluster
    if scenario.workloads or load.kind == "trace" or scheme_name == "none" or cluster.crush_map is not None:
        return ()
    scheme, device = parse_scheme(scheme_name), build_models(scenario).ssd
    size, per_byte, drives = min(load.block_sizes_bytes), scheme.storage_overhead, cluster.osd_count
    mixes = [float(op == "read") for op in load.ops] if load.read_fraction is None else [load.read_fraction]
    on_hosts = "osd" not in (cluster.failure_domain_erasure, cluster.failure_domain_replicated)

    def drive_s(reads: float) -> float:
        # Bytes at the rate of large transfers.
        ns_per_byte = reads * device.read_ns_per_byte + (1 - reads) * per_byte * device.write_ns_per_byte
        return size * ns_per_byte / device.servers * 1e-9

    # Each cell must be served, so the worst mix decides.
    public = max(size * max(reads, 1 - reads) for reads in mixes)
    private = max((1 - reads) * size * (scheme.width - 1) / scheme.width * per_byte for reads in mixes)
    busy_s = max(map(drive_s, mixes))
    found = []
    for name, demand, gbit in (
        ("public network", public, cluster.public_gbit_per_s),
        ("private network", private if on_hosts else 0.0, cluster.private_gbit_per_s),
    ):
        rate = cluster.host_count * gbit * 1e9 / 8
        if demand:
            why = f"{rate / 1e9:.4g} GB/s of all hosts / {demand:,.0f} B a request"
            found.append(Bound(name, rate / demand, why))
    if busy_s:
        why = f"{drives} drives / {busy_s * 1e6:.4g} µs of a drive for each request"
        found.append(Bound("drives", drives / busy_s, why))
    return tuple(found)


def price(
    scenario: Scenario, prices: PricesSpec, drive_bytes: float | None, per_osd: int
) -> dict[str, float]:
    """Add up what a cluster costs and draws."""
    cluster = scenario.cluster
    drives = cluster.osd_count * per_osd
    watts = cluster.host_count * prices.host_watts + drives * prices.drive_watts
    gbit = cluster.public_gbit_per_s + cluster.private_gbit_per_s
    cost = cluster.host_count * (prices.host + gbit * prices.network_per_gbit)
    cost += drives * (prices.drive + prices.drive_per_tb * (drive_bytes or 0.0) / 1e12)
    cost += watts / 1000 * _WATT_HOURS_PER_YEAR * prices.years * prices.kwh
    return {"cost": cost, "watts": watts}


def judge_closed_forms(candidate: Candidate, plan: PlanSpec) -> None:
    """Fill in capacity, bounds, cost and days, and judge the requirements that rest on them alone."""
    scenario = candidate.scenario
    if scenario is None:
        return
    try:
        models = build_models(scenario)
        drives = drives_of(scenario, models)
        candidate.capacity = capacity_of(scenario, candidate.scheme, models, drives)
    except ValueError as error:
        candidate.problem = str(error).splitlines()[0]
        return
    candidate.bounds = bounds_of(scenario, candidate.scheme)
    found, safe = candidate.found, candidate.capacity.usable_bytes_safe
    if plan.prices is not None:
        drive_bytes = drives.capacity.drive_bytes if drives.capacity else None
        found |= price(scenario, plan.prices, drive_bytes, drives.per_osd)
    if plan.growth_bytes_per_day is not None and safe is not None:
        found["days_until_full"] = (safe - (plan.stored_bytes or 0.0)) / plan.growth_bytes_per_day
    for key, value, judge, factor, unit in (
        ("usable_bytes", safe, at_least, 1e-12, "TB usable, safe"),
        ("days_until_full", found.get("days_until_full"), at_least, 1.0, "days until full"),
        ("cost_max", found.get("cost"), at_most, 1.0, "cost"),
        ("watts_max", found.get("watts"), at_most, 1.0, "W"),
    ):
        wanted = getattr(plan, key)
        if wanted is not None:
            candidate.verdicts.append(judge(key, value, wanted, factor, unit))
    for bound in candidate.bounds if plan.rate_per_s is not None else ():
        if plan.rate_per_s is not None and bound.rate_per_s < plan.rate_per_s:
            most = f"{bound.rate_per_s:,.0f} requests a second at most, wanted {plan.rate_per_s:,.0f}"
            candidate.verdicts.append(Verdict("rate_per_s", "failed", f"{bound.name}: allows {most}"))


def _verdict(
    most: bool, key: str, value: float | None, wanted: float, factor: float, unit: str, *ends: float | None
) -> Verdict:
    """Judge a value that must reach a bound, or not exceed it, by the ends of its interval if it has one."""
    side, wanted_words = "or less" if most else "or more", f"wanted {wanted * factor:,.4g}"
    if value is None:
        return Verdict(key, "uncertain", f"{key}: not known, {wanted_words} {unit} {side}")
    low, high = (value if end is None else end for end in ends or (None, None))
    met, failed = (high <= wanted, low > wanted) if most else (low >= wanted, high < wanted)
    between = "" if low == high else f" (95 % {low * factor:,.4g} to {high * factor:,.4g})"
    words = f"{key}: {value * factor:,.4g} {unit}{between}, {wanted_words} {side}"
    return Verdict(key, "met" if met else "failed" if failed else "uncertain", words)


at_least: Final = partial(_verdict, False)
at_most: Final = partial(_verdict, True)

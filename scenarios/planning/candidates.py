"""The candidates of a plan: each a scenario of its own, with what closed forms say of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final, Literal

from stripesim.models.coding import parse_scheme
from stripesim.scenarios.planning.capacity import Capacity, capacity_of, drives_of
from stripesim.scenarios.run.build import build_models
from stripesim.scenarios.schema.keys import Scenario
from stripesim.scenarios.schema.loader import ScenarioError, scenario_from
from stripesim.scenarios.schema.plan import VARIED, PlanSpec, PricesSpec

#: A grid beyond this is refused: it takes minutes before anything is simulated.
CANDIDATES_MAX: Final = 2000
_WATT_HOURS_PER_YEAR: Final = 8766.0

State = Literal["met", "failed", "uncertain"]


@dataclass(frozen=True)
class Verdict:
    """Whether a candidate meets one requirement.

    key: key of `[plan]`; words: the requirement and what was found, in a sentence.
    """

    key: str
    state: State
    words: str


@dataclass(frozen=True)
class Bound:
    """The highest rate that one resource allows, whatever else happens.

    rate_per_s: requests a second [1/s]; why: the formula, with its numbers.
    """

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
        said = [self.problem] if self.problem else []
        for verdict in self.verdicts:
            if verdict.state != "met":
                said.append(("uncertain: " if verdict.state == "uncertain" else "") + verdict.words)
        return said

    def to_json(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        empty = {"raw_bytes": None, "usable_bytes_full": None, "usable_bytes_safe": None}
        return {
            "scheme": self.scheme,
            **self.keys,
            "capacity": self.capacity.to_json() if self.capacity else empty,
            **self.found,
            "bounds": [vars(bound) for bound in self.bounds],
            "verdicts": [vars(verdict) for verdict in self.verdicts],
            "meets": self.meets,
            "fails": self.fails,
        }


def with_keys(scenario: Scenario, scheme: str, keys: Mapping[str, Any]) -> Scenario:
    """Return a scenario of one scheme with other keys of its cluster, checked as a file is."""
    values = scenario.model_dump(mode="json", exclude_unset=True, exclude={"plan"})
    values["schemes"] = [scheme]
    values["cluster"] = {**values.get("cluster", {}), **keys}
    return scenario_from(_without_nulls(values), label=scenario.name, base_dir=scenario.resolve(""))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    return [_without_nulls(part) for part in value] if isinstance(value, list) else value


def candidates_of(scenario: Scenario, plan: PlanSpec) -> Iterator[Candidate]:
    """List the candidates: schemes outermost, then the varied keys in the order of `VARIED`."""
    varied = {key: getattr(plan, key) for key in VARIED if getattr(plan, key)}
    count = len(scenario.schemes)
    for values in varied.values():
        count *= len(values)
    if count > CANDIDATES_MAX:
        raise scenario.problem("plan", f"{count} candidates", f"at most {CANDIDATES_MAX}")
    cluster = scenario.cluster
    for scheme in scenario.schemes:
        for chosen in product(*varied.values()):
            keys = dict(zip(varied, chosen, strict=True))
            shown = {
                "hosts": cluster.host_count, "osds_per_host": cluster.osds_per_host, "ssd": cluster.ssd,
                "public_gbit_per_s": cluster.public_gbit_per_s, "pg_num": cluster.pg_num, **keys,
            }  # fmt: skip
            try:
                yield Candidate(scheme, shown, with_keys(scenario, scheme, keys))
            except ScenarioError as error:
                yield Candidate(scheme, shown, None, problem=error.faults[0].partition(": ")[2])


def bounds_of(scenario: Scenario, scheme_name: str) -> tuple[Bound, ...]:
    """Work out the rates that wires and drives allow at most, from bytes alone.

    Notes
    -----
    A request of :math:`b` bytes, of which a share :math:`w` are writes, sends at least :math:`b` bytes over
    the hosts' public network one way, :math:`w b (n - 1) / k` over the private one and :math:`w b n / k` to
    drives, for a code of :math:`n` shards, :math:`k` of them data (copies: :math:`k = 1`). Headers, partial
    stripes, logs and processors only lower what is possible, so these are upper bounds. Shards on the host
    of the primary do not cross the wire; where domains are smaller than hosts the private bound is left out.
    """
    load, cluster = scenario.workload, scenario.cluster
    if scenario.workloads or load.kind == "trace" or scheme_name == "none" or cluster.crush_map is not None:
        return ()
    scheme, models = parse_scheme(scheme_name), build_models(scenario)
    size = min(load.block_sizes_bytes)
    mixes = (
        [load.read_fraction] if load.read_fraction is not None else [float(op == "read") for op in load.ops]
    )
    per_byte = scheme.storage_overhead
    osds = cluster.osd_count
    public = cluster.host_count * cluster.public_gbit_per_s * 1e9 / 8
    # Each cell must be served, so the worst mix decides.
    found = []
    for name, bytes_of in (
        ("public network", lambda reads: size * max(reads, 1 - reads)),
        ("private network", lambda reads: (1 - reads) * size * (scheme.width - 1) / scheme.width * per_byte),
        ("drives", lambda reads: _drive_seconds(models, size, reads, per_byte)),
    ):
        demand = max(bytes_of(reads) for reads in mixes)
        if not demand:
            continue
        if name == "drives":
            rate = osds / demand
            why = f"{osds} drives / {demand * 1e6:.4g} µs of a drive for each request"
        elif name == "private network":
            if "osd" in (cluster.failure_domain_erasure, cluster.failure_domain_replicated):
                continue
            private = cluster.host_count * cluster.private_gbit_per_s * 1e9 / 8
            rate, why = private / demand, f"{private / 1e9:.4g} GB/s of all hosts / {demand:,.0f} B a request"
        else:
            rate, why = public / demand, f"{public / 1e9:.4g} GB/s of all hosts / {demand:,.0f} B a request"
        found.append(Bound(name, rate, why))
    return tuple(found)


def _drive_seconds(models: Any, size: int, reads: float, per_byte: float) -> float:
    """Time of one drive that a request takes at least [s]: bytes at the rate of large transfers."""
    device = models.ssd
    nanoseconds = size * (reads * device.read_ns_per_byte + (1 - reads) * per_byte * device.write_ns_per_byte)
    return float(nanoseconds / device.servers * 1e-9)


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
        held = candidate.capacity = capacity_of(scenario, candidate.scheme, models, drives)
    except ValueError as error:
        candidate.problem = str(error).splitlines()[0]
        return
    candidate.bounds = bounds_of(scenario, candidate.scheme)
    found, safe = candidate.found, held.usable_bytes_safe
    if plan.prices is not None:
        found |= price(
            scenario, plan.prices, drives.capacity.drive_bytes if drives.capacity else None, drives.per_osd
        )
    if plan.growth_bytes_per_day is not None and safe is not None:
        found["days_until_full"] = (safe - (plan.stored_bytes or 0.0)) / plan.growth_bytes_per_day
    for key, value, factor, unit in (
        ("usable_bytes", safe, 1e-12, "TB usable, safe"),
        ("days_until_full", found.get("days_until_full"), 1.0, "days until full"),
    ):
        wanted = getattr(plan, key)
        if wanted is not None:
            candidate.verdicts.append(at_least(key, value, wanted, factor, unit))
    for key, name, unit in (("cost_max", "cost", "cost"), ("watts_max", "watts", "W")):
        wanted = getattr(plan, key)
        if wanted is not None:
            candidate.verdicts.append(at_most(key, found[name], wanted, 1.0, unit))
    if plan.rate_per_s is not None:
        for bound in candidate.bounds:
            if bound.rate_per_s < plan.rate_per_s:
                words = (
                    f"{bound.name}: allows {bound.rate_per_s:,.0f} requests a second at most, wanted "
                    f"{plan.rate_per_s:,.0f}"
                )
                candidate.verdicts.append(Verdict("rate_per_s", "failed", words))


def at_least(
    key: str, value: float | None, wanted: float, factor: float, unit: str, low: float | None = None,
    high: float | None = None,
) -> Verdict:  # fmt: skip
    """Judge a value that must reach a bound, by its interval where it has one."""
    if value is None:
        return Verdict(key, "uncertain", f"{key}: not known, wanted {wanted * factor:,.4g} {unit} or more")
    low, high = value if low is None else low, value if high is None else high
    state: State = "met" if low >= wanted else "failed" if high < wanted else "uncertain"
    return Verdict(key, state, _words(key, value, wanted, factor, unit, low, high, "or more"))


def at_most(
    key: str, value: float | None, wanted: float, factor: float, unit: str, low: float | None = None,
    high: float | None = None,
) -> Verdict:  # fmt: skip
    """Judge a value that must not exceed a bound, by its interval where it has one."""
    if value is None:
        return Verdict(key, "uncertain", f"{key}: not known, wanted {wanted * factor:,.4g} {unit} or less")
    low, high = value if low is None else low, value if high is None else high
    state: State = "met" if high <= wanted else "failed" if low > wanted else "uncertain"
    return Verdict(key, state, _words(key, value, wanted, factor, unit, low, high, "or less"))


def _words(
    key: str, value: float, wanted: float, factor: float, unit: str, low: float, high: float, side: str
) -> str:
    between = "" if low == high else f" (95 % {low * factor:,.4g} to {high * factor:,.4g})"
    return f"{key}: {value * factor:,.4g} {unit}{between}, wanted {wanted * factor:,.4g} {side}"

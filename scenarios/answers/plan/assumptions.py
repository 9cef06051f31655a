"""Assumptions behind the numbers of a plan."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stripesim.scenarios.answers.durability.durability import DETECTION_S, parity_notes
from stripesim.scenarios.answers.plan.candidate_runs import (
    AFR,
    SERVED,
    content_of_runs,
    runs_min,
)
from stripesim.scenarios.answers.plan.candidates import Candidate, line_name
from stripesim.scenarios.cells.failures import recovery_sync_words
from stripesim.scenarios.cells.notes import (
    client_notes,
)
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.tables import PlanSpec
from stripesim.sim.observe.intervals import (
    NARROW_RUNS_MAX,
)


def assumptions_of(scenario: Scenario, plan: PlanSpec) -> list[str]:
    """List the assumptions behind the numbers."""
    assumptions = [
        "usable_bytes_safe = raw × (1 − largest domain) × nearfull ratio / overhead / padding / imbalance, "
        "how full the fullest OSD then is over the mean, with the groups placed again. Without a spare "
        "domain, the overhead is that of the shards left. Objects are padded to whole stripes. Metadata "
        "and other pools are not included",
        f"rates and latencies: mean over {_narrow_words(plan)} with a 95 % interval (Student's t), for "
        "the slowest kind of request and the one with the highest latency",
        "rebuild_s: an idle cluster rebuilds a sample of objects, extrapolated to an OSD at the "
        f"nearfull ratio; {_sync_words(scenario, plan)}",
    ]
    assumptions.append(_rate_assumption(scenario))
    if scenario.durability is None:
        assumptions.append(
            f"nines: over one year, drives fail independently at {100 * AFR:.1f} % per year, and repair "
            f"starts after {DETECTION_S:g} s, without bursts and latent errors. Set [durability] to change "
            "this"
        )
    assumptions += parity_notes(scenario.schemes)
    assumptions += client_notes(scenario)
    if plan.rate_per_s is not None:
        assumptions.append(
            f"a rate counts as served if at least {100 * SERVED:.0f} % of it is"
        )
    if plan.p99_recovery_ms is not None:
        assumptions.append(
            "p99 during recovery: of requests issued during recovery. OSD 0 is lost at the start, and the "
            "image's data on it is rebuilt"
        )
    return assumptions


def price_warnings(scenario: Scenario, plan: PlanSpec) -> Iterator[str]:
    """Name what candidates have more of at no higher price. Of equal costs, the lower latency counts."""
    prices = plan.prices
    if prices is None:
        return
    included = scenario.cluster.cores_per_host
    yield from _core_warnings("host", plan.cores_per_host, included, prices.core)
    own_cores = scenario.cluster.gateways.cores
    if own_cores is not None and scenario.cluster.gateways.place == "own":
        yield from _core_warnings(
            "gateway", plan.gateway_cores, own_cores, prices.gateway_core
        )
    if prices.kwh and not prices.years:
        yield "plan.prices.years: not stated, so power costs nothing"
    if prices.years and not prices.kwh:
        yield "plan.prices.kwh: not stated, so power costs nothing"
    if prices.kwh and not prices.has_power:
        yield "plan.prices.host_watts and drive_watts: not stated, so power costs nothing"
    rates = (plan.public_gbit_per_s, plan.private_gbit_per_s)
    if max(map(len, rates)) > 1 and not prices.network_per_gbit:
        yield "plan.prices.network_per_gbit: not stated, so faster networks cost nothing"
    if len(plan.gateways) > 1 and not prices.gateway:
        yield "plan.prices.gateway: not stated, so more gateways cost nothing"


def _core_warnings(
    machine: str, tried: Sequence[int], included: int, price: float | None
) -> Iterator[str]:
    """Name cores without a price: all of a new machine, or those that its own price includes."""
    most, least = max(tried, default=0), min(tried, default=0)
    if least == most:
        return
    key = "core" if machine == "host" else f"{machine}_core"
    if price is None:
        yield (
            f"plan.prices.{key}: not stated, so a new {machine} with {most} cores costs as much as one with "
            f"{least}"
        )
    elif least < included:
        stated = "cluster.cores_per_host"
        if machine == "gateway":
            stated = "cluster.gateways.cores"
        yield (
            f"plan.prices.{machine}: the price of a {machine} with {included} cores ({stated}), so one with "
            f"{least} costs as much. State {stated} = {least}, and the price with so many"
        )


def own_assumptions(
    every: Sequence[Candidate],
    documents: Mapping[int, Mapping[str, Any]],
    varied: Sequence[str],
) -> Iterator[str]:
    """Name the candidates that each assumption about some of them concerns."""
    names: dict[str, list[str]] = {}
    for one in every:
        for line in one.assumptions:
            names.setdefault(line, []).append(line_name(documents[id(one)], varied))
    for line, (first, *others) in names.items():
        more = f" and {len(others)} more" if others else ""
        yield f"{first}{more}: {line}"


def _sync_words(scenario: Scenario, plan: PlanSpec) -> str:
    """Return a note on how long recovery waits for the log, by the candidates' drives."""
    if plan.drive:
        return (
            "each object that recovers waits for a sync of the log (cluster.recovery_sync_ms, or the "
            "drive's own)"
        )
    return recovery_sync_words(scenario)


def seeds_words(plan: PlanSpec) -> str:
    """Return how many seeds each candidate runs under."""
    if plan.interval_percent is None:
        return f"{plan.replications} seeds"
    return f"{runs_min(plan)} to {NARROW_RUNS_MAX} seeds"


def _narrow_words(plan: PlanSpec) -> str:
    """Return a note on how many seeds each candidate runs under, and until when."""
    if plan.interval_percent is None:
        return seeds_words(plan)
    return f"{seeds_words(plan)}, until half the interval is at most {plan.interval_percent:g} % of the mean,"


def equal_latencies(plan: PlanSpec, every: Sequence[Candidate]) -> Iterator[str]:
    """Explain a p99 that clusters share although each has runs of its own.

    All candidates draw the same requests and service times (common random numbers). Where hardly any request
    waits, the slowest percent are the same requests with the same service times on every cluster.
    """
    if plan.rate_per_s is None:
        return
    alike: dict[tuple[str, float], list[Candidate]] = {}
    for one in every:
        p99_ns = one.results["latency_p99_ns"]
        if p99_ns is not None and one.bound is not None:
            alike.setdefault((one.scheme, p99_ns), []).append(one)
    for (scheme, _), candidates in alike.items():
        runs = {content_of_runs(one.scenario) for one in candidates if one.scenario}
        if len(runs) > 1:
            lowest = min(one.bound.iops for one in candidates if one.bound)
            yield (
                f"{len(candidates)} clusters with {scheme} have the same p99, although each was simulated: "
                f"at {100 * plan.rate_per_s / lowest:.1f} % of their bounds or less, the slowest requests "
                "wait for no other, and all clusters draw the same service times (common random numbers)"
            )


def _rate_assumption(scenario: Scenario) -> str:
    """Name the rate of rebuilds that the nines assume."""
    spec = scenario.durability
    if spec is not None and spec.repair_bytes_per_s is not None:
        return (
            "nines: lost drives are rebuilt at durability.repair_bytes_per_s, not at the simulated rate of "
            "rebuild_s"
        )
    return "nines: lost drives are rebuilt at the simulated rate of rebuild_s, as in `stripesim durability`"

"""Weigh the duration of changes against the latency of clients, and recommend settings by a stated rule."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from stripesim.scenarios.answers.rehearse.variants import Variant
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.units import duration_text, number_text

#: Largest p99 during changes that the rule accepts, in multiples of the p99 before them.
P99_FACTOR_MAX: Final = 2.0

_RULE: Final = (
    "the shortest duration whose p99 during the changes stays within {limit}, without a restart of OSDs; "
    "settings whose duration differs by less than the intervals count as equally fast, and of those the "
    "cluster's own come first, then the lowest p99"
)


def trade_off(
    scenario: Scenario,
    variants: Sequence[Variant],
    profiles: Sequence[Sequence[Mapping[str, Any]]],
) -> dict[str, Any] | None:
    """Return duration and p99 of all changes for each setting, and the recommended one.

    Parameters
    ----------
    scenario
        The scenario. Its goal for latency, ``plan.p99_recovery_ms`` or ``plan.p99_ms``, replaces the rule's.
    variants
        The settings, the cluster's own first.
    profiles
        Metrics of each change (outer) with each setting (inner).

    Returns
    -------
    dict or None
        ``points``, ``rule``, ``recommended`` (index of a point, None if none meets the limit), ``sentence``.
        None if a change has no duration or clients are not measured.
    """
    points = []
    for number, variant in enumerate(variants):
        point = _point(variant, [of_change[number] for of_change in profiles])
        if point is not None:
            points.append(point)
    if not points or len(points) < len(variants):
        return None
    for point in points:
        point["name"] = settings_text(point, points)
    limit_ns, limit_text = _limit(scenario, points[0])
    recommended = _recommended(points, limit_ns)
    return {
        "points": points,
        "latency_p99_limit_ns": limit_ns,
        "rule": _RULE.format(limit=limit_text),
        "recommended": recommended,
        "sentence": _sentence(points, recommended, limit_text)
        + _doubt(points, recommended, limit_ns),
    }


def _point(
    variant: Variant, of_changes: Sequence[Mapping[str, Any]]
) -> dict[str, Any] | None:
    """Sum durations over all changes. Latencies are those of the slowest change."""
    needed = [
        profile[name]
        for profile in of_changes
        for name in ("duration_s", "latency_p99_ns")
    ]
    if None in needed or of_changes[0]["before"]["latency_p99_ns"] is None:
        return None
    slowest = max(of_changes, key=lambda profile: float(profile["latency_p99_ns"]))
    return {
        "profile": variant.profile,
        "max_backfills": variant.max_backfills_count,
        "needs_restart": not variant.needs_no_restart,
        "duration_s": sum(profile["duration_s"] for profile in of_changes),
        "duration_low_s": _sum(of_changes, "simulated_low_s"),
        "duration_high_s": _sum(of_changes, "simulated_high_s"),
        "iops": min(profile["iops"] for profile in of_changes),
        "latency_p99_ns": slowest["latency_p99_ns"],
        "latency_p99_low_ns": slowest["latency_p99_low_ns"],
        "latency_p99_high_ns": slowest["latency_p99_high_ns"],
        "before_iops": of_changes[0]["before"]["iops"],
        "before_latency_p99_ns": of_changes[0]["before"]["latency_p99_ns"],
    }


def _sum(of_changes: Sequence[Mapping[str, Any]], name: str) -> float | None:
    """Sum ends of intervals: a bound, since the changes' errors would partly cancel."""
    ends = [profile[name] for profile in of_changes]
    return None if None in ends else sum(ends)


def _limit(scenario: Scenario, own: Mapping[str, Any]) -> tuple[float, str]:
    plan = scenario.plan
    if plan is not None:
        for key in ("p99_recovery_ms", "p99_ms"):
            goal_ms = getattr(plan, key)
            if goal_ms is not None:
                return goal_ms * 1e6, f"plan.{key} = {goal_ms:g} ms"
    limit_ns = P99_FACTOR_MAX * own["before_latency_p99_ns"]
    return limit_ns, f"{P99_FACTOR_MAX:g} times the p99 before"


def _recommended(points: Sequence[Mapping[str, Any]], limit_ns: float) -> int | None:
    allowed = [
        index
        for index, point in enumerate(points)
        if not point["needs_restart"] and point["latency_p99_ns"] <= limit_ns
    ]
    if not allowed:
        return None
    fastest = min(allowed, key=lambda index: float(points[index]["duration_s"]))
    as_fast = [
        index for index in allowed if not _is_slower(points[index], points[fastest])
    ]
    # The own settings are the first point.
    if as_fast[0] == 0:
        return 0
    return min(as_fast, key=lambda index: float(points[index]["latency_p99_ns"]))


def _is_slower(point: Mapping[str, Any], fastest: Mapping[str, Any]) -> bool:
    """Return True if a point takes longer than the fastest by more than both intervals."""
    low_s = point["duration_low_s"]
    high_s = fastest["duration_high_s"]
    if low_s is None or high_s is None:
        return bool(point["duration_s"] > fastest["duration_s"])
    return bool(low_s > high_s)


def settings_text(point: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> str:
    """Name the settings of a point, with ``osd_max_backfills`` where points differ in nothing else."""
    varies = len({other["max_backfills"] for other in points}) > 1
    if not varies or point["profile"] != points[0]["profile"]:
        return str(point["profile"])
    return f"{point['profile']}, osd_max_backfills {point['max_backfills']}"


def _sentence(
    points: Sequence[Mapping[str, Any]], recommended: int | None, limit_text: str
) -> str:
    own = points[0]
    named_point = own if recommended is None else points[recommended]
    name = named_point["name"]
    before = number_text(own["before_latency_p99_ns"], 1e-6)
    during = number_text(named_point["latency_p99_ns"], 1e-6)
    text = f"{name}: {duration_text(named_point['duration_s'])}, p99 {during} ms against {before} ms before"
    if recommended is None:
        calm = min(points, key=lambda point: float(point["latency_p99_ns"]))
        text += f"; no setting stays within {limit_text}"
        if calm["latency_p99_ns"] >= own["latency_p99_ns"]:
            return text
        calm_p99 = number_text(calm["latency_p99_ns"], 1e-6)
        return (
            f"{text}: {calm['name']} comes closest with {calm_p99} ms in "
            f"{duration_text(calm['duration_s'])}"
        )
    if named_point is not own:
        text += f", instead of {duration_text(own['duration_s'])} with {own['name']}"
    others = [point for point in points if point is not named_point]
    faster = [point for point in others if _is_slower(named_point, point)]
    if not faster:
        return f"{text}; no other setting is faster by more than the intervals"
    best = min(faster, key=lambda point: float(point["duration_s"]))
    saved = duration_text(named_point["duration_s"] - best["duration_s"])
    cost = number_text(best["latency_p99_ns"], 1e-6)
    restart = ""
    if best["needs_restart"]:
        restart = " and a restart of all OSDs"
    return f"{text}; {best['name']} saves {saved} and costs a p99 of {cost} ms{restart}"


def _doubt(
    points: Sequence[Mapping[str, Any]], recommended: int | None, limit_ns: float
) -> str:
    """Return a sentence if the recommended settings might exceed the limit, else nothing."""
    if recommended is None:
        return ""
    high_ns = points[recommended]["latency_p99_high_ns"]
    if high_ns is None:
        return ". Too few requests were simulated for an interval of this p99"
    if high_ns > limit_ns:
        high = number_text(high_ns, 1e-6)
        return f". This p99 may be as high as {high} ms, over the limit of {number_text(limit_ns, 1e-6)} ms"
    return ""

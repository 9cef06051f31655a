"""Summarise a failure trace, including how failures of a node or rack cluster in time."""

from typing import Any, Literal

import numpy as np
import polars as pl

from stripesim.traces.failures.columns import HOUR_S, YEAR_S, FailureTrace

WITHIN_S: dict[str, int] = {
    "minute": 60,
    "hour": 3600,
    "day": 86400,
    "30 days": 30 * 86400,
}
"""Intervals within which failures count as correlated, by name."""

SHUFFLES = 20
"""Number of random permutations that estimate the share expected by chance; fewer for many failures."""

SHUFFLED_MAX = 400_000
"""Total number of permuted failures. Beyond it, the mean over few permutations is precise enough."""

REASONS_SHOWN = 10

MISSING_MAX = 0.05
"""Missing times up for each recorded one that ended, above which times to failure are clearly too short."""


def correlated_share(
    trace: FailureTrace, group: Literal["node", "rack"], within_s: float
) -> float | None:
    """Return the share of failures with another one in the same group shortly before or after.

    Parameters
    ----------
    trace
        Failure trace. Failures with an unknown group are ignored.
    group
        ``node`` or ``rack``.
    within_s
        Longest time between two correlated failures [s]. Both may be of the same component.

    Returns
    -------
    float or None
        Share, 0 to 1, or None if no failure has a known group.

    References
    ----------
    Han et al.: An in-depth study of correlated failures in production SSD-based data centers, FAST 2021,
    section 3 (relative percentage of failures within a time).
    """
    rows = _failures(trace, group)
    if rows.height:
        return _share(rows["group"].to_numpy(), rows["time_s"].to_numpy(), within_s)
    return None


def expected_share(
    trace: FailureTrace, group: Literal["node", "rack"], within_s: float
) -> float | None:
    """Return the mean of `correlated_share` if the times are randomly permuted among the failures.

    Parameters and the result are those of `correlated_share`.
    """
    rows = _failures(trace, group)
    if not rows.height:
        return None
    rng = np.random.default_rng(1)
    groups = rows["group"].to_numpy()
    times = rows["time_s"].to_numpy()
    count = max(2, min(SHUFFLES, SHUFFLED_MAX // len(times)))
    return float(
        np.mean(
            [_share(groups, rng.permutation(times), within_s) for _ in range(count)]
        )
    )


def failure_info(trace: FailureTrace) -> dict[str, Any]:
    """Summarise a failure trace, as ``stripesim trace info`` shows it.

    Parameters
    ----------
    trace
        Failure trace.

    Returns
    -------
    dict
        Among others ``failures`` (changes to down, without components that are down when the record starts),
        ``availability`` (share of the observed time),
        ``rate_per_year`` (failures that end a recorded uptime, per component-year of uptime), and
        ``correlated`` (rows of group, within, share, and the share expected by chance). Means and medians are
        those of the spans as recorded, cut ones included. Unknown values are None.
    """
    events = trace.events
    down = failures_of(trace)
    known = {
        name: events[name].drop_nulls().n_unique() or None
        for name in ("component", "node", "rack")
    }
    reasons = (
        down.group_by("reason")
        .len()
        .drop_nulls()
        .sort("len", "reason", descending=[True, False])
    )
    return {
        "format": trace.format,
        "source": trace.source,
        "events": events.height,
        "failures": down.height,
        "components": known["component"],
        "nodes": known["node"],
        "racks": known["rack"],
        "duration_s": float(events["time_s"][-1] - events["time_s"][0]),
        "population": trace.population,
        **_spans(trace),
        "reasons": dict(reasons.head(REASONS_SHOWN).iter_rows()),
        "correlated": [
            {
                "group": group,
                "within": name,
                "within_s": within,
                "share": correlated_share(trace, group, within),
                "expected": expected_share(trace, group, within),
            }
            for group in ("node", "rack")
            if _failures(trace, group).height
            for name, within in WITHIN_S.items()
        ],
        "counts": dict(trace.counts),
        "faults": trace.faults.count,
    }


def _spans(trace: FailureTrace) -> dict[str, float | None]:
    names = (
        "up_mean_h",
        "up_p50_h",
        "down_mean_h",
        "down_p50_h",
        "availability",
        "rate_per_year",
    )
    values: dict[str, float | None] = dict.fromkeys(names)
    if trace.spans is None:
        return values
    length = trace.spans["stop_s"] - trace.spans["start_s"]
    total: dict[str, float] = {}
    for state, up in (("up", True), ("down", False)):
        spans_s = length.filter(trace.spans["up"] == up).to_numpy()
        total[state] = float(spans_s.sum())
        if spans_s.size:
            values[f"{state}_mean_h"] = float(spans_s.mean()) / HOUR_S
            values[f"{state}_p50_h"] = float(np.median(spans_s)) / HOUR_S
    if total["up"]:
        # The time before a failure such as the first of a node may be missing. It ends no span.
        is_ended = trace.spans["up"] & ~trace.spans["right_cut"]
        values["rate_per_year"] = float(is_ended.sum()) / (total["up"] / YEAR_S)
        if total["down"]:
            values["availability"] = total["up"] / (total["up"] + total["down"])
    return values


def failures_of(trace: FailureTrace) -> pl.DataFrame:
    """Return the events of failures: to be down when the record starts is none."""
    down = trace.events.filter(~trace.events["up"])
    if trace.spans is None:
        return down
    cut = trace.spans.filter(~trace.spans["up"] & trace.spans["left_cut"])
    initial = cut.select("component", pl.col("start_s").alias("time_s"))
    return down.join(
        initial, on=["component", "time_s"], how="anti", maintain_order="left"
    )


def end_warnings(trace: FailureTrace) -> list[str]:
    """Warn of components whose record ends with a repair, so that the time up after it is missing."""
    if trace.spans is None or not trace.spans.height:
        return []
    last = trace.spans.group_by("component", maintain_order=True).last()
    repaired = int((~last["up"] & ~last["right_cut"]).sum())
    ended = int((trace.spans["up"] & ~trace.spans["right_cut"]).sum())
    if repaired <= MISSING_MAX * ended:
        return []
    return [
        f"{trace.source}: the records of {repaired:,} of {last.height:,} components end with a repair: "
        f"the time up that follows is missing, which makes times to failure too short ({ended:,} recorded)"
    ]


def _failures(trace: FailureTrace, group: str) -> pl.DataFrame:
    rows = failures_of(trace).drop_nulls(group)
    return rows.select(pl.col(group).rank("dense").alias("group"), "time_s")


def _share(groups: Any, times: Any, within_s: float) -> float:
    order = np.lexsort((times, groups))
    groups = groups[order]
    times = times[order]
    near = (np.diff(groups) == 0) & (np.diff(times) <= within_s)
    touched = np.concatenate(([False], near)) | np.concatenate((near, [False]))
    return float(touched.mean())

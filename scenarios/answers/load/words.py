"""Write load curves as JSON, as rows of a table, and as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from stripesim.models.problems import Problem
from stripesim.scenarios.answers.load.rate_runs import RateRun, scenario_of
from stripesim.scenarios.answers.load.results import LoadCurve, LoadPoint, RateWithin
from stripesim.scenarios.cells.notes import (
    outside_of,
)
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.units import duration_text, number_text
from stripesim.scenarios.show.tables import Table
from stripesim.scenarios.show.words import cell_words
from stripesim.sim.observe.audit import failed_check
from stripesim.sim.observe.intervals import Interval
from stripesim.sim.observe.resource_words import limit_words

#: Note below tables and figures with points past saturation.
PAST_NOTE: Final = (
    "past saturation, the queue of the busiest resource grows as long as the run lasts, so the latency has "
    "no steady value. Other OSDs still complete more, so the served rate may exceed saturation"
)
_RISING: Final = "rises"
_SERVED_BYTES: Final = "served [MB/s]"
# Smallest half of an interval to show, as a part of the mean.
_SHOWN_HALF: Final = 0.005
_PAST: Final = "past saturation"


def table_of(curve: LoadCurve) -> Table:
    """Return the table of the simulated points of a curve."""
    rows = rows_of(curve)
    note = list(rows[0]).index("note") if rows else 0
    return Table.of(cell_words(curve.cell), rows, words=(note,), caption_shown=True)


def outside_of_load(scenario: Scenario) -> list[Problem]:
    """List the values outside the calibrated range, with the Poisson arrivals of load curves."""
    loads = len(scenario.loads)
    # Any rate will do, because the range holds none.
    arrivals = RateRun(
        scenario=scenario,
        cell=cells(scenario)[0],
        rates_per_s=(1.0,) * loads,
        in_flight=0,
        requests=loads,
        engine="compiled",
    )
    return outside_of(scenario_of(arrivals))


def sentence_of(curve: LoadCurve) -> str:
    """Write the knee, the saturation and the rates within latency bounds in one sentence."""
    parts = []
    if curve.knee_iops is not None:
        parts.append(f"the knee is at {_rate(curve.knee_iops)}")
    saturated = f"it saturates at {_rate(curve.saturation_iops)}"
    moved_bytes = _object_bytes(curve)
    if moved_bytes is not None:
        per_s = curve.saturation_iops.mean * moved_bytes
        saturated += f", {rounded_rate(per_s / 1e6)} MB/s"
    resource = limit_words(curve.limited_by or "")
    if resource is not None:
        saturated += f", limited by {resource}"
    parts.append(saturated)
    parts += [within_words(within, curve.points) for within in curve.within]
    return f"{cell_words(curve.cell)}: {'; '.join(parts)}"


def within_words(within: RateWithin, points: Sequence[LoadPoint]) -> str:
    """Write the rate within a latency bound, such as ``p99 ≤ 5 ms up to 84,000 requests/s``."""
    bound = duration_text(within.p99_ns * 1e-9)
    if within.iops is None:
        lowest = points[0]
        p99 = duration_text(lowest.latency_p99_ns.mean * 1e-9)
        return f"p99 > {bound} even at {rounded_rate(lowest.offered_iops)} requests/s ({p99})"
    sentence = f"p99 ≤ {bound} up to {_rate(within.iops)}"
    if within.is_saturation:
        sentence += ", the highest steady rate simulated"
    return sentence


def _rate(rate: Interval) -> str:
    text = f"{rounded_rate(rate.mean)} requests/s"
    if rate.low is None or rate.high is None:
        return text
    low = rounded_rate(rate.low)
    high = rounded_rate(rate.high)
    if low == high:
        return text
    return f"{text} (95 %: {low} to {high})"


def rounded_rate(per_s: float) -> str:
    """Write a rate with three significant digits.

    >>> rounded_rate(84_321.7), rounded_rate(0.5)
    ('84,300', '0.5')
    """
    return number_text(float(f"{per_s:.3g}"))


def rows_of(curve: LoadCurve) -> list[dict[str, str]]:
    """Return the points of a curve as texts by heading."""
    saturation = curve.saturation_iops.mean
    moved_bytes = _object_bytes(curve)
    return [
        {
            "offered [1/s]": number_text(point.offered_iops),
            "served [1/s]": number_text(point.iops.mean),
            **_megabytes(point, moved_bytes),
            "of saturation": f"{100 * point.offered_iops / saturation:.0f} %",
            "p50 [ms]": _milliseconds(point.latency_p50_ns),
            "p99 [ms]": _milliseconds(point.latency_p99_ns),
            "note": _state(point),
        }
        for point in curve.points
    ] + [_refused_row(point, moved_bytes) for point in curve.refused_points]


def _object_bytes(curve: LoadCurve) -> int | None:
    """Return the size of the objects that each request stores or returns, None without such objects."""
    return curve.cell.block_size_bytes if curve.cell.op in ("put", "get") else None


def _megabytes(point: LoadPoint, moved_bytes: int | None) -> dict[str, str]:
    """Return the served bytes of objects in the row of a point."""
    if moved_bytes is None:
        return {}
    text = number_text(point.iops.mean * moved_bytes, 1e-6)
    return {_SERVED_BYTES: text}


def _milliseconds(latency_ns: Interval) -> str:
    """Write a latency with half of its interval, unless that is too short to show."""
    text = number_text(latency_ns.mean, 1e-6, padded=True)
    half_ns = latency_ns.half
    if half_ns is None or half_ns < _SHOWN_HALF * latency_ns.mean:
        return text
    return f"{text} ± {number_text(half_ns, 1e-6, digits=2)}"


def wide_intervals(scenario: Scenario, curves: Sequence[LoadCurve]) -> Iterator[str]:
    """Yield a warning for each curve with points whose intervals are wider than the plan asks."""
    plan = scenario.plan
    if plan is None or plan.interval_percent is None:
        return
    for curve in curves:
        steady = [point for point in curve.points if point.is_steady]
        latencies = [(one.latency_mean_ns, one.latency_p99_ns) for one in steady]
        halves = [max(map(_half_percent, each)) for each in latencies]
        wide = [half for half in halves if half > plan.interval_percent]
        if wide:
            yield (
                f"{cell_words(curve.cell)}: intervals of {len(wide)} of {len(steady)} points are wider than "
                f"plan.interval_percent ({plan.interval_percent:g}), up to ± {max(wide):.2g} % after "
                f"{curve.replications} runs: more requests in each run narrow them (--requests)"
            )


def _half_percent(interval: Interval) -> float:
    """Return half of an interval over its mean [%], 0 without one."""
    return 100 * (interval.half or 0.0) / interval.mean


def _refused_row(point: LoadPoint, moved_bytes: int | None) -> dict[str, str]:
    assert point.refused is not None
    served: tuple[str, ...] = ("served [1/s]",)
    if moved_bytes is not None:
        served += (_SERVED_BYTES,)
    return {
        "offered [1/s]": number_text(point.offered_iops),
        **dict.fromkeys((*served, "of saturation", "p50 [ms]", "p99 [ms]"), "–"),
        "note": f"refused: {failed_check(point.refused)}",
    }


def _state(point: LoadPoint) -> str:
    if point.refused is not None:
        return f"unchecked: {failed_check(point.refused)}"
    if point.is_past_saturation:
        return _PAST
    return "" if point.is_steady else _RISING


def notes_of(curves: Sequence[LoadCurve]) -> list[str]:
    """Return the notes below a table of curves."""
    replications = max((curve.replications for curve in curves), default=0)
    notes = [
        f"arrivals are Poisson; latencies are means over {replications} seeds ± half of the 95 % interval",
        "the knee is where the rate per mean latency is highest (Kleinrock's power). Beyond it, 1 % more "
        "load costs more than 1 % of latency",
    ]
    states = {_state(point) for curve in curves for point in curve.points}
    if _PAST in states:
        notes.append(PAST_NOTE)
    if _RISING in states:
        notes.append(
            f"{_RISING}: the latency still rises at the end of the run, so a longer run shows a higher one"
        )
    return notes

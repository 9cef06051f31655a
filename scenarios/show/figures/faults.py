"""Draw failures: the timeline of a run under faults, and nines of durability with their intervals."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from stripesim.scenarios.show.figures.panels import note
from stripesim.scenarios.show.figures.results import CaptionedFigure, new_figure, styled

#: Label, states, colour and hatch of a band of PGs.
Band = tuple[str, tuple[str, ...], str, str]
#: Column of a series, and the colour, style and label of its line.
Line = tuple[str, str, str, str]

LATENCIES: Final[Sequence[Line]] = (
    ("latency_p50_ns", "#0072B2", "-", "p50"),
    ("latency_p99_ns", "#D55E00", "--", "p99"),
)
RATE: Final[Line] = ("iops", "#0072B2", "-", "")
_MOVED: Final[Sequence[Line]] = (
    ("device_read_bytes_per_s", "#0072B2", "--", "read"),
    ("private_net_bytes_per_s", "#E69F00", ":", "sent"),
    ("rebuilt_bytes_per_s", "#009E73", "-", "rebuilt"),
)
# From healthy to unavailable, in colours of Okabe and Ito. Hatches distinguish bands in grey print.
_BANDS: Final[Sequence[Band]] = (
    ("clean", ("active+clean",), "#DDDDDD", ""),
    ("member dead, unnoticed", ("stale",), "#000000", ""),
    (
        "peering, or waiting for leases to end",
        ("peering", "active+wait"),
        "#F0E442",
        "////",
    ),
    ("degraded", ("active+degraded",), "#56B4E9", ""),
    (
        "waiting to recover",
        ("active+recovery_wait", "active+backfill_wait", "active+backfill_toofull"),
        "#E69F00",
        "..",
    ),
    ("recovering", ("active+recovering", "active+backfilling"), "#009E73", ""),
    ("unavailable", ("inactive", "incomplete"), "#D55E00", "xx"),
)
_EVENT_WORDS: Final = {
    "failed": "fails",
    "slow": "slow",
    "not slow": "normal",
    "down": "down",
    "out": "out",
    "returned": "back",
    "clean": "clean",
}


def draw_timelines(
    timelines: Sequence[Mapping[str, Any]],
) -> dict[str, CaptionedFigure]:
    """Draw every timeline of a scenario."""
    keys = ("scheme", "op", "pattern", "block_size_bytes")
    figures = {}
    for timeline in timelines:
        name = "-".join(str(timeline[key]) for key in keys if timeline.get(key))
        stem = f"timeline-{name}".replace(":", "").replace(",", "-")
        figures[stem] = draw_timeline(timeline)
    return figures


def draw_timeline(timeline: Mapping[str, Any]) -> CaptionedFigure:
    """Draw groups by state, latency and rate of requests, and bytes of recovery over one time axis."""
    end_s = max(1e-9, float(timeline["end_s"]))
    with styled():
        figure = new_figure((11.5, 10.0))
        panels = figure.subplots(4, 1, sharex=True, height_ratios=[1.5, 1, 0.8, 1])
        states, latency, rate, recovery = panels
        _draw_states(states, timeline, end_s)
        series = timeline["foreground"]
        times = series["time_s"]
        draw_lines(latency, times, series, LATENCIES, divisor=1e6)
        latency.set(
            yscale="log",
            ylabel="latency [ms]",
            title="(b) latency of the requests that complete",
        )
        draw_lines(rate, times, series, (RATE,))
        rate.set(ylabel="requests/s", title="(c) requests completed")
        moved = timeline["recovery"]
        draw_lines(recovery, moved["time_s"], moved, _MOVED, divisor=1e6)
        recovery.set(ylabel="MB/s", title="(d) recovery traffic", xlabel="time [s]")
        for axes in (rate, recovery):
            axes.set_ylim(bottom=0)
        for axes in (latency, rate):
            _shade_slow_phase(axes, timeline)
        for axes in panels:
            _mark_events(axes, timeline, end_s, labelled=axes is states)
            axes.set_xlim(0, end_s)
            axes.margins(x=0)
    return CaptionedFigure(figure, _caption(timeline))


def draw_lines(
    axes: Axes,
    times: npt.ArrayLike,
    series: Mapping[str, Any],
    lines: Sequence[Line],
    *,
    divisor: float = 1.0,
    where: Literal["post", "mid"] = "post",
) -> None:
    """Draw columns of a series as steps over time, with a legend if there are several."""
    for key, colour, style, label in lines:
        axes.step(
            np.asarray(times),
            np.array(series[key], dtype=float) / divisor,
            where=where,
            color=colour,
            linestyle=style,
            label=label,
            linewidth=1.8,
        )
    if len(lines) > 1:
        legend_beside(axes)


def draw_bands(
    axes: Axes, edges: npt.ArrayLike, table: Mapping[str, Any], bands: Sequence[Band]
) -> dict[str, npt.NDArray[Any]]:
    """Stack PGs by state over time, the first band on top, and return the counts of the bands drawn.

    Parameters
    ----------
    axes
        The panel.
    edges
        Times at which counts begin, and the end, shape (n + 1,).
    table
        PGs in each state, each of shape (n,).
    bands
        Label, states, colour and hatch of each band. Bands without PGs are left out.
    """
    counts = {}
    drawn = []
    for band in bands:
        label, states, _, _ = band
        known = [np.array(table[state]) for state in states if state in table]
        of_band = np.sum(known, axis=0)
        if of_band.any():
            counts[label] = np.append(of_band, of_band[-1])
            drawn.append(band)
    # The last bands at the bottom, where even few PGs are visible.
    drawn.reverse()
    areas = axes.stackplot(
        edges,
        [counts[label] for label, _, _, _ in drawn],
        labels=[label for label, _, _, _ in drawn],
        colors=[colour for _, _, colour, _ in drawn],
        step="post",
        linewidth=0,
    )
    for area, (_, _, _, hatch) in zip(areas, drawn, strict=True):
        area.set_hatch(hatch)
        area.set_edgecolor("#444444")
    axes.set_ylabel("PGs")
    legend_beside(axes, reverse=True)
    return counts


def legend_beside(axes: Axes, **more: Any) -> None:
    """Put the legend of a panel on its right."""
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=11, **more)


def _draw_states(axes: Axes, timeline: Mapping[str, Any], end_s: float) -> None:
    table = timeline["pg_states"]
    counts = draw_bands(axes, [*table["time_s"], end_s], table, _BANDS)
    total = sum(of_band[0] for of_band in counts.values())
    axes.set_ylim(0, max(1, total))
    axes.set_title("(a) placement groups by state", pad=24)


def _moments(timeline: Mapping[str, Any]) -> list[tuple[float, str]]:
    """Return the first moment of each kind of event, but the last of being clean, with its label."""
    moments: dict[str, float] = {}
    for event in timeline["events"]:
        kind = event["what"]
        if kind in _EVENT_WORDS and (kind == "clean" or kind not in moments):
            moments[kind] = event["time_s"]
    return sorted((time_s, _EVENT_WORDS[kind]) for kind, time_s in moments.items())


def _shade_slow_phase(axes: Axes, timeline: Mapping[str, Any]) -> None:
    """Shade the time in which placement groups are clean and use a slow drive."""
    for start_s, stop_s in timeline["phases"].get("slow", ()):
        axes.axvspan(start_s, stop_s, color="#E69F00", alpha=0.15, linewidth=0)


def _mark_events(
    axes: Axes, timeline: Mapping[str, Any], span_s: float, *, labelled: bool
) -> None:
    above: dict[str, Any] = {
        "xycoords": ("data", "axes fraction"),
        "annotation_clip": False,
    }
    lowest_s = -1e9
    for time_s, label in _moments(timeline):
        axes.axvline(time_s, color="#444444", linewidth=0.9, linestyle=(0, (4, 3)))
        if not labelled:
            continue
        lift = 3
        if time_s - lowest_s < 0.05 * span_s:
            # A label that would touch the one before it goes one line higher.
            lift = 15
            lowest_s = -1e9
        else:
            lowest_s = time_s
        note(axes, label, (time_s, 1), (0, lift), fontsize=11, **above)


def _caption(timeline: Mapping[str, Any]) -> str:
    moments = ", ".join(
        f"{word} at {time_s:.1f} s" for time_s, word in _moments(timeline)
    )
    return (
        f"{timeline['scheme']} under faults: {moments}. Placement groups by state. Client requests by "
        "time of completion (latency includes all waiting). Bytes that recovery rebuilds, reads from "
        "devices and sends between hosts."
    )


_COLOURS = {
    "markov": "#0072B2",
    "splitting": "#E69F00",
    "burst": "#009E73",
    "history": "#CC79A7",
}
_MARKERS = {"markov": "o", "splitting": "s", "burst": "^", "history": "D"}


def draw_nines(rows: Sequence[Mapping[str, Any]]) -> CaptionedFigure:
    """Draw nines by scheme and method."""
    schemes = list(dict.fromkeys(row["scheme"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    with styled():
        figure = new_figure((2.5 + 1.4 * len(schemes), 4.5))
        axes = figure.add_subplot()
        for index, method in enumerate(methods):
            shift = 0.18 * (index - (len(methods) - 1) / 2)
            x = []
            heights = []
            below = []
            above = []
            for row in rows:
                nines = row["nines"]
                if row["method"] != method or nines is None:
                    continue
                x.append(schemes.index(row["scheme"]) + shift)
                heights.append(nines)
                below.append(nines - (row["nines_low"] or nines))
                above.append((row["nines_high"] or nines) - nines)
            axes.errorbar(
                x,
                heights,
                yerr=[below, above],
                fmt=_MARKERS[method],
                color=_COLOURS[method],
                capsize=4,
                label=method,
            )
        axes.set_xticks(range(len(schemes)), schemes)
        axes.set_xlim(-0.6, len(schemes) - 0.4)
        axes.set_ylim(bottom=0)
        axes.set_ylabel("nines")
        axes.legend()
    caption = (
        "Nines of durability: −log10 of the probability that any data is lost within the horizon, with "
        "95 % intervals. Exact values and approximations have no interval."
    )
    return CaptionedFigure(figure, caption)

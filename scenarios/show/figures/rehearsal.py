"""Draw a rehearsal: fill, PGs, clients and recovery over time, and duration against latency."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from stripesim.scenarios.schema.units import duration_text
from stripesim.scenarios.show.figures.faults import (
    LATENCIES,
    RATE,
    Band,
    Line,
    draw_bands,
    draw_lines,
    legend_beside,
)
from stripesim.scenarios.show.figures.panels import LINES, MARKERS, note
from stripesim.scenarios.show.figures.results import CaptionedFigure, new_figure, styled

Floats = npt.NDArray[np.float64]

# Units of time axes: length [s], name, and the smallest span that uses it [s].
_TIME_UNITS: Final = (
    (86400.0, "d", 3 * 86400.0),
    (3600.0, "h", 3 * 3600.0),
    (60.0, "min", 180.0),
)
# Bands of PG states from healthy to unavailable, in colours of Okabe and Ito, with hatches for grey print.
_BANDS: Final[Sequence[Band]] = (
    ("active+clean", ("active+clean",), "#DDDDDD", ""),
    (
        "remapped+backfill_wait",
        ("active+backfill_wait", "active+recovery_wait"),
        "#E69F00",
        "..",
    ),
    (
        "remapped+backfilling",
        ("active+backfilling", "active+recovering"),
        "#009E73",
        "",
    ),
    ("backfill_toofull", ("active+backfill_toofull",), "#CC79A7", "xx"),
    ("peering", ("peering", "active+wait", "stale"), "#F0E442", "////"),
    (
        "degraded, unavailable",
        ("active+degraded", "inactive", "incomplete"),
        "#D55E00",
        "\\\\",
    ),
)
_MOVED: Final[Sequence[Line]] = (
    ("device_read_bytes_per_s", "#0072B2", "--", "read"),
    ("private_net_bytes_per_s", "#E69F00", ":", "sent"),
    ("rebuilt_bytes_per_s", "#009E73", "-", "moved"),
)
# Colour of each fill threshold.
_THRESHOLDS: Final = {
    "nearfull": "#F0E442",
    "backfillfull": "#E69F00",
    "full": "#D55E00",
}
# Shades of fill below nearfull, and the part of the colour map they take.
_SHADES: Final = 12
_SHADES_OF_MAP: Final = (0.08, 0.85)
_COLOURS: Final = {"own": "#0072B2", "live": "#009E73", "restart": "#999999"}


class _Unit(NamedTuple):
    """A unit of a time axis."""

    seconds: float
    name: str


def draw_rehearsal(document: Mapping[str, Any]) -> dict[str, CaptionedFigure]:
    """Draw the figures of a rehearsal, by file stem: ``timeline`` and ``trade-off``."""
    figures = {}
    if document["timeline"] is not None:
        figures["timeline"] = draw_timeline(document)
    if document["trade_off"] is not None:
        figures["trade-off"] = draw_trade_off(document["trade_off"])
    return figures


def draw_timeline(document: Mapping[str, Any]) -> CaptionedFigure:
    """Draw fill by OSD, PGs by state, latency, rate and recovery over one time axis."""
    timeline = document["timeline"]
    times_s = np.array(timeline["time_s"])
    # Times are the middles of equal spans from 0.
    end_s = float(times_s[-1] + times_s[0])
    unit = _unit(end_s)
    fill = timeline["fill"]
    clients = timeline["clients"]
    drawers = []
    if fill is not None:
        drawers.append((2.2, _draw_fill))
        if len(fill["osds"]) < fill["osds_count"]:
            drawers.append((1.1, _draw_distribution))
    drawers.append((1.2, _draw_states))
    if clients is not None:
        drawers += [(1.0, _draw_latency), (0.8, _draw_rate)]
    drawers.append((1.0, _draw_recovery))
    heights = [height for height, _ in drawers]
    with styled():
        figure = new_figure((11.5, 1.0 + 2.1 * sum(heights)))
        panels = figure.subplots(
            len(drawers), 1, sharex=True, height_ratios=heights, squeeze=False
        )[:, 0]
        for letter, axes, (_, draw) in zip("abcdef", panels, drawers, strict=False):
            draw(axes, timeline, unit)
            axes.set_title(f"({letter}) {axes.get_title('left')}")
            for begin_s in timeline["begins_s"]:
                axes.axvline(
                    begin_s / unit.seconds,
                    color="#444444",
                    linewidth=0.9,
                    linestyle=(0, (4, 3)),
                )
        panels[0].set_title(panels[0].get_title("left"), pad=24)
        for change, begin_s in zip(
            document["changes"], timeline["begins_s"], strict=False
        ):
            note(
                panels[0],
                change["kind"],
                (begin_s / unit.seconds, 1),
                (0, 3),
                fontsize=11,
                xycoords=("data", "axes fraction"),
                annotation_clip=False,
            )
        panels[-1].set_xlabel(f"time [{unit.name}]")
        panels[-1].set_xlim(0, end_s / unit.seconds)
    return CaptionedFigure(figure, _timeline_caption(document))


def draw_trade_off(trade_off: Mapping[str, Any]) -> CaptionedFigure:
    """Draw p99 during the changes against their duration, a point for each setting."""
    points = trade_off["points"]
    unit = _unit(max(point["duration_s"] for point in points))
    with styled():
        figure = new_figure((6.4, 5.6))
        axes = figure.subplots()
        _draw_curve(axes, points, unit)
        for number, (names, point) in enumerate(_distinct(points)):
            colour = _COLOURS["restart" if point["needs_restart"] else "live"]
            if point is points[0]:
                colour = _COLOURS["own"]
            x = point["duration_s"] / unit.seconds
            y = point["latency_p99_ns"] / 1e6
            axes.errorbar(
                x,
                y,
                xerr=_ends(point, "duration", "_s", 1 / unit.seconds),
                yerr=_ends(point, "latency_p99", "_ns", 1e-6),
                fmt=MARKERS[number % len(MARKERS)],
                color=colour,
                markersize=8,
                elinewidth=1,
                capsize=2,
                label=names,
            )
        limit_ms = trade_off["latency_p99_limit_ns"] / 1e6
        before_ms = points[0]["before_latency_p99_ns"] / 1e6
        axes.axhline(
            limit_ms, color="#D55E00", linewidth=1.2, linestyle=LINES[1], label="limit"
        )
        axes.axhline(
            before_ms,
            color="#444444",
            linewidth=1.2,
            linestyle=LINES[3],
            label="before",
        )
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel(f"duration [{unit.name}]")
        axes.set_ylabel("p99 during changes [ms]")
        figure.legend(loc="outside upper left", fontsize=10)
    caption = (
        f"Duration of all changes against the clients' p99 meanwhile. {trade_off['sentence']}. Whiskers: "
        "95 % intervals. Grey: needs a restart of all OSDs."
    )
    return CaptionedFigure(figure, caption)


def _unit(span_s: float) -> _Unit:
    for seconds, name, least_s in _TIME_UNITS:
        if span_s >= least_s:
            return _Unit(seconds, name)
    return _Unit(1.0, "s")


# Panels of the timeline.


def _draw_fill(axes: Axes, timeline: Mapping[str, Any], unit: _Unit) -> None:
    """Draw a row for each OSD. Spans of equal shade are one rectangle, which keeps the figure small."""
    fill = timeline["fill"]
    shares = np.array(fill["used_ratio"])
    edges = _edges(timeline) / unit.seconds
    thresholds = [fill[f"{name}_ratio"] for name in _THRESHOLDS]
    low = min(float(shares.min()), thresholds[0])
    bounds = np.append(np.linspace(low, thresholds[0], _SHADES + 1)[1:], thresholds[1:])
    levels = np.searchsorted(bounds, shares, side="right")
    shades = colormaps["Blues"](np.linspace(*_SHADES_OF_MAP, _SHADES))
    colours: list[Any] = [*shades, *_THRESHOLDS.values()]
    for level in np.unique(levels).tolist():
        rectangles = [
            _rectangle(row, edges[first], edges[last])
            for row in range(len(levels))
            for first, last in _runs(levels[row] == level)
        ]
        axes.add_collection(
            PolyCollection(rectangles, facecolors=colours[level], edgecolors="none")
        )
    axes.set_ylim(len(shares), 0)
    step = max(1, len(shares) // 12)
    rows = range(0, len(shares), step)
    axes.set_yticks(
        [row + 0.5 for row in rows], [str(fill["osds"][row]) for row in rows]
    )
    axes.grid(visible=False)
    axes.set_ylabel("OSD")
    shown = "each OSD"
    if len(fill["osds"]) < fill["osds_count"]:
        shown = f"the {len(fill['osds'])} fullest of {fill['osds_count']:,} OSDs"
    axes.set_title(f"used share of {shown}")
    handles = [
        Patch(facecolor=shades[0], label=f"{low:.0%}"),
        Patch(facecolor=shades[_SHADES // 2], label=f"{(low + thresholds[0]) / 2:.0%}"),
        Patch(facecolor=shades[-1], label=f"below {thresholds[0]:.0%}"),
    ]
    handles += [
        Patch(facecolor=colour, label=f"{name}, {fill[f'{name}_ratio']:.0%}")
        for name, colour in _THRESHOLDS.items()
    ]
    legend_beside(axes, handles=handles)


def _runs(is_level: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return first and last edge of each run of True."""
    padded = np.concatenate([[False], is_level, [False]])
    borders = np.flatnonzero(padded[1:] != padded[:-1]).tolist()
    return list(zip(borders[::2], borders[1::2], strict=True))


def _rectangle(row: int, left: float, right: float) -> list[tuple[float, float]]:
    return [(left, row), (right, row), (right, row + 1), (left, row + 1)]


def _draw_distribution(axes: Axes, timeline: Mapping[str, Any], unit: _Unit) -> None:
    fill = timeline["fill"]
    times = np.array(timeline["time_s"]) / unit.seconds
    spread = {
        name: 100 * np.array(values) for name, values in fill["distribution"].items()
    }
    for low, high, colour, label in (
        ("min", "max", "#A6CFE8", "min to max"),
        ("p5", "p95", "#56B4E9", "5 to 95 %"),
    ):
        axes.fill_between(
            times, spread[low], spread[high], color=colour, label=label, linewidth=0
        )
    axes.plot(times, spread["median"], color="#0072B2", label="median")
    top = float(spread["max"].max())
    for name, colour in _THRESHOLDS.items():
        ratio = 100 * fill[f"{name}_ratio"]
        if ratio < 1.3 * top:
            axes.axhline(ratio, color=colour, linewidth=1.5, label=name)
    axes.set(ylabel="used [%]", title="used share of all OSDs")
    axes.set_ylim(bottom=0)
    legend_beside(axes)


def _draw_states(axes: Axes, timeline: Mapping[str, Any], unit: _Unit) -> None:
    edges = _edges(timeline) / unit.seconds
    counts = draw_bands(axes, edges, timeline["pg_states"], _BANDS)
    everything = float(sum(of_band[0] for of_band in counts.values()))
    # Clean PGs that never move only hide the others.
    moving = [
        of_band for label, of_band in counts.items() if label != _BANDS[0][0]
    ] or list(counts.values())
    top = float(np.max(np.sum(moving, axis=0)))
    axes.set_ylim(0, min(everything, max(1.0, 1.15 * top)))
    axes.set_title(f"PGs by state (of {everything:,.0f})")


def _draw_latency(axes: Axes, timeline: Mapping[str, Any], unit: _Unit) -> None:
    _draw_series(axes, timeline["clients"], LATENCIES, 1e6, unit)
    axes.set(yscale="log", ylabel="latency [ms]", title="latency of clients")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda ms, _: f"{ms:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _draw_rate(axes: Axes, timeline: Mapping[str, Any], unit: _Unit) -> None:
    _draw_series(axes, timeline["clients"], (RATE,), 1.0, unit)
    axes.set(ylabel="requests/s", title="requests of clients")
    axes.set_ylim(bottom=0)


def _draw_recovery(axes: Axes, timeline: Mapping[str, Any], unit: _Unit) -> None:
    series = {**timeline["recovery"], "time_s": timeline["time_s"]}
    _draw_series(axes, series, _MOVED, 1e6, unit)
    axes.set(ylabel="MB/s", title="recovery")
    axes.set_ylim(bottom=0)


def _draw_series(
    axes: Axes,
    series: Mapping[str, Any],
    lines: Sequence[Line],
    divisor: float,
    unit: _Unit,
) -> None:
    times = np.array(series["time_s"]) / unit.seconds
    draw_lines(axes, times, series, lines, divisor=divisor, where="mid")


def _edges(timeline: Mapping[str, Any]) -> Floats:
    middles = np.array(timeline["time_s"])
    width = 2 * middles[0]
    edges: Floats = np.arange(len(middles) + 1) * width
    return edges


def _timeline_caption(document: Mapping[str, Any]) -> str:
    timeline = document["timeline"]
    total_s = sum(change["duration_s"] or 0.0 for change in document["changes"])
    text = f"The changes over time with the cluster's own settings, {duration_text(total_s)} in all. "
    if timeline["fill"] is not None:
        peak = max(change["peak_used_ratio"] or 0.0 for change in document["changes"])
        text += f"The fullest OSD reaches {peak:.1%}. "
    if timeline["is_extrapolated"]:
        text += (
            "Fill, states and recovery follow the schedule of full-size PGs at the pace of the simulated "
            "part. The clients of that part are stretched over the same time, without requests that wait for "
            "a PG to peer. Gaps: in the part, every client waited for a PG."
        )
    return text


# Points of the trade-off.


def _draw_curve(axes: Axes, points: Sequence[Mapping[str, Any]], unit: _Unit) -> None:
    """Connect the settings that a cluster can have without a restart, from the fastest to the slowest."""
    live = sorted(
        (point for point in points if not point["needs_restart"]),
        key=lambda point: float(point["duration_s"]),
    )
    axes.plot(
        [point["duration_s"] / unit.seconds for point in live],
        [point["latency_p99_ns"] / 1e6 for point in live],
        color="#BBBBBB",
        linewidth=1.2,
        zorder=1,
    )


def _distinct(
    points: Sequence[Mapping[str, Any]],
) -> list[tuple[str, Mapping[str, Any]]]:
    """Join the names of points with equal results."""
    joined: dict[tuple[float, float], tuple[list[str], Mapping[str, Any]]] = {}
    for point in points:
        key = (point["duration_s"], point["latency_p99_ns"])
        names, _ = joined.setdefault(key, ([], point))
        names.append(point["name"])
    return [(", ".join(names), point) for names, point in joined.values()]


def _ends(
    point: Mapping[str, Any], name: str, unit: str, factor: float
) -> list[list[float]] | None:
    """Return the lengths of whiskers, or None without an interval."""
    low = point[f"{name}_low{unit}"]
    high = point[f"{name}_high{unit}"]
    if low is None or high is None:
        return None
    mean = point[f"{name}{unit}"]
    return [[max(0.0, mean - low) * factor], [max(0.0, high - mean) * factor]]

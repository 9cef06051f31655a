"""Draw load curves: latency over throughput, a panel for each kind of request, a colour for each scheme."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise, takewhile
from typing import Final, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from stripesim.scenarios.answers.load.results import LoadCurve, LoadPoint
from stripesim.scenarios.answers.load.words import request_kind, rounded_rate
from stripesim.scenarios.schema.units import duration_text
from stripesim.scenarios.show.figures.captions import scheme_label
from stripesim.scenarios.show.figures.panels import (
    COLOURS,
    MARKERS,
    legend_entries,
    note,
    plain_numbers,
)
from stripesim.scenarios.show.figures.results import (
    CaptionedFigure,
    new_figure,
    styled,
)
from stripesim.sim.observe.intervals import Interval

_SIZE_INCHES: Final = (5.6, 4.3)
_PAIR_INCHES: Final = (11.2, 4.3)
#: Line of each latency.
_LINES: Final[Mapping[str, Literal["-", "--"]]] = {
    "latency_p99_ns": "-",
    "latency_p50_ns": "--",
}
#: Shift [points] and alignment of the texts at latency bounds.
_LIFTS: Final = (((-7, 4), "right"), ((8, -13), "left"))
_LEGEND_COLUMNS: Final = 4
_THOUSAND: Final = 1000.0


def draw_load(
    curves: Sequence[LoadCurve], *, side_by_side: bool = True
) -> dict[str, CaptionedFigure]:
    """Draw load curves.

    Parameters
    ----------
    curves
        Curves of one or more schemes and kinds of request.
    side_by_side
        Draw all kinds in one figure. Otherwise each has its own, which a phone can show.

    Returns
    -------
    dict
        File stem → figure: ``load``, or ``load-1``, ``load-2``, … of the kinds.
    """
    kinds: dict[str, list[LoadCurve]] = {}
    for curve in curves:
        kinds.setdefault(request_kind(curve.cell), []).append(curve)
    if not kinds:
        return {}
    if side_by_side or len(kinds) == 1:
        return {"load": _draw(kinds)}
    return {
        f"load-{number}": _draw({kind: members})
        for number, (kind, members) in enumerate(kinds.items(), 1)
    }


def _draw(kinds: dict[str, list[LoadCurve]]) -> CaptionedFigure:
    schemes = list(
        dict.fromkeys(
            curve.cell.scheme for members in kinds.values() for curve in members
        )
    )
    columns = min(2, len(kinds))
    lines = -(-len(kinds) // columns)
    width, height = _SIZE_INCHES if columns == 1 else _PAIR_INCHES
    with styled():
        figure = new_figure((width, height * lines))
        panels = figure.subplots(lines, columns, squeeze=False).flat
        # In this order, `zip` takes no panel after the last kind.
        for (kind, members), axes in zip(kinds.items(), panels, strict=False):
            for curve in members:
                _draw_curve(axes, curve, schemes.index(curve.cell.scheme))
            _scale(axes, members)
            _draw_bounds(axes, members, schemes)
            axes.set_title(kind, fontsize=12.5)
        for axes in panels:
            axes.set_axis_off()
        _legend(figure, columns)
    return CaptionedFigure(figure, _caption(kinds))


def _legend(figure: Figure, columns: int) -> None:
    """Name the schemes by colour and the latencies by line, above the panels."""
    by_label = legend_entries(figure)
    for name, line in _LINES.items():
        words = name.removeprefix("latency_").removesuffix("_ns")
        by_label[words] = Line2D([], [], color="#444444", linestyle=line)
    figure.legend(
        list(by_label.values()),
        list(by_label),
        loc="outside upper left",
        ncols=min(len(by_label), _LEGEND_COLUMNS * columns),
        columnspacing=1.2,
        handlelength=2.2,
        fontsize=12,
    )


def _draw_curve(axes: Axes, curve: LoadCurve, number: int) -> None:
    """Draw p99 solid and p50 dashed, thin past the steady points, and mark the knee."""
    colour = COLOURS[number % len(COLOURS)]
    marker = MARKERS[number % len(MARKERS)]
    label = scheme_label(curve.cell.scheme)
    steady = sum(1 for _ in takewhile(lambda point: point.is_steady, curve.points))
    x = [_thousands(point) for point in curve.points]
    for name, line in _LINES.items():
        latencies = [getattr(point, name) for point in curve.points]
        y = [latency.mean / 1e6 for latency in latencies]
        axes.plot(
            x[:steady],
            y[:steady],
            line,
            color=colour,
            linewidth=2,
            zorder=3,
            label=label if name == "latency_p99_ns" else None,
        )
        first = max(0, steady - 1)
        axes.plot(x[first:], y[first:], line, color=colour, linewidth=0.9, zorder=2.5)
        _draw_markers(axes, curve.points, latencies, colour, marker)
    if curve.knee_iops is None:
        return
    knee = curve.knee_iops.mean
    height_ms = _p99_at(curve, knee) / 1e6
    axes.plot(
        knee / _THOUSAND,
        height_ms,
        marker="o",
        markersize=15,
        markerfacecolor="none",
        markeredgecolor=colour,
        markeredgewidth=2,
        linestyle="none",
        zorder=4,
    )
    point = (knee / _THOUSAND, height_ms)
    _write(axes, f"knee {rounded_rate(knee)}/s", point, (0, -20), "right", colour)


def _write(
    axes: Axes,
    text: str,
    point: tuple[float, float],
    lift: tuple[float, float],
    side: str,
    colour: str,
) -> None:
    """Write text near a point, with a halo that keeps it legible on lines."""
    note(
        axes,
        text,
        point,
        lift,
        ha=side,
        fontsize=10.5,
        color=colour,
        zorder=6,
        path_effects=[withStroke(linewidth=3, foreground="white")],
    )


def _draw_markers(
    axes: Axes,
    points: Sequence[LoadPoint],
    latencies: Sequence[Interval],
    colour: str,
    marker: str,
) -> None:
    for point, latency in zip(points, latencies, strict=True):
        x = _thousands(point)
        axes.plot(
            x,
            latency.mean / 1e6,
            marker=marker,
            markersize=4.5,
            color=colour,
            markerfacecolor=colour if point.is_steady else "white",
            linestyle="none",
            zorder=3.5,
        )
        if latency.low is not None and latency.high is not None:
            axes.vlines(
                x, latency.low / 1e6, latency.high / 1e6, color=colour, linewidth=1.4
            )


def _draw_bounds(
    axes: Axes, curves: Sequence[LoadCurve], schemes: Sequence[str]
) -> None:
    """Draw a line at each latency bound, and the rate at which each curve crosses it."""
    low_ms, high_ms = axes.get_ylim()
    bounds_ns = {within.p99_ns for curve in curves for within in curve.within}
    for bound_ns in sorted(bounds_ns):
        if not low_ms < bound_ns / 1e6 < high_ms:
            # Text outside the panel would shrink it.
            continue
        axes.axhline(bound_ns / 1e6, color="#666666", linewidth=1, linestyle=":")
        note(
            axes,
            f"≤ {duration_text(bound_ns * 1e-9)}",
            (1, bound_ns / 1e6),
            (4, 0),
            ha="left",
            va="center",
            xycoords=axes.get_yaxis_transform(),
            fontsize=10.5,
            color="#444444",
        )
    drawn = 0
    for curve in curves:
        colour = COLOURS[schemes.index(curve.cell.scheme) % len(COLOURS)]
        for within in curve.within:
            if within.iops is None or within.is_saturation:
                continue
            crossing = (within.iops.mean / _THOUSAND, within.p99_ns / 1e6)
            axes.plot(
                *crossing,
                marker="|",
                markersize=16,
                markeredgewidth=2.5,
                color=colour,
                linestyle="none",
                zorder=5,
            )
            # On alternate sides, so that neighbours stay legible.
            lift, side = _LIFTS[drawn % len(_LIFTS)]
            drawn += 1
            text = f"{rounded_rate(within.iops.mean)}/s"
            _write(axes, text, crossing, lift, side, colour)


def _scale(axes: Axes, curves: Sequence[LoadCurve]) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    plain_numbers(axes.yaxis)
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_locator(MaxNLocator(6))
    plain_numbers(axes.xaxis)
    axes.set_xlim(left=0)
    axes.set_xlabel("served [1,000 requests/s]")
    axes.set_ylabel("latency [ms]")
    lowest = min(point.latency_p50_ns.mean for c in curves for point in c.points)
    highest = max(point.latency_p99_ns.mean for c in curves for point in c.points)
    axes.set_ylim(lowest / 1.5e6, highest * 1.6e-6)


def _thousands(point: LoadPoint) -> float:
    return point.iops.mean / _THOUSAND


def _p99_at(curve: LoadCurve, per_s: float) -> float:
    """Return the 99th percentile [ns] between the points next to a rate."""
    for before, after in pairwise(curve.points):
        if before.offered_iops <= per_s <= after.offered_iops:
            gap = after.offered_iops - before.offered_iops
            part = (per_s - before.offered_iops) / gap
            low_ns = before.latency_p99_ns.mean
            ratio: float = (after.latency_p99_ns.mean / low_ns) ** part
            return low_ns * ratio
    return curve.points[-1].latency_p99_ns.mean


def _caption(kinds: dict[str, list[LoadCurve]]) -> str:
    sentences = []
    for kind, members in kinds.items():
        knees = [
            f"{scheme_label(curve.cell.scheme)} {rounded_rate(curve.knee_iops.mean)}/s"
            for curve in members
            if curve.knee_iops is not None
        ]
        sentences.append(f"{kind}: knee at {', '.join(knees) or 'no simulated rate'}.")
    return (
        f"Latency over throughput, simulated. {' '.join(sentences)} Ring: knee. Whiskers: 95 % interval over "
        "seeds. Open markers: the latency has no steady value, it grows with the length of the run."
    )

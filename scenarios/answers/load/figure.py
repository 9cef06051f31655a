"""Draw load curves: latency over throughput, a panel for each kind of request, a colour for each scheme."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product, takewhile
from typing import Any, Final

from stripesim.scenarios.answers.load.results import LoadCurve, LoadPoint, RateWithin
from stripesim.scenarios.answers.load.words import rounded_rate
from stripesim.scenarios.schema.units import duration_text
from stripesim.scenarios.show.figures.captions import scheme_label
from stripesim.scenarios.show.figures.renderer import CaptionedFigure, drawn_all
from stripesim.scenarios.show.figures.specification import (
    BESIDE,
    AxisSpec,
    FigureSpec,
    LayerSpec,
    PanelSpec,
    line_at,
    series_style,
)
from stripesim.scenarios.show.words import request_kind

_SIZE_INCHES: Final = (5.6, 4.3)
_PAIR_INCHES: Final = (11.2, 4.3)
#: Line of each latency, and its name in the legend.
_LINES: Final[Mapping[str, tuple[str, str]]] = {
    "latency_p99_ns": ("-", "p99"),
    "latency_p50_ns": ("--", "p50"),
}
#: Shift [points] and alignment of the texts at latency bounds.
_LIFTS: Final = (((-7, 4), "right"), ((8, -13), "left"))
_THOUSAND: Final = 1000.0
_MS: Final = 1e6


def draw_load(
    curves: Sequence[LoadCurve],
    *,
    side_by_side: bool = True,
    schemes: Sequence[str] = (),
) -> dict[str, CaptionedFigure]:
    """Draw load curves.

    Parameters
    ----------
    curves
        Curves of one or more schemes and kinds of request.
    side_by_side
        Draw all kinds in one figure. Otherwise each has its own, which a phone can show.
    schemes
        Schemes of other figures beside these, in the order of their marks.

    Returns
    -------
    dict
        File stem → figure: ``load``, or ``load-1``, ``load-2``, … of the kinds.
    """
    return drawn_all(load_figures(curves, side_by_side=side_by_side, schemes=schemes))


def load_figures(
    curves: Sequence[LoadCurve],
    *,
    side_by_side: bool = True,
    schemes: Sequence[str] = (),
) -> dict[str, FigureSpec]:
    """Specify the figures of `draw_load`. Curves without a point that the audit accepts are left out."""
    kinds: dict[str, list[LoadCurve]] = {}
    shown = [curve for curve in curves if curve.points]
    for curve in shown:
        kinds.setdefault(request_kind(curve.cell), []).append(curve)
    if not kinds:
        return {}
    marked = list(dict.fromkeys([*schemes, *(curve.cell.scheme for curve in shown)]))
    if side_by_side or len(kinds) == 1:
        return {"load": _figure(kinds, marked)}
    return {
        f"load-{number}": _figure({kind: members}, marked)
        for number, (kind, members) in enumerate(kinds.items(), 1)
    }


def _figure(kinds: dict[str, list[LoadCurve]], schemes: Sequence[str]) -> FigureSpec:
    columns = min(2, len(kinds))
    width, height = _SIZE_INCHES if columns == 1 else _PAIR_INCHES
    return FigureSpec(
        size=(width, height * -(-len(kinds) // columns)),
        panels=[_panel(kind, members, schemes) for kind, members in kinds.items()],
        columns=columns,
        caption=_caption(kinds),
    )


def _panel(kind: str, curves: Sequence[LoadCurve], schemes: Sequence[str]) -> PanelSpec:
    """Specify the curves of one kind of request, with the latency bounds that they cross."""
    points = [point for curve in curves for point in curve.points]
    low_ms = min(point.latency_p50_ns.mean for point in points) / 1.5 / _MS
    high_ms = max(point.latency_p99_ns.mean for point in points) * 1.6 / _MS
    styles = {scheme: series_style(at) for at, scheme in enumerate(schemes)}
    layers = [
        layer for curve in curves for layer in _curve(curve, styles[curve.cell.scheme])
    ]
    layers += _bounds(curves, low_ms, high_ms)
    layers += _crossings(curves, styles)
    layers += [
        LayerSpec(
            mark="line", label=words, style={"color": "#444444", "linestyle": line}
        )
        for line, words in _LINES.values()
    ]
    return PanelSpec(
        title=kind,
        layers=layers,
        x=AxisSpec(label="served [1,000 requests/s]", low=0),
        y=AxisSpec(label="latency [ms]", scale="log", low=low_ms, high=high_ms),
    )


def _curve(curve: LoadCurve, style: Mapping[str, str]) -> Iterator[LayerSpec]:
    """Yield p99 solid and p50 dashed, thin past the steady points, and the knee."""
    colour = style["color"]
    steady = sum(1 for _ in takewhile(lambda point: point.is_steady, curve.points))
    first_thin = max(0, steady - 1)
    x = [_thousands(point) for point in curve.points]
    for name, (line, words) in _LINES.items():
        y = [getattr(point, name).mean / _MS for point in curve.points]
        look = {"color": colour, "linestyle": line}
        label = scheme_label(curve.cell.scheme) if words == "p99" else ""
        yield LayerSpec(
            mark="line",
            x=x[:steady],
            y=y[:steady],
            label=label,
            style={**look, "zorder": 3},
        )
        thin = {**look, "linewidth": 0.9, "zorder": 2.5}
        yield LayerSpec(mark="line", x=x[first_thin:], y=y[first_thin:], style=thin)
        yield from _points(curve.points, name, style)
    if curve.knee_iops is None:
        return
    knee = curve.knee_iops.mean
    at: dict[str, Any] = {"x": [knee / _THOUSAND], "y": [_p99_at(curve, knee) / _MS]}
    ring = {"marker": "o", "markersize": 15, "fillstyle": "none", "color": colour}
    ring |= {"markeredgewidth": 2, "zorder": 4}
    yield LayerSpec(mark="points", style=ring, **at)
    # Short words, between the p99 above and the p50 below. The caption says what the ring is.
    yield _words(f"{rounded_rate(knee)}/s", at, (-4, -21), "center", colour)


def _points(
    points: Sequence[LoadPoint], name: str, style: Mapping[str, str]
) -> Iterator[LayerSpec]:
    """Yield a mark for each point, open where the run is not steady, with its interval."""
    look = {"color": style["color"], "marker": style["marker"], "markersize": 4.5}
    for is_steady, fill in ((True, style["color"]), (False, "white")):
        own = [point for point in points if point.is_steady == is_steady]
        yield LayerSpec(
            mark="points",
            x=[_thousands(point) for point in own],
            y=[getattr(point, name).mean / _MS for point in own],
            style={**look, "markerfacecolor": fill, "zorder": 3.5},
        )
    latencies = [(_thousands(point), getattr(point, name)) for point in points]
    known = [
        (x, latency.low / _MS, latency.high / _MS)
        for x, latency in latencies
        if latency.low is not None and latency.high is not None
    ]
    yield LayerSpec(
        mark="whiskers",
        x=[x for x, _, _ in known],
        low=[low for _, low, _ in known],
        high=[high for _, _, high in known],
        style={"color": style["color"], "linewidth": 1.4},
    )


def _words(
    text: str,
    at: Mapping[str, Any],
    lift: tuple[float, float],
    side: str,
    colour: str,
) -> LayerSpec:
    """Write text near a point."""
    style = {"lift": lift, "ha": side, "color": colour, "fontsize": 10.5, "zorder": 6}
    return LayerSpec(mark="text", texts=[text], style={**style, "halo": True}, **at)


def _bounds(
    curves: Sequence[LoadCurve], low_ms: float, high_ms: float
) -> Iterator[LayerSpec]:
    """Yield a line at each latency bound on the panel."""
    bounds_ns = {within.p99_ns for curve in curves for within in curve.within}
    for bound_ns in sorted(bounds_ns):
        bound_ms = bound_ns / _MS
        if not low_ms < bound_ms < high_ms:
            # Text outside the panel would shrink it.
            continue
        yield line_at(bound_ms, sideways=True, color="#666666", linestyle=":")
        # Inside the panel: beside it, a narrow figure would cut the text off. Rates are above the line.
        at, lift, side = _free_end(curves, bound_ns)
        look = {"lift": lift, "ha": side, "va": "top", "xycoords": BESIDE}
        yield LayerSpec(
            mark="text",
            x=[at],
            y=[bound_ms],
            texts=[f"≤ {duration_text(bound_ns * 1e-9)}"],
            style={**look, "fontsize": 10.5, "color": "#444444"},
        )


def _free_end(
    curves: Sequence[LoadCurve], bound_ns: float
) -> tuple[float, tuple[int, int], str]:
    """Return the place, shift and alignment of a text at the end of a line that is farther from curves."""
    reach = max(point.iops.mean for curve in curves for point in curve.points)
    left = _distance(curves, bound_ns, 0.0, reach / 4)
    right = _distance(curves, bound_ns, reach * 3 / 4, reach)
    if left >= right:
        return 0.0, (4, -3), "left"
    return 1.0, (-4, -3), "right"


def _distance(
    curves: Sequence[LoadCurve], bound_ns: float, low_per_s: float, high_per_s: float
) -> float:
    """Return the smallest ratio, as a logarithm, of a latency to the lines of curves between two rates."""
    distances = [math.inf]
    for curve, key in product(curves, _LINES):
        heights = [
            math.log(getattr(point, key).mean / bound_ns)
            for point in curve.points
            if low_per_s <= point.iops.mean <= high_per_s
        ]
        if heights:
            # A line between points on both sides crosses the latency.
            distances.append(max(0.0, min(heights), -max(heights)))
    return min(distances)


def _crossed(curve: LoadCurve) -> list[RateWithin]:
    """Return the bounds that a curve crosses below its saturation."""
    return [
        within
        for within in curve.within
        if within.iops is not None and not within.is_saturation
    ]


def _crossings(
    curves: Sequence[LoadCurve], styles: Mapping[str, Mapping[str, str]]
) -> Iterator[LayerSpec]:
    """Yield the rate at which each curve crosses each bound."""
    crossings = [
        (within, styles[curve.cell.scheme]["color"])
        for curve in curves
        for within in _crossed(curve)
    ]
    for number, (within, colour) in enumerate(crossings):
        assert within.iops is not None
        at: dict[str, Any] = {
            "x": [within.iops.mean / _THOUSAND],
            "y": [within.p99_ns / _MS],
        }
        tick = {"marker": "|", "markersize": 16, "markeredgewidth": 2.5, "zorder": 5}
        yield LayerSpec(mark="points", style={**tick, "color": colour}, **at)
        # On alternate sides, so that neighbours stay legible.
        lift, side = _LIFTS[number % len(_LIFTS)]
        text = f"{rounded_rate(within.iops.mean)}/s"
        yield _words(text, at, lift, side, colour)


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
    sentences = [_knees(kind, members) for kind, members in kinds.items()]
    curves = [curve for members in kinds.values() for curve in members]
    if any(map(_crossed, curves)):
        sentences.append("Dotted: bounds of p99. Ticks: the highest rates within them.")
    return (
        f"Latency over throughput, simulated. {' '.join(sentences)} Rings: knees. "
        "Whiskers: 95 % intervals over seeds. "
        "Open markers: the latency has no steady value, it grows with the length of the run."
    )


def _knees(kind: str, curves: Sequence[LoadCurve]) -> str:
    """Return the knees of one kind of request in a sentence."""
    knees = [
        f"{rounded_rate(curve.knee_iops.mean)}/s ({scheme_label(curve.cell.scheme)})"
        for curve in curves
        if curve.knee_iops is not None
    ]
    if not knees:
        return f"{kind}: no knee, too few steady rates."
    where = "knees" if len(knees) > 1 else "knee"
    return f"{kind}: {where} at {', '.join(knees)}."

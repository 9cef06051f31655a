"""Draw a rehearsal: fill, PGs, clients and recovery over time, and duration against latency."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stripesim.models.problems import AnswerError, Problem
from stripesim.scenarios.schema.units import duration_text
from stripesim.scenarios.show.figures.faults import (
    LATENCIES,
    RATE,
    Band,
    Line,
    counts_of_bands,
    stacked_bands,
    step_lines,
)
from stripesim.scenarios.show.figures.renderer import CaptionedFigure, drawn
from stripesim.scenarios.show.figures.specification import (
    ABOVE,
    MARKERS,
    AxisSpec,
    FigureSpec,
    LayerSpec,
    PanelSpec,
    is_wide,
    key,
    line_at,
)

Floats = npt.NDArray[np.float64]

# Units of time axes: length [s], name, and the smallest span that uses it [s].
_TIME_UNITS: Final = (
    (86400.0, "d", 3 * 86400.0),
    (3600.0, "h", 3 * 3600.0),
    (60.0, "min", 180.0),
)
#: Bands of PG states from healthy to unavailable, in colours of Okabe and Ito, with hatches for grey print.
BANDS: Final[Sequence[Band]] = (
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
    ("degraded", ("active+degraded",), "#56B4E9", ""),
    ("unavailable", ("inactive", "incomplete"), "#D55E00", "\\\\"),
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
#: Shades of fill below nearfull, from pale to dark blue.
_SHADES: Final = 12
_PALE: Final = (232, 241, 250)
_DARK: Final = (8, 78, 152)
_COLOURS: Final = {"own": "#0072B2", "live": "#009E73", "restart": "#999999"}
#: A panel with its height relative to the others.
_Sized = tuple[float, PanelSpec]


class _Unit(NamedTuple):
    """A unit of a time axis."""

    seconds: float
    name: str


def draw_rehearsal(document: Mapping[str, Any]) -> dict[str, CaptionedFigure]:
    """Draw the figures of a rehearsal, by file stem: ``timeline``, ``trade-off`` and ``restart``.

    Beside other changes, the stem of a restart has its number (``restart-2``).

    Raises
    ------
    AnswerError
        If the document is none of a rehearsal.
    """
    missing = {"changes", "timeline", "trade_off"} - document.keys()
    if missing:
        got = f"a mapping without {', '.join(sorted(missing))}"
        wanted = "what stripesim.rehearse returns"
        raise AnswerError(Problem(key="document", got=got, wanted=wanted))
    figures = {}
    changes = document["changes"]
    for number, change in enumerate(changes):
        if change["kind"] == "restart" and change["duration_s"] is not None:
            stem = "restart" if len(changes) == 1 else f"restart-{number}"
            figures[stem] = drawn(_restart_figure(change))
    if document["timeline"] is not None:
        figures["timeline"] = drawn(_timeline_figure(document))
    if document["trade_off"] is not None:
        figures["trade-off"] = drawn(_trade_off_figure(document["trade_off"]))
    return figures


def _timeline_figure(document: Mapping[str, Any]) -> FigureSpec:
    """Specify fill by OSD, PGs by state, latency, rate and recovery over one time axis."""
    timeline = document["timeline"]
    times_s = timeline["time_s"]
    # Times are the middles of equal spans from 0.
    end_s = times_s[-1] + times_s[0]
    unit = _unit(end_s)
    begins = [begin_s / unit.seconds for begin_s in timeline["begins_s"]]
    begin_lines = [line_at(at, linewidth=0.9, linestyle=(0, (4, 3))) for at in begins]
    time = AxisSpec(label=f"time [{unit.name}]", low=0, high=end_s / unit.seconds)
    sized = list(_timeline_panels(timeline, unit))
    heights = [height for height, _ in sized]
    panels = [
        replace(panel, x=time, layers=[*panel.layers, *begin_lines])
        for _, panel in sized
    ]
    # Restarts have figures of their own.
    moving = [each for each in document["changes"] if each["kind"] != "restart"]
    panels[0] = _with_changes(panels[0], moving, begins)
    return FigureSpec(
        size=(11.5, 1.0 + 2.1 * sum(heights)),
        panels=panels,
        columns=1,
        heights=heights,
        share="x",
        lettered=True,
        caption=_timeline_caption(document),
    )


def _with_changes(
    panel: PanelSpec, changes: Sequence[Mapping[str, Any]], begins: Sequence[float]
) -> PanelSpec:
    """Name the changes above a panel."""
    named = list(zip(changes, begins, strict=False))
    change_names = LayerSpec(
        mark="text",
        x=[at for _, at in named],
        y=[1.0] * len(named),
        texts=[change["kind"] for change, _ in named],
        style={"fontsize": 11, "xycoords": ABOVE, "annotation_clip": False},
    )
    return replace(panel, layers=[*panel.layers, change_names], title_pad=24)


def _timeline_panels(timeline: Mapping[str, Any], unit: _Unit) -> Iterator[_Sized]:
    fill = timeline["fill"]
    if fill is not None:
        yield 2.2, _fill_panel(timeline, unit)
        if len(fill["osds"]) < fill["osds_count"]:
            yield 1.1, _distribution_panel(timeline, unit)
    yield 1.2, _states_panel(timeline, unit)
    clients = timeline["clients"]
    if clients is not None:
        latencies = _series(clients, LATENCIES, 1e6, unit)
        yield (
            1.0,
            PanelSpec(
                title="Latency of clients",
                layers=latencies,
                y=AxisSpec(label="latency [ms]", scale="log"),
                legend="beside",
            ),
        )
        rate = _series(clients, (RATE,), 1.0, unit)
        rate_axis = AxisSpec(label="requests/s", low=0)
        yield 0.8, PanelSpec(title="Requests of clients", layers=rate, y=rate_axis)
    moved = {**timeline["recovery"], "time_s": timeline["time_s"]}
    yield (
        1.0,
        PanelSpec(
            title="Recovery",
            layers=_series(moved, _MOVED, 1e6, unit),
            y=AxisSpec(label="traffic [MB/s]", low=0),
            legend="beside",
        ),
    )


def _trade_off_figure(trade_off: Mapping[str, Any]) -> FigureSpec:
    """Specify p99 during the changes against their duration, a point for each setting."""
    points = trade_off["points"]
    unit = _unit(max(point["duration_s"] for point in points))
    layers = [_live_curve(points, unit)]
    for number, (names, point) in enumerate(_distinct(points)):
        colour = _COLOURS["restart" if point["needs_restart"] else "live"]
        if point is points[0]:
            colour = _COLOURS["own"]
        style = {"color": colour, "marker": MARKERS[number % len(MARKERS)]}
        layers += _setting(point, names, unit, style)
    limit_ms = trade_off["latency_p99_limit_ns"] / 1e6
    before_ms = points[0]["before_latency_p99_ns"] / 1e6
    for value, label, colour, line in (
        (limit_ms, "limit", "#D55E00", "--"),
        (before_ms, "before", "#444444", ":"),
    ):
        level = line_at(
            value, sideways=True, color=colour, linestyle=line, linewidth=1.2
        )
        layers.append(replace(level, label=label))
    heights_ms = [limit_ms, before_ms]
    heights_ms += [point["latency_p99_ns"] / 1e6 for point in points]
    y = AxisSpec(label="p99 during changes [ms]", low=0)
    if is_wide(heights_ms):
        # The limit would lie on the axis.
        y = replace(y, scale="log", low=min(heights_ms) / 1.6)
    panel = PanelSpec(
        layers=layers, x=AxisSpec(label=f"duration [{unit.name}]", low=0), y=y
    )
    caption = (
        f"Duration of all changes against the clients' p99 meanwhile. {trade_off['sentence']}. Whiskers: "
        "95 % intervals of the simulation alone, without errors of the model. Blue: the cluster's own "
        "setting. Grey: needs a restart of all OSDs. Dashed: limit. Dotted: before the changes."
    )
    return FigureSpec(
        size=(6.4, 5.6),
        panels=[panel],
        legend_style={"fontsize": 10},
        caption=caption,
    )


def _restart_figure(change: Mapping[str, Any]) -> FigureSpec:
    """Specify a row for each host: its downtime, and then the recovery of what clients wrote."""
    hosts = change["hosts"]
    durations_s = [row["duration_s"] for row in hosts]
    ends_s = np.cumsum(durations_s)
    unit = _unit(float(ends_s[-1]))
    begins = (ends_s - durations_s) / unit.seconds
    backs = begins + change["downtime_s"] / unit.seconds
    rows = [number + 0.5 for number in range(len(hosts))]
    layers = [
        LayerSpec(
            mark="boxes", y=rows, low=low, high=high, style={"facecolors": colour}
        )
        for low, high, colour in (
            (begins, backs, "#D55E00"),
            (backs, ends_s / unit.seconds, "#009E73"),
        )
    ]
    layers += [key("down", "#D55E00"), key("peering and recovery", "#009E73")]
    every = max(1, len(hosts) // 24)
    panel = PanelSpec(
        title="One host after another",
        layers=layers,
        x=AxisSpec(
            label=f"time [{unit.name}]", low=0, high=float(ends_s[-1]) / unit.seconds
        ),
        y=AxisSpec(
            label="host",
            ticks=rows[::every],
            names=[str(row["host"]) for row in hosts[::every]],
            low=len(hosts),
            high=0,
        ),
    )
    return FigureSpec(
        size=(7.5, 2.0 + 0.25 * min(24, len(hosts))),
        panels=[panel],
        caption=(
            f"Rolling restart of {len(hosts)} hosts in {duration_text(float(ends_s[-1]))}. Each host starts "
            "once all placement groups are clean."
        ),
    )


def _unit(span_s: float) -> _Unit:
    for seconds, name, least_s in _TIME_UNITS:
        if span_s >= least_s:
            return _Unit(seconds, name)
    return _Unit(1.0, "s")


# Panels of the timeline.


def _fill_panel(timeline: Mapping[str, Any], unit: _Unit) -> PanelSpec:
    """Specify a row for each OSD. Spans of equal shade are one box, which keeps the figure small."""
    fill = timeline["fill"]
    shares = np.array(fill["used_ratio"])
    edges = (_edges(timeline) / unit.seconds).tolist()
    ratios = {name: fill[f"{name}_ratio"] for name in _THRESHOLDS}
    layers = fill_layers(shares, edges, ratios)
    shown = "each OSD"
    if len(fill["osds"]) < fill["osds_count"]:
        shown = f"the {len(fill['osds'])} fullest of {fill['osds_count']:,} OSDs"
    rows = range(0, len(shares), max(1, len(shares) // 12))
    return PanelSpec(
        title=f"Used share of {shown}",
        layers=layers,
        y=AxisSpec(
            label="OSD",
            ticks=[row + 0.5 for row in rows],
            names=[str(fill["osds"][row]) for row in rows],
            low=len(shares),
            high=0,
        ),
        legend="beside",
        grid=False,
    )


def fill_layers(
    shares: Floats, edges: Sequence[float], ratios: Mapping[str, float]
) -> list[LayerSpec]:
    """Return boxes coloured by the fill of OSDs, and their legend.

    Parameters
    ----------
    shares
        Used share of each row and column, shape (rows, columns).
    edges
        Ends of the columns along x, shape (columns + 1,).
    ratios
        Fill from which each of ``nearfull``, ``backfillfull`` and ``full`` is reached.
    """
    thresholds = [ratios[name] for name in _THRESHOLDS]
    low = min(float(shares.min()), thresholds[0])
    bounds = np.append(np.linspace(low, thresholds[0], _SHADES + 1)[1:], thresholds[1:])
    levels = np.searchsorted(bounds, shares, side="right")
    shades = _shades()
    colours = [*shades, *_THRESHOLDS.values()]
    layers = [
        _boxes(levels == level, edges, colours[level])
        for level in np.unique(levels).tolist()
    ]
    layers += [
        key(f"{100 * low:.0f} %", shades[0]),
        key(f"{50 * (low + thresholds[0]):.0f} %", shades[_SHADES // 2]),
        key(f"below {100 * thresholds[0]:.0f} %", shades[-1]),
    ]
    layers += [
        key(f"{name}, {100 * ratios[name]:.0f} %", colour)
        for name, colour in _THRESHOLDS.items()
    ]
    return layers


def _shades() -> list[str]:
    parts = np.linspace(0, 1, _SHADES)[:, None]
    mixed = np.array(_PALE) * (1 - parts) + np.array(_DARK) * parts
    return ["#{:02x}{:02x}{:02x}".format(*row) for row in mixed.round().astype(int)]


def _boxes(
    is_level: npt.NDArray[np.bool_], edges: Sequence[float], colour: str
) -> LayerSpec:
    """Return a box for each run of True in each row."""
    runs = [
        (row + 0.5, edges[first], edges[last])
        for row in range(len(is_level))
        for first, last in _runs(is_level[row])
    ]
    return LayerSpec(
        mark="boxes",
        y=[row for row, _, _ in runs],
        low=[first for _, first, _ in runs],
        high=[last for _, _, last in runs],
        style={"facecolors": colour},
    )


def _runs(is_level: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return first and last edge of each run of True."""
    padded = np.concatenate([[False], is_level, [False]])
    borders = np.flatnonzero(padded[1:] != padded[:-1]).tolist()
    return list(zip(borders[::2], borders[1::2], strict=True))


def _distribution_panel(timeline: Mapping[str, Any], unit: _Unit) -> PanelSpec:
    fill = timeline["fill"]
    times = (np.array(timeline["time_s"]) / unit.seconds).tolist()
    spread = {
        name: (100 * np.array(values)).tolist()
        for name, values in fill["distribution"].items()
    }
    layers = [
        LayerSpec(
            mark="band",
            x=times,
            low=spread[low],
            high=spread[high],
            label=label,
            style={"color": colour},
        )
        for low, high, colour, label in (
            ("min", "max", "#A6CFE8", "min to max"),
            ("p5", "p95", "#56B4E9", "5 to 95 %"),
        )
    ]
    look = {"color": "#0072B2", "linewidth": 1.5}
    layers.append(
        LayerSpec(mark="line", x=times, y=spread["median"], label="median", style=look)
    )
    for name, colour in _THRESHOLDS.items():
        ratio = 100 * fill[f"{name}_ratio"]
        if ratio < 1.3 * max(spread["max"]):
            level = line_at(ratio, sideways=True, color=colour, linewidth=1.5)
            layers.append(replace(level, label=name))
    return PanelSpec(
        title="Used share of all OSDs",
        layers=layers,
        y=AxisSpec(label="used [%]", low=0),
        legend="beside",
    )


def _states_panel(timeline: Mapping[str, Any], unit: _Unit) -> PanelSpec:
    edges = _edges(timeline) / unit.seconds
    counts = counts_of_bands(timeline["pg_states"], BANDS)
    everything = float(sum(of_band[0] for of_band in counts.values()))
    # Clean PGs that never move only hide the others.
    moving = [
        of_band for label, of_band in counts.items() if label != BANDS[0][0]
    ] or list(counts.values())
    top = float(np.max(np.sum(moving, axis=0)))
    return PanelSpec(
        title=f"PGs by state (of {everything:,.0f})",
        layers=stacked_bands(edges, counts, BANDS),
        y=AxisSpec(label="PGs", low=0, high=min(everything, max(1.0, 1.15 * top))),
        legend="beside",
        legend_reverse=True,
    )


def _series(
    series: Mapping[str, Any], lines: Sequence[Line], divisor: float, unit: _Unit
) -> list[LayerSpec]:
    times = np.array(series["time_s"]) / unit.seconds
    return step_lines(times, series, lines, divisor=divisor, where="mid")


def _edges(timeline: Mapping[str, Any]) -> Floats:
    middles = np.array(timeline["time_s"])
    width = 2 * middles[0]
    edges: Floats = np.arange(len(middles) + 1) * width
    return edges


def _timeline_caption(document: Mapping[str, Any]) -> str:
    timeline = document["timeline"]
    moving = (each for each in document["changes"] if each["kind"] != "restart")
    total_s = sum(change["duration_s"] or 0.0 for change in moving)
    text = f"The changes over time with the cluster's own settings, {duration_text(total_s)} in all. "
    if timeline["fill"] is not None:
        peak = max(change["peak_used_ratio"] or 0.0 for change in document["changes"])
        text += f"The fullest OSD reaches {100 * peak:.1f} %. "
    if timeline["is_extrapolated"]:
        text += (
            "Fill, states and recovery follow the schedule of full-size PGs at the pace of the simulated "
            "part. The clients of that part are stretched over the same time, without requests that wait for "
            "a PG to peer. Gaps: in the part, every client waited for a PG."
        )
    return text.rstrip()


# Points of the trade-off.


def _live_curve(points: Sequence[Mapping[str, Any]], unit: _Unit) -> LayerSpec:
    """Connect the settings that a cluster can have without a restart, from the fastest to the slowest."""
    live = sorted(
        (point for point in points if not point["needs_restart"]),
        key=lambda point: float(point["duration_s"]),
    )
    return LayerSpec(
        mark="line",
        x=[point["duration_s"] / unit.seconds for point in live],
        y=[point["latency_p99_ns"] / 1e6 for point in live],
        style={"color": "#BBBBBB", "linewidth": 1.2, "zorder": 1},
    )


def _setting(
    point: Mapping[str, Any], names: str, unit: _Unit, style: Mapping[str, str]
) -> Iterator[LayerSpec]:
    """Yield the point of a setting, with whiskers along both axes where it has intervals."""
    x = point["duration_s"] / unit.seconds
    y = point["latency_p99_ns"] / 1e6
    look = {"color": style["color"], "linewidth": 1}
    along = _interval(point, "duration", "_s", 1 / unit.seconds)
    if along is not None:
        low, high = along
        yield LayerSpec(
            mark="whiskers", y=[y], low=[low], high=[high], sideways=True, style=look
        )
    across = _interval(point, "latency_p99", "_ns", 1e-6)
    if across is not None:
        low, high = across
        yield LayerSpec(mark="whiskers", x=[x], low=[low], high=[high], style=look)
    yield LayerSpec(
        mark="points", x=[x], y=[y], label=names, style={**style, "markersize": 8}
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


def _interval(
    point: Mapping[str, Any], name: str, unit: str, factor: float
) -> tuple[float, float] | None:
    """Return the ends of an interval, or None without one."""
    low = point[f"{name}_low{unit}"]
    high = point[f"{name}_high{unit}"]
    if low is None or high is None:
        return None
    return low * factor, high * factor

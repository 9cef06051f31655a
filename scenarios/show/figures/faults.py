"""Draw failures: the timeline of a run under faults, and nines of durability with their intervals."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from stripesim.scenarios.schema.keys import Cell
from stripesim.scenarios.show.figures.captions import scheme_label
from stripesim.scenarios.show.figures.renderer import CaptionedFigure, drawn
from stripesim.scenarios.show.figures.specification import (
    ABOVE,
    AxisSpec,
    FigureSpec,
    LayerSpec,
    PanelSpec,
    line_at,
)

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
    figures = {}
    for timeline in timelines:
        name = "-".join(str(timeline[key]) for key in Cell._fields if timeline.get(key))
        stem = f"timeline-{name}".replace(":", "").replace(",", "-")
        figures[stem] = draw_timeline(timeline)
    return figures


def draw_timeline(timeline: Mapping[str, Any]) -> CaptionedFigure:
    """Draw groups by state, latency and rate of requests, and bytes of recovery over one time axis."""
    return drawn(_figure(timeline))


def _figure(timeline: Mapping[str, Any]) -> FigureSpec:
    end_s = max(1e-9, float(timeline["end_s"]))
    time = AxisSpec(label="time [s]", low=0, high=end_s)
    series = timeline["foreground"]
    moved = timeline["recovery"]
    events = list(_event_lines(timeline))
    slow = list(_slow_phases(timeline))
    latency = step_lines(series["time_s"], series, LATENCIES, divisor=1e6)
    rate = step_lines(series["time_s"], series, (RATE,))
    recovery = step_lines(moved["time_s"], moved, _MOVED, divisor=1e6)
    panels = [
        _states_panel(timeline, end_s, time, events),
        PanelSpec(
            title="Latency of the requests that complete",
            layers=[*latency, *slow, *events],
            x=time,
            y=AxisSpec(label="latency [ms]", scale="log"),
            legend="beside",
        ),
        PanelSpec(
            title="Requests completed",
            layers=[*rate, *slow, *events],
            x=time,
            y=AxisSpec(label="requests/s", low=0),
        ),
        PanelSpec(
            title="Recovery traffic",
            layers=[*recovery, *events],
            x=time,
            y=AxisSpec(label="traffic [MB/s]", low=0),
            legend="beside",
        ),
    ]
    return FigureSpec(
        size=(11.5, 10.0),
        panels=panels,
        columns=1,
        heights=[1.5, 1, 0.8, 1],
        share="x",
        lettered=True,
        caption=_caption(timeline),
    )


def step_lines(
    times: npt.ArrayLike,
    series: Mapping[str, Any],
    lines: Sequence[Line],
    *,
    divisor: float = 1.0,
    where: str = "post",
) -> list[LayerSpec]:
    """Return columns of a series as steps over time."""
    return [
        LayerSpec(
            mark="steps",
            x=np.asarray(times, dtype=float).tolist(),
            y=(np.array(series[name], dtype=float) / divisor).tolist(),
            label=label,
            style={
                "where": where,
                "color": colour,
                "linestyle": style,
                "linewidth": 1.8,
            },
        )
        for name, colour, style, label in lines
    ]


def counts_of_bands(
    table: Mapping[str, Any], bands: Sequence[Band]
) -> dict[str, npt.NDArray[Any]]:
    """Return the PGs of each band over time, by its label. Bands without PGs are left out."""
    counts = {}
    for label, states, _, _ in bands:
        known = [np.array(table[state]) for state in states if state in table]
        of_band = np.sum(known, axis=0)
        if of_band.any():
            counts[label] = np.append(of_band, of_band[-1])
    return counts


def stacked_bands(
    edges: npt.ArrayLike, counts: Mapping[str, npt.NDArray[Any]], bands: Sequence[Band]
) -> list[LayerSpec]:
    """Stack PGs by state over time, the first band on top.

    Parameters
    ----------
    edges
        Times at which counts begin, and the end, shape (n + 1,).
    counts
        PGs of each band, as `counts_of_bands` returns them.
    bands
        Label, states, colour and hatch of each band.
    """
    times = np.asarray(edges, dtype=float)
    base = np.zeros(len(times))
    layers = []
    # The last bands at the bottom, where even few PGs are visible.
    for label, _, colour, hatch in reversed(bands):
        if label not in counts:
            continue
        top = base + counts[label]
        look = {"facecolor": colour, "hatch": hatch, "edgecolor": "#444444"}
        layers.append(
            LayerSpec(
                mark="band",
                x=times.tolist(),
                low=base.tolist(),
                high=top.tolist(),
                label=label,
                style={**look, "step": "post"},
            )
        )
        base = top
    return layers


def _states_panel(
    timeline: Mapping[str, Any],
    end_s: float,
    time: AxisSpec,
    events: Sequence[LayerSpec],
) -> PanelSpec:
    table = timeline["pg_states"]
    counts = counts_of_bands(table, _BANDS)
    total = sum(of_band[0] for of_band in counts.values())
    bands = stacked_bands([*table["time_s"], end_s], counts, _BANDS)
    return PanelSpec(
        title="Placement groups by state",
        layers=[*bands, *events, *_event_words(timeline, end_s)],
        x=time,
        y=AxisSpec(label="PGs", low=0, high=max(1, total)),
        legend="beside",
        legend_reverse=True,
        title_pad=32,
    )


def _moments(timeline: Mapping[str, Any]) -> list[tuple[float, str]]:
    """Return the first moment of each kind of event, but the last of being clean, with its label."""
    moments: dict[str, float] = {}
    for event in timeline["events"]:
        kind = event["what"]
        if kind in _EVENT_WORDS and (kind == "clean" or kind not in moments):
            moments[kind] = event["time_s"]
    return sorted((time_s, _EVENT_WORDS[kind]) for kind, time_s in moments.items())


def _slow_phases(timeline: Mapping[str, Any]) -> Iterator[LayerSpec]:
    """Shade the time in which placement groups are clean and use a slow drive."""
    for start_s, stop_s in timeline["phases"].get("slow", ()):
        shade = {"color": "#E69F00", "alpha": 0.15, "zorder": 1}
        yield LayerSpec(mark="span", low=[start_s], high=[stop_s], style=shade)


def _event_lines(timeline: Mapping[str, Any]) -> Iterator[LayerSpec]:
    for time_s, _ in _moments(timeline):
        yield line_at(time_s, linewidth=0.9, linestyle=(0, (4, 3)))


def _event_words(timeline: Mapping[str, Any], span_s: float) -> Iterator[LayerSpec]:
    """Yield the names of events above a panel."""
    look = {"fontsize": 11, "xycoords": ABOVE, "annotation_clip": False}
    lowest_s = -1e9
    for time_s, label in _moments(timeline):
        lift = 3
        if time_s - lowest_s < 0.05 * span_s:
            # A label that would touch the one before it goes one line higher.
            lift = 15
            lowest_s = -1e9
        else:
            lowest_s = time_s
        style = {**look, "lift": (0, lift)}
        yield LayerSpec(mark="text", x=[time_s], y=[1], texts=[label], style=style)


def _caption(timeline: Mapping[str, Any]) -> str:
    moments = ", ".join(
        f"{word} at {time_s:.1f} s" for time_s, word in _moments(timeline)
    )
    scheme = scheme_label(timeline["scheme"])
    return (
        f"{scheme} under faults: {moments}. Placement groups by state. Client requests by "
        "time of completion (latency includes all waiting). Bytes that recovery rebuilds, reads from "
        "devices and sends between hosts."
    )


#: Words, colour and mark of each method.
_METHODS: Final = {
    "markov": ("Markov chain", "#0072B2", "o"),
    "splitting": ("simulation (splitting)", "#E69F00", "s"),
    "burst": ("simultaneous failures", "#009E73", "^"),
    "history": ("simulation (histories)", "#CC79A7", "D"),
}


def draw_nines(rows: Sequence[Mapping[str, Any]]) -> CaptionedFigure:
    """Draw nines by scheme and method."""
    schemes = list(dict.fromkeys(row["scheme"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    layers: list[LayerSpec] = []
    for index, method in enumerate(methods):
        shift = 0.18 * (index - (len(methods) - 1) / 2)
        layers += _nines_layers(rows, schemes, method, shift)
    ends = [row["nines_high"] or row["nines"] or 0.0 for row in rows]
    panel = PanelSpec(
        layers=layers,
        x=AxisSpec(
            ticks=range(len(schemes)),
            names=[scheme_label(scheme) for scheme in schemes],
            low=-0.6,
            high=len(schemes) - 0.4,
        ),
        y=AxisSpec(
            label="nines of durability", low=0, high=1.08 * max(ends, default=1)
        ),
    )
    caption = (
        "Nines of durability: −log10 of the probability that any data is lost within the horizon, with "
        "95 % intervals. Exact values and approximations have no interval."
    )
    size = (2.5 + 1.4 * len(schemes), 4.5)
    return drawn(FigureSpec(size=size, panels=[panel], caption=caption))


def _nines_layers(
    rows: Sequence[Mapping[str, Any]],
    schemes: Sequence[str],
    method: str,
    shift: float,
) -> Iterator[LayerSpec]:
    """Yield the points of one method, and their intervals."""
    own = [row for row in rows if row["method"] == method and row["nines"] is not None]
    x = [schemes.index(row["scheme"]) + shift for row in own]
    words, colour, marker = _METHODS[method]
    yield LayerSpec(
        mark="whiskers",
        x=x,
        low=[row["nines_low"] or row["nines"] for row in own],
        high=[row["nines_high"] or row["nines"] for row in own],
        style={"color": colour},
    )
    yield LayerSpec(
        mark="points",
        x=x,
        y=[row["nines"] for row in own],
        label=words,
        style={"marker": marker, "color": colour},
    )

"""Draw a block trace on one sheet."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from stripesim.scenarios.show.figures.renderer import CaptionedFigure, drawn
from stripesim.scenarios.show.figures.specification import (
    COLOURS,
    AxisSpec,
    FigureSpec,
    LayerSpec,
    PanelSpec,
)
from stripesim.traces import BlockTrace, info
from stripesim.traces.locality import BLOCK_BYTES, reuse
from stripesim.traces.statistics import (
    NS_PER_S,
    NS_PER_US,
    depth_levels,
    dispersion,
    service_ns,
    windows_ns,
)

_READ: Final = COLOURS[0]
_WRITE: Final = COLOURS[1]
_DIRECTIONS: Final = ((False, _READ, "reads"), (True, _WRITE, "writes"))
_REFERENCE: Final = {"color": "#000000", "linestyle": "--", "linewidth": 1}
_BINS: Final = 120
#: Requests that are drawn one by one.
DOTS_MAX: Final = 20_000
# Steps of a curve.
_STEPS_MAX: Final = 2000

Values = npt.NDArray[Any]


def draw_trace(trace: BlockTrace) -> CaptionedFigure:
    """Draw a trace on one sheet.

    A panel for a quantity that the format does not record says so.
    """
    words = caption(info(trace))
    return drawn(
        FigureSpec(
            size=(17, 9.4),
            panels=[specify(trace) for specify in _PANELS],
            columns=4,
            title=Path(trace.source).name,
            footnote=words,
            lettered=True,
            legend="",
            caption=words.replace("\n", " "),
        )
    )


def caption(row: dict[str, Any]) -> str:
    """Describe the result of `info` in full sentences."""
    rate = f" ({_number(row['iops'])} per second)" if row["iops"] else ""
    if row["devices"] == 1:
        devices = "one device"
    else:
        devices = f"{row['devices']:,} devices"
    parts = [
        f"{row['requests']:,} requests to {devices} over {_number(row['duration_s'])} s{rate}, "
        f"read as {row['format']}; {_percent(row['read_ratio'])} are reads, "
        f"{_percent(row['sequential_fraction'])} start where the previous one on the device ended.",
        f"Sizes: mean {_size(row['bytes_mean'])}, median {_size(row['bytes_p50'])}.",
        f"They touch {_size(row['footprint_bytes'])}; {_percent(row['reuse_ratio'])} of accesses to 4 KiB "
        "blocks go to previously touched blocks.",
    ]
    if row["interarrival_cv2"] is not None:
        parts.append(
            f"Interarrival times have a squared coefficient of variation of "
            f"{row['interarrival_cv2']:,.3g} (1 for a Poisson process)."
        )
    for name, meaning in (
        ("service", "dispatch to completion"),
        ("response", "issue to completion"),
    ):
        if row[f"{name}_mean_us"] is not None:
            parts.append(
                f"{name.capitalize()} time ({meaning}): mean {_number(row[f'{name}_mean_us'])} µs, median "
                f"{_number(row[f'{name}_p50_us'])} µs, 99th percentile {_number(row[f'{name}_p99_us'])} µs."
            )
    if row["faults"]:
        parts.append(f"The file has {row['faults']:,} faults.")
    return textwrap.fill(" ".join(parts), 200)


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.1f} %"


def _rate(trace: BlockTrace) -> PanelSpec:
    issue_s = trace.requests["issue_ns"].to_numpy() / NS_PER_S
    span = float(issue_s[-1]) or 1e-9
    edges = np.linspace(0, span, min(_BINS, max(2, len(issue_s) // 8)) + 1)
    is_write = trace.requests["is_write"].to_numpy()
    base = np.zeros(len(edges))
    layers = []
    for write, colour, label in _DIRECTIONS:
        counts = np.histogram(issue_s[is_write == write], edges)[0]
        if not counts.any():
            continue
        rate = counts / np.diff(edges)
        top = base + np.append(rate, rate[-1])
        layers.append(
            LayerSpec(
                mark="band",
                x=edges,
                low=base,
                high=top,
                label=label,
                style={"color": colour, "step": "post"},
            )
        )
        base = top
    mean = len(issue_s) / span
    layers.append(_level(mean, "mean"))
    return PanelSpec(
        title="Arrival rate",
        layers=layers,
        x=AxisSpec(label="time [s]", low=0, high=span),
        y=AxisSpec(label="requests per second", low=0),
        legend="above",
    )


def _level(value: float, label: str) -> LayerSpec:
    """Return a reference line at a value of y."""
    return LayerSpec(
        mark="levels", x=[value], label=label, sideways=True, style=_REFERENCE
    )


def _gaps(trace: BlockTrace) -> PanelSpec:
    title = "Time between arrivals"
    gaps_us = np.diff(trace.requests["issue_ns"].to_numpy()) / NS_PER_US
    positive = np.sort(gaps_us[gaps_us > 0])
    if not positive.size:
        return PanelSpec(title=title, without_data="all requests at one time")
    zeros = len(gaps_us) - len(positive)
    above = 1 - (np.arange(len(positive)) + zeros) / len(gaps_us)
    # The longest gaps are few and far apart on the axis, so their steps are kept.
    kept = np.union1d(_enough(len(positive)), np.arange(len(positive))[-_STEPS_MAX:])
    at = np.geomspace(positive[0], positive[-1], 400)
    low = 0.5 / len(gaps_us)
    with np.errstate(under="ignore"):
        poisson = np.exp(-at / float(gaps_us.mean()))
    is_shown = poisson >= low
    style = {"color": _READ, "where": "post", "linewidth": 1.5}
    return PanelSpec(
        title=title,
        layers=[
            LayerSpec(
                mark="steps",
                x=positive[kept],
                y=above[kept],
                label="trace",
                style=style,
            ),
            LayerSpec(
                mark="line",
                x=at[is_shown],
                y=poisson[is_shown],
                label="Poisson, same mean",
                style=_REFERENCE,
            ),
        ],
        x=AxisSpec(label="gap [µs]", scale="log"),
        y=AxisSpec(label="share of longer gaps", scale="log", low=low, high=1.3),
        legend="lower left",
    )


def _dispersion(trace: BlockTrace) -> PanelSpec:
    title = "Burstiness by time scale"
    issue = trace.requests["issue_ns"].to_numpy()
    windows = windows_ns(issue)
    factors = (1, 10 ** (1 / 3), 10 ** (2 / 3))
    fine = sorted({round(window * factor) for window in windows for factor in factors})
    fine = [window for window in fine if windows and window <= max(windows)]
    if len(fine) < 2:
        return PanelSpec(title=title, without_data="the trace is too short")
    curve = LayerSpec(
        mark="marked line",
        x=[window / NS_PER_S for window in fine],
        y=[dispersion(issue, window) for window in fine],
        label="trace",
        style={"color": _READ, "marker": "o", "linewidth": 1.5, "markersize": 6},
    )
    return PanelSpec(
        title=title,
        layers=[curve, _level(1, "Poisson")],
        x=AxisSpec(label="window [s]", scale="log"),
        y=AxisSpec(label="variance / mean per window", scale="log"),
        legend="best",
    )


def _sizes(trace: BlockTrace) -> PanelSpec:
    layers = []
    for write, colour, label in _DIRECTIONS:
        own = trace.requests.filter(trace.requests["is_write"] == write)
        sizes = own["length_bytes"].to_numpy()
        if sizes.size:
            legend_text = f"{label} ({sizes.size:,})"
            layers.append(distribution(sizes / 1024, legend_text, color=colour))
    return PanelSpec(
        title="Request sizes",
        layers=layers,
        x=AxisSpec(label="size [KiB]", scale="log2"),
        y=AxisSpec(label="share at most as large", low=0, high=1.02),
        legend="best",
    )


def _offsets(trace: BlockTrace) -> PanelSpec:
    busiest = trace.requests["device"].value_counts(sort=True)["device"][0]
    rows = trace.requests.filter(trace.requests["device"] == busiest)
    step = -(-rows.height // DOTS_MAX)
    rows = rows.gather_every(step)
    layers = []
    for write, colour, label in _DIRECTIONS:
        part = rows.filter(rows["is_write"] == write)
        if part.is_empty():
            continue
        dots = {"marker": ".", "color": colour}
        layers.append(
            LayerSpec(
                mark="points",
                x=part["issue_ns"].to_numpy() / NS_PER_S,
                y=part["offset_bytes"].to_numpy() / 2**30,
                style={**dots, "markersize": 2, "alpha": 0.5, "rasterized": True},
            )
        )
        layers.append(LayerSpec(mark="points", label=label, style=dots))
    axis = "offset"
    if trace.requests["device"].n_unique() > 1:
        axis = f"device {busiest}"
    every = "" if step == 1 else f", every {step}th request"
    return PanelSpec(
        title="Offsets accessed",
        layers=layers,
        x=AxisSpec(label=f"time [s]{every}"),
        y=AxisSpec(label=f"{axis} [GiB]"),
        legend="above",
    )


def _reuse(trace: BlockTrace) -> PanelSpec:
    title = "Reuse: hits of an LRU cache"
    reused = reuse(trace.requests)
    sizes = np.unique(np.geomspace(1, max(2, reused.blocks), 200).astype(np.int64))
    most = float((reused.distances >= 0).mean())
    if not most:
        return PanelSpec(title=title, without_data="no block is accessed twice")
    curve = LayerSpec(
        mark="line",
        x=sizes * BLOCK_BYTES / 2**20,
        y=reused.hit_ratio(sizes),
        label="LRU",
        style={"color": _READ},
    )
    return PanelSpec(
        title=title,
        layers=[curve, _level(most, "cache without limit")],
        x=AxisSpec(label="cache [MiB]", scale="log"),
        y=AxisSpec(
            label="share of accesses served",
            low=0,
            high=max(0.05, most * 1.15),
        ),
        legend="lower right",
    )


def _depth(trace: BlockTrace) -> PanelSpec:
    title = "Requests in flight"
    levels = depth_levels(trace.requests)
    if not levels.sum():
        return PanelSpec(title=title, without_data="the format records no completions")
    share = levels / levels.sum()
    seen = np.flatnonzero(share)
    low = share[seen].min() / 2
    dots = {"marker": "o", "color": _READ, "markersize": 4}
    return PanelSpec(
        title=title,
        layers=[
            LayerSpec(mark="points", x=seen, y=share[seen], style=dots),
            LayerSpec(
                mark="whiskers",
                x=seen,
                low=[low] * len(seen),
                high=share[seen],
                style={"color": _READ, "linewidth": 1},
            ),
        ],
        x=AxisSpec(label="requests in flight, issue to completion"),
        y=AxisSpec(label="share of time", scale="log"),
    )


def _times(trace: BlockTrace) -> PanelSpec:
    title = "Service and response time"
    layers = list(_time_layers(trace))
    if not layers:
        return PanelSpec(title=title, without_data="the format records no completions")
    return PanelSpec(
        title=title,
        layers=layers,
        x=AxisSpec(label="time [µs]", scale="log"),
        y=AxisSpec(label="share at most as long", low=0, high=1.02),
        legend="lower right",
    )


def _time_layers(trace: BlockTrace) -> Iterator[LayerSpec]:
    rows = trace.requests.drop_nulls("complete_ns")
    for write, colour, label in _DIRECTIONS:
        part = rows.filter(rows["is_write"] == write)
        response_ns = (part["complete_ns"] - part["issue_ns"]).to_numpy()
        of_both = (
            ("service", service_ns(trace, is_write=write), "-"),
            ("response", response_ns, "--"),
        )
        for name, times_ns, line in of_both:
            if times_ns.size:
                legend = f"{name}, {label}"
                look = {"color": colour, "linestyle": line}
                yield distribution(times_ns / NS_PER_US, legend, **look)


_PANELS: Final[tuple[Callable[[BlockTrace], PanelSpec], ...]] = (
    _rate,
    _gaps,
    _dispersion,
    _sizes,
    _offsets,
    _reuse,
    _depth,
    _times,
)


def distribution(values: Values, label: str, **style: Any) -> LayerSpec:
    """Return the share of values that are at most as large, as steps."""
    at, counts = np.unique(values, return_counts=True)
    share = np.cumsum(counts) / counts.sum()
    kept = _enough(len(at))
    at, share = at[kept], share[kept]
    return LayerSpec(
        mark="steps",
        # Start the steps at zero. A single size would otherwise be a single point.
        x=np.concatenate((at[:1], at)),
        y=np.concatenate(([0.0], share)),
        label=label,
        style={"where": "post", "linewidth": 1.8, **style},
    )


def _enough(count: int) -> npt.NDArray[np.int64]:
    """Return positions of at most `_STEPS_MAX` of `count` ascending values, evenly spaced with both ends."""
    return np.linspace(0, count - 1, min(count, _STEPS_MAX)).astype(np.int64)


def _size(size_bytes: float) -> str:
    for unit, name in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size_bytes >= unit:
            return f"{size_bytes / unit:.3g} {name}"
    return f"{size_bytes:.3g} B"


def _number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"

"""Draw a fit of service times: line, distribution functions and quantile-quantile plot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from stripesim.calibration.ssd.result import Floats, ServiceFit
from stripesim.calibration.ssd.time_fit import ModelTimes, model_times, sample_of
from stripesim.scenarios.show.figures.renderer import CaptionedFigure, drawn
from stripesim.scenarios.show.figures.specification import (
    COLOURS,
    AxisSpec,
    FigureSpec,
    LayerSpec,
    PanelSpec,
)
from stripesim.scenarios.show.figures.trace_sheet import DOTS_MAX, distribution
from stripesim.traces import BlockTrace

_DATA: Final = COLOURS[0]
_HELD_OUT: Final = COLOURS[1]
_MODEL: Final = "#000000"
_US: Final = 1e3
_FITTED: Final = "first half (fitted)"
# Points of the model's distribution function.
_STEPS: Final = 1000
_NEVER_SEEN: Final = "second half (held out)"


@dataclass(frozen=True)
class _Half:
    """The commands of one half of a trace, and the times that the model gives for them."""

    label: str
    colour: str
    marker: str
    size_bytes: Floats
    times_us: Floats
    model: ModelTimes


def draw_fit(fit: ServiceFit, trace: BlockTrace) -> CaptionedFigure:
    """Draw a fit against its trace."""
    sample = sample_of(trace, fit.operation, fit.quantity)
    half = fit.train.commands
    size = sample.size_bytes
    times_us = sample.times_ns / _US
    table = np.asarray(fit.factor_table)
    halves = [
        _Half(
            label,
            colour,
            marker,
            size[part],
            times_us[part],
            # The model at the sizes of each half tests times rather than the choice of sizes.
            model_times(fit.line, table, size[part]),
        )
        for label, colour, marker, part in (
            (_FITTED, _DATA, "o", slice(half)),
            (_NEVER_SEEN, _HELD_OUT, "^", slice(half, None)),
        )
    ]
    title = f"{fit.operation.capitalize()} {fit.quantity} time, {fit.source}: "
    title += f"first {half} of {len(size)} fitted"
    if fit.concurrency and fit.concurrency.channels and fit.concurrency.channels_ci95:
        low, high = fit.concurrency.channels_ci95
        title += f"; {fit.concurrency.channels:.1f} effective channels (95 % {low:.1f} to {high:.1f})"
    panels = [
        _times_panel(fit, halves),
        _shares_panel(fit, halves),
        _qq_panel(fit, halves),
    ]
    return drawn(
        FigureSpec(
            size=(15, 5.2),
            panels=panels,
            title=title,
            caption=_caption(title),
            lettered=True,
            legend="below",
        )
    )


def _caption(title: str) -> str:
    return (
        f"{title}. (a) Time of each command over its size (of at most {DOTS_MAX:,}), with the fitted mean "
        "and median. (b) Distribution of times in both halves and in the model, with Kolmogorov-Smirnov "
        "distances. (c) Quantiles of the model over those of the data."
    )


def _times_panel(fit: ServiceFit, halves: list[_Half]) -> PanelSpec:
    """Specify times over sizes with the fitted line."""
    dots = {"marker": "o", "markersize": 3.5, "markeredgewidth": 0, "alpha": 0.4}
    step = -(-sum(len(half.times_us) for half in halves) // DOTS_MAX)
    layers = [
        LayerSpec(
            mark="points",
            x=half.size_bytes[::step] / 1024,
            y=half.times_us[::step],
            style={**dots, "color": half.colour, "rasterized": True},
        )
        for half in halves
    ]
    across = np.linspace(0, max(half.size_bytes.max() for half in halves), 100)
    mean_us = fit.line.mean_ns(across) / _US
    median_us = mean_us * float(np.median(fit.factor_table))
    for y, label, line in (
        (mean_us, "fitted mean", "-"),
        (median_us, "fitted median", "--"),
    ):
        look = {"color": _MODEL, "linestyle": line, "linewidth": 1.5}
        layers.append(
            LayerSpec(mark="line", x=across / 1024, y=y, label=label, style=look)
        )
    base = [value / _US for value in (fit.line.base_ns, *fit.line.base_ns_ci95)]
    slope = [
        value * 1024 for value in (fit.line.ns_per_byte, *fit.line.ns_per_byte_ci95)
    ]
    return PanelSpec(
        title=f"mean = {base[0]:.0f} µs + {slope[0]:.0f} ns/KiB\n"
        f"95 %: {base[1]:.0f} to {base[2]:.0f} µs, {slope[1]:.0f} to {slope[2]:.0f} ns/KiB",
        layers=layers,
        x=AxisSpec(label="size [KiB]"),
        y=AxisSpec(label=f"{fit.quantity} time [µs]", scale="log"),
    )


def _shares_panel(fit: ServiceFit, halves: list[_Half]) -> PanelSpec:
    """Specify the distribution functions of both halves and of the model."""
    layers = [
        distribution(half.times_us, half.label, color=half.colour, linewidth=2)
        for half in halves
    ]
    model = {"color": _MODEL, "linestyle": "--", "linewidth": 1}
    levels = (np.arange(_STEPS) + 0.5) / _STEPS
    layers.append(
        distribution(halves[1].model.quantile_ns(levels) / _US, "model", **model)
    )
    both = np.concatenate([half.times_us for half in halves])
    best = min(fit.candidates, key=lambda candidate: candidate.aic)
    return PanelSpec(
        title=f"KS {fit.train.ks:.3f} fitted, {fit.held_out.ks:.3f} held out\n"
        f"({best.name}: {best.ks_train:.3f} and {best.ks_held_out:.3f})",
        layers=layers,
        # Omit extreme times, which would compress the curves. Other panels show them.
        x=AxisSpec(
            label=f"{fit.quantity} time [µs]",
            scale="log",
            low=np.quantile(both, 0.001) * 0.9,
            high=np.quantile(both, 0.995) * 1.1,
        ),
        y=AxisSpec(label="share of commands at most as slow", low=0, high=1),
    )


def _qq_panel(fit: ServiceFit, halves: list[_Half]) -> PanelSpec:
    """Specify quantiles of the model over those of the data."""
    # Percentiles, then the tail in steps that the sample can resolve.
    tail = 1 - np.geomspace(0.01, 1 / fit.train.commands, 8)
    levels = np.concatenate((np.arange(0.01, 0.99, 0.01), tail))
    layers = []
    ends: list[float] = []
    for half in halves:
        x = np.quantile(half.times_us, levels)
        y = half.model.quantile_ns(levels) / _US
        ends += [*x[[0, -1]], *y[[0, -1]]]
        look = {"color": half.colour, "marker": half.marker, "markersize": 5}
        layers.append(
            LayerSpec(
                mark="points", x=x, y=y, label=half.label, style={**look, "alpha": 0.7}
            )
        )
    diagonal = [min(ends) * 0.8, max(ends) * 1.25]
    equal = {"color": _MODEL, "linewidth": 1}
    layers.append(
        LayerSpec(
            mark="line", x=diagonal, y=diagonal, label="model = data", style=equal
        )
    )
    score = fit.held_out
    errors = {
        "p50": score.p50_error,
        "p90": score.p90_error,
        "p99": score.p99_error,
    }
    texts = [f"{name} {100 * error:+.1f} %" for name, error in errors.items()]
    texts = [text.replace("-", "−") for text in texts]
    return PanelSpec(
        title=f"Held-out half: mean {100 * score.mean_error:+.1f} %\n"
        + ", ".join(texts),
        layers=layers,
        x=AxisSpec(label="data quantile [µs]", scale="log"),
        y=AxisSpec(label="model quantile [µs]", scale="log"),
        square=True,
    )

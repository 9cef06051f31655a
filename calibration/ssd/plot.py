"""Draw a fit of service times: line, distribution functions and quantile-quantile plot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stripesim.calibration.ssd.result import Floats, ServiceFit
from stripesim.calibration.ssd.time_fit import model_times_ns, sample_of
from stripesim.traces import BlockTrace
from stripesim.traces.figure import picture_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

# Palette by Okabe and Ito, which colour-blind readers can distinguish.
_DATA, _HELD_OUT, _MODEL = "#0072B2", "#D55E00", "#000000"
_US = 1e3
_FITTED = "first half (fitted)"
_NEVER_SEEN = "second half (held out)"


def plot_fit(fit: ServiceFit, trace: BlockTrace) -> tuple[bytes, bytes]:
    """Draw a fit against its trace, as SVG and PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    sample = sample_of(trace, fit.operation, fit.quantity)
    half = fit.train.commands
    size = sample.size_bytes
    times_us = sample.times_ns / _US
    table = np.asarray(fit.factor_table)
    # Evaluate the model at the held-out sizes, to test times rather than the choice of sizes.
    models = [
        model_times_ns(fit.line, table, part) / _US
        for part in (size[:half], size[half:])
    ]
    figure = Figure(figsize=(15, 5.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, 3)
    _draw_line(axes[0], fit, size, times_us)
    _draw_cdf(axes[1], fit, times_us[:half], times_us[half:], models)
    _draw_qq(axes[2], fit, times_us[:half], times_us[half:], models)
    overall = f"{fit.operation.capitalize()} {fit.quantity} time, {fit.source}: "
    overall += f"first {half} of {len(size)} fitted"
    if fit.concurrency and fit.concurrency.channels and fit.concurrency.channels_ci95:
        low, high = fit.concurrency.channels_ci95
        overall += f"; {fit.concurrency.channels:.1f} effective channels (95 % {low:.1f} to {high:.1f})"
    figure.suptitle(overall, fontsize=13, fontweight="bold")
    return picture_bytes(figure, dpi=160)


def _draw_line(axes: Axes, fit: ServiceFit, size: Floats, times_us: Floats) -> None:
    half = fit.train.commands
    for part, colour, label in (
        (slice(half), _DATA, _FITTED),
        (slice(half, None), _HELD_OUT, _NEVER_SEEN),
    ):
        axes.plot(
            size[part] / 1024,
            times_us[part],
            "o",
            color=colour,
            markersize=3.5,
            markeredgewidth=0,
            alpha=0.4,
            label=label,
        )
    across = np.linspace(0, size.max(), 100)
    axes.plot(
        across / 1024, fit.line.mean_ns(across) / _US, color=_MODEL, label="fitted mean"
    )
    median = fit.line.mean_ns(across) * float(np.median(fit.factor_table)) / _US
    axes.plot(
        across / 1024, median, color=_MODEL, linestyle="--", label="fitted median"
    )
    axes.set(yscale="log", xlabel="size [KiB]", ylabel=f"{fit.quantity} time [µs]")
    _plain_ticks(axes.yaxis, (1,))
    axes.legend(loc="upper center", fontsize=9, framealpha=0.9)
    base = [value / _US for value in (fit.line.base_ns, *fit.line.base_ns_ci95)]
    slope = [
        value * 1024 for value in (fit.line.ns_per_byte, *fit.line.ns_per_byte_ci95)
    ]
    axes.set_title(
        f"mean = {base[0]:.0f} µs + {slope[0]:.0f} ns/KiB\n"
        f"95 %: {base[1]:.0f} to {base[2]:.0f} µs, {slope[1]:.0f} to {slope[2]:.0f} ns/KiB",
        fontsize=11,
    )


def _draw_cdf(
    axes: Axes, fit: ServiceFit, train: Floats, held_out: Floats, models: list[Floats]
) -> None:
    for times, colour, label in (
        (train, _DATA, _FITTED),
        (held_out, _HELD_OUT, _NEVER_SEEN),
    ):
        share = np.arange(1, len(times) + 1) / len(times)
        axes.step(
            np.sort(times), share, color=colour, where="post", linewidth=2, label=label
        )
    model = models[1]
    share = np.arange(1, len(model) + 1) / len(model)
    axes.plot(model, share, color=_MODEL, linestyle="--", linewidth=1, label="model")
    both = np.concatenate((train, held_out))
    # Omit extreme times, which would compress the curves. Other panels show them.
    axes.set(
        xscale="log",
        xlim=(np.quantile(both, 0.001) * 0.9, np.quantile(both, 0.995) * 1.1),
        ylim=(0, 1),
    )
    axes.set(
        xlabel=f"{fit.quantity} time [µs]", ylabel="share of commands at most as slow"
    )
    _plain_ticks(axes.xaxis, (1, 2, 5))
    axes.legend(loc="lower right", fontsize=9)
    best = min(fit.candidates, key=lambda candidate: candidate.aic)
    axes.set_title(
        f"KS distance {fit.train.ks:.3f} fitted, {fit.held_out.ks:.3f} held out\n"
        f"({best.name} instead of the table: {best.ks_train:.3f}, {best.ks_held_out:.3f})",
        fontsize=11,
    )


def _draw_qq(
    axes: Axes, fit: ServiceFit, train: Floats, held_out: Floats, models: list[Floats]
) -> None:
    # Percentiles, then the tail in steps that the sample can resolve.
    tail = 1 - np.geomspace(0.01, 1 / fit.train.commands, 8)
    levels = np.concatenate((np.arange(0.01, 0.99, 0.01), tail))
    for times, model, colour, marker, label in (
        (train, models[0], _DATA, "o", _FITTED),
        (held_out, models[1], _HELD_OUT, "^", _NEVER_SEEN),
    ):
        at = (np.quantile(times, levels), np.quantile(model, levels))
        axes.plot(*at, marker, color=colour, markersize=5, alpha=0.7, label=label)
    ends = [
        bound
        for values in (train, held_out)
        for bound in np.quantile(values, levels[[0, -1]])
    ]
    ends += [
        bound for values in models for bound in np.quantile(values, levels[[0, -1]])
    ]
    diagonal = [min(ends) * 0.8, max(ends) * 1.25]
    axes.plot(diagonal, diagonal, color=_MODEL, linewidth=1, label="model = data")
    axes.set(xscale="log", yscale="log", aspect="equal")
    axes.set(xlabel="data quantile [µs]", ylabel="model quantile [µs]")
    _plain_ticks(axes.xaxis, (1,))
    _plain_ticks(axes.yaxis, (1,))
    axes.legend(loc="lower right", fontsize=9)
    score = fit.held_out
    axes.set_title(
        f"model / data - 1 on the held-out half: mean {score.mean_error:+.1%},\n"
        f"p50 {score.p50_error:+.1%}, p90 {score.p90_error:+.1%}, p99 {score.p99_error:+.1%}",
        fontsize=11,
    )


def _plain_ticks(axis: Axis, multiples: tuple[int, ...]) -> None:
    """Label a logarithmic axis with plain numbers at these multiples of powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=multiples))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())

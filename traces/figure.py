"""Draw a block trace on one sheet."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stripesim.traces.columns import BlockTrace
from stripesim.traces.locality import BLOCK_BYTES, reuse
from stripesim.traces.statistics import (
    NS_PER_S,
    NS_PER_US,
    depth_levels,
    dispersion,
    info,
    service_ns,
    windows_ns,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Palette by Okabe and Ito, which colour-blind readers can distinguish.
_READ, _WRITE, _BLACK, _GREY = "#0072B2", "#D55E00", "#000000", "#999999"
_DIRECTIONS = ((False, _READ, "reads"), (True, _WRITE, "writes"))
_BINS = 120
_DOTS_MAX = 20_000

Values = npt.NDArray[Any]


def figure_sheet(trace: BlockTrace) -> tuple[bytes, bytes]:
    """Draw a trace on one sheet, as SVG and PNG.

    A panel for a quantity that the format does not record says so.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    summary = info(trace)
    figure = Figure(figsize=(17, 9.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 4)
    for letter, one, (words, draw) in zip(
        "abcdefgh", axes.flat, _PANELS.items(), strict=True
    ):
        draw(one, trace)
        one.set_title(f"({letter}) {words}", fontsize=11, loc="left")
        one.spines[["top", "right"]].set_visible(False)
    # A name may contain $ and ^, which are not mathematics.
    figure.suptitle(
        Path(trace.source).name, fontsize=14, fontweight="bold", parse_math=False
    )
    figure.supxlabel(caption(summary), fontsize=10.5, x=0.01, ha="left")
    return picture_bytes(figure, dpi=130)


def picture_bytes(figure: Figure, dpi: int) -> tuple[bytes, bytes]:
    """Return a figure as SVG and PNG, reproducibly, without a date and random identifiers.

    Parameters
    ----------
    figure
        The figure.
    dpi
        Resolution of the PNG picture [1/inch].
    """
    from matplotlib import rc_context

    svg = BytesIO()
    png = BytesIO()
    with rc_context({"svg.hashsalt": "stripesim"}):
        figure.savefig(svg, format="svg", metadata={"Date": None})
    figure.savefig(png, format="png", dpi=dpi)
    return svg.getvalue(), png.getvalue()


def caption(row: dict[str, Any]) -> str:
    """Describe the result of `info` in full sentences."""
    rate = f" ({_number(row['iops'])} per second)" if row["iops"] else ""
    if row["devices"] == 1:
        devices = "one device"
    else:
        devices = f"{row['devices']:,} devices"
    parts = [
        f"{row['requests']:,} requests to {devices} over {_number(row['duration_s'])} s{rate}, "
        f"read as {row['format']}; {row['read_ratio']:.1%} are reads, "
        f"{row['sequential_fraction']:.1%} start where the previous one on the device ended.",
        f"Sizes: mean {_size(row['bytes_mean'])}, median {_size(row['bytes_p50'])}.",
        f"They touch {_size(row['footprint_bytes'])}; {row['reuse_ratio']:.1%} of accesses to 4 KiB blocks "
        "go to previously touched blocks.",
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


def _draw_rate(axes: Axes, trace: BlockTrace) -> None:
    issue_s = trace.requests["issue_ns"].to_numpy() / NS_PER_S
    span = float(issue_s[-1]) or 1e-9
    edges = np.linspace(0, span, min(_BINS, max(2, len(issue_s) // 8)) + 1)
    is_write = trace.requests["is_write"].to_numpy()
    base = np.zeros(len(edges) - 1)
    for write, colour, label in _DIRECTIONS:
        rate = np.histogram(issue_s[is_write == write], edges)[0] / np.diff(edges)
        axes.stairs(
            base + rate, edges, baseline=base, fill=True, color=colour, label=label
        )
        base = base + rate
    axes.axhline(
        len(issue_s) / span, color=_BLACK, linewidth=1, linestyle="--", label="mean"
    )
    axes.set(
        xlabel="time [s]", ylabel="requests per second", xlim=(0, span), ylim=(0, None)
    )
    axes.legend(fontsize=9)


def _draw_gaps(axes: Axes, trace: BlockTrace) -> None:
    gaps_us = np.diff(trace.requests["issue_ns"].to_numpy()) / NS_PER_US
    positive = np.sort(gaps_us[gaps_us > 0])
    if not positive.size:
        return _empty(axes, "all requests at one time")
    above = 1 - (np.arange(len(positive)) + (len(gaps_us) - len(positive))) / len(
        gaps_us
    )
    axes.step(positive, above, color=_READ, where="post", label="trace")
    mean = float(gaps_us.mean())
    at = np.geomspace(positive[0], positive[-1], 400)
    with np.errstate(under="ignore"):
        axes.plot(
            at,
            np.exp(-at / mean),
            color=_BLACK,
            linestyle="--",
            linewidth=1,
            label="Poisson, same mean",
        )
    low = 0.5 / len(gaps_us)
    axes.set(
        xscale="log",
        yscale="log",
        ylim=(low, 1.3),
        xlabel="gap [µs]",
        ylabel="share of gaps that are longer",
    )
    axes.legend(fontsize=9, loc="lower left")


def _draw_dispersion(axes: Axes, trace: BlockTrace) -> None:
    from matplotlib.ticker import LogLocator

    issue = trace.requests["issue_ns"].to_numpy()
    windows = windows_ns(issue)
    fine = sorted(
        {round(w * f) for w in windows for f in (1, 10 ** (1 / 3), 10 ** (2 / 3))}
    )
    fine = [w for w in fine if windows and w <= max(windows)]
    if len(fine) < 2:
        return _empty(axes, "the trace is too short")
    axes.plot(
        np.array(fine) / NS_PER_S,
        [dispersion(issue, w) for w in fine],
        "o-",
        color=_READ,
        label="trace",
    )
    axes.axhline(1, color=_BLACK, linestyle="--", linewidth=1, label="Poisson")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="window [s]",
        ylabel="variance / mean of requests per window",
    )
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(lambda value, _: "")
    axes.legend(fontsize=9)


def _draw_sizes(axes: Axes, trace: BlockTrace) -> None:
    for write, colour, label in _DIRECTIONS:
        sizes = trace.requests.filter(trace.requests["is_write"] == write)[
            "length_bytes"
        ].to_numpy()
        if sizes.size:
            _draw_cdf(axes, sizes / 1024, colour, f"{label} ({sizes.size:,})")
    axes.set(
        xlabel="size [KiB]", ylabel="share of requests at most as large", ylim=(0, 1.02)
    )
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.legend(fontsize=9, loc="lower right")


def _draw_places(axes: Axes, trace: BlockTrace) -> None:
    busiest = trace.requests["device"].value_counts(sort=True)["device"][0]
    rows = trace.requests.filter(trace.requests["device"] == busiest)
    step = -(-rows.height // _DOTS_MAX)
    rows = rows.gather_every(step)
    for write, colour, label in _DIRECTIONS:
        part = rows.filter(rows["is_write"] == write)
        x = part["issue_ns"].to_numpy() / NS_PER_S
        y = part["offset_bytes"].to_numpy() / 2**30
        axes.plot(
            x,
            y,
            ".",
            color=colour,
            markersize=2,
            alpha=0.5,
            label=label,
            rasterized=True,
        )
    if trace.requests["device"].n_unique() > 1:
        note = f"device {busiest}"
    else:
        note = "offset"
    every = "" if step == 1 else f", every {step}th request"
    axes.set_xlabel(f"time [s]{every}")
    axes.set_ylabel(f"{note} [GiB]", parse_math=False)
    # Above the panel, where the legend hides no points.
    axes.legend(
        fontsize=9,
        markerscale=5,
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=2,
        borderaxespad=0.1,
    )


def _draw_reuse(axes: Axes, trace: BlockTrace) -> None:
    reused = reuse(trace.requests)
    sizes = np.unique(np.geomspace(1, max(2, reused.blocks), 200).astype(np.int64))
    axes.plot(
        sizes * BLOCK_BYTES / 2**20,
        reused.hit_ratio(sizes),
        color=_READ,
        linewidth=2,
        label="LRU",
    )
    most = float((reused.distances >= 0).mean())
    axes.axhline(
        most, color=_BLACK, linestyle="--", linewidth=1, label="cache without limit"
    )
    axes.set(xscale="log", xlabel="cache [MiB]", ylim=(0, max(0.05, most * 1.15)))
    axes.set_ylabel("share of 4 KiB accesses served")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.legend(fontsize=9, loc="lower right")


def _draw_depth(axes: Axes, trace: BlockTrace) -> None:
    levels = depth_levels(trace.requests)
    if not levels.sum():
        return _empty(axes, "the format records no completions")
    share = levels / levels.sum()
    axes.plot(np.arange(len(share)), share, "o", color=_READ, markersize=4)
    axes.vlines(
        np.arange(len(share)),
        share[share > 0].min() / 2,
        share,
        color=_READ,
        linewidth=1,
    )
    axes.set(
        yscale="log",
        xlabel="requests in flight, issue to completion",
        ylabel="share of time",
    )


def _draw_times(axes: Axes, trace: BlockTrace) -> None:
    rows = trace.requests.drop_nulls("complete_ns")
    drawn = False
    for write, colour, label in _DIRECTIONS:
        part = rows.filter(rows["is_write"] == write)
        response_ns = (part["complete_ns"] - part["issue_ns"]).to_numpy()
        of_both = (
            ("service", service_ns(trace, is_write=write), "-"),
            ("response", response_ns, "--"),
        )
        for name, times_ns, style in of_both:
            if times_ns.size:
                _draw_cdf(axes, times_ns / NS_PER_US, colour, f"{name}, {label}", style)
                drawn = True
    if not drawn:
        return _empty(axes, "the format records no completions")
    axes.set(
        xscale="log", xlabel="time [µs]", ylabel="share at most as long", ylim=(0, 1.02)
    )
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.legend(fontsize=9, loc="lower right")


_PANELS: dict[str, Callable[[Axes, BlockTrace], None]] = {
    "Arrival rate": _draw_rate,
    "Time between arrivals": _draw_gaps,
    "Burstiness by time scale": _draw_dispersion,
    "Request sizes": _draw_sizes,
    "Offsets accessed": _draw_places,
    "Reuse: hit ratio of an LRU cache": _draw_reuse,
    "Requests in flight": _draw_depth,
    "Service and response time": _draw_times,
}


def _draw_cdf(
    axes: Axes, values: Values, colour: str, label: str, style: str = "-"
) -> None:
    at, counts = np.unique(values, return_counts=True)
    share = np.cumsum(counts) / counts.sum()
    # Start the steps at zero. A single size would otherwise be a single point.
    at = np.concatenate(([at[0]], at))
    share = np.concatenate(([0.0], share))
    axes.step(
        at,
        share,
        where="post",
        color=colour,
        linestyle=style,
        linewidth=1.8,
        label=label,
    )


def _empty(axes: Axes, why: str) -> None:
    axes.text(
        0.5, 0.5, why, ha="center", va="center", transform=axes.transAxes, color=_GREY
    )
    axes.set(xticks=[], yticks=[])


def _size(size_bytes: float) -> str:
    for unit, name in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size_bytes >= unit:
            return f"{size_bytes / unit:.3g} {name}"
    return f"{size_bytes:.3g} B"


def _number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"

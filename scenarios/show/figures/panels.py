"""Draw one panel: a quantity against block size for each scheme."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from stripesim.scenarios.schema.units import format_size, number_text
from stripesim.scenarios.show.figures.captions import block_sizes, scheme_label
from stripesim.scenarios.show.quantities import QUANTITIES

# Okabe & Ito, "Color universal design" (2008), without the yellow, which is too light for lines on white.
COLOURS: Final = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#E69F00",
    "#000000",
)
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")
LINES: Final = ("-", "--", "-.", ":", "-", "--", "-.")

#: Factor between the largest and the smallest value above which an axis is logarithmic.
_LOG_SPAN: Final = 30.0


@dataclass(frozen=True)
class Panel:
    """The quantity that a panel shows."""

    metric: str  # column of the result rows
    title: str
    unit: str
    factor: float  # from the column's unit to the one shown
    # columns with the ends of its confidence interval
    ci: tuple[str, str] | None = None


def panel_of(key: str, title: str) -> Panel:
    """Return a panel of a column of the result rows, in the column's unit."""
    column = QUANTITIES[key]
    return Panel(key, title, column.unit, column.factor, column.ci)


THROUGHPUT: Final = panel_of("throughput_bytes_per_s", "Throughput")
# Figures of mean latency show no whiskers, which would repeat those of throughput.
LATENCY: Final = replace(panel_of("latency_mean_ns", "Mean latency"), ci=None)


def draw_panel(
    axes: Axes,
    rows: pl.DataFrame,
    panel: Panel,
    schemes: Sequence[str],
) -> list[float]:
    """Draw one quantity against block size, a line for each scheme; return the values drawn."""
    sizes = block_sizes(rows)
    if len(sizes) == 1:
        _draw_bars(axes, rows, panel, schemes)
        return []
    shown: list[float] = []
    for index, scheme in enumerate(schemes):
        own = rows.filter(pl.col("scheme") == scheme).sort("block_size_bytes")
        style = index % len(COLOURS)
        # A small step apart, the whiskers of schemes at one block size do not hide each other.
        step = (index - (len(schemes) - 1) / 2) * 0.09
        positions = [sizes.index(size) for size in own["block_size_bytes"]]
        x = np.array(positions, dtype=float) + step
        y = _shown_values(own, panel.metric, panel)
        shown += [float(value) for value in y if np.isfinite(value)]
        axes.plot(
            x,
            y,
            color=COLOURS[style],
            marker=MARKERS[style],
            zorder=3,
            linestyle=LINES[style],
            linewidth=2,
            markersize=7,
            markeredgecolor="white",
            markeredgewidth=0.8,
            label=scheme_label(scheme),
        )
        if panel.ci is not None and set(panel.ci) <= set(own.columns):
            low, high = (_shown_values(own, name, panel) for name in panel.ci)
            axes.vlines(x, low, high, color=COLOURS[style], linewidth=1.6, zorder=2.5)
    axes.set_xticks(range(len(sizes)), size_labels(sizes))
    axes.set_xlim(-0.5, len(sizes) - 0.5)
    axes.set_ylabel(panel.unit)
    return shown


def _shown_values(
    rows: pl.DataFrame, column: str, panel: Panel
) -> npt.NDArray[np.float64]:
    values: npt.NDArray[np.float64] = rows[column].cast(pl.Float64).to_numpy()
    return values * panel.factor


def _draw_bars(
    axes: Axes,
    rows: pl.DataFrame,
    panel: Panel,
    schemes: Sequence[str],
) -> None:
    """Draw one quantity at the only block size, a bar for each scheme with its value."""
    for index, scheme in enumerate(schemes):
        colour = COLOURS[index % len(COLOURS)]
        for row in rows.filter(pl.col("scheme") == scheme).iter_rows(named=True):
            value = row[panel.metric]
            if value is None:
                continue
            axes.bar(index, value * panel.factor, width=0.6, color=colour, zorder=2)
            known = [row.get(name) for name in panel.ci or ()]
            ends = [end for end in known if end is not None]
            top = value
            if len(ends) == 2:
                low, high = (end * panel.factor for end in ends)
                axes.vlines(index, low, high, color="#222222", linewidth=1.6)
                top = max(value, *ends)
            text = number_text(value, panel.factor)
            note(axes, text, (index, top * panel.factor), (0, 3))
    axes.set_xticks(range(len(schemes)), [scheme_label(scheme) for scheme in schemes])
    axes.set_xlim(-0.6, len(schemes) - 0.4)
    axes.set_ylabel(panel.unit)
    axes.margins(y=0.12)


def note(
    axes: Axes,
    text: str,
    point: tuple[float, float],
    lift: tuple[float, float],
    **look: Any,
) -> None:
    """Write text near a point of the data, shifted by `lift` to the right and upwards [points]."""
    usual = {"ha": "center", "textcoords": "offset points"}
    axes.annotate(text, point, lift, **(usual | look))


def legend_entries(figure: Figure) -> dict[str, Any]:
    """Return what the legend of a whole figure shows: the handle of each label, of all panels."""
    entries = [axes.get_legend_handles_labels() for axes in figure.axes]
    return {
        label: handle for entry in entries for handle, label in zip(*entry, strict=True)
    }


def legend_above(
    figure: Figure, handles: Sequence[Any], labels: Sequence[str], **look: Any
) -> int:
    """Put a legend above all panels, in as many of five columns as fit; return its number of lines."""
    columns = min(len(labels), 5)
    while True:
        legend = figure.legend(
            handles, labels, loc="outside upper left", ncols=columns, **look
        )
        if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return -(-len(labels) // columns)
        legend.remove()
        columns -= 1


def size_labels(sizes: Sequence[int]) -> list[str]:
    """Label block sizes [bytes] in KiB where all are whole KiB, else exactly."""
    if _all_kibibytes(sizes):
        return [f"{size // 1024}" for size in sizes]
    return [format_size(size) for size in sizes]


def size_axis_title(sizes: Sequence[int]) -> str:
    """Name the axis of block sizes [bytes], with the unit of its labels."""
    if len(sizes) == 1:
        return f"block size {format_size(sizes[0])}"
    if _all_kibibytes(sizes):
        return "block size [KiB]"
    return "block size"


def _all_kibibytes(sizes: Sequence[int]) -> bool:
    return all(size % 1024 == 0 for size in sizes)


def scale_axis(axes: Axes, shown: Sequence[float]) -> None:
    """Start at zero, or use a logarithmic scale where small values would not be visible."""
    positive = [value for value in shown if value > 0]
    if positive and max(positive) / min(positive) > _LOG_SPAN:
        low, high = min(positive) / 1.6, max(positive) * 1.6
        axes.set_yscale("log")
        axes.set_ylim(low, high)
        # One label does not tell the scale of an axis.
        powers_inside = math.floor(math.log10(high)) - math.ceil(math.log10(low)) + 1
        labelled = (1.0,) if powers_inside > 1 else (1.0, 2.0, 5.0)
        axes.yaxis.set_major_locator(LogLocator(base=10, subs=labelled))
        axes.yaxis.set_minor_locator(LogLocator(base=10, subs=range(2, 10)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=0)
        axes.yaxis.set_minor_locator(NullLocator())
    plain_numbers(axes.yaxis)


def plain_numbers(axis: Axis) -> None:
    """Write the numbers of an axis without powers of ten, and with commas between thousands."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))

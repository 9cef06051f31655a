"""Draw the figure of a sweep: throughput against the first swept key."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator

from stripesim.scenarios.figures.captions import (
    OP_WORDS,
    PATTERN_WORDS,
    kind_words,
    scheme_label,
)
from stripesim.scenarios.figures.panels import (
    COLOURS,
    LINES,
    MARKERS,
    THROUGHPUT,
    scale_axis,
)
from stripesim.scenarios.figures.results import (
    CaptionedFigure,
    legend,
    new_figure,
    styled,
)
from stripesim.scenarios.run.results import block_text

#: Most lines in a figure: one for each colour.
_LINES_MAX: Final = len(COLOURS)

#: Factor between the largest and smallest value above which the axis of the swept key is logarithmic.
_LOG_SPAN: Final = 10.0

#: Up to this many values, the axis has ticks at exactly the values that were run.
_TICKS_MAX: Final = 8

#: Swept keys that already are columns of result rows.
_CELL_KEYS: Final = ("workload.ops", "workload.patterns", "workload.block_sizes_bytes")


def draw_sweep(aggregated: pl.DataFrame, keys: Sequence[str]) -> CaptionedFigure | None:
    """Draw throughput against the first swept key, in one panel per pattern and op.

    Parameters
    ----------
    aggregated
        Means and intervals over replications, `SweepResult.aggregated`.
    keys
        Swept keys, as ``over`` names them.

    Returns
    -------
    CaptionedFigure or None
        None if the first key has no numbers, or fewer than two.
    """
    if not keys or not aggregated.schema[keys[0]].is_numeric():
        return None
    x = keys[0]
    shown = aggregated.filter(pl.col(THROUGHPUT.metric).is_not_null())
    if shown.is_empty() or shown[x].n_unique() < 2:
        return None
    # The columns of cells already show swept schemes and block sizes.
    hidden = {x, "schemes", *_CELL_KEYS}
    if x == "workload.block_sizes_bytes":
        hidden.add("block_size_bytes")
    further = [
        name
        for name in (*keys[1:], "block_size_bytes")
        if name not in hidden and shown[name].n_unique() > 1
    ]
    left_out: list[str] = []
    if shown.select("scheme", *further).n_unique() > _LINES_MAX:
        first: dict[str, Any] = {name: shown[name][0] for name in further}
        left_out = [f"{name} = {value}" for name, value in first.items()]
        shown = shown.filter(*(pl.col(name) == value for name, value in first.items()))
        further = []
    lines = _lines(shown, further)
    simulated = set(shown.select("op", "pattern").iter_rows())
    known = itertools.product((*OP_WORDS, "trace"), (*PATTERN_WORDS, "trace"))
    panels = [pair for pair in known if pair in simulated]
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    with styled():
        figure = new_figure((5.75 * columns, 0.8 + 3.6 * rows))
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes in grid.flat[len(panels) :]:
            axes.set_axis_off()
        for axes, (op, pattern) in zip(grid.flat, panels, strict=False):
            panel = shown.filter((pl.col("op") == op) & (pl.col("pattern") == pattern))
            _draw(axes, panel, x, lines)
            axes.set_title(kind_words(op, pattern))
        legend(figure)
    return CaptionedFigure(figure, _caption(shown, x, left_out))


def _lines(shown: pl.DataFrame, keys: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return the values that select the rows of each line, by label."""
    lines: dict[str, Mapping[str, Any]] = {}
    distinct = shown.select("scheme", *keys).unique(maintain_order=True)
    for row in distinct.iter_rows(named=True):
        parts = [scheme_label(row["scheme"])]
        for name in keys:
            if name == "block_size_bytes":
                parts.append(block_text(row))
            else:
                parts.append(f"{name.rpartition('.')[2]} {row[name]}")
        lines[", ".join(parts)] = row
    return lines


def _draw(
    axes: Axes, rows: pl.DataFrame, x: str, lines: Mapping[str, Mapping[str, Any]]
) -> None:
    values: list[float] = []
    for index, (label, wanted) in enumerate(lines.items()):
        points = rows.filter(
            *(pl.col(name).eq_missing(value) for name, value in wanted.items())
        ).sort(x)
        if points.is_empty():
            continue
        positions = points[x].cast(pl.Float64).to_list()
        throughputs = (points[THROUGHPUT.metric] * THROUGHPUT.factor).to_list()
        values += throughputs
        axes.plot(
            positions,
            throughputs,
            color=COLOURS[index],
            marker=MARKERS[index],
            linestyle=LINES[index],
            linewidth=2,
            markersize=7,
            markeredgecolor="white",
            markeredgewidth=0.8,
            label=label,
            zorder=3,
        )
        ends = [
            (points[f"{THROUGHPUT.metric}_ci_{end}"] * THROUGHPUT.factor).to_list()
            for end in ("low", "high")
        ]
        for position, low, high in zip(positions, *ends, strict=True):
            if low is not None and high is not None:
                axes.vlines(
                    position, low, high, color=COLOURS[index], linewidth=1.6, zorder=2.5
                )
    ticks = sorted(set(rows[x].cast(pl.Float64).to_list()))
    if ticks[0] > 0 and ticks[-1] / ticks[0] > _LOG_SPAN:
        axes.set_xscale("log", base=2)
    if len(ticks) <= _TICKS_MAX:
        axes.set_xticks(ticks)
        axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    scale_axis(axes, values)
    axes.set_xlabel(x)
    axes.set_ylabel("throughput [MB/s]")


def _caption(shown: pl.DataFrame, x: str, left_out: Sequence[str]) -> str:
    count = max(shown["replications"].to_list())
    replications = "one replication"
    if count != 1:
        replications = f"means of {count} replications with 95 % intervals"
    text = f"Throughput against {x} (MB = 10⁶ bytes); {replications}."
    if left_out:
        text += f" Only lines at {', '.join(left_out)} are drawn; the table has all."
    if "steady" in shown.columns and not shown["steady"].all():
        unsteady = shown.filter(~pl.col("steady")).height
        text += f" {unsteady} of {shown.height} cells did not reach a steady state."
    return text

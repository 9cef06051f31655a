"""The figure of a sweep: throughput against the first swept key."""

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

#: More lines than there are colours cannot be distinguished.
_LINES_MAX: Final = len(COLOURS)

#: Beyond this factor between the largest and smallest value the axis of the swept key is logarithmic.
_LOG_SPAN: Final = 10.0

#: Up to this many values the axis marks those that were run.
_TICKS_MAX: Final = 8


def draw_sweep(aggregated: pl.DataFrame, keys: Sequence[str]) -> CaptionedFigure | None:
    """Draw throughput against the first swept key, a panel for each pattern and op."""
    if not keys or not aggregated.schema[keys[0]].is_numeric():
        return None
    x = keys[0]
    shown = aggregated.filter(pl.col(THROUGHPUT.metric).is_not_null())
    if shown.is_empty() or shown[x].n_unique() < 2:
        return None
    others = [
        name
        for name in (*keys[1:], "block_size_bytes")
        if name != x and shown[name].n_unique() > 1
    ]
    # A swept list of schemes or block sizes is shown by the cells' own columns.
    others = [name for name in others if name not in ("schemes", *_CELL_KEYS)]
    if x == "workload.block_sizes_bytes":
        others = [name for name in others if name != "block_size_bytes"]
    left_out: list[str] = []
    if shown.select("scheme", *others).n_unique() > _LINES_MAX:
        first: dict[str, Any] = {name: shown[name][0] for name in others}
        left_out = [f"{name} = {value}" for name, value in first.items()]
        shown = shown.filter(*(pl.col(name) == value for name, value in first.items()))
        others = []
    lines = _lines(shown, others)
    there = set(shown.select("op", "pattern").iter_rows())
    every = itertools.product((*OP_WORDS, "trace"), (*PATTERN_WORDS, "trace"))
    panels = [pair for pair in every if pair in there]
    columns = min(2, len(panels))
    down = -(-len(panels) // columns)
    with styled():
        figure = new_figure((5.75 * columns, 0.8 + 3.6 * down))
        grid = figure.subplots(down, columns, squeeze=False)
        for axes in grid.flat[len(panels) :]:
            axes.set_axis_off()
        for axes, (op, pattern) in zip(grid.flat, panels, strict=False):
            here = shown.filter((pl.col("op") == op) & (pl.col("pattern") == pattern))
            _draw(axes, here, x, lines)
            axes.set_title(f"{kind_words(op, pattern)}")
        legend(figure)
    return CaptionedFigure(figure, _caption(shown, x, left_out))


_CELL_KEYS: Final = ("workload.ops", "workload.patterns", "workload.block_sizes_bytes")


def _lines(shown: pl.DataFrame, others: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Label of each line → the values that its rows have."""
    lines: dict[str, Mapping[str, Any]] = {}
    for row in (
        shown.select("scheme", *others)
        .unique(maintain_order=True)
        .iter_rows(named=True)
    ):
        parts = [
            f"{name.rpartition('.')[2]} {row[name]}"
            for name in others
            if name != "block_size_bytes"
        ]
        parts += [block_text(row)] if "block_size_bytes" in others else []
        lines[", ".join([scheme_label(row["scheme"]), *parts])] = row
    return lines


def _draw(
    axes: Axes, rows: pl.DataFrame, x: str, lines: Mapping[str, Mapping[str, Any]]
) -> None:
    values: list[float] = []
    for index, (label, chosen) in enumerate(lines.items()):
        mine = rows.filter(
            *(pl.col(name).eq_missing(value) for name, value in chosen.items())
        ).sort(x)
        if mine.is_empty():
            continue
        at = mine[x].cast(pl.Float64).to_list()
        y = (mine[THROUGHPUT.metric] * THROUGHPUT.factor).to_list()
        values += y
        axes.plot(
            at,
            y,
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
            (mine[f"{THROUGHPUT.metric}_ci_{end}"] * THROUGHPUT.factor).to_list()
            for end in ("low", "high")
        ]
        for place, low, high in zip(at, *ends, strict=True):
            if low is not None and high is not None:
                axes.vlines(
                    place, low, high, color=COLOURS[index], linewidth=1.6, zorder=2.5
                )
    places = rows[x].cast(pl.Float64)
    smallest, largest = places.min(), places.max()
    assert isinstance(smallest, float) and isinstance(largest, float)
    if smallest > 0 and largest / smallest > _LOG_SPAN:
        axes.set_xscale("log", base=2)
    ticks = sorted(set(places.to_list()))
    if len(ticks) <= _TICKS_MAX:
        axes.set_xticks(ticks)
        axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    scale_axis(axes, values)
    axes.set_xlabel(x)
    axes.set_ylabel("throughput [MB/s]")


def _caption(shown: pl.DataFrame, x: str, left_out: Sequence[str]) -> str:
    count = max(shown["replications"].to_list())
    text = f"Throughput against {x} (MB = 10⁶ bytes)"
    text += (
        f"; means of {count} replications with 95 % intervals."
        if count != 1
        else "; one replication."
    )
    if left_out:
        text += f" Of several lines only those at {', '.join(left_out)}; the table has the others."
    if "steady" in shown.columns and not shown["steady"].all():
        unsteady = shown.filter(~pl.col("steady")).height
        text += f" {unsteady} of {shown.height} cells did not reach a steady state."
    return text

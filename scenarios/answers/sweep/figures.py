"""Draw the figure of a sweep: throughput against the first swept key."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import polars as pl
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator

from stripesim.scenarios.schema.units import format_size
from stripesim.scenarios.show.figures.captions import (
    OP_WORDS,
    PATTERN_WORDS,
    key_words,
    kind_words,
    scheme_label,
)
from stripesim.scenarios.show.figures.panels import (
    COLOURS,
    LINES,
    MARKERS,
    THROUGHPUT,
    scale_axis,
)
from stripesim.scenarios.show.figures.results import (
    CaptionedFigure,
    legend,
    new_figure,
    styled,
)

#: Most schemes and most combinations of other values in a figure: one for each colour and style of line.
_SCHEMES_MAX: Final = len(COLOURS)
_STYLES: Final = tuple(dict.fromkeys(LINES))
#: Colour of the legend of line styles.
_GREY: Final = "#555555"

#: Factor between the largest and smallest value above which the axis of the swept key is logarithmic.
_LOG_SPAN: Final = 10.0

#: Up to this many values, the axis has ticks at exactly the values that were run.
_TICKS_MAX: Final = 8

#: Swept keys that already are columns of result rows.
_CELL_KEYS: Final = ("workload.ops", "workload.patterns", "workload.block_sizes_bytes")


class _Lines(NamedTuple):
    """How a figure tells lines apart: schemes by colour and mark, other values by the style of the line."""

    schemes: Sequence[str]
    #: Values of further keys, one mapping for each style
    others: Sequence[Mapping[str, Any]]


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
    schemes = shown["scheme"].unique(maintain_order=True).to_list()
    if len(schemes) > _SCHEMES_MAX:
        left_out += [scheme_label(name) for name in schemes[_SCHEMES_MAX:]]
        schemes = schemes[:_SCHEMES_MAX]
    others = shown.select(further).unique(maintain_order=True).to_dicts() or [{}]
    if len(others) > len(_STYLES):
        left_out += [_values_text(one) for one in others[1:]]
        others = others[:1]
    lines = _Lines(schemes, others)
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


def _values_text(values: Mapping[str, Any]) -> str:
    """Write values of swept keys.

    >>> _values_text({"cluster.hosts": 4, "block_size_bytes": 65536})
    'hosts 4, block size 64KiB'
    """
    return ", ".join(
        f"{key_words(key)} {_value_text(key, value)}" for key, value in values.items()
    )


def _value_text(key: str, value: Any) -> str:
    if value is None:
        return "–"
    if key.endswith("_bytes"):
        return format_size(int(value))
    return f"{value:,.10g}" if isinstance(value, int | float) else str(value)


def _draw(axes: Axes, rows: pl.DataFrame, x: str, lines: _Lines) -> None:
    values: list[float] = []
    several = len(lines.others) > 1
    for index, scheme in enumerate(lines.schemes):
        look = {
            "color": COLOURS[index],
            "marker": MARKERS[index],
            "linewidth": 2,
            "markersize": 7,
            "markeredgecolor": "white",
            "markeredgewidth": 0.8,
            "zorder": 3,
        }
        for number, wanted in enumerate(lines.others):
            points = rows.filter(
                pl.col("scheme") == scheme,
                *(pl.col(name).eq_missing(value) for name, value in wanted.items()),
            ).sort(x)
            if points.is_empty():
                continue
            # The first line of a scheme stands in the legend.
            label = scheme_label(scheme) if number == 0 else ""
            style = _STYLES[number] if several else LINES[index]
            values += _draw_line(axes, points, x, {**look, "linestyle": style}, label)
    if several:
        _name_styles(axes, lines.others)
    _scale_x(axes, x, sorted(set(rows[x].cast(pl.Float64).to_list())))
    scale_axis(axes, values)
    axes.set_ylabel("throughput [MB/s]")


def _draw_line(
    axes: Axes, points: pl.DataFrame, x: str, look: Mapping[str, Any], label: str
) -> list[float]:
    """Draw one line with its intervals, and return the values drawn."""
    positions = points[x].cast(pl.Float64).to_list()
    throughputs: list[float] = (points[THROUGHPUT.metric] * THROUGHPUT.factor).to_list()
    axes.plot(positions, throughputs, label=label, **look)
    ends = [
        (points[f"{THROUGHPUT.metric}_ci_{end}"] * THROUGHPUT.factor).to_list()
        for end in ("low", "high")
    ]
    for position, low, high in zip(positions, *ends, strict=True):
        if low is not None and high is not None:
            axes.vlines(
                position, low, high, color=look["color"], linewidth=1.6, zorder=2.5
            )
    return throughputs


def _name_styles(axes: Axes, others: Sequence[Mapping[str, Any]]) -> None:
    """Add a legend entry for each style of line."""
    for style, values in zip(_STYLES, others, strict=False):
        label = _values_text(values)
        axes.plot([], [], color=_GREY, linestyle=style, linewidth=2, label=label)


def _scale_x(axes: Axes, x: str, ticks: Sequence[float]) -> None:
    """Scale and label the axis of the swept key."""
    if ticks[0] > 0 and ticks[-1] / ticks[0] > _LOG_SPAN:
        axes.set_xscale("log", base=2)
    if len(ticks) <= _TICKS_MAX:
        axes.set_xticks(ticks)
        axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda at, _: _value_text(x, at)))
    axes.set_xlabel(key_words(x))


def _caption(shown: pl.DataFrame, x: str, left_out: Sequence[str]) -> str:
    count = max(shown["replications"].to_list())
    replications = "one replication"
    if count != 1:
        replications = f"means of {count} replications with 95 % intervals"
    text = f"Throughput against {key_words(x)} (MB = 10⁶ bytes); {replications}."
    if left_out:
        text += f" Not drawn, but in the table: {'; '.join(left_out)}."
    if "steady" in shown.columns and not shown["steady"].all():
        unsteady = shown.filter(~pl.col("steady")).height
        text += f" {unsteady} of {shown.height} cells did not reach a steady state."
    return text

"""Draw a study's figures from its ``figures.toml``: panels of marks that SQL queries fill.

A figure is a table of that file::

    [latency]                          # the file's stem
    size = [12.5, 4.4]                 # inches
    caption = "The slowest takes {slowest} s."
    facts = ["SELECT MAX(simulated_s) AS slowest FROM rows"]
    panels = [{ title = "20 nodes" }, { title = "100 nodes" }]
    x = { label = "time [s]" }

    [[latency.layers]]
    mark = "line"                      # see `marks.py`
    query = "SELECT '20 nodes' AS panel, code AS series, at_s AS x, share AS y FROM rows"

Queries see ``rows`` (the study's result rows), ``claims`` (see `claims_table`), the tables of
`Study.figure_tables`, and the results of the queries in the file's table ``[tables]``. The columns of their
results are ``x`` and ``y``, and perhaps ``panel`` (default: every panel), ``series`` (colour, line and
marker), ``low`` and ``high`` (ends of a band) and ``text``. A figure with ``like = "stem"`` inherits missing
keys from that figure. A layer may list several queries, because the order of a UNION is not fixed.
``{stem}`` in a query is the figure's own stem.

Next read `stripesim.scenarios.studies.figure_spec`, which lists all keys, and
`stripesim.scenarios.studies.marks`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Literal, cast

import numpy as np
import polars as pl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from stripesim.calibration.ledger.verdicts import Entry, Ledger
from stripesim.scenarios.schema.units import format_size, number_text
from stripesim.scenarios.show.figures.panels import LINES, MARKERS, scale_axis
from stripesim.scenarios.show.figures.paper import CLAIMS_LABEL
from stripesim.scenarios.show.figures.results import CaptionedFigure, new_figure, styled
from stripesim.scenarios.studies.claims_panel import (
    CLAIMS_WIDTH_INCH,
    LINE_HEIGHT_INCH,
    draw_claims,
)
from stripesim.scenarios.studies.description import shipped_toml
from stripesim.scenarios.studies.figure_spec import (
    AxisSpec,
    FigureSpec,
    LayerSpec,
    PanelSpec,
    figure_specs,
)
from stripesim.scenarios.studies.marks import (
    MARKS,
    PATCHES,
    SIDE_BY_SIDE,
    DrawnPanel,
    SeriesPoints,
)

GREY: Final = "#555555"
#: Columns of a claim that queries see.
CLAIM_COLUMNS: Final = (
    "id",
    "locus",
    "metric",
    "scheme",
    "baseline",
    "pattern",
    "op",
    "block_size",
    "role",
)
#: Layers with the rows that their queries give.
LayerRows = Sequence[tuple[LayerSpec, pl.DataFrame]]


def draw_figures(
    study: str,
    tables: Mapping[str, pl.DataFrame],
    claims: Mapping[str, Sequence[Entry]],
) -> dict[str, CaptionedFigure]:
    """Draw every figure of a study that the rows allow, and return figures by file stem.

    `claims` are the judged claims to draw next to figures, by stem.
    """
    context = pl.SQLContext(tables, eager=True)
    for name, query in shipped_toml(study, "figures.toml").get("tables", {}).items():
        # A table may need an experiment that was left out.
        with suppress(
            pl.exceptions.ColumnNotFoundError, pl.exceptions.SQLInterfaceError
        ):
            context.register(name, context.execute(query))
    experiments: set[str] = set()
    if "experiment" in tables["rows"].columns:
        experiments = set(tables["rows"]["experiment"])
    drawn = {}
    with styled():
        for stem, spec in figure_specs(study).items():
            if not experiments.issuperset(spec.needs):
                continue
            figure = draw_figure(spec, context, claims.get(stem, ()))
            if figure is not None:
                drawn[stem] = figure
    return drawn


def claims_table(ledger: Ledger) -> pl.DataFrame:
    """Return a ledger as a table for queries, without numbers that are ranges or lists."""
    rows = [
        {
            **{name: getattr(entry.claim, name) for name in CLAIM_COLUMNS},
            "published": _one_number(entry.claim.published),
            "tolerance": entry.claim.tolerance,
            "simulated": _one_number(entry.simulated),
            "error": entry.error,
            "verdict": entry.verdict,
        }
        for entry in ledger.entries
    ]
    numbers = ("published", "tolerance", "simulated", "error")
    types = dict.fromkeys(numbers, pl.Float64)
    return pl.DataFrame(rows, schema_overrides=types, infer_schema_length=None)


def draw_figure(
    spec: FigureSpec, context: pl.SQLContext[Any], claims: Sequence[Entry] = ()
) -> CaptionedFigure | None:
    """Draw one figure, or return None without data."""
    layers = [
        (layer, pl.concat(map(context.execute, layer.queries), how="vertical_relaxed"))
        for layer in spec.layers
    ]
    if all(rows.is_empty() for _, rows in layers):
        return None
    if not spec.panels:
        spec = _with_panels(spec, layers[0][1])
    facts: dict[str, _Fact] = {}
    for query in spec.facts:
        row = context.execute(query).row(0, named=True)
        facts |= {name: _Fact(value) for name, value in row.items()}
    figure, panels = _laid_out(spec, layers, claims, facts)
    order = _series_order(spec, layers)
    for layer, rows in layers:
        for panel in panels:
            _draw_layer(panel, layer, _of_panel(rows, panel.spec), spec, order)
    for panel in panels:
        _finish_panel(panel)
    _add_legend(figure, spec, panels)
    return CaptionedFigure(figure, spec.caption.format(**facts))


class _Fact:
    """A value for a caption. Without a format a number has its significant digits."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __format__(self, spec: str) -> str:
        if not spec and isinstance(self.value, float):
            return number_text(self.value)
        return format(self.value, spec)


def _one_number(value: object) -> float | None:
    return value if isinstance(value, float) else None


# --- layout -----------------------------------------------------------------------------------------------


def _with_panels(spec: FigureSpec, rows: pl.DataFrame) -> FigureSpec:
    """Add a panel for each name in the rows, in lines of the figure's height."""
    names = rows["panel"].unique(maintain_order=True).to_list()
    title = spec.template.title
    panels = [
        replace(spec.template, key=name, title=title.format(panel=name))
        for name in names
    ]
    lines = math.ceil(len(panels) / (spec.columns or len(panels)))
    width, height = spec.size
    return replace(spec, panels=panels, size=(width, height * lines))


def _laid_out(
    spec: FigureSpec,
    layers: LayerRows,
    claims: Sequence[Entry],
    facts: Mapping[str, _Fact],
) -> tuple[Figure, list[DrawnPanel]]:
    """Lay out the panels, and the claims next to them."""
    columns = spec.columns or len(spec.panels)
    lines = math.ceil(len(spec.panels) / columns)
    width, height = spec.size
    height += spec.category_height * len(_categories(layers))
    widths = list(spec.widths) or [width / columns] * columns
    if claims:
        height = max(height, 1.3 + LINE_HEIGHT_INCH * len(claims))
        width += CLAIMS_WIDTH_INCH
        widths.append(2.6)
    figure = new_figure((width, height))
    heights = list(spec.heights) or None
    grid = figure.add_gridspec(
        lines, len(widths), width_ratios=widths, height_ratios=heights
    )
    panels: list[DrawnPanel] = []
    for index, panel in enumerate(spec.panels):
        line, column = divmod(index, columns)
        shared = _shared_axes(spec, panels, beginning=line * columns)
        axes = figure.add_subplot(grid[line, column], **shared)
        letter = f"({'abcdefgh'[index]}) " if len(spec.panels) > 1 else ""
        axes.set_title(letter + panel.title.format(**facts))
        _label_axes(axes, panel, spec, at_left=column == 0, below=line == lines - 1)
        mine = [(layer, _of_panel(rows, panel)) for layer, rows in layers]
        categories = _categories(layers if spec.share else mine)
        order = dict.fromkeys([*panel.order, *categories])
        panels.append(DrawnPanel(axes, panel, list(order), _beside(mine)))
    if claims:
        beside = figure.add_subplot(grid[:, columns], label=CLAIMS_LABEL)
        draw_claims(beside, claims)
    if spec.title:
        figure.suptitle(spec.title, x=0.005, ha="left", weight="bold", fontsize=14)
    return figure, panels


def _shared_axes(
    spec: FigureSpec, panels: Sequence[DrawnPanel], beginning: int
) -> dict[str, Axes]:
    """Return the axes that share their scales with the next panel, whose line begins at an index."""
    if spec.share == "rows":
        line = panels[beginning:]
        return {"sharey": line[0].axes} if line else {}
    return {f"share{which}": panels[0].axes for which in spec.share if panels}


def _label_axes(
    axes: Axes, panel: PanelSpec, spec: FigureSpec, *, at_left: bool, below: bool
) -> None:
    """Label the axes, and shared ones only at the figure's edge."""
    x_shown = below or "x" not in spec.share
    y_shown = at_left or not ("y" in spec.share or spec.share == "rows")
    if x_shown:
        axes.set_xlabel(panel.x.label)
    if y_shown:
        axes.set_ylabel(panel.y.label)
    axes.tick_params(labelbottom=x_shown, labelleft=y_shown)


def _of_panel(rows: pl.DataFrame, panel: PanelSpec) -> pl.DataFrame:
    if "panel" not in rows.columns:
        return rows
    return rows.filter(pl.col("panel") == (panel.key or panel.title))


def _categories(layers: LayerRows) -> list[str]:
    """Return the categories along x in order of appearance."""
    categories: dict[str, None] = {}
    for _, rows in layers:
        if rows["x"].dtype == pl.String:
            categories |= dict.fromkeys(rows["x"])
    return list(categories)


def _beside(layers: LayerRows) -> list[str]:
    """Return the series that are drawn side by side at a category."""
    beside: dict[str, None] = {}
    for layer, rows in layers:
        if layer.mark in SIDE_BY_SIDE and "series" in rows.columns:
            beside |= dict.fromkeys(rows["series"])
    return list(beside)


def _series_order(spec: FigureSpec, layers: LayerRows) -> list[str]:
    order = dict.fromkeys(spec.series)
    for _, rows in layers:
        if "series" in rows.columns:
            order |= dict.fromkeys(rows["series"])
    return list(order)


# --- layers -----------------------------------------------------------------------------------------------


def _draw_layer(
    panel: DrawnPanel,
    layer: LayerSpec,
    rows: pl.DataFrame,
    spec: FigureSpec,
    order: Sequence[str],
) -> None:
    """Draw one layer on one panel, series by series."""
    if rows.is_empty():
        return
    if "series" not in rows.columns:
        rows = rows.with_columns(series=pl.lit(""))
    draw = MARKS[layer.mark]
    names = rows["series"].unique(maintain_order=True).to_list()
    for series in sorted(names, key=[*order, ""].index):
        index = order.index(series) if series else 0
        look = {
            "color": layer.colour or spec.colours[index % len(spec.colours)],
            "linestyle": LINES[index % len(LINES)],
            "marker": MARKERS[index % len(MARKERS)],
        }
        label = ""
        if layer.label is None:
            label = spec.names.get(series, series)
        mine = rows.filter(pl.col("series") == series)
        draw(panel, SeriesPoints(series, mine, look, layer.style, label))
    if layer.label:
        _draw_key(panel, layer, layer.label)


def _draw_key(panel: DrawnPanel, layer: LayerSpec, label: str) -> None:
    """Draw only the legend entry that all series of a layer share."""
    colour = layer.colour or GREY
    if layer.mark in PATCHES:
        panel.axes.scatter([], [], label=label, color=colour, marker="s", s=120)
        return
    look = {"color": colour, "linestyle": "-", "marker": "o"}
    nothing = pl.DataFrame(schema={"x": pl.Float64, "y": pl.Float64})
    mark = "line" if layer.mark in ("levels", "whiskers") else layer.mark
    MARKS[mark](panel, SeriesPoints("", nothing, look, layer.style, label))


# --- axes and legends -------------------------------------------------------------------------------------


def _finish_panel(panel: DrawnPanel) -> None:
    """Scale and label the axes, and add the panel's own legend."""
    axes = panel.axes
    spec = panel.spec
    along, across = ("y", "x") if spec.sideways else ("x", "y")
    _finish_axis(axes, along, getattr(spec, along), panel.categories)
    _finish_axis(axes, across, getattr(spec, across), [])
    if not spec.grid:
        axes.grid(visible=False)
    if spec.square:
        axes.set_aspect("equal")
    if spec.legend:
        handles, labels = axes.get_legend_handles_labels()
        axes.legend(handles, labels, loc=cast(Any, spec.legend), fontsize=10)


def _finish_axis(
    axes: Axes, which: str, spec: AxisSpec, categories: Sequence[str]
) -> None:
    side = cast(Literal["x", "y"], which)
    _scale(axes, which, spec, categories)
    if spec.margin is not None:
        (axes.set_xmargin if which == "x" else axes.set_ymargin)(spec.margin)
    draw_rule = axes.axvline if which == "x" else axes.axhline
    for value in spec.rules:
        draw_rule(value, color="#444444", linewidth=1, zorder=0.5)
    if spec.span:
        draw_span = axes.axvspan if which == "x" else axes.axhspan
        draw_span(*spec.span, color="#EEEEEE", zorder=0)
    low, high = ("left", "right") if which == "x" else ("bottom", "top")
    set_limits = getattr(axes, f"set_{which}lim")
    if spec.low is not None:
        set_limits(**{low: spec.low})
    if spec.high is not None:
        set_limits(**{high: spec.high})
    if spec.reverse:
        (axes.xaxis if which == "x" else axes.yaxis).set_inverted(True)
    if spec.rotation:
        axes.tick_params(axis=side, labelrotation=spec.rotation)
    if spec.size:
        axes.tick_params(axis=side, labelsize=spec.size)


def _scale(axes: Axes, which: str, spec: AxisSpec, categories: Sequence[str]) -> None:
    """Set scale and ticks of an axis."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    if spec.scale == "auto":
        scale_axis(axes, _drawn_heights(axes))
        return
    getattr(axes, f"set_{which}scale")(spec.scale)
    if categories:
        axis.set_ticks(range(len(categories)), labels=categories)
        return
    axis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value, spec)))
    if spec.ticks:
        axis.set_ticks(list(spec.ticks), labels=[_tick(at, spec) for at in spec.ticks])
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())


def _drawn_heights(axes: Axes) -> list[float]:
    """Return the heights of all lines and marks."""
    lines = [np.asarray(line.get_ydata(), dtype=float) for line in axes.get_lines()]
    heights = [float(y) for line in lines for y in line]
    return [height for height in heights if math.isfinite(height)]


def _tick(value: float, spec: AxisSpec) -> str:
    if spec.format == "size":
        return format_size(int(value))
    if spec.format == "KiB":
        return f"{value / 1024:g}"
    return format(value, spec.format)


def _add_legend(figure: Figure, spec: FigureSpec, panels: Iterable[DrawnPanel]) -> None:
    """Add one legend for all panels without their own, with each label once."""
    by_label: dict[str, Artist] = {}
    for panel in panels:
        if not panel.spec.legend:
            handles, labels = panel.axes.get_legend_handles_labels()
            for handle, label in zip(handles, labels, strict=True):
                by_label.setdefault(label, handle)
    if by_label and spec.legend_columns:
        figure.legend(
            by_label.values(),
            by_label.keys(),
            loc="outside lower left" if spec.title else "outside upper left",
            ncols=spec.legend_columns,
        )

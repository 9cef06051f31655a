"""Draw a study's figures from its ``figures.toml``: panels of marks, each of which is an SQL query.

A figure is a table of that file::

    [latency]                          # the file's stem
    size = [12.5, 4.4]                 # inches
    caption = "The slowest takes {slowest} s."
    facts = ["SELECT MAX(simulated_s) AS slowest FROM rows"]
    panels = [{ title = "20 nodes" }, { title = "100 nodes" }]
    x = { label = "time [s]" }

    [[latency.layers]]
    mark = "line"                      # a key of `MARKS`
    query = "SELECT '20 nodes' AS panel, code AS series, at_s AS x, share AS y FROM rows"

Queries see ``rows`` (the study's result rows), ``claims`` (see `claims_table`), what `Study.figure_tables`
adds, and the results of the queries in the file's table ``[tables]``. The columns of their results are
``x`` and ``y``, and perhaps ``panel`` (left out: every panel), ``series`` (colour, line and marker),
``low`` and ``high`` (ends of a band) and ``text``. A figure with ``like = "stem"`` has what it does not
state from that figure; A layer may list several queries, because the order of a UNION is not fixed.
``{stem}`` in a query is the figure's own stem.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, cast

import numpy as np
import polars as pl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from stripesim.calibration.ledger.verdicts import Entry, Ledger
from stripesim.scenarios.figures.panels import (
    COLOURS,
    LINES,
    MARKERS,
    note,
    scale_axis,
)
from stripesim.scenarios.figures.results import CaptionedFigure, new_figure, styled
from stripesim.scenarios.schema.units import format_size, number_text
from stripesim.scenarios.studies.claims_panel import (
    CLAIMS_WIDTH_INCH,
    LINE_HEIGHT_INCH,
    draw_claims,
)
from stripesim.scenarios.studies.lookup import shipped_toml

GREY: Final = "#555555"
DARK: Final = "#222222"
HOLLOW: Final[Mapping[str, Any]] = {
    "linestyle": "none",
    "fillstyle": "none",
    "markersize": 7,
    "markeredgewidth": 1.6,
}


@dataclass(frozen=True, kw_only=True)
class AxisSpec:
    """One axis of a panel: what it says, how it is scaled, and lines across the panel."""

    label: str = ""
    scale: str = "linear"  #: Or ``log``, or ``auto``: as the values ask for
    ticks: Sequence[float] = ()
    format: str = ",g"  #: Of ticks: ``size``, ``KiB``, or as `format` takes it
    low: float | None = None
    high: float | None = None
    rotation: float = 0
    size: float | None = None  #: Of the ticks' letters
    margin: float | None = None
    reverse: bool = False
    rules: Sequence[float] = ()  #: Lines at these values
    span: Sequence[float] = ()  #: A grey band between two values


@dataclass(frozen=True, kw_only=True)
class PanelSpec:
    """One panel; ``legend`` is where its own legend stands, if it has one.

    The title may hold facts as the caption does; then ``key`` is what queries call the panel.
    """

    title: str
    key: str = ""
    x: AxisSpec
    y: AxisSpec
    legend: str = ""
    sideways: bool = False  #: Whether bars lie on their side
    order: Sequence[str] = ()  #: Of categories; left out: as they appear
    square: bool = False
    grid: bool | None = None


@dataclass(frozen=True, kw_only=True)
class LayerSpec:
    """What one query draws."""

    mark: str
    queries: Sequence[str]  #: Their results one below the other
    label: str | None = None  #: One legend entry for all series, ``""``: none
    colour: str | None = None  #: The same for all series
    style: Mapping[str, Any] = field(default_factory=dict)  #: Passed to matplotlib


@dataclass(frozen=True, kw_only=True)
class FigureSpec:
    """One figure as ``figures.toml`` states it."""

    size: Sequence[float]
    caption: str
    layers: Sequence[LayerSpec]
    panels: Sequence[PanelSpec]  #: None: one for each ``panel`` of the first query
    template: PanelSpec  #: For panels of that kind
    facts: Sequence[str] = ()  #: Queries of one row whose columns the caption names
    needs: Sequence[str] = ()  #: Experiments without which the figure is left out
    title: str = ""
    columns: int | None = None  #: Panels side by side; left out: all
    widths: Sequence[float] = ()  #: Of the columns, relative to each other
    heights: Sequence[float] = ()
    category_height: float = 0.0  #: What each category adds to the height [inch]
    share: str = ""  #: Axes that panels share: ``x``, ``y``, ``xy``, ``rows``
    legend_columns: int = 4  #: Of the legend above all panels; 0: none
    series: Sequence[str] = ()  #: Order of series; left out: as they appear
    names: Mapping[str, str] = field(default_factory=dict)  #: Series → legend
    colours: Sequence[str] = COLOURS


@dataclass
class _Panel:
    """Axes with the places of what is drawn on them."""

    axes: Axes
    spec: PanelSpec
    categories: list[str]
    beside: list[str]  #: Series that stand side by side at a category
    heaps: dict[tuple[str, float], float] = field(default_factory=dict)

    def place(self, x: Any, series: str, *, beside: bool) -> float:
        """Return where a value stands: categories at 0, 1, …, bars of a group side by side."""
        if not isinstance(x, str):
            return float(x)
        middle = float(self.categories.index(x))
        if not beside or series not in self.beside:
            return middle
        return (
            middle
            + (self.beside.index(series) - (len(self.beside) - 1) / 2) * self.step
        )

    @property
    def step(self) -> float:
        """Return the distance of neighbouring bars."""
        return 0.8 / max(1, len(self.beside))


@dataclass(frozen=True)
class _Points:
    """The part of a query's result that belongs to one series on one panel."""

    series: str
    rows: pl.DataFrame
    look: Mapping[str, Any]  #: Colour, line and marker of the series
    style: Mapping[str, Any]  #: The layer's own
    label: str

    def numbers(self, column: str) -> list[float]:
        """Return a column as numbers."""
        return self.rows[column].cast(pl.Float64).to_list()

    def places(self, panel: _Panel, *, beside: bool = False) -> list[float]:
        """Return the places of all x."""
        return [panel.place(x, self.series, beside=beside) for x in self.rows["x"]]


def draw_figures(
    study: str,
    tables: Mapping[str, pl.DataFrame],
    claims: Mapping[str, Sequence[Entry]] | None = None,
) -> dict[str, CaptionedFigure]:
    """Draw every figure of a study that the rows allow; file stem → figure.

    `claims` are the judged claims that stand beside figures, by stem.
    """
    experiments: set[str] = set()
    if "experiment" in tables["rows"].columns:
        experiments = set(tables["rows"]["experiment"])
    context = pl.SQLContext(tables, eager=True)
    for name, query in shipped_toml(study, "figures.toml").get("tables", {}).items():
        # What a table needs is not there where an experiment was left out.
        with suppress(
            pl.exceptions.ColumnNotFoundError, pl.exceptions.SQLInterfaceError
        ):
            context.register(name, context.execute(query))
    drawn = {}
    with styled():
        for stem, spec in figure_specs(study).items():
            if experiments.issuperset(spec.needs):
                figure = draw_figure(spec, context, (claims or {}).get(stem, ()))
                if figure is not None:
                    drawn[stem] = figure
    return drawn


def figure_specs(study: str) -> dict[str, FigureSpec]:
    """Read ``figures.toml`` of a study; file stem → figure."""
    listed = shipped_toml(study, "figures.toml")
    specs = {}
    for stem, table in listed.items():
        if stem != "tables":
            original = listed.get(table.get("like"), {})
            specs[stem] = figure_spec(stem, original | table)
    return specs


def claims_table(ledger: Ledger) -> pl.DataFrame:
    """Return a ledger as a table for queries; numbers that are ranges or lists are left empty."""
    texts = [
        "id",
        "locus",
        "metric",
        "scheme",
        "baseline",
        "pattern",
        "op",
        "block_size",
        "role",
    ]
    rows = [
        {
            **{name: getattr(entry.claim, name) for name in texts},
            "published": _one_number(entry.claim.published),
            "tolerance": entry.claim.tolerance,
            "simulated": _one_number(entry.simulated),
            "error": entry.error,
            "verdict": entry.verdict,
        }
        for entry in ledger.entries
    ]
    numbers = ("published", "tolerance", "simulated", "error")
    return pl.DataFrame(
        rows,
        schema_overrides=dict.fromkeys(numbers, pl.Float64),
        infer_schema_length=None,
    )


def _layer_spec(stem: str, query: str | list[str], **layer: Any) -> LayerSpec:
    listed = [query] if isinstance(query, str) else query
    return LayerSpec(queries=[each.replace("{stem}", stem) for each in listed], **layer)


# Keys of a figure that say what its panels share, and what it is like.
_NO_FIELDS: Final = ("panel", "like")


def _one_number(value: object) -> float | None:
    return value if isinstance(value, float) else None


def figure_spec(stem: str, table: Mapping[str, Any]) -> FigureSpec:
    """Return a figure from its table in the file."""
    axes = {which: table.get(which, {}) for which in ("x", "y")}
    shared = table.get("panel", {})

    def panel_spec(panel: Mapping[str, Any]) -> PanelSpec:
        own_axes = {
            which: AxisSpec(**(axis | panel.get(which, {})))
            for which, axis in axes.items()
        }
        return PanelSpec(**{"title": "", **shared, **panel, **own_axes})

    panels = [panel_spec(panel) for panel in table.get("panels", [{}])]
    own = {
        name: value for name, value in table.items() if name not in (*axes, *_NO_FIELDS)
    }
    layers = [_layer_spec(stem, **layer) for layer in table["layers"]]
    own["facts"] = [fact.replace("{stem}", stem) for fact in table.get("facts", ())]
    own |= {"panels": panels, "layers": layers, "template": panel_spec({})}
    return FigureSpec(**own)


def draw_figure(
    spec: FigureSpec, context: pl.SQLContext[Any], claims: Sequence[Entry] = ()
) -> CaptionedFigure | None:
    """Draw one figure; None if nothing is there to draw."""
    results = [
        (layer, pl.concat(map(context.execute, layer.queries), how="vertical_relaxed"))
        for layer in spec.layers
    ]
    if all(rows.is_empty() for _, rows in results):
        return None
    if not spec.panels:
        spec = _with_panels(spec, results[0][1])
    facts: dict[str, _Fact] = {}
    for query in spec.facts:
        row = context.execute(query).row(0, named=True)
        facts |= {name: _Fact(value) for name, value in row.items()}
    figure, panels = _laid_out(spec, results, claims, facts)
    series = _series_order(spec, [rows for _, rows in results])
    for layer, rows in results:
        for panel in panels:
            _draw_layer(panel, layer, _of_panel(rows, panel.spec), spec, series)
    for panel in panels:
        _finish(panel)
    _add_legend(figure, spec, panels)
    return CaptionedFigure(figure, spec.caption.format(**facts))


def _with_panels(spec: FigureSpec, rows: pl.DataFrame) -> FigureSpec:
    """Add a panel for each that a result names, in lines as high as the figure."""
    names = rows["panel"].unique(maintain_order=True).to_list()
    title = spec.template.title
    panels = [
        replace(spec.template, key=name, title=title.format(panel=name))
        for name in names
    ]
    lines = -(-len(panels) // (spec.columns or len(panels)))
    return replace(spec, panels=panels, size=(spec.size[0], spec.size[1] * lines))


def _laid_out(
    spec: FigureSpec,
    results: Sequence[tuple[LayerSpec, pl.DataFrame]],
    claims: Sequence[Entry],
    facts: Mapping[str, _Fact],
) -> tuple[Figure, list[_Panel]]:
    """Lay out the panels, and the claims beside them."""
    columns = spec.columns or len(spec.panels)
    lines = -(-len(spec.panels) // columns)
    width, height = spec.size
    along = {x for _, rows in results if "x" in rows.columns for x in _words(rows["x"])}
    height += spec.category_height * len(along)
    widths = list(spec.widths) or [width / columns] * columns
    if claims:
        height = max(height, 1.3 + LINE_HEIGHT_INCH * len(claims))
        width += CLAIMS_WIDTH_INCH
        widths.append(2.6)
    figure = new_figure((width, height))
    grid = figure.add_gridspec(
        lines,
        len(widths),
        width_ratios=widths,
        height_ratios=list(spec.heights) or None,
    )
    panels: list[_Panel] = []
    for index, panel in enumerate(spec.panels):
        line, column = divmod(index, columns)
        first = panels[0].axes if panels else None
        beginning = panels[line * columns].axes if column else None
        axes = figure.add_subplot(
            grid[line, column],
            sharex=first if "x" in spec.share else None,
            sharey=beginning if spec.share == "rows" else _shared_y(spec, first),
        )
        letter = f"({'abcdefgh'[index]}) " if len(spec.panels) > 1 else ""
        axes.set_title(letter + panel.title.format(**facts))
        x_shown = "x" not in spec.share or line == lines - 1
        y_shown = not (spec.share == "rows" or "y" in spec.share) or column == 0
        axes.set_xlabel(panel.x.label if x_shown else "")
        axes.set_ylabel(panel.y.label if y_shown else "")
        axes.tick_params(labelbottom=x_shown, labelleft=y_shown)
        categories, bars = _categories(None if spec.share else panel, results)
        panels.append(
            _Panel(axes, panel, list(dict.fromkeys([*panel.order, *categories])), bars)
        )
    if claims:
        draw_claims(figure.add_subplot(grid[:, columns]), claims)
    if spec.title:
        figure.suptitle(spec.title, x=0.005, ha="left", weight="bold", fontsize=14)
    return figure, panels


def _shared_y(spec: FigureSpec, first: Axes | None) -> Axes | None:
    return first if "y" in spec.share else None


def _categories(
    panel: PanelSpec | None, results: Iterable[tuple[LayerSpec, pl.DataFrame]]
) -> tuple[list[str], list[str]]:
    """Return the categories of a panel, None: of all, and the series that stand side by side."""
    categories: dict[str, None] = {}
    beside: dict[str, None] = {}
    for layer, rows in results:
        mine = rows if panel is None else _of_panel(rows, panel)
        if mine["x"].dtype == pl.String:
            categories |= dict.fromkeys(mine["x"])
        if layer.mark in ("bars", "dots") and "series" in mine.columns:
            beside |= dict.fromkeys(mine["series"])
    return list(categories), list(beside)


def _words(column: pl.Series) -> set[str]:
    return set(column) if column.dtype == pl.String else set()


def _of_panel(rows: pl.DataFrame, panel: PanelSpec) -> pl.DataFrame:
    if "panel" not in rows.columns:
        return rows
    return rows.filter(pl.col("panel") == (panel.key or panel.title))


def _series_order(spec: FigureSpec, results: Iterable[pl.DataFrame]) -> list[str]:
    order = dict.fromkeys(spec.series)
    for rows in results:
        if "series" in rows.columns:
            order |= dict.fromkeys(rows["series"])
    return list(order)


def _draw_layer(
    panel: _Panel,
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
    names = rows["series"].unique(maintain_order=True).to_list()
    for series in sorted(names, key=[*order, ""].index):
        mine = rows.filter(pl.col("series") == series)
        index = order.index(series) if series else 0
        look = {
            "color": layer.colour or spec.colours[index % len(spec.colours)],
            "linestyle": LINES[index % len(LINES)],
            "marker": MARKERS[index % len(MARKERS)],
        }
        label = spec.names.get(series, series) if layer.label is None else ""
        MARKS[layer.mark](panel, _Points(series, mine, look, layer.style, label))
    if layer.label and layer.mark in ("bars", "heap"):
        colour = layer.colour or GREY
        panel.axes.scatter([], [], label=layer.label, color=colour, marker="s", s=120)
    elif layer.label:
        empty = pl.DataFrame(schema=dict.fromkeys(("x", "y"), pl.Float64))
        look = {"color": layer.colour or GREY, "linestyle": "-", "marker": "o"}
        kind = "published" if layer.mark == "points" else layer.mark
        key = _KEYS.get(kind, kind)
        MARKS[key](panel, _Points("", empty, look, layer.style, layer.label))


# --- marks ------------------------------------------------------------------------------------------------


def _line(panel: _Panel, points: _Points) -> None:
    look = {**points.look, "marker": "", "linewidth": 2, **points.style}
    x = points.places(panel)
    panel.axes.plot(x, points.numbers("y"), label=points.label, **look)


def _marked_line(panel: _Panel, points: _Points) -> None:
    look = {**points.look, "linewidth": 2, **points.style}
    x = points.places(panel)
    panel.axes.plot(x, points.numbers("y"), label=points.label, **look)


def _hollow(panel: _Panel, points: _Points) -> None:
    look = {**points.look, **HOLLOW, **points.style}
    x = points.places(panel, beside=True)
    panel.axes.plot(x, points.numbers("y"), label=points.label, **look)


def _solid(panel: _Panel, points: _Points) -> None:
    look = {**points.look, "linestyle": "none", "markersize": 7, **points.style}
    ends = points.places(panel, beside=True), points.numbers("y")
    if panel.spec.sideways:
        ends = ends[::-1]
    panel.axes.plot(*ends, label=points.label, **look)


def _steps(panel: _Panel, points: _Points) -> None:
    look = {"color": points.look["color"], "linewidth": 2, **points.style}
    x = points.places(panel)
    panel.axes.step(x, points.numbers("y"), label=points.label, **look)


def _band(panel: _Panel, points: _Points) -> None:
    look = {"alpha": 0.15, "linewidth": 0, **points.style}
    panel.axes.fill_between(
        points.places(panel),
        points.numbers("low"),
        points.numbers("high"),
        color=points.look["color"],
        label=points.label,
        **look,
    )


def _whiskers(panel: _Panel, points: _Points) -> None:
    look = {"color": points.look["color"], "linewidth": 1.6, **points.style}
    x = points.places(panel, beside=True)
    panel.axes.vlines(x, points.numbers("low"), points.numbers("high"), **look)


def _levels(panel: _Panel, points: _Points) -> None:
    """Draw upright lines at x."""
    look = {**points.look, "linewidth": 2, **points.style}
    look.pop("marker")
    for x in points.places(panel):
        panel.axes.axvline(x, label=points.label, **look)


def _dashes(panel: _Panel, points: _Points) -> None:
    """Draw published values as dashes across the bars of their series."""
    look = {"color": DARK, "linewidth": 2.6, **points.style}
    if points.rows.is_empty():
        panel.axes.plot([], [], label=points.label, **look)
        return
    half = 0.45 * panel.step
    middles = points.places(panel, beside=True)
    left = [middle - half for middle in middles]
    right = [middle + half for middle in middles]
    panel.axes.hlines(points.numbers("y"), left, right, **look)


def _bars(panel: _Panel, points: _Points) -> None:
    """Draw bars, those of one category side by side; ``low`` is where they begin."""
    begin: list[float] | float = 0.0
    if "low" in points.rows.columns:
        begin = points.numbers("low")
    places = points.places(panel, beside=True)
    _bar(panel, points, places, 0.9 * panel.step, begin)


def _heap(panel: _Panel, points: _Points) -> None:
    """Draw bars on top of those that stand at the same place.

    Numbers of at least ``above`` in the style's ``numbers`` are written into the bars.
    """
    places = points.places(panel)
    begin = [panel.heaps.get(("", place), 0.0) for place in places]
    for place, floor, height in zip(places, begin, points.numbers("y"), strict=True):
        panel.heaps["", place] = floor + height
    _bar(panel, points, places, 0.7, begin)


def _bar(
    panel: _Panel,
    points: _Points,
    places: Sequence[float],
    thick: float,
    begin: float | Sequence[float],
) -> None:
    look = {"color": points.look["color"], "label": points.label, **points.style}
    thick = look.pop("thick", thick)
    letters = dict(look.pop("numbers", {}))
    sizes = points.numbers("y")
    if panel.spec.sideways:
        bars = panel.axes.barh(places, sizes, height=thick, left=begin, **look)
    else:
        bars = panel.axes.bar(places, sizes, width=thick, bottom=begin, **look)
    if letters:
        least = letters.pop("above")
        texts = [number_text(size) if size >= least else "" for size in sizes]
        panel.axes.bar_label(bars, texts, label_type="center", **letters)


def _text(panel: _Panel, points: _Points) -> None:
    """Write texts or numbers beside points; ``lift`` in the style is how far [points]."""
    look = dict(points.style)
    lift = look.pop("lift", (0, 3))
    places = points.places(panel, beside=True)
    for x, y, text in zip(
        places, points.numbers("y"), points.rows["text"], strict=True
    ):
        at = (y, x) if panel.spec.sideways else (x, y)
        shown = text if isinstance(text, str) else number_text(text)
        note(panel.axes, shown, at, lift, **{"fontsize": 10, **look})


Mark = Callable[[_Panel, _Points], None]
MARKS: Final[Mapping[str, Mark]] = {
    "line": _line,
    "marked line": _marked_line,
    "published": _hollow,
    "points": _solid,
    "dots": _solid,
    "steps": _steps,
    "band": _band,
    "whiskers": _whiskers,
    "levels": _levels,
    "dashes": _dashes,
    "bars": _bars,
    "heap": _heap,
    "text": _text,
}
"""Mark → how it is drawn."""
# What stands in a legend for marks whose legend entry looks otherwise.
_KEYS: Final = {"levels": "line", "whiskers": "line"}


# --- axes, legends, captions ------------------------------------------------------------------------------


def _finish(panel: _Panel) -> None:
    """Scale and label the axes, and add the panel's own legend."""
    axes = panel.axes
    spec = panel.spec
    sideways = spec.sideways
    _finish_axis(axes, "x", spec.x, [] if sideways else panel.categories)
    _finish_axis(axes, "y", spec.y, panel.categories if sideways else [])
    if spec.grid is not None:
        axes.grid(visible=spec.grid)
    if spec.square:
        axes.set_aspect("equal")
    if spec.legend:
        handles, labels = axes.get_legend_handles_labels()
        axes.legend(handles, labels, loc=cast(Any, spec.legend), fontsize=10)


def _finish_axis(
    axes: Axes, which: Literal["x", "y"], spec: AxisSpec, categories: Sequence[str]
) -> None:
    axis = axes.xaxis if which == "x" else axes.yaxis
    if spec.scale == "auto":
        scale_axis(axes, _drawn_values(axes))
    else:
        getattr(axes, f"set_{which}scale")(spec.scale)
    if categories:
        axis.set_ticks(range(len(categories)), labels=categories)
    elif spec.ticks:
        axis.set_ticks(list(spec.ticks), labels=[_tick(at, spec) for at in spec.ticks])
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())
    elif spec.scale != "auto":
        axis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value, spec)))
    if spec.margin is not None:
        (axes.set_xmargin if which == "x" else axes.set_ymargin)(spec.margin)
    draw_rule = axes.axvline if which == "x" else axes.axhline
    for value in spec.rules:
        draw_rule(value, color="#444444", linewidth=1, zorder=0.5)
    if spec.span:
        draw_span = axes.axvspan if which == "x" else axes.axhspan
        draw_span(*spec.span, color="#EEEEEE", zorder=0)
    ends = {"x": ("left", "right"), "y": ("bottom", "top")}[which]
    limits = {
        end: value
        for end, value in zip(ends, (spec.low, spec.high), strict=True)
        if value is not None
    }
    if limits:
        getattr(axes, f"set_{which}lim")(**limits)
    if spec.reverse:
        axis.set_inverted(True)
    if spec.rotation:
        axes.tick_params(axis=which, labelrotation=spec.rotation)
    if spec.size:
        axes.tick_params(axis=which, labelsize=spec.size)


def _drawn_values(axes: Axes) -> list[float]:
    """Return the heights of all lines and marks that are not at zero."""
    lines = [np.asarray(line.get_ydata(), dtype=float) for line in axes.get_lines()]
    heights = [float(y) for line in lines for y in line]
    return [height for height in heights if math.isfinite(height)]


def _tick(value: float, spec: AxisSpec) -> str:
    if spec.format == "size":
        return format_size(int(value))
    if spec.format == "KiB":
        return f"{value / 1024:g}"
    return format(value, spec.format)


def _add_legend(figure: Figure, spec: FigureSpec, panels: Iterable[_Panel]) -> None:
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


class _Fact:
    """A value for a caption: without a format a number is written with the digits that matter."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __format__(self, spec: str) -> str:
        if not spec and isinstance(self.value, float):
            return number_text(self.value)
        return format(self.value, spec)

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

Next read `stripesim.scenarios.studies.figure_description`, which lists all keys, and
`stripesim.scenarios.studies.marks`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import polars as pl

from stripesim.calibration.ledger.verdicts import Entry, Ledger
from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.show.figures.renderer import CaptionedFigure, drawn
from stripesim.scenarios.show.figures.specification import (
    AxisSpec,
    FigureSpec,
    LayerSpec,
    PanelSpec,
    key,
    series_style,
)
from stripesim.scenarios.studies.claims_panel import (
    CLAIMS_WIDTH_INCH,
    LINE_HEIGHT_INCH,
    claims_panel,
)
from stripesim.scenarios.studies.description import shipped_toml
from stripesim.scenarios.studies.figure_description import (
    DescribedFigure,
    DescribedLayer,
    DescribedPanel,
    figure_specs,
)
from stripesim.scenarios.studies.marks import (
    DARK,
    MARKS,
    PATCHES,
    SIDE_BY_SIDE,
    Places,
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
LayerRows = Sequence[tuple[DescribedLayer, pl.DataFrame]]


def draw_figures(
    study: str,
    tables: Mapping[str, pl.DataFrame],
    claims: Mapping[str, Sequence[Entry]],
    stems: Collection[str] | None = None,
) -> dict[str, CaptionedFigure]:
    """Draw every figure of a study that the rows allow, and return figures by file stem.

    `claims` are the judged claims to draw next to figures, by stem. `stems` are the wanted figures, None all.
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
    figures = {}
    for stem, described in figure_specs(study).items():
        if stems is not None and stem not in stems:
            continue
        if not experiments.issuperset(described.needs):
            continue
        figure = draw_figure(described, context, claims.get(stem, ()))
        if figure is not None:
            figures[stem] = figure
    return figures


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
    described: DescribedFigure,
    context: pl.SQLContext[Any],
    claims: Sequence[Entry] = (),
) -> CaptionedFigure | None:
    """Draw one figure, or return None without data."""
    layers = [
        (layer, pl.concat(map(context.execute, layer.queries), how="vertical_relaxed"))
        for layer in described.layers
    ]
    if all(rows.is_empty() for _, rows in layers):
        return None
    if not described.panels:
        described = _with_panels(described, layers[0][1])
    facts: dict[str, _Fact] = {}
    for query in described.facts:
        row = context.execute(query).row(0, named=True)
        facts |= {name: _Fact(value) for name, value in row.items()}
    return drawn(_figure(described, layers, claims, facts))


def _figure(
    described: DescribedFigure,
    layers: LayerRows,
    claims: Sequence[Entry],
    facts: Mapping[str, _Fact],
) -> FigureSpec:
    columns = described.columns or len(described.panels)
    width, height = described.size
    height += described.category_height * len(_categories(layers))
    widths = list(described.widths) or [width / columns] * columns
    if claims:
        height = max(height, 1.3 + LINE_HEIGHT_INCH * len(claims))
        width += CLAIMS_WIDTH_INCH
        widths.append(2.6)
    legend = described.legend
    if legend is None:
        legend = "below" if described.title else "above"
    panels = [_panel(described, panel, layers) for panel in described.panels]
    return FigureSpec(
        size=(width, height),
        panels=[replace(panel, title=panel.title.format(**facts)) for panel in panels],
        caption=described.caption.format(**facts),
        title=described.title,
        columns=columns,
        widths=widths,
        heights=described.heights,
        share=described.share,
        lettered=True,
        legend=legend,
        beside=claims_panel(claims) if claims else None,
    )


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


# --- panels -----------------------------------------------------------------------------------------------


def _with_panels(described: DescribedFigure, rows: pl.DataFrame) -> DescribedFigure:
    """Add a panel for each name in the rows, in lines of the figure's height."""
    names = rows["panel"].unique(maintain_order=True).to_list()
    title = described.template.title
    panels = [
        replace(described.template, key=name, title=title.format(panel=name))
        for name in names
    ]
    lines = math.ceil(len(panels) / (described.columns or len(panels)))
    width, height = described.size
    return replace(described, panels=panels, size=(width, height * lines))


def _panel(
    described: DescribedFigure, panel: DescribedPanel, layers: LayerRows
) -> PanelSpec:
    """Place the rows of one panel."""
    mine = [(layer, _of_panel(rows, panel)) for layer, rows in layers]
    categories = _categories(layers if described.share else mine)
    order = list(dict.fromkeys([*panel.order, *categories]))
    positions = Places(order, _beside(mine), panel.sideways)
    series = _series_order(described, layers)
    drawn_layers = [
        *(
            each
            for layer, rows in mine
            for each in _layer(positions, layer, rows, described, series)
        ),
        *panel.x.layers(sideways=False),
        *panel.y.layers(sideways=True),
    ]
    x = _with_categories(panel.x.spec, [] if panel.sideways else order)
    y = _with_categories(panel.y.spec, order if panel.sideways else [])
    return PanelSpec(
        title=panel.title,
        x=x,
        y=y,
        layers=drawn_layers,
        legend=panel.legend,
        grid=panel.grid,
        square=panel.square,
    )


def _with_categories(spec: AxisSpec, categories: Sequence[str]) -> AxisSpec:
    if not categories:
        return spec
    return replace(spec, ticks=range(len(categories)), names=categories)


def _of_panel(rows: pl.DataFrame, panel: DescribedPanel) -> pl.DataFrame:
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


def _series_order(described: DescribedFigure, layers: LayerRows) -> list[str]:
    order = dict.fromkeys(described.series)
    for _, rows in layers:
        if "series" in rows.columns:
            order |= dict.fromkeys(rows["series"])
    return list(order)


# --- layers -----------------------------------------------------------------------------------------------


def _layer(
    places: Places,
    layer: DescribedLayer,
    rows: pl.DataFrame,
    described: DescribedFigure,
    order: Sequence[str],
) -> list[LayerSpec]:
    """Place the rows of one layer on one panel, series by series."""
    if rows.is_empty():
        return []
    if "series" not in rows.columns:
        rows = rows.with_columns(series=pl.lit(""))
    layers: list[LayerSpec] = []
    names = rows["series"].unique(maintain_order=True).to_list()
    for series in sorted(names, key=[*order, ""].index):
        index = order.index(series) if series else 0
        colour = described.colours[index % len(described.colours)]
        look = {**series_style(index), "color": layer.colour or colour}
        label = ""
        if layer.label is None:
            label = described.names.get(series, series)
        mine = rows.filter(pl.col("series") == series)
        points = SeriesPoints(series, mine, look, layer.style, label)
        layers += MARKS[layer.mark](places, points)
    if layer.label:
        layers.append(_key(layer, layer.label))
    return layers


def _key(layer: DescribedLayer, label: str) -> LayerSpec:
    """Return the legend entry that all series of a layer share."""
    colour = layer.colour or GREY
    if layer.mark in PATCHES:
        return key(label, colour, alpha=layer.style.get("alpha", 1.0))
    if layer.mark == "dashes":
        look = {"color": DARK, "linewidth": 2.6, **layer.style}
        return LayerSpec(mark="line", label=label, style=look)
    look = {"color": colour, **layer.style}
    if layer.mark in ("published", "points", "dots"):
        mark = "published" if layer.mark == "published" else "points"
        return LayerSpec(mark=mark, label=label, style={"marker": "o", **look})
    # Steps have an option that lines lack.
    mark = "steps" if layer.mark == "steps" else "line"
    return LayerSpec(mark=mark, label=label, style={"linestyle": "-", **look})

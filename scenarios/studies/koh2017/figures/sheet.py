"""One figure of the study: panels of lines on the left, the claims about them on the right."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stripesim.calibration.ledger.verdicts import Entry
from stripesim.scenarios.figures.captions import Overlay, block_sizes, scheme_names
from stripesim.scenarios.figures.panels import (
    PUBLISHED_MARK,
    Panel,
    draw_panel,
    scale_axis,
    size_axis_title,
)
from stripesim.scenarios.figures.results import CaptionedFigure, new_figure, styled
from stripesim.scenarios.studies.drawing import labelled
from stripesim.scenarios.studies.koh2017.figures.claims import (
    LINE_HEIGHT_INCH,
    draw_claims,
)
from stripesim.scenarios.studies.lookup import select

PANEL_WIDTH_INCH = 4.4
CLAIMS_WIDTH_INCH = 6.8
HEIGHT_INCH = 4.4


class SheetPanel(NamedTuple):
    """One panel of lines against block size.

    The words tell it from its neighbour; overlays are published values in the quantity's own unit; lower is
    a part of the quantity, drawn beneath it without marks.
    """

    panel: Panel
    words: str
    rows: pl.DataFrame
    overlays: Sequence[Overlay] = ()
    lower: Panel | None = None


def draw_sheet(
    title: str, panels: Sequence[SheetPanel], entries: Sequence[Entry], caption: str
) -> CaptionedFigure:
    """Draw panels of lines and the judged claims about them."""

    def draw_lines(axes: Sequence[Axes]) -> None:
        for letter, place, panel in zip("abc", axes, panels, strict=False):
            _lines(place, panel)
            prefix = f"({letter}) " if len(panels) > 1 else ""
            place.set_title(f"{prefix}{panel.words or panel.panel.title}", fontsize=12)
            title = (
                f"{panel.panel.title} [{panel.panel.unit}]"
                if panel.words
                else panel.panel.unit
            )
            place.set_ylabel(title, fontsize=11)

    with styled():
        figure = sheet(title, len(panels), entries, draw_lines)
        _legend_below(figure, published=any(panel.overlays for panel in panels))
    return CaptionedFigure(figure, caption)


def sheet(
    title: str,
    count: int,
    entries: Sequence[Entry],
    draw_lines: Callable[[Sequence[Axes]], None],
) -> Figure:
    """Lay out panels beside claims; call inside `styled`."""
    claims = bool(entries)
    height = max(HEIGHT_INCH, 1.3 + LINE_HEIGHT_INCH * len(entries))
    width = PANEL_WIDTH_INCH * count + CLAIMS_WIDTH_INCH * claims
    figure = new_figure((width, height))
    # The layout makes room for the claims' words beside their axes.
    grid = figure.add_gridspec(
        1, count + claims, width_ratios=[PANEL_WIDTH_INCH] * count + [2.6] * claims
    )
    draw_lines([figure.add_subplot(grid[0, index]) for index in range(count)])
    if claims:
        draw_claims(figure.add_subplot(grid[0, count]), entries)
    figure.suptitle(title, x=0.005, ha="left", weight="bold", fontsize=14)
    return figure


def _legend_below(figure: Figure, *, published: bool) -> None:
    by_label = labelled(figure)
    if published:
        by_label["published, band = tolerance"] = Line2D(
            [], [], color="#555555", **PUBLISHED_MARK
        )
    figure.legend(
        by_label.values(),
        by_label.keys(),
        loc="outside lower left",
        ncols=min(len(by_label), 5),
        handlelength=2.4,
        fontsize=10,
    )


def _lines(axes: Axes, panel: SheetPanel) -> None:
    schemes, sizes = scheme_names(panel.rows), block_sizes(panel.rows)
    quantity, lower = panel.panel, panel.lower
    # Nothing can be drawn at zero on a logarithmic axis: such cells are left out, as the caption says.
    metric = pl.col(quantity.metric)
    drawn = panel.rows.with_columns(
        pl.when(metric != 0).then(metric).alias(quantity.metric)
    )
    shown = draw_panel(axes, drawn, quantity, schemes, panel.overlays)
    for index, scheme in enumerate(schemes):
        mine = select(panel.rows, scheme=scheme).sort("block_size_bytes")
        places = [sizes.index(size) for size in mine["block_size_bytes"]]
        if quantity.ci is not None and set(quantity.ci) <= set(mine.columns):
            low, high = (
                mine[name].cast(pl.Float64).to_numpy() * quantity.factor
                for name in quantity.ci
            )
            axes.fill_between(
                places, low, high, alpha=0.18, color="#555555", linewidth=0, zorder=1.5
            )
        if lower is not None:
            values = mine[lower.metric].cast(pl.Float64).to_numpy() * lower.factor
            label = "" if index else lower.title
            axes.plot(
                places, values, color="#777777", linewidth=1, linestyle=":", label=label
            )
            shown += values.tolist()
    scale_axis(axes, shown)
    if shown and axes.get_yscale() == "linear":
        axes.set_ylim(top=1.08 * max(shown))
    axes.tick_params(labelsize=10)
    axes.set_xlabel(size_axis_title(sizes))

"""Figures of a report: one panel each, so that a page can set them side by side or one below another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from stripesim.scenarios.figures.captions import (
    OP_WORDS,
    PATTERN_WORDS,
    block_sizes,
    scheme_label,
    scheme_names,
)
from stripesim.scenarios.figures.panels import (
    LATENCY,
    THROUGHPUT,
    Panel,
    draw_panel,
    panel_of,
    scale_axis,
    size_axis_title,
)
from stripesim.scenarios.figures.results import CaptionedFigure, legend, new_figure, styled
from stripesim.scenarios.run.columns import number_text

_P99: Final = panel_of("latency_p99_ns", "99th percentile of latency")

#: Narrow enough that its letters are legible on a phone [inch].
_SIZE_INCHES: Final = (5.6, 3.9)


def draw_panels(rows: pl.DataFrame) -> dict[str, CaptionedFigure]:
    """Draw throughput and latencies of each kind of request that has block sizes; anchor → figure."""
    sized = rows.filter(pl.col("block_size_bytes").is_not_null())
    schemes = scheme_names(sized)
    figures = {}
    for op, pattern in sized.select("op", "pattern").unique(maintain_order=True).iter_rows():
        here = sized.filter((pl.col("op") == op) & (pl.col("pattern") == pattern))
        for panel in (THROUGHPUT, LATENCY, _P99):
            if here[panel.metric].count():
                figures[f"{pattern}-{op}-{panel.metric.partition('_')[2]}"] = _draw(
                    here, op, pattern, panel, schemes
                )
    return figures


def _draw(rows: pl.DataFrame, op: str, pattern: str, panel: Panel, schemes: Sequence[str]) -> CaptionedFigure:
    words = f"{PATTERN_WORDS.get(pattern, pattern)} {OP_WORDS.get(op, op)}"
    with styled():
        figure = new_figure(_SIZE_INCHES)
        axes = figure.subplots()
        scale_axis(axes, draw_panel(axes, rows, panel, schemes, ()))
        axes.set_title(f"{words}: {panel.title.lower()}", fontsize=12.5)
        axes.set_xlabel(size_axis_title(block_sizes(rows)))
        legend(figure, (), schemes)
    return CaptionedFigure(figure, _caption(rows, words, panel, schemes))


def _caption(rows: pl.DataFrame, words: str, panel: Panel, schemes: Sequence[str]) -> str:
    parts = []
    for scheme in schemes:
        values = (rows.filter(pl.col("scheme") == scheme)[panel.metric].drop_nulls() * panel.factor).to_list()
        if values:
            low, high = number_text(min(values)), number_text(max(values))
            parts.append(f"{scheme_label(scheme)} {low if low == high else f'{low} to {high}'} {panel.unit}")
    whiskers = ""
    if panel.ci and set(panel.ci) <= set(rows.columns) and rows[panel.ci[0]].count():
        whiskers = " Whiskers: 95 % confidence interval."
    return f"{words}, {panel.title.lower()}, simulated: {'; '.join(parts)}.{whiskers}"

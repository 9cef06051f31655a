"""Draw figures from result rows: quantities against block size, and the headline comparison."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import polars as pl

from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.show.figures.captions import (
    OP_WORDS,
    PATTERN_WORDS,
    ShownQuantity,
    cell_caption,
    headline_caption,
    in_sentence,
    kind_words,
    kinds_of_requests,
    scheme_label,
    scheme_names,
)
from stripesim.scenarios.show.figures.panels import (
    LATENCY,
    P99,
    THROUGHPUT,
    main_quantity,
    quantity_shown,
    sizes_panel,
)
from stripesim.scenarios.show.figures.renderer import CaptionedFigure, drawn
from stripesim.scenarios.show.figures.specification import (
    FigureSpec,
    PanelSpec,
    on_one_scale,
)
from stripesim.scenarios.show.quantities import IDENTITY, check_columns, has_objects

#: Narrow enough to be legible on a phone [inch].
_SIZE_INCHES: Final = (5.6, 3.9)


def draw_cell_figure(rows: pl.DataFrame, *, pattern: str, op: str) -> CaptionedFigure:
    """Draw throughput [MB/s] and mean latency [ms] against block size for one pattern and op.

    Requests without data, such as LISTs, have a rate [requests/s] in place of a throughput.

    References
    ----------
    The form is that of Koh et al., "Understanding system characteristics of online erasure coding on
    scalable, distributed and large-scale SSD array systems" (2017), Figures 5 to 8.
    """
    selected = rows.filter((pl.col("pattern") == pattern) & (pl.col("op") == op))
    if selected["block_size_bytes"].drop_nulls().is_empty():
        raise ValueError(
            f"rows: got none with pattern {pattern}, op {op} and a block size, wanted at least one"
        )
    schemes = scheme_names(selected)
    both = (main_quantity(selected), LATENCY)
    panels = [sizes_panel(selected, shown, schemes) for shown in both]
    caption = cell_caption(selected, pattern, op, both)
    return drawn(
        FigureSpec(size=(11.5, 4.8), panels=panels, caption=caption, lettered=True)
    )


def draw_headline(
    rows: pl.DataFrame, *, shown: ShownQuantity = THROUGHPUT
) -> CaptionedFigure:
    """Draw a quantity of every scheme: a column for each pattern, a row with one scale for each op."""
    sized = rows.filter(pl.col("block_size_bytes").is_not_null())
    if sized.is_empty():
        raise ValueError("rows: got none with a block size, wanted at least one")
    patterns = [name for name in PATTERN_WORDS if name in sized["pattern"]]
    ops = [name for name in OP_WORDS if name in sized["op"]]
    lines = len(ops)
    columns = len(patterns)
    share = "rows"
    if columns <= 1:
        # One row fits a slide better than one column.
        columns = lines
        lines = 1
        share = ""
    panels = [
        _headline_panel(sized, op, pattern, shown)
        for op, pattern in itertools.product(ops, patterns)
    ]
    panels = on_one_scale(panels, in_row=columns if share else 1)
    below = [None] * columns
    labelled = [
        _with_labels(panel, at_left=index % columns == 0, below=one_below)
        for index, (panel, one_below) in enumerate(
            zip(panels, [*panels[columns:], *below], strict=True)
        )
    ]
    return drawn(
        FigureSpec(
            size=(5.75 * columns, 0.8 + 3.6 * lines),
            panels=labelled,
            columns=columns,
            share=share,
            caption=headline_caption(sized, patterns, ops, shown.metric, shown.title),
        )
    )


def _headline_panel(
    rows: pl.DataFrame, op: str, pattern: str, shown: ShownQuantity
) -> PanelSpec | None:
    """Specify a quantity of one pattern and op, or None without rows."""
    own = rows.filter((pl.col("op") == op) & (pl.col("pattern") == pattern))
    if own.is_empty():
        return None
    schemes = scheme_names(rows)
    return sizes_panel(own, shown, schemes, kind_words(op, pattern))


def _with_labels(
    panel: PanelSpec | None, *, at_left: bool, below: PanelSpec | None
) -> PanelSpec | None:
    """Label the axes of a panel only where no neighbour does."""
    if panel is None:
        return None
    y_label = panel.y.label if at_left else ""
    x_label = panel.x.label
    if below is not None and below.x.label == x_label:
        x_label = ""
    return replace(
        panel, x=replace(panel.x, label=x_label), y=replace(panel.y, label=y_label)
    )


def draw_all(
    rows: pl.DataFrame, *, metric: str = THROUGHPUT.metric
) -> dict[str, CaptionedFigure]:
    """Draw every figure the rows allow.

    Parameters
    ----------
    rows
        Result rows of `stripesim.run`. Those without a block size are ignored.
    metric
        Column that the headline shows, such as ``latency_p99_ns``. In place of throughput it shows the rate
        if requests without data are among the rows.

    Returns
    -------
    dict
        File stem → figure: ``headline``, then ``seq-write`` and so on. Empty where no row has a block size.

    Raises
    ------
    ValueError
        If a cell has several rows, as in a sweep, or the rows have no such quantity or are none of `run`.
    """
    needed = (*IDENTITY, LATENCY.metric)
    check_columns(rows, needed, key="rows", wanted="rows of stripesim.run")
    of_objects = has_objects(rows["op"].to_list())
    if metric == THROUGHPUT.metric:
        shown = main_quantity(rows)
    else:
        shown = quantity_shown(metric, rows.columns, of_objects=of_objects)
    sized = rows.filter(pl.col("block_size_bytes").is_not_null())
    if sized.is_empty():
        return {}
    _check_one_row_per_cell(sized)
    figures = {"headline": draw_headline(sized, shown=shown)}
    for op, pattern in kinds_of_requests(sized):
        figures[f"{pattern}-{op}"] = draw_cell_figure(sized, pattern=pattern, op=op)
    return figures


def _check_one_row_per_cell(rows: pl.DataFrame) -> None:
    cell = {*IDENTITY, "workload"}
    counts = rows.group_by(cell & set(rows.columns)).len()
    most = max(counts["len"].to_list())
    if most > 1:
        raise ValueError(
            f"rows: got up to {most} rows of a cell, wanted one, as `run` returns: filter the rows of a "
            "sweep to one point and replication, or call draw_sweep(result.aggregated, keys)"
        )


def draw_panels(rows: pl.DataFrame) -> dict[str, CaptionedFigure]:
    """Draw throughput and latencies of each kind of request with block sizes, by anchor."""
    sized = rows.filter(pl.col("block_size_bytes").is_not_null())
    schemes = scheme_names(sized)
    figures = {}
    for op, pattern in kinds_of_requests(sized):
        own = sized.filter((pl.col("op") == op) & (pl.col("pattern") == pattern))
        for shown in (main_quantity(own), LATENCY, P99):
            if own[shown.metric].count():
                stem = f"{pattern}-{op}-{shown.metric.partition('_')[2]}"
                spec = _one_panel(own, kind_words(op, pattern), shown, schemes)
                figures[stem] = drawn(spec)
    return figures


def _one_panel(
    rows: pl.DataFrame, kind: str, shown: ShownQuantity, schemes: Sequence[str]
) -> FigureSpec:
    title = f"{kind}: {in_sentence(shown.title)}"
    return FigureSpec(
        size=_SIZE_INCHES,
        panels=[sizes_panel(rows, shown, schemes, title)],
        caption=_caption(rows, title.replace(":", ","), shown, schemes),
    )


def _caption(
    rows: pl.DataFrame, title: str, shown: ShownQuantity, schemes: Sequence[str]
) -> str:
    quantity = shown.quantity
    parts = []
    for scheme in schemes:
        values = rows.filter(pl.col("scheme") == scheme)[quantity.key].drop_nulls()
        if values.is_empty():
            continue
        shown_values = (values * quantity.factor).to_list()
        ends = [number_text(min(shown_values)), number_text(max(shown_values))]
        span = " to ".join(dict.fromkeys(ends))
        parts.append(f"{scheme_label(scheme)} {span} {quantity.unit}")
    has_interval = quantity.ci and set(quantity.ci) <= set(rows.columns)
    interval = ""
    if quantity.ci and has_interval and rows[quantity.ci[0]].count():
        interval = " Whiskers: 95 % confidence interval."
    return f"{title}, simulated: {'; '.join(parts)}.{interval}"

"""Draw figures from result rows: quantities against block size, and the headline comparison."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, cast

import matplotlib as mpl
import polars as pl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.show.figures.captions import (
    PATTERN_WORDS,
    block_sizes,
    cell_caption,
    headline_caption,
    kind_words,
    kinds_of_requests,
    scheme_label,
    scheme_names,
)
from stripesim.scenarios.show.figures.panels import (
    LATENCY,
    THROUGHPUT,
    Panel,
    draw_panel,
    legend_above,
    legend_entries,
    panel_of,
    scale_axis,
    size_axis_title,
)
from stripesim.scenarios.show.figures.paper import fit_width, paper_files
from stripesim.scenarios.show.files import write_files

#: No date and no version of the drawing library, so that equal rows give equal bytes.
METADATA: Final[Mapping[str, dict[str, str | None]]] = MappingProxyType(
    {"svg": {"Date": None, "Creator": "stripesim"}, "png": {"Software": None}}
)

#: Enough for a slide of 1920 pixels and for print at column width.
_PNG_DPI: Final = 170

#: Text stays text: a PDF embeds TrueType fonts, an SVG names them.
_PAPER_FONTS: Final[dict[str, Any]] = {"pdf.fonttype": 42, "svg.fonttype": "none"}

_P99: Final = panel_of("latency_p99_ns", "99th percentile of latency")

#: Narrow enough to be legible on a phone [inch].
_SIZE_INCHES: Final = (5.6, 3.9)


class CaptionedFigure(NamedTuple):
    """A figure and its caption."""

    figure: Figure
    caption: str


@contextmanager
def styled() -> Iterator[None]:
    """Draw and save in the house style inside this context."""
    with mpl.rc_context(_house_style()):
        yield


@cache
def _house_style() -> mpl.RcParams:
    return mpl.rc_params_from_file(
        Path(__file__).with_name("house.mplstyle"), use_default_template=False
    )


def legend(figure: Figure) -> None:
    """Put one legend above a figure for all of its panels, each label once."""
    by_label = legend_entries(figure)
    if by_label:
        legend_above(figure, list(by_label.values()), list(by_label), handlelength=2.6)


def draw_cell_figure(rows: pl.DataFrame, *, pattern: str, op: str) -> CaptionedFigure:
    """Draw throughput [MB/s] and mean latency [ms] against block size for one pattern and op.

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
    with styled():
        figure = new_figure((11.5, 4.8))
        panels = figure.subplots(1, 2)
        for letter, axes, panel in zip(
            "ab", panels, (THROUGHPUT, LATENCY), strict=True
        ):
            scale_axis(axes, draw_panel(axes, selected, panel, schemes))
            axes.set_title(f"({letter}) {panel.title}")
            axes.set_xlabel(size_axis_title(block_sizes(selected)))
        legend(figure)
    return CaptionedFigure(figure, cell_caption(selected, pattern, op))


def draw_headline(rows: pl.DataFrame) -> CaptionedFigure:
    """Draw throughput of every scheme: a column for each pattern, a row with one scale for each op."""
    sized = rows.filter(pl.col("block_size_bytes").is_not_null())
    if sized.is_empty():
        raise ValueError("rows: got none with a block size, wanted at least one")
    patterns = [name for name in PATTERN_WORDS if name in sized["pattern"]]
    ops = [name for name in ("write", "read", "mixed") if name in sized["op"]]
    schemes = scheme_names(sized)
    columns = len(patterns)
    lines = len(ops)
    if columns <= 1:
        # One row fits a slide better than one column.
        columns = lines
        lines = 1
    with styled():
        figure = new_figure((5.75 * columns, 0.8 + 3.6 * lines))
        sharey: Literal["row", False] = "row" if lines == len(ops) else False
        grid = figure.subplots(lines, columns, sharey=sharey, squeeze=False)
        scales: list[tuple[Axes, list[float]]] = []
        for index, (op, pattern) in enumerate(itertools.product(ops, patterns)):
            line, column = divmod(index, columns)
            axes = grid[line][column]
            of_op = sized.filter(pl.col("op") == op)
            panel = of_op.filter(pl.col("pattern") == pattern)
            if panel.is_empty():
                axes.set_axis_off()
                continue
            draw_panel(axes, panel, THROUGHPUT, schemes)
            sizes = block_sizes(panel)
            has_bars = len(sizes) == 1
            throughputs = of_op[THROUGHPUT.metric].drop_nulls() * THROUGHPUT.factor
            scales.append((axes, [] if has_bars else throughputs.to_list()))
            axes.set_title(kind_words(op, pattern))
            axes.set_ylabel("" if column else "throughput [MB/s]")
            if has_bars or line == lines - 1:
                axes.set_xlabel(size_axis_title(sizes))
        # A shared scale must suit all panels of an op, so set it after all are drawn.
        for axes, values in scales:
            scale_axis(axes, values)
        legend(figure)
    return CaptionedFigure(figure, headline_caption(sized, patterns, ops))


def new_figure(size_inch: tuple[float, float]) -> Figure:
    """Return an empty figure, width and height [inch], with a constrained layout."""
    # Without pyplot, which would change global state of the program that uses this library.
    figure = Figure(figsize=size_inch, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def draw_all(rows: pl.DataFrame) -> dict[str, CaptionedFigure]:
    """Draw every figure the rows allow.

    Parameters
    ----------
    rows
        Result rows of `stripesim.run`. Those without a block size are ignored.

    Returns
    -------
    dict
        File stem → figure: ``headline``, then ``seq-write`` and so on. Empty where no row has a block size.

    Raises
    ------
    ValueError
        If a cell has several rows, as in a sweep.
    """
    sized = rows.filter(pl.col("block_size_bytes").is_not_null())
    if sized.is_empty():
        return {}
    _check_one_row_per_cell(sized)
    figures = {"headline": draw_headline(sized)}
    for op, pattern in kinds_of_requests(sized):
        figures[f"{pattern}-{op}"] = draw_cell_figure(sized, pattern=pattern, op=op)
    return figures


def _check_one_row_per_cell(rows: pl.DataFrame) -> None:
    cell = ["scheme", "op", "pattern", "block_size_bytes", "workload"]
    counts = rows.group_by(set(cell) & set(rows.columns)).len()
    most = max(counts["len"].to_list())
    if most > 1:
        raise ValueError(
            f"rows: got up to {most} rows of a cell, wanted one, as `run` returns: filter the rows of a "
            "sweep to one point and replication, or call draw_sweep(result.aggregated, keys)"
        )


def save_figures(
    figures: Mapping[str, CaptionedFigure],
    out_dir: str | Path,
    *,
    width_inch: float | None = None,
) -> list[Path]:
    """Write figures as SVG and PNG, or for a paper as PDF and SVG, and their captions.

    Parameters
    ----------
    figures
        File stem → figure.
    out_dir
        Folder, created if missing.
    width_inch
        Width of a paper's column [inch], 2 to 12. The figures are laid out again for it, see
        `stripesim.scenarios.show.figures.paper.fit_width`. None keeps them as drawn, for screens.

    Returns
    -------
    list of Path
        ``<stem>.svg`` and ``<stem>.png`` for each figure, or with a width ``<stem>.pdf``, ``<stem>.svg`` and
        ``<stem>.tex``, then ``captions.md``.

    Raises
    ------
    stripesim.scenarios.show.quantities.AnswerError
        If the folder cannot be written to.

    Notes
    -----
    The files contain no date, so that equal rows give equal bytes.
    """
    contents: dict[str, bytes] = {}
    for stem, (figure, caption) in figures.items():
        if width_inch is None:
            contents |= _screen_files(stem, figure)
            continue
        with styled(), mpl.rc_context(cast(Any, _PAPER_FONTS)):
            fit_width(figure, width_inch)
            contents |= paper_files(stem, figure, caption, width_inch)
    captions = "".join(
        f"**{stem}.** {caption}\n\n" for stem, (_, caption) in figures.items()
    )
    if captions:
        contents["captions.md"] = captions.rstrip("\n").encode() + b"\n"
    return write_files(out_dir, contents)


def _screen_files(stem: str, figure: Figure) -> dict[str, bytes]:
    contents = {}
    for suffix, metadata in METADATA.items():
        buffer = BytesIO()
        with styled():
            figure.savefig(buffer, format=suffix, dpi=_PNG_DPI, metadata=metadata)
        contents[f"{stem}.{suffix}"] = buffer.getvalue()
    return contents


def draw_panels(rows: pl.DataFrame) -> dict[str, CaptionedFigure]:
    """Draw throughput and latencies of each kind of request with block sizes, by anchor."""
    sized = rows.filter(pl.col("block_size_bytes").is_not_null())
    schemes = scheme_names(sized)
    figures = {}
    for op, pattern in kinds_of_requests(sized):
        own = sized.filter((pl.col("op") == op) & (pl.col("pattern") == pattern))
        for panel in (THROUGHPUT, LATENCY, _P99):
            if own[panel.metric].count():
                stem = f"{pattern}-{op}-{panel.metric.partition('_')[2]}"
                figures[stem] = _draw(own, kind_words(op, pattern), panel, schemes)
    return figures


def _draw(
    rows: pl.DataFrame, kind: str, panel: Panel, schemes: Sequence[str]
) -> CaptionedFigure:
    with styled():
        figure = new_figure(_SIZE_INCHES)
        axes = figure.subplots()
        scale_axis(axes, draw_panel(axes, rows, panel, schemes))
        axes.set_title(f"{kind}: {panel.title.lower()}", fontsize=12.5)
        axes.set_xlabel(size_axis_title(block_sizes(rows)))
        legend(figure)
    return CaptionedFigure(figure, _caption(rows, kind, panel, schemes))


def _caption(
    rows: pl.DataFrame, kind: str, panel: Panel, schemes: Sequence[str]
) -> str:
    parts = []
    for scheme in schemes:
        values = rows.filter(pl.col("scheme") == scheme)[panel.metric].drop_nulls()
        if values.is_empty():
            continue
        shown = (values * panel.factor).to_list()
        low = number_text(min(shown))
        high = number_text(max(shown))
        span = " to ".join(dict.fromkeys((low, high)))
        parts.append(f"{scheme_label(scheme)} {span} {panel.unit}")
    whiskers = ""
    if panel.ci and set(panel.ci) <= set(rows.columns) and rows[panel.ci[0]].count():
        whiskers = " Whiskers: 95 % confidence interval."
    return f"{kind}, {panel.title.lower()}, simulated: {'; '.join(parts)}.{whiskers}"

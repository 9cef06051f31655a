"""Figures drawn from result rows: against block size, side by side, the headline comparison."""

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import matplotlib as mpl
import polars as pl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from stripesim.scenarios.figures.captions import (
    PATTERN_WORDS,
    block_sizes,
    cell_caption,
    headline_caption,
    kind_words,
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
from stripesim.scenarios.run.results import write_files
from stripesim.scenarios.schema.units import number_text

#: No date and no version of the drawing library: the same rows give the same bytes.
METADATA: Final[Mapping[str, dict[str, str | None]]] = MappingProxyType(
    {"svg": {"Date": None, "Creator": "stripesim"}, "png": {"Software": None}}
)

#: Enough for a slide of 1920 pixels' width and for print at column width.
_PNG_DPI: Final = 170


class CaptionedFigure(NamedTuple):
    """A figure and the sentence that belongs under it."""

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
    entries = [axes.get_legend_handles_labels() for axes in figure.axes]
    by_label = {
        label: handle for entry in entries for handle, label in zip(*entry, strict=True)
    }
    if by_label:
        handles, columns = list(by_label.values()), min(len(by_label), 5)
        figure.legend(
            handles,
            list(by_label),
            loc="outside upper left",
            ncols=columns,
            handlelength=2.6,
        )


def draw_cell_figure(rows: pl.DataFrame, *, pattern: str, op: str) -> CaptionedFigure:
    """Draw throughput [MB/s] and mean latency [ms] against block size for one pattern and op.

    References
    ----------
    The form is that of Koh et al., "Understanding system characteristics of online erasure coding on
    scalable, distributed and large-scale SSD array systems" (2017), Figures 5 to 8.
    """
    selected = rows.filter((pl.col("pattern") == pattern) & (pl.col("op") == op))
    if selected["block_size_bytes"].drop_nulls().is_empty():
        got = f"none with pattern {pattern}, op {op} and a block size"
        raise ValueError(f"rows: got {got}, wanted at least one")
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
    """Draw throughput of every scheme in small multiples: patterns across, ops down, one scale in a row."""
    sized = rows.filter(pl.col("block_size_bytes").is_not_null())
    if sized.is_empty():
        raise ValueError("rows: got none with a block size, wanted at least one")
    patterns = [name for name in PATTERN_WORDS if name in sized["pattern"]]
    ops = [name for name in ("write", "read", "mixed") if name in sized["op"]]
    schemes = scheme_names(sized)
    # One pattern makes one column; turned on its side it fits a slide, but then ops have scales of their own.
    columns, lines = (len(patterns), len(ops)) if len(patterns) > 1 else (len(ops), 1)
    with styled():
        figure = new_figure((5.75 * columns, 0.8 + 3.6 * lines))
        grid = figure.subplots(
            lines, columns, sharey="row" if lines == len(ops) else False, squeeze=False
        )
        scales: list[tuple[Axes, list[float]]] = []
        for index, (op, pattern) in enumerate(itertools.product(ops, patterns)):
            axes = grid[index // columns][index % columns]
            of_op = sized.filter(pl.col("op") == op)
            here = of_op.filter(pl.col("pattern") == pattern)
            if here.is_empty():
                axes.set_axis_off()
                continue
            draw_panel(axes, here, THROUGHPUT, schemes, ())
            bars = len(block_sizes(here)) == 1
            values = (
                of_op[THROUGHPUT.metric].drop_nulls() * THROUGHPUT.factor
            ).to_list()
            scales.append((axes, [] if bars else values))
            axes.set_title(kind_words(op, pattern))
            axes.set_ylabel("throughput [MB/s]" if index % columns == 0 else "")
            axes.set_xlabel(
                size_axis_title(block_sizes(here))
                if bars or index // columns == lines - 1
                else ""
            )
        # A shared scale must suit all panels of an op, so it waits until all are drawn.
        for axes, values in scales:
            scale_axis(axes, values)
        legend(figure)
    return CaptionedFigure(figure, headline_caption(sized, patterns, ops))


def new_figure(size_inch: tuple[float, float]) -> Figure:
    """Return an empty figure, width and height in inches, that lays itself out and can be saved."""
    # No pyplot: a library must not touch the windows or the global state of the program that uses it.
    figure = Figure(figsize=size_inch, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def draw_all(rows: pl.DataFrame) -> dict[str, CaptionedFigure]:
    """Draw every figure the rows allow.

    Parameters
    ----------
    rows
        Result rows; those without a block size are left aside.

    Returns
    -------
    dict
        File stem → figure: ``headline``, then ``seq-write`` and so on. Empty where no row has a block size.
    """
    sized = rows.filter(pl.col("block_size_bytes").is_not_null())
    if sized.is_empty():
        return {}
    figures = {"headline": draw_headline(sized)}
    for pattern, op in (
        sized.select("pattern", "op").unique(maintain_order=True).iter_rows()
    ):
        figures[f"{pattern}-{op}"] = draw_cell_figure(sized, pattern=pattern, op=op)
    return figures


def save_figures(
    figures: Mapping[str, CaptionedFigure], out_dir: str | Path
) -> list[Path]:
    """Write figures as SVG and PNG, and their captions.

    Parameters
    ----------
    figures
        File stem → figure.
    out_dir
        Folder, made where missing.

    Returns
    -------
    list of Path
        ``<stem>.svg`` and ``<stem>.png`` for each figure, then ``captions.md``.

    Raises
    ------
    stripesim.scenarios.run.results.ResultsError
        If the folder cannot be written to.

    Notes
    -----
    No date is written into the files: the same rows give the same bytes.
    """
    contents: dict[str, bytes] = {}
    for stem, (figure, _) in figures.items():
        for suffix, metadata in METADATA.items():
            buffer = BytesIO()
            with styled():
                figure.savefig(buffer, format=suffix, dpi=_PNG_DPI, metadata=metadata)
            contents[f"{stem}.{suffix}"] = buffer.getvalue()
    captions = "".join(
        f"**{stem}.** {caption}\n\n" for stem, (_, caption) in figures.items()
    )
    if captions:
        contents["captions.md"] = captions.rstrip("\n").encode() + b"\n"
    return write_files(out_dir, contents)


def draw_possible(
    rows: pl.DataFrame,
    drawings: Mapping[
        str, tuple[Collection[str], Callable[[pl.DataFrame], CaptionedFigure]]
    ],
) -> dict[str, CaptionedFigure]:
    """Draw those figures of a study whose experiments were run: file stem → (experiments needed, drawing)."""
    there = set(rows["experiment"].to_list())
    with styled():
        return {
            stem: draw(rows)
            for stem, (needs, draw) in drawings.items()
            if there.issuperset(needs)
        }


_P99: Final = panel_of("latency_p99_ns", "99th percentile of latency")

#: Narrow enough that its letters are legible on a phone [inch].
_SIZE_INCHES: Final = (5.6, 3.9)


def draw_panels(rows: pl.DataFrame) -> dict[str, CaptionedFigure]:
    """Draw throughput and latencies of each kind of request that has block sizes; anchor → figure."""
    sized = rows.filter(pl.col("block_size_bytes").is_not_null())
    schemes = scheme_names(sized)
    figures = {}
    for op, pattern in (
        sized.select("op", "pattern").unique(maintain_order=True).iter_rows()
    ):
        here = sized.filter((pl.col("op") == op) & (pl.col("pattern") == pattern))
        for panel in (THROUGHPUT, LATENCY, _P99):
            if here[panel.metric].count():
                stem = f"{pattern}-{op}-{panel.metric.partition('_')[2]}"
                figures[stem] = _draw(here, kind_words(op, pattern), panel, schemes)
    return figures


def _draw(
    rows: pl.DataFrame, words: str, panel: Panel, schemes: Sequence[str]
) -> CaptionedFigure:
    with styled():
        figure = new_figure(_SIZE_INCHES)
        axes = figure.subplots()
        scale_axis(axes, draw_panel(axes, rows, panel, schemes, ()))
        axes.set_title(f"{words}: {panel.title.lower()}", fontsize=12.5)
        axes.set_xlabel(size_axis_title(block_sizes(rows)))
        legend(figure)
    return CaptionedFigure(figure, _caption(rows, words, panel, schemes))


def _caption(
    rows: pl.DataFrame, words: str, panel: Panel, schemes: Sequence[str]
) -> str:
    parts = []
    for scheme in schemes:
        values = (
            rows.filter(pl.col("scheme") == scheme)[panel.metric].drop_nulls()
            * panel.factor
        ).to_list()
        if values:
            low, high = number_text(min(values)), number_text(max(values))
            parts.append(
                f"{scheme_label(scheme)} {low if low == high else f'{low} to {high}'} {panel.unit}"
            )
    whiskers = ""
    if panel.ci and set(panel.ci) <= set(rows.columns) and rows[panel.ci[0]].count():
        whiskers = " Whiskers: 95 % confidence interval."
    return f"{words}, {panel.title.lower()}, simulated: {'; '.join(parts)}.{whiskers}"

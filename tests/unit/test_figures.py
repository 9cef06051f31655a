"""Figures show the rows they are given, and captions say numbers computed from them."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.axes import Axes

from stripesim.scenarios.show.figures.captions import scheme_label
from stripesim.scenarios.show.figures.faults import draw_nines
from stripesim.scenarios.show.figures.panels import size_axis_title
from stripesim.scenarios.show.figures.renderer import new_figure, scale_axis
from stripesim.scenarios.show.figures.results import (
    draw_all,
    draw_cell_figure,
    draw_headline,
)
from stripesim.scenarios.show.figures.saving import save_figures
from stripesim.scenarios.show.quantities import rows_frame

SIZES = (1024, 4096, 131072)
SCHEMES = ("rep:3", "rs:6,3")


def value(scheme: str, op: str, pattern: str, size: int) -> float:
    """A throughput [bytes/s] that differs in every cell."""
    return (
        size
        * (1 + SCHEMES.index(scheme))
        * (3 if op == "read" else 5)
        * (7 if pattern == "seq" else 11)
        * 10.0
    )


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    cells: list[dict[str, Any]] = []
    # Sizes come unsorted: the axis must not depend on the order of rows.
    for scheme, op, pattern, size in itertools.product(
        SCHEMES, ("read", "write"), ("rand", "seq"), SIZES[::-1]
    ):
        throughput = value(scheme, op, pattern, size)
        cells.append(
            {
                "scheme": scheme,
                "op": op,
                "pattern": pattern,
                "block_size_bytes": size,
                "throughput_bytes_per_s": throughput,
                "throughput_ci_low": throughput * 0.9 if scheme == "rep:3" else None,
                "throughput_ci_high": throughput * 1.1 if scheme == "rep:3" else None,
                "latency_mean_ns": 1e15 / throughput,
            }
        )
    return rows_frame(cells)


def lines(axes: Axes) -> dict[str, np.ndarray[Any, Any]]:
    return {
        str(line.get_label()): np.asarray(line.get_ydata())
        for line in axes.lines
        if len(line.get_xdata()) == 3
    }  # type: ignore[arg-type]


def test_panels_show_throughput_in_mb_and_latency_in_ms(rows: pl.DataFrame) -> None:
    figure, _ = draw_cell_figure(rows, pattern="seq", op="write")
    throughput, latency = figure.axes
    for scheme in SCHEMES:
        expected = np.array([value(scheme, "write", "seq", size) for size in SIZES])
        np.testing.assert_allclose(
            lines(throughput)[scheme_label(scheme)], expected / 1e6
        )
        np.testing.assert_allclose(lines(latency)[scheme_label(scheme)], 1e9 / expected)
    assert throughput.get_ylabel() == "throughput [MB/s]"
    assert latency.get_ylabel() == "mean latency [ms]"
    assert [label.get_text() for label in throughput.get_xticklabels()] == [
        "1",
        "4",
        "128",
    ]
    assert throughput.get_xlabel() == "block size [KiB]"


def test_each_scheme_has_its_own_colour_marker_and_line(rows: pl.DataFrame) -> None:
    figure, _ = draw_cell_figure(rows, pattern="seq", op="write")
    looks = [
        (line.get_color(), line.get_marker(), line.get_linestyle())
        for line in figure.axes[0].lines
    ]
    assert all(len(set(look)) == len(SCHEMES) for look in zip(*looks, strict=True))


def test_many_schemes_stay_at_their_block_sizes_and_look_different() -> None:
    schemes = [f"rs:{k},2" for k in range(2, 20)]
    throughput = 1e6
    cells = [
        {
            "scheme": scheme,
            "op": "write",
            "pattern": "seq",
            "block_size_bytes": size,
            "throughput_bytes_per_s": throughput,
            "latency_mean_ns": 1e6,
        }
        for scheme, size in itertools.product(schemes, SIZES)
    ]
    figure, _ = draw_cell_figure(rows_frame(cells), pattern="seq", op="write")
    drawn = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 3]
    assert len(drawn) == len(schemes)
    aside = [np.asarray(line.get_xdata()) - range(len(SIZES)) for line in drawn]
    # Halfway to the next size, a point would belong to either.
    assert np.abs(aside).max() < 0.5
    # Without markers, curves differ by colour and line alone.
    assert len({(line.get_color(), line.get_linestyle()) for line in drawn}) == 18


def test_whiskers_are_the_confidence_interval_where_there_is_one(
    rows: pl.DataFrame,
) -> None:
    figure, caption = draw_cell_figure(rows, pattern="seq", op="write")
    ends = [
        segment[:, 1]
        for collection in figure.axes[0].collections
        for segment in collection.get_segments()  # type: ignore[attr-defined]
        if len(segment) and np.isfinite(segment).all()
    ]
    expected = [
        [value("rep:3", "write", "seq", size) * f / 1e6 for f in (0.9, 1.1)]
        for size in SIZES
    ]
    np.testing.assert_allclose(ends, expected)
    assert "Whiskers" in caption
    without = rows.with_columns(pl.lit(None, pl.Float64).alias("throughput_ci_low"))
    assert (
        "Whiskers" not in draw_cell_figure(without, pattern="seq", op="write").caption
    )


def test_an_axis_is_logarithmic_only_where_values_span_far(rows: pl.DataFrame) -> None:
    wide, _ = draw_cell_figure(rows, pattern="seq", op="write")
    assert wide.axes[0].get_yscale() == "log"
    near, _ = draw_cell_figure(
        rows.filter(pl.col("block_size_bytes") < 8192), pattern="seq", op="write"
    )
    assert near.axes[0].get_yscale() == "linear"
    assert near.axes[0].get_ylim()[0] == 0


def test_the_caption_says_means_and_factors_of_the_rows(rows: pl.DataFrame) -> None:
    mean = np.mean([value("rep:3", "read", "rand", size) for size in SIZES]) / 1e6
    _, caption = draw_cell_figure(rows, pattern="rand", op="read")
    assert caption.startswith("Random reads of 1 KiB to 128 KiB, simulated.")
    assert f"{mean:.3g} MB/s for 3-replication" in caption
    assert "for RS(6,3) (2×)" in caption
    assert "for RS(6,3) (0.5×)" in caption
    doubled = rows.with_columns(pl.col("throughput_bytes_per_s") * 2)
    assert (
        f"{2 * mean:.3g} MB/s for 3-replication"
        in draw_cell_figure(doubled, pattern="rand", op="read").caption
    )


def test_a_scheme_with_a_gap_is_not_averaged(rows: pl.DataFrame) -> None:
    gap = rows.filter(
        (pl.col("scheme") != "rs:6,3") | (pl.col("block_size_bytes") != 4096)
    )
    figure, caption = draw_cell_figure(gap, pattern="rand", op="read")
    assert "RS(6,3)" not in caption
    assert "3-replication" in caption
    assert len(figure.axes[0].lines) == 2


def test_the_headline_has_a_panel_for_each_op_and_pattern(rows: pl.DataFrame) -> None:
    figure, caption = draw_headline(rows)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == [
        "Sequential writes",
        "Random writes",
        "Sequential reads",
        "Random reads",
    ]
    for axes, (op, pattern) in zip(
        figure.axes, itertools.product(("write", "read"), ("seq", "rand")), strict=True
    ):
        drawn = lines(axes)["RS(6,3)"]
        np.testing.assert_allclose(
            drawn, [value("rs:6,3", op, pattern, size) / 1e6 for size in SIZES]
        )
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()
    assert "Sequential writes: RS(6,3) 2 times 3-replication." in caption


def test_a_caption_states_no_ratio_that_may_be_chance(rows: pl.DataFrame) -> None:
    columns = ["throughput_bytes_per_s", "throughput_ci_low", "throughput_ci_high"]
    # 10 and 10.5 with intervals that overlap, and 10 and 12 with others that do not.
    for factor, is_stated in ((1.05, False), (1.2, True)):
        means = {"rep:3": 1e7, "rs:6,3": 1e7 * factor}
        mean = pl.col("scheme").replace_strict(means)
        near = rows.with_columns(
            mean.mul(share).alias(name)
            for name, share in zip(columns, (1, 0.95, 1.05), strict=True)
        )
        assert ("times 3-replication" in draw_headline(near).caption) == is_stated
        cell = draw_cell_figure(near, pattern="seq", op="write").caption
        assert (f"({factor}×)" in cell) == is_stated
    p99 = rows.with_columns(latency_p99_ns=pl.col("latency_mean_ns") * 3)
    caption = draw_all(p99, metric="latency_p99_ns")["headline"].caption
    assert "times" not in caption
    assert "--replications" in caption


def test_rows_that_do_not_fill_the_grid_are_drawn_as_far_as_they_go(
    rows: pl.DataFrame,
) -> None:
    some = rows.filter((pl.col("op") == "read") | (pl.col("pattern") == "seq"))
    assert set(draw_all(some)) == {"headline", "seq-read", "rand-read", "seq-write"}
    one = rows.head(1)
    assert draw_headline(one).caption == "Simulated throughput, 128 KiB."
    trace = rows_frame([{"scheme": "rep:3", "op": "trace", "pattern": "trace"}])
    assert draw_all(trace) == {}
    for draw in (
        draw_headline,
        lambda nothing: draw_cell_figure(nothing, pattern="seq", op="read"),
    ):
        with pytest.raises(ValueError, match=r"^rows: got none"):
            draw(trace)


def test_all_nines_are_below_the_top_and_methods_have_words() -> None:
    rows = [
        {
            "scheme": "rs:8,2",
            "method": method,
            "nines": 4.7,
            "nines_low": low,
            "nines_high": high,
        }
        for method, low, high in (("markov", None, None), ("splitting", 4.6, 4.8))
    ]
    figure = draw_nines(rows).figure
    (axes,) = figure.axes
    assert axes.get_ylim()[1] > 4.8
    (legend,) = figure.legends
    words = [text.get_text() for text in legend.get_texts()]
    assert words == ["Markov chain", "simulation (splitting)"]


def test_files_are_the_same_for_the_same_rows(
    rows: pl.DataFrame, tmp_path: Path
) -> None:
    first, second = (
        save_figures(draw_all(rows.filter(op="read", pattern="seq")), tmp_path / name)
        for name in "ab"
    )
    names = ["headline", "seq-read"]
    assert {path.name for path in first} == {
        *(f"{name}.{suffix}" for name in names for suffix in ("svg", "png")),
        "captions.md",
    }
    assert [path.read_bytes() for path in first] == [
        path.read_bytes() for path in second
    ]
    assert (tmp_path / "a" / "headline.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (tmp_path / "a" / "headline.svg").read_bytes()


def test_captions_of_figures_saved_before_stay(
    rows: pl.DataFrame, tmp_path: Path
) -> None:
    drawn = draw_all(rows.filter(op="read", pattern="seq"))
    headline, reads = ({name: drawn[name]} for name in ("headline", "seq-read"))
    for figures in (headline, reads, headline):
        save_figures(figures, tmp_path)
    paragraphs = (tmp_path / "captions.md").read_text("utf-8").split("\n\n")
    assert paragraphs == [
        f"**{name}.** {drawn[name].caption}" + end
        for name, end in (("seq-read", ""), ("headline", "\n"))
    ]


def test_one_block_size_is_drawn_as_bars_from_zero(rows: pl.DataFrame) -> None:
    one = rows.filter(
        (pl.col("block_size_bytes") == 4096) & (pl.col("pattern") == "rand")
    )
    figure, caption = draw_headline(one)
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "Random writes",
        "Random reads",
    ]
    for axes, op in zip(figure.axes, ("write", "read"), strict=True):
        bars = [bar for container in axes.containers for bar in container]
        expected = [value(scheme, op, "rand", 4096) / 1e6 for scheme in SCHEMES]
        np.testing.assert_allclose([bar.get_height() for bar in bars], expected)
        assert axes.get_ylim()[0] == 0
        assert axes.get_ylim()[1] > max(expected)
        assert [label.get_text() for label in axes.get_xticklabels()] == [
            "3-replication",
            "RS(6,3)",
        ]
        assert axes.get_xlabel() == "block size 4 KiB"
    assert "4 KiB" in caption


def test_the_legend_names_the_schemes_even_where_the_first_panel_is_empty(
    rows: pl.DataFrame,
) -> None:
    some = rows.filter((pl.col("op") == "read") | (pl.col("pattern") == "rand"))
    figure, _ = draw_headline(some)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "3-replication",
        "RS(6,3)",
    ]


@pytest.mark.parametrize("sizes", [(4096,), (1024, 4096)])
def test_a_shared_linear_scale_holds_every_panel(
    rows: pl.DataFrame, sizes: tuple[int, ...]
) -> None:
    # The right panel, drawn last, has the larger values.
    figure, _ = draw_headline(rows.filter(pl.col("block_size_bytes").is_in(sizes)))
    largest = max(value("rs:6,3", "write", "rand", size) for size in sizes) / 1e6
    for axes in figure.axes[:2]:
        assert axes.get_yscale() == "linear"
        low, high = axes.get_ylim()
        assert low == 0
        assert high > largest


@pytest.mark.parametrize("low", [2.0, 0.3, 40.0])
def test_a_logarithmic_axis_has_two_labels_or_more(low: float) -> None:
    # 2 to 80, for example, holds only the power 10.
    figure = new_figure((4, 3))
    axes = figure.subplots()
    values = [low, 40 * low]
    axes.plot([0, 1], values)
    scale_axis(axes, values)
    bottom, top = axes.get_ylim()
    assert sum(bottom <= tick <= top for tick in axes.get_yticks()) >= 2


@pytest.mark.parametrize(
    ("ops", "sizes", "title"),
    [
        (["put", "get"], [65_536, 8 << 20], "object size [KiB]"),
        (["head"], [4096], "object size 4 KiB"),
        (["read", "write"], [4096, 65_536], "block size [KiB]"),
    ],
)
def test_the_axis_names_sizes_of_objects_or_of_blocks(ops, sizes, title):
    count = max(len(ops), len(sizes))
    rows = pl.DataFrame(
        {
            "op": (ops * count)[:count],
            "block_size_bytes": (sizes * count)[:count],
        }
    )
    assert size_axis_title(rows) == title


def test_requests_without_data_are_drawn_by_their_rate(rows: pl.DataFrame) -> None:
    # A HEAD moves no data: 0 MB/s says nothing of 500 requests/s.
    heads = rows.filter(pl.col("op") == "read", pl.col("pattern") == "rand")
    heads = heads.with_columns(
        op=pl.lit("head"), throughput_bytes_per_s=0.0, iops=pl.lit(500.0)
    )
    figures = draw_all(heads)
    left, _ = figures["rand-head"].figure.axes[:2]
    assert left.get_ylabel() == "rate [requests/s]"
    assert all(set(line) == {500.0} for line in lines(left).values())
    assert "MB/s" not in figures["rand-head"].caption
    assert (
        "Mean rate over object sizes: 500 requests/s for"
        in figures["rand-head"].caption
    )
    # One headline has one quantity.
    puts = heads.with_columns(op=pl.lit("put"), throughput_bytes_per_s=8e6)
    both = draw_all(pl.concat([puts, heads]))
    assert both["headline"].caption.startswith("Simulated rate")
    assert "MB/s" in both["rand-put"].caption

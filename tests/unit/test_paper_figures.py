"""Figures for papers: width, readable letters, text that stays text, nothing beyond the edge, captions."""

import re

import pytest
from matplotlib.text import Text

from stripesim.models.problems import AnswerError
from stripesim.scenarios.show.figures.paper import (
    fit_width,
    latex_text,
    parse_width_inch,
)
from stripesim.scenarios.show.figures.renderer import (
    CaptionedFigure,
    drawn,
    fitted_legend,
    new_figure,
)
from stripesim.scenarios.show.figures.saving import save_figures
from stripesim.scenarios.show.figures.screen import styled
from stripesim.scenarios.show.figures.specification import (
    CLAIMS_ROLE,
    FigureSpec,
    LayerSpec,
    PanelSpec,
)


def figure_of(panels=2, labels=("3-replication", "RS(4,2)"), claims=False):
    """Draw panels side by side as for a screen, whose right ones share the left one's label."""
    with styled():
        figure = new_figure((5.75 * panels + 6.8 * claims, 4.4))
        grid = figure.add_gridspec(1, panels + claims)
        for number in range(panels):
            axes = figure.add_subplot(grid[0, number])
            for label in labels:
                axes.plot([1, 2, 3], [number, 1, 2], marker="o", label=label)
            axes.set_title(f"({'ab'[number]}) A title that is longer than a column is")
            axes.set_xlabel("block size [KiB]")
        figure.axes[0].set_ylabel("throughput [MB/s]")
        if claims:
            figure.add_subplot(grid[0, panels], label=CLAIMS_ROLE)
        entries = dict(
            zip(*figure.axes[0].get_legend_handles_labels()[::-1], strict=True)
        )
        fitted_legend(figure, list(entries.values()), list(entries))
    return figure


@pytest.mark.parametrize(
    ("text", "inch"),
    [("3.5in", 3.5), ("8.89cm", 3.5), ("88.9mm", 3.5), (" 252.945pt", 3.5)],
)
def test_widths_have_units(text, inch):
    # 1 inch = 2.54 cm = 72.27 points of TeX
    assert parse_width_inch(text) == pytest.approx(inch)


@pytest.mark.parametrize(
    "text", ["", "3.5", "-3in", "nan in", "1in", "2m", "900pt", "1e9in"]
)
def test_other_widths_are_refused(text):
    with pytest.raises(
        ValueError, match=r"^--width: got .*, wanted a width of 2in to 12in"
    ):
        parse_width_inch(text)


@pytest.mark.parametrize("width_inch", [0.5, 40, float("nan")])
def test_widths_beyond_a_page_are_refused(width_inch, tmp_path):
    captioned = CaptionedFigure(figure_of(), "Caption.")
    with pytest.raises(AnswerError, match=r"^width_inch: got .*, wanted 2 to 12"):
        save_figures({"one": captioned}, tmp_path, width_inch=width_inch)


@pytest.mark.parametrize(("width_inch", "columns"), [(3.5, 1), (7.0, 2)])
def test_panels_stack_where_they_do_not_fit(width_inch, columns):
    figure = figure_of()
    with styled():
        fit_width(figure, width_inch)
    assert figure.get_figwidth() == width_inch
    lefts = {round(axes.get_position().x0, 2) for axes in figure.axes}
    assert len(lefts) == columns
    if columns == 1:
        assert [axes.get_ylabel() for axes in figure.axes] == ["throughput [MB/s]"] * 2


def grid_of_panels(lines, columns):
    layers = [LayerSpec(mark="line", x=[1, 2, 3], y=[1, 3, 2], label="RS(4,2)")]
    panel = PanelSpec(title="Sequential writes", layers=layers)
    spec = FigureSpec(
        size=(5.75 * columns, 0.8 + 3.6 * lines),
        panels=[panel] * (lines * columns),
        columns=columns,
        caption="",
    )
    return drawn(spec)


@pytest.mark.parametrize(("lines", "columns"), [(2, 2), (1, 5), (3, 1), (4, 1), (3, 2)])
def test_a_figure_leaves_room_for_its_caption_on_a_page(lines, columns):
    figure = grid_of_panels(lines, columns).at_width(3.5)
    # A page of letter paper has 9 inches of text.
    assert figure.get_figheight() <= 7.5 + 0.5
    titles = {axes.get_position().x0 for axes in figure.axes}
    if (lines, columns) == (2, 2):
        assert len(titles) == 2
        assert figure.get_figheight() < 4


@pytest.mark.parametrize("width_inch", [3.5, 7.0])
def test_all_words_are_readable_and_inside(width_inch):
    figure = figure_of(labels=["a scheme with a long name, 4KiB", "b" * 20, "c", "d"])
    with styled():
        fit_width(figure, width_inch)
        figure.draw_without_rendering()
    words = [
        text for text in figure.findobj(Text) if text.get_text() and text.get_visible()
    ]
    assert len(words) > 12
    # Papers ask for six points or more.
    assert all(6 <= text.get_fontsize() <= 9 for text in words)
    drawn = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert drawn.x0 >= -0.01
    assert drawn.x1 <= width + 0.01
    assert drawn.y0 >= -0.01
    assert drawn.y1 <= height + 0.01


def test_panels_of_verdicts_stay_away():
    figure = figure_of(claims=True)
    assert len(figure.axes) == 3
    with styled():
        fit_width(figure, 3.5)
    assert len(figure.axes) == 2


def test_files_hold_text_and_fonts(tmp_path):
    # given
    captioned = CaptionedFigure(figure_of(), "Throughput of 10⁶ B & 95 % intervals.")
    # when
    written = save_figures({"one": captioned}, tmp_path, width_inch=3.5)
    # then
    names = {path.name for path in written}
    assert names == {"one.pdf", "one.svg", "one.tex", "captions.md"}
    svg = (tmp_path / "one.svg").read_text(encoding="utf-8")
    # 3.5 inches of 72 points
    assert 'width="252pt"' in svg
    assert ">throughput [MB/s]</text>" in svg
    assert svg.count("@font-face") == 2
    pdf = (tmp_path / "one.pdf").read_bytes()
    # An embedded TrueType font, and no picture of dots
    assert b"/FontFile2" in pdf
    assert b"/Subtype /Image" not in pdf
    assert re.search(rb"/MediaBox \[ 0 0 252 ", pdf)
    tex = (tmp_path / "one.tex").read_text(encoding="utf-8")
    assert r"\includegraphics[width=3.5in]{one.pdf}" in tex
    assert r"10\textsuperscript{6} B \& 95 \% intervals." in tex


def test_equal_figures_give_equal_files(tmp_path):
    for name in "ab":
        figures = {"one": CaptionedFigure(figure_of(), "Caption.")}
        save_figures(figures, tmp_path / name, width_inch=3.5)
    for suffix in ("pdf", "svg", "tex"):
        one, two = ((tmp_path / name / f"one.{suffix}").read_bytes() for name in "ab")
        assert one == two


def test_a_drawn_figure_keeps_its_form_for_screens(tmp_path):
    # given
    panel = PanelSpec(layers=[LayerSpec(mark="line", x=[1, 2], y=[1, 2], label="one")])
    captioned = drawn(
        FigureSpec(size=(11.5, 4.4), panels=[panel, panel], caption="Lines.")
    )
    sizes = [text.get_fontsize() for text in captioned.figure.findobj(Text)]
    # when
    for name in "ab":
        save_figures({"one": captioned}, tmp_path / name, width_inch=3.5)
    # then
    assert captioned.figure.get_figwidth() == 11.5
    assert [text.get_fontsize() for text in captioned.figure.findobj(Text)] == sizes
    # A second drawing does not shrink it further.
    one, two = ((tmp_path / name / "one.svg").read_bytes() for name in "ab")
    assert one == two


def test_lines_of_a_title_stay_lines():
    panel = PanelSpec(
        title="mean = 170 µs\n95 %: 140 to 177 µs",
        layers=[LayerSpec(mark="line", x=[1, 2], y=[1, 2])],
    )
    figure = drawn(
        FigureSpec(size=(5.7, 4.4), panels=[panel], caption="Line.")
    ).at_width(3.5)
    title = figure.axes[0].get_title(loc="left")
    assert title == "mean = 170 µs\n95 %: 140 to 177 µs"


def test_latex_has_no_bare_sign():
    assert latex_text("a_b {50 %} #1 ~ \\") == (
        r"a\_b \{50 \%\} \#1 \textasciitilde{} \textbackslash{}"
    )
    # The recommended settings of placement groups, in a caption. The usual fonts of LaTeX have no star.
    assert latex_text("★: recommended ≤ 5 µs") == (
        r"$\star$: recommended $\leq$ 5 \textmu{}s"
    )


def test_a_legend_gets_as_many_columns_as_fit():
    # Drawn for one panel, five long names are wider than the figure.
    figure = figure_of(
        panels=1, labels=[f"3-replication, {n} KiB, squid" for n in range(5)]
    )
    (drawn,) = figure.legends
    assert drawn.get_window_extent().width <= figure.bbox.width


def test_a_legend_on_the_right_goes_below():
    # given: as in timelines of failures, the legend takes more than half of a column
    figure = figure_of(panels=1)
    (axes,) = figure.axes
    with styled():
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
        # when
        fit_width(figure, 3.5)
    # then
    panel = axes.get_window_extent()
    assert panel.width > 0.75 * figure.bbox.width
    assert axes.get_legend().get_window_extent().y1 < panel.y0

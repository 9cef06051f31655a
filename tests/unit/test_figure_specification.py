"""A specification says what a figure shows, and every renderer shows it: points, words on axes, legends."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.image import imread
from matplotlib.text import Text

from stripesim.scenarios.show.figures.renderer import drawn
from stripesim.scenarios.show.figures.saving import save_figures
from stripesim.scenarios.show.figures.specification import (
    AxisSpec,
    FigureSpec,
    LayerSpec,
    PanelSpec,
    linear_ticks,
    log_ticks,
)
from stripesim.scenarios.studies.registry import study_named
from stripesim.web.svg import panel_svg

#: Left, right, bottom and top of a plot in the page.
BOX = (0.0, 100.0, 200.0, 0.0)


def panel(*layers, **axes):
    """A panel from 0 to 10 on x, and from 1 to 100 on a logarithmic y."""
    x = AxisSpec(label="rate", low=0, high=10)
    y = AxisSpec(label="latency [ms]", scale="log", low=1, high=100)
    return PanelSpec(layers=layers, **{"x": x, "y": y, **axes})


def figure_of(*panels, **more):
    return drawn(FigureSpec(size=(5, 4), panels=panels, caption="", **more)).figure


def test_both_renderers_put_points_in_the_same_places():
    points = LayerSpec(
        mark="points", x=[5, 10], y=[10, 1], texts=["one", "two"], series="a"
    )
    # 5 is half of 10, and 10 is half of the decades from 1 to 100.
    svg = panel_svg(panel(points), BOX)
    circles = re.findall('cx="([0-9.]+)" cy="([0-9.]+)"', svg)
    assert circles == [("50.0", "100.0"), ("100.0", "200.0")]
    (axes,) = figure_of(panel(points)).axes
    (line,) = axes.lines
    to_parts = axes.transData + axes.transAxes.inverted()
    parts = to_parts.transform(line.get_xydata())
    np.testing.assert_allclose(parts, [[0.5, 0.5], [1, 0]], atol=1e-9)


def test_steps_keep_a_value_until_the_next_one():
    steps = LayerSpec(mark="steps", x=[0, 5, 10], y=[1, 100, 100], series="a")
    svg = panel_svg(panel(steps), BOX)
    assert 'points="0.0,200.0 50.0,200.0 50.0,0.0 100.0,0.0"' in svg


@pytest.mark.parametrize("factor", [1.3, 1.9, 4, 30, 1e3, 1e9])
@pytest.mark.parametrize("low", [1e-4, 0.21, 1, 2.1, 9.7, 55])
def test_a_logarithmic_axis_has_two_to_eight_labels_inside(low, factor):
    ticks = log_ticks(low, low * factor)
    assert 2 <= len(ticks) <= 8
    assert all(low * 0.999 <= tick <= low * factor * 1.001 for tick in ticks)


def test_a_halo_hides_no_data():
    point = LayerSpec(mark="points", x=[5], y=[10])
    words = LayerSpec(
        mark="text", x=[5], y=[10], texts=["knee"], style={"halo": True, "zorder": 6}
    )
    (axes,) = figure_of(panel(point, words)).axes
    (line,) = axes.lines
    with_halo = [text for text in axes.texts if text.get_path_effects()]
    assert len(with_halo) == 1
    assert with_halo[0].get_zorder() < line.get_zorder()


def test_the_legend_shows_the_marks_of_the_points_on_a_line():
    look = {"color": "#0072B2"}
    line = LayerSpec(mark="line", x=[1, 2], y=[2, 3], label="RS(4,2)", style=look)
    points = LayerSpec(mark="points", x=[1], y=[2], style={**look, "marker": "s"})
    other = LayerSpec(mark="line", x=[1, 2], y=[4, 5], label="p99")
    figure = figure_of(panel(line, points, other))
    (legend,) = figure.legends
    assert [one.get_marker() for one in legend.get_lines()] == ["s", ""]


def test_axes_that_panels_share_are_named_once():
    line = LayerSpec(mark="line", x=[1, 2], y=[2, 3])
    figure = figure_of(panel(line), panel(line), share="y")
    assert [axes.get_ylabel() for axes in figure.axes] == ["latency [ms]", ""]


def test_a_shared_automatic_scale_suits_all_panels():
    # Only both panels together span more than a factor of 30.
    y = AxisSpec(scale="auto")
    panels = [
        panel(LayerSpec(mark="line", x=[1, 2], y=values), y=y)
        for values in ([1, 20], [20, 400])
    ]
    figure = figure_of(*panels, share="rows")
    for axes in figure.axes:
        low, high = axes.get_ylim()
        assert axes.get_yscale() == "log"
        assert low < 1
        assert high > 400


def test_a_line_across_a_panel_does_not_change_its_scale():
    line = LayerSpec(mark="line", x=[1, 2], y=[100, 200])
    across = LayerSpec(mark="levels", x=[1.5])
    (axes,) = figure_of(panel(line, across, y=AxisSpec(scale="auto"))).axes
    assert axes.get_yscale() == "linear"


def test_a_long_legend_makes_a_figure_higher_instead_of_cutting_its_edge():
    layers = [
        LayerSpec(mark="line", x=[1, 2], y=[2, 3], label=f"{number} " + "long " * 10)
        for number in range(12)
    ]
    figure = figure_of(panel(*layers))
    figure.draw_without_rendering()
    edges = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert height > 4
    assert edges.y0 >= 0
    assert edges.y1 <= height
    assert edges.x1 <= width


def test_a_panel_without_data_says_so():
    figure = figure_of(PanelSpec(without_data="no completions"))
    texts = [text.get_text() for text in figure.findobj(Text)]
    assert "no completions" in texts


def test_a_study_draws_only_the_figure_that_was_asked_for():
    setting = SimpleNamespace(options={"figures": ["13"]}, ablate=())
    stems = study_named("koh2017").figure_stems(SimpleNamespace(setting=setting))
    papers = {stem for stem in stems if stem.startswith("fig")}
    assert papers == {"fig13"}


@pytest.mark.parametrize("most", [2, 3, 6])
@pytest.mark.parametrize(("low", "high"), [(0.737, 7.81), (0.9, 1.1), (199, 402)])
def test_a_linear_axis_has_two_labels_or_more(low, high, most):
    ticks = linear_ticks(low, high, most)
    assert len(ticks) >= 2
    assert all(low <= tick <= high for tick in ticks)


def test_a_picture_cuts_no_names_at_its_edge(tmp_path):
    names = ["rs:4,2 read rand 4KiB, rate", "rep:3 read rand 4KiB, rate"]
    y = AxisSpec(ticks=range(2), names=names, low=-0.5, high=1.5)
    points = LayerSpec(mark="points", x=[1, 2], y=[0, 1])
    spec = FigureSpec(size=(8, 2.5), panels=[panel(points, y=y)], caption="")
    save_figures({"names": drawn(spec)}, tmp_path)
    picture = imread(tmp_path / "names.png")
    # The pixels at the edge are white.
    assert picture[:, 0].min() == 1

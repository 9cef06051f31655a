"""Shared parts of studies: look-ups of claims and rows, rules of claims, and the shapes of figures."""

import re

import polars as pl
import pytest

from stripesim.scenarios.studies.claim_rules import claim_rules
from stripesim.scenarios.studies.figure_description import figure_spec, figure_specs
from stripesim.scenarios.studies.lookup import claims_of, number, published, select
from stripesim.scenarios.studies.marks import MARKS
from stripesim.scenarios.studies.registry import STUDIES, study_named
from stripesim.scenarios.studies.small_multiples import draw_figure

ROWS = pl.DataFrame(
    {"scheme": ["rs:6,3", "rs:6,3", "rep:3"], "size": [1, 2, 1], "rate": [10, 20, 30]}
)

BARS = [
    "SELECT 'rs' AS series, '4k' AS x, 1.0 AS y",
    "SELECT 'rep' AS series, '4k' AS x, 2.0 AS y",
    "SELECT 'rep' AS series, '16k' AS x, 3.0 AS y",
]


def test_a_number_is_that_of_the_only_row_that_fits():
    assert select(ROWS, scheme="rs:6,3")["rate"].to_list() == [10, 20]
    assert number(ROWS, "rate", scheme="rs:6,3", size=2) == 20
    for scheme, height in (("rs:6,3", 2), ("lrc:10,6,5", 0)):
        with pytest.raises(LookupError, match=f"got {height}, wanted one"):
            number(ROWS, "rate", scheme=scheme)


def test_published_values_are_those_of_claims_with_one_number():
    stated = published("exstorus2019")
    assert stated and set(stated) < {claim.id for claim in claims_of("exstorus2019")}
    assert all(isinstance(value, float) for value in stated.values())


@pytest.mark.parametrize(
    "name", sorted(set(STUDIES) - {"ceph16", "cores", "nvme", "releases", "s3"})
)
def test_rules_name_claims_and_metrics_of_their_study(name):
    claims = study_named(name).claims()
    rules = claim_rules(name)
    assert set(rules.expressions) <= {claim.id for claim in claims}
    assert set(rules.groups) <= {claim.metric for claim in claims}
    for pattern in rules.metrics:
        assert any(re.fullmatch(pattern, claim.metric) for claim in claims), pattern


def _named_panels(spec, layer):
    """Yield the panels that a layer's queries name, or all panels if they name none."""
    panels = spec.panels or [spec.template]
    named = [
        panel
        for panel in panels
        if panel.title and any(panel.title in query for query in layer.queries)
    ]
    yield from named or panels


@pytest.mark.parametrize("name", STUDIES)
def test_bars_on_a_logarithmic_axis_state_where_they_begin(name):
    # A logarithmic axis has no zero, so that a bar from there has no length.
    for spec in figure_specs(name).values():
        for layer in spec.layers:
            if layer.mark not in ("bars", "heap"):
                continue
            for panel in _named_panels(spec, layer):
                axis = panel.x if panel.sideways else panel.y
                if axis.spec.scale == "log":
                    assert layer.mark == "bars"
                    assert all(re.search(r"\blow\b", query) for query in layer.queries)


@pytest.mark.parametrize("name", STUDIES)
def test_every_figure_is_well_formed(name):
    specs = figure_specs(name)
    assert specs
    for spec in specs.values():
        assert {layer.mark for layer in spec.layers} <= set(MARKS)
        assert spec.caption.endswith((".", "}"))


def drawn(layers, rows=ROWS, **spec):
    """Draw one figure of these layers."""
    table = {"size": [6, 3], "caption": "", "layers": layers, **spec}
    context = pl.SQLContext({"rows": rows}, eager=True)
    captioned = draw_figure(figure_spec("one", table), context)
    assert captioned is not None
    return captioned


def test_bars_are_grouped_and_dashes_cross_them():
    bars = {"mark": "bars", "query": BARS}
    dashes = {
        "mark": "dashes",
        "label": "published",
        "query": "SELECT 'rep' AS series, '4k' AS x, 2.5 AS y",
    }
    figure, _ = drawn([bars, dashes])
    (axes,) = figure.axes
    heights = {bar.get_height(): bar for bar in axes.patches}
    assert set(heights) == {1, 2, 3}
    # Two series at categories 0 and 1: 0.8 wide in all, so 0.2 to either side of the middle.
    middles = {
        height: bar.get_x() + bar.get_width() / 2 for height, bar in heights.items()
    }
    assert middles == pytest.approx({1: -0.2, 2: 0.2, 3: 1.2})
    (dash,) = axes.collections[0].get_segments()
    assert dash[:, 1].tolist() == [2.5, 2.5]
    assert dash[:, 0].mean() == pytest.approx(middles[2])
    assert dash[1, 0] - dash[0, 0] == pytest.approx(axes.patches[0].get_width())
    assert {text.get_text() for text in figure.legends[0].get_texts()} == {
        "rs",
        "rep",
        "published",
    }


def test_panels_are_lettered_and_each_label_is_once_in_the_legend():
    line = {
        "mark": "line",
        "query": "SELECT 'simulated' AS series, size AS x, rate AS y FROM rows",
    }
    figure, _ = drawn([line], panels=[{"title": "one"}, {"title": "two"}])
    assert [axes.get_title(loc="left") or axes.get_title() for axes in figure.axes] == [
        "(a) one",
        "(b) two",
    ]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["simulated"]


def test_bars_on_top_of_each_other_begin_where_the_last_ends():
    heap = {
        "mark": "heap",
        "query": "SELECT scheme AS series, 'all' AS x, rate AS y FROM rows",
    }
    figure, _ = drawn([heap], rows=ROWS.filter(size=1))
    # 10 for the code, then 30 on top of it.
    assert [bar.get_y() for bar in figure.axes[0].patches] == [0, 10]


def test_panels_follow_from_the_rows_and_titles_from_facts():
    line = {
        "mark": "line",
        "query": "SELECT scheme AS panel, size AS x, rate AS y FROM rows",
    }
    figure, _ = drawn([line], panels=[], panel={"title": "{panel}"})
    titles = [axes.get_title(loc="left") or axes.get_title() for axes in figure.axes]
    assert titles == ["(a) rs:6,3", "(b) rep:3"]


def test_a_caption_takes_its_numbers_from_the_rows():
    points = {"mark": "points", "query": "SELECT size AS x, rate AS y FROM rows"}
    facts = ["SELECT MAX(rate) / 7 AS most, COUNT(*) AS points FROM rows"]
    _, caption = drawn(
        [points], facts=facts, caption="{points} points, at most {most}, {most:.1f}."
    )
    # 30 / 7 = 4.2857
    assert caption == "3 points, at most 4.29, 4.3."


def test_without_rows_there_is_no_figure():
    layer = {"mark": "line", "query": "SELECT size AS x, rate AS y FROM rows"}
    table = {"size": [6, 3], "caption": "", "layers": [layer]}
    context = pl.SQLContext({"rows": ROWS.clear()}, eager=True)
    assert draw_figure(figure_spec("one", table), context) is None

"""What studies share: look-ups of claims and rows, and the shapes of their figures."""

import polars as pl
import pytest

from stripesim.scenarios.figures.results import new_figure
from stripesim.scenarios.studies.drawing import grouped_bars, legend_above, panels
from stripesim.scenarios.studies.lookup import (
    claims_of,
    groups_by_metric,
    number,
    published,
    select,
)
from stripesim.scenarios.studies.registry import STUDIES

ROWS = pl.DataFrame(
    {"scheme": ["rs:6,3", "rs:6,3", "rep:3"], "size": [1, 2, 1], "rate": [10, 20, 30]}
)


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
    "name", ["koh2017", "erasurebench2016", "exstorus2019", "ecfault2024"]
)
def test_groups_name_metrics_of_their_study(name):
    from stripesim.scenarios.studies import study_module

    found = study_module(name, "claims").METRIC_GROUPS
    assert set(found) <= {claim.metric for claim in STUDIES[name].claims()}


def test_groups_are_turned_round():
    assert groups_by_metric({"a": ("x", "y"), "b": ["z"]}) == {
        "x": "a",
        "y": "a",
        "z": "b",
    }


def test_bars_stand_in_groups_and_dashes_lie_across_them():
    axes = new_figure((4, 3)).subplots()
    places = grouped_bars(
        axes,
        ["4k", "16k"],
        {"rs": [1.0, None], "rep": [2.0, 3.0]},
        published={"rep": [2.5, None]},
    )
    assert [bar.get_height() for bar in axes.patches] == [1, 2, 3]
    middles = [bar.get_x() + bar.get_width() / 2 for bar in axes.patches]
    assert middles == pytest.approx([places[0][0], *places[1]])
    (dash,) = axes.collections[0].get_segments()
    assert dash[:, 1].tolist() == [2.5, 2.5]
    assert dash[:, 0].mean() == pytest.approx(places[1][0])
    assert dash[1, 0] - dash[0, 0] == pytest.approx(axes.patches[0].get_width())
    assert axes.get_legend_handles_labels()[1] == ["published", "rs", "rep"]


def test_panels_are_lettered_and_each_label_stands_once_in_the_legend():
    figure, places = panels((6, 3), ["one", "two"])
    for axes in places:
        axes.plot([1, 2], [3, 4], label="simulated")
    legend_above(figure, 2)
    assert [axes.get_title(loc="left") or axes.get_title() for axes in places] == [
        "(a) one",
        "(b) two",
    ]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["simulated"]

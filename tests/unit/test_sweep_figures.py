"""The figure of a sweep, and the conditions for drawing it."""

import itertools
from typing import Any

import polars as pl
import pytest

from stripesim.models.problems import AnswerError
from stripesim.scenarios.answers.sweep.figures import draw_sweep
from stripesim.scenarios.answers.sweep.stats import (
    aggregate,
    mean_columns,
    why_no_figure,
)
from stripesim.scenarios.answers.sweep.table import means_table
from stripesim.scenarios.show.quantities import typed_frame

DEPTH = "workload.queue_depth"


def means(**columns: list[Any]) -> pl.DataFrame:
    """Return means of two replications for every combination of values, with increasing throughput."""
    names = list(columns)
    rows = []
    for number, values in enumerate(itertools.product(*columns.values())):
        for replication in (0, 1):
            rows.append(
                {
                    "scheme": "rep:3",
                    "op": "write",
                    "pattern": "rand",
                    "block_size_bytes": 4096,
                    "steady": True,
                    **dict(zip(names, values, strict=True)),
                    "replication": replication,
                    "throughput_bytes_per_s": 1e6 * (10 + number + replication),
                }
            )
    keys = [name for name in names if "." in name]
    return typed_frame(aggregate(rows, keys), mean_columns(rows, keys))


def test_lines_hold_the_means_at_the_swept_values() -> None:
    figures = draw_sweep(
        means(**{"scheme": ["rep:3", "rs:6,3"], DEPTH: [4, 8, 16]}), [DEPTH]
    )
    assert figures is not None
    (axes,) = figures.figure.axes
    assert [line.get_label() for line in axes.lines] == ["3-replication", "RS(6,3)"]
    drawn = [
        [float(value) for value in line.get_xydata().ravel()] for line in axes.lines
    ]  # type: ignore[union-attr]
    assert drawn == [[4, 10.5, 8, 11.5, 16, 12.5], [4, 13.5, 8, 14.5, 16, 15.5]]
    assert axes.get_xlabel() == "queue depth"
    assert "2 replications" in figures.caption


def test_flat_curves_leave_room_for_their_marks() -> None:
    rows = means(**{DEPTH: [4, 8]}).with_columns(throughput_bytes_per_s=1e7)
    figures = draw_sweep(rows, [DEPTH])
    assert figures is not None
    (axes,) = figures.figure.axes
    low, high = axes.get_ylim()
    assert low == 0
    assert high >= 10 * 1.05


def test_panels_of_a_quantity_have_one_kind_of_scale() -> None:
    # Only writes, with 1 to 100, need a logarithmic axis.
    rows = means(**{"op": ["write", "read"], DEPTH: [4, 8]}).with_columns(
        throughput_bytes_per_s=pl.Series([1e6, 1e8, 4e6, 5e6])
    )
    figures = draw_sweep(rows, [DEPTH])
    assert figures is not None
    assert [axes.get_yscale() for axes in figures.figure.axes] == ["log", "log"]
    for axes in figures.figure.axes:
        low, high = axes.get_ylim()
        assert all(low < value < high for value in axes.lines[0].get_ydata())  # type: ignore[union-attr]


def test_titles_and_caption_state_the_only_block_size() -> None:
    figures = draw_sweep(means(**{DEPTH: [4, 8]}), [DEPTH])
    assert figures is not None
    (axes,) = figures.figure.axes
    assert axes.get_title(loc="left") == "Random writes, 4 KiB"
    assert "block size 4 KiB" in figures.caption


def test_a_key_that_was_not_swept_is_refused() -> None:
    rows = means(**{DEPTH: [4, 8]})
    with pytest.raises(AnswerError, match=r"^keys: got cluster\.hosts, wanted swept"):
        draw_sweep(rows, [DEPTH, "cluster.hosts"])


@pytest.mark.parametrize(
    ("keys", "columns", "reason"),
    [
        ([], {}, "no key is swept (--over KEY=V,V)"),
        ([DEPTH], {DEPTH: [4]}, f"1 value of {DEPTH}, wanted 2 or more"),
        (["workload.ops", DEPTH], {"workload.ops": ["read"], DEPTH: [4, 8]}, "axis"),
        ([DEPTH], {DEPTH: [4, 8]}, None),
    ],
)
def test_means_without_a_figure_have_a_reason(
    keys: list[str], columns: dict[str, list[Any]], reason: str | None
) -> None:
    rows = means(**columns)
    found = why_no_figure(rows, keys, "throughput_bytes_per_s")
    assert (found is None) == (draw_sweep(rows, keys) is not None)
    if reason is None:
        assert found is None
    else:
        assert found is not None and reason in found


def test_a_sweep_of_one_point_says_that_it_has_no_figure(command, tmp_path) -> None:
    given = ("sweep", "quickstart", "--jobs", 1, "--set", "workload.requests=200")
    _, _, single = command(*given, "--out", tmp_path / "one")
    assert "no figure: no key is swept" in single
    assert not (tmp_path / "one" / "sweep.png").exists()
    swept = ("--over", "workload.queue_depth=4,8")
    _, _, several = command(*given, *swept, "--out", tmp_path / "two")
    assert "no figure" not in several
    assert (tmp_path / "two" / "sweep.png").exists()


def test_a_sweep_of_objects_names_their_size_and_their_gateways(command, tmp_path):
    given = ("sweep", "s3", "--set", "workload.requests=100", "--jobs", 1)
    gateways = ("--over", "cluster.gateways.count=4,8", "--set", 'workload.ops=["put"]')
    _, out, _ = command(*given, *gateways, "--out", tmp_path, "--report")
    assert "object" in out
    assert not {"block", "pattern"} & set(out.split())
    assert '"name": "gateways"' in (tmp_path / "report.html").read_text()


def test_truths_are_written_as_in_scenarios() -> None:
    key = "workload.tls"
    rows = means(**{key: [True, False]})

    table = means_table(rows.to_dicts(), [key], of_objects=False)
    figure = draw_sweep(rows, [key])

    assert [row[0] for row in table.rows] == ["true", "false"]
    assert figure is not None
    (axes,) = figure.figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["true", "false"]


def test_a_table_of_objects_has_rates_because_a_head_has_no_bytes() -> None:
    key = "cluster.gateways.count"
    columns = {"op": ["head"], key: [2, 4]}
    rows = means(**columns).with_columns(iops=3e4, throughput_bytes_per_s=0.0)

    table = means_table(rows.to_dicts(), [key], of_objects=True)

    rate = list(table.columns).index("rate [1/s]")
    assert [row[rate] for row in table.rows] == ["30,000", "30,000"]


def test_each_op_and_pattern_has_a_panel() -> None:
    figures = draw_sweep(
        means(op=["read", "write"], pattern=["seq", "rand"], **{DEPTH: [4, 8]}), [DEPTH]
    )
    assert figures is not None
    titles = {axes.get_title(loc="left") for axes in figures.figure.axes}
    assert titles == {
        "Random writes, 4 KiB",
        "Sequential writes, 4 KiB",
        "Random reads, 4 KiB",
        "Sequential reads, 4 KiB",
    }


def test_several_workloads_share_a_panel() -> None:
    # Their rows have no pattern and no block size in common.
    rows = means(op=["mixed"], pattern=["mixed"], **{DEPTH: [4, 8]})
    figures = draw_sweep(rows.with_columns(block_size_bytes=None), [DEPTH])
    assert figures is not None
    (axes,) = figures.figure.axes
    assert axes.get_title(loc="left") + axes.get_title() == "All workloads"


def test_colours_are_schemes_and_styles_are_other_values() -> None:
    hosts = [4, 5, 6]
    figures = draw_sweep(
        means(scheme=["rep:3", "rs:6,3"], **{DEPTH: [4, 8], "cluster.hosts": hosts}),
        [DEPTH, "cluster.hosts"],
    )
    assert figures is not None
    lines = figures.figure.axes[0].lines
    drawn = [line for line in lines if len(line.get_xdata())]
    looks = [(line.get_color(), line.get_linestyle()) for line in drawn]
    assert len(set(looks)) == 2 * len(hosts)
    assert len({colour for colour, _ in looks}) == 2
    assert len({style for _, style in looks}) == len(hosts)
    # Each scheme and each style has one legend entry, not each of their pairs.
    labels = {line.get_label() for line in lines if line.get_label()[0] != "_"}
    assert labels == {"3-replication", "RS(6,3)", "hosts 4", "hosts 5", "hosts 6"}


def test_more_values_than_styles_draw_only_the_first() -> None:
    hosts = list(range(4, 14))
    figures = draw_sweep(
        means(**{DEPTH: [4, 8], "cluster.hosts": hosts}), [DEPTH, "cluster.hosts"]
    )
    assert figures is not None
    assert len(figures.figure.axes[0].lines) == 1
    assert "hosts 5" in figures.caption
    assert "hosts 13" in figures.caption


def test_swept_block_sizes_are_the_axis_not_lines() -> None:
    key = "workload.block_sizes_bytes"
    rows = means(**{key: [4096, 65536]}).with_columns(block_size_bytes=pl.col(key))
    figures = draw_sweep(rows, [key])
    assert figures is not None
    assert len(figures.figure.axes[0].lines) == 1


def test_values_that_are_no_numbers_have_their_names_on_the_axis() -> None:
    images = {"workload.image": ["pristine", "prefilled"]}
    figure = draw_sweep(means(**images), ["workload.image"])
    assert figure is not None
    [axes] = figure.figure.axes
    names = [label.get_text() for label in axes.get_xticklabels()]
    assert names == ["pristine", "prefilled"]


def test_a_figure_shows_another_quantity_and_refuses_an_unknown_one() -> None:
    frame = means(**{"workload.queue_depth": [1, 2]})
    frame = frame.with_columns(iops=pl.Series([10.0, 20.0]))
    figure = draw_sweep(frame, ["workload.queue_depth"], metric="iops")
    assert figure is not None
    assert figure.figure.axes[0].get_ylabel() == "rate [IOPS]"
    of_objects = draw_sweep(
        frame.with_columns(op=pl.lit("put")), ["workload.queue_depth"], metric="iops"
    )
    assert of_objects is not None
    assert of_objects.figure.axes[0].get_ylabel() == "rate [requests/s]"
    mixed = draw_sweep(frame, ["workload.queue_depth"], metric="iops", of_objects=True)
    assert mixed is not None
    assert mixed.figure.axes[0].get_ylabel() == "rate [requests/s]"
    assert figure.figure.axes[0].lines[0].get_ydata().tolist() == [10, 20]
    with pytest.raises(AnswerError, match=r'^metric: got "beans", wanted one of iops'):
        draw_sweep(frame, ["workload.queue_depth"], metric="beans")


def test_a_figure_needs_a_key_with_several_values_beside_the_schemes() -> None:
    assert draw_sweep(means(), []) is None
    assert draw_sweep(means(schemes=["rep:3", "rs:4,2"]), ["schemes"]) is None
    assert draw_sweep(means(**{DEPTH: [4]}), [DEPTH]) is None
    empty = means(**{DEPTH: [4, 8]}).with_columns(
        throughput_bytes_per_s=pl.lit(None, pl.Float64)
    )
    assert draw_sweep(empty, [DEPTH]) is None


def test_the_caption_counts_cells_without_a_steady_state() -> None:
    rows = means(**{DEPTH: [4, 8]}).with_columns(steady=pl.col(DEPTH) == 4)
    figures = draw_sweep(rows, [DEPTH])
    assert figures is not None
    assert "1 of 2 cells" in figures.caption

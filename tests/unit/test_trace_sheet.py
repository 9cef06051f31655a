"""Reuse distances against a plain count, depth by hand, the figure sheet, conversion to columns."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stripesim.models.problems import TraceError
from stripesim.scenarios.show.figures.screen import screen_files
from stripesim.scenarios.show.figures.trace_sheet import caption, draw_trace
from stripesim.traces import (
    REQUEST_SCHEMA,
    BlockTrace,
    convert,
    info,
    load,
    read_failures,
    read_trace,
)
from stripesim.traces.locality import first_touch, reuse, stack_distances
from stripesim.traces.statistics import depth_levels, dispersion

FTA = (
    "0 0 1 5 n1 0 100 160 NULL\n1 0 1 5 n1 1 160 900 4022\n2 0 1 5 n1 0 900 1000 NULL\n"
)


def requests(
    rows: list[tuple[int, int | None, int | None, str, int, int, bool]],
) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=REQUEST_SCHEMA, orient="row")


def slow_distances(names: list[int]) -> list[int]:
    stack: list[int] = []
    found = []
    for name in names:
        found.append(stack[::-1].index(name) if name in stack else -1)
        if name in stack:
            stack.remove(name)
        stack.append(name)
    return found


def test_stack_distances_equal_those_of_a_plain_stack() -> None:
    names = np.random.default_rng(1).integers(0, 40, 500)
    assert stack_distances(names, 40).tolist() == slow_distances(names.tolist())


def test_reuse_looks_at_blocks_not_at_requests() -> None:
    # 8 KiB at 0 touch blocks 0 and 1. 4 KiB at 4096 is block 1 again, with no block between.
    frame = requests(
        [
            (0, None, None, "a", 0, 8192, False),
            (1, None, None, "a", 4096, 4096, True),
            (2, None, None, "b", 0, 512, True),
        ]
    )
    found = reuse(frame)
    assert found.distances.tolist() == [-1, -1, 0, -1]
    assert found.blocks == 3
    assert found.hit_ratio([0, 1]).tolist() == [0, 0.25]
    assert first_touch(frame).tolist() == [True, False, True]


def test_depth_by_hand() -> None:
    second = 10**9
    frame = requests(
        [
            (0, None, 3 * second, "a", 0, 512, False),
            (second, None, 2 * second, "a", 0, 512, False),
        ]
    )
    assert depth_levels(frame).tolist() == [0, 2, 1]


def test_dispersion_of_even_and_of_grouped_arrivals() -> None:
    assert dispersion(np.arange(1000) * 10, 100) == 0
    # Ten requests in every tenth window: mean 1, variance 9.
    grouped = np.repeat(np.arange(101) * 100, 10)
    assert dispersion(grouped, 10) == pytest.approx(9)


def trace_of(count: int = 500) -> BlockTrace:
    rng = np.random.default_rng(4)
    issue = np.cumsum(rng.integers(1, 10**6, count))
    done = issue + rng.integers(1, 10**6, count)
    rows = [
        (int(i - issue[0]), None, int(d - issue[0]), "0", int(o) * 4096, 4096, bool(w))
        for i, d, o, w in zip(
            issue,
            done,
            rng.integers(0, 99, count),
            rng.random(count) < 0.5,
            strict=True,
        )
    ]
    return BlockTrace(requests(rows), None, "made", "made.csv")


@pytest.mark.parametrize("count", [1, 500])
def test_the_sheet_is_drawn_reproducibly_for_any_length(count: int) -> None:
    trace = trace_of(count)
    pictures = screen_files("sheet", draw_trace(trace).figure)
    assert len(pictures["sheet.png"]) > 10_000
    if count == 1:
        again = screen_files("sheet", draw_trace(trace).figure)
        assert again == pictures
    assert f"{count:,} request" in caption(info(trace))


def test_a_legend_names_only_what_the_trace_has() -> None:
    # Two reads of different blocks
    rows = [(0, None, 10, "0", 0, 4096, False), (5, None, 20, "0", 8192, 4096, False)]
    figure = draw_trace(BlockTrace(requests(rows), None, "made", "made.csv")).figure
    legends = [axes.get_legend() for axes in figure.axes]
    words = [text.get_text() for one in legends if one for text in one.get_texts()]
    assert "reads" in words
    assert not any("writes" in label for label in words)
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert "no block is accessed twice" in texts


def test_a_sheet_is_written_for_the_column_of_a_paper(
    tmp_path: Path, command: Callable[..., tuple[int, str, str]]
) -> None:
    convert(trace_of(), tmp_path / "t.csv")
    width = ["--width", "3.5in"]
    status, _, _ = command(
        "trace", "info", tmp_path / "t.csv", "--out", tmp_path, *width
    )
    assert status == 0
    assert 'width="252pt"' in (tmp_path / "trace-info.svg").read_text("utf-8")
    assert (tmp_path / "trace-info.tex").exists()


def test_columns_written_are_the_columns_read(tmp_path: Path) -> None:
    trace = trace_of()
    for suffix, reader in ((".parquet", pl.read_parquet), (".csv", pl.read_csv)):
        (path,) = convert(trace, tmp_path / f"t{suffix}")
        again = reader(path).cast(REQUEST_SCHEMA)  # type: ignore[arg-type]
        assert again.equals(trace.requests)
    (text,) = convert(trace, tmp_path / "t.txt")
    columns = ["issue_ns", "complete_ns", "offset_bytes", "length_bytes", "is_write"]
    assert (
        read_trace(text, strict=True)
        .requests.select(columns)
        .equals(trace.requests.select(columns))
    )


def test_failures_are_written_as_events_and_spans(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(FTA)
    trace = read_failures(tmp_path / "f", strict=True)
    events, spans = convert(trace, tmp_path / "f.parquet")
    assert pl.read_parquet(events).equals(trace.events)
    assert spans.name == "f.spans.parquet"
    with pytest.raises(TraceError, match="got a failure trace"):
        convert(trace, tmp_path / "f.txt")
    with pytest.raises(TraceError, match=r"got suffix '\.xls'"):
        convert(trace, tmp_path / "f.xls")
    with pytest.raises(TraceError, match="wanted"):
        convert(trace, tmp_path / "no" / "f.csv")
    assert load(tmp_path / "f").format == "fta"

"""A timeline drawn and written: rows, bars, cuts, tables, and the command that prints them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from stripesim.scenarios.answers.explain import layout
from stripesim.scenarios.answers.explain.draw import draw_timelines
from stripesim.scenarios.answers.explain.layout import TimeAxis
from stripesim.scenarios.answers.explain.play import play_page
from stripesim.scenarios.answers.explain.request import explain
from stripesim.scenarios.answers.explain.text import (
    BYTE_WORDS,
    CATEGORIES,
    byte_words,
    drawing,
    heading,
    latency_words,
    table_rows,
)
from stripesim.scenarios.answers.explain.timeline import Timeline
from stripesim.scenarios.show.figures.saving import save_figures
from support.koh_cluster import KOH_CLUSTER


@pytest.fixture(scope="module")
def writes() -> list[Timeline]:
    return explain("write", ["rep:3", "rs:4,2"], 4096, sets=KOH_CLUSTER)


stretches = st.lists(
    st.tuples(st.integers(0, 10**6), st.integers(0, 10**5)).map(
        lambda pair: (pair[0], sum(pair))
    ),
    min_size=1,
)


@given(busy=stretches, times=st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)))
def test_an_axis_keeps_the_order_of_times_and_shows_busy_periods(
    busy: list[tuple[int, int]], times: tuple[int, int]
) -> None:
    end_ns = max(1, *(high for _, high in busy))
    axis = TimeAxis.around(busy, end_ns)
    early, late = sorted(min(time, end_ns) for time in times)
    assert axis.place(early) <= axis.place(late) + 1e-9
    assert axis.place(0) == pytest.approx(0)
    for low, high in axis.cuts:
        assert low < high
        assert not any(start < high and stop > low for start, stop in busy)
    for low, high in busy:
        # Outside cuts the axis is to scale.
        assert axis.place(high) - axis.place(low) == pytest.approx(
            (high - low) / 1e3, abs=1e-6
        )


@pytest.mark.parametrize(
    ("op", "state", "wanted"),
    [
        ("write", "healthy", "encode"),
        ("repair", "healthy", "decode"),
        ("read", "degraded", "decode"),
    ],
)
def test_a_bar_says_whether_it_encodes_or_decodes(
    op: str, state: str, wanted: str
) -> None:
    (timeline,) = explain(op, ["rs:4,2"], 65536, state=state)
    bars = [bar for entry in timeline.steps for bar in layout.bars_of(entry)]
    assert {bar.label for bar in bars if bar.category == "coding"} == {wanted}


def test_no_tick_is_inside_an_axis_cut() -> None:
    axis = TimeAxis.around([(0, 500_000), (3_000_000, 4_000_000)], 4_000_000)
    assert axis.cuts
    ticks = axis.ticks_us()
    assert 4 <= len(ticks) <= 14
    assert not [t for t in ticks for low, high in axis.cuts if low < t * 1000 < high]


def test_the_figure_has_a_panel_for_each_scheme_on_one_axis(
    writes: list[Timeline],
) -> None:
    figure, caption = draw_timelines(writes)
    above, below = figure.axes
    assert above.get_xlim() == below.get_xlim()
    assert [text.get_text() for text in above.get_yticklabels()][:3] == [
        "client",
        "primary",
        "locks",
    ]
    assert len(below.get_yticklabels()) == 3 + 6
    assert any("reply at" in text.get_text() for text in above.texts)
    assert "3-replication" in caption
    assert "RS(4,2)" in caption
    # The row of each of the three copies (below client, primary and locks) shows all the time of its SSD.
    drawn_us, served_us = [0.0] * 3, [0.0] * 3
    for bar in above.patches:
        if (
            isinstance(bar, Rectangle)
            and to_hex(bar.get_facecolor()).upper() == "#D55E00"
        ):
            drawn_us[round(bar.get_y() + bar.get_height() / 2) - 3] += bar.get_width()
    for entry in writes[0].steps:
        if entry.category == "ssd":
            served_us[entry.branch] += entry.step.duration_ns / 1e3
    assert min(served_us) > 0
    assert drawn_us == pytest.approx(served_us)


def test_the_column_of_a_paper_has_its_own_drawing(
    writes: list[Timeline], tmp_path: Path
) -> None:
    drawn = draw_timelines(writes)
    written = save_figures({"write": drawn}, tmp_path, width_inch=3.5)
    assert [path.name for path in written][:2] == ["write.pdf", "write.svg"]
    narrow = drawn.at_width(3.5)
    assert narrow.get_figwidth() == 3.5
    narrow.draw_without_rendering()
    renderer = narrow.canvas.get_renderer()  # type: ignore[attr-defined]
    page = narrow.bbox
    for axes in narrow.axes:
        # Lanes need more than half of the width, and no text may leave the page.
        assert axes.get_window_extent(renderer).width > 0.5 * page.width
        for text in (*axes.texts, axes.title, *axes.get_yticklabels()):
            extent = text.get_window_extent(renderer)
            assert extent.x0 >= page.x0 - 1
            assert extent.x1 <= page.x1 + 1
    sizes = {text.get_fontsize() for text in narrow.findobj(Text) if text.get_text()}
    assert min(sizes) >= 6.5
    assert max(sizes) <= 9


def test_shards_without_work_share_a_row() -> None:
    figure, _ = draw_timelines(explain("read", ["rs:4,2"], 4096))
    names = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert "shards 4–5 (not asked)" in names
    figure, _ = draw_timelines(explain("read", ["rs:4,2"], 4096, state="degraded"))
    names = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert any("1 is down" in name for name in names)


def test_the_terminal_drawing_shows_each_lane_over_time(writes: list[Timeline]) -> None:
    copies, coded = writes
    lines = drawing(copies, columns=100)
    assert [line.split()[0] for line in lines[:4]] == [
        "client",
        "primary",
        "PG",
        "shard",
    ]
    assert all(len(line) <= 100 for line in lines[:-1])
    client = lines[0].split("client", 1)[1]
    assert CATEGORIES["client"].glyph in client
    assert CATEGORIES["ssd"].glyph not in client
    assert all(
        CATEGORIES["ssd"].glyph in line for line in lines if line.startswith("shard")
    )
    shared = drawing(copies, columns=100, end_ns=coded.end_ns)
    assert len(shared[3].rstrip()) < len(lines[3].rstrip())


def test_the_table_counts_every_byte_once(writes: list[Timeline]) -> None:
    for timeline in writes:
        rows = table_rows(timeline)
        assert [row.start_ns for row in rows] == sorted(row.start_ns for row in rows)
        for counter, amount in timeline.totals().items():
            assert sum(row.counted.get(counter, 0) for row in rows) == amount
        assert any(row.what == "PG lock" for row in rows)
    assert any(row.after_reply for row in table_rows(writes[1]))


def test_words(writes: list[Timeline]) -> None:
    copies = writes[0]
    assert heading(copies) == "3-replication: 4 KiB write, kraken"
    assert latency_words(copies).startswith(f"{copies.latency_ns / 1e3:,.1f} µs: ")
    assert byte_words({"device_read_bytes": 24576, "messages": 3}) == "24 KiB read"


@pytest.mark.parametrize(("scenario", "lanes"), [("koh2017", 1), ("quickstart", 0)])
def test_the_legend_names_a_lock_where_one_is_drawn(
    command: Callable[..., tuple[int, str, str]], scenario: str, lanes: int
) -> None:
    arguments = ("--scheme", "rs:4,2", "--scenario", scenario, "--no-steps")
    status, out, _ = command("explain", "write", *arguments)
    assert status == 0
    drawn = [line for line in out.splitlines() if line.startswith("PG lock")]
    assert (len(drawn), out.count("L PG lock held")) == (lanes, lanes)


def test_the_command_prints_drawing_table_and_sources(
    command: Callable[..., tuple[int, str, str]],
) -> None:
    schemes = ("--scheme", "rep:3", "--scheme", "rs:4,2")
    status, out, _ = command("explain", "write", *schemes, "--size", "4k")
    assert status == 0
    for words in (
        "RS(4,2): 4 KiB write",
        "encode and send",
        "cpu.sub_op_send_ns",
        "reply at",
        "assumed",
    ):
        assert words in out


def test_the_command_writes_json_and_files(
    command: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    arguments = (
        "explain",
        "repair",
        "--scheme",
        "rs:4,2",
        "--size",
        "1MiB",
        "--json",
        "-",
        "--out",
        str(tmp_path),
    )
    status, out, _ = command(*arguments)
    assert status == 0
    (request,) = json.loads(out)["requests"]
    assert request["op"] == "repair"
    assert request["totals"]["device_read_bytes"] == 1 << 20
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        "explain-repair.json",
        "explain-repair.svg",
        "explain-repair.png",
        "captions.md",
    }
    first = (tmp_path / "explain-repair.svg").read_bytes()
    assert command(*arguments)[0] == 0
    assert (tmp_path / "explain-repair.svg").read_bytes() == first


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("write", "--size", "much"), "--size: got 'much'"),
        (("write", "--offset", "-4"), "--offset"),
        (("erase",), "erase"),
        (("write", "--scheme", "rs:0,2"), "wanted"),
    ],
)
def test_bad_arguments_end_with_status_2(
    arguments: tuple[str, ...],
    said: str,
    command: Callable[..., tuple[int, str, str]],
) -> None:
    status, out, err = command("explain", *arguments)
    assert (status, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


def test_importing_the_package_imports_no_heavy_module() -> None:
    heavy = ["numpy", "polars", "matplotlib", "pydantic", "numba", "scipy", "simpy"]
    text = f"import sys, stripesim; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


class _Page(HTMLParser):
    """Parser that collects the steps and addresses of a page and checks that its tags match."""

    def __init__(self):
        super().__init__()
        self.open, self.steps, self.addresses, self.scripts = [], [], [], []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.addresses += [
            attrs[name] for name in ("src", "href", "action") if name in attrs
        ]
        if tag == "li" and "data-time" in attrs:
            self.steps.append([float(attrs["data-time"]), ""])
        if tag not in ("meta", "input", "link", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "li" in self.open and self.steps:
            self.steps[-1][1] += data
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)


def test_the_page_that_plays_a_request_holds_its_steps_and_loads_nothing():
    timelines = explain("write", ["rep:3", "rs:4,2"], 4096)
    page = _Page()
    page.feed(play_page(timelines))
    page.close()
    assert page.open == []
    assert page.addresses == []
    for timeline in timelines:
        for row in table_rows(timeline):
            assert any(
                row.what in text and row.lane in text for _, text in page.steps
            ), row.what
    assert [time for time, _ in page.steps] == sorted(time for time, _ in page.steps)
    # The counts at the end equal those of the timeline.
    counted = json.loads(page.scripts[0])["counted"]
    for timeline, events in zip(timelines, counted, strict=True):
        sums = [
            sum(amount for _, index, amount in events if index == n)
            for n in range(len(BYTE_WORDS))
        ]
        assert sums == [timeline.totals().get(name, 0) for name, _ in BYTE_WORDS]
        assert timeline.totals()["private_net_bytes"] > 0


def test_a_page_plays_a_request_for_an_object_at_its_gateway():
    (timeline,) = explain("put", "rep:3", 8 << 20, with_parameters=False)
    lanes = re.findall(r'data-lane="([^"]+)"', play_page([timeline]))
    assert list(dict.fromkeys(lanes)) == [
        "client",
        "gateway",
        "bucket index",
        "tail 1",
        "head",
    ]


def test_a_page_marks_the_time_of_the_reply():
    (timeline,) = explain("write", "rs:4,2", 4096)
    page = _Page()
    page.feed(play_page([timeline]))
    (reply,) = [time for time, text in page.steps if "the client has its reply" in text]
    assert reply == timeline.latency_ns / 1e3
    assert any("after the reply" in text for time, text in page.steps if time > reply)

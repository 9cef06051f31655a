"""A report is self-contained and complete, and it escapes user text."""

import base64
import hashlib
import itertools
import re
from html.parser import HTMLParser

import pytest

from stripesim.scenarios.answers.explain.play import play_page
from stripesim.scenarios.answers.explain.request import explain
from stripesim.scenarios.answers.run.execute import run_scenario
from stripesim.scenarios.answers.run.report.contents import gather
from stripesim.scenarios.answers.run.report.page import page_of_run
from stripesim.scenarios.schema.scenario import (
    load_scenario,
    overridden,
    parse_scenario,
)
from stripesim.scenarios.show.figures.renderer import (
    CaptionedFigure,
    new_figure,
    styled,
)
from stripesim.scenarios.show.figures.screen import svg_of
from stripesim.scenarios.show.page.render import (
    dark_greys,
    figure_blocks,
    inline_svg,
    render,
)
from stripesim.scenarios.show.tables import Table, TableCell

TEXT = """
name = "plan"
description = 'Is <script>alert("x")</script> & co. safe?'
schemes = ["rep:3", "rs:4,2"]
[cluster]
hosts = 4
osds_per_host = 2
pg_num = 32
failure_domain_erasure = "osd"
[workload]
ops = ["write", "read"]
patterns = ["rand"]
block_sizes_bytes = ["4k", "64k"]
queue_depth = 8
requests = 600
image_bytes = "64MiB"
"""

# Elements that have no end tag, and attributes that make a browser fetch or go somewhere.
VOID = {"meta", "link", "br", "hr", "img", "input", "source", "base"}
LEADS = {
    "src",
    "href",
    "srcset",
    "data",
    "action",
    "poster",
    "background",
    "xlink:href",
    "formaction",
}


class Page(HTMLParser):
    """Parser that collects elements, names and links of a page and checks that every element is closed."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.names, self.leads, self.open, self.text = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == [], self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        for name, value in attrs:
            if name == "id":
                self.names.append(value)
            if name in LEADS:
                self.leads.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def count(self, tag):
        return sum(name == tag for name, _ in self.elements)


pytestmark = pytest.mark.usefixtures("quick_rebuilds")


@pytest.fixture(scope="module")
def scenario():
    return parse_scenario(TEXT)


def report_of_run(scenario, result):
    return page_of_run(gather(scenario, result))


@pytest.fixture(scope="module")
def result(scenario):
    return run_scenario(scenario, costs=True)


@pytest.fixture(scope="module")
def text(scenario, result, quick_rebuilds):
    return report_of_run(scenario, result)


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def figure(colour="#444444"):
    with styled():
        drawn = new_figure((4, 3))
        axes = drawn.subplots()
        axes.plot([0, 1], [0, 1], color=colour)
        axes.set_title("a title")
    return CaptionedFigure(drawn, 'A "caption" <b>')


def test_the_page_has_no_external_links(text, page):
    assert page.leads
    assert all(lead.startswith("#") for lead in page.leads)
    for word in (
        "http:",
        "https:",
        "//",
        "@import",
        "<script",
        "<iframe",
        "<img",
        "<link",
    ):
        found = [
            text[max(0, m.start() - 30) : m.end() + 30]
            for m in re.finditer(re.escape(word), text)
        ]
        assert not found, found[:3]
    # A figure may refer to a part of itself.
    assert not re.search(r"url\((?!#)", text)


def policy_of(page):
    """Return the content security policy of a page: directive → sources."""
    (policy,) = (
        attributes["content"]
        for tag, attributes in page.elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    return {
        name: sources for name, *sources in (part.split() for part in policy.split(";"))
    }


def test_the_policy_of_a_page_forbids_loading_and_scripts(page):
    policy = policy_of(page)
    assert policy["default-src"] == ["'none'"]
    assert "script-src" not in policy


def test_the_policy_of_a_page_with_a_script_names_that_script_alone():
    text = play_page(explain("write", ["rep:3"], 4096))
    policy = policy_of(Page(text))
    script = text[text.index("<script>") + len("<script>") : text.rindex("</script>")]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy["script-src"] == [f"'sha256-{digest}'"]


def test_names_are_unique_and_every_link_has_its_place(page):
    assert len(page.names) == len(set(page.names))
    assert {lead[1:] for lead in page.leads} <= set(page.names)


def test_user_text_is_shown_verbatim(text, page):
    assert "<script>alert" not in text
    assert 'Is <script>alert("x")</script> & co. safe?' in "".join(page.text)


def test_headings_do_not_skip_a_level(page):
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_tables_have_captions_and_scoped_headers(page):
    assert page.count("caption") == page.count("table") > 5
    assert all(
        "scope" in attributes for tag, attributes in page.elements if tag == "th"
    )
    regions = [
        attributes
        for _, attributes in page.elements
        if attributes.get("role") == "region"
    ]
    assert len(regions) >= page.count("table")
    assert all(
        attributes["aria-label"] and attributes["tabindex"] == "0"
        for attributes in regions
    )


def test_every_figure_has_a_text_alternative(page):
    drawn = [
        attributes
        for tag, attributes in page.elements
        if attributes.get("role") == "img"
    ]
    assert len(drawn) == page.count("figure") == page.count("figcaption") == 12
    assert all(
        attributes["role"] == "img" and len(attributes["aria-label"]) > 40
        for attributes in drawn
    )


def test_the_page_names_the_quantities_of_a_plan(page):
    said = " ".join("".join(page.text).split())
    for term in (
        *(
            "usable capacity",
            "throughput [MB/s]",
            "latency, median [ms]",
            "99th percentile",
            "CPU time",
        ),
        *(
            "private network [B/B]",
            "written to drives",
            "drive writes per day",
            "rebuild of one OSD",
        ),
        *(
            "bottleneck",
            "Where the time goes",
            "full ratio",
            "extrapolates",
            "Outside the calibrated range",
            "provenance",
        ),
    ):
        assert term in said, term


def test_a_warning_is_not_said_to_be_outside_the_calibrated_range() -> None:
    # Given a cluster like a calibrated one, without a spare host.
    scenario = parse_scenario(
        'schemes = ["rep:3"]',
        sets=[
            "cluster.hosts=3",
            "workload.requests=200",
            'workload.ops=["read"]',
            "workload.image_bytes=1GiB",
        ],
    )
    result = run_scenario(scenario)
    (warning,) = (line for line in result.warnings if "no spare host" in line)
    page = report_of_run(scenario, result)

    start = page.index("⚠ Warnings</h2>")
    assert start < page.index("no spare host", start) < page.index("</section>", start)
    beyond = page[: page.index("⚠ Warnings</h2>")]
    assert warning not in beyond
    assert ("Outside the calibrated range" in beyond) == bool(result.outside)


def test_numbers_on_the_page_are_those_of_the_rows(result, page):
    from stripesim.scenarios.schema.units import number_text

    said = "".join(page.text)
    for row in result.rows.to_dicts():
        assert number_text(row["throughput_bytes_per_s"] / 1e6) in said
        assert number_text(row["latency_p99_ns"] / 1e6) in said
    for parameter in result.parameters:
        assert parameter["name"] in said
        assert parameter["source"] in said
    for line in result.warnings:
        assert line in said


def test_a_scenario_without_a_name_has_the_title_of_its_file(tmp_path):
    path = tmp_path / "three-hosts.toml"
    nameless = TEXT.replace('name = "plan"\n', "")
    path.write_text(nameless)
    of_file = load_scenario(path)
    assert of_file.title == "three-hosts"
    assert overridden(of_file, {"cluster.hosts": 3}).title == "three-hosts"
    # Results depend on the keys alone, not on the name of the file.
    assert of_file.name == parse_scenario(nameless).title == "scenario"
    path.write_text(TEXT)
    assert load_scenario(path).title == "plan"
    page = report_of_run(of_file, run_scenario(of_file))
    assert re.findall(r"<h1>(.*?)</h1>", page) == ["three-hosts"]


def test_a_page_names_the_keys_that_differ_from_what_its_description_says():
    written = re.sub(r"description = .*", 'description = "Three copies"', TEXT)
    described = parse_scenario(written)
    sets = ["schemes=rep:2", "seed=3"]
    changed = overridden(described, sets)
    assert changed.introduction == "Three copies (changed: schemes)"
    assert changed.introduction in report_of_run(changed, run_scenario(changed))
    # Nothing is added to a description as written, or to one that was changed with the keys.
    assert described.introduction == "Three copies"
    renamed = overridden(described, [*sets, "description=Two copies"])
    assert renamed.introduction == "Two copies"


def test_the_page_states_that_a_run_is_inside_the_calibrated_range():
    sets = [
        "workload.requests=4000",
        'schemes=["rep:3"]',
        'workload.block_sizes_bytes=["4k"]',
    ]
    scenario = load_scenario("koh2017", sets=[*sets, 'workload.patterns=["rand"]'])
    result = run_scenario(scenario)
    said = "".join(Page(report_of_run(scenario, result)).text)
    assert result.warnings == []
    assert "nside the calibrated range" in said
    assert "utside the calibrated range" not in said


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("", "128 cores per host, networks of 100 (public) and 100 Gbit/s (private)."),
        (
            "networks = 1\npublic_gbit_per_s = 25\ncores_per_host = 16",
            "16 cores per host, one network of 25 Gbit/s.",
        ),
        (
            "hosts = [{count = 3, osds = 2, cores = 16}, {count = 1, osds = 4, cores = 48}]",
            "4 hosts with 10 OSDs, 1 drive of 3.84 TB per OSD, 16 or 48 cores per host",
        ),
    ],
)
def test_the_cluster_is_described_as_the_scenario_states_it(keys, words):
    text = TEXT.replace('"rep:3", "rs:4,2"', '"rep:3"').replace('"64k"', '"4k"')
    text = text.replace('"4k", "4k"', '"4k"').replace(
        "requests = 600", "requests = 100"
    )
    if keys.startswith("hosts"):
        text = text.replace("hosts = 4\nosds_per_host = 2", keys)
    else:
        text = text.replace("pg_num", f"{keys}\npg_num")
    scenario = parse_scenario(text)
    page = Page(report_of_run(scenario, run_scenario(scenario, costs=False)))
    assert words in "".join(page.text)


def test_a_scenario_without_sizes_or_known_drives_has_a_page_too(tmp_path):
    rows = "".join(
        f"1281663720000{at:05d},host,0,Read,{4096 * at},4096,1000\n" for at in range(30)
    )
    (tmp_path / "t.csv").write_text(rows, encoding="utf-8")
    head, _, _ = TEXT.partition("[workload]")
    text = head.replace("pg_num", 'drive = "pacific"\npg_num').replace(
        '"rs:4,2"', '"none"'
    )
    (tmp_path / "s.toml").write_text(
        f'{text}\n[workload]\nkind = "trace"\ntrace = "t.csv"\nimage_bytes = "64MiB"\n',
        encoding="utf-8",
    )
    scenario = load_scenario(str(tmp_path / "s.toml"))
    page = Page(report_of_run(scenario, run_scenario(scenario)))
    said = "".join(page.text)
    # No block size, so no quantity is drawn against it.
    assert all(
        attributes["id"].startswith(("costs-", "latency-"))
        for tag, attributes in page.elements
        if tag == "figure"
    )
    assert "cluster.drive_bytes" in said
    assert "no redundancy" in said


def test_greys_of_a_figure_follow_the_page_and_colours_stay():
    svg = inline_svg(svg_of(figure("#0072b2").figure), "one", "words")
    assert "var(--grey-ff,#ffffff)" in svg
    assert "#0072b2" in svg
    assert not re.search(r"[^,]#([0-9a-f]{2})\1\1\b", svg)


def test_white_becomes_dark_paper_and_black_its_ink():
    dark = dark_greys(
        ["var(--grey-ff,#ffffff) var(--grey-00,#000000) var(--grey-44,#444444)"]
    )
    shades = [int(dark[f"--grey-{level}"][1:3], 16) for level in ("ff", "44", "00")]
    assert shades == sorted(shades)
    assert shades[0] < 0x30 < 0xD0 < shades[-1]


def test_marks_outside_a_panel_are_clipped():
    with styled():
        drawn = new_figure((4, 3))
        axes = drawn.subplots()
        axes.plot([0, 5], [0, 5])
        axes.set_xlim(0, 1)
    svg = inline_svg(svg_of(drawn), "one", "words")
    assert "url(" not in svg
    views = set(re.findall(r"<svg x=[^>]*>", svg))
    assert len(views) == 1
    place = [
        re.search(rf' {name}="([^"]+)"', view)[1]
        for view in views
        for name in ("x", "y", "width", "height")
    ]
    assert f'viewBox="{" ".join(place)}"' in views.pop()


def test_two_figures_on_a_page_share_no_name():
    svgs = [
        inline_svg(svg_of(figure().figure), stem, "words") for stem in ("one", "two")
    ]
    names = [set(re.findall(r'id="([^"]+)"', svg)) for svg in svgs]
    assert names[0]
    assert not names[0] & names[1]
    for svg, known in zip(svgs, names, strict=True):
        assert set(re.findall(r"#((?:one|two)-[\w-]+)", svg)) <= known


def test_a_figure_s_caption_cannot_break_the_page():
    (block,) = figure_blocks({"one": figure()})
    assert "<b>" not in block.svg


def test_a_table_with_more_schemes_than_a_phone_has_room_for_scrolls():
    narrow, wide = (
        Table("t", [""] * (1 + n), [["a", *["1"] * n]], form="compare") for n in (4, 5)
    )
    assert (narrow.narrow, wide.narrow) == ("compare", "scroll")


def test_text_and_cells_mix_in_a_row():
    table = Table("t", ["", "a"], [["group"], ["x", TableCell("1", share=0.5)]])
    assert [[cell.text for cell in row] for row in table.body] == [
        ["group"],
        ["x", "1"],
    ]


def test_a_page_without_a_value_for_its_template_is_an_error():
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError):
        render("run.html.j2", title="t")


def test_failures_are_reported_with_their_consequences():
    scenario = parse_scenario(
        """
        schemes = ["rep:3"]
        generation = "pacific"
        cluster = { hosts = 5, osds_per_host = 2, pg_num = 16 }
        faults = { down_out_interval_s = 5, events = [{ osds = [2], at_s = 5, kind = "power" }] }
        [workload]
        kind = "open"
        read_fraction = 0.7
        patterns = ["rand"]
        rate_per_s = 20
        duration_s = 60
        image_bytes = "256MiB"
        """
    )
    result = run_scenario(scenario)
    (row,) = result.rows.to_dicts()
    said = " ".join("".join(Page(report_of_run(scenario, result)).text).split())
    assert row["failure_to_clean_s"] is not None
    for term in (
        "failure until detection",
        "the scenario’s faults, until clean",
        "permanently lost",
    ):
        assert term in said, term


def test_objects_have_rates_in_requests_per_second_and_one_request_is_singular():
    scenario = load_scenario(
        "s3",
        sets=[
            "workload.queue_depth=1",
            "workload.requests=20",
            "workload.object_sizes_bytes=['64k']",
            "workload.ops=['put']",
        ],
    )
    result = run_scenario(scenario, unchecked=True)
    said = Page(report_of_run(scenario, result)).text
    assert "rate [requests/s]" in said
    words = " ".join("".join(said).split())
    assert "IOPS" not in words
    assert "1 request always in flight" in words


def test_slow_drives_are_reported_by_phase_and_without_what_concerns_failures():
    scenario = parse_scenario(
        """
        schemes = ["rep:3"]
        cluster = { hosts = 5, osds_per_host = 2, pg_num = 16 }
        faults = { events = [{ osds = [2], at_s = 1, kind = "slow", factor = 10 }] }
        [workload]
        read_fraction = 0.7
        patterns = ["rand"]
        queue_depth = 1
        duration_s = 2
        image_bytes = "256MiB"
        """
    )
    result = run_scenario(scenario)
    (row,) = result.rows.to_dicts()
    assert row["iops_slow"] < row["iops_before"]
    said = " ".join("".join(Page(report_of_run(scenario, result)).text).split())
    # Each request has 4 KiB.
    per_s = row["throughput_slow_bytes_per_s"]
    assert per_s == pytest.approx(4096 * row["iops_slow"])
    for term in (
        "requests per second, before",
        "requests per second, slow",
        "throughput [MB/s], slow",
    ):
        assert term in said, term
    assert "failure until detection" not in said
    assert "data on the failed OSDs" not in said

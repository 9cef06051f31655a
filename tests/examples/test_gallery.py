"""The gallery of the documentation: right answers, a whole grid, and pages for every link."""

import html
import itertools
import re
import sys
from pathlib import Path

import polars as pl
import pytest

import stripesim
from stripesim.models.coding import parse_scheme
from stripesim.scenarios.answers.explain import shares
from stripesim.scenarios.answers.sweep.explorer import explorer_of
from stripesim.scenarios.cells.placement import domain_type

DOCS = Path(__file__).resolve().parents[2] / "docs"
if str(DOCS) not in sys.path:
    sys.path.append(str(DOCS))
from generate import gallery  # noqa: E402

PICTURES = {picture.name: picture for picture in gallery.PICTURES}
# Messages have headers, so traffic is a little more than its payload.
HEADERS = 0.06


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        # Eight shards of 4/6 MiB leave the primary.
        ("large-write", 16 / 3, 16 / 3 * (1 + HEADERS)),
        # All six data shards, and one chunk with its three parities.
        ("small-read", 6, 6),
        ("parity-delta", 4, 4),
        ("degraded-read", 6, 6),
        # Five shards of 0.4 MiB, whose last blocks are padded.
        ("local-repair", 2.0, 2.05),
        # Ten thirds of 4/9 MiB, and a whole shard to its new place.
        ("clay-repair", 10 * 4 / 27 + 4 / 9, (10 * 4 / 27 + 4 / 9) * (1 + HEADERS)),
        # A stripe of eleven chunks of 4 KiB.
        ("small-object", 44, 44),
    ],
)
def test_answers_are_those_of_arithmetic(name, low, high, monkeypatch):
    # Finding the parameters of each step takes most of the time, and the pages below show them.
    monkeypatch.setattr(shares, "_doubled", lambda models: ())
    picture = PICTURES[name]
    answer, why = picture.predict(picture.requests())
    assert low <= answer <= high
    assert why.endswith(".")


def test_a_small_object_has_the_transactions_of_lesson_14(monkeypatch):
    monkeypatch.setattr(shares, "_doubled", lambda models: ())
    picture = PICTURES["small-object"]
    _, why = picture.predict(picture.requests())
    # Two updates of the index on three OSDs, and a head on 3 copies, or on 11 shards that also roll forward.
    assert f"commit {6 + 2 * 11} transactions, with three copies {6 + 3}." in why


def test_a_ratio_is_that_of_the_latencies_on_the_page():
    picture = PICTURES["small-write"]
    copies, coded = picture.requests()
    answer, _ = picture.predict([copies, coded])
    assert answer == coded.latency_ns / copies.latency_ns > 1


@pytest.mark.parametrize("name", PICTURES)
def test_each_picture_is_a_page_that_asks_first(name, monkeypatch):
    # Each parameter is found in the same way, and each takes as long as planning the request.
    doubled = shares._doubled
    monkeypatch.setattr(
        shares, "_doubled", lambda models: itertools.islice(doubled(models), 0, None, 8)
    )
    page = gallery.picture_page(PICTURES[name])
    assert html.escape(PICTURES[name].question, quote=False) in page


def test_every_link_has_its_page():
    linked = re.findall(r'href="gallery/([\w-]+)\.html"', gallery.links())
    assert linked == list(PICTURES)
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    assert gallery.MARKER in text
    assert re.findall(r'href="gallery/([\w-]+)\.html"', text) == ["engine", "explorer"]
    assert gallery.LESSONS in text
    linked = re.findall(r'href="gallery/lesson-([\w-]+)\.html"', gallery.lesson_links())
    assert linked == [lesson.name for lesson in gallery.page_lessons()]


def test_the_recorded_grid_has_every_cell():
    explorer = explorer_of(
        pl.read_csv(gallery.GRID, infer_schema_length=None), list(gallery.OVER)
    )
    lengths = [len(values) for values in gallery.OVER.values()]
    assert [len(axis.values) for axis in explorer.axes] == [*lengths, 2]
    # Four schemes, and reads and writes.
    assert len(set(map(tuple, explorer.data["cells"]))) == 4 * 4 * 4 * 2 * 4 * 2
    assert "1,024 cells" in (DOCS / "gallery.md").read_text(encoding="utf-8")


def test_every_scheme_of_the_grid_keeps_its_data_when_two_hosts_fail():
    scenario = stripesim.load_scenario(gallery.SCENARIO)
    for name in scenario.schemes:
        scheme = parse_scheme(name)
        assert domain_type(scenario, scheme) == "host"
        assert scheme.failures_tolerated >= 2
        # A host is left to rebuild on.
        assert scheme.width < scenario.cluster.host_count
    assert "any two hosts fail" in gallery.grid_page()


def test_the_grid_is_small_enough_to_mail():
    page = gallery.grid_page()
    assert len(page.encode()) < 3_000_000
    assert "Inside the calibrated range" in page

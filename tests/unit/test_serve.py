"""The page of stripesim serve: right numbers, strict headers, nothing from the request reaches the disk."""

import os
import re
import time
import tomllib
import zlib
from base64 import urlsafe_b64encode
from contextlib import suppress
from dataclasses import replace
from functools import partial
from html import unescape
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import parse_qsl, urlencode, urlsplit

import anyio
import pytest
from anyio import CapacityLimiter

from support.messages import states
from support.small_experiments import (
    option_with_endless_durability,
    option_with_quick_rebuild,
    run_briefly,
    run_small_experiment,
    run_until_stopped,
    work_without_end,
)

pytest.importorskip(
    "starlette", reason="starlette is not installed (pip install stripesim[web])"
)
pytest.importorskip(
    "httpx", reason="httpx is not installed (pip install stripesim[test])"
)

from starlette.testclient import TestClient

from stripesim.models.coding import parse_scheme
from stripesim.models.problems import WorkError
from stripesim.scenarios.answers.explain.request import explain
from stripesim.scenarios.cells.bound import bounds_of
from stripesim.scenarios.schema.scenario import load_scenario, parse_scenario
from stripesim.web.app import FORM_BYTES_MAX, create_app
from stripesim.web.comparison import option_rows, report_of_options
from stripesim.web.controls import (
    BY_DEPTH,
    SIDES,
    FormKind,
    OwnSets,
    controls,
    left_out,
)
from stripesim.web.experiments import SKETCHED_PARTS, Settings, warm_up
from stripesim.web.experiments import load_curve as load_points
from stripesim.web.jobs import RUNNING_MAX, Job, JobBoard
from stripesim.web.options import option_of, toml_of
from stripesim.web.simulated_pictures import _movement_words, curve_panel, load_curve
from stripesim.web.state import LabState
from stripesim.web.svg import panel_svg
from stripesim.web.uploads import (
    PACKED,
    UPLOAD_BYTES_MAX,
    Uploads,
    read_upload,
    unpacked,
)
from stripesim.web.worker import OutOfProcessorTime, call, processor_limit

BASE = """
schemes = ["rep:3", "rs:4,2"]
[cluster]
hosts = 8
osds_per_host = 4
pg_num = 64
drive = "nvme-tlc"
[workload]
requests = 200
image_bytes = "1GiB"
[durability]
afr = 0.01
repair_bytes_per_s = 100e6
"""


SETTINGS = Settings(failure="host", added_hosts=1, stored_bytes=1e12)


def state_of(base, query):
    return LabState.read(query, "served", base, OwnSets.of(base))


def option(base, side="a", **typed):
    """Return one option with some values typed."""
    query = {f"{side}.{name}": value for name, value in typed.items()}
    return option_of(base, state_of(base, query).values[side])


@pytest.fixture(scope="module", autouse=True)
def quick_options(quick_rebuilds):
    """Rebuild a small sample in workers too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stripesim.web.app.option_of", option_with_quick_rebuild)
        yield


@pytest.fixture(autouse=True)
def endless_experiments(monkeypatch):
    """Make experiments wait until they are stopped, since most tests read none of their results."""
    monkeypatch.setattr("stripesim.web.jobs.run_experiment", run_until_stopped)


@pytest.fixture(scope="module")
def client(quick_options):
    app = create_app(parse_scenario(BASE))
    # As a context: worker processes then last from request to request.
    with TestClient(app, base_url="http://127.0.0.1", follow_redirects=False) as client:
        yield client


@pytest.fixture
def without_workers(monkeypatch):
    """Make a server compute in the process of the test, for tests of pages alone. `client` uses workers."""

    async def call_here(function, *args, **limits):
        del limits
        return function(*args)

    async def start_nothing(pages):
        del pages

    monkeypatch.setattr("stripesim.web.app.call", call_here)
    monkeypatch.setattr("stripesim.web.app._Pages.warm_up", start_nothing)


def test_the_page_shows_both_options_and_their_difference(client):
    page = client.get("/").text
    assert "Option A" in page
    assert "Option B" in page
    # 32 OSDs of 3.84 TB.
    assert "123 TB" in page
    # RS(4,2) stores half as much for each client byte as three copies.
    assert "-50 %" in page
    assert not re.search(r"\s(on\w+|style)=", page)
    assert not re.search(r"(src|href)=\"https?:", page)


def test_capacity_is_that_of_the_arithmetic():
    base = parse_scenario(BASE)
    shown = option(base, hosts="12", drive_tb="7.68")
    numbers = {number.key: number for number in shown.numbers}
    held = shown.answers.capacity
    raw = 12 * 4 * 7.68e12
    assert numbers["raw"].value == raw
    # As full as the fullest OSD allows: the mean OSD holds less.
    full = raw * 0.95 / 3
    safe = raw * 11 / 12 * 0.85 / 3
    assert numbers["full"].value == pytest.approx(full / held.imbalance)
    assert numbers["safe"].value == pytest.approx(safe / held.imbalance_after_loss)
    assert numbers["nines"].value > 1
    assert all(n.why and n.source and n.range for n in numbers.values())


def test_the_time_of_a_lone_request_is_that_of_explain():
    # Given a cluster of 480 OSDs, which the page makes smaller for one request
    second = option(parse_scenario(BASE), "b", hosts="20", osds_per_host="24")
    for op in ("read", "write"):
        (timeline,) = explain(op, None, 4096, scenario=second.scenario)
        assert second.answers.times_ns[op] == timeline.latency_by_category_ns()


def test_a_lone_request_finds_osds_for_more_shards_than_hosts():
    # Given 9 shards on 4 hosts, several of them on each
    second = option(
        parse_scenario(BASE),
        "b",
        scheme="rs:6,3",
        hosts="4",
        osds_per_host="6",
        failure_domain="osd",
    )
    assert not second.problems
    assert second.answers.times_ns["write"]


def test_a_request_over_several_objects_has_all_answers_but_its_timeline(client):
    # Given requests of 5 MiB, and objects of 4 MiB
    base = parse_scenario(BASE)
    first = option_of(base, state_of(base, {"block_kib": "5120"}).values["a"])
    assert not first.problems
    assert first.answers.bounds
    assert first.answers.times_ns == {}
    # Then the page leaves out one picture.
    page = client.get("/compare", params={"block_kib": "5120"}).text
    assert "Limits by resource" in page
    assert "Where the time goes" not in page


def test_the_time_of_a_partial_read_is_the_mean_over_the_shards_that_hold_its_data():
    found = option(parse_scenario(BASE), "b", generation="tentacle")
    read = partial(explain, "read", None, 4096, scenario=found.scenario)
    # A stripe has 4 KiB on each of four shards, the first of them at the primary.
    times_ns = [read(offset_bytes=4096 * shard)[0].latency_ns for shard in range(4)]
    shown_ns = sum(found.answers.times_ns["read"].values())
    assert shown_ns == pytest.approx(sum(times_ns) / 4, abs=4)
    assert shown_ns > 1.4 * times_ns[0]


def test_typing_changes_the_results_and_the_address(client):
    answer = client.get("/compare", params={"a.hosts": "16", "b.scheme": "rs:6,2"})
    assert "246 TB" in answer.text
    # The simulation that follows keeps the values in the address.
    form = {"a.hosts": "16", "b.scheme": "rs:6,2", "rate_per_s": "x"}
    address = client.post("/simulate", data=form).headers["HX-Push-Url"]
    assert "a.hosts=16" in address
    again = client.get(address).text
    assert 'name="a.hosts" value="16"' in again
    assert 'value="rs:6,2"' in again


def test_a_malformed_address_of_the_page_is_ignored(client):
    headers = {"HX-Current-URL": "http://["}
    answer = client.post("/simulate", data={"a.hosts": "16"}, headers=headers)
    assert answer.status_code == 200
    assert "a.hosts=16" in answer.headers["HX-Push-Url"]


def test_the_state_survives_its_address():
    base = parse_scenario(BASE)
    # Given one cluster for both, two clusters, and values that are wrong
    for query in (
        {"one_cluster": "1", "a.hosts": "16", "b.hosts": "9", "block_kib": "64"},
        {"a.hosts": "16", "b.hosts": "9", "b.generation": "tentacle"},
        {"a.scheme": "x" * 60, "b.scheme": "", "arrivals": "by depth"},
    ):
        state = state_of(base, query)
        again = LabState.read(
            dict(parse_qsl(state.query, keep_blank_values=True)),
            "served",
            base,
            OwnSets.of(base),
        )
        assert again == state


def test_one_cluster_serves_both_options():
    base = parse_scenario(BASE)
    state = state_of(base, {"one_cluster": "1", "a.hosts": "16", "b.hosts": "9"})
    assert (state.values["a"]["hosts"], state.values["b"]["hosts"]) == ("16", "16")
    assert "b.hosts" not in state.query
    apart = state_of(base, {"a.hosts": "16", "b.hosts": "9"})
    assert (apart.values["a"]["hosts"], apart.values["b"]["hosts"]) == ("16", "9")


def error_of(page, field):
    """Return the text of the error next to a field, which every page has."""
    (text,) = re.findall(
        rf'<p class="error" id="field-{field}-error"[^>]*>([^<]*)</p>', page
    )
    return text


FIELDS = [
    ("a.hosts", "-3", "a-hosts"),
    ("a.hosts", "", "a-hosts"),
    ("a.hosts", "9999", "a-hosts"),
    ("b.hosts", "abc", "b-hosts"),
    ("b.hosts", "4.5", "b-hosts"),
    ("b.hosts", "nan", "b-hosts"),
    ("a.drive", "../../etc/passwd", "a-drive"),
    ("a.scheme", "", "a-scheme"),
    ("a.scheme", "rs:4,2" + " " * 40 + "x", "a-scheme"),
    ("rate_per_s", "1e99", "rate_per_s"),
    ("added_hosts", "1.5", "added_hosts"),
    # Problems that the scenario finds belong to fields too: 3 shards on 2 hosts, and no such scheme.
    ("a.hosts", "2", "a-scheme"),
    ("b.scheme", "rs:9", "b-scheme"),
]


@pytest.mark.parametrize(("key", "value", "field"), FIELDS)
def test_a_bad_value_has_its_error_next_to_the_field(client, key, value, field):
    query = {"a.scheme": "rep:3", key: value}
    whole = client.get("/", params=query).text
    update = client.get("/compare", params=query).text
    for page in (whole, update):
        assert error_of(page, field).startswith("got ")
        assert error_of(page, "repair_mb_per_s") == ""
    # The field points to its error, and the summary above the results points to the field.
    (described,) = re.findall(rf'<(?:input|select)[^>]*id="field-{field}"[^>]*>', whole)
    assert 'aria-invalid="true"' in described
    assert f'aria-describedby="field-{field}-error"' in described
    assert f'href="#field-{field}"' in update


def test_an_option_with_a_bad_value_has_no_numbers(client):
    """Neither those of earlier values nor those of defaults: 32 OSDs of 3.84 TB are those of option B."""
    rows = client.get("/compare", params={"a.hosts": ""}).text.split("<tr>")
    (raw,) = [row for row in rows if "Raw capacity" in row]
    first, second, _ = raw.split("<td>")[1:]
    assert first.startswith("–</td>")
    assert "123 TB" in second


def test_an_empty_rate_of_repair_means_that_of_the_recovery_model():
    base = parse_scenario(BASE.partition("[durability]")[0])
    numbers = {number.key: number for number in option(base).numbers}
    assert states(numbers["nines"].why, "the recovery model simulates")


def test_an_empty_field_means_the_capacity_of_the_drive_model():
    base = parse_scenario(
        BASE.replace("pg_num = 64", 'pg_num = 64\ndrive_bytes = "1TB"')
    )
    numbers = option(base, drive_tb="").numbers
    raw = {number.key: number.value for number in numbers}["raw"]
    # 8 hosts with 4 drives of 3.84 TB, from the data sheet of nvme-tlc.
    assert raw == 8 * 4 * 3.84e12


def test_a_discarded_upload_is_reported(client):
    assert "upload-123" in client.get("/", params={"base": "upload-123"}).text


@pytest.mark.parametrize(
    "path", ["/", "/compare", "/static/htmx.min.js", "/nowhere", "/download/a.toml"]
)
def test_every_answer_has_strict_headers(client, path):
    headers = client.get(path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


def test_typed_text_is_returned_escaped(client):
    page = client.get(
        "/", params={"a.scheme": "<script>alert(1)</script>", "problem": "<b>x"}
    ).text
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
    assert "&lt;b&gt;x" in page


def test_other_hosts_are_refused(client):
    assert client.get("/", headers={"host": "evil.example"}).status_code == 400


@pytest.mark.parametrize(
    ("headers", "is_refused"),
    [
        ({}, False),
        ({"origin": "http://127.0.0.1"}, False),
        ({"origin": "http://evil.example"}, True),
        ({"origin": "http://127.0.0.1:8080"}, True),
        ({"origin": "null"}, True),
        ({"origin": "http://["}, True),
        ({"origin": ""}, True),
        ({"origin": "null", "sec-fetch-site": "same-origin"}, False),
        ({"origin": "http://127.0.0.1", "sec-fetch-site": "cross-site"}, True),
        ({"sec-fetch-site": "same-site"}, True),
    ],
)
def test_forms_of_other_sites_are_refused(client, headers, is_refused):
    # Without a file the answer is 400, where it is not refused before.
    assert client.post("/upload", headers=headers).status_code == (
        403 if is_refused else 400
    )


@pytest.mark.parametrize(
    ("mode", "site", "status"),
    [
        ("navigate", "cross-site", 200),
        ("no-cors", "cross-site", 403),
        ("cors", "same-origin", 200),
    ],
)
def test_other_sites_may_link_here_but_not_let_it_compute(client, mode, site, status):
    headers = {"sec-fetch-mode": mode, "sec-fetch-site": site}
    assert client.get("/static/icon.svg", headers=headers).status_code == status


def test_a_form_keeps_its_origin(client):
    """With no-referrer a browser sends forms with the origin null."""
    assert client.get("/").headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize("name", ["../app.py", "..%2f..%2fsetup.cfg", "serve.css.bak"])
def test_static_files_are_those_listed(client, name):
    assert client.get(f"/static/{name}").status_code == 404


def test_an_uploaded_scenario_is_the_base(client):
    answer = client.post(
        "/upload", files={"file": ("x.toml", BASE.replace("hosts = 8", "hosts = 9"))}
    )
    assert answer.status_code == 303
    page = client.get(answer.headers["location"]).text
    assert 'name="a.hosts" value="9"' in page


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('schemes = ["rep:3"]\n[cluster]\ncrush_map = "/etc/passwd"\n', "crush_map"),
        ('schemes = ["rep:3"]\n[workload]\ntrace = "/etc/passwd"\n', "trace"),
        ('schemes = ["rep:3"]\n[cluster]\ndrive = "../../x"\n', "does not ship"),
        ('schemes = ["rep:3"]\n[cluster]\nkernel_table = "../../x"\n', "does not ship"),
        ("not toml", "upload"),
    ],
)
def test_an_upload_names_no_file(client, text, problem):
    with pytest.raises(ValueError, match=problem):
        read_upload(text.encode())
    answer = client.post("/upload", files={"file": ("x.toml", text)})
    assert answer.status_code == 303
    assert "problem=" in answer.headers["location"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"#" * (UPLOAD_BYTES_MAX + 1), "got 1,048,577 bytes, wanted at most"),
        (b"\x89PNG\r\n\x1a\n\0", "got no text, wanted a scenario or parameter set"),
        (b"1,host,0,Read\n", "got no TOML (Expected '=' after a key"),
    ],
)
def test_a_file_of_another_kind_is_refused_on_the_page(client, content, said):
    answer = client.post("/upload", files={"file": ("x", content)})
    assert answer.status_code == 303
    page = unescape(client.get(answer.headers["location"]).text)
    assert f"upload: {said}" in page


def test_a_report_is_the_base(client):
    folder = (
        Path(__file__).resolve().parents[2].parent / "shared" / "data" / "cluster-state"
    )
    found = sorted(folder.rglob("*ceph_report"))
    if not found:
        pytest.skip("no ceph report in ../shared/data/cluster-state")
    answer = client.post("/upload", files={"file": ("x.json", found[0].read_bytes())})
    assert answer.status_code == 303
    page = client.get(answer.headers["location"]).text
    assert "How the scenario was read and simplified" in page
    assert "Usable with the largest failure domain lost" in page


def test_a_scenario_with_racks_keeps_its_failure_domain():
    racks = "racks = 4\nfailure_domain_erasure = 'rack'\nosds_per_host = 4"
    text = BASE.replace("osds_per_host = 4", racks).replace("rs:4,2", "rs:2,2")
    base = parse_scenario(text)
    second = option(base, "b", scheme="rs:2,2")
    assert second.values["failure_domain"] == "rack"
    assert second.values["racks"] == "4"
    safe = next(number for number in second.numbers if number.key == "safe")
    # 32 OSDs of 3.84 TB, one of 4 racks gone, at the nearfull ratio 0.85. Three of four shards are left of
    # what is stored twice.
    expected = 32 * 3.84e12 * 3 / 4 * 0.85 / (2 * 3 / 4)
    imbalance = second.answers.capacity.imbalance_after_loss
    assert safe.value * imbalance == pytest.approx(expected, rel=1e-3)


SITES = """
schemes = ["rep:4"]
[cluster]
hosts = 8
osds_per_host = 4
drive = "samsung-pm983"
sites = 2
site_rtt_ms = 2.0
stretch = true
failure_domain_replicated = "site"
[workload]
ops = ["write"]
block_sizes_bytes = ["4k"]
requests = 2000
"""


def test_sites_of_a_scenario_are_controls_and_reach_the_answers():
    base = parse_scenario(SITES)
    first = option(base, "a")
    keys = ("sites", "site_rtt_ms", "stretch", "failure_domain")
    assert [first.values[key] for key in keys] == ["2", "2", "yes", "site"]
    # A round trip of 8 ms in place of 2 ms: to the primary for half of the requests, and to the far copies.
    far = option(base, "a", site_rtt_ms="8")
    more_ns = sum(far.answers.times_ns["write"].values()) - sum(
        first.answers.times_ns["write"].values()
    )
    assert more_ns in (6_000_000, 12_000_000)
    # Stretch mode wants the sites.
    one = option(base, "a", sites="", site_rtt_ms="")
    assert one.scenario is None
    assert "stretch" in one.problems.by_field


def test_the_second_option_of_stretched_copies_is_a_code_over_the_same_sites():
    second = option(parse_scenario(SITES), "b")
    cluster = second.scenario.cluster
    assert (cluster.sites, cluster.stretch) == (2, False)
    scheme = parse_scheme(second.scenario.schemes[0])
    # Half of its shards are at each site, and it can lose them.
    assert scheme.width % 2 == 0
    assert scheme.width // 2 <= scheme.failures_tolerated


def test_groups_of_hosts_at_sites_keep_their_sites():
    groups = "".join(
        f"[[cluster.hosts]]\ncount = 4\nosds = 4\nsite = '{site}'\n" for site in "abc"
    )
    rtt_ms = "site_rtt_ms = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]"
    text = (
        SITES.replace("rep:4", "rep:3")
        .replace("hosts = 8\nosds_per_host = 4\n", "")
        .replace("sites = 2\nsite_rtt_ms = 2.0\nstretch = true", rtt_ms)
        .replace("[workload]", f"{groups}[workload]")
    )
    upload = read_upload(text.encode())
    assert "12 equal hosts with 4 OSDs each at 3 equal sites" in upload.notes[0]
    shown = option(upload.scenario, "a")
    assert shown.values["sites"] == "3"
    # A matrix stays that of the scenario.
    assert shown.values["site_rtt_ms"] == ""
    assert shown.scenario.cluster.site_rtt_ms[0] == (0, 1, 2)


def test_an_invalid_report_is_reported(client):
    answer = client.post("/upload", files={"file": ("x.json", b'{"a": 1}')})
    assert answer.status_code == 303
    assert "problem=" in answer.headers["location"]
    assert "stripesim-" not in answer.headers["location"]


def test_downloads_equal_the_page(client):
    query = {"b.hosts": "10"}
    text = client.get("/download/b.toml", params=query).text
    assert tomllib.loads(text)["cluster"]["hosts"] == 10
    again = parse_scenario(text)
    assert again.schemes == ("rs:4,2",)
    assert toml_of(again) == text
    table = client.get("/download/compare.csv", params=query).text
    assert table.startswith("number,A,B,difference,why\n")
    assert "nines" in table.lower()
    report = client.get("/download/report.html", params=query).text
    assert report.startswith("<!DOCTYPE html>")
    assert client.get("/download/other", params=query).status_code == 404


def test_a_spreadsheet_does_not_run_typed_text_as_a_formula(client):
    table = client.get("/download/compare.csv", params={"a.scheme": "=1+1"}).text
    assert "'=1+1" in table


@pytest.fixture
def small_experiments(monkeypatch, endless_experiments):
    """Make workers run all experiments on small samples."""
    monkeypatch.setattr("stripesim.web.jobs.run_experiment", run_small_experiment)


def polled(client, page):
    """Follow a job from the page that shows it until it is over, and return all pages."""
    pages = [page]
    deadline = time.monotonic() + 150
    while time.monotonic() < deadline:
        link = re.search(r'hx-get="(/job/[^"]+)"', pages[-1])
        if link is None:
            return pages
        answer = client.get(link[1])
        if answer.status_code == 200:
            pages.append(answer.text)
        time.sleep(0.1)
    raise AssertionError("the job does not end")


@pytest.mark.usefixtures("small_experiments")
def test_all_experiments_of_both_options_are_drawn(client):
    # Seven OSDs: finding the saturation of the default 32 takes ten times as long.
    cluster = {"one_cluster": "1", "a.hosts": "7", "a.osds_per_host": "1"}
    load = {"read_percent": "100", "rate_per_s": "100", "stored_tb": "0.001"}
    form = cluster | load
    page = client.post("/simulate", data={"tab": "one", **form}).text
    pages = polled(client, page)
    assert states(pages[-1], "Simulated 8 of 8")
    # The curve grows from page to page.
    marks = [len(re.findall('class="mark a', page)) for page in pages]
    assert marks == sorted(marks)
    assert marks[-1] > marks[0]
    for words in ("saturates at", "clean after", "moves"):
        assert pages[-1].count(words) == 2
    assert "serves the rate" in pages[-1]
    # The same values in another tab, or after going back, show the finished job at once.
    again = client.post("/simulate", data={"tab": "two", **form}).text
    assert states(again, "Simulated 8 of 8")


def test_new_values_stop_the_simulation_of_earlier_ones(client):
    heavy = {"tab": "one", "a.hosts": "9", "b.hosts": "10"}
    page = client.post("/simulate", data=heavy).text
    (link,) = re.findall(r'hx-get="(/job/[^?]+)', page)
    # Another tab with the same values keeps it.
    client.post("/simulate", data={**heavy, "tab": "two"})
    client.get("/compare", params={**heavy, "a.hosts": ""})
    assert "Simulating" in client.get(link).text
    client.get("/compare", params={**heavy, "tab": "two", "a.hosts": ""})
    assert "Stopped" in client.get(link).text


def on_board(test, **limits):
    """Run a test with a board of jobs."""

    async def host():
        with TemporaryDirectory() as folder:
            board = JobBoard(Path(folder), **limits)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(board.run)
                await anyio.sleep(0)
                with anyio.fail_after(150):
                    await test(board)
                tasks.cancel_scope.cancel()

    anyio.run(host)


def test_the_number_of_jobs_is_bounded():
    base = parse_scenario(BASE)

    async def fill(board):
        for number in range(RUNNING_MAX):
            options = {"a": option(base, hosts=f"{9 + number}")}
            board.show(f"tab {number}", options, SETTINGS, asked_s=0.0)
        assert board.show("one more", {"a": option(base)}, SETTINGS, 0.0) is None
        # A tab that changes its values frees its place.
        assert board.show("tab 0", {"a": option(base)}, SETTINGS, 1.0) is not None

    on_board(fill)


def test_an_experiment_ends_at_its_limit():
    async def run_one_job(board):
        job = board.show("tab", {"a": option(parse_scenario(BASE))}, SETTINGS, 0.0)
        while not job.over:
            await anyio.sleep(0.01)
        assert job.state == "done"
        # The picture says so, and the same values are simulated again when a page shows them.
        assert "0.01" in load_curve(job.options, job).answer
        assert board.show("tab", job.options, SETTINGS, 1.0) is not job

    on_board(run_one_job, wall_s_max=0.01)


def test_a_late_answer_to_earlier_values_does_not_stop_the_job_of_later_ones():
    async def ask_twice(board):
        # Given values whose answer takes longer than that to the next ones
        earlier_s, later_s = 1.0, 2.0
        job = board.show("tab", {"a": option(parse_scenario(BASE))}, SETTINGS, later_s)
        # When the first answer is there
        board.leave("tab", earlier_s, unless="the job of the earlier values")
        # Then what the tab shows goes on, until values come later.
        assert not job.over
        board.leave("tab", later_s, unless="the job of yet other values")
        assert job.over

    on_board(ask_twice)


def test_a_job_stops_soon_after_its_last_tab_was_closed(monkeypatch):
    monkeypatch.setattr("stripesim.web.jobs.CLOSED_S_MAX", 0.0)

    async def close_tabs(board):
        options = {"a": option(parse_scenario(BASE))}
        job = board.show("one", options, SETTINGS, 0.0)
        board.show("two", options, SETTINGS, 0.0)
        # When one of two tabs is closed
        board.close("one")
        await anyio.sleep(1.2)
        # Then the job goes on for the other, and ends with it.
        assert not job.over
        board.close("two")
        while not job.over:
            await anyio.sleep(0.05)
        assert job.state == "stopped"

    on_board(close_tabs)


def test_a_page_that_is_loaded_again_keeps_its_job():
    async def reload(board):
        options = {"a": option(parse_scenario(BASE))}
        job = board.show("before", options, SETTINGS, 0.0)
        board.close("before")
        assert board.show("after", options, SETTINGS, 1.0) is job
        # Longer than until the board looks for jobs without pages.
        await anyio.sleep(1.2)
        assert not job.over

    on_board(reload)


def test_a_closed_page_says_so(client):
    answer = client.post("/leave", data={"tab": "none"})
    assert (answer.status_code, answer.text) == (204, "")
    foreign = {"sec-fetch-site": "cross-site"}
    assert client.post("/leave", headers=foreign).status_code == 403


def test_a_cluster_with_one_network_has_one_field_for_it():
    # Given one network, so that the rate of a private one has no effect
    base = parse_scenario(BASE.replace("[cluster]", "[cluster]\nnetworks = 1"))
    state = state_of(base, {"a.private_gbit_per_s": "1"})
    labels = {control.name: control.label for control in state.controls}
    assert labels["public_gbit_per_s"] == "Network [Gbit/s]"
    assert "private_gbit_per_s" not in labels
    assert "private_gbit_per_s" not in state.query
    assert "private_gbit_per_s" not in state.guesses
    shown = option(base, public_gbit_per_s="25")
    assert shown.scenario.cluster.public_gbit_per_s == 25
    rows = {row["number"] for row in option_rows(dict.fromkeys(SIDES, shown), None)}
    assert "public_gbit_per_s" in rows
    assert "private_gbit_per_s" not in rows


def test_messages_name_fields_as_the_form_does():
    problems = option(parse_scenario(BASE), sites="3").problems.by_field
    assert problems.keys() == {"sites"}
    assert '"Round trip between sites [ms]"' in problems["sites"]
    assert '"Hosts" (8)' in problems["sites"]
    assert "cluster." not in problems["sites"]


def test_two_tabs_share_the_workers(monkeypatch):
    """Experiments of the second tab run before those of the first have ended."""
    monkeypatch.setattr("stripesim.web.jobs.run_experiment", run_briefly)
    base = parse_scenario(BASE)

    def pair(hosts):
        sides = {"a": hosts, "b": hosts + 1}
        return {
            side: option(base, hosts=f"{count}", osds_per_host="1")
            for side, count in sides.items()
        }

    async def run_two_jobs(board):
        first = board.show("one", pair(7), SETTINGS, 0.0)
        second = board.show("two", pair(9), SETTINGS, 0.0)
        while not second.ended:
            await anyio.sleep(0.05)
            # As their pages do.
            board.get(first.id)
            board.get(second.id)
        assert len(first.ended) < len(first.experiments)
        board.leave("one", 1.0)
        assert first.state == "stopped"
        assert not second.over

    on_board(run_two_jobs)


def test_options_that_are_not_possible_are_not_simulated(client):
    answer = client.post("/simulate", data={"a.hosts": "", "b.hosts": "-1"})
    assert "Nothing is simulated" in answer.text
    assert "hx-get" not in answer.text
    # Simulated answers to earlier values go away.
    assert '<div id="simulated" hx-swap-oob="innerHTML"></div>' in answer.text


def test_a_process_warms_up():
    warm_up()


def test_own_parameters_change_the_answers(client):
    # When a set with less processor time is uploaded
    answer = client.post("/upload", files={"file": ("mine.toml", faster_parameters())})
    query = dict(parse_qsl(urlsplit(answer.headers["location"]).query))
    # Then it is chosen, option B has a higher rate, and its download names a file of its own.
    name = query["a.parameters"]
    page = client.get("/", params=query).text
    assert f"<option selected>{name}</option>" in page
    assert highest_rate(page) > highest_rate(client.get("/").text)
    text = client.get("/download/b.toml", params=query).text
    assert tomllib.loads(text)["cluster"]["parameters"] == "./parameters.toml"


def faster_parameters():
    """Return the shipped set of a cluster with a tenth of the processor time for each request."""
    own = (files("stripesim.calibration.parameters") / "nvme.toml").read_text("utf-8")
    return re.sub(r"(\[cpu\.op_prepare_ns\]\nvalue = )\d+", r"\g<1>100", own, count=1)


def test_a_file_that_cannot_be_used_changes_no_value_of_the_page(client):
    answer = client.post(
        "/upload",
        files={"file": ("notes.toml", b"no TOML at all")},
        headers={"referer": "http://127.0.0.1/?base=quickstart&a.hosts=9&problem=old"},
    )
    query = dict(parse_qsl(urlsplit(answer.headers["location"]).query))
    problem = query.pop("problem")
    assert query == {"base": "quickstart", "a.hosts": "9"}
    assert "wanted a scenario" in problem


def test_a_report_says_what_empty_fields_mean_and_lists_its_warnings():
    base = parse_scenario(BASE)
    options = {side: option(base, side, racks="") for side in SIDES}
    page = report_of_options(options, None)
    rows = re.findall(r">Racks<(.*?)</tr>", page, re.DOTALL)
    assert [row.count("none") for row in rows] == [2]
    assert any(one.warnings for one in options.values())
    assert "<h3>Warnings</h3>" in page


def test_uploaded_parameters_change_the_cluster_that_the_page_shows(client):
    answer = client.post(
        "/upload",
        files={"file": ("mine.toml", faster_parameters())},
        headers={"referer": "http://127.0.0.1/?base=quickstart&problem=old"},
    )
    query = dict(parse_qsl(urlsplit(answer.headers["location"]).query))
    assert query["base"] == "quickstart"
    assert query["a.parameters"].startswith("own-")
    assert "problem" not in query


def test_an_address_holds_uploaded_parameters_for_another_server(tmp_path):
    # Given an uploaded cluster with own parameters
    content = faster_parameters().encode()
    here = Uploads(tmp_path / "here")
    there = Uploads(tmp_path / "there")
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    cluster = read_upload(BASE.encode())
    chosen = here.keep(BASE.encode(), cluster)
    chosen |= here.keep(content, read_upload(content))
    sets = here.packed([chosen["a.parameters"]], chosen["base"])
    address = urlencode({**chosen, "sets": sets})
    # Servers take headers of 64 KiB, and three of them hold the address.
    assert 3 * len(address) < 1 << 16
    # When another server reads that address
    query = dict(parse_qsl(address))
    there.keep_packed(query["sets"])
    # Then it has the same cluster and the same parameters by the same name.
    assert unpacked(query["base"]) == cluster.scenario
    path = Path(there.files[query["a.parameters"]])
    assert path.read_bytes() == content


def test_parameters_too_large_for_an_address_stay_on_the_server(tmp_path):
    content = faster_parameters().encode()
    uploads = Uploads(tmp_path)
    (name,) = (
        value
        for key, value in uploads.keep(content, read_upload(content)).items()
        if key == "a.parameters"
    )
    assert uploads.packed([name], "upload.") != ""
    assert uploads.packed([name], "x" * 12_900) == ""
    assert uploads.packed(["nvme"], "upload.") == ""


@pytest.mark.parametrize("sets", ["?", "eJw", "x" * 20_000])
def test_damaged_parameters_in_an_address_are_reported(tmp_path, sets):
    with pytest.raises(ValueError, match="sets"):
        Uploads(tmp_path).keep_packed(sets)


def highest_rate(page):
    """Return the upper bound on the rate of option B as shown."""
    row = page.split("Highest rate")[1]
    return int(re.findall(r"<summary[^>]*>([\d,]+) ", row)[1].replace(",", ""))


def own_drive():
    """Return a drive of 3.84 TB in one file: nvme-tlc without the file of its spread."""
    source = files("stripesim.calibration.parameters") / "nvme-tlc.toml"
    spread = 'file = "nvme_read_factors.csv"'
    return source.read_text("utf-8").replace(spread, "lognormal_sigma = 0.25")


def test_an_own_drive_is_a_choice(client):
    answer = client.post("/upload", files={"file": ("mine.toml", own_drive())})
    query = dict(parse_qsl(urlsplit(answer.headers["location"]).query))
    assert set(query) == {"a.drive", "one_cluster"}
    # 32 OSDs of its 3.84 TB.
    empty = {**query, "a.drive_tb": ""}
    assert "123 TB" in client.get("/compare", params=empty).text


def test_own_parameters_name_no_file(client):
    text = '[ssd.read_quantiles]\nfile = "/etc/passwd"\nprovenance = "measured"\nsource = "x"\n'
    answer = client.post("/upload", files={"file": ("x.toml", text)})
    assert "file+path" in answer.headers["location"]


def test_sides_are_two():
    assert SIDES == ("a", "b")


def test_a_form_is_bounded_regardless_of_its_claimed_length(client):
    def parts():
        for _ in range(5):
            yield b"a.scheme=" + b"x" * FORM_BYTES_MAX

    # Sent in pieces, so that no length is stated beforehand.
    kind = {"content-type": "application/x-www-form-urlencoded"}
    assert client.post("/simulate", content=parts(), headers=kind).status_code == 413


def test_a_drive_file_of_the_served_scenario_is_a_choice_and_stays_chosen(tmp_path):
    # Given a scenario whose drive is a file next to it
    (tmp_path / "mine.toml").write_text(own_drive(), "utf-8")
    cluster = '[cluster]\nhosts = 8\ndrive = "./mine.toml"\n'
    text = f'schemes = ["rep:3", "rs:4,2"]\n{cluster}[workload]\nrequests = 200\n'
    (tmp_path / "scenario.toml").write_text(text, "utf-8")
    served = load_scenario(tmp_path / "scenario.toml")
    # When its controls are shown and its form is sent back unchanged
    (drive,) = (
        control for control in controls(OwnSets.of(served)) if control.name == "drive"
    )
    state = state_of(served, {"a.drive": "./mine.toml"})
    # Then the file is the first choice and no other drive takes its place.
    assert drive.choices[0] == "./mine.toml"
    assert state.values["a"]["drive"] == "./mine.toml"
    assert state.problems("a") == {}
    computed = option(served)
    assert computed.problem_lines == []
    assert computed.scenario.cluster.drive == "./mine.toml"


ONE_CODE = BASE.replace('"rep:3", "rs:4,2"', '"rs:4,2"').replace(
    "hosts = 8", "hosts = 10"
)


def test_the_second_code_of_a_scenario_with_one_is_a_guess_of_equal_capacity():
    state = state_of(parse_scenario(ONE_CODE), {})
    # RS(6,3) stores 9/6 = 6/4 bytes per byte, survives more failures, and leaves one of ten hosts spare.
    assert state.values["b"]["scheme"] == state.guess == "rs:6,3"
    # Eight hosts hold no nine shards. RS(5,2) is nearest to 1.5 with a spare host: 7/5 = 1.4.
    state = state_of(parse_scenario(ONE_CODE.replace("hosts = 10", "hosts = 8")), {})
    assert state.guess == "rs:5,2"
    assert state_of(parse_scenario(ONE_CODE), {"b.scheme": "rep:3"}).guess is None
    assert state_of(parse_scenario(BASE), {}).guess is None


@pytest.mark.usefixtures("without_workers")
def test_a_guess_is_marked_on_the_page():
    app = create_app(parse_scenario(ONE_CODE))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        assert 'id="guess"' in client.get("/").text
        assert 'id="guess"' not in client.get("/?b.scheme=rep:3").text


@pytest.mark.usefixtures("without_workers")
def test_values_that_the_scenario_does_not_state_are_marked():
    text = """
schemes = ["rep:3"]
[cluster]
hosts = 3
[workload]
ops = ["read"]
requests = 200
"""
    guesses = state_of(parse_scenario(text), {}).guesses
    # 10 TB and the drives' rate of failures are the page's. Hosts and the reads are stated.
    assert guesses["stored_tb"] == "10"
    assert {"afr_percent", "cores_per_host", "rate_per_s"} <= guesses.keys()
    assert guesses.keys().isdisjoint({"hosts", "read_percent"})
    stated = text.replace("hosts = 3", "hosts = 3\ncores_per_host = 24")
    assert "cores_per_host" not in state_of(parse_scenario(stated), {}).guesses
    app = create_app(parse_scenario(stated))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        page = client.get("/?stored_tb=7").text
    # The mark keeps the value of the page when another is typed.
    assert states(page, "Stored now [TB] ... guess: 10")
    # No code other than three copies survives two failures on three hosts.
    assert 'id="equal"' in page


def test_the_proposed_rate_is_below_the_bound_of_both_options():
    slow = ONE_CODE.replace("nvme-tlc", "hdd-7200").replace(
        "osds_per_host = 4", "osds_per_host = 1"
    )
    base = parse_scenario(slow)
    state = state_of(base, {})
    rate_per_s = float(state.values["a"]["rate_per_s"])
    for side in SIDES:
        bounds = option_of(base, state.values[side]).answers.bounds
        assert 0 < rate_per_s <= bounds[0].iops / 2


def test_the_proposed_data_fits_both_options():
    # 4 × 2 drives of 3.84 TB are 30.72 TB. Half of them hold 5.12 TB in three copies: 5 TB.
    small = BASE.replace("osds_per_host = 4", "osds_per_host = 2").replace(
        "hosts = 8", 'hosts = 4\nfailure_domain_erasure = "osd"'
    )
    base = parse_scenario(small)
    state = state_of(base, {})
    assert state.guesses["stored_tb"] == "5"
    for side in SIDES:
        numbers = option_of(base, state.values[side]).numbers
        assert "days" not in {one.key for one in numbers}
    # 30 GB in place of 30.72 TB, as in a class: 0.005 TB.
    tiny = small.replace("hosts = 4", 'hosts = 4\ndrive_bytes = "3.84GB"')
    assert state_of(parse_scenario(tiny), {}).guesses["stored_tb"] == "0.005"
    # What the scenario states stays.
    stated = small.replace("hosts = 4", 'hosts = 4\nstored_bytes = "9TB"')
    assert state_of(parse_scenario(stated), {}).values["a"]["stored_tb"] == "9"


def test_a_movement_without_a_known_time_is_a_sentence():
    moved = {"bytes_moved": 7.34e12, "duration_s": None}
    assert "moves 7.34 TB, and" in _movement_words("A rep:3", moved)
    known = _movement_words("A rep:3", moved | {"duration_s": 7200})
    assert known == "A rep:3 moves 7.34 TB in 2 h"


def test_data_that_does_not_fit_is_full_also_without_growth():
    # 123 TB × 7/8 × 0.85 / 3 = 30 TB of client data are safe.
    base = parse_scenario(BASE)
    values = state_of(base, {"stored_tb": "31"}).values["a"]
    numbers = {one.key: one for one in option_of(base, values).numbers}
    assert numbers["days"].text == "full"
    assert numbers["days"].value == 0


def test_what_the_page_leaves_out_of_a_scenario_is_stated(client):
    # Given the shipped objects of two sizes, and a scenario of one size
    page = client.get("/", params={"base": "s3"}).text
    assert states(page, "object_sizes_bytes: of 64 KiB, 8 MiB ... 64 KiB")
    assert "How the scenario was read" not in client.get("/").text
    # Then what the form cannot hold is named.
    more = ['workload.block_sizes_bytes=["4k", "64k"]', 'workload.patterns=["seq"]']
    more += ["degraded.missing_osds=[0]", "durability.detection_s=60"]
    base = parse_scenario(BASE, sets=more)
    notes = left_out(base)
    assert [note.partition(":")[0] for note in notes] == [
        "workload.block_sizes_bytes",
        "workload.patterns",
        "degraded",
        "durability.detection_s",
    ]


def test_unstated_hosts_are_enough_for_the_schemes_and_the_guess():
    # Given ten shards and no hosts, as durability needs none
    base = load_scenario("durability")
    assert "hosts" not in base.cluster.model_fields_set
    first = option(base)
    # Then one host is to spare, and the code with the nearest overhead fits on them too.
    assert first.scenario.cluster.hosts == 11
    assert parse_scheme(first.values["scheme"]).storage_overhead == 1.25
    second = option(base, "b")
    assert not second.problems
    assert parse_scheme(second.values["scheme"]).storage_overhead < 1.35


@pytest.mark.parametrize("limit", ["vm_iops_limit=500", "vm_queue_depth=4"])
@pytest.mark.parametrize(
    ("arrivals", "key", "value"),
    [("at a rate", "rate_per_s", 1000), ("by depth", "queue_depth", 16)],
)
def test_the_load_of_virtual_machines_can_be_changed(limit, arrivals, key, value):
    # Given 64 machines with a rate or a depth, which decide when requests arrive
    base = parse_scenario(BASE, sets=["workload.vms=64", f"workload.{limit}"])
    # When the form asks for another load
    values = state_of(base, {"arrivals": arrivals, key: str(value)}).values["a"]
    load = option_of(base, values).scenario.workload
    # Then it is that of as many clients, and the page says so.
    assert getattr(load, key) == value
    assert (load.clients, load.vms) == (64, None)
    assert left_out(base)[0].startswith("workload.vms: 64 clients")


def test_a_scenario_without_growth_is_not_full_on_some_day():
    keys = {number.key for number in option(parse_scenario(BASE)).numbers}
    assert "days" not in keys
    base = parse_scenario(BASE)
    values = state_of(base, {"growth_tb_per_day": "0.001"}).values["a"]
    (days,) = (one for one in option_of(base, values).numbers if one.key == "days")
    # 123 TB × 7/8 × 0.85 / 3 = 30 TB of client data, 10 TB are stored: 1 GB a day take 20,000 days.
    assert days.value > 3650
    assert "10 years" in days.text


@pytest.mark.usefixtures("without_workers")
def test_an_uploaded_cluster_is_in_its_address():
    app = create_app()
    with TestClient(app, base_url="http://127.0.0.1", follow_redirects=False) as client:
        sent = client.post("/upload", files={"file": ("a.toml", ONE_CODE.encode())})
    address = sent.headers["location"]
    # Another server, which has no upload.
    with TestClient(create_app(), base_url="http://127.0.0.1") as client:
        page = client.get(f"{address}&a.hosts=11").text
    assert 'name="a.osds_per_host" value="4"' in page.replace(
        'aria-describedby="field-a-osds_per_host-error" ', ""
    )
    assert 'name="a.hosts" value="11"' in page.replace(
        'aria-describedby="field-a-hosts-error" ', ""
    )
    assert "upload it again" not in page


@pytest.mark.parametrize(
    "text",
    [
        "not a scenario",
        'schemes = ["rep:3"]\n[cluster]\ndrive = "/etc/passwd"\n',
        "# " + " " * (1 << 17),
    ],
)
def test_an_address_holds_nothing_that_an_upload_may_not(text):
    name = PACKED + urlsafe_b64encode(zlib.compress(text.encode())).decode().rstrip("=")
    with pytest.raises(ValueError, match=r"wanted|line 1"):
        unpacked(name)


def test_the_loss_of_the_spare_host_is_not_folded_away(client):
    # Six shards on six hosts.
    page = client.get("/?one_cluster=1&a.hosts=6").text
    risk = re.search(r'<p class="risk" id="risk-b">(.*?)</p>', page, re.DOTALL)
    assert risk
    assert states(risk[1], "no spare host ... 6")
    assert 'id="risk-a"' not in page


def test_a_curve_that_runs_out_of_time_keeps_its_points(monkeypatch):
    monkeypatch.setattr("stripesim.web.experiments.CURVE_S_MAX", 0.0)
    monkeypatch.setattr(
        "stripesim.scenarios.answers.load.curve_builder._REQUESTS_MIN", 500
    )
    monkeypatch.setattr(
        "stripesim.scenarios.answers.load.curve_builder._REQUESTS_MAX", 500
    )
    scenario = option(parse_scenario(BASE)).scenario
    points = []
    with pytest.raises(ValueError, match="stopped after 0 s"):
        points.extend(load_points(scenario, SETTINGS, lambda: False))
    # Its sketch, since no run of the curve itself came in time.
    offered = [point["offered_iops"] for point in points]
    assert len(points) > 3
    assert offered == sorted(offered)
    # It ends with a rate that is not steady, or near the bound.
    assert all(point["is_steady"] for point in points[:-1])
    assert not points[-1]["is_steady"] or len(points) == len(SKETCHED_PARTS)
    assert all(0 < point["p50_ns"] <= point["p99_ns"] for point in points)


@pytest.mark.parametrize(("served_per_s", "stated"), [(900, "900"), (1010, "1,000")])
def test_a_curve_states_no_saturation_above_its_bound(served_per_s, stated):
    # Given an option whose resources serve at most 1,000/s
    first = option(parse_scenario(BASE))
    lowest = first.answers.bounds[0]._replace(iops=1000.0)
    bounded = replace(first, answers=replace(first.answers, bounds=(lowest,)))
    job = Job({"a": bounded}, SETTINGS)
    # When a run serves less, or a little more
    point = dict.fromkeys(("offered_iops", "iops", "p50_ns", "p99_ns"), 1e6)
    point |= {"saturation_iops": served_per_s, "knee_iops": None, "limited_by": None}
    point |= {"is_past_saturation": True, "is_steady": True}
    job.emitted["curve", "a"] = [point]
    # Then the picture states the lower of both.
    assert f"{stated} requests/s" in load_curve(job.options, job).answer


def test_a_scenario_of_the_form_does_not_keep_a_description_of_another():
    base = parse_scenario('description = "Eight hosts"\n' + BASE)
    found = option(base, hosts="9")
    assert found.scenario.cluster.hosts == 9
    assert "description" not in tomllib.loads(toml_of(found.scenario))


def test_lines_of_a_curve_stay_below_the_labels_of_its_bounds():
    # Given points up to 100 ms at the bound
    names = {"a": "A rep:3", "b": "B rs:4,2"}
    points = [
        {"iops": 1000.0, "p50_ns": p50_ns, "p99_ns": p99_ns, "is_steady": True}
        for p50_ns, p99_ns in ((1e6, 2e6), (2e7, 1e8))
    ]
    panel = curve_panel(names, {"a": points, "b": points}, dict.fromkeys(names, 1000.0))
    # When it is drawn with its top at 0
    drawn = panel_svg(panel, (0.0, 300.0, 166.0, 0.0))
    # Then both labels are above the marks.
    labels = re.findall(r'y="([\d.]+)" class="note [ab]', drawn)
    marks = re.findall(r'cy="([\d.]+)"', drawn)
    assert len(labels) == 2
    assert max(map(float, labels)) < min(map(float, marks))


def test_waiting_is_no_processor_time():
    # A busy machine lets work wait. 0.3 s exceed the limit, the processor time of a sleep does not.
    with processor_limit(0.2):
        time.sleep(0.3)
    with pytest.raises(OutOfProcessorTime, match=r"after 0.2 s"), processor_limit(0.2):
        work_without_end()


def test_work_that_swallows_its_end_is_told_again():
    def swallow_once():
        # As a finaliser of Python does.
        with suppress(OutOfProcessorTime):
            work_without_end()
        work_without_end()

    with pytest.raises(OutOfProcessorTime), processor_limit(0.1):
        swallow_once()


def test_a_process_survives_work_that_runs_out_of_processor_time():
    async def processes():
        one = CapacityLimiter(1)
        before = await call(os.getpid, limiter=one, wall_s=300.0)
        with pytest.raises(WorkError, match=r"stopped after 0.2 s of processor time"):
            await call(work_without_end, limiter=one, wall_s=300.0, processor_s=0.2)
        return before, await call(os.getpid, limiter=one, wall_s=300.0)

    before, after = anyio.run(processes)
    assert before == after != os.getpid()


def test_an_option_that_runs_out_of_time_shows_what_it_has(client, monkeypatch):
    monkeypatch.setattr("stripesim.web.app.option_of", option_with_endless_durability)
    # An address that no other test asks for.
    page = client.get("/compare?a.hosts=9&a.osds_per_host=7").text
    (risk,) = re.findall(r'id="risk-a".*?</p>', page, re.S)
    assert states(risk, "stopped after 10 s of processor time, without durability")
    # Capacity is there: 9 hosts × 7 drives.
    assert "63 OSDs × " in page
    # It is not kept: the next request, of the same process, has all answers.
    monkeypatch.undo()
    assert 'id="risk-a"' not in client.get("/compare?a.hosts=9&a.osds_per_host=7").text


OBJECTS = """
schemes = ["rep:3", "rs:4,2"]
[cluster]
hosts = 8
osds_per_host = 2
pg_num = 64
[cluster.gateways]
count = 4
[workload]
kind = "s3"
ops = ["get", "put", "delete"]
op_shares = [60, 30, 10]
object_sizes_bytes = ["4k", "1MiB"]
size_shares = [3, 1]
requests = 500
"""


def test_options_for_objects_have_the_operations_and_sizes_of_the_scenario():
    base = parse_scenario(OBJECTS)
    values = state_of(base, {}).values["b"]
    # Shares in per cent, and (3 x 4 KiB + 1 MiB) / 4.
    shares = {op: values[op] for op in ("put", "get", "head", "list", "delete")}
    assert shares == {
        "put": "30", "get": "60", "head": "0", "list": "0", "delete": "10",
    }  # fmt: skip
    assert float(values["object_kib"]) == (3 * 4 + 1024) / 4
    found = option_of(base, values)
    assert found.problem_lines == []
    load = found.scenario.workload
    assert (load.kind, load.size_shares) == ("s3", (3, 1))
    assert dict(zip(load.ops, load.op_shares, strict=True)) == {
        "put": 30, "get": 60, "delete": 10,
    }  # fmt: skip
    assert found.answers.times_ns.keys() == {"put", "get", "delete"}
    assert found.answers.bounds[0].iops > 0


def test_a_typed_size_replaces_the_histogram_and_a_single_operation_has_no_share():
    base = parse_scenario(OBJECTS)
    typed = {"put": "0", "get": "0", "delete": "0", "head": "7"}
    typed |= {"object_kib": "64", "arrivals": BY_DEPTH}
    load = option_of(base, state_of(base, typed).values["a"]).scenario.workload
    assert (load.object_sizes_bytes, load.size_shares) == ((64 << 10,), None)
    assert (load.ops, load.op_shares, load.rate_per_s) == (("head",), None, None)


def test_without_stated_shares_all_operations_of_the_scenario_have_the_same():
    text = OBJECTS.replace("op_shares = [60, 30, 10]", "")
    state = state_of(parse_scenario(text), {})
    values = state.values["a"]
    # A third for each of get, put and delete, which the page marks as its guess.
    assert float(values["get"]) == pytest.approx(100 / 3, rel=1e-4)
    assert (values["get"], values["head"]) == (values["delete"], "0")
    assert {"get", "put", "delete"} <= state.guesses.keys()
    assert state.guesses.keys().isdisjoint({"head", "list", "object_kib"})
    assert "put" not in state_of(parse_scenario(OBJECTS), {}).guesses


def test_objects_without_an_operation_have_their_problem_at_a_share():
    base = parse_scenario(OBJECTS)
    none = dict.fromkeys(("put", "get", "head", "list", "delete"), "0")
    found = option_of(base, state_of(base, none).values["a"])
    assert found.scenario is None
    assert found.problems.by_field.keys() == {"put"}


def test_a_form_has_the_controls_of_its_load():
    of_images = {control.name for control in controls()}
    of_objects = {control.name for control in controls(kind=FormKind(is_s3=True))}
    assert of_images - of_objects == {"block_kib", "read_percent"}
    assert of_objects - of_images == {
        "object_kib", "put", "get", "head", "list", "delete",
    }  # fmt: skip
    # An address and a downloaded table name those of the load alone.
    state = state_of(parse_scenario(OBJECTS), {"list": "5", "read_percent": "5"})
    query = dict(parse_qsl(state.query, keep_blank_values=True))
    assert query["list"] == "5"
    assert "read_percent" not in query
    first = option_of(parse_scenario(OBJECTS), state.values["a"])
    options = dict.fromkeys(SIDES, first)
    rows = {row["number"]: row["A"] for row in option_rows(options, None)}
    assert rows["list"] == "5"
    assert "read_percent" not in rows


@pytest.mark.parametrize(
    ("op", "size"),
    # Lists take longest to simulate, and objects of one size show their rate with fewer requests.
    [("head", {}), ("list", {"object_kib": "64"}), ("delete", {})],
    ids=["head", "list", "delete"],
)
def test_each_operation_on_objects_has_a_curve(op, size):
    base = parse_scenario(OBJECTS)
    typed = {"put": "0", "get": "0", "delete": "0", op: "100", **size}
    scenario = option_of(base, state_of(base, typed).values["a"]).scenario
    points = list(
        run_small_experiment("curve", scenario, SETTINGS, should_stop=lambda: False)
    )
    (bound, *_) = bounds_of(scenario, "rep:3")
    assert points[-1]["saturation_iops"] == pytest.approx(bound.iops, rel=0.2)


def test_a_failure_with_objects_counts_the_groups_of_bucket_indexes():
    base = parse_scenario(OBJECTS)
    typed = {"rate_per_s": "50", "list": "10", "head": "10"}
    scenario = option_of(base, state_of(base, typed).values["a"]).scenario
    settings = Settings(failure="host", added_hosts=1, stored_bytes=1e9)
    (line,) = run_small_experiment(
        "failure", scenario, settings, should_stop=lambda: False
    )
    assert line["not_clean"][0] == 0
    assert max(line["not_clean"]) > 0.1
    assert min(line["not_clean"]) >= 0


def test_objects_without_any_operation_have_their_error_at_the_first_share(client):
    values = dict.fromkeys(("put", "get", "head", "list", "delete"), "0")
    page = client.get("/", params={"base": "s3", **values}).text
    assert "got 0 for each operation, wanted a share above 0" in page
    assert "got []" not in page

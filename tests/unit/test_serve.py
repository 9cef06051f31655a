"""The page of stripesim serve: right numbers, strict headers, nothing from the request reaches the disk."""

import re
import threading
import time
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="starlette is not installed (pip install stripesim[web])")
pytest.importorskip("httpx", reason="httpx is not installed (pip install stripesim[test])")

from starlette.testclient import TestClient

from stripesim.scenarios.schema.loader import parse_scenario
from stripesim.web import jobs as jobs_module
from stripesim.web.app import FORM_BYTES_MAX, UPLOAD_BYTES_MAX, create_app
from stripesim.web.jobs import Job, JobQueue, QueueFullError
from stripesim.web.state import SIDES, option_of, read_upload, toml_of

BASE = """
schemes = ["rep:3", "rs:4,2"]
[cluster]
hosts = 8
osds_per_host = 4
pg_num = 64
ssd = "nvme-tlc"
[workload]
requests = 200
image_bytes = "1GiB"
"""


@pytest.fixture(scope="module")
def client():
    return TestClient(create_app(parse_scenario(BASE)), base_url="http://127.0.0.1", follow_redirects=False)


def test_the_page_shows_both_options_and_their_difference(client):
    page = client.get("/").text
    assert "Option A" in page
    assert "Option B" in page
    # 32 OSDs of 3.84 TB.
    assert "123 TB" in page
    # RS(4,2) holds twice what three copies hold.
    assert "+100 %" in page
    assert not re.search(r"\s(on\w+|style)=", page)
    assert not re.search(r"(src|href)=\"https?:", page)


def test_capacity_is_that_of_the_arithmetic():
    base = parse_scenario(BASE)
    numbers = {n.key: n for n in option_of(base, {"a.hosts": "12", "a.drive_tb": "7.68"}, "a").numbers}
    raw = 12 * 4 * 7.68e12
    assert numbers["raw"].value == raw
    assert numbers["full"].value == pytest.approx(raw * 0.95 / 3)
    assert numbers["safe"].value == pytest.approx(raw * 11 / 12 * 0.85 / 3)
    assert numbers["nines"].value > 1
    assert all(n.why and n.source and n.range for n in numbers.values())


def test_typing_changes_the_results_and_the_address(client):
    answer = client.get("/compare", params={"a.hosts": "16", "b.scheme": "rs:6,2"})
    assert "246 TB" in answer.text
    assert "a.hosts=16" in answer.headers["HX-Push-Url"]
    again = client.get(answer.headers["HX-Push-Url"]).text
    assert 'name="a.hosts" value="16"' in again
    assert 'value="rs:6,2"' in again


def test_what_cannot_be_is_said_beside_the_other_option(client):
    page = client.get("/compare", params={"a.hosts": "2", "b.ssd": "../../etc/passwd"}).text
    assert "3 shards" in page
    assert "wanted one of" in page
    assert "got &#39;-5&#39;, wanted 1 to 200" in client.get("/compare", params={"a.hosts": "-5"}).text
    assert "wanted a whole number" in client.get("/compare", params={"a.hosts": "4.5"}).text


@pytest.mark.parametrize("path", ["/", "/compare", "/static/htmx.min.js", "/nowhere", "/download/a.toml"])
def test_every_answer_has_strict_headers(client, path):
    headers = client.get(path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


def test_what_is_typed_comes_back_escaped(client):
    page = client.get("/", params={"a.scheme": "<script>alert(1)</script>", "problem": "<b>x"}).text
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
    assert "&lt;b&gt;x" in page


def test_other_hosts_and_other_sites_are_refused(client):
    assert client.get("/", headers={"host": "evil.example"}).status_code == 400
    assert client.post("/simulate", headers={"origin": "http://evil.example"}).status_code == 403


@pytest.mark.parametrize("name", ["../app.py", "..%2f..%2fsetup.cfg", "serve.css.bak"])
def test_static_files_are_those_listed(client, name):
    assert client.get(f"/static/{name}").status_code == 404


def test_an_uploaded_scenario_is_the_base(client):
    answer = client.post("/upload", files={"file": ("x.toml", BASE.replace("hosts = 8", "hosts = 9"))})
    assert answer.status_code == 303
    page = client.get(answer.headers["location"]).text
    assert 'name="a.hosts" value="9"' in page


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('schemes = ["rep:3"]\n[cluster]\ncrush_map = "/etc/passwd"\n', "crush_map"),
        ('schemes = ["rep:3"]\n[workload]\ntrace = "/etc/passwd"\n', "trace"),
        ('schemes = ["rep:3"]\n[cluster]\nssd = "../../x"\n', "does not ship"),
        ('schemes = ["rep:3"]\n[cluster]\nkernel_table = "../../x"\n', "does not ship"),
        ("not toml", "scenario"),
    ],
)
def test_an_upload_names_no_file(client, text, problem):
    with pytest.raises(ValueError, match=problem):
        read_upload(text)
    answer = client.post("/upload", files={"file": ("x.toml", text)})
    assert answer.status_code == 303
    assert "problem=" in answer.headers["location"]


def test_an_upload_is_bounded(client):
    answer = client.post("/upload", files={"file": ("x.toml", b"#" * (UPLOAD_BYTES_MAX + 1))})
    assert answer.status_code == 413


def test_a_report_is_the_base(client):
    folder = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "cluster-state"
    found = sorted(folder.rglob("*ceph_report"))
    if not found:
        pytest.skip("no ceph report in ../shared/data/cluster-state")
    answer = client.post("/upload", files={"file": ("x.json", found[0].read_bytes())})
    assert answer.status_code == 303
    page = client.get(answer.headers["location"]).text
    assert "What was read from the report" in page
    assert "Usable with the largest domain gone" in page


def test_what_is_no_report_is_said(client):
    answer = client.post("/upload", files={"file": ("x.json", b'{"a": 1}')})
    assert answer.status_code == 303
    assert "problem=" in answer.headers["location"]
    assert "stripesim-" not in answer.headers["location"]


def test_downloads_are_what_the_page_shows(client):
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
    assert "Two options compared" in report
    assert client.get("/download/other", params=query).status_code == 404


def test_a_spreadsheet_takes_nothing_typed_for_a_formula(client):
    table = client.get("/download/compare.csv", params={"a.scheme": "=1+1"}).text
    assert "'=1+1" in table


def test_a_simulation_streams_rows_and_ends(client):
    answer = client.post("/simulate", data={"rate_per_s": "100", "block_kib": "4"})
    found = re.search(r'hx-get="(/job/[\w-]+)"', answer.text)
    assert found
    deadline = time.monotonic() + 150
    while time.monotonic() < deadline:
        page = client.get(found[1]).text
        if "hx-trigger" not in page:
            break
        time.sleep(0.5)
    assert "Done: 6 of 6 runs" in page
    assert "serves the rate" in page


def test_the_queue_is_bounded(monkeypatch):
    hold = threading.Event()
    monkeypatch.setattr(JobQueue, "_run", lambda _self, job: (hold.wait(20), setattr(job, "state", "done")))
    queue = JobQueue()
    first = queue.submit({"a": ""})
    while first.state == "waiting":
        time.sleep(0.01)
    for _ in range(jobs_module.WAITING_MAX):
        queue.submit({"a": ""})
    with pytest.raises(QueueFullError):
        queue.submit({"a": ""})
    hold.set()


def test_a_job_ends_at_its_limit():
    job = Job({"a": toml_of(parse_scenario(BASE))})
    JobQueue(wall_s_max=0.01)._run(job)
    assert job.state == "failed"
    assert "ended after" in job.problem


def test_sides_are_two():
    assert SIDES == ("a", "b")


def test_a_form_is_bounded_whatever_length_it_claims(client):
    def parts():
        for _ in range(5):
            yield b"a.scheme=" + b"x" * FORM_BYTES_MAX

    # Sent in pieces, so that no length is stated beforehand.
    kind = {"content-type": "application/x-www-form-urlencoded"}
    assert client.post("/simulate", content=parts(), headers=kind).status_code == 413

"""`stripesim load`: the JSON contract, files and error messages."""

import json

import pytest

pytestmark = pytest.mark.usefixtures("two_replications")

SCENARIO = """\
schemes = ["rep:3", "rs:4,2"]

[cluster]
hosts = 4
osds_per_host = 2
pg_num = 32
failure_domain_erasure = "osd"

[workload]
ops = ["read"]
patterns = ["rand"]
block_sizes_bytes = ["4k"]
requests = 100
image_bytes = "1GiB"
"""
TRACE = """\
[workload]
kind = "trace"
trace = "t.csv"
"""
MSR_ROW = "128166372000000000,host,0,Read,0,4096,1000\n"


@pytest.fixture
def command(command, monkeypatch, tmp_path):
    """Call the command line in a separate folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(SCENARIO, encoding="utf-8")
    (tmp_path / "t.csv").write_text(MSR_ROW * 3, encoding="utf-8")
    (tmp_path / "trace.toml").write_text(
        SCENARIO.partition("[workload]")[0] + TRACE, encoding="utf-8"
    )

    return command


@pytest.mark.usefixtures("quick_figures")
def test_json_is_the_documented_contract_and_files_are_written(command, tmp_path):
    status, out, err = command(
        "load", "s.toml", "--p99", "5ms", "--p99", "1ns", "--jobs", "1", "--requests", "200", "--json", "-",
        "--out", "curves", "--report",
    )  # fmt: skip

    assert status == 0, err
    document = json.loads(out)
    assert [curve["scheme"] for curve in document["curves"]] == ["rep:3", "rs:4,2"]
    for curve in document["curves"]:
        assert curve["points"][0]["offered_iops"] < 0.2 * curve["saturation_iops"]
        assert curve["points"][-1]["offered_iops"] > curve["saturation_iops"]
        assert curve["knee_iops"] < curve["saturation_iops"]
        for point in curve["points"]:
            assert {"offered_iops", "iops", "latency_p50_ns", "latency_p99_ns"} <= set(
                point
            )
            assert 0 < point["latency_p50_ns"] <= point["latency_p99_ns"]
        impossible, possible = curve["p99_bounds"]
        assert impossible["iops"] is None
        assert 0 < possible["iops"] < curve["saturation_iops"]
    names = {path.name for path in (tmp_path / "curves").iterdir()}
    assert {"load.json", "load.csv", "load.svg", "load.png", "report.html"} <= names
    lines = (tmp_path / "curves" / "load.csv").read_text("utf-8").splitlines()
    assert len(lines) == 1 + sum(len(curve["points"]) for curve in document["curves"])
    page = (tmp_path / "curves" / "report.html").read_text("utf-8")
    assert "Latency over throughput" in page
    assert "<svg" in page


def test_a_width_gives_figures_for_a_paper(command, tmp_path):
    arguments = ("--set", "schemes=rep:3", "--requests", "100", "--jobs", "1")

    status, _, err = command(
        "load", "s.toml", *arguments, "--out", "paper", "--width", "3.5in"
    )

    assert status == 0, err
    names = {path.name for path in (tmp_path / "paper").glob("load.*")}
    assert names == {"load.json", "load.csv", "load.pdf", "load.svg", "load.tex"}
    # 3.5 inches of 72 points
    assert 'width="252pt"' in (tmp_path / "paper" / "load.svg").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("s.toml", "--p99", "5"), "--p99: got '5', wanted "),
        (("s.toml", "--p99", "0ms"), "--p99: got '0ms', wanted "),
        (("s.toml", "--p99", "-1ms"), "--p99: got '-1ms', wanted "),
        (("s.toml", "--report"), "--report: got no --out, wanted "),
        (("trace.toml",), "trace.toml:10: workload.kind: got trace, wanted "),
        (("durability",), "durability.toml:1: workload: got nothing, wanted "),
        (("s.toml", "--set", "cluster.hosts=2"), "s.toml"),
    ],
)
def test_bad_input_ends_with_status_2_and_one_line(command, arguments, line):
    status, out, err = command("load", *arguments)

    assert (status, out) == (2, "")
    assert line in err.splitlines()[0]
    assert "Traceback" not in err


@pytest.mark.usefixtures("quick_rebuilds", "quick_figures")
def test_a_run_shows_the_curve_in_its_report_if_asked(command, monkeypatch, tmp_path):
    arguments = ("s.toml", "--set", "schemes=rep:3", "--out", "run", "--report")
    monkeypatch.setattr(
        "stripesim.scenarios.answers.load.curve_builder._REQUESTS_MIN", 300
    )
    monkeypatch.setattr(
        "stripesim.scenarios.answers.load.curve_builder._REQUESTS_PER_OSD", 1
    )
    monkeypatch.setattr("stripesim.scenarios.work.pool.cores_usable", lambda: 1)

    status, _, err = command("run", *arguments, "--load")

    assert status == 0, err
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert 'id="load-curves"' in page
    status, _, err = command("run", "s.toml", "--load")
    assert status == 2
    assert err.startswith("--load: got no --report, wanted ")

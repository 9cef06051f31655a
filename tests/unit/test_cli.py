"""The command line: its output, its imports and its error messages."""

import json
import subprocess
import sys

import numpy as np
import pytest

from stripesim.__main__ import main
from stripesim.cli.output import warn_outside
from stripesim.models.problems import Problem
from support.messages import states

SCENARIO = """\
generation = "kraken"
schemes = ["rep:3"]

[cluster]
hosts = 4
osds_per_host = 2
pg_num = 16
failure_domain_erasure = "osd"
parameters = "kraken"
drive = "intel-730"
cores_per_host = 24
public_gbit_per_s = 10.0
private_gbit_per_s = 10.0

[workload]
ops = ["write"]
patterns = ["rand"]
block_sizes_bytes = ["4k"]
queue_depth = 4
requests = 40
image_bytes = "64MiB"
"""
MSR_ROW = "1281663720000{0:05d},host,0,Read,{1},4096,1000\n"


@pytest.fixture
def run(command, monkeypatch, tmp_path):
    """Call the command line in a separate folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STRIPESIM_DEBUG", raising=False)
    (tmp_path / "s.toml").write_text(SCENARIO, encoding="utf-8")
    return command


@pytest.fixture
def refused(run):
    """Run what must be refused: status 2, nothing on standard output, no traceback; return the lines."""

    def call(*arguments):
        status, out, err = run(*arguments)
        assert (status, out) == (2, ""), err
        assert "Traceback" not in err
        lines = err.splitlines()
        assert lines and all(line.strip() for line in lines)
        return lines

    return call


def sets(*overrides):
    return [part for override in overrides for part in ("--set", override)]


# Output.


def test_range_warnings_are_counted_on_the_terminal_and_listed_in_the_document(
    run,
):
    status, _, err = run("run", "s.toml")
    assert status == 0
    (line,) = [line for line in err.splitlines() if line.startswith("warning")]
    assert states(
        line, "2 ... cluster.osds_per_host, workload.queue_depth ... --report"
    )
    _, out, err = run("run", "s.toml", "--json", "-")
    assert err == ""
    document = json.loads(out)["warnings"]
    assert [line.split(": ")[0] for line in document] == [
        "cluster.osds_per_host",
        "workload.queue_depth",
    ]


def test_one_warning_is_printed_in_full_and_several_refer_to_the_report(
    capsys, tmp_path
):
    warn_outside([])
    assert capsys.readouterr().err == ""
    warn_outside([Problem(key="repair", detail="never seen")])
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(": repair: never seen")
    page = tmp_path / "report.html"
    named = (("repair", "one"), ("repair", "two"), ("faults", "three"))
    warn_outside([Problem(key=key, detail=said) for key, said in named], page=page)
    (line,) = capsys.readouterr().err.splitlines()
    assert states(line, f"3 ... repair, faults ... {page}")


def test_a_sweep_has_a_report_too(run, refused, tmp_path):
    asked = ("sweep", "s.toml", "--over", "workload.queue_depth=2,4", "--jobs", "1")
    status, out, _ = run(*asked, "--out", "kept", "--report", "--json", "-")
    assert status == 0
    page = (tmp_path / "kept" / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    # The explorer's data and its script, which loads nothing
    assert page.count("<script") == 2
    assert "<script>" in page and "src=" not in page
    for line in json.loads(out)["warnings"]:
        assert line.split(":")[0] in page
    # The explorer's plot, and the figure that is also in a file
    assert page.count("<figure") == 2 and "workload.queue_depth" in page
    assert page.count(">rand<") == len(json.loads(out)["aggregated"]) == 2
    (line,) = refused(*asked, "--report")
    assert states(line, "--report: got ... --out")


def test_a_width_needs_a_folder_and_a_unit(refused):
    commands = (
        ("run", "s.toml"),
        ("sweep", "s.toml"),
        ("study", "dachary2013"),
        ("load", "s.toml"),
    )
    for command in commands:
        (line,) = refused(*command, "--width", "3.5", "--out", "kept")
        assert states(line, "--width: got '3.5' ... 2in to 12in")
        (line,) = refused(*command, "--width", "3.5in")
        assert states(line, "--width: got ... --out")


@pytest.mark.usefixtures("quick_rebuilds", "quick_figures")
def test_a_report_is_written_next_to_the_results(run, tmp_path):
    status, out, err = run("run", "s.toml", "--out", "kept", "--report", "--json", "-")
    assert (status, err) == (0, "")
    page = (tmp_path / "kept" / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert json.loads(out)["provenance"]["scenario"] in page


def test_a_report_needs_a_folder(refused):
    (line,) = refused("run", "s.toml", "--report")
    assert states(line, "--report: got ... --out")


def test_json_is_one_document_with_the_promised_keys(run):
    status, out, err = run("run", "s.toml", "--json", "-")
    assert (status, err) == (0, "")
    document = json.loads(out)
    assert {
        "provenance",
        "rows",
        "completions_sha256",
        "requests",
        "uses",
        "engine_wall_s",
    } <= document.keys()
    (row,) = document["rows"]
    assert {
        "scheme",
        "op",
        "pattern",
        "block_size_bytes",
        "iops",
        "throughput_bytes_per_s",
        "latency_mean_ns",
        "latency_p99_ns",
        "device_read_bytes_per_client_byte",
        "device_write_bytes_per_client_byte",
        "private_net_bytes_per_client_byte",
        "cpu_ns_per_op",
        "context_switches_per_op",
        "bottleneck",
    } <= row.keys()
    assert (row["scheme"], row["op"], row["pattern"], row["block_size_bytes"]) == (
        "rep:3",
        "write",
        "rand",
        4096,
    )
    assert document["requests"] == row["requests"] == 40
    assert document["uses"] > 40
    assert len(document["completions_sha256"]) == 64
    said = {
        "stripesim",
        "scenario",
        "scenario_sha256",
        "seed",
        "engine",
        "parameters",
        "kernel_table",
        "kernel_cpu",
    }
    assert said <= document["provenance"].keys()


def test_both_engines_print_the_same_rows(run):
    values = {}
    for engine in ("compiled", "simpy"):
        _, out, _ = run("run", "s.toml", "--engine", engine, "--json", "-")
        document = json.loads(out)
        values[engine] = document["completions_sha256"], document["uses"]
        assert document["provenance"]["engine"] == engine
    assert values["compiled"] == values["simpy"]


def test_seed_and_set_reach_the_run(run):
    documents = [
        json.loads(run("run", "s.toml", *more, "--json", "-")[1])
        for more in ((), ("--seed", "5"), sets("seed=5"), sets("workload.requests=70"))
    ]
    plain, seeded, set_seed, short = documents
    assert (
        seeded["completions_sha256"]
        == set_seed["completions_sha256"]
        != plain["completions_sha256"]
    )
    assert seeded["provenance"]["seed"] == 5
    assert short["requests"] == 70


def test_json_to_a_file_leaves_the_table_on_standard_output(run, tmp_path):
    # A folder that is missing is made, as for --out.
    told = tmp_path / "new" / "told.json"
    status, out, _ = run("run", "s.toml", "--json", told)
    assert status == 0 and "rep:3" in out
    assert json.loads(told.read_text())["requests"] == 40


def test_an_unusable_file_for_json_is_reported_before_any_work(run, monkeypatch):
    monkeypatch.setattr("stripesim.scenarios.answers.run.execute.run_cells", None)
    _, _, err = run("run", "s.toml", "--json", "s.toml/told.json")
    assert "--json: got s.toml/told.json" in err


def test_a_run_without_one_completion_is_valid_json(run):
    status, out, _ = run(
        "run", "s.toml", *sets("workload.duration_s=1e-6"), "--json", "-"
    )
    assert status == 0
    (row,) = json.loads(out)["rows"]
    assert row["requests"] == 0 and row["iops"] is None


@pytest.mark.usefixtures("quick_figures")
def test_results_land_in_the_folder(run, tmp_path):
    status, out, _ = run("run", "s.toml", "--out", tmp_path / "out", "--json", "-")
    assert status == 0 and json.loads(out)
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"results.parquet", "results.csv", "provenance.json"} <= written


def test_trace_info_as_json(run, tmp_path):
    (tmp_path / "t.csv").write_text(
        "".join(MSR_ROW.format(i, 4096 * i) for i in range(10))
    )
    status, out, _ = run("trace", "info", "t.csv", "--json", "-")
    document = json.loads(out)
    assert status == 0
    assert {
        "format",
        "requests",
        "read_ratio",
        "bytes_mean",
        "bytes_p50",
        "bytes_p90",
        "duration_s",
    } <= document.keys()
    assert (document["format"], document["requests"], document["read_ratio"]) == (
        "msr",
        10,
        1.0,
    )


def test_trace_info_of_a_real_trace(run, data):
    status, out, _ = run(
        "trace", "info", data / "block-traces/msr-cambridge1-sample.csv", "--json", "-"
    )
    assert status == 0 and json.loads(out)["requests"] == 1000


def test_crush_prints_what_crushtool_printed(run, data):
    import gzip

    options = ("--rule", "3", "--num-rep", "9", "--min-x", "0", "--max-x", "63")
    status, out, _ = run(
        "crush", data / "ceph16/crush/A.decompiled.txt", *options, "--json", "-"
    )
    assert status == 0
    mappings = json.loads(out)["mappings"]
    with gzip.open(data / "ceph16/crush/mapA.rule3.n9.full.txt.gz", "rt") as file:
        expected = [
            line.split() for line in file if line.startswith("CRUSH rule 3 x ")
        ][:64]
    assert mappings == [[int(words[4]), json.loads(words[5])] for words in expected]
    _, text, _ = run("crush", data / "ceph16/crush/A.decompiled.txt", *options)
    assert [line.split() for line in text.splitlines()] == expected


def test_a_crush_map_gives_the_host_of_each_osd(run, data):
    crush = f"cluster.crush_map={data / 'ceph16/crush/A.decompiled.txt'}"
    # Map A is 4 hosts of 6: more OSDs than the counts in the scenario's file, which it replaces.
    status, out, _ = run("run", "s.toml", *sets(crush), "--json", "-")
    assert (status, len(json.loads(out)["rows"])) == (0, 1)
    _, out, _ = run("run", "s.toml", *sets(crush, 'schemes="rs:10,4"'), "--json", "-")
    (row,) = json.loads(out)["rows"]
    # Of 13 other shards those on the primary's host, 2 to 5 of its 6 OSDs, need no wire.
    assert row["private_net_bytes_per_client_byte"] > 0


def test_help_promises_parameters_only_where_they_can_be_set(run):
    _, of_run, _ = run("run", "--help")
    _, of_study, _ = run("study", "koh2017", "--help")
    assert "Override a scenario key:" in of_run
    assert "Override a parameter" in of_study


def test_version_and_help(run):
    assert run("--version")[:2] == (0, f"{__import__('stripesim').__version__}\n")
    status, out, _ = run("--help")
    assert status == 0 and all(
        word in out for word in ("run", "study", "kernel", "trace", "crush")
    )
    for command in ("run", "study", "kernel", "crush"):
        assert run(command, "--help")[0] == 0


@pytest.mark.parametrize("group", [[], ["trace"], ["import"]])
def test_a_group_alone_shows_its_help_and_does_not_refer_to_it(run, group):
    status, out, err = run(*group)
    helped = run(*group, "--help")[1]
    assert (status, out) == (2, "")
    assert err.strip() == helped.strip()


def test_python_m_gives_the_same_errors(tmp_path):
    command = [sys.executable, "-m", "stripesim", "run", "nothere"]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("nothere: got no scenario of this name")


# Errors: one line for each fault.


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (
            ["workload.request=5"],
            'workload.request: got unknown key "request" ... "requests"',
        ),
        (
            ["workload.requests=many"],
            'workload.requests: got "many"',
        ),
        (
            ["workload.requests=0"],
            "workload.requests: got 0 ... 1",
        ),
        (
            ["workload.queue_depth=2.5"],
            "workload.queue_depth: got 2.5",
        ),
        (['cluster.hosts="four"'], 'cluster.hosts: got "four"'),
        (['schemes="raid:5"'], "schemes: got"),
        (
            ['schemes="rs:6,3"', "cluster.failure_domain_erasure=host"],
            "schemes: got rs:6,3 (9 shards) with failure_domain host (4 hosts)",
        ),
        (
            ['schemes="rs:6,3"'],
            "schemes: got rs:6,3 (9 shards) with failure_domain osd (8 osds)",
        ),
        (["cluster.kernel_table=nope"], "kernel table: got 'nope'"),
        (
            ["cluster.parameters=nope"],
            'got "nope"',
        ),
        (["cluster.drive=nope"], 'got "nope", wanted a device: '),
        (["cluster.drive=koh2017"], 'got "koh2017", wanted a device: '),
        (['schemes="shec:5,3,2"'], "no encode of shec:5,3,2"),
        (
            ["cluster.crush_map=nothere.txt"],
            "cluster.crush_map: got nothere.txt (no such file)",
        ),
        (
            ["repair.lost_osds=99"],
            "repair.lost_osds: got 99 ... 0 ... 7",
        ),
        (["degraded.missing_osds=[0, 2, 4]"], "3 hosts"),
        (["seed=-1"], "seed: got -1 ... 0"),
        (["nonsense"], 'got no "="'),
    ],
)
def test_a_bad_scenario_is_reported_in_one_line(refused, overrides, said):
    (line,) = refused("run", "s.toml", *sets(*overrides))
    assert states(line, said)


def test_faults_in_a_file_are_reported_together_with_their_lines(refused, tmp_path):
    text = SCENARIO.replace("hosts = 4", "hosts = -4").replace(
        "queue_depth = 4", "queue_dept = 4"
    )
    (tmp_path / "bad.toml").write_text(text.replace('["rand"]', '["rand", "zigzag"]'))
    lines = refused("run", "bad.toml", "--json", "-")
    assert [line.split(": ")[0] for line in lines] == [
        "bad.toml:5",
        "bad.toml:17",
        "bad.toml:19",
    ]
    assert states(lines[0], "cluster.hosts: got -4 ... 1")
    assert 'got "zigzag"' in lines[1]
    assert states(lines[2], '"queue_dept" ... "queue_depth"')


def test_a_faulty_list_is_reported_once_with_no_follow_up_faults(refused):
    (line,) = refused("run", "s.toml", *sets('workload.patterns=["zigzag"]'))
    assert 'got "zigzag"' in line


def test_schemes_without_kernel_costs_are_reported_before_any_run(refused):
    lines = refused(
        "run", "s.toml", *sets('schemes=["rep:3", "shec:5,3,2", "shec:4,2,2"]')
    )
    assert len(lines) == 2
    assert (
        "no encode of shec:5,3,2" in lines[0] and "no encode of shec:4,2,2" in lines[1]
    )


def test_reading_needs_no_kernel_costs(run):
    status, out, _ = run(
        "run", "s.toml", *sets('schemes="rs:5,2"', 'workload.ops="read"'), "--json", "-"
    )
    assert status == 0 and json.loads(out)["requests"] == 40


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "nothere"], "nothere: got no scenario of this name"),
        (["run", "quickstar"], '"quickstart"'),
        (["run", "nothere.toml"], "nothere.toml: got no such file"),
        (["run"], "Missing argument"),
        (
            ["run", "s.toml", "--engine", "steam"],
            "'steam' is not one of 'compiled', 'simpy'",
        ),
        (["run", "s.toml", "--seed", "x"], "--seed"),
        (["run", "s.toml", "--nope"], "No such option"),
        (["study", "nope"], "No such command 'nope'"),
        (
            ["kernel", "--scheme", "rs:6,3", "--size", "4k", "--backend", "nope"],
            "backend: got 'nope'",
        ),
        (["kernel", "--scheme", "rs:6"], "scheme: got 'rs:6' ... rs:k,m"),
        (["kernel", "--scheme", "rs:2,1", "--size", "big"], "big"),
        (["trace", "info", "nothere.csv"], "nothere.csv"),
        (["crush", "nothere.txt", "--rule", "0", "--num-rep", "3"], "nothere.txt"),
        (
            ["run", "s.toml", "--json", "s.toml/told.json"],
            "--json: got s.toml/told.json (s.toml is a file)",
        ),
        (["run", "s.toml", "--json", "."], "--json: got . (a folder)"),
        (
            ["crush", "m.txt", "--rule", "0", "--num-rep", "3", "--json", "."],
            "--json: got . (a folder)",
        ),
        (["explain", "write", "--html", "-"], "--html: got -"),
        (["explain", "write", "--html", "."], "--html: got ... ."),
        (["explain", "write", "--out", "s.toml"], "--out: got s.toml"),
        (["kernel", "--scheme", "rs:2,1", "--size", "1m"], "--size: got '1m'"),
        (
            ["study", "koh2017", "--set", "write.network_efficiency_fraction=0.9"],
            "--set: write.network_efficiency_fraction: got ... koh2017",
        ),
        (["run", "s.toml", "--set", "nothing.here=1"], "--set: nothing: got unknown"),
        (["cook"], "No such command 'cook'"),
        (["import", "-"], "import: got -, wanted ceph-report"),
    ],
)
def test_a_bad_command_is_reported_in_one_line(refused, arguments, said):
    (line,) = refused(*arguments)
    assert states(line, said)


TRACE = ["workload.kind=trace", "workload.trace=t.csv"]


@pytest.fixture
def replayed(tmp_path):
    """Write a trace and a scenario that replays it."""

    def write(content):
        text = 'schemes = ["rep:3"]\n[cluster]\npg_num = 16\n[workload]\nkind = "trace"\ntrace = "t.csv"\n'
        (tmp_path / "t.toml").write_text(text)
        (tmp_path / "t.csv").write_bytes(content)
        return "t.toml"

    return write


GOOD = "".join(MSR_ROW.format(index, 4096 * index) for index in range(50)).encode()


def test_a_good_trace_is_replayed(run, replayed):
    status, out, err = run("run", replayed(GOOD), "--json", "-")
    assert status == 0, err
    assert json.loads(out)["requests"] == 50


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "t.csv: got an empty file"),
        (GOOD[:-40], "t.csv:50: got"),
        (
            b"once upon a time\n",
            "t.csv:1: got 'once upon a time'",
        ),
        (b"\x00\x01\x02\x03" * 100, "t.csv"),
    ],
    ids=["empty", "truncated", "no trace", "binary"],
)
def test_a_bad_trace_is_reported_in_one_line(refused, replayed, content, said):
    (line,) = refused("run", replayed(content))
    assert states(line, said)


def test_a_truncated_compressed_trace_is_reported(refused, replayed, tmp_path):
    import gzip

    scenario = replayed(GOOD)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(GOOD)[:-20])
    lines = refused("run", scenario, *sets("workload.trace=t.csv.gz"))
    assert any("breaks off" in line for line in lines)


def test_a_trace_of_another_format_is_reported(refused, replayed):
    lines = refused("run", replayed(GOOD), *sets("workload.trace_format=blkparse"))
    assert "t.csv" in lines[0] and "wanted" in lines[0]
    (line,) = refused("run", replayed(GOOD), *sets("workload.trace_format=papyrus"))
    assert "papyrus" in line


def test_a_missing_trace_is_reported(refused, replayed):
    (line,) = refused("run", replayed(GOOD), *sets("workload.trace=gone.csv"))
    assert "workload.trace: got gone.csv (no such file)" in line


CRUSH = """\
device 0 osd.0
device 1 osd.1
type 0 osd
type 1 host
type 2 root
host a {
	id -1
	alg straw2
	hash 0
	item osd.0 weight 1.000
}
host b {
	id -2
	alg straw2
	hash 0
	item osd.1 weight 1.000
}
root all {
	id -3
	alg straw2
	hash 0
	item a weight 1.000
	item b weight 1.000
}
rule rep {
	id 0
	type replicated
	step take all
	step chooseleaf firstn 0 type host
	step emit
}
"""


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        (
            CRUSH.replace("item b weight", "item c weight"),
            (),
            "m.txt:23: got unknown item 'c'",
        ),
        (CRUSH.replace("step take all", "step take none"), (), "m.txt:28: got"),
        (
            CRUSH,
            ("cluster.crush_rule=gone",),
            "cluster.crush_rule: got gone ... m.txt ... rep",
        ),
        (
            CRUSH.replace("rule rep {", "rule mine {"),
            (),
            "cluster.crush_rule: got nothing ... rep:3: mine",
        ),
        (CRUSH, (), "2 ... 3 ... rep:3"),
        (
            CRUSH,
            ('schemes="rep:2"', "degraded.missing_osds=7"),
            "got no OSD 7",
        ),
        (
            CRUSH.replace("host", "shelf"),
            ('schemes="rep:2"',),
            "got ... host",
        ),
        ("", (), "m.txt"),
        ("\x00\x00\x01", (), "m.txt"),
    ],
)
def test_a_bad_crush_map_is_reported_in_one_line(refused, tmp_path, text, more, said):
    (tmp_path / "m.txt").write_text(text)
    (line,) = refused("run", "s.toml", *sets("cluster.crush_map=m.txt", *more))
    assert states(line, said)


def test_a_good_crush_map_is_used(run, tmp_path):
    (tmp_path / "m.txt").write_text(CRUSH)
    status, out, err = run(
        "run",
        "s.toml",
        *sets("cluster.crush_map=m.txt", 'schemes="rep:2"'),
        "--json",
        "-",
    )
    assert status == 0, err
    assert json.loads(out)["rows"][0]["private_net_bytes_per_client_byte"] > 1


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--rule", "gone", "--num-rep", "2"], "rule: got 'gone'"),
        (["--rule", "rep", "--num-rep", "0"], "num_rep: got 0"),
        (
            ["--rule", "rep", "--num-rep", "2", "--min-x", "5", "--max-x", "4"],
            "--max-x: got 4",
        ),
        (
            ["--rule", "rep", "--num-rep", "2", "--weight", "0:1"],
            "--weight: got '0:1'",
        ),
        (["--rule", "--1", "--num-rep", "2"], "--1"),
        (["--rule", "²", "--num-rep", "2"], "rule: got '²'"),
        (
            ["--rule", "rep", "--num-rep", "5000"],
            "num_rep: got 5000 ... 1 ... 4096",
        ),
        (
            ["--rule", "rep", "--num-rep", "2", "--max-x", "9" * 23],
            "--max-x: got 99999999999999999999999 ... -2147483648 ... 4294967295",
        ),
        (
            ["--rule", "rep", "--num-rep", "2", "--min-x", "-2147483649"],
            "--min-x: got -2147483649",
        ),
        (["--rule", "rep", "--num-rep", "2", "--weight", "9=1"], "got OSD 9"),
        (["--rule", "rep", "--num-rep", "2", "--weight", "0=2"], "got 2.0 for OSD 0"),
    ],
)
def test_crush_refuses_in_one_line(refused, tmp_path, more, said):
    (tmp_path / "m.txt").write_text(CRUSH)
    (line,) = refused("crush", "m.txt", *more)
    assert states(line, said)


def test_a_weight_is_one_word_or_two(run, tmp_path):
    (tmp_path / "m.txt").write_text(CRUSH)
    question = ("crush", "m.txt", "--rule", "rep", "--num-rep", "1", "--json", "-")
    plain, *weighted = (
        json.loads(run(*question, *more)[1])["mappings"]
        for more in (
            (),
            ("--weight", "0", "0.5"),
            ("--weight", "0=0.5"),
            ("--weight", "0 .5"),
        )
    )
    assert weighted[0] == weighted[1] == weighted[2] != plain


def test_a_range_without_end_prints_as_it_goes(tmp_path):
    (tmp_path / "m.txt").write_text(CRUSH)
    command = [
        sys.executable,
        "-m",
        "stripesim",
        "crush",
        "m.txt",
        "--rule",
        "rep",
        "--num-rep",
        "1",
    ]
    with subprocess.Popen(
        [*command, "--max-x", str(2**32 - 1)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout.readline().startswith("CRUSH rule 0 x 0 [")
        running.stdout.close()
        assert running.wait(timeout=60) in (1, 141)


def test_a_bug_is_not_dressed_up_as_a_users_error(monkeypatch, run):
    from stripesim.scenarios.schema import scenario

    def broken(*_arguments, **_options):
        raise AssertionError("an invariant")

    monkeypatch.setattr(scenario, "load_scenario", broken)
    monkeypatch.setattr(sys, "argv", ["stripesim", "run", "s.toml"])
    with pytest.raises(AssertionError, match="an invariant"):
        main()


def test_debugging_shows_the_traceback(monkeypatch, tmp_path):
    monkeypatch.setenv("STRIPESIM_DEBUG", "1")
    monkeypatch.setattr(sys, "argv", ["stripesim", "run", "nothere"])
    with pytest.raises(ValueError, match="got no scenario"):
        main()


@pytest.mark.parametrize("date", ["x", "", "-5", "1e9", "9" * 30])
def test_a_date_that_libraries_cannot_read_is_refused(monkeypatch, refused, date):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", date)
    (line,) = refused("run", "s.toml")
    assert line.startswith("SOURCE_DATE_EPOCH: got ")


def test_a_date_that_libraries_can_read_is_taken(monkeypatch, run):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert run("run", "s.toml")[0] == 0


def test_without_machine_code_only_the_compiled_engine_is_refused(monkeypatch, run):
    monkeypatch.setattr("numba.core.config.DISABLE_JIT", True)
    status, _, err = run("run", "s.toml")
    assert status == 2
    assert err.startswith("NUMBA_DISABLE_JIT: got 1, wanted")


def test_memory_that_runs_out_is_one_line(monkeypatch, run):
    from stripesim.scenarios.schema import scenario

    def allocate(*_arguments, **_options):
        # 2⁶² bytes: more than any address space has.
        return np.zeros(2**59, dtype=np.float64)

    monkeypatch.setattr(scenario, "load_scenario", allocate)
    status, out, err = run("run", "s.toml")
    assert (status, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert "memory" in err


# A bound in time keeps the run from being lengthened.
SHORT = ("s.toml", "--set", "workload.duration_s=0.0012")


def test_a_row_that_fails_the_audit_is_withheld_with_status_3(run):
    status, out, err = run("run", *SHORT, "--json", "-")
    assert status == 3
    # 8 rounds of 4 requests in flight.
    (line,) = [line for line in err.splitlines() if line.startswith("refused")]
    assert states(line, "rep:3 write rand 4KiB: Run length: got ... 32")
    document = json.loads(out)
    (row,) = document["rows"]
    assert row["iops"] is None and row["latency_mean_ns"] is None
    assert 0 < row["requests"] < 32
    assert row["refused"] == line.partition("4KiB: ")[2]
    assert document["latencies"] == document["resources"] == []
    assert any(row["refused"] in warning for warning in document["warnings"])


def test_a_refused_row_has_no_limits_rather_than_an_empty_list_of_them(run):
    _, out, _ = run("run", *SHORT, "--json", "-")
    (refused_row,) = (row for row in json.loads(out)["rows"] if row["refused"])
    assert (refused_row["limits"], refused_row["bottleneck"]) == (None, None)


def test_unchecked_shows_a_refused_row_marked(run):
    status, out, err = run("run", *SHORT, "--unchecked", "--json", "-")
    assert status == 0
    assert err.startswith("unchecked: ")
    (row,) = json.loads(out)["rows"]
    assert row["iops"] > 0 and row["refused"].startswith("Run length: ")
    assert "(unchecked: Run" in run("run", *SHORT, "--unchecked")[1]


def test_a_refused_cell_of_a_sweep_is_kept_counted_and_resumed(run, tmp_path):
    over = ("--over", "workload.queue_depth=2,64", "--jobs", "1")
    asked = ("sweep", "s.toml", "--set", "workload.duration_s=0.02", *over)
    status, out, err = run(*asked, "--out", "kept", "--json", "-")
    assert status == 3
    document = json.loads(out)
    assert [row["iops"] is None for row in document["rows"]] == [False, True]
    assert [row["refused"] for row in document["aggregated"]] == [0, 1]
    assert states(err, "refused: ... 1 of 2 rows ... --unchecked")
    resumed = ("--out", "kept", "--resume", "--unchecked", "--json", "-")
    status, out, _ = run(*asked, *resumed)
    assert status == 0
    document = json.loads(out)
    assert document["provenance"]["sweep"]["executed"] == 0
    assert all(row["iops"] for row in document["rows"])

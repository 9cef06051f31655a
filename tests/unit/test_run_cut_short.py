"""An interrupted run keeps its completed cells, and unwritable folders are refused before the run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stripesim import api
from stripesim.cli.output import check_json, check_out
from stripesim.scenarios.answers.predict import register as registers
from stripesim.scenarios.answers.run import execute
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import (
    burst_warnings,
    length_warnings,
    network_warnings,
    pristine_warnings,
)
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import parse_scenario
from support.messages import states

TINY = """
schemes = ["rep:3", "rep:2"]
[cluster]
pg_num = 16
[workload]
ops = ["write"]
patterns = ["rand"]
requests = 50
queue_depth = 4
image_bytes = "64MiB"
"""


def interrupted_after(monkeypatch, count):
    real = execute.run_cells

    def some(*args, **options):
        for index, item in enumerate(real(*args, **options)):
            if index == count:
                raise KeyboardInterrupt
            yield item

    monkeypatch.setattr(execute, "run_cells", some)


def test_cells_that_are_done_are_kept(monkeypatch):
    scenario = parse_scenario(TINY)
    whole = execute.run_scenario(scenario, costs=False)
    assert not whole.stopped
    assert "stopped" not in whole.to_json()
    interrupted_after(monkeypatch, 1)
    part = execute.run_scenario(scenario, costs=False)
    assert part.stopped
    assert part.to_json()["stopped"] == "interrupted"
    assert part.rows["scheme"].to_list() == ["rep:3"]
    assert part.rows["latency_mean_ns"][0] == whole.rows["latency_mean_ns"][0]


def test_without_a_completed_cell_no_result_is_kept(monkeypatch):
    interrupted_after(monkeypatch, 0)
    with pytest.raises(KeyboardInterrupt):
        execute.run_scenario(parse_scenario(TINY), costs=False)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    check_out(None)
    check_out(tmp_path / "new" / "folder")
    (tmp_path / "link").symlink_to("nowhere")
    for out in ("file", "file/below", "link"):
        with pytest.raises(ValueError, match="is a file"):
            check_out(tmp_path / out)


@pytest.fixture
def read_only(tmp_path, monkeypatch):
    """Make a folder with a file that this process may not write, whoever runs the test."""
    folder = tmp_path / "locked"
    folder.mkdir()
    (folder / "old.json").write_text("")
    (folder / "t.csv").write_text("")
    access = os.access

    def access_as_user(path, mode):
        place = Path(path).absolute()
        if mode & os.W_OK and folder in (place, *place.parents):
            return False
        return access(path, mode)

    monkeypatch.setattr(os, "access", access_as_user)
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    "words",
    [
        "run quickstart --out OUT",
        "run quickstart --json OUT/new.json",
        "run quickstart --json OUT/old.json",
        "sweep quickstart --over cluster.hosts=4,6 --out OUT/new",
        "load quickstart --out OUT",
        "plan plan --out OUT/new/below --report",
        "durability durability --out OUT",
        "rehearse quickstart --out OUT",
        "predict quickstart --register OUT/new.json",
        "study koh2017 --out OUT",
        "explain write --html OUT/new.html",
        "import ceph-report nothere.json --out OUT/new.toml",
        "kernel --scheme rs:4,2 --out OUT",
        "kernel --scheme rs:4,2 --save",
        "trace info t.csv --out OUT",
        "trace convert t.csv",
    ],
)
def test_an_output_that_may_not_be_written_is_refused_before_any_work(
    command, read_only, words
):
    before = sorted(read_only.iterdir())

    status, out, err = command(*words.replace("OUT", str(read_only)).split())

    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert line.partition(":")[0] in (*words.split(), "--out")
    assert "read-only" in line
    assert sorted(read_only.iterdir()) == before


@pytest.mark.parametrize(
    "words",
    ["explain write --html", "import ceph-report nothere.json --out"],
)
def test_no_device_is_replaced_by_a_file(command, tmp_path, words):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    status, _, err = command(*words.split(), pipe)

    assert status == 2
    assert states(err, f"{words.split()[-1]}: got {pipe} ... wanted")
    assert pipe.is_fifo()


def test_a_document_may_go_to_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    check_json(str(tmp_path / "pipe"))


def test_the_folder_of_a_new_register_is_made(tmp_path):
    register = tmp_path / "new" / "r.json"

    registers.check_new(register)
    registers.write_register(register, {"form": registers.FORM})

    assert registers.FORM in register.read_text("utf-8")


@pytest.mark.parametrize(
    ("line", "key", "words"),
    [
        (
            'parameters = "hdd-7200"',
            "parameters",
            "wanted",
        ),
        (
            'parameters = "../../etc/passwd"',
            "parameters",
            "wanted",
        ),
        ('drive = "koh"', "drive", "wanted a device: "),
        ('kernel_table = "x"', "kernel_table", "x"),
    ],
)
def test_names_of_parameter_sets_are_those_that_fit_the_key(line, key, words):
    scenario = parse_scenario(TINY.replace("pg_num", f"{line}\npg_num"), label="s.toml")
    with pytest.raises(ValueError, match="got") as caught:
        build_models(scenario)
    assert str(caught.value).startswith(f"s.toml:4: cluster.{key}: ")
    assert words in str(caught.value)
    assert ", hdd-7200" not in str(caught.value) or key == "drive"


def test_reads_of_an_empty_image_give_a_warning():
    reads = ["workload.ops=read", "workload.image=pristine"]
    assert pristine_warnings(parse_scenario(TINY)) == []
    # Each operation is a run of its own, so writes fill nothing for reads.
    both = ['workload.ops=["write","read"]', "workload.image=pristine"]
    assert pristine_warnings(parse_scenario(TINY, sets=both))
    (line,) = pristine_warnings(parse_scenario(TINY, sets=reads))
    assert "find no objects" in line


def test_a_rate_between_hosts_that_one_network_ignores_gives_a_warning():
    def warnings(*sets):
        return network_warnings(parse_scenario(TINY, sets=sets))

    ignored = "cluster.private_gbit_per_s=40"

    assert warnings(ignored) == []
    assert warnings("cluster.networks=1") == []
    assert warnings("cluster.networks=1", ignored, "cluster.public_gbit_per_s=40") == []
    (line,) = warnings("cluster.networks=1", ignored)
    assert line.startswith("--set: cluster.private_gbit_per_s: 40 is ignored")


@pytest.mark.parametrize(
    ("op", "size", "defers"),
    [
        ("write", "4k", True),
        ("read", "4k", False),
        # Disks defer writes below 64 KiB, of which RS(2,1) sends half to a shard.
        ("write", "64k", True),
        ("write", "128k", False),
    ],
)
def test_only_small_writes_explain_a_burst_by_deferred_writes(op, size, defers):
    sets = [
        'schemes=["rs:2,1"]',
        "cluster.drive=hdd-7200",
        f"workload.ops={op}",
        f"workload.block_sizes_bytes={size}",
    ]
    scenario = parse_scenario(TINY, sets=sets)
    saturates = {"resource": "drives", "utilisation": 1.2, "iops": 100.0}

    (cell,) = cells(scenario)
    (line,) = burst_warnings(scenario, cell, saturates, build_models(scenario))

    assert ("deferred writes" in line) == defers
    assert "120 requests/s" in line


def test_a_burst_is_not_said_to_have_the_rate_of_a_longer_run():
    # Given objects on disks, of which stores still hold deferred writes when the run ends
    sets = {
        "cluster.drive": "hdd-7200-nvme-db",
        "workload.ops": ["get", "put"],
        "workload.op_shares": [45.0, 55.0],
        "workload.object_sizes_bytes": ["4k", "64k", "1MiB"],
        "workload.size_shares": [50.0, 40.0, 10.0],
        "workload.requests": 1000,
    }
    text = [f"{key}={json.dumps(value)}" for key, value in sets.items()]
    scenario = api.load_scenario("s3", sets=[*text, 'schemes=["rep:3"]'])
    warnings = api.run(scenario).warnings
    # Then the warning of the burst names the longer run, 300 × 64 requests in flight, and no other
    # says that the rate does not depend on it.
    (burst,) = [line for line in warnings if "are a burst" in line]
    assert "workload.requests = 19200" in burst
    assert not any("hardly depends" in line for line in warnings)


PAST_SATURATION = {
    "schemes": ["rep:3"],
    "cluster.hosts": 4,
    "cluster.osds_per_host": 2,
    "workload.ops": ["write"],
    "workload.clients": 4,
    "workload.queue_depth": 16,
    "workload.requests": 2560,
}


@pytest.mark.parametrize(
    ("changes", "warned"),
    [
        ({}, True),
        # Of 64 in flight, 300 requests each.
        ({"workload.requests": 19200}, False),
        ({"workload.queue_depth": 2}, False),
    ],
    ids=["short", "long", "below saturation"],
)
def test_a_short_run_past_saturation_warns_of_its_quantiles(changes, warned):
    sets = {**PAST_SATURATION, **changes}

    result = api.run("quickstart", sets=sets, costs=False, unchecked=True)

    of_length = [line for line in result.warnings if "settles slowly" in line]
    assert len(of_length) == warned
    if warned:
        (line,) = of_length
        assert line.startswith("rep:3 write rand 4KiB: most requests wait for the")
        assert line.endswith("compare workload.requests = 19200")
        assert result.document["warnings"] == result.warnings


def test_one_warning_names_all_rows_whose_quantiles_may_change():
    sets = {
        **PAST_SATURATION,
        "workload.clients": 8,
        "workload.requests": 5120,
        "workload.block_sizes_bytes": ["4k", "8k", "16k", "32k"],
    }
    result = api.run("quickstart", sets=sets, costs=False, unchecked=True)
    (line,) = (line for line in result.warnings if "settles slowly" in line)
    assert line.startswith(
        "rep:3 write rand 4KiB, rep:3 write rand 8KiB, rep:3 write rand 16KiB and 1 more: "
    )

    # A sweep says it once for all rows that wait for the same.
    del sets["workload.clients"]
    swept = api.sweep("quickstart", sets=sets, over={"workload.clients": [7, 8]})
    of_kv = [line for line in swept.warnings if "busiest kv, whose queue" in line]
    assert len(of_kv) == 1
    assert of_kv[0].startswith("rows past saturation: most requests wait for the")


#: RS(4,2) on eight OSDs, which write 46,000 times a second at most.
OPEN_WRITES = {
    "schemes": ["rs:4,2"],
    "workload.ops": ["write"],
    "workload.kind": "open",
    "workload.clients": 16,
    "workload.rate_per_s": 41_500,
}


@pytest.mark.parametrize(
    ("changes", "warned"),
    [
        # 2,000 requests: their latency is 23 % below that of a run 200 times as long.
        ({}, True),
        ({"workload.rate_per_s": 14_000}, False),
        ({"workload.rate_per_s": 37_000, "workload.requests": 20_000}, False),
    ],
    ids=["short", "low load", "long"],
)
def test_an_open_loop_that_is_too_short_for_its_load_says_so(changes, warned):
    sets = {**OPEN_WRITES, **changes}
    result = api.run("quickstart", sets=sets, costs=False)
    lines = [line for line in result.warnings if "latency grows" in line]
    assert len(lines) == warned
    if warned:
        (line,) = lines
        assert line.startswith("rs:4,2 write rand 4KiB: the latency grows by over 10 %")
        assert line.endswith("compare workload.requests = 20000")
        del sets["workload.clients"]
        over = {"workload.clients": [15, 16]}
        swept = api.sweep("quickstart", sets=sets, over=over)
        (line,) = (line for line in swept.warnings if "latency grows" in line)
        assert line.startswith("rows of open loops: the latency grows by over 10 %")


def test_a_bounded_run_is_compared_with_one_of_another_duration():
    bounded = TINY.replace("requests = 50", "duration_s = 0.01")

    (line,) = length_warnings(parse_scenario(bounded), [("rep:3 write", "ssd.write")])

    # A result's table calls it the drive, too.
    assert "the busiest drive.write, whose queue" in line
    assert line.endswith("compare a longer workload.duration_s")


def stripesim(*words, **options):
    return subprocess.run(
        [sys.executable, "-m", "stripesim", *words],
        capture_output=True,
        check=False,
        timeout=120,
        **options,
    )


def test_a_pipe_closed_by_its_reader_gives_status_141():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "stripesim", "--help"],
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_terminal_that_lacks_letters_and_one_that_is_closed():
    plain = stripesim(
        "--help", env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    )
    assert (plain.returncode, plain.stderr) == (0, b"")
    closed = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m stripesim --help >&-"],
        capture_output=True,
        check=False,
    )
    assert (closed.returncode, closed.stderr) == (0, b"")


def test_a_home_that_may_not_be_written_adds_no_lines(tmp_path):
    (tmp_path / "home").write_text("")
    (tmp_path / "s.toml").write_text(TINY)
    home = {"HOME": str(tmp_path / "home")}
    unset = ("MPLCONFIGDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
    kept = {key: value for key, value in os.environ.items() if key not in unset}

    done = stripesim("run", "s.toml", "--out", "out", cwd=tmp_path, env=kept | home)

    assert done.returncode == 0
    assert b"atplotlib" not in done.stderr
    assert (tmp_path / "out" / "headline.png").exists()


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ('["1MiB"]', "the rate hardly depends on the length"),
        # Scenario s3 with 2,048 in flight serves 95,000 requests/s in 20 rounds, and 82,000 in 290.
        (
            '["4k", "64k", "1MiB"]\nsize_shares = [50, 40, 10]',
            "a longer run may serve fewer",
        ),
    ],
)
def test_small_objects_that_pass_large_ones_make_a_short_run_too_fast(sizes, says):
    mixed = parse_scenario(
        'schemes = ["rs:4,2"]\n[cluster]\nhosts = 8\n[workload]\nkind = "s3"\nops = ["put"]\n'
        f"requests = 4000\nqueue_depth = 2048\nobject_sizes_bytes = {sizes}\n"
    )

    (line,) = length_warnings(mixed, [("rs:4,2 put", "messenger")])

    assert says in line
    assert "workload.requests = 614400" in line

"""The sweep command returns the same rows in any mode of execution, after kills and Ctrl-C included."""

import gzip
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from stripesim.cli.app import app
from stripesim.models.problems import AnswerError
from stripesim.scenarios.answers.sweep.plan import plan_sweep
from stripesim.scenarios.answers.sweep.run import run_sweep
from stripesim.scenarios.work import attempt as sweep_attempt
from stripesim.sim.observe.limits import limits_text
from support.messages import states

pytestmark = pytest.mark.usefixtures("quick_figures")

TINY = """name = "tiny"
schemes = ["rep:3", "rs:6,3"]
[cluster]
pg_num = 32
failure_domain_erasure = "osd"
[workload]
ops = ["write"]
patterns = ["rand"]
requests = 200
queue_depth = 8
image_bytes = "1GB"
"""

GRID = (
    "--over",
    "workload.queue_depth=4,8,16",
    "--over",
    "workload.block_sizes_bytes=4k,16k",
)

#: A sweep that tests stop in the middle: in their processes, the rows of the last two depths are held.
HELD = ("--over", "workload.queue_depth=4,5,6,7")
#: Four depths with two schemes.
HELD_ROWS = 8
HOLDER = Path(__file__).resolve().parents[1] / "support" / "held_sweep"

#: Generous timeout for slow machines [s]. No test here measures speed.
PATIENCE_S = 120


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run the sweep that is stopped elsewhere, in one process without interruption."""
    path = tmp_path_factory.mktemp("whole") / "tiny.toml"
    path.write_text(TINY)
    return sweep(path, *HELD, "--jobs", "1")


@pytest.fixture
def hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Hold later rows of sweeps in other processes until the file that this returns is removed."""
    path = tmp_path / "hold"
    path.touch()
    monkeypatch.setenv("STRIPESIM_HELD_SWEEP", str(path))
    monkeypatch.setenv("PYTHONPATH", str(HOLDER), prepend=os.pathsep)
    return path


def command(scenario: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "stripesim", "sweep", str(scenario), *arguments]


def sweep(scenario: Path, *arguments: str, status: int = 0) -> dict[str, Any]:
    """Run the command in this process, to save starting an interpreter."""
    done = CliRunner().invoke(app, ["sweep", str(scenario), *arguments, "--json", "-"])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == status, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    document["stderr"] = done.stderr
    return document


def refused(scenario: Path, *arguments: str) -> list[str]:
    with pytest.raises(AnswerError) as caught:
        sweep(scenario, *arguments)
    return str(caught.value).splitlines()


def comparable(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return rows as text with every bit of every number, without the wall time of the engine."""
    return [
        json.dumps(
            {name: value for name, value in row.items() if name != "engine_wall_s"}
        )
        for row in rows
    ]


def parts(out: Path) -> dict[str, tuple[int, int]]:
    """Return inode and modification time of each file of rows."""
    return {
        path.name: (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in (out / "parts").glob("*.jsonl.gz")
    }


def rows_in(path: Path) -> int:
    return len(gzip.decompress(path.read_bytes()).splitlines())


def stored_rows(out: Path) -> int:
    """Count the stored rows. A file has those of a tenth of a second."""
    files = (out / "parts").glob("*.jsonl.gz")
    return sum(map(rows_in, files))


def wait_for_parts(out: Path, count: int, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + PATIENCE_S
    while len(parts(out)) < count:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end, f"wanted {count} rows within {PATIENCE_S} s"
        time.sleep(0.01)


def test_serial_and_parallel_give_the_same_rows_to_the_bit(
    tiny: Path, tmp_path: Path
) -> None:
    serial = sweep(tiny, *GRID, "--replications", "2", "--jobs", "1")
    parallel = sweep(
        tiny,
        *GRID,
        "--replications",
        "2",
        "--jobs",
        "2",
        "--out",
        str(tmp_path / "out"),
    )
    assert len(serial["rows"]) == 3 * 2 * 2 * 2
    assert comparable(parallel["rows"]) == comparable(serial["rows"])
    assert json.dumps(parallel["aggregated"]) == json.dumps(serial["aggregated"])
    assert len(serial["aggregated"]) == 3 * 2 * 2
    assert serial["failed"] == parallel["failed"] == []
    kept = pl.read_parquet(tmp_path / "out" / "results.parquet")
    assert comparable(kept.to_dicts()) == comparable(serial["rows"])
    assert {
        "sweep.svg",
        "sweep.png",
        "captions.md",
        "results.csv",
        "aggregated.csv",
        "provenance.json",
    } <= {path.name for path in (tmp_path / "out").iterdir()}


def test_a_point_of_a_sweep_equals_a_run(tiny: Path) -> None:
    rows = sweep(tiny, "--over", "workload.queue_depth=4,8", "--jobs", "1")["rows"]
    # A sweep does not break down the latency of requests into costs.
    arguments = [
        "run",
        str(tiny),
        "--no-costs",
        "--set",
        "workload.queue_depth=4",
        "--json",
        "-",
    ]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0
    for want in json.loads(done.stdout)["rows"]:
        (got,) = [
            r
            for r in rows
            if r["workload.queue_depth"] == 4 and r["scheme"] == want["scheme"]
        ]
        # Tables of sweeps hold limits as text.
        want["limits"] = limits_text(want["limits"])
        for name in want.keys() - {"engine_wall_s"}:
            assert got[name] == want[name], name


def test_replications_differ_only_in_their_seeds(tiny: Path) -> None:
    printed = sweep(tiny, "--replications", "3", "--seed", "5", "--jobs", "1")
    mine = [row for row in printed["rows"] if row["scheme"] == "rep:3"]
    assert [(row["replication"], row["seed"]) for row in mine] == [
        (0, 5),
        (1, 6),
        (2, 7),
    ]
    assert len({row["completions_sha256"] for row in mine}) == 3
    mean = next(row for row in printed["aggregated"] if row["scheme"] == "rep:3")
    assert mean["replications"] == 3
    assert mean["iops"] == pytest.approx(sum(row["iops"] for row in mine) / 3)
    assert mean["iops_ci_low"] < mean["iops"] < mean["iops_ci_high"]


@pytest.mark.usefixtures("hold")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_killed_sweep_resumes_with_the_missing_rows(
    tiny: Path, tmp_path: Path, uninterrupted: dict[str, Any], jobs: str
) -> None:
    out = tmp_path / "out"
    arguments = (*HELD, "--out", str(out), "--jobs")
    process = subprocess.Popen(
        command(tiny, *arguments, jobs),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_parts(out, 2, process)
    process.kill()
    process.communicate()
    before = parts(out)
    kept = stored_rows(out)
    assert 2 <= kept < HELD_ROWS
    # The missing rows run in this process, to save starting two workers.
    resumed = sweep(tiny, *arguments, "1", "--resume")
    counts = resumed["provenance"]["sweep"]
    assert (counts["kept"], counts["executed"]) == (
        kept,
        HELD_ROWS - kept,
    )
    after = parts(out)
    assert stored_rows(out) == HELD_ROWS
    # Existing files are unchanged: no row was run or written twice.
    assert before.items() <= after.items()
    again = sweep(tiny, *arguments, "1", "--resume")
    assert again["provenance"]["sweep"]["executed"] == 0
    assert parts(out) == after
    # Rows include their wall times, so equal rows were not computed again.
    assert again["rows"] == resumed["rows"]
    assert comparable(resumed["rows"]) == comparable(uninterrupted["rows"])


@pytest.mark.usefixtures("hold")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_sweep_leaves_a_valid_result(
    tiny: Path, tmp_path: Path, sent: signal.Signals
) -> None:
    out = tmp_path / "out"
    arguments = (*HELD, "--out", str(out), "--jobs")
    process = subprocess.Popen(
        [*command(tiny, *arguments, "2"), "--json", "-"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    wait_for_parts(out, 2, process)
    if sent == signal.SIGINT:
        # A terminal signals every process of the group.
        os.killpg(process.pid, sent)
    else:
        process.send_signal(sent)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert "stopped: interrupted" in stderr
    rows = pl.read_parquet(out / "results.parquet")
    assert 2 <= rows.height < HELD_ROWS
    assert rows.height == stored_rows(out)
    document = json.loads(stdout)
    assert document["rows"] == rows.to_dicts()
    assert document["provenance"] == json.loads((out / "provenance.json").read_text())
    assert document["provenance"]["sweep"]["stopped"] == "interrupted"
    resumed = sweep(tiny, *arguments, "1", "--resume")
    assert resumed["provenance"]["sweep"]["kept"] == rows.height
    assert len(resumed["rows"]) == HELD_ROWS


def test_the_rows_of_a_damaged_file_are_run_again(tiny: Path, tmp_path: Path) -> None:
    # Given a sweep that was widened, so that its rows are in several files
    arguments = ("--jobs", "1", "--out", str(tmp_path / "out"), "--over")
    sweep(tiny, *arguments, "workload.queue_depth=4")
    whole = sweep(tiny, *arguments, "workload.queue_depth=4,8", "--resume")
    victim = sorted((tmp_path / "out" / "parts").glob("*.jsonl.gz"))[0]
    lost = rows_in(victim)
    assert 0 < lost < len(whole["rows"])
    # When one file is damaged
    victim.write_bytes(victim.read_bytes()[:-9])
    again = sweep(tiny, *arguments, "workload.queue_depth=4,8", "--resume")
    # Then its rows run again, and no others.
    assert "damaged files" in again["stderr"] and ": 1 set aside" in again["stderr"]
    assert again["provenance"]["sweep"]["executed"] == lost
    assert comparable(again["rows"]) == comparable(whole["rows"])


def test_a_failing_cell_leaves_other_cells_alone_and_is_retried(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("--jobs", "1", "--out", str(tmp_path / "out"))
    with monkeypatch.context() as patch:
        run_cell = sweep_attempt.run_cell

        def fail_on_codes(scenario: Any, cell: Any, *rest: Any, **options: Any) -> Any:
            if cell.scheme == "rs:6,3":
                raise RuntimeError("a fault of ours")
            return run_cell(scenario, cell, *rest, **options)

        patch.setattr(sweep_attempt, "run_cell", fail_on_codes)
        printed = sweep(tiny, *arguments, status=1)
    assert [row["scheme"] for row in printed["rows"]] == ["rep:3"]
    (failed,) = printed["failed"]
    assert (failed["scheme"], failed["reason"]) == (
        "rs:6,3",
        "RuntimeError: a fault of ours",
    )
    assert (
        json.loads((tmp_path / "out" / "failed.json").read_text()) == printed["failed"]
    )
    mended = sweep(tiny, *arguments, "--resume")
    assert mended["provenance"]["sweep"]["executed"] == 1
    assert mended["failed"] == []


def test_a_sweep_whose_cells_all_fail_reports_each_reason(
    tiny: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "map.txt"
    broken.write_text("no map\n")
    printed = sweep(
        tiny, "--list", str(listed(tmp_path, "cluster.crush_map", str(broken))), "--jobs", "2",
        "--out", str(tmp_path / "out"), status=1,
    )  # fmt: skip
    assert pl.read_parquet(tmp_path / "out" / "results.parquet").height == 0
    assert printed["rows"] == []
    assert [failed["scheme"] for failed in printed["failed"]] == ["rep:3", "rs:6,3"]
    assert all(failed["reason"] for failed in printed["failed"])
    assert printed["stderr"].count("failed: ") == 2


def listed(folder: Path, key: str, value: str) -> Path:
    path = folder / "points.csv"
    path.write_text(f'{key}\n"""{value}"""\n')
    return path


def test_runs_too_short_for_a_steady_state_are_reported(tiny: Path) -> None:
    # At depth 1, thirty requests are enough for the audit, and too few for a steady state.
    short = ("--set", "workload.requests=30", "--set", "workload.queue_depth=1")
    printed = sweep(tiny, *short, "--jobs", "1")
    assert [row["steady"] for row in printed["rows"]] == [False, False]
    assert states(printed["stderr"], "2 of 2 ... steady")
    assert states(printed["stderr"], "30 requests ... 50")


def test_all_faulty_options_are_reported_together_with_status_2(tiny: Path) -> None:
    done = subprocess.run(
        command(tiny, "--over", "cluster.hosts=4,x", "--over", "q", "--jobs", "0", "--resume"),
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert not done.stdout
    assert [line.partition(" got ")[0] for line in done.stderr.splitlines()] == [
        "--jobs:",
        "--resume:",
        '--over: "q":',
        "--over: cluster.hosts:",
    ]


def test_jobs_and_dask_exclude_each_other(tiny: Path) -> None:
    assert refused(tiny, "--jobs", "2", "--dask", "tcp://x:1")[0].startswith(
        "--dask: got --jobs too"
    )


def test_a_table_is_printed_without_json(tiny: Path) -> None:
    done = CliRunner().invoke(
        app, ["sweep", str(tiny), "--over", "workload.queue_depth=4,8", "--jobs", "1"]
    )
    assert done.exit_code == 0
    assert done.stdout.count("rs:6,3") == 2
    assert "workload.queue_depth" in done.stdout


def test_an_output_folder_with_rows_requires_resume(tiny: Path, tmp_path: Path) -> None:
    sweep(tiny, "--jobs", "1", "--out", str(tmp_path / "out"))
    (said,) = refused(tiny, "--jobs", "1", "--out", str(tmp_path / "out"))
    assert "--resume" in said


@pytest.fixture
def dask_cluster(
    tmp_path: Path, hold: Path
) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Start a scheduler and two workers in separate processes, as on a cluster."""
    pytest.importorskip(
        "distributed", reason="the extra [cluster] (dask[distributed]) is not installed"
    )
    address_file = tmp_path / "scheduler.json"
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    module = [sys.executable, "-m", "distributed.cli."]
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [
                *module[:-1],
                module[-1] + name,
                "--scheduler-file",
                str(address_file),
                *arguments,
            ],
            **quiet,
        )
        started.append(process)
        return process

    start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    end = time.monotonic() + PATIENCE_S
    while not address_file.exists() or not address_file.read_text().endswith("}"):
        assert time.monotonic() < end, "no scheduler came up"
        time.sleep(0.05)
    workers = [
        start(
            "dask_worker",
            "--no-nanny",
            "--nthreads",
            "1",
            "--no-dashboard",
            "--memory-limit",
            "0",
            "--local-directory",
            str(tmp_path),
        )
        for _ in range(2)
    ]
    yield json.loads(address_file.read_text())["address"], workers
    for process in started:
        process.kill()
        process.wait()


def test_dask_survives_one_killed_worker_and_stops_without_any(
    tiny: Path,
    tmp_path: Path,
    uninterrupted: dict[str, Any],
    hold: Path,
    dask_cluster: tuple[str, list[subprocess.Popen[bytes]]],
) -> None:
    import distributed

    address, workers = dask_cluster
    with distributed.Client(address, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=PATIENCE_S)
    out = tmp_path / "out"
    process = subprocess.Popen(
        [*command(tiny, *HELD, "--dask", address, "--out", str(out)), "--json", "-"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for_parts(out, 2, process)
    workers[0].kill()
    workers[0].wait()
    assert stored_rows(out) < HELD_ROWS
    hold.unlink()
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, stderr
    assert comparable(json.loads(stdout)["rows"]) == comparable(uninterrupted["rows"])

    hold.touch()
    out = tmp_path / "stopped"
    process = subprocess.Popen(
        command(tiny, *HELD, "--dask", address, "--dask-timeout", "1", "--out", str(out)),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for_parts(out, 2, process)
    workers[1].kill()
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode not in (0, 2)
    assert states(stderr, "1 s ... --resume")
    kept = pl.read_parquet(out / "results.parquet").height
    assert 2 <= kept == stored_rows(out) < HELD_ROWS


def test_an_unreachable_scheduler_is_reported(tiny: Path, tmp_path: Path) -> None:
    pytest.importorskip(
        "distributed", reason="the extra [cluster] (dask[distributed]) is not installed"
    )
    (said,) = refused(tiny, "--dask", "nonsense://there")
    assert said.startswith("--dask: nonsense://there: got ")


def test_a_widened_sweep_runs_only_the_new_rows(tiny: Path, tmp_path: Path) -> None:
    arguments = ("--jobs", "1", "--out", str(tmp_path / "out"))
    narrow = sweep(tiny, "--over", "workload.queue_depth=4,8", *arguments)
    wide = sweep(tiny, "--over", "workload.queue_depth=2,4,8", *arguments, "--resume")
    counts = wide["provenance"]["sweep"]
    assert (counts["kept"], counts["executed"]) == (4, 2)
    assert [row for row in wide["rows"] if row["workload.queue_depth"] != 2] == narrow[
        "rows"
    ]


def test_a_sweep_survives_the_death_of_all_its_workers(tiny: Path) -> None:
    # SimPy takes about 0.3 s for a row, so that both workers are busy when the first row is there.
    plan = plan_sweep(tiny, engine="simpy", over=["workload.queue_depth=4,5"])
    whole = run_sweep(plan, jobs=1)
    killed: list[int] = []

    def kill_once(words: str, total: int | None = None) -> None:
        for worker in multiprocessing.active_children() if not killed else ():
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGKILL)
            killed.append(worker.pid)

    result = run_sweep(plan, jobs=2, progress=kill_once)
    assert len(killed) == 2
    assert result.failed == []
    assert comparable(result.rows.to_dicts()) == comparable(whole.rows.to_dicts())

"""`stripesim cite RUN_DIR --verify` repeats a run or sweep and compares its rows by a hash."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., tuple[int, str, str]]
LOAD = (
    "requests = 64\nops = ['write']\npatterns = ['rand']\nblock_sizes_bytes = [4096]\n"
)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "paper.toml"
    path.write_text(f"schemes = ['rep:3']\nseed = 7\n[workload]\n{LOAD}")
    return path


def test_a_run_is_reproduced_with_its_seed_and_engine(
    scenario: Path, tmp_path: Path, command: Command
) -> None:
    out = tmp_path / "out"
    command("run", scenario, "--out", out, "--engine", "simpy")
    status, printed, _ = command("cite", out, "--verify", "--json", "-")
    document = json.loads(printed)
    assert status == 0
    assert document["equal"]
    assert document["sha256"]["stored"] == document["sha256"]["again"]
    assert document["rows"] == 1


def test_a_sweep_is_reproduced_with_its_points(
    scenario: Path, tmp_path: Path, command: Command
) -> None:
    out = tmp_path / "out"
    over = "workload.queue_depth=1,2"
    zipped = ["--zip=cluster.pg_num=8,16", "--zip=cluster.osds_per_host=2,3"]
    command("sweep", scenario, "--over", over, *zipped, "--jobs", 1, "--out", out)
    status, printed, _ = command("cite", out, "--verify")
    assert status == 0
    assert "all 4 rows are equal" in printed


def test_a_changed_number_is_found(
    scenario: Path, tmp_path: Path, command: Command
) -> None:
    out = tmp_path / "out"
    command("run", scenario, "--out", out)
    table = out / "results.csv"
    head, row = table.read_text().splitlines()
    place = head.split(",").index("iops")
    values = row.split(",")
    values[place] = "12345"
    table.write_text(f"{head}\n{','.join(values)}\n")
    status, printed, _ = command("cite", out, "--verify")
    assert status == 1
    assert "row 0: iops: stored 12345, again " in printed


def test_refuses_a_folder_without_rows_and_one_of_another_command(
    tmp_path: Path, command: Command
) -> None:
    status, _, err = command("cite", "--verify")
    assert status == 2 and "got no RUN_DIR" in err
    status, _, err = command("cite", tmp_path, "--verify")
    assert status == 2 and "got no provenance.json" in err
    (tmp_path / "provenance.json").write_text('{"stripesim": "0.3.0"}')
    (tmp_path / "results.csv").write_text("")
    status, _, err = command("cite", tmp_path, "--verify")
    assert status == 2 and "provenance of another command" in err

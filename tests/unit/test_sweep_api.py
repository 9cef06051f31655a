"""`stripesim.sweep` has all that the command has: zipped keys, lists, stored rows, clear refusals."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import stripesim

DEPTH = "workload.queue_depth"
GROUPS = "cluster.pg_num"


@pytest.fixture
def tiny() -> Any:
    return stripesim.Scenario(
        schemes=["rep:3"],
        cluster={"pg_num": 8},
        workload={
            "ops": ["write"],
            "patterns": ["rand"],
            "block_sizes_bytes": ["4k"],
            "requests": 64,
        },
    )


def points(result: Any) -> list[tuple[int, int]]:
    return result.rows.select(DEPTH, GROUPS).rows()


def test_zipped_keys_change_together(tiny: Any) -> None:
    zipped = {DEPTH: [1, 2], GROUPS: [16, 32]}
    result = stripesim.sweep(tiny, zip=zipped, jobs=1)
    assert points(result) == [(1, 16), (2, 32)]
    assert result.provenance["sweep"]["zip"] == [f"{DEPTH}=1,2", f"{GROUPS}=16,32"]


def test_a_list_holds_points_of_a_table_or_a_file(tiny: Any, tmp_path: Path) -> None:
    listed = [{DEPTH: 1, GROUPS: 32}, {DEPTH: 2, GROUPS: 16}]
    result = stripesim.sweep(tiny, list=listed, jobs=1)
    assert points(result) == [(1, 32), (2, 16)]
    file = tmp_path / "points.csv"
    file.write_text(f"{DEPTH},{GROUPS}\n1,32\n2,16\n", encoding="utf-8")
    again = stripesim.sweep(tiny, list=file, jobs=1)
    assert points(again) == points(result)
    assert again.rows["iops"].to_list() == result.rows["iops"].to_list()


def test_a_list_crosses_with_a_grid(tiny: Any) -> None:
    result = stripesim.sweep(tiny, {DEPTH: [1, 2]}, list=[{GROUPS: 16}], jobs=1)
    assert points(result) == [(1, 16), (2, 16)]


def test_a_sweep_continues_in_its_folder(tiny: Any, tmp_path: Path) -> None:
    first = stripesim.sweep(tiny, {DEPTH: [1, 2]}, jobs=1, out=tmp_path / "out")
    assert (tmp_path / "out" / "results.csv").is_file()
    more = stripesim.sweep(
        tiny, {DEPTH: [1, 2, 4]}, jobs=1, out=tmp_path / "out", resume=True
    )
    # The rows of the first two points are those on disk, with the wall time that they took then.
    kept = more.rows.head(2)
    assert kept["engine_wall_s"].to_list() == first.rows["engine_wall_s"].to_list()
    assert more.rows[DEPTH].to_list() == [1, 2, 4]
    assert more.alerts == []


def test_a_sweep_that_continues_one_of_another_version_says_so(
    tiny: Any, tmp_path: Path
) -> None:
    # Given rows of a version that stored them in other files
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "merged-256.abc.parquet").touch()
    # When the sweep is resumed
    result = stripesim.sweep(tiny, {DEPTH: [1]}, jobs=1, out=tmp_path, resume=True)
    # Then it simulates all, and does not pretend to have continued.
    assert result.provenance["sweep"]["kept"] == 0
    (line,) = result.alerts
    assert "no row stored" in line
    assert stripesim.__version__ in line


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"zip": {DEPTH: [1, 2], GROUPS: [16]}},
            "got 2 for .* 1 for .*, wanted equally",
        ),
        ({"list": [{DEPTH: 1}, {GROUPS: 16}]}, "wanted the keys of the first point"),
        ({"list": [{}]}, "got no keys, wanted .* at least one"),
        ({"over": {DEPTH: [1]}, "jobs": 0}, "jobs: got 0, wanted at least 1"),
        ({"over": {DEPTH: [1]}, "resume": True}, "resume: got no out, wanted the fol"),
        ({"over": {DEPTH: [1]}, "jobs": 1, "dask": "tcp://no:1"}, "wanted only one of"),
    ],
)
def test_refuses_contradictions(tiny: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(stripesim.AnswerError, match=words):
        stripesim.sweep(tiny, **options)


@pytest.mark.parametrize("from_stdin", [False, True])
def test_workers_need_nothing_of_the_script(tmp_path: Path, from_stdin: bool) -> None:
    load = {"ops": ["write"], "patterns": ["rand"], "block_sizes_bytes": [4096]}
    keys = {"schemes": ["rep:3"], "workload": load | {"requests": 8}}
    # Given a script without a guard and with several threads, whose workers come from a server
    text = (
        f"import polars\nimport stripesim\nscenario = stripesim.Scenario(**{keys!r})\n"
        f"print(len(stripesim.sweep(scenario, {{'{DEPTH}': [1, 2]}}, jobs=2).rows))\n"
    )
    script = tmp_path / "script.py"
    script.write_text(text)
    # When it runs, as a file or from standard input
    done = subprocess.run(
        [sys.executable, "-" if from_stdin else script],
        input=text if from_stdin else None,
        capture_output=True,
        text=True,
        check=False,
    )
    # Then it runs once.
    assert (done.stdout, done.stderr) == ("2\n", "")

"""Rows on disk are restored bit by bit, and damaged rows are detected."""

import gzip
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stripesim.models.problems import AnswerError
from stripesim.scenarios.work import store as sweep_store
from stripesim.scenarios.work.store import PartStore


def task(number: int) -> Any:
    return SimpleNamespace(
        task_id=f"{number:064x}", swept={"workload.queue_depth": number}
    )


def row(number: int) -> dict[str, Any]:
    return {
        "scheme": "rep:3",
        "op": "write",
        "pattern": "rand",
        "block_size_bytes": 4096,
        "requests": 100 + number,
        "iops": number / 3.0,
        "latency_mean_ns": 0.1 + number,
        "steady": number % 2 == 0,
        "unsteady_reason": None if number % 2 == 0 else "short",
        "replication": 0,
    }


def fill(out: Path, numbers: range) -> None:
    with PartStore(out, resume=True) as store:
        for number in numbers:
            store.add([(task(number), row(number))])


def kept(out: Path) -> dict[str, dict[str, Any]]:
    with PartStore(out, resume=True) as store:
        return store.rows


def test_rows_come_back_to_the_bit(tmp_path: Path) -> None:
    fill(tmp_path, range(5))
    assert kept(tmp_path) == {task(n).task_id: row(n) for n in range(5)}


def test_tasks_that_end_together_share_a_file(tmp_path: Path) -> None:
    with PartStore(tmp_path, resume=False) as store:
        store.add([(task(number), row(number)) for number in range(5)])
        store.add([])
    assert len(list((tmp_path / "parts").glob("*.jsonl.gz"))) == 1
    assert kept(tmp_path) == {task(n).task_id: row(n) for n in range(5)}


def test_many_files_become_one_and_no_row_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_store, "_FILES_MAX", 4)
    fill(tmp_path, range(11))
    names = [path.name for path in (tmp_path / "parts").glob("*.jsonl.gz")]
    assert sum(name.startswith("merged-") for name in names) == 2
    assert len(names) == 5
    assert kept(tmp_path) == {task(n).task_id: row(n) for n in range(11)}


def test_a_crash_between_merging_and_removing_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_store, "_FILES_MAX", 3)
    fill(tmp_path, range(2))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", lambda *_, **__: None)
        fill(tmp_path, range(2, 3))
    assert len(list((tmp_path / "parts").glob("*.jsonl.gz"))) == 4
    assert kept(tmp_path) == {task(n).task_id: row(n) for n in range(3)}


@pytest.mark.parametrize("damage", ["cut", "empty", "noise", "swapped"])
def test_a_damaged_file_is_found_set_aside_and_counted(
    tmp_path: Path, damage: str
) -> None:
    fill(tmp_path, range(3))
    (path,) = (tmp_path / "parts").glob(f"{task(1).task_id}.*.jsonl.gz")
    content = path.read_bytes()
    other_row = gzip.decompress(content).replace(b'"iops": 0.3', b'"iops": 0.4')
    path.write_bytes(
        {
            "cut": content[: len(content) // 2],
            "empty": b"",
            "noise": content[:2] * 99,
            "swapped": gzip.compress(other_row, mtime=0),
        }[damage]
    )
    assert path.read_bytes() != content
    with PartStore(tmp_path, resume=True) as store:
        assert store.damaged == 1
        assert set(store.rows) == {task(0).task_id, task(2).task_id}
        store.add([(task(1), row(1))])
    assert len(kept(tmp_path)) == 3
    assert len(list((tmp_path / "parts").glob("*.damaged"))) == 1


def test_partial_files_of_a_killed_sweep_are_removed(tmp_path: Path) -> None:
    fill(tmp_path, range(2))
    (tmp_path / "parts" / ".x.jsonl.gz.abc.tmp").write_bytes(b"half")
    assert len(kept(tmp_path)) == 2
    assert not list((tmp_path / "parts").glob(".*.tmp"))


def test_rows_are_not_mixed_with_those_of_another_sweep_unasked(tmp_path: Path) -> None:
    fill(tmp_path, range(1))
    with pytest.raises(AnswerError, match="wanted --resume to continue"):
        PartStore(tmp_path, resume=False)


def test_a_folder_with_rows_of_an_earlier_version_is_not_overwritten_unasked(
    tmp_path: Path,
) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "merged-256.abc.parquet").touch()
    with pytest.raises(AnswerError, match="wanted --resume to continue"):
        PartStore(tmp_path, resume=False)
    assert kept(tmp_path) == {}


def test_a_folder_has_one_writer(tmp_path: Path) -> None:
    with (
        PartStore(tmp_path, resume=False),
        pytest.raises(AnswerError, match="another sweep"),
    ):
        PartStore(tmp_path, resume=True)
    # The first one has let go.
    PartStore(tmp_path, resume=True).__exit__(None, None, None)


def test_a_folder_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AnswerError, match="wanted"):
        PartStore(tmp_path / "file", resume=False)

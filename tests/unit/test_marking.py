"""`stripesim mark` grades what students hand in: signatures, answers judged again, hints, revealed ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from stripesim.notebooks import marking
from stripesim.teach import Lesson, Question, open_lesson

Command = Callable[..., tuple[int, str, str]]


def questions(drawn: SimpleNamespace) -> Iterator[Question]:
    yield Question("bytes", "4 KiB?", lambda: drawn.copies * 4096, points=2)
    yield Question("code", "which?", lambda: "rs:4,2", points=3)


def lesson(seed: int | str) -> Lesson:
    return Lesson("Copies", seed, {"copies": [3]}, questions, name="first-steps")


@pytest.fixture(autouse=True)
def _short_lessons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marking, "solve", lambda path, seed: lesson(seed))


def graded(command: Command, *arguments: object) -> tuple[int, list[dict[str, object]]]:
    status, out, _ = command("mark", *arguments, "--json", "-")
    return status, json.loads(out)["files"]


def test_right_answers_give_points_and_a_hint_halves_them(
    tmp_path: Path, command: Command
) -> None:
    mine = lesson(4711)
    mine["bytes"].help()
    mine["bytes"].check(np.int64(3 * 4096))
    mine["code"].check("RS:4,2")
    path = mine.hand_in(tmp_path / "4711.json", student="Ada", key="autumn")
    status, [one] = graded(command, path, "--key", "autumn")
    assert status == 0
    assert (one["student"], one["seed"], one["lesson"]) == ("Ada", 4711, "first-steps")
    # 2 points halved, and 3.
    assert (one["points"], one["points_max"]) == (1 + 3, 5)


def test_the_last_answer_counts_and_revealed_and_missing_ones_do_not(
    tmp_path: Path, command: Command
) -> None:
    mine = lesson(1)
    mine["bytes"].check(3 * 4096)
    mine["bytes"].check(1)
    mine["code"].reveal()
    mine["code"].check("rs:4,2")
    path = mine.hand_in(tmp_path / "a.json", student="Bob")
    _, [one] = graded(command, path)
    assert one["points"] == 0
    found = {each["question"]: each["verdict"] for each in one["questions"]}
    assert found["code"] == "revealed"
    assert found["bytes"].startswith("not yet: too low")
    nothing = lesson(1).hand_in(tmp_path / "b.json", student="Eve")
    _, [other] = graded(command, nothing)
    assert {each["verdict"] for each in other["questions"]} == {"not answered"}


def test_a_changed_file_and_another_key_get_no_points(
    tmp_path: Path, command: Command
) -> None:
    mine = lesson(1)
    mine["bytes"].check(5)
    path = mine.hand_in(tmp_path / "a.json", student="Eve", key="autumn")
    status, [one] = graded(command, path, "--key", "spring")
    assert (status, one["is_signed"], one["points"]) == (1, False, 0)
    path.write_text(path.read_text().replace(": 5,", ": 12288,"))
    status, out, _ = command("mark", path, "--key", "autumn")
    assert status == 1
    assert "not graded" in out


def test_several_files_make_one_table_and_others_are_refused(
    tmp_path: Path, command: Command
) -> None:
    paths = [lesson(n).hand_in(tmp_path / f"{n}.json", student=f"{n}") for n in (1, 2)]
    status, found = graded(command, *paths)
    assert status == 0
    assert [one["student"] for one in found] == ["1", "2"]
    other = tmp_path / "other.json"
    other.write_text("{}")
    status, _, err = command("mark", other)
    assert status == 2
    assert "other.json: got a document without answers and signature" in err


def test_a_lesson_that_ships_knows_its_name() -> None:
    assert open_lesson("the-pg-lock").name == "the-pg-lock"

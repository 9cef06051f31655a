"""`stripesim mark` grades what students hand in: signatures, answers judged again, hints, revealed ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stripesim.notebooks import files, marking
from stripesim.notebooks.files import solve
from stripesim.notebooks.teach import signature
from stripesim.teach import Lesson, Question, open_lesson
from support.messages import states

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


def test_wrong_revealed_and_missing_answers_do_not_count(
    tmp_path: Path, command: Command
) -> None:
    mine = lesson(1)
    mine["bytes"].check(2)
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


def test_a_right_answer_stays_whatever_follows(
    tmp_path: Path, command: Command
) -> None:
    mine = lesson(1)
    mine["bytes"].check(1)
    mine["bytes"].check(3 * 4096)
    for later in (1, "abc", float("nan")):
        assert mine["bytes"].check(later).startswith("not yet")
    mine["code"].check("rs:4,2")
    mine["code"].help()
    mine["code"].reveal()
    assert mine.progress() == "2 of 2 right, 0 with a hint, 0 revealed"
    path = mine.hand_in(tmp_path / "a.json", student="Ada")
    _, [one] = graded(command, path)
    assert one["points"] == one["points_max"] == 2 + 3


def test_an_answer_after_its_solution_is_not_right() -> None:
    mine = lesson(1)
    mine["bytes"].reveal()
    assert mine["bytes"].check(3 * 4096) == "right"
    assert mine.progress() == "0 of 2 right, 0 with a hint, 1 revealed"


def test_an_unreadable_answer_is_not_recorded(tmp_path: Path) -> None:
    mine = lesson(1)
    mine["bytes"].check("abc")
    assert mine["bytes"].given is None
    mine["bytes"].check(5)
    mine["bytes"].check("abc")
    assert mine["bytes"].given == 5


@pytest.mark.parametrize("student", ["", "  "])
def test_a_student_without_a_name_hands_in_nothing(
    tmp_path: Path, student: str
) -> None:
    with pytest.raises(ValueError, match="student: got"):
        lesson(1).hand_in(tmp_path / "a.json", student=student)
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none" / "a.json"
    with pytest.raises(ValueError, match=r"none/a\.json: got No such file"):
        lesson(1).hand_in(path, student="Ada")


def test_a_question_asked_before_its_results_names_them() -> None:
    mine = open_lesson("the-pg-lock")
    with pytest.raises(AttributeError, match="serial_s: got no result yet"):
        mine["the envelope"].check(3)


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


@pytest.mark.parametrize("answer", [10**400, [1], {"a": 1}, None, "x" * 9999])
def test_an_answer_that_is_no_number_is_wrong(answer: Any) -> None:
    assert lesson(1)["bytes"].judge(answer).startswith("not yet")


def test_all_files_that_are_no_results_are_named_at_once(
    tmp_path: Path, command: Command
) -> None:
    good = lesson(1).hand_in(tmp_path / "1.json", student="1")
    (tmp_path / "bad.json").write_text("[1]")
    status, out, err = command(
        "mark", tmp_path / "bad.json", good, tmp_path / "none.json"
    )
    assert (status, out) == (2, "")
    first, second = err.splitlines()
    assert "bad.json: got a document without answers" in first
    assert "none.json: got No such file or directory" in second


def handed_in(path: Path, **changed: Any) -> Path:
    """Write a signed file, as a student can who knows the key."""
    document = {"lesson": "first-steps", "seed": 1, "student": "1", "answers": {}}
    document |= changed
    document["signature"] = signature(document, "")
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"answers": "foo"}, 'answers: got "foo", wanted an object by question'),
        ({"answers": {"code": "rs"}}, 'answers: code: got "rs", wanted an object'),
        ({"answers": {"code": {"events": 3}}}, "wanted an object with a list"),
        ({"answers": {"code": {"events": [[]]}}}, "wanted an object with a list"),
        ({"seed": None}, "seed: got null, wanted a whole number or text"),
        ({"seed": 1.5}, "seed: got 1.5"),
        ({"seed": True}, "seed: got true"),
        ({"lesson": 3}, "lesson: got 3, wanted a name"),
        ({"student": ["x"]}, 'student: got ["x"]'),
        (
            {"lesson": "../../etc/passwd"},
            'lesson: got "../../etc/passwd", wanted one of',
        ),
        ({"lesson": "third-steps", "page": True}, 'lesson: got "third-steps"'),
        ({"seed": "\ud800"}, 'seed: got "\\ud800", wanted a whole number or text'),
        ({"seed": "x" * 101}, "text of at most 100 characters"),
        ({"seed": 10**4000}, "seed: got 1000"),
    ],
)
def test_a_signed_file_of_another_form_is_refused_in_one_line(
    tmp_path: Path, command: Command, changed: dict[str, Any], said: str
) -> None:
    status, out, err = command("mark", handed_in(tmp_path / "f.json", **changed))
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert "f.json: " in line
    assert said in line


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "got no JSON"),
        (b"\x89PNG\r\n", "got no text"),
        (b"[" * 200_000, "got JSON that is nested too deeply"),
        (b'{"lesson":' * 50_000, "got JSON that is nested too deeply"),
        (b" " * 1_048_577, "got more than 1,048,576 bytes"),
    ],
)
def test_a_file_of_anything_else_is_refused_in_one_line(
    tmp_path: Path, command: Command, content: bytes, said: str
) -> None:
    path = tmp_path / "f.json"
    path.write_bytes(content)
    status, out, err = command("mark", path)
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert f"f.json: {said}" in line


def test_a_lesson_that_no_file_may_name_is_found_before_any_lesson_runs(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[Path] = []
    monkeypatch.setattr(marking, "solve", lambda path, seed: ran.append(path))
    good = handed_in(tmp_path / "a.json")
    status, _, _ = command("mark", good, handed_in(tmp_path / "b.json", lesson="x"))
    assert (status, ran) == (2, [])


def test_a_name_cannot_draw_over_the_table(tmp_path: Path, command: Command) -> None:
    name = "\x1b[2A10 of 10\x1b[1B\nEve  \u202e"
    path = handed_in(tmp_path / "\x1b[31m.json", student=name, stripesim="\x1b[0m")
    status, out, _ = command("mark", path)
    assert status == 0
    assert all(line.isprintable() for line in out.splitlines())
    # The cell may wrap between words.
    assert "\\x1b[2A10" in out
    # Other programs get the name as it is.
    _, [one] = graded(command, path)
    assert one["student"] == name


def test_numbers_that_json_lacks_are_handed_in_as_wrong_answers(
    tmp_path: Path, command: Command
) -> None:
    mine = lesson(1)
    mine["bytes"].check(float("nan"))
    path = mine.hand_in(tmp_path / "a.json", student="Bob")
    status, [one] = graded(command, path)
    assert (status, one["points"]) == (0, 0)
    answers = '{"bytes": {"answer": 1e999, "events": []}}'
    handed_in(path, answers=json.loads(answers))
    status, [one] = graded(command, path)
    assert (status, one["points"]) == (0, 0)


def test_a_file_of_another_version_is_graded_with_a_warning(
    tmp_path: Path, command: Command
) -> None:
    own = lesson(1).hand_in(tmp_path / "own.json", student="Ada")
    old = handed_in(tmp_path / "old.json", stripesim="0.2.0")
    _, out, _ = command("mark", own, old)
    (line,) = (line for line in out.splitlines() if "0.2.0" in line)
    assert line.startswith(f"{old}: warning: ")


def test_what_a_lesson_prints_is_not_the_answer_of_marking(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def talk(path: Path, seed: int | str) -> Lesson:
        print("rows and rows")
        return lesson(seed)

    monkeypatch.setattr(marking, "solve", talk)
    _, out, err = command("mark", handed_in(tmp_path / "a.json"))
    assert "rows and rows" not in out + err


def test_the_seed_of_a_marking_sheet_is_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(files, "solve", lambda path, seed: lesson(seed))
    files.main(["mark", "first-steps", "0815", "4711"])
    out = capsys.readouterr().out
    assert "(seed 0815)" in out
    assert "(seed 4711)" in out


@pytest.mark.parametrize(
    "arguments", [["execute", "third-steps"], ["pages", "FILE"], ["mark", "x", "1"]]
)
def test_wrong_arguments_of_lesson_files_end_in_one_line(
    tmp_path: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "FILE").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        files.main(arguments)
    assert "wanted" in str(stop.value)


@pytest.mark.parametrize(
    "seed", ["4711", "a\\d", "\\1", "it's", "\\'+str(1/0))#\"", '"+str(1/0))#', "\n"]
)
def test_a_seed_is_text_whatever_it_contains(tmp_path: Path, seed: str) -> None:
    # A student chooses the seed of a file, which runs where the file is marked.
    text = """# Copies

```python
class Opened:
    def __init__(self, name, seed):
        self.seed = seed


open_lesson = Opened
lesson = open_lesson("copies", seed=1)
```
"""
    path = tmp_path / "01-copies.md"
    path.write_text(text)
    assert solve(path, seed).seed == seed


@pytest.mark.parametrize("seed", [1.5, None, True, b"1"])
def test_a_seed_that_marking_refuses_opens_no_lesson(seed: Any) -> None:
    with pytest.raises(ValueError, match=r"seed: got .*, wanted a whole number"):
        open_lesson("the-pg-lock", seed=seed)


def test_a_lesson_that_ships_knows_its_name() -> None:
    assert open_lesson("the-pg-lock").name == "the-pg-lock"


def test_the_teacher_reads_why_points_are_missing(
    tmp_path: Path, command: Command
) -> None:
    mine = lesson(1)
    mine["bytes"].help()
    mine["bytes"].check(3 * 4096)
    mine["code"].check("rs:4,3")
    path = mine.hand_in(tmp_path / "a.json", student="Ada")
    _, out, _ = command("mark", path)
    assert states(out, "bytes ... right after a hint")
    assert states(out, 'code ... not yet ... "rs:4,3" ... rs:4,2')
    wrong = lesson(1)
    wrong["bytes"].check(20_000)
    _, out, _ = command("mark", wrong.hand_in(path, student="Ada"))
    assert states(out, "bytes ... too high ... 20,000 ... 12,288")


def test_yes_is_no_number() -> None:
    question = Question("one", "", lambda: 1)
    assert question.check(1) == "right"
    assert question.check(True) == "not yet: wanted a number"


def test_one_number_for_two_students_is_a_warning(
    tmp_path: Path, command: Command
) -> None:
    for student, seed in (("Ada", 1), ("Bob", "1"), ("Eve", 2)):
        lesson(seed).hand_in(tmp_path / f"{student}.json", student=student)
    ada, bob, eve = (tmp_path / f"{name}.json" for name in ("Ada", "Bob", "Eve"))
    status, out, _ = command("mark", ada, bob, eve)
    assert status == 0
    assert states(out, f"warning ... several students ... {ada} ... {bob}")
    # One student may hand in twice.
    again = lesson(1).hand_in(tmp_path / "again.json", student="Ada")
    assert "several students" not in command("mark", ada, again, eve)[1]


def test_answers_to_questions_of_another_lesson_are_named(
    tmp_path: Path, command: Command
) -> None:
    path = lesson(1).hand_in(tmp_path / "a.json", student="Ada")
    document = json.loads(path.read_text())
    del document["signature"]
    document["answers"]["blocks"] = {"answer": 3, "events": []}
    document["signature"] = signature(document, "")
    path.write_text(json.dumps(document))
    status, out, _ = command("mark", path)
    assert status == 0
    assert states(out, "warning ... blocks")

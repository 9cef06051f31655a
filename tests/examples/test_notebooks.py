"""Each lesson runs as published, computes its answers, and has an equal notebook next to it."""

from __future__ import annotations

import ast
import importlib.util
import json
import math
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from matplotlib.figure import Figure

from stripesim.notebooks import teach
from stripesim.notebooks.files import (
    cells_of,
    execute,
    lessons,
    main,
    name_of,
    notebook_of,
    pictures,
    solve,
)

LESSONS = lessons()


@cache
def solved(lesson: Path, seed: int) -> teach.Lesson:
    """Run the program of a lesson, once for several tests."""
    return solve(lesson, seed)


def test_there_are_thirteen_lessons_each_with_its_answers() -> None:
    assert [int(lesson.name[:2]) for lesson in LESSONS] == list(range(1, 14))
    for lesson in LESSONS:
        assert teach.open_lesson(name_of(lesson)).questions
    with pytest.raises(ValueError, match="lesson: got 'none'"):
        teach.open_lesson("none")


@pytest.mark.parametrize("lesson", LESSONS, ids=name_of)
def test_a_lesson_runs_and_computes_its_answers(lesson: Path) -> None:
    opened = solved(lesson, 1)
    assert len(opened.questions) >= 7, "a lesson of 90 minutes has questions"
    sheet = opened.sheet()
    for name, question in opened.questions.items():
        value = question.value
        hint, revealed = question.help(), question.reveal()
        assert question.check(value) == "right", (
            f"{name}: its own answer {value} is not"
        )
        assert "no hint" not in hint, name
        assert str(revealed).strip()
        assert not isinstance(value, float) or math.isfinite(value)
        assert question.text in sheet
    count = len(opened.questions)
    assert (
        opened.progress()
        == f"{count} of {count} right, {count} with a hint, {count} revealed"
    )
    marking = opened.marking_sheet()
    assert marking.count("| Exercise:") >= 3
    assert re.search(r"Total: \d+ points", marking)
    # The handout reveals no answers.
    assert "points" not in sheet


def test_another_seed_asks_for_other_numbers() -> None:
    lesson = next(path for path in LESSONS if name_of(path) == "queueing-theory")
    first, other = (solved(lesson, seed).questions for seed in (1, 4))
    assert list(first) == list(other)
    assert [(q.text, q.value) for q in first.values()] != [
        (q.text, q.value) for q in other.values()
    ]


@pytest.mark.parametrize("lesson", LESSONS, ids=name_of)
def test_every_question_is_asked_once_and_its_answer_is_not_in_the_lesson(
    lesson: Path,
) -> None:
    text = lesson.read_text(encoding="utf-8")
    asked = re.findall(r'lesson\.ask\("([^"]+)"', text)
    questions = teach.open_lesson(name_of(lesson)).questions
    assert sorted(asked) == sorted(questions)
    assert "Question(" not in text, "questions live in stripesim.notebooks.answers"
    assert not re.search(r"lesson\.ask\([^)]*lambda", text), "answers live there, too"


def test_every_lesson_draws_numbers_by_its_seed() -> None:
    for lesson in LESSONS:
        texts = {
            teach.open_lesson(name_of(lesson), seed=seed).sheet().partition("\n")[2]
            for seed in range(12)
        }
        assert len(texts) > 1, lesson.name


@pytest.mark.parametrize("lesson", LESSONS, ids=name_of)
def test_the_notebook_holds_the_cells_of_the_lesson_and_no_output(lesson: Path) -> None:
    document = json.loads(lesson.with_suffix(".ipynb").read_text(encoding="utf-8"))
    wanted = notebook_of(lesson.read_text(encoding="utf-8"))
    assert document == wanted, "run: python -m stripesim.notebooks.files"
    code = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert code
    assert all(
        cell["outputs"] == [] and cell["execution_count"] is None for cell in code
    )


@pytest.mark.parametrize("lesson", LESSONS, ids=name_of)
def test_a_lesson_uses_the_public_api_only(lesson: Path) -> None:
    code = "\n".join(
        source
        for kind, source in cells_of(lesson.read_text(encoding="utf-8"))
        if kind == "code"
    )
    modules = {
        name
        for node in ast.walk(ast.parse(code))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    ours = {name for name in modules if name.split(".")[0] == "stripesim"}
    assert ours <= {"stripesim", "stripesim.teach"}


@pytest.mark.parametrize("lesson", LESSONS, ids=name_of)
def test_a_lesson_has_objectives_a_plan_of_90_minutes_and_an_exercise(
    lesson: Path,
) -> None:
    text = lesson.read_text(encoding="utf-8")
    assert re.match(r"# \d+\. ", text)
    assert "**After this lesson you can**" in text
    assert sum(map(int, re.findall(r"^\| (\d+) \|", text, re.MULTILINE))) == 90
    assert "## Background" in text
    assert re.search(r"^## Exercise", text, re.MULTILINE)
    assert "```text" in text, "the background has a drawing"


def test_the_teacher_prints_marking_sheets(capsys: pytest.CaptureFixture[str]) -> None:
    main(["mark", "how-many-nines", "7", "anna"])
    printed = capsys.readouterr().out
    assert "(seed 7)" in printed
    assert "(seed anna)" in printed
    with pytest.raises(SystemExit):
        main(["mark", "none", "7"])


@pytest.mark.slow
@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("nbclient", "ipykernel")),
    reason="no kernel is installed: make notebooks",
)
def test_a_figure_appears_in_a_notebook() -> None:
    lesson = next(path for path in LESSONS if "anatomy" in path.stem)
    outputs = execute(lesson.with_suffix(".ipynb"))
    assert pictures(outputs) >= 1
    assert any("text/html" in out.get("data", {}) for out in outputs)


def test_a_figure_is_rendered_where_a_notebook_shows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[object] = []
    fake = ModuleType("IPython.display")
    fake.Image = lambda data: data  # type: ignore[attr-defined]
    fake.display = shown.append  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    monkeypatch.setattr(teach, "_in_notebook", lambda: True)
    teach.show(Figure(figsize=(1, 1)))
    teach.show("text")
    assert isinstance(shown[0], bytes)
    assert shown[0].startswith(b"\x89PNG")
    assert shown[1] == "text"

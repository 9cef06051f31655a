"""Each lesson runs as it is handed out, computes its answers, and stands beside a notebook like it."""

from __future__ import annotations

import ast
import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from matplotlib.figure import Figure

from stripesim.notebooks import teach
from stripesim.notebooks.execute import execute, pictures
from stripesim.notebooks.pairing import cells_of, lessons, notebook_of

LESSONS = lessons()

# Runs a lesson, then has it compute every answer and judge each by itself.
RUN = """
import json, os, runpy, sys
source = open(sys.argv[1], encoding="utf-8").read().replace("seed=1)", f"seed={sys.argv[2]})")
names = {"__name__": "__main__"}
exec(compile(source, sys.argv[1], "exec"), names)
lesson = names["lesson"]
told = [[q.number, q.text, q.value, q.reveal(), q.check(q.value)] for q in lesson.questions]
print("\\n" + json.dumps(told))
"""


def answers(lesson: Path, seed: int) -> list[list[object]]:
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(lesson), str(seed)],
        cwd=lesson.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, f"cd {lesson.parent} && python {lesson.name}\n{done.stderr[-2000:]}"
    document: list[list[object]] = json.loads(done.stdout.splitlines()[-1])
    return document


def test_there_are_lessons() -> None:
    assert [int(lesson.stem.split("_")[1]) for lesson in LESSONS] == list(range(1, 9))


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_runs_and_computes_its_answers(lesson: Path) -> None:
    found = answers(lesson, 1)
    assert len(found) >= 5, "a lesson of 90 minutes has questions"
    for number, _, value, revealed, judged in found:
        assert judged == "right", f"question {number}: its own answer {value} is {judged}"
        assert str(revealed).strip()
        assert not isinstance(value, float) or math.isfinite(value)


def test_another_seed_asks_for_other_numbers() -> None:
    lesson = next(path for path in LESSONS if "queueing" in path.stem)
    values = {seed: answers(lesson, seed) for seed in (1, 4)}
    assert [row[0] for row in values[1]] == [row[0] for row in values[4]]
    assert [row[1:3] for row in values[1]] != [row[1:3] for row in values[4]]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_the_notebook_holds_the_cells_of_the_lesson_and_no_output(lesson: Path) -> None:
    document = json.loads(lesson.with_suffix(".ipynb").read_text(encoding="utf-8"))
    wanted = notebook_of(lesson.read_text(encoding="utf-8"))
    assert document == wanted, "run: python -m stripesim.notebooks.pairing"
    code = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_uses_the_public_api_only(lesson: Path) -> None:
    tree = ast.parse(lesson.read_text(encoding="utf-8"))
    modules = {
        name
        for node in ast.walk(tree)
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
    assert "stripesim" in ours


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_has_a_plan_and_a_part_for_the_class(lesson: Path) -> None:
    texts = [source for kind, source in cells_of(lesson.read_text(encoding="utf-8")) if kind == "markdown"]
    assert texts[0].startswith("# ")
    assert "90 minutes" in texts[0]
    assert any(text.startswith(("## Your", "## Discuss")) for text in texts)


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


def test_a_figure_is_rendered_where_a_notebook_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
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

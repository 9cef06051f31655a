"""Each lesson runs as published, computes its answers, and has an equal notebook next to it."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import json
import math
import os
import re
import sys
import tomllib
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from matplotlib.figure import Figure

import stripesim
from stripesim import api
from stripesim.calibration.ssd.interference import fit_interference
from stripesim.models.documents import json_text
from stripesim.notebooks import teach
from stripesim.notebooks.answers import anatomy_of_a_write, calibrate, koh_figures
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
from stripesim.scenarios.answers.explain import shares
from stripesim.scenarios.answers.rehearse import samples
from stripesim.scenarios.answers.run.answer import ScenarioResult
from stripesim.scenarios.answers.run.execute import run_scenario
from stripesim.scenarios.cells import longer
from stripesim.scenarios.schema.scenario import Scenario

LESSONS = lessons()
KRAKEN = Path(stripesim.__file__).parent / "calibration/parameters/kraken.toml"
AUTHORS_NOTEBOOK = Path(__file__).with_name("authors_notebook.md")
#: A second run of these takes several seconds each: `make notebooks` does it.
LONG = {
    "koh-figures",
    "the-pg-lock",
    "recovery-under-qos",
    "grow-a-cluster",
    "repair",
    "what-if",
}
ALL_SEEDS = os.environ.get("STRIPESIM_LESSON_SEEDS") == "all"


#: Requests of a cell, at most.
REQUESTS_MAX = 200
#: Image whose shards are recovered once lost OSDs are back, at most, and the time for that.
IMAGE_BYTES_MAX = 1 << 30
RECOVERY_S = 6.0


@pytest.fixture(scope="module", autouse=True)
def small_samples() -> Iterator[None]:
    """Run fewer requests than a reader does, and rehearse with fewer objects.

    Answers follow from the rows, however short the run, so that a run is not lengthened either.
    `make notebooks` runs the lessons as published.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples, "SHARDS_MAX", 500)
        if not ALL_SEEDS:
            patch.setattr(api, "run_scenario", run_few_requests)
            patch.setattr(longer, "can_lengthen", lambda _: False)
        yield


def run_few_requests(scenario: Scenario, **options: Any) -> ScenarioResult:
    """Run a scenario with a bound on the requests of its cells, or on their time and what is recovered.

    Rows are not audited, and have no costs of steps: no lesson asks for them, and each takes a second run.
    """
    workload = scenario.workload
    fewer: dict[str, float] = {}
    back_s = (
        [event.return_s for event in scenario.faults.events] if scenario.faults else []
    )
    if workload.requests is not None:
        fewer["requests"] = min(workload.requests, REQUESTS_MAX)
    elif back_s and None not in back_s:
        fewer["duration_s"] = max(filter(None, back_s)) + RECOVERY_S
        fewer["image_bytes"] = min(workload.image_bytes, IMAGE_BYTES_MAX)
    few = workload.model_copy(update=fewer)
    scenario = scenario.model_copy(update={"workload": few})
    assert not options["unchecked"]
    return run_scenario(scenario, **{**options, "costs": False, "unchecked": True})


@cache
def solved(lesson: Path, seed: int) -> teach.Lesson:
    """Run the program of a lesson, once for several tests."""
    return _solved_with_prints(lesson, seed)[0]


@cache
def _solved_with_prints(lesson: Path, seed: int) -> tuple[teach.Lesson, dict[str, str]]:
    """Return a solved lesson, and what it had printed when it asked each question."""
    printed = io.StringIO()
    before: dict[str, str] = {}
    ask = teach.Lesson.ask

    def noted(self: teach.Lesson, name: str, **results: Any) -> teach.Question:
        before[name] = printed.getvalue()
        return ask(self, name, **results)

    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setattr(teach.Lesson, "ask", noted)
        names_parameters = re.search(r"\.(parameters|shares)\b", lesson.read_text())
        if not names_parameters and not ALL_SEEDS:
            # Finding the parameters of each step takes most of the time of explaining a request.
            patch.setattr(shares, "_doubled", lambda models: ())
        return solve(lesson, seed), before


def test_there_are_fourteen_lessons_each_with_its_answers() -> None:
    assert [int(lesson.name[:2]) for lesson in LESSONS] == list(range(1, 15))
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
        hint = question.help()
        assert question.check(value) == "right", (
            f"{name}: its own answer {value} is not"
        )
        # A right answer stays one after its solution.
        revealed = question.reveal()
        assert "no hint" not in hint, name
        assert str(revealed).strip()
        assert not isinstance(value, float) or math.isfinite(value)
        assert question.text in sheet
    count = len(opened.questions)
    assert (
        opened.progress()
        == f"{count} of {count} right, {count} with a hint, 0 revealed"
    )
    marking = opened.marking_sheet()
    assert marking.count("| Exercise:") >= 3
    assert re.search(r"Total: \d+ points", marking)
    # The handout reveals no answers.
    assert "points" not in sheet


@pytest.mark.parametrize("lesson", LESSONS, ids=name_of)
def test_no_answer_is_printed_before_its_question(lesson: Path) -> None:
    opened, before = _solved_with_prints(lesson, 1)
    for question in opened.questions.values():
        value = question.value
        if not isinstance(value, int | float):
            continue
        texts = re.findall(r"\d[\d,]*\.?\d*", before[question.name])
        numbers = [float(text.replace(",", "")) for text in texts]
        # In any unit: bytes for terabytes, a share for per cent.
        told = [
            number
            for number in numbers
            for power in (0, 2, -2, 12)
            if number > 10 and math.isclose(number, value * 10**power, rel_tol=1e-3)
        ]
        assert told == [], question.name


@pytest.mark.parametrize(
    "lesson",
    [path for path in LESSONS if ALL_SEEDS or name_of(path) not in LONG],
    ids=name_of,
)
def test_the_answers_of_one_student_are_wrong_for_another(lesson: Path) -> None:
    own = solved(lesson, 1).questions
    others = solved(lesson, 4711).questions
    assert list(own) == list(others)
    copied = [
        name
        for name, question in own.items()
        if question.check(others[name].value) == "right"
    ]
    assert copied == []


@pytest.mark.parametrize("lesson", LESSONS, ids=name_of)
def test_every_question_draws_numbers_or_uses_a_drawn_run(lesson: Path) -> None:
    """Answers that need no run differ for most pairs of 40 students."""
    answers: dict[str, list[object]] = {}
    for seed in range(40):
        for name, question in teach.open_lesson(
            name_of(lesson), seed=seed
        ).questions.items():
            # Without its results, a question about a run has no answer yet.
            with contextlib.suppress(AttributeError):
                answers.setdefault(name, []).append(question.value)
    for name, values in answers.items():
        equal_pairs = sum(
            math.comb(count, 2) for count in Counter(map(str, values)).values()
        )
        assert equal_pairs <= 0.12 * math.comb(40, 2), name


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("lesson", "name", "generation"),
    [
        ("anatomy-of-a-write", "name the scheme", None),
        ("fast-erasure-coding", "name the write", "tentacle"),
    ],
)
def test_the_scheme_that_a_question_asks_for_does_these_operations(
    seed: int, lesson: str, name: str, generation: str | None
) -> None:
    question = teach.open_lesson(lesson, seed=seed)[name]
    scheme = str(question.value)
    data_shards, parities = map(int, scheme.removeprefix("rs:").split(","))
    hidden_shard = teach.open_lesson(lesson, seed=seed).data.__dict__.get(
        "hidden_shard", 0
    )
    (timeline,) = stripesim.explain(
        "write",
        scheme,
        4096,
        offset_bytes=4096 * hidden_shard,
        generation=generation,
        with_parameters=False,
    )
    if lesson == "anatomy-of-a-write":
        assert timeline.shard_reads == data_shards
        assert timeline.shard_writes == data_shards + parities
        assert f"shards 0 to {data_shards - 1}," in question.text
    else:
        assert timeline.method == "parity delta"
        # One data shard and all parities.
        assert timeline.shard_reads == timeline.shard_writes == 1 + parities
        assert f"{data_shards + parities - 1} and then" in question.text


@pytest.mark.parametrize("seed", range(6))
def test_the_repair_that_a_question_describes_is_the_one_of_its_scheme(
    seed: int,
) -> None:
    question = teach.open_lesson("repair", seed=seed)["name the scheme"]
    scheme = stripesim.parse_scheme(str(question.value))
    plan = scheme.plan_repair(
        lost=frozenset({1}), object_size_bytes=4 << 20, geometry=scheme.geometry(4096)
    )
    helpers = len({extent.shard for extent in plan.reads})
    read_bytes = sum(extent.length_bytes for extent in plan.reads)
    shard_bytes = sum(extent.length_bytes for extent in plan.writes)
    assert f"over {scheme.width} shards" in question.text
    assert f"{helpers} helpers" in question.text
    assert f"read 1/{round(shard_bytes * helpers / read_bytes)} of" in question.text


def test_a_part_of_a_trace_has_its_requests_and_commands() -> None:
    trace = stripesim.load_trace(LESSONS[0].parent / "data/ceph16-ec63-osd0.txt.gz")
    part = teach.part_of(trace, 100, 50)
    assert len(part) == 50
    assert part.requests["issue_ns"][0] == 0
    assert (
        part.requests["length_bytes"].to_list()
        == trace.requests["length_bytes"][100:150].to_list()
    )
    last_ns = part.requests["issue_ns"][-1]
    assert part.commands["dispatch_ns"].is_between(0, last_ns).all()
    assert part.commands.height > 0
    with pytest.raises(ValueError, match="part of a trace"):
        teach.part_of(trace, 880, 50)


@pytest.mark.parametrize("start", [0, 40, 100, 190, 280])
def test_the_reads_of_the_smallest_part_of_the_trace_have_a_slowdown(
    start: int,
) -> None:
    trace = stripesim.load_trace(LESSONS[0].parent / "data/ceph16-ec63-osd0.txt.gz")
    part = teach.part_of(trace, start, min(calibrate.NUMBERS["count"]))
    (beside,) = (
        one
        for one in fit_interference(part)
        if (one.operation, one.company) == ("read", "other kind")
    )
    assert beside.slowdown is not None


def test_the_exception_is_a_number_of_the_study_that_the_lesson_reproduces() -> None:
    (lesson,) = (path for path in LESSONS if name_of(path) == "koh-figures")
    parameters = solved(lesson, 1).data.coded.parameters
    (name,) = (one for one in koh_figures.exceptions(parameters) if one.endswith("_ns"))
    shipped = tomllib.loads(KRAKEN.read_text(encoding="utf-8"))
    group, _, key = name.partition(".")
    assert parameters[name]["value"] == shipped[group][key]["value"] > 0


def test_the_arithmetic_is_a_small_part_of_encoding() -> None:
    (lesson,) = (path for path in LESSONS if name_of(path) == "anatomy-of-a-write")
    coded = solved(lesson, 1).data.coded
    # A stripe of 7 chunks of 16 KiB, with 2.3 ns of copies and checksums for each byte.
    coding_ns = coded.latency_by_category_ns()["coding"]
    assert coding_ns > 7 * 16384 * 2
    assert 0 < anatomy_of_a_write.kernel_ns(coded) < 0.05 * coding_ns


def test_a_word_is_compared_without_blanks_and_capitals() -> None:
    question = teach.Question("code", "Which?", lambda: "rs:6,3")
    assert question.check(" RS:6, 3") == "right"
    assert question.check("RS(6, 3)") == "right"
    assert question.check("rs:3,6") == "not yet"


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


@pytest.mark.skipif(not ALL_SEEDS, reason="takes a minute and more: make notebooks")
def test_a_notebook_written_from_the_documentation_runs(tmp_path: Path) -> None:
    text = AUTHORS_NOTEBOOK.read_text("utf-8")
    code = [source for kind, source in cells_of(text) if kind == "code"]
    notebook = tmp_path / "authors.ipynb"
    notebook.write_text(json_text(notebook_of(text)), encoding="utf-8")
    # A cell that raises an error ends the run.
    outputs = execute(notebook)
    assert len(code) >= 40
    assert pictures(outputs) >= 1


def test_a_figure_is_rendered_where_a_notebook_shows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[Any] = []
    fake = ModuleType("IPython.display")
    fake.display = lambda item, raw=False: shown.append(item)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    monkeypatch.setattr(teach, "_in_notebook", lambda: True)
    figure = Figure(figsize=(1, 1))
    figure.subplots().set(title="Writes", xlabel="load", ylabel="latency")
    teach.show(figure)
    teach.show("text")
    teach.show(figure, "The latency grows with the load")
    first, text, second = shown
    assert b64decode(first["image/png"]).startswith(b"\x89PNG")
    assert 'alt="Figure. Writes: latency over load"' in first["text/html"]
    assert text == "text"
    assert 'alt="The latency grows with the load"' in second["text/html"]

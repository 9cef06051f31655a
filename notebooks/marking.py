"""Grade what students hand in: judge the answers again that `Lesson.hand_in` or a page wrote."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from stripesim.models.problems import AnswerError, Problem
from stripesim.notebooks.files import lessons, name_of, solve
from stripesim.notebooks.page_lessons import page_lessons
from stripesim.notebooks.teach import Lesson, Question, signature
from stripesim.scenarios.schema.toml import shorten
from stripesim.scenarios.show.answer import Answer
from stripesim.scenarios.show.tables import Table

#: Part of the points for a right answer after a hint.
HINT_SHARE = 0.5
#: What a file must hold, with the form in words.
_FORMS: Final[Mapping[str, tuple[Any, str]]] = {
    "lesson": (str, "a name"),
    "seed": (int | str, "a whole number or text"),
    "student": (int | str, "a name or number"),
    "answers": (dict, "an object by question"),
    "signature": (str, "text"),
}
#: Characters of a value in a message, at most.
_CHARACTERS_MAX: Final = 40


def answer_of_marking(paths: Sequence[str | Path], *, key: str = "") -> Answer:
    """Grade files that students handed in.

    Parameters
    ----------
    paths
        Files that `Lesson.hand_in` or the page of a lesson wrote.
    key
        Key of the class, with which the files must be signed.

    Returns
    -------
    Answer
        One row for each file. Its exit status is 1 if a signature is wrong: such a file gets no points.

    Raises
    ------
    AnswerError
        If a file is no result of a lesson.
    """
    files = [Path(path) for path in paths]
    graded = [
        _graded(path, handed_in, key)
        for path, handed_in in zip(files, _read_all(files), strict=True)
    ]
    return Answer(
        document={"files": graded},
        shown=[
            Table.of("Points", [_cells(one) for one in graded], words=(4,)),
            *(line for one in graded for line in _lines(one)),
        ],
        status=0 if all(one["is_signed"] for one in graded) else 1,
    )


def _read_all(files: Sequence[Path]) -> list[dict[str, Any]]:
    """Read all files before the first lesson runs. The error has a line for each file that is no result."""
    read = []
    problems: list[Problem] = []
    for path in files:
        try:
            read.append(_read(path))
        except AnswerError as error:
            problems += error.problems
    if problems:
        raise AnswerError(*problems)
    return read


def _graded(path: Path, handed_in: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Judge the answers of a file against those that its lesson computes for its seed."""
    signed = {name: handed_in[name] for name in handed_in if name != "signature"}
    is_signed = handed_in["signature"] == signature(signed, key)
    result = {
        "file": str(path),
        "student": handed_in["student"],
        "lesson": handed_in["lesson"],
        "seed": handed_in["seed"],
        "is_signed": is_signed,
        "points": 0.0,
        "points_max": 0,
        "questions": [],
    }
    if not is_signed:
        return result
    lesson = _solved(path, handed_in)
    result["questions"] = list(_judged(lesson, handed_in["answers"]))
    result["points"] = sum(one["points"] for one in result["questions"])
    result["points_max"] = sum(one.points for one in lesson.questions.values())
    return result


def _solved(path: Path, handed_in: Mapping[str, Any]) -> Lesson:
    """Return the lesson of a file with what its answers need: that of a page, or that of a notebook."""
    is_page = handed_in.get("page") is True
    solvers: dict[str, Callable[[int | str], Lesson]]
    if is_page:
        solvers = {lesson.name: lesson.open for lesson in page_lessons()}
    else:
        solvers = {name_of(lesson): partial(solve, lesson) for lesson in lessons()}
    name = str(handed_in["lesson"])
    if name not in solvers:
        wanted = f"one of {', '.join(solvers)}"
        raise AnswerError(
            Problem(place=str(path), key="lesson", got=name, wanted=wanted)
        )
    with contextlib.redirect_stdout(sys.stderr):
        return solvers[name](handed_in["seed"])


def _judged(lesson: Lesson, answers: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        _points(question, answers.get(name, {}))
        for name, question in lesson.questions.items()
    ]


def _points(question: Question, given: Mapping[str, Any]) -> dict[str, Any]:
    """Judge one answer. A hint halves its points, and a revealed answer has none."""
    events = set(given.get("events", ()))
    verdict = "not answered"
    if "answer" in given:
        verdict = question.judge(given["answer"])
    share = HINT_SHARE if "hint" in events else 1.0
    is_right = verdict == "right" and "revealed" not in events
    return {
        "question": question.name,
        "answer": given.get("answer"),
        "right_answer": question.value,
        "verdict": "revealed" if "revealed" in events else verdict,
        "hint": "hint" in events,
        "points": question.points * share if is_right else 0.0,
    }


def _read(path: Path) -> dict[str, Any]:
    wanted = "a file that Lesson.hand_in or a page wrote"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        got = getattr(error, "strerror", None) or str(error)
        raise AnswerError(Problem(place=str(path), got=got, wanted=wanted)) from None
    if not isinstance(document, dict) or not _FORMS.keys() <= document.keys():
        got = "a document without answers and signature"
        raise AnswerError(Problem(place=str(path), got=got, wanted=wanted))
    for problem in _problems(document):
        raise AnswerError(replace(problem, place=str(path)))
    return document


def _problems(document: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the values of a file that have another form, because a file is no work of ours."""
    for name, (form, wanted) in _FORMS.items():
        value = document[name]
        # True is a number to Python.
        if not isinstance(value, form) or isinstance(value, bool):
            yield Problem(key=name, got=_shown(value), wanted=wanted)
            return
    for name, given in document["answers"].items():
        events = given.get("events", []) if isinstance(given, dict) else None
        if not isinstance(events, list) or not all(
            isinstance(event, str) for event in events
        ):
            wanted = "an object with a list of events"
            key = f"answers: {shorten(name, _CHARACTERS_MAX)}"
            yield Problem(key=key, got=_shown(given), wanted=wanted)


def _shown(value: object) -> str:
    return shorten(json.dumps(value), _CHARACTERS_MAX)


def _cells(one: Mapping[str, Any]) -> dict[str, str]:
    right = sum(question["points"] > 0 for question in one["questions"])
    return {
        "file": one["file"],
        "student": str(one["student"]),
        "lesson": str(one["lesson"]),
        "seed": str(one["seed"]),
        "signature": "right" if one["is_signed"] else "wrong",
        "right": f"{right} of {len(one['questions'])}",
        "points": f"{one['points']:g} of {one['points_max']}",
    }


def _lines(one: Mapping[str, Any]) -> list[str]:
    if not one["is_signed"]:
        return [f"{one['file']}: not graded: the file was changed or has another key"]
    return [
        f"{one['file']}: {question['question']}: {question['verdict']}"
        for question in one["questions"]
        if not question["points"]
    ]

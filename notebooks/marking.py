"""Grade what students hand in: judge the answers again that `Lesson.hand_in` or a page wrote."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from stripesim._version import __version__
from stripesim.models.problems import AnswerError, Problem, file_reason
from stripesim.notebooks.files import lessons, name_of, solve
from stripesim.notebooks.page_lessons import PageLesson, page_lessons
from stripesim.notebooks.teach import (
    Lesson,
    Question,
    answer_text,
    plain,
    signature,
)
from stripesim.scenarios.schema.toml import escaped, shorten
from stripesim.scenarios.show.answer import Answer
from stripesim.scenarios.show.tables import Table
from stripesim.sim.observe.progress import OnStep, silent

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
#: Characters of a value in a message or a table, at most.
_CHARACTERS_MAX: Final = 40
#: Most names of unknown questions in a message.
_UNKNOWN_MAX: Final = 5
#: Largest file [B], and longest seed [characters].
_FILE_BYTES_MAX: Final = 1 << 20
_SEED_MAX: Final = 100
_WANTED: Final = "a file that Lesson.hand_in or a page wrote"


def answer_of_marking(
    paths: Sequence[str | Path],
    *,
    key: str = "",
    progress: OnStep = silent,
) -> Answer:
    """Grade files that students handed in.

    Parameters
    ----------
    paths
        Files that `Lesson.hand_in` or the page of a lesson wrote.
    key
        Key of the class, with which the files must be signed.
    progress
        Called with the name of each file that has been graded.

    Returns
    -------
    Answer
        One row for each file. Its exit status is 1 if a signature is wrong: such a file gets no points.

    Raises
    ------
    AnswerError
        If a file is not a result of a lesson.
    """
    files = [Path(path) for path in paths]
    graded = []
    for path, handed_in in zip(files, _read_all(files), strict=True):
        graded.append(_graded(path, handed_in, key))
        progress(escaped(path.name))
    return Answer(
        document={"files": graded},
        shown=[
            Table.of("Points", [_cells(one) for one in graded], words=(4,)),
            *(line for one in graded for line in _lines(one)),
            *_shared_numbers(graded),
        ],
        status=0 if all(one["is_signed"] for one in graded) else 1,
    )


def _read_all(files: Sequence[Path]) -> list[dict[str, Any]]:
    """Read all files before the first lesson runs. The error has a line for each unusable file."""
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
    try:
        is_signed = handed_in["signature"] == signature(signed, key)
    except RecursionError:
        # Nested too deeply for a signature.
        is_signed = False
    result = {
        "file": str(path),
        "student": handed_in["student"],
        "lesson": handed_in["lesson"],
        "seed": handed_in["seed"],
        "is_page": _is_page(handed_in),
        "stripesim": handed_in.get("stripesim"),
        "is_signed": is_signed,
        "points": 0.0,
        "points_max": 0,
        "questions": [],
        "unknown": [],
    }
    if not is_signed:
        return result
    # Lessons of notebooks print tables and figures as they run.
    with contextlib.redirect_stdout(io.StringIO()):
        solver = _solvers(is_page=result["is_page"])[handed_in["lesson"]]
        lesson = solver(handed_in["seed"])
        result["questions"] = list(_judged(lesson, handed_in["answers"]))
        result["unknown"] = [
            name for name in handed_in["answers"] if name not in lesson.questions
        ]
    result["points"] = sum(one["points"] for one in result["questions"])
    result["points_max"] = sum(one.points for one in lesson.questions.values())
    return result


def _is_page(handed_in: Mapping[str, Any]) -> bool:
    return handed_in.get("page") is True


def _solvers(*, is_page: bool) -> Mapping[str, Callable[[int | str], Lesson]]:
    """Return a function for each lesson of pages or of notebooks: with what its answers need, for a seed."""
    if is_page:
        return {lesson.name: lesson.open for lesson in _page_lessons()}
    return {name_of(lesson): partial(solve, lesson) for lesson in lessons()}


@cache
def _page_lessons() -> list[PageLesson]:
    return page_lessons()


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
        "answer": plain(given.get("answer")),
        "right_answer": question.value,
        "verdict": "revealed" if "revealed" in events else verdict,
        "hint": "hint" in events,
        "points": question.points * share if is_right else 0.0,
    }


def _read(path: Path) -> dict[str, Any]:
    document, got = _document(path)
    if not got and not (
        isinstance(document, dict) and _FORMS.keys() <= document.keys()
    ):
        got = "a document without answers and signature"
    if got:
        raise AnswerError(Problem(place=_name(path), got=got, wanted=_WANTED))
    for problem in _problems(document):
        raise AnswerError(replace(problem, place=_name(path)))
    return dict(document)


def _document(path: Path) -> tuple[Any, str]:
    """Return the document of a file, or what the file is instead."""
    try:
        with path.open("rb") as file:
            # Bounded, because a file may have any size, or none at all.
            content = file.read(_FILE_BYTES_MAX + 1)
    except OSError as error:
        return None, file_reason(error)
    if len(content) > _FILE_BYTES_MAX:
        return None, f"more than {_FILE_BYTES_MAX:,} bytes"
    try:
        return json.loads(content.decode("utf-8-sig")), ""
    except UnicodeDecodeError:
        return None, "no text"
    except ValueError as error:
        return None, f"no JSON ({error})"
    except RecursionError:
        return None, "JSON that is nested too deeply"


def _problems(document: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the values of a file that have another form, because anyone may have written the file."""
    for name, (form, wanted) in _FORMS.items():
        value = document[name]
        # True is a number to Python.
        if not isinstance(value, form) or isinstance(value, bool):
            yield Problem(key=name, got=_shown(value), wanted=wanted)
            return
    if not _is_seed(document["seed"]):
        wanted = f"a whole number or text of at most {_SEED_MAX} characters"
        yield Problem(key="seed", got=_shown(document["seed"]), wanted=wanted)
    solvers = _solvers(is_page=_is_page(document))
    if document["lesson"] not in solvers:
        wanted = f"one of {', '.join(solvers)}"
        yield Problem(key="lesson", got=_shown(document["lesson"]), wanted=wanted)
    for name, given in document["answers"].items():
        events = given.get("events", []) if isinstance(given, dict) else None
        if not isinstance(events, list) or not all(
            isinstance(event, str) for event in events
        ):
            wanted = "an object with a list of events"
            key = f"answers: {_short(name)}"
            yield Problem(key=key, got=_shown(given), wanted=wanted)


def _is_seed(seed: int | str) -> bool:
    """Return True if numbers can be drawn from a seed."""
    try:
        text = str(seed)
        text.encode()
    except ValueError:
        # A number of thousands of digits, or half of a surrogate pair, which is not text.
        return False
    return len(text) <= _SEED_MAX


def _shown(value: object) -> str:
    return shorten(json.dumps(value), _CHARACTERS_MAX)


def _short(text: object) -> str:
    """Return a text of a student without what a terminal would interpret."""
    return shorten(escaped(str(text)), _CHARACTERS_MAX)


def _name(path: Path) -> str:
    return escaped(str(path))


def _cells(one: Mapping[str, Any]) -> dict[str, str]:
    right = sum(question["points"] > 0 for question in one["questions"])
    is_signed = one["is_signed"]
    return {
        "file": escaped(one["file"]),
        "student": _short(one["student"]),
        "lesson": _short(one["lesson"]),
        "seed": _short(one["seed"]),
        "signature": "right" if is_signed else "wrong",
        "right": f"{right} of {len(one['questions'])}" if is_signed else "–",
        "points": f"{one['points']:g} of {one['points_max']}" if is_signed else "–",
    }


def _lines(one: Mapping[str, Any]) -> list[str]:
    name = escaped(one["file"])
    if not one["is_signed"]:
        return [f"{name}: not graded: the file was changed or has another key"]
    lines = [
        f"{name}: {question['question']}: {reason}"
        for question in one["questions"]
        if (reason := _reason(question))
    ]
    if one["unknown"]:
        unknown = ", ".join(map(_short, one["unknown"][:_UNKNOWN_MAX]))
        lines.append(f"{name}: warning: the lesson does not ask: {unknown}")
    version = one["stripesim"]
    if version is not None and version != __version__:
        lines.append(
            f"{name}: warning: written by stripesim {_short(version)} and graded by {__version__}, "
            "whose right answers may differ"
        )
    return lines


def _reason(question: Mapping[str, Any]) -> str:
    """Return why a question lacks points, empty if it has all."""
    verdict: str = question["verdict"]
    if verdict == "right":
        return "right after a hint: half of the points" if question["hint"] else ""
    if not verdict.startswith("not yet"):
        return verdict
    wanted = answer_text(question["right_answer"])
    return f"{verdict} (answer: {_given(question['answer'])}, right: {wanted})"


def _given(answer: object) -> str:
    """Write the answer of a student, a number as people read it."""
    if isinstance(answer, int | float) and not isinstance(answer, bool):
        return answer_text(answer)
    return _short(json.dumps(answer, ensure_ascii=False))


def _shared_numbers(graded: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Warn of files of several students with one number, as one may hold the answers of another."""
    files: dict[tuple[Any, ...], dict[str, str]] = {}
    for one in graded:
        if one["is_signed"]:
            # 4711 and "4711" draw the same problems.
            key = (one["lesson"], one["is_page"], str(one["seed"]))
            files.setdefault(key, {})[str(one["student"])] = one["file"]
    for (lesson, _, seed), by_student in files.items():
        if len(by_student) > 1:
            names = ", ".join(map(escaped, by_student.values()))
            yield (
                f"warning: several students have the number {_short(seed)} in {lesson}: {names}"
            )

"""Questions for lessons: the seed draws their numbers, and their answers are computed on demand.

Start with `open_lesson`. The questions of a lesson live in `stripesim.notebooks.answers`.
"""

import hashlib
import hmac
import html
import math
import sys
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

from stripesim._version import __version__
from stripesim.models.documents import canonical_json, json_text
from stripesim.models.problems import AnswerError, Problem, file_reason
from stripesim.scenarios.show.tables import Table

__all__ = [
    "Draw",
    "Lesson",
    "Question",
    "open_lesson",
    "part_of",
    "row_of",
    "show",
    "table",
]

Item = TypeVar("Item")
#: A number with a unit, a word to choose, or yes or no.
AnswerValue = float | int | str | bool

#: Resolution of a figure in a notebook.
_SCREEN_DPI = 110


@dataclass(frozen=True)
class Draw:
    """Draw numbers that depend only on a seed and a name, not on earlier draws.

    Examples
    --------
    >>> Draw(1).choose("size", [4, 8]) == Draw(1).choose("size", [4, 8])
    True
    """

    #: For example a student number, so that each student gets different numbers
    seed: int | str

    def choose(self, name: str, options: Sequence[Item]) -> Item:
        """Choose one of the options; raise a `ValueError` if there are none."""
        if not options:
            raise ValueError(f"draw {name}: got no options, wanted at least one")
        return options[self.number(name, 0, len(options) - 1)]

    def number(self, name: str, low: int, high: int) -> int:
        """Draw an integer from `low` to `high`, both included; raise a `ValueError` if `low` is larger."""
        if low > high:
            raise ValueError(
                f"draw {name}: got {low} to {high}, wanted an ascending range"
            )
        digest = hashlib.sha256(f"{self.seed}/{name}".encode()).digest()
        return low + int.from_bytes(digest[:8], "big") % (high - low + 1)


@dataclass(eq=False)
class Question:
    """A question with a computed answer."""

    name: str  #: Key for `Lesson.ask`
    text: str
    #: Function that computes the answer, called at most once and on demand
    answer: Callable[[], AnswerValue]
    unit: str = ""
    #: Largest relative error of a right answer, from 0 to below 1
    tolerance: float = 0.1
    hint: str = ""  #: First step towards the answer
    #: Explanation in one or two sentences, or a function that writes it from the answer
    why: str | Callable[[Any], str] = ""
    points: int = 2  #: Points for a right answer
    #: Events so far: right, hint, revealed
    record: set[str] = field(default_factory=set)
    #: Last readable answer that was checked, or the right one
    given: AnswerValue | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.tolerance < 1:
            raise ValueError(
                f"question {self.name}: tolerance: got {self.tolerance}, wanted 0 to below 1"
            )

    @cached_property
    def value(self) -> AnswerValue:
        """Return the answer."""
        answer = self.answer()
        if hasattr(answer, "item"):
            # Python's numbers, unlike NumPy's, compare and print equally everywhere.
            answer = answer.item()
        if isinstance(answer, float) and not math.isfinite(answer):
            raise ValueError(
                f"question {self.name}: got the answer {answer}, wanted a finite number"
            )
        return answer

    def check(self, answer: AnswerValue) -> str:
        """Judge an answer in words, numbers within the tolerance.

        Once an answer is right, later answers, hints and the solution no longer change what is handed in.
        """
        verdict = self.judge(answer)
        if self._is_readable(answer):
            self._note(answer, verdict)
        return verdict

    def _note(self, answer: AnswerValue, verdict: str) -> None:
        if "right" in self.record:
            return
        self.given = answer
        # After its solution, an answer is no longer the student's own.
        if verdict == "right" and "revealed" not in self.record:
            self.record.add("right")

    def help(self) -> str:
        """Return the hint."""
        if "right" not in self.record:
            self.record.add("hint")
        if not self.hint:
            return "There is no hint for this question. Read the paragraph above again."
        return self.hint

    def reveal(self) -> str:
        """Return the answer with its explanation."""
        if "right" not in self.record:
            self.record.add("revealed")
        return self.solution

    @property
    def solution(self) -> str:
        """Return the answer with its unit and its explanation."""
        text = f"{answer_text(self.value)} {self.unit}".rstrip()
        why = self.why
        if not isinstance(why, str):
            why = why(self.value)
        return f"{text}. {why}" if why else text

    def judge(self, answer: AnswerValue) -> str:
        """Judge an answer in words without recording it."""
        value = self.value
        if isinstance(value, bool | str):
            is_right = _compared(answer) == _compared(value)
            return "right" if is_right else "not yet"
        number = _number(answer)
        if not math.isfinite(number):
            return f"not yet: wanted a number of {self.unit}".removesuffix(" of ")
        if math.isclose(number, value, rel_tol=self.tolerance, abs_tol=1e-12):
            return "right"
        if value and number / value <= 0:
            return "not yet: the sign or the zero"
        verdict = "not yet: too high" if number > value else "not yet: too low"
        if not value or not 0.5 <= number / value <= 2:
            verdict += " by more than a factor of two"
        return verdict

    def _is_readable(self, answer: AnswerValue) -> bool:
        """Return False for an answer that is not a number where one is wanted."""
        return isinstance(self.value, bool | str) or math.isfinite(_number(answer))

    def __repr__(self) -> str:
        unit = f" [{self.unit}]" if self.unit else ""
        return f"Question {self.name}{unit}: {self.text}"

    def _repr_html_(self) -> str:
        """Return the question as HTML for a notebook, without the answer."""
        unit = f" <i>[{html.escape(self.unit)}]</i>" if self.unit else ""
        calls = ", ".join(
            f"<code>.{call}</code>" for call in ("check(…)", "help()", "reveal()")
        )
        return f"<p><b>{html.escape(self.name)}</b> {html.escape(self.text)}{unit}<br>{calls}</p>"


def _number(answer: AnswerValue) -> float:
    """Return an answer as a number, NaN if it is none."""
    try:
        # True is 1 to Python.
        return math.nan if isinstance(answer, bool) else float(answer)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _compared(answer: AnswerValue) -> str:
    """Return the text of an answer for a comparison: RS(6,3) is rs:6,3, whatever its blanks and capitals."""
    text = "".join(str(answer).split()).lower()
    return text.replace("(", ":").replace(")", "")


def answer_text(value: AnswerValue) -> str:
    """Return an answer as people read it: a number with three digits, or the digits before its point."""
    if isinstance(value, bool | str):
        return f"{value}"
    if isinstance(value, int):
        return f"{value:,}"
    if abs(value) < 1000:
        return f"{value:,.3g}"
    return f"{value:,.0f}"


class Given(SimpleNamespace):
    """Data for the answers of a lesson: the drawn numbers, and results that the lesson passes on."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"{name}: got no result yet, wanted that of a cell above: run the cells above in their order"
        )


Questions = Iterator[Question]


@dataclass
class Lesson:
    """The questions of a lesson, for one seed.

    Examples
    --------
    >>> lesson = Lesson("Copies", 7, {"n": [3]}, lambda d: [Question("bytes", "4 KiB?", lambda: d.n * 4096)])
    >>> lesson["bytes"].check(12288), lesson["bytes"].check(4096)
    ('right', 'not yet: too low by more than a factor of two')
    """

    title: str
    seed: int | str  #: Seed of the numbers in the questions
    #: Options by name; the seed draws one of each
    numbers: Mapping[str, Sequence[Any]]
    #: Function that writes the questions from the drawn numbers and from later results
    write: Callable[[Given], Iterable[Question]]
    #: Criteria of the exercise and their points
    rubric: Sequence[tuple[str, int]] = ()
    name: str = ""  #: Name of the lesson's file without its number, for `hand_in`

    def __post_init__(self) -> None:
        draw = Draw(self.seed)
        #: Drawn numbers, and results passed to `ask`
        self.data = Given()
        for name, options in self.numbers.items():
            setattr(self.data, name, draw.choose(name, tuple(options)))
        self.questions = {question.name: question for question in self.write(self.data)}

    def __getitem__(self, name: str) -> Question:
        if name not in self.questions:
            raise KeyError(
                f"lesson {self.title}: got {name}, wanted one of {', '.join(self.questions)}"
            )
        return self.questions[name]

    def ask(self, name: str, **results: Any) -> Question:
        """Show a question, and pass on results for its answer."""
        vars(self.data).update(results)
        question = self[name]
        show(question)
        return question

    def progress(self) -> str:
        """Count the questions answered, helped by a hint and revealed."""
        counts = Counter(
            event for question in self.questions.values() for event in question.record
        )
        return (
            f"{counts['right']} of {len(self.questions)} right, {counts['hint']} with a hint, "
            f"{counts['revealed']} revealed"
        )

    def hand_in(self, path: str | Path, *, student: str, key: str = "") -> Path:
        """Write the answers into a file for the teacher, who grades it by ``stripesim mark``.

        Parameters
        ----------
        path
            The file, such as ``4711.json``.
        student
            Name or number of the student.
        key
            Key of the class, if the teacher gave one.

        Raises
        ------
        AnswerError
            If the student has no name, or the file cannot be written.

        Notes
        -----
        The file is signed with HMAC-SHA256, so that a change of it shows. `stripesim mark` judges the answers
        again. A student who has the key can sign other events, such as no hints, but no other right answers.
        """
        if not str(student).strip():
            wanted = "a name or number"
            raise AnswerError(Problem(key="student", got=repr(student), wanted=wanted))
        answers = {
            question.name: {
                **({} if question.given is None else {"answer": plain(question.given)}),
                "events": sorted(question.record),
            }
            for question in self.questions.values()
        }
        document: dict[str, Any] = {
            "lesson": self.name,
            "seed": self.seed,
            "student": student,
            "stripesim": __version__,
            "answers": answers,
        }
        document["signature"] = signature(document, key)
        path = Path(path)
        try:
            path.write_text(json_text(document, is_ascii=True), encoding="utf-8")
        except OSError as error:
            wanted = "a file in a folder that exists"
            problem = Problem(place=f"{path}", got=file_reason(error), wanted=wanted)
            raise AnswerError(problem) from error
        return path

    def sheet(self) -> str:
        """Return the questions as a handout."""
        heading = f"{self.title} (seed {self.seed})"
        return "\n".join([heading, *map(repr, self.questions.values())])

    def marking_sheet(self) -> str:
        """Return answers, tolerances, points and exercise criteria for the teacher, in Markdown."""
        rows = [("question", "right answer", "within", "points")]
        total = 0
        for question in self.questions.values():
            is_exact = isinstance(question.value, bool | str) or question.tolerance == 0
            within = "–" if is_exact else f"± {100 * question.tolerance:g} %"
            points = f"{question.points}"
            rows.append((question.text, question.solution, within, points))
            total += question.points
        for criterion, worth in self.rubric:
            rows.append((f"Exercise: {criterion}", "", "", f"{worth}"))
            total += worth
        lines = [
            f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows
        ]
        lines.insert(1, "|---" * 4 + "|")
        heading = f"# {self.title}: marking sheet (seed {self.seed})"
        return "\n".join([heading, "", *lines, "", f"Total: {total} points."])


def open_lesson(name: str, *, seed: int | str = 1) -> Lesson:
    """Open a lesson that ships.

    Parameters
    ----------
    name
        Name of the lesson's file without its number, for example ``the-pg-lock``.
    seed
        Seed of the numbers in the questions.

    Returns
    -------
    Lesson
        The lesson with its questions.

    Raises
    ------
    ValueError
        If no lesson has this name, or the seed is neither a whole number nor text.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | str):
        raise ValueError(f"seed: got {seed!r}, wanted a whole number or text")
    folder = Path(__file__).parent / "answers"
    known = sorted(path.stem.replace("_", "-") for path in folder.glob("[a-z]*.py"))
    if name not in known:
        raise ValueError(f"lesson: got {name!r}, wanted one of {', '.join(known)}")
    answers = import_module(f"stripesim.notebooks.answers.{name.replace('-', '_')}")
    return Lesson(
        answers.TITLE, seed, answers.NUMBERS, answers.questions, answers.RUBRIC, name
    )


def signature(document: Mapping[str, Any], key: str) -> str:
    """Return the signature of what a student hands in."""
    text = canonical_json(document, is_ascii=True)
    return hmac.new(f"stripesim {key}".encode(), text.encode(), "sha256").hexdigest()


def plain(value: Any) -> Any:
    """Return an answer as JSON takes it: numbers of NumPy as those of Python, what it lacks as text."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def row_of(rows: Any, **values: Any) -> dict[str, Any]:
    """Return the first row with the given values from a table or a list of rows."""
    if hasattr(rows, "to_dicts"):
        rows = rows.to_dicts()
    return next(row for row in rows if values.items() <= row.items())


def part_of(trace: Any, start: int, count: int) -> Any:
    """Return consecutive requests of a block trace, with the device commands of their time.

    Parameters
    ----------
    trace : BlockTrace
        Trace from `stripesim.load_trace`.
    start
        Index of the first request.
    count
        Number of requests.

    Returns
    -------
    BlockTrace
        The requests, with times since the first of them.

    Raises
    ------
    ValueError
        If the trace has no such requests.
    """
    if start < 0 or count < 1 or start + count > len(trace):
        raise ValueError(
            f"part of a trace: got requests {start:,} to {start + count:,}, wanted some of {len(trace):,}"
        )
    requests = trace.requests.slice(start, count)
    first_ns = requests["issue_ns"][0]
    last_ns = requests["issue_ns"][-1]
    commands = trace.commands
    if commands is not None:
        commands = commands.filter(
            commands["dispatch_ns"].is_between(first_ns, last_ns)
        )
        commands = _since(commands, first_ns)
    return replace(
        trace,
        requests=_since(requests, first_ns),
        commands=commands,
        origin_ns=trace.origin_ns + first_ns,
    )


def _since(rows: Any, first_ns: int) -> Any:
    """Return rows with their times since another start."""
    times = [name for name in rows.columns if name.endswith("_ns")]
    return rows.with_columns(*(rows[name] - first_ns for name in times))


def table(rows: Any, *columns: str) -> Table:
    """Format columns of result rows for people, with units in the headings.

    Parameters
    ----------
    rows : polars.DataFrame
        Result rows, for example ``stripesim.run(…).rows``.
    *columns
        Names of columns.

    Returns
    -------
    Table
        Numbers with three digits, as text.
    """
    import polars as pl

    from stripesim.scenarios.schema.units import format_size, number_text
    from stripesim.scenarios.show.quantities import QUANTITIES

    shown: dict[str, list[str]] = {}
    for name in columns:
        heading = name.replace("_", " ")
        values = rows[name].to_list()
        column = QUANTITIES.get(name)
        if column and column.heading:
            heading = column.heading
        if name.endswith("_size_bytes"):
            texts = ["–" if value is None else format_size(value) for value in values]
        elif rows[name].dtype == pl.String:
            texts = values
        elif column:
            texts = [column.text({name: value}) for value in values]
        else:
            texts = [number_text(value) for value in values]
        shown[heading] = texts
    return Table("", list(shown), list(zip(*shown.values(), strict=True)))


def show(item: Any, description: str = "") -> None:
    """Display a question, a table or a figure in a notebook, and print it elsewhere.

    The caption of a figure follows it. Readers who cannot see a figure get the description: by default its
    caption, or else its titles and axes.
    """
    # Tables have captions of their own.
    caption = None if isinstance(item, Table) else getattr(item, "caption", None)
    if caption is not None:
        item = item.figure
    if _in_notebook():
        _display(item, description or caption)
    else:
        print(item)
    if caption is not None:
        print(caption)


def _words_of(figure: Any) -> str:
    """Return titles and axes of a figure as its alternative text."""
    panels = []
    for axes in figure.axes:
        titles = [axes.get_title(loc=side) for side in ("left", "center", "right")]
        ends = filter(None, (axes.get_ylabel(), axes.get_xlabel()))
        panels.append(
            ": ".join(
                filter(None, (" ".join(filter(None, titles)), " over ".join(ends)))
            )
        )
    return "Figure. " + "; ".join(filter(None, panels))


def _display(item: Any, description: str | None) -> None:
    # Only notebooks have this library.
    ipython = import_module("IPython.display")
    if not hasattr(item, "savefig"):
        ipython.display(item)
        return
    # Without pyplot, a figure would display as one line of text.
    buffer = BytesIO()
    item.savefig(buffer, format="png", dpi=_SCREEN_DPI)
    picture = b64encode(buffer.getvalue()).decode()
    alternative_text = html.escape(description or _words_of(item))
    # Notebook pages leave out the alternative text of a plain picture.
    page = f'<img alt="{alternative_text}" src="data:image/png;base64,{picture}">'
    ipython.display({"image/png": picture, "text/html": page}, raw=True)


def _in_notebook() -> bool:
    """Return True if this runs in a kernel with a display."""
    module = sys.modules.get("IPython")
    return module is not None and hasattr(module.get_ipython(), "kernel")

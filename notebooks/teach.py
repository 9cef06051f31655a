"""Lessons for a class: numbers drawn by a seed, answers computed on demand, never typed in.

Start with `open_lesson`. The questions of a lesson live in `stripesim.notebooks.answers`.
"""

import hashlib
import html
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

__all__ = ["Draw", "Lesson", "Question", "open_lesson", "row_of", "show", "table"]

Item = TypeVar("Item")
#: An answer: a number with a unit, a word to choose, or yes and no.
Answer = float | int | str | bool

#: Resolution of a figure in a notebook.
_SCREEN_DPI = 110


@dataclass(frozen=True)
class Draw:
    """Draws that depend only on a seed and a name, not on earlier draws.

    Examples
    --------
    >>> Draw(1).choose("size", [4, 8]) == Draw(1).choose("size", [4, 8])
    True
    """

    #: Such as a student's number: each gets their own numbers, equal in every run
    seed: int | str

    def choose(self, name: str, options: Sequence[Item]) -> Item:
        """Choose one of several; a `ValueError` if there is nothing to choose from."""
        if not options:
            raise ValueError(f"draw {name}: got no options, wanted at least one")
        return options[self.number(name, 0, len(options) - 1)]

    def number(self, name: str, low: int, high: int) -> int:
        """Draw a whole number from `low` to `high`, both included; a `ValueError` if they are swapped."""
        if low > high:
            raise ValueError(
                f"draw {name}: got {low} to {high}, wanted an ascending range"
            )
        digest = hashlib.sha256(f"{self.seed}/{name}".encode()).digest()
        return low + int.from_bytes(digest[:8], "big") % (high - low + 1)


@dataclass(eq=False)
class Question:
    """A question whose answer is computed."""

    name: str  #: By which a lesson asks it
    text: str
    #: Computes the answer; called at most once, on demand
    answer: Callable[[], Answer]
    unit: str = ""
    #: Relative error of a number that still counts as right, 0 to below 1
    tolerance: float = 0.1
    hint: str = ""  #: A step towards the answer
    #: One or two sentences of explanation, or a function that writes them from the answer
    why: str | Callable[[Any], str] = ""
    points: int = 2  #: For a right answer
    #: What the student did so far: right, hint, revealed
    record: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if not 0 <= self.tolerance < 1:
            raise ValueError(
                f"question {self.name}: tolerance: got {self.tolerance}, wanted 0 to below 1"
            )

    @cached_property
    def value(self) -> Answer:
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

    def check(self, answer: Answer) -> str:
        """Judge an answer in words; a number may be off by the tolerance."""
        verdict = self._judge(answer)
        if verdict == "right":
            self.record.add("right")
        return verdict

    def help(self) -> str:
        """Return the hint."""
        self.record.add("hint")
        if not self.hint:
            return "There is no hint for this one: read the paragraph above once more."
        return self.hint

    def reveal(self) -> str:
        """Return the answer and the reason for it."""
        self.record.add("revealed")
        return self.solution

    @property
    def solution(self) -> str:
        """Return the answer, its unit and its reason, for the marking sheet."""
        text = f"{_answer_text(self.value)} {self.unit}".rstrip()
        why = self.why
        if not isinstance(why, str):
            why = why(self.value)
        return f"{text}. {why}" if why else text

    def _judge(self, answer: Answer) -> str:
        value = self.value
        if isinstance(value, bool | str):
            is_right = str(answer).strip().lower() == str(value).strip().lower()
            return "right" if is_right else "not yet"
        try:
            number = float(answer)
        except (TypeError, ValueError):
            return f"not yet: wanted a number of {self.unit}".removesuffix(" of ")
        if math.isclose(number, value, rel_tol=self.tolerance, abs_tol=1e-12):
            return "right"
        if value and number / value <= 0:
            return "not yet: the sign or the zero"
        verdict = "not yet: too high" if number > value else "not yet: too low"
        if not value or not 0.5 <= number / value <= 2:
            verdict += " by more than a factor of two"
        return verdict

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


def _answer_text(value: Answer) -> str:
    if isinstance(value, bool | str):
        return f"{value}"
    if isinstance(value, int):
        return f"{value:,}"
    if abs(value) < 1000:
        return f"{value:,.3g}"
    return f"{value:,.0f}"


#: The data of a lesson's answers: the numbers drawn, and results that the lesson passes on.
Given = SimpleNamespace
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
    seed: int | str  #: Of the numbers in the questions
    #: Name → options that each seed draws one from
    numbers: Mapping[str, Sequence[Any]]
    #: Writes the questions from the numbers drawn, and from results that the lesson passes on later
    write: Callable[[Given], Iterable[Question]]
    #: Criteria of the open exercise and their points
    rubric: Sequence[tuple[str, int]] = ()

    def __post_init__(self) -> None:
        draw = Draw(self.seed)
        #: The numbers drawn, and the results passed to `ask`.
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
        """Show a question, and pass on results from which its answer is computed."""
        vars(self.data).update(results)
        question = self[name]
        show(question)
        return question

    def progress(self) -> str:
        """Return how many questions are answered, with a hint, and revealed."""
        counts = Counter(
            event for question in self.questions.values() for event in question.record
        )
        return (
            f"{counts['right']} of {len(self.questions)} right, {counts['hint']} with a hint, "
            f"{counts['revealed']} revealed"
        )

    def sheet(self) -> str:
        """Return the questions for handing out."""
        heading = f"{self.title} (seed {self.seed})"
        return "\n".join([heading, *map(repr, self.questions.values())])

    def marking_sheet(self) -> str:
        """Return the teacher's sheet in Markdown: answers, tolerances, points, criteria of the exercise."""
        rows = [("question", "right answer", "within", "points")]
        total = 0
        for question in self.questions.values():
            is_exact = isinstance(question.value, bool | str) or question.tolerance == 0
            within = "–" if is_exact else f"± {question.tolerance:.0%}"
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
        Such as ``the-pg-lock``, as in the file's name.
    seed
        Each seed has other numbers.

    Raises
    ------
    ValueError
        If there is no such lesson.
    """
    folder = Path(__file__).parent / "answers"
    known = sorted(path.stem.replace("_", "-") for path in folder.glob("[a-z]*.py"))
    if name not in known:
        raise ValueError(f"lesson: got {name!r}, wanted one of {', '.join(known)}")
    answers = import_module(f"stripesim.notebooks.answers.{name.replace('-', '_')}")
    return Lesson(
        answers.TITLE, seed, answers.NUMBERS, answers.questions, answers.RUBRIC
    )


def row_of(rows: Any, **values: Any) -> dict[str, Any]:
    """Return the first row, of a table or a list of rows, that has these values."""
    if hasattr(rows, "to_dicts"):
        rows = rows.to_dicts()
    return next(row for row in rows if values.items() <= row.items())


def table(rows: Any, *columns: str) -> Any:
    """Return columns of result rows as readable text: units in the heading, three digits.

    Parameters
    ----------
    rows : polars.DataFrame
        Such as ``stripesim.run(…).rows``.
    *columns
        Names of columns.
    """
    import polars as pl

    from stripesim.scenarios.run.results import COLUMNS
    from stripesim.scenarios.schema.units import format_size, number_text

    shown: dict[str, list[str]] = {}
    for name in columns:
        heading = name.replace("_", " ")
        values = rows[name].to_list()
        column = COLUMNS.get(name)
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
    return pl.DataFrame(shown)


def show(item: Any) -> None:
    """Show a question, a table or a figure: drawn in a notebook, elsewhere described in a line.

    A figure with a caption shows both.
    """
    caption = getattr(item, "caption", None)
    if caption is not None:
        item = item.figure
    with _table_for_people() if hasattr(item, "write_parquet") else nullcontext():
        if _in_notebook():
            _display(item)
        else:
            print(item)
    if caption is not None:
        print(caption)


def _display(item: Any) -> None:
    # Only a notebook has this library.
    ipython = import_module("IPython.display")
    if hasattr(item, "savefig"):
        # A figure made without pyplot displays itself as one line of text only.
        buffer = BytesIO()
        item.savefig(buffer, format="png", dpi=_SCREEN_DPI)
        item = ipython.Image(data=buffer.getvalue())
    ipython.display(item)


def _table_for_people() -> AbstractContextManager[Any]:
    """Show all rows and no data types while a table is printed, then restore the settings of Polars."""
    import polars as pl

    return pl.Config(
        tbl_rows=-1,
        tbl_hide_column_data_types=True,
        tbl_hide_dataframe_shape=True,
        tbl_width_chars=110,
        fmt_str_lengths=60,
    )


def _in_notebook() -> bool:
    """Return True if a kernel with a display runs this."""
    module = sys.modules.get("IPython")
    return module is not None and hasattr(module.get_ipython(), "kernel")

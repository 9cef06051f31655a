"""Lessons for a class: numbers drawn by a seed, answers computed on demand, never typed in.

Start with `open_lesson`. The questions of a lesson live in `stripesim.notebooks.answers`.
"""

import hashlib
import html
import math
import sys
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
#: What an answer may be: a number with a unit, a word to choose, or yes and no.
Answer = float | int | str | bool

#: Resolution of a figure in a notebook.
_SCREEN_DPI = 110


@dataclass(frozen=True)
class Draw:
    """Choices that depend on a seed and a name only, not on how many were drawn before.

    Examples
    --------
    >>> Draw(1).choose("size", [4, 8]) == Draw(1).choose("size", [4, 8])
    True
    """

    seed: (
        int | str
    )  #: Such as a student's number: each gets numbers of their own, the same in every run

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
    answer: Callable[
        [], Answer
    ]  #: Computes the answer; called at most once, when somebody wants to know
    unit: str = ""
    tolerance: float = (
        0.1  #: Relative error of a number that still counts as right, 0 to below 1
    )
    hint: str = ""  #: A step towards the answer
    why: str | Callable[[Any], str] = (
        ""  #: A sentence or two of explanation, or how they follow from the answer
    )
    points: int = 2  #: What a right answer is worth
    #: What the student did so far: right, hints, revealed.
    record: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if not 0 <= self.tolerance < 1:
            raise ValueError(
                f"question {self.name}: tolerance: got {self.tolerance}, wanted 0 to below 1"
            )

    @cached_property
    def value(self) -> Answer:
        """The answer."""
        found = self.answer()
        # NumPy's numbers become Python's, so that they compare and print alike everywhere.
        found = found.item() if hasattr(found, "item") else found
        if isinstance(found, float) and not math.isfinite(found):
            raise ValueError(
                f"question {self.name}: got the answer {found}, wanted a finite number"
            )
        return found

    def check(self, given: Answer) -> str:
        """Judge an answer in words; a number may be off by the tolerance."""
        verdict = self._judge(given)
        if verdict == "right":
            self.record.add("right")
        return verdict

    def _judge(self, given: Answer) -> str:
        value = self.value
        if isinstance(value, bool | str):
            same = str(given).strip().lower() == str(value).strip().lower()
            return "right" if same else "not yet"
        try:
            number = float(given)
        except (TypeError, ValueError):
            return f"not yet: wanted a number{f' of {self.unit}' if self.unit else ''}"
        if math.isclose(number, value, rel_tol=self.tolerance, abs_tol=1e-12):
            return "right"
        if value and number / value <= 0:
            return "not yet: the sign or the zero"
        ratio = number / value if value else math.inf
        far = " by more than a factor of two" if not 0.5 <= ratio <= 2 else ""
        return f"not yet: too {'high' if number > value else 'low'}{far}"

    def help(self) -> str:
        """Give the hint."""
        self.record.add("hint")
        return (
            self.hint
            or "There is no hint for this one: read the paragraph above once more."
        )

    def reveal(self) -> str:
        """Give the answer and the reason for it."""
        self.record.add("revealed")
        return self.solution

    @property
    def solution(self) -> str:
        """The answer, its unit and its reason, for the marking sheet."""
        value = self.value
        if isinstance(value, float):
            shown = f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
        else:
            shown = (
                f"{value:,}"
                if isinstance(value, int) and not isinstance(value, bool)
                else f"{value}"
            )
        text = f"{shown} {self.unit}".rstrip()
        why = self.why if isinstance(self.why, str) else self.why(value)
        return f"{text}. {why}" if why else text

    def __repr__(self) -> str:
        unit = f" [{self.unit}]" if self.unit else ""
        return f"Question {self.name}{unit}: {self.text}"

    def _repr_html_(self) -> str:
        """Show the question in a notebook; the answer is computed when somebody asks."""
        unit = f" <i>[{html.escape(self.unit)}]</i>" if self.unit else ""
        calls = ", ".join(
            f"<code>.{call}</code>" for call in ("check(…)", "help()", "reveal()")
        )
        return f"<p><b>{html.escape(self.name)}</b> {html.escape(self.text)}{unit}<br>{calls}</p>"


#: What the answers of a lesson get, the numbers drawn and what the lesson hands over, and what they give.
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
    numbers: Mapping[
        str, Sequence[Any]
    ]  #: Name → options that each seed draws one from
    #: From the numbers drawn, and what the lesson hands over later, to its questions
    write: Callable[[Given], Iterable[Question]]
    rubric: Sequence[
        tuple[str, int]
    ] = ()  #: How the open exercise is marked: criterion and points

    def __post_init__(self) -> None:
        draw = Draw(self.seed)
        #: The numbers drawn, and what `ask` was given.
        self.data = Given(
            **{name: draw.choose(name, tuple(of)) for name, of in self.numbers.items()}
        )
        self.questions = {question.name: question for question in self.write(self.data)}

    def __getitem__(self, name: str) -> Question:
        if name not in self.questions:
            raise KeyError(
                f"lesson {self.title}: got {name}, wanted one of {', '.join(self.questions)}"
            )
        return self.questions[name]

    def ask(self, name: str, **given: Any) -> Question:
        """Show a question, handing over results that its answer is computed from."""
        vars(self.data).update(given)
        question = self[name]
        show(question)
        return question

    def progress(self) -> str:
        """Count what is done."""
        done = [question.record for question in self.questions.values()]
        counts = {
            what: sum(what in one for one in done)
            for what in ("right", "hint", "revealed")
        }
        return (
            f"{counts['right']} of {len(done)} right, {counts['hint']} with a hint, "
            f"{counts['revealed']} revealed"
        )

    def sheet(self) -> str:
        """Write the questions for handing out."""
        return "\n".join(
            [f"{self.title} (seed {self.seed})", *map(repr, self.questions.values())]
        )

    def marking_sheet(self) -> str:
        """Write the teacher's sheet in Markdown: answers, tolerances, points, criteria of the exercise."""
        rows = [("question", "right answer", "within", "points")]
        for one in self.questions.values():
            exact = isinstance(one.value, bool | str) or one.tolerance == 0
            rows.append(
                (
                    one.text,
                    one.solution,
                    "–" if exact else f"± {one.tolerance:.0%}",
                    f"{one.points}",
                )
            )
        rows += [
            (f"Exercise: {what}", "", "", f"{points}") for what, points in self.rubric
        ]
        total = sum(one.points for one in self.questions.values()) + sum(
            points for _, points in self.rubric
        )
        lines = [
            f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows
        ]
        lines.insert(1, "|---" * 4 + "|")
        return "\n".join(
            [
                f"# {self.title}: marking sheet (seed {self.seed})",
                "",
                *lines,
                "",
                f"Total: {total} points.",
            ]
        )


def open_lesson(name: str, *, seed: int | str = 1) -> Lesson:
    """Open a lesson that ships.

    Parameters
    ----------
    name
        Such as ``the-pg-lock``, as in the file's name; a `ValueError` if there is no such lesson.
    seed
        Each seed has other numbers.
    """
    answers_of = Path(__file__).parent / "answers"
    known = sorted(path.stem.replace("_", "-") for path in answers_of.glob("[a-z]*.py"))
    if name not in known:
        raise ValueError(f"lesson: got {name!r}, wanted one of {', '.join(known)}")
    answers = import_module(f"stripesim.notebooks.answers.{name.replace('-', '_')}")
    return Lesson(
        answers.TITLE, seed, answers.NUMBERS, answers.questions, answers.RUBRIC
    )


def row_of(rows: Any, **where: Any) -> dict[str, Any]:
    """Return the first row, of a table or a list of rows, that has these values."""
    listed = rows.to_dicts() if hasattr(rows, "to_dicts") else rows
    return next(row for row in listed if where.items() <= row.items())


def table(rows: Any, *columns: str) -> Any:
    """Choose columns of result rows and write them as people read them: units in the heading, three digits.

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
        column, values = COLUMNS.get(name), rows[name].to_list()
        if name.endswith("_size_bytes"):
            texts = ["–" if value is None else format_size(value) for value in values]
        elif rows[name].dtype == pl.String:
            texts = values
        else:
            texts = [
                column.text({name: one}) if column else number_text(one)
                for one in values
            ]
        shown[
            column.heading if column and column.heading else name.replace("_", " ")
        ] = texts
    return pl.DataFrame(shown)


def show(thing: Any) -> None:
    """Show a question, a table or a figure: in a notebook drawn, elsewhere described in a line.

    A figure with a caption shows both.
    """
    caption = getattr(thing, "caption", None)
    if caption is not None:
        thing = thing.figure
    with _table_for_people() if hasattr(thing, "write_parquet") else nullcontext():
        if _in_notebook():
            # Only a notebook has this library; nothing else needs it.
            ipython = import_module("IPython.display")
            # A figure made without pyplot shows itself as one line of text: give the notebook its picture.
            ipython.display(
                ipython.Image(data=_png(thing)) if hasattr(thing, "savefig") else thing
            )
        else:
            print(thing)
    if caption is not None:
        print(caption)


def _table_for_people() -> AbstractContextManager[Any]:
    """Show all rows and no data types while a table is printed; Polars' settings stay as they were."""
    import polars as pl

    return pl.Config(
        tbl_rows=-1,
        tbl_hide_column_data_types=True,
        tbl_hide_dataframe_shape=True,
        tbl_width_chars=110,
        fmt_str_lengths=60,
    )


def _png(figure: Any) -> bytes:
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=_SCREEN_DPI)
    return buffer.getvalue()


def _in_notebook() -> bool:
    """Say whether a kernel with a display runs this."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return shell is not None and hasattr(shell, "kernel")

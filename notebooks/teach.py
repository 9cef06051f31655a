"""Exercises for a class: numbers drawn by a seed, answers computed when asked for, never typed in."""

from __future__ import annotations

import hashlib
import html
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import Any, TypeVar

__all__ = ["Draw", "Lesson", "Question", "show"]

Item = TypeVar("Item")
#: What an answer may be: a number with a unit, a word to choose, or yes and no.
Answer = float | int | str | bool

#: Resolution of a figure in a notebook.
_SCREEN_DPI = 110


@dataclass(frozen=True)
class Draw:
    """Choices that depend on a seed and a name only.

    Parameters
    ----------
    seed : int or str
        Such as a student's number: each gets numbers of their own, the same at every run.

    Notes
    -----
    A draw is keyed by its name, not by how many were drawn before, so a question added to a lesson leaves
    all others as they were.

    Examples
    --------
    >>> Draw(1).choose("size", [4, 8]) == Draw(1).choose("size", [4, 8])
    True
    """

    seed: int | str

    def choose(self, name: str, options: Sequence[Item]) -> Item:
        """Choose one of several.

        Raises
        ------
        ValueError
            If there is nothing to choose from.
        """
        if not options:
            raise ValueError(f"draw {name}: got no options, wanted at least one")
        return options[self.number(name, 0, len(options) - 1)]

    def number(self, name: str, low: int, high: int) -> int:
        """Draw a whole number from `low` to `high`, both included.

        Raises
        ------
        ValueError
            If `low` is above `high`.
        """
        if low > high:
            raise ValueError(f"draw {name}: got {low} to {high}, wanted an ascending range")
        digest = hashlib.sha256(f"{self.seed}/{name}".encode()).digest()
        return low + int.from_bytes(digest[:8], "big") % (high - low + 1)


@dataclass(frozen=True, eq=False)
class Question:
    """A question whose answer is computed.

    Parameters
    ----------
    number : int
        Place in its lesson, from 1.
    text : str
    answer : callable
        Computes the answer; called at most once, when somebody wants to know.
    unit : str
    tolerance : float
        Relative error of a number that still counts as right.
    why : callable, optional
        From the answer to a sentence or two of explanation.
    """

    number: int
    text: str
    answer: Callable[[], Answer]
    unit: str = ""
    tolerance: float = 0.1
    why: Callable[[Any], str] | None = None

    @cached_property
    def value(self) -> Answer:
        """The answer."""
        found = self.answer()
        # NumPy's numbers become Python's, so that they compare and print alike everywhere.
        found = found.item() if hasattr(found, "item") else found
        if isinstance(found, float) and not math.isfinite(found):
            raise ValueError(f"question {self.number}: got the answer {found}, wanted a finite number")
        return found

    def check(self, given: Answer) -> str:
        """Judge an answer in words; a number may be off by the tolerance."""
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

    def reveal(self) -> str:
        """Tell the answer and why."""
        value = self.value
        if isinstance(value, float):
            shown = f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
        else:
            shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else f"{value}"
        text = f"{shown} {self.unit}".rstrip()
        return text if self.why is None else f"{text}. {self.why(value)}"

    def __repr__(self) -> str:
        unit = f" [{self.unit}]" if self.unit else ""
        return f"Question {self.number}{unit}: {self.text}"

    def _repr_html_(self) -> str:
        """Show the question in a notebook; the answer waits behind a click, and is computed with it."""
        unit = f" <i>[{html.escape(self.unit)}]</i>" if self.unit else ""
        return (
            f"<p><b>Question {self.number}.</b> {html.escape(self.text)}{unit}<br>"
            f"<code>q{self.number}.check(…)</code> judges an answer, <code>q{self.number}.reveal()</code> "
            "tells it.</p>"
        )


class Lesson:
    """The questions of a notebook.

    Parameters
    ----------
    title : str
    seed : int or str
        Of the numbers in the questions.

    Examples
    --------
    >>> lesson = Lesson("Copies", seed=7)
    >>> q1 = lesson.ask("How many bytes do 3 copies of 4 KiB take?", lambda: 3 * 4096, unit="B")
    >>> q1.check(12288), q1.check(4096)
    ('right', 'not yet: too low by more than a factor of two')
    """

    def __init__(self, title: str, *, seed: int | str = 1) -> None:
        self.title = title
        self.draw = Draw(seed)
        self.questions: list[Question] = []

    def ask(
        self,
        text: str,
        answer: Callable[[], Answer],
        *,
        unit: str = "",
        tolerance: float = 0.1,
        why: Callable[[Any], str] | None = None,
    ) -> Question:
        """Add a question; see `Question` for the parameters.

        Raises
        ------
        ValueError
            If the tolerance is not between 0 and 1.
        """
        if not 0 <= tolerance < 1:
            raise ValueError(f"question: tolerance: got {tolerance}, wanted 0 to below 1")
        question = Question(len(self.questions) + 1, text, answer, unit, tolerance, why)
        self.questions.append(question)
        return question

    def solve(self) -> dict[int, Answer]:
        """Compute all answers: number of the question → answer."""
        return {question.number: question.value for question in self.questions}

    def sheet(self) -> str:
        """Write the questions for handing out."""
        lines = [f"{self.title} (seed {self.draw.seed})"]
        return "\n".join([*lines, *(f"{question!r}" for question in self.questions)])


def show(thing: Any) -> None:
    """Show a question, a table or a figure: in a notebook drawn, elsewhere described in a line.

    Parameters
    ----------
    thing : object
        A figure with a caption shows both.
    """
    caption = getattr(thing, "caption", None)
    if caption is not None:
        thing = thing.figure
    if _in_notebook():
        # Only a notebook has this library; nothing else needs it.
        from importlib import import_module

        ipython = import_module("IPython.display")
        # A figure made without pyplot shows itself as one line of text: give the notebook its picture.
        ipython.display(ipython.Image(data=_png(thing)) if hasattr(thing, "savefig") else thing)
    else:
        print(thing)
    if caption is not None:
        print(caption)


def _png(figure: Any) -> bytes:
    """Render a figure."""
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=_SCREEN_DPI)
    return buffer.getvalue()


def _in_notebook() -> bool:
    """Tell whether a kernel with a display runs this."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return shell is not None and hasattr(shell, "kernel")

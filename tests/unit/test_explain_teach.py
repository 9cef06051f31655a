"""Exercises: drawn by a seed, answered by a computation, judged within a tolerance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripesim.teach import Draw, Lesson


@given(seed=st.integers(), name=st.text(), low=st.integers(-100, 100), span=st.integers(0, 100))
def test_a_draw_stays_in_its_range_and_repeats(seed: int, name: str, low: int, span: int) -> None:
    number = Draw(seed).number(name, low, low + span)
    assert low <= number <= low + span
    assert Draw(seed).number(name, low, low + span) == number


def test_draws_differ_between_seeds_and_names() -> None:
    assert len({Draw(seed).number("x", 0, 999) for seed in range(50)}) > 30
    assert len({Draw(1).number(f"name {n}", 0, 999) for n in range(50)}) > 30
    with pytest.raises(ValueError, match="got no options"):
        Draw(1).choose("nothing", [])
    with pytest.raises(ValueError, match="wanted an ascending range"):
        Draw(1).number("down", 2, 1)


def test_an_answer_is_computed_once_and_only_when_asked_for() -> None:
    calls = []
    lesson = Lesson("x")
    question = lesson.ask("?", lambda: calls.append(1) or 42.0, unit="s")
    assert repr(question) == "Question 1 [s]: ?"
    assert calls == []
    assert question.check(42) == "right"
    assert question.reveal() == "42 s"
    assert calls == [1]
    assert lesson.solve() == {1: 42.0}


@pytest.mark.parametrize(
    ("answer", "given_answer", "judged"),
    [
        (100.0, 109.0, "right"),
        (100.0, 112.0, "not yet: too high"),
        (100.0, 80.0, "not yet: too low"),
        (100.0, 10.0, "not yet: too low by more than a factor of two"),
        (100.0, -100.0, "not yet: the sign or the zero"),
        (0.0, 1.0, "not yet: too high by more than a factor of two"),
        (0, 0, "right"),
        (100.0, "many", "not yet: wanted a number"),
        ("kv", " KV ", "right"),
        ("kv", "ssd", "not yet"),
        (True, True, "right"),
        (True, "false", "not yet"),
        (np.float64(100.0), 100, "right"),
        (np.bool_(True), True, "right"),
    ],
)
def test_answers_are_judged(answer: object, given_answer: object, judged: str) -> None:
    question = Lesson("x").ask("?", lambda: answer)  # type: ignore[arg-type,return-value]
    assert question.check(given_answer) == judged  # type: ignore[arg-type]


def test_what_is_no_answer_is_refused() -> None:
    question = Lesson("x").ask("?", lambda: float("nan"))
    with pytest.raises(ValueError, match="wanted a finite number"):
        question.reveal()
    with pytest.raises(ValueError, match="wanted 0 to below 1"):
        Lesson("x").ask("?", lambda: 1.0, tolerance=1.0)


def test_a_sheet_holds_the_questions_and_no_answers() -> None:
    lesson = Lesson("Copies", seed=7)
    question = lesson.ask("How <many>?", lambda: 12345.0)
    assert lesson.sheet() == "Copies (seed 7)\nQuestion 1: How <many>?"
    assert "&lt;many&gt;" in question._repr_html_()
    assert "12,345" not in question._repr_html_()

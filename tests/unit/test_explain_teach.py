"""Exercises: drawn by a seed, answered by a computation, judged within a tolerance."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripesim.teach import Draw, Lesson, Question, table


@given(
    seed=st.integers(),
    name=st.text(),
    low=st.integers(-100, 100),
    span=st.integers(0, 100),
)
def test_a_draw_stays_in_its_range_and_repeats(
    seed: int, name: str, low: int, span: int
) -> None:
    number = Draw(seed).number(name, low, low + span)
    assert low <= number <= low + span
    assert Draw(seed).number(name, low, low + span) == number


def test_draws_differ_between_seeds_and_names() -> None:
    assert len({Draw(seed).number("x", 0, 999) for seed in range(50)}) > 30
    assert len({Draw(1).number(f"name {n}", 0, 999) for n in range(50)}) > 30
    with pytest.raises(ValueError, match="got no options"):
        Draw(1).choose("nothing", [])
    with pytest.raises(ValueError, match="wanted"):
        Draw(1).number("down", 2, 1)


def test_an_answer_is_computed_once_and_only_when_asked_for() -> None:
    calls: list[int] = []
    question = Question(
        "q", "?", lambda: calls.append(1) or 42.0, unit="s", hint="Half of 84."
    )
    assert repr(question) == "Question q [s]: ?"
    assert calls == []
    assert question.help() == "Half of 84."
    assert question.check(42) == "right"
    assert question.reveal() == "42 s"
    assert calls == [1]
    assert question.record == {"right", "hint"}


@pytest.mark.parametrize(
    ("answer", "given_answer", "judged"),
    [
        (100.0, 109.0, "right"),
        (100.0, 112.0, "not yet: too high"),
        (100.0, 80.0, "not yet: too low"),
        (100.0, 10.0, "not yet: too low by more than a factor of two"),
        (100.0, -100.0, "not yet: the sign"),
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
    question = Question("q", "?", lambda: answer)  # type: ignore[arg-type,return-value]
    assert question.check(given_answer).startswith(judged)  # type: ignore[arg-type]
    assert ("right" in question.record) == (judged == "right")


def test_invalid_answers_are_refused() -> None:
    with pytest.raises(ValueError, match="wanted"):
        Question("q", "?", lambda: float("nan")).reveal()
    with pytest.raises(ValueError, match="wanted"):
        Question("q", "?", lambda: 1.0, tolerance=1.0)


def test_a_lesson_passes_results_on_and_only_the_teachers_sheet_has_answers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def write(d):
        yield Question(
            "how many",
            f"How <many> in {d.n}?",
            lambda: 12345.0 * d.found,
            why=lambda _: "Because.",
        )

    lesson = Lesson("Copies", 7, {"n": [3]}, write, rubric=[("argues", 4)])
    question = lesson.ask("how many", found=2)
    assert "How <many> in 3?" in capsys.readouterr().out
    assert lesson.sheet() == "Copies (seed 7)\nQuestion how many: How <many> in 3?"
    assert "&lt;many&gt;" in question._repr_html_()
    assert "24,690" not in question._repr_html_()
    sheet = lesson.marking_sheet()
    assert "| How <many> in 3? | 24,690. Because. | ± 10 % | 2 |" in sheet
    assert "| Exercise: argues |  |  | 4 |" in sheet
    assert "Total: 6 points." in sheet
    assert lesson.progress() == "0 of 1 right, 0 with a hint, 0 revealed"
    with pytest.raises(KeyError, match="got other"):
        lesson.ask("other")


def test_a_marking_sheet_states_tolerances_below_one_per_cent() -> None:
    question = Question("size", "How large?", lambda: 24_690, tolerance=0.001)
    lesson = Lesson("Copies", 7, {}, lambda _: [question])
    assert "| How large? | 24,690 | ± 0.1 % | 2 |" in lesson.marking_sheet()


def test_a_table_has_units_in_its_headings() -> None:
    rows = pl.DataFrame(
        {
            "scheme": ["rep:3"],
            "latency_mean_ns": [1.5e6],
            "block_size_bytes": [4096],
            "x_s": [2.0],
        }
    )
    shown = table(rows, "scheme", "latency_mean_ns", "block_size_bytes", "x_s")
    columns = zip(*shown.rows, strict=True)
    assert dict(zip(shown.columns, map(list, columns), strict=True)) == {
        "scheme": ["rep:3"],
        "latency, mean [ms]": ["1.5"],
        "block": ["4KiB"],
        "x s": ["2"],
    }
    heading, row = str(shown).splitlines()
    assert heading.split("  ")[-1] == "x s" and row.split() == [
        "rep:3",
        "1.5",
        "4KiB",
        "2",
    ]
    assert "<td>1.5</td>" in shown._repr_html_() and "&quot;" not in shown._repr_html_()

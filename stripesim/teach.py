"""Export lessons with computed answers, and timelines as text. See `stripesim.notebooks.teach`."""

from stripesim.notebooks.teach import (
    Draw,
    Lesson,
    Question,
    open_lesson,
    part_of,
    show,
    table,
)
from stripesim.scenarios.answers.explain.text import drawing, heading, latency_words

__all__ = [
    "Draw",
    "Lesson",
    "Question",
    "drawing",
    "heading",
    "latency_words",
    "open_lesson",
    "part_of",
    "show",
    "table",
]

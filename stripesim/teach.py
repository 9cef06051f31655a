"""Lessons with answers that are computed; see `stripesim.notebooks.teach`."""

from stripesim.notebooks.teach import Draw, Lesson, Question, open_lesson, show, table

__all__ = ["Draw", "Lesson", "Question", "open_lesson", "show", "table"]

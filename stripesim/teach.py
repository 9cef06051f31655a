"""Exercises with answers that are computed; see `stripesim.notebooks.teach`."""

from stripesim.notebooks.teach import Draw, Lesson, Question, show

__all__ = ["Draw", "Lesson", "Question", "show"]

"""Figures of the study, drawn from its rows; `draw` returns all of them."""

from stripesim.scenarios.studies.koh2017.figures.draw import draw

__all__ = ["draw"]

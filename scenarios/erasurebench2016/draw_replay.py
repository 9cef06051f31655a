"""Figure 7: nodes that come and go, and the traffic that follows, by kind."""

from __future__ import annotations

import polars as pl

from stripesim.scenarios.figures import CaptionedFigure


def draw_replay(rows: pl.DataFrame) -> CaptionedFigure:
    """Figure 7 of the source: nodes, and stacked traffic under RS and LRC."""
    raise NotImplementedError

"""Figures of durability: nines with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stripesim.scenarios.figures.results import CaptionedFigure, new_figure, styled

_COLOURS = {"markov": "#0072B2", "splitting": "#E69F00", "burst": "#009E73"}
_MARKERS = {"markov": "o", "splitting": "s", "burst": "^"}


def draw_nines(rows: Sequence[Mapping[str, Any]]) -> CaptionedFigure:
    """Draw nines by scheme and method."""
    schemes = list(dict.fromkeys(row["scheme"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    with styled():
        figure = new_figure((2.5 + 1.4 * len(schemes), 4.5))
        axes = figure.add_subplot()
        for index, method in enumerate(methods):
            shown = [row for row in rows if row["method"] == method and row["nines"] is not None]
            x = [schemes.index(row["scheme"]) + 0.18 * (index - (len(methods) - 1) / 2) for row in shown]
            below = [row["nines"] - row["nines_low"] for row in shown]
            above = [(row["nines_high"] or row["nines"]) - row["nines"] for row in shown]
            axes.errorbar(
                x, [row["nines"] for row in shown], yerr=[below, above], fmt=_MARKERS[method],
                color=_COLOURS[method], capsize=4, label=method,
            )  # fmt: skip
        axes.set_xticks(range(len(schemes)), schemes)
        axes.set_xlim(-0.6, len(schemes) - 0.4)
        axes.set_ylim(bottom=0)
        axes.set_ylabel("nines")
        axes.legend()
    caption = (
        "Nines of durability: −log10 of the probability that any data is lost within the horizon, with "
        "95 % intervals; exact values have none."
    )
    return CaptionedFigure(figure, caption)

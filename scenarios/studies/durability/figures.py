"""The study's figures."""

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stripesim.scenarios.figures.panels import COLOURS, MARKERS, note
from stripesim.scenarios.figures.results import CaptionedFigure, new_figure, styled
from stripesim.scenarios.studies.durability.runs import (
    nines_by_capacity,
    nines_by_pace,
    split_id,
)
from stripesim.scenarios.studies.lookup import claims_of

_CURVES = (
    "mlec-8-2-50-sim-raid-8-2",
    "mlec-8-2-50-web-dp-8-2",
    "mlec-16-2-54-sim-raid-16-2",
    "mlec-16-2-54-sim-dp-16-2",
    "mlec-8-1-45-sim-raid-8-1",
)


def draw(rows: pl.DataFrame) -> dict[str, CaptionedFigure]:
    """Draw nines over failure rate, over pace of repair, and against usable capacity."""
    with styled():
        return {
            "nines-over-afr": _over_failure_rate(rows),
            "nines-over-pace": _over_pace(),
            "nines-over-capacity": _over_capacity(),
        }


def _panel(x: str) -> tuple[Figure, Axes]:
    figure = new_figure((8.0, 5.4))
    axes = figure.add_subplot()
    axes.set(xlabel=x, ylabel="nines within a year")
    return figure, axes


def _over_failure_rate(rows: pl.DataFrame) -> CaptionedFigure:
    figure, axes = _panel("annual failure rate [%]")
    computed = dict(rows.select("pattern", "value").iter_rows())
    for index, curve in enumerate(_CURVES):
        points = [
            (float(found[1]), claim.published, computed.get(claim.id))
            for claim in claims_of("durability")
            if (found := split_id(claim.id)) is not None and found[0] == curve
        ]
        x, published, ours = (
            np.array(column, dtype=float) for column in zip(*points, strict=True)
        )
        colour = COLOURS[index % len(COLOURS)]
        axes.plot(x, ours, color=colour, label=curve.removeprefix("mlec-"))
        axes.plot(
            x,
            published,
            linestyle="",
            marker=MARKERS[index % len(MARKERS)],
            color=colour,
        )
    axes.legend(fontsize=10)
    return CaptionedFigure(
        figure,
        "Nines over the failure rate: points as mlec-sim published them, lines as computed; none is fitted.",
    )


def _over_pace() -> CaptionedFigure:
    paces = tuple(float(pace) for pace in np.geomspace(1e7, 2e9, 24))
    figure, axes = _panel("pace of repair, each failed drive [MB/s]")
    for index, (scheme, nines) in enumerate(nines_by_pace(paces).items()):
        axes.plot(
            np.array(paces) / 1e6,
            nines,
            color=COLOURS[index % len(COLOURS)],
            label=scheme,
        )
    axes.set_xscale("log")
    axes.legend()
    return CaptionedFigure(
        figure,
        "Nines over the pace of repair: pools on 60 drives of 20 TB, AFR 2 %, by the chain.",
    )


def _over_capacity() -> CaptionedFigure:
    figure, axes = _panel("usable share of raw capacity [%]")
    for index, placement in enumerate(("clustered", "declustered")):
        rows = [row for row in nines_by_capacity(120) if row["placement"] == placement]
        axes.plot(
            [100 * row["usable"] for row in rows],
            [row["nines"] for row in rows],
            linestyle="",
            marker=MARKERS[index],
            color=COLOURS[index],
            label=placement,
        )
        for row in rows:
            note(
                axes,
                row["scheme"],
                (100 * row["usable"], row["nines"]),
                (4, 3),
                fontsize=8,
                ha="left",
            )
    axes.legend()
    return CaptionedFigure(
        figure,
        "Nines against usable capacity: 120 drives of 20 TB, AFR 2 %, 100 MB/s; clustered pools rebuild to "
        "one drive each, declustered ones share the rebuild.",
    )

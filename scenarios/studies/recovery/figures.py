"""The study's figure: what clients keep and what recovery gets, by scheduler and profile."""

import polars as pl

from stripesim.scenarios.figures.panels import COLOURS
from stripesim.scenarios.figures.results import CaptionedFigure, new_figure

SHORT = {
    "wpq, default limits": "WPQ",
    "wpq, limits 1000": "WPQ,\nlimits 1000",
    "high_client_ops": "mClock\nhigh client",
    "balanced": "mClock\nbalanced",
    "high_recovery_ops": "mClock\nhigh recovery",
}


def draw(rows: pl.DataFrame) -> dict[str, CaptionedFigure]:
    """Draw client rate, 99th percentile and recovery rate of each configuration."""
    shown = rows.filter(
        (pl.col("experiment") == "mclock2021")
        & pl.col("configuration").is_in(list(SHORT))
    )
    names = [SHORT[name] for name in shown["configuration"]]
    figure = new_figure((11, 3.8))
    panels = (
        ("iops", "client IOPS"),
        ("latency_p99_ms", "client p99 [ms]"),
        ("objects_per_s", "recovery [objects of 4 MiB/s]"),
    )
    for place, (column, label) in enumerate(panels):
        axes = figure.add_subplot(1, 3, place + 1)
        axes.bar(names, shown[column].to_list(), color=COLOURS[place])
        axes.set(ylabel=label, ylim=(0, None))
        axes.tick_params(axis="x", labelsize=7, rotation=30)
    caption = (
        "Clients and recovery on one host with four OSDs while one is filled again: 4 KiB random writes, "
        "64 in flight, by scheduler and profile."
    )
    return {"trade-off": CaptionedFigure(figure, caption)}

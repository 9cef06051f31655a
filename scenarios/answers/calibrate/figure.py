"""Plot the ratio of simulated to measured values before and after a calibration, one line per value."""

from __future__ import annotations

from typing import Final

from stripesim.scenarios.answers.calibrate.calibrate import TOLERANCE, Calibration
from stripesim.scenarios.answers.calibrate.rows import FITTED_METRICS
from stripesim.scenarios.show.figures.panels import COLOURS
from stripesim.scenarios.show.figures.results import (
    CaptionedFigure,
    legend,
    new_figure,
    styled,
)

_METRIC_WORDS: Final = {
    "iops": "",
    "mb_s": "",
    "latency_mean_ms": ", mean latency",
    "latency_p99_ms": ", p99",
}
_ROLES: Final = (("calibration", "fitted"), ("held-out", "held out"))
_ROW_INCHES: Final = 0.26


def draw_calibration(result: Calibration) -> CaptionedFigure:
    """Plot the ratio of simulated to measured values, for rates and any measured 99th percentiles."""
    shown = []
    for role, _ in _ROLES:
        seen: set[str] = set()
        for value in result.values:
            row = value.id.rpartition(":")[0]
            repeats = value.metric in FITTED_METRICS and row in seen
            if value.role == role and not repeats:
                shown.append(value)
                seen.add(row)
    with styled():
        figure = new_figure((8.0, 1.6 + _ROW_INCHES * len(shown)))
        axes = figure.subplots()
        axes.axvspan(
            1 - TOLERANCE, 1 + TOLERANCE, color="0.9", label=f"within {TOLERANCE:.0%}"
        )
        axes.axvline(1, color="0.4", linewidth=0.8)
        for place, value in enumerate(shown):
            before = value.before / value.measured
            after = value.after / value.measured
            axes.plot([before, after], [place, place], color="0.6", linewidth=0.9)
            axes.plot(before, place, "o", color="0.5", fillstyle="none", label="before")
        for (role, words), colour, marker in zip(_ROLES, COLOURS, "so", strict=False):
            places = [at for at, value in enumerate(shown) if value.role == role]
            ratios = [shown[at].after / shown[at].measured for at in places]
            axes.plot(
                ratios,
                places,
                marker,
                color=colour,
                linestyle="none",
                label=f"after, {words}",
            )
        axes.set_yticks(
            range(len(shown)),
            [value.load + _METRIC_WORDS[value.metric] for value in shown],
        )
        axes.invert_yaxis()
        axes.set_xscale("log")
        ticks = [0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xticks([], minor=True)
        axes.set_xlabel("simulated / measured")
        legend(figure)
    return CaptionedFigure(figure, _caption(result))


def _caption(result: Calibration) -> str:
    held_out = result.held_out()
    return (
        "Simulated over measured, before (hollow) and after (filled) calibration. "
        f"Of {held_out} held-out values, {result.count_within(after=False)} were within {TOLERANCE:.0%} "
        f"before and {result.count_within(after=True)} are after."
    )

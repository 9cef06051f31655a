"""Plot the ratio of simulated to measured values before and after a calibration, one line per value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from stripesim.scenarios.answers.calibrate.accuracy import TOLERANCE, JudgedValue
from stripesim.scenarios.answers.calibrate.calibrate import Calibration
from stripesim.scenarios.answers.calibrate.rows import FITTED_METRICS
from stripesim.scenarios.show.figures.renderer import CaptionedFigure, drawn
from stripesim.scenarios.show.figures.specification import (
    COLOURS,
    AxisSpec,
    FigureSpec,
    LayerSpec,
    PanelSpec,
    line_at,
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
    """Plot the ratio of simulated to measured values, for rates and any measured 99th percentiles.

    Values that the audit withholds are left out.
    """
    shown = []
    for role, _ in _ROLES:
        seen: set[str] = set()
        for value in result.values:
            row = value.id.rpartition(":")[0]
            repeats = value.metric in FITTED_METRICS and row in seen
            if value.role == role and value.after is not None and not repeats:
                shown.append(value)
                seen.add(row)
    return drawn(_figure(shown, _caption(result)))


def _figure(shown: Sequence[JudgedValue], caption: str) -> FigureSpec:
    positions = range(len(shown))
    after = [_ratio(value.after, value.measured) for value in shown]
    # The audit may refuse the runs before the fit alone.
    places_before = [at for at in positions if shown[at].before is not None]
    before = [_ratio(shown[at].before, shown[at].measured) for at in places_before]
    layers = [
        LayerSpec(
            mark="span",
            low=[1 - TOLERANCE],
            high=[1 + TOLERANCE],
            label=f"within {100 * TOLERANCE:.0f} %",
            style={"color": "0.9"},
        ),
        line_at(1, linewidth=0.8),
        LayerSpec(
            mark="whiskers",
            y=places_before,
            low=before,
            high=[after[at] for at in places_before],
            sideways=True,
            style={"color": "0.6", "linewidth": 0.9},
        ),
        LayerSpec(
            mark="published",
            x=before,
            y=places_before,
            label="before",
            style={"marker": "o", "color": "0.5", "markersize": 6},
        ),
    ]
    for (role, words), colour, marker in zip(_ROLES, COLOURS, "so", strict=False):
        own = [at for at, value in enumerate(shown) if value.role == role]
        layers.append(
            LayerSpec(
                mark="points",
                x=[after[at] for at in own],
                y=own,
                label=f"after, {words}",
                style={"marker": marker, "color": colour, "markersize": 6},
            )
        )
    panel = PanelSpec(
        layers=layers,
        x=AxisSpec(
            label="simulated / measured",
            scale="log",
            ticks=[0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5],
        ),
        y=AxisSpec(
            ticks=positions,
            names=[value.load + _METRIC_WORDS[value.metric] for value in shown],
            reverse=True,
        ),
    )
    size = (8.0, 1.6 + _ROW_INCHES * len(shown))
    return FigureSpec(size=size, panels=[panel], caption=caption)


def _ratio(simulated: float | None, measured: float) -> float:
    assert simulated is not None
    return simulated / measured


def _caption(result: Calibration) -> str:
    held_out = result.held_out()
    tolerance = f"{100 * TOLERANCE:.0f} %"
    return (
        "Simulated over measured, before (hollow) and after (filled) calibration. "
        f"Of {held_out} held-out values, {result.count_within(after=False)} were within {tolerance} "
        f"before and {result.count_within(after=True)} are after."
    )

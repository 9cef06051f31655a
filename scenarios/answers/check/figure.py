"""Draw a measured value, the expected interval, and what each cause would give."""

from __future__ import annotations

from typing import Final

from stripesim.calibration.ledger.model_errors import COVERAGE
from stripesim.scenarios.answers.check.check import LoadCheck
from stripesim.scenarios.answers.predict.figure import rows_axis
from stripesim.scenarios.show.figures.renderer import CaptionedFigure, drawn
from stripesim.scenarios.show.figures.specification import (
    COLOURS,
    AxisSpec,
    FigureSpec,
    LayerSpec,
    PanelSpec,
)
from stripesim.scenarios.show.quantities import QUANTITIES

_ROW_INCHES: Final = 0.34


def draw_check(check: LoadCheck) -> CaptionedFigure:
    """Draw the leading value: interval, measured value, and the simulated causes from the closest."""
    leading = check.leading
    quantity = QUANTITIES[leading.quantity]
    factor = quantity.factor
    predicted = leading.predicted
    causes = [one for one in check.explanations if leading.quantity in one.values]
    layers = [
        LayerSpec(
            mark="span",
            low=[factor * predicted.low],
            high=[factor * predicted.high],
            label="expected",
            style={"color": "0.9"},
        ),
        LayerSpec(
            mark="levels",
            x=[factor * leading.measured],
            label="measured",
            style={"color": COLOURS[1], "linewidth": 2},
        ),
        LayerSpec(
            mark="points",
            x=[factor * predicted.predicted],
            y=[0],
            label="as the scenario says",
            style={"marker": "s", "color": COLOURS[6]},
        ),
        LayerSpec(
            mark="points",
            x=[factor * one.values[leading.quantity] for one in causes],
            y=range(1, len(causes) + 1),
            label="under a cause",
            style={"marker": "o", "color": COLOURS[0]},
        ),
    ]
    names = ["as the scenario says", *(f"{one.cause}: {one.value}" for one in causes)]
    panel = PanelSpec(
        layers=layers,
        x=AxisSpec(label=quantity.heading, scale="log"),
        y=rows_axis(names),
    )
    caption = (
        f"Measured {quantity.words} (line) and the interval made to hold {100 * COVERAGE:.0f} % of "
        "measurements (grey). Each point is a simulation: of the scenario, and of the strength of each cause "
        "that comes closest to all measured values."
    )
    size = (9.5, 1.8 + _ROW_INCHES * len(names))
    return drawn(FigureSpec(size=size, panels=[panel], caption=caption))

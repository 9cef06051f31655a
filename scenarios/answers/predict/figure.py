"""Draw predictions with their intervals, and measured values over predicted ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from stripesim.calibration.ledger.model_errors import COVERAGE
from stripesim.scenarios.answers.predict.register import (
    PredictedValue,
    ScenarioPrediction,
)
from stripesim.scenarios.answers.predict.score import PredictionScore
from stripesim.scenarios.show.figures.renderer import CaptionedFigure, drawn
from stripesim.scenarios.show.figures.specification import (
    COLOURS,
    AxisSpec,
    FigureSpec,
    LayerSpec,
    PanelSpec,
    is_wide,
    line_at,
    linear_ticks,
)
from stripesim.scenarios.show.quantities import QUANTITIES, Quantity, quantity_of

#: Panels of a prediction: title, and quantity.
_PANELS: Final = (
    ("Rate", "iops"),
    ("Mean latency", "latency_mean_ns"),
    ("99th percentile", "latency_p99_ns"),
)
_ROW_INCHES: Final = 0.32
#: Most ticks of an axis of values.
_TICKS: Final = 3
_WHISKERS: Final = {"color": "0.5", "linewidth": 2.2}


def draw_prediction(prediction: ScenarioPrediction) -> CaptionedFigure:
    """Draw rate, mean latency and p99 of each row with their intervals."""
    rows = [row for row in prediction.rows if row.values]
    names = [row.id for row in rows]
    panels = []
    for title, key in _PANELS:
        quantity = quantity_of(key, of_objects=prediction.result.is_of_objects)
        values = [row.value(key) for row in rows]
        panels.append(_value_panel(title, quantity, values, names))
    name = prediction.result.provenance["scenario"]
    caption = (
        f"Predicted numbers of {name}. A line is the interval made to hold a measured value with "
        f"probability {100 * COVERAGE:.0f} %: the error of the simulator on held-out rows of the same kind "
        "and utilisation, and the run's own uncertainty."
    )
    size = (10.5, 1.7 + _ROW_INCHES * len(rows))
    return drawn(FigureSpec(size=size, panels=panels, caption=caption, share="rows"))


def _value_panel(
    title: str,
    quantity: Quantity,
    values: Sequence[PredictedValue | None],
    names: Sequence[str],
) -> PanelSpec:
    shown = [(at, value) for at, value in enumerate(values) if value is not None]
    factor = quantity.factor
    positions = [at for at, _ in shown]
    layers = [
        LayerSpec(
            mark="whiskers",
            y=positions,
            low=[factor * value.low for _, value in shown],
            high=[factor * value.high for _, value in shown],
            sideways=True,
            style=_WHISKERS,
        ),
        LayerSpec(
            mark="points",
            x=[factor * value.predicted for _, value in shown],
            y=positions,
            style={"marker": "o", "color": COLOURS[0]},
        ),
    ]
    ends = [factor * end for _, value in shown for end in (value.low, value.high)]
    x = AxisSpec(label=quantity.heading, scale="log")
    if not is_wide(ends):
        ticks = linear_ticks(min(ends), max(ends), _TICKS)
        x = replace(x, scale="linear", ticks=ticks)
    return PanelSpec(title=title, layers=layers, x=x, y=rows_axis(names))


def rows_axis(names: Sequence[str]) -> AxisSpec:
    """Return the axis of named rows, the first one on top, with room above and below."""
    return AxisSpec(
        ticks=range(len(names)),
        names=names,
        reverse=True,
        low=-0.5,
        high=len(names) - 0.5,
    )


def draw_score(score: PredictionScore) -> CaptionedFigure:
    """Draw measured over predicted of each value, with the predicted interval."""
    rows = score.rows
    positions = range(len(rows))
    layers = [
        line_at(1, linewidth=0.8),
        LayerSpec(
            mark="whiskers",
            y=positions,
            low=[row.low / row.predicted for row in rows],
            high=[row.high / row.predicted for row in rows],
            sideways=True,
            label="predicted interval",
            style=_WHISKERS,
        ),
    ]
    for inside, words, marker, colour in (
        (True, "measured, in it", "o", COLOURS[0]),
        (False, "measured, outside", "X", COLOURS[1]),
    ):
        own = [at for at, row in enumerate(rows) if row.inside is inside]
        if own:
            layers.append(
                LayerSpec(
                    mark="points",
                    x=[rows[at].measured / rows[at].predicted for at in own],
                    y=own,
                    label=words,
                    style={"marker": marker, "color": colour},
                )
            )
    panel = PanelSpec(
        layers=layers,
        x=AxisSpec(label="measured / predicted", scale="log"),
        y=rows_axis(
            [
                f"{row.id}, {QUANTITIES[row.quantity].short or QUANTITIES[row.quantity].words}"
                for row in rows
            ]
        ),
    )
    total = score.total
    caption = (
        f"Measured over predicted, with the interval registered {score.register['registered']}. "
        f"{total.inside} of {total.values} values lie in it, {total.expected_inside:.1f} are expected to."
    )
    size = (8.0, 1.6 + _ROW_INCHES * len(rows))
    return drawn(FigureSpec(size=size, panels=[panel], caption=caption))

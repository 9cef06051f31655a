"""Specify one panel of result rows: a quantity against block size for each scheme."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Final

import polars as pl

from stripesim.models.problems import AnswerError, Problem
from stripesim.scenarios.schema.units import number_text, size_text
from stripesim.scenarios.show.figures.captions import (
    ShownQuantity,
    block_sizes,
    scheme_label,
    size_name,
)
from stripesim.scenarios.show.figures.specification import (
    AxisSpec,
    LayerSpec,
    PanelSpec,
    series_style,
)
from stripesim.scenarios.show.quantities import QUANTITIES, Quantity, quantity_of

#: Distance of the whiskers of two schemes at one block size, so that they do not hide each other.
_STEP: Final = 0.09
#: Distance of the first and the last scheme at one block size, at most. Block sizes are 1 apart.
_STEPS_MAX: Final = 0.6


def shown_quantity(key: str, title: str) -> ShownQuantity:
    """Return a column of the result rows with a title."""
    return ShownQuantity(QUANTITIES[key], title)


THROUGHPUT: Final = shown_quantity("throughput_bytes_per_s", "Throughput")
# Figures of mean latency show no whiskers, which would repeat those of throughput.
LATENCY: Final = ShownQuantity(
    replace(QUANTITIES["latency_mean_ns"], ci=None), "Mean latency"
)
RATE: Final = ShownQuantity(quantity_of("iops", of_objects=True), "Rate")
P99: Final = shown_quantity("latency_p99_ns", "99th percentile of latency")


#: Titles of quantities that figures usually show. Others have their words in reports.
_TITLED: Final = {shown.metric: shown for shown in (THROUGHPUT, LATENCY, P99)}


def main_quantity(rows: pl.DataFrame) -> ShownQuantity:
    """Return the throughput of rows, or the rate if requests without data are among them, such as LISTs."""
    if not {THROUGHPUT.metric, RATE.metric} <= {*rows.columns}:
        return THROUGHPUT
    without_data = (rows[THROUGHPUT.metric] == 0) & (rows[RATE.metric] > 0)
    return RATE if without_data.any() else THROUGHPUT


def quantity_shown(
    metric: str, columns: Collection[str], *, of_objects: bool = False
) -> ShownQuantity:
    """Return a quantity of result rows, for a figure.

    Parameters
    ----------
    metric
        Its column, such as ``latency_p99_ns``.
    columns
        Columns of the rows.
    of_objects
        True for requests for objects in buckets.

    Raises
    ------
    AnswerError
        If the rows have no such quantity.
    """
    known = [
        name
        for name, quantity in QUANTITIES.items()
        if quantity.words and quantity.unit and name in columns
    ]
    if metric not in known:
        wanted = f"one of {', '.join(known)}"
        raise AnswerError(Problem(key="metric", got=f'"{metric}"', wanted=wanted))
    if metric in _TITLED:
        return _TITLED[metric]
    quantity = quantity_of(metric, of_objects=of_objects)
    return ShownQuantity(quantity, quantity.words[0].upper() + quantity.words[1:])


def sizes_panel(
    rows: pl.DataFrame, shown: ShownQuantity, schemes: Sequence[str], title: str = ""
) -> PanelSpec:
    """Specify one quantity against block size: a line for each scheme, or bars at the only size."""
    sizes = block_sizes(rows)
    if len(sizes) == 1:
        return _bars_panel(rows, shown, schemes, title or shown.title)
    quantity = shown.quantity
    gaps = max(1, len(schemes) - 1)
    step = min(_STEP, _STEPS_MAX / gaps)
    layers = []
    for index, scheme in enumerate(schemes):
        own = rows.filter(pl.col("scheme") == scheme).sort("block_size_bytes")
        aside = (index - (len(schemes) - 1) / 2) * step
        x = [sizes.index(size) + aside for size in own["block_size_bytes"]]
        look = series_style(index)
        layers.append(
            LayerSpec(
                mark="outlined line",
                x=x,
                y=_shown(own, quantity.key, quantity),
                label=scheme_label(scheme),
                style=look,
            )
        )
        layers += whiskers(own, quantity, x, look["color"])
    return PanelSpec(
        title=title or shown.title,
        layers=layers,
        x=AxisSpec(
            label=size_axis_title(rows),
            ticks=range(len(sizes)),
            names=size_labels(sizes),
            low=-0.5,
            high=len(sizes) - 0.5,
        ),
        y=AxisSpec(label=shown.axis_label, scale="auto"),
    )


def whiskers(
    rows: pl.DataFrame, quantity: Quantity, x: Sequence[float], colour: str
) -> list[LayerSpec]:
    """Return the confidence intervals of a quantity at positions, where the rows have any."""
    if quantity.ci is None or not set(quantity.ci) <= set(rows.columns):
        return []
    ends = [_shown(rows, name, quantity) for name in quantity.ci]
    known = [
        (at, low, high)
        for at, low, high in zip(x, *ends, strict=True)
        if low is not None and high is not None
    ]
    if not known:
        return []
    at, low, high = zip(*known, strict=True)
    style = {"color": colour, "zorder": 2.5}
    return [LayerSpec(mark="whiskers", x=at, low=low, high=high, style=style)]


def _shown(rows: pl.DataFrame, column: str, quantity: Quantity) -> list[Any]:
    """Return a column in the unit of reports."""
    return (rows[column].cast(pl.Float64) * quantity.factor).to_list()


def _bars_panel(
    rows: pl.DataFrame, shown: ShownQuantity, schemes: Sequence[str], title: str
) -> PanelSpec:
    """Specify one quantity at the only block size, a bar for each scheme with its value."""
    quantity = shown.quantity
    layers = []
    for index, scheme in enumerate(schemes):
        own = rows.filter(
            (pl.col("scheme") == scheme) & pl.col(quantity.key).is_not_null()
        )
        heights = _shown(own, quantity.key, quantity)
        x = [float(index)] * len(heights)
        look = {"color": series_style(index)["color"], "thick": 0.6, "zorder": 2}
        layers.append(LayerSpec(mark="bars", x=x, y=heights, style=look))
        intervals = whiskers(own, quantity, x, "#222222")
        layers += intervals
        if heights:
            ends = [end for one in intervals for end in one.high]
            layers.append(_number(index, heights[0], max([*heights, *ends])))
    return PanelSpec(
        title=title,
        layers=layers,
        x=AxisSpec(
            label=size_axis_title(rows),
            ticks=range(len(schemes)),
            names=[scheme_label(scheme) for scheme in schemes],
            low=-0.6,
            high=len(schemes) - 0.4,
        ),
        y=AxisSpec(label=shown.axis_label, low=0, margin=0.12),
    )


def _number(index: int, value: float, top: float) -> LayerSpec:
    """Write the value of a bar above its top."""
    style = {"fontsize": 13}
    return LayerSpec(
        mark="text", x=[index], y=[top], texts=[number_text(value)], style=style
    )


def size_labels(sizes: Sequence[int]) -> list[str]:
    """Label block sizes [bytes] in KiB where all are whole KiB, else exactly."""
    if _all_kibibytes(sizes):
        return [f"{size // 1024}" for size in sizes]
    return [size_text(size) for size in sizes]


def size_axis_title(rows: pl.DataFrame) -> str:
    """Name the axis of the sizes of result rows, with the unit of its labels."""
    sizes = block_sizes(rows)
    name = size_name(rows)
    if len(sizes) == 1:
        return f"{name} {size_text(sizes[0])}"
    return f"{name} [KiB]" if _all_kibibytes(sizes) else name


def _all_kibibytes(sizes: Sequence[int]) -> bool:
    return all(size % 1024 == 0 for size in sizes)

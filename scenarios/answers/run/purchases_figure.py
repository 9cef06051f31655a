"""Draw what purchases buy: the request rate over the amount of each resource."""

from collections.abc import Mapping, Sequence
from typing import Any

from stripesim.scenarios.schema.keys import Cell
from stripesim.scenarios.show.figures.renderer import CaptionedFigure, drawn_all
from stripesim.scenarios.show.figures.specification import (
    AxisSpec,
    FigureSpec,
    LayerSpec,
    PanelSpec,
    series_style,
)
from stripesim.scenarios.show.words import cell_words

#: Most amounts that each have a label on the axis.
_LABELLED_MAX = 5


def draw_purchases(
    purchases: Sequence[Mapping[str, Any]],
) -> dict[str, CaptionedFigure]:
    """Draw a panel for each resource, with a line for each cell; no figure without purchases."""
    if not purchases:
        return {}
    return drawn_all({"purchases": purchases_figure(purchases)})


def purchases_figure(purchases: Sequence[Mapping[str, Any]]) -> FigureSpec:
    """Specify the request rate over the amount of each resource."""
    cells = list(dict.fromkeys(map(Cell.of_row, purchases)))
    resources = list(dict.fromkeys(row["resource"] for row in purchases))
    highest = 1.08 * max(row["iops"] for row in purchases)
    panels = []
    for resource in resources:
        layers: list[LayerSpec] = []
        for number, cell in enumerate(cells):
            points = _points_of(purchases, resource, cell)
            label = cell_words(cell) if resource == resources[0] else ""
            layers += _line(points, label, number)
        panels.append(
            PanelSpec(
                layers=layers,
                x=AxisSpec(label=resource, ticks=_ticks(purchases, resource)),
                y=AxisSpec(label="requests per second", low=0, high=highest),
            )
        )
    return FigureSpec(
        size=(10, 3.2 * ((len(panels) + 1) // 2) + 0.8),
        panels=panels,
        columns=min(2, len(panels)),
        caption="Requests per second with more or less of each resource, the others as they are. Ring: now.",
    )


def _ticks(purchases: Sequence[Mapping[str, Any]], resource: str) -> list[float] | None:
    """Return the amounts of a resource if all have room on the axis: nobody buys half a host."""
    amounts = sorted(
        {row["amount"] for row in purchases if row["resource"] == resource}
    )
    return amounts if len(amounts) <= _LABELLED_MAX else None


def _points_of(
    purchases: Sequence[Mapping[str, Any]], resource: str, cell: Cell
) -> list[Mapping[str, Any]]:
    """Return the rows of a resource and a cell, by amount."""
    rows = [row for row in purchases if row["resource"] == resource]
    of_cell = [row for row in rows if Cell.of_row(row) == cell]
    return sorted(of_cell, key=lambda row: float(row["amount"]))


def _line(
    points: Sequence[Mapping[str, Any]], label: str, number: int
) -> tuple[LayerSpec, LayerSpec]:
    """Return the line of a cell, and a ring around the cluster as it is."""
    own = [row for row in points if row["is_own"]]
    style = series_style(number)
    line = LayerSpec(
        mark="marked line",
        x=[row["amount"] for row in points],
        y=[row["iops"] for row in points],
        label=label,
        style=style,
    )
    ring = LayerSpec(
        mark="published",
        x=[row["amount"] for row in own],
        y=[row["iops"] for row in own],
        style={"color": style["color"], "marker": "o", "markersize": 12},
    )
    return line, ring

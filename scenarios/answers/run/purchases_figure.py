"""Draw what purchases buy: the request rate over the amount of each resource."""

from collections.abc import Mapping, Sequence
from typing import Any

from stripesim.scenarios.show.figures.captions import scheme_label
from stripesim.scenarios.show.figures.renderer import CaptionedFigure, drawn_all
from stripesim.scenarios.show.figures.specification import (
    AxisSpec,
    FigureSpec,
    LayerSpec,
    PanelSpec,
    series_style,
)


def draw_purchases(
    purchases: Sequence[Mapping[str, Any]],
) -> dict[str, CaptionedFigure]:
    """Draw a panel for each resource, with a line for each cell; no figure without purchases."""
    if not purchases:
        return {}
    return drawn_all({"purchases": purchases_figure(purchases)})


def purchases_figure(purchases: Sequence[Mapping[str, Any]]) -> FigureSpec:
    """Specify the request rate over the amount of each resource."""
    keys = ("scheme", "op", "pattern", "block_size_bytes")
    cells = list(dict.fromkeys(tuple(row[key] for key in keys) for row in purchases))
    resources = list(dict.fromkeys(row["resource"] for row in purchases))
    highest = 1.08 * max(row["iops"] for row in purchases)
    panels = []
    for resource in resources:
        layers = []
        for number, cell in enumerate(cells):
            points = sorted(
                (
                    row
                    for row in purchases
                    if row["resource"] == resource
                    and tuple(row[key] for key in keys) == cell
                ),
                key=lambda row: float(row["amount"]),
            )
            label = f"{scheme_label(cell[0])}, {cell[2]} {cell[1]}, {cell[3]} B"
            own = [row for row in points if row["is_own"]]
            colour = series_style(number)["color"]
            layers += [
                LayerSpec(
                    mark="marked line",
                    x=[row["amount"] for row in points],
                    y=[row["iops"] for row in points],
                    label=label if resource == resources[0] else "",
                    style=series_style(number),
                ),
                LayerSpec(
                    mark="published",
                    x=[row["amount"] for row in own],
                    y=[row["iops"] for row in own],
                    style={"color": colour, "marker": "o", "markersize": 12},
                ),
            ]
        panels.append(
            PanelSpec(
                layers=layers,
                x=AxisSpec(label=resource),
                y=AxisSpec(label="requests per second", low=0, high=highest),
            )
        )
    return FigureSpec(
        size=(10, 3.2 * ((len(panels) + 1) // 2) + 0.8),
        panels=panels,
        columns=min(2, len(panels)),
        caption="Requests per second with more or less of each resource, the others as they are. Ring: now.",
    )

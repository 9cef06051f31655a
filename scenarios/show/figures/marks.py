"""Draw the layers of a panel with matplotlib: a function for each kind of mark, notes and legends.

The style of a layer is in matplotlib's words and wins over that of the mark.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from stripesim.scenarios.show.figures.specification import LayerSpec

DARK: Final = "#222222"
#: Order of what lies on the grid and below lines and points.
_BELOW_DATA: Final = 1.5


def _plot(axes: Axes, layer: LayerSpec, **usual: Any) -> None:
    """Connect or mark points."""
    axes.plot(layer.x, layer.y, label=layer.label, **{**usual, **layer.style})


def _steps(axes: Axes, layer: LayerSpec) -> None:
    style = {"linewidth": 2, **layer.style}
    axes.step(layer.x, layer.y, label=layer.label, **style)


def _band(axes: Axes, layer: LayerSpec) -> None:
    """Fill the space between two lines."""
    style = {"linewidth": 0, **layer.style}
    axes.fill_between(layer.x, layer.low, layer.high, label=layer.label, **style)


def _whiskers(axes: Axes, layer: LayerSpec) -> None:
    """Draw lines from ``low`` to ``high`` at each x, sideways at each y."""
    style = {"linewidth": 1.6, **layer.style}
    draw = axes.hlines if layer.sideways else axes.vlines
    positions = layer.y if layer.sideways else layer.x
    draw(positions, layer.low, layer.high, label=layer.label, **style)


def _levels(axes: Axes, layer: LayerSpec) -> None:
    """Draw lines across the whole panel, upright, or level if sideways."""
    style = {"linewidth": 2, **layer.style}
    draw = axes.axhline if layer.sideways else axes.axvline
    for value in layer.x:
        draw(value, label=layer.label, **style)


def _span(axes: Axes, layer: LayerSpec) -> None:
    """Shade the panel between values of x, or of y."""
    style = {"color": "#EEEEEE", "zorder": 0, "linewidth": 0, **layer.style}
    draw = axes.axhspan if layer.sideways else axes.axvspan
    for low, high in zip(layer.low, layer.high, strict=True):
        draw(low, high, label=layer.label, **style)


def _bars(axes: Axes, layer: LayerSpec) -> None:
    """Draw bars of length y from ``low``."""
    style = dict(layer.style)
    thick = style.pop("thick", 0.7)
    begin = layer.low if len(layer.low) else [0.0] * len(layer.y)
    if layer.sideways:
        axes.barh(
            layer.x, layer.y, height=thick, left=begin, label=layer.label, **style
        )
    else:
        axes.bar(
            layer.x, layer.y, width=thick, bottom=begin, label=layer.label, **style
        )


def _boxes(axes: Axes, layer: LayerSpec) -> None:
    """Fill rectangles from ``low`` to ``high`` along x, around each y."""
    style = {"edgecolors": "none", **layer.style}
    half = style.pop("thick", 1.0) / 2
    rectangles = [
        [(low, y - half), (high, y - half), (high, y + half), (low, y + half)]
        for y, low, high in zip(layer.y, layer.low, layer.high, strict=True)
    ]
    axes.add_collection(PolyCollection(rectangles, label=layer.label, **style))


def _text(axes: Axes, layer: LayerSpec) -> None:
    """Write texts near points, at the distance ``lift`` of the style [points]."""
    style = {"fontsize": 10, "ha": "center", **layer.style}
    lift = style.pop("lift", (0, 3))
    has_halo = style.pop("halo", False)
    for x, y, text in zip(layer.x, layer.y, layer.texts, strict=True):
        if has_halo:
            # Keeps letters legible on the grid, and is below all data.
            stroke = [withStroke(linewidth=3, foreground="white")]
            below = {**style, "zorder": _BELOW_DATA, "path_effects": stroke}
            note(axes, text, (x, y), lift, **below)
        note(axes, text, (x, y), lift, **style)


def note(
    axes: Axes,
    text: str,
    point: tuple[float, float],
    lift: tuple[float, float],
    **look: Any,
) -> None:
    """Write text near a point of the data, shifted by `lift` to the right and upwards [points]."""
    usual = {"ha": "center", "textcoords": "offset points"}
    axes.annotate(text, point, lift, **(usual | look))


Mark = Callable[[Axes, LayerSpec], None]
_HOLLOW: Final[Mapping[str, Any]] = {
    "fillstyle": "none",
    "markersize": 7,
    "markeredgewidth": 1.6,
}
_ON_LINE: Final[Mapping[str, Any]] = {
    "linewidth": 2,
    "markersize": 7,
    "markeredgecolor": "white",
    "markeredgewidth": 0.8,
    "zorder": 3,
}
MARKS: Final[Mapping[str, Mark]] = {
    "line": partial(_plot, marker="", linewidth=2),
    "marked line": partial(_plot, linewidth=2),
    "outlined line": partial(_plot, **_ON_LINE),
    "published": partial(_plot, linestyle="none", **_HOLLOW),
    "points": partial(_plot, linestyle="none", markersize=7),
    "steps": _steps,
    "band": _band,
    "whiskers": _whiskers,
    "levels": _levels,
    "span": _span,
    "bars": _bars,
    "boxes": _boxes,
    "text": _text,
}
"""Mark → drawing function."""


def fitted_legend(
    figure: Figure,
    handles: Sequence[Any],
    labels: Sequence[str],
    side: str = "above",
    **look: Any,
) -> int:
    """Put a legend above or below all panels, in as many of five columns as fit; return its lines."""
    columns = min(len(labels), 5)
    where: Any = {"above": "outside upper left", "below": "outside lower left"}[side]
    while True:
        legend = figure.legend(handles, labels, loc=where, ncols=columns, **look)
        if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return -(-len(labels) // columns)
        legend.remove()
        columns -= 1

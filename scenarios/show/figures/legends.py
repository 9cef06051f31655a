"""Place the legend of a figure of several panels."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure


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

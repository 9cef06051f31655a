"""Shapes that the figures of studies share: lettered panels, one legend, bars in groups, published marks."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stripesim.scenarios.figures.panels import COLOURS, LINES, MARKERS
from stripesim.scenarios.figures.results import new_figure

#: How a published value is marked: hollow on a line, a dash across a bar.
POINT: Final[Mapping[str, Any]] = {
    "linestyle": "none",
    "marker": "o",
    "fillstyle": "none",
    "markersize": 7,
    "markeredgewidth": 1.6,
}
DASH: Final[Mapping[str, Any]] = {"color": "#222222", "linewidth": 2.6}


def panels(
    size_inch: tuple[float, float],
    titles: Sequence[str],
    *,
    lines: int = 1,
    **grid: Any,
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a panel for each title, lettered (a), (b), … line by line."""
    figure = new_figure(size_inch)
    axes = (
        figure.subplots(lines, len(titles) // lines, squeeze=False, **grid)
        .ravel()
        .tolist()
    )
    for letter, place, title in zip("abcdefgh", axes, titles, strict=False):
        place.set_title(f"({letter}) {title}")
    return figure, axes


def look(index: int) -> dict[str, Any]:
    """Colour, line and marker of the series at this place: no reader depends on colour."""
    return {
        "color": COLOURS[index],
        "linestyle": LINES[index],
        "marker": MARKERS[index],
        "linewidth": 2,
    }


def legend_above(
    figure: Figure, columns: int, handles: Sequence[Artist] | None = None, **style: Any
) -> None:
    """Put one legend above all panels, by default of what they draw under a label, each label once."""
    if handles is not None:
        figure.legend(handles=handles, loc="outside upper left", ncols=columns, **style)
        return
    by_label = labelled(figure)
    figure.legend(
        by_label.values(),
        by_label.keys(),
        loc="outside upper left",
        ncols=columns,
        **style,
    )


def labelled(figure: Figure) -> dict[str, Artist]:
    """What a figure's panels draw under a label, each label once."""
    drawn = [axes.get_legend_handles_labels() for axes in figure.axes]
    return {
        label: handle for each in drawn for handle, label in zip(*each, strict=True)
    }


def grouped_bars(
    axes: Axes,
    groups: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    colours: Sequence[str] = COLOURS,
    *,
    published: Mapping[str, Sequence[float | None]] | None = None,
    label: str = "published",
) -> list[list[float]]:
    """Draw a bar of each series in each group, dashes where published; return their places."""
    step = 0.8 / len(series)
    places = []
    for index, (name, values) in enumerate(series.items()):
        shift = (index - (len(series) - 1) / 2) * step
        at = [group + shift for group in range(len(groups))]
        x, y = _there(at, values)
        axes.bar(x, y, width=0.9 * step, color=colours[index], label=name)
        places.append(at)
    for index, name in enumerate(series):
        x, y = _there(places[index], (published or {}).get(name, [None] * len(groups)))
        if x:
            left, right = (
                [place + side * 0.45 * step for place in x] for side in (-1, 1)
            )
            axes.hlines(y, left, right, **DASH, label=label)
            label = ""
    axes.set_xticks(range(len(groups)), groups)
    return places


def _there(
    places: Sequence[float], values: Sequence[float | None]
) -> tuple[list[float], list[float]]:
    """Places and values where there is a value."""
    pairs = [(x, y) for x, y in zip(places, values, strict=True) if y is not None]
    return [x for x, _ in pairs], [y for _, y in pairs]

"""The marks of figures, which draw the points of one series on a panel."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import polars as pl
from matplotlib.axes import Axes

from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.show.figures.panels import note
from stripesim.scenarios.studies.figure_spec import PanelSpec

DARK: Final = "#222222"
#: Width of all bars of a category, where categories have distance 1.
GROUP_WIDTH: Final = 0.8


@dataclass
class DrawnPanel:
    """Axes with the positions of categories and bars."""

    axes: Axes
    spec: PanelSpec
    categories: Sequence[str]
    beside: Sequence[str]  #: Series side by side at a category
    heaps: dict[float, float] = field(default_factory=dict)  #: Place → height

    @property
    def step(self) -> float:
        """Return the distance of neighbouring bars."""
        return GROUP_WIDTH / max(1, len(self.beside))

    def place(self, x: Any, series: str = "") -> float:
        """Return the position of a value: categories at 0, 1, …, with some series side by side."""
        if not isinstance(x, str):
            return float(x)
        middle = float(self.categories.index(x))
        if series not in self.beside:
            return middle
        places_from_middle = self.beside.index(series) - (len(self.beside) - 1) / 2
        return middle + places_from_middle * self.step


@dataclass(frozen=True)
class SeriesPoints:
    """The part of a layer's rows that belongs to one series on one panel."""

    series: str
    rows: pl.DataFrame
    look: Mapping[str, Any]  #: Colour, line and marker of the series
    style: Mapping[str, Any]  #: The layer's own
    label: str

    def numbers(self, column: str) -> list[float]:
        """Return a column as numbers."""
        return self.rows[column].cast(pl.Float64).to_list()

    def places(self, panel: DrawnPanel) -> list[float]:
        """Return the places of all x in the middle of their categories."""
        return [panel.place(x) for x in self.rows["x"]]

    def places_beside(self, panel: DrawnPanel) -> list[float]:
        """Return the places of all x, with several series side by side."""
        return [panel.place(x, self.series) for x in self.rows["x"]]

    def look_with(self, *names: str, **usual: Any) -> dict[str, Any]:
        """Return properties of the series, of the mark, and of the layer, where the last has precedence."""
        return {**{name: self.look[name] for name in names}, **usual, **self.style}


def _plot(panel: DrawnPanel, points: SeriesPoints, **usual: Any) -> None:
    look = points.look_with("color", "linestyle", "marker", **usual)
    ends = [points.places_beside(panel), points.numbers("y")]
    if panel.spec.sideways:
        ends.reverse()
    panel.axes.plot(*ends, label=points.label, **look)


def _steps(panel: DrawnPanel, points: SeriesPoints) -> None:
    look = points.look_with("color", linewidth=2)
    x = points.places(panel)
    panel.axes.step(x, points.numbers("y"), label=points.label, **look)


def _band(panel: DrawnPanel, points: SeriesPoints) -> None:
    look = points.look_with("color", alpha=0.15, linewidth=0)
    x = points.places(panel)
    panel.axes.fill_between(x, points.numbers("low"), points.numbers("high"), **look)


def _whiskers(panel: DrawnPanel, points: SeriesPoints) -> None:
    look = points.look_with("color", linewidth=1.6)
    x = points.places_beside(panel)
    panel.axes.vlines(x, points.numbers("low"), points.numbers("high"), **look)


def _levels(panel: DrawnPanel, points: SeriesPoints) -> None:
    """Draw upright lines at x."""
    look = points.look_with("color", "linestyle", linewidth=2)
    for x in points.places(panel):
        panel.axes.axvline(x, label=points.label, **look)


def _dashes(panel: DrawnPanel, points: SeriesPoints) -> None:
    """Draw published values as dashes across the bars of their series."""
    look = points.look_with(color=DARK, linewidth=2.6)
    half = 0.45 * panel.step
    middles = points.places_beside(panel)
    left = [middle - half for middle in middles]
    right = [middle + half for middle in middles]
    panel.axes.hlines(points.numbers("y"), left, right, **look)
    panel.axes.plot([], [], label=points.label, **look)


def _bars(panel: DrawnPanel, points: SeriesPoints) -> None:
    """Draw bars from ``low``, side by side in a category."""
    begin = [0.0] * points.rows.height
    if "low" in points.rows.columns:
        begin = points.numbers("low")
    _bar(panel, points, points.places_beside(panel), begin, thick=0.9 * panel.step)


def _heap(panel: DrawnPanel, points: SeriesPoints) -> None:
    """Stack bars at the same position."""
    places = points.places(panel)
    begin = [panel.heaps.get(place, 0.0) for place in places]
    for place, floor, height in zip(places, begin, points.numbers("y"), strict=True):
        panel.heaps[place] = floor + height
    _bar(panel, points, places, begin, thick=0.7)


def _bar(
    panel: DrawnPanel,
    points: SeriesPoints,
    places: Sequence[float],
    begin: Sequence[float],
    **usual: Any,
) -> None:
    """Draw bars, and write numbers into them from ``above`` in the style's ``numbers``."""
    look = points.look_with("color", label=points.label, **usual)
    thick = look.pop("thick")
    letters = dict(look.pop("numbers", {}))
    sizes = points.numbers("y")
    if panel.spec.sideways:
        bars = panel.axes.barh(places, sizes, height=thick, left=begin, **look)
    else:
        bars = panel.axes.bar(places, sizes, width=thick, bottom=begin, **look)
    if letters:
        least = letters.pop("above")
        texts = [number_text(size) if size >= least else "" for size in sizes]
        panel.axes.bar_label(bars, texts, label_type="center", **letters)


def _text(panel: DrawnPanel, points: SeriesPoints) -> None:
    """Write texts or numbers next to points, at the distance ``lift`` of the style [points]."""
    look = points.look_with(fontsize=10, lift=(0, 3))
    lift = look.pop("lift")
    places = points.places_beside(panel)
    for x, y, text in zip(
        places, points.numbers("y"), points.rows["text"], strict=True
    ):
        at = (y, x) if panel.spec.sideways else (x, y)
        if not isinstance(text, str):
            text = number_text(text)  # noqa: PLW2901
        note(panel.axes, text, at, lift, **look)


Mark = Callable[[DrawnPanel, SeriesPoints], None]
_HOLLOW: Final[Mapping[str, Any]] = {
    "fillstyle": "none",
    "markersize": 7,
    "markeredgewidth": 1.6,
}
MARKS: Final[Mapping[str, Mark]] = {
    "line": partial(_plot, marker="", linewidth=2),
    "marked line": partial(_plot, linewidth=2),
    "published": partial(_plot, linestyle="none", **_HOLLOW),
    "points": partial(_plot, linestyle="none", markersize=7),
    "dots": partial(_plot, linestyle="none", markersize=7),
    "steps": _steps,
    "band": _band,
    "whiskers": _whiskers,
    "levels": _levels,
    "dashes": _dashes,
    "bars": _bars,
    "heap": _heap,
    "text": _text,
}
"""Mark → drawing function."""
#: Marks whose series are side by side at a category.
SIDE_BY_SIDE: Final = frozenset({"bars", "dots"})
#: Marks whose key in a legend is a square patch.
PATCHES: Final = frozenset({"bars", "heap", "band"})

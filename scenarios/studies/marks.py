"""The marks of ``figures.toml`` as layers of a figure: each places the points of one series on a panel."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import polars as pl

from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.show.figures.specification import LayerSpec

DARK: Final = "#222222"
#: Width of all bars of a category, where categories have distance 1.
GROUP_WIDTH: Final = 0.8


@dataclass
class Places:
    """Positions of categories and bars on a panel."""

    categories: Sequence[str]
    beside: Sequence[str]  #: Series side by side at a category
    sideways: bool  #: Categories are along y
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

    def along(self, x: Sequence[float], y: Sequence[float]) -> dict[str, Any]:
        """Return points with their positions along the axis of categories."""
        return {"x": y, "y": x} if self.sideways else {"x": x, "y": y}


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

    def places(self, places: Places) -> list[float]:
        """Return the places of all x in the middle of their categories."""
        return [places.place(x) for x in self.rows["x"]]

    def places_beside(self, places: Places) -> list[float]:
        """Return the places of all x, with several series side by side."""
        return [places.place(x, self.series) for x in self.rows["x"]]

    def look_with(self, *names: str, **usual: Any) -> dict[str, Any]:
        """Return properties of the series, of the mark, and of the layer, where the last has precedence."""
        return {**{name: self.look[name] for name in names}, **usual, **self.style}


def _plot(
    places: Places, points: SeriesPoints, *, mark: str, line: bool = True
) -> list[LayerSpec]:
    look = points.look_with("color", "linestyle", "marker")
    if mark == "line":
        look = points.look_with("color", "linestyle")
    if not line:
        look = points.look_with("color", "marker")
    at = places.along(points.places_beside(places), points.numbers("y"))
    return [LayerSpec(mark=mark, label=points.label, style=look, **at)]


def _at(positions: Sequence[float], *, sideways: bool) -> dict[str, Any]:
    return {"y": positions} if sideways else {"x": positions}


def _upright(
    places: Places, points: SeriesPoints, *, mark: str, names: Sequence[str]
) -> list[LayerSpec]:
    """Draw columns of the rows at the middle of their categories."""
    columns: dict[str, Any] = {name: points.numbers(name) for name in names}
    return [
        LayerSpec(
            mark=mark,
            x=points.places(places),
            style=points.look_with(*_LOOKS.get(mark, ("color",))),
            label=points.label if "y" in names or not names else "",
            **columns,
        )
    ]


def _whiskers(places: Places, points: SeriesPoints) -> list[LayerSpec]:
    at = points.places_beside(places)
    return [
        LayerSpec(
            mark="whiskers",
            low=points.numbers("low"),
            high=points.numbers("high"),
            sideways=places.sideways,
            style=points.look_with("color"),
            **_at(at, sideways=places.sideways),
        )
    ]


def _dashes(places: Places, points: SeriesPoints) -> list[LayerSpec]:
    """Draw published values as dashes across the bars of their series."""
    half = 0.45 * places.step
    middles = points.places_beside(places)
    values = points.numbers("y")
    return [
        LayerSpec(
            mark="whiskers",
            low=[middle - half for middle in middles],
            high=[middle + half for middle in middles],
            label=points.label,
            sideways=not places.sideways,
            style=points.look_with(color=DARK, linewidth=2.6),
            **_at(values, sideways=not places.sideways),
        )
    ]


def _bars(places: Places, points: SeriesPoints) -> list[LayerSpec]:
    """Draw bars from ``low``, side by side in a category."""
    begin = [0.0] * points.rows.height
    if "low" in points.rows.columns:
        begin = points.numbers("low")
    at = points.places_beside(places)
    return _bar(places, points, at, begin, thick=0.9 * places.step)


def _heap(places: Places, points: SeriesPoints) -> list[LayerSpec]:
    """Stack bars at the same position."""
    at = points.places(places)
    begin = [places.heaps.get(place, 0.0) for place in at]
    for place, floor, height in zip(at, begin, points.numbers("y"), strict=True):
        places.heaps[place] = floor + height
    return _bar(places, points, at, begin, thick=0.7)


def _bar(
    places: Places,
    points: SeriesPoints,
    at: Sequence[float],
    begin: Sequence[float],
    **usual: Any,
) -> list[LayerSpec]:
    """Draw bars, and write numbers into them from ``above`` in the style's ``numbers``."""
    look = points.look_with("color", **usual)
    letters = dict(look.pop("numbers", {}))
    sizes = points.numbers("y")
    bars = LayerSpec(
        mark="bars",
        x=at,
        y=sizes,
        low=begin,
        label=points.label,
        sideways=places.sideways,
        style=look,
    )
    if not letters:
        return [bars]
    least = letters.pop("above")
    middles = [low + size / 2 for low, size in zip(begin, sizes, strict=True)]
    texts = [number_text(size) if size >= least else "" for size in sizes]
    style = {"lift": (0, 0), "va": "center", **letters}
    numbers = places.along(at, middles)
    return [bars, LayerSpec(mark="text", texts=texts, style=style, **numbers)]


def _text(places: Places, points: SeriesPoints) -> list[LayerSpec]:
    """Write texts or numbers next to points, at the distance ``lift`` of the style [points]."""
    texts = [
        text if isinstance(text, str) else number_text(text)
        for text in points.rows["text"]
    ]
    at = places.along(points.places_beside(places), points.numbers("y"))
    look = points.look_with("color")
    return [LayerSpec(mark="text", texts=texts, style=look, **at)]


Mark = Callable[[Places, SeriesPoints], list[LayerSpec]]
_LOOKS: Final[Mapping[str, Sequence[str]]] = {"levels": ("color", "linestyle")}
MARKS: Final[Mapping[str, Mark]] = {
    "line": partial(_plot, mark="line"),
    "marked line": partial(_plot, mark="marked line"),
    "published": partial(_plot, mark="published", line=False),
    "points": partial(_plot, mark="points", line=False),
    "dots": partial(_plot, mark="points", line=False),
    "steps": partial(_upright, mark="steps", names=["y"]),
    "band": partial(_upright, mark="band", names=["low", "high"]),
    "levels": partial(_upright, mark="levels", names=[]),
    "whiskers": _whiskers,
    "dashes": _dashes,
    "bars": _bars,
    "heap": _heap,
    "text": _text,
}
"""Mark of the file → layers."""
#: Marks whose series are side by side at a category.
SIDE_BY_SIDE: Final = frozenset({"bars", "dots"})
#: Marks whose key in a legend is a square patch.
PATCHES: Final = frozenset({"bars", "heap", "band"})

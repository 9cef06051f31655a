"""Draw panels as light SVG without styles. Their classes refer to ``serve.css``.

Drawings are `WIDTH` units wide, about the width of a phone, so that their text is legible there. Panels are
those of `stripesim.scenarios.show.figures.specification`, which matplotlib draws for files. The page is drawn
again after every simulated point, and matplotlib is too slow for that: the load curve of two options takes
0.6 s and 29 kB with it, and 15 ms and 7 kB with this module, measured on the same core.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from markupsafe import Markup

from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.show.figures.specification import (
    AxisSpec,
    LayerSpec,
    PanelSpec,
    linear_ticks,
    log_ticks,
)

#: Width of a drawing, and height of a line of its text.
WIDTH: Final = 360.0
LINE: Final = 15.0

_MARK: Final = 3.2
#: Ticks of an axis, about.
_TICKS_MAX: Final = 5


def element(tag: str, *children: Any, **attributes: Any) -> Markup:
    """Return an element. ``_`` in names of attributes becomes ``-``, and text is escaped.

    >>> element("text", "a < b", x=1.25, class_="note")
    Markup('<text x="1.2" class="note">a &lt; b</text>')
    """
    pairs = Markup("").join(
        Markup(' {}="{}"').format(name.rstrip("_").replace("_", "-"), _value(value))
        for name, value in attributes.items()
        if value is not None
    )
    inner = Markup("").join(children)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(tag), pairs, inner)


def _value(value: Any) -> Any:
    return f"{value:.1f}" if isinstance(value, float) else value


def drawing(key: str, title: str, height: float, *children: Any) -> Markup:
    """Return a drawing with a title. The element with the id ``answer-{key}`` describes it."""
    return element(
        "svg",
        element("title", title, id=f"{key}-title"),
        *children,
        viewBox=f"0 0 {WIDTH:g} {height:g}",
        role="img",
        aria_labelledby=f"{key}-title",
        aria_describedby=f"answer-{key}",
    )


def text(x: float, y: float, content: str, class_: str = "") -> Markup:
    """Return a line of text. Class ``end`` or ``middle`` anchors it there."""
    return element("text", content, x=x, y=y, class_=class_ or None)


def bar(x: float, y: float, width: float, class_: str, title: str) -> Markup:
    """Return a horizontal bar."""
    return element(
        "rect",
        element("title", title),
        x=x,
        y=y,
        width=max(1.0, width),
        height=9.0,
        class_=class_,
    )


def mark(x: float, y: float, side: str, title: str, class_: str = "") -> Markup:
    """Return a mark of a side: a circle for A, and a square for B."""
    classes = f"mark {side} {class_}".strip()
    named = element("title", title)
    if side == "a":
        return element("circle", named, cx=x, cy=y, r=_MARK, class_=classes)
    size = 2 * _MARK
    corner = (x - _MARK, y - _MARK)
    return element(
        "rect", named, x=corner[0], y=corner[1], width=size, height=size, class_=classes
    )


@dataclass(frozen=True)
class Scale:
    """A linear or logarithmic scale from values to units of the drawing."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        """Return the position of a value."""
        low = self.low
        high = self.high
        if self.is_log:
            low = math.log(low)
            high = math.log(high)
            value = math.log(value)
        part = (value - low) / (high - low)
        return self.start + (self.end - self.start) * part

    def ticks(self) -> list[float]:
        """Return a few round values on the scale.

        >>> Scale(0, 47, 0, 1).ticks()
        [0.0, 10.0, 20.0, 30.0, 40.0]
        >>> Scale(0.15, 3, 0, 1, is_log=True).ticks()
        [0.2, 0.5, 1.0, 2.0]
        """
        choose = log_ticks if self.is_log else linear_ticks
        return choose(self.low, self.high, _TICKS_MAX)


def scale_of(axis: AxisSpec, start: float, end: float) -> Scale:
    """Return the scale of an axis that states its limits, between two ends in units of the drawing."""
    assert axis.low is not None
    assert axis.high is not None
    return Scale(axis.low, axis.high, start, end, is_log=axis.scale == "log")


def round_up(value: float) -> float:
    """Return the next round number, for the end of a scale.

    >>> round_up(341), round_up(0.02)
    (400.0, 0.02)
    """
    power = 10.0 ** math.floor(math.log10(value))
    steps = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)
    return float(
        f"{next(power * step for step in steps if power * step >= value * 0.999):.6g}"
    )


@dataclass(frozen=True)
class SvgAxes:
    """Axes with grid lines. The scales say where it is."""

    x: Scale
    y: Scale

    def frame(self, x_label: str, y_label: str) -> Markup:
        """Draw grid lines, tick labels, and labels of both axes."""
        parts = []
        for tick in self.y.ticks():
            y = self.y(tick)
            parts.append(_line(self.x.start, y, self.x.end, y, "grid"))
            parts.append(text(self.x.start - 4, y + 4, short(tick), "tick end"))
        for tick in self.x.ticks():
            x = self.x(tick)
            parts.append(_line(x, self.y.start, x, self.y.start + 4, "axis"))
            parts.append(text(x, self.y.start + LINE, short(tick), "tick middle"))
        bottom = self.y.start
        parts.append(_line(self.x.start, bottom, self.x.end, bottom, "axis"))
        parts.append(text(self.x.end, bottom + 2 * LINE, x_label, "tick end"))
        parts.append(text(0, self.y.end - 8, y_label, "tick"))
        return Markup("").join(parts)

    def line(self, points: Iterable[tuple[float, float]], class_: str) -> Markup:
        """Draw a line through points in order."""
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        return element("polyline", points=path, class_=f"line {class_}")

    def vertical(self, x: float, class_: str, label: str, row: int = 0) -> Markup:
        """Draw a vertical line at a value of x, with a label at its top that stays inside."""
        at = self.x(x)
        y = self.y.end + 10 + LINE * row
        label_text = text(at + 4, y, label, f"note {class_}")
        if at > (self.x.start + self.x.end) / 2:
            label_text = text(at - 4, y, label, f"note {class_} end")
        return _line(at, self.y.start, at, self.y.end, f"rule {class_}") + label_text


def panel_svg(panel: PanelSpec, box: tuple[float, float, float, float]) -> Markup:
    """Draw the specification of a panel. Classes are the series of its layers.

    Parameters
    ----------
    panel
        Lines, steps, points and upright levels. The texts of points become their titles.
    box
        Left, right, bottom and top of the plot.
    """
    left, right, bottom, top = box
    axes = SvgAxes(scale_of(panel.x, left, right), scale_of(panel.y, bottom, top))
    parts = [axes.frame(panel.x.label, panel.y.label)]
    labelled = 0
    for layer in panel.layers:
        if layer.mark == "levels":
            parts += [
                axes.vertical(x, layer.series, layer.label, labelled) for x in layer.x
            ]
            labelled += bool(layer.label)
        else:
            parts += _MARKS[layer.mark](axes, layer)
    return Markup("").join(parts)


def _draw_line(axes: SvgAxes, layer: LayerSpec) -> list[Markup]:
    points = list(zip(layer.x, layer.y, strict=True))
    return [axes.line(points, layer.series)] if len(points) > 1 else []


def _draw_steps(axes: SvgAxes, layer: LayerSpec) -> list[Markup]:
    """Draw a line that keeps each value until the next one."""
    points = list(zip(layer.x, layer.y, strict=True))
    corners = [
        corner
        for (start, value), (until, _) in pairwise(points)
        for corner in ((start, value), (until, value))
    ]
    return [axes.line(corners, layer.series)]


def _draw_points(axes: SvgAxes, layer: LayerSpec) -> list[Markup]:
    is_open = layer.style.get("fillstyle") == "none"
    return [
        mark(axes.x(x), axes.y(y), layer.series, title, "open" if is_open else "")
        for x, y, title in zip(layer.x, layer.y, layer.texts, strict=True)
    ]


#: Mark of a layer → drawing function.
_MARKS: Final[Mapping[str, Callable[[SvgAxes, LayerSpec], list[Markup]]]] = {
    "line": _draw_line,
    "steps": _draw_steps,
    "points": _draw_points,
}


def _line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def short(value: float) -> str:
    """Write a number in few characters: thousands as k, millions as M.

    >>> short(0.05), short(250), short(120000.0), short(2.5e6)
    ('0.05', '250', '120k', '2.5M')
    """
    if abs(value) >= 1e6:
        return f"{number_text(value / 1e6)}M"
    if abs(value) >= 1e4:
        return f"{number_text(value / 1e3)}k"
    return number_text(value)

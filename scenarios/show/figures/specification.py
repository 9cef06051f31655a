"""Specify a figure as data: panels with axes, layers of marks, and a caption.

A question's figure is a function that returns a `FigureSpec`. Two renderers draw it: `renderer` with
matplotlib, for files and pages, and `stripesim.web.svg` as light SVG for the page that simulates while one
reads it. This module imports neither. Next read `marks`, which lists what a layer can draw.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from numpy.typing import NDArray

# Okabe & Ito, "Color universal design" (2008), without the yellow, which is too light for lines on white.
COLOURS: Final = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#E69F00",
    "#000000",
)
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")
LINES: Final = ("-", "--", "-.", ":")

#: Factor between the largest and the smallest value above which an axis is logarithmic.
LOG_SPAN: Final = 30.0
#: Axes of text at a value of x and above a panel, and at a value of y and beside it.
ABOVE: Final = ("data", "axes fraction")
BESIDE: Final = ("axes fraction", "data")
#: Role of panels that show verdicts on claims, which a paper does not want.
CLAIMS_ROLE: Final = "claims"
#: Most ticks of an axis that are chosen for it.
_TICKS_MAX: Final = 6


Values = Sequence[float] | NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class AxisSpec:
    """One axis of a panel: label, scale and ticks."""

    label: str = ""
    #: Or ``log``, ``log2``, ``auto``: depends on the values, ``auto log``: logarithmic with limits that do
    scale: str = "linear"
    ticks: Sequence[float] | None = None  #: None: chosen for the values
    names: Sequence[str] = ()  #: Of the ticks, such as categories
    format: str = ",.10g"  #: Of ticks: ``size``, ``KiB``, or as `format` takes it
    low: float | None = None
    high: float | None = None
    rotation: float = 0
    size: float | None = None  #: Of the ticks' letters
    margin: float | None = None
    reverse: bool = False


@dataclass(frozen=True, kw_only=True)
class LayerSpec:
    """Points drawn as one kind of mark, usually of one series."""

    mark: str  #: A key of `stripesim.scenarios.show.figures.marks.MARKS`
    x: Values = ()
    y: Values = ()
    low: Values = ()  #: Ends of whiskers, bands and boxes, begin of bars
    high: Values = ()
    texts: Sequence[str] = ()
    label: str = ""  #: In the legend
    series: str = ""  #: Name of the series for a renderer with its own style sheet
    sideways: bool = False  #: Along y instead of x
    style: Mapping[str, Any] = field(default_factory=dict)  #: In matplotlib's words


@dataclass(frozen=True, kw_only=True)
class PanelSpec:
    """One panel. Layers are drawn in order."""

    title: str = ""
    x: AxisSpec = field(default_factory=AxisSpec)
    y: AxisSpec = field(default_factory=AxisSpec)
    layers: Sequence[LayerSpec] = ()
    legend: str = ""  #: Location of its own legend, such as ``beside``
    legend_reverse: bool = False
    grid: bool = True
    square: bool = False
    frame: str = "bottom left"  #: Sides with an axis, of ``bottom`` and ``left``
    title_pad: float | None = None  #: Room between panel and title [points]
    without_data: str = ""  #: Sentence of a panel that has nothing to draw
    role: str = ""  #: Label that the layout for papers looks for


@dataclass(frozen=True, kw_only=True)
class FigureSpec:
    """One figure."""

    size: tuple[float, float]  #: Width and height [inch]
    panels: Sequence[PanelSpec | None]  #: Line by line, None leaves a place empty
    caption: str
    title: str = ""
    columns: int | None = None  #: Panels side by side (default: all)
    widths: Sequence[float] = ()  #: Of the columns, relative to each other
    heights: Sequence[float] = ()  #: Of the lines, relative to each other
    share: str = ""  #: Axes that panels share: ``x``, ``y``, ``xy``, ``rows``
    lettered: bool = False  #: Begin titles with (a), (b), …
    legend: str = "above"  #: Of all panels without one: ``above``, ``below`` or ``""``
    legend_style: Mapping[str, Any] = field(default_factory=dict)
    beside: PanelSpec | None = (
        None  #: To the right of all others, as high as the figure
    )
    footnote: str = ""

    @property
    def grid(self) -> tuple[int, int]:
        """Return the number of lines and columns of panels."""
        columns = self.columns or len(self.panels)
        return math.ceil(len(self.panels) / columns), columns


def series_style(number: int) -> dict[str, str]:
    """Return colour, line and marker of a series by its number.

    Where colours repeat, lines and markers differ: 28 series look different.
    """
    repeats, style = divmod(number, len(COLOURS))
    shifted = style + repeats
    return {
        "color": COLOURS[style],
        "linestyle": LINES[shifted % len(LINES)],
        "marker": MARKERS[shifted % len(MARKERS)],
    }


def line_at(value: float, *, sideways: bool = False, **style: Any) -> LayerSpec:
    """Return a thin line across a panel at a value of x, or of y."""
    usual = {"color": "#444444", "linewidth": 1.0}
    return LayerSpec(
        mark="levels", x=[value], sideways=sideways, style={**usual, **style}
    )


def key(label: str, colour: str, **style: Any) -> LayerSpec:
    """Return a square in the legend that no point draws."""
    return LayerSpec(mark="band", label=label, style={"facecolor": colour, **style})


def is_wide(values: Sequence[float]) -> bool:
    """Return True if small values would not be visible on a linear axis."""
    positive = [value for value in values if value > 0]
    return bool(positive) and max(positive) / min(positive) > LOG_SPAN


def on_one_scale(
    panels: Sequence[PanelSpec | None], in_row: int = 1
) -> list[PanelSpec | None]:
    """Make the automatic axes of a quantity logarithmic in all panels if one of them needs it.

    `in_row` panels share an axis, and so need what all of their values do.
    """
    heights = [_heights(panel) if panel else [] for panel in panels]
    rows = range(0, len(heights), in_row)
    together = [
        list(itertools.chain(*heights[first : first + in_row])) for first in rows
    ]
    if not any(map(is_wide, together)):
        return list(panels)
    return [
        replace(panel, y=replace(panel.y, scale="auto log"))
        if panel and panel.y.scale == "auto"
        else panel
        for panel in panels
    ]


def _heights(panel: PanelSpec) -> list[float]:
    if panel.y.scale != "auto":
        return []
    values = (value for layer in panel.layers for value in layer.y)
    return [float(value) for value in values if value is not None]


def linear_ticks(low: float, high: float, most: int = _TICKS_MAX) -> list[float]:
    """Return a few round values, at least two, because one does not tell the scale.

    >>> linear_ticks(0, 47, 5), linear_ticks(0.74, 7.81, 3)
    ([0.0, 10.0, 20.0, 30.0, 40.0], [2.0, 4.0, 6.0])
    """
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    steps = [power * n for n in (10, 5, 2, 1, 0.5, 0.2, 0.1)]
    largest = min(step for step in steps if step >= rough * 0.999)
    ticks: list[float] = []
    for step in steps:
        if step <= largest and len(ticks) < 2:
            ticks = _steps(low, high, step)
    return ticks


def _steps(low: float, high: float, step: float) -> list[float]:
    """Return the multiples of a step from `low` to `high`."""
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [float(f"{number * step:.6g}") for number in range(first, last + 1)]


def log_ticks(low: float, high: float, most: int = _TICKS_MAX) -> list[float]:
    """Return a few round values of a logarithmic axis, at least two, because one does not tell its scale.

    >>> log_ticks(0.15, 3), log_ticks(1.2, 2e5), log_ticks(2.1, 4.6)
    ([0.2, 0.5, 1.0, 2.0], [10.0, 100.0, 1000.0, 10000.0, 100000.0], [3.0, 4.0])
    """
    if len(_multiples(low, high, (1, 2, 5))) < 2:
        steps = _multiples(low, high, range(1, 10))
        return steps if len(steps) >= 2 else linear_ticks(low, high, most)
    for mantissas in ((1, 2, 5), (1, 3), (1,)):
        ticks = _multiples(low, high, mantissas)
        if len(ticks) <= most:
            return ticks
    return ticks[:: math.ceil(len(ticks) / most)]


def _multiples(low: float, high: float, mantissas: Sequence[int]) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [float(f"{m}e{power}") for power in powers for m in mantissas]
    return [tick for tick in ticks if low <= tick * 1.0001 and tick <= high * 1.0001]

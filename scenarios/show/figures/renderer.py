"""Draw the specification of a figure with matplotlib: panels, axes, legends."""

import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from copy import copy
from html import escape
from typing import Any, Final, NamedTuple, cast

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
)

from stripesim.scenarios.schema.units import size_text
from stripesim.scenarios.show.figures.marks import MARKS, fitted_legend
from stripesim.scenarios.show.figures.paper import fit_width
from stripesim.scenarios.show.figures.screen import styled, svg_of
from stripesim.scenarios.show.figures.specification import (
    AxisSpec,
    FigureSpec,
    PanelSpec,
    is_wide,
    log_ticks,
)

#: Panels less wide than this have smaller titles [inch].
_NARROW_INCHES: Final = 5.7
_VERY_NARROW_INCHES: Final = 4.5
_GREY: Final = "#888888"
#: Upper end of an axis that begins at zero, as a factor of its largest value.
_HEADROOM: Final = 1.08
#: Height of legends that figures have room for.
_LEGEND_INCHES: Final = 0.7


class CaptionedFigure(NamedTuple):
    """A figure and its caption."""

    figure: Figure
    caption: str

    def at_width(self, width_inch: float) -> Figure:
        """Lay the figure itself out for the column of a paper [inch], and return it."""
        fit_width(self.figure, width_inch)
        return self.figure

    def __repr__(self) -> str:
        return f"<CaptionedFigure: {self.caption}>"

    def _repr_html_(self) -> str:
        """Return the picture and its caption, which notebooks show."""
        source = b64encode(svg_of(self.figure)).decode()
        image = f'<img alt="{escape(self.caption)}" src="data:image/svg+xml;base64,{source}">'
        return (
            f"<figure>{image}<figcaption>{escape(self.caption)}</figcaption></figure>"
        )


class SpecifiedFigure(CaptionedFigure):
    """A figure that is drawn again for the column of a paper, and keeps its form for screens."""

    spec: FigureSpec

    def at_width(self, width_inch: float) -> Figure:
        """Draw the specification for a width [inch]."""
        figure = _drawn(self.spec)
        fit_width(figure, width_inch)
        return figure


def new_figure(size_inch: tuple[float, float]) -> Figure:
    """Return an empty figure, width and height [inch], with a constrained layout."""
    # Without pyplot, which would change global state of the program that uses this library.
    figure = Figure(figsize=size_inch, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def drawn(spec: FigureSpec) -> CaptionedFigure:
    """Draw a figure, with its caption."""
    captioned = SpecifiedFigure(_drawn(spec), spec.caption)
    captioned.spec = spec
    return captioned


def _drawn(spec: FigureSpec) -> Figure:
    with styled():
        figure = new_figure(spec.size)
        panels = _laid_out(figure, spec)
        for axes, panel in panels:
            for layer in panel.layers:
                MARKS[layer.mark](axes, layer)
        # An axis that panels share must suit all of them.
        for axes, panel in panels:
            _finish_panel(axes, panel)
        _add_legend(figure, spec, panels)
        if spec.title:
            # A title may contain $ and ^, which are not mathematics.
            look: dict[str, Any] = {"weight": "bold", "fontsize": 14}
            figure.suptitle(spec.title, x=0.005, ha="left", parse_math=False, **look)
        if spec.footnote:
            figure.supxlabel(spec.footnote, fontsize=10.5, x=0.01, ha="left")
    return figure


def drawn_all(specs: Mapping[str, FigureSpec]) -> dict[str, CaptionedFigure]:
    """Draw figures, by file stem."""
    return {stem: drawn(spec) for stem, spec in specs.items()}


# --- layout -----------------------------------------------------------------------------------------------


def _laid_out(figure: Figure, spec: FigureSpec) -> list[tuple[Axes, PanelSpec]]:
    """Put the panels on a grid, with axes that share their scales."""
    lines, columns = spec.grid
    grid = figure.add_gridspec(
        lines,
        columns + (spec.beside is not None),
        width_ratios=list(spec.widths) or None,
        height_ratios=list(spec.heights) or None,
    )
    panels: list[tuple[Axes, PanelSpec]] = []
    first_of_line: dict[int, Axes] = {}
    title_point = _title_point(spec.size[0] / columns)
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    for index, panel in enumerate(spec.panels):
        if panel is None:
            continue
        line, column = divmod(index, columns)
        shared = _shared_axes(spec.share, panels, first_of_line.get(line))
        axes = figure.add_subplot(grid[line, column], label=panel.role, **shared)
        first_of_line.setdefault(line, axes)
        _label(axes, panel, spec, at_left=column == 0, below=line == lines - 1)
        is_lettered = spec.lettered and len(spec.panels) > 1
        letter = f"({next(letters)}) " if is_lettered else ""
        axes.set_title(letter + panel.title, pad=panel.title_pad, fontsize=title_point)
        panels.append((axes, panel))
    if spec.beside is not None:
        axes = figure.add_subplot(grid[:, columns], label=spec.beside.role)
        _label(axes, spec.beside, spec, at_left=True, below=True)
        panels.append((axes, spec.beside))
    return panels


def _title_point(width_inch: float) -> float:
    """Return the size of letters of a title that fits the width of a panel."""
    if width_inch >= _NARROW_INCHES:
        return 14
    return 12.5 if width_inch >= _VERY_NARROW_INCHES else 11


def _shared_axes(
    share: str, panels: Sequence[tuple[Axes, PanelSpec]], first_of_line: Axes | None
) -> dict[str, Axes]:
    """Return the axes that share their scales with the next panel."""
    if share == "rows":
        return {"sharey": first_of_line} if first_of_line else {}
    return {f"share{which}": panels[0][0] for which in share if panels}


def _label(
    axes: Axes, panel: PanelSpec, spec: FigureSpec, *, at_left: bool, below: bool
) -> None:
    """Label the axes, and shared ones only at the figure's edge."""
    x_shown = below or "x" not in spec.share
    y_shown = at_left or not ("y" in spec.share or spec.share == "rows")
    if x_shown:
        axes.set_xlabel(panel.x.label)
    if y_shown:
        axes.set_ylabel(panel.y.label, parse_math=False)
    axes.tick_params(labelbottom=x_shown, labelleft=y_shown)


# --- panels -----------------------------------------------------------------------------------------------


def _finish_panel(axes: Axes, panel: PanelSpec) -> None:
    """Scale the axes, and add the panel's own legend."""
    if panel.without_data:
        look: dict[str, Any] = {"ha": "center", "va": "center", "color": _GREY}
        axes.text(0.5, 0.5, panel.without_data, transform=axes.transAxes, **look)
        axes.set(xticks=[], yticks=[])
        return
    _finish_axis(axes, "x", panel.x)
    _finish_axis(axes, "y", panel.y)
    if not panel.grid:
        axes.grid(visible=False)
    if panel.square:
        axes.set_aspect("equal")
    axes.spines["left"].set_visible("left" in panel.frame)
    if not panel.frame:
        axes.set_axis_off()
    if panel.legend == "beside":
        axes.legend(
            loc="center left",
            bbox_to_anchor=(1.01, 0.5),
            fontsize=11,
            reverse=panel.legend_reverse,
        )
    elif panel.legend == "above":
        # Where the legend hides no points.
        corner: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1, 1)}
        close: dict[str, Any] = {
            "borderaxespad": 0.1,
            "handlelength": 1,
            "handletextpad": 0.2,
        }
        axes.legend(**corner, **close, ncols=2, columnspacing=0.8, fontsize=10)
    elif panel.legend:
        axes.legend(loc=cast(Any, panel.legend), fontsize=10)


def _finish_axis(axes: Axes, which: str, spec: AxisSpec) -> None:
    axis = axes.xaxis if which == "x" else axes.yaxis
    if spec.margin is not None:
        (axes.set_xmargin if which == "x" else axes.set_ymargin)(spec.margin)
    is_auto = spec.scale.startswith("auto")
    if is_auto:
        is_log = spec.scale == "auto log"
        scale_axis(axes, _drawn_heights(axes), is_log=is_log)
    elif spec.scale == "log2":
        getattr(axes, f"set_{which}scale")("log", base=2)
    else:
        getattr(axes, f"set_{which}scale")(spec.scale)
    names = ("left", "right") if which == "x" else ("bottom", "top")
    limits = dict(zip(names, (spec.low, spec.high), strict=True))
    if limits != dict.fromkeys(names):
        getattr(axes, f"set_{which}lim")(**limits)
    if not is_auto:
        _set_ticks(axes, which, spec)
    if spec.reverse:
        axis.set_inverted(True)
    if spec.rotation:
        axis.set_tick_params(labelrotation=spec.rotation)
    if spec.size:
        axis.set_tick_params(labelsize=spec.size)


def _set_ticks(axes: Axes, which: str, spec: AxisSpec) -> None:
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_minor_formatter(NullFormatter())
    if spec.ticks is not None:
        names = list(spec.names) or [tick_text(at, spec.format) for at in spec.ticks]
        axis.set_ticks(list(spec.ticks), labels=names)
        axis.set_minor_locator(NullLocator())
        return
    axis.set_major_formatter(FuncFormatter(lambda at, _: tick_text(at, spec.format)))
    if spec.scale == "log":
        low, high = sorted(axis.get_view_interval())
        axis.set_major_locator(FixedLocator(log_ticks(low, high)))
        axis.set_minor_locator(LogLocator(base=10, subs=range(2, 10)))
    elif spec.scale == "linear":
        axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))


def tick_text(value: float, form: str) -> str:
    """Write the number at a tick."""
    if form == "size":
        return size_text(int(value))
    if form == "KiB":
        return f"{value / 1024:g}"
    return format(value, form)


def scale_axis(axes: Axes, shown: Sequence[float], *, is_log: bool = False) -> None:
    """Start at zero, or use a logarithmic scale if asked to or where small values would not be visible."""
    spec = AxisSpec()
    positive = [value for value in shown if value > 0]
    if positive and (is_log or is_wide(shown)):
        spec = AxisSpec(scale="log")
        axes.set_yscale("log")
        axes.set_ylim(min(positive) / 1.6, max(positive) * 1.6)
    else:
        # Marks of points at the top are drawn whole.
        top = max(axes.get_ylim()[1], _HEADROOM * max(positive, default=0))
        axes.set_ylim(0, top)
    _set_ticks(axes, "y", spec)


def _drawn_heights(axes: Axes) -> list[float]:
    """Return the heights of all lines and marks of the panels that share this axis."""
    group = axes.get_shared_y_axes().get_siblings(axes)
    heights = [
        float(cast(Any, y))
        for sibling in group
        for line in sibling.get_lines()
        # Lines across the whole panel are in other units.
        if line.get_transform() == sibling.transData
        for y in line.get_ydata()
    ]
    return [height for height in heights if math.isfinite(height)]


# --- legends ----------------------------------------------------------------------------------------------


def _add_legend(
    figure: Figure, spec: FigureSpec, panels: Sequence[tuple[Axes, PanelSpec]]
) -> None:
    """Add one legend for all panels without their own, with each label once."""
    by_label: dict[str, Any] = {}
    for axes, panel in panels:
        if not panel.legend:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                by_label.setdefault(label, _with_marks(handle, axes))
    if by_label and spec.legend:
        look: dict[str, Any] = {"handlelength": 2.2, **spec.legend_style}
        if spec.size[0] < _NARROW_INCHES:
            look = {"fontsize": 11, "columnspacing": 1.2, **look}
        handles = list(by_label.values())
        fitted_legend(figure, handles, list(by_label), spec.legend, **look)
        _make_room(figure)


def _with_marks(handle: Any, axes: Axes) -> Any:
    """Return a line of the legend with the marks of its points, if these are a layer without a label."""
    if not isinstance(handle, Line2D) or handle.get_marker() not in ("", "None"):
        return handle
    for points in axes.get_lines():
        # Matplotlib names lines without a label _child0, _child1, …
        has_label = not str(points.get_label()).startswith("_")
        is_own = not has_label and points.get_color() == handle.get_color()
        if is_own and points.get_linestyle() == "None":
            marked = copy(handle)
            marked.set_marker(points.get_marker())
            marked.set_markersize(points.get_markersize())
            return marked
    return handle


def _make_room(figure: Figure) -> None:
    """Make a figure higher if its legend would take room that the panels need."""
    legend_inch = figure.legends[0].get_window_extent().height / figure.dpi
    more_inch = max(0.0, legend_inch - _LEGEND_INCHES)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + more_inch)

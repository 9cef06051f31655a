"""Lay out figures for the column of a paper, and write them with captions for LaTeX.

Figures are drawn as for screens, several panels side by side. `fit_width` stacks the panels of any figure,
sets all letters in about eight points and leaves out panels of verdicts, so figures are specified once.
"""

import base64
import itertools
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any, Final

from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation, Text

from stripesim.scenarios.show.figures.marks import fitted_legend
from stripesim.scenarios.show.figures.specification import CLAIMS_ROLE
from stripesim.scenarios.show.latex import LATEX_SIGNS

#: Narrowest and widest figure: less than a column, and more than a page [inch].
WIDTH_MIN_INCH: Final = 2.0
WIDTH_MAX_INCH: Final = 12.0

# The house style has letters of 13 points, a column of a paper has eight.
_SCALE: Final = 8 / 13
_LETTERS_MIN_POINT: Final = 6.5
_LETTERS_MAX_POINT: Final = 9.0
_PANEL_MIN_INCH: Final = 2.2
#: Narrower panels of a figure that would otherwise be higher than the text of a page.
_PANEL_LEAST_INCH: Final = 1.6
#: Height of a figure that leaves room for its caption on a page of a paper.
_HEIGHT_MAX_INCH: Final = 7.5
#: Height of a panel's plot over its width: lowest and highest.
_FLAT: Final = 0.45
_TALL: Final = 0.8
#: From this many categories on, the height of an axis follows their number.
_MANY_CATEGORIES: Final = 8
#: Room for title, labels and ticks of a row of panels [inch].
_ROOM_INCH: Final = 0.62
_LEGEND_LINE_INCH: Final = 0.17
_LEGEND_POINT: Final = 7.0
#: Up to this many letters, three labels fit side by side.
_LONG_LABEL: Final = 12

_LENGTH: Final = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*(in|cm|mm|pt)\s*")
_INCHES: Final = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}


def parse_width_inch(text: str) -> float:
    """Parse a width such as ``3.5in``, ``8.9cm``, ``88mm`` or ``252pt`` (points of TeX) into inches.

    Raises
    ------
    ValueError
        If the text is not a length, or the length is too small or too large.

    >>> parse_width_inch("3.5in"), round(parse_width_inch("252pt"), 3)
    (3.5, 3.487)
    """
    match = _LENGTH.fullmatch(text)
    width_inch = float(match[1]) * _INCHES[match[2]] if match else 0.0
    if not WIDTH_MIN_INCH <= width_inch <= WIDTH_MAX_INCH:
        raise ValueError(
            f"--width: got {text!r}, wanted a width of {WIDTH_MIN_INCH:g}in to {WIDTH_MAX_INCH:g}in, such as "
            "3.5in, 8.9cm or 252pt"
        )
    return width_inch


def fit_width(figure: Figure, width_inch: float) -> None:
    """Lay out a figure again for a width [inch]. The figure itself changes.

    Notes
    -----
    Letters, lines and marks shrink by one factor. Panels become as many columns as fit with at least
    2.2 inches each, and keep their proportions within bounds. Where that would be higher than 7.5 inches,
    panels are narrower, at least 1.6 inches, and flatter. Titles wrap, legends get fewer columns, and labels
    that would overlap turn.
    """
    # Sizes of panels are known after a layout.
    figure.draw_without_rendering()
    _remove_extra_axes(figure)
    panels = _panels(figure)
    shapes = [_shape(figure, group[0]) for group in panels]
    _shrink(figure)
    columns = max(1, min(_columns(panels), int(width_inch / _PANEL_MIN_INCH)))
    panel_inch, heights = _heights(shapes, columns, width_inch)
    while (
        _total(heights) > _HEIGHT_MAX_INCH
        and columns < _columns(panels)
        and width_inch / (columns + 1) >= _PANEL_LEAST_INCH
    ):
        columns += 1
        panel_inch, heights = _heights(shapes, columns, width_inch)
    if all(categories <= _MANY_CATEGORIES for _, _, categories in shapes):
        heights = _flattened(heights, panel_inch)
    _stack(figure, panels, columns, heights)
    figure.set_size_inches(width_inch, _total(heights))
    for index, group in enumerate(panels):
        for axes in group:
            _wrap_words(axes, panel_inch, heights[index // columns])
    _narrow_legends(figure)
    for index, group in enumerate(panels):
        more = max(_legend_below(axes, heights[index // columns]) for axes in group)
        _add_height(figure, more / columns)
    figure.draw_without_rendering()
    for group in panels:
        _add_height(figure, _turn_crowded_labels(group[0]) / columns)
    figure.draw_without_rendering()


def paper_files(
    stem: str, figure: Figure, caption: str, width_inch: float
) -> dict[str, bytes]:
    """Return the files of a figure at its own width, by name: PDF, SVG and a LaTeX caption.

    Both pictures hold text as text: the PDF embeds its fonts, the SVG the letters that it uses.
    """
    contents = {}
    for suffix, metadata in (
        ("pdf", {"CreationDate": None, "Creator": "stripesim"}),
        ("svg", {"Date": None, "Creator": "stripesim"}),
    ):
        buffer = BytesIO()
        figure.savefig(buffer, format=suffix, metadata=metadata)
        contents[f"{stem}.{suffix}"] = buffer.getvalue()
    contents[f"{stem}.svg"] = _with_fonts(contents[f"{stem}.svg"].decode()).encode()
    contents[f"{stem}.tex"] = latex_figure(stem, caption, width_inch).encode()
    return contents


def latex_figure(stem: str, caption: str, width_inch: float) -> str:
    """Return the lines that include a figure in LaTeX, with its caption."""
    text = textwrap.fill(latex_text(caption), 78, initial_indent="  ")
    return (
        f"\\begin{{figure}}\n\\centering\n\\includegraphics[width={width_inch:.4g}in]{{{stem}.pdf}}\n"
        f"\\caption{{%\n{text}%\n}}\n\\label{{fig:{stem}}}\n\\end{{figure}}\n"
    )


#: Characters to escape, and those that the usual fonts of LaTeX lack.
_LATEX: Final[Mapping[str, str]] = {
    **LATEX_SIGNS,
    "±": r"$\pm$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "−": "$-$",
    "µ": r"\textmu{}",
    "→": r"$\rightarrow$",
    "★": r"$\star$",
    "⁶": r"\textsuperscript{6}",
    "⁹": r"\textsuperscript{9}",
}


def latex_text(text: str) -> str:
    r"""Escape a text for LaTeX.

    >>> latex_text("2× & 95 % of 10⁶ a_b")
    '2$\\times$ \\& 95 \\% of 10\\textsuperscript{6} a\\_b'
    """
    return "".join(_LATEX.get(letter, letter) for letter in text)


# --- layout ---------------------------------------------------------------------------------------------


def _remove_extra_axes(figure: Figure) -> None:
    """Remove panels of verdicts and axes that show nothing, and the title of the whole figure."""
    for axes in list(figure.axes):
        if axes.get_label() == CLAIMS_ROLE or not axes.axison:
            axes.remove()
    figure.suptitle("")


def _panels(figure: Figure) -> list[list[Axes]]:
    """Return the axes of each panel, which are several where scales differ."""
    panels: dict[tuple[int, int], list[Axes]] = {}
    for axes in figure.axes:
        panels.setdefault(_place(axes), []).append(axes)
    return [panels[at] for at in sorted(panels)]


def _columns(panels: Sequence[Sequence[Axes]]) -> int:
    return len({_place(group[0])[1] for group in panels})


def _place(axes: Axes) -> tuple[int, int]:
    """Return the row and the column of a panel."""
    cell = axes.get_subplotspec()
    assert cell is not None, "every panel is on a grid"
    return cell.rowspan.start, cell.colspan.start


def _shape(figure: Figure, axes: Axes) -> tuple[float, float, int]:
    """Return width and height of a panel [inch], and its number of categories along y."""
    box = axes.get_position()
    width, height = figure.get_size_inches()
    categories = len([label for label in axes.get_yticklabels() if label.get_text()])
    return float(box.width * width), float(box.height * height), categories


def _heights(
    shapes: Sequence[tuple[float, float, int]], columns: int, width_inch: float
) -> tuple[float, list[float]]:
    """Return the width of each panel's plot, and the height of each line of plots [inch]."""
    panel_inch = width_inch / columns - _ROOM_INCH
    lines = [
        shapes[first : first + columns] for first in range(0, len(shapes), columns)
    ]
    return panel_inch, [
        max(_height(panel_inch, shape) for shape in line) for line in lines
    ]


def _total(heights: Sequence[float]) -> float:
    """Return the height of a figure without its legend [inch]."""
    return sum(heights) + _ROOM_INCH * len(heights)


def _flattened(heights: Sequence[float], panel_inch: float) -> list[float]:
    """Return lines of plots that fit a page, as far as none becomes too flat."""
    factor = (_HEIGHT_MAX_INCH - _ROOM_INCH * len(heights)) / sum(heights)
    if factor >= 1:
        return list(heights)
    return [max(min(height, _FLAT * panel_inch), height * factor) for height in heights]


def _height(panel_inch: float, shape: tuple[float, float, int]) -> float:
    width, height, categories = shape
    new = panel_inch * min(_TALL, max(_FLAT, height / width))
    if categories > _MANY_CATEGORIES:
        new = max(new, height * _SCALE)
    return new


def _stack(
    figure: Figure,
    panels: Sequence[Sequence[Axes]],
    columns: int,
    heights: Sequence[float],
) -> None:
    """Put the panels on a new grid, and give labels back to those that left the edge of the figure."""
    grid = figure.add_gridspec(len(heights), columns, height_ratios=list(heights))
    first = {_place(group[0]): group[0] for group in panels}
    for index, group in enumerate(panels):
        row, column = divmod(index, columns)
        cell = _place(group[0])
        for axes in group:
            axes.set_subplotspec(grid[row, column])
        if column == 0:
            _label_left(group[0], first, cell)
        if columns == 1:
            _label_below(group[0], first, cell)


def _label_left(
    axes: Axes, first: Mapping[tuple[int, int], Axes], place: tuple[int, int]
) -> None:
    """Give a panel that now is the first of its row the label of the row's first panel."""
    row, column = place
    leftmost = min(at for line, at in first if line == row)
    if column in (0, leftmost):
        return
    axes.set_ylabel(axes.get_ylabel() or first[row, leftmost].get_ylabel())
    axes.tick_params(axis="y", labelleft=True)


def _label_below(
    axes: Axes, first: Mapping[tuple[int, int], Axes], place: tuple[int, int]
) -> None:
    """Give a panel in the only column the label of the panel that was at the bottom of its column."""
    last_row = max(row for row, _ in first)
    is_column = len(first) == last_row + 1
    below = first.get((last_row, place[1]))
    if is_column or below is None or axes.get_xlabel():
        return
    axes.set_xlabel(below.get_xlabel())
    axes.tick_params(axis="x", labelbottom=True)


# --- sizes ----------------------------------------------------------------------------------------------


def _shrink(figure: Figure) -> None:
    """Shrink letters, lines and marks of a figure by the factor between its style and a paper's."""
    for text in figure.findobj(Text):
        text.set_fontsize(_letters(float(text.get_fontsize())))
        if isinstance(text, Annotation) and text.anncoords == "offset points":
            across, up = text.xyann
            text.xyann = (across * _SCALE, up * _SCALE)
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_tick_params("both", labelsize=_letters(_label_size(axis)), pad=2)
            axis.labelpad *= _SCALE
        for spine in axes.spines.values():
            spine.set_linewidth(0.6)
    for line in figure.findobj(Line2D):
        line.set_linewidth(line.get_linewidth() * _SCALE)
        line.set_markersize(line.get_markersize() * _SCALE)
        line.set_markeredgewidth(line.get_markeredgewidth() * _SCALE)
    for marks in figure.findobj(PathCollection):
        marks.set_sizes(marks.get_sizes() * _SCALE**2)
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.set(w_pad=0.02, h_pad=0.03)  # type: ignore[call-arg]


def _letters(points: float) -> float:
    return min(_LETTERS_MAX_POINT, max(_LETTERS_MIN_POINT, points * _SCALE))


def _label_size(axis: Axis) -> float:
    labels = axis.get_ticklabels()
    return float(labels[0].get_fontsize()) if labels else 13.0


def _wrap_words(axes: Axes, panel_inch: float, height_inch: float) -> None:
    """Break titles and labels that are longer than their panel."""
    titles = {axes.get_title(loc=side) for side in ("left", "center", "right")} - {""}
    for text in axes.findobj(Text):
        assert isinstance(text, Text)
        if text.get_text() in titles:
            # A bold letter is about 0.7 of its size wide, another one 0.55.
            letters = int((panel_inch + 0.3) * 72 / (0.7 * float(text.get_fontsize())))
            lines = text.get_text().splitlines()
            text.set_text("\n".join(textwrap.fill(line, letters) for line in lines))
    label = axes.yaxis.label
    letters = int((height_inch + 0.2) * 72 / (0.55 * float(label.get_fontsize())))
    label.set_text(textwrap.fill(label.get_text(), letters))


def _narrow_legends(figure: Figure) -> None:
    """Draw each legend again with as many columns as the figure has room for."""
    for legend in list(figure.legends):
        handles = legend.legend_handles
        labels = [text.get_text() for text in legend.get_texts()]
        legend.remove()
        look: dict[str, Any] = {
            "handlelength": 1.8,
            "columnspacing": 1.2,
            "fontsize": _LEGEND_POINT,
        }
        lines = fitted_legend(figure, handles, labels, **look)
        _add_height(figure, _LEGEND_LINE_INCH * lines)


def _legend_below(axes: Axes, height_inch: float) -> float:
    """Move a legend on the right of a panel below it, and return the height that it needs [inch]."""
    legend = axes.get_legend()
    if legend is None or legend.get_window_extent().x0 < axes.get_window_extent().x1:
        return 0.0
    handles = [handle for handle in legend.legend_handles if handle is not None]
    labels = [text.get_text() for text in legend.get_texts()]
    legend.remove()
    columns = 2 if max(map(len, labels)) > _LONG_LABEL else 3
    below_inch = _ROOM_INCH / 2 if axes.get_xlabel() else 0.1
    axes.legend(
        handles,
        labels,
        loc="upper left",
        bbox_to_anchor=(-0.1, -below_inch / height_inch),
        ncols=columns,
        fontsize=_LETTERS_MIN_POINT,
        handlelength=1.8,
        columnspacing=1.0,
    )
    return _LEGEND_LINE_INCH * -(-len(labels) // columns)


def _add_height(figure: Figure, more_inch: float) -> None:
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + more_inch)


def _turn_crowded_labels(axes: Axes) -> float:
    """Turn the labels of the x axis if two overlap, and return the height that they need more [inch]."""
    labels = [
        label
        for label in axes.get_xticklabels()
        if label.get_text() and label.get_visible() and not label.get_rotation()
    ]
    low, high = axes.get_window_extent().intervalx
    boxes = [label.get_window_extent() for label in labels]
    inside = [box for box in boxes if low - 1 <= (box.x0 + box.x1) / 2 <= high + 1]
    inside.sort(key=lambda box: box.x0)
    pairs = itertools.pairwise(inside)
    if not any(before.x1 + 1 > after.x0 for before, after in pairs):
        return 0.0
    axes.tick_params(axis="x", labelrotation=90)
    dots = max(box.width for box in inside) - max(box.height for box in inside)
    return max(0.0, dots / axes.get_figure(root=True).dpi)  # type: ignore[union-attr]


# --- fonts ----------------------------------------------------------------------------------------------


def _with_fonts(svg: str) -> str:
    """Embed the letters that an SVG uses, so that it looks the same without the font installed."""
    letters = "".join(sorted(set("".join(re.findall(r">([^<]+)<", svg)))))
    rules = "".join(_font_rules(letters))
    style = f'<style type="text/css">{rules}</style>'
    return svg.replace("<defs>", f"<defs>{style}", 1)


def _font_rules(letters: str) -> Iterator[str]:
    # Imported here, because only papers need it.
    from fontTools import subset
    from fontTools.ttLib import TTFont

    for weight in ("normal", "bold"):
        properties = font_manager.FontProperties(family="DejaVu Sans", weight=weight)
        font = TTFont(font_manager.findfont(properties))
        options = subset.Options(hinting=False, layout_features=[])
        # A table of the font's editor, which the subsetter does not know.
        options.drop_tables += ["FFTM"]
        subsetter = subset.Subsetter(options)
        subsetter.populate(text=letters)
        subsetter.subset(font)
        # Otherwise the file would carry the time of writing.
        font.recalcTimestamp = False
        buffer = BytesIO()
        font.save(buffer)
        data = base64.b64encode(buffer.getvalue()).decode()
        yield (
            f"@font-face{{font-family:'DejaVu Sans';font-weight:{weight};"
            f"src:url(data:font/ttf;base64,{data}) format('truetype')}}"
        )

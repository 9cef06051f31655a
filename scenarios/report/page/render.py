"""Fill the templates of this folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from stripesim.scenarios.report.page.svg import dark_greys, inline_svg

if TYPE_CHECKING:
    from jinja2 import Environment

    from stripesim.scenarios.figures.results import CaptionedFigure


_PACKAGE: Final = "stripesim.scenarios.report.page"

#: Schemes side by side that a phone's width still has room for.
_COLUMNS_ON_PHONE: Final = 4


@dataclass(frozen=True)
class Cell:
    """What stands in one cell of a table."""

    text: str
    note: str = ""  # smaller, below it
    share: float | None = None  # drawn as a bar behind the text, 0 to 1
    tone: Literal["", "warn", "best"] = ""  # where a reader must look; the best of its row


@dataclass(frozen=True)
class Table:
    """A table: the first column names its rows."""

    caption: str  # read out, and shown above it where it says more than the heading
    columns: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]  # a row of one cell only is a heading over those that follow
    # On a narrow screen: in a box that scrolls, each row a card, or the name of a row above its values.
    form: Literal["scroll", "stack", "compare"] = "scroll"
    numeric: bool = True  # whether all columns but the first are numbers
    caption_shown: bool = False
    words: Sequence[int] = ()  # columns that hold words in a table of numbers, from 0

    @property
    def narrow(self) -> str:
        """The form on a narrow screen: too many columns to compare scroll instead."""
        wide = self.form == "compare" and len(self.columns) - 1 > _COLUMNS_ON_PHONE
        return "scroll" if wide else self.form

    @property
    def body(self) -> list[list[Cell]]:
        """The rows, text made cells."""
        return [[cell if isinstance(cell, Cell) else Cell(str(cell)) for cell in row] for row in self.rows]


@dataclass(frozen=True)
class Figure:
    """A figure on a page; a wide one takes the page's whole width, and scrolls where that is too narrow."""

    stem: str
    svg: str
    caption: str
    wide: bool


class Section(NamedTuple):
    """A part of a page with a heading of its own."""

    heading: str
    anchor: str
    text: str
    tables: Sequence[Table]
    figures: Sequence[Figure] = ()


#: Figures up to this width [inch] are legible on a phone as they are.
_NARROW_INCHES: Final = 6.5


def figure_blocks(figures: Mapping[str, CaptionedFigure]) -> list[Figure]:
    """Turn figures into blocks of a page, in their order: anchor → figure and caption."""
    return [
        Figure(
            stem=stem,
            svg=inline_svg(figure, stem, caption),
            caption=caption,
            wide=bool(figure.get_figwidth() > _NARROW_INCHES),
        )
        for stem, (figure, caption) in figures.items()
    ]


@cache
def templates(package: str, folder: str = ".") -> Environment:
    """Return the templates of a package's folder."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    place = files(package) / folder

    def source(name: str) -> str:
        return (place / name).read_text(encoding="utf-8")

    # What is typed, names and captions come from users: all is escaped unless a template says otherwise.
    return Environment(
        loader=FunctionLoader(source), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip


def render(template: str, **context: Any) -> str:
    """Fill a template of this folder: style and figures are inside the page, links lead to places on it."""
    greys = dark_greys(figure.svg for value in context.values() for figure in _figures_in(value))
    return templates(_PACKAGE).get_template(template).render(**context, dark_greys=greys)


def _figures_in(value: Any) -> list[Figure]:
    if isinstance(value, Figure):
        return [value]
    if isinstance(value, list | tuple):
        return [figure for item in value for figure in _figures_in(item)]
    return []

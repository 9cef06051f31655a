"""Tables of texts, laid out once for the terminal and for pages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.measure import Measurement

# Characters between columns of a table on a terminal, and beside its first and last one.
_GAP: Final = 3
_EDGES: Final = 2
# Width of a terminal on which every table fits [characters].
_UNLIMITED: Final = 10_000
#: Maximum number of schemes that fit side by side on a phone.
_COLUMNS_ON_PHONE: Final = 4


@dataclass(frozen=True)
class TableCell:
    """Content of a table cell."""

    text: str
    note: str = ""  # smaller text below
    share: float | None = None  # drawn as a bar behind the text, 0 to 1
    tone: Literal["", "warn", "best"] = (
        ""  # emphasis: a warning, or the best value of the row
    )


@dataclass(frozen=True)
class Table:
    """A table whose first column names the rows, for the terminal and for pages."""

    caption: str  # for screen readers, and visible if it adds to the heading
    columns: Sequence[str]
    rows: Sequence[
        Sequence[str | TableCell]
    ]  # a row with a single cell is a heading for the rows that follow
    # Layout on a narrow screen: scrolling box, a card for each row, or the row's name above its values.
    form: Literal["scroll", "stack", "compare"] = "scroll"
    numeric: bool = True  # True if all columns except the first are numbers
    caption_shown: bool = False
    words: Sequence[int] = ()  # columns with words in a table of numbers, from 0
    first_is_number: bool = (
        False  # True if the first column holds numbers, such as times
    )
    groups: Collection[
        int
    ] = ()  # rows that a line separates from the row above, from 0
    note: str = ""  # below the table

    @classmethod
    def of(
        cls, caption: str, rows: Sequence[Mapping[str, str | TableCell]], **more: Any
    ) -> Table:
        """Build a table from rows that map headings to cells."""
        return cls(
            caption,
            list(rows[0]) if rows else [],
            [list(row.values()) for row in rows],
            **more,
        )

    def __str__(self) -> str:
        """Return the table as plain text, aligned to the right."""
        lines = [self.columns, *([cell.text for cell in row] for row in self.body)]
        widths = [max(map(len, column)) for column in zip_longest(*lines, fillvalue="")]
        return "\n".join("  ".join(map(str.rjust, line, widths)) for line in lines)

    def _repr_html_(self) -> str:
        """Return the table as HTML for a notebook."""
        heading = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell.text)}</td>" for cell in row) + "</tr>"
            for row in self.body
        )
        return f"<table><thead><tr>{heading}</tr></thead><tbody>{body}</tbody></table>"

    @property
    def narrow(self) -> str:
        """Layout on a narrow screen. Comparisons with too many columns scroll instead."""
        wide = self.form == "compare" and len(self.columns) - 1 > _COLUMNS_ON_PHONE
        return "scroll" if wide else self.form

    @property
    def body(self) -> list[list[TableCell]]:
        """Rows, with texts converted to cells."""
        return [
            [
                cell if isinstance(cell, TableCell) else TableCell(str(cell))
                for cell in row
            ]
            for row in self.rows
        ]

    @property
    def numbers(self) -> set[int]:
        """Columns of numbers, from 0."""
        if not self.numeric:
            return set()
        first = 0 if self.first_is_number else 1
        return set(range(first, len(self.columns))) - set(self.words)


@dataclass(frozen=True)
class TerminalPart:
    """A part of an answer whose layout on a terminal depends on the terminal's width."""

    lay_out: Callable[[Console], RenderableType]
    file_width: int = 160  # Width in a pipe or file [characters].


def terminal_table(table: Table, width: int) -> RenderableType:
    """Lay out a table for a terminal of `width` columns. Brackets in its texts are text, not markup.

    Cells wrap between words, never within a number. Where words do not fit, each row is a list of names and
    values.
    """
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape as plain
    from rich.table import Table as TerminalTable

    texts = [[cell.text for cell in row] for row in table.body]
    natural = _widths(table.columns, texts, str.splitlines)
    least = _widths(table.columns, texts, str.split)
    widths: Sequence[int | None] = [None] * len(table.columns)
    room = width - _EDGES - _GAP * (len(table.columns) - 1)
    if sum(natural) > room:
        if sum(least) > room:
            return listed_rows(
                table.columns,
                texts,
                title=table.caption if table.caption_shown else "",
                note=table.note,
            )
        widths = _fitted(natural, least, room)
    title = plain(table.caption) if table.caption_shown else None
    laid_out = TerminalTable(
        box=SIMPLE_HEAD,
        pad_edge=False,
        title=title,
        title_justify="left",
        caption=plain(table.note) or None,
        caption_justify="left",
    )
    for number, column in enumerate(table.columns):
        laid_out.add_column(
            plain(column),
            justify="right" if number in table.numbers else "left",
            overflow="fold",
            width=widths[number],
        )
    for number, texts_of_row in enumerate(texts):
        if number in table.groups:
            laid_out.add_section()
        laid_out.add_row(*map(plain, texts_of_row))
    return laid_out


def natural_widths(part: RenderableType, console: Console) -> Measurement:
    """Return the least and the natural width of a part of a terminal, however narrow the terminal is."""
    from rich.measure import Measurement

    unlimited = console.options.update(width=_UNLIMITED)
    return Measurement.get(console, unlimited, part)


def _widths(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    split: Callable[[str], list[str]],
) -> list[int]:
    """Return the width of each column that holds its longest line or word, whichever `split` gives."""
    from rich.cells import cell_len

    widths = []
    for number, column in enumerate(columns):
        texts = [column, *(row[number] for row in rows if number < len(row))]
        parts = [part for text in texts for part in split(text)]
        widths.append(max(map(cell_len, parts), default=0))
    return widths


def _fitted(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Shrink the widest columns first, none below its least width, until all fit.

    >>> _fitted([20, 6, 12], [8, 6, 3], 24)
    [9, 6, 9]
    """
    widths = list(natural)
    while sum(widths) > room:
        wide = [index for index, width in enumerate(widths) if width > least[index]]
        widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def listed_rows(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    note: str = "",
) -> RenderableType:
    """Lay out each row as a list of names and values, for a terminal too narrow for a table.

    A row without its first text has that of the row above. A row with a single text is a heading.
    """
    from rich.console import Group
    from rich.table import Table as TerminalTable
    from rich.text import Text

    names = [" ".join(column.split()) for column in columns]
    parts: list[RenderableType] = []
    if title:
        parts.append(Text(title))
    first = ""
    for row in rows:
        parts.append(Text())
        if len(row) < len(columns):
            parts += map(Text, row)
            continue
        first = row[0] or first
        grid = TerminalTable.grid(padding=(0, 2))
        grid.add_column(overflow="fold")
        grid.add_column(overflow="fold")
        for name, text in zip(names, (first, *row[1:]), strict=True):
            if text:
                grid.add_row(Text(name), Text(" ".join(text.split())))
        parts.append(grid)
    parts.append(Text())
    if note:
        parts.append(Text(note, style="dim italic"))
    return Group(*parts)

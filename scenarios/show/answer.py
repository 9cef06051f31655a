"""An answer: what a command prints, writes and serves, made once from one question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from stripesim.models.documents import json_text
from stripesim.models.problems import Problem
from stripesim.scenarios.show.files import frame_of, write_files
from stripesim.scenarios.show.tables import Table, TerminalPart

if TYPE_CHECKING:
    import polars as pl

    from stripesim.scenarios.show.figures.renderer import CaptionedFigure


#: Longest first sentence in the representation of an answer [characters].
_SENTENCE_MAX: Final = 160
#: Most rows in the table that a notebook shows.
NOTEBOOK_ROWS_MAX: Final = 20

_Item = TypeVar("_Item")


def _state_of(shown: object) -> dict[str, Any]:
    """Return what is pickled: all but what was cached, such as figures, which can be made again."""
    return {
        name: value
        for name, value in vars(shown).items()
        if not isinstance(getattr(type(shown), name, None), cached_property)
    }


@dataclass(kw_only=True, repr=False, eq=False)
class Answer(Mapping[str, Any]):
    """The answer to a question, for programs and notebooks, the terminal, files and a page.

    An answer is also a mapping of its document: ``answer["warnings"]`` is ``answer.document["warnings"]``.

    A subclass adds the data of its question as attributes, and sets those that follow from them in
    `__post_init__`.

    Attributes
    ----------
    document
        What ``--json`` writes: JSON values by field.
    frame
        Return what was computed as a data frame, one row for each case. Empty if the answer is not a table.
        Called only if it is wanted, because Polars takes as long to load as some answers.
    shown
        Sentences and tables in the order in which a reader needs them.
    alerts
        Lines about what the answer lacks, such as failed or interrupted work. Unlike warnings, they are
        printed even if the document goes to standard output.
    outside
        Values outside the range that the parameter set was calibrated on.
    warnings
        All warnings, one sentence each. Those of `outside` may be among them.
    refusals
        Rows that the audit refuses, one sentence each.
    notes
        What the command did besides answering, one sentence each.
    saved_as
        Name of the file of ``--out`` that holds the document. Empty if none does.
    files
        Return the further files of ``--out`` by name. Called only if they are wanted.
    figures
        Return the figures of ``--out`` by file stem. Called only if they are wanted, because drawing takes
        longer than many answers.
    page
        Return the report as a self-contained HTML page. None if the question has no report.
    parts
        Answers of variants of the question, saved in sub-folders of these names.
    status
        Exit status of the command.
    """

    document: Mapping[str, Any] = field(default_factory=dict)
    frame: Callable[[], pl.DataFrame] = frame_of
    shown: Sequence[str | Table | TerminalPart] = ()
    alerts: Sequence[str] = ()
    outside: Sequence[Problem] = ()
    warnings: Sequence[str] = ()
    refusals: Sequence[str] = ()
    notes: Sequence[str] = ()
    saved_as: str = ""
    files: Callable[[], Mapping[str, bytes]] = dict
    figures: Callable[[], Mapping[str, CaptionedFigure]] = dict
    page: Callable[[], str] | None = None
    parts: Mapping[str, Answer] = field(default_factory=dict)
    status: int = 0

    def __getstate__(self) -> dict[str, Any]:
        return _state_of(self)

    def __getitem__(self, key: str) -> Any:
        return self.document[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.document)

    def __len__(self) -> int:
        return len(self.document)

    @cached_property
    def rows(self) -> pl.DataFrame:
        """Computed numbers, one row for each case. Empty if the answer is not a table."""
        return self.frame()

    def to_json(self) -> dict[str, Any]:
        """Return the document that ``--json`` writes."""
        return dict(self.document)

    @property
    def sentence(self) -> str:
        """One line that sums the answer up, by default the first sentence shown."""
        shown = "\n".join(part for part in self.shown if isinstance(part, str))
        lines = [line.strip() for line in shown.splitlines() if line.strip()]
        if not lines:
            return f"document of {', '.join(self.document)}"
        # A heading alone says nothing.
        return " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]

    def __repr__(self) -> str:
        sentence = self.sentence
        if len(sentence) > _SENTENCE_MAX:
            sentence = sentence[:_SENTENCE_MAX] + "…"
        return f"<{type(self).__name__}: {sentence}>"

    def _repr_html_(self) -> str:
        """Return a sentence, a table of at most 20 rows and the first figure, which notebooks show."""
        sentence = f"<p>{escape(self.sentence)}</p>"
        return sentence + self.html_table() + self.html_figure()

    def html_figure(self) -> str:
        """Return the first figure as HTML, or no text without one."""
        figure = next(iter(self.figures().values()), None)
        return "" if figure is None else figure._repr_html_()

    def html_table(self) -> str:
        """Return the first table shown as HTML, or no text without one."""
        tables = (part for part in self.shown if isinstance(part, Table))
        table = next(tables, None)
        if table is None:
            return ""
        left_out = len(table.rows) - NOTEBOOK_ROWS_MAX
        short = replace(table, rows=table.rows[:NOTEBOOK_ROWS_MAX])
        return short._repr_html_() + left_out_html(left_out)

    def save(
        self,
        folder: str | Path | None,
        *,
        page: str | Path | None = None,
        width_inch: float | None = None,
    ) -> list[Path]:
        """Write the document, files and figures into a folder, and the page into its file.

        Parameters
        ----------
        folder
            Folder, created if missing. None writes at most the page.
        page
            File of the page. None writes no page.
        width_inch
            Width of a paper's column [inch]. None draws figures for screens.

        Returns
        -------
        list of Path
            The files written.

        Raises
        ------
        AnswerError
            If a folder cannot be written to.
        """
        folder = None if folder is None else Path(folder)
        page = None if page is None else Path(page)
        written = [] if folder is None else write_files(folder, self._contents())
        if folder is not None:
            written += self._save_figures(folder, width_inch)
        if page is not None and self.page is not None:
            written += write_files(page.parent, {page.name: self.page().encode()})
        for name, part in self.parts.items():
            written += part.save(
                None if folder is None else folder / name,
                page=None if page is None else page.parent / name / page.name,
                width_inch=width_inch,
            )
        return written

    def _contents(self) -> dict[str, bytes]:
        """Return the document and further files by name."""
        files = dict(self.files())
        if not self.saved_as:
            return files
        text = json_text(self.document, is_ascii=True)
        return {self.saved_as: text.encode(), **files}

    def _save_figures(self, folder: Path, width_inch: float | None) -> list[Path]:
        figures = self.figures()
        if not figures:
            return []
        # Matplotlib takes half a second to load.
        from stripesim.scenarios.show.figures.saving import save_figures

        return save_figures(figures, folder, width_inch=width_inch)


def left_out_html(rows_count: int) -> str:
    """Return a line about rows that a notebook does not show, or no text if there are none."""
    if rows_count <= 0:
        return ""
    return f"<p>{rows_count:,} more rows</p>"


class AnsweredList(list[_Item]):
    """A list of what a question is about, such as one timeline per request, with its answer.

    Notebooks show the answer in place of the items.

    Parameters
    ----------
    items
        The items.
    make_answer
        Makes the answer. Called only if it is wanted.
    """

    def __init__(
        self, items: Iterable[_Item], make_answer: Callable[[], Answer]
    ) -> None:
        super().__init__(items)
        self._make_answer = make_answer

    def __getstate__(self) -> dict[str, Any]:
        return _state_of(self)

    @cached_property
    def answer(self) -> Answer:
        """The answer: its document, files, figures and page."""
        return self._make_answer()

    def __repr__(self) -> str:
        if not self:
            return "[]"
        first = self[0]
        # Rows have many columns.
        text = repr(self.answer if isinstance(first, Mapping) else first)
        more = f", … {len(self) - 1:,} more" if len(self) > 1 else ""
        return f"[{text}{more}]"

    def _repr_html_(self) -> str:
        """Return the first item, and table and figure of the answer, which notebooks show."""
        sentence = f"<p>{escape(repr(self))}</p>"
        if not self:
            return sentence
        return sentence + self.answer.html_table() + self.answer.html_figure()

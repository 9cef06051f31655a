"""An answer: what a command prints, writes and serves, made once from one question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stripesim.scenarios.show.files import json_text, write_files
from stripesim.scenarios.show.tables import Table, TerminalPart

if TYPE_CHECKING:
    from stripesim.scenarios.show.figures.renderer import CaptionedFigure


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer to a question, ready for the terminal, for files and for a page.

    Attributes
    ----------
    document
        What ``--json`` writes: JSON values by field.
    shown
        Sentences and tables in the order in which a reader needs them.
    alerts
        Lines about what the answer lacks, such as failed or interrupted work. Unlike warnings, they are
        printed even if the document goes to standard output.
    outside
        Values outside the range that the parameter set was calibrated on, one sentence each.
    warnings
        Further warnings, one sentence each.
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

    document: Mapping[str, Any]
    shown: Sequence[str | Table | TerminalPart] = ()
    alerts: Sequence[str] = ()
    outside: Sequence[str] = ()
    warnings: Sequence[str] = ()
    refusals: Sequence[str] = ()
    notes: Sequence[str] = ()
    saved_as: str = ""
    files: Callable[[], Mapping[str, bytes]] = dict
    figures: Callable[[], Mapping[str, CaptionedFigure]] = dict
    page: Callable[[], str] | None = None
    parts: Mapping[str, Answer] = field(default_factory=dict)
    status: int = 0

    def save(
        self,
        folder: Path | None,
        *,
        page: Path | None = None,
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
        stripesim.scenarios.show.quantities.AnswerError
            If a folder cannot be written to.
        """
        written = [] if folder is None else write_files(folder, self._contents())
        # The page comes first, because fitting a width changes the figures.
        pages = []
        if page is not None and self.page is not None:
            pages = write_files(page.parent, {page.name: self.page().encode()})
        if folder is not None:
            written += self._save_figures(folder, width_inch)
        written += pages
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

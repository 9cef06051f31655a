"""An answer: what a command prints, writes and serves, made once from one question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stripesim.scenarios.show.files import write_files
from stripesim.scenarios.show.tables import Table, TerminalPart

if TYPE_CHECKING:
    from stripesim.scenarios.show.figures.results import CaptionedFigure


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
    files
        Return the files of ``--out`` by name. Called only if they are wanted.
    figures
        Return the figures of ``--out`` by file stem. Called only if they are wanted, because drawing takes
        longer than many answers.
    page
        Return the report as a self-contained HTML page. None if the question has no report.
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
    files: Callable[[], Mapping[str, bytes]] = dict
    figures: Callable[[], Mapping[str, CaptionedFigure]] = dict
    page: Callable[[], str] | None = None
    status: int = 0

    def save(
        self,
        folder: str | Path,
        *,
        report: bool = False,
        width_inch: float | None = None,
    ) -> list[Path]:
        """Write the files and figures, and on request the report, into a folder.

        Parameters
        ----------
        folder
            Folder, created if missing.
        report
            True to write ``report.html`` too.
        width_inch
            Width of a paper's column [inch]. None draws figures for screens.

        Returns
        -------
        list of Path
            The files written.

        Raises
        ------
        stripesim.scenarios.show.quantities.AnswerError
            If the folder cannot be written to.
        """
        written = write_files(folder, self.files())
        # The page comes first, because fitting a width changes the figures.
        pages = []
        if report and self.page is not None:
            pages = write_files(folder, {"report.html": self.page().encode()})
        figures = self.figures()
        if figures:
            # Matplotlib takes half a second to load.
            from stripesim.scenarios.show.figures.results import save_figures

            written += save_figures(figures, folder, width_inch=width_inch)
        return written + pages

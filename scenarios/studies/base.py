"""What the command line expects of a study: a module that runs and draws, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from stripesim._version import __version__
from stripesim.scenarios.run.stamp import where_and_when

if TYPE_CHECKING:
    import polars as pl

    from stripesim.calibration.ledger.verdicts import Ledger

__all__ = ["Progress", "Study", "StudyResult", "chosen_experiments", "study_provenance"]

#: Called after each part with a few words about it and the number of parts in all.
Progress = Callable[[str, int], None]


@dataclass(frozen=True, kw_only=True)
class StudyResult:
    """What a study gives; one with more to give derives from it.

    Parameters
    ----------
    ledger : Ledger
        Claims and verdicts.
    rows : polars.DataFrame
        One row per run, or per measured case.
    provenance : dict
        How the rows came about; JSON values.
    """

    ledger: Ledger
    rows: pl.DataFrame
    provenance: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the document that ``--json`` and ``ledger.json`` hold."""
        return {**self.ledger.to_json(), "provenance": self.provenance}

    def terminal_tables(self) -> list[tuple[Sequence[str], Sequence[Sequence[str]]]]:
        """Return what is printed below the ledger: column names and rows of text, for each table."""
        return []


Result = TypeVar("Result", bound=StudyResult)


class Study(Protocol[Result]):
    """The module ``study.py`` in a study's folder.

    Notes
    -----
    `run` may take further keyword arguments, all with defaults; those that the command line has an option
    for are passed on to it where they were given.
    """

    def run(self, *, engine: str = ..., progress: Progress | None = ...) -> Result:
        """Run the study."""

    def save_study_figures(self, result: Result, out: Path) -> list[Path]:
        """Draw and write the study's figures and its ``report.html``; return the files."""


def study_provenance(name: str, engine: str, **told: Any) -> dict[str, Any]:
    """Say what gave a study's rows.

    Parameters
    ----------
    name, engine : str
    **told
        What else the rows depend on; JSON values.
    """
    return {"stripesim": __version__, "study": name, "engine": engine, **told, **where_and_when()}


def chosen_experiments(
    name: str, asked: Sequence[str] | None, known: Collection[str], needed: Collection[str]
) -> list[str]:
    """Return the experiments of a study that are to be run.

    Parameters
    ----------
    name : str
        The study's.
    asked : sequence of str or None
        None: all.
    known, needed : collection of str
        All that there are; those that its ledger cannot do without.

    Raises
    ------
    ValueError
        If one is unknown, or one that is needed is left out.
    """
    chosen = list(known) if asked is None else list(asked)
    if not set(needed) <= set(chosen) <= set(known):
        raise ValueError(
            f"study {name}: experiments: got {', '.join(chosen)}, "
            f"wanted some of {', '.join(known)}, among them {' and '.join(needed)}"
        )
    return chosen

"""What `stripesim study` does between reading options and printing."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from stripesim.calibration.ledger import Ledger

STUDIES = ("koh2017", "ceph16", "exstorus2019", "dachary2013", "erasurebench2016", "ecfault2024")


@dataclass(frozen=True)
class Studied:
    """What a study gave, whichever it was.

    Parameters
    ----------
    name : str
    result : object
        The study's own result, with ``ledger``, ``rows`` and ``provenance``.
    """

    name: str
    result: Any

    @property
    def ledger(self) -> Ledger:
        """Claims and verdicts."""
        found: Ledger = self.result.ledger
        return found

    @property
    def rows(self) -> pl.DataFrame:
        """What was run."""
        found: pl.DataFrame = self.result.rows
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the document that ``--json -`` prints."""
        document = {**self.ledger.to_json(), "provenance": self.result.provenance}
        if self._ablations is not None:
            document["ablations"] = self._ablations.to_dicts()
        return document

    @property
    def _ablations(self) -> pl.DataFrame | None:
        found: pl.DataFrame | None = getattr(self.result, "ablations", None)
        return found

    def show(self, console: Console, *, everything: bool) -> None:
        """Print the ledger and, where asked for, the ablations."""
        if self.rows.height:
            self.ledger.print_ledger(console, everything=everything)
        if self._ablations is not None and self._ablations.height:
            from stripesim.cli_tables import text_table
            from stripesim.scenarios.koh2017.report import ablation_table

            console.print(text_table(*ablation_table(self.result)))

    def write(self, out: Path) -> list[Path]:
        """Write ledger, rows, provenance and figures."""
        from stripesim.cli_tables import ledger_csv
        from stripesim.scenarios.results import write_results

        written = write_results(
            out,
            self.rows,
            self.result.provenance,
            {
                "ledger.json": json.dumps(self.to_json(), indent=1),
                "ledger.csv": ledger_csv(self.ledger),
            },
        )
        drawn: list[Path] = _module(self.name).save_study_figures(self.result, out)
        return written + drawn


def run_study(
    name: str,
    *,
    engine: str,
    options: Mapping[str, Any],
    progress: Callable[[str, int], None],
) -> Studied:
    """Run a study by name.

    Parameters
    ----------
    name : str
        One of `STUDIES`.
    engine : str
    options : mapping
        Options of single studies; those that are None or empty were not given.
    progress : callable
        Called with a few words and the number of parts in all.

    Raises
    ------
    ValueError
        If an option was given that this study does not take.
    """
    module = _module(name)
    takes = inspect.signature(module.run).parameters
    given = {key: value for key, value in options.items() if value}
    wrong = [key for key in given if key not in takes]
    if wrong:
        spelled = ", ".join(f"--{_OPTION.get(key, key)}" for key in wrong)
        raise ValueError(f"{spelled}: study {name} takes no such option")
    return Studied(name, module.run(engine=engine, progress=progress, **given))


# Where an option is spelled other than the argument it becomes.
_OPTION = {"figures": "figure", "ablations": "ablate", "against": "against-ceph"}


def _module(name: str) -> Any:
    return importlib.import_module(f"stripesim.scenarios.{name}.study")

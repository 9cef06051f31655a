"""What `stripesim study` does between reading options and printing."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from stripesim.calibration.ledger.verdicts import Ledger
    from stripesim.scenarios.studies.base import Study, StudyResult

#: A study is the module ``scenarios/studies/NAME/study.py``, of the form of
#: `stripesim.scenarios.studies.base.Study`.
STUDIES = ("koh2017", "ceph16", "exstorus2019", "dachary2013", "erasurebench2016", "ecfault2024")


@dataclass(frozen=True)
class Studied:
    """What a study gave, whichever it was.

    Parameters
    ----------
    name : str
    result : StudyResult
    """

    name: str
    result: StudyResult

    @property
    def ledger(self) -> Ledger:
        """Claims and verdicts."""
        return self.result.ledger

    @property
    def rows(self) -> pl.DataFrame:
        """What was run."""
        return self.result.rows

    def to_json(self) -> dict[str, Any]:
        """Return the document that ``--json -`` prints."""
        return self.result.to_json()

    def show(self, console: Console, *, everything: bool) -> None:
        """Print the ledger and what tables the study has beside it."""
        if self.rows.height:
            self.ledger.print_ledger(console, everything=everything)
        for columns, rows in self.result.terminal_tables():
            from stripesim.cli.tables import text_table

            console.print(text_table(columns, rows))

    def write(self, out: Path) -> list[Path]:
        """Write ledger, rows, provenance and figures."""
        from stripesim.cli.tables import ledger_csv
        from stripesim.scenarios.run.results import write_results

        written = write_results(
            out,
            self.rows,
            self.result.provenance,
            {
                "ledger.json": json.dumps(self.to_json(), indent=1),
                "ledger.csv": ledger_csv(self.ledger),
            },
        )
        return written + _module(self.name).save_study_figures(self.result, out)


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


def _module(name: str) -> Study[Any]:
    return cast("Study[Any]", importlib.import_module(f"stripesim.scenarios.studies.{name}.study"))


if TYPE_CHECKING:
    # The cast above is true because a type checker holds every study against the protocol here.
    from stripesim.scenarios.studies.ceph16 import study as ceph16
    from stripesim.scenarios.studies.dachary2013 import study as dachary2013
    from stripesim.scenarios.studies.ecfault2024 import study as ecfault2024
    from stripesim.scenarios.studies.erasurebench2016 import study as erasurebench2016
    from stripesim.scenarios.studies.exstorus2019 import study as exstorus2019
    from stripesim.scenarios.studies.koh2017 import study as koh2017

    _plain: tuple[Study[StudyResult], ...] = (
        exstorus2019, dachary2013, erasurebench2016, ecfault2024,
    )  # fmt: skip
    _ceph16: Study[ceph16.Ceph16Result] = ceph16
    _koh: Study[koh2017.KohResult] = koh2017

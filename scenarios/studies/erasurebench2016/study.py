"""Run what the claims of Vaucher et al. 2016 need, and judge them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from stripesim.scenarios.studies.base import StudyResult, study_provenance
from stripesim.scenarios.studies.erasurebench2016.experiments import EXPERIMENTS, Setting

TITLE = "ErasureBench (Vaucher et al. 2016): codes over a key-value store"
INTRODUCTION = (
    "No code, Reed-Solomon (10,4) and a locally repairable code (10,6,5) over a Redis cluster, simulated as "
    "op graphs of one encoding proxy and its requests. The proxy is fitted to what the source measured "
    "without code, to its encoders' rates and to one duration of Reed-Solomon; all else is predicted. The "
    "traffic of Figures 6 and 7 is labelled MB/s in the source; its own sums show that it is bytes per "
    "sampling interval of 5 s and 20 s, and it is compared as such."
)


def parameters() -> list[dict[str, Any]]:
    """Every number of the study with its provenance."""
    from stripesim.scenarios.studies.erasurebench2016.parameters import listed

    return listed()


def default_data() -> Path | None:
    """Folder of the project's data where it lies beside the working folder and has the failure trace."""
    from stripesim.scenarios.studies.erasurebench2016.replay import TRACE

    folder = Path("../shared/data")
    return folder if (folder / TRACE).is_file() else None


def run(
    *,
    engine: str = "compiled",
    data: str | Path | None = None,
    measure: bool = False,
    progress: Callable[[str, int], None] | None = None,
    experiments: Sequence[str] | None = None,
    seed: int = 1,
) -> StudyResult:
    """Run the study.

    Parameters
    ----------
    engine : str
        ``compiled`` or ``simpy``; both give the same rows.
    data : path, optional
        Folder of the project's data, where the failure trace lies; left out: ``../shared/data`` where it is
        there. Without it the replay follows the fifteen points that the source plots.
    measure : bool
        Measure this machine's kernels (two minutes) instead of taking the rows that ship.
    progress : callable, optional
        Called after each experiment with its name and the number of calls in all.
    experiments : sequence of str, optional
        Names from `EXPERIMENTS`; all where left out. Only ``replay`` may be missing.
    seed : int
        Of placements, kills and nodes that leave.

    Raises
    ------
    ValueError
        If an experiment is unknown or one that the ledger needs is left out, or the data cannot be used.
    """
    from stripesim.scenarios.run.results import rows_frame
    from stripesim.scenarios.studies.erasurebench2016.claims import ledger_for
    from stripesim.scenarios.studies.erasurebench2016.kernels import (
        measure_here,
        provenance_here,
        shipped_provenance,
    )

    chosen = list(EXPERIMENTS) if experiments is None else list(experiments)
    needed = set(EXPERIMENTS) - {"replay"}
    if not needed <= set(chosen) <= set(EXPERIMENTS):
        raise ValueError(
            f"study erasurebench2016: experiments: got {', '.join(chosen)}, wanted {', '.join(EXPERIMENTS)}, "
            "of which only replay may be left out"
        )
    folder = Path(data) if data is not None else default_data()
    setting = Setting(engine=engine, seed=seed, kernels=measure_here() if measure else None, data=folder)
    rows = []
    for name in chosen:
        rows += list(EXPERIMENTS[name](setting))
        if progress is not None:
            progress(name, len(chosen))
    frame = rows_frame(rows)
    return StudyResult(
        ledger=ledger_for(frame, parameters()),
        rows=frame,
        provenance=study_provenance(
            "erasurebench2016",
            engine,
            experiments=chosen,
            seed=seed,
            failure_trace=_trace_note(folder),
            parameters="scenarios/studies/erasurebench2016/parameters.toml",
            kernels=provenance_here() if measure else shipped_provenance(),
        ),
    )


def _trace_note(folder: Path | None) -> str:
    if folder is None:
        return (
            "left out: no --data was given and ../shared/data is not there; the replay follows the points "
            "that the source plots, unchecked against the trace"
        )
    return f"{folder}: websites02, window of Figure 7"


def save_study_figures(result: StudyResult, out: Path) -> list[Path]:
    """Draw and write the study's figures and its report; return the files."""
    from stripesim.scenarios.report.study import save_with_report
    from stripesim.scenarios.studies.erasurebench2016.draw import draw
    from stripesim.scenarios.studies.erasurebench2016.tabulate import tables

    return save_with_report(
        result,
        draw(result.rows),
        out,
        title=TITLE,
        introduction=INTRODUCTION,
        tables=tables(result.rows),
    )

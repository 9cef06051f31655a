"""Run what the claims of Kim et al. 2019 need and what lies beyond them, and judge the claims."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from stripesim.scenarios.studies.base import StudyResult, chosen_experiments, study_provenance
from stripesim.scenarios.studies.exstorus2019.experiments import EXPERIMENTS, Setting, kernel_factors

TITLE = "Kim et al. 2019: erasure-coded writes on faster networks"
INTRODUCTION = (
    "What D.-O. Kim et al., “Cost analysis of erasure coding for exa-scale storage” (The Journal of "
    "Supercomputing, 2019), state of one record’s write, step by step, beside the simulated write path."
)


def save_study_figures(result: StudyResult, out: Path) -> list[Path]:
    """Draw and write the study's figures and its report; return the files."""
    from stripesim.scenarios.report.study import save_with_report
    from stripesim.scenarios.studies.exstorus2019.draw import draw

    return save_with_report(result, draw(result.rows), out, title=TITLE, introduction=INTRODUCTION)


def parameters() -> list[dict[str, Any]]:
    """Every number of the study with its provenance: models and kernel ratios."""
    from stripesim.scenarios.studies.exstorus2019.parameters import hdd_model, write_model

    listed = [*write_model().parameters("write."), *hdd_model().parameters("hdd.")]
    source = "python -m stripesim.calibration.kernels.software; see kernel_ratios.json"
    for code, factor in kernel_factors().items():
        if code != "NONE":
            listed.append(
                {
                    "name": f"kernel_factor.{code}",
                    "value": factor,
                    "unit": "1",
                    "provenance": "measured",
                    "source": source,
                    "confidence_interval": None,
                }
            )
    return listed


def run(
    *,
    engine: str = "compiled",
    progress: Callable[[str, int], None] | None = None,
    experiments: Sequence[str] | None = None,
) -> StudyResult:
    """Run the study.

    Parameters
    ----------
    engine : str
        ``compiled`` or ``simpy``; both give the same rows.
    progress : callable, optional
        Called after the fit and each experiment with its name and the number of calls in all.
    experiments : sequence of str, optional
        Names from `EXPERIMENTS`; all where left out. The ledger needs ``steps`` and ``codes``.

    Raises
    ------
    ValueError
        If an experiment is unknown or one that the ledger needs is left out.
    """
    from stripesim.scenarios.run.results import rows_frame
    from stripesim.scenarios.studies.exstorus2019.calibrate import fit_all
    from stripesim.scenarios.studies.exstorus2019.claims import ledger_for
    from stripesim.scenarios.studies.exstorus2019.parameters import write_model

    chosen = chosen_experiments("exstorus2019", experiments, EXPERIMENTS, ("steps", "codes"))

    def told(words: str) -> None:
        if progress is not None:
            progress(words, 1 + len(chosen))

    # The numbers come from parameters.toml; the fit is repeated for its covariances, which intervals need.
    setting = Setting(model=write_model(), fits=fit_all(engine), engine=engine)
    told("fit")
    rows = []
    for name in chosen:
        rows += list(EXPERIMENTS[name](setting))
        told(name)
    frame = rows_frame(rows)
    return StudyResult(
        ledger=ledger_for(frame, parameters()), rows=frame, provenance=_provenance(engine, chosen)
    )


def _provenance(engine: str, experiments: Sequence[str]) -> dict[str, Any]:
    folder = files("stripesim.scenarios.studies.exstorus2019")
    return study_provenance(
        "exstorus2019",
        engine,
        experiments=list(experiments),
        parameters="scenarios/studies/exstorus2019/parameters.toml",
        kernel_ratios=json.loads((folder / "kernel_ratios.json").read_text("utf-8"))["provenance"],
    )

"""Run what the claims of Han et al. 2024 need and what lies beyond them, and judge the claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from stripesim.scenarios.studies.base import StudyResult, chosen_experiments, study_provenance
from stripesim.scenarios.studies.ecfault2024.experiments import EXPERIMENTS, NEEDED, Setting

TITLE = "Han et al. 2024 (ECFault): configurations of erasure-coded pools, simulated"
INTRODUCTION = (
    "Every number that R. Han et al., “Revisiting Erasure Codes: A Configuration Perspective” (HotStorage "
    "2024), states on its slides, beside what the simulated cluster does. Nothing was fitted. Volume of the "
    "data, number of OSDs and the swept values are not on the slides; they come from the source's repository "
    "or are assumed, as the parameters say."
)


def save_study_figures(result: StudyResult, out: Path) -> list[Path]:
    """Draw and write the study's figures and its page; return the files."""
    from stripesim.scenarios.report.study import save_with_report
    from stripesim.scenarios.studies.ecfault2024.draw import draw
    from stripesim.scenarios.studies.ecfault2024.tables import tables

    return save_with_report(
        result,
        draw(result.rows),
        out,
        title=TITLE,
        introduction=INTRODUCTION,
        tables=tables(result.rows),
    )


def parameters() -> list[dict[str, Any]]:
    """Every number of the study with its provenance: models, device, store, cache, autoscaler, clocks."""
    from stripesim.models.placement.pg_autoscale import pg_autoscale_model
    from stripesim.scenarios.run.build import build_models
    from stripesim.scenarios.run.execute import parameters_of, recovery_parameters
    from stripesim.scenarios.studies.ecfault2024.parameters import cache_model, study_model
    from stripesim.scenarios.studies.ecfault2024.profiles import CODES, profile

    scenario = profile("base").scenario(CODES[0], "faults.events=[{osds=[0], at_s=0.0}]")
    models = build_models(scenario)
    listed = [*study_model().parameters("study."), *parameters_of(models)]
    listed += recovery_parameters(scenario, models)
    for name in ("cache-kv", "cache-data", "cache-autotune"):
        scheme = profile(name).cache
        assert scheme is not None
        rows = list(cache_model(scheme.model_dump()).parameters(f"{name}."))
        # What the schemes share is listed once.
        listed += [row for row in rows if name == "cache-kv" or row["name"].endswith("_fraction")]
    return [*listed, *pg_autoscale_model().parameters("pg_autoscale.")]


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
        Called after each experiment with its name and the number of calls in all.
    experiments : sequence of str, optional
        Names from `EXPERIMENTS`; all where left out. The ledger needs ``storage`` and ``profiles``.

    Raises
    ------
    ValueError
        If an experiment is unknown or one that the ledger needs is left out.
    """
    from stripesim.scenarios.run.results import rows_frame
    from stripesim.scenarios.studies.ecfault2024.claims import ledger_for

    chosen = chosen_experiments("ecfault2024", experiments, EXPERIMENTS, NEEDED)
    rows: list[dict[str, Any]] = []
    for name in chosen:
        rows += EXPERIMENTS[name](Setting(engine=engine))
        if progress is not None:
            progress(name, len(chosen))
    frame = rows_frame(rows)
    return StudyResult(
        ledger=ledger_for(frame, parameters()), rows=frame, provenance=_provenance(engine, chosen)
    )


def _provenance(engine: str, experiments: Sequence[str]) -> dict[str, Any]:
    from stripesim.scenarios.studies.ecfault2024.profiles import CODES, profile

    base = profile("base").scenario(CODES[0])
    return study_provenance(
        "ecfault2024",
        engine,
        experiments=list(experiments),
        seed=base.seed,
        parameters="scenarios/studies/ecfault2024/parameters.toml",
        base=base.model_dump(mode="json"),
        profiles="scenarios/studies/ecfault2024/profiles.toml",
    )

"""Fit the set `pacific` in the stages of ``fit.toml``.

``python -m stripesim.scenarios.studies.ceph16.fit`` prints the values in `pacific.toml`.
"""

from collections.abc import Callable, Iterable, Mapping
from math import hypot

from stripesim.calibration.fitting import Fit
from stripesim.models.coding import parse_scheme
from stripesim.scenarios.studies.ceph16.cluster import models_for
from stripesim.scenarios.studies.ceph16.measured import load
from stripesim.scenarios.studies.ceph16.runs import metrics_of_row, predict_run
from stripesim.scenarios.studies.description import shipped_toml
from stripesim.scenarios.studies.parameters import with_values
from stripesim.scenarios.studies.staged_fit import (
    FitStage,
    RowValues,
    fit_stages,
    run_stages,
    with_proportions,
)

STUDY = "ceph16"


def main() -> None:
    """Fit group after group, each with the results of the previous ones, and print."""
    known: dict[str, float] = {}
    for group, tried in shipped_toml(STUDY, "fit.toml")["tried"].items():
        misfits = {}
        fits = {}
        for value in tried["values"]:
            given = {**known, tried["name"]: value}
            fits[value] = run_stages(
                fit_stages(STUDY, group),
                simulator=simulator,
                published=measured,
                given=given,
            )
            misfits[value] = misfit(fit for _, fit in fits[value])
        best = min(misfits, key=lambda value: misfits[value])
        print(f"{tried['name']} = {best}: misfits {misfits}")
        known[tried["name"]] = best
        for _, fit in fits[best]:
            known |= {fitted.name: fitted.value for fitted in fit.parameters}


def misfit(fits: Iterable[Fit]) -> float:
    """Return the root of the sum of all squared errors."""
    return hypot(*(error for fit in fits for error in fit.errors.values()))


def measured(stage: FitStage) -> RowValues:
    """Return the measured values of a stage's rows."""
    runs = {run.run_id: run.measured for run in load().runs}
    return {
        f"{run_id}:{metric}": runs[run_id][metric]
        for run_id in stage.rows
        for metric in stage.metrics
    }


def simulator(
    stage: FitStage, known: Mapping[str, float]
) -> Callable[[Mapping[str, float]], RowValues]:
    """Return the function that simulates a stage's rows."""
    runs = {run.run_id: run for run in load().runs}
    models = {name: models_for(parse_scheme(name)) for name in ("rep:3", "rs:6,3")}
    fixed = dict(known)

    def simulate(values: Mapping[str, float]) -> RowValues:
        tried = in_whole_numbers({**fixed, **values})
        simulated: dict[str, float] = {}
        for run_id in stage.rows:
            run = runs[run_id]
            row = predict_run(run, models=with_values(models[run.coded.name], tried))
            metrics = metrics_of_row({"op": run.op, **row})
            simulated |= {
                f"{run_id}:{metric}": metrics[metric] for metric in stage.metrics
            }
        return simulated

    return simulate


def in_whole_numbers(values: Mapping[str, float]) -> dict[str, float]:
    """Add the numbers that keep their proportion, in whole bytes and nanoseconds."""
    return {
        name: round(value) if name.endswith(("_bytes", "_ns")) else value
        for name, value in with_proportions(STUDY, values).items()
    }


if __name__ == "__main__":
    main()

"""Fit the five steps to Tables 1 and 2: relative least squares over all ten columns of each.

``python -m stripesim.scenarios.studies.exstorus2019.fit`` prints the fitted part of ``parameters.toml``.
Steps share no parameters (``fit.toml``), so there are five small fits. Every evaluation runs the op graph on
an engine. The 40 Gb/s column is not read here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from stripesim.scenarios.studies.exstorus2019.parameters import system_at, write_model
from stripesim.scenarios.studies.exstorus2019.source import (
    STUDY,
    TableEntry,
    calibration_cells,
)
from stripesim.scenarios.studies.staged_fit import fit_stages
from stripesim.sim.systems.striped_fs.costs import StripedWriteModel
from stripesim.sim.systems.striped_fs.participants import StripedSystem
from stripesim.sim.systems.striped_fs.write import STEPS, step_times

Floats = npt.NDArray[np.float64]

_STEP = 0.01
_LEVEL = 0.95


@dataclass(frozen=True)
class StepFit:
    """The fit of one step.

    ``confidence_intervals`` are at 95 %, from the scatter of residuals and the curvature at the optimum;
    ``errors`` are simulated over published − 1, by claim. ``covariance`` refers to the parameters'
    logarithms. ``freedom`` is the number of rows minus parameters.
    """

    step: str
    values: dict[str, Any]
    confidence_intervals: dict[str, tuple[float, float]]
    errors: dict[str, float]
    covariance: Floats
    residual_sd: float
    freedom: int


def simulated(
    model: StripedWriteModel, cells: Sequence[TableEntry], engine: str
) -> list[float]:
    """Return the simulated times of one record at these table entries [ns]."""
    sizes = sorted({cell.record_bytes for cell in cells})
    times = {
        (rate, size): step_ns
        for rate in dict.fromkeys(cell.gbit_per_s for cell in cells)
        for size, step_ns in zip(
            sizes, step_times(system_at(rate, model), sizes, engine=engine), strict=True
        )
    }
    return [times[cell.gbit_per_s, cell.record_bytes][cell.step] for cell in cells]


def fit_step(
    step: str, model: StripedWriteModel, *, engine: str = "compiled"
) -> StepFit:
    """Fit one step's parameters, by their logarithms, to its ten numbers in Tables 1 and 2."""
    from scipy.optimize import least_squares
    from scipy.stats import t

    cells = [cell for cell in calibration_cells() if cell.step == step]
    published = np.array([cell.time_ns for cell in cells])
    (stage,) = fit_stages(STUDY, step)
    start = stage.start

    def values_at(x: Floats) -> dict[str, Any]:
        return {
            name: value * math.exp(log - 1)
            for (name, value), log in zip(start.items(), x.tolist(), strict=True)
        }

    def residuals(x: Floats) -> Floats:
        relative: Floats = (
            np.array(simulated(replace(model, **values_at(x)), cells, engine))
            / published
            - 1
        )
        return relative

    # Starting at 1 gives every parameter the same finite step.
    solution = least_squares(
        residuals, np.ones(len(start)), diff_step=_STEP, xtol=1e-6, ftol=1e-9
    )
    freedom = len(cells) - len(start)
    residual_sd = math.sqrt(float(solution.fun @ solution.fun) / freedom)
    covariance = residual_sd**2 * np.linalg.inv(solution.jac.T @ solution.jac)
    spread = float(t.ppf(0.5 + _LEVEL / 2, freedom)) * np.sqrt(np.diag(covariance))
    values = values_at(solution.x)
    return StepFit(
        step=step,
        values=values,
        confidence_intervals={
            name: (value * math.exp(-half), value * math.exp(half))
            for (name, value), half in zip(values.items(), spread.tolist(), strict=True)
        },
        errors=dict(
            zip((cell.claim for cell in cells), solution.fun.tolist(), strict=True)
        ),
        covariance=covariance,
        residual_sd=residual_sd,
        freedom=freedom,
    )


@cache
def fit_all(engine: str = "compiled") -> tuple[StepFit, ...]:
    """Return all five fits in the order of `STEPS`; the distribution's comes first."""
    begin: dict[str, Any] = {}
    for stage in fit_stages(STUDY):
        begin |= stage.start
    model = replace(write_model(), **begin)
    fits: dict[str, StepFit] = {}
    for step in sorted(STEPS, key=lambda step: step != "distribution"):
        fits[step] = fit_step(step, model, engine=engine)
        model = replace(model, **fits[step].values)
    return tuple(fits[step] for step in STEPS)


def prediction_sd(
    fit: StepFit, system: StripedSystem, record_bytes: int, *, engine: str
) -> float:
    """Return the relative standard deviation of a new measurement of one step from its prediction.

    It combines the scatter of the calibration rows with the uncertainty of the parameters:
    sqrt(s² + gᵀ C g), where g are the logarithmic derivatives of the prediction.
    """

    def time_ns(**values: Any) -> float:
        changed = replace(system, model=replace(system.model, **values))
        (times,) = step_times(changed, [record_bytes], engine=engine)
        return times[fit.step]

    base_ns = time_ns()
    gradient = np.array(
        [
            (time_ns(**{name: value * math.exp(_STEP)}) / base_ns - 1) / _STEP
            for name, value in fit.values.items()
        ]
    )
    return math.sqrt(fit.residual_sd**2 + float(gradient @ fit.covariance @ gradient))


def prediction_intervals(
    fits: Sequence[StepFit],
    system: StripedSystem,
    record_bytes: int,
    *,
    level: float = 0.90,
    engine: str = "compiled",
) -> dict[str, tuple[float, float]]:
    """Return prediction intervals of the five steps and their ``total`` [ns], by Student's t."""
    from scipy.stats import t

    (base,) = step_times(system, [record_bytes], engine=engine)
    sds = {
        fit.step: prediction_sd(fit, system, record_bytes, engine=engine)
        for fit in fits
    }
    values = {}
    for fit in fits:
        half = float(t.ppf(0.5 + level / 2, fit.freedom)) * sds[fit.step]
        values[fit.step] = (
            base[fit.step] * max(0.0, 1 - half),
            base[fit.step] * (1 + half),
        )
    total = sum(base.values())
    sd = math.sqrt(sum((sds[step] * base[step]) ** 2 for step in sds))
    half = float(t.ppf(0.5 + level / 2, min(fit.freedom for fit in fits))) * sd
    values["total"] = (total - half, total + half)
    return values


def main() -> None:
    """Fit and print."""
    for fit in fit_all():
        print(
            f"# {fit.step}: scatter {100 * fit.residual_sd:.1f} %, {fit.freedom} degrees of freedom"
        )
        for name, value in fit.values.items():
            low, high = fit.confidence_intervals[name]
            print(f"{name} = {value:.6g}  [{low:.4g}, {high:.4g}]")
        for claim, error in fit.errors.items():
            print(f"#   {claim}: {100 * error:+.1f} %")


if __name__ == "__main__":
    main()

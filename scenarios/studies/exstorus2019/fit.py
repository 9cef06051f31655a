"""Fit the five steps to Tables 1 and 2: relative least squares over all ten columns of each.

``python -m stripesim.scenarios.studies.exstorus2019.fit`` prints the fitted part of
``parameters.toml``. Each
step has parameters of its own, so there are five small fits; every evaluation runs the op graph on an
engine. The 40 Gb/s column is read nowhere here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from stripesim.scenarios.studies.exstorus2019.parameters import write_model
from stripesim.scenarios.studies.exstorus2019.source import Cell, calibration_cells
from stripesim.sim.systems.striped_fs.costs import StripedWriteModel, VolumeGeometry
from stripesim.sim.systems.striped_fs.participants import StripedSystem
from stripesim.sim.systems.striped_fs.write import STEPS, step_times

Floats = npt.NDArray[np.float64]

GEOMETRY = VolumeGeometry(k=4, m=2, block_bytes=1024, chunk_bytes=64 << 20)
"""Section 2.3: stripes of 4 + 2 blocks of 1 KiB, chunks of 64 MiB."""

# Where the searches begin; the order of magnitude is enough.
START: Mapping[str, Mapping[str, float]] = {
    "client": {"client_base_ns": 20_000, "client_growth_exponent": 0.5, "client_rate_exponent": 0.1},
    "master": {"master_record_ns": 1_500, "master_stripe_ns": 1_000, "master_stripe_uncached_ns": 2_000},
    "parity": {"parity_record_ns": 1_000, "parity_stripe_ns": 800, "parity_stripe_uncached_ns": 1_000},
    "distribution": {"distribution_record_ns": 150_000, "network_efficiency_fraction": 0.5},
    "slave": {"slave_base_ns": 10_000, "slave_growth_exponent": 0.5},
}
_STEP = 0.01


@dataclass(frozen=True)
class StepFit:
    """The fit of one step.

    Parameters
    ----------
    step : str
        One of `STEPS`.
    values : dict of str to float
        The fitted parameters.
    confidence_intervals : dict of str to tuple of float
        95 %, from the residuals' scatter and the curvature at the optimum.
    errors : dict of str to float
        Simulated over published − 1, by claim.
    covariance : ndarray, shape (parameters, parameters)
        Of the logarithms of the parameters.
    residual_sd : float
        Scatter of the relative errors.
    freedom : int
        Rows less parameters.
    """

    step: str
    values: dict[str, float]
    confidence_intervals: dict[str, tuple[float, float]]
    errors: dict[str, float]
    covariance: Floats
    residual_sd: float
    freedom: int


def with_values(model: StripedWriteModel, values: Mapping[str, float]) -> StripedWriteModel:
    """Return the model with some numbers replaced."""
    numbers: dict[str, Any] = dict(values)
    return replace(model, **numbers)


def system_at(
    gbit_per_s: float, model: StripedWriteModel, *, geometry: VolumeGeometry = GEOMETRY
) -> StripedSystem:
    """The source's six data servers and one client on a network of some rate."""
    return StripedSystem(
        model=model,
        geometry=geometry,
        network_bits_per_s=gbit_per_s * 1e9,
        servers=max(6, geometry.width),
    )


def simulated(model: StripedWriteModel, cells: Sequence[Cell], engine: str) -> dict[str, float]:
    """Simulate the cells' steps: claim → time of one record [ns]."""
    values: dict[str, float] = {}
    for rate in dict.fromkeys(cell.gbit_per_s for cell in cells):
        here = [cell for cell in cells if cell.gbit_per_s == rate]
        sizes = sorted({cell.record_bytes for cell in here})
        times = dict(zip(sizes, step_times(system_at(rate, model), sizes, engine=engine), strict=True))
        values |= {cell.claim: times[cell.record_bytes][cell.step] for cell in here}
    return values


def fit_step(step: str, model: StripedWriteModel, *, engine: str = "compiled") -> StepFit:
    """Fit one step's parameters to its ten numbers in Tables 1 and 2; the model gives all others.

    Notes
    -----
    Minimises the sum of (simulated / published - 1)². The search runs over the logarithms of the
    parameters, which keeps them positive.
    """
    from scipy.optimize import least_squares
    from scipy.stats import t

    cells = [cell for cell in calibration_cells() if cell.step == step]
    published = np.array([cell.time_ns for cell in cells])
    start = START[step]

    def residuals(x: Floats) -> Floats:
        outcome = simulated(with_values(model, _values(start, x)), cells, engine)
        relative: Floats = np.array([outcome[cell.claim] for cell in cells]) / published - 1
        return relative

    # Beginning at 1 gives every parameter the same finite step.
    found = least_squares(residuals, np.ones(len(start)), diff_step=_STEP, xtol=1e-6, ftol=1e-9)
    freedom = len(cells) - len(start)
    residual_sd = math.sqrt(float(found.fun @ found.fun) / freedom)
    covariance = residual_sd**2 * np.linalg.inv(found.jac.T @ found.jac)
    spread = float(t.ppf(0.975, freedom)) * np.sqrt(np.diag(covariance))
    values = _values(start, found.x)
    return StepFit(
        step=step,
        values=values,
        confidence_intervals={
            name: (value * math.exp(-half), value * math.exp(half))
            for (name, value), half in zip(values.items(), spread.tolist(), strict=True)
        },
        errors=dict(zip((cell.claim for cell in cells), found.fun.tolist(), strict=True)),
        covariance=covariance,
        residual_sd=residual_sd,
        freedom=freedom,
    )


@cache
def fit_all(engine: str = "compiled") -> tuple[StepFit, ...]:
    """All five fits, in the order of `STEPS`.

    Notes
    -----
    The fits do not depend on the numbers that ``parameters.toml`` holds for the fitted parameters, only
    on its assumed ones. The distribution comes first, for it alone sets the network's efficiency.
    """
    model = with_values(
        write_model(), {name: value for start in START.values() for name, value in start.items()}
    )
    found: dict[str, StepFit] = {}
    for step in ("distribution", *(step for step in STEPS if step != "distribution")):
        found[step] = fit_step(step, model, engine=engine)
        model = with_values(model, found[step].values)
    return tuple(found[step] for step in STEPS)


def fitted_model(fits: Sequence[StepFit]) -> StripedWriteModel:
    """The parameter set with these fits' values in it."""
    values = {name: value for fit in fits for name, value in fit.values.items()}
    return with_values(write_model(), values)


def prediction_sd(fit: StepFit, system: StripedSystem, record_bytes: int, *, engine: str) -> float:
    """Relative standard deviation of a new measurement of one step about its prediction.

    Notes
    -----
    Scatter of the calibration rows about the fit, and what the parameters' uncertainty adds to it:
    sqrt(s² + gᵀ C g), with g the logarithmic derivatives of the prediction.
    """
    (base,) = step_times(system, [record_bytes], engine=engine)
    slopes = []
    for name, value in fit.values.items():
        moved = replace(system, model=with_values(system.model, {name: value * math.exp(_STEP)}))
        (there,) = step_times(moved, [record_bytes], engine=engine)
        slopes.append((there[fit.step] / base[fit.step] - 1) / _STEP)
    gradient = np.array(slopes)
    return math.sqrt(fit.residual_sd**2 + float(gradient @ fit.covariance @ gradient))


def prediction_intervals(
    fits: Sequence[StepFit],
    system: StripedSystem,
    record_bytes: int,
    *,
    level: float = 0.90,
    engine: str = "compiled",
) -> dict[str, tuple[float, float]]:
    """Intervals for the five steps and their ``total`` [ns].

    Parameters
    ----------
    fits : sequence of StepFit
    system : StripedSystem
    record_bytes : int
        Data of a record [B].
    level : float
        Coverage, if the model's form holds; what the form leaves out is not in it.
    engine : str
        ``compiled`` or ``simpy``.

    Notes
    -----
    Student's t with the fit's degrees of freedom for a step; for the total the steps' variances are added
    and the smallest number of degrees of freedom is used, which is on the safe side.
    """
    from scipy.stats import t

    (base,) = step_times(system, [record_bytes], engine=engine)
    sds = {fit.step: prediction_sd(fit, system, record_bytes, engine=engine) for fit in fits}
    values = {}
    for fit in fits:
        half = float(t.ppf(0.5 + level / 2, fit.freedom)) * sds[fit.step]
        values[fit.step] = (base[fit.step] * max(0.0, 1 - half), base[fit.step] * (1 + half))
    total = sum(base.values())
    sd = math.sqrt(sum((sds[step] * base[step]) ** 2 for step in sds))
    half = float(t.ppf(0.5 + level / 2, min(fit.freedom for fit in fits))) * sd
    values["total"] = (total - half, total + half)
    return values


def _values(start: Mapping[str, float], x: Floats) -> dict[str, float]:
    return {
        name: value * math.exp(log - 1) for (name, value), log in zip(start.items(), x.tolist(), strict=True)
    }


def main() -> None:
    """Fit and print."""
    for fit in fit_all():
        print(f"# {fit.step}: scatter {fit.residual_sd:.1%}, {fit.freedom} degrees of freedom")
        for name, value in fit.values.items():
            low, high = fit.confidence_intervals[name]
            print(f"{name} = {value:.6g}  [{low:.4g}, {high:.4g}]")
        for claim, error in fit.errors.items():
            print(f"#   {claim}: {error:+.1%}")


if __name__ == "__main__":
    main()

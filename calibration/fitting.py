"""Fit a few parameters to a few rows of a ledger, and say how well they are known."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class FittedParameter:
    """A parameter after a fit."""

    name: str
    value: float  #: In the parameter's unit
    #: 95 %, from the curvature at the optimum with each row's tolerance as its standard deviation: what the
    #: rows can tell apart, not the effects that the model leaves out
    confidence_interval: tuple[float, float]


@dataclass(frozen=True)
class Fit:
    """The outcome of a fit."""

    parameters: tuple[FittedParameter, ...]
    errors: dict[str, float]  #: Simulated over published − 1, by row
    evaluations: int
    #: Covariance of the logarithms of the parameters, in their order, shape (n, n)
    covariance: npt.NDArray[np.float64]


def fit_parameters(
    simulate: Callable[[Mapping[str, float]], Mapping[str, float]],
    *,
    start: Mapping[str, float],
    published: Mapping[str, float],
    tolerance: Mapping[str, float],
    bounds: Mapping[str, tuple[float, float]] | None = None,
    prior: Mapping[str, float] | None = None,
    loss: str = "linear",
    step: float = 0.05,
    most: int = 25,
) -> Fit:
    """Fit parameters by least squares on relative errors; one as large as its tolerance counts 1.

    `simulate` gives the simulated value of each row. The search runs over the logarithms of the parameters,
    from `start`, within `bounds`; `most` bounds the evaluations, not counting those for derivatives,
    whose relative step exceeds the noise of a simulation.

    `prior` is how far each parameter may be from its start before any row is seen: the standard deviation of
    its logarithm. With it a parameter that no row tells anything about stays at its start, with an interval
    as wide as the prior. Without it fewer rows than parameters are refused.

    `loss` is that of `scipy.optimize.least_squares`; with ``soft_l1`` one row that contradicts the others
    does not decide.
    """
    from scipy.optimize import least_squares

    names = list(start)
    rows = list(published)
    if prior is None and len(rows) < len(names):
        raise ValueError(
            f"fit: got {len(rows)} rows for {len(names)} parameters, wanted at least as many"
        )

    # Steps are relative to the variable, which must not be near 0: 1 + ln(value / start).
    origin = np.log([start[name] for name in names]) - 1

    def residuals(logs: Any) -> Any:
        simulated = simulate(
            dict(zip(names, np.exp(origin + logs).tolist(), strict=True))
        )
        of_rows = [
            np.log(simulated[row] / published[row]) / tolerance[row] for row in rows
        ]
        # Logarithms start at 1.
        of_prior = (
            [(logs[at] - 1) / prior[name] for at, name in enumerate(names)]
            if prior
            else []
        )
        return np.array(of_rows + of_prior)

    if bounds:
        limits = np.log([bounds[name] for name in names]).T - origin
    else:
        limits = (-np.inf, np.inf)
    solution = least_squares(
        residuals,
        np.ones(len(names)),
        bounds=limits,
        diff_step=step,
        xtol=1e-3,
        ftol=1e-3,
        max_nfev=most,
        loss=loss,
    )
    covariance = np.linalg.pinv(solution.jac.T @ solution.jac)
    spread = 1.96 * np.sqrt(np.diag(covariance))
    return Fit(
        parameters=tuple(
            FittedParameter(
                name,
                float(np.exp(log)),
                (float(np.exp(log - half)), float(np.exp(log + half))),
            )
            for name, log, half in zip(
                names, (origin + solution.x).tolist(), spread.tolist(), strict=True
            )
        ),
        errors={
            row: float(np.exp(residual * tolerance[row]) - 1)
            for row, residual in zip(rows, solution.fun.tolist(), strict=False)
        },
        evaluations=int(solution.nfev),
        covariance=covariance,
    )

"""Fit a few parameters to rows of a ledger, with confidence intervals."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

#: Relative step for derivatives, which must exceed the noise of a simulation.
_STEP = 0.05


@dataclass(frozen=True)
class FittedParameter:
    """A fitted parameter with its confidence interval."""

    name: str
    value: float  #: In the parameter's unit
    #: 95 % interval from the curvature at the optimum, with each row's tolerance as its standard deviation.
    #: It covers what the rows can distinguish, but not effects that the model omits.
    confidence_interval: tuple[float, float]


@dataclass(frozen=True)
class Fit:
    """Result of a fit."""

    parameters: tuple[FittedParameter, ...]
    errors: dict[str, float]  #: Simulated / published − 1, by row
    evaluations: int  #: Simulations by the search, without those for derivatives
    #: Covariance of the logarithms of the parameters, in their order, shape (n, n)
    covariance: npt.NDArray[np.float64]
    #: Share of each row's value that the row itself decides, 0 to 1, by row
    leverages: dict[str, float]


def fit_parameters(
    simulate: Callable[[Mapping[str, float]], Mapping[str, float]],
    *,
    start: Mapping[str, float],
    published: Mapping[str, float],
    tolerance: Mapping[str, float],
    bounds: Mapping[str, tuple[float, float]] | None = None,
    prior: Mapping[str, float] | None = None,
    loss: str = "linear",
    most: int = 25,
) -> Fit:
    """Fit parameters by least squares on relative errors, each weighted by its tolerance.

    Parameters
    ----------
    simulate
        Function from parameter values to the simulated value of each row.
    start
        Initial value of each parameter, greater than 0. The search runs over logarithms.
    published
        Published value of each row, greater than 0. Without a prior there must be at least as many rows as
        parameters.
    tolerance
        Relative error of each row that counts as 1.
    bounds
        Lowest and highest value of each parameter.
    prior
        Standard deviation of each parameter's logarithm around its start before any row is seen. A parameter
        that no row informs then stays at its start, with an interval as wide as the prior.
    loss
        As of `scipy.optimize.least_squares`. With ``soft_l1``, one row that contradicts the others does not
        decide.
    most
        Largest number of evaluations, not counting those for derivatives.

    Returns
    -------
    Fit
        Fitted parameters with 95 % intervals, and the remaining errors.

    Raises
    ------
    ValueError
        If there are fewer rows than parameters and no prior.

    Notes
    -----
    The fit minimises the sum over rows of (ln(simulated / published) / tolerance)².
    """
    from scipy.optimize import least_squares

    names = list(start)
    rows = list(published)
    if prior is None and len(rows) < len(names):
        raise ValueError(
            f"fit: got {len(rows)} rows for {len(names)} parameters, wanted at least as many"
        )

    # Derivative steps are relative to the variable, so keep it away from 0: 1 + ln(value / start).
    origin = np.log([start[name] for name in names]) - 1

    def residuals(logs: Any) -> Any:
        simulated = simulate(
            dict(zip(names, np.exp(origin + logs).tolist(), strict=True))
        )
        of_rows = [
            np.log(simulated[row] / published[row]) / tolerance[row] for row in rows
        ]
        of_prior = []
        if prior:
            # Logarithms start at 1.
            of_prior = [
                (log - 1) / prior[n] for n, log in zip(names, logs, strict=True)
            ]
        return np.array(of_rows + of_prior)

    limits: Any = (-np.inf, np.inf)
    if bounds:
        limits = np.log([bounds[name] for name in names]).T - origin
    solution = least_squares(
        residuals,
        np.ones(len(names)),
        bounds=limits,
        diff_step=_STEP,
        xtol=1e-3,
        ftol=1e-3,
        max_nfev=most,
        loss=loss,
    )
    covariance = np.linalg.pinv(solution.jac.T @ solution.jac)
    spread = 1.96 * np.sqrt(np.diag(covariance))
    leverages = np.einsum("ij,jk,ik->i", solution.jac, covariance, solution.jac)
    return Fit(
        parameters=tuple(map(_fitted, names, origin + solution.x, spread)),
        errors={
            row: float(np.exp(residual * tolerance[row]) - 1)
            for row, residual in zip(rows, solution.fun.tolist(), strict=False)
        },
        evaluations=int(solution.nfev),
        covariance=covariance,
        leverages=dict(zip(rows, leverages.tolist(), strict=False)),
    )


def _fitted(name: str, log: float, half: float) -> FittedParameter:
    """Return a parameter by its logarithm and half the width of that one's interval."""
    interval = (float(np.exp(log - half)), float(np.exp(log + half)))
    return FittedParameter(name, float(np.exp(log)), interval)

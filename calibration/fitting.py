"""Fit a few parameters to rows of a ledger, with confidence intervals."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

#: Step of a parameter's logarithm for derivatives, which must exceed the noise of a simulation.
_STEP = 0.05
#: The same as a part of the standard deviation that is known beforehand, where that is a larger step. A
#: parameter that may be off by a factor of three shows its effect over a wide step.
_STEP_OF_PRIOR = 0.25


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
    evaluations: int  #: Simulations by the searches, without those for derivatives
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
        ``linear`` or ``soft_l1``, as of `scipy.optimize.least_squares`. With ``soft_l1``, one row that
        contradicts the others does not decide.
    most
        Largest number of evaluations of a search, not counting those for derivatives.

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

    A search may end in a local minimum: if clients limit a rate at the start, it slows the clients down,
    although the processors of the result limit the rate without that. So, with a prior, each parameter is put
    back to its start, and if the sum is then less, a second search begins with the least.

    A derivative is the change of a row over a step of 5 % of a parameter, or over a quarter of the prior's
    standard deviation if that is more.
    """
    from scipy.optimize import least_squares

    names = list(start)
    rows = list(published)
    if prior is None and len(rows) < len(names):
        raise ValueError(
            f"fit: got {len(rows)} rows for {len(names)} parameters, wanted at least as many"
        )

    residuals = _Residuals(simulate, start, published, tolerance, prior)
    limits: Any = (-np.inf, np.inf)
    if bounds:
        limits = np.log([np.divide(bounds[name], start[name]) for name in names]).T
    search = partial(
        least_squares,
        residuals,
        jac=partial(residuals.derivatives, highest=limits[1]),
        bounds=limits,
        xtol=1e-3,
        ftol=1e-3,
        max_nfev=most,
        loss=loss,
    )
    solution = search(np.zeros(len(names)))
    evaluations = solution.nfev
    if prior:
        evaluations += len(names)
        reset = _best_reset(residuals, solution, loss)
        if reset is not None:
            solution = search(reset)
            evaluations += solution.nfev
    covariance = np.linalg.pinv(solution.jac.T @ solution.jac)
    spread = 1.96 * np.sqrt(np.diag(covariance))
    leverages = np.einsum("ij,jk,ik->i", solution.jac, covariance, solution.jac)
    return Fit(
        parameters=tuple(
            map(_fitted, names, np.log(list(start.values())) + solution.x, spread)
        ),
        errors={
            row: float(np.exp(residual * tolerance[row]) - 1)
            for row, residual in zip(rows, solution.fun.tolist(), strict=False)
        },
        evaluations=int(evaluations),
        covariance=covariance,
        leverages=dict(zip(rows, leverages.tolist(), strict=False)),
    )


class _Residuals:
    """The weighted errors of rows and priors, by the logarithms of the parameters over their start."""

    def __init__(
        self,
        simulate: Callable[[Mapping[str, float]], Mapping[str, float]],
        start: Mapping[str, float],
        published: Mapping[str, float],
        tolerance: Mapping[str, float],
        prior: Mapping[str, float] | None,
    ) -> None:
        self._simulate = simulate
        self._start = start
        self._published = published
        self._tolerance = tolerance
        self._spreads = [prior[name] for name in start] if prior else []
        # Steps of the logarithms over which errors are differentiated.
        self._steps = np.full(len(start), _STEP)
        if prior:
            of_prior = _STEP_OF_PRIOR * np.array(self._spreads)
            self._steps = np.maximum(self._steps, of_prior)
        # Derivatives at a point need its errors again.
        self._known: dict[bytes, npt.NDArray[np.float64]] = {}

    def __call__(self, logs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        key = logs.tobytes()
        if key not in self._known:
            self._known[key] = self._at(logs)
        return self._known[key]

    def cost(self, logs: npt.NDArray[np.float64], loss: str) -> float:
        """Return half the sum of the squared errors, each by the loss, as `least_squares` minimises it."""
        squares = self(logs) ** 2
        if loss == "soft_l1":
            squares = 2 * (np.sqrt(1 + squares) - 1)
        return float(squares.sum() / 2)

    def derivatives(
        self, logs: npt.NDArray[np.float64], *, highest: Any
    ) -> npt.NDArray[np.float64]:
        """Return the derivative of each error by each logarithm, backwards beyond its highest."""
        steps = np.diag(self._steps)
        tried = np.where(logs + steps > highest, logs - steps, logs + steps)
        changes = [self(point) - self(logs) for point in tried]
        return np.array(changes).T / (np.diag(tried) - logs)

    def _at(self, logs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        factors = np.exp(logs).tolist()
        simulated = self._simulate(
            {
                name: value * factor
                for (name, value), factor in zip(
                    self._start.items(), factors, strict=True
                )
            }
        )
        of_rows = [
            np.log(simulated[row] / value) / self._tolerance[row]
            for row, value in self._published.items()
        ]
        of_prior = logs[: len(self._spreads)] / self._spreads
        return np.array([*of_rows, *of_prior])


def _best_reset(
    residuals: _Residuals, solution: Any, loss: str
) -> npt.NDArray[np.float64] | None:
    """Put each parameter of a solution back to its start, and return the point of the least cost.

    Return None if every point costs at least as much as the solution.
    """
    # One of the parameters is back at its start in each row.
    points: npt.NDArray[np.float64] = solution.x * (1 - np.eye(len(solution.x)))
    costs = [residuals.cost(point, loss) for point in points]
    if min(costs) >= solution.cost:
        return None
    best: npt.NDArray[np.float64] = points[np.argmin(costs)]
    return best


def _fitted(name: str, log: float, half: float) -> FittedParameter:
    """Return a parameter by its logarithm and half the width of that one's interval."""
    interval = (float(np.exp(log - half)), float(np.exp(log + half)))
    return FittedParameter(name, float(np.exp(log)), interval)

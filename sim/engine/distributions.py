"""Distributions of service times around their mean, as rows of `Program.factor_tables`.

A `use` names its distribution by the number of its row (``spread=1``) and its mean by its demand. Row 0 has
no spread. Each row has the means of `FACTOR_POINTS` equally likely cells of the distribution, which the
engines join to a continuous one (`stripesim.sim.engine.draws.factor_cells`).
"""

from math import log, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from stripesim.sim.engine.draws import (
    FACTOR_MAX,
    FACTOR_ONE,
    FACTOR_POINTS,
    IntArray,
    factor_table,
)

#: Largest coefficient of variation of which the simulated factors of a lognormal distribution keep 90 %.
LOGNORMAL_CV_MAX = 2.5

FloatArray = npt.NDArray[np.float64]


def service_times(*rows: IntArray) -> IntArray:
    """Return the distributions of a program: row 0 has no spread, the others are as given.

    Parameters
    ----------
    *rows
        Distributions, each from `exponential`, `lognormal`, `empirical` or `factor_table`. The first gets
        ``spread=1``.

    Returns
    -------
    ndarray of int64
        Value of `Program.factor_tables`, shape (1 + distributions, FACTOR_POINTS).

    Examples
    --------
    >>> service_times(exponential(), lognormal(cv=0.5)).shape
    (3, 256)
    """
    fixed = np.full(FACTOR_POINTS, FACTOR_ONE, dtype=np.int64)
    table: IntArray = np.stack([fixed, *rows])
    return table


def exponential() -> IntArray:
    r"""Return the exponential distribution.

    Returns
    -------
    ndarray of int64
        Cell means in units of 2**-20, shape (FACTOR_POINTS,).

    Notes
    -----
    The mean of the cell of probabilities :math:`a` to :math:`b` follows from

    .. math:: \int_a^b -\ln(1 - p)\,\mathrm{d}p = \bigl[u - u \ln u\bigr]_{u = 1 - b}^{1 - a} \tag{1}

    Beyond the last cell's mean the tail has the variance of the exponential, not its quantiles: use it up to
    the 99.6th percentile.

    Examples
    --------
    >>> float(round(exponential().mean() / FACTOR_ONE, 6))
    1.0
    """
    left = 1 - np.arange(FACTOR_POINTS + 1) / FACTOR_POINTS
    logarithms = np.array([log(each) if each else 0.0 for each in left.tolist()])
    integral = left - left * logarithms
    return _row("exponential", (integral[:-1] - integral[1:]) * FACTOR_POINTS)


def lognormal(*, cv: float) -> IntArray:
    r"""Return a lognormal distribution.

    Parameters
    ----------
    cv
        Coefficient of variation: standard deviation divided by the mean, above 0 and at most
        `LOGNORMAL_CV_MAX`.

    Returns
    -------
    ndarray of int64
        Cell means in units of 2**-20, shape (FACTOR_POINTS,).

    Raises
    ------
    ValueError
        If the coefficient is not above 0, or too large.

    Notes
    -----
    The logarithm has the variance :math:`\sigma^2 = \ln(1 + c^2)`. With quantiles :math:`z` of the standard
    normal distribution :math:`\Phi`, a cell of probability :math:`1/n` has the mean

    .. math:: n \, \bigl(\Phi(z_b - \sigma) - \Phi(z_a - \sigma)\bigr) \tag{1}

    Beyond the last cell's mean the tail is that of an exponential, which is too short. The simulated factors
    have 99 % of a coefficient of variation of 1, 94 % of one of 2, and 91 % of one of 2.5. A wait in a queue
    grows with its square, so it is up to 14 % too short.
    """
    if not cv > 0:
        raise ValueError(f"lognormal: got cv = {cv}, wanted above 0")
    if cv > LOGNORMAL_CV_MAX:
        raise ValueError(
            f"lognormal: got cv = {cv}, wanted at most {LOGNORMAL_CV_MAX}, because the tail of the simulated "
            "times is shorter"
        )
    sigma = sqrt(log(1 + cv * cv))
    normal = NormalDist()
    inner = [normal.inv_cdf(edge / FACTOR_POINTS) for edge in range(1, FACTOR_POINTS)]
    shares = [0.0, *(normal.cdf(quantile - sigma) for quantile in inner), 1.0]
    return _row(f"lognormal: cv = {cv}", np.diff(shares) * FACTOR_POINTS)


def empirical(samples: npt.ArrayLike) -> IntArray:
    """Return the distribution of measured service times around their mean.

    Parameters
    ----------
    samples
        Measured times in any unit, at least one, each 0 or more, shape (n,). Their mean is the demand of the
        `use`.

    Returns
    -------
    ndarray of int64
        Cell means in units of 2**-20, shape (FACTOR_POINTS,). Fewer samples than cells stay steps. Of more
        samples, the slowest of 256 parts keeps its mean and gets the tail of an exponential.

    Raises
    ------
    ValueError
        If there are no samples, or one is negative or not finite, or their mean is 0.

    Examples
    --------
    >>> rows = empirical([10, 10, 10, 50])  # Three of four take half of the mean, 20.
    >>> (rows[[0, 191, 192]] / FACTOR_ONE).tolist()
    [0.5, 0.5, 2.5]
    """
    times = np.sort(np.asarray(samples, dtype=np.float64).reshape(-1))
    if not len(times) or not np.isfinite(times).all() or times[0] < 0:
        raise ValueError(
            "empirical: got samples below 0, not finite, or none, wanted at least one, each 0 or more"
        )
    if not times.mean():
        raise ValueError("empirical: got samples of mean 0, wanted a mean above 0")
    # Integral of the quantile function, which is linear between whole samples.
    integral = np.append(0.0, np.cumsum(times)) / times.sum()
    edges = np.arange(FACTOR_POINTS + 1) / FACTOR_POINTS
    at_edges = np.interp(edges * len(times), np.arange(len(times) + 1), integral)
    return _row("empirical", np.diff(at_edges) * FACTOR_POINTS)


def _row(name: str, factors: npt.NDArray[np.floating[Any]]) -> IntArray:
    """Return factors in fixed point, or raise if one is beyond the engines' range."""
    highest = FACTOR_MAX // FACTOR_ONE
    if factors.max() > highest:
        raise ValueError(
            f"{name}: got a highest factor of {factors.max():.4g}, wanted at most {highest} times the mean"
        )
    return factor_table(factors.tolist())

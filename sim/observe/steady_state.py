"""Where the steady state begins, and how sure a mean is."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def mser5(values: npt.ArrayLike) -> int:
    r"""Return the number of leading observations to leave out (MSER-5).

    Notes
    -----
    The truncation `d` minimises the squared standard error of what is left,

    .. math:: z(d) = \sum_{i>d} (y_i - \bar y_d)^2 / (N - d)^2 \\tag{1}

    over batch means :math:`y` of five observations. A minimum in the second half says
    that the run is too short to tell; half of it is left out then.

    References
    ----------
    White: An effective truncation heuristic for bias reduction in simulation output,
    Simulation 69(6), 1997.

    >>> mser5([9.0] * 10 + [1.0, 1.1, 0.9, 1.0, 1.0] * 20)
    10
    """
    observed = np.asarray(values, dtype=np.float64)
    batches = len(observed) // 5
    if batches < 4:
        return 0
    means = observed[: batches * 5].reshape(batches, 5).mean(axis=1)
    # Centre first: the difference of sums below would lose digits on large values.
    means = means - means.mean()
    left = np.arange(batches, 0, -1)
    sums = np.cumsum(means[::-1])[::-1]
    squares = np.cumsum(means[::-1] ** 2)[::-1]
    spread = squares - sums**2 / left
    # A constant tail has no spread; what rounding leaves of it must not choose the truncation.
    spread[spread < 1e-12 * squares[0]] = 0.0
    errors = spread / left**2
    return 5 * int(np.argmin(errors[: batches // 2 + 1]))


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % confidence interval; the bounds are None where none can be given."""

    mean: float
    low: float | None
    high: float | None


def batch_means(values: npt.ArrayLike) -> Interval:
    """Return the mean of a series of batch values with a Student-t interval."""
    from scipy.stats import t as student

    observed = np.asarray(values, dtype=np.float64)
    mean = float(observed.mean())
    if len(observed) < 3:
        return Interval(mean, None, None)
    half = float(student.ppf(0.975, len(observed) - 1) * observed.std(ddof=1) / np.sqrt(len(observed)))
    return Interval(mean, mean - half, mean + half)

"""Where the steady state begins, and how sure a mean of one run is: batches that are nearly independent."""

from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

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


class Interval(NamedTuple):
    """A mean with its 95 % confidence interval; the bounds are None where none can be given."""

    mean: float
    low: float | None
    high: float | None


def student_interval(values: npt.ArrayLike, *, least: int = 2) -> Interval:
    r"""Return the mean of independent values with Student's interval, from so many of them on.

    Of :math:`n` values, :math:`\bar x \pm t_{0.975, n-1} \, s / \sqrt n`.
    """
    observed = np.asarray(values, dtype=np.float64)
    # The sum of equal values, divided, need not give that value; centring first does.
    mean = float(observed[0] + (observed - observed[0]).mean())
    if len(observed) < least:
        return Interval(mean, None, None)
    deviation = sqrt(float(((observed - mean) ** 2).sum()) / (len(observed) - 1))
    half = float(stdtrit(len(observed) - 1, 0.975)) * deviation / sqrt(len(observed))
    return Interval(mean, mean - half, mean + half)


# From many short batches to few long ones, each twice as long as those before.
_BATCHES = (160, 80)
_BATCHES_MIN = 20
# Moments of completion that a batch holds at least: a client in bursts has few.
_MOMENTS_MIN = 4
# If few long batches say so much less of the variance than many short ones, what one batch has more the
# next has less. Of independent ones in 20 batches, 1 run in 60 falls below.
_SHRUNK_BELOW = 0.4


def batches_of(times_ns: Floats, start_ns: float) -> tuple[Floats, np.ndarray]:
    """Cut completions into batches at moments of completion.

    A client that issues in bursts notices many completions at one moment. Batches end at such moments and
    hold as many of them each, hence whole periods of the load.
    """
    empty = np.zeros(0), np.zeros(0, dtype=np.int64)
    if not len(times_ns):
        return empty
    ends = np.flatnonzero(np.r_[times_ns[1:] != times_ns[:-1], True])
    count = next((count for count in _BATCHES if len(ends) >= count * _MOMENTS_MIN), 0)
    if not count:
        return empty
    last = ends[np.arange(1, count + 1) * len(ends) // count - 1]
    edges = np.r_[start_ns, times_ns[last]]
    return np.diff(edges), np.r_[0, last[:-1] + 1]


def ratio_interval(totals: Floats, sizes: Floats) -> Interval:
    r"""Return the ratio of two sums with a 95 % interval, from batches.

    With the ratio :math:`R = \sum Y_i / \sum T_i` and residuals :math:`z_i = Y_i - R T_i`, its variance is
    that of the mean residual over :math:`\bar T`. Neighbouring batches must not be correlated: positively
    where the load drifts or batches are shorter than its memory, negatively where what one batch
    completes is missing to the next (at a server that never rests: its rate is far more certain than
    batches say). Batches are doubled in length until neighbours are uncorrelated at that length and at all
    longer ones; where the variance of the mean shrinks with their length, no interval is given.

    See Law: Simulation Modeling and Analysis, 5th ed., 2015, section 9.5.3.
    """
    mean = float(totals.sum() / sizes.sum()) if len(sizes) and sizes.sum() > 0 else 0.0
    residuals = totals - mean * sizes
    good: Floats | None = None
    first = _variance_of_sum(residuals)
    while len(residuals) >= _BATCHES_MIN:
        if abs(_correlation(residuals)) <= 2 / sqrt(len(residuals)):
            good = residuals if good is None else good
        else:
            good = None
        last = _variance_of_sum(residuals)
        residuals = residuals.reshape(-1, 2).sum(axis=1)
    if good is None or mean <= 0 or last < _SHRUNK_BELOW * first:
        return Interval(mean, None, None)
    size = sizes.sum() / len(good)
    half = float(
        stdtrit(len(good) - 1, 0.975) * good.std(ddof=1) / sqrt(len(good)) / size
    )
    return (
        Interval(mean, mean - half, mean + half)
        if half < mean
        else Interval(mean, None, None)
    )


def _variance_of_sum(values: Floats) -> float:
    """Variance of the sum of values, if they are independent."""
    return float(values.var(ddof=1)) * len(values) if len(values) > 1 else 0.0


def _correlation(values: Floats) -> float:
    """Correlation of neighbours; 1 where all values are the same: nothing can be said then."""
    centred = values - values.mean()
    spread = float((centred**2).sum())
    return float((centred[1:] * centred[:-1]).sum()) / spread if spread > 0 else 1.0

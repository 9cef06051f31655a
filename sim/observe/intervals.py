"""Find the start of the steady state, and confidence intervals of one run from its batches."""

from functools import cache
from math import atan, cos, exp, lgamma, pi, sin, sqrt, tan
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def mser5(values: npt.ArrayLike) -> int:
    r"""Return the length of the initial transient (MSER-5).

    Parameters
    ----------
    values
        Observations in order, shape (n,).

    Returns
    -------
    int
        Number of leading observations to discard, a multiple of 5. 0 for fewer than 20 observations.

    Notes
    -----
    The truncation `d` minimises the squared standard error of the remaining observations,

    .. math:: z(d) = \sum_{i>d} (y_i - \bar y_d)^2 / (N - d)^2 \\tag{1}

    over batch means :math:`y` of five observations. A minimum in the second half means that the
    run is too short to detect the transient. Half of the run is discarded then.

    References
    ----------
    White: An effective truncation heuristic for bias reduction in simulation output,
    Simulation 69(6), 1997.

    Examples
    --------
    >>> mser5([9.0] * 10 + [1.0, 1.1, 0.9, 1.0, 1.0] * 20)
    10
    """
    observed = np.asarray(values, dtype=np.float64)
    batches = len(observed) // 5
    if batches < 4:
        return 0
    means = observed[: batches * 5].reshape(batches, 5).mean(axis=1)
    # Centre first, because the difference of sums below would lose digits on large values.
    means = means - means.mean()
    left = np.arange(batches, 0, -1)
    sums = np.cumsum(means[::-1])[::-1]
    squares = np.cumsum(means[::-1] ** 2)[::-1]
    spread = squares - sums**2 / left
    # A constant tail has no spread. Rounding errors in it must not decide the truncation.
    spread[spread < 1e-12 * squares[0]] = 0.0
    errors = spread / left**2
    return 5 * int(np.argmin(errors[: batches // 2 + 1]))


@cache
def student_quantile(freedom: int, *, coverage: float = 0.95) -> float:
    r"""Return the quantile of Student's t distribution with `coverage` between its two signs.

    Parameters
    ----------
    freedom
        Degrees of freedom, at least 1.
    coverage
        Probability within plus and minus the quantile, 0 to 1. 0.95 gives the 97.5 % quantile.

    Returns
    -------
    float
        The quantile :math:`t = \sqrt\nu \tan\theta`.

    Notes
    -----
    With :math:`\nu` degrees of freedom, :math:`P(|T| < t)` is a finite sum over powers of
    :math:`\cos\theta`, which Newton's method solves for `coverage`. It starts at the normal quantile, which
    is smaller, and the sum is concave. So each step stays below the solution. Loading SciPy for this
    function takes longer than a small run.

    References
    ----------
    Abramowitz and Stegun: Handbook of Mathematical Functions, 1964, 26.7.3 and 26.7.4.

    Examples
    --------
    >>> round(student_quantile(4), 3), round(student_quantile(7, coverage=0.8), 3)
    (2.776, 1.415)
    """
    slope = 2 * exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) / sqrt(pi)
    angle = atan(NormalDist().inv_cdf((1 + coverage) / 2) / sqrt(freedom))
    while True:
        missing = coverage - _probability_within(angle, freedom)
        step = missing / (slope * cos(angle) ** (freedom - 1))
        if step < 1e-15:
            return sqrt(freedom) * tan(angle)
        angle += step


def _probability_within(angle: float, freedom: int) -> float:
    """Return the probability that Student's t is within ``± sqrt(freedom) * tan(angle)``."""
    square = cos(angle) ** 2
    first = 1 + freedom % 2
    term = 1.0 if first == 1 else cos(angle)
    total = 0.0
    for power in range(first, freedom, 2):
        total += term
        term *= square * power / (power + 1)
    if first == 1:
        return sin(angle) * total
    return 2 / pi * (angle + sin(angle) * total)


class Interval(NamedTuple):
    """A mean with its 95 % confidence interval. The bounds are None if no interval can be given."""

    mean: float
    low: float | None
    high: float | None

    @property
    def half(self) -> float | None:
        """Half of the width of the interval, None without one."""
        if self.low is None or self.high is None:
            return None
        return (self.high - self.low) / 2


#: Runs before an interval may stop a series of runs, and runs after which it stops in any case.
NARROW_RUNS_MIN: Final = 5
NARROW_RUNS_MAX: Final = 50


def is_narrow(values: npt.ArrayLike, percent: float) -> bool:
    """Return True if half of the 95 % interval of a mean is at most a part of it [%].

    Always False for fewer than five values, and True for equal ones, to which further values add nothing.

    Runs that go on until their interval is narrow stop early when they agree by chance. With at least five
    runs, such an interval holds the true mean in 92 to 95 % of cases (of normal values).

    >>> is_narrow([1.0, 1.0, 1.0, 1.0, 1.1], percent=5)
    False
    >>> is_narrow([1.0, 1.0, 1.0, 1.0, 1.1], percent=6)
    True
    """
    interval = student_interval(values, least=NARROW_RUNS_MIN)
    if interval.half is None:
        return np.size(values) >= NARROW_RUNS_MIN
    return interval.half <= percent / 100 * abs(interval.mean)


def student_interval(values: npt.ArrayLike, *, least: int = 2) -> Interval:
    r"""Return the mean of independent values with Student's interval.

    Parameters
    ----------
    values
        Independent values, shape (n,), at least one.
    least
        Fewest values for an interval.

    Returns
    -------
    Interval
        :math:`\bar x \pm t_{0.975, n-1} \, s / \sqrt n` of the :math:`n` values. No interval is given if
        all values are equal: then the sample says nothing about their spread, least of all that it is 0.
    """
    observed = np.asarray(values, dtype=np.float64)
    # Centring makes the mean of equal values exactly that value.
    mean = float(observed[0] + (observed - observed[0]).mean())
    if len(observed) < least:
        return Interval(mean, None, None)
    deviation = sqrt(float(((observed - mean) ** 2).sum()) / (len(observed) - 1))
    if not deviation:
        return Interval(mean, None, None)
    half = student_quantile(len(observed) - 1) * deviation / sqrt(len(observed))
    return Interval(mean, mean - half, mean + half)


# Numbers of batches: many short ones or few long ones, each twice as long.
_BATCHES = (160, 80)
_BATCHES_MIN = 20
# Fewest moments of completion in a batch. A client that issues in bursts has few.
_MOMENTS_MIN = 4
# Least length of a batch, over the mean latency of the requests in flight at a random moment. An open loop
# remembers for longer: its queues grow and shrink by chance, while a closed loop has a constant number of
# requests. With these lengths, intervals hold the mean of runs of 400,000 requests in 19 of 20 runs of 2,000
# to 20,000 (open loops at 0.3 to 0.9 of saturation: 0.93; closed loops of 1 to 128: 0.96).
_LATENCIES_MIN_CLOSED = 2
_LATENCIES_MIN_OPEN = 6
# Below this ratio of the variances from few long and many short batches, neighbouring batches
# compensate for one another. With 20 independent batches, 1 run in 60 falls below it.
_SHRUNK_BELOW = 0.4


def batches_of(
    times_ns: Floats, latencies_ns: Floats, start_ns: float, *, is_closed: bool
) -> tuple[Floats, np.ndarray]:
    r"""Cut completions into batches.

    A client that issues in bursts notices many completions at one moment. Batches end at such
    moments and contain equal numbers of them, and so whole periods of the load.

    Parameters
    ----------
    times_ns
        Completion times in ascending order [ns], shape (n,).
    latencies_ns
        Latency of each of these requests [ns], shape (n,).
    start_ns
        Start of the first batch [ns].
    is_closed
        True for a closed loop, whose batches may be shorter.

    Returns
    -------
    lengths_ns : ndarray of float64
        Length of each batch [ns], shape (batches,). Empty if there are too few moments, or if the run is too
        short for the latencies.
    first : ndarray of int64
        Index of each batch's first completion, shape (batches,).

    Notes
    -----
    A request delays others for as long as it is in flight, and so ties batches together. A request seen in
    flight at a random moment has a mean latency of :math:`E[L^2] / E[L]`, which rare long ones decide. A
    batch lasts at least twice as long in a closed loop, and six times in an open one. The correlation of
    neighbours does not show this: 20 batches within a few such latencies may all be free of a slow request,
    and agree on a rate that is too high.
    """
    is_last = np.ones(len(times_ns), dtype=bool)
    is_last[:-1] = times_ns[1:] != times_ns[:-1]
    ends = np.flatnonzero(is_last)
    count = next((count for count in _BATCHES if len(ends) >= count * _MOMENTS_MIN), 0)
    if count:
        in_flight_ns = float((latencies_ns**2).sum() / latencies_ns.sum())
        latencies_min = _LATENCIES_MIN_CLOSED if is_closed else _LATENCIES_MIN_OPEN
        count_max = (times_ns[-1] - start_ns) / (latencies_min * in_flight_ns)
        while count > count_max:
            count //= 2
    if count < _BATCHES_MIN:
        return np.zeros(0), np.zeros(0, dtype=np.int64)
    last = ends[np.arange(1, count + 1) * len(ends) // count - 1]
    edges = np.r_[start_ns, times_ns[last]]
    return np.diff(edges), np.r_[0, last[:-1] + 1]


def ratio_interval(totals: Floats, sizes: Floats) -> Interval:
    r"""Return the ratio of two sums with a 95 % interval, from batches.

    Parameters
    ----------
    totals, sizes
        Numerator and denominator of each batch, shape (batches,).

    Returns
    -------
    Interval
        The ratio. No interval is given if batches are too few or correlated.

    Notes
    -----
    With the ratio :math:`R = \sum Y_i / \sum T_i` and residuals :math:`z_i = Y_i - R T_i`, the
    variance of the ratio is the variance of the mean residual, divided by :math:`\bar T`.
    Neighbouring batches must not be correlated. Positive correlation arises if the load drifts or
    batches are shorter than its memory. Negative correlation arises if completions of one batch
    are missing in the next, as at a server that is always busy, whose rate is far more certain
    than batches suggest. Batches are doubled in length until no correlation of neighbours is seen at that
    length and at all longer ones, and the widest interval of these lengths counts. A positive correlation
    :math:`\varphi` that is too weak to be seen widens an interval by
    :math:`\sqrt{(1 + \varphi) / (1 - \varphi)}`, as in a first-order autoregressive process. Its estimate
    from :math:`n` batches is too low by about :math:`1 / n`. If the variance of the mean shrinks with their
    length, no interval is given.

    References
    ----------
    Law: Simulation Modeling and Analysis, 5th ed., 2015, section 9.5.3.
    Tafazzoli and Wilson: Skart: A skewness- and autoregression-adjusted batch-means procedure for
    simulation analysis, IIE Transactions 43(2), 2011.
    """
    mean = 0.0
    if sizes.sum() > 0:
        mean = float(totals.sum() / sizes.sum())
    residuals = totals - mean * sizes
    # Half widths at the lengths whose batches, and all longer ones, show no correlation.
    halves: list[float] = []
    first = _variance_of_sum(residuals)
    while len(residuals) >= _BATCHES_MIN:
        correlation = _correlation(residuals)
        if abs(correlation) > 2 / sqrt(len(residuals)):
            halves.clear()
        else:
            halves.append(_half_of_sum(residuals, correlation))
        last = _variance_of_sum(residuals)
        residuals = residuals.reshape(-1, 2).sum(axis=1)
    if not halves or mean <= 0 or last < _SHRUNK_BELOW * first:
        return Interval(mean, None, None)
    half = max(halves) / float(sizes.sum())
    if half >= mean:
        return Interval(mean, None, None)
    return Interval(mean, mean - half, mean + half)


def _half_of_sum(values: Floats, correlation: float) -> float:
    """Return half of the interval of the sum of batches, whose neighbours are correlated."""
    count = len(values)
    correlation = max(0.0, correlation + 1 / count)
    widening = sqrt((1 + correlation) / (1 - correlation))
    deviation = float(values.std(ddof=1)) * sqrt(count)
    return student_quantile(count - 1) * deviation * widening


def _variance_of_sum(values: Floats) -> float:
    """Return the variance of the sum of values, assuming independence."""
    if len(values) < 2:
        return 0.0
    return float(values.var(ddof=1)) * len(values)


def _correlation(values: Floats) -> float:
    """Return the correlation of neighbours, or 1 if all values are equal."""
    centred = values - values.mean()
    spread = float((centred**2).sum())
    if spread <= 0:
        return 1.0
    return float((centred[1:] * centred[:-1]).sum()) / spread

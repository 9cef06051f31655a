"""Find the knee of a load curve, and the highest rate within a latency bound."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np


def knee_of(rates: Sequence[float], latencies: Sequence[float]) -> float | None:
    r"""Return the rate at which Kleinrock's power is highest.

    Parameters
    ----------
    rates
        Throughput at each point, ascending [1/s], shape (n,).
    latencies
        Mean latency at each point, in any unit of time, shape (n,).

    Returns
    -------
    float or None
        The rate [1/s], or None with fewer than three points.

    Notes
    -----
    Power is throughput over mean response time,

    .. math:: P(\lambda) = \lambda / T(\lambda) \tag{1}

    At its maximum, 1 % more load costs 1 % more latency. Below, it costs less; above, more. The definition
    has no free parameter and does not depend on how far past saturation a curve goes, unlike methods that
    search for the highest curvature of a normalised curve. For M/M/1 the knee is at 1/2 of saturation, for
    M/D/1 at :math:`2 - \sqrt 2` of it.

    A parabola of :math:`\ln P` through the point of highest power and its neighbours gives the maximum
    between points. At the end of the curve, the last point is the knee.

    References
    ----------
    Kleinrock: Power and deterministic rules of thumb for probabilistic problems in computer
    communications, Proc. International Conference on Communications, 1979, 43.1.1–43.1.10.

    Examples
    --------
    M/M/1 with a service rate of 1 has T = 1 / (1 - rate):

    >>> rates = [0.1, 0.3, 0.45, 0.55, 0.7, 0.9]
    >>> round(knee_of(rates, [1 / (1 - rate) for rate in rates]), 3)
    0.5
    """
    if len(rates) < 3:
        return None
    x = np.asarray(rates, dtype=np.float64)
    powers = np.log(x) - np.log(np.asarray(latencies, dtype=np.float64))
    best = int(np.argmax(powers))
    if best in (0, len(x) - 1):
        return float(x[best])
    left, middle, right = x[best - 1 : best + 2]
    rise = (powers[best] - powers[best - 1]) / (middle - left)
    fall = (powers[best] - powers[best + 1]) / (right - middle)
    if rise + fall <= 0:
        return float(middle)
    # The slope of the parabola falls linearly, from `rise` in the middle of the left gap to -`fall` in the
    # middle of the right one.
    left_middle = (left + middle) / 2
    right_middle = (middle + right) / 2
    return float(left_middle + (right_middle - left_middle) * rise / (rise + fall))


def rate_within(
    rates: Sequence[float], latencies: Sequence[float], bound: float
) -> float | None:
    r"""Return the rate at which a latency first exceeds a bound.

    Parameters
    ----------
    rates
        Rate of each point, ascending [1/s], shape (n,).
    latencies
        Latency at each point, shape (n,).
    bound
        The bound, in the same unit.

    Returns
    -------
    float or None
        The rate [1/s]. None if no point exceeds the bound, or the first one does.

    Notes
    -----
    The logarithm of the latency is linear between neighbouring points, so the rate between
    :math:`(x_0, y_0)` and :math:`(x_1, y_1)` is

    .. math:: x_0 + (x_1 - x_0) \ln(b / y_0) / \ln(y_1 / y_0) \tag{1}

    Examples
    --------
    Halfway in the logarithm between 1 and 4 is 2:

    >>> rate_within([100.0, 200.0, 300.0], [1.0, 1.0, 4.0], 2.0)
    250.0
    """
    for index, latency in enumerate(latencies):
        if latency <= bound:
            continue
        if index == 0:
            return None
        before = latencies[index - 1]
        part = log(bound / before) / log(latency / before)
        return rates[index - 1] + (rates[index] - rates[index - 1]) * part
    return None

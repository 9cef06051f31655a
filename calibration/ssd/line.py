"""Fit the mean time of commands as a line over their size."""

import numpy as np
import scipy

from stripesim.calibration.ssd.result import Floats, MeanLine

COMMANDS_MIN = 64
"""With fewer commands, halves, bootstrap blocks and the 99th percentile are meaningless."""

# Rows of a resampling.
_ROWS_MAX = 20_000

# A slope that lets the largest command take this much longer than one of no size is none.
_SLOPE_MIN = 1e-6


def line_through(size: Floats, times: Floats) -> tuple[float, float]:
    """Fit b + a·size robustly, then scale it such that the mean of time / line is 1.

    Parameters
    ----------
    size
        Sizes [B], shape (n,).
    times
        Times [ns], shape (n,), above 0.

    Returns
    -------
    tuple of float
        b [ns] and a [ns/B], both at least 0. a is 0 if all sizes are equal.
    """
    if np.all(size == size[0]):
        return float(times.mean()), 0.0
    # In units of the median time and the largest size, both parameters are near 1.
    unit_ns = float(np.median(times))
    unit_bytes = float(size.max())
    x = size / unit_bytes
    y = np.log(times / unit_ns)
    spread = float(scipy.stats.median_abs_deviation(y, scale="normal")) or 1.0
    design = np.column_stack((np.ones(len(x)), x))

    base, slope = scipy.optimize.least_squares(
        lambda parameters: y - np.log(design @ parameters),
        x0=[0.9, 0.1],
        jac=lambda parameters: -design / (design @ parameters)[:, None],
        bounds=([1e-6, 0.0], [np.inf, np.inf]),
        loss="soft_l1",
        f_scale=spread,
    ).x
    if slope < _SLOPE_MIN * base:
        # The bound at 0 is approached, never met.
        slope = 0.0
    scale = float(np.mean(times / unit_ns / (base + slope * x)))
    return float(base * scale * unit_ns), float(slope * scale * unit_ns / unit_bytes)


def fit_line(size: Floats, times: Floats, seed: int, bootstrap: int) -> MeanLine:
    """Fit the line of `line_through`, with intervals from `bootstrap` resamplings of moving blocks."""
    base, slope = line_through(size, times)
    rng = np.random.default_rng(seed)
    count = min(len(size), _ROWS_MAX)
    block = max(1, round(len(size) ** (1 / 3)))
    draws = np.empty((bootstrap, 2))
    for index in range(bootstrap):
        starts = rng.integers(0, len(size) - block + 1, size=-(-count // block))
        rows = (starts[:, None] + np.arange(block)).ravel()[:count]
        draws[index] = line_through(size[rows], times[rows])
    # Fewer rows than the sample has deviate more than it does.
    draws = (base, slope) + (draws - (base, slope)) * np.sqrt(count / len(size))
    (base_low, base_high), (slope_low, slope_high) = np.quantile(
        draws, [0.025, 0.975], axis=0
    ).T.tolist()
    return MeanLine(
        base,
        slope,
        # Percentiles of a skewed bootstrap may all be on one side of the estimate.
        (max(0.0, min(base_low, base)), max(base_high, base)),
        (max(0.0, min(slope_low, slope)), max(slope_high, slope)),
        len(size),
        slope_identified=bool(np.any(size != size[0])),
    )

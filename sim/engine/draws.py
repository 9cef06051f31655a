"""Random numbers keyed by step, independent of the order of events."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

#: Bits of a step at the low end of the key of a draw. Its other bits are at the high end, above the request.
STEP_BITS = 12
#: Lowest of the bits at the high end
LATE_STEP_BIT = 62
FACTOR_BITS = 20
FACTOR_ONE = 1 << FACTOR_BITS
FACTOR_HALF = FACTOR_ONE >> 1
FACTOR_POINTS = 256
FACTOR_MAX = 128 << FACTOR_BITS
# Columns of a cell of `factor_cells`.
CELL_LOW, CELL_KNOT, CELL_RISE, CELL_LATER_RISE = range(4)

# With a highest factor of mean + 3 (mean - least), a cell has the variance of an exponential tail.
_TAIL_REACH = 3

IntArray = npt.NDArray[np.int64]

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB


def splitmix64(value: int) -> int:
    """Return one output of SplitMix64.

    Parameters
    ----------
    value
        A 64-bit state.

    Returns
    -------
    int
        A 64-bit output.

    References
    ----------
    Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014, Figure 17.

    Examples
    --------
    >>> hex(splitmix64(0))
    '0xe220a8397b1dcdaf'
    """
    value = (value + _GOLDEN) & _MASK
    value = ((value ^ (value >> 30)) * _MIX_1) & _MASK
    value = ((value ^ (value >> 27)) * _MIX_2) & _MASK
    return value ^ (value >> 31)


def seed_state(seed: int) -> int:
    """Return a 64-bit state for the seed of a run."""
    return splitmix64(seed & _MASK)


def retried_state(state: int, retries: int) -> int:
    """Return the state for the draws of a request after a number of retries."""
    return state ^ (retries * _GOLDEN & _MASK)


def draw_key(request: int, step: int) -> int:
    """Return the key of the draws of a request's step, which no other step has.

    Parameters
    ----------
    request
        Number of the request, below 2**50.
    step
        Number of the step, below 2**14.

    Examples
    --------
    >>> hex(draw_key(5, 7)), hex(draw_key(5, 4096 + 7))
    ('0x5007', '0x4000000000005007')
    """
    early = step & (1 << STEP_BITS) - 1
    return step >> STEP_BITS << LATE_STEP_BIT | request << STEP_BITS | early


def drawn_factor(cells: Sequence[Sequence[int]], state: int, key: int) -> int:
    """Return the random factor of a request's step in units of 2**-20.

    Parameters
    ----------
    cells
        Cells of one distribution, from `factor_cells`.
    state
        State of the run's seed and the request's retries.
    key
        Key of the step, from `draw_key`.

    Notes
    -----
    The top byte of the draw chooses a cell, and the next 20 bits are the position in the cell.
    """
    word = splitmix64(state ^ key)
    low, knot, rise, later_rise = cells[word >> 56]
    position = word >> 36 & FACTOR_ONE - 1
    early = min(position, knot)
    climbed = early * rise + (position - early) * later_rise
    return low + (climbed + FACTOR_HALF >> FACTOR_BITS)


def factor_table(quantiles: Sequence[float]) -> IntArray:
    """Convert equally likely factors to fixed point.

    Parameters
    ----------
    quantiles
        Factors of mean 1, shape (FACTOR_POINTS,).

    Returns
    -------
    ndarray of int64
        The factors in units of 2**-20, shape (FACTOR_POINTS,).

    Raises
    ------
    ValueError
        If the shape is another one, or a factor is negative or not finite.

    Examples
    --------
    >>> int(factor_table([1.0] * FACTOR_POINTS)[0]) == FACTOR_ONE
    True
    """
    factors = np.asarray(quantiles, dtype=np.float64)
    if factors.shape != (FACTOR_POINTS,):
        raise ValueError(
            f"factor_table: got shape {factors.shape}, wanted ({FACTOR_POINTS},), that is "
            f"{FACTOR_POINTS} equally likely factors of mean 1"
        )
    if not (np.isfinite(factors) & (factors >= 0)).all():
        raise ValueError(
            "factor_table: got factors below 0 or not finite, wanted 0 or more"
        )
    return np.rint(factors * FACTOR_ONE).astype(np.int64)


def factor_cells(tables: npt.ArrayLike) -> IntArray:
    r"""Return the continuous distributions whose cells have the factors of tables as means.

    Parameters
    ----------
    tables
        Factors in units of 2**-20, shape (distributions, FACTOR_POINTS). Their order does not matter.

    Returns
    -------
    ndarray of int64
        Cells, shape (distributions, FACTOR_POINTS, 4): the least factor, the position of a knot (2**20 is the
        end of the cell), and the rise of the factor per cell before and after the knot.

    Notes
    -----
    Each of the equally likely cells has one factor of the table as its mean :math:`m`. Neighbours meet
    halfway between their means. From its least factor :math:`m - a` to its highest, :math:`m + b`, a cell
    rises linearly to :math:`m` at the knot, and linearly after it. The mean is kept if the knot is at

    .. math:: t = b / (a + b) \tag{1}

    so the quantile function is continuous and every cell, hence the distribution, keeps its mean. The
    variance within a cell is :math:`a b / 3`. The first cell reaches as far down as up, but not below 0. The
    last has :math:`b = 3 a`, up to `FACTOR_MAX`, hence the variance :math:`a^2` of an exponential tail of
    mean :math:`a`. A cell that equals a neighbour has no spread: measured ties stay ties, and a table of ones
    is fixed.

    Examples
    --------
    >>> cells = factor_cells([[FACTOR_ONE] * FACTOR_POINTS])
    >>> drawn_factor(cells[0].tolist(), state=1, key=2) == FACTOR_ONE
    True
    """
    means = np.sort(np.asarray(tables, dtype=np.int64), axis=1)
    # Halves of the distances between neighbours, rounded down.
    half = np.diff(means, axis=1) // 2
    above = np.empty_like(means)
    above[:, :-1] = half
    below = np.empty_like(means)
    below[:, 1:] = half
    below[:, 0] = np.minimum(above[:, 0], means[:, 0])
    room = np.maximum(0, FACTOR_MAX - means[:, -1])
    above[:, -1] = np.minimum(_TAIL_REACH * below[:, -1], room)
    knot = np.rint(above / np.maximum(1, above + below) * FACTOR_ONE).astype(np.int64)
    spread = (knot > 0) & (knot < FACTOR_ONE)
    cells = np.zeros((*means.shape, 4), dtype=np.int64)
    cells[..., CELL_LOW] = np.where(spread, means - below, means)
    cells[..., CELL_KNOT] = np.where(spread, knot, 0)
    cells[..., CELL_RISE] = _per_cell(below, knot, spread)
    cells[..., CELL_LATER_RISE] = _per_cell(above, FACTOR_ONE - knot, spread)
    return cells


def _per_cell(
    rise: IntArray, width: IntArray, where: npt.NDArray[np.bool_]
) -> IntArray:
    """Return the rise over a whole cell that gives `rise` over a part of the cell, 0 elsewhere."""
    slope = np.rint(rise / np.maximum(1, width) * FACTOR_ONE).astype(np.int64)
    return np.where(where, slope, 0)


def scaled_ns(base_ns: int, factor: int) -> int:
    """Multiply a mean demand by a random factor in integer arithmetic.

    Parameters
    ----------
    base_ns
        Mean demand [ns].
    factor
        Factor in units of 2**-20.

    Returns
    -------
    int
        Demand [ns], rounded half up.

    Examples
    --------
    >>> scaled_ns(50_000, FACTOR_ONE)
    50000
    """
    return (base_ns * factor + FACTOR_HALF) >> FACTOR_BITS


def share_draw(state: int, resource: int, count: int) -> int:
    """Return a 63-bit draw of a queue shared by classes.

    Parameters
    ----------
    state
        State of the run's seed.
    resource
        Index of the resource.
    count
        Number of the draw at this resource, from 1.
    """
    return splitmix64(state ^ splitmix64(resource << 40 | count)) >> 1

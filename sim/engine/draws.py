"""Random numbers keyed by step, independent of the order of events."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

FACTOR_BITS = 20
FACTOR_ONE = 1 << FACTOR_BITS
FACTOR_HALF = FACTOR_ONE >> 1
FACTOR_POINTS = 256

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


def factor_index(state: int, key: int) -> int:
    """Return the index into a factor table, 0 to `FACTOR_POINTS` − 1, for a request's step."""
    return splitmix64(state ^ key) >> 56


def factor_table(quantiles: Sequence[float]) -> npt.NDArray[np.int64]:
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

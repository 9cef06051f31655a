"""Probabilities combined without losing the digits of small ones."""

from math import expm1, log1p


def any_of(probability: float, copies: float) -> float:
    """Return the probability that at least one of several independent copies has an event.

    Parameters
    ----------
    probability
        Probability for each copy, 0 to 1.
    copies
        Number of copies.

    Examples
    --------
    >>> any_of(1e-30, 1000)
    1e-27
    """
    if probability >= 1:
        return 1.0
    return -expm1(copies * log1p(-probability))

"""The definition of bytes lost per year, which all methods share, and a check of any answer against it.

Data is lost when a placement group (a pool of a clustered placement, a stripe of a declustered one) misses
more shards than its code can rebuild. Its client bytes then count as lost, all of them and once:

    bytes lost per year = Σ over losses per year of the client bytes in groups that the loss destroys

One loss may destroy many groups: two drives that fail together take all groups that they share, and a burst
takes every group that it destroys. The sum equals the losses per year times the bytes lost given a loss.
"""

from collections.abc import Mapping
from math import log1p
from typing import Any, Final

from stripesim.sim.durability.system import YEAR_S

#: Part of a number below which a difference is only rounding.
_ROUNDING: Final = 1e-6

#: Losses within a horizon from which their probability rounds to 1 [count].
_CERTAIN: Final = 36.0


def losses_of(probability: float) -> float | None:
    """Return the expected losses within a horizon, if losses come at a constant rate.

    Parameters
    ----------
    probability
        Probability of any loss within the horizon, 0 to 1.

    Returns
    -------
    float or None
        −ln(1 − P) [count], or None if the probability is 1, which any large number gives.

    Examples
    --------
    >>> losses_of(1e-30)
    1e-30
    >>> losses_of(1.0) is None
    True
    """
    if probability >= 1:
        return None
    return -log1p(-probability)


def inconsistency(row: Mapping[str, Any]) -> str | None:
    """Explain how the columns of a durability row contradict the definition of bytes lost per year.

    Parameters
    ----------
    row
        A row of `stripesim.sim.durability.assess.assess`, of which ``loss_probability``, ``nines_low``,
        ``nines_high``, ``horizon_s``, ``bytes_lost_given_loss``, ``bytes_lost_per_year`` and ``client_bytes``
        are read.

    Returns
    -------
    str or None
        The contradiction, or None if there is none. Empty columns contradict nothing.

    Notes
    -----
    Losses per year follow from the probability and its interval. Times the bytes lost given a loss, they must
    enclose the bytes lost per year. No loss destroys more than all client data.

    Examples
    --------
    A burst that strikes once in 100 years and destroys all of 4 TB loses 4e10 bytes a year:

    >>> row = {"loss_probability": 0.00995, "nines_low": 2.0, "nines_high": 2.0044, "horizon_s": YEAR_S,
    ...        "bytes_lost_given_loss": 4e12, "bytes_lost_per_year": 4e10, "client_bytes": 4e12}
    >>> inconsistency(row)
    >>> inconsistency(row | {"bytes_lost_per_year": 6.25e8})
    'lost per year: got 6.25e+08 B, wanted 3.98e+10 to 4.02e+10 B: losses per year × bytes given a loss'
    """
    per_loss = row["bytes_lost_given_loss"]
    per_year = row["bytes_lost_per_year"]
    if per_loss is None or per_year is None:
        return None
    most = row["client_bytes"]
    if per_loss > most * (1 + _ROUNDING):
        return f"lost given a loss: got {per_loss:.4g} B, wanted at most {most:.4g} B, all client data"
    years = row["horizon_s"] / YEAR_S
    fewest, largest = _losses_between(row)
    low = fewest / years * per_loss * (1 - _ROUNDING)
    high = None if largest is None else largest / years * per_loss * (1 + _ROUNDING)
    if per_year >= low and (high is None or per_year <= high):
        return None
    wanted = f"{low:.3g} or more" if high is None else f"{low:.3g} to {high:.3g}"
    return f"lost per year: got {per_year:.3g} B, wanted {wanted} B: losses per year × bytes given a loss"


def _losses_between(row: Mapping[str, Any]) -> tuple[float, float | None]:
    """Return the bounds of the expected losses within the horizon. The upper one is None if there is none."""
    probability = row["loss_probability"]
    ends = [probability]
    ends += [
        10**-nines
        for nines in (row["nines_low"], row["nines_high"])
        if nines is not None
    ]
    fewest = losses_of(min(ends))
    largest = losses_of(max(ends))
    return _CERTAIN if fewest is None else fewest, largest

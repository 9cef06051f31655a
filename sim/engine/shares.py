"""Disciplines of a resource shared by classes or processes: WPQ, mClock, fair shares and quotas of cores.

ENGINE.md in this folder defines how an engine serves them.
"""

import math
from dataclasses import dataclass

WPQ, MCLOCK, FAIR, QUOTA = range(4)

# Weight tags count in units of 2**-16 s: cost ÷ weight may run far ahead of the clock.
WEIGHT_BITS = 16
NS_PER_S = 1_000_000_000
# Value of an unused tag (no reservation, or no weight beyond it), and of a tag before the
# first item.
TAG_NEVER = 1 << 62
TAG_BEFORE = -(1 << 62)
# A class without a new tag for this time competes as a new one [ns]: dmclock's
# ``standard_idle_age``.
IDLE_AGE_NS = 300 * NS_PER_S

RATE_MAX = 1 << 42
# Fractional part of the golden ratio in 64 bits. Its multiples spread evenly.
_GOLDEN = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class ShareClass:
    """The part of a resource that one class of items receives.

    Attributes
    ----------
    weight
        Proportional part of what reservations leave. For `WPQ` the priority by which the class
        is drawn, at least 1. For `MCLOCK`, 0 limits the class to its reservation.
    reservation, limit
        Smallest and largest cost served per second, 0 for none. For `MCLOCK` only.
    strict
        Above 0, items precede all those of lower `strict`, whatever their cost. In Ceph these
        are the priorities at or above the cut-off.

    Raises
    ------
    ValueError
        If a number is negative, or 2**42 or more.
    """

    weight: int = 1
    reservation: int = 0
    limit: int = 0
    strict: int = 0

    def __post_init__(self) -> None:
        for name in ("weight", "reservation", "limit", "strict"):
            value = getattr(self, name)
            if not 0 <= value < RATE_MAX:
                raise ValueError(f"share: {name}: got {value}, wanted 0 to 2**42 - 1")


@dataclass(frozen=True)
class Share:
    """The discipline of a resource that serves several classes.

    Attributes
    ----------
    kind
        `WPQ`, `MCLOCK`, `FAIR` or `QUOTA`. The last two ignore classes.
    classes
        The classes, by number.
    quota_ns, period_ns
        Service time that the servers give in each period, and its length [ns]. For `QUOTA` only.

    Raises
    ------
    ValueError
        If there is no class, a class would never be served, or a `QUOTA` lacks its numbers.
    """

    kind: int
    classes: tuple[ShareClass, ...] = (ShareClass(),)
    quota_ns: int = 0
    period_ns: int = 0

    @property
    def servers_most(self) -> float:
        """Mean number of servers that may be busy."""
        return self.quota_ns / self.period_ns if self.kind == QUOTA else math.inf

    def __post_init__(self) -> None:
        if not self.classes:
            raise ValueError("share: got no class, wanted at least one")
        if self.kind == QUOTA and not (
            0 < self.quota_ns < RATE_MAX and 0 < self.period_ns < RATE_MAX
        ):
            raise ValueError(
                f"share: got quota {self.quota_ns} in {self.period_ns} ns, wanted 1 to 2**42 - 1 for both"
            )
        for number, one in enumerate(self.classes):
            if one.strict:
                continue
            if self.kind == WPQ and not one.weight:
                raise ValueError(
                    f"share: class {number}: got weight 0, wanted at least 1"
                )
            if self.kind == MCLOCK and not (one.weight or one.reservation):
                raise ValueError(
                    f"share: class {number}: got neither weight nor reservation, wanted one"
                )


def quota_offset_ns(resource: int, period_ns: int) -> int:
    """Return how far a resource's first period has advanced at time 0 [ns].

    Every process has periods of its own: its limit begins when the process does.

    >>> [quota_offset_ns(resource, 100) for resource in (0, 1, 2, 3)]
    [0, 61, 23, 85]
    """
    return ((resource * _GOLDEN) % (1 << 64) * period_ns) >> 64


def increment(cost: int, rate: int, scale: int) -> int:
    """Return the increment of a tag: cost ÷ rate, rounded half up.

    Parameters
    ----------
    cost
        Cost of the item.
    rate
        Cost served per second.
    scale
        Units of the tag per second.

    Examples
    --------
    >>> increment(4096, 1_000_000, NS_PER_S)
    4096000
    """
    return (cost * scale + rate // 2) // rate


def weight_clock(now_ns: int) -> int:
    """Convert a time [ns] to the unit of weight tags.

    >>> weight_clock(1_500_000_000) / 2**WEIGHT_BITS
    1.5
    """
    seconds, rest_ns = divmod(now_ns, NS_PER_S)
    return (seconds << WEIGHT_BITS) + (rest_ns << WEIGHT_BITS) // NS_PER_S

"""What a resource needs to share itself: Ceph's two schedulers and the kernel's fair one, as data.

sim/engine/ENGINE.md says what an engine makes of it.
"""

from dataclasses import dataclass

WPQ, MCLOCK, FAIR = range(3)

# Tags of weights count in units of 2**-16 s: they may run far ahead of the clock, as cost ÷ weight.
WEIGHT_BITS = 16
NS_PER_S = 1_000_000_000
# Where a tag is not used: no reservation, no share beyond the reservation. And before the first item.
TAG_NEVER = 1 << 62
TAG_BEFORE = -(1 << 62)
# A class of which nothing was tagged for so long competes as a new one [ns]; dmclock's ``standard_idle_age``.
IDLE_AGE_NS = 300 * NS_PER_S

RATE_MAX = 1 << 42


@dataclass(frozen=True)
class ShareClass:
    """What one class of items gets of a resource."""

    # Of the rest that is divided in proportion; for `WPQ` the priority by which it draws, at least 1. For
    # `MCLOCK` 0 means that nothing but the reservation is served.
    weight: int = 1
    # Cost that is served a second at least and at most; 0: none. For `MCLOCK` only.
    reservation: int = 0
    limit: int = 0
    # Above 0: items go before all that are below, whatever they cost. In Ceph these are the priorities from
    # the cut-off on.
    strict: int = 0

    def __post_init__(self) -> None:
        for name in ("weight", "reservation", "limit", "strict"):
            value = getattr(self, name)
            if not 0 <= value < RATE_MAX:
                raise ValueError(f"share: {name}: got {value}, wanted 0 to 2**42 - 1")


@dataclass(frozen=True)
class Share:
    """How a resource serves several classes."""

    kind: int  # `WPQ`, `MCLOCK` or `FAIR`; the last knows no classes.
    classes: tuple[ShareClass, ...]  # By number of the class.

    def __post_init__(self) -> None:
        if not self.classes:
            raise ValueError("share: got no class, wanted at least one")
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


def increment(cost: int, rate: int, scale: int) -> int:
    """Return by how much a tag moves on: cost ÷ rate, in units of 1 ÷ `scale` seconds, half up.

    >>> increment(4096, 1_000_000, NS_PER_S)
    4096000
    """
    return (cost * scale + rate // 2) // rate


def weight_clock(now_ns: int) -> int:
    """Return a time in the units of tags of weights.

    >>> weight_clock(1_500_000_000) / 2**WEIGHT_BITS
    1.5
    """
    seconds, rest_ns = divmod(now_ns, NS_PER_S)
    return (seconds << WEIGHT_BITS) + (rest_ns << WEIGHT_BITS) // NS_PER_S

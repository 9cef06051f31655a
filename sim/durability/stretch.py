"""The part of time for which placement groups of a cluster in stretch mode serve no clients."""

from collections.abc import Iterator
from itertools import combinations, product
from math import comb
from typing import Final

import numpy as np
import numpy.typing as npt

from stripesim.sim.durability.system import Burst, Ints, System

Bools = npt.NDArray[np.bool_]

#: Shards that a group needs while both sites are up, and while one is away.
_HEALTHY_LEAST: Final = 2
_DEGRADED_LEAST: Final = 1

#: Shards looked at for all sets of struck units, above which sets are drawn, and the fewest drawn [count].
_SHARDS_MAX: Final = 50_000_000
_DRAWN_LEAST: Final = 20
_SEED: Final = 1


def stretched_unavailability(system: System, away: float) -> float:
    """Return the part of time and placement groups that serve no clients, 0 to 1.

    Parameters
    ----------
    system
        A system with the site of each drive among its `units`.
    away
        Part of time for which a shard is away by itself.

    Notes
    -----
    A group serves with two shards and one at each site or, while a whole site is down, with one. Shards are
    away independently. A burst adds its rate, times the time that struck units are down, times the mean part
    of groups that a set of struck units stops, which shards that are away by themselves add to. Sets are
    drawn where there are too many.

    References
    ----------
    Ceph v16.2.15, ``src/osd/PeeringState.cc`` (``stretch_set_can_peer``), ``src/mon/OSDMonitor.cc``
    (``trigger_degraded_stretch_mode``).
    """
    rule = _Rule(system, away)
    alone = rule.stopped(np.zeros(system.drives, dtype=np.bool_))
    share = alone
    for burst in system.bursts:
        if not burst.down_s:
            continue
        stopped = [rule.stopped(struck) for struck in _struck_drives(system, burst)]
        while_down = float(np.mean(stopped)) - alone
        share += min(1.0, burst.rate_per_s * burst.down_s) * while_down
    return min(1.0, share)


def _struck_drives(system: System, burst: Burst) -> Iterator[Bools]:
    """Yield which drives are struck by each set of units or, of too many sets, by drawn ones."""
    units = system.units.get(burst.unit)
    if units is None:
        units = np.arange(system.drives, dtype=np.int32)
    total = int(units.max()) + 1
    affordable = _SHARDS_MAX // system.layout.size
    if burst.units == 1 or comb(total, burst.units) <= affordable:
        for chosen in combinations(range(total), burst.units):
            yield np.isin(units, chosen)
        return
    generator = np.random.default_rng(_SEED)
    for _ in range(max(_DRAWN_LEAST, affordable)):
        yield np.isin(units, generator.choice(total, burst.units, replace=False))


class _Rule:
    """The rule by which groups serve, with the probability that each stops."""

    def __init__(self, system: System, away: float) -> None:
        self._members = system.layout
        self._sites = system.units["site"]
        self._is_placed = self._members >= 0
        # Shards at site 1 of each group, as bits.
        self._at_second = self._as_bits(
            self._is_placed & (self._sites[self._members] == 1)
        )
        width = self._members.shape[1]
        self._patterns = 1 << width
        self._healthy = _stops(width, away, is_degraded=False)
        self._degraded = _stops(width, away, is_degraded=True)

    def stopped(self, struck: Bools) -> float:
        """Return the mean part of groups that serve no clients while some drives are struck."""
        is_present = self._is_placed & ~struck[self._members]
        present = self._as_bits(is_present)
        cases = self._at_second * self._patterns + present
        counts = np.bincount(cases, minlength=self._patterns**2)
        is_degraded = any(struck[self._sites == site].all() for site in (0, 1))
        stops = self._degraded if is_degraded else self._healthy
        return float(counts @ stops.ravel() / len(self._members))

    @staticmethod
    def _as_bits(shards: Bools) -> Ints:
        """Return the shards of each group as the bits of a number."""
        bits: Ints = (shards << np.arange(shards.shape[1])).sum(axis=1, dtype=np.int32)
        return bits


def _stops(width: int, away: float, *, is_degraded: bool) -> npt.NDArray[np.float64]:
    """Tabulate the probability that a group stops, by its shards at site 1 and those that are not struck.

    Both are bits of a number, shape (2**width, 2**width).
    """
    stops = np.zeros((1 << width, 1 << width))
    for at_second, present in product(range(1 << width), repeat=2):
        for left in range(1 << width):
            if left & ~present or _serves(left, at_second, is_degraded=is_degraded):
                continue
            gone = present.bit_count() - left.bit_count()
            stops[at_second, present] += away**gone * (1 - away) ** left.bit_count()
    return stops


def _serves(shards: int, at_second: int, *, is_degraded: bool) -> bool:
    """Return True if a group with these shards, as bits of a number, serves clients."""
    if is_degraded:
        return shards.bit_count() >= _DEGRADED_LEAST
    has_both = bool(shards & at_second) and bool(shards & ~at_second)
    return has_both and shards.bit_count() >= _HEALTHY_LEAST

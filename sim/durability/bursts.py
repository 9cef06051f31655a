"""Exact combinatorics: what a burst of failures destroys, and a fixed window of independent ones."""

from fractions import Fraction
from math import comb, expm1, log1p, sqrt
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stripesim.sim.durability.draws import compiled, inner
from stripesim.sim.durability.system import Burst, Code, Floats, Ints, System

#: Look-ups of shards that an enumeration of sets may take; beyond, sets are drawn at random.
ENUMERATION_MAX: Final = 2_000_000_000
SAMPLES: Final = 20_000


def stripe_lost(members: int, tolerated: int, dead: int, total: int) -> float:
    """Probability that a stripe on random drives has more of them among the dead than it tolerates.

    >>> f"{stripe_lost(3, 2, 50, 5000):.5e}"
    '9.41365e-07'
    """
    ways = sum(
        comb(members, i) * comb(total - members, dead - i)
        for i in range(tolerated + 1, min(members, dead) + 1)
    )
    return float(Fraction(ways, comb(total, dead)))


def sets_lost(probability: float, sets: float) -> float:
    """Probability that any of so many independent sets is lost.

    >>> f"{sets_lost(stripe_lost(3, 2, 50, 5000), 1e7):.6f}"
    '0.999918'
    """
    return 1.0 if probability >= 1 else -expm1(sets * log1p(-probability))


def copysets_scattered(nodes: int, scatter_width: int, copies: int) -> float:
    """Fewest sets of nodes that give every node so many partners.

    See Cidon et al.: Copysets, USENIX ATC 2013, section 3.

    >>> round(copysets_scattered(5000, 10, 3))
    8333
    """
    return nodes * scatter_width / (copies * (copies - 1))


def pools_lost(code: Code, pools: int, dead: int, spare_drives: int = 0) -> float:
    """Probability that so many dead drives, any of all, are too many in some pool of `code.width`.

    Sets that no pool minds are counted by the coefficient of x^dead in (sum over i of c_i x^i)^pools, where
    c_i is how many sets of i shards can be decoded without; drives of no pool may die as they like.
    """
    sizes = (
        np.bitwise_count(np.arange(1 << code.width))
        if code.distances is not None
        else None
    )
    survives = [
        comb(code.width, i)
        if i <= code.tolerated
        else 0
        if sizes is None or code.distances is None
        else int(((sizes == i) & (code.distances > 0)).sum())
        for i in range(min(code.width, dead) + 1)
    ]
    ways = [1] + [0] * dead
    for factor, times in ((survives, pools), ([1, 1], spare_drives)):
        for _ in range(times):
            ways = [
                sum(
                    factor[i] * ways[total - i]
                    for i in range(min(total, len(factor) - 1) + 1)
                )
                for total in range(dead + 1)
            ]
    total = comb(pools * code.width + spare_drives, dead)
    return float(1 - Fraction(ways[dead], total))


def fixed_window_loss(
    shards: int, tolerated: int, afr: float, window_days: float
) -> float:
    """Annual probability that in some window more shards fail than are tolerated, windows independent.

    Failures within a window are binomial with probability 1 - exp(-afr × window / 365 days); a window begins
    with all shards in place, so the result lies below that of a chain.

    See Backblaze: erasure-coding-durability, 2018 (durability.py, whose table for 17+3 shards says
    0.999999999992646).

    >>> f"{1 - fixed_window_loss(20, 3, 0.00405, 6.5):.15f}"
    '0.999999999992646'
    """
    windows = 365 / window_days
    share = -expm1(-afr / windows)
    lost = sum(
        comb(shards, i) * share**i * (1 - share) ** (shards - i)
        for i in range(tolerated + 1, shards + 1)
    )
    return -expm1(windows * log1p(-lost))


def loss_of_burst(system: System, burst: Burst) -> tuple[float, float, float, float]:
    """Probability that a burst destroys data, its 95 % interval (a point: exact), share out of reach."""
    units = _units(system, burst)
    total = int(units.max()) + 1
    if burst.units > total:
        raise ValueError(
            f"units: got {burst.units}, wanted at most {total} {burst.unit}s"
        )
    code = system.code
    counted = burst.unit == "drive" and burst.lost_fraction == 1
    unavailable = 0.0
    if system.placement != "crush":
        unavailable = stripe_lost(
            code.width, system.missing_allowed, burst.units, total
        )
    if counted and system.placement == "clustered":
        lost = pools_lost(
            code, system.pools, burst.units, system.drives - system.pools * code.width
        )
        return lost, lost, lost, unavailable
    if system.placement == "declustered":
        if burst.unit != "drive":
            raise ValueError(
                f'unit: got "{burst.unit}", wanted "drive": a declustered pool has no others'
            )
        return *_declustered_lost(system, burst), unavailable
    shape = (len(system.layout) * code.width, comb(total, burst.units))
    every = burst.lost_fraction == 1 and shape[0] * shape[1] <= ENUMERATION_MAX
    count = (
        shape[1]
        if every
        else max(2000, min(SAMPLES, ENUMERATION_MAX // (shape[0] or 1)))
    )
    distances = (
        np.zeros(0, dtype=np.uint8) if code.distances is None else code.distances
    )
    found = np.zeros(count)
    met = _Burst(system.layout, units, burst.lost_fraction, code.tolerated, distances)
    below = _try_sets(met, total, burst.units, system.missing_allowed, found, every)
    share, below = float(found.mean()), below / count
    if every:
        return share, share, share, below
    if burst.lost_fraction == 1 or share == 0:
        return share, *_wilson(int(found.sum()), count), below
    half = 1.959964 * float(found.std(ddof=1)) / sqrt(count)
    return share, max(share / 10, share - half), share + half, below


def _declustered_lost(system: System, burst: Burst) -> tuple[float, float, float]:
    """Loss where stripes lie on any drives; a drive that keeps its data thins the burst binomially."""
    code, lost = system.code, 0.0
    for dead in range(code.tolerated + 1, burst.units + 1):
        f = burst.lost_fraction
        weight = comb(burst.units, dead) * f**dead * (1 - f) ** (burst.units - dead)
        share = 1.0
        if system.stripes is not None:
            share = sets_lost(
                stripe_lost(code.width, code.tolerated, dead, system.drives),
                system.stripes,
            )
        lost += weight * share
    return lost, lost, lost


def _units(system: System, burst: Burst) -> Ints:
    if burst.unit == "drive":
        return np.arange(system.drives, dtype=np.int32)
    if burst.unit not in system.units:
        raise ValueError(
            f'unit: got "{burst.unit}", wanted a [cluster] that says where its {burst.unit}s are'
        )
    return system.units[burst.unit]


def _wilson(hits: int, count: int) -> tuple[float, float]:
    z = 1.959964
    share, spread = hits / count, z * z / count
    centre = (share + spread / 2) / (1 + spread)
    half = z * sqrt(share * (1 - share) / count + spread / (4 * count)) / (1 + spread)
    return (0.0 if hits == 0 else max(0.0, centre - half)), min(1.0, centre + half)


class _Burst(NamedTuple):
    """What one burst meets: where groups lie, the unit of each drive, and what a group stands."""

    layout: Ints
    units: Ints
    lost_fraction: float
    tolerated: int
    distances: npt.NDArray[np.uint8]


@inner
def _bits(mask: int) -> int:
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count


@inner
def _is_lethal(met: _Burst, mask: int) -> bool:
    if len(met.distances):
        return bool(met.distances[mask] == 0)
    return _bits(mask) > met.tolerated


@inner
def _masks(
    met: _Burst, struck: npt.NDArray[np.uint8], by_unit: bool, group: int
) -> tuple[int, int]:
    """The holes of a group, and its shards on struck units, or on struck drives."""
    holes, hit = 0, 0
    for shard in range(met.layout.shape[1]):
        drive = met.layout[group, shard]
        if drive < 0:
            holes |= 1 << shard
        elif struck[met.units[drive] if by_unit else drive]:
            hit |= 1 << shard
    return holes, hit


@inner
def _chance(met: _Burst, hit: int, part: int) -> float:
    """Probability that of the shards that are hit exactly some part is lost."""
    weight = 1.0
    for shard in range(63):
        if hit >> shard & 1:
            weight *= met.lost_fraction if part >> shard & 1 else 1 - met.lost_fraction
    return weight


@inner
def _lethal(met: _Burst, holes: int, hit: int) -> float:
    """Probability that a group is lost when each shard of `hit` is lost with a probability."""
    if met.lost_fraction >= 1:
        return 1.0 if _is_lethal(met, holes | hit) else 0.0
    total, part = 0.0, hit
    # Every subset of the shards that are hit.
    while True:
        if _is_lethal(met, holes | part):
            total += _chance(met, hit, part)
        if part == 0:
            return total
        part = (part - 1) & hit


@inner
def _lose(
    met: _Burst, dead: npt.NDArray[np.uint8], gone: npt.NDArray[np.uint8], group: int
) -> None:
    """Draw which struck drives lose their data, given that one group is lost."""
    for drive in range(len(met.units)):
        gone[drive] = dead[met.units[drive]] and np.random.random() < met.lost_fraction
    holes, hit = _masks(met, dead, True, group)
    draw = np.random.random() * _lethal(met, holes, hit)
    part, chosen = hit, hit
    while draw >= 0:
        if _is_lethal(met, holes | part):
            draw -= _chance(met, hit, part)
            chosen = part
        if part == 0:
            break
        part = (part - 1) & hit
    for shard in range(met.layout.shape[1]):
        if hit >> shard & 1:
            gone[met.layout[group, shard]] = chosen >> shard & 1


@inner
def _destroys(
    met: _Burst,
    dead: npt.NDArray[np.uint8],
    gone: npt.NDArray[np.uint8],
    chances: Floats,
    summed: float,
) -> float:
    """An unbiased estimate that one set of struck units destroys any group, from the groups' own chances.

    Where a struck drive keeps its data with some probability, the probability that any group is lost is a sum
    of the groups' own over the mean of 1 / (groups lost, given that one drawn in proportion is): no loss is
    too rare to be seen.

    See Karp, Luby, Madras: Monte-Carlo approximation algorithms for enumeration problems, J. Algorithms 1989.
    """
    if met.lost_fraction >= 1 or summed <= 0:
        return 1.0 if summed > 0 else 0.0
    draw, pick = np.random.random() * summed, 0
    while pick < len(chances) - 1 and draw >= chances[pick]:
        draw -= chances[pick]
        pick += 1
    _lose(met, dead, gone, pick)
    lost = 0
    for group in range(len(chances)):
        if chances[group] > 0:
            holes, hit = _masks(met, gone, False, group)
            lost += _is_lethal(met, holes | hit)
    return summed / max(1, lost)


@compiled
def _try_sets(
    met: _Burst, total: int, struck: int, allowed: int, found: Floats, every: bool
) -> float:
    """Strike sets of units; write their probabilities of loss into `found`, sum the share out of reach."""
    np.random.seed(1)
    groups = met.layout.shape[0]
    chosen, order = np.arange(struck), np.arange(total)
    dead = np.zeros(total, dtype=np.uint8)
    gone = np.zeros(len(met.units), dtype=np.uint8)
    chances = np.zeros(groups)
    below = 0.0
    for turn in range(len(found)):
        if not every:
            for i in range(struck):
                j = i + np.random.randint(0, total - i)
                order[i], order[j] = order[j], order[i]
                chosen[i] = order[i]
        for i in range(struck):
            dead[chosen[i]] = 1
        out, summed = 0, 0.0
        for group in range(groups):
            holes, hit = _masks(met, dead, True, group)
            away = _bits(holes | hit)
            out += away > allowed
            chances[group] = _lethal(met, holes, hit) if away > met.tolerated else 0.0
            summed += chances[group]
        below += out / max(1, groups)
        found[turn] = _destroys(met, dead, gone, chances, summed)
        for i in range(struck):
            dead[chosen[i]] = 0
        if every:
            # The next combination in lexicographic order.
            i = struck - 1
            while i >= 0 and chosen[i] == total - struck + i:
                i -= 1
            if i >= 0:
                chosen[i] += 1
                for j in range(i + 1, struck):
                    chosen[j] = chosen[j - 1] + 1
    return below

"""Exact combinatorics: what a burst of failures destroys, and a fixed window of independent ones."""

from __future__ import annotations

from fractions import Fraction
from math import comb, expm1, log1p, sqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from stripesim.sim.durability.draws import compiled
from stripesim.sim.durability.system import Burst, Code, Floats, Ints, System

#: Look-ups of shards that an enumeration of sets may take; beyond, sets are drawn at random.
ENUMERATION_MAX: Final = 2_000_000_000
SAMPLES: Final = 20_000


def stripe_lost(members: int, tolerated: int, dead: int, total: int) -> float:
    """Probability that a stripe on random drives has more of them among the dead than it tolerates.

    Examples
    --------
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

    Examples
    --------
    >>> f"{sets_lost(stripe_lost(3, 2, 50, 5000), 1e7):.6f}"
    '0.999918'
    """
    return 1.0 if probability >= 1 else -expm1(sets * log1p(-probability))


def copysets_scattered(nodes: int, scatter_width: int, copies: int) -> float:
    """Fewest sets of nodes that give every node so many partners.

    References
    ----------
    Cidon et al.: Copysets, USENIX ATC 2013, section 3.

    Examples
    --------
    >>> round(copysets_scattered(5000, 10, 3))
    8333
    """
    return nodes * scatter_width / (copies * (copies - 1))


def pools_lost(code: Code, pools: int, dead: int, spare_drives: int = 0) -> float:
    """Probability that so many dead drives, any of all, are too many in some pool of `code.width`.

    Notes
    -----
    Sets that no pool minds are counted by the coefficient of x^dead in (sum over i of c_i x^i)^pools, where
    c_i is how many sets of i shards can be decoded without; drives of no pool may die as they like.
    """
    sizes = np.bitwise_count(np.arange(1 << code.width)) if code.distances is not None else None
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
                sum(factor[i] * ways[total - i] for i in range(min(total, len(factor) - 1) + 1))
                for total in range(dead + 1)
            ]
    total = comb(pools * code.width + spare_drives, dead)
    return float(1 - Fraction(ways[dead], total))


def fixed_window_loss(shards: int, tolerated: int, afr: float, window_days: float) -> float:
    """Annual probability that in some window more shards fail than are tolerated, windows independent.

    Notes
    -----
    Failures within a window are binomial with probability 1 - exp(-afr × window / 365 days); a window begins
    with all shards in place, so the result lies below that of a chain.

    References
    ----------
    Backblaze: erasure-coding-durability, 2018 (durability.py, whose table for 17+3 shards says
    0.999999999992646).

    Examples
    --------
    >>> f"{1 - fixed_window_loss(20, 3, 0.00405, 6.5):.15f}"
    '0.999999999992646'
    """
    windows = 365 / window_days
    share = -expm1(-afr / windows)
    lost = sum(
        comb(shards, i) * share**i * (1 - share) ** (shards - i) for i in range(tolerated + 1, shards + 1)
    )
    return -expm1(windows * log1p(-lost))


def loss_of_burst(system: System, burst: Burst, seed: int = 1) -> tuple[float, float, float, float]:
    """Probability that one burst on a whole system destroys data.

    Returns
    -------
    probability, low, high : float
        With a 95 % interval, which is a point where all sets were enumerated or counted.
    unavailable : float
        Mean share of placement groups or stripes with too few shards in reach while struck units are down.

    Raises
    ------
    ValueError
        If the burst strikes more units than there are, or units that the system does not have.
    """
    units = _units(system, burst)
    total = int(units.max()) + 1
    if burst.units > total:
        raise ValueError(f"units: got {burst.units}, wanted at most {total} {burst.unit}s")
    code = system.code
    counted = burst.unit == "drive" and burst.lost_fraction == 1
    unavailable = 0.0
    if system.placement != "crush":
        unavailable = stripe_lost(code.width, system.missing_allowed, burst.units, total)
    if counted and system.placement == "clustered":
        lost = pools_lost(code, system.pools, burst.units, system.drives - system.pools * code.width)
        return lost, lost, lost, unavailable
    if system.placement == "declustered":
        if burst.unit != "drive":
            raise ValueError(f'unit: got "{burst.unit}", wanted "drive": a declustered pool has no others')
        return *_declustered_lost(system, burst), unavailable
    shape = (len(system.layout) * code.width, comb(total, burst.units))
    every = burst.lost_fraction == 1 and shape[0] * shape[1] <= ENUMERATION_MAX
    count = shape[1] if every else max(2000, min(SAMPLES, ENUMERATION_MAX // (shape[0] or 1)))
    distances = np.zeros(0, dtype=np.uint8) if code.distances is None else code.distances
    found = np.zeros(count)
    below = _try_sets(
        system.layout, units, total, burst.units, burst.lost_fraction, code.tolerated, distances,
        system.missing_allowed, found, every, seed,
    )  # fmt: skip
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
            share = sets_lost(stripe_lost(code.width, code.tolerated, dead, system.drives), system.stripes)
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


@compiled
def _is_lethal(mask: int, tolerated: int, distances: npt.NDArray[np.uint8]) -> bool:
    if len(distances):
        return bool(distances[mask] == 0)
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count > tolerated


@compiled
def _lethal(
    holes: int, hit: int, lost_fraction: float, tolerated: int, distances: npt.NDArray[np.uint8]
) -> float:
    """Probability that a group is lost when each shard of `hit` is lost with a probability."""
    if lost_fraction >= 1:
        return 1.0 if _is_lethal(holes | hit, tolerated, distances) else 0.0
    total, part = 0.0, hit
    # Every subset of the shards that are hit.
    while True:
        if _is_lethal(holes | part, tolerated, distances):
            weight = 1.0
            for shard in range(63):
                if hit >> shard & 1:
                    weight *= lost_fraction if part >> shard & 1 else 1 - lost_fraction
            total += weight
        if part == 0:
            return total
        part = (part - 1) & hit


@compiled
def _lose(
    layout: Ints,
    units: Ints,
    dead: npt.NDArray[np.uint8],
    gone: npt.NDArray[np.uint8],
    group: int,
    lost_fraction: float,
    tolerated: int,
    distances: npt.NDArray[np.uint8],
) -> None:
    """Draw which struck drives lose their data, given that one group is lost."""
    for drive in range(len(units)):
        gone[drive] = dead[units[drive]] and np.random.random() < lost_fraction
    holes, hit = 0, 0
    for shard in range(layout.shape[1]):
        drive = layout[group, shard]
        if drive < 0:
            holes |= 1 << shard
        elif dead[units[drive]]:
            hit |= 1 << shard
    draw = np.random.random() * _lethal(holes, hit, lost_fraction, tolerated, distances)
    part, chosen = hit, hit
    while draw >= 0:
        if _is_lethal(holes | part, tolerated, distances):
            weight = 1.0
            for shard in range(63):
                if hit >> shard & 1:
                    weight *= lost_fraction if part >> shard & 1 else 1 - lost_fraction
            draw -= weight
            chosen = part
        if part == 0:
            break
        part = (part - 1) & hit
    for shard in range(layout.shape[1]):
        drive = layout[group, shard]
        if drive >= 0 and hit >> shard & 1:
            gone[drive] = chosen >> shard & 1


@compiled
def _try_sets(
    layout: Ints,
    units: Ints,
    total: int,
    struck: int,
    lost_fraction: float,
    tolerated: int,
    distances: npt.NDArray[np.uint8],
    allowed: int,
    found: Floats,
    every: bool,
    seed: int,
) -> float:
    """Strike sets of units, all or a sample; write the probability that each loses data into `found`.

    Returns the sum over sets of the share of groups that are out of reach.

    Notes
    -----
    Where a struck drive keeps its data with some probability, the probability that any group is lost is a sum
    of the groups' own over the mean of 1 / (groups lost, given that one drawn in proportion is): no loss is
    too rare to be seen.

    References
    ----------
    Karp, Luby, Madras: Monte-Carlo approximation algorithms for enumeration problems, J. Algorithms 1989.
    """
    np.random.seed(seed)
    drives = len(units)
    chosen = np.arange(struck)
    order = np.arange(total)
    dead = np.zeros(total, dtype=np.uint8)
    gone = np.zeros(drives, dtype=np.uint8)
    chances = np.zeros(layout.shape[0])
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
        for group in range(layout.shape[0]):
            holes, hit, away = 0, 0, 0
            for shard in range(layout.shape[1]):
                drive = layout[group, shard]
                if drive < 0:
                    holes |= 1 << shard
                    away += 1
                elif dead[units[drive]]:
                    hit |= 1 << shard
                    away += 1
            out += away > allowed
            chances[group] = 0.0
            if away > tolerated:
                chances[group] = _lethal(holes, hit, lost_fraction, tolerated, distances)
            summed += chances[group]
        below += out / max(1, layout.shape[0])
        if lost_fraction >= 1:
            found[turn] = 1.0 if summed > 0 else 0.0
        elif summed > 0:
            draw, pick = np.random.random() * summed, 0
            while pick < layout.shape[0] - 1 and draw >= chances[pick]:
                draw -= chances[pick]
                pick += 1
            _lose(layout, units, dead, gone, pick, lost_fraction, tolerated, distances)
            lost = 0
            for group in range(layout.shape[0]):
                if chances[group] > 0:
                    mask = 0
                    for shard in range(layout.shape[1]):
                        drive = layout[group, shard]
                        if drive < 0 or gone[drive]:
                            mask |= 1 << shard
                    lost += _is_lethal(mask, tolerated, distances)
            found[turn] = summed / max(1, lost)
        else:
            found[turn] = 0.0
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

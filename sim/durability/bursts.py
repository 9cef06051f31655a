"""Exact probabilities of data loss in a burst of failures, and in a fixed window of independent ones."""

from dataclasses import replace
from fractions import Fraction
from math import comb, expm1, log1p, sqrt
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stripesim.sim.durability.aimed_strikes import Strike, strike_all
from stripesim.sim.durability.aims import (
    Aims,
    StrikeTables,
    aims_of,
    expect,
    strike_tables,
    surely_lost,
)
from stripesim.sim.durability.draws import (
    HeldShards,
    State,
    compiled,
    inner,
    seeded,
    shards_of_drives,
    wide,
)
from stripesim.sim.durability.probability import any_of
from stripesim.sim.durability.service import struck_share
from stripesim.sim.durability.splitting import initial_state, prepare
from stripesim.sim.durability.system import Burst, Code, Floats, Ints, System
from stripesim.sim.durability.walks.groups import (
    RETURN,
    GroupConstants,
    GroupTables,
    States,
    copy_counts,
    fill,
    place_failed,
    tables,
    worst_level,
)

Longs = npt.NDArray[np.int64]

#: Most shard look-ups of an enumeration of sets [count]. Above it, strikes are drawn.
ENUMERATION_MAX: Final = 2_000_000_000

#: Drawn strikes with each aim [count], and their seed.
SAMPLES: Final = 4000
_SEED: Final = 1

#: Part of a probability below which a difference is only rounding.
_ROUNDING: Final = 1e-9

#: Element of the states, and number of the burst.
_COMPLETE: Final = wide(0)
_ONLY: Final = wide(0)

#: The 97.5 % quantile of the normal distribution.
_Z: Final = 1.959964

_NO_DISTANCES: Final = np.zeros(0, dtype=np.uint8)


class BurstLoss(NamedTuple):
    """The effect of one burst on a system.

    Attributes
    ----------
    probability
        Probability of any data loss.
    low, high
        95 % interval of the probability. Both equal it if it is exact.
    unavailable
        Part of the stripes or placement groups that clients cannot reach, 0 to 1.
    lost
        Part of the stripes, placement groups or pools that a strike destroys, on average, 0 to 1.
    """

    probability: float
    low: float
    high: float
    unavailable: float
    lost: float


def stripe_lost(members: int, tolerated: int, dead: int, total: int) -> float:
    """Return the probability that a stripe on random drives has more dead drives than it tolerates.

    Parameters
    ----------
    members
        Drives of the stripe.
    tolerated
        Dead drives that the stripe tolerates.
    dead
        Dead drives in total.
    total
        All drives.

    Examples
    --------
    >>> f"{stripe_lost(3, 2, 50, 5000):.5e}"
    '9.41365e-07'
    >>> f"{any_of(stripe_lost(3, 2, 50, 5000), 1e7):.6f}"
    '0.999918'
    """
    ways = sum(
        comb(members, i) * comb(total - members, dead - i)
        for i in range(tolerated + 1, min(members, dead) + 1)
    )
    return float(Fraction(ways, comb(total, dead)))


def copysets_scattered(nodes: int, scatter_width: int, copies: int) -> float:
    """Return the smallest number of copysets that gives each node its scatter width.

    Parameters
    ----------
    nodes
        Number of nodes.
    scatter_width
        Nodes that share data with a given node.
    copies
        Copies of each chunk.

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
    """Return the probability that randomly placed dead drives destroy data in any pool.

    Parameters
    ----------
    code
        The code. A pool has `code.width` drives.
    pools
        Number of pools.
    dead
        Number of dead drives.
    spare_drives
        Drives outside the pools.

    Notes
    -----
    The number of harmless sets is the coefficient of x^dead in (sum over i of c_i x^i)^pools (1 + x)^spares,
    where c_i counts the sets of i lost shards that the code can decode.
    """
    survivable = [_survivable(code, i) for i in range(min(code.width, dead) + 1)]
    ways = [1] + [0] * dead
    for factor in [survivable] * pools + [[1, 1]] * spare_drives:
        ways = [
            sum(
                factor[i] * ways[total - i]
                for i in range(min(total, len(factor) - 1) + 1)
            )
            for total in range(dead + 1)
        ]
    sets = comb(pools * code.width + spare_drives, dead)
    return float(1 - Fraction(ways[dead], sets))


def _survivable(code: Code, lost: int) -> int:
    """Count the sets of `lost` shards that the code can decode."""
    if lost <= code.tolerated:
        return comb(code.width, lost)
    if code.distances is None:
        return 0
    sizes = np.bitwise_count(np.arange(1 << code.width))
    return int(((sizes == lost) & (code.distances > 0)).sum())


def fixed_window_loss(
    shards: int, tolerated: int, afr: float, window_days: float
) -> float:
    """Return the annual probability that more shards fail in some window than are tolerated.

    Parameters
    ----------
    shards
        Number of shards.
    tolerated
        Losses tolerated within a window.
    afr
        Annual failure rate of a drive, as a rate.
    window_days
        Length of a window [days].

    Notes
    -----
    Failures within a window are binomial with probability 1 - exp(-afr × window / 365 days). Windows are
    independent, and each begins with all shards present, so the result is below that of a chain.

    References
    ----------
    Backblaze: erasure-coding-durability, 2018 (durability.py, whose table for 17+3 shards states
    0.999999999992646).

    Examples
    --------
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


def loss_of_burst(system: System, burst: Burst) -> BurstLoss:
    """Compute the probability that a burst destroys data, and the part of the data that is unreachable.

    Parameters
    ----------
    system
        The system.
    burst
        The burst.

    Returns
    -------
    BurstLoss
        Both figures, with an interval if they are sampled.

    Raises
    ------
    ValueError
        If the burst strikes units that the system does not have, or more than it has.
    """
    units = _units(system, burst)
    total = int(units.max()) + 1
    if burst.units > total:
        raise ValueError(
            f"units: got {burst.units}, wanted at most {total} {burst.unit}s"
        )
    loss = _loss_among(system, burst, units)
    if system.code.distances is None:
        return loss
    # Groups also wait for shards without which their data cannot be decoded.
    return loss._replace(unavailable=struck_share(system, burst, units))


def _loss_among(system: System, burst: Burst, units: Ints) -> BurstLoss:
    """Compute the loss by the units of each drive. A group is unavailable by its number of missing shards."""
    total = int(units.max()) + 1
    if system.placement == "crush":
        return _loss_by_sets(system, burst, units)
    code = system.code
    unavailable = stripe_lost(code.width, system.missing_allowed, burst.units, total)
    if system.placement == "declustered":
        if burst.unit != "drive":
            raise ValueError(
                f'unit: got "{burst.unit}", wanted "drive" in a declustered pool'
            )
        any_lost, share = _declustered_lost(system, burst)
    elif burst.unit == "drive" and burst.lost_fraction == 1:
        unused = system.drives - system.pools * code.width
        any_lost = pools_lost(code, system.pools, burst.units, unused)
        # One pool among drives that are all outside of pools.
        other_drives = system.drives - code.width
        share = pools_lost(code, 1, burst.units, other_drives)
    else:
        return _loss_by_sets(system, burst, units)
    return BurstLoss(any_lost, any_lost, any_lost, unavailable, share)


def _units(system: System, burst: Burst) -> Ints:
    """Return each drive's unit of the kind that a burst strikes."""
    if burst.unit == "drive":
        return np.arange(system.drives, dtype=np.int32)
    if burst.unit not in system.units:
        raise ValueError(
            f'unit: got "{burst.unit}", wanted a [cluster] with {burst.unit}s'
        )
    return system.units[burst.unit]


def _declustered_lost(system: System, burst: Burst) -> tuple[float, float]:
    """Return the probability of any loss on random drives, and the mean part of the stripes that are lost.

    Drives that keep their data weaken the burst.
    """
    code = system.code
    fraction = burst.lost_fraction
    any_lost = 0.0
    share = 0.0
    for dead in range(code.tolerated + 1, burst.units + 1):
        kept = burst.units - dead
        weight = comb(burst.units, dead) * fraction**dead * (1 - fraction) ** kept
        of_stripe = stripe_lost(code.width, code.tolerated, dead, system.drives)
        share += weight * of_stripe
        if system.stripes is None:
            any_lost += weight
        else:
            any_lost += weight * any_of(of_stripe, system.stripes)
    return any_lost, share


def _loss_by_sets(system: System, burst: Burst, units: Ints) -> BurstLoss:
    """Strike each set of units if there are few."""
    code = system.code
    total = int(units.max()) + 1
    sets = comb(total, burst.units)
    shards = len(system.layout) * code.width
    if burst.lost_fraction < 1 or shards * sets > ENUMERATION_MAX:
        return _loss_by_strikes(system, burst)
    distances = _NO_DISTANCES if code.distances is None else code.distances
    context = _Burst(
        system.layout,
        units,
        code.tolerated,
        distances,
        shards_of_drives(system.layout, system.drives),
        np.flatnonzero((system.layout < 0).any(axis=1)),
        np.argsort(units, kind="stable"),
        np.append(0, np.cumsum(np.bincount(units, minlength=total))),
    )
    groups = len(system.layout)
    room = _Room(
        np.arange(burst.units),
        dead=np.zeros(total, dtype=np.uint8),
        seen=np.zeros(groups, dtype=np.uint8),
        found=np.empty(groups, dtype=np.int64),
    )
    sums = np.zeros(3)
    _try_sets(context, room, sets, system.missing_allowed, sums)
    lethal_sets, lost, unavailable = sums.tolist()
    share = lethal_sets / sets
    return BurstLoss(share, share, share, unavailable / sets, lost / sets)


def _loss_by_strikes(system: System, burst: Burst) -> BurstLoss:
    """Strike drawn units, with strikes aimed at groups that could lose data."""
    struck = replace(system, bursts=(burst,), sector_errors=0.0)
    prepared = prepare(struck, biased=False)
    lay = prepared.layout
    lethal = surely_lost(system.code)
    aims = aims_of(lay, system.code.tolerated + 1, lethal)
    losses = np.zeros(SAMPLES)
    lost_groups = np.zeros(SAMPLES)
    _strike_complete(
        lay, initial_state(prepared), tables(lay), aims, strike_tables(lay, aims),
        np.zeros(1, dtype=np.uint64), losses, lost_groups,
    )  # fmt: skip
    share = float(losses.mean())
    half = _Z * float(losses.std(ddof=1)) / sqrt(SAMPLES)
    low = max(share / 10, share - half)
    high = min(1.0, share + half)
    if half <= _ROUNDING * share:
        # All draws agree. The expected number of lost groups bounds the probability.
        high = min(1.0, float(aims.class_expected.sum()))
    lost = float(lost_groups.mean()) / max(1, len(lay.members))
    return BurstLoss(
        min(1.0, share), min(1.0, low), high, _unavailable(system, lay), lost
    )


def _unavailable(system: System, lay: GroupConstants) -> float:
    """Return the mean part of groups with more shards in struck units than may be missing."""
    groups, width = lay.members.shape
    allowed = system.missing_allowed
    if allowed >= width or groups == 0:
        return 0.0
    # All drives of a struck unit are away.
    away = lay._replace(threats=lay.threats._replace(burst_lost=np.ones(1)))
    aims = aims_of(away, allowed + 1, allowed + 1)
    expected = float(aims.class_expected.sum())
    incomplete = (lay.members < 0).sum(axis=1) > allowed
    return float((expected + int(incomplete.sum())) / groups)


@compiled
def _strike_complete(
    lay: GroupConstants,
    st: States,
    tab: GroupTables,
    aims: Aims,
    work: StrikeTables,
    rng: State,
    losses: Floats,
    lost_groups: Floats,
) -> None:
    """Write the weights of the strikes that destroy data, each time at a cluster without failures.

    `lost_groups` receives the weights times the groups that the strikes destroy.
    """
    fill(lay, tab)
    seeded(rng, _SEED, 0)
    expect(lay, st, _COMPLETE, tab, aims, work, _ONLY)
    for number in range(len(losses)):
        losses[number] = 0.0
        lost_groups[number] = 0.0
        for aim in range(-1, len(work.intact_groups)):
            if aim >= 0 and work.intact_groups[aim] == 0:
                continue
            strike = Strike(aims, work, _ONLY, aim)
            weight = strike_all(lay, st, _COMPLETE, tab, strike, rng)
            if worst_level(tab) > lay.threats.tolerated:
                losses[number] += weight
                lost_groups[number] += weight * tab.levels[lay.threats.tolerated + 1]
            place_failed(lay, st, _COMPLETE, tab, RETURN)
            copy_counts(tab.intact, tab.levels)
            st.failed[_COMPLETE] = 0


class _Burst(NamedTuple):
    """A burst for compiled code: the drives of groups, the unit of each drive, and the losses tolerated.

    `held` are the shards of each drive, and `incomplete` the groups with holes. The drives of unit u are
    `by_unit[unit_first[u] : unit_first[u + 1]]`.
    """

    layout: Ints
    units: Ints
    tolerated: int
    distances: npt.NDArray[np.uint8]
    held: HeldShards
    incomplete: Longs
    by_unit: Longs
    unit_first: Longs


class _Room(NamedTuple):
    """Space for the strikes of a burst.

    `selected` are the units struck, first the lowest numbers. `dead` marks units and `seen` marks groups with
    1. Both are 0 between strikes. `found` has room for all groups.
    """

    selected: Longs
    dead: npt.NDArray[np.uint8]
    seen: npt.NDArray[np.uint8]
    found: Longs


@inner
def _bits(mask: int) -> int:
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count


@inner
def _is_lethal(burst: _Burst, mask: int) -> bool:
    if len(burst.distances):
        return bool(burst.distances[mask] == 0)
    return _bits(mask) > burst.tolerated


@inner
def _missing(burst: _Burst, struck: npt.NDArray[np.uint8], group: int) -> int:
    """Return the bit mask of a group's holes and shards on struck units."""
    mask = 0
    for shard in range(burst.layout.shape[1]):
        drive = burst.layout[group, shard]
        if drive < 0 or struck[burst.units[drive]]:
            mask |= 1 << shard
    return mask


@inner
def _hit_groups(burst: _Burst, room: _Room) -> int:
    """List the groups with holes or with a shard in a selected unit in `found`, and return their number."""
    seen = room.seen
    found = room.found
    count = 0
    for group in burst.incomplete:
        seen[group] = 1
        found[count] = group
        count += 1
    for unit in room.selected:
        for index in range(burst.unit_first[unit], burst.unit_first[unit + 1]):
            drive = burst.by_unit[index]
            for i in range(burst.held.first[drive], burst.held.first[drive + 1]):
                group = burst.held.group[i]
                if seen[group] == 0:
                    seen[group] = 1
                    found[count] = group
                    count += 1
    for i in range(count):
        seen[found[i]] = 0
    return count


@inner
def _next_set(selected: Longs, total: int) -> None:
    """Advance to the next combination in lexicographic order, if there is one."""
    struck = len(selected)
    i = struck - 1
    while i >= 0 and selected[i] == total - struck + i:
        i -= 1
    if i >= 0:
        selected[i] += 1
        for j in range(i + 1, struck):
            selected[j] = selected[j - 1] + 1


@compiled
def _try_sets(
    burst: _Burst, room: _Room, sets: int, allowed: int, sums: Floats
) -> None:
    """Strike each set of units, and count those that destroy data.

    `sums` receives that count, and the sums of the parts of the groups that are destroyed and unreachable.
    """
    groups = burst.layout.shape[0]
    selected = room.selected
    for _ in range(sets):
        for i in range(len(selected)):
            room.dead[selected[i]] = 1
        out = 0
        lost = 0
        for i in range(_hit_groups(burst, room)):
            mask = _missing(burst, room.dead, room.found[i])
            out += _bits(mask) > allowed
            lost += _is_lethal(burst, mask)
        sums[0] += lost > 0
        sums[1] += lost / max(1, groups)
        sums[2] += out / max(1, groups)
        for i in range(len(selected)):
            room.dead[selected[i]] = 0
        _next_set(selected, len(room.dead))

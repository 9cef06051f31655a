"""Whole histories of a cluster, with side walks from every exposure and from sampled bursts.

A history follows all drives at their own rates until the horizon. Losses are far too rare to happen in it.
But whenever some group reaches a level that is seldom reached, the *floor*, an exposure begins. Side walks
continue from a copy of that state, with failures drawn more often than they happen, until the exposure is
over or data is lost. Bursts strike such copies too, at sampled times, aimed at groups that could lose data.
See `stripesim.sim.durability.histories`.
"""

from typing import Final, NamedTuple

import numpy as np

from stripesim.sim.durability import draws
from stripesim.sim.durability.aimed_strikes import Strike, strike_all
from stripesim.sim.durability.aims import Aims, StrikeTables, expect, strike_tables
from stripesim.sim.durability.draws import State, compiled, inner, uniform, wide
from stripesim.sim.durability.system import Floats
from stripesim.sim.durability.walks.groups import (
    RETURN,
    TAKE,
    Bounds,
    GroupConstants,
    GroupTables,
    States,
    copy_counts,
    copy_drive,
    fill,
    meet_errors,
    place_failed,
    tables,
    walk,
    worst_level,
)

#: Elements of the states: the history, the side walk, and the beginning of every history.
_HISTORY: Final = wide(0)
_SIDE: Final = wide(1)
_FRESH: Final = wide(2)

#: Row of independent failures.
_ALONE: Final = wide(0)

#: Columns of `Watched.losses` before the causes.
LOSS_COLUMNS: Final = 3


class Plan(NamedTuple):
    """The side walks of each history.

    Attributes
    ----------
    floor
        Level at which an exposure begins.
    sides
        Side walks from each exposure that no burst caused.
    strikes
        Times at which each burst strikes copies of the state.
    bias_s
        Time scale for drawing failures at each level, as in `draws.Threats`, first after an independent
        failure and then after each burst, shape (bursts + 1, tolerated + 1).
    aims
        How strikes are aimed.
    """

    floor: int
    sides: int
    strikes: int
    bias_s: Floats
    aims: Aims


class Watched(NamedTuple):
    """Counts of some histories, summed over them. Row 0 is independent failures, then each burst.

    Attributes
    ----------
    losses_sum
        Weights of the side walks that lost data, as a mean over the walks of an exposure or strike, by the
        part of the horizon, shape (bursts + 1, parts).
    lost_sum
        The same, times the number of lost groups.
    begun
        Exposures, and strikes that reached the floor, shape (bursts + 1,).
    length_s
        Sum of the lengths of their side walks [s], shape (bursts + 1,).
    losses
        Side walks that lost data: row, weight, lost groups, and the cause of each level, shape (room, ...).
    counts
        Events, side walks, and used rows of `losses`, shape (3,).
    """

    losses_sum: Floats
    lost_sum: Floats
    begun: Floats
    length_s: Floats
    losses: Floats
    counts: Floats


def watch(
    lay: GroupConstants,
    side: GroupConstants,
    st: States,
    plan: Plan,
    first: int,
    count: int,
    seed: int,
    seen: Watched,
) -> bool:
    """Follow some histories, and add what they show to `seen`.

    Parameters
    ----------
    lay, side
        The constants of a history, without bias, and of side walks. The bias of `side` is replaced.
    st
        Three states, the last of them that of the beginning.
    plan
        The side walks.
    first, count
        Number of the first history, and number of histories.
    seed
        Seed of the random streams.
    seen
        Receives the sums.

    Returns
    -------
    bool
        False if the list of failed drives overflowed.
    """
    rng = np.zeros(1, dtype=np.uint64)
    side_rng = np.zeros(1, dtype=np.uint64)
    work = strike_tables(side, plan.aims)
    history = _History(lay, side, st, tables(lay), work, plan, seen)
    return bool(_watch(history, first, count, seed, rng, side_rng))


class _History(NamedTuple):
    """All that histories and their side walks read and write, besides random streams.

    Attributes not listed are those of `watch`.

    Attributes
    ----------
    tab, work
        Tables of the current walk, and of strikes.
    """

    lay: GroupConstants
    side: GroupConstants
    st: States
    tab: GroupTables
    work: StrikeTables
    plan: Plan
    seen: Watched


@compiled
def _watch(
    history: _History,
    first: int,
    count: int,
    seed: int,
    rng: State,
    side_rng: State,
) -> bool:
    """Follow histories with empty tables and the states of two random streams."""
    lay = history.lay
    st = history.st
    tab = history.tab
    strikes = history.plan.strikes
    fill(lay, tab)
    bursts = len(lay.threats.burst_units)
    horizon_s = lay.threats.horizon_s
    for number in range(first, first + count):
        draws.seeded(rng, seed, 2 * number)
        draws.seeded(side_rng, seed, 2 * number + 1)
        _copy(st, _FRESH, _HISTORY)
        for strike in range(strikes + 1):
            until_s = horizon_s
            if strike < strikes:
                # One time in each of equal parts of the horizon.
                until_s *= (strike + uniform(side_rng)) / strikes
            if not _follow(history, until_s, rng, side_rng):
                return False
            if strike == strikes:
                continue
            for burst in range(bursts):
                if not _strike_copies(history, burst, side_rng):
                    return False
        place_failed(lay, st, _HISTORY, tab, RETURN)
        copy_counts(tab.intact, tab.levels)
    return True


@inner
def _follow(history: _History, until_s: float, rng: State, side_rng: State) -> bool:
    """Continue a history until a time, with side walks from each exposure."""
    lay = history.lay
    st = history.st
    tab = history.tab
    plan = history.plan
    counts = history.seen.counts
    above_all = lay.threats.tolerated + 2
    to_floor = Bounds(plan.floor, 0, until_s, False)
    to_end = Bounds(above_all, plan.floor, until_s, False)
    while st.time_s[_HISTORY] < until_s:
        # An exposure may go on from before.
        weight, events = walk(lay, st, _HISTORY, tab, to_end, rng)
        counts[0] += events
        if weight < 0:
            return False
        if worst_level(tab) >= plan.floor:
            break
        weight, events = walk(lay, st, _HISTORY, tab, to_floor, rng)
        counts[0] += events
        if weight < 0:
            return False
        # The strikes of bursts stand for all exposures that bursts cause.
        if weight == 0 or st.cause[_HISTORY, plan.floor] >= draws.AS_ONE:
            continue
        for _ in range(plan.sides):
            share = 1.0 / plan.sides
            copy_counts(tab.levels, tab.kept)
            _copy(st, _HISTORY, _SIDE)
            ratio = _errors_of_last(history.side, st, tab, side_rng)
            if not _side_walk(history, _ALONE, share, ratio, side_rng):
                return False
    return True


@inner
def _strike_copies(history: _History, burst: int, rng: State) -> bool:
    """Strike copies of the history's state by a burst, at random and with each aim within its reach."""
    side = history.side
    st = history.st
    tab = history.tab
    work = history.work
    aims = history.plan.aims
    if worst_level(tab) > side.threats.tolerated:
        # What is lost already was lost by another cause.
        return True
    expect(side, st, _HISTORY, tab, aims, work, burst)
    strikes = 1
    for aim in range(len(work.reached)):
        strikes += work.failed_groups[aim] + work.intact_groups[aim] > 0
    for aim in range(-1, len(work.reached)):
        if aim >= 0 and work.failed_groups[aim] + work.intact_groups[aim] <= 0:
            continue
        copy_counts(tab.levels, tab.kept)
        _copy(st, _HISTORY, _SIDE)
        strike = Strike(aims, work, burst, aim)
        weight = strike_all(side, st, _SIDE, tab, strike, rng)
        if weight < 0:
            return False
        # A random strike has the weight 1, and the strikes of all aims estimate together.
        share = 1.0 / strikes
        if not _side_walk(history, burst + 1, share, weight / share, rng):
            return False
    return True


@inner
def _side_walk(
    history: _History, row: int, share: float, weight: float, rng: State
) -> bool:
    """Continue a copy of the history's state until loss or the end of the exposure.

    The next burst ends it as well, because bursts are struck at any state. The weight is the likelihood ratio
    of the copy, and the share its part of the exposure or strike.
    """
    side = history.side
    st = history.st
    tab = history.tab
    plan = history.plan
    seen = history.seen
    threats = side.threats
    lethal = threats.tolerated + 1
    for level in range(len(threats.bias_s)):
        threats.bias_s[level] = plan.bias_s[row, level]
    start_s = st.time_s[_HISTORY]
    bounds = Bounds(lethal, plan.floor, threats.horizon_s, True)
    ratio, events = walk(side, st, _SIDE, tab, bounds, rng)
    if ratio < 0:
        return False
    weight *= share * ratio
    seen.counts[0] += events
    seen.counts[1] += 1
    length_s = st.time_s[_SIDE] - start_s
    seen.length_s[row] += share * length_s
    if row == 0 or length_s > 0 or ratio > 0:
        seen.begun[row] += share
    if weight > 0:
        part = int(start_s / threats.horizon_s * seen.losses_sum.shape[1])
        part = min(part, seen.losses_sum.shape[1] - 1)
        lost = tab.levels[lethal]
        seen.losses_sum[row, part] += weight
        seen.lost_sum[row, part] += weight * lost
        _record(st, row, weight, lost, seen)
    place_failed(side, st, _SIDE, tab, RETURN)
    place_failed(side, st, _HISTORY, tab, TAKE)
    copy_counts(tab.kept, tab.levels)
    return True


@inner
def _record(st: States, row: int, weight: float, lost: int, seen: Watched) -> None:
    """Record a side walk that lost data, while there is room."""
    used = int(seen.counts[2])
    if used >= seen.losses.shape[0]:
        return
    seen.losses[used, 0] = row
    seen.losses[used, 1] = weight
    seen.losses[used, 2] = lost
    for level in range(1, st.cause.shape[1]):
        seen.losses[used, LOSS_COLUMNS + level - 1] = st.cause[_SIDE, level]
    seen.counts[2] += 1


@inner
def _errors_of_last(
    lay: GroupConstants, st: States, tab: GroupTables, rng: State
) -> float:
    """Draw latent errors in the groups that the last failure has made critical, and return the ratio."""
    drive = st.drive[_SIDE, st.failed[_SIDE] - 1]
    has_errors, ratio = meet_errors(lay, tab, drive, rng)
    if has_errors:
        st.cause[_SIDE, lay.threats.tolerated + 1] = draws.SECTOR
    return ratio


@inner
def _copy(st: States, source: int, target: int) -> None:
    """Copy one state to another."""
    failed = st.failed[source]
    st.time_s[target] = st.time_s[source]
    st.virtual_s[target] = st.virtual_s[source]
    st.failed[target] = failed
    for slot in range(failed):
        copy_drive(st, source, slot, target, slot)
    st.burst[target] = st.burst[source]
    st.struck_left[target] = st.struck_left[source]
    for unit in range(st.struck.shape[1]):
        st.struck[target, unit] = st.struck[source, unit]
    for drive in range(st.born_s.shape[1]):
        st.born_s[target, drive] = st.born_s[source, drive]
    for spare in range(st.spares_due_s.shape[1]):
        st.spares_due_s[target, spare] = st.spares_due_s[source, spare]
    for level in range(st.cause.shape[1]):
        st.cause[target, level] = st.cause[source, level]
    st.lost[target] = st.lost[source]

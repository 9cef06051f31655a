"""Strikes of bursts that are aimed at a placement group, with their likelihood ratio.

On a large cluster one strike in millions destroys a group, so strikes at random units hardly ever show how.
Here a group is drawn first, in proportion to the probability that the strike leaves it with a certain number
of missing shards, the *aim*. Then the struck units and the lost drives are drawn, given that it does.

References
----------
Karp, Luby, Madras: Monte-Carlo approximation algorithms for enumeration problems, J. Algorithms 10(3), 1989.
Veach, Guibas: Optimally combining sampling techniques for Monte Carlo rendering, SIGGRAPH 1995 (the balance
heuristic).
"""

from typing import NamedTuple

from stripesim.sim.durability.aims import (
    Aims,
    StrikeTables,
    aim_chance,
    expected_without_failures,
    forget,
    spread,
    struck_chance,
)
from stripesim.sim.durability.draws import (
    AS_ONE,
    SECTOR,
    State,
    inner,
    uniform,
    wide,
)
from stripesim.sim.durability.walks.groups import (
    GroupConstants,
    GroupTables,
    States,
    level_of,
    strike_drive,
    worst_level,
)


class Strike(NamedTuple):
    """A strike of a burst: how it is aimed, the tables for it, and its aim, or −1 for a random strike."""

    aims: Aims
    work: StrikeTables
    burst: int
    aim: int


@inner
def strike_all(
    lay: GroupConstants,
    st: States,
    at: int,
    tab: GroupTables,
    strike: Strike,
    rng: State,
) -> float:
    """Strike all units of a burst at the same time, and return the weight, −1 without room.

    The strike is drawn at random for aim −1. `expect` must have been called for this state and burst. The
    strikes of aim −1 and of each aim with an expectation above 0 estimate together: the sum of a quantity
    times the weight, over one strike of each, has the expectation of the quantity after a random strike.
    """
    aims = strike.aims
    work = strike.work
    burst = strike.burst
    aim = strike.aim
    units = 0
    struck = 0
    decided = 0
    if aim >= 0:
        group = _pick_group(lay, st, at, tab, strike, rng)
        units = spread(lay, tab, work, burst, group, True)
        missing = wide(tab.missing[group])
        aim_chance(aims, work, burst, units, missing, aim)
        wanted = aims.fewest + aim - missing
        struck = _hit_units(aims, work, burst, aim, units, wanted, rng)
        decided = _hit_drives(lay, tab, work, burst, group, struck, rng)
    _hit_others(lay, work, burst, units, struck, rng)
    first = st.failed[at]
    weight = _lose_drives(lay, st, at, tab, work, burst, decided, rng)
    if weight < 0:
        return weight
    _name_cause(lay, st, at, tab, burst, first)
    return weight / _drawn_more_often(lay, st, at, tab, aims, work, first)


@inner
def _pick_group(
    lay: GroupConstants,
    st: States,
    at: int,
    tab: GroupTables,
    strike: Strike,
    rng: State,
) -> int:
    """Draw a group in proportion to the probability that the strike takes it to the aim."""
    aims = strike.aims
    burst = strike.burst
    failed = strike.work.failed_groups[strike.aim]
    draw = uniform(rng) * (failed + strike.work.intact_groups[strike.aim])
    if draw < failed:
        return _pick_failed(lay, st, at, tab, strike, draw)
    while True:
        number = _pick_class(aims, burst, strike.aim, rng)
        first = aims.class_first[burst, number]
        size = aims.class_first[burst, number + 1] - first
        group = aims.by_class[burst, first + int(uniform(rng) * size)]
        if not _has_failed(lay, tab, group):
            return int(group)


@inner
def _pick_failed(
    lay: GroupConstants,
    st: States,
    at: int,
    tab: GroupTables,
    strike: Strike,
    draw: float,
) -> int:
    """Return the group with failed drives at a place in the sum of their probabilities."""
    work = strike.work
    burst = strike.burst
    picked = -1
    for slot in range(st.failed[at]):
        drive = st.drive[at, slot]
        for i in range(lay.first[drive], lay.first[drive + 1]):
            group = wide(lay.group[i])
            if draw < 0 or tab.seen[group]:
                continue
            tab.seen[group] = 1
            units = spread(lay, tab, work, burst, group, True)
            missing = wide(tab.missing[group])
            chance = aim_chance(strike.aims, work, burst, units, missing, strike.aim)
            if chance > 0:
                picked = group
                draw -= chance
    forget(lay, st, at, tab, wide(0))
    return picked


@inner
def _pick_class(aims: Aims, burst: int, aim: int, rng: State) -> int:
    """Draw a class in proportion to its expected groups."""
    draw = uniform(rng) * expected_without_failures(aims, burst, aim)
    picked = -1
    for number in range(aims.class_expected.shape[1]):
        expected = aims.class_expected[burst, number, aim]
        if expected > 0 and draw >= 0:
            picked = number
            draw -= expected
    return picked


@inner
def _has_failed(lay: GroupConstants, tab: GroupTables, group: int) -> bool:
    """Return True if any drive of a group has failed."""
    for shard in range(lay.members.shape[1]):
        drive = lay.members[group, shard]
        if drive >= 0 and tab.down[drive] > 0:
            return True
    return False


@inner
def _hit_units(
    aims: Aims,
    work: StrikeTables,
    burst: int,
    aim: int,
    units: int,
    wanted: int,
    rng: State,
) -> int:
    """Draw which units of a group are struck, and how many shards each loses, and return their number.

    `chance` must be filled for the group. The results are the first elements of `struck` and `lost`.
    """
    struck = 0
    left = wanted
    for at in range(units):
        draw = uniform(rng) * work.chance[at, struck, left]
        draw -= work.chance[at + 1, struck, left]
        if draw < 0:
            continue
        picked = -1
        for lost in range(work.held[at] + 1):
            chance = struck_chance(aims, work, burst, aim, at, struck, left, lost)
            if chance > 0 and draw >= 0:
                picked = lost
                draw -= chance
        if picked < 0:
            continue
        work.struck[struck] = work.unit[at]
        work.lost[struck] = picked
        struck += 1
        left = max(0, left - picked)
    return struck


@inner
def _hit_drives(
    lay: GroupConstants,
    tab: GroupTables,
    work: StrikeTables,
    burst: int,
    group: int,
    struck: int,
    rng: State,
) -> int:
    """Draw which drives of a group lose their data, and return the number of drives that are decided."""
    kind = lay.burst_unit[burst]
    decided = 0
    for position in range(struck):
        unit = work.struck[position]
        held = 0
        for shard in range(lay.members.shape[1]):
            drive = lay.members[group, shard]
            if drive < 0 or tab.down[drive] > 0 or lay.unit_of[kind, drive] != unit:
                continue
            work.drive[decided + held] = drive
            held += 1
        lost = work.lost[position]
        for number in range(held):
            is_lost = uniform(rng) * (held - number) < lost
            work.is_lost[decided + number] = is_lost
            lost -= is_lost
        decided += held
    return decided


@inner
def _hit_others(
    lay: GroupConstants,
    work: StrikeTables,
    burst: int,
    units: int,
    struck: int,
    rng: State,
) -> None:
    """Draw the remaining struck units, none of them one of the group's."""
    total = lay.unit_counts[lay.burst_unit[burst]]
    for position in range(struck, lay.threats.burst_units[burst]):
        unit = -1
        while unit < 0:
            unit = int(uniform(rng) * total)
            for at in range(units):
                if work.unit[at] == unit:
                    unit = -1
            for earlier in range(struck, position):
                if work.struck[earlier] == unit:
                    unit = -1
        work.struck[position] = unit


@inner
def _lose_drives(
    lay: GroupConstants,
    st: States,
    at: int,
    tab: GroupTables,
    work: StrikeTables,
    burst: int,
    decided: int,
    rng: State,
) -> float:
    """Fail drives of the struck units, and return the likelihood ratio of latent errors, −1 without room."""
    kind = lay.burst_unit[burst]
    fraction = lay.threats.burst_lost[burst]
    level = worst_level(tab)
    weight = 1.0
    for position in range(lay.threats.burst_units[burst]):
        unit = work.struck[position]
        for index in range(lay.unit_first[kind, unit], lay.unit_first[kind, unit + 1]):
            drive = wide(lay.unit_drives[kind, index])
            if tab.down[drive] > 0:
                continue
            is_lost = uniform(rng) < fraction
            for number in range(decided):
                if work.drive[number] == drive:
                    is_lost = work.is_lost[number] > 0
            if not is_lost:
                continue
            cause = AS_ONE + burst
            level, ratio = strike_drive(lay, st, at, tab, level, drive, cause, rng)
            if level < 0:
                return -1.0
            weight *= ratio
    return weight


@inner
def _name_cause(
    lay: GroupConstants,
    st: States,
    at: int,
    tab: GroupTables,
    burst: int,
    first: int,
) -> None:
    """Name the burst as the cause of each level that it took a worst group through.

    Other groups may have reached the lower ones of these levels before. `seen` counts the shards that each
    group loses by the strike, from slot `first` on.
    """
    for slot in range(first, st.failed[at]):
        drive = st.drive[at, slot]
        for i in range(lay.first[drive], lay.first[drive + 1]):
            tab.seen[lay.group[i]] += 1
    worst = worst_level(tab)
    for slot in range(first, st.failed[at]):
        drive = st.drive[at, slot]
        for i in range(lay.first[drive], lay.first[drive + 1]):
            group = wide(lay.group[i])
            if level_of(lay, tab, group) != worst:
                continue
            for step in range(max(1, worst - tab.seen[group] + 1), worst + 1):
                if st.cause[at, step] != SECTOR:
                    st.cause[at, step] = AS_ONE + burst
            return


@inner
def _drawn_more_often(
    lay: GroupConstants,
    st: States,
    at: int,
    tab: GroupTables,
    aims: Aims,
    work: StrikeTables,
    first: int,
) -> float:
    """Return how often a strike is drawn, by any aim, for each time that it is drawn at random.

    Parameter `first` is the slot of the first drive that the strike took. `seen` marks the groups on these
    drives, and is cleared.
    """
    for aim in range(len(work.reached)):
        work.reached[aim] = 0.0
    for slot in range(first, st.failed[at]):
        drive = st.drive[at, slot]
        for i in range(lay.first[drive], lay.first[drive + 1]):
            group = wide(lay.group[i])
            if tab.seen[group] == 0:
                continue
            tab.seen[group] = 0
            missing = min(aims.last, tab.missing[group])
            if missing >= aims.fewest:
                work.reached[missing - aims.fewest] += 1
    often = 1.0
    for aim in range(len(work.reached)):
        expected = work.failed_groups[aim] + work.intact_groups[aim]
        if expected > 0:
            often += work.reached[aim] / expected
    return often

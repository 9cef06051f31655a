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

from math import comb
from typing import Final, NamedTuple

import numpy as np

from stripesim.sim.durability.draws import (
    AS_ONE,
    SECTOR,
    State,
    compiled,
    inner,
    uniform,
)
from stripesim.sim.durability.system import Code, Floats, Ints
from stripesim.sim.durability.walk_groups import (
    GroupConstants,
    GroupTables,
    States,
    fill,
    level_of,
    strike_drive,
    tables,
    worst_level,
)

#: Groups whose units are compared at a time.
_CHUNK: Final = 1 << 16
#: Part of the expected groups below which it is only rounding.
_ROUNDING: Final = 1e-12


class Aims(NamedTuple):
    """Tables for aiming bursts.

    Groups are of the same *class* if their shards are spread in the same way over units: as many units with
    one shard, as many with two, and so on.

    Attributes
    ----------
    fewest
        Missing shards of the first aim. Each further aim is one more.
    last
        Missing shards of the last aim, which includes any larger number.
    subset_chance
        Probability that a burst strikes exactly i given ones of d units, shape
        (bursts, width + 1, width + 1).
    lost_chance
        Probability that any b of c struck drives lose their data, shape (bursts, width + 1, width + 1).
    by_class
        Groups in the order of their classes, for each burst, shape (bursts, groups).
    class_first
        Class c has the groups class_first[c] … class_first[c + 1] - 1 of `by_class`, shape (bursts,
        classes + 1). Unused classes have no groups.
    class_expected
        Groups of each class that a strike takes to each aim, expected for a cluster without failures, shape
        (bursts, classes, aims).
    """

    fewest: int
    last: int
    subset_chance: Floats
    lost_chance: Floats
    by_class: Ints
    class_first: Ints
    class_expected: Floats


class StrikeTables(NamedTuple):
    """Working memory of a strike.

    Attributes
    ----------
    unit, held
        Units that hold shards of a group, and how many, shape (width,).
    chance
        Probability of reaching the aim from unit u on, with i units struck and r shards still to lose, shape
        (width + 1, width + 2, width + 2).
    struck
        Struck units, shape (most units of a burst,).
    lost
        Shards that the group drawn by an aim loses in each of its struck units, shape (width,).
    drive, is_lost
        Drives whose fate is decided by the aim, shape (width,).
    failed_groups, intact_groups
        Expected number of groups that reach each aim, with and without failed drives, shape (aims,).
    reached
        Number of groups that reached each aim, shape (aims,).
    """

    unit: Ints
    held: Ints
    chance: Floats
    struck: Ints
    lost: Ints
    drive: Ints
    is_lost: Ints
    failed_groups: Floats
    intact_groups: Floats
    reached: Floats


def surely_lost(code: Code) -> int:
    """Return the smallest number of missing shards that no group survives."""
    if code.distances is None:
        return code.tolerated + 1
    return code.width - code.k + 1


def aims_of(lay: GroupConstants, fewest: int, last: int) -> Aims:
    """Return the tables for aiming the bursts of a system.

    Parameters
    ----------
    lay
        The constants of a walk.
    fewest, last
        Missing shards of the first and of the last aim.

    Returns
    -------
    Aims
        The tables.
    """
    width = lay.members.shape[1]
    bursts = len(lay.burst_unit)
    subset_chance = np.zeros((bursts, width + 1, width + 1))
    lost_chance = np.zeros((bursts, width + 1, width + 1))
    orders = []
    classes = []
    for burst in range(bursts):
        units = int(lay.unit_counts[lay.burst_unit[burst]])
        struck = int(lay.threats.burst_units[burst])
        fraction = float(lay.threats.burst_lost[burst])
        sets = comb(units, struck)
        for size in range(width + 1):
            for part in range(size + 1):
                if part <= struck and size <= units:
                    ways = comb(units - size, struck - part)
                    subset_chance[burst, size, part] = ways / sets
                kept = (1 - fraction) ** (size - part)
                lost_chance[burst, size, part] = (
                    comb(size, part) * fraction**part * kept
                )
        order, firsts = _by_class(lay, int(lay.burst_unit[burst]))
        orders.append(order)
        classes.append(firsts)
    most = max((len(firsts) for firsts in classes), default=1)
    class_first = np.zeros((bursts, most), dtype=np.int32)
    for burst, firsts in enumerate(classes):
        class_first[burst] = len(lay.members)
        class_first[burst, : len(firsts)] = firsts
    aims = Aims(
        fewest,
        last,
        subset_chance,
        lost_chance,
        np.array(orders, dtype=np.int32).reshape(bursts, len(lay.members)),
        class_first,
        np.zeros((bursts, most - 1, last - fewest + 1)),
    )
    _fill_classes(lay, tables(lay), aims, strike_tables(lay, aims))
    return aims


def strike_tables(lay: GroupConstants, aims: Aims) -> StrikeTables:
    """Return working memory for strikes."""
    width = lay.members.shape[1]
    count = aims.last - aims.fewest + 1
    return StrikeTables(
        unit=np.zeros(width, dtype=np.int32),
        held=np.zeros(width, dtype=np.int32),
        chance=np.zeros((width + 1, width + 2, width + 2)),
        struck=np.zeros(max(lay.threats.burst_units, default=0), dtype=np.int32),
        lost=np.zeros(width, dtype=np.int32),
        drive=np.zeros(width, dtype=np.int32),
        is_lost=np.zeros(width, dtype=np.int32),
        failed_groups=np.zeros(count),
        intact_groups=np.zeros(count),
        reached=np.zeros(count),
    )


def _by_class(lay: GroupConstants, kind: int) -> tuple[Ints, Ints]:
    """Return the groups in the order of their classes, and where each class begins."""
    groups, width = lay.members.shape
    # Most groups are of the first class, with at most one shard on a unit.
    number_of = {bytes([1] * width): 0}
    class_of = np.zeros(groups, dtype=np.int32)
    for start in range(0, groups, _CHUNK):
        members = lay.members[start : start + _CHUNK]
        units = np.where(members < 0, -1, lay.unit_of[kind][members])
        # Shards of the group in the same unit, or 0 for a hole.
        together = np.zeros(members.shape, dtype=np.uint8)
        for shard in range(width):
            together += units == units[:, shard, None]
        together[members < 0] = 0
        uneven = np.flatnonzero((together != 1).any(axis=1))
        spreads, index = np.unique(
            np.sort(together[uneven], axis=1), axis=0, return_inverse=True
        )
        numbers = [
            number_of.setdefault(spread.tobytes(), len(number_of)) for spread in spreads
        ]
        class_of[start + uneven] = np.array(numbers, dtype=np.int32)[index.ravel()]
    sizes = np.bincount(class_of, minlength=len(number_of))
    order = np.argsort(class_of, kind="stable").astype(np.int32)
    return order, np.append(0, np.cumsum(sizes)).astype(np.int32)


@compiled
def _fill_classes(
    lay: GroupConstants, tab: GroupTables, aims: Aims, work: StrikeTables
) -> None:
    """Fill `class_expected`, from the first group of each class."""
    fill(lay, tab)
    bursts, classes, count = aims.class_expected.shape
    for burst in range(bursts):
        for number in range(classes):
            first = aims.class_first[burst, number]
            size = aims.class_first[burst, number + 1] - first
            if size == 0:
                continue
            group = aims.by_class[burst, first]
            units = _spread(lay, tab, work, burst, group, False)
            missing = tab.missing[group]
            for aim in range(count):
                chance = _aim_chance(aims, work, burst, units, missing, aim)
                aims.class_expected[burst, number, aim] = size * chance


@inner
def _spread(
    lay: GroupConstants,
    tab: GroupTables,
    work: StrikeTables,
    burst: int,
    group: int,
    healthy: bool,
) -> int:
    """List the units of a group's drives, only the healthy ones if so asked, and return their number."""
    kind = lay.burst_unit[burst]
    units = 0
    for shard in range(lay.members.shape[1]):
        drive = lay.members[group, shard]
        if drive < 0 or (healthy and tab.down[drive] > 0):
            continue
        unit = lay.unit_of[kind, drive]
        at = 0
        while at < units and work.unit[at] != unit:
            at += 1
        if at == units:
            work.unit[at] = unit
            work.held[at] = 0
            units += 1
        work.held[at] += 1
    return units


@inner
def _aim_chance(
    aims: Aims, work: StrikeTables, burst: int, units: int, missing: int, aim: int
) -> float:
    """Return the probability that a strike takes a group from some missing shards to an aim.

    It fills `chance` for the group listed in `unit` and `held`.
    """
    wanted = aims.fewest + aim - missing
    if wanted <= 0:
        return 0.0
    for struck in range(units + 1):
        for left in range(wanted + 1):
            work.chance[units, struck, left] = 0.0
        work.chance[units, struck, 0] = aims.subset_chance[burst, units, struck]
    for at in range(units - 1, -1, -1):
        for struck in range(at + 1):
            for left in range(wanted + 1):
                chance = work.chance[at + 1, struck, left]
                for lost in range(work.held[at] + 1):
                    chance += _struck_chance(
                        aims, work, burst, aim, at, struck, left, lost
                    )
                work.chance[at, struck, left] = chance
    return float(work.chance[0, 0, wanted])


@inner
def _struck_chance(
    aims: Aims,
    work: StrikeTables,
    burst: int,
    aim: int,
    at: int,
    struck: int,
    left: int,
    lost: int,
) -> float:
    """Return the probability that a unit is struck, loses some shards, and the group reaches the aim."""
    is_last = aims.fewest + aim == aims.last
    if lost > left and not is_last:
        return 0.0
    rest = work.chance[at + 1, struck + 1, max(0, left - lost)]
    return float(aims.lost_chance[burst, work.held[at], lost] * rest)


@inner
def expect(
    lay: GroupConstants,
    st: States,
    at: int,
    tab: GroupTables,
    aims: Aims,
    work: StrikeTables,
    burst: int,
) -> None:
    """Compute how many groups a strike at a state is expected to take to each aim.

    The results are `failed_groups` and `intact_groups`.
    """
    aims_count = len(work.reached)
    for aim in range(aims_count):
        work.failed_groups[aim] = 0.0
        work.intact_groups[aim] = _expected_without_failures(aims, burst, aim)
    for slot in range(st.failed[at]):
        drive = st.drive[at, slot]
        for i in range(lay.first[drive], lay.first[drive + 1]):
            group = lay.group[i]
            if tab.seen[group]:
                continue
            tab.seen[group] = 1
            units = _spread(lay, tab, work, burst, group, False)
            holes = _holes(lay, group)
            for aim in range(aims_count):
                chance = _aim_chance(aims, work, burst, units, holes, aim)
                work.intact_groups[aim] -= chance
            units = _spread(lay, tab, work, burst, group, True)
            missing = tab.missing[group]
            for aim in range(aims_count):
                chance = _aim_chance(aims, work, burst, units, missing, aim)
                work.failed_groups[aim] += chance
    _forget(lay, st, at, tab, 0)
    for aim in range(aims_count):
        rounding = _ROUNDING * _expected_without_failures(aims, burst, aim)
        if work.intact_groups[aim] <= rounding:
            work.intact_groups[aim] = 0.0


@inner
def _expected_without_failures(aims: Aims, burst: int, aim: int) -> float:
    """Return how many groups a strike takes to an aim, expected for a cluster without failures."""
    total = 0.0
    for number in range(aims.class_expected.shape[1]):
        total += aims.class_expected[burst, number, aim]
    return total


@inner
def _holes(lay: GroupConstants, group: int) -> int:
    """Count the shards of a group that never had a drive."""
    holes = 0
    for shard in range(lay.members.shape[1]):
        holes += lay.members[group, shard] < 0
    return holes


@inner
def _forget(
    lay: GroupConstants, st: States, at: int, tab: GroupTables, slot: int
) -> None:
    """Clear `seen` of the groups on failed drives, from a slot on."""
    for later in range(slot, st.failed[at]):
        drive = st.drive[at, later]
        for i in range(lay.first[drive], lay.first[drive + 1]):
            tab.seen[lay.group[i]] = 0


@inner
def strike_all(
    lay: GroupConstants,
    st: States,
    at: int,
    tab: GroupTables,
    aims: Aims,
    work: StrikeTables,
    burst: int,
    aim: int,
    rng: State,
) -> float:
    """Strike all units of a burst at the same time, and return the weight, −1 without room.

    The strike is drawn at random for aim −1. `expect` must have been called for this state and burst. The
    strikes of aim −1 and of each aim with an expectation above 0 estimate together: the sum of a quantity
    times the weight, over one strike of each, has the expectation of the quantity after a random strike.
    """
    units = 0
    struck = 0
    decided = 0
    if aim >= 0:
        group = _pick_group(lay, st, at, tab, aims, work, burst, aim, rng)
        units = _spread(lay, tab, work, burst, group, True)
        missing = tab.missing[group]
        _aim_chance(aims, work, burst, units, missing, aim)
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
    aims: Aims,
    work: StrikeTables,
    burst: int,
    aim: int,
    rng: State,
) -> int:
    """Draw a group in proportion to the probability that the strike takes it to the aim."""
    failed = work.failed_groups[aim]
    draw = uniform(rng) * (failed + work.intact_groups[aim])
    if draw < failed:
        return _pick_failed(lay, st, at, tab, aims, work, burst, aim, draw)
    while True:
        number = _pick_class(aims, burst, aim, rng)
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
    aims: Aims,
    work: StrikeTables,
    burst: int,
    aim: int,
    draw: float,
) -> int:
    """Return the group with failed drives at a place in the sum of their probabilities."""
    picked = -1
    for slot in range(st.failed[at]):
        drive = st.drive[at, slot]
        for i in range(lay.first[drive], lay.first[drive + 1]):
            group = lay.group[i]
            if draw < 0 or tab.seen[group]:
                continue
            tab.seen[group] = 1
            units = _spread(lay, tab, work, burst, group, True)
            missing = tab.missing[group]
            chance = _aim_chance(aims, work, burst, units, missing, aim)
            if chance > 0:
                picked = group
                draw -= chance
    _forget(lay, st, at, tab, 0)
    return picked


@inner
def _pick_class(aims: Aims, burst: int, aim: int, rng: State) -> int:
    """Draw a class in proportion to its expected groups."""
    draw = uniform(rng) * _expected_without_failures(aims, burst, aim)
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
            chance = _struck_chance(aims, work, burst, aim, at, struck, left, lost)
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
            drive = lay.unit_drives[kind, index]
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
            group = lay.group[i]
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
            group = lay.group[i]
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

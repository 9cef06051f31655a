"""Compute the probability that a burst takes a placement group to a number of missing shards, the *aim*."""

from math import comb
from typing import Final, NamedTuple

import numpy as np

from stripesim.sim.durability.draws import compiled, inner, wide
from stripesim.sim.durability.system import Code, Floats, Ints
from stripesim.sim.durability.walks.groups import (
    GroupConstants,
    GroupTables,
    States,
    fill,
    tables,
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
            group = wide(aims.by_class[burst, first])
            units = spread(lay, tab, work, burst, group, False)
            missing = wide(tab.missing[group])
            for aim in range(count):
                chance = aim_chance(aims, work, burst, units, missing, aim)
                aims.class_expected[burst, number, aim] = size * chance


@inner
def spread(
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
def aim_chance(
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
                    chance += struck_chance(
                        aims, work, burst, aim, at, struck, left, lost
                    )
                work.chance[at, struck, left] = chance
    return float(work.chance[0, 0, wanted])


@inner
def struck_chance(
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
        work.intact_groups[aim] = expected_without_failures(aims, burst, aim)
    for slot in range(st.failed[at]):
        drive = st.drive[at, slot]
        for i in range(lay.first[drive], lay.first[drive + 1]):
            group = wide(lay.group[i])
            if tab.seen[group]:
                continue
            tab.seen[group] = 1
            units = spread(lay, tab, work, burst, group, False)
            holes = _holes(lay, group)
            for aim in range(aims_count):
                chance = aim_chance(aims, work, burst, units, holes, aim)
                work.intact_groups[aim] -= chance
            units = spread(lay, tab, work, burst, group, True)
            missing = wide(tab.missing[group])
            for aim in range(aims_count):
                chance = aim_chance(aims, work, burst, units, missing, aim)
                work.failed_groups[aim] += chance
    forget(lay, st, at, tab, wide(0))
    for aim in range(aims_count):
        rounding = _ROUNDING * expected_without_failures(aims, burst, aim)
        if work.intact_groups[aim] <= rounding:
            work.intact_groups[aim] = 0.0


@inner
def expected_without_failures(aims: Aims, burst: int, aim: int) -> float:
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
def forget(
    lay: GroupConstants, st: States, at: int, tab: GroupTables, slot: int
) -> None:
    """Clear `seen` of the groups on failed drives, from a slot on."""
    for later in range(slot, st.failed[at]):
        drive = st.drive[at, later]
        for i in range(lay.first[drive], lay.first[drive + 1]):
            tab.seen[lay.group[i]] = 0

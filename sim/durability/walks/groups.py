"""One walk over placement groups: drives fail and groups are rebuilt until a level is reached.

The *level* measures how close the worst placement group is to loss: 0 is complete, `tolerated` is
critical and `tolerated` + 1 is lost. `stage` takes walks from recorded states to states at the next
level. Failures of drives in the worst groups are drawn more often than they happen, and each walk
carries the likelihood ratio as its weight.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stripesim.sim.durability import draws
from stripesim.sim.durability.draws import State, compiled, inner, uniform, wide
from stripesim.sim.durability.system import Floats, Ints

#: Values of `States.lane` while no shard of a failed drive is being rebuilt.
WAITING: Final = -1
DETECTING: Final = -2
PAUSED: Final = -3

#: Values of `States.status`.
MISSING: Final = 0
REBUILDING: Final = 1
REBUILT: Final = 2

#: Values of `States.review`: rebuilds of a failed drive go on as they are, a lane is free, or groups came
#: nearer to loss.
SETTLED: Final = 0
LANE_FREE: Final = 1
GROUPS_WORSE: Final = 2

#: Steps that take a shard from its group, and return it.
TAKE: Final = wide(1)
RETURN: Final = wide(-1)


class GroupConstants(NamedTuple):
    """The constants of a walk.

    Attributes
    ----------
    threats
        Causes of failures.
    members
        Drive of each shard, −1 for none, shape (groups, width).
    first, group, shard
        The shards of drive d are at first[d] … first[d + 1] - 1: placement group and number in it.
    unit_of
        Number of the drive, host, rack and site of each drive, 0 if unknown, shape (4, drives).
    unit_counts
        Number of drives, hosts, racks and sites, shape (4,).
    unit_drives, unit_first
        The drives of unit u of a kind are unit_drives[kind, unit_first[kind, u]] … up to
        unit_first[kind, u + 1], in ascending order. Shapes (4, drives) and (4, most units + 1).
    burst_unit
        Kind of the units that each burst strikes: 0 drives, 1 hosts, 2 racks.
    distances
        As in `Code`, or empty.
    shard_s
        Time to rebuild one shard, beside those in the other lanes [s].
    lanes
        Shards of a failed drive that are rebuilt at the same time, each in a lane.
    replacement_s
        Time from the use of a spare until a new one is available [s].
    policy
        0 parallel, 1 serial, 2 shared.
    pool_of
        Pool of each drive. Serial rebuilds take turns within it.
    fixed, prioritised
        As in `DriveRepair`.
    spares
        Number of spare drives, −1 for no limit.
    """

    threats: draws.Threats
    members: Ints
    first: Ints
    group: Ints
    shard: npt.NDArray[np.uint8]
    unit_of: Ints
    unit_counts: Ints
    unit_drives: Ints
    unit_first: Ints
    burst_unit: Ints
    distances: npt.NDArray[np.uint8]
    shard_s: float
    lanes: int
    replacement_s: float
    policy: int
    pool_of: Ints
    fixed: bool
    prioritised: bool
    spares: int


class States(NamedTuple):
    """Recorded states, one per element of the first axis.

    Attributes
    ----------
    time_s, virtual_s
        Real time, and the progress of a repair that shares nothing [s].
    failed
        Number of failed drives. The remainder of a row of `drive` is unused.
    drive, lane
        Failed drives, and the lane of each that ends first, or `WAITING`, `DETECTING`, or `PAUSED` after
        its rebuild began, shape (states, room).
    ready_s
        End of detection (real time) or of that lane (virtual time) [s], shape (states, room).
    review
        What has changed since lanes were last assigned, shape (states, room).
    in_lane, end_s
        The shard in each lane, −1 for none, and the end of its rebuild (virtual time) [s], shape (states,
        room, lanes).
    status
        `MISSING`, `REBUILDING` or `REBUILT` for each shard, shape (states, room, most shards of a drive).
    burst, struck_left
        The current burst, and the number of units that it still strikes.
    struck
        Units struck so far, shape (states, most units).
    born_s
        Time at which each drive was new [s], shape (states, drives or 0).
    spares_due_s
        Time at which each used spare is replaced [s], shape (states, spares or 0).
    cause
        Cause of each level, shape (states, tolerated + 2).
    lost
        Groups lost at the end.
    """

    time_s: Floats
    virtual_s: Floats
    failed: Ints
    drive: Ints
    lane: Ints
    ready_s: Floats
    review: npt.NDArray[np.uint8]
    in_lane: Ints
    end_s: Floats
    status: npt.NDArray[np.uint8]
    burst: Ints
    struck_left: Ints
    struck: Ints
    born_s: Floats
    spares_due_s: Floats
    cause: Ints
    lost: Floats


class GroupTables(NamedTuple):
    """A walk's state by group, level and drive. `down` is 1 + the slot of a failed drive."""

    missing: npt.NDArray[np.uint8]
    mask: Ints
    levels: Ints
    intact: Ints  # `levels` of a system without failures.
    kept: Ints  # `levels` of a state to return to.
    down: Ints
    seen: Ints
    worst: Ints


class Bounds(NamedTuple):
    """The end of a walk.

    Attributes
    ----------
    target
        Level that the walk is to reach.
    floor
        Level below which it ends.
    until_s
        Time when it ends [s].
    ends_at_burst
        True if it ends when a burst strikes.
    """

    target: int
    floor: int
    until_s: float
    ends_at_burst: bool


@inner
def level_of(lay: GroupConstants, tab: GroupTables, group: int) -> int:
    """Return how close a group is to loss."""
    if len(lay.distances):
        return int(lay.threats.tolerated + 1 - lay.distances[tab.mask[group]])
    return int(min(tab.missing[group], lay.threats.tolerated + 1))


@inner
def _move(lay: GroupConstants, tab: GroupTables, i: int, step: int) -> int:
    """Take a shard from its group (step 1) or return it (−1), and return the group's new level."""
    group = wide(lay.group[i])
    tab.levels[level_of(lay, tab, group)] -= 1
    tab.missing[group] += step
    if len(lay.distances):
        tab.mask[group] ^= 1 << int(lay.shard[i])
    level = level_of(lay, tab, group)
    tab.levels[level] += 1
    return level


def tables(lay: GroupConstants) -> GroupTables:
    """Return empty tables."""
    groups = len(lay.members)
    levels = lay.threats.tolerated + 2
    return GroupTables(
        missing=np.zeros(groups, dtype=np.uint8),
        mask=np.zeros(groups, dtype=np.int32),
        levels=np.zeros(levels, dtype=np.int32),
        intact=np.zeros(levels, dtype=np.int32),
        kept=np.zeros(levels, dtype=np.int32),
        down=np.zeros(len(lay.first) - 1, dtype=np.int32),
        seen=np.zeros(groups, dtype=np.int32),
        worst=np.empty(groups, dtype=np.int32),
    )


@inner
def copy_counts(source: Ints, target: Ints) -> None:
    """Copy the number of groups at each level."""
    for level in range(len(source)):
        target[level] = source[level]


@inner
def fill(lay: GroupConstants, tab: GroupTables) -> None:
    """Fill the tables for a system without failures, in which only holes of the layout are missing."""
    groups, width = lay.members.shape
    for group in range(groups):
        for shard in range(width):
            if lay.members[group, shard] < 0:
                tab.missing[group] += 1
                tab.mask[group] |= 1 << shard
        tab.levels[level_of(lay, tab, group)] += 1
    copy_counts(tab.levels, tab.intact)


@inner
def place_failed(
    lay: GroupConstants, st: States, at: int, tab: GroupTables, step: int
) -> None:
    """Enter a state's failed drives into the tables (step 1), or remove them (−1)."""
    for slot in range(st.failed[at]):
        drive = st.drive[at, slot]
        tab.down[drive] = slot + 1 if step > 0 else 0
        for i in range(lay.first[drive], lay.first[drive + 1]):
            if st.status[at, slot, i - lay.first[drive]] != REBUILT:
                _move(lay, tab, i, step)


@inner
def _cause(lay: GroupConstants, tab: GroupTables, drive: int, group: int) -> int:
    """Return how close an independently failed drive is to those that its group had lost before."""
    cause = draws.ELSEWHERE
    for shard in range(lay.members.shape[1]):
        member = lay.members[group, shard]
        if member < 0 or member == drive or tab.down[member] == 0:
            continue
        if _same_unit(lay, 1, member, drive):
            cause = draws.SAME_HOST
        elif _same_unit(lay, 2, member, drive):
            cause = max(cause, draws.SAME_RACK)
    return cause


@inner
def _same_unit(lay: GroupConstants, kind: int, first: int, second: int) -> bool:
    """Return True if two drives are in the same one of several units of a kind."""
    if lay.unit_counts[kind] <= 1:
        return False
    return bool(lay.unit_of[kind, first] == lay.unit_of[kind, second])


@inner
def strike_drive(
    lay: GroupConstants,
    st: States,
    at: int,
    tab: GroupTables,
    worst: int,
    drive: int,
    why: int,
    rng: State,
) -> tuple[int, float]:
    """Fail a drive, and return the new level, −1 without room, and the likelihood ratio of the draws."""
    slot = st.failed[at]
    tolerated = lay.threats.tolerated
    held = lay.first[drive + 1] - lay.first[drive]
    if held == 0:
        return worst, 1.0
    if slot >= st.drive.shape[1]:
        return -1, 1.0
    tab.down[drive] = slot + 1
    st.failed[at] = slot + 1
    st.drive[at, slot] = drive
    st.lane[at, slot] = DETECTING
    st.ready_s[at, slot] = st.time_s[at] + lay.threats.detection_s
    st.review[at, slot] = LANE_FREE
    st.in_lane[at, slot, :] = -1
    st.status[at, slot, :] = MISSING
    before = worst
    for i in range(lay.first[drive], lay.first[drive + 1]):
        level = _move(lay, tab, i, TAKE)
        group = wide(lay.group[i])
        if lay.prioritised and tab.missing[group] > 1:
            _review_others(lay, st, at, tab, group)
        if level > worst:
            cause = why
            if why == draws.ELSEWHERE:
                cause = _cause(lay, tab, drive, group)
            for step in range(max(1, before + 1), level + 1):
                st.cause[at, step] = cause
            worst = level
    has_errors, ratio = meet_errors(lay, tab, drive, rng)
    if has_errors and worst <= tolerated:
        for step in range(max(1, before + 1), tolerated + 2):
            st.cause[at, step] = draws.SECTOR
        worst = tolerated + 1
    return worst, ratio


@inner
def _review_others(
    lay: GroupConstants, st: States, at: int, tab: GroupTables, group: int
) -> None:
    """Note that a group came nearer to loss, for each failed drive that rebuilds it."""
    for shard in range(lay.members.shape[1]):
        member = lay.members[group, shard]
        if member >= 0 and tab.down[member] > 0:
            st.review[at, tab.down[member] - 1] = GROUPS_WORSE


@inner
def meet_errors(
    lay: GroupConstants, tab: GroupTables, drive: int, rng: State
) -> tuple[bool, float]:
    """Draw which last rebuilds of the critical groups of a failed drive meet a latent error, which is loss.

    Return whether any does, and the likelihood ratio.
    """
    if lay.threats.sector_errors <= 0:
        return False, 1.0
    tolerated = lay.threats.tolerated
    first = lay.first[drive]
    stop = lay.first[drive + 1]
    critical = 0
    for i in range(first, stop):
        critical += level_of(lay, tab, wide(lay.group[i])) == tolerated
    has_errors = False
    ratio = 1.0
    for i in range(first, stop):
        group = wide(lay.group[i])
        if level_of(lay, tab, group) != tolerated:
            continue
        healthy = lay.members.shape[1] - tab.missing[group]
        errors = lay.threats.sector_errors * healthy * (1.0 / (stop - first))
        chance = -np.expm1(-errors)
        lost, drawn = draws.sector_lost(lay.threats, chance, critical, rng)
        ratio *= drawn
        if lost:
            has_errors = True
            tab.levels[tolerated] -= 1
            tab.levels[tolerated + 1] += 1
    return has_errors, ratio


@inner
def worst_level(tab: GroupTables) -> int:
    """Return the highest level of any group."""
    level = len(tab.levels) - 1
    while level > 0 and tab.levels[level] == 0:
        level -= 1
    return level


@inner
def _strike_unit(
    lay: GroupConstants,
    st: States,
    at: int,
    tab: GroupTables,
    level: int,
    weight: float,
    rng: State,
) -> tuple[float, int]:
    """Strike the next unit of a burst, and return the weight, −1 without room, and the drives lost.

    Units are struck one by one at the same time, so that splitting sees each step.
    """
    which = st.burst[at]
    kind = lay.burst_unit[which]
    position = lay.threats.burst_units[which] - st.struck_left[at]
    unit = 0
    fresh = False
    while not fresh:
        unit = int(uniform(rng) * lay.unit_counts[kind])
        fresh = True
        for earlier in range(position):
            fresh = fresh and st.struck[at, earlier] != unit
    st.struck[at, position] = unit
    st.struck_left[at] -= 1
    taken = 0
    for index in range(lay.unit_first[kind, unit], lay.unit_first[kind, unit + 1]):
        drive = wide(lay.unit_drives[kind, index])
        if tab.down[drive] > 0:
            continue
        lost, ratio = draws.loses_data(lay.threats, which, rng)
        weight *= ratio
        if lost:
            level, ratio = strike_drive(
                lay, st, at, tab, level, drive, draws.AS_ONE + which, rng
            )
            weight *= ratio
            taken += 1
            if level < 0:
                return -1.0, 0
    return weight, taken


@inner
def _begin(
    lay: GroupConstants, st: States, at: int, tab: GroupTables, rng: State
) -> None:
    """Assign free lanes to missing shards, within the limits of policy and spares.

    If groups are prioritised, a shard of a group nearer to loss takes the lane of one that is further from
    it. The latter starts again later. If the drives of a pool are rebuilt one at a time, so does a drive.
    """
    most = worst_level(tab) if lay.prioritised else 0
    pool = -1
    nearest = -1
    for slot in range(st.failed[at]):
        if st.review[at, slot] == SETTLED or st.lane[at, slot] == DETECTING:
            continue
        if lay.policy == 1:
            own_pool = lay.pool_of[st.drive[at, slot]]
            if most > 1 and own_pool != pool:
                pool = own_pool
                nearest = _nearest_to_loss(lay, st, at, tab, pool, most)
                _pause_others(lay, st, at, pool, nearest)
            if 0 <= nearest != slot or not _is_only_one(lay, st, at, slot):
                continue
        if _needs_spare(lay, st, at, slot) and not _takes_spare(lay, st, at, slot):
            continue
        for lane in range(lay.lanes):
            if st.in_lane[at, slot, lane] >= 0:
                continue
            wanted, _ = _worst_missing(lay, st, at, tab, slot, most)
            if wanted < 0:
                break
            _start(lay, st, at, slot, lane, wanted, rng)
        if st.review[at, slot] == GROUPS_WORSE:
            _make_way(lay, st, at, tab, slot, most, rng)
        st.review[at, slot] = SETTLED
        _find_first(st, at, slot)


@inner
def _takes_spare(lay: GroupConstants, st: States, at: int, slot: int) -> bool:
    """Take a spare for a failed drive. Without a free one, try again when the next one arrives."""
    spare = _free_spare(lay, st, at)
    if spare >= 0:
        st.spares_due_s[at, spare] = st.time_s[at] + lay.replacement_s
        return True
    st.lane[at, slot] = DETECTING
    st.ready_s[at, slot] = np.inf
    for number in range(lay.spares):
        st.ready_s[at, slot] = min(st.ready_s[at, slot], st.spares_due_s[at, number])
    return False


@inner
def _is_only_one(lay: GroupConstants, st: States, at: int, slot: int) -> bool:
    """Return True if no other failed drive of a drive's pool is being rebuilt."""
    pool = lay.pool_of[st.drive[at, slot]]
    for other in range(st.failed[at]):
        is_active = other != slot and st.lane[at, other] >= 0
        if is_active and lay.pool_of[st.drive[at, other]] == pool:
            return False
    return True


@inner
def _nearest_to_loss(
    lay: GroupConstants, st: States, at: int, tab: GroupTables, pool: int, most: int
) -> int:
    """Return the failed drive of a pool nearest to loss among those that can be rebuilt, −1 for none.

    Among equals it is the one being rebuilt, or else the first. No group is at a level above `most`.
    """
    nearest = -1
    worst = -1
    for slot in range(st.failed[at]):
        if st.lane[at, slot] == DETECTING or lay.pool_of[st.drive[at, slot]] != pool:
            continue
        if _needs_spare(lay, st, at, slot) and _free_spare(lay, st, at) < 0:
            continue
        level = _worst_lost(lay, st, at, tab, slot, most)
        if level > worst or (level == worst and st.lane[at, slot] >= 0):
            worst = level
            nearest = slot
    return nearest


@inner
def _worst_lost(
    lay: GroupConstants, st: States, at: int, tab: GroupTables, slot: int, most: int
) -> int:
    """Return the highest level, up to `most`, of the groups that a failed drive has not rebuilt."""
    first = lay.first[st.drive[at, slot]]
    worst = 0
    for i in range(first, lay.first[st.drive[at, slot] + 1]):
        if st.status[at, slot, i - first] != REBUILT:
            worst = max(worst, level_of(lay, tab, lay.group[i]))
            if worst >= most:
                break
    return worst


@inner
def _pause_others(
    lay: GroupConstants, st: States, at: int, pool: int, only: int
) -> None:
    """Take the lanes of all failed drives of a pool but one. Their shards start again later."""
    if only < 0:
        return
    for slot in range(st.failed[at]):
        is_other = slot != only and lay.pool_of[st.drive[at, slot]] == pool
        if not is_other or st.lane[at, slot] < 0:
            continue
        for lane in range(lay.lanes):
            shard = st.in_lane[at, slot, lane]
            if shard >= 0:
                st.status[at, slot, shard] = MISSING
                st.in_lane[at, slot, lane] = -1
        st.lane[at, slot] = PAUSED
        st.review[at, slot] = max(LANE_FREE, st.review[at, slot])


@inner
def _needs_spare(lay: GroupConstants, st: States, at: int, slot: int) -> bool:
    """Return True if spares are counted, and the rebuild of a failed drive has not begun."""
    if lay.spares < 0 or st.lane[at, slot] != WAITING:
        return False
    drive = st.drive[at, slot]
    return _rebuilt(st, at, slot, lay.first[drive + 1] - lay.first[drive]) == 0


@inner
def _worst_missing(
    lay: GroupConstants, st: States, at: int, tab: GroupTables, slot: int, most: int
) -> tuple[int, int]:
    """Return a failed drive's missing shard of the group nearest to loss, −1 for none, and its level.

    No group is at a level above `most`. It is 0 if all groups count as equal.
    """
    first = lay.first[st.drive[at, slot]]
    worst = -1
    wanted = -1
    for i in range(first, lay.first[st.drive[at, slot] + 1]):
        if st.status[at, slot, i - first] == MISSING:
            level = level_of(lay, tab, lay.group[i]) if most > 0 else 0
            if level > worst:
                worst = level
                wanted = i - first
            if level >= most:
                break
    return wanted, worst


@inner
def _make_way(
    lay: GroupConstants,
    st: States,
    at: int,
    tab: GroupTables,
    slot: int,
    most: int,
    rng: State,
) -> None:
    """Give lanes to missing shards of groups that are nearer to loss than those being rebuilt."""
    first = lay.first[st.drive[at, slot]]
    while True:
        wanted, level = _worst_missing(lay, st, at, tab, slot, most)
        if wanted < 0:
            return
        yielding = -1
        for lane in range(lay.lanes):
            held = level_of(lay, tab, lay.group[first + st.in_lane[at, slot, lane]])
            if held < level:
                level = held
                yielding = lane
        if yielding < 0:
            return
        st.status[at, slot, st.in_lane[at, slot, yielding]] = MISSING
        _start(lay, st, at, slot, yielding, wanted, rng)


@inner
def _start(
    lay: GroupConstants,
    st: States,
    at: int,
    slot: int,
    lane: int,
    shard: int,
    rng: State,
) -> None:
    """Start to rebuild a shard of a failed drive in a lane."""
    length_s = lay.shard_s
    if not lay.fixed:
        length_s *= draws.exponential(rng)
    st.status[at, slot, shard] = REBUILDING
    st.in_lane[at, slot, lane] = shard
    st.end_s[at, slot, lane] = st.virtual_s[at] + length_s


@inner
def _find_first(st: States, at: int, slot: int) -> None:
    """Find the lane of a failed drive that ends first."""
    st.lane[at, slot] = WAITING
    st.ready_s[at, slot] = np.inf
    for lane in range(st.in_lane.shape[2]):
        is_taken = st.in_lane[at, slot, lane] >= 0
        if is_taken and st.end_s[at, slot, lane] < st.ready_s[at, slot]:
            st.lane[at, slot] = lane
            st.ready_s[at, slot] = st.end_s[at, slot, lane]


@inner
def _rebuilt(st: States, at: int, slot: int, held: int) -> int:
    """Count the rebuilt ones of a failed drive's shards."""
    count = 0
    for position in range(held):
        count += st.status[at, slot, position] == REBUILT
    return count


@inner
def _active(st: States, at: int) -> int:
    """Count the failed drives that are being rebuilt."""
    active = 0
    for slot in range(st.failed[at]):
        active += st.lane[at, slot] >= 0
    return active


@inner
def _free_spare(lay: GroupConstants, st: States, at: int) -> int:
    """Return a free spare, or −1."""
    free = -1
    for spare in range(lay.spares):
        if st.spares_due_s[at, spare] <= st.time_s[at]:
            free = spare
    return free


@inner
def _mend(
    lay: GroupConstants, st: States, at: int, slot: int, tab: GroupTables
) -> None:
    """Finish the shard in a failed drive's first lane. Remove the drive from the list after its last."""
    drive = st.drive[at, slot]
    first = lay.first[drive]
    stop = lay.first[drive + 1]
    shard = st.in_lane[at, slot, st.lane[at, slot]]
    _move(lay, tab, first + shard, RETURN)
    st.status[at, slot, shard] = REBUILT
    st.in_lane[at, slot, st.lane[at, slot]] = -1
    st.review[at, slot] = max(LANE_FREE, st.review[at, slot])
    _find_first(st, at, slot)
    if _rebuilt(st, at, slot, stop - first) == stop - first:
        last = st.failed[at] - 1
        tab.down[drive] = 0
        if slot != last:
            tab.down[st.drive[at, last]] = slot + 1
            copy_drive(st, at, last, at, slot)
        st.failed[at] = last
        if st.born_s.shape[1]:
            st.born_s[at, drive] = st.time_s[at]


@inner
def copy_drive(
    st: States, source: int, source_slot: int, target: int, slot: int
) -> None:
    """Copy a failed drive of one state to a place in another."""
    st.drive[target, slot] = st.drive[source, source_slot]
    st.lane[target, slot] = st.lane[source, source_slot]
    st.ready_s[target, slot] = st.ready_s[source, source_slot]
    st.review[target, slot] = st.review[source, source_slot]
    for lane in range(st.in_lane.shape[2]):
        st.in_lane[target, slot, lane] = st.in_lane[source, source_slot, lane]
        st.end_s[target, slot, lane] = st.end_s[source, source_slot, lane]
    for position in range(st.status.shape[2]):
        st.status[target, slot, position] = st.status[source, source_slot, position]


@inner
def _find_worst(
    lay: GroupConstants, st: States, at: int, tab: GroupTables, level: int
) -> int:
    """List the groups at a level in `worst`. `seen` marks them meanwhile."""
    count = 0
    for slot in range(st.failed[at]):
        drive = st.drive[at, slot]
        for i in range(lay.first[drive], lay.first[drive + 1]):
            group = wide(lay.group[i])
            if tab.seen[group] == 0 and level_of(lay, tab, group) == level:
                tab.seen[group] = 1
                tab.worst[count] = group
                count += 1
    for i in range(count):
        tab.seen[tab.worst[i]] = 0
    return count


@inner
def _next_due(
    lay: GroupConstants, st: States, at: int, until_s: float
) -> tuple[int, float, float]:
    """Return the drive whose detection or rebuild ends first (−1 for none), that time, and the pace."""
    active = _active(st, at)
    pace = 1.0
    if lay.policy == 2 and active > 1:
        pace = 1.0 / active
    first_slot = -1
    first_s = until_s
    for slot in range(st.failed[at]):
        if st.lane[at, slot] >= 0:
            due = st.time_s[at] + (st.ready_s[at, slot] - st.virtual_s[at]) / pace
        elif st.lane[at, slot] == DETECTING:
            due = st.ready_s[at, slot]
        else:
            continue
        if due < first_s:
            first_slot = slot
            first_s = due
    return first_slot, first_s, pace


@inner
def _healthy(lay: GroupConstants, tab: GroupTables, group: int) -> int:
    """Count the healthy drives of a group."""
    count = 0
    for shard in range(lay.members.shape[1]):
        drive = lay.members[group, shard]
        count += drive >= 0 and tab.down[drive] == 0
    return count


@inner
def _pick_exposed(
    lay: GroupConstants, tab: GroupTables, worst_count: int, rng: State
) -> int:
    """Draw a healthy drive of one of the worst groups, or return −1."""
    group = tab.worst[int(uniform(rng) * worst_count)]
    wanted = int(uniform(rng) * _healthy(lay, tab, group))
    drive = -1
    for shard in range(lay.members.shape[1]):
        member = lay.members[group, shard]
        if member >= 0 and tab.down[member] == 0:
            if wanted == 0:
                drive = member
            wanted -= 1
    return drive


@inner
def _helped(
    lay: GroupConstants,
    tab: GroupTables,
    drive: int,
    level: int,
    bias: float,
    worst_count: int,
) -> float:
    """Return the rate at which a drive's failure is drawn in excess of its own [1/s]."""
    if level == 0:
        return bias / len(tab.down)
    drawn = 0.0
    for i in range(lay.first[drive], lay.first[drive + 1]):
        group = wide(lay.group[i])
        if level_of(lay, tab, group) == level:
            drawn += bias / worst_count / _healthy(lay, tab, group)
    return drawn


@inner
def walk(
    lay: GroupConstants,
    st: States,
    at: int,
    tab: GroupTables,
    bounds: Bounds,
    rng: State,
) -> tuple[float, int]:
    """Advance one walk, and return its weight (−1 without room) and its events.

    The weight is 0 if the walk ends before it reaches the target level.
    """
    threats = lay.threats
    drives = len(tab.down)
    fastest = draws.largest(threats.hazards)
    bursts = draws.total(threats.drawn_rates)
    extra = bursts - draws.total(threats.burst_rates)
    weight = 1.0
    events = 0
    worst_count = 0
    known_level = -1
    known_count = -1
    while True:
        level = worst_level(tab)
        # A burst that destroys a group goes on to strike its other units, and may destroy more.
        destroys = level > threats.tolerated and st.struck_left[at] > 0
        if level >= bounds.target and not destroys:
            return weight, events
        if st.struck_left[at] > 0:
            weight, taken = _strike_unit(lay, st, at, tab, level, weight, rng)
            events += taken
            if weight < 0:
                return weight, events
            known_level = -1
            continue
        if level < bounds.floor:
            return 0.0, events
        _begin(lay, st, at, tab, rng)
        bias = 0.0
        if level != known_level:
            # Back at this level, as many groups may be others.
            known_level = -1
        if threats.bias_s[level] > 0 and level == 0:
            bias = max(0.0, 1.0 / threats.horizon_s - drives * fastest)
        elif threats.bias_s[level] > 0:
            # One event cannot both take one group out of the worst level and bring another in.
            if known_level != level or known_count != tab.levels[level]:
                worst_count = _find_worst(lay, st, at, tab, level)
                known_level = level
                known_count = tab.levels[level]
            if worst_count:
                exposed = min(drives, worst_count * lay.members.shape[1])
                bias = max(0.0, 0.7 / threats.bias_s[level] - fastest * exposed)
        first_slot, first_s, pace = _next_due(lay, st, at, bounds.until_s)
        now = st.time_s[at]
        rate = drives * fastest + bias + bursts
        step = draws.next_event_s(rate, rng)
        if now + step >= first_s:
            span = max(0.0, first_s - now)
            if first_slot < 0:
                st.time_s[at] = max(now, first_s)
                st.virtual_s[at] += span * pace
                return 0.0, events
            weight *= np.exp((bias + extra) * span)
            st.time_s[at] = max(now, first_s)
            events += 1
            if st.lane[at, first_slot] == DETECTING:
                st.virtual_s[at] += span * pace
                st.lane[at, first_slot] = WAITING
            else:
                st.virtual_s[at] = st.ready_s[at, first_slot]
                _mend(lay, st, at, first_slot, tab)
            continue
        weight *= np.exp((bias + extra) * step)
        st.time_s[at] = now + step
        st.virtual_s[at] += step * pace
        draw = uniform(rng) * rate
        if draw < bursts and bounds.ends_at_burst:
            return 0.0, events
        if draw < bursts:
            weight *= draws.begin_burst(threats, st, at, draw)
            continue
        forced = draw < bursts + bias
        if forced and level > 0:
            drive = _pick_exposed(lay, tab, worst_count, rng)
        else:
            drive = int(uniform(rng) * drives)
        if drive < 0 or tab.down[drive]:
            continue
        own = fastest
        if st.born_s.shape[1] > 0:
            own = draws.hazard(threats, st.time_s[at] - st.born_s[at, drive])
            if not forced and uniform(rng) * fastest >= own:
                continue
        if bias > 0:
            weight *= own / (own + _helped(lay, tab, drive, level, bias, worst_count))
        level, ratio = strike_drive(
            lay, st, at, tab, level, drive, draws.ELSEWHERE, rng
        )
        weight *= ratio
        events += 1
        if level < 0:
            return -1.0, events


def stage(
    lay: GroupConstants, st: States, target: int, seed: int, weights: Floats
) -> int:
    """Walk from states until the target level or the horizon, each in its own element.

    Parameters
    ----------
    lay
        The constants of a walk.
    st
        The states, changed in place.
    target
        The level to reach.
    seed
        Seed of the random streams.
    weights
        Receives the likelihood ratio of each walk that reached the level, 0 for others.

    Returns
    -------
    int
        Total of failures, repairs and strikes, or −1 if the list of failed drives overflowed.
    """
    rng = np.zeros(1, dtype=np.uint64)
    return _stage(lay, st, tables(lay), target, seed, rng, weights)


@compiled
def _stage(
    lay: GroupConstants,
    st: States,
    tab: GroupTables,
    target: int,
    seed: int,
    rng: State,
    weights: Floats,
) -> int:
    """Walk with empty tables and the state of a random stream."""
    fill(lay, tab)
    bounds = Bounds(target, 0, lay.threats.horizon_s, False)
    total = 0
    for number in range(len(weights)):
        if st.lost[number] > 0:
            weights[number] = 1.0
            continue
        draws.seeded(rng, seed, number)
        place_failed(lay, st, number, tab, TAKE)
        weight, events = walk(lay, st, number, tab, bounds, rng)
        if weight < 0:
            return -1
        total += events
        weights[number] = weight
        st.lost[number] = tab.levels[lay.threats.tolerated + 1]
        place_failed(lay, st, number, tab, RETURN)
        copy_counts(tab.intact, tab.levels)
    return total

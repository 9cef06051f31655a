"""One walk over placement groups, compiled: drives fail, groups are rebuilt, until a level is reached.

A *level* is how near the worst placement group is to loss: 0 whole, `tolerated` critical, `tolerated` + 1
lost. `stage` starts walks from recorded states and records the states in which they reach the next level.
Failures of drives in the worst groups are drawn more often than they happen, and each walk carries the
likelihood ratio as its weight.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stripesim.sim.durability.draws import compiled, exponential, seeded, uniform
from stripesim.sim.durability.system import Floats, Ints

__all__ = ["AS_ONE", "ELSEWHERE", "SAME_HOST", "SAME_RACK", "SECTOR", "Layout", "States", "stage"]

#: Causes of a step to a higher level; a burst b is `BURST` + b.
ELSEWHERE: Final = 0
SAME_RACK: Final = 1
SAME_HOST: Final = 2
SECTOR: Final = 3
AS_ONE: Final = 8

#: What a failed drive does when no item of it is being rebuilt.
WAITING: Final = -1
DETECTING: Final = -2

_SECTOR_DRAWN: Final = 0.2


class Layout(NamedTuple):
    """What stays the same during a walk.

    Parameters
    ----------
    members : ndarray of int32, shape (groups, width)
        Drive of each shard, -1 for none.
    first, group, shard : ndarray of int32
        The shards of drive d are at first[d] … first[d + 1] - 1: placement group and number in it.
    unit_of, unit_drives : ndarray of int32
        Shape (3, drives): number of the drive, host and rack of each drive (all 0 where there is none).
    unit_counts : ndarray of int32, shape (3,)
    distances : ndarray of uint8
        As in `Code`, or empty.
    tolerated : int
    edges_s, hazards : ndarray of float64
        The lifetime's pieces.
    burst_rates, burst_lost : ndarray of float64; burst_unit, burst_units : ndarray of int32
    drawn_rates, drawn_lost : ndarray of float64
        The rates, and probabilities that a drive loses its data, with which bursts are drawn instead.
    bias_s : ndarray of float64, shape (tolerated + 1,)
        Within how long a failure is hoped for at each level; 0 leaves chance as it is.
    item_s, detection_s, horizon_s, sector_errors, replacement_s : float
    policy : int
        0 parallel, 1 serial, 2 shared.
    fixed, prioritised : bool
    spares : int
        -1: no limit.
    """

    members: Ints
    first: Ints
    group: Ints
    shard: Ints
    unit_of: Ints
    unit_counts: Ints
    distances: npt.NDArray[np.uint8]
    tolerated: int
    edges_s: Floats
    hazards: Floats
    burst_rates: Floats
    burst_lost: Floats
    drawn_rates: Floats
    drawn_lost: Floats
    burst_unit: Ints
    burst_units: Ints
    bias_s: Floats
    item_s: float
    detection_s: float
    horizon_s: float
    sector_errors: float
    replacement_s: float
    policy: int
    fixed: bool
    prioritised: bool
    spares: int


class States(NamedTuple):
    """Recorded states, one in each element of the first axis.

    Parameters
    ----------
    time_s, virtual_s : ndarray of float64
        Now, and how far a repair that shares nothing would have come.
    failed : ndarray of int32
        Failed drives; the rest of a row of `drive` is unused.
    drive, item : ndarray of int32, shape (states, room)
        Failed drives, and the shard of each that is being rebuilt, or `WAITING`, or `DETECTING`.
    ready_s : ndarray of float64, shape (states, room)
        When that is done: detection in real, rebuilding in virtual time.
    done : ndarray of uint8, shape (states, room, most shards of a drive)
    burst, struck_left : ndarray of int32
        The burst that is striking, and how many units it has left.
    struck : ndarray of int32, shape (states, most units)
    born_s : ndarray of float64, shape (states, drives or 0)
        When each drive was new.
    spares_due_s : ndarray of float64, shape (states, spares or 0)
        When each used spare is free again.
    cause : ndarray of int32, shape (states, tolerated + 2)
        What led to each level.
    lost : ndarray of float64
        Groups lost, at the end.
    """

    time_s: Floats
    virtual_s: Floats
    failed: Ints
    drive: Ints
    item: Ints
    ready_s: Floats
    done: npt.NDArray[np.uint8]
    burst: Ints
    struck_left: Ints
    struck: Ints
    born_s: Floats
    spares_due_s: Floats
    cause: Ints
    lost: Floats


@compiled
def _level(lay: Layout, missing: Ints, mask: Ints, group: int) -> int:  # pragma: no cover - compiled
    """How near a group is to loss."""
    if len(lay.distances):
        return int(lay.tolerated + 1 - lay.distances[mask[group]])
    return int(min(missing[group], lay.tolerated + 1))


@compiled
def _hazard(lay: Layout, age_s: float) -> float:  # pragma: no cover - compiled
    piece = len(lay.edges_s) - 1
    while piece > 0 and lay.edges_s[piece] > age_s:
        piece -= 1
    return float(lay.hazards[piece])


@compiled
def _strike(  # pragma: no cover - compiled
    lay: Layout, st: States, at: int, missing: Ints, mask: Ints, levels: Ints, down: Ints, worst: int,
    drive: int, why: int, rng: npt.NDArray[np.uint64],
) -> tuple[int, float]:  # fmt: skip
    """Fail a drive; return the level afterwards and the likelihood ratio of what was drawn."""
    slot = st.failed[at]
    if lay.first[drive] == lay.first[drive + 1]:
        # It holds nothing.
        return worst, 1.0
    if slot >= st.drive.shape[1]:
        return -1, 1.0
    down[drive] = slot + 1
    st.failed[at] = slot + 1
    st.drive[at, slot] = drive
    st.item[at, slot] = DETECTING
    st.ready_s[at, slot] = st.time_s[at] + lay.detection_s
    st.done[at, slot, :] = 0
    ratio, before = 1.0, worst
    for i in range(lay.first[drive], lay.first[drive + 1]):
        group = lay.group[i]
        levels[_level(lay, missing, mask, group)] -= 1
        missing[group] += 1
        mask[group] |= 1 << lay.shard[i]
        level = _level(lay, missing, mask, group)
        cause = why
        if level == lay.tolerated and lay.sector_errors > 0:
            # One latent error among the shards that the critical group's rebuild reads is loss.
            healthy = lay.members.shape[1] - missing[group]
            share = 1.0 / max(1, lay.first[drive + 1] - lay.first[drive])
            chance = -np.expm1(-lay.sector_errors * healthy * share)
            drawn = max(chance, _SECTOR_DRAWN) if lay.bias_s[lay.tolerated] > 0 else chance
            if uniform(rng) < drawn:
                ratio *= chance / drawn
                level, cause = lay.tolerated + 1, SECTOR
            else:
                ratio *= (1 - chance) / (1 - drawn)
        levels[level] += 1
        if level > worst:
            if why == ELSEWHERE and cause == ELSEWHERE:
                for shard in range(lay.members.shape[1]):
                    other = lay.members[group, shard]
                    if other >= 0 and other != drive and down[other] > 0:
                        if lay.unit_counts[1] > 1 and lay.unit_of[1, other] == lay.unit_of[1, drive]:
                            cause = SAME_HOST
                        elif lay.unit_counts[2] > 1 and lay.unit_of[2, other] == lay.unit_of[2, drive]:
                            cause = max(cause, SAME_RACK)
            for step in range(max(1, before + 1), level + 1):
                st.cause[at, step] = cause
            worst = level
    return worst, ratio


@compiled
def _begin(  # pragma: no cover - compiled
    lay: Layout, st: States, at: int, missing: Ints, mask: Ints, rng: npt.NDArray[np.uint64]
) -> None:
    """Give every failed drive that waits something to rebuild, as far as the policy and spares allow."""
    active = 0
    for slot in range(st.failed[at]):
        active += st.item[at, slot] >= 0
    for slot in range(st.failed[at]):
        if st.item[at, slot] != WAITING or (lay.policy == 1 and active):
            continue
        drive = st.drive[at, slot]
        first, stop = lay.first[drive], lay.first[drive + 1]
        if lay.spares >= 0 and not st.done[at, slot, : stop - first].any():
            free = -1
            for spare in range(lay.spares):
                if st.spares_due_s[at, spare] <= st.time_s[at]:
                    free = spare
            if free < 0:
                # Looked at again when the next spare arrives.
                st.item[at, slot] = DETECTING
                st.ready_s[at, slot] = st.spares_due_s[at].min() if lay.spares else np.inf
                continue
            st.spares_due_s[at, free] = st.time_s[at] + lay.replacement_s
        best, chosen = -1, -1
        for i in range(first, stop):
            if st.done[at, slot, i - first] == 0:
                level = _level(lay, missing, mask, lay.group[i]) if lay.prioritised else 0
                if level > best:
                    best, chosen = level, i - first
        st.item[at, slot] = chosen
        length = lay.item_s if lay.fixed else lay.item_s * exponential(rng)
        st.ready_s[at, slot] = st.virtual_s[at] + length
        active += 1


@compiled
def _mend(  # pragma: no cover - compiled
    lay: Layout, st: States, at: int, slot: int, missing: Ints, mask: Ints, levels: Ints, down: Ints
) -> None:
    """Finish what a failed drive was having rebuilt; take the drive out of the list after its last."""
    drive = st.drive[at, slot]
    first, stop = lay.first[drive], lay.first[drive + 1]
    i = first + st.item[at, slot]
    group = lay.group[i]
    levels[_level(lay, missing, mask, group)] -= 1
    missing[group] -= 1
    mask[group] &= ~(1 << lay.shard[i])
    levels[_level(lay, missing, mask, group)] += 1
    st.done[at, slot, st.item[at, slot]] = 1
    st.item[at, slot] = WAITING
    if st.done[at, slot, : stop - first].all():
        last = st.failed[at] - 1
        down[drive] = 0
        if slot != last:
            down[st.drive[at, last]] = slot + 1
            st.drive[at, slot] = st.drive[at, last]
            st.item[at, slot] = st.item[at, last]
            st.ready_s[at, slot] = st.ready_s[at, last]
            st.done[at, slot] = st.done[at, last]
        st.failed[at] = last
        if st.born_s.shape[1]:
            st.born_s[at, drive] = st.time_s[at]


@compiled
def _find_worst(  # pragma: no cover - compiled
    lay: Layout, st: States, at: int, missing: Ints, mask: Ints, level: int, seen: Ints, worst: Ints
) -> int:
    """List the groups at a level; `seen` marks them."""
    count = 0
    for slot in range(st.failed[at]):
        drive = st.drive[at, slot]
        for i in range(lay.first[drive], lay.first[drive + 1]):
            group = lay.group[i]
            if seen[group] == 0 and _level(lay, missing, mask, group) == level:
                seen[group] = 1
                worst[count] = group
                count += 1
    for i in range(count):
        seen[worst[i]] = 0
    return count


@compiled
def _copied(starts: States, pick: int, ends: States, at: int) -> int:  # pragma: no cover - compiled
    """Copy a recorded state; return how many drives have failed in it."""
    count = starts.failed[pick]
    ends.time_s[at] = starts.time_s[pick]
    ends.virtual_s[at] = starts.virtual_s[pick]
    ends.failed[at] = count
    ends.drive[at, :count] = starts.drive[pick, :count]
    ends.item[at, :count] = starts.item[pick, :count]
    ends.ready_s[at, :count] = starts.ready_s[pick, :count]
    ends.done[at, :count] = starts.done[pick, :count]
    ends.burst[at] = starts.burst[pick]
    ends.struck_left[at] = starts.struck_left[pick]
    ends.struck[at] = starts.struck[pick]
    ends.born_s[at] = starts.born_s[pick]
    ends.spares_due_s[at] = starts.spares_due_s[pick]
    ends.cause[at] = starts.cause[pick]
    ends.lost[at] = starts.lost[pick]
    return int(count)


@compiled
def _healthy(lay: Layout, group: int, down: Ints) -> int:  # pragma: no cover - compiled
    count = 0
    for shard in range(lay.members.shape[1]):
        drive = lay.members[group, shard]
        count += drive >= 0 and down[drive] == 0
    return count


@compiled
def stage(  # pragma: no cover - compiled
    lay: Layout,
    starts: States,
    picks: npt.NDArray[np.int64],
    target: int,
    seed: int,
    ends: States,
    weights: Floats,
) -> int:
    """Walk from picked states until the target level or the horizon; walk w ends in element w of `ends`.

    Writes the likelihood ratio of each walk that reached the level (0 for others) into `weights`; returns the
    failures, repairs and strikes in all, or -1 if the list of failed drives overflowed.
    """
    drives = len(lay.first) - 1
    groups, width = lay.members.shape
    missing = np.zeros(groups, dtype=np.int32)
    mask = np.zeros(groups, dtype=np.int32)
    seen = np.zeros(groups, dtype=np.int32)
    worst_list = np.empty(groups, dtype=np.int32)
    down = np.zeros(drives, dtype=np.int32)
    levels = np.zeros(lay.tolerated + 2, dtype=np.int32)
    levels[0] = groups
    holes = 0
    for group in range(groups):
        for shard in range(width):
            if lay.members[group, shard] < 0:
                missing[group] += 1
                mask[group] |= 1 << shard
                holes += 1
        if missing[group]:
            levels[0] -= 1
            levels[_level(lay, missing, mask, group)] += 1
    fastest = lay.hazards.max()
    ageing = starts.born_s.shape[1] > 0
    bursts = lay.drawn_rates.sum()
    extra = bursts - lay.burst_rates.sum()
    events = 0
    rng = np.zeros(1, dtype=np.uint64)
    for walk in range(len(picks)):
        seeded(rng, seed, walk)
        # The end's element is the walk's own memory.
        at = walk
        count = _copied(starts, picks[walk], ends, at)
        if ends.lost[at] > 0:
            weights[walk] = 1.0
            continue
        for slot in range(count):
            drive = ends.drive[at, slot]
            down[drive] = slot + 1
            for i in range(lay.first[drive], lay.first[drive + 1]):
                if ends.done[at, slot, i - lay.first[drive]] == 0:
                    group = lay.group[i]
                    levels[_level(lay, missing, mask, group)] -= 1
                    missing[group] += 1
                    mask[group] |= 1 << lay.shard[i]
                    levels[_level(lay, missing, mask, group)] += 1
        weight, worst_count, bias = 1.0, 0, 0.0
        known_level, known_count = -1, -1
        while True:
            level = lay.tolerated + 1
            while level > 0 and levels[level] == 0:
                level -= 1
            if level >= target:
                break
            now = ends.time_s[at]
            if ends.struck_left[at] > 0:
                # Bursts strike unit by unit, at one moment, so that splitting sees each step.
                which = ends.burst[at]
                kind = lay.burst_unit[which]
                position = lay.burst_units[which] - ends.struck_left[at]
                unit, fresh = 0, False
                while not fresh:
                    unit = int(uniform(rng) * lay.unit_counts[kind])
                    fresh = True
                    for earlier in range(position):
                        fresh = fresh and ends.struck[at, earlier] != unit
                ends.struck[at, position] = unit
                ends.struck_left[at] -= 1
                start, stop = (unit, unit + 1) if kind == 0 else (0, drives)
                for drive in range(start, stop):
                    if lay.unit_of[kind, drive] != unit or down[drive] > 0:
                        continue
                    chance, drawn = lay.burst_lost[which], lay.drawn_lost[which]
                    if drawn < 1 and uniform(rng) >= drawn:
                        weight *= (1 - chance) / (1 - drawn)
                    else:
                        weight *= chance / drawn if drawn > 0 else 1.0
                        why = AS_ONE + which
                        level, ratio = _strike(
                            lay, ends, at, missing, mask, levels, down, level, drive, why, rng
                        )
                        weight *= ratio
                        events += 1
                        if level < 0:
                            return -1
                known_level = -1
                continue
            _begin(lay, ends, at, missing, mask, rng)
            if lay.bias_s[level] > 0:
                if level == 0:
                    bias = max(0.0, 1.0 / lay.horizon_s - drives * fastest)
                else:
                    # One event cannot take one group out of the worst level and another one in.
                    if known_level != level or known_count != levels[level]:
                        worst_count = _find_worst(lay, ends, at, missing, mask, level, seen, worst_list)
                        known_level, known_count = level, levels[level]
                    natural = fastest * min(drives, worst_count * width)
                    bias = max(0.0, 0.7 / lay.bias_s[level] - natural) if worst_count else 0.0
            else:
                bias = 0.0
            active = 0
            first_slot, first_s = -1, lay.horizon_s
            for slot in range(ends.failed[at]):
                active += ends.item[at, slot] >= 0
            pace = 1.0 / active if lay.policy == 2 and active > 1 else 1.0
            for slot in range(ends.failed[at]):
                if ends.item[at, slot] >= 0:
                    due = now + (ends.ready_s[at, slot] - ends.virtual_s[at]) / pace
                elif ends.item[at, slot] == DETECTING:
                    due = ends.ready_s[at, slot]
                else:
                    continue
                if due < first_s:
                    first_slot, first_s = slot, due
            rate = drives * fastest + bias + bursts
            step = exponential(rng) / rate if rate > 0 else np.inf
            if now + step >= first_s:
                if first_slot < 0:
                    weight = 0.0
                    break
                span = max(0.0, first_s - now)
                weight *= np.exp((bias + extra) * span)
                ends.time_s[at] = max(now, first_s)
                events += 1
                if ends.item[at, first_slot] == DETECTING:
                    ends.virtual_s[at] += span * pace
                    ends.item[at, first_slot] = WAITING
                else:
                    ends.virtual_s[at] = ends.ready_s[at, first_slot]
                    _mend(lay, ends, at, first_slot, missing, mask, levels, down)
                continue
            weight *= np.exp((bias + extra) * step)
            ends.time_s[at] = now + step
            ends.virtual_s[at] += step * pace
            draw = uniform(rng) * rate
            if draw < bursts:
                which = 0
                while draw >= lay.drawn_rates[which] and which < len(lay.drawn_rates) - 1:
                    draw -= lay.drawn_rates[which]
                    which += 1
                weight *= lay.burst_rates[which] / lay.drawn_rates[which]
                ends.burst[at] = which
                ends.struck_left[at] = lay.burst_units[which]
                continue
            if draw < bursts + bias and level > 0:
                group = worst_list[int(uniform(rng) * worst_count)]
                wanted = int(uniform(rng) * _healthy(lay, group, down))
                drive = -1
                for shard in range(width):
                    other = lay.members[group, shard]
                    if other >= 0 and down[other] == 0:
                        if wanted == 0:
                            drive = other
                        wanted -= 1
                if drive < 0:
                    continue
                forced = True
            else:
                drive = int(uniform(rng) * drives)
                if down[drive]:
                    continue
                forced = draw < bursts + bias
            hazard = fastest
            if ageing:
                hazard = _hazard(lay, ends.time_s[at] - ends.born_s[at, drive])
                if not forced and uniform(rng) * fastest >= hazard:
                    continue
            if bias > 0:
                drawn = 0.0
                if level == 0:
                    drawn = bias / drives
                else:
                    for i in range(lay.first[drive], lay.first[drive + 1]):
                        group = lay.group[i]
                        if _level(lay, missing, mask, group) == level:
                            drawn += bias / worst_count / _healthy(lay, group, down)
                weight *= hazard / (hazard + drawn)
            level, ratio = _strike(lay, ends, at, missing, mask, levels, down, level, drive, ELSEWHERE, rng)
            weight *= ratio
            events += 1
            if level < 0:
                return -1
        weights[walk] = weight
        ends.lost[at] = levels[lay.tolerated + 1]
        # Leave the tables as they were.
        for slot in range(ends.failed[at]):
            drive = ends.drive[at, slot]
            down[drive] = 0
            for i in range(lay.first[drive], lay.first[drive + 1]):
                if ends.done[at, slot, i - lay.first[drive]] == 0:
                    group = lay.group[i]
                    missing[group] -= 1
                    mask[group] &= ~(1 << lay.shard[i])
        levels[:] = 0
        levels[0] = groups
        if holes:
            for group in range(groups):
                levels[0] -= 1
                levels[_level(lay, missing, mask, group)] += 1
    return events

"""Schedule the backfill of full-size PGs, each of which first waits for reservations on its OSDs."""

import heapq
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stripesim.scenarios.answers.rehearse.exact_movement import ExactMovement
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures.background.reservations import Reservations
from stripesim.sim.observe.intervals import Interval, student_interval

# Waves into which the PGs of a change are cut, in the order in which their backfills start.
_WAVES_MAX = 10
# Fewest waves for an interval.
_WAVES_MIN = 4


class Backfill(NamedTuple):
    """A PG to backfill, with its acting primary and its target OSDs."""

    lead: int
    targets: tuple[int, ...]


def backfills_of(exact: ExactMovement, *, by_log: bool = False) -> list[Backfill]:
    """Return the PGs that a change moves, in ascending order.

    Recovery `by_log` is led by the new primary, and reserves all members. Here the primary of a replicated PG
    is the first of its up set.
    """
    targets_of: dict[int, set[int]] = {}
    movement = exact.movement
    for group, osd in zip(
        movement.groups.tolist(), movement.targets.tolist(), strict=True
    ):
        targets_of.setdefault(group, set()).add(osd)
    backfills = []
    for group in sorted(targets_of):
        if by_log:
            members = [osd for osd in exact.up_after[group] if osd != NO_OSD]
            backfills.append(Backfill(members[0], tuple(sorted(members[1:]))))
            continue
        # The old members act until the new ones are filled (pg_temp).
        lead = next(osd for osd in exact.up_before[group] if osd != NO_OSD)
        targets = tuple(sorted(targets_of[group] - {lead}))
        backfills.append(Backfill(lead, targets))
    return backfills


def schedule_s(
    backfills: Sequence[Backfill],
    *,
    group_s: float | Sequence[float],
    slots: int,
    osds: int,
) -> float:
    """Return the time until all PGs are backfilled [s]. See `backfill_spans`."""
    spans = backfill_spans(backfills, group_s=group_s, slots=slots, osds=osds)
    return max((end_s for _, end_s in spans), default=0.0)


def backfill_spans(
    backfills: Sequence[Backfill],
    *,
    group_s: float | Sequence[float],
    slots: int,
    osds: int,
) -> list[tuple[float, float]]:
    """Return when the backfill of each PG starts and ends [s].

    Parameters
    ----------
    backfills
        The PGs to backfill.
    group_s
        Time to backfill a PG once it has its reservations [s], one for all or one for each.
    slots
        Reservations that each OSD grants as primary, and again as target (``osd_max_backfills``).
    osds
        Number of OSDs.
    """
    times_s = group_s
    if not isinstance(times_s, Sequence):
        times_s = [times_s] * len(backfills)
    reservations = Reservations(slots, osds)
    running: list[tuple[float, int]] = []
    spans = [(0.0, 0.0)] * len(backfills)
    now_s = 0.0
    for number, backfill in enumerate(backfills):
        reservations.ask(number, 0, backfill.lead, backfill.targets)
    while True:
        for number, *_ in reservations.granted():
            if not reservations.ask_next(number):
                end_s = now_s + times_s[number]
                spans[number] = (now_s, end_s)
                heapq.heappush(running, (end_s, number))
        if not running:
            return spans
        now_s, number = heapq.heappop(running)
        reservations.release(number, *backfills[number])


def object_time(backfills: Mapping[str, Sequence[float]]) -> Interval | None:
    """Return the mean time that a PG takes for an object [s], with a 95 % interval from waves of backfill.

    Parameters
    ----------
    backfills
        Backfilled PGs in order of their start, as `describe_changes` lists them.

    Returns
    -------
    Interval or None
        None if nothing was backfilled. The interval is Student's, of the means of up to ten waves of equal
        numbers of PGs. Fewer than four PGs give none.

    Notes
    -----
    Waves rather than PGs are the sample, because PGs that move at the same time share drives and networks.
    """
    objects = np.array(backfills["objects"], dtype=np.float64)
    if not objects.sum():
        return None
    times_s = np.subtract(backfills["end_s"], backfills["start_s"])
    mean_s = float(times_s.sum() / objects.sum())
    waves = np.array_split(np.arange(len(objects)), min(_WAVES_MAX, len(objects)))
    means_s = [times_s[wave].sum() / objects[wave].sum() for wave in waves]
    half_s = student_interval(means_s, least=_WAVES_MIN).half
    if half_s is None:
        return Interval(mean_s, None, None)
    return Interval(mean_s, mean_s - half_s, mean_s + half_s)

"""The PGs that a change backfills, and the time that each takes for an object."""

from collections.abc import Mapping, Sequence

import numpy as np

from stripesim.scenarios.answers.rehearse.exact_movement import ExactMovement
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures.background.reservations import Backfill, backfills_of
from stripesim.sim.observe.intervals import Interval, student_interval

# Waves into which the PGs of a change are cut, in the order in which their backfills start.
_WAVES_MAX = 10
# Fewest waves for an interval.
_WAVES_MIN = 4


def reserved_groups(exact: ExactMovement, *, by_log: bool = False) -> list[Backfill]:
    """Return the PGs that a change moves with the OSDs that they reserve, in ascending order.

    Recovery `by_log` is led by the new primary, and reserves all members. Here the primary of a replicated PG
    is the first of its up set.
    """
    if not by_log:
        return backfills_of(exact.movement, exact.up_before)
    groups = np.unique(exact.movement.groups).tolist()
    members_of = (
        [osd for osd in exact.up_after[group] if osd != NO_OSD] for group in groups
    )
    return [Backfill(lead, tuple(sorted(others))) for lead, *others in members_of]


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

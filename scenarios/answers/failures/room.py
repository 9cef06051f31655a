"""Fill OSDs with the shards that move after a failure, as far as ``backfillfull_ratio`` allows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Shift:
    """A placement group that moves, with the bytes of one shard [B]."""

    sources: Sequence[int]
    targets: Sequence[int]
    shard_bytes: float
    is_backfilled: bool = True  # False if it recovers by its log


def used_after(used_bytes: FloatArray, shifts: Sequence[Shift]) -> FloatArray:
    """Return the bytes on each OSD once all shards have moved, whether there is room or not."""
    after = used_bytes.copy()
    for shift in shifts:
        after[list(shift.targets)] += shift.shard_bytes
        after[list(shift.sources)] -= shift.shard_bytes
    return after


def without_room(
    used_bytes: FloatArray,
    shifts: Sequence[Shift],
    limit_bytes: FloatArray,
    full_bytes: FloatArray,
) -> list[int]:
    """Return the indices of the shifts that stay in ``backfill_toofull`` or ``recovery_toofull``.

    Parameters
    ----------
    used_bytes
        Bytes on each OSD before, shape (osds,).
    shifts
        Placement groups that move.
    limit_bytes
        Capacity of each OSD times ``backfillfull_ratio``, shape (osds,).
    full_bytes
        Capacity of each OSD times ``full_ratio``, shape (osds,).

    Notes
    -----
    A target refuses a backfill that would lift it above its limit (Ceph v16.2.15,
    ``OSDService::tentative_backfill_full``). The group tries again later. A group that has moved frees its
    old shards. Groups try in order, again and again until no further group can move. A recovery by the log
    begins unless a target is full by then (``PeeringState::WaitLocalRecoveryReserved``).
    """
    used = used_bytes.copy()
    waiting = list(range(len(shifts)))
    while waiting:
        refused = []
        for index in waiting:
            shift = shifts[index]
            targets = list(shift.targets)
            has_room = used[targets] <= full_bytes[targets]
            if shift.is_backfilled:
                has_room = used[targets] + shift.shard_bytes <= limit_bytes[targets]
            if not has_room.all():
                refused.append(index)
                continue
            used[targets] += shift.shard_bytes
            used[list(shift.sources)] -= shift.shard_bytes
        if len(refused) == len(waiting):
            break
        waiting = refused
    return waiting

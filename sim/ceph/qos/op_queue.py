"""Ceph's op queues as shares of a pool of worker threads."""

from collections.abc import Callable
from dataclasses import dataclass

from stripesim.models import qos
from stripesim.sim.engine.shares import MCLOCK, WPQ, Share, ShareClass

# Classes of items. Immediate ones are sub-operations of a client's operation.
CLIENT, RECOVERY, BEST_EFFORT, IMMEDIATE = range(4)


@dataclass(frozen=True)
class OpQueue:
    """The queue from which the worker threads of an OSD take their items.

    Each queue of an OSD has its part of the capacity (``mClockScheduler::update_configuration``).
    """

    share: Share  #: Weights, reservations and limits of the classes
    cost: Callable[[int], int]  #: Cost of an item by its size [B]
    #: Size for which the start of an object's recovery counts; its messages are immediate then [B].
    #: 0: every step counts for the bytes it moves
    recovery_item_bytes: int = 0
    is_mclock: bool = False  #: True for mClock
    #: Class of the recovery of objects that only move: best effort since v18 (``src/osd/PeeringState.h``,
    #: ``get_recovery_op_priority``: neither degraded nor undersized)
    move_class: int = RECOVERY


def wpq() -> OpQueue:
    """Return the weighted priority queue.

    Sub-operations have the priority of their client's operation, and replies are strict. Here both are
    strict, as under mClock, where both are ``immediate``.

    References
    ----------
    Ceph v16.2.15, ``src/osd/scheduler/OpScheduler.h`` (``ClassedOpQueueScheduler``).
    """
    classes = (
        ShareClass(weight=qos.CLIENT_OP_PRIORITY),
        ShareClass(weight=qos.RECOVERY_OP_PRIORITY),
        ShareClass(weight=qos.SCRUB_PRIORITY),
        ShareClass(strict=qos.CUT_OFF_PRIORITY),
    )
    return OpQueue(Share(WPQ, classes), cost=_at_least_one)


def _at_least_one(item_bytes: int) -> int:
    return max(item_bytes, 1)


def mclock(
    generation: str,
    profile: qos.Profile | None = None,
    device: qos.Device = "ssd",
    *,
    queues: int = 1,
    measured_iops: float | None = None,
) -> OpQueue:
    """Return a release's mClock.

    Parameters
    ----------
    generation
        Release of Ceph.
    profile
        Profile, None for the release's default.
    device
        Kind of drive, which decides the capacity.
    queues
        Queues of an OSD, which share its capacity.
    measured_iops
        Random writes of 4 KiB that Ceph measured on the drive [1/s], None for the default capacity.
    """
    defaults = qos.mclock_defaults(generation)
    if measured_iops is not None:
        defaults = defaults.measured(measured_iops, device)
    allocations = defaults.profiles[profile or defaults.profile]
    rate = defaults.rate(device) / queues

    def share_class(allocation: qos.Allocation) -> ShareClass:
        return ShareClass(
            weight=allocation.weight,
            reservation=round(allocation.reservation_fraction * rate),
            limit=round(allocation.limit_fraction * rate),
        )

    classes = (
        share_class(allocations.client),
        share_class(allocations.recovery),
        share_class(allocations.best_effort),
        ShareClass(strict=qos.CUT_OFF_PRIORITY),
    )
    return OpQueue(
        Share(MCLOCK, classes),
        cost=lambda item_bytes: defaults.cost(item_bytes, device),
        is_mclock=True,
        recovery_item_bytes=0 if defaults.bytes_based else qos.RECOVERY_ITEM_BYTES,
        move_class=BEST_EFFORT if defaults.bytes_based else RECOVERY,
    )

"""Ceph's op queues as shares of a pool of worker threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stripesim.models.qos import (
    CLIENT_OP_PRIORITY,
    CUT_OFF_PRIORITY,
    RECOVERY_OP_PRIORITY,
    SCRUB_PRIORITY,
    Allocation,
    Device,
    Profile,
    mclock_defaults,
)
from stripesim.sim.engine.shares import MCLOCK, WPQ, Share, ShareClass

# Classes of items. Immediate: what OSDs ask of each other for a client's operation.
CLIENT, RECOVERY, BEST_EFFORT, IMMEDIATE = range(4)


@dataclass(frozen=True)
class OpQueue:
    """How the worker threads of an OSD choose what comes next.

    Parameters
    ----------
    share : Share
        Of the OSD's pool of worker threads.
    cost : callable
        Cost of an item by its bytes.

    Notes
    -----
    Deviation: Ceph has a queue for each of an OSD's shards and gives each its part of the capacity; here
    the threads of an OSD have one queue, with the whole.
    """

    share: Share
    cost: Callable[[int], int]


def wpq() -> OpQueue:
    """Return the weighted priority queue.

    Notes
    -----
    Sub-operations have the priority of their client's operation, and replies are strict; here both are
    strict, as under mClock, where both are ``immediate``.

    References
    ----------
    Ceph v16.2.15, ``src/osd/scheduler/OpScheduler.h`` (``ClassedOpQueueScheduler``).
    """
    classes = (
        ShareClass(weight=CLIENT_OP_PRIORITY),
        ShareClass(weight=RECOVERY_OP_PRIORITY),
        ShareClass(weight=SCRUB_PRIORITY),
        ShareClass(strict=CUT_OFF_PRIORITY),
    )
    return OpQueue(Share(WPQ, classes), cost=_at_least_one)


def _at_least_one(item_bytes: int) -> int:
    return max(item_bytes, 1)


def mclock(generation: str, profile: Profile | None = None, device: Device = "ssd") -> OpQueue:
    """Return mClock with a profile.

    Parameters
    ----------
    generation : str
        The release: costs and allocations differ.
    profile : str, optional
        None: the release's default.
    device : str
        Kind of device, for the capacity.
    """
    defaults = mclock_defaults(generation)
    given = defaults.profiles[profile or defaults.profile]
    rate = defaults.rate(device)

    def share_class(allocation: Allocation) -> ShareClass:
        return ShareClass(
            weight=allocation.weight,
            reservation=round(allocation.reservation_fraction * rate),
            limit=round(allocation.limit_fraction * rate),
        )

    classes = (
        share_class(given.client),
        share_class(given.recovery),
        share_class(given.best_effort),
        ShareClass(strict=CUT_OFF_PRIORITY),
    )
    return OpQueue(Share(MCLOCK, classes), cost=lambda item_bytes: defaults.cost(item_bytes, device))

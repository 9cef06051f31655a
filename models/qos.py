"""Priorities of clients, recovery and background work in an OSD's op queue, for WPQ and mClock.

Two versions of the code were read: v17.2 (costs as times, commit 06a093ea) and v18.2 onwards (costs in bytes,
commit 5a4ed80e). v17.2.7 and later have the latter, too (pull request 49973 of ceph/ceph).

References
----------
Ceph, ``src/osd/scheduler/mClockScheduler.cc``; defaults in ``src/common/options/osd.yaml.in``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Device = Literal["ssd", "hdd"]
Profile = Literal["high_client_ops", "balanced", "high_recovery_ops"]
PROFILES: tuple[Profile, ...] = ("high_client_ops", "balanced", "high_recovery_ops")

# WPQ: osd_client_op_priority, osd_recovery_op_priority, osd_scrub_priority. Priorities from
# osd_op_queue_cut_off ("high", CEPH_MSG_PRIO_HIGH) upwards are strict, which includes replies between OSDs.
CLIENT_OP_PRIORITY = 63
RECOVERY_OP_PRIORITY = 3
SCRUB_PRIORITY = 5
CUT_OFF_PRIORITY = 196

# osd_recovery_cost: cost of the item that starts the recovery of an object before v18. Pushes and reads by
# other members are immediate there (v17.2, src/osd/scheduler/OpSchedulerItem.h).
RECOVERY_ITEM_BYTES = 20 << 20

# osd_scrub_event_cost: mClock cost of each piece of a scrub.
SCRUB_EVENT_BYTES = 4 << 10


# osd_mclock_iops_capacity_threshold_ssd and _hdd (v17.2.6, src/common/options/osd.yaml.in).
CAPACITY_THRESHOLDS_IOPS: dict[Device, float] = {"ssd": 80_000, "hdd": 500}


@dataclass(frozen=True)
class Allocation:
    """Share of one class in a profile."""

    #: Minimum and maximum share of the OSD's capacity. 0: none.
    reservation_fraction: float
    weight: int  #: Share of the remaining capacity
    limit_fraction: float


@dataclass(frozen=True)
class Allocations:
    """Shares of clients, recovery and best effort (scrub, snap trim) in a profile."""

    client: Allocation
    recovery: Allocation
    best_effort: Allocation


@dataclass(frozen=True)
class OsdCapacity:
    """Assumed capacity of an OSD on one kind of device."""

    #: Random 4 KiB writes (``osd_mclock_max_capacity_iops_*``) [1/s]. This is the default; a Ceph OSD
    #: replaces it with its own measurement at the first start.
    iops: float
    #: Sequential bandwidth (``osd_mclock_max_sequential_bandwidth_*``) [B/s], since v18.
    bytes_per_s: float = 0.0
    #: Cost before v18 (``osd_mclock_cost_per_io_usec_*``, ``…_byte_usec_*``), in ms on SSDs and s on HDDs.
    cost_per_io: float = 0.0
    cost_per_byte: float = 0.0


@dataclass(frozen=True)
class MclockDefaults:
    """Default mClock settings of a release."""

    profile: Profile  #: Default profile
    #: True if costs are bytes (since v18) and rates bytes per second, False for scaled times and operations
    #: per second
    bytes_based: bool
    profiles: dict[Profile, Allocations]  #: Allocations by profile
    capacities: dict[Device, OsdCapacity]  #: By kind of device

    def cost(self, item_bytes: int, device: Device) -> int:
        """Return the cost of an item in mClock's unit (``mClockScheduler::calc_scaled_cost``).

        Parameters
        ----------
        item_bytes
            Size of the item [B].
        device
            ``ssd`` or ``hdd``.

        Examples
        --------
        >>> mclock_defaults("reef").cost(4096, "ssd"), mclock_defaults("reef").cost(4 << 20, "ssd")
        (58525, 4194304)
        >>> mclock_defaults("quincy").cost(4096, "ssd"), mclock_defaults("quincy").cost(4 << 20, "ssd")
        (1, 46)
        """
        capacity = self.capacities[device]
        if self.bytes_based:
            return max(item_bytes, int(capacity.bytes_per_s / capacity.iops), 1)
        return max(round(capacity.cost_per_io + capacity.cost_per_byte * item_bytes), 1)

    def measured(self, iops: float, device: Device) -> MclockDefaults:
        """Return the settings of an OSD that measured `iops` random 4 KiB writes [1/s] at its first start.

        A rate above `CAPACITY_THRESHOLDS_IOPS` is rejected, and the default remains.
        """
        if iops > CAPACITY_THRESHOLDS_IOPS[device]:
            return self
        return replace(
            self,
            capacities={
                **self.capacities,
                device: replace(self.capacities[device], iops=iops),
            },
        )

    def rate(self, device: Device) -> float:
        """Return the total capacity of an OSD, in cost per second."""
        capacity = self.capacities[device]
        if self.bytes_based:
            return capacity.bytes_per_s
        return capacity.iops


_BY_TIME = MclockDefaults(
    profile="high_client_ops",
    bytes_based=False,
    profiles={
        "high_client_ops": Allocations(
            Allocation(0.50, 2, 0), Allocation(0.25, 1, 1.0), Allocation(0.25, 2, 0)
        ),
        "balanced": Allocations(
            Allocation(0.40, 1, 1.0), Allocation(0.40, 1, 1.5), Allocation(0.20, 2, 0)
        ),
        "high_recovery_ops": Allocations(
            Allocation(0.30, 1, 0.8), Allocation(0.60, 2, 2.0), Allocation(0, 2, 0)
        ),
    },
    capacities={
        # 50 us and 0.011 us per byte, taken as ms; 25,000 us and 5.2 us per byte, taken as s.
        "ssd": OsdCapacity(iops=21_500, cost_per_io=0.050, cost_per_byte=0.000_011),
        "hdd": OsdCapacity(iops=315, cost_per_io=0.025, cost_per_byte=0.000_005_2),
    },
)

_BY_BYTES = MclockDefaults(
    profile="balanced",
    bytes_based=True,
    profiles={
        "high_client_ops": Allocations(
            Allocation(0.6, 2, 0), Allocation(0.4, 1, 0), Allocation(0, 1, 0.7)
        ),
        "balanced": Allocations(
            Allocation(0.5, 1, 0), Allocation(0.5, 1, 0), Allocation(0, 1, 0.9)
        ),
        "high_recovery_ops": Allocations(
            Allocation(0.3, 1, 0), Allocation(0.7, 2, 0), Allocation(0, 1, 0)
        ),
    },
    capacities={
        "ssd": OsdCapacity(iops=21_500, bytes_per_s=1200 * 2**20),
        "hdd": OsdCapacity(iops=315, bytes_per_s=150 * 2**20),
    },
)

# mClock was experimental before Quincy. Those releases use Quincy's constants.
_TIME_BASED = ("kraken", "pacific", "quincy")


def mclock_defaults(generation: str) -> MclockDefaults:
    """Return the default mClock settings of a release by its name in `stripesim.models.generations`."""
    if generation in _TIME_BASED:
        return _BY_TIME
    return _BY_BYTES

"""Priorities in an OSD's op queue of clients, recovery and background work: Ceph's two schedulers.

See Ceph, ``src/osd/scheduler/mClockScheduler.cc``; defaults in ``src/common/options/osd.yaml.in``.
Two states of the code were read: that of v17.2 (costs in time, commit 06a093ea) and that since v18.2 (costs
in bytes, commit 5a4ed80e).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Device = Literal["ssd", "hdd"]
Profile = Literal["high_client_ops", "balanced", "high_recovery_ops"]
PROFILES: tuple[Profile, ...] = ("high_client_ops", "balanced", "high_recovery_ops")

# WPQ: osd_client_op_priority, osd_recovery_op_priority, osd_scrub_priority. What has osd_op_queue_cut_off
# ("high", CEPH_MSG_PRIO_HIGH) or more is strict; replies between OSDs have that.
CLIENT_OP_PRIORITY = 63
RECOVERY_OP_PRIORITY = 3
SCRUB_PRIORITY = 5
CUT_OFF_PRIORITY = 196

# osd_recovery_cost: cost of the item that starts an object's recovery before v18;
# pushes and reads of other members are immediate there (v17.2, src/osd/scheduler/OpSchedulerItem.h).
RECOVERY_ITEM_BYTES = 20 << 20

# osd_scrub_event_cost: what each piece of a scrub counts for under mClock.
SCRUB_EVENT_BYTES = 4 << 10


# osd_mclock_iops_capacity_threshold_ssd and _hdd (v17.2.6, src/common/options/osd.yaml.in).
CAPACITY_THRESHOLDS_IOPS: dict[Device, float] = {"ssd": 80_000, "hdd": 500}


@dataclass(frozen=True)
class Allocation:
    """Share that a profile gives to one class."""

    #: `reservation_fraction`, `limit_fraction`: of the OSD's capacity, at least and at most; 0: none
    reservation_fraction: float
    weight: int  #: Share of the rest
    limit_fraction: float


@dataclass(frozen=True)
class Allocations:
    """Shares that a profile gives to clients, recovery, and best effort (scrub, snap trim)."""

    client: Allocation
    recovery: Allocation
    best_effort: Allocation


@dataclass(frozen=True)
class Capacity:
    """Assumed capacity of an OSD on one kind of device."""

    #: Random writes of 4 KiB a second (``osd_mclock_max_capacity_iops_*``). The default stands here; an OSD
    #: of Ceph replaces it by its measurement at first start.
    iops: float
    #: Sequential bandwidth (``osd_mclock_max_sequential_bandwidth_*``) [B/s]; since v18
    bytes_per_s: float = 0.0
    #: `cost_per_io`, `cost_per_byte`: before v18 (``osd_mclock_cost_per_io_usec_*``, ``…_byte_usec_*``), in
    #: ms on SSDs, in s on HDDs
    cost_per_io: float = 0.0
    cost_per_byte: float = 0.0


@dataclass(frozen=True)
class MclockDefaults:
    """mClock as a release has it."""

    profile: Profile  #: The one that is active by default
    #: Whether costs are bytes (since v18) and rates bytes a second, or scaled times and operations a second
    bytes_based: bool
    profiles: dict[Profile, Allocations]  #: Allocations by profile
    capacities: dict[Device, Capacity]  #: By kind of device

    def cost(self, item_bytes: int, device: Device) -> int:
        """Return the cost of an item (``mClockScheduler::calc_scaled_cost``).

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
        """Return the same for an OSD that measured `iops` random writes of 4 KiB at its first start [1/s].

        A rate above `CAPACITY_THRESHOLDS_IOPS` is not believed, and the default stays.
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
        """Return the whole capacity of an OSD, in cost a second."""
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
        # 50 us and 0.011 us a byte, taken in ms; 25,000 us and 5.2 us a byte, taken in s.
        "ssd": Capacity(iops=21_500, cost_per_io=0.050, cost_per_byte=0.000_011),
        "hdd": Capacity(iops=315, cost_per_io=0.025, cost_per_byte=0.000_005_2),
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
        "ssd": Capacity(iops=21_500, bytes_per_s=1200 * 2**20),
        "hdd": Capacity(iops=315, bytes_per_s=150 * 2**20),
    },
)

# Before Quincy mClock was an experiment; Quincy's constants serve for those releases.
_TIME_BASED = ("kraken", "pacific", "quincy")


def mclock_defaults(generation: str) -> MclockDefaults:
    """Return mClock as a release has it, by its name in `stripesim.models.generations`."""
    if generation in _TIME_BASED:
        return _BY_TIME
    return _BY_BYTES

"""Settings of Ceph's monitors and OSDs for detecting failures and recovering from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from stripesim.models.provenance import MeasuredModel, Provenance

GraceFrom = Literal["last_reply", "first_unanswered"]

SECOND_NS = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class RecoveryModel(MeasuredModel):
    """Timing and limits of failure detection, peering and recovery.

    Notes
    -----
    `recovery_sleep_ns` paces recovery like ``osd_recovery_sleep``: it is the minimum time between two starts
    of an object's recovery on one OSD. mClock divides an OSD's capacity between clients and recovery instead,
    see `stripesim.models.qos`. Under it the sleep is 0 s, as in Ceph.

    References
    ----------
    Ceph, ``src/common/options`` and ``src/common/config_opts.h``; v11.2.0 and v16.2.15.
    """

    positive: ClassVar = (
        "heartbeat_interval_ns",
        "osd_tick_ns",
        "min_down_reporters_count",
        "monitor_tick_ns",
        "propose_interval_ns",
        "max_backfills_count",
        "recovery_max_active_count",
        "recovery_chunk_bytes",
        "scrub_interval_ns",
        "delete_chunk_count",
        "backfill_retry_ns",
    )
    #: Start of the grace period: the peer's ``last_reply``, or the ``first_unanswered`` ping
    grace_from: GraceFrom
    #: Time between two pings of a pair, and silence after which a peer is reported [ns].
    heartbeat_interval_ns: int
    heartbeat_grace_ns: int
    osd_tick_ns: (
        int  #: Interval at which an OSD looks for silent peers and reports them [ns]
    )
    #: Reporters on separate hosts that the monitor requires before it marks an OSD down
    min_down_reporters_count: int
    #: Time of silence after which an OSD that too few peers can report is marked down [ns]
    report_timeout_ns: int
    down_out_interval_ns: int  #: Time down after which an OSD is marked out [ns]
    monitor_tick_ns: (
        int  #: Interval at which the monitor looks for OSDs to mark out [ns]
    )
    #: Share of OSDs that are in below which no further one is marked out automatically
    min_in_fraction: float
    #: Minimum time between two maps, and the delay of a map if the last one is older [ns].
    propose_interval_ns: int
    propose_min_wait_ns: int
    boot_ns: int  #: Time from the start of an OSD process to its request to be marked up [ns]
    #: Sequential queries of a primary to the members until it knows the history
    peering_rounds_count: int
    #: Recovery reservations that an OSD grants as a primary, and the same number as a target
    max_backfills_count: int
    recovery_max_active_count: (
        int  #: Objects that one OSD recovers concurrently as primary
    )
    recovery_sleep_ns: int  #: Minimum time between the starts of two objects [ns]
    recovery_chunk_bytes: int  #: Largest part of an object moved in one round [B]
    #: Time of a sync of an OSD's log during recovery and peering [ns]. 0: that of the drive alone
    recovery_sync_ns: int
    #: Minimum and maximum number of entries to which the log of a placement group is trimmed, and the number
    #: that all groups of an OSD share. With 0 to share, the log is trimmed to the minimum while the group is
    #: clean and to the maximum otherwise.
    log_entries_min_count: int
    log_entries_max_count: int
    log_entries_per_osd_count: int
    #: Largest number of missed log entries with which a returning OSD recovers as a member of the acting set.
    #: With more, it recovers asynchronously outside the acting set.
    async_recovery_min_count: int
    #: Interval at which every placement group is read and compared (``osd_deep_scrub_interval``) [ns]
    scrub_interval_ns: int
    #: `delete_chunk_count`, `delete_sleep_ns`: objects that an OSD deletes in one transaction of a placement
    #: group that it no longer holds, and its pause before the next [ns]
    delete_chunk_count: int
    delete_sleep_ns: int
    backfill_retry_ns: (
        int  #: Time until a backfill to an OSD that was too full is retried [ns]
    )
    #: Intervals at which an OSD reports its placement groups to the manager, and the manager to the monitors
    #: [ns]. Status reports lag behind accordingly. The monitors keep each digest, as they keep maps. 0:
    #: reports are immediate, and only maps are kept.
    stats_period_ns: int
    digest_period_ns: int
    #: Fraction of the grace period during which a primary may serve reads without a renewed lease from its
    #: members (``osd_pool_default_read_lease_ratio``). 0: no leases.
    read_lease_fraction: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.grace_from not in ("last_reply", "first_unanswered"):
            raise ValueError(
                f"RecoveryModel: grace_from: got {self.grace_from!r}, wanted last_reply or first_unanswered"
            )

    @property
    def read_lease_ns(self) -> int:
        """Duration of the lease under which members let their primary serve reads [ns]."""
        return round(self.read_lease_fraction * self.heartbeat_grace_ns)

    def log_lengths(self, osd_groups: int) -> tuple[int, int]:
        """Return the log lengths of an OSD with `osd_groups` placement groups: while not clean, and clean.

        Notes
        -----
        Ceph trims 100 entries at a time, this model each entry.

        References
        ----------
        Ceph v16.2.15, ``src/osd/OSD.cc`` (``OSDService::get_target_pg_log_entries``); before Octopus
        ``PrimaryLogPG::calc_trim_to``.
        """
        low = self.log_entries_min_count
        high = self.log_entries_max_count
        if not self.log_entries_per_osd_count:
            return high, low
        length = min(max(self.log_entries_per_osd_count // osd_groups, low), high)
        return length, length

    def given(self, **numbers: Any) -> RecoveryModel:
        """Return the model with numbers replaced by those of a cluster's configuration."""
        origin = Provenance("given", "configuration of the scenario")
        return self.with_numbers(numbers, origin)

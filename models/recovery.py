"""Constants of Ceph's monitors and OSDs by which a cluster detects and repairs failures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from stripesim.models.provenance import MeasuredModel, Provenance

GraceFrom = Literal["last_reply", "first_unanswered"]

SECOND_NS = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class RecoveryModel(MeasuredModel):
    """Clocks and limits of detection, peering and recovery.

    Notes
    -----
    `recovery_sleep_ns` paces recovery as ``osd_recovery_sleep`` does: it is the least time between two starts
    of an object on one OSD. mClock shares an OSD's capacity between clients and recovery instead, see
    `stripesim.models.qos`; the generations that have it by default sleep for 0 s, as Ceph does under mClock.

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
    #: `heartbeat_interval_ns`, `heartbeat_grace_ns`: time between two pings of a pair, and silence after
    #: which a peer is reported [ns]
    heartbeat_interval_ns: int
    heartbeat_grace_ns: int
    osd_tick_ns: (
        int  #: An OSD looks for silent peers, and reports them, once in this time [ns]
    )
    #: Reporters, each on a separate host, that the monitor wants before it believes them
    min_down_reporters_count: int
    #: An OSD that too few peers can report is marked down after this time of silence [ns]
    report_timeout_ns: int
    down_out_interval_ns: int  #: Time down after which an OSD is marked out [ns]
    monitor_tick_ns: (
        int  #: The monitor looks for OSDs to mark out once in this time [ns]
    )
    #: No OSD is marked out automatically if that leaves a smaller share of the OSDs in
    min_in_fraction: float
    #: `propose_interval_ns`, `propose_min_wait_ns`: least time between two maps, and the wait before a map
    #: when the last one is older [ns]
    propose_interval_ns: int
    propose_min_wait_ns: int
    boot_ns: (
        int  #: From the start of an OSD's process to its asking to be marked up [ns]
    )
    #: Questions, one after another, that a primary asks the members before it knows the history
    peering_rounds_count: int
    #: Reservations for recovery that an OSD grants as a primary, and as many again as a target
    max_backfills_count: int
    recovery_max_active_count: (
        int  #: Objects that one OSD rebuilds as primary at the same time
    )
    recovery_sleep_ns: int  #: Least time between the starts of two such objects [ns]
    recovery_chunk_bytes: int  #: Most bytes of an object that one round moves [B]
    #: Entries to which a placement group's log is trimmed at least and at most, and those that all groups of
    #: an OSD share. None to share (0): trimmed to the least while the group is clean, to the most otherwise.
    log_entries_min_count: int
    log_entries_max_count: int
    log_entries_per_osd_count: int
    #: Log entries missed up to which an OSD that returns is recovered as a member of the acting set; above,
    #: beside it
    async_recovery_min_count: int
    #: Every placement group is read and compared once in this time [ns] (``osd_deep_scrub_interval``)
    scrub_interval_ns: int
    #: Objects that an OSD deletes in one transaction, and its pause before the next, of a placement group
    #: that it gives up [ns]
    delete_chunk_count: int
    delete_sleep_ns: int
    backfill_retry_ns: int  #: A backfill that an OSD is too full for is tried again after this time [ns]
    #: `stats_period_ns`, `digest_period_ns`: an OSD reports its placement groups to the manager, and the
    #: manager to the monitors, once in this time [ns]: status reports lag behind. The monitors keep
    #: each digest, as they keep a map. 0: at once, and nothing but maps is kept.
    stats_period_ns: int
    digest_period_ns: int
    #: Of the grace period: so long a primary may serve reads on the word of its members
    #: (``osd_pool_default_read_lease_ratio``). 0: no leases.
    read_lease_fraction: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.grace_from not in ("last_reply", "first_unanswered"):
            raise ValueError(
                f"RecoveryModel: grace_from: got {self.grace_from!r}, wanted last_reply or first_unanswered"
            )

    @property
    def read_lease_ns(self) -> int:
        """Return how long a member lets its primary serve reads without a renewal [ns]."""
        return round(self.read_lease_fraction * self.heartbeat_grace_ns)

    def log_lengths(self, osd_groups: int) -> tuple[int, int]:
        """Return the entries to which logs are trimmed while not clean, and clean, by the groups of an OSD.

        See Ceph v16.2.15, ``src/osd/OSD.cc`` (``OSDService::get_target_pg_log_entries``); before Octopus
        ``PrimaryLogPG::calc_trim_to``. Ceph trims 100 entries at a time, here each.
        """
        low = self.log_entries_min_count
        high = self.log_entries_max_count
        if not self.log_entries_per_osd_count:
            return high, low
        length = min(max(self.log_entries_per_osd_count // osd_groups, low), high)
        return length, length

    def given(self, **numbers: Any) -> RecoveryModel:
        """Return the model with numbers that a cluster's configuration gives."""
        provenance = {
            name: Provenance("given", "configuration of the scenario")
            for name in numbers
        }
        return replace(self, **numbers, provenance={**self.provenance, **provenance})


def min_size(*, kind: str, k: int, width: int) -> int:
    """Return the shards below which a placement group serves no client, as pools are created.

    See Ceph v16.2.15, ``src/mon/OSDMonitor.cc`` (``prepare_pool_size``): size − size/2 for replication,
    k + min(1, m − 1) for erasure codes.
    """
    if kind == "replicated":
        return width - width // 2
    return k + min(1, width - k - 1)

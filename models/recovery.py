"""How a cluster notices failures and repairs them: the constants of Ceph's monitors and OSDs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from stripesim.models.provenance import MeasuredModel, Provenance

GraceFrom = Literal["last_reply", "first_unanswered"]

SECOND_NS = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class RecoveryModel(MeasuredModel):
    """Clocks and limits of detection, peering and recovery.

    Parameters
    ----------
    grace_from : str
        What the grace period counts from: the peer's ``last_reply``, or the ``first_unanswered`` ping.
    heartbeat_interval_ns, heartbeat_grace_ns : int
        Time between two pings of a pair, and silence after which a peer is reported [ns].
    osd_tick_ns : int
        An OSD looks for silent peers, and reports them, once in this time [ns].
    min_down_reporters_count : int
        Reporters, each on a host of its own, that the monitor wants before it believes them.
    report_timeout_ns : int
        An OSD that too few peers can report is marked down after this time of silence [ns].
    down_out_interval_ns : int
        Time down after which an OSD is marked out [ns].
    monitor_tick_ns : int
        The monitor looks for OSDs to mark out once in this time [ns].
    min_in_fraction : float
        No OSD is marked out automatically if that leaves a smaller share of the OSDs in.
    propose_interval_ns, propose_min_wait_ns : int
        Least time between two maps, and the wait before a map when the last one is older [ns].
    boot_ns : int
        From the start of an OSD's process to its asking to be marked up [ns].
    peering_rounds_count : int
        Questions, one after another, that a primary asks the members before it knows the history.
    max_backfills_count : int
        Reservations for recovery that an OSD grants as a primary, and as many again as a target.
    recovery_max_active_count : int
        Objects that one OSD rebuilds as primary at the same time.
    recovery_sleep_ns : int
        Least time between the starts of two such objects [ns].
    recovery_chunk_bytes : int
        Most bytes of an object that one round moves [B].
    log_entries_count : int
        Writes that a placement group's log holds; what an OSD missed beyond it takes a backfill.
    async_recovery_min_count : int
        Objects missed up to which an OSD that returns is recovered as a member of the acting set;
        above, beside it.
    scrub_interval_ns : int
        Every placement group is read and compared once in this time [ns] (``osd_deep_scrub_interval``).

    Notes
    -----
    The sleep profile paces recovery as ``osd_recovery_sleep`` does: starts of objects on one OSD lie so far
    apart. Under mClock Ceph sets the sleep to 0 and shares an OSD by weight; that is not modelled, the
    closest is a sleep that gives recovery its share.

    References
    ----------
    Ceph, ``src/common/options`` and ``src/common/config_opts.h``; v11.2.0 and v16.2.15.
    """

    grace_from: GraceFrom
    heartbeat_interval_ns: int
    heartbeat_grace_ns: int
    osd_tick_ns: int
    min_down_reporters_count: int
    report_timeout_ns: int
    down_out_interval_ns: int
    monitor_tick_ns: int
    min_in_fraction: float
    propose_interval_ns: int
    propose_min_wait_ns: int
    boot_ns: int
    peering_rounds_count: int
    max_backfills_count: int
    recovery_max_active_count: int
    recovery_sleep_ns: int
    recovery_chunk_bytes: int
    log_entries_count: int
    async_recovery_min_count: int
    scrub_interval_ns: int

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_positive(
            "heartbeat_interval_ns",
            "osd_tick_ns",
            "min_down_reporters_count",
            "monitor_tick_ns",
            "propose_interval_ns",
            "max_backfills_count",
            "recovery_max_active_count",
            "recovery_chunk_bytes",
            "scrub_interval_ns",
        )
        self.check_not_negative(
            "heartbeat_grace_ns",
            "report_timeout_ns",
            "down_out_interval_ns",
            "min_in_fraction",
            "propose_min_wait_ns",
            "boot_ns",
            "peering_rounds_count",
            "recovery_sleep_ns",
            "log_entries_count",
            "async_recovery_min_count",
        )
        if self.grace_from not in ("last_reply", "first_unanswered"):
            raise ValueError(
                f"RecoveryModel: grace_from: got {self.grace_from!r}, wanted last_reply or first_unanswered"
            )

    def given(self, **numbers: Any) -> RecoveryModel:
        """Return the model with numbers that a cluster's configuration gives."""
        told = {name: Provenance("given", "configuration of the scenario") for name in numbers}
        return replace(self, **numbers, provenance={**self.provenance, **told})


def min_size(*, kind: str, k: int, width: int) -> int:
    """Return the shards below which a placement group serves no client, as pools are created.

    References
    ----------
    Ceph v16.2.15, ``src/mon/OSDMonitor.cc`` (``prepare_pool_size``): size − size/2 for replication,
    k + min(1, m − 1) for erasure codes.
    """
    return width - width // 2 if kind == "replicated" else k + min(1, width - k - 1)


_COMMON: dict[str, tuple[Any, str, str]] = {
    "heartbeat_interval_ns": (6 * SECOND_NS, "code", "osd_heartbeat_interval"),
    "heartbeat_grace_ns": (20 * SECOND_NS, "code", "osd_heartbeat_grace"),
    "osd_tick_ns": (SECOND_NS, "code", "src/osd/OSD.h, OSD_TICK_INTERVAL"),
    "min_down_reporters_count": (
        2,
        "code",
        "mon_osd_min_down_reporters, mon_osd_reporter_subtree_level host",
    ),
    "report_timeout_ns": (900 * SECOND_NS, "code", "mon_osd_report_timeout"),
    "down_out_interval_ns": (600 * SECOND_NS, "code", "mon_osd_down_out_interval"),
    "monitor_tick_ns": (5 * SECOND_NS, "code", "mon_tick_interval"),
    "min_in_fraction": (0.75, "code", "mon_osd_min_in_ratio"),
    "propose_interval_ns": (SECOND_NS, "code", "paxos_propose_interval"),
    "propose_min_wait_ns": (SECOND_NS // 20, "code", "paxos_min_wait"),
    "boot_ns": (
        321_000_000,
        "measured",
        "Ceph 16.2.15, repair-ec63-kill: restarted at 58.947 s, boot at 59.268 s; one observation",
    ),
    "peering_rounds_count": (3, "code", "src/osd/PeeringState.h: GetInfo, GetLog, GetMissing"),
    "max_backfills_count": (1, "code", "osd_max_backfills"),
    "recovery_sleep_ns": (0, "code", "osd_recovery_sleep, 0 for SSDs (osd_recovery_sleep_ssd)"),
    "recovery_chunk_bytes": (8 << 20, "code", "osd_recovery_max_chunk"),
    "scrub_interval_ns": (604_800 * SECOND_NS, "code", "osd_deep_scrub_interval"),
}
_BY_GENERATION: dict[str, dict[str, tuple[Any, str, str]]] = {
    "kraken": {
        "recovery_max_active_count": (3, "code", "osd_recovery_max_active"),
        "log_entries_count": (3000, "code", "osd_min_pg_log_entries"),
        "async_recovery_min_count": (1 << 40, "code", "no asynchronous recovery before Nautilus"),
    },
    "pacific": {
        "recovery_max_active_count": (10, "code", "osd_recovery_max_active_ssd"),
        "log_entries_count": (250, "code", "osd_min_pg_log_entries"),
        "async_recovery_min_count": (100, "code", "osd_async_recovery_min_cost"),
    },
}
_VERSIONS: dict[str, tuple[str, GraceFrom]] = {
    "kraken": ("v11.2.0", "last_reply"),
    "pacific": ("v16.2.15", "first_unanswered"),
}
_HDD: dict[str, tuple[Any, str, str]] = {
    "recovery_max_active_count": (3, "code", "osd_recovery_max_active_hdd"),
    "recovery_sleep_ns": (SECOND_NS // 10, "code", "osd_recovery_sleep_hdd"),
}


def recovery_model(generation: str = "pacific", *, device: Literal["ssd", "hdd"] = "ssd") -> RecoveryModel:
    """Return the constants of a generation of Ceph.

    Parameters
    ----------
    generation : str
        ``kraken`` (v11.2.0) or ``pacific`` (v16.2.15).
    device : str
        Class of the OSDs' devices; since Luminous it decides sleep and parallel recoveries.

    Raises
    ------
    ValueError
        If there is no such generation.

    Examples
    --------
    >>> recovery_model("pacific").recovery_max_active_count, recovery_model("kraken").grace_from
    (10, 'last_reply')
    """
    if generation not in _VERSIONS:
        raise ValueError(f"generation: got {generation!r}, wanted one of {', '.join(_VERSIONS)}")
    version, grace_from = _VERSIONS[generation]
    numbers = _COMMON | _BY_GENERATION[generation]
    if device == "hdd" and generation != "kraken":
        numbers = numbers | _HDD
    return RecoveryModel(
        grace_from=grace_from,
        provenance={
            name: Provenance(kind, source if kind == "measured" else f"Ceph {version}: {source}")
            for name, (_, kind, source) in numbers.items()
        },
        **{name: value for name, (value, _, _) in numbers.items()},
    )

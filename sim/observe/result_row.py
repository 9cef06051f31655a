"""Define the numbers of a run: the columns of a result row, with their units and meaning.

`ResultRow` is the definition. Code reads its attributes; files and JSON hold the flat form that `as_dict`
returns. A field that defaults to None does not apply to every run. Most such fields have a column all the
same, which is null; `as_dict` says which do not.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any


@dataclass(frozen=True, kw_only=True)
class PhaseNumbers:
    """One phase of a run under faults.

    Rates and latencies are those of requests that no state of a PG blocked.
    """

    iops: float  # Requests completed in the phase, per second.
    throughput_bytes_per_s: float  # Bytes of these requests.
    # Latencies of requests issued in the phase; None if there were none.
    latency_mean_ns: float | None = None
    latency_p50_ns: float | None = None
    latency_p99_ns: float | None = None
    blocked: int  # Requests issued in the phase that the state of their PG blocked.
    blocked_longest_ns: int | None  # Longest wait of a blocked request.
    blocked_by: str  # Number of blocked requests by reason, as text.


@dataclass(frozen=True, kw_only=True)
class RecoveryNumbers:
    """Recovery of a run under faults.

    Bytes moved include what members note while they peer. Figures per lost byte are None if nothing was lost.
    """

    recovery_operations: int  # Operations completed.
    recovery_operations_cut: int  # Rounds that the end of the run cut off.
    recovery_bytes: int  # Bytes of shards written, including those CRUSH only moves.
    recovery_lost_bytes: (
        int  # Bytes that OSDs held when they failed or scrubs found bad.
    )
    recovery_device_read_bytes: int
    recovery_device_read_bytes_per_lost_byte: float | None
    recovery_device_write_bytes: int
    recovery_device_write_bytes_per_lost_byte: float | None
    recovery_private_net_bytes: int
    recovery_private_net_bytes_per_lost_byte: float | None
    recovery_limited_by: str | None = None  # Limit of its pace; None without recovery.


@dataclass(frozen=True, kw_only=True)
class RepairNumbers:
    """Rebuild of OSDs that were lost before the run.

    Figures per lost byte are None unless the rebuild finished. They leave out shards that CRUSH only moves.
    """

    repair_objects: int  # Objects rebuilt.
    repair_objects_pending: int  # Objects still to rebuild at the end.
    repair_lost_bytes: int  # Bytes that the lost OSDs held.
    repair_s: float | None  # Time to the last object; None unless all are rebuilt.
    repair_device_read_bytes_per_lost_byte: float | None = None
    repair_device_write_bytes_per_lost_byte: float | None = None
    repair_private_net_bytes_per_lost_byte: float | None = None


@dataclass(frozen=True, kw_only=True)
class FaultNumbers:
    """Additional numbers of a run under faults; times are None where an event never came."""

    # Requests by their end: completed (`ResultRow.requests`), failed by a timeout, or pending.
    requests_issued: int
    requests_failed: int
    requests_pending: int
    requests_retried: int
    retries: int

    detection_s: float | None  # First failure to the first OSD marked down.
    down_out_s: float | None  # First OSD marked down to the first marked out.
    checking_s: float | None  # First failure to the first recovery operation.
    recovery_s: float | None  # First recovery operation to all PGs clean.
    failure_to_clean_s: float | None  # First failure to all PGs clean.
    failure_to_seen_clean_s: float | None  # The same, as the cluster's status shows it.
    clean_at_end: bool

    # By name (before, slow, degraded, recovery, after); phases that never came are left out.
    phases: Mapping[str, PhaseNumbers]
    recovery: RecoveryNumbers

    # PGs that peered and yet could not serve, their objects, and how long they waited.
    pgs_unavailable: int
    objects_unavailable: int
    unavailable_pg_s: float
    peering_pg_s: float  # PG-seconds in peering.
    stale_pg_s: float  # PG-seconds with a dead member that is not yet marked down.
    pgs_lost: int  # PGs with fewer shards left than the code needs.
    objects_lost: int

    # `recovery_s` with all objects of the pool, where only some are simulated or the run ends earlier.
    recovery_whole_s: float | None = None
    objects_ratio: float = 1.0  # Objects of the pool per simulated one.
    deep_scrubs: int | None = None  # Deep scrubs completed; None without scrubs.
    scrub_device_read_bytes: int | None = None
    repair: RepairNumbers | None = None  # None if no OSD was lost before the run.


@dataclass(frozen=True, kw_only=True)
class ResultRow:
    """The numbers of one run, or of one of several workloads in it.

    Every annotated field is a column of every row, under the field's name, which ends in its unit. The text
    next to its type is the meaning that the reference prints. Rates and latencies are those of the
    measurement window and None if no request completed; figures per byte and per request are those of the
    whole run.
    """

    requests: Annotated[int, "client requests completed"]
    iops: Annotated[
        float | None,
        "requests completed per simulated second, in the steady window",
    ] = None
    offered_iops: Annotated[
        float | None,
        "requests that arrived per simulated second, of an open loop or a trace; null for a closed loop",
    ] = None
    saturated: Annotated[
        bool | None,
        "true if an open loop completes less than 97 % of what arrives and the rest queues up; null for a "
        "closed loop",
    ] = None
    throughput_bytes_per_s: Annotated[
        float | None, "client bytes per simulated second, in the steady window"
    ] = None
    throughput_ci_low: Annotated[
        float | None,
        "lower end of the 95 % interval of throughput [B/s], by batch means",
    ] = None
    throughput_ci_high: Annotated[
        float | None, "upper end of the same interval [B/s]"
    ] = None
    latency_mean_ns: Annotated[
        float | None,
        "mean time from a request's issue to its completion, in the steady window",
    ] = None
    latency_ci_low: Annotated[
        float | None,
        "lower end of the 95 % interval of the mean latency [ns], by batch means",
    ] = None
    latency_ci_high: Annotated[float | None, "upper end of the same interval [ns]"] = (
        None
    )
    latency_p50_ns: Annotated[float | None, "median latency"] = None
    latency_p95_ns: Annotated[float | None, "95th percentile of latency"] = None
    latency_p99_ns: Annotated[float | None, "99th percentile of latency"] = None
    latency_max_ns: Annotated[float | None, "highest latency in the window"] = None
    requests_in_flight: Annotated[
        float | None,
        "mean number of requests in flight in the window, from the times of issue and completion; in a "
        "steady state, rate times mean latency is the same by Little's law",
    ] = None
    device_read_bytes_per_client_byte: Annotated[
        float | None, "bytes read from all devices per client byte, over the whole run"
    ] = None
    device_write_bytes_per_client_byte: Annotated[
        float | None, "bytes written to all devices, log and metadata included"
    ] = None
    device_data_write_bytes_per_client_byte: Annotated[
        float | None, "the same without log and metadata"
    ] = None
    private_net_bytes_per_client_byte: Annotated[
        float | None, "bytes between storage hosts, TCP and IP headers included"
    ] = None
    public_net_bytes_per_client_byte: Annotated[
        float | None, "bytes between clients and storage hosts, headers included"
    ] = None
    cpu_ns_per_op: Annotated[
        float | None, "processor time of all storage hosts per client request"
    ] = None
    cpu_utilisation: Annotated[
        float | None,
        "processor time over the whole run, as a share of all cores of all hosts, 0 to 1",
    ] = None
    context_switches_per_op: Annotated[
        float | None,
        "hand-offs between threads per request, times switches per hand-off",
    ] = None
    bottleneck: Annotated[
        str | None,
        "class of resources that limits the run: at least 70 % busy on average, or the lock of a placement "
        "group that requests queue for most of their time; `latency`: a closed loop in which no resource is "
        "near its limit; `none`: all arrivals are served; in a saturated open loop without such a class, "
        "where requests spend most of their time",
    ] = None
    bottleneck_utilisation: Annotated[
        float | None, "utilisation of the busiest member of that class, 0 to 1"
    ] = None
    bottleneck_mean_utilisation: Annotated[
        float | None, "mean utilisation of that class, 0 to 1"
    ] = None
    bottleneck_wait_fraction: Annotated[
        float | None, "its share of all waiting for resources, 0 to 1"
    ] = None
    latency_at: Annotated[
        str | None,
        "class of resources at which requests spend most of their time, waiting or being served; sites: on "
        "the way between them",
    ] = None
    latency_at_fraction: Annotated[
        float | None,
        "its share of the time that requests spend at all resources, or least share of the latency on the "
        "way, 0 to 1",
    ] = None
    limits: Annotated[
        str | None,
        "classes of resources that are at least 70 % busy, the busiest first, each with its mean and highest "
        "utilisation; empty if none is; a list in JSON of run; in a hot spot only some members are",
    ] = None
    steady_state_start_s: Annotated[
        float | None,
        "end of the transient of a closed loop by MSER-5 [s]; 0 under faults, for traces and open loops",
    ] = None
    window_start_s: Annotated[float | None, "start of the measurement window [s]"] = (
        None
    )
    window_end_s: Annotated[float | None, "end of the measurement window [s]"] = None
    simulated_s: Annotated[float, "simulated time of the whole run"]
    engine_wall_s: Annotated[
        float,
        "wall-clock time inside the engine; the one column that differs from run to run",
    ]
    refused: Annotated[
        str | None,
        "check of the audit that the row fails, and what it got and wanted; its other numbers are then null, "
        "unless `--unchecked` shows them",
    ] = None
    # Share of processor time spent in user mode, 0 to 1; no column if no request completed.
    cpu_user_fraction: float | None = None
    # No columns without faults.
    faults: FaultNumbers | None = None

    def withheld(self) -> "ResultRow":
        """Return the row without its numbers if the audit refuses it, otherwise unchanged."""
        if self.refused is None:
            return self
        return ResultRow(
            requests=self.requests,
            simulated_s=self.simulated_s,
            engine_wall_s=self.engine_wall_s,
            refused=self.refused,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the row as flat columns, in their order.

        Columns that only some rows have follow those of every row: `cpu_user_fraction` and the numbers of
        a run under faults, each only where it applies.
        """
        flat = dict(vars(self))
        del flat["faults"]
        if self.cpu_user_fraction is None:
            del flat["cpu_user_fraction"]
        if self.faults is not None:
            flat |= _fault_columns(self.faults)
        return flat


# Columns of a refused row that keep their values: what was asked for, how long it took, and the reason.
_KEPT = frozenset(("requests", "simulated_s", "engine_wall_s", "refused"))


def withheld_columns(
    row: Mapping[str, Any], *, others: Iterable[str]
) -> dict[str, Any]:
    """Return flat columns without the numbers if the audit refuses the row, otherwise unchanged.

    Parameters
    ----------
    row
        Columns of a row, as `ResultRow.as_dict` returns them, and `others`.
    others
        Columns that the row has in addition, which keep their values.
    """
    if row.get("refused") is None:
        return dict(row)
    kept = {*_KEPT, *others}
    return {name: value if name in kept else None for name, value in row.items()}


def _fault_columns(faults: FaultNumbers) -> dict[str, Any]:
    """Return the columns that a run under faults adds to its row."""
    flat: dict[str, Any] = {}
    for name, value in _applicable(faults).items():
        if name == "phases":
            for phase, numbers in faults.phases.items():
                flat |= _phase_columns(phase, numbers)
        elif name in ("recovery", "repair"):
            flat |= _applicable(value)
        else:
            flat[name] = value
    return flat


def _phase_columns(phase: str, numbers: PhaseNumbers) -> dict[str, Any]:
    """Return the columns of a phase, which carry its name: ``latency_p99_recovery_ns``."""
    flat = {}
    for name, value in _applicable(numbers).items():
        quantity = name.removesuffix("_ns").removesuffix("_bytes_per_s")
        unit = name.removeprefix(quantity)
        flat[f"{quantity}_{phase}{unit}"] = value
    return flat


def _applicable(numbers: Any) -> dict[str, Any]:
    """Return fields and values, without optional fields that do not apply."""
    return {
        one.name: getattr(numbers, one.name)
        for one in fields(numbers)
        if getattr(numbers, one.name) is not None or one.default is not None
    }

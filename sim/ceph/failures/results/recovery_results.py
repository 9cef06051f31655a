"""Bytes moved and rebuilt by recovery, and the limit of its pace."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from stripesim.sim.ceph import roles
from stripesim.sim.ceph.failures.background.recovery import WaitReason
from stripesim.sim.ceph.failures.groups import State
from stripesim.sim.ceph.failures.results.finished_run import BoolArray, FaultRun
from stripesim.sim.ceph.failures.results.phases import PhaseSpans
from stripesim.sim.ceph.pool import Book
from stripesim.sim.engine.graph import COUNTER_INDEX, COUNTERS, IntArray, Template
from stripesim.sim.engine.program import SLOWDOWN_UNIT, StreamRun, bound_rows
from stripesim.sim.observe.audit_numbers import FaultTotals
from stripesim.sim.observe.critical_path import predecessors_of
from stripesim.sim.observe.recording import account
from stripesim.sim.observe.result_row import RecoveryNumbers, RepairNumbers

FloatArray = npt.NDArray[np.float64]

# An object that takes this many times its time alone is delayed by other work.
_CROWDED = 2.0


# Parts of a shard's roles that are unbound on the primary's host.
_NETWORK_PARTS = [
    roles.OUT_TX,
    roles.OUT_WIRE,
    roles.OUT_RX,
    roles.BACK_TX,
    roles.BACK_WIRE,
    roles.BACK_RX,
]

MOVED_COUNTERS = ("device_read_bytes", "device_write_bytes", "private_net_bytes")


def operation_totals(
    stream: StreamRun, book: Book, *, within_hosts_width: int = 0
) -> IntArray:
    """Return what each operation of a stream accounts by its plan, shape (operations, counters).

    With `within_hosts_width`, the number of shards, messages between OSDs of one host count as network
    traffic.
    """
    if not len(stream.issued_ns):
        return np.zeros((0, len(COUNTERS)), dtype=np.int64)
    pairs, inverse = np.unique(
        np.stack([stream.templates, stream.bindings], axis=1),
        axis=0,
        return_inverse=True,
    )
    are_bound = bound_rows(book, pairs[:, 1]) >= 0
    if within_hosts_width:
        shards = slice(roles.FIXED_ROLES, roles.role_count(within_hosts_width))
        of_shards = are_bound[:, shards].reshape(len(pairs), -1, roles.SHARD_ROLES)
        of_shards[..., _NETWORK_PARTS] |= of_shards[..., [roles.WORKER]]
        are_bound[:, shards] = of_shards.reshape(len(pairs), -1)
    totals_of_pair = [
        book.templates[template].totals(np.append(is_bound, False))[:-1]
        for template, is_bound in zip(pairs[:, 0].tolist(), are_bound, strict=True)
    ]
    totals: IntArray = np.stack(totals_of_pair)[inverse.reshape(-1)]
    return totals


def describe_recovery(run: FaultRun, limited_by: str | None) -> RecoveryNumbers:
    """Sum the recovery: operations, bytes rebuilt, and bytes moved with what members noted while they peered.

    ``recovery_bytes`` counts every shard that recovery wrote, shards that CRUSH only moved included;
    ``…_per_lost_byte`` is per byte that the failed OSDs held.
    """
    lost_bytes = run.lost_bytes
    taken = account(run.recovery, run.book)
    noted = account(run.notes, run.book)
    moved: dict[str, Any] = {}
    for counter in MOVED_COUNTERS:
        moved_bytes = taken[counter] + noted[counter]
        moved[f"recovery_{counter}"] = moved_bytes
        moved[f"recovery_{counter}_per_lost_byte"] = (
            moved_bytes / lost_bytes if lost_bytes else None
        )
    return RecoveryNumbers(
        recovery_operations=int(run.operations_done.sum()),
        recovery_operations_cut=int((~run.rounds_done).sum()),
        recovery_bytes=int(run.bytes_done.sum()),
        recovery_lost_bytes=lost_bytes,
        **moved,
        recovery_limited_by=limited_by,
    )


def recovery_parts(run: FaultRun) -> dict[str, dict[str, int]]:
    """Divide the recovery into objects, shards of bucket indexes, and what members noted while they peered.

    Costs that are accounted once per service, such as the log of a sync, are shared by number of operations.

    Returns
    -------
    dict
        ``objects``, ``index`` and ``peering``, each with ``operations``, ``rebuilt_bytes`` and the bytes
        moved by counter.
    """
    moved = _moved_bytes(run.recovery, run.book)
    parts: dict[str, dict[str, int]] = {}
    for name, wanted in (("objects", ~run.is_index), ("index", run.is_index)):
        parts[name] = {
            "operations": int(run.operations_done[wanted].sum()),
            "rebuilt_bytes": int(run.bytes_done[wanted].sum()),
            **_by_counter(moved[wanted]),
        }
    noted = _moved_bytes(run.notes, run.book)
    parts["peering"] = {
        "operations": int((run.notes.completed_ns >= 0).sum()),
        "rebuilt_bytes": 0,
        **_by_counter(noted),
    }
    return parts


def _moved_bytes(stream: StreamRun, book: Book) -> FloatArray:
    """Return the bytes that each completed operation moved, shape (operations, moved counters)."""
    done = stream.completed_ns >= 0
    columns = [COUNTER_INDEX[counter] for counter in MOVED_COUNTERS]
    planned = operation_totals(stream, book)[:, columns] * done[:, np.newaxis]
    taken = account(stream, book)
    totals = np.array([taken[counter] for counter in MOVED_COUNTERS])
    per_service = np.maximum(0, totals - planned.sum(axis=0))
    shares = done / max(1, int(done.sum()))
    moved = planned + np.outer(shares, per_service)
    return moved.astype(np.float64)


def _by_counter(moved: FloatArray) -> dict[str, int]:
    """Sum the moved bytes of operations by counter."""
    sums = moved.sum(axis=0).round().astype(np.int64).tolist()
    return dict(zip(MOVED_COUNTERS, sums, strict=True))


def describe_repair(run: FaultRun) -> RepairNumbers:
    """Sum the rebuild of OSDs lost before the run: objects, time, bytes per byte lost.

    Shards that CRUSH moved and that were merely copied are left out. Costs that are accounted once per
    service, such as the log of a sync, are shared by number of operations.
    """
    done = run.rounds_done & run.is_repair
    ended = np.flatnonzero(run.operations_done & run.is_repair)
    operations = [run.rounds[index].operation for index in ended.tolist()]
    objects = {(operation.group, operation.item) for operation in operations}
    pending_count = run.lost_objects_at_start - len(objects)
    lost_bytes = run.lost_bytes_at_start
    repair_s = None
    if objects and not pending_count:
        repair_s = float(run.recovery.completed_ns[done].max()) / 1e9
    numbers = RepairNumbers(
        repair_objects=len(objects),
        repair_objects_pending=pending_count,
        repair_lost_bytes=lost_bytes,
        repair_s=repair_s,
    )
    if not lost_bytes or pending_count:
        return numbers
    totals = operation_totals(run.recovery, run.book)
    taken = account(run.recovery, run.book)
    share = int(done.sum()) / len(done)
    moved: dict[str, Any] = {}
    for counter in MOVED_COUNTERS:
        planned = totals[:, COUNTER_INDEX[counter]]
        per_service = max(0, taken[counter] - int(planned.sum()))
        repaired = int(planned[done].sum()) + share * per_service
        moved[f"repair_{counter}_per_lost_byte"] = repaired / lost_bytes
    return replace(numbers, **moved)


def whole_recovery_s(
    run: FaultRun, start_ns: int | None, clean_ns: int | None
) -> float | None:
    r"""Return the time that the first recovery takes with all objects of the pool, at this run's pace [s].

    Parameters
    ----------
    run
        The run.
    start_ns
        Time of the first recovery operation [ns]. None: there is none.
    clean_ns
        Time when all PGs are clean again [ns]. None: the run ends earlier.

    Returns
    -------
    float or None
        A lower bound if the run ends earlier, because fewer PGs recover at the end than at the start. None if
        nothing recovers. None as well if the run ends earlier and the number of shards left is unknown,
        because OSDs return with their data or changes are planned.

    Notes
    -----
    Of :math:`N` shards :math:`n` were recovered in the time :math:`T`, and some PG moved objects for
    :math:`m` of it. The rest, in which PGs peer and wait for maps, does not grow with the number of objects.
    The whole takes :math:`T + (N - n)\, m / n`.
    """
    if start_ns is None:
        return None
    end_ns = run.end_ns if clean_ns is None else clean_ns
    completed_ns = run.recovery.completed_ns
    counts = (completed_ns >= start_ns) & (completed_ns <= end_ns)
    done = int(run.shards_done[counts].sum())
    wanted = done
    if clean_ns is None:
        returns = not all(failure.loses_data for failure in run.plan.failures)
        wanted = 0 if returns or run.plan.changes else run.lost_shards
    if not done or wanted < done:
        return None
    left = wanted * run.plan.objects_ratio - done
    moving_ns = _moving_ns(run, counts)
    return (end_ns - start_ns + left * moving_ns / done) / 1e9


def _moving_ns(run: FaultRun, counts: BoolArray) -> int:
    """Return the time in which some PG recovers objects, from its first to its last counted round [ns]."""
    spans: dict[int, tuple[int, int]] = {}
    rounds = np.flatnonzero(counts).tolist()
    for index in rounds:
        group = run.rounds[index].operation.group
        issued_ns = int(run.recovery.issued_ns[index])
        completed_ns = int(run.recovery.completed_ns[index])
        first_ns, last_ns = spans.get(group, (issued_ns, completed_ns))
        spans[group] = min(first_ns, issued_ns), max(last_ns, completed_ns)
    moving_ns = 0
    covered_ns = 0
    for first_ns, last_ns in sorted(spans.values()):
        moving_ns += max(0, last_ns - max(first_ns, covered_ns))
        covered_ns = max(covered_ns, last_ns)
    return moving_ns


def fault_totals(run: FaultRun, *, width: int) -> FaultTotals:
    """Return what the audit compares, for objects of `width` shards.

    Without further events, a repair makes each shard that gets another OSD once: a push of copies serves
    those that were lost and those that CRUSH moves. Each event may move every shard.
    """
    plan = run.plan
    events = [*plan.failures, *plan.corruptions, *plan.changes]
    held_bytes = run.joining_bytes_at_start
    if events:
        # A failed OSD leaves and may return.
        objects_bytes = sum(
            count * run.shard_bytes_of(group)
            for group, count in enumerate(run.objects_counts)
        )
        held_bytes += 2 * len(events) * objects_bytes * width
    slowdowns = [slow.slowdown for slow in plan.slow_drives]
    return FaultTotals(
        rebuilt_bytes=int(run.bytes_done[run.is_rebuild].sum()),
        held_bytes=held_bytes,
        slowdown=max(slowdowns, default=SLOWDOWN_UNIT) / SLOWDOWN_UNIT,
    )


def recovery_pace(
    run: FaultRun, phases: PhaseSpans
) -> tuple[str | None, dict[str, Any]]:
    """Return the limit of the recovery and the waits of its PGs; None and empty without recovery.

    A PG with its reservations waits for its primary's pause (``sleep``), for other PGs' objects
    (``max_active``) or for its own. If that takes twice as long as alone or longer, it is ``contention``
    (devices, network, processors, or the op queue before them). Otherwise more would run side by side if more
    PGs had reservations (``max_backfills``); if none waits for one, each just takes one object after
    another (``one object at a time``). If recovered PGs wait for a read lease for more than half of the time,
    it is that (``lease``).
    """
    if not run.rounds_done.any():
        return None, {}
    spans = phases.get("recovery", [])
    span_ns = max(1, sum(stop_ns - start_ns for start_ns, stop_ns in spans))
    waiting = {
        reason: waited_ns / span_ns for reason, waited_ns in run.waited_ns.items()
    }
    object_ns, alone_ns = _object_times(run)
    limit = _limit(waiting, is_crowded=object_ns >= _CROWDED * alone_ns)
    if 2 * _longest_lease_ns(run) >= span_ns:
        limit = "lease"
    return limit, {
        "groups_mean": waiting,
        "object_s": object_ns / 1e9,
        "object_alone_s": alone_ns / 1e9,
    }


def _limit(waiting: Mapping[WaitReason, float], *, is_crowded: bool) -> str:
    reasons: tuple[WaitReason, ...] = ("sleep", "max_active", "object")
    most = max(reasons, key=waiting.__getitem__)
    if most != "object":
        return most
    if is_crowded:
        return "contention"
    return "max_backfills" if waiting["max_backfills"] >= 1 else "one object at a time"


def _longest_lease_ns(run: FaultRun) -> int:
    """Return the longest wait of a PG for a lease after the last operation [ns]."""
    recovery = run.recovery
    last_ns = int(recovery.completed_ns[run.rounds_done].max())
    return max(
        (
            (span.to_ns or run.end_ns) - max(span.from_ns, last_ns)
            for span in run.timeline.spans((State.WAIT,))
        ),
        default=0,
    )


def _object_times(run: FaultRun) -> tuple[float, float]:
    """Return the mean time of an object, in this run and alone [ns]."""
    recovery = run.recovery
    done = run.rounds_done
    objects_count = run.operations_done.sum() or 1
    took_ns = (recovery.completed_ns - recovery.issued_ns)[done].sum()
    templates, firsts, counts = np.unique(
        recovery.templates[done], return_index=True, return_counts=True
    )
    rows = bound_rows(run.book, recovery.bindings[done][firsts])
    wakes_ns = np.where(rows >= 0, run.wake_ns[rows], 0)
    alone_ns = [
        _alone_ns(run.book.templates[template], template_wakes_ns)
        for template, template_wakes_ns in zip(
            templates.tolist(), wakes_ns, strict=True
        )
    ]
    return (
        float(took_ns / objects_count),
        float(np.dot(alone_ns, counts) / objects_count),
    )


def _alone_ns(template: Template, wakes_ns: IntArray) -> int:
    """Return the time of a template if nothing else runs, with the wake-up of each thread [ns]."""
    wake_ns = np.where(template.roles >= 0, wakes_ns[template.roles], 0)
    steps_ns = (template.demands_ns + wake_ns).tolist()
    ends_ns: list[int] = []
    for step_ns, before in zip(steps_ns, predecessors_of(template), strict=True):
        ready_ns = max((ends_ns[step] for step in before), default=0)
        ends_ns.append(ready_ns + step_ns)
    return ends_ns[template.reply]

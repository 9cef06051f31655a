"""What a run under faults comes to: phases, loads, bytes per byte lost, what was out of reach or is gone."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from stripesim.sim.ceph.failures.director import FaultDirector
from stripesim.sim.ceph.failures.groups import STATES, State
from stripesim.sim.ceph.failures.schedule import FaultPlan
from stripesim.sim.ceph.failures.timeline import Timeline
from stripesim.sim.ceph.pool import Book
from stripesim.sim.engine.graph import COUNTER_INDEX, COUNTERS, IntArray, Template
from stripesim.sim.engine.program import (
    FAILED,
    PENDING,
    EngineRun,
    StreamRun,
    bound_rows,
)
from stripesim.sim.observe.client_requests import ClientRequests
from stripesim.sim.observe.critical_path import predecessors_of
from stripesim.sim.observe.recording import account

# State of a placement group → why its requests wait: for a dead member to be noticed, for peering, for
# the last read lease of a member that may still run, for `min_size` members.
_HOLDS = {
    State.STALE: "detection",
    State.PEERING: "peering",
    State.WAIT: "lease",
    State.INACTIVE: "min_size",
    State.INCOMPLETE: "min_size",
}
BLOCKED_BY = tuple(dict.fromkeys(_HOLDS.values()))
Spans = dict[str, list[tuple[int, int]]]
#: Bins of a series, which is coarser than asked for where a run would have more.
SERIES_BINS_MAX = 1_000_000
# Objects that take this many times what they take alone are held up by other work.
_CROWDED = 2.0


def describe_faults(
    director: FaultDirector,
    plan: FaultPlan,
    run: EngineRun,
    requested: ClientRequests,
    book: Book,
    *,
    feed: int,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what faults add to a result row, and the timeline.

    The document has ``events``, ``pg_states``, ``phases``, ``blocked``, ``foreground``, ``recovery``,
    ``recovery_waits``, ``unavailable``, ``interrupted`` and ``lost``; `feed` is the stream of recovery
    operations.
    """
    timeline = director.timeline
    spans = phase_spans(timeline, run.end_ns)
    row = _endings(run.streams[:feed], requested)
    row |= _moments(timeline)
    phases, blocked = _phases(timeline, spans, requested, run.end_ns)
    row |= phases
    row |= _recovered(director, run, book, feed)
    limited_by, waits = _pace(director, spans, run, book, feed)
    row |= limited_by
    row |= _reach(director, run.end_ns)
    if plan.scrubs:
        read = account(run.streams[feed + 2], book)["device_read_bytes"]
        row |= {
            "deep_scrubs": director.scrubs.deep_count,
            "scrub_device_read_bytes": read,
        }
    if plan.lost_osds:
        row |= _repaired(director, run, book, feed)
    document = _document(director, plan, spans, run, requested, book, feed)
    return row, document | {"blocked": blocked, "recovery_waits": waits}


def _endings(streams: Sequence[StreamRun], requested: ClientRequests) -> dict[str, Any]:
    """Count how requests ended; every one ended in one of three ways."""
    completed = requested.completed_ns
    row = {
        "requests_issued": len(completed),
        "requests_failed": int((completed == FAILED).sum()),
        "requests_pending": int((completed == PENDING).sum()),
        "requests_retried": sum(int((stream.retries > 0).sum()) for stream in streams),
        "retries": sum(int(stream.retries.sum()) for stream in streams),
    }
    done = int((completed >= 0).sum())
    assert (
        done + row["requests_failed"] + row["requests_pending"]
        == row["requests_issued"]
    )
    return row


def _first(timeline: Timeline, what: str, after_ns: int = 0) -> int | None:
    events = timeline.events
    return next(
        (
            event.time_ns
            for event in events
            if event.what == what and event.time_ns >= after_ns
        ),
        None,
    )


def phase_spans(timeline: Timeline, end_ns: int) -> Spans:
    """Return when each phase held, as spans [ns]; a phase that did not come is left out.

    ``before`` the first failure; then ``degraded`` while some placement group is not clean and none
    recovers yet; ``recovery`` from the first recovery operation to the moment when all are clean;
    ``after``: all clean again. A later failure starts again with ``degraded``.
    """
    starts = [_first(timeline, what) for what in ("failed", "corrupted")]
    failed = min((time_ns for time_ns in starts if time_ns is not None), default=end_ns)
    times_ns, counts = timeline.series()
    clean = counts[:, STATES.index(State.CLEAN)] >= timeline.groups - timeline.narrow
    begun = {event.time_ns for event in timeline.events if event.what == "recovering"}
    borders = sorted({failed, end_ns, *times_ns.tolist(), *begun})
    spans: Spans = {}
    recovering = False
    for start_ns, stop_ns in pairwise(
        [0, *(border for border in borders if 0 < border <= end_ns)]
    ):
        is_clean = bool(clean[np.searchsorted(times_ns, start_ns, side="right") - 1])
        recovering = not is_clean and (recovering or start_ns in begun)
        if start_ns < failed:
            phase = "before"
        else:
            phase = "after" if is_clean else "recovery" if recovering else "degraded"
        listed = spans.setdefault(phase, [])
        if listed and listed[-1][1] == start_ns:
            listed[-1] = (listed[-1][0], stop_ns)
        else:
            listed.append((start_ns, stop_ns))
    return spans


def _moments(timeline: Timeline) -> dict[str, Any]:
    failed, down, out = (_first(timeline, what) for what in ("failed", "down", "out"))
    recovering = _first(timeline, "recovering", failed or 0)

    def since(start_ns: int | None, stop_ns: int | None) -> float | None:
        return (
            None if start_ns is None or stop_ns is None else (stop_ns - start_ns) / 1e9
        )

    return {
        "detection_s": since(failed, down),
        "down_out_s": since(down, out),
        "checking_s": since(failed, recovering),
        "recovery_s": since(recovering, _first(timeline, "clean", recovering or 0)),
        "failure_to_clean_s": since(failed, _first(timeline, "clean", failed or 0)),
        "failure_to_seen_clean_s": since(
            failed, _first(timeline, "seen clean", failed or 0)
        ),
        "clean_at_end": timeline.all_clean,
    }


def held_ns(timeline: Timeline, requested: ClientRequests, end_ns: int) -> IntArray:
    """Return how long the state of its placement group held each request [ns].

    Shape (requests, reasons), by `BLOCKED_BY`. Before a dead member is noticed only those requests wait that
    need it; they are the ones that still wait when their group peers.
    """
    ended_ns = np.where(requested.done, requested.completed_ns, end_ns)
    held = np.zeros((len(ended_ns), len(BLOCKED_BY)), dtype=np.int64)
    order = np.argsort(requested.groups, kind="stable")
    bounds = np.searchsorted(requested.groups[order], np.arange(timeline.groups + 1))
    for group, start_ns, stop_ns, state in timeline.spans(tuple(_HOLDS)):
        mine = order[bounds[group] : bounds[group + 1]]
        until_ns = np.minimum(ended_ns[mine], end_ns if stop_ns is None else stop_ns)
        shared_ns = until_ns - np.maximum(requested.issued_ns[mine], start_ns)
        held[mine, BLOCKED_BY.index(_HOLDS[state])] += np.maximum(shared_ns, 0)
    held[held[:, 1:].sum(axis=1) == 0] = 0
    return held


def _phases(
    timeline: Timeline, phases: Spans, requested: ClientRequests, end_ns: int
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Rates and latencies by phase of the requests that ran, and apart from them those that were blocked."""
    completed, issued = requested.completed_ns, requested.issued_ns
    held = held_ns(timeline, requested, end_ns)
    ran, reasons = held.sum(axis=1) == 0, held.argmax(axis=1)
    waits_ns = np.where(requested.done, completed, end_ns) - issued
    row: dict[str, Any] = {}
    blocked: dict[str, dict[str, Any]] = {}
    for phase, spans in phases.items():
        inside, asked = (
            np.zeros(len(completed), dtype=bool),
            np.zeros(len(completed), dtype=bool),
        )
        for start_ns, stop_ns in spans:
            inside |= (completed > start_ns) & (completed <= stop_ns)
            asked |= (issued > start_ns) & (issued <= stop_ns)
        seconds = sum(stop_ns - start_ns for start_ns, stop_ns in spans) / 1e9
        row[f"iops_{phase}"] = float((inside & ran).sum()) / seconds
        # Latencies count in the phase in which a request was issued.
        latencies = waits_ns[asked & ran & requested.done]
        if len(latencies):
            row[f"latency_mean_{phase}_ns"] = float(latencies.mean())
            row[f"latency_p50_{phase}_ns"], row[f"latency_p99_{phase}_ns"] = (
                float(value) for value in np.percentile(latencies, [50, 99])
            )
        stuck = asked & ~ran & (completed != FAILED)
        blocked[phase] = {
            reason: {
                "requests": int(those.sum()),
                "longest_s": float(waits_ns[those].max()) / 1e9,
            }
            for index, reason in enumerate(BLOCKED_BY)
            if (those := stuck & (reasons == index)).any()
        }
        row[f"blocked_{phase}"] = int(stuck.sum())
        row[f"blocked_longest_{phase}_ns"] = (
            int(waits_ns[stuck].max()) if stuck.any() else None
        )
        row[f"blocked_by_{phase}"] = ", ".join(
            f"{reason} {one['requests']}" for reason, one in blocked[phase].items()
        )
    return row, blocked


def _alone_ns(template: Template, wakes_ns: IntArray) -> int:
    """Return how long a template takes where nothing else runs; a step's thread is woken first [ns]."""
    ends: list[int] = []
    takes_ns = template.demands_ns + np.where(
        template.roles >= 0, wakes_ns[template.roles], 0
    )
    for step_ns, before in zip(
        takes_ns.tolist(), predecessors_of(template), strict=True
    ):
        ends.append(step_ns + max((ends[step] for step in before), default=0))
    return ends[template.reply]


def _pace(
    director: FaultDirector, phases: Spans, run: EngineRun, book: Book, feed: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Say what limits the recovery: what its placement groups wait for, and what slows its objects.

    A group with its reservations waits for its primary's pause (``sleep``), for other groups' objects
    (``max_active``) or for its own. Where that takes twice as long as alone or longer, it is ``contention``
    (devices, network, processors, or the op queue before them). Otherwise more would run side by side if more
    groups had reservations (``max_backfills``); if none waits for one, each just takes one object after
    another (``one object at a time``). Where groups that are whole wait for a read lease for more than
    half of the time, it is that (``lease``).
    """
    recovery, stream = director.recovery, run.streams[feed]
    recovery.end(run.end_ns)
    done = stream.completed_ns >= 0
    if not done.any():
        return {}, {}
    span_ns = max(
        1, sum(stop_ns - start_ns for start_ns, stop_ns in phases.get("recovery", []))
    )
    leases = director.timeline.spans((State.WAIT,))
    groups = {
        what: waited_ns / span_ns for what, waited_ns in recovery.waited_ns.items()
    }
    # The rounds of an object follow one another without a pause.
    objects = _ended(director, done).sum() or 1
    object_ns = float((stream.completed_ns - stream.issued_ns)[done].sum() / objects)
    templates, firsts, counts = np.unique(
        stream.templates[done], return_index=True, return_counts=True
    )
    rows = bound_rows(book, stream.bindings[done][firsts])
    wakes_ns = np.where(rows >= 0, director.wake_ns[rows], 0)
    alone = [
        _alone_ns(book.templates[one], wakes_ns[n])
        for n, one in enumerate(templates.tolist())
    ]
    alone_ns = float(np.dot(alone, counts) / objects)
    limit = max(("sleep", "max_active", "object"), key=groups.__getitem__)
    if limit == "object":
        queued = groups["max_backfills"] >= 1
        slowed = object_ns >= _CROWDED * alone_ns
        limit = (
            "contention"
            if slowed
            else "max_backfills"
            if queued
            else "one object at a time"
        )
    last_ns = int(stream.completed_ns[done].max())
    leased_ns = max(
        (
            (stop_ns or run.end_ns) - max(start_ns, last_ns)
            for _, start_ns, stop_ns, _ in leases
        ),
        default=0,
    )
    limit = "lease" if 2 * leased_ns >= span_ns else limit
    return {"recovery_limited_by": limit}, {
        "groups_mean": groups,
        "object_s": object_ns / 1e9,
        "object_alone_s": alone_ns / 1e9,
    }


def operation_totals(stream: StreamRun, book: Book) -> IntArray:
    """Return what each operation of a stream accounts by its plan, shape (operations, counters)."""
    totals = np.zeros((len(stream.issued_ns), len(COUNTERS)), dtype=np.int64)
    if not len(totals):
        return totals
    pairs, inverse = np.unique(
        np.stack([stream.templates, stream.bindings], axis=1),
        axis=0,
        return_inverse=True,
    )
    each = np.stack(
        [
            book.templates[template].totals(np.append(bound >= 0, False))
            for (template, _), bound in zip(
                pairs.tolist(), bound_rows(book, pairs[:, 1]), strict=True
            )
        ]
    )
    found: IntArray = each[inverse.reshape(-1)]
    return found


def _recovered(
    director: FaultDirector, run: EngineRun, book: Book, feed: int
) -> dict[str, Any]:
    """Sum the recovery: objects, bytes recovered, bytes moved with what members noted while they peered.

    ``recovery_bytes`` counts every shard that recovery wrote, shards that CRUSH only moved included;
    ``…_per_lost_byte`` is per byte that the failed OSDs held.
    """
    stream = run.streams[feed]
    done = stream.completed_ns >= 0
    recovered_shards = int(_shards(director)[: len(done)][done].sum())
    lost_bytes = director.lost_shards * director.shard_bytes
    row: dict[str, Any] = {
        "recovery_operations": int(_ended(director, done).sum()),
        "recovery_operations_cut": int((~done).sum()),
        "recovery_bytes": recovered_shards * director.shard_bytes,
        "recovery_lost_bytes": lost_bytes,
    }
    taken, noted = account(stream, book), account(run.streams[feed + 1], book)
    for counter in ("device_read_bytes", "device_write_bytes", "private_net_bytes"):
        moved = taken[counter] + noted[counter]
        row[f"recovery_{counter}"] = moved
        row[f"recovery_{counter}_per_lost_byte"] = (
            moved / lost_bytes if lost_bytes else None
        )
    return row


def _shards(director: FaultDirector) -> IntArray:
    """Return how many shards each round of recovery completed: those of its operation in the last."""
    log = director.recovery.log
    return np.array(
        [len(one.shards) * (last and one.kind != "delete") for one, last in log],
        dtype=np.int64,
    )


def _ended(
    director: FaultDirector, done: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Tell which rounds, of those that are done, completed an operation."""
    last = np.array([last for _, last in director.recovery.log], dtype=np.bool_)
    return np.logical_and(done, last[: len(done)])


def _repaired(
    director: FaultDirector, run: EngineRun, book: Book, feed: int
) -> dict[str, Any]:
    """Say what became of the OSDs lost before the run: objects rebuilt, time, bytes per byte lost.

    Shards that CRUSH moved and that were merely copied are left out; of what is accounted once per service,
    such as the log of a sync, rebuilds have their share by number of operations.
    """
    stream = run.streams[feed]
    log = director.recovery.log
    rebuilds = np.array(
        [operation.kind == "rebuild" for operation, _ in log], dtype=bool
    )
    done = (stream.completed_ns >= 0) & rebuilds[: len(stream.completed_ns)]
    ended = [log[index][0] for index in np.flatnonzero(_ended(director, done)).tolist()]
    objects = {(operation.group, operation.item) for operation in ended}
    pending = director.lost_objects - len(objects)
    lost_bytes = director.lost_shards_at_start * director.shard_bytes
    row: dict[str, Any] = {
        "repair_objects": len(objects),
        "repair_objects_pending": pending,
        "repair_lost_bytes": lost_bytes,
        "repair_s": float(stream.completed_ns[done].max()) / 1e9
        if objects and not pending
        else None,
    }
    if lost_bytes and not pending:
        totals, taken = operation_totals(stream, book), account(stream, book)
        share = int(done.sum()) / len(done)
        for counter in ("device_read_bytes", "device_write_bytes", "private_net_bytes"):
            planned = totals[:, COUNTER_INDEX[counter]]
            per_service = max(0, taken[counter] - int(planned.sum()))
            row[f"repair_{counter}_per_lost_byte"] = (
                int(planned[done].sum()) + share * per_service
            ) / lost_bytes
    return row


def _reach(director: FaultDirector, end_ns: int) -> dict[str, Any]:
    """Say what clients could not reach, and what nobody ever can again."""
    timeline = director.timeline
    spans = timeline.spans()
    groups = {group for group, *_ in spans}
    return {
        "pgs_unavailable": len(groups),
        "objects_unavailable": sum(
            len(director.groups[group].objects) for group in groups
        ),
        "unavailable_pg_s": timeline.seconds_in(
            end_ns, State.INACTIVE, State.INCOMPLETE
        ),
        "peering_pg_s": timeline.seconds_in(end_ns, State.PEERING),
        "stale_pg_s": timeline.seconds_in(end_ns, State.STALE),
        "pgs_lost": len(timeline.lost),
        "objects_lost": sum(map(len, timeline.lost.values())),
    }


def _document(
    director: FaultDirector,
    plan: FaultPlan,
    phases: Spans,
    run: EngineRun,
    requested: ClientRequests,
    book: Book,
    feed: int,
) -> dict[str, Any]:
    timeline = director.timeline
    times_ns, counts = timeline.series()
    width_ns = _bin_width_ns(plan.series_ns, run.end_ns)
    return {
        "events": [
            {"time_s": event.time_ns / 1e9, "what": event.what, "text": event.text}
            for event in sorted(timeline.events, key=lambda event: event.time_ns)
        ],
        "pg_states": {
            "time_s": (times_ns / 1e9).tolist(),
            **{state: counts[:, index].tolist() for index, state in enumerate(STATES)},
        },
        "phases": {
            phase: [[start_ns / 1e9, stop_ns / 1e9] for start_ns, stop_ns in spans]
            for phase, spans in phases.items()
        },
        "end_s": run.end_ns / 1e9,
        "foreground": _foreground_series(requested, width_ns, run.end_ns),
        "recovery": _recovery_series(
            director, run.streams[feed], book, width_ns, run.end_ns
        ),
        "unavailable": [
            {
                "pg": f"{group:x}",
                "from_s": start_ns / 1e9,
                "to_s": None if stop_ns is None else stop_ns / 1e9,
                "state": state,
                "objects": len(director.groups[group].objects),
            }
            for group, start_ns, stop_ns, state in timeline.spans()
        ],
        "interrupted": director.interrupted,
        "lost": [
            {"pg": f"{group:x}", "objects": sorted(items)}
            for group, items in sorted(timeline.lost.items())
        ],
    }


def _bin_width_ns(series_ns: int, end_ns: int) -> int:
    """Return the width of the bins of a series, a multiple of the one asked for where those are too many."""
    bins = -(-max(1, end_ns) // series_ns)
    return series_ns * -(-bins // SERIES_BINS_MAX)


def _bins(end_ns: int, width_ns: int) -> IntArray:
    return np.arange(-(-max(1, end_ns) // width_ns), dtype=np.int64)


def _foreground_series(
    requested: ClientRequests, width_ns: int, end_ns: int
) -> dict[str, Any]:
    """Rate and latency of the requests completed in each bin."""
    bins = _bins(end_ns, width_ns)
    done = requested.completed_ns >= 0
    place = np.minimum(requested.completed_ns[done] // width_ns, len(bins) - 1)
    latencies = requested.latencies_ns
    order = np.argsort(place, kind="stable")
    parts: Sequence[IntArray] = np.split(
        latencies[order], np.searchsorted(place[order], bins[1:])
    )
    per_s = 1e9 / width_ns
    lengths = np.bincount(
        place, weights=requested.lengths_bytes[done], minlength=len(bins)
    )
    return {
        "time_s": (bins * width_ns / 1e9).tolist(),
        "iops": (np.bincount(place, minlength=len(bins)) * per_s).tolist(),
        "throughput_bytes_per_s": (lengths * per_s).tolist(),
        **{
            f"latency_p{share}_ns": [
                float(np.percentile(part, share)) if len(part) else None
                for part in parts
            ]
            for share in (50, 99)
        },
    }


def _recovery_series(
    director: FaultDirector, stream: StreamRun, book: Book, width_ns: int, end_ns: int
) -> dict[str, Any]:
    """Bytes rebuilt, read, written and sent by the operations completed in each bin, per second."""
    bins = _bins(end_ns, width_ns)
    done = stream.completed_ns >= 0
    place = np.minimum(stream.completed_ns[done] // width_ns, len(bins) - 1)
    totals = operation_totals(stream, book)[done]
    shards = _shards(director)
    per_s = 1e9 / width_ns

    def summed(weights: IntArray) -> list[float]:
        found = np.bincount(place, weights=weights, minlength=len(bins)) * per_s
        return [float(value) for value in found]

    return {
        "time_s": (bins * width_ns / 1e9).tolist(),
        "rebuilt_bytes_per_s": summed(shards[: len(done)][done] * director.shard_bytes),
        **{
            f"{name}_per_s": summed(totals[:, COUNTER_INDEX[name]])
            for name in ("device_read_bytes", "device_write_bytes", "private_net_bytes")
        },
    }

"""Phases of a run under faults, with rates, latencies and blocked requests of each."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from stripesim.sim.ceph.failures.groups import STATES, State
from stripesim.sim.ceph.failures.results.finished_run import BoolArray, FaultRun
from stripesim.sim.ceph.failures.timeline import FaultTimeline, StateSpan
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.engine.program import FAILED
from stripesim.sim.observe.client_requests import ClientRequests
from stripesim.sim.observe.result_row import PhaseNumbers

# State of a PG → why its requests wait: for a dead member to be noticed, for peering, for the last read
# lease of a member that may still run, for `min_size` members.
_DETECTION = "detection"
_REASON_OF = {
    State.STALE: _DETECTION,
    State.PEERING: "peering",
    State.WAIT: "lease",
    State.INACTIVE: "min_size",
    State.INCOMPLETE: "min_size",
}
_GATEWAY = "gateway"
BLOCKED_BY = (*dict.fromkeys(_REASON_OF.values()), _GATEWAY)

# Events that end the phase before.
_FIRST_FAULTS = ("failed", "corrupted", "slow")

Span = tuple[int, int]
#: Phase → when it held [ns].
PhaseSpans = dict[str, list[Span]]


def phase_spans(timeline: FaultTimeline, end_ns: int) -> PhaseSpans:
    """Return when each phase held; a phase that never came is left out.

    The phase is ``before`` up to the first failure or slow drive, ``degraded`` while some PG is not clean and
    none recovers yet, ``recovery`` from the first recovery operation until all PGs are clean, and ``after``
    once they are. It is ``slow`` while they are clean and use a slow drive. A later failure begins again with
    ``degraded``.
    """
    times_ns, counts = timeline.series()
    clean_counts = counts[:, STATES.index(State.CLEAN)]
    all_clean = clean_counts >= timeline.groups - len(timeline.narrow)
    failed_ns = _first_fault_ns(timeline, end_ns)
    begun = {event.time_ns for event in timeline.events if event.kind == "recovering"}
    moments = {failed_ns, end_ns, *times_ns.tolist(), *begun}
    for slow_ns, normal_ns in timeline.slow_spans:
        moments |= {slow_ns, end_ns if normal_ns is None else normal_ns}
    borders = sorted(moment for moment in moments if 0 < moment <= end_ns)
    spans: PhaseSpans = {}
    recovers = False
    for start_ns, stop_ns in pairwise([0, *borders]):
        index = np.searchsorted(times_ns, start_ns, side="right") - 1
        is_clean = bool(all_clean[index])
        recovers = not is_clean and (recovers or start_ns in begun)
        if start_ns < failed_ns:
            phase = "before"
        else:
            phase = _phase_after_failure(
                is_clean=is_clean,
                recovers=recovers,
                is_slow=timeline.is_slow(start_ns),
            )
        _extend(spans.setdefault(phase, []), start_ns, stop_ns)
    return spans


def held_ns(
    timeline: FaultTimeline,
    requested: ClientRequests,
    end_ns: int,
    groups_of_pg: Callable[[int], Sequence[int]] = lambda pg: (pg,),
) -> IntArray:
    """Return the time for which the state of its PGs, or a gateway that failed, held each request.

    `groups_of_pg` gives the groups of the requests that need a PG.

    While a dead member is unnoticed only the requests that need it wait. These are the ones that are still
    there when it is noticed or returns.

    Returns
    -------
    Times by `BLOCKED_BY` [ns], shape (requests, reasons).
    """
    ended_ns = np.where(requested.done, requested.completed_ns, end_ns)
    held = np.zeros((len(ended_ns), len(BLOCKED_BY)), dtype=np.int64)
    by_group = np.argsort(requested.groups, kind="stable")
    sorted_groups = requested.groups[by_group]
    spans = [
        (
            groups_of_pg(span.group),
            span.from_ns,
            _end_of_hold_ns(timeline, span),
            _REASON_OF[span.state],
        )
        for span in timeline.spans(tuple(_REASON_OF))
    ]
    spans += [(*stall, _GATEWAY) for stall in timeline.gateway_stalls]
    for groups, from_ns, to_ns, reason in spans:
        starts = np.searchsorted(sorted_groups, groups, side="left").tolist()
        stops = np.searchsorted(sorted_groups, groups, side="right").tolist()
        ranges = zip(starts, stops, strict=True)
        requests = np.concatenate(
            [by_group[:0], *(by_group[start:stop] for start, stop in ranges)]
        )
        stop_ns = end_ns if to_ns is None else to_ns
        if reason == _DETECTION:
            requests = requests[ended_ns[requests] >= stop_ns]
        until_ns = np.minimum(ended_ns[requests], stop_ns)
        shared_ns = until_ns - np.maximum(requested.issued_ns[requests], from_ns)
        held[requests, BLOCKED_BY.index(reason)] += np.maximum(shared_ns, 0)
    return held


def _end_of_hold_ns(timeline: FaultTimeline, span: StateSpan) -> int | None:
    """Return when a state of a PG ceases to hold requests [ns], None if it does not.

    A member that returns before its death is noticed serves those that wait for it.
    """
    ends_ns = [span.to_ns]
    if span.state == State.STALE:
        ends_ns.append(timeline.first_ns("returned", span.from_ns))
    return min((ns for ns in ends_ns if ns is not None), default=None)


def describe_phases(
    run: FaultRun, phases: PhaseSpans
) -> tuple[dict[str, PhaseNumbers], dict[str, dict[str, Any]]]:
    """Return rates and latencies by phase, and the blocked requests by phase and reason.

    Rates and latencies are of requests that were not blocked. A request counts for the rate when it
    completed, and for the latency when it was issued. The time of a phase counts until the load has ended. A
    phase that begins later is left out of the numbers.
    """
    requested = run.requested
    issued = requested.issued_ns
    completed = requested.completed_ns
    held = held_ns(run.timeline, requested, run.end_ns, run.groups_of_pg)
    ran = held.sum(axis=1) == 0
    load_end_ns = _load_end_ns(run, ran)
    reasons = held.argmax(axis=1)
    waits_ns = np.where(requested.done, completed, run.end_ns) - issued
    numbers: dict[str, PhaseNumbers] = {}
    blocked: dict[str, dict[str, Any]] = {}
    for phase, all_spans in phases.items():
        spans = _until(all_spans, load_end_ns)
        if not spans:
            continue
        asked = _within(issued, spans)
        seconds = sum(stop_ns - start_ns for start_ns, stop_ns in spans) / 1e9
        latencies_ns = waits_ns[asked & ran & requested.done]
        counted = _within(completed, spans) & ran
        completed_bytes = int(requested.lengths_bytes[counted].sum())
        stuck = asked & ~ran & (completed != FAILED)
        blocked[phase] = _by_reason(reasons[stuck], waits_ns[stuck])
        numbers[phase] = PhaseNumbers(
            iops=float(counted.sum()) / seconds,
            throughput_bytes_per_s=completed_bytes / seconds,
            **_latencies(latencies_ns),
            blocked=int(stuck.sum()),
            blocked_longest_ns=int(waits_ns[stuck].max()) if stuck.any() else None,
            blocked_by=_blocked_text(blocked[phase]),
        )
    return numbers, blocked


def _load_end_ns(run: FaultRun, ran: BoolArray) -> int:
    """Return when the last of the requests that ran freely completed [ns].

    That is the end of the run if some requests are pending or failed.
    """
    requested = run.requested
    if not ran.any() or not requested.done.all():
        return run.end_ns
    return int(requested.completed_ns[ran].max())


def _until(spans: Sequence[Span], end_ns: int) -> list[Span]:
    """Return the parts of spans before a moment [ns]."""
    return [
        (start_ns, min(stop_ns, end_ns))
        for start_ns, stop_ns in spans
        if start_ns < end_ns
    ]


def _first_fault_ns(timeline: FaultTimeline, end_ns: int) -> int:
    moments = [timeline.first_ns(kind) for kind in _FIRST_FAULTS]
    return min((time_ns for time_ns in moments if time_ns is not None), default=end_ns)


def _phase_after_failure(*, is_clean: bool, recovers: bool, is_slow: bool) -> str:
    if is_clean:
        return "slow" if is_slow else "after"
    return "recovery" if recovers else "degraded"


def _extend(spans: list[Span], start_ns: int, stop_ns: int) -> None:
    """Append a span, merged with the last one if that ends where it begins."""
    if spans and spans[-1][1] == start_ns:
        start_ns, _ = spans.pop()
    spans.append((start_ns, stop_ns))


def _within(times_ns: IntArray, spans: Sequence[Span]) -> BoolArray:
    inside = np.zeros(len(times_ns), dtype=np.bool_)
    for start_ns, stop_ns in spans:
        inside |= (times_ns > start_ns) & (times_ns <= stop_ns)
    return inside


def _latencies(latencies_ns: IntArray) -> dict[str, float]:
    if not len(latencies_ns):
        return {}
    p50_ns, p99_ns = np.percentile(latencies_ns, [50, 99])
    return {
        "latency_mean_ns": float(latencies_ns.mean()),
        "latency_p50_ns": float(p50_ns),
        "latency_p99_ns": float(p99_ns),
    }


def _by_reason(reasons: IntArray, waits_ns: IntArray) -> dict[str, dict[str, Any]]:
    """Return number and longest wait [s] of blocked requests by reason."""
    by_reason = {}
    for index, reason in enumerate(BLOCKED_BY):
        of_reason_ns = waits_ns[reasons == index]
        if len(of_reason_ns):
            by_reason[reason] = {
                "requests": len(of_reason_ns),
                "longest_s": float(of_reason_ns.max()) / 1e9,
            }
    return by_reason


def _blocked_text(by_reason: dict[str, dict[str, Any]]) -> str:
    return ", ".join(
        f"{reason} {blocked['requests']}" for reason, blocked in by_reason.items()
    )

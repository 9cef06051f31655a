"""The description of a run under faults: a row of numbers, and a document of the story."""

from typing import Any

from stripesim.sim.ceph.failures.groups import STATES, State
from stripesim.sim.ceph.failures.results.change_results import (
    describe_changes,
    describe_fill,
)
from stripesim.sim.ceph.failures.results.finished_run import FaultRun
from stripesim.sim.ceph.failures.results.phases import (
    describe_phases,
    phase_spans,
)
from stripesim.sim.ceph.failures.results.recovery_results import (
    describe_recovery,
    describe_repair,
    recovery_pace,
    recovery_parts,
    whole_recovery_s,
)
from stripesim.sim.ceph.failures.results.series import (
    bin_width_ns,
    foreground_series,
    recovery_series,
)
from stripesim.sim.engine.program import FAILED, PENDING
from stripesim.sim.observe.recording import account
from stripesim.sim.observe.result_row import FaultNumbers


def describe_faults(run: FaultRun) -> tuple[FaultNumbers, dict[str, Any]]:
    """Describe a run under faults.

    Returns
    -------
    numbers
        Columns of the result row.
    document
        ``events``, ``pg_states``, ``phases``, ``end_s``, ``foreground``, ``recovery``, ``unavailable``,
        ``interrupted``, ``lost``, ``blocked``, ``recovery_waits``, ``recovery_parts``, ``changes`` and
        ``fill``.
    """
    spans = phase_spans(run.timeline, run.end_ns)
    phases, blocked = describe_phases(run, spans)
    limited_by, waits = recovery_pace(run, spans)
    numbers = FaultNumbers(
        **_endings(run),
        **_moments(run),
        phases=phases,
        recovery=describe_recovery(run, limited_by),
        **_reach(run),
        **_scrubs(run),
        repair=describe_repair(run) if run.plan.lost_osds else None,
    )
    timeline = run.timeline
    width_ns = bin_width_ns(run.plan.series_ns, run.end_ns)
    return numbers, {
        "events": [
            {"time_s": event.time_ns / 1e9, "what": event.kind, "text": event.text}
            for event in sorted(timeline.events, key=lambda event: event.time_ns)
        ],
        "pg_states": _pg_states(run),
        "phases": {
            phase: [
                [start_ns / 1e9, stop_ns / 1e9] for start_ns, stop_ns in phase_spans
            ]
            for phase, phase_spans in spans.items()
        },
        "end_s": run.end_ns / 1e9,
        "foreground": foreground_series(run, width_ns),
        "recovery": recovery_series(run, width_ns),
        "unavailable": _unavailable(run),
        "interrupted": run.interrupted_writes,
        "changes": describe_changes(run),
        "fill": describe_fill(run),
        "lost": [
            {"pg": f"{group:x}", "objects": sorted(items)}
            for group, items in sorted(timeline.lost.items())
        ],
        "blocked": blocked,
        "recovery_waits": waits,
        "recovery_parts": recovery_parts(run),
    }


def _endings(run: FaultRun) -> dict[str, Any]:
    """Count requests by their end: completed, failed or pending."""
    completed = run.requested.completed_ns
    retries = [stream.retries for stream in run.engine_run.streams[: run.feed_stream]]
    done = int((completed >= 0).sum())
    failed = int((completed == FAILED).sum())
    pending = int((completed == PENDING).sum())
    assert done + failed + pending == len(completed)
    return {
        "requests_issued": len(completed),
        "requests_failed": failed,
        "requests_pending": pending,
        "requests_retried": sum(int((counts > 0).sum()) for counts in retries),
        "retries": sum(int(counts.sum()) for counts in retries),
    }


def _moments(run: FaultRun) -> dict[str, Any]:
    """Measure the times between the first events of each kind [s]."""
    timeline = run.timeline
    failed = timeline.first_ns("failed")
    down = timeline.first_ns("down")
    out = timeline.first_ns("out")
    recovering = timeline.first_ns("recovering", failed or 0)
    recovered = timeline.first_ns("clean", recovering or 0)
    clean = timeline.first_ns("clean", failed or 0)
    seen_clean = timeline.first_ns("seen clean", failed or 0)
    return {
        "detection_s": _seconds_between(failed, down),
        "down_out_s": _seconds_between(down, out),
        "checking_s": _seconds_between(failed, recovering),
        "recovery_s": _seconds_between(recovering, recovered),
        "recovery_whole_s": whole_recovery_s(run, recovering, recovered),
        "objects_ratio": run.plan.objects_ratio,
        "failure_to_clean_s": _seconds_between(failed, clean),
        "failure_to_seen_clean_s": _seconds_between(failed, seen_clean),
        "clean_at_end": timeline.all_clean,
    }


def _seconds_between(start_ns: int | None, stop_ns: int | None) -> float | None:
    if start_ns is None or stop_ns is None:
        return None
    return (stop_ns - start_ns) / 1e9


def _reach(run: FaultRun) -> dict[str, Any]:
    """Count unavailable PGs and permanently lost objects."""
    timeline = run.timeline
    end_ns = run.end_ns
    groups = {span.group for span in timeline.spans()}
    objects_counts = run.objects_counts
    return {
        "pgs_unavailable": len(groups),
        "objects_unavailable": sum(objects_counts[group] for group in groups),
        "unavailable_pg_s": timeline.seconds_in(
            end_ns, State.INACTIVE, State.INCOMPLETE
        ),
        "peering_pg_s": timeline.seconds_in(end_ns, State.PEERING),
        "stale_pg_s": timeline.seconds_in(end_ns, State.STALE),
        "pgs_lost": len(timeline.lost),
        "objects_lost": sum(map(len, timeline.lost.values())),
    }


def _scrubs(run: FaultRun) -> dict[str, Any]:
    if not run.plan.scrubs:
        return {}
    taken = account(run.scrubs, run.book)
    return {
        "deep_scrubs": run.deep_scrubs,
        "scrub_device_read_bytes": taken["device_read_bytes"],
    }


def _pg_states(run: FaultRun) -> dict[str, Any]:
    times_ns, counts = run.timeline.series()
    by_state: dict[str, Any] = {
        state: counts[:, index].tolist() for index, state in enumerate(STATES)
    }
    return {"time_s": (times_ns / 1e9).tolist(), **by_state}


def _unavailable(run: FaultRun) -> list[dict[str, Any]]:
    return [
        {
            "pg": f"{span.group:x}",
            "from_s": span.from_ns / 1e9,
            "to_s": None if span.to_ns is None else span.to_ns / 1e9,
            "state": span.state,
            "objects": run.objects_counts[span.group],
        }
        for span in run.timeline.spans()
    ]

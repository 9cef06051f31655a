"""The result of a run: its rows, its use of resources, and what the audit says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stripesim.sim.ceph.clients.stationary import ages_at_start
from stripesim.sim.ceph.clients.workload import Synthetic
from stripesim.sim.ceph.planner import CompiledGraphs, Foreground
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.program import EngineRun
from stripesim.sim.observe.audit import RowNumbers, audit_row, audit_run, refuse
from stripesim.sim.observe.audit_numbers import (
    FaultTotals,
    planned_uses,
    row_numbers,
    run_numbers,
)
from stripesim.sim.observe.client_requests import (
    ClientRequests,
    join_parts,
    joined_requests,
    joined_streams,
)
from stripesim.sim.observe.limits import (
    ResourceUse,
    RunLimits,
    limits_of_run,
    resource_use,
    travel_fraction,
)
from stripesim.sim.observe.processors import processor_use
from stripesim.sim.observe.recording import account, completions_sha256, describe
from stripesim.sim.observe.result_row import FaultNumbers, ResultRow
from stripesim.sim.observe.scope import RowScope, WorkloadRun
from stripesim.sim.observe.window import Window, offered_load, window_of
from stripesim.sim.prepared_run import AnyWorkload, PreparedRun


@dataclass(frozen=True, kw_only=True)
class Run:
    """The result of one run.

    `simulate` returns it whether or not it passes the audit, with the refusal in its rows. Whatever shows its
    numbers takes them from `accepted`, or marks them.

    Attributes
    ----------
    row
        Numbers of the result row.
    load_rows
        The row of each workload, if there are several.
    requested
        Foreground requests of all clients, in order of issue.
    first
        Requests of the first stream, whose steps can be followed.
    engine_run
        The engine's result.
    book
        Templates and bindings of the requests.
    compiled
        Op graphs of the requests, for another run with equal parameters.
    foreground
        The first of the clients' streams, with its plan.
    background
        Amounts that the completed requests of each background stream account.
    uses
        Completed uses of resources.
    sha256
        Fingerprint of the completion times.
    resources
        Use of each class of resource.
    limits
        Classes near their limit. See `stripesim.sim.observe.limits.limits_of_run`.
    window
        The part of the run that `row` measures, or None if no request completed.
    timeline
        Timeline of a run under faults. See `stripesim.sim.ceph.failures.results.describe`.
    processors
        Use of processors. See `stripesim.sim.observe.processors.processor_use`.
    requests_least
        Requests that closed loops issue at least, for rounds of their depth and periods of a CPU limit.
    requests_wanted
        Requests that closed loops should issue at least, as far as this run can tell.
    length
        Requests of the run over those that its scenario states, which are fewest.
    counts_refused
        Refusal of the counts of bytes and uses by the audit, or None.
    blocked
        True for requests that waited because of the state of their PG, shape (requests,). None without
        faults.
    """

    row: ResultRow
    load_rows: tuple[ResultRow, ...]
    requested: ClientRequests
    first: ClientRequests
    engine_run: EngineRun
    book: Book
    compiled: CompiledGraphs
    foreground: Foreground
    background: tuple[dict[str, int], ...]
    uses: int
    sha256: str
    resources: tuple[ResourceUse, ...]
    limits: tuple[dict[str, Any], ...]
    window: Window | None
    timeline: dict[str, Any] | None = None
    processors: dict[str, Any] = field(default_factory=dict)
    requests_least: int = 0
    requests_wanted: int = 0
    length: int = 1
    counts_refused: str | None = None
    blocked: npt.NDArray[np.bool_] | None = None

    @property
    def refused(self) -> str | None:
        """First refusal of the audit among the rows, or None."""
        refusals = [row.refused for row in (self.row, *self.load_rows)]
        return next((text for text in refusals if text is not None), None)

    @property
    def utilisation(self) -> float:
        """Utilisation of the busiest resource, 0 to 1."""
        return max((use.utilisation for use in self.resources), default=0.0)

    def withheld(self) -> Run:
        """Return this result without the numbers of rows that the audit refuses."""
        if self.refused is None:
            return self
        return replace(
            self,
            row=self.row.withheld(),
            load_rows=tuple(row.withheld() for row in self.load_rows),
            processors={},
            timeline=None,
        )

    def accepted(self) -> Run:
        """Return this result if it passes the audit.

        Raises
        ------
        RefusedError
            If the audit refuses one of its rows.
        """
        if self.refused is not None:
            refuse(self.refused)
        return self

    def accepted_counts(self) -> Run:
        """Return this result if its counts of bytes and uses pass the audit.

        A replay of a few recorded requests is too short for a rate, while its counts are those of the record.

        Raises
        ------
        RefusedError
            If the audit refuses the counts.
        """
        if self.counts_refused is not None:
            refuse(self.counts_refused)
        return self

    def __repr__(self) -> str:
        row = self.row
        if row.iops is None:
            return f"<Run: no numbers: {self.refused or 'no request completed'}>"
        latency = ""
        if row.latency_mean_ns is not None:
            latency = f", mean latency {row.latency_mean_ns / 1e6:.3g} ms"
        return f"<Run: {row.iops:,.0f} requests/s{latency}>"


class FaultRecord(NamedTuple):
    """Effects of faults and changes in a run: for the row, as a timeline, and for the audit."""

    numbers: FaultNumbers
    timeline: dict[str, Any]
    totals: FaultTotals


def result_of(prepared: PreparedRun, run: EngineRun) -> Run:
    """Return the audited result of a run."""
    loads = _workload_runs(prepared, run)
    if prepared.director is None:
        return _result(prepared, run, loads)
    return _result_under_faults(prepared, run, loads)


def _synthetic(load: AnyWorkload) -> Synthetic | None:
    """Return the synthetic workload that a stream plays, or None."""
    synthetic = getattr(load, "workload", None)
    return synthetic if isinstance(synthetic, Synthetic) else None


def _starts_steady(load: AnyWorkload) -> bool:
    synthetic = _synthetic(load)
    return synthetic is not None and synthetic.first_blocks is not None


def _with_ages(pool: Pool, requested: ClientRequests, dry_ns: int) -> ClientRequests:
    """Return requests with the ages of those that are in flight when a steady run starts."""
    first = requested.issued_ns == 0
    ages_ns = np.zeros(len(first), dtype=np.int64)
    ages_ns[first] = ages_at_start(
        pool,
        requested.groups[first],
        requested.is_write[first],
        requested.completed_ns[first],
        dry_ns,
    )
    return replace(requested, ages_ns=ages_ns)


def _workload_runs(prepared: PreparedRun, run: EngineRun) -> list[WorkloadRun]:
    """Return the recorded requests of each workload."""
    loads = []
    start = 0
    for sources, workload in zip(prepared.clients, prepared.workloads, strict=True):
        own = slice(start, start + len(sources))
        start = own.stop
        parts = [
            join_parts(stream, source.planned)
            for stream, source in zip(run.streams[own], sources, strict=True)
        ]
        last_issues_ns = [
            int(part.issued_ns[-1]) for part in parts if len(part.issued_ns)
        ]
        synthetic = _synthetic(workload)
        dry_ns = min(last_issues_ns, default=0)
        requested = joined_requests(parts)
        if prepared.settings.prefilled and _starts_steady(workload):
            requested = _with_ages(prepared.pool, requested, dry_ns)
        spawned = joined_streams(run.spawned[own]) if run.spawned else None
        loads.append(
            WorkloadRun(
                sources=tuple(sources),
                requested=requested,
                first=parts[0],
                counted=account(
                    joined_streams(run.streams[own]), prepared.book, spawned=spawned
                ),
                is_closed=bool(sources[0].queue_depth),
                is_drawn=synthetic is not None and synthetic.pattern == "rand",
                is_synthetic=synthetic is not None,
                dry_ns=dry_ns,
            )
        )
    return loads


def _result_under_faults(
    prepared: PreparedRun, run: EngineRun, loads: Sequence[WorkloadRun]
) -> Run:
    """Return the result of a run under faults, with its timeline and the requests that waited."""
    from stripesim.sim.ceph.failures.results.describe import describe_faults
    from stripesim.sim.ceph.failures.results.phases import held_ns
    from stripesim.sim.ceph.failures.results.recovery_results import fault_totals

    assert prepared.director is not None
    requested = joined_requests([load.requested for load in loads])
    fault_run = prepared.director.finish(run, requested)
    numbers, timeline = describe_faults(fault_run)
    totals = fault_totals(fault_run, width=prepared.pool.scheme.width)
    result = _result(prepared, run, loads, FaultRecord(numbers, timeline, totals))
    held = held_ns(fault_run.timeline, requested, run.end_ns, fault_run.groups_of_pg)
    return replace(result, blocked=held.sum(axis=1) > 0)


def _result(
    prepared: PreparedRun,
    run: EngineRun,
    loads: Sequence[WorkloadRun],
    faults: FaultRecord | None = None,
) -> Run:
    """Collect the results of a run."""
    whole_run = _scope(prepared, run, loads)
    parts = []
    if len(loads) > 1:
        parts = [_part(prepared, run, load, whole_run) for load in loads]
    latencies_ns = whole_run.requested.latencies_ns
    latency_ns = int(latencies_ns.sum())
    uses = resource_use(prepared.pool.cluster, run, latency_ns)
    travelling = 0.0
    if faults is None:
        travelling = travel_fraction(prepared.pool.cluster, run, latency_ns)

    def limits_for(scope: RowScope) -> RunLimits:
        return limits_of_run(
            uses,
            is_closed=scope.is_closed,
            is_saturated=bool(scope.offered.is_saturated),
            travelling=travelling,
        )

    limits = limits_for(whole_run)
    result = Run(
        row=_row(prepared, run, whole_run, limits, faults),
        load_rows=tuple(_row(prepared, run, part, limits_for(part)) for part in parts),
        requested=whole_run.requested,
        first=loads[0].first,
        engine_run=run,
        book=prepared.book,
        compiled=prepared.compiled,
        foreground=loads[0].sources[0],
        background=tuple(
            account(stream, prepared.book) for stream in prepared.background_of(run)
        ),
        uses=run.uses,
        sha256=completions_sha256(whole_run.requested),
        resources=uses,
        limits=limits.near,
        window=whole_run.window,
        timeline=None if faults is None else faults.timeline,
    )
    if whole_run.window is None:
        return result
    return _audited(prepared, result, whole_run, parts, faults)


def _audited(
    prepared: PreparedRun,
    result: Run,
    whole_run: RowScope,
    parts: Sequence[RowScope],
    faults: FaultRecord | None,
) -> Run:
    """Return a run with the use of processors and the verdicts of the audit."""
    run = result.engine_run
    row = result.row
    uses_count = sum(one["uses"] for one in (whole_run.counted, *result.background))
    refused = _refusal(prepared, run, row, whole_run, uses_count, faults)
    is_saturated = any(one.saturated for one in (row, *result.load_rows))
    numbers = _row_numbers(prepared, row, whole_run, is_saturated=is_saturated)
    load_rows = [
        _audited_load_row(prepared, load_row, part, refused)
        for load_row, part in zip(result.load_rows, parts, strict=True)
    ]
    return replace(
        result,
        row=replace(row, refused=audit_row(numbers) or refused),
        load_rows=tuple(load_rows),
        processors=processor_use(prepared.pool.cluster, run, row, whole_run.counted),
        requests_least=numbers.least,
        requests_wanted=numbers.requests_wanted,
        counts_refused=refused,
    )


def _scope(
    prepared: PreparedRun, run: EngineRun, loads: Sequence[WorkloadRun]
) -> RowScope:
    """Return the requests and counters that a row of some workloads covers."""
    requested = joined_requests([load.requested for load in loads])
    names = loads[0].counted
    offered = offered_load(
        requested, run.end_ns, is_closed=any(load.is_closed for load in loads)
    )
    scope = RowScope(
        loads=loads,
        requested=requested,
        counted={name: sum(load.counted[name] for load in loads) for name in names},
        offered=offered,
        window=None,
    )
    if not requested.done.any():
        return scope
    window = window_of(
        requested,
        run.end_ns,
        # A closed loop's start is a warm-up if the run is stationary after it.
        is_steady=scope.is_closed and prepared.is_stationary,
        dry_ns=scope.dry_ns,
        warm_up=prepared.settings.warm_up,
    )
    return replace(scope, window=window)


def _part(
    prepared: PreparedRun, run: EngineRun, load: WorkloadRun, whole: RowScope
) -> RowScope:
    """Return what the row of one of several workloads covers."""
    scope = _scope(prepared, run, [load])
    uses = max(1, whole.counted["uses"])
    return replace(scope, wakes_fraction=load.counted["uses"] / uses)


def _row(
    prepared: PreparedRun,
    run: EngineRun,
    scope: RowScope,
    limits: RunLimits,
    faults: FaultRecord | None = None,
) -> ResultRow:
    """Return the row of some workloads, before its audit."""
    return describe(
        prepared.pool.cluster,
        run,
        scope,
        is_drawn=prepared.is_stationary and scope.is_drawn,
        limits=limits,
        faults=None if faults is None else faults.numbers,
    )


def _refusal(
    prepared: PreparedRun,
    run: EngineRun,
    row: ResultRow,
    whole: RowScope,
    uses_count: int,
    faults: FaultRecord | None,
) -> str | None:
    """Return why the audit refuses all rows of a run, or None."""
    planned = None
    if faults is None:
        planned = planned_uses(run, prepared.book, uses_count)
    numbers = run_numbers(
        prepared.pool,
        prepared.program,
        run,
        row,
        whole,
        uses_planned=planned,
        is_one_load=len(whole.loads) == 1 and not prepared.background_of(run),
        faults=None if faults is None else faults.totals,
    )
    return audit_run(numbers)


def _audited_load_row(
    prepared: PreparedRun, row: ResultRow, scope: RowScope, refused: str | None
) -> ResultRow:
    """Return the row of one workload with the refusal of the audit. `refused` is that of the whole run."""
    if scope.window is None:
        return row
    numbers = _row_numbers(prepared, row, scope, is_saturated=bool(row.saturated))
    return replace(row, refused=audit_row(numbers) or refused)


def _row_numbers(
    prepared: PreparedRun, row: ResultRow, scope: RowScope, *, is_saturated: bool
) -> RowNumbers:
    """Return the numbers of a row that the audit checks."""
    return row_numbers(
        prepared.pool,
        row,
        scope,
        newest_only=prepared.newest_only,
        has_faults=prepared.director is not None,
        is_saturated=is_saturated,
        is_bounded=prepared.is_bounded,
    )

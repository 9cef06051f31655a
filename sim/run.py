"""One run: a pool, a workload and an engine, and the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from stripesim.models.problems import RefusedError
from stripesim.sim.ceph.clients.stationary import ages_at_start
from stripesim.sim.ceph.clients.workload import Synthetic, SyntheticLoops, Workload
from stripesim.sim.ceph.failures import FaultPlan
from stripesim.sim.ceph.layout import Layout
from stripesim.sim.ceph.loops import ClientLoops
from stripesim.sim.ceph.planner import CompiledGraphs, Foreground, RequestPlanner
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.draws import FACTOR_ONE, FACTOR_POINTS, factor_table
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.engine.program import EngineRun, Program, RequestSource, StreamRun
from stripesim.sim.observe.audit import audit_row, audit_run
from stripesim.sim.observe.audit_numbers import (
    FaultTotals,
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
    limits_of_run,
    resource_use,
)
from stripesim.sim.observe.processors import processor_use
from stripesim.sim.observe.recording import account, completions_sha256, describe
from stripesim.sim.observe.result_row import FaultNumbers, ResultRow
from stripesim.sim.observe.window import Window, offered_load, window_of

AnyWorkload = Workload | SyntheticLoops

ENGINES = ("compiled", "simpy")


@dataclass(frozen=True, kw_only=True)
class RunResult:
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
    depth
        Requests that all clients together keep in flight.
    length
        Requests of the run over those that its scenario states, which are fewest.
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
    depth: int = 0
    length: int = 1
    blocked: npt.NDArray[np.bool_] | None = None

    @property
    def refused(self) -> str | None:
        """The first refusal of the audit among the rows, or None."""
        refusals = [row.refused for row in (self.row, *self.load_rows)]
        return next((text for text in refusals if text is not None), None)

    def withheld(self) -> RunResult:
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

    def accepted(self) -> RunResult:
        """Return this result if it passes the audit.

        Raises
        ------
        RefusedError
            If the audit refuses one of its rows.
        """
        if self.refused is not None:
            raise RefusedError(self.refused)
        return self

    def __repr__(self) -> str:
        row = self.row
        latency = ""
        if row.latency_mean_ns is not None:
            latency = f", mean latency {row.latency_mean_ns / 1e6:.3g} ms"
        return f"<RunResult: {row.iops:,.0f} requests/s{latency}>"


@dataclass(frozen=True, kw_only=True)
class WorkloadOutcome:
    """The outcome of one workload.

    Attributes
    ----------
    sources
        Its streams.
    requested
        The requests of all its clients.
    first
        The requests of its first stream.
    stream
        The engine's record of its streams.
    spawned
        The engine's record of the requests that they spawned.
    is_closed
        True if clients keep requests in flight, False if they issue them at given times.
    is_drawn
        True if each request is an independent draw.
    is_synthetic
        False for a trace.
    dry_ns
        Time when the first of its streams issued its last request [ns].
    """

    sources: tuple[Foreground, ...]
    requested: ClientRequests
    first: ClientRequests
    stream: StreamRun
    spawned: StreamRun | None
    is_closed: bool
    is_drawn: bool
    is_synthetic: bool
    dry_ns: int

    @property
    def depth(self) -> int:
        """Requests that its closed loops keep in flight, 0 for an open loop."""
        return sum(source.depth for source in self.sources)

    @property
    def timeout_ns(self) -> int:
        """Timeout of its requests [ns], 0 for none."""
        return max(getattr(source, "timeout_ns", 0) for source in self.sources)


def engine_named(name: str) -> Callable[[Program], EngineRun]:
    """Load the module of an engine and return its `run`.

    Parameters
    ----------
    name
        One of `ENGINES`.

    Raises
    ------
    ValueError
        If the name is unknown, or the compiled engine is requested while numba is disabled.
    """
    if name == "simpy":
        from stripesim.sim.engine.simpy import engine as engine_simpy

        return engine_simpy.run
    if name == "compiled":
        # Numba loads here, so that programs that simulate nothing start fast.
        from stripesim.models import jit

        if jit.is_disabled():
            wanted = "it unset, or engine simpy"
            raise ValueError(f"NUMBA_DISABLE_JIT: got 1, wanted {wanted}")
        from stripesim.sim.engine.compiled import engine as engine_compiled

        return engine_compiled.run
    raise ValueError(f"engine: got {name!r}, wanted one of {', '.join(ENGINES)}")


def factor_tables(pool: Pool) -> IntArray:
    """Return the random factors of the distributions that steps use: fixed, SSD read, SSD write."""
    ssd = pool.cluster.models.ssd
    fixed = np.full(FACTOR_POINTS, FACTOR_ONE, dtype=np.int64)
    return np.stack(
        [fixed, factor_table(ssd.read_quantiles), factor_table(ssd.write_quantiles)]
    )


def simulate(
    pool: Pool,
    workload: AnyWorkload | Sequence[AnyWorkload],
    *,
    prefilled: bool = True,
    until_ns: int | None = None,
    seed: int = 0,
    engine: str = "compiled",
    bin_ns: int = 0,
    newest_only: bool = False,
    foreground: Callable[[Pool, Book, Workload], Foreground] | None = None,
    background: Sequence[Callable[[Pool, Book], RequestSource]] = (),
    faults: FaultPlan | None = None,
    timeout_ns: int = 0,
    followed: IntArray | None = None,
    warm_up: float | None = None,
    compiled: CompiledGraphs | None = None,
) -> RunResult:
    """Run workloads on a pool.

    Parameters
    ----------
    pool
        The pool and its cluster.
    workload
        One workload, or several that run at the same time.
    prefilled
        True if objects exist before the run.
    until_ns
        End of the run [ns]. None runs until all requests have completed.
    seed
        Seed of the random service times.
    engine
        One of `ENGINES`.
    bin_ns
        Width of the time bins of the counters [ns], 0 for no bins.
    newest_only
        True if a closed loop waits for its most recently issued request, as fio's rbd engine does.
    foreground
        Creates the client's stream instead of `RequestPlanner`, for a single workload.
    background
        Create further streams.
    faults
        Faults and changes during the run. A director then lets OSDs fail and recover.
    timeout_ns
        Time after its issue at which an incomplete request fails [ns], 0 for no timeout.
    followed
        Numbers of requests of the first stream for which the end of each step is recorded.
    warm_up
        Part of a closed loop's run to discard at its start. See `window_of`.
    compiled
        Graphs of a run with equal parameters, which this run need not build again.

    Returns
    -------
    RunResult
        The result.

    Raises
    ------
    ValueError
        If faults are combined with `foreground` or `background`, or the engine is unknown.
    """
    execute = engine_named(engine)
    loads = [workload] if not isinstance(workload, Sequence) else list(workload)
    layout = None
    if faults is not None:
        if foreground is not None or background:
            raise ValueError(
                "faults: got further streams, wanted none in a run under faults"
            )
        chunk_bytes = faults.model.recovery_chunk_bytes
        pool = replace(
            pool, cluster=replace(pool.cluster, recovery_chunk_bytes=chunk_bytes)
        )
        layout = Layout(pool)
    book = pool.book()
    compiled = {} if compiled is None else compiled
    if foreground is None:
        planners: list[RequestPlanner] = []
        for load in loads:
            planners.append(
                RequestPlanner(
                    pool,
                    book,
                    load,
                    prefilled=prefilled,
                    layout=layout,
                    timeout_ns=timeout_ns,
                    beside=planners[0] if planners else None,
                    compiled=compiled,
                )
            )
        clients = [
            _streams_of(planner, load)
            for planner, load in zip(planners, loads, strict=True)
        ]
    else:
        assert len(loads) == 1, "a custom stream replaces a single workload"
        assert not isinstance(loads[0], SyntheticLoops)
        clients = [[foreground(pool, book, loads[0])]]
    own = [stream for streams in clients for stream in streams]
    director = None
    background_streams = [make(pool, book) for make in background]
    if faults is not None and layout is not None:
        # Most runs have no faults, and start sooner without this.
        from stripesim.sim.ceph.failures.director import FaultDirector

        director = FaultDirector(pool, book, faults, layout, own, feed_stream=len(own))
        background_streams = list(director.feeds)
    closed = frozenset(
        index for index, stream in enumerate(own) if newest_only and stream.depth
    )
    run = execute(
        Program(
            resources=pool.cluster.resources,
            book=book,
            streams=[*own, *background_streams],
            groups=layout.engine_groups.count if layout else pool.cluster.groups,
            seed=seed,
            factor_tables=factor_tables(pool),
            until_ns=until_ns,
            bin_ns=bin_ns,
            director=director,
            followed=np.zeros(0, dtype=np.int64) if followed is None else followed,
            newest_only=frozenset() if director else closed,
        )
    )
    outcomes = _outcomes(pool, clients, run, loads)
    if director is None:
        background_runs = run.streams[len(own) :]
        # The fill of a fresh image is part of the result, not a warm-up.
        fills = pool.cluster.object_maps is not None and not prefilled
        return _result(
            pool,
            book,
            compiled,
            outcomes,
            run,
            background_runs,
            warm_up=warm_up,
            is_stationary=not fills,
            is_bounded=until_ns is not None,
            newest_only=newest_only,
        )
    from stripesim.sim.ceph.failures.results.describe import describe_faults
    from stripesim.sim.ceph.failures.results.phases import held_ns
    from stripesim.sim.ceph.failures.results.recovery_results import fault_totals

    requested = joined_requests([outcome.requested for outcome in outcomes])
    fault_run = director.finish(run, requested)
    fault_numbers, timeline = describe_faults(fault_run)
    result = _result(
        pool,
        book,
        compiled,
        outcomes,
        run,
        run.streams[len(own) + 1 :],
        fault_numbers=fault_numbers,
        timeline=timeline,
        is_stationary=False,
        is_bounded=until_ns is not None,
        fault_totals=fault_totals(fault_run, width=pool.scheme.width),
    )
    held = held_ns(fault_run.timeline, requested, run.end_ns)
    return replace(result, blocked=held.sum(axis=1) > 0)


def _streams_of(planner: RequestPlanner, load: AnyWorkload) -> list[Foreground]:
    """Return the streams of a workload: one per closed loop, otherwise a single one."""
    if isinstance(load, SyntheticLoops):
        return [*ClientLoops(planner, load).streams]
    return [planner]


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


def _outcomes(
    pool: Pool,
    clients: Sequence[Sequence[Foreground]],
    run: EngineRun,
    workloads: Sequence[AnyWorkload],
) -> list[WorkloadOutcome]:
    outcomes = []
    start = 0
    for sources, workload in zip(clients, workloads, strict=True):
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
        if _starts_steady(workload):
            requested = _with_ages(pool, requested, dry_ns)
        outcomes.append(
            WorkloadOutcome(
                sources=tuple(sources),
                requested=requested,
                first=parts[0],
                stream=joined_streams(run.streams[own]),
                spawned=joined_streams(run.spawned[own]) if run.spawned else None,
                is_closed=bool(sources[0].depth),
                is_drawn=synthetic is not None and synthetic.pattern == "rand",
                is_synthetic=synthetic is not None,
                dry_ns=dry_ns,
            )
        )
    return outcomes


def _result(
    pool: Pool,
    book: Book,
    compiled: CompiledGraphs,
    loads: Sequence[WorkloadOutcome],
    run: EngineRun,
    background: Sequence[StreamRun],
    *,
    fault_numbers: FaultNumbers | None = None,
    timeline: dict[str, Any] | None = None,
    warm_up: float | None = None,
    is_stationary: bool = True,
    is_bounded: bool = False,
    newest_only: bool = False,
    fault_totals: FaultTotals | None = None,
) -> RunResult:
    """Collect the results of a run. A closed loop's start is a warm-up if the run is stationary after it."""
    counts = [account(load.stream, book, spawned=load.spawned) for load in loads]
    together = {name: sum(counted[name] for counted in counts) for name in counts[0]}
    requested = joined_requests([load.requested for load in loads])
    all_closed = all(load.is_closed for load in loads)

    def window_for(own: ClientRequests, is_closed: bool, dry_ns: int) -> Window | None:
        """Choose the part of a workload's run to measure, or None if no request completed."""
        if not own.done.any():
            return None
        is_steady = is_closed and is_stationary
        return window_of(
            own, run.end_ns, is_steady=is_steady, dry_ns=dry_ns, warm_up=warm_up
        )

    uses = resource_use(pool.cluster, run, int(requested.latencies_ns.sum()))
    offered = offered_load(
        requested, run.end_ns, is_closed=any(load.is_closed for load in loads)
    )
    limits = limits_of_run(
        uses, is_closed=all_closed, is_saturated=bool(offered.is_saturated)
    )
    window = window_for(requested, all_closed, min(load.dry_ns for load in loads))
    row = describe(
        pool.cluster,
        run,
        requested,
        together,
        window,
        is_drawn=is_stationary and all(load.is_drawn for load in loads),
        offered=offered,
        limits=limits,
        faults=fault_numbers,
    )
    load_rows = []
    load_windows = [
        window_for(load.requested, load.is_closed, load.dry_ns) for load in loads
    ]
    if len(loads) > 1:
        for load, counted, load_window in zip(loads, counts, load_windows, strict=True):
            load_rows.append(
                describe(
                    pool.cluster,
                    run,
                    load.requested,
                    counted,
                    load_window,
                    is_drawn=is_stationary and load.is_drawn,
                    offered=offered_load(
                        load.requested, run.end_ns, is_closed=load.is_closed
                    ),
                    limits=limits,
                )
            )
    background_counts = tuple(account(stream, book) for stream in background)
    processors = {}
    if window is not None:
        processors = processor_use(pool.cluster, run, row, together)
        refused = audit_run(
            run_numbers(
                pool,
                run,
                book,
                row,
                requested,
                together,
                uses_completed=sum(
                    counted["uses"] for counted in (*counts, *background_counts)
                ),
                factors=factor_tables(pool),
                is_bounded=is_bounded,
                is_one_load=len(loads) == 1 and not background,
                faults=fault_totals,
            )
        )
        is_saturated = any(one.saturated for one in (row, *load_rows))
        audited = partial(
            _audited_row,
            refused=refused,
            newest_only=newest_only,
            has_faults=fault_totals is not None,
            is_bounded=is_bounded,
        )
        load_rows = [
            audited(load_row, load_window, [load], is_saturated=load_row.saturated)
            for load_row, load_window, load in zip(
                load_rows, load_windows, loads, strict=False
            )
        ]
        row = audited(row, window, loads, is_saturated=is_saturated)
    return RunResult(
        row=row,
        load_rows=tuple(load_rows),
        requested=requested,
        first=loads[0].first,
        engine_run=run,
        book=book,
        compiled=compiled,
        foreground=loads[0].sources[0],
        background=background_counts,
        uses=run.uses,
        sha256=completions_sha256(requested),
        resources=uses,
        limits=limits.near,
        window=window,
        timeline=timeline,
        processors=processors,
        depth=sum(load.depth for load in loads),
    )


def _audited_row(
    row: ResultRow,
    window: Window | None,
    loads: Sequence[WorkloadOutcome],
    *,
    is_saturated: bool | None,
    refused: str | None,
    newest_only: bool,
    has_faults: bool,
    is_bounded: bool,
) -> ResultRow:
    """Return the row of some workloads with the refusal of the audit. `refused` is that of the whole run."""
    if window is None:
        return row
    is_closed = all(load.is_closed for load in loads)
    numbers = row_numbers(
        row,
        joined_requests([load.requested for load in loads]),
        window,
        depth=sum(load.depth for load in loads) if is_closed else 0,
        newest_only=newest_only,
        dry_ns=min(load.dry_ns for load in loads),
        timeout_ns=max(load.timeout_ns for load in loads),
        has_faults=has_faults,
        is_stationary=all(load.is_synthetic for load in loads) and not is_saturated,
        is_bounded=is_bounded,
    )
    return replace(row, refused=audit_row(numbers) or refused)

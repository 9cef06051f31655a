"""One run: a pool, a workload, an engine; and what came of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from stripesim.models import jit
from stripesim.sim.ceph.clients.workload import Synthetic, SyntheticLoops, Workload
from stripesim.sim.ceph.failures import (
    FaultDirector,
    FaultPlan,
    describe_faults,
)
from stripesim.sim.ceph.layout import Layout
from stripesim.sim.ceph.loops import ClientLoops
from stripesim.sim.ceph.planner import Foreground, RequestPlanner
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.draws import FACTOR_ONE, FACTOR_POINTS, factor_table
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.engine.program import EngineRun, Program, RequestSource, StreamRun
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
    """One run."""

    row: ResultRow
    load_rows: tuple[ResultRow, ...]  #: One of each workload, if there are several
    requested: (
        ClientRequests  #: Every foreground request, of all clients, in order of issue
    )
    first: ClientRequests  #: Those of the first stream, whose steps can be followed
    engine_run: EngineRun
    book: Book  #: Templates and bindings that the run's requests name
    foreground: Foreground  #: The first of the clients' streams, as it planned
    #: For each background stream, in the order given, what its completed requests account
    background: tuple[dict[str, int], ...]
    uses: int  #: Uses of resources completed
    sha256: str  #: Fingerprint of the completion times
    resources: tuple[ResourceUse, ...]  #: Use of each class of resource
    #: Classes near their limit; see `stripesim.sim.observe.limits.limits_of_run`
    limits: tuple[dict[str, Any], ...]
    window: (
        Window | None
    )  #: The part of the run that `row` measures; None if no request completed
    #: Of a run under faults, see `stripesim.sim.ceph.failures.describe_faults`
    timeline: dict[str, Any] | None = None
    #: Use of processors; see `stripesim.sim.observe.processors.processor_use`
    processors: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Load:
    """What came of one workload."""

    sources: tuple[Foreground, ...]  # Its streams.
    requested: ClientRequests  # Its requests, of all its clients.
    first: ClientRequests  # Those of its first stream.
    stream: StreamRun  # What the engine noted of all its streams.
    spawned: StreamRun | None  # The same of what its requests spawned.
    is_closed: bool  # Whether its clients keep requests in flight rather than issue them by the clock.
    is_drawn: bool  # Whether each request is an independent draw.
    dry_ns: int  # When the first of its streams issued its last request [ns].


def engine_named(name: str) -> Callable[[Program], EngineRun]:
    """Return an engine's `run`; the module loads only then."""
    if name == "simpy":
        from stripesim.sim.engine.simpy import engine as engine_simpy

        return engine_simpy.run
    if name == "compiled":
        if jit.is_disabled():
            wanted = "it unset, or engine simpy, which needs no compiled code"
            raise ValueError(f"NUMBA_DISABLE_JIT: got 1, wanted {wanted}")
        from stripesim.sim.engine.compiled import engine as engine_compiled

        return engine_compiled.run
    raise ValueError(f"engine: got {name!r}, wanted one of {', '.join(ENGINES)}")


def factor_tables(pool: Pool) -> IntArray:
    """Tables of the distributions that steps name: fixed, SSD read, SSD write."""
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
) -> RunResult:
    """Run a workload on a pool; under `faults` a director lets things fail and recover meanwhile."""
    execute = engine_named(engine)
    loads = [workload] if not isinstance(workload, Sequence) else list(workload)
    layout = None
    if faults is not None:
        if foreground is not None or background:
            raise ValueError("faults: got further streams, wanted faults alone")
        chunk_bytes = faults.model.recovery_chunk_bytes
        pool = replace(
            pool, cluster=replace(pool.cluster, recovery_chunk_bytes=chunk_bytes)
        )
        layout = Layout(pool)
    book = Book(pool.bindings())
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
                )
            )
        clients = [
            _streams_of(planner, load)
            for planner, load in zip(planners, loads, strict=True)
        ]
    else:
        assert len(loads) == 1, "a stream of one's own stands for one workload"
        assert not isinstance(loads[0], SyntheticLoops)
        clients = [[foreground(pool, book, loads[0])]]
    own = [stream for streams in clients for stream in streams]
    director = None
    beside_clients = [make(pool, book) for make in background]
    if faults is not None and layout is not None:
        director = FaultDirector(pool, book, faults, layout, own, feed_stream=len(own))
        beside_clients = list(director.feeds)
    closed = frozenset(
        index for index, stream in enumerate(own) if newest_only and stream.depth
    )
    run = execute(
        Program(
            resources=pool.cluster.resources,
            book=book,
            streams=[*own, *beside_clients],
            groups=pool.cluster.groups * (2 if director else 1),
            seed=seed,
            factor_tables=factor_tables(pool),
            until_ns=until_ns,
            bin_ns=bin_ns,
            director=director,
            followed=np.zeros(0, dtype=np.int64) if followed is None else followed,
            newest_only=frozenset() if director else closed,
        )
    )
    found = _loads(clients, run, loads)
    if director is None or faults is None:
        return _result(pool, book, found, run, further=len(own), warm_up=warm_up)
    requested = joined_requests([load.requested for load in found])
    numbers, timeline = describe_faults(director.finish(run, requested))
    return _result(
        pool,
        book,
        found,
        run,
        further=len(own) + 1,
        fault_numbers=numbers,
        timeline=timeline,
    )


def _streams_of(planner: RequestPlanner, load: AnyWorkload) -> list[Foreground]:
    """Return the streams of a workload: of several closed loops one each, else one."""
    return (
        [*ClientLoops(planner, load).streams]
        if isinstance(load, SyntheticLoops)
        else [planner]
    )


def _is_drawn(load: AnyWorkload) -> bool:
    synthetic = getattr(load, "workload", None)
    return isinstance(synthetic, Synthetic) and synthetic.pattern == "rand"


def _loads(
    clients: Sequence[Sequence[Foreground]],
    run: EngineRun,
    workloads: Sequence[AnyWorkload],
) -> list[Load]:
    found = []
    start = 0
    for sources, drawn in zip(clients, map(_is_drawn, workloads), strict=True):
        stop = start + len(sources)
        parts = [
            join_parts(stream, source.planned)
            for stream, source in zip(run.streams[start:stop], sources, strict=True)
        ]
        spawned = joined_streams(run.spawned[start:stop]) if run.spawned else None
        found.append(
            Load(
                sources=tuple(sources),
                requested=joined_requests(parts),
                first=parts[0],
                stream=joined_streams(run.streams[start:stop]),
                spawned=spawned,
                is_closed=bool(sources[0].depth),
                is_drawn=drawn,
                dry_ns=min(
                    (int(part.issued_ns[-1]) for part in parts if len(part.issued_ns)),
                    default=0,
                ),
            )
        )
        start = stop
    return found


def _result(
    pool: Pool,
    book: Book,
    loads: Sequence[Load],
    run: EngineRun,
    *,
    further: int,
    fault_numbers: FaultNumbers | None = None,
    timeline: dict[str, Any] | None = None,
    warm_up: float | None = None,
) -> RunResult:
    """Assemble the result of a run; streams from `further` on are the background."""
    counts = [account(load.stream, book, spawned=load.spawned) for load in loads]
    requested = joined_requests([load.requested for load in loads])

    def window_for(own: ClientRequests, is_closed: bool, dry_ns: int) -> Window | None:
        """Choose the part of the run that is measured; None if nothing completed."""
        is_steady = timeline is None and is_closed
        if not own.done.any():
            return None
        return window_of(
            own, run.end_ns, is_steady=is_steady, dry_ns=dry_ns, warm_up=warm_up
        )

    windows = [
        window_for(load.requested, load.is_closed, load.dry_ns) for load in loads
    ]
    all_closed = all(load.is_closed for load in loads)
    dry_ns = min(load.dry_ns for load in loads)
    window = (
        windows[0] if len(loads) == 1 else window_for(requested, all_closed, dry_ns)
    )
    together = {name: sum(counted[name] for counted in counts) for name in counts[0]}
    uses = resource_use(pool.cluster, run, int(requested.latencies_ns.sum()))
    limits = limits_of_run(uses, is_closed=all_closed)
    is_drawn = timeline is None
    row = describe(
        pool.cluster,
        run,
        requested,
        together,
        window,
        is_drawn=is_drawn and all(x.is_drawn for x in loads),
        offered=offered_load(
            requested, run.end_ns, is_closed=any(load.is_closed for load in loads)
        ),
        limits=limits,
        faults=fault_numbers,
    )
    load_rows = [
        describe(
            pool.cluster,
            run,
            load.requested,
            counted,
            own,
            is_drawn=is_drawn and load.is_drawn,
            offered=offered_load(load.requested, run.end_ns, is_closed=load.is_closed),
            limits=limits,
        )
        for load, counted, own in zip(loads, counts, windows, strict=True)
        if len(loads) > 1
    ]
    return RunResult(
        row=row,
        load_rows=tuple(load_rows),
        requested=requested,
        first=loads[0].first,
        engine_run=run,
        book=book,
        foreground=loads[0].sources[0],
        background=tuple(account(stream, book) for stream in run.streams[further:]),
        uses=run.uses,
        sha256=completions_sha256(requested),
        resources=uses,
        limits=limits.near,
        window=window,
        timeline=timeline,
        processors={}
        if window is None
        else processor_use(pool.cluster, run, row, together),
    )

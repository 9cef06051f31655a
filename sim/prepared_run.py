"""The streams of a run, which planners feed and an engine plays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stripesim.models.problems import Problem, ProblemsError
from stripesim.sim.ceph.clients.objects import S3Load
from stripesim.sim.ceph.clients.workload import (
    Requests,
    SyntheticLoops,
    SyntheticStream,
    Workload,
)
from stripesim.sim.ceph.failures import FaultPlan
from stripesim.sim.ceph.gateway.layout import ObjectLayouts
from stripesim.sim.ceph.gateway.planner import S3Planner
from stripesim.sim.ceph.layout import Layout
from stripesim.sim.ceph.loops import ClientLoops
from stripesim.sim.ceph.planner import (
    CompiledGraphs,
    Foreground,
    PoolGraphs,
    RequestPlanner,
    WritingClient,
)
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.draws import FACTOR_ONE, FACTOR_POINTS, factor_table
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.engine.program import EngineRun, Program, RequestSource, StreamRun

if TYPE_CHECKING:
    from stripesim.sim.ceph.failures.director import FaultDirector

AnyWorkload = Workload | SyntheticLoops


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Start and end of a run, and what it records.

    Attributes
    ----------
    engine
        One of `ENGINES`.
    seed
        Seed of the random service times.
    prefilled
        True if objects exist before the run.
    until_ns
        End of the run [ns]. None runs until all requests have completed.
    newest_only
        True if a closed loop waits for its most recently issued request, as fio's rbd engine does.
    timeout_ns
        Time after its issue at which an incomplete request fails [ns], 0 for no timeout.
    warm_up
        Part of a closed loop's run to discard at its start. See `window_of`.
    bin_ns
        Width of the time bins of the counters [ns], 0 for no bins.
    followed
        Numbers of requests of the first stream for which the end of each step is recorded.
    earlier
        Requests before the run, which only leave their traces in caches.
    """

    engine: str = "compiled"
    seed: int = 0
    prefilled: bool = True
    until_ns: int | None = None
    newest_only: bool = False
    timeout_ns: int = 0
    warm_up: float | None = None
    bin_ns: int = 0
    followed: IntArray | None = None
    earlier: Requests | None = None

    def __post_init__(self) -> None:
        for name in ("until_ns", "timeout_ns", "bin_ns"):
            time_ns: object = getattr(self, name)
            if time_ns is None and name == "until_ns":
                continue
            # A fraction would end the run within an event, and a negative width of bins never.
            if not isinstance(time_ns, Integral) or int(time_ns) < 0:
                wanted = "a whole number of ns, at least 0"
                raise ProblemsError(Problem(key=name, got=repr(time_ns), wanted=wanted))
        followed = np.asarray([] if self.followed is None else self.followed)
        if followed.ndim != 1 or (followed.size and followed.dtype.kind not in "iu"):
            wanted = "numbers of requests, ascending from 0, such as [0, 1]"
            raise ProblemsError(
                Problem(key="followed", got=repr(self.followed), wanted=wanted)
            )
        warm_up: object = self.warm_up
        if warm_up is None:
            return
        if not isinstance(warm_up, Real) or not 0 <= float(warm_up) < 1:
            wanted = "a part of the run, 0 to below 1"
            raise ProblemsError(
                Problem(key="warm_up", got=repr(warm_up), wanted=wanted)
            )


@dataclass(frozen=True, kw_only=True)
class PreparedRun:
    """The streams of a run, ready for an engine.

    Attributes
    ----------
    settings
        How the run starts and ends.
    pool
        The pool and its cluster.
    layout
        Shards that move while the run goes on, None without faults.
    book
        Templates and bindings of the requests.
    compiled
        Op graphs of the requests.
    workloads
        The workloads.
    clients
        The streams of each workload.
    director
        Lets OSDs fail and recover, None without faults.
    background
        Streams besides those of the clients.
    """

    settings: RunSettings
    pool: Pool
    layout: Layout | ObjectLayouts | None
    book: Book
    compiled: CompiledGraphs
    workloads: Sequence[AnyWorkload]
    clients: Sequence[Sequence[Foreground]]
    director: FaultDirector | None
    background: Sequence[RequestSource]

    @property
    def own(self) -> list[Foreground]:
        """The streams of all clients."""
        return [stream for streams in self.clients for stream in streams]

    @property
    def newest_only(self) -> bool:
        """True if closed loops wait for their newest requests. Under faults they wait for all."""
        return self.settings.newest_only and self.director is None

    @property
    def is_stationary(self) -> bool:
        """True if the run repeats itself: neither faults nor the fill of a fresh image change it."""
        fills = (
            self.pool.cluster.object_maps is not None and not self.settings.prefilled
        )
        return self.director is None and not fills

    @property
    def is_bounded(self) -> bool:
        """True if the run ends at a given time."""
        return self.settings.until_ns is not None

    @cached_property
    def program(self) -> Program:
        """Program that an engine runs."""
        settings = self.settings
        cluster = self.pool.cluster
        layout = self.layout
        followed = settings.followed
        waiting: frozenset[int] = frozenset()
        if self.newest_only:
            own = enumerate(self.own)
            waiting = frozenset(index for index, stream in own if stream.queue_depth)
        return Program(
            resources=cluster.resources,
            book=self.book,
            streams=[*self.own, *self.background],
            groups=cluster.groups if layout is None else layout.engine_groups.count,
            seed=settings.seed,
            factor_tables=factor_tables(self.pool),
            position_factors=position_factors(self.pool),
            until_ns=settings.until_ns,
            bin_ns=settings.bin_ns,
            director=self.director,
            followed=np.zeros(0, dtype=np.int64) if followed is None else followed,
            newest_only=waiting,
        )

    def background_of(self, run: EngineRun) -> Sequence[StreamRun]:
        """Return what an engine recorded of the background, without the stream that feeds a director."""
        feeds = 0 if self.director is None else 1
        return run.streams[len(self.own) + feeds :]


def factor_tables(pool: Pool) -> IntArray:
    """Return the random factors of the distributions that steps use: fixed, SSD read, SSD write."""
    ssd = pool.cluster.models.ssd
    fixed = np.full(FACTOR_POINTS, FACTOR_ONE, dtype=np.int64)
    return np.stack(
        [fixed, factor_table(ssd.read_quantiles), factor_table(ssd.write_quantiles)]
    )


def position_factors(pool: Pool) -> IntArray:
    """Return the factors of the time to position a disk's head, by the length of its queue."""
    factors = np.array(pool.cluster.position_factors)
    return np.round(factors * FACTOR_ONE).astype(np.int64)


class CustomStreams(NamedTuple):
    """Constructors of the streams of a run without faults, as `simulate` gets them."""

    foreground: Callable[[Pool, Book, Workload], Foreground] | None
    background: Sequence[Callable[[Pool, Book], RequestSource]]


def prepare(
    pool: Pool,
    loads: Sequence[AnyWorkload],
    settings: RunSettings,
    compiled: CompiledGraphs,
    streams: CustomStreams,
) -> PreparedRun:
    """Create the streams of a run without faults."""
    book = pool.book()
    if streams.foreground is None:
        planners = _planners(pool, book, loads, settings, compiled)
        clients: Sequence[Sequence[Foreground]] = list(
            map(_streams_of, planners, loads)
        )
    else:
        assert len(loads) == 1, "a custom stream replaces a single workload"
        assert not isinstance(loads[0], SyntheticLoops)
        clients = [[streams.foreground(pool, book, loads[0])]]
    return PreparedRun(
        settings=settings,
        pool=pool,
        layout=None,
        book=book,
        compiled=compiled,
        workloads=loads,
        clients=clients,
        director=None,
        background=[make(pool, book) for make in streams.background],
    )


def prepare_for_faults(
    pool: Pool,
    loads: Sequence[AnyWorkload],
    settings: RunSettings,
    compiled: CompiledGraphs,
    faults: FaultPlan,
) -> PreparedRun:
    """Create the streams of a run under faults, and the director that feeds recovery."""
    # Most runs have no faults, and start sooner without this.
    from stripesim.sim.ceph.failures.director import FaultDirector

    cluster = replace(
        pool.cluster,
        recovery_chunk_bytes=faults.model.recovery_chunk_bytes,
        recovery_sync_ns=faults.model.recovery_sync_ns,
    )
    pool = replace(pool, cluster=cluster)
    book = pool.book()
    layout: Layout | ObjectLayouts = Layout(pool)
    if cluster.gateways is not None:
        layout = _object_layouts(pool, book, loads, faults)
    planners = _planners(pool, book, loads, settings, compiled, layout)
    clients = list(map(_streams_of, planners, loads))
    own = [stream for streams in clients for stream in streams]
    director = FaultDirector(pool, book, faults, layout, own, feed_stream=len(own))
    return PreparedRun(
        settings=settings,
        pool=pool,
        layout=layout,
        book=book,
        compiled=compiled,
        workloads=loads,
        clients=clients,
        director=director,
        background=list(director.feeds),
    )


def _object_layouts(
    pool: Pool, book: Book, loads: Sequence[AnyWorkload], faults: FaultPlan
) -> ObjectLayouts:
    """Return the state of the placement groups of a load on buckets, in a run under faults."""
    (load,) = loads
    assert isinstance(load, SyntheticLoops | SyntheticStream)
    assert isinstance(load.workload, S3Load)
    counts = np.zeros(pool.cluster.groups, dtype=np.int64)
    if faults.group_objects is not None:
        counts = np.asarray(faults.group_objects, dtype=np.int64)
    if faults.group_objects_count is not None:
        counts = np.full(pool.cluster.groups, faults.group_objects_count)
    return ObjectLayouts(pool, book, load.workload, counts)


def _planners(
    pool: Pool,
    book: Book,
    loads: Sequence[AnyWorkload],
    settings: RunSettings,
    compiled: CompiledGraphs,
    layout: Layout | ObjectLayouts | None = None,
) -> Sequence[RequestPlanner | S3Planner]:
    """Return the planner of each workload."""
    if pool.cluster.gateways is not None:
        assert not isinstance(layout, Layout)
        return [
            S3Planner(
                pool,
                book,
                load,
                timeout_ns=settings.timeout_ns,
                compiled=compiled,
                layouts=layout,
            )
            for load in loads
            if isinstance(load, SyntheticLoops | SyntheticStream)
        ]
    assert not isinstance(layout, ObjectLayouts)
    graphs = PoolGraphs(pool, book, layout, compiled)
    planners = [
        RequestPlanner(
            pool,
            book,
            load,
            prefilled=settings.prefilled,
            graphs=graphs,
            timeout_ns=settings.timeout_ns,
        )
        for load in loads
    ]
    if settings.earlier is not None:
        planners[0].remember(settings.earlier)
    return planners


def _streams_of(
    planner: RequestPlanner | S3Planner, load: AnyWorkload
) -> list[WritingClient]:
    """Return the streams of a workload: one per closed loop, otherwise a single one."""
    if isinstance(load, SyntheticLoops):
        return [*ClientLoops(planner, load).streams]
    return [planner]

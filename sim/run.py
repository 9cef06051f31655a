"""One run: a pool, a workload, an engine; and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from stripesim.sim.ceph.clients.workload import Workload
from stripesim.sim.ceph.failures import FaultDirector, FaultPlan, describe_faults
from stripesim.sim.ceph.layout import Layout
from stripesim.sim.ceph.planner import Planned, RequestPlanner
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.ceph.repair_plan import RepairPlanner
from stripesim.sim.engine.draws import FACTOR_ONE, FACTOR_POINTS, factor_table
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.engine.program import EngineRun, Program, RequestSource
from stripesim.sim.observe.recording import (
    Bottleneck,
    Requested,
    account,
    completions_sha256,
    describe,
    join_parts,
    resource_use,
)

ENGINES = ("compiled", "simpy")


@dataclass(frozen=True, kw_only=True)
class Repair:
    """Objects to rebuild while the workload runs.

    Parameters
    ----------
    targets : ndarray of int64, shape (groups, width)
        Acting sets once CRUSH has replaced the lost OSDs.
    image_objects : int
        Objects of the image.
    stay_down : tuple of int
        OSDs that are down but not out: what they held is missing and not rebuilt.
    """

    targets: IntArray
    image_objects: int
    stay_down: tuple[int, ...] = ()


class Foreground(RequestSource, Protocol):
    """The client's stream, which remembers what it planned."""

    @property
    def planned(self) -> Planned:
        """All that was planned so far."""
        ...


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """One run.

    Parameters
    ----------
    row : dict
        The numbers of the result row, see `stripesim.sim.observe.recording.describe`.
    requested : Requested
        Every foreground request.
    engine_run : EngineRun
    book : Book
        Templates and bindings that the run's requests name.
    foreground : Foreground
        The client's stream, as it planned.
    background : tuple of dict
        For each background stream, in the order given, what its completed requests account.
    uses : int
        Uses of resources completed.
    sha256 : str
        Fingerprint of the completion times.
    resources : tuple of Bottleneck
        Use of each class of resource.
    timeline : dict, optional
        Of a run under faults, see `stripesim.sim.ceph.failures.report.describe_faults`.
    """

    row: dict[str, Any]
    requested: Requested
    engine_run: EngineRun
    book: Book
    foreground: Foreground
    background: tuple[dict[str, int], ...]
    uses: int
    sha256: str
    resources: tuple[Bottleneck, ...]
    timeline: dict[str, Any] | None = None


def engine_named(name: str) -> Callable[[Program], EngineRun]:
    """Return an engine's `run`; the module loads only then.

    Raises
    ------
    ValueError
        If there is no such engine.
    """
    if name == "simpy":
        from stripesim.sim.engine.simpy import engine as engine_simpy

        return engine_simpy.run
    if name == "compiled":
        from stripesim.sim.engine.compiled import engine as engine_compiled

        return engine_compiled.run
    raise ValueError(f"engine: got {name!r}, wanted one of {', '.join(ENGINES)}")


def factor_tables(pool: Pool) -> IntArray:
    """Tables of the distributions that steps name: fixed, SSD read, SSD write."""
    ssd = pool.cluster.models.ssd
    fixed = np.full(FACTOR_POINTS, FACTOR_ONE, dtype=np.int64)
    return np.stack([fixed, factor_table(ssd.read_quantiles), factor_table(ssd.write_quantiles)])


def simulate(
    pool: Pool,
    workload: Workload,
    *,
    prefilled: bool = True,
    repair: Repair | None = None,
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
) -> RunResult:
    """Run a workload on a pool.

    Parameters
    ----------
    pool : Pool
    workload : Workload
    prefilled : bool
        Whether the image's objects exist in full beforehand.
    repair : Repair, optional
        Objects to rebuild at the same time.
    until_ns : int, optional
        Bound in simulated time [ns]; needed if the workload has no end.
    seed : int
        Of the service times.
    engine : str
        ``compiled`` or ``simpy``.
    bin_ns : int
        Width of time bins for the counters [ns]; 0: none.
    newest_only : bool
        Whether the client of a closed loop waits for its most recently issued request.
    foreground : callable, optional
        Makes the client's stream instead of `RequestPlanner`; `prefilled` is then its own affair.
    background : sequence of callable
        Each makes a further stream, after the foreground and the repair.
    faults : FaultPlan, optional
        What fails and comes back; the pool is as it is before. Not together with `repair`, `foreground`
        or `background`.
    timeout_ns : int
        Time after which a client gives a request up [ns]; 0: never, as librados; only with `faults`.
    followed : ndarray of int64, optional
        Parts of foreground requests whose steps are noted; see `Program.followed`.

    Returns
    -------
    RunResult

    Raises
    ------
    ValueError
        If faults come together with what they replace, or contradict the cluster (`FaultError`).
    """
    if faults is not None:
        if repair is not None or foreground is not None or background:
            raise ValueError("faults: got a repair or further streams, wanted faults alone")
        return _under_faults(
            pool,
            workload,
            faults,
            prefilled=prefilled,
            until_ns=until_ns,
            seed=seed,
            engine=engine,
            bin_ns=bin_ns,
            timeout_ns=timeout_ns,
            followed=followed,
        )
    execute = engine_named(engine)
    book = Book(pool.bindings())
    planner: Foreground = (
        RequestPlanner(pool, book, workload, prefilled=prefilled)
        if foreground is None
        else foreground(pool, book, workload)
    )
    streams: list[RequestSource] = [planner]
    rebuild = None
    if repair is not None:
        rebuild = RepairPlanner(
            pool,
            book,
            targets=repair.targets,
            image_objects=repair.image_objects,
            object_bytes=pool.object_bytes,
            stay_down=repair.stay_down,
        )
        streams.append(rebuild)
    further = len(streams)
    streams += [make(pool, book) for make in background]
    run = execute(
        Program(
            resources=pool.cluster.resources,
            book=book,
            streams=streams,
            groups=pool.cluster.groups,
            seed=seed,
            factor_tables=factor_tables(pool),
            until_ns=until_ns,
            bin_ns=bin_ns,
            followed=np.zeros(0, dtype=np.int64) if followed is None else followed,
            newest_only=frozenset([0] if newest_only and planner.depth else []),
        )
    )
    requested = join_parts(run.streams[0], planner.planned)
    more = {} if rebuild is None else _describe_repair(run, book, rebuild)
    return _result(pool, book, planner, run, requested, more, further=further)


def _result(
    pool: Pool,
    book: Book,
    planner: Foreground,
    run: EngineRun,
    requested: Requested,
    more: dict[str, Any],
    *,
    further: int,
    timeline: dict[str, Any] | None = None,
) -> RunResult:
    """Put together what came of a run; `more` joins its row, streams from `further` on are the background."""
    counted = account(run.streams[0], book, spawned=run.spawned[0] if run.spawned else None)
    row = describe(pool.cluster, run, requested, counted) | more
    row["engine_wall_s"] = run.wall_s
    return RunResult(
        row=row,
        requested=requested,
        engine_run=run,
        book=book,
        foreground=planner,
        background=tuple(account(stream, book) for stream in run.streams[further:]),
        uses=run.uses,
        sha256=completions_sha256(requested),
        resources=resource_use(pool.cluster, run),
        timeline=timeline,
    )


def _under_faults(
    pool: Pool,
    workload: Workload,
    plan: FaultPlan,
    *,
    prefilled: bool,
    until_ns: int | None,
    seed: int,
    engine: str,
    bin_ns: int,
    timeout_ns: int,
    followed: IntArray | None,
) -> RunResult:
    """Run a workload while a director lets things fail and recover."""
    limits = replace(pool.cluster.recovery, chunk_bytes=plan.model.recovery_chunk_bytes)
    pool = replace(pool, cluster=replace(pool.cluster, recovery=limits))
    book = Book(pool.bindings())
    layout = Layout(pool)
    planner = RequestPlanner(pool, book, workload, prefilled=prefilled, layout=layout, timeout_ns=timeout_ns)
    director = FaultDirector(pool, book, plan, layout, planner, client_stream=0, feed_stream=1)
    run = engine_named(engine)(
        Program(
            resources=pool.cluster.resources,
            book=book,
            streams=[planner, director.feed],
            groups=2 * pool.cluster.groups,
            seed=seed,
            factor_tables=factor_tables(pool),
            until_ns=until_ns,
            bin_ns=bin_ns,
            director=director,
            followed=np.zeros(0, dtype=np.int64) if followed is None else followed,
        )
    )
    requested = join_parts(run.streams[0], planner.planned)
    more, timeline = describe_faults(director, plan, run, requested, book, feed=1)
    return _result(pool, book, planner, run, requested, more, further=1, timeline=timeline)


def _describe_repair(run: EngineRun, book: Book, rebuild: RepairPlanner) -> dict[str, Any]:
    """Return the numbers of a repair: objects, time, bytes per byte lost."""
    stream = run.streams[1]
    counted = account(stream, book, spawned=run.spawned[1] if run.spawned else None)
    done = stream.completed_ns >= 0
    finished = bool(done.all())
    told: dict[str, Any] = {
        "repair_objects": int(done.sum()),
        "repair_objects_pending": int((~done).sum()) + len(rebuild.groups) - len(done),
        "repair_lost_bytes": rebuild.lost_bytes,
        "repair_s": float(stream.completed_ns.max()) / 1e9 if finished and len(done) else None,
    }
    if finished and rebuild.lost_bytes:
        for counter in ("device_read_bytes", "device_write_bytes", "private_net_bytes"):
            told[f"repair_{counter}_per_lost_byte"] = counted[counter] / rebuild.lost_bytes
    return told


__all__: Sequence[str] = ["ENGINES", "Foreground", "Repair", "RunResult", "engine_named", "simulate"]

"""One run: a pool, a workload and an engine, and the results.

`simulate` prepares streams (`prepared_run`), lets an engine play them, and collects results (`run_results`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stripesim.models.problems import AnswerError, Problem
from stripesim.sim.ceph.clients.workload import Workload
from stripesim.sim.ceph.failures import FaultPlan
from stripesim.sim.ceph.planner import CompiledGraphs, Foreground
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.program import EngineRun, Program, RequestSource
from stripesim.sim.prepared_run import (
    AnyWorkload,
    CustomStreams,
    RunSettings,
    factor_tables,
    prepare,
    prepare_for_faults,
)
from stripesim.sim.run_results import Run, result_of

__all__ = [
    "ENGINES",
    "AnyWorkload",
    "Run",
    "RunSettings",
    "engine_named",
    "factor_tables",
    "planned_program",
    "simulate",
]

ENGINES = ("compiled", "simpy")


def engine_named(name: str) -> Callable[[Program], EngineRun]:
    """Load the module of an engine and return its `run`.

    Parameters
    ----------
    name
        One of `ENGINES`.

    Raises
    ------
    ValueError
        If the name is unknown (an `AnswerError`), or the compiled engine is requested where nothing can
        compile it.
    """
    if name == "simpy":
        from stripesim.sim.engine.simpy import engine as engine_simpy

        return engine_simpy.run
    if name == "compiled":
        # Numba loads here, so that programs that simulate nothing start fast.
        from stripesim.models import jit

        if jit.is_disabled():
            problem = "NUMBA_DISABLE_JIT: got 1, wanted it unset"
            if jit.has_no_code():
                problem = "numba: got no installation and no prebuilt kernels, wanted one of them"
            raise ValueError(f"{problem}, or engine simpy")
        from stripesim.sim.engine.compiled import engine as engine_compiled

        return engine_compiled.run
    wanted = f"one of {', '.join(ENGINES)}"
    raise AnswerError(Problem(key="engine", got=repr(name), wanted=wanted))


def simulate(
    pool: Pool,
    workload: AnyWorkload | Sequence[AnyWorkload],
    *,
    foreground: Callable[[Pool, Book, Workload], Foreground] | None = None,
    background: Sequence[Callable[[Pool, Book], RequestSource]] = (),
    faults: FaultPlan | None = None,
    compiled: CompiledGraphs | None = None,
    **settings: Any,
) -> Run:
    """Run workloads on a pool.

    Parameters
    ----------
    pool
        The pool and its cluster.
    workload
        One workload, or several that run at the same time.
    foreground
        Creates the client's stream instead of `RequestPlanner`, for a single workload.
    background
        Create further streams.
    faults
        Faults and changes during the run. A director then lets OSDs fail and recover.
    compiled
        Graphs of a run with equal parameters, which this run need not build again.
    **settings
        Attributes of `RunSettings`: ``engine``, ``seed``, ``prefilled``, ``until_ns``, ``newest_only``,
        ``timeout_ns``, ``warm_up``, ``bin_ns``, ``followed`` and ``earlier``.

    Returns
    -------
    Run
        The result.

    Raises
    ------
    ValueError
        If faults are combined with `foreground` or `background`, the engine is unknown, or another run has
        taken requests of a workload.
    """
    run_settings = RunSettings(**settings)
    execute = engine_named(run_settings.engine)
    loads = _fresh(workload)
    graphs = {} if compiled is None else compiled
    if faults is None:
        streams = CustomStreams(foreground, background)
        prepared = prepare(pool, loads, run_settings, graphs, streams)
    elif foreground is not None or background:
        raise ValueError(
            "faults: got further streams, wanted none in a run under faults"
        )
    else:
        prepared = prepare_for_faults(pool, loads, run_settings, graphs, faults)
    return result_of(prepared, execute(prepared.program))


def planned_program(
    pool: Pool,
    workload: AnyWorkload | Sequence[AnyWorkload],
    *,
    background: Sequence[Callable[[Pool, Book], RequestSource]] = (),
    **settings: Any,
) -> Program:
    """Return the program that `simulate` gives an engine in a run without faults.

    Parameters
    ----------
    pool, workload, background
        As for `simulate`.
    **settings
        Attributes of `RunSettings`.
    """
    loads = _fresh(workload)
    streams = CustomStreams(foreground=None, background=background)
    return prepare(pool, loads, RunSettings(**settings), {}, streams).program


def _fresh(workload: AnyWorkload | Sequence[AnyWorkload]) -> list[AnyWorkload]:
    """Return the workloads of a run, which would go on in the middle of one that has begun."""
    loads = list(workload) if isinstance(workload, Sequence) else [workload]
    for load in loads:
        # A user's own workloads may not count.
        taken = getattr(load, "taken", 0)
        if taken:
            raise ValueError(
                f"simulate: got a workload of which a run has taken {taken:,} requests, wanted a new one"
            )
    return loads

"""The compiled engine: the machine of ENGINE.md in Numba, equal to the SimPy engine to the nanosecond.

This module surrounds the inner loop (``kernel.py``): it calls the kernel, provides what the kernel
lacks (``state.py``) and collects the result. The first `run` imports the kernel, so commands that simulate
nothing start fast.
"""

from collections.abc import Callable
from itertools import pairwise
from time import perf_counter
from typing import cast

import numpy as np

from stripesim.sim.engine.checks import check_no_deadlock, check_program
from stripesim.sim.engine.compiled import world as layout
from stripesim.sim.engine.compiled.director import DirectedRun
from stripesim.sim.engine.compiled.state import RunState
from stripesim.sim.engine.compiled.world import Array, World
from stripesim.sim.engine.program import (
    GATE,
    PENDING,
    POOL,
    EngineRun,
    Program,
    StreamRun,
)


def run(program: Program) -> EngineRun:
    """Execute a program on the compiled engine.

    Parameters
    ----------
    program
        The program.

    Returns
    -------
    EngineRun
        The result, equal to the SimPy engine's except for `wall_s`.

    Raises
    ------
    ProblemsError
        If the program, a chunk or an action of the director is invalid.
    ValueError
        If more requests run, or are in flight, than 32-bit indices can number.

    Notes
    -----
    Memory: 32 bytes per request during the run and 40 bytes in the result, plus the planned chunks.
    A request in flight takes about 30 bytes per step.
    """
    return CompiledRun(program).execute()


class CompiledRun:
    """One run: calls of the kernel, and its result."""

    def __init__(self, program: Program) -> None:
        check_program(program)
        self.program = program
        self.state = RunState(program)
        self.direction: DirectedRun | None = None
        if program.director:
            self.direction = DirectedRun(self.state, program.director)

    def execute(self) -> EngineRun:
        """Run to the end, providing room and requests as the kernel needs them."""
        run_machine = self._compiled()
        start_s = perf_counter()
        if self.direction:
            self.direction.begin()
        while (status := run_machine(self.state.world)) != layout.DONE:
            if status != layout.DIRECT:
                self.state.provide(status)
            elif not self.direction or not self.direction.step():
                break
        return self._result(perf_counter() - start_s - self.state.planning_s)

    def _compiled(self) -> Callable[[World], int]:
        """Return the kernel: prebuilt, from numba's cache, or compiled."""
        from stripesim.sim.engine.compiled.kernel import run_machine

        run_machine.prepare(self.state.world)
        return cast(Callable[[World], int], run_machine)

    def _result(self, wall_s: float) -> EngineRun:
        world = self.state.world
        clock = world.clock[0]
        resources = world.resources
        by_index = self.state.numbers.by_index
        end_ns = int(clock["now_ns"])
        log = world.log[: int(clock["logged"])]
        self._check_end(end_ns, log)
        taken = resources["capacity"].astype(np.int64) - resources["free"]
        held = np.isin(resources["discipline"], (POOL, GATE))
        count = len(world.streams)
        rows: list[slice | Array]
        if count == 1 and not world.spawned.any():
            # Without a copy, because the log may be the largest array of a run.
            rows = [slice(None), slice(0)]
        else:
            order = np.argsort(log["stream"], kind="stable")
            borders = np.searchsorted(log["stream"][order], np.arange(2 * count + 1))
            rows = [order[start:stop] for start, stop in pairwise(borders)]
        retries = self._retries(len(log))
        runs = [
            StreamRun(
                issued_ns=log["issued_ns"][own].astype(np.int64),
                completed_ns=self._completed_ns(log["completed_ns"][own]),
                templates=log["template"][own].astype(np.int64),
                bindings=log["binding"][own].astype(np.int64),
                groups=log["group"][own].astype(np.int64),
                taken=world.taken[index, :-1].copy(),
                taken_uses=int(world.taken[index, -1]),
                counted=self.direction is not None,
                retries=retries[own] if self.direction else retries,
            )
            for index, own in enumerate(rows)
        ]
        width = max((t.steps for t in self.program.book.templates), default=0)
        return EngineRun(
            streams=runs[:count],
            spawned=runs[count:],
            busy_ns=by_index(np.where(held, 0, resources["spent_ns"])),
            held_ns=by_index(np.where(held, resources["spent_ns"] + taken * end_ns, 0)),
            waited_ns=by_index(
                resources["waited_ns"] + resources["waiting"].astype(np.int64) * end_ns
            ),
            uses=int(clock["uses"]),
            end_ns=end_ns,
            bins=world.bins[: int(clock["bins_used"])].copy(),
            wall_s=wall_s,
            followed_ns=world.ends_ns[:, :width],
            followed_saved_ns=world.saved_ns[:, :width],
            sleeps=by_index(resources["sleeps"].copy()),
            warm_ns=by_index(world.spared_ns.copy()),
            sleep_bins=world.sleep_bins[
                : np.flatnonzero(world.sleep_bins.any(axis=1)).max(initial=-1) + 1
            ],
        )

    def _completed_ns(self, completed_ns: Array) -> Array:
        """Return completion times. A completion that its client has not noticed is pending."""
        if self.program.newest_only:
            return np.maximum(completed_ns, PENDING)
        return completed_ns.astype(np.int64)

    def _retries(self, logged: int) -> Array:
        """Return the number of retries of each request in the log, if there is a director."""
        if not self.direction:
            return np.zeros(0, dtype=np.int64)
        retries = np.zeros(logged, dtype=np.int64)
        retries[list(self.direction.retries)] = list(self.direction.retries.values())
        return retries

    def _check_end(self, end_ns: int, log: Array) -> None:
        if self.direction:
            self.direction.check_end()
            return
        if self.program.until_ns is not None and end_ns >= self.program.until_ns:
            return
        resources = self.state.world.resources
        waiting = resources["waiting"].astype(np.int64)
        check_no_deadlock(self.program, self.state.numbers.by_index(waiting))
        assert (resources["free"] == resources["capacity"]).all(), (
            "a server or a lock is held after the end"
        )
        assert not self.state.world.clock["pinned"][0], "a key is pinned after the end"
        assert not (log["completed_ns"] < 0).any(), "a request was lost"

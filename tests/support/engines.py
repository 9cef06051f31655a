"""Shared helpers for tests of the engines: both engines as a parameter, small programs and their results.

Streams stay in the test files, because their requests are part of each test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from stripesim.sim.engine.compiled import engine as engine_compiled
from stripesim.sim.engine.graph import IntArray, Template
from stripesim.sim.engine.graph_builder import GraphBuilder
from stripesim.sim.engine.program import EngineRun, Program, Resources
from stripesim.sim.engine.simpy import engine as engine_simpy

Run = Callable[[Program], EngineRun]
# A test marked with it runs once on each engine, as `run`.
both = pytest.mark.parametrize(
    "run", [engine_simpy.run, engine_compiled.run], ids=["simpy", "compiled"]
)


@dataclass
class FixedTemplates:
    """A table of templates and bindings that does not grow."""

    templates: Sequence[Template]
    bindings: IntArray


def resources(
    pairs: Sequence[tuple[int, int]],
    *,
    kinds: tuple[str, ...] | None = None,
    **more: Any,
) -> Resources:
    """Return resources r0, r1, … from (discipline, capacity) pairs, by default each of a separate kind."""
    names = tuple(f"r{index}" for index in range(len(pairs)))
    disciplines, capacities = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Resources(names, kinds or names, capacities, disciplines, **more)


def program(
    templates: Sequence[Template],
    pairs: Sequence[tuple[int, int]],
    streams: Sequence[Any],
    rows: list[list[int]] | None = None,
    **more: Any,
) -> Program:
    """Build a program from (discipline, capacity) pairs. Role i is resource i unless rows are given."""
    return Program(
        resources=resources(pairs),
        book=FixedTemplates(
            templates, np.array(rows or [list(range(len(pairs)))], dtype=np.int64)
        ),
        streams=streams,
        **more,
    )


def single(demand_ns: int, role: int = 0, **amounts: int) -> Template:
    """Return a template of one use, after which the reply is out."""
    graph = GraphBuilder(f"use {role} for {demand_ns} ns")
    return graph.finish(
        reply=graph.use(role, demand_ns, after=[graph.issue], label="use", **amounts)
    )


def completed(result: EngineRun, stream: int = 0) -> list[int]:
    """Return when the requests of a stream completed [ns]."""
    return result.streams[stream].completed_ns.tolist()


def latencies(result: EngineRun, stream: int = 0) -> list[int]:
    """Return the latencies of the requests of a stream [ns]."""
    run = result.streams[stream]
    return (run.completed_ns - run.issued_ns).tolist()

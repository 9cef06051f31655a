"""What the latency of a cell's requests consists of: a sample of its requests, followed step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from stripesim.scenarios.run.cell import run_cell
from stripesim.scenarios.schema.keys import Cell, Scenario
from stripesim.sim.ceph.clients.loops import ClientStream
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.planner import RequestPlanner
from stripesim.sim.engine.draws import seed_state
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.observe.critical_path import SERVED_STEPS, STEPS, WAITED_STEPS, PathSplitter
from stripesim.sim.run import RunResult, factor_tables

#: Requests followed, at most: the mean of so many of them is known to a few per cent.
SAMPLE_MAX: Final = 1000
# The sample comes from so many requests behind the transient, at most, so that following costs seconds.
_CANDIDATES_MAX: Final = 50_000
_CLIENT: Final = STEPS.index("client")


def cost_key(step: str, *, waiting: bool = False) -> str:
    """Name the column of a step's mean time in service, or waiting.

    >>> cost_key("device"), cost_key("lock", waiting=True)
    ('cost_device_ns', 'cost_lock_wait_ns')
    """
    return f"cost_{step}_wait_ns" if waiting else f"cost_{step}_ns"


def steps_with_time(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """List the steps that any row spends time on, in their order."""
    keys = {step: (cost_key(step), cost_key(step, waiting=True)) for step in STEPS}
    return [step for step, pair in keys.items() if any(row.get(key) for row in rows for key in pair)]


#: Columns of a row that are parts of the latency: service and waiting of each step, in the steps' order.
COST_KEYS: Final = tuple(
    cost_key(step, waiting=waiting)
    for step in STEPS
    for waiting in (False, True)
    if step in (WAITED_STEPS if waiting else SERVED_STEPS)
)


def dominant(row: Mapping[str, Any]) -> str | None:
    """Name the largest part of a row's latency, such as ``device`` or ``lock_wait``; None without costs."""
    if row.get(COST_KEYS[0]) is None:
        return None
    largest = max(COST_KEYS, key=lambda key: row[key])
    return largest.removeprefix("cost_").removesuffix("_ns")


def cell_costs(
    scenario: Scenario, cell: Cell, result: RunResult, engine: str, models: Models
) -> dict[str, Any]:
    """Run a cell once more, follow a sample of its requests, and split their mean latency.

    The columns: ``cost_requests`` (how many are followed), ``cost_latency_mean_ns``, `COST_KEYS` (its parts,
    which add up to it) and ``cost_dominant`` (the largest). None of them if no request completed.

    Notes
    -----
    The sample is spread evenly over the requests that the row's mean latency is made of (behind the
    transient and before a closed loop runs dry), or over the first 50,000 of them. A request that crosses
    objects has the path of the part that completes last; that the client issued this part late, or took
    notice of its reply late, is waiting for the client.
    """
    chosen = _sample(result)
    if not len(chosen):
        return {}
    requested, first = result.first, result.engine_run.streams[0]
    owners = _owners(result)
    parts = np.flatnonzero(np.isin(owners, chosen))
    until_ns = int(requested.completed_ns[chosen].max())
    again = run_cell(scenario, cell, engine, models, until_ns=until_ns, followed=parts)
    stream = again.engine_run.streams[0]
    if not np.array_equal(stream.completed_ns[parts], first.completed_ns[parts]):
        raise RuntimeError(f"costs of {cell.scheme}: the run that was followed is not the run")
    splitters = _splitters(scenario, again, stream.templates[parts])
    served, waited = np.zeros(len(STEPS), dtype=np.int64), np.zeros(len(STEPS), dtype=np.int64)
    for row in _last_parts(owners[parts], stream.completed_ns[parts]):
        part = int(parts[row])
        splitter, ends_ns = splitters[int(stream.templates[part])], again.engine_run.followed_ns[row]
        times = splitter.split(
            part * len(again.engine_run.streams),
            int(stream.issued_ns[part]),
            ends_ns.tolist(),
            retries=int(stream.retries[part]) if len(stream.retries) else 0,
        )
        served += times.served_ns
        waited += times.waited_ns
        waited[_CLIENT] += stream.issued_ns[part] - requested.issued_ns[owners[part]]
        # A client that waits for its newest request sees other replies later than they come.
        waited[_CLIENT] += stream.completed_ns[part] - ends_ns[splitter.template.reply]
    totals_ns = {cost_key(step): int(served[index]) for index, step in enumerate(STEPS)}
    totals_ns |= {cost_key(step, waiting=True): int(waited[index]) for index, step in enumerate(STEPS)}
    latencies_ns = requested.completed_ns[chosen] - requested.issued_ns[chosen]
    if sum(totals_ns.values()) != latencies_ns.sum():
        raise RuntimeError(f"costs of {cell.scheme}: the parts of the latency do not add up to it")
    row_costs: dict[str, Any] = {
        "cost_requests": len(chosen),
        "cost_latency_mean_ns": float(latencies_ns.mean()),
    }
    row_costs |= {key: totals_ns[key] / len(chosen) for key in COST_KEYS}
    return {**row_costs, "cost_dominant": dominant(row_costs)}


def _sample(result: RunResult) -> IntArray:
    """Choose requests to follow, by number among the client's requests, ascending."""
    requested = result.first
    if result.window is None:
        return np.zeros(0, dtype=np.int64)
    candidates = np.flatnonzero(result.window.holds(requested))[:_CANDIDATES_MAX]
    if len(candidates) <= SAMPLE_MAX:
        return candidates
    return candidates[np.linspace(0, len(candidates) - 1, SAMPLE_MAX).round().astype(np.int64)]


def _owners(result: RunResult) -> IntArray:
    """Number of the client's request that each part issued belongs to, as in `Requested`."""
    owners = result.foreground.planned.owners[: len(result.engine_run.streams[0].issued_ns)]
    numbers: IntArray = np.cumsum(np.r_[False, owners[1:] != owners[:-1]])
    return numbers


def _last_parts(owners: IntArray, completed_ns: IntArray) -> list[int]:
    """Return of each request the part that completed last, of several the first."""
    order = np.lexsort((-np.arange(len(owners)), completed_ns, owners))
    last = np.flatnonzero(np.r_[owners[order][1:] != owners[order][:-1], True])
    return sorted(order[last].tolist())


def _splitters(scenario: Scenario, result: RunResult, templates: IntArray) -> dict[int, PathSplitter]:
    """Make what splits the paths of requests on these templates."""
    planner = result.foreground
    assert isinstance(planner, RequestPlanner | ClientStream)
    tables, state = factor_tables(planner.pool), seed_state(scenario.seed)
    return {
        index: PathSplitter(result.book.templates[index], tables, state)
        for index in np.unique(templates).tolist()
    }

"""Split the latency of a cell by step, from a sample of its requests."""

from typing import Any, Final

import numpy as np

from stripesim.scenarios.cells.run import Repeat, repeat_cell
from stripesim.scenarios.schema.keys import Cell
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.gateway.planner import S3Planner
from stripesim.sim.ceph.loops import ClientStream
from stripesim.sim.ceph.planner import RequestPlanner
from stripesim.sim.engine.draws import seed_state
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.observe.critical_path import (
    COST_KEYS,
    STEPS,
    PathSplitter,
    cost_key,
    dominant,
)
from stripesim.sim.run import Run, factor_tables

#: Largest sample of requests; its mean is accurate to a few per cent.
SAMPLE_MAX: Final = 1000
# The sample is taken from this many requests after the transient, so that following takes seconds.
_CANDIDATES_MAX: Final = 50_000
_CLIENT: Final = STEPS.index("client")


def cell_costs(
    scenario: Scenario, cell: Cell, result: Run, engine: str, models: Models
) -> dict[str, Any]:
    """Repeat the run of a cell, follow a sample of its requests, and split their mean latency.

    The sample is spread evenly over the first 50,000 requests of the measurement window. A request that
    crosses objects has the path of the part that completes last. If the client issued this part late or
    noticed its reply late, that time counts as waiting for the client.

    Returns
    -------
    Columns of the result row; empty if no request completed.
    """
    sample = _sample(result)
    if not len(sample):
        return {}
    owners = _owners(result)
    parts = np.flatnonzero(np.isin(owners, sample))
    until_ns = int(result.first.completed_ns[sample].max())
    repeat = Repeat(engine, until_ns, followed=parts)
    again = repeat_cell(scenario, cell, models, result, repeat)
    completed_ns = result.engine_run.streams[0].completed_ns[parts]
    if not np.array_equal(
        again.engine_run.streams[0].completed_ns[parts], completed_ns
    ):
        raise RuntimeError(
            f"costs of {cell.scheme}: the second run differs from the first"
        )
    totals_ns = _totals_ns(scenario, result, again, parts)
    latencies_ns = result.first.completed_ns[sample] - result.first.issued_ns[sample]
    if sum(totals_ns.values()) != latencies_ns.sum():
        raise RuntimeError(
            f"costs of {cell.scheme}: the parts do not add up to the latency"
        )
    row: dict[str, Any] = {
        "cost_requests": len(sample),
        "cost_latency_mean_ns": float(latencies_ns.mean()),
    }
    for key in COST_KEYS:
        row[key] = totals_ns[key] / len(sample)
    row["cost_dominant"] = dominant(row)
    return row


def _totals_ns(
    scenario: Scenario, result: Run, again: Run, parts: IntArray
) -> dict[str, int]:
    """Sum service and waiting over the followed requests, by column [ns]."""
    requests = result.first
    owners = _owners(result)
    stream = again.engine_run.streams[0]
    streams = len(again.engine_run.streams)
    splitters = _splitters(scenario, again, stream.templates[parts])
    served_ns = np.zeros(len(STEPS), dtype=np.int64)
    waited_ns = np.zeros(len(STEPS), dtype=np.int64)
    for row in _last_parts(owners[parts], stream.completed_ns[parts]):
        part = int(parts[row])
        issued_ns = int(stream.issued_ns[part])
        ends_ns = again.engine_run.followed_ns[row]
        splitter = splitters[int(stream.templates[part])]
        times = splitter.split(
            part * streams,
            issued_ns,
            ends_ns.tolist(),
            saved_ns=again.engine_run.followed_saved_ns[row].tolist(),
            retries=int(stream.retries[part]) if len(stream.retries) else 0,
        )
        served_ns += times.served_ns
        waited_ns += times.waited_ns
        waited_ns[_CLIENT] += issued_ns - requests.issued_ns[owners[part]]
        # A client that waits for its newest request notices other replies late.
        reply_ns = ends_ns[splitter.template.reply]
        waited_ns[_CLIENT] += stream.completed_ns[part] - reply_ns
    totals_ns = {}
    for index, step in enumerate(STEPS):
        totals_ns[cost_key(step)] = int(served_ns[index])
        totals_ns[cost_key(step, waiting=True)] = int(waited_ns[index])
    return totals_ns


def _sample(result: Run) -> IntArray:
    """Choose requests to follow, by ascending number among the client's requests."""
    if result.window is None:
        return np.zeros(0, dtype=np.int64)
    held = result.window.holds(result.first)
    if result.requested.ages_ns.any():
        # The first requests began before the run, and their steps with them.
        held = held & (result.first.issued_ns > 0)
    candidates = np.flatnonzero(held)[:_CANDIDATES_MAX]
    if len(candidates) <= SAMPLE_MAX:
        return candidates
    evenly = np.linspace(0, len(candidates) - 1, SAMPLE_MAX).round()
    return candidates[evenly.astype(np.int64)]


def _owners(result: Run) -> IntArray:
    """Return the number of the client's request of each issued part, as in `ClientRequests`."""
    issued = len(result.engine_run.streams[0].issued_ns)
    owners = result.foreground.planned.owners[:issued]
    numbers: IntArray = np.cumsum(np.r_[False, owners[1:] != owners[:-1]])
    return numbers


def _last_parts(owners: IntArray, completed_ns: IntArray) -> list[int]:
    """Return the part of each request that completed last, the first of several."""
    order = np.lexsort((-np.arange(len(owners)), completed_ns, owners))
    last = np.flatnonzero(np.r_[owners[order][1:] != owners[order][:-1], True])
    return sorted(order[last].tolist())


def _splitters(
    scenario: Scenario, result: Run, templates: IntArray
) -> dict[int, PathSplitter]:
    """Return a splitter of latencies for each template."""
    planner = result.foreground
    assert isinstance(planner, RequestPlanner | S3Planner | ClientStream)
    tables = factor_tables(planner.pool)
    state = seed_state(scenario.seed)
    return {
        index: PathSplitter(result.book.templates[index], tables, state)
        for index in np.unique(templates).tolist()
    }

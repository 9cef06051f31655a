"""Run a cell of a scenario at one rate, or as a closed loop that keeps it saturated, and measure it."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.schema.keys import Cell
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.sim.observe.client_requests import ClientRequests
from stripesim.sim.observe.window import WARM_UP

# Part of the requests after which the window of several workloads ends. The last requests are left out,
# because the workloads do not all end at the same moment.
_LAST_PART: Final = 0.9


@dataclass(frozen=True)
class RateRun:
    """One run to measure: picklable, for worker processes.

    Attributes
    ----------
    scenario
        The scenario, with the seed of this run.
    cell
        The scheme and kind of request.
    rates_per_s
        Poisson arrivals of each workload [1/s]. Empty for a closed loop.
    in_flight
        Requests in flight of a closed loop, all clients together [count].
    requests
        Requests of all workloads together [count].
    engine
        ``compiled`` or ``simpy``.
    """

    scenario: Scenario
    cell: Cell
    rates_per_s: tuple[float, ...]
    in_flight: int
    requests: int
    engine: str


@dataclass(frozen=True)
class RateMeasurement:
    """Measurements of one run in its window.

    Attributes
    ----------
    offered_iops
        Arrivals per second [1/s]. Of a closed loop, the served rate.
    iops
        Completions per second [1/s].
    latency_mean_ns, latency_p50_ns, latency_p99_ns
        Latencies of the requests that arrive in the window, however late they complete [ns].
    growth
        Mean latency in the window's second half over that in its first half [1].
    tail_growth
        The same of the 99th percentile [1].
    bottleneck
        Class of resource that limits the run, as in a result row.
    refused
        Check of the audit that the run fails, or None.
    """

    offered_iops: float
    iops: float
    latency_mean_ns: float
    latency_p50_ns: float
    latency_p99_ns: float
    growth: float
    tail_growth: float
    bottleneck: str | None
    refused: str | None = None


def measure_rate(run: RateRun) -> RateMeasurement:
    """Simulate and measure one run.

    The window starts after the first `WARM_UP` of the requests, the same for every scheme and rate, because
    the run starts with an idle cluster.

    Raises
    ------
    ValueError
        If the scheme does not fit on the cluster, or no request completes.
    """
    result = run_cell(scenario_of(run), run.cell, run.engine, unchecked=True)
    if not run.rates_per_s:
        row = result.row
        if not row.iops:
            raise ValueError("load: got a run in which no request completed")
        return RateMeasurement(
            offered_iops=row.iops,
            iops=row.iops,
            latency_mean_ns=row.latency_mean_ns or 0.0,
            latency_p50_ns=row.latency_p50_ns or 0.0,
            latency_p99_ns=row.latency_p99_ns or 0.0,
            growth=1.0,
            tail_growth=1.0,
            bottleneck=row.bottleneck,
            refused=result.refused,
        )
    last_part = 1.0
    if len(run.rates_per_s) > 1:
        last_part = _LAST_PART
    measured = _measured_in_window(result.requested, last_part, result.row.bottleneck)
    return replace(measured, refused=result.refused)


def scenario_of(run: RateRun) -> Scenario:
    """Return the scenario of a run: its own with another load."""
    scenario = run.scenario
    if not run.rates_per_s:
        return scenario.closed(run.in_flight, requests=run.requests)
    total_per_s = sum(run.rates_per_s)
    loads = [
        load.at_rate(
            rate_per_s,
            requests=max(1, round(run.requests * rate_per_s / total_per_s)),
        )
        for load, rate_per_s in zip(scenario.loads, run.rates_per_s, strict=True)
    ]
    if scenario.workloads:
        # The shared table too: it decides how many requests an OSD admits.
        common = scenario.workload.at_rate(total_per_s, requests=run.requests)
        return scenario.replaced(workload=common, workloads=tuple(loads))
    return scenario.replaced(workload=loads[0])


def _measured_in_window(
    requested: ClientRequests, last_part: float, bottleneck: str | None
) -> RateMeasurement:
    """Measure the requests of an open loop."""
    order = np.argsort(requested.issued_ns, kind="stable")
    issued_ns = requested.issued_ns[order]
    completed_ns = requested.completed_ns[order]
    first = int(WARM_UP * len(order))
    last = max(first + 2, round(last_part * len(order)))
    start_ns = int(issued_ns[first])
    end_ns = int(issued_ns[last - 1])
    span_s = max(1, end_ns - start_ns) / 1e9
    completions = (completed_ns > start_ns) & (completed_ns <= end_ns)
    latencies_ns = (completed_ns - issued_ns)[first:last].astype(np.float64)
    p50_ns, p99_ns = np.percentile(latencies_ns, [50, 99])
    half = len(latencies_ns) // 2
    return RateMeasurement(
        offered_iops=(last - 1 - first) / span_s,
        iops=float(completions.sum()) / span_s,
        latency_mean_ns=float(latencies_ns.mean()),
        latency_p50_ns=float(p50_ns),
        latency_p99_ns=float(p99_ns),
        growth=_mean(latencies_ns[half:]) / _mean(latencies_ns[:half]),
        tail_growth=_p99(latencies_ns[half:]) / _p99(latencies_ns[:half]),
        bottleneck=bottleneck,
    )


def _mean(latencies_ns: npt.NDArray[np.float64]) -> float:
    return max(1.0, float(latencies_ns.mean()))


def _p99(latencies_ns: npt.NDArray[np.float64]) -> float:
    return max(1.0, float(np.percentile(latencies_ns, 99)))

"""Estimate what clients notice of a change: rate and latencies before, during and after it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from stripesim.scenarios.answers.rehearse.samples import Sample
from stripesim.sim.ceph.failures.results.finished_run import BoolArray
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.observe.intervals import student_interval

Floats = npt.NDArray[np.float64]

# Consecutive parts into which the requests of a change are cut for the interval of its p99.
_PARTS: Final = 10
# Fewest requests above the percentile in a part, to estimate it.
_REQUESTS_ABOVE_MIN: Final = 1

NO_CLIENTS: Final[Mapping[str, None]] = dict.fromkeys(
    (
        "iops",
        "latency_p50_ns",
        "latency_p99_ns",
        "latency_p99_low_ns",
        "latency_p99_high_ns",
        "latency_max_ns",
    )
)


@dataclass(frozen=True)
class WeightedRequests:
    """Completed requests of a span of time, each with the number of requests that it represents."""

    latencies_ns: Floats
    completed_s: Floats
    weights: Floats

    def percentile_ns(self, share: float) -> float:
        """Return a percentile of the latencies of all represented requests [ns]."""
        order = np.argsort(self.latencies_ns)
        below = np.cumsum(self.weights[order])
        index = int(np.searchsorted(below, share * below[-1]))
        return float(self.latencies_ns[order[min(index, len(order) - 1)]])

    def p99_interval_ns(
        self, among: BoolArray | None = None
    ) -> tuple[float | None, float | None]:
        r"""Return a 95 % interval of the p99, by sectioning [ns].

        Parameters
        ----------
        among
            Requests to cut into parts. None: all.

        Notes
        -----
        The p99 of all requests is some percentile of those in `among`. That percentile of each of ten
        consecutive parts with equally many requests varies around the p99. The interval is
        :math:`\pm t_{0.975, 9}\, s / \sqrt{10}` around it. None is given if parts have no requests above the
        percentile, so that other requests decide the p99, or if the interval would include 0.

        References
        ----------
        Asmussen and Glynn: Stochastic Simulation, 2007, section III.5.
        """
        p99_ns = self.percentile_ns(0.99)
        cut = self
        share = 0.99
        if among is not None:
            cut = self._only(among)
            share = float(cut.weights[cut.latencies_ns < p99_ns].sum())
            share /= float(cut.weights.sum())
        part_requests = len(cut.completed_s) / _PARTS
        if round(part_requests * (1 - share), 6) < _REQUESTS_ABOVE_MIN:
            return None, None
        by_time = np.argsort(cut.completed_s, kind="stable")
        parts_ns = [
            cut._only(part).percentile_ns(share)
            for part in np.array_split(by_time, _PARTS)
        ]
        half_ns = student_interval(parts_ns).half
        if half_ns is None or half_ns >= p99_ns:
            return None, None
        return p99_ns - half_ns, p99_ns + half_ns

    def _only(self, within: BoolArray | IntArray) -> "WeightedRequests":
        return WeightedRequests(
            self.latencies_ns[within], self.completed_s[within], self.weights[within]
        )


def clients_between(sample: Sample, start_s: float, stop_s: float) -> dict[str, Any]:
    """Return rate and latencies of the requests that completed between two points in time.

    Parameters
    ----------
    sample
        A simulation.
    start_s, stop_s
        Simulated times [s]. Requests that wait for peering at `start_s` belong to the time before, and so
        does the time until they complete.
    """
    start_s = sample.calm_s(start_s)
    within = _within(sample, start_s, stop_s)
    if within is None:
        return dict(NO_CLIENTS)
    return described(_requests(sample, within), stop_s - start_s)


def clients_during(
    sample: Sample, index: int, duration_s: float | None
) -> dict[str, Any]:
    """Return rate and latencies of the requests during a change of the complete pool.

    Parameters
    ----------
    sample
        A simulation of a part of the pool.
    index
        Number of the change.
    duration_s
        Duration of the change with all objects [s]. None: as simulated.

    Notes
    -----
    In the sample objects are few, but PGs peer as often as in the complete pool. So requests that waited for
    a PG to peer, those issued while the backlog of peering was worked off, and those before the first and
    after the last object moved, count once. Requests while objects move represent all others: each as
    many as it takes to keep the clients' requests in flight (closed loop) or their rate of arrival throughout
    `duration_s`.
    """
    row = sample.rows[index]
    stop_s = row["clean_s"] or sample.end_s(index)
    span_s = duration_s or stop_s - row["at_s"]
    requests, represents = requests_during(sample, index, duration_s)
    if requests is None:
        return dict(NO_CLIENTS)
    if represents is None:
        return described(requests, stop_s - row["at_s"])
    low_ns, high_ns = requests.p99_interval_ns(represents)
    return {
        **described(requests, span_s),
        "latency_p99_low_ns": low_ns,
        "latency_p99_high_ns": high_ns,
    }


def requests_during(
    sample: Sample, index: int, duration_s: float | None
) -> tuple[WeightedRequests | None, BoolArray | None]:
    """Return the requests of a change, and which of them represent others.

    The parameters are those of `clients_during`. Without clients there are no requests. Where no request
    represents others, each counts once.
    """
    row = sample.rows[index]
    start_s = row["at_s"]
    stop_s = row["clean_s"] or sample.end_s(index)
    within = _within(sample, start_s, stop_s)
    if within is None:
        return None, None
    moved = row["backfills"]
    if duration_s is None or not moved["pg"]:
        return _requests(sample, within), None
    beside = _beside_moving_objects(sample, moved)
    counted = within | beside
    requests = _requests(sample, counted)
    represents: BoolArray = beside[counted]
    issued_s = sample.requested.issued_ns[counted] / 1e9
    if sample.in_flight_count is None:
        # All requests that arrive are served, some of them after the change.
        arrivals_s = sample.requested.issued_ns / 1e9
        arrived = (arrivals_s > start_s) & (arrivals_s <= stop_s)
        shares = np.ones(len(issued_s))
        total = duration_s * float(arrived.sum()) / (stop_s - start_s)
    else:
        shares = requests.latencies_ns / 1e9
        total = duration_s * sample.in_flight_count
    left = total - float(shares[~represents].sum())
    of_sample = float(shares[represents].sum())
    if left <= 0 or of_sample <= 0:
        return _requests(sample, within), None
    requests.weights[represents] = left / of_sample
    return requests, represents


def _beside_moving_objects(sample: Sample, moved: Mapping[str, Any]) -> BoolArray:
    """Mark the requests that represent those of the complete pool: issued while objects move.

    They count whenever they complete. Those that complete while objects move would be the short ones.
    """
    issued_s = sample.requested.issued_ns / 1e9
    first_s = min(moved["start_s"])
    runs = sample.requested.done & ~sample.blocked
    runs &= (issued_s >= first_s) & (issued_s <= max(moved["end_s"]))
    calm: BoolArray = runs & (issued_s >= sample.calm_s(first_s))
    # A short sample may move all its objects before the backlog is gone.
    return calm if calm.any() else runs


def _within(sample: Sample, start_s: float, stop_s: float) -> BoolArray | None:
    """Mark the requests that completed between two points in time; None if there are none to measure."""
    if not sample.has_load or stop_s <= start_s:
        return None
    completed_s = sample.requested.completed_ns / 1e9
    within: BoolArray = (completed_s > start_s) & (completed_s <= stop_s)
    return within & sample.requested.done


def _requests(sample: Sample, within: BoolArray) -> WeightedRequests:
    requested = sample.requested
    latencies_ns = (requested.completed_ns - requested.issued_ns)[within]
    return WeightedRequests(
        latencies_ns=latencies_ns.astype(np.float64),
        completed_s=requested.completed_ns[within] / 1e9,
        weights=np.ones(len(latencies_ns)),
    )


def described(requests: WeightedRequests, span_s: float) -> dict[str, Any]:
    """Return rate and latencies of requests that represent a span of time."""
    if not len(requests.latencies_ns):
        return {**NO_CLIENTS, "iops": 0.0}
    low_ns, high_ns = requests.p99_interval_ns()
    return {
        "iops": float(requests.weights.sum()) / span_s,
        "latency_p50_ns": requests.percentile_ns(0.50),
        "latency_p99_ns": requests.percentile_ns(0.99),
        "latency_p99_low_ns": low_ns,
        "latency_p99_high_ns": high_ns,
        "latency_max_ns": float(requests.latencies_ns.max()),
    }

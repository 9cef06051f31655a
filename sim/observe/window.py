"""Choose the part of a run to measure, and compare offered and served rates of an open loop."""

from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from stripesim.sim.observe.client_requests import ClientRequests
from stripesim.sim.observe.intervals import mser5

#: Part of a closed loop's run to discard at its start, equal for all schemes.
WARM_UP = 0.2
# Fewest completions in a window. With fewer, the whole run counts.
_COMPLETIONS_MIN = 20
#: MSER-5 compares batches of five requests. With fewer than ten batches its minimum is arbitrary.
_BATCH_REQUESTS: Final = 5
_BATCHES_MIN: Final = 10

#: An open loop that serves a smaller part of its arrivals is saturated, if the rest queues.
SATURATED_BELOW = 0.97


@dataclass(frozen=True)
class Window:
    """The part of a run in which rates and latencies are measured.

    Attributes
    ----------
    start_ns, end_ns
        A request counts if it completes after the start and no later than the end [ns].
    is_whole
        True if nothing is discarded. Latencies then cover all completed requests, including those
        after the last issue.
    transient_ns
        End of the transient by MSER-5 [ns], 0 if nothing may be discarded.
    """

    start_ns: float
    end_ns: float
    is_whole: bool
    transient_ns: float

    def holds(self, requested: ClientRequests) -> npt.NDArray[np.bool_]:
        """Select the requests whose latencies count."""
        if self.is_whole:
            return requested.done
        completed = requested.completed_ns
        inside = (completed > self.start_ns) & (completed <= self.end_ns)
        counts: npt.NDArray[np.bool_] = inside & requested.done
        return counts


#: Fractions of requests whose latencies `latency_quantiles` returns: dense towards the tail.
QUANTILES: tuple[float, ...] = (
    *(round(0.02 * step, 2) for step in range(45)),
    *(round(0.9 + 0.005 * step, 3) for step in range(18)),
    *(round(0.99 + 0.0005 * step, 4) for step in range(19)),
)


def latency_quantiles(window: Window, requested: ClientRequests) -> list[float]:
    """Return the latency below which each of `QUANTILES` of the requests lies [ns]."""
    measured = window.holds(requested)
    latencies_ns = requested.latencies_ns[measured[requested.done]]
    times_ns: list[float] = np.quantile(latencies_ns, QUANTILES).tolist()
    return times_ns


def window_of(
    requested: ClientRequests,
    run_end_ns: int,
    *,
    is_steady: bool,
    dry_ns: int | None = None,
    warm_up: float | None = None,
) -> Window:
    """Choose the window of a run.

    Parameters
    ----------
    requested
        The client's requests, at least one of them complete.
    run_end_ns
        End of the run [ns].
    is_steady
        True for a closed loop without faults, which reaches a steady state.
    dry_ns
        Time when a client of a closed loop has no request left to issue [ns]. The window ends there.
    warm_up
        Part to discard at the start, 0 to 1: of the requests if their number bounds the run,
        otherwise of the time. Each scheme then discards the same part of its work.

    Returns
    -------
    Window
        The window.
    """
    done = requested.done
    complete = bool(done.all())
    last_ns = float(requested.issued_ns[-1] if complete else run_end_ns)
    if not is_steady:
        completed_ns = requested.completed_ns[done]
        if completed_ns.min() > last_ns:
            # One request, or all at nearly one moment: their rate is over the time that they took. OSDs
            # may work on after the last reply.
            last_ns = float(completed_ns.max())
        return Window(0.0, last_ns, True, 0.0)
    order = np.argsort(requested.completed_ns[done], kind="stable")
    times = requested.completed_ns[done][order].astype(np.float64)
    skipped = mser5(requested.latencies_ns[order].astype(np.float64))
    transient_ns = float(times[skipped - 1]) if skipped else 0.0
    start_ns = transient_ns
    end_ns = last_ns
    if warm_up is not None and complete:
        start_ns = float(times[int(warm_up * len(times)) - 1])
        if dry_ns is not None:
            end_ns = min(end_ns, float(dry_ns))
    elif warm_up is not None:
        start_ns = warm_up * end_ns
    if ((times > start_ns) & (times <= end_ns)).sum() < _COMPLETIONS_MIN:
        return Window(0.0, float(times[-1]), True, transient_ns)
    return Window(start_ns, end_ns, False, transient_ns)


def unsteady_reason(
    issued_ns: npt.NDArray[np.int64],
    completed_ns: npt.NDArray[np.int64],
    *,
    end_ns: int,
) -> str | None:
    """Return the reason why a run does not show its steady state, or None if it does.

    MSER-5 searches the first half of a run for the end of the transient. A run does not show its steady state
    in three cases:

    - It has fewer than ten batches of five requests.
    - The minimum is at the end of the search, so that the transient may be longer.
    - Fewer than 20 requests complete between the end of the transient and the last issue, in which case the
      row covers the whole run.

    A drift with a period longer than the run goes unnoticed.

    References
    ----------
    White: An effective truncation heuristic for bias reduction in simulation output,
    Simulation 69(6), 1997.

    >>> unsteady_reason(np.arange(9), np.arange(9) + 5, end_ns=14)
    '9 requests completed, wanted at least 50'
    """
    done = completed_ns >= 0
    count = int(done.sum())
    count_min = _BATCHES_MIN * _BATCH_REQUESTS
    if count < count_min:
        return f"{count} requests completed, wanted at least {count_min}"
    times_ns = completed_ns[done]
    order = np.argsort(times_ns, kind="stable")
    skipped = mser5((times_ns - issued_ns[done])[order])
    if skipped >= _BATCH_REQUESTS * (count // _BATCH_REQUESTS // 2):
        return "the transient takes half of the run or more"
    start_ns = times_ns[order][skipped - 1] if skipped else 0
    last_ns = end_ns
    if done.all():
        # A closed loop drains after the last issue. A run bounded by time does not.
        last_ns = int(issued_ns[-1])
    inside = int(((times_ns > start_ns) & (times_ns <= last_ns)).sum())
    if inside < _COMPLETIONS_MIN:
        return f"{inside} requests complete between the transient and the last issue, wanted at least 20"
    return None


def _left_later(requested: ClientRequests, stop_ns: int) -> int:
    """Return by how many requests more are in flight at a stop than when the middle one arrived."""
    middle = len(requested.issued_ns) // 2
    middle_ns = int(requested.issued_ns[middle - 1])
    completed_ns = requested.completed_ns[requested.done]
    in_second_half = (completed_ns > middle_ns) & (completed_ns <= stop_ns)
    return len(requested.issued_ns) - middle - int(in_second_half.sum())


@dataclass(frozen=True)
class OfferedLoad:
    """The rate that an open loop offered; None for a closed loop, which offers none."""

    iops: float | None  # Arrivals per second.
    is_saturated: bool | None  # Whether the cluster fell behind the arrivals.


def offered_load(
    requested: ClientRequests, end_ns: int, *, is_closed: bool
) -> OfferedLoad:
    """Return the rate that an open loop offered and whether the cluster kept up.

    Arrivals and completions count until the last request arrives. The cluster is saturated if too many
    requests are left then, more than the rest to `SATURATED_BELOW` and than ten and four standard deviations
    of their number, and if more than half of that many came to be left in the second half of the run. A run
    that is short against its latencies ends with many requests in flight, but had as many at its middle.

    Parameters
    ----------
    requested
        The client's requests.
    end_ns
        End of the run [ns].
    is_closed
        True if clients keep requests in flight, so that there is no offered rate.

    Returns
    -------
    OfferedLoad
        The rate, and whether the cluster fell behind.
    """
    issued = len(requested.issued_ns)
    if is_closed or not issued:
        return OfferedLoad(None, None)
    stop_ns = end_ns
    if requested.done.all():
        # Such a run continues after the last arrival.
        stop_ns = int(requested.issued_ns[-1])
    if stop_ns <= 0:
        return OfferedLoad(None, False)
    served = int((requested.done & (requested.completed_ns <= stop_ns)).sum())
    left = issued - served
    left_max = max((1 - SATURATED_BELOW) * issued, 10 + 4 * sqrt(issued))
    later = _left_later(requested, stop_ns)
    is_saturated = left > left_max and later > left_max / 2
    return OfferedLoad(issued / (stop_ns / 1e9), is_saturated)

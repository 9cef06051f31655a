"""Choose the part of a run that is measured, and compare what an open loop offered with what was served."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from stripesim.sim.observe.client_requests import ClientRequests
from stripesim.sim.observe.intervals import mser5

#: Share of a closed loop's run that is left out at its start, equal for all schemes.
WARM_UP = 0.2
# Fewest completions in a window; with fewer the whole run counts.
_COMPLETIONS_MIN = 20

#: Share of arrivals served below which an open loop is saturated, if the rest queues up.
SATURATED_BELOW = 0.97


@dataclass(frozen=True)
class Window:
    """The part of a run in which rates and latencies are measured."""

    # Requests count that complete after the start, up to the end [ns].
    start_ns: float
    end_ns: float
    # Nothing is left out: latencies are then those of all completed requests, also after the last issue.
    is_whole: bool
    # End of the transient by MSER-5 [ns]; 0 where nothing may be left out.
    transient_ns: float

    def holds(self, requested: ClientRequests) -> npt.NDArray[np.bool_]:
        """Return which requests count for the latencies."""
        if self.is_whole:
            return requested.done
        completed = requested.completed_ns
        inside = (completed > self.start_ns) & (completed <= self.end_ns)
        counts: npt.NDArray[np.bool_] = inside & requested.done
        return counts


def window_of(
    requested: ClientRequests,
    run_end_ns: int,
    *,
    is_steady: bool,
    dry_ns: int | None = None,
    warm_up: float | None = None,
) -> Window:
    """Choose the window of a run.

    A closed loop is measured until a client has nothing left to issue (`dry_ns`). The share to leave out,
    `warm_up`, is one of requests if requests bound the run, else of time: the same part of the work of each
    scheme.
    """
    done = requested.done
    complete = bool(done.all())
    last_ns = float(requested.issued_ns[-1] if complete else run_end_ns)
    if not is_steady:
        if last_ns <= 0 or len(requested.issued_ns) <= 1:
            # One request, or all at one moment: their rate is over the time that they took.
            last_ns = float(run_end_ns)
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


@dataclass(frozen=True)
class OfferedLoad:
    """The rate that an open loop offered; None for a closed loop, which offers none."""

    iops: float | None  # Arrivals per second.
    is_saturated: bool | None  # Whether the cluster fell behind the arrivals.


def offered_load(
    requested: ClientRequests, end_ns: int, *, is_closed: bool
) -> OfferedLoad:
    """Return the rate that an open loop offered and whether the cluster kept up.

    Arrivals and completions are counted until the last request arrives. The cluster is saturated if it
    completes less than `SATURATED_BELOW` of the arrivals, and the rest is more than the few requests that are
    in flight at any moment.
    """
    issued = len(requested.issued_ns)
    if is_closed or not issued:
        return OfferedLoad(None, None)
    stop_ns = end_ns
    if requested.done.all():
        # Such a run goes on after the last arrival.
        stop_ns = int(requested.issued_ns[-1])
    if stop_ns <= 0:
        return OfferedLoad(None, False)
    served = int((requested.done & (requested.completed_ns <= stop_ns)).sum())
    left = issued - served
    is_saturated = served < SATURATED_BELOW * issued and left > 10 + 4 * sqrt(issued)
    return OfferedLoad(issued / (stop_ns / 1e9), is_saturated)

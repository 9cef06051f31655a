"""Which part of a run is measured, and what an open loop asked for beside what it got."""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from stripesim.sim.observe.client_requests import ClientRequests
from stripesim.sim.observe.intervals import mser5

#: Share of a closed loop's run that is left out at its start, the same for all schemes.
WARM_UP = 0.2
# Fewer completions in a window say nothing; then everything counts.
_COMPLETIONS_MIN = 20


@dataclass(frozen=True)
class Window:
    """The part of a run that rates and latencies are of."""

    # Requests count that complete behind the start, up to the end [ns].
    start_ns: float
    end_ns: float
    # Whether nothing was left out: latencies are then of all requests that completed, those too that
    # completed after the last had been issued.
    is_whole: bool
    transient_ns: (
        float  # End of the transient by MSER-5 [ns]; 0 where nothing may be left out.
    )

    def holds(self, requested: ClientRequests) -> npt.NDArray[np.bool_]:
        """Tell which requests the latencies are of."""
        if self.is_whole:
            return requested.done
        completed = requested.completed_ns
        inside: npt.NDArray[np.bool_] = (completed > self.start_ns) & (
            completed <= self.end_ns
        )
        return inside & requested.done


def window_of(
    requested: ClientRequests,
    run_end_ns: int,
    *,
    is_steady: bool,
    dry_ns: int | None = None,
    warm_up: float | None = None,
) -> Window:
    """Choose the window of a run.

    A closed loop is measured up to the moment at which a client has nothing left to issue: after that it
    runs dry. The share to leave out counts requests where requests bound the run, else time, so that
    it is the same part of what each scheme does.
    """
    done = requested.done
    complete = bool(done.all())
    last_ns = float(requested.issued_ns[-1] if complete else run_end_ns)
    if not is_steady:
        # One request, or all at one moment: their rate is over the time that they took.
        end_ns = (
            last_ns
            if last_ns > 0 and len(requested.issued_ns) > 1
            else float(run_end_ns)
        )
        return Window(0.0, end_ns, True, 0.0)
    order = np.argsort(requested.completed_ns[done], kind="stable")
    times = requested.completed_ns[done][order].astype(np.float64)
    skipped = mser5(requested.latencies_ns[order].astype(np.float64))
    transient_ns = float(times[skipped - 1]) if skipped else 0.0
    start_ns, end_ns = transient_ns, last_ns
    if warm_up is not None:
        start_ns = (
            float(times[int(warm_up * len(times)) - 1])
            if complete
            else warm_up * end_ns
        )
        end_ns = (
            min(end_ns, float(dry_ns)) if complete and dry_ns is not None else end_ns
        )
    if ((times > start_ns) & (times <= end_ns)).sum() < _COMPLETIONS_MIN:
        return Window(0.0, float(times[-1]), True, transient_ns)
    return Window(start_ns, end_ns, False, transient_ns)


#: An open loop is saturated if a smaller share of what arrives is served, and the rest piles up.
SATURATED_BELOW = 0.97


def offered(
    requested: ClientRequests, end_ns: int, *, is_closed: bool
) -> dict[str, Any]:
    """Return the rate that an open loop offered and whether the cluster kept up.

    Until the last request has arrived, arrivals and completions are counted over the same time. The cluster
    is saturated if it completes less than `SATURATED_BELOW` of what arrives, and what is left over is more
    than the few requests that are in flight at any moment.
    """
    issued = len(requested.issued_ns)
    if is_closed or not issued:
        return {"offered_iops": None, "saturated": None}
    # A run that ends when its requests do goes on after the last arrival.
    stop_ns = end_ns if not requested.done.all() else int(requested.issued_ns[-1])
    if stop_ns <= 0:
        return {"offered_iops": None, "saturated": False}
    served = int((requested.done & (requested.completed_ns <= stop_ns)).sum())
    left = issued - served
    saturated = served < SATURATED_BELOW * issued and left > 10 + 4 * sqrt(issued)
    found: dict[str, Any] = {
        "offered_iops": issued / (stop_ns / 1e9),
        "saturated": saturated,
    }
    if saturated:
        # The queue grows all along: no part of such a run is like another.
        found |= {
            f"{name}_ci_{end}": None
            for name in ("throughput", "latency")
            for end in ("low", "high")
        }
    return found

"""What an open loop asked for beside what it got."""

from math import sqrt
from typing import Any

from stripesim.sim.observe.requested import Requested

#: An open loop is saturated if a smaller share of what arrives is served, and the rest piles up.
SATURATED_BELOW = 0.97


def offered(requested: Requested, end_ns: int, *, is_closed: bool) -> dict[str, Any]:
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
    found: dict[str, Any] = {"offered_iops": issued / (stop_ns / 1e9), "saturated": saturated}
    if saturated:
        # The queue grows all along: no part of such a run is like another.
        found |= {f"{name}_ci_{end}": None for name in ("throughput", "latency") for end in ("low", "high")}
    return found

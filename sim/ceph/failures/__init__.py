"""Failures and how the cluster deals with them.

Start with `fault_director`, which connects the parts and speaks with the engine. Then follow one failure:
`fault_plan` says what goes wrong, `outages` and `corruption` let it happen, `maps` has peers and monitors
notice it and publish a new map, `peering` takes PGs from that map to serving clients again, `background`
rebuilds what is missing, `fault_timeline` keeps what happened, and `results` describes it.
"""

from stripesim.sim.ceph.failures.fault_director import FaultDirector
from stripesim.sim.ceph.failures.fault_plan import (
    Corruption,
    Failure,
    FaultError,
    FaultPlan,
)
from stripesim.sim.ceph.failures.fault_timeline import FaultEvent, FaultTimeline
from stripesim.sim.ceph.failures.results.describe import describe_faults
from stripesim.sim.ceph.failures.results.fault_run import FaultRun

__all__ = [
    "Corruption",
    "Failure",
    "FaultDirector",
    "FaultError",
    "FaultEvent",
    "FaultPlan",
    "FaultRun",
    "FaultTimeline",
    "describe_faults",
]

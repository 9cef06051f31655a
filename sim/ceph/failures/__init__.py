"""Failures and how the cluster deals with them.

Start with `fault_director`, which connects the parts and talks to the engine. Then follow one failure:

- `fault_plan` lists failures and corruption, `outages` and `corruption` carry them out, `data_loss` counts
  the damage.
- `detection` lets peers report dead OSDs, `monitor` publishes a new map, `cluster_map` has its contents.
- `peering` and `activation` take PGs (`groups`) from that map to serving clients again.
- `background` rebuilds missing shards and scrubs.
- `fault_timeline` records events, and `results` describes the run.
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

"""Failures and how the cluster deals with them.

Start with `director`, which connects the parts and talks to the engine. Then follow one failure:

- `plan` lists failures, slow drives, corruption and planned changes. `causes` carries out the first
  three, `data_loss` counts the damage.
- `detection` lets peers report dead OSDs, `monitor` publishes a new map, `cluster_map` has its contents.
- `planned_changes` lets operators mark OSDs out or in and change weights: a new map like any other.
- `peering` and `activation` take PGs (`groups`) from that map to serving clients again.
- `background` rebuilds missing shards and scrubs.
- `timeline` records events, and `results` describes the run.

This package exports what a plan consists of. A run without a plan loads nothing else.
"""

from stripesim.sim.ceph.failures.plan import (
    Corruption,
    Failure,
    FaultPlan,
    PlannedChange,
    SlowDrives,
)

__all__ = [
    "Corruption",
    "Failure",
    "FaultPlan",
    "PlannedChange",
    "SlowDrives",
]

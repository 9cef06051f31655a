"""Failures and what the cluster makes of them: schedule, monitors, peering, recovery, accounting."""

from stripesim.sim.ceph.failures.director import FaultDirector
from stripesim.sim.ceph.failures.report import describe_faults
from stripesim.sim.ceph.failures.schedule import (
    Corruption,
    Failure,
    FaultError,
    FaultPlan,
)
from stripesim.sim.ceph.failures.timeline import Event, Timeline

__all__ = [
    "Corruption",
    "Event",
    "Failure",
    "FaultDirector",
    "FaultError",
    "FaultPlan",
    "Timeline",
    "describe_faults",
]

"""Failures and what the cluster makes of them: schedule, monitors, peering, recovery, accounting."""

from stripesim.sim.faults.director import FaultDirector
from stripesim.sim.faults.report import describe_faults
from stripesim.sim.faults.schedule import Corruption, Failure, FaultError, FaultPlan
from stripesim.sim.faults.timeline import Event, Timeline

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

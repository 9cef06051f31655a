"""The op queue in front of an OSD's worker threads: classes of items, their costs and shares."""

from stripesim.models.qos import SCRUB_EVENT_BYTES
from stripesim.sim.ceph.qos.op_queue import (
    BEST_EFFORT,
    CLIENT,
    IMMEDIATE,
    RECOVERY,
    OpQueue,
    mclock,
    wpq,
)

__all__ = [
    "BEST_EFFORT",
    "CLIENT",
    "IMMEDIATE",
    "RECOVERY",
    "SCRUB_EVENT_BYTES",
    "OpQueue",
    "mclock",
    "wpq",
]

"""Phases of a request. Each step of a path belongs to one, which its time is attributed to."""

from enum import IntEnum


class Phase(IntEnum):
    """Phases of a request, in the order of a write; a lock is only waited for, a pause is configured."""

    CLIENT = 0
    PUBLIC_NET = 1
    LOCK = 2
    PRIMARY_CPU = 3
    READ_BACK = 4
    DISTRIBUTION = 5
    SHARD_CPU = 6
    DEVICE = 7
    LOG = 8
    PAUSE = 9

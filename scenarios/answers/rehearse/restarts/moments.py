"""Find when groups peer, objects recover and the cluster is clean in one simulated restart."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from stripesim.sim.ceph.failures.groups import State
from stripesim.sim.run import Run

Floats = npt.NDArray[np.float64]

# Width of the bins of recovery over time [ns].
SERIES_NS: Final = 10_000_000
# Shortest time without a recovered object in which placement groups wait for a map [s], and not for pushes or
# their throttles: a map is published once a second.
_PAUSE_S: Final = 0.25


@dataclass(frozen=True)
class SimulatedPart:
    """The simulated part of the downtime, and of the objects that clients write."""

    downtime: float
    objects: float


@dataclass(frozen=True)
class Growth:
    """What recovers after the whole downtime, per shard that recovers in the simulation [1]."""

    objects: float
    index: float = 1.0  # Of shards of bucket indexes.


@dataclass(frozen=True)
class ShortRestart:
    """One simulated restart, in simulated seconds."""

    result: Run
    part: SimulatedPart
    stop_s: float
    back_s: float
    peered_s: float  # Groups have peered without the host, and the backlog is gone.
    first_s: float  # The first object is recovered.
    last_s: float  # The last one is.
    moving_s: float  # Time in between, without that in which placement groups only wait for maps.
    clean_s: float
    growth: Growth

    @property
    def recovery_parts(self) -> Mapping[str, Mapping[str, int]]:
        """Operations and bytes of the recovery: of objects, of bucket indexes, and of peering."""
        assert self.result.timeline is not None
        parts: Mapping[str, Mapping[str, int]] = self.result.timeline["recovery_parts"]
        return parts

    @property
    def objects_count(self) -> float:
        """Shards of objects and of bucket indexes that recover after the whole downtime [count]."""
        return self.whole("operations")

    @property
    def recovered_share(self) -> float:
        """Part of them that recovers in the simulation [1]."""
        parts = self.recovery_parts
        simulated = parts["objects"]["operations"] + parts["index"]["operations"]
        return simulated / self.objects_count if simulated else 1 / self.growth.objects

    def whole(self, name: str) -> float:
        """Return a number of the recovery after the whole downtime, without peering."""
        parts = self.recovery_parts
        of_objects = self.growth.objects * parts["objects"][name]
        return of_objects + self.growth.index * parts["index"][name]


def moments_of(
    result: Run, part: SimulatedPart, stop_s: float, back_s: float, calm_s: float
) -> ShortRestart:
    """Find when groups have peered, when objects recover, and when the cluster is clean.

    `calm_s` is the time by which clients use other gateways.
    """
    assert result.timeline is not None
    states = result.timeline["pg_states"]
    times_s = np.array(states["time_s"])
    end_s = result.engine_run.end_ns / 1e9
    groups_count = max(states[State.CLEAN])
    returned = times_s >= back_s
    moving = returned & (_counts(states, _MOVING) > 0)
    clean = returned & (np.array(states[State.CLEAN]) == groups_count)
    first_s = last_s = back_s
    if moving.any():
        first_s = float(times_s[moving][0])
        after = times_s[times_s > times_s[moving][-1]]
        last_s = float(after[0]) if len(after) else end_s
    clean &= times_s >= last_s
    clean_s = float(times_s[clean][0]) if clean.any() else math.inf
    peering = (times_s >= stop_s) & (times_s < back_s) & (_counts(states, _PEERING) > 0)
    peered_s = stop_s
    if peering.any():
        after = times_s[times_s > times_s[peering][-1]]
        peered_s = min(back_s, float(after[0]) if len(after) else end_s)
    peered_s = min(back_s, max(peered_s, calm_s))
    moving_s = _moving_s(result.timeline["recovery"], first_s, last_s)
    return ShortRestart(
        result,
        part,
        stop_s,
        back_s,
        peered_s,
        first_s,
        last_s,
        moving_s,
        clean_s,
        Growth(1 / part.objects),
    )


def _moving_s(
    series: Mapping[str, Sequence[float]], first_s: float, last_s: float
) -> float:
    """Return the time in which objects recover, without pauses in which none is done for long [s].

    A placement group that has recovered all its objects counts as recovering until the next map.
    """
    starts_s = np.array(series["time_s"])
    done = np.array(series["rebuilt_bytes_per_s"]) > 0
    width_s = SERIES_NS / 1e9
    times_s = starts_s[done & (starts_s >= first_s - width_s) & (starts_s < last_s)]
    if not len(times_s):
        return 0.0
    between_s = np.diff(times_s)
    return float(between_s[between_s <= _PAUSE_S].sum()) + width_s


_MOVING: Final = (State.RECOVERING, State.BACKFILLING)
_PEERING: Final = (State.PEERING, State.STALE, State.WAIT)


def _counts(states: Mapping[str, Sequence[int]], wanted: Sequence[str]) -> Floats:
    """Return the placement groups in any of some states over time."""
    known = [
        np.array(states[state], dtype=np.float64) for state in wanted if state in states
    ]
    return np.sum(known, axis=0) if known else np.zeros(len(states["time_s"]))

"""Describe a change with all objects of the pool: movement, duration, and what clients notice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from stripesim.calibration.ledger.duration_errors import duration_interval
from stripesim.scenarios.answers.rehearse.backfill_schedule import (
    object_time,
    reserved_groups,
)
from stripesim.scenarios.answers.rehearse.client_effect import (
    NO_CLIENTS,
    clients_between,
    clients_during,
)
from stripesim.scenarios.answers.rehearse.exact_movement import ExactMovement
from stripesim.scenarios.answers.rehearse.pool_copy import DURATIONS
from stripesim.scenarios.answers.rehearse.samples import Sample
from stripesim.scenarios.answers.rehearse.variants import Variant
from stripesim.sim.ceph.failures.background.reservations import Backfill, schedule_s
from stripesim.sim.ceph.failures.results.change_results import DURATION_PARTS

# Interval of the duration within the simulation alone, by which settings are compared.
_SIMULATED_ENDS: Final = ("simulated_low_s", "simulated_high_s")
# Field of the result → column of a simulated change. As in Ceph's counters, messages between OSDs on one host
# count as sent. The last field counts only traffic between hosts.
_MOVED: Final = {
    "device_read_bytes": "device_read_bytes",
    "device_write_bytes": "device_write_bytes",
    "private_net_bytes": "sent_bytes",
    "between_hosts_bytes": "private_net_bytes",
}


@dataclass(frozen=True)
class RehearsalRun:
    """A simulation with its settings."""

    variant: Variant
    sample: Sample


@dataclass(frozen=True)
class WholePool:
    """The complete pool, represented by a simulated sample."""

    shard_bytes: int  # Size of one shard of an object [B].
    group_objects: float  # Mean number of objects per PG.

    def is_sampled(self, sample: Sample) -> bool:
        """Return True if the sample contains only part of the objects."""
        return round(self.group_objects) > sample.group_objects_count

    def objects_left(self, sample: Sample) -> float:
        """Return the mean number of objects per PG that the sample leaves out."""
        if not self.is_sampled(sample):
            return 0.0
        return self.group_objects - sample.group_objects_count


def change_row(
    index: int,
    exact: ExactMovement,
    sample: Sample,
    whole: WholePool,
    profiles: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Describe one change: bytes, duration and fill for the first profile, client metrics for each."""
    shards_count = exact.movement.shards_count
    return {
        "kind": exact.change.kind,
        "pgs_moved": exact.movement.groups_count,
        "shards_moved": shards_count,
        "bytes_moved": round(shards_count * whole.group_objects * whole.shard_bytes),
        **_bytes(index, sample, whole),
        **{name: profiles[0][name] for name in (*DURATIONS, *DURATION_PARTS)},
        **_fill(index, sample),
        "profiles": profiles,
    }


def _bytes(index: int, sample: Sample, whole: WholePool) -> dict[str, int | None]:
    """Return the bytes that a change reads, writes and sends, or None if it is never applied."""
    if index >= len(sample.rows):
        return dict.fromkeys(_MOVED)
    simulated = sample.rows[index]
    scale = whole.group_objects / sample.group_objects_count
    moved: dict[str, int | None] = {}
    for name, counter in _MOVED.items():
        # Peering and index shards move the same bytes regardless of the objects in the PGs.
        fixed_bytes = simulated[f"fixed_{counter}"]
        moved[name] = round(scale * (simulated[counter] - fixed_bytes) + fixed_bytes)
    return moved


def change_with_settings(
    index: int, exact: ExactMovement, run: RehearsalRun, whole: WholePool
) -> dict[str, Any]:
    """Return a change's duration and its client metrics before, during and after it, for one profile."""
    sample = run.sample
    settings = {
        "profile": run.variant.profile,
        "max_backfills": run.variant.max_backfills_count,
    }
    if index >= len(sample.rows):
        # The cluster never became clean after the previous change.
        return {
            **settings,
            **dict.fromkeys((*DURATIONS, *_SIMULATED_ENDS, *DURATION_PARTS)),
            **NO_CLIENTS,
            "before": dict(NO_CLIENTS),
            "after": dict(NO_CLIENTS),
        }
    simulated = sample.rows[index]
    end_s = sample.end_s(index)
    clean_s = simulated["clean_s"] or end_s
    before_s = sample.rows[index - 1]["clean_s"] if index else 0.0
    durations = _durations_s(exact, run, simulated, whole)
    duration_s = None
    if whole.is_sampled(sample):
        duration_s = durations["duration_s"]
    return {
        **settings,
        **durations,
        **_parts_s(simulated, durations["duration_s"]),
        **clients_during(sample, index, duration_s),
        # Until the first new map the cluster is as it was, though the command is given.
        "before": clients_between(sample, before_s or 0.0, simulated["map_s"]),
        "after": clients_between(sample, clean_s, end_s),
    }


def _durations_s(
    exact: ExactMovement,
    run: RehearsalRun,
    simulated: Mapping[str, Any],
    whole: WholePool,
) -> dict[str, float | None]:
    """Return the duration of a change with all objects [s], and its interval.

    Add the extra time for full-size PGs under the same reservations to the sample's duration.
    """
    sampled_s: float | None = simulated["duration_s"]
    names = (*DURATIONS, *_SIMULATED_ENDS)
    durations: dict[str, float | None] = dict.fromkeys(names)
    if is_overtaken(exact, simulated) or is_interrupted(run.sample, whole):
        return durations
    object_s = object_time(simulated["backfills"])
    durations["duration_s"] = sampled_s
    if sampled_s is None or object_s is None:
        return durations
    turns = _turns(reserved_groups(exact, by_log=run.sample.by_log), run)
    mean_s = sampled_s + turns * whole.objects_left(run.sample) * object_s.mean
    durations["duration_s"] = mean_s
    half_s = 0.0
    if object_s.half is not None:
        half_s = turns * whole.group_objects * object_s.half
        durations["simulated_low_s"] = max(0.0, mean_s - half_s)
        durations["simulated_high_s"] = mean_s + half_s
    low_s, high_s = duration_interval(mean_s, half=half_s / mean_s)
    durations["duration_low_s"] = low_s
    durations["duration_high_s"] = high_s
    return durations


def time_of_moves_s(
    index: int, exact: ExactMovement, run: RehearsalRun, whole: WholePool
) -> float | None:
    """Return how long a change moves all objects if the cluster never becomes clean [s].

    The time ends with the last backfill that ends. The schedule consists of the PGs whose backfills end.
    """
    if index >= len(run.sample.rows) or not whole.is_sampled(run.sample):
        return None
    simulated = run.sample.rows[index]
    backfills = simulated["backfills"]
    object_s = object_time(backfills)
    if object_s is None or is_interrupted(run.sample, whole):
        return None
    groups = np.unique(exact.movement.groups).tolist()
    reserved = zip(
        groups, reserved_groups(exact, by_log=run.sample.by_log), strict=True
    )
    ended = set(backfills["pg"])
    turns = _turns([backfill for group, backfill in reserved if group in ended], run)
    sampled_s = max(backfills["end_s"]) - simulated["at_s"]
    left_s = turns * whole.objects_left(run.sample) * object_s.mean
    return float(sampled_s + left_s)


def _turns(backfills: Sequence[Backfill], run: RehearsalRun) -> float:
    """Return how many PGs take turns before the last is backfilled, at one unit of time for each PG."""
    slots = run.variant.max_backfills_count
    return schedule_s(backfills, group_s=1.0, slots=slots)


def _parts_s(
    simulated: Mapping[str, Any], duration_s: float | None
) -> dict[str, float | None]:
    """Return the parts of the duration of a change with all objects [s]."""
    parts_s = {name: simulated[name] for name in DURATION_PARTS}
    if duration_s is not None and parts_s["movement_s"] is not None:
        parts_s["movement_s"] += duration_s - simulated["duration_s"]
    return parts_s


def _fill(index: int, sample: Sample) -> dict[str, Any]:
    """Return the peak fill of the fullest OSD after a change, and the highest fill threshold reached."""
    ratios = sample.peak_ratios(index)
    if sample.fill is None or ratios is None:
        return dict.fromkeys(("peak_used_ratio", "full_ratio_reached", "fullest_osd"))
    return sample.fill.described(ratios)


def is_overtaken(exact: ExactMovement, simulated: Mapping[str, Any]) -> bool:
    """Return True if a change moves data that the sample moves only with those of a later change."""
    return (
        bool(exact.movement.shards_count)
        and object_time(simulated["backfills"]) is None
    )


def is_interrupted(sample: Sample, whole: WholePool) -> bool:
    """Return True if failures stop a part of the objects from moving for as long as they would stop all."""
    return sample.has_failures and whole.is_sampled(sample)

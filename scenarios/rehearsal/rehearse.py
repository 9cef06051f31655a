"""Predict movement, duration, fill and client performance of each change for `stripesim rehearse`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

from stripesim.models.coding import parse_scheme
from stripesim.models.qos import Profile, mclock_defaults
from stripesim.scenarios.cells.build import build_pool, check_schemes
from stripesim.scenarios.cells.failures import limits_of
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import kernel_warnings, warnings_of
from stripesim.scenarios.planning.capacity import drives_of
from stripesim.scenarios.rehearsal.backfill_schedule import (
    backfills_of,
    schedule_s,
)
from stripesim.scenarios.rehearsal.exact_movement import ExactMovement, exact_movements
from stripesim.scenarios.rehearsal.pool_copy import COPY_WARNING, rehearse_copy
from stripesim.scenarios.rehearsal.samples import (
    Sample,
    simulate_sample,
    stored_objects,
)
from stripesim.scenarios.schema.keys import Scenario, cells
from stripesim.sim.ceph.kinds import kind_of

#: Maximum number of object shards that the changes of one simulation move [count].
SHARDS_MAX: Final = 20_000
# Minimum number of objects to simulate per PG.
_GROUP_OBJECTS_MIN: Final = 4
# Field of the result → column of a simulated change. As in Ceph's counters, messages between OSDs on one host
# count as sent. The last field counts only traffic between hosts.
_MOVED: Final = {
    "device_read_bytes": "device_read_bytes",
    "device_write_bytes": "device_write_bytes",
    "private_net_bytes": "sent_bytes",
    "between_hosts_bytes": "private_net_bytes",
}


def rehearse(scenario: Scenario, *, engine: str = "compiled") -> dict[str, Any]:
    """Rehearse the planned changes of a scenario.

    Parameters
    ----------
    scenario
        A scenario with changes, one scheme and one kind of request.
    engine
        Name of the engine.

    Returns
    -------
    dict
        ``changes`` and ``warnings``, as documented in the command-line reference.

    Raises
    ------
    ValueError
        If the scenario has no changes, several schemes, or a change that cannot be rehearsed.

    Notes
    -----
    The numbers of PGs and shards that move are exact. All PGs are assumed to hold the same number of objects.
    If the changes move more than `SHARDS_MAX` object shards, only a few objects of each PG are simulated. A
    schedule with the same reservations then extrapolates to full-size PGs at the sample's time per object.
    """
    _check(scenario)
    scenario = _bounded_by_time(scenario)
    if scenario.changes[0].kind == "scheme":
        row = rehearse_copy(scenario)
        return {
            "changes": [row],
            "warnings": [COPY_WARNING, *_range_warnings(scenario)],
        }
    # Clients issue one kind of request. A warning lists the others.
    cell = cells(scenario)[0]
    models = build_models(scenario)
    check_schemes(scenario, models)
    drives = drives_of(scenario, models)
    movements = exact_movements(scenario, cell.scheme)
    pool = build_pool(scenario, parse_scheme(cell.scheme), models)
    per_group = stored_objects(scenario) / scenario.cluster.pg_num
    shards = sum(each.movement.shards_count for each in movements)
    most = max(_GROUP_OBJECTS_MIN, SHARDS_MAX // max(1, shards))
    count = max(1, min(most, round(per_group)))
    samples = [
        simulate_sample(each, cell, drives, group_objects_count=count, engine=engine)
        for each in _with_profiles(scenario)
    ]
    whole = _Whole(
        shard_bytes=kind_of(pool).shard_bytes,
        group_objects=per_group,
        slots=limits_of(scenario, rotational=models.ssd.rotational).max_backfills_count,
        osds=pool.cluster.osds,
    )
    rows = [_row(index, each, samples, whole) for index, each in enumerate(movements)]
    warnings = _warnings(movements, samples[0], whole) + _client_warnings(scenario)
    return {"changes": rows, "warnings": warnings + _range_warnings(scenario)}


@dataclass(frozen=True)
class _Whole:
    """The complete pool, represented by a simulated sample."""

    shard_bytes: int  # Size of one shard of an object [B].
    group_objects: float  # Mean number of objects per PG.
    slots: int  # Backfill reservations that each OSD grants.
    osds: int

    def is_sampled(self, sample: Sample) -> bool:
        """Return True if the sample contains only part of the objects."""
        return round(self.group_objects) > sample.group_objects_count


def _check(scenario: Scenario) -> None:
    """Refuse a scenario that cannot be rehearsed."""
    if not scenario.changes:
        raise scenario.problem("changes", "nothing", "a planned change, [[changes]]")
    if len(scenario.schemes) > 1:
        got = ", ".join(scenario.schemes)
        raise scenario.problem("schemes", got, "one, that of the pool")
    for index, change in enumerate(scenario.changes):
        if change.kind == "scheme" and len(scenario.changes) > 1:
            got = "scheme among other changes"
            wanted = "it as the only change, in a scenario of the cluster by then"
            raise scenario.problem(f"changes.{index}.kind", got, wanted)


def _with_profiles(scenario: Scenario) -> list[Scenario]:
    """Return the scenario once per mClock profile, default first. Other op queues have no profiles."""
    cluster = scenario.cluster
    if cluster.op_queue != "mclock_scheduler" or cluster.mclock_profile is not None:
        return [scenario]
    default = mclock_defaults(scenario.generation).profile
    profiles = sorted(get_args(Profile), key=lambda profile: profile != default)
    return [
        scenario.model_copy(
            update={"cluster": cluster.model_copy(update={"mclock_profile": profile})}
        )
        for profile in profiles
    ]


def _row(
    index: int, exact: ExactMovement, samples: Sequence[Sample], whole: _Whole
) -> dict[str, Any]:
    """Describe one change: bytes, duration and fill for the first profile, client metrics for each."""
    shards_count = exact.movement.shards_count
    first = samples[0]
    profiles = [_profile(index, exact, sample, whole) for sample in samples]
    return {
        "kind": exact.change.kind,
        "pgs_moved": exact.movement.groups_count,
        "shards_moved": shards_count,
        "bytes_moved": round(shards_count * whole.group_objects * whole.shard_bytes),
        **_bytes(index, first, whole),
        "duration_s": profiles[0]["duration_s"],
        **_fill(index, first),
        "profiles": profiles,
    }


def _bytes(index: int, sample: Sample, whole: _Whole) -> dict[str, int | None]:
    """Return the bytes that a change reads, writes and sends, or None if it is never applied."""
    if index >= len(sample.rows):
        return dict.fromkeys(_MOVED)
    simulated = sample.rows[index]
    scale = whole.group_objects / sample.group_objects_count
    moved: dict[str, int | None] = {}
    for name, counter in _MOVED.items():
        # Peering moves the same bytes regardless of the data in the PGs.
        noted_bytes = simulated[f"noted_{counter}"]
        moved[name] = round(scale * (simulated[counter] - noted_bytes) + noted_bytes)
    return moved


def _profile(
    index: int, exact: ExactMovement, sample: Sample, whole: _Whole
) -> dict[str, Any]:
    """Return a change's duration and its client metrics before, during and after it, for one profile."""
    if index >= len(sample.rows):
        # The cluster never became clean after the previous change.
        return {"profile": sample.profile, "duration_s": None, **sample.clients(0, 0)}
    simulated = sample.rows[index]
    start_s = simulated["at_s"]
    end_s = sample.end_s(index)
    clean_s = simulated["clean_s"] or end_s
    before_s = sample.rows[index - 1]["clean_s"] if index else 0.0
    return {
        "profile": sample.profile,
        "duration_s": _duration_s(exact, simulated, sample, whole),
        **sample.clients(start_s, clean_s),
        "before": sample.clients(before_s or 0.0, start_s),
        "after": sample.clients(clean_s, end_s),
    }


def _duration_s(
    exact: ExactMovement, simulated: Mapping[str, Any], sample: Sample, whole: _Whole
) -> float | None:
    """Return the duration of a change with all objects [s].

    Add the extra time for full-size PGs under the same reservations to the sample's duration.
    """
    sampled_s: float | None = simulated["duration_s"]
    object_s = simulated["object_s"]
    if sampled_s is None or object_s is None or not whole.is_sampled(sample):
        return sampled_s
    backfills = backfills_of(exact)
    sampled_part_s, whole_s = (
        schedule_s(
            backfills, group_s=count * object_s, slots=whole.slots, osds=whole.osds
        )
        for count in (sample.group_objects_count, whole.group_objects)
    )
    return sampled_s + whole_s - sampled_part_s


def _fill(index: int, sample: Sample) -> dict[str, Any]:
    """Return the peak fill of the fullest OSD after a change, and the highest fill threshold reached."""
    ratios = sample.peak_ratios(index)
    if sample.fill is None or ratios is None:
        return dict.fromkeys(("peak_used_ratio", "full_ratio_reached", "fullest_osd"))
    return sample.fill.described(ratios)


def _warnings(
    movements: Sequence[ExactMovement], sample: Sample, whole: _Whole
) -> list[str]:
    warnings = []
    for index, each in enumerate(movements):
        if each.unplaced_groups_count:
            warnings.append(
                f"change {index} ({each.change.kind}): CRUSH finds too few OSDs for "
                f"{each.unplaced_groups_count} placement groups"
            )
    clean = [row["clean_s"] is not None for row in sample.rows]
    if len(clean) < len(movements) or not all(clean):
        stuck = clean.index(False) if False in clean else len(clean)
        warnings.append(
            f"change {stuck} ({movements[stuck].change.kind}): the cluster does not become clean"
        )
    if whole.is_sampled(sample):
        warnings.append(
            f"bytes and times are extrapolated from {sample.group_objects_count} of "
            f"{round(whole.group_objects):,} objects of each placement group"
        )
    if sample.fill is None:
        warnings.append(
            "the fill of OSDs is not known without cluster.drive_bytes, their capacity"
        )
    return warnings


def _bounded_by_time(scenario: Scenario) -> Scenario:
    """Return a scenario whose clients work throughout; how long is decided by the changes."""
    load = scenario.workload
    if load.requests is not None or load.duration_s is not None:
        return scenario
    timed = load.model_copy(update={"duration_s": 1.0})
    return scenario.model_copy(update={"workload": timed})


def _client_warnings(scenario: Scenario) -> list[str]:
    """Return warnings about the limits of client metrics."""
    warnings = []
    first, *left_out = cells(scenario)
    if left_out:
        warnings.append(
            f"clients: {first.pattern} {first.op} of {first.block_size_bytes} bytes; "
            f"{len(left_out)} other combinations of [workload] are left out"
        )
    if scenario.duration_s is None:
        warnings.append(
            "clients are not measured, because workload.requests ends their load: use workload.duration_s"
        )
    return warnings


def _range_warnings(scenario: Scenario) -> list[str]:
    """Return warnings where the scenario is outside the calibrated range."""
    outside = [
        f"outside the calibrated range: {line}" for line in warnings_of(scenario)
    ]
    return outside + kernel_warnings(scenario)

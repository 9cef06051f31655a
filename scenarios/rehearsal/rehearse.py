"""The answer of `stripesim rehearse`: what each planned change moves, takes, and does to clients."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from stripesim.models.coding import parse_scheme
from stripesim.scenarios.cells.build import build_pool, check_schemes
from stripesim.scenarios.cells.failures import limits_of
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.planning.capacity import drives_of
from stripesim.scenarios.rehearsal.backfill_schedule import (
    backfills_of,
    schedule_s,
)
from stripesim.scenarios.rehearsal.exact_movement import ExactMovement, exact_movements
from stripesim.scenarios.rehearsal.samples import (
    Sample,
    simulate_sample,
    stored_objects,
)
from stripesim.scenarios.schema.keys import Cell, Scenario, cells
from stripesim.sim.ceph.kinds import kind_of

#: Shards of objects that all changes of one simulation may move [count].
SHARDS_MAX: Final = 20_000
# Objects of a PG that are simulated at least.
_GROUP_OBJECTS_MIN: Final = 4
_MOVED: Final = ("device_read_bytes", "device_write_bytes", "private_net_bytes")
_FILL_STATES: Final = ("nearfull", "backfillfull", "full")


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
        ``changes`` and ``warnings``, as the contract in the reference of the command line has them.

    Raises
    ------
    ValueError
        If the scenario has no changes, or several schemes or cells.

    Notes
    -----
    PGs and shards that move are exact, with as many objects in each PG. If the changes move more than
    `SHARDS_MAX` shards of objects, a few objects of each PG are simulated. PGs of full size then take their
    turns under the same reservations, at the sample's time for each object.
    """
    cell = _only_cell(scenario)
    models = build_models(scenario)
    check_schemes(scenario, models)
    drives = drives_of(scenario, models)
    movements = exact_movements(scenario, cell.scheme)
    pool = build_pool(scenario, parse_scheme(cell.scheme), models)
    per_group = stored_objects(scenario) / scenario.cluster.pg_num
    shards = sum(each.movement.shards_count for each in movements)
    most = max(_GROUP_OBJECTS_MIN, SHARDS_MAX // max(1, shards))
    sample = simulate_sample(
        scenario,
        cell,
        models,
        drives,
        group_objects_count=max(1, min(most, round(per_group))),
        engine=engine,
    )
    whole = _Whole(
        shard_bytes=kind_of(pool).shard_bytes,
        group_objects=per_group,
        profile=_profile(scenario),
        slots=limits_of(scenario, rotational=models.ssd.rotational).max_backfills_count,
        osds=pool.cluster.osds,
    )
    rows = [_row(index, each, sample, whole) for index, each in enumerate(movements)]
    return {"changes": rows, "warnings": _warnings(movements, sample, whole)}


@dataclass(frozen=True)
class _Whole:
    """The pool of which a sample is simulated."""

    shard_bytes: int  # Size of one shard of an object [B].
    group_objects: float  # Objects of a PG, the mean of all.
    profile: str  # Name of the mClock profile, or of another op queue.
    slots: int  # Reservations for backfill that an OSD grants.
    osds: int

    def is_sampled(self, sample: Sample) -> bool:
        """Return True if the sample has only a part of the objects."""
        return round(self.group_objects) > sample.group_objects_count


def _only_cell(scenario: Scenario) -> Cell:
    """Return the only cell of a scenario with changes."""
    if not scenario.changes:
        raise scenario.problem("changes", "nothing", "a planned change, [[changes]]")
    if len(scenario.schemes) > 1:
        got = ", ".join(scenario.schemes)
        raise scenario.problem("schemes", got, "one, that of the pool")
    all_cells = cells(scenario)
    if len(all_cells) > 1:
        got = f"{len(all_cells)} combinations of ops, patterns and block sizes"
        raise scenario.problem("workload", got, "one of each, or [[workloads]]")
    for index, change in enumerate(scenario.changes):
        if change.kind == "scheme":
            wanted = "another kind: a copy into a new pool cannot be rehearsed yet"
            raise scenario.problem(f"changes.{index}.kind", "scheme", wanted)
    return all_cells[0]


def _profile(scenario: Scenario) -> str:
    """Return the name of the mClock profile, or of another op queue."""
    cluster = scenario.cluster
    if cluster.op_queue != "mclock_scheduler":
        return cluster.op_queue
    return cluster.mclock_profile or "default"


def _row(
    index: int, exact: ExactMovement, sample: Sample, whole: _Whole
) -> dict[str, Any]:
    """Describe one change."""
    shards_count = exact.movement.shards_count
    row = {
        "kind": exact.change.kind,
        "pgs_moved": exact.movement.groups_count,
        "shards_moved": shards_count,
        "bytes_moved": round(shards_count * whole.group_objects * whole.shard_bytes),
    }
    profile = whole.profile
    if index >= len(sample.rows):
        # The change before never became clean.
        return row | _not_made(profile)
    simulated = sample.rows[index]
    scale = whole.group_objects / sample.group_objects_count
    for counter in _MOVED:
        # Peering moves as much whatever PGs hold.
        noted_bytes = simulated[f"noted_{counter}"]
        moved_bytes = simulated[counter] - noted_bytes
        row[counter] = round(scale * moved_bytes + noted_bytes)
    duration = {"duration_s": _duration_s(exact, simulated, sample, whole)}
    stop_s = simulated["clean_s"]
    next_s = sample.end_ns / 1e9
    if index + 1 < len(sample.rows):
        next_s = sample.rows[index + 1]["at_s"]
    before_s = sample.rows[index - 1]["clean_s"] if index else 0.0
    during = sample.clients(simulated["at_s"], stop_s or sample.end_ns / 1e9)
    return {
        **row,
        **duration,
        **_fill(sample, simulated["map_s"], next_s),
        "profiles": [
            {
                "profile": profile,
                "duration_s": duration["duration_s"],
                **during,
                "before": sample.clients(before_s or 0.0, simulated["at_s"]),
                "after": sample.clients(stop_s or next_s, next_s),
            }
        ],
    }


def _not_made(profile: str) -> dict[str, Any]:
    nothing = dict.fromkeys(
        (*_MOVED, "duration_s", "duration_low_s", "duration_high_s")
    )
    return {
        **nothing,
        "peak_used_ratio": None,
        "full_ratio_reached": None,
        "fullest_osd": None,
        "profiles": [{"profile": profile, "duration_s": None}],
    }


def _duration_s(
    exact: ExactMovement, simulated: Mapping[str, Any], sample: Sample, whole: _Whole
) -> float | None:
    """Return how long a change takes with all objects [s].

    The sample's time, and the time by which PGs of full size take longer under the same reservations.
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


def _fill(sample: Sample, start_s: float, stop_s: float) -> dict[str, Any]:
    """Return how full the fullest OSD becomes between two moments, and the last ratio that one crosses."""
    fill = sample.fill
    if fill is None:
        return {
            "peak_used_ratio": None,
            "full_ratio_reached": None,
            "fullest_osd": None,
        }
    used_bytes = fill.used_bytes.copy()
    history = sample.history
    peak_ratios = None
    for time_s, osd, used in zip(
        history["time_s"], history["osd"], history["used_bytes"], strict=True
    ):
        if time_s > stop_s:
            break
        if time_s >= start_s and peak_ratios is None:
            peak_ratios = used_bytes / fill.capacity_bytes
        used_bytes[osd] = used
        if peak_ratios is not None:
            peak_ratios[osd] = max(peak_ratios[osd], used / fill.capacity_bytes[osd])
    if peak_ratios is None:
        peak_ratios = used_bytes / fill.capacity_bytes
    fullest = int(peak_ratios.argmax())
    peak = float(peak_ratios[fullest])
    ratios = (fill.nearfull_ratio, fill.backfillfull_ratio, fill.full_ratio)
    reached = [
        state
        for state, ratio in zip(_FILL_STATES, ratios, strict=True)
        if peak >= ratio
    ]
    return {
        "peak_used_ratio": peak,
        "full_ratio_reached": reached[-1] if reached else None,
        "fullest_osd": fullest,
    }


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
            "how full OSDs become is not known: cluster.drive_bytes gives their capacity"
        )
    return warnings

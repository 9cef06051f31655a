"""Predict movement, duration, fill and client performance of each change for `stripesim rehearse`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

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
from stripesim.scenarios.answers.rehearse.commands import commands_of, profile_commands
from stripesim.scenarios.answers.rehearse.exact_movement import (
    ExactMovement,
    exact_movements,
)
from stripesim.scenarios.answers.rehearse.pool_copy import (
    COPY_WARNINGS,
    DURATIONS,
    rehearse_copy,
    target_of_copy,
)
from stripesim.scenarios.answers.rehearse.restarts.restart import (
    rehearse_restart,
    restart_assumptions,
)
from stripesim.scenarios.answers.rehearse.samples import (
    Sample,
    sample_size,
    simulate_sample,
    stored_objects,
)
from stripesim.scenarios.answers.rehearse.timeline import BackfillCourse, timeline_of
from stripesim.scenarios.answers.rehearse.trade_off import trade_off
from stripesim.scenarios.answers.rehearse.variants import (
    Variant,
    more_backfills,
    variants_of,
    with_own_queue,
)
from stripesim.scenarios.cells.build import build_cell, check_schemes
from stripesim.scenarios.cells.changes import check_changes
from stripesim.scenarios.cells.failures import limits_of, recovery_sync_words
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import (
    kernel_warnings,
    made_from,
    other_data_words,
    outside_of,
    range_lines,
)
from stripesim.scenarios.cells.placement import (
    CRUSH_TYPES,
    crush_of,
    padded_osd_hosts,
)
from stripesim.scenarios.forms.capacity import (
    Capacity,
    capacity_of,
    drives_of,
    spare_words,
)
from stripesim.scenarios.schema.keys import Cell, cells, row_name
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.units import (
    duration_text,
    number_text,
)
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures.background.reservations import (
    backfill_spans,
    schedule_s,
)
from stripesim.sim.ceph.failures.cluster_map import UpSet
from stripesim.sim.ceph.failures.groups import State
from stripesim.sim.ceph.failures.results.change_results import DURATION_PARTS
from stripesim.sim.ceph.kinds import kind_of
from stripesim.sim.observe.audit import collecting_refusals
from stripesim.sim.observe.progress import OnStep, silent

#: Most shards, counted once per PG, of changes that are also rehearsed with larger ``osd_max_backfills``.
BACKFILLS_SHARDS_MAX: Final = 500
# Interval of the duration within the simulation alone, by which settings are compared.
SIMULATED_ENDS: Final = ("simulated_low_s", "simulated_high_s")
# Field of the result → column of a simulated change. As in Ceph's counters, messages between OSDs on one host
# count as sent. The last field counts only traffic between hosts.
_MOVED: Final = {
    "device_read_bytes": "device_read_bytes",
    "device_write_bytes": "device_write_bytes",
    "private_net_bytes": "sent_bytes",
    "between_hosts_bytes": "private_net_bytes",
}


def rehearse(
    scenario: Scenario,
    *,
    engine: str = "compiled",
    progress: OnStep = silent,
    unchecked: bool = False,
) -> dict[str, Any]:
    """Rehearse the planned changes of a scenario.

    Parameters
    ----------
    scenario
        A scenario with changes, one scheme and one kind of request.
    engine
        Name of the engine.
    progress
        Called with the settings of each simulation before it begins, and the number of simulations.
    unchecked
        True to use simulations that the audit refuses, and list them as ``refusals``.

    Returns
    -------
    dict
        ``changes``, ``trade_off``, ``timeline``, ``warnings``, ``refusals`` and ``provenance``, as
        documented in the command-line reference.

    Raises
    ------
    ValueError
        If the scenario has no changes, several schemes, or a change that cannot be rehearsed.
    RefusedError
        If the audit refuses a simulation.

    Notes
    -----
    The numbers of PGs and shards that move are exact. All PGs are assumed to hold the same number of objects.
    If the changes move more objects than a simulation can, only a few objects of each PG are simulated. A
    schedule with the same reservations then extrapolates to full-size PGs at the sample's time per object.
    """
    _check(scenario)
    scenario = with_own_queue(_bounded_by_time(scenario))
    kinds = {change.kind for change in scenario.changes}
    with collecting_refusals(unchecked) as refusals:
        if "scheme" in kinds:
            document = _rehearsed_copy(scenario, engine, progress)
        elif "restart" in kinds:
            document = _rehearsed_restarts(scenario, engine, progress)
        else:
            document = _rehearsed(scenario, engine, progress)
    return {
        **document,
        "refusals": refusals,
        "provenance": _provenance(scenario),
    }


def _rehearsed_copy(
    scenario: Scenario, engine: str, progress: OnStep
) -> dict[str, Any]:
    """Rehearse a change of scheme, which copies the pool."""
    progress("reads of the old pool, writes of the new one", 2)
    row = rehearse_copy(scenario, engine=engine)
    row["commands"] = commands_of(scenario, 0)
    return {
        "changes": [row],
        "trade_off": None,
        "timeline": None,
        "warnings": [
            *_fill_warnings([row], ["change 0 (scheme)"]),
            *_new_pool_warnings(scenario),
            *COPY_WARNINGS,
            *_range_warnings(scenario),
        ],
    }


def _rehearsed(
    scenario: Scenario,
    engine: str,
    progress: OnStep,
    *,
    numbers: Sequence[int] | None = None,
) -> dict[str, Any]:
    """Rehearse changes that move shards within the pool. Warnings call them by `numbers`."""
    named = [
        f"change {number} ({change.kind})"
        for number, change in zip(
            numbers or range(len(scenario.changes)), scenario.changes, strict=True
        )
    ]
    # Clients issue one kind of request. A warning lists the others.
    cell = cells(scenario)[0]
    models = build_models(scenario)
    check_schemes(scenario, models)
    movements = exact_movements(scenario, cell.scheme)
    pool = build_cell(scenario, cell, models).pool
    limits = limits_of(scenario)
    variants = variants_of(scenario, limits.max_backfills_count)
    profiles_count = len(variants)
    runs = _simulated_runs(
        scenario, cell, movements, variants, engine=engine, progress=progress
    )
    whole = _Whole(
        shard_bytes=kind_of(pool).shard_bytes,
        group_objects=stored_objects(scenario, pool) / scenario.cluster.pg_num,
    )
    profiles = [
        [_profile(index, exact, run, whole) for run in runs]
        for index, exact in enumerate(movements)
    ]
    first = runs[0].sample
    rows = []
    for index, exact in enumerate(movements):
        row = _row(index, exact, first, whole, profiles[index][:profiles_count])
        row["commands"] = commands_of(scenario, index)
        rows.append(row)
    weighed = trade_off(scenario, [run.variant for run in runs], profiles)
    if weighed is not None:
        weighed["commands"] = _settings_commands(scenario, weighed)
    courses = [
        _course(exact, limits.max_backfills_count, by_log=first.by_log)
        for exact in movements
    ]
    return {
        "changes": rows,
        "trade_off": weighed,
        "timeline": _timeline(first, rows, courses),
        "assumptions": _assumptions(scenario),
        "warnings": [
            *_fill_warnings(rows, named),
            *_warnings(movements, named, first, whole),
            *_spare_warnings(scenario, cell.scheme, movements[-1].up_after),
            *_other_data_warnings(movements[0].up_before, first, whole),
            *_log_warnings(scenario, first, whole, limits.log_entries_min_count),
            *_overtaken_warnings(movements, named, first),
            *_interrupted_warnings(first, whole),
            *_overlap_warnings(first, is_summed=weighed is not None),
            *_unfinished_warnings(runs[:profiles_count]),
            *_queue_warnings(runs[:profiles_count]),
            *_client_warnings(scenario),
            *_range_warnings(scenario),
        ],
    }


def _simulated_runs(
    scenario: Scenario,
    cell: Cell,
    movements: Sequence[ExactMovement],
    profiles: Sequence[Variant],
    *,
    engine: str,
    progress: OnStep,
) -> list[_Run]:
    """Simulate the changes with each profile and, where they are few, with more backfills at a time."""
    drives = drives_of(scenario, build_models(scenario))
    shards_count = sum(each.movement.shards_count for each in movements)
    variants = list(profiles)
    # The simulation that runs is not done, so the last of them leaves a step.
    steps_count = 2 + len(variants)
    progress("idle cluster", steps_count)
    size = sample_size(scenario, cell, drives, shards_count=shards_count, engine=engine)
    if size.has_load and shards_count <= BACKFILLS_SHARDS_MAX:
        variants += more_backfills(variants[0])
    steps_count = 2 + len(variants)
    runs: list[_Run] = []
    for number, variant in enumerate(variants):
        is_profile = number < len(profiles)
        if is_profile and len(runs) >= 2 and runs[0].sample.equals(runs[1].sample):
            # No OSD's queue ever has to choose, whatever its rule.
            steps_count -= 1
            runs.append(_Run(variant, runs[0].sample))
            continue
        settings = f"{variant.profile}, osd_max_backfills {variant.max_backfills_count}"
        progress(settings, steps_count)
        sample = simulate_sample(
            variant.scenario, cell, drives, size=size, engine=engine
        )
        runs.append(_Run(variant, sample))
    return runs


def _timeline(
    sample: Sample, rows: Sequence[dict[str, Any]], courses: Sequence[BackfillCourse]
) -> dict[str, Any] | None:
    """Return the timeline of all changes, and add its moments to their rows."""
    durations_s = [row["duration_s"] for row in rows]
    timeline = timeline_of(sample, durations_s, courses)
    if timeline is None:
        return None
    for row, moments in zip(rows, timeline.pop("changes"), strict=True):
        row.update(moments)
    return timeline


def _rehearsed_restarts(
    scenario: Scenario, engine: str, progress: OnStep
) -> dict[str, Any]:
    """Rehearse rolling restarts, each on the cluster as the changes before it leave it.

    A restart moves no data, so the other changes are rehearsed as if there were none.
    """
    # A bad change is named by its number in the whole list.
    check_changes(scenario, padded_osd_hosts(scenario))
    moving = [
        number
        for number, change in enumerate(scenario.changes)
        if change.kind != "restart"
    ]
    restarts_count = len(scenario.changes) - len(moving)

    def with_restarts(words: str, total: int | None = None) -> None:
        progress(words, None if total is None else total + restarts_count)

    document: dict[str, Any] = {
        "changes": [],
        "trade_off": None,
        "timeline": None,
        "assumptions": _assumptions(scenario),
        "warnings": [*_left_out_warnings(scenario), *_range_warnings(scenario)],
    }
    if moving:
        moving_only = scenario.replaced(
            changes=tuple(scenario.changes[number] for number in moving)
        )
        document = _rehearsed(moving_only, engine, with_restarts, numbers=moving)
    rows = dict(zip(moving, document["changes"], strict=True))
    warnings: list[str] = []
    for number in range(len(scenario.changes)):
        if number not in rows:
            total = None if moving else 1 + restarts_count
            progress(f"change {number}, restart of one host", total)
            rows[number], of_restart = rehearse_restart(scenario, number, engine=engine)
            warnings += of_restart
        rows[number]["commands"] = commands_of(scenario, number)
    return {
        **document,
        "changes": [rows[number] for number in sorted(rows)],
        "assumptions": [*document["assumptions"], *restart_assumptions(scenario)],
        "warnings": [*warnings, *document["warnings"]],
    }


@dataclass(frozen=True)
class _Run:
    """A simulation with its settings."""

    variant: Variant
    sample: Sample


@dataclass(frozen=True)
class _Whole:
    """The complete pool, represented by a simulated sample."""

    shard_bytes: int  # Size of one shard of an object [B].
    group_objects: float  # Mean number of objects per PG.

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
        if change.kind == "scheme" and scenario.workload.is_s3:
            wanted = (
                "another kind: Ceph has no command that copies the pool of a bucket. Add a pool of the new "
                "scheme as a storage class (radosgw-admin zonegroup placement add, zone placement add). New "
                "objects go there, and clients or lifecycle rules rewrite the old ones: run their GETs with "
                "the old scheme and their PUTs with the new one to see how fast"
            )
            raise scenario.problem(f"changes.{index}.kind", '"scheme" with s3', wanted)
        if change.kind == "scheme" and len(scenario.changes) > 1:
            wanted = (
                "it as the only change, in a scenario of the cluster by then: the copy is a new pool with "
                "placement groups of its own, which no other change here can move"
            )
            got = "scheme among other changes"
            raise scenario.problem(f"changes.{index}.kind", got, wanted)
        has_restart = any(each.kind == "restart" for each in scenario.changes)
        if has_restart and len(scenario.changes) > 1 and change.at_s is not None:
            wanted = "no time: with a restart, each change begins once the cluster is clean after the others"
            got = f"{change.at_s:g} together with a restart"
            raise scenario.problem(f"changes.{index}.at_s", got, wanted)


def _row(
    index: int,
    exact: ExactMovement,
    sample: Sample,
    whole: _Whole,
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
    index: int, exact: ExactMovement, run: _Run, whole: _Whole
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
            **dict.fromkeys((*DURATIONS, *SIMULATED_ENDS, *DURATION_PARTS)),
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
    exact: ExactMovement, run: _Run, simulated: Mapping[str, Any], whole: _Whole
) -> dict[str, float | None]:
    """Return the duration of a change with all objects [s], and its interval.

    Add the extra time for full-size PGs under the same reservations to the sample's duration.
    """
    sampled_s: float | None = simulated["duration_s"]
    names = (*DURATIONS, *SIMULATED_ENDS)
    durations: dict[str, float | None] = dict.fromkeys(names)
    if _is_overtaken(exact, simulated) or _is_interrupted(run.sample, whole):
        return durations
    object_s = object_time(simulated["backfills"])
    durations["duration_s"] = sampled_s
    if sampled_s is None or object_s is None:
        return durations
    turns = schedule_s(
        reserved_groups(exact, by_log=run.sample.by_log),
        group_s=1.0,
        slots=run.variant.max_backfills_count,
    )
    left_count = 0.0
    if whole.is_sampled(run.sample):
        left_count = whole.group_objects - run.sample.group_objects_count
    mean_s = sampled_s + turns * left_count * object_s.mean
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


def _warnings(
    movements: Sequence[ExactMovement],
    named: Sequence[str],
    sample: Sample,
    whole: _Whole,
) -> list[str]:
    """Return warnings about changes that do not end, and about their unknown values."""
    warnings = []
    for name, each in zip(named, movements, strict=True):
        if each.unplaced_groups_count:
            warnings.append(
                f"{name}: CRUSH finds too few OSDs for "
                f"{each.unplaced_groups_count} placement groups"
            )
    clean = [row["clean_s"] is not None for row in sample.rows]
    if len(clean) < len(movements) or not all(clean):
        stuck = clean.index(False) if False in clean else len(clean)
        refused_count = sample.pg_states[State.BACKFILL_TOOFULL][-1]
        because = ""
        if refused_count and sample.fill is not None:
            because = (
                f": {refused_count} placement groups are in backfill_toofull, because a target would exceed "
                f"backfillfull_ratio ({sample.fill.backfillfull_ratio:.0%})"
            )
        warnings.append(f"{named[stuck]}: the cluster does not become clean{because}")
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


def _spare_warnings(
    scenario: Scenario, scheme: str, up_after: Sequence[UpSet]
) -> list[str]:
    """Return a warning if the changes leave no spare failure domain."""
    held = _capacity(scenario, scheme)
    with_shards = {osd for up_set in up_after for osd in up_set} - {NO_OSD}
    if held.where or any(NO_OSD in up_set for up_set in up_after):
        # Sites have a number of domains each. A pool with too few domains has a warning of its own.
        return []
    kind = CRUSH_TYPES.get(held.domain, held.domain)
    named = crush_of(scenario).domains(kind)
    domains = {named.get(osd, osd) for osd in with_shards}
    return _no_spare_words(replace(held, domains=len(domains)))


def _new_pool_warnings(scenario: Scenario) -> list[str]:
    """Return a warning if the pool of another scheme has no spare failure domain."""
    new = target_of_copy(scenario)
    return _no_spare_words(_capacity(new, new.schemes[0]))


def _capacity(scenario: Scenario, scheme: str) -> Capacity:
    models = build_models(scenario)
    drives = drives_of(scenario, models)
    return capacity_of(scenario, scheme, models, drives, with_loss=False)


def _no_spare_words(held: Capacity) -> list[str]:
    if held.width == 1 or held.spare_domains > 0:
        return []
    return [f"after the changes, {spare_words(held)}"]


def _other_data_warnings(
    up_sets: Sequence[UpSet], sample: Sample, whole: _Whole
) -> list[str]:
    """Return a warning if OSDs hold much more than the pool, since only the pool moves."""
    if sample.fill is None:
        return []
    shards_count = sum(osd != NO_OSD for up_set in up_sets for osd in up_set)
    pool_bytes = shards_count * whole.group_objects * whole.shard_bytes
    used_bytes = float(sample.fill.used_bytes.sum())
    words = other_data_words(used_bytes, pool_bytes, "The rest stays where it is here")
    return [] if words is None else [words]


def _log_warnings(
    scenario: Scenario, sample: Sample, whole: _Whole, log_entries_count: int
) -> list[str]:
    """Return a warning if PGs are backfilled whose logs may hold a write of every object."""
    is_stated = scenario.faults is not None and scenario.faults.object_writes
    if sample.by_log or is_stated or whole.group_objects > log_entries_count:
        return []
    objects_count = round(whole.group_objects)
    return [
        f"a placement group has {objects_count} objects, and its log {log_entries_count} entries or more. If "
        "that holds all writes, the group recovers by the log, not by backfill, and few groups do at a time. "
        "Then state faults.object_writes"
    ]


def _fill_warnings(
    rows: Sequence[Mapping[str, Any]], named: Sequence[str]
) -> list[str]:
    """Return a warning for each change after which an OSD reaches a fill threshold."""
    warnings = []
    for name, row in zip(named, rows, strict=True):
        if row["full_ratio_reached"] is None:
            continue
        moment = ""
        if row.get("peak_at_s"):
            moment = f" {duration_text(row['peak_at_s'])} after the command"
        # No backfill fills an OSD that far.
        because = ""
        if row["peak_used_ratio"] > 1:
            because = ": the data stored before the changes do not fit"
        warnings.append(
            f"{name}: osd.{row['fullest_osd']} reaches {row['peak_used_ratio']:.1%}{moment}, "
            f"above {row['full_ratio_reached']}{because}"
        )
    return warnings


def _course(exact: ExactMovement, slots: int, *, by_log: bool) -> BackfillCourse:
    """Return the schedule of a change with full-size PGs, in parts of the whole."""
    backfills = reserved_groups(exact, by_log=by_log)
    spans = backfill_spans(backfills, group_s=1.0, slots=slots)
    turns = max((end for _, end in spans), default=1.0)
    parts = [(start / turns, end / turns) for start, end in spans]
    return BackfillCourse(exact.movement, parts)


def _settings_commands(scenario: Scenario, weighed: Mapping[str, Any]) -> list[str]:
    """Return the commands for the recommended settings; none if they are the cluster's own."""
    if not weighed["recommended"]:
        return []
    own = weighed["points"][0]
    best = weighed["points"][weighed["recommended"]]
    max_backfills = None
    if best["max_backfills"] != own["max_backfills"]:
        max_backfills = best["max_backfills"]
    return profile_commands(scenario, best["profile"], max_backfills)


def _overtaken_warnings(
    movements: Sequence[ExactMovement], named: Sequence[str], sample: Sample
) -> list[str]:
    """Return a warning for each change without a time, because its data does not move on its own."""
    last = len(movements) - 1
    warnings = []
    for number, (name, each, row) in enumerate(
        zip(named, movements, sample.rows, strict=False)
    ):
        if row["clean_s"] is None or not _is_overtaken(each, row):
            continue
        why = "the next change (at_s) begins before its data moves, and both move together"
        if number == last:
            why = (
                "it begins (at_s) before the changes before it have moved its data, so none moves: the "
                "shards and bytes are those of a clean cluster"
            )
        warnings.append(
            f"{name}: no time, because {why}. Leave at_s out to rehearse one after the other"
        )
    return warnings


def _is_overtaken(exact: ExactMovement, simulated: Mapping[str, Any]) -> bool:
    """Return True if a change moves data that the sample moves only with those of a later change."""
    return (
        bool(exact.movement.shards_count)
        and object_time(simulated["backfills"]) is None
    )


def _overlap_warnings(sample: Sample, *, is_summed: bool) -> list[str]:
    """Return a warning if the duration of all changes counts times twice that changes share."""
    overlaps = any(
        earlier["clean_s"] is not None and later["at_s"] < earlier["clean_s"]
        for earlier, later in pairwise(sample.rows)
    )
    if not (overlaps and is_summed):
        return []
    return [
        "changes overlap (at_s): each lasts until the cluster is clean after all of them, so the duration of "
        "all changes together is shorter than the sum by which settings are compared"
    ]


def _is_interrupted(sample: Sample, whole: _Whole) -> bool:
    """Return True if failures stop a part of the objects from moving for as long as they would stop all."""
    return sample.has_failures and whole.is_sampled(sample)


def _interrupted_warnings(sample: Sample, whole: _Whole) -> list[str]:
    """Return a warning if times are unknown because failures interrupt a part of the objects."""
    if not _is_interrupted(sample, whole):
        return []
    return [
        "no times, because OSDs fail ([faults]) while only a part of the objects is simulated: the wait for "
        "them is as long with all objects, and the time of an object is not known without it"
    ]


def _unfinished_warnings(runs: Sequence[_Run]) -> list[str]:
    """Return a warning for each setting whose time is unknown because its simulation ends before."""
    warnings = []
    for run in runs:
        sample = run.sample
        if not sample.has_load or all(
            row["clean_s"] is not None for row in sample.rows
        ):
            continue
        times = sample.end_ns / sample.alone_ns
        warnings.append(
            f"{run.variant.profile}: no time, because the cluster is not clean after {number_text(times)} "
            "times as long as the changes take without clients"
        )
    return warnings


def _queue_warnings(runs: Sequence[_Run]) -> list[str]:
    """Return a warning if the op queue does not matter."""
    if len(runs) < 2 or not runs[0].sample.equals(runs[1].sample):
        return []
    if not runs[0].sample.has_load:
        return []
    return [
        f"{runs[0].variant.profile} and {runs[1].variant.profile} give the same completions: no OSD's queue "
        "holds clients and recovery at once, so other profiles are not simulated and have the same results"
    ]


def _bounded_by_time(scenario: Scenario) -> Scenario:
    """Return a scenario whose clients work throughout; how long is decided by the changes."""
    load = scenario.workload
    if load.requests is not None or load.duration_s is not None:
        return scenario
    return scenario.with_workload(duration_s=1.0)


def _client_warnings(scenario: Scenario) -> list[str]:
    """Return warnings about the limits of client metrics."""
    warnings = _left_out_warnings(scenario)
    if scenario.duration_s is None:
        warnings.append(
            "clients are not measured, because workload.requests ends their load: use workload.duration_s"
        )
    return warnings


def _left_out_warnings(scenario: Scenario) -> list[str]:
    """Return a warning if clients issue the first of several kinds of requests alone."""
    first, *left_out = cells(scenario)
    if not left_out:
        return []
    load = row_name(
        {
            "pattern": first.pattern,
            "op": first.op,
            "block_size_bytes": first.block_size_bytes,
        }
    )
    count = 1 + len(left_out)
    return [f"clients: {load}, the first of {count} combinations of [workload]"]


def _provenance(scenario: Scenario) -> dict[str, Any]:
    """Return the provenance of the result."""
    return made_from(
        scenario,
        scheme=scenario.schemes[0],
        generation=scenario.generation,
        parameters=scenario.cluster.parameters,
    )


def _assumptions(scenario: Scenario) -> list[str]:
    """List the assumptions behind the times of recovery."""
    sync_text = recovery_sync_words(scenario)
    return [f"{sync_text[0].upper()}{sync_text[1:]}."]


def _range_warnings(scenario: Scenario) -> list[str]:
    """Return warnings where the scenario is outside the calibrated range."""
    return range_lines(outside_of(scenario)) + kernel_warnings(scenario)

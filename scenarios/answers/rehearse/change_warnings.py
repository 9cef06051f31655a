"""Warnings of a rehearsal: changes that do not end, values that are unknown, and limits of the answer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from stripesim.scenarios.answers.rehearse.change_rows import (
    RehearsalRun,
    WholePool,
    is_interrupted,
    is_overtaken,
)
from stripesim.scenarios.answers.rehearse.exact_movement import ExactMovement
from stripesim.scenarios.answers.rehearse.pool_copy import target_of_copy
from stripesim.scenarios.answers.rehearse.samples import Sample
from stripesim.scenarios.cells.failures import limits_of
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import (
    kernel_warnings,
    other_data_words,
    outside_of,
    range_lines,
)
from stripesim.scenarios.cells.placement import CRUSH_TYPES, crush_of
from stripesim.scenarios.forms.capacity import (
    Capacity,
    capacity_of,
    drives_of,
    spare_words,
)
from stripesim.scenarios.schema.keys import cells, row_name
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.units import duration_text, number_text
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures.cluster_map import UpSet
from stripesim.sim.ceph.failures.groups import State

# What is not known of a copy.
_COPY_WARNINGS: Final = (
    "change 0 (scheme): reads of the old pool and writes of the new one are simulated one after the other, "
    "not together: the duration is that of a copy whose reads and writes never overlap, and duration_low_s "
    "that of perfect overlap",
    "change 0 (scheme): clients are measured during the reads of the copy, not during its writes; the writes "
    "are simulated without clients, and written bytes have no metadata",
)


def movement_warnings(
    scenario: Scenario,
    named: Sequence[str],
    movements: Sequence[ExactMovement],
    runs: Sequence[RehearsalRun],
    whole: WholePool,
    rows: Sequence[Mapping[str, Any]],
    *,
    is_summed: bool,
) -> list[str]:
    """Return the warnings about changes that move shards within the pool.

    Parameters
    ----------
    scenario
        A scenario of these changes alone.
    named
        How warnings call each change.
    movements
        The shards that each change moves.
    runs
        The simulation with each profile, the cluster's own first.
    whole
        The complete pool.
    rows
        The row of each change.
    is_summed
        True if settings are compared by the sum of the changes' durations.
    """
    sample = runs[0].sample
    return [
        *_fill_warnings(rows, named),
        *_unplaced_warnings(movements, named),
        *_stuck_warnings(named, sample),
        *_sample_warnings(sample, whole),
        *_spare_warnings(scenario, movements[-1].up_after),
        *_other_data_warnings(movements[0].up_before, sample, whole),
        *_log_warnings(scenario, sample, whole),
        *_overtaken_warnings(movements, named, sample),
        *_interrupted_warnings(sample, whole),
        *_overlap_warnings(sample, is_summed=is_summed),
        *_unfinished_warnings(runs),
        *_queue_warnings(runs),
        *_client_warnings(scenario),
        *range_warnings(scenario),
    ]


def copy_warnings(scenario: Scenario, row: Mapping[str, Any]) -> list[str]:
    """Return the warnings about a change of scheme."""
    return [
        *_fill_warnings([row], ["change 0 (scheme)"]),
        *_new_pool_warnings(scenario),
        *_COPY_WARNINGS,
        *range_warnings(scenario),
    ]


def _unplaced_warnings(
    movements: Sequence[ExactMovement], named: Sequence[str]
) -> list[str]:
    """Return a warning for each change after which CRUSH finds too few OSDs."""
    return [
        f"{name}: CRUSH finds too few OSDs for {each.unplaced_groups_count} placement groups"
        for name, each in zip(named, movements, strict=True)
        if each.unplaced_groups_count
    ]


def _stuck_warnings(named: Sequence[str], sample: Sample) -> list[str]:
    """Return a warning about the first change after which the cluster does not become clean."""
    clean = [row["clean_s"] is not None for row in sample.rows]
    if len(clean) == len(named) and all(clean):
        return []
    stuck = clean.index(False) if False in clean else len(clean)
    refused_count = sample.pg_states[State.BACKFILL_TOOFULL][-1]
    because = ""
    if refused_count and sample.fill is not None:
        because = (
            f": {refused_count} placement groups are in backfill_toofull, because a target would exceed "
            f"backfillfull_ratio ({100 * sample.fill.backfillfull_ratio:.0f} %)"
        )
    return [f"{named[stuck]}: the cluster does not become clean{because}"]


def _sample_warnings(sample: Sample, whole: WholePool) -> list[str]:
    """Return warnings about extrapolated values and an unknown fill."""
    warnings = []
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


def _spare_warnings(scenario: Scenario, up_after: Sequence[UpSet]) -> list[str]:
    """Return a warning if the changes leave no spare failure domain."""
    held = _capacity(scenario)
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
    return _no_spare_words(_capacity(target_of_copy(scenario)))


def _capacity(scenario: Scenario) -> Capacity:
    models = build_models(scenario)
    drives = drives_of(scenario, models)
    (scheme,) = scenario.schemes
    return capacity_of(scenario, scheme, models, drives, with_loss=False)


def _no_spare_words(held: Capacity) -> list[str]:
    if held.width == 1 or held.spare_domains > 0:
        return []
    return [f"after the changes, {spare_words(held)}"]


def _other_data_warnings(
    up_sets: Sequence[UpSet], sample: Sample, whole: WholePool
) -> list[str]:
    """Return a warning if OSDs hold much more than the pool, since only the pool moves."""
    if sample.fill is None:
        return []
    shards_count = sum(osd != NO_OSD for up_set in up_sets for osd in up_set)
    pool_bytes = shards_count * whole.group_objects * whole.shard_bytes
    used_bytes = float(sample.fill.used_bytes.sum())
    words = other_data_words(used_bytes, pool_bytes, "The rest stays where it is here")
    return [] if words is None else [words]


def _log_warnings(scenario: Scenario, sample: Sample, whole: WholePool) -> list[str]:
    """Return a warning if PGs are backfilled whose logs may hold a write of every object."""
    log_entries_count = limits_of(scenario).log_entries_min_count
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
            f"{name}: osd.{row['fullest_osd']} reaches {100 * row['peak_used_ratio']:.1f} %{moment}, "
            f"above {row['full_ratio_reached']}{because}"
        )
    return warnings


def _overtaken_warnings(
    movements: Sequence[ExactMovement], named: Sequence[str], sample: Sample
) -> list[str]:
    """Return a warning for each change without a time, because its data does not move on its own."""
    last = len(movements) - 1
    warnings = []
    for number, (name, each, row) in enumerate(
        zip(named, movements, sample.rows, strict=False)
    ):
        if row["clean_s"] is None or not is_overtaken(each, row):
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


def _overlap_warnings(sample: Sample, *, is_summed: bool) -> list[str]:
    """Return a warning if the duration of all changes counts times twice that changes share."""
    if not (sample.has_overlap and is_summed):
        return []
    return [
        "changes overlap (at_s): each lasts until the cluster is clean after all of them, so the duration of "
        "all changes together is shorter than the sum by which settings are compared"
    ]


def _interrupted_warnings(sample: Sample, whole: WholePool) -> list[str]:
    """Return a warning if OSDs fail meanwhile: times include the wait for them, or are unknown."""
    if not sample.has_failures:
        return []
    if not is_interrupted(sample, whole):
        return [
            "OSDs fail meanwhile ([faults]): times, bytes and fill include their recovery, and the time of "
            "peering includes the wait for them"
        ]
    return [
        "no times, because OSDs fail ([faults]) while only a part of the objects is simulated: the wait for "
        "them is as long with all objects, and the time of an object is not known without it"
    ]


def _unfinished_warnings(runs: Sequence[RehearsalRun]) -> list[str]:
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


def _queue_warnings(runs: Sequence[RehearsalRun]) -> list[str]:
    """Return a warning if the op queue does not matter."""
    if len(runs) < 2 or not runs[0].sample.equals(runs[1].sample):
        return []
    if not runs[0].sample.has_load:
        return []
    return [
        f"{runs[0].variant.profile} and {runs[1].variant.profile} give the same completions: no OSD's queue "
        "holds clients and recovery at once, so other profiles are not simulated and have the same results"
    ]


def _client_warnings(scenario: Scenario) -> list[str]:
    """Return warnings about the limits of client metrics."""
    warnings = left_out_warnings(scenario)
    if scenario.duration_s is None:
        warnings.append(
            "clients are not measured, because workload.requests ends their load: use workload.duration_s"
        )
    return warnings


def left_out_warnings(scenario: Scenario) -> list[str]:
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


def range_warnings(scenario: Scenario) -> list[str]:
    """Return warnings where the scenario is outside the calibrated range."""
    return range_lines(outside_of(scenario)) + kernel_warnings(scenario)

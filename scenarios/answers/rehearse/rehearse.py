"""Predict movement, duration, fill and client performance of each change for `stripesim rehearse`."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from stripesim.scenarios.answers.rehearse.backfill_schedule import reserved_groups
from stripesim.scenarios.answers.rehearse.change_rows import (
    RehearsalRun,
    WholePool,
    change_row,
    change_with_settings,
    time_of_moves_s,
)
from stripesim.scenarios.answers.rehearse.change_warnings import (
    copy_warnings,
    left_out_warnings,
    movement_warnings,
    range_warnings,
)
from stripesim.scenarios.answers.rehearse.commands import commands_of, profile_commands
from stripesim.scenarios.answers.rehearse.exact_movement import (
    ExactMovement,
    exact_movements,
)
from stripesim.scenarios.answers.rehearse.pool_copy import rehearse_copy
from stripesim.scenarios.answers.rehearse.restarts.restart import (
    rehearse_restart,
    restart_assumptions,
)
from stripesim.scenarios.answers.rehearse.samples import (
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
from stripesim.scenarios.cells.notes import made_from
from stripesim.scenarios.cells.placement import padded_osd_hosts
from stripesim.scenarios.forms.capacity import drives_of
from stripesim.scenarios.schema.keys import Cell, cells
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.sim.ceph.failures.background.reservations import backfill_spans
from stripesim.sim.ceph.kinds import kind_of
from stripesim.sim.observe.audit import collecting_refusals
from stripesim.sim.observe.progress import OnStep, silent

#: Most shards, counted once per PG, of changes that are also rehearsed with larger ``osd_max_backfills``.
BACKFILLS_SHARDS_MAX: Final = 500


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
        "warnings": copy_warnings(scenario, row),
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
    whole = WholePool(
        shard_bytes=kind_of(pool).shard_bytes,
        group_objects=stored_objects(scenario, pool) / scenario.cluster.pg_num,
    )
    profiles = [
        [change_with_settings(index, exact, run, whole) for run in runs]
        for index, exact in enumerate(movements)
    ]
    first = runs[0].sample
    rows = []
    for index, exact in enumerate(movements):
        row = change_row(index, exact, first, whole, profiles[index][:profiles_count])
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
        "timeline": _timeline(movements, runs[0], whole, rows, courses),
        "assumptions": _assumptions(scenario),
        "warnings": movement_warnings(
            scenario,
            named,
            movements,
            runs[:profiles_count],
            whole,
            rows,
            is_summed=weighed is not None,
        ),
    }


def _simulated_runs(
    scenario: Scenario,
    cell: Cell,
    movements: Sequence[ExactMovement],
    profiles: Sequence[Variant],
    *,
    engine: str,
    progress: OnStep,
) -> list[RehearsalRun]:
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
    runs: list[RehearsalRun] = []
    for number, variant in enumerate(variants):
        is_profile = number < len(profiles)
        if is_profile and len(runs) >= 2 and runs[0].sample.equals(runs[1].sample):
            # No OSD's queue ever has to choose, whatever its rule.
            steps_count -= 1
            runs.append(RehearsalRun(variant, runs[0].sample))
            continue
        settings = f"{variant.profile}, osd_max_backfills {variant.max_backfills_count}"
        progress(settings, steps_count)
        sample = simulate_sample(
            variant.scenario, cell, drives, size=size, engine=engine
        )
        runs.append(RehearsalRun(variant, sample))
    return runs


def _timeline(
    movements: Sequence[ExactMovement],
    run: RehearsalRun,
    whole: WholePool,
    rows: Sequence[dict[str, Any]],
    courses: Sequence[BackfillCourse],
) -> dict[str, Any] | None:
    """Return the timeline of all changes, and add its moments to their rows."""
    durations_s = []
    for index, (exact, row) in enumerate(zip(movements, rows, strict=True)):
        duration_s = row["duration_s"]
        if duration_s is None:
            duration_s = time_of_moves_s(index, exact, run, whole)
        durations_s.append(duration_s)
    timeline = timeline_of(run.sample, durations_s, courses)
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
        "warnings": [*left_out_warnings(scenario), *range_warnings(scenario)],
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
        if has_restart and change.at_s is not None:
            wanted = "no time: a restart, and each change beside it, begins once the cluster is clean"
            got = f"{change.at_s:g} with a restart"
            raise scenario.problem(f"changes.{index}.at_s", got, wanted)


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


def _bounded_by_time(scenario: Scenario) -> Scenario:
    """Return a scenario whose clients work throughout; how long is decided by the changes."""
    load = scenario.workload
    if load.requests is not None or load.duration_s is not None:
        return scenario
    return scenario.with_workload(duration_s=1.0)


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

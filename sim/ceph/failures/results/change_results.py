"""Bytes and duration of each planned change."""

from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np

from stripesim.models.placement import Movement
from stripesim.sim.ceph.failures.planned_changes import AppliedChange
from stripesim.sim.ceph.failures.results.finished_run import BoolArray, FaultRun
from stripesim.sim.ceph.failures.results.recovery_results import (
    MOVED_COUNTERS,
    operation_totals,
)
from stripesim.sim.engine.graph import COUNTER_INDEX, IntArray
from stripesim.sim.engine.program import StreamRun
from stripesim.sim.observe.recording import account

# Bytes of a change. `sent_bytes` includes messages between OSDs of one host.
_COLUMNS = (*MOVED_COUNTERS, "sent_bytes")
#: Columns of the parts of a change's duration.
DURATION_PARTS = ("commands_s", "peering_s", "movement_s")


def describe_changes(run: FaultRun) -> list[dict[str, Any]]:
    """Describe the planned changes of a run, in order.

    Returns
    -------
    list of dict
        One row for each change:

        - ``kind``
        - ``at_s``: when the operator starts
        - ``map_s``: when the first new map comes
        - ``clean_s``: when all PGs are clean again, None if they never are
        - ``duration_s``: from ``at_s`` to ``clean_s``, and its parts (see `_parts`)
        - ``pgs_moved``, ``shards_moved``, ``bytes_moved``: from the up sets before and after
        - bytes that recovery, peering and removals read, wrote and sent from one map to the next
          (``sent_bytes``: between OSDs, also of one host)
        - ``fixed_…``: those of peering, removals and index shards, which do not grow with the objects of a PG
        - ``object_s``: mean time that a PG took for each object
        - ``backfills``: lists of the PGs of the pool that recovered objects, in order of their start
          (``pg``, ``start_s``, ``end_s``, ``objects``)

    Notes
    -----
    Bytes that are accounted once per service, such as the log of a sync, are shared by number of operations.
    """
    applied = run.changes
    if not applied:
        return []
    rows = [_movement(run, change) for change in applied]
    firsts_ns = np.array([change.made_ns for change in applied], dtype=np.int64)
    every = np.ones(len(run.recovery.issued_ns), dtype=np.bool_)
    recovered = _moved(run, run.recovery, firsts_ns, every)
    of_index = _moved(run, run.recovery, firsts_ns, run.is_index)
    every = np.ones(len(run.notes.issued_ns), dtype=np.bool_)
    noted = _moved(run, run.notes, firsts_ns, every)
    backfills = _backfills(run)
    for index, row in enumerate(rows):
        for column, counter in enumerate(_COLUMNS):
            row[counter] = recovered[index][column] + noted[index][column]
            row[f"fixed_{counter}"] = of_index[index][column] + noted[index][column]
        commands_s = applied[index].change.commands_ns / 1e9
        row.update(_parts(row, commands_s, backfills[index]))
        of_data = _of_data(run, backfills[index])
        row["object_s"] = _object_s(of_data)
        row["backfills"] = of_data
    return rows


def _parts(
    row: dict[str, Any], commands_s: float, backfills: dict[str, list[Any]]
) -> dict[str, float | None]:
    """Return the parts of the duration of a change [s].

    ``movement_s`` is the time during which at least one PG moves objects. The rest is ``commands_s`` until
    the last command has been given, and ``peering_s`` afterwards: maps, peering and reservations.
    """
    if row["clean_s"] is None:
        return dict.fromkeys(DURATION_PARTS)
    begin_s, end_s = row["at_s"], row["clean_s"]
    typed_s = min(begin_s + commands_s, end_s)
    moving = sorted(zip(backfills["start_s"], backfills["end_s"], strict=True))
    while_typing_s = _covered_s(moving, begin_s, typed_s)
    movement_s = _covered_s(moving, begin_s, end_s)
    commands_s = typed_s - begin_s - while_typing_s
    peering_s = end_s - begin_s - movement_s - commands_s
    parts_s = (commands_s, peering_s, movement_s)
    return dict(zip(DURATION_PARTS, parts_s, strict=True))


def _covered_s(
    spans: Sequence[tuple[float, float]], begin_s: float, end_s: float
) -> float:
    """Return how much of a time is covered by at least one span, given by start [s]."""
    covered_s = 0.0
    for span_begin_s, span_end_s in spans:
        first_s = max(begin_s, span_begin_s)
        last_s = min(end_s, span_end_s)
        if last_s > first_s:
            covered_s += last_s - first_s
            begin_s = last_s
    return covered_s


def _backfills(run: FaultRun) -> list[dict[str, list[Any]]]:
    """List the PGs that recovered objects in each change, in order of their start.

    A PG that moves objects after several maps of a change is listed for each of them.
    """
    maps = sorted(
        (map_ns, number)
        for number, change in enumerate(run.changes)
        for map_ns in (change.made_ns, *change.later_maps_ns)
    )
    maps_ns = np.array([map_ns for map_ns, _ in maps], dtype=np.int64)
    spans: list[dict[tuple[int, int], list[int]]] = [{} for _ in run.changes]
    recovery = run.recovery
    for index in np.flatnonzero(run.rounds_done).tolist():
        completed_ns = int(recovery.completed_ns[index])
        latest = int(np.searchsorted(maps_ns, completed_ns, side="right")) - 1
        if latest < 0:
            continue
        _, change = maps[latest]
        operation, _ = run.rounds[index]
        issued_ns = int(recovery.issued_ns[index])
        key = (operation.group, latest)
        first_last = spans[change].setdefault(key, [issued_ns, 0])
        first_last[1] = max(first_last[1], completed_ns)
    listed: list[dict[str, list[Any]]] = []
    for of_change in spans:
        by_start = sorted(of_change.items(), key=lambda entry: (entry[1][0], entry[0]))
        listed.append(
            {
                "pg": [group for (group, _), _ in by_start],
                "start_s": [first_ns / 1e9 for _, (first_ns, _) in by_start],
                "end_s": [last_ns / 1e9 for _, (_, last_ns) in by_start],
                "objects": [run.objects_counts[group] for (group, _), _ in by_start],
            }
        )
    return listed


def _of_data(run: FaultRun, backfills: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the backfills without those of bucket indexes."""
    are_data = [group < run.data_groups for group in backfills["pg"]]
    return {
        name: list(compress(values, are_data)) for name, values in backfills.items()
    }


def _object_s(backfills: dict[str, list[Any]]) -> float | None:
    """Return the mean time that a PG takes for each of its objects [s]."""
    objects_count = sum(backfills["objects"])
    if not objects_count:
        return None
    total_s = float(sum(backfills["end_s"]) - sum(backfills["start_s"]))
    return total_s / float(objects_count)


def describe_fill(run: FaultRun) -> dict[str, Any]:
    """Return the history of bytes used by OSD, and the ratios reached; empty without a fill plan."""
    if run.plan.fill is None:
        return {}
    history = run.fullness.history
    return {
        "time_s": [time_ns / 1e9 for time_ns, _, _ in history],
        "osd": [osd for _, osd, _ in history],
        "used_bytes": [used_bytes for _, _, used_bytes in history],
        "crossings": [
            {"time_s": time_ns / 1e9, "osd": osd, "state": state}
            for time_ns, osd, state in run.fullness.crossings
        ],
    }


def _movement(run: FaultRun, change: AppliedChange) -> dict[str, Any]:
    count = run.data_groups
    movement = Movement.between(
        change.up_before[:count],
        change.up_after[:count],
        is_replicated=run.is_replicated,
    )
    objects_counts = np.array(run.objects_counts, dtype=np.int64)
    duration_s = None
    clean_s = None
    if change.clean_ns is not None:
        clean_s = change.clean_ns / 1e9
        duration_s = (change.clean_ns - change.asked_ns) / 1e9
    return {
        "kind": change.change.kind,
        "at_s": change.asked_ns / 1e9,
        "map_s": change.made_ns / 1e9,
        "clean_s": clean_s,
        "duration_s": duration_s,
        "pgs_moved": movement.groups_count,
        "shards_moved": movement.shards_count,
        "bytes_moved": int(objects_counts[movement.groups].sum()) * run.shard_bytes,
    }


def _moved(
    run: FaultRun, stream: StreamRun, firsts_ns: IntArray, wanted: BoolArray
) -> list[list[int]]:
    """Sum the moved counters of the wanted operations of a stream from each map to the next.

    `wanted` has the shape (operations,), the sums (changes, counters).
    """
    changes_count = len(firsts_ns)
    columns = [COUNTER_INDEX[counter] for counter in MOVED_COUNTERS]
    net = COUNTER_INDEX["private_net_bytes"]
    done = stream.completed_ns >= 0
    change_of = np.searchsorted(firsts_ns, stream.completed_ns[done], side="right") - 1
    is_counted = (change_of >= 0) & wanted[done]
    planned = operation_totals(stream, run.book)[:, columns]
    width = len(run.changes[0].up_before[0])
    sent = operation_totals(stream, run.book, within_hosts_width=width)[:, [net]]
    planned = np.concatenate([planned, sent], axis=1)[done]
    sums = np.zeros((changes_count, len(_COLUMNS)), dtype=np.int64)
    np.add.at(sums, change_of[is_counted], planned[is_counted])
    taken = account(stream, run.book)
    per_service = np.zeros(len(_COLUMNS), dtype=np.int64)
    of_counters = planned[:, : len(columns)].sum(axis=0)
    per_service[: len(columns)] = [
        taken[counter] for counter in MOVED_COUNTERS
    ] - of_counters
    counts = np.bincount(change_of[is_counted], minlength=changes_count)
    shares = counts / max(1, int(done.sum()))
    shared = np.outer(shares, np.maximum(per_service, 0)).round().astype(np.int64)
    moved: list[list[int]] = (sums + shared).tolist()
    return moved

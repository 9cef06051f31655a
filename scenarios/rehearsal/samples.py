"""Simulate planned changes on a sample of the data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from stripesim.scenarios.cells.build import CellInputs, build_cell
from stripesim.scenarios.planning.capacity import Drives, FloatArray
from stripesim.scenarios.schema.keys import Cell, Scenario, WorkloadSpec
from stripesim.sim.ceph.clients.workload import Synthetic
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures import FaultPlan
from stripesim.sim.ceph.failures.fault_plan import FillPlan
from stripesim.sim.ceph.kinds import kind_of
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.observe.client_requests import ClientRequests
from stripesim.sim.run import RunResult, simulate

#: Time to measure clients without recovery, before each change and after the last one [ns].
QUIET_NS: Final = 2_000_000_000
# Length of the first and second attempt, in multiples of the changes' duration without clients.
_LONGER: Final = (2, 8)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A simulation of the changes with a sample of the pool's objects."""

    profile: str  #: mClock profile, or the name of another op queue
    group_objects_count: int  #: Simulated objects per PG [count]
    #: Data moved by each change, in the format of `describe_changes`
    rows: Sequence[Mapping[str, Any]]
    #: Initial fill of the OSDs, or None if their capacity is unknown
    fill: FillPlan | None
    #: Used bytes over time, in the format of `describe_fill`
    history: Mapping[str, Any]
    requested: ClientRequests
    end_ns: int
    has_load: bool  #: True if clients issued requests throughout

    def end_s(self, index: int) -> float:
        """Return the time of the next change, or the end of the run [s]."""
        if index + 1 < len(self.rows):
            return float(self.rows[index + 1]["at_s"])
        return self.end_ns / 1e9

    def peak_ratios(self, index: int) -> FloatArray | None:
        """Return the peak fill ratio of each OSD after a change, shape (osds,), or None if unknown."""
        if self.fill is None or index >= len(self.rows):
            return None
        used_bytes = self.fill.used_bytes.copy()
        peaks_bytes = None
        start_s = self.rows[index]["map_s"]
        columns = (self.history[key] for key in ("time_s", "osd", "used_bytes"))
        for time_s, osd, now_bytes in zip(*columns, strict=True):
            if time_s > self.end_s(index):
                break
            if time_s >= start_s and peaks_bytes is None:
                peaks_bytes = used_bytes.copy()
            used_bytes[osd] = now_bytes
            if peaks_bytes is not None:
                peaks_bytes[osd] = max(peaks_bytes[osd], now_bytes)
        if peaks_bytes is None:
            peaks_bytes = used_bytes
        ratios: FloatArray = peaks_bytes / self.fill.capacity_bytes
        return ratios

    def clients(self, start_s: float, stop_s: float) -> dict[str, float | None]:
        """Return rate and latencies of the requests that completed between two points in time."""
        if not self.has_load or stop_s <= start_s:
            return {"iops": None, "latency_p50_ns": None, "latency_p99_ns": None}
        completed_s = self.requested.completed_ns[self.requested.done] / 1e9
        within = (completed_s > start_s) & (completed_s <= stop_s)
        latencies_ns = self.requested.latencies_ns[within]
        if not len(latencies_ns):
            return {"iops": 0.0, "latency_p50_ns": None, "latency_p99_ns": None}
        p50_ns, p99_ns = np.percentile(latencies_ns, [50, 99]).tolist()
        return {
            "iops": float(within.sum()) / (stop_s - start_s),
            "latency_p50_ns": p50_ns,
            "latency_p99_ns": p99_ns,
        }


def stored_objects(scenario: Scenario) -> float:
    """Return the number of objects in the pool [count]."""
    stored_bytes = scenario.cluster.stored_bytes or scenario.images_bytes
    return stored_bytes / scenario.cluster.object_bytes


def simulate_sample(
    scenario: Scenario,
    cell: Cell,
    drives: Drives,
    *,
    group_objects_count: int,
    engine: str,
) -> Sample:
    """Simulate the changes of a scenario with a sample of each PG's objects.

    If the workload is bounded by time, clients are active from before the first change until after the last.
    Otherwise they issue their requests and stop.
    """
    inputs = build_cell(scenario, cell)
    assert inputs.faults is not None
    fill = fill_plan(scenario, inputs.pool, drives, group_objects_count)
    faults = replace(
        inputs.faults,
        fill=fill,
        change_pause_ns=QUIET_NS,
        group_objects_count=group_objects_count,
    )
    inputs = replace(inputs, faults=faults)
    has_load = inputs.until_ns is not None
    if has_load:
        result = _with_load(inputs, faults, scenario.seed, engine)
    else:
        result = simulate(**vars(inputs), seed=scenario.seed, engine=engine)
    assert result.timeline is not None
    return Sample(
        profile=scenario.cluster.mclock_profile or scenario.cluster.op_queue,
        group_objects_count=group_objects_count,
        rows=result.timeline["changes"],
        history=result.timeline["fill"],
        fill=fill,
        requested=result.requested,
        end_ns=result.engine_run.end_ns,
        has_load=has_load,
    )


def _with_load(
    inputs: CellInputs, faults: FaultPlan, seed: int, engine: str
) -> RunResult:
    """Simulate the changes with active clients until the changes are complete."""
    alone = _alone(inputs.pool, faults, seed, engine)
    assert alone.timeline is not None
    clean_s = [row["clean_s"] for row in alone.timeline["changes"]]
    alone_ns = alone.engine_run.end_ns
    if None not in clean_s:
        alone_ns = round(max(clean_s) * 1e9)
    for longer in _LONGER:
        until_ns = longer * alone_ns + QUIET_NS
        result = simulate(
            **{**vars(inputs), "until_ns": until_ns}, seed=seed, engine=engine
        )
        if result.row.faults is not None and result.row.faults.clean_at_end:
            break
    return result


def _alone(pool: Pool, faults: FaultPlan, seed: int, engine: str) -> RunResult:
    """Simulate the changes on an idle cluster. The run needs a client, so one read is issued."""
    once = Synthetic(
        pattern="rand",
        block_bytes=4096,
        image_bytes=pool.object_bytes,
        read_fraction=1.0,
        requests=1,
        queue_depth=1,
    )
    return simulate(pool, once.start(), faults=faults, seed=seed, engine=engine)


def fill_plan(
    scenario: Scenario, pool: Pool, drives: Drives, group_objects_count: int
) -> FillPlan | None:
    """Return the initial fill of the OSDs, or None if their capacity is unknown.

    Parameters
    ----------
    scenario
        The scenario.
    pool
        Its pool.
    drives
        Drives of the cluster.
    group_objects_count
        Simulated objects per PG. Each represents the same share of the pool.
    """
    if drives.capacity is None or drives.fill is None:
        return None
    simulated_count = group_objects_count * pool.cluster.groups
    scale = stored_objects(scenario) / simulated_count
    shard_bytes = round(scale * kind_of(pool).shard_bytes)
    capacity_bytes = _capacities(pool, drives)
    acting = pool.cluster.acting
    shards = np.bincount(acting[acting != NO_OSD], minlength=pool.cluster.osds)
    used_bytes = (shards * group_objects_count * shard_bytes).astype(np.float64)
    if scenario.cluster.used_bytes:
        known = scenario.cluster.used_bytes[: pool.cluster.osds]
        used_bytes[: len(known)] = known
    return FillPlan(
        capacity_bytes=capacity_bytes,
        used_bytes=used_bytes,
        shard_bytes=shard_bytes,
        nearfull_ratio=drives.fill.nearfull_ratio,
        backfillfull_ratio=scenario.cluster.backfillfull_ratio,
        full_ratio=drives.fill.full_ratio,
        clients_write=any(map(_writes, scenario.loads)),
    )


def _writes(load: WorkloadSpec) -> bool:
    """Return True if a workload may write."""
    if load.kind == "trace":
        return True
    if load.read_fraction is not None:
        return load.read_fraction < 1
    return "write" in load.ops


def _capacities(pool: Pool, drives: Drives) -> FloatArray:
    """Return the capacity of each OSD [B]. New hosts get the same drives as the last host."""
    hosts = pool.cluster.osd_hosts
    if drives.host_drive_bytes:
        hosts = np.minimum(hosts, len(drives.host_drive_bytes) - 1)
    return drives.sizes(hosts)

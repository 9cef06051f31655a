"""Simulate planned changes on a sample of the data."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from stripesim.scenarios.cells.build import CellInputs, build_cell
from stripesim.scenarios.forms.capacity import Drives, FloatArray
from stripesim.scenarios.schema.keys import Cell, WorkloadSpec
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.sim.ceph.clients.objects import S3Load
from stripesim.sim.ceph.clients.workload import (
    Synthetic,
    SyntheticLoops,
    SyntheticStream,
)
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures import FaultPlan
from stripesim.sim.ceph.failures.groups import State
from stripesim.sim.ceph.failures.plan import FillPlan
from stripesim.sim.ceph.failures.results.finished_run import BoolArray
from stripesim.sim.ceph.kinds import kind_of
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.observe.client_requests import ClientRequests
from stripesim.sim.run import Run, simulate

# Longest and shortest time to measure clients without recovery, before each change and after the last one
# [ns], and the requests that suffice [count]. Ten parts of 800 requests give the interval of the p99.
_QUIET_MAX_NS: Final = 2_000_000_000
_QUIET_MIN_NS: Final = 200_000_000
_QUIET_REQUESTS: Final = 8_000
# Longest time to simulate, in multiples of the changes' duration without clients.
_LONGEST: Final = 8
#: Maximum number of object shards that the changes of one simulation move [count].
SHARDS_MAX: Final = 4_000
#: Requests of clients that one simulation should not exceed [count].
REQUESTS_MAX: Final = 300_000
#: Uses of resources by those requests that one simulation should not exceed [count], about ten seconds of a
#: slow processor. A small write under a wide code has hundreds.
USES_MAX: Final = 25_000_000
# Minimum number of objects to simulate per PG.
_GROUP_OBJECTS_MIN: Final = 4
# Width of the bins of series over time [ns].
_SERIES_NS: Final = 50_000_000
# Length of the run that measures the rate of clients [ns].
_PILOT_NS: Final = 100_000_000


@dataclass(frozen=True)
class SampleSize:
    """The part of the pool to simulate, and how long its changes take without clients."""

    group_objects_count: int  #: Simulated objects per PG [count]
    alone_ns: int  #: End of the last change without clients, with the quiet times before it [ns]
    quiet_ns: int  #: Time to measure clients without recovery [ns]
    has_load: bool  #: True if clients work throughout


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A simulation of the changes with a sample of the pool's objects."""

    group_objects_count: int  #: Simulated objects per PG [count]
    objects_ratio: float  #: Objects of the pool per simulated one [1]
    #: Data moved by each change, in the format of `describe_changes`
    rows: Sequence[Mapping[str, Any]]
    #: Initial fill of the OSDs, or None if their capacity is unknown
    fill: FillPlan | None
    #: Used bytes over time, in the format of `describe_fill`
    history: Mapping[str, Any]
    pg_states: Mapping[str, Any]  #: PGs by state over time
    recovery: Mapping[str, Any]  #: Bytes moved by recovery over time
    requested: ClientRequests
    blocked: BoolArray  #: True for requests that waited for their PG, shape (requests,)
    end_ns: int
    alone_ns: int  #: End of the last change without clients, with the quiet times before it [ns]
    has_load: bool  #: True if clients issued requests throughout
    #: Requests that closed loops keep in flight [count]; None if requests arrive at given times
    in_flight_count: int | None
    has_failures: bool = False  #: True if OSDs fail during the run

    @property
    def by_log(self) -> bool:
        """True if PGs recover by their logs, and none is backfilled."""
        return not any(self.pg_states[State.BACKFILLING])

    @property
    def has_overlap(self) -> bool:
        """True if a change begins before the cluster is clean after the previous one."""
        return any(
            earlier["clean_s"] is not None and later["at_s"] < earlier["clean_s"]
            for earlier, later in pairwise(self.rows)
        )

    def equals(self, sample: "Sample") -> bool:
        """Return True if both simulations completed all requests and all changes at the same times."""
        same_requests = np.array_equal(
            self.requested.completed_ns, sample.requested.completed_ns
        )
        return same_requests and self.rows == sample.rows

    def end_s(self, index: int) -> float:
        """Return the time of the next change, or the end of the run [s]."""
        if index + 1 < len(self.rows):
            return float(self.rows[index + 1]["at_s"])
        return self.end_ns / 1e9

    def calm_s(self, time_s: float) -> float:
        """Return when the requests have completed that wait for PGs to peer at a time [s].

        Until then the cluster works off their backlog, which also delays other requests.
        """
        issued_s = self.requested.issued_ns / 1e9
        completed_s = self.requested.completed_ns / 1e9
        waits = self.blocked & (issued_s <= time_s) & (completed_s > time_s)
        waits &= self.requested.done
        return max(time_s, float(completed_s[waits].max(initial=time_s)))

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


def stored_objects(scenario: Scenario, pool: Pool) -> float:
    """Return the number of objects in the pool [count]. Those of buckets are heads and tails of mean size."""
    stored_bytes = scenario.cluster.stored_bytes or scenario.images_bytes
    return stored_bytes / pool.object_bytes


def sample_size(
    scenario: Scenario,
    cell: Cell,
    drives: Drives,
    *,
    shards_count: int,
    engine: str,
) -> SampleSize:
    """Choose the number of objects of each PG to simulate, so that the simulation stays small.

    Parameters
    ----------
    scenario, cell, drives
        The scenario, its client load and its drives.
    shards_count
        Shards that all changes move, counted once per PG [count].
    engine
        Name of the engine.
    """
    inputs = build_cell(scenario, cell)
    assert inputs.faults is not None
    per_group = stored_objects(scenario, inputs.pool) / scenario.cluster.pg_num
    most = max(_GROUP_OBJECTS_MIN, SHARDS_MAX // max(1, shards_count))
    count = max(1, min(most, round(per_group)))
    quiet_ns = _QUIET_MAX_NS
    clients = _NO_LOAD
    if inputs.until_ns is not None:
        clients = _pilot(inputs, scenario.seed, engine)
        enough_ns = round(_QUIET_REQUESTS / clients.rate_per_s * 1e9)
        quiet_ns = min(_QUIET_MAX_NS, max(_QUIET_MIN_NS, enough_ns))
    faults = _faults_of(scenario, inputs, drives, count, quiet_ns)
    alone = _alone(inputs, faults, scenario.seed, engine)
    assert alone.timeline is not None
    rows = alone.timeline["changes"]
    clean_s = [row["clean_s"] for row in rows]
    alone_ns = alone.engine_run.end_ns
    if None not in clean_s:
        alone_ns = round(max(clean_s) * 1e9)
    moving_ns = sum(_moving_ns(row) for row in rows)
    fixed_ns = max(0, alone_ns - moving_ns)
    room_ns = clients.affordable_s * 1e9 - fixed_ns
    if room_ns < moving_ns:
        fewer = max(_GROUP_OBJECTS_MIN, int(count * max(0.0, room_ns) / moving_ns))
        fewer = min(count, fewer)
        alone_ns = fixed_ns + moving_ns * fewer // count
        count = fewer
    has_load = inputs.until_ns is not None
    return SampleSize(count, alone_ns, quiet_ns, has_load)


def simulate_sample(
    scenario: Scenario,
    cell: Cell,
    drives: Drives,
    *,
    size: SampleSize,
    engine: str,
) -> Sample:
    """Simulate the changes of a scenario with a sample of each PG's objects.

    If the workload is bounded by time, clients are active from before the first change until some time after
    the last. Otherwise they issue their requests and stop.
    """
    count = size.group_objects_count
    inputs = build_cell(scenario, cell)
    faults = _faults_of(scenario, inputs, drives, count, size.quiet_ns)
    until_ns = round(_LONGEST * size.alone_ns) + size.quiet_ns
    inputs = replace(inputs, faults=faults, until_ns=until_ns)
    result = simulate(**vars(inputs), seed=scenario.seed, engine=engine).accepted()
    assert result.timeline is not None
    assert result.blocked is not None
    return Sample(
        group_objects_count=count,
        objects_ratio=stored_objects(scenario, inputs.pool)
        / (count * scenario.cluster.pg_num),
        rows=result.timeline["changes"],
        history=result.timeline["fill"],
        fill=faults.fill,
        pg_states=result.timeline["pg_states"],
        recovery=result.timeline["recovery"],
        requested=result.requested,
        blocked=result.blocked,
        end_ns=result.engine_run.end_ns,
        alone_ns=size.alone_ns,
        has_load=size.has_load,
        has_failures=any(
            failure.time_ns < result.engine_run.end_ns for failure in faults.failures
        ),
        in_flight_count=scenario.in_flight_count,
    )


def _faults_of(
    scenario: Scenario, inputs: CellInputs, drives: Drives, count: int, quiet_ns: int
) -> FaultPlan:
    """Return the plan of the changes for a sample of `count` objects of each PG."""
    assert inputs.faults is not None
    writes_count = inputs.faults.object_writes_count
    if writes_count is not None:
        # The log of a PG is as long as with all its objects.
        per_group = stored_objects(scenario, inputs.pool) / scenario.cluster.pg_num
        writes_count = math.ceil(writes_count * per_group / count)
    return replace(
        inputs.faults,
        object_writes_count=writes_count,
        fill=fill_plan(scenario, inputs.pool, drives, count),
        change_pause_ns=quiet_ns,
        end_pause_ns=quiet_ns,
        # Those of buckets are counted beforehand.
        group_objects=None,
        group_objects_count=count,
        series_ns=_SERIES_NS,
    )


class _Clients(NamedTuple):
    """The requests of clients on the cluster without changes."""

    rate_per_s: float
    uses_per_request: float

    @property
    def affordable_s(self) -> float:
        """Time whose requests one simulation should not exceed [s]."""
        if not self.rate_per_s:
            return math.inf
        affordable = min(REQUESTS_MAX, USES_MAX / self.uses_per_request)
        return affordable / self.rate_per_s


_NO_LOAD: Final = _Clients(rate_per_s=0.0, uses_per_request=1.0)


def _pilot(inputs: CellInputs, seed: int, engine: str) -> _Clients:
    """Simulate the clients for a short time on the cluster without changes."""
    quiet = replace(inputs, faults=None, until_ns=_PILOT_NS)
    pilot = simulate(**vars(quiet), seed=seed, engine=engine)
    done = float(pilot.requested.done.sum())
    return _Clients(
        rate_per_s=max(1.0, done / (_PILOT_NS / 1e9)),
        uses_per_request=max(1.0, pilot.uses / max(1.0, done)),
    )


def _moving_ns(row: Mapping[str, Any]) -> int:
    """Return the time from the first to the last object that a change moves [ns]."""
    backfills = row["backfills"]
    if not backfills["pg"]:
        return 0
    moving_s = float(max(backfills["end_s"]) - min(backfills["start_s"]))
    return round(moving_s * 1e9)


def _alone(inputs: CellInputs, faults: FaultPlan, seed: int, engine: str) -> Run:
    """Simulate the changes on an idle cluster. The run needs a client, so one request is issued.

    Without scrubs, the run ends even if the cluster does not become clean.
    """
    pool = inputs.pool
    once = Synthetic(
        pattern="rand",
        block_bytes=4096,
        image_bytes=pool.object_bytes,
        read_fraction=1.0,
        requests=1,
        queue_depth=1,
    )
    workload = inputs.workload
    if isinstance(workload, SyntheticLoops | SyntheticStream):
        load = workload.workload
        if isinstance(load, S3Load):
            once = replace(load, clients=1, requests=1, queue_depth=1, rate_per_s=None)
    faults = replace(faults, scrubs=False)
    result = simulate(pool, once.start(), faults=faults, seed=seed, engine=engine)
    return result.accepted()


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
    scale = stored_objects(scenario, pool) / simulated_count
    shard_bytes = round(scale * kind_of(pool).shard_bytes)
    capacity_bytes = drives.sizes(pool.cluster.osd_hosts)
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
    return bool({"write", "put", "delete"} & set(load.used_ops))

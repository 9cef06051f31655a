"""Reject scenarios that cannot finish or fit, before anything is allocated.

Checked are numbers of requests, OSDs, objects, events and failures. The estimates of computing time are
deliberately coarse: they catch typing mistakes and do not predict run times.
`stripesim.scenarios.schema.memory` estimates memory.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.models.problems import ParameterSetError
from stripesim.scenarios.schema.failure_checks import stands_alone
from stripesim.scenarios.schema.geometry import (
    NumberedScheme,
    added_osds,
    loads_with_keys,
    max_width,
    simulated_objects,
)
from stripesim.scenarios.schema.keys import ScenarioKeys, WorkloadSpec, names_file
from stripesim.scenarios.schema.memory import BINS_MAX, known_requests, memory_problem
from stripesim.scenarios.schema.problems import KeyProblem, problem
from stripesim.scenarios.schema.tables import EventSpec, FaultsSpec
from stripesim.scenarios.schema.units import duration_text, format_size

#: Requests of one cell, which take some hours.
REQUESTS_MAX: Final = 2 * 10**9
#: OSDs of a cluster: ten times the largest cluster that Ceph was tested on.
OSDS_MAX: Final = 100_000
#: Shards of all placement groups.
PG_SHARDS_MAX: Final = 50_000_000
#: The same for a scenario of durability alone, which simulates failures and no requests.
DURABLE_OSDS_MAX: Final = 1_000_000
DURABLE_PG_SHARDS_MAX: Final = 100_000_000
OBJECT_BYTES_MAX: Final = 1024**3
#: Failing OSDs, summed over all failures.
FAILING_OSDS_MAX: Final = 1_000_000
#: Simulated time of a run that ends by itself [s]. Clocks count nanoseconds in 63 bits.
RUN_S_MAX: Final = 1e9
#: Computing time of work other than requests [s], equal to that of `REQUESTS_MAX` requests.
COMPUTING_S_MAX: Final = 20_000.0

# Requests that the compiled engine simulates per second.
_REQUESTS_PER_S: Final = 100_000
# Scrubs of a placement group per interval (one of them deep), computing time of one, and extra time for
# each group of the pool when all are due.
_SCRUBS_PER_INTERVAL: Final = 7
_SCRUB_S: Final = 5e-4
_SCRUB_PER_GROUP_S: Final = 3e-6
_SCRUBBED_OBJECT_S: Final = 1e-3
# Shorter than the wait for any request [s].
_LATENCY_MIN_S: Final = 1e-4


def requests_of(scenario: ScenarioKeys, load: WorkloadSpec) -> float:
    """Return an upper bound of the requests of one cell, or 0 for a trace, whose file decides."""
    if load.requests is not None:
        return float(load.requests)
    if load.duration_s is None or load.kind == "trace":
        return 0.0
    if load.is_open:
        return (load.rate_per_s or 0.0) * load.duration_s
    return closed_rate_per_s(scenario, load) * load.duration_s


def closed_rate_per_s(scenario: ScenarioKeys, load: WorkloadSpec) -> float:
    """Bound the rate of a closed loop by the queue depth, networks and threads of its clients [1/s]."""
    clients = load.clients
    rate_per_s = load.queue_depth * clients / _LATENCY_MIN_S
    if scenario.schemes == ("none",) or scenario.client.unlimited:
        return rate_per_s
    wire_bytes_per_s = scenario.cluster.public_gbit_per_s * 1e9 / 8 * clients
    rate_per_s = min(rate_per_s, wire_bytes_per_s / min(load.block_sizes_bytes))
    submit_ns, threads = _submission(scenario)
    if submit_ns > 0:
        rate_per_s = min(
            rate_per_s, clients * (scenario.client.threads or threads) * 1e9 / submit_ns
        )
    return rate_per_s


def _submission(scenario: ScenarioKeys) -> tuple[float, float]:
    """Return the time that a request holds a thread of its client [ns], and the threads of a client."""
    name = scenario.cluster.parameters
    path = scenario.resolve(name) if names_file("parameters", name) else None
    return _submission_of(name, path)


@lru_cache(maxsize=16)
def _submission_of(name: str, path: Path | None) -> tuple[float, float]:
    try:
        client = ParameterSet(name, path).table("client") or {}
    except ParameterSetError:
        # Building the models rejects the name.
        return 0.0, 1.0
    values = {key: number.get("value", 0.0) for key, number in client.items()}
    return values.get("submit_ns", 0.0), values.get("submit_threads_count", 1.0)


def budget_rules(
    scenario: ScenarioKeys, schemes: Sequence[NumberedScheme]
) -> Iterator[KeyProblem]:
    """Report sizes that are out of bounds, with what they would take."""
    problems = [
        *_cluster(scenario, schemes),
        *_requests(scenario),
        *_faults(scenario),
        *_recovery_pause(scenario, schemes),
    ]
    yield from problems
    if problems:
        # If one number is out of bounds, their sum adds nothing new.
        return
    memory = memory_problem(scenario, schemes, known_requests(scenario))
    if memory is not None:
        yield memory


def _cluster(
    scenario: ScenarioKeys, schemes: Sequence[NumberedScheme]
) -> Iterator[KeyProblem]:
    cluster = scenario.cluster
    osds = cluster.osd_count
    each = cluster.osds_per_host
    size = cluster.object_bytes
    width = max_width(schemes)
    osds_max = OSDS_MAX
    shards_max = PG_SHARDS_MAX
    if stands_alone(scenario):
        osds_max = DURABLE_OSDS_MAX
        shards_max = DURABLE_PG_SHARDS_MAX
    if cluster.crush_map is None and osds > osds_max:
        keys = ("cluster.hosts", "cluster.osds_per_host")
        key, other_key = keys if cluster.host_count >= each else reversed(keys)
        got = f"{osds:,} OSDs"
        if isinstance(cluster.hosts, int):
            got = f"{cluster.hosts} hosts × {each} OSDs = {got}"
        yield problem(key, got, f"at most {osds_max:,} OSDs", other_key)
    for index, added in added_osds(scenario).items():
        before = osds
        osds += added
        if osds > osds_max:
            hosts = scenario.changes[index].hosts
            got = f"{hosts} hosts with {added:,} OSDs beside {before:,}"
            wanted = f"at most {osds_max:,} OSDs in all"
            yield problem(f"changes.{index}.hosts", got, wanted, "cluster.hosts")
            break
    if cluster.pg_num * width > shards_max:
        got = f"{cluster.pg_num:,} placement groups of {width} shards"
        wanted = f"at most {shards_max // width:,} placement groups"
        yield problem("cluster.pg_num", got, wanted, "schemes")
    if size > OBJECT_BYTES_MAX:
        yield problem(
            "cluster.object_bytes",
            format_size(size),
            f"at most {format_size(OBJECT_BYTES_MAX)}",
        )


def _requests(scenario: ScenarioKeys) -> Iterator[KeyProblem]:
    for load_key, load in loads_with_keys(scenario):
        expected = requests_of(scenario, load)
        if expected > REQUESTS_MAX:
            yield _too_many_requests(load_key, load, expected)
            continue
        rate_per_s = load.rate_per_s
        if (
            load.is_open
            and rate_per_s is not None
            and expected / rate_per_s > RUN_S_MAX
        ):
            got = f"{rate_per_s:g} (a run of {expected / rate_per_s:.3g} s)"
            wanted = f"at least {expected / RUN_S_MAX:.3g}, for a run of at most {RUN_S_MAX:g} s"
            yield problem(f"{load_key}.rate_per_s", got, wanted, f"{load_key}.requests")


def _too_many_requests(
    load_key: str, load: WorkloadSpec, expected: float
) -> KeyProblem:
    if load.requests is not None:
        key = "requests"
        bound = f"{load.requests:,}"
    else:
        key = "duration_s"
        bound = f"{load.duration_s:g} s"
        if load.is_open:
            bound += f" at {load.rate_per_s:g} requests/s"
    time = duration_text(expected / _REQUESTS_PER_S)
    got = f"{bound} (up to {expected:.3g} requests per cell: {time} of computing)"
    wanted = f"at most {REQUESTS_MAX:,} requests per cell"
    involved = (
        f"{load_key}.{name}"
        for name in ("rate_per_s", "queue_depth", "block_sizes_bytes")
    )
    return problem(f"{load_key}.{key}", got, wanted, *involved)


def _faults(scenario: ScenarioKeys) -> Iterator[KeyProblem]:
    """Reject too many failures, too long series and too many scrubs."""
    faults = scenario.faults
    if faults is None:
        return
    failing = _failing_osds(scenario, faults.events)
    if failing > FAILING_OSDS_MAX:
        got = f"{failing:,} failing OSDs in {len(faults.events):,} failures"
        yield problem("faults.events", got, f"at most {FAILING_OSDS_MAX:,}")
    if scenario.duration_s is not None:
        yield from _series(faults, scenario.duration_s)
        yield from _scrubs(scenario, faults, scenario.duration_s)


def _failing_osds(scenario: ScenarioKeys, events: Sequence[EventSpec]) -> int:
    """Return an upper bound of the number of failing OSDs, summed over all events."""
    cluster = scenario.cluster
    osds = cluster.osd_count
    per_host = max(group.osds or 0 for group in cluster.host_groups)
    racks = len(set(cluster.rack_names or ())) or cluster.racks or 1
    per_rack = -(-osds // racks)
    per_site = -(-osds // cluster.site_count)
    failing = 0
    for event in events:
        failing += len(event.osds) + len(event.hosts) * per_host
        failing += len(event.racks) * per_rack + len(event.sites) * per_site
    return failing


def _series(faults: FaultsSpec, duration_s: float) -> Iterator[KeyProblem]:
    bins = duration_s / faults.series_s
    if bins > BINS_MAX:
        wanted = (
            f"at least {duration_s / BINS_MAX:.3g} s, for at most {BINS_MAX:,} bins"
        )
        got = f"{faults.series_s:g} s ({bins:.3g} bins)"
        yield problem("faults.series_s", got, wanted, "workload.duration_s")


def _scrubs(
    scenario: ScenarioKeys, faults: FaultsSpec, duration_s: float
) -> Iterator[KeyProblem]:
    """Reject scrubs that would take hours to compute."""
    interval_s = faults.scrub_interval_s
    if interval_s is None:
        return
    groups = scenario.cluster.pg_num
    objects = simulated_objects(scenario)
    scrub_s = _SCRUB_S + groups * _SCRUB_PER_GROUP_S
    round_s = groups * _SCRUBS_PER_INTERVAL * scrub_s + objects * _SCRUBBED_OBJECT_S
    rounds = duration_s / interval_s
    if rounds * round_s > COMPUTING_S_MAX:
        scrubs = rounds * groups * _SCRUBS_PER_INTERVAL
        got = f"{interval_s:g} s ({scrubs:.3g} scrubs: {duration_text(rounds * round_s)} of computing)"
        wanted = f"at least {duration_s * round_s / COMPUTING_S_MAX:.3g} s"
        yield problem(
            "faults.scrub_interval_s",
            got,
            wanted,
            "workload.duration_s",
            "cluster.pg_num",
        )


def _recovery_pause(
    scenario: ScenarioKeys, schemes: Sequence[NumberedScheme]
) -> Iterator[KeyProblem]:
    """Reject recovery pauses, one per object on each OSD, whose sum overflows the clock."""
    table = "repair" if scenario.repair is not None else "faults"
    limits = scenario.repair or scenario.faults
    if (
        limits is None
        or limits.recovery_sleep_s is None
        or scenario.duration_s is not None
    ):
        return
    osds = scenario.cluster.osd_count
    objects = simulated_objects(scenario)
    shards_per_osd = objects * max_width(schemes) / osds
    # All OSDs recover the shards of the lost ones.
    pauses = max(1.0, _lost_osds(scenario) * shards_per_osd / osds)
    length_s = pauses * limits.recovery_sleep_s
    if length_s > RUN_S_MAX:
        got = f"{limits.recovery_sleep_s:g} s (a recovery of {length_s:.3g} s)"
        wanted = f"at most {RUN_S_MAX / pauses:.3g} s, or workload.duration_s"
        yield problem(f"{table}.recovery_sleep_s", got, wanted, "workload.requests")


def _lost_osds(scenario: ScenarioKeys) -> int:
    """Return an upper bound of the number of OSDs whose shards are rebuilt."""
    if scenario.repair is not None:
        return len(scenario.repair.lost_osds)
    assert scenario.faults is not None
    failing = _failing_osds(scenario, scenario.faults.events)
    return min(scenario.cluster.osd_count, max(1, failing))

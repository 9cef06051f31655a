"""What a scenario would take, computed before anything is allocated: requests, OSDs, objects, memory.

Limits are those beyond which a run cannot end or fit. The estimates are coarse on purpose: they are to stop a
slip of the keyboard, not to predict a run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Final

from stripesim.scenarios.schema.geometry import NumberedScheme
from stripesim.scenarios.schema.keys import Scenario, WorkloadSpec
from stripesim.scenarios.schema.problems import Problem
from stripesim.scenarios.schema.toml_lines import KeyPath
from stripesim.scenarios.schema.units import format_size

#: Requests of one cell: some hours of computing.
REQUESTS_MAX: Final = 2 * 10**9
#: OSDs of a cluster: ten times the largest that Ceph was tried with.
OSDS_MAX: Final = 100_000
#: Shards of all placement groups.
PG_SHARDS_MAX: Final = 50_000_000
OBJECT_BYTES_MAX: Final = 1024**3
#: Bins of a series, scrubs of a placement group.
EVENTS_MAX: Final = 10**9
BINS_MAX: Final = 10**7

# Requests that the compiled engine simulates in a second of computing, and what each leaves in memory.
_REQUESTS_PER_S: Final = 100_000
_BYTES_PER_REQUEST: Final = 170
_BYTES_PER_PG_SHARD: Final = 250
_BYTES_PER_OSD: Final = 3000
_BYTES_PER_OBJECT: Final = 32
_BYTES_IN_FLIGHT: Final = 1000
# Less than any client waits for any request [s].
_LATENCY_MIN_S: Final = 1e-4


def requests_of(scenario: Scenario, load: WorkloadSpec) -> float:
    """Estimate the requests of one cell from above; 0 for a trace, whose file decides."""
    if load.requests is not None:
        return float(load.requests)
    if load.duration_s is None:
        return 0.0
    if load.kind == "open":
        return (load.rate_per_s or 0.0) * load.duration_s
    if load.kind == "trace":
        return 0.0
    clients = load.clients
    wire_bytes_per_s = scenario.cluster.public_gbit_per_s * 1e9 / 8 * clients
    rate_per_s = load.queue_depth * clients / _LATENCY_MIN_S
    if scenario.schemes != ("none",):
        rate_per_s = min(rate_per_s, wire_bytes_per_s / min(load.block_sizes_bytes))
    return rate_per_s * load.duration_s


def loads_with_keys(scenario: Scenario) -> list[tuple[KeyPath, WorkloadSpec]]:
    """List the workloads with the keys that they stand under."""
    if scenario.workloads:
        return [(("workloads", index), load) for index, load in enumerate(scenario.loads)]
    return [(("workload",), scenario.workload)]


def _time_text(seconds: float) -> str:
    for size, unit in ((365.25 * 86400, "years"), (86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.3g} {unit}"
    return f"{seconds:.3g} s"


def _memory_text(size_bytes: float) -> str:
    for size, unit in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB")):
        if size_bytes >= size:
            return f"{size_bytes / size:,.3g} {unit}"
    return f"{size_bytes / 1e6:,.3g} MB"


def memory_bytes() -> int:
    """Memory of this machine [bytes]."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 16 * 10**9


def budget_rules(scenario: Scenario, schemes: Sequence[NumberedScheme]) -> Iterator[Problem]:
    """Name what cannot end or fit, with what it would take."""
    problems = [*_cluster(scenario, schemes), *_requests(scenario), *_series(scenario)]
    yield from problems
    # Where one number is out of all bounds, the sum would only say so again.
    if not problems:
        yield from _memory(scenario, schemes)


def _width(schemes: Sequence[NumberedScheme]) -> int:
    return max((item.scheme.width for item in schemes), default=1)


def _cluster(scenario: Scenario, schemes: Sequence[NumberedScheme]) -> Iterator[Problem]:
    cluster = scenario.cluster
    hosts, each = ("cluster", "hosts"), ("cluster", "osds_per_host")
    osds = cluster.osd_count
    if cluster.crush_map is None and osds > OSDS_MAX:
        key, other = (hosts, each) if cluster.host_count >= cluster.osds_per_host else (each, hosts)
        yield Problem(
            key,
            f"{cluster.host_count} hosts × {cluster.osds_per_host} OSDs = {osds:,} OSDs"
            if isinstance(cluster.hosts, int)
            else f"{osds:,} OSDs",
            f"at most {OSDS_MAX:,} OSDs",
            (other,),
        )
    shards = cluster.pg_num * _width(schemes)
    if shards > PG_SHARDS_MAX:
        yield Problem(
            ("cluster", "pg_num"),
            f"{cluster.pg_num:,} placement groups of {_width(schemes)} shards",
            f"at most {PG_SHARDS_MAX // _width(schemes):,} placement groups",
            (("schemes",),),
        )
    if cluster.object_bytes > OBJECT_BYTES_MAX:
        yield Problem(
            ("cluster", "object_bytes"),
            format_size(cluster.object_bytes),
            f"at most {format_size(OBJECT_BYTES_MAX)}",
        )


def _requests(scenario: Scenario) -> Iterator[Problem]:
    for place, load in loads_with_keys(scenario):
        expected = requests_of(scenario, load)
        if expected <= REQUESTS_MAX:
            continue
        key = "requests" if load.requests is not None else "duration_s"
        given = f"{load.requests:,}" if load.requests is not None else f"{load.duration_s:g} s"
        if load.kind == "open" and load.requests is None:
            given += f" at {load.rate_per_s:g} requests/s"
        takes = (
            f"up to {expected:.3g} requests a cell: {_time_text(expected / _REQUESTS_PER_S)} of computing, "
            f"{_memory_text(expected * _BYTES_PER_REQUEST)} of memory"
        )
        yield Problem(
            (*place, key),
            f"{given} ({takes})",
            f"at most {REQUESTS_MAX:,} requests a cell",
            tuple((*place, name) for name in ("rate_per_s", "queue_depth", "block_sizes_bytes")),
        )


def _series(scenario: Scenario) -> Iterator[Problem]:
    faults, duration_s = scenario.faults, scenario.duration_s
    if faults is None or duration_s is None:
        return
    involves: tuple[KeyPath, ...] = (("workload", "duration_s"),)
    if duration_s / faults.series_s > BINS_MAX:
        yield Problem(
            ("faults", "series_s"),
            f"{faults.series_s:g} s ({duration_s / faults.series_s:.3g} bins)",
            f"at least {duration_s / BINS_MAX:.3g} s, that is at most {BINS_MAX:,} bins",
            involves,
        )
    interval_s = faults.scrub_interval_s
    if interval_s is not None and duration_s / interval_s * scenario.cluster.pg_num > EVENTS_MAX:
        scrubs = duration_s / interval_s * scenario.cluster.pg_num
        yield Problem(
            ("faults", "scrub_interval_s"),
            f"{interval_s:g} s ({scrubs:.3g} scrubs)",
            f"at most {EVENTS_MAX:,} scrubs in the run",
            involves,
        )


def _memory(scenario: Scenario, schemes: Sequence[NumberedScheme]) -> Iterator[Problem]:
    cluster = scenario.cluster
    osds = cluster.osd_count
    parts: dict[KeyPath, float] = {
        ("cluster", "pg_num"): cluster.pg_num * _width(schemes) * _BYTES_PER_PG_SHARD,
        ("cluster", "hosts"): osds * _BYTES_PER_OSD + (osds**2 if scenario.faults is not None else 0),
    }
    for place, load in loads_with_keys(scenario):
        clients = load.clients
        # How long a closed loop runs is not known; what an image or a queue needs is.
        known = requests_of(scenario, load) if load.requests is not None or load.kind == "open" else 0.0
        parts[(*place, "requests")] = known * _BYTES_PER_REQUEST
        parts[(*place, "image_bytes")] = load.image_bytes / cluster.object_bytes * clients * _BYTES_PER_OBJECT
        parts[(*place, "queue_depth")] = load.queue_depth * clients * _BYTES_IN_FLIGHT
    whole, limit = sum(parts.values()), memory_bytes()
    if whole > limit:
        key = max(parts, key=lambda path: parts[path])
        yield Problem(
            key,
            f"a run of about {_memory_text(whole)} of memory, {_memory_text(parts[key])} of it for this key",
            f"at most the {_memory_text(limit)} of this machine",
            tuple(parts),
        )

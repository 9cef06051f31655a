"""What a scenario would take, computed before anything is allocated: requests, OSDs, objects, memory.

Limits are those beyond which a run cannot end or fit. The estimates are coarse on purpose: they are to stop a
slip of the keyboard, not to predict a run.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Final

from stripesim.scenarios.schema.geometry import NumberedScheme, loads_with_keys
from stripesim.scenarios.schema.keys import Scenario, WorkloadSpec
from stripesim.scenarios.schema.problems import Problem, problem
from stripesim.scenarios.schema.units import bytes_text, duration_text, format_size

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
    cluster, width = scenario.cluster, _width(schemes)
    osds, each, size = cluster.osd_count, cluster.osds_per_host, cluster.object_bytes
    if cluster.crush_map is None and osds > OSDS_MAX:
        keys = ("cluster.hosts", "cluster.osds_per_host")
        key, other = keys if cluster.host_count >= each else reversed(keys)
        got = f"{cluster.hosts} hosts × {each} OSDs = " if isinstance(cluster.hosts, int) else ""
        yield problem(key, f"{got}{osds:,} OSDs", f"at most {OSDS_MAX:,} OSDs", other)
    if cluster.pg_num * width > PG_SHARDS_MAX:
        got, wanted = f"{cluster.pg_num:,} placement groups", f"{PG_SHARDS_MAX // width:,} placement groups"
        yield problem("cluster.pg_num", f"{got} of {width} shards", f"at most {wanted}", "schemes")
    if size > OBJECT_BYTES_MAX:
        yield problem("cluster.object_bytes", format_size(size), f"at most {format_size(OBJECT_BYTES_MAX)}")


def _requests(scenario: Scenario) -> Iterator[Problem]:
    for place, load in loads_with_keys(scenario):
        expected = requests_of(scenario, load)
        if expected <= REQUESTS_MAX:
            continue
        key = "requests" if load.requests is not None else "duration_s"
        given = f"{load.requests:,}" if load.requests is not None else f"{load.duration_s:g} s"
        if load.kind == "open" and load.requests is None:
            given += f" at {load.rate_per_s:g} requests/s"
        time, memory = duration_text(expected / _REQUESTS_PER_S), bytes_text(expected * _BYTES_PER_REQUEST)
        takes = f"up to {expected:.3g} requests a cell: {time} of computing, {memory} of memory"
        wanted = f"at most {REQUESTS_MAX:,} requests a cell"
        others = (f"{place}.{name}" for name in ("rate_per_s", "queue_depth", "block_sizes_bytes"))
        yield problem(f"{place}.{key}", f"{given} ({takes})", wanted, *others)


def _series(scenario: Scenario) -> Iterator[Problem]:
    faults, duration_s = scenario.faults, scenario.duration_s
    if faults is None or duration_s is None:
        return
    bins = duration_s / faults.series_s
    if bins > BINS_MAX:
        wanted = f"at least {duration_s / BINS_MAX:.3g} s, that is at most {BINS_MAX:,} bins"
        got = f"{faults.series_s:g} s ({bins:.3g} bins)"
        yield problem("faults.series_s", got, wanted, "workload.duration_s")
    interval_s = faults.scrub_interval_s
    scrubs = 0.0 if interval_s is None else duration_s / interval_s * scenario.cluster.pg_num
    if scrubs > EVENTS_MAX:
        got, wanted = f"{interval_s:g} s ({scrubs:.3g} scrubs)", f"at most {EVENTS_MAX:,} scrubs in the run"
        yield problem("faults.scrub_interval_s", got, wanted, "workload.duration_s")


def _memory(scenario: Scenario, schemes: Sequence[NumberedScheme]) -> Iterator[Problem]:
    cluster = scenario.cluster
    osds = cluster.osd_count
    parts: dict[str, float] = {
        "cluster.pg_num": cluster.pg_num * _width(schemes) * _BYTES_PER_PG_SHARD,
        "cluster.hosts": osds * _BYTES_PER_OSD + (osds**2 if scenario.faults is not None else 0),
    }
    for place, load in loads_with_keys(scenario):
        # How long a closed loop runs is not known; what an image or a queue needs is.
        known = requests_of(scenario, load) if load.requests is not None or load.kind == "open" else 0.0
        objects = load.image_bytes / cluster.object_bytes
        parts[f"{place}.requests"] = known * _BYTES_PER_REQUEST
        parts[f"{place}.image_bytes"] = objects * load.clients * _BYTES_PER_OBJECT
        parts[f"{place}.queue_depth"] = load.queue_depth * load.clients * _BYTES_IN_FLIGHT
    whole, limit = sum(parts.values()), memory_bytes()
    if whole > limit:
        key = max(parts, key=parts.__getitem__)
        some, most = bytes_text(parts[key]), bytes_text(limit)
        got = f"a run of about {bytes_text(whole)} of memory, {some} of it for this key"
        yield problem(key, got, f"at most the {most} of this machine", *parts)

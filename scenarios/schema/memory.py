"""Estimate the memory of a run before anything is allocated, and reject runs that would not fit.

The constants were measured with the compiled engine, as the growth of a process's peak resident set
compared with a small run, in runs dominated by one quantity. Estimates are within a factor of two of each
of these runs (``tests/theory/test_memory.py`` repeats some). Stripes of Clay codes, which are rounded up
to sub-chunks, are overestimated by more.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from stripesim.models.coding.geometry import padded_unit_bytes
from stripesim.models.memory_limit import MemoryLimit, memory_limit
from stripesim.scenarios.schema.failure_checks import stands_alone
from stripesim.scenarios.schema.geometry import (
    OTHER_OBJECTS_MAX,
    NumberedScheme,
    added_osds,
    loads_with_keys,
    max_width,
    stored_objects_beyond,
)
from stripesim.scenarios.schema.keys import ScenarioKeys, WorkloadSpec
from stripesim.scenarios.schema.problems import KeyProblem, problem
from stripesim.scenarios.schema.units import bytes_text, format_size, number_text

#: Bins of each time series of a run with faults.
BINS_MAX: Final = 10**6

_REQUEST_BYTES: Final = 215
_REQUEST_UNDER_FAULTS_BYTES: Final = 400
_IN_FLIGHT_BYTES: Final = 800
_CLIENT_BYTES: Final = 8000
#: One object of a request that spans several objects: during the run, and during planning.
_PIECE_BYTES: Final = 125
_PLANNED_PIECE_BYTES: Final = 420
#: Requests that are planned in one batch.
_PLANNED_REQUESTS: Final = 4096
#: One stripe of a write in flight.
_STRIPE_BYTES: Final = 115
_HOST_BYTES: Final = 2600
_OSD_BYTES: Final = 1200
_GATEWAY_BYTES: Final = 6000
_OSD_UNDER_FAULTS_BYTES: Final = 6600
_OP_SHARD_BYTES: Final = 125
_OP_SHARD_UNDER_FAULTS_BYTES: Final = 260
#: Default of `osd_op_num_shards` for SSDs.
_OP_SHARDS: Final = 8
_PG_BYTES: Final = 600
_PG_SHARD_BYTES: Final = 65
#: A placement group that some request needs, beyond the above.
_PG_BOUND_BYTES: Final = 100
_PG_BOUND_SHARD_BYTES: Final = 130
_PG_UNDER_FAULTS_BYTES: Final = 5300
_PG_SHARD_UNDER_FAULTS_BYTES: Final = 1500
#: Scenarios of durability alone, whose clusters serve no requests.
_DURABLE_OSD_BYTES: Final = 1000
_DURABLE_PG_SHARD_BYTES: Final = 60
#: One object of an image whose shards may need recovery.
_OBJECT_UNDER_FAULTS_BYTES: Final = 550
_BIN_BYTES: Final = 360


class MemoryPart(NamedTuple):
    """Memory that grows with the value of one key.

    Attributes
    ----------
    key
        The dotted key.
    needed_bytes
        Memory that the run needs for it [bytes].
    value
        Value of the key, in its unit.
    text
        Function that formats a value of the key.
    shrinks
        True if the memory falls as the value rises.
    """

    key: str
    needed_bytes: float
    value: float
    text: Callable[[int], str]
    shrinks: bool = False


def count_text(value: int) -> str:
    """Write a count with thousands separators.

    >>> count_text(1234567)
    '1,234,567'
    """
    return f"{value:,}"


def seconds_text(value: float) -> str:
    """Write a time in seconds."""
    return f"{number_text(value)} s"


def known_requests(scenario: ScenarioKeys) -> dict[str, float]:
    """Return the requests of each workload that are known before a run.

    Closed loops with a duration count as none, because only the run shows how many they issue.
    """
    return {
        load_key: _known_requests(load) for load_key, load in loads_with_keys(scenario)
    }


def _known_requests(load: WorkloadSpec) -> float:
    if load.requests is not None:
        return float(load.requests)
    if not load.is_open or load.duration_s is None:
        return 0.0
    return (load.rate_per_s or 0.0) * load.duration_s


def memory_problem(
    scenario: ScenarioKeys,
    schemes: Sequence[NumberedScheme],
    requests: Mapping[str, float],
) -> KeyProblem | None:
    """Return the problem of a run that exceeds the available memory, or None if it fits.

    Parameters
    ----------
    scenario
        The scenario.
    schemes
        Its schemes. The one that needs most decides.
    requests
        Requests of a cell by the key of each workload [count].
    """
    parts = list(memory_parts(scenario, schemes, requests))
    limit = memory_limit()
    needed_bytes = sum(part.needed_bytes for part in parts)
    if needed_bytes <= limit.left_bytes:
        return None
    largest = max(parts, key=lambda part: part.needed_bytes)
    others_bytes = needed_bytes - largest.needed_bytes
    share = f"{bytes_text(needed_bytes)} of memory, {bytes_text(largest.needed_bytes)} for this key"
    got = f"{largest.text(math.floor(largest.value))} (a run of about {share})"
    wanted = _wanted(largest, limit, limit.left_bytes - others_bytes)
    return problem(largest.key, got, wanted, *(part.key for part in parts))


def _wanted(part: MemoryPart, limit: MemoryLimit, free_bytes: float) -> str:
    left = f"the {bytes_text(limit.left_bytes)} that the {limit.source} leaves"
    if free_bytes <= 0:
        return f"a run that fits in {left}"
    factor = free_bytes / part.needed_bytes
    if part.shrinks:
        return f"at least {part.text(math.ceil(part.value / factor))}, for {left}"
    lower = math.floor(part.value * factor)
    if lower < 1:
        return f"a run that fits in {left}"
    return f"at most {part.text(_two_digits(lower))}, for {left}"


def _two_digits(value: int) -> int:
    """Round down to two significant digits."""
    step = int("1" + "0" * max(0, len(str(value)) - 2))
    return value // step * step


def memory_parts(
    scenario: ScenarioKeys,
    schemes: Sequence[NumberedScheme],
    requests: Mapping[str, float],
) -> Iterator[MemoryPart]:
    """Estimate the memory of a cell by key. The arguments are those of `memory_problem`."""
    if stands_alone(scenario):
        yield from _durability_parts(scenario, schemes)
        return
    yield from _cluster_parts(scenario, schemes, sum(requests.values()))
    for load_key, load in loads_with_keys(scenario):
        yield from _load_parts(
            scenario, schemes, load_key, load, requests.get(load_key, 0.0)
        )
    stored_bytes = scenario.cluster.stored_bytes
    if stored_bytes is not None and _recovers(scenario):
        objects = stored_objects_beyond(scenario, scenario.images_bytes)
        objects_bytes = min(objects, OTHER_OBJECTS_MAX) * _OBJECT_UNDER_FAULTS_BYTES
        yield MemoryPart(
            "cluster.stored_bytes", objects_bytes, stored_bytes, format_size
        )
    if scenario.faults is not None and scenario.duration_s is not None:
        bins = min(BINS_MAX, scenario.duration_s / scenario.faults.series_s)
        yield MemoryPart(
            "faults.series_s",
            bins * _BIN_BYTES,
            scenario.faults.series_s,
            seconds_text,
            True,
        )


def _recovers(scenario: ScenarioKeys) -> bool:
    disturbs = scenario.faults is not None or scenario.repair is not None
    return disturbs or bool(scenario.changes)


def _durability_parts(
    scenario: ScenarioKeys, schemes: Sequence[NumberedScheme]
) -> Iterator[MemoryPart]:
    cluster = scenario.cluster
    hosts = cluster.host_count
    osds_bytes = cluster.osd_count * _DURABLE_OSD_BYTES
    shards = cluster.pg_num * max_width(schemes)
    shards_bytes = shards * _DURABLE_PG_SHARD_BYTES
    yield MemoryPart("cluster.hosts", osds_bytes, hosts, count_text)
    yield MemoryPart("cluster.pg_num", shards_bytes, cluster.pg_num, count_text)


def _cluster_parts(
    scenario: ScenarioKeys, schemes: Sequence[NumberedScheme], requests: float
) -> Iterator[MemoryPart]:
    cluster = scenario.cluster
    recovers = _recovers(scenario)
    op_shard_bytes = _OP_SHARD_UNDER_FAULTS_BYTES if recovers else _OP_SHARD_BYTES
    osd_bytes = _OSD_UNDER_FAULTS_BYTES if recovers else _OSD_BYTES
    pg_bytes = _PG_UNDER_FAULTS_BYTES if recovers else _PG_BYTES
    shard_bytes = _PG_SHARD_UNDER_FAULTS_BYTES if recovers else _PG_SHARD_BYTES
    width = max_width(schemes)
    hosts = cluster.host_count
    osds = cluster.osd_count + sum(added_osds(scenario).values())
    op_shards = cluster.op_shards or _OP_SHARDS
    yield MemoryPart(
        "cluster.hosts", hosts * _HOST_BYTES + osds * osd_bytes, hosts, count_text
    )
    if scenario.workload.is_s3:
        gateways = cluster.gateway_count
        yield MemoryPart(
            "cluster.gateways.count", gateways * _GATEWAY_BYTES, gateways, count_text
        )
    yield MemoryPart(
        "cluster.op_shards", osds * op_shards * op_shard_bytes, op_shards, count_text
    )
    groups_bytes: float = cluster.pg_num * (pg_bytes + width * shard_bytes)
    if not recovers:
        # Without a known number of requests, they need all groups.
        bound = min(cluster.pg_num, requests or cluster.pg_num)
        groups_bytes += bound * (_PG_BOUND_BYTES + width * _PG_BOUND_SHARD_BYTES)
    yield MemoryPart("cluster.pg_num", groups_bytes, cluster.pg_num, count_text)


def _load_parts(
    scenario: ScenarioKeys,
    schemes: Sequence[NumberedScheme],
    load_key: str,
    load: WorkloadSpec,
    requests: float,
) -> Iterator[MemoryPart]:
    recovers = _recovers(scenario)
    request_bytes = _REQUEST_UNDER_FAULTS_BYTES if recovers else _REQUEST_BYTES
    if load.requests is None and load.duration_s is not None:
        yield MemoryPart(
            f"{load_key}.duration_s",
            requests * request_bytes,
            load.duration_s,
            seconds_text,
        )
    else:
        yield MemoryPart(
            f"{load_key}.requests", requests * request_bytes, requests, count_text
        )
    yield MemoryPart(
        f"{load_key}.clients", load.clients * _CLIENT_BYTES, load.clients, count_text
    )
    if load.is_closed:
        in_flight = float(load.queue_depth * load.clients)
        yield MemoryPart(
            f"{load_key}.queue_depth",
            in_flight * _IN_FLIGHT_BYTES,
            load.queue_depth,
            count_text,
        )
    else:
        # Requests take less than a second if the cluster keeps up.
        in_flight = load.rate_per_s or 0.0
    yield from _block_parts(scenario, schemes, load_key, load, requests, in_flight)
    if recovers:
        objects = load.clients * load.image_bytes / scenario.cluster.object_bytes
        image_bytes = objects * _OBJECT_UNDER_FAULTS_BYTES
        yield MemoryPart(
            f"{load_key}.image_bytes", image_bytes, load.image_bytes, format_size
        )


def _block_parts(
    scenario: ScenarioKeys,
    schemes: Sequence[NumberedScheme],
    load_key: str,
    load: WorkloadSpec,
    requests: float,
    in_flight: float,
) -> Iterator[MemoryPart]:
    """Estimate the memory of requests that span many objects or stripes, at the largest block size."""
    if load.kind == "trace":
        return
    cluster = scenario.cluster
    block_bytes = max(load.block_sizes_bytes)
    if requests == 0.0:
        # At least the requests in flight.
        requests = in_flight
    if block_bytes > cluster.object_bytes:
        pieces = block_bytes / cluster.object_bytes
        planned = min(requests, _PLANNED_REQUESTS)
        pieces_bytes = pieces * (
            requests * _PIECE_BYTES + planned * _PLANNED_PIECE_BYTES
        )
        yield MemoryPart(
            "cluster.object_bytes",
            pieces_bytes,
            cluster.object_bytes,
            format_size,
            True,
        )
    data_shards = [item.scheme.k for item in schemes if item.scheme.kind == "erasure"]
    if data_shards and _writes(load):
        stripes = block_bytes / (cluster.stripe_unit_bytes * min(data_shards))
        stripes_bytes = min(requests, in_flight) * stripes * _STRIPE_BYTES
        yield MemoryPart(
            "cluster.stripe_unit_bytes",
            stripes_bytes,
            cluster.stripe_unit_bytes,
            _stripe_unit_text,
            True,
        )


def _stripe_unit_text(value: int) -> str:
    """Write the next larger stripe unit that a cluster accepts."""
    return format_size(padded_unit_bytes(value))


def _writes(load: WorkloadSpec) -> bool:
    if load.read_fraction is not None:
        return load.read_fraction < 1
    return "write" in load.ops

"""Find the highest request rate that a cluster sustains, and the resource that limits it.

Every resource that requests visit limits the rate: above it, the resource's busiest member would be more
than fully busy. Resources are drives with their seeks, networks, processors and the threads that run on
them. The lowest limit is the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import gcd
from typing import Final, NamedTuple

import numpy as np

from stripesim.models.coding import parse_scheme
from stripesim.models.placement import pgs_of_objects
from stripesim.scenarios.cells.build import build_cell, build_loads, build_pool
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.schema.keys import Cell, WorkloadSpec, cells
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.units import duration_text, number_text
from stripesim.sim.ceph.clients.workload import SyntheticLoops, SyntheticStream
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.demands import FloatArray, Mix, StationDemand, demands_of
from stripesim.sim.ceph.planner import CompiledGraphs
from stripesim.sim.ceph.pool import Pool, image_prefix
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.observe.audit import audit_bound
from stripesim.sim.observe.limits import NEAR
from stripesim.sim.observe.resource_words import RESOURCE_WORDS, ResourceWords
from stripesim.sim.run import Run

# Above this many objects, placement groups hold equal shares within a few per cent [count].
_OBJECTS_MAX: Final = 200_000
# Ratio of the busiest member to the mean that is worth mentioning.
_NOTABLE_IMBALANCE: Final = 1.005
#: Bytes of read caches over those of data, above which hits may lift a rate over its bound.
CACHED_MAX: Final = 0.05


class Bound(NamedTuple):
    """Rate at which the busiest member of a class of resources is always busy."""

    resource: str  #: Limiting resource, such as ``drives``
    iops: float  #: Requests per second [1/s]
    why: str  #: Servers, service time per request and imbalance, in a sentence


def bounds_of(scenario: Scenario, scheme: str) -> tuple[Bound, ...]:
    """Return the rate that each resource sustains for one scheme, lowest first.

    The cluster must serve each kind of request (op, pattern, size) of the scenario, so the kind with the
    lowest bound decides.

    Parameters
    ----------
    scenario
        The scenario.
    scheme
        Name of the scheme.

    Returns
    -------
    tuple of Bound
        One for each resource. Empty if the scenario has several workloads without rates.

    Raises
    ------
    ValueError
        If the cluster cannot be built. The message names the key.
    """
    models = build_models(scenario)
    per_cell = [
        bounds_of_cell(scenario, cell, models)
        for cell in cells(scenario)
        if cell.scheme == scheme
    ]
    known = [bounds for bounds in per_cell if bounds]
    return min(known, key=lambda bounds: bounds[0].iops, default=())


def bounds_of_cell(
    scenario: Scenario,
    cell: Cell,
    models: Models,
    *,
    rates: Sequence[float] | None = None,
    requested: IntArray | None = None,
    compiled: CompiledGraphs | None = None,
) -> tuple[Bound, ...]:
    """Return the rate that each resource sustains for one kind of request, lowest first.

    Parameters
    ----------
    scenario, cell, models
        The scenario, the kind of request and the models of its cluster.
    rates
        Rates of concurrent workloads [1/s], by default those of the scenario.
    requested
        Placement group of each request, shape (requests,). None: each object is requested equally often.
    compiled
        Graphs of a run of the cell on the same models, to which those of further requests are added.
    """
    compiled = {} if compiled is None else compiled
    bounds: dict[str, Bound] = {}
    stations = _stations_of(scenario, cell, models, rates, requested, compiled)
    if any(load.image == "pristine" for load in scenario.loads):
        # First writes become later ones while the image fills. Each resource sustains at most the rate of the
        # state that demands less of it.
        filled = _stations_of(
            scenario, cell, models, rates, requested, compiled, filled=True
        )
        stations = _cheaper(stations, filled)
    for station in stations:
        if scenario.client.unlimited and station.kind.startswith("client."):
            continue
        resource_words = RESOURCE_WORDS[station.kind]
        assert resource_words.limit, f"{station.kind}: got no words for a limit"
        bounds.setdefault(
            resource_words.limit,
            Bound(
                resource_words.limit, station.rate_per_s, _why(station, resource_words)
            ),
        )
    return tuple(bounds.values())


def measured_bounds(
    scenario: Scenario,
    cell: Cell,
    models: Models,
    result: Run,
    *,
    requested: IntArray | None = None,
) -> tuple[Bound, ...]:
    """Return the rate that each resource sustains for the requests of a run, lowest first.

    `requested` are those of `bounds_of_cell`.
    """
    if result.row.iops is None:
        # No request completed, so the utilisation is unknown.
        return ()
    rates = [row.offered_iops or row.iops or 0.0 for row in result.load_rows] or None
    if rates is not None and 0.0 in rates:
        # The share of a workload of which no request was completed is unknown.
        return ()
    return bounds_of_cell(
        scenario,
        cell,
        models,
        rates=rates,
        requested=requested,
        compiled=result.compiled,
    )


def within_bound(scenario: Scenario, cell: Cell, models: Models, result: Run) -> Run:
    """Return a result with the refusal of the audit if its rate exceeds the lowest bound.

    The bound is that of the busiest member, so only a run with an interval, whose requests visit all of them,
    can be judged by it. A sequential stream visits few placement groups at a time, and a saturated open loop
    completes the cheap requests first. Stores that defer writes may exceed what their disks sustain until
    they run out of room, see `stripesim.scenarios.cells.notes.burst_warnings`.

    A client whose objects are on idle OSDs issues more requests than others. So a rate above the bound for
    all objects alike is refused only if it also exceeds the bound for the requests that arrived.
    """
    row = result.row
    low = row.throughput_ci_low
    high = row.throughput_ci_high
    if not row.iops or not row.throughput_bytes_per_s or low is None or high is None:
        return result
    if row.refused is not None or not _has_bound(scenario, cell, models, result):
        return result
    half_fraction = (high - low) / 2 / row.throughput_bytes_per_s
    refused = None
    for requested in (None, _arrived_groups(result)):
        bounds = measured_bounds(scenario, cell, models, result, requested=requested)
        if not bounds:
            return result
        refused = audit_bound(
            row.iops, bounds[0].iops, bounds[0].resource, half_fraction=half_fraction
        )
        if refused is None:
            return result
    return replace(result, row=replace(row, refused=refused))


def _arrived_groups(result: Run) -> IntArray:
    """Return the placement group of each request that arrives in the window of a run."""
    assert result.window is not None
    issued_ns = result.requested.issued_ns
    arrives = (issued_ns > result.window.start_ns) & (issued_ns <= result.window.end_ns)
    groups: IntArray = result.requested.groups[arrives]
    return groups


def has_streams(scenario: Scenario, cell: Cell) -> bool:
    """Return True if requests of a cell may be sequential, and so visit few placement groups at a time.

    Patterns of other cells make no difference, nor does the default of loads on buckets, which have none.
    """
    if scenario.workloads:
        return any("seq" in load.patterns for load in scenario.loads)
    return cell.pattern != "rand"


def may_hit_caches(scenario: Scenario, cell: Cell, models: Models) -> bool:
    """Return True if read caches may hold so much of the images that rates exceed bounds of cold caches.

    A drive without a store (`none`) has no cache, and objects are not cached.
    """
    if scenario.workload.is_s3 or cell.scheme == "none":
        return False
    return read_caches_bytes(scenario, models) > CACHED_MAX * scenario.images_bytes


def read_caches_bytes(scenario: Scenario, models: Models) -> int:
    """Return the size of the read caches of all OSDs [B]."""
    return scenario.cluster.osd_count * models.store.read_cache_bytes


def _has_bound(scenario: Scenario, cell: Cell, models: Models, result: Run) -> bool:
    """Return True if a bound applies to a run, and a resource is busy enough to reach it."""
    if models.deferral is not None or may_hit_caches(scenario, cell, models):
        return False
    if any(row.saturated for row in (result.row, *result.load_rows)):
        return False
    if has_streams(scenario, cell) or _clients_have_own_gateways(scenario):
        return False
    return any(use.utilisation >= NEAR for use in result.resources)


def _clients_have_own_gateways(scenario: Scenario) -> bool:
    """Return True if each client of a closed loop uses some of the gateways only.

    Clients with faster gateways then issue more requests than others, and serve more than all alike would.
    """
    load = scenario.workload
    if not load.is_s3 or load.is_open:
        return False
    return gcd(scenario.cluster.gateway_count, load.clients) > 1


def _cheaper(
    fresh: Sequence[StationDemand], filled: Sequence[StationDemand]
) -> tuple[StationDemand, ...]:
    """Return the smaller demand at each resource that requests use in both states, in order of rate."""
    of_filled = {station.kind: station for station in filled}
    cheaper = [
        max(station, of_filled[station.kind], key=lambda state: state.rate_per_s)
        for station in fresh
        if station.kind in of_filled
    ]
    return tuple(sorted(cheaper, key=lambda station: station.rate_per_s))


def _why(station: StationDemand, words: ResourceWords) -> str:
    """Write the arithmetic of a bound."""
    parts = [words.counted(station.units)]
    if station.servers < station.units:
        parts.append(f"worth {number_text(station.servers)} when all are busy")
    parts.append(f"{duration_text(station.demand_ns * 1e-9)} of service per request")
    if station.by_streams:
        parts.append("sequential streams use only a few placement groups at a time")
    elif station.imbalance >= _NOTABLE_IMBALANCE:
        parts.append(f"the busiest has {station.imbalance:.2f} × the mean load")
    return "; ".join(parts)


def _stations_of(
    scenario: Scenario,
    cell: Cell,
    models: Models,
    rates: Sequence[float] | None,
    requested: IntArray | None,
    compiled: CompiledGraphs,
    *,
    filled: bool = False,
) -> tuple[StationDemand, ...]:
    """Compute the demands of one kind of request, or of several workloads together.

    `filled`: images are full, whatever the scenario states.
    """
    shares = _shares(scenario, rates)
    if shares is None:
        return ()
    if scenario.workload.is_s3:
        inputs = build_cell(scenario, cell, models)
        assert isinstance(inputs.workload, SyntheticLoops | SyntheticStream)
        mix = Mix(workload=inputs.workload)
        return demands_of(inputs.pool, [mix], np.ones(inputs.pool.cluster.groups))
    scheme = parse_scheme(cell.scheme)
    pool = build_pool(scenario, scheme, models, down=scenario.missing_osds)
    built = build_loads(scenario, cell)
    streams = built if isinstance(built, list) else [built]
    patterns: list[str] = [cell.pattern]
    if scenario.workloads:
        patterns = [load.patterns[0] for load in scenario.loads]
    mixes = [
        Mix(
            workload=stream,
            share=share,
            prefilled=filled or load.image == "prefilled",
            groups_at_a_time=_groups_at_a_time(scenario, load)
            if pattern == "seq"
            else None,
            stripes_in_flight=pattern == "seq",
        )
        for stream, share, load, pattern in zip(
            streams, shares, scenario.loads, patterns, strict=True
        )
    ]
    weights = _group_weights(scenario, pool)
    if requested is not None:
        counts = np.bincount(requested, minlength=pool.cluster.groups)
        weights = counts / counts.sum()
    return demands_of(pool, mixes, weights, compiled)


def _shares(scenario: Scenario, rates: Sequence[float] | None) -> list[float] | None:
    """Return the fraction of all requests from each workload, or None if their rates are unknown."""
    if not scenario.workloads:
        return [1.0]
    if rates is None:
        stated = [load.rate_per_s for load in scenario.loads]
        rates = [rate for rate in stated if rate is not None]
    if len(rates) != len(scenario.loads) or sum(rates) <= 0:
        return None
    return [rate / sum(rates) for rate in rates]


def _groups_at_a_time(scenario: Scenario, load: WorkloadSpec) -> float | None:
    """Return the placement groups that sequential streams keep busy, or None if that is not a limit.

    A stream with :math:`q` requests of :math:`b` bytes in flight on objects of :math:`o` bytes still waits
    for the last requests of objects that it has passed. These hold half of its requests on average, so the
    stream works on :math:`1 + 2 q b / o` groups.
    """
    if load.kind != "closed":
        return None
    objects_in_flight = (
        load.queue_depth * load.block_sizes_bytes[0] / scenario.cluster.object_bytes
    )
    return load.clients * (1 + 2 * objects_in_flight)


def _group_weights(scenario: Scenario, pool: Pool) -> FloatArray:
    """Return the fraction of all objects in each placement group, shape (groups,)."""
    groups = pool.cluster.groups
    objects = scenario.images_bytes // scenario.cluster.object_bytes
    if scenario.workload.kind == "trace" or objects > max(_OBJECTS_MAX, 64 * groups):
        return np.full(groups, 1 / groups)
    counts = _objects_of_groups(max(1, objects), groups)
    weights: FloatArray = counts / counts.sum()
    return weights


@lru_cache(maxsize=16)
def _objects_of_groups(objects: int, groups: int) -> IntArray:
    """Return how many of an image's first objects are in each placement group, shape (groups,)."""
    numbers = pgs_of_objects(image_prefix(0), np.arange(objects), groups)
    return np.bincount(numbers, minlength=groups)

"""Write provenance and warnings that accompany the numbers of a run."""

import datetime
import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import sqrt
from typing import Any, Final

import numpy as np

from stripesim._version import __version__
from stripesim.calibration.parameters.calibrated_range import (
    calibrated_range,
)
from stripesim.models.coding import RedundancyScheme, parse_scheme, repair_reads
from stripesim.models.object_store.store import DeferralModel
from stripesim.models.problems import Problem
from stripesim.scenarios.cells.bound import (
    CACHED_MAX,
    may_hit_caches,
    read_caches_bytes,
)
from stripesim.scenarios.cells.files import file_sha256
from stripesim.scenarios.cells.kernel_costs import (
    codes_with_borrowed_costs,
    interpolated_codes,
)
from stripesim.scenarios.cells.models import cluster_set
from stripesim.scenarios.cells.placement import crush_of, up_sets
from stripesim.scenarios.schema.keys import Cell, WorkloadSpec
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.units import bytes_text, first_text, number_text
from stripesim.sim.ceph.cluster import NO_OSD, Models
from stripesim.sim.observe.limits import resource_name
from stripesim.sim.run import Run

#: Bytes on OSDs for each byte of the pool, above which a warning tells of other data. Metadata is less.
OTHER_DATA_MAX: Final = 1.15
# Ratio of a rate to its bound that chance does not explain.
BURST = 1.05
#: Requests for each one in flight from which the p50 and p99 of a saturated closed loop hardly change.
SETTLED_ROUNDS: Final = 300
# Utilisation of a resource, its distance from the mean of its class, and its part of the latency, from which
# its queue takes so long to settle. Of 60 random closed loops of 40 rounds or more, 24 have such a resource,
# among them all 10 whose p50 or p99 is 1.5 times that of a run of 1,000 rounds, or the reverse.
_FULL = 0.95
_UNEVEN = 0.1
_SHARE_OF_LATENCY = 0.4
# Growth of the mean latency from one half of an open loop to the other, and its multiple of the standard
# error, from which the run is too short; fewest requests of a half; and how much longer a run to compare is.
_GROWTH_MAX = 0.1
_ERRORS_MIN = 3
_HALF_MIN = 100
_LONGER = 10
_GROWS: Final = (
    "the latency grows by over 10 % from the first half of the run to the second. An open loop starts with "
    "an idle cluster, and this one is too short for its load"
)
# Cells to name in a warning.
_NAMED_MAX = 3
#: Bytes of a shard over which reads of a repair are averaged [B].
_STRIPES_BYTES: Final = 64 << 10
#: Largest stripe unit that is proposed [B].
_UNIT_BYTES_MAX: Final = 64 << 20


def where_and_when() -> dict[str, str]:
    """Return the Python version, the machine's architecture and the time in UTC, for provenance."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def made_from(scenario: Scenario, **more: Any) -> dict[str, Any]:
    """Return the provenance of a scenario's numbers; `more` adds further JSON values."""
    return {
        "stripesim": __version__,
        "scenario": scenario.name,
        "scenario_sha256": scenario.hash(),
        "seed": scenario.seed,
        **more,
        **code_files(scenario),
        **where_and_when(),
        "configuration": scenario.model_dump(mode="json"),
    }


def code_files(scenario: Scenario) -> dict[str, Any]:
    """Return the files of codes with their content's SHA-256 as ``codes``; nothing without such files."""
    listed = [
        {"file": path, "sha256": file_sha256(scenario.resolve(path))}
        for path in scenario.codes
    ]
    if not listed:
        return {}
    return {"codes": listed}


def outside_of(scenario: Scenario) -> list[Problem]:
    """List the values of a scenario outside the calibrated range of its parameter set, each once."""
    covered = calibrated_range(cluster_set(scenario))
    values = _compared_values(scenario)
    outside = [
        _with_key_of_loads(problem, scenario)
        for load in scenario.loads
        for problem in covered.problems(values | {"workload": _compared_keys(load)})
    ]
    return [*dict.fromkeys(outside), *_unmeasured_sites(scenario)]


def _compared_values(scenario: Scenario) -> dict[str, Any]:
    """Return the nested values of a scenario, with those of hosts that differ as lists."""
    asked = scenario.model_dump(mode="json")
    # Hosts that differ are groups.
    cluster = scenario.cluster
    asked["cluster"] |= {
        "hosts": cluster.host_count,
        "osds_per_host": list(dict.fromkeys(cluster.of_hosts("osds"))),
        "cores_per_host": list(dict.fromkeys(cluster.of_hosts("cores"))),
    }
    if cluster.crush_map is not None:
        asked["cluster"] |= _hosts_of_map(scenario)
    return asked


def _compared_keys(load: WorkloadSpec) -> dict[str, Any]:
    """Return the values of a load, without keys that it ignores."""
    asked = load.model_dump(mode="json")
    if load.kind in ("trace", "s3"):
        asked.pop("block_sizes_bytes")
    if not load.is_s3:
        asked.pop("object_sizes_bytes")
    elif load.is_closed:
        # A set with costs of gateways was calibrated on closed loops of objects, too.
        asked.pop("kind")
    if load.is_open or (load.kind == "trace" and load.replay == "recorded"):
        asked.pop("queue_depth")
    return asked


def _with_key_of_loads(problem: Problem, scenario: Scenario) -> Problem:
    """Return a problem whose key is that of `[[workloads]]` where a scenario has several."""
    table, _, key = problem.key.partition(".")
    if table != "workload" or not scenario.workloads:
        return problem
    return replace(problem, key=f"workloads.{key}")


def range_lines(outside: Iterable[Problem]) -> list[str]:
    """Return warnings of values outside the calibrated range, for a document with one list of warnings."""
    return [f"outside the calibrated range: {line}" for line in outside]


def _hosts_of_map(scenario: Scenario) -> dict[str, Any]:
    """Return the number of hosts and OSDs of each in a CRUSH map, nothing if it cannot be read."""
    try:
        osds_of_hosts = Counter(crush_of(scenario).domains("host").values())
    except (ValueError, OSError):
        # The runs say why.
        return {}
    return {
        "hosts": len(osds_of_hosts),
        "osds_per_host": sorted(set(osds_of_hosts.values())),
    }


def _unmeasured_sites(scenario: Scenario) -> list[Problem]:
    """Report that no measurement confirms the effect of sites."""
    if scenario.cluster.site_rtt_ms is None:
        return []
    detail = (
        "no cluster with sites was measured: each message between sites takes half the stated round trip "
        "longer, and limits of TCP over distance (windows, lost packets) are not modelled"
    )
    return [Problem(key="cluster.site_rtt_ms", detail=detail)]


def outside_of_all(scenarios: Iterable[Scenario]) -> list[Problem]:
    """List the values of several scenarios outside their ranges, each once, in order of first appearance."""
    return list(
        dict.fromkeys(
            problem for scenario in scenarios for problem in outside_of(scenario)
        )
    )


def client_notes(scenario: Scenario) -> list[str]:
    """Return a note on the clients that the answer assumes, where the scenario states none."""
    if scenario.states_clients:
        return []
    return [
        "the scenario states no clients ([workload] clients, [client]), so clients do not limit the rate: "
        "they have a thread and a network interface for each request"
    ]


def scenario_warnings(scenario: Scenario, models: Models) -> list[str]:
    """Warn of assumptions and omissions of every answer about a scenario, except its calibrated range."""
    repairs = repair_warnings(scenario, models) if scenario.changes_during_run else []
    repairs += _other_data_warnings(scenario)
    return [
        *hole_warnings(scenario),
        *inactive_warnings(scenario),
        *kernel_warnings(scenario),
        *network_warnings(scenario),
        *_own_host_warnings(scenario),
        *_uncached_warnings(scenario, models),
        *repairs,
        *pristine_warnings(scenario),
        *object_map_warnings(scenario),
        *_arrival_warnings(scenario),
    ]


def other_data_words(used_bytes: float, pool_bytes: float, stays: str) -> str | None:
    """Return a sentence on data of other pools on the OSDs of a pool, or None if they hold little more."""
    if used_bytes <= OTHER_DATA_MAX * pool_bytes:
        return None
    times = number_text(used_bytes / pool_bytes)
    return (
        f"OSDs hold {bytes_text(used_bytes)} (cluster.used_bytes), of which this pool has "
        f"{bytes_text(pool_bytes)}. {stays}. As far as it belongs to other pools, their placement groups "
        f"move as well in Ceph and share the reservations: up to about {times} times the bytes and the "
        "time, and fuller OSDs"
    )


def _other_data_warnings(scenario: Scenario) -> list[str]:
    """Warn of failures and repairs on OSDs that hold much more than the pool, since only that is rebuilt."""
    if scenario.faults is None and scenario.repair is None:
        return []
    stored_bytes = max(scenario.cluster.stored_bytes or 0, scenario.images_bytes)
    used_bytes = float(sum(scenario.cluster.used_bytes))
    warnings = []
    for name in scenario.schemes:
        pool_bytes = stored_bytes * parse_scheme(name).storage_overhead
        words = other_data_words(used_bytes, pool_bytes, "The rest is not rebuilt here")
        if words is not None:
            warnings.append(f"{name}: {words}")
    return warnings


def kernel_warnings(scenario: Scenario) -> list[str]:
    """Warn of codes that were never timed, with the accuracy of their interpolated costs."""
    borrowed = [
        f"{name}: encoding and decoding were never timed: they cost what those of {other} cost (costs_as)"
        for name, other in codes_with_borrowed_costs(scenario)
    ]
    return borrowed + [
        f"{name}: encoding and decoding were never timed: their cost is interpolated from "
        f"{added.codes} timed codes, each of which it predicts from the others within "
        f"{100 * added.error_median:.0f} % (median; at worst {100 * added.error_max:.0f} %); `stripesim "
        f"kernel --scheme {name} --save` measures it"
        for name, added in interpolated_codes(scenario).items()
    ]


def repair_warnings(scenario: Scenario, models: Models) -> list[str]:
    """Warn of codes whose repair saves bytes on paper, but reads more than Reed-Solomon from drives."""
    unit_bytes = scenario.cluster.stripe_unit_bytes
    block_bytes = models.store.min_alloc_bytes
    warnings = [
        repair_warning(parse_scheme(name), unit_bytes, block_bytes)
        for name in scenario.schemes
        if name != "none"
    ]
    return [warning for warning in warnings if warning is not None]


def repair_warning(
    scheme: RedundancyScheme, unit_bytes: int, block_bytes: int
) -> str | None:
    """Return the warning of one code, or None."""
    if scheme.kind == "replicated":
        return None
    asked = repair_reads(scheme, scheme.geometry(unit_bytes))
    read = drive_reads(scheme, unit_bytes, block_bytes)
    if asked >= scheme.k or read <= scheme.k:
        return None
    enough_bytes = _enough_unit_bytes(scheme, unit_bytes, block_bytes)
    return (
        f"{scheme.name}: a repair asks for {asked:.3g} bytes for each lost one, but drives read {read:.3g}, "
        f"more than the k = {scheme.k} of Reed-Solomon: pieces of a chunk of {unit_bytes:,} B are smaller "
        f"than the blocks of {block_bytes:,} B that drives read. They read less than for Reed-Solomon from "
        f"cluster.stripe_unit_bytes = {enough_bytes:,} on"
    )


def drive_reads(scheme: RedundancyScheme, unit_bytes: int, block_bytes: int) -> float:
    """Return the bytes that drives read in whole blocks for each lost byte."""
    geometry = scheme.geometry(unit_bytes)
    stripes = -(-_STRIPES_BYTES // geometry.stripe_unit_bytes)
    return repair_reads(scheme, geometry, stripes=stripes, block_bytes=block_bytes)


def _enough_unit_bytes(
    scheme: RedundancyScheme, unit_bytes: int, block_bytes: int
) -> int:
    """Return a stripe unit with which drives read less than with Reed-Solomon [B]."""
    while (
        unit_bytes < _UNIT_BYTES_MAX
        and drive_reads(scheme, unit_bytes, block_bytes) >= scheme.k
    ):
        unit_bytes *= 2
    return unit_bytes


def pristine_warnings(scenario: Scenario) -> list[str]:
    """Warn of reads that find no objects, since their rates do not apply to a cluster in use."""
    if not any(_reads_nothing(load) for load in scenario.loads):
        return []
    where = scenario.where("workload", "image")
    return [
        f"{where}: reads of a pristine image find no objects and move no data; set image = "
        '"prefilled" to read what was written before the run'
    ]


def object_map_warnings(scenario: Scenario) -> list[str]:
    """Warn of object maps that a run leaves out, so that first writes into objects are too fast."""
    if not (scenario.has_fresh_object_maps and scenario.changes_during_run):
        return []
    where = scenario.where("workload", "image")
    return [
        f"{where}: the images' object maps are not simulated in runs with failures or changes, so that "
        'first writes into objects are too fast; set image = "prefilled" for an image in use'
    ]


def network_warnings(scenario: Scenario) -> list[str]:
    """Warn of a stated rate between hosts that is ignored, because one network has another rate."""
    cluster = scenario.cluster
    if "private_gbit_per_s" not in cluster.model_fields_set:
        return []
    if cluster.private_gbit_per_s == cluster.between_hosts_gbit_per_s:
        return []
    where = scenario.where("cluster", "private_gbit_per_s")
    return [
        f"{where}: {cluster.private_gbit_per_s:g} is ignored, because with networks = 1 traffic between "
        f"hosts uses the interface of public_gbit_per_s, {cluster.public_gbit_per_s:g}"
    ]


#: Hosts of which each is the own host of many messages [count].
_FEW_HOSTS: Final = 4


def _own_host_warnings(scenario: Scenario) -> list[str]:
    """Warn if the network carries messages here that stay on the host of a client or gateway."""
    cluster = scenario.cluster
    is_local = cluster.read_policy == "local"
    if scenario.workload.is_s3:
        ends = "gateways" if cluster.gateways.place == "osd-hosts" else ""
    else:
        # Messages to a primary of the own host stay there in the simulation too.
        schemes = (parse_scheme(name) for name in scenario.schemes if name != "none")
        asks_shards = cluster.direct_reads and any(
            scheme.kind == "erasure" for scheme in schemes
        )
        asks_others = is_local or asks_shards
        ends = "clients" if asks_others and scenario.client.place == "osd-hosts" else ""
    if not ends or not (is_local or cluster.host_count <= _FEW_HOSTS):
        return []
    part = (
        "many of their reads stay"
        if is_local
        else f"one message in {cluster.host_count} stays"
    )
    return [
        f"{ends} run on the storage hosts, and {part} on the host. The network interface carries all of them "
        "here, so a rate that it limits is too low by that part"
    ]


def _uncached_warnings(scenario: Scenario, models: Models) -> list[str]:
    """Warn of GETs that read all data from drives here, where read caches could hold much of it."""
    if not any(load.is_s3 and "get" in load.ops for load in scenario.loads):
        return []
    caches_bytes = read_caches_bytes(scenario, models)
    share = min(1.0, caches_bytes / scenario.images_bytes)
    if share <= CACHED_MAX:
        return []
    return [
        f"GETs read all data from drives here, although the read caches of the OSDs "
        f"({bytes_text(caches_bytes)}, store.read_cache_bytes) could hold {100 * share:.0f} % of the "
        "objects. So a rate that drives limit is too low where objects are read again"
    ]


def _arrival_warnings(scenario: Scenario) -> list[str]:
    """Warn of a replay at recorded times of a trace without times."""
    if scenario.workload.kind != "trace":
        return []
    # Readers of traces take long to load.
    from stripesim.scenarios.cells.replay import arrival_warnings

    return arrival_warnings(scenario)


def burst_warnings(
    scenario: Scenario,
    cell: Cell,
    saturates: Mapping[str, Any] | None,
    models: Models,
) -> list[str]:
    """Warn of a rate above the bound of the cell, which does not last on disks, unless caches may lift it."""
    if models.deferral is None or saturates is None:
        return []
    if may_hit_caches(scenario, cell, models):
        return []
    if saturates["utilisation"] <= BURST:
        return []
    rate = number_text(saturates["utilisation"] * saturates["iops"])
    cause = "more requests still gather where most are served"
    if _may_defer(cell, models.deferral):
        cause = "stores deferred writes that the disks had not yet made"
    sustained = f"{number_text(saturates['iops'])} requests/s, as a longer run shows"
    if scenario.in_flight_count is not None:
        sustained += f", with a higher p50 and p99: compare {_longer_run(scenario)}"
    return [
        f"{cell.name}: {rate} requests/s are a burst: {cause}. {saturates['resource']} sustain {sustained}"
    ]


def latency_grows(scenario: Scenario, result: Run) -> bool:
    """Return True for an open loop that is too short for its load, because it starts with an idle cluster.

    Of 60 cells of 2,000 to 20,000 requests at 0.3 to 0.9 of saturation, those whose mean latency is 7 % or
    more too low have grown by this much in 68 to 100 % of runs. False for a run whose row has an interval.
    """
    row = result.row
    if row.offered_iops is None or row.saturated or row.latency_ci_low is not None:
        return False
    if scenario.changes_during_run or scenario.workload.kind == "trace":
        return False
    latencies_ns = result.requested.latencies_ns
    half = len(latencies_ns) // 2
    if half < _HALF_MIN or result.refused is not None:
        return False
    first, second = latencies_ns[:half], latencies_ns[half:]
    # As if requests did not delay one another: latencies that differ widely need many requests.
    error_ns = sqrt((first.var() + second.var()) / half)
    grown_ns = float(second.mean() - first.mean())
    return grown_ns > max(_GROWTH_MAX * float(first.mean()), _ERRORS_MIN * error_ns)


def growth_warnings(scenario: Scenario, growing_cells: Sequence[str]) -> list[str]:
    """Warn of open loops that are too short for their load, in one sentence for all cells."""
    if not growing_cells:
        return []
    longer = f"workload.duration_s = {_LONGER * (scenario.duration_s or 0):g}"
    if scenario.workload.requests is not None:
        longer = f"workload.requests = {_LONGER * scenario.workload.requests}"
    named = first_text(growing_cells, _NAMED_MAX)
    return [f"{named}: {_GROWS}: compare {longer}"]


def _longer_run(scenario: Scenario) -> str:
    """Return the key that makes a closed loop long enough for its queues to settle, with its value."""
    in_flight = scenario.in_flight_count
    if scenario.workload.requests is None or in_flight is None:
        return "a longer workload.duration_s"
    return f"workload.requests = {SETTLED_ROUNDS * in_flight}"


def slow_class(scenario: Scenario, result: Run) -> str | None:
    """Return the class of resources that a run waits for, if its p50 and p99 depend on its length.

    None for other runs. A closed loop past saturation ends up with most requests at the busiest resource of a
    class, and that queue takes hundreds of times the requests in flight to settle.
    """
    in_flight = scenario.in_flight_count
    if in_flight is None or scenario.changes_during_run:
        return None
    if len(result.requested.issued_ns) >= SETTLED_ROUNDS * in_flight:
        return None
    for use in result.resources:
        is_full = use.utilisation >= _FULL
        is_uneven = use.mean_utilisation <= use.utilisation - _UNEVEN
        if is_full and is_uneven and use.latency_share >= _SHARE_OF_LATENCY:
            return use.kind
    return None


def length_warnings(
    scenario: Scenario, slow_cells: Sequence[tuple[str, str]]
) -> list[str]:
    """Warn of quantiles that may depend on the length of a run, in one sentence for all cells.

    `slow_cells` are names of cells, each with its `slow_class`.
    """
    if not slow_cells:
        return []
    named = first_text([name for name, _ in slow_cells], _NAMED_MAX)
    kinds = dict.fromkeys(kind for _, kind in slow_cells)
    return [
        f"{named}: {settling_text(kinds, scenario)}: compare {_longer_run(scenario)}"
    ]


def row_warnings(scenario: Scenario, result: Run) -> list[str]:
    """Warn of latencies that may depend on the length of a run. All that wait for one class have one text.

    The audit says more of a run that it refuses.
    """
    if latency_grows(scenario, result):
        return [f"rows of open loops: {_GROWS}"]
    slow = slow_class(scenario, result)
    if slow is None or result.refused is not None:
        return []
    return [f"rows past saturation: {settling_text([slow], scenario)}"]


def settling_text(kinds: Iterable[str], scenario: Scenario | None = None) -> str:
    """Explain what slowly settling queues of these classes of resources mean for a short run."""
    names = " or ".join(map(resource_name, kinds))
    queue = f"most requests wait for the busiest {names}, whose queue settles slowly"
    if scenario is not None and len(scenario.workload.size_shares or ()) > 1:
        return (
            f"{queue}. Until then small objects pass large ones: below {SETTLED_ROUNDS} requests for each "
            "one in flight, a longer run may serve fewer, with other p50 and p99"
        )
    return (
        f"{queue}. Below "
        f"{SETTLED_ROUNDS} requests for each one in flight, the rate hardly depends on the length of a run, "
        "but p50 and p99 may"
    )


def _may_defer(cell: Cell, deferral: DeferralModel) -> bool:
    """Return False if a cell only reads, or its writes are too large to be deferred."""
    if cell.op in ("read", "get", "head", "list"):
        return False
    if cell.op != "write" or cell.block_size_bytes is None:
        return True
    shard_bytes = cell.block_size_bytes / parse_scheme(cell.scheme).k
    return shard_bytes < deferral.prefer_deferred_bytes


def _reads_nothing(load: WorkloadSpec) -> bool:
    if load.image != "pristine" or load.kind == "trace":
        return False
    if load.read_fraction is None:
        return "read" in load.ops
    return load.read_fraction == 1


def hole_warnings(scenario: Scenario) -> list[str]:
    """Warn of schemes for which CRUSH left holes in placement groups."""
    warnings = []
    for scheme in (parse_scheme(name) for name in scenario.schemes if name != "none"):
        count = int((up_sets(scenario, scheme) == NO_OSD).any(axis=1).sum())
        if count:
            warnings.append(
                f"{scheme.name}: {count} of {scenario.cluster.pg_num} placement groups have a hole: CRUSH "
                "gave up after its tries, as it does where the failure domains are hardly more than the "
                f"{scheme.width} shards"
            )
    return warnings


def inactive_warnings(scenario: Scenario) -> list[str]:
    """Warn of placement groups that serve clients in the run, and would not in Ceph with these OSDs down."""
    if not scenario.missing_osds or scenario.changes_during_run:
        # Without missing OSDs no group lacks shards. Runs with changes hold its requests.
        return []
    gone = [*scenario.missing_osds, NO_OSD]
    warnings = []
    for scheme in map(parse_scheme, scenario.schemes):
        least = scheme.min_size
        shards = (~np.isin(up_sets(scenario, scheme), gone)).sum(axis=1)
        count = int((shards < least).sum())
        if count:
            warnings.append(
                f"{scheme.name}: {count:,} of {len(shards):,} placement groups have fewer than {least} "
                "shards up (min_size): Ceph serves none of their requests until members return, this run "
                "serves them all. [[faults.events]] simulates the wait"
            )
    return warnings


def load_sentences(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Write a sentence for each open loop that saturated the cluster.

    >>> load_sentences([{"scheme": "rep:3", "saturated": True, "iops": 41000.0, "offered_iops": 60000.0}])
    ['rep:3: saturated: serves 41,000 of 60,000 requests a second']
    """
    return [
        f"{row['scheme']}{', ' + row['workload'] if row.get('workload') else ''}: saturated: serves "
        f"{number_text(row['iops'])} of {number_text(row['offered_iops'])} requests a second"
        for row in rows
        if row.get("saturated")
    ]

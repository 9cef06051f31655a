"""Simulate rows that share a run, and compute the number that each of them states."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import gcd
from typing import Any, Final

import numpy as np

from stripesim.calibration.measured.hardware import scaled_times
from stripesim.models.coding import parse_scheme
from stripesim.models.cpu import CpuModel
from stripesim.models.placement.pg_autoscale import autoscaled_pg_num
from stripesim.models.problems import NotComputedError, one_line
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.clusters.hardware import op_shards_of
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import Scenario, scenario_from
from stripesim.scenarios.studies.parameters import changed_models
from stripesim.scenarios.studies.s3.described import (
    DescribedCluster,
    read_cluster,
    read_mix,
)
from stripesim.scenarios.studies.s3.measured import ObjectRow
from stripesim.scenarios.studies.tasks import Call, Row
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.observe.audit import ROUNDS_MIN
from stripesim.sim.run import Run

#: Requests of a run: at least this many, or rounds of those in flight if the audit wants more. Runs that take
#: long have as many rounds as it wants.
_REQUESTS_MIN: Final = 3_000
_ROUNDS: Final = 12
#: Largest object of a graph under all codes: larger ones are simulated as requests of this size, one after
#: another.
LARGEST_BYTES: Final = 64 << 20
_CHUNK_BYTES: Final = 4 << 20
#: Shards of chunks that all requests of a run read or write at most, for runs of some minutes. Beyond that,
#: large objects are simulated as smaller ones.
_CHUNK_SHARDS_MAX: Final = 4_000_000
_PG_NUM_MAX: Final = 16_384
#: Requests above a percentile at least.
_BEYOND_MIN: Final = 5
#: Keys that one LIST returns at most.
_LISTED_KEYS: Final = 1_000
_BYTES: dict[str, float] = {
    "B/s": 1.0,
    "KB/s": 1e3,
    "MB/s": 1e6,
    "GB/s": 1e9,
    "KiB/s": 2.0**10,
    "MiB/s": 2.0**20,
    "GiB/s": 2.0**30,
}
_BYTES |= {"Mbit/s": 1.25e5, "Gbit/s": 1.25e8, "Gb/s": 1.25e8, "Gbps": 1.25e8}
_BYTES |= {"MBps": 1e6, "GBps": 1e9, "MiBps": 2.0**20, "GiBps": 2.0**30, "TB/s": 1e12}
_TIMES_NS: Final = {
    "ns": 1.0,
    "us": 1e3,
    "µs": 1e3,
    "ms": 1e6,
    "msec": 1e6,
    "s": 1e9,
    "sec": 1e9,
}
#: Words of metrics that are latencies of requests if their unit is a time.
_LATENCIES: Final = re.compile(
    r"lat|response|\bp?\d\d(\.\d+)?\b|\bp\d\d|mean|average|\bavg|median|percentile"
)
#: Requests per second, such as ``kops/s`` or ``k IOPS``.
_COUNT_UNIT: Final = re.compile(
    r"(k|m)?\s*(?:iops|ops|rps|(?:1|ops?|obj|objects?|reqs?|requests?|gets?|puts?|lists?|)\s*"
    r"(?:/|per )\s*(?:s|sec|second))",
    re.IGNORECASE,
)
_COUNT_FACTORS: Final = {"": 1.0, "k": 1e3, "m": 1e6}
_CORES: Final = re.compile(r"v?cpus?|cores?|threads?", re.IGNORECASE)


def tasks_for(rows: Sequence[ObjectRow], engine: str) -> list[Call]:
    """List the simulations of the rows that count: one for all rows of the same run."""
    runs: dict[tuple[str, ...], list[ObjectRow]] = {}
    for row in rows:
        try:
            key = row.run_key
        except NotComputedError:
            # `simulate_rows` gives the reason.
            key = (row.id,)
        if row.role != "not-derivable":
            runs.setdefault(key, []).append(row)
    return [
        Call(shared[0].id, simulate_rows, (tuple(shared), engine), _weight(shared[0]))
        for shared in runs.values()
    ]


def _weight(row: ObjectRow) -> float:
    try:
        size_bytes = max(size for size, _ in row.sizes)
        return float(row.in_flight * (1 + size_bytes / _CHUNK_BYTES))
    except NotComputedError:
        return 0.0


def simulate_rows(rows: Sequence[ObjectRow], engine: str = "compiled") -> list[Row]:
    """Simulate rows that share a run. Each result row has a value, or the reason why there is none."""
    try:
        run = _ObjectRun(rows[0], engine)
    except ValueError as error:
        return [_without_value(row, one_line(error)) for row in rows]
    return [_valued(row, run) for row in rows]


def _without_value(row: ObjectRow, reason: str) -> Row:
    return {"row_id": row.id, "value": None, "reason": reason}


def _valued(row: ObjectRow, run: _ObjectRun) -> Row:
    try:
        value = run.value_of(row)
    except NotComputedError as error:
        return _without_value(row, one_line(error))
    return {"row_id": row.id, "value": value, "reason": None, **run.numbers()}


def cluster_of(row: ObjectRow) -> DescribedCluster:
    """Return the cluster of a row: that of the description, with the hosts that the row states."""
    row.check_state()
    cluster = read_cluster(row.hardware)
    if row.is_mixed:
        own = (row.op, row.threads, row.state, row.block)
        mix = next((mix for mix in map(read_mix, own) if len(mix) > 1), cluster.mix)
        cluster = replace(cluster, mix=mix)
    if row.hosts is None:
        return cluster
    gateways = max(1, round(cluster.gateways * row.hosts / cluster.hosts))
    return replace(cluster, hosts=row.hosts, gateways=gateways)


def scenario_of(row: ObjectRow, cluster: DescribedCluster) -> Scenario:
    """Write a row as a scenario.

    An object above `LARGEST_BYTES` counts as several of that size, so that its bytes per second stay.

    Raises
    ------
    ValueError
        If the row lacks something, or no run can simulate it.
    """
    scheme = parse_scheme(row.scheme)
    largest_bytes = _largest_bytes(row, scheme.width)
    shares: dict[int, float] = {}
    for size, share in row.sizes:
        pieces = max(1.0, size / largest_bytes)
        own_bytes = min(size, largest_bytes)
        shares[own_bytes] = shares.get(own_bytes, 0.0) + share * pieces
    hosts = cluster.hosts - row.hosts_stopped
    domain = "host" if scheme.width <= cluster.hosts else "osd"
    if domain == "host" and hosts < scheme.width:
        raise NotComputedError(
            f"{row.scheme} keeps {scheme.width} shards on {scheme.width} hosts, and {hosts} are up: reads of "
            "degraded objects are not simulated here"
        )
    gateway_hosts = "own" if cluster.gateways_apart else "osd-hosts"
    # Clients that use all gateways evenly, with exactly the requests in flight that the row states.
    clients = gcd(row.in_flight, cluster.gateways)
    queue_depth = row.in_flight // clients
    workload: dict[str, Any] = {
        "kind": "s3",
        "object_sizes_bytes": list(shares),
        "size_shares": list(shares.values()),
        "clients": clients,
        "queue_depth": queue_depth,
        "requests": _requests(row, scheme.width),
        "buckets": cluster.buckets,
        "tls": row.tls,
    }
    if row.is_mixed:
        if not cluster.mix:
            raise NotComputedError("the mix of operations is not stated")
        workload["ops"] = [name for name, _ in cluster.mix]
        workload["op_shares"] = [share for _, share in cluster.mix]
    else:
        workload["ops"] = [row.s3_op]
    return scenario_from(
        {
            "name": row.id,
            "generation": row.generation,
            "schemes": [row.scheme],
            "client": {"unlimited": True},
            "cluster": {
                "hosts": hosts,
                "osds_per_host": cluster.osds_per_host,
                "pg_num": cluster.pg_num or _autoscaled(cluster, scheme.width),
                "upmap_max_deviation": 1,
                "failure_domain_replicated": domain,
                "failure_domain_erasure": domain,
                "cores_per_host": cluster.threads_per_host,
                "drive": cluster.drive,
                **op_shards_of(row.version, cluster.drive),
                "networks": cluster.networks,
                "public_gbit_per_s": cluster.gbit_per_s,
                "private_gbit_per_s": cluster.gbit_per_s,
                "gateways": {"count": cluster.gateways, "place": gateway_hosts},
            },
            "workload": workload,
        },
        label=row.id,
    )


def _chunk_shards(row: ObjectRow, width: int, largest_bytes: int) -> float:
    """Return the shards of chunks of all requests in flight, in the mean."""
    chunks = sum(
        max(1.0, min(size, largest_bytes) / _CHUNK_BYTES) * share
        for size, share in row.sizes
    )
    return row.in_flight * chunks * width


def _largest_bytes(row: ObjectRow, width: int) -> int:
    """Return the size that larger objects are cut into: fewer than `LARGEST_BYTES` for many clients."""
    largest_bytes = LARGEST_BYTES
    while (
        largest_bytes > _CHUNK_BYTES
        and ROUNDS_MIN * _chunk_shards(row, width, largest_bytes) > _CHUNK_SHARDS_MAX
    ):
        largest_bytes //= 2
    return largest_bytes


def _requests(row: ObjectRow, width: int) -> int:
    if ROUNDS_MIN * row.in_flight <= _REQUESTS_MIN:
        return _REQUESTS_MIN
    shards = _chunk_shards(row, width, _largest_bytes(row, width))
    is_long = _ROUNDS * shards > _CHUNK_SHARDS_MAX
    return row.in_flight * (ROUNDS_MIN if is_long else _ROUNDS)


def _autoscaled(cluster: DescribedCluster, width: int) -> int:
    osds = cluster.hosts * cluster.osds_per_host
    return min(_PG_NUM_MAX, autoscaled_pg_num(1.0, osds, width))


def models_of(scenario: Scenario, cluster: DescribedCluster) -> Models:
    """Build the models of a described cluster: the fitted ones on another processor."""
    models = changed_models(build_models(scenario))
    assert models.gateway is not None
    factor, source = cluster.cpu_factor, cluster.cpu_source
    gateway = scaled_times(models.gateway, factor, source)
    # A gateway's work on bytes is mostly checksums and encryption. Clients have machines of their own.
    own = scaled_times(gateway, cluster.gateway_factor, source, suffix="_ns_per_byte")
    name = "client_ns_per_byte"
    return replace(
        models,
        cpu=_scaled_osds(models.cpu, cluster),
        client=scaled_times(models.client, factor, source),
        gateway=own.with_numbers(
            {name: gateway.client_ns_per_byte}, gateway.provenance[name]
        ),
    )


def _scaled_osds(cpu: CpuModel, cluster: DescribedCluster) -> CpuModel:
    """Scale times of requests. That of a frame is a cost of large messages, and scales as work on bytes."""
    requests = scaled_times(cpu, cluster.cpu_factor, cluster.cpu_source)
    frames = scaled_times(
        cpu, cluster.arithmetic_factor, cluster.cpu_source, suffix="frame_ns"
    )
    return requests.with_numbers(
        {"frame_ns": frames.frame_ns}, frames.provenance["frame_ns"]
    )


class _ObjectRun:
    """The run of a row, and the numbers that rows may state."""

    def __init__(self, row: ObjectRow, engine: str) -> None:
        self._cluster = cluster_of(row)
        scenario = scenario_of(row, self._cluster)
        models = models_of(scenario, self._cluster)
        (cell,) = cells(scenario)
        self._row = row
        self._result: Run = run_cell(scenario, cell, engine, models)
        mean_bytes = sum(size * share for size, share in row.sizes)
        load = scenario.workload
        self._load = load
        #: Objects of the source for each simulated request
        self._objects = load.mean_object_bytes / mean_bytes
        busy = np.array(
            [host["utilisation"] for host in self._result.processors["hosts"]]
        )
        cores = np.array([host["cores"] for host in self._result.processors["hosts"]])
        self._busy_cores = float((busy * cores).sum())

    def numbers(self) -> Row:
        """Return the other columns of a result row."""
        numbers = self._result.row
        return {
            "scheme": self._row.scheme,
            "iops": numbers.iops,
            "throughput_bytes_per_s": numbers.throughput_bytes_per_s,
            "latency_mean_ns": numbers.latency_mean_ns,
            "bottleneck": numbers.bottleneck,
            "utilisation": self._result.utilisation,
            "busy_cores": self._busy_cores,
        }

    def value_of(self, row: ObjectRow) -> float:
        """Return the simulated number of a row, in its unit."""
        metric = row.metric.lower()
        if "core" in metric or ("cpu" in metric and _CORES.fullmatch(row.unit)):
            return self._cores(metric) / self._divisor(row)
        if "cpu" in metric and "%" in row.unit:
            return 100 * self._cores(metric) / self._divisor(row, self._threads)
        if row.unit in _BYTES:
            return (
                self._rate(row, in_bytes=True) / _BYTES[row.unit] / self._divisor(row)
            )
        count = _COUNT_UNIT.fullmatch(row.unit)
        if count is not None:
            factor = _COUNT_FACTORS[(count[1] or "").lower()]
            return self._rate(row, in_bytes=False) / factor / self._divisor(row)
        if row.unit in _TIMES_NS and (not metric or _LATENCIES.search(metric)):
            return self._latency_ns(row) / _TIMES_NS[row.unit]
        raise NotComputedError(f"no rule computes {row.metric!r} in {row.unit!r}")

    @property
    def _threads(self) -> float:
        """Hardware threads of all hosts with OSDs or gateways [count]."""
        hosts = len(self._result.processors["hosts"])
        return float(self._cluster.threads_per_host * hosts)

    def _divisor(self, row: ObjectRow, otherwise: float = 1.0) -> float:
        """Return what the number of a row is counted for, such as the gateways, by default `otherwise`."""
        hosts = self._cluster.hosts - row.hosts_stopped
        counts = {
            r"rgw|gateway": self._cluster.gateways,
            r"osd|drive|disk": hosts * self._cluster.osds_per_host,
            r"node|host|server": hosts,
        }
        quantity = f"{row.metric} {row.unit}".lower()
        for pattern, count in counts.items():
            if re.search(rf"(?:\bper |/\s*|\beach )(?:{pattern})", quantity):
                return float(count)
        if re.search(r"\bper (?!s\b|sec)|\beach ", quantity):
            raise NotComputedError(f"no rule computes {row.metric!r} in {row.unit!r}")
        return otherwise

    def _cores(self, metric: str) -> float:
        """Return busy cores of gateways or OSDs, which share hosts: a part of all, by their planned work."""
        planned_ns = self._result.row.cpu_ns_per_op
        if not planned_ns:
            raise NotComputedError("the run has no processor time to divide")
        of_osds_ns: float = sum(
            one["cpu_ns_per_op"] for one in self._result.processors["threads"]
        )
        of_gateways = self._busy_cores * (1 - of_osds_ns / planned_ns)
        if "osd" in metric:
            return self._busy_cores - of_gateways
        if "rgw" in metric or "gateway" in metric:
            return of_gateways
        return self._busy_cores

    def _own(self, row: ObjectRow) -> Any:
        """Return which of the requests in the window are of the row's operation."""
        requested = self._result.requested
        assert self._result.window is not None
        held = self._result.window.holds(requested)
        if not row.is_mixed or row.s3_op == "all":
            return held
        if row.s3_op == "put":
            return held & requested.is_write
        if row.s3_op == "get":
            return held & ~requested.is_write & (requested.lengths_bytes > 0)
        raise NotComputedError(
            f"rows of mixed loads state no {row.s3_op} that a run tells apart"
        )

    def _rate(self, row: ObjectRow, *, in_bytes: bool) -> float:
        """Return bytes or requests of the row's operation per second, objects of a LIST if it counts them."""
        window = self._result.window
        assert window is not None
        own = self._own(row)
        span_s = (window.end_ns - window.start_ns) / 1e9
        if in_bytes:
            return float(self._result.requested.lengths_bytes[own].sum() / span_s)
        listed = 1.0
        if row.s3_op == "list" and "obj" in row.unit.lower():
            listed = min(_LISTED_KEYS, self._load.objects / self._load.buckets)
        return float(own.sum() / span_s) * self._objects * listed

    def _latency_ns(self, row: ObjectRow) -> float:
        """Return the latency of the row's operation that its metric names, by default the mean [ns]."""
        requested = self._result.requested
        own = self._own(row)[requested.done]
        if not own.any():
            raise NotComputedError(f"no {row.s3_op} was completed in the window")
        latencies_ns = requested.latencies_ns[own] / self._objects
        metric = row.metric.lower()
        if "ttfb" in metric or "first byte" in metric:
            raise NotComputedError("the time to the first byte is not simulated")
        if re.search(r"\bmax|\bmin\b|minimum|worst|stddev|deviation", metric):
            raise NotComputedError(
                f"a run of some thousand requests has no {row.metric!r} to compare"
            )
        if "median" in metric:
            return float(np.percentile(latencies_ns, 50))
        percent = re.search(r"(\d\d(?:\.\d+)?)", metric)
        if percent is None:
            return float(latencies_ns.mean())
        share = float(percent[1])
        if len(latencies_ns) * (1 - share / 100) < _BEYOND_MIN:
            raise NotComputedError(
                f"{len(latencies_ns):,} requests in the window have no {share:g} % to compare"
            )
        return float(np.percentile(latencies_ns, share))

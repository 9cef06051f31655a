"""Simulate rows that share a run, and compute the number that each of them states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import gcd
from typing import Any, Final

import numpy as np

from stripesim.calibration.measured.hardware import scaled_times
from stripesim.models.coding import parse_scheme
from stripesim.models.cpu import CpuModel
from stripesim.models.problems import NotComputedError, one_line
from stripesim.scenarios.cells.measured import autoscaled_pg_num
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.run import run_cell
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
from stripesim.sim.run import Run

#: Requests of a run over those in flight, and at least this many.
_ROUNDS: Final = 6
_REQUESTS_MIN: Final = 3_000
#: Largest object of a graph under all codes: larger ones are simulated as requests of this size, one after
#: another.
LARGEST_BYTES: Final = 64 << 20
_CHUNK_BYTES: Final = 4 << 20
_PG_NUM_MAX: Final = 16_384
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
_TIMES_NS: Final = {"us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_PERCENTS: Final = {"median": 50, "50": 50, "90": 90, "95": 95, "99": 99}
_COUNTS: dict[str, float] = {
    "1/s": 1.0,
    "ops/s": 1.0,
    "op/s": 1.0,
    "obj/s": 1.0,
    "IOPS": 1.0,
}
_COUNTS |= dict.fromkeys(("k/s", "K/s", "kops/s", "kIOPS", "k ops/s", "kobj/s"), 1e3)


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
    cluster = read_cluster(row.hardware)
    if row.is_mixed and not cluster.mix:
        mix = read_mix(f"{row.op} {row.block} {row.threads} {row.state}")
        cluster = replace(cluster, mix=mix)
    if row.hosts is None:
        return cluster
    gateways = max(1, round(cluster.gateways * row.hosts / cluster.hosts))
    return replace(cluster, hosts=row.hosts, gateways=gateways)


def scenario_of(row: ObjectRow, cluster: DescribedCluster) -> Scenario:
    """Write a row as a scenario.

    An object above `LARGEST_BYTES` counts as several of that size, so that its bytes per second stay.
    """
    scheme = parse_scheme(row.scheme)
    shares: dict[int, float] = {}
    for size, share in row.sizes:
        pieces = max(1.0, size / LARGEST_BYTES)
        own_bytes = min(size, LARGEST_BYTES)
        shares[own_bytes] = shares.get(own_bytes, 0.0) + share * pieces
    hosts = cluster.hosts - row.hosts_stopped
    place = "own" if cluster.gateways_apart else "osd-hosts"
    # As many clients as use all gateways evenly, and exactly so many requests in flight.
    clients = gcd(row.in_flight, cluster.gateways)
    queue_depth = row.in_flight // clients
    workload: dict[str, Any] = {
        "kind": "s3",
        "object_sizes_bytes": list(shares),
        "size_shares": list(shares.values()),
        "clients": clients,
        "queue_depth": queue_depth,
        "requests": max(_REQUESTS_MIN, _ROUNDS * clients * queue_depth),
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
    domain = "host" if scheme.width <= hosts else "osd"
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
                "networks": cluster.networks,
                "public_gbit_per_s": cluster.gbit_per_s,
                "private_gbit_per_s": cluster.gbit_per_s,
                "gateways": {"count": cluster.gateways, "place": place},
            },
            "workload": workload,
        },
        label=row.id,
    )


def _autoscaled(cluster: DescribedCluster, width: int) -> int:
    osds = cluster.hosts * cluster.osds_per_host
    return min(_PG_NUM_MAX, autoscaled_pg_num(osds, width))


def models_of(scenario: Scenario, cluster: DescribedCluster) -> Models:
    """Build the models of a described cluster: the fitted ones on another processor."""
    models = changed_models(build_models(scenario))
    assert models.gateway is not None
    factor, source = cluster.cpu_factor, cluster.cpu_source
    gateway = scaled_times(models.gateway, factor, source)
    # A gateway's work on bytes is mostly checksums and encryption. Clients have machines of their own.
    own = scaled_times(gateway, cluster.gateway_factor, source, suffix="_ns_per_byte")
    client_ns = gateway.client_ns_per_byte
    origin = {"client_ns_per_byte": gateway.provenance["client_ns_per_byte"]}
    return replace(
        models,
        cpu=_scaled_osds(models.cpu, cluster),
        client=scaled_times(models.client, factor, source),
        gateway=replace(
            own,
            client_ns_per_byte=client_ns,
            provenance={**own.provenance, **origin},
        ),
    )


def _scaled_osds(cpu: CpuModel, cluster: DescribedCluster) -> CpuModel:
    """Scale times of requests. That of a frame is a cost of large messages, and scales as work on bytes."""
    requests = scaled_times(cpu, cluster.cpu_factor, cluster.cpu_source)
    frames = scaled_times(
        cpu, cluster.arithmetic_factor, cluster.cpu_source, suffix="frame_ns"
    )
    origin = {"frame_ns": frames.provenance["frame_ns"]}
    return replace(
        requests,
        frame_ns=frames.frame_ns,
        provenance={**requests.provenance, **origin},
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
        #: Objects of the source for each simulated request
        self._objects = load.mean_object_bytes / mean_bytes
        busy = np.array(
            [host["utilisation"] for host in self._result.processors["hosts"]]
        )
        cores = np.array([host["cores"] for host in self._result.processors["hosts"]])
        self._busy_cores = float((busy * cores).sum())

    def numbers(self) -> Row:
        """Return what a result row shows besides the value."""
        numbers = self._result.row
        return {
            "scheme": self._row.scheme,
            "iops": numbers.iops,
            "throughput_bytes_per_s": numbers.throughput_bytes_per_s,
            "latency_mean_ns": numbers.latency_mean_ns,
            "bottleneck": numbers.bottleneck,
            "busy_cores": self._busy_cores,
        }

    def value_of(self, row: ObjectRow) -> float:
        """Return the simulated number of a row, in its unit."""
        metric = row.metric.lower()
        if "core" in metric:
            return self._cores(metric)
        if "cpu" in metric and "%" in row.unit:
            count = self._cluster.threads_per_host * len(
                self._result.processors["hosts"]
            )
            return 100 * self._busy_cores / count
        if row.unit in _BYTES:
            return self._rate(row, in_bytes=True) / _BYTES[row.unit]
        if row.unit in _COUNTS:
            return self._rate(row, in_bytes=False) / _COUNTS[row.unit]
        if row.unit in _TIMES_NS and "lat" in metric:
            return self._latency_ns(row) / _TIMES_NS[row.unit]
        raise NotComputedError(f"no rule computes {row.metric!r} in {row.unit!r}")

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
            osds = self._cluster.hosts * self._cluster.osds_per_host
            own = self._busy_cores - of_gateways
            return own / osds if "per osd" in metric else own
        if "rgw" in metric:
            each = "per rgw" in metric
            return of_gateways / self._cluster.gateways if each else of_gateways
        return self._busy_cores

    def _own(self, row: ObjectRow) -> Any:
        """Return which of the requests in the window are of the row's operation."""
        requested = self._result.requested
        assert self._result.window is not None
        held = self._result.window.holds(requested)
        if not row.is_mixed:
            return held
        if row.s3_op == "put":
            return held & requested.is_write
        if row.s3_op == "get":
            return held & ~requested.is_write & (requested.lengths_bytes > 0)
        raise NotComputedError(
            f"rows of mixed loads state no {row.s3_op} that a run tells apart"
        )

    def _rate(self, row: ObjectRow, *, in_bytes: bool) -> float:
        """Return bytes or objects of the row's operation per second."""
        window = self._result.window
        assert window is not None
        own = self._own(row)
        span_s = (window.end_ns - window.start_ns) / 1e9
        if in_bytes:
            return float(self._result.requested.lengths_bytes[own].sum() / span_s)
        return float(own.sum() / span_s) * self._objects

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
        for word, percent in _PERCENTS.items():
            if word in metric:
                return float(np.percentile(latencies_ns, percent))
        return float(latencies_ns.mean())

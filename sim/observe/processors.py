"""Processor use by class of thread and by host."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from stripesim.sim.ceph.cluster import Cluster
from stripesim.sim.engine.program import EngineRun
from stripesim.sim.observe.recording import woken_ns
from stripesim.sim.observe.result_row import ResultRow

# Classes of an OSD's threads and their kinds of resources, in the order that requests use
# them.
THREADS = {
    "messenger": ("messenger",),
    "worker": ("worker", "aio", "reader"),
    "kv": ("kv", "finisher"),
}


def processor_use(
    cluster: Cluster, run: EngineRun, row: ResultRow, counted: Mapping[str, int]
) -> dict[str, Any]:
    """Compute the processor time of each class of threads, and the utilisation of hosts.

    Parameters
    ----------
    cluster
        The cluster.
    run
        The engine's result.
    row
        The result row of the run.
    counted
        Counters of the run, with wake-ups.

    Returns
    -------
    dict
        ``cpu_ns_per_op``, ``paired_slowdown_fraction``, ``threads`` and ``hosts``.

    Notes
    -----
    Threads are in use from acquisition to release, including waits for a core, a lock or a device.
    """
    slowdown = cluster.models.cpu.paired_slowdown_fraction
    if cluster.cpu_limit_per_osd is not None:
        # Threads of an OSD stop at its limit, long before they share cores.
        slowdown = 0.0
    span_ns = max(1, run.end_ns)
    return {
        "cpu_ns_per_op": row.cpu_ns_per_op,
        "paired_slowdown_fraction": slowdown,
        "threads": _thread_use(cluster, run, span_ns, row.requests, counted),
        "hosts": _host_use(cluster, run, span_ns),
    }


def _thread_use(
    cluster: Cluster,
    run: EngineRun,
    span_ns: int,
    requests: int,
    counted: Mapping[str, int],
) -> list[dict[str, Any]]:
    """Return the processor time and the occupancy of each class of an OSD's threads."""
    resources = cluster.resources
    kinds = resources.numbered_kinds
    woken = woken_ns(cluster, run)
    planned_ns = _planned_ns(cluster, counted)
    threads = []
    for name, own_kinds in THREADS.items():
        first = kinds.are(own_kinds[0])
        counts = resources.capacities[first]
        in_use = run.held_ns[first] / (counts * span_ns)
        cpu_ns = planned_ns[name] + int(woken[kinds.are(*own_kinds)].sum())
        threads.append(
            {
                "thread": name,
                "count_per_osd": int(counts.sum()) // cluster.osds,
                "cpu_ns_per_op": cpu_ns / requests,
                "in_use_mean": float(in_use.mean()),
                "in_use_highest": float(in_use.max()),
            }
        )
    return threads


def _planned_ns(cluster: Cluster, counted: Mapping[str, int]) -> dict[str, int]:
    """Return the processor time of each class of threads without wake-ups [ns]."""
    messenger_ns = counted["messenger_ns"]
    kv_ns = counted["kv_ns"]
    worker_ns = counted["cpu_ns"] - messenger_ns - kv_ns
    gateways = cluster.gateways
    if gateways is not None and gateways.on_osd_hosts:
        worker_ns -= counted["gateway_ns"]
    return {"messenger": messenger_ns, "kv": kv_ns, "worker": worker_ns}


def _host_use(
    cluster: Cluster, run: EngineRun, span_ns: int
) -> list[dict[str, int | float]]:
    """Return the cores and the utilisation of each host."""
    index = cluster.host_resource(np.arange(cluster.hosts), "cpu")
    busy_ns = run.busy_ns[index].astype(np.float64)
    if cluster.osds_have_cores:
        own_ns = run.busy_ns[cluster.core_resource(np.arange(cluster.osds))]
        busy_ns += np.bincount(cluster.osd_hosts, own_ns, cluster.hosts)
    cores = cluster.cores
    utilisation = np.minimum(1.0, busy_ns / (cores * span_ns))
    osd_cores = cores
    if cluster.cores_per_osd is not None:
        osd_cores = cores - cluster.free_cores
    columns = zip(cores, osd_cores, utilisation, strict=True)
    return [
        {
            "host": host,
            "cores": int(count),
            "osd_cores": int(own_count),
            "utilisation": float(share),
        }
        for host, (count, own_count, share) in enumerate(columns)
    ]

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
    resources = cluster.resources
    span_ns = max(1, run.end_ns)
    kinds = resources.numbered_kinds
    woken = woken_ns(cluster, run)
    planned_ns = {"messenger": counted["messenger_ns"], "kv": counted["kv_ns"]}
    others_ns = sum(planned_ns.values())
    gateways = cluster.gateways
    if gateways is not None and gateways.on_osd_hosts:
        others_ns += counted["gateway_ns"]
    planned_ns["worker"] = counted["cpu_ns"] - others_ns
    threads = []
    for name, own in THREADS.items():
        first = kinds.are(own[0])
        counts = resources.capacities[first]
        in_use = run.held_ns[first] / (counts * span_ns)
        cpu_ns = planned_ns[name] + int(woken[kinds.are(*own)].sum())
        threads.append(
            {
                "thread": name,
                "count_per_osd": int(counts.sum()) // cluster.osds,
                "cpu_ns_per_op": cpu_ns / row.requests,
                "in_use_mean": float(in_use.mean()),
                "in_use_highest": float(in_use.max()),
            }
        )
    index = cluster.host_resource(np.arange(cluster.hosts), "cpu")
    busy_ns = run.busy_ns[index].astype(np.float64)
    if cluster.osds_have_cores:
        own_ns = run.busy_ns[cluster.core_resource(np.arange(cluster.osds))]
        busy_ns += np.bincount(cluster.osd_hosts, own_ns, cluster.hosts)
    cores = cluster.cores
    busy = np.minimum(1.0, busy_ns / (cores * span_ns))
    of_osds = cores
    if cluster.cores_per_osd is not None:
        of_osds = cores - cluster.free_cores
    hosts = [
        {
            "host": host,
            "cores": int(count),
            "osd_cores": int(own),
            "utilisation": float(share),
        }
        for host, (count, own, share) in enumerate(
            zip(cores, of_osds, busy, strict=True)
        )
    ]
    slowdown = cluster.models.cpu.paired_slowdown_fraction
    if cluster.cpu_limit_per_osd is not None:
        # Threads of an OSD stop at its limit, long before they share cores.
        slowdown = 0.0
    return {
        "cpu_ns_per_op": row.cpu_ns_per_op,
        "paired_slowdown_fraction": slowdown,
        "threads": threads,
        "hosts": hosts,
    }

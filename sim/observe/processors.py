"""Use of the processors: by class of thread, and by host."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from stripesim.sim.ceph.cluster import Cluster
from stripesim.sim.engine.program import EngineRun
from stripesim.sim.observe.recording import woken_ns

# Classes of threads of an OSD → the kinds of resources that they are, the first as a request meets it.
THREADS = {
    "messenger": ("messenger",),
    "worker": ("worker", "aio", "reader"),
    "kv": ("kv", "finisher"),
}


def processor_use(
    cluster: Cluster, run: EngineRun, row: Mapping[str, Any], counted: Mapping[str, int]
) -> dict[str, Any]:
    """Compute what each class of threads takes of the processors, and how busy hosts are.

    A class's threads are in use from being taken to being given back: also while they wait for a core, a lock
    or a device.
    """
    resources, span_ns = cluster.resources, max(1, run.end_ns)
    kinds = np.array(resources.kinds)
    woken = woken_ns(cluster, run)
    planned_ns = {"messenger": counted["messenger_ns"], "kv": counted["kv_ns"]}
    planned_ns["worker"] = counted["cpu_ns"] - sum(planned_ns.values())
    threads = []
    for name, own in THREADS.items():
        first = kinds == own[0]
        in_use = run.held_ns[first] / (resources.capacities[first] * span_ns)
        threads.append(
            {
                "thread": name,
                "count_per_osd": int(resources.capacities[first].sum()) // cluster.osds,
                "cpu_ns_per_op": (
                    planned_ns[name] + int(woken[np.isin(kinds, own)].sum())
                )
                / row["requests"],
                "in_use_mean": float(in_use.mean()),
                "in_use_highest": float(in_use.max()),
            }
        )
    cores = cluster.host_resource(np.arange(cluster.hosts), "cpu")
    busy = np.minimum(1.0, run.busy_ns[cores] / (resources.capacities[cores] * span_ns))
    hosts = [
        {"host": host, "cores": int(count), "utilisation": float(share)}
        for host, (count, share) in enumerate(
            zip(resources.capacities[cores], busy, strict=True)
        )
    ]
    return {"cpu_ns_per_op": row["cpu_ns_per_op"], "threads": threads, "hosts": hosts}

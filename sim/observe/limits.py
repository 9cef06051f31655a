"""What limits a run: resources near their limit, and the one that is the bottleneck."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stripesim.sim.ceph.cluster import Cluster
from stripesim.sim.engine.program import POOL, EngineRun

#: A resource is near its limit from this utilisation on.
NEAR = 0.7
# Resources of a placement group: a queue there is a limit however short each group is busy, since a
# sequential stream moves from one to the next.
_SERIAL = "pg."


@dataclass(frozen=True)
class ResourceUse:
    """Use of a class of resource over a run."""

    kind: str  # ``pg.lock``, ``ssd``, ``cpu`` …
    wait_fraction: float  # Its share of all waiting.
    utilisation: float  # Of its busiest member, 0 to 1.
    mean_utilisation: float  # Of all its members, 0 to 1.
    latency_share: float  # Time that requests wait for it, over all the time that they take, 0 to 1.
    in_use: float = 0.0  # Members in use at a time, on average.
    line_share: float = 0.0  # Of the time that requests wait for it or have it, what they wait, 0 to 1.

    @property
    def is_limit(self) -> bool:
        """Whether the class as a whole is near its limit, not only some member."""
        lined_up = self.in_use >= NEAR and self.line_share >= NEAR
        serial = self.kind.startswith(_SERIAL) and (self.latency_share >= NEAR or lined_up)
        return self.mean_utilisation >= NEAR or serial


def resource_use(cluster: Cluster, run: EngineRun, latency_ns: int) -> tuple[ResourceUse, ...]:
    """Say of each class of resource how busy it was and how much of all waiting was for it."""
    resources = cluster.resources
    names, kinds = np.unique(np.array(resources.kinds), return_inverse=True)
    # In the order of the resources, so that a listing follows a request's way.
    order = np.argsort([resources.kinds.index(name) for name in names])
    used_ns = np.where(resources.disciplines == POOL, run.held_ns, run.busy_ns)
    # A service begun before the end of a bounded run is counted whole.
    each = np.minimum(1.0, used_ns / (resources.capacities * max(1, run.end_ns)))
    highest = np.zeros(len(names))
    np.maximum.at(highest, kinds, each)
    mean = np.bincount(kinds, weights=each * resources.capacities) / np.bincount(
        kinds, weights=resources.capacities
    )
    waited = np.bincount(kinds, weights=run.waited_ns.astype(np.float64))
    held = np.bincount(kinds, weights=used_ns.astype(np.float64))
    total = float(waited.sum())
    return tuple(
        ResourceUse(
            kind=str(names[index]),
            wait_fraction=float(waited[index]) / total if total else 0.0,
            utilisation=float(highest[index]),
            mean_utilisation=float(mean[index]),
            latency_share=min(1.0, float(waited[index]) / latency_ns) if latency_ns else 0.0,
            in_use=float(held[index]) / max(1, run.end_ns),
            line_share=float(waited[index] / (waited[index] + held[index])) if waited[index] else 0.0,
        )
        for index in order
    )


def limits_of_run(uses: tuple[ResourceUse, ...]) -> dict[str, Any]:
    """Return what limited a run, as keys of a result row.

    The mean decides: one hot OSD of 120 is a hot spot, and no purchase for all of them would help it. Locks
    and pipelines of placement groups limit where requests spend `NEAR` of their time in line for
    them, since each group is busy only while requests come to it; and where hardly a moment passes without
    one in use (`NEAR` or more of them on average) and requests wait for `NEAR` of the time that they are at
    one: the few locks that a sequential stream is at are then at their limit, however many others are idle.
    For an M/M/1 queue the latter is a utilisation of `NEAR`.
    """
    near = [use for use in uses if use.utilisation >= NEAR or use.is_limit]
    near.sort(key=lambda use: (use.is_limit, use.mean_utilisation, use.utilisation), reverse=True)
    first = near[0] if near and near[0].is_limit else None
    serial = [use for use in near if use.is_limit and use.kind.startswith(_SERIAL)]
    if serial:
        # In line for a group's lock, requests cannot load anything else further.
        first = max(serial, key=lambda use: use.latency_share)
    return {
        "limits": [
            {
                "resource": use.kind,
                "mean_utilisation": use.mean_utilisation,
                "highest_utilisation": use.utilisation,
                "latency_share": use.latency_share,
                "in_use": use.in_use,
                "line_share": use.line_share,
                "hot_spot": not use.is_limit,
            }
            for use in near
        ],
        "bottleneck": "none" if first is None else first.kind,
        "bottleneck_utilisation": None if first is None else first.utilisation,
        "bottleneck_mean_utilisation": None if first is None else first.mean_utilisation,
        "bottleneck_wait_fraction": None if first is None else first.wait_fraction,
    }


def limits_text(limits: Iterable[Mapping[str, Any]]) -> str:
    """Write limits in a line.

    >>> use = {"mean_utilisation": 0.83, "highest_utilisation": 0.9, "hot_spot": False}
    >>> limits_text([{"resource": "cpu", **use}])
    'cpu 83 % (busiest 90 %)'
    """

    def words(one: Mapping[str, Any]) -> str:
        if not one["hot_spot"] and one["mean_utilisation"] < NEAR:
            # One of many locks at a time: the mean over all of them says nothing.
            return f"{one['in_use']:.2g} in use, {100 * one['line_share']:.0f} % of the time there in line"
        hot = "hot spot " if one["hot_spot"] else ""
        busiest = f"(busiest {100 * one['highest_utilisation']:.0f} %)"
        return f"{hot}{100 * one['mean_utilisation']:.0f} % {busiest}"

    return ", ".join(f"{one['resource']} {words(one)}" for one in limits)

"""What limits a run: resources near their limit, the bottleneck, and where requests spend their time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stripesim.sim.ceph.cluster import Cluster
from stripesim.sim.engine.program import POOL, EngineRun

#: A resource is near its limit from this utilisation on.
NEAR = 0.7
#: A single member is full from this utilisation on: requests pile up in front of it, whatever others do.
FULL = 0.9
# Resources of a placement group: a queue there is a limit however short each group is busy, since a
# sequential stream moves from one to the next.
_SERIAL = "pg."

#: Bottleneck of a closed loop in which no resource is near its limit: as many requests as are in flight are
#: served in each latency, so only a shorter latency (or more requests in flight) raises the rate.
LATENCY = "latency"
#: Bottleneck of requests that arrive by the clock and are all served.
NO_BOTTLENECK = "none"


@dataclass(frozen=True)
class ResourceUse:
    """Use of a class of resource over a run."""

    kind: str  # ``pg.lock``, ``ssd``, ``cpu`` …
    wait_fraction: float  # Its share of all waiting.
    utilisation: float  # Of its busiest member, 0 to 1.
    mean_utilisation: float  # Of all its members, 0 to 1.
    latency_share: float  # Time that requests wait for it, over all the time that they take, 0 to 1.
    in_use: float = 0.0  # Members in use at a time, on average.
    line_share: float = (
        0.0  # Of the time that requests wait for it or have it, what they wait, 0 to 1.
    )
    # Share of the time that requests wait for resources or are served by them, 0 to 1. A thread or a lock
    # counts while requests wait for it: what they do while they have it belongs to other resources.
    time_share: float = 0.0

    @property
    def is_limit(self) -> bool:
        """Whether the class as a whole is near its limit, not only some member."""
        lined_up = self.in_use >= NEAR and self.line_share >= NEAR
        serial = self.kind.startswith(_SERIAL) and (
            self.latency_share >= NEAR or lined_up
        )
        return self.mean_utilisation >= NEAR or serial


def resource_use(
    cluster: Cluster, run: EngineRun, latency_ns: int
) -> tuple[ResourceUse, ...]:
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
    served = np.bincount(
        kinds, weights=np.where(resources.disciplines == POOL, 0, run.busy_ns)
    )
    spent = waited + served
    total_spent = max(1.0, float(spent.sum()))
    return tuple(
        ResourceUse(
            kind=str(names[index]),
            wait_fraction=float(waited[index]) / total if total else 0.0,
            utilisation=float(highest[index]),
            mean_utilisation=float(mean[index]),
            latency_share=min(1.0, float(waited[index]) / latency_ns)
            if latency_ns
            else 0.0,
            in_use=float(held[index]) / max(1, run.end_ns),
            line_share=float(waited[index] / (waited[index] + held[index]))
            if waited[index]
            else 0.0,
            time_share=float(spent[index]) / total_spent,
        )
        for index in order
    )


def limits_of_run(uses: tuple[ResourceUse, ...], *, is_closed: bool) -> dict[str, Any]:
    """Return what limited a run, as keys of a result row.

    `is_closed`: whether clients keep requests in flight, so that a run with no resource near its limit is
    limited by its latency.

    The mean decides first. Where no class is near its limit on average, the class with a full member is the
    bottleneck: a hot spot, such as one OSD with more placement groups than the others. Locks
    and pipelines of placement groups limit where requests spend `NEAR` of their time in line for
    them, since each group is busy only while requests come to it; and where hardly a moment passes without
    one in use (`NEAR` or more of them on average) and requests wait for `NEAR` of the time that they are at
    one: the few locks that a sequential stream is at are then at their limit, however many others are idle.
    For an M/M/1 queue the latter is a utilisation of `NEAR`.
    """
    near = [use for use in uses if use.utilisation >= NEAR or use.is_limit]
    near.sort(
        key=lambda use: (use.is_limit, use.mean_utilisation, use.utilisation),
        reverse=True,
    )
    first = near[0] if near and near[0].is_limit else None
    serial = [use for use in near if use.is_limit and use.kind.startswith(_SERIAL)]
    if serial:
        # In line for a group's lock, requests cannot load anything else further.
        first = max(serial, key=lambda use: use.latency_share)
    if first is None:
        full = [use for use in near if use.utilisation >= FULL]
        first = max(full, key=lambda use: use.utilisation, default=None)
    slowest = max(uses, key=lambda use: use.time_share)
    without_limit = LATENCY if is_closed else NO_BOTTLENECK
    return {
        "latency_at": slowest.kind,
        "latency_at_fraction": slowest.time_share,
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
        "bottleneck": without_limit if first is None else first.kind,
        "bottleneck_utilisation": None if first is None else first.utilisation,
        "bottleneck_mean_utilisation": None
        if first is None
        else first.mean_utilisation,
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

"""Find what limits a run: resources near their limit, the bottleneck, where requests spend their time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stripesim.sim.ceph.cluster import Cluster
from stripesim.sim.engine.program import POOL, EngineRun

#: Utilisation from which a resource is near its limit.
NEAR = 0.7
#: Utilisation from which a single member is full: requests queue for it even if others are idle.
FULL = 0.9
# Resources of a placement group: a queue for them is a limit even if each group is rarely busy, since a
# sequential stream moves from one group to the next.
_SERIAL = "pg."

#: Bottleneck of a closed loop in which no resource is near its limit: only a shorter latency or more requests
#: in flight raise the rate.
LATENCY = "latency"
#: Bottleneck of an open loop whose requests are all served.
NO_BOTTLENECK = "none"


@dataclass(frozen=True)
class ResourceUse:
    """Use of a class of resource over a run."""

    kind: str  # ``pg.lock``, ``ssd``, ``cpu`` …
    wait_fraction: float  # Its share of all waiting.
    utilisation: float  # Of its busiest member, 0 to 1.
    mean_utilisation: float  # Of all its members, 0 to 1.
    latency_share: float  # Time that requests wait for it, over their latency, 0 to 1.
    in_use: float = 0.0  # Mean members in use.
    # Share of waiting in the time that requests wait for it or hold it, 0 to 1.
    line_share: float = 0.0
    # Share of the time that requests wait for resources or are served by them, 0 to 1. A thread or a lock
    # only counts while requests wait for it; the time that they hold it belongs to other resources.
    time_share: float = 0.0

    @property
    def is_limit(self) -> bool:
        """Return True if the class as a whole is near its limit, not only some member."""
        if self.mean_utilisation >= NEAR:
            return True
        lined_up = self.in_use >= NEAR and self.line_share >= NEAR
        return self.is_serial and (self.latency_share >= NEAR or lined_up)

    @property
    def is_serial(self) -> bool:
        """Return True for a resource of placement groups, which serves one request of a group at a time."""
        return self.kind.startswith(_SERIAL)


def resource_use(
    cluster: Cluster, run: EngineRun, latency_ns: int
) -> tuple[ResourceUse, ...]:
    """Return the use of each class of resource, in the order in which requests meet them.

    `latency_ns` is the sum over all requests [ns].
    """
    resources = cluster.resources
    names, kinds = np.unique(np.array(resources.kinds), return_inverse=True)

    def by_kind(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.bincount(kinds, weights=values)

    span_ns = max(1, run.end_ns)
    is_pool = resources.disciplines == POOL
    used_ns = np.where(is_pool, run.held_ns, run.busy_ns)
    # A service that outlasts a bounded run is counted whole, hence the minimum.
    each = np.minimum(1.0, used_ns / (resources.capacities * span_ns))
    highest = np.zeros(len(names))
    np.maximum.at(highest, kinds, each)
    mean = by_kind(each * resources.capacities) / by_kind(resources.capacities)
    waited = by_kind(run.waited_ns)
    held = by_kind(used_ns)
    spent = waited + by_kind(np.where(is_pool, 0, run.busy_ns))
    all_waited = float(waited.sum())
    all_spent = float(spent.sum())
    order = np.argsort([resources.kinds.index(name) for name in names])
    return tuple(
        ResourceUse(
            kind=str(names[index]),
            wait_fraction=_ratio(waited[index], all_waited),
            utilisation=float(highest[index]),
            mean_utilisation=float(mean[index]),
            latency_share=min(1.0, _ratio(waited[index], latency_ns)),
            in_use=float(held[index]) / span_ns,
            line_share=_ratio(waited[index], waited[index] + held[index]),
            time_share=float(spent[index]) / max(1.0, all_spent),
        )
        for index in order
    )


def _ratio(part: float, total: float) -> float:
    return float(part / total) if total else 0.0


def limits_of_run(uses: tuple[ResourceUse, ...], *, is_closed: bool) -> dict[str, Any]:
    """Return what limited a run, as keys of a result row.

    `is_closed`: clients keep requests in flight, so that a run with no resource near its limit is limited by
    its latency.

    Notes
    -----
    The mean decides first. Where no class is near its limit on average, the class with a full member is the
    bottleneck: a hot spot, such as one OSD with more placement groups than the others.

    Locks and pipelines of placement groups are a limit if requests spend `NEAR` of their time waiting for
    them, since each group is busy only while requests come to it. They also are if at least `NEAR` of them
    are in use on average and requests wait for `NEAR` of the time that they spend at one: the few locks that
    a sequential stream uses are then at their limit, however many others are idle. For an M/M/1 queue the
    latter is a utilisation of `NEAR`.
    """
    near = [use for use in uses if use.utilisation >= NEAR or use.is_limit]
    near.sort(
        key=lambda use: (use.is_limit, use.mean_utilisation, use.utilisation),
        reverse=True,
    )
    first = _bottleneck(near)
    slowest = max(uses, key=lambda use: use.time_share)
    row: dict[str, Any] = {
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
        "bottleneck": LATENCY if is_closed else NO_BOTTLENECK,
        "bottleneck_utilisation": None,
        "bottleneck_mean_utilisation": None,
        "bottleneck_wait_fraction": None,
    }
    if first is not None:
        row |= {
            "bottleneck": first.kind,
            "bottleneck_utilisation": first.utilisation,
            "bottleneck_mean_utilisation": first.mean_utilisation,
            "bottleneck_wait_fraction": first.wait_fraction,
        }
    return row


def _bottleneck(near: list[ResourceUse]) -> ResourceUse | None:
    """Return the bottleneck among classes near their limit, sorted from the nearest."""
    serial = [use for use in near if use.is_limit and use.is_serial]
    if serial:
        # Requests that wait for a group's lock cannot load other resources further.
        return max(serial, key=lambda use: use.latency_share)
    if near and near[0].is_limit:
        return near[0]
    full = [use for use in near if use.utilisation >= FULL]
    return max(full, key=lambda use: use.utilisation, default=None)


def resource_name(kind: str) -> str:
    """Return the name of a class of resources in texts, where the drive of an OSD may be a disk.

    >>> resource_name("ssd.write"), resource_name("cpu")
    ('drive.write', 'cpu')
    """
    return "drive" + kind.removeprefix("ssd") if kind.startswith("ssd") else kind


def limits_text(limits: Iterable[Mapping[str, Any]]) -> str:
    """Write limits in a line.

    >>> use = {"mean_utilisation": 0.83, "highest_utilisation": 0.9, "hot_spot": False}
    >>> limits_text([{"resource": "cpu", **use}])
    'cpu 83 % (busiest 90 %)'
    """
    return ", ".join(_limit_text(limit) for limit in limits)


def _limit_text(limit: Mapping[str, Any]) -> str:
    name = resource_name(limit["resource"])
    mean = limit["mean_utilisation"]
    if not limit["hot_spot"] and mean < NEAR:
        # One of many locks at a time: the mean over all of them would mislead.
        waiting = f"{100 * limit['line_share']:.0f} % of the time there in line"
        return f"{name} {limit['in_use']:.2g} in use, {waiting}"
    hot = "hot spot " if limit["hot_spot"] else ""
    busiest = f"(busiest {100 * limit['highest_utilisation']:.0f} %)"
    return f"{name} {hot}{100 * mean:.0f} % {busiest}"

"""Find the limits of a run: resources near their limit, the bottleneck, and the time of requests."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stripesim.sim.ceph.cluster import CORE_KINDS, THREAD_KINDS, Cluster
from stripesim.sim.engine.program import POOL, EngineRun

#: Utilisation at which a resource is near its limit.
NEAR = 0.7
#: Utilisation at which a single member is full. Requests queue for it even if others are idle.
FULL = 0.9
# Prefix of the resources of a placement group. A queue for them is a limit even if each group
# is rarely busy, because a sequential stream moves from group to group.
_SERIAL = "pg."

#: Bottleneck of a closed loop without a resource near its limit. Only a shorter latency or
#: more requests in flight raise the rate.
LATENCY = "latency"
#: Where requests spend most of their time if that is on the way between sites.
BETWEEN_SITES = "sites"
#: Bottleneck of an open loop that serves all requests.
NO_BOTTLENECK = "none"


@dataclass(frozen=True)
class ResourceUse:
    """Use of a class of resource over a run.

    Attributes
    ----------
    kind
        Name of the class, such as ``pg.lock``, ``ssd`` or ``cpu``.
    wait_fraction
        Part of the waiting of all classes, 0 to 1.
    utilisation
        Utilisation of its busiest member, 0 to 1.
    mean_utilisation
        Mean utilisation of its members, 0 to 1.
    latency_share
        Time that requests wait for it over their latency, 0 to 1.
    in_use
        Mean number of members in use.
    line_share
        Waiting as a part of the time that requests wait for it or hold it, 0 to 1.
    time_share
        Part of the time that requests wait for resources or receive service, 0 to 1. For a thread
        or a lock, only waiting counts, because the time that requests hold it belongs to other
        resources.
    """

    kind: str
    wait_fraction: float
    utilisation: float
    mean_utilisation: float
    latency_share: float
    in_use: float = 0.0
    line_share: float = 0.0
    time_share: float = 0.0

    @property
    def is_limit(self) -> bool:
        """True if the class as a whole is near its limit, not just a single member."""
        if self.mean_utilisation >= NEAR:
            return True
        lined_up = self.in_use >= NEAR and self.line_share >= NEAR
        return self.is_serial and (self.latency_share >= NEAR or lined_up)

    @property
    def is_serial(self) -> bool:
        """True for a resource of placement groups, which serves one request per group at a time."""
        return self.kind.startswith(_SERIAL)


def resource_use(
    cluster: Cluster, run: EngineRun, latency_ns: int
) -> tuple[ResourceUse, ...]:
    """Return the use of each class of resource.

    Parameters
    ----------
    cluster
        The cluster.
    run
        The engine's result.
    latency_ns
        Latency summed over all requests [ns].

    Returns
    -------
    tuple of ResourceUse
        One entry per class, in the order that requests use them.
    """
    resources = cluster.resources
    names = resources.kind_names
    # Most resources of a large cluster are idle, and add nothing.
    active = np.flatnonzero(
        (run.busy_ns != 0) | (run.held_ns != 0) | (run.waited_ns != 0)
    )
    kinds = resources.kind_indices[active]
    lasting = resources.lasting_servers

    def by_kind(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.bincount(kinds, weights=values, minlength=len(names))

    span_ns = max(1, run.end_ns)
    is_pool = resources.disciplines[active] == POOL
    used_ns = np.where(is_pool, run.held_ns[active], run.busy_ns[active])
    # A service that outlasts a bounded run counts in full, so limit it to 1.
    each = np.minimum(1.0, used_ns / (lasting[active] * span_ns))
    highest = np.zeros(len(names))
    np.maximum.at(highest, kinds, each)
    servers = np.bincount(resources.kind_indices, weights=lasting, minlength=len(names))
    mean = by_kind(each * lasting[active]) / servers
    waited = by_kind(run.waited_ns[active])
    held = by_kind(used_ns)
    spent = waited + by_kind(np.where(is_pool, 0, run.busy_ns[active]))
    all_waited = float(waited.sum())
    all_spent = float(spent.sum())
    return tuple(
        ResourceUse(
            kind=name,
            wait_fraction=_ratio(waited[index], all_waited),
            utilisation=float(highest[index]),
            mean_utilisation=float(mean[index]),
            latency_share=min(1.0, _ratio(waited[index], latency_ns)),
            in_use=float(held[index]) / span_ns,
            line_share=_ratio(waited[index], waited[index] + held[index]),
            time_share=float(spent[index]) / max(1.0, all_spent),
        )
        for index, name in enumerate(names)
    )


def _ratio(part: float, total: float) -> float:
    return float(part / total) if total else 0.0


@dataclass(frozen=True, kw_only=True)
class RunLimits:
    """The limit of a run, and the classes of resources near theirs; see `ResultRow` for the fields."""

    bottleneck: str
    bottleneck_utilisation: float | None
    bottleneck_mean_utilisation: float | None
    bottleneck_wait_fraction: float | None
    latency_at: str
    latency_at_fraction: float
    #: Classes of resources near their limit, the nearest first, as JSON objects
    near: tuple[dict[str, Any], ...]


def travel_fraction(cluster: Cluster, run: EngineRun, latency_ns: int) -> float:
    """Return the least part of the latency that messages are on their way between sites, 0 to 1.

    Resources take no more than all waits and services, of which some overlap. What remains is the way. It is
    0 for one site and for gateways, whose clients take time of their own.
    """
    if cluster.sites is None or cluster.gateways is not None or not latency_ns:
        return 0.0
    is_pool = cluster.resources.disciplines == POOL
    spent_ns = int(run.waited_ns.sum()) + int(run.busy_ns[~is_pool].sum())
    return max(0.0, 1 - spent_ns / latency_ns)


def limits_of_run(
    uses: tuple[ResourceUse, ...],
    *,
    is_closed: bool,
    is_saturated: bool = False,
    travelling: float = 0.0,
) -> RunLimits:
    """Find the limit of a run.

    Parameters
    ----------
    uses
        Use of each class of resource.
    is_closed
        True if clients keep requests in flight. Without a resource near its limit, latency then
        limits the run.
    is_saturated
        True if an open loop falls behind its arrivals. Without a resource near its limit, requests then
        queue where they spend most of their time.
    travelling
        `travel_fraction` of the run.

    Returns
    -------
    RunLimits
        The limit, and the classes of resources near theirs.

    Notes
    -----
    The mean decides first. If no class is near its limit on average, the class with a full member
    is the bottleneck: a hot spot, such as an OSD with more placement groups than the others.

    A thread is in use while its work waits for a core, so cores come before threads if both are near
    their limit on average, or both have a full member.

    Locks and pipelines of placement groups are a limit if requests wait for them for `NEAR` of
    their latency, because each group is busy only while requests come to it. They are also a limit
    if at least `NEAR` of them are in use on average and requests wait for `NEAR` of the time that
    they spend there: the few locks that a sequential stream uses are then at their limit, however
    many others are idle. In an M/M/1 queue, the latter corresponds to a utilisation of `NEAR`.

    Arrivals in bursts may saturate a resource that is far from its limit over the whole run, such as the
    client of a trace.
    """
    near = [use for use in uses if use.utilisation >= NEAR or use.is_limit]
    near.sort(
        key=lambda use: (use.is_limit, use.mean_utilisation, use.utilisation),
        reverse=True,
    )
    first = _bottleneck(near)
    bottleneck = LATENCY if is_closed else NO_BOTTLENECK
    slowest = max(uses, key=lambda use: use.time_share)
    if first is None and is_saturated:
        first = slowest
    latency_at, fraction = slowest.kind, slowest.time_share
    if travelling > 1 / 2:
        latency_at, fraction = BETWEEN_SITES, travelling
    return RunLimits(
        bottleneck=first.kind if first else bottleneck,
        bottleneck_utilisation=first.utilisation if first else None,
        bottleneck_mean_utilisation=first.mean_utilisation if first else None,
        bottleneck_wait_fraction=first.wait_fraction if first else None,
        latency_at=latency_at,
        latency_at_fraction=fraction,
        near=tuple(
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
        ),
    )


def _bottleneck(near: list[ResourceUse]) -> ResourceUse | None:
    """Return the bottleneck of the classes near their limit, sorted from the nearest."""
    serial = [use for use in near if use.is_limit and use.is_serial]
    if serial:
        # Requests that wait for a group's lock cannot load other resources further.
        return max(serial, key=lambda use: use.latency_share)
    if near and near[0].is_limit:
        return _cause(near[0], [use for use in near if use.is_limit])
    full = [use for use in near if use.utilisation >= FULL]
    if not full:
        return None
    return _cause(max(full, key=lambda use: use.utilisation), full)


def _cause(first: ResourceUse, others: Sequence[ResourceUse]) -> ResourceUse:
    """Return the cores among `others` if `first` is threads, which are in use while they wait for cores."""
    if first.kind not in THREAD_KINDS:
        return first
    cores = (use for use in others if use.kind in CORE_KINDS)
    return max(cores, key=lambda use: use.utilisation, default=first)


def resource_name(kind: str) -> str:
    """Return the name of a class of resources in texts, where the drive of an OSD may be a disk.

    >>> resource_name("ssd.write"), resource_name("cpu")
    ('drive.write', 'cpu')
    """
    return "drive" + kind.removeprefix("ssd") if kind.startswith("ssd") else kind


def limits_text(limits: Iterable[Mapping[str, Any]]) -> str:
    """Format limits as one line.

    >>> use = {"mean_utilisation": 0.83, "highest_utilisation": 0.9, "hot_spot": False}
    >>> limits_text([{"resource": "cpu", **use}])
    'cpu 83 % (busiest 90 %)'
    """
    return ", ".join(_limit_text(limit) for limit in limits)


def _limit_text(limit: Mapping[str, Any]) -> str:
    name = resource_name(limit["resource"])
    mean = limit["mean_utilisation"]
    if not limit["hot_spot"] and mean < NEAR:
        # Only a few of many locks are busy at a time, so the mean would mislead.
        waiting = f"{100 * limit['line_share']:.0f} % of the time there in line"
        return f"{name} {limit['in_use']:.2g} in use, {waiting}"
    hot = "hot spot " if limit["hot_spot"] else ""
    busiest = f"(busiest {100 * limit['highest_utilisation']:.0f} %)"
    return f"{name} {hot}{100 * mean:.0f} % {busiest}"

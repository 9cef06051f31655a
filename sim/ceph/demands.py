"""Service demands: the time that one request uses each class of resources in an otherwise idle cluster.

Demands are summed over the op graphs that the engines execute, without running an engine. By the utilisation
law, ``servers / demand`` of each resource is an upper bound on the throughput, whatever the queueing
discipline. The smallest of these rates is the tightest bound. Start with `demands_of`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from stripesim.sim.ceph import roles
from stripesim.sim.ceph.clients.objects import S3Load
from stripesim.sim.ceph.clients.workload import (
    Synthetic,
    SyntheticLoops,
    Workload,
)
from stripesim.sim.ceph.gateway.planner import S3Planner
from stripesim.sim.ceph.planner import CompiledGraphs, PoolGraphs, RequestPlanner
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.conditions import (
    ALWAYS,
    COMPLETED,
    NO,
    PINNED,
    YES,
)
from stripesim.sim.engine.graph import (
    ACQUIRE,
    BRANCH,
    DELAY,
    RELEASE,
    SPAWN,
    USE,
    IntArray,
    Template,
)
from stripesim.sim.engine.program import (
    BATCH,
    BY_CLIENT,
    GATE,
    PAIRED_UNIT,
    Bindings,
    Resources,
)

FloatArray = npt.NDArray[np.float64]

#: Sample size for the mean demand of a request [count].
SAMPLE_REQUESTS = 512
# Resources that limit the number of admitted requests, not their rate of service.
_NO_QUEUE = ("throttle", "deferred")
# Tolerance of the search for the fugacity, relative to one request in flight.
_FUGACITY_STEP = 1e-3
# Sample size for the busiest resources of a placement group [count].
_GROUPS_SAMPLED = 32
# Places of objects to plan requests at, where placement groups have different members [count].
_PLACES_SAMPLED = 64
# Placement groups to bind at a time [count].
_GROUPS_AT_A_TIME = 1 << 12
# Resources to draw requests at in one call [count].
_RESOURCES_AT_A_TIME = 1 << 16


@dataclass(frozen=True)
class StationDemand:
    """Demand of the mean request at one class of resources, such as all drives."""

    kind: str  #: Class of the resources, such as ``ssd`` or ``public.tx``
    units: int  #: Cores, channels, threads or interfaces of the whole class [count]
    servers: float  #: `units`, with two busy hardware threads counted by their joint throughput [count]
    demand_ns: float  #: Service time per request, summed over all members [ns]
    imbalance: float  #: Load of the busiest member over the mean of all [1]
    #: Request rate that saturates the busiest member [1/s]
    rate_per_s: float
    #: True if the rate is set by the few placement groups that sequential streams access at a time
    by_streams: bool


@dataclass(frozen=True, kw_only=True)
class Mix:
    """A workload and its share of all requests."""

    workload: Workload | SyntheticLoops
    share: float = 1.0  #: Share of this workload in all requests, 0 to 1
    prefilled: bool = True  #: True if all objects exist before the first request
    #: Mean number of placement groups that requests address at a time, or None for all of them. A sequential
    #: stream stays on one object until it reaches the object's end.
    groups_at_a_time: float | None = None
    #: True if an earlier write still holds the partial stripes that a write needs, as under a sequential
    #: load, so that drives do not read them again
    stripes_in_flight: bool = False


def demands_of(
    pool: Pool,
    mixes: Sequence[Mix],
    group_weights: FloatArray,
    compiled: CompiledGraphs | None = None,
) -> tuple[StationDemand, ...]:
    """Compute the mean demand of a request at each class of resources.

    Parameters
    ----------
    pool
        The pool and its cluster.
    mixes
        The workloads that share the cluster. About `SAMPLE_REQUESTS` requests of each are planned.
    group_weights
        Share of the requests that goes to each placement group in the long run, shape (groups,).
    compiled
        Graphs of requests to the same kind of pool, to which those of further requests are added.

    Returns
    -------
    tuple of StationDemand
        One for each class of resources that a request uses, in ascending order of rate.

    Notes
    -----
    The busiest resource of a class determines its rate, so uneven CRUSH placement lowers the bound. The
    demand for a thread or lock is the time from acquire to release without contention. Three costs are
    omitted because they depend on the load: thread wake-ups, syncs of the key-value store, each of which
    serves all waiting transactions, and roll-forwards of erasure-coded writes, which a placement group sends
    only when no other write is in its pipeline. So processors and key-value threads may saturate earlier.
    Read caches are cold, as at the start of a run. Disks that sort reads have as many to sort as can wait.

    References
    ----------
    P. J. Denning, J. P. Buzen, "The operational analysis of queueing network models", ACM Computing Surveys
    10(3), 1978: the utilisation law and the bottleneck bound.
    """
    resources = pool.cluster.resources
    servers = _servers(resources)
    demands_ns = np.zeros(len(servers))
    streams_ns = np.zeros(len(servers))
    for mix in mixes:
        load = getattr(mix.workload, "workload", None)
        if isinstance(load, S3Load):
            demands_ns += _S3Mix(pool, load).spread(group_weights)
            continue
        planned = _PlannedSample(pool, mix, compiled)
        demands_ns += mix.share * planned.spread(group_weights)
        if mix.groups_at_a_time is not None:
            streams_ns += (
                mix.share * planned.busiest_of_group(servers) / mix.groups_at_a_time
            )
    return _stations(resources, servers, demands_ns, streams_ns)


def requests_in_flight(
    pool: Pool,
    mix: Mix,
    group_weights: FloatArray,
    total: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    r"""Draw the number of requests in flight in each placement group from a closed loop's steady state.

    Parameters
    ----------
    pool
        The pool and its cluster.
    mix
        The workload.
    group_weights
        Share of the requests that goes to each placement group, shape (groups,).
    total
        Requests in flight [count].
    rng
        Random generator of the draw.

    Returns
    -------
    at_resources, waiting : array of float
        Requests in flight in each placement group, and those that wait for admission to its primary, both of
        shape (groups,).

    Notes
    -----
    The draw uses the product form of a closed network of single servers. With :math:`\rho` the load of a
    resource relative to the busiest one, the number of requests at each is geometric with parameter
    :math:`x \rho`, where the fugacity :math:`x < 1` makes the means add up to `total`. The remaining requests
    are at the busiest resource. A resource with more requests than an OSD admits has fewer: see `_admitted`.

    References
    ----------
    W. J. Gordon, G. F. Newell, "Closed queuing systems with exponential servers", Operations Research 15(2),
    1967.
    """
    sample = _PlannedSample(pool, mix)
    demands_ns = sample.spread(group_weights)
    lengths, busiest = _drawn_lengths(
        _loads_of_queues(pool.cluster.resources, demands_ns), total, rng
    )
    crowded = _crowded(pool, lengths, busiest)
    # No requests are at resources without demand.
    per_demand = np.divide(lengths, demands_ns, out=lengths, where=demands_ns > 0)
    at_resources = np.zeros(len(group_weights))
    waiting = np.zeros(len(group_weights))
    for resource in crowded:
        at_one = np.zeros(len(per_demand))
        at_one[resource] = per_demand[resource]
        per_demand[resource] = 0
        in_line = sample.by_group(group_weights, at_one)
        admitted, excess = _admitted(pool, in_line, group_weights)
        at_resources += admitted
        waiting += excess
    at_resources += sample.by_group(group_weights, per_demand)
    # Requests that wait at clients may address any placement group.
    elsewhere = max(0.0, total - at_resources.sum() - waiting.sum())
    return at_resources + group_weights * elsewhere, waiting


def _loads_of_queues(resources: Resources, demands_ns: FloatArray) -> FloatArray:
    """Return the demand per server of each resource [ns], 0 where requests do not queue."""
    queues = ~resources.numbered_kinds.are(*_NO_QUEUE)
    queues &= ~np.isin(resources.disciplines, (BATCH, GATE)) & (demands_ns > 0)
    return np.where(queues, demands_ns / _servers(resources), 0.0)


def _drawn_lengths(
    loads: FloatArray, total: int, rng: np.random.Generator
) -> tuple[FloatArray, int]:
    """Draw the number of requests at each resource, and return the busiest one too.

    A large cluster has millions of resources, so their loads are overwritten by one number after the other.
    """
    busiest = int(loads.argmax())
    loads /= loads.max()
    loads *= _fugacity(loads, total)
    for first in range(0, len(loads), _RESOURCES_AT_A_TIME):
        part = loads[first : first + _RESOURCES_AT_A_TIME]
        part[:] = rng.geometric(1 - part) - 1.0
    lengths = loads
    lengths[busiest] = 0
    if lengths.sum() > total:
        lengths *= total / lengths.sum()
    lengths[busiest] = max(0.0, total - lengths.sum())
    return lengths, busiest


def _fugacity(relative: FloatArray, total: int) -> float:
    """Return the factor on relative loads that makes the mean numbers of requests add up to `total`."""
    relative = relative[relative > 0]
    low = 0.0
    high = 1.0
    while high - low > _FUGACITY_STEP / total:
        middle = (low + high) / 2
        means = middle * relative / (1 - middle * relative)
        if means.sum() < total:
            low = middle
        else:
            high = middle
    return low


def _crowded(pool: Pool, lengths: FloatArray, busiest: int) -> list[int]:
    """Return the busiest resource, and others with more requests than an OSD admits."""
    throttle = pool.cluster.models.throttle
    if throttle is None:
        return [busiest]
    is_crowded = lengths > throttle.client_requests_max_count
    is_crowded[busiest] = True
    crowded: list[int] = np.flatnonzero(is_crowded).tolist()
    return crowded


def _admitted(
    pool: Pool, in_line: FloatArray, group_weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the requests in line at a crowded resource, and those that wait for admission.

    A primary admits `ThrottleModel.client_requests_max_count` requests of clients, and replicas admit all.
    Both are served in the order of arrival, so in proportion to their numbers in line. In a steady state,
    they are also served in proportion to their arrivals. So the line is as long as the limit on requests of
    its primary with most of them allows, and all others wait for admission to this primary.
    """
    throttle = pool.cluster.models.throttle
    nothing = np.zeros_like(in_line)
    if throttle is None:
        return in_line, nothing
    primaries = pool.primary_osds
    of_primary = np.bincount(primaries, in_line, minlength=pool.cluster.osds)
    fullest = int(of_primary.argmax())
    limit = throttle.client_requests_max_count
    if of_primary[fullest] <= limit:
        return in_line, nothing
    admitted = in_line * (limit / of_primary[fullest])
    weights = np.where(primaries == fullest, group_weights, 0.0)
    excess = in_line.sum() - admitted.sum()
    return admitted, weights * (excess / weights.sum())


class _S3Mix:
    """The mean demand of an S3 request, over all operations, sizes and places of objects."""

    def __init__(self, pool: Pool, load: S3Load) -> None:
        book = pool.book()
        self._pool = pool
        self._clients = book.bindings.copy()
        planner = S3Planner(pool, book, load.start())
        kinds = load.kinds()
        count = pool.cluster.roles
        self._by_role = np.zeros(count)
        # Placement groups without some of their members need other steps.
        sampled = 1 if len(np.unique(pool.views)) == 1 else _PLACES_SAMPLED
        slots = np.arange(min(sampled, load.slots), dtype=np.int64)
        shares: dict[int, float] = {}
        for slot in slots:
            requests = kinds.requests
            places = np.full_like(requests.offsets_bytes, slot)
            chunk = planner.plan(replace(requests, offsets_bytes=places))
            owners = planner.newest.owners - planner.newest.owners[0]
            for owner, template in zip(
                owners.tolist(), chunk.templates.tolist(), strict=True
            ):
                share = kinds.shares[owner] / len(slots)
                shares[template] = shares.get(template, 0.0) + share
        for template, share in shares.items():
            self._by_role += share * _role_demands(
                pool, book, np.array([template]), np.ones(count), False
            )
        rows = planner.places.rows_of(np.arange(load.slots, dtype=np.int64))
        self._rows = book.bindings[rows]

    def spread(self, group_weights: FloatArray) -> FloatArray:
        """Distribute the demand over resources [ns], shape (resources,). All groups have equal weights."""
        demands_ns = np.zeros(len(self._pool.cluster.resources))
        for role in np.flatnonzero(self._by_role > 0).tolist():
            bound = self._rows[:, role]
            if bound[0] == BY_CLIENT:
                bound = self._clients[:, role]
            bound = bound[bound >= 0]
            share_ns = self._by_role[role] / max(1, len(bound))
            np.add.at(demands_ns, bound, share_ns)
        return demands_ns


class _PlannedSample:
    """A planned sample of one workload: the mean demand by role of a request, for each view of its group."""

    def __init__(
        self, pool: Pool, mix: Mix, compiled: CompiledGraphs | None = None
    ) -> None:
        book = pool.book()
        self._pool = pool
        self._client_rows = book.bindings
        roles_count = book.bindings.shape[1]
        self._by_view = {
            view: np.zeros(roles_count) for view in np.unique(pool.views).tolist()
        }
        for workload, share in _directions(mix.workload):
            directed = replace(mix, workload=workload)
            met = _demands_by_view(pool, book, directed, compiled)
            # The sample may not meet views that few placement groups have.
            mean: FloatArray = np.mean(list(met.values()), axis=0)
            for view in self._by_view:
                self._by_view[view] += share * met.get(view, mean)
        self._bound = self._bound_groups()
        self._away_fractions = self._fractions_of_clients_away()

    def _fractions_of_clients_away(self) -> FloatArray:
        """Return the fraction of clients that reach each group's primary by network, shape (groups,)."""
        cluster = self._pool.cluster
        if not self._pool.has_clients_at_home:
            return np.ones(cluster.groups)
        clients = np.bincount(cluster.client_hosts, minlength=cluster.hosts)
        homes = cluster.osd_hosts[self._pool.primary_osds]
        fractions: FloatArray = 1 - clients[homes] / clients.sum()
        return fractions

    def _bound_groups(self) -> dict[int, Bindings]:
        """Return the resource of each placement group, by role with a demand, each of shape (groups,)."""
        demanded = sum(by_role > 0 for by_role in self._by_view.values())
        used = np.flatnonzero(demanded)
        groups = self._pool.cluster.groups
        # Filled in parts, so that the rows of all roles exist only for a few groups at a time.
        bound = np.empty((len(used), groups), dtype=np.int32)
        for first in range(0, groups, _GROUPS_AT_A_TIME):
            stop = min(first + _GROUPS_AT_A_TIME, groups)
            rows = self._pool.group_bindings(np.arange(first, stop))
            bound[:, first:stop] = rows[:, used].T
        return dict(zip(used.tolist(), bound, strict=True))

    def spread(self, group_weights: FloatArray) -> FloatArray:
        """Distribute demands over resources, weighted by placement group [ns], shape (resources,)."""
        demands_ns = np.zeros(len(self._pool.cluster.resources))
        for view, by_role in self._by_view.items():
            groups = np.flatnonzero(self._pool.views == view)
            self._add(demands_ns, by_role, groups, group_weights[groups])
        return demands_ns

    def by_group(self, group_weights: FloatArray, per_demand: FloatArray) -> FloatArray:
        """Sum a quantity per demand [1/ns] over the demands of each placement group, shape (groups,)."""
        sums = np.zeros(self._pool.cluster.groups)
        for view, by_role in self._by_view.items():
            groups = np.flatnonzero(self._pool.views == view)
            for role in np.flatnonzero(by_role > 0).tolist():
                bound = self._bound[role][groups]
                of_resource = np.where(bound >= 0, per_demand[bound], 0.0)
                used = group_weights[groups] * self._use_of(role, groups)
                sums[groups] += by_role[role] * used * of_resource
        return sums

    def busiest_of_group(self, servers: FloatArray) -> FloatArray:
        """Return the demand of one placement group at its busiest resource of each class [ns].

        This is a mean over sampled groups, equal for all resources of a class, shape (resources,).
        """
        resources = self._pool.cluster.resources
        kind_of = resources.kind_indices
        kinds_count = len(resources.kind_names)
        totals_ns = np.zeros(kinds_count)
        samples = np.linspace(0, self._pool.cluster.groups - 1, _GROUPS_SAMPLED).astype(
            np.int64
        )
        for group in samples.tolist():
            loads_ns = np.zeros(len(servers))
            by_role = self._by_view[int(self._pool.views[group])]
            self._add(loads_ns, by_role, np.array([group]), np.ones(1))
            highest_ns = np.zeros(kinds_count)
            np.maximum.at(highest_ns, kind_of, loads_ns / servers)
            totals_ns += highest_ns
        return totals_ns[kind_of] / len(samples)

    def _add(
        self,
        demands_ns: FloatArray,
        by_role: FloatArray,
        groups: IntArray,
        weights: FloatArray,
    ) -> None:
        """Add demands by role to the resources that placement groups and clients are bound to [ns]."""
        client_rows = self._client_rows
        for role in np.flatnonzero(by_role > 0).tolist():
            bound = self._bound[role][groups]
            by_group = bound >= 0
            used = weights * self._use_of(role, groups)
            np.add.at(demands_ns, bound[by_group], by_role[role] * used[by_group])
            asks = bound == BY_CLIENT
            if asks.any():
                rows = client_rows[client_rows[:, role] >= 0]
                by_client: FloatArray = np.full(len(rows), weights[asks].sum())
                if role in roles.CLIENT_NETWORK:
                    by_client -= self._weights_at_home(
                        groups[asks], weights[asks], rows
                    )
                np.add.at(
                    demands_ns,
                    rows[:, role],
                    by_role[role] * by_client / len(client_rows),
                )

    def _use_of(self, role: int, groups: IntArray) -> FloatArray | float:
        """Return the fraction of requests to placement groups that use what the group binds to a role."""
        if role in roles.CLIENT_NETWORK:
            return self._away_fractions[groups]
        return 1.0

    def _weights_at_home(
        self, groups: IntArray, weights: FloatArray, client_rows: Bindings
    ) -> FloatArray:
        """Return the summed weight of the groups whose primary is on each client's host, shape (clients,)."""
        if not self._pool.has_clients_at_home:
            return np.zeros(len(client_rows))
        cluster = self._pool.cluster
        hosts = cluster.osd_hosts[self._pool.primary_osds[groups]]
        homes = cluster.host_resource(hosts, "public.tx")
        by_resource = np.zeros(len(cluster.resources))
        np.add.at(by_resource, homes, weights)
        return by_resource[client_rows[:, roles.CLIENT_TX]]


def _directions(
    workload: Workload | SyntheticLoops,
) -> list[tuple[Workload | SyntheticLoops, float]]:
    """Divide a mix of reads and writes into both, with their shares, of which a drawn sample has others.

    A sample does not end with the requests of a run, which may be fewer.
    """
    load = getattr(workload, "workload", None)
    if not isinstance(load, Synthetic):
        return [(workload, 1.0)]
    load = replace(load, requests=None)
    if load.read_fraction in (0.0, 1.0):
        return [(load.start(), 1.0)]
    return [
        (replace(load, read_fraction=1.0).start(), load.read_fraction),
        (replace(load, read_fraction=0.0).start(), 1 - load.read_fraction),
    ]


def _demands_by_view(
    pool: Pool, book: Book, mix: Mix, compiled: CompiledGraphs | None
) -> dict[int, FloatArray]:
    """Plan requests of a workload; return the mean demand by role [ns] of those that meet each view."""
    graphs = PoolGraphs(pool, book, compiled=compiled)
    planner = RequestPlanner(
        pool, book, mix.workload, prefilled=mix.prefilled, graphs=graphs
    )
    rounds = SAMPLE_REQUESTS
    if isinstance(mix.workload, SyntheticLoops):
        rounds = -(-SAMPLE_REQUESTS // mix.workload.clients)
    chunk = planner.take(rounds)
    requests = int(planner.planned.owners.max(initial=-1)) + 1
    views = pool.views[chunk.groups]
    shares = pool.cluster.delay_shares(pool.primaries)
    # A request that crosses objects is one of each.
    objects = len(views) / max(1, requests)
    return {
        view: objects
        / np.count_nonzero(views == view)
        * _role_demands(
            pool, book, chunk.templates[views == view], shares, mix.stripes_in_flight
        )
        for view in np.unique(views).tolist()
    }


def _role_demands(
    pool: Pool,
    book: Book,
    templates: IntArray,
    delay_shares: FloatArray,
    stripes_in_flight: bool,
) -> FloatArray:
    """Sum the demands by role of requests on these templates [ns].

    `delay_shares` are the shares of requests that the delay of each role takes part in. Disks sort queues
    that are as long as they can be.
    """
    total_ns = np.zeros(book.bindings.shape[1])
    least = pool.cluster.position_factors[-1]
    indices, counts = np.unique(templates, return_counts=True)
    for index, count in zip(indices.tolist(), counts.tolist(), strict=True):
        for template in _with_spawned(book.templates[index]):
            shortest = _shortened(template, least)
            _add_demands(total_ns, shortest, count, delay_shares, stripes_in_flight)
    return total_ns


def _shortened(template: Template, position_factor: float) -> Template:
    """Return a template with the demands that its sorted steps have at this factor."""
    if template.dynamics is None or position_factor == 1:
        return template
    saved_ns = (1 - position_factor) * template.dynamics.positions_ns
    demands_ns = np.rint(template.demands_ns - saved_ns).astype(np.int64)
    return replace(template, demands_ns=demands_ns)


def _with_spawned(template: Template) -> Iterator[Template]:
    """Yield a template and the detached graphs that each of its requests starts."""
    yield template
    dynamics = template.dynamics
    if dynamics is None:
        return
    for step in np.flatnonzero(template.words == SPAWN).tolist():
        if dynamics.tests[step] == ALWAYS:
            yield from _with_spawned(dynamics.spawned[int(dynamics.spawns[step])])


def _add_demands(
    total_ns: FloatArray,
    template: Template,
    count: int,
    delay_shares: FloatArray,
    stripes_in_flight: bool,
) -> None:
    """Add the demands by role of requests on one template [ns]."""
    ends_ns = _ends_without_waits(template, delay_shares, stripes_in_flight)
    for step, word in enumerate(template.words.tolist()):
        end_ns = ends_ns[step]
        role = template.roles[step]
        if end_ns is None or role < 0:
            continue
        if word == USE:
            total_ns[role] += count * template.demands_ns[step]
        elif word == ACQUIRE:
            # The sum of release times minus acquire times is the holding time, however they pair up.
            total_ns[role] -= count * end_ns
        elif word == RELEASE:
            total_ns[role] += count * end_ns


def _ends_without_waits(
    template: Template, delay_shares: FloatArray, stripes_in_flight: bool
) -> list[float | None]:
    """Return the completion time of each step without queueing [ns], or None for steps that do not run."""
    # Completion times of the predecessors that have run.
    arrivals_ns: list[list[float]] = [[] for _ in range(template.steps)]
    arrivals_ns[0] = [0.0]
    ends_ns: list[float | None] = []
    for step in range(template.steps):
        end_ns = _start_ns(template, step, arrivals_ns[step])
        if end_ns is not None and template.words[step] in (USE, DELAY):
            end_ns += _mean_duration_ns(template, step, delay_shares)
        ends_ns.append(end_ns)
        if end_ns is None:
            continue
        for successor in _successors(template, step, ends_ns, stripes_in_flight):
            arrivals_ns[successor].append(end_ns)
    return ends_ns


def _mean_duration_ns(template: Template, step: int, delay_shares: FloatArray) -> float:
    """Return the demand of a step, of a delay that some requests skip their mean [ns]."""
    demand_ns = float(template.demands_ns[step])
    role = int(template.roles[step])
    if template.words[step] == DELAY and role >= 0:
        demand_ns *= float(delay_shares[role])
    return demand_ns


def _start_ns(
    template: Template, step: int, arrivals_ns: Sequence[float]
) -> float | None:
    """Return the start of a step after its predecessors [ns], or None for a step that does not run."""
    if template.dynamics is not None and template.dynamics.merges[step]:
        return max(arrivals_ns, default=None)
    wanted = max(1, int(template.predecessors[step]))
    if len(arrivals_ns) < wanted:
        return None
    return sorted(arrivals_ns)[wanted - 1]


def _successors(
    template: Template,
    step: int,
    ends_ns: Sequence[float | None],
    stripes_in_flight: bool,
) -> list[int]:
    """Return the successors of a step, for a branch only those on the side that the request takes."""
    start, stop = template.successor_starts[step : step + 2].tolist()
    successors: list[int] = template.successors[start:stop].tolist()
    if template.words[step] != BRANCH:
        return successors
    assert template.dynamics is not None
    yes_count = int(template.dynamics.yes_counts[step])
    held = stripes_in_flight and template.dynamics.tests[step] == PINNED
    if template.dynamics.tests[step] == COMPLETED:
        end_ns = ends_ns[step]
        tested_ns = ends_ns[template.dynamics.tickets[step]]
        held = tested_ns is not None and end_ns is not None and tested_ns <= end_ns
    return {YES: successors[:yes_count], NO: successors[yes_count:]}[
        YES if held else NO
    ]


def _stations(
    resources: Resources,
    servers: FloatArray,
    demands_ns: FloatArray,
    streams_ns: FloatArray,
) -> tuple[StationDemand, ...]:
    """Sum demands by class. Batches (shared) and gates (without servers) set no bound and are skipped."""
    kinds = resources.numbered_kinds
    sets_bound = ~np.isin(resources.disciplines, (BATCH, GATE)) & (demands_ns > 0)
    sets_bound &= ~kinds.are(*_NO_QUEUE)
    present = np.unique(kinds.indices[sets_bound]).tolist()
    stations = []
    for kind in sorted(kinds.names[index] for index in present):
        mine = kinds.are(kind)
        loads_ns = demands_ns[mine] / servers[mine]
        total_ns = float(demands_ns[mine].sum())
        mean_ns = total_ns / float(servers[mine].sum())
        stream_ns = float(streams_ns[mine].max())
        busiest_ns = float(loads_ns.max())
        stations.append(
            StationDemand(
                kind=kind,
                units=int(resources.capacities[mine].sum()),
                servers=float(servers[mine].sum()),
                demand_ns=total_ns,
                imbalance=busiest_ns / mean_ns,
                rate_per_s=1e9 / max(busiest_ns, stream_ns),
                by_streams=stream_ns > busiest_ns,
            )
        )
    return tuple(sorted(stations, key=lambda station: station.rate_per_s))


def _servers(resources: Resources) -> FloatArray:
    """Return the servers of each resource. Two hardware threads of one core count as fewer than two."""
    servers = resources.lasting_servers
    slowdown = resources.paired_slowdown / PAIRED_UNIT
    if not slowdown:
        return servers
    # Under a quota of fewer, threads hardly share a core.
    is_paired = (np.asarray(resources.paired) > 0) & (servers == resources.capacities)
    threads = servers[is_paired]
    # Either all threads run, those that share a core slower, or one on each core. An odd one has its own.
    cores = np.ceil(threads / 2)
    sharing = 2 * (threads - cores) / threads
    servers[is_paired] = np.maximum(threads / (1 + slowdown * sharing), cores)
    return servers

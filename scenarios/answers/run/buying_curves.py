"""Simulate how much more of a resource buys: cores, drives, hosts and networks, step by step and by price.

Doubling, as `advise` does, shows what limits a cluster. A buyer asks for the next step: one more drive for
each host, one more host, a faster network, or more cores for each OSD.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from stripesim.models.documents import Documented
from stripesim.scenarios.answers.run.advise import (
    CELLS_MAX,
    REPLICATIONS,
    with_host_cores,
)
from stripesim.scenarios.cells.bound import bounds_of
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.placement import osd_hosts
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.forms.capacity import drives_of
from stripesim.scenarios.forms.prices import cost_of, with_counted_hosts
from stripesim.scenarios.schema.keys import Cell, cells
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.units import number_text, rate_text
from stripesim.scenarios.show.words import cell_words
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.observe.intervals import Interval, student_interval
from stripesim.sim.observe.progress import OnStep, silent

#: Cores of each OSD to try.
CORES_PER_OSD: Final = (2, 4, 8, 12, 16)
#: Name of the CPU limit of OSDs, which costs nothing within the cores of a host.
_LIMIT: Final = "CPU limit per OSD"
#: Factors on the rate of both networks to try.
_NETWORK_FACTORS: Final = (2, 4)
#: Name of the cores of each gateway with a machine of its own, and factors on their number to try.
_GATEWAY_CORES: Final = "cores per gateway"
_GATEWAY_CORE_FACTORS: Final = (2, 4)
#: Unit of money that sentences count by.
_MONEY: Final = 1000.0


@dataclass(frozen=True)
class PurchaseStep:
    """More of one resource: its name, the amount, and the keys of the cluster that have it."""

    resource: str
    amount: float
    keys: Mapping[str, Any]


@dataclass(frozen=True)
class BuyingPoint(Documented):
    """A cluster with some amount of a resource.

    Attributes
    ----------
    amount
        Amount of the resource: cores or CPU limit of each OSD, OSDs of each host, hosts, Gbit/s of both
        networks, gateways, or cores of each gateway.
    iops, latency_p99_ns
        Over replications, with 95 % intervals.
    iops_gain
        Requests per second more than with the scenario's own amount, in runs with the same seeds.
    cost
        Price of the difference. None without ``[plan.prices]``, and for less of a resource.
    """

    cell: Cell
    resource: str
    amount: float
    is_own: bool
    iops: Interval
    iops_gain: Interval
    latency_p99_ns: Interval
    cost: float | None

    in_document: ClassVar = (
        *((name, f"cell.{name}") for name in Cell._fields),
        "resource",
        "amount",
        "is_own",
        *(
            (f"{name}{suffix}", f"{name}.{end}")
            for name in ("iops", "iops_gain", "latency_p99_ns")
            for suffix, end in (("", "mean"), ("_low", "low"), ("_high", "high"))
        ),
        "cost",
        "iops_per_1000",
    )

    @property
    def iops_per_1000(self) -> float | None:
        """Requests per second for 1,000 units of money. None if the gain is uncertain or has no price."""
        if not self.cost or self.iops_gain.low is None or self.iops_gain.low <= 0:
            return None
        return self.iops_gain.mean / self.cost * _MONEY


def steps_of(scenario: Scenario) -> list[PurchaseStep]:
    """Return the steps to simulate for a scenario.

    A CRUSH map or groups of hosts fix the number of hosts and OSDs, so only networks and gateways, and with
    equal hosts cores, are varied then.
    """
    cluster = scenario.cluster
    steps: list[PurchaseStep] = []
    if isinstance(cluster.hosts, int):
        steps += _core_steps(scenario)
    if isinstance(cluster.hosts, int) and cluster.crush_map is None:
        own = cluster.osds_per_host
        for count in dict.fromkeys((own + 1, own + 2, 2 * own)):
            keys = _with_cores(scenario, {"osds_per_host": count})
            steps.append(PurchaseStep("OSDs per host", count, keys))
        added = cluster.racks or 1
        for more in (1, 2, 3):
            hosts = cluster.hosts + more * added
            steps.append(PurchaseStep("hosts", hosts, {"hosts": hosts}))
    for factor in _NETWORK_FACTORS:
        keys = {
            key: factor * getattr(cluster, key)
            for key in ("public_gbit_per_s", "private_gbit_per_s")
        }
        steps.append(PurchaseStep("network [Gbit/s]", keys["public_gbit_per_s"], keys))
    if scenario.workload.is_s3:
        own = cluster.gateway_count
        for count in dict.fromkeys((own + 1, own + 2, 2 * own)):
            gateways = cluster.gateways.replaced(count=count)
            steps.append(PurchaseStep("gateways", count, {"gateways": gateways}))
        steps += _gateway_core_steps(scenario)
    return steps


def _gateway_core_steps(scenario: Scenario) -> Iterator[PurchaseStep]:
    """Yield cores of gateways with machines of their own. Others share those of their hosts."""
    gateways = scenario.cluster.gateways
    if gateways.place != "own":
        return
    for factor in _GATEWAY_CORE_FACTORS:
        cores = factor * _cores_of_gateway(scenario)
        keys = {"gateways": gateways.replaced(cores=cores)}
        yield PurchaseStep(_GATEWAY_CORES, cores, keys)


def _cores_of_gateway(scenario: Scenario) -> int:
    """Return the cores of a gateway's machine [count]."""
    return scenario.cluster.gateways.cores or scenario.cluster.cores_per_host


def _core_steps(scenario: Scenario) -> Iterator[PurchaseStep]:
    """Yield limits of each OSD, or cores: pinned ones if the scenario pins OSDs, else the host's."""
    cluster = scenario.cluster
    key = cluster.cores_key
    for count in CORES_PER_OSD:
        if count == _own_cores(scenario):
            continue
        of_host = round(count * _osds_of_host(scenario))
        keys = {"cores_per_host": of_host}
        if key != "cores_per_host":
            keys = {key: count, "cores_per_host": max(of_host, cluster.cores_per_host)}
        yield PurchaseStep(_cores_words(scenario), count, _with_cores(scenario, keys))


def _cores_words(scenario: Scenario) -> str:
    """Name the cores that OSDs have: a limit, or cores of their own or of their host."""
    return (
        _LIMIT if scenario.cluster.cores_key == "cpu_limit_per_osd" else "cores per OSD"
    )


def _with_cores(scenario: Scenario, keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return changed keys of a cluster, with those of the cores that its OSDs then need."""
    changed = scenario.with_cluster(**keys)
    fitting = with_host_cores(changed).cluster
    more = {
        key: getattr(fitting, key)
        for key in ("cores_per_host", "cores_per_osd")
        if getattr(fitting, key) != getattr(changed.cluster, key)
    }
    return {**keys, **more}


def _own_cores(scenario: Scenario) -> float:
    """Return the cores of each OSD: its limit, its own, or its share of those of a host."""
    key = scenario.cluster.cores_key
    cores: float = getattr(scenario.cluster, key)
    return cores / _osds_of_host(scenario) if key == "cores_per_host" else cores


def _osds_of_host(scenario: Scenario) -> float:
    """Return the mean number of OSDs of a host [count]."""
    return float(np.mean(_hosts_with_osds(scenario)))


def _hosts_with_osds(scenario: Scenario) -> IntArray:
    """Return the number of OSDs of each host that has some [count], by the CRUSH map if there is one."""
    hosts = osd_hosts(scenario)
    _, counts = np.unique(hosts[hosts >= 0], return_counts=True)
    return counts


def simulations(scenario: Scenario, *, replications: int = REPLICATIONS) -> int:
    """Return the number of runs that the curves take."""
    return len(cells(scenario)) * (1 + len(steps_of(scenario))) * replications


def buying_curves(
    scenario: Scenario,
    *,
    engine: str = "compiled",
    replications: int = REPLICATIONS,
    progress: OnStep = silent,
) -> list[BuyingPoint]:
    """Simulate each step of each resource for every cell of a scenario.

    Parameters
    ----------
    scenario
        The scenario. Prices are those of its ``[plan.prices]``.
    engine, replications
        As for `stripesim.scenarios.answers.run.advise.advise`.
    progress
        Called after each run.
    """
    listed = cells(scenario)
    if len(listed) > CELLS_MAX:
        return []
    points: list[BuyingPoint] = []
    for cell in listed:
        own = _rows(scenario, cell, engine, replications, progress)
        points += _own_points(scenario, cell, own)
        for step in steps_of(scenario):
            changed = scenario.with_cluster(**step.keys)
            rows = _rows(changed, cell, engine, replications, progress)
            cost = _cost(scenario, changed)
            points.append(_point(cell, step, own, rows, cost=cost, is_own=False))
    return points


def bounds_of_steps(scenario: Scenario, scheme: str) -> list[dict[str, Any]]:
    """Return the bound of the request rate after each step, and its price, without simulation.

    Parameters
    ----------
    scenario, scheme
        The cluster, and the scheme of its pool.

    Returns
    -------
    list of dict
        ``resource``, ``amount``, ``iops`` (bound), ``iops_gain``, ``limited_by``, ``cost`` and
        ``iops_per_1000``. Empty if no bound is known. Steps that cannot be built are left out.
    """
    own = bounds_of(scenario, scheme)
    if not own:
        return []
    rows = []
    for step in steps_of(scenario):
        changed = scenario.with_cluster(**step.keys)
        try:
            bound = bounds_of(changed, scheme)[0]
        except ValueError:
            continue
        gain = bound.iops - own[0].iops
        cost = _cost(scenario, changed)
        rows.append(
            {
                "resource": step.resource,
                "amount": step.amount,
                "iops": bound.iops,
                "iops_gain": gain,
                "limited_by": bound.resource,
                "cost": cost,
                "iops_per_1000": gain / cost * _MONEY if cost and gain > 0 else None,
            }
        )
    return rows


def sentence_of_bounds(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Name the step that raises the bound for nothing or most for the money; None if no price is known."""
    priced = [row for row in rows if row["iops_per_1000"] is not None]
    if not priced:
        return None
    free = _best_free_step(rows)
    if free is not None:
        return (
            f"more requests for no money: {free['resource']} {number_text(free['amount'])} lifts the highest "
            f"rate to {rate_text(free['iops'])} requests/s (a bound; run --advise simulates it)"
        )
    best = max(priced, key=lambda row: row["iops_per_1000"])
    return (
        f"more requests for the money: {best['resource']} {number_text(best['amount'])} for "
        f"{number_text(best['cost'])} lifts the highest rate to {rate_text(best['iops'])} requests/s, "
        f"{rate_text(best['iops_per_1000'])} more for each 1,000 (a bound; run --advise simulates it)"
    )


def _best_free_step(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the limit that gains most within the cores of the hosts, or None if none does."""
    free = (
        row
        for row in rows
        if row["resource"] == _LIMIT and row["cost"] is None and row["iops_gain"] > 0
    )
    return max(free, key=lambda row: row["iops_gain"], default=None)


def _rows(
    scenario: Scenario, cell: Cell, engine: str, replications: int, progress: OnStep
) -> list[Any]:
    rows = []
    for number in range(replications):
        rows.append(run_cell(scenario.seeded(number), cell, engine).row)
        progress(f"{cell.scheme}: steps of purchases")
    return rows


def _own_points(
    scenario: Scenario, cell: Cell, own: Sequence[Any]
) -> Iterator[BuyingPoint]:
    """Yield the cluster as it is, on the curve of each resource."""
    cluster = scenario.cluster
    amounts: dict[str, float] = {
        _cores_words(scenario): _own_cores(scenario),
        "OSDs per host": cluster.osds_per_host,
        "hosts": cluster.host_count,
        "network [Gbit/s]": cluster.public_gbit_per_s,
        "gateways": cluster.gateway_count,
        _GATEWAY_CORES: _cores_of_gateway(scenario),
    }
    for resource in dict.fromkeys(step.resource for step in steps_of(scenario)):
        step = PurchaseStep(resource, amounts[resource], {})
        yield _point(cell, step, own, own, cost=None, is_own=True)


def _point(
    cell: Cell,
    purchase: PurchaseStep,
    own: Sequence[Any],
    rows: Sequence[Any],
    *,
    cost: float | None,
    is_own: bool,
) -> BuyingPoint:
    gains = [row.iops - before.iops for before, row in zip(own, rows, strict=True)]
    return BuyingPoint(
        cell,
        purchase.resource,
        purchase.amount,
        is_own,
        iops=student_interval([row.iops for row in rows]),
        iops_gain=student_interval(gains),
        latency_p99_ns=student_interval([row.latency_p99_ns for row in rows]),
        cost=cost,
    )


def _cost(scenario: Scenario, changed: Scenario) -> float | None:
    """Return the price of the changes, with the scenario's cluster owned, or None if it is not known."""
    prices = None if scenario.plan is None else scenario.plan.prices
    if prices is None:
        return None
    models = build_models(changed)
    drives = drives_of(changed, models)
    owned_drives = drives_of(scenario, build_models(scenario))
    owned = with_counted_hosts(scenario).cluster

    def price(candidate: Scenario) -> float:
        return cost_of(
            with_counted_hosts(candidate),
            owned,
            owned.host_count,
            prices,
            drive_bytes=drives.one_bytes,
            owned_drive_bytes=owned_drives.one_bytes,
            drives_per_osd=drives.per_osd,
            owned_gateways=owned.gateway_count,
        ).cost

    cost = price(changed) - price(scenario)
    return cost if cost > 0 else None


def buying_sentences(points: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name, for each cell, the step that buys most requests for the money, and the one that buys most."""
    of_cell: dict[Cell, list[Mapping[str, Any]]] = {}
    for point in points:
        of_cell.setdefault(Cell.of_row(point), []).append(point)
    return [f"{cell_words(cell)}: {_buying_text(of_cell[cell])}." for cell in of_cell]


def _buying_text(points: Sequence[Mapping[str, Any]]) -> str:
    """Name the best steps among the points of one cell."""
    bought = [
        point
        for point in points
        if not point["is_own"] and (point["iops_gain_low"] or 0) > 0
    ]
    if not bought:
        return "no step buys more requests per second"
    most = f"most requests: {_step_text(_smallest_with_most(bought))}"
    priced = [point for point in bought if point["iops_per_1000"] is not None]
    if not priced:
        return most
    free = _best_free_step(bought)
    if free is not None:
        return f"most requests for no money: {_step_text(free)}; {most}"
    best = max(priced, key=lambda point: point["iops_per_1000"])
    return (
        f"most requests for the money: {_step_text(best)} for {number_text(best['cost'])}, "
        f"{rate_text(best['iops_per_1000'])} requests/s for each 1,000; {most}"
    )


def _smallest_with_most(bought: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the smallest step of the best resource whose gain the best step does not clearly exceed."""
    best = max(bought, key=lambda point: point["iops_gain"])
    equal = (
        point
        for point in bought
        if point["resource"] == best["resource"]
        and point["iops_gain"] >= best["iops_gain_low"]
    )
    return min(equal, key=lambda point: point["amount"])


def _step_text(point: Mapping[str, Any]) -> str:
    gain = rate_text(point["iops_gain"])
    low, high = point["iops_gain_low"], point["iops_gain_high"]
    if low is not None and high is not None:
        gain += f" ± {rate_text((high - low) / 2)}"
    return f"{point['resource']} {number_text(point['amount'])}, +{gain} requests/s"

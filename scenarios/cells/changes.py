"""From the planned changes of a scenario to changes of the map."""

import difflib
from dataclasses import replace

import numpy as np

from stripesim.models.placement import CrushMap, OsdWeights
from stripesim.scenarios.cells.placement import (
    crush_of,
    grown_map_of,
    osds_out,
    stated_weight,
)
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.tables import ChangeSpec
from stripesim.scenarios.schema.topology import nanoseconds
from stripesim.sim.ceph.failures import PlannedChange
from stripesim.sim.ceph.failures.cluster_map import MapChange
from stripesim.sim.engine.graph import IntArray


def planned_changes(
    scenario: Scenario, osd_hosts: IntArray
) -> tuple[PlannedChange, ...]:
    """Return the changes of the map that a scenario plans.

    Hosts are drained by a CRUSH weight of 0, as ``ceph orch host drain`` does it.

    Parameters
    ----------
    scenario
        The scenario.
    osd_hosts
        Host of each OSD, shape (osds,).

    Raises
    ------
    ValueError
        If a change names an OSD or a host that the CRUSH map does not have.
    """
    planned = []
    for index, change in enumerate(scenario.changes):
        _check(scenario, index, osd_hosts)
        time_ns = None if change.at_s is None else nanoseconds(change.at_s)
        map_changes = _map_changes(scenario, index, osd_hosts)
        planned_change = PlannedChange(
            kind=change.kind, changes=map_changes, time_ns=time_ns
        )
        planned.append(_typed(change, planned_change))
    return tuple(planned)


def check_changes(scenario: Scenario, osd_hosts: IntArray) -> None:
    """Check the OSDs and hosts that changes name, those of restarts included.

    Raises
    ------
    ValueError
        If a change names an OSD or a host that the CRUSH map does not have.
    """
    for index, change in enumerate(scenario.changes):
        _check(scenario, index, osd_hosts)
        if change.kind != "restart":
            _map_changes(scenario, index, osd_hosts)
        elif change.hosts is not None:
            drained_hosts(scenario, index)


def weights_after(scenario: Scenario, osd_hosts: IntArray) -> OsdWeights:
    """Return the weights of OSDs once all planned changes of a scenario are made."""
    out: set[int] = set()
    crush: dict[int, int] = {}
    for planned in planned_changes(scenario, osd_hosts):
        for change in planned.changes:
            if change.kind == "out":
                out.add(change.subject)
            elif change.kind == "in":
                out.discard(change.subject)
            else:
                crush[change.subject] = change.weight
    return OsdWeights(out=tuple(sorted(out)), crush=tuple(sorted(crush.items())))


def sets_norebalance(change: ChangeSpec) -> bool:
    """Return True if the commands of a change begin and end with the flag ``norebalance``."""
    if change.norebalance is None:
        return change.kind == "add"
    return change.norebalance


def _typed(change: ChangeSpec, planned: PlannedChange) -> PlannedChange:
    """Return a change with the times at which the operator has given its commands."""
    if not change.command_s:
        return planned
    command_ns = nanoseconds(change.command_s)
    # The flag is the first command.
    first = 1 + sets_norebalance(change)
    numbers = range(first, first + len(planned.changes))
    if change.kind in ("out", "in"):
        numbers = range(first, first + 1)
    delays_ns = tuple(number * command_ns for number in numbers)
    norebalance_ns = 0
    if sets_norebalance(change):
        norebalance_ns = delays_ns[-1] + command_ns
    if change.kind in ("out", "in"):
        # One command names all OSDs.
        delays_ns *= len(planned.changes)
    return replace(planned, delays_ns=delays_ns, norebalance_ns=norebalance_ns)


def _map_changes(
    scenario: Scenario, index: int, osd_hosts: IntArray
) -> tuple[MapChange, ...]:
    change = scenario.changes[index]
    osds = change.osds or ()
    if change.kind == "out":
        return tuple(MapChange("out", osd) for osd in osds)
    if change.kind == "in":
        return tuple(MapChange("in", osd) for osd in osds)
    if change.kind == "weight":
        assert change.weight is not None, "checked by change_rules"
        return _weighted(osds, stated_weight(scenario, change.weight))
    if change.kind == "remove":
        hosts = drained_hosts(scenario, index)
        drained = np.flatnonzero(np.isin(osd_hosts, hosts))
        return _weighted(drained.tolist(), 0)
    if change.kind == "add":
        grown = grown_map_of(scenario)
        new_osds = [osd for osds in grown.new_osds[index] for osd in osds]
        if change.weight is not None:
            return _weighted(new_osds, stated_weight(scenario, change.weight))
        last = _last_weight(grown.crush)
        if last is None:
            got = "nothing with a CRUSH map in which no OSD weighs anything"
            wanted = "the weight of each new OSD"
            raise scenario.problem(f"changes.{index}.weight", got, wanted)
        return _weighted(new_osds, last)
    raise scenario.problem(
        f"changes.{index}.kind", change.kind, "a kind that moves data within the pool"
    )


def drained_hosts(scenario: Scenario, index: int) -> list[int]:
    """Return the numbers of the hosts that a change drains. Names are those of the CRUSH map."""
    change = scenario.changes[index]
    assert isinstance(change.hosts, tuple), "checked by change_rules"
    in_map = crush_of(scenario).domains("host").values()
    numbers = {name: number for number, name in enumerate(dict.fromkeys(in_map))}
    hosts: list[int] = []
    for place, host in enumerate(change.hosts):
        if isinstance(host, int):
            hosts.append(host)
            continue
        if host not in numbers:
            near = difflib.get_close_matches(host, numbers, n=1, cutoff=0.0)
            wanted = f"a host of the CRUSH map, such as {near[0]}"
            where = f"changes.{index}.hosts.{place}"
            raise scenario.problem(where, f'"{host}"', wanted)
        hosts.append(numbers[host])
    return hosts


def _weighted(
    osds: "list[int] | tuple[int, ...]", weight: int
) -> tuple[MapChange, ...]:
    return tuple(MapChange("weight", osd, weight) for osd in osds)


def _last_weight(crush: CrushMap) -> int | None:
    """Return the CRUSH weight of the last OSD that weighs anything, or None if none does."""
    weights = {
        item: weight
        for bucket in crush.buckets
        for item, weight in zip(bucket.items, bucket.weights, strict=True)
        if item >= 0 and weight
    }
    return weights[max(weights)] if weights else None


def _check(scenario: Scenario, index: int, osd_hosts: IntArray) -> None:
    """Refuse OSDs and hosts that do not exist when a change begins."""
    change = scenario.changes[index]
    grown = grown_map_of(scenario)
    later = [osd for hosts in grown.new_osds[index:] for osds in hosts for osd in osds]
    known = {device.id for device in grown.crush.devices}.difference(later)
    out = osds_out(scenario)
    for place, osd in enumerate(change.osds or ()):
        where = f"changes.{index}.osds.{place}"
        if osd not in known:
            raise scenario.problem(where, f"{osd}", "an OSD of the CRUSH map by then")
        if osd in out and change.kind in ("out", "in"):
            got = f"{osd}, which cluster.osd_reweights has out"
            raise scenario.problem(where, got, "an OSD of another weight")
    if not isinstance(change.hosts, tuple):
        return
    hosts_count = int(osd_hosts.max()) + 1 - len(np.unique(osd_hosts[later]))
    for place, host in enumerate(drained_hosts(scenario, index)):
        # New hosts have the last numbers.
        if host >= hosts_count:
            where = f"changes.{index}.hosts.{place}"
            wanted = f"a host that exists by then, from 0 to {hosts_count - 1}"
            raise scenario.problem(where, str(change.hosts[place]), wanted)

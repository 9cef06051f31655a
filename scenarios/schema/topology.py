"""Map OSDs to hosts, racks and sites, and events of a scenario to the OSDs that they stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stripesim.scenarios.schema.keys import ClusterSpec
from stripesim.scenarios.schema.tables import EventSpec
from stripesim.sim.ceph.failures import Failure, SlowDrives
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.engine.program import SLOWDOWN_UNIT


@dataclass(frozen=True)
class Topology:
    """Hosts, racks and sites of OSDs. Racks and sites are numbered in the order of their first hosts.

    Parameters
    ----------
    osd_hosts
        Host of each OSD, int64 of shape (OSDs,).
    racks
        Name of the rack of each host, or None without racks.
    sites
        Name of the site of each host, or None without sites.
    """

    osd_hosts: IntArray
    racks: Sequence[str] | None
    sites: Sequence[str] | None = None

    @classmethod
    def of(cls, cluster: ClusterSpec) -> Topology:
        """Return the topology of a cluster without a CRUSH map."""
        hosts = np.arange(cluster.host_count, dtype=np.int64)
        osd_hosts = np.repeat(hosts, cluster.of_hosts("osds"))
        return cls(osd_hosts, cluster.rack_names, cluster.site_names)

    @property
    def osd_racks(self) -> IntArray | None:
        """Rack of each OSD, int64 of shape (OSDs,), or None without racks."""
        return self._numbers(self.racks)

    @property
    def osd_sites(self) -> IntArray | None:
        """Site of each OSD, int64 of shape (OSDs,), or None without sites."""
        return self._numbers(self.sites)

    def _numbers(self, names: Sequence[str] | None) -> IntArray | None:
        if names is None:
            return None
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        of_hosts = np.array([numbers[name] for name in names], dtype=np.int64)
        return of_hosts[self.osd_hosts]

    def count(self, kind: str) -> int:
        """Return the number of hosts (kind "host") or of OSDs."""
        if kind == "host":
            return int(self.osd_hosts.max()) + 1
        return len(self.osd_hosts)

    def osds_of_hosts(self, hosts: Sequence[int]) -> list[int]:
        """Return the OSDs of the given hosts."""
        on_hosts = np.isin(self.osd_hosts, list(hosts))
        return [int(osd) for osd in np.flatnonzero(on_hosts)]

    def hosts_of_racks(self, racks: Sequence[int]) -> list[int]:
        """Return the hosts of the given racks."""
        return _hosts_of(racks, self.racks)

    def hosts_of_sites(self, sites: Sequence[int]) -> list[int]:
        """Return the hosts of the given sites."""
        return _hosts_of(sites, self.sites)

    def failure(self, event: EventSpec) -> Failure:
        """Return the failure that an event of the scenario causes, which stops its OSDs."""
        assert event.kind != "slow", "a slow drive stops nothing"
        return Failure(
            osds=self._osds_of(event),
            hosts=self._hosts_of(event),
            time_ns=nanoseconds(event.at_s),
            back_ns=_end_ns(event),
            kind=event.kind,
            keeps_data=event.data == "kept",
        )

    def slow_drives(self, event: EventSpec) -> SlowDrives:
        """Return the slow drives that an event of the scenario causes."""
        assert event.factor is not None, "checked by fault_rules"
        return SlowDrives(
            osds=self._osds_of(event),
            time_ns=nanoseconds(event.at_s),
            slowdown=round(event.factor * SLOWDOWN_UNIT),
            end_ns=_end_ns(event),
        )

    def _osds_of(self, event: EventSpec) -> tuple[int, ...]:
        osds = {*event.osds, *self.osds_of_hosts(self._hosts_of(event))}
        return tuple(sorted(osds))

    def _hosts_of(self, event: EventSpec) -> tuple[int, ...]:
        of_racks = self.hosts_of_racks(event.racks)
        of_sites = self.hosts_of_sites(event.sites)
        return tuple(sorted({*event.hosts, *of_racks, *of_sites}))


def _hosts_of(numbers: Sequence[int], names: Sequence[str] | None) -> list[int]:
    """Return the hosts in racks or sites, numbered in the order of their first hosts."""
    if not numbers or names is None:
        return []
    in_order = list(dict.fromkeys(names))
    wanted = {in_order[number] for number in numbers}
    return [host for host, name in enumerate(names) if name in wanted]


def _end_ns(event: EventSpec) -> int | None:
    return None if event.return_s is None else nanoseconds(event.return_s)


def nanoseconds(seconds: float) -> int:
    """Round a time to whole nanoseconds."""
    return round(seconds * 10**9)

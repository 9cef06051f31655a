"""CRUSH maps with hosts that planned changes add."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count

from stripesim.models.placement import CrushMap, with_new_hosts
from stripesim.models.placement.crush.elements import Bucket
from stripesim.models.problems import ProblemsError
from stripesim.scenarios.schema.tables import ChangeSpec


@dataclass(frozen=True)
class GrownMap:
    """A CRUSH map with all hosts that changes add. Their OSDs have weight 0 until then."""

    crush: CrushMap
    new_osds: tuple[
        tuple[tuple[int, ...], ...], ...
    ]  #: OSDs of each new host, by change

    @property
    def new_hosts(self) -> list[tuple[int, ...]]:
        """OSDs of each new host."""
        return [osds for of_change in self.new_osds for osds in of_change]


def grown_map(crush: CrushMap, changes: Sequence[ChangeSpec]) -> GrownMap:
    """Add the hosts of all changes to a map.

    A new host joins the bucket that holds the fewest hosts. The last host provides the device class of its
    OSDs, and their number unless the change states one.

    Raises
    ------
    ProblemsError
        If the map has no host to take as an example.
    """
    return _grown(crush, tuple(changes))


@lru_cache(maxsize=8)
def _grown(crush: CrushMap, changes: tuple[ChangeSpec, ...]) -> GrownMap:
    new_osds = []
    for change in changes:
        hosts_count = change.hosts if isinstance(change.hosts, int) else 0
        osds: list[list[int]] = []
        if hosts_count:
            crush, osds = _with_hosts(crush, hosts_count, change.osds_per_host)
        new_osds.append(tuple(map(tuple, osds)))
    return GrownMap(crush, tuple(new_osds))


def _with_hosts(
    crush: CrushMap, hosts_count: int, osds_per_host: int | None
) -> tuple[CrushMap, list[list[int]]]:
    hosts = _hosts(crush)
    if not hosts:
        raise ProblemsError(
            "add: got a CRUSH map without hosts, wanted one to take as an example"
        )
    last = hosts[-1]
    class_of = {device.id: device.device_class for device in crush.devices}
    hosts_of_parent = {
        bucket.id: sum(host.id in bucket.items for host in hosts)
        for bucket in crush.buckets
        if any(host.id in bucket.items for host in hosts)
    }
    if not hosts_of_parent:
        raise ProblemsError(
            "add: got a CRUSH map whose hosts are in no bucket, wanted a root"
        )
    parents = []
    for _ in range(hosts_count):
        parent = min(hosts_of_parent, key=lambda bucket: hosts_of_parent[bucket])
        hosts_of_parent[parent] += 1
        parents.append(parent)
    taken = {bucket.name for bucket in crush.buckets}
    names: list[str] = []
    numbers = count(len(hosts))
    while len(names) < hosts_count:
        name = f"host{next(numbers)}"
        if name not in taken:
            names.append(name)
    return with_new_hosts(
        crush,
        names,
        parents=parents,
        osds_per_host=osds_per_host or len(last.items),
        device_class=class_of[last.items[0]],
    )


def _hosts(crush: CrushMap) -> list[Bucket]:
    """List the hosts of a map that hold OSDs, without shadow trees."""
    types = {name: number for number, name in crush.types}
    return [
        bucket
        for bucket in crush.buckets
        if bucket.type_id == types.get("host")
        and bucket.items
        and "~" not in bucket.name
    ]

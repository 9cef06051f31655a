"""Turn an imported pool into a scenario with a CRUSH map, hardware presets, and the load by its counters."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from stripesim.models.documents import toml_value
from stripesim.models.placement import (
    NONE,
    CrushMap,
    OsdMap,
    map_to_text,
    parse_map,
    pg_mappings,
    pg_sets,
)
from stripesim.models.placement.crush.elements import WEIGHT_ONE
from stripesim.models.placement.upmaps import upmap_pairs
from stripesim.models.problems import (
    MeasuredError,
    Problem,
    ProblemsError,
    ScenarioError,
    first_problem,
    problems_at,
)
from stripesim.scenarios.clusters.cluster import (
    MANAGER_POOLS,
    ImportedCluster,
    ImportedOsd,
    ImportedPool,
    osds_text,
)
from stripesim.scenarios.clusters.hardware import (
    Derivation,
    Hardware,
    hardware_of,
    has_mclock_of_reef,
)
from stripesim.scenarios.clusters.pool_crush import crush_of_pool
from stripesim.scenarios.clusters.pool_workload import (
    PoolLoad,
    load_of,
    object_bytes_of,
    object_notes,
)
from stripesim.scenarios.clusters.report_schema import printable
from stripesim.scenarios.clusters.usage import ObjectMean, data_by_osd, mean_object
from stripesim.scenarios.schema.keys import (
    FILL_RATIOS,
    OBJECT_BYTES,
)
from stripesim.scenarios.schema.scenario import load_scenario
from stripesim.scenarios.schema.toml import escaped
from stripesim.scenarios.schema.units import (
    bytes_text,
    counted_text,
    format_size,
    size_text,
)
from stripesim.scenarios.show.files import write_files

# Reports print ratios as 0.94999998807907104.
_RATIO_DIGITS: Final = 4

# The first release that behaves as each simulated generation.
_GENERATIONS: Final = (
    (20, "tentacle"),
    (19, "squid"),
    (18, "reef"),
    (17, "quincy"),
    (0, "pacific"),
)
_OLDEST_SIMULATED: Final = 16
_NEWEST_SIMULATED: Final = 20
_RELEASE_UNKNOWN: Final = 16
_RELEASE_WITH_FASTEC: Final = 20
_NAME_MAX: Final = 64
_IMAGE_BYTES: Final = 8 << 30
# Relative difference up to which OSDs of hosts count as equally large. Partitions differ by some
# megabytes.
_ALIKE: Final = 0.02
_UNITS: Final = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"))


class PoolHost(NamedTuple):
    """A host and its OSDs of a pool."""

    name: str
    osds: tuple[ImportedOsd, ...]
    cores: int
    rack: str | None = None

    @property
    def size_bytes(self) -> int:
        """Total size of its OSDs [B]."""
        return sum(osd.size_bytes for osd in self.osds)

    def is_like(self, other: "PoolHost") -> bool:
        """Return True if both hosts have equally many OSDs and cores, and nearly the same size."""
        if len(self.osds) != len(other.osds) or self.cores != other.cores:
            return False
        return abs(self.size_bytes - other.size_bytes) <= _ALIKE * max(
            self.size_bytes, other.size_bytes
        )


def mean_size_words(hosts: Sequence[PoolHost]) -> str:
    """Return the range of the OSDs' sizes, whose mean one size states, or nothing if all are alike."""
    sizes = [osd.size_bytes for host in hosts for osd in host.osds]
    smallest, largest = min(sizes), max(sizes)
    if largest - smallest <= _ALIKE * largest:
        return ""
    return f"the mean of OSDs of {bytes_text(smallest)} to {bytes_text(largest)}"


@dataclass(frozen=True)
class PoolDescription:
    """The parts that all scenarios of a pool share, with or without a CRUSH map."""

    pool: ImportedPool
    hosts: tuple[PoolHost, ...]  # in the order of the CRUSH map
    hardware: Hardware
    load: PoolLoad
    head: dict[str, Any]  # top-level keys
    cluster: dict[str, Any]  # keys of `[cluster]` except for the number of hosts
    objects: ObjectMean | None  # that the pool's objects stand for, None if not known
    object_bytes: int  # size of the pool's objects
    image_bytes: int  # size of the images of simulated clients
    derivations: tuple[Derivation, ...]  # of each key


@dataclass(frozen=True)
class ImportedScenario:
    """A scenario, with its CRUSH map if it has one."""

    pool: str
    tables: dict[str, Any]  # as in TOML
    derivations: tuple[Derivation, ...]  # of each key
    crush_text: str | None = None  # content of the file that `cluster.crush_map` names
    notes: tuple[str, ...] = ()  # simplifications
    outside: tuple[Problem, ...] = ()  # values outside the calibrated range
    comments: Mapping[str, Sequence[str]] = field(
        default_factory=dict
    )  # for each table, after its keys

    def toml(self) -> str:
        """Write the scenario as TOML, with the derivation of its keys as comments."""
        simplified = (f"simplified: {note}" for note in self.notes)
        lines = [*map(str, self.derivations), *simplified]
        text = "".join(f"# {escaped(line)}\n" for line in lines)
        plain = {
            key: value for key, value in self.tables.items() if not _is_table(value)
        }
        text += "\n" + _pairs(plain)
        for name, value in self.tables.items():
            if name not in plain:
                text += _table(name, value)
                text += "".join(
                    f"# {escaped(line)}\n" for line in self.comments.get(name, ())
                )
        return text

    def files(self, name: str) -> dict[str, bytes]:
        """Return the scenario under a file name, and its CRUSH map if it has one."""
        files = {name: self.toml().encode()}
        if self.crush_text is not None:
            files[self.tables["cluster"]["crush_map"]] = self.crush_text.encode()
        return files


def _is_table(value: object) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and value != [] and isinstance(value[0], dict)
    )


def _pairs(values: Mapping[str, Any]) -> str:
    return "".join(f"{key} = {toml_value(value)}\n" for key, value in values.items())


def _table(name: str, value: Any) -> str:
    """Write a table or a list of tables, with the tables inside."""
    if isinstance(value, list):
        return "".join(f"\n[[{name}]]\n{_pairs(row)}" for row in value)
    inner = {key: part for key, part in value.items() if _is_table(part)}
    text = f"\n[{name}]\n" + _pairs(
        {key: part for key, part in value.items() if key not in inner}
    )
    return text + "".join(_table(f"{name}.{key}", part) for key, part in inner.items())


def size_key(size_bytes: float) -> int | str:
    """Write a size for a scenario file, with a unit and six digits.

    >>> size_key(12000134430720), size_key(4096)
    ('12.0001TB', 4096)
    """
    for unit, name in _UNITS:
        if size_bytes >= unit:
            return f"{size_bytes / unit:.6g}{name}"
    return max(1, round(size_bytes))


def chosen_pools(cluster: ImportedCluster, names: Sequence[str]) -> list[ImportedPool]:
    """Return the named pools, or else the pool with most data among those that can be simulated."""
    if not cluster.pools:
        raise MeasuredError(
            f"{cluster.file}: osdmap.pools: got none, wanted at least one pool"
        )
    by_name = {pool.placed.name: pool for pool in cluster.pools}
    wanted = ", ".join(by_name)
    asked = list(dict.fromkeys(map(printable, names)))
    unknown = [
        f"--pool: got {name!r}, wanted one of {wanted}"
        for name in asked
        if name not in by_name
    ]
    if unknown:
        raise MeasuredError(*unknown)
    if asked:
        return [by_name[name] for name in asked]
    problems = {pool.placed.name: problem_of(cluster, pool) for pool in cluster.pools}
    usable = [pool for pool in cluster.pools if problems[pool.placed.name] is None]
    if not usable:
        raise MeasuredError(*filter(None, problems.values()))
    # Pools of the manager hold statistics. They count only if there is no other.
    of_clients = [pool for pool in usable if pool.placed.name not in MANAGER_POOLS]
    largest_first = sorted(of_clients or usable, key=_importance, reverse=True)
    for pool in largest_first[:-1]:
        try:
            _map_of(cluster, pool)
        except MeasuredError:
            continue
        return [pool]
    return largest_first[-1:]


def _importance(pool: ImportedPool) -> tuple[int, int]:
    """Return a sort key: stored bytes, then shards."""
    return pool.held_bytes or 0, pool.placed.pg_num * pool.placed.size


def problem_of(cluster: ImportedCluster, pool: ImportedPool) -> str | None:
    """Return the reason why a pool cannot be simulated, or None."""
    key = f"{pool.key}.crush_rule"
    if not pool.rule_name:
        return f"{key}: got {pool.placed.rule}, wanted a rule of the CRUSH map"
    osds = cluster.osds_of(pool)
    rule = f"rule {pool.rule_name}"
    if not osds:
        return (
            f"{key}: got {rule}, which reaches no OSD that is in, wanted one that does"
        )
    hosts = cluster.osd_map.crush.domains("host")
    stray = [osd.id for osd in osds if osd.id not in hosts]
    if stray:
        return f"{key}: got {rule} with {osds_text(stray)} in no bucket of type host, wanted OSDs in hosts"
    return None


def describe_pool(
    cluster: ImportedCluster,
    pool: ImportedPool,
    *,
    holding: Sequence[ImportedPool] = (),
) -> PoolDescription:
    """Collect the parts that all scenarios of a pool share.

    Its data stands for that of the pools `holding`, by default for its own.
    """
    problem = problem_of(cluster, pool)
    if problem:
        raise MeasuredError(problem)
    release = cluster.release or _RELEASE_UNKNOWN
    generation = next(name for least, name in _GENERATIONS if release >= least)
    known = f"Ceph {cluster.version or 'of unknown release'}"
    if has_mclock_of_reef(cluster.version):
        generation = "reef"
        known += ", which schedules as Reef does"
    if not _OLDEST_SIMULATED <= release <= _NEWEST_SIMULATED:
        known += ", the nearest that is simulated"
    hardware = hardware_of(cluster, pool, release)
    load = load_of(cluster, pool)
    objects = mean_object(holding or (pool,))
    object_bytes = object_bytes_of(objects, pool, load)
    keys: dict[str, Any] = {
        "pg_num": pool.placed.pg_num,
        "stripe_unit_bytes": pool.stripe_unit_bytes,
        **hardware.tables,
        "drive_bytes": size_key(hardware.tables["drive_bytes"]),
    }
    sizes: list[Derivation] = []
    if objects is not None and object_bytes != OBJECT_BYTES:
        keys["object_bytes"] = format_size(object_bytes)
        mean = bytes_text(objects.size_bytes)
        source = (
            f"{objects.objects_count:,} objects of {mean} on average, in whole requests"
        )
        sizes = [Derivation("cluster.object_bytes", source, size_text(object_bytes))]
    keys |= _own_ratios(cluster)
    if pool.placed.kind == "erasure" and release >= _RELEASE_WITH_FASTEC:
        keys["ec_optimizations"] = pool.optimised
    return PoolDescription(
        pool=pool,
        hosts=_hosts_of(cluster, pool, hardware),
        hardware=hardware,
        load=load,
        head={
            "name": scenario_name(pool.placed.name),
            "description": f"Pool {pool.placed.name} on {len(pool.osds)} OSDs, Ceph {cluster.version}",
            "generation": generation,
            "schemes": [pool.scheme],
        },
        cluster=keys,
        objects=objects,
        object_bytes=object_bytes,
        image_bytes=_image_bytes(cluster, pool, object_bytes),
        derivations=(
            Derivation("generation", known, generation),
            *hardware.derivations,
            *sizes,
            *load.derivations,
        ),
    )


def _own_ratios(cluster: ImportedCluster) -> dict[str, float]:
    """Return the ratios of the cluster that differ from Ceph's defaults."""
    ratios = [round(ratio, _RATIO_DIGITS) for ratio in vars(cluster.ratios).values()]
    return {
        key: ratio
        for (key, default), ratio in zip(FILL_RATIOS.items(), ratios, strict=True)
        if ratio != default
    }


def _image_bytes(
    cluster: ImportedCluster, pool: ImportedPool, object_bytes: int
) -> int:
    """Return the size of images in whole objects: 8 GiB, or a quarter of a small pool's capacity [B]."""
    raw = sum(osd.size_bytes for osd in cluster.osds_of(pool))
    objects = min(_IMAGE_BYTES, int(raw / pool.overhead / 4)) // object_bytes
    return max(1, objects) * object_bytes


def _hosts_of(
    cluster: ImportedCluster, pool: ImportedPool, hardware: Hardware
) -> tuple[PoolHost, ...]:
    members: dict[str, list[ImportedOsd]] = {}
    by_id = {osd.id: osd for osd in cluster.osds_of(pool)}
    # In the order of the map. An OSD that is linked twice counts for its last host.
    hosts = cluster.osd_map.crush.domains("host")
    for osd, host in hosts.items():
        if osd in by_id:
            members.setdefault(host, []).append(by_id[osd])
    return tuple(
        PoolHost(name, tuple(osds), hardware.cores_by_host[name])
        for name, osds in members.items()
    )


def scenario_name(text: str) -> str:
    """Turn the name of a pool into a valid name of a scenario or file.

    >>> scenario_name(".rgw.root"), scenario_name("a/b c")
    ('rgw.root', 'a-b-c')
    """
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", text)
    return re.sub(r"^[^A-Za-z0-9]+", "", safe)[:_NAME_MAX].strip("-") or "pool"


def scenario_of(
    cluster: ImportedCluster, pool: ImportedPool, crush_file: str
) -> ImportedScenario:
    """Build the scenario of a pool, with the part of the CRUSH map that its rule reaches."""
    described = describe_pool(cluster, pool)
    crush, text = _map_of(cluster, pool)
    keys = {
        "crush_map": crush_file,
        "crush_rule": pool.rule_name,
        "pool_id": pool.placed.id,
        **described.cluster,
    }
    osds = {device.id for device in crush.devices}
    keys |= _usage(cluster, pool, osds)
    keys |= _exceptions(cluster, pool, osds)
    hosts = _hosts_of_map(crush, cluster, described)
    groups = host_groups(hosts)
    sizes: list[Derivation] = []
    if len(groups) > 1:
        keys["hosts"] = groups
        sizes = _mixed_sizes(hosts)
    tables = {
        **described.head,
        "cluster": keys,
        **described.load.tables(described.image_bytes),
    }
    derived = (*described.derivations, *sizes, *described.load.table_derivations())
    notes = [
        *_placement_notes(cluster, pool, keys),
        *object_notes(described.objects, pool, described.object_bytes),
    ]
    if pool.held_bytes and pool.held_bytes < described.image_bytes:
        notes.append(
            f"pool {pool.placed.name} holds {bytes_text(pool.held_bytes)}, less than the image of "
            f"{bytes_text(described.image_bytes)} that its load needs: [faults] and [repair] of a run move "
            "the image. rehearse, durability and --failures count what the pool holds"
        )
    return ImportedScenario(pool.placed.name, tables, derived, text, tuple(notes))


def _usage(
    cluster: ImportedCluster, pool: ImportedPool, osds: set[int]
) -> dict[str, Any]:
    """Return what a pool stores and what these OSDs hold, of all pools, as `[cluster]` has them.

    If no file has the use of each OSD, that of its device class is distributed by estimate. OSDs that are out
    hold nothing.
    """
    keys: dict[str, Any] = {}
    if pool.held_bytes:
        keys["stored_bytes"] = pool.held_bytes
    used_bytes = {
        osd.id: osd.data_bytes
        for osd in cluster.osds
        if osd.id in osds and osd.is_in and osd.data_bytes is not None
    }
    inside = osds & _osds_in(cluster)
    if used_bytes.keys() != inside:
        estimated = data_by_osd(cluster)
        used_bytes = {osd: round(estimated.get(osd, 0.0)) for osd in inside}
    if any(used_bytes.values()):
        keys["used_bytes"] = [used_bytes.get(osd, 0) for osd in range(max(osds) + 1)]
    return keys


def _exceptions(
    cluster: ImportedCluster, pool: ImportedPool, osds: set[int]
) -> dict[str, list[dict[str, Any]]]:
    """Return the reweights, affinities and upmaps that place a pool, as `[cluster]` has them."""
    osd_map = cluster.osd_map
    keys: dict[str, list[dict[str, Any]]] = {}
    weights = {osd: _reweight(cluster, osd) for osd in sorted(osds)}
    reweights = [
        {"osd": osd, "weight": weight / WEIGHT_ONE}
        for osd, weight in weights.items()
        if weight < WEIGHT_ONE
    ]
    if reweights:
        keys["osd_reweights"] = reweights
    affinities = [
        {"osd": osd, "affinity": int(osd_map.affinities[osd]) / WEIGHT_ONE}
        for osd in sorted(osds)
        if osd_map.affinities[osd] < WEIGHT_ONE
    ]
    if affinities and pool.placed.kind == "replicated":
        keys["primary_affinities"] = affinities
    upmaps = [
        {"pg": f"{group:x}", "pairs": [list(pair) for pair in pairs]}
        for group, pairs in sorted(_upmap_pairs(cluster, pool).items())
        if pairs and osds.issuperset(new for _, new in pairs)
    ]
    if upmaps:
        keys["upmap_items"] = upmaps
    return keys


def _upmap_pairs(
    cluster: ImportedCluster, pool: ImportedPool
) -> dict[int, Sequence[tuple[int, int]]]:
    """Return the upmap pairs of each placement group. A whole set (``pg_upmap``) becomes pairs, too."""
    osd_map = cluster.osd_map
    pairs = {
        group: items
        for (pool_id, group), items in osd_map.pg_upmap_items.items()
        if pool_id == pool.placed.id
    }
    groups = _groups_of(pool, osd_map.pg_upmap)
    rows = zip(*_raw_and_upmapped(osd_map, pool, groups), strict=True)
    for group, (raw, upmapped) in zip(groups, rows, strict=True):
        if len(raw) == len(upmapped) and NONE not in raw:
            pairs[group] = upmap_pairs(raw, upmapped)
    return pairs


def _groups_of(pool: ImportedPool, entries: Iterable[tuple[int, int]]) -> list[int]:
    """Return the placement groups of a pool that exceptions name, ascending."""
    placed = pool.placed
    return sorted(
        group
        for pool_id, group in entries
        if pool_id == placed.id and group < placed.pg_num
    )


def _raw_and_upmapped(
    osd_map: OsdMap, pool: ImportedPool, groups: Sequence[int]
) -> tuple[list[list[int]], list[list[int]]]:
    """Return the OSDs of groups by CRUSH, and with the upmaps, in the order in which Ceph maps them."""
    in_order = replace(
        osd_map,
        up=osd_map.exists,
        affinities=np.full_like(osd_map.affinities, WEIGHT_ONE),
        pg_upmap_primaries={},
    )
    plain = replace(in_order, pg_upmap={}, pg_upmap_items={})
    numbers = np.array(groups, dtype=np.int64)
    raw = pg_sets(plain, pool.placed, numbers).up.tolist()
    return raw, pg_sets(in_order, pool.placed, numbers).up.tolist()


def _placement_notes(
    cluster: ImportedCluster, pool: ImportedPool, keys: Mapping[str, Any]
) -> list[str]:
    """Return notes on exceptions of the OSD map that a scenario does not have."""
    osd_map = cluster.osd_map
    notes = []
    written = {
        int(items["pg"], 16): items["pairs"] for items in keys.get("upmap_items", ())
    }
    groups = _groups_of(pool, osd_map.pg_upmap)
    rows = zip(*_raw_and_upmapped(osd_map, pool, groups), strict=True)
    differing = 0
    for group, (raw, upmapped) in zip(groups, rows, strict=True):
        new_of = dict(written.get(group, ()))
        differing += [new_of.get(osd, osd) for osd in raw] != upmapped
    if differing:
        notes.append(
            f"pg_upmap: {counted_text(differing, 'placement group')} with OSDs, or an order of them, that "
            "pairs of OSDs (pg_upmap_items) cannot give: the scenario places them without"
        )
    chosen = _groups_of(pool, osd_map.pg_upmap_primaries)
    if chosen:
        notes.append(
            f"pg_upmap_primaries: {counted_text(len(chosen), 'placement group')} with a primary that the "
            "read balancer chose: left out, the first OSD leads"
        )
    return notes


def _osds_in(cluster: ImportedCluster) -> set[int]:
    return {osd.id for osd in cluster.osds if osd.is_in}


def _reweight(cluster: ImportedCluster, osd: int) -> int:
    """Return the reweight of an OSD of the CRUSH map, 16.16 fixed point: 0 if it does not exist."""
    weights = cluster.osd_map.weights
    return int(weights[osd]) if osd < len(weights) else 0


def _map_of(cluster: ImportedCluster, pool: ImportedPool) -> tuple[CrushMap, str]:
    """Return the map of a pool as `run` reads it, and its text."""
    full_map = cluster.osd_map.crush
    rule = full_map.rule(pool.placed.rule)
    # `run` refuses an OSD in no host. One that is out is left out.
    osds = _osds_in(cluster) | full_map.domains("host").keys()
    crush = crush_of_pool(full_map, rule, pool.placed.id, osds)
    text = map_to_text(crush)
    key = f"{pool.key}.crush_rule"
    width = pool.placed.size
    try:
        read = parse_map(text)
        weights = {
            device.id: _reweight(cluster, device.id) / WEIGHT_ONE
            for device in read.devices
        }
        rows = pg_mappings(
            read, pool.rule_name, pool.placed.id, pool.placed.pg_num, width, weights
        )
    except ProblemsError as error:
        raise MeasuredError(
            f"{key}: got a map that `run` refuses: {first_problem(error)}"
        ) from None
    # CRUSH may leave an OSD that is out in a set (chooseleaf indep of type osd).
    out = [osd for osd, weight in weights.items() if not weight]
    placed = ((rows != NONE) & ~np.isin(rows, out)).sum(axis=1).max()
    if placed < width:
        raise MeasuredError(
            f"{key}: got rule {pool.rule_name}, which places at most {placed} of {width} shards on OSDs that "
            "are in, wanted one that places all"
        )
    return read, text


def _hosts_of_map(
    crush: CrushMap, cluster: ImportedCluster, described: PoolDescription
) -> list[PoolHost]:
    """Return the hosts of a map in order, which is that of `[[cluster.hosts]]`, with OSDs that are out."""
    by_id = {osd.id: osd for osd in cluster.osds}
    # A stand-in for OSDs that only the CRUSH map has: they are out, so any size will do.
    (any_osd, *_) = cluster.osds_of(described.pool)
    members: dict[str, list[ImportedOsd]] = {}
    for osd, host in crush.domains("host").items():
        members.setdefault(host, []).append(by_id.get(osd, any_osd))
    cores = described.hardware.cores_by_host
    usual = described.hardware.tables["cores_per_host"]
    return [
        PoolHost(name, tuple(osds), cores.get(name, usual))
        for name, osds in members.items()
    ]


def host_groups(hosts: Sequence[PoolHost]) -> list[dict[str, Any]]:
    """Write hosts as `[[cluster.hosts]]`, with consecutive similar hosts in one table."""
    usual_cores = Counter(host.cores for host in hosts).most_common(1)[0][0]
    groups: list[list[PoolHost]] = []
    for host in hosts:
        if groups and host.is_like(groups[-1][0]) and host.rack == groups[-1][0].rack:
            groups[-1].append(host)
        else:
            groups.append([host])
    return [_group(members, usual_cores) for members in groups]


def _mixed_sizes(hosts: Sequence[PoolHost]) -> list[Derivation]:
    """Return what stands for the drives of hosts with drives of several sizes, which get one each."""
    mixed = sum(bool(mean_size_words([host])) for host in hosts)
    if not mixed:
        return []
    where = f"{mixed} of {len(hosts)} hosts have drives of several sizes"
    value = "the mean of each host's drives"
    return [Derivation("cluster.hosts.drive_bytes", where, value)]


def _group(members: Sequence[PoolHost], usual_cores: int) -> dict[str, Any]:
    first = members[0]
    osds = len(first.osds)
    size = sum(host.size_bytes for host in members) / (len(members) * osds)
    group: dict[str, Any] = {
        "count": len(members),
        "osds": osds,
        "drive_bytes": size_key(size),
    }
    if first.cores != usual_cores:
        group["cores"] = first.cores
    if first.rack is not None:
        group["rack"] = first.rack
    return group


def write_scenario(scenario: ImportedScenario, path: Path) -> list[Path]:
    """Write a scenario and its CRUSH map, then load it as `stripesim run` does."""
    written = write_files(path.parent, scenario.files(path.name))
    check_written(scenario, path)
    return written


def check_written(scenario: ImportedScenario, path: Path) -> None:
    """Load a scenario that was written, as `stripesim run` does.

    Raises
    ------
    MeasuredError
        If the scenario cannot run.
    """
    try:
        load_scenario(str(path))
    except ScenarioError as error:
        raise MeasuredError(*problems_at(f"pool {scenario.pool}", error)) from None

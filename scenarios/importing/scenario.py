"""A scenario that runs, made from a pool of a cluster: its CRUSH map beside it, hardware as presets."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from stripesim.calibration.parameters.sets import ParameterSet, ParameterSetError
from stripesim.models.placement import CrushMap, map_to_text
from stripesim.models.placement.crush.elements import Bucket
from stripesim.scenarios.importing.capacity import capacity_of
from stripesim.scenarios.importing.cluster import ImportedCluster, ImportedOsd, ImportedPool
from stripesim.scenarios.importing.documents import ClusterImportError
from stripesim.scenarios.schema.loader import load_scenario
from stripesim.scenarios.schema.toml import toml_document

# Which of the simulated generations a release behaves as: from the release on.
_GENERATIONS = ((20, "tentacle"), (19, "squid"), (18, "reef"), (17, "quincy"), (0, "pacific"))


@dataclass(frozen=True)
class ImportedScenario:
    """A scenario and its CRUSH map."""

    pool: str
    tables: dict[str, Any]  # as TOML has them
    crush_text: str  # what ``cluster.crush_map`` names
    mapping: tuple[str, ...]  # how hardware was mapped to presets

    def toml(self) -> str:
        """Write the scenario as TOML, with the mapping as comments."""
        return "".join(f"# {line}\n" for line in self.mapping) + "\n" + toml_document(self.tables)


def chosen_pools(cluster: ImportedCluster, names: Sequence[str]) -> list[ImportedPool]:
    """Return the pools that are named, or else the one that matters most: by bytes stored, then by groups."""
    if not cluster.pools:
        raise ClusterImportError("osdmap.pools: got none, wanted one pool at least")
    by_name = {pool.placed.name: pool for pool in cluster.pools}
    wanted = ", ".join(by_name)
    unknown = [f"--pool: got {name!r}, wanted one of {wanted}" for name in names if name not in by_name]
    if unknown:
        raise ClusterImportError("\n".join(unknown))
    if names:
        return [by_name[name] for name in dict.fromkeys(names)]
    return [max(cluster.pools, key=lambda p: (p.stored_bytes or 0, p.placed.pg_num * p.placed.size))]


def scenario_of(cluster: ImportedCluster, pool: ImportedPool, crush_file: str) -> ImportedScenario:
    """Make the scenario of one pool; an OSD that is out or down has weight 0 in its CRUSH map."""
    tables, mapping = hardware_of(cluster, pool)
    crush = _crush(cluster, pool)
    release = re.match(r"\d+", cluster.version)
    number = int(release[0]) if release else 16
    groups = _host_groups(cluster, crush)
    found: dict[str, Any] = {
        "name": re.sub(r"[^A-Za-z0-9_-]+", "-", pool.placed.name).strip("-") or "pool",
        "description": f"Pool {pool.placed.name} of a cluster of {len(cluster.osds)} OSDs, Ceph "
        f"{cluster.version or 'of unknown release'}",
        "generation": next(name for least, name in _GENERATIONS if number >= least),
        "schemes": [pool.scheme],
        "cluster": {
            "crush_map": crush_file,
            "crush_rule": pool.rule_name,
            "pg_num": pool.placed.pg_num,
            "stripe_unit_bytes": pool.stripe_unit_bytes,
            **tables,
            "parameters": "pacific",
            **({"hosts": groups} if len(groups) > 1 else {}),
        },
        "workload": {
            "ops": ["write", "read"],
            "patterns": ["rand"],
            "block_sizes_bytes": ["4k"],
            "queue_depth": 32,
            "requests": 2000,
            "image_bytes": "8GiB",
        },
    }
    return ImportedScenario(pool.placed.name, found, map_to_text(crush), mapping)


def _host_groups(cluster: ImportedCluster, crush: CrushMap) -> list[dict[str, Any]]:
    """Hosts in the order of the map, neighbours with as many OSDs of the same mean size in one group."""
    sizes = {osd.id: osd.size_bytes or 0 for osd in cluster.osds}
    of_hosts: dict[str, list[int]] = {}
    for osd, host in crush.domains("host").items():
        of_hosts.setdefault(host, []).append(sizes.get(osd, 0))
    rows = [(len(own), max(1, round(sum(own) / len(own)))) for own in of_hosts.values()]
    grouped = ((size, osds, len(list(alike))) for (osds, size), alike in groupby(rows))
    return [{"count": count, "osds": osds, "drive_bytes": size} for size, osds, count in grouped]


def _crush(cluster: ImportedCluster, pool: ImportedPool) -> CrushMap:
    """Return the map with what is down or out at weight 0, and the choose_args of the pool for all."""
    crush = cluster.osd_map.crush
    inside = {osd.id for osd in cluster.osds if osd.up and osd.reweight > 0}
    held = {item for bucket in crush.buckets for item in bucket.items}
    sets = dict(crush.choose_args)
    args = sets.get(pool.placed.id, sets.get(-1))

    def without(bucket: Bucket) -> Bucket:
        pairs = zip(bucket.items, bucket.weights, strict=True)
        return replace(bucket, weights=tuple(w if item < 0 or item in inside else 0 for item, w in pairs))

    return replace(
        crush,
        devices=tuple(device for device in crush.devices if device.id in held),
        buckets=tuple(map(without, crush.buckets)),
        rules=tuple(rule for rule in crush.rules if rule.id == pool.placed.rule),
        choose_args=((-1, args),) if args else (),
    )


def write_scenario(found: ImportedScenario, path: Path) -> list[Path]:
    """Write a scenario and its CRUSH map, and load it as `stripesim run` will."""
    crush_path = path.parent / found.tables["cluster"]["crush_map"]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        crush_path.write_text(found.crush_text, encoding="utf-8")
        path.write_text(found.toml(), encoding="utf-8")
    except OSError as error:
        raise ClusterImportError(f"--out: {error.filename}: got {error.strerror}, wanted a file") from None
    load_scenario(str(path))
    return [path, crush_path]


def answer(
    cluster: ImportedCluster, pools: Sequence[str] = (), *, path: Path = Path("scenario.toml")
) -> tuple[dict[str, Any], dict[Path, ImportedScenario]]:
    """Return the document of `stripesim import ceph-report`, and scenarios by where to write them."""
    chosen = chosen_pools(cluster, pools)
    found = {}
    for pool in chosen:
        place = path if len(chosen) == 1 else path.with_name(f"{path.stem}-{pool.placed.name}{path.suffix}")
        found[place] = scenario_of(cluster, pool, f"{place.stem}.crush.txt")
    warnings, first = list(cluster.warnings), next(iter(found.values()))
    others = len(cluster.pools) - len(chosen)
    if others and not pools:
        warnings.append(f"pools: the scenario is of {first.pool}; {others} more: --pool names others")
    document = {
        "version": cluster.version,
        "pools": [pool.row() for pool in cluster.pools],
        "osds": [osd.row() for osd in cluster.osds],
        "pgs_by_osd": cluster.count_rows(),
        "capacity": capacity_of(cluster),
        "scenario": first.tables,
        "scenarios": [{"pool": one.pool, **one.tables} for one in found.values()],
        "hardware": list(first.mapping),
        "warnings": warnings,
    }
    return document, found


# For each kind of device the preset made for it, then the nearest of those that ship without it.
_PRESETS = {
    "nvme-tlc": ("nvme-tlc", "intel-730-raid0"),
    "nvme-qlc": ("nvme-qlc", "nvme-tlc", "intel-730-raid0"),
    "sata-tlc": ("sata-tlc", "intel-730-raid0"),
    "hdd-7200": ("hdd-7200",),
    "hdd-7200-nvme-db": ("hdd-7200-nvme-db", "hdd-7200"),
}
# Drives whose model names say that their flash holds four bits a cell.
_QLC = re.compile(
    r"QLC|P5336|P5316|D5-P|6500.?ION|SSDPF2NV|SSDPE2NV|5210.?ION|MZ.{3,8}Q[A-Z]{2,3}-", re.IGNORECASE
)
_MBIT_PER_GBIT = 1000
_GBIT_UNKNOWN = 10.0
_CORES = 24


def device_kind(osd: ImportedOsd) -> str:
    """Kind of the device behind an OSD, by its metadata and device class."""
    about = osd.metadata
    dedicated_db = str(about.get("bluefs_dedicated_db", "0")) == "1"
    db_rotates = str(about.get("bluefs_db_rotational", "1")) == "1"
    rotates = str(about.get("bluestore_bdev_rotational", about.get("rotational", "")))
    if rotates == "1" or (not rotates and osd.device_class == "hdd"):
        return "hdd-7200-nvme-db" if dedicated_db and not db_rotates else "hdd-7200"
    described = (
        f"{about.get('device_ids', '')} {about.get('devices', '')} {about.get('bluestore_bdev_devices', '')}"
    )
    nvme = osd.device_class == "nvme" or "nvme" in described.lower()
    if _QLC.search(described):
        return "nvme-qlc"
    return "nvme-tlc" if nvme else "sata-tlc"


def hardware_of(cluster: ImportedCluster, pool: ImportedPool) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Describe the OSDs that a pool lies on by keys of `[cluster]`, and say how each was found."""
    members = set(pool.osds)
    osds = [osd for osd in cluster.osds if osd.id in members] or list(cluster.osds)
    kinds = Counter(device_kind(osd) for osd in osds)
    kind = kinds.most_common(1)[0][0]
    preset = next(name for name in _PRESETS[kind] if _ships(name))
    sizes = [osd.size_bytes or 0 for osd in osds]
    mean = max(1, round(sum(sizes) / len(sizes)))
    parts = ", ".join(f"{count} {name}" for name, count in kinds.most_common())
    stands = "" if preset == kind else f" ({kind} does not ship yet: the nearest preset)"
    lines = [f"cluster.ssd: {parts} -> {preset}{stands}"]
    models = Counter(str(osd.metadata.get("device_ids", "")).split(",")[0] for osd in osds)
    if any(models):
        lines.append(f"drives: {', '.join(f'{n} {name}' for name, n in models.most_common(3) if name)}")
    spread = f", {min(sizes) / 1e12:.3g} to {max(sizes) / 1e12:.3g} TB" if min(sizes) < max(sizes) else ""
    lines.append(f"cluster.drive_bytes: mean of {len(sizes)} OSDs{spread} -> {mean}")
    cpus = Counter(str(osd.metadata.get("cpu", "")) for osd in osds)
    cpu = cpus.most_common(1)[0][0] or "no CPU in the metadata"
    lines.append(f"cluster.cores_per_host: {cpu} -> {_CORES} (assumed: metadata count no cores)")
    tables: dict[str, Any] = {"cores_per_host": _CORES}
    for key, side in (("public_gbit_per_s", "front"), ("private_gbit_per_s", "back")):
        tables[key], how = _rate(osds, side)
        lines.append(f"cluster.{key}: {how} -> {tables[key]:g}")
    return tables | {"ssd": preset, "drive_bytes": mean}, tuple(lines)


def _ships(name: str) -> bool:
    try:
        ParameterSet(name)
    except ParameterSetError:
        return False
    return True


def _rate(osds: Iterable[ImportedOsd], side: str) -> tuple[float, str]:
    """Rate of the network on one side, and where it is from: some releases note the interface's speed."""
    key = f"{side}_iface_speed"
    texts = [str(osd.metadata.get(key)) for osd in osds]
    speeds = Counter(int(text) for text in texts if text.isdigit() and int(text) > 0)
    if speeds:
        return speeds.most_common(1)[0][0] / _MBIT_PER_GBIT, key
    return _GBIT_UNKNOWN, "not in the metadata, assumed"

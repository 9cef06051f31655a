"""A scenario that runs, made from a pool of a cluster: its CRUSH map beside it, hardware as presets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from stripesim.models.placement import CrushMap, map_to_text
from stripesim.scenarios.importing.capacity import capacity_of
from stripesim.scenarios.importing.cluster import (
    ImportedCluster,
    ImportedPool,
    count_rows,
    osd_rows,
    pool_rows,
)
from stripesim.scenarios.importing.documents import ClusterImportError
from stripesim.scenarios.importing.hardware import hardware_of
from stripesim.scenarios.schema.loader import load_scenario
from stripesim.scenarios.schema.toml_text import toml_document

# Which of the simulated generations a release behaves as: from the release on.
_GENERATIONS = ((20, "tentacle"), (19, "squid"), (18, "reef"), (17, "quincy"), (0, "pacific"))


@dataclass(frozen=True)
class ImportedScenario:
    """A scenario and its CRUSH map.

    tables: the scenario's tables, as TOML has them; crush_text: what ``cluster.crush_map`` names; mapping:
    how hardware was mapped to presets.
    """

    pool: str
    tables: dict[str, Any]
    crush_text: str
    mapping: tuple[str, ...]

    def toml(self) -> str:
        """Write the scenario as TOML, with the mapping as comments."""
        return "".join(f"# {line}\n" for line in self.mapping) + "\n" + toml_document(self.tables)


def chosen_pools(cluster: ImportedCluster, names: list[str]) -> list[ImportedPool]:
    """Return the pools that are named, or else the one that matters most: by bytes stored, then by groups."""
    if not cluster.pools:
        raise ClusterImportError("osdmap.pools: got none, wanted one pool at least")
    by_name = {pool.placed.name: pool for pool in cluster.pools}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise ClusterImportError(
            "\n".join(f"--pool: got {name!r}, wanted one of {', '.join(by_name)}" for name in unknown)
        )
    if names:
        return [by_name[name] for name in dict.fromkeys(names)]
    return [max(cluster.pools, key=lambda p: (p.stored_bytes or 0, p.placed.pg_num * p.placed.size))]


def scenario_of(cluster: ImportedCluster, pool: ImportedPool, crush_file: str) -> ImportedScenario:
    """Make the scenario of one pool.

    Notes
    -----
    Reweights and upmaps are not part of a CRUSH map: an OSD that is out or down
    gets weight 0 in the map; other exceptions are left to the balance that CRUSH gives.
    """
    hardware = hardware_of(cluster, pool)
    crush = _crush(cluster, pool)
    release = re.match(r"\d+", cluster.version)
    number = int(release[0]) if release else 16
    generation = next(name for least, name in _GENERATIONS if number >= least)
    tables: dict[str, Any] = {
        "name": re.sub(r"[^A-Za-z0-9_-]+", "-", pool.placed.name).strip("-") or "pool",
        "description": f"Pool {pool.placed.name} of a cluster of {len(cluster.osds)} OSDs, Ceph "
        f"{cluster.version or 'of unknown release'}",
        "generation": generation,
        "schemes": [pool.scheme],
        "cluster": {
            "crush_map": crush_file,
            "crush_rule": pool.rule_name,
            "pg_num": pool.placed.pg_num,
            "stripe_unit_bytes": pool.stripe_unit_bytes,
            "cores_per_host": hardware.cores_per_host,
            "public_gbit_per_s": hardware.public_gbit_per_s,
            "private_gbit_per_s": hardware.private_gbit_per_s,
            "ssd": hardware.preset,
            "drive_bytes": hardware.drive_bytes,
            "parameters": "pacific",
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
    groups = _host_groups(cluster, crush)
    if len(groups) > 1:
        tables["cluster"]["hosts"] = groups
    return ImportedScenario(pool.placed.name, tables, map_to_text(crush), hardware.mapping)


def _host_groups(cluster: ImportedCluster, crush: CrushMap) -> list[dict[str, Any]]:
    """Hosts in the order of the map, neighbours with as many OSDs of the same mean size in one group."""
    sizes = {osd.id: osd.size_bytes or 0 for osd in cluster.osds}
    of_hosts: dict[str, list[int]] = {}
    for osd, host in crush.domains("host").items():
        of_hosts.setdefault(host, []).append(sizes.get(osd, 0))
    rows = [(len(own), max(1, round(sum(own) / len(own)))) for own in of_hosts.values()]
    return [
        {"count": len(list(alike)), "osds": osds, "drive_bytes": size}
        for (osds, size), alike in groupby(rows)
    ]


def _crush(cluster: ImportedCluster, pool: ImportedPool) -> CrushMap:
    """Return the map with what is down or out at weight 0, and the choose_args of the pool for all."""
    crush = cluster.osd_map.crush
    inside = {osd.id for osd in cluster.osds if osd.up and osd.reweight > 0}
    held = {item for bucket in crush.buckets for item in bucket.items}
    sets = dict(crush.choose_args)
    args = sets.get(pool.placed.id, sets.get(-1))
    buckets = tuple(
        replace(
            bucket,
            weights=tuple(
                0 if item >= 0 and item not in inside else weight
                for item, weight in zip(bucket.items, bucket.weights, strict=True)
            ),
        )
        for bucket in crush.buckets
    )
    return replace(
        crush,
        devices=tuple(device for device in crush.devices if device.id in held),
        buckets=buckets,
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
    """Say what a cluster is and holds, and make the scenarios of its pools.

    `pools`: pools to make scenarios of; none: the largest.
    `path`: where one scenario would be written; of several, each has its pool's name in its own.

    Returns
    -------
    dict
        The JSON document of `stripesim import ceph-report`.
    dict of Path to ImportedScenario
    """
    chosen = chosen_pools(cluster, list(pools))
    found = {}
    for pool in chosen:
        place = path if len(chosen) == 1 else path.with_name(f"{path.stem}-{pool.placed.name}{path.suffix}")
        found[place] = scenario_of(cluster, pool, f"{place.stem}.crush.txt")
    warnings = list(cluster.warnings)
    others = len(cluster.pools) - len(chosen)
    if others and not pools:
        warnings.append(
            f"pools: the scenario is of {chosen[0].placed.name}; {others} more: --pool names others"
        )
    first, *_ = found.values()
    document = {
        "version": cluster.version,
        "pools": pool_rows(cluster),
        "osds": osd_rows(cluster),
        "pgs_by_osd": count_rows(cluster),
        "capacity": capacity_of(cluster),
        "scenario": first.tables,
        "scenarios": [{"pool": one.pool, **one.tables} for one in found.values()],
        "hardware": list(first.mapping),
        "warnings": warnings,
    }
    return document, found

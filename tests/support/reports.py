"""A report of a cluster that a test makes up: equal hosts in racks, one device class, one pool."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stripesim.models.placement import CrushMap, map_of_hosts
from stripesim.models.placement.crush.elements import WEIGHT_ONE

Json = dict[str, Any]

#: The OSDs of `report`: what Ceph counts in KiB is a whole number of them.
OSD_BYTES = 4_096_000_000_000
HOSTS, OSDS_PER_HOST, RACKS = 6, 4, 3
PROCESSOR = "AMD EPYC 7232P 8-Core Processor"


def report(
    *,
    rule: Sequence[tuple[str, int, str]] = (("chooseleaf_firstn", 0, "host"),),
    metadata: Mapping[str, Any] | None = None,
    version: str = "17.2.6",
    counters: Mapping[str, int] | None = None,
    database_bytes: int = 0,
    kb_used: int = 0,
    full_ratio: float = 0.95,
    nearfull_ratio: float = 0.85,
    backfillfull_ratio: float = 0.9,
) -> Json:
    """Make the report of 6 hosts in 3 racks, each host with 4 disks, and a pool ``data`` of 3 copies.

    `rule` is the choosing steps of the pool's rule below the root, `counters` the pool's ``stat_sum``,
    `kb_used` and `database_bytes` what the class ``hdd`` has in use and each OSD has as a database.
    """
    weight = round(OSD_BYTES / 2**40 * WEIGHT_ONE)
    racks = [f"rack{host * RACKS // HOSTS}" for host in range(HOSTS)]
    crush = map_of_hosts([(weight,) * OSDS_PER_HOST] * HOSTS, racks)
    about = {
        "cpu": PROCESSOR,
        "default_device_class": "hdd",
        "device_ids": "sda=ACME_DISK9000_SERIAL",
        "bluestore_bdev_devices": "sda",
        "bluestore_bdev_rotational": "1",
        "bluestore_bdev_size": str(OSD_BYTES),
        **(metadata or {}),
    }
    if database_bytes:
        about |= {
            "bluefs_dedicated_db": "1",
            "bluefs_db_rotational": "0",
            "bluefs_db_size": str(database_bytes),
        }
    osds = range(HOSTS * OSDS_PER_HOST)
    pool = {
        "pool": 1,
        "pool_name": "data",
        "type": 1,
        "size": 3,
        "pg_num": 64,
        "crush_rule": 0,
    }
    total_kib = len(osds) * (OSD_BYTES + database_bytes) // 1024
    return {
        "version": version,
        "osdmap": {
            "full_ratio": full_ratio,
            "backfillfull_ratio": backfillfull_ratio,
            "nearfull_ratio": nearfull_ratio,
            "osds": [{"osd": osd, "up": 1, "in": 1, "weight": 1.0} for osd in osds],
            "pools": [{**pool, "flags_names": "hashpspool"}],
        },
        "crushmap": dump_of(crush, rule),
        "osd_metadata": [
            {"id": osd, "hostname": f"host{osd // OSDS_PER_HOST}", **about}
            for osd in osds
        ],
        "osd_sum_by_class": {
            "hdd": {
                "kb": total_kib,
                "kb_used": kb_used,
                "kb_avail": total_kib - kb_used,
            }
        },
        "pool_stats": [{"poolid": 1, "stat_sum": dict(counters or {})}],
    }


def dump_of(crush: CrushMap, rule: Sequence[tuple[str, int, str]]) -> Json:
    """Write a map as ``ceph osd crush dump`` does, with devices of class hdd and one rule of given steps."""
    root = crush.buckets[-1]
    steps: list[Json] = [{"op": "take", "item": root.id}]
    steps += [{"op": name, "num": count, "type": kind} for name, count, kind in rule]
    steps.append({"op": "emit"})
    return {
        "devices": [
            {"id": each.id, "name": each.name, "class": "hdd"} for each in crush.devices
        ],
        "types": [{"type_id": number, "name": name} for number, name in crush.types],
        "buckets": [
            {
                "id": bucket.id,
                "name": bucket.name,
                "type_id": bucket.type_id,
                "alg": "straw2",
                "items": [
                    {"id": item, "weight": weight}
                    for item, weight in zip(bucket.items, bucket.weights, strict=True)
                ],
            }
            for bucket in crush.buckets
        ],
        "rules": [{"rule_id": 0, "rule_name": "spread", "type": 1, "steps": steps}],
        "tunables": {},
    }


def write_report(folder: Path, document: Any, name: str = "r.json") -> Path:
    """Write a document into a folder."""
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return path

"""From the JSON of a cluster's OSD map and CRUSH map to what computes placement."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from stripesim.models.placement import OsdMap, PlacedPool, map_from_dump
from stripesim.models.placement.crush.elements import WEIGHT_ONE
from stripesim.models.placement.crush.problems import JsonReader
from stripesim.scenarios.importing.documents import ClusterImportError, Documents, Json

T = TypeVar("T")
Pg = tuple[int, int]

_KINDS = {1: "replicated", 3: "erasure", "replicated": "replicated", "erasure": "erasure"}
_OSDS_MAX = 1_000_000
_PGS_MAX = 4_000_000
_FLAG_HASHPSPOOL = 1


class Reader(JsonReader):
    """Takes values out of the JSON of an OSD map."""

    error = ClusterImportError

    def share(self, row: Json, key: str, name: str) -> int:
        """Share in [0, 1] as 16.16 fixed point; 1 where it is missing."""
        value = row.get(name, 1)
        if not isinstance(value, (int, float)) or not 0 <= value <= WEIGHT_ONE:
            self.add(f"{key}.{name}", repr(value), "a number from 0 to 1")
            return WEIGHT_ONE
        # Printed as decimals, of which the nearest 16.16 number is the one that was meant.
        return round(value * WEIGHT_ONE)


def read_osd_map(documents: Documents) -> OsdMap:
    """Read OSD map and CRUSH map."""
    source = documents.sources[0]
    if documents.osd_map is None:
        raise ClusterImportError(
            f"{source}: osdmap: got nothing, wanted a report or the output of `ceph osd dump`"
        )
    if documents.crush is None:
        raise ClusterImportError(
            f"{source}: crushmap: got nothing, wanted a report, or the output of `ceph osd crush dump` beside"
        )
    crush = map_from_dump(documents.crush, source=source)
    reader = Reader(source)
    document = documents.osd_map
    rows = list(reader.rows(document, "osdmap", "osds"))
    numbers = [reader.whole(row, key, "osd", 0, _OSDS_MAX) for key, row in rows]
    size = max([-1, *numbers, crush.max_devices - 1]) + 1
    exists, up = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
    weights = np.zeros(size, dtype=np.int64)
    affinities = np.full(size, WEIGHT_ONE, dtype=np.int64)
    for osd, (key, row) in zip(numbers, rows, strict=True):
        states = row.get("state")
        exists[osd] = "exists" in states if isinstance(states, list) else True
        up[osd] = row.get("up") in (1, True)
        weights[osd] = reader.share(row, key, "weight") if row.get("in", 1) else 0
        affinities[osd] = reader.share(row, key, "primary_affinity")
    pools = tuple(_pool(reader, key, row) for key, row in reader.rows(document, "osdmap", "pools"))
    if sum(pool.pg_num for pool in pools) > _PGS_MAX:
        reader.add("osdmap.pools", sum(p.pg_num for p in pools), f"at most {_PGS_MAX} placement groups")
    found = OsdMap(
        crush,
        exists,
        up,
        weights,
        affinities,
        pools,
        pg_upmap=_by_pg(reader, document, "pg_upmap", _osds),
        pg_upmap_items=_by_pg(reader, document, "pg_upmap_items", _pairs),
        pg_upmap_primaries=_by_pg(reader, document, "pg_upmap_primaries", _one),
        pg_temp=_by_pg(reader, document, "pg_temp", _osds),
        primary_temp=_by_pg(reader, document, "primary_temp", _one),
    )
    reader.finish()
    return found


def _pool(reader: Reader, key: str, row: Json) -> PlacedPool:
    kind = _KINDS.get(row.get("type", 1))
    if kind is None:
        reader.add(f"{key}.type", repr(row.get("type")), "1 (replicated) or 3 (erasure)")
    names = row.get("flags_names")
    flags = row.get("flags")
    hashed = "hashpspool" in names if isinstance(names, str) else bool(int(flags or 0) & _FLAG_HASHPSPOOL)
    pg_num = reader.whole(row, key, "pg_num", 1, _PGS_MAX)
    pgp_num = pg_num
    if "pg_placement_num" in row or "pgp_num" in row:
        pgp_num = reader.whole(row, key, "pg_placement_num|pgp_num", 1, _PGS_MAX)
    return PlacedPool(
        id=reader.whole(row, key, "pool|pool_id", 0, 2**31),
        name=str(row.get("pool_name", row.get("pool"))),
        kind="erasure" if kind == "erasure" else "replicated",
        size=reader.whole(row, key, "size", 1, 255),
        pg_num=pg_num,
        pgp_num=min(pgp_num, pg_num),
        rule=reader.whole(row, key, "crush_rule|crush_ruleset", 0, 2**31),
        hashpspool=hashed,
    )


def parse_pg_id(text: object) -> Pg | None:
    """Read ``pool.hex`` into numbers; None if it is something else.

    >>> parse_pg_id("3.1f")
    (3, 31)
    """
    found = re.fullmatch(r"([0-9]{1,18})\.([0-9a-f]{1,8})", text) if isinstance(text, str) else None
    return None if found is None else (int(found[1]), int(found[2], 16))


def _by_pg(reader: Reader, document: Json, name: str, read: Callable[[Json], T | None]) -> Mapping[Pg, T]:
    """Read a list of exceptions for single groups; a release that knows none of them prints no list."""
    found: dict[Pg, T] = {}
    if name not in document:
        return found
    for key, row in reader.rows(document, "osdmap", name):
        pg = parse_pg_id(row.get("pgid"))
        value = read(row)
        if pg is None or value is None:
            reader.add(key, dict(row), "a pgid and its OSDs")
        else:
            found[pg] = value
    return found


def _osds(row: Json) -> tuple[int, ...] | None:
    value: Any = row.get("osds")
    if not isinstance(value, list) or not all(isinstance(osd, int) for osd in value):
        return None
    return tuple(value)


def _pairs(row: Json) -> tuple[tuple[int, int], ...] | None:
    value: Any = row.get("mappings")
    try:
        return tuple((int(pair["from"]), int(pair["to"])) for pair in value)
    except (TypeError, KeyError, ValueError):
        return None


def _one(row: Json) -> int | None:
    value = row.get("osd", row.get("primary_osd", row.get("primary")))
    return value if isinstance(value, int) else None

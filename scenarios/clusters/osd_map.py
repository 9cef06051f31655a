"""Build the maps that place data, from the OSD map and the CRUSH map of a cluster."""

import re
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import numpy as np

from stripesim.models.placement import CrushMap, OsdMap, PlacedPool, map_from_dump
from stripesim.models.placement.crush.elements import WEIGHT_ONE
from stripesim.models.problems import (
    MeasuredError,
    Problem,
    ProblemsError,
    problems_of,
)
from stripesim.scenarios.clusters.documents import Documents
from stripesim.scenarios.clusters.pool_crush import with_safe_names
from stripesim.scenarios.clusters.report_schema import (
    CrushDump,
    OsdList,
    PoolRow,
    PrimaryChoice,
    Remappings,
    printable,
)

Pg = tuple[int, int]
RowT = TypeVar("RowT", OsdList, Remappings, PrimaryChoice)
EntryT = TypeVar("EntryT")

#: Maximum number of shards of all pools. Enough for a cluster of 50,000 OSDs.
_SHARDS_MAX: Final = 20_000_000
_FLAG_HASHPSPOOL: Final = 1
# Ceph's maximum weight of a device, in 16.16 fixed point: about 100 TiB.
_DEVICE_WEIGHT_MAX: Final = 100 * WEIGHT_ONE


class _Problems:
    """Collect problems beyond a schema: repeated ids, totals, references."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: dict[Problem, None] = {}

    def add(self, key: str, got: object, wanted: str) -> None:
        got = printable(str(got))
        problem = Problem(place=self.file, key=key, got=got, wanted=wanted)
        self.found[problem] = None

    def add_repeats(self, key: str, values: Iterable[object]) -> None:
        seen = set()
        for number, value in enumerate(values):
            if value in seen:
                self.add(key.format(number), f"{value} twice", "no repeated values")
            seen.add(value)

    def finish(self) -> None:
        """Raise the problems, each once."""
        if self.found:
            raise MeasuredError(*self.found)


def read_osd_map(documents: Documents) -> tuple[OsdMap, list[str]]:
    """Build the OSD map with its CRUSH map. Also return warnings about changed names."""
    dump = documents.osd_map
    file = documents.osd_map_file or documents.files[0]
    if dump is None:
        wanted = "a report or the output of `ceph osd dump`"
        raise MeasuredError(
            Problem(place=file, key="osdmap", got="nothing", wanted=wanted)
        )
    if documents.crush is None:
        wanted = "a report, or the output of `ceph osd crush dump` as a further file"
        raise MeasuredError(
            Problem(place=file, key="crushmap", got="nothing", wanted=wanted)
        )
    crush, warnings = _read_crush(documents.crush, documents.crush_file)
    problems = _Problems(file)
    problems.add_repeats("osdmap.osds.{}.osd", [row.osd for row in dump.osds])
    problems.add_repeats("osdmap.pools.{}.pool", [row.pool for row in dump.pools])
    problems.add_repeats(
        "osdmap.pools.{}.pool_name", [_name(row) for row in dump.pools]
    )
    shards = sum(row.pg_num * row.size for row in dump.pools)
    if shards > _SHARDS_MAX:
        problems.add(
            "osdmap.pools", f"{shards:,} shards of groups", f"at most {_SHARDS_MAX:,}"
        )
    size = max([-1, *(row.osd for row in dump.osds), crush.max_devices - 1]) + 1
    exists = np.zeros(size, dtype=bool)
    up = np.zeros(size, dtype=bool)
    weights = np.zeros(size, dtype=np.int64)
    affinities = np.full(size, WEIGHT_ONE, dtype=np.int64)
    for row in dump.osds:
        exists[row.osd] = row.state is None or "exists" in row.state
        up[row.osd] = row.up
        # Ceph prints decimals; the nearest 16.16 number is the original one.
        weights[row.osd] = round(row.weight * WEIGHT_ONE) if row.inside else 0
        affinities[row.osd] = round(row.primary_affinity * WEIGHT_ONE)
    osd_map = OsdMap(
        crush,
        exists,
        up,
        weights,
        affinities,
        tuple(map(_placed, dump.pools)),
        pg_upmap=_by_group(problems, "pg_upmap", dump.pg_upmap, _osds),
        pg_upmap_items=_by_group(
            problems, "pg_upmap_items", dump.pg_upmap_items, _pairs
        ),
        pg_upmap_primaries=_by_group(
            problems, "pg_upmap_primaries", dump.pg_upmap_primaries, _primary
        ),
        pg_temp=_by_group(problems, "pg_temp", dump.pg_temp, _osds),
        primary_temp=_by_group(problems, "primary_temp", dump.primary_temp, _primary),
    )
    problems.finish()
    return osd_map, warnings


def _read_crush(dump: CrushDump, file: str) -> tuple[CrushMap, list[str]]:
    problems = _Problems(file)
    for number, bucket in enumerate(dump.buckets):
        for index, item in enumerate(bucket.items):
            if item.id >= 0 and item.weight > _DEVICE_WEIGHT_MAX:
                key = f"crushmap.buckets.{number}.items.{index}.weight"
                problems.add(
                    key,
                    item.weight,
                    f"at most {_DEVICE_WEIGHT_MAX}, Ceph's limit for a device",
                )
    problems.add_repeats(
        "crushmap.rules.{}.rule_id", [rule.rule_id for rule in dump.rules]
    )
    problems.add_repeats(
        "crushmap.types.{}.type_id", [row.type_id for row in dump.types]
    )
    types = {row.type_id for row in dump.types}
    for number, bucket in enumerate(dump.buckets):
        if bucket.type_id not in types:
            problems.add(
                f"crushmap.buckets.{number}.type_id",
                bucket.type_id,
                "a type of crushmap.types",
            )
    problems.finish()
    try:
        crush = map_from_dump(
            dump.model_dump(by_alias=True, exclude_none=True), source=file
        )
    except ProblemsError as error:
        raise MeasuredError(*problems_of(error)) from None
    return with_safe_names(crush)


def _name(row: PoolRow) -> str:
    return row.pool_name or str(row.pool)


def _placed(row: PoolRow) -> PlacedPool:
    hashed = bool(row.flags & _FLAG_HASHPSPOOL)
    if row.flags_names is not None:
        hashed = "hashpspool" in row.flags_names
    return PlacedPool(
        id=row.pool,
        name=_name(row),
        kind="erasure" if row.kind == "erasure" else "replicated",
        size=row.size,
        pg_num=row.pg_num,
        pgp_num=min(row.pgp_num or row.pg_num, row.pg_num),
        rule=row.crush_rule,
        hashpspool=hashed,
    )


def parse_pg_id(text: str) -> Pg | None:
    """Parse ``pool.hex``, or return None.

    >>> parse_pg_id("3.1f")
    (3, 31)
    """
    parts = re.fullmatch(r"([0-9]{1,18})\.([0-9a-f]{1,8})", text)
    return None if parts is None else (int(parts[1]), int(parts[2], 16))


def _by_group(
    problems: _Problems, name: str, rows: Iterable[RowT], read: Callable[[RowT], EntryT]
) -> dict[Pg, EntryT]:
    """Read the exceptions for individual groups."""
    entries = {}
    for number, row in enumerate(rows):
        pg = parse_pg_id(row.pgid)
        if pg is None:
            problems.add(
                f"osdmap.{name}.{number}.pgid",
                repr(row.pgid),
                "a placement group such as 3.1f",
            )
        else:
            entries[pg] = read(row)
    return entries


def _osds(row: OsdList) -> tuple[int, ...]:
    return tuple(row.osds)


def _primary(row: PrimaryChoice) -> int:
    return row.osd


def _pairs(row: Remappings) -> tuple[tuple[int, int], ...]:
    return tuple((pair.old, pair.new) for pair in row.mappings)

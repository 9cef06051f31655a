"""A cluster as its report describes it: pools, OSDs, and the placement groups that each OSD has."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from stripesim.models.coding import parse_scheme
from stripesim.models.placement import NONE, OsdMap, PgSets, PlacedPool, StepOp, pg_sets
from stripesim.models.placement.crush.elements import WEIGHT_ONE
from stripesim.scenarios.importing.documents import ClusterImportError, Documents, Json, load_documents
from stripesim.scenarios.importing.osd_map import parse_pg_id, read_osd_map

_KIB = 1024
_TIB = 1024**4
_OLDEST, _NEWEST = 13, 20
# Ceph 16.2.15, src/common/options.cc: osd_pool_erasure_code_stripe_unit.
_STRIPE_UNIT_BYTES = 4096
_SHOWN = 8

#: OSD → groups that it acts for, and those that it is the primary of in the up set.
Counts = Mapping[int, tuple[int, int]]


@dataclass(frozen=True)
class ImportedPool:
    """A pool."""

    placed: PlacedPool
    scheme: str  # as `stripesim.models.coding.parse_scheme` reads it
    overhead: float  # bytes on OSDs for each byte stored
    stripe_unit_bytes: int
    rule_name: str
    failure_domain: str  # type of which its rule gives each group different ones
    osds: tuple[int, ...]  # below the buckets that its rule takes
    stored_bytes: int | None
    application: str

    def row(self) -> dict[str, Any]:
        """The pool as the JSON document lists it."""
        placed = {key: getattr(self.placed, key) for key in ("size", "pg_num", "pgp_num")}
        return {
            "id": self.placed.id,
            "name": self.placed.name,
            "scheme": self.scheme,
            **placed,
            "rule": self.rule_name,
            "failure_domain": self.failure_domain,
            "osds": len(self.osds),
            "stored_bytes": self.stored_bytes,
            "application": self.application,
        }


@dataclass(frozen=True)
class ImportedOsd:
    """An OSD; sizes in bytes, None where no file says them."""

    id: int
    host: str
    device_class: str | None
    up: bool
    reweight: float
    primary_affinity: float
    crush_weight: float
    size_bytes: int | None
    used_bytes: int | None
    metadata: Json

    def row(self) -> dict[str, Any]:
        """The OSD as the JSON document lists it."""
        names = {"id": "osd", "device_class": "class"}
        return {names.get(key, key): value for key, value in vars(self).items() if key != "metadata"}


@dataclass(frozen=True)
class ImportedCluster:
    """A cluster, read and mapped."""

    version: str
    osd_map: OsdMap
    pools: tuple[ImportedPool, ...]
    osds: tuple[ImportedOsd, ...]  # those that exist, by id
    sets: Mapping[int, PgSets]
    counts: Counts  # our own
    reported: Counts | None  # those of the cluster; None where no file has them
    ratios: tuple[float, ...]  # full, backfillfull and nearfull ratio
    warnings: tuple[str, ...]

    def host_of(self) -> dict[int, str]:
        """Host of each OSD."""
        return {osd.id: osd.host for osd in self.osds}

    def domains(self, kind: str) -> dict[int, str]:
        """Failure domain of each OSD, of a kind; an OSD is one of its own."""
        return {osd.id: f"osd.{osd.id}" for osd in self.osds} | (
            {} if kind == "osd" else self.osd_map.crush.domains(kind)
        )

    def count_rows(self) -> list[dict[str, Any]]:
        """Placement groups of each OSD, computed and (where a file has them) reported."""
        rows = []
        for osd, (acting, primary) in sorted(self.counts.items()):
            row = {"osd": osd, "acting_pgs": acting, "primary_pgs": primary}
            if self.reported is not None:
                there = self.reported.get(osd, (0, 0))
                row |= {"reported_acting_pgs": there[0], "reported_primary_pgs": there[1]}
            rows.append(row)
        return rows


def import_cluster(paths: Sequence[Path]) -> ImportedCluster:
    """Read a cluster from a report, or from the outputs of several commands."""
    documents = load_documents(paths)
    osd_map = read_osd_map(documents)
    versions = sorted(str(row.get("ceph_version_short") or "") for row in documents.metadata)
    version = str(documents.head.get("version", "")) or (versions[-1] if versions else "")
    warnings = _release_warnings(version)
    pools = tuple(_pool(documents, osd_map, pool, warnings) for pool in osd_map.pools)
    osds = _osds(documents, osd_map)
    sets = {pool.id: pg_sets(osd_map, pool) for pool in osd_map.pools}
    counts, reported = _counts(osd_map, sets), _reported(documents)
    if reported is None:
        warnings.append(
            "num_pg_by_osd: missing: the placement groups of each OSD are computed and compared with nothing"
        )
    else:
        warnings += _differences(counts, reported, documents)
    warnings += _exceptions(osd_map)
    if not osds:
        got = "got no OSD that exists, wanted one at least"
        raise ClusterImportError(f"{documents.sources[0]}: osdmap.osds: {got}")
    unknown = [osd.id for osd in osds if osd.size_bytes is None]
    if unknown:
        stands = "no size in any file: CRUSH weights (TiB) stand for it"
        warnings.append(f"osd_metadata: {_listed(unknown)}: {stands}")
        weighed = {osd.id: round(osd.crush_weight * _TIB) for osd in osds}
        osds = tuple(replace(osd, size_bytes=osd.size_bytes or weighed[osd.id]) for osd in osds)
    document = documents.osd_map or {}
    defaults = {"full": 0.95, "backfillfull": 0.90, "nearfull": 0.85}
    ratios = tuple(float(document.get(f"{name}_ratio") or value) for name, value in defaults.items())
    return ImportedCluster(version, osd_map, pools, osds, sets, counts, reported, ratios, tuple(warnings))


def _release_warnings(version: str) -> list[str]:
    found = re.match(r"(\d+)\.", version)
    if found is None:
        return ["version: missing: the release is not known; 13 to 20 are checked"]
    if not _OLDEST <= int(found[1]) <= _NEWEST:
        return [f"version: {version}: read as it is; releases {_OLDEST} to {_NEWEST} are checked"]
    return []


def _pool(documents: Documents, osd_map: OsdMap, placed: PlacedPool, warnings: list[str]) -> ImportedPool:
    rows = (documents.osd_map or {}).get("pools", [])
    row: Json = next((r for r in rows if r.get("pool", r.get("pool_id")) == placed.id), {})
    scheme, overhead, stripe_unit = _scheme(documents, placed, row, warnings)
    mine = [stats for stats in documents.pool_stats if stats.get("poolid", stats.get("id")) == placed.id]
    stored = mine[0].get("stat_sum", mine[0].get("stats", {})).get("num_bytes") if mine else None
    rule = next((rule.name for rule in osd_map.crush.rules if rule.id == placed.rule), "")
    if not rule:
        warnings.append(f"pool {placed.name}: crush_rule {placed.rule}: not in the CRUSH map: not mapped")
    domain, osds = _rule_of(osd_map, placed)
    return ImportedPool(
        placed=placed,
        scheme=scheme,
        overhead=overhead,
        stripe_unit_bytes=stripe_unit,
        rule_name=rule,
        failure_domain=domain,
        osds=osds,
        stored_bytes=stored if isinstance(stored, int) else None,
        application=", ".join(row.get("application_metadata") or {}),
    )


def _scheme(
    documents: Documents, placed: PlacedPool, row: Json, warnings: list[str]
) -> tuple[str, float, int]:
    """Scheme, bytes on OSDs per byte stored, and stripe unit of a pool."""
    if placed.kind == "replicated":
        return f"rep:{placed.size}", float(placed.size), _STRIPE_UNIT_BYTES
    name = row.get("erasure_code_profile", "")
    profile: Json = (documents.osd_map or {}).get("erasure_code_profiles", {}).get(name, {})
    unit = _whole(profile.get("stripe_unit"), _STRIPE_UNIT_BYTES)
    width = row.get("stripe_width") or 0
    k = _whole(profile.get("k"), width // unit if width else placed.size - 1)
    if width and k:
        unit = width // k
    m = placed.size - k
    where = f"pool {placed.name}"
    if not profile:
        warnings.append(f"{where}: erasure_code_profile {name!r}: missing: k = {k} by the stripe width")
    plugin, plain = profile.get("plugin", ""), f"rs:{k},{m}"
    scheme = plain
    if plugin == "clay":
        scheme = f"clay:{k},{m},{_whole(profile.get('d'), k + m - 1)}"
    elif plugin == "shec":
        scheme = f"shec:{k},{m},{_whole(profile.get('c'), 2)}"
    elif plugin == "lrc" and profile.get("l"):
        # Ceph's m leaves the local parities out, of which there is one for each l shards.
        scheme = f"lrc-ceph:{k},{_whole(profile.get('m'), 1)},{profile['l']}"
    try:
        if parse_scheme(scheme).width != placed.size:
            raise ValueError(f"got {parse_scheme(scheme).width} shards, wanted the pool's {placed.size}")
    except ValueError as error:
        warnings.append(f"{where}: {scheme}: {error}; simulated as {plain}")
        scheme = plain
    return scheme, placed.size / max(k, 1), unit


def _whole(value: object, otherwise: int) -> int:
    text = str(value)
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) and int(text) > 0 else otherwise


def _rule_of(osd_map: OsdMap, placed: PlacedPool) -> tuple[str, tuple[int, ...]]:
    """Failure domain of a pool's rule, and the OSDs below what it takes."""
    crush = osd_map.crush
    steps = next((rule.steps for rule in crush.rules if rule.id == placed.rule), ())
    names = dict(crush.types)
    chosen = [
        names.get(step.type_id, str(step.type_id))
        for step in steps
        if step.type_id or step.op in (StepOp.CHOOSE_FIRSTN, StepOp.CHOOSE_INDEP, StepOp.CHOOSE_MSR)
    ]
    domain = next((name for name in chosen if name), "osd")
    found: set[int] = set()
    for step in steps:
        if step.op is StepOp.TAKE:
            found |= set(crush.osds_below(step.count))
    return domain, tuple(sorted(osd for osd in found if osd < len(osd_map.exists) and osd_map.exists[osd]))


def _osds(documents: Documents, osd_map: OsdMap) -> tuple[ImportedOsd, ...]:
    crush = osd_map.crush
    hosts = crush.domains("host")
    classes = {device.id: device.device_class for device in crush.devices}
    weights = {
        item: weight / WEIGHT_ONE
        for bucket in crush.buckets
        if "~" not in bucket.name
        for item, weight in zip(bucket.items, bucket.weights, strict=True)
    }
    metadata = {row.get("id"): row for row in documents.metadata}
    stats = {row.get("osd", row.get("id")): row for row in documents.osd_stats}
    found = []
    for osd in np.flatnonzero(osd_map.exists).tolist():
        about, use = metadata.get(osd, {}), stats.get(osd, {})
        size = use.get("kb") or 0
        found.append(
            ImportedOsd(
                id=osd,
                host=hosts.get(osd) or str(about.get("hostname") or "?"),
                device_class=classes.get(osd) or about.get("default_device_class"),
                up=bool(osd_map.up[osd]),
                reweight=int(osd_map.weights[osd]) / WEIGHT_ONE,
                primary_affinity=int(osd_map.affinities[osd]) / WEIGHT_ONE,
                crush_weight=weights.get(osd, 0.0),
                size_bytes=size * _KIB or _whole(about.get("bluestore_bdev_size"), 0) or None,
                used_bytes=use["kb_used"] * _KIB if "kb_used" in use else None,
                metadata=about,
            )
        )
    return tuple(found)


def _counts(osd_map: OsdMap, sets: Mapping[int, PgSets]) -> Counts:
    """Groups that each OSD acts for, and is primary of as mapped: so ``num_pg_by_osd`` counts."""
    size = len(osd_map.exists)
    totals = np.zeros((2, size), dtype=np.int64)
    for found in sets.values():
        for row, osds in enumerate((found.acting, found.up_primary)):
            totals[row] += np.bincount(osds[(osds >= 0) & (osds < size)], minlength=size)
    known = np.flatnonzero(osd_map.exists | totals.any(axis=0))
    return {int(osd): (int(totals[0, osd]), int(totals[1, osd])) for osd in known}


def _reported(documents: Documents) -> Counts | None:
    """Groups of each OSD as the cluster counts them; a hole of an erasure-coded pool is no OSD."""
    if documents.pg_counts is not None:
        return {
            row["osd"]: (int(row.get("num_acting_pg", 0)), int(row.get("num_primary_pg", 0)))
            for row in documents.pg_counts
            if isinstance(row.get("osd"), int) and 0 <= row["osd"] < NONE
        }
    if not documents.pg_stats:
        return None
    rows = [row for row in documents.pg_stats if parse_pg_id(row.get("pgid")) is not None]
    acting = Counter(osd for row in rows for osd in row.get("acting", ()))
    primary = Counter(row.get("up_primary", -1) for row in rows)
    return {osd: (acting[osd], primary[osd]) for osd in acting | primary if 0 <= osd < NONE}


def _differences(counts: Counts, reported: Counts, documents: Documents) -> list[str]:
    """Name the OSDs whose groups differ, and what in the report may explain it."""
    pairs = {
        osd: (counts.get(osd, (0, 0)), reported.get(osd, (0, 0))) for osd in sorted({*counts, *reported})
    }
    wrong = [
        f"osd.{osd} {ours[0]} and {ours[1]} primary, reported {theirs[0]} and {theirs[1]}"
        for osd, (ours, theirs) in pairs.items()
        if ours != theirs
    ]
    if not wrong:
        return []
    more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    states = [
        f"{row.get('num')} {row.get('state')}"
        for row in documents.head.get("num_pg_by_state") or ()
        if row.get("state") != "active+clean"
    ]
    why = f"; groups in other states than active+clean: {', '.join(states[:_SHOWN])}" if states else ""
    return [f"num_pg_by_osd: {len(wrong)} OSDs differ: {', '.join(wrong[:_SHOWN])}{more}{why}"]


def _exceptions(osd_map: OsdMap) -> list[str]:
    temps = len({*osd_map.pg_temp, *osd_map.primary_temp})
    found = [
        f"pg_temp: {temps} placement groups act elsewhere than they are mapped, until backfilled"
    ] * bool(temps)
    for words, those in (("down", ~osd_map.up), ("out", osd_map.weights == 0)):
        osds = np.flatnonzero(osd_map.exists & those).tolist()
        found += [f"osds: {_listed(osds)}: {words}"] if osds else []
    return found


def _listed(osds: Sequence[int]) -> str:
    shown = ", ".join(f"osd.{osd}" for osd in osds[:_SHOWN])
    return shown + (f" and {len(osds) - _SHOWN} more" if len(osds) > _SHOWN else "")

"""Describe a cluster from its files: pools, OSDs, and the placement groups of each OSD."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from stripesim.models.coding import parse_scheme
from stripesim.models.placement import (
    CrushMap,
    OsdMap,
    PgSets,
    PlacedPool,
    Rule,
    pg_sets,
)
from stripesim.models.placement.crush.elements import WEIGHT_ONE
from stripesim.models.problems import MeasuredError, ProblemsError, SchemeError
from stripesim.scenarios.clusters.documents import (
    Documents,
    MeasuredRate,
    load_documents,
)
from stripesim.scenarios.clusters.osd_map import read_osd_map
from stripesim.scenarios.clusters.placement_counts import (
    Counts,
    acting_warnings,
    computed_counts,
    count_warnings,
    reported_counts,
)
from stripesim.scenarios.clusters.report_schema import (
    ErasureProfile,
    OsdMapDump,
    OsdMetadata,
    OsdSums,
    OsdUse,
    PoolCounters,
    PoolRow,
    value_text,
)
from stripesim.scenarios.schema.keys import FILL_RATIOS
from stripesim.scenarios.schema.units import bytes_text, first_text

_KIB: Final = 1024
_TIB: Final = 1024**4
_OLDEST: Final = 13
_NEWEST: Final = 20
# Ceph 16.2.15, src/common/options.cc: osd_pool_erasure_code_stripe_unit.
_STRIPE_UNIT_BYTES: Final = 4096
_STRIPE_UNIT_MAX: Final = 4 << 20
_LISTED: Final = 8
# Start of a log that still has the first write of its placement group.
_LOG_FROM_THE_START: Final = "0'0"
#: Plugins of plain Reed-Solomon codes. Older releases state no plugin for Ceph's default.
_PLAIN_PLUGINS: Final = ("", "isa", "jerasure")


#: Pools of the manager: some megabytes, in one placement group (``pg_num_min`` is 1)
MANAGER_POOLS: Final = (".mgr", "device_health_metrics")


@dataclass(frozen=True)
class ImportedPool:
    """A pool of the cluster."""

    placed: PlacedPool
    key: str  # name in messages, such as `report.json: osdmap.pools.3`
    scheme: str  # in the notation of `stripesim.models.coding.parse_scheme`
    overhead: float  # bytes on OSDs for each stored byte
    stripe_unit_bytes: int
    optimised: bool  # True with the flag ec_optimizations
    rule_name: str  # empty if the CRUSH map lacks the rule
    failure_domain: str  # type of bucket that holds at most one shard of a group
    osds: tuple[int, ...]  # that the rule places data on, in or out
    min_size: int  # shards below which a placement group serves no clients
    stored_bytes: int | None  # data of clients, without keys
    omap_bytes: int  # keys of one copy: bucket indexes, for example
    objects_count: int  # 0 if no file has it
    allocated_bytes: int | None  # on all OSDs, None if no file has them
    counters: PoolCounters | None
    rate: MeasuredRate | None
    compresses: bool  # True with any compression_mode but none
    application: str

    @property
    def held_bytes(self) -> int | None:
        """Data of clients and keys, as `ceph df` counts them (STORED) [B]. None if they are not known."""
        if self.stored_bytes is None:
            return None
        return self.stored_bytes + self.omap_bytes

    def row(self) -> dict[str, Any]:
        """Return the pool as the JSON document lists it."""
        return {
            "id": self.placed.id,
            "name": self.placed.name,
            "scheme": self.scheme,
            "size": self.placed.size,
            "pg_num": self.placed.pg_num,
            "pgp_num": self.placed.pgp_num,
            "rule": self.rule_name,
            "failure_domain": self.failure_domain,
            "osds": len(self.osds),
            "stored_bytes": self.held_bytes,
            "objects": self.objects_count or None,
            "application": self.application,
        }


@dataclass(frozen=True)
class ImportedOsd:
    """An OSD of the cluster. Sizes are in bytes."""

    id: int
    host: str
    device_class: str | None
    up: bool
    reweight: float
    primary_affinity: float
    crush_weight: float
    size_bytes: int  # without a separate database device
    used_bytes: (
        int | None
    )  # with it, as Ceph counts; None if no file has the use of each OSD
    metadata: OsdMetadata

    @property
    def is_in(self) -> bool:
        """Return True if the OSD is in, up or down. Its weight then places data on it."""
        return self.reweight > 0

    @property
    def database_bytes(self) -> int:
        """Size of a separate database device [B], all of which Ceph counts as used."""
        return self.metadata.bluefs_db_size if self.metadata.has_own_database else 0

    @property
    def counted_bytes(self) -> int:
        """Size as Ceph counts it [B]: with a separate database device."""
        return self.size_bytes + self.database_bytes

    @property
    def data_bytes(self) -> int | None:
        """Bytes in use without a separate database device [B]. None if they are not known."""
        if self.used_bytes is None:
            return None
        return max(0, self.used_bytes - self.database_bytes)

    def row(self) -> dict[str, Any]:
        """Return the OSD as the JSON document lists it."""
        names = {"id": "osd", "device_class": "class"}
        return {
            names.get(key, key): value
            for key, value in vars(self).items()
            if key != "metadata"
        }


@dataclass(frozen=True)
class FullRatios:
    """Shares of its capacity at which an OSD acts, in the order of `FILL_RATIOS`."""

    nearfull: float
    backfillfull: float
    full: float


@dataclass(frozen=True)
class GroupData:
    """Data of each placement group of a pool, as the cluster counts it, shape (pg_num,)."""

    stored_bytes: npt.NDArray[np.int64]  # of clients
    omap_bytes: npt.NDArray[np.int64]
    #: True for a group whose log was never trimmed: it recovers by the log, not by backfill
    has_whole_log: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ImportedCluster:
    """A cluster with its placement groups mapped."""

    file: str  # file with the OSD map, for messages
    version: str
    osd_map: OsdMap
    pools: tuple[ImportedPool, ...]
    osds: tuple[ImportedOsd, ...]  # existing ones, by id
    sets: Mapping[int, PgSets]
    #: The same once OSDs that are down, but in, have returned, for capacity
    returned_sets: Mapping[int, PgSets]
    #: Data of each placement group, by pool, for pools all of whose groups a file lists
    group_data: Mapping[int, GroupData]
    counts: Counts
    reported: Counts | None  # the cluster's own counts, None if no file has them
    ratios: FullRatios
    allows_upmaps: bool  # True if clients have to know upmaps already
    class_sums: Mapping[str, OsdSums]
    cluster_sum: OsdSums | None
    all_pools: PoolCounters
    cluster_rate: MeasuredRate | None
    warnings: tuple[str, ...]

    @property
    def returned_map(self) -> OsdMap:
        """The OSD map once OSDs that are down, but in, have returned."""
        return with_returned_osds(self.osd_map)

    @property
    def release(self) -> int | None:
        """Number of the Ceph release, such as 17."""
        number = re.match(r"[0-9]{1,3}", self.version)
        return int(number[0]) if number else None

    def host_of(self) -> dict[int, str]:
        """Return the host of each OSD."""
        return {osd.id: osd.host for osd in self.osds}

    def domains(self, kind: str) -> dict[int, str]:
        """Return the failure domain of each OSD. An OSD outside all such buckets is its own domain."""
        single = {osd.id: f"osd.{osd.id}" for osd in self.osds}
        return single if kind == "osd" else single | self.osd_map.crush.domains(kind)

    def osds_of(self, pool: ImportedPool) -> list[ImportedOsd]:
        """Return the OSDs that hold a pool: in, and weighed by its rule."""
        members = set(pool.osds)
        return [osd for osd in self.osds if osd.id in members and osd.is_in]

    def count_rows(self) -> list[dict[str, Any]]:
        """Return the placement groups of each OSD: computed and, if a file has them, reported."""
        rows = []
        for osd, (acting, primary) in sorted(self.counts.items()):
            row = {"osd": osd, "acting_pgs": acting, "primary_pgs": primary}
            if self.reported is not None:
                theirs = self.reported.get(osd, (0, 0))
                row |= {
                    "reported_acting_pgs": theirs[0],
                    "reported_primary_pgs": theirs[1],
                }
            rows.append(row)
        return rows


def with_returned_osds(osd_map: OsdMap) -> OsdMap:
    """Return an OSD map once the OSDs that are down, but in, have returned."""
    return replace(osd_map, up=osd_map.up | osd_map.returning_osds)


def sets_of_pools(osd_map: OsdMap) -> dict[int, PgSets]:
    """Return the placement groups of each pool."""
    return {pool.id: pg_sets(osd_map, pool) for pool in osd_map.pools}


def returned_sets_of(
    osd_map: OsdMap, sets: Mapping[int, PgSets]
) -> Mapping[int, PgSets]:
    """Return the placement groups of each pool once the OSDs that are down, but in, have returned."""
    if not osd_map.returning_osds.any():
        return sets
    return sets_of_pools(with_returned_osds(osd_map))


def import_cluster(paths: Sequence[Path]) -> ImportedCluster:
    """Read a cluster from a report, or from the outputs of several commands."""
    documents = load_documents(paths)
    osd_map, warnings = read_osd_map(documents)
    dump = documents.osd_map
    assert dump is not None
    version = documents.version or max(
        (row.ceph_version_short for row in documents.metadata.values()), default=""
    )
    warnings = _release_warnings(version) + warnings
    pools = tuple(
        _pool(documents, dump, osd_map, number, warnings)
        for number in range(len(osd_map.pools))
    )
    osds = _osds(documents, osd_map, warnings)
    try:
        sets = sets_of_pools(osd_map)
    except ProblemsError as error:
        raise MeasuredError(
            f"{documents.crush_file}: crushmap.rules: {error}"
        ) from None
    counts = computed_counts(osd_map, sets)
    reported = reported_counts(documents)
    warnings += count_warnings(counts, reported, documents)
    warnings += acting_warnings(sets, documents)
    warnings += _state_warnings(osd_map)
    warnings += _ratio_warnings(dump)
    warnings += _min_size_warnings(pools)
    if dump.stretch_mode.stretch_mode_enabled:
        warnings.append(
            "osdmap: stretch mode: placement and capacity follow the map. What it does when a site fails is "
            "left out; a scenario with cluster.stretch simulates that"
        )
    return ImportedCluster(
        file=documents.osd_map_file,
        version=version,
        osd_map=osd_map,
        pools=pools,
        osds=osds,
        sets=sets,
        returned_sets=returned_sets_of(osd_map, sets),
        group_data=_group_data(documents, osd_map),
        counts=counts,
        reported=reported,
        ratios=_raised_ratios(dump),
        allows_upmaps=_allows_upmaps(dump),
        class_sums=documents.class_sums,
        cluster_sum=documents.cluster_sum,
        all_pools=documents.all_pools,
        cluster_rate=documents.cluster_rate,
        warnings=tuple(warnings),
    )


def _group_data(documents: Documents, osd_map: OsdMap) -> dict[int, GroupData]:
    """Return the data of placement groups, by pool. A pool with a group missing is left out."""
    listed = {row.pgid: row for row in documents.pg_rows if row.stat_sum is not None}
    data = {}
    for pool in osd_map.pools if listed else ():
        rows = [listed.get(f"{pool.id}.{group:x}") for group in range(pool.pg_num)]
        known = [row for row in rows if row is not None]
        if len(known) < pool.pg_num:
            continue
        sums = [row.stat_sum for row in known if row.stat_sum is not None]
        # Ceph's counters of a group are below 0 for a moment after some repairs.
        data[pool.id] = GroupData(
            np.array([max(0, own.num_bytes) for own in sums], dtype=np.int64),
            np.array([max(0, own.num_omap_bytes) for own in sums], dtype=np.int64),
            np.array([row.log_start == _LOG_FROM_THE_START for row in known]),
        )
    return data


def _release_warnings(version: str) -> list[str]:
    release = re.match(r"(\d{1,3})\.", version)
    if release is None:
        return [
            f"version: missing: unknown release (tested are {_OLDEST} to {_NEWEST})"
        ]
    if not _OLDEST <= int(release[1]) <= _NEWEST:
        return [f"version: {version}: untested (tested are {_OLDEST} to {_NEWEST})"]
    return []


def _pool(
    documents: Documents,
    dump: OsdMapDump,
    osd_map: OsdMap,
    number: int,
    warnings: list[str],
) -> ImportedPool:
    placed = osd_map.pools[number]
    row = dump.pools[number]
    key = f"{documents.osd_map_file}: osdmap.pools.{number}"
    profile = dump.erasure_code_profiles.get(row.erasure_code_profile)
    scheme, overhead, stripe_unit = _scheme(placed, row, profile, key, warnings)
    rule = next((rule for rule in osd_map.crush.rules if rule.id == placed.rule), None)
    if rule is None:
        warnings.append(
            f"pool {placed.name}: crush_rule {placed.rule}: not in the CRUSH map: not mapped"
        )
    warnings += _left_out_of_pool(row, placed)
    osds = osds_of_rule(osd_map, rule)
    unwilling = [osd for osd in osds if osd_map.affinities[osd] < WEIGHT_ONE]
    if unwilling and placed.kind != "replicated":
        warnings.append(
            f"pool {placed.name}: primary affinity of {osds_text(unwilling)}: left out, the first shard of a "
            "group leads"
        )
    counters = documents.pool_counters.get(placed.id)
    # Both miss keys: a deep scrub counts those of then, and RocksDB those that it has written to a file.
    keys_bytes = [documents.pool_keys_bytes.get(placed.id, 0)]
    if counters is not None:
        keys_bytes.append(counters.num_omap_bytes)
    return ImportedPool(
        placed=placed,
        key=key,
        scheme=scheme,
        overhead=overhead,
        stripe_unit_bytes=stripe_unit,
        optimised="ec_optimizations" in (row.flags_names or ""),
        rule_name="" if rule is None else rule.name,
        failure_domain="osd" if rule is None else osd_map.crush.failure_domain(rule.id),
        osds=osds,
        min_size=row.min_size or parse_scheme(scheme).min_size,
        stored_bytes=counters.num_bytes if counters else None,
        omap_bytes=max(0, *keys_bytes),
        objects_count=max(0, counters.num_objects) if counters else 0,
        allocated_bytes=documents.pool_allocated_bytes.get(placed.id),
        counters=counters,
        rate=documents.pool_rates.get(placed.id),
        compresses=_compression_of(row) != "none",
        application=", ".join(row.application_metadata),
    )


def osds_of_rule(osd_map: OsdMap, rule: Rule | None) -> tuple[int, ...]:
    """Return the existing OSDs that a rule places data on: those below its buckets that weigh something."""
    if rule is None:
        return ()
    crush = osd_map.crush
    below = crush.osds_of_rule(rule.id) - crush.weightless_osds()
    return tuple(
        sorted(
            osd for osd in below if osd < len(osd_map.exists) and osd_map.exists[osd]
        )
    )


def _scheme(
    placed: PlacedPool,
    row: PoolRow,
    profile: ErasureProfile | None,
    key: str,
    warnings: list[str],
) -> tuple[str, float, int]:
    """Return the scheme, the bytes on OSDs for each stored byte, and the stripe unit of a pool."""
    if placed.kind == "replicated":
        return f"rep:{placed.size}", float(placed.size), _STRIPE_UNIT_BYTES
    k, unit_bytes = _stripe(placed, row, profile, key)
    if profile is None:
        named = f"erasure_code_profile {row.erasure_code_profile!r}"
        warnings.append(
            f"pool {placed.name}: {named}: missing: k = {k} by the stripe width"
        )
        profile = ErasureProfile()
    return _code(placed, profile, k, warnings), placed.size / k, unit_bytes


def _stripe(
    placed: PlacedPool, row: PoolRow, profile: ErasureProfile | None, key: str
) -> tuple[int, int]:
    """Return the data shards of an erasure-coded pool, and its stripe unit [B]."""
    stated = profile.k if profile else None
    k = stated or row.stripe_width // _STRIPE_UNIT_BYTES or placed.size - 1
    if not 1 <= k < placed.size:
        raise MeasuredError(
            f"{key}.size: got {placed.size} with {k} data shards (erasure_code_profile "
            f"{row.erasure_code_profile!r}), wanted more than k"
        )
    unit_bytes = row.stripe_width // k or _STRIPE_UNIT_BYTES
    is_whole = not row.stripe_width or unit_bytes * k == row.stripe_width
    if unit_bytes > _STRIPE_UNIT_MAX or not is_whole:
        wanted = f"{k} times a stripe unit of at most {_STRIPE_UNIT_MAX}"
        raise MeasuredError(
            f"{key}.stripe_width: got {row.stripe_width}, wanted {wanted}"
        )
    return k, unit_bytes


def _code(
    placed: PlacedPool, profile: ErasureProfile, k: int, warnings: list[str]
) -> str:
    """Return the scheme of an erasure-coded pool: Reed-Solomon, with a warning, if it has an unknown one."""
    m = placed.size - k
    plain = f"rs:{k},{m}"
    if profile.plugin in _PLAIN_PLUGINS:
        return plain
    where = f"pool {placed.name}"
    special = _scheme_of_plugin(profile, k, m)
    if special is None:
        warnings.append(
            f"{where}: erasure code plugin {value_text(profile.plugin)}: not known in this form; "
            f"simulated as {plain}"
        )
        return plain
    try:
        width = parse_scheme(special).width
    except SchemeError as error:
        problem = str(error)
    else:
        if width == placed.size:
            return special
        problem = f"got {width} shards, wanted the pool's {placed.size}"
    warnings.append(f"{where}: {special}: {problem}; simulated as {plain}")
    return plain


def _scheme_of_plugin(profile: ErasureProfile, k: int, m: int) -> str | None:
    """Return the scheme of a plugin that is not plain Reed-Solomon."""
    if profile.plugin == "clay":
        return f"clay:{k},{m},{profile.d or k + m - 1}"
    if profile.plugin == "shec":
        return f"shec:{k},{m},{profile.c or 2}"
    if profile.plugin == "lrc" and profile.l:
        # Ceph's m excludes the local parities, one for each l shards.
        return f"lrc-ceph:{k},{profile.m or 1},{profile.l}"
    return None


def _osds(
    documents: Documents, osd_map: OsdMap, warnings: list[str]
) -> tuple[ImportedOsd, ...]:
    crush = osd_map.crush
    hosts = crush.domains("host")
    classes = {device.id: device.device_class for device in crush.devices}
    weights = _crush_weights(crush)
    osds = []
    weighed = []
    for osd in np.flatnonzero(osd_map.exists).tolist():
        metadata = documents.metadata.get(osd, OsdMetadata(id=osd))
        use = documents.osd_use.get(osd, OsdUse(osd=osd))
        weight = weights.get(osd, 0.0)
        size = _size_bytes(metadata, use)
        if not size:
            weighed.append(osd)
            size = round(weight * _TIB)
        used_bytes = None
        if use.kb_used is not None:
            used_bytes = use.kb_used * _KIB
        imported = ImportedOsd(
            id=osd,
            host=hosts.get(osd) or metadata.hostname or "?",
            device_class=classes.get(osd) or metadata.default_device_class or None,
            up=bool(osd_map.up[osd]),
            reweight=int(osd_map.weights[osd]) / WEIGHT_ONE,
            primary_affinity=int(osd_map.affinities[osd]) / WEIGHT_ONE,
            crush_weight=weight,
            size_bytes=size,
            used_bytes=used_bytes,
            metadata=metadata,
        )
        osds.append(imported)
    if not osds:
        wanted = "at least one existing OSD"
        raise MeasuredError(
            f"{documents.osd_map_file}: osdmap.osds: got none, wanted {wanted}"
        )
    if weighed:
        warnings.append(
            f"osd_metadata: {osds_text(weighed)}: no size in any file: taken from CRUSH weights (1 = 1 TiB)"
        )
    return tuple(osds)


def _size_bytes(metadata: OsdMetadata, use: OsdUse) -> int:
    """Return the size of an OSD without a separate database device [B], 0 if no file has it.

    See Ceph v16.2.15, ``src/os/bluestore/BlueStore.cc`` (``_get_statfs_overall``): the total that
    ``ceph osd df`` shows includes such a device.
    """
    device_bytes = metadata.bluestore_bdev_size or 0
    counted = (use.kb or 0) * _KIB
    if metadata.has_own_database:
        return device_bytes or max(0, counted - metadata.bluefs_db_size)
    return counted or device_bytes


def _crush_weights(crush: CrushMap) -> dict[int, float]:
    """Return the CRUSH weight of each item, in TiB by convention."""
    return {
        item: weight / WEIGHT_ONE
        for bucket in crush.buckets
        if "~" not in bucket.name
        for item, weight in zip(bucket.items, bucket.weights, strict=True)
    }


def _left_out_of_pool(row: PoolRow, placed: PlacedPool) -> list[str]:
    """Warn of features of a pool that scenarios leave out."""
    warnings = []
    where = f"pool {row.pool_name}"
    if row.tier_of >= 0:
        warnings.append(
            f"{where}: a cache tier of pool {row.tier_of}: simulated as a pool of its own"
        )
    mode = _compression_of(row)
    if mode != "none":
        warnings.append(
            f"{where}: compression_mode {value_text(mode)}: simulated without compression, and its capacity "
            "is that for data that does not compress"
        )
    if row.quota_max_bytes or row.quota_max_objects:
        limits = []
        if row.quota_max_bytes:
            limits.append(bytes_text(row.quota_max_bytes))
        if row.quota_max_objects:
            limits.append(f"{row.quota_max_objects:,} objects")
        warnings.append(
            f"{where}: quota of {' and '.join(limits)}: left out, capacity is what its OSDs have room for"
        )
    if placed.pgp_num < placed.pg_num:
        warnings.append(
            f"{where}: pgp_num {placed.pgp_num}, fewer than pg_num {placed.pg_num}: groups share their OSDs "
            "in the cluster, but a scenario places each of them alone, so its OSDs are more evenly full"
        )
    if not placed.hashpspool:
        warnings.append(
            f"{where}: flag hashpspool is missing: a scenario places the groups as with the flag, on other "
            "OSDs than the cluster"
        )
    return warnings


def _compression_of(row: PoolRow) -> object:
    """Return the compression mode of a pool, ``none`` by default."""
    return row.options.get("compression_mode", "none")


def _min_size_warnings(pools: Iterable[ImportedPool]) -> list[str]:
    """Warn of pools whose `min_size` is not the one that scenarios have."""
    others = []
    for pool in pools:
        usual = parse_scheme(pool.scheme).min_size
        if pool.min_size != usual:
            others.append(f"{pool.placed.name} {pool.min_size} (Ceph: {usual})")
    if not others:
        return []
    return [
        f"min_size: {', '.join(others)}: scenarios have Ceph's default, with which placement groups stop "
        "serving clients earlier or later than in this cluster; --failures counts with those of the pools"
    ]


def _stated_ratios(dump: OsdMapDump) -> list[float]:
    """Return the ratios of a map in the order of `FILL_RATIOS`, with defaults for missing ones."""
    return [getattr(dump, name) or default for name, default in FILL_RATIOS.items()]


def _raised_ratios(dump: OsdMapDump) -> FullRatios:
    """Return the ratios at which OSDs act: each at least the one before it.

    See Ceph v16.2.15, ``src/osd/OSD.cc`` (``OSDService::recalc_full_state``).
    """
    return FullRatios(*accumulate(_stated_ratios(dump), max))


def _allows_upmaps(dump: OsdMapDump) -> bool:
    """Return True if the oldest clients that a cluster accepts know upmaps, as since Luminous.

    Names of releases are in alphabetical order, and "unknown" is none.
    """
    return "luminous" <= dump.require_min_compat_client < "unknown"


def _ratio_warnings(dump: OsdMapDump) -> list[str]:
    """Warn of fill ratios in the wrong order, which Ceph reports as OSD_OUT_OF_ORDER_FULL."""
    stated = _stated_ratios(dump)
    if stated == sorted(stated):
        return []
    ratios_text = ", ".join(
        f"{name} {ratio:.4g}" for name, ratio in zip(FILL_RATIOS, stated, strict=True)
    )
    raised = _raised_ratios(dump)
    return [
        f"osdmap: {ratios_text}: out of order (OSD_OUT_OF_ORDER_FULL). OSDs raise each to the one before it, "
        f"so they act at {raised.nearfull:.4g}, {raised.backfillfull:.4g} and {raised.full:.4g}"
    ]


def _state_warnings(osd_map: OsdMap) -> list[str]:
    warnings = []
    moved = len({*osd_map.pg_temp, *osd_map.primary_temp})
    if moved:
        warnings.append(
            f"pg_temp: {moved} placement groups act elsewhere than mapped, until backfilled"
        )
    down = np.flatnonzero(osd_map.returning_osds).tolist()
    if down:
        warnings.append(f"osds: {osds_text(down)}: down but in: counted as if up")
    out = np.flatnonzero(osd_map.exists & (osd_map.weights == 0)).tolist()
    if out:
        warnings.append(f"osds: {osds_text(out)}: out: not counted")
    weightless = sorted(
        osd
        for osd in osd_map.crush.weightless_osds()
        if osd < len(osd_map.exists) and osd_map.exists[osd] and osd_map.weights[osd]
    )
    if weightless:
        warnings.append(
            f"osds: {osds_text(weightless)}: CRUSH weight 0: no room and no failure domain of a pool"
        )
    return warnings


def osds_text(osds: Iterable[int]) -> str:
    """List OSDs, the first eight by name.

    >>> osds_text([3, 5])
    'osd.3, osd.5'
    """
    return first_text([f"osd.{osd}" for osd in osds], _LISTED)

"""Compute the capacity of a cluster under a scheme, and the wear of its drives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.models.coding import RedundancyScheme, parse_scheme, stored_bytes
from stripesim.models.documents import Documented
from stripesim.models.drive import (
    SECONDS_PER_DAY,
    DriveCapacity,
    DriveEndurance,
    FillLimits,
    drive_writes_per_day,
)
from stripesim.models.placement import OsdWeights
from stripesim.models.problems import ScenarioError
from stripesim.models.provenance import Provenance
from stripesim.scenarios.cells.build import build_pool
from stripesim.scenarios.cells.models import cluster_set, device_set
from stripesim.scenarios.cells.notes import scenario_warnings
from stripesim.scenarios.cells.placement import (
    domain_type,
    drive_bytes_of_hosts,
    hosts_of_osds_in,
    osd_domains,
    padded_osd_hosts,
    up_sets,
)
from stripesim.scenarios.schema.geometry import shards_per_domain
from stripesim.scenarios.schema.keys import ClusterSpec
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.units import bytes_text, counted_text
from stripesim.sim.ceph.cluster import NO_OSD, Models
from stripesim.sim.ceph.kinds import kind_of
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.engine.graph import IntArray

FloatArray = npt.NDArray[np.float64]

_DAYS_PER_YEAR = 365.25
SECONDS_PER_YEAR = _DAYS_PER_YEAR * SECONDS_PER_DAY


@dataclass(frozen=True)
class Drives:
    """Known properties of the drives of a cluster."""

    per_osd: int  # drives striped behind one OSD [count]
    capacity: DriveCapacity | None  # mean of all drives
    endurance: DriveEndurance | None
    fill: FillLimits | None
    host_drive_bytes: tuple[
        float, ...
    ] = ()  # of one drive on each host [B], empty if all are equal

    @property
    def one_bytes(self) -> float:
        """Mean capacity of a drive [B], or 0 if unknown."""
        return 0.0 if self.capacity is None else self.capacity.drive_bytes

    @property
    def osd_bytes(self) -> float | None:
        """Mean capacity of an OSD [B]."""
        if self.capacity is None:
            return None
        return self.per_osd * self.capacity.drive_bytes

    @property
    def largest_osd_bytes(self) -> float | None:
        """Capacity of the largest OSD [B]."""
        if not self.host_drive_bytes:
            return self.osd_bytes
        return self.per_osd * max(self.host_drive_bytes)

    def sizes(self, hosts: IntArray) -> FloatArray:
        """Return the capacity of OSDs by their hosts [B], or 1 if it is unknown."""
        if self.host_drive_bytes:
            return self.per_osd * np.array(self.host_drive_bytes)[hosts]
        return np.full(len(hosts), self.osd_bytes or 1.0)

    def parameters(self) -> list[dict[str, Any]]:
        """List the known numbers with their provenance."""
        parts = {
            "drive.": self.capacity,
            "endurance.": self.endurance,
            "fill.": self.fill,
        }
        return [
            row
            for name, model in parts.items()
            if model is not None
            for row in model.parameters(name)
        ]


def drives_of(scenario: Scenario, models: Models) -> Drives:
    """Collect the properties of drives from the scenario and its parameter sets.

    `cluster.drive_bytes` replaces the capacity of the parameter set. Rated endurance belongs to a
    capacity, so a different capacity in the scenario discards the set's endurance, unless the scenario
    has an endurance, as well.
    """
    cluster = scenario.cluster
    drive = device_set(scenario)
    parameters = cluster_set(scenario)
    of_hosts = drive_bytes_of_hosts(scenario)
    own_bytes: float | None = cluster.drive_bytes
    if of_hosts:
        hosts = hosts_of_osds_in(scenario)
        own_bytes = float(np.mean(np.array(of_hosts)[hosts[hosts >= 0]]))
    fill = None
    if parameters.table("fill") is not None:
        ratios = {
            "full_ratio": cluster.full_ratio,
            "nearfull_ratio": cluster.nearfull_ratio,
        }
        own_ratios = {key: ratio for key, ratio in ratios.items() if ratio is not None}
        fill = parameters.model(FillLimits, "fill", own_ratios)
    return Drives(
        per_osd=models.ssd.raid0_drives,
        capacity=_capacity(drive, own_bytes),
        endurance=_endurance(cluster, drive, own_bytes),
        fill=fill,
        host_drive_bytes=tuple(of_hosts),
    )


_GIVEN: Final = Provenance("given", "the scenario's cluster")


def _capacity(drive: ParameterSet, own_bytes: float | None) -> DriveCapacity | None:
    """Return the capacity of a drive from the scenario, or else from the parameter set."""
    if own_bytes is not None:
        return DriveCapacity(drive_bytes=own_bytes, provenance={"drive_bytes": _GIVEN})
    if drive.table("capacity") is None:
        return None
    return drive.model(DriveCapacity, "capacity")


def _endurance(
    cluster: ClusterSpec, drive: ParameterSet, own_bytes: float | None
) -> DriveEndurance | None:
    """Return the rated endurance of a drive from the scenario, or else from the parameter set."""
    if cluster.drive_rated_write_bytes is not None:
        return DriveEndurance(
            rated_write_bytes=cluster.drive_rated_write_bytes,
            rated_days=cluster.drive_rated_days,
            provenance={"rated_write_bytes": _GIVEN, "rated_days": _GIVEN},
        )
    if own_bytes is not None or drive.table("endurance") is None:
        return None
    return drive.model(DriveEndurance, "endurance")


@dataclass(frozen=True)
class Capacity(Documented):
    """Capacity of a cluster under one scheme. Bytes are None if the capacity of drives is unknown."""

    scheme: str
    # Bytes on all drives for each byte of an object, including padding to whole stripes.
    stored_per_client_byte: float
    failures_tolerated: int  # shards of an object that may be lost
    osds: int
    raw_bytes: float | None  # of all OSDs
    # Client data with the fullest OSD at the full ratio.
    usable_bytes_full: float | None
    # Client data with the fullest OSD at the nearfull ratio after the loss of the largest failure domain.
    usable_bytes_safe: float | None
    overhead: float  # stored bytes per client byte of the scheme alone
    imbalance: float  # how full the fullest OSD is, over the mean of all
    imbalance_after_loss: float | None  # the same without the largest failure domain
    domains: int  # failure domains
    domain: str  # their type: osd, host, rack, …
    shards: int  # of an object, each in a failure domain of its own; with sites, those at each site
    width: int  # shards of an object
    where: str  # "" or " at each site", where domains and shards are those of one site
    min_size: int  # shards below which a placement group serves no clients
    host_shards: int  # most shards of an object on one host
    steps: tuple[CapacityStep, ...]  # from raw to usable

    in_document: ClassVar = (
        "raw_bytes",
        "usable_bytes_full",
        "usable_bytes_safe",
        "overhead",
        "imbalance",
        "imbalance_after_loss",
        "domain",
        "domains",
        "spare_domains",
        "min_size",
        ("waterfall", "steps"),
    )

    @property
    def spare_domains(self) -> int:
        """Failure domains beyond one for each shard [count]. None is left to heal in at 0."""
        return self.domains - self.shards


def usable_bytes(
    raw_bytes: float, ratio: float, overhead: float, imbalance: float
) -> float:
    """Return the client data with the fullest OSD at a fill ratio [B].

    This is the one definition of usable capacity, for plans, the page, warnings and imported clusters.

    Parameters
    ----------
    raw_bytes
        Size of the OSDs that hold data [B].
    ratio
        Fill of the fullest OSD [0 to 1], such as Ceph's full ratio.
    overhead
        Bytes stored per client byte, with padding.
    imbalance
        How full the fullest OSD is, over the mean of all. See `imbalance_of`.

    Examples
    --------
    12 TB in three copies hold 3.8 TB with all OSDs at 95 %, and 3.17 TB if the fullest has 1.2 × the mean:

    >>> [round(usable_bytes(12, 0.95, 3, imbalance), 2) for imbalance in (1.0, 1.2)]
    [3.8, 3.17]
    """
    return raw_bytes * ratio / (overhead * imbalance)


def imbalance_of(held: Mapping[int, float], sizes: Mapping[int, float]) -> float:
    r"""Return how full the fullest OSD is, over the mean of all OSDs.

    .. math:: \max_j (h_j / s_j) \cdot \sum_j s_j / \sum_j h_j

    Parameters
    ----------
    held
        Data of each OSD :math:`h_j`, in any unit. Placement groups of one pool are equally full, so shards
        can be counted instead.
    sizes
        Capacity of each OSD :math:`s_j`, in any unit. OSDs without data count.

    Returns
    -------
    float
        At least 1, which means equally full. 1 without data.

    Examples
    --------
    Of two equal OSDs one has 60 shards of 100: 1.2 times the mean.

    >>> imbalance_of({0: 60, 1: 40}, {0: 4e12, 1: 4e12})
    1.2
    """
    total = sum(held.get(osd, 0.0) for osd in sizes)
    if not total:
        return 1.0
    fills = [held.get(osd, 0.0) / size for osd, size in sizes.items() if size > 0]
    return max(fills) * sum(sizes.values()) / total


class CapacityStep(NamedTuple):
    """One step from raw to usable capacity: the bytes left after it [B], and its formula."""

    name: str
    left_bytes: float
    why: str


def waterfall(
    raw_bytes: float,
    largest_bytes: float,
    overhead: float,
    padded: float,
    fill: FillLimits,
    *,
    imbalance: float = 1.0,
    placement: str = "",
    units: str = "",
) -> tuple[CapacityStep, ...]:
    """Return the steps from raw to usable capacity.

    Bytes are those of all OSDs and of the largest failure domain. On the OSDs that are left, a client byte
    takes `overhead` bytes by the scheme alone, and `padded` bytes with objects padded to whole stripes.
    `placement` says in words how the `imbalance` comes about, and `units` to what else objects are padded.

    >>> from stripesim.models.provenance import Provenance
    >>> given = Provenance("given", "an example")
    >>> fill = FillLimits(full_ratio=0.95, nearfull_ratio=0.85,
    ...                   provenance={"full_ratio": given, "nearfull_ratio": given})
    >>> [round(step.left_bytes, 1) for step in waterfall(1200, 100, 1.5, 1.5, fill)]
    [1200, 1140.0, 1100, 935.0, 935.0, 623.3, 623.3]
    """
    alive = raw_bytes - largest_bytes
    near = alive * fill.nearfull_ratio
    even = near / imbalance
    return (
        CapacityStep("raw", raw_bytes, "all OSDs"),
        CapacityStep(
            "full",
            raw_bytes * fill.full_ratio,
            f"raw × {fill.full_ratio:g}: Ceph refuses writes there",
        ),
        CapacityStep(
            "largest domain gone",
            alive,
            "raw without the largest failure domain: room to heal",
        ),
        CapacityStep("nearfull", near, f"× {fill.nearfull_ratio:g}: Ceph warns there"),
        CapacityStep(
            "imbalance",
            even,
            f"/ {imbalance:.3f}: how full the fullest OSD is, over the mean{placement}",
        ),
        CapacityStep(
            "overhead",
            even / overhead,
            f"/ {overhead:.4g}: bytes stored per client byte on the OSDs that are left",
        ),
        CapacityStep(
            "padding",
            even / padded,
            f"/ {padded / overhead:.4g}: objects are padded to whole stripes{units}",
        ),
    )


def capacity_of(
    scenario: Scenario,
    scheme_name: str,
    models: Models,
    drives: Drives,
    *,
    with_loss: bool = True,
) -> Capacity:
    """Compute the capacity of the scenario's cluster under one scheme.

    Objects spread evenly over placement groups, so the OSD with most groups for its size limits the pool. The
    placement is the simulated one, which a balancer evens out if the scenario has
    ``cluster.upmap_max_deviation``. For the safe capacity, the groups are placed again without the largest
    failure domain. With no spare domain, the other OSDs keep the shards that they have. Metadata, the
    write-ahead log and other pools are not included.

    `with_loss` can be false to save the second placement. Then the safe capacity is None.
    """
    scheme = parse_scheme(scheme_name)
    fill = drives.fill
    pool = build_pool(scenario, scheme, models)
    stored = stored_per_client_byte(scenario, pool)
    overhead = scheme.storage_overhead
    healing = _healing(scenario, scheme)
    of_osds = healing.of_osds
    by_osd = drives.sizes(pool.cluster.osd_hosts)
    sizes = {osd: float(by_osd[osd]) for osd in of_osds}
    acting = pool.cluster.acting
    imbalance = imbalance_of(shards_on_osds(acting), sizes)
    after = None
    if with_loss:
        after = _after_loss(scenario, scheme, acting, sizes, healing)
    raw = None if drives.osd_bytes is None else sum(sizes.values())
    usable_full = usable_safe = None
    steps: tuple[CapacityStep, ...] = ()
    if raw is not None and fill is not None:
        usable_full = usable_bytes(raw, fill.full_ratio, stored, imbalance)
        if after is not None:
            left_bytes = raw - after.lost_bytes
            usable_safe = usable_bytes(
                left_bytes, fill.nearfull_ratio, stored * after.kept, after.imbalance
            )
            steps = waterfall(
                raw,
                after.lost_bytes,
                overhead * after.kept,
                stored * after.kept,
                fill,
                imbalance=after.imbalance,
                placement=_placement_words(scenario, heals=after.heals),
                units=" and allocation units" if scenario.workload.is_s3 else "",
            )
    return Capacity(
        scheme=scheme.name,
        stored_per_client_byte=stored,
        failures_tolerated=scheme.failures_tolerated,
        osds=len(of_osds),
        raw_bytes=raw,
        usable_bytes_full=usable_full,
        usable_bytes_safe=usable_safe,
        overhead=overhead,
        imbalance=imbalance,
        imbalance_after_loss=None if after is None else after.imbalance,
        domains=healing.domains,
        domain=healing.domain,
        shards=healing.shards,
        width=scheme.width,
        where=healing.where,
        min_size=scheme.min_size,
        host_shards=_most_on_a_host(pool) if healing.domain == "osd" else 1,
        steps=steps,
    )


def _most_on_a_host(pool: Pool) -> int:
    """Return the most shards of one placement group on one host [count]."""
    hosts = pool.cluster.hosts_of_shards(pool.cluster.acting)
    together = (hosts[:, :, None] == hosts[:, None, :]) & (hosts >= 0)[:, :, None]
    return int(together.sum(axis=2).max())


def stored_per_client_byte(scenario: Scenario, pool: Pool) -> float:
    """Return the bytes on all drives for a byte of an image's objects, or of the objects in buckets."""
    models = pool.cluster.models
    load = scenario.workload
    if not load.is_s3:
        size_bytes = pool.object_bytes
        stored = stored_bytes(pool.scheme, pool.geometry, size_bytes, policy=models.ec)
        return stored / size_bytes
    shares = load.size_shares or (1.0,) * len(load.object_sizes_bytes)
    sizes = tuple(zip(load.object_sizes_bytes, shares, strict=True))
    stored_mean = sum(
        share * count * stored_object_bytes(pool, part_bytes)
        for size, share in sizes
        for part_bytes, count in load.uploaded_parts(size).items()
    )
    return stored_mean / sum(share * size for size, share in sizes)


def stored_object_bytes(pool: Pool, size_bytes: int) -> int:
    """Return the bytes that an object, or a part of an upload, takes on all drives without its metadata [B].

    Its head and each object of its tail are padded to whole stripes, or to pages in an optimised pool, and
    each shard to whole allocation units.
    """
    models = pool.cluster.models
    assert models.gateway is not None
    layout = models.gateway.layout(size_bytes, kind_of(pool).append_bytes)
    return sum(
        stored_bytes(
            pool.scheme,
            pool.geometry,
            part_bytes,
            min_alloc_bytes=models.store.min_alloc_bytes,
            policy=models.ec,
        )
        for part_bytes in layout.parts_bytes
    )


class _Healing(NamedTuple):
    """The failure domains in which a pool heals after the loss of one.

    A pool with shards at each site cannot replace a lost site, and heals from the loss of a host at the same
    site. `domains` and `shards` are then those of one site.
    """

    domain: str  # their type
    where: str
    of_osds: Mapping[int, int | str]  # failure domain of each OSD
    domains: int
    shards: int


def _healing(scenario: Scenario, scheme: RedundancyScheme) -> _Healing:
    """Return the failure domains in which a pool heals."""
    if scheme.name == "none":
        return _Healing("osd", "", {0: 0}, 1, 1)
    domain = domain_type(scenario, scheme)
    names = scenario.cluster.site_names
    if domain == "site" and names is not None:
        of_osds = dict(enumerate(padded_osd_hosts(scenario).tolist()))
        hosts = min(map(names.count, names))
        each = shards_per_domain(scenario, scheme)
        return _Healing("host", " at each site", of_osds, hosts, each)
    of_osds = osd_domains(scenario, scheme)
    return _Healing(domain, "", of_osds, len(set(of_osds.values())), scheme.width)


class _AfterLoss(NamedTuple):
    """Capacity that is left after the loss of the largest failure domain."""

    lost_bytes: float
    imbalance: float  # of the OSDs that are left
    heals: bool  # there is a domain for every shard
    kept: float  # share of all shards that the OSDs have which are left, 1 once they have healed


def _after_loss(
    scenario: Scenario,
    scheme: RedundancyScheme,
    acting: IntArray,
    sizes: Mapping[int, float],
    healing: _Healing,
) -> _AfterLoss:
    """Lose the largest failure domain, and place its shards again where a domain is spare.

    A scheme of one shard loses nothing, because it would lose data.
    """
    if scheme.width == 1:
        imbalance = imbalance_of(shards_on_osds(acting), sizes)
        return _AfterLoss(0.0, imbalance, heals=False, kept=1.0)
    lost = largest_domain(sizes, healing.of_osds)
    heals = healing.domains > healing.shards
    if heals:
        acting = up_sets(scenario, scheme, OsdWeights(out=lost), rebalanced=True)
    left = without(sizes, lost)
    lost_bytes = sum(sizes.values()) - sum(left.values())
    shards = shards_on_osds(acting)
    kept = 1.0
    if not heals:
        kept = sum(shards.get(osd, 0.0) for osd in left) / sum(shards.values())
    return _AfterLoss(lost_bytes, imbalance_of(shards, left), heals, kept)


def without(sizes: Mapping[int, float], lost: Iterable[int]) -> dict[int, float]:
    """Return the sizes of the OSDs that are left."""
    gone = set(lost)
    return {osd: size for osd, size in sizes.items() if osd not in gone}


def shards_on_osds(sets: IntArray) -> dict[int, float]:
    """Count the shards on each OSD, given the OSDs of each placement group."""
    osds, counts = np.unique(sets[sets != NO_OSD], return_counts=True)
    return dict(zip(osds.tolist(), counts.tolist(), strict=True))


def largest_domain(
    sizes: Mapping[int, float], domain_of: Mapping[int, int | str]
) -> tuple[int, ...]:
    """Return the OSDs of the failure domain with most capacity, the first of equals, ascending."""
    by_domain: dict[int | str, float] = defaultdict(float)
    for osd, size in sorted(sizes.items()):
        by_domain[domain_of[osd]] += size
    largest = max(by_domain, key=lambda domain: by_domain[domain])
    return tuple(osd for osd in sorted(sizes) if domain_of[osd] == largest)


def _placement_words(scenario: Scenario, *, heals: bool) -> str:
    """Return a sentence on where the placement groups are after the loss of the largest failure domain."""
    cluster = scenario.cluster
    if not heals:
        return f", with {cluster.pg_num:,} placement groups where they were"
    placed = f", as CRUSH then places {cluster.pg_num:,} placement groups"
    if cluster.upmap_items:
        return f"{placed} with the balancer's upmaps"
    if cluster.upmap_max_deviation is None:
        return f"{placed} without a balancer (cluster.upmap_max_deviation)"
    return f"{placed} and a balancer evens them out"


def spare_words(held: Capacity) -> str:
    """Return a sentence on the effect of a lost failure domain on a pool without a spare one."""
    return (
        f"{held.scheme}: no spare {held.domain}{held.where}: {held.domains} for "
        f"{counted_text(held.shards, 'shard')}. After the loss of one, the pool stays degraded until it is "
        f"replaced, with {counted_text(held.width - 1, 'shard')} where it needs {held.min_size} (min_size) "
        "to serve clients"
    )


def lost_host_words(held: Capacity) -> str | None:
    """Return a sentence on a lost host that takes more shards of an object than a pool can do without."""
    most = held.host_shards
    if most == 1:
        return None
    together = (
        f"{held.scheme}: the failure domain is the OSD, and a host holds up to {most} of the {held.width} "
        "shards of an object"
    )
    if most > held.failures_tolerated:
        return f"{together}. The loss of a host loses data: {held.failures_tolerated} may be lost"
    left = held.width - most
    if left < held.min_size:
        return (
            f"{together}. Without that host, placement groups serve no clients with "
            f"{counted_text(left, 'shard')} where they need {held.min_size} (min_size)"
        )
    return None


def warnings_of(scenario: Scenario, models: Models) -> list[str]:
    """Warn of assumptions and omissions of an answer about a scenario, except its calibrated range.

    Raises
    ------
    ScenarioError
        If the images or objects do not fit.
    """
    held = _capacities(scenario, models)
    _check_room(scenario, held)
    no_spare = [
        spare_words(one) for one in held if one.width > 1 and one.spare_domains < 1
    ]
    lost_hosts = [words for one in held if (words := lost_host_words(one)) is not None]
    return [*scenario_warnings(scenario, models), *no_spare, *lost_hosts]


def check_room(scenario: Scenario, models: Models) -> None:
    """Raise a `ScenarioError` if the images or objects do not fit."""
    _check_room(scenario, _capacities(scenario, models))


def images_that_fit(scenario: Scenario, models: Models) -> dict[str, int]:
    """Return how many images of `[workload]` fit at the full ratio [count], by scheme, where it is known."""
    image_bytes = scenario.image_stride_bytes(scenario.workload)
    return {
        held.scheme: int(held.usable_bytes_full // image_bytes)
        for held in _capacities(scenario, models)
        if held.usable_bytes_full is not None
    }


def _capacities(scenario: Scenario, models: Models) -> list[Capacity]:
    """Return the capacity of each scheme, without that of bare copies."""
    drives = drives_of(scenario, models)
    return [
        capacity_of(scenario, name, models, drives, with_loss=False)
        for name in scenario.schemes
        if name != "none"
    ]


def _check_room(scenario: Scenario, capacities: Iterable[Capacity]) -> None:
    if scenario.workload.kind == "trace":
        return
    key, kind = "image_bytes", "images"
    if scenario.workload.is_s3:
        key, kind = "objects", "objects"
    images_bytes = scenario.images_bytes
    problems = [
        scenario.located(
            "workload",
            key,
            got=f"{bytes_text(images_bytes)} of {kind}",
            wanted=f"at most {bytes_text(held.usable_bytes_full)}, the capacity of {held.scheme} on "
            f"{held.osds} OSDs at the full ratio",
        )
        for held in capacities
        if held.usable_bytes_full is not None and images_bytes > held.usable_bytes_full
    ]
    if problems:
        raise ScenarioError(*problems)


class Wear(NamedTuple):
    """Writes of one kind of request to the drives."""

    drive_write_bytes_per_s: float  # to one drive, mean of all drives [B/s]
    drive_writes_per_day: float | None  # in capacities per day [1/d]
    rated_drive_writes_per_day: float | None  # rated by the manufacturer [1/d]
    life_years: (
        float | None
    )  # until the rated writes are used up, at this rate all day [a]


def wear_of(row: Mapping[str, Any], osds: int, drives: Drives) -> Wear | None:
    """Compute the wear of one result row, or None if it has no writes."""
    per_byte = row.get("device_write_bytes_per_client_byte")
    rate = row.get("throughput_bytes_per_s")
    if not per_byte or rate is None:
        return None
    per_drive = per_byte * rate / (osds * drives.per_osd)
    per_day = rated = years = None
    if drives.capacity is not None:
        per_day = drive_writes_per_day(per_drive, drives.capacity.drive_bytes)
        if drives.endurance is not None:
            rated = drives.endurance.drive_writes_per_day(drives.capacity.drive_bytes)
    if drives.endurance is not None and per_drive:
        years = drives.endurance.life_days(per_drive) / _DAYS_PER_YEAR
    return Wear(per_drive, per_day, rated, years)

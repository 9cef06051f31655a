"""Compute the capacity of a cluster under a scheme, and the wear of its drives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.models.coding import parse_scheme, stored_bytes
from stripesim.models.drive import (
    SECONDS_PER_DAY,
    DriveCapacity,
    DriveEndurance,
    FillLimits,
    drive_writes_per_day,
)
from stripesim.models.provenance import Provenance
from stripesim.scenarios.cells.build import build_pool
from stripesim.scenarios.cells.models import cluster_set, device_set
from stripesim.scenarios.cells.placement import (
    check_host_count,
    domain_type,
    group_drive_bytes,
    osd_domains,
    osd_hosts,
)
from stripesim.scenarios.schema.keys import ClusterSpec, Scenario
from stripesim.sim.ceph.cluster import NO_OSD, Models
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
        hosts = osd_hosts(scenario)
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


def drive_bytes_of_hosts(scenario: Scenario) -> list[float]:
    """Return the capacity of one drive on each host [B], or an empty list if all are equal."""
    sizes = group_drive_bytes(scenario)
    if not sizes:
        return []
    check_host_count(scenario)
    groups = scenario.cluster.host_groups
    return [
        size
        for group, size in zip(groups, sizes, strict=True)
        for _ in range(group.count)
    ]


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
class Capacity:
    """Capacity of a cluster under one scheme. Bytes are None if the capacity of drives is unknown."""

    scheme: str
    # Bytes on all drives for each byte of an object, including padding to whole stripes.
    stored_per_client_byte: float
    failures_tolerated: int  # shards of an object that may be lost
    osds: int
    raw_bytes: float | None  # of all OSDs
    usable_bytes: float | None  # client data with every OSD at the full ratio
    # Client data when the OSD with most data is at the full ratio, placed by CRUSH without a balancer.
    usable_as_placed_bytes: float | None
    overhead: float  # stored bytes per client byte of the scheme alone
    domains: int  # failure domains
    steps: tuple[Step, ...]  # from raw to usable

    @property
    def usable_bytes_full(self) -> float | None:
        """Raw × full ratio / overhead [B]."""
        return self.steps[1].left_bytes / self.overhead if self.steps else None

    @property
    def usable_bytes_safe(self) -> float | None:
        """Client data at the nearfull ratio without the largest failure domain, before padding [B]."""
        return self.steps[4].left_bytes if self.steps else None

    def to_json(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "raw_bytes": self.raw_bytes,
            "usable_bytes_full": self.usable_bytes_full,
            "usable_bytes_safe": self.usable_bytes_safe,
            "overhead": self.overhead,
            "domains": self.domains,
            "waterfall": [step._asdict() for step in self.steps],
        }


class Step(NamedTuple):
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
) -> tuple[Step, ...]:
    """Return the steps from raw to usable capacity.

    Bytes are those of all OSDs and of the largest failure domain. A client byte takes `overhead` bytes by the
    scheme alone, and `padded` bytes with objects padded to whole stripes.

    >>> from stripesim.models.provenance import Provenance
    >>> given = Provenance("given", "an example")
    >>> fill = FillLimits(full_ratio=0.95, nearfull_ratio=0.85,
    ...                   provenance={"full_ratio": given, "nearfull_ratio": given})
    >>> [round(step.left_bytes, 1) for step in waterfall(1200, 100, 1.5, 1.5, fill)]
    [1200, 1140.0, 1100, 935.0, 623.3, 623.3]
    """
    alive = raw_bytes - largest_bytes
    near = alive * fill.nearfull_ratio
    return (
        Step("raw", raw_bytes, "all OSDs"),
        Step(
            "full",
            raw_bytes * fill.full_ratio,
            f"raw × {fill.full_ratio:g}: Ceph refuses writes there",
        ),
        Step(
            "largest domain gone",
            alive,
            "raw without the largest failure domain: room to heal",
        ),
        Step("nearfull", near, f"× {fill.nearfull_ratio:g}: Ceph warns there"),
        Step(
            "overhead",
            near / overhead,
            f"/ {overhead:g}: bytes stored per client byte",
        ),
        Step(
            "padding",
            near / padded,
            f"/ {padded / overhead:.4g}: objects are padded to whole stripes",
        ),
    )


def capacity_of(
    scenario: Scenario, scheme_name: str, models: Models, drives: Drives
) -> Capacity:
    """Compute the capacity of the scenario's cluster under one scheme.

    With :math:`w` shards of :math:`s` bytes for each object of :math:`o` bytes, a client byte takes
    :math:`w s / o` bytes. Objects spread evenly over placement groups. OSD :math:`j` is in :math:`n_j` of
    :math:`G` groups and holds :math:`s n_j / (G o)` bytes for each client byte, so the fullest OSD limits the
    pool. Metadata, the write-ahead log and other pools are not included.
    """
    scheme = parse_scheme(scheme_name)
    fill = drives.fill
    pool = build_pool(scenario, scheme, models)
    # The mean for optimised pools. In all other pools, shards have equal length.
    shard_bytes = (
        stored_bytes(scheme, pool.geometry, pool.object_bytes, policy=models.ec)
        / scheme.width
    )
    per_group = shard_bytes / pool.object_bytes
    stored = scheme.width * per_group
    overhead = scheme.storage_overhead
    sizes = drives.sizes(pool.cluster.osd_hosts)
    of_osds = {0: 0} if scheme.name == "none" else osd_domains(scenario, scheme)
    domains: dict[int | str, float] = defaultdict(float)
    for osd, domain in of_osds.items():
        domains[domain] += float(sizes[osd])
    raw = None if drives.osd_bytes is None else sum(domains.values())
    usable = as_placed = None
    steps: tuple[Step, ...] = ()
    if raw is not None and fill is not None:
        largest = max(domains.values()) if scheme.width > 1 else 0.0
        steps = waterfall(raw, largest, overhead, stored, fill)
        usable = raw * fill.full_ratio / stored
        acting = pool.cluster.acting
        placed = np.bincount(acting[acting != NO_OSD], minlength=pool.cluster.osds)
        room = sizes[placed > 0] / placed[placed > 0]
        as_placed = (
            float(room.min()) * fill.full_ratio * pool.cluster.groups / per_group
        )
    return Capacity(
        scheme=scheme.name,
        stored_per_client_byte=stored,
        failures_tolerated=scheme.failures_tolerated,
        osds=len(of_osds),
        raw_bytes=raw,
        usable_bytes=usable,
        usable_as_placed_bytes=as_placed,
        overhead=overhead,
        domains=len(domains),
        steps=steps,
    )


def storage_warnings(scenario: Scenario, models: Models) -> list[str]:
    """Return a warning for each scheme without a spare failure domain."""
    drives = drives_of(scenario, models)
    warnings = []
    problems = []
    images = scenario.images_bytes if scenario.workload.kind != "trace" else 0
    for scheme in (parse_scheme(name) for name in scenario.schemes if name != "none"):
        held = capacity_of(scenario, scheme.name, models, drives)
        limit = held.usable_bytes_full
        if limit is not None and images > limit:
            problems.append(
                f"{scenario.where('workload', 'image_bytes')}: got {images / 1e12:,.4g} TB of images, wanted "
                f"at most {limit / 1e12:,.4g} TB, the capacity of {scheme.name} on "
                f"{held.osds} OSDs at the full ratio"
            )
        domain = domain_type(scenario, scheme)
        if scheme.width > 1 and held.domains == scheme.width:
            warnings.append(
                f"{scheme.name}: no spare {domain}: {held.domains} for {held.domains} shards. After the loss "
                "of one, the pool stays degraded until it is replaced"
            )
    if problems:
        raise ValueError("\n".join(problems))
    return warnings


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

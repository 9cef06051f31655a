"""How much a cluster holds under a scheme, and how fast a workload wears its drives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.models.coding import parse_scheme, stored_bytes
from stripesim.models.drive import (
    SECONDS_PER_DAY,
    DriveCapacity,
    DriveEndurance,
    FillLimits,
    drive_writes_per_day,
)
from stripesim.models.provenance import MeasuredModel, Provenance
from stripesim.scenarios.run.build import build_pool
from stripesim.scenarios.schema.keys import Scenario
from stripesim.sim.ceph.cluster import NO_OSD, Models

__all__ = ["SECONDS_PER_YEAR", "Capacity", "Drives", "Wear", "capacity_of", "drives_of", "wear_of"]

_DAYS_PER_YEAR = 365.25
SECONDS_PER_YEAR = _DAYS_PER_YEAR * SECONDS_PER_DAY


@dataclass(frozen=True)
class Drives:
    """The drives of a scenario's cluster, as far as they are known.

    Parameters
    ----------
    per_osd : int
        Drives striped behind one OSD [count].
    capacity : DriveCapacity or None
    endurance : DriveEndurance or None
    fill : FillLimits or None
    """

    per_osd: int
    capacity: DriveCapacity | None
    endurance: DriveEndurance | None
    fill: FillLimits | None

    @property
    def osd_bytes(self) -> float | None:
        """Capacity of one OSD [B]."""
        return None if self.capacity is None else self.per_osd * self.capacity.drive_bytes

    def parameters(self) -> list[dict[str, Any]]:
        """List what is known, each number with its provenance."""
        parts: dict[str, MeasuredModel | None] = {
            "drive": self.capacity,
            "endurance": self.endurance,
            "fill": self.fill,
        }
        return [
            row for name, model in parts.items() if model is not None for row in model.parameters(f"{name}.")
        ]


def drives_of(scenario: Scenario, models: Models) -> Drives:
    """Collect what the scenario and its parameter sets say of its drives.

    Notes
    -----
    The scenario's `cluster.drive_bytes` wins over the drive's parameter set. A rated endurance belongs to a
    capacity, so the set's is dropped where the scenario gives another one, unless it gives an endurance too.
    """
    told = scenario.cluster
    drive, chosen = ParameterSet(told.ssd), ParameterSet(told.parameters)
    given = Provenance("given", "the scenario's cluster")
    capacity = endurance = None
    if told.drive_bytes is not None:
        capacity = DriveCapacity(drive_bytes=told.drive_bytes, provenance={"drive_bytes": given})
    elif drive.table("capacity") is not None:
        capacity = drive.model(DriveCapacity, "capacity")
    if told.drive_rated_write_bytes is not None:
        endurance = DriveEndurance(
            rated_write_bytes=told.drive_rated_write_bytes,
            rated_days=told.drive_rated_days,
            provenance={"rated_write_bytes": given, "rated_days": given},
        )
    elif told.drive_bytes is None and drive.table("endurance") is not None:
        endurance = drive.model(DriveEndurance, "endurance")
    fill = None if chosen.table("fill") is None else chosen.model(FillLimits, "fill")
    return Drives(models.ssd.raid0_drives, capacity, endurance, fill)


@dataclass(frozen=True)
class Capacity:
    """What a cluster holds under one scheme.

    Parameters
    ----------
    scheme : str
    stored_per_client_byte : float
        Bytes on all drives for each byte of an object, padding to whole stripes included.
    failures_tolerated : int
        Shards of any object that may be lost.
    osds : int
    raw_bytes : float or None
        Of all OSDs; None where the drive's capacity is not known.
    usable_bytes : float or None
        Client data with every OSD at the full ratio.
    usable_as_placed_bytes : float or None
        Client data when the OSD that CRUSH gives most to is at the full ratio; no balancer.
    """

    scheme: str
    stored_per_client_byte: float
    failures_tolerated: int
    osds: int
    raw_bytes: float | None
    usable_bytes: float | None
    usable_as_placed_bytes: float | None


def capacity_of(scenario: Scenario, scheme_name: str, models: Models, drives: Drives) -> Capacity:
    """Work out what the scenario's cluster holds under one scheme.

    Parameters
    ----------
    scenario : Scenario
        OSDs that it loses count: capacity is that of the whole cluster.
    scheme_name : str
    models : Models
    drives : Drives

    Notes
    -----
    With shards of :math:`s` bytes in objects of :math:`o` bytes and :math:`w` shards to an object, a client
    byte takes :math:`w s / o`. Objects spread evenly over placement groups; OSD :math:`j` is in :math:`n_j`
    of :math:`G` groups and holds :math:`s n_j / (G o)` for each client byte, so the fullest one bounds what
    the pool takes. Metadata, the write-ahead log and other pools are not counted.
    """
    scheme = parse_scheme(scheme_name)
    pool = build_pool(scenario, scheme, models)
    # Of an optimised pool's shards the mean; all others are of one length.
    shard_bytes = stored_bytes(scheme, pool.geometry, pool.object_bytes, policy=models.ec) / scheme.width
    per_group = shard_bytes / pool.object_bytes
    acting = pool.cluster.acting
    placed = np.bincount(acting[acting != NO_OSD], minlength=pool.cluster.osds)
    osd_bytes, fill = drives.osd_bytes, drives.fill
    raw = usable = as_placed = None
    if osd_bytes is not None:
        raw = osd_bytes * pool.cluster.osds
        if fill is not None:
            usable = raw * fill.full_ratio / (scheme.width * per_group)
            as_placed = osd_bytes * fill.full_ratio * pool.cluster.groups / (per_group * int(placed.max()))
    return Capacity(
        scheme=scheme.name,
        stored_per_client_byte=scheme.width * per_group,
        failures_tolerated=scheme.failures_tolerated,
        osds=pool.cluster.osds,
        raw_bytes=raw,
        usable_bytes=usable,
        usable_as_placed_bytes=as_placed,
    )


@dataclass(frozen=True)
class Wear:
    """What one kind of request writes to the drives.

    Parameters
    ----------
    bytes_per_client_byte : float
        Host bytes written to all drives for each byte the client asked for.
    drive_write_bytes_per_s : float
        To one drive, on average over all [B/s].
    drive_writes_per_day : float or None
        The same in capacities a day [1/d].
    rated_drive_writes_per_day : float or None
        What the maker rates [1/d].
    life_years : float or None
        Until the rated writes are used up at this rate, day and night [a].
    """

    bytes_per_client_byte: float
    drive_write_bytes_per_s: float
    drive_writes_per_day: float | None
    rated_drive_writes_per_day: float | None
    life_years: float | None


def wear_of(row: Mapping[str, Any], osds: int, drives: Drives) -> Wear | None:
    """Work out the wear of one result row; None where it wrote nothing or says nothing of it.

    Parameters
    ----------
    row : mapping
        A result row.
    osds : int
        OSDs that share the writes [count].
    drives : Drives
    """
    per_byte, rate = row.get("device_write_bytes_per_client_byte"), row.get("throughput_bytes_per_s")
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
    return Wear(per_byte, per_drive, per_day, rated, years)

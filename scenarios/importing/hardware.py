"""Drives, CPUs and networks of a cluster, and the presets that stand for them in a scenario."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from stripesim.calibration.parameters.sets import ParameterSet, ParameterSetError
from stripesim.scenarios.importing.cluster import ImportedCluster, ImportedOsd, ImportedPool

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


@dataclass(frozen=True)
class Hardware:
    """What a pool's OSDs run on, as a scenario says it.

    kind: kind of device that the metadata describes; preset: parameter set that stands for it; drive_bytes:
    mean size of an OSD [bytes]; mapping: how each was found, one line each.
    """

    kind: str
    preset: str
    cores_per_host: int
    public_gbit_per_s: float
    private_gbit_per_s: float
    drive_bytes: int
    mapping: tuple[str, ...]


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


def hardware_of(cluster: ImportedCluster, pool: ImportedPool) -> Hardware:
    """Describe the OSDs that a pool lies on."""
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
    public, private = (_rate(osds, name) for name in ("front", "back"))
    for key, (rate, how) in (("public", public), ("private", private)):
        lines.append(f"cluster.{key}_gbit_per_s: {how} -> {rate:g}")
    return Hardware(kind, preset, _CORES, public[0], private[0], mean, tuple(lines))


def _ships(name: str) -> bool:
    try:
        ParameterSet(name)
    except ParameterSetError:
        return False
    return True


def _rate(osds: Iterable[ImportedOsd], side: str) -> tuple[float, str]:
    """Rate of the network on one side, and where it is from: some releases note the interface's speed."""
    read: Callable[[ImportedOsd], Any] = lambda osd: osd.metadata.get(f"{side}_iface_speed")  # noqa: E731
    speeds = [int(value) for value in map(read, osds) if str(value).isdigit() and int(value) > 0]
    if speeds:
        return Counter(speeds).most_common(1)[0][0] / _MBIT_PER_GBIT, f"{side}_iface_speed"
    return _GBIT_UNKNOWN, "not in the metadata, assumed"

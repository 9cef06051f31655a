"""Derive keys of `[cluster]` from an imported cluster's hardware, and choose its parameter set."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final, Literal, NamedTuple

from stripesim.scenarios.clusters.cluster import (
    ImportedCluster,
    ImportedOsd,
    ImportedPool,
)
from stripesim.scenarios.clusters.report_schema import OsdMetadata
from stripesim.scenarios.schema.units import bytes_text

_MBIT_PER_GBIT: Final = 1000
_GBIT_UNKNOWN: Final = 10.0
_LISTED: Final = 3

# Processors.

Basis = Literal["name", "table", "assumed"]

# doc/start/hardware-recommendations.rst of Ceph v18.2.0: "1 core minimum, 2 recommended" for each OSD.
_CORES_PER_OSD_ASSUMED: Final = 2
_COUNT_IN_NAME: Final = re.compile(r"\b([0-9]{1,3})-Core\b", re.IGNORECASE)
_TWO_THREADS: Final = re.compile(r"EPYC|Ryzen|Threadripper", re.IGNORECASE)
# EPYC models for one socket end in P. The 3000, 4000 and 8000 series support only one.
_ONE_SOCKET: Final = re.compile(
    r"EPYC (\d{4}P\b|[348]\d{3})|Ryzen|Threadripper", re.IGNORECASE
)
_VIRTUAL: Final = re.compile(
    r"QEMU|Virtual_?Disk|Elastic_Block_Store|VMware|PersistentDisk|\bvd[a-z]\b|\bxvd[a-z]\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Processor:
    """A processor: cores and hardware threads per socket, and the maximum number of sockets."""

    cores: int
    threads: int
    sockets_max: int
    basis: Basis
    source: str


@dataclass(frozen=True)
class HostProcessors:
    """The processors of a host."""

    model: str  # from the metadata, or empty
    cores: int
    threads: int
    basis: Basis
    how: str  # explanation for people

    def count(self, choice: "ParameterChoice") -> int:
        """Return the number of cores, in the unit of a parameter set."""
        return self.threads if choice.unit == "hardware threads" else self.cores

    def row(self) -> dict[str, Any]:
        """Return the processors as the JSON document lists them."""
        return {
            "cpu": self.model,
            "cores": self.cores,
            "threads": self.threads,
            "basis": self.basis,
        }


@lru_cache(maxsize=1)
def _families() -> list[dict[str, Any]]:
    table = files("stripesim.scenarios.clusters").joinpath("processors.toml")
    families: list[dict[str, Any]] = tomllib.loads(table.read_text(encoding="utf-8"))[
        "families"
    ]
    return families


@lru_cache(maxsize=64)
def processor_of(name: str) -> Processor | None:
    """Find a processor by its name in the metadata. Return None if its cores are unknown.

    >>> processor_of("AMD EPYC 7232P 8-Core Processor").threads
    16
    >>> processor_of("Intel(R) Xeon(R) CPU E5-2660 v2 @ 2.20GHz").cores
    10
    """
    plain = re.sub(r"\((R|TM)\)", "", name, flags=re.IGNORECASE)
    name_parts = {part.casefold() for part in plain.split()}
    for family in _families():
        if not {part.casefold() for part in family["brand"].split()} <= name_parts:
            continue
        for model, counts in family["models"].items():
            # The version is part of the model: E5-2660 differs from E5-2660 v2.
            if re.search(
                rf"(?<![\w-]){re.escape(model)}(?![\w+]|\s+v\d)", plain, re.IGNORECASE
            ):
                sockets = family.get("sockets_max", 2)
                return Processor(
                    counts["cores"],
                    counts["threads"],
                    sockets,
                    "table",
                    family["source"],
                )
    counted = _COUNT_IN_NAME.search(name)
    if counted is None or not int(counted[1]):
        return None
    cores = int(counted[1])
    threads = cores
    if _TWO_THREADS.search(name):
        threads = 2 * cores
    sockets = 2
    if _ONE_SOCKET.search(plain):
        sockets = 1
    return Processor(cores, threads, sockets, "name", "by its name")


def processors_of(osds: Sequence[ImportedOsd]) -> HostProcessors:
    """Return the processors of the host of some OSDs.

    Metadata name one processor but do not count sockets. Assume one, or two on an Intel host with a
    second NUMA node. If the cores of the processor are unknown, assume two cores for each OSD.
    """
    name = _most_common(osd.metadata.cpu for osd in osds)
    processor = processor_of(name)
    if processor is None:
        cores = max(1, _CORES_PER_OSD_ASSUMED * len(osds))
        how = f"{name or 'no processor in the metadata'}: {_CORES_PER_OSD_ASSUMED} for each OSD assumed"
        return HostProcessors(name, cores, cores, "assumed", how)
    sockets = 1
    counted = "one socket assumed"
    if processor.sockets_max == 1:
        counted = "one socket"
    elif "Intel" in name and _numa_nodes(osds) > 1:
        sockets = 2
        counted = "two sockets by NUMA nodes"
    each = f"{processor.cores} cores and {processor.threads} hardware threads ({processor.source})"
    return HostProcessors(
        name,
        sockets * processor.cores,
        sockets * processor.threads,
        processor.basis,
        f"{name}: {each}, {counted}",
    )


def _most_common(values: Iterable[str]) -> str:
    """Return the most common nonempty text, or an empty one."""
    counted = Counter(filter(None, values)).most_common(1)
    return counted[0][0] if counted else ""


def _numa_nodes(osds: Iterable[ImportedOsd]) -> int:
    """Return the number of NUMA nodes of a host, from the highest node of its devices and interfaces."""
    texts = [
        f"{osd.metadata.objectstore_numa_nodes},{osd.metadata.network_numa_nodes}"
        for osd in osds
    ]
    nodes = [int(node) for text in texts for node in re.findall(r"\b[0-9]\b", text)]
    return max(nodes, default=0) + 1


# Drives.

DriveClass = Literal["hdd", "ssd", "nvme"]

# Models whose flash stores four bits per cell.
_QLC: Final = re.compile(
    r"QLC|P5336|P5316|D5-P|6500.?ION|SSDPF2NV|SSDPE2NV|5210.?ION|MZ.{3,8}Q[A-Z]{2,3}-",
    re.IGNORECASE,
)
_DRIVE_CLASSES: Final[Mapping[str, DriveClass]] = {
    "hdd-7200": "hdd",
    "hdd-7200-nvme-db": "hdd",
    "sata-tlc": "ssd",
    "nvme-tlc": "nvme",
    "nvme-qlc": "nvme",
}


def drive_preset(osd: ImportedOsd) -> str:
    """Return the device parameter set nearest to an OSD's device, by metadata and device class."""
    metadata = osd.metadata
    if _rotates(osd):
        fast_database = metadata.has_own_database and not metadata.bluefs_db_rotational
        return "hdd-7200-nvme-db" if fast_database else "hdd-7200"
    if _QLC.search(drive_model(metadata)):
        return "nvme-qlc"
    described = f"{metadata.bluestore_bdev_devices or metadata.devices} {_data_device(metadata)}".lower()
    nvme = osd.device_class == "nvme" or "nvme" in described
    return "nvme-tlc" if nvme else "sata-tlc"


def _rotates(osd: ImportedOsd) -> bool:
    """Return True for a disk, by the metadata (which some releases lack) or by the device class."""
    for rotational in (osd.metadata.bluestore_bdev_rotational, osd.metadata.rotational):
        if rotational is not None:
            return bool(rotational)
    return osd.device_class == "hdd"


def _data_device(metadata: OsdMetadata) -> str:
    """Return the entry ``device=id`` of the data device, not of a separate database device."""
    entries = [entry for entry in metadata.device_ids.split(",") if "=" in entry]
    for entry in entries:
        if entry.partition("=")[0] == metadata.bluestore_bdev_devices:
            return entry
    return next(iter(entries), "")


def drive_model(metadata: OsdMetadata) -> str:
    """Return the model of an OSD's drive: its id without the serial number at the end."""
    return _data_device(metadata).partition("=")[2].rpartition("_")[0]


# The parameter set.


@dataclass(frozen=True)
class ParameterChoice:
    """A parameter set, with the drives and releases that it was measured on."""

    name: str
    drive_class: DriveClass
    first_release: int
    last_release: int
    unit: Literal["cores", "hardware threads"]  # of cluster.cores_per_host

    @property
    def measured_on(self) -> str:
        """Drives and releases of its measurements, as text."""
        releases = f"releases {self.first_release} to {self.last_release}"
        if self.first_release == self.last_release:
            releases = f"release {self.first_release}"
        return f"{self.drive_class} drives with {releases}"

    def distance(self, drive_class: DriveClass, release: int) -> int:
        """Return the distance in kinds of drives plus that in releases."""
        order: list[DriveClass] = ["hdd", "ssd", "nvme"]
        classes = abs(order.index(self.drive_class) - order.index(drive_class))
        return classes + max(
            0, self.first_release - release, release - self.last_release
        )


# Sets with measured rates. `pacific` has none.
PARAMETER_SETS: Final = (
    ParameterChoice("nvme", "nvme", 16, 20, "hardware threads"),
    ParameterChoice("kraken", "ssd", 11, 11, "cores"),
)


def nearest_parameters(preset: str, release: int) -> ParameterChoice:
    """Return the parameter set nearest in kind of drive and release, or the newer of two.

    >>> nearest_parameters("sata-tlc", 17).name, nearest_parameters("hdd-7200", 13).name
    ('nvme', 'kraken')
    """
    return min(
        PARAMETER_SETS,
        key=lambda choice: choice.distance(_DRIVE_CLASSES[preset], release),
    )


# The first version of a release whose OSDs on disks have one operation queue of five threads, in place of
# five of one thread. Quincy has none.
_ONE_OP_SHARD_SINCE: Final = {17: (18,), 18: (18, 2, 5), 19: (19, 2, 1)}

# The first version of Quincy with the costs and profiles of Reef's mClock (pull request 49973 of ceph/ceph).
_MCLOCK_OF_REEF_SINCE: Final = (17, 2, 7)

# Result.


class Derivation(NamedTuple):
    """Source of the value of a scenario's key."""

    key: str
    source: str
    value: str

    def __str__(self) -> str:
        return f"{self.key}: {self.source} -> {self.value}"


@dataclass(frozen=True)
class Hardware:
    """Hardware of a pool's OSDs and hosts."""

    tables: dict[str, Any]  # keys of `[cluster]`
    cores_by_host: Mapping[str, int]  # in the unit of the parameter set
    processors: tuple[dict[str, Any], ...]  # rows of the JSON document
    derivations: tuple[Derivation, ...]  # of each key
    warnings: tuple[str, ...]


def hardware_of(cluster: ImportedCluster, pool: ImportedPool, release: int) -> Hardware:
    """Describe the OSDs of a pool by keys of `[cluster]`, with the derivation of each key."""
    osds = cluster.osds_of(pool)
    derived: list[Derivation] = []
    preset = _add_drives(osds, derived)
    sizes = [osd.size_bytes for osd in osds]
    drive_bytes = max(1, round(sum(sizes) / len(sizes)))
    spread = f", {bytes_text(min(sizes))} to {bytes_text(max(sizes))}"
    if min(sizes) == max(sizes):
        spread = ""
    mean = f"mean of {len(sizes)} OSDs{spread}"
    derived.append(Derivation("cluster.drive_bytes", mean, bytes_text(drive_bytes)))
    choice = nearest_parameters(preset, release)
    nearest = (
        f"{_DRIVE_CLASSES[preset]} drives with release {release}: nearest set, measured on "
        f"{choice.measured_on}"
    )
    derived.append(Derivation("cluster.parameters", nearest, choice.name))
    hosts = _processors_by_host(osds)
    rows = _add_processors(hosts, choice, derived)
    cores = {host: processors.count(choice) for host, processors in hosts.items()}
    op_shards = op_shards_of(cluster.version, preset)
    if op_shards:
        source = f"osd_op_num_shards_hdd of Ceph {cluster.version}"
        derived.append(Derivation("cluster.op_shards", source, "5 of 1 thread"))
    tables = {
        "drive": preset,
        "drive_bytes": drive_bytes,
        "parameters": choice.name,
        "cores_per_host": Counter(cores.values()).most_common(1)[0][0],
        **op_shards,
        **_add_networks(osds, derived),
    }
    return Hardware(tables, cores, rows, tuple(derived), tuple(_virtual_warnings(osds)))


def _add_drives(osds: Sequence[ImportedOsd], derived: list[Derivation]) -> str:
    """Return the device parameter set of most OSDs, and add its derivation."""
    presets = Counter(drive_preset(osd) for osd in osds)
    preset = presets.most_common(1)[0][0]
    models = Counter(filter(None, (drive_model(osd.metadata) for osd in osds)))
    counted = ", ".join(f"{count} {name}" for name, count in presets.most_common())
    named = ", ".join(f"{count} {name}" for name, count in models.most_common(_LISTED))
    if named:
        counted += f" ({named})"
    derived.append(Derivation("cluster.drive", counted, preset))
    return preset


def op_shards_of(version: str, preset: str) -> dict[str, int]:
    """Return the operation queues of an OSD, if its version has others than the simulated release.

    >>> op_shards_of("18.2.4", "hdd-7200"), op_shards_of("18.2.7", "hdd-7200")
    ({'op_shards': 5, 'op_threads_per_shard': 1}, {})
    """
    numbers = _numbers_of(version)
    changed = _ONE_OP_SHARD_SINCE.get(numbers[0]) if numbers else None
    if _DRIVE_CLASSES.get(preset) != "hdd" or changed is None or numbers >= changed:
        return {}
    if numbers[0] == 17 and not has_mclock_of_reef(version):
        return {}
    return {"op_shards": 5, "op_threads_per_shard": 1}


def has_mclock_of_reef(version: str) -> bool:
    """Return True if a version of Quincy schedules as Reef does.

    >>> [has_mclock_of_reef(version) for version in ("17.2.6", "17.2.7", "18.2.4")]
    [False, True, False]
    """
    numbers = _numbers_of(version)
    return numbers[:1] == (17,) and numbers >= _MCLOCK_OF_REEF_SINCE


def _numbers_of(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"[0-9]+", version)[:3])


def _processors_by_host(osds: Sequence[ImportedOsd]) -> dict[str, HostProcessors]:
    by_host: dict[str, list[ImportedOsd]] = {}
    for osd in osds:
        by_host.setdefault(osd.host, []).append(osd)
    return _like_others(
        {host: processors_of(members) for host, members in by_host.items()}
    )


def _add_processors(
    hosts: Mapping[str, HostProcessors],
    choice: ParameterChoice,
    derived: list[Derivation],
) -> tuple[dict[str, Any], ...]:
    """Return a row for each kind of processor, and add the derivations of the most common ones."""
    kinds = Counter(hosts.values())
    for processors, count in kinds.most_common(_LISTED):
        where = f"{count} of {len(hosts)} hosts: " if len(kinds) > 1 else ""
        cores = processors.count(choice)
        value = f"{cores} {choice.unit}, the unit of {choice.name}"
        source = where + processors.how
        derived.append(Derivation("cluster.cores_per_host", source, value))
    return tuple(
        {**processors.row(), "hosts": count}
        for processors, count in kinds.most_common()
    )


def _like_others(by_host: Mapping[str, HostProcessors]) -> dict[str, HostProcessors]:
    """Assign the most common processor to hosts whose metadata name none."""
    known = Counter(
        processors for processors in by_host.values() if processors.basis != "assumed"
    )
    if not known:
        return dict(by_host)
    usual = known.most_common(1)[0][0]
    how = f"no processor in the metadata, assumed as on other hosts: {usual.how}"
    assumed = replace(usual, model="", basis="assumed", how=how)
    return {
        host: processors if processors.model else assumed
        for host, processors in by_host.items()
    }


def _add_networks(
    osds: Sequence[ImportedOsd], derived: list[Derivation]
) -> dict[str, Any]:
    """Return the keys of the networks, and add their derivations. Only some releases report rates."""
    keys: dict[str, Any] = {}
    for key, name in (
        ("public_gbit_per_s", "front_iface_speed"),
        ("private_gbit_per_s", "back_iface_speed"),
    ):
        speeds = Counter(filter(None, (getattr(osd.metadata, name) for osd in osds)))
        keys[key] = _GBIT_UNKNOWN
        how = "not in the metadata, assumed"
        if speeds:
            keys[key] = speeds.most_common(1)[0][0] / _MBIT_PER_GBIT
            how = f"{name} in the metadata"
        derived.append(Derivation(f"cluster.{key}", how, f"{keys[key]:g}"))
    addresses = [
        (_address(osd.metadata.front_addr), _address(osd.metadata.back_addr))
        for osd in osds
    ]
    known = [(front, back) for front, back in addresses if front and back]
    shared = sum(front == back for front, back in known)
    if shared > len(known) / 2:
        keys["networks"] = 1
        how = f"clients and hosts use one address on {shared} of {len(known)} OSDs"
        derived.append(Derivation("cluster.networks", how, "1"))
    return keys


def _address(text: str) -> str:
    """Return the IP address of an entry such as ``[v2:10.0.0.1:6800/23,v1:10.0.0.1:6801/23]``."""
    first = text.strip("[").removeprefix("v2:").removeprefix("v1:").partition("/")[0]
    return first.rpartition(":")[0]


def _virtual_warnings(osds: Sequence[ImportedOsd]) -> list[str]:
    virtual = [
        osd
        for osd in osds
        if _VIRTUAL.search(f"{osd.metadata.device_ids} {osd.metadata.devices}")
    ]
    if not virtual:
        return []
    return [
        f"osd_metadata: {len(virtual)} of {len(osds)} OSDs have virtual drives: the processor may "
        "be that of the physical machine, and the host may have fewer cores"
    ]

"""Models of a cluster's hardware: a drive by its data sheet, a processor by clock and architecture."""

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

from stripesim.calibration.measured.rows import MeasuredRow
from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.models.cpu import ClientModel, CpuModel
from stripesim.models.nic import NicModel
from stripesim.models.object_store.gateway import GatewayModel
from stripesim.models.problems import MeasuredError, Problem
from stripesim.models.provenance import Provenance
from stripesim.models.ssd import SsdModel, numbers_of_sheet
from stripesim.sim.ceph.cluster import Models

_LOOPBACK_GBIT_PER_S = 1000.0
Model = TypeVar("Model", CpuModel, ClientModel, GatewayModel)
# Words of a table for load generators on the storage hosts.
_SHARED = re.compile(r"osd (hosts|nodes)|same (host|node)|co-?located", re.IGNORECASE)
_NUMBERS = (
    "cores_per_node",
    "sockets",
    "threads_per_core",
    "public_gbit_per_s",
    "private_gbit_per_s",
)
_CLOCK = ("cpu_factor", "cpu_base_ghz", "cpu_boost_ghz")
#: Clock that no processor has [GHz], so that a higher number is in MHz.
_CLOCK_MAX_GHZ = 10
#: Size of the small requests of a data sheet [B]. At most: their rate in bytes over that of large ones, and
#: the reads that a drive serves at the same time [count].
_SMALL_BYTES = 4096
_SMALL_MOST = 1.1
_IN_FLIGHT_MOST = 1024
_SHEET = ("read_4k_iops", "write_4k_iops", "read_mb_s", "write_mb_s", "read_latency_us")


@dataclass(frozen=True, kw_only=True)
class MeasuredHardware:
    """Hardware of a row, in addition to the counts in the row."""

    threads_per_node: int  #: Hardware threads of a node [count]
    #: Hardware threads that a node's pinned OSDs have beyond those that a row states [count]
    threads_beyond_stated: int
    threads_per_core: int  #: Hardware threads of one core, 1 or 2 [count]
    cpu_factor: float  #: Processor time of the same work over that of the processor that was fitted
    cpu_source: str
    public_gbit_per_s: float  #: Rate of a node's network to clients [Gbit/s]
    private_gbit_per_s: float  #: Rate of a node's network to other nodes [Gbit/s]
    networks: int  #: 1 if one interface carries both, 0 if all is on one host
    clients_on_osd_hosts: bool
    sheet: Mapping[str, float]  #: The drive's data sheet
    sheet_source: str
    sustained_write_fraction: float  #: Of the sheet's rate of writes


@dataclass(frozen=True)
class FittedHardware:
    """Numbers of hardware that no data sheet tells."""

    cpu_factors: Mapping[str, float]  #: By table of ``clusters.toml``
    drives: Mapping[str, Mapping[str, float]]  #: The same
    sustained_write_fraction: float


#: Numbers of ``hardware.toml``: table, name, then value and provenance.
HardwareTables = Mapping[str, Mapping[str, Mapping[str, Any]]]


@cache
def _shipped(name: str) -> dict[str, Any]:
    return tomllib.loads((files(__package__) / name).read_text("utf-8"))


def fitted_hardware(tables: HardwareTables | None = None) -> FittedHardware:
    """Return fitted numbers of hardware, by default those that ship in ``hardware.toml``."""
    tables = _shipped("hardware.toml") if tables is None else tables
    numbers = {
        table: {name: float(entry["value"]) for name, entry in entries.items()}
        for table, entries in tables.items()
    }
    processors = _shipped("processors.toml")
    return FittedHardware(
        cpu_factors={
            cluster: numbers["cpu_factor"][name]
            for cluster, name in processors["fitted"].items()
        },
        drives={
            cluster: numbers[table]
            for cluster, table in processors["fitted_drive"].items()
        },
        sustained_write_fraction=numbers["drive"]["write_rate_fraction"],
    )


def hardware_of(
    row: MeasuredRow,
    clusters: Mapping[str, Mapping[str, Any]],
    file: str,
    fitted: FittedHardware | None = None,
) -> MeasuredHardware:
    """Return the hardware of a row. `fitted` holds numbers from a fit, by default the shipped ones.

    Raises
    ------
    MeasuredError
        If the table of its cluster lacks numbers, with one line for each.
    """
    fitted = fitted or fitted_hardware()
    table = clusters[row.hardware]
    where = f"{file}: [{row.hardware}]"
    problems = _wrong_numbers(table, where)
    if problems:
        raise MeasuredError(*problems)
    networks = int(table.get("networks", 2))
    # A row on some of the cluster's nodes leaves the others to the load generators.
    shares = bool(_SHARED.search(str(table.get("clients", "")))) and row.nodes >= int(
        table.get("nodes", row.nodes)
    )
    factor, source = _processor(row.hardware, table, where, problems, fitted)
    sheet, sheet_source = _drive(row.hardware, table, where, problems, fitted)
    needed = (
        ("cores_per_node", "public_gbit_per_s") if networks else ("cores_per_node",)
    )
    problems += [
        Problem(place=where, key=key, got="nothing", wanted="a number")
        for key in needed
        if key not in table
    ]
    public = float(table.get("public_gbit_per_s", _LOOPBACK_GBIT_PER_S))
    if problems:
        raise MeasuredError(*problems)
    threads = int(table.get("threads_per_core", 2))
    return MeasuredHardware(
        threads_per_node=threads * int(table["cores_per_node"]),
        threads_beyond_stated=int(table.get("threads_beyond_stated", 0)),
        threads_per_core=threads,
        cpu_factor=factor,
        cpu_source=source,
        public_gbit_per_s=public,
        private_gbit_per_s=float(table.get("private_gbit_per_s", public)),
        networks=networks,
        clients_on_osd_hosts=shares,
        sheet=sheet,
        sheet_source=sheet_source,
        sustained_write_fraction=fitted.sustained_write_fraction,
    )


def _wrong_numbers(table: Mapping[str, Any], where: str) -> list[Problem]:
    """List the numbers of a cluster's table that no hardware has."""
    numbers = {**table, **table.get("drive", {})}
    problems = [
        Problem(place=where, key=key, got=repr(numbers[key]), wanted="a number above 0")
        for key in (*_NUMBERS, *_CLOCK, *_SHEET)
        if key in numbers
        and not (type(numbers[key]) in (int, float) and 0 < numbers[key] < math.inf)
    ]
    problems += [
        Problem(place=where, key=key, got=repr(numbers[key]), wanted="GHz, such as 2.8")
        for key in ("cpu_base_ghz", "cpu_boost_ghz")
        if type(numbers.get(key)) in (int, float) and numbers[key] > _CLOCK_MAX_GHZ
    ]
    beyond = table.get("threads_beyond_stated", 0)
    if type(beyond) is not int or beyond < 0:
        problems.append(
            Problem(
                place=where,
                key="threads_beyond_stated",
                got=repr(beyond),
                wanted="a whole number, 0 or more",
            )
        )
    networks = table.get("networks", 2)
    if networks not in (0, 1, 2):
        problems.append(
            Problem(place=where, key="networks", got=repr(networks), wanted="0, 1 or 2")
        )
    return problems


def _processor(
    name: str,
    table: Mapping[str, Any],
    where: str,
    problems: list[Problem],
    fitted: FittedHardware,
) -> tuple[float, str]:
    """Return the factor of a processor's times relative to the fitted one, and its source."""
    if name in fitted.cpu_factors:
        return fitted.cpu_factors[name], "fitted"
    if "cpu_factor" in table:
        return float(table["cpu_factor"]), "clusters.toml"
    base = table.get("cpu_base_ghz")
    boost = table.get("cpu_boost_ghz")
    processor_text = (
        f"{table.get('cpu_architecture', '')} {table.get('cpu', '')}".lower()
    )
    processors = _shipped("processors.toml")
    known = [
        one
        for one in processors["architecture"]
        if any(word in processor_text for word in one["words"])
    ]
    if not (base and boost and known):
        problems.append(
            Problem(
                place=where,
                key="cpu",
                got=f"{table.get('cpu', 'nothing')!r} without numbers",
                wanted="cpu_base_ghz, cpu_boost_ghz and a cpu_architecture of processors.toml, "
                "or cpu_factor",
            )
        )
        return 1.0, ""
    reference = processors["reference"]
    clock_ghz = math.sqrt(float(base) * float(boost))
    reference_ghz = math.sqrt(reference["cpu_base_ghz"] * reference["cpu_boost_ghz"])
    by_clock = reference_ghz / clock_ghz / known[0]["work_per_clock"]
    sockets = _sockets(table)
    # Small requests wait for memory and for threads to wake up, which newer cores do not speed up.
    factor = max(1.0, by_clock) * (
        reference["two_sockets_factor"] if sockets > 1 else 1.0
    )
    source = f"{clock_ghz:.2f} GHz, {known[0]['name']}: {known[0]['source']}"
    return factor, f"{source}; {sockets} socket{'s' if sockets > 1 else ''}"


def processor_factor(table: Mapping[str, Any]) -> tuple[float, str]:
    """Return the factor of a processor's times relative to the fitted one, and its source.

    Raises
    ------
    MeasuredError
        If the table of a cluster lacks clocks or a known architecture.
    """
    problems: list[Problem] = []
    factor = _processor("", table, "processor", problems, fitted_hardware())
    if problems:
        raise MeasuredError(*problems)
    return factor


def arithmetic_factor(table: Mapping[str, Any]) -> float:
    """Return the time of arithmetic relative to the fitted processor, by clock and work per clock.

    Unlike requests, arithmetic on bytes in caches does not wait for memory or for threads.
    """
    processors = _shipped("processors.toml")
    architecture_name = str(table["cpu_architecture"]).lower()
    known = next(
        one
        for one in processors["architecture"]
        if any(word in architecture_name for word in one["words"])
    )
    reference = processors["reference"]
    clocks = (float(table["cpu_base_ghz"]), float(table["cpu_boost_ghz"]))
    own_ghz = math.sqrt(clocks[0] * clocks[1])
    reference_ghz = math.sqrt(reference["cpu_base_ghz"] * reference["cpu_boost_ghz"])
    return float(reference_ghz / own_ghz / known["work_per_clock"])


def _sockets(table: Mapping[str, Any]) -> int:
    """Return the processors of a node, by the key `sockets` or a text such as ``2 x Intel Xeon``."""
    if "sockets" in table:
        return int(table["sockets"])
    match = re.match(r"\s*(\d+)\s*[x×]\s", str(table.get("cpu", "")))
    return int(match[1]) if match else 1


def _drive(
    name: str,
    table: Mapping[str, Any],
    where: str,
    problems: list[Problem],
    fitted: FittedHardware,
) -> tuple[Mapping[str, float], str]:
    drive = table.get("drive", {})
    if name in fitted.drives:
        return fitted.drives[name], "fitted"
    missing = [key for key in _SHEET if not isinstance(drive.get(key), int | float)]
    if missing:
        got = f"{drive.get('model', 'nothing')!r} without {', '.join(missing)}"
        problems.append(
            Problem(place=where, key="drive", got=got, wanted="a data sheet")
        )
        return {}, ""
    sheet = {key: float(drive[key]) for key in _SHEET}
    problems += _contradictions(sheet, where)
    return sheet, str(drive.get("basis", "datasheet"))


def _contradictions(sheet: Mapping[str, float], where: str) -> Iterator[Problem]:
    """Yield the numbers of a data sheet that contradict each other, as those in another unit do."""
    for way in ("read", "write"):
        small_iops = sheet[f"{way}_4k_iops"]
        small_mb_s = small_iops * _SMALL_BYTES / 1e6
        large_mb_s = sheet[f"{way}_mb_s"]
        if small_mb_s > _SMALL_MOST * large_mb_s:
            wanted = (
                f"at least {small_mb_s:,.1f}, that of {small_iops:,g} {way}s of 4 KiB"
            )
            got = f"{large_mb_s:g}"
            yield Problem(place=where, key=f"{way}_mb_s", got=got, wanted=wanted)
    # Little's law: what a drive serves at the same time.
    reads = sheet["read_4k_iops"]
    latency_us = sheet["read_latency_us"]
    most_us = _IN_FLIGHT_MOST / reads * 1e6
    if latency_us > most_us:
        wanted = f"at most {most_us:,.0f}: {reads:,g} reads/s then have {_IN_FLIGHT_MOST:,} in flight"
        got = f"{latency_us:g}"
        yield Problem(place=where, key="read_latency_us", got=got, wanted=wanted)


def drive_model(hardware: MeasuredHardware, osds_per_drive: int) -> SsdModel:
    """Build a drive, or an OSD's share of one, from its data sheet."""
    sheet = hardware.sheet
    sustained = hardware.sustained_write_fraction
    numbers: dict[str, Any] = numbers_of_sheet(
        read_4k_iops=sheet["read_4k_iops"] / osds_per_drive,
        read_latency_ns=sheet["read_latency_us"] * 1e3,
        read_bytes_per_s=sheet["read_mb_s"] * 1e6 / osds_per_drive,
        write_4k_iops=sheet["write_4k_iops"] / osds_per_drive,
        write_bytes_per_s=sheet["write_mb_s"] * 1e6 * sustained / osds_per_drive,
    )
    like = ParameterSet("samsung-pm983").model(SsdModel, "ssd")
    origin = Provenance("datasheet", f"data sheet: {hardware.sheet_source}")
    return like.with_numbers(numbers, origin)


def on_hardware(
    models: Models, hardware: MeasuredHardware, osds_per_drive: int
) -> Models:
    """Return the fitted models on another processor and drive."""
    factor = hardware.cpu_factor
    cpu = scaled_times(models.cpu, factor, hardware.cpu_source)
    if hardware.threads_per_core == 1:
        cpu = replace(cpu, paired_slowdown_fraction=0)
    client = scaled_times(models.client, factor, hardware.cpu_source)
    on_host = replace(
        models, cpu=cpu, client=client, ssd=drive_model(hardware, osds_per_drive)
    )
    if hardware.networks:
        return on_host
    # The loopback has long frames.
    rate = {"rate_bits_per_s": _LOOPBACK_GBIT_PER_S * 1e9}
    nic = ParameterSet("pacific").model(NicModel, "private_nic", rate)
    return replace(on_host, public_nic=nic, private_nic=nic)


def scaled_times(
    model: Model, factor: float, source: str, *, suffix: str = "_ns"
) -> Model:
    """Return a model with scaled times: by default those of requests. Those per byte depend on the memory."""
    if factor == 1:
        return model
    names = [name for name in model.number_names() if name.endswith(suffix)]
    origin = {
        name: Provenance(
            "assumed", f"{model.provenance[name].source}; × {factor:.3f} ({source})"
        )
        for name in names
    }
    values = {name: getattr(model, name) * factor for name in names}
    return model.with_numbers(values, origin)

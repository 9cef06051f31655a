"""Read the hardware of a cluster from the words of a source, as far as they state it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from stripesim.calibration.measured.hardware import arithmetic_factor, processor_factor
from stripesim.models.problems import NotComputedError
from stripesim.scenarios.studies.description import shipped_toml

#: Rate of networks that a source does not state, which then limits nothing [Gbit/s].
UNSTATED_GBIT_PER_S: Final = 100.0
#: A source that states a cap of its clients' network: gateways and OSDs also exchange the data over the
#: public network, so a node that returns 10.1 GB/s (rgw-089: 112.9 GiB/s of 12 nodes) sends 19.4 GB/s.
#: 12.5 GB/s are then the share of the clients alone, and a node has two such interfaces.
INTERFACES_BESIDE_A_CAP: Final = 2
_DRIVES: Final = re.compile(
    r"(\d+)\s*x\s+(?:(\w+)\s+)?([\d.]+)\s*TB(?:\s*(NVMe|SSD|QLC|HDD))?", re.IGNORECASE
)
#: Hardware threads of a host whose processor the source does not state, or that this study does not know, and
#: which then counts as the one that was fitted.
UNSTATED_THREADS: Final = 128
_HOSTS: Final = (
    r"(\d+)\s*(?:x\s*)?(?:OSD\s+|storage\s+)?(?:hosts|nodes|servers)",
    r"(\d+)[- ]node",
    r"^\s*(\d+)\s*x\s",
)
#: Words for disks beside the size of a drive.
_SPINS: Final = re.compile(r"\bHDD|\b7[.,]?2\s?k\b|\b7200\b|\brpm\b|spinning", re.I)
_OPS_OF_MIX: Final = {
    "r": "get",
    "w": "put",
    "get": "get",
    "put": "put",
    "read": "get",
    "write": "put",
    "stat": "head",
    "head": "head",
    "list": "list",
    "del": "delete",
    "delete": "delete",
}
_NAMES_OF_MIX: Final = "|".join(sorted(_OPS_OF_MIX, key=len, reverse=True))
#: A mixed load in one word, such as ``45r/35w/15stat/5del``, or as percentages.
_MIX_IN_A_WORD: Final = re.compile(
    rf"\b\d+(?:{_NAMES_OF_MIX})(?:/\d+(?:{_NAMES_OF_MIX}))+", re.I
)
_MIX_IN_PERCENT: Final = re.compile(rf"(\d+)\s*%\s*({_NAMES_OF_MIX})\w*\b", re.I)


@dataclass(frozen=True, kw_only=True)
class DescribedCluster:
    """A cluster as a source describes it."""

    hosts: int
    osds_per_host: int
    drive: str  #: Device parameter set
    threads_per_host: int
    cpu_factor: float
    cpu_source: str
    arithmetic_factor: float  #: The same for work on bytes, by clock and work per clock
    gateway_factor: float  #: The same for a gateway's work on bytes
    gateways: int
    gateways_apart: bool  #: True if gateways have machines of their own
    gbit_per_s: float
    networks: int
    pg_num: int | None
    buckets: int
    #: Share of each operation in a mixed load, in percent; empty without one
    mix: tuple[tuple[str, float], ...]


def read_cluster(text: str) -> DescribedCluster:
    """Read a description.

    Raises
    ------
    NotComputedError
        If it states neither hosts nor drives; the message says what is missing.
    """
    hosts = _number(text, *_HOSTS)
    if hosts is None:
        raise NotComputedError("the number of hosts is not stated")
    drives = _DRIVES.search(text)
    osds = _number(text, r"(\d+)\s*OSDs")
    if osds is not None and osds % hosts == 0:
        per_host = osds // hosts
    elif drives is not None:
        per_host = int(drives[1])
    else:
        raise NotComputedError("number and kind of drives are not stated")
    processor = _read_processor(text)
    gateways = _number(text, r"(\d+)\s*RGWs?\b(?!/)")
    each = _number(text, r"(\d+)\s*RGWs?\s*(?:/|per )\s*(?:node|host)")
    if each is not None:
        gateways = each * hosts
    gbit_per_s, networks = _network(text)
    return DescribedCluster(
        hosts=hosts,
        osds_per_host=per_host,
        drive=_drive_set(text, drives),
        threads_per_host=processor.threads,
        cpu_factor=processor.factor,
        cpu_source=processor.source,
        arithmetic_factor=processor.arithmetic_factor,
        gateway_factor=processor.gateway_factor,
        gateways=gateways or hosts,
        gateways_apart=re.search(
            r"(?:dedicated|separate) (?:RGW|gateway)|RGW (?:nodes|hosts)", text
        )
        is not None,
        gbit_per_s=gbit_per_s,
        networks=networks,
        pg_num=_number(text, r"(\d+)\s*PGs"),
        buckets=_number(text, r"(\d+)\s*buckets") or 16,
        mix=read_mix(text),
    )


def _number(text: str, *patterns: str) -> int | None:
    for pattern in patterns:
        match = re.search(pattern, text, re.IGNORECASE)
        if match:
            return int(match[1])
    return None


def _drive_set(text: str, drives: re.Match[str] | None) -> str:
    """Name the device parameter set of a kind of drive, by default of NVMe drives."""
    kind = ((drives and drives[4]) or "").lower()
    if not kind and _SPINS.search(text):
        kind = "hdd"
    if kind == "hdd":
        has_log = re.search(r"WAL|DB", text) is not None
        return "hdd-7200-nvme-db" if has_log else "hdd-7200"
    if kind == "qlc":
        return "nvme-qlc"
    if "PM983" in text:
        return "samsung-pm983"
    if kind == "ssd":
        return "sata-tlc"
    return "nvme-tlc"


class _Processor(NamedTuple):
    """Processors of a host. Factors are times relative to the fitted processor."""

    factor: float
    source: str
    threads: int  #: Hardware threads of a host
    arithmetic_factor: float
    gateway_factor: float


def _read_processor(text: str) -> _Processor:
    processors: dict[str, dict[str, Any]] = shipped_toml("s3", "hardware.toml")[
        "processors"
    ]
    squeezed = text.replace(" ", "").lower()
    for name, known in processors.items():
        if name.replace(" ", "").lower() not in squeezed:
            continue
        sockets = _number(text, rf"(\d)\s*x\s*[\w ]*{re.escape(name)}") or 1
        table = {
            "cpu": name,
            "cpu_base_ghz": known["base_ghz"],
            "cpu_boost_ghz": known["boost_ghz"],
            "cpu_architecture": known["architecture"],
            "sockets": sockets,
        }
        factor, source = processor_factor(table)
        threads = 2 * sockets * int(known["cores"])
        arithmetic = arithmetic_factor(table)
        of_gateway = known.get("gateway_factor", arithmetic)
        return _Processor(factor, source, threads, arithmetic, of_gateway)
    stated = _number(text, r"(\d+)\s*(?:vCPUs?|threads/(?:node|host))")
    return _Processor(1.0, "not stated", stated or UNSTATED_THREADS, 1.0, 1.0)


def _network(text: str) -> tuple[float, int]:
    """Return the rate of a host's interface, and the interfaces: one for both networks if any is stated."""
    match = re.search(r"(?:(\d)\s*x\s*)?(\d+)\s*Gb?E\b(\s*cap)?", text)
    if match is None:
        return UNSTATED_GBIT_PER_S, 2
    rate = float(match[2]) * int(match[1] or 1)
    if match[3]:
        rate *= INTERFACES_BESIDE_A_CAP
    return rate, 1


def read_mix(text: str) -> tuple[tuple[str, float], ...]:
    """Return the shares of a mixed load, such as ``45r/35w/20stat`` or ``70 % GET, 30 % PUT``."""
    word = _MIX_IN_A_WORD.search(text)
    found = _MIX_IN_PERCENT.findall(text)
    if word is not None:
        found = re.findall(r"(\d+)([a-z]+)", word[0], re.IGNORECASE)
    shares: dict[str, float] = {}
    for number, name in found:
        op = _OPS_OF_MIX[name.lower()]
        shares[op] = shares.get(op, 0.0) + float(number)
    return tuple((op, share) for op, share in shares.items() if share > 0)

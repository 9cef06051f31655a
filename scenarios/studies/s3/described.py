"""Read the hardware of a cluster from the words of a source, as far as they state it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from stripesim.calibration.measured.hardware import arithmetic_factor, processor_factor
from stripesim.models.problems import NotComputedError
from stripesim.scenarios.studies.description import shipped_toml
from stripesim.scenarios.studies.published_rows import stated_number

#: Rate of networks that a source does not state, which then limits nothing [Gbit/s].
UNSTATED_GBIT_PER_S: Final = 100.0
#: A source that states a cap of its clients' network: gateways and OSDs also exchange the data over the
#: public network, so a node that returns 10.1 GB/s (rgw-089: 112.9 GiB/s of 12 nodes) sends 19.4 GB/s.
#: 12.5 GB/s are then the share of the clients alone, and a node has two such interfaces.
INTERFACES_BESIDE_A_CAP: Final = 2
#: Drives of a host: how many, and the words beside their size, with what follows in brackets.
_DRIVES: Final = re.compile(
    r"(\d+)\s*[x×]\s*([^,;+()]*?)\d[\d.]*\s*[TG]i?B\b([^,;+()]*(?:\([^)]*\))?)",
    re.IGNORECASE,
)
#: The same without a size.
_DRIVES_WITHOUT_SIZE: Final = re.compile(
    r"(\d+)\s*(?:[x×]\s*)?((?:[\w.]+\s+)?(?:NVMe|SSD|HDD|flash)s?)([^,;+()]*(?:\([^)]*\))?)",
    re.IGNORECASE,
)
#: Hardware threads of a host whose processor the source does not state, or that this study does not know, and
#: which then counts as the one that was fitted.
UNSTATED_THREADS: Final = 128
_HOSTS: Final = (
    r"(\d+)\s*(?:[x×]\s*)?(?:OSD\s+|storage\s+|data\s+)?(?:hosts?|nodes?|servers?)\b",
    r"(\d+)[- ]node",
    r"^\s*(\d+)\s*[x×]\s",
)
#: Words of the kinds of drives. The first that fits counts: a "7.2k SAS" drive is a disk, and so is one of
#: which only the bus is stated.
_KINDS: Final = (
    (
        "hdd",
        r"\bHDDs?\b|\b7[.,]?2\s?k\b|\b(?:5400|7200|10k|15k)\b|\brpm\b|spinning|\bdisks?\b|nearline|\bNL-SAS",
    ),
    ("qlc", r"\bQLC\b"),
    (
        "nvme",
        r"NVMe|\bU\.[23]\b|\bE[13]\.[SL]\b|PCIe|Optane|PM983|PM17\d\d|PM9A3|P4[56]\d\d|P5[56]\d\d|CD[68]\b",
    ),
    ("ssd", r"\bSSDs?\b"),
    ("hdd", r"\bSATA\b|\bSAS\b"),
)
#: Words for a log or a key-value store on drives of their own.
_LOG: Final = re.compile(r"\bWAL\b|DB\b|block\.db|\bjournal")
#: What drives beside the OSDs are for.
_OTHER_PURPOSE: Final = re.compile(
    r"\bWAL\b|DB\b|\bjournal|metadata|\bindex\b|\bcache\b|\bboot\b|\bOS\b|system",
    re.IGNORECASE,
)
#: The same before the number of drives, as in "block.db on 2x 3.2TB NVMe".
_PURPOSE_BEFORE: Final = re.compile(
    rf"(?:{_OTHER_PURPOSE.pattern})[^,;+()]*\b(?:on|in|from)\s*$", re.IGNORECASE
)
_NO_DRIVE: Final = re.compile(
    r"\bD?RAM\b|memory|\bDDR|DIMM|Xeon|EPYC|\bCPU", re.IGNORECASE
)
#: Rate of an interface, with how many there are, and a word about a cap. A small b means bits. A G alone
#: counts with one of the usual rates, if it is not of memory or drives.
_RATE: Final = re.compile(
    r"(?:(\d)\s*[x×]\s*|\b((?i:dual|two))[\s-]+)?(?<![\d.])"
    r"(?:(\d+(?:\.\d+)?)[\s-]*(?:(?i:GigE|Gigabit|Gbit(?:/s)?|Gbps|GB?E|GBASE\S*|GB?\s+Ethernet)\b|Gb(?:/s)?\b)"
    r"|(1|2\.5|10|25|40|50|100|200|400)\s?G\b)"
    r"(?!\s*(?i:(?:of\s+)?D?RAM|memory|DDR|DIMM|NVMe|SSD|HDD|SAS|SATA|QLC|TLC|flash|drives?|disks?))(\s*cap\b)?"
)
#: "per host" and the like, after a count.
_EACH_HOST: Final = r"(?:/|per |each |a )\s*(?:node|host|server)"
_GATEWAYS: Final = r"(?:RGW|radosgw|gateway)s?"
#: Operations by the words that sources use, and by the letters of a mix.
OPS: Final = {
    "put": ("put", "write", "upload"),
    "get": ("get", "read", "download"),
    "head": ("head", "stat"),
    "delete": ("delete", "del", "remove"),
    "list": ("list", "ls"),
}
OP_OF_WORD: Final = {word: name for name, words in OPS.items() for word in words}
_OPS_OF_MIX: Final = {"r": "get", "w": "put", **OP_OF_WORD}
_NAMES_OF_MIX: Final = "|".join(sorted(_OPS_OF_MIX, key=len, reverse=True))
#: A mixed load in one word, such as ``45r/35w/15stat/5del``, or as percentages.
_MIX_IN_A_WORD: Final = re.compile(
    rf"\b\d+(?:{_NAMES_OF_MIX})(?:/\d+(?:{_NAMES_OF_MIX}))+", re.I
)
_MIX_IN_PERCENT: Final = re.compile(rf"(\d+)\s*%\s*({_NAMES_OF_MIX})\w*\b", re.I)
#: Reads and writes without their names, in this order, as ``70/30``.
_MIX_OF_READS: Final = re.compile(r"\b(\d{1,2})\s*[/:]\s*(\d{1,2})\b")


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
    hosts = stated_number(text, *_HOSTS)
    if hosts is None:
        raise NotComputedError("the number of hosts is not stated")
    drives = _drives_of_osds(text)
    per_host = _osds_per_host(text, hosts, drives)
    processor = _read_processor(text)
    gateways = stated_number(text, rf"(\d+)\s*{_GATEWAYS}\b(?!/)")
    each = stated_number(text, rf"(\d+)\s*{_GATEWAYS}\s*{_EACH_HOST}")
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
            r"(?:dedicated|separate) (?:RGW|gateway)|RGW (?:nodes|hosts)"
            rf"|{_GATEWAYS}[^,;]* on (?:\w+ )?(?:own|separate|dedicated|other) \w",
            text,
        )
        is not None,
        gbit_per_s=gbit_per_s,
        networks=networks,
        pg_num=stated_number(
            text,
            r"(\d+)\s*PGs?\b(?!\s*(?:/|per |each ))",
            r"\bpg_?num\W{0,3}(\d+)",
        ),
        buckets=stated_number(text, r"(\d+)\s*buckets") or 16,
        mix=read_mix(text),
    )


class _Drives(NamedTuple):
    """Drives of a host, and the words beside their size."""

    per_host: int
    words: str
    have_others_beside: bool  #: True if other drives hold their log or their keys


def _drives_of_osds(text: str) -> _Drives | None:
    """Return the drives that hold data: the largest group that is for nothing else, None without one."""
    for pattern in (_DRIVES, _DRIVES_WITHOUT_SIZE):
        groups = [
            (int(match[1]), f"{match[2]} {match[3]}")
            for match in pattern.finditer(text)
            if not _NO_DRIVE.search(match[0])
            and not _PURPOSE_BEFORE.search(text[: match.start()])
        ]
        of_data = [group for group in groups if not _OTHER_PURPOSE.search(group[1])]
        if of_data:
            has_log = any(_LOG.search(words) for _, words in groups)
            return _Drives(*max(of_data), has_log)
        if groups:
            # The words about a log belong to drives of data: "12x 8TB HDD with DB on NVMe".
            return _Drives(*groups[0], False)
    return None


def _osds_per_host(text: str, hosts: int, drives: _Drives | None) -> int:
    each = stated_number(
        text, rf"(\d+)\s*(?:OSDs?|drives?|disks?)\s*(?:{_EACH_HOST}|each\b)"
    )
    if each is not None:
        return each
    osds = stated_number(text, r"(\d+)\s*OSDs\b(?!\s*(?:/|per ))")
    if osds is not None and osds % hosts == 0:
        return osds // hosts
    if drives is None:
        raise NotComputedError("number and kind of drives are not stated")
    return drives.per_host


def _drive_set(text: str, drives: _Drives | None) -> str:
    """Name the device parameter set of a kind of drive, by default of NVMe drives.

    Words beside the size of the drives count first, then all others. Drives that leave their log to others
    are disks.
    """
    kind = _kind_of_drive(drives.words) if drives else None
    if kind is None and drives and drives.have_others_beside:
        kind = "hdd"
    kind = kind or _kind_of_drive(text)
    if kind == "hdd":
        return "hdd-7200-nvme-db" if _LOG.search(text) else "hdd-7200"
    if kind == "qlc":
        return "nvme-qlc"
    if "PM983" in text:
        return "samsung-pm983"
    if kind == "ssd":
        return "sata-tlc"
    return "nvme-tlc"


def _kind_of_drive(words: str) -> str | None:
    for kind, pattern in _KINDS:
        if re.search(pattern, words, re.IGNORECASE):
            return kind
    return None


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
        sockets = stated_number(text, rf"(\d)\s*x\s*[\w ]*{re.escape(name)}") or 1
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
    stated = stated_number(
        text, r"(\d+)\s*(?:vCPUs?|(?:hardware )?threads/(?:node|host))"
    )
    cores = stated_number(text, r"(\d+)[\s-]*(?:physical\s+)?cores?\b")
    if stated is None and cores is not None:
        sockets = stated_number(text, r"(\d)\s*[x×]\s*[\w -]*\d+[\s-]*cores?\b") or 1
        stated = 2 * cores * sockets
    return _Processor(1.0, "not stated", stated or UNSTATED_THREADS, 1.0, 1.0)


def _network(text: str) -> tuple[float, int]:
    """Return the rate of a host's interface, and the interfaces: one for both networks if any is stated."""
    match = _RATE.search(text)
    if match is None:
        return UNSTATED_GBIT_PER_S, 2
    interfaces, word, with_unit, alone, cap = match.groups()
    rate = float(with_unit or alone) * (2 if word else int(interfaces or 1))
    if cap:
        rate *= INTERFACES_BESIDE_A_CAP
    return rate, 1


def read_mix(text: str) -> tuple[tuple[str, float], ...]:
    """Return the shares of a mixed load, such as ``45r/35w/20stat``, ``70 % GET, 30 % PUT`` or ``70/30``."""
    word = _MIX_IN_A_WORD.search(text)
    parts = _MIX_IN_PERCENT.findall(text)
    reads = _MIX_OF_READS.search(text)
    if word is not None:
        parts = re.findall(r"(\d+)([a-z]+)", word[0], re.IGNORECASE)
    elif not parts and reads and int(reads[1]) + int(reads[2]) == 100:
        parts = [(reads[1], "get"), (reads[2], "put")]
    shares: dict[str, float] = {}
    for number, name in parts:
        op = _OPS_OF_MIX[name.lower()]
        shares[op] = shares.get(op, 0.0) + float(number)
    return tuple((op, share) for op, share in shares.items() if share > 0)

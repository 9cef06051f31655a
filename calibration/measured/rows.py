"""Measured rows of a folder: ``times.csv`` and the hardware of its clusters, ``clusters.toml``."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stripesim.calibration.measured.tables import (
    CsvRow,
    Source,
    misnamed_metrics,
    read_rows,
)
from stripesim.models.coding import parse_scheme
from stripesim.models.problems import MeasuredError, Problem, SchemeError, file_reason

#: Columns of a row that are claims, each with its unit.
METRICS = {
    "iops": "1/s",
    "mb_s": "MB/s",
    "latency_mean_ms": "ms",
    "latency_p99_ms": "ms",
}
# Further metrics that a table may have. They are compared with nothing.
_NOT_COMPARED = ("latency_p50_ms", "latency_p95_ms")
# Requests in flight by rate and mean latency (Little's law), over those of a closed loop. Tools average both
# over slightly different times, and round.
_IN_FLIGHT_LEAST = 0.5
_IN_FLIGHT_MOST = 1.2
# 99th percentile over mean latency, see `p99_bounds`.
_P99_LEAST = 0.5
_P99_MOST = 100.0
# Largest relative difference of a rate of bytes from that of requests.
_BYTES_TOLERANCE = 0.1
ROLES = ("calibration", "held-out", "not-derivable")
EC_GENERATIONS = ("classic", "partial-read", "fast-ec", "direct")
#: Requests that a client of a saturating load has in flight where the source does not say.
SATURATING_DEPTH = 128
# Required columns. Other missing columns are not stated.
_COLUMNS = (
    "id",
    "cluster",
    "nodes",
    "ceph_version",
    "ec_generation",
    "scheme",
    "op",
    "pattern",
    "block_bytes",
    "role",
)
_STRIPE_UNIT_BYTES = 4096
# Luminous to Octopus write through the same pipeline per placement group, in whole stripes, as Pacific does.
_RELEASES = {
    12: "pacific",
    13: "pacific",
    14: "pacific",
    15: "pacific",
    16: "pacific",
    17: "quincy",
    18: "reef",
    19: "squid",
    20: "tentacle",
    21: "umbrella",
}


#: Fields that do not describe the run.
_OF_THE_ROW = (
    "id",
    "where",
    "source",
    "note",
    "role",
    "op",
    "part",
    "measured",
    "texts",
    "tolerance",
)


@dataclass(frozen=True, kw_only=True)
class MeasuredRow:
    """One measured row: load, cluster and results."""

    id: str
    cluster: str  #: Name that begins with a table of ``clusters.toml``
    where: str  #: Address of the source, or the place in it
    source: str  #: Document that states the results
    note: str
    role: str  #: One of `ROLES`
    hardware: str  #: Table of ``clusters.toml``
    generation: str  #: Release whose paths are simulated
    fast_ec: bool  #: True if the pool is optimised
    direct: bool  #: True if clients read shards themselves
    nodes: int  #: Storage hosts [count]
    osds_per_node: int  #: OSDs of one host [count]
    osds_per_drive: int  #: OSDs that share one drive [count]
    #: Hardware threads that a node's OSDs are pinned to [count], None for all
    threads_per_node: int | None
    #: Cores that each OSD is pinned to [count], None if OSDs share those of the node
    cores_per_osd: int | None
    #: Processor time that each OSD may use, as a number of cores, None for no limit
    cpu_limit_per_osd: float | None
    scheme: str
    stripe_unit_bytes: int  #: Bytes of a stripe on one shard [B]
    block_bytes: int  #: Bytes of a request [B]
    pg_num: int | None  #: Placement groups of the pool [count], None if not stated
    op: str  #: ``read``, ``write`` or ``mixed``
    part: str  #: ``read`` or ``write``: requests of a mixed load that the results describe. Empty: all
    pattern: str  #: ``rand`` or ``seq``
    read_fraction: float  #: Share of the requests that read
    clients: int  #: Clients of the cluster [count]
    queue_depth: int  #: Requests that a client keeps in flight [count]
    #: Requests of each client at random moments [1/s], None for a closed loop
    iops_limit: float | None
    #: Operation queues of one OSD [count], None for the release's
    op_shards: int | None
    #: Messenger threads of one OSD [count], None for the release's
    messenger_threads: int | None
    measured: Mapping[str, float] = field(hash=False)  #: Metric → number, or range
    texts: Mapping[str, str] = field(hash=False)  #: Metric → as written
    tolerance: float  #: Relative difference that still agrees

    @property
    def run_key(self) -> tuple[Any, ...]:
        """Fields that the simulation depends on. Rows of one key share it."""
        return tuple(
            value for name, value in vars(self).items() if name not in _OF_THE_ROW
        )

    @property
    def osds(self) -> int:
        """OSDs of the cluster [count]."""
        return self.nodes * self.osds_per_node


def read_measured(
    folder: Source,
) -> tuple[tuple[MeasuredRow, ...], dict[str, dict[str, Any]]]:
    """Return the rows of a folder of measurements, and its tables of clusters.

    Raises
    ------
    MeasuredError
        If a file cannot be used, with one line for each problem.
    """
    if not folder.is_dir():
        raise MeasuredError(
            Problem(
                place="--data",
                got=str(folder),
                wanted="a folder with times.csv and clusters.toml",
            )
        )
    source = folder / "clusters.toml"
    try:
        document = tomllib.loads(source.read_text("utf-8"))
    except (OSError, ValueError) as error:
        wanted = "a TOML file with a table for each cluster"
        problem = Problem(place=str(source), got=file_reason(error), wanted=wanted)
        raise MeasuredError(problem) from None
    clusters = {
        name: table for name, table in document.items() if isinstance(table, dict)
    }
    problems: list[Problem] = []
    lines = read_rows(folder / "times.csv", _COLUMNS, problems)
    if lines:
        known = (*METRICS, *_NOT_COMPARED)
        problems += misnamed_metrics(lines[0], known, ", ".join(METRICS))
    rows = tuple(_row(line, clusters) for line in lines)
    _check_ids(lines)
    if problems:
        raise MeasuredError(*problems)
    return rows, clusters


def _check_ids(lines: Iterable[CsvRow]) -> None:
    """Refuse an id that an earlier line has: results are kept by id."""
    first_lines: dict[str, int] = {}
    for line in lines:
        first = first_lines.setdefault(line.words("id"), line.line)
        if line.words("id") and first != line.line:
            line.refuse(
                "id", f"another one than line {first}, also for a repeat of its load"
            )


def _row(row: CsvRow, clusters: Mapping[str, Any]) -> MeasuredRow:
    role = row.text("role", ROLES)
    counted = role != "not-derivable"
    before = len(row.problems)
    measured = _read_row(row, role, counted, clusters)
    if not counted:
        # Rows that cannot be derived may be incomplete.
        del row.problems[before:]
    elif len(row.problems) == before and _width(measured) > measured.osds:
        row.refuse("scheme", f"at most {measured.osds} shards, one for each OSD")
    elif len(row.problems) == before:
        _check_units(row, measured)
    return measured


def _check_units(row: CsvRow, measured: MeasuredRow) -> None:
    """Refuse numbers of one row that contradict each other, as those in another unit do."""
    numbers = measured.measured
    rate_per_s = numbers.get("iops")
    if "mb_s" in numbers:
        of_bytes_per_s = numbers["mb_s"] * 1e6 / measured.block_bytes
        rate_per_s = rate_per_s or of_bytes_per_s
        if not is_rate_of_bytes(
            numbers["mb_s"] * 1e6, rate_per_s, measured.block_bytes
        ):
            mb_per_s = rate_per_s * measured.block_bytes / 1e6
            row.refuse(
                "mb_s",
                f"about {mb_per_s:.4g}: {rate_per_s:,.6g} requests/s of {measured.block_bytes:,} B",
            )
    latency_ms = numbers.get("latency_mean_ms")
    if latency_ms is None:
        return
    _check_p99(row, latency_ms, numbers.get("latency_p99_ms"))
    if rate_per_s is None or not _states_in_flight(row):
        return
    asked = measured.clients * measured.queue_depth
    low_ms, high_ms = mean_latency_bounds_ms(
        rate_per_s, asked, is_part=bool(measured.part)
    )
    if low_ms <= latency_ms <= high_ms:
        return
    row.refuse(
        "latency_mean_ms",
        f"{low_ms:.3g} to {high_ms:.3g}: {asked:,} in flight at {rate_per_s:,.6g} requests/s take "
        f"{asked / rate_per_s * 1e3:.3g} ms each (Little's law)",
    )


def _check_p99(row: CsvRow, mean_ms: float, p99_ms: float | None) -> None:
    """Refuse a 99th percentile that no distribution with the mean has, or hardly any."""
    low_ms, high_ms = p99_bounds(mean_ms)
    if p99_ms is not None and not low_ms <= p99_ms <= high_ms:
        row.refuse(
            "latency_p99_ms",
            f"{low_ms:.3g} to {high_ms:.3g}, with a mean of {mean_ms:.3g}",
        )


def p99_bounds(mean: float) -> tuple[float, float]:
    """Return the least and the highest 99th percentile of latencies with a mean, in its unit.

    A hundredth of the requests takes the percentile or more, so that it is at most a hundred means. Below
    half of the mean, these requests would take more time than all others together.
    """
    return _P99_LEAST * mean, _P99_MOST * mean


def is_rate_of_bytes(bytes_per_s: float, rate_per_s: float, block_bytes: int) -> bool:
    """Return True if a rate of bytes is that of requests of a size."""
    return abs(bytes_per_s / (rate_per_s * block_bytes) - 1) <= _BYTES_TOLERANCE


def mean_latency_bounds_ms(
    rate_per_s: float, asked: int, *, is_part: bool = False
) -> tuple[float, float]:
    r"""Return the least and the highest mean latency that a closed loop can have at its rate [ms].

    Parameters
    ----------
    rate_per_s
        Requests per second that were served.
    asked
        Requests that the load keeps in flight [count].
    is_part
        True for the reads or the writes of a mixed load: the others have a part of the requests in flight.

    Notes
    -----
    By Little's law, :math:`n` requests in flight at a rate :math:`\lambda` take :math:`n / \lambda` each.
    The bounds are 0.5 and 1.2 times that, and 0 for the least one of a part.
    """
    mean_ms = asked / rate_per_s * 1e3
    least = 0.0 if is_part else _IN_FLIGHT_LEAST
    return least * mean_ms, _IN_FLIGHT_MOST * mean_ms


def _states_in_flight(row: CsvRow) -> bool:
    """Return True if a row states the requests that it keeps in flight."""
    if row.words("vm_iops_limit"):
        return False
    return bool(row.words("queue_depth_total") or row.words("vm_queue_depth"))


def _width(row: MeasuredRow) -> int:
    return parse_scheme(row.scheme).width


def _read_row(
    row: CsvRow, role: str, counted: bool, clusters: Mapping[str, Any]
) -> MeasuredRow:
    op = row.text("op", ("read", "write", "mixed"))
    generation, fast_ec, direct = _release(row)
    clients, queue_depth = _load_of(row)
    texts = {name: row.words(name) for name in METRICS if row.words(name)}
    measured = {name: row.positive(name) for name in texts}
    scheme = _scheme(row, counted)
    read_fraction = _read_fraction(row, op)
    hardware = _hardware_name(row, clusters)
    table = clusters.get(hardware, {})
    osds_per_node, osds_per_drive = _osds(row, table)
    return MeasuredRow(
        id=row.text("id"),
        cluster=row.words("cluster"),
        where=row.words("where"),
        source=row.words("source"),
        note=row.words("note"),
        role=role,
        hardware=hardware,
        generation=generation,
        fast_ec=fast_ec,
        direct=direct,
        nodes=row.whole("nodes", 1),
        osds_per_node=osds_per_node,
        osds_per_drive=osds_per_drive,
        threads_per_node=_optional(row, "osd_threads_per_node"),
        cores_per_osd=_optional(row, "cores_per_osd")
        or _of_table(table, "cores_per_osd"),
        cpu_limit_per_osd=row.positive("cpu_limit_per_osd")
        or _of_table(table, "cpu_limit_per_osd"),
        scheme=scheme,
        stripe_unit_bytes=row.whole("stripe_unit_bytes", 1, _STRIPE_UNIT_BYTES),
        block_bytes=row.whole("block_bytes", 1) if counted else 4096,
        pg_num=_optional(row, "pg_num"),
        op=op,
        part=row.words("part"),
        pattern=row.text("pattern", ("rand", "seq")) if counted else "rand",
        read_fraction=read_fraction,
        clients=clients,
        queue_depth=queue_depth,
        iops_limit=row.positive("vm_iops_limit"),
        op_shards=_optional(row, "op_shards"),
        messenger_threads=_optional(row, "msgr_threads"),
        measured={name: value for name, value in measured.items() if value is not None},
        texts=texts,
        tolerance=(row.positive("tolerance_percent") or 25.0) / 100,
    )


def _optional(row: CsvRow, column: str) -> int | None:
    """Return a whole number above 0, or None for an empty cell."""
    return row.whole(column, 1, 0) or None


def _of_table(table: Mapping[str, Any], key: str) -> Any:
    """Return a number of the cluster's table that applies to all its rows, or None."""
    number = table.get(key)
    return number if isinstance(number, int | float) and number > 0 else None


def _scheme(row: CsvRow, counted: bool) -> str:
    """Return the scheme. Only a row that counts needs one that can be simulated."""
    scheme = row.text("scheme")
    if counted:
        try:
            parse_scheme(scheme)
        except SchemeError as error:
            row.refuse("scheme", error.problems[0].wanted or str(error))
    return scheme


def _read_fraction(row: CsvRow, op: str) -> float:
    pure_loads = {"read": 1.0, "write": 0.0}
    fraction = row.number("read_fraction")
    if op in pure_loads:
        if fraction not in (None, pure_loads[op]):
            row.refuse("read_fraction", f"nothing, or {pure_loads[op]:g} with {op}")
        return pure_loads[op]
    if fraction is None or not 0 <= fraction <= 1:
        if op == "mixed":
            row.refuse("read_fraction", "0 to 1")
        return 0.0
    return fraction


def _osds(row: CsvRow, hardware: Mapping[str, Any]) -> tuple[int, int]:
    """Return the OSDs of a node and of a drive, by default those of its cluster."""
    per_drive = row.whole("osds_per_drive", 1, 1)
    drives_of_cluster = int(hardware.get("osds_per_node", 1)) // per_drive
    drives = row.whole("drives_per_node", 1, drives_of_cluster or 1)
    return drives * per_drive, per_drive


def _hardware_name(row: CsvRow, clusters: Mapping[str, Any]) -> str:
    """Return the longest table name that begins the cluster's name, or an empty text."""
    cluster = row.words("cluster")
    fitting = [
        name for name in clusters if cluster == name or cluster.startswith(f"{name}-")
    ]
    if not fitting:
        row.refuse("cluster", f"a table of clusters.toml: {', '.join(clusters)}")
    return max(fitting, key=len, default="")


def _release(row: CsvRow) -> tuple[str, bool, bool]:
    """Return the release, whether pools are optimised, and whether reads are direct."""
    kind = row.text("ec_generation", EC_GENERATIONS)
    number = re.match(r"\s*v?(\d+)", row.words("ceph_version"))
    version = int(number[1]) if number else 0
    if version not in _RELEASES:
        row.refuse(
            "ceph_version", f"a release of Ceph {min(_RELEASES)} to {max(_RELEASES)}"
        )
    name = _RELEASES.get(version, "reef")
    if kind == "partial-read":
        name = "reef-partial-read"
    if kind == "direct":
        name = "umbrella"
    if kind == "fast-ec" and version < 20:
        row.refuse("ec_generation", "classic before Ceph 20")
    return name, kind in ("fast-ec", "direct"), kind == "direct"


def _load_of_vms(row: CsvRow) -> tuple[int, int]:
    """Return the virtual machines and the requests that each has in flight."""
    vms = row.whole("vms", 1)
    stated = [name for name in ("clients", "queue_depth_total") if row.words(name)]
    for name in stated:
        row.refuse(name, "no number beside vms and vm_queue_depth")
    if not (row.words("vm_queue_depth") or row.words("vm_iops_limit")):
        row.refuse("vm_queue_depth", "a number, or vm_iops_limit")
    return vms, row.whole("vm_queue_depth", 1, 1)


def _load_of(row: CsvRow) -> tuple[int, int]:
    """Return the clients and the requests that each has in flight."""
    if row.words("vms"):
        return _load_of_vms(row)
    clients = row.whole("clients", 1, 1)
    if not row.words("queue_depth_total"):
        # A saturating load says how many clients make it.
        if not row.words("clients"):
            row.refuse(
                "queue_depth_total", "a number, or clients, for a load that saturates"
            )
        return clients, SATURATING_DEPTH
    total = row.whole("queue_depth_total", 1)
    # If clients do not share the total equally, take the number, at least half of theirs, that fits best.
    most = min(clients, total)
    clients = min(
        range(most, (most - 1) // 2, -1),
        key=lambda one: abs(one * round(total / one) - total),
    )
    return clients, round(total / clients)

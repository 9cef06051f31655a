"""Measured rows of a folder: ``times.csv`` and the hardware of its clusters, ``clusters.toml``."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import polars as pl

from stripesim.models.coding import parse_scheme
from stripesim.models.problems import MeasuredError
from stripesim.scenarios.studies.ceph16.table import Row, read_rows
from stripesim.scenarios.studies.description import study_folder

#: Columns of a row that are claims, each with its unit.
METRICS = {
    "iops": "1/s",
    "mb_s": "MB/s",
    "latency_mean_ms": "ms",
    "latency_p99_ms": "ms",
}
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

    #: `id`, `cluster`, `where`, `source`, `note`, `role`:
    id: str
    cluster: str
    where: str
    source: str
    note: str
    role: str
    hardware: str  #: Table of ``clusters.toml``
    generation: str  #: Release whose paths are simulated
    #: `fast_ec`, `direct`: whether the pool is optimised, and whether clients read shards themselves
    fast_ec: bool
    direct: bool
    #: `nodes`, `osds_per_node`, `osds_per_drive`:
    nodes: int
    osds_per_node: int
    osds_per_drive: int
    threads_per_node: (
        int | None
    )  #: Hardware threads that a node's OSDs are pinned to [count], None for all
    scheme: str
    #: `stripe_unit_bytes`, `block_bytes`:
    stripe_unit_bytes: int
    block_bytes: int
    pg_num: int | None  #: None: not stated
    #: `op`, `part`, `pattern`:
    op: str
    part: str
    pattern: str
    read_fraction: float
    #: `clients`, `depth_per_client`:
    clients: int
    depth_per_client: int
    #: `op_shards`, `messenger_threads`: none: the release's
    op_shards: int | None
    messenger_threads: int | None
    measured: Mapping[str, float] = field(hash=False)  #: Metric → number, or range
    texts: Mapping[str, str] = field(hash=False)  #: Metric → as written
    tolerance: float

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


def measured_table(rows: Iterable[MeasuredRow]) -> pl.DataFrame:
    """Return the measured rows as a table for figures."""
    return pl.DataFrame(
        [
            {
                "id": row.id,
                "position": position,
                "cluster": row.cluster,
                "op": row.op,
                "part": row.part,
                "block_bytes": row.block_bytes,
                "label": _label(row),
                "threads_per_osd": row.threads_per_node
                and row.threads_per_node / row.osds_per_node,
                "pg_num": row.pg_num,
                "iops": row.measured.get("iops"),
                "latency_ms": row.measured.get("latency_mean_ms"),
            }
            for position, row in enumerate(rows)
        ],
        schema_overrides={
            "threads_per_osd": pl.Float64,
            "pg_num": pl.Int64,
            "iops": pl.Float64,
            "latency_ms": pl.Float64,
        },
        infer_schema_length=None,
    )


def _label(row: MeasuredRow) -> str:
    """Name a row's scheme, with its release's kind of erasure coding."""
    if row.scheme == "rep:3":
        return row.scheme
    if row.generation == "reef-partial-read":
        return f"partial {row.scheme}"
    return f"fast {row.scheme}" if row.fast_ec else row.scheme


def load(
    data: Path | None = None,
) -> tuple[tuple[MeasuredRow, ...], dict[str, dict[str, Any]]]:
    """Return the rows of a folder of measurements (None: the one that ships) and its tables of clusters.

    An `MeasuredError` has one line for each problem.
    """
    if data is None:
        return _shipped()
    if not data.is_dir():
        raise MeasuredError(
            f"--data: got {data}, wanted a folder with times.csv and clusters.toml"
        )
    return _load(data)


@cache
def _shipped() -> tuple[tuple[MeasuredRow, ...], dict[str, dict[str, Any]]]:
    return _load(study_folder("nvme") / "data")


def _load(
    folder: Path | Traversable,
) -> tuple[tuple[MeasuredRow, ...], dict[str, dict[str, Any]]]:
    faults: list[str] = []
    source = folder / "clusters.toml"
    try:
        clusters = tomllib.loads(source.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise MeasuredError(f"{source}: {error}") from None
    clusters = {
        name: table for name, table in clusters.items() if isinstance(table, dict)
    }
    rows = [
        _row(row, clusters, faults)
        for row in read_rows(folder / "times.csv", _COLUMNS, faults)
    ]
    if faults:
        raise MeasuredError("\n".join(faults))
    return tuple(rows), clusters


def _row(row: Row, clusters: Mapping[str, Any], faults: list[str]) -> MeasuredRow:
    role = row.text("role", ROLES)
    counted = role != "not-derivable"
    before = len(faults)
    op = row.text("op", ("read", "write", "mixed"))
    generation, fast_ec, direct = _release(row)
    clients, depth = _load_of(row)
    measured: dict[str, float] = {}
    texts = {name: row.cells.get(name, "") for name in METRICS if row.cells.get(name)}
    for name in texts:
        number = row.number(name)
        if number is not None:
            measured[name] = number
    scheme = row.text("scheme")
    if counted:
        try:
            parse_scheme(scheme)
        except ValueError as error:
            row.fault("scheme", str(error).partition(", wanted ")[2] or str(error))
    read_fraction = {"read": 1.0, "write": 0.0}.get(op, row.number("read_fraction"))
    if read_fraction is None or not 0 <= read_fraction <= 1:
        row.fault("read_fraction", "0 to 1")
    hardware = _hardware(row.cells.get("cluster", ""), clusters)
    if not hardware:
        row.fault("cluster", f"a table of clusters.toml: {', '.join(clusters)}")
    table = clusters.get(hardware, {})
    per_drive = row.whole("osds_per_drive", 1, 1)
    drives = row.whole(
        "drives_per_node", 1, int(table.get("osds_per_node", 1)) // per_drive or 1
    )
    measured_row = MeasuredRow(
        id=row.text("id"),
        cluster=row.cells.get("cluster", ""),
        where=row.cells.get("where", ""),
        source=row.cells.get("source", ""),
        note=row.cells.get("note", ""),
        role=role,
        hardware=hardware,
        generation=generation,
        fast_ec=fast_ec,
        direct=direct,
        nodes=row.whole("nodes", 1),
        osds_per_node=drives * per_drive,
        osds_per_drive=per_drive,
        threads_per_node=row.whole("osd_threads_per_node", 1, 0) or None,
        scheme=scheme,
        stripe_unit_bytes=row.whole("stripe_unit_bytes", 1, _STRIPE_UNIT_BYTES),
        block_bytes=row.whole("block_bytes", 1) if counted else 4096,
        pg_num=row.whole("pg_num", 1, 0) or None,
        op=op,
        part=row.cells.get("part", ""),
        pattern=row.text("pattern", ("rand", "seq")) if counted else "rand",
        read_fraction=read_fraction or 0.0,
        clients=clients,
        depth_per_client=depth,
        op_shards=row.whole("op_shards", 1, 0) or None,
        messenger_threads=row.whole("msgr_threads", 1, 0) or None,
        measured=measured,
        texts=texts,
        tolerance=(row.number("tolerance_percent") or 25.0) / 100,
    )
    if (
        counted
        and len(faults) == before
        and parse_scheme(scheme).width > measured_row.osds
    ):
        row.fault("scheme", f"at most {measured_row.osds} shards, one for each OSD")
    if not counted:
        # Rows that cannot be derived may be incomplete.
        del faults[before:]
    return measured_row


def _hardware(cluster: str, clusters: Mapping[str, Any]) -> str:
    """Return the longest table name that begins the cluster's name, or an empty text."""
    fitting = [
        name for name in clusters if cluster == name or cluster.startswith(f"{name}-")
    ]
    return max(fitting, key=len, default="")


def _release(row: Row) -> tuple[str, bool, bool]:
    """Return the release, whether pools are optimised, and whether reads are direct."""
    kind = row.text("ec_generation", EC_GENERATIONS)
    number = re.match(r"\s*v?(\d+)", row.cells.get("ceph_version", ""))
    version = int(number[1]) if number else 0
    if version not in _RELEASES:
        row.fault(
            "ceph_version", f"a release of Ceph {min(_RELEASES)} to {max(_RELEASES)}"
        )
    name = _RELEASES.get(version, "reef")
    if kind == "partial-read":
        name = "reef-partial-read"
    if kind == "direct":
        name = "umbrella"
    if kind == "fast-ec" and version < 20:
        row.fault("ec_generation", "classic before Ceph 20")
    return name, kind in ("fast-ec", "direct"), kind == "direct"


def _load_of(row: Row) -> tuple[int, int]:
    """Return the clients and the requests that each has in flight."""
    clients = row.whole("clients", 1, 1)
    if not row.cells.get("queue_depth_total"):
        # A saturating load says how many clients make it.
        if not row.cells.get("clients"):
            row.fault(
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

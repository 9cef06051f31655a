"""Measurements: runs with their exact offsets, repairs, degraded reads."""

import gzip
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import median

import numpy as np

from stripesim.calibration.measured.tables import CsvRow, Source, read_rows
from stripesim.models.problems import MeasuredError, Problem, file_reason
from stripesim.scenarios.studies.description import study_folder
from stripesim.sim.ceph.clients.workload import Requests

# Metric of a claim → column of runs.csv.
RUN_METRICS = {
    "device_read": "N_dev_rd_per_client_byte",
    "device_data_write": "N_dev_data_wr_per_client_byte",
    "device_write": "N_dev_wr_per_client_byte",
    "private_net": "N_cl_net_per_client_byte",
}
# Optional metrics of processors.
CPU_METRICS = {
    "cpu_us_per_op": "N_cpu_us_per_op",
    "context_switches_per_op": "N_ctx_per_op",
}
REPAIR_METRICS = {
    "device_read": "rd_per_lost",
    "private_net": "cl_per_lost",
    "device_write": "wr_per_lost",
}
DEGRADED_METRICS = {"device_read": "dev_rd_x", "private_net": "cl_x"}

PASS_METRIC = "first_over_second"

RUN_COLUMNS = (
    "run_id",
    "scheme",
    "k",
    "m",
    "stripe_unit_bytes",
    "op",
    "pattern",
    "bs",
    "qd",
    "image_mb",
    *RUN_METRICS.values(),
)
_PASS_COLUMNS = (
    "scheme",
    "k",
    "m",
    "stripe_unit_bytes",
    "features",
    "qd",
    "bs",
    "image_mb",
    "first_iops",
    "second_iops",
)
_REPAIR_COLUMNS = (
    "scheme",
    "k",
    "m",
    "stripe_unit_bytes",
    "how",
    "image_mb",
    "dead_osd",
    *REPAIR_METRICS.values(),
)
DEGRADED_COLUMNS = (
    "scheme",
    "k",
    "m",
    "stripe_unit_bytes",
    "bs",
    "pattern",
    "ops",
    "image_mb",
    "qd",
    "dead_osd",
    *DEGRADED_METRICS.values(),
)
# Moment of a repair → optional column.
REPAIR_TIMES = {
    "down": "t_marked_down",
    "out": "t_marked_out",
    "clean": "t_clean",
    "restarted": "t_restarted",
    "up": "t_up_again",
    "clean_again": "t_clean_after_backfill",
}
STRIPE_UNIT_BYTES = 4096
MIB = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Coded:
    """The scheme of a row, with its stripe unit."""

    scheme: str  # As the file calls it.
    # Data and parity chunks. Replication has k = 1 and m + 1 replicas.
    k: int
    m: int
    stripe_unit_bytes: (
        int  # Chunk of one stripe on one shard [B], unused under replication.
    )
    locality: int = 0  # Of Ceph's lrc plug-in, 0 for any other code.

    @property
    def name(self) -> str:
        """The scheme as stripesim writes it."""
        if self.locality:
            return f"lrc-ceph:{self.k},{self.m},{self.locality}"
        return f"rep:{self.m + 1}" if self.k == 1 else f"rs:{self.k},{self.m}"


@dataclass(frozen=True, kw_only=True)
class MeasuredRun:
    """A run of the load generator."""

    where: str  # File and line.
    run_id: str
    coded: Coded
    # ``write`` (pristine image), ``overwrite`` or ``read`` (prefilled).
    op: str
    pattern: str
    block_bytes: int
    queue_depth: int
    image_bytes: int
    features: str  # Of the image, where ``default`` includes an object map.
    requests: Requests  # With the exact offsets of the run.
    # Metric → bytes per client byte, or processor time [µs] and context switches per request of all OSDs,
    # minus their idle rate.
    measured: dict[str, float]
    iops: float | None = None  # Requests per second of the load generator.


@dataclass(frozen=True, kw_only=True)
class MeasuredRepair:
    """One OSD lost and rebuilt. `measured` is per byte lost.

    `times_s` holds moments in seconds from the failure and may be empty.
    """

    where: str
    coded: Coded
    how: str
    image_bytes: int
    dead_osd: int
    measured: dict[str, float]
    times_s: dict[str, float] = field(default_factory=dict)
    down_out_interval_s: float | None = None
    # Deleted objects in the log of each placement group, from images of earlier runs: the OSDs counted more
    # recovery operations than objects to push.
    log_deletions_count: int = 0


@dataclass(frozen=True, kw_only=True)
class MeasuredDegraded:
    """Reads while one OSD is down. `measured` is per client byte. The offsets were not recorded."""

    where: str
    coded: Coded
    block_bytes: int
    pattern: str
    ops: int
    image_bytes: int
    queue_depth: int
    dead_osd: int
    measured: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class MeasuredPasses:
    """The same writes twice in succession: on a fresh image, then on the image that they left."""

    where: str
    coded: Coded
    features: str  # As in `MeasuredRun`.
    block_bytes: int
    queue_depth: int
    image_bytes: int
    requests: Requests  # With the exact offsets of both passes.
    measured: dict[str, float]
    runs_count: int = 1  # Runs on fresh images, whose median is `measured`.

    @property
    def cell(self) -> tuple[str, str, int, int, int]:
        """Properties that the runs of one cell have in common."""
        return (
            self.coded.name,
            self.features,
            self.queue_depth,
            self.block_bytes,
            self.image_bytes,
        )


@dataclass(frozen=True)
class MeasuredCounts:
    """All measurements of a folder."""

    runs: tuple[MeasuredRun, ...]
    repairs: tuple[MeasuredRepair, ...]
    degraded: tuple[MeasuredDegraded, ...]
    passes: tuple[MeasuredPasses, ...] = ()

    @property
    def rows_count(self) -> int:
        """Rows to simulate."""
        parts = (self.runs, self.repairs, self.degraded, self.passes)
        return sum(map(len, parts))


def shipped() -> Source:
    """Return the folder that ships with the package."""
    return study_folder("ceph16") / "data"


def load(data: Source | str | None = None) -> MeasuredCounts:
    """Read a folder of measured counts. The shipped one, which never changes, is read once."""
    if data is None:
        return _shipped_counts()
    return _counts_in(Path(data) if isinstance(data, str) else data)


@cache
def _shipped_counts() -> MeasuredCounts:
    return _counts_in(shipped())


def _counts_in(folder: Source) -> MeasuredCounts:
    if not folder.is_dir():
        raise MeasuredError(
            Problem(place="--data", got=str(folder), wanted="a folder with runs.csv")
        )
    problems: list[Problem] = []
    runs = tuple(
        _run(folder, row, problems)
        for row in read_rows(folder / "runs.csv", RUN_COLUMNS, problems)
    )
    repairs: tuple[MeasuredRepair, ...] = ()
    if (folder / "repair.csv").is_file():
        rows = read_rows(folder / "repair.csv", _REPAIR_COLUMNS, problems)
        repairs = tuple(_repair(row) for row in rows)
    degraded: tuple[MeasuredDegraded, ...] = ()
    if (folder / "degraded.csv").is_file():
        rows = read_rows(folder / "degraded.csv", DEGRADED_COLUMNS, problems)
        degraded = tuple(degraded_of(row, coded_of(row)) for row in rows)
    passes: tuple[MeasuredPasses, ...] = ()
    if (folder / "passes.csv").is_file():
        requests = read_iolog(folder / "iolog" / "passes.log.gz", True, problems)
        rows = read_rows(folder / "passes.csv", _PASS_COLUMNS, problems)
        passes = _merged([_passes(row, requests) for row in rows])
    problems += repeated(runs)
    if problems:
        raise MeasuredError(*problems)
    return MeasuredCounts(runs, repairs, degraded, passes)


def repeated(runs: Iterable[MeasuredRun]) -> list[Problem]:
    """Return a problem for each run whose name an earlier one has."""
    seen: set[str] = set()
    problems = []
    for run in runs:
        if run.run_id in seen:
            problems.append(
                Problem(
                    place=run.where,
                    key="run_id",
                    got=f"{run.run_id!r} a second time",
                    wanted="each once",
                )
            )
        seen.add(run.run_id)
    return problems


def coded_of(row: CsvRow) -> Coded:
    """Read the scheme of a row."""
    unit = row.whole("stripe_unit_bytes", 1, STRIPE_UNIT_BYTES)
    k = row.whole("k", 1)
    m = row.whole("m", 1)
    if k > 1 and unit % 512:
        row.refuse("stripe_unit_bytes", "a multiple of 512")
    return Coded(scheme=row.text("scheme"), k=k, m=m, stripe_unit_bytes=unit)


def metrics_of(row: CsvRow, columns: dict[str, str]) -> dict[str, float]:
    """Read the measured values of a row."""
    numbers = {metric: row.number(column) for metric, column in columns.items()}
    return {metric: value for metric, value in numbers.items() if value is not None}


def _run(folder: Source, row: CsvRow, problems: list[Problem]) -> MeasuredRun:
    iolog = folder / "iolog" / f"{row.words('run_id')}.log.gz"
    requests = read_iolog(iolog, row.words("op") != "read", problems)
    return run_of(row, coded_of(row), requests)


def run_of(row: CsvRow, coded: Coded, requests: Requests) -> MeasuredRun:
    """Read a run, given its scheme and its requests."""
    return MeasuredRun(
        where=row.where,
        run_id=row.text("run_id"),
        coded=coded,
        op=row.text("op", ("write", "overwrite", "read")),
        pattern=row.text("pattern", ("seq", "rand")),
        block_bytes=row.whole("bs", 1),
        queue_depth=row.whole("qd", 1),
        image_bytes=row.whole("image_mb", 1) * MIB,
        features=row.cells.get("features", "") or "layering",
        requests=requests,
        measured=metrics_of(row, {**RUN_METRICS, **CPU_METRICS}),
        iops=row.number("iops"),
    )


def _repair(row: CsvRow) -> MeasuredRepair:
    return MeasuredRepair(
        where=row.where,
        coded=coded_of(row),
        how=row.text("how"),
        image_bytes=row.whole("image_mb", 1) * MIB,
        dead_osd=row.whole("dead_osd", 0),
        measured=metrics_of(row, REPAIR_METRICS),
        times_s=metrics_of(row, REPAIR_TIMES),
        down_out_interval_s=row.number("down_out_interval_s"),
        log_deletions_count=_deletions(row),
    )


def _deletions(row: CsvRow) -> int:
    names = ("recovery_ops", "push", "shard_objects_on_dead", "pgs_on_dead")
    operations, pushes, objects, groups = (row.number(name) or 0.0 for name in names)
    return round(max(0.0, operations - max(pushes, objects)) / groups) if groups else 0


def degraded_of(row: CsvRow, coded: Coded) -> MeasuredDegraded:
    """Read degraded reads, given their scheme."""
    return MeasuredDegraded(
        where=row.where,
        coded=coded,
        block_bytes=row.whole("bs", 1),
        pattern=row.text("pattern", ("seq", "rand")),
        ops=row.whole("ops", 1),
        image_bytes=row.whole("image_mb", 1) * MIB,
        queue_depth=row.whole("qd", 1),
        dead_osd=row.whole("dead_osd", 0),
        measured=metrics_of(row, DEGRADED_METRICS),
    )


def _passes(row: CsvRow, requests: Requests) -> MeasuredPasses:
    first_iops = row.number("first_iops") or 0.0
    second_iops = row.number("second_iops") or 0.0
    if not second_iops:
        row.refuse("second_iops", "a number above 0")
    return MeasuredPasses(
        where=row.where,
        coded=coded_of(row),
        features=row.text("features", ("layering", "default")),
        block_bytes=row.whole("bs", 1),
        queue_depth=row.whole("qd", 1),
        image_bytes=row.whole("image_mb", 1) * MIB,
        requests=requests,
        measured={PASS_METRIC: first_iops / second_iops if second_iops else 0.0},
    )


def _merged(runs: list[MeasuredPasses]) -> tuple[MeasuredPasses, ...]:
    """Return one entry for each cell, with the median of its runs, in the order of their first rows."""
    by_cell: dict[tuple[object, ...], list[MeasuredPasses]] = {}
    for run in runs:
        by_cell.setdefault(run.cell, []).append(run)
    return tuple(
        replace(
            same[0],
            measured={PASS_METRIC: median(run.measured[PASS_METRIC] for run in same)},
            runs_count=len(same),
        )
        for same in by_cell.values()
    )


def read_iolog(source: Source, is_write: bool, problems: list[Problem]) -> Requests:
    """Read the requests of a log that fio wrote (version 3: time, file, action, offset, length)."""
    try:
        lines = gzip.decompress(source.read_bytes()).decode("ascii").splitlines()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        wanted = "a fio log in gzip"
        problems.append(
            Problem(place=str(source), got=file_reason(error), wanted=wanted)
        )
        return _requests([], is_write)
    wanted = "write" if is_write else "read"
    extents: list[tuple[int, int]] = []
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if len(fields) < 5 or fields[2] not in ("read", "write"):
            # The header, and the file's opening and closing.
            continue
        offset, length = (int(word) if word.isdecimal() else -1 for word in fields[3:5])
        if fields[2] != wanted or offset < 0 or length < 1:
            problems.append(
                Problem(
                    place=f"{source.name}:{number}",
                    got=repr(line),
                    wanted=f"a {wanted} at an offset with a length",
                )
            )
            continue
        extents.append((offset, length))
    if not extents:
        problems.append(
            Problem(place=source.name, got=f"no {wanted}", wanted="at least one")
        )
    return _requests(extents, is_write)


def _requests(extents: list[tuple[int, int]], is_write: bool) -> Requests:
    table = np.array(extents, dtype=np.int64).reshape(-1, 2)
    return Requests(
        is_write=np.full(len(table), is_write),
        images=np.zeros(len(table), dtype=np.int64),
        offsets_bytes=table[:, 0],
        lengths_bytes=table[:, 1],
    )

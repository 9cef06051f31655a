"""Read measured changes from ``change.csv``."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stripesim.calibration.ledger.verdicts import Claim
from stripesim.calibration.measured.tables import CsvRow, no_rows, read_rows
from stripesim.models.problems import MeasuredError, Problem

#: Metric of a claim → column of ``change.csv``, and tolerance. Counts are exact: less than one shard.
METRICS: Mapping[str, tuple[str, float]] = {
    "shards_moved": ("shards_moved", 0.001),
    "device_read": ("rd_per_moved", 0.1),
    "device_write": ("wr_per_moved", 0.1),
    "private_net": ("cl_per_moved", 0.1),
}
KINDS = ("drain", "return", "shrink", "grow")
_NAMES = ("scheme", "kind", "k", "m", "pool", "pgs", "objects")
_COLUMNS = (*_NAMES, *(column for column, _ in METRICS.values()))


@dataclass(frozen=True, kw_only=True)
class MeasuredPool:
    """A pool of the measured cluster."""

    scheme: str  #: Scheme as stripesim writes it
    pool_id: int
    pg_num: int
    objects: int  #: Objects of its image [count]


@dataclass(frozen=True, kw_only=True)
class MeasuredChange:
    """One row: a pool, a kind of change, and its metrics."""

    where: str  #: File and line
    pool: MeasuredPool
    kind: str
    measured: Mapping[str, float]


def has_changes(folder: Path) -> bool:
    """Return True if a folder has a file of changes."""
    return any(
        (folder / name).is_file() for name in ("change.csv", "change/change.csv")
    )


def load_changes(folder: Path) -> tuple[MeasuredChange, ...]:
    """Read the changes of a folder, from ``change.csv`` or ``change/change.csv``.

    Raises
    ------
    MeasuredError
        If the file is missing or a cell is wrong, with a line for each fault.
    """
    file = folder / "change.csv"
    if not file.is_file():
        file = folder / "change" / "change.csv"
    if not has_changes(folder):
        wanted = "a folder with change.csv or timed.csv"
        raise MeasuredError(Problem(place="--data", got=str(folder), wanted=wanted))
    problems: list[Problem] = []
    changes = tuple(_change(row) for row in read_rows(file, _COLUMNS, problems))
    if not (changes or problems):
        problems.append(no_rows(file))
    if problems:
        raise MeasuredError(*problems)
    return changes


def _change(row: CsvRow) -> MeasuredChange:
    k = row.whole("k", 1)
    m = row.whole("m", 1)
    pool = MeasuredPool(
        scheme=f"rep:{m + 1}" if k == 1 else f"rs:{k},{m}",
        pool_id=row.whole("pool", 0),
        pg_num=row.whole("pgs", 1),
        objects=row.whole("objects", 1),
    )
    numbers = {metric: row.number(column) for metric, (column, _) in METRICS.items()}
    known = {metric: value for metric, value in numbers.items() if value is not None}
    return MeasuredChange(
        where=row.where, pool=pool, kind=row.text("kind", KINDS), measured=known
    )


def claims_of_changes(changes: tuple[MeasuredChange, ...]) -> tuple[Claim, ...]:
    """Return the claims of a folder's changes, all held out."""
    return tuple(
        _claim(change, metric, value)
        for change in changes
        for metric, value in change.measured.items()
    )


def _claim(change: MeasuredChange, metric: str, value: float) -> Claim:
    _, tolerance = METRICS[metric]
    scheme = change.pool.scheme
    return Claim(
        id=f"change:{scheme}:{change.kind}:{metric}",
        paper="ceph16",
        locus=change.where,
        metric=metric,
        scheme=scheme,
        baseline=change.kind,
        pattern="",
        op="change",
        block_size="",
        published=value,
        published_text=f"{value:g}",
        unit="count" if metric == "shards_moved" else "B/B",
        kind="exact",
        role="held-out",
        compare="value",
        tolerance=tolerance,
        note="",
        statement=f"{metric.replace('_', ' ')} of change {change.kind}: {scheme}",
    )

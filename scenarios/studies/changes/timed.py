"""Read how long planned changes of a real Ceph 20.2.4 took, from ``timed.csv``.

Each row is one change: from the map of its first command until the last placement group was clean, as the
logs of the OSDs state it. Repeats of a change make one claim, of their mean.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Final, Literal

from stripesim.calibration.ledger.verdicts import Claim
from stripesim.calibration.measured.tables import CsvRow, Source, read_rows
from stripesim.models.problems import MeasuredError, Problem
from stripesim.scenarios.studies.changes.measured import KINDS
from stripesim.scenarios.studies.description import study_folder

FILE: Final = "timed.csv"
#: Tolerance of a time until clean.
TIME_TOLERANCE: Final = 0.3
#: Changes whose time lines were read before roles were fixed.
_READ: Final = frozenset(
    {
        ("rep:3", "whole", "balanced", "drain"),
        ("rep:3", "whole", "balanced", "return"),
        ("rep:3", "whole", "balanced", "shrink"),
        ("rep:3", "trimmed", "balanced", "drain"),
        ("rep:3", "trimmed", "high_recovery_ops", "drain"),
        ("rs:6,3", "whole", "balanced", "drain"),
        ("rs:6,3", "trimmed", "high_recovery_ops", "drain"),
        ("rs:6,3", "trimmed", "high_recovery_ops", "shrink"),
    }
)
_COLUMNS: Final = (
    "release",
    "scheme",
    "pool_kind",
    "pool",
    "kind",
    "log",
    "profile",
    "maps_s",
    "rebalance_s",
    "clean_s",
    "group_objects",
)

Key = tuple[str, str, str, str]


@dataclass(frozen=True, kw_only=True)
class TimedChange:
    """One change."""

    where: str  #: File and line
    release: str
    scheme: str
    is_optimised: bool
    pool_id: int
    kind: str
    #: ``whole``: logs hold all writes, so that groups recover by them. ``trimmed``: groups are backfilled
    log: str
    profile: Literal["high_client_ops", "balanced", "high_recovery_ops"]
    maps_s: tuple[float, ...]  #: Maps of the commands, from the first [s]
    rebalance_s: float | None  #: End of the flag ``norebalance`` [s], None without
    clean_s: float  #: Time until clean [s]
    group_objects: tuple[int, ...]  #: Objects of each placement group

    @property
    def key(self) -> Key:
        """What repeats share."""
        return (self.scheme, self.log, self.profile, self.kind)


def load_timed(folder: Path | None = None) -> tuple[TimedChange, ...]:
    """Read the shipped changes, or those in ``timed.csv`` of a folder; none if it has no such file.

    Raises
    ------
    MeasuredError
        If a cell is wrong, with a line for each fault.
    """
    source: Source = study_folder("changes") / "data" / FILE
    if folder is not None:
        source = folder / FILE
        if not source.is_file():
            return ()
    problems: list[Problem] = []
    changes = tuple(_change(row) for row in read_rows(source, _COLUMNS, problems))
    if problems:
        raise MeasuredError(*problems)
    return changes


def _change(row: CsvRow) -> TimedChange:
    return TimedChange(
        where=row.where,
        release=row.text("release"),
        scheme=row.text("scheme"),
        is_optimised=row.text("pool_kind", ("replicated", "optimised")) == "optimised",
        pool_id=row.whole("pool", 0),
        kind=row.text("kind", KINDS),
        log=row.text("log", ("whole", "trimmed")),
        profile=row.text("profile"),  # type: ignore[arg-type]
        maps_s=tuple(float(time) for time in row.text("maps_s").split(";")),
        rebalance_s=row.number("rebalance_s"),
        clean_s=row.number("clean_s") or 0.0,
        group_objects=tuple(
            int(count) for count in row.text("group_objects").split(";")
        ),
    )


def by_key(changes: Sequence[TimedChange]) -> Mapping[Key, list[TimedChange]]:
    """Return the repeats of each change."""
    repeats: dict[Key, list[TimedChange]] = {}
    for change in changes:
        repeats.setdefault(change.key, []).append(change)
    return repeats


def claim_id(key: Key) -> str:
    """Return the id of the claim of a change."""
    return f"timed20:{':'.join(key)}"


def claims_of_times(
    changes: Sequence[TimedChange], *, read: Collection[Key] = _READ
) -> list[Claim]:
    """Return a claim for each change: the mean of its repeats. Those that were `read` calibrate."""
    return [
        _claim(key, repeats, "calibration" if key in read else "held-out")
        for key, repeats in by_key(changes).items()
    ]


def _claim(key: Key, repeats: Sequence[TimedChange], role: str) -> Claim:
    times_s = [change.clean_s for change in repeats]
    value = mean(times_s)
    note = "measured once"
    if len(times_s) > 1:
        note = (
            f"measured {len(times_s)} times: {min(times_s):.2f} to {max(times_s):.2f} s"
        )
    scheme, log, profile, kind = key
    return Claim(
        id=claim_id(key),
        paper="ceph20",
        locus=f"{FILE}, {repeats[0].where.rpartition('/')[2]}",
        metric="time_until_clean_s",
        scheme=scheme,
        baseline=kind,
        pattern="",
        op="timed change",
        block_size="",
        published=value,
        published_text=f"{value:.2f}",
        unit="s",
        kind="exact",
        role=role,
        compare="value",
        tolerance=TIME_TOLERANCE,
        note=note,
        statement=f"time until clean of change {kind}: {scheme}, logs {log}, {profile}",
    )

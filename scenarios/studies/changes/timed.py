"""Read how long planned changes of a real Ceph took, from ``timed.csv``.

Each row is one change: from the map of its first command until the last placement group was clean, as the
logs of the OSDs state it. Repeats of a change make one claim, of their mean. Changes of another release or
session, such as on another machine, are other changes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Final, Literal, NamedTuple

from stripesim.calibration.ledger.verdicts import Claim
from stripesim.calibration.measured.tables import CsvRow, Source, no_rows, read_rows
from stripesim.models.coding import parse_scheme
from stripesim.models.problems import MeasuredError, Problem
from stripesim.models.qos import Profile
from stripesim.scenarios.studies.changes.measured import KINDS
from stripesim.scenarios.studies.description import study_folder

FILE: Final = "timed.csv"
#: Tolerance of a time until clean.
TIME_TOLERANCE: Final = 0.3
#: Tolerance of the clients' mean latency during a change over that before it.
LATENCY_TOLERANCE: Final = 0.3
#: Size of the writes of a load during a change [B].
LOAD_BLOCK_BYTES: Final = 4096
#: Size of the image under a load [B]. RBD's own object `rbd_info` is in its pool, too.
LOAD_IMAGE_BYTES: Final = 1 << 30
#: Time before the first map whose latencies are those before a change [s].
BEFORE_S: Final = 10
#: End of the id of a claim on the clients' latency.
LATENCY_SUFFIX: Final = ":latency"
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
#: Releases whose changes can be simulated, and those among them that have mClock's profiles.
_RELEASES: Final = ("14.2.21", "16.2.15", "18.2.7", "20.2.4")
_WITH_PROFILES: Final = ("18.2.7", "20.2.4")
_PROFILES: Final = ("wpq", "high_client_ops", "balanced", "high_recovery_ops")
_SESSION: Final = "1"
_STRIPE_UNITS_BYTES: Final = {"replicated": 4096, "classic": 4096, "optimised": 16_384}


class Key(NamedTuple):
    """Properties that repeats of a change share."""

    scheme: str
    log: str
    profile: str
    kind: str
    release: str = "20.2.4"
    session: str = _SESSION


#: Changes whose time lines were read before roles were fixed. All others, and all of later sessions, are held
#: out: their times were not compared before roles and tolerance were fixed.
_READ: Final = frozenset(
    {
        Key("rep:3", "whole", "balanced", "drain"),
        Key("rep:3", "whole", "balanced", "return"),
        Key("rep:3", "whole", "balanced", "shrink"),
        Key("rep:3", "trimmed", "balanced", "drain"),
        Key("rep:3", "trimmed", "high_recovery_ops", "drain"),
        Key("rs:6,3", "whole", "balanced", "drain"),
        Key("rs:6,3", "trimmed", "high_recovery_ops", "drain"),
        Key("rs:6,3", "trimmed", "high_recovery_ops", "shrink"),
    }
)


@dataclass(frozen=True, kw_only=True)
class LoadBeside:
    """A client that writes 4 KiB at random offsets of the image before, during and after a change."""

    rate_per_s: float  #: Mean rate of its Poisson arrivals [1/s]
    image_prefix: str  #: Prefix of the names of the image's objects
    #: Writes that each object has had before the change, on average: entries of the logs
    object_writes_count: int
    before_ms: float  #: Mean latency in the 10 s before the first map [ms]
    during_ms: float  #: Mean latency from the first map until clean [ms]

    @property
    def latency_ratio(self) -> float:
        """Mean latency during the change over that before."""
        return self.during_ms / self.before_ms


@dataclass(frozen=True, kw_only=True)
class TimedChange:
    """One change."""

    where: str  #: File and line
    release: str
    scheme: str
    is_optimised: bool
    stripe_unit_bytes: int
    pool_id: int
    kind: str
    #: ``whole``: logs hold all writes, so that groups recover by them. ``trimmed``: groups are backfilled,
    #: except those of so few objects that a log holds their writes
    log: str
    #: ``wpq``, or mClock's profile
    profile: Literal["wpq"] | Profile
    maps_s: tuple[float, ...]  #: Maps of the commands, from the first [s]
    rebalance_s: float | None  #: End of the flag ``norebalance`` [s], None without
    clean_s: float  #: Time until clean [s]
    group_objects: tuple[int, ...]  #: Objects of each placement group
    session: str  #: Changes measured one after another on one machine
    #: Mean sync of the log, counted in that session before the changes [ms], None without
    recovery_sync_ms: float | None
    #: Entries that a trimmed log held before the change, as ``ceph pg dump`` lists them. None if not noted:
    #: all groups are then taken to be backfilled
    log_entries_count: int | None = None
    load: LoadBeside | None = None  #: Clients during the change, None without

    @property
    def key(self) -> Key:
        """Properties that repeats share."""
        return Key(
            self.scheme,
            self.log,
            self.profile,
            self.kind,
            self.release,
            self.session,
        )


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
    if not (changes or problems):
        problems.append(no_rows(source))
    if problems:
        raise MeasuredError(*problems)
    return changes


def _change(row: CsvRow) -> TimedChange:
    scheme = row.text("scheme")
    pool_kind = row.text("pool_kind", ("replicated", "optimised", "classic"))
    release = row.text("release", _RELEASES)
    if release in _RELEASES:
        _check_release(row, release, scheme, pool_kind)
    return TimedChange(
        where=row.where,
        release=release,
        scheme=scheme,
        is_optimised=pool_kind == "optimised",
        stripe_unit_bytes=_STRIPE_UNITS_BYTES.get(pool_kind, 0),
        pool_id=row.whole("pool", 0),
        kind=row.text("kind", KINDS),
        log=row.text("log", ("whole", "trimmed")),
        profile=row.text("profile", _PROFILES),  # type: ignore[arg-type]
        maps_s=_times_s(row, "maps_s"),
        rebalance_s=row.number("rebalance_s"),
        clean_s=_positive(row, "clean_s") or 0.0,
        group_objects=_counts(row, "group_objects"),
        session=row.words("session") or _SESSION,
        recovery_sync_ms=_positive(row, "recovery_sync_ms", required=False),
        log_entries_count=row.whole("log_entries", 1, default=0) or None,
        load=_load(row),
    )


def _load(row: CsvRow) -> LoadBeside | None:
    """Return the load during a change, None if the row states no rate."""
    rate_per_s = _positive(row, "load_per_s", required=False)
    if rate_per_s is None:
        return None
    return LoadBeside(
        rate_per_s=rate_per_s,
        image_prefix=row.text("image"),
        object_writes_count=row.whole("object_writes", 1),
        before_ms=_positive(row, "before_ms") or 1.0,
        during_ms=_positive(row, "during_ms") or 1.0,
    )


def _check_release(row: CsvRow, release: str, scheme: str, pool_kind: str) -> None:
    """Record what a release has not, and schemes and kinds of pools that contradict each other."""
    try:
        is_replicated = parse_scheme(scheme).kind == "replicated"
    except ValueError:
        row.refuse("scheme", "a scheme such as rep:3 or rs:6,3")
        return
    if is_replicated != (pool_kind == "replicated"):
        row.refuse("pool_kind", f"the kind of a pool of {scheme}")
    if release != "20.2.4" and pool_kind == "optimised":
        row.refuse("pool_kind", f"replicated or classic with {release}")
    if release not in _WITH_PROFILES and row.words("profile") in _PROFILES[1:]:
        row.refuse("profile", f"wpq with {release}")


def _positive(row: CsvRow, column: str, *, required: bool = True) -> float | None:
    """Return a number above 0; without `required`, None for an empty cell."""
    value = row.positive(column)
    if required and not row.words(column):
        row.refuse(column, "a number above 0")
    return value


def _times_s(row: CsvRow, column: str) -> tuple[float, ...]:
    """Return times of maps [s], ascending from 0."""
    try:
        times_s = tuple(float(text) for text in row.words(column).split(";"))
    except ValueError:
        times_s = ()
    is_ascending = all(map(math.isfinite, times_s)) and list(times_s) == sorted(times_s)
    if not times_s or times_s[0] != 0 or not is_ascending:
        row.refuse(
            column, "times from the first map, ascending from 0, such as 0.00;1.03"
        )
        return (0.0,)
    return times_s


def _counts(row: CsvRow, column: str) -> tuple[int, ...]:
    """Return the number of objects of each placement group."""
    texts = row.words(column).split(";")
    if not all(text.strip().isdecimal() for text in texts):
        row.refuse(column, "a number for each placement group, such as 6;8;9;3")
        return (0,)
    return tuple(map(int, texts))


def by_key(changes: Sequence[TimedChange]) -> Mapping[Key, list[TimedChange]]:
    """Return the repeats of each change."""
    repeats: dict[Key, list[TimedChange]] = {}
    for change in changes:
        repeats.setdefault(change.key, []).append(change)
    return repeats


def claim_id(key: Key) -> str:
    """Return the id of the claim of a change."""
    major = key.release.partition(".")[0]
    parts = [f"timed{major}", key.scheme, key.log, key.profile, key.kind]
    if key.session != _SESSION:
        parts.append(key.session)
    return ":".join(parts)


def claims_of_times(
    changes: Sequence[TimedChange], *, read: Collection[Key] = _READ
) -> list[Claim]:
    """Return the claims of changes, each of the mean of its repeats. Those of `read` changes calibrate.

    A change has a claim of its time, and under a load another of the clients' latency.
    """
    claims = []
    for key, repeats in by_key(changes).items():
        role = "calibration" if key in read else "held-out"
        times_s = [change.clean_s for change in repeats]
        timed = _claim(key, repeats, role, times_s, "s")
        claims.append(timed)
        ratios = [change.load.latency_ratio for change in repeats if change.load]
        if ratios:
            compared = _claim(key, repeats, role, ratios, "1")
            claims.append(
                replace(
                    compared,
                    id=f"{claim_id(key)}{LATENCY_SUFFIX}",
                    metric="latency_ratio",
                    op="client writes beside a timed change",
                    tolerance=LATENCY_TOLERANCE,
                    statement=f"clients' mean latency during over before {_described(key)}",
                )
            )
    return claims


def _claim(
    key: Key, repeats: Sequence[TimedChange], role: str, values: list[float], unit: str
) -> Claim:
    """Return the claim of the mean of some values, as one of a time until clean."""
    note = "measured once"
    if len(values) > 1:
        low, high = min(values), max(values)
        note = f"measured {len(values)} times: {low:.2f} to {high:.2f} {unit}"
    return Claim(
        id=claim_id(key),
        paper=f"ceph{key.release.partition('.')[0]}",
        locus=f"{FILE}, {repeats[0].where.rpartition('/')[2]}",
        metric="time_until_clean_s",
        scheme=key.scheme,
        baseline=key.kind,
        pattern="",
        op="timed change",
        block_size="",
        published=mean(values),
        published_text=f"{mean(values):.2f}",
        unit=unit,
        kind="exact",
        role=role,
        compare="value",
        tolerance=TIME_TOLERANCE,
        note=note,
        statement=f"time until clean of {_described(key)}",
    )


def _described(key: Key) -> str:
    return f"change {key.kind}: {key.scheme}, logs {key.log}, {key.profile}"

"""Rows of counters of a real RADOS gateway: operations and bytes of one S3 request.

Each row is the mean of equal requests, one at a time, on the cluster of study `releases`: 16 OSDs on one
machine. The background of an idle gateway is subtracted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

from stripesim.calibration.ledger.verdicts import Claim
from stripesim.calibration.measured.tables import CsvRow, read_rows
from stripesim.models.coding import parse_scheme
from stripesim.models.problems import MeasuredError, Problem, SchemeError
from stripesim.scenarios.schema.types import S3_OPS
from stripesim.scenarios.studies.ceph16.cluster import crush_map
from stripesim.scenarios.studies.description import study_folder
from stripesim.scenarios.studies.releases.measured import GENERATIONS

FILE: Final = "rgw.csv"
#: What a row counts for each request, by its column, with its unit.
QUANTITIES: Final[Mapping[str, str]] = {
    "operations": "1",
    "transactions": "1",
    "device_read": "B",
    "device_write": "B",
    "device_data_write": "B",
    "private_net": "B",
    "osd_net": "B",
}
#: Tolerance of all of them.
COUNT_TOLERANCE: Final = 0.05
#: Smallest values that make a claim, because the background of the daemons varies by as much [count, B].
COUNT_MIN: Final = 0.5
BYTES_MIN: Final = 2048
POOLS: Final = ("replicated", "classic", "optimised")
_NAMES: Final = (
    "id",
    "release",
    "scheme",
    "pool",
    "stripe_unit_bytes",
    "op",
    "size",
    "requests",
)


@dataclass(frozen=True, kw_only=True)
class CountedRow:
    """Counts of one kind of request."""

    id: str
    release: str  #: Version of Ceph
    scheme: str
    pool: str  #: ``replicated``, ``classic`` or ``optimised``
    stripe_unit_bytes: int
    op: str
    size: (
        int  #: Size of the object [B], or of a LIST, the objects of its bucket [count]
    )
    requests: int  #: Requests measured
    counted: Mapping[str, float]  #: Value by quantity, per request

    @property
    def object_bytes(self) -> int:
        """Size of the object, of a small one for a LIST [B]."""
        return 4096 if self.op == "list" else self.size

    @property
    def keys(self) -> int:
        """Objects in the bucket that a LIST reads [count]."""
        return self.size if self.op == "list" else 1

    @property
    def role(self) -> Literal["calibration", "held-out"]:
        """Role of the row.

        Before any row was simulated, all 3-replication was calibration and all erasure coding held out. The
        rows of RS(6,3) in an optimised pool were then used to choose mechanisms of coded pools, so that they
        count as calibration, too. No number was taken from rows that do not ship.
        """
        is_replicated = self.scheme.startswith("rep:")
        was_used = self.scheme == "rs:6,3" and self.pool == "optimised"
        if (is_replicated or was_used) and self.id in _shipped_ids():
            return "calibration"
        return "held-out"

    def claims(self) -> list[Claim]:
        """Return a claim for each quantity above the noise."""
        return [
            self._claim(name, value)
            for name, value in self.counted.items()
            if value >= (COUNT_MIN if QUANTITIES[name] == "1" else BYTES_MIN)
        ]

    def _claim(self, name: str, value: float) -> Claim:
        size = f"{self.size} objects" if self.op == "list" else f"{self.size} B"
        return Claim(
            id=f"{self.id}:{name}",
            paper="s3",
            locus=f"{FILE}, {self.id}",
            metric=name,
            scheme=self.scheme,
            baseline="",
            pattern="",
            op=self.op,
            block_size=str(self.size),
            published=value,
            published_text=f"{value:g}",
            unit=QUANTITIES[name],
            kind="exact",
            role=self.role,
            compare="value",
            tolerance=COUNT_TOLERANCE,
            note=f"mean of {self.requests} requests",
            statement=f"{name.replace('_', ' ')} of a {self.op} of {size}: {self.scheme}, {self.pool} pool, "
            f"Ceph {self.release}",
        )


@cache
def _shipped_ids() -> frozenset[str]:
    """Return the ids of the rows that ship."""
    lines = read_rows(study_folder("s3") / "data" / FILE, _NAMES, [])
    return frozenset(line.words("id") for line in lines)


def load_counts(data: Path | str | None = None) -> tuple[CountedRow, ...]:
    """Return the rows of a folder with an ``rgw.csv``, none without one; by default those that ship.

    Raises
    ------
    MeasuredError
        If cells are wrong, with one line for each.
    """
    folder = study_folder("s3") / "data" if data is None else Path(data)
    file = folder / FILE
    if not file.is_file():
        return ()
    problems: list[Problem] = []
    lines = read_rows(file, _NAMES, problems)
    rows = tuple(_row(line) for line in lines)
    for line in _repeated(lines):
        line.refuse("id", "each id once")
    if problems:
        raise MeasuredError(*problems)
    return rows


def _repeated(lines: Iterable[CsvRow]) -> Iterator[CsvRow]:
    """Yield the lines whose id an earlier one has."""
    ids = set()
    for line in lines:
        if line.words("id") in ids:
            yield line
        ids.add(line.words("id"))


def _row(row: CsvRow) -> CountedRow:
    numbers = {name: row.number(name) for name in QUANTITIES}
    if not any(row.words(name) for name in QUANTITIES):
        row.refuse(
            next(iter(QUANTITIES)), f"a number in one of {', '.join(QUANTITIES)}"
        )
    _check_pool(row)
    return CountedRow(
        id=row.text("id"),
        release=row.text("release"),
        scheme=row.text("scheme"),
        pool=row.text("pool", POOLS),
        stripe_unit_bytes=row.whole("stripe_unit_bytes", 1),
        op=row.text("op", S3_OPS),
        size=row.whole("size", 1),
        requests=row.whole("requests", 1),
        counted={name: value for name, value in numbers.items() if value is not None},
    )


def _check_pool(row: CsvRow) -> None:
    """Refuse schemes, releases and pools that the machine of study `releases` does not have."""
    pool = row.words("pool")
    major = row.words("release").partition(".")[0]
    if major not in GENERATIONS:
        row.refuse(
            "release", f"a version of Ceph {', '.join(GENERATIONS)}, such as 20.2.4"
        )
    elif pool == "optimised" and GENERATIONS[major] != "tentacle":
        row.refuse("pool", "classic: optimised pools came with 20")
    try:
        scheme = parse_scheme(row.words("scheme"))
    except SchemeError as error:
        row.refuse("scheme", error.problems[0].wanted or str(error))
        return
    osds = crush_map().max_devices
    if scheme.width > osds:
        row.refuse("scheme", f"at most {osds} shards, one for each OSD")
    if pool in POOLS and (pool == "replicated") != (scheme.kind == "replicated"):
        row.refuse("pool", "replicated with copies, classic or optimised with a code")

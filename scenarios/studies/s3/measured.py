"""Rows of measurements of gateways: what was asked, by how many clients, and what came out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from math import isfinite, log
from pathlib import Path
from typing import Final

from stripesim.models.problems import NotComputedError, problems_of
from stripesim.scenarios.schema.units import parse_size_bytes
from stripesim.scenarios.studies.description import study_folder
from stripesim.scenarios.studies.published_rows import (
    PublishedRow,
    published_rows,
)
from stripesim.scenarios.studies.s3.counted import FILE as COUNTS_FILE

_FILE: Final = "s3.csv"
#: Rows that numbers were solved for: 3-replication on ten hosts, and two rows of RS(2,2) that were held out
#: at first. `rgw-087` gives the client's time for a byte, which only a load of few clients shows, `rgw-091`
#: that of a gateway on another processor. Neither depends on the code.
CALIBRATION: Final = frozenset(
    {*(f"rgw-{number}" for number in range(229, 241)), "rgw-087", "rgw-091"}
)
#: Tolerance of a value, and of a ratio of two.
VALUE_TOLERANCE: Final = 0.25
RATIO_TOLERANCE: Final = 0.15
#: Requests in flight of a driver whose number is not stated, as of a client in study `nvme`.
UNSTATED_CONCURRENT: Final = 128
#: Requests in flight of a run at most, which then takes minutes.
IN_FLIGHT_MAX: Final = 50_000
#: Sizes of a range over the smallest, by the last part of the source that states them: each of them has a
#: bucket, and as many requests as any other.
_SIZES_OF_SOURCES: Final = {
    "putting-reef-to-the-test-throughput-and-recovery-in-rgw-workloads": (
        1,
        4,
        8,
        64,
        256,
    )
}
_RELEASES: Final = {
    "pacific": ("pacific", "16."),
    "quincy": ("quincy", "17."),
    "reef": ("reef", "18."),
    "squid": ("squid", "19."),
    "tentacle": ("tentacle", "20."),
}
_OPS: Final = {
    "put": ("put", "write", "upload"),
    "get": ("get", "read", "download"),
    "head": ("head", "stat"),
    "delete": ("delete", "del"),
    "list": ("list",),
}


@dataclass(frozen=True, kw_only=True)
class ObjectRow(PublishedRow):
    """One measured number of ``s3.csv``."""

    @property
    def role(self) -> str:
        """Role of the row, by rules that were fixed before the first run of any row that is held out."""
        if self.id in CALIBRATION:
            return "calibration"
        # No model ages a cluster.
        return "not-derivable" if "aged" in self.state else "held-out"

    @property
    def conditions(self) -> str:
        """Scheme, load and state of the cluster."""
        return f"{super().conditions}, {self.state}"

    @property
    def group(self) -> tuple[str, ...]:
        """Everything that rows of one run share."""
        return (
            self.system,
            self.hardware,
            self.scheme,
            self.block,
            self.threads,
            self.state,
        )

    @property
    def s3_op(self) -> str:
        """Operation whose numbers the row states."""
        word = (self.op.lower().split() or [""])[0]
        for name, words in _OPS.items():
            if word.rstrip("s") in words:
                return name
        raise NotComputedError(
            f"the operation {self.op!r} is none of {', '.join(_OPS)}"
        )

    @property
    def is_mixed(self) -> bool:
        """True if the load had other operations, too."""
        return "hybrid" in self.op.lower() or "mix" in self.op.lower()

    @property
    def run_key(self) -> tuple[str, ...]:
        """Key of the run that simulates the row."""
        return (*self.group, "mixed" if self.is_mixed else self.s3_op)

    @property
    def generation(self) -> str:
        """Release of Ceph, by default reef."""
        words = f"{self.system} {self.hardware}".lower()
        for name, signs in _RELEASES.items():
            if any(re.search(rf"(?<![\d.]){re.escape(sign)}", words) for sign in signs):
                return name
        return "reef"

    @property
    def tls(self) -> bool:
        """True if clients used TLS."""
        words = f"{self.state} {self.op} {self.threads}"
        if re.search(r"\b(no|without)[ -](SSL|TLS)", words, re.IGNORECASE):
            return False
        return re.search(r"\b(SSL|TLS|https)\b", words, re.IGNORECASE) is not None

    @property
    def hosts_stopped(self) -> int:
        """Hosts that were down, whose data the others then hold [count]."""
        match = re.search(r"(\d+) of \d+ (?:hosts|nodes) (?:stopped|down)", self.state)
        return int(match[1]) if match else 0

    @property
    def hosts(self) -> int | None:
        """Hosts of the cluster, if the row states others than the description, as in a series."""
        match = re.search(r"(?<!of )(\d+)[ -](?:OSD )?nodes?\b", self.state)
        return int(match[1]) if match else None

    @property
    def in_flight(self) -> int:
        """Requests that all clients together keep in flight [count]."""
        numbers = [
            int(number.replace(",", ""))
            for number in re.findall(r"\d[\d,]*", self.threads)
        ]
        if not numbers:
            raise NotComputedError(f"the load {self.threads!r} states no number")
        count = numbers[0]
        if len(numbers) > 1 and re.search(r"\d[\w ]*[x×*]\s*\d", self.threads):
            count *= numbers[1]
        if "driver" in self.threads:
            count *= UNSTATED_CONCURRENT
        if not 1 <= count <= IN_FLIGHT_MAX:
            raise NotComputedError(
                f"the load {self.threads!r} is {count:,} requests in flight, and 1 to {IN_FLIGHT_MAX:,} are "
                "simulated"
            )
        return count

    @property
    def sizes(self) -> tuple[tuple[int, float], ...]:
        r"""Sizes of objects [B] and their shares: one, or those of a range.

        Notes
        -----
        A range has the powers of two, equally often, unless its source states the sizes. The generator
        `warp` draws the logarithm of a size evenly, from 1/256 of the largest (``GetExpRandSize``). Each
        doubling from :math:`s` is then :math:`s / \ln 2` on average, and all sizes 0.18 of the largest.
        """
        found = re.findall(r"(\d+(?:\.\d+)?)\s*([KMG])?i?B?", self.block)
        if not found:
            raise NotComputedError(f"the size {self.block!r} states no number")
        ends = [_size_bytes(number, unit) for number, unit in found[:2]]
        first, last = ends[0], ends[-1]
        fixed = _SIZES_OF_SOURCES.get(self.source.rpartition("/")[2])
        if fixed and len(ends) > 1:
            return tuple((first * factor, 1.0 / len(fixed)) for factor in fixed)
        if not first or last < first:
            raise NotComputedError(f"the size {self.block!r} is none, and no range")
        if len(ends) > 1 and "warp" in f"{self.hardware} {self.threads}":
            doublings = [
                first << number for number in range((last // first).bit_length() - 1)
            ] or [first]
            return tuple(
                (round(size / log(2)), 1.0 / len(doublings)) for size in doublings
            )
        sizes = [first]
        while len(ends) > 1 and sizes[-1] * 2 <= last:
            sizes.append(sizes[-1] * 2)
        return tuple((size, 1.0 / len(sizes)) for size in sizes)


def _size_bytes(number: str, unit: str) -> int:
    try:
        return parse_size_bytes(f"{number}{unit}iB" if unit else number)
    except ValueError as error:
        raise NotComputedError(*problems_of(error)) from None


def load(data: Path | str | None = None) -> tuple[ObjectRow, ...]:
    """Return the rows of a folder with an ``s3.csv``, by default those that ship.

    A folder may have counters of a real gateway alone, in ``rgw.csv``.

    Raises
    ------
    MeasuredError
        If the file is missing or lacks columns, or a value is no number, with one line for each.
    """
    if data is None:
        return _shipped()
    path = Path(data) / _FILE
    if not path.exists() and (Path(data) / COUNTS_FILE).exists():
        return ()
    return published_rows(path, ObjectRow, is_valid=isfinite)


@cache
def _shipped() -> tuple[ObjectRow, ...]:
    return published_rows(study_folder("s3") / "data" / _FILE, ObjectRow)

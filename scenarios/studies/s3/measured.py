"""Rows of measurements of gateways: what was asked, by how many clients, and what came out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import log
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
from stripesim.scenarios.studies.s3.described import OP_OF_WORD, OPS, read_mix

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
_STOPPED: Final = re.compile(
    r"(\d+)\s*(?:of \d+ )?(?:OSD |storage )?(?:hosts?|nodes?|servers?) (?:is |are )?"
    r"(?:stopped|down|failed|offline|lost)",
    re.IGNORECASE,
)
#: States that no run simulates, with the reason.
_UNKNOWN_STATES: Final = (
    (
        r"recover|backfill|rebalanc|rebuild",
        "clients during recovery need the amount of data, which no row states",
    ),
    (
        r"(?:drives?|disks?|OSDs?) (?:stopped|down|failed|lost|out)",
        "only whole hosts are left out",
    ),
    (r"degraded|fail(?:ed|ure)", "how many hosts are down is not stated"),
)
# Two sizes of which the first is the smallest and the last the largest, such as ``4 KiB to 1 MiB``.
_RANGE: Final = re.compile(r"\d\s*\w*\s*(?:-|–|to)\s*\d")
#: Words between the numbers of clients and of each client's requests, such as ``8 clients, QD 16``.
_PRODUCT: Final = re.compile(
    r"\d[\w ]*[x×*]\s*\d|\b(?:each|per|QD|iodepth|queue depth)\b|\d\s*\w+/\w",
    re.IGNORECASE,
)


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
        """Operation whose numbers the row states: of a mixed load perhaps all, which is ``all``."""
        op_words = re.findall(r"[a-z]+", self.op.lower())
        if self.is_mixed and op_words[:1] and op_words[0] not in OP_OF_WORD:
            return "all"
        for word in op_words:
            name = OP_OF_WORD.get(word) or OP_OF_WORD.get(word.rstrip("s"))
            if name is not None:
                return name
        raise NotComputedError(f"the operation {self.op!r} is none of {', '.join(OPS)}")

    @property
    def is_mixed(self) -> bool:
        """True if the load had other operations, too."""
        lower_op = self.op.lower()
        return "hybrid" in lower_op or "mix" in lower_op or len(read_mix(lower_op)) > 1

    @property
    def run_key(self) -> tuple[str, ...]:
        """Key of the run that simulates the row."""
        return (*self.group, "mixed" if self.is_mixed else self.s3_op)

    @property
    def generation(self) -> str:
        """Release of Ceph, by default reef."""
        description = f"{self.system} {self.hardware}".lower()
        for name, signs in _RELEASES.items():
            if any(
                re.search(rf"(?<![\d.]){re.escape(sign)}", description)
                for sign in signs
            ):
                return name
        return "reef"

    @property
    def version(self) -> str:
        """Version of Ceph, empty if the source has only the release."""
        found = re.search(r"\d+\.\d+\.\d+", self.system)
        return found[0] if found else ""

    @property
    def tls(self) -> bool:
        """True if clients used TLS."""
        description = f"{self.state} {self.op} {self.threads}"
        if re.search(r"\b(no|without)[ -](SSL|TLS)", description, re.IGNORECASE):
            return False
        return re.search(r"\b(SSL|TLS|https)\b", description, re.IGNORECASE) is not None

    @property
    def hosts_stopped(self) -> int:
        """Hosts that were down, whose data the others then hold [count]."""
        match = _STOPPED.search(self.state)
        return int(match[1]) if match else 0

    def check_state(self) -> None:
        """Check that a run can simulate the state of the cluster.

        Raises
        ------
        NotComputedError
            If it cannot, with the reason.
        """
        rest = _STOPPED.sub("", self.state)
        for pattern, reason in _UNKNOWN_STATES:
            is_known = pattern.startswith("degraded") and self.hosts_stopped > 0
            if re.search(pattern, rest, re.IGNORECASE) and not is_known:
                raise NotComputedError(f"the state {self.state!r}: {reason}")

    @property
    def hosts(self) -> int | None:
        """Hosts of the cluster, if the row states others than the description, as in a series."""
        running_state = _STOPPED.sub("", self.state)
        match = re.search(r"(?<!of )(\d+)[ -](?:OSD )?nodes?\b", running_state)
        return int(match[1]) if match else None

    @property
    def in_flight(self) -> int:
        """Requests that all clients together keep in flight [count]."""
        numbers = [
            round(float(number.replace(",", "")) * (1000 if thousands else 1))
            for number, thousands in re.findall(
                r"(\d+(?:,\d{3})*(?:\.\d+)?)\s*(k\b)?", self.threads, re.IGNORECASE
            )
        ]
        if not numbers:
            raise NotComputedError(f"the load {self.threads!r} states no number")
        count = numbers[0]
        if len(numbers) > 1 and _PRODUCT.search(self.threads):
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
        ends_found = re.findall(r"(\d+(?:\.\d+)?)\s*([KMG])?i?B?", self.block)
        if not ends_found:
            raise NotComputedError(f"the size {self.block!r} states no number")
        listed = [(number, unit) for number, unit in ends_found if unit]
        if len(listed) > 1 and not _RANGE.search(self.block):
            sizes = [_size_bytes(number, unit) for number, unit in listed]
            if not all(sizes):
                raise NotComputedError(f"the sizes {self.block!r} have one of 0")
        else:
            ends = [_size_bytes(number, unit) for number, unit in ends_found]
            sizes = self._sizes_between(ends)
        return tuple((size, 1.0 / len(sizes)) for size in sizes)

    def _sizes_between(self, ends: Sequence[int]) -> list[int]:
        """Return the sizes of a range, or its only size [B]."""
        first, last = ends[0], ends[-1]
        stated = _SIZES_OF_SOURCES.get(self.source.rpartition("/")[2])
        if stated and len(ends) > 1:
            return [first * factor for factor in stated]
        if not first or last < first:
            raise NotComputedError(f"the size {self.block!r} is none, and no range")
        doublings = (last // first).bit_length() - 1
        if len(ends) > 1 and "warp" in f"{self.hardware} {self.threads}":
            starts = [first << number for number in range(max(doublings, 1))]
            return [round(start / log(2)) for start in starts]
        return [first << number for number in range(doublings + 1)]


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
        If the file is missing or lacks columns, or an id is not unique, with one line for each.
    """
    if data is None:
        return _shipped()
    path = Path(data) / _FILE
    if not path.exists() and (Path(data) / COUNTS_FILE).exists():
        return ()
    return published_rows(path, ObjectRow)


@cache
def _shipped() -> tuple[ObjectRow, ...]:
    return published_rows(study_folder("s3") / "data" / _FILE, ObjectRow)

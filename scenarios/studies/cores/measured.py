"""Rows of measurements of pinned OSDs: how many OSDs, on how many cores, and what came out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from stripesim.calibration.measured.tables import Source
from stripesim.models.problems import NotComputedError, problems_of
from stripesim.scenarios.schema.units import parse_size_bytes
from stripesim.scenarios.studies.description import study_folder
from stripesim.scenarios.studies.published_rows import (
    PublishedRow,
    published_rows,
    stated_number,
)

_FILE: Final = "cores.csv"
#: Rates that numbers of one OSD were fitted to: reads and writes on the fewest and on the most cores.
CALIBRATION: Final = frozenset(
    {"cpu_power-001", "cpu_power-008", "cpu_power-017", "cpu_power-024"}
)
#: Row of study `nvme` for the key-value thread of Ceph 16 in a whole cluster: 60 OSDs, not pinned.
CLUSTER_CALIBRATION: Final = "upstream-mako-10x6-029"
TOLERANCE: Final = 0.25
RATE: Final = "iops"
CORES_USED: Final = "cores_used"


@dataclass(frozen=True, kw_only=True)
class CoresRow(PublishedRow):
    """One measured number of ``cores.csv``."""

    @property
    def role(self) -> str:
        """Role of the row, by rules that were fixed before a model was compared with any row."""
        return "calibration" if self.id in CALIBRATION else "held-out"

    @property
    def quantity(self) -> str:
        """Name of what the row states, which ends the id of its claim."""
        lower_metric = self.metric.lower()
        if "core" in lower_metric or "cpu" in lower_metric:
            return CORES_USED
        if lower_metric in ("iops", "rate", "throughput"):
            return RATE
        return re.sub(r"\W+", "_", lower_metric)

    @property
    def claim_id(self) -> str:
        """Id of the row, and what it states."""
        return f"{self.id}:{self.quantity}"

    @property
    def cores_per_osd(self) -> int:
        """Cores of each OSD."""
        pattern = r"(\d+)\s*(?:cores?|threads?|vCPUs?)\b"
        return _needed("threads", self.threads, pattern, "4 cores per OSD")

    @property
    def osds(self) -> int:
        """OSDs of the cluster."""
        return _needed("hardware", self.hardware, r"(\d+)\s*OSDs?\b(?!/)", "60 OSDs")

    @property
    def hosts(self) -> int:
        """Hosts of the cluster."""
        pattern = r"^\s*(\d+)\s*(?:x|hosts?|nodes?|servers?)\s"
        return _needed("hardware", self.hardware, pattern, "10x R6515")

    @property
    def fio_per_host(self) -> int:
        """Clients on each host, by default 4."""
        return stated_number(self.hardware, r"(\d+)\s*fio/(?:node|host)") or 4

    @property
    def queue_depth(self) -> int:
        """Requests that each client keeps in flight, by default 128."""
        return stated_number(self.hardware, r"iodepth\s*(\d+)") or 128

    @property
    def pg_num(self) -> int | None:
        """Placement groups, if the row states them."""
        return stated_number(self.hardware, r"(\d+)\s*PGs")

    @property
    def block_bytes(self) -> int:
        """Size of a request [B]."""
        try:
            return parse_size_bytes(self.block)
        except ValueError as error:
            raise NotComputedError(*problems_of(error)) from None

    @property
    def is_read(self) -> bool:
        """True for reads."""
        lower_op = self.op.lower()
        if "read" in lower_op:
            return True
        if "write" in lower_op:
            return False
        raise NotComputedError(
            f"the operation {self.op!r} is neither a read nor a write"
        )

    @property
    def pattern(self) -> str:
        """Pattern of the requests."""
        return "seq" if "seq" in self.op.lower() else "rand"

    @property
    def run_key(self) -> tuple[str, ...]:
        """Key of the run that simulates the row."""
        return (self.hardware, self.scheme, self.op, self.block, self.threads)


def _needed(column: str, text: str, pattern: str, example: str) -> int:
    number = stated_number(text, pattern)
    if not number:
        raise NotComputedError(
            f"{column}: got {text!r}, wanted words such as {example!r}"
        )
    return number


def load(data: Path | str | None = None) -> tuple[CoresRow, ...]:
    """Return the rows of a folder with a ``cores.csv``, by default those that ship.

    Raises
    ------
    MeasuredError
        If the file is missing or lacks columns, or an id is not unique, with one line for each.
    """
    if data is None:
        return _shipped()
    return _rows(Path(data) / _FILE)


@cache
def _shipped() -> tuple[CoresRow, ...]:
    return _rows(study_folder("cores") / "data" / _FILE)


def _rows(source: Source) -> tuple[CoresRow, ...]:
    return published_rows(source, CoresRow)

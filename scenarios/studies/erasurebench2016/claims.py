"""What the expressions of ``claims.toml`` call: numbers of experiments, and what Table I counts."""

from collections.abc import Mapping
from itertools import product
from typing import Any, Final

import polars as pl

from stripesim.calibration.ledger.verdicts import Claim
from stripesim.scenarios.studies.claim_rules import NotComputedError
from stripesim.scenarios.studies.erasurebench2016.sequences import ARCHIVES, MEGABYTE
from stripesim.scenarios.studies.erasurebench2016.source import value_of
from stripesim.scenarios.studies.lookup import number

#: What Table I counts of an archive: column, unit, and the claim of the first archive's number without code.
STORED: Final = {
    "redis_keys": ("keys", 1, 302),
    "binary_blocks": ("binary_bytes", MEGABYTE, 303),
    "base64_blocks": ("stored_bytes", MEGABYTE, 304),
}
#: Claims of Table I from one archive to the next.
CLAIMS_PER_ARCHIVE: Final = 11


def vocabulary(rows: pl.DataFrame) -> Mapping[str, Any]:
    """Return the names that expressions know."""
    numbers = ExperimentNumbers(rows)
    return {
        "MB": MEGABYTE,
        "size_bytes": size_bytes,
        "number": numbers.number,
        "storage": numbers.storage,
        "slowdown": numbers.slowdown,
    }


def size_bytes(claim: Claim) -> int:
    """Return the file's size that a claim is about."""
    return int(claim.block_size.removesuffix("MB")) * MEGABYTE


class ExperimentNumbers:
    """Numbers from result rows, by experiment."""

    def __init__(self, rows: pl.DataFrame) -> None:
        self._rows = rows
        self._experiments = set(rows["experiment"])

    def number(self, experiment: str, column: str, **where: Any) -> float:
        """Return the only value of a column in the rows of an experiment that match."""
        if experiment not in self._experiments:
            raise NotComputedError
        return number(self._rows, column, experiment=experiment, **where)

    def storage(self, claim: Claim, counted: str, archive: str) -> float:
        """Return keys or bytes of an archive; those of a code from the published number without one."""
        column, unit, first = STORED[counted]
        where = {"archive": archive, "code": claim.scheme}
        if claim.scheme == "NC":
            return self.number("storage", column, **where) / unit
        uncoded = value_of(first + CLAIMS_PER_ARCHIVE * ARCHIVES.index(archive))
        return uncoded * self.number("storage", "storage_overhead", **where)

    def slowdown(self, op: str) -> str:
        """Return least and most that a code slows a file down, over all sizes and both ways [%]."""
        changes = []
        cases = product(("LRC", "RS"), ("FUSE", "Direct"), (4, 16, 64))
        for code, way, megabytes in cases:
            where = {"op": op, "way": way, "block_size_bytes": megabytes * MEGABYTE}
            column = "throughput_bytes_per_s"
            rate = self.number("throughput", column, code=code, **where)
            uncoded = self.number("throughput", column, code="NC", **where)
            changes.append(100 * (rate / uncoded - 1))
        return f"{max(changes):.1f} .. {min(changes):.1f}"

"""Numbers of experiments and of Table I that the expressions in ``claims.toml`` call."""

from itertools import product
from typing import Any, Final

import polars as pl

from stripesim.calibration.ledger.verdicts import Claim
from stripesim.models.problems import NotComputedError
from stripesim.scenarios.studies.erasurebench2016.sequences import ARCHIVES, MEGABYTE
from stripesim.scenarios.studies.erasurebench2016.source import value_of
from stripesim.scenarios.studies.lookup import number, select

#: Counts of an archive in Table I: column, unit, and the claim of the first archive's number without code.
STORED: Final = {
    "redis_keys": ("keys", 1, 302),
    "binary_blocks": ("binary_bytes", MEGABYTE, 303),
    "base64_blocks": ("stored_bytes", MEGABYTE, 304),
}
#: Claims of Table I from one archive to the next.
CLAIMS_PER_ARCHIVE: Final = 11


def size_bytes(claim: Claim) -> int:
    """Return the file size of a claim [B]."""
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
        matching = select(self._rows, experiment=experiment, **where)
        if matching[column].null_count():
            raise NotComputedError(f"{column} has no value in experiment {experiment}")
        return number(matching, column)

    def storage(self, claim: Claim, counted: str, archive: str) -> float:
        """Return keys or bytes of an archive, with a code from the published number without one."""
        column, unit, first = STORED[counted]
        where = {"archive": archive, "code": claim.scheme}
        if claim.scheme == "NC":
            return self.number("storage", column, **where) / unit
        uncoded = value_of(first + CLAIMS_PER_ARCHIVE * ARCHIVES.index(archive))
        return uncoded * self.number("storage", "storage_overhead", **where)

    def slowdown(self, op: str) -> str:
        """Return the range of slow-downs by a code, over all sizes and both ways [%]."""
        changes = []
        cases = product(("LRC", "RS"), ("FUSE", "Direct"), (4, 16, 64))
        for code, way, megabytes in cases:
            where = {"op": op, "way": way, "block_size_bytes": megabytes * MEGABYTE}
            column = "throughput_bytes_per_s"
            rate = self.number("throughput", column, code=code, **where)
            uncoded = self.number("throughput", column, code="NC", **where)
            changes.append(100 * (rate / uncoded - 1))
        return f"{max(changes):.1f} .. {min(changes):.1f}"

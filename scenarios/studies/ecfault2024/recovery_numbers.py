"""Numbers of recoveries and of storage that the expressions in ``claims.toml`` call."""

from typing import Any

import polars as pl

from stripesim.calibration.ledger.verdicts import Observation
from stripesim.scenarios.studies.ecfault2024.profiles import CODES
from stripesim.scenarios.studies.lookup import select

PERCENT = 100.0
NO_ADVANTAGE = 0.05
SWEPT = ("stripe unit", "placement groups", "cache")
RS, CLAY = CODES


class EcfaultNumbers:
    """Numbers from result rows. Expressions call the public methods."""

    def __init__(self, rows: pl.DataFrame) -> None:
        self._recovered = {
            (row["profile"], row["scheme"]): row
            for row in select(rows, experiment="profiles").iter_rows(named=True)
        }
        self._stored = {
            row["scheme"]: row
            for row in select(rows, experiment="amplification").iter_rows(named=True)
        }

    def of_dimension(self, dimension: str, code: str) -> dict[str, dict[str, Any]]:
        """Return the rows of one dimension and code, by label."""
        return {
            row["label"]: row
            for (_, scheme), row in self._recovered.items()
            if row["dimension"] == dimension and scheme == code
        }

    def effect(self, dimension: str, column: str = "total_s") -> float:
        """Return the largest effect of a dimension over the codes [%]."""
        effects = []
        for code in CODES:
            times = [row[column] for row in self.of_dimension(dimension, code).values()]
            effects.append(max(times) / min(times) - 1)
        return float(PERCENT * max(effects))

    def shares(self) -> tuple[float, float]:
        """Return the smallest and the largest share of the checking period over the swept dimensions [%]."""
        shares = [
            PERCENT * row["checking_share"]
            for dimension in SWEPT
            for code in CODES
            for row in self.of_dimension(dimension, code).values()
        ]
        return min(shares), max(shares)

    def base(self, code: str) -> dict[str, Any]:
        """Return the base configuration's row."""
        return self._recovered["base", code]

    def worst_cache(self) -> Observation:
        """Name the cache scheme that is worst for Clay, and worse than RS under any scheme."""
        clay = {
            label: row["total_s"]
            for label, row in self.of_dimension("cache", CLAY).items()
        }
        rs = [row["total_s"] for row in self.of_dimension("cache", RS).values()]
        worst = max(clay, key=lambda label: clay[label])
        numbers = (*clay.values(), max(rs))
        if list(clay.values()).count(clay[worst]) > 1:
            return Observation("no scheme is worse than the others", numbers)
        if clay[worst] <= max(rs):
            return Observation(f"{worst}, but not worse than RS", numbers)
        return Observation(worst, numbers)

    def advantage(self, failures: str) -> float:
        """Return what Clay saves of RS's recovery, as a fraction."""
        profile = f"fail-{failures}"
        return float(
            1
            - self._recovered[profile, CLAY]["recovery_s"]
            / self._recovered[profile, RS]["recovery_s"]
        )

    def clay_advantage(self) -> Observation:
        """State whether Clay's advantage over RS disappears with three failures on different hosts."""
        before = [
            self.advantage(name) for name in ("1", "2-same", "3-same", "2-different")
        ]
        after = self.advantage("3-different")
        if max(before) <= NO_ADVANTAGE:
            says = "no advantage at all"
        elif after > NO_ADVANTAGE:
            says = "an advantage also at 3 failures on different hosts"
        else:
            says = "disappears at 3 failures on different hosts"
        return Observation(says, (*before, after))

    def stored(self, code: str, what: str) -> float:
        """Return bytes stored per byte written: ``redundancy``, ``padded`` or ``total``."""
        return float(self._stored[code][f"stored_{what}"])

    def beyond(self, code: str) -> float:
        """Return the stored bytes beyond n / k [%]."""
        return PERCENT * (
            self.stored(code, "total") / self.stored(code, "redundancy") - 1
        )

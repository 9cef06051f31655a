"""What the expressions of ``claims.toml`` call: the row of a claim's scheme and change."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from stripesim.calibration.ledger.verdicts import Claim


def vocabulary(rows: pl.DataFrame) -> Mapping[str, Any]:
    """Return the names that expressions know."""
    runs = {(row["scheme"], row["change"]): row for row in rows.iter_rows(named=True)}

    def change(claim: Claim) -> Mapping[str, Any]:
        return runs[claim.scheme, claim.baseline]

    return {"change": change}

"""What the expression of ``claims.toml`` calls: the result row that carries a claim's id as its pattern."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from stripesim.scenarios.studies.claim_rules import NotComputedError


def vocabulary(rows: pl.DataFrame) -> Mapping[str, Any]:
    """Return the names that expressions know."""
    values: dict[str, float] = dict(rows.select("pattern", "value").iter_rows())

    def row(claim_id: str) -> float:
        if claim_id not in values:
            raise NotComputedError
        return values[claim_id]

    return {"row": row}

"""The source's numbers: published values by the number of a claim, and the plotted series."""

from functools import cache
from typing import Any

import polars as pl

from stripesim.scenarios.studies.description import study_folder
from stripesim.scenarios.studies.lookup import published, select

STUDY = "erasurebench2016"
PREFIX = "erasurebench-"


def value_of(number: int) -> float:
    """Return the published value of a claim, by the number in its id."""
    return published(STUDY)[f"{PREFIX}{number}"]


# The source's names for kinds of traffic in Figure 7; the rest is ``other``.
_KIND_OF = {"exists": "check", "read": "read", "write": "write", "cluster": "cluster"}


@cache
def plotted_table() -> pl.DataFrame:
    """Return the numbers behind the source's Figures 3, 4, 6 and 7: figure, code, series, x, y.

    ``kind`` is our name for a series of Figure 7, ``rank_share`` the share of values up to the row's.
    """
    source = (study_folder(STUDY) / "series.csv").read_bytes()
    table = pl.read_csv(source, schema_overrides={"x": pl.Float64, "y": pl.Float64})
    rank = pl.col("y").rank("ordinal") / pl.len()
    return table.with_columns(
        kind=pl.col("series").replace_strict(_KIND_OF, default="other"),
        rank_share=rank.over("figure", "code", "x"),
    )


def plotted(figure: int, **where: Any) -> pl.DataFrame:
    """Return the numbers behind one of the source's figures."""
    return select(plotted_table(), figure=figure, **where)

"""The source's numbers: published values by the number of a claim, and the plotted series."""

from functools import cache
from importlib.resources import files
from typing import Any

import polars as pl

from stripesim.scenarios.studies.lookup import published, select

STUDY = "erasurebench2016"
PREFIX = "erasurebench-"


def value_of(number: int) -> float:
    """Published value of a claim, by the number in its id."""
    return published(STUDY)[f"{PREFIX}{number}"]


@cache
def _series() -> pl.DataFrame:
    source = (
        files("stripesim.scenarios.studies.erasurebench2016") / "series.csv"
    ).read_bytes()
    return pl.read_csv(source, schema_overrides={"x": pl.Float64, "y": pl.Float64})


def plotted(figure: int, **where: Any) -> pl.DataFrame:
    """The numbers behind the source's Figure 3, 4, 6 or 7: code, name of the series, x, y."""
    return select(_series(), figure=figure, **where)

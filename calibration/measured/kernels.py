"""Read rows of measured kernels, such as those of Ceph's plugins, which ship."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

import polars as pl

#: Types of the columns that may be empty.
EMPTY_TYPES: Final = {
    "roofline": pl.Float64,
    "copy_seconds_median": pl.Float64,
    "verified": pl.Boolean,
}


def read_kernels(source: Traversable) -> pl.DataFrame:
    """Read measured kernels, one row for each case. The columns are those of `stripesim kernel`."""
    return pl.read_csv(source.read_bytes(), schema_overrides=EMPTY_TYPES)


def ceph_kernels() -> pl.DataFrame:
    """Return what was measured of the plugins of Ceph 16.2.15, on a processor that is not stated."""
    return read_kernels(files(__package__) / "ceph16_kernels.csv")

"""The time series of Figures 19 and 20: which runs they are, and what is read from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from stripesim.calibration.ledger.verdicts import Observation
from stripesim.scenarios.studies.koh2017.reducers import NotComputedError

Floats = npt.NDArray[np.float64]

#: Second up to which the paper compares a pristine image with a written one.
COMPARED_S: Final = 70
#: The level between dips is this quantile of a series, which may spend more than half its time in dips.
LEVEL: Final = 0.9
#: A dip is near zero below this share of that level.
NEAR_ZERO: Final = 0.1
#: Dips are periodic if there are at least so many of them …
DIPS_MIN: Final = 3
#: … and their distances vary by less than this (standard deviation over mean).
PERIODIC_SPREAD: Final = 0.5
#: Two series behave alike while their moving means differ by less than this share …
ALIKE: Final = 0.2
#: … taken over so many seconds.
SMOOTH_S: Final = 5


@dataclass(frozen=True)
class Run:
    """One run whose course in time is kept.

    Parameters
    ----------
    figure : str
        Figure it belongs to.
    says : str
        What it is, in words.
    scheme, pattern, image : str
    duration_s : float
        Simulated time [s].
    pause_ns : int
        Pause at the first write into each object [ns]; −1: as long as one update of the object map takes.
    fill : str
        See `stripesim.sim.ceph.creation.CreationSource`.
    """

    figure: str
    says: str
    scheme: str
    pattern: str
    image: str
    duration_s: float
    pause_ns: int = 0
    fill: str = "gap"


PAUSES_NS: Final = (100_000_000, 500_000_000, 1_000_000_000, 2_000_000_000)
_CODE, _COPIES = "rs:6,3", "rep:3"
RUNS: Final[Mapping[str, Run]] = MappingProxyType(
    {
        "fig19-rs": Run("19", "RS(6,3)", _CODE, "seq", "pristine", 60.0),
        "fig19-rep": Run("19", "3-replication", _COPIES, "seq", "pristine", 60.0),
        "fig19-object-map": Run(
            "19", "object map updated at an object's first write", _CODE, "seq", "pristine", 60.0, -1
        ),
        "fig19-fill-object": Run(
            "19", "whole object filled at its first write", _CODE, "seq", "pristine", 60.0, 0, "object"
        ),
        **{
            f"fig19-pause-{pause_ns // 1_000_000}ms": Run(
                "19",
                f"a pause of {pause_ns / 1e9:g} s at an object's first write",
                *(_CODE, "seq", "pristine", 60.0, pause_ns),
            )
            for pause_ns in PAUSES_NS
        },
        "fig20-pristine": Run("20", "pristine image", _CODE, "rand", "pristine", 100.0),
        "fig20-overwrite": Run("20", "overwrites", _CODE, "rand", "prefilled", 100.0),
    }
)
"""Name → run; all are writes of 16 KiB."""

BLOCK_BYTES: Final = 16 * 1024


def dips(throughput: Floats) -> Observation:
    """Say how a throughput per second dips: ``near-zero, periodic``, ``near-zero, irregular``, ``none``.

    Parameters
    ----------
    throughput : ndarray of float, shape (seconds,)
        Bytes completed in each second [B/s].

    Returns
    -------
    Observation
        The words, and the lowest second as a share of the level between dips.

    Examples
    --------
    >>> dips(np.array([9.0, 10, 0, 10, 10, 0, 10, 10, 0, 10])).says
    'near-zero, periodic'
    >>> dips(np.array([9.0, 10, 11, 10])).says
    'none'
    """
    level = float(np.quantile(throughput, LEVEL))
    if level == 0:
        return Observation("no throughput", (0.0,))
    low = throughput < NEAR_ZERO * level
    # Neighbouring low seconds are one dip.
    begins = np.flatnonzero(low & ~np.r_[False, low[:-1]])
    lowest = (float(throughput.min() / level),)
    if not len(begins):
        return Observation("none", lowest)
    gaps = np.diff(begins)
    if len(begins) >= DIPS_MIN and gaps.std() < PERIODIC_SPREAD * gaps.mean():
        return Observation("near-zero, periodic", lowest)
    return Observation("near-zero, irregular", lowest)


def course(series: pl.DataFrame, name: str, column: str) -> Floats:
    """One column of one run, second by second.

    Raises
    ------
    NotComputedError
        If that run is not there.
    """
    mine = series.filter(pl.col("series") == name).sort("time_s") if series.width else series
    if mine.is_empty():
        raise NotComputedError(f"no series {name}")
    values: Floats = mine[column].cast(pl.Float64).to_numpy()
    return values


def converged_s(pristine: Floats, overwrite: Floats) -> float:
    """Second from which two series stay alike [s]; their length if they never do.

    Examples
    --------
    >>> converged_s(np.r_[np.full(20, 4.0), np.ones(20)], np.ones(40))
    24.0
    """
    window = np.ones(SMOOTH_S) / SMOOTH_S
    first, second = (np.convolve(values, window, mode="valid") for values in (pristine, overwrite))
    unlike = np.flatnonzero(np.abs(first / second - 1) > ALIKE)
    return float(SMOOTH_S + unlike[-1]) if len(unlike) else 0.0


def _both(series: pl.DataFrame, column: str) -> tuple[float, float]:
    """Means over the first 70 s: pristine image, overwrites."""
    found = []
    for name in ("fig20-pristine", "fig20-overwrite"):
        values = course(series, name, column)
        if len(values) < COMPARED_S:
            raise NotComputedError(f"{name} ends after {len(values)} s, wanted {COMPARED_S}")
        found.append(float(values[:COMPARED_S].mean()))
    return found[0], found[1]


def _lower(column: str) -> Callable[[pl.DataFrame], float]:
    def rule(series: pl.DataFrame) -> float:
        pristine, overwrite = _both(series, column)
        return 100 * (1 - pristine / overwrite)

    return rule


def _times(series: pl.DataFrame) -> float:
    pristine, overwrite = _both(series, "private_net_bytes_per_s")
    return pristine / overwrite


def _convergence(series: pl.DataFrame) -> float:
    # Alike in all three quantities that the figure shows.
    columns = ("cpu_utilisation", "context_switches_per_s", "private_net_bytes_per_s")
    _both(series, columns[0])
    return max(
        converged_s(course(series, "fig20-pristine", column), course(series, "fig20-overwrite", column))
        for column in columns
    )


SERIES_RULES: Final[Mapping[str, Callable[[pl.DataFrame], float | Observation]]] = MappingProxyType(
    {
        # The first second fills the pipeline.
        "koh2017-115": lambda rows: dips(course(rows, "fig19-rs", "throughput_bytes_per_s")[1:]),
        "koh2017-116": lambda rows: dips(course(rows, "fig19-rep", "throughput_bytes_per_s")[1:]),
        "koh2017-117": _lower("cpu_utilisation"),
        "koh2017-118": _lower("context_switches_per_s"),
        "koh2017-119": _times,
        "koh2017-120": _convergence,
    }
)
"""Claim id → how it is computed from the series."""

"""The time series of Figures 19 and 20: their runs and their evaluation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from stripesim.calibration.ledger.verdicts import Observation
from stripesim.models.problems import NotComputedError
from stripesim.scenarios.studies.koh2017.cells import REP, RS63

Floats = npt.NDArray[np.float64]

#: Second up to which the paper compares a pristine image with a written one.
COMPARED_S: Final = 70
#: Quantile of a series that gives the level between dips, which may take more than half the time.
LEVEL: Final = 0.9
#: A dip is near zero below this share of that level.
NEAR_ZERO: Final = 0.1
#: Periodic dips: minimum number.
DIPS_MIN: Final = 3
#: Periodic dips: upper bound of the standard deviation of their distances over the mean.
PERIODIC_SPREAD: Final = 0.5
#: Two series agree while their moving means differ by less than this share.
ALIKE: Final = 0.2
#: Window of the moving means [s].
SMOOTH_S: Final = 5
#: Pauses at an object's first write that are tried [ns].
PAUSES_NS: Final = (100_000_000, 500_000_000, 1_000_000_000, 2_000_000_000)
BLOCK_BYTES: Final = 16 * 1024
NO_VALUE: Final = "not computed from these series"
THROUGHPUT: Final = "throughput_bytes_per_s"


@dataclass(frozen=True)
class SeriesRun:
    """One run of writes with a time series, for a figure of the paper.

    The pause is taken at the first write into each object [ns]. For the fill see
    `stripesim.scenarios.studies.koh2017.creation.CreationSource`.
    """

    figure: str
    says: str
    scheme: str = RS63
    pattern: str = "seq"
    image: str = "pristine"
    duration_s: float = 60.0
    pause_ns: int = 0
    fill: str = "gap"


def pause_run(pause_ns: int) -> str:
    """Return the name of the run with this pause."""
    return f"fig19-pause-{pause_ns // 1_000_000}ms"


RUNS: Final[Mapping[str, SeriesRun]] = {
    "fig19-rs": SeriesRun("19", "RS(6,3)"),
    "fig19-rep": SeriesRun("19", "3-replication", REP),
    "fig19-fill-object": SeriesRun(
        "19", "whole object filled at its first write", fill="object"
    ),
    **{
        pause_run(ns): SeriesRun(
            "19", f"a pause of {ns / 1e9:g} s at an object's first write", pause_ns=ns
        )
        for ns in PAUSES_NS
    },
    "fig20-pristine": SeriesRun(
        "20", "pristine image", pattern="rand", duration_s=100.0
    ),
    "fig20-overwrite": SeriesRun(
        "20", "overwrites", pattern="rand", image="prefilled", duration_s=100.0
    ),
}
"""Name → run. All are writes of 16 KiB."""


def dips(throughput: Floats) -> Observation:
    """Describe the dips of a throughput per second [B/s], and its lowest second relative to the level.

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
    gaps = np.diff(begins)
    says = "none"
    if len(begins):
        periodic = (
            len(begins) >= DIPS_MIN and gaps.std() < PERIODIC_SPREAD * gaps.mean()
        )
        says = f"near-zero, {'periodic' if periodic else 'irregular'}"
    return Observation(says, (float(throughput.min() / level),))


def course(series: pl.DataFrame, name: str, column: str = THROUGHPUT) -> Floats:
    """Return one column of one run, second by second, or raise a `NotComputedError` without the run."""
    mine = (
        series.filter(pl.col("series") == name).sort("time_s")
        if series.width
        else series
    )
    if mine.is_empty():
        raise NotComputedError(f"{NO_VALUE}: no series {name}")
    values: Floats = mine[column].cast(pl.Float64).to_numpy()
    return values


def dips_of(series: pl.DataFrame, name: str) -> Observation:
    """Describe the dips of a run without its first second, which fills the pipeline."""
    return dips(course(series, name)[1:])


def converged_s(pristine: Floats, overwrite: Floats) -> float:
    """Return the second from which two series agree [s], or their length if they never do.

    >>> converged_s(np.r_[np.full(20, 4.0), np.ones(20)], np.ones(40))
    24.0
    """
    window = np.ones(SMOOTH_S) / SMOOTH_S
    first, second = (
        np.convolve(values, window, mode="valid") for values in (pristine, overwrite)
    )
    unlike = np.flatnonzero(np.abs(first / second - 1) > ALIKE)
    return float(SMOOTH_S + unlike[-1]) if len(unlike) else 0.0


def pristine_over_overwrites(series: pl.DataFrame, column: str) -> float:
    """Return the mean over the first 70 s of a pristine image relative to overwrites."""
    means = []
    for name in ("fig20-pristine", "fig20-overwrite"):
        values = course(series, name, column)
        if len(values) < COMPARED_S:
            raise NotComputedError(
                f"{NO_VALUE}: {name} ends after {len(values)} s, wanted {COMPARED_S}"
            )
        means.append(float(values[:COMPARED_S].mean()))
    return means[0] / means[1]


def convergence_s(series: pl.DataFrame) -> float:
    """Return the second from which all three quantities of the figure agree [s]."""
    columns = ("cpu_utilisation", "context_switches_per_s", "private_net_bytes_per_s")
    pristine_over_overwrites(series, columns[0])
    return max(
        converged_s(
            course(series, "fig20-pristine", column),
            course(series, "fig20-overwrite", column),
        )
        for column in columns
    )

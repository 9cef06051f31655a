"""The error of the simulator on held-out rows, by kind of row and band of utilisation.

``model_errors.csv`` holds one line for each held-out rate and latency of study nvme, and for each of clusters
that no fit has seen: what the source measured over what the simulator gives. ``python docs/record.py nvme``
writes it. `error_band` turns the lines of a kind and a band into the interval of a prediction.

All of these are of images. ``object_errors.csv``, which ``python docs/record.py s3`` writes, holds the
held-out rates of objects in buckets. They make no interval: `object_coverage` counts how many the intervals
hold.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Final, Literal, NamedTuple

from stripesim.models.documents import Documented

Kind = Literal["rate", "mean", "p99"]

#: Share of new rows that an interval is made to hold.
COVERAGE: Final = 0.8
#: Study whose held-out rows give the errors.
STUDY: Final = "nvme"
#: Kind of row of each quantity. Sources state no medians, so a median has the error of a mean.
KINDS: Final[Mapping[str, Kind]] = {
    "iops": "rate",
    "throughput_bytes_per_s": "rate",
    "latency_mean_ns": "mean",
    "latency_p50_ns": "mean",
    "latency_p95_ns": "p99",
    "latency_p99_ns": "p99",
}
#: Kind of row of each metric of ``times.csv``.
KIND_OF_METRIC: Final[Mapping[str, Kind]] = {
    "iops": "rate",
    "mb_s": "rate",
    "latency_mean_ms": "mean",
    "latency_p99_ms": "p99",
}
#: Name of each band of utilisation and its lower end, from the highest.
_BANDS: Final = (("above 80 %", 0.8), ("50 to 80 %", 0.5), ("below 50 %", 0.0))
#: Bands of utilisation, from the lowest.
BANDS: Final = tuple(name for name, _ in reversed(_BANDS))
#: Name of all bands together.
ALL_BANDS: Final = "any"
FILE: Final = "model_errors.csv"
#: Study whose held-out rates of objects test the intervals, and the file of their errors.
OBJECTS_STUDY: Final = "s3"
OBJECTS_FILE: Final = "object_errors.csv"
#: Fewest rows that make an interval.
_ROWS_MIN: Final = 9


@dataclass(frozen=True)
class HeldOutError:
    """One held-out number of a study."""

    id: str  #: ``<row id>:<metric>``
    cluster: str  #: Rows of one cluster share its hardware, and so their errors
    kind: Kind
    #: True if a fit has seen other rows of its cluster, False if the cluster is new to the parameter set
    calibrated: bool
    utilisation: float  #: Of the busiest resource in the simulation, 0 to 1
    measured_over_simulated: float

    @property
    def band(self) -> str:
        """Name of its band of utilisation."""
        return band_of(self.utilisation)


@dataclass(frozen=True, kw_only=True)
class ErrorBand(Documented):
    r"""The errors of held-out rows of a kind in a band of utilisation.

    Attributes
    ----------
    kind, band
        Kind of row, and band of utilisation or `ALL_BANDS`.
    rows, clusters
        Held-out rows behind the numbers, and the clusters that they were measured on [count].
    low, high
        Interval of measured over simulated values: `COVERAGE` of new rows lie in it if they are like these,
        and if `has_coverage`.
    median_error_percent
        Median of \|simulated / measured - 1\| [%].
    """

    kind: Kind
    band: str
    rows: int
    clusters: int
    low: float
    high: float
    median_error_percent: float

    @property
    def has_coverage(self) -> bool:
        """True if the rows are enough for an interval that holds `COVERAGE` of new ones."""
        return self.rows >= _ROWS_MIN


def band_of(utilisation: float) -> str:
    """Return the name of the band of a utilisation, 0 to 1.

    >>> band_of(0.49), band_of(0.5), band_of(0.81)
    ('below 50 %', '50 to 80 %', 'above 80 %')
    """
    return next(name for name, low in _BANDS if utilisation >= low)


def error_band(
    kind: Kind,
    band: str,
    *,
    calibrated: bool,
    errors: Sequence[HeldOutError] | None = None,
) -> ErrorBand:
    """Return the errors of a kind of row in a band, or in all bands where too few rows tell.

    Parameters
    ----------
    kind
        Kind of row.
    band
        One of `BANDS`.
    calibrated
        True for a cluster that its parameter set was calibrated to. Otherwise the errors are those of
        clusters that no fit has seen, and at least as wide as those of calibrated ones.
    errors
        Held-out numbers. None takes those that ship.

    Notes
    -----
    The ends are order statistics. Of n exchangeable rows and a new one, the new one lies between the k-th
    lowest and the k-th highest with probability (n + 1 - 2k) / (n + 1) at least [1]_. The largest k that
    keeps `COVERAGE` is taken, and a band needs 9 rows for k = 1. Fewer rows of new clusters widen the
    interval to the outermost of them. Rows of one cluster are alike, so hardware
    unlike all of them may be further off.

    References
    ----------
    .. [1] V. Vovk, A. Gammerman, G. Shafer, "Algorithmic Learning in a Random World", Springer (2005).
    """
    listed = held_out_errors() if errors is None else errors
    own = _narrowest(kind, band, [one for one in listed if one.calibrated])
    if calibrated:
        return own
    of_new = [one for one in listed if not one.calibrated]
    if not any(one.kind == kind for one in of_new):
        return own
    new = _narrowest(kind, band, of_new)
    return replace(new, low=min(new.low, own.low), high=max(new.high, own.high))


def _narrowest(kind: Kind, band: str, errors: Sequence[HeldOutError]) -> ErrorBand:
    """Return the errors in a band, or in all bands where the band has too few rows."""
    of_kind = [error for error in errors if error.kind == kind]
    of_band = [error for error in of_kind if error.band == band]
    if len(of_band) >= _ROWS_MIN:
        return _summary(kind, band, of_band)
    return _summary(kind, ALL_BANDS, of_kind)


def error_bands(*, calibrated: bool) -> list[ErrorBand]:
    """Return the errors of every kind of row in every band, each once."""
    kinds = dict.fromkeys(KINDS.values())
    return list(
        dict.fromkeys(
            error_band(kind, band, calibrated=calibrated)
            for kind in kinds
            for band in BANDS
        )
    )


def _rank(rows: int) -> int:
    """Return the rank of the row at the end of an interval, counted from the outside. 0: too few rows."""
    # The small number keeps (9 + 1) × 0.1 from rounding below 1.
    return int((rows + 1) * (1 - COVERAGE) / 2 + 1e-9)


def _summary(kind: Kind, band: str, errors: Sequence[HeldOutError]) -> ErrorBand:
    ratios = sorted(error.measured_over_simulated for error in errors)
    # With fewer rows than an interval needs, its ends are the outermost rows.
    rank = max(1, _rank(len(ratios)))
    off = sorted(abs(1 / ratio - 1) for ratio in ratios)
    middle = (off[(len(off) - 1) // 2] + off[len(off) // 2]) / 2
    return ErrorBand(
        kind=kind,
        band=band,
        rows=len(ratios),
        clusters=len({error.cluster for error in errors}),
        low=ratios[rank - 1],
        high=ratios[-rank],
        median_error_percent=100 * middle,
    )


@cache
def held_out_errors(file: str = FILE) -> tuple[HeldOutError, ...]:
    """Return the held-out numbers that ship: those of images, or those of objects (`OBJECTS_FILE`)."""
    return tuple(
        HeldOutError(
            id=row["id"],
            cluster=row["cluster"],
            kind=row["kind"],  # type: ignore[arg-type]
            calibrated=row["calibrated"] == "yes",
            utilisation=float(row["utilisation"]),
            measured_over_simulated=float(row["measured_over_simulated"]),
        )
        for row in shipped_rows(file)
    )


class Coverage(NamedTuple):
    """How many held-out numbers intervals hold."""

    within: int  #: Numbers in their interval [count]
    rows: int  #: Numbers [count]
    clusters: int  #: Clusters that they were measured on [count]


def object_coverage() -> Coverage:
    """Count the held-out rates of objects that the intervals of clusters hold that no fit has seen."""
    errors = held_out_errors(OBJECTS_FILE)
    within = 0
    for error in errors:
        band = error_band(error.kind, error.band, calibrated=error.calibrated)
        within += band.low <= error.measured_over_simulated <= band.high
    return Coverage(within, len(errors), len({error.cluster for error in errors}))


def shipped_rows(file: str) -> Iterator[dict[str, str]]:
    """Yield the lines of a table of this package by column."""
    text = files(__package__).joinpath(file).read_text(encoding="utf-8")
    yield from csv.DictReader(text.splitlines())


def errors_text(errors: Iterable[HeldOutError]) -> str:
    """Return the content of a file of errors. Further digits would change with the processor."""
    return table_text(
        {
            "id": error.id,
            "cluster": error.cluster,
            "kind": error.kind,
            "calibrated": "yes" if error.calibrated else "no",
            "utilisation": f"{error.utilisation:.3f}",
            "measured_over_simulated": f"{error.measured_over_simulated:.4g}",
        }
        for error in errors
    )


def table_text(rows: Iterable[Mapping[str, str]]) -> str:
    """Return the content of a table of this package, which `shipped_rows` reads."""
    # Readers of the table need no Polars.
    import polars as pl

    return pl.DataFrame(list(rows)).write_csv()

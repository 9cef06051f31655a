"""State the error of a calibration by kind of row and band of utilisation, and the noise of repeats."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, median, stdev
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from stripesim.calibration.ledger.model_errors import (
    BANDS,
    KIND_OF_METRIC,
    KINDS,
    band_of,
)
from stripesim.models.documents import Documented

if TYPE_CHECKING:
    from stripesim.scenarios.answers.calibrate.rows import CalibrationRow

Basis = Literal["held-out", "leave-one-out"]
#: Maximum relative error of a correct row, over its measured value.
TOLERANCE: Final = 0.25


@dataclass(frozen=True)
class JudgedValue(Documented):
    """A measured value with the simulated values before and after calibration."""

    id: str  #: ``<row id>:<metric>``
    role: str
    metric: str
    load: str
    measured: float
    #: None if it is withheld, and always if the audit refuses its run
    before: float | None
    after: float | None
    #: Check of the audit that a run of the row fails. Its simulated values are withheld, unless unchecked.
    refused: str | None = None
    utilisation: float = 0.0  #: Of the busiest resource after calibration, 0 to 1
    #: What the other fitted rows predict for a fitted one. None for others, and for metrics not fitted.
    left_out: float | None = None
    #: Class of resources whose queue is too slow for a percentile of the run after calibration, or None
    slow_class: str | None = None

    in_document: ClassVar = (
        "id",
        "role",
        ("published", "measured"),
        "before",
        "after",
        "refused",
        "utilisation",
        "left_out",
        "slow_class",
    )

    def is_within(self, simulated: float | None) -> bool:
        """Return True if a simulated value is known, and within `TOLERANCE` of the measured one."""
        return simulated is not None and abs(simulated / self.measured - 1) <= TOLERANCE


@dataclass(frozen=True, kw_only=True)
class ErrorLine(Documented):
    r"""The error of a calibration on values of a kind in a band of utilisation.

    Attributes
    ----------
    basis
        ``held-out``: rows that the fit has not seen. ``leave-one-out``: fitted rows, each as the other rows
        predict it.
    kind, band
        Kind of row, and band of the busiest resource's utilisation after the calibration.
    values, within_25_percent
        Values, and those whose error is at most 25 % [count].
    median_error_percent, worst_error_percent
        Of \|simulated / measured - 1\| [%].
    median_error_percent_before
        The same with the shipped set [%], None if the audit refuses all its runs.
    """

    basis: Basis
    kind: str
    band: str
    values: int
    within_25_percent: int
    median_error_percent: float
    worst_error_percent: float
    median_error_percent_before: float | None


def error_lines(values: Iterable[JudgedValue]) -> list[ErrorLine]:
    """Return the errors by kind and band on held-out values, or else on fitted ones, left out one by one."""
    known = [value for value in values if value.after is not None]
    basis: Basis = "held-out"
    judged = [(value, value.after) for value in known if value.role == "held-out"]
    if not judged:
        basis = "leave-one-out"
        judged = [
            (value, value.left_out) for value in known if value.left_out is not None
        ]
    lines = []
    for kind in dict.fromkeys(KINDS.values()):
        for band in BANDS:
            own = [
                (value, simulated)
                for value, simulated in judged
                if (KIND_OF_METRIC[value.metric], band_of(value.utilisation))
                == (kind, band)
            ]
            if own:
                lines.append(_line(basis, kind, band, own))
    return lines


def _line(
    basis: Basis,
    kind: str,
    band: str,
    own: Sequence[tuple[JudgedValue, float | None]],
) -> ErrorLine:
    errors = [
        abs(simulated / value.measured - 1)
        for value, simulated in own
        if simulated is not None
    ]
    before = [
        abs(value.before / value.measured - 1)
        for value, _ in own
        if value.before is not None
    ]
    return ErrorLine(
        basis=basis,
        kind=kind,
        band=band,
        values=len(errors),
        within_25_percent=sum(error <= TOLERANCE for error in errors),
        median_error_percent=100 * median(errors),
        worst_error_percent=100 * max(errors),
        median_error_percent_before=100 * median(before) if before else None,
    )


def left_out(measured: float, simulated: float, leverage: float) -> float:
    """Return what the other rows predict for a fitted row.

    Parameters
    ----------
    measured, simulated
        The value, and the one that was fitted to it.
    leverage
        Share of the simulated value that the row itself decides, 0 to 1.

    Notes
    -----
    Without the row, the residual of a linear fit grows from r to r / (1 - leverage) [1]_. Here the residual
    is ln(simulated / measured), linear near the optimum.

    References
    ----------
    .. [1] D. M. Allen, "The relationship between variable selection and data augmentation and a method for
       prediction", Technometrics 16 (1974), 125-127.
    """
    residual = math.log(simulated / measured) / (1 - min(leverage, _LEVERAGE_MAX))
    return measured * math.exp(residual)


#: Highest leverage of a row. With 1, no other row tells anything about it.
_LEVERAGE_MAX: Final = 0.99


@dataclass(frozen=True, kw_only=True)
class RepeatNoise(Documented):
    """Differences between repeated measurements of one load.

    Attributes
    ----------
    kind
        Kind of row.
    loads
        Loads that were measured more than once [count].
    noise_percent
        Median over loads of the standard deviation over the mean [%].
    """

    kind: str
    loads: int
    noise_percent: float


def repeat_noise(rows: Iterable[CalibrationRow]) -> list[RepeatNoise]:
    """Return the noise of rows that repeat a run, by kind of row."""
    by_run: dict[tuple[Hashable, str, str], list[float]] = {}
    for row in rows:
        for metric, value in row.measured.items():
            repeated = (row.run, row.load_text, metric)
            by_run.setdefault(repeated, []).append(value)
    by_kind: dict[str, list[float]] = {}
    for (*_, metric), values in by_run.items():
        if len(values) > 1:
            kind = KIND_OF_METRIC[metric]
            by_kind.setdefault(kind, []).append(stdev(values) / mean(values))
    return [
        RepeatNoise(kind=kind, loads=len(noises), noise_percent=100 * median(noises))
        for kind, noises in by_kind.items()
    ]

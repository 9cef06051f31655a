"""The error of simulated durations of planned changes, and the interval that it gives to a further one.

``duration_errors.csv`` holds one line for each timed change of study changes: what was measured over what the
simulator gives. ``python docs/record.py changes`` writes it. Intervals come from the changes of role
calibration alone, so the held-out ones tell what they are worth.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, log, log1p, sqrt
from statistics import mean, stdev
from typing import Final

from stripesim.calibration.ledger.model_errors import COVERAGE, shipped_rows, table_text
from stripesim.sim.observe.intervals import student_quantile

FILE: Final = "duration_errors.csv"
#: Study whose changes give the errors.
STUDY: Final = "changes"


@dataclass(frozen=True)
class DurationError:
    """A timed change."""

    id: str
    role: str
    measured_over_simulated: float


@cache
def duration_errors() -> tuple[DurationError, ...]:
    """Return the errors of the timed changes that ship."""
    return tuple(
        DurationError(row["id"], row["role"], float(row["measured_over_simulated"]))
        for row in shipped_rows(FILE)
    )


def duration_interval(
    simulated_s: float,
    *,
    half: float = 0.0,
    without: str | None = None,
    errors: Sequence[DurationError] | None = None,
) -> tuple[float, float]:
    r"""Return the interval that holds a measured duration with probability `COVERAGE` [s].

    Parameters
    ----------
    simulated_s
        Simulated duration [s].
    half
        Half the width of the simulation's own interval, relative to the duration [1].
    without
        Calibration row to leave out: a row's own error must not decide its interval.
    errors
        Errors of timed changes. None takes those that ship.

    Notes
    -----
    Logarithms of measured over simulated durations of the n calibration rows have mean :math:`m` and
    deviation :math:`s`. A further one lies within :math:`m \pm t \, s \sqrt{1 + 1/n}` with the probability of
    Student's quantile :math:`t`, if it is like them. The simulation's own half-width is independent and adds
    in squares. The interval does not centre on the simulated duration, because that is biased.
    """
    listed = duration_errors() if errors is None else errors
    logs = [
        log(error.measured_over_simulated)
        for error in listed
        if error.role == "calibration" and error.id != without
    ]
    quantile = student_quantile(len(logs) - 1, coverage=COVERAGE)
    model_half = quantile * stdev(logs) * sqrt(1 + 1 / len(logs))
    total_half = sqrt(model_half**2 + log1p(half) ** 2)
    middle = mean(logs)
    return simulated_s * exp(middle - total_half), simulated_s * exp(
        middle + total_half
    )


def coverage(errors: Sequence[DurationError]) -> dict[str, dict[str, int]]:
    """Return how many rows of each role their intervals hold, each calibration row without itself."""
    counts: dict[str, dict[str, int]] = {}
    for error in errors:
        low, high = duration_interval(1.0, without=error.id, errors=errors)
        count = counts.setdefault(error.role, {"rows": 0, "within": 0})
        count["rows"] += 1
        count["within"] += low <= error.measured_over_simulated <= high
    return counts


def duration_errors_text(errors: Iterable[DurationError]) -> str:
    """Return the content of ``duration_errors.csv``. Further digits would change with the processor."""
    return table_text(
        {
            "id": error.id,
            "role": error.role,
            "measured_over_simulated": f"{error.measured_over_simulated:.4g}",
        }
        for error in errors
    )

"""Compare a registered prediction with what was measured later. See `score`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final

import numpy as np

from stripesim.calibration.ledger.model_errors import BANDS, KINDS
from stripesim.models.documents import Documented
from stripesim.models.problems import MeasuredError, Problem
from stripesim.scenarios.answers.calibrate.fio_output import FioLoad
from stripesim.scenarios.answers.predict.measured_values import (
    OPS,
    MeasuredValue,
    contradictions,
    read_measured_file,
)
from stripesim.scenarios.answers.predict.register import (
    COORDINATES,
    SEAL,
    read_register,
    rows_of,
)

#: Name of the line of all bands together.
_ALL: Final = "all"


@dataclass(frozen=True, kw_only=True)
class ScoredValue(Documented):
    """A predicted number and its measured value.

    Attributes
    ----------
    id
        Name of the row.
    quantity
        Column of the result row, with its unit.
    kind, band
        Kind of row, and band of the utilisation that was predicted.
    measured
        Mean of the repeats, in the unit of the quantity.
    repeats
        Measurements behind it [count].
    noise
        Standard deviation of the repeats over their mean, None for a single one.
    predicted, low, high
        What was predicted.
    """

    id: str
    quantity: str
    kind: str
    band: str
    measured: float
    repeats: int
    noise: float | None
    predicted: float
    low: float
    high: float

    in_document = ("*", "inside", "error")

    @property
    def inside(self) -> bool:
        """True if the measured value lies in the interval."""
        return self.low <= self.measured <= self.high

    @property
    def error(self) -> float:
        """Predicted over measured, less one."""
        return self.predicted / self.measured - 1


@dataclass(frozen=True, kw_only=True)
class ScoreLine(Documented):
    r"""The score of the values of a kind in a band of utilisation.

    Attributes
    ----------
    kind, band
        Kind of row and band, or ``all``.
    values, inside
        Values compared, and those in their interval [count].
    expected_inside
        Values that intervals were made to hold [count].
    median_error_percent, worst_error_percent
        Of \|predicted / measured - 1\| [%].
    noise_percent
        Median noise of values with repeats [%], None without any.
    """

    kind: str
    band: str
    values: int
    inside: int
    expected_inside: float
    median_error_percent: float
    worst_error_percent: float
    noise_percent: float | None


@dataclass(frozen=True, kw_only=True)
class PredictionScore(Documented):
    """A registered prediction, compared.

    Attributes
    ----------
    register
        The document of the register.
    rows
        Values compared.
    missing
        Predicted rows without a measured value.
    """

    register: Mapping[str, Any]
    rows: tuple[ScoredValue, ...]
    missing: tuple[str, ...]

    in_document = (
        ("register", "head"),
        "coverage",
        "rows",
        ("summary", "total"),
        ("bands", "lines"),
        "missing",
    )

    @property
    def coverage(self) -> float:
        """Share of values that the intervals are made to hold."""
        return float(self.register["coverage"])

    @property
    def total(self) -> ScoreLine:
        """The score of all values."""
        return self._line(_ALL, _ALL, self.rows)

    def lines(self) -> list[ScoreLine]:
        """Return the score of each kind of row in each band that has values."""
        parts = [
            (kind, band, [row for row in self.rows if (row.kind, row.band) == (kind, band)])
            for kind in dict.fromkeys(KINDS.values())
            for band in BANDS
        ]  # fmt: skip
        return [self._line(kind, band, rows) for kind, band, rows in parts if rows]

    def _line(self, kind: str, band: str, rows: Sequence[ScoredValue]) -> ScoreLine:
        errors = [100 * abs(row.error) for row in rows]
        noises = [row.noise for row in rows if row.noise is not None]
        return ScoreLine(
            kind=kind,
            band=band,
            values=len(rows),
            inside=sum(row.inside for row in rows),
            expected_inside=self.coverage * len(rows),
            median_error_percent=median(errors),
            worst_error_percent=max(errors),
            noise_percent=100 * median(noises) if noises else None,
        )

    @property
    def head(self) -> dict[str, Any]:
        """Identity of the register."""
        keys = ("registered", "scenario", "seed", "versions", SEAL)
        return {key: self.register[key] for key in keys}


def score(register: Path, measured: Path) -> PredictionScore:
    """Compare a registered prediction with measured values.

    Parameters
    ----------
    register
        A file that `stripesim predict --register` wrote.
    measured
        A table, fio's JSON, or a document of ``run --json``. See `read_measured_file`.

    Returns
    -------
    PredictionScore
        The values that were measured, each with its error and its interval.

    Raises
    ------
    AnswerError
        If the register was changed or cannot be read.
    MeasuredError
        If the measured values cannot be read, or fit no predicted row.
    """
    document = read_register(register)
    rows = rows_of(document)
    schemes = list(dict.fromkeys(str(row["scheme"]) for row in rows))
    file = read_measured_file(measured, schemes)
    if file.load is not None:
        _check_load(document.get("configuration", {}), file.load, measured)
    return score_values(document, file.values)


def score_values(
    register: Mapping[str, Any], values: Iterable[MeasuredValue]
) -> PredictionScore:
    """Compare the document of a register with measured values.

    Raises
    ------
    MeasuredError
        If a value fits no predicted row or several, or contradicts another one, with a line for each, or no
        value is left.
    """
    rows = rows_of(register)
    problems: list[Problem] = []
    by_target: dict[tuple[int, str], list[MeasuredValue]] = {}
    for value in values:
        at = _row_of(value, rows, problems)
        if at is not None:
            by_target.setdefault((at, value.quantity), []).append(value)
    problems += [
        _repeated(found) for found in by_target.values() if _names_repeat(found)
    ]
    in_flight = _in_flight(register)
    for at, row in enumerate(rows):
        of_row = {
            quantity: found for (of, quantity), found in by_target.items() if of == at
        }
        problems += _contradictions(row, of_row, in_flight)
    if problems:
        raise MeasuredError(*problems)
    scored = [
        _scored(rows[at], quantity, found)
        for (at, quantity), found in by_target.items()
    ]
    compared = tuple(one for one in scored if one is not None)
    if not compared:
        got = "no value of a predicted row"
        raise MeasuredError(Problem(place="MEASURED", got=got, wanted="some"))
    measured_ids = {one.id for one in compared}
    missing = tuple(row["id"] for row in rows if row["id"] not in measured_ids)
    return PredictionScore(register=register, rows=compared, missing=missing)


def _row_of(
    value: MeasuredValue, rows: Sequence[Mapping[str, Any]], problems: list[Problem]
) -> int | None:
    """Return the place of the row that a value is of, or record why there is not exactly one."""
    fitting = [at for at, row in enumerate(rows) if _fits(value, row)]
    if len(fitting) == 1:
        return fitting[0]
    got = ", ".join(map(str, value.coordinates.values()))
    names = "; ".join(rows[at]["id"] for at in fitting or range(len(rows)))
    wanted = f"one of the predicted rows: {names}"
    if fitting:
        wanted = f"what tells {len(fitting)} rows apart ({', '.join(COORDINATES)}, or id): {names}"
    key = "id" if value.row_id else ""
    problems.append(
        Problem(place=value.place, key=key, got=value.row_id or got, wanted=wanted)
    )
    return None


def _fits(value: MeasuredValue, row: Mapping[str, Any]) -> bool:
    if value.row_id and value.row_id != row["id"]:
        return False
    return all(row.get(key) == stated for key, stated in value.coordinates.items())


def _names_repeat(values: Sequence[MeasuredValue]) -> bool:
    """Return True if two values of one number have the same name of a repeat, as a copied line has."""
    return len({value.repeat for value in values}) < len(values)


def _repeated(values: Sequence[MeasuredValue]) -> Problem:
    last = values[-1]
    got = f"{len(values)} values of {last.quantity} of one row"
    wanted = "one, or a column repeat that numbers them"
    return Problem(place=last.place, key="repeat", got=got, wanted=wanted)


def _contradictions(
    row: Mapping[str, Any],
    values: Mapping[str, Sequence[MeasuredValue]],
    in_flight: int | None,
) -> Iterator[Problem]:
    """Return the contradictions between the measured values of a predicted row, by quantity."""
    means = {
        quantity: fmean(value.value for value in found)
        for quantity, found in values.items()
    }
    places = {quantity: found[-1].place for quantity, found in values.items()}
    # A mix of operations on objects moves other bytes.
    block_bytes = row.get("block_size_bytes") if row.get("op") in OPS else None
    return contradictions(means, places, block_bytes=block_bytes, in_flight=in_flight)


def _in_flight(register: Mapping[str, Any]) -> int | None:
    """Return the requests that the predicted load keeps in flight, None unless it is one closed loop."""
    configuration = register.get("configuration", {})
    load = configuration.get("workload", {})
    if load.get("kind") != "closed" or configuration.get("workloads"):
        return None
    if configuration.get("faults") or load.get("completions") == "newest":
        return None
    return int(load["clients"] * load["queue_depth"])


def _scored(
    row: Mapping[str, Any], quantity: str, values: Sequence[MeasuredValue]
) -> ScoredValue | None:
    """Return a value compared. None if the row does not predict the quantity."""
    predicted = next(
        (one for one in row["values"] if one["quantity"] == quantity), None
    )
    if predicted is None:
        return None
    numbers = np.array([value.value for value in values])
    mean = float(numbers.mean())
    noise = None
    if len(numbers) > 1:
        noise = float(numbers.std(ddof=1)) / mean
    return ScoredValue(
        id=row["id"],
        quantity=quantity,
        kind=KINDS[quantity],
        band=row["band"],
        measured=mean,
        repeats=len(numbers),
        noise=noise,
        predicted=predicted["predicted"],
        low=predicted["low"],
        high=predicted["high"],
    )


def _check_load(configuration: Mapping[str, Any], load: FioLoad, path: Path) -> None:
    """Reject a closed loop that keeps other requests in flight than the predicted one."""
    predicted = configuration.get("workload", {})
    if predicted.get("kind") != "closed":
        return
    wanted = (predicted["clients"], predicted["queue_depth"])
    if wanted == (load.clients, load.queue_depth):
        return
    raise MeasuredError(
        Problem(
            place=str(path),
            key="numjobs, iodepth",
            got=f"{load.clients}, {load.queue_depth}",
            wanted=f"{wanted[0]}, {wanted[1]}, as predicted",
        )
    )

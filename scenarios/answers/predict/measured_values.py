"""Read measured values to compare with a prediction: a table, fio's JSON, or a document of `run --json`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from stripesim.calibration.ledger.model_errors import KINDS
from stripesim.calibration.measured.rows import (
    is_rate_of_bytes,
    mean_latency_bounds_ms,
    p99_bounds,
)
from stripesim.calibration.measured.tables import CsvRow, misnamed_metrics, read_rows
from stripesim.models.problems import MeasuredError, Problem
from stripesim.scenarios.answers.calibrate.fio_output import (
    FioLoad,
    read_fio,
    scheme_of,
)
from stripesim.scenarios.clusters.fio import read_output
from stripesim.scenarios.schema.units import parse_size_bytes

#: Factor from each unit to that of the quantity. A small b would mean bits.
_BYTES: Final[Mapping[str, float]] = {
    "B/s": 1.0, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9,
    "KiB/s": 1 << 10, "MiB/s": 1 << 20, "GiB/s": 1 << 30, "Mbit/s": 1e6 / 8, "Gbit/s": 1e9 / 8,
}  # fmt: skip
_UNITS: Final[Mapping[str, float]] = {
    "ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9,
    "1/s": 1.0, "IOPS": 1.0, "iops": 1.0, **_BYTES,
}  # fmt: skip
_TIMES: Final = ("ns", "us", "µs", "ms", "s")
#: Metrics without a unit in their name: quantity, and the units that a column ``unit`` may state. The first
#: one is meant where none does, except for times.
_PLAIN: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "iops": ("iops", ("1/s", "IOPS", "iops")),
    "throughput": ("throughput_bytes_per_s", tuple(_BYTES)),
    "mean": ("latency_mean_ns", _TIMES),
    "p50": ("latency_p50_ns", _TIMES),
    "p95": ("latency_p95_ns", _TIMES),
    "p99": ("latency_p99_ns", _TIMES),
}
#: Metrics with their unit, as studies and results name them: quantity and unit.
_NAMED: Final[Mapping[str, tuple[str, str]]] = {
    "mb_s": ("throughput_bytes_per_s", "MB/s"),
    "throughput_bytes_per_s": ("throughput_bytes_per_s", "B/s"),
    **{
        f"latency_{part}_{unit}": (f"latency_{part}_ns", unit)
        for part in ("mean", "p50", "p95", "p99")
        for unit in ("ns", "us", "ms", "s")
    },
}
#: Operations whose requests have the size that their row states.
OPS: Final = ("read", "write")
#: Names of metrics, for messages.
METRICS_TEXT: Final = (
    "iops, mb_s, latency_mean_ms, latency_p50_ms, latency_p95_ms, latency_p99_ms "
    "(or _ns, _us, _s), or mean, p50, p95, p99 with a column unit"
)
#: Columns that say which row a line is of, and the coordinate that each states.
_COLUMNS: Final[Mapping[str, str]] = {
    "scheme": "scheme",
    "op": "op",
    "pattern": "pattern",
    "block_size_bytes": "block_size_bytes",
    "block_bytes": "block_size_bytes",
    "block": "block_size_bytes",
    "workload": "workload",
}


@dataclass(frozen=True, kw_only=True)
class MeasuredValue:
    """One measured number.

    Attributes
    ----------
    place
        File, and line of a table, for messages.
    row_id
        Name of the predicted row, empty if the coordinates tell.
    coordinates
        What the source states of scheme, operation, pattern, block size and workload.
    quantity
        Column of the result row.
    value
        In the unit of the quantity.
    repeat
        Name of the repetition, empty without one.
    """

    place: str
    row_id: str = ""
    coordinates: Mapping[str, Any] = field(default_factory=dict)
    quantity: str
    value: float
    repeat: str = ""


@dataclass(frozen=True, kw_only=True)
class MeasuredFile:
    """Content of a file: values and, where it states one, the closed loop that was measured."""

    values: tuple[MeasuredValue, ...]
    load: FioLoad | None = None


def read_measured_file(
    path: Path,
    schemes: Sequence[str],
    *,
    wanted: str = "a .csv table, fio's JSON, or a document of run --json",
) -> MeasuredFile:
    """Read measured values.

    Parameters
    ----------
    path
        A table (``.csv``), the JSON output of one fio run, or a document of ``run --json``.
    schemes
        Predicted schemes. The name of a fio output may begin with one.
    wanted
        Kinds of files that the caller reads, for messages.

    Raises
    ------
    MeasuredError
        If the file cannot be used, with a line for each problem.
    """
    if path.suffix == ".csv":
        return MeasuredFile(values=tuple(_read_table(path)))
    document = read_output(path, wanted)
    if "rows" in document:
        return MeasuredFile(values=tuple(_values_of_run(path, document["rows"])))
    load = read_fio(path)
    return MeasuredFile(values=values_of_load(path, load, schemes), load=load)


def contradictions(
    values: Mapping[str, float],
    places: Mapping[str, str],
    *,
    block_bytes: int | None,
    in_flight: int | None,
) -> Iterator[Problem]:
    """Yield the measured values of a row that contradict each other, as those in another unit do.

    Parameters
    ----------
    values, places
        Value of each quantity, in its unit, and where it was measured.
    block_bytes
        Size of each request [B], None if they differ.
    in_flight
        Requests that a closed loop keeps in flight [count], None for another load.
    """
    iops = values.get("iops")
    mean_ns = values.get("latency_mean_ns")
    p99_ns = values.get("latency_p99_ns")
    bytes_per_s = values.get("throughput_bytes_per_s")
    if mean_ns and p99_ns:
        low_ns, high_ns = p99_bounds(mean_ns)
        if not low_ns <= p99_ns <= high_ns:
            yield Problem(
                place=places["latency_p99_ns"],
                key="p99",
                got=f"{p99_ns / 1e6:.4g} ms",
                wanted=f"{low_ns / 1e6:.3g} to {high_ns / 1e6:.3g} ms, with a mean of {mean_ns / 1e6:.3g} ms",
            )
    if iops and mean_ns and in_flight:
        low_ms, high_ms = mean_latency_bounds_ms(iops, in_flight)
        if not low_ms <= mean_ns / 1e6 <= high_ms:
            yield Problem(
                place=places["latency_mean_ns"],
                key="mean",
                got=f"{mean_ns / 1e6:.4g} ms",
                wanted=f"{low_ms:.3g} to {high_ms:.3g} ms: {in_flight:,} in flight at {iops:,.6g} requests/s "
                "(Little's law)",
            )
    if not (iops and bytes_per_s and block_bytes):
        return
    if not is_rate_of_bytes(bytes_per_s, iops, block_bytes):
        yield Problem(
            place=places["throughput_bytes_per_s"],
            key="throughput",
            got=f"{bytes_per_s / 1e6:.4g} MB/s",
            wanted=f"about {iops * block_bytes / 1e6:.4g} MB/s: {iops:,.6g} requests/s of {block_bytes:,} B",
        )


def values_of_load(
    path: Path, load: FioLoad, schemes: Sequence[str]
) -> tuple[MeasuredValue, ...]:
    """Return the numbers of a load that one file holds."""
    coordinates = {
        "op": load.op,
        "pattern": load.pattern,
        "block_size_bytes": load.block_bytes,
    }
    if len(schemes) > 1:
        coordinates["scheme"] = scheme_of(path, schemes)
    values = []
    for metric, number in load.measured.items():
        quantity, factor = _quantity_of(metric, "")
        values.append(
            MeasuredValue(
                place=str(path),
                coordinates=coordinates,
                quantity=quantity,
                value=number * factor,
            )
        )
    return tuple(values)


def _values_of_run(path: Path, rows: Any) -> Iterator[MeasuredValue]:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        wanted = "a list of rows, as run --json writes it"
        raise MeasuredError(
            Problem(place=str(path), key="rows", got="another value", wanted=wanted)
        )
    for number, row in enumerate(rows):
        coordinates = {
            key: row[key]
            for key in dict.fromkeys(_COLUMNS.values())
            if row.get(key) is not None
        }
        for quantity in KINDS:
            value = row.get(quantity)
            if isinstance(value, int | float) and value > 0:
                yield MeasuredValue(
                    place=f"{path}: rows[{number}]",
                    coordinates=coordinates,
                    quantity=quantity,
                    value=float(value),
                )


# --- tables -----------------------------------------------------------------------------------------------


def _read_table(path: Path) -> list[MeasuredValue]:
    """Read a table with a line for each value, or a column for each metric."""
    problems: list[Problem] = []
    values: list[MeasuredValue] = []
    rows = read_rows(path, (), problems)
    if rows and "metric" not in rows[0].cells:
        wanted = f"{METRICS_TEXT} in a column metric"
        problems += misnamed_metrics(rows[0], (*_NAMED, "iops"), wanted)
    for row in rows:
        before = len(problems)
        values += _values_of_line(row)
        if len(problems) == before and not _metrics_of(row):
            row.refuse("metric", METRICS_TEXT)
    if problems:
        raise MeasuredError(*problems)
    return values


def _values_of_line(row: CsvRow) -> Iterator[MeasuredValue]:
    """Yield the values of a line, and record what is wrong with it."""
    coordinates = _coordinates(row)
    if not row.words("id") and not coordinates:
        row.refuse("id", "the id of a predicted row, or its scheme in a column scheme")
    for column, metric in _metrics_of(row):
        try:
            quantity, factor = _quantity_of(metric, row.words("unit"))
        except ValueError as error:
            row.refuse("unit" if metric in _PLAIN else "metric", str(error))
            continue
        number = row.positive(column)
        if number is None:
            if not row.words(column):
                row.refuse(column, "a number above 0")
            continue
        yield MeasuredValue(
            place=row.where,
            row_id=row.words("id"),
            coordinates=coordinates,
            quantity=quantity,
            value=number * factor,
            repeat=row.words("repeat"),
        )


def _metrics_of(row: CsvRow) -> list[tuple[str, str]]:
    """Return the columns of a line that hold a value, each with its metric."""
    if "metric" in row.cells:
        return [("value", row.text("metric").lower())]
    known = (*_NAMED, "iops")
    return [(column, column) for column in known if row.words(column)]


def _quantity_of(metric: str, unit: str) -> tuple[str, float]:
    """Return the quantity that a metric means, and the factor to its unit.

    Raises
    ------
    ValueError
        The metrics or units that were wanted.
    """
    if metric in _NAMED:
        quantity, unit = _NAMED[metric]
        return quantity, _UNITS[unit]
    if metric not in _PLAIN:
        raise ValueError(METRICS_TEXT)
    quantity, units = _PLAIN[metric]
    if not unit and units != _TIMES:
        unit = units[0]
    if unit not in units:
        raise ValueError(f"one of {', '.join(units)}")
    return quantity, _UNITS[unit]


def _coordinates(row: CsvRow) -> dict[str, Any]:
    coordinates: dict[str, Any] = {}
    for column, key in _COLUMNS.items():
        text = row.words(column)
        if not text:
            continue
        if key != "block_size_bytes":
            coordinates[key] = text
            continue
        try:
            coordinates[key] = _size_bytes(text)
        except ValueError:
            row.refuse(column, "a size such as 4k or 4096")
    return coordinates


def _size_bytes(text: str) -> int:
    """Parse a size, which may be a plain number of bytes."""
    if re.fullmatch(r"\d{1,15}", text):
        return int(text)
    return parse_size_bytes(text)

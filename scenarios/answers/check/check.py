"""Check a measured number against the simulated cluster, and simulate what could explain a difference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Final

from stripesim.calibration.measured.rows import mean_latency_bounds_ms
from stripesim.models.documents import Documented
from stripesim.models.problems import MeasuredError, Problem, RefusedError, file_reason
from stripesim.scenarios.answers.calibrate.fio_output import FioLoad, scheme_of
from stripesim.scenarios.answers.check.causes import CAUSES, Cause
from stripesim.scenarios.answers.check.rados_bench import (
    is_rados_bench,
    read_rados_bench,
)
from stripesim.scenarios.answers.predict.measured_values import (
    OPS,
    MeasuredValue,
    contradictions,
    read_measured_file,
    values_of_load,
)
from stripesim.scenarios.answers.predict.register import (
    PredictedValue,
    is_calibrated,
    predicted_values,
)
from stripesim.scenarios.answers.run.execute import parameters_of
from stripesim.scenarios.cells.measured import ROUNDS, request_count
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import slow_class
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.schema.keys import Cell, cells, row_name
from stripesim.scenarios.schema.loader import Override, Overrides
from stripesim.scenarios.schema.scenario import Scenario, as_scenario
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.observe.progress import OnStep, silent
from stripesim.sim.observe.window import SATURATED_BELOW

#: Largest relative difference of a simulated cause that explains a measured value.
EXPLAINED: Final = 0.1
#: Causes that are shown.
SHOWN: Final = 3
#: Quantities that decide how close a cause comes, the leading one first. A median and a mean say the same.
_COMPARED: Final = ("iops", "throughput_bytes_per_s", "latency_mean_ns", "latency_p99_ns")  # fmt: skip
#: Steps that look for the strength of a cause between two that were simulated.
_REFINEMENTS: Final = 2
_WANTED: Final = "fio's JSON, the output of rados bench, or a .csv table"


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One measured load: the scenario reduced to it, and the numbers.

    Attributes
    ----------
    scenario, cell
        The cluster under the measured load, which is its only cell.
    values
        Measured value of each quantity.
    from_file
        True if the file states the load, False if the scenario does.
    """

    scenario: Scenario
    cell: Cell
    values: Mapping[str, float]
    from_file: bool

    def leading(self, row: Mapping[str, Any]) -> str:
        """Return the quantity that decides, by the simulated row.

        Of arrivals at a stated rate that are served as they come, a latency decides if one was measured: the
        rate says nothing about the cluster.
        """
        measured = [one for one in _COMPARED if one in self.values]
        if self.serves_arrivals(row):
            measured.sort(key=lambda quantity: not quantity.startswith("latency"))
        return measured[0]

    def serves_arrivals(self, row: Mapping[str, Any]) -> bool:
        """Return True if the load arrives at a stated rate, and the measured cluster kept up with it."""
        offered_iops = row["offered_iops"]
        if offered_iops is None:
            return False
        for rate in ("iops", "throughput_bytes_per_s"):
            if rate in self.values:
                served_iops = self.values[rate] / row[rate] * row["iops"]
                return bool(served_iops >= SATURATED_BELOW * offered_iops)
        return True

    @property
    def keeps_depth(self) -> bool:
        """True if rate and mean latency were measured, and keep the stated requests in flight."""
        rate_per_s = self.values.get("iops")
        latency_ns = self.values.get("latency_mean_ns")
        asked = self.scenario.in_flight_count
        if rate_per_s is None or latency_ns is None or asked is None:
            return False
        low_ms, high_ms = mean_latency_bounds_ms(rate_per_s, asked)
        return low_ms <= latency_ns / 1e6 <= high_ms


@dataclass(frozen=True, kw_only=True)
class CheckedValue(Documented):
    """A measured value and where it lies."""

    quantity: str
    measured: float
    predicted: PredictedValue

    in_document: ClassVar = (
        "quantity",
        "measured",
        ("predicted", "predicted.predicted"),
        ("low", "predicted.low"),
        ("high", "predicted.high"),
        ("error_band", "predicted.error.band"),
        "where",
    )

    @property
    def where(self) -> str:
        """``below``, ``inside`` or ``above`` the interval."""
        if self.measured < self.predicted.low:
            return "below"
        return "above" if self.measured > self.predicted.high else "inside"


@dataclass(frozen=True, kw_only=True)
class Explanation(Documented):
    r"""A cause of the strength that comes closest to the measured values.

    Attributes
    ----------
    cause, words, value, look
        Name, words, changed value, and how to look for it.
    strength
        Factor of the change.
    values
        Simulated value of each measured quantity.
    distance
        Largest \|ln(simulated / measured)\| of the compared quantities.
    """

    cause: str
    words: str
    value: str
    look: str
    strength: float
    values: Mapping[str, float]
    distance: float

    in_document: ClassVar = ("*", "explains")

    @property
    def explains(self) -> bool:
        """True if every compared quantity is within `EXPLAINED` of the measured one."""
        return self.distance <= math.log(1 + EXPLAINED)


@dataclass(frozen=True, kw_only=True)
class LoadCheck:
    """A measured load, checked."""

    measurement: Measurement
    row: Mapping[str, Any]  #: The simulated row
    utilisation: float
    values: tuple[CheckedValue, ...]
    #: All simulated causes, the closest first
    explanations: tuple[Explanation, ...]
    calibrated: bool
    #: Class of resources whose queue may not have settled in the run of the load, or None
    slow_class: str | None

    @property
    def leading(self) -> CheckedValue:
        """The value that decides."""
        quantity = self.measurement.leading(self.row)
        return next(value for value in self.values if value.quantity == quantity)

    @property
    def verdict(self) -> str:
        """``as expected``, ``slower`` or ``faster``, by the leading value."""
        where = self.leading.where
        if where == "inside":
            return "as expected"
        less = "faster" if self.leading.quantity.startswith("latency") else "slower"
        more = "slower" if less == "faster" else "faster"
        return less if where == "below" else more


def check(
    scenario: Scenario | str | Path,
    measured: Path,
    *,
    sets: Overrides = (),
    seed: int | None = None,
    engine: str = "compiled",
    progress: OnStep = silent,
) -> LoadCheck:
    """Check a measured number: the expected range, where it lies, and what could explain the difference.

    Parameters
    ----------
    scenario
        The scenario of the cluster, its name or its file. fio and rados bench bring their own load.
    measured
        fio's JSON, the output of ``rados bench``, or a table of values of one row.
    sets, seed
        As of `as_scenario`.
    engine
        ``compiled`` or ``simpy``.
    progress
        Called after each simulation.

    Raises
    ------
    MeasuredError
        If the measured values cannot be used.
    ScenarioError
        If the scenario cannot be used.
    RefusedError
        If the audit refuses the simulation of the load itself.
    """
    measurement = read_measurement(scenario, measured, sets=sets, seed=seed)
    subject = measurement.scenario
    models = build_models(subject)
    result = run_cell(subject, measurement.cell, engine, models)
    progress("as the scenario says", 1 + sum(len(one.slower) for one in CAUSES))
    row = {**measurement.cell._asdict(), **result.row.as_dict()}
    calibrated = is_calibrated(parameters_of(models))
    predicted = {
        value.quantity: value
        for value in predicted_values(row, result.utilisation, calibrated=calibrated)
    }
    values = tuple(
        CheckedValue(quantity=quantity, measured=value, predicted=predicted[quantity])
        for quantity, value in measurement.values.items()
        if quantity in predicted
    )
    search = _CauseSearch(measurement, engine, row, progress)
    return LoadCheck(
        measurement=measurement,
        row=row,
        utilisation=result.utilisation,
        values=values,
        explanations=tuple(search.explanations()),
        calibrated=calibrated,
        slow_class=slow_class(subject, result),
    )


# --- what was measured ------------------------------------------------------------------------------------


def read_measurement(
    scenario: Scenario | str | Path,
    measured: Path,
    *,
    sets: Overrides = (),
    seed: int | None = None,
) -> Measurement:
    """Read a measured load, and reduce the scenario to it."""
    overrides: list[str | Override] = list(sets)
    if isinstance(sets, Mapping):
        overrides = [Override(key, value) for key, value in sets.items()]
    load, table = _read(measured)
    if load is not None:
        return _of_load(scenario, measured, load, overrides, seed)
    loaded = as_scenario(scenario, sets=overrides, seed=seed)
    cell = _cell_of(table, cells(loaded), measured)
    values = _with_compared(measured, _single_values(table))
    # Another number in flight than the scenario's is a cause, and no contradiction.
    problems = list(
        contradictions(
            values,
            {value.quantity: value.place for value in table},
            block_bytes=cell.block_size_bytes if cell.op in OPS else None,
            in_flight=None,
        )
    )
    if problems:
        raise MeasuredError(*problems)
    return Measurement(
        scenario=loaded.of_cell(cell),
        cell=cell,
        values=values,
        from_file=False,
    )


def _read(measured: Path) -> tuple[FioLoad | None, Sequence[MeasuredValue]]:
    """Return the load that a file states, or else its values."""
    try:
        text = measured.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        got = file_reason(error)
        raise MeasuredError(
            Problem(place=str(measured), got=got, wanted=_WANTED)
        ) from None
    if is_rados_bench(text):
        return read_rados_bench(measured, text), ()
    file = read_measured_file(measured, (), wanted=_WANTED)
    return file.load, file.values


def _of_load(
    scenario: Scenario | str | Path,
    measured: Path,
    load: FioLoad,
    sets: Sequence[str | Override],
    seed: int | None,
) -> Measurement:
    """Put the load of a file in place of the scenario's."""
    in_flight = load.clients * load.queue_depth
    place = str(measured)
    own = {
        "kind": "closed",
        "ops": [load.op],
        "patterns": [load.pattern],
        "block_sizes_bytes": [load.block_bytes],
        "clients": load.clients,
        "queue_depth": load.queue_depth,
        "requests": request_count(in_flight, ROUNDS),
    }
    overrides = [
        Override(f"workload.{key}", value, place) for key, value in own.items()
    ]
    overrides.append(Override("workloads", [], place))
    loaded = as_scenario(scenario, sets=[*sets, *overrides], seed=seed)
    scheme = scheme_of(measured, loaded.schemes)
    subject = loaded.replaced(schemes=(scheme,))
    if load.object_bytes is not None:
        # Smaller objects are padded to a stripe unit.
        object_bytes = max(load.object_bytes, subject.cluster.stripe_unit_bytes)
        subject = subject.with_cluster(object_bytes=object_bytes)
    (cell,) = cells(subject)
    values = values_of_load(measured, load, (scheme,))
    return Measurement(
        scenario=subject,
        cell=cell,
        values=_with_compared(
            measured, {value.quantity: value.value for value in values}
        ),
        from_file=True,
    )


def _cell_of(
    values: Sequence[MeasuredValue], listed: Sequence[Cell], path: Path
) -> Cell:
    """Return the one row of the scenario that all values of a table are of."""
    fitting = [
        cell for cell in listed if all(_fits(value, cell._asdict()) for value in values)
    ]
    if len(fitting) == 1:
        return fitting[0]
    names = "; ".join(cell.name for cell in listed)
    stated = [value.row_id or row_name(value.coordinates) for value in values]
    kinds = "; ".join(filter(None, dict.fromkeys(stated)))
    got = f"values of {kinds}" if kinds else "values that do not say of what"
    wanted = f"values of one row of the scenario, of {names}"
    raise MeasuredError(Problem(place=str(path), got=got, wanted=wanted))


def _fits(value: MeasuredValue, coordinates: Mapping[str, Any]) -> bool:
    if value.row_id:
        return value.row_id == row_name(coordinates)
    return all(coordinates.get(key) == one for key, one in value.coordinates.items())


def _single_values(values: Sequence[MeasuredValue]) -> dict[str, float]:
    """Return the mean of the repeats of each quantity."""
    by_quantity: dict[str, list[float]] = {}
    for value in values:
        by_quantity.setdefault(value.quantity, []).append(value.value)
    return {key: sum(numbers) / len(numbers) for key, numbers in by_quantity.items()}


def _with_compared(path: Path, values: dict[str, float]) -> dict[str, float]:
    """Return the values if one of them can decide, and refuse the file otherwise."""
    if any(quantity in values for quantity in _COMPARED):
        return values
    got = " and ".join(values) or "no value"
    wanted = f"one of {', '.join(_COMPARED)}"
    raise MeasuredError(Problem(place=str(path), got=got, wanted=wanted))


# --- what could explain it --------------------------------------------------------------------------------


class _CauseSearch:
    """Simulate causes, and find the strength of each that comes closest."""

    def __init__(
        self,
        measurement: Measurement,
        engine: str,
        row: Mapping[str, Any],
        progress: OnStep,
    ) -> None:
        self._measured = measurement
        self._engine = engine
        self._progress = progress
        self._expected = row
        self._leading = measurement.leading(row)
        higher = measurement.values[self._leading] > row[self._leading]
        # A high latency is a low rate.
        self._is_faster = higher != self._leading.startswith("latency")

    def explanations(self) -> list[Explanation]:
        """Return the best strength of each cause that applies, the closest first."""
        explanations = []
        for cause in CAUSES:
            strengths = cause.faster if self._is_faster else cause.slower
            if cause.name == "in flight" and self._measured.keeps_depth:
                continue
            if strengths and cause.applies(self._measured.scenario):
                explanations += self._best(cause, strengths)
        return sorted(explanations, key=lambda one: one.distance)

    def _best(self, cause: Cause, strengths: Sequence[float]) -> list[Explanation]:
        """Return the closest strength of a cause, or nothing if no simulation of it passes the audit."""
        tried: dict[float, Explanation] = {}
        for strength in strengths:
            self._try(cause, strength, tried)
            if strength in tried and self._is_past(tried[strength].values):
                break
        for _ in range(_REFINEMENTS):
            between = self._between(tried)
            if between is None:
                break
            self._try(cause, between, tried)
        best = min(tried.values(), key=lambda one: one.distance, default=None)
        return [] if best is None else [best]

    def _try(
        self, cause: Cause, strength: float, tried: dict[float, Explanation]
    ) -> None:
        subject = self._measured.scenario
        scenario, models = cause.change(subject, strength)
        row = self._simulated(scenario, models)
        self._progress(cause.name)
        if row is None:
            return
        values = {
            key: row[key] for key in self._measured.values if row.get(key) is not None
        }
        tried[strength] = Explanation(
            cause=cause.name,
            words=cause.words_of(strength),
            value=cause.value(subject, strength),
            look=cause.look,
            strength=strength,
            values=values,
            distance=distance(values, self._measured.values),
        )

    def _simulated(self, scenario: Scenario, models: Models) -> dict[str, Any] | None:
        (cell,) = cells(scenario)
        try:
            return run_cell(scenario, cell, self._engine, models).row.as_dict()
        except RefusedError:
            return None

    def _log_ratio(self, values: Mapping[str, float]) -> float:
        """Return ln(simulated / measured) of the leading quantity."""
        return math.log(values[self._leading] / self._measured.values[self._leading])

    def _is_past(self, values: Mapping[str, float]) -> bool:
        """Return True if the measured value lies between the expected one and this one."""
        return self._log_ratio(values) * self._log_ratio(self._expected) <= 0

    def _between(self, tried: Mapping[float, Explanation]) -> float | None:
        """Return the strength between the two around the measured value, on logarithmic axes."""
        points = {1.0: self._log_ratio(self._expected)}
        points |= {key: self._log_ratio(one.values) for key, one in tried.items()}
        by_strength = sorted(points.items(), key=lambda point: abs(math.log(point[0])))
        for (weak, before), (strong, after) in pairwise(by_strength):
            if before * after < 0:
                share = before / (before - after)
                return float(weak ** (1 - share) * strong**share)
        return None


def distance(values: Mapping[str, float], measured: Mapping[str, float]) -> float:
    r"""Return the largest \|ln(simulated / measured)\| of the quantities that are compared."""
    return max(
        abs(math.log(values[key] / measured[key]))
        for key in _COMPARED
        if key in values and key in measured
    )

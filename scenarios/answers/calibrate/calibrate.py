"""Fit a cluster's factors to its replication rows, and judge all other rows before and after the fit."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stripesim.calibration.fitting import Fit, fit_parameters
from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.models.documents import Documented
from stripesim.models.problems import MeasuredError, Problem
from stripesim.scenarios.answers.calibrate.accuracy import (
    JudgedValue,
    left_out,
)
from stripesim.scenarios.answers.calibrate.factors import (
    Factor,
    factors_for,
    source_text,
    spreads_for,
    starts,
    unchanged,
    with_factors,
)
from stripesim.scenarios.answers.calibrate.fio_output import fio_runs
from stripesim.scenarios.answers.calibrate.rows import (
    CalibrationRow,
    CalibrationRun,
    Load,
    SimulatedRow,
    check_rows,
    table_runs,
)
from stripesim.scenarios.cells.measured import (
    REQUESTS_PAST_SATURATION,
    ROUNDS,
    ROUNDS_MIN,
    ROUNDS_PAST_SATURATION,
    is_step,
)
from stripesim.scenarios.cells.notes import SETTLED_ROUNDS
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.work.pool import results, workers_wanted
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.observe.audit import collecting_refusals, refuse
from stripesim.sim.observe.progress import OnStep, silent

# Standard deviation of the logarithm of measured over simulated values of a calibrated model. It combines
# variation between repeated measurements and effects missing from the model.
_ROW_SPREAD: Final = 0.2
_EVALUATIONS: Final = 12
#: Ratio of a fitted value to the measured one, or its inverse, beyond which no factor explains it.
UNEXPLAINED: Final = 1.5
# Factors are searched from their start divided by this number to their start times this number.
_RANGE: Final = 20.0
# Part of that range, as logarithms, from which on a factor is at its end.
_END_SHARE: Final = 0.99
# A factor counts as known if the rows reduce its spread below this share of the assumed spread.
_KNOWN_SHARE: Final = 0.9
# Utilisation of the busiest resource from which a long run is made longer. After 40 rounds, the resource that
# most requests will wait for may still be far from full.
_SATURATED: Final = 0.8
# Ratio of the two values of a factor that determine a sensitivity.
_STEP: Final = 1.1
#: Candidate loads for a further measurement.
FURTHER_LOADS: Final = (
    Load("read", "rand", 4096, clients=1, queue_depth=1),
    Load("write", "rand", 4096, clients=1, queue_depth=1),
    Load("read", "rand", 4096, clients=8, queue_depth=64),
    Load("write", "rand", 4096, clients=8, queue_depth=64),
    Load("read", "seq", 4 << 20, clients=1, queue_depth=16),
    Load("write", "seq", 4 << 20, clients=1, queue_depth=16),
)


@dataclass(frozen=True)
class FittedFactor(Documented):
    """A factor after the fit."""

    name: str
    value: float
    low: float  #: 95 % interval
    high: float
    unit: str
    #: True if the rows narrowed its spread, False if it is still the assumed factor
    is_known: bool
    #: True if the search ended at the end of its range
    is_at_end: bool = False

    in_document: ClassVar = ("name", "value", "low", "high", "unit")


@dataclass(frozen=True)
class FactorGain:
    """A further measurement, and the interval of a factor that it would leave."""

    factor: str
    #: Standard deviation of the factor's logarithm now, and expected after the measurement
    spread_before: float
    spread_after: float


@dataclass(frozen=True)
class FurtherRun:
    """A further measurement that would narrow the calibration."""

    load: str
    fio: str  #: The command, without the image's name
    uncertainty: float  #: Relative standard deviation of its currently predicted rate
    gains: tuple[FactorGain, ...] = ()  #: The factor that it narrows most first


@dataclass(frozen=True)
class Calibration:
    """The result of a calibration."""

    fitted: tuple[FittedFactor, ...]
    rows: tuple[CalibrationRow, ...]
    values: tuple[JudgedValue, ...]
    further: tuple[FurtherRun, ...]  #: In descending order of uncertainty
    scenario: Scenario  #: The first run, the basis of the parameter set and scenario
    drive_set: ParameterSet | None  #: See `CalibrationRun.drive_set`
    before: Models
    after: Models
    source: str
    step_hosts: int  #: Fewest hosts that a step of the fit simulated [count]

    @property
    def refusals(self) -> list[str]:
        """A sentence for each row that the audit refuses."""
        refused = {
            value.id.rpartition(":")[0]: value.refused
            for value in self.values
            if value.refused is not None
        }
        return [f"{row_id}: {sentence}" for row_id, sentence in refused.items()]

    def count_within(self, *, after: bool) -> int:
        """Count the held-out values that are within tolerance."""
        return sum(
            value.is_within(value.after if after else value.before)
            for value in self.values
            if value.role == "held-out"
        )

    def unexplained(self) -> list[JudgedValue]:
        """List the fitted values that are still wrong by more than a factor of `UNEXPLAINED`."""
        return [
            value
            for value in self.values
            if value.left_out is not None
            and value.after is not None
            and abs(log(value.after / value.measured)) > log(UNEXPLAINED)
        ]

    def unsettled(self) -> list[JudgedValue]:
        """List the values of runs that are too short for their percentiles."""
        return [value for value in self.values if value.slow_class is not None]

    def held_out(self) -> int:
        """Count the held-out values."""
        return sum(value.role == "held-out" for value in self.values)


def calibrate(
    folder: Path,
    *,
    jobs: int | None = None,
    progress: OnStep = silent,
    unchecked: bool = False,
) -> Calibration:
    """Calibrate a cluster to its measurements.

    Parameters
    ----------
    folder
        A folder with ``times.csv`` and ``clusters.toml``, in the format of `stripesim study nvme --data`, or
        with fio's JSON outputs and the scenario of the cluster.
    jobs
        Number of worker processes, by default one per core.
    progress
        Called after each simulated run with the part of the work, and the number of all runs at most.
    unchecked
        True to fit to rows that the audit refuses, and to keep their simulated values after the fit.

    Returns
    -------
    Calibration
        Fitted factors with intervals, and each measured value with its simulated values.

    Raises
    ------
    MeasuredError, ScenarioError
        If the measurements cannot be used, with a line for each problem.
    RefusedError
        If the audit refuses the run of a row that the factors are fitted to.

    Notes
    -----
    The four factors are those of `factors_for`, none per row, size or scheme. The search minimises a sum over
    rows and factors: for a row, the logarithm of simulated over measured, over `_ROW_SPREAD`; for a factor,
    the logarithm of its value over its start, over its spread. The value of a row is its mean latency if the
    busiest resource is less than half used, and otherwise its rate. Each counts with the loss ``soft_l1``,
    quadratic for small and linear for large values, so one row that contradicts the others does not decide.
    A factor that no row informs stays at its start. A second search begins where one factor is back at its
    start, if that lowers the sum (`fit_parameters`). Rows with the role held-out take no part.

    Runs before and after the fit have `ROUNDS` times the requests in flight. Near saturation, where the queue
    of the busiest resource of a class settles slowly, they have `ROUNDS_PAST_SATURATION` times as many, up to
    `REQUESTS_PAST_SATURATION`. With so many in flight that this bound is below `SETTLED_ROUNDS`, they stay
    short, and a warning names the percentiles.
    """
    runs = runs_of(folder)
    rows = [row for run in runs for row in run.rows]
    check_rows(rows, str(folder))
    fitted_runs = [
        run for run in runs if any(row.role == "calibration" for row in run.rows)
    ]
    models = fitted_runs[0].models()
    factors = factors_for(fitted_runs[0].scenario())
    start = starts(models, factors)
    shipped = unchanged(models, factors)
    source = _source(folder, rows)
    spreads = spreads_for(models, factors)
    waiting: deque[_WaitingRun] = deque()
    done = results(_simulate_run, waiting, jobs=workers_wanted(jobs), place="calibrate")
    with closing(done):
        parts = _parts_of_work(len(runs), len(fitted_runs), len(factors))
        simulator = _Simulator(waiting, done, source, progress, parts)
        before = simulator.simulate(runs, shipped, ROUNDS)
        with collecting_refusals(unchecked):
            _accept_fitted(rows, before)
        simulator.begin_next()
        begun = before
        if start != shipped:
            begun = simulator.simulate(fitted_runs, start, ROUNDS)
        fit = _fit(simulator, fitted_runs, start, begun, spreads)
        values = {factor.name: factor.value for factor in fit.parameters}
        simulator.begin_next()
        after = simulator.simulate(runs, values, ROUNDS)
        simulator.begin_next()
        further = _further(simulator, fitted_runs[0], rows, values, fit.covariance)
    return Calibration(
        fitted=tuple(_fitted(fit, factors, spreads, start)),
        rows=tuple(rows),
        values=tuple(_judged(rows, before, after, fit.leverages, unchecked=unchecked)),
        further=tuple(further),
        scenario=fitted_runs[0].scenario(),
        drive_set=fitted_runs[0].drive_set,
        before=models,
        after=with_factors(models, values, source),
        source=source,
        step_hosts=min(run.step_hosts for run in fitted_runs),
    )


def _parts_of_work(runs: int, fitted_runs: int, factors: int) -> dict[str, int]:
    """Return the largest number of runs of each part of a calibration, in order."""
    # An evaluation simulates its point, and one more for each derivative.
    evaluation = 1 + factors
    return {
        "runs before": runs,
        # The start is simulated twice, in full and in short. Between two searches, each factor is reset.
        f"fitting {factors} factors": (2 + 2 * _EVALUATIONS * evaluation + factors)
        * fitted_runs,
        "runs after": runs,
        "what to measure next": len(FURTHER_LOADS) * evaluation,
    }


def runs_of(folder: Path) -> list[CalibrationRun]:
    """Read the measured runs of a folder in either format."""
    if not folder.is_dir():
        raise MeasuredError(
            Problem(
                place="MEASURED",
                got=str(folder),
                wanted="a folder with times.csv and clusters.toml, or with fio's JSON outputs and a scenario",
            )
        )
    if (folder / "times.csv").exists():
        return list(table_runs(folder))
    if any(folder.glob("*.json")):
        return list(fio_runs(folder))
    raise MeasuredError(
        Problem(
            place=str(folder),
            got="neither times.csv nor a JSON file",
            wanted="times.csv and clusters.toml, or fio's JSON outputs and a scenario",
        )
    )


def _source(folder: Path, rows: Sequence[CalibrationRow]) -> str:
    fitted = [row.id for row in rows if row.role == "calibration"]
    return source_text(folder.name, fitted)


class _WaitingRun(NamedTuple):
    """A run that waits for a worker, with the factors and the length to simulate."""

    number: int
    run: CalibrationRun
    values: dict[str, float]
    source: str
    rounds: int


class _Simulator:
    """Simulate runs in parallel with given factors.

    Workers take the runs that are `waiting`, and `done` yields those that they have simulated. `parts` of the
    work have the largest number of runs of each, in order. The first begins immediately.
    """

    def __init__(
        self,
        waiting: deque[_WaitingRun],
        done: Iterator[tuple[_WaitingRun, dict[str, SimulatedRow]]],
        source: str,
        progress: OnStep,
        parts: Mapping[str, int],
    ) -> None:
        self._waiting = waiting
        self._done = done
        self._source = source
        self._progress = progress
        self._parts = list(parts.items())
        self._done_count = 0
        self.begin_next()

    def begin_next(self) -> None:
        """Begin the next part of the work: runs that the last one did not need are no longer expected."""
        self._total_count = self._done_count + sum(count for _, count in self._parts)
        self._part_name, _ = self._parts.pop(0)

    def simulate(
        self, runs: Sequence[CalibrationRun], values: Mapping[str, float], rounds: int
    ) -> dict[str, SimulatedRow]:
        """Return the simulated rows, keyed by row id."""
        for number, run in enumerate(runs):
            self._waiting.append(
                _WaitingRun(number, run, dict(values), self._source, rounds)
            )
        rows: dict[int, dict[str, SimulatedRow]] = {}
        for _ in runs:
            item, rows_of_run = next(self._done)
            rows[item.number] = rows_of_run
            self._done_count += 1
            self._progress(self._part_name, self._total_count)
        return {
            name: row for number in sorted(rows) for name, row in rows[number].items()
        }


def _simulate_run(item: _WaitingRun) -> dict[str, SimulatedRow]:
    """Simulate a run, and again for longer if it is near or past saturation, where its length matters."""

    def change(models: Models) -> Models:
        return with_factors(models, item.values, item.source)

    run = item.run
    simulated = run.simulate(change, rounds=item.rounds)
    utilisation = max(row.utilisation for row in simulated.values())
    if is_step(item.rounds) or utilisation < _SATURATED or not _may_settle(run.rows[0]):
        return simulated
    return run.simulate(change, rounds=ROUNDS_PAST_SATURATION)


def _may_settle(row: CalibrationRow) -> bool:
    """Return True if a run within the bound of requests is long enough for the queues of a row."""
    in_flight = row.clients * row.queue_depth
    return in_flight * SETTLED_ROUNDS <= REQUESTS_PAST_SATURATION


def _accept_fitted(
    rows: Sequence[CalibrationRow], simulated: Mapping[str, SimulatedRow]
) -> None:
    """Refuse a fit to rows whose runs the audit refuses, with what can be done about them."""
    refused = [
        f"{row.id} ({row.load_text}): {simulated[row.id].refused}"
        for row in rows
        if row.role == "calibration" and simulated[row.id].refused is not None
    ]
    if not refused:
        return
    refuse(
        "\n".join(
            [
                *refused,
                "Their queues grow for longer than a calibration simulates, however many requests a row "
                "states. Fit rows with fewer requests in flight, and leave these out or give them the role "
                "held-out in times.csv. --unchecked fits to them, with factors that may be wrong.",
            ]
        )
    )


def _fit(
    simulator: _Simulator,
    runs: Sequence[CalibrationRun],
    start: Mapping[str, float],
    before: Mapping[str, SimulatedRow],
    spreads: Mapping[str, float],
) -> Fit:
    rows = {
        row.id: row for run in runs for row in run.rows if row.role == "calibration"
    }
    metrics = {
        name: row.fitted_at(before[name].utilisation) for name, row in rows.items()
    }
    # The search runs short simulations, each scaled by the ratio of a long to a short run at the start.
    short = simulator.simulate(runs, start, ROUNDS_MIN)

    def simulate(values: Mapping[str, float]) -> dict[str, float]:
        tried = simulator.simulate(runs, values, ROUNDS_MIN)
        rates = {}
        for name, metric in metrics.items():
            longer = before[name].metrics[metric] / short[name].metrics[metric]
            rates[name] = tried[name].metrics[metric] * longer
        return rates

    return fit_parameters(
        simulate,
        start=start,
        published={name: row.measured[metrics[name]] for name, row in rows.items()},
        tolerance=dict.fromkeys(rows, _ROW_SPREAD),
        bounds={
            name: (value / _RANGE, value * _RANGE) for name, value in start.items()
        },
        prior=spreads,
        loss="soft_l1",
        most=_EVALUATIONS,
    )


def _fitted(
    fit: Fit,
    factors: Sequence[Factor],
    spreads: Mapping[str, float],
    start: Mapping[str, float],
) -> list[FittedFactor]:
    parameters = []
    for at, (factor, fitted) in enumerate(zip(factors, fit.parameters, strict=True)):
        low, high = fitted.confidence_interval
        spread = float(np.sqrt(fit.covariance[at, at]))
        is_known = spread < _KNOWN_SHARE * spreads[factor.name]
        moved = abs(log(fitted.value / start[factor.name]))
        parameters.append(
            FittedFactor(
                factor.name,
                fitted.value,
                low,
                high,
                factor.unit,
                is_known,
                is_at_end=moved > _END_SHARE * log(_RANGE),
            )
        )
    return parameters


def _judged(
    rows: Sequence[CalibrationRow],
    before: Mapping[str, SimulatedRow],
    after: Mapping[str, SimulatedRow],
    leverages: Mapping[str, float],
    *,
    unchecked: bool,
) -> list[JudgedValue]:
    judged = []
    for row in rows:
        refused = before[row.id].refused or after[row.id].refused
        is_shown = unchecked or refused is None
        # A fit may have brought a run below saturation. Before it, the queues still grew at the end.
        has_before = is_shown and before[row.id].refused is None
        fitted = None
        if row.id in leverages:
            fitted = row.fitted_at(before[row.id].utilisation)
        for metric, measured in row.measured.items():
            simulated = after[row.id].metrics[metric]
            alone = None
            if is_shown and metric == fitted:
                alone = left_out(measured, simulated, leverages[row.id])
            judged.append(
                JudgedValue(
                    id=f"{row.id}:{metric}",
                    role=row.role,
                    metric=metric,
                    load=row.load_text,
                    measured=measured,
                    before=before[row.id].metrics[metric] if has_before else None,
                    after=simulated if is_shown else None,
                    refused=refused,
                    utilisation=after[row.id].utilisation,
                    left_out=alone,
                    slow_class=after[row.id].slow_class if "_p" in metric else None,
                )
            )
    return judged


def _further(
    simulator: _Simulator,
    template: CalibrationRun,
    rows: Sequence[CalibrationRow],
    values: Mapping[str, float],
    covariance: npt.NDArray[np.float64],
) -> list[FurtherRun]:
    r"""Rank loads not yet measured in descending order of uncertainty of their predicted rates.

    The standard deviation of a rate's logarithm is :math:`\sqrt{s^T C s}`, with the covariance :math:`C` of
    the factors' logarithms and the sensitivities :math:`s` of the rate to each. Measuring the least certain
    rate narrows the calibration most.
    """
    measured = {
        (row.op, row.pattern, row.block_bytes, row.queue_depth == 1)
        for row in rows
        if row.scheme.startswith("rep:")
    }
    loads = [
        load
        for load in FURTHER_LOADS
        if (load.op, load.pattern, load.block_bytes, load.queue_depth == 1)
        not in measured
    ]
    runs = [template.under(load) for load in loads]
    slopes = _slopes(simulator, runs, values)
    ranked = [
        FurtherRun(
            run.rows[0].load_text,
            load.fio_command,
            float(np.sqrt(own @ covariance @ own)),
            gains_of(list(values), own, covariance),
        )
        for load, run, own in zip(loads, runs, slopes, strict=True)
    ]
    return sorted(ranked, key=lambda run: -run.uncertainty)


def gains_of(
    names: Sequence[str],
    slope: npt.NDArray[np.float64],
    covariance: npt.NDArray[np.float64],
) -> tuple[FactorGain, ...]:
    r"""Return how far a further rate would narrow each factor, the factor that it narrows most first.

    Parameters
    ----------
    names
        Name of each factor.
    slope
        Sensitivity of the rate's logarithm to the logarithm of each factor, shape (factors,).
    covariance
        Of the factors' logarithms, shape (factors, factors).

    Notes
    -----
    A measurement of standard deviation :math:`\sigma` (that of every row) leaves the covariance
    :math:`C - C s s^T C / (\sigma^2 + s^T C s)`, whatever its value: the update of a Kalman filter.
    """
    towards = covariance @ slope
    variance = _ROW_SPREAD**2 + float(slope @ towards)
    left = np.diag(covariance) - towards**2 / variance
    gains = [
        FactorGain(name, float(np.sqrt(before)), float(np.sqrt(after)))
        for name, before, after in zip(names, np.diag(covariance), left, strict=True)
    ]
    return tuple(sorted(gains, key=lambda one: one.spread_after / one.spread_before))


def _slopes(
    simulator: _Simulator, runs: Sequence[CalibrationRun], values: Mapping[str, float]
) -> npt.NDArray[np.float64]:
    """Return the sensitivity of each log rate to each log factor, shape (runs, factors)."""

    def log_rates(tried: Mapping[str, float]) -> npt.NDArray[np.float64]:
        simulated = simulator.simulate(runs, tried, ROUNDS_MIN)
        return np.log([simulated[run.rows[0].id].metrics["iops"] for run in runs])

    at_optimum = log_rates(values)
    changed = [
        log_rates({**values, name: value * _STEP}) for name, value in values.items()
    ]
    slopes: npt.NDArray[np.float64] = (np.array(changed) - at_optimum) / np.log(_STEP)
    return slopes.T

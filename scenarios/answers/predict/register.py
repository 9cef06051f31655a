"""Register a prediction: numbers with intervals, dated and sealed by a hash. See `predict`."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from stripesim.calibration.ledger.model_errors import (
    COVERAGE,
    KINDS,
    OBJECTS_STUDY,
    STUDY,
    ErrorBand,
    band_of,
    error_band,
    object_coverage,
)
from stripesim.models.documents import (
    Documented,
    canonical_json,
    json_text,
    json_value,
)
from stripesim.models.problems import AnswerError, Problem, file_reason
from stripesim.scenarios.answers.calibrate.factors import is_of_calibration
from stripesim.scenarios.answers.run.answer import ScenarioResult
from stripesim.scenarios.answers.run.execute import run_scenario
from stripesim.scenarios.schema.keys import row_name
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.show.files import check_file, stored_document
from stripesim.scenarios.show.quantities import IDENTITY, QUANTITIES
from stripesim.sim.observe.progress import OnStep, silent
from stripesim.sim.observe.window import SATURATED_BELOW

#: Form of the file.
FORM: Final = "stripesim-register-1"
#: Field of the file that holds the hash of all others.
SEAL: Final = "sha256"
#: What `--register` wants.
_NEW_FILE: Final = "a new file that can be written"
#: Columns that identify a row.
COORDINATES: Final = (*IDENTITY, "workload")


def tested_on_objects() -> str:
    """Say how far intervals, which rest on rows of images, are tested on objects in buckets."""
    tested = object_coverage()
    return (
        f"the held-out rows behind the intervals are of images. {tested.within} of {tested.rows} held-out "
        f"rates of objects, on {tested.clusters} clusters, lie in them (study {OBJECTS_STUDY}); latencies of "
        "objects are not tested"
    )


@dataclass(frozen=True, kw_only=True)
class PredictedValue(Documented):
    """A predicted number of a row.

    Attributes
    ----------
    quantity
        Column of the result row, with its unit.
    predicted
        The simulated value, in the unit of the quantity.
    low, high
        Interval that is made to hold a measured value with probability `COVERAGE`.
    error
        The held-out errors that its width comes from.
    """

    quantity: str
    predicted: float
    low: float
    high: float
    error: ErrorBand

    in_document = ("quantity", "predicted", "low", "high", ("error_band", "error.band"))


@dataclass(frozen=True, kw_only=True)
class PredictedRow(Documented):
    """A row of a prediction.

    Attributes
    ----------
    id
        Name of the row: its coordinates, such as ``rep:3 write rand 4KiB``.
    coordinates
        Scheme, operation, pattern, block size and workload, as far as the row has them.
    utilisation
        Utilisation of the busiest resource, 0 to 1. None if the audit refuses the row.
    values
        The numbers. Empty if the audit refuses the row.
    """

    id: str
    coordinates: Mapping[str, Any]
    utilisation: float | None
    values: tuple[PredictedValue, ...]

    in_document = ("id", "**coordinates", "utilisation", "band", "values")

    @property
    def band(self) -> str | None:
        """Band of its utilisation, None if the audit refuses the row."""
        return None if self.utilisation is None else band_of(self.utilisation)

    def value(self, quantity: str) -> PredictedValue | None:
        """Return the number of a quantity, or None."""
        return next((one for one in self.values if one.quantity == quantity), None)


@dataclass(frozen=True, kw_only=True)
class ScenarioPrediction:
    """A prediction of a scenario."""

    result: ScenarioResult
    rows: tuple[PredictedRow, ...]

    @property
    def warnings(self) -> list[str]:
        """Warnings of the run, and of rows that may be beyond their intervals."""
        tested = []
        if self.result.is_of_objects and self.rows:
            tested.append(tested_on_objects())
        queues = map(_queue_warning, self._may_saturate())
        return [*self.result.warnings, *tested, *queues]

    def _may_saturate(self) -> Iterator[PredictedRow]:
        """Yield rows of arrivals that the cluster serves in the run, but not at the low end of its rate."""
        for record, row in zip(self.result.records, self.rows, strict=True):
            rate = row.value("iops")
            offered_iops = record["offered_iops"]
            if rate is None or offered_iops is None or record["saturated"]:
                continue
            if rate.low < SATURATED_BELOW * offered_iops:
                yield row


def _queue_warning(row: PredictedRow) -> str:
    rate = row.value("iops")
    assert rate is not None
    return (
        f"{row.id}: a cluster that serves only {number_text(rate.low)} requests/s, the low end of the "
        "interval, cannot keep up with the arrivals. Its latencies grow for as long as it runs, beyond their "
        "intervals"
    )


def register_of(prediction: ScenarioPrediction) -> dict[str, Any]:
    """Return the document of a register of a prediction, sealed."""
    result = prediction.result
    provenance = result.provenance
    return register_document(
        prediction.rows,
        provenance,
        parameters=result.parameters,
        scenario=provenance["scenario"],
        scenario_sha256=provenance["scenario_sha256"],
        seed=provenance["seed"],
        drive=provenance["ssd"],
        completions_sha256=result.completions_sha256,
        warnings=prediction.warnings,
        refusals=list(result.refusals),
        configuration=provenance["configuration"],
    )


def register_document(
    rows: Iterable[PredictedRow],
    provenance: Mapping[str, Any],
    *,
    parameters: Iterable[Mapping[str, Any]],
    **more: Any,
) -> dict[str, Any]:
    """Return the document of a register, sealed.

    Parameters
    ----------
    rows
        The predicted rows.
    provenance
        Versions, engine, parameter set and time of the run that gave the numbers.
    parameters
        Name and value of every parameter.
    more
        Further JSON values: at least ``scenario`` and ``seed``.
    """
    listed = list(rows)
    return sealed(
        {
            "form": FORM,
            "registered": provenance["time"],
            **more,
            "engine": provenance["engine"],
            "versions": {
                key: provenance[key] for key in ("stripesim", "python", "machine")
            },
            "parameters": {
                "set": provenance["parameters"],
                "sha256": _digest(_values_of(parameters)),
            },
            "coverage": COVERAGE,
            "errors": {"study": STUDY, "bands": json_value(errors_of(listed))},
            "rows": json_value(listed),
        }
    )


def errors_of(rows: Iterable[PredictedRow]) -> list[ErrorBand]:
    """Return the held-out errors that the intervals of rows come from, each once."""
    return list(dict.fromkeys(value.error for row in rows for value in row.values))


def predict(
    scenario: Scenario, *, engine: str = "compiled", progress: OnStep = silent
) -> ScenarioPrediction:
    """Predict the numbers of every row of a scenario, each with an interval.

    Parameters
    ----------
    scenario
        The scenario.
    engine
        ``compiled`` or ``simpy``.
    progress
        Called with the name of each completed cell.

    Returns
    -------
    ScenarioPrediction
        Rows, and the document of the register.

    Notes
    -----
    An interval multiplies two uncertainties. The ends of the run's own 95 % interval (batch means), where it
    has one, are multiplied by the interval of measured over simulated values on held-out rows of the same
    kind and band of utilisation (`stripesim.calibration.ledger.model_errors`). Of arrivals at a stated rate,
    the cluster serves all up to the rate at which its busiest resource is full, which has that uncertainty.
    """
    result = run_scenario(
        scenario, engine=engine, progress=progress, costs=False, first_full=False
    )
    return predict_from(result)


def predict_from(result: ScenarioResult) -> ScenarioPrediction:
    """Return the prediction that the result of a scenario makes."""
    return ScenarioPrediction(result=result, rows=tuple(_predicted_rows(result)))


def _predicted_rows(result: ScenarioResult) -> Iterator[PredictedRow]:
    names: dict[str, int] = {}
    calibrated = is_calibrated(result.parameters)
    for row in result.records:
        coordinates = {key: row[key] for key in COORDINATES if row.get(key) is not None}
        name = row_name(coordinates)
        names[name] = names.get(name, 0) + 1
        if names[name] > 1:
            name = f"{name} #{names[name]}"
        utilisation = _utilisation_of(row, result.resources)
        values = []
        if utilisation is not None:
            values = list(predicted_values(row, utilisation, calibrated=calibrated))
        yield PredictedRow(
            id=name,
            coordinates=coordinates,
            utilisation=utilisation,
            values=tuple(values),
        )


def _utilisation_of(
    row: Mapping[str, Any], resources: Iterable[Mapping[str, Any]]
) -> float | None:
    """Return the utilisation of the busiest resource in the run of a row. Loads of one run share it."""
    if row["refused"] is not None:
        return None
    keys: tuple[str, ...] = ("scheme",) if row.get("workload") else tuple(IDENTITY)
    used = [
        use["utilisation"]
        for use in resources
        if all(use[key] == row[key] for key in keys)
    ]
    return max(used, default=None)


def is_calibrated(parameters: Iterable[Mapping[str, Any]]) -> bool:
    """Return True for parameters that `stripesim calibrate` fitted, False for a shipped set or its copy."""
    return any(is_of_calibration(one["source"]) for one in parameters)


def predicted_values(
    row: Mapping[str, Any], utilisation: float, *, calibrated: bool
) -> Iterator[PredictedValue]:
    """Yield the numbers of a result row with their intervals. `calibrated` is that of `error_band`."""
    for quantity, kind in KINDS.items():
        predicted = row[quantity]
        if predicted is None:
            continue
        is_of_arrivals = kind == "rate" and row.get("offered_iops") is not None
        # The rate of arrivals is uncertain only if the cluster is full.
        band = band_of(1.0 if is_of_arrivals else utilisation)
        error = error_band(kind, band, calibrated=calibrated)
        low, high = _simulated_interval(row, quantity)
        low, high = low * error.low, high * error.high
        if is_of_arrivals:
            offered = predicted * row["offered_iops"] / row["iops"]
            low = min(SATURATED_BELOW * offered, low / utilisation)
            high = min(offered / SATURATED_BELOW, high / utilisation)
        yield PredictedValue(
            quantity=quantity, predicted=predicted, low=low, high=high, error=error
        )


def _simulated_interval(row: Mapping[str, Any], quantity: str) -> tuple[float, float]:
    """Return the interval of the run alone. Both ends are the value where batch means give none."""
    predicted = row[quantity]
    ci = QUANTITIES[quantity].ci
    factor = 1.0
    if quantity == "iops" and row["throughput_bytes_per_s"]:
        # Requests per byte are exact, so the rate has the relative interval of the throughput.
        ci = QUANTITIES["throughput_bytes_per_s"].ci
        factor = predicted / row["throughput_bytes_per_s"]
    if ci is None or row[ci[0]] is None:
        return predicted, predicted
    low, high = (factor * row[end] for end in ci)
    return max(low, 0.0), high


def _values_of(parameters: Iterable[Mapping[str, Any]]) -> list[list[Any]]:
    """Return name and value of every parameter, without the texts about them."""
    return sorted([one["name"], one["value"]] for one in parameters)


# --- the file ---------------------------------------------------------------------------------------------


def sealed(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with the hash of its content."""
    # Through JSON, so that a number has the value that a reader of the file sees.
    content = json.loads(json_text(document))
    return {**content, SEAL: _digest(content)}


def _digest(content: Any) -> str:
    """Return the SHA-256 of JSON values, independent of the layout of their file."""
    text = canonical_json(content, is_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def write_register(path: Path, document: Mapping[str, Any]) -> None:
    """Write a register into a new file.

    Raises
    ------
    AnswerError
        If the file exists or cannot be written.
    """
    text = json_text(document)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        raise AnswerError(
            Problem(
                place=f"--register: {path}",
                got=file_reason(error),
                wanted=_NEW_FILE,
            )
        ) from None


def check_new(path: Path) -> None:
    """Reject a register that exists or cannot be written, before any work starts.

    Raises
    ------
    AnswerError
        If the file exists or cannot be written.
    """
    if os.path.lexists(path) and not path.is_dir():
        raise _exists(path)
    check_file("--register", path, _NEW_FILE)


def _exists(path: Path) -> AnswerError:
    got = "a file that exists"
    wanted = "a new name: a registered prediction is never replaced"
    return AnswerError(Problem(place=f"--register: {path}", got=got, wanted=wanted))


def read_register(path: Path) -> dict[str, Any]:
    """Read a register, and check that nothing in it has changed.

    Raises
    ------
    AnswerError
        If the file cannot be read, is not a register, or was changed.
    """
    wanted = "a file that `stripesim predict --register` wrote"
    document = stored_document(path, wanted)
    if document.get("form") != FORM:
        got = "another document"
        raise AnswerError(Problem(place=str(path), key="form", got=got, wanted=wanted))
    content = {key: value for key, value in document.items() if key != SEAL}
    stated = str(document.get(SEAL))
    if _digest(content) != stated:
        got = f"{stated[:12]}…, while the content has {_digest(content)[:12]}…"
        changed = "the file as it was registered: it was changed, and is not scored"
        raise AnswerError(Problem(place=str(path), key=SEAL, got=got, wanted=changed))
    return document


def rows_of(document: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the rows of a register, as JSON values."""
    rows: Sequence[Mapping[str, Any]] = document["rows"]
    return rows

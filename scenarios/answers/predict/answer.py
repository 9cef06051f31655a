"""The answers of `stripesim predict` and `stripesim score`: sentences, tables, figures, JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from stripesim.calibration.ledger.model_errors import (
    COVERAGE,
    KINDS,
    STUDY,
    ErrorBand,
)
from stripesim.scenarios.answers.predict.register import (
    SEAL,
    PredictedRow,
    PredictedValue,
    ScenarioPrediction,
    errors_of,
    is_calibrated,
)
from stripesim.scenarios.answers.predict.score import (
    PredictionScore,
    ScoredValue,
    ScoreLine,
)
from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.show.answer import Answer
from stripesim.scenarios.show.files import frame_of
from stripesim.scenarios.show.quantities import QUANTITIES, quantity_of
from stripesim.scenarios.show.tables import Table

if TYPE_CHECKING:
    from stripesim.scenarios.show.figures.renderer import CaptionedFigure

#: Quantities of the table on the terminal. The document has all.
_SHOWN: Final = ("iops", "latency_mean_ns", "latency_p50_ns", "latency_p99_ns")
_PERCENT: Final = 100


# --- predict ----------------------------------------------------------------------------------------------


def answer_of_prediction(
    prediction: ScenarioPrediction, document: Mapping[str, Any], *, file: str = ""
) -> Answer:
    """Return the answer of a prediction. `file` names its register, empty without one."""
    result = prediction.result
    return Answer(
        document=document,
        frame=result.frame,
        shown=list(_prediction_parts(prediction, document, file)),
        outside=result.outside,
        warnings=prediction.warnings,
        refusals=result.refusals,
        saved_as="prediction.json",
        figures=partial(_figure_of_prediction, prediction),
    )


def _figure_of_prediction(
    prediction: ScenarioPrediction,
) -> Mapping[str, CaptionedFigure]:
    from stripesim.scenarios.answers.predict.figure import draw_prediction

    return {"prediction": draw_prediction(prediction)}


def _prediction_parts(
    prediction: ScenarioPrediction, document: Mapping[str, Any], file: str
) -> Iterator[str | Table]:
    rows = [row for row in prediction.rows if row.values]
    if rows:
        yield _first_sentence(rows[0])
        of_objects = prediction.result.is_of_objects
        cells = [_row_cells(row, of_objects=of_objects) for row in rows]
        yield Table.of("Prediction", cells, numeric=False)
    if rows:
        calibrated = is_calibrated(prediction.result.parameters)
        yield error_note(rows, calibrated=calibrated)
    if file:
        yield (
            f"registered in {file} at {document['registered']}, sha256 {document[SEAL]}"
        )


def _first_sentence(row: PredictedRow) -> str:
    rate = row.value("iops")
    rate_text = "" if rate is None else f"{value_text(rate)} requests/s, "
    p99 = row.value("latency_p99_ns")
    tail = "" if p99 is None else f"p99 {value_text(p99)} ms, "
    # A rate has the errors of many rows.
    which = "each" if p99 is None or p99.error.has_coverage else "the rate"
    return f"{row.id}: {rate_text}{tail}{which} in its interval with probability {100 * COVERAGE:.0f} %"


def _row_cells(row: PredictedRow, *, of_objects: bool) -> dict[str, str]:
    cells = {"row": row.id, "busiest": f"{100 * (row.utilisation or 0):.0f} %"}
    for quantity in _SHOWN:
        value = row.value(quantity)
        heading = quantity_of(quantity, of_objects=of_objects).short_heading
        cells[heading] = "–" if value is None else value_text(value)
    return cells


def value_text(value: PredictedValue) -> str:
    """Write a number with its interval, such as ``41,000 (32,000 to 52,000)``."""
    factor = QUANTITIES[value.quantity].factor
    low, high = (number_text(end, factor) for end in (value.low, value.high))
    return f"{number_text(value.predicted, factor)} ({low} to {high})"


def _clusters(count: int) -> str:
    return "one cluster" if count == 1 else f"{count} clusters"


def _rows(error: ErrorBand) -> str:
    few = "" if error.has_coverage else f", too few for {100 * COVERAGE:.0f} %"
    return f"{error.rows} rows of {_clusters(error.clusters)}{few}"


def error_note(rows: Sequence[PredictedRow], *, calibrated: bool) -> str:
    """State what the width of the intervals comes from. `calibrated` is that of `error_band`."""
    parts = [
        f"{error.kind} {'at any utilisation' if error.band == 'any' else error.band}: "
        f"{error.low:.2f} to {error.high:.2f} ({_rows(error)})"
        for error in errors_of(rows)
    ]
    of_clusters = " of calibrated clusters" if calibrated else ""
    advice = "" if calibrated else " A calibration narrows them."
    return (
        "intervals: the run's own, times measured over simulated on held-out rows"
        f"{of_clusters} of study {STUDY}: {'; '.join(parts)}.{advice}"
    )


# --- score ------------------------------------------------------------------------------------------------


def answer_of_score(score: PredictionScore) -> Answer:
    """Return the answer of a scored register."""
    return Answer(
        document=score.to_json(),
        frame=partial(frame_of, [row.to_json() for row in score.rows]),
        shown=list(_score_parts(score)),
        warnings=[f"{name}: predicted, not measured" for name in score.missing],
        saved_as="score.json",
        figures=partial(_figure_of_score, score),
    )


def _figure_of_score(score: PredictionScore) -> Mapping[str, CaptionedFigure]:
    from stripesim.scenarios.answers.predict.figure import draw_score

    return {"score": draw_score(score)}


def _score_parts(score: PredictionScore) -> Iterator[str | Table]:
    total = score.total
    register = score.register
    yield (
        f"{total.inside} of {total.values} measured values lie in their intervals, which are made to hold "
        f"{total.expected_inside:.1f}; median error {total.median_error_percent:.0f} %, worst "
        f"{total.worst_error_percent:.0f} %"
    )
    yield Table.of("Values", list(map(_value_cells, score.rows)), words=(1, 6))
    yield Table.of("By band of utilisation", list(map(_line_cells, score.lines())), words=(1,))  # fmt: skip
    yield (
        f"registered {register['registered']} with stripesim {register['versions']['stripesim']}, sha256 "
        f"{register[SEAL]}: unchanged. The date is the file's own word: publish the hash to prove it."
    )


def _value_cells(row: ScoredValue) -> dict[str, str]:
    quantity = QUANTITIES[row.quantity]
    low, high = (number_text(end, quantity.factor) for end in (row.low, row.high))
    return {
        "row": row.id,
        "value": quantity.short_heading,
        "measured": number_text(row.measured, quantity.factor),
        "± repeats": "–" if row.noise is None else f"{100 * row.noise:.1f} %",
        "predicted": number_text(row.predicted, quantity.factor),
        "interval": f"{low} to {high}",
        "in it": "yes" if row.inside else "no",
        "error": f"{_PERCENT * row.error:+.0f} %",
    }


def _line_cells(line: ScoreLine) -> dict[str, str]:
    noise = "–" if line.noise_percent is None else f"{line.noise_percent:.1f} %"
    return {
        "kind": line.kind,
        "busiest resource": line.band,
        "in the interval": f"{line.inside} of {line.values}",
        "median error": f"{line.median_error_percent:.0f} %",
        "worst": f"{line.worst_error_percent:.0f} %",
        "± repeats": noise,
    }


def kind_words(quantity: str) -> str:
    """Return the words of a quantity's kind in figures."""
    names = {"rate": "rates", "mean": "mean and median latency", "p99": "tail latency"}
    return names[KINDS[quantity]]

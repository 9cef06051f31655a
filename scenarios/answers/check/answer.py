"""The answer of `stripesim check`: a sentence, a picture, the interval, causes and assumptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from stripesim.calibration.ledger.model_errors import COVERAGE, STUDY
from stripesim.models.documents import json_value
from stripesim.scenarios.answers.check.causes import limits_clients
from stripesim.scenarios.answers.check.check import (
    EXPLAINED,
    SHOWN,
    CheckedValue,
    Explanation,
    LoadCheck,
)
from stripesim.scenarios.answers.predict.answer import value_text
from stripesim.scenarios.answers.predict.register import tested_on_objects
from stripesim.scenarios.cells.notes import outside_of
from stripesim.scenarios.schema.units import counted_text, number_text
from stripesim.scenarios.show.answer import Answer
from stripesim.scenarios.show.quantities import QUANTITIES, rows_frame
from stripesim.scenarios.show.tables import Table
from stripesim.sim.observe.limits import resource_name

if TYPE_CHECKING:
    from stripesim.scenarios.show.figures.renderer import CaptionedFigure

#: Words of each verdict.
_VERDICTS = {
    "as expected": "yes, as far as the prediction can tell",
    "slower": "no, it is slower",
    "faster": "no, it is faster",
}


def answer_of_check(check: LoadCheck) -> Answer:
    """Return the answer of a check."""
    document = document_of(check)
    return Answer(
        document=document,
        frame=partial(rows_frame, [check.row]),
        shown=list(_parts(check, document)),
        outside=outside_of(check.measurement.scenario),
        saved_as="check.json",
        figures=partial(_figures, check),
    )


def _figures(check: LoadCheck) -> Mapping[str, CaptionedFigure]:
    from stripesim.scenarios.answers.check.figure import draw_check

    return {"check": draw_check(check)}


def document_of(check: LoadCheck) -> dict[str, Any]:
    """Return the document that ``check --json`` writes."""
    subject = check.measurement.scenario
    return {
        "sentence": sentence_of(check),
        "verdict": check.verdict,
        "row": load_name(check),
        "clients": subject.workload.clients,
        "queue_depth": subject.workload.queue_depth,
        "utilisation": check.utilisation,
        "bottleneck": check.row["bottleneck"],
        "coverage": COVERAGE,
        "values": json_value(check.values),
        "causes": json_value(check.explanations),
        "assumptions": assumptions_of(check),
        "warnings": list(map(str, outside_of(subject))),
    }


def load_name(check: LoadCheck) -> str:
    """Return the name of the measured row."""
    return check.measurement.cell.name


def sentence_of(check: LoadCheck) -> str:
    """Return the answer in one sentence."""
    leading = check.leading
    quantity = QUANTITIES[leading.quantity]
    measured = number_text(leading.measured, quantity.factor)
    off = leading.measured / leading.predicted.predicted - 1
    best = check.explanations[:1]
    why = "no cause was simulated"
    if best:
        close = "explains it" if best[0].explains else "comes closest"
        why = f"{close}: {best[0].words} ({best[0].value})"
    side = "above" if off > 0 else "below"
    return (
        f"{load_name(check)}: {_VERDICTS[check.verdict]}: {quantity.words} of {measured} {quantity.unit}, "
        f"expected {value_text(leading.predicted)}; {100 * abs(off):.0f} % {side} the prediction; "
        f"{_other_words(check)}{why}"
    )


def _other_words(check: LoadCheck) -> str:
    """Return words on further values outside their intervals, or nothing."""
    outside = [
        f"{QUANTITIES[value.quantity].short_heading.partition(' [')[0]} is {value.where} its expected range; "
        for value in check.values
        if value != check.leading and value.where != "inside"
    ]
    return "".join(outside)


def _parts(check: LoadCheck, document: Mapping[str, Any]) -> Iterator[str | Table]:
    yield document["sentence"]
    yield Table.of("Measured and expected", list(map(_value_cells, check.values)), words=(4,))  # fmt: skip
    shown = check.explanations[:SHOWN]
    if shown:
        rows = [_cause_cells(check, one) for one in shown]
        caption = "What would explain it, simulated"
        yield Table.of(caption, rows, numeric=False, caption_shown=True)
        yield from (f"look for it: {one.words}: {one.look}" for one in shown)
    yield from (f"assumes: {line}" for line in document["assumptions"])


def _value_cells(value: CheckedValue) -> dict[str, str]:
    quantity = QUANTITIES[value.quantity]
    predicted = value.predicted
    low, high = (number_text(end, quantity.factor) for end in (predicted.low, predicted.high))  # fmt: skip
    return {
        "value": quantity.short_heading,
        "measured": number_text(value.measured, quantity.factor),
        "predicted": number_text(predicted.predicted, quantity.factor),
        "expected": f"{low} to {high}",
        "where": f"{value.where} the interval" if value.where != "inside" else "inside",
    }


def _cause_cells(check: LoadCheck, one: Explanation) -> dict[str, str]:
    cells = {"cause": one.words, "changed": one.value}
    for key, simulated in one.values.items():
        quantity = QUANTITIES[key]
        cells[quantity.short_heading] = number_text(simulated, quantity.factor)
    cells["explains"] = "yes" if one.explains else "no"
    return cells


def assumptions_of(check: LoadCheck) -> list[str]:
    """List the assumptions of the answer."""
    subject = check.measurement.scenario
    error = check.leading.predicted.error
    known = "calibrated clusters"
    if not check.calibrated:
        known = (
            "clusters that no fit has seen, and never narrower than on calibrated ones"
        )
    hold = f"the interval is made to hold {100 * COVERAGE:.0f} % of measurements, by"
    if not error.has_coverage:
        hold = f"the interval may hold less than {100 * COVERAGE:.0f} % of measurements: it has only"
    lines = [
        f"{hold} {error.rows} held-out rows of {known} "
        f"(study {STUDY}, registers); busiest resource {100 * check.utilisation:.0f} %",
        f"a cause explains a measurement if every value is within {100 * EXPLAINED:.0f} %; causes act alone",
        "the cluster serves nothing else: no other clients, recovery or scrubs",
    ]
    if subject.workload.is_s3:
        lines.append(tested_on_objects())
    load = "the file's" if check.measurement.from_file else "the scenario's"
    workload = subject.workload
    in_flight = f"with {workload.queue_depth} in flight each"
    if workload.is_open:
        in_flight = f"with {number_text(workload.rate_per_s or 0.0)} arrivals/s in all"
    lines.append(
        f"the load is {load}: {counted_text(workload.clients, 'client')} {in_flight}, image {workload.image}"
    )
    is_rate = not check.leading.quantity.startswith("latency")
    if is_rate and check.measurement.serves_arrivals(check.row):
        lines.append(
            "requests arrive at this rate, and a cluster that is not saturated serves them as they come: "
            "only a latency can show that it is slow"
        )
    if check.slow_class is not None:
        lines.append(
            "the simulated run is long enough for its p50 and p99, although the queue at the busiest "
            f"{resource_name(check.slow_class)} settles slowly"
        )
    if not limits_clients(subject):
        lines.append(
            f"mClock of {subject.generation} does not limit clients that have the cluster to themselves"
        )
    return lines

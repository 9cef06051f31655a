"""The answer of `stripesim load`: curves as tables, sentences, JSON, figures and a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from stripesim.scenarios.answers.load.curve_builder import CurveSettings
from stripesim.scenarios.answers.load.figure import draw_load
from stripesim.scenarios.answers.load.page import report_of_load
from stripesim.scenarios.answers.load.results import LoadCurve
from stripesim.scenarios.answers.load.words import (
    notes_of,
    outside_of_load,
    sentence_of,
    table_of,
    wide_intervals,
)
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import (
    client_notes,
    made_from,
)
from stripesim.scenarios.forms.capacity import warnings_of
from stripesim.scenarios.schema.keys import Cell
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.show.answer import Answer
from stripesim.scenarios.show.files import csv_files, frame_of


def answer_of_load(
    scenario: Scenario, curves: Sequence[LoadCurve], settings: CurveSettings
) -> Answer:
    """Return the answer of load curves: a table of each, sentences, files, figures and a page.

    `settings` are those of the curves, by which they can be computed again.
    """
    refusals = [line for curve in curves for line in curve.refusals]
    rate_falls = [line for curve in curves for line in curve.falls]
    wide = list(wide_intervals(scenario, curves))
    sentences = [sentence_of(curve) for curve in curves]
    clients = client_notes(scenario)
    outside = outside_of_load(scenario)
    warnings = warnings_of(scenario, build_models(scenario))
    document = {
        "curves": [curve.to_json() for curve in curves],
        "sentences": sentences,
        "notes": clients,
        "warnings": [*map(str, outside), *warnings, *wide, *rate_falls, *refusals],
        "falls": rate_falls,
        "refusals": refusals,
        "provenance": made_from(
            scenario,
            generation=scenario.generation,
            engine=settings.engine,
            parameters=scenario.cluster.parameters,
            replications=max((curve.replications for curve in curves), default=0),
            requests=settings.requests,
            unchecked=settings.unchecked,
        ),
    }
    points = list(_points(document))
    return Answer(
        document=document,
        frame=partial(frame_of, points),
        shown=[
            *sentences,
            *map(table_of, curves),
            *(f"note: {line}" for line in (*notes_of(curves), *clients)),
        ],
        outside=outside,
        warnings=[*warnings, *wide, *rate_falls],
        refusals=refusals,
        saved_as="load.json",
        files=partial(csv_files, "load.csv", points),
        figures=partial(draw_load, curves),
        page=partial(report_of_load, scenario, curves, document),
    )


def _points(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the points of all curves with their scheme and kind of request."""
    for curve in document["curves"]:
        for point in curve["points"]:
            yield {**{key: curve[key] for key in Cell._fields}, **point}

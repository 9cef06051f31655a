"""The answer of `stripesim load`: curves as tables, sentences, JSON, figures and a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stripesim.scenarios.answers.load.figure import draw_load
from stripesim.scenarios.answers.load.page import report_of_load
from stripesim.scenarios.answers.load.results import LoadCurve
from stripesim.scenarios.answers.load.words import load_document, notes_of, table_of
from stripesim.scenarios.schema.keys import Scenario
from stripesim.scenarios.show.answer import Answer
from stripesim.scenarios.show.files import csv_text


def answer_of_load(
    scenario: Scenario, curves: Sequence[LoadCurve], *, engine: str
) -> Answer:
    """Return the answer of load curves: a table of each, sentences, files, figures and a page."""
    document = load_document(scenario, curves, engine=engine)
    audited = [*document["refusals"], *document["falls"]]

    return Answer(
        document=document,
        shown=[
            *map(table_of, curves),
            *document["sentences"],
            *(f"note: {line}" for line in (*notes_of(curves), *document["notes"])),
        ],
        outside=[line for line in document["warnings"] if line not in audited],
        warnings=document["falls"],
        refusals=document["refusals"],
        saved_as="load.json",
        files=lambda: {"load.csv": csv_text(_points(document)).encode()},
        figures=lambda: draw_load(curves),
        page=lambda: report_of_load(scenario, curves, document),
    )


def _points(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the points of all curves with their scheme and kind of request."""
    keys = ("scheme", "op", "pattern", "block_size_bytes")
    for curve in document["curves"]:
        for point in curve["points"]:
            yield {**{key: curve[key] for key in keys}, **point}

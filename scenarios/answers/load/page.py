"""Write load curves for pages: their own page, and the section of other reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stripesim.scenarios.answers.load.figure import draw_load
from stripesim.scenarios.answers.load.results import LoadCurve
from stripesim.scenarios.answers.load.words import notes_of, outside_of_load, table_of
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.show.page.provenance import provenance_text
from stripesim.scenarios.show.page.render import Section, figure_blocks, render
from stripesim.scenarios.show.words import origin_words


def load_section(
    curves: Sequence[LoadCurve],
    notes: Sequence[str] = (),
    schemes: Sequence[str] = (),
) -> Section:
    """Return the section with the load curves and further notes, such as those about clients.

    `schemes` have the marks of a page's other figures, in this order.
    """
    sentences = [note[0].upper() + note[1:] for note in [*notes_of(curves), *notes]]
    return Section(
        "Latency over throughput",
        "load-curves",
        f"Rates from a tenth of saturation to past it. {'. '.join(sentences)}.",
        [],
        figure_blocks(draw_load(curves, side_by_side=False, schemes=schemes)),
    )


def report_of_load(
    scenario: Scenario, curves: Sequence[LoadCurve], document: Mapping[str, Any]
) -> str:
    """Return the self-contained HTML page of load curves."""
    source = document["provenance"]
    section = load_section(curves, document["notes"])
    outside = list(map(str, outside_of_load(scenario)))
    return render(
        "load.html.j2",
        kind="Load curve",
        title=scenario.title,
        introduction=scenario.introduction or "Latency over throughput.",
        meta=[origin_words(source)],
        sentences=document["sentences"],
        outside=outside,
        warnings=[line for line in document["warnings"] if line not in outside],
        section=section,
        points=[table_of(curve) for curve in curves],
        provenance=provenance_text(source),
    )

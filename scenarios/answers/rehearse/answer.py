"""The answer of `stripesim rehearse`: what changes move, what clients notice, and the setting to choose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from stripesim.scenarios.answers.rehearse.tables import (
    table_of_changes,
    table_of_settings,
)
from stripesim.scenarios.schema.keys import Scenario
from stripesim.scenarios.show.answer import Answer
from stripesim.scenarios.show.tables import Table

if TYPE_CHECKING:
    from stripesim.scenarios.show.figures.renderer import CaptionedFigure


def answer_of_rehearsal(scenario: Scenario, document: Mapping[str, Any]) -> Answer:
    """Return the answer of a rehearsal.

    Parameters
    ----------
    scenario
        The scenario, with planned changes.
    document
        What `stripesim.scenarios.answers.rehearse.rehearse.rehearse` returns.
    """

    def figures() -> Mapping[str, CaptionedFigure]:
        from stripesim.scenarios.show.figures.rehearsal import draw_rehearsal

        return draw_rehearsal(document)

    def page() -> str:
        from stripesim.scenarios.answers.rehearse.page import report_of_rehearsal

        return report_of_rehearsal(scenario.name, scenario.description, document)

    return Answer(
        document=document,
        shown=[
            Table.of("What moves", table_of_changes(document), words=(10,)),
            Table.of("What clients notice", table_of_settings(document), words=(1,)),
            *_trade_off(document),
        ],
        warnings=document["warnings"],
        refusals=document["refusals"],
        saved_as="rehearsal.json",
        figures=figures,
        page=page,
    )


def _trade_off(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the setting to choose, the rule that chose it, and the commands that set it."""
    weighed = document["trade_off"]
    if weighed is None:
        return
    yield f"{weighed['sentence']}."
    yield f"rule: {weighed['rule']}"
    for line in weighed["commands"]:
        yield f"  {line}"

"""The answer of `stripesim plan`: the recommendation first, then all candidates and what they miss."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from stripesim.scenarios.answers.load.results import LoadCurve
from stripesim.scenarios.answers.plan.candidates import line_name
from stripesim.scenarios.answers.plan.figure import draw_plan
from stripesim.scenarios.answers.plan.page import report_of_plan, rows_of
from stripesim.scenarios.answers.plan.plan import MadePlan
from stripesim.scenarios.answers.run.buying_curves import sentence_of_bounds
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.show.answer import Answer
from stripesim.scenarios.show.files import csv_files, frame_of
from stripesim.scenarios.show.tables import Table

# Candidates whose unmet requirements are printed. All are in the files.
_MISSING_MAX: Final = 12


def answer_of_plan(
    scenario: Scenario,
    made: MadePlan,
    *,
    load_curves: Callable[[], Sequence[LoadCurve]] = tuple,
) -> Answer:
    """Return the answer of a plan.

    Parameters
    ----------
    scenario
        The scenario, with its table ``[plan]``.
    made
        What `stripesim.scenarios.answers.plan.plan.make_plan` returns.
    load_curves
        Return load curves of the recommended candidates. Called only for the report.
    """
    assert scenario.plan is not None
    plan = scenario.plan
    document = made.document
    refusals = document["refusals"]
    candidates = list(_flat_candidates(document))
    return Answer(
        document=document,
        frame=partial(frame_of, candidates),
        shown=[
            "recommended:" if document["recommended"] else "no recommendation:",
            *(f"  {line}" for line in document["reasons"]),
            *_placement(document),
            *_purchases(document),
            Table.of("Candidates", rows_of(document), numeric=False),
            *_missed(document),
            *(f"assumes: {line}" for line in document["assumptions"]),
        ],
        outside=made.outside,
        warnings=list(made.warnings),
        refusals=refusals,
        saved_as="plan.json",
        files=partial(csv_files, "plan.csv", candidates),
        figures=partial(draw_plan, plan, document),
        page=partial(_report, scenario, document, load_curves),
    )


def _report(
    scenario: Scenario,
    document: Mapping[str, Any],
    load_curves: Callable[[], Sequence[LoadCurve]],
) -> str:
    return report_of_plan(scenario, document, load_curves())


def _placement(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the imbalance of the recommended candidate costs, and the commands that reduce it."""
    choice = document["placement"]
    if choice is None:
        return
    yield f"placement groups of {choice['sentence']}"
    for line in choice["commands"]:
        yield f"  {line}"


def _purchases(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the step that raises the bound of the rate most for the money."""
    sentence = sentence_of_bounds(document["purchases"])
    if sentence is not None:
        yield sentence


def _missed(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the unmet requirements of the other candidates, and the number of those left out."""
    missing = [one for one in document["candidates"] if not one["meets"]]
    for one in missing[:_MISSING_MAX]:
        yield f"{line_name(one, document['varied'])}: {'; '.join(one['fails'])}"
    more = len(missing) - _MISSING_MAX
    if more > 0:
        yield f"{more} more miss a requirement; in full: --out DIR or --json -"


def _flat_candidates(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the candidates without nested values, with plain numbers for bytes and seconds."""
    for one in document["candidates"]:
        plain = {
            key: value
            for key, value in one.items()
            if not isinstance(value, dict | list)
        }
        held = {
            key: value
            for key, value in one["capacity"].items()
            if not isinstance(value, list)
        }
        yield {**plain, **held, "fails": "; ".join(one["fails"])}

"""Write the page of a plan: recommendation with reasons, all candidates, and their unmet requirements."""

from collections.abc import Mapping, Sequence
from typing import Any

from stripesim.scenarios.answers.load.page import load_section
from stripesim.scenarios.answers.load.results import LoadCurve
from stripesim.scenarios.answers.load.words import sentence_of
from stripesim.scenarios.answers.plan.assumptions import seeds_words
from stripesim.scenarios.answers.plan.candidates import line_name
from stripesim.scenarios.answers.plan.figure import (
    candidate_name,
    draw_plan,
    schemes_of,
)
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.units import (
    bytes_text,
    duration_text,
    interval_half_text,
    number_text,
    rate_text,
)
from stripesim.scenarios.show.page.render import figure_blocks, render
from stripesim.scenarios.show.tables import Table
from stripesim.sim.observe.resource_words import stated_words


def rows_of(document: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the table of candidates as texts by heading, without columns that are empty for all of them."""
    best = document["recommended"]
    varied = document["varied"]
    rows = [
        _row(one, varied, recommended=one is best) for one in document["candidates"]
    ]
    filled = {name for row in rows for name, text in row.items() if text != "–"}
    return [
        {name: text for name, text in row.items() if name in filled} for row in rows
    ]


def _row(
    one: Mapping[str, Any], varied: Sequence[str], *, recommended: bool
) -> dict[str, str]:
    bound = one["bound"]
    bound_text = "–"
    if bound:
        resource = stated_words(bound["resource"])
        bound_text = f"{rate_text(bound['iops'])}/s, {resource}"
    p99_ns = one["latency_p99_ns"]
    low_ns = one.get("latency_p99_low_ns")
    high_ns = one.get("latency_p99_high_ns")
    half = interval_half_text(low_ns, p99_ns, high_ns, 1e-6)
    p99 = f"{number_text(p99_ns, 1e-6)} {half}".rstrip()
    return {
        "candidate": candidate_name(one, varied),
        "usable, safe": bytes_text(one["capacity"]["usable_bytes_safe"]),
        "at most": bound_text,
        "requests/s": rate_text(one["iops"]),
        "p99 [ms]": p99,
        "p99 in recovery [ms]": number_text(one["latency_p99_recovery_ns"], 1e-6),
        "rebuild": duration_text(one["rebuild_s"]),
        "nines": number_text(one.get("nines")),
        "unavailable": _share_text(one.get("unavailability")),
        "writes/day": number_text(one.get("drive_writes_per_day")),
        "cost": number_text(one.get("cost")),
        "days until full": number_text(one.get("days_until_full")),
        "verdict": _verdict_text(one, recommended=recommended),
    }


def _share_text(share: float | None) -> str:
    """Write a share that is far below 1."""
    return "–" if share is None else f"{share:.2g}"


def _verdict_text(one: Mapping[str, Any], *, recommended: bool) -> str:
    if recommended:
        verdict = "recommended"
    elif one["meets"]:
        verdict = "meets all"
    elif not failing_keys(one):
        verdict = "uncertain"
    else:
        verdict = f"fails: {', '.join(failing_keys(one))}"
    if _may_lack_spare(one):
        verdict += f", no spare {one['capacity']['domain']}"
    if one["pareto"]:
        verdict += " (Pareto)"
    return verdict


def _may_lack_spare(one: Mapping[str, Any]) -> bool:
    """Return True for a candidate without a spare failure domain if the plan allows that."""
    met = [each["key"] for each in one["verdicts"] if each["state"] == "met"]
    return "spare_domains" in met and one["capacity"]["spare_domains"] < 1


def failing_keys(one: Mapping[str, Any]) -> list[str]:
    """List the keys of the requirements that a candidate misses, or the key for which it cannot be built."""
    return [each["key"] for each in one["verdicts"] if each["state"] == "failed"]


def report_of_plan(
    scenario: Scenario, document: Mapping[str, Any], curves: Sequence[LoadCurve] = ()
) -> str:
    """Return the self-contained page of a plan's document, with load curves of recommended candidates."""
    assert scenario.plan is not None
    rows = rows_of(document)
    best = document["recommended"]
    source = document["provenance"]
    failed_candidates = [
        [line_name(one, document["varied"]), "; ".join(one["fails"])]
        for one in document["candidates"]
        if not one["meets"]
    ]
    steps = []
    bounds = []
    if best is not None:
        steps = [
            [step["name"], _unbroken(bytes_text(step["left_bytes"])), step["why"]]
            for step in best["capacity"]["waterfall"]
        ]
        bounds = [
            [stated_words(bound["resource"]), rate_text(bound["iops"]), bound["why"]]
            for bound in best["bounds"]
        ]
    failing = ["candidate", "unmet requirements"]
    seeds = f"{seeds_words(scenario.plan)} from {source['seed']}"
    made = f"stripesim {source['stripesim']} · {seeds}"
    return render(
        "plan.html.j2",
        kind="Plan",
        title=scenario.title,
        introduction=scenario.introduction
        or "The recommended cluster, and the reasons.",
        meta=[made],
        recommended=best is not None,
        reasons=document["reasons"],
        figures=figure_blocks(draw_plan(scenario.plan, document)),
        load=load_section(curves, schemes=schemes_of(document)) if curves else None,
        load_sentences=[sentence_of(curve) for curve in curves],
        candidates=Table.of(
            "Candidates",
            rows,
            form="stack",
            words=(0, len(rows[0]) - 1 if rows else 0),
        ),
        failing=Table(
            "Unmet requirements of the others",
            failing,
            failed_candidates,
            form="stack",
            numeric=False,
        ),
        steps=Table(
            "From raw to usable",
            ["step", "left", "why"],
            steps,
            form="stack",
            words=(2,),
        ),
        bounds=Table(
            "Rate at which each resource is full",
            ["resource", "requests/s", "why"],
            bounds,
            form="stack",
            words=(2,),
        ),
        assumptions=document["assumptions"],
        warnings=document["warnings"],
    )


def _unbroken(text: str) -> str:
    """Keep a number and its unit on one line of a cell."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")

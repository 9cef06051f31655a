"""The answer of `stripesim rehearse`: what changes move, what clients notice, and the setting to choose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from stripesim.models.problems import Problem
from stripesim.scenarios.answers.rehearse.tables import (
    interval_text,
    table_of_changes,
    table_of_durations,
    table_of_settings,
)
from stripesim.scenarios.cells.notes import outside_of, range_lines
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.units import (
    bytes_text,
    counted_text,
    duration_text,
    number_text,
)
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
    outside, warnings = _outside_and_warnings(scenario, document)
    return Answer(
        document=document,
        shown=[
            *_of_changes(document),
            *_trade_off(document),
            Table.of("What moves", table_of_changes(document), words=(10,)),
            *_durations(document),
            Table.of("What clients notice", table_of_settings(document), words=(1,)),
            *(f"assumes: {line}" for line in document.get("assumptions", ())),
        ],
        outside=outside,
        # One line tells of all values outside the range, as with other commands.
        warnings=warnings,
        refusals=document["refusals"],
        saved_as="rehearsal.json",
        figures=partial(_figures, document),
        page=partial(_page, scenario, document),
    )


def _figures(document: Mapping[str, Any]) -> Mapping[str, CaptionedFigure]:
    from stripesim.scenarios.show.figures.rehearsal import draw_rehearsal

    return draw_rehearsal(document)


def _page(scenario: Scenario, document: Mapping[str, Any]) -> str:
    from stripesim.scenarios.answers.rehearse.page import report_of_rehearsal

    outside, warnings = _outside_and_warnings(scenario, document)
    return report_of_rehearsal(
        scenario.title,
        scenario.introduction,
        document,
        outside=list(map(str, outside)),
        warnings=warnings,
    )


def _outside_and_warnings(
    scenario: Scenario, document: Mapping[str, Any]
) -> tuple[list[Problem], list[str]]:
    """Return the values outside the calibrated range, and all other warnings."""
    outside = outside_of(scenario)
    outside_lines = range_lines(outside)
    return outside, [line for line in document["warnings"] if line not in outside_lines]


def _durations(document: Mapping[str, Any]) -> Iterator[Table]:
    """Yield the parts of the durations, where they are known."""
    rows = table_of_durations(document)
    if rows:
        yield Table.of("What the time consists of", rows, words=(1,))


def _of_changes(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what each change moves, for how long, and how full an OSD gets, or how long a restart takes."""
    for change in document["changes"]:
        if change["kind"] == "restart":
            yield from _sentences_of_restart(change)
        else:
            yield _sentence_of_movement(change)


def _sentence_of_movement(change: Mapping[str, Any]) -> str:
    sentence = f"{change['kind']}: {counted_text(change['shards_moved'], 'shard')}"
    verb = "moves" if change["shards_moved"] == 1 else "move"
    sentence += f" with {bytes_text(change['bytes_moved'])} {verb}"
    if change["duration_s"] is None:
        sentence += "; the warnings say why the duration is not known"
    else:
        sentence += f" in {duration_text(change['duration_s'])}"
        interval = interval_text(change)
        if interval != "–":
            sentence += f" ({interval})"
    if change["peak_used_ratio"] is not None:
        reached = change["full_ratio_reached"]
        limit = "below nearfull" if reached is None else f"which is {reached}"
        sentence += (
            f"; the fullest OSD, osd.{change['fullest_osd']}, reaches "
            f"{100 * change['peak_used_ratio']:.1f} %, {limit}"
        )
    return f"{sentence}."


def _sentences_of_restart(change: Mapping[str, Any]) -> Iterator[str]:
    """Yield how long a rolling restart takes, and what clients notice of it."""
    hosts = change["hosts"]
    restarted = counted_text(len(hosts), "host")
    if change["duration_s"] is None:
        yield f"Restarting {restarted}: how long it takes is not known; the warnings say why."
        return
    healing_s = max(row["duration_s"] for row in hosts) - change["downtime_s"]
    if len(hosts) > 1:
        restarted += " one at a time"
    sentence = (
        f"Restarting {restarted} takes {duration_text(change['duration_s'])} "
        f"({interval_text(change)}), each {duration_text(change['downtime_s'])} down and then up to "
        f"{duration_text(healing_s)} until clean."
    )
    (profile,) = change["profiles"]
    before, down, after = (profile[name] for name in ("before", "down", "recovering"))
    p99s = [phase["latency_p99_ns"] for phase in (before, down, after)]
    if None not in p99s:
        p99_ms = [number_text(p99_ns, 1e-6) for p99_ns in p99s]
        sentence += (
            f" p99: {p99_ms[0]} ms before, {p99_ms[1]} ms with a host down, {p99_ms[2]} ms while objects "
            f"recover; the longest wait is {duration_text(profile['latency_max_ns'] / 1e9)}."
        )
    yield sentence
    written = "Nothing is written meanwhile, so nothing recovers."
    if change["degraded_objects"]:
        shards = counted_text(change["degraded_objects"], "object shard")
        written = f"Written meanwhile and recovered: {shards}, {bytes_text(change['bytes_moved'])}."
    serving = "All placement groups serve clients while a host is down."
    if change["inactive_pgs"]:
        waiting = counted_text(change["inactive_pgs"], "placement group")
        serving = f"Without service while a host is down: up to {waiting}."
    yield f"{written} {serving}"


def _trade_off(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the setting to choose, the rule that chose it, and the commands that set it."""
    weighed = document["trade_off"]
    if weighed is None:
        return
    yield f"{weighed['sentence']}."
    yield f"rule: {weighed['rule']}"
    for line in weighed["commands"]:
        yield f"  {line}"

"""Write the page of a rehearsal: warnings, commands to type, course over time, duration and latency."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from stripesim.calibration.ledger.duration_errors import coverage, duration_errors
from stripesim.scenarios.answers.rehearse.tables import (
    interval_text,
    table_of_durations,
)
from stripesim.scenarios.answers.run.report.page import Finding
from stripesim.scenarios.schema.units import (
    bytes_text,
    duration_text,
    interval_half_text,
    number_text,
    rate_text,
)
from stripesim.scenarios.show.figures.captions import scheme_label
from stripesim.scenarios.show.figures.rehearsal import draw_rehearsal
from stripesim.scenarios.show.page.render import figure_blocks, render
from stripesim.scenarios.show.tables import Table, TableCell
from stripesim.scenarios.show.words import origin_words

_ASSUMPTIONS: Final = (
    "Movement is exact: up sets before and after come from CRUSH, with weights, reweights and upmaps.",
    "All placement groups hold the same number of objects. Clients keep the same load throughout.",
    "If only a part of the objects is simulated, the time per object of that part and the exact order of "
    "reservations (osd_max_backfills) give the duration of the whole.",
    "Intervals of the p99: sectioning over ten consecutive parts, without errors of the model.",
    "In a part, placement groups peer as often as in the whole, but objects are few. So requests that wait "
    "for peering count once, and the others represent the rest of the change.",
)


def report_of_rehearsal(
    name: str,
    description: str,
    document: Mapping[str, Any],
    *,
    outside: Sequence[str],
    warnings: Sequence[str],
) -> str:
    """Return the self-contained HTML page of a rehearsal.

    Parameters
    ----------
    name, description
        Those of the scenario.
    document
        Result of `stripesim.scenarios.answers.rehearse.rehearse.rehearse`.
    outside
        Values outside the calibrated range, one in a line.
    warnings
        All other warnings.
    """
    changes = document["changes"]
    trade_off = document["trade_off"]
    figures = {
        figure.stem: figure for figure in figure_blocks(draw_rehearsal(document))
    }
    timeline = [figures[stem] for stem in ("timeline",) if stem in figures]
    timeline += [figures[stem] for stem in figures if stem.startswith("restart")]
    curve = [figures[stem] for stem in ("trade-off",) if stem in figures]
    source = document["provenance"]
    contents = [("commands", "Commands")]
    if timeline:
        contents.append(("over-time", "Over time"))
    if curve:
        contents.append(("settings", "Duration against latency"))
    contents += [
        ("moves", "What moves"),
        ("clients", "What clients notice"),
        ("assumptions", "How these numbers are made"),
    ]
    return render(
        "rehearsal.html.j2",
        kind="Rehearsal",
        title=name,
        introduction=description or _introduction(changes, source["scheme"]),
        meta=[origin_words(source)],
        outside=outside,
        warnings=warnings,
        recommendation=trade_off["sentence"] if trade_off else "",
        findings=[_finding(index, change) for index, change in enumerate(changes)],
        contents=contents,
        commands=_commands(document),
        timeline=timeline,
        curve=curve,
        points=_points(trade_off),
        rule=trade_off["rule"] if trade_off else "",
        moves=_moves(changes),
        durations=_durations(document),
        crossings=_crossings(changes),
        clients=_clients(changes),
        assumptions=[
            *_ASSUMPTIONS,
            _intervals_words(),
            *document.get("assumptions", ()),
        ],
    )


def _intervals_words() -> str:
    """Return a sentence on the accuracy of intervals of durations, by the timed changes that ship."""
    counts = coverage(duration_errors())["held-out"]
    return (
        "Intervals of durations are meant to hold 80 % of changes like the timed ones of a real Ceph 20.2.4, "
        f"whose errors give the width. They hold {counts['within']} of {counts['rows']} held-out ones of "
        "14.2.21, 16.2.15, 18.2.7 and 20.2.4. The spread of the time per object over waves of backfill adds "
        "in squares. Settings are compared by that spread alone."
    )


def _introduction(changes: Sequence[Mapping[str, Any]], scheme: str) -> str:
    kinds = ", ".join(change["kind"] for change in changes)
    count = f"{len(changes)} planned changes"
    if len(changes) == 1:
        count = "One planned change"
    return f"{count} of a {scheme_label(scheme)} pool: {kinds}."


def _heading(index: int, change: Mapping[str, Any]) -> str:
    return f"Change {index}: {change['kind']}"


def _finding(index: int, change: Mapping[str, Any]) -> Finding:
    sentences = [
        f"{change['shards_moved']:,} shards of {change['pgs_moved']:,} placement groups move, "
        f"{bytes_text(change['bytes_moved'])}.",
        f"Clean again after {duration_text(change['duration_s'])}{_range(change)}.",
    ]
    if change["duration_s"] is None:
        sentences[-1] = "How long it takes is not known."
    if change["peak_used_ratio"] is not None:
        moment = ""
        if change.get("peak_at_s"):
            moment = f", {duration_text(change['peak_at_s'])} after the command"
        reached = change["full_ratio_reached"] or "no threshold"
        sentences.append(
            f"Fullest: osd.{change['fullest_osd']} with {100 * change['peak_used_ratio']:.1f} %{moment}; "
            f"{reached} reached."
        )
    own = change["profiles"][0]
    before = own.get("before") or {}
    if own.get("latency_p99_ns") is not None and before.get("iops") is not None:
        sentences.append(
            f"Clients with {own['profile']}: {rate_text(before['iops'])} requests/s before, "
            f"{rate_text(own['iops'])} meanwhile; "
            f"p99 {number_text(before['latency_p99_ns'], 1e-6)} ms before, "
            f"{number_text(own['latency_p99_ns'], 1e-6)} ms meanwhile; longest wait "
            f"{duration_text(own['latency_max_ns'] / 1e9)}."
        )
    return Finding(_heading(index, change), sentences)


def _range(values: Mapping[str, Any]) -> str:
    interval = interval_text(values)
    return "" if interval == "–" else f" ({interval})"


def _commands(document: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    listed = []
    trade_off = document["trade_off"]
    settings = trade_off["commands"] if trade_off else []
    if settings:
        listed.append(("Before: recommended settings", settings))
    for index, change in enumerate(document["changes"]):
        listed.append((_heading(index, change), change["commands"]))
    if settings:
        undone = [
            f"ceph config rm osd {line.split()[4]}" for line in reversed(settings)
        ]
        listed.append(("Afterwards: settings as before", undone))
    return listed


def _points(trade_off: Mapping[str, Any] | None) -> Table:
    columns = [
        "settings",
        "duration",
        "interval of the simulation alone",
        "requests/s",
        "p99 [ms]",
        "p99 before [ms]",
        "needs restart",
    ]
    rows: list[list[str | TableCell]] = []
    if trade_off is not None:
        for index, point in enumerate(trade_off["points"]):
            is_best = index == trade_off["recommended"]
            interval = interval_text(point)
            rows.append(
                [
                    point["name"],
                    TableCell(
                        duration_text(point["duration_s"]),
                        tone="best" if is_best else "",
                    ),
                    interval,
                    rate_text(point["iops"]),
                    _p99(point),
                    number_text(point["before_latency_p99_ns"], 1e-6),
                    "yes" if point["needs_restart"] else "no",
                ]
            )
    return Table("Duration and p99 by settings", columns, rows, form="stack")


def _p99(values: Mapping[str, Any]) -> TableCell:
    p99_ns = values["latency_p99_ns"]
    low_ns = values["latency_p99_low_ns"]
    high_ns = values["latency_p99_high_ns"]
    half = interval_half_text(low_ns, p99_ns, high_ns, 1e-6)
    return TableCell(number_text(p99_ns, 1e-6), half)


def _moves(changes: Sequence[Mapping[str, Any]]) -> Table:
    columns = [
        "change",
        "PGs",
        "shards",
        "moved",
        "read",
        "written",
        "sent",
        "duration",
        "interval",
        "fullest OSD",
        "used",
        "reached",
    ]
    rows: list[list[str | TableCell]] = []
    for index, change in enumerate(changes):
        reached = change["full_ratio_reached"]
        sizes = [
            bytes_text(change[f"{key}_bytes"])
            for key in ("device_read", "device_write", "private_net")
        ]
        used = "–"
        if change["peak_used_ratio"] is not None:
            used = f"{100 * change['peak_used_ratio']:.1f} %"
        fullest = (
            "–" if change["fullest_osd"] is None else f"osd.{change['fullest_osd']}"
        )
        rows.append(
            [
                _heading(index, change),
                f"{change['pgs_moved']:,}",
                f"{change['shards_moved']:,}",
                bytes_text(change["bytes_moved"]),
                *sizes,
                duration_text(change["duration_s"]),
                interval_text(change),
                fullest,
                used,
                TableCell(reached or "none", tone="warn" if reached else ""),
            ]
        )
    return Table("Data that each change moves", columns, rows, form="stack")


def _durations(document: Mapping[str, Any]) -> Table:
    """List the parts of the durations."""
    rows = table_of_durations(document)
    return Table.of(
        "What the time consists of", rows, words=(1,), form="stack", caption_shown=True
    )


def _crossings(changes: Sequence[Mapping[str, Any]]) -> Table:
    """List the OSDs that cross a threshold, the first twenty of each change."""
    rows: list[list[str | TableCell]] = []
    for index, change in enumerate(changes):
        for crossing in change.get("crossings", ())[:20]:
            rows.append(
                [
                    _heading(index, change),
                    f"osd.{crossing['osd']}",
                    crossing["state"],
                    duration_text(crossing["time_s"]),
                ]
            )
    columns = ["change", "OSD", "becomes", "after the command"]
    return Table(
        "OSDs that cross a threshold", columns, rows, form="stack", caption_shown=True
    )


def _clients(changes: Sequence[Mapping[str, Any]]) -> Table:
    columns = ["settings", "when", "requests/s", "p50 [ms]", "p99 [ms]", "longest wait"]
    rows: list[list[str | TableCell]] = []
    for index, change in enumerate(changes):
        rows.append([_heading(index, change)])
        for profile in change["profiles"]:
            spans = {
                "before": profile.get("before"),
                "during": profile,
                "after": profile.get("after"),
            }
            for when, values in spans.items():
                if not values or values.get("iops") is None:
                    continue
                longest_ns = values["latency_max_ns"]
                longest = "–" if longest_ns is None else duration_text(longest_ns / 1e9)
                rows.append(
                    [
                        profile["profile"],
                        when,
                        rate_text(values["iops"]),
                        number_text(values["latency_p50_ns"], 1e-6),
                        _p99(values),
                        longest,
                    ]
                )
    return Table(
        "Clients before, during and after each change", columns, rows, words=(1,)
    )

"""What a run's report says first: each scheme against the first one, in sentences made from the numbers."""

from __future__ import annotations

from typing import NamedTuple

from stripesim.scenarios.figures.captions import scheme_label
from stripesim.scenarios.report.data import Kind, RunReport
from stripesim.scenarios.report.words import (
    RESOURCE_WORDS,
    bytes_text,
    duration_text,
    request_words,
    span,
    times_in_prose,
)


class Finding(NamedTuple):
    """A scheme in a few sentences."""

    heading: str
    sentences: list[str]


def findings(report: RunReport) -> list[Finding]:
    """Compare each scheme with the first; with one scheme alone, say what it does."""
    first, *others = report.schemes
    if not others:
        return [Finding(scheme_label(first), _alone(report, first))]
    return [
        Finding(f"{scheme_label(scheme)} instead of {scheme_label(first)}", _against(report, scheme, first))
        for scheme in others
    ]


def _alone(report: RunReport, scheme: str) -> list[str]:
    sentences = []
    for kind in report.kinds:
        rates = span(report.values(kind, scheme, "throughput_bytes_per_s"), 1e-6).replace("…", "to")
        p99s = span(report.values(kind, scheme, "latency_p99_ns"), 1e-6).replace("…", "to")
        sentences.append(
            f"{request_words(*kind)}: {rates} MB/s, 99th percentile of latency {p99s} ms{_over(report)}; "
            f"{_limited(report, kind, scheme)}."
        )
    return sentences


def _against(report: RunReport, scheme: str, first: str) -> list[str]:
    mine, theirs = report.capacities[scheme], report.capacities[first]
    room = theirs.stored_per_client_byte / mine.stored_per_client_byte
    held = ""
    if mine.usable_bytes is not None and theirs.usable_bytes is not None:
        held = f" ({bytes_text(mine.usable_bytes)}, not {bytes_text(theirs.usable_bytes)})"
        room = mine.usable_bytes / theirs.usable_bytes
    lost = f"the loss of any {mine.failures_tolerated} shard{'' if mine.failures_tolerated == 1 else 's'}"
    alike = mine.failures_tolerated == theirs.failures_tolerated
    other = "too" if alike else f"not {theirs.failures_tolerated}"
    room_words = times_in_prose([room], [1.0])
    sentences = [f"Storage: {room_words} data on the same drives{held}; survives {lost}, {other}."]
    for kind in report.kinds:
        rate, p99 = (
            times_in_prose(report.values(kind, scheme, column), report.values(kind, first, column))
            for column in ("throughput_bytes_per_s", "latency_p99_ns")
        )
        if rate:
            tail = f", {p99} 99th percentile of latency" if p99 else ""
            sentences.append(
                f"{request_words(*kind)}: {rate} throughput{tail}{_over(report)}; "
                f"{_limited(report, kind, scheme)}."
            )
    repair, repair_first = report.repair_seconds(scheme), report.repair_seconds(first)
    if repair and repair_first:
        sentences.append(
            f"Repair: a lost OSD is rebuilt in about {duration_text(max(repair))}, not "
            f"{duration_text(max(repair_first))}, counted from the start of the rebuild."
        )
    return sentences


def _over(report: RunReport) -> str:
    """Say that figures are of the whole run, where it has phases."""
    return " over the whole run, failures and recovery included" if report.result.timelines else ""


def _limited(report: RunReport, kind: Kind, scheme: str) -> str:
    """Name what limits a scheme, as the table of bottlenecks does."""
    rows = report.rows_of(kind, scheme)
    names = dict.fromkeys(row["bottleneck"] for row in rows if row["bottleneck"] not in (None, "none"))
    if not names:
        return "no resource is near its limit"
    sometimes = " at some sizes" if any(row["bottleneck"] == "none" for row in rows) else ""
    return "limited by " + " or ".join(f"the {RESOURCE_WORDS.get(name, name)}" for name in names) + sometimes

"""What a run's report says first: each scheme against the first one, in sentences made from the numbers."""

from __future__ import annotations

from stripesim.scenarios.captions import OP_WORDS, PATTERN_WORDS, scheme_label
from stripesim.scenarios.report_words import RESOURCE_WORDS, bytes_text, duration_text, span, times
from stripesim.scenarios.run_report import Kind, Reported

__all__ = ["findings"]


def findings(told: Reported) -> list[str]:
    """Compare each scheme with the first; with one scheme alone, say what it does."""
    first, *others = told.schemes
    if not others:
        return _alone(told, first)
    return [sentence for scheme in others for sentence in _against(told, scheme, first)]


def _kind_words(kind: Kind) -> str:
    op, pattern = kind
    return (
        "the trace's requests"
        if op == "trace"
        else f"{PATTERN_WORDS.get(pattern, pattern).lower()} {OP_WORDS.get(op, op)}"
    )


def _alone(told: Reported, scheme: str) -> list[str]:
    sentences = []
    for kind in told.kinds:
        rates = span(told.values(kind, scheme, "throughput_bytes_per_s"), 1e-6)
        p99s = span(told.values(kind, scheme, "latency_p99_ns"), 1e-6)
        sentences.append(
            f"{scheme_label(scheme)}, {_kind_words(kind)}: {rates} MB/s, 99th percentile of latency "
            f"{p99s} ms; held back by {_bottleneck(told, kind, scheme)}."
        )
    return sentences


def _against(told: Reported, scheme: str, first: str) -> list[str]:
    mine, theirs = told.capacities[scheme], told.capacities[first]
    name, other = scheme_label(scheme), scheme_label(first)
    room = theirs.stored_per_client_byte / mine.stored_per_client_byte
    held = ""
    if mine.usable_bytes is not None and theirs.usable_bytes is not None:
        held = f", {bytes_text(mine.usable_bytes)} against {bytes_text(theirs.usable_bytes)}"
        room = mine.usable_bytes / theirs.usable_bytes
    lost = mine.failures_tolerated
    sentences = [
        f"{name} holds {times([room], [1.0])} the data of {other} on the same drives{held}, and survives the "
        f"loss of any {lost} shard{'' if lost == 1 else 's'} (against {theirs.failures_tolerated})."
    ]
    for kind in told.kinds:
        rate, p99 = (
            times(told.values(kind, scheme, column), told.values(kind, first, column))
            for column in ("throughput_bytes_per_s", "latency_p99_ns")
        )
        if rate:
            sentences.append(
                f"{name}, {_kind_words(kind)}: {'the same' if rate == '1×' else rate} throughput "
                f"{'as' if rate == '1×' else 'of'} {other}"
                + (f", {p99} its 99th percentile of latency" if p99 not in ("", "1×") else "")
                + f"; held back by {_bottleneck(told, kind, scheme)}."
            )
    repair, repair_first = told.repair_seconds(scheme), told.repair_seconds(first)
    if repair and repair_first:
        sentences.append(
            f"A lost OSD is whole again after about {duration_text(max(repair))} with {name} and "
            f"{duration_text(max(repair_first))} with {other}, counted from the start of the rebuild."
        )
    return sentences


def _bottleneck(told: Reported, kind: Kind, scheme: str) -> str:
    names = dict.fromkeys(row["bottleneck"] for row in told.rows_of(kind, scheme) if row["bottleneck"])
    return " or ".join(f"the {RESOURCE_WORDS.get(name, name)}" for name in names) or "nothing"

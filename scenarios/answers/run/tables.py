"""Lay out the tables of a run for the terminal: purchases, timelines and processors."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from stripesim.models.cpu import busy_cores
from stripesim.scenarios.answers.run.advise import gain_text, notable
from stripesim.scenarios.schema.keys import Cell
from stripesim.scenarios.schema.units import (
    bytes_text,
    first_text,
    number_text,
    size_text,
)
from stripesim.scenarios.show.tables import Table

#: Longest list of events with equal time and kind.
_TEXTS_MAX: Final = 2
#: Further cores, relative, from which on the cores without sharing are stated besides.
_SHARED_NOTED: Final = 0.02


def timeline_table(timeline: Mapping[str, Any]) -> Table:
    """Lay out the events of one run under faults. Events of equal time and kind share a line."""
    parts = (timeline.get(key) for key in ("scheme", "op", "pattern"))
    name = " ".join(str(part) for part in parts if part)
    rows = [
        [
            time,
            what,
            first_text([event["text"] for event in alike], _TEXTS_MAX, separator="; "),
        ]
        for (time, what), alike in groupby(timeline["events"], _time_and_kind)
    ]
    return Table(
        f"{name}: timeline",
        ("time [s]", "event", "what happened"),
        rows,
        caption_shown=True,
        first_is_number=True,
        words=(1, 2),
    )


def _time_and_kind(event: Mapping[str, Any]) -> tuple[str, str]:
    return f"{event['time_s']:,.3f}", event["what"]


def advice_table(advice: Sequence[Mapping[str, Any]]) -> Table:
    """Lay out the simulated gain of each notable purchase, by cell."""
    rows: list[list[str]] = []
    starts = []
    for cell, gains in groupby(notable(advice), Cell.of_row):
        starts.append(len(rows))
        for row in gains:
            name = cell.name if len(rows) == starts[-1] else ""
            changes = (
                gain_text(row, key) for key in ("iops", "latency_mean", "latency_p99")
            )
            rows.append([name, row["words"], *changes])
    return Table(
        "Effect of doubling a resource [%]",
        ("cell", "twice the", "requests per second", "mean latency", "99th percentile"),
        rows,
        caption_shown=True,
        words=(1,),
        groups=starts[1:],
        note="Each simulated alone. Pairs are shown if they gain more than either resource alone. "
        "± is half of a 95 % interval over replications.",
    )


def purchases_table(purchases: Sequence[Mapping[str, Any]]) -> Table:
    """Lay out the steps of each resource, by cell."""
    rows: list[list[str]] = []
    starts = []
    for cell, points in groupby(purchases, Cell.of_row):
        starts.append(len(rows))
        for point in sorted(
            points, key=lambda each: (each["resource"], each["amount"])
        ):
            name = cell.name if len(rows) == starts[-1] else ""
            own = " (now)" if point["is_own"] else ""
            low, high = point["iops_gain_low"], point["iops_gain_high"]
            about = "" if low is None else f" ± {number_text((high - low) / 2)}"
            rows.append(
                [
                    name,
                    point["resource"],
                    f"{number_text(point['amount'])}{own}",
                    number_text(point["iops"]),
                    f"{number_text(point['iops_gain'])}{about}",
                    number_text(point["latency_p99_ns"], 1e-6),
                    number_text(point["cost"]),
                    number_text(point["iops_per_1000"]),
                ]
            )
    return Table(
        "What the next step buys",
        (
            "cell",
            "resource",
            "amount",
            "requests/s",
            "more than now",
            "p99 [ms]",
            "cost",
            "requests/s for 1,000",
        ),
        rows,
        caption_shown=True,
        words=(1,),
        groups=starts[1:],
        note="Each step simulated alone. Cost: by [plan.prices], with the cluster owned. ± is half of a 95 % "
        "interval.",
    )


def processor_parts(
    cells: Sequence[Mapping[str, Any]], iops: float
) -> Iterator[str | Table]:
    """Yield a table of processor use for each cell, and the cores that a request rate keeps busy."""
    for cell in cells:
        if cell.get("threads"):
            yield _processor_table(cell)
            yield _busy_words(cell, iops)


def _processor_table(cell: Mapping[str, Any]) -> Table:
    rows = [
        [
            thread["thread"],
            str(thread["count_per_osd"] or "–"),
            _cpu_text(thread),
            _percent(thread["in_use_mean"]),
            _percent(thread["in_use_highest"]),
        ]
        for thread in cell["threads"]
    ]
    used = [host["utilisation"] for host in cell["hosts"]]
    mean = sum(used) / len(used)
    rows.append(
        ["cores of hosts", "", _cpu_text(cell), _percent(mean), _percent(max(used))]
    )
    return Table(
        "Use of processors",
        ("threads", "per OSD", "CPU [µs/request]", "in use", "busiest"),
        rows,
        note=Cell.of_row(cell).name,
    )


def _cpu_text(use: Mapping[str, Any]) -> str:
    """Write the processor time of a request [µs]."""
    return f"{use['cpu_ns_per_op'] / 1e3:.1f}"


def _percent(share: float | None) -> str:
    if share is None:
        return "–"
    return f"{100 * share:.0f} %"


def _busy_words(cell: Mapping[str, Any], iops: float) -> str:
    """Describe how many cores a rate keeps busy, and the rate at which the first resource saturates."""
    alone = iops * cell["cpu_ns_per_op"] / 1e9
    first = cell.get("saturates_first")
    full = ""
    if first:
        full = f"; first to saturate: {first['resource']}, at {first['iops']:,.0f} requests/s"
    if first and iops > first["iops"]:
        return (
            f"{iops:,.0f} requests/s are more than this cluster serves, and would need {alone:,.1f} cores or "
            f"more{full}"
        )
    used = [host["cores"] * host["utilisation"] for host in cell["hosts"]]
    shares = [one / (sum(used) or 1) for one in used]
    busy = sum(
        busy_cores(alone * share, host["osd_cores"], cell["paired_slowdown_fraction"])
        for share, host in zip(shares, cell["hosts"], strict=True)
    )
    sentence = f"{iops:,.0f} requests/s keep {busy:.1f} cores busy"
    if busy > alone * (1 + _SHARED_NOTED):
        sentence += f" ({alone:.1f} if no two hardware threads shared a core)"
    return sentence + full


def capacity_table(capacities: Sequence[Mapping[str, Any]]) -> Table:
    """Lay out the usable capacity for the objects of buckets, by scheme."""
    rows = [
        [
            one["scheme"],
            size_text(one["object_bytes"]),
            f"{one['overhead']:.3g}",
            f"{one['stored_bytes_per_client_byte']:.3g}",
            bytes_text(one["raw_bytes"]),
            bytes_text(one["usable_bytes_full"]),
            bytes_text(one["usable_bytes_safe"]),
        ]
        for one in capacities
    ]
    return Table(
        "Usable capacity for objects of these sizes",
        (
            "scheme",
            "objects",
            "stored per byte, by the code",
            "with padding",
            "raw",
            "usable, full",
            "usable, safe",
        ),
        rows,
        caption_shown=True,
        note="Full: the fullest OSD at the full ratio. Safe: at the nearfull ratio, with the largest failure "
        "domain gone. Bucket indexes and metadata are not included.",
    )
